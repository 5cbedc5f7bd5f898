//! Branches of the kernel module.

use nv_abi::Branch;

#[test]
fn a_version_between_two_branches_uses_the_older_layouts() {
    assert_eq!(Branch::from_version("580.159.04"), Some(Branch::R580));
    assert_eq!(Branch::from_version("575.64.05"), Some(Branch::R570));
    assert_eq!(Branch::from_version("700.1"), Some(Branch::R610));
    assert_eq!(Branch::from_version("470.1"), None);
    assert_eq!(Branch::from_version(""), None);
}
