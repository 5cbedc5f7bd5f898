//! Lane semantics against arithmetic that is written differently: the host's, 128-bit integers,
//! exhaustive search, and results recorded from a card.

mod atomic;
mod mbarrier;
mod mufu;
mod tensor;
mod warp;

use fixtures::{
    properties,
    property::{Draw, any, one_of, within},
};

use sass::lane::convert::{self, FloatFormat, Fp8, Tf32Rounding};
use sass::lane::half::{self, HalfFormat, HalfMode};
use sass::lane::integer::{self, Direction, PermuteMode, ShiftKind};
use sass::lane::soft::{Format, Number};
use sass::lane::{
    Boolean, FloatCompare, FloatMode, IntegerCompare, IntegerType, Rounding, Sign, Subnormals, Width,
};
use sass::lane::{double, float};

/// 32-bit patterns, half of them at an edge of some format or type.
fn word(draw: &mut Draw) -> u32 {
    const EDGES: &[u32] = &[
        0u32,
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
        0x1_0000,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0001,
        u32::MAX,
        0x3f80_0000,
        0xbf80_0000,
        0x3f7f_ffff,
        0x7f7f_ffff,
        0xff7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7f80_0001,
        0x7fc0_0000,
        0x0080_0000,
        0x8080_0000,
        0x007f_ffff,
        0x807f_ffff,
        0x3300_0000,
        0x4f00_0000,
        0x4f80_0000,
        0x4effffff,
        0x5f000000,
    ];
    match draw.below(4) {
        0 => one_of(EDGES)(draw),
        1 => any(draw),
        2 => any::<u32>(draw) & 0xff80_001f,
        _ => within(0x3f00_0000..0x4100_0000)(draw),
    }
}

/// 64-bit patterns, likewise.
fn long(draw: &mut Draw) -> u64 {
    const EDGES: &[u64] = &[
        0u64,
        1,
        1 << 63,
        1.0f64.to_bits(),
        (-1.0f64).to_bits(),
        f64::MAX.to_bits(),
        f64::MIN.to_bits(),
        f64::MIN_POSITIVE.to_bits(),
        f64::INFINITY.to_bits(),
        f64::NEG_INFINITY.to_bits(),
        0x7ff0_0000_0000_0001,
        0xfff8_0000_0000_1234,
        f64::MIN_POSITIVE.to_bits() - 1,
        u64::MAX,
    ];
    match draw.below(4) {
        0 => one_of(EDGES)(draw),
        1 => any(draw),
        2 => any::<u64>(draw) & 0xfff0_0000_0000_001f,
        _ => within(0x3fe0_0000_0000_0000..0x4020_0000_0000_0000)(draw),
    }
}

fn sign(draw: &mut Draw) -> Sign {
    one_of([Sign::Signed, Sign::Unsigned])(draw)
}

fn rounding(draw: &mut Draw) -> Rounding {
    one_of(Rounding::ALL)(draw)
}

/// The number a register holds.
fn number(a: u32, sign: Sign) -> i128 {
    match sign {
        Sign::Signed => i128::from(a as i32),
        Sign::Unsigned => i128::from(a),
    }
}

/// Sum by [`Number`], or the host where an operand is not finite.
fn soft_fma(a: u32, b: u32, c: u32, rounding: Rounding) -> u32 {
    let host = f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c));
    if host.is_nan() {
        return float::NAN;
    }
    if [a, b, c].iter().any(|x| x & 0x7fff_ffff >= 0x7f80_0000) {
        return host.to_bits();
    }
    let unpack = |x: u32| Number::unpack(u64::from(x), Format::F32);
    unpack(a).multiply(unpack(b)).add(unpack(c), rounding).round(Format::F32, rounding) as u32
}

fn mode(rounding: Rounding) -> FloatMode {
    FloatMode { rounding, ..FloatMode::PLAIN }
}

properties! { 4000 cases;
    fn iadd3_chain_adds_and_subtracts_64_bit_numbers(a in long, b in long, c in long, negate in any::<[bool; 3]>) {
        // Negating all three is no form of the instruction's use: three zeros would carry three times.
        if negate == [true; 3] {
            return;
        }
        // One's complement above, two's complement below: together the 64-bit negation.
        let low = integer::iadd3(a as u32, b as u32, c as u32, negate);
        let high = integer::iadd3_x(
            (a >> 32) as u32, (b >> 32) as u32, (c >> 32) as u32, negate, [low.carry0, low.carry1],
        );
        let signed = |x: u64, n: bool| if n { x.wrapping_neg() } else { x };
        let expected = signed(a, negate[0])
            .wrapping_add(signed(b, negate[1]))
            .wrapping_add(signed(c, negate[2]));
        assert_eq!(u64::from(high.value) << 32 | u64::from(low.value), expected);
    }

    fn products_are_exact(a in word, b in word, c in long, s in sign, carry in any::<bool>) {
        let exact = number(a, s) * number(b, s);
        assert_eq!(integer::imad(a, b, c as u32), (exact as u32).wrapping_add(c as u32));
        assert_eq!(integer::imad_wide(a, b, c, s), (exact as u64).wrapping_add(c));
        assert_eq!(integer::imad_hi(a, b, c, s), ((exact as u64).wrapping_add(c) >> 32) as u32);
        let sum = u128::from(exact as u64) + u128::from(c) + u128::from(carry);
        assert_eq!(integer::imad_wide_carry(a, b, c, carry, s), (sum as u64, sum >> 64 != 0));
    }

    fn lea_pair_computes_a_64_bit_address(index in long, base in long, shift in within(0u32..32)) {
        let (low, carry) = integer::lea(index as u32, base as u32, shift, false);
        let (high, _) = integer::lea_hi_x(
            index as u32, (index >> 32) as u32, (base >> 32) as u32, shift, false, carry,
        );
        assert_eq!(u64::from(high) << 32 | u64::from(low), (index << shift).wrapping_add(base));
        let narrow = index as u32;
        let extended = i64::from(narrow as i32) as u64;
        let (low, carry) = integer::lea(narrow, base as u32, shift, false);
        let (high, _) = integer::lea_hi_x(
            narrow, integer::sign_fill(narrow), (base >> 32) as u32, shift, false, carry,
        );
        assert_eq!(u64::from(high) << 32 | u64::from(low), (extended << shift).wrapping_add(base));
    }

    fn lop3_follows_its_table(a in word, b in word, c in word, table in any::<u8>) {
        let result = integer::lop3(a, b, c, table);
        for bit in 0..32 {
            let get = |x: u32| x >> bit & 1 != 0;
            assert_eq!(get(result), integer::plop3(get(a), get(b), get(c), table));
            let index = u8::from(get(a)) * 4 + u8::from(get(b)) * 2 + u8::from(get(c));
            assert_eq!(get(result), table & (1 << index) != 0);
        }
    }

    fn shf_is_a_funnel_shift(low in word, count in word, high in word, wide in any::<bool>, s in sign, wrap in any::<bool>, hi in any::<bool>, left in any::<bool>) {
        let limit = if wide { 64 } else { 32 };
        let n = if wrap { count % limit } else { count.min(limit) };
        let pair = (u128::from(high) << 32) | u128::from(low);
        let signed = if s == Sign::Signed { (pair as u64 as i64) as i128 } else { pair as i128 };
        let shifted = if left { pair << n } else { (signed >> n) as u128 };
        let expected = if hi { (shifted >> 32) as u32 } else { shifted as u32 };
        let direction = if left { Direction::Left } else { Direction::Right };
        let kind = ShiftKind { direction, wide, sign: s, wrap, high: hi };
        assert_eq!(integer::shf(low, count, high, kind), expected);
    }

    fn prmt_picks_bytes(a in word, b in word, selector in word) {
        let bytes: Vec<u8> = a.to_le_bytes().into_iter().chain(b.to_le_bytes()).collect();
        let pick = |index: [usize; 4]| u32::from_le_bytes(index.map(|i| bytes[i % 8]));
        let n = (selector & 3) as usize;
        assert_eq!(
            integer::prmt(a, selector, b, PermuteMode::Index).to_le_bytes().to_vec(),
            (0..4).map(|i| {
                let nibble = (selector >> (4 * i) & 15) as usize;
                let byte = bytes[nibble & 7];
                if nibble & 8 == 0 { byte } else if byte >= 0x80 { 0xff } else { 0 }
            }).collect::<Vec<u8>>()
        );
        let check = |mode, index| assert_eq!(integer::prmt(a, selector, b, mode), pick(index));
        check(PermuteMode::ForwardExtract, [n, n + 1, n + 2, n + 3]);
        check(PermuteMode::BackwardExtract, [n, n + 7, n + 6, n + 5]);
        check(PermuteMode::ReplicateByte, [n; 4]);
        // The table of PTX prmt, byte 0 first.
        check(PermuteMode::EdgeClampLeft, [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]][n]);
        check(PermuteMode::EdgeClampRight, [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]][n]);
        check(PermuteMode::ReplicateHalf, [[0, 1, 0, 1], [2, 3, 2, 3]][n & 1]);
    }

    fn isetp_pair_compares_64_bit_numbers(a in long, b in long, near in any::<bool>, s in sign) {
        let b = if near { (a & !0xff) | (b & 0xff) } else { b };
        for comparison in IntegerCompare::ALL {
            let low = integer::compare(a as u32, b as u32, comparison, Sign::Unsigned);
            let result =
                integer::compare_ex((a >> 32) as u32, (b >> 32) as u32, comparison, s, low);
            let order = match s {
                Sign::Signed => (a as i64).cmp(&(b as i64)),
                Sign::Unsigned => a.cmp(&b),
            };
            let expected = match comparison {
                IntegerCompare::F => false,
                IntegerCompare::LT => order.is_lt(),
                IntegerCompare::EQ => order.is_eq(),
                IntegerCompare::LE => order.is_le(),
                IntegerCompare::GT => order.is_gt(),
                IntegerCompare::NE => order.is_ne(),
                IntegerCompare::GE => order.is_ge(),
                IntegerCompare::T => true,
            };
            assert_eq!(result, expected, "{comparison:?}");
        }
    }

    fn minimum_maximum_and_differences(a in word, b in word, c in word, s in sign) {
        let (x, y, z) = (number(a, s), number(b, s), number(c, s));
        assert_eq!(number(integer::imnmx(a, b, true, s), s), x.min(y));
        assert_eq!(number(integer::imnmx(a, b, false, s), s), x.max(y));
        assert_eq!(number(integer::vimnmx3(a, b, c, false, s, false), s), x.max(y).max(z));
        assert_eq!(integer::vabsdiff(a, b, c, s), ((x - y).unsigned_abs() as u32).wrapping_add(c));
        let (xs, ys) = (a.to_le_bytes(), b.to_le_bytes());
        let sum: u32 = xs.iter().zip(ys).map(|(x, y)| u32::from(x.abs_diff(y))).sum();
        assert_eq!(integer::vabsdiff4(a, b, c, Sign::Unsigned, true), sum.wrapping_add(c));
        let dot: i32 = xs.iter().zip(ys).map(|(x, y)| i32::from(*x as i8) * i32::from(y)).sum();
        assert_eq!(
            integer::idp_4a(a, b, c, Sign::Signed, Sign::Unsigned),
            (dot as u32).wrapping_add(c)
        );
    }

    fn packed_minimum_maximum_and_clamps(a in word, b in word, c in word, s in sign, minimum in any::<bool>, relu in any::<bool>) {
        let wide = |x: u32, i: u32| match s {
            Sign::Signed => i64::from((x >> (16 * i)) as i16),
            Sign::Unsigned => i64::from((x >> (16 * i)) as u16),
        };
        let pick = |x: i64, y: i64| if minimum { x.min(y) } else { x.max(y) };
        // `.RELU` looks at the sign bit, whatever the type: the compiler writes it with signed ones.
        let clamp = |x: i64, bits: u32| if relu && x >> (bits - 1) & 1 != 0 { 0 } else { x };
        let two = integer::vimnmx_16x2(a, b, minimum, s, relu);
        let three = integer::vimnmx3_16x2(a, b, c, minimum, s, relu);
        let add = integer::viaddmnmx_16x2(a, b, c, minimum, s, relu);
        for i in 0..2 {
            let (x, y, z) = (wide(a, i), wide(b, i), wide(c, i));
            assert_eq!(wide(two, i), clamp(pick(x, y), 16));
            assert_eq!(wide(three, i), clamp(pick(pick(x, y), z), 16));
            let sum = match s {
                Sign::Signed => i64::from((x + y) as i16),
                Sign::Unsigned => i64::from((x + y) as u16),
            };
            assert_eq!(wide(add, i), clamp(pick(sum, z), 16));
        }
        let number = |x: u32| number(x, s) as i64;
        assert_eq!(number(integer::vimnmx(a, b, minimum, s, relu)), clamp(pick(number(a), number(b)), 32));
        let added = number(a.wrapping_add(b));
        assert_eq!(
            number(integer::viaddmnmx(a, b, c, minimum, s, relu)), clamp(pick(added, number(c)), 32)
        );
    }

    fn packed_integers_are_clamped_and_ordered(a in word, b in word, c in word, log in within(1u32..5), s in sign) {
        let bits = 1 << log;
        let packed = integer::i2ip(a, b, c, bits, s);
        let field = |i: u32| i128::from(packed >> (bits * i)) & ((1 << bits) - 1);
        let expected = |x: u32| {
            let x = i128::from(x as i32);
            let (low, high) = match s {
                Sign::Signed => (-(1i128 << bits >> 1), (1i128 << bits >> 1) - 1),
                Sign::Unsigned => (0, (1i128 << bits) - 1),
            };
            x.clamp(low, high) & ((1 << bits) - 1)
        };
        assert_eq!(field(0), expected(b));
        assert_eq!(field(1), expected(a));
        if bits < 16 {
            assert_eq!(packed >> (2 * bits), c & (u32::MAX >> (2 * bits)));
        }
    }

    fn dot_products_agree_with_wide_arithmetic(a in word, b in word, c in word, s in sign, t in sign) {
        let part = |x: u32, bits: u32, i: u32, s: Sign| {
            let field = i64::from(x >> (bits * i)) & ((1 << bits) - 1);
            if s == Sign::Signed && field >> (bits - 1) & 1 != 0 { field - (1 << bits) } else { field }
        };
        let four: i64 = (0..4).map(|i| part(a, 8, i, s) * part(b, 8, i, t)).sum();
        assert_eq!(integer::idp_4a(a, b, c, s, t), (i64::from(c) + four) as u32);
        for high in [false, true] {
            let two: i64 = (0..2).map(|i| part(a, 16, i, s) * part(b, 8, i + 2 * i64::from(high) as u32, t)).sum();
            assert_eq!(integer::idp_2a(a, b, c, high, s, t), (i64::from(c) + two) as u32);
        }
        let sad: i64 = (0..4).map(|i| (part(a, 8, i, s) - part(b, 8, i, s)).abs()).sum();
        assert_eq!(integer::vabsdiff4(a, b, c, s, true), (i64::from(c) + sad) as u32);
        for i in 0..4 {
            let each = integer::vabsdiff4(a, b, c, s, false) >> (8 * i) & 0xff;
            assert_eq!(i64::from(each), (part(a, 8, i, s) - part(b, 8, i, s)).abs());
        }
        assert_eq!(integer::plop3_sign(a, b, c, 0x96), ((a ^ b ^ c) as i32) < 0);
    }

    fn signs_are_combined_by_xorsign(a in word, b in word, minimum in any::<bool>) {
        let magnitudes = (a & 0x7fff_ffff, b & 0x7fff_ffff);
        let result = float::fmnmx_xorsign(magnitudes, (a, b), minimum, false, false);
        let (x, y) = (f32::from_bits(magnitudes.0), f32::from_bits(magnitudes.1));
        let plain = if minimum { x.min(y) } else { x.max(y) };
        if plain.is_nan() {
            assert_eq!(result, float::NAN);
        } else {
            assert_eq!(result, plain.to_bits() | (a ^ b) & 0x8000_0000);
        }
        // The same on halves that are exact in FP32.
        for (x, y) in [(a as u16, b as u16), ((a >> 16) as u16, (b >> 16) as u16)] {
            let mode = HalfMode::plain(HalfFormat::Bf16);
            let half = half::hmnmx_xorsign((x & 0x7fff, y & 0x7fff), (x, y), minimum, false, mode);
            let widened = [x, y].map(|x| u32::from(x) << 16);
            let word = float::fmnmx_xorsign(
                (widened[0] & 0x7fff_ffff, widened[1] & 0x7fff_ffff), (widened[0], widened[1]), minimum, false, false,
            );
            let nan = mode.format.is_nan(half);
            let same = u32::from(half) << 16 == word;
            assert!(same || nan && float::is_nan(word));
        }
    }

    fn packed_comparisons_are_those_of_the_halves(a in word, b in word, code in within(0u32..16), p in any::<bool>, boolean in within(0usize..3)) {
        let boolean = [Boolean::And, Boolean::Or, Boolean::Xor][boolean];
        let comparison = FloatCompare::from_code(code);
        for format in [HalfFormat::F16, HalfFormat::Bf16] {
            let mode = HalfMode::plain(format);
            let split = |x: u32| (x as u16, (x >> 16) as u16);
            let value = |x: u16| f64::from(f32::from_bits(format.widen(x)));
            let holds = |i: usize| {
                let part = |x: u32| value((x >> (16 * i)) as u16);
                comparison.holds(part(a), part(b))
            };
            let join = |x: bool| match boolean {
                Boolean::And => x & p,
                Boolean::Or => x | p,
                Boolean::Xor => x ^ p,
            };
            let of = |both| half::hsetp2(split(a), split(b), comparison, mode, both, boolean, p);
            assert_eq!(of(false), (join(holds(0)), join(holds(1))));
            assert_eq!(of(true), (join(holds(0) & holds(1)), join(!(holds(0) & holds(1)))));
            let ones = half::hset2(split(a), split(b), comparison, mode, false, boolean, p);
            assert_eq!(ones, (u32::from(join(holds(0))) * 0xffff) | (u32::from(join(holds(1))) * 0xffff_0000));
            let one = u32::from(format.one());
            let numbers = half::hset2(split(a), split(b), comparison, mode, true, boolean, p);
            assert_eq!(numbers, (u32::from(join(holds(0))) * one) | ((u32::from(join(holds(1))) * one) << 16));
        }
    }

    fn masks_and_extensions(a in word, start in within(0u32..40), width in within(0u32..40)) {
        let inside = |i: u32| i >= start && i < start + width;
        let expected = (0..32).filter(|&i| inside(i)).fold(0u32, |m, i| m | 1 << i);
        assert_eq!(integer::bmsk(start, width, false), expected);
        let bits = width.min(32);
        let kept = if bits == 0 { 0 } else { (u64::from(a) << (64 - bits)) >> (64 - bits) };
        assert_eq!(integer::sgxt(a, width, Sign::Unsigned, false), kept as u32);
        let negative = bits != 0 && a >> (bits - 1) & 1 != 0;
        let filled = if negative { kept | (u64::MAX << bits) } else { kept };
        assert_eq!(integer::sgxt(a, width, Sign::Signed, false), filled as u32);
        let top = (0..32).rev().find(|&i| a >> i & 1 != 0);
        assert_eq!(integer::flo(a, Sign::Unsigned, false), top.unwrap_or(u32::MAX));
        assert_eq!(integer::flo(a, Sign::Unsigned, true), top.map_or(u32::MAX, |t| 31 - t));
        let top = (0..31).rev().find(|&i| (a >> i ^ a >> 31) & 1 != 0);
        assert_eq!(integer::flo(a, Sign::Signed, false), top.unwrap_or(u32::MAX));
    }

    fn fp32_agrees_with_integer_arithmetic_in_all_roundings(a in word, b in word, c in word, r in rounding) {
        assert_eq!(float::ffma(a, b, c, mode(r)), soft_fma(a, b, c, r));
        // a * 1 + b; a product with its sign of zero kept: a * b + (-0 or +0).
        assert_eq!(float::fadd(a, b, mode(r)), soft_fma(a, 0x3f80_0000, b, r));
        let zero = (a ^ b) & 0x8000_0000;
        assert_eq!(float::fmul(a, b, mode(r)), soft_fma(a, b, zero, r));
    }

    fn integer_arithmetic_agrees_with_the_host(a in word, b in word, c in word) {
        let host = f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c));
        assert_eq!(soft_fma(a, b, c, Rounding::Nearest), float::canonical(host.to_bits()));
    }

    fn directed_results_bracket_the_exact_one(a in word, b in word) {
        let [down, up, zero] = [Rounding::Down, Rounding::Up, Rounding::Zero]
            .map(|r| f32::from_bits(float::fmul(a, b, mode(r))));
        // 48 bits: exact.
        let exact = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b));
        if exact.is_nan() {
            assert!(down.is_nan() && up.is_nan() && zero.is_nan());
        } else {
            assert!(f64::from(down) <= exact && exact <= f64::from(up));
            assert!(down == up || down.next_up() == up);
            assert_eq!(down == up, f64::from(down) == exact);
            assert_eq!(zero.to_bits(), if exact.is_sign_negative() { up } else { down }.to_bits());
        }
    }

    fn flush_zeroes_operands_and_results(a in word, b in word, c in word) {
        let flushing = FloatMode { subnormals: Subnormals::Flush, ..FloatMode::PLAIN };
        for result in [float::fadd(a, b, flushing), float::fmul(a, b, flushing), float::ffma(a, b, c, flushing)] {
            assert!(f32::from_bits(result) == 0.0 || !f32::from_bits(result).is_subnormal());
        }
        let clean = |x| float::flush(x);
        assert_eq!(
            float::fadd(a, b, flushing),
            float::flush(float::fadd(clean(a), clean(b), FloatMode::PLAIN))
        );
        let fmz = FloatMode { subnormals: Subnormals::FlushMultiplyZero, ..FloatMode::PLAIN };
        assert_eq!(float::fmul(a, 0x8000_0000, fmz), 0);
        assert_eq!(float::ffma(1, a, c, fmz), float::fadd(0, c, flushing));
    }

    fn saturation_gives_a_number_between_zero_and_one(a in word, b in word) {
        let result = float::fadd(a, b, FloatMode { saturate: true, ..FloatMode::PLAIN });
        let plain = f32::from_bits(a) + f32::from_bits(b);
        let expected = if plain.is_nan() || plain <= 0.0 { 0.0 } else { plain.min(1.0) };
        assert_eq!(result, expected.to_bits());
    }

    fn minimum_orders_zeros_and_loses_nans(a in word, b in word) {
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        let result = float::fmnmx(a, b, true, false, false);
        let expected = match (x.is_nan(), y.is_nan()) {
            (true, true) => float::NAN,
            (true, false) => b,
            (false, true) => a,
            _ if x.total_cmp(&y).is_le() => a,
            _ => b,
        };
        assert_eq!(result, expected);
        if x.is_nan() || y.is_nan() {
            assert_eq!(float::fmnmx(a, b, false, false, true), float::NAN);
        }
    }

    fn float_comparisons_follow_their_names(a in long, b in long) {
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        let unordered = x.is_nan() || y.is_nan();
        for (comparison, expected) in [
            (FloatCompare::F, false), (FloatCompare::LT, x < y), (FloatCompare::EQ, x == y),
            (FloatCompare::LE, x <= y), (FloatCompare::GT, x > y),
            (FloatCompare::NE, x != y && !unordered), (FloatCompare::GE, x >= y),
            (FloatCompare::NUM, !unordered), (FloatCompare::NAN, unordered),
            (FloatCompare::LTU, x < y || unordered), (FloatCompare::EQU, x == y || unordered),
            (FloatCompare::LEU, x <= y || unordered), (FloatCompare::GTU, x > y || unordered),
            (FloatCompare::NEU, x != y), (FloatCompare::GEU, x >= y || unordered), (FloatCompare::T, true),
        ] {
            assert_eq!(double::compare(a, b, comparison), expected, "{comparison:?}");
        }
    }

    fn fp64_in_integers_agrees_with_the_host(a in long, b in long, c in long) {
        let finite = |x: u64| f64::from_bits(x).is_finite();
        if finite(a) && finite(b) && finite(c) {
            let unpack = |x| Number::unpack(x, Format::F64);
            let r = Rounding::Nearest;
            let fma = unpack(a).multiply(unpack(b)).add(unpack(c), r).round(Format::F64, r);
            let host = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
            assert_eq!(fma, host.to_bits());
            let sum = unpack(a).add(unpack(b), r).round(Format::F64, r);
            assert_eq!(sum, (f64::from_bits(a) + f64::from_bits(b)).to_bits());
        }
    }

    fn directed_fp64_results_are_neighbours_around_the_exact_one(a in long, b in long, c in long) {
        let [down, up, zero, near] = [Rounding::Down, Rounding::Up, Rounding::Zero, Rounding::Nearest]
            .map(|r| f64::from_bits(double::dfma(a, b, c, r)));
        if near.is_nan() {
            assert!(down.is_nan() && up.is_nan() && zero.is_nan());
        } else {
            assert!(down == up || down.next_up() == up);
            assert!(near == down || near == up);
            let inner = if near.is_sign_negative() { up } else { down };
            assert!(zero == inner || near == 0.0);
            if down < up && down.is_finite() && up.is_finite() && near.abs() > 1e-200 {
                // The residual of an operand-for-operand fused computation has the sign that says
                // on which side of `near` the exact result lies.
                let other = if near == down { up } else { down };
                let (x, y, z) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
                let product = x * y;
                let low = x.mul_add(y, -product);
                if product.is_finite() && z == 0.0 && low != 0.0 && product.abs() > 1e-200 {
                    assert_eq!(low > 0.0, other > near);
                }
            }
        }
    }

    fn fp64_nans_keep_their_payload(a in long, b in long, c in long) {
        let nan = 0x7ff0_0000_0000_0042u64;
        for r in Rounding::ALL {
            assert_eq!(double::dfma(a, nan, c, r), nan | 1 << 51);
            assert_eq!(double::dadd(0x7ff0_0000_0000_0000, 0xfff0_0000_0000_0000, r), double::NAN);
        }
        if !f64::from_bits(b).is_nan() {
            assert_eq!(double::dfma(a, b, nan, Rounding::Nearest), nan | 1 << 51);
        }
    }

    fn half_arithmetic_rounds_once(a in any::<u16>, b in any::<u16>, c in any::<u16>) {
        for format in [HalfFormat::F16, HalfFormat::Bf16] {
            let plain = HalfMode::plain(format);
            let finite = |x: u16| x & 0x7fff < format.infinity();
            if !(finite(a) && finite(b) && finite(c)) {
                continue;
            }
            let unpack = |x: u16| Number::unpack(u64::from(x), format.format());
            let r = Rounding::Nearest;
            let fma = unpack(a).multiply(unpack(b)).add(unpack(c), r).round(format.format(), r);
            assert_eq!(u64::from(half::hfma(a, b, c, plain)), fma);
            let sum = unpack(a).add(unpack(b), r).round(format.format(), r);
            assert_eq!(u64::from(half::hadd(a, b, plain)), sum);
            let product = unpack(a).multiply(unpack(b)).round(format.format(), r);
            assert_eq!(u64::from(half::hmul(a, b, plain)), product);
            let relu = HalfMode { relu: true, ..plain };
            assert_eq!(half::hadd(a, b, relu), if sum & 0x8000 != 0 { 0 } else { sum as u16 });
        }
    }

    fn fp16_sums_agree_with_fixed_point(a in any::<u16>, b in any::<u16>) {
        // Every finite FP16 number is a multiple of 2^-24 below 2^40 of them.
        let fixed = |x: u16| {
            let value = HalfFormat::F16.widen(x);
            (f64::from(f32::from_bits(value)) * f64::from(1 << 24)) as i64
        };
        if a & 0x7fff < 0x7c00 && b & 0x7fff < 0x7c00 {
            let exact = fixed(a) + fixed(b);
            let result = half::hadd(a, b, HalfMode::plain(HalfFormat::F16));
            if result & 0x7fff < 0x7c00 {
                let error = (fixed(result) - exact).abs();
                for neighbour in [result.wrapping_sub(1), result.wrapping_add(1)] {
                    if neighbour & 0x7fff < 0x7c00 && (neighbour ^ result) & 0x8000 == 0 {
                        let other = (fixed(neighbour) - exact).abs();
                        assert!(error < other || error == other && result & 1 == 0);
                    }
                }
            } else {
                assert!(exact.abs() >= 65520 << 24);
            }
        }
    }

    fn integers_from_floats_saturate(a in long, r in rounding) {
        let value = f64::from_bits(a);
        for (width, s) in [Width::B8, Width::B16, Width::B32, Width::B64]
            .into_iter()
            .flat_map(|w| [(w, Sign::Signed), (w, Sign::Unsigned)])
        {
            let to = IntegerType { width, sign: s };
            let result = convert::f2i(a, FloatFormat::F64, to, r, false);
            if value.is_nan() {
                assert_eq!(result, 1u64 << (width.bits() - 1));
                continue;
            }
            let (smallest, largest) = to.range();
            let whole = if value.abs() < 1e30 { value.trunc() as i128 } else if value > 0.0 { i128::MAX } else { i128::MIN };
            let part = value - value.trunc();
            let step = match r {
                Rounding::Zero => 0,
                Rounding::Down => -i128::from(part < 0.0),
                Rounding::Up => i128::from(part > 0.0),
                Rounding::Nearest => {
                    let away = part.abs() > 0.5 || part.abs() == 0.5 && whole & 1 != 0;
                    if part < 0.0 { -i128::from(away) } else { i128::from(away) }
                }
            };
            let expected = whole.saturating_add(step).clamp(smallest, largest);
            assert_eq!(to.value(result), expected, "{to:?} {value:?}");
        }
    }

    fn floats_from_integers_round_once(a in long, r in rounding, s in sign) {
        let from = IntegerType { width: Width::B64, sign: s };
        let value = from.value(a);
        let result = f64::from_bits(convert::i2f(a, from, FloatFormat::F64, r)) as i128;
        let spacing = 1i128 << 11;
        match r {
            Rounding::Down => assert!(result <= value && value - result < spacing),
            Rounding::Up => assert!(result >= value && result - value < spacing),
            Rounding::Zero => assert!(result.abs() <= value.abs() && (value - result).abs() < spacing),
            Rounding::Nearest => assert!((value - result).abs() <= spacing / 2),
        }
        let narrow = convert::i2f(a & 0xffff_ffff, IntegerType::U32, FloatFormat::F32, Rounding::Nearest);
        assert_eq!(narrow as u32, (a as u32 as f32).to_bits());
        let soft = Number { negative: value < 0, exponent: 0, magnitude: value.unsigned_abs() };
        assert_eq!(
            convert::i2f(a, from, FloatFormat::F32, Rounding::Nearest),
            soft.round(Format::F32, Rounding::Nearest)
        );
    }

    fn narrowing_agrees_with_integer_arithmetic(a in long, r in rounding) {
        if f64::from_bits(a).is_finite() {
            for to in [FloatFormat::F16, FloatFormat::Bf16, FloatFormat::F32] {
                assert_eq!(
                    convert::f2f(a, FloatFormat::F64, to, r, false),
                    Number::unpack(a, Format::F64).round(to.format(), r)
                );
            }
        }
    }

    fn rounding_to_integral_agrees_with_the_host(a in word, r in rounding) {
        let value = f32::from_bits(a);
        let expected = match r {
            Rounding::Nearest => value.round_ties_even(),
            Rounding::Down => value.floor(),
            Rounding::Up => value.ceil(),
            Rounding::Zero => value.trunc(),
        };
        let result = convert::frnd(u64::from(a), FloatFormat::F32, r, false) as u32;
        assert_eq!(result, float::canonical(expected.to_bits()));
    }

    fn clamping_conversions_agree_with_the_host(a in word) {
        let s8 = IntegerType { width: Width::B8, sign: Sign::Signed };
        let u16 = IntegerType { width: Width::B16, sign: Sign::Unsigned };
        assert_eq!(integer::i2i_sat(a, IntegerType::S32, s8) as i32, (a as i32).clamp(-128, 127));
        assert_eq!(integer::i2i_sat(a, IntegerType::S32, u16) as i32, (a as i32).clamp(0, 65535));
    }

    fn relu_keeps_numbers_and_nans_that_are_not_negative(a in word, b in word) {
        for to in [HalfFormat::F16, HalfFormat::Bf16] {
            let plain = convert::f2fp_pack(a, b, to, Rounding::Nearest, false);
            let relu = convert::f2fp_pack(a, b, to, Rounding::Nearest, true);
            assert_eq!(relu, convert::relu_pair(plain));
            assert_eq!(convert::f2fp_merge(b, a, to, Rounding::Nearest, true), a << 16 | relu & 0xffff);
            for i in 0..2 {
                let (x, y) = ((plain >> (16 * i)) as u16, (relu >> (16 * i)) as u16);
                assert_eq!(y, if x & 0x8000 != 0 { 0 } else { x });
            }
        }
        let value = f32::from_bits(a);
        let tf32 = convert::f2fp_tf32(a, Tf32Rounding::Nearest, true);
        assert!(tf32 >> 31 == 0);
        assert!(value < 0.0 && tf32 == 0 || value.is_nan() || f32::from_bits(tf32) == f32::from_bits(convert::f32_to_tf32(a, Tf32Rounding::Nearest)).max(0.0));
    }

    fn nan_becomes_zero_with_ntz_only(payload in within(1..1 << 10), r in rounding) {
        let nan = 0x7c00 | payload;
        for width in [Width::B8, Width::B16, Width::B32, Width::B64] {
            let to = IntegerType { width, sign: Sign::Signed };
            assert_eq!(convert::f2i_nan(nan, FloatFormat::F16, to, r, false, true), 0);
            let top = 1u64 << (width.bits() - 1);
            assert_eq!(convert::f2i_nan(nan, FloatFormat::F16, to, r, false, false), top);
        }
    }

    fn tf32_has_ten_fraction_bits(a in word) {
        let value = f32::from_bits(a);
        let near = convert::f32_to_tf32(a, Tf32Rounding::Nearest);
        if value.is_finite() {
            // BF16 with three more fraction bits, by the shared rounding.
            let format = Format { exponent_bits: 8, fraction_bits: 10 };
            let soft = Number::unpack(u64::from(a), Format::F32);
            assert_eq!(u64::from(near), soft.round(format, Rounding::Nearest) << 13);
            assert_eq!(convert::f32_to_tf32(a, Tf32Rounding::Zero), a & !0x1fff);
        }
    }
}

/// Value of an FP8 number by the definition of the format.
fn fp8_value(bits: u8, format: Fp8) -> Option<f64> {
    let (fraction_bits, bias, special) = match format {
        Fp8::E4M3 => (3, 7, 0x7f),
        Fp8::E5M2 => (2, 15, 0x7c),
    };
    let magnitude = bits & 0x7f;
    if magnitude >= special {
        return None;
    }
    let exponent = i32::from(magnitude >> fraction_bits);
    let fraction = f64::from(magnitude & ((1 << fraction_bits) - 1)) / f64::from(1 << fraction_bits);
    let value = if exponent == 0 {
        fraction * 2f64.powi(1 - bias)
    } else {
        (1.0 + fraction) * 2f64.powi(exponent - bias)
    };
    Some(if bits & 0x80 != 0 { -value } else { value })
}

#[test]
fn fp8_widens_exactly() {
    for format in [Fp8::E4M3, Fp8::E5M2] {
        for bits in 0..=255u8 {
            let wide = convert::fp8_to_f16(bits, format);
            match fp8_value(bits, format) {
                Some(value) => {
                    assert_eq!(FloatFormat::F16.value(u64::from(wide)), value, "{format:?} {bits:#x}");
                }
                None if format == Fp8::E5M2 && bits & 0x7f == 0x7c => assert_eq!(wide & 0x7fff, 0x7c00),
                None => assert_eq!(wide, half::NAN),
            }
        }
    }
}

#[test]
fn fp16_narrows_to_the_nearest_fp8() {
    for format in [Fp8::E4M3, Fp8::E5M2] {
        let numbers: Vec<(u8, f64)> =
            (0..128u8).filter_map(|bits| fp8_value(bits, format).map(|v| (bits, v))).collect();
        for bits in 0..0x7c00u16 {
            let value = FloatFormat::F16.value(u64::from(bits));
            let mut best = (0u8, f64::INFINITY);
            for &(candidate, number) in &numbers {
                let distance = (number - value).abs();
                if distance < best.1 || distance == best.1 && candidate & 1 == 0 {
                    best = (candidate, distance);
                }
            }
            assert_eq!(convert::f64_to_fp8(value, format, false), best.0, "{format:?} {value}");
            assert_eq!(convert::f64_to_fp8(-value, format, false), best.0 | 0x80, "{format:?} -{value}");
        }
    }
}

#[test]
fn sixteen_bit_formats_widen_and_narrow_to_themselves() {
    for format in [HalfFormat::F16, HalfFormat::Bf16] {
        for bits in 0..=u16::MAX {
            let wide = format.widen(bits);
            let again = convert::narrow_f32(wide, format, Rounding::Nearest, false);
            assert_eq!(again, if format.is_nan(bits) { half::NAN } else { bits });
        }
    }
    assert_eq!(f32::from_bits(HalfFormat::F16.widen(0x0001)), 2f32.powi(-24));
    assert_eq!(f32::from_bits(HalfFormat::F16.widen(0xc500)), -5.0);
}

#[test]
fn predicates_combine_with_the_comparison_and_its_complement() {
    for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_eq!(Boolean::And.both(a, b), (a && b, !a && b));
        assert_eq!(Boolean::Or.both(a, b), (a || b, !a || b));
        assert_eq!(Boolean::Xor.both(a, b), (a != b, a == b));
    }
}

/// The sequence that compilers emit for unsigned division: MUFU.RCP, F2I, two IMAD.HI.U32 and two
/// corrections.
#[test]
fn compiled_integer_division_is_exact() {
    use sass::lane::mufu::{Function, mufu};
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..200_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let a = (state >> 32) as u32;
        let b = ((state as u32) >> (state >> 59)).max(1);
        let up = convert::i2f(u64::from(b), IntegerType::U32, FloatFormat::F32, Rounding::Up) as u32;
        let reciprocal = mufu(Function::Rcp, up).wrapping_add(0x0fff_fffe);
        let r = convert::f2i(u64::from(reciprocal), FloatFormat::F32, IntegerType::U32, Rounding::Zero, true)
            as u32;
        let error = integer::imad(r, b.wrapping_neg(), 0);
        let r = integer::imad_hi(r, error, u64::from(r) << 32, Sign::Unsigned);
        let mut q = integer::imad_hi(r, a, 0, Sign::Unsigned);
        let mut rest = integer::imad(q.wrapping_neg(), b, a);
        for _ in 0..2 {
            if integer::compare(rest, b, IntegerCompare::GE, Sign::Unsigned) {
                rest = rest.wrapping_sub(b);
                q += 1;
            }
        }
        assert_eq!((q, rest), (a / b, a % b), "{a} / {b}");
    }
}

/// Every line of a recording, checked against the functions; the first few differences of each kind
/// are reported together.
#[test]
fn results_are_those_of_the_card() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/lane/h200.txt"));
    let mut wrong = std::collections::BTreeMap::<&str, (usize, String)>::new();
    let mut checked = 0;
    for line in text.lines() {
        let (kind, rest) = line.split_at(1);
        let n: Vec<u64> = rest
            .split_whitespace()
            .map(|word| u64::from_str_radix(word, 16).expect("a hexadecimal number"))
            .collect();
        let mut expect = |name: &'static str, got: u64, card: u64| {
            checked += 1;
            if got != card {
                let entry = wrong.entry(name).or_default();
                entry.0 += 1;
                if entry.0 <= 6 {
                    entry.1 += &format!("\n    {line}: {got:x}, card {card:x}");
                }
            }
        };
        match kind {
            "d" => fp64_line(&n, &mut expect),
            "f" => fp32_line(&n, &mut expect),
            "h" => half_line(&n, &mut expect),
            "c" => from_fp32_line(&n, &mut expect),
            _ => from_fp64_line(&n, &mut expect),
        }
    }
    assert!(checked > 70_000, "{checked} results");
    let report: String =
        wrong.iter().map(|(name, (count, text))| format!("{name}: {count}{text}\n")).collect();
    assert!(wrong.is_empty(), "{checked} results checked\n{report}");
}

type Expect<'a> = dyn FnMut(&'static str, u64, u64) + 'a;

fn fp64_line(n: &[u64], expect: &mut Expect<'_>) {
    let (a, b, c) = (n[0], n[1], n[2]);
    expect("DFMA", double::dfma(a, b, c, Rounding::Nearest), n[3]);
    expect("DADD", double::dadd(a, b, Rounding::Nearest), n[4]);
    expect("DMUL", double::dmul(a, b, Rounding::Nearest), n[5]);
    expect("DFMA.RM", double::dfma(a, b, c, Rounding::Down), n[6]);
}

fn fp32_line(n: &[u64], expect: &mut Expect<'_>) {
    let (a, b) = (n[0] as u32, n[1] as u32);
    let plain = FloatMode::PLAIN;
    let flush = FloatMode { subnormals: Subnormals::Flush, ..plain };
    let saturate = FloatMode { saturate: true, ..plain };
    let up = FloatMode { rounding: Rounding::Up, ..flush };
    expect("FADD.SAT", float::fadd(a, b, saturate).into(), n[2]);
    expect("FMUL.FTZ", float::fmul(a, b, flush).into(), n[3]);
    expect("FMUL.FTZ.RP", float::fmul(a, b, up).into(), n[4]);
    expect("FFMA.FTZ", float::ffma(a, b, 0, flush).into(), n[5]);
    expect("FMUL.SAT", float::fmul(a, b, saturate).into(), n[6]);
    expect("FMNMX", float::fmnmx(a, b, true, false, false).into(), n[7]);
    expect("FMNMX.FTZ", float::fmnmx(a, b, false, true, false).into(), n[8]);
    expect("F2FP.E4M3", convert::f2fp_pack_fp8(a, b, 0, Fp8::E4M3, false).into(), n[9] & 0xffff);
    expect("F2FP.E5M2", convert::f2fp_pack_fp8(a, b, 0, Fp8::E5M2, false).into(), n[9] >> 16);
}

fn half_line(n: &[u64], expect: &mut Expect<'_>) {
    let pair = |x: u64| (x as u16, (x >> 16) as u16);
    let (a, b, c) = (pair(n[0]), pair(n[1]), pair(n[2]));
    let f16 = HalfMode::plain(HalfFormat::F16);
    let bf16 = HalfMode::plain(HalfFormat::Bf16);
    expect("HFMA2", half::hfma2(a, b, c, f16).into(), n[3]);
    expect("HFMA2.FTZ", half::hfma2(a, b, c, HalfMode { flushes: true, ..f16 }).into(), n[4]);
    expect("HFMA2.SAT", half::hfma2(a, b, c, HalfMode { saturate: true, ..f16 }).into(), n[5]);
    expect("HFMA2.RELU", half::hfma2(a, b, c, HalfMode { relu: true, ..f16 }).into(), n[6]);
    expect("HFMA2.BF16", half::hfma2(a, b, c, bf16).into(), n[7]);
    expect("HFMA2.BF16.RELU", half::hfma2(a, b, c, HalfMode { relu: true, ..bf16 }).into(), n[8]);
    expect("HADD2", half::hadd2(a, b, f16).into(), n[9]);
    expect("HMUL2", half::hmul2(a, b, f16).into(), n[10]);
    expect("HMNMX2", half::hmnmx2(a, b, true, false, f16).into(), n[11]);
    expect("HMNMX2.BF16.NAN", half::hmnmx2(a, b, false, true, bf16).into(), n[12]);
}

const fn integer_type(width: Width, sign: Sign) -> IntegerType {
    IntegerType { width, sign }
}

fn from_fp32_line(n: &[u64], expect: &mut Expect<'_>) {
    let x = n[0];
    let f2i = |to| convert::f2i(x, FloatFormat::F32, to, Rounding::Zero, false);
    let f2f = |to| convert::f2f(x, FloatFormat::F32, to, Rounding::Nearest, false);
    expect("F2I.S32", f2i(IntegerType::S32), n[1]);
    expect("F2I.U32", f2i(IntegerType::U32), n[2]);
    expect("F2I.S64", f2i(integer_type(Width::B64, Sign::Signed)), n[3]);
    expect("F2I.U64", f2i(integer_type(Width::B64, Sign::Unsigned)), n[4]);
    expect("F2F.F64.F32", f2f(FloatFormat::F64), n[5]);
    expect("F2I.S16", f2i(integer_type(Width::B16, Sign::Signed)) & 0xffff, n[6]);
    expect("F2F.F16.F32", f2f(FloatFormat::F16), n[7]);
    expect("F2F.BF16.F32", f2f(FloatFormat::Bf16), n[8]);
    expect("FRND", convert::frnd(x, FloatFormat::F32, Rounding::Nearest, false), n[9]);
    if !float::is_nan(x as u32) {
        // The recording's cvt.rna.tf32 is integer additions, which do not look for NaN.
        expect("RNA.TF32", convert::f32_to_tf32(x as u32, Tf32Rounding::NearestAway).into(), n[10]);
    }
    let relu = convert::f2fp_pack(x as u32, x as u32, HalfFormat::F16, Rounding::Nearest, true);
    expect("F2FP.RELU", relu.into(), n[11]);
}

fn from_fp64_line(n: &[u64], expect: &mut Expect<'_>) {
    let x = n[0];
    let f2i = |to| convert::f2i(x, FloatFormat::F64, to, Rounding::Zero, false);
    let f2f = |to| convert::f2f(x, FloatFormat::F64, to, Rounding::Nearest, false);
    expect("F2I.S32.F64", f2i(IntegerType::S32), n[1]);
    expect("F2I.U32.F64", f2i(IntegerType::U32), n[2]);
    expect("F2I.S64.F64", f2i(integer_type(Width::B64, Sign::Signed)), n[3]);
    expect("F2I.U64.F64", f2i(integer_type(Width::B64, Sign::Unsigned)), n[4]);
    expect("F2F.F32.F64", f2f(FloatFormat::F32), n[5]);
    expect("FRND.F64", convert::frnd(x, FloatFormat::F64, Rounding::Nearest, false), n[6]);
    expect("F2F.F16.F64", f2f(FloatFormat::F16), n[7]);
}

#[test]
fn flushed_results_round_as_on_the_card() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/lane/h200_flush.txt"));
    let flush = FloatMode { subnormals: Subnormals::Flush, ..FloatMode::PLAIN };
    let up = FloatMode { rounding: Rounding::Up, ..flush };
    let mut lines = 0;
    for line in text.lines() {
        let n: Vec<u32> = line[1..]
            .split_whitespace()
            .map(|word| u32::from_str_radix(word, 16).expect("a hexadecimal number"))
            .collect();
        let (a, b, c) = (n[0], n[1], n[2]);
        let exact = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b));
        let converted =
            convert::f2f(exact.to_bits(), FloatFormat::F64, FloatFormat::F32, Rounding::Nearest, true);
        let results = [
            float::fmul(a, b, flush),
            float::fmul(a, b, FloatMode::PLAIN),
            float::ffma(a, b, c, flush),
            float::fmul(a, b, up),
            float::ffma(a, b, c, up),
            converted as u32,
        ];
        assert_eq!(results, n[3..], "{line}");
        lines += 1;
    }
    assert_eq!(lines, 1024);
}

#[test]
fn compiled_fp64_minimum_and_maximum_are_those_of_the_card() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/lane/h200_minmax.txt"));
    let mut lines = 0;
    for line in text.lines() {
        let n: Vec<u64> = line[1..]
            .split_whitespace()
            .map(|word| u64::from_str_radix(word, 16).expect("a hexadecimal number"))
            .collect();
        for (minimum, expected) in [(true, n[2]), (false, n[3])] {
            // DSETP.MIN P0, P1; FSEL and SEL by P0; @P1 the high word of b with the quiet bit.
            let (keeps, both_nan) = double::min_max(n[0], n[1], minimum);
            let low = if keeps { n[0] } else { n[1] } as u32;
            let high = if keeps { n[0] } else { n[1] } >> 32;
            let high = if both_nan { n[1] >> 32 | 0x8_0000 } else { high };
            assert_eq!(high << 32 | u64::from(low), expected, "{line}");
        }
        lines += 1;
    }
    assert_eq!(lines, 225);
}

#[test]
fn the_fast_division_takes_as_many_pairs_of_exponents_as_on_an_h200() {
    let pairs =
        (0..256u32).flat_map(|a| (0..256u32).map(move |b| (a << 23 | 0x12_3456, b << 23 | 0x12_3456)));
    assert_eq!(pairs.filter(|(a, b)| !float::fchk(*a, *b)).count(), 44_246);
    let edges = [
        (25, 2),
        (24, 2),
        (25, 1),
        (254, 251),
        (254, 252),
        (255, 200),
        (127, 251),
        (126, 251),
        (253, 127),
        (253, 126),
    ];
    let slow = edges.map(|(a, b): (u32, u32)| float::fchk(a << 23, b << 23));
    assert_eq!(slow, [false, true, true, false, true, true, false, true, false, true]);
}
