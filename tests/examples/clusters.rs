//! How a card wants a cluster of blocks to be launched, and what the blocks can do to each other.
//!
//! `clusters [--simulator] [--mode N]` launches `fixtures/kinds/cluster_probe.cu` with descriptors of several forms, each
//! on a device of its own after a failure, and prints what came of it: of each block the words that it left. Then it asks
//! the questions of the kernel, its modes, with the first form that makes clusters.

use std::sync::Arc;
use std::time::Duration;

use nv_abi::compute::AMPERE_COMPUTE_A::{
    INVALIDATE_SHADER_CACHES_NO_WFI, SEND_PCAS_A, SEND_SIGNALING_PCAS2_B,
};
use nv_abi::method::{Form, Header};
use nv_abi::qmd::{ConstantBuffer, Qmd, Release, StructureSize, Version, rows::V04_00};
use nv_driver::{ComputeQueue, Device, Module, Options, System, os::NvidiaNodes};
use nv_simulator::{machine::Machine, profile::Profile};

type Failure = Box<dyn std::error::Error>;

/// Words that a block of the kernel writes.
const WORDS: usize = 16;
/// Bytes of constant bank 0 that the kernel's code reads.
const BANK: usize = 0x220;

/// A form of a launch.
#[derive(Clone, Copy, Debug)]
struct Variant {
    name: &'static str,
    kind: u64,
    grid: [u32; 3],
    cluster: [u32; 3],
    /// `GRID_*` as they are set.
    units: [u32; 3],
    /// `GPC_CGA_*` and `GPU_CGA_*` as they are set.
    gpc: [u32; 3],
    gpu: [u32; 3],
    more: &'static [(nv_abi::Field, u64)],
}

const CTA: u64 = V04_00::QMD_TYPE::GRID_CTA;
const GPC: u64 = V04_00::QMD_TYPE::GRID_GPC_CGA;

const fn variant(name: &'static str, kind: u64, grid: [u32; 3], cluster: [u32; 3]) -> Variant {
    let units = [grid[0] / cluster[0], grid[1] / cluster[1], grid[2] / cluster[2]];
    Variant { name, kind, grid, cluster, units, gpc: cluster, gpu: [0; 3], more: &[] }
}

const VARIANTS: &[Variant] = &[
    Variant { gpc: [0; 3], ..variant("no cluster", CTA, [4, 1, 1], [1, 1, 1]) },
    variant("2 of 4", GPC, [4, 1, 1], [2, 1, 1]),
    Variant { gpc: [1, 0, 0], ..variant("2 of 4, less one", GPC, [4, 1, 1], [2, 1, 1]) },
    Variant { gpu: [2, 1, 1], ..variant("2 of 4, both shapes", GPC, [4, 1, 1], [2, 1, 1]) },
    Variant { gpu: [1, 1, 1], ..variant("2 of 4, a GPU shape of one", GPC, [4, 1, 1], [2, 1, 1]) },
    Variant {
        gpu: [2, 1, 1],
        ..variant("2 of 4, GPU and GPC", V04_00::QMD_TYPE::GRID_GPU_GPC_CGA, [4, 1, 1], [2, 1, 1])
    },
    Variant { units: [4, 1, 1], ..variant("2 of 4, plain type", CTA, [4, 1, 1], [2, 1, 1]) },
    Variant {
        more: &[(V04_00::CGA_CTA_DISTRIBUTION_MODE, 1)],
        ..variant("2 of 4, multicast", GPC, [4, 1, 1], [2, 1, 1])
    },
    variant("1 of 2", GPC, [2, 1, 1], [1, 1, 1]),
    variant("4 of 4 x 2", GPC, [4, 2, 1], [4, 1, 1]),
    variant("2 x 2 of 4 x 2", GPC, [4, 2, 1], [2, 2, 1]),
    variant("1 x 2 x 2 of 2 x 2 x 2", GPC, [2, 2, 2], [1, 2, 2]),
    variant("8 of 8", GPC, [8, 1, 1], [8, 1, 1]),
    variant("16 of 16", GPC, [16, 1, 1], [16, 1, 1]),
    variant("32 of 32", GPC, [32, 1, 1], [32, 1, 1]),
    Variant { units: [4, 1, 1], ..variant("2 of 4, counted in blocks", GPC, [4, 1, 1], [2, 1, 1]) },
];

struct Probe {
    card: bool,
    open: Option<(Device, Module)>,
    machine: Option<Arc<Machine>>,
}

impl Probe {
    fn device(&mut self) -> Result<(Device, Module), Failure> {
        if let Some(open) = &self.open {
            return Ok(open.clone());
        }
        let system = if self.card {
            System::open(Arc::new(NvidiaNodes::new()))?
        } else {
            let machine = Machine::builder().gpu(Profile::h200()).driver(tests::DRIVER).build()?;
            self.machine = Some(machine.clone());
            System::open(machine)?
        };
        let mut options = Options::default();
        options.deadline = Duration::from_secs(2);
        let device = Device::open_on(&system, 0, options)?;
        let module = Module::load(&device, &fixtures::bytes("kinds/sm_90/cluster_probe.cubin")?)?;
        self.open = Some((device.clone(), module.clone()));
        Ok((device, module))
    }

    /// Launches, and returns what the blocks left, with the failure if there was one.
    fn launch(&mut self, variant: &Variant, mode: u32) -> Result<(Vec<u32>, Option<String>), Failure> {
        let (device, module) = self.device()?;
        let kernel = module.kernel("cluster_probe")?;
        let info = kernel.info().clone();
        let blocks: u32 = variant.grid.iter().product();
        // Room for those who are too many.
        let out = device.visible::<u32>(4 * blocks as usize * WORDS)?;
        out.copy_from(&vec![0; out.len()])?;
        let size: u32 = variant.cluster.iter().product();

        let mut bank = vec![0u32; BANK / 4];
        for axis in 0..3 {
            bank[axis] = [64, 1, 1][axis];
            bank[3 + axis] = variant.grid[axis];
            bank[0x144 / 4 + axis] = variant.cluster[axis];
            bank[0x150 / 4 + axis] = (1.0 / variant.cluster[axis] as f32).to_bits();
            bank[0x15c / 4 + axis] = variant.grid[axis] / variant.cluster[axis];
        }
        bank[0x28 / 4] = 0xff_fdc0;
        bank[0x140 / 4] = 1;
        bank[0x188 / 4] = size;
        let parameters = [out.address() as u32, (out.address() >> 32) as u32, mode, size];
        let first = info.parameter_base as usize / 4;
        bank[first..first + 4].copy_from_slice(&parameters);

        // The bank first, then the descriptor.
        let memory = device.visible::<u32>(0x1000 / 4 + Version::V04_00.bytes() / 4)?;
        let signal = device.signal(0)?;
        let mut qmd = Qmd::new(Version::V04_00);
        let rows = Version::V04_00.rows();
        for field in [
            &rows.invalidate_texture_header,
            &rows.invalidate_texture_sampler,
            &rows.invalidate_texture_data,
            &rows.invalidate_shader_data,
            &rows.call_limit,
            &rows.sampler_index,
            &rows.membar,
        ] {
            qmd.set(field, 1)?;
        }
        qmd.set(&rows.group_id, 0x3f)?;
        qmd.set(&rows.sass_version, 0x90)?;
        qmd.set(&V04_00::QMD_TYPE, variant.kind)?;
        let shapes = [V04_00::GPC_CGA_WIDTH, V04_00::GPC_CGA_HEIGHT, V04_00::GPC_CGA_DEPTH];
        for (field, value) in shapes.iter().zip(variant.gpc) {
            qmd.set(field, value.into())?;
        }
        let shapes = [V04_00::GPU_CGA_WIDTH, V04_00::GPU_CGA_HEIGHT, V04_00::GPU_CGA_DEPTH];
        for (field, value) in shapes.iter().zip(variant.gpu) {
            qmd.set(field, value.into())?;
        }
        for (field, value) in variant.more {
            qmd.set(field, *value)?;
        }
        qmd.set_shared_memory(info.shared_bytes.next_multiple_of(256), [9, 58, 9])?;
        qmd.set_registers(info.registers)?;
        qmd.set_barriers(info.barriers)?;
        qmd.set_grid(variant.units)?;
        qmd.set_block([64, 1, 1])?;
        qmd.set_program(module.address() + info.code.start, info.code.end - info.code.start)?;
        qmd.set_constant_buffer(0, ConstantBuffer { address: memory.address(), bytes: BANK as u64 })?;
        for (index, bank) in (0..).zip(&info.constant_banks).skip(1) {
            if let Some(bank) = bank {
                let address = module.address() + bank.offset;
                qmd.set_constant_buffer(index, ConstantBuffer { address, bytes: bank.bytes.into() })?;
            }
        }
        let release = Release {
            address: signal.address(),
            payload: 1,
            structure_size: StructureSize::FourWords,
            payload_64: true,
            membar: true,
            reduction: None,
            trap_type: 0,
        };
        qmd.set_release(0, Some(release))?;
        bank.resize(0x1000 / 4, 0);
        let words = qmd.bytes().chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        bank.extend(words);
        memory.copy_from(&bank)?;

        let header =
            |address: u32| Header { form: Form::Increment, subchannel: 1, address, count: 1 }.encode();
        use SEND_SIGNALING_PCAS2_B::PCAS_ACTION as A;
        let mut queue = ComputeQueue::new(&device);
        queue.words(&[
            header(INVALIDATE_SHADER_CACHES_NO_WFI.address)?,
            0x1011,
            header(SEND_PCAS_A.address)?,
            ((memory.address() + 0x1000) >> 8) as u32,
            header(SEND_SIGNALING_PCAS2_B.address)?,
            (A::PREFETCH_SCHEDULE << A.lo) as u32,
        ]);
        queue.submit()?;
        let failure =
            device.wait(&signal, 1, Duration::from_millis(1500)).err().map(|error| error.to_string());
        // Visible memory is read as it is, also after the channel has died.
        let left = out.peek()?;
        if failure.is_some() {
            drop((kernel, module, out, memory, signal, queue, device));
            self.open = None;
            if let Some(machine) = self.machine.take() {
                machine.faults().iter().for_each(|fault| println!("    {fault}"));
            }
        }
        Ok((left, failure))
    }
}

fn print(left: &[u32]) {
    for (block, words) in left.chunks(WORDS).enumerate().filter(|(_, words)| words[0] != 0) {
        let text: Vec<String> = words.iter().map(|word| format!("{word:x}")).collect();
        println!("    block {block}: {}", text.join(" "));
    }
}

fn main() -> Result<(), Failure> {
    let (mut card, mut only) = (true, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        match name.as_str() {
            "--simulator" => card = false,
            "--mode" => only = Some(arguments.next().ok_or("--mode needs a number")?.parse::<u32>()?),
            _ => return Err(format!("unknown argument {name}").into()),
        }
    }
    let mut probe = Probe { card, open: None, machine: None };
    let mut works = None;
    println!(
        "words of a block: c0de and mode, rank, index (z y x), shared address, generic address (high, low), ..."
    );
    for variant in VARIANTS {
        let (left, failure) = probe.launch(variant, 0)?;
        println!("{}: {}", variant.name, failure.as_deref().unwrap_or("ends"));
        print(&left);
        let ranks = |block: usize| left.get(WORDS * block + 1).copied();
        if failure.is_none() && works.is_none() && variant.cluster[0] == 2 && ranks(1) == Some(1) {
            works = Some(*variant);
        }
    }
    let Some(variant) = works else { return Err("no form makes clusters".into()) };
    println!("asking with {:?}", variant.name);
    for mode in 1..=24 {
        if only.is_some_and(|only| only != mode) {
            continue;
        }
        let (left, failure) = probe.launch(&variant, mode)?;
        println!("mode {mode}: {}", failure.as_deref().unwrap_or("ends"));
        print(&left);
    }
    Ok(())
}
