//! A capture as one HTML file that needs nothing else: channels in time, and behind each submission its pushbuffer, its
//! descriptors and arguments, as [`text`] prints them. `#submission-3` at the end of its address opens the third.

use std::collections::HashMap;

use serde_json::json;

use crate::{
    Capture,
    text::{self, Section},
    timeline::{Timeline, timeline},
};

/// The page without data. Where these stand, they go.
const TEMPLATE: &str = include_str!("page.html");
const PLACE: &str = "/*capture*/null";

/// Lines, each once.
#[derive(Default)]
struct Lines {
    texts: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Lines {
    /// Which line it is; a new one where there is none like it.
    fn number(&mut self, line: &str) -> usize {
        if let Some(known) = self.numbers.get(line) {
            return *known;
        }
        self.numbers.insert(line.to_owned(), self.texts.len());
        self.texts.push(line.to_owned());
        self.texts.len() - 1
    }
}

/// The page of a capture.
pub fn page(capture: &Capture, title: &str) -> String {
    let Timeline { work, slices, arrows } = timeline(capture);
    let (mut texts, mut faults) = (Vec::new(), Vec::new());
    for section in text::sections(capture) {
        match section {
            Section::Submission(text) => texts.push(text),
            // It belongs behind the submissions so far.
            Section::Fault(text) => faults.push(json!({ "after": texts.len(), "text": text })),
            Section::Note(text) => {
                faults.push(json!({ "after": texts.len(), "text": format!("note: {text}") }));
            }
        }
    }
    let mut lines = Lines::default();
    let submissions: Vec<_> = slices
        .iter()
        .zip(&texts)
        .map(|(slice, text)| {
            json!({
                "channel": format!("{:#x}", slice.channel),
                "name": slice.name,
                "start": slice.start,
                "end": slice.end,
                "actions": slice.actions.iter().map(|action| lines.number(action)).collect::<Vec<_>>(),
                "text": text.lines().map(|line| lines.number(line)).collect::<Vec<_>>(),
            })
        })
        .collect();
    let arrows: Vec<_> = arrows.iter().map(|arrow| [arrow.from, arrow.to]).collect();
    let work: Vec<_> = work
        .iter()
        .map(|work| {
            let track =
                work.worker.map_or_else(|| "grids".to_owned(), |worker| format!("SM worker {worker}"));
            json!({ "track": track, "name": work.name, "start": work.start, "end": work.end })
        })
        .collect();
    let data = json!({
        "title": title,
        "lines": lines.texts,
        "submissions": submissions,
        "arrows": arrows,
        "faults": faults,
        "work": work,
    });
    // Inside a script, text must not look like the script's end or a comment.
    let data = data.to_string().replace('<', "\\u003c");
    TEMPLATE.replacen(PLACE, &data, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_has_one_place_for_the_data_and_asks_nothing_of_the_network() {
        assert_eq!(TEMPLATE.matches(PLACE).count(), 1);
        for outside in ["http:", "https:", "src=", "@import", "fetch("] {
            assert!(!TEMPLATE.contains(outside), "{outside}");
        }
    }

    #[test]
    fn text_cannot_end_the_script() {
        let capture = Capture {
            branch: nv_abi::Branch::R580,
            events: vec![crate::Event::Fault("</script><b>".to_owned())],
        };
        let page = page(&capture, "<i>");
        assert!(!page.contains("</script><b>") && !page.contains("<i>"));
        assert!(page.contains("\\u003c/script>"));
    }
}
