//! `mockgpu dump`: a file in words.

mod calls;
mod json;
pub mod sass;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use nv_abi::{
    arch,
    dump::{self, Subchannels, Unknowns},
};
use nv_capture::text;
use nv_driver::program::Cubin;

use crate::{
    paint::Paint,
    source::{self, Source, SourceError},
};

/// What to print, and how.
#[derive(Debug, Args)]
pub struct Dump {
    #[command(subcommand)]
    what: What,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
}

/// Which kind of file.
#[derive(Debug, Subcommand)]
pub enum What {
    /// A cubin: its kernels with what a launch of each needs.
    Cubin {
        /// The ELF file, in the dialect of CUDA 12 or 13.
        file: PathBuf,
    },
    /// Pushbuffer words: per word its offset, the raw word and the method with its fields.
    Push {
        /// The words, little-endian.
        file: PathBuf,
        #[command(flatten)]
        generation: Generation,
        /// Classes bound before the segment begins, as SUBCHANNEL=CLASS, the class in hexadecimal: `1=c9c0`.
        #[arg(long = "bind", value_parser = binding)]
        bindings: Vec<(u8, u32)>,
    },
    /// GPFIFO entries of 8 bytes.
    Gpfifo {
        /// The entries, little-endian.
        file: PathBuf,
    },
    /// A QMD, in the version that the generation takes.
    Qmd {
        /// The descriptor's bytes.
        file: PathBuf,
        #[command(flatten)]
        generation: Generation,
    },
    /// Machine code of a cubin, function by function: offset, word, control information, instruction.
    Sass {
        /// The ELF file, in the dialect of CUDA 12 or 13.
        file: PathBuf,
        /// Only this function.
        #[arg(long)]
        function: Option<String>,
    },
    /// The calls of a capture, or of a recording of JSON lines, with the structs behind their pointers.
    Ioctl {
        #[command(flatten)]
        source: Source,
    },
    /// The submissions of a capture: words, what they do, descriptors, arguments.
    Capture {
        #[command(flatten)]
        source: Source,
        /// Only what each submission does, an action a line.
        #[arg(long, conflicts_with = "launches")]
        actions: bool,
        /// Only the launches: kernel, grid, block, shared memory, registers, constants.
        #[arg(long)]
        launches: bool,
    },
}

/// Whose classes and descriptors the bytes are of.
#[derive(Clone, Copy, Debug, Args)]
pub struct Generation {
    /// The GPU generation.
    #[arg(long = "generation", value_enum, default_value = "ada")]
    name: Name,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    Ampere,
    Ada,
    Hopper,
    Blackwell,
}

impl From<Generation> for arch::Generation {
    fn from(generation: Generation) -> Self {
        match generation.name {
            Name::Ampere => Self::Ampere,
            Name::Ada => Self::Ada,
            Name::Hopper => Self::Hopper,
            Name::Blackwell => Self::Blackwell,
        }
    }
}

fn binding(text: &str) -> Result<(u8, u32), String> {
    let (subchannel, class) = text.split_once('=').ok_or("expected SUBCHANNEL=CLASS, such as 1=c9c0")?;
    let subchannel =
        subchannel.parse().ok().filter(|n| *n < 8).ok_or("a subchannel is a number from 0 to 7")?;
    let class = u32::from_str_radix(class.trim_start_matches("0x"), 16).map_err(|error| error.to_string())?;
    match nv_abi::method::class_table(class) {
        Some(_) => Ok((subchannel, class)),
        None => Err(format!("no class {class:#x} with methods is known here")),
    }
}

/// Why nothing was printed.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The file ends inside a unit.
    #[error("{}: {bytes} bytes are no whole number of {unit}-byte units", file.display())]
    Size {
        /// The file.
        file: PathBuf,
        /// Its size.
        bytes: usize,
        /// The unit.
        unit: usize,
    },
    /// The file is shorter than the descriptor.
    #[error("{}: {error}", file.display())]
    Qmd {
        /// The file.
        file: PathBuf,
        /// Why.
        error: nv_abi::FieldError,
    },
    /// Its code cannot be listed.
    #[error("{}: {error}", file.display())]
    Sass {
        /// The file.
        file: PathBuf,
        /// Why.
        error: sass::SassError,
    },
    /// It cannot be read, or is not what it should be.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// The text of a file.
pub fn run(dump: &Dump, paint: Paint) -> Result<String, DumpError> {
    let Dump { what, json: as_json } = dump;
    let pretty = |value: serde_json::Value| format!("{value:#}\n");
    match what {
        What::Cubin { file } => {
            let (_, parsed) = source::cubin(file)?;
            Ok(if *as_json { pretty(json::cubin(&parsed)) } else { paint.dump(&cubin(&parsed)) })
        }
        What::Push { file, generation, bindings } => {
            let words: Vec<u32> = units(file)?.into_iter().map(u32::from_le_bytes).collect();
            let mut subchannels = Subchannels::new((*generation).into());
            for (subchannel, class) in bindings {
                subchannels.bind(*subchannel, *class);
            }
            let packets = dump::packets(&words, &mut subchannels);
            if *as_json {
                return Ok(pretty(json::packets(&packets)));
            }
            let mut unknowns = Unknowns::default();
            packets.iter().for_each(|packet| packet.count_unknown(&mut unknowns));
            let text: String = packets.iter().map(dump::packet).collect();
            Ok(paint.dump(&(text + &unknowns.to_string())))
        }
        What::Gpfifo { file } => {
            let entries: Vec<u64> = units(file)?.into_iter().map(u64::from_le_bytes).collect();
            if *as_json {
                return Ok(pretty(json::entries(&entries)));
            }
            let lines = (0..)
                .zip(&entries)
                .map(|(slot, raw)| format!("{slot:4}  {raw:016x}  {}\n", dump::entry(*raw)));
            Ok(paint.dump(&lines.collect::<String>()))
        }
        What::Qmd { file, generation } => {
            let version = arch::Generation::from(*generation).qmd_version();
            let refuse = |error| DumpError::Qmd { file: file.clone(), error };
            let bytes = source::read(file)?;
            if *as_json {
                return Ok(pretty(json::descriptor(version, &bytes).map_err(refuse)?));
            }
            let fields = dump::qmd_fields(version, &bytes).map_err(refuse)?;
            let mut unknowns = Unknowns::default();
            for field in fields.iter().filter(|field| !field.known) {
                unknowns.add(format!("{} {}", field.name, field.text).trim());
            }
            let text = dump::qmd(version, &bytes).map_err(refuse)?;
            Ok(paint.dump(&(text + &unknowns.to_string())))
        }
        What::Sass { file, function } => {
            let refuse = |error| DumpError::Sass { file: file.clone(), error };
            let functions = sass::listing(&source::cubin(file)?.1, function.as_deref()).map_err(refuse)?;
            if *as_json {
                return Ok(pretty(sass::to_json(&functions)));
            }
            Ok(paint.dump(&(sass::text(&functions) + &sass::unknowns(&functions).to_string())))
        }
        What::Ioctl { source } => {
            let capture = source.read()?;
            Ok(if *as_json { pretty(calls::to_json(&capture)) } else { paint.dump(&calls::text(&capture)) })
        }
        What::Capture { source, actions, launches } => {
            let capture = source.read()?;
            if *as_json {
                return Ok(pretty(json::submissions(&capture)));
            }
            let text = match (actions, launches) {
                (true, _) => text::actions(&capture),
                (_, true) => text::launches(&capture),
                _ => text::submissions(&capture, 0),
            };
            Ok(paint.dump(&text))
        }
    }
}

fn units<const N: usize>(file: &Path) -> Result<Vec<[u8; N]>, DumpError> {
    let bytes = source::read(file)?;
    let (units, rest) = bytes.as_chunks();
    match rest {
        [] => Ok(units.to_vec()),
        _ => Err(DumpError::Size { file: file.to_owned(), bytes: bytes.len(), unit: N }),
    }
}

fn cubin(cubin: &Cubin) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ =
        writeln!(text, "{:?}, sm_{}, {} bytes of image", cubin.dialect(), cubin.sm(), cubin.image_bytes());
    for kernel in cubin.kernels() {
        let _ = writeln!(text, "\n{}", kernel.name);
        let _ = writeln!(text, "  code        {:#x}..{:#x} of the image", kernel.code.start, kernel.code.end);
        let _ = writeln!(text, "  registers   {} a thread, {} barriers", kernel.registers, kernel.barriers);
        let _ = writeln!(
            text,
            "  shared      {:#x} bytes a CTA, stack {:#x} bytes a thread",
            kernel.shared_bytes, kernel.stack_bytes
        );
        let _ = writeln!(
            text,
            "  parameters  {} bytes from c[0x0][{:#x}]",
            kernel.parameter_bytes, kernel.parameter_base
        );
        for parameter in &kernel.parameters {
            let _ = writeln!(text, "    {parameter:?}");
        }
        for (bank, constants) in kernel.constant_banks.iter().enumerate() {
            if let Some(constants) = constants {
                let _ = writeln!(
                    text,
                    "  c[{bank:#x}]      {} bytes at {:#x} of the image",
                    constants.bytes, constants.offset
                );
            }
        }
        let unknown = kernel.attributes.iter().filter(|attribute| attribute.name().is_none()).count();
        let _ = writeln!(
            text,
            "  attributes  {}, of which {unknown} without a name here",
            kernel.attributes.len()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_text(what: What) -> Result<String, DumpError> {
        run(&Dump { what, json: false }, Paint::off())
    }

    #[test]
    fn a_cubin_is_printed_with_what_its_launch_needs() {
        let bytes = fixtures::cubin("sm_89", "vector_add").unwrap();
        let text = cubin(&Cubin::parse(&bytes).unwrap());
        assert!(text.starts_with("Abi8, sm_89,"), "{text}");
        assert!(text.contains("\nvector_add\n") && text.contains("bytes from c[0x0][0x160]"), "{text}");
    }

    #[test]
    fn a_pushbuffer_file_is_printed_method_by_method() {
        let folder = std::env::temp_dir().join(format!("mockgpu-dump-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("push.bin");
        // The seed's release: a burst of five words to SEM_ADDR_LO.
        let words = [0x2005_0017u32, 0x1000, 0x10, 7, 0, 0x0310_0001];
        std::fs::write(&file, words.map(u32::to_le_bytes).as_flattened()).unwrap();
        let generation = Generation { name: Name::Ada };
        let text = run_text(What::Push { file: file.clone(), generation, bindings: vec![] }).unwrap();
        assert!(text.contains("SEM_EXECUTE") && text.contains("RELEASE"), "{text}");
        std::fs::write(&file, [1, 2, 3]).unwrap();
        let error = run_text(What::Gpfifo { file }).unwrap_err();
        assert!(error.to_string().ends_with("3 bytes are no whole number of 8-byte units"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_binding_names_a_subchannel_and_a_class_that_exist() {
        assert_eq!(binding("1=c9c0"), Ok((1, 0xc9c0)));
        assert!(binding("8=c9c0").is_err() && binding("1=1234").is_err() && binding("c9c0").is_err());
    }

    #[test]
    fn a_file_that_is_no_cubin_is_refused_by_name() {
        let error = run_text(What::Cubin { file: "Cargo.toml".into() }).unwrap_err();
        assert!(error.to_string().starts_with("Cargo.toml: "), "{error}");
    }
}
