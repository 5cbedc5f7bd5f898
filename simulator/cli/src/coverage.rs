//! `mockgpu report`: which machine instructions are known, checked and executed; for all generations, or for what a
//! cubin uses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};

use clap::Args;
use nv_simulator::sm::executes;
use sass::{Arch, Instruction};

use crate::{
    dump::sass::{SassError, functions, instructions},
    source::{self, SourceError},
};

/// What to report on.
#[derive(Debug, Args)]
pub struct Coverage {
    /// A cubin. Without one, the report is a table of all generations.
    file: Option<PathBuf>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum CoverageError {
    /// The file is no cubin that can be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Its code cannot be listed.
    #[error(transparent)]
    Sass(#[from] SassError),
    /// A table of words and texts is missing or damaged.
    #[error(transparent)]
    Fixture(#[from] fixtures::FixtureError),
}

/// The mnemonic with its modifiers: the text without guard and operands.
fn spelling(instruction: &Instruction) -> String {
    let text = instruction.to_string();
    let text = match text.split_once(' ') {
        Some((guard, rest)) if guard.starts_with('@') => rest,
        _ => &text,
    };
    text.split(' ').next().unwrap_or("").to_owned()
}

/// One generation's line of the table.
struct Row {
    arch: Arch,
    rows: usize,
    mnemonics: usize,
    compared_rows: usize,
    words: usize,
    equal: usize,
    executed_rows: usize,
    executed: usize,
    /// Mnemonics of words that are decoded and not executed.
    missing: BTreeSet<&'static str>,
}

fn row(arch: Arch) -> Result<Row, CoverageError> {
    let known = || sass::rows().iter().filter(|row| row.exists_on(arch));
    let file = format!("sass/{arch}.txt");
    let text = fixtures::text(&file)?;
    let mut row = Row {
        arch,
        rows: known().count(),
        mnemonics: known().map(|row| row.op).collect::<BTreeSet<_>>().len(),
        compared_rows: 0,
        words: 0,
        equal: 0,
        executed_rows: 0,
        executed: 0,
        missing: BTreeSet::new(),
    };
    let (mut compared, mut run) = (BTreeSet::new(), BTreeSet::new());
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let malformed = || fixtures::FixtureError::Malformed { file: file.clone(), line: index + 1 };
        let mut parts = line.splitn(3, ' ');
        let mut next = || parts.next().ok_or_else(malformed);
        let word = u128::from_str_radix(next()?, 16).map_err(|_| malformed())?;
        let address = u64::from_str_radix(next()?, 16).map_err(|_| malformed())?;
        let expected = next()?;
        row.words += 1;
        let Ok(instruction) = sass::decode(word, address, arch) else { continue };
        row.equal += usize::from(instruction.to_string() == expected);
        let identity = std::ptr::from_ref(instruction.row).addr();
        compared.insert(identity);
        if executes(&instruction).is_ok() {
            row.executed += 1;
            run.insert(identity);
        } else {
            row.missing.insert(instruction.op.name());
        }
    }
    (row.compared_rows, row.executed_rows) = (compared.len(), run.len());
    Ok(row)
}

/// The table of all generations, in Markdown: `simulator/COVERAGE.md`.
fn table() -> Result<String, CoverageError> {
    let rows = Arch::ALL.into_iter().map(row).collect::<Result<Vec<_>, _>>()?;
    let mut out = String::from(
        "# Which machine instructions are known, checked and executed\n\n\
         Made by `cargo run -q -- report > simulator/COVERAGE.md`.\n\n\
         A row is one opcode with one form of its operands. Words are those of `fixtures/sass`: two of each opcode, set of\n\
         modifiers and shape of operands in kernels compiled by nvcc, with nvdisasm's text. A word is executed where the\n\
         interpreter takes it with all its modifiers.\n\n\
         | | mnemonics | rows | rows met in words | rows executed | words | text equal to nvdisasm's | executed |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in &rows {
        let Row { arch, rows, mnemonics, compared_rows, words, equal, executed_rows, executed, .. } = row;
        let _ = writeln!(
            out,
            "| {arch} | {mnemonics} | {rows} | {compared_rows} | {executed_rows} | {words} | {equal} | {executed} |"
        );
    }
    out.push_str("\nDecoded and not executed, or not in every form:\n\n");
    for row in &rows {
        let missing: Vec<&str> = row.missing.iter().copied().collect();
        let _ = writeln!(out, "- {}: {}", row.arch, missing.join(", "));
    }
    Ok(out)
}

/// What a cubin's code uses, and what of it is missing.
fn cubin(path: &Path) -> Result<String, CoverageError> {
    let (_, cubin) = source::cubin(path)?;
    let arch = Arch::from_sm(cubin.sm()).ok_or(SassError::Architecture(cubin.sm()))?;
    let image = cubin.link_with(0, |_| Some(0)).map_err(SassError::from)?;
    // By spelling: how often, and why not.
    let mut used: BTreeMap<String, (usize, Option<String>)> = BTreeMap::new();
    for (_, range) in functions(&cubin) {
        for (_, _, decoded) in instructions(&image, &range, arch) {
            let (name, trouble) = match decoded {
                Ok(instruction) => (spelling(&instruction), executes(&instruction).err()),
                Err(error) => (error.to_string(), Some("unknown".into())),
            };
            let entry = used.entry(name).or_default();
            entry.0 += 1;
            entry.1 = entry.1.take().or(trouble);
        }
    }
    let total: usize = used.values().map(|(count, _)| count).sum();
    let bad: Vec<_> = used.iter().filter_map(|(name, (n, why))| Some((name, n, why.as_ref()?))).collect();
    let lost: usize = bad.iter().map(|(_, count, _)| **count).sum();
    let mut out = format!(
        "{}, {arch}: {total} instructions of {} kinds; {lost} instructions of {} kinds are not executed\n",
        path.display(),
        used.len(),
        bad.len()
    );
    for (name, count, why) in &bad {
        let _ = writeln!(out, "  {count:6} {name}: {why}");
    }
    out.push_str("executed:\n");
    for (name, (count, _)) in used.iter().filter(|(_, (_, why))| why.is_none()) {
        let _ = writeln!(out, "  {count:6} {name}");
    }
    Ok(out)
}

/// The report.
pub fn run(coverage: &Coverage) -> Result<String, CoverageError> {
    coverage.file.as_deref().map_or_else(table, cubin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_table_is_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../COVERAGE.md");
        let committed = std::fs::read_to_string(path).unwrap();
        assert_eq!(committed, table().unwrap(), "run `cargo run -q -- report > simulator/COVERAGE.md`");
    }

    #[test]
    fn a_cubin_names_what_it_uses() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cubin/sm_89/vector_add.cubin");
        let text = cubin(&path).unwrap();
        assert!(text.contains("0 instructions of 0 kinds are not executed"), "{text}");
        assert!(text.contains(" FADD\n"), "{text}");
    }
}
