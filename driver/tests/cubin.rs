//! The cubin loader on the fixtures: what it reads, and that no damage makes it panic.
#![allow(clippy::unwrap_used)]

use fixtures::{
    properties,
    property::{list, within},
};
use nv_driver::program::{Cubin, CubinError, Dialect};

#[test]
fn every_fixture_loads_with_its_kernels_and_parameter_base() {
    for module in fixtures::MODULES {
        for arch in fixtures::ARCHES {
            let bytes = fixtures::cubin(arch, module.name).unwrap();
            let cubin =
                Cubin::parse(&bytes).unwrap_or_else(|error| panic!("{} {arch}: {error}", module.name));
            let sm: u32 = arch[3..5].parse().unwrap();
            assert_eq!(cubin.sm(), sm);
            let old = arch.ends_with("abi7");
            assert_eq!(cubin.dialect(), if old { Dialect::Abi7 } else { Dialect::Abi8 });
            for name in module.kernels {
                let kernel = cubin.kernel(name).unwrap_or_else(|| panic!("{arch}: no {name}"));
                assert_eq!(kernel.parameter_base, if sm == 90 { 0x210 } else { 0x160 }, "{name} {arch}");
                assert!((1..=255).contains(&kernel.registers), "{name} {arch}");
                assert!(!kernel.code.is_empty() && kernel.code.start.is_multiple_of(128));
            }
            let image = cubin.link_with(0x10_0000_0000, |_| Some(0x20_0000_0000)).unwrap();
            assert_eq!(image.len() as u64, cubin.image_bytes());
        }
    }
}

#[test]
fn both_dialects_say_the_same_of_a_kernel() {
    for module in fixtures::MODULES {
        let parse = |arch| Cubin::parse(&fixtures::cubin(arch, module.name).unwrap()).unwrap();
        let (new, old) = (parse("sm_89"), parse("sm_89.abi7"));
        for name in module.kernels {
            let (new, old) = (new.kernel(name).unwrap(), old.kernel(name).unwrap());
            assert_eq!(new.parameters, old.parameters, "{name}");
            assert_eq!(new.shared_bytes, old.shared_bytes, "{name}");
            // The older dialect does not say that a kernel recurses; its frames do.
            assert!(
                old.stack_bytes >= new.stack_bytes,
                "{name}: {} and {}",
                old.stack_bytes,
                new.stack_bytes
            );
        }
    }
}

#[test]
fn parameters_carry_offsets_and_sizes_of_the_signature() {
    let cubin = Cubin::parse(&fixtures::cubin("sm_89", "vector_add").unwrap()).unwrap();
    let kernel = cubin.kernel("vector_add").unwrap();
    let parameters: Vec<_> = kernel.parameters.iter().map(|p| (p.offset, p.size)).collect();
    assert_eq!(parameters, [(0, 8), (8, 8), (16, 8), (24, 4)]);
}

#[test]
fn initialised_globals_are_placed_and_their_addresses_linked() {
    let cubin = Cubin::parse(&fixtures::cubin("sm_89", "constants").unwrap()).unwrap();
    let data = cubin.global_init().unwrap();
    let base = 0x10_0000_0000;
    let image = cubin.link(base).unwrap();
    let primes = [2u32, 3, 5, 7].map(u32::to_le_bytes).concat();
    assert!(image[data.start as usize..data.end as usize].windows(16).any(|window| window == primes));
    assert!(!cubin.relocations().is_empty());
    for relocation in cubin.relocations() {
        let place = &image[relocation.offset as usize..][..8];
        let address = u64::from_le_bytes(place.try_into().unwrap());
        assert!((base..base + cubin.image_bytes()).contains(&address), "{relocation:?}: {address:#x}");
    }
}

#[test]
fn calls_of_the_device_runtime_are_left_to_the_one_who_links() {
    for arch in fixtures::ARCHES {
        let cubin = Cubin::parse(&fixtures::cubin(arch, "device_runtime").unwrap()).unwrap();
        let mut externals = cubin.externals().to_vec();
        externals.sort_unstable();
        assert_eq!(externals, ["__assertfail", "free", "malloc", "vprintf"], "{arch}");
        assert!(matches!(cubin.link(0), Err(CubinError::UndefinedSymbol { .. })), "{arch}");
        let image = cubin.link_with(0, |name| Some(0x1234_0000_0000 + name.len() as u64)).unwrap();
        for name in externals {
            let address = (0x1234_0000_0000 + name.len() as u64).to_le_bytes();
            assert!(image.windows(8).any(|window| window == address), "{arch}: {name}");
        }
    }
}

fn survives(bytes: &[u8]) {
    if let Ok(cubin) = Cubin::parse(bytes) {
        // An error is as good as an image; only a panic is not.
        let _ = cubin.link_with(0x10_0000_0000, |_| Some(0x20_0000_0000));
    }
}

fn survives_every_byte_flipped_and_every_truncation(arch: &str) {
    let mut bytes = fixtures::cubin(arch, "constants").unwrap();
    for index in 0..bytes.len() {
        survives(&bytes[..index]);
        let old = bytes[index];
        for flip in [0xff, 0x01, 0x80] {
            bytes[index] = old ^ flip;
            survives(&bytes);
        }
        bytes[index] = old;
    }
}

// Tests of their own, so that they run side by side.
#[test]
fn every_byte_flipped_and_every_truncation_of_sm_89_is_an_error_or_harmless() {
    survives_every_byte_flipped_and_every_truncation("sm_89");
}

#[test]
fn every_byte_flipped_and_every_truncation_of_sm_90_is_an_error_or_harmless() {
    survives_every_byte_flipped_and_every_truncation("sm_90");
}

#[test]
fn every_byte_flipped_and_every_truncation_of_the_old_dialect_is_an_error_or_harmless() {
    survives_every_byte_flipped_and_every_truncation("sm_89.abi7");
}

properties! { 256 cases;
    fn any_overwritten_run_is_an_error_or_harmless(start in within(0usize..4096), run in list::<u8>(1..16)) {
        let mut bytes = fixtures::cubin("sm_90", "recursion").unwrap();
        let start = start % bytes.len();
        let length = run.len().min(bytes.len() - start);
        bytes[start..start + length].copy_from_slice(&run[..length]);
        survives(&bytes);
    }
}
