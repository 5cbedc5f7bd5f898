//! Queues: lists of commands, encoded when they are submitted or bound.

mod bound;
mod compute;
mod copy;
mod encode;

pub use bound::BoundQueue;
pub(crate) use bound::store_launch;
pub use compute::ComputeQueue;
pub use copy::{CopyQueue, Lines};
pub(crate) use encode::{Context, Encoded, arena_bytes, encode};

use crate::{Signal, qmd::Launch};

/// Which command of a queue, in the order they were added: for patching a bound queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandId(pub(crate) usize);

/// Where kernel arguments are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ArgumentPath {
    /// The CPU stores them into GPU memory that it has mapped: what today's client does.
    #[default]
    CpuWritten,
    /// They travel in the pushbuffer, through inline-to-memory: what the seed does.
    InlineToMemory,
}

/// When a host acquire passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The value is reached, modulo its width: `(memory - value)` is not negative.
    GreaterOrEqual,
    /// The value is there exactly.
    Equal,
    /// A bit of the value is set. 32 bits.
    AnyBit,
    /// A bit outside the value is clear in memory (ACQ_NOR). 32 bits.
    Nor,
}

#[derive(Clone, Debug)]
pub(crate) enum Command {
    Wait { address: u64, value: u64, condition: Condition, wide: bool },
    Release { address: u64, value: u64, timestamp: bool, wide: bool },
    CopyRelease { address: u64, value: u32 },
    Barrier,
    Inline { address: u64, data: Vec<u8> },
    Launch(Box<Launch>),
    Copy { destination: u64, source: u64, bytes: u64 },
    CopyLines { destination: u64, source: u64, lines: Lines },
    Fill { destination: u64, value: u32, words: u64 },
    Words(Vec<u32>),
}

/// Commands and the signals they use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commands {
    pub(crate) list: Vec<Command>,
    pub(crate) signals: Vec<Signal>,
}

impl Commands {
    pub(crate) fn wait(&mut self, signal: &Signal, value: u64) {
        self.signals.push(signal.clone());
        let condition = Condition::GreaterOrEqual;
        self.list.push(Command::Wait { address: signal.address(), value, condition, wide: true });
    }

    pub(crate) fn release(&mut self, signal: &Signal, value: u64, timestamp: bool) {
        self.signals.push(signal.clone());
        self.list.push(Command::Release { address: signal.address(), value, timestamp, wide: true });
    }

    pub(crate) fn last(&self) -> Option<CommandId> {
        self.list.len().checked_sub(1).map(CommandId)
    }
}

/// The methods that both queues have.
macro_rules! shared_methods {
    () => {
        /// Commands so far.
        pub fn len(&self) -> usize {
            self.commands.list.len()
        }

        /// Whether there are none.
        pub fn is_empty(&self) -> bool {
            self.commands.list.is_empty()
        }

        /// The command added last.
        pub fn last(&self) -> Option<super::CommandId> {
            self.commands.last()
        }

        /// Waits until a signal is at least `value` (64 bits, modulo).
        pub fn wait(&mut self, signal: &crate::Signal, value: u64) -> &mut Self {
            self.commands.wait(signal, value);
            self
        }

        /// Stores the GPU's time beside a signal once everything before has finished; its value becomes 0.
        pub fn timestamp(&mut self, signal: &crate::Signal) -> &mut Self {
            self.commands.release(signal, 0, true);
            self
        }

        /// Stores a number at a GPU address once everything before has finished; `wide` stores 64 bits, else 32.
        pub fn write(&mut self, address: u64, value: u64, wide: bool) -> &mut Self {
            self.commands.list.push(super::Command::Release { address, value, timestamp: false, wide });
            self
        }

        /// Words that the caller has encoded, method headers with their data, as they are. What they launch is not
        /// chained with other launches. Classes are bound as this driver binds them: compute to subchannel 1 of its
        /// channel, copy to subchannel 4.
        pub fn words(&mut self, words: &[u32]) -> &mut Self {
            self.commands.list.push(super::Command::Words(words.to_vec()));
            self
        }

        /// Waits for a number at a GPU address; `wide` compares 64 bits, else 32.
        pub fn poll(
            &mut self,
            address: u64,
            value: u64,
            condition: super::Condition,
            wide: bool,
        ) -> &mut Self {
            self.commands.list.push(super::Command::Wait { address, value, condition, wide });
            self
        }
    };
}
pub(crate) use shared_methods;
