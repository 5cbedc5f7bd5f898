//! The rules of the resource manager and UVM, through raw ioctls.

use std::sync::Arc;

use fixtures::{
    properties,
    property::{Draw, any, within},
};
use nv_abi::{
    Branch, Errno, Fd, Ioctl, Mapping, Mmio, Node, Record, Struct, StructField, ioctl as number,
    rm::{self, Status, class, control as c},
    uvm as u,
};

use nv_simulator::{
    machine::{Builder, Machine},
    memory::PAGE,
    profile::Profile,
};

/// A driver of the lowest kind: it fills structs in and issues ioctls.
struct Raw {
    machine: Arc<Machine>,
    branch: Branch,
    ctl: Fd,
    uvm: Fd,
    gpu: Fd,
    client: u32,
}

mod branches;
mod catalogue;
mod channel;
mod controls;
mod debugger;
mod events;
mod faults;
mod frontend;
mod lost;
mod managed;
mod model;
mod rules;
mod sequences;
mod sharing;

type Fields<'a> = &'a [(&'a StructField, u64)];

impl Raw {
    fn on(builder: Builder, branch: Branch) -> Self {
        let machine = builder.build().unwrap();
        let ctl = machine.open(Node::Ctl).unwrap();
        let gpu = machine.open(Node::Gpu(0)).unwrap();
        let uvm = machine.open(Node::Uvm).unwrap();
        let mut raw = Self { machine, branch, ctl, uvm, gpu, client: 0 };
        raw.escape(
            gpu,
            number::NV_ESC_REGISTER_FD,
            &rm::nv_ioctl_register_fd_t::STRUCT,
            &[(&rm::nv_ioctl_register_fd_t::ctl_fd, ctl.0 as u64)],
        )
        .unwrap();
        raw.client = raw.alloc(0, 0, 0, class::NV01_ROOT_CLIENT, None).unwrap();
        raw
    }

    fn new() -> Self {
        Self::on(Machine::builder().gpu(Profile::ad102()).gpu(Profile::ad102()), Branch::R570)
    }

    fn record(&self, layout: &'static Struct, fields: Fields<'_>) -> Record {
        let mut record = Record::zeroed(layout, self.branch);
        for (field, value) in fields {
            record.set(field, *value).unwrap();
        }
        record
    }

    fn escape(&self, fd: Fd, nr: u32, layout: &'static Struct, fields: Fields<'_>) -> Result<Record, Errno> {
        let mut record = self.record(layout, fields);
        let request = number::request(nr, record.bytes().len());
        self.machine.ioctl(fd, request, record.bytes_mut())?;
        Ok(record)
    }

    /// RM_ALLOC with the short struct; the parameters are updated.
    fn alloc_with(
        &self,
        root: u32,
        parent: u32,
        handle: u32,
        class: u32,
        params: Option<&mut Record>,
    ) -> Result<u32, Status> {
        use rm::NVOS21_PARAMETERS as P;
        let pointer = params.map_or(0, |params| params.bytes_mut().as_mut_ptr() as u64);
        let record = self
            .escape(
                self.ctl,
                number::NV_ESC_RM_ALLOC,
                &P::STRUCT,
                &[
                    (&P::hRoot, root.into()),
                    (&P::hObjectParent, parent.into()),
                    (&P::hObjectNew, handle.into()),
                    (&P::hClass, class.into()),
                    (&P::pAllocParms, pointer),
                ],
            )
            .unwrap();
        match Status(record.get(&P::status).unwrap() as u32) {
            Status::NV_OK => Ok(record.get(&P::hObjectNew).unwrap() as u32),
            status => Err(status),
        }
    }

    fn alloc(
        &self,
        root: u32,
        parent: u32,
        handle: u32,
        class: u32,
        params: Option<Record>,
    ) -> Result<u32, Status> {
        let mut params = params;
        self.alloc_with(root, parent, handle, class, params.as_mut())
    }

    /// RM_ALLOC with parameters of bytes.
    fn alloc_bytes(&self, parent: u32, number: u32, params: &mut [u8]) -> Result<u32, Status> {
        use rm::NVOS21_PARAMETERS as P;
        let fields = [
            (&P::hRoot, self.client.into()),
            (&P::hObjectParent, parent.into()),
            (&P::hClass, number.into()),
            (&P::pAllocParms, params.as_mut_ptr().expose_provenance() as u64),
        ];
        let record = self.escape(self.ctl, number::NV_ESC_RM_ALLOC, &P::STRUCT, &fields).unwrap();
        match Status(record.get(&P::status).unwrap() as u32) {
            Status::NV_OK => Ok(record.get(&P::hObjectNew).unwrap() as u32),
            status => Err(status),
        }
    }

    fn free(&self, client: u32, handle: u32) -> Status {
        use rm::NVOS00_PARAMETERS as P;
        let fields = [(&P::hRoot, client.into()), (&P::hObjectOld, handle.into())];
        let record = self.escape(self.ctl, number::NV_ESC_RM_FREE, &P::STRUCT, &fields).unwrap();
        Status(record.get(&P::status).unwrap() as u32)
    }

    fn control_raw(&self, client: u32, object: u32, command: u32, pointer: u64, size: u64) -> Status {
        use rm::NVOS54_PARAMETERS as P;
        let record = self
            .escape(
                self.ctl,
                number::NV_ESC_RM_CONTROL,
                &P::STRUCT,
                &[
                    (&P::hClient, client.into()),
                    (&P::hObject, object.into()),
                    (&P::cmd, command.into()),
                    (&P::params, pointer),
                    (&P::paramsSize, size),
                ],
            )
            .unwrap();
        Status(record.get(&P::status).unwrap() as u32)
    }

    fn control(&self, object: u32, command: u32, params: &mut Record) -> Status {
        let size = params.bytes().len() as u64;
        self.control_raw(self.client, object, command, params.bytes_mut().as_mut_ptr() as u64, size)
    }

    fn uvm_on(&self, fd: Fd, call: u32, fields: Fields<'_>) -> Status {
        let layout = u::call(call).unwrap().argument.unwrap();
        let mut record = self.record(layout, fields);
        self.machine.ioctl(fd, call, record.bytes_mut()).unwrap();
        Status(record.get(layout.field("rmStatus").unwrap()).unwrap() as u32)
    }

    fn uvm(&self, call: u32, fields: Fields<'_>) -> Status {
        self.uvm_on(self.uvm, call, fields)
    }

    fn device_params(&self, index: u64) -> Option<Record> {
        Some(
            self.record(
                &rm::NV0080_ALLOC_PARAMETERS::STRUCT,
                &[(&rm::NV0080_ALLOC_PARAMETERS::deviceId, index)],
            ),
        )
    }

    fn device(&self) -> u32 {
        self.alloc(self.client, self.client, 0, class::NV01_DEVICE_0, self.device_params(0)).unwrap()
    }

    fn subdevice(&self, device: u32) -> u32 {
        self.alloc(self.client, device, 0, class::NV20_SUBDEVICE_0, None).unwrap()
    }

    fn memory(&self, device: u32, number: u32, bytes: u64) -> Result<u32, Status> {
        use rm::NV_MEMORY_ALLOCATION_PARAMS as P;
        let attr = if number == class::NV01_MEMORY_SYSTEM { 1 << 25 } else { 0 };
        let params = self.record(&P::STRUCT, &[(&P::size, bytes), (&P::attr, attr)]);
        self.alloc(self.client, device, 0, number, Some(params))
    }

    fn map_memory(&self, device: u32, memory: u32, length: u64, fd: Fd) -> Status {
        use rm::nv_ioctl_nvos33_parameters_with_fd as P;
        let record = self
            .escape(
                self.ctl,
                number::NV_ESC_RM_MAP_MEMORY,
                &P::STRUCT,
                &[
                    (&P::hClient, self.client.into()),
                    (&P::hDevice, device.into()),
                    (&P::hMemory, memory.into()),
                    (&P::length, length),
                    (&P::fd, fd.0 as u64),
                ],
            )
            .unwrap();
        Status(record.get(&P::status).unwrap() as u32)
    }

    fn uuid(&self, subdevice: u32) -> [u8; 16] {
        use rm::NV2080_CTRL_GPU_GET_GID_INFO_PARAMS as P;
        let mut params = self.record(&P::STRUCT, &[(&P::flags, 2)]);
        assert_eq!(self.control(subdevice, c::NV2080_CTRL_CMD_GPU_GET_GID_INFO, &mut params), Status::NV_OK);
        assert_eq!(params.get(&P::length), Ok(16));
        std::array::from_fn(|i| params.get_at(&P::data, i as u32).unwrap() as u8)
    }

    /// A UVM call whose struct names a GPU by UUID.
    fn uvm_gpu(&self, call: u32, field: &str, uuid: &[u8; 16], fields: Fields<'_>) -> Status {
        let layout = u::call(call).unwrap().argument.unwrap();
        let mut record = self.record(layout, fields);
        let row = layout.field(field).unwrap();
        for (i, byte) in uuid.iter().enumerate() {
            record.set_at(row, i as u32, (*byte).into()).unwrap();
        }
        self.machine.ioctl(self.uvm, call, record.bytes_mut()).unwrap();
        Status(record.get(layout.field("rmStatus").unwrap()).unwrap() as u32)
    }

    fn map_external(&self, uuid: &[u8; 16], memory: u32, base: u64, length: u64, offset: u64) -> Status {
        use u::UVM_MAP_EXTERNAL_ALLOCATION_PARAMS as P;
        let (low, high) = uuid.split_at(8);
        self.uvm(
            u::UVM_MAP_EXTERNAL_ALLOCATION,
            &[
                (&P::base, base),
                (&P::length, length),
                (&P::offset, offset),
                (&P::perGpuAttributes_gpuUuidLow, u64::from_le_bytes(low.try_into().unwrap())),
                (&P::perGpuAttributes_gpuUuidHigh, u64::from_le_bytes(high.try_into().unwrap())),
                (&P::gpuAttributesCount, 1),
                (&P::rmCtrlFd, self.ctl.0 as u64),
                (&P::hClient, self.client.into()),
                (&P::hMemory, memory.into()),
            ],
        )
    }

    fn range(&self, call: u32, base: u64, length: u64) -> Status {
        let layout = u::call(call).unwrap().argument.unwrap();
        let base_row = layout.field("base").unwrap();
        let length_row = layout.field("length").unwrap();
        self.uvm(call, &[(base_row, base), (length_row, length)])
    }

    fn initialize_uvm(&self) -> Fd {
        use u::{UVM_INITIALIZE_PARAMS, UVM_MM_INITIALIZE_PARAMS as Mm};
        assert_eq!(self.uvm(u::UVM_INITIALIZE, &[(&UVM_INITIALIZE_PARAMS::flags, 0)]), Status::NV_OK);
        let second = self.machine.open(Node::Uvm).unwrap();
        let fields = [(&Mm::uvmFd, self.uvm.0 as u64)];
        assert_eq!(self.uvm_on(second, u::UVM_MM_INITIALIZE, &fields), Status::NV_OK);
        second
    }

    /// A device with an address space that UVM owns: device, subdevice, UUID, address space.
    fn with_space(&self) -> (u32, u32, [u8; 16], u32) {
        use rm::NV_VASPACE_ALLOCATION_PARAMETERS as P;
        self.initialize_uvm();
        let device = self.device();
        let subdevice = self.subdevice(device);
        let uuid = self.uuid(subdevice);
        let params = self.record(
            &P::STRUCT,
            &[(&P::vaBase, 0x1000), (&P::vaSize, 0x1_ffff_fb00_0000), (&P::flags, (1 << 3) | (1 << 6))],
        );
        let space = self.alloc(self.client, device, 0, class::FERMI_VASPACE_A, Some(params)).unwrap();
        assert_eq!(self.uvm_gpu(u::UVM_REGISTER_GPU, "gpu_uuid_uuid", &uuid, &[]), Status::NV_OK);
        (device, subdevice, uuid, space)
    }

    fn register_space(&self, uuid: &[u8; 16], space: u32) -> Status {
        use u::UVM_REGISTER_GPU_VASPACE_PARAMS as P;
        self.uvm_gpu(
            u::UVM_REGISTER_GPU_VASPACE,
            "gpuUuid_uuid",
            uuid,
            &[
                (&P::rmCtrlFd, self.ctl.0 as u64),
                (&P::hClient, self.client.into()),
                (&P::hVaSpace, space.into()),
            ],
        )
    }

    fn group(&self, device: u32) -> u32 {
        use rm::NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS as P;
        let params = self.record(&P::STRUCT, &[(&P::engineType, 1)]);
        self.alloc(self.client, device, 0, class::KEPLER_CHANNEL_GROUP_A, Some(params)).unwrap()
    }

    fn share(&self, group: u32, space: u32) -> Result<u32, Status> {
        use rm::NV_CTXSHARE_ALLOCATION_PARAMETERS as P;
        let params = self.record(&P::STRUCT, &[(&P::hVASpace, space.into()), (&P::flags, 1)]);
        self.alloc(self.client, group, 0, class::FERMI_CONTEXT_SHARE_A, Some(params))
    }
}

#[test]
fn frontend_errors_are_errnos() {
    let raw = Raw::new();
    let ioctl = |fd, nr, size: usize| raw.machine.ioctl(fd, number::request(nr, size), &mut vec![0; size]);
    assert_eq!(ioctl(raw.ctl, number::NV_ESC_RM_FREE, 15), Err(Errno::EINVAL), "size");
    assert_eq!(ioctl(raw.gpu, number::NV_ESC_RM_FREE, 16), Err(Errno::EINVAL), "kind of descriptor");
    assert_eq!(ioctl(raw.ctl, 0x99, 16), Err(Errno::EINVAL), "number");
    assert_eq!(ioctl(Fd(99), number::NV_ESC_RM_FREE, 16), Err(Errno::EBADF));
    assert_eq!(ioctl(raw.ctl, number::NV_ESC_CARD_INFO, 72), Err(Errno::EINVAL), "fewer entries than GPUs");
    assert_eq!(ioctl(raw.ctl, number::NV_ESC_CARD_INFO, 64 * 72), Ok(()));
    let short = &mut [0; 8];
    let request = number::request(number::NV_ESC_RM_FREE, 16);
    assert_eq!(raw.machine.ioctl(raw.ctl, request, short), Err(Errno::EFAULT));
    assert_eq!(raw.machine.ioctl(raw.uvm, 0x1234, short), Err(Errno::ENOSYS));
    assert_eq!(raw.machine.open(Node::Gpu(2)), Err(Errno::ENOENT));
}

#[test]
fn check_version_answers_the_modules_version_also_on_failure() {
    use rm::nv_ioctl_rm_api_version_t as P;
    let raw = Raw::new();
    let mut record = raw.record(&P::STRUCT, &[]);
    let request = number::request(number::NV_ESC_CHECK_VERSION_STR, record.bytes().len());
    assert_eq!(raw.machine.ioctl(raw.ctl, request, record.bytes_mut()), Err(Errno::EINVAL));
    assert_eq!(&record.bytes()[8..18], b"570.124.06");
    record.set(&P::cmd, 0).unwrap();
    assert_eq!(raw.machine.ioctl(raw.ctl, request, record.bytes_mut()), Ok(()));
}

#[test]
fn a_descriptor_is_registered_once_and_only_with_a_control_file() {
    use rm::nv_ioctl_register_fd_t as P;
    let raw = Raw::new();
    let register = |fd: Fd, ctl: Fd| {
        let fields = [(&P::ctl_fd, ctl.0 as u32 as u64)];
        raw.escape(fd, number::NV_ESC_REGISTER_FD, &P::STRUCT, &fields).map(|_| ())
    };
    assert_eq!(register(raw.gpu, raw.ctl), Err(Errno::EINVAL), "twice");
    let second = raw.machine.open(Node::Gpu(0)).unwrap();
    assert_eq!(register(second, raw.gpu), Err(Errno::EINVAL), "not a control file");
    assert_eq!(register(raw.ctl, raw.ctl), Err(Errno::EINVAL), "itself");
    assert_eq!(register(second, raw.ctl), Ok(()));
}

#[test]
fn handles_are_given_from_the_modules_ranges() {
    let raw = Raw::new();
    assert_eq!(raw.client, 0xc1d0_0000);
    let again = raw.alloc(0, 0, raw.client, class::NV01_ROOT_CLIENT, None).unwrap();
    assert_eq!(again, 0xc1d0_0001, "an existing handle asked for gives a new client");
    assert_eq!(raw.device(), 0xcaf0_0000);
    let own = raw.alloc(raw.client, raw.client, 0x5000, class::NV01_DEVICE_0, raw.device_params(0)).unwrap();
    assert_eq!(own, 0x5000);
}

#[test]
fn allocation_checks_come_in_the_modules_order() {
    let raw = Raw::new();
    let device = raw.device();
    let alloc = |root, parent, handle, class| raw.alloc(root, parent, handle, class, None);
    assert_eq!(alloc(1, 1, 0, 0xdead), Err(Status::INVALID_CLASS));
    assert_eq!(alloc(1, 1, 0, class::NV01_MEMORY_SYSTEM), Err(Status::INVALID_ARGUMENT), "no parameters");
    assert_eq!(alloc(1, 1, 0, class::NV01_DEVICE_0), Err(Status::INVALID_OBJECT_HANDLE));
    assert_eq!(alloc(raw.client, 7, 0, class::NV20_SUBDEVICE_0), Err(Status::OBJECT_NOT_FOUND));
    assert_eq!(alloc(raw.client, raw.client, 0, class::NV20_SUBDEVICE_0), Err(Status::INVALID_OBJECT_PARENT));
    assert_eq!(
        alloc(raw.client, device, raw.client, class::NV20_SUBDEVICE_0),
        Err(Status::INVALID_OBJECT_PARENT)
    );
    assert_eq!(
        alloc(raw.client, device, device, class::NV20_SUBDEVICE_0),
        Err(Status::INSERT_DUPLICATE_NAME)
    );
    raw.subdevice(device);
    assert_eq!(alloc(raw.client, device, 0, class::NV20_SUBDEVICE_0), Err(Status::INSUFFICIENT_RESOURCES));
    let missing = raw.device_params(2);
    assert_eq!(
        raw.alloc(raw.client, raw.client, 0, class::NV01_DEVICE_0, missing),
        Err(Status::INVALID_DEVICE)
    );
    let not_attached = raw.device_params(1);
    assert_eq!(
        raw.alloc(raw.client, raw.client, 0, class::NV01_DEVICE_0, not_attached),
        Err(Status::INVALID_DEVICE)
    );
}

#[test]
fn a_class_that_is_not_simulated_is_refused_and_remembered() {
    let raw = Raw::new();
    let subdevice = raw.subdevice(raw.device());
    let made = raw.alloc_bytes(subdevice, class::NV_SEMAPHORE_SURFACE, &mut [0; 16]);
    assert_eq!(made, Err(Status::NOT_SUPPORTED));
    let lacks = raw.machine.unsupported();
    assert!(lacks.iter().any(|lack| lack.what.contains("NV_SEMAPHORE_SURFACE") && lack.count == 1));
}

#[test]
fn virtual_ranges_are_kept_apart_while_nothing_is_mapped_there() {
    use rm::NV_MEMORY_ALLOCATION_PARAMS as P;
    const BYTES: u64 = 4 << 20;
    let raw = Raw::new();
    let device = raw.device();
    let reserve = || {
        let mut params = raw.record(&P::STRUCT, &[(&P::size, BYTES)]);
        let range =
            raw.alloc_with(raw.client, device, 0, class::NV50_MEMORY_VIRTUAL, Some(&mut params)).unwrap();
        (range, params.get(&P::offset).unwrap())
    };
    let ((_, low), (range, high)) = (reserve(), reserve());
    assert!(high >= low + BYTES, "{low:#x} and {high:#x}");
    assert_eq!(raw.free(raw.client, range), Status::NV_OK);
    assert_eq!(reserve().1, high, "what was freed is free");
}

#[test]
fn a_control_without_a_public_name_is_answered_as_the_card_did_and_listed() {
    let raw = Raw::new();
    let subdevice = raw.subdevice(raw.device());
    let word = 7_u32;
    let pointer = &raw const word as u64;
    assert_eq!(raw.control_raw(raw.client, subdevice, 0x2080_9038, pointer, 8), Status::INVALID_ARGUMENT);
    assert!(raw.machine.unsupported().is_empty());
    assert_eq!(raw.control_raw(raw.client, subdevice, 0x2080_9038, pointer, 4), Status::NV_OK);
    assert_eq!(raw.control_raw(raw.client, subdevice, 0x2080_0145, 0, 0), Status::NV_OK);
    let listed: Vec<String> = raw.machine.unsupported().into_iter().map(|lack| lack.what).collect();
    assert!(listed[0].contains("0x20800145") && listed[1].contains("0x20809038"), "{listed:?}");
    assert_eq!(word, 7);
}

#[test]
fn freeing_takes_the_children_and_a_second_time_is_no_error() {
    let raw = Raw::new();
    let device = raw.device();
    let subdevice = raw.subdevice(device);
    assert_eq!(raw.free(0xc1d0_9999, device), Status::INVALID_OBJECT_HANDLE);
    assert_eq!(raw.free(raw.client, device), Status::NV_OK);
    assert_eq!(raw.free(raw.client, device), Status::NV_OK);
    let mut params = raw.record(&rm::NV2080_CTRL_GPU_GET_ID_PARAMS::STRUCT, &[]);
    assert_eq!(raw.control(subdevice, c::NV2080_CTRL_CMD_GPU_GET_ID, &mut params), Status::OBJECT_NOT_FOUND);
}

#[test]
fn closing_the_control_file_frees_its_clients() {
    let raw = Raw::new();
    let device = raw.device();
    raw.memory(device, class::NV01_MEMORY_LOCAL_USER, 4096).unwrap();
    raw.machine.close(raw.ctl).unwrap();
    assert_eq!(raw.machine.close(raw.ctl), Err(Errno::EBADF));
    let ctl = raw.machine.open(Node::Ctl).unwrap();
    assert_eq!(ctl, raw.ctl, "the lowest free number");
    assert_eq!(raw.free(raw.client, device), Status::INVALID_OBJECT_HANDLE);
}

#[test]
fn another_files_clients_are_invalid() {
    let raw = Raw::new();
    let other = raw.machine.open(Node::Ctl).unwrap();
    use rm::NVOS00_PARAMETERS as P;
    let fields = [(&P::hRoot, raw.client.into()), (&P::hObjectOld, 5)];
    let record = raw.escape(other, number::NV_ESC_RM_FREE, &P::STRUCT, &fields).unwrap();
    assert_eq!(record.get(&P::status), Ok(Status::INVALID_CLIENT.0.into()));
}

#[test]
fn control_checks_come_in_the_modules_order() {
    let raw = Raw::new();
    let device = raw.device();
    let mut word = 0_u64;
    let pointer = &raw mut word as u64;
    let id = c::NV2080_CTRL_CMD_GPU_GET_ID;
    assert_eq!(raw.control_raw(1, 1, 0x2080_0000, 0, 0), Status::NV_OK, "null command, dead client");
    assert_eq!(raw.control_raw(1, 1, id, 0, 4), Status::INVALID_CLIENT);
    assert_eq!(raw.control_raw(raw.client, 1, id, 0, 4), Status::INVALID_ARGUMENT);
    assert_eq!(raw.control_raw(raw.client, 1, id, pointer, 0), Status::INVALID_ARGUMENT);
    assert_eq!(raw.control_raw(raw.client, 1, id, pointer, 8), Status::INVALID_ARGUMENT, "size");
    assert_eq!(raw.control_raw(raw.client, 1, id, pointer, 4), Status::OBJECT_NOT_FOUND);
    assert_eq!(raw.control_raw(raw.client, device, id, pointer, 4), Status::NOT_SUPPORTED, "not its class");
    let subdevice = raw.subdevice(device);
    assert_eq!(raw.control_raw(raw.client, subdevice, id, pointer, 4), Status::NV_OK);
    assert_eq!(word, 0x100);
    let (mask, mut params) = (c::NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK, [0_u64; 1]);
    let at = params.as_mut_ptr().expose_provenance() as u64;
    assert_eq!(raw.control_raw(raw.client, subdevice, mask, at, 8), Status::NOT_SUPPORTED);
    assert!(raw.machine.unsupported().iter().any(|u| u.what.contains("PCE_MASK")));
}

/// Measured on H200 with every control of the table.
#[test]
fn a_kept_answer_is_given_before_the_class_is_looked_at() {
    let raw = Raw::new();
    let device = raw.device();
    let subdevice = raw.subdevice(device);
    let mut params = [0_u8; 16];
    let pointer = params.as_mut_ptr().expose_provenance() as u64;
    let arch = c::NV2080_CTRL_CMD_MC_GET_ARCH_INFO;
    let ask = |object| raw.control_raw(raw.client, object, arch, pointer, 16);
    assert_eq!(ask(device), Status::NOT_SUPPORTED, "nobody has asked yet");
    assert_eq!((ask(subdevice), ask(device)), (Status::NV_OK, Status::NV_OK));
    assert_ne!(params, [0; 16]);
    assert_eq!(ask(raw.client), Status::NOT_SUPPORTED, "it has no GPU");
    assert_eq!(ask(1), Status::OBJECT_NOT_FOUND);
    // What depends on its input is kept for each input, and what is asked about the system is given to any handle.
    let mut name = [0_u8; 132];
    let pointer = name.as_mut_ptr().expose_provenance() as u64;
    let ask =
        |object| raw.control_raw(raw.client, object, c::NV2080_CTRL_CMD_GPU_GET_NAME_STRING, pointer, 132);
    assert_eq!(ask(subdevice), Status::NV_OK);
    assert_eq!(ask(device), Status::NOT_SUPPORTED, "the last answer is another input");
    let mut enabled = [0_u8; 4];
    let pointer = enabled.as_mut_ptr().expose_provenance() as u64;
    let ask =
        |object| raw.control_raw(raw.client, object, c::NV0000_CTRL_CMD_GPU_GET_MEMOP_ENABLE, pointer, 4);
    assert_eq!(ask(1), Status::OBJECT_NOT_FOUND);
    assert_eq!((ask(raw.client), ask(1)), (Status::NV_OK, Status::NV_OK));
}

#[test]
fn a_bad_parameters_pointer_is_efault() {
    use rm::NVOS54_PARAMETERS as P;
    let raw = Raw::new();
    let subdevice = raw.subdevice(raw.device());
    let fields = [
        (&P::hClient, raw.client.into()),
        (&P::hObject, subdevice.into()),
        (&P::cmd, c::NV2080_CTRL_CMD_GPU_GET_ID.into()),
        (&P::params, 16),
        (&P::paramsSize, 4),
    ];
    let result = raw.escape(raw.ctl, number::NV_ESC_RM_CONTROL, &P::STRUCT, &fields);
    assert_eq!(result.map(|_| ()), Err(Errno::EFAULT));
}

#[test]
fn gpfifo_schedule_is_two_bytes_before_580_and_three_from_it_on() {
    for (version, branch, size) in [("570.124.06", Branch::R570, 2), ("580.159.04", Branch::R580, 3)] {
        let raw = Raw::on(Machine::builder().gpu(Profile::ad102()).driver(version), branch);
        let group = raw.group(raw.device());
        let bytes = [1_u8, 0, 0];
        for given in 1..=3 {
            let status = raw.control_raw(
                raw.client,
                group,
                c::NVA06C_CTRL_CMD_GPFIFO_SCHEDULE,
                bytes.as_ptr() as u64,
                given,
            );
            let expected = if given == size { Status::NV_OK } else { Status::INVALID_ARGUMENT };
            assert_eq!(status, expected, "{given} bytes at {version}");
        }
    }
}

#[test]
fn the_card_describes_itself() {
    use rm::{
        NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS as Id, NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS as List,
        NV2080_CTRL_GR_GET_INFO_PARAMS as Gr,
    };
    let raw = Raw::new();
    let mut id = raw.record(&Id::STRUCT, &[(&Id::gpuId, 0x200)]);
    assert_eq!(raw.control(raw.client, c::NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2, &mut id), Status::NV_OK);
    assert_eq!(id.get(&Id::deviceInstance), Ok(1));
    let device = raw.device();
    let mut list = raw.record(&List::STRUCT, &[]);
    assert_eq!(raw.control(device, c::NV0080_CTRL_CMD_GPU_GET_CLASSLIST, &mut list), Status::NV_OK);
    let count = list.get(&List::numClasses).unwrap();
    let mut classes = vec![0_u32; count as usize];
    list.set(&List::classList, classes.as_mut_ptr() as u64).unwrap();
    assert_eq!(raw.control(device, c::NV0080_CTRL_CMD_GPU_GET_CLASSLIST, &mut list), Status::NV_OK);
    assert!(classes.contains(&class::ADA_COMPUTE_A) && classes.contains(&class::AMPERE_DMA_COPY_B));
    let subdevice = raw.subdevice(device);
    let mut info = [[0x14_u32, 0], [0x17, 0], [0x20, 0], [0xd, 0], [0xc, 0]];
    let mut gr =
        raw.record(&Gr::STRUCT, &[(&Gr::grInfoListSize, 5), (&Gr::grInfoList, info.as_mut_ptr() as u64)]);
    assert_eq!(raw.control(subdevice, c::NV2080_CTRL_CMD_GR_GET_INFO, &mut gr), Status::NV_OK);
    assert_eq!(info.map(|[_, data]| data), [12, 6, 2, 48, 0x809]);
}

#[test]
fn video_memory_is_limited_and_comes_back() {
    let builder = Machine::builder().gpu(Profile::ad102()).vram(1 << 20);
    let raw = Raw::on(builder, Branch::R570);
    let device = raw.device();
    let memory = raw.memory(device, class::NV01_MEMORY_LOCAL_USER, 1 << 20).unwrap();
    assert_eq!(raw.memory(device, class::NV01_MEMORY_LOCAL_USER, 1), Err(Status::NO_MEMORY));
    assert_eq!(raw.memory(device, class::NV01_MEMORY_LOCAL_USER, 0), Err(Status::INVALID_ARGUMENT));
    assert_eq!(raw.memory(device, class::NV01_MEMORY_LOCAL_USER, u64::MAX), Err(Status::NO_MEMORY));
    raw.free(raw.client, memory);
    assert!(raw.memory(device, class::NV01_MEMORY_LOCAL_USER, 1).is_ok());
}

#[test]
fn video_memory_comes_in_big_pages_and_aligned_to_them() {
    use rm::NV_MEMORY_ALLOCATION_PARAMS as P;
    const BIG: u64 = 64 << 10;
    const HUGE: u64 = 2 << 20;
    /// NVOS32_ALLOC_FLAGS.
    const HINT: u64 = 0x80;
    const FORCE: u64 = 0x100;
    let raw = Raw::new();
    let device = raw.device();
    // Page sizes as attributes: 1 is 4 KiB, 2 big, 3 huge.
    let ask = |size: u64, page: u64, flags: u64, alignment: u64| {
        let fields =
            [(&P::size, size), (&P::attr, page << 23), (&P::flags, flags), (&P::alignment, alignment)];
        let mut params = raw.record(&P::STRUCT, &fields);
        let number = class::NV01_MEMORY_LOCAL_USER;
        raw.alloc_with(raw.client, device, 0, number, Some(&mut params)).map(|_| {
            let told = [&P::size, &P::alignment, &P::limit].map(|field| params.get(field).unwrap());
            (params.get(&P::attr).unwrap() >> 23 & 3, told)
        })
    };
    for (size, page, given) in
        [(1, 2, BIG), (BIG + 1, 2, 2 * BIG), (HUGE - 1, 2, HUGE), (HUGE, 3, HUGE), (HUGE + 1, 3, 2 * HUGE)]
    {
        let unit = if page == 3 { HUGE } else { BIG };
        assert_eq!(ask(size, 0, 0, 0), Ok((page, [given, unit, given - 1])), "{size:#x}");
    }
    assert_eq!(ask(1, 1, 0, 0), Ok((1, [PAGE, PAGE, PAGE - 1])), "small pages, where they are asked for");
    // An alignment counts where a flag says so; less than a page is a page.
    assert_eq!(ask(1, 0, 0, HUGE), Ok((2, [BIG, BIG, BIG - 1])));
    assert_eq!(ask(1, 0, HINT, HUGE), Ok((2, [BIG, HUGE, BIG - 1])));
    assert_eq!(ask(1, 0, FORCE, PAGE), Ok((2, [BIG, BIG, BIG - 1])));
    // What no page divides is a hint that is not taken, and an order that is refused.
    assert_eq!(ask(1, 0, HINT, 3 * PAGE), Ok((2, [BIG, BIG, BIG - 1])));
    assert_eq!(ask(1, 0, FORCE, 3 * PAGE), Err(Status::INVALID_ARGUMENT));
    assert_eq!(ask(1, 0, HINT, 3 * BIG), Err(Status::INVALID_ARGUMENT), "no power of two");
    // The heap gives out big pages, whatever the object's are.
    let before = raw.machine.video_memory_in_use(0).unwrap();
    assert!(ask(1, 1, 0, 0).is_ok());
    assert_eq!(raw.machine.video_memory_in_use(0), Some(before + BIG));
}

#[test]
fn one_cpu_mapping_per_descriptor_of_the_right_node_and_size() {
    let raw = Raw::new();
    let device = raw.device();
    let video = raw.memory(device, class::NV01_MEMORY_LOCAL_USER, 2 * PAGE).unwrap();
    let system = raw.memory(device, class::NV01_MEMORY_SYSTEM, 2 * PAGE).unwrap();
    let gpu = raw.machine.open(Node::Gpu(0)).unwrap();
    let other = raw.machine.open(Node::Gpu(1)).unwrap();
    let ctl = raw.machine.open(Node::Ctl).unwrap();
    let mmap = |fd, length, offset| raw.machine.mmap(fd, Mapping { address: None, length, offset });
    assert_eq!(mmap(gpu, PAGE, 0), Err(Errno::EINVAL), "no context");
    assert_eq!(raw.map_memory(device, video, 2 * PAGE, ctl), Status::INVALID_ARGUMENT);
    assert_eq!(raw.map_memory(device, video, 2 * PAGE, other), Status::INVALID_ARGUMENT);
    assert_eq!(raw.map_memory(device, video, 32 * PAGE, gpu), Status::INVALID_LIMIT);
    assert_eq!(raw.map_memory(device, 0x77, PAGE, gpu), Status::OBJECT_NOT_FOUND);
    assert_eq!(raw.map_memory(device, video, 2 * PAGE, gpu), Status::NV_OK);
    assert_eq!(raw.map_memory(device, video, 2 * PAGE, gpu), Status::STATE_IN_USE);
    assert_eq!(raw.map_memory(device, system, 2 * PAGE, ctl), Status::NV_OK);
    assert_eq!(mmap(gpu, PAGE, 0), Err(Errno::ENXIO));
    assert_eq!(mmap(gpu, 2 * PAGE, PAGE), Err(Errno::EINVAL));
    assert_eq!(mmap(ctl, 3 * PAGE, 0), Err(Errno::ERANGE));
    let address = mmap(gpu, 2 * PAGE, 0).unwrap();
    let again = Mapping { address: Some(address), length: 2 * PAGE, offset: 0 };
    assert_eq!(raw.machine.mmap(gpu, again), Err(Errno::EEXIST));
    raw.machine.close(gpu).unwrap();
    assert_eq!(raw.machine.munmap(address, PAGE), Err(Errno::EINVAL));
    assert_eq!(raw.machine.write32(address, 0x90, 1), Err(Errno::EFAULT), "not a doorbell page");
    assert_eq!(raw.machine.munmap(address, 2 * PAGE), Ok(()));
    assert_eq!(raw.machine.munmap(address, 2 * PAGE), Err(Errno::EINVAL));
}

#[test]
fn the_doorbell_page_is_reached_through_its_mapping_only() {
    let raw = Raw::new();
    let subdevice = raw.subdevice(raw.device());
    let usermode = raw.alloc(raw.client, subdevice, 0, class::TURING_USERMODE_A, None).unwrap();
    assert_eq!(
        raw.alloc(raw.client, subdevice, 0, class::HOPPER_USERMODE_A, None),
        Err(Status::INVALID_CLASS)
    );
    let fd = raw.machine.open(Node::Gpu(0)).unwrap();
    assert_eq!(raw.map_memory(subdevice, usermode, 0x10000, fd), Status::NV_OK);
    let page = raw.machine.mmap(fd, Mapping { address: None, length: 0x10000, offset: 0 }).unwrap();
    assert_eq!(raw.machine.write32(page, 0x90, 0x1234), Ok(()), "an unknown token is ignored");
    assert_eq!(raw.machine.read32(page, 0x90), Ok(0x1234));
    assert_eq!(raw.machine.write32(page, 0x10000, 0), Err(Errno::EFAULT));
    assert_eq!(raw.machine.write32(page, 0x91, 0), Err(Errno::EFAULT));
    assert_eq!(raw.machine.read32(page + PAGE, 0), Err(Errno::EFAULT));
    raw.machine.munmap(page, 0x10000).unwrap();
    assert_eq!(raw.machine.read32(page, 0), Err(Errno::EFAULT));
}

#[test]
fn an_os_descriptor_needs_a_registered_descriptor_and_mapped_pages() {
    use rm::nv_ioctl_nvos02_parameters_with_fd as P;
    let raw = Raw::new();
    let device = raw.device();
    let alloc = |fd, address, flags, limit| {
        let fields = [
            (&P::hRoot, raw.client.into()),
            (&P::hObjectParent, device.into()),
            (&P::hObjectNew, 0x1001),
            (&P::hClass, class::NV01_MEMORY_SYSTEM_OS_DESCRIPTOR.into()),
            (&P::flags, flags),
            (&P::pMemory, address),
            (&P::limit, limit),
        ];
        let record = raw.escape(fd, number::NV_ESC_RM_ALLOC_MEMORY, &P::STRUCT, &fields)?;
        Ok(Status(record.get(&P::status).unwrap() as u32))
    };
    const FLAGS: u64 = 0x4000_1010;
    // A mapping of the machine's is shared memory of the client, too.
    let system = raw.memory(device, class::NV01_MEMORY_SYSTEM, PAGE).unwrap();
    let fd = raw.machine.open(Node::Ctl).unwrap();
    assert_eq!(raw.map_memory(device, system, PAGE, fd), Status::NV_OK);
    let page = raw.machine.mmap(fd, Mapping { address: None, length: PAGE, offset: 0 }).unwrap();
    let fresh = raw.machine.open(Node::Gpu(0)).unwrap();
    assert_eq!(alloc(raw.ctl, page, FLAGS, PAGE - 1), Err(Errno::EINVAL), "GPU nodes only");
    assert_eq!(alloc(fresh, page, FLAGS, PAGE - 1), Ok(Status::INVALID_CLIENT));
    assert_eq!(alloc(raw.gpu, page + 8, FLAGS, PAGE - 1), Ok(Status::NOT_SUPPORTED));
    assert_eq!(alloc(raw.gpu, page, 0x1010, PAGE - 1), Ok(Status::INVALID_FLAGS));
    assert_eq!(alloc(raw.gpu, page, FLAGS, u64::MAX), Ok(Status::INVALID_LIMIT));
    assert_eq!(alloc(raw.gpu, PAGE, FLAGS, PAGE - 1), Ok(Status::INVALID_ADDRESS));
    assert_eq!(alloc(raw.gpu, page, FLAGS, PAGE - 1), Ok(Status::NV_OK));
    assert_eq!(alloc(raw.gpu, page, FLAGS, PAGE - 1), Ok(Status::INSERT_DUPLICATE_NAME));
}

#[test]
fn uvm_wants_to_be_initialised_once_with_the_same_flags() {
    use u::{UVM_INITIALIZE_PARAMS as Init, UVM_MM_INITIALIZE_PARAMS as Mm};
    let raw = Raw::new();
    assert_eq!(raw.range(u::UVM_CREATE_EXTERNAL_RANGE, PAGE, PAGE), Status::ILLEGAL_ACTION);
    let second = raw.initialize_uvm();
    assert_eq!(raw.uvm(u::UVM_INITIALIZE, &[(&Init::flags, 0)]), Status::NV_OK);
    assert_eq!(raw.uvm(u::UVM_INITIALIZE, &[(&Init::flags, 1)]), Status::INVALID_ARGUMENT);
    assert_eq!(raw.uvm_on(second, u::UVM_INITIALIZE, &[(&Init::flags, 0)]), Status::INVALID_ARGUMENT);
    let third = raw.machine.open(Node::Uvm).unwrap();
    let of = |fd: Fd| [(&Mm::uvmFd, fd.0 as u64)];
    assert_eq!(raw.uvm_on(third, u::UVM_MM_INITIALIZE, &of(raw.uvm)), Status::INVALID_STATE);
    assert_eq!(raw.uvm_on(third, u::UVM_MM_INITIALIZE, &of(raw.ctl)), Status::INVALID_ARGUMENT);
    raw.machine.close(second).unwrap();
    assert_eq!(raw.uvm_on(third, u::UVM_MM_INITIALIZE, &of(raw.uvm)), Status::PAGE_TABLE_NOT_AVAIL);
    let easy = Raw::on(Machine::builder().gpu(Profile::ad102()).uvm_needs_mm(false), Branch::R570);
    assert_eq!(easy.uvm(u::UVM_INITIALIZE, &[]), Status::NV_OK);
    let second = easy.machine.open(Node::Uvm).unwrap();
    assert_eq!(easy.uvm_on(second, u::UVM_MM_INITIALIZE, &of(easy.uvm)), Status::WARN_NOTHING_TO_DO);
}

#[test]
fn uvm_registers_each_gpu_and_address_space_once() {
    let raw = Raw::new();
    let (device, _, uuid, space) = raw.with_space();
    let register = |uuid: &[u8; 16]| raw.uvm_gpu(u::UVM_REGISTER_GPU, "gpu_uuid_uuid", uuid, &[]);
    assert_eq!(register(&[7; 16]), Status::GPU_UUID_NOT_FOUND);
    assert_eq!(register(&uuid), Status::INVALID_DEVICE);
    let mut other = uuid;
    other[15] = 1;
    assert_eq!(raw.register_space(&other, space), Status::INVALID_DEVICE, "GPU not registered");
    assert_eq!(raw.register_space(&uuid, 0x77), Status::OBJECT_NOT_FOUND);
    let group = raw.group(device);
    assert_eq!(raw.share(group, space), Err(Status::INVALID_STATE), "before UVM owns the space");
    assert_eq!(raw.register_space(&uuid, space), Status::NV_OK);
    assert_eq!(raw.register_space(&uuid, space), Status::INVALID_DEVICE);
    assert!(raw.share(group, space).is_ok());
    let peer = |b: &[u8; 16]| {
        use u::UVM_ENABLE_PEER_ACCESS_PARAMS as P;
        let mut record = raw.record(&P::STRUCT, &[]);
        for i in 0..16 {
            record.set_at(&P::gpuUuidA_uuid, i, uuid[i as usize].into()).unwrap();
            record.set_at(&P::gpuUuidB_uuid, i, b[i as usize].into()).unwrap();
        }
        raw.machine.ioctl(raw.uvm, u::UVM_ENABLE_PEER_ACCESS, record.bytes_mut()).unwrap();
        Status(record.get(&P::rmStatus).unwrap() as u32)
    };
    assert_eq!(peer(&uuid), Status::INVALID_DEVICE, "itself");
    assert_eq!(peer(&other), Status::INVALID_DEVICE, "not registered");
    assert_eq!(register(&other), Status::NV_OK);
    assert_eq!(peer(&other), Status::NV_OK);
    assert_eq!(peer(&other), Status::INVALID_DEVICE, "again");
}

#[test]
fn external_ranges_do_not_overlap_and_are_freed_exactly() {
    const BASE: u64 = 0x10_0000_0000;
    let raw = Raw::new();
    raw.initialize_uvm();
    let create = |base, length| raw.range(u::UVM_CREATE_EXTERNAL_RANGE, base, length);
    let free = |base, length| raw.range(u::UVM_FREE, base, length);
    assert_eq!(create(BASE + 1, PAGE), Status::INVALID_ADDRESS);
    assert_eq!(create(BASE, 0), Status::INVALID_ADDRESS);
    assert_eq!(create(0, PAGE), Status::INVALID_ADDRESS);
    assert_eq!(create(1 << 56, PAGE), Status::NV_OK, "no upper bound here");
    assert_eq!(create(BASE, 4 * PAGE), Status::NV_OK);
    assert_eq!(create(BASE, 4 * PAGE), Status::UVM_ADDRESS_IN_USE);
    assert_eq!(create(BASE - PAGE, 2 * PAGE), Status::UVM_ADDRESS_IN_USE);
    assert_eq!(create(BASE + 3 * PAGE, PAGE), Status::UVM_ADDRESS_IN_USE);
    let validate = |base, length| raw.range(u::UVM_VALIDATE_VA_RANGE, base, length);
    assert_eq!(validate(BASE, 4 * PAGE), Status::NV_OK);
    assert_eq!(validate(BASE, PAGE), Status::INVALID_ADDRESS);
    assert_eq!(free(BASE, PAGE), Status::INVALID_ADDRESS, "partial");
    assert_eq!(free(BASE + PAGE, PAGE), Status::INVALID_ADDRESS);
    assert_eq!(free(BASE, 4 * PAGE), Status::NV_OK);
    assert_eq!(free(BASE, 4 * PAGE), Status::INVALID_ADDRESS, "repeated");
}

#[test]
fn mapping_replaces_at_page_size_and_outlives_the_handle() {
    const BASE: u64 = 0x10_0000_0000;
    const BIG: u64 = 64 << 10;
    let raw = Raw::new();
    let (device, _, uuid, space) = raw.with_space();
    let memory = raw.memory(device, class::NV01_MEMORY_LOCAL_USER, 2 * BIG).unwrap();
    let small = raw.memory(device, class::NV01_MEMORY_SYSTEM, BIG).unwrap();
    assert_eq!(raw.range(u::UVM_CREATE_EXTERNAL_RANGE, BASE, 2 * BIG), Status::NV_OK);
    assert_eq!(raw.map_external(&uuid, memory, BASE, BIG, 0), Status::INVALID_DEVICE, "no address space");
    assert_eq!(raw.register_space(&uuid, space), Status::NV_OK);
    assert_eq!(raw.map_external(&uuid, memory, BASE + 1, BIG, 0), Status::INVALID_ADDRESS);
    assert_eq!(
        raw.map_external(&uuid, memory, BASE, 4 * BIG, 0),
        Status::INVALID_ADDRESS,
        "out of the range"
    );
    assert_eq!(raw.map_external(&[9; 16], memory, BASE, BIG, 0), Status::INVALID_DEVICE);
    assert_eq!(raw.map_external(&uuid, 0x77, BASE, BIG, 0), Status::OBJECT_NOT_FOUND);
    assert_eq!(raw.map_external(&uuid, memory, BASE, 2 * BIG, BIG), Status::INVALID_OFFSET);
    assert_eq!(raw.map_external(&uuid, memory, BASE, 2 * BIG, 0), Status::NV_OK);
    assert_eq!(raw.map_external(&uuid, memory, BASE, 2 * BIG, 0), Status::NV_OK, "replaces");
    assert_eq!(raw.map_external(&uuid, small, BASE, PAGE, 0), Status::INVALID_ADDRESS, "cuts a big page");
    assert_eq!(raw.map_external(&uuid, small, BASE + BIG, BIG, 0), Status::NV_OK);
    assert_eq!(raw.free(raw.client, memory), Status::NV_OK);
    let unmap = |base, length| {
        use u::UVM_UNMAP_EXTERNAL_PARAMS as P;
        raw.uvm_gpu(u::UVM_UNMAP_EXTERNAL, "gpuUuid_uuid", &uuid, &[(&P::base, base), (&P::length, length)])
    };
    assert_eq!(unmap(BASE, PAGE), Status::INVALID_ADDRESS);
    assert_eq!(unmap(BASE, BIG), Status::NV_OK);
    assert_eq!(unmap(BASE, BIG), Status::NV_OK, "nothing mapped is fine");
    assert_eq!(raw.range(u::UVM_FREE, BASE, 2 * BIG), Status::NV_OK);
}

#[test]
fn a_channel_is_built_scheduled_and_registered() {
    use rm::{
        NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS as P,
        NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS as Token,
    };
    const RING: u64 = 0x10_0000_0000;
    let raw = Raw::new();
    let (device, _, uuid, space) = raw.with_space();
    assert_eq!(raw.register_space(&uuid, space), Status::NV_OK);
    let group = raw.group(device);
    let share = raw.share(group, space).unwrap();
    let ring = raw.memory(device, class::NV01_MEMORY_LOCAL_USER, 2 << 20).unwrap();
    let notifier = raw.memory(device, class::NV01_MEMORY_SYSTEM, PAGE).unwrap();
    let channel = |parent: u32, fields: Fields<'_>| {
        let mut params = raw.record(
            &P::STRUCT,
            &[
                (&P::hObjectError, notifier.into()),
                (&P::gpFifoOffset, RING),
                (&P::gpFifoEntries, 0x400),
                (&P::hContextShare, share.into()),
                (&P::hUserdMemory, ring.into()),
                (&P::userdOffset, 0x400 * 8),
            ],
        );
        for (field, value) in fields {
            params.set(field, *value).unwrap();
        }
        raw.alloc(raw.client, parent, 0, class::AMPERE_CHANNEL_GPFIFO_A, Some(params))
    };
    assert_eq!(channel(group, &[(&P::hVASpace, space.into())]), Err(Status::INVALID_ARGUMENT));
    assert_eq!(channel(group, &[(&P::engineType, 9)]), Err(Status::INVALID_ARGUMENT));
    assert_eq!(channel(group, &[(&P::hContextShare, 0x77)]), Err(Status::OBJECT_NOT_FOUND));
    assert_eq!(channel(group, &[(&P::hContextShare, 0)]), Err(Status::INVALID_OBJECT));
    assert_eq!(channel(group, &[(&P::hObjectError, 0x77)]), Err(Status::INVALID_STATE));
    assert_eq!(channel(group, &[(&P::flags, 1)]), Err(Status::NOT_SUPPORTED));
    assert_eq!(channel(group, &[(&P::gpFifoEntries, 3)]), Err(Status::INVALID_ARGUMENT));
    assert_eq!(channel(group, &[(&P::userdOffset, 2 << 20)]), Err(Status::INVALID_ARGUMENT));
    let gpfifo = channel(group, &[]).unwrap();
    let object = |number| raw.alloc(raw.client, gpfifo, 0, number, None);
    assert!(object(class::ADA_COMPUTE_A).is_ok());
    assert!(object(class::AMPERE_DMA_COPY_B).is_ok());
    assert_eq!(object(class::AMPERE_COMPUTE_B), Err(Status::INVALID_CLASS));
    assert_eq!(object(class::HOPPER_DMA_COPY_A), Err(Status::INVALID_CLASS));
    let mut token = raw.record(&Token::STRUCT, &[]);
    let get_token = c::NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN;
    assert_eq!(raw.control(gpfifo, get_token, &mut token), Status::NV_OK);
    assert_eq!(token.get(&Token::workSubmitToken), Ok(10), "the number that the card gave first");
    let register = || {
        use u::UVM_REGISTER_CHANNEL_PARAMS as R;
        raw.uvm_gpu(
            u::UVM_REGISTER_CHANNEL,
            "gpuUuid_uuid",
            &uuid,
            &[
                (&R::rmCtrlFd, raw.ctl.0 as u64),
                (&R::hClient, raw.client.into()),
                (&R::hChannel, gpfifo.into()),
                (&R::base, 0x20_0000_0000),
                (&R::length, 0x400_0000),
            ],
        )
    };
    assert_eq!(register(), Status::NV_OK);
    assert_eq!(register(), Status::INVALID_CHANNEL);
    assert_eq!(
        raw.range(u::UVM_CREATE_EXTERNAL_RANGE, 0x20_0000_0000, PAGE),
        Status::UVM_ADDRESS_IN_USE,
        "the channel's buffers lie there"
    );
    assert_eq!(raw.free(raw.client, group), Status::NV_OK);
    assert_eq!(raw.control(gpfifo, get_token, &mut token), Status::OBJECT_NOT_FOUND);
}

/// Words that are likely to reach deep: handles and descriptors that exist, sizes, flags, extremes.
fn word(draw: &mut Draw) -> u32 {
    match draw.below(7) {
        0 => within(0..8)(draw),
        1 => 0xc1d0_0000,
        2 => within(0xcaf0_0000..0xcaf0_0008)(draw),
        3 => 0x1000,
        4 => 0x10_0000,
        5 => u32::MAX,
        _ => any(draw),
    }
}

/// Calls: a number that picks one, and words of its parameters.
fn calls<const WORDS: usize>(draw: &mut Draw) -> Vec<(usize, [u32; WORDS])> {
    draw.list(1..12, |draw| (draw.below(1 << 20), std::array::from_fn(|_| word(draw))))
}

properties! { 300 cases;
    fn no_argument_makes_the_module_panic(calls in calls::<92>) {
        let raw = Raw::new();
        let (device, _, uuid, space) = raw.with_space();
        raw.register_space(&uuid, space);
        raw.memory(device, class::NV01_MEMORY_SYSTEM, 1 << 20).unwrap();
        for (index, words) in calls {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let escapes = number::ESCAPES.len();
            let which = index % (escapes + u::CALLS.len());
            if let Some(escape) = number::ESCAPES.get(which) {
                let size = escape.argument.map_or(32, |layout| layout.size(raw.branch));
                let mut argument = bytes;
                argument.resize(size, 0);
                for fd in [raw.ctl, raw.gpu] {
                    let _ = raw.machine.ioctl(fd, number::request(escape.nr, size), &mut argument);
                }
            } else {
                let call = &u::CALLS[which - escapes];
                let mut argument = bytes;
                argument.resize(call.argument.map_or(0, |layout| layout.size(raw.branch)), 0);
                let _ = raw.machine.ioctl(raw.uvm, call.number, &mut argument);
            }
        }
    }

    fn no_parameters_make_a_constructor_or_control_panic(calls in calls::<97>) {
        let raw = Raw::new();
        let (device, _, uuid, space) = raw.with_space();
        raw.register_space(&uuid, space);
        raw.group(device);
        for (index, words) in calls {
            let (parent, words) = (words[0] % 8, &words[1..]);
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            // Lists that controls point to must not lie anywhere in this process.
            for pointer in bytes.chunks_exact_mut(8) {
                if pointer[6..] == [0, 0] && pointer[4..6] != [0, 0] {
                    pointer[7] = 0xff;
                }
            }
            let pointer = bytes.as_mut_ptr() as u64;
            let parent = 0xcaf0_0000 + parent;
            let which = index % (class::CLASSES.len() + c::CONTROLS.len());
            if let Some(row) = class::CLASSES.get(which) {
                use rm::NVOS21_PARAMETERS as P;
                let fields = [
                    (&P::hRoot, raw.client.into()),
                    (&P::hObjectParent, parent.into()),
                    (&P::hClass, row.number.into()),
                    (&P::pAllocParms, pointer),
                ];
                let _ = raw.escape(raw.ctl, number::NV_ESC_RM_ALLOC, &P::STRUCT, &fields);
            } else {
                let row = &c::CONTROLS[which - class::CLASSES.len()];
                let size = row.size(raw.branch).unwrap_or(8);
                bytes.resize(size.max(bytes.len()), 0);
                use rm::NVOS54_PARAMETERS as P;
                for object in [parent, raw.client] {
                    let fields = [
                        (&P::hClient, raw.client.into()),
                        (&P::hObject, object.into()),
                        (&P::cmd, row.command.into()),
                        (&P::params, bytes.as_mut_ptr() as u64),
                        (&P::paramsSize, size as u64),
                    ];
                    let _ = raw.escape(raw.ctl, number::NV_ESC_RM_CONTROL, &P::STRUCT, &fields);
                }
            }
        }
    }
}
