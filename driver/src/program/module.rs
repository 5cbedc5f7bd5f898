//! Modules on a device, and kernels with checked arguments.

use std::sync::Arc;

use super::{Cubin, CubinError, KernelInfo};
use crate::{
    Buffer, Device, Element, Error,
    memory::{Allocation, Request},
    qmd::{LOCAL_RESERVED, Launch},
    runtime,
};

/// A cubin in GPU memory. Clones are the same module.
#[derive(Clone, Debug)]
pub struct Module(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    device: Device,
    cubin: Cubin,
    memory: Allocation,
    /// Registers that every kernel has at least: those of the device runtime, where the module calls it.
    registers: u32,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // Code must not go while it runs; a dead channel runs nothing.
        let _ = self.device.synchronize();
    }
}

impl Module {
    /// Parses a cubin, links it to an address and to the device runtime where it calls that, and uploads it.
    pub fn load(device: &Device, bytes: &[u8]) -> Result<Self, Error> {
        let cubin = Cubin::parse(bytes)?;
        let sm = device.sm();
        // Code runs on the SM it was compiled for and on later minor versions of the same major one.
        if cubin.sm() / 10 != sm / 10 || cubin.sm() > sm {
            return Err(Error::Architecture { cubin: cubin.sm(), device: sm });
        }
        if let Some(symbol) = cubin.externals().iter().find(|symbol| !runtime::provides(symbol)) {
            return Err(CubinError::UndefinedSymbol { symbol: symbol.clone() }.into());
        }
        let runtime = if cubin.externals().is_empty() { None } else { Some(device.load_runtime()?) };
        let memory = Allocation::new(device.gpu(), Request::video("the module", cubin.image_bytes()))?;
        let resolve = |symbol: &str| runtime?.resolve(symbol);
        device.upload(memory.address(), &cubin.link_with(memory.address(), resolve)?)?;
        let stack = cubin.kernels().iter().map(|kernel| kernel.stack_bytes).max().unwrap_or(0);
        let callee = runtime.map_or(0, |runtime| runtime.stack_bytes);
        device.reserve_local_memory(stack.saturating_add(callee).saturating_add(LOCAL_RESERVED))?;
        let registers = runtime.map_or(0, |runtime| runtime.registers);
        Ok(Self(Arc::new(Loaded { device: device.clone(), cubin, memory, registers })))
    }

    /// What was loaded.
    pub fn cubin(&self) -> &Cubin {
        &self.0.cubin
    }

    /// The GPU address of the device image.
    pub fn address(&self) -> u64 {
        self.0.memory.address()
    }

    /// A kernel by its name.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        let kernels = self.0.cubin.kernels();
        match kernels.iter().position(|kernel| kernel.name == name) {
            Some(index) => Ok(Kernel { module: self.clone(), index }),
            None => Err(Error::NoKernel {
                name: name.to_owned(),
                present: kernels.iter().map(|kernel| kernel.name.clone()).collect(),
            }),
        }
    }
}

/// A kernel of a loaded module.
#[derive(Clone, Debug)]
pub struct Kernel {
    module: Module,
    index: usize,
}

impl Kernel {
    /// What the cubin says about it.
    pub fn info(&self) -> &KernelInfo {
        &self.module.0.cubin.kernels()[self.index]
    }

    /// Launches the kernel after everything submitted before, without waiting for it.
    pub fn launch(&self, grid: [u32; 3], block: [u32; 3], arguments: &[Argument]) -> Result<(), Error> {
        self.launch_with_shared(grid, block, 0, arguments)
    }

    /// Launches the kernel with so many bytes of dynamic shared memory.
    pub fn launch_with_shared(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared: u32,
        arguments: &[Argument],
    ) -> Result<(), Error> {
        let options = LaunchOptions { dynamic_shared, ..LaunchOptions::default() };
        self.launch_with(grid, block, &options, arguments)
    }

    /// Launches the kernel with clusters, or cooperatively.
    pub fn launch_with(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        options: &LaunchOptions,
        arguments: &[Argument],
    ) -> Result<(), Error> {
        self.module.0.device.launch(self, grid, block, options, arguments)
    }

    pub(crate) fn prepare(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        options: &LaunchOptions,
        arguments: &[Argument],
    ) -> Result<Launch, Error> {
        let mut info = self.info().clone();
        info.registers = info.registers.max(self.module.0.registers);
        let parameters = pack(&info, arguments)?;
        let mut options = *options;
        options.cluster = options.cluster.or(info.required_cluster);
        Ok(Launch { base: self.module.address(), info, grid, block, options, parameters })
    }
}

/// What a launch asks for beside its grid, block and arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchOptions {
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Blocks of a cluster along each axis; `None` for what the kernel was compiled for, which may be no clusters.
    pub cluster: Option<[u32; 3]>,
    /// All blocks are resident together and can meet, as `grid.sync()` of CUDA's cooperative groups does.
    pub cooperative: bool,
}

/// The parameter bytes, with number and sizes checked.
pub(crate) fn pack(info: &KernelInfo, arguments: &[Argument]) -> Result<Vec<u8>, Error> {
    if arguments.len() != info.parameters.len() {
        return Err(Error::ArgumentCount {
            kernel: info.name.clone(),
            expected: info.parameters.len(),
            given: arguments.len(),
        });
    }
    let mut bytes = vec![0; info.parameter_bytes as usize];
    for (index, (parameter, Argument(value))) in info.parameters.iter().zip(arguments).enumerate() {
        if value.len() != usize::from(parameter.size) {
            return Err(Error::ArgumentSize {
                kernel: info.name.clone(),
                index,
                expected: parameter.size.into(),
                given: value.len(),
            });
        }
        // The loader checked that every parameter lies inside.
        bytes[usize::from(parameter.offset)..][..value.len()].copy_from_slice(value);
    }
    Ok(bytes)
}

/// One kernel argument: a number, a buffer's address, or the bytes of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument(Vec<u8>);

impl Argument {
    /// A struct passed by value.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }
}

impl<T: Element> From<T> for Argument {
    fn from(value: T) -> Self {
        Self(value.bytes())
    }
}

impl<T: Element> From<&Buffer<T>> for Argument {
    fn from(buffer: &Buffer<T>) -> Self {
        Self::from(buffer.address())
    }
}
