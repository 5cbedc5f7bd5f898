//! No compiled code: for processors and systems for which there is none. Handlers execute everything.

use super::block::Block;
use super::code::{Loaded, Neighbours};
use super::launch::Prepared;
use super::micro::Micro;
use super::processor::Compile;
use super::worker::Caches;

/// What a micro-operation becomes in compiled code.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Emit {}

/// What is known of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reach {
    /// Nothing.
    Anything,
    /// It leads to the address in its payload.
    Branch,
}

impl Reach {
    pub(crate) fn of(_op: sass::Op) -> Self {
        Self::Anything
    }
}

/// What lowering says of an instruction beside its micro-operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub emit: Option<Emit>,
    pub reach: Reach,
}

/// Whether this machine runs compiled code.
///
/// # Errors
/// What it lacks.
pub(super) fn available() -> Result<(), &'static str> {
    Err("it is not x86-64 with Linux")
}

/// What a block did that was executed at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub instructions: u64,
    pub lanes: u64,
}

/// Executes a block at once: never.
pub(super) fn run_at_once(
    _loaded: &Loaded,
    _pc: u64,
    _block: &mut Block,
    _caches: &mut Caches,
    _launch: &Prepared,
) -> Option<Done> {
    None
}

/// The runs of a page: none.
#[derive(Debug)]
pub(super) struct Runs {
    neighbours: Neighbours,
}

impl Runs {
    pub(super) fn new(
        _compile: Compile,
        _page: u64,
        _registers: u32,
        _code: &mut [Micro],
        _known: Vec<Known>,
        neighbours: Neighbours,
    ) -> Self {
        Self { neighbours }
    }

    pub(super) fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    pub(super) fn undo(&self, _code: &mut [Micro]) {}
}
