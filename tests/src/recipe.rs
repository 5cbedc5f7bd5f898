//! Launches of kernels as lines of text: grid, block, and arguments, with what buffers hold at first.
//!
//! ```text
//! saxpy grid=4 block=64 shared=0 i32:200 f32:2.5 floats floats[64]
//! ```
//!
//! There are also `cluster=2,1,1` and `cooperative=true`. A buffer has as many words as the brackets say, and [`WORDS`]
//! without. `+` joins the parts of a struct. `fixtures/corpus/host/host.h` fills buffers in the same way.

use std::collections::BTreeMap;

use nv_driver::program::KernelInfo;
use nv_driver::{Argument, Buffer, Device, Error, Kernel, LaunchOptions};

use crate::probe::Random;

/// Words of a buffer of which no line says how many it has.
pub const WORDS: usize = 1 << 16;
/// Dynamic shared memory where no line says how much.
const SHARED: u32 = 32 << 10;

/// A word of a line that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecipeError {
    /// Neither a buffer nor a number.
    #[error("{0} is no argument")]
    Argument(String),
    /// `NAME=` of no option.
    #[error("{0} is no option of a launch")]
    Option(String),
    /// A number that does not read.
    #[error("{0} is no such number")]
    Number(String),
}

/// What a buffer holds at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// Zeros.
    Zeros,
    /// Words from 0 to 255.
    Small,
    /// Words from 0 to 11.
    Few,
    /// Pairs of words that are numbers from 1 to 256.
    Counts,
    /// Bytes that are 0 or 1.
    Booleans,
    /// Any words.
    Bits,
    /// Words, each with its lowest bit set.
    Odd,
    /// FP32 in -4..4.
    Floats,
    /// FP32 in 0..4.
    Positive,
    /// FP32 in 0..1.
    Unit,
    /// FP64 in -4..4.
    Doubles,
    /// FP64 in 0..4.
    Positives,
    /// FP16 in -4..4.
    Halves,
    /// BF16 in -4..4.
    Bfloats,
}

impl Filling {
    /// All, with the names that they have in lines.
    pub const ALL: [(&'static str, Self); 14] = [
        ("zeros", Self::Zeros),
        ("small", Self::Small),
        ("few", Self::Few),
        ("counts", Self::Counts),
        ("booleans", Self::Booleans),
        ("bits", Self::Bits),
        ("odd", Self::Odd),
        ("floats", Self::Floats),
        ("positive", Self::Positive),
        ("unit", Self::Unit),
        ("doubles", Self::Doubles),
        ("positives", Self::Positives),
        ("halves", Self::Halves),
        ("bfloats", Self::Bfloats),
    ];

    /// That many words; another seed gives others.
    pub fn words(self, count: usize, seed: u64) -> Vec<u32> {
        let mut random = Random(seed);
        let mut next = || (random.bits() >> 16) as u32;
        // In -4..4, and a third of it that no FP32 is.
        let fraction = |x: u32| f64::from(x as i32) / f64::from(1 << 29);
        let double = |x: f64, word: usize| ((x / 3.0).to_bits() >> (32 * (word % 2))) as u32;
        // A sign, an exponent from 2^-4 to 2^1, ten bits.
        let half = |x: u32| x & 0x83ff | (11 + (x >> 10 & 31) % 6) << 10;
        let bfloat = |x: u32| x & 0x807f | (123 + (x >> 7 & 31) % 6) << 7;
        let mut last = 0;
        (0..count)
            .map(|word| {
                if !(matches!(self, Self::Doubles | Self::Positives) && word % 2 == 1) {
                    last = next();
                }
                let x = last;
                match self {
                    Self::Zeros => 0,
                    Self::Small => x & 0xff,
                    Self::Few => x % 12,
                    Self::Counts => {
                        if word % 2 == 0 {
                            1 + (x & 0xff)
                        } else {
                            0
                        }
                    }
                    Self::Booleans => x & 0x0101_0101,
                    Self::Bits => x,
                    Self::Odd => x | 1,
                    Self::Floats => (fraction(x) as f32).to_bits(),
                    Self::Positive => (fraction(x >> 1) as f32).to_bits(),
                    Self::Unit => (fraction(x >> 3) as f32).to_bits(),
                    Self::Doubles => double(fraction(x), word),
                    Self::Positives => double(fraction(x >> 1), word),
                    Self::Halves => half(x) | half(x >> 16) << 16,
                    Self::Bfloats => bfloat(x) | bfloat(x >> 16) << 16,
                }
            })
            .collect()
    }
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// The address of a buffer of so many words.
    Buffer(Filling, usize),
    /// Bytes as they are.
    Bytes(Vec<u8>),
}

/// One launch of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block; `None`: as the kernel's own declarations have it.
    pub block: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory.
    pub shared: Option<u32>,
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Whether blocks may wait for each other.
    pub cooperative: bool,
    /// Arguments, in parts.
    pub arguments: Vec<Vec<Part>>,
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, RecipeError> {
    text.parse().map_err(|_| RecipeError::Number(text.to_owned()))
}

fn dimensions(text: &str) -> Result<[u32; 3], RecipeError> {
    let mut all = [1; 3];
    for (place, value) in all.iter_mut().zip(text.split(',')) {
        *place = number(value)?;
    }
    Ok(all)
}

fn part(text: &str) -> Result<Part, RecipeError> {
    let (name, words) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        Some((name, words)) => (name, number(words)?),
        None => (text, WORDS),
    };
    if let Some((_, filling)) = Filling::ALL.iter().find(|(own, _)| *own == name) {
        return Ok(Part::Buffer(*filling, words));
    }
    let no = || RecipeError::Argument(text.to_owned());
    let (kind, value) = text.split_once(':').ok_or_else(no)?;
    Ok(Part::Bytes(match kind {
        "u8" => number::<u8>(value)?.to_le_bytes().into(),
        "i32" => number::<i32>(value)?.to_le_bytes().into(),
        "f32" => number::<f32>(value)?.to_le_bytes().into(),
        "i64" => number::<i64>(value)?.to_le_bytes().into(),
        "f64" => number::<f64>(value)?.to_le_bytes().into(),
        _ => return Err(no()),
    }))
}

/// Reads a file of launches.
///
/// # Errors
/// The first word that means nothing.
pub fn recipes(text: &str) -> Result<BTreeMap<String, Vec<Recipe>>, RecipeError> {
    let mut all: BTreeMap<String, Vec<Recipe>> = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let mut recipe = Recipe { grid: [1; 3], ..Recipe::default() };
        for word in words {
            match word.split_once('=') {
                Some(("grid", value)) => recipe.grid = dimensions(value)?,
                Some(("block", value)) => recipe.block = Some(dimensions(value)?),
                Some(("shared", value)) => recipe.shared = Some(number(value)?),
                Some(("cluster", value)) => recipe.cluster = Some(dimensions(value)?),
                Some(("cooperative", value)) => recipe.cooperative = number(value)?,
                Some(_) => return Err(RecipeError::Option(word.to_owned())),
                None => recipe.arguments.push(word.split('+').map(part).collect::<Result<_, _>>()?),
            }
        }
        all.entry(name.to_owned()).or_default().push(recipe);
    }
    Ok(all)
}

/// The launches of a kernel that no line describes: one for each filling of its buffers, with a buffer for each parameter of 8
/// bytes, 64 for each of 4, and zeros for others.
pub fn made_up(info: &KernelInfo) -> Vec<Recipe> {
    let of = |filling| {
        let argument = |size: u16| match size {
            8 => vec![Part::Buffer(filling, WORDS)],
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

/// What a buffer held before a launch, and after it.
pub type Left = (Vec<u32>, Vec<u32>);

/// A launch under way, or over.
#[derive(Debug)]
pub struct Launched {
    /// All buffers of the launch, one after the other: allocating each by itself takes longer than most launches.
    memory: Option<Buffer<u32>>,
    /// Where each begins, in words, and what it held before.
    buffers: Vec<(usize, Vec<u32>)>,
}

impl Launched {
    /// What each buffer holds, before and after. Waits for the launch.
    ///
    /// # Errors
    /// As [`Buffer::to_vec`].
    pub fn read(self) -> Result<Vec<Left>, Error> {
        let Some(memory) = self.memory else { return Ok(Vec::new()) };
        let all = memory.to_vec()?;
        let after = |(at, before): (usize, Vec<u32>)| {
            let after = all[at..][..before.len()].to_vec();
            (before, after)
        };
        Ok(self.buffers.into_iter().map(after).collect())
    }
}

/// Words to whose multiples buffers begin, as the allocations of NVIDIA's libraries do.
const ALIGNED: usize = 64;

/// Launches a kernel. Dynamic shared memory and blocks are as the recipe says, or as the kernel's description allows.
///
/// # Errors
/// As allocating and launching.
pub fn launch(device: &Device, kernel: &Kernel, recipe: &Recipe) -> Result<Launched, Error> {
    let mut all = Vec::new();
    let mut buffers: Vec<(usize, Vec<u32>)> = Vec::new();
    for part in recipe.arguments.iter().flatten() {
        if let Part::Buffer(filling, count) = part {
            let words = filling.words(*count, buffers.len() as u64 + 1);
            buffers.push((all.len(), words.clone()));
            all.extend(words);
            all.resize(all.len().next_multiple_of(ALIGNED), 0);
        }
    }
    let memory = if all.is_empty() { None } else { Some(device.buffer_from(&all)?) };
    let base = memory.as_ref().map_or(0, Buffer::address);
    let mut addresses = buffers.iter().map(|(at, _)| base + 4 * *at as u64);
    let mut bytes = |part: &Part| match part {
        Part::Bytes(own) => own.clone(),
        Part::Buffer(..) => addresses.next().unwrap_or_default().to_le_bytes().into(),
    };
    let arguments: Vec<Argument> = recipe
        .arguments
        .iter()
        .map(|parts| Argument::bytes(parts.iter().flat_map(&mut bytes).collect::<Vec<u8>>()))
        .collect();
    let info = kernel.info();
    let block = recipe.block.or(info.required_threads).unwrap_or_else(|| {
        let most = info.max_threads.map_or(128, |most| most.iter().product());
        [most.min(if info.max_threads.is_some() { 1024 } else { 128 }), 1, 1]
    });
    let shared = recipe.shared.unwrap_or(if info.shared_bytes > 16 << 10 { 0 } else { SHARED });
    let (cluster, cooperative) = (recipe.cluster, recipe.cooperative);
    let options = LaunchOptions { dynamic_shared: shared, cluster, cooperative };
    kernel.launch_with(recipe.grid, block, &options, &arguments)?;
    Ok(Launched { memory, buffers })
}

/// FNV-1a of the bytes of words.
pub fn digest(words: &[u32]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |all, byte| (all ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What a launch left, in a line: for each buffer the digest of its words and how many of them were changed.
pub fn line(left: &[Left]) -> String {
    let buffer = |(before, after): &Left| {
        let changed = before.iter().zip(after).filter(|(before, after)| before != after).count();
        format!(" {:016x}:{changed}", digest(after))
    };
    left.iter().fold("ok".to_owned(), |line, left| line + &buffer(left))
}

/// An error in words that are the same wherever it happens.
pub fn kind(error: &Error) -> String {
    match error {
        Error::ChannelFault(fault) => format!("fault, Xid {}", fault.xid),
        Error::Assertion(_) => "assertion failed".to_owned(),
        Error::InvalidFree(_) => "invalid free".to_owned(),
        Error::Timeout { .. } => "did not end".to_owned(),
        other => format!("refused: {other}"),
    }
}
