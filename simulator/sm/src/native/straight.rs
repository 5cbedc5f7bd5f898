//! Blocks that are executed at once.
//!
//! Most kernels without loops go one straight way from their first instruction to EXIT, with checks of bounds on it that let
//! nobody leave but in the last block. Where a block's threads are a line, the numbers that [`super::plan`] computes with stand for
//! all lanes of the block as well as for those of a warp: the memory of every access is found once, and checks are done for the first
//! and the last thread. Where all of it holds, warps go through the code one after the other, and the block is over: none of
//! them began, was chosen, or ended. Where anything does not hold, nothing has happened yet, and the block begins as usual.

use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::super::block::Block;
use super::super::code::Loaded;
use super::super::control;
use super::super::lanes::{FULL, Lanes};
use super::super::launch::Prepared;
use super::super::micro::{Micro, PredicateIn};
use super::super::warp::Warp;
use super::super::worker::{Caches, WARPS};
use super::access::Common;
use super::assembler::Assembler;
use super::builder::{Name, SKIPPED};
use super::liveness::Live;
use super::plan::{Across, Planned};
use super::{
    Body, Frame, Known, Native, Reach, begin_function, begin_member, code, end_function, next_eight,
    next_member,
};
use nv_memory::AccessKind;

/// Instructions of the longest way.
const LONGEST: usize = 192;
/// How often in a row the code may be tried in vain.
const FRUITLESS: u32 = 64;
/// How often in a row a window may be missed.
const MISSES: usize = 8;

/// A straight way to the end.
#[derive(Debug)]
pub(super) struct Straight {
    /// Instructions, the EXIT that ends it included.
    pub length: usize,
    /// Of those the EXITs that let nobody leave.
    exits: usize,
    /// How often it was wanted.
    pub wanted: AtomicU32,
    /// Null as long as there is none.
    pub code: AtomicPtr<u8>,
    fruitless: AtomicU32,
}

/// What a block did that was executed at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// Instructions of its warps.
    pub instructions: u64,
    /// Lanes in which they were executed.
    pub lanes: u64,
}

/// An address that no window of the worker holds.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Missed {
    /// 0 if there is none.
    pub address: u64,
    /// Whether it is that of a store.
    pub stores: u32,
}

/// What the code returns that is not for the block.
const NOTHING_DONE: u64 = u64::MAX;

/// The way that begins with an instruction, if it is straight and all of it has forms in compiled code.
pub(super) fn find(ops: &[Micro], known: &[Known], start: usize) -> Option<Straight> {
    let mut exits = 0;
    for (number, (op, about)) in ops.iter().zip(known).enumerate().skip(start).take(LONGEST) {
        if about.reach != Reach::Exit {
            if about.emit.is_none() || !super::may_belong(op, about) {
                return None;
            }
        } else if control::ends(op) {
            let (wanted, code, fruitless) = Default::default();
            return Some(Straight { length: number + 1 - start, exits, wanted, code, fruitless });
        } else if op.kind == Micro::GUARDED && op.from[0] == PredicateIn::TRUE {
            exits += 1;
        } else {
            return None;
        }
    }
    None
}

/// A function for the way, without the EXIT that ends it, of the type of all compiled code.
pub(super) fn translate(
    ops: &[Micro],
    known: &[Known],
    start: usize,
    live: &Live,
    uniform: &Range<u16>,
) -> Option<Vec<u8>> {
    // Predicates are false when a warp begins, which no warp here did.
    if (0..16).any(|number| number & 7 != 7 && live.lives(Name::Predicate(number), start)) {
        return None;
    }
    let planned = Planned::of(Across::Block, ops, known, start, live, uniform)?;
    let mut asm = Assembler::default();
    let [member, eight, fail] = [(); 3].map(|()| asm.label());
    begin_function(&mut asm);
    begin_member(&mut asm);
    planned.write(&mut asm, ops, known, uniform, fail)?;
    asm.place(member);
    begin_member(&mut asm);
    asm.place(eight);
    let body = Body { ops, known, start, live, fault: fail, planned: Some(&planned), passed: false };
    let mut sites = Vec::new();
    body.write(&mut asm, false, &mut sites, |builder| {
        next_eight(builder.asm, eight);
        next_member(builder.asm, member);
        end_function(builder.asm);
        Some(())
    })?;
    asm.place(fail);
    asm.address(SKIPPED, NOTHING_DONE);
    end_function(&mut asm);
    if sites.is_empty() { asm.finish() } else { None }
}

/// Executes a block at once that did not begin yet, if its code from `pc` on is made for that: what it did.
///
/// The block's threads must be a line of whole warps.
pub(crate) fn run_at_once(
    loaded: &Loaded,
    pc: u64,
    block: &mut Block,
    caches: &mut Caches,
    launch: &Prepared,
) -> Option<Done> {
    let page = &loaded.page;
    let number = ((pc - loaded.start) / 16) as usize;
    let straight = page.runs.straight(number)?;
    if straight.fruitless.load(Ordering::Relaxed) >= FRUITLESS || !loaded.is_whole() {
        return None;
    }
    let Some(code) = code(&straight.code) else {
        page.runs.want_straight(straight, number, &page.code);
        return None;
    };
    let Some(skipped) = call(code, loaded, block, caches, launch) else {
        straight.fruitless.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    // Other workers read it: written only where it changes.
    if straight.fruitless.load(Ordering::Relaxed) != 0 {
        straight.fruitless.store(0, Ordering::Relaxed);
    }
    let warps = block.warps.len() as u64;
    let (length, exits) = (straight.length as u64, straight.exits as u64);
    Some(Done { instructions: warps * length, lanes: 32 * warps * (length - exits) - skipped })
}

/// How many lanes guards kept from instructions, if the code was for the block.
fn call(
    code: Native,
    loaded: &Loaded,
    block: &mut Block,
    caches: &mut Caches,
    launch: &Prepared,
) -> Option<u64> {
    const GROUPS: [u32; WARPS] = [FULL; WARPS];
    // The pool is never written: destinations are rows of the warp only.
    let pool = loaded.rows.as_ptr().cast_mut();
    let mut rows = [[std::ptr::null_mut::<Lanes>(), pool]; WARPS];
    let mut warps = [std::ptr::null_mut::<Warp>(); WARPS];
    let count = block.warps.len();
    for ((rows, pointer), warp) in rows.iter_mut().zip(&mut warps).zip(&mut block.warps) {
        (rows[0], *pointer) = (warp.rows.as_mut_ptr(), std::ptr::from_mut(warp));
    }
    let mut missed = Missed::default();
    let index = block.cta.index;
    let frame = Frame {
        rows: rows.as_ptr(),
        warps: warps.as_ptr(),
        groups: GROUPS.as_ptr(),
        count,
        ledger: std::ptr::null_mut(),
        missed: &raw mut missed,
        windows: &raw const caches.windows,
        common: Common {
            shared: block.cta.shared.as_mut_ptr().cast(),
            shared_bytes: launch.launch.shared_bytes.into(),
            window: block.cta.window.into(),
            // Only calls for accesses use it, of which there are none.
            core: std::ptr::null_mut(),
            threads: launch.thread_index.as_ptr(),
            block: [index[0], index[1], index[2], 0],
            aligned: 0,
        },
    };
    for _ in 0..MISSES {
        missed.address = 0;
        // SAFETY: as in `execute`: rows and predicates are those of the block's warps, by indices that lowering checked for its
        // number of registers, and memory is where windows or the block's shared memory hold it.
        let skipped = unsafe { code(&frame) };
        if skipped != NOTHING_DONE {
            return Some(skipped);
        }
        let kind = if missed.stores != 0 { AccessKind::Write } else { AccessKind::Read };
        if missed.address == 0
            || !matches!(caches.windows.find(&launch.map, kind, missed.address, 1), Ok(Some(_)))
        {
            return None;
        }
    }
    None
}
