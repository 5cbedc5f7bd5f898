//! The ioctls of the control and GPU nodes: which descriptor takes which, with what argument.

use nv_abi::{
    Errno, Fd, Node, Record, Struct,
    ioctl::{self as number, escape},
    rm::{
        Status, nv_ioctl_card_info_t as CardInfo, nv_ioctl_numa_info_t as NumaInfo,
        nv_ioctl_query_device_intr as DeviceIntr, nv_ioctl_register_fd_t as RegisterFd,
        nv_ioctl_rm_api_version_t as Version, nv_ioctl_status_code_t as StatusCode,
        nv_ioctl_sys_params_t as SysParams, nv_ioctl_wait_open_complete_t as WaitOpen,
        nv_ioctl_xfer_t as Transfer,
    },
};

use super::{Kernel, Refusal, control::set_text};
use crate::client_memory;

/// Which descriptors take an ioctl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Ctl,
    Gpu,
    Any,
}

type OnRecord = fn(&mut Kernel, Fd, &mut Record) -> Result<(), Refusal>;
type OnBytes = fn(&mut Kernel, Fd, &mut [u8]) -> Result<(), Refusal>;

/// How an ioctl is answered.
#[derive(Clone, Copy)]
enum Handler {
    /// By a function of its struct, whose size the command word must have.
    Record(OnRecord),
    /// By a function of its bytes, which checks their size.
    Bytes(OnBytes),
    /// By a function of its struct whose `status`, where it has one, is the function's to write.
    Plain(OnRecord),
    /// Not simulated: refused and remembered.
    Missing,
}

/// One ioctl of the frontend nodes.
struct Row {
    nr: u32,
    on: On,
    handler: Handler,
}

const fn record(nr: u32, on: On, handler: OnRecord) -> Row {
    Row { nr, on, handler: Handler::Record(handler) }
}

const fn bytes(nr: u32, on: On, handler: OnBytes) -> Row {
    Row { nr, on, handler: Handler::Bytes(handler) }
}

const fn plain(nr: u32, on: On, handler: OnRecord) -> Row {
    Row { nr, on, handler: Handler::Plain(handler) }
}

const fn missing(nr: u32, on: On) -> Row {
    Row { nr, on, handler: Handler::Missing }
}

/// Every ioctl that the module dispatches. A number without a row is EINVAL.
const ROWS: &[Row] = &[
    record(number::NV_ESC_RM_ALLOC_MEMORY, On::Gpu, Kernel::rm_alloc_memory),
    record(number::NV_ESC_RM_ALLOC_OBJECT, On::Ctl, Kernel::rm_alloc_object),
    record(number::NV_ESC_RM_FREE, On::Ctl, Kernel::rm_free),
    record(number::NV_ESC_RM_CONTROL, On::Ctl, Kernel::rm_control),
    bytes(number::NV_ESC_RM_ALLOC, On::Any, Kernel::rm_alloc),
    record(number::NV_ESC_RM_DUP_OBJECT, On::Ctl, Kernel::rm_dup_object),
    record(number::NV_ESC_RM_SHARE, On::Ctl, Kernel::rm_share),
    missing(number::NV_ESC_RM_I2C_ACCESS, On::Gpu),
    missing(number::NV_ESC_RM_IDLE_CHANNELS, On::Ctl),
    record(number::NV_ESC_RM_VID_HEAP_CONTROL, On::Ctl, Kernel::rm_vid_heap_control),
    missing(number::NV_ESC_RM_ACCESS_REGISTRY, On::Ctl),
    record(number::NV_ESC_RM_MAP_MEMORY, On::Ctl, Kernel::rm_map_memory),
    record(number::NV_ESC_RM_UNMAP_MEMORY, On::Ctl, Kernel::rm_unmap_memory),
    record(number::NV_ESC_RM_GET_EVENT_DATA, On::Any, Kernel::get_event_data),
    record(number::NV_ESC_RM_ALLOC_CONTEXT_DMA2, On::Ctl, Kernel::rm_alloc_context_dma),
    record(number::NV_ESC_RM_MAP_MEMORY_DMA, On::Ctl, Kernel::rm_map_memory_dma),
    record(number::NV_ESC_RM_UNMAP_MEMORY_DMA, On::Ctl, Kernel::rm_unmap_memory_dma),
    record(number::NV_ESC_RM_BIND_CONTEXT_DMA, On::Ctl, Kernel::rm_bind_context_dma),
    missing(number::NV_ESC_RM_EXPORT_OBJECT_TO_FD, On::Any),
    missing(number::NV_ESC_RM_IMPORT_OBJECT_FROM_FD, On::Any),
    record(number::NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO, On::Ctl, Kernel::rm_update_device_mapping_info),
    bytes(number::NV_ESC_CARD_INFO, On::Ctl, Kernel::card_info),
    record(number::NV_ESC_REGISTER_FD, On::Any, Kernel::register_fd),
    record(number::NV_ESC_ALLOC_OS_EVENT, On::Any, Kernel::alloc_os_event),
    record(number::NV_ESC_FREE_OS_EVENT, On::Any, Kernel::free_os_event),
    record(number::NV_ESC_STATUS_CODE, On::Ctl, Kernel::status_code),
    record(number::NV_ESC_CHECK_VERSION_STR, On::Ctl, Kernel::check_version_str),
    bytes(number::NV_ESC_ATTACH_GPUS_TO_FD, On::Ctl, Kernel::attach_gpus_to_fd),
    record(number::NV_ESC_QUERY_DEVICE_INTR, On::Gpu, Kernel::query_device_intr),
    // Its `status` is the memory's, not the call's.
    plain(number::NV_ESC_NUMA_INFO, On::Gpu, Kernel::numa_info),
    missing(number::NV_ESC_SET_NUMA_STATUS, On::Gpu),
    missing(number::NV_ESC_EXPORT_TO_DMABUF_FD, On::Gpu),
    record(number::NV_ESC_SYS_PARAMS, On::Ctl, Kernel::sys_params),
    record(number::NV_ESC_WAIT_OPEN_COMPLETE, On::Any, Kernel::wait_open_complete),
];

/// Runs an ioctl of a control or GPU descriptor. The argument is updated also where the call fails, unless it could
/// not be read.
pub(super) fn ioctl(kernel: &mut Kernel, fd: Fd, request: u32, argument: &mut [u8]) -> Result<(), Errno> {
    let (nr, size) = (number::nr(request), number::size(request));
    let argument = argument.get_mut(..size).ok_or(Errno::EFAULT)?;
    if nr != number::NV_ESC_IOCTL_XFER_CMD {
        return dispatch(kernel, fd, nr, argument);
    }
    if size != Transfer::STRUCT.size(kernel.branch) {
        return Err(Errno::EINVAL);
    }
    let transfer =
        Record::from_bytes(&Transfer::STRUCT, kernel.branch, argument).map_err(|_| Errno::EFAULT)?;
    let get = |field| transfer.get(field).map_err(|_| Errno::EINVAL);
    let (nr, size, pointer) = (get(&Transfer::cmd)?, get(&Transfer::size)?, get(&Transfer::ptr)?);
    // The module takes up to 16 MiB this way.
    if size > 16 << 20 {
        return Err(Errno::EINVAL);
    }
    let mut inner = vec![0; size as usize];
    client_memory::read(pointer, &mut inner)?;
    let result = dispatch(kernel, fd, nr as u32, &mut inner);
    if result != Err(Errno::EFAULT) {
        client_memory::write(pointer, &inner)?;
    }
    result
}

fn dispatch(kernel: &mut Kernel, fd: Fd, nr: u32, argument: &mut [u8]) -> Result<(), Errno> {
    let row = ROWS.iter().find(|row| row.nr == nr).ok_or(Errno::EINVAL)?;
    match (row.on, kernel.file(fd)?.node) {
        (On::Any, _) | (On::Ctl, Node::Ctl) | (On::Gpu, Node::Gpu(_)) => {}
        _ => return Err(Errno::EINVAL),
    }
    let described = escape(nr);
    let layout = described.and_then(|escape| escape.argument);
    if let Some(layout) = layout
        && layout.size(kernel.branch) != argument.len()
    {
        return Err(Errno::EINVAL);
    }
    let name = described.map_or("ioctl without a name", |escape| escape.name);
    match row.handler {
        Handler::Bytes(handler) => match handler(kernel, fd, argument) {
            Ok(()) => Ok(()),
            Err(Refusal::Errno(errno)) => Err(errno),
            // Handlers of bytes put their status in place themselves.
            Err(Refusal::Status(_)) => Err(Errno::EINVAL),
        },
        Handler::Record(handler) => {
            let layout = layout.ok_or(Errno::EINVAL)?;
            with_record(kernel, layout, argument, "status", |kernel, record| handler(kernel, fd, record))
        }
        Handler::Plain(handler) => {
            let layout = layout.ok_or(Errno::EINVAL)?;
            let mut record =
                Record::from_bytes(layout, kernel.branch, argument).map_err(|_| Errno::EFAULT)?;
            match handler(kernel, fd, &mut record) {
                Ok(()) => {
                    argument.copy_from_slice(record.bytes());
                    Ok(())
                }
                Err(Refusal::Errno(errno)) => Err(errno),
                Err(Refusal::Status(_)) => Err(Errno::EINVAL),
            }
        }
        Handler::Missing => {
            let refusal = kernel.not_supported(name);
            match layout {
                Some(layout) if status_field(layout).is_some() => {
                    with_record(kernel, layout, argument, "status", |_, _| Err(refusal))
                }
                _ => Err(Errno::EINVAL),
            }
        }
    }
}

fn status_field(layout: &'static Struct) -> Option<&'static nv_abi::StructField> {
    layout.field("status").or_else(|| layout.field("Status"))
}

/// Runs `call` on a struct and writes it back with the result in its status field.
pub(crate) fn with_record(
    kernel: &mut Kernel,
    layout: &'static Struct,
    argument: &mut [u8],
    status: &str,
    call: impl FnOnce(&mut Kernel, &mut Record) -> Result<(), Refusal>,
) -> Result<(), Errno> {
    let mut record = Record::from_bytes(layout, kernel.branch, argument).map_err(|_| Errno::EFAULT)?;
    let result = call(kernel, &mut record);
    let (outcome, written) = match result {
        Ok(()) => (Ok(()), Some(Status::NV_OK)),
        Err(Refusal::Status(status)) => (Ok(()), Some(status)),
        Err(Refusal::Errno(errno)) => (Err(errno), None),
    };
    if let (Some(written), Some(field)) = (written, layout.field(status).or_else(|| status_field(layout))) {
        record.set(field, u64::from(written.0)).map_err(|_| Errno::EINVAL)?;
    }
    if outcome != Err(Errno::EFAULT) {
        argument[..record.bytes().len()].copy_from_slice(record.bytes());
    }
    outcome
}

impl Kernel {
    /// CARD_INFO: an array of any length that holds all GPUs.
    fn card_info(&mut self, _: Fd, argument: &mut [u8]) -> Result<(), Refusal> {
        let size = CardInfo::STRUCT.size(self.branch);
        if !argument.len().is_multiple_of(size) || argument.len() / size < self.gpus.len() {
            return Err(Errno::EINVAL.into());
        }
        argument.fill(0);
        for (minor, (gpu, bytes)) in self.gpus.iter().zip(argument.chunks_exact_mut(size)).enumerate() {
            let mut card = Record::zeroed(&CardInfo::STRUCT, self.branch);
            card.set(&CardInfo::valid, 1)?;
            card.set(&CardInfo::pci_info_bus, gpu.place.bus.into())?;
            card.set(&CardInfo::pci_info_slot, gpu.place.slot.into())?;
            card.set(&CardInfo::pci_info_vendor_id, 0x10de)?;
            card.set(&CardInfo::pci_info_device_id, gpu.profile.pci_device_id.into())?;
            card.set(&CardInfo::gpu_id, gpu.id.into())?;
            card.set(&CardInfo::interrupt_line, u64::from(minor as u32) + 0x29)?;
            card.set(&CardInfo::reg_address, gpu.bar(0).offset)?;
            card.set(&CardInfo::reg_size, gpu.bar(0).bytes)?;
            card.set(&CardInfo::fb_address, gpu.bar(1).offset)?;
            card.set(&CardInfo::fb_size, gpu.bar(1).bytes)?;
            card.set(&CardInfo::minor_number, minor as u64)?;
            bytes.copy_from_slice(card.bytes());
        }
        Ok(())
    }

    /// REGISTER_FD: ties a descriptor to a control file, once.
    fn register_fd(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let control = Fd(p.get(&RegisterFd::ctl_fd)? as u32 as i32);
        let Ok(file) = self.file(control) else { return Err(Errno::EINVAL.into()) };
        if file.node != Node::Ctl || file.registered.is_some() || control == fd {
            return Err(Errno::EINVAL.into());
        }
        let serial = file.serial;
        let own = self.file_mut(fd)?;
        if own.registered.is_some() {
            return Err(Errno::EINVAL.into());
        }
        own.registered = Some(serial);
        Ok(())
    }

    /// CHECK_VERSION_STR: answers the module's version, and EINVAL where the client's is another.
    fn check_version_str(&mut self, _: Fd, p: &mut Record) -> Result<(), Refusal> {
        const STRICT: u64 = 0;
        const RELAXED: u64 = b'1' as u64;
        const QUERY: u64 = b'2' as u64;
        let mut given = Vec::new();
        for i in 0..Version::versionString.count {
            match p.get_at(&Version::versionString, i)? as u8 {
                0 => break,
                byte => given.push(byte),
            }
        }
        let major = |text: &[u8]| text.split(|b| *b == b'.').next().map(<[u8]>::to_vec);
        let same = match p.get(&Version::cmd)? {
            STRICT => given == self.version.as_bytes(),
            RELAXED => major(&given) == major(self.version.as_bytes()),
            QUERY => true,
            _ => return Err(Errno::EINVAL.into()),
        };
        p.set(&Version::reply, same.into())?;
        set_text(p, &Version::versionString, &self.version)?;
        if same { Ok(()) } else { Err(Errno::EINVAL.into()) }
    }

    /// ATTACH_GPUS_TO_FD: once per descriptor; all ids must be known.
    fn attach_gpus_to_fd(&mut self, fd: Fd, argument: &mut [u8]) -> Result<(), Refusal> {
        if self.file(fd)?.attached_gpus || argument.is_empty() || !argument.len().is_multiple_of(4) {
            return Err(Errno::EINVAL.into());
        }
        let mut gpus = Vec::new();
        for id in argument.chunks_exact(4) {
            let id = u32::from_le_bytes([id[0], id[1], id[2], id[3]]);
            if id != 0 {
                gpus.push(self.gpus.iter().position(|gpu| gpu.id == id).ok_or(Errno::EINVAL)?);
            }
        }
        for gpu in gpus {
            self.gpus[gpu].attached = true;
        }
        self.file_mut(fd)?.attached_gpus = true;
        Ok(())
    }

    /// SYS_PARAMS: the first memory block size stays.
    fn sys_params(&mut self, _: Fd, p: &mut Record) -> Result<(), Refusal> {
        let size = p.get(&SysParams::memblock_size)?;
        match self.memblock_size {
            Some(known) if known != size => Err(Errno::EBUSY.into()),
            _ => {
                self.memblock_size = Some(size);
                Ok(())
            }
        }
    }

    /// NUMA_INFO: video memory is no memory of the system's.
    fn numa_info(&mut self, _: Fd, p: &mut Record) -> Result<(), Refusal> {
        /// NV_IOCTL_NUMA_STATUS_DISABLED.
        const DISABLED: u64 = 0;
        p.set(&NumaInfo::nid, 0xffff_ffff)?;
        p.set(&NumaInfo::status, DISABLED)?;
        p.set(&NumaInfo::memblock_size, self.memblock_size.unwrap_or(0))?;
        Ok(())
    }

    /// STATUS_CODE: how opening a GPU's node went; here it cannot fail.
    fn status_code(&mut self, _: Fd, p: &mut Record) -> Result<(), Refusal> {
        let at = (p.get(&StatusCode::domain)?, p.get(&StatusCode::bus)?, p.get(&StatusCode::slot)?);
        if !self.gpus.iter().any(|gpu| at == (0, gpu.place.bus.into(), gpu.place.slot.into())) {
            return Err(Errno::EINVAL.into());
        }
        Ok(p.set(&StatusCode::status, 0)?)
    }

    /// QUERY_DEVICE_INTR: no interrupt is pending.
    fn query_device_intr(&mut self, _: Fd, p: &mut Record) -> Result<(), Refusal> {
        p.set(&DeviceIntr::intrStatus, 0)?;
        Ok(p.set(&DeviceIntr::status, 0)?)
    }

    /// WAIT_OPEN_COMPLETE: opening a simulated GPU is complete at once.
    fn wait_open_complete(&mut self, _: Fd, p: &mut Record) -> Result<(), Refusal> {
        if self.branch < nv_abi::Branch::R550 {
            return Err(Errno::EINVAL.into());
        }
        p.set(&WaitOpen::rc, 0)?;
        p.set(&WaitOpen::adapterStatus, 0)?;
        Ok(())
    }
}
