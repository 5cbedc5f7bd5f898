//! Whole processes under the library: this test binary starts itself again with the library in front of libc.
//!
//! A test that is called `in_a_child` does the work of the case that an environment variable names, and nothing where
//! there is none.

use std::{
    ffi::{CStr, CString, c_int, c_void},
    fs,
    os::unix::fs::FileTypeExt,
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use nv_abi::{Branch, Record, ioctl, rm::nv_ioctl_card_info_t as CardInfo};
use nv_driver::{Device, Module, Options, System, os::NvidiaNodes};

const CASE: &str = "MOCKGPU_TEST_CASE";

/// The library, which cargo builds before the tests of its package.
fn library() -> PathBuf {
    let binary = std::env::current_exe().expect("the path of the running test");
    let mut folders = binary.ancestors().skip(1);
    let found = folders.find_map(|folder| {
        let path = folder.join("libmockgpu_preload.so");
        path.exists().then_some(path)
    });
    found.expect("the library beside the test binary")
}

fn child(case: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of the running test"));
    command.args(["--exact", "in_a_child", "--nocapture", "--test-threads=1"]);
    command.env("LD_PRELOAD", library()).env(CASE, case).envs(variables.iter().copied());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(case: &str, variables: &[(&str, &str)]) -> Output {
    let output = child(case, variables).output().expect("the test binary starts");
    assert!(
        output.status.success(),
        "{case}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

#[test]
fn in_a_child() {
    match std::env::var(CASE).as_deref() {
        Ok("look") => look(),
        Ok("compute") => compute(),
        Ok("fork") => fork(),
        Ok("numbers") => numbers(),
        Ok("cycles") => cycles(),
        Ok("forever") => loop {
            compute();
        },
        Ok("no such GPU") => assert_eq!(errno_of(open(c"/dev/nvidiactl")), libc::ENODEV),
        Ok(other) => panic!("no case {other}"),
        Err(_) => {}
    }
}

fn open(path: &CStr) -> c_int {
    // SAFETY: a C string.
    unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) }
}

fn close(fd: c_int) -> c_int {
    // SAFETY: the tests close what they opened.
    unsafe { libc::close(fd) }
}

fn errno_of(result: c_int) -> c_int {
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    assert_eq!(result, -1);
    errno
}

/// CARD_INFO with room for 32 GPUs; gives how many there are.
fn cards(fd: c_int) -> Result<usize, c_int> {
    let size = CardInfo::STRUCT.size(Branch::R580);
    let mut bytes = vec![0_u8; 32 * size];
    let request = ioctl::request(ioctl::NV_ESC_CARD_INFO, bytes.len());
    // SAFETY: the argument is as long as the request says.
    let result = unsafe { libc::ioctl(fd, request.into(), bytes.as_mut_ptr().cast::<c_void>()) };
    if result != 0 {
        return Err(errno_of(result));
    }
    let valid = |card: &&[u8]| {
        let card = Record::from_bytes(&CardInfo::STRUCT, Branch::R580, card).expect("the size of the struct");
        card.get(&CardInfo::valid).expect("a field of the struct") != 0
    };
    Ok(bytes.chunks_exact(size).filter(valid).count())
}

fn look() {
    let metadata = fs::metadata("/dev/nvidia5").expect("the last of six GPUs");
    assert!(metadata.file_type().is_char_device());
    assert!(fs::metadata("/dev/nvidia6").is_err());
    let names: Vec<_> =
        fs::read_dir("/dev").expect("listed").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(
        names.iter().filter(|name| name.to_string_lossy().starts_with("nvidia")).count(),
        8,
        "{names:?}"
    );
    let version = fs::read_to_string("/proc/driver/nvidia/version").expect("generated");
    assert!(version.contains(" 610.10 "), "{version}");
    assert!(fs::read_to_string("/proc/devices").expect("generated").contains("195 nvidia\n"));
    let fd = open(c"/dev/nvidiactl");
    assert!(fd > 2);
    assert_eq!(cards(fd), Ok(6));
    assert_eq!(close(fd), 0);
    assert_eq!(cards(fd), Err(libc::EBADF));
}

#[test]
fn nodes_and_files_are_those_of_the_options() {
    run("look", &[("MOCKGPU_GPUS", "6"), ("MOCKGPU_DRIVER", "610.10")]);
}

#[test]
fn an_option_that_means_nothing_is_named_and_opens_nothing() {
    let output = run("no such GPU", &[("MOCKGPU_GPU", "gtx")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("MOCKGPU_GPU=gtx: not one of ad102, ga102, h200"), "{said}");
}

/// A kernel through the driver's own system calls.
fn compute() {
    let system = System::open(Arc::new(NvidiaNodes::new())).expect("the nodes open");
    let device = Device::open_on(&system, 0, Options::default()).expect("the device opens");
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

#[test]
fn a_driver_with_real_system_calls_launches_a_kernel_on_every_gpu() {
    for gpu in ["ad102", "ga102", "h200"] {
        run("compute", &[("MOCKGPU_GPU", gpu)]);
    }
}

#[test]
fn the_report_says_what_was_done() {
    let path = std::env::temp_dir().join(format!("mockgpu-report-{}", std::process::id()));
    run("compute", &[("MOCKGPU_REPORT", path.to_str().expect("a plain path"))]);
    let report = fs::read_to_string(&path).expect("a report");
    fs::remove_file(&path).expect("the report is there");
    let lines: Vec<Vec<&str>> = report.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.first().map(|line| line[0]), Some("start"), "{report}");
    assert!(lines.iter().any(|line| line[0] == "statistics" && line[2].contains(" kernels=1 ")), "{report}");
    assert_eq!(lines.last().map(|line| line[0]), Some("end"), "{report}");
}

/// Waits for a child of `fork` and checks that it ended well.
fn join(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: the place for the status is valid.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status:#x}");
}

fn fork() {
    let fd = open(c"/dev/nvidiactl");
    assert_eq!(cards(fd), Ok(1));
    // SAFETY: the child only calls what is allowed in a process of one thread, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let inherited = cards(fd) == Err(libc::EIO);
        let own = open(c"/dev/nvidiactl");
        let works = cards(own) == Ok(1);
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!(inherited && works && close(fd) == 0))) };
    }
    join(child);
    // What a child closes on its way to another program is not closed here.
    // SAFETY: as above; the child closes descriptors and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        for number in 3..100 {
            close(number);
        }
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    join(child);
    assert!(Command::new("true").status().expect("a program of every system").success());
    assert_eq!(cards(fd), Ok(1));
}

#[test]
fn a_child_of_fork_has_a_machine_of_its_own_and_the_parent_keeps_its() {
    run("fork", &[]);
}

fn numbers() {
    let fd = open(c"/dev/nvidiactl");
    // SAFETY: descriptors of this test only.
    let (copy, high) = unsafe { (libc::dup(fd), libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 200)) };
    assert!(high >= 200);
    assert_eq!(close(fd), 0);
    assert_eq!((cards(copy), cards(high)), (Ok(1), Ok(1)));
    let null = open(c"/dev/null");
    // SAFETY: as above.
    assert_eq!(unsafe { libc::dup2(null, copy) }, copy);
    assert_eq!(cards(copy), Err(libc::ENOTTY));
    // SAFETY: as above.
    assert_eq!(unsafe { libc::dup2(high, null) }, null);
    assert_eq!(close(high), 0);
    assert_eq!(cards(null), Ok(1));
    // A number that is used again for a file is a file.
    assert_eq!(close(null), 0);
    let again = open(c"/dev/zero");
    assert_eq!(cards(again), Err(libc::ENOTTY));
}

#[test]
fn numbers_are_shared_replaced_and_used_again() {
    run("numbers", &[]);
}

fn count(folder: &str) -> usize {
    fs::read_dir(folder).expect("a folder of proc").count()
}

fn cycles() {
    // Threads of the simulator hold what they last looked at until they look again.
    let counts = || {
        thread::sleep(Duration::from_millis(100));
        let mappings = fs::read_to_string("/proc/self/maps").expect("maps").lines().count();
        (count("/proc/self/fd"), mappings)
    };
    compute();
    let before = counts();
    for _ in 0..30 {
        compute();
    }
    let after = counts();
    // Stacks of threads that ended are kept for new ones.
    assert!(
        after.0 <= before.0 && after.1 <= before.1 + 8,
        "descriptors and mappings {before:?}, then {after:?}"
    );
}

#[test]
fn opening_and_closing_a_device_leaves_nothing_in_the_process() {
    run("cycles", &[]);
}

fn left_behind() -> Vec<CString> {
    let folders = ["/dev/shm".to_owned(), std::env::temp_dir().to_string_lossy().into_owned()];
    let names = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let ours = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let ours = ours.filter(|name| name.contains("mockgpu") && !name.starts_with("mockgpu-report-"));
    ours.filter_map(|name| CString::new(name).ok()).collect()
}

#[test]
fn a_process_that_is_killed_at_any_moment_leaves_nothing() {
    let before = left_behind();
    for milliseconds in [1, 5, 20, 60, 150, 400] {
        let mut process = child("forever", &[]).spawn().expect("the test binary starts");
        thread::sleep(Duration::from_millis(milliseconds));
        process.kill().expect("it runs for ever");
        process.wait().expect("it was killed");
    }
    assert_eq!(left_behind(), before);
}
