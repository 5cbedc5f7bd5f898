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
//! A kernel is launched once for each line of the file that begins with its name or its file's (`tests::recipe` says how
//! lines are written), and without one as `recipe::made_up` has it. Addresses are the same in every process that was given the same files.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nv_driver::program::Cubin;
use nv_driver::{Device, Error, Module, Options, System, os::NvidiaNodes};
use nv_simulator::{machine::Machine, profile::Profile};
use tests::recipe::{self, Recipe, kind, launch};

type Failure = Box<dyn std::error::Error>;

/// After so many launches of a kernel that went wrong, the rest of those that no line describes is left out, and said so.
const MOST_FAILURES: usize = 2;

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
                s.recipes = recipe::recipes(&text).map_err(|error| format!("{file}: {error}"))?;
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
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let described = settings.recipes.get(stem).or_else(|| settings.recipes.get(&info.name));
        let recipes = described.cloned().unwrap_or_else(|| recipe::made_up(info));
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
            let result =
                module.kernel(&info.name).and_then(|kernel| launch(&device, &kernel, recipe)?.read());
            drop(module);
            match result {
                Ok(left) => {
                    println!("{head} {}", recipe::line(&left));
                    if let Some(folder) = &settings.save {
                        for (index, (_, after)) in left.iter().enumerate() {
                            let name = format!("{head} {index}").replace(['/', ' '], ".");
                            let bytes: Vec<u8> = after.iter().flat_map(|word| word.to_le_bytes()).collect();
                            std::fs::write(folder.join(name), bytes)?;
                        }
                    }
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
