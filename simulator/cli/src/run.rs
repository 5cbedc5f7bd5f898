//! `mockgpu run`: an unmodified program on simulated GPUs.
//!
//! The program starts with the preload library in front of libc. It runs through a second start of this tool, which
//! asks the kernel to end it when the tool ends, and then becomes the program. Reports come back through a memory file
//! of this process, so that nothing is left behind however anyone ends.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    fs::File,
    io::{Read, Seek},
    os::{
        fd::AsRawFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus},
};

use clap::Args;
use nix::{
    sys::{
        memfd::{MFdFlags, memfd_create},
        prctl,
        signal::{SigSet, Signal, kill},
        signalfd::{SfdFlags, SignalFd},
    },
    unistd::{Pid, getppid},
};

use crate::{
    profile::{self, Names},
    report::Report,
    simulated::{DRIVER, Gpu},
    source::{Cubins, SourceError},
};

/// The exit code where the program ended well but the GPUs did not.
const GPU_TROUBLE: u8 = 3;
/// How long tinygrad's HCQ devices wait for a signal, in milliseconds, and for how long `run` lets them: ten minutes.
const WAIT: (&str, &str) = ("HCQDEV_WAIT_TIMEOUT_MS", "600000");
/// The library that is loaded into the program.
const LIBRARY: &str = "libmockgpu_preload.so";

/// What to run, and on what.
#[derive(Debug, Args)]
pub struct Run {
    /// Which kind of GPU
    #[arg(long, value_enum, default_value = "ad102")]
    gpu: Gpu,
    /// How many of them, 1 to 32
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=32))]
    gpus: u8,
    /// The kernel module's version, which decides the layouts of its structs
    #[arg(long, default_value = DRIVER)]
    driver: String,
    /// Video memory of each GPU: bytes, or a number with K, M or G; the product's own if not given
    #[arg(long)]
    vram: Option<String>,
    /// Say afterwards what the GPUs did, also where all went well
    #[arg(long)]
    report: bool,
    /// Count what every instruction does, and print the kernels with the most of them; execution then takes many times as
    /// long
    #[arg(long, value_name = "KERNELS", num_args = 0..=1, require_equals = true, default_missing_value = "3")]
    profile: Option<usize>,
    /// Write a capture of what the program and the GPUs say to each other, for `dump capture`, `diff`, `lint`, `timeline`
    /// and `replay`; further processes that use a GPU write files with their number behind this name
    #[arg(long)]
    capture: Option<PathBuf>,
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    cubins: Cubins,
    /// Give the program's own exit code even if it is 0 and a GPU faulted or lacked something
    #[arg(long)]
    lenient: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// What to record.
#[derive(Debug, Args)]
pub struct RecordCalls {
    /// The capture to write; further processes that use the card write files with their number behind this name
    #[arg(short, long, default_value = "mockgpu.capture")]
    output: PathBuf,
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    cubins: Cubins,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// What a capture keeps beside what is said.
#[derive(Debug, Args)]
struct Data {
    /// Keep the data of copies of up to so many bytes in the capture, which a replay needs: bytes, or a number with K, M
    /// or G [default: 64K]
    #[arg(long, value_name = "BYTES")]
    data: Option<String>,
}

impl Data {
    fn tell(&self, command: &mut Command) {
        match &self.data {
            Some(bytes) => command.env("MOCKGPU_RECORD_DATA", bytes),
            None => command.env_remove("MOCKGPU_RECORD_DATA"),
        };
    }
}

/// Lets the library know which cubins there are, by their whole paths.
fn tell_cubins(cubins: &Cubins, command: &mut Command) -> Result<(), RunError> {
    // What is no cubin is told now, and not by the library when the program has begun.
    cubins.read()?;
    let paths: Result<Vec<PathBuf>, _> = cubins.files()?.iter().map(|file| file.canonicalize()).collect();
    let paths = paths.map_err(io("a cubin"))?;
    if paths.is_empty() {
        command.env_remove("MOCKGPU_CUBINS");
        return Ok(());
    }
    let joined = std::env::join_paths(&paths);
    command.env("MOCKGPU_CUBINS", joined.map_err(|_| RunError::Colon(paths))?);
    Ok(())
}

/// The program of a second start of the tool.
#[derive(Debug, Args)]
pub struct Become {
    /// The process that must live as long
    parent: i32,
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The library is not beside the tool.
    #[error(
        "{LIBRARY} is neither in {0} nor in its folder `deps`: build it with `cargo build -p mockgpu-preload`, or copy it there"
    )]
    NoLibrary(PathBuf),
    /// A cubin is none.
    #[error(transparent)]
    Cubin(#[from] SourceError),
    /// Paths are handed on with colons between them.
    #[error("one of these paths has a colon, which paths of cubins must not have: {0:?}")]
    Colon(Vec<PathBuf>),
    /// The program did not start.
    #[error("{program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// The host system refused something.
    #[error("{what}: {source}")]
    System {
        /// The call.
        what: &'static str,
        /// The host's reason.
        source: std::io::Error,
    },
}

fn system(what: &'static str) -> impl Fn(nix::Error) -> RunError {
    move |errno| RunError::System { what, source: errno.into() }
}

fn io(what: &'static str) -> impl Fn(std::io::Error) -> RunError {
    move |source| RunError::System { what, source }
}

/// The newest library beside the tool: cargo puts it into the folder of the tool when it was asked for, and into
/// `deps` when it was built with the tool.
fn library(tool: &Path) -> Result<PathBuf, RunError> {
    let folder = tool.parent().unwrap_or(Path::new("/"));
    let candidates = [folder.join(LIBRARY), folder.join("deps").join(LIBRARY)];
    let dated = candidates.into_iter().filter_map(|path| {
        let modified = path.metadata().and_then(|metadata| metadata.modified()).ok()?;
        Some((modified, path))
    });
    dated.max().map(|(_, path)| path).ok_or_else(|| RunError::NoLibrary(folder.to_owned()))
}

/// `LD_PRELOAD` with the library in front of what is there.
fn preload(library: &Path, already: Option<OsString>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    if let Some(already) = already.filter(|already| !already.is_empty()) {
        value.push(":");
        value.push(already);
    }
    value
}

/// Compilers that Python packages bring and that tinygrad looks for by environment variable only: variables to set.
/// Those that are set already stay as they are.
fn compilers(program: &OsStr) -> Vec<(&'static str, PathBuf)> {
    let mut found = Vec::new();
    for packages in site_packages(program) {
        for cuda in ["cu13", "cuda_nvrtc", "nvjitlink"] {
            let folder = packages.join("nvidia").join(cuda).join("lib");
            let Ok(entries) = folder.read_dir() else { continue };
            for path in entries.flatten().map(|entry| entry.path()) {
                let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
                let variable = match name {
                    _ if name.starts_with("libnvrtc.so.") => "NVRTC_PATH",
                    _ if name.starts_with("libnvJitLink.so.") => "NVJITLINK_PATH",
                    _ => continue,
                };
                found.push((variable, path));
            }
        }
        let runtime = ["cu13", "cuda_runtime"].map(|cuda| packages.join("nvidia").join(cuda));
        let headers = runtime.into_iter().find(|folder| folder.join("include").is_dir());
        found.extend(headers.map(|folder| ("CUDA_PATH", folder)));
    }
    found.retain(|(variable, _)| std::env::var_os(variable).is_none());
    let mut seen = Vec::new();
    found.retain(|(variable, _)| {
        !seen.contains(variable) && {
            seen.push(*variable);
            true
        }
    });
    found
}

/// Folders of Python packages that belong to a program: of its environment, or of the Python that it is.
fn site_packages(program: &OsStr) -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> =
        ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(std::env::var_os).map(PathBuf::from).collect();
    if let Some(path) = find(program) {
        prefixes.extend(path.parent().and_then(Path::parent).map(Path::to_owned));
    }
    let mut folders = Vec::new();
    for library in prefixes.iter().map(|prefix| prefix.join("lib")) {
        let versions = library.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        let python = |path: &PathBuf| {
            path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with("python3"))
        };
        folders.extend(versions.filter(python).map(|version| version.join("site-packages")));
    }
    let is_python =
        Path::new(program).file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with("python"));
    if is_python && !folders.iter().any(|folder| folder.join("nvidia").is_dir()) {
        // A launcher of some kind: only Python itself knows where its packages are.
        let ask = "import sysconfig; print(sysconfig.get_path('purelib'))";
        if let Ok(answer) = Command::new(program).args(["-c", ask]).output() {
            folders.push(PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim()));
        }
    }
    folders
}

/// Where a program lies that is named as in a shell.
fn find(program: &OsStr) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return Some(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Waits for a child and passes signals on that others sent to this process. Those of the terminal reach the child
/// by themselves.
fn wait(child: Pid, signals: &SignalFd) -> Result<ExitStatus, RunError> {
    /// `si_code` of a signal that the kernel sent, as the terminal's are.
    const SI_KERNEL: i32 = 0x80;
    loop {
        let Some(info) = signals.read_signal().map_err(system("signalfd"))? else { continue };
        let signal = Signal::try_from(info.ssi_signo as i32).map_err(system("signalfd"))?;
        if signal != Signal::SIGCHLD {
            if info.ssi_code != SI_KERNEL {
                // It may have ended in the meantime, which the next signal tells.
                let _ = kill(child, signal);
            }
            continue;
        }
        let raw = nix::sys::wait::waitpid(child, Some(nix::sys::wait::WaitPidFlag::WNOHANG));
        match raw.map_err(system("waitpid"))? {
            nix::sys::wait::WaitStatus::Exited(_, code) => return Ok(ExitStatus::from_raw(code << 8)),
            nix::sys::wait::WaitStatus::Signaled(_, signal, _) => {
                return Ok(ExitStatus::from_raw(signal as i32));
            }
            _ => {}
        }
    }
}

/// Runs the program and says what its GPUs did.
pub fn run(options: &Run) -> Result<ExitCode, RunError> {
    let tool = std::env::current_exe().map_err(io("the path of this program"))?;
    let library = library(&tool)?;
    let program = &options.command[0];
    let file = memfd_create(c"mockgpu-report", MFdFlags::MFD_CLOEXEC).map_err(system("memfd_create"))?;

    let mut passed = SigSet::empty();
    for signal in [
        Signal::SIGCHLD,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
    ] {
        passed.add(signal);
    }
    passed.thread_block().map_err(system("sigprocmask"))?;
    let signals = SignalFd::with_flags(&passed, SfdFlags::SFD_CLOEXEC).map_err(system("signalfd"))?;

    let mut command = Command::new(&tool);
    command.arg("become").arg(std::process::id().to_string()).arg("--").args(&options.command);
    for (variable, value) in compilers(program) {
        command.env(variable, value);
    }
    command
        .env("MOCKGPU_PRELOAD", preload(&library, std::env::var_os("LD_PRELOAD")))
        .env("MOCKGPU_GPU", options.gpu.name())
        .env("MOCKGPU_GPUS", options.gpus.to_string())
        .env("MOCKGPU_DRIVER", &options.driver)
        .env_remove("MOCKGPU_CARD")
        .env("MOCKGPU_REPORT", format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    match &options.vram {
        Some(bytes) => command.env("MOCKGPU_VRAM", bytes),
        None => command.env_remove("MOCKGPU_VRAM"),
    };
    match &options.capture {
        Some(file) => command.env("MOCKGPU_RECORD", new_capture(file)?),
        None => command.env_remove("MOCKGPU_RECORD"),
    };
    options.data.tell(&mut command);
    tell_cubins(&options.cubins, &mut command)?;
    // tinygrad gives up on a GPU after 30 s, which a simulated one may need.
    if std::env::var_os(WAIT.0).is_none() {
        command.env(WAIT.0, WAIT.1);
    }
    match options.profile {
        Some(_) => command.env("MOCKGPU_PROFILE", "1"),
        None => command.env_remove("MOCKGPU_PROFILE"),
    };
    let child = command.spawn().map_err(io("the second start of this program"))?;
    let status = wait(Pid::from_raw(child.id() as i32), &signals)?;

    let mut text = String::new();
    let mut file = File::from(file);
    file.rewind().and_then(|()| file.read_to_string(&mut text)).map_err(io("the report"))?;
    let mut report = Report::parse(&text);
    let mut said = String::new();
    if options.report || report.has_trouble() {
        // Writing to a string cannot fail.
        let _ = write!(said, "{report}");
    }
    if let Some(kernels) = options.profile {
        let (_, programs) = options.cubins.read()?;
        for found in report.take_profiles().iter().take(kernels) {
            said.push_str(&profile::text(found, &Names::of(found, &programs), true));
        }
    }
    eprint!("{said}");
    Ok(match (status.code(), status.signal()) {
        (Some(0), _) if report.has_trouble() && !options.lenient => ExitCode::from(GPU_TROUBLE),
        (Some(code), _) => ExitCode::from(code as u8),
        (None, Some(signal)) => ExitCode::from(128 + signal as u8),
        (None, None) => ExitCode::FAILURE,
    })
}

/// The whole path of a capture that a program is about to write. One that is there already is of an earlier run.
fn new_capture(file: &Path) -> Result<PathBuf, RunError> {
    // Created to see whether that is possible, and removed because its first writer creates it.
    File::create(file)
        .and_then(|_| file.canonicalize())
        .and_then(|path| std::fs::remove_file(&path).map(|()| path))
        .map_err(io("the capture"))
}

/// Runs the program on this machine's own card and records what it says to it. Becomes the program.
pub fn record(options: &RecordCalls) -> Result<ExitCode, RunError> {
    let tool = std::env::current_exe().map_err(io("the path of this program"))?;
    let library = library(&tool)?;
    let output = new_capture(&options.output)?;
    let program = &options.command[0];
    let mut command = Command::new(program);
    command.args(&options.command[1..]).env("MOCKGPU_RECORD", output).env("MOCKGPU_CARD", "1");
    options.data.tell(&mut command);
    tell_cubins(&options.cubins, &mut command)?;
    command.env("LD_PRELOAD", preload(&library, std::env::var_os("LD_PRELOAD")));
    let source = command.exec();
    Err(RunError::Start { program: program.to_string_lossy().into_owned(), source })
}

/// The second start: ends with its parent, then becomes the program.
pub fn become_program(options: &Become) -> Result<ExitCode, RunError> {
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(system("prctl"))?;
    // The parent may have ended before that call.
    if getppid() != Pid::from_raw(options.parent) {
        return Ok(ExitCode::FAILURE);
    }
    SigSet::empty().thread_set_mask().map_err(system("sigprocmask"))?;
    let program = &options.command[0];
    let mut command = Command::new(program);
    command.args(&options.command[1..]);
    if let Some(library) = std::env::var_os("MOCKGPU_PRELOAD") {
        command.env("LD_PRELOAD", library).env_remove("MOCKGPU_PRELOAD");
    }
    let source = command.exec();
    eprintln!("mockgpu: {}", RunError::Start { program: program.to_string_lossy().into_owned(), source });
    // As a shell says that there is no such program.
    Ok(ExitCode::from(127))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_goes_in_front_of_others() {
        let library = Path::new("/x/lib.so");
        assert_eq!(preload(library, None), "/x/lib.so");
        assert_eq!(preload(library, Some("".into())), "/x/lib.so");
        assert_eq!(preload(library, Some("/y.so".into())), "/x/lib.so:/y.so");
    }

    #[test]
    fn a_missing_library_is_named_with_the_remedy() {
        let error = library(Path::new("/nonexistent/mockgpu")).expect_err("there is none");
        assert!(error.to_string().contains("cargo build -p mockgpu-preload"), "{error}");
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        assert_eq!(
            find(OsStr::new("sh")).and_then(|path| path.file_name().map(OsStr::to_owned)),
            Some("sh".into())
        );
        assert_eq!(find(OsStr::new("./x")), Some("./x".into()));
        assert_eq!(find(OsStr::new("no such program")), None);
    }
}
