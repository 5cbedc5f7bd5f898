//! Names for the programs that launches run, for who has the cubins: by the code that lay at a program's address when it was
//! launched.

use std::{collections::HashMap, fmt};

use nv_abi::qmd;

use crate::{
    Capture,
    action::{Action, Stream, linked},
    contents::Contents,
    event::{Event, Memory, MemoryKind, Symbol},
};

/// Says by code whose it is: the name, and bytes of the code. It is given who reads so many bytes at an offset.
pub type Identify = Box<dyn Fn(&dyn Fn(u64, usize) -> Option<Vec<u8>>) -> Option<(String, u64)> + Send>;

/// Gives names to the programs of a capture, while it is made or afterwards.
pub struct Naming {
    identify: Identify,
    streams: HashMap<u32, Stream>,
    /// Descriptors by address.
    descriptors: HashMap<u64, Vec<u8>>,
    /// Other bytes that the client had, by address: what copies read.
    data: HashMap<u64, Vec<u8>>,
    /// What copies and uploads wrote.
    contents: Contents,
    /// By the program's address.
    named: HashMap<u64, String>,
}

impl fmt::Debug for Naming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Naming").field("named", &self.named).finish_non_exhaustive()
    }
}

impl Naming {
    /// Names what `identify` knows.
    pub fn new(identify: Identify) -> Self {
        Self {
            identify,
            streams: HashMap::new(),
            descriptors: HashMap::new(),
            data: HashMap::new(),
            contents: Contents::default(),
            named: HashMap::new(),
        }
    }

    /// Puts a symbol in front of each submission that launches a program whose name was not told yet, or is another one now.
    /// Code that no copy or upload of the capture brought is asked of `read`.
    pub fn name(&mut self, events: Vec<Event>, read: &dyn Fn(u64, usize) -> Option<Vec<u8>>) -> Vec<Event> {
        let mut named = Vec::with_capacity(events.len());
        for event in events {
            match &event {
                Event::Memory(Memory { kind: MemoryKind::Qmd, address, bytes }) => {
                    self.descriptors.insert(*address, bytes.clone());
                }
                Event::Memory(Memory { kind: MemoryKind::Other, address, bytes }) => {
                    self.data.insert(*address, bytes.clone());
                }
                Event::Submission(submission) => {
                    let class = submission.class;
                    let mut stream =
                        self.streams.remove(&submission.channel).unwrap_or_else(|| Stream::new(class));
                    for action in stream.follow(submission.words.as_deref().unwrap_or_default()) {
                        named.extend(self.action(action, &stream, read));
                    }
                    self.streams.insert(submission.channel, stream);
                }
                _ => {}
            }
            named.push(event);
        }
        named
    }

    /// Follows what an action does to memory; the names of what it launches.
    fn action(
        &mut self,
        action: Action,
        stream: &Stream,
        read: &dyn Fn(u64, usize) -> Option<Vec<u8>>,
    ) -> Vec<Event> {
        match action {
            Action::Upload { address, bytes } => self.contents.write(address, &bytes),
            Action::Copy { source, destination, line, lines: 1, .. } => {
                if let Some(bytes) = self.data.get(&source).filter(|bytes| bytes.len() == line as usize) {
                    self.contents.write(destination, bytes);
                }
            }
            Action::Launch { qmd, .. } => {
                let version = stream.qmd_version();
                let descriptor = |address, bytes| {
                    self.descriptors.get(&address).cloned().or_else(|| stream.written(address, bytes))
                };
                let launches = linked(version, qmd, descriptor).into_iter();
                let launches = launches.filter_map(|(_, bytes, _)| qmd::read(version, &bytes).ok());
                let programs: Vec<u64> = launches.map(|launch| launch.program_address).collect();
                return programs.into_iter().filter_map(|program| self.program(program, read)).collect();
            }
            _ => {}
        }
        Vec::new()
    }

    /// The name of a program, if it has one that was not told yet.
    fn program(&mut self, address: u64, read: &dyn Fn(u64, usize) -> Option<Vec<u8>>) -> Option<Event> {
        let code = |offset: u64, bytes: usize| {
            let at = address.checked_add(offset)?;
            self.contents.read(at, bytes).or_else(|| read(at, bytes))
        };
        let (name, bytes) = (self.identify)(&code)?;
        if self.named.get(&address) == Some(&name) {
            return None;
        }
        self.named.insert(address, name.clone());
        Some(Event::Symbol(Symbol { address, bytes, name }))
    }
}

/// Names the programs of a whole capture whose code it has: what copies and uploads brought.
pub fn name(capture: &mut Capture, identify: Identify) {
    let events = std::mem::take(&mut capture.events);
    capture.events = Naming::new(identify).name(events, &|_, _| None);
}
