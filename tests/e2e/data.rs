//! Numbers to compute with: the same in every run.

/// `n` scattered words.
pub fn numbers(n: u32, seed: u32) -> Vec<u32> {
    let mut state = seed;
    let step = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state ^ state >> 15
    };
    (0..n).map(step).collect()
}

/// `n` numbers in -128..128, none of them special.
pub fn floats(n: u32, seed: u32) -> Vec<f32> {
    numbers(n, seed).into_iter().map(|x| (x >> 8) as f32 / 65_536.0 - 128.0).collect()
}

/// `n` scattered 64-bit words.
pub fn wide(n: u32, seed: u32) -> Vec<u64> {
    let (high, low) = (numbers(n, seed), numbers(n, seed ^ 0x5555_5555));
    high.iter().zip(low).map(|(high, low)| u64::from(*high) << 32 | u64::from(low)).collect()
}

/// `n` doubles in -128..128 with all their bits in use.
pub fn doubles(n: u32, seed: u32) -> Vec<f64> {
    floats(n, seed).into_iter().map(|x| f64::from(x) / 3.0).collect()
}
