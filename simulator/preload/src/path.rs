//! Which paths a simulated kernel module decides about: its nodes, the files that tell of it, and those of a real one,
//! which are hidden.

use nv_abi::Node;

use crate::{options::Options, text::Text};

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// A device node.
    Node(Node),
    /// A generated file.
    Text(Text),
    /// A generated directory, with the names in it.
    Directory(Vec<(String, EntryKind)>),
    /// Nothing: a real module would have it, the simulated one does not.
    Absent,
    /// A real directory that is shown with changes: without what `hides`, and with these entries.
    Changed(Vec<(String, EntryKind)>),
}

/// What a directory says of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Node,
    File,
    Directory,
}

/// The major number of the control and GPU nodes.
pub(crate) const MAJOR: u32 = 195;
/// The major number of `/dev/nvidia-uvm`, which a real system assigns; as on the machine that was recorded.
pub(crate) const UVM_MAJOR: u32 = 238;
/// The minor number of `/dev/nvidiactl`.
const CTL_MINOR: u32 = 255;

/// The root directory by a path that is never looked at, for reading what really is there.
pub(crate) const REAL_ROOT: &str = "/proc/self/root";

/// Major and minor number of a node.
pub(crate) fn numbers(node: Node) -> (u32, u32) {
    match node {
        Node::Ctl => (MAJOR, CTL_MINOR),
        Node::Gpu(minor) => (MAJOR, minor),
        Node::Uvm => (UVM_MAJOR, 0),
    }
}

/// Whether a path needs to be looked at: a test that nearly every path fails, without allocation.
pub(crate) fn is_candidate(path: &[u8]) -> bool {
    let has = |part: &[u8]| path.windows(part.len()).any(|window| window == part);
    has(b"nvidia") || has(b"dev")
}

/// The path without empty, `.` and `..` parts. Links are not followed.
fn normal(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts
}

fn gpu_node(number: &str, options: &Options) -> Option<Node> {
    let canonical = number == "0" || !number.starts_with('0');
    let minor: u32 = number.parse().ok().filter(|_| canonical)?;
    ((minor as usize) < options.gpus).then_some(Node::Gpu(minor))
}

/// The PCI address of a simulated GPU, as the kernel writes it.
pub(crate) fn pci_address(gpu: usize) -> String {
    format!("0000:{:02x}:00.0", gpu + 1)
}

fn gpu_at(address: &str, options: &Options) -> Option<usize> {
    (0..options.gpus).find(|gpu| pci_address(*gpu) == address)
}

fn directory<'a>(entries: impl IntoIterator<Item = (&'a str, EntryKind)>) -> Known {
    Known::Directory(entries.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect())
}

fn gpu_directories(options: &Options) -> Vec<(String, EntryKind)> {
    (0..options.gpus).map(|gpu| (pci_address(gpu), EntryKind::Directory)).collect()
}

/// What an absolute path is; `None` for one that the module has no say in.
pub(crate) fn look(path: &str, options: &Options) -> Option<Known> {
    use EntryKind::{Directory, File};
    if !path.starts_with('/') {
        return None;
    }
    let parts = normal(path);
    Some(match parts.as_slice() {
        ["dev"] => {
            let mut names = vec!["nvidiactl".to_owned(), "nvidia-uvm".to_owned()];
            names.extend((0..options.gpus).map(|gpu| format!("nvidia{gpu}")));
            Known::Changed(names.into_iter().map(|name| (name, EntryKind::Node)).collect())
        }
        ["dev", "nvidiactl"] => Known::Node(Node::Ctl),
        ["dev", "nvidia-uvm"] => Known::Node(Node::Uvm),
        ["dev", name, ..] if name.starts_with("nvidia") => match parts.as_slice() {
            ["dev", name] => {
                let node = name.strip_prefix("nvidia").and_then(|number| gpu_node(number, options));
                node.map_or(Known::Absent, Known::Node)
            }
            _ => Known::Absent,
        },
        ["dev", "char", numbers] => match numbers.strip_prefix("195:") {
            Some("255") => Known::Node(Node::Ctl),
            Some(minor) => gpu_node(minor, options).map_or(Known::Absent, Known::Node),
            None => return None,
        },
        ["proc", "devices"] => Known::Text(Text::Devices),
        ["proc", "driver", "nvidia"] => directory([("version", File), ("params", File), ("gpus", Directory)]),
        ["proc", "driver", "nvidia", "version"] => Known::Text(Text::Version),
        ["proc", "driver", "nvidia", "params"] => Known::Text(Text::Parameters),
        ["proc", "driver", "nvidia", "gpus"] => Known::Directory(gpu_directories(options)),
        ["proc", "driver", "nvidia", "gpus", address, rest @ ..] => match (gpu_at(address, options), rest) {
            (Some(_), []) => directory([("information", File)]),
            (Some(gpu), ["information"]) => Known::Text(Text::Information(gpu)),
            _ => Known::Absent,
        },
        ["proc", "driver", name, ..] if name.starts_with("nvidia") => Known::Absent,
        ["sys", "module", "nvidia"] => directory([("initstate", File), ("version", File)]),
        ["sys", "module", "nvidia_uvm"] => directory([("initstate", File)]),
        ["sys", "module", "nvidia" | "nvidia_uvm", "initstate"] => Known::Text(Text::InitState),
        ["sys", "module", "nvidia", "version"] => Known::Text(Text::ModuleVersion),
        ["sys", "module", name, ..] if name.starts_with("nvidia") => Known::Absent,
        ["sys", "bus", "pci", "devices"] => Known::Changed(Vec::new()),
        ["sys", "bus", "pci", "devices", address, rest @ ..] => match (gpu_at(address, options)?, rest) {
            (_, []) => Known::Directory(Text::PCI.iter().map(|name| ((*name).to_owned(), File)).collect()),
            (gpu, [name]) => match Text::PCI.iter().position(|known| known == name) {
                Some(attribute) => Known::Text(Text::Pci { gpu, attribute }),
                None => Known::Absent,
            },
            _ => Known::Absent,
        },
        _ => return None,
    })
}

/// Whether an entry of a real directory belongs to a real module or card and is not shown. `directory` is the path
/// that was opened.
pub(crate) fn hides(directory: &str, name: &str) -> bool {
    match normal(directory).as_slice() {
        ["dev"] => name.starts_with("nvidia"),
        // NVIDIA's cards, by vendor number.
        ["sys", "bus", "pci", "devices"] => {
            let vendor = std::fs::read_to_string(format!("{REAL_ROOT}/sys/bus/pci/devices/{name}/vendor"));
            vendor.is_ok_and(|text| text.trim() == "0x10de")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use nv_simulator::profile::Profile;

    use super::*;

    fn two() -> Options {
        Options { profile: Profile::ad102(), gpus: 2, driver: "580.159.04".to_owned(), vram: None }
    }

    #[test]
    fn nodes_are_found_however_their_paths_are_written() {
        let options = two();
        for path in ["/dev/nvidia1", "//dev/./nvidia1", "/dev/shm/../nvidia1", "/dev/char/195:1"] {
            assert_eq!(look(path, &options), Some(Known::Node(Node::Gpu(1))), "{path}");
            assert!(is_candidate(path.as_bytes()));
        }
        assert_eq!(look("/dev/nvidiactl", &options), Some(Known::Node(Node::Ctl)));
        assert_eq!(look("/dev/char/195:255", &options), Some(Known::Node(Node::Ctl)));
        assert_eq!(look("/dev/nvidia-uvm", &options), Some(Known::Node(Node::Uvm)));
    }

    #[test]
    fn nodes_of_a_real_card_are_hidden() {
        let options = two();
        for path in [
            "/dev/nvidia2",
            "/dev/nvidia01",
            "/dev/nvidia-modeset",
            "/dev/nvidia-caps/nvidia-cap1",
            "/dev/char/195:7",
        ] {
            assert_eq!(look(path, &options), Some(Known::Absent), "{path}");
        }
        assert!(hides("/dev/", "nvidia7") && !hides("/dev", "null") && !hides("/tmp", "nvidia7"));
    }

    #[test]
    fn other_paths_are_nobodys_business() {
        let options = two();
        for path in
            ["/dev/null", "/usr/lib/libnvidia.so", "dev/nvidia0", "/proc/self/maps", "/dev/char/1:3", ""]
        {
            assert_eq!(look(path, &options), None, "{path}");
        }
        assert!(!is_candidate(b"/usr/lib/libc.so.6"));
    }

    #[test]
    fn the_files_that_clients_read_are_generated() {
        let options = two();
        assert_eq!(look("/proc/driver/nvidia/params", &options), Some(Known::Text(Text::Parameters)));
        assert_eq!(look("/sys/module/nvidia_uvm/initstate", &options), Some(Known::Text(Text::InitState)));
        assert_eq!(
            look("/proc/driver/nvidia/gpus/0000:02:00.0/information", &options),
            Some(Known::Text(Text::Information(1)))
        );
        assert_eq!(look("/proc/driver/nvidia/gpus/0000:03:00.0", &options), Some(Known::Absent));
    }
}
