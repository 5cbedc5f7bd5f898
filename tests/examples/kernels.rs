//! Launches every kernel of cubins with made-up arguments, and writes a digest of what each leaves in memory: for comparing
//! builds with each other, and a card with the simulator.
//!
//! `kernels [--card] [--launches FILE] [--seconds N] [--only KERNEL] [--save DIR] PATH...` takes cubins, and folders of
//! them. Lines on standard output are the same wherever the kernels do the same:
//!
//! ```text
//! sm_90/saxpy.cubin saxpy 0 ok ed2ec57b13fcb7a6:0 4a7c01a0f28db4e1:64
//! ```
//!
//! are a cubin, a kernel, the number of the launch, and for each buffer the FNV-1a of its bytes and how many of its words
//! were changed. A launch that the driver refuses, that faults or that does not end in time has the reason there in few
//! words, and in many on standard error. After that the next launch has a device of its own.
//!
//! A kernel is launched once for each line of the file that begins with its name,
//!
//! ```text
//! saxpy grid=4 block=64 shared=0 i32:200 f32:2.5 floats floats
//! ```
//!
//! (there are also `cluster=2,1,1` and `cooperative=true`), and without one, for every filling of buffers, with a buffer for each parameter of 8 bytes, 64 for each of 4, and zeros
//! for others. `+` joins the parts of a struct. Addresses are the same in every process that was given the same files.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nv_driver::program::{Cubin, KernelInfo};
use nv_driver::{
    Argument, Buffer, Device, Error, Kernel, LaunchOptions, Module, Options, System, os::NvidiaNodes,
};
use nv_simulator::{machine::Machine, profile::Profile};
use tests::probe::Random;

type Failure = Box<dyn std::error::Error>;

/// Words of a buffer.
const WORDS: usize = 1 << 16;
/// Dynamic shared memory where no line says how much.
const SHARED: u32 = 32 << 10;
/// After so many launches of a kernel that went wrong, the rest of those that no line describes is left out, and said so.
const MOST_FAILURES: usize = 2;

/// What a buffer holds at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filling {
    Zeros,
    /// Words from 0 to 255.
    Small,
    /// FP32 in -4..4.
    Floats,
    /// FP64 in -4..4.
    Doubles,
    /// FP16 in -4..4.
    Halves,
    /// Any words.
    Bits,
}

impl Filling {
    const ALL: [(&'static str, Self); 6] = [
        ("small", Self::Small),
        ("floats", Self::Floats),
        ("doubles", Self::Doubles),
        ("halves", Self::Halves),
        ("bits", Self::Bits),
        ("zeros", Self::Zeros),
    ];

    fn words(self, seed: u64) -> Vec<u32> {
        let mut random = Random(seed);
        let mut next = || (random.bits() >> 16) as u32;
        let fraction = |x: u32| f64::from(x as i32) / f64::from(1 << 29);
        match self {
            Self::Zeros => vec![0; WORDS],
            Self::Small => (0..WORDS).map(|_| next() & 0xff).collect(),
            Self::Floats => (0..WORDS).map(|_| (fraction(next()) as f32).to_bits()).collect(),
            Self::Doubles => (0..WORDS / 2)
                .flat_map(|_| {
                    let bits = (fraction(next()) / 3.0).to_bits();
                    [bits as u32, (bits >> 32) as u32]
                })
                .collect(),
            // A sign, an exponent from 2^-4 to 2^1, ten bits.
            Self::Halves => {
                let half = |x: u32| x & 0x83ff | (11 + (x >> 10 & 31) % 6) << 10;
                (0..WORDS).map(|_| half(next()) | half(next()) << 16).collect()
            }
            Self::Bits => (0..WORDS).map(|_| next()).collect(),
        }
    }
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Buffer(Filling),
    Bytes(Vec<u8>),
}

/// One launch of a kernel.
#[derive(Clone, Debug, Default)]
struct Recipe {
    grid: [u32; 3],
    block: Option<[u32; 3]>,
    shared: Option<u32>,
    cluster: Option<[u32; 3]>,
    cooperative: bool,
    arguments: Vec<Vec<Part>>,
}

fn dimensions(text: &str) -> Result<[u32; 3], Failure> {
    let mut all = [1; 3];
    for (place, value) in all.iter_mut().zip(text.split(',')) {
        *place = value.parse()?;
    }
    Ok(all)
}

fn part(text: &str) -> Result<Part, Failure> {
    if let Some((_, filling)) = Filling::ALL.iter().find(|(name, _)| *name == text) {
        return Ok(Part::Buffer(*filling));
    }
    let (kind, value) = text.split_once(':').ok_or_else(|| format!("{text} is no argument"))?;
    Ok(Part::Bytes(match kind {
        "u8" => value.parse::<u8>()?.to_le_bytes().into(),
        "i32" => value.parse::<i32>()?.to_le_bytes().into(),
        "f32" => value.parse::<f32>()?.to_le_bytes().into(),
        "i64" => value.parse::<i64>()?.to_le_bytes().into(),
        "f64" => value.parse::<f64>()?.to_le_bytes().into(),
        _ => return Err(format!("{text} is no argument").into()),
    }))
}

/// Reads a file of launches.
fn recipes(text: &str) -> Result<BTreeMap<String, Vec<Recipe>>, Failure> {
    let mut all: BTreeMap<String, Vec<Recipe>> = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let mut recipe = Recipe { grid: [1; 3], ..Recipe::default() };
        for word in words {
            match word.split_once('=') {
                Some(("grid", value)) => recipe.grid = dimensions(value)?,
                Some(("block", value)) => recipe.block = Some(dimensions(value)?),
                Some(("shared", value)) => recipe.shared = Some(value.parse()?),
                Some(("cluster", value)) => recipe.cluster = Some(dimensions(value)?),
                Some(("cooperative", value)) => recipe.cooperative = value.parse()?,
                Some(_) => return Err(format!("{word} is no option of a launch").into()),
                None => recipe.arguments.push(word.split('+').map(part).collect::<Result<_, _>>()?),
            }
        }
        all.entry(name.to_owned()).or_default().push(recipe);
    }
    Ok(all)
}

/// The launches of a kernel that no line describes.
fn made_up(info: &KernelInfo) -> Vec<Recipe> {
    let of = |filling| {
        let argument = |size: u16| match size {
            8 => vec![Part::Buffer(filling)],
            4 => vec![Part::Bytes(64i32.to_le_bytes().into())],
            size => vec![Part::Bytes(vec![0; size.into()])],
        };
        let arguments = info.parameters.iter().map(|parameter| argument(parameter.size)).collect();
        // Two blocks, or two clusters.
        let [x, y, z] = info.required_cluster.unwrap_or([1; 3]);
        Recipe { grid: [2 * x, y, z], arguments, ..Recipe::default() }
    };
    [Filling::Small, Filling::Floats, Filling::Doubles, Filling::Halves].into_iter().map(of).collect()
}

#[derive(Debug, Default)]
struct Settings {
    card: bool,
    seconds: u64,
    only: Option<String>,
    save: Option<PathBuf>,
    recipes: BTreeMap<String, Vec<Recipe>>,
    cubins: Vec<PathBuf>,
}

fn settings() -> Result<Settings, Failure> {
    let mut s = Settings { seconds: 5, ..Settings::default() };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{name} needs a value"));
        match name.as_str() {
            "--card" => s.card = true,
            "--seconds" => s.seconds = value()?.parse()?,
            "--only" => s.only = Some(value()?),
            "--save" => s.save = Some(value()?.into()),
            "--launches" => {
                let file = value()?;
                let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
                s.recipes = recipes(&text).map_err(|error| format!("{file}: {error}"))?;
            }
            _ if name.starts_with("--") => return Err(format!("unknown argument {name}").into()),
            _ => {
                let path = PathBuf::from(&name);
                let found = if path.is_dir() {
                    std::fs::read_dir(&path)?
                        .map(|entry| Ok(entry?.path()))
                        .collect::<Result<_, std::io::Error>>()
                } else {
                    Ok(vec![path])
                };
                let found: Vec<_> = found.map_err(|error| format!("{name}: {error}"))?;
                s.cubins
                    .extend(found.into_iter().filter(|path| path.extension().is_some_and(|e| e == "cubin")));
            }
        }
    }
    s.cubins.sort();
    if s.cubins.is_empty() {
        return Err("no cubins".into());
    }
    Ok(s)
}

/// Where kernels run: a device for code of an SM number, opened when it is needed.
#[derive(Debug)]
struct Place {
    card: bool,
    deadline: Duration,
    open: Option<(u32, Device)>,
    machine: Option<Arc<Machine>>,
}

impl Place {
    /// Gives the device back, and tells what its machine has to say.
    fn close(&mut self) {
        self.open = None;
        let Some(machine) = self.machine.take() else { return };
        for fault in machine.faults() {
            eprintln!("{fault}");
        }
        for unsupported in machine.unsupported() {
            println!("not simulated: {unsupported:?}");
        }
    }

    fn device(&mut self, sm: u32) -> Result<Device, Failure> {
        if let Some((of, device)) = &self.open
            && *of == sm
        {
            return Ok(device.clone());
        }
        self.close();
        let mut options = Options::default();
        options.deadline = self.deadline;
        let system = if self.card {
            System::open(Arc::new(NvidiaNodes::new()))?
        } else {
            let profile = match sm {
                80..=86 => Profile::ga102(),
                89 => Profile::ad102(),
                90 => Profile::h200(),
                _ => return Err(format!("no simulated GPU runs sm_{sm}").into()),
            };
            let machine = Machine::builder().gpu(profile).driver(tests::DRIVER).build()?;
            self.machine = Some(machine.clone());
            System::open(machine)?
        };
        let device = Device::open_on(&system, 0, options)?;
        device.print_to(std::io::sink());
        self.open = Some((sm, device.clone()));
        Ok(device)
    }
}

/// What one launch left.
struct Left {
    buffers: Vec<(Vec<u32>, Vec<u32>)>,
}

fn launch(device: &Device, kernel: &Kernel, recipe: &Recipe) -> Result<Left, Error> {
    let mut seed = 1;
    let mut buffers: Vec<(Vec<u32>, Buffer<u32>)> = Vec::new();
    let mut arguments = Vec::new();
    for parts in &recipe.arguments {
        let mut bytes = Vec::new();
        for part in parts {
            match part {
                Part::Bytes(own) => bytes.extend(own),
                Part::Buffer(filling) => {
                    let words = filling.words(seed);
                    seed += 1;
                    let buffer = device.buffer_from(&words)?;
                    bytes.extend(buffer.address().to_le_bytes());
                    buffers.push((words, buffer));
                }
            }
        }
        arguments.push(Argument::bytes(bytes));
    }
    let info = kernel.info();
    let block = recipe.block.or(info.required_threads).unwrap_or_else(|| {
        let most = info.max_threads.map_or(128, |most| most.iter().product());
        [most.min(if info.max_threads.is_some() { 1024 } else { 128 }), 1, 1]
    });
    let shared = recipe.shared.unwrap_or(if info.shared_bytes > 16 << 10 { 0 } else { SHARED });
    let (cluster, cooperative) = (recipe.cluster, recipe.cooperative);
    let options = LaunchOptions { dynamic_shared: shared, cluster, cooperative };
    kernel.launch_with(recipe.grid, block, &options, &arguments)?;
    device.synchronize()?;
    let read = |(before, buffer): (Vec<u32>, Buffer<u32>)| Ok((before, buffer.to_vec()?));
    Ok(Left { buffers: buffers.into_iter().map(read).collect::<Result<_, Error>>()? })
}

fn digest(words: &[u32]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |all, byte| (all ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// An error in words that are the same wherever it happens.
fn kind(error: &Error) -> String {
    match error {
        Error::ChannelFault(fault) => format!("fault, Xid {}", fault.xid),
        Error::Assertion(_) => "assertion failed".to_owned(),
        Error::InvalidFree(_) => "invalid free".to_owned(),
        Error::Timeout { .. } => "did not end".to_owned(),
        other => format!("refused: {other}"),
    }
}

/// Whether the device goes on after an error.
fn survives(error: &Error) -> bool {
    matches!(
        error,
        Error::Launch { .. }
            | Error::ArgumentCount { .. }
            | Error::ArgumentSize { .. }
            | Error::Cubin(_)
            | Error::Architecture { .. }
            | Error::NoRuntime { .. }
    )
}

fn run(settings: &Settings, place: &mut Place, path: &Path) -> Result<(), Failure> {
    let short: PathBuf = path.components().rev().take(2).collect::<Vec<_>>().into_iter().rev().collect();
    let short = short.display();
    let bytes = std::fs::read(path).map_err(|error| format!("{short}: {error}"))?;
    let cubin = match Cubin::parse(&bytes) {
        Ok(cubin) => cubin,
        Err(error) => {
            println!("{short} not loaded: {error}");
            return Ok(());
        }
    };
    let mut loaded: Option<Module> = None;
    for info in cubin.kernels() {
        if settings.only.as_ref().is_some_and(|only| *only != info.name) {
            continue;
        }
        let described = settings.recipes.get(&info.name);
        let recipes = described.cloned().unwrap_or_else(|| made_up(info));
        let mut failures = 0;
        for (number, recipe) in recipes.iter().enumerate() {
            let head = format!("{short} {} {number}", info.name);
            if described.is_none() && failures == MOST_FAILURES {
                println!("{head} left out after {failures} failures");
                continue;
            }
            let device = match place.device(cubin.sm()) {
                Ok(device) => device,
                Err(error) => {
                    println!("{head} no device: {error}");
                    continue;
                }
            };
            let module = match loaded.clone().map_or_else(|| Module::load(&device, &bytes), Ok) {
                Ok(module) => module,
                Err(error) => {
                    println!("{short} not loaded: {}", kind(&error));
                    eprintln!("{short}: {error}");
                    if !survives(&error) {
                        place.close();
                    }
                    return Ok(());
                }
            };
            loaded = Some(module.clone());
            let result = module.kernel(&info.name).and_then(|kernel| launch(&device, &kernel, recipe));
            drop(module);
            match result {
                Ok(left) => {
                    let mut line = format!("{head} ok");
                    for (index, (before, after)) in left.buffers.iter().enumerate() {
                        let changed =
                            before.iter().zip(after).filter(|(before, after)| before != after).count();
                        line += &format!(" {:016x}:{changed}", digest(after));
                        if let Some(folder) = &settings.save {
                            let name = format!("{head} {index}").replace(['/', ' '], ".");
                            let bytes: Vec<u8> = after.iter().flat_map(|word| word.to_le_bytes()).collect();
                            std::fs::write(folder.join(name), bytes)?;
                        }
                    }
                    println!("{line}");
                }
                Err(error) => {
                    failures += 1;
                    println!("{head} {}", kind(&error));
                    eprintln!("{head}: {error}");
                    if !survives(&error) {
                        // The module goes before the device does.
                        loaded = None;
                        drop(device);
                        place.close();
                    }
                }
            }
            std::io::stdout().flush()?;
        }
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let settings = settings()?;
    let deadline = Duration::from_secs(settings.seconds);
    let mut place = Place { card: settings.card, deadline, open: None, machine: None };
    for path in &settings.cubins {
        run(&settings, &mut place, path)?;
    }
    place.close();
    Ok(())
}
