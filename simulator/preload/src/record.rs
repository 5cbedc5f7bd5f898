//! Recording what a program asks of a real card's nodes: one JSON object a line, as `mockgpu dump ioctl` reads it.
//!
//! The library passes everything through in this mode. A line is an `open`, an `ioctl` with its argument and the
//! parameters behind its pointer, before and after, or an `mmap`. Calls that reach the kernel past this library are not
//! seen, `mmap` by Python's `ctypes` among them; nor are stores to memory.

use std::{fmt::Write as _, fs::OpenOptions, io::Write as _, sync::OnceLock};

use nv_abi::{
    Branch, Record, Struct,
    ioctl::{NV_ESC_RM_ALLOC, NV_ESC_RM_CONTROL, nr, size},
    rm::{
        NVOS21_PARAMETERS, NVOS54_PARAMETERS, NVOS64_PARAMETERS,
        class::{Parameters, class},
    },
};

use crate::{client, options::RECORD};

/// Bytes of parameters that are recorded where neither the caller nor a table knows how many there are.
const UNKNOWN: usize = 512;
/// Parameters above this are not recorded.
const LARGEST: usize = 1 << 20;

/// The file that `MOCKGPU_RECORD` names. Where it is set, nothing is simulated.
pub(crate) fn file() -> Option<&'static str> {
    static FILE: OnceLock<Option<String>> = OnceLock::new();
    FILE.get_or_init(|| std::env::var(RECORD).ok()).as_deref()
}

/// The kernel module's branch; that of 580 where it does not say.
fn branch() -> Branch {
    static BRANCH: OnceLock<Branch> = OnceLock::new();
    *BRANCH.get_or_init(|| {
        let version = std::fs::read_to_string("/sys/module/nvidia/version").unwrap_or_default();
        Branch::from_version(version.trim()).unwrap_or(Branch::R580)
    })
}

fn append(line: &str) {
    let Some(path) = file() else { return };
    // One write, so that lines of several threads and processes do not mix. A recording that cannot be written must
    // not end the program.
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
        let _ = file.write_all(line.as_bytes());
    }
}

/// Whether a path is one of the nodes, which need no escapes in JSON.
pub(crate) fn is_node(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/dev/nvidia") else { return false };
    rest == "ctl" || rest == "-uvm" || (!rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A node was opened, or could not be.
pub(crate) fn opened(path: &str, flags: i32, fd: i32) {
    append(&format!("{{\"op\": \"open\", \"path\": \"{path}\", \"flags\": {flags}, \"fd\": {fd}}}\n"));
}

/// Memory of a node was mapped.
pub(crate) fn mapped(
    path: &str,
    fd: i32,
    address: u64,
    length: u64,
    protection: i32,
    flags: i32,
    offset: i64,
) {
    append(&format!(
        "{{\"op\": \"mmap\", \"path\": \"{path}\", \"fd\": {fd}, \"address\": {address}, \"len\": {length}, \
         \"prot\": {protection}, \"flags\": {flags}, \"offset\": {offset}}}\n"
    ));
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What a call points to besides its argument, and what it is about.
#[derive(Debug, Default, PartialEq, Eq)]
struct Nested {
    /// Members of the line that say what the call is about.
    about: String,
    pointer: u64,
    bytes: usize,
}

fn nested(number: u32, argument: &[u8], branch: Branch) -> Option<Nested> {
    let record = |layout: &'static Struct| Record::from_bytes(layout, branch, argument).ok();
    let known = |bytes: u64| usize::try_from(bytes).ok().filter(|bytes| *bytes <= LARGEST);
    match number {
        NV_ESC_RM_CONTROL => {
            use NVOS54_PARAMETERS as P;
            let p = record(&P::STRUCT)?;
            let get = |field| p.get(field).ok();
            Some(Nested {
                about: format!("\"cmd\": {}, \"object\": {}, ", get(&P::cmd)?, get(&P::hObject)?),
                pointer: get(&P::params)?,
                bytes: known(get(&P::paramsSize)?)?,
            })
        }
        NV_ESC_RM_ALLOC => {
            use NVOS64_PARAMETERS as P;
            let short = NVOS21_PARAMETERS::STRUCT.size(branch);
            // The first fields and the pointer lie at the same place in both structs.
            let mut whole = argument.to_vec();
            whole.resize(P::STRUCT.size(branch).max(argument.len()), 0);
            let p = Record::from_bytes(&P::STRUCT, branch, &whole).ok()?;
            let get = |field| p.get(field).ok();
            let number = get(&P::hClass)? as u32;
            let own = match class(number).map(|class| class.parameters) {
                Some(Parameters::Optional(layout) | Parameters::Required(layout)) => {
                    layout.map_or(UNKNOWN, |layout| layout.size(branch))
                }
                _ => UNKNOWN,
            };
            let given = if argument.len() > short { known(get(&P::paramsSize)?)? } else { 0 };
            Some(Nested {
                about: format!("\"class\": {number}, \"parent\": {}, ", get(&P::hObjectParent)?),
                pointer: get(&P::pAllocParms)?,
                bytes: if given == 0 { own } else { given },
            })
        }
        _ => None,
    }
}

/// The program's bytes at an address; nothing where they cannot be read.
fn bytes_at(address: u64, bytes: usize) -> Vec<u8> {
    let mut read = vec![0; bytes];
    match client::read(address, &mut read) {
        Ok(()) => read,
        Err(_) => Vec::new(),
    }
}

/// Makes a call and records it. `call` gives the system call's result, and the error number where that is not 0.
pub(crate) fn ioctl(
    path: &str,
    fd: i32,
    request: u32,
    address: u64,
    call: impl FnOnce() -> (i32, i32),
) -> (i32, i32) {
    let branch = branch();
    let uvm = path == "/dev/nvidia-uvm";
    let bytes = if uvm {
        let argument = nv_abi::uvm::call(request).and_then(|call| call.argument);
        argument.map_or(0, |argument| argument.size(branch))
    } else {
        size(request)
    };
    let before = bytes_at(address, bytes);
    let nested = if uvm { None } else { nested(nr(request), &before, branch) }.unwrap_or_default();
    let read = || if nested.pointer == 0 { Vec::new() } else { bytes_at(nested.pointer, nested.bytes) };
    let nested_before = read();
    let (result, errno) = call();
    let ret = if result == 0 { 0 } else { -errno };
    let mut line = format!(
        "{{\"op\": \"ioctl\", \"path\": \"{path}\", \"fd\": {fd}, \"request\": {request}, {}\"arg_in\": \"{}\", ",
        nested.about,
        hexadecimal(&before)
    );
    // Writing to a string cannot fail.
    if !nested_before.is_empty() {
        let _ = write!(line, "\"params_in\": \"{}\", ", hexadecimal(&nested_before));
    }
    let _ = write!(line, "\"ret\": {ret}, \"arg_out\": \"{}\"", hexadecimal(&bytes_at(address, bytes)));
    if !nested_before.is_empty() {
        let _ = write!(line, ", \"params_out\": \"{}\"", hexadecimal(&read()));
    }
    line.push_str("}\n");
    append(&line);
    (result, errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_told_from_other_paths() {
        assert!(is_node("/dev/nvidiactl") && is_node("/dev/nvidia-uvm") && is_node("/dev/nvidia12"));
        assert!(!is_node("/dev/nvidia") && !is_node("/dev/nvidia-modeset") && !is_node("/dev/null"));
    }

    #[test]
    fn a_control_says_its_command_and_where_its_parameters_lie() {
        let mut p = Record::zeroed(&NVOS54_PARAMETERS::STRUCT, Branch::R580);
        for (field, value) in [
            (&NVOS54_PARAMETERS::cmd, 318),
            (&NVOS54_PARAMETERS::hObject, 7),
            (&NVOS54_PARAMETERS::params, 0x1000),
            (&NVOS54_PARAMETERS::paramsSize, 24),
        ] {
            p.set(field, value).expect("it fits");
        }
        let about = "\"cmd\": 318, \"object\": 7, ".to_owned();
        let expected = Nested { about, pointer: 0x1000, bytes: 24 };
        assert_eq!(nested(NV_ESC_RM_CONTROL, p.bytes(), Branch::R580), Some(expected));
        assert_eq!(nested(NV_ESC_RM_CONTROL, &[0; 3], Branch::R580), None);
    }
}
