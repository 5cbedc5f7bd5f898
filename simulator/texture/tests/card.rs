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
    let mut compared = 0;
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
                differing.push(format!("{} {at:08x?}: {got:08x?}, the card gave {expected:08x?}", set.name));
            }
        }
    }
    let shown = differing.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differing.is_empty(), "{} of {compared} differ:\n{shown}", differing.len());
    assert!(compared > 3000, "{compared} compared");
}

/// A plane of bytes with signs, or of sRGB whose components are alike, that filters between texels.
fn plane(kind: &str, width: usize, height: usize, bytes: &[u8]) -> (Set<'static>, Vec<u8>) {
    let (components, words) = match kind {
        "snorm" => (1, ["8", "1", "Snorm"]),
        _ => (4, ["8", "4", "Unorm"]),
    };
    let size = [width, height].map(|size| size.to_string());
    let option = if kind == "srgb" { vec!["srgb"] } else { Vec::new() };
    let all = [
        &["plane", "sample", "TwoD", ""][..],
        &words,
        &[&size[0], &size[1], "1", "Clamp", "linear", "texels"],
    ];
    let set = set(&[all.concat(), option].concat());
    let set = Set { name: "plane", operation: "sample", shape: "TwoD", texels: "", texture: set.texture };
    let texels: Vec<u8> = bytes.iter().flat_map(|byte| vec![*byte; components]).collect();
    let memory = memory(&set, &texels);
    (set, memory)
}

fn filtered(set: &Set<'_>, x: f32, y: f32, memory: &[u8]) -> u32 {
    run(set, [x.to_bits(), y.to_bits(), 0, 0], &mut Plain(memory)).unwrap()[0]
}

/// Texels 2b and 2b + 1 of row a are the bytes a and b, so that every pair is a neighbour of the other.
#[test]
fn all_pairs_of_bytes_filter_as_on_an_h200() {
    let bytes: Vec<u8> = (0..=255).flat_map(|a| (0..=255).flat_map(move |b| [a, b])).collect();
    let planes = ["snorm", "srgb"].map(|kind| (kind, plane(kind, 512, 256, &bytes)));
    let text = fixtures::text("texture/h200_filters.txt").unwrap();
    let mut compared = 0;
    for line in text.lines().filter_map(|line| line.strip_prefix("pairs ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let (_, (set, memory)) = planes.iter().find(|(kind, _)| *kind == words[0]).unwrap();
        let weight: f32 = words[1].parse().unwrap();
        let digest = (0..1 << 16).fold(0xcbf2_9ce4_8422_2325, |digest: u64, pair: u32| {
            let (a, b) = ((pair >> 8) as f32, (pair & 255) as f32);
            let word = filtered(set, 2.0 * b + 0.5 + weight / 256.0, a + 0.5, memory);
            (digest ^ u64::from(word)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        assert_eq!(format!("{digest:016x}"), words[2], "{line}");
        compared += 1;
    }
    assert_eq!(compared, 16);
}

#[test]
fn four_texels_filter_as_on_an_h200() {
    let text = fixtures::text("texture/h200_filters.txt").unwrap();
    let mut compared = 0;
    for line in text.lines().filter_map(|line| line.strip_prefix("corners ")) {
        let (kind, numbers) = line.split_once(' ').unwrap();
        let numbers: Vec<u32> =
            numbers.split(' ').map(|word| u32::from_str_radix(word, 16).unwrap()).collect();
        let (set, memory) = plane(kind, 2, 2, &numbers[0].to_le_bytes());
        let at = |weight: u32| 0.5 + (weight & 255) as f32 / 256.0;
        let got = filtered(&set, at(numbers[1]), at(numbers[1] >> 8), &memory);
        assert_eq!(got, numbers[2], "{line}");
        compared += 1;
    }
    assert!(compared > 2000);
}
