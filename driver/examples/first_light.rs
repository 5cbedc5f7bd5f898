//! Runs fixture kernels on the real card through every path of the driver, and prints what came out.
//!
//! `cargo run -p nv-driver --example first_light` needs the NVIDIA kernel module and a card of sm_80 to sm_90.

use std::{sync::Arc, time::Duration};

use fixtures::reference;
use nv_driver::{
    ArgumentPath, ComputeQueue, CopyQueue, Device, Error, Module, Options, System, os::NvidiaNodes,
};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let system = System::open(Arc::new(NvidiaNodes::new()))?;
    println!("driver {}, {} GPUs", system.version(), system.device_count());
    for (name, arguments, map_memory_dma) in [
        ("arguments written by the CPU", ArgumentPath::CpuWritten, false),
        ("arguments in the pushbuffer", ArgumentPath::InlineToMemory, false),
        ("mappings through RM as well", ArgumentPath::CpuWritten, true),
    ] {
        println!("{name}:");
        let mut options = Options::default();
        (options.arguments, options.map_memory_dma) = (arguments, map_memory_dma);
        options.deadline = Duration::from_secs(5);
        let device = Device::open_on(&system, 0, options)?;
        println!("  {:?}", device.info());
        report("vector_add", vector_add(&device));
        report("dynamic shared memory", reverse(&device));
        report("8 KiB of local memory", deep_local(&device));
        report("chained launches with a folded release", chained(&device));
        if arguments == ArgumentPath::CpuWritten {
            report("bound queue", bound(&device));
        }
        report("copies", copies(&device));
        report("fault", fault(&device));
    }
    Ok(())
}

fn report(name: &str, result: Result<(), Failure>) {
    match result {
        Ok(()) => println!("  {name}: ok"),
        Err(error) => println!("  {name}: FAILED: {error}"),
    }
}

fn expect(what: &str, holds: bool) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(what.to_owned().into()) }
}

fn load(device: &Device, name: &str) -> Result<Module, Failure> {
    Ok(Module::load(device, &fixtures::cubin(&format!("sm_{}", device.sm()), name)?)?)
}

fn vector_add(device: &Device) -> Result<(), Failure> {
    let kernel = load(device, "vector_add")?.kernel("vector_add")?;
    let n = 100_000u32;
    let a = device.buffer_from(&(0..n).map(|i| i as f32).collect::<Vec<_>>())?;
    let b = device.buffer_from(&(0..n).map(|i| i as f32 * 0.5).collect::<Vec<_>>())?;
    let c = device.video::<f32>(n as usize)?;
    kernel.launch(
        [n.div_ceil(256), 1, 1],
        [256, 1, 1],
        &[(&c).into(), (&a).into(), (&b).into(), n.into()],
    )?;
    expect("wrong sum", c.to_vec()?.iter().enumerate().all(|(i, c)| *c == i as f32 * 1.5))
}

fn reverse(device: &Device) -> Result<(), Failure> {
    let kernel = load(device, "dynamic_shared")?.kernel("reverse")?;
    let input = device.buffer_from(&(0..512u32).collect::<Vec<_>>())?;
    let out = device.visible::<u32>(512)?;
    kernel.launch_with_shared([4, 1, 1], [128, 1, 1], 512, &[(&out).into(), (&input).into()])?;
    expect("not reversed", out.to_vec()?.iter().zip(0..).all(|(v, i)| *v == i / 128 * 128 + 127 - i % 128))
}

fn deep_local(device: &Device) -> Result<(), Failure> {
    let kernel = load(device, "deep_local")?.kernel("deep_local")?;
    let out = device.host::<u32>(64)?;
    kernel.launch([1, 1, 1], [64, 1, 1], &[(&out).into(), 7u32.into(), 64u32.into()])?;
    expect("wrong sums", out.to_vec()?.iter().zip(0..).all(|(v, i)| *v == reference::deep_local(7, i)))
}

fn chained(device: &Device) -> Result<(), Failure> {
    let kernel = load(device, "vector_add")?.kernel("vector_add")?;
    let a = device.buffer_from(&[1.0f32; 64])?;
    let sum = device.buffer_from(&[0.0f32; 64])?;
    let (start, done) = (device.signal(0)?, device.signal(0)?);
    let mut queue = ComputeQueue::new(device);
    queue.timestamp(&start);
    for _ in 0..8 {
        queue.exec(
            &kernel,
            [1, 1, 1],
            [64, 1, 1],
            &[(&sum).into(), (&sum).into(), (&a).into(), 64u32.into()],
        )?;
    }
    queue.signal(&done, 0x1_0000_0001);
    queue.submit()?;
    device.wait(&done, 0x1_0000_0001, Duration::from_secs(5))?;
    println!("  8 launches in {} ns", done.timestamp()?.wrapping_sub(start.timestamp()?));
    expect("wrong sum", sum.to_vec()? == [8.0; 64])
}

fn bound(device: &Device) -> Result<(), Failure> {
    let kernel = load(device, "vector_add")?.kernel("vector_add")?;
    let a = device.buffer_from(&[1.0f32; 128])?;
    let sum = device.buffer_from(&[0.0f32; 128])?;
    let (gate, done) = (device.signal(0)?, device.signal(0)?);
    let mut queue = ComputeQueue::new(device);
    queue.wait(&gate, 1);
    let wait = queue.last().ok_or("no command")?;
    queue.exec(
        &kernel,
        [1, 1, 1],
        [64, 1, 1],
        &[(&sum).into(), (&sum).into(), (&a).into(), 128u32.into()],
    )?;
    let launch = queue.last().ok_or("no command")?;
    queue.signal(&done, 1);
    let signal = queue.last().ok_or("no command")?;
    let mut queue = queue.bind()?;
    for turn in 1..=3u64 {
        queue.set_signal(wait, &gate, turn)?;
        queue.set_signal(signal, &done, turn)?;
        queue.set_dimensions(launch, [turn.min(2) as u32, 1, 1], [64, 1, 1])?;
        queue.submit()?;
        expect("did not wait", done.value()? == turn - 1)?;
        // A plain store, with no doorbell after it.
        gate.set(turn)?;
        device.wait(&done, turn, Duration::from_secs(5))?;
    }
    let values = sum.to_vec()?;
    expect("wrong sum", values[..64] == [3.0; 64] && values[64..] == [2.0; 64])
}

fn copies(device: &Device) -> Result<(), Failure> {
    let words: Vec<u32> = (0..1 << 20).collect();
    let source = device.buffer_from(&words)?;
    let target = device.system_memory::<u32>(words.len())?;
    let done = device.signal(0)?;
    let mut queue = CopyQueue::new(device);
    queue.copy(target.address(), source.address(), source.bytes()).signal(&done, 3);
    queue.submit()?;
    device.wait(&done, 3, Duration::from_secs(5))?;
    expect("wrong words", target.to_vec()? == words)
}

/// Last: it kills the compute channel.
fn fault(device: &Device) -> Result<(), Failure> {
    let kernel = load(device, "faults")?.kernel("store_at")?;
    let base = device.video::<u32>(16)?;
    let arguments = [(&base).into(), (1i64 << 40).into(), 7u32.into(), 0u32.into()];
    kernel.launch([1, 1, 1], [32, 1, 1], &arguments)?;
    match device.synchronize() {
        Err(Error::ChannelFault(fault)) => {
            println!("  {fault}");
            Ok(())
        }
        other => Err(format!("expected a channel fault, got {other:?}").into()),
    }
}
