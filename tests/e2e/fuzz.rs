//! Short rounds of the fuzz targets, the same in every run: random bytes, and fixtures with damage.

use tests::fuzz::{self, TARGETS};

/// Scattered bytes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // xorshift64*.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit.max(1)
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.next() >> 24) as u8).collect()
    }

    /// Flips bits, repeats runs, writes special values.
    fn damage(&mut self, bytes: &mut [u8], times: usize) {
        for _ in 0..times {
            let at = self.below(bytes.len());
            match self.below(4) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = (self.next() >> 24) as u8,
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
}

#[test]
fn every_target_takes_random_bytes() {
    for (target, seed) in TARGETS.iter().zip(1..) {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ seed);
        let rounds = if target.name == "executor" { 12 } else { 60 };
        for _ in 0..rounds {
            let length = random.below(2000);
            (target.body)(&random.bytes(length));
        }
        (target.body)(&[]);
    }
}

#[test]
fn damaged_code_decodes_or_is_refused() {
    let mut random = Random(2);
    for module in fixtures::MODULES {
        for arch in fixtures::ARCHES {
            let mut bytes = fixtures::cubin(arch, module.name).unwrap();
            // Code is aligned to 16 bytes in the file.
            fuzz::sass_decoder(&bytes);
            random.damage(&mut bytes, 200);
            fuzz::sass_decoder(&bytes);
        }
    }
}

#[test]
fn damaged_cubins_load_or_are_refused() {
    let mut random = Random(3);
    for module in fixtures::MODULES {
        for arch in ["sm_89", "sm_90", "sm_89.abi7"] {
            let whole = fixtures::cubin(arch, module.name).unwrap();
            for times in [1, 3, 20] {
                let mut bytes = whole.clone();
                random.damage(&mut bytes, times);
                fuzz::cubin_loader(&bytes);
                let length = random.below(bytes.len());
                fuzz::cubin_loader(&bytes[..length]);
            }
        }
    }
}

#[test]
fn damaged_recordings_of_pushbuffers_and_descriptors_are_read_to_their_end() {
    let mut random = Random(4);
    let recording = fixtures::recordings::cuda_mix().unwrap();
    let pushbuffers = recording.pushbuffers.iter().map(|push| &push.words);
    for words in pushbuffers.chain(recording.qmds.iter().map(|qmd| &qmd.words)) {
        let whole: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        fuzz::pushbuffer(&whole);
        for times in [1, 5] {
            let mut bytes = whole.clone();
            random.damage(&mut bytes, times);
            fuzz::pushbuffer(&bytes);
            fuzz::qmd_reader(&bytes);
        }
    }
}

#[test]
fn hostile_code_ends_in_a_typed_error_or_not_at_all() {
    let mut random = Random(5);
    for profile in 0..3 {
        let mut hostile = fuzz::Hostile::on(profile);
        let modules = ["local_array", "reduce", "histogram", "half2", "matmul", "tensor", "calls"];
        for module in modules {
            let bytes = fixtures::cubin(hostile.arch(), module).unwrap();
            let cubin = nv_driver::program::Cubin::parse(&bytes).unwrap();
            let image = cubin.link(0x10_0000_0000).unwrap();
            let code = cubin.kernels()[0].code.clone();
            let code = &image[code.start as usize..code.end as usize];
            for _ in 0..4 {
                // Whole instructions of a real kernel, with damage.
                let mut code = code.to_vec();
                random.damage(&mut code, 6);
                let _ = hostile.code(&code);
            }
        }
    }
}
