//! How another driver's author keeps pushbuffers under review: one line per pushbuffer, whatever addresses a run has.
#![allow(clippy::unwrap_used)]

use nv_abi::arch::Generation;
use nv_capture::{Listing, assert_pushbuffer_snapshot};

/// Waits for 1 at a semaphore, copies 256 bytes, and releases 2 beside it. Stands for what a driver builds.
fn pushbuffer(semaphore: u64, source: u64, destination: u64) -> Vec<u32> {
    let header =
        |subchannel: u32, address: u32, count: u32| 1 << 29 | count << 16 | subchannel << 13 | address >> 2;
    let [s, from, to] = [semaphore, source, destination].map(|at| [(at >> 32) as u32, at as u32]);
    let mut words = vec![header(0, 0x5c, 5), s[1], s[0], 1, 0, 3 | 1 << 24];
    words.extend([header(4, 0x400, 4), from[0], from[1], to[0], to[1]]);
    words.extend([header(4, 0x418, 1), 256, header(4, 0x300, 1), 0x182]);
    words.extend([header(4, 0x240, 3), s[0], s[1] + 0x10, 2, header(4, 0x300, 1), 0x14]);
    words
}

#[test]
fn a_pushbuffer_is_one_line_to_review() {
    assert_pushbuffer_snapshot!(Generation::Ada, &pushbuffer(0x10_0030_4000, 0x20_0000_0100, 0x7f_1234_5000));
}

#[test]
fn another_run_with_other_addresses_gives_the_same_text() {
    let text = |semaphore, source, destination| {
        let names =
            Listing::new(Generation::Ada).name(source, 0x1000, "source").name(destination, 0x1000, "result");
        let mut names = names;
        names.text(&pushbuffer(semaphore, source, destination))
    };
    let first = text(0x10_0030_4000, 0x20_0000_0000, 0x7f_1234_5000);
    assert_eq!(first, text(0x11_0000_0000, 0x55_0000_0000, 0x12_0000_2000));
    assert!(first.contains("= copy 256 bytes from source to result"), "{first}");
}
