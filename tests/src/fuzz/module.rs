//! The kernel module's side: any calls in any order.

use nv_abi::{
    Branch, Fd, Ioctl, Mapping, Mmio, Node,
    ioctl::{ESCAPES, NV_ESC_RM_ALLOC, NV_ESC_RM_CONTROL, request},
    rm::{NVOS21_PARAMETERS, NVOS54_PARAMETERS, class::CLASSES, control::CONTROLS},
};
use nv_simulator::{machine::Machine, profile::Profile};

/// Bytes that nested parameters get.
const NESTED: usize = 8192;

/// Takes numbers off the front of the input; zeros when it is used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    fn choose<'t, T>(&mut self, from: &'t [T]) -> Option<&'t T> {
        let index = usize::from(self.byte()) << 8 | usize::from(self.byte());
        from.get(index % from.len().max(1))
    }

    /// Mostly small numbers, as handles and flags are.
    fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.as_chunks_mut::<4>().0.iter_mut().take(64) {
            let kind = self.byte();
            let value = match kind % 8 {
                0..=3 => 0,
                4 => u32::from(self.byte()),
                5 => 0xcaf0_0000 + u32::from(self.byte() % 16),
                6 => 0xc1d0_0000,
                _ => self.word(),
            };
            *word = value.to_le_bytes();
        }
        defuse(bytes);
    }
}

/// No eight bytes may be the address of anything in this process: the module would rightly write there.
fn defuse(bytes: &mut [u8]) {
    for long in bytes.as_chunks_mut::<8>().0 {
        let value = u64::from_le_bytes(*long);
        if (0x1_0000..1 << 57).contains(&value) {
            *long = (value & 0xffff).to_le_bytes();
        }
    }
}

/// Calls of the nodes: the input says which.
pub fn kernel_module(data: &[u8]) {
    let mut input = Input(data);
    let versions = ["535.288.01", "550.163.01", "570.124.06", "580.159.04", "595.45.04"];
    let version = versions[usize::from(input.byte()) % versions.len()];
    let profiles = [Profile::ad102(), Profile::h200(), Profile::ga102()];
    let profile = profiles[usize::from(input.byte()) % profiles.len()].clone();
    let machine = Machine::builder().driver(version).gpu(profile.clone()).gpu(profile).build();
    let machine = machine.unwrap_or_else(|error| panic!("{error}"));
    let branch = Branch::from_version(version).unwrap_or_else(|| panic!("{version}"));
    let mut fds = Vec::new();
    let mut mappings = Vec::new();
    let mut nested = vec![0u8; NESTED];
    for node in [Node::Ctl, Node::Gpu(0), Node::Uvm] {
        fds.extend(machine.open(node));
    }
    let mut calls = 0;
    while !input.0.is_empty() && calls < 200 {
        calls += 1;
        let fd = input.choose(&fds).copied().unwrap_or(Fd(-1));
        match input.byte() % 16 {
            0 => {
                let node = [Node::Ctl, Node::Gpu(0), Node::Gpu(1), Node::Gpu(9), Node::Uvm];
                fds.extend(input.choose(&node).and_then(|node| machine.open(*node).ok()));
            }
            1 => {
                let _ = machine.close(fd);
            }
            2 => {
                let length = u64::from(input.byte()) << 12;
                let mapping = Mapping { address: None, length, offset: u64::from(input.byte() & 1) << 12 };
                if let Ok(address) = machine.mmap(fd, mapping) {
                    mappings.push((address, length));
                }
            }
            3 => {
                if let Some(&(page, _)) = input.choose(&mappings) {
                    let _ = machine.write32(page, u32::from(input.byte()) * 4, input.word());
                    let _ = machine.read32(page, input.word());
                }
            }
            4..=6 => {
                // UVM's requests are bare numbers.
                let mut argument = vec![0; 4096];
                input.fill(&mut argument);
                let _ = machine.ioctl(fd, u32::from(input.byte()), &mut argument);
            }
            7..=9 => {
                let Some(escape) = input.choose(ESCAPES) else { continue };
                let mut size = escape.argument.map_or(64, |of| of.size(branch));
                if input.byte() == 0 {
                    size = usize::from(input.byte());
                }
                let mut argument = vec![0; size];
                input.fill(&mut argument);
                let _ = machine.ioctl(fd, request(escape.nr, size), &mut argument);
            }
            10..=12 => {
                use NVOS21_PARAMETERS as p;
                input.fill(&mut nested[..512]);
                let mut record = nv_abi::Record::zeroed(&p::STRUCT, branch);
                input.fill(record.bytes_mut());
                let class = input.choose(CLASSES).map_or(0, |class| class.number);
                let _ = record.set(&p::hClass, class.into());
                let _ = record.set(&p::pAllocParms, nested.as_mut_ptr().expose_provenance() as u64);
                let size = record.bytes().len();
                let _ = machine.ioctl(fd, request(NV_ESC_RM_ALLOC, size), record.bytes_mut());
            }
            _ => {
                use NVOS54_PARAMETERS as p;
                input.fill(&mut nested[..512]);
                let mut record = nv_abi::Record::zeroed(&p::STRUCT, branch);
                input.fill(record.bytes_mut());
                let Some(control) = input.choose(CONTROLS) else { continue };
                let _ = record.set(&p::cmd, control.command.into());
                let _ = record.set(&p::params, nested.as_mut_ptr().expose_provenance() as u64);
                let bytes = control.size(branch).unwrap_or(0).min(NESTED);
                let _ = record.set(&p::paramsSize, bytes as u64);
                let size = record.bytes().len();
                let _ = machine.ioctl(fd, request(NV_ESC_RM_CONTROL, size), record.bytes_mut());
            }
        }
    }
    for (address, length) in mappings {
        let _ = machine.munmap(address, length);
    }
    for fd in fds {
        let _ = machine.close(fd);
    }
}
