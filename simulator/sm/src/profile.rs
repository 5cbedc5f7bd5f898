//! What a launch does instruction by instruction and block by block, where that is asked for.
//!
//! Nothing of it is in the loop that executes: while a launch is observed its warps run alone and stop after each
//! instruction, and a worker that observes nothing asks once a slice whether it does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use sass::{Arch, FieldId, Op};

use super::core::Core;
use super::execute::memory::{self as space, Place};
use super::lanes::each;
use super::launch::Prepared;
use super::micro::Micro;

/// What is to be observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observe {
    /// Every instruction. Execution then takes many times as long.
    pub instructions: bool,
    /// When each block ran, and where.
    pub blocks: bool,
}

/// What was observed of a launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The instructions that were executed, by address.
    pub instructions: BTreeMap<u64, Executed>,
    /// The blocks, in the order in which they finished.
    pub blocks: Vec<Ran>,
}

/// How often an instruction was executed, and what it did to memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// The machine word.
    pub word: u128,
    /// Times that a warp executed it.
    pub warps: u64,
    /// Lanes that executed it, over all those times. Lanes whose guard kept them from it do not count.
    pub lanes: u64,
    /// What it did to memory; `None` if it is no access that is counted.
    pub traffic: Option<Traffic>,
}

/// Accesses to memory, over all times that an instruction was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of all lanes' accesses.
    pub bytes: u64,
    /// Sectors of 32 bytes of global and local memory that the accesses of a warp touch, each counted once for a warp.
    pub sectors: u64,
    /// As many as would hold the same bytes if they lay next to each other.
    pub least_sectors: u64,
    /// Times that the 32 banks of shared memory, 4 bytes wide each, must be asked: by the rule of NVIDIA's programming
    /// guide, for 32 lanes at a time, 16 with accesses of 8 bytes, 8 with accesses of 16.
    pub passes: u64,
    /// As many as there would be without two words of one bank.
    pub least_passes: u64,
}

impl Traffic {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.sectors += other.sectors;
        self.least_sectors += other.least_sectors;
        self.passes += other.passes;
        self.least_passes += other.least_passes;
    }
}

/// A block from its first turn to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The block's index.
    pub block: [u32; 3],
    /// The worker that executed it, counted from 0 in the order in which they joined the launch.
    pub worker: usize,
    /// When it began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
}

impl Executed {
    /// Adds instructions by address to others.
    pub fn add_all(to: &mut BTreeMap<u64, Self>, others: BTreeMap<u64, Self>) {
        for (address, executed) in others {
            let known = to.entry(address).or_insert_with(|| Self { word: executed.word, ..Self::default() });
            known.warps += executed.warps;
            known.lanes += executed.lanes;
            if let Some(traffic) = executed.traffic {
                known.traffic.get_or_insert_default().add(&traffic);
            }
        }
    }
}

impl Observed {
    /// Adds another.
    pub fn add(&mut self, other: Self) {
        Executed::add_all(&mut self.instructions, other.instructions);
        self.blocks.extend(other.blocks);
    }
}

/// An access that an instruction makes.
#[derive(Clone, Copy, Debug)]
struct Access {
    space: u8,
    bytes: u32,
}

/// The access that a word asks for, if its addresses can be told from its first operands.
fn access(word: u128, address: u64, arch: Arch) -> Option<Access> {
    let instruction = sass::decode(word, address, arch).ok()?;
    let space = match instruction.op {
        Op::Ldg | Op::Stg | Op::Red | Op::Redg | Op::Atomg | Op::AtomgCas => space::GLOBAL,
        Op::Ld | Op::St | Op::Atom | Op::AtomCas => space::GENERIC,
        Op::Lds | Op::Sts | Op::Atoms | Op::AtomsCas | Op::AtomsCast => space::SHARED,
        Op::Ldl | Op::Stl => space::LOCAL,
        _ => return None,
    };
    let bytes = bytes_of(instruction.spelling(FieldId::Size).unwrap_or(""))?;
    Some(Access { space, bytes })
}

/// Bytes of a size or type as nvdisasm spells it: `.U8`, `.64`, `.F16x2.RN`; 4 where it says nothing.
fn bytes_of(spelling: &str) -> Option<u32> {
    let Some(name) = spelling.split('.').nth(1) else { return Some(4) };
    let digits = name.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    let (bits, count) = digits.split_once('x').unwrap_or((digits, "1"));
    Some(bits.parse::<u32>().ok()? * count.parse::<u32>().ok()? / 8)
}

/// Counts a launch's instructions in one worker.
#[derive(Debug, Default)]
pub(super) struct Counting {
    sites: BTreeMap<u64, (Option<Access>, Executed)>,
}

impl Counting {
    /// Before a warp executes the instruction at an address: `core` has one member.
    pub fn before(&mut self, core: &mut Core<'_>, launch: &Prepared, address: u64, op: &Micro) {
        let (access, executed) = self.sites.entry(address).or_insert_with(|| {
            let mut bytes = [0; 16];
            // The page was made from the same bytes.
            let word = match launch.map.read(address, &mut bytes) {
                Ok(()) => u128::from_le_bytes(bytes),
                Err(_) => 0,
            };
            let arch = Arch::from_sm(launch.launch.sm);
            let access = arch.and_then(|arch| access(word, address, arch));
            let traffic = access.map(|_| Traffic::default());
            (access, Executed { word, traffic, ..Executed::default() })
        });
        let (Some(access), Some(traffic)) = (access, &mut executed.traffic) else { return };
        let skipped = core.skipped;
        let mask = core.masks(op)[0];
        // Looking is not executing.
        core.skipped = skipped;
        let places = each(mask).map(|lane| (lane, core.touched(op, access.space, lane)));
        traffic.add(&measure(places, access.bytes));
    }

    /// After it: times and lanes.
    pub fn after(&mut self, address: u64, warps: u64, lanes: u64) {
        if let Some((_, executed)) = self.sites.get_mut(&address) {
            executed.warps += warps;
            executed.lanes += lanes;
        }
    }

    /// What was counted.
    pub fn take(self) -> BTreeMap<u64, Executed> {
        self.sites.into_iter().map(|(address, (_, executed))| (address, executed)).collect()
    }
}

/// Bytes of a sector.
const SECTOR: u64 = 32;
/// Banks of shared memory.
const BANKS: u32 = 32;

/// What one access of a warp costs.
fn measure(places: impl Iterator<Item = (usize, Place)>, bytes: u32) -> Traffic {
    let mut traffic = Traffic::default();
    let (mut sectors, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    let mut local = BTreeSet::new();
    let mut local_words = 0;
    // Distinct words by the group of lanes that is served together.
    let mut words = BTreeSet::new();
    let together = (BANKS * 4 / bytes.max(4)) as usize;
    for (lane, place) in places {
        traffic.bytes += u64::from(bytes);
        match place {
            Place::Global(address) => {
                sectors.insert(address / SECTOR);
                addresses.insert(address);
            }
            Place::Shared(at) | Place::Cluster(at) => {
                words.extend((0..bytes.div_ceil(4)).map(|word| (lane / together, at / 4 + word)));
            }
            // Words of a warp's lanes lie next to each other.
            Place::Local(at) => {
                local_words += u64::from(bytes.div_ceil(4));
                local.extend((0..bytes.div_ceil(4)).map(|word| (at / 4 + word, lane / 8)));
            }
        }
    }
    traffic.sectors = (sectors.len() + local.len()) as u64;
    traffic.least_sectors =
        (addresses.len() as u64 * u64::from(bytes)).div_ceil(SECTOR) + (local_words * 4).div_ceil(SECTOR);
    let groups: BTreeSet<usize> = words.iter().map(|(group, _)| *group).collect();
    for group in groups {
        let mut banks = [0; BANKS as usize];
        for (_, word) in words.iter().filter(|(of, _)| *of == group) {
            banks[(word % BANKS) as usize] += 1;
        }
        traffic.passes += banks.into_iter().max().unwrap_or(0);
        traffic.least_passes += 1;
    }
    traffic
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(stride: u32, bytes: u32) -> Traffic {
        measure((0..32).map(|lane| (lane, Place::Shared(lane as u32 * stride))), bytes)
    }

    fn global(stride: u64, bytes: u32) -> Traffic {
        measure((0..32).map(|lane| (lane, Place::Global(0x1000 + lane as u64 * stride))), bytes)
    }

    #[test]
    fn sizes_are_read_from_their_spelling() {
        let cases = [("", 4), (".U8", 1), (".64", 8), (".128", 16), (".F16x2.RN", 4), (".F32x4", 16)];
        for (spelling, bytes) in cases {
            assert_eq!(bytes_of(spelling), Some(bytes), "{spelling}");
        }
        assert_eq!(bytes_of(".CAST"), None);
    }

    #[test]
    fn a_run_of_words_is_four_sectors_and_a_column_is_thirty_two() {
        assert_eq!((global(4, 4).sectors, global(4, 4).least_sectors), (4, 4));
        assert_eq!((global(128, 4).sectors, global(128, 4).least_sectors), (32, 4));
        assert_eq!((global(0, 4).sectors, global(0, 4).least_sectors), (1, 1));
        assert_eq!((global(16, 16).sectors, global(16, 16).bytes), (16, 512));
    }

    #[test]
    fn words_of_one_bank_are_served_one_after_the_other() {
        assert_eq!((shared(4, 4).passes, shared(4, 4).least_passes), (1, 1));
        assert_eq!(shared(8, 4).passes, 2);
        assert_eq!(shared(128, 4).passes, 32);
        assert_eq!(shared(132, 4).passes, 1);
        // One word for all is read once.
        assert_eq!(shared(0, 4).passes, 1);
        assert_eq!((shared(8, 8).passes, shared(8, 8).least_passes), (2, 2));
        assert_eq!((shared(16, 16).passes, shared(16, 16).least_passes), (4, 4));
    }

    #[test]
    fn local_memory_of_lanes_lies_side_by_side() {
        let same = measure((0..32).map(|lane| (lane, Place::Local(16))), 4);
        assert_eq!((same.sectors, same.least_sectors), (4, 4));
        let apart = measure((0..32).map(|lane| (lane, Place::Local(4 * lane as u32))), 4);
        assert_eq!((apart.sectors, apart.least_sectors), (32, 4));
    }
}
