//! One channel at work: from ring entries to method writes. It is a state machine that can stop after every word, so
//! a blocked acquire holds the channel exactly where it is.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use nv_abi::{
    arch::Generation,
    gpfifo::{Entry, GP_ENTRY},
    method::{Form, Header, class_table},
};

use super::{
    ChannelSpec, USERD_GP_GET, USERD_GP_PUT, USERD_REFERENCE,
    channel::{HostMethods, Outcome},
    scheduler::Slot,
};
use crate::{
    engine::{Context, Objects},
    fault::{Fault, Location, PbdmaInterrupt},
    memory::{AddressMap, BackingError},
};

/// Words read from a segment at once. The hardware prefetches likewise, so a client cannot count on changing words
/// after it has submitted them.
const CHUNK_WORDS: u32 = 1024;

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The ring is empty and everything in it is done.
    Idle,
    /// Work was done and there may be more.
    Progress,
    /// An acquire does not pass yet.
    Blocked { address: u64, payload: u64 },
}

/// A pushbuffer segment under way.
#[derive(Debug)]
struct Segment {
    /// Address of the next word that is not in `words`.
    next: u64,
    /// Words of the segment from `next` on.
    left: u32,
    /// Words read, the first of them from `base`.
    words: Vec<u32>,
    base: u64,
    position: usize,
}

/// Methods that a report of a fault tells of.
const RECENT: usize = 8;

/// A method that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Write {
    /// The class of the object, 0 where there is none; of the channel for its own methods.
    class: u32,
    address: u32,
    data: u32,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match class_table(self.class).and_then(|table| table.method(self.address)) {
            Some((method, _)) => write!(f, "{}", method.name)?,
            None => write!(f, "{:#06x}", self.address)?,
        }
        write!(f, " = {:#x}", self.data)
    }
}

/// Where the words after a header go.
#[derive(Clone, Copy, Debug)]
struct Pending {
    header: Header,
    done: u32,
    /// The sub-device mask keeps this data from the GPU.
    masked: bool,
}

/// A channel's machine: ring position, segment, header, subchannels.
#[derive(Debug)]
pub(super) struct Pushbuffer {
    get: u32,
    /// The next entry and where it was, if it has been taken.
    ahead: Option<(u32, u64)>,
    /// Bits of segment addresses above 40 (Hopper's SET_PB_SEGMENT_EXTENDED_BASE).
    extended_base: u64,
    segment: Option<Segment>,
    pending: Option<Pending>,
    subdevice_mask: u16,
    stored_mask: u16,
    host: HostMethods,
    objects: Objects,
    pub(super) location: Location,
    /// The newest methods, in a ring.
    recent: [Option<Write>; RECENT],
    written: usize,
}

fn pbdma(interrupt: PbdmaInterrupt, reason: impl Into<String>) -> Fault {
    Fault::Pbdma { interrupt, reason: reason.into() }
}

/// USERD lies in memory that the resource manager chose; a range that is not there is the ring's fault.
fn userd(error: BackingError) -> Fault {
    pbdma(PbdmaInterrupt::GpPtr, format!("USERD: {error}"))
}

impl Pushbuffer {
    pub(super) fn new(generation: Generation) -> Self {
        Self {
            get: 0,
            ahead: None,
            extended_base: 0,
            segment: None,
            pending: None,
            // All ones after reset: a single GPU is sub-device 0.
            subdevice_mask: 0xfff,
            stored_mask: 0xfff,
            host: HostMethods::new(generation),
            objects: Objects::default(),
            location: Location::default(),
            recent: [None; RECENT],
            written: 0,
        }
    }

    /// The methods that were executed last, oldest first, in words.
    pub(super) fn recent(&self) -> Vec<String> {
        let oldest = self.written.saturating_sub(RECENT);
        let writes = (oldest..self.written).filter_map(|at| self.recent[at % RECENT]);
        writes.map(|write| write.to_string()).collect()
    }

    /// Whether an entry is being executed or waits to be.
    pub(super) fn is_busy(&self) -> bool {
        self.segment.is_some() || self.ahead.is_some()
    }

    /// Executes until something is to be waited for or one segment chunk is done.
    pub(super) fn step(&mut self, slot: &Slot) -> Result<Step, Fault> {
        if self.segment.is_none() && !self.fetch_entry(slot)? {
            return Ok(Step::Idle);
        }
        self.look_ahead(slot)?;
        let map = slot.spec.space.snapshot();
        self.fill(&map)?;
        self.execute(slot, &map)
    }

    /// Begins the next ring entry. False where there is none.
    fn fetch_entry(&mut self, slot: &Slot) -> Result<bool, Fault> {
        if self.ahead.is_none() {
            self.look_ahead(slot)?;
        }
        let Some((index, raw)) = self.ahead.take() else { return Ok(false) };
        self.location = Location { entry: index, ..Location::default() };
        slot.counters.entries.fetch_add(1, Ordering::Relaxed);
        match Entry::decode(raw) {
            Entry::Segment { conditional: true, .. } => Err(pbdma(
                PbdmaInterrupt::GpEntry,
                format!("entry {raw:#018x}: conditional fetch is not simulated"),
            )),
            // Subroutine entries differ only in which get pointer shows their progress, and the host finishes every
            // segment before it fetches the next, which is what SYNC asks for.
            Entry::Segment { address, length, .. } => {
                let base = self.extended_base + address;
                self.segment =
                    Some(Segment { next: base, left: length, words: Vec::new(), base, position: 0 });
                Ok(true)
            }
            Entry::Control { opcode, operand } => {
                self.control(slot.generation, u64::from(opcode), operand)?;
                Ok(true)
            }
        }
    }

    /// Takes the entry behind the one that is being executed, if there is one. An H200 does so: with an acquire blocked
    /// and more entries in the ring, the get pointer was two entries past the acquire. So the pointer does not say that
    /// commands have been read. After a fault it had passed the entry that caused it.
    fn look_ahead(&mut self, slot: &Slot) -> Result<(), Fault> {
        let ChannelSpec { ring_address, entries, userd: (memory, offset), space, .. } = &slot.spec;
        let put = memory.read_u32(offset + USERD_GP_PUT).map_err(userd)?;
        if self.ahead.is_some() || put == self.get {
            return Ok(());
        }
        if put >= *entries {
            return Err(pbdma(
                PbdmaInterrupt::GpPtr,
                format!("GPPut {put} of a ring with {entries} entries"),
            ));
        }
        let map = space.snapshot();
        let raw = map
            .load_u64(ring_address + 8 * u64::from(self.get))
            .map_err(|fault| Fault::mmu("host, ring", fault, &map))?;
        slot.begin();
        self.ahead = Some((self.get, raw));
        self.get = (self.get + 1) % entries;
        slot.gp_get.store(self.get, Ordering::Release);
        memory.write_u32(offset + USERD_GP_GET, self.get).map_err(userd)
    }

    fn control(&mut self, generation: Generation, opcode: u64, operand: u32) -> Result<(), Fault> {
        let bad = |what: &str| Err(pbdma(PbdmaInterrupt::GpEntry, format!("control entry {opcode}: {what}")));
        match opcode {
            GP_ENTRY::OPCODE::NOP => Ok(()),
            GP_ENTRY::OPCODE::ILLEGAL => bad("ILLEGAL"),
            GP_ENTRY::OPCODE::GP_CRC | GP_ENTRY::OPCODE::PB_CRC => bad("checksums are not simulated"),
            GP_ENTRY::OPCODE::SET_PB_SEGMENT_EXTENDED_BASE if generation >= Generation::Hopper => {
                // clc86f.h: the operand is bits 24:8 of the entry's first word, the address bits from 40 on.
                self.extended_base = u64::from(operand >> 8 & 0x1_ffff) << 40;
                Ok(())
            }
            _ => bad("no such opcode"),
        }
    }

    /// Reads the next words of the segment, if all that were read are done.
    fn fill(&mut self, map: &Arc<AddressMap>) -> Result<(), Fault> {
        let Some(segment) = &mut self.segment else { return Ok(()) };
        if segment.position < segment.words.len() {
            return Ok(());
        }
        let count = segment.left.min(CHUNK_WORDS);
        let mut bytes = vec![0; count as usize * 4];
        self.location.word_address = segment.next;
        map.read(segment.next, &mut bytes).map_err(|fault| Fault::mmu("host, pushbuffer", fault, map))?;
        segment.words.clear();
        segment.words.extend(bytes.chunks_exact(4).map(|word| {
            let mut array = [0; 4];
            array.copy_from_slice(word);
            u32::from_le_bytes(array)
        }));
        segment.base = segment.next;
        segment.position = 0;
        segment.next += bytes.len() as u64;
        segment.left -= count;
        Ok(())
    }

    fn execute(&mut self, slot: &Slot, map: &Arc<AddressMap>) -> Result<Step, Fault> {
        while let Some(segment) = &mut self.segment {
            let Some(&word) = segment.words.get(segment.position) else {
                if segment.left == 0 {
                    self.segment = None;
                }
                return Ok(Step::Progress);
            };
            if slot.must_pause() {
                return Ok(Step::Progress);
            }
            self.location.word_address = segment.base + 4 * segment.position as u64;
            self.location.word = word;
            let outcome = match self.pending {
                Some(pending) => self.data(slot, map, pending, word)?,
                None => self.header(slot, map, word)?,
            };
            if let Outcome::Blocked { address, payload } = outcome {
                return Ok(Step::Blocked { address, payload });
            }
            if let Some(segment) = &mut self.segment {
                segment.position += 1;
            }
        }
        Ok(Step::Progress)
    }

    fn header(&mut self, slot: &Slot, map: &Arc<AddressMap>, word: u32) -> Result<Outcome, Fault> {
        let header =
            Header::decode(word).map_err(|error| pbdma(PbdmaInterrupt::PbEntry, error.to_string()))?;
        match header.form {
            Form::SetSubDeviceMask(mask) => self.subdevice_mask = mask,
            Form::StoreSubDeviceMask(mask) => self.stored_mask = mask,
            Form::UseSubDeviceMask => self.subdevice_mask = self.stored_mask,
            Form::EndSegment => self.segment = None,
            Form::Immediate(data) => {
                if self.subdevice_mask & 1 != 0 {
                    return self.method(slot, map, header.subchannel, header.address, data.into());
                }
            }
            Form::Increment
            | Form::NonIncrement
            | Form::IncrementOnce
            | Form::OldIncrement
            | Form::OldNonIncrement => {
                // A header of no data words, the zero word among them, does nothing.
                let masked = self.subdevice_mask & 1 == 0;
                self.pending = (header.count > 0).then_some(Pending { header, done: 0, masked });
            }
        }
        Ok(Outcome::Done)
    }

    fn data(
        &mut self,
        slot: &Slot,
        map: &Arc<AddressMap>,
        mut pending: Pending,
        word: u32,
    ) -> Result<Outcome, Fault> {
        if !pending.masked {
            let Header { subchannel, .. } = pending.header;
            let address = pending.header.address_of(pending.done);
            let outcome = self.method(slot, map, subchannel, address, word)?;
            if outcome != Outcome::Done {
                return Ok(outcome);
            }
        }
        pending.done += 1;
        self.pending = (pending.done < pending.header.count).then_some(pending);
        Ok(Outcome::Done)
    }

    fn method(
        &mut self,
        slot: &Slot,
        map: &Arc<AddressMap>,
        subchannel: u8,
        address: u32,
        data: u32,
    ) -> Result<Outcome, Fault> {
        slot.counters.methods.fetch_add(1, Ordering::Relaxed);
        let outcome = self.perform(slot, map, subchannel, address, data)?;
        if outcome == Outcome::Done {
            let class = match address {
                0..super::channel::FIRST_ENGINE_METHOD => slot.generation.host_methods().number,
                _ => self.objects.class(subchannel),
            };
            self.recent[self.written % RECENT] = Some(Write { class, address, data });
            self.written += 1;
        }
        Ok(outcome)
    }

    fn perform(
        &mut self,
        slot: &Slot,
        map: &Arc<AddressMap>,
        subchannel: u8,
        address: u32,
        data: u32,
    ) -> Result<Outcome, Fault> {
        let mut context = Context { slot, map };
        if address == 0 {
            self.objects.bind(&context, subchannel, data)?;
            return Ok(Outcome::Done);
        }
        if address >= super::channel::FIRST_ENGINE_METHOD {
            self.objects.method(&mut context, subchannel, address, data)?;
            return Ok(Outcome::Done);
        }
        let outcome = self.host.method(&context, address, data)?;
        if let Outcome::Reference(count) = outcome {
            let (memory, offset) = &slot.spec.userd;
            memory.write_u32(offset + USERD_REFERENCE, count).map_err(userd)?;
            return Ok(Outcome::Done);
        }
        Ok(outcome)
    }
}
