//! What compiled code calls where an access's lanes do not lie as most do: a look at their addresses, and the handler.

use super::super::core::Core;
use super::super::execute::memory::SHARED;
use super::super::lanes::each;
use super::super::micro::{Flow, RowIndex};
use super::super::run;
use super::access::{Base, Place, Stack, Way};
use super::assembler::Ymm;
use nv_memory::AccessKind;

/// An access of a run.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// Its number in the page.
    pub number: usize,
    /// The number of the first instruction of its part of the run.
    pub start: usize,
    pub base: Base,
    /// The low and the high word of the base, and the mask of the lanes that access, where there are any.
    pub registers: [Option<Ymm>; 3],
    /// The place that a look fills.
    pub slot: usize,
    /// What it loads into.
    pub destination: RowIndex,
}

/// Accesses of compiled code, each at a place of its own that the code knows.
pub(super) type Sites = Vec<Box<Site>>;

/// What a call finds on the stack: what [`super::builder::Builder`] saved, above it what functions for runs keep there.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Saved {
    vectors: [[u32; 8]; 16],
    aligns: u64,
    r11_to_r9: [u64; 3],
    /// R8, of which the lowest byte are the lanes that run.
    group: u64,
    /// RDI: how many eights are left of the member.
    eights: u64,
    rsi_to_rcx: [u64; 3],
    stack: Stack,
}

/// A call for an access. `left` is how many members of the team are left, the one at hand included. The result is whether there was
/// a fault.
pub(super) type Aid = unsafe extern "sysv64" fn(saved: *mut Saved, site: *const Site, left: usize) -> u64;

impl Saved {
    fn vector(&self, register: Option<Ymm>) -> Option<&[u32; 8]> {
        register.and_then(|register| self.vectors.get(usize::from(register.0)))
    }

    /// Number of the eight at hand.
    fn eight(&self) -> usize {
        4usize.saturating_sub(self.eights as usize)
    }

    /// Lanes of the eight that access, by bit.
    fn active(&self, site: &Site) -> u8 {
        let group = self.group as u8;
        match self.vector(site.registers[2]) {
            Some(mask) => {
                group
                    & mask
                        .iter()
                        .enumerate()
                        .fold(0, |bits, (lane, word)| bits | ((word >> 31) as u8) << lane)
            }
            None => group,
        }
    }
}

/// Looks where the lanes of an access find its base.
///
/// # Safety
/// As for [`Aid`]: compiled code saved its state there, and waits. `site` is one of its own.
pub(super) unsafe extern "sysv64" fn look(saved: *mut Saved, site: *const Site, left: usize) -> u64 {
    // SAFETY: the caller's promise. The core is lent to the code by `execute`, which waits too.
    let (saved, site, core) =
        unsafe { (&mut *saved, &*site, &mut *(*saved).stack.common.core.cast::<Core<'_>>()) };
    core.enter(core.team.count.saturating_sub(left));
    let nowhere = Place { pointer: std::ptr::null(), way: Way::Anywhere, bias: 0 };
    let place = find(core, saved, site).unwrap_or(nowhere);
    if let Some(to) = saved.stack.places.get_mut(site.slot) {
        *to = place;
    }
    0
}

/// The place of the lanes' base, if all they access is within reach and aligned.
fn find(core: &mut Core<'_>, saved: &Saved, site: &Site) -> Option<Place> {
    let base = &site.base;
    let active = saved.active(site);
    let low = saved.vector(site.registers[0])?;
    let lanes = || each(active.into());
    let first = lanes().next()?;
    let (start, end) = (base.offsets[0], base.end(base.usual()));
    let beyond = i64::from(base.offsets[1]) - i64::from(start) + i64::from(base.access.bytes);
    // Distances of the lanes from the lowest one, and its memory.
    let mut index = [0; 8];
    lanes().for_each(|lane| index[lane] = low[lane] << base.scale);
    let (memory, bias) = if base.access.space == SHARED {
        let uniform = core.row(base.uniform)[0];
        let bias = uniform.wrapping_sub(core.cta.window);
        let at = |lane: usize| index[lane].wrapping_add(bias).wrapping_add(start as u32);
        let most = lanes().map(at).max()?;
        if i64::from(most) + beyond > i64::from(core.launch.launch.shared_bytes) {
            return None;
        }
        if lanes().any(|lane| at(lane) & u32::from(base.access.bytes - 1) != 0) {
            return None;
        }
        (core.cta.shared.as_mut_ptr().cast::<u8>(), bias)
    } else {
        let top = saved.vector(site.registers[1]);
        let top_word = |lane: usize| top.map_or(0, |top| top[lane]);
        if base.scale != 0 || lanes().any(|lane| top_word(lane) != top_word(first)) {
            return None;
        }
        let (least, most) = (lanes().map(|lane| low[lane]).min()?, lanes().map(|lane| low[lane]).max()?);
        let span = i64::from(most - least) + beyond;
        let uniform = core.pair_lane(base.uniform, 0);
        let at = (u64::from(top_word(first)) << 32 | u64::from(least))
            .wrapping_add(uniform)
            .wrapping_add(start as i64 as u64);
        let askew = lanes().fold(at as u32, |any, lane| any | (low[lane] - least));
        if span >= 1 << 31 || askew & u32::from(base.access.bytes - 1) != 0 {
            return None;
        }
        let kind = if base.access.stores { AccessKind::Write } else { AccessKind::Read };
        let memory = core.caches.windows.find(&core.launch.map, kind, at, span as u64).ok()??;
        (memory.wrapping_offset(-(start as isize)), least.wrapping_neg())
    };
    let distance = |lane: usize| index[lane].wrapping_add(bias);
    let from = |lane: usize| index[lane].wrapping_sub(index[first]);
    let step = u32::from(base.access.bytes);
    let pointer =
        |index: u32| memory.wrapping_offset(index as i32 as isize).wrapping_offset(end as isize).cast_const();
    if lanes().all(|lane| from(lane) == 0) {
        return Some(Place { pointer: pointer(distance(first)), way: Way::Same, bias });
    }
    if lanes().all(|lane| from(lane) == step * (lane - first) as u32) {
        let way = if active == 0xff { Way::Rising } else { Way::SomeRising };
        let zero = distance(first).wrapping_sub(step * first as u32);
        return Some(Place { pointer: pointer(zero), way, bias });
    }
    Some(Place { pointer: pointer(0), way: Way::Scattered, bias })
}

/// Executes an access by its handler, for the eight lanes at hand.
///
/// # Safety
/// As for [`look`]; what the access reads is in its rows.
pub(super) unsafe extern "sysv64" fn slowly(saved: *mut Saved, site: *const Site, left: usize) -> u64 {
    // SAFETY: as in `look`.
    let (saved, site, core) =
        unsafe { (&mut *saved, &*site, &mut *(*saved).stack.common.core.cast::<Core<'_>>()) };
    let member = core.team.count.saturating_sub(left);
    let eight = saved.eight();
    let group = core.team.groups.get(member).copied().unwrap_or(0);
    let here = group & 0xff << (8 * eight);
    if alone(core, member, here, site.number) {
        return 0;
    }
    // The lanes above are behind: what they meet on their way here comes first.
    let above = if eight < 3 { group & u32::MAX << (8 * (eight + 1)) } else { 0 };
    let before = core.fault.take();
    let found = (site.start..site.number).find(|number| above != 0 && !alone(core, member, above, *number));
    if found.is_none() {
        core.fault = before;
    }
    core.chain.end_in_page(found.unwrap_or(site.number));
    core.member = member;
    1
}

/// Executes an instruction of the page by its handler, for lanes of one member. Whether there was no fault.
fn alone(core: &mut Core<'_>, member: usize, lanes: u32, number: usize) -> bool {
    let page = core.page;
    let Some(op) = page.runs.handled(&page.code, number) else { return false };
    let skipped = core.skipped;
    let flow = core.as_one(member, lanes, |core| {
        // SAFETY: the instruction is one of a compiled run, of the page that the core was made for.
        unsafe { run::alone(core, &op) }
    });
    // Compiled code counts them.
    core.skipped = skipped;
    flow == Flow::Next
}
