//! What the code base promises about itself: who depends on whom, and that every `unsafe` says why it is sound.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// Package name and what it depends on, from the lock file (development dependencies included).
fn dependencies() -> BTreeMap<&'static str, Vec<&'static str>> {
    let lock = include_str!("../../Cargo.lock");
    let mut packages = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let name = package.split('"').nth(1).unwrap_or("");
        let list = package.split_once("dependencies = [").map_or("", |(_, rest)| rest);
        let list = list.split_once(']').map_or("", |(list, _)| list);
        // A line is "name" or "name version".
        let names = list.lines().filter_map(|line| line.trim().strip_prefix('"'));
        let names = names.filter_map(|rest| rest.split(['"', ' ']).next()).collect::<Vec<_>>();
        packages.entry(name).or_insert_with(Vec::new).extend(names);
    }
    packages
}

fn reached(from: &str) -> BTreeSet<&'static str> {
    let packages = dependencies();
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = packages[from].clone();
    while let Some(name) = open.pop() {
        let (name, list) = packages.get_key_value(name).unwrap_or_else(|| panic!("no package {name}"));
        if found.insert(*name) {
            open.extend(list);
        }
    }
    found
}

#[test]
fn driver_and_simulator_never_see_each_other() {
    let (driver, simulator) = (reached("nv-driver"), reached("nv-simulator"));
    assert!(driver.contains("nv-abi") && simulator.contains("nv-abi"), "the lock file is not read right");
    for forbidden in ["nv-simulator", "sass", "mockgpu", "mockgpu-preload", "tests"] {
        assert!(!driver.contains(forbidden), "nv-driver reaches {forbidden}");
    }
    for forbidden in ["nv-driver", "mockgpu", "mockgpu-preload", "tests"] {
        assert!(!simulator.contains(forbidden), "nv-simulator reaches {forbidden}");
    }
    for below in ["nv-abi", "sass", "nv-memory", "nv-sm", "fixtures"] {
        let all = reached(below);
        for forbidden in ["nv-driver", "nv-simulator", "mockgpu", "tests"] {
            assert!(!all.contains(forbidden), "{below} reaches {forbidden}");
        }
    }
}

/// One `unsafe` of the sources.
struct Unsafe {
    package: String,
    file: String,
    line: usize,
    reason: Option<String>,
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if name != "target" && !name.to_string_lossy().starts_with('.') {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The line without strings and comments, as far as one line tells.
fn code(line: &str) -> String {
    let mut parts = line.split('"');
    let mut code = parts.next().unwrap_or("").to_owned();
    while let (Some(_), Some(rest)) = (parts.next(), parts.next()) {
        code.push_str(rest);
    }
    code.split("//").next().unwrap_or("").to_owned()
}

/// Whether the line opens an `unsafe` block, implementation or foreign block. An `unsafe fn` asks its callers instead.
fn is_unsafe(line: &str) -> bool {
    let code = code(line);
    ["unsafe {", "unsafe impl", "unsafe extern"].iter().any(|form| code.contains(form))
        && !code.contains("unsafe extern \"C\" fn")
        && !code.contains("unsafe extern  fn")
}

/// The reason: the comment before the statement that the `unsafe` is part of.
fn reason(lines: &[&str], at: usize) -> Option<String> {
    let first = (at.saturating_sub(12)..=at).rev().find(|line| lines[*line].contains("SAFETY:"))?;
    let text: Vec<&str> = (first..at.max(first + 1))
        .map(|line| lines[line].trim())
        .take_while(|line| line.starts_with("//") || line.contains("// SAFETY:"))
        .collect();
    let text = text.join(" ");
    let (_, reason) = text.split_once("SAFETY:")?;
    Some(reason.replace(" // ", " ").replace(" /// ", " ").trim().to_owned())
        .filter(|reason| !reason.is_empty())
}

fn every_unsafe(root: &Path) -> Vec<Unsafe> {
    let mut files = Vec::new();
    sources(root, &mut files);
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let lines: Vec<&str> = text.lines().collect();
        let package = file
            .ancestors()
            .skip(1)
            .find(|folder| folder.join("Cargo.toml").exists())
            .and_then(|folder| fs::read_to_string(folder.join("Cargo.toml")).ok())
            .and_then(|manifest| manifest.split('"').nth(1).map(str::to_owned))
            .unwrap_or_default();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| is_unsafe(line)) {
            let file = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
            found.push(Unsafe {
                package: package.clone(),
                file,
                line: index + 1,
                reason: reason(&lines, index)
                    .or_else(|| line.split_once("SAFETY:").map(|(_, r)| r.to_owned())),
            });
        }
    }
    found
}

/// The sources, where this binary runs beside them.
fn root() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.to_path_buf();
    root.join("Cargo.lock").exists().then_some(root)
}

#[test]
fn every_unsafe_says_why_it_is_sound_and_is_listed() {
    let Some(root) = root() else {
        return tests::skip("the sources are not here");
    };
    let all = every_unsafe(&root);
    assert!(all.len() > 20, "only {} found: the search is broken", all.len());
    let silent: Vec<String> = all
        .iter()
        .filter(|one| one.reason.is_none())
        .map(|one| format!("{}:{}", one.file, one.line))
        .collect();
    assert!(silent.is_empty(), "no SAFETY comment: {silent:#?}");

    // The list, without lines, so that it changes only when a block or a reason does.
    let mut text = String::from(
        "# Every `unsafe`, with its reason\n\nWritten by the test `structure` (`UPDATE_UNSAFE=1 cargo test -p tests structure`).\n\n",
    );
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in &all {
        *counts.entry(&one.package).or_default() += 1;
    }
    text.push_str("| package | blocks |\n| --- | --- |\n");
    for (package, count) in &counts {
        let _ = writeln!(text, "| `{package}` | {count} |");
    }
    let mut file = "";
    for one in &all {
        if one.file != file {
            file = &one.file;
            let _ = writeln!(text, "\n## {file}\n");
        }
        let _ = writeln!(text, "- {}", one.reason.as_deref().unwrap_or(""));
    }
    let list = root.join("tests/unsafe.md");
    if std::env::var_os("UPDATE_UNSAFE").is_some() {
        fs::write(&list, &text).unwrap();
    }
    let listed = fs::read_to_string(&list).unwrap_or_default();
    assert!(listed == text, "tests/unsafe.md is not what the sources say: run with UPDATE_UNSAFE=1");
}
