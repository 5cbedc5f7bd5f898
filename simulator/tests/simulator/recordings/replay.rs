//! Feeds a recording to a machine.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use fixtures::ioctls::{Call, Ioctl as Recorded, Node as Where};
use nv_abi::{
    Branch, Errno, Fd, Ioctl, Mapping, Node, Record, Struct, ioctl as number,
    rm::{self, class, control, flags},
    uvm,
};
use nv_simulator::{
    machine::{Machine, PciPlace},
    profile::Profile,
};

use super::{
    declared::is_declared,
    rebind::{Bindings, Meaning, meaning},
};

const BRANCH: Branch = Branch::R580;

/// Bytes behind every pointer inside parameters; their contents were not recorded.
const SCRATCH: usize = 1 << 16;

/// What a replay found.
#[derive(Default)]
pub struct Outcome {
    /// Calls that were compared.
    pub compared: usize,
    /// Undeclared differences.
    pub differences: Vec<String>,
    /// Declared differences that were met.
    pub declared_used: BTreeSet<(&'static str, &'static str)>,
    /// What the machine says that it lacks.
    pub unsupported: Vec<String>,
}

impl Outcome {
    /// For people.
    pub fn report(&self) -> String {
        format!(
            "{} differences:\n{}\nunsupported:\n{}",
            self.differences.len(),
            self.differences.join("\n"),
            self.unsupported.join("\n")
        )
    }
}

/// Memory of the client that a GPU may reach: shared, so that the simulator can alias it.
struct Pinned {
    address: u64,
    length: u64,
    machine: Arc<Machine>,
}

struct Replay {
    machine: Arc<Machine>,
    bindings: Bindings,
    /// The descriptor that RM and UVM calls go to.
    ctl: Option<Fd>,
    uvm: Option<Fd>,
    /// The newest of each node.
    newest_ctl: Option<Fd>,
    newest_gpu: Option<Fd>,
    newest_uvm: Option<Fd>,
    registered_gpu: Option<Fd>,
    /// The memory object made last, which the next mapping is of.
    memory: u64,
    /// The client's handle, ours.
    client: u64,
    /// Range made last.
    range: (u64, u64),
    /// Our cookie for each mapping address of the recording.
    cookies: Vec<(u64, u64)>,
    pinned: Vec<Pinned>,
    outcome: Outcome,
}

/// Runs a recording on a simulated H200 under module 580.159.04.
///
/// UVM maps at the recording's own addresses, of which a process has one each: one replay runs at a time.
pub fn run(calls: &[Call]) -> Outcome {
    static ADDRESSES: Mutex<()> = Mutex::new(());
    let _turn = ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner);
    let place = PciPlace { bus: 0, slot: 6 };
    let machine =
        Machine::builder().gpu_at(Profile::h200(), place).driver("580.159.04").build().expect("a machine");
    let mut replay = Replay {
        machine,
        bindings: Bindings { uuid: uuid(), ..Bindings::default() },
        ctl: None,
        uvm: None,
        newest_ctl: None,
        newest_gpu: None,
        newest_uvm: None,
        registered_gpu: None,
        memory: 0,
        client: 0,
        range: (0, 0),
        cookies: Vec::new(),
        pinned: Vec::new(),
        outcome: Outcome::default(),
    };
    for (index, call) in calls.iter().enumerate() {
        match call {
            Call::Open { node, fd } => replay.open(*node, *fd),
            Call::Mmap { node, length, offset } => replay.mmap(index, *node, *length, *offset),
            Call::Ioctl(call) => replay.ioctl(index, calls, call),
        }
    }
    let lacks = replay.machine.unsupported();
    replay.outcome.unsupported =
        lacks.into_iter().map(|lack| format!("{} x{}", lack.what, lack.count)).collect();
    replay.outcome
}

/// The first simulated GPU's.
fn uuid() -> [u8; 16] {
    *b"mockgpu-card-\0\0\0"
}

fn node(at: Where) -> Node {
    match at {
        Where::Ctl => Node::Ctl,
        Where::Gpu => Node::Gpu(0),
        Where::Uvm => Node::Uvm,
    }
}

impl Replay {
    fn open(&mut self, at: Where, recorded: i32) {
        let fd = self.machine.open(node(at)).expect("the node exists");
        // The number was free again: its last owner had been closed.
        if let Some(old) = self.bindings.fds.insert(recorded, fd) {
            self.machine.close(old).expect("it was open");
            for known in [&mut self.ctl, &mut self.uvm] {
                if *known == Some(old) {
                    *known = None;
                }
            }
        }
        let (first, newest) = match at {
            Where::Ctl => (Some(&mut self.ctl), &mut self.newest_ctl),
            Where::Gpu => (None, &mut self.newest_gpu),
            Where::Uvm => (Some(&mut self.uvm), &mut self.newest_uvm),
        };
        *newest = Some(fd);
        if let Some(first) = first {
            first.get_or_insert(fd);
        }
    }

    fn mmap(&mut self, index: usize, at: Where, length: u64, offset: u64) {
        let fd = match at {
            Where::Ctl => self.newest_ctl,
            Where::Gpu => self.newest_gpu,
            Where::Uvm => self.uvm,
        };
        let address = (at == Where::Uvm).then_some(offset);
        let mapped = self.machine.mmap(fd.expect("open"), Mapping { address, length, offset });
        match mapped {
            Ok(address) => self.pinned.push(Pinned { address, length, machine: Arc::clone(&self.machine) }),
            Err(errno) => {
                self.outcome.differences.push(format!("{index}: mmap of {length:#x} bytes: {errno}"));
            }
        }
    }

    fn ioctl(&mut self, index: usize, calls: &[Call], call: &Recorded) {
        self.outcome.compared += 1;
        match call.node {
            Where::Uvm => self.uvm_call(index, call),
            Where::Ctl | Where::Gpu => self.frontend(index, calls, call),
        }
    }

    /// Our bytes for a struct of the recording.
    fn bind(&self, layout: &'static Struct, bytes: &[u8]) -> Record {
        let mut padded = bytes.to_vec();
        padded.resize(padded.len().max(layout.size(BRANCH)), 0);
        let mut record = Record::from_bytes(layout, BRANCH, &padded).expect("padded");
        for field in layout.fields.iter().filter(|field| field.offset(BRANCH).is_some()) {
            let meaning = meaning(layout.name, field);
            if matches!(meaning, Meaning::Plain | Meaning::Pointer) {
                continue;
            }
            for i in 0..field.count(BRANCH) {
                let value = record.get_at(field, i).expect("the row is there");
                record.set_at(field, i, self.bindings.bind(meaning, i, value)).expect("it fits");
            }
        }
        record
    }

    /// Compares a struct with the recording's, field by field, as far as the recording goes.
    fn compare(&mut self, index: usize, what: &str, before: &Record, ours: &Record, recorded: &[u8]) {
        let layout = ours.of();
        let theirs = self.bind(layout, recorded);
        let mut covered = vec![false; layout.size(BRANCH)];
        for field in layout.fields {
            let Some(offset) = field.offset(BRANCH) else { continue };
            let pointer = meaning(layout.name, field) == Meaning::Pointer;
            for i in 0..field.count(BRANCH) {
                let start = (offset + i * field.stride(BRANCH)) as usize;
                let end = start + field.kind.bytes() as usize;
                covered[start..end].fill(true);
                if end > recorded.len() {
                    continue;
                }
                let (our, their) = (ours.get_at(field, i), theirs.get_at(field, i));
                // A pointer is the caller's: it must come back as it was.
                let same = if pointer { our == before.get_at(field, i) } else { our == their };
                if same {
                    continue;
                }
                match is_declared(layout.name, field.name) {
                    Some(row) => {
                        self.outcome.declared_used.insert(row);
                    }
                    None => self.outcome.differences.push(format!(
                        "{index}: {what}: {}.{}[{i}]: card {:#x}, here {:#x}",
                        layout.name,
                        field.name,
                        their.unwrap_or(0),
                        our.unwrap_or(0)
                    )),
                }
            }
        }
        // Padding, and fields without a row.
        for (at, covered) in covered.iter().enumerate().take(recorded.len()) {
            if !covered && ours.bytes()[at] != recorded[at] {
                self.outcome.differences.push(format!(
                    "{index}: {what}: {} byte {at:#x}: card {:#x}, here {:#x}",
                    layout.name,
                    recorded[at],
                    ours.bytes()[at]
                ));
            }
        }
    }

    fn returned(&mut self, index: usize, what: &str, recorded: i32, ours: Result<(), Errno>) {
        let same = match ours {
            Ok(()) => recorded == 0,
            Err(_) => recorded == -1,
        };
        if !same {
            self.outcome
                .differences
                .push(format!("{index}: {what}: card returned {recorded}, here {ours:?}"));
        }
    }

    fn frontend(&mut self, index: usize, calls: &[Call], call: &Recorded) {
        let nr = number::nr(call.request);
        let before = call.before.as_deref().expect("frontend arguments were recorded");
        let after = call.after.as_deref().expect("frontend arguments were recorded");
        let fd = match (call.node, nr) {
            (Where::Ctl, _) => self.ctl,
            (_, number::NV_ESC_RM_ALLOC_MEMORY) => self.registered_gpu,
            _ => self.newest_gpu,
        }
        .expect("open");
        if nr == number::NV_ESC_REGISTER_FD {
            self.registered_gpu = Some(fd);
        }
        let escape = number::escape(nr).expect("a known ioctl");
        let name = escape.name;
        match nr {
            number::NV_ESC_CARD_INFO => self.card_info(index, fd, call, before, after),
            number::NV_ESC_RM_ALLOC => self.alloc(index, fd, calls, call),
            number::NV_ESC_RM_CONTROL => self.control(index, fd, call),
            _ => {
                let layout = escape.argument.expect("a struct");
                let mut record = self.bind(layout, before);
                self.pin(layout, &mut record);
                self.bind_cookies(layout, &mut record);
                let asked = record.clone();
                let ours = self.machine.ioctl(fd, call.request, record.bytes_mut());
                self.returned(index, name, call.returned, ours);
                self.unpin(layout, &asked, &mut record, after);
                self.remember_cookie(layout, &record, after);
                self.unbind_cookies(layout, &mut record, after);
                self.compare(index, name, &asked, &record, after);
            }
        }
    }

    /// An array of structs.
    fn card_info(&mut self, index: usize, fd: Fd, call: &Recorded, before: &[u8], after: &[u8]) {
        let layout = &rm::nv_ioctl_card_info_t::STRUCT;
        // The recorder kept the first pages of the array.
        let mut argument = before.to_vec();
        argument.resize(number::size(call.request), 0);
        let ours = self.machine.ioctl(fd, call.request, &mut argument);
        self.returned(index, "NV_ESC_CARD_INFO", call.returned, ours);
        let size = layout.size(BRANCH);
        for (ours, theirs) in argument.chunks_exact(size).zip(after.chunks_exact(size)) {
            let ours = Record::from_bytes(layout, BRANCH, ours).expect("a chunk");
            self.compare(index, "NV_ESC_CARD_INFO", &ours, &ours, theirs);
        }
    }

    /// Pinned client memory gets memory of ours.
    fn pin(&mut self, layout: &'static Struct, record: &mut Record) {
        use rm::nv_ioctl_nvos02_parameters_with_fd as P;
        if layout.name != P::STRUCT.name {
            return;
        }
        let length = record.get(&P::limit).expect("a row") + 1;
        let address = shared_memory(length);
        record.set(&P::pMemory, address).expect("it fits");
        self.memory = record.get(&P::hObjectNew).expect("a row");
    }

    fn unpin(&self, layout: &'static Struct, asked: &Record, record: &mut Record, _: &[u8]) {
        use rm::nv_ioctl_nvos02_parameters_with_fd as P;
        if layout.name == P::STRUCT.name {
            assert_eq!(record.get(&P::pMemory), asked.get(&P::pMemory));
        }
    }

    /// Mapping addresses that RM_MAP_MEMORY made up are handed back by later calls.
    fn bind_cookies(&self, layout: &'static Struct, record: &mut Record) {
        use rm::NVOS56_PARAMETERS as P;
        if layout.name == P::STRUCT.name {
            let old = record.get(&P::pOldCpuAddress).expect("a row");
            if let Some((_, ours)) = self.cookies.iter().rev().find(|(theirs, _)| *theirs == old) {
                record.set(&P::pOldCpuAddress, *ours).expect("it fits");
            }
        }
    }

    fn unbind_cookies(&self, layout: &'static Struct, record: &mut Record, after: &[u8]) {
        use rm::NVOS56_PARAMETERS as P;
        if layout.name == P::STRUCT.name {
            let theirs = Record::from_bytes(layout, BRANCH, after).expect("whole");
            let old = theirs.get(&P::pOldCpuAddress).expect("a row");
            record.set(&P::pOldCpuAddress, old).expect("it fits");
        }
    }

    fn remember_cookie(&mut self, layout: &'static Struct, record: &Record, after: &[u8]) {
        use rm::nv_ioctl_nvos33_parameters_with_fd as P;
        if layout.name == P::STRUCT.name {
            let theirs = Record::from_bytes(layout, BRANCH, after).expect("whole");
            let pair = (theirs.get(&P::pLinearAddress), record.get(&P::pLinearAddress));
            self.cookies.push((pair.0.expect("a row"), pair.1.expect("a row")));
        }
    }

    fn alloc(&mut self, index: usize, fd: Fd, calls: &[Call], call: &Recorded) {
        use rm::{NVOS21_PARAMETERS as Short, NVOS64_PARAMETERS as Long};
        let (before, after) = (call.before.as_deref().expect("kept"), call.after.as_deref().expect("kept"));
        let long = before.len() != Short::STRUCT.size(BRANCH);
        let layout = if long { &Long::STRUCT } else { &Short::STRUCT };
        let pointer = if long { &Long::pAllocParms } else { &Short::pAllocParms };
        let mut record = self.bind(layout, before);
        let number = record.get(&Short::hClass).expect("a row") as u32;
        let class = class::class(number).expect("a known class");
        let what = format!("alloc of {}", class.name);
        let params = match class.parameters {
            class::Parameters::Optional(layout) | class::Parameters::Required(layout) => layout,
            class::Parameters::None => None,
        };
        let given = record.get(pointer).expect("a row") != 0;
        let mut params = match (given, params) {
            (false, _) => None,
            (true, None) => panic!("{what} has no rows for its parameters"),
            (true, Some(layout)) => Some(match &call.parameters {
                Some(bytes) => self.bind(layout, bytes),
                // tinygrad's were not recorded; they are what its source says.
                None => self.tinygrad_parameters(number, &calls[index..]),
            }),
        };
        let asked_params = params.clone();
        let address = params.as_mut().map_or(0, |params| params.bytes_mut().as_mut_ptr() as u64);
        record.set(pointer, address).expect("it fits");
        let asked = record.clone();
        let ours = self.machine.ioctl(fd, call.request, record.bytes_mut());
        self.returned(index, &what, call.returned, ours);
        let new = record.get(&Short::hObjectNew).expect("a row");
        let theirs = Record::from_bytes(layout, BRANCH, after).expect("whole");
        let theirs_new = theirs.get(&Short::hObjectNew).expect("a row");
        if class.internal == "RmClientResource" {
            // A client's handle depends on who else has been there.
            self.bindings.handles.insert(theirs_new, new);
            self.client = new;
        }
        if matches!(class.internal, "VideoMemory" | "SystemMemory") {
            self.memory = new;
        }
        self.compare(index, &what, &asked, &record, after);
        if let (Some(params), Some(asked), Some(answer)) = (&params, &asked_params, &call.answer) {
            self.compare(index, &what, asked, params, answer);
        }
    }

    /// Allocation parameters as tinygrad's source fills them in.
    fn tinygrad_parameters(&self, number: u32, later: &[Call]) -> Record {
        let class = class::class(number).expect("a known class");
        let layout = match class.parameters {
            class::Parameters::Optional(Some(layout)) | class::Parameters::Required(Some(layout)) => layout,
            _ => panic!("no rows for {}", class.name),
        };
        let mut p = Record::zeroed(layout, BRANCH);
        let mut set = |name: &str, value: u64| {
            p.set(layout.field(name).expect("a row"), value).expect("it fits");
        };
        // What the next range holds is how large the memory is.
        let size = || {
            let range = later.iter().find_map(|call| match call {
                Call::Ioctl(call)
                    if call.node == Where::Uvm && call.request == uvm::UVM_CREATE_EXTERNAL_RANGE =>
                {
                    let bytes = call.after.as_deref()?.get(8..16)?;
                    Some(u64::from_le_bytes(bytes.try_into().ok()?))
                }
                _ => None,
            });
            range.expect("a range for the memory")
        };
        match number {
            class::NV01_DEVICE_0 => {
                set("hClientShare", self.client);
                set("vaMode", flags::NV_DEVICE_ALLOCATION_VAMODE_OPTIONAL_MULTIPLE_VASPACES.into());
            }
            class::NV01_MEMORY_VIRTUAL => set("limit", 0x1_ffff_ffff_ffff),
            class::FERMI_VASPACE_A => {
                set("vaBase", 0x1000);
                set("vaSize", 0x1_ffff_fb00_0000);
                set("flags", (1 << 3) | (1 << 6));
            }
            class::KEPLER_CHANNEL_GROUP_A => set("engineType", 1),
            class::NV01_MEMORY_LOCAL_USER => {
                set("size", size());
                set("attr", 0);
            }
            class::NV01_MEMORY_SYSTEM => {
                set("size", size());
                set("attr", 1 << 25);
            }
            class::FERMI_CONTEXT_SHARE_A => {
                set("hVASpace", 0xcaf0_0004);
                set("flags", 1);
            }
            class::HOPPER_CHANNEL_GPFIFO_A => {
                // The ring's memory is the first video memory object; each channel has a part of it.
                set("hObjectError", self.memory);
                set("hObjectBuffer", 0xcaf0_0008);
                set("gpFifoOffset", 0x10_0000_0000);
                set("gpFifoEntries", 0x10000);
                set("hContextShare", 0xcaf0_0009);
                set("hUserdMemory", 0xcaf0_0008);
                set("userdOffset", 0x8_0000);
            }
            class::GT200_DEBUGGER => {
                set("hAppClient", self.client);
                set("hClass3dObject", 0xcaf0_000c);
            }
            _ => {}
        }
        p
    }

    fn control(&mut self, index: usize, fd: Fd, call: &Recorded) {
        use rm::NVOS54_PARAMETERS as P;
        let (before, after) = (call.before.as_deref().expect("kept"), call.after.as_deref().expect("kept"));
        let mut record = self.bind(&P::STRUCT, before);
        let command = record.get(&P::cmd).expect("a row") as u32;
        let row = control::control(command);
        let what = row.map_or_else(|| format!("control {command:#010x}"), |row| row.name.to_owned());
        let mut scratch = Vec::new();
        let layout = row.and_then(|row| row.parameters);
        let mut params = match (&call.parameters, layout) {
            (None, _) => Params::None,
            (Some(bytes), None) => Params::Bytes(bytes.clone()),
            (Some(bytes), Some(layout)) => {
                let mut params = self.bind(layout, bytes);
                self.point(command, layout, &mut params, &mut scratch);
                Params::Record(params)
            }
        };
        let asked_params = params.clone();
        record.set(&P::params, params.address()).expect("it fits");
        let asked = record.clone();
        let ours = self.machine.ioctl(fd, call.request, record.bytes_mut());
        self.returned(index, &what, call.returned, ours);
        self.compare(index, &what, &asked, &record, after);
        match (&params, &asked_params, &call.answer) {
            (Params::Record(params), Params::Record(asked), Some(answer)) => {
                self.compare(index, &what, asked, params, answer);
            }
            (Params::Bytes(params), _, Some(answer)) if params != answer => {
                self.outcome.differences.push(format!("{index}: {what}: parameters without rows differ"));
            }
            _ => {}
        }
        drop(scratch);
    }

    /// Gives every pointer inside parameters memory of ours to point to.
    fn point(&self, command: u32, layout: &'static Struct, params: &mut Record, scratch: &mut Vec<Vec<u8>>) {
        for field in layout.fields.iter().filter(|field| meaning(layout.name, field) == Meaning::Pointer) {
            if params.get(field).expect("a row") == 0 {
                continue;
            }
            let mut memory = vec![0; SCRATCH];
            if command == control::NV2080_CTRL_CMD_GR_GET_INFO {
                // A list of indices, which was not recorded: all of them, in order.
                for (index, element) in (0_u32..58).zip(memory.chunks_exact_mut(8)) {
                    element[..4].copy_from_slice(&index.to_le_bytes());
                }
            }
            params.set(field, memory.as_mut_ptr() as u64).expect("it fits");
            scratch.push(memory);
        }
    }

    fn uvm_call(&mut self, index: usize, call: &Recorded) {
        let row = uvm::call(call.request).expect("a known UVM call");
        let layout = row.argument.expect("rows for its argument");
        let status = layout.field("rmStatus").expect("every argument has one");
        let kept = call.before.as_ref().or(call.after.as_ref()).cloned().unwrap_or_default();
        let mut record = self.bind(layout, &kept);
        record.set(status, 0).expect("it fits");
        // What the recorder did not keep of these is the same in every call of the two programs.
        match call.request {
            uvm::UVM_CREATE_EXTERNAL_RANGE => {
                use uvm::UVM_CREATE_EXTERNAL_RANGE_PARAMS as P;
                self.range = (record.get(&P::base).expect("a row"), record.get(&P::length).expect("a row"));
            }
            uvm::UVM_MAP_EXTERNAL_ALLOCATION => {
                use uvm::UVM_MAP_EXTERNAL_ALLOCATION_PARAMS as P;
                let mut set = |field, value| record.set(field, value).expect("it fits");
                if kept.is_empty() {
                    set(&P::base, self.range.0);
                    set(&P::length, self.range.1);
                    let (low, high) = self.bindings.uuid.split_at(8);
                    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                    set(&P::perGpuAttributes_gpuUuidLow, word(low));
                    set(&P::perGpuAttributes_gpuUuidHigh, word(high));
                    set(&P::perGpuAttributes_gpuMappingType, 1);
                }
                set(&P::gpuAttributesCount, 1);
                set(&P::rmCtrlFd, self.ctl.expect("open").0 as u64);
                set(&P::hClient, self.client);
                set(&P::hMemory, self.memory);
            }
            uvm::UVM_ALLOC_SEMAPHORE_POOL => {
                use uvm::UVM_ALLOC_SEMAPHORE_POOL_PARAMS as P;
                record.set(&P::gpuAttributesCount, 1).expect("it fits");
            }
            _ => {}
        }
        let fd = if call.request == uvm::UVM_MM_INITIALIZE { self.newest_uvm } else { self.uvm };
        let asked = record.clone();
        let ours = self.machine.ioctl(fd.expect("open"), call.request, record.bytes_mut());
        self.returned(index, row.name, call.returned, ours);
        // Where the status was not kept, the call's success is all that the recording says.
        let outcome = record.get(status).expect("a row");
        let seen = status
            .offset(BRANCH)
            .is_some_and(|at| call.after.as_ref().is_some_and(|after| after.len() >= at as usize + 4));
        if !seen && outcome != 0 {
            self.outcome.differences.push(format!(
                "{index}: {}: {} here; the program went on as after a success",
                row.name,
                rm::Status(outcome as u32)
            ));
        }
        if let Some(after) = &call.after {
            let whole = after.len().min(layout.size(BRANCH));
            self.compare(index, row.name, &asked, &record, &after[..whole]);
        }
    }
}

/// Parameters of a control.
#[derive(Clone)]
enum Params {
    None,
    Bytes(Vec<u8>),
    Record(Record),
}

impl Params {
    fn address(&mut self) -> u64 {
        match self {
            Self::None => 0,
            Self::Bytes(bytes) => bytes.as_mut_ptr() as u64,
            Self::Record(record) => record.bytes_mut().as_mut_ptr() as u64,
        }
    }
}

/// Pages that a GPU can be given, never unmapped: the test process is short-lived.
fn shared_memory(length: u64) -> u64 {
    use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};
    let length = std::num::NonZeroUsize::new(length as usize).expect("not empty");
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping at an address of the system's choice replaces nothing.
    let mapped = unsafe { mmap_anonymous(None, length, protection, MapFlags::MAP_SHARED) };
    mapped.expect("memory").as_ptr() as u64
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // What the client mapped, it unmaps.
        self.machine.munmap(self.address, self.length).expect("it was mapped");
    }
}
