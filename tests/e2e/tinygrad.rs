//! Kernels of tinygrad, as it launched them: every cubin runs, and leaves what its source leaves on the host.

use std::collections::BTreeMap;

use fixtures::tinygrad::{self, Digest, Expected, Kernel, Summary};
use nv_driver::{Argument, Buffer, Device, Module};
use nv_simulator::{machine::Machine, profile::Profile, sm::Compile};
use tests::{DRIVER, Place};

/// Buffers begin at multiples of it, as tinygrad's allocations do.
const ALIGNMENT: usize = 256;

/// Launches a kernel with its buffers one behind the other in `memory`, and returns what is wrong with its results.
fn run(device: &Device, memory: &Buffer<u8>, cubin: &[u8], kernel: &Kernel) -> Result<(), String> {
    let mut bytes = Vec::new();
    let mut places = Vec::new();
    for (n, buffer) in kernel.buffers.iter().enumerate() {
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT) + buffer.shift, 0);
        places.push(bytes.len()..bytes.len() + buffer.bytes());
        bytes.extend(kernel.values.fill(n, *buffer));
    }
    let arguments: Vec<Argument> =
        places.iter().map(|place| Argument::from(memory.address() + place.start as u64)).collect();
    let mut after = vec![0; bytes.len()];
    memory
        .copy_from(&bytes)
        .and_then(|()| Module::load(device, cubin)?.kernel(&kernel.entry))
        .and_then(|entry| entry.launch(kernel.grid, kernel.block, &arguments))
        .and_then(|()| memory.copy_to(&mut after))
        .map_err(|error| error.to_string())?;
    let Expected { digest, near } = &kernel.expected;
    let mut found = Digest::EMPTY;
    for (n, (buffer, place)) in kernel.buffers.iter().zip(places).enumerate() {
        let after = &after[place.clone()];
        if let Some(near) = near.iter().find(|near| near.buffer == n) {
            let summary = Summary::of(buffer.element, after).ok_or("not a buffer of fractions")?;
            if summary.distance(&near.summary) > near.tolerance {
                return Err(format!(
                    "buffer {n}: {summary:?} is not within {:e} of {:?}",
                    near.tolerance, near.summary
                ));
            }
        } else if *after != bytes[place] {
            found = found.with(n, buffer.element, after);
        }
    }
    if found != *digest {
        return Err(format!("digest {:016x}, not {:016x}", found.0, digest.0));
    }
    Ok(())
}

/// Runs all kernels, with that much of them compiled.
fn every_kernel_leaves_what_its_source_leaves_on_the_host(compile: Compile) {
    let cubins: BTreeMap<_, _> = fixtures::pack::read("tinygrad_cubins").unwrap().into_iter().collect();
    let kernels = tinygrad::kernels().unwrap();
    assert_eq!(kernels.len(), cubins.len());
    let room = |kernel: &Kernel| -> usize {
        kernel.buffers.iter().map(|buffer| (buffer.shift + buffer.bytes()).next_multiple_of(ALIGNMENT)).sum()
    };
    let machine = Machine::builder().driver(DRIVER).compile(compile);
    Place::simulated_by("tinygrad", &[Profile::ad102()], machine).run(|place| {
        let device = place.device(0);
        let memory = device.visible::<u8>(kernels.iter().map(room).max().unwrap()).unwrap();
        let mut wrong = Vec::new();
        for kernel in &kernels {
            if let Err(error) = run(&device, &memory, &cubins[&format!("{}.cubin", kernel.name)], kernel) {
                wrong.push(format!("{} ({}): {error}", kernel.name, kernel.entry));
            }
            if device.check().is_err() {
                break;
            }
        }
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), kernels.len(), wrong.join("\n"));
    });
}

#[test]
fn handlers_leave_what_sources_leave_on_the_host() {
    every_kernel_leaves_what_its_source_leaves_on_the_host(Compile::Never);
}

#[test]
fn compiled_code_leaves_what_sources_leave_on_the_host() {
    every_kernel_leaves_what_its_source_leaves_on_the_host(Compile::Always);
}
