//! Exceptions of warps, and when a fault is told.

use std::time::{Duration, Instant};

use super::{
    channel::{Bench, DATA, Gpfifo, header, release},
    *,
};
use crate::client_memory;
use nv_simulator::{fault::Fault, host::FaultReporting};

/// `BPT.TRAP`, and a word that is no instruction, on sm_89.
const TRAP: u128 = 0x000f_ea00_0030_0000_0000_0004_0000_795c;
const NONSENSE: u128 = 0x0000_0000_0000_0000_0000_0000_0000_0fff;

impl Bench {
    fn ada() -> Self {
        Self::new(Machine::builder().gpu(Profile::ad102()), Branch::R570)
    }

    fn debugger(&self, channel: &Gpfifo) -> u32 {
        use rm::NV83DE_ALLOC_PARAMETERS as P;
        let compute = self.raw.engine_classes().1;
        let object = self.raw.alloc(self.raw.client, channel.handle, 0, compute, None).unwrap();
        let params = self.raw.record(&P::STRUCT, &[(&P::hClass3dObject, object.into())]);
        self.raw.alloc(self.raw.client, self.device, 0, class::GT200_DEBUGGER, Some(params)).unwrap()
    }

    /// Launches one thread of a program of one instruction through a QMD of version 3.
    fn launch(&self, channel: &mut Gpfifo, instruction: u128) {
        client_memory::write(self.data + 0x20000, &instruction.to_le_bytes()).unwrap();
        self.launch_at(channel, DATA + 0x20000);
    }

    fn launch_at(&self, channel: &mut Gpfifo, program: u64) {
        use nv_abi::qmd::{Qmd, Version};
        const QMD: u64 = DATA + 0x10000;
        let mut qmd = Qmd::new(Version::V03_00);
        qmd.set_grid([1, 1, 1]).unwrap();
        qmd.set_block([1, 1, 1]).unwrap();
        qmd.set_program(program, 0).unwrap();
        qmd.set_registers(16).unwrap();
        client_memory::write(self.data + 0x10000, qmd.bytes()).unwrap();
        let compute = self.raw.engine_classes().1;
        self.submit(
            channel,
            &[
                header(1, 0, 1),
                compute,
                // The windows of shared and local memory.
                header(1, 0x2a0, 2),
                0x7294,
                0,
                header(1, 0x7b0, 2),
                0x7293,
                0,
                // SEND_PCAS_A, SEND_SIGNALING_PCAS2_B with INVALIDATE_COPY_SCHEDULE.
                header(1, 0x2b4, 1),
                (QMD >> 8) as u32,
                header(1, 0x2c0, 1),
                9,
            ],
        );
    }

    /// SM 0's state: global ESR, warp ESR, PC, and whether the MMU refused something.
    fn sm_state(&self, debugger: u32) -> (u32, u32, u64, bool) {
        use rm::NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS as P;
        let mut params = self.raw.record(&P::STRUCT, &[(&P::numSMsToRead, 100)]);
        let command = c::NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES;
        assert_eq!(self.raw.control(debugger, command, &mut params), Status::NV_OK);
        (
            params.get(&P::smErrorStateArray_hwwGlobalEsr).unwrap() as u32,
            params.get(&P::smErrorStateArray_hwwWarpEsr).unwrap() as u32,
            params.get(&P::smErrorStateArray_hwwWarpEsrPc64).unwrap(),
            params.get(&P::mmuFault_valid).unwrap() != 0,
        )
    }
}

#[test]
fn a_warp_exception_is_an_sm_error_state_until_it_is_cleared() {
    use rm::NV83DE_CTRL_DEBUG_CLEAR_ALL_SM_ERROR_STATES_PARAMS as Clear;
    const PC: u64 = DATA + 0x20000;
    for (instruction, global, warp) in [(NONSENSE, 0, 0x09), (TRAP, 0x10, 0)] {
        let mut bench = Bench::ada();
        let mut channel = bench.ready();
        let debugger = bench.debugger(&channel);
        assert_eq!(bench.sm_state(debugger), (0, 0, 0, false));
        bench.launch(&mut channel, instruction);
        bench.wait("the exception", || bench.notifier(&channel).2 == 0xffff);
        assert_eq!(bench.notifier(&channel).0, 13, "GR_EXCEPTION");
        let faults = bench.raw.machine.faults();
        let report = faults.first().unwrap();
        assert!(matches!(report.fault, Fault::Shader { .. }), "{report}");
        assert!(report.to_string().contains(&format!("{PC:#x}")), "{report}");
        assert_eq!(bench.sm_state(debugger), (global, warp, PC, false), "{report}");
        let mut clear = bench.raw.record(&Clear::STRUCT, &[(&Clear::numSMsToClear, 128)]);
        let command = c::NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES;
        assert_eq!(bench.raw.control(debugger, command, &mut clear), Status::NV_OK);
        assert_eq!(bench.sm_state(debugger), (0, 0, 0, false), "cleared");
        clear.set(&Clear::numSMsToClear, 129).unwrap();
        assert_eq!(bench.raw.control(debugger, command, &mut clear), Status::INVALID_ARGUMENT);
    }
}

/// An instruction of sm_89 from its two halves.
const fn word(low: u64, high: u64) -> u128 {
    (high as u128) << 64 | low as u128
}

#[test]
fn each_fault_of_a_warp_is_told_by_notifier_registers_and_report() {
    const PC: u64 = DATA + 0x20000;
    // As ptxas encodes them; all registers are 0.
    for (name, instruction, warp, mmu, words) in [
        ("LD.E [0]", word(0x0000_0004_0205_7980, 0x000e_a800_0c10_1900), 0, true, "FAULT_PDE at 0x0 (Read)"),
        ("LDS.64 [4]", word(0x0000_0400_0000_7984, 0x000e_2400_0000_0a00), 0x0100_000f, false, "misaligned"),
        (
            "LDS [0x100000]",
            word(0x1000_0000_0000_7984, 0x000e_2400_0000_0800),
            0x0100_000e,
            false,
            "shared address 0x100000",
        ),
        (
            "LDL [0x100000]",
            word(0x1000_0000_0000_7983, 0x000e_a400_0010_0800),
            0x0100_000e,
            false,
            "local address 0x100000",
        ),
        // A stack that grew below its end.
        (
            "STL [R1-16]",
            word(0xffff_f000_0100_7387, 0x0003_e800_0010_0800),
            0x0100_000e,
            false,
            "local address",
        ),
    ] {
        let mut bench = Bench::ada();
        let mut channel = bench.ready();
        let debugger = bench.debugger(&channel);
        bench.launch(&mut channel, instruction);
        bench.wait(name, || bench.notifier(&channel).2 == 0xffff);
        let faults = bench.raw.machine.faults();
        let report = faults.first().unwrap();
        assert_eq!(bench.notifier(&channel).0, if mmu { 31 } else { 13 }, "{name}: {report}");
        let pc = if mmu { 0 } else { PC };
        assert_eq!(bench.sm_state(debugger), (0, warp, pc, mmu), "{name}: {report}");
        let text = report.to_string();
        let place = format!("pc {PC:#x}");
        for part in [words, &place, "warp 0", "lanes 0x00000001", "lane 0 is thread [0, 0, 0]"] {
            assert!(text.contains(part), "{name}: no {part:?} in {text}");
        }
    }
}

#[test]
fn a_program_that_is_nowhere_is_an_invalid_program_counter() {
    let mut bench = Bench::ada();
    let mut channel = bench.ready();
    let debugger = bench.debugger(&channel);
    let program = 0x1_2345_6000;
    bench.launch_at(&mut channel, program);
    bench.wait("the exception", || bench.notifier(&channel).2 == 0xffff);
    let report = bench.raw.machine.faults().remove(0);
    assert_eq!(bench.notifier(&channel).0, 13, "{report}");
    assert_eq!(bench.sm_state(debugger), (0, 0x06, program, false), "{report}");
}

#[test]
fn channels_with_an_acquire_timeout_die_of_it() {
    let mut bench = Bench::hopper();
    let (group, share) = bench.group();
    // NVOS04_FLAGS_CHANNEL_PBDMA_ACQUIRE_TIMEOUT.
    let mut channel = bench.channel_with(group, share, 1 << 27);
    bench.schedule(group);
    let start = Instant::now();
    let mut acquire = release(DATA, 1);
    acquire[5] = 0;
    bench.submit(&mut channel, &acquire);
    bench.wait("the timeout", || bench.notifier(&channel).2 == 0xffff);
    assert!(start.elapsed() >= Duration::from_millis(1900));
    assert_eq!(bench.notifier(&channel).0, 32);
    assert!(bench.raw.machine.faults()[0].to_string().contains("0x04000000"));
}

#[test]
fn a_fault_may_be_told_late_or_never() {
    let with = |reporting| {
        let builder = Machine::builder().gpu(Profile::h200()).driver("580.159.04");
        Bench::new(builder.fault_reporting(reporting), Branch::R580)
    };
    let mut bench = with(FaultReporting::After(Duration::from_millis(60)));
    let mut channel = bench.ready();
    let start = Instant::now();
    bench.submit(&mut channel, &[header(0, 0x4, 1), 0]);
    bench.wait("notifier", || bench.notifier(&channel).2 == 0xffff);
    assert!(start.elapsed() >= Duration::from_millis(60));
    let mut bench = with(FaultReporting::Never);
    let mut channel = bench.ready();
    bench.submit(&mut channel, &[header(0, 0x4, 1), 0]);
    bench.wait("the report for people", || !bench.raw.machine.faults().is_empty());
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(bench.notifier(&channel).2, 0, "no word to the driver");
    assert_eq!(bench.get(&channel), 1);
}
