//! The main job, shown: the real driver brings up a simulated GPU, launches a kernel's machine code on it, and what it
//! wrote for the GPU to read is printed in words.

use std::{collections::BTreeMap, fmt::Write as _, time::Instant};

use nv_abi::{dump, qmd};
use nv_capture::{Action, Event, MemoryKind, Stream, Submission, Symbols, describe};
use nv_driver::{
    Device, Module,
    program::{Cubin, CubinError},
};

use crate::{
    dump::sass,
    paint::Paint,
    simulated::{Choice, DRIVER, Gpu, MachineError, Simulated},
};

/// What went wrong on the way.
#[derive(Debug, thiserror::Error)]
pub enum TourError {
    /// The kernel is not there.
    #[error(transparent)]
    Fixture(#[from] fixtures::FixtureError),
    /// It does not load.
    #[error(transparent)]
    Cubin(#[from] CubinError),
    /// Its code cannot be listed.
    #[error(transparent)]
    Sass(#[from] sass::SassError),
    /// No machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The driver failed.
    #[error("{error}\n{}", faults.join("\n"))]
    Driver {
        /// As the driver met it.
        error: nv_driver::Error,
        /// As the simulator tells it.
        faults: Vec<String>,
    },
    /// What was recorded lacks the launch.
    #[error("the launch is not in what was recorded")]
    NotRecorded,
    /// The sums are wrong.
    #[error("element {index} is {got}, expected {want}")]
    Wrong {
        /// The first wrong element.
        index: usize,
        /// What the GPU computed.
        got: f32,
        /// What the host computed.
        want: f32,
    },
}

/// Prints a line. A reader that went away, as `head` does, is no error.
macro_rules! say {
    ($($text:tt)*) => { crate::print(&(format!($($text)*) + "\n")) };
}

const KERNEL: &str = "vector_add";
const ELEMENTS: usize = 1000;
const BLOCK: u32 = 256;
/// Instructions shown.
const INSTRUCTIONS: usize = 14;

/// Runs the tour and prints it. Succeeds only if every sum is right.
pub fn run(paint: Paint) -> Result<(), TourError> {
    let begin = Instant::now();
    let bytes = fixtures::cubin("sm_89", KERNEL)?;
    let choice = Choice { gpu: Some(Gpu::Ad102), gpus: 1, driver: DRIVER.to_owned() };
    let simulated = choice.open(89, true)?;
    let device = simulated.device(0)?;
    say!("{}", introduction(&simulated, &device, paint));

    let cubin = Cubin::parse(&bytes)?;
    say!("{}", code(&cubin, paint)?);

    let job = Job::new(&simulated, &device, &bytes).map_err(|error| driver(&simulated, error))?;
    say!("{}", job.memory(paint));
    let start = Instant::now();
    let sums = job.run(&device).map_err(|error| driver(&simulated, error))?;
    let time = start.elapsed();
    say!("{}", job.said(&simulated, paint)?);

    let want = fixtures::reference::vector_add(&job.a, &job.b);
    let wrong = (0..ELEMENTS).find(|index| sums[*index].to_bits() != want[*index].to_bits());
    if let Some(index) = wrong {
        return Err(TourError::Wrong { index, got: sums[index], want: want[index] });
    }
    let did = simulated.machine.statistics().first().copied().unwrap_or_default();
    say!("{}", paint.heading("Result"));
    say!("  {}: {ELEMENTS} sums equal the host's, bit for bit", paint.good("verified"),);
    say!(
        "  {} warp instructions, {} lane instructions in {:.2} ms; {:.0} ms with everything around it",
        did.instructions,
        did.lane_instructions,
        time.as_secs_f64() * 1e3,
        begin.elapsed().as_secs_f64() * 1e3
    );
    say!(
        "\nNext: `cargo run -- launch --help` runs your own cubin, `cargo run -- dump --help` reads your own bytes."
    );
    Ok(())
}

fn driver(simulated: &Simulated, error: nv_driver::Error) -> TourError {
    TourError::Driver { error, faults: simulated.faults() }
}

/// What stands where the card would, and what bringing it up took.
fn introduction(simulated: &Simulated, device: &Device, paint: Paint) -> String {
    let info = device.info();
    let events = simulated.recorder.as_ref().map(|recorder| recorder.events()).unwrap_or_default();
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for event in &events {
        if let Event::Ioctl(call) = event {
            let name = match call.node {
                nv_abi::Node::Uvm => nv_abi::uvm::call(call.request).map(|call| call.name),
                _ => nv_abi::ioctl::escape(nv_abi::ioctl::nr(call.request)).map(|escape| escape.name),
            };
            *calls.entry(name.unwrap_or("unknown").to_owned()).or_default() += 1;
        }
    }
    let total: usize = calls.values().sum();
    let mut most: Vec<_> = calls.into_iter().collect();
    most.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let most: Vec<String> = most.into_iter().take(4).map(|(name, count)| format!("{count} {name}")).collect();
    let mut out = String::new();
    let _ = writeln!(out, "{}", paint.heading("A GPU that is not there"));
    let _ = writeln!(
        out,
        "  {} ({}, sm_{}), {} SMs, kernel module {}",
        simulated.profile.name,
        simulated.profile.chip,
        info.sm,
        simulated.profile.sm_count(),
        info.driver_version
    );
    let _ = writeln!(out, "  The driver opened it as it opens a card: {total} ioctls, among them");
    let _ = write!(out, "  {}", most.join(", "));
    out + "\n"
}

/// The first instructions of the kernel.
fn code(cubin: &Cubin, paint: Paint) -> Result<String, TourError> {
    let functions = sass::listing(cubin, Some(KERNEL))?;
    let lines: Vec<&sass::Line> = functions.iter().flat_map(|function| &function.lines).collect();
    let mut out =
        paint.heading(&format!("The kernel's machine code ({KERNEL}, {} instructions)", lines.len())) + "\n";
    for line in lines.iter().take(INSTRUCTIONS) {
        out.push_str(&paint.dump(&sass::line_text(line)));
    }
    let left = lines.len().saturating_sub(INSTRUCTIONS);
    if left > 0 {
        let _ = writeln!(out, "  {}", paint.dim(&format!("... {left} more")));
    }
    Ok(out)
}

/// The sum of two vectors.
struct Job {
    kernel: nv_driver::Kernel,
    a: Vec<f32>,
    b: Vec<f32>,
    buffers: [nv_driver::Buffer<f32>; 3],
    symbols: Symbols,
    /// Events before the launch.
    before: usize,
}

impl Job {
    fn new(simulated: &Simulated, device: &Device, cubin: &[u8]) -> Result<Self, nv_driver::Error> {
        let module = Module::load(device, cubin)?;
        let kernel = module.kernel(KERNEL)?;
        let a: Vec<f32> = (0..ELEMENTS).map(|i| i as f32).collect();
        let b: Vec<f32> = (0..ELEMENTS).map(|i| i as f32 * 0.5).collect();
        let buffers = [device.video(ELEMENTS)?, device.buffer_from(&a)?, device.buffer_from(&b)?];
        let mut symbols = Symbols::new();
        for (buffer, name) in buffers.iter().zip(["sum", "a", "b"]) {
            symbols.insert(buffer.address(), buffer.bytes(), name);
        }
        symbols.insert(module.address(), module.cubin().image_bytes(), KERNEL);
        symbols.insert(device.timeline().0.address(), 16, "timeline");
        let before = simulated.recorder.as_ref().map_or(0, |recorder| recorder.events().len());
        Ok(Self { kernel, a, b, buffers, symbols, before })
    }

    fn grid(&self) -> [u32; 3] {
        [(ELEMENTS as u32).div_ceil(BLOCK), 1, 1]
    }

    fn memory(&self, paint: Paint) -> String {
        let mut out = paint.heading("GPU memory") + "\n";
        for (buffer, name) in self.buffers.iter().zip(["sum", "a", "b"]) {
            let _ = writeln!(out, "  {:#x}  {:>6} bytes  {name}", buffer.address(), buffer.bytes());
        }
        let grid = self.grid()[0];
        let _ = writeln!(out, "  {KERNEL}<<<{grid}, {BLOCK}>>>(sum, a, b, {ELEMENTS})");
        out
    }

    fn run(&self, device: &Device) -> Result<Vec<f32>, nv_driver::Error> {
        let [sum, a, b] = &self.buffers;
        let arguments = [sum.into(), a.into(), b.into(), (ELEMENTS as u32).into()];
        self.kernel.launch(self.grid(), [BLOCK, 1, 1], &arguments)?;
        device.synchronize()?;
        sum.to_vec()
    }

    /// What the driver wrote for the GPU: ring entry, pushbuffer, descriptor, constant bank.
    fn said(&self, simulated: &Simulated, paint: Paint) -> Result<String, TourError> {
        let events = simulated.recorder.as_ref().map(|recorder| recorder.events()).unwrap_or_default();
        let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
        for (index, event) in events.iter().enumerate() {
            let Event::Submission(submission) = event else { continue };
            let Some(words) = &submission.words else { continue };
            let stream = streams.entry(submission.channel).or_insert_with(|| Stream::new(submission.class));
            let mut subchannels = stream.subchannels().clone();
            let (_, steps) = stream.segment(words);
            let launch = steps.iter().find_map(|step| match step.action {
                Action::Launch { qmd, .. } => Some(qmd),
                _ => None,
            });
            let (Some(address), true) = (launch, index >= self.before) else { continue };
            let generation = stream.generation();
            let memory = |kind, at| {
                events[..index].iter().rev().find_map(|event| match event {
                    Event::Memory(memory) if memory.kind == kind && memory.address == at => {
                        Some(&memory.bytes)
                    }
                    _ => None,
                })
            };
            let mut out = self.ring(submission, paint);
            let _ = writeln!(out, "{}", paint.heading("The pushbuffer, word by word"));
            out.push_str(&paint.dump(&indent(&dump::pushbuffer(words, &mut subchannels))));
            let _ = writeln!(out, "\n{}", paint.heading("What it does"));
            for step in &steps {
                let _ = writeln!(out, "  {}", describe(&step.action, &self.symbols));
            }
            let qmd = memory(MemoryKind::Qmd, address).ok_or(TourError::NotRecorded)?;
            let version = stream.qmd_version();
            let text = dump::qmd(version, qmd).map_err(|_| TourError::NotRecorded)?;
            let _ = writeln!(out, "\n{}", paint.heading("The launch descriptor"));
            out.push_str(&paint.dump(&indent(&text)));
            let bank = qmd::read(version, qmd).ok().and_then(|launch| launch.constant_buffers[0]);
            let bank = bank.and_then(|bank| memory(MemoryKind::ConstantBank, bank.address));
            let bank = bank.ok_or(TourError::NotRecorded)?;
            let _ = writeln!(out, "\n{}", paint.heading("The kernel's arguments"));
            out.push_str(&paint.dump(&indent(&dump::constant_bank(generation, bank))));
            return Ok(out);
        }
        Err(TourError::NotRecorded)
    }

    fn ring(&self, submission: &Submission, paint: Paint) -> String {
        let mut out = paint.heading("The ring entry") + "\n";
        let _ = writeln!(
            out,
            "  slot {} of channel {:#x}: {:016x}  {}\n",
            submission.slot,
            submission.channel,
            submission.entry,
            dump::entry(submission.entry)
        );
        out
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }).collect()
}
