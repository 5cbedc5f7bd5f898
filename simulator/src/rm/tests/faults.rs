//! Exceptions of warps, and when a fault is told.

use std::time::{Duration, Instant};

use super::{
    channel::{Bench, DATA, Gpfifo, header},
    *,
};
use crate::{client_memory, fault::Fault, host::FaultReporting};

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
        use nv_abi::qmd::{Qmd, Version};
        const QMD: u64 = DATA + 0x10000;
        const PROGRAM: u64 = DATA + 0x20000;
        client_memory::write(self.data + 0x20000, &instruction.to_le_bytes()).unwrap();
        let mut qmd = Qmd::new(Version::V03_00);
        qmd.set_grid([1, 1, 1]).unwrap();
        qmd.set_block([1, 1, 1]).unwrap();
        qmd.set_program(PROGRAM, 0).unwrap();
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
