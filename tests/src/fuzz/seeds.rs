//! Inputs for fuzz targets without a fuzzer: fixtures, and damage to them, the same for the same seed.

use nv_driver::program::Cubin;

/// Bytes by the number of a seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        // The generator stands still at zero.
        Self(if seed == 0 { 0x9e37_79b9_7f4a_7c15 } else { seed })
    }

    fn bits(&mut self) -> u64 {
        // xorshift64*.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below a limit; 0 where the limit is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() >> 16) as usize % limit.max(1)
    }

    /// So many bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.bits() >> 24) as u8).collect()
    }

    /// Flips bits, repeats runs, writes special values.
    pub fn damage(&mut self, bytes: &mut [u8], times: usize) {
        for _ in 0..times.min(bytes.len() * 8) {
            let at = self.below(bytes.len());
            match self.below(4) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = (self.bits() >> 24) as u8,
                2 => {
                    let value = [0u8, 0xff, 0x7f, 0x80][self.below(4)];
                    let end = (at + 1 + self.below(8)).min(bytes.len());
                    bytes[at..end].fill(value);
                }
                _ => {
                    let from = self.below(bytes.len());
                    let length = (1 + self.below(32)).min(bytes.len() - at.max(from));
                    bytes.copy_within(from..from + length, at);
                }
            }
        }
    }

    /// An input made of seeds: one of them, at times joined to a part of another or cut off, with damage; or plain
    /// random bytes.
    pub fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        if seeds.is_empty() || self.below(16) == 0 {
            let length = self.below(4096);
            return self.bytes(length);
        }
        let mut input = seeds[self.below(seeds.len())].clone();
        match self.below(8) {
            0 => input.truncate(self.below(input.len())),
            1 => {
                let other = &seeds[self.below(seeds.len())];
                // At a multiple of what words, headers and instructions are aligned to.
                let (cut, from) = (self.below(input.len()) & !15, self.below(other.len()) & !15);
                input.truncate(cut);
                input.extend_from_slice(&other[from..]);
            }
            _ => {}
        }
        let times = [1, 1, 2, 4, 8, 32][self.below(6)];
        self.damage(&mut input, times);
        input
    }
}

/// Machine code of the fixtures' kernels, function by function, for one architecture (`sm_89`).
fn code(arch: &str) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for module in fixtures::MODULES {
        let Ok(bytes) = fixtures::cubin(arch, module.name) else { continue };
        let Ok(cubin) = Cubin::parse(&bytes) else { continue };
        let Ok(image) = cubin.link(0x10_0000_0000) else { continue };
        for kernel in cubin.kernels() {
            all.push(image[kernel.code.start as usize..kernel.code.end as usize].to_vec());
        }
    }
    all
}

/// What a target's inputs are made of; nothing where random bytes serve.
#[must_use]
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "sass_decoder" => fixtures::ARCHES.iter().flat_map(|arch| code(arch)).collect(),
        "cubin_loader" => fixtures::MODULES
            .iter()
            .flat_map(|module| fixtures::ARCHES.iter().map(|arch| fixtures::cubin(arch, module.name)))
            .flatten()
            .collect(),
        "pushbuffer" | "qmd_reader" => {
            let Ok(recording) = fixtures::recordings::cuda_mix() else { return Vec::new() };
            let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let pushbuffers = recording.pushbuffers.iter().map(|push| bytes(&push.words));
            pushbuffers.chain(recording.qmds.iter().map(|qmd| bytes(&qmd.words))).collect()
        }
        // The first byte chooses the GPU; its architecture's code follows.
        "executor" => ["sm_89", "sm_90", "sm_80"]
            .iter()
            .zip(0u8..)
            .flat_map(|(arch, gpu)| code(arch).into_iter().map(move |code| [&[gpu][..], &code].concat()))
            .collect(),
        _ => Vec::new(),
    }
}
