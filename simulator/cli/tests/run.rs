//! `mockgpu run` with a program of its own: this test binary, started again.
//!
//! A test that is called `in_a_child` does the work of the case that an environment variable names, and nothing where
//! there is none.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use nv_driver::{Device, Module, Options, System, os::NvidiaNodes};

const CASE: &str = "MOCKGPU_TEST_CASE";

#[test]
fn in_a_child() {
    match std::env::var(CASE).as_deref() {
        Ok("compute") => compute(),
        Ok("fault") => fault(),
        Ok("transpose") => transpose(0),
        Ok("transpose past the end") => transpose(1 << 40),
        Ok("wait") => {
            let _system = system();
            println!("\nprocess {}", std::process::id());
            loop {
                thread::sleep(Duration::from_secs(1));
            }
        }
        Ok(other) => panic!("no case {other}"),
        Err(_) => {}
    }
}

fn system() -> Arc<System> {
    System::open(Arc::new(NvidiaNodes::new())).expect("the nodes open")
}

/// A kernel on the last GPU.
fn compute() {
    let system = system();
    println!("\n{} GPUs, driver {}", system.device_count(), system.version());
    let last = system.device_count() - 1;
    let device = Device::open_on(&system, last, Options::default()).expect("the device opens");
    let cubin = fixtures::cubin(&format!("sm_{}", device.sm()), "vector_add").expect("a fixture");
    let kernel = Module::load(&device, &cubin).expect("it loads").kernel("vector_add").expect("it is there");
    let numbers: Vec<f32> = (0..1000_u16).map(f32::from).collect();
    let a = device.buffer_from(&numbers).expect("memory");
    let sum = device.video::<f32>(1000).expect("memory");
    let arguments = [(&sum).into(), (&a).into(), (&a).into(), 1000_u32.into()];
    kernel.launch([4, 1, 1], [256, 1, 1], &arguments).expect("it runs");
    let doubled: Vec<f32> = numbers.iter().map(|number| number * 2.0).collect();
    assert_eq!(sum.to_vec().expect("it copies back"), doubled);
}

/// A copy from where nothing is mapped, which the program takes no notice of.
fn fault() {
    let device = Device::open_on(&system(), 0, Options::default()).expect("the device opens");
    let to = device.video::<u8>(64).expect("memory");
    let copied = device.copy(to.address(), 0x1_2345_6000, 64).and_then(|()| device.synchronize());
    assert!(copied.is_err());
}

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
const TRANSPOSE: &str = "lines/transpose.sm_89.cubin";

/// A kernel with line information, which writes so many bytes past its memory.
fn transpose(past: u64) {
    let device = Device::open_on(&system(), 0, Options::default()).expect("the device opens");
    let cubin = fixtures::bytes(TRANSPOSE).expect("a fixture");
    let kernel = Module::load(&device, &cubin).expect("it loads").kernel("transpose").expect("it is there");
    let (to, from) = (device.video::<f32>(4096).expect("memory"), device.video::<f32>(4096).expect("memory"));
    let arguments = [(to.address() + past).into(), (&from).into(), 64_u32.into()];
    let ran = kernel.launch([2, 2, 1], [32, 32, 1], &arguments).and_then(|()| device.synchronize());
    assert_eq!(ran.is_ok(), past == 0, "{ran:?}");
}

/// A file of this process that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("{name}-{}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn cubins_give_kernels_their_names_and_lines() {
    let cubin = &format!("{FIXTURES}/{TRANSPOSE}");
    let run = |name: &str, options: &[&str]| {
        let output = case(name, options).output().expect("the tool starts");
        (output.status.code(), text(&output))
    };
    let past = "transpose past the end";
    let (code, said) = run(past, &[]);
    assert!(code == Some(3) && !said.contains("kernel transpose"), "{said}");
    let (code, said) = run(past, &["--cubin", cubin]);
    assert!(
        code == Some(3) && said.contains("kernel transpose") && said.contains("transpose.cu:7"),
        "{said}"
    );

    let capture = Scratch::new("names");
    let file = capture.0.to_str().expect("a plain path");
    let (code, said) = run("transpose", &["--cubin", cubin, "--capture", file, "--profile"]);
    assert!(
        code == Some(0) && said.contains("profile of transpose") && said.contains("// transpose.cu:7"),
        "{said}"
    );
    let dump = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mockgpu"));
        command.args(["dump", "capture", "--launches"]).args(options);
        text(&command.output().expect("the tool starts"))
    };
    assert!(dump(&[file]).contains("  transpose, grid 2 x 2 x 1"), "{}", dump(&[file]));
    // The same afterwards, from a capture without names.
    let text = fs::read_to_string(file).expect("a capture");
    let plain: Vec<&str> = text.lines().filter(|line| !line.starts_with("symbol ")).collect();
    fs::write(file, plain.join("\n")).expect("it can be written");
    assert!(!dump(&[file]).contains("transpose"), "{}", dump(&[file]));
    let named = dump(&[file, "--cubin", &format!("{FIXTURES}/lines")]);
    assert!(named.contains("  transpose, grid 2 x 2 x 1"), "{named}");
}

/// A file of the fixtures.
fn recording(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recordings").join(name)
}

#[test]
fn a_capture_from_a_card_replays_on_a_simulated_gpu() {
    let output = Command::new(env!("CARGO_BIN_EXE_mockgpu"))
        .arg("replay")
        .arg(recording("tinygrad_add.h200.capture"))
        .output()
        .expect("the tool starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    // The GPU's number and UUID are another card's. Where that was plugged in is the only other thing.
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].ends_with("NV_ESC_CARD_INFO: pci_info_slot: 6 -> 0"), "{said}");
    assert!(lines[1].ends_with("8 submissions; 1 semaphores checked; 1 differences, 0 faults"), "{said}");
}

#[test]
fn packed_files_are_read_and_what_is_broken_in_them_is_told() {
    let packed = std::env::temp_dir().join(format!("mockgpu-report-{}.gz", std::process::id()));
    let source = fs::File::open(recording("tinygrad_add.simulated.capture")).expect("a fixture");
    let target = fs::File::create(&packed).expect("a file");
    let status = Command::new("gzip").arg("-c").stdin(source).stdout(target).status().expect("gzip is there");
    assert!(status.success());
    let run = |arguments: &[&std::ffi::OsStr]| {
        Command::new(env!("CARGO_BIN_EXE_mockgpu")).args(arguments).output().expect("the tool starts")
    };
    let same = recording("tinygrad_add.simulated.capture");
    let output = run(&["diff".as_ref(), packed.as_ref(), same.as_ref()]);
    assert!(text(&output).contains("no difference in meaning"), "{}", text(&output));
    let bytes = fs::read(&packed).expect("the file");
    fs::write(&packed, &bytes[..bytes.len() / 2]).expect("the file");
    let output = run(&["dump".as_ref(), "ioctl".as_ref(), packed.as_ref()]);
    assert!(!output.status.success() && text(&output).contains(": gzip: "), "{}", text(&output));
    fs::remove_file(&packed).expect("the file");
}

#[test]
fn what_a_recorder_had_to_say_is_said_whatever_is_done_with_the_capture() {
    let noted = std::env::temp_dir().join(format!("mockgpu-report-{}.noted", std::process::id()));
    let whole = fs::read_to_string(recording("tinygrad_add.simulated.capture")).expect("a fixture");
    fs::write(&noted, whole + "note seen late\n").expect("the file");
    for command in [&["lint"][..], &["dump", "--json", "capture"], &["timeline"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_mockgpu")).args(command).arg(&noted).output();
        let output = output.expect("the tool starts");
        assert!(output.status.success(), "{command:?}: {}", text(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(": note: seen late"), "{command:?}");
    }
    fs::remove_file(&noted).expect("the file");
}

#[test]
fn what_is_no_cubin_is_refused_before_the_program_begins() {
    let output = tool(&["--cubin", "/proc/version"]).args(["sh", "-c", "echo begun"]).output();
    let said = text(&output.expect("the tool starts"));
    assert!(said.contains("/proc/version: no cubin") && !said.contains("begun"), "{said}");
}

#[test]
fn tinygrad_is_told_to_wait_longer_unless_the_user_has_said() {
    let shown = |set: Option<&str>| {
        let mut command = tool(&[]);
        command.args(["sh", "-c", "echo $HCQDEV_WAIT_TIMEOUT_MS"]).env_remove("HCQDEV_WAIT_TIMEOUT_MS");
        set.into_iter().for_each(|value| {
            command.env("HCQDEV_WAIT_TIMEOUT_MS", value);
        });
        text(&command.output().expect("the tool starts")).trim().to_owned()
    };
    assert_eq!((shown(None), shown(Some("5"))), ("600000".to_owned(), "5".to_owned()));
}

fn tool(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mockgpu"));
    command.arg("run").args(options).arg("--").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The tool with a case of this binary as its program.
fn case(case: &str, options: &[&str]) -> Command {
    let mut command = tool(options);
    command.arg(std::env::current_exe().expect("the path of the running test"));
    command.args(["--exact", "in_a_child", "--nocapture", "--test-threads=1"]).env(CASE, case);
    command
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_exit_code_of_the_program_is_passed_on() {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 128 + 15)] {
        let output = tool(&[]).args(["sh", "-c", script]).output().expect("the tool starts");
        assert_eq!(output.status.code(), Some(code), "{script}: {}", text(&output));
    }
    let output = tool(&[]).arg("/nonexistent").output().expect("the tool starts");
    assert_eq!(output.status.code(), Some(127));
}

#[test]
fn a_program_sees_the_gpus_and_the_driver_that_were_asked_for() {
    for (gpus, driver) in [("1", "570.124.06"), ("6", "580.159.04"), ("1", "610.10"), ("6", "610.10")] {
        let output = case("compute", &["--report", "--gpus", gpus, "--driver", driver]).output();
        let output = output.expect("the tool starts");
        let said = text(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains(&format!("{gpus} GPUs, driver {driver}")), "{said}");
        assert!(said.contains("): 1 kernels, "), "{said}");
    }
}

#[test]
fn a_fault_that_the_program_did_not_notice_fails_the_run() {
    let output = case("fault", &[]).output().expect("the tool starts");
    let said = text(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("fault: ") && said.contains("0x123456000"), "{said}");
    let output = case("fault", &["--lenient"]).output().expect("the tool starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

/// Whether a process runs; one that nobody has waited for yet does not.
fn runs(process: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may hold anything.
    state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn a_tool_that_is_killed_takes_its_program_along() {
    let mut tool = case("wait", &[]).spawn().expect("the tool starts");
    let output = BufReader::new(tool.stdout.take().expect("a pipe"));
    let line = output.lines().map_while(Result::ok).find(|line| line.starts_with("process "));
    let program: u32 = line.expect("the program's word")["process ".len()..].parse().expect("a number");
    assert!(runs(program));
    tool.kill().expect("it runs");
    tool.wait().expect("it was killed");
    let end = Instant::now() + Duration::from_secs(20);
    while runs(program) {
        assert!(Instant::now() < end, "process {program} is left");
        thread::sleep(Duration::from_millis(5));
    }
}

/// What lies about in the places for temporary files.
fn left_behind() -> Vec<PathBuf> {
    let folders = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut ours: Vec<PathBuf> = entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.contains("mockgpu") && !name.starts_with("mockgpu-report-")
        })
        .map(|entry| entry.path())
        .collect();
    ours.sort();
    ours
}

#[test]
fn short_runs_leave_nothing() {
    let before = left_behind();
    for run in 0..20 {
        let output = case("compute", &[]).output().expect("the tool starts");
        assert!(output.status.success(), "run {run}: {}", text(&output));
    }
    assert_eq!(left_behind(), before);
}
