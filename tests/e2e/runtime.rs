//! What kernels call and their cubins do not have: printf, assert, malloc and free.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use nv_driver::{Device, Error, Kernel, Module};
use tests::Place;

mod bodies {
    pub use super::*;
    tests::everywhere! { kernels:
        every_conversion_is_printed_as_c_prints_it
        blocks_of_malloc_are_nobody_elses
    }
    tests::everywhere! { one:
        prints_of_all_threads_arrive_whole_and_once
        a_small_buffer_that_is_emptied_in_time_loses_nothing
        a_full_buffer_loses_whole_prints_and_counts_them
        an_assertion_names_its_place_and_thread
        what_was_printed_before_an_assertion_arrives
        a_full_heap_gives_null_and_is_whole_again_when_all_is_freed
        a_block_that_is_freed_twice_ends_the_channel
    }
}

/// The kernels that the tests here run.
pub const COVERED: &[&str] =
    &["print_conversions", "print_from_all", "assert_positive", "malloc_stress", "malloc_each", "free_each"];

/// A sink that the test reads.
#[derive(Clone, Default)]
pub struct Printed(Arc<Mutex<Vec<u8>>>);

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Printed {
    /// What has been printed since the last time.
    pub fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

fn module(place: &Place, device: &Device) -> (Module, Printed) {
    let printed = Printed::default();
    device.print_to(printed.clone());
    let cubin = fixtures::cubin(place.code_for(device), "device_runtime").unwrap();
    (Module::load(device, &cubin).unwrap(), printed)
}

pub fn every_conversion_is_printed_as_c_prints_it(place: &Place) {
    let device = place.device(0);
    let (module, printed) = module(place, &device);
    let out = device.video::<i32>(1).unwrap();
    let text = device.buffer_from(b"hello, GPU\0").unwrap();
    let arguments = [(&out).into(), 42i32.into(), 3.25f64.into(), (&text).into()];
    module.kernel("print_conversions").unwrap().launch([1, 1, 1], [1, 1, 1], &arguments).unwrap();
    device.synchronize().unwrap();
    let expected = "plain\n\
        42|   42|42   |00042|+42|-42|4294967254\n\
        2a|2A|0x2a|52|42|42\n\
        -42|1099511627776|1000000000|8\n\
        3.250000|3.25| 3.250e+00|3.25|3.25E+30|0x1.ap+1\n\
        hello, GPU|hello, GPU|ab    |hel|qrstuvw\n\
        ok|0x123456789ab|100%\n    \
            42|42    |3.2|   3.2500\n\
        1 2.000000 3 4 5 six\n";
    assert_eq!(printed.take(), expected);
    // Arguments of all the formats, widths and precisions among them.
    assert_eq!(out.to_vec().unwrap(), [46]);
}

/// The lines of `print_from_all`, sorted.
fn lines(threads: u32, block: u32) -> Vec<String> {
    let line = |i: u32| match i % 2 {
        1 => format!("odd {i} of block {}: {:.6}", i / block, f64::from(i) * 0.5),
        _ => format!("even {i}"),
    };
    let mut lines: Vec<String> = (0..threads).map(line).collect();
    lines.sort_unstable();
    lines
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

fn print_from_all(kernel: &Kernel, threads: u32) {
    kernel.launch([threads.div_ceil(128), 1, 1], [128, 1, 1], &[threads.into()]).unwrap();
}

pub fn prints_of_all_threads_arrive_whole_and_once(place: &Place) {
    let device = place.device(0);
    let (module, printed) = module(place, &device);
    let kernel = module.kernel("print_from_all").unwrap();
    print_from_all(&kernel, 2000);
    device.synchronize().unwrap();
    assert_eq!(sorted(&printed.take()), lines(2000, 128));
    device.synchronize().unwrap();
    assert_eq!(printed.take(), "");
    assert_eq!(device.lost_prints().unwrap(), 0);
}

pub fn a_small_buffer_that_is_emptied_in_time_loses_nothing(place: &Place) {
    // The least: 4 KiB. Records take 32 to 64 bytes, so that the buffer wraps many times, at all places.
    let device = place.device_with(0, |options| options.printf_buffer_bytes = 1);
    let (module, printed) = module(place, &device);
    let kernel = module.kernel("print_from_all").unwrap();
    for round in 0..40 {
        let threads = 20 + round % 13;
        print_from_all(&kernel, threads);
        device.synchronize().unwrap();
        assert_eq!(sorted(&printed.take()), lines(threads, 128), "round {round}");
    }
    assert_eq!(device.lost_prints().unwrap(), 0);
}

pub fn a_full_buffer_loses_whole_prints_and_counts_them(place: &Place) {
    let device = place.device_with(0, |options| options.printf_buffer_bytes = 4 << 10);
    let (module, printed) = module(place, &device);
    let kernel = module.kernel("print_from_all").unwrap();
    print_from_all(&kernel, 1000);
    device.synchronize().unwrap();
    let (kept, all) = (sorted(&printed.take()), lines(1000, 128));
    assert!(kept.iter().all(|line| all.binary_search(line).is_ok()), "{kept:?}");
    assert!(kept.windows(2).all(|pair| pair[0] != pair[1]), "{kept:?}");
    // Between 32 and 64 bytes each.
    assert!((64..=128).contains(&kept.len()), "{}", kept.len());
    assert_eq!(device.lost_prints().unwrap(), 1000 - kept.len() as u64);
    // There is room again.
    print_from_all(&kernel, 10);
    device.synchronize().unwrap();
    assert_eq!(sorted(&printed.take()), lines(10, 128));
}

fn failed_assertion(place: &Place, values: &[i32]) -> nv_driver::Assertion {
    let device = place.device(0);
    let (module, _) = module(place, &device);
    let values_there = device.buffer_from(values).unwrap();
    let arguments = [(&values_there).into(), (values.len() as u32).into()];
    let kernel = module.kernel("assert_positive").unwrap();
    let blocks = (values.len() as u32).div_ceil(64);
    kernel.launch([blocks, 1, 1], [64, 1, 1], &arguments).unwrap();
    match device.synchronize() {
        Err(Error::Assertion(assertion)) => *assertion,
        other => panic!("{other:?}"),
    }
}

pub fn an_assertion_names_its_place_and_thread(place: &Place) {
    place.expect_faults(2);
    let mut values = [1; 500];
    values[200] = 0;
    let assertion = failed_assertion(place, &values);
    assert_eq!(assertion.message, "values[i] > 0");
    assert_eq!(assertion.file, "device_runtime.cu");
    assert!(assertion.function.contains("assert_positive"), "{}", assertion.function);
    let source = fixtures::module("device_runtime").unwrap().source;
    let line = source.lines().position(|line| line.contains("assert(values[i] > 0)")).unwrap() + 1;
    assert_eq!(assertion.line as usize, line);
    assert_eq!((assertion.block, assertion.thread), ([3, 0, 0], [8, 0, 0]));
    assert_eq!(assertion.threads, 1);
    // What an H200 says of a trap.
    assert_eq!(assertion.fault.xid, 13);
    let text = format!("device_runtime.cu:{line}: ");
    assert!(assertion.to_string().starts_with(&text), "{assertion}");

    // Where many fail, one of them is told.
    let assertion = failed_assertion(place, &[0; 500]);
    assert!((1..=500).contains(&assertion.threads), "{}", assertion.threads);
}

pub fn what_was_printed_before_an_assertion_arrives(place: &Place) {
    place.expect_faults(1);
    let device = place.device(0);
    let (module, printed) = module(place, &device);
    let values = device.buffer_from(&[0i32; 32]).unwrap();
    print_from_all(&module.kernel("print_from_all").unwrap(), 100);
    let arguments = [(&values).into(), 32u32.into()];
    module.kernel("assert_positive").unwrap().launch([1, 1, 1], [32, 1, 1], &arguments).unwrap();
    assert!(matches!(device.synchronize(), Err(Error::Assertion(_))));
    assert_eq!(sorted(&printed.take()), lines(100, 128));
    // The channel stays dead, and says why each time.
    assert!(matches!(device.synchronize(), Err(Error::Assertion(_))));
}

pub fn blocks_of_malloc_are_nobody_elses(place: &Place) {
    let device = place.device(0);
    let (module, _) = module(place, &device);
    let counts = device.buffer_from(&[0u32; 2]).unwrap();
    let (wrong, failed) = (counts.address(), counts.address() + 4);
    let stress = module.kernel("malloc_stress").unwrap();
    // In a debug build a round of all places takes seconds.
    let rounds: u32 = if cfg!(debug_assertions) { 3 } else { 24 };
    stress.launch([8, 1, 1], [64, 1, 1], &[wrong.into(), failed.into(), rounds.into()]).unwrap();
    assert_eq!(counts.to_vec().unwrap(), [0, 0]);
    // Nothing is left: all of the heap is one block again.
    assert_eq!(allocate(&device, &module, (8 << 20) - 16, 1), 1);
}

/// Allocates blocks of `bytes` from so many threads, looks that they do not overlap, and frees them. How many there were.
fn allocate(device: &Device, module: &Module, bytes: u64, threads: u32) -> usize {
    let blocks = device.buffer_from(&vec![1u64; threads as usize]).unwrap();
    let grid = [threads.div_ceil(64), 1, 1];
    let arguments = [(&blocks).into(), bytes.into(), threads.into()];
    module.kernel("malloc_each").unwrap().launch(grid, [64, 1, 1], &arguments).unwrap();
    let mut found = blocks.to_vec().unwrap();
    found.retain(|address| *address != 0);
    found.sort_unstable();
    assert!(found.iter().all(|address| address.is_multiple_of(16)), "{found:x?}");
    assert!(found.windows(2).all(|pair| pair[0] + bytes <= pair[1]), "{found:x?}");
    let arguments = [(&blocks).into(), threads.into()];
    module.kernel("free_each").unwrap().launch(grid, [64, 1, 1], &arguments).unwrap();
    device.synchronize().unwrap();
    found.len()
}

pub fn a_full_heap_gives_null_and_is_whole_again_when_all_is_freed(place: &Place) {
    let device = place.device_with(0, |options| options.malloc_heap_bytes = 64 << 10);
    let (module, _) = module(place, &device);
    // A block has 16 bytes in front of it, and its size goes up to a multiple of 32 bytes, large ones' of 1 KiB.
    for (bytes, fit) in [(1000, 64), (16, 64 << 10 >> 5), (100, 64 * 8), (3000, 21), ((64 << 10) - 16, 1)] {
        assert_eq!(allocate(&device, &module, bytes, 2400), fit, "{bytes} bytes");
    }
    for bytes in [0, 64 << 10, 1 << 40, u64::MAX] {
        assert_eq!(allocate(&device, &module, bytes, 40), 0, "{bytes} bytes");
    }
}

pub fn a_block_that_is_freed_twice_ends_the_channel(place: &Place) {
    place.expect_faults(1);
    let device = place.device(0);
    let (module, _) = module(place, &device);
    let blocks = device.buffer_from(&[1u64; 1]).unwrap();
    let arguments = [(&blocks).into(), 100u64.into(), 1u32.into()];
    module.kernel("malloc_each").unwrap().launch([1, 1, 1], [32, 1, 1], &arguments).unwrap();
    let address = blocks.to_vec().unwrap()[0];
    let free = module.kernel("free_each").unwrap();
    let arguments = [(&blocks).into(), 1u32.into()];
    free.launch([1, 1, 1], [32, 1, 1], &arguments).unwrap();
    free.launch([1, 1, 1], [32, 1, 1], &arguments).unwrap();
    match device.synchronize() {
        Err(Error::InvalidFree(told)) => {
            assert_eq!((told.address, told.block, told.thread), (address, [0; 3], [0; 3]));
        }
        other => panic!("{other:?}"),
    }
}
