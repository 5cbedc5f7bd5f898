//! The copy queue.

use super::{BoundQueue, Command, Commands, shared_methods};
use crate::{Device, Error, Signal, channel::Engine};

/// Longer copies are split: LINE_LENGTH_IN has 32 bits, and today's client stays below 2 GiB.
const LONGEST: u64 = 1 << 31;

/// Fills are split likewise.
const LONGEST_FILL: u64 = LONGEST / 4;

/// The shape of a copy of several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Bytes of a line.
    pub bytes: u32,
    /// How many.
    pub count: u32,
    /// Bytes from the start of a line to the next in the source; negative ones go backwards.
    pub source_pitch: i32,
    /// The same in the destination.
    pub destination_pitch: i32,
}

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

    /// Copies lines that lie apart from each other.
    pub fn copy_lines(&mut self, destination: u64, source: u64, lines: Lines) -> &mut Self {
        self.commands.list.push(Command::CopyLines { destination, source, lines });
        self
    }

    /// Stores one 32-bit word again and again, `words` times.
    pub fn fill(&mut self, destination: u64, value: u32, words: u64) -> &mut Self {
        for start in (0..words).step_by(LONGEST_FILL as usize) {
            self.commands.list.push(Command::Fill {
                destination: destination + 4 * start,
                value,
                words: (words - start).min(LONGEST_FILL),
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
