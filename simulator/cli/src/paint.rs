//! Colours for a terminal: names, numbers, raw words and warnings, told apart by how they are written.

use std::io::IsTerminal;

/// Paints text, or leaves it as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const CYAN: &str = "\x1b[36m";
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

impl Paint {
    /// Colours where standard output is a terminal and `NO_COLOR` is not set.
    pub fn of_stdout() -> Self {
        Self { on: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
    }

    /// No colours.
    #[cfg(test)]
    pub const fn off() -> Self {
        Self { on: false }
    }

    /// Always colours.
    #[cfg(test)]
    pub const fn on() -> Self {
        Self { on: true }
    }

    fn with(self, style: &str, text: &str) -> String {
        if self.on { format!("{style}{text}{PLAIN}") } else { text.to_owned() }
    }

    /// A heading.
    pub fn heading(self, text: &str) -> String {
        self.with(BOLD, text)
    }

    /// Something that went well.
    pub fn good(self, text: &str) -> String {
        self.with(GREEN, text)
    }

    /// Something that went wrong.
    pub fn bad(self, text: &str) -> String {
        self.with(RED, text)
    }

    /// Something to overlook.
    pub fn dim(self, text: &str) -> String {
        self.with(DIM, text)
    }

    /// A dump: raw words dim, the vendor's names in colour, what no row explains in red.
    pub fn dump(self, text: &str) -> String {
        if !self.on {
            return text.to_owned();
        }
        text.split_inclusive('\n').map(|line| self.line(line)).collect()
    }

    fn line(self, line: &str) -> String {
        if ["no such", "unknown", "no class bound", "not executable", "of no field"]
            .iter()
            .any(|m| line.contains(m))
        {
            return self.with(RED, line.trim_end_matches('\n')) + "\n";
        }
        let mut out = String::new();
        for (gap, word) in words(line) {
            out.push_str(gap);
            out.push_str(&match style(word) {
                Some(style) => self.with(style, word),
                None => word.to_owned(),
            });
        }
        out
    }
}

/// A line as words with the spaces before each; the rest of the line is a gap before an empty word.
fn words(line: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let start = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let (gap, after) = rest.split_at(start);
        let end = after.find(char::is_whitespace).unwrap_or(after.len());
        let (word, after) = after.split_at(end);
        found.push((gap, word));
        rest = after;
    }
    found
}

fn style(word: &str) -> Option<&'static str> {
    let hexadecimal = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if (word.len() == 4 || word.len() == 8 || word.len() == 32) && hexadecimal(word) {
        return Some(DIM);
    }
    if word.starts_with('+') && hexadecimal(word.trim_start_matches("+0x")) {
        return Some(DIM);
    }
    let name = word.split(['=', '[', ',', ':']).next().unwrap_or(word);
    let vendor = name.len() > 2
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'.')
        && name.bytes().any(|byte| byte.is_ascii_uppercase());
    vendor.then_some(CYAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_add_nothing_but_escapes() {
        let text =
            "0004  0000c9c0    SET_OBJECT  NVCLASS=0xc9c0 (ADA_COMPUTE_A)\n  bits 0x8 (no such field)\n";
        assert_eq!(Paint::off().dump(text), text);
        let painted = Paint::on().dump(text);
        assert!(painted.contains("\x1b[36mSET_OBJECT\x1b[0m") && painted.contains("\x1b[31m"), "{painted:?}");
        let mut bare = painted;
        for style in [DIM, BOLD, CYAN, GREEN, RED, PLAIN] {
            bare = bare.replace(style, "");
        }
        assert_eq!(bare, text);
    }
}
