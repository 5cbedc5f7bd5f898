//! The README's examples of this tool print what the README says.
//!
//! Every command of a `console` block that begins with `$ cargo run -q -- ` is run, in one folder and in the order in which
//! they stand there. Times may differ, and `...` stands for any lines.

use std::{fs, path::Path, process::Command};

const COMMAND: &str = "$ cargo run -q -- ";

/// A command with what it is said to print.
struct Example {
    arguments: Vec<String>,
    output: Vec<String>,
}

fn examples(readme: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut inside = false;
    let mut shown = false;
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            (inside, shown) = (line == "```console", false);
        } else if let (true, Some(command)) = (inside, line.strip_prefix(COMMAND)) {
            let mut command = command.to_owned();
            while let Some(part) = command.strip_suffix('\\') {
                command = format!("{part}{}", lines.next().unwrap_or("").trim_start());
            }
            let words = command.split_ascii_whitespace().map(str::to_owned);
            found.push(Example { arguments: words.collect(), output: Vec::new() });
            shown = true;
        } else if line.starts_with("$ ") {
            shown = false;
        } else if let (true, Some(example)) = (shown, found.last_mut()) {
            example.output.push(line.to_owned());
        }
    }
    found
}

/// A line without the numbers that may change: times, and how many calls the driver happens to make.
fn timeless(line: &str) -> String {
    const UNITS: [&str; 5] = ["ms", "ns", "us", "items", "calls"];
    let words: Vec<&str> = line.split(' ').collect();
    let varies = |at: usize| words.get(at + 1).is_some_and(|unit| UNITS.contains(unit));
    let shown = words.iter().enumerate().map(|(at, word)| if varies(at) { "(number)" } else { word });
    shown.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

/// Whether the lines are those that are said, where `...` stands for any.
fn matches(said: &[String], printed: &[String]) -> bool {
    let Some((first, rest)) = said.split_first() else { return printed.is_empty() };
    if first.trim() == "..." {
        return (0..=printed.len()).any(|skip| matches(rest, &printed[skip..]));
    }
    printed.split_first().is_some_and(|(line, others)| first == line && matches(rest, others))
}

#[test]
fn every_example_prints_what_the_readme_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).expect("the README");
    let folder = std::env::temp_dir().join(format!("readme-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let fixtures = root.canonicalize().expect("the workspace").join("fixtures");
    std::os::unix::fs::symlink(fixtures, folder.join("fixtures")).expect("a link");
    let all = examples(&readme);
    assert!(all.len() >= 8, "{} examples were found", all.len());
    for Example { arguments, output } in all {
        let done = Command::new(env!("CARGO_BIN_EXE_mockgpu"))
            .args(&arguments)
            .current_dir(&folder)
            .output()
            .expect("the tool starts");
        let printed = String::from_utf8_lossy(&done.stdout).into_owned();
        let lines = |text: Vec<&str>| text.into_iter().map(timeless).collect::<Vec<_>>();
        let said = lines(output.iter().map(String::as_str).collect());
        assert!(
            matches(&said, &lines(printed.lines().collect())),
            "{}\nsays in the README\n{}\nbut prints\n{printed}{}",
            arguments.join(" "),
            output.join("\n"),
            String::from_utf8_lossy(&done.stderr)
        );
    }
    fs::remove_dir_all(&folder).expect("it is there");
}
