//! Bodies of fuzz targets: each takes any bytes, and must neither panic nor touch memory that is not its own.
//!
//! `fuzz/` beside this package wraps them for cargo-fuzz; `e2e` runs short rounds of the same bodies, and the example
//! `soak` long ones, with a stable compiler.

mod hostile;
mod module;
mod seeds;

use nv_abi::{
    arch::Generation,
    dump, gpfifo,
    method::{Header, walk},
    qmd,
};
use nv_driver::program::Cubin;
use sass::{Arch, decode, encode, text};

pub use hostile::{Hostile, Outcome};
pub use module::kernel_module;
pub use seeds::{Random, seeds};

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, as cargo-fuzz knows it.
    pub name: &'static str,
    /// What it does with bytes.
    pub body: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "sass_decoder", body: sass_decoder },
    Target { name: "cubin_loader", body: cubin_loader },
    Target { name: "pushbuffer", body: pushbuffer },
    Target { name: "qmd_reader", body: qmd_reader },
    Target { name: "kernel_module", body: kernel_module },
    Target { name: "executor", body: executor },
];

fn words(data: &[u8]) -> Vec<u32> {
    data.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// Instruction words: whatever decodes has a text and encodes to the same word.
pub fn sass_decoder(data: &[u8]) {
    for (index, word) in data.as_chunks::<16>().0.iter().enumerate() {
        let word = u128::from_le_bytes(*word);
        for arch in Arch::ALL {
            if let Ok(instruction) = decode(word, 16 * index as u64, arch) {
                assert!(!text(&instruction).is_empty());
                assert_eq!(encode(&instruction), Ok(word), "{arch:?}: {word:#034x}");
            }
        }
    }
}

/// A cubin: an error, or kernels whose code lies in the image, which links.
pub fn cubin_loader(data: &[u8]) {
    let Ok(cubin) = Cubin::parse(data) else { return };
    for kernel in cubin.kernels() {
        assert!(kernel.code.end <= cubin.image_bytes() && kernel.code.start < kernel.code.end);
        assert!(
            kernel
                .constant_banks
                .iter()
                .flatten()
                .all(|bank| { bank.offset + u64::from(bank.bytes) <= cubin.image_bytes() })
        );
    }
    if let Ok(image) = cubin.link(0x10_0000_0000) {
        assert_eq!(image.len() as u64, cubin.image_bytes());
    }
}

/// Command words: the walk ends, and every word of it has a text.
pub fn pushbuffer(data: &[u8]) {
    let words = words(data);
    let writes = walk(&words).take(words.len() + 1).count();
    assert!(writes <= words.len(), "more writes than words");
    for word in &words {
        if let Ok(header) = Header::decode(*word) {
            // The older forms have bits that mean nothing.
            assert_eq!(header.encode().and_then(Header::decode), Ok(header), "{word:#010x}");
        }
    }
    for generation in Generation::ALL {
        let mut subchannels = dump::Subchannels::new(generation);
        subchannels.bind(1, generation.classes().compute);
        subchannels.bind(4, generation.classes().copy);
        let _ = dump::pushbuffer(&words, &mut subchannels);
    }
    for raw in data.as_chunks::<8>().0 {
        let raw = u64::from_le_bytes(*raw);
        let _ = gpfifo::Entry::decode(raw);
        let _ = dump::entry(raw);
    }
}

/// A descriptor in every version.
pub fn qmd_reader(data: &[u8]) {
    for version in qmd::Version::ALL {
        let _ = qmd::read(version, data);
        // As long as the hardware reads it, too.
        let mut whole = data.to_vec();
        whole.resize(version.bytes(), 0);
        let _ = qmd::read(version, &whole);
        let _ = dump::qmd(version, &whole);
    }
}

/// Machine code: the first byte chooses the GPU, the rest stands in the place of a kernel's first instructions.
pub fn executor(data: &[u8]) {
    let Some((first, code)) = data.split_first() else { return };
    let mut hostile = Hostile::on(usize::from(*first));
    let _ = hostile.code(code);
}
