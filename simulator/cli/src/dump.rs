//! `mockgpu dump`: a file in words.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Subcommand;
use nv_driver::program::{Cubin, CubinError};

/// Which kind of file.
#[derive(Debug, Subcommand)]
pub enum What {
    /// A cubin: its kernels with what a launch of each needs.
    Cubin {
        /// The ELF file, in the dialect of CUDA 12 or 13.
        file: PathBuf,
    },
}

/// Why nothing was printed.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The file cannot be read.
    #[error("{}: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is no cubin that loads.
    #[error("{}: {error}", file.display())]
    Cubin {
        /// The file.
        file: PathBuf,
        /// Why.
        error: CubinError,
    },
}

/// The text of a file.
pub fn run(what: &What) -> Result<String, DumpError> {
    match what {
        What::Cubin { file } => {
            let bytes = std::fs::read(file).map_err(|error| DumpError::Read { file: file.clone(), error })?;
            let parsed =
                Cubin::parse(&bytes).map_err(|error| DumpError::Cubin { file: file.clone(), error })?;
            Ok(cubin(&parsed))
        }
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

    #[test]
    fn a_cubin_is_printed_with_what_its_launch_needs() {
        let bytes = fixtures::cubin("sm_89", "vector_add").unwrap();
        let text = cubin(&Cubin::parse(&bytes).unwrap());
        assert!(text.starts_with("Abi8, sm_89,"), "{text}");
        assert!(text.contains("\nvector_add\n") && text.contains("bytes from c[0x0][0x160]"), "{text}");
    }

    #[test]
    fn a_file_that_is_no_cubin_is_refused_by_name() {
        let error = run(&What::Cubin { file: "Cargo.toml".into() }).unwrap_err();
        assert!(error.to_string().starts_with("Cargo.toml: "), "{error}");
    }
}
