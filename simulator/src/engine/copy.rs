//! The copy engine: pitch-linear transfers, component remapping and semaphores.

use std::sync::atomic::Ordering;

use nv_abi::{
    copy::{
        AMPERE_DMA_COPY_A::{
            LINE_COUNT, LINE_LENGTH_IN, OFFSET_IN_LOWER, OFFSET_IN_UPPER, OFFSET_OUT_LOWER, OFFSET_OUT_UPPER,
            PITCH_IN, PITCH_OUT, SET_REMAP_COMPONENTS, SET_REMAP_CONST_A, SET_REMAP_CONST_B,
            SET_RENDER_ENABLE_C, SET_SEMAPHORE_A, SET_SEMAPHORE_B, SET_SEMAPHORE_PAYLOAD,
        },
        AMPERE_DMA_COPY_B::{LAUNCH_DMA, SET_SEMAPHORE_PAYLOAD_UPPER},
    },
    method::Method,
};

use super::{Context, Registers, field};
use crate::{
    fault::Fault,
    host::semaphore::{Reduction, Release, Width},
};

/// Bytes moved at once, between two looks at whether the channel is to stop.
const CHUNK: usize = 256 << 10;

const LAUNCH: u32 = LAUNCH_DMA.address;
const RENDER_ENABLE: u32 = SET_RENDER_ENABLE_C.address;

/// Fields of LAUNCH_DMA, in the classes that have them, that make something else of a copy than a copy.
const UNUSUAL: &[(&str, &str)] = &[
    ("COPY_TYPE", "secure copies"),
    ("VPRMODE", "protected video memory"),
    ("MEMORY_SCRUB_ENABLE", "memory scrubbing"),
];

/// A component of a remapped element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Component {
    /// One of the source element's components.
    Source(usize),
    /// SET_REMAP_CONST_A or _B.
    Constant(u32),
    /// The destination keeps what it has.
    NoWrite,
}

/// How elements are composed.
#[derive(Debug)]
struct Remap {
    component_bytes: usize,
    source_bytes: usize,
    components: Vec<Component>,
}

/// One object of a copy class.
#[derive(Debug)]
pub(super) struct Copy {
    class: u32,
    buffer: Vec<u8>,
}

impl Copy {
    pub(super) fn new(class: u32) -> Self {
        Self { class, buffer: Vec::new() }
    }

    fn not_simulated(&self, method: &'static str, what: impl Into<String>) -> Fault {
        Fault::NotSimulated { class: self.class, method, what: what.into() }
    }

    pub(super) fn method(
        &mut self,
        context: &mut Context<'_>,
        registers: &Registers,
        method: &'static Method,
        data: u32,
    ) -> Result<(), Fault> {
        match method.address {
            LAUNCH => self.launch(context, registers, method, data),
            RENDER_ENABLE if field(data, &SET_RENDER_ENABLE_C::MODE) != SET_RENDER_ENABLE_C::MODE::TRUE => {
                Err(self.not_simulated(method.name, "conditional transfers"))
            }
            // All others hold state for LAUNCH_DMA, or mark a place for a profiler.
            _ => Ok(()),
        }
    }

    fn launch(
        &mut self,
        context: &mut Context<'_>,
        registers: &Registers,
        method: &Method,
        data: u32,
    ) -> Result<(), Fault> {
        use LAUNCH_DMA as L;
        for (name, what) in UNUSUAL {
            if method.layout.field(name).is_some_and(|row| field(data, row) != 0) {
                return Err(self.not_simulated(LAUNCH_DMA.name, *what));
            }
        }
        let transfer = field(data, &L::DATA_TRANSFER_TYPE);
        match transfer {
            L::DATA_TRANSFER_TYPE::NONE => {}
            L::DATA_TRANSFER_TYPE::PIPELINED | L::DATA_TRANSFER_TYPE::NON_PIPELINED => {
                self.transfer(context, registers, data)?;
            }
            other => {
                return Err(self.not_simulated(LAUNCH_DMA.name, format!("DATA_TRANSFER_TYPE {other}")));
            }
        }
        self.semaphore(context, registers, data)?;
        if field(data, &L::INTERRUPT_TYPE) != L::INTERRUPT_TYPE::NONE {
            context.interrupt();
        }
        Ok(())
    }

    fn semaphore(&self, context: &Context<'_>, registers: &Registers, data: u32) -> Result<(), Fault> {
        use LAUNCH_DMA as L;
        let timestamp = match field(data, &L::SEMAPHORE_TYPE) {
            L::SEMAPHORE_TYPE::NONE => return Ok(()),
            L::SEMAPHORE_TYPE::RELEASE_ONE_WORD_SEMAPHORE => false,
            L::SEMAPHORE_TYPE::RELEASE_FOUR_WORD_SEMAPHORE => true,
            _ => return Err(self.not_simulated(LAUNCH_DMA.name, "conditional interrupt semaphores")),
        };
        let two_words = field(data, &L::SEMAPHORE_PAYLOAD_SIZE) == L::SEMAPHORE_PAYLOAD_SIZE::TWO_WORD;
        let upper = if two_words { registers.get(&SET_SEMAPHORE_PAYLOAD_UPPER) } else { 0 };
        let reduction = if field(data, &L::SEMAPHORE_REDUCTION_ENABLE) == 0 {
            None
        } else {
            let number = field(data, &L::SEMAPHORE_REDUCTION);
            let Some(reduction) = Reduction::from_host(number) else {
                let name = L::SEMAPHORE_REDUCTION.enumerant(number).unwrap_or("reserved");
                return Err(self.not_simulated(LAUNCH_DMA.name, format!("SEMAPHORE_REDUCTION {name}")));
            };
            let sign = field(data, &L::SEMAPHORE_REDUCTION_SIGN);
            Some((reduction, sign == L::SEMAPHORE_REDUCTION_SIGN::SIGNED))
        };
        let release = Release {
            address: registers.address(&SET_SEMAPHORE_A, &SET_SEMAPHORE_B),
            payload: u64::from(upper) << 32 | u64::from(registers.get(&SET_SEMAPHORE_PAYLOAD)),
            width: if two_words { Width::Long } else { Width::Word },
            timestamp,
            reduction,
        };
        context.release("copy engine, semaphore", &release, Fault::Copy)
    }

    fn transfer(&mut self, context: &Context<'_>, registers: &Registers, data: u32) -> Result<(), Fault> {
        use LAUNCH_DMA as L;
        let remap = (field(data, &L::REMAP_ENABLE) != 0).then(|| self.remap(registers)).transpose()?;
        let reads = remap.as_ref().is_none_or(Remap::reads_source);
        let refuse = |what: &str| Err(self.not_simulated(LAUNCH_DMA.name, what));
        if reads && field(data, &L::SRC_MEMORY_LAYOUT) != L::SRC_MEMORY_LAYOUT::PITCH {
            return refuse("a block-linear source");
        }
        if field(data, &L::DST_MEMORY_LAYOUT) != L::DST_MEMORY_LAYOUT::PITCH {
            return refuse("a block-linear destination");
        }
        let physical = |row| field(data, row) != L::SRC_TYPE::VIRTUAL;
        if (reads && physical(&L::SRC_TYPE)) || physical(&L::DST_TYPE) {
            return refuse("physical addresses");
        }
        let multi_line = field(data, &L::MULTI_LINE_ENABLE) != 0;
        let lines = if multi_line { registers.get(&LINE_COUNT) } else { 1 };
        let length = u64::from(registers.get(&LINE_LENGTH_IN));
        let mut source = registers.address(&OFFSET_IN_UPPER, &OFFSET_IN_LOWER);
        let mut target = registers.address(&OFFSET_OUT_UPPER, &OFFSET_OUT_LOWER);
        // Pitches are signed.
        let pitch_in = i64::from(registers.get(&PITCH_IN) as i32);
        let pitch_out = i64::from(registers.get(&PITCH_OUT) as i32);
        for _ in 0..lines {
            match &remap {
                None => copy_line(&mut self.buffer, context, source, target, length)?,
                Some(remap) => remap.line(&mut self.buffer, context, source, target, length)?,
            }
            if context.slot.stop.load(Ordering::Relaxed) {
                break;
            }
            source = source.wrapping_add_signed(pitch_in);
            target = target.wrapping_add_signed(pitch_out);
        }
        Ok(())
    }

    fn remap(&self, registers: &Registers) -> Result<Remap, Fault> {
        use SET_REMAP_COMPONENTS as R;
        let data = registers.get(&SET_REMAP_COMPONENTS);
        // The enumerants ONE to FOUR are 0 to 3 in all three.
        let count = |row| field(data, row) as usize + 1;
        let component_bytes = count(&R::COMPONENT_SIZE);
        let sources = count(&R::NUM_SRC_COMPONENTS);
        let mut components = Vec::new();
        for row in
            [&R::DST_X, &R::DST_Y, &R::DST_Z, &R::DST_W].into_iter().take(count(&R::NUM_DST_COMPONENTS))
        {
            let number = field(data, row);
            components.push(match number {
                R::DST_X::CONST_A => Component::Constant(registers.get(&SET_REMAP_CONST_A)),
                R::DST_X::CONST_B => Component::Constant(registers.get(&SET_REMAP_CONST_B)),
                R::DST_X::NO_WRITE => Component::NoWrite,
                source if (source as usize) < sources => Component::Source(source as usize),
                _ => {
                    return Err(Fault::BadValue {
                        class: self.class,
                        method: SET_REMAP_COMPONENTS.name,
                        data,
                        reason: format!("{} takes component {number} of {sources}", row.name),
                    });
                }
            });
        }
        Ok(Remap { component_bytes, source_bytes: component_bytes * sources, components })
    }
}

fn read(context: &Context<'_>, address: u64, to: &mut [u8]) -> Result<(), Fault> {
    context.read("copy engine, source", address, to)
}

fn write(context: &Context<'_>, address: u64, from: &[u8]) -> Result<(), Fault> {
    context.write("copy engine, destination", address, from)?;
    context.slot.counters.bytes_copied.fetch_add(from.len() as u64, Ordering::Relaxed);
    Ok(())
}

fn copy_line(
    buffer: &mut Vec<u8>,
    context: &Context<'_>,
    source: u64,
    target: u64,
    length: u64,
) -> Result<(), Fault> {
    let mut done = 0;
    while done < length && !context.slot.stop.load(Ordering::Relaxed) {
        let bytes = (length - done).min(CHUNK as u64);
        // Filled once with zeros, not for every line.
        if buffer.len() < bytes as usize {
            buffer.resize(bytes as usize, 0);
        }
        let chunk = &mut buffer[..bytes as usize];
        read(context, source.wrapping_add(done), chunk)?;
        write(context, target.wrapping_add(done), chunk)?;
        done += bytes;
    }
    Ok(())
}

impl Remap {
    fn reads_source(&self) -> bool {
        self.components.iter().any(|component| matches!(component, Component::Source(_)))
    }

    fn keeps_target(&self) -> bool {
        self.components.contains(&Component::NoWrite)
    }

    fn target_bytes(&self) -> usize {
        self.component_bytes * self.components.len()
    }

    /// One line of `length` elements.
    fn line(
        &self,
        buffer: &mut Vec<u8>,
        context: &Context<'_>,
        source: u64,
        target: u64,
        length: u64,
    ) -> Result<(), Fault> {
        let per_chunk = (CHUNK / 16) as u64;
        let mut elements = Vec::new();
        let mut done = 0;
        while done < length && !context.slot.stop.load(Ordering::Relaxed) {
            let count = (length - done).min(per_chunk);
            if self.reads_source() {
                elements.resize(count as usize * self.source_bytes, 0);
                read(context, source.wrapping_add(done * self.source_bytes as u64), &mut elements)?;
            }
            let at = target.wrapping_add(done * self.target_bytes() as u64);
            buffer.resize(count as usize * self.target_bytes(), 0);
            if self.keeps_target() {
                read(context, at, buffer)?;
            }
            for (index, element) in buffer.chunks_exact_mut(self.target_bytes()).enumerate() {
                let from = elements.get(index * self.source_bytes..).unwrap_or_default();
                self.compose(from, element);
            }
            write(context, at, buffer)?;
            done += count;
        }
        Ok(())
    }

    fn compose(&self, source: &[u8], element: &mut [u8]) {
        let bytes = self.component_bytes;
        for (component, target) in self.components.iter().zip(element.chunks_exact_mut(bytes)) {
            match *component {
                Component::Source(index) => {
                    if let Some(value) = source.get(index * bytes..(index + 1) * bytes) {
                        target.copy_from_slice(value);
                    }
                }
                Component::Constant(value) => target.copy_from_slice(&value.to_le_bytes()[..bytes]),
                Component::NoWrite => {}
            }
        }
    }
}
