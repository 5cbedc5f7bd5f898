//! Every mnemonic of arithmetic through the interpreter: each row of the instruction table, each value of each field,
//! each mark and part of each source, on values at the edges of formats and types and on random ones.
//!
//! The instructions are assembled by `sass::encode`, so the way from the table through lowering to the handler is what
//! is tested; the results are compared with `reference`, which reads the fields' text alone.

mod claims;
mod lab;
mod memory;
mod model;
mod products;
mod reference;
mod runs;
mod straight;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use lab::{Input, Lab, THREADS};
use sass::{Arch, Instruction, Op};

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Words at edges of formats and types, of 32 and of 64 bits.
const EDGES: [u64; 40] = [
    0,
    1,
    2,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_ffff,
    0x3f80_0000,
    0xbf80_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x0080_0000,
    0x007f_ffff,
    0x3c00_bc00,
    0x7c00_fc00,
    0x0001_8001,
    0x03ff_0400,
    0x7bff_7e00,
    0x4f00_0000,
    0x7ff0_0000_0000_0000,
    0xfff8_0000_0000_1234,
    0x3ff0_0000_0000_0000,
    0xbfe0_0000_0000_0001,
    0x0010_0000_0000_0000,
    0x000f_ffff_ffff_ffff,
    0x43e0_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
];

fn inputs(seed: u64) -> [Input; THREADS] {
    let mut state = seed;
    std::array::from_fn(|thread| {
        let mut word = || {
            let (kind, bits) = (random(&mut state), random(&mut state));
            match kind % 4 {
                0 => EDGES[(kind >> 8) as usize % EDGES.len()],
                // Near one in FP32 in the low word, in FP64 in the high one.
                1 => 0x3fe0_0000_3f00_0000 + (bits & 0x003f_ffff_01ff_ffff),
                // Small integers.
                2 => bits % 80,
                _ => bits,
            }
        };
        [word(), word(), word(), thread as u64 & 3]
    })
}

/// Counts of one architecture.
#[derive(Default)]
struct Tally {
    compared: usize,
    parts: BTreeSet<claims::Part>,
    unsupported: BTreeMap<String, usize>,
    without_reference: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

fn sweep(lab: &Lab, arch: Arch, op: Op, writes_register: bool, tally: &mut Tally) {
    let immediates: [&[u64]; 3] = [&[0x1f], &[0x3f81_0203], &[0x8000_0001]];
    let mut all: Vec<Instruction> = Vec::new();
    for row in lab::rows_of(op, arch) {
        let combinations = lab::field_values(row, 200);
        let few = combinations.len() <= 12;
        for (number, values) in combinations.iter().enumerate() {
            if let Some(blank) = lab::blank(row, values, arch) {
                let forms = lab::forms(&blank, writes_register, immediates[number % 3]);
                // Every field value once; marks and parts with some of them.
                let some = if number % 5 == 0 || few { forms.len() } else { 1 };
                all.extend(forms.into_iter().take(some));
            }
        }
    }
    // What lowering refuses ends a launch, so that of all that it refuses for one reason one is run.
    let mut reasons = BTreeSet::new();
    all.retain(|instruction| match nv_sm::executes(instruction) {
        Err(reason) if !reasons.insert(reason.clone()) => {
            *tally.unsupported.entry(reason).or_default() += 1;
            false
        }
        _ => true,
    });
    // Of uniform instructions, all threads of a warp have one input.
    let rounds = if all.first().is_some_and(|first| lab::is_uniform(first.row)) { 8 } else { 1 };
    for round in 0..rounds {
        compare(lab, &all, &inputs(op as u64 + (round << 16)), writes_register, tally);
    }
}

/// Runs instructions on inputs, and compares each thread's results.
fn compare(
    lab: &Lab,
    all: &[Instruction],
    inputs: &[Input; THREADS],
    writes_register: bool,
    tally: &mut Tally,
) {
    for (instruction, outcome) in all.iter().zip(lab.run(all, inputs)) {
        let text = || instruction.to_string();
        match outcome {
            Err(name) => *tally.unsupported.entry(name).or_default() += 1,
            Ok(outputs) => {
                let mut known = true;
                for (thread, (input, output)) in inputs.iter().zip(&outputs).enumerate() {
                    let first = &inputs[thread / 32 * 32];
                    match reference::expected(instruction, input, first, writes_register) {
                        None => known = false,
                        Some(expected) if expected != *output => {
                            tally
                                .wrong
                                .push(format!("{}: {input:x?} gives {output:x?}, not {expected:x?}", text()));
                            break;
                        }
                        Some(_) => {}
                    }
                }
                if known {
                    tally.compared += 1;
                    tally.parts.extend(claims::parts(instruction));
                } else {
                    let name = text().split(' ').next().unwrap_or("").to_owned();
                    *tally.without_reference.entry(name).or_default() += 1;
                }
            }
        }
    }
}

/// Mnemonics that write a register, and those that write predicates only.
const TO_REGISTER: &[Op] = &[
    Op::Iadd3,
    Op::Imad,
    Op::Imnmx,
    Op::Vimnmx,
    Op::Vimnmx3,
    Op::Viadd,
    Op::Viaddmnmx,
    Op::Iabs,
    Op::Brev,
    Op::Popc,
    Op::Flo,
    Op::Lop3,
    Op::Shf,
    Op::Prmt,
    Op::Bmsk,
    Op::Sgxt,
    Op::Idp,
    Op::Vabsdiff,
    Op::Vabsdiff4,
    Op::I2i,
    Op::I2ip,
    Op::Sel,
    Op::Mov,
    Op::Fadd,
    Op::Fmul,
    Op::Ffma,
    Op::Fmnmx,
    Op::Fsel,
    Op::Fset,
    Op::Fswzadd,
    Op::Dadd,
    Op::Dmul,
    Op::Dfma,
    Op::Hadd2,
    Op::Hmul2,
    Op::Hfma2,
    Op::Hfma2Mma,
    Op::Hmnmx2,
    Op::Hset2,
    Op::F2i,
    Op::I2f,
    Op::I2fp,
    Op::F2f,
    Op::Frnd,
    Op::F2fp,
    Op::Mufu,
    Op::ImadWide,
    Op::ImadHi,
    Op::Lea,
    Op::P2r,
    Op::Uiadd3,
    Op::Uimad,
    Op::UimadWide,
    Op::Ulop3,
    Op::Ushf,
    Op::Uprmt,
    Op::Ulea,
    Op::Usel,
    Op::Umov,
    Op::Uflo,
    Op::Upopc,
    Op::Ubrev,
];
const TO_PREDICATES: &[Op] =
    &[Op::Isetp, Op::Fsetp, Op::Dsetp, Op::Hsetp2, Op::Plop3, Op::Fchk, Op::R2p, Op::Uisetp];

/// The architectures whose instructions run here. Those of sm_86 have the rows of sm_89.
const ARCHES: [Arch; 3] = [Arch::Sm80, Arch::Sm89, Arch::Sm90];

/// The comparisons of an architecture, made once.
fn tally(arch: Arch) -> &'static Tally {
    static TALLIES: [OnceLock<Tally>; 3] = [const { OnceLock::new() }; 3];
    let at = ARCHES.iter().position(|known| *known == arch).expect("one of them");
    TALLIES[at].get_or_init(|| {
        let lab = Lab::new(arch);
        let mut tally = Tally::default();
        for &op in TO_REGISTER {
            sweep(&lab, arch, op, true, &mut tally);
        }
        for &op in TO_PREDICATES {
            sweep(&lab, arch, op, false, &mut tally);
        }
        memory::sweep(arch, &mut tally);
        tally
    })
}

fn check(arch: Arch, at_least: usize) {
    let tally = tally(arch);
    println!("{arch:?}: {} forms compared", tally.compared);
    println!("unsupported: {:#?}", tally.unsupported);
    println!("without reference: {:#?}", tally.without_reference);
    let mut first: BTreeMap<&str, (usize, &String)> = BTreeMap::new();
    for wrong in &tally.wrong {
        let name = wrong.split(['.', ' ']).next().unwrap_or("");
        first.entry(name).or_insert((0, wrong)).0 += 1;
    }
    assert!(
        first.is_empty(),
        "{} wrong; by mnemonic, how many and one of them: {first:#?}",
        tally.wrong.len()
    );
    assert!(tally.compared >= at_least, "{} forms compared", tally.compared);
}

#[test]
fn arithmetic_forms_of_sm_89_equal_the_reference() {
    check(Arch::Sm89, 1000);
}

#[test]
fn arithmetic_forms_of_sm_90_equal_the_reference() {
    check(Arch::Sm90, 1000);
}

#[test]
fn arithmetic_forms_of_sm_80_equal_the_reference() {
    check(Arch::Sm80, 1000);
}

/// Also those of sm_86, whose words are those of sm_89.
#[test]
fn everything_that_is_executed_is_compared() {
    let executed = claims::executed(&[Arch::Sm80, Arch::Sm86, Arch::Sm89, Arch::Sm90]);
    let mut compared = claims::compared_with_card();
    for arch in ARCHES {
        compared.extend(tally(arch).parts.iter().cloned());
    }
    let missing: Vec<String> =
        executed.keys().filter(|part| !compared.contains(*part)).map(claims::words).collect();
    println!("{} parts executed, {} compared elsewhere", executed.len(), missing.len());
    let elsewhere =
        |part: &&String| claims::ELSEWHERE.iter().any(|(beginning, _)| part.starts_with(beginning));
    let nowhere: Vec<&String> = missing.iter().filter(|part| !elsewhere(part)).collect();
    assert!(
        nowhere.is_empty(),
        "{} parts are executed and compared with nothing: {nowhere:#?}",
        nowhere.len()
    );
    for (beginning, why) in claims::ELSEWHERE {
        let used = missing.iter().any(|part| part.starts_with(beginning));
        assert!(used, "{beginning:?} is compared here, or not executed: it need not be said that {why}");
    }
}
