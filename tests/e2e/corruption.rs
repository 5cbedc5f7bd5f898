//! Damaged cubins, as far as the GPU: every byte of a cubin changed in turn. A load is refused, or the module runs, or
//! its channel dies of a typed fault.

use nv_driver::{Error, program::Cubin};
use tests::fuzz::{Hostile, Outcome};

#[derive(Debug, Default)]
struct Tally {
    harmless: usize,
    refused: usize,
    failed: usize,
    ran: usize,
}

/// Launches the cubin with each byte flipped that makes a difference to what is loaded.
fn flip_every_byte(profile: usize, module: &str, flip: u8) {
    let mut hostile = Hostile::on(profile);
    let mut bytes = fixtures::cubin(hostile.arch(), module).unwrap();
    assert!(matches!(hostile.cubin(&bytes), Outcome::Ran), "{module} does not run undamaged");
    let whole = Cubin::parse(&bytes).unwrap();
    let mut tally = Tally::default();
    for index in 0..bytes.len() {
        bytes[index] ^= flip;
        match Cubin::parse(&bytes) {
            Ok(cubin) if cubin == whole => tally.harmless += 1,
            _ => match hostile.cubin(&bytes) {
                Outcome::Ran => tally.ran += 1,
                Outcome::Refused(error) => {
                    assert!(
                        matches!(
                            *error,
                            Error::Cubin(_)
                                | Error::Architecture { .. }
                                | Error::AddressSpace { .. }
                                | Error::Rm { .. }
                        ),
                        "byte {index:#x} of {module}: {error}"
                    );
                    assert!(error.to_string().len() > 10, "{error}");
                    tally.refused += 1;
                }
                Outcome::Failed(error) => {
                    assert!(
                        matches!(
                            *error,
                            Error::ChannelFault(_)
                                | Error::Timeout { .. }
                                | Error::Launch { .. }
                                | Error::ArgumentCount { .. }
                                | Error::ArgumentSize { .. }
                                | Error::Bounds { .. }
                                | Error::Field(_)
                        ),
                        "byte {index:#x} of {module}: {error}"
                    );
                    tally.failed += 1;
                }
            },
        }
        bytes[index] ^= flip;
    }
    // Every outcome occurs, or the test looks at the wrong bytes.
    let Tally { harmless, refused, failed, ran } = tally;
    assert!(harmless > 0 && refused > 100 && failed > 100 && ran > 10, "{tally:?}");
    // And every fault of the machine says what it was.
    assert!(hostile.machine().faults().iter().all(|fault| fault.to_string().len() > 20));
}

#[test]
fn every_byte_of_an_ada_cubin() {
    flip_every_byte(0, "vector_add", 0xff);
}

#[test]
fn every_byte_of_a_hopper_cubin() {
    flip_every_byte(1, "vector_add", 0x10);
}

#[test]
fn every_truncation_is_refused_or_harmless() {
    for arch in ["sm_89", "sm_90", "sm_89.abi7"] {
        let bytes = fixtures::cubin(arch, "vector_add").unwrap();
        let whole = Cubin::parse(&bytes).unwrap();
        let mut refused = 0;
        for length in 0..bytes.len() {
            match Cubin::parse(&bytes[..length]) {
                Err(_) => refused += 1,
                // Section headers are what is needed; they come before the end.
                Ok(cubin) => assert_eq!(cubin, whole, "{arch}, {length} bytes"),
            }
        }
        assert!(refused * 2 > bytes.len(), "{arch}: {refused} of {} refused", bytes.len());
    }
}
