//! The driver's words in constant bank 0 as text.

use std::fmt::Write;

use super::{hex_block, words};
use crate::arch::Generation;

/// Constant bank 0: the words that this generation's code reads by name, other words that are not zero, and the
/// parameters as a block.
pub fn constant_bank(generation: Generation, bytes: &[u8]) -> String {
    let bank = generation.constant_bank();
    let words = words(bytes);
    let mut out = format!("constant bank 0 of {generation:?}, {} bytes\n", bytes.len());
    let mut named = vec![false; words.len()];
    for slot in bank.slots() {
        let first = slot.offset as usize / 4;
        let Some(part) = words.get(first..first + slot.words as usize) else {
            let _ = writeln!(out, "  {:#05x}  {:<22}  beyond the end", slot.offset, slot.name);
            continue;
        };
        named[first..first + part.len()].fill(true);
        let text = match *part {
            [low, high] => format!("{:#x}", u64::from(high) << 32 | u64::from(low)),
            [one] => format!("{one:#x}"),
            _ => part.iter().map(u32::to_string).collect::<Vec<_>>().join(" x "),
        };
        let _ = writeln!(out, "  {:#05x}  {:<22}  {text}", slot.offset, slot.name);
    }
    let parameters = (bank.parameters as usize / 4).min(words.len());
    for (index, word) in words[..parameters].iter().enumerate() {
        if *word != 0 && !named[index] {
            let _ = writeln!(out, "  {:#05x}  {:<22}  {word:#x}", index * 4, "(no name)");
        }
    }
    let _ = writeln!(out, "  {:#05x}  parameters, {} bytes", bank.parameters, (words.len() - parameters) * 4);
    hex_block(&mut out, 9, &words[parameters..]);
    out
}
