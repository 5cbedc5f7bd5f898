//! What simulated GPUs did in the processes of a run: read from the lines that the preload library writes, and said
//! in words.

use std::{collections::BTreeMap, fmt};

use nv_simulator::engine::{KernelProfile, Profiles};

/// One process.
#[derive(Debug, Default, PartialEq, Eq)]
struct Process {
    program: String,
    statistics: BTreeMap<String, u64>,
    faults: Vec<String>,
    /// What was asked for and is not simulated, and how often.
    unsupported: Vec<(u64, String)>,
    troubles: Vec<String>,
    /// What is no trouble.
    notes: Vec<String>,
    profiles: Profiles,
    ended: bool,
}

/// What all processes of a run reported.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    processes: BTreeMap<u64, Process>,
    /// Lines that were not understood, as they are.
    strange: Vec<String>,
}

fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    plain
}

impl Report {
    /// Reads lines of the form `word TAB process id TAB text`.
    pub fn parse(text: &str) -> Self {
        let mut report = Self::default();
        for line in text.lines() {
            if report.take(line).is_none() {
                report.strange.push(line.to_owned());
            }
        }
        report
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let mut parts = line.splitn(3, '\t');
        let (word, id, text) = (parts.next()?, parts.next()?.parse().ok()?, unescape(parts.next()?));
        let process = self.processes.entry(id).or_default();
        match word {
            "start" => process.program = text,
            "fault" => process.faults.push(text),
            "trouble" => process.troubles.push(text),
            "note" => process.notes.push(text),
            "unsupported" => {
                let (count, what) = text.split_once(' ')?;
                process.unsupported.push((count.parse().ok()?, what.to_owned()));
            }
            "statistics" => {
                for pair in text.split(' ') {
                    let (name, value) = pair.split_once('=')?;
                    process.statistics.insert(name.to_owned(), value.parse().ok()?);
                }
            }
            "profile" => process.profiles.read_line(&text).ok()?,
            "end" => process.ended = true,
            _ => return None,
        }
        Some(())
    }

    /// The kernels of all processes, that with the most warp instructions first.
    pub fn take_profiles(&mut self) -> Vec<KernelProfile> {
        let processes = self.processes.values_mut();
        let mut all: Vec<_> =
            processes.flat_map(|process| std::mem::take(&mut process.profiles).into_sorted()).collect();
        all.sort_by_key(|profile| std::cmp::Reverse(profile.warps()));
        all
    }

    /// Whether a GPU faulted, lacked something, or the simulator failed.
    pub fn has_trouble(&self) -> bool {
        let bad = |p: &Process| !(p.faults.is_empty() && p.unsupported.is_empty() && p.troubles.is_empty());
        !self.strange.is_empty() || self.processes.values().any(bad)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.processes.is_empty() {
            writeln!(f, "mockgpu: no process opened a GPU")?;
        }
        for (id, process) in &self.processes {
            let Process { program, statistics, .. } = process;
            write!(f, "mockgpu: process {id} ({program}): ")?;
            let count = |name: &str| statistics.get(name).copied().unwrap_or(0);
            if statistics.is_empty() {
                writeln!(f, "no statistics: it was killed or crashed, or still runs")?;
            } else {
                writeln!(
                    f,
                    "{} kernels, {} warp instructions, {} bytes copied, {} methods on {} GPU(s)",
                    count("kernels"),
                    count("instructions"),
                    count("bytes_copied"),
                    count("methods"),
                    count("gpus")
                )?;
            }
            for fault in &process.faults {
                writeln!(f, "  fault: {fault}")?;
            }
            for (times, what) in &process.unsupported {
                writeln!(f, "  not supported, {times} times: {what}")?;
            }
            for trouble in &process.troubles {
                writeln!(f, "  trouble: {trouble}")?;
            }
            for note in &process.notes {
                writeln!(f, "  note: {note}")?;
            }
        }
        for line in &self.strange {
            writeln!(f, "mockgpu: a line of the report that was not understood: {line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "start\t7\tpython3\nstatistics\t7\tgpus=1 kernels=2 instructions=30\nend\t7\t\n";

    #[test]
    fn a_run_without_trouble_has_none() {
        let report = Report::parse(GOOD);
        assert!(!report.has_trouble());
        assert!(report.to_string().contains("process 7 (python3): 2 kernels, 30 warp instructions"));
    }

    #[test]
    fn faults_and_missing_parts_are_trouble_and_are_said_in_full() {
        let text =
            format!("{GOOD}fault\t7\tXid 13: a\\nb\nunsupported\t7\t2 class X (0x1)\ntrouble\t9\ta bug\n");
        let report = Report::parse(&text);
        assert!(report.has_trouble());
        let said = report.to_string();
        for part in
            ["fault: Xid 13: a\nb", "not supported, 2 times: class X (0x1)", "trouble: a bug", "killed"]
        {
            assert!(said.contains(part), "{part} in {said}");
        }
    }

    #[test]
    fn a_note_is_said_and_is_no_trouble() {
        let report = Report::parse(&format!("{GOOD}note\t7\tpolled\n"));
        assert!(!report.has_trouble() && report.to_string().contains("note: polled"));
    }

    #[test]
    fn a_strange_line_is_shown_and_is_trouble() {
        let report = Report::parse("what is this\n");
        assert!(report.has_trouble() && report.to_string().contains("not understood: what is this"));
    }
}
