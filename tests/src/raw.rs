//! A client that says what it likes: raw calls of the resource manager, with nothing checked before they leave.

use std::sync::Arc;

use nv_abi::{
    Branch, Errno, Fd, Node, Record, Struct,
    ioctl::{NV_ESC_RM_ALLOC, NV_ESC_RM_CONTROL, NV_ESC_RM_FREE, request},
    rm::{NVOS00_PARAMETERS, NVOS21_PARAMETERS, NVOS54_PARAMETERS, Status},
};
use nv_driver::Backend;

/// A control node, opened.
#[derive(Debug)]
pub struct Client {
    backend: Arc<dyn Backend>,
    branch: Branch,
    /// The node's descriptor.
    pub ctl: Fd,
    /// The client's own handle, once [`Client::alloc`] has made it; used as `hRoot` everywhere.
    pub root: u32,
}

/// A call failed below the resource manager.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {errno}")]
pub struct CallError {
    call: &'static str,
    errno: Errno,
}

/// What a call of the resource manager came to.
pub type Answer<T> = Result<Result<T, Status>, CallError>;

impl Client {
    /// Opens the control node; no client object yet.
    pub fn open(backend: &Arc<dyn Backend>, branch: Branch) -> Result<Self, CallError> {
        let ctl = backend.open(Node::Ctl).map_err(|errno| CallError { call: "open", errno })?;
        Ok(Self { backend: Arc::clone(backend), branch, ctl, root: 0 })
    }

    /// A zeroed struct in the layout of the kernel module's branch.
    pub fn record(&self, of: &'static Struct) -> Record {
        Record::zeroed(of, self.branch)
    }

    fn call(&self, call: &'static str, nr: u32, record: &mut Record) -> Result<(), CallError> {
        let size = record.bytes().len();
        self.backend
            .ioctl(self.ctl, request(nr, size), record.bytes_mut())
            .map_err(|errno| CallError { call, errno })
    }

    /// RM_ALLOC: the new handle, or the status. `wanted` 0 lets the module choose the handle.
    pub fn alloc(
        &self,
        parent: u32,
        wanted: u32,
        class: u32,
        parameters: Option<&mut Record>,
    ) -> Answer<u32> {
        use NVOS21_PARAMETERS as p;
        let mut os = self.record(&p::STRUCT);
        let mut bytes = Vec::new();
        if let Some(parameters) = parameters {
            // The module copies its own size, whatever that is.
            bytes = parameters.bytes().to_vec();
            bytes.resize(bytes.len() + 4096, 0);
        }
        let pointer = if bytes.is_empty() { 0 } else { bytes.as_mut_ptr().expose_provenance() as u64 };
        for (field, value) in [
            (&p::hRoot, self.root.into()),
            (&p::hObjectParent, parent.into()),
            (&p::hObjectNew, wanted.into()),
            (&p::hClass, class.into()),
            (&p::pAllocParms, pointer),
        ] {
            set(&mut os, field, value);
        }
        self.call("RM_ALLOC", NV_ESC_RM_ALLOC, &mut os)?;
        Ok(answer(&os, &p::status).map(|()| get(&os, &p::hObjectNew) as u32))
    }

    /// RM_FREE.
    pub fn free(&self, parent: u32, object: u32) -> Answer<()> {
        use NVOS00_PARAMETERS as p;
        let mut os = self.record(&p::STRUCT);
        for (field, value) in [(&p::hRoot, self.root), (&p::hObjectParent, parent), (&p::hObjectOld, object)]
        {
            set(&mut os, field, value.into());
        }
        self.call("RM_FREE", NV_ESC_RM_FREE, &mut os)?;
        Ok(answer(&os, &p::status))
    }

    /// RM_CONTROL with parameters of exactly these bytes.
    pub fn control(&self, object: u32, command: u32, parameters: &mut [u8]) -> Answer<()> {
        use NVOS54_PARAMETERS as p;
        let mut os = self.record(&p::STRUCT);
        let pointer =
            if parameters.is_empty() { 0 } else { parameters.as_mut_ptr().expose_provenance() as u64 };
        for (field, value) in [
            (&p::hClient, self.root.into()),
            (&p::hObject, object.into()),
            (&p::cmd, command.into()),
            (&p::params, pointer),
            (&p::paramsSize, parameters.len() as u64),
        ] {
            set(&mut os, field, value);
        }
        self.call("RM_CONTROL", NV_ESC_RM_CONTROL, &mut os)?;
        Ok(answer(&os, &p::status))
    }
}

/// The rows fit what this client passes: handles, numbers and pointers.
fn set(record: &mut Record, field: &nv_abi::StructField, value: u64) {
    record.set(field, value).unwrap_or_else(|error| panic!("{error}"));
}

fn get(record: &Record, field: &nv_abi::StructField) -> u64 {
    record.get(field).unwrap_or_else(|error| panic!("{error}"))
}

fn answer(record: &Record, status: &nv_abi::StructField) -> Result<(), Status> {
    match Status::from(get(record, status)) {
        Status::NV_OK => Ok(()),
        status => Err(status),
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Closing frees whatever the client left; a failure has nobody to go to.
        let _ = self.backend.close(self.ctl);
    }
}
