//! The copy queue.

use super::{BoundQueue, Command, Commands, shared_methods};
use crate::{Device, Error, Signal, channel::Engine};

/// Longer copies are split: LINE_LENGTH_IN has 32 bits, and today's client stays below 2 GiB.
const LONGEST: u64 = 1 << 31;

/// Commands for the copy channel.
#[derive(Clone, Debug)]
pub struct CopyQueue {
    device: Device,
    pub(crate) commands: Commands,
}

impl CopyQueue {
    /// An empty queue.
    pub fn new(device: &Device) -> Self {
        Self { device: device.clone(), commands: Commands::default() }
    }

    shared_methods!();

    /// Copies bytes between GPU addresses.
    pub fn copy(&mut self, destination: u64, source: u64, bytes: u64) -> &mut Self {
        for start in (0..bytes).step_by(LONGEST as usize) {
            self.commands.list.push(Command::Copy {
                destination: destination + start,
                source: source + start,
                bytes: (bytes - start).min(LONGEST),
            });
        }
        self
    }

    /// Sets a signal once every copy before has finished: by the copy engine, whose payload has 32 bits, or for a larger
    /// value by the host.
    pub fn signal(&mut self, signal: &Signal, value: u64) -> &mut Self {
        match u32::try_from(value) {
            Ok(value) => {
                self.commands.signals.push(signal.clone());
                self.commands.list.push(Command::CopyRelease { address: signal.address(), value });
            }
            Err(_) => self.commands.release(signal, value, false),
        }
        self
    }

    /// Encodes the commands and hands them to the GPU.
    pub fn submit(&self) -> Result<(), Error> {
        self.device.submit(Engine::Copy, &self.commands)
    }

    /// Copies the encoded commands into GPU memory of their own, to be patched and submitted again and again.
    pub fn bind(self) -> Result<BoundQueue, Error> {
        BoundQueue::new(&self.device, Engine::Copy, self.commands, Vec::new())
    }
}
