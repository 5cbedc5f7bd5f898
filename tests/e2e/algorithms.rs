//! What the kernels of `fixtures/kinds/algorithms.cu` compute, on the host.

/// Words of the result: two blocks of 128 threads.
const RESULT: usize = 256;
const BLOCK: usize = 128;

/// The kernels, which all have a reference.
pub const KERNELS: [&str; 21] = [
    "sorted",
    "scanned",
    "counted",
    "largest",
    "digested",
    "checked",
    "random_numbers",
    "carried",
    "powers",
    "transformed",
    "convolved",
    "turned_around",
    "escaping",
    "attracted",
    "spread",
    "attended",
    "queens",
    "ciphered",
    "unpacked",
    "given",
    "said",
];

/// The fields of `Given`, and its bytes as a kernel has them.
const FEW: u32 = 3;
const BYTES: [u8; 5] = [1, 20, 255, 4, 99];
const HALF: i16 = -1234;
const REAL: f64 = 17.75;
const WORDS: [u32; 4] = [5, 0x8000_0001, 77, 0xffff_fff0];

/// The argument of `given`, laid out as C does.
pub fn given() -> Vec<u8> {
    let mut bytes = FEW.to_le_bytes().to_vec();
    bytes.extend(BYTES);
    bytes.push(0);
    bytes.extend(HALF.to_le_bytes());
    bytes.resize(16, 0);
    bytes.extend(REAL.to_le_bytes());
    bytes.extend(WORDS.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

/// Grid and block of `given`: as many threads as the others have.
pub const GIVEN_GRID: [u32; 3] = [2, 1, 2];
/// See [`GIVEN_GRID`].
pub const GIVEN_BLOCK: [u32; 3] = [4, 8, 2];

/// What `said` prints, in the order of the blocks.
pub fn said(input: &[u32]) -> Vec<String> {
    (0..2)
        .map(|block| {
            let x = input[block * BLOCK + 5];
            let low = x & 0xff;
            format!(
                "block {block} of two: {} {:.3} {:x}",
                -i64::from(low),
                f64::from(low) / 8.0,
                u64::from(x) << 16
            )
        })
        .collect()
}

/// The result of a kernel.
pub fn reference(kernel: &str, input: &[u32]) -> Option<Vec<u32>> {
    let each = |f: &dyn Fn(usize) -> u32| (0..RESULT).map(f).collect();
    let blocks = |f: &dyn Fn(&[u32]) -> Vec<u32>| input[..RESULT].chunks(BLOCK).flat_map(f).collect();
    Some(match kernel {
        "sorted" => blocks(&|block| {
            let mut block = block.to_vec();
            block.sort_unstable();
            block
        }),
        "scanned" => blocks(&|block| {
            let sums = block.iter().scan(0u32, |sum, x| {
                let before = *sum;
                *sum = sum.wrapping_add(*x);
                Some(before)
            });
            sums.collect()
        }),
        "counted" => {
            let mut counts = vec![0; 256];
            for byte in bytes(input) {
                counts[usize::from(byte)] += 1;
            }
            counts
        }
        "largest" => input[..RESULT]
            .chunks(32)
            .flat_map(|warp| {
                let most = warp.iter().max();
                let at = warp.iter().position(|x| Some(x) == most).unwrap_or(0);
                vec![at as u32; 32]
            })
            .collect(),
        "digested" => each(&|i| digested(input, i)),
        "checked" => {
            let bytes = bytes(input);
            each(&|i| !bytes[i * 8..][..64].iter().fold(!0, |sum, byte| crc(sum, *byte)))
        }
        "random_numbers" => each(&|i| random_numbers(&input[i..], i)),
        "carried" => each(&|i| carried(input, i)),
        "powers" => each(&|i| powers(&input[i..])),
        "transformed" => blocks(&|block| {
            (0..BLOCK)
                .map(|n| {
                    let term = |(k, x): (usize, &u32)| x % 257 * power(9, n * k % BLOCK, 257) % 257;
                    block.iter().enumerate().map(term).sum::<u32>() % 257
                })
                .collect()
        }),
        "convolved" => each(&|i| convolved(input, i)),
        "turned_around" => blocks(&|block| (0..BLOCK).map(|t| block[t % 16 * 8 + t / 16]).collect()),
        "escaping" => each(&|i| escaping(input[i], i)),
        "attracted" => blocks(&attracted),
        "spread" => blocks(&spread),
        // A bit for each function that was not as exact as it should be.
        "attended" => vec![0; RESULT],
        "queens" => each(&|i| queens(6, 1, 1 << (input[i] % 6))),
        "ciphered" => each(&|i| ciphered(input[i])),
        "unpacked" => each(&|i| unpacked(input[i], input[i + 1])),
        "given" => each(&|i| {
            let (block, t) = (i / 64, i % 64);
            let [x, y, z] = [t % 4, t / 4 % 8, t / 32];
            let place = x + 10 * y + 100 * z + 1000 * (block % 2) + 100_000 * (block / 2);
            let products = FEW * u32::from(BYTES[i % 5]);
            let scaled = WORDS[i & 3].wrapping_mul(REAL as u32);
            let fetched = input[input[i] as usize & 1023];
            [products, HALF as u32, scaled, fetched].iter().fold(place as u32, |sum, x| sum.wrapping_add(*x))
        }),
        "said" => vec![1; RESULT],
        _ => return None,
    })
}

fn power(base: u32, exponent: usize, modulus: u32) -> u32 {
    (0..exponent).fold(1, |product, _| product * base % modulus)
}

/// SHA-256's function over one block, as FIPS 180-4 has it, the words joined by exclusive or. The constants are the
/// first 32 bits of the fractions of roots of the first primes.
fn digested(input: &[u32], i: usize) -> u32 {
    let primes: Vec<u64> = (2..).filter(|n| (2..*n).all(|d| n % d != 0)).take(64).collect();
    // The largest whole number whose power is no more than the prime, with 32 bits of fraction.
    let root = |prime: u64, degree: u32| {
        let target = u128::from(prime) << (32 * degree);
        let bits = (0..36).rev().fold(0u128, |root, bit| {
            let tried = root | 1 << bit;
            if tried.pow(degree) <= target { tried } else { root }
        });
        bits as u32
    };
    let start: Vec<u32> = primes[..8].iter().map(|prime| root(*prime, 2)).collect();
    let mut schedule: Vec<u32> = (0..16).map(|k| input[(i + k * 17) & 1023]).collect();
    for k in 16..64 {
        let (a, b) = (schedule[k - 15], schedule[k - 2]);
        let small = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
        let large = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
        let parts = [schedule[k - 16], small, schedule[k - 7], large];
        schedule.push(parts.iter().fold(0, |sum, part| sum.wrapping_add(*part)));
    }
    let mut state = start.clone();
    for (word, prime) in schedule.iter().zip(&primes) {
        let [a, b, c, d, e, f, g, h] = state[..] else { return 0 };
        let one = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let zero = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let parts = [h, one, e & f ^ !e & g, root(*prime, 3), *word];
        let first = parts.iter().fold(0u32, |sum, part| sum.wrapping_add(*part));
        let second = zero.wrapping_add(a & b ^ a & c ^ b & c);
        state = vec![first.wrapping_add(second), a, b, c, d.wrapping_add(first), e, f, g];
    }
    state.iter().zip(&start).fold(0, |all, (x, y)| all ^ x.wrapping_add(*y))
}

fn crc(sum: u32, byte: u8) -> u32 {
    (0..8).fold(sum ^ u32::from(byte), |sum, _| if sum & 1 != 0 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 })
}

/// Philox 4x32 with ten rounds, and Marsaglia's shifts.
fn random_numbers(at: &[u32], i: usize) -> u32 {
    let (mut counter, mut key) = ([i as u32, at[0], 0, 7], [at[1], at[2]]);
    for _ in 0..10 {
        let p = 0xd251_1f53 * u64::from(counter[0]);
        let q = 0xcd9e_8d57 * u64::from(counter[2]);
        let high = |p: u64| (p >> 32) as u32;
        counter = [high(q) ^ counter[1] ^ key[0], q as u32, high(p) ^ counter[3] ^ key[1], p as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    let mut x = u64::from(at[0]) << 32 | u64::from(at[3]) | 1;
    for _ in 0..20 + (at[0] & 15) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    let sum =
        counter.iter().zip([1, 3, 5, 7]).fold(0u32, |sum, (c, by)| sum.wrapping_add(c.wrapping_mul(by)));
    sum.wrapping_add((x >> 32) as u32)
}

/// The bytes of words.
fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn carried(input: &[u32], i: usize) -> u32 {
    let a: Vec<u32> = (0..4).map(|k| input[(i + k) & 1023]).collect();
    let b: Vec<u32> = (0..4).map(|k| input[(i + 300 + 5 * k) & 1023]).collect();
    let long = |words: &[u32]| words.iter().rev().fold(0u128, |all, word| all << 32 | u128::from(*word));
    let sum = long(&a).wrapping_add(long(&b));
    let product = long(&a[..2]) * long(&b[..2]);
    let difference = long(&a[2..]).wrapping_sub(long(&b[2..]));
    let word = |x: u128, k: u32| (x >> (32 * k)) as u32;
    let all = (0..4)
        .fold(0u32, |r, k| r.wrapping_add(word(sum, k)).wrapping_mul(31).wrapping_add(word(product, k)));
    all ^ word(difference, 0) ^ word(difference, 1).wrapping_mul(3)
}

fn powers(at: &[u32]) -> u32 {
    let m = u128::from(at[0] >> 1) << 32 | u128::from(at[1] | 1);
    let b = (u128::from(at[2]) << 13 | 5) % m;
    let r = (0..at[3] & 0xff).fold(1 % m, |product, _| product * b % m);
    r as u32 ^ (r >> 32) as u32
}

fn convolved(input: &[u32], i: usize) -> u32 {
    const WEIGHTS: [[f32; 3]; 3] = [[1.0, -2.0, 3.0], [0.5, 4.0, -0.25], [2.0, 8.0, -1.0]];
    let (x, y) = ((i % 16) as i32, (i / 16) as i32);
    // Quarters of small whole numbers: every sum is exact.
    let mut sum = 0.0;
    for (dy, line) in (-1..).zip(WEIGHTS) {
        for (dx, weight) in (-1..).zip(line) {
            let inside = (0..16).contains(&(x + dx)) && (0..16).contains(&(y + dy));
            if inside {
                let at = ((y + dy) * 16 + x + dx) as usize;
                sum += weight * ((input[at] & 1023) as f32 - 500.0);
            }
        }
    }
    sum.to_bits()
}

/// How often a point goes on before it leaves, at most a hundred times.
fn steps(more: impl FnMut(&()) -> bool) -> u32 {
    std::iter::repeat_n((), 100).take_while(more).count() as u32
}

fn escaping(word: u32, i: usize) -> u32 {
    let cx = ((i % 16) as f32).mul_add(0.1875, -2.0);
    let cy = ((i / 16) as f32).mul_add(0.15625, -1.25);
    let (mut x, mut y) = (0f32, 0f32);
    let single = steps(|()| {
        let goes_on = x.mul_add(x, y * y) < 4.0;
        (x, y) = (x.mul_add(x, -(y * y)) + cx, (2.0 * x).mul_add(y, cy));
        goes_on
    });
    let (dx, dy) = (f64::from(word & 0xffff) / 32768.0 - 1.5, f64::from(word >> 16) / 32768.0 - 1.0);
    let (mut x, mut y) = (0f64, 0f64);
    let double = steps(|()| {
        let goes_on = x.mul_add(x, y * y) < 4.0;
        (x, y) = (x.mul_add(x, -(y * y)) + dx, (2.0 * x).mul_add(y, dy));
        goes_on
    });
    single << 16 | double
}

fn attracted(block: &[u32]) -> Vec<u32> {
    let mut places: Vec<f32> = block.iter().map(|x| (x & 0xffff) as f32 / 256.0).collect();
    let mut speeds = vec![0f32; places.len()];
    for _ in 0..4 {
        let force = |place: f32| {
            places.iter().fold(0f32, |force, other| {
                let d = other - place;
                let square = d.mul_add(d, 1.0);
                force + d / (square * square.sqrt())
            })
        };
        let forces: Vec<f32> = places.iter().map(|place| force(*place)).collect();
        for ((place, speed), force) in places.iter_mut().zip(&mut speeds).zip(forces) {
            *speed = force.mul_add(0.125, *speed);
            *place = speed.mul_add(0.125, *place);
        }
    }
    places.iter().map(|place| place.to_bits()).collect()
}

fn spread(block: &[u32]) -> Vec<u32> {
    let mut heat: Vec<f64> = block.iter().map(|x| f64::from(x & 0xffff)).collect();
    for _ in 0..8 {
        let n = heat.len();
        heat = (0..n)
            .map(|t| {
                let around = heat[(t + 1) % n] + heat[(t + n - 1) % n];
                0.3f64.mul_add((-2.0f64).mul_add(heat[t], around), heat[t])
            })
            .collect();
    }
    heat.iter().map(|heat| (heat.to_bits() >> 8) as u32).collect()
}

/// Ways to place queens in the lines from `line` on, with `taken` in the lines before: bits of columns, the last one
/// lowest.
fn queens(n: u32, line: u32, taken: u64) -> u32 {
    if line == n {
        return 1;
    }
    let column = |line: u32, taken: u64| (taken >> (8 * line) & 0xff).trailing_zeros();
    (0..n)
        .filter(|new| {
            (0..line).all(|before| {
                let old = column(line - 1 - before, taken);
                old != *new && old.abs_diff(*new) != line - before
            })
        })
        .map(|new| queens(n, line + 1, taken << 8 | 1 << new))
        .sum()
}

fn ciphered(key: u32) -> u32 {
    let mut table: Vec<u8> = (0..=255).collect();
    let mut j = 0u8;
    for k in 0..256 {
        j = j.wrapping_add(table[k]).wrapping_add(key.to_le_bytes()[k % 4]);
        table.swap(k, usize::from(j));
    }
    (1..17).fold(0u32, |r, k| {
        let at = table[k].wrapping_add(table[(k * usize::from(j)) & 255]);
        r.wrapping_mul(31).wrapping_add(table[usize::from(at)].into())
    })
}

fn unpacked(word: u32, next: u32) -> u32 {
    // In sixteenths, which a half holds exactly.
    let scale = 4i32 << (next & 3);
    let sum = |first: u32| (0..4).map(|k| (word >> (8 * k + first) & 15) as i32 - 8).sum::<i32>() * scale;
    (sum(0) as u32).wrapping_mul(1000).wrapping_add(sum(4) as u32)
}
