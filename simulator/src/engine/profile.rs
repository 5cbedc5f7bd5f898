//! What the launches of each kernel did, added up.

use std::{collections::BTreeMap, fmt::Write as _};

use super::Grid;
use crate::sm::{Executed, Traffic};

/// The launches of one kernel, together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelProfile {
    /// Architecture number, as 89 for sm_89.
    pub sm: u32,
    /// Virtual address of the first instruction.
    pub program_address: u64,
    /// How often it was launched.
    pub launches: u64,
    /// Blocks of all launches.
    pub blocks: u64,
    /// Threads of a block of the last launch.
    pub threads: u64,
    /// The instructions that were executed, by address.
    pub instructions: BTreeMap<u64, Executed>,
}

/// A line of text that is no part of a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no line of a profile")]
pub struct ProfileError(pub String);

impl KernelProfile {
    fn of(grid: &Grid) -> Self {
        let launch = &grid.launch;
        let product = |sizes: [u32; 3]| sizes.into_iter().map(u64::from).product();
        Self {
            sm: launch.sm,
            program_address: launch.program_address,
            launches: 1,
            blocks: product(launch.grid),
            threads: product(launch.block),
            instructions: grid.observed.instructions.clone(),
        }
    }

    /// Whether both ran the same code.
    fn is_same(&self, other: &Self) -> bool {
        let same = |address: &u64, executed: &Executed| {
            other.instructions.get(address).is_none_or(|known| known.word == executed.word)
        };
        (self.sm, self.program_address) == (other.sm, other.program_address)
            && self.instructions.iter().all(|(address, executed)| same(address, executed))
    }

    /// Adds the launches of another profile of the same code to the launches of this one.
    fn add(&mut self, other: Self) {
        self.launches += other.launches;
        self.blocks += other.blocks;
        self.threads = other.threads;
        Executed::add_all(&mut self.instructions, other.instructions);
    }

    /// Warp instructions in all.
    pub fn warps(&self) -> u64 {
        self.instructions.values().map(|executed| executed.warps).sum()
    }

    /// Lane instructions in all.
    pub fn lanes(&self) -> u64 {
        self.instructions.values().map(|executed| executed.lanes).sum()
    }

    /// As lines of text: one for the kernel, one for each instruction.
    pub fn lines(&self) -> Vec<String> {
        let Self { sm, program_address, launches, blocks, threads, instructions } = self;
        let mut lines = vec![format!("kernel {sm} {program_address:x} {launches} {blocks} {threads}")];
        for (address, Executed { word, warps, lanes, traffic }) in instructions {
            let mut line = format!("{address:x} {word:x} {warps} {lanes}");
            if let Some(Traffic { bytes, sectors, least_sectors, passes, least_passes }) = traffic {
                // Writing to a string cannot fail.
                let _ = write!(line, " {bytes} {sectors} {least_sectors} {passes} {least_passes}");
            }
            lines.push(line);
        }
        lines
    }
}

/// The profiles of all kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profiles(Vec<KernelProfile>);

impl Profiles {
    /// None yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a launch.
    pub fn add(&mut self, grid: &Grid) {
        let new = KernelProfile::of(grid);
        match self.0.iter_mut().find(|known| known.is_same(&new)) {
            Some(known) => known.add(new),
            None => self.0.push(new),
        }
    }

    /// Every kernel, that with the most warp instructions first.
    pub fn into_sorted(self) -> Vec<KernelProfile> {
        let mut all = self.0;
        all.sort_by_key(|profile| std::cmp::Reverse(profile.warps()));
        all
    }

    /// Adds a line that [`KernelProfile::lines`] made; those of a kernel must follow each other.
    ///
    /// # Errors
    /// The line is none of those.
    pub fn read_line(&mut self, line: &str) -> Result<(), ProfileError> {
        self.line(line).ok_or_else(|| ProfileError(line.to_owned()))
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        let mut word = || words.next();
        let decimal = |text: Option<&str>| text?.parse::<u64>().ok();
        let first = word()?;
        if first == "kernel" {
            self.0.push(KernelProfile {
                sm: word()?.parse().ok()?,
                program_address: u64::from_str_radix(word()?, 16).ok()?,
                launches: decimal(word())?,
                blocks: decimal(word())?,
                threads: decimal(word())?,
                instructions: BTreeMap::new(),
            });
            return Some(());
        }
        let address = u64::from_str_radix(first, 16).ok()?;
        let machine_word = u128::from_str_radix(word()?, 16).ok()?;
        let (warps, lanes) = (decimal(word())?, decimal(word())?);
        let traffic = match word() {
            None => None,
            Some(bytes) => Some(Traffic {
                bytes: bytes.parse().ok()?,
                sectors: decimal(word())?,
                least_sectors: decimal(word())?,
                passes: decimal(word())?,
                least_passes: decimal(word())?,
            }),
        };
        let executed = Executed { word: machine_word, warps, lanes, traffic };
        self.0.last_mut()?.instructions.insert(address, executed);
        Some(())
    }
}
