//! One client of the kernel module: the control and UVM descriptors, the root object and the list of GPUs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use nv_abi::{
    Branch, Fd, Ioctl, Mmio, Node, Record,
    rm::{NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS as BUILD_VERSION, class, control},
};

use crate::{Error, gpu::Gpu, rm::Card, signal::SignalPool};

/// What the driver needs of the world below: the device nodes and their doorbell pages.
pub trait Backend: Ioctl + Mmio {}

impl<T: Ioctl + Mmio> Backend for T {}

/// A connection to the kernel module. Devices of one system can share memory and signals.
#[derive(Debug)]
pub struct System {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) ctl: Fd,
    pub(crate) uvm: Fd,
    /// Holds the memory map reference of the UVM address space; must stay open as long as that.
    uvm_mm: Fd,
    pub(crate) root: u32,
    pub(crate) branch: Branch,
    version: String,
    pub(crate) cards: Vec<Card>,
    gpus: Mutex<Vec<Weak<Gpu>>>,
    pools: Mutex<Vec<Weak<SignalPool>>>,
    next_host_object: Mutex<u32>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves the tables of this crate consistent: they are changed in single steps.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl System {
    /// Opens the control and UVM nodes and makes a client.
    pub fn open(backend: Arc<dyn Backend>) -> Result<Arc<Self>, Error> {
        let open = |node| backend.open(node).map_err(|errno| Error::Open { node, errno });
        let ctl = open(Node::Ctl)?;
        let uvm = open(Node::Uvm)?;
        let uvm_mm = open(Node::Uvm)?;
        // From here on, dropping the value closes the descriptors.
        let mut system = Self {
            backend,
            ctl,
            uvm,
            uvm_mm,
            root: 0,
            branch: Branch::R535,
            version: String::new(),
            cards: Vec::new(),
            gpus: Mutex::default(),
            pools: Mutex::default(),
            next_host_object: Mutex::new(0x1000),
        };
        system.root = system.alloc(0, class::NV01_ROOT_CLIENT, None)?;
        system.version = system.build_version()?;
        system.branch = Branch::from_version(&system.version)
            .ok_or_else(|| Error::Version { version: system.version.clone() })?;
        system.uvm_initialize()?;
        system.uvm_mm_initialize(uvm_mm)?;
        system.cards = system.card_info()?;
        Ok(Arc::new(system))
    }

    /// The control's struct grew with branch 560, which is not known yet: the newer size is tried first.
    fn build_version(&self) -> Result<String, Error> {
        let mut first = None;
        for branch in [Branch::R560, Branch::R535] {
            let mut record = Record::zeroed(&BUILD_VERSION::STRUCT, branch);
            match self.control(self.root, control::NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2, &mut record) {
                Ok(()) => return Ok(record.text(&BUILD_VERSION::driverVersionBuffer)?),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or(Error::Version { version: String::new() }))
    }

    /// The kernel module's version, such as `570.124.06`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The branch whose struct layouts the module uses.
    pub fn branch(&self) -> Branch {
        self.branch
    }

    /// GPUs present.
    pub fn device_count(&self) -> usize {
        self.cards.len()
    }

    pub(crate) fn gpus(&self) -> Vec<Arc<Gpu>> {
        lock(&self.gpus).iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn pools(&self) -> Vec<Arc<SignalPool>> {
        lock(&self.pools).iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn register(&self, gpu: &Arc<Gpu>) {
        let mut gpus = lock(&self.gpus);
        gpus.retain(|gpu| gpu.strong_count() > 0);
        gpus.push(Arc::downgrade(gpu));
    }

    pub(crate) fn register_pool(&self, pool: &Arc<SignalPool>) {
        let mut pools = lock(&self.pools);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(pool));
    }

    /// A handle for host memory: RM_ALLOC_MEMORY leaves the choice to the client.
    pub(crate) fn host_object(&self) -> u32 {
        let mut next = lock(&self.next_host_object);
        *next += 1;
        *next
    }
}

impl Drop for System {
    fn drop(&mut self) {
        // Nothing can be reported from here; the kernel module frees what is left when the descriptors close.
        if self.root != 0 {
            let _ = self.free(0, self.root);
        }
        for fd in [self.uvm, self.uvm_mm, self.ctl] {
            let _ = self.backend.close(fd);
        }
    }
}
