//! The answers of controls that the module keeps (`rmapi_cache.c`).
//!
//! It looks here before it looks at the object, and knows the GPUs of devices and subdevices by their handles. So a kept
//! answer goes to any of them, whatever its class, and even to one that went with its parent: only a handle that is
//! freed itself is forgotten. Both measured on H200.

use std::collections::BTreeMap;

use nv_abi::rm::control::{Cached, Control};

/// A GPU, or the system; a control; its input where the answer depends on it.
type Question = (Option<usize>, u32, Vec<u8>);

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct ControlCache {
    /// GPUs by client and object.
    gpus: BTreeMap<(u32, u32), usize>,
    answers: BTreeMap<Question, Vec<u8>>,
}

impl ControlCache {
    /// A device or subdevice has been made. What an older one of that handle left behind stays.
    pub(super) fn add_object(&mut self, client: u32, object: u32, gpu: usize) {
        self.gpus.entry((client, object)).or_insert(gpu);
    }

    /// RM_FREE was called with this handle.
    pub(super) fn remove_object(&mut self, client: u32, object: u32) {
        self.gpus.remove(&(client, object));
    }

    /// A client is gone.
    pub(super) fn remove_client(&mut self, client: u32) {
        self.gpus.retain(|(of, _), _| *of != client);
    }

    /// The answer that was given before.
    pub(super) fn answer(&self, client: u32, object: u32, row: &Control, input: &[u8]) -> Option<&[u8]> {
        self.answers.get(&self.question(client, object, row, input)?).map(Vec::as_slice)
    }

    /// Keeps an answer, if the control's answers are kept.
    pub(super) fn keep(&mut self, client: u32, object: u32, row: &Control, input: &[u8], answer: &[u8]) {
        if let Some(question) = self.question(client, object, row, input) {
            self.answers.insert(question, answer.to_vec());
        }
    }

    fn question(&self, client: u32, object: u32, row: &Control, input: &[u8]) -> Option<Question> {
        let input = match row.cached? {
            Cached::Always => Vec::new(),
            Cached::ByInput => input.to_vec(),
        };
        // Controls of class 0 ask about the system.
        let gpu = match row.command >> 16 {
            0 => None,
            _ => Some(*self.gpus.get(&(client, object))?),
        };
        Some((gpu, row.command, input))
    }
}
