//! The rows of texture headers and samplers.
//!
//! Source: NVIDIA/open-gpu-doc (MIT), `clc997tex.h` for the forms that GPUs before Hopper take, `clcb97tex.h` for those
//! from Hopper on, which it calls V2, and for samplers. The forms with a colour key (`BLCK`, `PITCHCK`) are left out.

/// Declares the forms; what several fields take as values is given once.
macro_rules! headers {
    (
        size: { $($size:ident = $n_size:literal),* $(,)? }
        number: { $($number:ident = $n_number:literal),* $(,)? }
        source: { $($source:ident = $n_source:literal),* $(,)? }
        version: { $($version:ident = $n_version:literal),* $(,)? }
        hash: { $($hash:ident = $n_hash:literal),* $(,)? }
        gobs: { $($gobs:ident = $n_gobs:literal),* $(,)? }
        quality: { $($quality:ident = $n_quality:literal),* $(,)? }
        modifier: { $($modifier:ident = $n_modifier:literal),* $(,)? }
        kind: { $($kind:ident = $n_kind:literal),* $(,)? }
        promotion: { $($promotion:ident = $n_promotion:literal),* $(,)? }
        border: { $($border:ident = $n_border:literal),* $(,)? }
        spread: { $($spread:ident = $n_spread:literal),* $(,)? }
        anisotropy: { $($anisotropy:ident = $n_anisotropy:literal),* $(,)? }
        samples: { $($samples:ident = $n_samples:literal),* $(,)? }
        number_v2: { $($number_v2:ident = $n_number_v2:literal),* $(,)? }
        size_v2: { $($size_v2:ident = $n_size_v2:literal),* $(,)? }
        version_v2: { $($version_v2:ident = $n_version_v2:literal),* $(,)? }
        border_v2: { $($border_v2:ident = $n_border_v2:literal),* $(,)? }
        size_1d: { $($size_1d:ident = $n_size_1d:literal),* $(,)? }
    ) => {
        crate::layout! {
            /// A texture in block-linear memory.
            pub mod TEXHEAD_BL: 256 bits {
                COMPONENTS 6:0 { $($size = $n_size),* };
                R_DATA_TYPE 9:7 { $($number = $n_number),* };
                G_DATA_TYPE 12:10 { $($number = $n_number),* };
                B_DATA_TYPE 15:13 { $($number = $n_number),* };
                A_DATA_TYPE 18:16 { $($number = $n_number),* };
                X_SOURCE 21:19 { $($source = $n_source),* };
                Y_SOURCE 24:22 { $($source = $n_source),* };
                Z_SOURCE 27:25 { $($source = $n_source),* };
                W_SOURCE 30:28 { $($source = $n_source),* };
                PACK_COMPONENTS 31:31;
                RESERVED1Y 36:32;
                GOB_DEPTH_OFFSET 38:37;
                RESERVED1X 40:39;
                ADDRESS_BITS31TO9 63:41 >> 9;
                ADDRESS_BITS48TO32 80:64;
                RESERVED_ADDRESS 84:81;
                HEADER_VERSION 87:85 { $($version = $n_version),* };
                RESERVED_HEADER_VERSION 88:88;
                RESOURCE_VIEW_COHERENCY_HASH 92:89 { $($hash = $n_hash),* };
                RESERVED2A 95:93;
                GOBS_PER_BLOCK_WIDTH 98:96 { ONE_GOB = 0 };
                GOBS_PER_BLOCK_HEIGHT 101:99 { $($gobs = $n_gobs),* };
                GOBS_PER_BLOCK_DEPTH 104:102 { $($gobs = $n_gobs),* };
                RESERVED3Y 105:105;
                TILE_WIDTH_IN_GOBS 108:106 { $($gobs = $n_gobs),* };
                GOB3D 109:109;
                RESERVED3Z 111:110;
                LOD_ANISO_QUALITY2 112:112;
                LOD_ANISO_QUALITY 113:113 { $($quality = $n_quality),* };
                LOD_ISO_QUALITY 114:114 { $($quality = $n_quality),* };
                ANISO_COARSE_SPREAD_MODIFIER 116:115 { $($modifier = $n_modifier),* };
                ANISO_SPREAD_SCALE 121:117;
                USE_HEADER_OPT_CONTROL 122:122;
                DEPTH_TEXTURE 123:123;
                MAX_MIP_LEVEL 127:124;
                WIDTH_MINUS_ONE 144:128;
                DEPTH_MINUS_ONE_BIT14 145:145;
                HEIGHT_MINUS_ONE_BIT16 146:146;
                ANISO_SPREAD_MAX_LOG2 149:147;
                S_R_G_B_CONVERSION 150:150;
                TEXTURE_TYPE 154:151 { $($kind = $n_kind),* };
                SECTOR_PROMOTION 156:155 { $($promotion = $n_promotion),* };
                BORDER_SIZE 159:157 { $($border = $n_border),* };
                HEIGHT_MINUS_ONE 175:160;
                DEPTH_MINUS_ONE 189:176;
                RESERVED5A 190:190;
                NORMALIZED_COORDS 191:191;
                RESERVED6Y 192:192;
                TRILIN_OPT 197:193;
                MIP_LOD_BIAS 210:198;
                ANISO_BIAS 214:211;
                ANISO_FINE_SPREAD_FUNC 216:215 { $($spread = $n_spread),* };
                ANISO_COARSE_SPREAD_FUNC 218:217 { $($spread = $n_spread),* };
                MAX_ANISOTROPY 221:219 { $($anisotropy = $n_anisotropy),* };
                ANISO_FINE_SPREAD_MODIFIER 223:222 { $($modifier = $n_modifier),* };
                RES_VIEW_MIN_MIP_LEVEL 227:224;
                RES_VIEW_MAX_MIP_LEVEL 231:228;
                MULTI_SAMPLE_COUNT 235:232 { $($samples = $n_samples),* };
                MIN_LOD_CLAMP 247:236;
                RESERVED7Y 255:248;
            }

            /// A buffer: texels in a row.
            pub mod TEXHEAD_1D: 256 bits {
                COMPONENTS 6:0 { $($size = $n_size),* };
                R_DATA_TYPE 9:7 { $($number = $n_number),* };
                G_DATA_TYPE 12:10 { $($number = $n_number),* };
                B_DATA_TYPE 15:13 { $($number = $n_number),* };
                A_DATA_TYPE 18:16 { $($number = $n_number),* };
                X_SOURCE 21:19 { $($source = $n_source),* };
                Y_SOURCE 24:22 { $($source = $n_source),* };
                Z_SOURCE 27:25 { $($source = $n_source),* };
                W_SOURCE 30:28 { $($source = $n_source),* };
                PACK_COMPONENTS 31:31;
                ADDRESS_BITS31TO0 63:32;
                ADDRESS_BITS48TO32 80:64;
                RESERVED_ADDRESS 84:81;
                HEADER_VERSION 87:85 { $($version = $n_version),* };
                RESERVED_HEADER_VERSION 88:88;
                RESOURCE_VIEW_COHERENCY_HASH 92:89 { $($hash = $n_hash),* };
                RESERVED2A 95:93;
                WIDTH_MINUS_ONE_BITS31TO16 111:96;
                RESERVED3X 127:112;
                WIDTH_MINUS_ONE_BITS15TO0 143:128;
                RESERVED4X 149:144;
                S_R_G_B_CONVERSION 150:150;
                TEXTURE_TYPE 154:151 { $($kind = $n_kind),* };
                SECTOR_PROMOTION 156:155 { $($promotion = $n_promotion),* };
                RESERVED4Y 159:157;
                RESERVED5X 189:160;
                RESERVED5A 190:190;
                RESERVED5Y 191:191;
                RESERVED6X 223:192;
                RESERVED7X 255:224;
            }

            /// A texture in rows of one pitch.
            pub mod TEXHEAD_PITCH: 256 bits {
                COMPONENTS 6:0 { $($size = $n_size),* };
                R_DATA_TYPE 9:7 { $($number = $n_number),* };
                G_DATA_TYPE 12:10 { $($number = $n_number),* };
                B_DATA_TYPE 15:13 { $($number = $n_number),* };
                A_DATA_TYPE 18:16 { $($number = $n_number),* };
                X_SOURCE 21:19 { $($source = $n_source),* };
                Y_SOURCE 24:22 { $($source = $n_source),* };
                Z_SOURCE 27:25 { $($source = $n_source),* };
                W_SOURCE 30:28 { $($source = $n_source),* };
                PACK_COMPONENTS 31:31;
                RESERVED1A 36:32;
                ADDRESS_BITS31TO5 63:37 >> 5;
                ADDRESS_BITS48TO32 80:64;
                RESERVED_ADDRESS 84:81;
                HEADER_VERSION 87:85 { $($version = $n_version),* };
                RESERVED_HEADER_VERSION 88:88;
                RESOURCE_VIEW_COHERENCY_HASH 92:89 { $($hash = $n_hash),* };
                RESERVED2A 95:93;
                PITCH_BITS20TO5 111:96 >> 5;
                LOD_ANISO_QUALITY2 112:112;
                LOD_ANISO_QUALITY 113:113 { $($quality = $n_quality),* };
                LOD_ISO_QUALITY 114:114 { $($quality = $n_quality),* };
                ANISO_COARSE_SPREAD_MODIFIER 116:115 { $($modifier = $n_modifier),* };
                ANISO_SPREAD_SCALE 121:117;
                USE_HEADER_OPT_CONTROL 122:122;
                DEPTH_TEXTURE 123:123;
                MAX_MIP_LEVEL 127:124;
                WIDTH_MINUS_ONE 144:128;
                PITCH_BIT21 145:145 >> 21;
                HEIGHT_MINUS_ONE_BIT16 146:146;
                ANISO_SPREAD_MAX_LOG2 149:147;
                S_R_G_B_CONVERSION 150:150;
                TEXTURE_TYPE 154:151 { $($kind = $n_kind),* };
                SECTOR_PROMOTION 156:155 { $($promotion = $n_promotion),* };
                BORDER_SIZE 159:157 { $($border = $n_border),* };
                HEIGHT_MINUS_ONE 175:160;
                DEPTH_MINUS_ONE 189:176;
                RESERVED5A 190:190;
                NORMALIZED_COORDS 191:191;
                RESERVED6Y 192:192;
                TRILIN_OPT 197:193;
                MIP_LOD_BIAS 210:198;
                ANISO_BIAS 214:211;
                ANISO_FINE_SPREAD_FUNC 216:215 { $($spread = $n_spread),* };
                ANISO_COARSE_SPREAD_FUNC 218:217 { $($spread = $n_spread),* };
                MAX_ANISOTROPY 221:219 { $($anisotropy = $n_anisotropy),* };
                ANISO_FINE_SPREAD_MODIFIER 223:222 { $($modifier = $n_modifier),* };
                RES_VIEW_MIN_MIP_LEVEL 227:224;
                RES_VIEW_MAX_MIP_LEVEL 231:228;
                MULTI_SAMPLE_COUNT 235:232 { $($samples = $n_samples),* };
                MIN_LOD_CLAMP 247:236;
                RESERVED7Y 255:248;
            }

            /// A texture in block-linear memory, from Hopper on.
            pub mod TEXHEAD_V2_BL: 256 bits {
                RESERVED0A 3:0;
                GOB_DEPTH_OFFSET 8:4;
                ADDRESS_BITS31TO9 31:9 >> 9;
                ADDRESS_BITS56TO32 56:32;
                RESERVED1A 63:57;
                GOBS_PER_BLOCK_WIDTH 66:64 { ONE_GOB = 0 };
                GOBS_PER_BLOCK_HEIGHT 69:67 { $($gobs = $n_gobs),* };
                GOBS_PER_BLOCK_DEPTH 72:70 { $($gobs = $n_gobs),* };
                RESERVED3Y 73:73;
                TILE_WIDTH_IN_GOBS 76:74 { $($gobs = $n_gobs),* };
                GOB3D 77:77;
                RESERVED2Z 79:78;
                LOD_ANISO_QUALITY2 80:80;
                LOD_ANISO_QUALITY 81:81 { $($quality = $n_quality),* };
                LOD_ISO_QUALITY 82:82 { $($quality = $n_quality),* };
                ANISO_COARSE_SPREAD_MODIFIER 84:83 { $($modifier = $n_modifier),* };
                ANISO_SPREAD_SCALE 89:85;
                USE_HEADER_OPT_CONTROL 90:90;
                DEPTH_TEXTURE 91:91;
                MAX_MIP_LEVEL 95:92;
                X_SOURCE 98:96 { $($source = $n_source),* };
                Y_SOURCE 101:99 { $($source = $n_source),* };
                Z_SOURCE 104:102 { $($source = $n_source),* };
                W_SOURCE 107:105 { $($source = $n_source),* };
                DATA_TYPE 111:108 { $($number_v2 = $n_number_v2),* };
                COMPONENTS 118:112 { $($size_v2 = $n_size_v2),* };
                PACK_COMPONENTS 119:119;
                RESERVED3A 123:120;
                HEADER_VERSION 127:124 { $($version_v2 = $n_version_v2),* };
                WIDTH_MINUS_ONE 144:128;
                NORMALIZED_COORDS 145:145;
                ANISO_SPREAD_MAX_LOG2 148:146;
                S_R_G_B_CONVERSION 149:149;
                TEXTURE_TYPE 153:150 { $($kind = $n_kind),* };
                SECTOR_PROMOTION 155:154 { $($promotion = $n_promotion),* };
                BORDER_SOURCE 156:156 { $($border_v2 = $n_border_v2),* };
                RESERVED4A 159:157;
                HEIGHT_MINUS_ONE 176:160;
                DEPTH_MINUS_ONE 191:177;
                RESERVED6Y 192:192;
                TRILIN_OPT 197:193;
                MIP_LOD_BIAS 210:198;
                ANISO_BIAS 214:211;
                ANISO_FINE_SPREAD_FUNC 216:215 { $($spread = $n_spread),* };
                ANISO_COARSE_SPREAD_FUNC 218:217 { $($spread = $n_spread),* };
                MAX_ANISOTROPY 221:219 { $($anisotropy = $n_anisotropy),* };
                ANISO_FINE_SPREAD_MODIFIER 223:222 { $($modifier = $n_modifier),* };
                RES_VIEW_MIN_MIP_LEVEL 227:224;
                RES_VIEW_MAX_MIP_LEVEL 231:228;
                MULTI_SAMPLE_COUNT 235:232 { $($samples = $n_samples),* };
                MIN_LOD_CLAMP 247:236;
                RESERVED7Y 255:248;
            }

            /// A buffer: texels in a row (raw or typed), from Hopper on.
            pub mod TEXHEAD_V2_1DRT: 256 bits {
                ADDRESS_BITS31TO0 31:0;
                ADDRESS_BITS63TO32 63:32;
                WIDTH_MINUS_ONE 95:64;
                X_SOURCE 98:96 { $($source = $n_source),* };
                Y_SOURCE 101:99 { $($source = $n_source),* };
                Z_SOURCE 104:102 { $($source = $n_source),* };
                W_SOURCE 107:105 { $($source = $n_source),* };
                DATA_TYPE 111:108 { $($number_v2 = $n_number_v2),* };
                COMPONENTS 117:112 { $($size_1d = $n_size_1d),* };
                SECTOR_PROMOTION 119:118 { $($promotion = $n_promotion),* };
                RESERVED3A 123:120;
                HEADER_VERSION 127:124 { $($version_v2 = $n_version_v2),* };
                RESERVED4X 156:128;
                RESERVED4A 159:157;
                RESERVED5X 191:160;
                RESERVED6X 223:192;
                RESERVED7X 255:224;
            }

            /// A buffer of structures, from Hopper on.
            pub mod TEXHEAD_V2_1DSB: 256 bits {
                ADDRESS_BITS31TO0 31:0;
                ADDRESS_BITS63TO32 63:32;
                WIDTH_MINUS_ONE 95:64;
                STRIDE 107:96;
                DATA_TYPE 111:108 { $($number_v2 = $n_number_v2),* };
                COMPONENTS 117:112 { $($size_1d = $n_size_1d),* };
                SECTOR_PROMOTION 119:118 { $($promotion = $n_promotion),* };
                RESERVED3A 123:120;
                HEADER_VERSION 127:124 { $($version_v2 = $n_version_v2),* };
                RESERVED4X 156:128;
                RESERVED4A 159:157;
                RESERVED5X 191:160;
                RESERVED6X 223:192;
                RESERVED7X 255:224;
            }

            /// A texture in rows of one pitch, from Hopper on.
            pub mod TEXHEAD_V2_PITCH: 256 bits {
                RESERVED0A 3:0;
                RESERVED0X 4:4;
                ADDRESS_BITS31TO5 31:5 >> 5;
                ADDRESS_BITS56TO32 56:32;
                RESERVED1A 63:57;
                PITCH_BITS21TO5 80:64 >> 5;
                LOD_ANISO_QUALITY2 81:81;
                LOD_ANISO_QUALITY 82:82 { $($quality = $n_quality),* };
                LOD_ISO_QUALITY 83:83 { $($quality = $n_quality),* };
                ANISO_COARSE_SPREAD_MODIFIER 85:84 { $($modifier = $n_modifier),* };
                ANISO_SPREAD_SCALE 90:86;
                DEPTH_TEXTURE 91:91;
                MAX_MIP_LEVEL 95:92;
                X_SOURCE 98:96 { $($source = $n_source),* };
                Y_SOURCE 101:99 { $($source = $n_source),* };
                Z_SOURCE 104:102 { $($source = $n_source),* };
                W_SOURCE 107:105 { $($source = $n_source),* };
                DATA_TYPE 111:108 { $($number_v2 = $n_number_v2),* };
                COMPONENTS 118:112 { $($size_v2 = $n_size_v2),* };
                PACK_COMPONENTS 119:119;
                RESERVED3A 123:120;
                HEADER_VERSION 127:124 { $($version_v2 = $n_version_v2),* };
                WIDTH_MINUS_ONE 144:128;
                NORMALIZED_COORDS 145:145;
                ANISO_SPREAD_MAX_LOG2 148:146;
                S_R_G_B_CONVERSION 149:149;
                TEXTURE_TYPE 153:150 { $($kind = $n_kind),* };
                SECTOR_PROMOTION 155:154 { $($promotion = $n_promotion),* };
                BORDER_SOURCE 156:156 { $($border_v2 = $n_border_v2),* };
                RESERVED4A 159:157;
                HEIGHT_MINUS_ONE 176:160;
                RESERVED5Y 191:177;
                RESERVED6Y 192:192;
                TRILIN_OPT 197:193;
                MIP_LOD_BIAS 210:198;
                ANISO_BIAS 214:211;
                ANISO_FINE_SPREAD_FUNC 216:215 { $($spread = $n_spread),* };
                ANISO_COARSE_SPREAD_FUNC 218:217 { $($spread = $n_spread),* };
                MAX_ANISOTROPY 221:219 { $($anisotropy = $n_anisotropy),* };
                ANISO_FINE_SPREAD_MODIFIER 223:222 { $($modifier = $n_modifier),* };
                RES_VIEW_MIN_MIP_LEVEL 227:224;
                RES_VIEW_MAX_MIP_LEVEL 231:228;
                MULTI_SAMPLE_COUNT 235:232 { $($samples = $n_samples),* };
                MIN_LOD_CLAMP 247:236;
                RESERVED7Y 255:248;
            }
        }
    };
}

headers! {
    size: {
        SIZES_INVALID = 0x00, SIZES_R32_G32_B32_A32 = 0x01, SIZES_R32_G32_B32 = 0x02,
        SIZES_R16_G16_B16_A16 = 0x03, SIZES_R32_G32 = 0x04, SIZES_R32_B24G8 = 0x05, SIZES_X8B8G8R8 = 0x07,
        SIZES_A8B8G8R8 = 0x08, SIZES_A2B10G10R10 = 0x09, SIZES_R16_G16 = 0x0c, SIZES_G8R24 = 0x0d,
        SIZES_G24R8 = 0x0e, SIZES_R32 = 0x0f, SIZES_A4B4G4R4 = 0x12, SIZES_A5B5G5R1 = 0x13,
        SIZES_A1B5G5R5 = 0x14, SIZES_B5G6R5 = 0x15, SIZES_B6G5R5 = 0x16, SIZES_G8R8 = 0x18, SIZES_R16 = 0x1b,
        SIZES_Y8_VIDEO = 0x1c, SIZES_R8 = 0x1d, SIZES_G4R4 = 0x1e, SIZES_R1 = 0x1f,
        SIZES_E5B9G9R9_SHAREDEXP = 0x20, SIZES_BF10GF11RF11 = 0x21, SIZES_G8B8G8R8 = 0x22,
        SIZES_B8G8R8G8 = 0x23, SIZES_DXT1 = 0x24, SIZES_DXT23 = 0x25, SIZES_DXT45 = 0x26, SIZES_DXN1 = 0x27,
        SIZES_DXN2 = 0x28, SIZES_BC6H_SF16 = 0x10, SIZES_BC6H_UF16 = 0x11, SIZES_BC7U = 0x17,
        SIZES_ETC2_RGB = 0x06, SIZES_ETC2_RGB_PTA = 0x0a, SIZES_ETC2_RGBA = 0x0b, SIZES_EAC = 0x19,
        SIZES_EACX2 = 0x1a, SIZES_Z24S8 = 0x29, SIZES_X8Z24 = 0x2a, SIZES_S8Z24 = 0x2b,
        SIZES_X4V4Z24__COV4R4V = 0x2c, SIZES_X4V4Z24__COV8R8V = 0x2d, SIZES_V8Z24__COV4R12V = 0x2e,
        SIZES_ZF32 = 0x2f, SIZES_ZF32_X24S8 = 0x30, SIZES_X8Z24_X20V4S8__COV4R4V = 0x31,
        SIZES_X8Z24_X20V4S8__COV8R8V = 0x32, SIZES_ZF32_X20V4X8__COV4R4V = 0x33,
        SIZES_ZF32_X20V4X8__COV8R8V = 0x34, SIZES_ZF32_X20V4S8__COV4R4V = 0x35,
        SIZES_ZF32_X20V4S8__COV8R8V = 0x36, SIZES_X8Z24_X16V8S8__COV4R12V = 0x37,
        SIZES_ZF32_X16V8X8__COV4R12V = 0x38, SIZES_ZF32_X16V8S8__COV4R12V = 0x39, SIZES_Z16 = 0x3a,
        SIZES_V8Z24__COV8R24V = 0x3b, SIZES_X8Z24_X16V8S8__COV8R24V = 0x3c,
        SIZES_ZF32_X16V8X8__COV8R24V = 0x3d, SIZES_ZF32_X16V8S8__COV8R24V = 0x3e, SIZES_ASTC_2D_4X4 = 0x40,
        SIZES_ASTC_2D_5X4 = 0x50, SIZES_ASTC_2D_5X5 = 0x41, SIZES_ASTC_2D_6X5 = 0x51,
        SIZES_ASTC_2D_6X6 = 0x42, SIZES_ASTC_2D_8X5 = 0x55, SIZES_ASTC_2D_8X6 = 0x52,
        SIZES_ASTC_2D_8X8 = 0x44, SIZES_ASTC_2D_10X5 = 0x56, SIZES_ASTC_2D_10X6 = 0x57,
        SIZES_ASTC_2D_10X8 = 0x53, SIZES_ASTC_2D_10X10 = 0x45, SIZES_ASTC_2D_12X10 = 0x54,
        SIZES_ASTC_2D_12X12 = 0x46, SIZES_CS_BITFIELD_SIZE = 0x7f,
    }
    number: {
        NUM_SNORM = 1, NUM_UNORM = 2, NUM_SINT = 3, NUM_UINT = 4, NUM_SNORM_FORCE_FP16 = 5,
        NUM_UNORM_FORCE_FP16 = 6, NUM_FLOAT = 7,
    }
    source: {
        IN_ZERO = 0, IN_R = 2, IN_G = 3, IN_B = 4, IN_A = 5, IN_ONE_INT = 6, IN_ONE_FLOAT = 7,
    }
    version: {
        SELECT_ONE_D_BUFFER = 0, SELECT_PITCH_COLOR_KEY = 1, SELECT_PITCH = 2, SELECT_BLOCKLINEAR = 3,
        SELECT_BLOCKLINEAR_COLOR_KEY = 4,
    }
    hash: {
        HASH_ALIASED_0 = 0, HASH_ALIASED_1 = 1, HASH_ALIASED_2 = 2, HASH_ALIASED_3 = 3, HASH_ALIASED_4 = 4,
        HASH_ALIASED_5 = 5, HASH_ALIASED_6 = 6, HASH_ALIASED_7 = 7, HASH_ALIASED_8 = 8, HASH_ALIASED_9 = 9,
        HASH_ALIASED_10 = 10, HASH_ALIASED_11 = 11, HASH_ALIASED_12 = 12, HASH_ALIASED_13 = 13,
        HASH_ALIASED_14 = 14, HASH_UNALIASED = 15,
    }
    gobs: {
        ONE_GOB = 0, TWO_GOBS = 1, FOUR_GOBS = 2, EIGHT_GOBS = 3, SIXTEEN_GOBS = 4, THIRTYTWO_GOBS = 5,
    }
    quality: {
        LOD_QUALITY_LOW = 0, LOD_QUALITY_HIGH = 1,
    }
    modifier: {
        SPREAD_MODIFIER_NONE = 0, SPREAD_MODIFIER_CONST_ONE = 1, SPREAD_MODIFIER_CONST_TWO = 2,
        SPREAD_MODIFIER_SQRT = 3,
    }
    kind: {
        ONE_D = 0, TWO_D = 1, THREE_D = 2, CUBEMAP = 3, ONE_D_ARRAY = 4, TWO_D_ARRAY = 5, ONE_D_BUFFER = 6,
        TWO_D_NO_MIPMAP = 7, CUBEMAP_ARRAY = 8, HTEX_TWOD = 10, HTEX_THREE_D = 11, HTEX_TWOD_ARRAY = 14,
        TT_BIT_FIELD_SIZE = 15,
    }
    promotion: {
        NO_PROMOTION = 0, PROMOTE_TO_2_V = 1, PROMOTE_TO_2_H = 2, PROMOTE_TO_4 = 3,
    }
    border: {
        BORDER_SIZE_ONE = 0, BORDER_SIZE_TWO = 1, BORDER_SIZE_FOUR = 2, BORDER_SIZE_EIGHT = 3,
        BORDER_SAMPLER_COLOR = 7,
    }
    spread: {
        SPREAD_FUNC_HALF = 0, SPREAD_FUNC_ONE = 1, SPREAD_FUNC_TWO = 2, SPREAD_FUNC_MAX = 3,
    }
    anisotropy: {
        ANISO_1_TO_1 = 0, ANISO_2_TO_1 = 1, ANISO_4_TO_1 = 2, ANISO_6_TO_1 = 3, ANISO_8_TO_1 = 4,
        ANISO_10_TO_1 = 5, ANISO_12_TO_1 = 6, ANISO_16_TO_1 = 7,
    }
    samples: {
        MODE_1X1 = 0, MODE_2X1 = 1, MODE_2X2 = 2, MODE_4X2 = 3, MODE_4X2_D3D = 4, MODE_2X1_D3D = 5,
        MODE_4X4 = 6, MODE_2X2_VC_4 = 8, MODE_2X2_VC_12 = 9, MODE_4X2_VC_8 = 10, MODE_4X2_VC_24 = 11,
    }
    number_v2: {
        TEX_DATA_TYPE_UNORM = 0, TEX_DATA_TYPE_SNORM = 1, TEX_DATA_TYPE_FLOAT = 2, TEX_DATA_TYPE_SGNRGB = 3,
        TEX_DATA_TYPE_SGNA = 4, TEX_DATA_TYPE_DSDT = 5, TEX_DATA_TYPE_UINT = 6, TEX_DATA_TYPE_SINT = 7,
        TEX_DATA_TYPE_ZS = 8, TEX_DATA_TYPE_SZ = 9, TEX_DATA_TYPE_ZFS = 10,
    }
    size_v2: {
        SIZES_INVALID = 0x00, SIZES_R32_G32_B32_A32 = 0x01, SIZES_R32_G32_B32 = 0x02,
        SIZES_R16_G16_B16_A16 = 0x03, SIZES_R32_G32 = 0x04, SIZES_R32_B24G8 = 0x05, SIZES_X8B8G8R8 = 0x07,
        SIZES_A8B8G8R8 = 0x08, SIZES_A2B10G10R10 = 0x09, SIZES_R16_G16 = 0x0c, SIZES_G8R24 = 0x0d,
        SIZES_G24R8 = 0x0e, SIZES_R32 = 0x0f, SIZES_A4B4G4R4 = 0x12, SIZES_A5B5G5R1 = 0x13,
        SIZES_A1B5G5R5 = 0x14, SIZES_B5G6R5 = 0x15, SIZES_B6G5R5 = 0x16, SIZES_G8R8 = 0x18, SIZES_R16 = 0x1b,
        SIZES_Y8_VIDEO = 0x1c, SIZES_R8 = 0x1d, SIZES_G4R4 = 0x1e, SIZES_R1 = 0x1f,
        SIZES_E5B9G9R9_SHAREDEXP = 0x20, SIZES_BF10GF11RF11 = 0x21, SIZES_G8B8G8R8 = 0x22,
        SIZES_B8G8R8G8 = 0x23, SIZES_DXT1 = 0x24, SIZES_DXT23 = 0x25, SIZES_DXT45 = 0x26, SIZES_DXN1 = 0x27,
        SIZES_DXN2 = 0x28, SIZES_BC6H_SF16 = 0x10, SIZES_BC6H_UF16 = 0x11, SIZES_BC7U = 0x17,
        SIZES_ETC2_RGB = 0x06, SIZES_ETC2_RGB_PTA = 0x0a, SIZES_ETC2_RGBA = 0x0b, SIZES_EAC = 0x19,
        SIZES_EACX2 = 0x1a, SIZES_Z24S8 = 0x29, SIZES_X8Z24 = 0x2a, SIZES_S8Z24 = 0x2b, SIZES_ZF32 = 0x2f,
        SIZES_ZF32_X24S8 = 0x30, SIZES_Z16 = 0x3a, SIZES_ASTC_2D_4X4 = 0x40, SIZES_ASTC_2D_5X4 = 0x50,
        SIZES_ASTC_2D_5X5 = 0x41, SIZES_ASTC_2D_6X5 = 0x51, SIZES_ASTC_2D_6X6 = 0x42,
        SIZES_ASTC_2D_8X5 = 0x55, SIZES_ASTC_2D_8X6 = 0x52, SIZES_ASTC_2D_8X8 = 0x44,
        SIZES_ASTC_2D_10X5 = 0x56, SIZES_ASTC_2D_10X6 = 0x57, SIZES_ASTC_2D_10X8 = 0x53,
        SIZES_ASTC_2D_10X10 = 0x45, SIZES_ASTC_2D_12X10 = 0x54, SIZES_ASTC_2D_12X12 = 0x46,
        SIZES_CS_BITFIELD_SIZE = 0x7f,
    }
    version_v2: {
        SELECT_PITCH_COLOR_KEY_V2 = 1, SELECT_PITCH_V2 = 2, SELECT_BLOCKLINEAR_V2 = 3,
        SELECT_BLOCKLINEAR_COLOR_KEY_V2 = 4, SELECT_ONE_D_RAW_TYPED = 5, SELECT_ONE_D_STRUCT_BUF = 6,
    }
    border_v2: {
        BORDER_TEXTURE = 0, BORDER_COLOR = 1,
    }
    size_1d: {
        SIZES_1D_INVALID = 0x00, SIZES_1D_R32_G32_B32_A32 = 0x01, SIZES_1D_R32_G32_B32 = 0x02,
        SIZES_1D_R16_G16_B16_A16 = 0x03, SIZES_1D_R32_G32 = 0x04, SIZES_1D_R32_B24G8 = 0x05,
        SIZES_1D_X8B8G8R8 = 0x07, SIZES_1D_A8B8G8R8 = 0x08, SIZES_1D_A2B10G10R10 = 0x09,
        SIZES_1D_R16_G16 = 0x0c, SIZES_1D_G8R24 = 0x0d, SIZES_1D_G24R8 = 0x0e, SIZES_1D_R32 = 0x0f,
        SIZES_1D_A4B4G4R4 = 0x12, SIZES_1D_A5B5G5R1 = 0x13, SIZES_1D_A1B5G5R5 = 0x14, SIZES_1D_B5G6R5 = 0x15,
        SIZES_1D_B6G5R5 = 0x16, SIZES_1D_G8R8 = 0x18, SIZES_1D_R16 = 0x1b, SIZES_1D_Y8_VIDEO = 0x1c,
        SIZES_1D_R8 = 0x1d, SIZES_1D_G4R4 = 0x1e, SIZES_1D_E5B9G9R9_SHAREDEXP = 0x20,
        SIZES_1D_BF10GF11RF11 = 0x21, SIZES_1D_G8B8G8R8 = 0x22, SIZES_1D_B8G8R8G8 = 0x23,
        SIZES_1D_X8B8G8R8_SRGB = 0x31, SIZES_1D_A8B8G8R8_SRGB = 0x32, SIZES_1D_G8R8_SRGB = 0x33,
        SIZES_1D_R8_SRGB = 0x34, SIZESV2_CS_BITFIELD_SIZE = 0x3f,
    }
}

crate::layout! {
    /// A sampler: the header's words `TEXSAMP0` to `TEXSAMP7`.
    pub mod TEXSAMP: 256 bits {
        ADDRESS_U 2:0 { WRAP = 0, MIRROR = 1, CLAMP_TO_EDGE = 2, BORDER = 3, CLAMP_OGL = 4, MIRROR_ONCE_CLAMP_TO_EDGE = 5, MIRROR_ONCE_BORDER = 6, MIRROR_ONCE_CLAMP_OGL = 7 };
        ADDRESS_V 5:3 { WRAP = 0, MIRROR = 1, CLAMP_TO_EDGE = 2, BORDER = 3, CLAMP_OGL = 4, MIRROR_ONCE_CLAMP_TO_EDGE = 5, MIRROR_ONCE_BORDER = 6, MIRROR_ONCE_CLAMP_OGL = 7 };
        ADDRESS_P 8:6 { WRAP = 0, MIRROR = 1, CLAMP_TO_EDGE = 2, BORDER = 3, CLAMP_OGL = 4, MIRROR_ONCE_CLAMP_TO_EDGE = 5, MIRROR_ONCE_BORDER = 6, MIRROR_ONCE_CLAMP_OGL = 7 };
        DEPTH_COMPARE 9:9;
        DEPTH_COMPARE_FUNC 12:10 { ZC_NEVER = 0, ZC_LESS = 1, ZC_EQUAL = 2, ZC_LEQUAL = 3, ZC_GREATER = 4, ZC_NOTEQUAL = 5, ZC_GEQUAL = 6, ZC_ALWAYS = 7 };
        S_R_G_B_CONVERSION 13:13;
        RESERVED0A 16:14;
        RESERVED0B 19:17;
        MAX_ANISOTROPY 22:20 { ANISO_1_TO_1 = 0, ANISO_2_TO_1 = 1, ANISO_4_TO_1 = 2, ANISO_6_TO_1 = 3, ANISO_8_TO_1 = 4, ANISO_10_TO_1 = 5, ANISO_12_TO_1 = 6, ANISO_16_TO_1 = 7 };
        FORCED_INVALID 31:31;
        MAG_FILTER 34:32 { MAG_POINT = 1, MAG_LINEAR = 2, VCAA_4_TAP = 3, VCAA_8_TAP = 4 };
        MIN_LOD_CLAMP_BEHAVIOR_FOR_NEAREST_MIP 35:35 { INTEGER_AND_FRACTION = 0, INTEGER_ONLY = 1 };
        MIN_FILTER 37:36 { MIN_POINT = 1, MIN_LINEAR = 2, MIN_ANISO = 3 };
        MIP_FILTER 39:38 { MIP_NONE = 1, MIP_POINT = 2, MIP_LINEAR = 3 };
        CUBEMAP_INTERFACE_FILTERING 41:40 { USE_WRAP = 0, OVERRIDE_WRAP = 1, AUTO_SPAN_SEAM = 2, AUTO_CROSS_SEAM = 3 };
        REDUCTION_FILTER 43:42 { RED_NONE = 0, RED_MINIMUM = 1, RED_MAXIMUM = 2 };
        MIP_LOD_BIAS 56:44;
        FLOAT_COORD_NORMALIZATION 57:57 { USE_HEADER_SETTING = 0, FORCE_UNNORMALIZED_COORDS = 1 };
        TRILIN_OPT 62:58;
        MIN_LOD_CLAMP 75:64;
        MAX_LOD_CLAMP 87:76;
        S_R_G_B_BORDER_COLOR_R 95:88;
        RESERVED12 107:96;
        S_R_G_B_BORDER_COLOR_G 115:108;
        S_R_G_B_BORDER_COLOR_B 123:116;
        BORDER_COLOR_R 159:128;
        BORDER_COLOR_G 191:160;
        BORDER_COLOR_B 223:192;
        BORDER_COLOR_A 255:224;
    }
}
