//! Profiles of kernels in words: exact counts, the hottest instructions, and the disassembly with counts beside it.
//!
//! The counts come from [`nv_simulator`], which executes the machine code; nothing is sampled. What a cubin does not say
//! (names, source lines) is left out.

use std::{collections::BTreeMap, fmt::Write as _};

use nv_simulator::{
    engine::KernelProfile,
    sm::{Executed, Traffic},
};
use sass::Arch;
use serde_json::{Value, json};

pub use nv_simulator::source::Lines;
use nv_simulator::source::Programs;

/// Instructions that are named as the hottest.
const HOTTEST: usize = 5;

/// What is known of a kernel's code beside the code.
#[derive(Debug, Default)]
pub struct Names {
    /// Its name.
    pub kernel: Option<String>,
    /// Its source lines, where they are known by the same name.
    pub lines: Lines,
}

impl Names {
    /// What cubins say of the kernel that was executed.
    pub fn of(profile: &KernelProfile, programs: &Programs) -> Self {
        let words = profile.instructions.iter();
        let words =
            words.map(|(address, executed)| (address.wrapping_sub(profile.program_address), executed.word));
        programs.executed(words).map_or_else(Self::default, |(name, lines)| Self {
            kernel: Some(name.to_owned()),
            lines: lines.clone(),
        })
    }
}

/// An instruction with its counts.
struct Line<'a> {
    offset: u64,
    executed: &'a Executed,
    text: String,
    source: Option<String>,
}

fn disassemble(word: u128, address: u64, sm: u32) -> String {
    match Arch::from_sm(sm).map(|arch| sass::decode(word, address, arch)) {
        Some(Ok(instruction)) => instruction.to_string(),
        _ => format!("{word:#034x}"),
    }
}

/// The mnemonic with what narrows it down first: `LDG.E` is `LDG`.
fn mnemonic(text: &str) -> &str {
    let word = text.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or(text);
    word.split(['.', ';']).next().unwrap_or(word)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

fn lanes(executed: &Executed) -> f64 {
    if executed.warps == 0 { 0.0 } else { executed.lanes as f64 / executed.warps as f64 }
}

fn count(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// What an access costs, in words.
fn cost(traffic: &Traffic) -> String {
    let mut parts = Vec::new();
    if traffic.sectors > 0 {
        let mut part = count(traffic.sectors, "sector", "sectors");
        if traffic.sectors > traffic.least_sectors {
            let _ = write!(part, ", {} would do", traffic.least_sectors);
        }
        parts.push(part);
    }
    if traffic.passes > 0 {
        let conflicts = traffic.passes.saturating_sub(traffic.least_passes);
        let mut part = count(traffic.passes, "pass", "passes");
        if conflicts > 0 {
            let _ = write!(part, ", {conflicts} of them for bank conflicts");
        }
        parts.push(part);
    }
    parts.join("; ")
}

fn listing<'a>(profile: &'a KernelProfile, names: &Names) -> Vec<Line<'a>> {
    let line = |(address, executed): (&u64, &'a Executed)| {
        // A kernel may call functions in front of it.
        let offset = address.wrapping_sub(profile.program_address);
        let source = names.kernel.as_ref().and_then(|kernel| names.lines.find(kernel, offset));
        Line {
            offset,
            executed,
            text: disassemble(executed.word, *address, profile.sm),
            source: source.map(|(file, line)| format!("{file}:{line}")),
        }
    };
    profile.instructions.iter().map(line).collect()
}

/// Sums by mnemonic, the largest first.
fn by_mnemonic(lines: &[Line<'_>]) -> Vec<(String, u64)> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for line in lines {
        *sums.entry(mnemonic(&line.text)).or_default() += line.executed.warps;
    }
    let mut sums: Vec<(String, u64)> = sums.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    sums
}

fn total(profile: &KernelProfile) -> Traffic {
    let mut total = Traffic::default();
    profile.instructions.values().filter_map(|executed| executed.traffic).for_each(|one| total.add(&one));
    total
}

/// The profile as text, with the disassembly where `whole`.
pub fn text(profile: &KernelProfile, names: &Names, whole: bool) -> String {
    let lines = listing(profile, names);
    let (warps, all_lanes) = (profile.warps(), profile.lanes());
    let mut out = String::new();
    let kernel =
        names.kernel.clone().unwrap_or_else(|| format!("the kernel at {:#x}", profile.program_address));
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "profile of {kernel}: {}, {} of {}",
        count(profile.launches, "launch", "launches"),
        count(profile.blocks, "block", "blocks"),
        count(profile.threads, "thread", "threads")
    );
    let average = if warps == 0 { 0.0 } else { all_lanes as f64 / warps as f64 };
    let _ = writeln!(
        out,
        "  {warps} warp instructions, {all_lanes} lane instructions, {average:.1} lanes on average"
    );
    let cost = cost(&total(profile));
    if !cost.is_empty() {
        let _ = writeln!(out, "  memory: {cost}");
    }
    let sums = by_mnemonic(&lines);
    let shown: Vec<String> =
        sums.iter().take(8).map(|(name, sum)| format!("{name} {:.0} %", share(*sum, warps))).collect();
    let _ = writeln!(out, "  by instruction: {}", shown.join(", "));
    let mut hottest: Vec<&Line<'_>> = lines.iter().collect();
    hottest.sort_by_key(|line| std::cmp::Reverse(line.executed.warps));
    let _ = writeln!(out, "  hottest:");
    for line in hottest.iter().take(HOTTEST) {
        let at = line.source.as_ref().map(|source| format!("  {source}")).unwrap_or_default();
        let part = share(line.executed.warps, warps);
        let _ = writeln!(out, "    {part:5.1} %  {:04x}  {}{at}", line.offset, line.text);
    }
    if whole {
        let _ = writeln!(out, "  {:>10} {:>6}  offset  instruction", "times", "lanes");
        let mut source = None;
        let mut next = lines.first().map_or(0, |line| line.offset);
        for line in &lines {
            if line.offset != next {
                let _ = writeln!(out, "  {:>10}", "...");
            }
            next = line.offset + 16;
            if line.source.is_some() && line.source != source {
                source.clone_from(&line.source);
                let _ = writeln!(out, "  {:>19}  // {}", "", source.as_deref().unwrap_or(""));
            }
            let cost =
                line.executed.traffic.map(|traffic| self::cost(&traffic)).filter(|cost| !cost.is_empty());
            let cost = cost.map(|cost| format!("  [{cost}]")).unwrap_or_default();
            let Executed { warps, .. } = line.executed;
            let _ = writeln!(
                out,
                "  {warps:>10} {:>6.1}  {:04x}    {}{cost}",
                lanes(line.executed),
                line.offset,
                line.text
            );
        }
    }
    out
}

/// The profile as JSON.
pub fn to_json(profile: &KernelProfile, names: &Names) -> Value {
    let traffic = |traffic: &Traffic| {
        json!({
            "bytes": traffic.bytes,
            "sectors": traffic.sectors,
            "least_sectors": traffic.least_sectors,
            "passes": traffic.passes,
            "least_passes": traffic.least_passes,
        })
    };
    let lines = listing(profile, names);
    let instructions: Vec<Value> = lines
        .iter()
        .map(|line| {
            json!({
                "offset": line.offset,
                "text": line.text,
                "warps": line.executed.warps,
                "lanes": line.executed.lanes,
                "traffic": line.executed.traffic.as_ref().map(traffic),
                "source": line.source,
            })
        })
        .collect();
    json!({
        "kernel": names.kernel,
        "program_address": profile.program_address,
        "launches": profile.launches,
        "blocks": profile.blocks,
        "threads": profile.threads,
        "warp_instructions": profile.warps(),
        "lane_instructions": profile.lanes(),
        "traffic": traffic(&total(profile)),
        "instructions": instructions,
    })
}
