//! Files that commands read: bytes, cubins, and captures in our own format or as JSON lines of other tools.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use nv_abi::Branch;
use nv_capture::{
    Capture,
    format::{self, FormatError},
    import::{self, ImportError},
};
use nv_driver::program::{Cubin, CubinError};

use crate::simulated::DRIVER;

/// A file with a capture.
#[derive(Clone, Debug, Args)]
pub struct Source {
    /// A capture, or a recording of JSON lines.
    pub file: PathBuf,
    /// The version of the driver that a recording of JSON lines was made under, which decides how structs are laid out.
    /// A capture says it itself.
    #[arg(long, default_value = DRIVER)]
    pub driver: String,
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
    /// It is no cubin that loads.
    #[error("{}: {error}", file.display())]
    Cubin {
        /// The file.
        file: PathBuf,
        /// Why.
        error: CubinError,
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

    /// Reads the file.
    pub fn read(&self) -> Result<Capture, SourceError> {
        parse(&self.file, &read(&self.file)?, &self.driver)
    }
}

/// The bytes of a file.
pub fn read(file: &Path) -> Result<Vec<u8>, SourceError> {
    fs::read(file).map_err(|error| SourceError::Read { file: file.to_owned(), error })
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

/// Reads a capture or a recording.
pub fn parse(file: &Path, bytes: &[u8], driver: &str) -> Result<Capture, SourceError> {
    let text = String::from_utf8_lossy(bytes);
    if bytes.starts_with(b"{") {
        let branch = Branch::from_version(driver).ok_or_else(|| SourceError::Driver(driver.to_owned()))?;
        return import::json_lines(&text, branch)
            .map_err(|error| SourceError::Import { file: file.to_owned(), error });
    }
    format::parse(&text).map_err(|error| SourceError::Format { file: file.to_owned(), error })
}
