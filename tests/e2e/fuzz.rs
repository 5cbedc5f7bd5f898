//! Short rounds of the fuzz targets, the same in every run: random bytes, and fixtures with damage.

use tests::fuzz::{self, Random, TARGETS};

#[test]
fn every_target_takes_random_bytes() {
    for (target, seed) in TARGETS.iter().zip(1..) {
        let mut random = Random::new(0x9e37_79b9_7f4a_7c15 ^ seed);
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
    let mut random = Random::new(2);
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
    let mut random = Random::new(3);
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
    let mut random = Random::new(4);
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
    let mut random = Random::new(5);
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
