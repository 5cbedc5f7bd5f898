//! Files that tell of the kernel module and its GPUs, generated.
//!
//! Which ones clients read, and their first lines, were recorded from NVIDIA's library on a machine with an H200.

use std::fmt::Write as _;

use crate::{
    options::Options,
    path::{MAJOR, REAL_ROOT, UVM_MAJOR, pci_address},
};

/// A generated file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    /// `/proc/driver/nvidia/version`
    Version,
    /// `/proc/driver/nvidia/params`
    Parameters,
    /// `/proc/driver/nvidia/gpus/…/information`
    Information(usize),
    /// `/proc/devices`: the real one, with the simulated majors.
    Devices,
    /// `/sys/module/nvidia/initstate`
    InitState,
    /// `/sys/module/nvidia/version`
    ModuleVersion,
    /// `/sys/bus/pci/devices/…`: an attribute, by its place in [`Text::PCI`].
    Pci { gpu: usize, attribute: usize },
}

/// Parameters of the module with their values after loading it without options. The file mode says that a client may
/// make missing nodes with these rights.
const PARAMETERS: &[(&str, u32)] = &[
    ("ResmanDebugLevel", 4_294_967_295),
    ("RmLogonRC", 1),
    ("ModifyDeviceFiles", 1),
    ("DeviceFileUID", 0),
    ("DeviceFileGID", 0),
    ("DeviceFileMode", 438),
    ("InitializeSystemMemoryAllocations", 1),
    ("UsePageAttributeTable", 4_294_967_295),
    ("EnableMSI", 1),
    ("EnablePCIeGen3", 0),
    ("MemoryPoolSize", 0),
    ("EnableStreamMemOPs", 0),
    ("EnableUserNUMAManagement", 1),
];

impl Text {
    /// Attributes of a PCI device that are generated.
    pub(crate) const PCI: &[&str] =
        &["class", "vendor", "device", "subsystem_vendor", "subsystem_device", "revision", "numa_node"];

    /// What the file holds.
    pub(crate) fn content(self, options: &Options) -> String {
        match self {
            Self::Version => format!(
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (mockgpu)\n",
                options.driver
            ),
            Self::Parameters => PARAMETERS.iter().fold(String::new(), |mut text, (name, value)| {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{name}: {value}");
                text
            }),
            Self::Information(gpu) => format!(
                "Model: \t\t {}\nIRQ:   \t\t 0\nBus Type: \t PCIe\nBus Location: \t {}\nDevice Minor: \t {gpu}\n",
                options.profile.name,
                pci_address(gpu)
            ),
            Self::Devices => {
                devices(&std::fs::read_to_string(format!("{REAL_ROOT}/proc/devices")).unwrap_or_default())
            }
            Self::InitState => "live\n".to_owned(),
            Self::ModuleVersion => format!("{}\n", options.driver),
            Self::Pci { attribute, .. } => {
                let profile = &options.profile;
                match Self::PCI.get(attribute).copied() {
                    // A 3D controller; display controllers of the consumer cards say 0x030000.
                    Some("class") if profile.chip == "GH100" => "0x030200\n".to_owned(),
                    Some("class") => "0x030000\n".to_owned(),
                    Some("vendor") => "0x10de\n".to_owned(),
                    Some("device") => format!("{:#06x}\n", profile.pci_device_id),
                    Some("subsystem_vendor") => format!("{:#06x}\n", profile.pci_subsystem_id & 0xffff),
                    Some("subsystem_device") => format!("{:#06x}\n", profile.pci_subsystem_id >> 16),
                    Some("revision") => format!("{:#04x}\n", profile.pci_revision),
                    Some("numa_node") => "-1\n".to_owned(),
                    _ => String::new(),
                }
            }
        }
    }
}

/// The list of majors with the simulated ones in place of real ones of the same names.
fn devices(real: &str) -> String {
    let mut text = String::new();
    for line in real.lines().filter(|line| !line.contains("nvidia")) {
        text.push_str(line);
        text.push('\n');
        if line == "Character devices:" {
            // Writing to a string cannot fail.
            let _ = write!(text, "{MAJOR:3} nvidia\n{MAJOR:3} nvidiactl\n{UVM_MAJOR:3} nvidia-uvm\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use nv_simulator::profile::Profile;

    use super::*;

    #[test]
    fn the_version_line_names_the_driver() {
        let options = Options { profile: Profile::h200(), gpus: 1, driver: "570.1".to_owned(), vram: None };
        assert!(Text::Version.content(&options).contains("x86_64  570.1  Release"));
        assert_eq!(Text::Pci { gpu: 0, attribute: 2 }.content(&options), "0x2335\n");
        assert!(
            Text::Parameters.content(&options).starts_with("ResmanDebugLevel: 4294967295\nRmLogonRC: 1\n")
        );
    }

    #[test]
    fn simulated_majors_replace_real_ones() {
        let real = "Character devices:\n  1 mem\n195 nvidia\n511 nvidia-uvm\n\nBlock devices:\n  7 loop\n";
        let text = devices(real);
        assert_eq!(
            text,
            "Character devices:\n195 nvidia\n195 nvidiactl\n238 nvidia-uvm\n  1 mem\n\nBlock devices:\n  7 loop\n"
        );
    }
}
