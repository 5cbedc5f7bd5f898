//! From commands to words, QMDs and constant banks. Pure: no device is touched.

use nv_abi::{
    arch::Generation,
    // Every later class inherits the methods used here, fields included.
    compute::AMPERE_COMPUTE_A as compute,
    copy::AMPERE_DMA_COPY_A as copy,
    host::AMPERE_CHANNEL_GPFIFO_A as host,
    qmd::{ALIGNMENT, Dependent, Qmd, Release, StructureSize, rows::V03_00},
};

use super::{ArgumentPath, Command, Condition, Lines};
use crate::{
    Error,
    pushbuffer::{COMPUTE, COPY, HOST, Pushbuffer, data, upper_lower},
    qmd::Launch,
};

/// Data words of one inline upload: a method header's count has 13 bits, and the seed stops at 4095.
const INLINE_WORDS: usize = 4095;
/// Release slots that a queue uses; today's client uses two.
const RELEASE_SLOTS: u32 = 2;
/// What happens to the launch behind another: the value is the same in every version.
const ACTION_SCHEDULE: u8 = V03_00::DEPENDENT_QMD0_ACTION::QMD_SCHEDULE as u8;

/// What the encoder must know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) generation: Generation,
    pub(crate) path: ArgumentPath,
    pub(crate) fold_releases: bool,
    /// GPU address of the memory for constant banks and QMDs.
    pub(crate) arena: u64,
    /// Local memory per thread in bytes.
    pub(crate) local_bytes: u32,
}

/// Where a command ended up, for patching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A host semaphore: index of its five data words.
    Semaphore(usize),
    /// A release of the copy engine: index of its three data words.
    CopySemaphore(usize),
    /// A copy: index of its four address words; the length is two words after them.
    Copy(usize),
    /// A release in a launch: index of the QMD, slot.
    Slot(usize, u32),
    /// A launch: index of the QMD.
    Launch(usize),
    /// Nothing to patch.
    Fixed,
}

/// A launch's memory.
#[derive(Clone, Debug)]
pub(crate) struct EncodedLaunch {
    pub(crate) qmd: Qmd,
    /// Byte offset of the QMD in the arena.
    pub(crate) qmd_offset: u64,
    /// Byte offset of constant bank 0 in the arena.
    pub(crate) bank_offset: u64,
    pub(crate) bank: Vec<u8>,
}

/// The result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) words: Vec<u32>,
    pub(crate) places: Vec<Place>,
    pub(crate) launches: Vec<EncodedLaunch>,
}

/// Where a launch's memory lies in the arena.
struct Slots {
    bank: u64,
    qmd: u64,
    end: u64,
}

fn slots(generation: Generation, launch: &Launch, bank: u64) -> Slots {
    let qmd = (bank + launch.memory_bytes(generation)).next_multiple_of(ALIGNMENT);
    Slots { bank, qmd, end: (qmd + generation.qmd_version().bytes() as u64).next_multiple_of(ALIGNMENT) }
}

/// Bytes of arena that the commands need.
pub(crate) fn arena_bytes(generation: Generation, commands: &[Command]) -> u64 {
    commands.iter().fold(0, |offset, command| match command {
        Command::Launch(launch) => slots(generation, launch, offset).end,
        _ => offset,
    })
}

pub(crate) fn encode(context: &Context, commands: &[Command]) -> Result<Encoded, Error> {
    let mut push = Pushbuffer::default();
    let mut places = Vec::new();
    let mut launches: Vec<EncodedLaunch> = Vec::new();
    let mut offset = 0;
    // The launch that a release or another launch can still be attached to, and its free release slot.
    let mut active: Option<(usize, u32)> = None;
    // Whether a launch may still run: launches that are not chained start side by side, and so would those of
    // submissions one after the other.
    let mut running = true;
    if context.path == ArgumentPath::InlineToMemory {
        // All at the front, so that launches after each other can still be chained.
        let mut offset = 0;
        for command in commands {
            if let Command::Launch(launch) = command {
                let slots = slots(context.generation, launch, offset);
                let address = context.arena + slots.bank;
                inline(&mut push, address, &launch.bank(context.generation, address)?)?;
                offset = slots.end;
            }
        }
    }
    for command in commands {
        let place = match command {
            Command::Wait { address, value, condition, wide } => {
                active = None;
                wait(&mut push, *address, *value, *condition, *wide)?
            }
            Command::Release { address, value, timestamp, wide } => match active {
                // The slot's timestamp comes with the four-word form, which a plain 16-byte slot allows anyway.
                Some((index, slot)) if context.fold_releases && slot < RELEASE_SLOTS && *wide => {
                    active = Some((index, slot + 1));
                    launches[index].qmd.set_release(slot, Some(folded(*address, *value)))?;
                    Place::Slot(index, slot)
                }
                _ => {
                    (active, running) = (None, false);
                    release(&mut push, *address, *value, *timestamp, *wide)?
                }
            },
            Command::CopyRelease { address, value } => copy_release(&mut push, *address, *value)?,
            Command::Barrier => {
                active = None;
                finish(&mut push, &mut running)?;
                invalidate(&mut push)?;
                Place::Fixed
            }
            Command::Inline { address, data } => {
                active = None;
                finish(&mut push, &mut running)?;
                inline(&mut push, *address, data)?;
                Place::Fixed
            }
            Command::Copy { destination, source, bytes } => {
                copy_command(&mut push, *destination, *source, *bytes)?
            }
            Command::CopyLines { destination, source, lines } => {
                copy_lines(&mut push, *destination, *source, *lines)?;
                Place::Fixed
            }
            Command::Fill { destination, value, words } => {
                fill(&mut push, *destination, *value, *words)?;
                Place::Fixed
            }
            Command::Words(words) => {
                // They may launch something.
                (active, running) = (None, true);
                push.words.extend_from_slice(words);
                Place::Fixed
            }
            Command::Launch(launch) => {
                let Slots { bank: bank_offset, qmd: qmd_offset, end } =
                    slots(context.generation, launch, offset);
                offset = end;
                let bank = launch.bank(context.generation, context.arena + bank_offset)?;
                let qmd = launch.qmd(context.generation, context.arena + bank_offset, context.local_bytes)?;
                let address = context.arena + qmd_offset;
                match active {
                    Some((previous, _)) => {
                        let dependent = Dependent { address, action: ACTION_SCHEDULE, prefetch: true };
                        launches[previous].qmd.set_dependent(0, Some(dependent))?;
                    }
                    None => {
                        finish(&mut push, &mut running)?;
                        invalidate(&mut push)?;
                        start(&mut push, address)?;
                    }
                }
                launches.push(EncodedLaunch { qmd, qmd_offset, bank_offset, bank });
                (active, running) = (Some((launches.len() - 1, 0)), true);
                Place::Launch(launches.len() - 1)
            }
        };
        places.push(place);
    }
    Ok(Encoded { words: push.words, places, launches })
}

/// A release slot's content for a 16-byte signal.
pub(crate) fn folded(address: u64, value: u64) -> Release {
    Release {
        address,
        payload: value,
        structure_size: StructureSize::FourWords,
        payload_64: true,
        membar: true,
        reduction: None,
        trap_type: 0,
    }
}

fn wait(
    push: &mut Pushbuffer,
    address: u64,
    value: u64,
    condition: Condition,
    wide: bool,
) -> Result<Place, Error> {
    use host::SEM_EXECUTE as e;
    let operation = match condition {
        Condition::GreaterOrEqual => e::OPERATION::ACQ_CIRC_GEQ,
        Condition::Equal => e::OPERATION::ACQUIRE,
        Condition::AnyBit => e::OPERATION::ACQ_AND,
        Condition::Nor => e::OPERATION::ACQ_NOR,
    };
    let execute = data(&[(&e::OPERATION, operation), (&e::PAYLOAD_SIZE, wide.into())])?;
    push.semaphore(address, value, execute).map(Place::Semaphore)
}

fn release(
    push: &mut Pushbuffer,
    address: u64,
    value: u64,
    timestamp: bool,
    wide: bool,
) -> Result<Place, Error> {
    use host::SEM_EXECUTE as e;
    let execute = data(&[
        (&e::OPERATION, e::OPERATION::RELEASE),
        (&e::RELEASE_WFI, e::RELEASE_WFI::EN),
        (&e::PAYLOAD_SIZE, wide.into()),
        (&e::RELEASE_TIMESTAMP, timestamp.into()),
    ])?;
    let place = push.semaphore(address, value, execute)?;
    push.methods(HOST, &host::NON_STALL_INTERRUPT, &[0])?;
    Ok(Place::Semaphore(place))
}

fn copy_release(push: &mut Pushbuffer, address: u64, value: u32) -> Result<Place, Error> {
    use copy::LAUNCH_DMA as l;
    let place = push.words.len() + 1;
    let [upper, lower] = upper_lower(address);
    push.methods(COPY, &copy::SET_SEMAPHORE_A, &[upper, lower, value])?;
    let launch = data(&[
        (&l::DATA_TRANSFER_TYPE, l::DATA_TRANSFER_TYPE::NONE),
        (&l::FLUSH_ENABLE, 1),
        (&l::SEMAPHORE_TYPE, l::SEMAPHORE_TYPE::RELEASE_FOUR_WORD_SEMAPHORE),
    ])?;
    push.methods(COPY, &copy::LAUNCH_DMA, &[launch])?;
    Ok(Place::CopySemaphore(place))
}

fn copy_command(push: &mut Pushbuffer, destination: u64, source: u64, bytes: u64) -> Result<Place, Error> {
    let length = u32::try_from(bytes)
        .map_err(|_| Error::Queue(format!("a copy of {bytes:#x} bytes is longer than its 32-bit field")))?;
    let place = copy_addresses(push, destination, source)?;
    push.methods(COPY, &copy::LINE_LENGTH_IN, &[length])?;
    transfer(push, &[])?;
    Ok(Place::Copy(place))
}

/// Returns the index of the four address words.
fn copy_addresses(push: &mut Pushbuffer, destination: u64, source: u64) -> Result<usize, Error> {
    let place = push.words.len() + 1;
    let ([in_upper, in_lower], [out_upper, out_lower]) = (upper_lower(source), upper_lower(destination));
    push.methods(COPY, &copy::OFFSET_IN_UPPER, &[in_upper, in_lower, out_upper, out_lower])?;
    Ok(place)
}

fn copy_lines(push: &mut Pushbuffer, destination: u64, source: u64, lines: Lines) -> Result<(), Error> {
    copy_addresses(push, destination, source)?;
    let pitches = [lines.source_pitch as u32, lines.destination_pitch as u32];
    push.methods(COPY, &copy::PITCH_IN, &[pitches[0], pitches[1], lines.bytes, lines.count])?;
    transfer(push, &[(&copy::LAUNCH_DMA::MULTI_LINE_ENABLE, 1)])
}

/// The copy engine composes each element from a constant; with it enabled, lengths count elements.
fn fill(push: &mut Pushbuffer, destination: u64, value: u32, words: u64) -> Result<(), Error> {
    use copy::SET_REMAP_COMPONENTS as r;
    let length = u32::try_from(words)
        .map_err(|_| Error::Queue(format!("a fill of {words:#x} words is longer than its 32-bit field")))?;
    // The source is not read, but the four address words come together.
    copy_addresses(push, destination, destination)?;
    push.methods(COPY, &copy::LINE_LENGTH_IN, &[length])?;
    push.methods(COPY, &copy::SET_REMAP_CONST_A, &[value])?;
    let components = data(&[
        (&r::DST_X, r::DST_X::CONST_A),
        (&r::COMPONENT_SIZE, r::COMPONENT_SIZE::FOUR),
        (&r::NUM_SRC_COMPONENTS, r::NUM_SRC_COMPONENTS::ONE),
        (&r::NUM_DST_COMPONENTS, r::NUM_DST_COMPONENTS::ONE),
    ])?;
    push.methods(COPY, &copy::SET_REMAP_COMPONENTS, &[components])?;
    transfer(push, &[(&copy::LAUNCH_DMA::REMAP_ENABLE, 1)])
}

/// Starts a transfer between pitch-linear memory.
fn transfer(push: &mut Pushbuffer, more: &[(&nv_abi::Field, u64)]) -> Result<(), Error> {
    use copy::LAUNCH_DMA as l;
    let mut fields = vec![
        (&l::DATA_TRANSFER_TYPE, l::DATA_TRANSFER_TYPE::NON_PIPELINED),
        (&l::SRC_MEMORY_LAYOUT, l::SRC_MEMORY_LAYOUT::PITCH),
        (&l::DST_MEMORY_LAYOUT, l::DST_MEMORY_LAYOUT::PITCH),
    ];
    fields.extend_from_slice(more);
    push.methods(COPY, &copy::LAUNCH_DMA, &[data(&fields)?])
}

fn invalidate(push: &mut Pushbuffer) -> Result<(), Error> {
    use compute::INVALIDATE_SHADER_CACHES_NO_WFI as i;
    let word = data(&[(&i::INSTRUCTION, 1), (&i::GLOBAL_DATA, 1), (&i::CONSTANT, 1)])?;
    push.methods(COMPUTE, &compute::INVALIDATE_SHADER_CACHES_NO_WFI, &[word])
}

/// Waits for launches that may still run.
fn finish(push: &mut Pushbuffer, running: &mut bool) -> Result<(), Error> {
    if std::mem::take(running) {
        push.methods(COMPUTE, &compute::WAIT_FOR_IDLE, &[0])?;
    }
    Ok(())
}

fn start(push: &mut Pushbuffer, qmd: u64) -> Result<(), Error> {
    use compute::SEND_SIGNALING_PCAS2_B as p;
    let pointer =
        u32::try_from(qmd >> 8).map_err(|_| Error::Queue(format!("a QMD at {qmd:#x} lies above 2^40")))?;
    push.methods(COMPUTE, &compute::SEND_PCAS_A, &[pointer])?;
    let action = data(&[(&p::PCAS_ACTION, p::PCAS_ACTION::PREFETCH_SCHEDULE)])?;
    push.methods(COMPUTE, &compute::SEND_SIGNALING_PCAS2_B, &[action])
}

fn inline(push: &mut Pushbuffer, address: u64, bytes: &[u8]) -> Result<(), Error> {
    use compute::LAUNCH_DMA as l;
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || !address.is_multiple_of(4) {
        return Err(Error::Queue(format!(
            "an inline upload of {} bytes to {address:#x} is not in whole words",
            bytes.len()
        )));
    }
    for (index, words) in words.chunks(INLINE_WORDS).enumerate() {
        let address = address + (index * INLINE_WORDS * 4) as u64;
        push.methods(COMPUTE, &compute::OFFSET_OUT_UPPER, &upper_lower(address))?;
        push.methods(COMPUTE, &compute::LINE_LENGTH_IN, &[words.len() as u32 * 4, 1])?;
        let launch = data(&[
            (&l::DST_MEMORY_LAYOUT, l::DST_MEMORY_LAYOUT::PITCH),
            (&l::COMPLETION_TYPE, l::COMPLETION_TYPE::FLUSH_DISABLE),
            (&l::SYSMEMBAR_DISABLE, 1),
        ])?;
        push.methods(COMPUTE, &compute::LAUNCH_DMA, &[launch])?;
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        push.repeated(COMPUTE, &compute::LOAD_INLINE_DATA, &words)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context = Context {
        generation: Generation::Ada,
        path: ArgumentPath::CpuWritten,
        fold_releases: true,
        arena: 0x10_0000_0000,
        local_bytes: 0x240,
    };

    #[test]
    fn signal_and_wait_are_the_words_that_the_seed_sends() {
        let address = 0x10_2030_4050;
        let commands = [
            Command::Wait { address, value: 7, condition: Condition::GreaterOrEqual, wide: true },
            Command::Release { address, value: 8, timestamp: true, wide: true },
        ];
        let encoded = encode(&CONTEXT, &commands).unwrap();
        let header = 2 << 28 | 5 << 16 | 0x5c >> 2;
        assert_eq!(
            encoded.words,
            [
                header,
                0x2030_4050,
                0x10,
                7,
                0,
                3 | 1 << 24,
                header,
                0x2030_4050,
                0x10,
                8,
                0,
                1 | 1 << 20 | 1 << 24 | 1 << 25,
                2 << 28 | 1 << 16 | 0x20 >> 2,
                0,
            ]
        );
        assert_eq!(encoded.places, [Place::Semaphore(1), Place::Semaphore(7)]);
    }

    #[test]
    fn copies_are_the_words_that_todays_client_sends() {
        let commands = [
            Command::Copy { destination: 0x20_0000_1000, source: 0x10_0000_2000, bytes: 0x30 },
            Command::CopyRelease { address: 0x10_0000_0010, value: 5 },
        ];
        let words = encode(&CONTEXT, &commands).unwrap().words;
        let header = |address: u32, count: u32| 2 << 28 | count << 16 | 4 << 13 | address >> 2;
        assert_eq!(
            words,
            [
                header(0x400, 4),
                0x10,
                0x2000,
                0x20,
                0x1000,
                header(0x418, 1),
                0x30,
                header(0x300, 1),
                0x182,
                header(0x240, 3),
                0x10,
                0x10,
                5,
                header(0x300, 1),
                0x14,
            ]
        );
    }

    #[test]
    fn inline_uploads_are_split_and_refuse_partial_words() {
        let long = Command::Inline { address: 0x1000, data: vec![1; 4 * (INLINE_WORDS + 1)] };
        let words = encode(&CONTEXT, &[long]).unwrap().words;
        // Two words wait for launches of submissions before, nine stand before each part.
        assert_eq!(words.len(), 2 + INLINE_WORDS + 1 + 2 * 9);
        let partial = Command::Inline { address: 0x1000, data: vec![1; 3] };
        assert!(encode(&CONTEXT, &[partial]).is_err());
    }
}
