//! Whole processes under the library: this test binary starts itself again with the library in front of libc.
//!
//! A test that is called `in_a_child` does the work of the case that an environment variable names, and nothing where
//! there is none.

use std::{
    collections::BTreeSet,
    ffi::{CStr, CString, c_int, c_void},
    fs,
    os::unix::fs::FileTypeExt,
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use nv_abi::{
    Branch, Errno, Fd, Ioctl, Mapping, Mmio, Node, Record, Struct, StructField,
    ioctl::{self, NV_ESC_ALLOC_OS_EVENT, NV_ESC_RM_ALLOC, NV_ESC_RM_CONTROL, NV_ESC_RM_GET_EVENT_DATA},
    rm::{
        NV0005_ALLOC_PARAMETERS as EventParameters, NV0080_ALLOC_PARAMETERS as DeviceParameters,
        NV2080_ALLOC_PARAMETERS as SubdeviceParameters,
        NV2080_CTRL_EVENT_SET_NOTIFICATION_PARAMS as SetNotification, NVOS21_PARAMETERS as Allocate,
        NVOS41_PARAMETERS as GetEventData, NVOS54_PARAMETERS as Control, NvUnixEvent, class, control,
        nv_ioctl_alloc_os_event_t as AllocOsEvent, nv_ioctl_card_info_t as CardInfo,
    },
};
use nv_capture::{Capture, Event, MemoryKind, Recorder, diff, format};
use nv_driver::{ComputeQueue, Device, Module, Options, System, os::NvidiaNodes};
use nv_simulator::{machine::Machine, profile::Profile};

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
    if std::env::var_os("MOCKGPU_TEST_FORBID").is_some() {
        forbid_userfaultfd();
    }
    match std::env::var(CASE).as_deref() {
        Ok("look") => look(),
        Ok("compute") => compute(),
        Ok("fork") => fork(),
        Ok("numbers") => numbers(),
        Ok("past") => past(),
        Ok("cycles") => cycles(),
        Ok("events") => events(),
        Ok("again") => again(),
        Ok("again past") => {
            again_on(&System::open(Arc::new(Past(NvidiaNodes::new()))).expect("the nodes open"));
        }
        Ok("signals") => signals(),
        Ok("odd") => odd(),
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
    compute_on(&System::open(Arc::new(NvidiaNodes::new())).expect("the nodes open"));
}

/// A launch, and whether its result is right.
fn compute_on(system: &Arc<System>) {
    let device = Device::open_on(system, 0, Options::default()).expect("the device opens");
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

/// Makes `userfaultfd` fail with EPERM from now on, as containers do.
fn forbid_userfaultfd() {
    let step = |code: u32, jump_false, value| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: jump_false,
        k: value,
    };
    let mut filter = [
        // The call's number is the first word of `struct seccomp_data`.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_userfaultfd as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: restricts this process only; the program is a valid filter.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

#[test]
fn without_userfaultfd_everything_works_and_the_report_says_so() {
    let path = std::env::temp_dir().join(format!("mockgpu-report-{}-polled", std::process::id()));
    let file = path.to_str().expect("a plain path");
    run("compute", &[("MOCKGPU_REPORT", file), ("MOCKGPU_TEST_FORBID", "1")]);
    let report = fs::read_to_string(&path).expect("a report");
    fs::remove_file(&path).expect("the report is there");
    let note = report.lines().find(|line| line.starts_with("note\t")).expect("a note");
    assert!(note.contains("userfaultfd: Operation not permitted"), "{report}");
    assert!(report.contains(" kernels=1 "), "{report}");
}

/// The device nodes, mapped by system calls that no library sees.
#[derive(Debug)]
struct Past(NvidiaNodes);

impl Ioctl for Past {
    fn open(&self, node: Node) -> Result<Fd, Errno> {
        self.0.open(node)
    }

    fn close(&self, fd: Fd) -> Result<(), Errno> {
        self.0.close(fd)
    }

    fn ioctl(&self, fd: Fd, request: u32, argument: &mut [u8]) -> Result<(), Errno> {
        self.0.ioctl(fd, request, argument)
    }

    fn mmap(&self, fd: Fd, mapping: Mapping) -> Result<u64, Errno> {
        let fixed = if mapping.address.is_some() { libc::MAP_FIXED } else { 0 };
        // SAFETY: a fixed address is one that the driver reserved for it.
        let address = unsafe {
            libc::syscall(
                libc::SYS_mmap,
                mapping.address.unwrap_or(0),
                mapping.length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | fixed,
                fd.0,
                mapping.offset,
            )
        };
        let errno = || std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        if address == -1 { Err(Errno(errno())) } else { Ok(address as u64) }
    }

    fn munmap(&self, address: u64, length: u64) -> Result<(), Errno> {
        // SAFETY: the driver unmaps what it mapped.
        let result = unsafe { libc::syscall(libc::SYS_munmap, address, length) };
        if result == 0 { Ok(()) } else { Err(Errno(libc::EINVAL)) }
    }
}

impl Mmio for Past {
    fn write32(&self, page: u64, offset: u32, value: u32) -> Result<(), Errno> {
        // SAFETY: the driver names registers of a page that it mapped.
        unsafe { ((page + u64::from(offset)) as *mut u32).write_volatile(value) };
        Ok(())
    }

    fn read32(&self, page: u64, offset: u32) -> Result<u32, Errno> {
        // SAFETY: as above.
        Ok(unsafe { ((page + u64::from(offset)) as *const u32).read_volatile() })
    }
}

fn past() {
    compute_on(&System::open(Arc::new(Past(NvidiaNodes::new()))).expect("the nodes open"));
}

/// How a case is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// By the library that simulates.
    Simulated,
    /// The same where the host kernel does not offer userfaultfd.
    Forbidden,
    /// As on a card: by a copy of the library that takes the nodes for real, while another one behind it simulates them.
    Card,
    /// The same where the host kernel does not offer userfaultfd.
    CardForbidden,
}

/// What a case leaves in the file that it is told to write.
fn captured(case: &str, gpu: &str, how: How) -> Capture {
    let name = format!("mockgpu-report-{}-{}-{gpu}-{how:?}", std::process::id(), case.replace(' ', "-"));
    let path = std::env::temp_dir().join(name);
    let file = path.to_str().expect("a plain path");
    let mut variables = vec![("MOCKGPU_RECORD", file), ("MOCKGPU_GPU", gpu)];
    if matches!(how, How::Forbidden | How::CardForbidden) {
        variables.push(("MOCKGPU_TEST_FORBID", "1"));
    }
    let copy = path.with_extension("so");
    let copied = copy.to_str().expect("a plain path");
    let both = format!("{copied}:{}", library().display());
    if matches!(how, How::Card | How::CardForbidden) {
        fs::copy(library(), &copy).expect("room for a copy of the library");
        variables.extend([("MOCKGPU_CARD", copied), ("LD_PRELOAD", &both)]);
    }
    run(case, &variables);
    let text = fs::read_to_string(&path).expect("a capture");
    fs::remove_file(&path).expect("the capture is there");
    if copy.exists() {
        fs::remove_file(&copy).expect("the copy is there");
    }
    format::parse(&text).expect("it reads as one")
}

/// A program, recorded between the driver and the machine.
fn recorded(profile: Profile, program: fn(&Arc<System>)) -> Capture {
    let machine = Machine::builder().gpu(profile).driver("580.159.04").build().expect("a machine");
    let recorder = Recorder::new(Arc::clone(&machine), machine.branch()).expect("a recorder");
    program(&System::open(recorder.clone()).expect("the nodes open"));
    recorder.capture()
}

fn notes(capture: &Capture) -> Vec<&str> {
    let notes = capture.events.iter().filter_map(|event| match event {
        Event::Note(text) => Some(text.as_str()),
        _ => None,
    });
    notes.collect()
}

#[test]
fn a_capture_of_a_process_means_the_same_as_one_from_within_the_driver() {
    for (case, gpu, profile, how) in [
        ("compute", "ad102", Profile::ad102(), How::Simulated),
        ("compute", "h200", Profile::h200(), How::Forbidden),
        ("compute", "h200", Profile::h200(), How::Card),
        ("past", "ad102", Profile::ad102(), How::Simulated),
        ("past", "ga102", Profile::ga102(), How::Forbidden),
        ("past", "ga102", Profile::ga102(), How::CardForbidden),
    ] {
        let (outside, within) = (captured(case, gpu, how), recorded(profile, compute_on));
        let found = diff::captures(&within, &outside, diff::Options { calls: true, boundaries: true });
        assert!(found.is_empty(), "{case} on {gpu}: {found}");
        let launches = |capture: &Capture| {
            let is_qmd = |event: &&Event| matches!(event, Event::Memory(m) if m.kind == MemoryKind::Qmd);
            capture.events.iter().filter(is_qmd).count()
        };
        assert_eq!((launches(&outside), launches(&within)), (1, 1), "{case} on {gpu}");
    }
}

/// How often a bound launch is patched and submitted.
const TURNS: u32 = 40;

/// A launch that is bound once, and patched and submitted again as soon as it ran.
fn again_on(system: &Arc<System>) {
    let device = Device::open_on(system, 0, Options::default()).expect("the device opens");
    let cubin = fixtures::cubin(&format!("sm_{}", device.sm()), "vector_add").expect("a fixture");
    let kernel = Module::load(&device, &cubin).expect("it loads").kernel("vector_add").expect("it is there");
    let ones = device.buffer_from(&[1.0_f32; 64]).expect("memory");
    let sum = device.visible::<f32>(64).expect("memory");
    let done = device.signal(0).expect("memory");
    let mut queue = ComputeQueue::new(&device);
    let arguments = |n: u32| [(&sum).into(), (&ones).into(), (&ones).into(), n.into()];
    queue.exec(&kernel, [1, 1, 1], [64, 1, 1], &arguments(0)).expect("a launch");
    let launch = queue.last().expect("a command");
    queue.signal(&done, 1);
    let signal = queue.last().expect("a command");
    let mut queue = queue.bind().expect("memory");
    for turn in 1..=TURNS {
        queue.set_signal(signal, &done, turn.into()).expect("a signal");
        queue.set_arguments(launch, &arguments(turn)).expect("a launch");
        queue.submit().expect("room");
        device.wait(&done, turn.into(), Duration::from_secs(20)).expect("it runs");
    }
    let expected = std::array::from_fn(|index| if index < TURNS as usize { 2.0_f32 } else { 0.0 });
    assert_eq!(sum.to_vec().expect("it is visible"), expected as [f32; 64]);
}

fn again() {
    again_on(&System::open(Arc::new(NvidiaNodes::new())).expect("the nodes open"));
}

/// Launch descriptors and constant banks, each different one once.
fn different(capture: &Capture) -> [usize; 2] {
    let count = |kind| {
        let of_kind = capture.events.iter().filter_map(|event| match event {
            Event::Memory(memory) if memory.kind == kind => Some(&memory.bytes),
            _ => None,
        });
        of_kind.collect::<BTreeSet<_>>().len()
    };
    [MemoryKind::Qmd, MemoryKind::ConstantBank].map(count)
}

#[test]
fn what_is_patched_and_submitted_again_at_once_is_seen_each_time() {
    let within = recorded(Profile::h200(), again_on);
    assert_eq!(different(&within), [TURNS as usize; 2]);
    for (case, how) in [
        ("again", How::Simulated),
        ("again", How::Forbidden),
        ("again", How::Card),
        ("again", How::CardForbidden),
        ("again past", How::Card),
        ("again past", How::CardForbidden),
    ] {
        let outside = captured(case, "h200", how);
        let found = diff::captures(&within, &outside, diff::Options { calls: false, boundaries: true });
        assert!(found.is_empty(), "{case}, {how:?}: {found}");
        assert_eq!(different(&outside), [TURNS as usize; 2], "{case}, {how:?}");
        assert_eq!(notes(&outside), [""; 0], "{case}, {how:?}");
    }
}

/// Faults that the program's own handler has met.
static MET: AtomicUsize = AtomicUsize::new(0);

/// Opens the page that was stored to.
extern "C" fn mend(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel's own argument; the page is one of this test's.
    unsafe {
        let page = (*info).si_addr() as usize & !4095;
        assert_eq!(libc::mprotect(page as *mut c_void, 4096, libc::PROT_READ | libc::PROT_WRITE), 0);
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut blocked);
        let others = [libc::SIGSEGV, libc::SIGUSR1, libc::SIGUSR2];
        let others = others.map(|other| libc::sigismember(&raw const blocked, other));
        // Its own signal, what it asked for, and nothing else.
        assert_eq!((signal, others), (libc::SIGSEGV, [1, 1, 0]));
    }
    MET.fetch_add(1, Ordering::SeqCst);
}

fn closed_page() -> *mut u8 {
    // SAFETY: a new page.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(page, libc::MAP_FAILED);
    page.cast()
}

fn own_action(new: Option<&libc::sigaction>) -> libc::sigaction {
    // SAFETY: zeros are an action; the pointers are valid or null.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
        assert_eq!(libc::sigaction(libc::SIGSEGV, new, &raw mut old), 0);
        old
    }
}

/// A program that has a handler for SIGSEGV, blocks signals and has little room for handlers.
fn signals() {
    // SAFETY: as in `own_action`; the alternate stack is kept for ever.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = mend as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaddset(&raw mut action.sa_mask, libc::SIGUSR1);
        let size = libc::MINSIGSTKSZ + 6144;
        let stack = Box::leak(vec![0_u8; size].into_boxed_slice()).as_mut_ptr().cast();
        let stack = libc::stack_t { ss_sp: stack, ss_flags: 0, ss_size: size };
        assert_eq!(libc::sigaltstack(&raw const stack, std::ptr::null_mut()), 0);
        action
    };
    let fault = |met| {
        // SAFETY: the handler opens the page.
        unsafe { closed_page().write_volatile(1) };
        assert_eq!(MET.load(Ordering::SeqCst), met);
    };
    own_action(Some(&action));
    fault(1);
    again();
    // The program sees its own action, and its handler its own faults.
    assert_eq!(own_action(None).sa_sigaction, action.sa_sigaction);
    fault(2);
    // One that it sets while doorbells are watched is its own as well.
    // SAFETY: the default is an action.
    assert_eq!(unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) }, action.sa_sigaction);
    // SAFETY: the child faults.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: it ends here.
        unsafe { closed_page().write_volatile(1) };
        // SAFETY: if it did not, it ends well, which is what is not expected.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the place for the status is valid.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "status {status:#x}");
    assert_eq!(own_action(Some(&action)).sa_sigaction, libc::SIG_DFL);
    // Threads that block everything ring doorbells all the same, several at once.
    let blocked = || {
        // SAFETY: the set is filled before it is used.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut()), 0);
        }
        again();
    };
    let threads = [thread::spawn(blocked), thread::spawn(blocked), thread::spawn(again)];
    threads.into_iter().for_each(|thread| thread.join().expect("it works"));
    fault(3);
}

#[test]
fn a_recorded_program_keeps_its_own_signals() {
    for how in [How::Card, How::CardForbidden] {
        let capture = captured("signals", "ad102", how);
        assert_eq!(notes(&capture), [""; 0], "{how:?}");
        let is_submission = |event: &&Event| matches!(event, Event::Submission(_));
        let submissions = capture.events.iter().filter(is_submission).count();
        assert!(submissions > 4 * TURNS as usize, "{how:?}: {submissions} submissions");
    }
    run("signals", &[]);
}

/// The device nodes, whose doorbells ring by an instruction that nobody expects.
#[derive(Debug)]
struct Odd(NvidiaNodes);

impl Ioctl for Odd {
    fn open(&self, node: Node) -> Result<Fd, Errno> {
        self.0.open(node)
    }

    fn close(&self, fd: Fd) -> Result<(), Errno> {
        self.0.close(fd)
    }

    fn ioctl(&self, fd: Fd, request: u32, argument: &mut [u8]) -> Result<(), Errno> {
        self.0.ioctl(fd, request, argument)
    }

    fn mmap(&self, fd: Fd, mapping: Mapping) -> Result<u64, Errno> {
        self.0.mmap(fd, mapping)
    }

    fn munmap(&self, address: u64, length: u64) -> Result<(), Errno> {
        self.0.munmap(address, length)
    }
}

impl Mmio for Odd {
    fn write32(&self, page: u64, offset: u32, value: u32) -> Result<(), Errno> {
        let place = page + u64::from(offset);
        // SAFETY: as of `Past`: a store of the low word of a vector register.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!("movd {value}, {number:e}", "movd dword ptr [{place}], {value}",
                value = out(xmm_reg) _, number = in(reg) value, place = in(reg) place);
        }
        Ok(())
    }

    fn read32(&self, page: u64, offset: u32) -> Result<u32, Errno> {
        self.0.read32(page, offset)
    }
}

fn odd() {
    again_on(&System::open(Arc::new(Odd(NvidiaNodes::new()))).expect("the nodes open"));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_doorbell_that_cannot_be_watched_rings_and_the_capture_says_so() {
    let capture = captured("odd", "ad102", How::CardForbidden);
    let notes = notes(&capture);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("an instruction that is not known, 66 0f 7e"), "{notes:?}");
    let submissions = capture.events.iter().filter(|event| matches!(event, Event::Submission(_))).count();
    assert!(submissions >= TURNS as usize, "{submissions} submissions");
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

/// An escape whose struct has these fields; gives the struct as the module left it.
fn escape(fd: c_int, number: u32, layout: &'static Struct, fields: &[(&StructField, u64)]) -> Record {
    let mut record = Record::zeroed(layout, Branch::R580);
    for (field, value) in fields {
        record.set(field, *value).expect("it fits");
    }
    let request = ioctl::request(number, record.bytes().len());
    let argument = record.bytes_mut().as_mut_ptr().cast::<c_void>();
    // SAFETY: the argument is as long as the request says.
    assert_eq!(unsafe { libc::ioctl(fd, request.into(), argument) }, 0, "escape {number:#x}");
    record
}

fn allocate(fd: c_int, root: u64, parent: u64, class: u32, parameters: Option<&mut Record>) -> u64 {
    let address = parameters.map_or(0, |record| record.bytes_mut().as_mut_ptr() as u64);
    let fields = [
        (&Allocate::hRoot, root),
        (&Allocate::hObjectParent, parent),
        (&Allocate::hClass, class.into()),
        (&Allocate::pAllocParms, address),
    ];
    let record = escape(fd, NV_ESC_RM_ALLOC, &Allocate::STRUCT, &fields);
    assert_eq!(record.get(&Allocate::status), Ok(0), "class {class:#x}");
    record.get(&Allocate::hObjectNew).expect("a field of the struct")
}

/// What `poll` says of a descriptor within a time.
fn poll(fd: c_int, events: i16, milliseconds: c_int) -> i16 {
    let mut entry = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: one entry.
    let ready = unsafe { libc::poll(&raw mut entry, 1, milliseconds) };
    assert_eq!(ready, c_int::from(entry.revents != 0));
    entry.revents
}

/// A copy from where nothing is mapped.
fn fault() {
    let system = System::open(Arc::new(NvidiaNodes::new())).expect("the nodes open");
    let device = Device::open_on(&system, 0, Options::default()).expect("the device opens");
    let destination = device.video::<u8>(64).expect("memory");
    let copied = device.copy(destination.address(), 0x1_2345_6000, 64).and_then(|()| device.synchronize());
    assert!(copied.is_err(), "nothing is mapped there");
}

/// A fault on a GPU wakes who waits for RC_ERROR on a descriptor.
fn events() {
    const RC_ERROR: u64 = 37;
    let (ctl, gpu) = (open(c"/dev/nvidiactl"), open(c"/dev/nvidia0"));
    let root = allocate(ctl, 0, 0, class::NV01_ROOT_CLIENT, None);
    let mut parameters = Record::zeroed(&DeviceParameters::STRUCT, Branch::R580);
    let device = allocate(ctl, root, root, class::NV01_DEVICE_0, Some(&mut parameters));
    let mut parameters = Record::zeroed(&SubdeviceParameters::STRUCT, Branch::R580);
    let subdevice = allocate(ctl, root, device, class::NV20_SUBDEVICE_0, Some(&mut parameters));
    let fields = [(&AllocOsEvent::hClient, root), (&AllocOsEvent::fd, gpu as u64)];
    let made = escape(gpu, NV_ESC_ALLOC_OS_EVENT, &AllocOsEvent::STRUCT, &fields);
    assert_eq!(made.get(&AllocOsEvent::Status), Ok(0));
    let mut parameters = Record::zeroed(&EventParameters::STRUCT, Branch::R580);
    for (field, value) in [
        (&EventParameters::hClass, class::NV01_EVENT_OS_EVENT.into()),
        (&EventParameters::notifyIndex, RC_ERROR),
        (&EventParameters::data, gpu as u64),
    ] {
        parameters.set(field, value).expect("it fits");
    }
    allocate(ctl, root, subdevice, class::NV01_EVENT_OS_EVENT, Some(&mut parameters));
    let mut parameters = Record::zeroed(&SetNotification::STRUCT, Branch::R580);
    parameters.set(&SetNotification::event, RC_ERROR).expect("it fits");
    parameters.set(&SetNotification::action, 2).expect("it fits");
    let fields = [
        (&Control::hClient, root),
        (&Control::hObject, subdevice),
        (&Control::cmd, control::NV2080_CTRL_CMD_EVENT_SET_NOTIFICATION.into()),
        (&Control::params, parameters.bytes_mut().as_mut_ptr() as u64),
        (&Control::paramsSize, parameters.bytes().len() as u64),
    ];
    let armed = escape(ctl, NV_ESC_RM_CONTROL, &Control::STRUCT, &fields);
    assert_eq!(armed.get(&Control::status), Ok(0));
    assert_eq!(poll(gpu, libc::POLLIN | libc::POLLPRI, 0), 0);

    let waiter = thread::spawn(move || poll(gpu, libc::POLLPRI, 20_000));
    fault();
    assert_eq!(waiter.join().expect("it waits"), libc::POLLPRI);
    assert_eq!(poll(gpu, libc::POLLIN | libc::POLLPRI, 0), libc::POLLIN | libc::POLLPRI);
    let mut event = Record::zeroed(&NvUnixEvent::STRUCT, Branch::R580);
    let fields = [(&GetEventData::pEvent, event.bytes_mut().as_mut_ptr() as u64)];
    let taken = escape(gpu, NV_ESC_RM_GET_EVENT_DATA, &GetEventData::STRUCT, &fields);
    assert_eq!(taken.get(&GetEventData::status), Ok(0));
    assert_eq!(event.get(&NvUnixEvent::NotifyIndex), Ok(RC_ERROR));
    assert_eq!(poll(gpu, libc::POLLIN | libc::POLLPRI, 0), 0, "nothing waits any more");
}

#[test]
fn poll_wakes_when_an_event_waits_and_only_then() {
    run("events", &[]);
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
