//! Files that commands read: bytes, cubins, and captures in our own format or as JSON lines of other tools.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use nv_abi::Branch;
use nv_capture::{
    Capture, Event,
    format::{self, FormatError},
    import::{
        self, ImportError,
        memory::{self, MemoryError},
    },
    naming,
};
use nv_driver::program::{Cubin, CubinError};
use nv_simulator::source::{self, Programs};

use crate::simulated::DRIVER;

/// Cubins that the kernels of a program may be of.
#[derive(Clone, Debug, Default, Args)]
pub struct Cubins {
    /// A cubin, or a folder of them (*.cubin), by whose code kernels get their names, and source lines where it has them; may
    /// be given several times.
    #[arg(long = "cubin", value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
}

impl Cubins {
    /// The files: those that were named, and those in folders that were named, by name.
    pub fn files(&self) -> Result<Vec<PathBuf>, SourceError> {
        let mut files = Vec::new();
        for path in &self.paths {
            if !path.is_dir() {
                files.push(path.clone());
                continue;
            }
            let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let entries = entries.map_err(|error| SourceError::Read { file: path.clone(), error })?;
            let inside = entries.into_iter().map(|entry| entry.path());
            let mut inside: Vec<PathBuf> =
                inside.filter(|file| file.extension().is_some_and(|end| end == "cubin")).collect();
            inside.sort();
            files.extend(inside);
        }
        Ok(files)
    }

    /// The bytes of each, and what they have.
    pub fn read(&self) -> Result<(Vec<Vec<u8>>, Programs), SourceError> {
        let (mut all, mut programs) = (Vec::new(), Programs::new());
        for file in self.files()? {
            let bytes = read(&file)?;
            if let Err(error) = programs.add_cubin(&bytes) {
                return Err(SourceError::Program { file, error });
            }
            all.push(bytes);
        }
        Ok((all, programs))
    }

    /// Names the kernels of a capture.
    pub fn name(&self, capture: &mut Capture) -> Result<(), SourceError> {
        if !self.paths.is_empty() {
            let (_, programs) = self.read()?;
            let identify: naming::Identify =
                Box::new(move |code| programs.identify(code).map(|(name, bytes)| (name.to_owned(), bytes)));
            naming::name(capture, identify);
        }
        Ok(())
    }
}

/// A file with a capture.
#[derive(Clone, Debug, Args)]
pub struct Source {
    /// A capture, or a recording of JSON lines.
    pub file: PathBuf,
    /// The version of the driver that a recording of JSON lines was made under, which decides how structs are laid out.
    /// A capture says it itself.
    #[arg(long, default_value = DRIVER)]
    pub driver: String,
    /// What the process's memory held in the end, as text of REGION and PAGE lines: a recording of JSON lines gets its
    /// submissions from it.
    #[arg(long, value_name = "FILE")]
    memory: Option<PathBuf>,
    // Not a `Cubins` within: an optional `Source` would then not be seen to be given.
    /// A cubin, or a folder of them (*.cubin), by whose code kernels get their names; may be given several times.
    #[arg(long = "cubin", value_name = "FILE|DIR")]
    cubins: Vec<PathBuf>,
}

/// Why a file is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It cannot be read.
    #[error("{}: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is no capture of ours.
    #[error("{}: {error}", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// Why.
        error: FormatError,
    },
    /// It is no recording of JSON lines.
    #[error("{}: {error}", file.display())]
    Import {
        /// The file.
        file: PathBuf,
        /// Why.
        error: ImportError,
    },
    /// It is no recording of memory that belongs to the other one.
    #[error("{}: {error}", file.display())]
    Memory {
        /// The file.
        file: PathBuf,
        /// Why.
        error: MemoryError,
    },
    /// It is packed, and nobody can unpack it.
    #[error("{}: {program}: {reason}", file.display())]
    Packed {
        /// The file.
        file: PathBuf,
        /// Who was asked.
        program: &'static str,
        /// What came of it.
        reason: String,
    },
    /// It is no cubin that loads.
    #[error("{}: {error}", file.display())]
    Cubin {
        /// The file.
        file: PathBuf,
        /// Why.
        error: CubinError,
    },
    /// It is no cubin with code.
    #[error("{}: {error}", file.display())]
    Program {
        /// The file.
        file: PathBuf,
        /// Why.
        error: source::CubinError,
    },
    /// The driver version has no branch.
    #[error("driver version {0:?} belongs to no branch that is known")]
    Driver(String),
}

impl Source {
    /// What to call the capture: its file's name.
    pub fn name(&self) -> String {
        self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy().into_owned()
    }

    /// The cubins that its kernels may be of.
    pub fn cubins(&self) -> Cubins {
        Cubins { paths: self.cubins.clone() }
    }

    /// Reads the file.
    pub fn read(&self) -> Result<Capture, SourceError> {
        let mut capture = parse(&self.file, &read(&self.file)?, &self.driver)?;
        if let Some(file) = &self.memory {
            let text = read(file)?;
            memory::add(&mut capture, &String::from_utf8_lossy(&text))
                .map_err(|error| SourceError::Memory { file: file.clone(), error })?;
        }
        self.cubins().name(&mut capture)?;
        Ok(capture)
    }
}

/// How packed files begin, and who unpacks them.
const PACKED: [(&[u8], &str); 3] =
    [(b"\xfd7zXZ\0", "xz"), (b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd")];

/// The bytes of a file, unpacked where it is packed.
pub fn read(file: &Path) -> Result<Vec<u8>, SourceError> {
    let error = |error| SourceError::Read { file: file.to_owned(), error };
    let bytes = fs::read(file).map_err(error)?;
    let Some((_, program)) = PACKED.iter().find(|(start, _)| bytes.starts_with(start)) else {
        return Ok(bytes);
    };
    let packed = |reason| SourceError::Packed { file: file.to_owned(), program, reason };
    let unpacked = Command::new(program)
        .arg("-dc")
        .stdin(fs::File::open(file).map_err(error)?)
        .output()
        .map_err(|error| packed(error.to_string()))?;
    if unpacked.status.success() {
        return Ok(unpacked.stdout);
    }
    Err(packed(String::from_utf8_lossy(&unpacked.stderr).trim().to_owned()))
}

/// The bytes of a cubin's file, and the cubin.
pub fn cubin(file: &Path) -> Result<(Vec<u8>, Cubin), SourceError> {
    let bytes = read(file)?;
    match Cubin::parse(&bytes) {
        Ok(cubin) => Ok((bytes, cubin)),
        Err(error) => Err(SourceError::Cubin { file: file.to_owned(), error }),
    }
}

/// Whether bytes look like a capture or a recording, and not like raw words.
pub fn is_text(bytes: &[u8]) -> bool {
    bytes.starts_with(b"mockgpu capture") || bytes.starts_with(b"{")
}

/// Reads a capture or a recording. What its recorder had to say is said on standard error, whatever is done with it.
pub fn parse(file: &Path, bytes: &[u8], driver: &str) -> Result<Capture, SourceError> {
    let text = String::from_utf8_lossy(bytes);
    if bytes.starts_with(b"{") {
        let branch = Branch::from_version(driver).ok_or_else(|| SourceError::Driver(driver.to_owned()))?;
        return import::json_lines(&text, branch)
            .map_err(|error| SourceError::Import { file: file.to_owned(), error });
    }
    let capture =
        format::parse(&text).map_err(|error| SourceError::Format { file: file.to_owned(), error })?;
    for event in &capture.events {
        if let Event::Note(text) = event {
            eprintln!("{}: note: {text}", file.display());
        }
    }
    Ok(capture)
}
