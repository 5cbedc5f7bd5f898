//! Inline-to-memory: data in the pushbuffer goes to memory.

use std::sync::atomic::Ordering;

use nv_abi::compute::AMPERE_COMPUTE_A::{
    LAUNCH_DMA, LINE_COUNT, LINE_LENGTH_IN, LOAD_INLINE_DATA, OFFSET_OUT, OFFSET_OUT_UPPER, PITCH_OUT,
    SET_I2M_SEMAPHORE_A, SET_I2M_SEMAPHORE_B, SET_I2M_SEMAPHORE_C,
};

use super::{Context, Registers, field, graphics_reduction};
use crate::{
    fault::Fault,
    host::semaphore::{Release, Width},
};

/// A transfer that waits for its data.
#[derive(Debug)]
struct Transfer {
    target: u64,
    pitch: i64,
    line_bytes: u64,
    lines: u64,
    launch: u32,
    data: Vec<u8>,
}

/// The inline-to-memory unit of a compute object.
#[derive(Debug, Default)]
pub(super) struct InlineToMemory {
    transfer: Option<Transfer>,
}

impl InlineToMemory {
    /// Whether data is awaited.
    pub(super) fn is_busy(&self) -> bool {
        self.transfer.is_some()
    }

    /// LAUNCH_DMA.
    pub(super) fn launch(
        &mut self,
        context: &Context<'_>,
        registers: &Registers,
        class: u32,
        data: u32,
    ) -> Result<(), Fault> {
        use LAUNCH_DMA as L;
        let refuse =
            |what: &str| Err(Fault::NotSimulated { class, method: LAUNCH_DMA.name, what: what.to_owned() });
        if let Some(transfer) = &self.transfer {
            return Err(Fault::BadValue {
                class,
                method: LAUNCH_DMA.name,
                data,
                reason: format!(
                    "the transfer before it has {} of {} bytes",
                    transfer.data.len(),
                    transfer.line_bytes * transfer.lines
                ),
            });
        }
        if field(data, &L::DST_MEMORY_LAYOUT) != L::DST_MEMORY_LAYOUT::PITCH {
            return refuse("a block-linear destination");
        }
        let line_bytes = u64::from(registers.get(&LINE_LENGTH_IN));
        let lines = u64::from(registers.get(&LINE_COUNT));
        if lines > 1 && !line_bytes.is_multiple_of(4) {
            return refuse("several lines that are not whole words");
        }
        self.transfer = Some(Transfer {
            target: registers.address(&OFFSET_OUT_UPPER, &OFFSET_OUT),
            pitch: i64::from(registers.get(&PITCH_OUT) as i32),
            line_bytes,
            lines,
            launch: data,
            data: Vec::new(),
        });
        self.complete(context, registers, class)
    }

    /// LOAD_INLINE_DATA: one word.
    pub(super) fn load(
        &mut self,
        context: &Context<'_>,
        registers: &Registers,
        class: u32,
        word: u32,
    ) -> Result<(), Fault> {
        let Some(transfer) = &mut self.transfer else {
            return Err(Fault::BadValue {
                class,
                method: LOAD_INLINE_DATA.name,
                data: word,
                reason: "no LAUNCH_DMA awaits data".to_owned(),
            });
        };
        transfer.data.extend(word.to_le_bytes());
        self.complete(context, registers, class)
    }

    /// Writes the data and releases the semaphore once all of it is there.
    fn complete(&mut self, context: &Context<'_>, registers: &Registers, class: u32) -> Result<(), Fault> {
        use LAUNCH_DMA as L;
        let Some(transfer) = &self.transfer else { return Ok(()) };
        let bytes = transfer.line_bytes * transfer.lines;
        if (transfer.data.len() as u64) < bytes {
            return Ok(());
        }
        let mut target = transfer.target;
        if bytes > 0 {
            // A last word that is only partly inside the line was padded by the client.
            for line in transfer.data[..bytes as usize].chunks_exact(transfer.line_bytes as usize) {
                context.write("inline to memory", target, line)?;
                target = target.wrapping_add_signed(transfer.pitch);
            }
        }
        let launch = transfer.launch;
        self.transfer = None;
        if field(launch, &L::COMPLETION_TYPE) == L::COMPLETION_TYPE::RELEASE_SEMAPHORE {
            let refuse = |reason| Fault::BadValue { class, method: LAUNCH_DMA.name, data: launch, reason };
            let reduction =
                graphics_reduction(launch, &L::REDUCTION_ENABLE, &L::REDUCTION_OP, &L::REDUCTION_FORMAT)
                    .map_err(refuse)?;
            let size = field(launch, &L::SEMAPHORE_STRUCT_SIZE);
            let semaphore = Release {
                address: registers.address(&SET_I2M_SEMAPHORE_A, &SET_I2M_SEMAPHORE_B),
                payload: registers.get(&SET_I2M_SEMAPHORE_C).into(),
                width: Width::Word,
                timestamp: size == L::SEMAPHORE_STRUCT_SIZE::FOUR_WORDS,
                reduction,
            };
            context.release("compute, semaphore release", &semaphore, refuse)?;
        }
        if field(launch, &L::INTERRUPT_TYPE) != L::INTERRUPT_TYPE::NONE {
            context.interrupt();
        }
        context.slot.counters.bytes_copied.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}
