//! What a simulated GPU is: its name, numbers, geometry and memory. One constructor per card, as data.
//!
//! Device numbers and unit counts are NVIDIA's published ones for the product; the H200's classes and SM version were
//! measured on one. For Ada and Ampere the same rule is applied (older host classes stay, older engine classes do
//! not).

use nv_abi::{arch::Generation, rm::class};

/// One kind of GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The product's name, as `NV2080_CTRL_CMD_GPU_GET_NAME_STRING` gives it.
    pub name: &'static str,
    /// The chip's name.
    pub chip: &'static str,
    /// The generation, which decides classes, QMD and constant-bank layout.
    pub generation: Generation,
    /// PCI device id; the vendor is 0x10de.
    pub pci_device_id: u16,
    /// PCI subsystem id: device in the high half, vendor in the low.
    pub pci_subsystem_id: u32,
    /// PCI revision.
    pub pci_revision: u8,
    /// `architecture` of `NV2080_CTRL_CMD_MC_GET_ARCH_INFO`.
    pub architecture: u32,
    /// `implementation` of the same control.
    pub implementation: u32,
    /// Working TPCs of each working GPC.
    pub tpcs: &'static [u32],
    /// GPCs that the chip has room for (LITTER_NUM_GPCS).
    pub litter_gpcs: u32,
    /// TPCs that a GPC has room for (LITTER_NUM_TPC_PER_GPC).
    pub litter_tpcs_per_gpc: u32,
    /// SMs in a TPC.
    pub sms_per_tpc: u32,
    /// Warps that an SM holds.
    pub warps_per_sm: u32,
    /// SM version as GR_INFO gives it: major in 15:8, minor in 7:0 (0x809 is sm_89).
    pub sm_version: u32,
    /// Video memory in bytes.
    pub vram_bytes: u64,
    /// One past the highest GPU virtual address.
    pub address_limit: u64,
    /// Channel classes that can be allocated, oldest first.
    pub channel_classes: &'static [u32],
    /// Usermode classes that can be allocated, oldest first.
    pub usermode_classes: &'static [u32],
}

impl Profile {
    /// GeForce RTX 4090.
    pub fn ad102() -> Self {
        Self {
            name: "NVIDIA GeForce RTX 4090",
            chip: "AD102",
            generation: Generation::Ada,
            pci_device_id: 0x2684,
            pci_subsystem_id: 0x16f4_10de,
            pci_revision: 0xa1,
            architecture: 0x190,
            implementation: 2,
            tpcs: &[6, 6, 6, 6, 6, 6, 6, 6, 6, 5, 5],
            litter_gpcs: 12,
            litter_tpcs_per_gpc: 6,
            sms_per_tpc: 2,
            warps_per_sm: 48,
            sm_version: 0x809,
            vram_bytes: 24 << 30,
            address_limit: 1 << 49,
            channel_classes: &[
                class::VOLTA_CHANNEL_GPFIFO_A,
                class::TURING_CHANNEL_GPFIFO_A,
                class::AMPERE_CHANNEL_GPFIFO_A,
            ],
            usermode_classes: &[class::VOLTA_USERMODE_A, class::TURING_USERMODE_A, class::AMPERE_USERMODE_A],
        }
    }

    /// GeForce RTX 3090.
    pub fn ga102() -> Self {
        Self {
            name: "NVIDIA GeForce RTX 3090",
            chip: "GA102",
            generation: Generation::Ampere,
            pci_device_id: 0x2204,
            pci_subsystem_id: 0x1454_10de,
            architecture: 0x170,
            implementation: 2,
            tpcs: &[6, 6, 6, 6, 6, 6, 5],
            litter_gpcs: 7,
            sm_version: 0x806,
            ..Self::ad102()
        }
    }

    /// H200.
    pub fn h200() -> Self {
        Self {
            name: "NVIDIA H200",
            chip: "GH100",
            generation: Generation::Hopper,
            pci_device_id: 0x2335,
            pci_subsystem_id: 0x18be_10de,
            architecture: 0x180,
            implementation: 0,
            tpcs: &[9, 9, 8, 8, 8, 8, 8, 8],
            litter_gpcs: 8,
            litter_tpcs_per_gpc: 9,
            warps_per_sm: 64,
            sm_version: 0x900,
            vram_bytes: 141 << 30,
            address_limit: 1 << 57,
            channel_classes: &[
                class::VOLTA_CHANNEL_GPFIFO_A,
                class::TURING_CHANNEL_GPFIFO_A,
                class::AMPERE_CHANNEL_GPFIFO_A,
                class::HOPPER_CHANNEL_GPFIFO_A,
            ],
            usermode_classes: &[
                class::VOLTA_USERMODE_A,
                class::TURING_USERMODE_A,
                class::AMPERE_USERMODE_A,
                class::HOPPER_USERMODE_A,
            ],
            ..Self::ad102()
        }
    }

    /// Working SMs.
    pub fn sm_count(&self) -> u32 {
        self.tpcs.iter().sum::<u32>() * self.sms_per_tpc
    }

    /// Every class that can be allocated on the GPU, as the class-list controls give them.
    pub fn classes(&self) -> Vec<u32> {
        let engine = self.generation.classes();
        let mut classes = vec![
            class::NV01_MEMORY_SYSTEM,
            class::NV01_MEMORY_LOCAL_USER,
            class::NV01_MEMORY_VIRTUAL,
            class::NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
            class::NV01_DEVICE_0,
            class::NV20_SUBDEVICE_0,
            class::FERMI_VASPACE_A,
            class::FERMI_CONTEXT_SHARE_A,
            class::KEPLER_CHANNEL_GROUP_A,
            class::GT200_DEBUGGER,
            class::KEPLER_INLINE_TO_MEMORY_B,
            engine.compute,
            engine.copy,
        ];
        classes.extend(self.channel_classes);
        classes.extend(self.usermode_classes);
        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sm_counts_are_the_products() {
        assert_eq!(Profile::ad102().sm_count(), 128);
        assert_eq!(Profile::ga102().sm_count(), 82);
        assert_eq!(Profile::h200().sm_count(), 132);
    }

    #[test]
    fn the_newest_host_classes_are_the_generations_own() {
        for profile in [Profile::ad102(), Profile::ga102(), Profile::h200()] {
            let classes = profile.generation.classes();
            assert_eq!(profile.channel_classes.last(), Some(&classes.channel));
            assert_eq!(profile.usermode_classes.last(), Some(&classes.usermode));
        }
    }
}
