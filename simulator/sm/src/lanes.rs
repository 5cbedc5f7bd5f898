//! 32 lanes of a register, and masks of one bit per lane.

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;

/// Every lane.
pub(crate) const FULL: u32 = u32::MAX;

/// One register of a warp: 32 lanes of 32 bits, aligned to a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Lanes(pub [u32; LANES]);

impl Lanes {
    /// The same value in every lane.
    pub(crate) const fn splat(value: u32) -> Self {
        Self([value; LANES])
    }
}

/// Whether a lane is in a mask.
#[inline(always)]
pub(crate) const fn bit(mask: u32, lane: usize) -> bool {
    mask >> lane & 1 != 0
}

/// The lowest lane of a mask; 0 for an empty one.
#[inline(always)]
pub(crate) const fn first(mask: u32) -> usize {
    (mask.trailing_zeros() & 31) as usize
}

/// How many lanes are in a mask. Mostly all are; to count bits takes a dozen instructions where there is not one for it.
#[inline(always)]
pub(crate) const fn count(mask: u32) -> u32 {
    if mask == FULL { LANES as u32 } else { mask.count_ones() }
}

/// The lanes of a mask, lowest first.
#[inline(always)]
pub(crate) fn each(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(lane)
    })
}

/// For each mask of eight lanes all ones in those, zero in the others. A table, because the compiler makes something
/// long of the shifts that would do it, which the processor stumbles over.
static EIGHTS: [[u32; 8]; 256] = {
    let mut eights = [[0; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let mut lane = 0;
        while lane < 8 {
            eights[mask][lane] = (mask as u32 >> lane & 1).wrapping_neg();
            lane += 1;
        }
        mask += 1;
    }
    eights
};

/// The same, for compiled code.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(super) fn eights() -> &'static [[u32; 8]; 256] {
    &EIGHTS
}

/// All ones in the lanes of a mask, zero in the others.
#[inline(always)]
pub(crate) fn spread(mask: u32) -> [u32; LANES] {
    let mut out = [0; LANES];
    for eight in 0..4 {
        let lanes = &EIGHTS[(mask >> (8 * eight) & 0xff) as usize];
        out[8 * eight..8 * eight + 8].copy_from_slice(lanes);
    }
    out
}

/// `f` of every lane. (The array's own `map` is compiled to scalar code.)
#[inline(always)]
pub(crate) fn map<T: Copy, U: Copy + Default>(lanes: &[T; LANES], f: impl Fn(T) -> U) -> [U; LANES] {
    let mut out = [U::default(); LANES];
    for i in 0..LANES {
        out[i] = f(lanes[i]);
    }
    out
}

/// The mask of the lanes for which `f` holds.
#[inline(always)]
pub(crate) fn ballot(f: impl Fn(usize) -> bool) -> u32 {
    let mut truth = [0; LANES];
    for i in 0..LANES {
        truth[i] = u32::from(f(i)).wrapping_neg();
    }
    signs(&truth)
}

/// The mask of the lanes whose highest bit is set.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn signs(lanes: &[u32; LANES]) -> u32 {
    use std::arch::x86_64::{__m128i, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32};
    // SAFETY: both types are 128 bytes of plain data; SSE2 belongs to x86-64. Packing with saturation keeps the sign.
    unsafe {
        let v: [__m128i; 8] = std::mem::transmute(*lanes);
        let half = |i: usize| {
            let low = _mm_packs_epi32(v[i], v[i + 1]);
            let high = _mm_packs_epi32(v[i + 2], v[i + 3]);
            _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
        };
        half(0) | half(4) << 16
    }
}

/// The mask of the lanes whose highest bit is set.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn signs(lanes: &[u32; LANES]) -> u32 {
    (0..LANES).fold(0, |mask, i| mask | (lanes[i] >> 31) << i)
}

/// Lanes of `new` where the mask has them, of `old` elsewhere.
#[inline(always)]
pub(crate) fn blend(mask: u32, new: &[u32; LANES], old: &[u32; LANES]) -> [u32; LANES] {
    let keep = spread(mask);
    let mut out = [0; LANES];
    for i in 0..LANES {
        out[i] = (new[i] & keep[i]) | (old[i] & !keep[i]);
    }
    out
}
