//! What is simulated, from environment variables.

use std::{
    ffi::{CStr, OsStr, OsString, c_void},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    sync::OnceLock,
};

use nv_abi::Branch;
use nv_simulator::profile::Profile;

use crate::report::{self, Line};

/// Which kind of GPU: `ad102`, `ga102` or `h200`.
pub(crate) const GPU: &str = "MOCKGPU_GPU";
/// How many of them, 1 to 32.
pub(crate) const GPUS: &str = "MOCKGPU_GPUS";
/// The kernel module's version, such as 580.159.04.
pub(crate) const DRIVER: &str = "MOCKGPU_DRIVER";
/// Video memory of each GPU in bytes, or with a suffix K, M or G (powers of 1024).
pub(crate) const VRAM: &str = "MOCKGPU_VRAM";
/// A file that reports are appended to.
pub(crate) const REPORT: &str = "MOCKGPU_REPORT";

/// A file that a capture of what the program does with the nodes is written to.
pub(crate) const RECORD: &str = "MOCKGPU_RECORD";
/// Sources of copies of up to so many bytes are kept in the capture; written as [`VRAM`].
pub(crate) const RECORD_DATA: &str = "MOCKGPU_RECORD_DATA";
/// Paths of cubins, with colons between them, by whose code kernels get names.
pub(crate) const CUBINS: &str = "MOCKGPU_CUBINS";
/// Where it is set, every instruction of every kernel is counted, for the report.
pub(crate) const PROFILE: &str = "MOCKGPU_PROFILE";
/// Where it is set, nothing is simulated: the nodes are the real ones. Where it is the path of a copy of this library,
/// that holds for this copy alone, and it alone records: another one behind it can then simulate what it takes for real.
pub(crate) const CARD: &str = "MOCKGPU_CARD";

/// The bytes of the cubins that are named. What cannot be read is said in the report.
pub(crate) fn cubins() -> &'static [Vec<u8>] {
    static READ: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    READ.get_or_init(|| {
        let paths = std::env::var_os(CUBINS).unwrap_or_default();
        let read = |path: PathBuf| match std::fs::read(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                report::write(Line::Trouble, &format!("{}: {error}", path.display()));
                None
            }
        };
        std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).filter_map(read).collect()
    })
}

/// Whether [`CARD`] is set, and whether it means this copy of the library.
fn card() -> Option<bool> {
    static MEANT: OnceLock<Option<bool>> = OnceLock::new();
    *MEANT.get_or_init(|| {
        let meant = std::env::var_os(CARD)?;
        Some(!meant.as_encoded_bytes().starts_with(b"/") || Some(meant) == own_path())
    })
}

/// The path by which this copy of the library was loaded.
fn own_path() -> Option<OsString> {
    // SAFETY: all zeros are a valid value of this struct of pointers, and the address is one of this library's.
    let name = unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        let known = libc::dladdr(own_path as *const c_void, &raw mut found) != 0;
        (known && !found.dli_fname.is_null()).then(|| CStr::from_ptr(found.dli_fname))
    };
    name.map(|name| OsStr::from_bytes(name.to_bytes()).to_owned())
}

/// Whether the nodes are the real ones.
pub(crate) fn is_card() -> bool {
    card() == Some(true)
}

/// The file that [`RECORD`] names; none where another copy of the library records.
pub(crate) fn capture() -> Option<&'static str> {
    static FILE: OnceLock<Option<String>> = OnceLock::new();
    let file = || (card() != Some(false)).then(|| std::env::var(RECORD).ok())?;
    FILE.get_or_init(file).as_deref()
}

/// What is simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) profile: Profile,
    pub(crate) gpus: usize,
    pub(crate) driver: String,
    pub(crate) vram: Option<u64>,
}

/// A variable that says nothing that can be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}={value}: {problem}")]
pub(crate) struct OptionError {
    variable: &'static str,
    value: String,
    problem: &'static str,
}

/// A number of bytes, or one with a suffix K, M or G.
pub(crate) fn size(text: &str) -> Option<u64> {
    let shift = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

impl Options {
    /// Reads the variables through `get`. Those that are not set take their defaults: one AD102, driver 580.159.04.
    fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, OptionError> {
        let error =
            |variable, value: &str, problem| OptionError { variable, value: value.to_owned(), problem };
        let profile = match get(GPU).as_deref() {
            None | Some("ad102") => Profile::ad102(),
            Some("ga102") => Profile::ga102(),
            Some("h200") => Profile::h200(),
            Some(other) => return Err(error(GPU, other, "not one of ad102, ga102, h200")),
        };
        let gpus = match get(GPUS) {
            None => 1,
            Some(text) => match text.parse() {
                Ok(count @ 1..=32) => count,
                _ => return Err(error(GPUS, &text, "not a number from 1 to 32")),
            },
        };
        let driver = get(DRIVER).unwrap_or_else(|| "580.159.04".to_owned());
        if Branch::from_version(&driver).is_none() {
            return Err(error(DRIVER, &driver, "not the version of a driver from 535 on"));
        }
        let vram = match get(VRAM) {
            None => None,
            Some(text) => Some(size(&text).ok_or_else(|| error(VRAM, &text, "not a number of bytes"))?),
        };
        Ok(Self { profile, gpus, driver, vram })
    }

    /// What holds where no variable is set.
    pub(crate) fn plain() -> Option<&'static Self> {
        static PLAIN: OnceLock<Option<Options>> = OnceLock::new();
        PLAIN.get_or_init(|| Self::read(|_| None).ok()).as_ref()
    }

    /// This process's options, read once.
    pub(crate) fn get() -> Result<&'static Self, &'static OptionError> {
        static OPTIONS: OnceLock<Result<Options, OptionError>> = OnceLock::new();
        OPTIONS.get_or_init(|| Self::read(|name| std::env::var(name).ok())).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Options, OptionError> {
        Options::read(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn without_variables_there_is_one_gpu() {
        let options = read(&[]).expect("defaults");
        assert_eq!((options.gpus, options.vram, options.profile.chip), (1, None, "AD102"));
    }

    #[test]
    fn variables_are_taken_as_they_say() {
        let options =
            read(&[(GPU, "h200"), (GPUS, "6"), (DRIVER, "610.10"), (VRAM, "512M")]).expect("all are sound");
        assert_eq!((options.gpus, options.vram), (6, Some(512 << 20)));
        assert_eq!((options.profile.chip, options.driver.as_str()), ("GH100", "610.10"));
    }

    #[test]
    fn a_bad_value_is_named_with_its_variable() {
        for (variable, value) in [
            (GPU, "gtx"),
            (GPUS, "0"),
            (GPUS, "many"),
            (DRIVER, "470.1"),
            (VRAM, "0"),
            (VRAM, "99999999999G"),
        ] {
            let error = read(&[(variable, value)]).expect_err(value);
            assert!(error.to_string().starts_with(&format!("{variable}={value}: ")), "{error}");
        }
    }
}
