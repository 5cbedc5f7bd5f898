//! Calls of the resource manager: allocate, free, control, and the frontend ioctls around them.

use nv_abi::{
    Fd, Node, Record, Struct,
    ioctl::{
        self, NV_ESC_CARD_INFO, NV_ESC_REGISTER_FD, NV_ESC_RM_ALLOC, NV_ESC_RM_CONTROL, NV_ESC_RM_FREE,
        request,
    },
    rm::{
        NVOS00_PARAMETERS, NVOS21_PARAMETERS, NVOS54_PARAMETERS, Status, class, control,
        nv_ioctl_card_info_t, nv_ioctl_register_fd_t,
    },
};

use crate::{Error, system::System};

/// One GPU as CARD_INFO lists it.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    pub(crate) gpu_id: u32,
    pub(crate) minor: u32,
    pub(crate) pci: [u32; 4],
    pub(crate) pci_device: u16,
}

/// Entries of the card table: what clients pass.
const CARDS: usize = 64;

impl System {
    /// Issues a frontend ioctl whose argument is `record`.
    fn escape(&self, fd: Fd, nr: u32, record: &mut Record) -> Result<(), Error> {
        let size = record.bytes().len();
        self.backend
            .ioctl(fd, request(nr, size), record.bytes_mut())
            .map_err(|errno| Error::System { call: escape_name(nr), errno })
    }

    /// The same, where the argument carries a status: any but success is an error, with what `about` adds to the call's
    /// name.
    pub(crate) fn rm_call(
        &self,
        fd: Fd,
        nr: u32,
        record: &mut Record,
        about: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        self.escape(fd, nr, record)?;
        match status(record)? {
            Status::NV_OK => Ok(()),
            status => Err(Error::Rm { call: escape_name(nr).to_owned() + &about(), status }),
        }
    }

    /// RM_ALLOC under `parent`; returns the new object's handle. The parameters are passed in a zeroed buffer of the
    /// newest size, because the kernel copies its own size whatever the caller says.
    pub(crate) fn alloc(
        &self,
        parent: u32,
        number: u32,
        parameters: Option<&mut Record>,
    ) -> Result<u32, Error> {
        let mut os = Record::zeroed(&NVOS21_PARAMETERS::STRUCT, self.branch);
        os.set(&NVOS21_PARAMETERS::hRoot, self.root.into())?;
        os.set(&NVOS21_PARAMETERS::hObjectParent, parent.into())?;
        os.set(&NVOS21_PARAMETERS::hClass, number.into())?;
        let mut bytes = Vec::new();
        if let Some(parameters) = &parameters {
            bytes = vec![0; parameters.of().max_size() + 64];
            bytes[..parameters.bytes().len()].copy_from_slice(parameters.bytes());
            os.set(&NVOS21_PARAMETERS::pAllocParms, bytes.as_mut_ptr().expose_provenance() as u64)?;
        }
        self.rm_call(self.ctl, NV_ESC_RM_ALLOC, &mut os, || {
            let name = class::class(number).map_or("unknown class", |row| row.name);
            format!(" {name} ({number:#x})")
        })?;
        if let Some(parameters) = parameters {
            let length = parameters.bytes().len();
            parameters.bytes_mut().copy_from_slice(&bytes[..length]);
        }
        Ok(os.get(&NVOS21_PARAMETERS::hObjectNew)? as u32)
    }

    /// RM_FREE.
    pub(crate) fn free(&self, parent: u32, object: u32) -> Result<(), Error> {
        let mut os = Record::zeroed(&NVOS00_PARAMETERS::STRUCT, self.branch);
        os.set(&NVOS00_PARAMETERS::hRoot, self.root.into())?;
        os.set(&NVOS00_PARAMETERS::hObjectParent, parent.into())?;
        os.set(&NVOS00_PARAMETERS::hObjectOld, object.into())?;
        self.rm_call(self.ctl, NV_ESC_RM_FREE, &mut os, || format!(" {object:#x}"))
    }

    /// RM_CONTROL on `object` with parameters that are updated in place.
    pub(crate) fn control(&self, object: u32, command: u32, parameters: &mut Record) -> Result<(), Error> {
        let mut os = Record::zeroed(&NVOS54_PARAMETERS::STRUCT, self.branch);
        os.set(&NVOS54_PARAMETERS::hClient, self.root.into())?;
        os.set(&NVOS54_PARAMETERS::hObject, object.into())?;
        os.set(&NVOS54_PARAMETERS::cmd, command.into())?;
        os.set(&NVOS54_PARAMETERS::paramsSize, parameters.bytes().len() as u64)?;
        os.set(&NVOS54_PARAMETERS::params, parameters.bytes_mut().as_mut_ptr().expose_provenance() as u64)?;
        self.rm_call(self.ctl, NV_ESC_RM_CONTROL, &mut os, || {
            let name = control::control(command).map_or("unknown command", |row| row.name);
            format!(" {name} ({command:#x})")
        })
    }

    /// A zeroed struct at the module's branch.
    pub(crate) fn record(&self, of: &'static Struct) -> Record {
        Record::zeroed(of, self.branch)
    }

    /// CARD_INFO: every GPU, in the order of the table.
    pub(crate) fn card_info(&self) -> Result<Vec<Card>, Error> {
        let entry = nv_ioctl_card_info_t::STRUCT.size(self.branch);
        let mut bytes = vec![0; entry * CARDS];
        self.backend
            .ioctl(self.ctl, request(NV_ESC_CARD_INFO, bytes.len()), &mut bytes)
            .map_err(|errno| Error::System { call: escape_name(NV_ESC_CARD_INFO), errno })?;
        let mut cards = Vec::new();
        for bytes in bytes.chunks_exact(entry) {
            let card = Record::from_bytes(&nv_ioctl_card_info_t::STRUCT, self.branch, bytes)?;
            if card.get(&nv_ioctl_card_info_t::valid)? == 0 {
                continue;
            }
            cards.push(Card {
                gpu_id: card.get(&nv_ioctl_card_info_t::gpu_id)? as u32,
                minor: card.get(&nv_ioctl_card_info_t::minor_number)? as u32,
                pci: [
                    card.get(&nv_ioctl_card_info_t::pci_info_domain)? as u32,
                    card.get(&nv_ioctl_card_info_t::pci_info_bus)? as u32,
                    card.get(&nv_ioctl_card_info_t::pci_info_slot)? as u32,
                    card.get(&nv_ioctl_card_info_t::pci_info_function)? as u32,
                ],
                pci_device: card.get(&nv_ioctl_card_info_t::pci_info_device_id)? as u16,
            });
        }
        Ok(cards)
    }

    /// Opens a GPU's node and ties it to the client (REGISTER_FD). Each CPU mapping needs one of its own.
    pub(crate) fn open_gpu(&self, minor: u32) -> Result<Fd, Error> {
        let node = Node::Gpu(minor);
        let fd = self.backend.open(node).map_err(|errno| Error::Open { node, errno })?;
        let mut record = Record::zeroed(&nv_ioctl_register_fd_t::STRUCT, self.branch);
        record.set(&nv_ioctl_register_fd_t::ctl_fd, signed(self.ctl.0))?;
        if let Err(error) = self.escape(fd, NV_ESC_REGISTER_FD, &mut record) {
            // The first error is the one to report.
            let _ = self.backend.close(fd);
            return Err(error);
        }
        Ok(fd)
    }
}

/// A frontend ioctl's name, without the prefix that all have.
fn escape_name(nr: u32) -> &'static str {
    ioctl::escape(nr).map_or("unknown ioctl", |row| row.name.trim_start_matches("NV_ESC_"))
}

/// The status that a call left in its argument. A struct without one has none to be checked.
pub(crate) fn status(record: &Record) -> Result<Status, Error> {
    match record.of().status() {
        Some(field) => Ok(Status::from(record.get(field)?)),
        None => Ok(Status::NV_OK),
    }
}

/// A signed number as the 32-bit field's bits.
pub(crate) fn signed(value: i32) -> u64 {
    u64::from(value as u32)
}

/// A flag word from a layout's fields.
pub(crate) fn flags(fields: &[(&nv_abi::Field, u64)]) -> Result<u64, Error> {
    let mut word = [0; 4];
    let mut bits = nv_abi::BitsMut::new(&mut word);
    for (field, value) in fields {
        bits.set(field, *value)?;
    }
    Ok(u64::from(u32::from_le_bytes(word)))
}
