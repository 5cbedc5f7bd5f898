//! The compute queue.

use super::{BoundQueue, Command, Commands, shared_methods};
use crate::{Argument, Device, Error, Kernel, LaunchOptions, Signal, channel::Engine};

/// Commands for the compute channel. Consecutive launches are chained: each starts when the one before has finished.
#[derive(Clone, Debug)]
pub struct ComputeQueue {
    device: Device,
    pub(crate) commands: Commands,
    modules: Vec<Kernel>,
}

impl ComputeQueue {
    /// An empty queue.
    pub fn new(device: &Device) -> Self {
        Self { device: device.clone(), commands: Commands::default(), modules: Vec::new() }
    }

    shared_methods!();

    /// Sets a signal once everything before has finished. After a launch this needs no method: the launch does it.
    pub fn signal(&mut self, signal: &Signal, value: u64) -> &mut Self {
        self.commands.release(signal, value, false);
        self
    }

    /// Invalidates the shader caches: later launches see what was written before.
    pub fn memory_barrier(&mut self) -> &mut Self {
        self.commands.list.push(Command::Barrier);
        self
    }

    /// Writes bytes that travel in the pushbuffer to a GPU address, both a multiple of 4.
    pub fn copy_from_cpu(&mut self, address: u64, data: &[u8]) -> &mut Self {
        self.commands.list.push(Command::Inline { address, data: data.to_vec() });
        self
    }

    /// Launches a kernel; its arguments are checked here.
    pub fn exec(
        &mut self,
        kernel: &Kernel,
        grid: [u32; 3],
        block: [u32; 3],
        arguments: &[Argument],
    ) -> Result<&mut Self, Error> {
        self.exec_with_shared(kernel, grid, block, 0, arguments)
    }

    /// Launches a kernel with so many bytes of dynamic shared memory.
    pub fn exec_with_shared(
        &mut self,
        kernel: &Kernel,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared: u32,
        arguments: &[Argument],
    ) -> Result<&mut Self, Error> {
        let options = LaunchOptions { dynamic_shared, ..LaunchOptions::default() };
        self.exec_with(kernel, grid, block, &options, arguments)
    }

    /// Launches a kernel with clusters, or cooperatively.
    pub fn exec_with(
        &mut self,
        kernel: &Kernel,
        grid: [u32; 3],
        block: [u32; 3],
        options: &LaunchOptions,
        arguments: &[Argument],
    ) -> Result<&mut Self, Error> {
        let launch = kernel.prepare(grid, block, options, arguments)?;
        launch.check(self.device.gpu())?;
        self.commands.list.push(Command::Launch(Box::new(launch)));
        self.modules.push(kernel.clone());
        Ok(self)
    }

    /// Encodes the commands and hands them to the GPU.
    pub fn submit(&self) -> Result<(), Error> {
        self.device.submit(Engine::Compute, &self.commands)
    }

    /// Copies the encoded commands into GPU memory of their own, to be patched and submitted again and again.
    pub fn bind(self) -> Result<BoundQueue, Error> {
        BoundQueue::new(&self.device, Engine::Compute, self.commands, self.modules)
    }
}
