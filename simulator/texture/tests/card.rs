//! What an H200's texture units returned (`fixtures/texture/h200.txt`), against what these do, bit for bit.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use nv_abi::texture::{
    AddressMode, Components, DataType, Header, HeaderVersion, Kind, Memory, MipFilter, Sampler, Source,
};
use nv_texture::{Lod, Position, ReadError, Shape, Texels, Texture};

/// Texels without gaps, read as memory in rows, slices and layers of no gaps: whoever asks gives places.
struct Plain<'a>(&'a [u8]);

impl Texels for Plain<'_> {
    type Error = String;

    fn read(&mut self, address: u64, bytes: u32) -> Result<u128, String> {
        let at = address as usize..address as usize + bytes as usize;
        let found = self.0.get(at.clone()).ok_or_else(|| format!("{at:x?} is outside"))?;
        Ok(found.iter().rev().fold(0, |all, byte| all << 8 | u128::from(*byte)))
    }
}

/// One `set` line.
struct Set<'a> {
    name: &'a str,
    operation: &'a str,
    shape: &'a str,
    texels: &'a str,
    texture: Texture,
}

fn components(bits: &str, count: &str) -> Components {
    use Components as C;
    match (bits, count) {
        ("8", "1") => C::R8,
        ("8", "2") => C::G8R8,
        ("8", "4") => C::A8B8G8R8,
        ("16", "1") => C::R16,
        ("16", "2") => C::R16G16,
        ("16", "4") => C::R16G16B16A16,
        ("32", "1") => C::R32,
        ("32", "2") => C::R32G32,
        ("32", "4") => C::R32G32B32A32,
        other => panic!("{other:?}"),
    }
}

fn set<'a>(words: &[&'a str]) -> Set<'a> {
    let &[
        name,
        operation,
        shape,
        texels,
        bits,
        count,
        kind,
        width,
        height,
        depth,
        mode,
        filter,
        normalized,
        ref rest @ ..,
    ] = words
    else {
        panic!("{words:?}");
    };
    let data_type = match kind {
        "Uint" => DataType::Uint,
        "Sint" => DataType::Sint,
        "Unorm" => DataType::Unorm,
        "Snorm" => DataType::Snorm,
        _ => DataType::Float,
    };
    let present: usize = count.parse().unwrap();
    let mut sources = [Source::R, Source::G, Source::B, Source::A];
    // What that library gives for components that are not there.
    sources[present..].fill(Source::Zero);
    let extent = [width, height, depth].map(|size| size.parse::<u32>().unwrap());
    let kind = match (operation, shape) {
        ("fetch", _) => Kind::OneDBuffer,
        // Compilers read lines as planes of one row.
        (_, "OneD" | "TwoD") => Kind::TwoD,
        (_, "ThreeD") => Kind::ThreeD,
        (_, "OneDArray") => Kind::OneDArray,
        (_, "TwoDArray") => Kind::TwoDArray,
        (_, "Cube") => Kind::Cubemap,
        _ => Kind::CubemapArray,
    };
    let mip = rest.first().is_some_and(|option| option.starts_with("mip"));
    let levels = if mip { 4 } else { 0 };
    let memory = if operation == "fetch" { Memory::Buffer } else { Memory::BlockLinear { gobs: [0; 3] } };
    let header = Header {
        address: 0,
        memory,
        kind,
        extent,
        components: components(bits, count),
        data_types: [data_type; 4],
        sources,
        normalized: normalized == "norm",
        srgb: rest == ["srgb"],
        max_mip_level: levels,
        view_levels: [0, levels],
        min_lod_clamp: 0,
    };
    let mode = match mode {
        "Wrap" => AddressMode::Wrap,
        "Mirror" => AddressMode::Mirror,
        "Clamp" => AddressMode::ClampToEdge,
        _ => AddressMode::Border,
    };
    let base = if filter == "linear" { Sampler::LINEAR } else { Sampler::POINT };
    let mut sampler =
        Sampler { address: [mode; 3], border: [0.25f32, -2.0, 7.0, 0.5].map(f32::to_bits), ..base };
    match rest.first() {
        Some(&"mippoint") => (sampler.mip_filter, sampler.lod_clamp) = (MipFilter::Point, [0, 0x380]),
        Some(&"miplinear") => {
            (sampler.mip_filter, sampler.lod_clamp) = (MipFilter::Linear, [0x80, 0x480]);
            sampler.lod_bias = 0x40;
        }
        _ => {}
    }
    let header = header.encode(HeaderVersion::V2).unwrap();
    let texture = Texture::new(HeaderVersion::V2, &header, Some(&sampler.encode().unwrap())).unwrap();
    Set { name, operation, shape, texels, texture }
}

/// The texels in the order that the texture's layout has them.
fn memory(set: &Set<'_>, texels: &[u8]) -> Vec<u8> {
    let mut memory = vec![0; 1 << 20];
    let bytes = set.texture.texel_bytes() as usize;
    for (from, to) in texels.chunks_exact(bytes).zip(set.texture.places()) {
        memory[to as usize..to as usize + bytes].copy_from_slice(from);
    }
    memory
}

fn run(set: &Set<'_>, at: [u32; 4], memory: &mut Plain<'_>) -> Result<[u32; 4], ReadError<String>> {
    let number = f32::from_bits;
    let line = set.shape == "OneD" && set.operation != "fetch";
    let shape = match set.shape {
        "OneD" if !line => Shape::OneD,
        "OneD" | "TwoD" => Shape::TwoD,
        "ThreeD" => Shape::ThreeD,
        "OneDArray" => Shape::OneDArray,
        "TwoDArray" => Shape::TwoDArray,
        "Cube" => Shape::Cube,
        _ => Shape::CubeArray,
    };
    // Compilers make a layer of at most 16 bits from a signed number.
    let layer = (number(at[3]) as i32 as u32).min(0xffff);
    let coordinates = [number(at[0]), if line { 0.0 } else { number(at[1]) }, number(at[2])];
    let position = Position { shape, coordinates, layer, offset: [0; 3] };
    match set.operation {
        "fetch" => set.texture.fetch(shape, [at[0] as i32, 0, 0], 0, 0, memory),
        "sample" => set.texture.sample(&position, Lod::Zero, None, memory),
        "level" => set.texture.sample(&position, Lod::Level(number(at[3])), None, memory),
        "gather1" => set.texture.gather(&position, 1, None, memory),
        _ => set.texture.gather(&position, 2, None, memory),
    }
}

#[test]
fn samples_are_those_of_an_h200() {
    let text = fixtures::text("texture/h200.txt").unwrap();
    let mut texels: HashMap<&str, Vec<u8>> = HashMap::new();
    let mut current: Option<(Set<'_>, Vec<u8>)> = None;
    let (mut compared, mut inexact) = (0, 0);
    let mut differing = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let word = |text: &&str| u32::from_str_radix(text, 16).unwrap();
        match words[0] {
            "texels" => {
                texels
                    .insert(words[1], words[2..].iter().flat_map(|text| word(text).to_le_bytes()).collect());
            }
            "set" => {
                let set = set(&words[1..]);
                let memory = memory(&set, &texels[set.texels]);
                current = Some((set, memory));
            }
            _ => {
                let (set, memory) = current.as_ref().unwrap();
                let numbers: Vec<u32> = words.iter().map(word).collect();
                let at = [numbers[0], numbers[1], numbers[2], numbers[3]];
                let got = run(set, at, &mut Plain(memory)).unwrap();
                let expected = &numbers[4..];
                compared += 1;
                if got[..expected.len()] == *expected {
                    continue;
                }
                // Filtered bytes with signs may be off by one part, and those of sRGB by more.
                let srgb = set.name.contains("srgb");
                let tolerance = if srgb { 1.0 / 256.0 } else { 1.5 / 32767.0 };
                let near = |(a, b): (&u32, &u32)| (f32::from_bits(*a) - f32::from_bits(*b)).abs() < tolerance;
                let known = set.name.contains("linear") && (srgb || set.name.contains(".s8"));
                if known && got.iter().zip(expected).all(near) {
                    inexact += 1;
                } else {
                    differing
                        .push(format!("{} {at:08x?}: {got:08x?}, the card gave {expected:08x?}", set.name));
                }
            }
        }
    }
    let shown = differing.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differing.is_empty(), "{} of {compared} differ:\n{shown}", differing.len());
    assert!(compared > 3000 && inexact < 50, "{compared} compared, {inexact} nearly the same");
}
