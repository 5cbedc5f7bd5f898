//! From instructions to micro-operations.
//!
//! Lowering matches on [`sass::Op`], fields and operands and never looks at bits. It decides everything that can be
//! decided before the instruction runs: which handler, which rows, which predicates.
//!
//! # Recipe: a new instruction
//! 1. `sass`: a row in `rows/FAMILY.rs`, and what a lane computes in `lane`.
//! 2. `lower/FAMILY.rs`: an arm for its `Op`. Ask the [`Reader`] for *every* operand and field; what is left unread and
//!    is not neutral makes the instruction `Unsupported`, by construction.
//! 3. `execute/FAMILY.rs`: a handler, by `handlers!`, which runs the lane function over 32 lanes of one warp, or, for
//!    plain functions of rows, over those of a whole team (`Core::team1` and the like). If it is common and concerns each
//!    lane alone, a function in `native/emit.rs`, which the handler names in brackets, says what it is in compiled code.
//! 4. A kernel in `fixtures` that uses it, or a test in `sm/tests.rs` that runs the words.

mod bulk;
mod control;
mod convert;
mod double;
mod float;
mod half;
mod integer;
mod mbarrier;
mod memory;
mod moves;
mod reader;
mod tensor;
mod texture;

use super::code::{Key, Neighbours, PAGE_BYTES, PAGE_CODE, Page};
use super::execute;
use super::fault::FaultKind;
use super::micro::{Features, Handler, Micro, PredicateIn};
use super::native::{Known, Reach, Runs};
use super::processor::Compile;
use super::run::branch;
use reader::{Pool, Read, Reader, Refusal};

/// Lowers the instructions of a family; `None` for all others.
type Family = fn(&mut Reader<'_>) -> Option<Read<Micro>>;

const FAMILIES: &[Family] = &[
    integer::lower,
    float::lower,
    moves::lower,
    memory::lower,
    bulk::lower,
    control::lower,
    double::lower,
    half::lower,
    convert::lower,
    tensor::lower,
    texture::lower,
];

/// Lowers a page. What cannot run becomes a micro-operation that faults when it is reached. `read` knows other pages.
pub(super) fn page(
    bytes: &[u8],
    Key { start, sm, registers }: Key,
    features: Features,
    compile: Compile,
    read: &dyn Fn(u64) -> Option<Box<[u8]>>,
) -> Page {
    let Lowered { mut code, known, pool, faults } = lowered(bytes, start, sm, registers, features);
    let Pool { entries, uses, bindless, .. } = pool;
    let leads = if compile == Compile::Never { [false; 2] } else { leads(bytes, start, &code, &known) };
    let [before, behind] = [start.wrapping_sub(PAGE_BYTES), start.wrapping_add(PAGE_BYTES)];
    let pages = [leads[0].then(|| read(before)).flatten(), leads[1].then(|| read(behind)).flatten()];
    let neighbours = Neighbours { pages, sm, features };
    let runs = Runs::new(compile, start, registers, &mut code, known, neighbours);
    Page { bytes: bytes.into(), code, pool: entries, uses, faults, runs, bindless }
}

/// Whether a page's code leads to the page before, and to the one behind.
fn leads(bytes: &[u8], start: u64, code: &[Micro], known: &[Known]) -> [bool; 2] {
    let branches = code.iter().zip(known).filter(|(_, known)| known.reach == Reach::Branch);
    let mut leads = [false; 2];
    for (op, _) in branches {
        leads[0] |= (1..=PAGE_BYTES).contains(&start.wrapping_sub(op.payload));
        leads[1] |= (PAGE_BYTES..2 * PAGE_BYTES).contains(&op.payload.wrapping_sub(start));
    }
    // What fills a function up is never reached.
    let last = bytes.rchunks_exact(16).next();
    let nop = last.is_some_and(|word| word[0] == 0x18 && word[1] & 15 == 9);
    leads[1] |=
        !nop && known.last().is_some_and(|known| known.emit.is_some() || known.reach != Reach::Anything);
    leads
}

/// A page's micro-operations, and what is known of them. (Neighbours of a page are only asked for that.)
pub(super) fn about(
    bytes: &[u8],
    start: u64,
    sm: u32,
    registers: u32,
    features: Features,
) -> (Vec<Micro>, Vec<Known>) {
    let Lowered { code, known, .. } = lowered(bytes, start, sm, registers, features);
    (code, known)
}

struct Lowered {
    code: Vec<Micro>,
    known: Vec<Known>,
    pool: Pool,
    faults: Vec<FaultKind>,
}

fn lowered(bytes: &[u8], start: u64, sm: u32, registers: u32, features: Features) -> Lowered {
    let arch = sass::Arch::from_sm(sm);
    let mut pool = Pool::default();
    let mut faults: Vec<FaultKind> = Vec::new();
    let mut code = Vec::with_capacity(PAGE_CODE);
    let mut known = Vec::with_capacity(PAGE_CODE);
    for (index, word) in bytes.chunks_exact(16).enumerate() {
        let address = start + 16 * index as u64;
        let word = word.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte));
        pool.code = index as u16;
        let lowered = match arch.map(|arch| sass::decode(word, address, arch)) {
            Some(Ok(instruction)) => one(&instruction, features, registers, &mut pool),
            _ => Err((FaultKind::UnknownInstruction, Micro::new(Features::plain::<execute::Faulting>()))),
        };
        let (micro, about) = lowered.unwrap_or_else(|(kind, micro)| {
            let payload = faults.iter().position(|known| *known == kind).unwrap_or_else(|| {
                faults.push(kind);
                faults.len() - 1
            });
            (Micro { payload: payload as u64, ..micro }, Known { emit: None, reach: Reach::Anything })
        });
        code.push(micro);
        known.push(about);
    }
    Lowered { code, known, pool, faults }
}

/// Whether the interpreter executes an instruction with its modifiers.
///
/// # Errors
/// The reason, which names what is missing.
pub fn executes(instruction: &sass::Instruction) -> Result<(), String> {
    // No launch has more registers than this.
    one(instruction, Features::Baseline, 255, &mut Pool::default())
        .map(|_| ())
        .map_err(|(kind, _)| kind.to_string())
}

/// Whether the instruction has a form in compiled code, on this machine.
#[must_use]
pub fn compiles(instruction: &sass::Instruction) -> bool {
    let lowered = one(instruction, Features::detect(), 255, &mut Pool::default());
    lowered.is_ok_and(|(_, known)| known.emit.is_some())
}

/// Lowers one instruction; if it cannot run, its fault and the micro-operation that raises it.
fn one(
    instruction: &sass::Instruction,
    features: Features,
    registers: u32,
    pool: &mut Pool,
) -> Result<(Micro, Known), (FaultKind, Micro)> {
    let mut reader = Reader::new(instruction, features, registers, pool);
    let lowered = FAMILIES
        .iter()
        .find_map(|family| family(&mut reader))
        .unwrap_or_else(|| Err(Refusal::unsupported("the instruction")))
        .and_then(|micro| reader.finish().map(|()| micro));
    let guard = instruction.guard;
    let mut kind = 0;
    if guard.index != sass::Operand::PT || guard.negated {
        kind |= Micro::GUARDED;
    }
    if instruction.row.uniform_guard {
        kind |= Micro::UNIFORM;
    }
    let guard = PredicateIn((guard.index & 7) | u8::from(guard.uniform) << 3 | u8::from(guard.negated) << 4);
    match lowered {
        Ok(micro) => {
            let branches = std::ptr::fn_addr_eq(micro.run, branch as Handler);
            let micro = reader.with_operand(Micro { guard, kind: kind | micro.kind, ..micro });
            let reach = if branches { Reach::Branch } else { Reach::of(instruction.op) };
            Ok((micro, Known { emit: reader.emit(&micro), reach }))
        }
        Err(refusal) => {
            let fault = match refusal {
                Refusal::Illegal(what) => FaultKind::IllegalForm(what),
                Refusal::Register => FaultKind::OutOfRangeRegister { registers },
                Refusal::Unsupported(what) => {
                    FaultKind::Unsupported(format!("{}: {what}", name(instruction)))
                }
            };
            Err((fault, Micro { guard, kind, ..Micro::new(Features::plain::<execute::Faulting>()) }))
        }
    }
}

/// Mnemonic with its modifiers, without operands.
fn name(instruction: &sass::Instruction) -> String {
    let text = instruction.to_string();
    let text =
        text.split_once(' ').filter(|(guard, _)| guard.starts_with('@')).map_or(&*text, |(_, rest)| rest);
    text.split([' ', ';']).next().unwrap_or("").to_owned()
}
