//! Nodes and errors.

use nv_abi::port::*;

#[test]
fn a_node_reads_back_from_its_path() {
    for node in [Node::Ctl, Node::Gpu(0), Node::Gpu(13), Node::Uvm] {
        assert_eq!(node.to_string().parse(), Ok(node));
    }
    for path in ["/dev/nvidia", "/dev/nvidia-modeset", "/dev/null", "nvidiactl"] {
        assert_eq!(path.parse::<Node>(), Err(NodeError), "{path}");
    }
}

#[test]
fn an_error_is_named_where_it_has_a_name() {
    assert_eq!(Errno::EEXIST.to_string(), "EEXIST (17)");
    assert_eq!(Errno(4095).to_string(), "errno 4095");
}
