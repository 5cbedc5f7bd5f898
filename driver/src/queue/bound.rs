//! Bound queues: encoded once into GPU memory, patched in place, submitted any number of times.

use super::{
    CommandId, Commands, Encoded,
    encode::{Place, arena_bytes, encode, folded},
};
use crate::{
    Device, Error, Kernel, Signal,
    channel::Engine,
    memory::{Allocation, Request},
    pushbuffer::upper_lower,
    qmd::Launch,
    queue::Command,
};

/// A queue in GPU memory. Patch it only while no submission of it runs; dropping it waits for the device.
#[derive(Debug)]
pub struct BoundQueue {
    device: Device,
    engine: Engine,
    encoded: Encoded,
    commands: Allocation,
    arena: Option<Allocation>,
    launches: Vec<Launch>,
    /// Signals and kernels in use.
    signals: Vec<Signal>,
    kernels: Vec<Kernel>,
}

impl BoundQueue {
    pub(crate) fn new(
        device: &Device,
        engine: Engine,
        commands: Commands,
        kernels: Vec<Kernel>,
    ) -> Result<Self, Error> {
        let gpu = device.gpu();
        let bytes = arena_bytes(gpu.generation, &commands.list);
        let arena = (bytes > 0)
            .then(|| Allocation::new(gpu, Request::video("the argument memory", bytes).visible()))
            .transpose()?;
        let context = device.context(arena.as_ref().map_or(0, Allocation::address));
        let encoded = encode(&context, &commands.list)?;
        let memory = Allocation::new(
            gpu,
            Request::video("the bound queue", encoded.words.len() as u64 * 4).visible(),
        )?;
        let launches = commands
            .list
            .into_iter()
            .filter_map(|command| match command {
                Command::Launch(launch) => Some(*launch),
                _ => None,
            })
            .collect();
        let signals = commands.signals;
        let this = Self {
            device: device.clone(),
            engine,
            encoded,
            commands: memory,
            arena,
            launches,
            signals,
            kernels,
        };
        for index in 0..this.encoded.words.len() {
            this.store(index)?;
        }
        for index in 0..this.encoded.launches.len() {
            this.store_launch(index)?;
        }
        Ok(this)
    }

    fn store(&self, index: usize) -> Result<(), Error> {
        self.commands.window()?.store32(index as u64 * 4, self.encoded.words[index])
    }

    fn store_launch(&self, index: usize) -> Result<(), Error> {
        let Some(arena) = &self.arena else { return Ok(()) };
        store_launch(arena, 0, &self.encoded.launches[index])
    }

    fn set_words(&mut self, first: usize, words: &[u32]) -> Result<(), Error> {
        for (index, word) in (first..).zip(words) {
            self.encoded.words[index] = *word;
            self.store(index)?;
        }
        Ok(())
    }

    fn place(&self, command: CommandId) -> Result<Place, Error> {
        self.encoded
            .places
            .get(command.0)
            .copied()
            .ok_or_else(|| Error::Queue(format!("the bound queue has no command {}", command.0)))
    }

    /// Gives a wait or a signal another signal and value.
    pub fn set_signal(&mut self, command: CommandId, signal: &Signal, value: u64) -> Result<(), Error> {
        let [address_upper, address_lower] = upper_lower(signal.address());
        let [upper, lower] = upper_lower(value);
        match self.place(command)? {
            Place::Semaphore(first) => {
                self.set_words(first, &[address_lower, address_upper, lower, upper])?;
            }
            Place::CopySemaphore(first) if upper == 0 => {
                self.set_words(first, &[address_upper, address_lower, lower])?;
            }
            Place::Slot(index, slot) => {
                self.encoded.launches[index].qmd.set_release(slot, Some(folded(signal.address(), value)))?;
                self.store_launch(index)?;
            }
            _ => {
                return Err(Error::Queue(format!(
                    "command {} is no semaphore that can hold {value:#x}",
                    command.0
                )));
            }
        }
        self.signals.push(signal.clone());
        Ok(())
    }

    /// Gives a copy other addresses and another length, below 4 GiB.
    pub fn set_copy(
        &mut self,
        command: CommandId,
        destination: u64,
        source: u64,
        bytes: u32,
    ) -> Result<(), Error> {
        let Place::Copy(first) = self.place(command)? else {
            return Err(Error::Queue(format!("command {} is no copy", command.0)));
        };
        let ([in_upper, in_lower], [out_upper, out_lower]) = (upper_lower(source), upper_lower(destination));
        self.set_words(first, &[in_upper, in_lower, out_upper, out_lower])?;
        self.set_words(first + 5, &[bytes])
    }

    /// Gives a launch another grid and block.
    pub fn set_dimensions(
        &mut self,
        command: CommandId,
        grid: [u32; 3],
        block: [u32; 3],
    ) -> Result<(), Error> {
        let Place::Launch(index) = self.place(command)? else {
            return Err(Error::Queue(format!("command {} is no launch", command.0)));
        };
        let generation = self.device.gpu().generation;
        let launch = &mut self.launches[index];
        let changed = Launch { grid, block, ..launch.clone() };
        changed.check(self.device.gpu())?;
        *launch = changed;
        let encoded = &mut self.encoded.launches[index];
        let arena = self.arena.as_ref().map_or(0, Allocation::address);
        let bank = launch.bank(generation, arena + encoded.bank_offset)?;
        encoded.qmd.set_grid(launch.grid_units())?;
        encoded.qmd.set_block(block)?;
        encoded.bank = bank;
        self.store_bank(index)
    }

    /// Gives a launch other arguments, checked as at first.
    pub fn set_arguments(&mut self, command: CommandId, arguments: &[crate::Argument]) -> Result<(), Error> {
        let Place::Launch(index) = self.place(command)? else {
            return Err(Error::Queue(format!("command {} is no launch", command.0)));
        };
        let launch = &mut self.launches[index];
        launch.parameters = crate::program::pack(&launch.info, arguments)?;
        let encoded = &mut self.encoded.launches[index];
        let arena = self.arena.as_ref().map_or(0, Allocation::address);
        encoded.bank = launch.bank(self.device.gpu().generation, arena + encoded.bank_offset)?;
        self.store_bank(index)
    }

    /// The bank's bytes: in the arena, and where they travel in the pushbuffer, there.
    fn store_bank(&mut self, index: usize) -> Result<(), Error> {
        if self.device.context(0).path == super::ArgumentPath::InlineToMemory {
            return Err(Error::Queue(
                "arguments that travel in the pushbuffer cannot be patched: bind with CpuWritten".to_owned(),
            ));
        }
        self.store_launch(index)
    }

    /// Hands the commands to the GPU once more.
    pub fn submit(&self) -> Result<(), Error> {
        let words = self.encoded.words.len() as u32;
        if words == 0 {
            return Ok(());
        }
        self.device
            .channel(self.engine)
            .submit_at(self.commands.address(), words, self.device.deadline())
            .map_err(|error| self.device.explain(error))
    }

    /// The encoded words, as they lie in GPU memory.
    pub fn words(&self) -> &[u32] {
        &self.encoded.words
    }

    /// Kernels in use.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }
}

/// Writes a launch's bank and QMD into an arena.
pub(crate) fn store_launch(
    arena: &Allocation,
    base: u64,
    launch: &super::encode::EncodedLaunch,
) -> Result<(), Error> {
    let window = arena.window()?;
    window.write(base + launch.bank_offset, &launch.bank)?;
    window.write(base + launch.qmd_offset, launch.qmd.bytes())
}

impl Drop for BoundQueue {
    fn drop(&mut self) {
        // The memory must not go while the GPU reads it. A dead channel reads nothing.
        let _ = self.device.drain(self.engine);
    }
}
