//! The memory behind pointers that a driver passes.

use nv_abi::Errno;

use crate::client_memory::{read, write};

#[test]
fn a_bad_pointer_is_efault() {
    let mut bytes = [1, 2, 3, 4];
    assert_eq!(read(16, &mut bytes), Err(Errno::EFAULT));
    assert_eq!(write(u64::MAX, &bytes), Err(Errno::EFAULT));
    let source = [5_u8, 6, 7, 8];
    assert_eq!(read(source.as_ptr() as u64, &mut bytes), Ok(()));
    assert_eq!(bytes, source);
}
