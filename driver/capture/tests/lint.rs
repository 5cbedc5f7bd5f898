//! Every rule, on a capture that breaks it and on the same capture put right.
#![allow(clippy::unwrap_used)]

use nv_abi::{
    Branch, Fd, Node, Record,
    arch::Generation,
    compute::AMPERE_COMPUTE_A as compute,
    copy::AMPERE_DMA_COPY_A as copy,
    gpfifo::Entry,
    host::AMPERE_CHANNEL_GPFIFO_A as host,
    ioctl,
    method::{Form, Header, Method},
    qmd::{ConstantBuffer, Qmd, Version, rows::V03_00},
    rm::{self, class},
    uvm::{self, UVM_FREE_PARAMS, UVM_MAP_EXTERNAL_ALLOCATION_PARAMS},
};
use nv_capture::{
    Capture, Event, IoctlEvent, Memory, MemoryKind, Submission,
    lint::{RULES, lint},
};

/// The compute channel and the copy channel.
const COMPUTE: u32 = 1;
const COPY: u32 = 2;
const CODE: u64 = 0x10_0000_0000;
const DATA: u64 = 0x11_0000_0000;
const QMD: u64 = 0x12_0000_0100;
const BANK: u64 = 0x12_0000_0200;
const SIGNAL: u64 = 0x13_0000_0000;
const COMMANDS: u64 = 0x14_0000_0000;

#[derive(Default)]
struct Script {
    events: Vec<Event>,
    slots: [u32; 3],
}

fn send(words: &mut Vec<u32>, subchannel: u8, method: Method, data: &[u32]) {
    let header =
        Header { form: Form::Increment, subchannel, address: method.address, count: data.len() as u32 };
    words.push(header.encode().unwrap());
    words.extend(data);
}

fn halves(address: u64) -> [u32; 2] {
    [(address >> 32) as u32, address as u32]
}

impl Script {
    /// Memory for code, data, descriptors and signals, and both channels with their classes bound.
    fn new() -> Self {
        let mut script = Self::default();
        for base in [CODE, DATA, 0x12_0000_0000, SIGNAL] {
            script.map(base);
        }
        let classes = Generation::Ada.classes();
        script.submit(COMPUTE, |words| send(words, 1, compute::SET_OBJECT, &[classes.compute]));
        script.submit(COPY, |words| send(words, 4, host::SET_OBJECT, &[classes.copy]));
        script
    }

    fn call(&mut self, request: u32, record: &Record) {
        self.events.push(Event::Ioctl(Box::new(IoctlEvent {
            fd: Fd(3),
            node: Node::Uvm,
            request,
            before: record.bytes().to_vec(),
            after: record.bytes().to_vec(),
            nested_before: vec![],
            nested_after: vec![],
            result: Ok(()),
        })));
    }

    fn map(&mut self, base: u64) {
        use UVM_MAP_EXTERNAL_ALLOCATION_PARAMS as p;
        let mut record = Record::zeroed(&p::STRUCT, Branch::R580);
        record.set(&p::base, base).unwrap();
        record.set(&p::length, 0x1_0000).unwrap();
        self.call(uvm::UVM_MAP_EXTERNAL_ALLOCATION, &record);
    }

    fn unmap(&mut self, base: u64) {
        let mut record = Record::zeroed(&UVM_FREE_PARAMS::STRUCT, Branch::R580);
        record.set(&UVM_FREE_PARAMS::base, base).unwrap();
        self.call(uvm::UVM_FREE, &record);
    }

    fn submit(&mut self, channel: u32, fill: impl FnOnce(&mut Vec<u32>)) {
        let place = COMMANDS + 0x1000 * self.events.len() as u64;
        self.submit_from(place, channel, fill);
    }

    fn submit_from(&mut self, place: u64, channel: u32, fill: impl FnOnce(&mut Vec<u32>)) {
        let mut words = Vec::new();
        fill(&mut words);
        let slot = self.slots[channel as usize];
        self.slots[channel as usize] += 1;
        let entry = Entry::segment(place, words.len() as u32).encode().unwrap();
        let class = class::AMPERE_CHANNEL_GPFIFO_A;
        let submission = Submission { channel, class, slot, entry, words: Some(words), time: None };
        self.events.push(Event::Submission(submission));
    }

    /// A descriptor with one argument, as it lies in memory.
    fn describe(&mut self, bank_bytes: u64, change: impl FnOnce(&mut Qmd)) {
        let mut qmd = Qmd::new(Version::V03_00);
        qmd.set_grid([1, 1, 1]).unwrap();
        qmd.set_block([32, 1, 1]).unwrap();
        qmd.set_program(CODE, 0x100).unwrap();
        qmd.set_constant_buffer(0, ConstantBuffer { address: BANK, bytes: bank_bytes }).unwrap();
        change(&mut qmd);
        let mut bank = vec![0; 0x168];
        bank[0x160..].copy_from_slice(&DATA.to_le_bytes());
        let memory = |kind, address, bytes| Event::Memory(Memory { kind, address, bytes });
        self.events.push(memory(MemoryKind::ConstantBank, BANK, bank));
        self.events.push(memory(MemoryKind::Qmd, QMD, qmd.bytes().to_vec()));
    }

    fn launch(&mut self, before: impl FnOnce(&mut Vec<u32>), after: impl FnOnce(&mut Vec<u32>)) {
        self.submit(COMPUTE, |words| {
            before(words);
            send(words, 1, compute::SEND_PCAS_A, &[(QMD >> 8) as u32]);
            send(words, 1, compute::SEND_SIGNALING_PCAS2_B, &[9]);
            after(words);
        });
    }

    fn findings(&self) -> Vec<&'static str> {
        let capture = Capture { branch: Branch::R580, events: self.events.clone() };
        lint(&capture).into_iter().map(|finding| finding.rule).collect()
    }
}

fn semaphore(words: &mut Vec<u32>, address: u64, payload: u32, execute: u32) {
    let [upper, lower] = halves(address);
    send(words, 0, host::SEM_ADDR_LO, &[lower, upper, payload, 0, execute]);
}

const ACQUIRE: u32 = 3 | 1 << 24;
const RELEASE: u32 = 1 | 1 << 24;
const WAIT: u32 = 1 << 20;
const TIME: u32 = 1 << 25;

fn copy_to(words: &mut Vec<u32>, destination: u64) {
    let ([a, b], [c, d]) = (halves(SIGNAL + 0x1000), halves(destination));
    send(words, 4, copy::OFFSET_IN_UPPER, &[a, b, c, d]);
    send(words, 4, copy::LINE_LENGTH_IN, &[0x1000]);
    send(words, 4, copy::LAUNCH_DMA, &[0x182]);
}

fn copy_release(words: &mut Vec<u32>, address: u64, payload: u32) {
    let [upper, lower] = halves(address);
    send(words, 4, copy::SET_SEMAPHORE_A, &[upper, lower, payload]);
    send(words, 4, copy::LAUNCH_DMA, &[0x14]);
}

fn invalidate(words: &mut Vec<u32>) {
    send(words, 1, compute::INVALIDATE_SHADER_CACHES_NO_WFI, &[0x1011]);
}

fn nothing(_: &mut Vec<u32>) {}

/// A script that breaks the rule of that name, and one that does not.
fn scripts(rule: &str) -> (Script, Script) {
    let of = |build: &dyn Fn(&mut Script, bool)| {
        let (mut bad, mut good) = (Script::new(), Script::new());
        build(&mut bad, true);
        build(&mut good, false);
        (bad, good)
    };
    match rule {
        "misaligned-semaphore" => of(&|script, bad| {
            let address = SIGNAL + if bad { 8 } else { 16 };
            script.submit(COMPUTE, |words| semaphore(words, address, 1, RELEASE | WAIT | TIME));
        }),
        "release-without-wait" => of(&|script, bad| {
            script.describe(0x168, |_| ());
            let wait = if bad { 0 } else { WAIT };
            script.launch(nothing, |words| semaphore(words, SIGNAL, 1, RELEASE | wait));
        }),
        "stale-instructions" => of(&|script, bad| {
            script.submit(COPY, |words| {
                copy_to(words, CODE);
                copy_release(words, SIGNAL, 1);
            });
            script.describe(0x168, |_| ());
            script.launch(
                |words| {
                    semaphore(words, SIGNAL, 1, ACQUIRE);
                    if !bad {
                        invalidate(words);
                    }
                },
                nothing,
            );
        }),
        "unordered-copy" => of(&|script, bad| {
            script.submit(COPY, |words| {
                copy_to(words, DATA);
                copy_release(words, SIGNAL, 1);
            });
            script.describe(0x168, |_| ());
            script.launch(
                |words| {
                    if !bad {
                        semaphore(words, SIGNAL, 1, ACQUIRE);
                    }
                },
                nothing,
            );
        }),
        "constant-bank-size" => of(&|script, bad| {
            // In bytes where units of 16 are meant.
            script.describe(if bad { 0x1680 * 16 } else { 0x168 }, |_| ());
            script.launch(nothing, nothing);
        }),
        "disabled-slot" => of(&|script, bad| {
            script.describe(0x168, |qmd| {
                qmd.set(&V03_00::RELEASE0_ADDRESS_LOWER, SIGNAL & 0xffff_ffff | 0x20).unwrap();
                qmd.set(&V03_00::RELEASE0_ADDRESS_UPPER, SIGNAL >> 32).unwrap();
                qmd.set(&V03_00::RELEASE0_ENABLE, u64::from(!bad)).unwrap();
            });
            script.launch(nothing, nothing);
        }),
        "no-such-method" => of(&|script, bad| {
            let number = if bad { 7 } else { 3 };
            script.submit(COMPUTE, |words| semaphore(words, SIGNAL, 1, number | 1 << 24));
        }),
        "indistinguishable-release" => of(&|script, bad| {
            script.submit(COMPUTE, |words| {
                semaphore(words, SIGNAL, 1, RELEASE | WAIT);
                semaphore(words, SIGNAL, if bad { 1 } else { 2 }, RELEASE | WAIT);
            });
        }),
        "ring-overrun" => of(&|script, bad| {
            script.submit_from(COMMANDS, COMPUTE, |words| {
                invalidate(words);
                if !bad {
                    semaphore(words, SIGNAL, 1, RELEASE | WAIT);
                }
            });
            script.submit_from(COMMANDS + 4, COMPUTE, invalidate);
        }),
        "freed-memory" => of(&|script, bad| {
            if bad {
                script.unmap(SIGNAL);
            }
            script.submit(COMPUTE, |words| semaphore(words, SIGNAL, 1, RELEASE | WAIT));
        }),
        other => panic!("no examples for {other}"),
    }
}

#[test]
fn a_ring_that_goes_round_without_a_release_is_found_and_one_with_is_not() {
    use rm::NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS as Channel;
    for (pause, expected) in [(6, 0), (7, 1)] {
        let mut script = Script::new();
        let mut parameters = Record::zeroed(&Channel::STRUCT, Branch::R580);
        parameters.set(&Channel::gpFifoEntries, 8).unwrap();
        let mut argument = Record::zeroed(&rm::NVOS21_PARAMETERS::STRUCT, Branch::R580);
        argument.set(&rm::NVOS21_PARAMETERS::hObjectNew, COMPUTE.into()).unwrap();
        argument.set(&rm::NVOS21_PARAMETERS::hClass, class::AMPERE_CHANNEL_GPFIFO_A.into()).unwrap();
        script.events.push(Event::Ioctl(Box::new(IoctlEvent {
            fd: Fd(3),
            node: Node::Ctl,
            request: ioctl::request(ioctl::NV_ESC_RM_ALLOC, argument.bytes().len()),
            before: argument.bytes().to_vec(),
            after: argument.bytes().to_vec(),
            nested_before: parameters.bytes().to_vec(),
            nested_after: parameters.bytes().to_vec(),
            result: Ok(()),
        })));
        // Seven entries of the ring can be in use, and the one that binds the class is unread as well.
        for number in 1..20 {
            script.submit(COMPUTE, |words| match number % pause {
                0 => semaphore(words, SIGNAL, number, RELEASE | WAIT),
                _ => invalidate(words),
            });
        }
        assert_eq!(script.findings(), vec!["ring-overrun"; expected], "a release every {pause}");
    }
}

#[test]
fn every_rule_finds_its_example_and_nothing_in_the_same_put_right() {
    for rule in RULES {
        let (bad, good) = scripts(rule.name);
        assert_eq!(bad.findings(), [rule.name], "{}: {}", rule.name, rule.finds);
        assert!(good.findings().is_empty(), "{}: {:?}", rule.name, good.findings());
    }
}
