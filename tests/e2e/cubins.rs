//! Every fixture cubin, through the driver's loader.

use nv_driver::program::{Cubin, Dialect};

#[test]
fn every_fixture_cubin_loads_links_and_names_its_kernels() {
    let mut loaded = 0;
    for module in fixtures::MODULES {
        for arch in fixtures::ARCHES {
            let bytes = fixtures::cubin(arch, module.name).unwrap();
            let cubin =
                Cubin::parse(&bytes).unwrap_or_else(|error| panic!("{arch} {}: {error}", module.name));
            let expected = if arch.ends_with("abi7") { Dialect::Abi7 } else { Dialect::Abi8 };
            assert_eq!(cubin.dialect(), expected, "{arch} {}", module.name);
            for name in module.kernels {
                let kernel =
                    cubin.kernel(name).unwrap_or_else(|| panic!("{arch} {}: no {name}", module.name));
                assert!(kernel.registers > 0 && !kernel.code.is_empty());
            }
            let image =
                cubin.link(0x10_0000_0000).unwrap_or_else(|error| panic!("{arch} {}: {error}", module.name));
            assert_eq!(image.len() as u64, cubin.image_bytes());
            loaded += 1;
        }
    }
    assert!(loaded >= 40, "only {loaded} fixtures");
}
