//! Numbers of ioctls.

use nv_abi::ioctl::*;

#[test]
fn the_word_of_rm_control_is_the_one_that_clients_send() {
    // tinygrad's and libcuda's request for an NVOS54 of 32 bytes, as recorded on an H200.
    assert_eq!(request(NV_ESC_RM_CONTROL, 32), 0xc020_462a);
    assert_eq!((nr(0xc020_462a), size(0xc020_462a)), (0x2a, 32));
}
