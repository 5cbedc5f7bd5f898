//! What a process leaves for people to read: lines appended to the file that `MOCKGPU_REPORT` names.
//!
//! A line is `word TAB process id TAB text`, the text with tabs, newlines and backslashes escaped; `mockgpu run` reads
//! it. Every line is one write, so that lines of several processes do not mix; faults are written as they happen, so
//! that they stay when a process is killed.

use std::{fmt::Write as _, fs::OpenOptions, io::Write as _};

use crate::options::REPORT;

/// What a line says. The word is what the launcher knows it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A machine was made; the text is the program.
    Start,
    /// A fault; the text is the report of it.
    Fault,
    /// Something was asked for that is not simulated; the text is how often and what.
    Unsupported,
    /// The library itself could not do something; the text says what.
    Trouble,
    /// Something that people may want to know and that is no trouble.
    Note,
    /// What was done; the text is `name=value` pairs.
    Statistics,
    /// What kernels did, instruction by instruction; the text is a line of a profile.
    Profile,
    /// The process ended by itself; last of its lines.
    End,
}

impl Line {
    fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Fault => "fault",
            Self::Unsupported => "unsupported",
            Self::Trouble => "trouble",
            Self::Note => "note",
            Self::Statistics => "statistics",
            Self::Profile => "profile",
            Self::End => "end",
        }
    }
}

fn format(line: Line, process: u32, text: &str) -> String {
    let mut formatted = format!("{}\t{process}\t", line.word());
    for character in text.chars() {
        // Writing to a string cannot fail.
        let _ = match character {
            '\\' => formatted.write_str("\\\\"),
            '\n' => formatted.write_str("\\n"),
            '\t' => formatted.write_str("\\t"),
            other => formatted.write_char(other),
        };
    }
    formatted.push('\n');
    formatted
}

/// Appends a line, if anybody wants it. What is trouble for the user is said on standard error where no file is named.
pub(crate) fn write(line: Line, text: &str) {
    let Some(path) = std::env::var_os(REPORT) else {
        if matches!(line, Line::Fault | Line::Trouble) {
            eprintln!("mockgpu: {text}");
        }
        return;
    };
    // A report that cannot be written must not end the program.
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
        let _ = file.write_all(format(line, std::process::id(), text).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_line() {
        assert_eq!(format(Line::Fault, 7, "a\tb\nc\\"), "fault\t7\ta\\tb\\nc\\\\\n");
    }
}
