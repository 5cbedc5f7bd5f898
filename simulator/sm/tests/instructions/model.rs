//! What loads, stores, atomics and exchanges between lanes leave behind: bytes and host arithmetic, nothing of the
//! interpreter's and nothing of `sass::lane`'s.

use sass::{Bank, FieldId as F, Instruction, Op, Operand};

/// Threads of the warp.
pub const WARP: usize = 32;
/// Bytes that each thread has in each space.
pub const SLOT: usize = 64;
/// What the result registers hold before.
pub const BEFORE: [u32; 4] = [0x5555_0001, 0x5555_0002, 0x5555_0003, 0x5555_0004];
/// What the uniform addend holds.
pub const ADDEND: u64 = 16;
/// Where the constants begin that are loaded, in bank 0.
pub const CONSTANTS: u64 = 0x100;

/// A space of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Global,
    Shared,
    Local,
}

/// What a thread begins with: two runs of four registers, and the words of its slot.
#[derive(Clone, Debug)]
pub struct Given {
    pub data: [[u32; 4]; 2],
    pub content: [u32; SLOT / 4],
}

impl Given {
    /// The slot's bytes.
    pub fn bytes(&self) -> [u8; SLOT] {
        let mut bytes = [0; SLOT];
        for (to, word) in bytes.chunks_exact_mut(4).zip(self.content) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The first run of registers, as one number.
    fn data(&self, run: usize) -> u128 {
        self.data[run].iter().rev().fold(0, |all, word| all << 32 | u128::from(*word))
    }

    /// The predicate `P0`.
    fn condition(&self) -> bool {
        self.content[0] & 1 != 0
    }
}

/// What a thread ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub result: [u32; 4],
    pub predicate: bool,
    pub slot: [u8; SLOT],
}

/// The constants of bank 0 from [`CONSTANTS`] on.
pub fn constants() -> Vec<u8> {
    let mut state = 99;
    (0..0x100).flat_map(|_| super::random(&mut state).to_le_bytes()).collect()
}

/// Where in its slot a thread's access begins: the addresses of all forms lead to the slot itself, and offset and uniform
/// addend lead on.
fn offset(operand: &Operand) -> Option<usize> {
    let Operand::Address { uniform, offset, .. } = *operand else { return None };
    let addend = if uniform.is_some_and(|index| index != Operand::URZ) { ADDEND } else { 0 };
    usize::try_from(offset).ok().map(|offset| offset + addend as usize)
}

fn access(i: &Instruction) -> Option<usize> {
    i.operands().iter().find_map(offset)
}

/// Bytes of a size, and whether what is loaded has a sign.
fn size(spelling: &str) -> Option<(usize, bool)> {
    Some(match spelling {
        ".U8" => (1, false),
        ".S8" => (1, true),
        ".U16" => (2, false),
        ".S16" => (2, true),
        "" | ".32" | ".U32" => (4, false),
        ".64" => (8, false),
        ".128" => (16, false),
        _ => return None,
    })
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u128::from(*byte))
}

/// The registers that a load of such bytes writes.
fn loaded(bytes: &[u8], signed: bool) -> Vec<u32> {
    let value = number(bytes);
    let bits = 8 * bytes.len() as u32;
    if bits >= 32 {
        return (0..bits / 32).map(|word| (value >> (32 * word)) as u32).collect();
    }
    let negative = signed && value >> (bits - 1) != 0;
    vec![value as u32 | if negative { u32::MAX << bits } else { 0 }]
}

/// Whether the instruction has a register to write.
fn keeps(i: &Instruction) -> bool {
    let first = i.operands().iter().find_map(|operand| match *operand {
        Operand::Register { index, .. } => Some(index != Operand::RZ),
        Operand::UniformRegister { index, .. } => Some(index != Operand::URZ),
        _ => None,
    });
    first.unwrap_or(false)
}

/// What all threads end with; `None` where there is no model of the form.
pub fn expected(i: &Instruction, space: Space, given: &[Given; WARP]) -> Option<Vec<Thread>> {
    let mut threads: Vec<Thread> =
        given.iter().map(|given| Thread { result: BEFORE, predicate: false, slot: given.bytes() }).collect();
    match i.op {
        Op::Ldsm | Op::Stsm => matrices(i, given, &mut threads)?,
        Op::Shfl | Op::Vote | Op::Voteu | Op::Match | Op::Redux | Op::Elect => {
            exchange(i, given, &mut threads)?;
        }
        _ => {
            for (lane, (thread, given)) in threads.iter_mut().zip(given).enumerate() {
                one(i, space, lane, given, thread)?;
            }
        }
    }
    Some(threads)
}

/// One thread by itself.
fn one(i: &Instruction, space: Space, lane: usize, given: &Given, thread: &mut Thread) -> Option<()> {
    let text = |id: F| i.spelling(id).unwrap_or("");
    let mut put = |words: &[u32]| {
        if keeps(i) {
            thread.result[..words.len()].copy_from_slice(words);
        }
    };
    match i.op {
        Op::Ldg | Op::Ld | Op::Lds | Op::Ldl => {
            let ((bytes, signed), at) = (size(text(F::Size))?, access(i)?);
            // Where a predicate behind the address does not hold, nothing is loaded.
            let enabled = match i.operands().get(3) {
                Some(Operand::Predicate { index: 0, negated, .. }) => given.condition() != *negated,
                Some(Operand::Predicate { negated, .. }) => !negated,
                _ => true,
            };
            let bytes = given.bytes()[at..at + bytes].to_vec();
            put(&loaded(&if enabled { bytes } else { vec![0; bytes.len()] }, signed));
        }
        Op::Ldc | Op::Uldc => {
            let (bytes, signed) = size(text(F::Size))?;
            let Operand::Constant { bank, index, uniform_index, .. } = i.operands()[1] else { return None };
            // The index register holds an eighth of the slot's offset, the uniform one the addend.
            let index = match (index, uniform_index, bank) {
                (Operand::RZ, ..) => 0,
                (_, true, _) => ADDEND as usize,
                (_, false, Bank::Number(_) | Bank::Uniform(_)) => lane * SLOT / 8,
            };
            put(&loaded(&constants()[index..index + bytes], signed));
        }
        Op::Stg | Op::St | Op::Sts | Op::Stl => {
            let ((bytes, _), at) = (size(text(F::Size))?, access(i)?);
            thread.slot[at..at + bytes].copy_from_slice(&given.data(0).to_le_bytes()[..bytes]);
        }
        Op::Ldgsts => {
            let ((bytes, _), to, from) = (size(text(F::Size))?, access(i)?, offset(&i.operands()[1])?);
            let Operand::Predicate { index, negated, .. } = i.operands()[2] else { return None };
            // What is not copied is filled with zeros.
            let copied = if index == 0 { given.condition() != negated } else { !negated };
            let new = if copied { given.bytes()[from..from + bytes].to_vec() } else { vec![0; bytes] };
            thread.slot[to..to + bytes].copy_from_slice(&new);
        }
        Op::Qspc => {
            let inside = match text(F::Mode) {
                ".G" => space == Space::Global,
                ".L" => space == Space::Local,
                // The block's own shared memory, and that of all blocks.
                ".S" | ".D" => space == Space::Shared,
                _ => return None,
            };
            put(&[match space {
                Space::Global => 1,
                Space::Shared => 2 | 8,
                // There is no memory at the lower end of its window, says an H200.
                Space::Local => 1 << 31 | 4,
            }]);
            thread.predicate = inside && matches!(i.operands()[0], Operand::Predicate { index: 2, .. });
        }
        _ => return atomic(i, space, given, thread),
    }
    Some(())
}

/// The elements of an atomic: what they are, bits of each, and how many.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Unsigned,
    Signed,
    /// With significant digits, the lowest exponent of a digit, and whether subnormal numbers count as zeros.
    Float(i32, i32, bool),
}

fn elements(spelling: &str) -> Option<(Kind, usize, usize)> {
    let float =
        |digits, lowest, flushes, bits, count| Some((Kind::Float(digits, lowest, flushes), bits, count));
    match spelling {
        "" | ".32" => Some((Kind::Unsigned, 32, 1)),
        ".S32" => Some((Kind::Signed, 32, 1)),
        ".64" => Some((Kind::Unsigned, 64, 1)),
        ".S64" => Some((Kind::Signed, 64, 1)),
        ".128" => Some((Kind::Unsigned, 128, 1)),
        ".F64.RN" => float(53, -1074, false, 64, 1),
        _ => {
            let (name, rest) = spelling[1..].split_once('.')?;
            let (name, count) =
                name.split_once('x').map_or((name, 1), |(name, n)| (name, n.parse().unwrap_or(0)));
            match name {
                "F32" => float(24, -149, rest.contains("FTZ"), 32, count),
                "F16" => float(11, -24, false, 16, count),
                "BF16" => float(8, -133, false, 16, count),
                _ => None,
            }
        }
    }
}

fn atomic(i: &Instruction, space: Space, given: &Given, thread: &mut Thread) -> Option<()> {
    let (kind, bits, count) = elements(i.spelling(F::Size).unwrap_or(""))?;
    let function = i.spelling(F::Function).unwrap_or("");
    let (at, bytes) = (access(i)?, bits * count / 8);
    // A predicate result of ATOM says whether the address is in global memory; elsewhere the instruction does nothing.
    let asks = matches!(i.operands()[0], Operand::Predicate { index: 2, .. });
    let generic = matches!(i.op, Op::Atom | Op::AtomCas);
    // In shared memory it exchanges and compares, and does nothing else.
    let replaces = matches!(function, ".EXCH" | ".CAS") && space == Space::Shared;
    let reached = space == Space::Global || replaces;
    thread.predicate = asks && generic && reached;
    if asks && !reached {
        return Some(());
    }
    let old = number(&given.bytes()[at..at + bytes]);
    let (operand, second) = (given.data(0), given.data(1));
    let mut new = 0u128;
    let mut result = old;
    for element in 0..count {
        let of = |all: u128| if bits == 128 { all } else { all >> (bits * element) & ((1 << bits) - 1) };
        let (was, x) = (of(old), of(operand));
        let becomes = match (i.op, function, kind) {
            (Op::AtomCas | Op::AtomgCas | Op::AtomsCas, ".CAS", _) => {
                if was == x {
                    of(second)
                } else {
                    was
                }
            }
            // The result is whether it was stored.
            (Op::AtomCas | Op::AtomgCas | Op::AtomsCast, "" | ".SPIN" | ".CAST" | ".CAST.SPIN", _) => {
                result = u128::from(was == x);
                if was == x { of(second) } else { was }
            }
            (_, ".POPC.INC", _) => was + 1,
            (_, ".EXCH", _) => x,
            (_, _, Kind::Float(digits, lowest, flushes)) => {
                Format { bits: bits as u32, digits, lowest, flushes }.apply(function, was, x)?
            }
            (_, _, _) => integer(function, kind == Kind::Signed, bits as u32, was, x)?,
        };
        let becomes = if bits == 128 { becomes } else { becomes & ((1 << bits) - 1) };
        new |= becomes << (bits * element);
    }
    thread.slot[at..at + bytes].copy_from_slice(&new.to_le_bytes()[..bytes]);
    let reduces = matches!(i.op, Op::Red | Op::Redg);
    if keeps(i) && !reduces {
        for word in 0..bytes / 4 {
            thread.result[word] = (result >> (32 * word)) as u32;
        }
    }
    Some(())
}

fn integer(function: &str, signed: bool, bits: u32, old: u128, x: u128) -> Option<u128> {
    let value = |v: u128| {
        let v = v as i128;
        if signed && v >> (bits - 1) & 1 != 0 { v - (1 << bits) } else { v }
    };
    Some(match function {
        ".ADD" => old + x,
        ".MIN" => value(old).min(value(x)) as u128,
        ".MAX" => value(old).max(value(x)) as u128,
        ".AND" => old & x,
        ".OR" => old | x,
        ".XOR" => old ^ x,
        // PTX: ((r >= s) ? 0 : r+1) and (((r == 0) || (r > s)) ? s : (r-1)).
        ".INC" => {
            if old >= x {
                0
            } else {
                old + 1
            }
        }
        ".DEC" => {
            if old == 0 || old > x {
                x
            } else {
                old - 1
            }
        }
        _ => return None,
    })
}

/// A format of binary floating point.
#[derive(Clone, Copy)]
struct Format {
    bits: u32,
    /// Significant binary digits.
    digits: i32,
    /// Exponent of the lowest digit of a subnormal number.
    lowest: i32,
    flushes: bool,
}

/// 2 to the power of a whole number, also where FP64 has it as a subnormal number.
fn power(exponent: i32) -> f64 {
    if exponent >= -1022 {
        f64::from_bits(((exponent + 1023) as u64) << 52)
    } else {
        f64::from_bits(1 << (exponent + 1074))
    }
}

impl Format {
    fn fraction(self) -> u32 {
        self.digits as u32 - 1
    }

    fn sign(self) -> u128 {
        1 << (self.bits - 1)
    }

    /// All exponents' bits.
    fn infinity(self) -> u128 {
        (self.sign() - 1) >> self.fraction() << self.fraction()
    }

    /// The NaN that results, for those up to 32 bits.
    fn nan(self) -> u128 {
        if self.bits == 64 { 0xfff8_0000_0000_0000 } else { self.sign() - 1 }
    }

    fn is_nan(self, x: u128) -> bool {
        x & (self.sign() - 1) > self.infinity()
    }

    fn value(self, x: u128) -> f64 {
        let magnitude = x & (self.sign() - 1);
        let (exponent, fraction) =
            ((magnitude >> self.fraction()) as i32, magnitude & ((1 << self.fraction()) - 1));
        let value = if magnitude >= self.infinity() {
            f64::INFINITY
        } else if exponent == 0 {
            if self.flushes { 0.0 } else { fraction as f64 * power(self.lowest) }
        } else {
            (fraction | 1 << self.fraction()) as f64 * power(self.lowest + exponent - 1)
        };
        if x & self.sign() != 0 { -value } else { value }
    }

    /// The nearest number, of two the even one.
    fn nearest(self, x: f64, sticky: Option<bool>) -> u128 {
        let sign = if x.is_sign_negative() { self.sign() } else { 0 };
        let magnitude = x.abs();
        if magnitude == 0.0 || magnitude.is_infinite() {
            return sign | if magnitude == 0.0 { 0 } else { self.infinity() };
        }
        // Where a sum has digits beyond FP64, the last digit that it has is made odd: then it rounds as the whole.
        let magnitude = match sticky {
            Some(larger) if magnitude.to_bits() & 1 == 0 => {
                f64::from_bits(if larger { magnitude.to_bits() + 1 } else { magnitude.to_bits() - 1 })
            }
            _ => magnitude,
        };
        let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
        let unit = (exponent - (self.digits - 1)).max(self.lowest);
        // Powers of two scale without loss: FP64 has all these numbers as normal ones, or is the format itself.
        let units = (magnitude / power(unit)).round_ties_even() as u128;
        // A carry into the next exponent adds up by itself.
        let bits = units + (((unit - self.lowest) as u128) << self.fraction());
        let bits = bits.min(self.infinity());
        let subnormal = bits >> self.fraction() == 0;
        sign | if self.flushes && subnormal { 0 } else { bits }
    }

    fn apply(self, function: &str, old: u128, x: u128) -> Option<u128> {
        let (nan_old, nan_x) = (self.is_nan(old), self.is_nan(x));
        match function {
            ".ADD" => {
                if self.bits == 64 {
                    let sum = f64::from_bits(old as u64) + f64::from_bits(x as u64);
                    // A NaN's payload stays, which one's is the card's choice: `sass::lane::double` says.
                    let quiet = |bits: u128| bits | 1 << 51;
                    return Some(match (nan_old, nan_x) {
                        (true, _) if !nan_x => quiet(old),
                        (_, true) => quiet(x),
                        _ if sum.is_nan() => self.nan(),
                        _ => sum.to_bits().into(),
                    });
                }
                if nan_old || nan_x {
                    return Some(self.nan());
                }
                let (a, b) = (self.value(old), self.value(x));
                let sum = a + b;
                if sum.is_nan() {
                    return Some(self.nan());
                }
                // What the sum in FP64 has lost (Knuth's two-sum), of which the sign counts.
                let part = sum - a;
                let lost = if sum.is_finite() { (a - (sum - part)) + (b - part) } else { 0.0 };
                let sticky = (lost != 0.0).then_some((lost > 0.0) == (sum > 0.0));
                Some(self.nearest(sum, sticky))
            }
            ".MIN" | ".MAX" => Some(match (nan_old, nan_x) {
                (true, true) => self.nan(),
                (true, false) => x,
                (false, true) => old,
                _ => {
                    // In the order of the numbers, -0 below +0.
                    let order = |v: u128| {
                        let magnitude = (v & (self.sign() - 1)) as i128;
                        if v & self.sign() != 0 { -1 - magnitude } else { magnitude }
                    };
                    let less = order(old) < order(x);
                    if less == (function == ".MIN") { old } else { x }
                }
            }),
            _ => None,
        }
    }
}

/// LDSM and STSM: matrices of 8 by 8 halves, whose rows are at the addresses of eight threads each.
fn matrices(i: &Instruction, given: &[Given; WARP], threads: &mut [Thread]) -> Option<()> {
    let count = i.spelling(F::Count)?.trim_start_matches('.').parse().unwrap_or(1);
    let turned = match i.spelling(F::Transpose)? {
        ".M88" => false,
        ".MT88" => true,
        _ => return None,
    };
    let at = access(i)?;
    for matrix in 0..count {
        for lane in 0..WARP {
            for half in 0..2 {
                let (row, column) = (lane / 4, lane % 4 * 2 + half);
                let (row, column) = if turned { (column, row) } else { (row, column) };
                let (owner, byte) = (8 * matrix + row, at + 2 * column);
                if i.op == Op::Ldsm {
                    if !keeps(i) {
                        continue;
                    }
                    let bytes = given[owner].bytes();
                    let value = u32::from(bytes[byte]) | u32::from(bytes[byte + 1]) << 8;
                    let result = &mut threads[lane].result[matrix];
                    *result = *result & !(0xffff << (16 * half)) | value << (16 * half);
                } else {
                    let value = given[lane].data[0][matrix] >> (16 * half);
                    threads[owner].slot[byte..byte + 2].copy_from_slice(&value.to_le_bytes()[..2]);
                }
            }
        }
    }
    Some(())
}

/// What lanes tell each other.
fn exchange(i: &Instruction, given: &[Given; WARP], threads: &mut [Thread]) -> Option<()> {
    let text = |id: F| i.spelling(id).unwrap_or("");
    let held = |slot: usize, lane: usize| match i.operands()[slot] {
        Operand::Predicate { index, negated, .. } => {
            (if index == 0 { given[lane].condition() } else { true }) != negated
        }
        _ => false,
    };
    let wants_predicate =
        i.operands().iter().any(|operand| matches!(operand, Operand::Predicate { index: 2, .. }));
    let ballot =
        |f: &dyn Fn(usize) -> bool| (0..WARP).fold(0u32, |all, lane| all | u32::from(f(lane)) << lane);
    let source = |slot: usize, lane: usize| match i.operands()[slot] {
        Operand::Immediate { bits, .. } => Some(bits as u32),
        Operand::Register { index, .. } => match index {
            8 => Some(given[lane].data[0][0]),
            12 => Some(given[lane].data[1][0]),
            13 => Some(given[lane].data[1][1]),
            _ => None,
        },
        _ => None,
    };
    let mut set = |lane: usize, result: Option<u32>, predicate: bool| {
        if let Some(result) = result.filter(|_| keeps(i)) {
            threads[lane].result[0] = result;
        }
        threads[lane].predicate = predicate && wants_predicate;
    };
    let wide = |lane: usize| {
        let low = u64::from(given[lane].data[0][0]);
        if text(F::Pair64) == ".U64" { low | u64::from(given[lane].data[0][1]) << 32 } else { low }
    };
    match i.op {
        Op::Shfl => {
            for lane in 0..WARP {
                let (b, c) = (source(3, lane)? & 31, source(4, lane)?);
                let (segment, clamp, place) = (c >> 8 & 31, c & 31, lane as u32);
                // As PTX words it.
                let (most, least) = (place & segment | clamp & !segment & 31, place & segment);
                let (from, inside) = match text(F::Function) {
                    ".UP" => (place.wrapping_sub(b), place as i32 - b as i32 >= most as i32),
                    ".DOWN" => (place + b, place + b <= most),
                    ".BFLY" => (place ^ b, place ^ b <= most),
                    ".IDX" => {
                        let from = least | b & !segment & 31;
                        (from, from <= most)
                    }
                    _ => return None,
                };
                let from = if inside { from as usize } else { lane };
                set(lane, Some(source(2, from)?), inside);
            }
        }
        Op::Vote | Op::Voteu => {
            let all = ballot(&|lane| held(2, lane));
            let truth = match text(F::Function) {
                ".ALL" => all == u32::MAX,
                ".ANY" => all != 0,
                ".EQ" => all == 0 || all == u32::MAX,
                _ => return None,
            };
            (0..WARP).for_each(|lane| set(lane, Some(all), truth));
        }
        Op::Match => {
            let first = wide(0);
            let all = ballot(&|lane| wide(lane) == first) == u32::MAX;
            for lane in 0..WARP {
                let same = ballot(&|other| wide(other) == wide(lane));
                match text(F::Function) {
                    ".ALL" => set(lane, Some(if all { u32::MAX } else { 0 }), all),
                    ".ANY" => set(lane, Some(same), false),
                    _ => return None,
                }
            }
        }
        Op::Redux => {
            let values = (0..WARP).map(|lane| given[lane].data[0][0]);
            let signed = text(F::Signed) == ".S32";
            let value = match text(F::Function) {
                "" => values.fold(u32::MAX, |all, v| all & v),
                ".OR" => values.fold(0, |all, v| all | v),
                ".XOR" => values.fold(0, |all, v| all ^ v),
                ".SUM" => values.fold(0, u32::wrapping_add),
                ".MIN" if signed => values.map(|v| v as i32).min()? as u32,
                ".MAX" if signed => values.map(|v| v as i32).max()? as u32,
                ".MIN" => values.min()?,
                ".MAX" => values.max()?,
                _ => return None,
            };
            (0..WARP).for_each(|lane| set(lane, Some(value), false));
        }
        Op::Elect => {
            let among = ballot(&|lane| held(2, lane));
            let leader = among.trailing_zeros();
            for lane in 0..WARP {
                set(lane, (among != 0).then_some(leader), lane as u32 == leader);
            }
        }
        _ => return None,
    }
    Some(())
}
