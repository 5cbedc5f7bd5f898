//! The operands of the recorded tiles, made from a seed and a number, so that only digests of the results need
//! storing. Integer arithmetic alone, as the program on the card had it.

use super::Form;

/// The finaliser of SplitMix64.
const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

const fn hash(seed: u64, a: u64, b: u64) -> u64 {
    mix(mix(seed ^ a.wrapping_mul(0xd134_2543_de82_ef95)).wrapping_add(b))
}

/// Takes the lowest `bits` off `word`.
fn take(word: &mut u64, bits: u32) -> i64 {
    let low = *word & ((1 << bits) - 1);
    *word >>= bits;
    low as i64
}

/// Element type of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    F16,
    Bf16,
    Tf32,
    E4M3,
    E5M2,
    F32,
    F64,
    Integer(u32),
}

impl Kind {
    pub(super) fn named(name: &str) -> Kind {
        match name {
            "f16" => Kind::F16,
            "bf16" => Kind::Bf16,
            "tf32" => Kind::Tf32,
            "e4m3" => Kind::E4M3,
            "e5m2" => Kind::E5M2,
            "f32" => Kind::F32,
            "f64" => Kind::F64,
            "s8" | "u8" => Kind::Integer(8),
            "s4" | "u4" => Kind::Integer(4),
            "b1" => Kind::Integer(1),
            "s32" => Kind::Integer(32),
            other => panic!("{other} is no type"),
        }
    }

    pub(super) const fn bits(self) -> u32 {
        match self {
            Kind::F16 | Kind::Bf16 => 16,
            Kind::E4M3 | Kind::E5M2 => 8,
            Kind::Tf32 | Kind::F32 => 32,
            Kind::F64 => 64,
            Kind::Integer(bits) => bits,
        }
    }

    const fn is_integer(self) -> bool {
        matches!(self, Kind::Integer(_))
    }

    /// Largest exponent field of a finite number.
    const fn largest(self) -> i64 {
        match self {
            Kind::F64 => 2046,
            Kind::F16 | Kind::E5M2 => 30,
            Kind::E4M3 => 15,
            _ => 254,
        }
    }

    const fn fraction_bits(self) -> u32 {
        match self {
            Kind::F64 => 52,
            Kind::F16 => 10,
            Kind::Bf16 => 7,
            Kind::E4M3 => 3,
            Kind::E5M2 => 2,
            _ => 23,
        }
    }

    const fn bias(self) -> i64 {
        match self {
            Kind::F64 => 1023,
            Kind::F16 | Kind::E5M2 => 15,
            Kind::E4M3 => 7,
            _ => 127,
        }
    }
}

/// What a tile is made of.
pub(super) struct Tile {
    raw: bool,
    zero_a: i64,
    zero_b: i64,
    zero_c: i64,
    special: i64,
    base_a: i64,
    base_b: i64,
    base_c: i64,
    spread_ab: i64,
    spread_c: i64,
    fraction: i64,
    sign: i64,
    pair: bool,
    pub(super) cancel_c: bool,
    valid_metadata: bool,
    seed: u64,
}

impl Tile {
    pub(super) fn new(form: &Form, seed: u64, number: u64) -> Tile {
        const ZEROS: [i64; 8] = [0, 0, 0, 1, 4, 8, 14, 15];
        const SPREADS: [i64; 8] = [0, 1, 2, 4, 8, 16, 32, 2000];
        let (mut h, mut g, j) = (hash(seed, number, 1), hash(seed, number, 2), hash(seed, number, 3));
        let raw = take(&mut h, 4) == 0;
        let zero_a = ZEROS[take(&mut h, 3) as usize];
        let zero_b = ZEROS[take(&mut h, 3) as usize];
        let zero_c = [0, 0, 0, 0, 0, 1, 8, 16][take(&mut h, 3) as usize];
        let special = match take(&mut h, 4) {
            7 | 15 => 2,
            6 | 14 => 16,
            5 => 128,
            _ => 0,
        };
        let spread_ab = SPREADS[take(&mut h, 3) as usize];
        let spread_c = SPREADS[take(&mut h, 3) as usize];
        let fraction = take(&mut h, 3);
        let sign = take(&mut h, 3);
        let pair = take(&mut h, 2) == 3;
        let cancel_c = take(&mut h, 3) == 7;
        let valid_metadata = take(&mut h, 1) == 1;
        let [a, b, c] = form.kinds;
        let [largest_a, largest_b, largest_c] = [a.largest(), b.largest(), c.largest()];
        let below = |word: u64, count: i64| (word % count as u64) as i64;
        let mut tile = Tile {
            raw,
            zero_a,
            zero_b,
            zero_c,
            special,
            base_a: below(g, largest_a + 1),
            base_b: below(g >> 11, largest_b + 1),
            base_c: 0,
            spread_ab,
            spread_c,
            fraction,
            sign,
            pair,
            cancel_c,
            valid_metadata,
            seed: hash(seed, number, 4),
        };
        g >>= 22;
        if g & 3 != 0 {
            // Most: products of middling size.
            tile.base_a = (a.bias() + below(g >> 2, 9) - 4).min(largest_a);
            tile.base_b = (b.bias() + below(g >> 6, 9) - 4).min(largest_b);
        }
        let float = !a.is_integer() && a != Kind::F64;
        if j >> 40 & 7 == 7 && float {
            // Products near the smallest or largest result.
            let (low, high) = if c == Kind::F16 { (-24, 15) } else { (-149, 127) };
            let x = (j >> 44 & 63) as i64;
            let target = if j >> 43 & 1 != 0 { high - 7 + x % 10 } else { low - 14 + x % 44 };
            tile.base_a = below(j >> 50, largest_a + 1);
            tile.base_b = (target - (tile.base_a - a.bias()) + b.bias()).max(0).min(largest_b);
            if tile.spread_ab > 16 {
                tile.spread_ab = 8;
            }
        }
        tile.base_c = if j & 7 != 0 {
            tile.base_a - a.bias() + tile.base_b - b.bias() + c.bias() + below(j >> 3, 65) - 32
        } else {
            below(j >> 3, largest_c + 1)
        };
        tile
    }

    fn float(&self, kind: Kind, zero: i64, base: i64, spread: i64, mut h: u64) -> u64 {
        let r = mix(h);
        let (bits, fraction_bits, largest) = (kind.bits(), kind.fraction_bits(), kind.largest());
        if self.raw {
            return if bits == 64 { r } else { r & ((1 << bits) - 1) };
        }
        let mask = (1u64 << fraction_bits) - 1;
        let infinity = if kind == Kind::E4M3 { 0x7f } else { (largest as u64 + 1) << fraction_bits };
        let top = 1 << (bits - 1);
        let negative = take(&mut h, 1) != 0;
        let sign = match self.sign {
            0 => 0,
            1 => top,
            _ if negative => top,
            _ => 0,
        };
        if ((h & 15) as i64) < zero {
            return if h >> 60 & 1 != 0 { sign } else { 0 };
        }
        h >>= 4;
        if ((h & 255) as i64) < self.special {
            return sign
                | match h >> 8 & 7 {
                    0 | 1 => infinity,
                    2 => infinity | (r & mask).max(1),
                    3 if kind == Kind::E4M3 => 0x7e,
                    3 => (largest as u64) << fraction_bits | mask,
                    4 => 1,
                    5 => mask,
                    6 => 1 << fraction_bits,
                    _ => 0,
                };
        }
        h >>= 16;
        let exponent = if spread >= 2000 {
            (h % (largest as u64 + 1)) as i64
        } else if spread != 0 {
            base + (h % (2 * spread as u64 + 1)) as i64 - spread
        } else {
            base
        };
        let fraction = match self.fraction {
            0 => 0,
            1 => mask,
            2 => r & 3 & mask,
            3 => (r & 3) << fraction_bits >> 2 & mask,
            4 => 1 << (r % u64::from(fraction_bits)),
            _ => r & mask,
        };
        let value = (exponent.max(0).min(largest) as u64) << fraction_bits | fraction;
        sign | if kind == Kind::E4M3 && value == 0x7f { 0x7e } else { value }
    }

    fn integer(&self, bits: u32, zero: i64, h: u64) -> u64 {
        let mask = (1u64 << bits) - 1;
        let r = mix(h);
        if !self.raw && ((h & 15) as i64) < zero {
            return 0;
        }
        if self.raw || self.fraction > 4 {
            return r & mask;
        }
        let (largest, smallest) = (mask >> 1, (mask >> 1) + 1);
        if bits == 32 {
            return match self.fraction {
                0 => largest - (r & 0x3fff),
                1 => smallest + (r & 0x3fff),
                2 if r & 1 != 0 => largest - (r >> 8 & 0xf_ffff),
                2 => smallest + (r >> 8 & 0xf_ffff),
                3 => r & 0xffff,
                _ => 0,
            };
        }
        match self.sign & 3 {
            0 => largest,
            1 => smallest,
            2 => mask,
            _ if r & 1 != 0 => largest,
            _ => smallest,
        }
    }

    /// Element of A at (`i`, `k`), or with `second` of B at (`k`, `i`). Along k, neighbours may nearly cancel.
    pub(super) fn factor(&self, kind: Kind, second: bool, i: usize, k: usize) -> u64 {
        let paired = self.pair && k % 2 == 1;
        let mut h = hash(self.seed, u64::from(second) * 4096 + i as u64, k as u64 - u64::from(paired));
        let zero = if second { self.zero_b } else { self.zero_a };
        if let Kind::Integer(bits) = kind {
            return self.integer(bits, zero, h);
        }
        let base = if second { self.base_b } else { self.base_a };
        let mut value = self.float(kind, zero, base, self.spread_ab, h);
        if paired && !self.raw {
            if !second {
                value ^= 1 << (kind.bits() - 1);
            }
            h = mix(h.wrapping_add(77));
            if h & 3 == 0 {
                value ^= h >> 8 & 3;
            }
            if kind == Kind::Tf32 {
                value ^= (h >> 16 & 1) << 13;
            }
        }
        value
    }

    /// Metadata register of a lane.
    pub(super) fn metadata(&self, a: Kind, lane: usize) -> u32 {
        let mut h = hash(self.seed, 99999, lane as u64);
        if !self.valid_metadata {
            return (h >> 20) as u32;
        }
        let mut word = 0;
        for i in 0..8 {
            let pick = [4, 8, 12, 9, 13, 14][(h % 6) as usize];
            let nibble = if a != Kind::Tf32 {
                pick
            } else if h & 1 != 0 {
                14
            } else {
                4
            };
            h /= 6;
            word |= nibble << (4 * i);
        }
        word
    }

    /// Element of C at `row`, `column`; `negated` is asked for where it is to cancel the product.
    pub(super) fn addend(&self, kind: Kind, row: usize, column: usize, product: impl FnOnce() -> u64) -> u64 {
        let h = hash(self.seed, 777, (row * 8 + column) as u64);
        if let Kind::Integer(bits) = kind {
            return self.integer(bits, self.zero_c, h);
        }
        if !self.cancel_c || self.raw {
            return self.float(kind, self.zero_c, self.base_c, self.spread_c, h);
        }
        let mut value = product() ^ 1 << (kind.bits() - 1);
        if h & 3 != 0 {
            value ^= 1 << (h >> 8 & 3);
        }
        if h >> 2 & 7 == 0 {
            value ^= h >> 16 & 0xff;
        }
        value
    }
}
