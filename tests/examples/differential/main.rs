//! Every instruction that is a function of registers, on a card and on the simulator, bit for bit.
//!
//! `differential [--lanes N] [--seed N] [--only MNEMONIC] [--rounds N] [--row N] [--every] [--examples N] [--faults N] [--simulator-only] [--golden FILE]` takes each word of
//! `fixtures/sass` for the card's architecture, gives it a probe's registers (see `tests::probe`), runs it on both, and
//! prints what differs. `--rounds` repeats each instruction on new inputs, `--row` as often as it takes for so many
//! lane-operations of its opcode, or a hundredth as many matrix products. `--every` gives the forms of `--only` that read
//! one register all its 2^32 values instead. `--golden` writes what the card answered, for the plain test-suite to replay.
//! `--unusual` takes forms that no compiler output has, as the table of rows knows them, in place of the fixture's, and
//! asks what the special registers hold and what halves with `.OOB` are. `--questions` asks `tests::questions` instead:
//! memory, branches, ends of threads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

mod questions;
mod unusual;

use nv_driver::{Device, Options, System, os::NvidiaNodes};
use nv_simulator::{machine::Machine, profile::Profile};
use sass::{Instruction, Op, Operand, decode};
use tests::probe::{self, BLOCK, OUTPUTS, Program, Random};

type Failure = Box<dyn std::error::Error>;

struct Settings {
    lanes: u32,
    golden_lanes: u32,
    seed: u64,
    variants: u32,
    rounds: u32,
    row: u64,
    every: bool,
    unusual: bool,
    questions: bool,
    only: Option<String>,
    card: bool,
    faults: u32,
    examples: usize,
    exponents: Option<String>,
    golden: Option<String>,
}

impl Settings {
    /// How often an instruction is repeated, of whose opcode there are so many forms; 0 for once, without a digest.
    fn rounds(&self, op: Op, forms: u64) -> u32 {
        let name = op.name();
        let matrix = matches!(name, "HMMA" | "IMMA" | "BMMA" | "DMMA" | "QMMA");
        // What one round does, and what each opcode is to do: a product belongs to a warp, and takes the simulator a
        // hundred times longer.
        let (each, wanted) =
            if matrix { (u64::from(self.lanes / 32), self.row / 100) } else { (self.lanes.into(), self.row) };
        let rounds = if matrix { self.rounds.div_ceil(64) } else { self.rounds };
        let needed = wanted.div_ceil((each * forms).max(1));
        rounds.max(u32::try_from(needed).unwrap_or(u32::MAX))
    }
}

/// The bits that choose an instruction's row.
fn opcode(instruction: &Instruction) -> u32 {
    instruction.word as u32 & 0xfff
}

fn settings() -> Result<Settings, Failure> {
    let mut s = Settings {
        lanes: 1 << 14,
        golden_lanes: 1 << 10,
        seed: 1,
        variants: 3,
        rounds: 0,
        row: 0,
        every: false,
        unusual: false,
        questions: false,
        only: None,
        card: true,
        faults: 200,
        examples: 1,
        exponents: None,
        golden: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{name} needs a value"));
        match name.as_str() {
            "--lanes" => s.lanes = value()?.parse()?,
            "--seed" => s.seed = value()?.parse()?,
            "--variants" => s.variants = value()?.parse()?,
            "--faults" => s.faults = value()?.parse()?,
            "--examples" => s.examples = value()?.parse()?,
            "--exponents" => s.exponents = Some(value()?),
            "--rounds" => s.rounds = value()?.parse()?,
            "--row" => s.row = value()?.parse()?,
            "--every" => s.every = true,
            "--unusual" => s.unusual = true,
            "--questions" => s.questions = true,
            "--only" => s.only = Some(value()?),
            "--golden" => s.golden = Some(value()?),
            "--simulator-only" => s.card = false,
            _ => return Err(format!("unknown argument {name}").into()),
        }
    }
    Ok(s)
}

fn card() -> Result<Device, Failure> {
    let system = System::open(Arc::new(NvidiaNodes::new()))?;
    let mut options = Options::default();
    options.deadline = Duration::from_secs(5);
    Ok(Device::open_on(&system, 0, options)?)
}

fn simulated(profile: &Profile) -> Result<Device, Failure> {
    let machine = Machine::builder().gpu(profile.clone()).driver(tests::DRIVER).build()?;
    Ok(Device::open(machine, 0)?)
}

/// The words to try: golden words dressed, each once, and random variants of each.
fn cases(arch: sass::Arch, settings: &Settings) -> Result<Vec<Instruction>, Failure> {
    let text = fixtures::text(&format!("sass/sm_{}.txt", arch.sm()))?;
    let mut golden = if settings.unusual { unusual::forms(arch) } else { Vec::new() };
    let lines = if settings.unusual { "" } else { text.as_str() };
    for line in lines.lines().filter(|line| !line.starts_with('#')) {
        let word = line.split_whitespace().next().and_then(|word| u128::from_str_radix(word, 16).ok());
        if let Some(Ok(instruction)) = word.map(|word| decode(word, 0, arch)) {
            golden.push(instruction);
        }
    }
    // A result that some word of the mnemonic is waited for is waited for always.
    let mut awaited: BTreeMap<Op, (bool, bool)> = BTreeMap::new();
    for instruction in &golden {
        let entry = awaited.entry(instruction.op).or_default();
        entry.0 |= instruction.control.write_barrier != 7;
        entry.1 |= instruction.control.read_barrier != 7;
    }
    let mut random = Random(settings.seed);
    let (mut seen, mut out) = (BTreeSet::new(), Vec::new());
    for mut instruction in golden {
        if settings.only.as_ref().is_some_and(|only| !instruction.op.name().starts_with(only.as_str())) {
            continue;
        }
        let (written, read) = awaited[&instruction.op];
        instruction.control.write_barrier = if written { 0 } else { 7 };
        instruction.control.read_barrier = if read { 1 } else { 7 };
        for variant in 0..settings.variants {
            let source = if variant == 0 { None } else { Some(&mut random) };
            let Ok(mut dressed) = probe::dress(&instruction, source) else { continue };
            if variant == 2 && !probe::is_collective(dressed.op) && !dressed.guard.uniform {
                dressed.guard.index = 3;
            }
            if let Ok(word) = sass::encode(&dressed)
                && seen.insert(word)
                && let Ok(instruction) = decode(word, 0, arch)
            {
                out.push(instruction);
            }
        }
    }
    Ok(out)
}

fn main() -> Result<(), Failure> {
    let settings = settings()?;
    let profile = Profile::h200();
    let mut real = if settings.card { Some(card()?) } else { None };
    let mut simulator = simulated(&profile)?;
    let device = real.as_ref().unwrap_or(&simulator);
    let arch = sass::Arch::from_sm(device.sm()).ok_or("unknown architecture")?;
    let version = device.info().driver_version.clone();
    if settings.questions {
        return questions::ask_all(&settings, real, arch, &version);
    }
    let cases = cases(arch, &settings)?;
    if let Some(path) = &settings.exponents {
        let first = cases.first().ok_or("no instruction")?;
        return Ok(std::fs::write(path, exponents(device, first)?)?);
    }
    if settings.unusual {
        if settings.card {
            // What they may have done to its channel is not to matter.
            drop(real.take());
            unusual::ask("card", &card, arch)?;
            real = Some(card()?);
        }
        unusual::ask("simulator", &|| simulated(&profile), arch)?;
    }
    if settings.every {
        return every_value(&settings, real.as_ref(), &simulator, &cases);
    }
    println!("{arch}, driver {version}: {} instructions, {} lanes each", cases.len(), settings.lanes);
    let mut golden = format!(
        "# What an H200 (driver {version}) leaves behind each instruction: word, FNV-1a of the {} words of {} lanes,\n\
         # or `refused` where the card takes it for illegal.\n\
         # Written by `cargo run -p tests --features tools --example differential -- --golden FILE`; seed {}; see tests/src/probe.rs.\n",
        settings.golden_lanes * OUTPUTS as u32,
        settings.golden_lanes,
        settings.seed,
    );
    let mut forms: BTreeMap<u32, u64> = BTreeMap::new();
    for instruction in &cases {
        *forms.entry(opcode(instruction)).or_default() += 1;
    }
    let mut tally: BTreeMap<&str, [u32; 4]> = BTreeMap::new();
    let mut faulted = 0;
    if settings.card
        && let Some(first) = cases.first()
    {
        // The frame around the instructions must be one that the card takes, or everything below means nothing.
        let program = Program::new(first)?;
        for length in 1.. {
            let Some(cut) = program.cut(length) else { break };
            if let Err(error) = cut.run(&card()?, settings.seed, 1) {
                let line = program.line(length - 1);
                return Err(format!("the card refuses the frame at {length}: {line}: {error}").into());
            }
        }
    }
    for instruction in &cases {
        let name = instruction.op.name();
        let entry = tally.entry(name).or_default();
        let rounds = settings.rounds(instruction.op, forms[&opcode(instruction)]);
        let program = match rounds {
            0 => Program::new(instruction)?,
            rounds => Program::repeated(instruction, rounds)?,
        };
        let mine = program.run(&simulator, settings.seed, settings.lanes / BLOCK);
        if mine.is_err() {
            simulator = simulated(&profile)?;
        }
        let theirs = match &real {
            None => None,
            Some(device) => Some(program.run(device, settings.seed, settings.lanes / BLOCK)),
        };
        if let (Some(Err(_)), true) = (&theirs, settings.card) {
            faulted += 1;
            if faulted > settings.faults {
                return Err(format!("more than {} refusals by the card", settings.faults).into());
            }
            drop(real.take());
            real = Some(card()?);
        }
        let what = match (&mine, &theirs) {
            (Ok(_), None) => 0,
            (Ok(a), Some(Ok(b))) if a == b => 0,
            (Ok(a), Some(Ok(b))) => {
                let different = a.iter().zip(b).filter(|(a, b)| a != b).count();
                println!("DIFFERS {:032x} {instruction}: {different} words", instruction.word);
                let lanes = a.chunks(OUTPUTS).zip(b.chunks(OUTPUTS)).enumerate();
                for (lane, (mine, theirs)) in lanes.filter(|(_, (a, b))| a != b).take(settings.examples) {
                    print_lane(&settings, lane, mine, theirs);
                }
                1
            }
            (Err(error), None | Some(Ok(_))) => {
                println!("LACKS {:032x} {instruction}: {error}", instruction.word);
                2
            }
            (mine, Some(Err(error))) => {
                let mine = if mine.is_ok() { "executed" } else { "refused" };
                println!(
                    "CARD REFUSES {:032x} {instruction}: {error}; {mine} by the simulator",
                    instruction.word
                );
                3
            }
        };
        entry[what] += 1;
        if let (Some(_), Some(device)) = (&settings.golden, &real) {
            let answer = if what == 3 {
                String::from("refused")
            } else {
                let words = program.run(device, settings.seed, settings.golden_lanes / BLOCK)?;
                format!("{:016x}", probe::digest(&words))
            };
            let _ = writeln!(golden, "{:032x} {answer} {instruction}", instruction.word);
        }
    }
    println!("mnemonic: equal, different, lacking, refused by the card");
    let mut sum = [0; 4];
    for (name, counts) in &tally {
        println!("{name}: {counts:?}");
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    println!("all: {sum:?}, {faulted} channels faulted");
    if let Some(path) = &settings.golden {
        std::fs::write(path, golden)?;
    }
    Ok(())
}

/// Runs each form that reads nothing but one register on all values of a register; lanes keep a digest of their share.
fn every_value(
    settings: &Settings,
    card: Option<&Device>,
    simulator: &Device,
    cases: &[Instruction],
) -> Result<(), Failure> {
    let lanes = settings.lanes;
    let rounds = u32::try_from((1u64 << 32) / u64::from(lanes))?;
    let words: Vec<u32> = (0..lanes).flat_map(|lane| [lane; probe::INPUTS]).collect();
    for instruction in cases {
        // Operands past the destination.
        let sources = instruction.operands().iter().skip(1);
        if sources.clone().count() != 1 || !sources.clone().all(|o| matches!(o, Operand::Register { .. })) {
            continue;
        }
        let program = Program::counted(instruction, rounds, lanes)?;
        let run = |device: &Device| program.run_words(device, &[0; probe::INPUTS], &words);
        let mine = match run(simulator) {
            Ok(mine) => mine,
            Err(error) => {
                println!("LACKS {:032x} {instruction}: {error}", instruction.word);
                continue;
            }
        };
        let verdict = match card {
            None => String::from("not compared"),
            Some(card) => match run(card)?.iter().zip(&mine).filter(|(a, b)| a != b).count() {
                0 => String::from("equal"),
                different => format!("DIFFERS in {different} words"),
            },
        };
        println!("{:032x} {:016x} {instruction}: {verdict}", instruction.word, probe::digest(&mine));
    }
    Ok(())
}

/// The first predicate that an instruction gives for every pair of FP32 exponents: a line for each of the first
/// operand and of three pairs of mantissas, a digit for each of the second.
fn exponents(device: &Device, instruction: &Instruction) -> Result<String, Failure> {
    let program = Program::new(instruction)?;
    let mut text = format!("# {instruction}\n");
    for mantissas in [[0x12_3456, 0x12_3456], [0x7f_ffff, 1], [0, 0x7f_ffff], [0, 0]] {
        let mut words = Vec::new();
        for lane in 0..1u32 << 16 {
            let mut input = [0; probe::INPUTS];
            (input[0], input[4]) = (lane >> 8 << 23 | mantissas[0], (lane & 255) << 23 | mantissas[1]);
            words.extend(input);
        }
        let answer = program.run_words(device, &[0; probe::INPUTS], &words)?;
        for line in answer.chunks(256 * OUTPUTS) {
            text.extend(line.chunks(OUTPUTS).map(|lane| if lane[8] >> 4 & 1 != 0 { '1' } else { '0' }));
            text.push('\n');
        }
    }
    Ok(text)
}

/// A lane's inputs and both outputs.
fn print_lane(settings: &Settings, lane: usize, mine: &[u32], theirs: &[u32]) {
    let mut random = Random(settings.seed);
    let constants = probe::inputs(&mut random);
    let mut words = [0; probe::INPUTS];
    for _ in 0..=lane {
        words = probe::inputs(&mut random);
    }
    let hex = |words: &[u32]| words.iter().map(|w| format!("{w:08x}")).collect::<Vec<_>>().join(" ");
    println!("    lane {lane}: inputs {}", hex(&words));
    println!("    constants {}", hex(&constants));
    println!("    simulator {}", hex(&mine[..OUTPUTS - 3]));
    println!("    card      {}", hex(&theirs[..OUTPUTS - 3]));
}
