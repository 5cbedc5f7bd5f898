//! Every tensor-core form against results recorded from an H200.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod operands;

use operands::{Kind, Tile};

use sass::lane::convert::{self, Fp8};
use sass::lane::half::{self, HalfFormat, HalfMode};
use sass::lane::mma::*;
use sass::lane::{FloatMode, Rounding, float};

/// A form of the fixture: one PTX instruction.
#[derive(Debug, Clone)]
struct Form {
    name: String,
    rows: usize,
    k: usize,
    types: [String; 3],
    kinds: [Kind; 3],
    sparse: bool,
    selector: usize,
    saturate: bool,
    operation: BitOperation,
    rounding: Rounding,
}

impl Form {
    fn parse(line: &str) -> Form {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| words[i].parse::<usize>().expect("a number");
        let types = [words[5], words[6], words[7]];
        Form {
            name: words[1].to_owned(),
            rows: number(2),
            k: number(4),
            types: types.map(str::to_owned),
            kinds: types.map(Kind::named),
            sparse: number(8) != 0,
            selector: number(9),
            saturate: number(10) != 0,
            operation: [BitOperation::Xor, BitOperation::And][number(11)],
            rounding: [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up][number(12)],
        }
    }

    fn stored(&self) -> usize {
        if self.sparse { self.k / 2 } else { self.k }
    }

    fn factor(name: &str) -> Factor {
        match name {
            "f16" => Factor::F16,
            "bf16" => Factor::Bf16,
            "tf32" => Factor::Tf32,
            "e4m3" => Factor::E4M3,
            "e5m2" => Factor::E5M2,
            other => panic!("{other} is no floating-point factor"),
        }
    }

    fn integer(name: &str) -> Integer {
        match name {
            "u8" => Integer::U8,
            "s8" => Integer::S8,
            "u4" => Integer::U4,
            "s4" => Integer::S4,
            other => panic!("{other} is no integer factor"),
        }
    }

    fn accumulator(&self) -> Accumulator {
        if self.kinds[2] == Kind::F16 { Accumulator::F16 } else { Accumulator::F32 }
    }

    /// Registers of A, B and C: 64-bit ones of FP64.
    fn registers(&self) -> [usize; 3] {
        let bits = |i: usize| self.kinds[i].bits() as usize;
        let per_lane = 32 * bits(0).max(32);
        [
            self.rows * self.stored() * bits(0) / per_lane,
            8 * self.k * bits(1) / per_lane,
            self.rows * 8 * bits(2) / per_lane,
        ]
    }
}

/// Fragments as 64-bit words, of which all but FP64 use the low halves.
#[derive(Debug, Clone)]
struct Operands {
    a: Vec<Pair>,
    b: Vec<Pair>,
    c: Vec<Pair>,
    metadata: Register,
}

fn low(fragment: &[Pair]) -> Vec<Register> {
    fragment.iter().map(|register| register.map(|word| word as u32)).collect()
}

fn wide(fragment: &[Register]) -> Vec<Pair> {
    fragment.iter().map(|register| register.map(u64::from)).collect()
}

fn make(form: &Form, seed: u64, number: u64) -> Operands {
    let tile = Tile::new(form, seed, number);
    let [registers_a, registers_b, registers_c] = form.registers();
    let [kind_a, kind_b, kind_c] = form.kinds;
    let bits = kind_a.bits();
    let per = (32 / bits).max(1) as usize;
    let mut made = Operands {
        a: vec![[0; LANES]; registers_a],
        b: vec![[0; LANES]; registers_b],
        c: vec![[0; LANES]; registers_c],
        metadata: [0; LANES],
    };
    for row in 0..form.rows {
        for column in 0..form.stored() {
            let (register, lane, index) = layout::of_a(form.rows, row, column, per);
            made.a[register][lane] |= tile.factor(kind_a, false, row, column) << (bits as usize * index);
        }
    }
    for n in 0..8 {
        for k in 0..form.k {
            let (register, lane, index) = layout::of_b(k, n, per);
            made.b[register][lane] |= tile.factor(kind_b, true, n, k) << (bits as usize * index);
        }
    }
    if form.sparse {
        made.metadata = std::array::from_fn(|lane| tile.metadata(kind_a, lane));
    }
    let mut product: Option<Vec<Pair>> = None;
    let mut c = made.c.clone();
    for row in 0..form.rows {
        for column in 0..8 {
            let (register, lane, shift) = if kind_c == Kind::F16 {
                let (register, lane, index) = layout::of_c16(row, column);
                (register, lane, 16 * index)
            } else {
                let (register, lane) = layout::of_c(row, column);
                (register, lane, 0)
            };
            let element = tile.addend(kind_c, row, column, || {
                let d = product.get_or_insert_with(|| compute(form, Numerics::HOPPER, &made));
                let word = d[register][lane] >> shift;
                if kind_c == Kind::F16 { word & 0xffff } else { word }
            });
            c[register][lane] |= element << shift;
        }
    }
    made.c = c;
    made
}

/// FP8 on Hopper: `ptxas` widens to FP16, multiplies in two HMMA, and adds C last.
fn fp8_by_hmma(form: &Form, operands: &Operands) -> Vec<Pair> {
    let format = |name: &str| if name == "e4m3" { Fp8::E4M3 } else { Fp8::E5M2 };
    let accumulator = form.accumulator();
    let c = low(&operands.c);
    let mut sum = vec![[0; LANES]; c.len()];
    if form.sparse {
        // The same in elements: the compiler's code shuffles operands and metadata.
        let sparsity = Sparsity { metadata: &operands.metadata, selector: form.selector };
        let (a, b) = (low(&operands.a), low(&operands.b));
        let byte = |(register, lane, index): (usize, usize, usize), fragment: &[Register]| {
            (fragment[register][lane] >> (8 * index)) as u8
        };
        let widen = |bits: u8, name: &str| {
            fused::Term::factor(convert::fp8_to_f16(bits, format(name)).into(), Factor::F16)
        };
        for row in 0..16 {
            for n in 0..8 {
                let (register, lane) = layout::of_c(row, n);
                for half in 0..2 {
                    let (mut x, mut y) = (Vec::new(), Vec::new());
                    for column in (0..form.stored()).filter(|column| column / 2 % 2 == half) {
                        x.push(widen(byte(layout::of_a(16, row, column, 4), &a), &form.types[0]));
                        let k = sparsity.dense_row(8, form.k, row, column);
                        y.push(widen(byte(layout::of_b(k, n, 4), &b), &form.types[1]));
                    }
                    let before: u32 = sum[register][lane];
                    sum[register][lane] =
                        fused::step([Factor::F16; 2], accumulator, Numerics::HOPPER, &x, &y, before);
                }
            }
        }
    } else {
        for high in [false, true] {
            let unpack = |fragment: &[Pair], name: &str| -> Vec<Register> {
                let widen = |word: u32| convert::f2fp_unpack_fp8(word, format(name), high);
                low(fragment).iter().map(|register| register.map(widen)).collect()
            };
            let (a, b) = (unpack(&operands.a, &form.types[0]), unpack(&operands.b, &form.types[1]));
            let d = hmma(Factor::F16, accumulator, form.k / 2, Numerics::HOPPER, &a, &b, &sum);
            sum = d.expect("a form of HMMA")[..c.len()].to_vec();
        }
    }
    let add = |d: u32, c: u32| match accumulator {
        Accumulator::F32 => float::fadd(d, c, FloatMode::PLAIN),
        Accumulator::F16 => {
            let halves = |word: u32| (word as u16, (word >> 16) as u16);
            half::hadd2(halves(d), halves(c), HalfMode::plain(HalfFormat::F16))
        }
    };
    let pairs = sum.iter().zip(&c);
    wide(&pairs.map(|(d, c)| std::array::from_fn(|lane| add(d[lane], c[lane]))).collect::<Vec<_>>())
}

fn compute(form: &Form, numerics: Numerics, operands: &Operands) -> Vec<Pair> {
    let kind = form.kinds[0];
    if kind == Kind::F64 {
        let [a, b, c] = [&operands.a, &operands.b, &operands.c];
        let d = dmma(form.rows, form.k, form.rounding, a, b, c);
        #[cfg(target_arch = "x86_64")]
        if form.rounding == Rounding::Nearest {
            avx2::compare_double(form.rows, form.k, [a, b, c], d.as_ref());
        }
        return d.expect("a form of DMMA")[..operands.c.len()].to_vec();
    }
    if matches!(kind, Kind::E4M3 | Kind::E5M2) {
        return fp8_by_hmma(form, operands);
    }
    let (a, b, c) = (low(&operands.a), low(&operands.b), low(&operands.c));
    let sparsity = Some(Sparsity { metadata: &operands.metadata, selector: form.selector });
    let [type_a, type_b, _] = &form.types;
    let d = match kind {
        Kind::Integer(1) => bmma(form.rows, form.k, form.operation, &a, &b, &c),
        Kind::Integer(_) => {
            let form = IntegerMatrix {
                rows: form.rows,
                k: form.k,
                factors: [Form::integer(type_a), Form::integer(type_b)],
                saturate: form.saturate,
                sparse: form.sparse,
            };
            let d = imma(form, &a, &b, &c, sparsity);
            #[cfg(target_arch = "x86_64")]
            avx2::compare_integer(form, [&a, &b, &c], d.as_ref());
            d
        }
        _ => {
            let form = FloatMatrix {
                factors: [Form::factor(type_a), Form::factor(type_b)],
                accumulator: form.accumulator(),
                k: form.k,
                sparse: form.sparse,
            };
            let d = float_mma(form, numerics, &a, &b, &c, sparsity);
            #[cfg(target_arch = "x86_64")]
            avx2::compare_float(form, numerics, [&a, &b, &c], d.as_ref());
            d
        }
    };
    wide(&d.unwrap_or_else(|| panic!("{} is no form", form.name))[..c.len()])
}

/// The upper half of 64-bit FNV-1a over the result, lane by lane.
fn digest(form: &Form, d: &[Pair]) -> u32 {
    let bytes = if form.kinds[0] == Kind::F64 { 8 } else { 4 };
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for lane in 0..LANES {
        for register in d {
            for byte in &register[lane].to_le_bytes()[..bytes] {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }
    (hash >> 32) as u32
}

const DIGESTS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mma/h200.txt"));

/// Seed of the recorded tiles.
const SEED: u64 = 2026;

/// Every form with its digests, tile 0 first.
fn recorded() -> Vec<(Form, Vec<u32>)> {
    let mut forms: Vec<(Form, Vec<u32>)> = Vec::new();
    for line in DIGESTS.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with("form ") {
            forms.push((Form::parse(line), Vec::new()));
        } else if let Some((_, digests)) = forms.last_mut() {
            let words = line.split_whitespace();
            digests.extend(words.map(|word| u32::from_str_radix(word, 16).expect("a hexadecimal number")));
        }
    }
    forms
}

#[test]
fn results_are_those_of_the_card() {
    let forms = recorded();
    assert_eq!(forms.len(), 170);
    let wrong = |(form, digests): &(Form, Vec<u32>)| {
        assert!(digests.len() >= 100, "{}", form.name);
        let differing = (0u64..).zip(digests).filter(|&(number, &expected)| {
            let operands = make(form, SEED, number);
            digest(form, &compute(form, Numerics::HOPPER, &operands)) != expected
        });
        let differing = differing.count();
        (differing != 0).then(|| format!("{}: {differing} of {}", form.name, digests.len()))
    };
    // The longest test of its binary: it takes two threads.
    let (first, second) = forms.split_at(forms.len() / 2);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let second = scope.spawn(|| second.iter().filter_map(wrong).collect::<Vec<_>>());
        let mut all: Vec<String> = first.iter().filter_map(wrong).collect();
        all.extend(second.join().expect("a comparison panicked"));
        all
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_spoiled_bit_changes_the_digest() {
    for (form, digests) in recorded() {
        let differing = (0u64..).zip(&digests).filter(|&(number, &expected)| {
            let mut operands = make(&form, SEED, number);
            let bit = if form.kinds[0] == Kind::F64 { 46 } else { 14 };
            operands.a[0][number as usize % 32] ^= 1 << bit;
            digest(&form, &compute(&form, Numerics::HOPPER, &operands)) != expected
        });
        let differing = differing.take(3).count();
        assert!(differing >= 3, "{}", form.name);
    }
}

#[test]
fn ampere_cuts_off_elsewhere() {
    // The card's tiles tell the generations apart, so the tests above can fail.
    for (form, digests) in recorded() {
        let float = matches!(form.kinds[0], Kind::F16 | Kind::Bf16 | Kind::Tf32);
        if float {
            let differing = (0u64..).zip(&digests).filter(|&(number, &expected)| {
                let operands = make(&form, SEED, number);
                digest(&form, &compute(&form, Numerics::AMPERE, &operands)) != expected
            });
            assert!(differing.count() > 0, "{}", form.name);
        }
    }
}

#[test]
fn ampere_adds_eight_products_at_a_time() {
    let mut a = [[0; LANES]; 4];
    let mut b = [[0; LANES]; 2];
    let c = [[0; LANES]; 4];
    // Row 0, column 0; k 0 and 1 in the first register, k 8 in the second.
    a[0][0] = 0x3c00 << 16 | 0x7800; // k 1: 1, k 0: 2^15
    b[0][0] = 0x1400 << 16 | 0x6400; // k 1: 2^-10, k 0: 2^10
    a[2][0] = 0xf800;
    b[1][0] = 0x6400;
    let run = |b: &[Register], numerics| {
        hmma(Factor::F16, Accumulator::F32, 16, numerics, &a, b, &c).expect("legal")[0][0]
    };
    // 2^25 + 2^-10 - 2^25: 35 places apart, lost in either.
    assert_eq!([run(&b, Numerics::HOPPER), run(&b, Numerics::AMPERE)], [0, 0]);
    // 2^25 + 1 - 2^25: Hopper keeps 25 bits below 2^25 in one step, Ampere's first result keeps 23.
    b[0][0] = 0x3c00 << 16 | 0x6400;
    assert_eq!(run(&b, Numerics::HOPPER), 1f32.to_bits());
    assert_eq!(run(&b, Numerics::AMPERE), 0);
}

/// QMMA of one output, of `k` products, every other element zero.
fn qmma_element(factors: [Factor; 2], a: &[u8], b: &[u8], c: f32) -> f32 {
    let form = FloatMatrix { factors, accumulator: Accumulator::F32, k: a.len(), sparse: false };
    let registers = form.registers().expect("a form of QMMA");
    let mut fragments = [vec![[0; LANES]; registers.a], vec![[0; LANES]; registers.b]];
    for (k, (&x, &y)) in a.iter().zip(b).enumerate() {
        let (register, lane, index) = layout::of_a(16, 0, k, 4);
        fragments[0][register][lane] |= u32::from(x) << (8 * index);
        let (register, lane, index) = layout::of_b(k, 0, 4);
        fragments[1][register][lane] |= u32::from(y) << (8 * index);
    }
    let mut addends = [[0; LANES]; 4];
    addends[0][0] = c.to_bits();
    let [a, b] = &fragments;
    let d = float_mma(form, Numerics::ADA_QMMA, a, b, &addends, None).expect("a form of QMMA");
    f32::from_bits(d[0][0])
}

#[test]
fn qmma_keeps_thirteen_bits() {
    let one = 0x38; // E4M3
    let ones = [one; 32];
    let e4m3 = [Factor::E4M3; 2];
    assert_eq!(qmma_element(e4m3, &ones, &ones, 0.0), 32.0);
    // 8192 + 16 + 16, then 16 products of 1 fall below 2^13 * 2^-13 = 1: they are kept just so.
    assert_eq!(qmma_element(e4m3, &ones, &ones, 8192.0), 8224.0);
    // At 2^14 a one is cut off before it is added.
    assert_eq!(qmma_element(e4m3, &ones, &ones, 16384.0), 16384.0);
    // The result is cut off too: 1 + 2^-14 is 1 although a product of 2^-14 alone is kept.
    let tiny = [0x01]; // 2^-9
    let small = [0x10]; // 2^-5
    let pad = |first: [u8; 1]| std::array::from_fn::<u8, 16, _>(|i| if i == 0 { first[0] } else { 0 });
    assert_eq!(qmma_element(e4m3, &pad(tiny), &pad(small), 0.0), 2f32.powi(-14));
    assert_eq!(qmma_element(e4m3, &pad(tiny), &pad(small), 1.0), 1.0);
    // Mixed types: E5M2 has infinity, E4M3 has none.
    assert_eq!(qmma_element([Factor::E5M2, Factor::E4M3], &pad([0x7c]), &pad([one]), 1.0), f32::INFINITY);
    assert!(qmma_element([Factor::E4M3, Factor::E5M2], &pad([0x7f]), &pad([0x3c]), 1.0).is_nan());
    assert_eq!(qmma_element([Factor::E4M3, Factor::E5M2], &pad([0x7e]), &pad([0x3c]), 0.0), 448.0);
}

#[test]
fn short_fragments_and_unknown_shapes_are_refused() {
    let a = [[0; LANES]; 2];
    let none = hmma(Factor::F16, Accumulator::F32, 16, Numerics::HOPPER, &a, &a, &a);
    assert!(none.is_none());
    assert!(hmma(Factor::Bf16, Accumulator::F16, 8, Numerics::HOPPER, &a, &a[..1], &a).is_none());
    assert!(dmma(8, 8, Rounding::Nearest, &[[0; LANES]; 2], &[[0; LANES]; 2], &[[0; LANES]; 2]).is_none());
    assert!(bmma(8, 256, BitOperation::And, &a, &a, &a).is_none());
    let mixed =
        IntegerMatrix { rows: 8, k: 16, factors: [Integer::S8, Integer::S4], saturate: false, sparse: false };
    assert!(mixed.registers().is_none());
    let sparse =
        FloatMatrix { factors: [Factor::F16; 2], accumulator: Accumulator::F32, k: 16, sparse: true };
    let fragments = ([[0; LANES]; 2], [[0; LANES]; 2], [[0; LANES]; 4]);
    let run =
        |sparsity| float_mma(sparse, Numerics::HOPPER, &fragments.0, &fragments.1, &fragments.2, sparsity);
    assert!(run(None).is_none());
    assert!(run(Some(Sparsity { metadata: &[0; LANES], selector: 3 })).is_some());
}
