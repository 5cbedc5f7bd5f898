//! Long rounds of the fuzz targets on all cores, with a stable compiler.
//!
//! `soak SECONDS [--threads N] [--only TARGET] [--seed N]` gives every target the same time, in turns: fixtures with
//! damage and random bytes (`tests::fuzz::Random`). It says how often each ran. An input that a target panics on, or
//! does not come back from within a minute, is printed, and makes the exit status 1.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tests::fuzz::{Random, TARGETS, Target, seeds};

/// How long a thread stays with a target.
const TURN: Duration = Duration::from_millis(500);
/// A target that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

struct Settings {
    time: Duration,
    threads: usize,
    only: Option<String>,
    seed: u64,
}

fn settings() -> Result<Settings, Box<dyn std::error::Error>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut settings = Settings { time: Duration::from_secs(60), threads, only: None, seed: 1 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--threads" => settings.threads = value()?.parse()?,
            "--only" => settings.only = Some(value()?),
            "--seed" => settings.seed = value()?.parse()?,
            seconds => settings.time = Duration::from_secs(seconds.parse()?),
        }
    }
    Ok(settings)
}

/// A target with its inputs' material, and what became of it.
struct Work {
    target: &'static Target,
    seeds: Vec<Vec<u8>>,
    runs: AtomicU64,
    microseconds: AtomicU64,
}

/// What a thread is at: since when, the target, and its input.
type Now = Mutex<Option<(Instant, &'static str, Vec<u8>)>>;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs targets in turns until the end.
fn thread(work: &[Work], number: usize, settings: &Settings, end: Instant, now: &Now, failed: &AtomicBool) {
    let mut random = Random::new(settings.seed << 16 | (number as u64 + 1));
    // Threads begin with different targets.
    for turn in number.. {
        let work = &work[turn % work.len()];
        let begin = Instant::now();
        while begin.elapsed() < TURN && Instant::now() < end {
            let input = random.input(&work.seeds);
            let started = Instant::now();
            if let Ok(mut now) = now.lock() {
                *now = Some((started, work.target.name, input.clone()));
            }
            if catch_unwind(AssertUnwindSafe(|| (work.target.body)(&input))).is_err() {
                failed.store(true, Ordering::Relaxed);
                println!("{} panics on {}", work.target.name, hex(&input));
            }
            if let Ok(mut now) = now.lock() {
                *now = None;
            }
            work.runs.fetch_add(1, Ordering::Relaxed);
            work.microseconds.fetch_add(started.elapsed().as_micros() as u64, Ordering::Relaxed);
        }
        if Instant::now() >= end {
            return;
        }
    }
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let settings = settings()?;
    let wanted = |target: &&Target| settings.only.as_ref().is_none_or(|only| only == target.name);
    let work: Vec<Work> = TARGETS
        .iter()
        .filter(wanted)
        .map(|target| Work {
            target,
            seeds: seeds(target.name),
            runs: AtomicU64::new(0),
            microseconds: AtomicU64::new(0),
        })
        .collect();
    if work.is_empty() {
        return Err("there is no such target".into());
    }
    let failed = AtomicBool::new(false);
    let panics = std::sync::Arc::new(AtomicU64::new(0));
    // The simulated GPU has threads of its own: a panic there counts as well.
    let usual = std::panic::take_hook();
    let counted = panics.clone();
    std::panic::set_hook(Box::new(move |info| {
        counted.fetch_add(1, Ordering::Relaxed);
        usual(info);
    }));
    let (begin, seed) = (Instant::now(), settings.seed);
    let end = begin + settings.time;
    println!("{} threads, {} s, seed {seed}", settings.threads, settings.time.as_secs());
    let now: Vec<Now> = (0..settings.threads).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for (number, now) in now.iter().enumerate() {
            let (work, settings, failed) = (&work, &settings, &failed);
            scope.spawn(move || thread(work, number, settings, end, now, failed));
        }
        while Instant::now() < end {
            std::thread::sleep(Duration::from_secs(1));
            for now in &now {
                if let Ok(now) = now.lock()
                    && let Some((since, target, input)) = &*now
                    && since.elapsed() > PATIENCE
                {
                    println!("{target} hangs on {}", hex(input));
                    std::process::exit(1);
                }
            }
        }
    });
    println!("target, runs, thread-seconds, material");
    let mut total = 0.0;
    for work in &work {
        let seconds = work.microseconds.load(Ordering::Relaxed) as f64 / 1e6;
        total += seconds;
        let runs = work.runs.load(Ordering::Relaxed);
        println!("{} {runs} {seconds:.0} {}", work.target.name, work.seeds.len());
    }
    let panics = panics.load(Ordering::Relaxed);
    println!("{:.2} thread-hours in {:.0} s; {panics} panics", total / 3600.0, begin.elapsed().as_secs_f64());
    let bad = failed.load(Ordering::Relaxed) || panics != 0;
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
