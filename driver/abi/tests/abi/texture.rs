//! Descriptors of textures and samplers.

use nv_abi::{
    BitsMut,
    texture::{rows::TEXHEAD_BL, *},
};

fn header(memory: Memory, kind: Kind, extent: [u32; 3]) -> Header {
    let buffer = memory == Memory::Buffer;
    Header {
        address: 0x1_2345_6000,
        memory,
        kind,
        extent,
        components: Components::R16G16,
        data_types: [DataType::Snorm; 4],
        sources: [Source::R, Source::G, Source::Zero, Source::OneFloat],
        normalized: !buffer,
        srgb: false,
        max_mip_level: if buffer { 0 } else { 3 },
        view_levels: if buffer { [0; 2] } else { [1, 2] },
        min_lod_clamp: if buffer { 0 } else { 0x180 },
    }
}

#[test]
fn what_is_written_reads_back_in_both_versions() {
    for version in [HeaderVersion::V1, HeaderVersion::V2] {
        for (memory, kind, extent) in [
            (Memory::Buffer, Kind::OneDBuffer, [0x123_4567, 1, 1]),
            (Memory::Pitch { bytes: 0x20_0020 }, Kind::TwoDNoMipmap, [0x1_0001, 0x1_0002, 1]),
            (Memory::BlockLinear { gobs: [0, 4, 2] }, Kind::ThreeD, [0x1_0001, 0x1_0002, 0x4003]),
            (Memory::BlockLinear { gobs: [0; 3] }, Kind::CubemapArray, [64, 64, 7]),
        ] {
            let header = header(memory, kind, extent);
            let bytes = header.encode(version).unwrap();
            assert_eq!(Header::decode(version, &bytes), Ok(header), "{version:?}");
        }
    }
    let sampler = Sampler {
        address: [AddressMode::Mirror, AddressMode::Border, AddressMode::Wrap],
        compare: Some(Comparison::GreaterEqual),
        lod_bias: -300,
        lod_clamp: [0x80, 0x480],
        border: [1, 2, 3, 0xffff_ffff],
        ..Sampler::LINEAR
    };
    assert_eq!(Sampler::decode(&sampler.encode().unwrap()), Ok(sampler));
}

#[test]
fn what_a_descriptor_cannot_say_is_refused_by_name() {
    let wrong = |version, header: Header| header.encode(version).unwrap_err().to_string();
    let pitch = header(Memory::Pitch { bytes: 48 }, Kind::TwoD, [1, 1, 1]);
    assert_eq!(wrong(HeaderVersion::V2, pitch.clone()), "PITCH_BITS21TO5: 0x30 is not a multiple of 0x20");
    let mixed =
        Header { data_types: [DataType::Snorm, DataType::Unorm, DataType::Snorm, DataType::Snorm], ..pitch };
    assert_eq!(wrong(HeaderVersion::V2, mixed), "TEXHEAD_V2_PITCH has no components of several types");

    let zero = Header::decode(HeaderVersion::V2, &[0; 32]).unwrap_err().to_string();
    assert_eq!(zero, "TEXHEAD_V2_BL.HEADER_VERSION is 0x0");
    let zero = Sampler::decode(&[0; 32]).unwrap_err().to_string();
    assert_eq!(zero, "TEXSAMP.MAG_FILTER is 0x0");
    let mut bytes = header(Memory::BlockLinear { gobs: [0; 3] }, Kind::TwoD, [4, 4, 1])
        .encode(HeaderVersion::V1)
        .unwrap();
    BitsMut::new(&mut bytes).set(&TEXHEAD_BL::COMPONENTS, TEXHEAD_BL::COMPONENTS::SIZES_DXT1).unwrap();
    let dxt = Header::decode(HeaderVersion::V1, &bytes).unwrap_err().to_string();
    assert_eq!(dxt, "TEXHEAD_BL.COMPONENTS is 0x24 (SIZES_DXT1)");
}
