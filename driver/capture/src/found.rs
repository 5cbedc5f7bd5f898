//! A ring entry that was found, with everything that belongs to it: what it launches, waits for and releases.

use crate::{
    action::{Action, Stream, linked},
    event::{Memory, MemoryKind, Submission},
};

/// Reads bytes of GPU memory as they were for the submission; `None` where they are not to be had.
pub(crate) type Read<'a> = &'a mut dyn FnMut(u64, usize) -> Option<Vec<u8>>;

/// A submission that was found, with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) submission: Submission,
    pub(crate) memory: Vec<Memory>,
    /// Addresses and values.
    pub(crate) waits: Vec<(u64, u64)>,
    pub(crate) releases: Vec<(u64, u64)>,
}

impl Found {
    /// Looks at a submission of a channel whose earlier ones `stream` has followed. Sources of copies of up to `data` bytes
    /// are taken as well.
    pub(crate) fn of(submission: Submission, stream: &mut Stream, data: u64, read: Read<'_>) -> Self {
        let actions = submission.words.as_ref().map(|words| stream.follow(words)).unwrap_or_default();
        let version = stream.qmd_version();
        let mut found = Self { submission, memory: Vec::new(), waits: Vec::new(), releases: Vec::new() };
        for action in actions {
            let first = match action {
                Action::Acquire { address, payload, .. } => {
                    found.waits.push((address, payload));
                    continue;
                }
                Action::Release { address, payload, .. }
                | Action::CopyRelease { address, payload, .. }
                | Action::Report { address, payload, .. } => {
                    found.releases.push((address, payload));
                    continue;
                }
                Action::Copy { source, line, lines, release, .. } => {
                    found.releases.extend(release);
                    if lines == 1
                        && u64::from(line) <= data
                        && let Some(bytes) = read(source, line as usize)
                    {
                        found.memory.push(Memory { kind: MemoryKind::Other, address: source, bytes });
                    }
                    continue;
                }
                Action::Launch { qmd, .. } => qmd,
                _ => continue,
            };
            let mut read = |address, bytes| read(address, bytes).or_else(|| stream.written(address, bytes));
            for (address, bytes, links) in linked(version, first, &mut read) {
                if let Some(links) = links {
                    found.releases.extend(links.releases);
                    if let Some(bank) = links.bank
                        && let Some(bytes) = read(bank.address, bank.bytes as usize)
                    {
                        let address = bank.address;
                        found.memory.push(Memory { kind: MemoryKind::ConstantBank, address, bytes });
                    }
                }
                found.memory.push(Memory { kind: MemoryKind::Qmd, address, bytes });
            }
        }
        found
    }
}
