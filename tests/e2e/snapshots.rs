//! What the driver writes for the GPU, as a reviewer reads it: a launch, a copy, semaphores, a bound queue, on Ada and on
//! Hopper. Addresses are moved to places that depend on the program alone.

use std::sync::Arc;

use nv_abi::Branch;
use nv_capture::{
    Capture, Event, MemoryKind, Recorder, cut, diff, format, lint,
    normal::normalise,
    replay::{Report, replay},
    text::submissions,
};
use nv_driver::{ArgumentPath, ComputeQueue, CopyQueue, Device, Module, Options, System, os::SharedPages};
use nv_simulator::{machine::Machine, profile::Profile};
use tests::{DEADLINE, DRIVER};

/// A device whose calls and submissions are recorded.
struct Recorded {
    recorder: Arc<Recorder<Machine>>,
    device: Device,
    /// Events before the part of interest.
    before: usize,
}

impl Recorded {
    fn new(profile: &Profile, arguments: ArgumentPath) -> Self {
        let machine = Machine::builder().driver(DRIVER).gpu(profile.clone()).build().unwrap();
        let recorder = Recorder::new(machine, Branch::R580).unwrap();
        let system = System::open(recorder.clone()).unwrap();
        let mut options = Options::default();
        options.arguments = arguments;
        let device = Device::open_on(&system, 0, options).unwrap();
        recorder.name(device.timeline().0.address(), 16, "timeline");
        Self { recorder, device, before: 0 }
    }

    fn name<T: nv_driver::Element>(&self, buffer: &nv_driver::Buffer<T>, name: &str) {
        self.recorder.name(buffer.address(), buffer.bytes(), name);
    }

    /// What follows is of interest.
    fn begin(&mut self) {
        self.before = self.recorder.events().len();
    }

    /// The submissions since then, in places of their own.
    fn text(&self) -> String {
        let capture = self.recorder.capture();
        let before = &capture.events[..self.before];
        let skip = before.iter().filter(|event| matches!(event, Event::Submission(_))).count();
        submissions(&normalise(&capture), skip)
    }

    fn vector_add(&self) -> nv_driver::Kernel {
        let cubin = fixtures::cubin(&format!("sm_{}", self.device.sm()), "vector_add").unwrap();
        let module = Module::load(&self.device, &cubin).unwrap();
        self.recorder.name(module.address(), module.cubin().image_bytes(), "module");
        module.kernel("vector_add").unwrap()
    }
}

/// Both generations, with a name for each.
fn generations() -> [(&'static str, Profile); 2] {
    [("ada", Profile::ad102()), ("hopper", Profile::h200())]
}

#[test]
fn a_launch_reads_as_its_methods_descriptor_and_arguments() {
    for (name, profile) in generations() {
        let mut recorded = Recorded::new(&profile, ArgumentPath::CpuWritten);
        let device = recorded.device.clone();
        let kernel = recorded.vector_add();
        let (a, sum) = (device.buffer_from(&[1.0f32; 1000]).unwrap(), device.video::<f32>(1000).unwrap());
        recorded.name(&a, "a");
        recorded.name(&sum, "sum");
        recorded.begin();
        kernel
            .launch([4, 1, 1], [256, 1, 1], &[(&sum).into(), (&a).into(), (&a).into(), 1000u32.into()])
            .unwrap();
        device.synchronize().unwrap();
        insta::assert_snapshot!(format!("launch_{name}"), recorded.text());
    }
}

#[test]
fn arguments_that_travel_in_the_pushbuffer_are_uploaded_before_the_launch() {
    let (name, profile) = &generations()[0];
    let mut recorded = Recorded::new(profile, ArgumentPath::InlineToMemory);
    let device = recorded.device.clone();
    let kernel = recorded.vector_add();
    let sum = device.buffer_from(&[1.0f32; 64]).unwrap();
    recorded.name(&sum, "sum");
    recorded.begin();
    kernel
        .launch([1, 1, 1], [64, 1, 1], &[(&sum).into(), (&sum).into(), (&sum).into(), 64u32.into()])
        .unwrap();
    device.synchronize().unwrap();
    insta::assert_snapshot!(format!("launch_inline_{name}"), recorded.text());
}

#[test]
fn a_copy_reads_as_its_addresses_and_length() {
    for (name, profile) in generations() {
        let mut recorded = Recorded::new(&profile, ArgumentPath::CpuWritten);
        let device = recorded.device.clone();
        let source = device.buffer_from(&[7u8; 5000]).unwrap();
        let target = device.video::<u8>(5000).unwrap();
        let done = device.signal(0).unwrap();
        recorded.name(&source, "source");
        recorded.name(&target, "target");
        recorded.begin();
        let mut queue = CopyQueue::new(&device);
        queue.copy(target.address(), source.address(), source.bytes()).signal(&done, 3);
        queue.submit().unwrap();
        device.wait(&done, 3, DEADLINE).unwrap();
        insta::assert_snapshot!(format!("copy_{name}"), recorded.text());
    }
}

#[test]
fn a_wait_and_a_signal_read_as_semaphores() {
    for (name, profile) in generations() {
        let mut recorded = Recorded::new(&profile, ArgumentPath::CpuWritten);
        let device = recorded.device.clone();
        let (gate, done) = (device.signal(1).unwrap(), device.signal(0).unwrap());
        recorded.begin();
        let mut queue = ComputeQueue::new(&device);
        queue.wait(&gate, 1).timestamp(&done).signal(&done, 0x1_0000_0002);
        queue.submit().unwrap();
        device.wait(&done, 0x1_0000_0002, DEADLINE).unwrap();
        insta::assert_snapshot!(format!("semaphores_{name}"), recorded.text());
    }
}

#[test]
fn a_bound_queue_differs_between_submissions_only_in_what_was_patched() {
    for (name, profile) in generations() {
        let mut recorded = Recorded::new(&profile, ArgumentPath::CpuWritten);
        let device = recorded.device.clone();
        let kernel = recorded.vector_add();
        let sum = device.buffer_from(&[1.0f32; 128]).unwrap();
        let done = device.signal(0).unwrap();
        recorded.name(&sum, "sum");
        recorded.begin();
        let mut queue = ComputeQueue::new(&device);
        let arguments = [(&sum).into(), (&sum).into(), (&sum).into(), 128u32.into()];
        queue.exec(&kernel, [1, 1, 1], [64, 1, 1], &arguments).unwrap();
        let launch = queue.last().unwrap();
        queue.signal(&done, 1);
        let signal = queue.last().unwrap();
        let mut queue = queue.bind().unwrap();
        queue.submit().unwrap();
        device.wait(&done, 1, DEADLINE).unwrap();
        queue.set_dimensions(launch, [2, 1, 1], [64, 1, 1]).unwrap();
        queue.set_signal(signal, &done, 2).unwrap();
        queue.submit().unwrap();
        device.wait(&done, 2, DEADLINE).unwrap();
        drop(queue);
        insta::assert_snapshot!(format!("bound_{name}"), recorded.text());
    }
}

/// A capture of a launch.
fn launched(grid: u32) -> Capture {
    launched_often(grid, 1)
}

/// A capture of several launches.
fn launched_often(grid: u32, times: usize) -> Capture {
    let recorded = Recorded::new(&Profile::ad102(), ArgumentPath::CpuWritten);
    recorded.recorder.note_data();
    let device = recorded.device.clone();
    let kernel = recorded.vector_add();
    let (a, sum) = (device.buffer_from(&[1.0f32; 1000]).unwrap(), device.video::<f32>(1000).unwrap());
    let arguments = [(&sum).into(), (&a).into(), (&a).into(), 1000u32.into()];
    for _ in 0..times {
        kernel.launch([grid, 1, 1], [256, 1, 1], &arguments).unwrap();
    }
    device.synchronize().unwrap();
    recorded.recorder.capture()
}

/// Replays on a machine of its own.
fn replayed(capture: &Capture) -> (Report, Arc<Machine>) {
    let machine = Machine::builder().driver(DRIVER).gpu(Profile::ad102()).build().unwrap();
    let mut kept = Vec::new();
    let mut pages = |bytes| {
        kept.push(SharedPages::new(bytes)?);
        Ok(kept.last().map_or(0, SharedPages::address))
    };
    let report = replay(capture, &*machine, &mut pages).unwrap();
    assert!(report.differences.is_empty(), "{:#?}", report.differences);
    assert!(machine.faults().is_empty(), "{:?}", machine.faults());
    (report, machine)
}

#[test]
fn a_capture_reads_back_from_its_text_and_replays_without_a_difference() {
    let capture = launched(4);
    let read = format::parse(&format::text(&capture)).unwrap();
    assert_eq!(read, capture);
    let (report, machine) = replayed(&read);
    assert!(report.submissions > 8 && report.semaphores > 0 && report.calls > 50, "{report:?}");
    // The kernel ran again, on the data of the capture.
    let (did, instructions) = (&machine.statistics()[0], 1000 / 32 * 16);
    assert!(did.launches == 1 && did.instructions >= instructions, "{did:?}");
}

#[test]
fn a_submission_that_is_cut_out_runs_alone() {
    let capture = launched_often(4, 3);
    let (_, machine) = replayed(&capture);
    assert_eq!(machine.statistics()[0].launches, 3);
    // A descriptor is noted in front of the submission that launches it.
    let is_qmd = |event: &Event| matches!(event, Event::Memory(found) if found.kind == MemoryKind::Qmd);
    let qmd = capture.events.iter().rposition(is_qmd).expect("a launch");
    let count = |events: &[Event]| events.iter().filter(|e| matches!(e, Event::Submission(_))).count();
    let last = count(&capture.events[..qmd]);
    let alone = cut::only(&capture, last).expect("it is there");
    let (_, machine) = replayed(&alone);
    assert_eq!(machine.statistics()[0].launches, 1);
    assert_eq!(cut::only(&capture, count(&capture.events)), None);
}

#[test]
fn two_runs_of_one_program_do_not_differ_and_another_grid_is_all_that_does() {
    let (first, second, wider) = (launched(4), launched(4), launched(8));
    let options = diff::Options::default();
    let same = diff::captures(&first, &second, options);
    assert!(same.is_empty() && same.compared > 100, "{same}");
    let different = diff::captures(&first, &wider, options);
    assert_eq!(different.len(), 1, "{different}");
    assert!(different.to_string().contains("grid: 4 x 1 x 1 -> 8 x 1 x 1"), "{different}");
}

#[test]
fn the_drivers_own_submissions_break_no_rule() {
    let findings = lint::lint(&launched(4));
    assert!(findings.is_empty(), "{findings:?}");
}
