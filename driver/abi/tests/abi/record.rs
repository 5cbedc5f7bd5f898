//! Structs by their fields.

use nv_abi::rm::NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS as version;
use nv_abi::{Branch, FieldError, record::*};

#[test]
fn an_array_of_bytes_is_set_and_read_as_a_whole_and_as_text() {
    let mut record = Record::zeroed(&version::STRUCT, Branch::R580);
    record.set_byte_array(&version::driverVersionBuffer, b"580.159.04\0rest").unwrap();
    assert_eq!(record.text(&version::driverVersionBuffer).unwrap(), "580.159.04");
    assert_eq!(record.byte_array(&version::driverVersionBuffer).unwrap()[10..16], *b"\0rest\0");
    assert!(record.set_byte_array(&version::titleBuffer, &[1; 257]).is_err());
    let old = Record::zeroed(&version::STRUCT, Branch::R550);
    assert!(matches!(old.text(&version::driverBranch), Err(FieldError::Absent { .. })));
}

#[test]
fn a_padded_record_takes_what_there_is() {
    let short = Record::padded(&version::STRUCT, Branch::R535, b"535");
    assert_eq!(short.text(&version::driverVersionBuffer).unwrap(), "535");
    let long = Record::padded(&version::STRUCT, Branch::R535, &[b'5'; 4096]);
    assert_eq!(long.bytes().len(), 776);
}
