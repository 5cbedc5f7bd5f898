//! How fast whole launches are: through the driver, host and engines of a simulated machine.
//!
//! What kernels themselves take is measured by `cargo bench -p nv-sm`.

use std::{
    fmt::{self, Write as _},
    fs,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use nix::time::{ClockId, clock_gettime};
use nv_driver::{ComputeQueue, CopyQueue, Device, Module, Options, System, os::NvidiaNodes};

use crate::simulated::{Choice, MachineError};

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct Bench {
    #[command(flatten)]
    choice: Choice,
    /// Measure the GPU behind this machine's own device nodes: a card, or under `mockgpu run` a simulated one
    #[arg(long, conflicts_with_all = ["gpu", "gpus", "driver"])]
    card: bool,
}

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// There is no machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A fixture is missing.
    #[error("the kernel: {0}")]
    Fixture(#[from] fixtures::FixtureError),
    /// The driver could not do it.
    #[error(transparent)]
    Driver(#[from] nv_driver::Error),
    /// The processor's time cannot be read.
    #[error("the process's clock: {0}")]
    Clock(#[from] nix::Error),
}

/// Launches whose latency is taken.
const LAUNCHES: usize = 2000;
/// Launches of a submission that has many.
const BATCH: u64 = 64;
/// Launches of a round.
const ROUND: u64 = 40 * BATCH;
/// Times that they are measured.
const ROUNDS: usize = 8;
/// Bytes of a copy.
const COPY: usize = 64 << 20;
/// What is simulated unless the command line says otherwise.
const ADA: u32 = 89;
const PATIENCE: Duration = Duration::from_secs(10);

/// Resident memory of the process in KiB, as far as the system tells.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Processor time of all threads.
fn processor_time() -> Result<Duration, nix::Error> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Measures, and says what was found.
///
/// # Errors
/// See [`BenchError`].
pub fn run(bench: &Bench) -> Result<String, BenchError> {
    let mut text = String::new();
    let mut line = |what: &str, value: String, goal: &str| {
        let _ = writeln!(text, "{what:<44} {value:>20}   {goal}");
    };
    if bench.card {
        let system = System::open(Arc::new(NvidiaNodes::new()))?;
        let device = Device::open_on(&system, 0, Options::default())?;
        let kernel = empty(&device)?;
        latency(&device, &kernel, &mut line)?;
        for (batch, what) in PACES {
            let mut best = Pace::WORST;
            for _ in 0..ROUNDS {
                best.improve(pace(&device, &kernel, batch)?);
            }
            line(what, best.to_string(), "");
        }
        copies(&device, &mut line)?;
        return Ok(text);
    }
    let before = resident();
    let start = Instant::now();
    let simulated = bench.choice.open(ADA, false)?;
    let device = simulated.device(0)?;
    line("machine and device opened", format!("{:.1} ms", milliseconds(start.elapsed())), "");
    if let (Some(before), Some(now)) = (before, resident()) {
        let grown = now.saturating_sub(before) as f64 / 1024.0;
        line("resident memory of the untouched card", format!("{grown:.1} MiB"), "goal: at most 64");
    }
    let kernel = empty(&device)?;
    kernel.launch([1, 1, 1], [32, 1, 1], &[])?;
    device.synchronize()?;
    line(
        "from nothing to the first result",
        format!("{:.1} ms", milliseconds(start.elapsed())),
        "goal: at most 30",
    );

    latency(&device, &kernel, &mut line)?;
    for (batch, what) in PACES {
        let [plain, captured] = captured(&bench.choice, &device, &kernel, batch)?;
        line(what, plain.to_string(), if batch == BATCH { "goal: 100000" } else { "" });
        let value = format!("{captured}, {:.2} times the work", captured.work / plain.work);
        line("the same, captured", value, "goal: below 2 times");
    }
    copies(&device, &mut line)?;

    thread::sleep(Duration::from_millis(100));
    let (used, start) = (processor_time()?, Instant::now());
    thread::sleep(Duration::from_secs(2));
    let used = processor_time()?.saturating_sub(used).as_secs_f64();
    let share = 100.0 * used / start.elapsed().as_secs_f64();
    line("an idle simulator's share of a core", format!("{share:.2} %"), "goal: at most 1");
    Ok(text)
}

/// A kernel that does nothing.
fn empty(device: &Device) -> Result<nv_driver::Kernel, BenchError> {
    let elf = fixtures::cubin(&format!("sm_{}", device.sm()), "empty")?;
    Ok(Module::load(device, &elf)?.kernel("empty")?)
}

/// From the doorbell of an empty launch until its semaphore is seen.
fn latency(
    device: &Device,
    kernel: &nv_driver::Kernel,
    line: &mut impl FnMut(&str, String, &str),
) -> Result<(), BenchError> {
    let done = device.signal(0)?;
    let mut times = Vec::with_capacity(LAUNCHES);
    for value in 1..=LAUNCHES as u64 {
        let mut queue = ComputeQueue::new(device);
        queue.exec(kernel, [1, 1, 1], [32, 1, 1], &[])?.signal(&done, value);
        let start = Instant::now();
        queue.submit()?;
        while done.value()? < value {
            std::hint::spin_loop();
        }
        times.push(start.elapsed());
    }
    times.sort();
    let at = |part: usize| times[times.len() * part / 100].as_secs_f64() * 1e6;
    let value = format!("{:.1} us, 99 %: {:.1} us", at(50), at(99));
    line("an empty launch, submission to semaphore", value, "goal: 10 us in the middle");
    Ok(())
}

/// How many launches a submission has, and what that is called.
const PACES: [(u64, &str); 2] =
    [(BATCH, "empty launches, 64 in a submission"), (1, "empty launches, each a submission")];

/// How fast launches follow each other.
#[derive(Clone, Copy)]
struct Pace {
    /// Launches in a second.
    rate: f64,
    /// Seconds of processor time of a launch, over all threads.
    work: f64,
}

impl Pace {
    const WORST: Self = Self { rate: 0.0, work: f64::INFINITY };

    /// Takes what is better of another round.
    fn improve(&mut self, other: Self) {
        self.rate = self.rate.max(other.rate);
        self.work = self.work.min(other.work);
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} /s, {:.1} us of work", self.rate, self.work * 1e6)
    }
}

/// Launches of an empty kernel that follow each other, `batch` in a submission.
fn pace(device: &Device, kernel: &nv_driver::Kernel, batch: u64) -> Result<Pace, BenchError> {
    let done = device.signal(0)?;
    let (used, start) = (processor_time()?, Instant::now());
    let submissions = ROUND / batch;
    for value in 1..=submissions {
        let mut queue = ComputeQueue::new(device);
        for _ in 0..batch {
            queue.exec(kernel, [1, 1, 1], [32, 1, 1], &[])?;
        }
        queue.signal(&done, value);
        queue.submit()?;
    }
    device.wait(&done, submissions, PATIENCE)?;
    let launches = ROUND as f64;
    let rate = launches / start.elapsed().as_secs_f64();
    Ok(Pace { rate, work: processor_time()?.saturating_sub(used).as_secs_f64() / launches })
}

/// The pace plain, and on a machine of its own while everything that is said to it is written down: the best of several
/// rounds that take turns, so that what else the computer does disturbs both.
fn captured(
    choice: &Choice,
    device: &Device,
    kernel: &nv_driver::Kernel,
    batch: u64,
) -> Result<[Pace; 2], BenchError> {
    let recorded = choice.open(ADA, true)?;
    let other = recorded.device(0)?;
    let other_kernel = empty(&other)?;
    let mut best = [Pace::WORST; 2];
    for _ in 0..ROUNDS {
        best[0].improve(pace(device, kernel, batch)?);
        best[1].improve(pace(&other, &other_kernel, batch)?);
    }
    Ok(best)
}

/// The copy engine, video memory to video memory.
fn copies(device: &Device, line: &mut impl FnMut(&str, String, &str)) -> Result<(), BenchError> {
    let (from, to) = (device.video::<u8>(COPY)?, device.video::<u8>(COPY)?);
    let done = device.signal(0)?;
    let mut best = Duration::MAX;
    for value in 1..=8 {
        let mut queue = CopyQueue::new(device);
        queue.copy(to.address(), from.address(), COPY as u64).signal(&done, value);
        let start = Instant::now();
        queue.submit()?;
        device.wait(&done, value, PATIENCE)?;
        best = best.min(start.elapsed());
    }
    let rate = COPY as f64 / best.as_secs_f64() / 1e9;
    line("the copy engine", format!("{rate:.1} GB/s"), "");
    Ok(())
}
