//! Engines: what a subchannel's object does with its methods.
//!
//! Every method is looked up in its class's table: an address that is not there and a value that its fields do not
//! take are refused as the card refuses them. Then it is stored, and some methods start work.

mod compute;
mod copy;
mod executor;
mod inline_to_memory;
mod launch;
mod macros;
mod profile;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use nv_abi::{
    Field,
    arch::Generation,
    compute::AMPERE_COMPUTE_A as base,
    compute::AMPERE_COMPUTE_B::{
        CALL_MME_DATA, CALL_MME_MACRO, LOAD_MME_INSTRUCTION_RAM, LOAD_MME_INSTRUCTION_RAM_POINTER,
        LOAD_MME_START_ADDRESS_RAM, LOAD_MME_START_ADDRESS_RAM_POINTER, MME_DMA_READ_FIFOED,
        SET_MME_MEM_ADDRESS_A, SET_MME_MEM_ADDRESS_B,
    },
    compute::HOPPER_COMPUTE_A::SET_TEXTURE_HEADER_VERSION,
    host::AMPERE_CHANNEL_GPFIFO_A::SET_OBJECT,
    method::{ClassTable, Method, class_table},
};

pub use compute::is_state;
pub use executor::{Executor, Grid, GridObserver, Interpreter, ShaderFault};
pub use profile::{KernelProfile, ProfileError, Profiles};

use crate::{
    fault::Fault,
    host::{
        Event, Slot, lock,
        semaphore::{Reduction, Release, SemaphoreError},
    },
    memory::AddressMap,
};
use compute::Compute;
use copy::Copy;
use macros::{Macros, Step};

/// What an engine works with.
pub(crate) struct Context<'a> {
    /// The channel.
    pub(crate) slot: &'a Slot,
    /// Its address space as it is now.
    pub(crate) map: &'a Arc<AddressMap>,
}

impl Context<'_> {
    /// Reads GPU memory for `client`, as fault reports name it.
    fn read(&self, client: &'static str, address: u64, to: &mut [u8]) -> Result<(), Fault> {
        self.map.read(address, to).map_err(|fault| Fault::mmu(client, fault, self.map))
    }

    /// Writes GPU memory for `client`.
    fn write(&self, client: &'static str, address: u64, from: &[u8]) -> Result<(), Fault> {
        self.map.write(address, from).map_err(|fault| Fault::mmu(client, fault, self.map))
    }

    /// Does a semaphore release of `client`'s. `refuse` makes the fault of what hardware does not do.
    pub(crate) fn release(
        &self,
        client: &'static str,
        release: &Release,
        refuse: impl FnOnce(String) -> Fault,
    ) -> Result<(), Fault> {
        release.perform(self.map).map_err(|error| self.semaphore_fault(client, error, refuse))?;
        self.slot.counters.releases.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The fault of a semaphore operation of `client`'s that was not done.
    pub(crate) fn semaphore_fault(
        &self,
        client: &'static str,
        error: SemaphoreError,
        refuse: impl FnOnce(String) -> Fault,
    ) -> Fault {
        match error {
            SemaphoreError::Mmu(fault) => Fault::mmu(client, fault, self.map),
            error => refuse(error.to_string()),
        }
    }

    /// Raises the interrupt of completed work, which stalls nobody.
    pub(crate) fn interrupt(&self) {
        let engine = self.slot.spec.engine;
        self.slot.notify(&Event::NonStall { channel: self.slot.id, engine });
    }
}

/// The bits of a data word that a field can have, in the lowest places.
const fn mask(field: &Field) -> u32 {
    if field.width() >= 32 { u32::MAX } else { (1 << field.width()) - 1 }
}

/// A field of a data word.
pub(crate) const fn field(data: u32, field: &Field) -> u64 {
    (data >> field.lo & mask(field)) as u64
}

/// The reduction that a graphics or compute method asks for by its fields; `None` where it asks for a plain store.
fn graphics_reduction(
    data: u32,
    enable: &Field,
    operation: &Field,
    format: &Field,
) -> Result<Option<(Reduction, bool)>, String> {
    if field(data, enable) == 0 {
        return Ok(None);
    }
    let number = field(data, operation);
    // Of the formats, unsigned is 0 and signed 1 in every method.
    let signed = field(data, format) != 0;
    let reduction = Reduction::from_graphics(number);
    reduction.map(|it| Some((it, signed))).ok_or_else(|| format!("{} {number}", operation.name))
}

/// Whether a method takes the value: no bits outside its fields, and no value of a field that has names for some but
/// not for it.
pub(crate) fn check_value(method: &Method, data: u32) -> Result<(), String> {
    let mut known = 0u32;
    for row in method.layout.fields {
        known |= mask(row) << row.lo;
    }
    if data & !known != 0 {
        return Err(format!("bits {:#010x} belong to no field", data & !known));
    }
    for row in method.layout.fields {
        let value = field(data, row);
        if row.width() < 32 && !row.enumerants.is_empty() && row.enumerant(value).is_none() {
            return Err(format!("{} has no value {value:#x}", row.name));
        }
    }
    Ok(())
}

/// State of launches that all channels of a context share: what one sets, the others launch with. NVIDIA's library sets
/// it in the first channel of a context only.
const OF_CONTEXT: [&Method; 17] = [
    &base::SET_SHADER_SHARED_MEMORY_WINDOW_A,
    &base::SET_SHADER_SHARED_MEMORY_WINDOW_B,
    &base::SET_SHADER_LOCAL_MEMORY_A,
    &base::SET_SHADER_LOCAL_MEMORY_B,
    &base::SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A,
    &base::SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B,
    &base::SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C,
    &base::SET_SHADER_LOCAL_MEMORY_WINDOW_A,
    &base::SET_SHADER_LOCAL_MEMORY_WINDOW_B,
    &base::SET_TEX_SAMPLER_POOL_A,
    &base::SET_TEX_SAMPLER_POOL_B,
    &base::SET_TEX_SAMPLER_POOL_C,
    &base::SET_TEX_HEADER_POOL_A,
    &base::SET_TEX_HEADER_POOL_B,
    &base::SET_TEX_HEADER_POOL_C,
    &SET_TEXTURE_HEADER_VERSION,
    &base::SET_SHADER_EXCEPTIONS,
];

/// A bit for each word of the method space: whether it is in [`OF_CONTEXT`].
const IS_OF_CONTEXT: [u64; Registers::WORDS / 64] = {
    let mut bits = [0; Registers::WORDS / 64];
    let mut i = 0;
    while i < OF_CONTEXT.len() {
        let word = OF_CONTEXT[i].address as usize / 4;
        bits[word / 64] |= 1 << (word % 64);
        i += 1;
    }
    bits
};

/// What the graphics and compute engine keeps for all channels of a context.
#[derive(Default)]
pub(crate) struct GraphicsState {
    classes: Mutex<Vec<(u32, Arc<[AtomicU32]>)>>,
    macros: Arc<Mutex<macros::Memory>>,
}

impl GraphicsState {
    fn registers(&self, class: u32) -> Arc<[AtomicU32]> {
        let mut classes = lock(&self.classes);
        if let Some((_, words)) = classes.iter().find(|(known, _)| *known == class) {
            return Arc::clone(words);
        }
        let words: Arc<[AtomicU32]> = (0..Registers::WORDS).map(|_| AtomicU32::new(0)).collect();
        classes.push((class, Arc::clone(&words)));
        words
    }
}

/// The last value of every method of an object.
pub(crate) struct Registers {
    own: Box<[u32]>,
    /// Those of the context, at their places.
    shared: Option<Arc<[AtomicU32]>>,
}

impl std::fmt::Debug for Registers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let set = (0..Self::WORDS as u32).map(|word| (word * 4, self.word(word * 4)));
        f.debug_map().entries(set.filter(|(_, value)| *value != 0)).finish()
    }
}

impl Registers {
    /// Words in the method space: headers have 12 bits of address.
    const WORDS: usize = 1 << 12;

    fn new(shared: Option<Arc<[AtomicU32]>>) -> Self {
        Self { own: vec![0; Self::WORDS].into_boxed_slice(), shared }
    }

    fn shared(&self, word: usize) -> Option<&AtomicU32> {
        let is_shared = IS_OF_CONTEXT.get(word / 64)? >> (word % 64) & 1 != 0;
        if is_shared { self.shared.as_ref()?.get(word) } else { None }
    }

    fn set(&mut self, address: u32, data: u32) {
        let word = address as usize / 4;
        if let Some(shared) = self.shared(word) {
            shared.store(data, Ordering::Relaxed);
        } else if let Some(own) = self.own.get_mut(word) {
            *own = data;
        }
    }

    /// The last value at an address.
    fn word(&self, address: u32) -> u32 {
        let word = address as usize / 4;
        match self.shared(word) {
            Some(shared) => shared.load(Ordering::Relaxed),
            None => self.own.get(word).copied().unwrap_or(0),
        }
    }

    fn get(&self, method: &Method) -> u32 {
        self.word(method.address)
    }

    /// An address in two methods, the upper half first.
    fn address(&self, upper: &Method, lower: &Method) -> u64 {
        u64::from(self.get(upper)) << 32 | u64::from(self.get(lower))
    }
}

const LOAD_INSTRUCTION_POINTER: u32 = LOAD_MME_INSTRUCTION_RAM_POINTER.address;
const LOAD_INSTRUCTION: u32 = LOAD_MME_INSTRUCTION_RAM.address;
const LOAD_START_POINTER: u32 = LOAD_MME_START_ADDRESS_RAM_POINTER.address;
const LOAD_START: u32 = LOAD_MME_START_ADDRESS_RAM.address;
const CALL_MACRO: u32 = CALL_MME_MACRO.address;
const CALL_DATA: u32 = CALL_MME_DATA.address;
const DMA_READ_FIFOED: u32 = MME_DMA_READ_FIFOED.address;
/// The end of the method space.
const LAST_METHOD: u32 = 0x3ffc;

#[derive(Debug)]
enum Engine {
    Compute(Box<Compute>),
    Copy(Box<Copy>),
    /// A class that can be made and bound but whose methods are not simulated.
    Other,
}

#[derive(Debug)]
struct Object {
    class: u32,
    table: Option<&'static ClassTable>,
    registers: Registers,
    engine: Engine,
    macros: Macros,
}

impl Object {
    fn new(class: u32, graphics: &GraphicsState) -> Self {
        let table = class_table(class);
        let engine = match (table, Generation::of_compute_class(class)) {
            (Some(_), Some(generation)) => Engine::Compute(Box::new(Compute::new(class, generation))),
            (Some(_), None) if nv_abi::copy::CLASSES.iter().any(|table| table.number == class) => {
                Engine::Copy(Box::new(Copy::new(class)))
            }
            _ => Engine::Other,
        };
        let shared = matches!(engine, Engine::Compute(_)).then(|| graphics.registers(class));
        let macros = Macros::new(Arc::clone(&graphics.macros));
        Self { class, table, registers: Registers::new(shared), engine, macros }
    }

    /// A method that a channel sends.
    fn method(&mut self, context: &mut Context<'_>, address: u32, data: u32) -> Result<(), Fault> {
        if self.macros.is_busy() && !(CALL_MACRO..=LAST_METHOD).contains(&address) {
            let what = format!("{address:#06x} = {data:#010x} while a macro still awaits parameters");
            return Err(Fault::NotSimulated { class: self.class, method: "CALL_MME_DATA", what });
        }
        self.perform(context, address, data)
    }

    /// A method that a channel or a macro sends.
    fn perform(&mut self, context: &mut Context<'_>, address: u32, data: u32) -> Result<(), Fault> {
        let class = self.class;
        if matches!(self.engine, Engine::Other) {
            let what = format!("no method of this class is: {address:#06x} = {data:#010x}");
            return Err(Fault::NotSimulated { class, method: "", what });
        }
        let Some((method, element)) = self.table.and_then(|table| table.method(address)) else {
            return Err(Fault::UnknownMethod { class, address, data });
        };
        check_value(method, data).map_err(|reason| Fault::BadValue {
            class,
            method: method.name,
            data,
            reason,
        })?;
        self.registers.set(address, data);
        if matches!(self.engine, Engine::Compute(_))
            && let Some(done) = self.macro_method(method.address, element, data)
        {
            done.map_err(|reason| Fault::BadValue { class, method: method.name, data, reason })?;
            return self.expand(context, method);
        }
        match &mut self.engine {
            Engine::Compute(compute) => compute.method(context, &self.registers, method, element, data),
            Engine::Copy(copy) => copy.method(context, &self.registers, method, data),
            Engine::Other => Ok(()),
        }
    }
}

impl Object {
    /// What a method does to the macro expander, if it is one of its methods.
    fn macro_method(&mut self, method: u32, element: u32, data: u32) -> Option<Result<(), String>> {
        let macros = &mut self.macros;
        Some(match method {
            LOAD_INSTRUCTION_POINTER => {
                macros.point_to_instruction(data);
                Ok(())
            }
            LOAD_INSTRUCTION => macros.load_instruction(data),
            LOAD_START_POINTER => {
                macros.point_to_start(data);
                Ok(())
            }
            LOAD_START => macros.load_start(data),
            CALL_MACRO => macros.call(element, data),
            CALL_DATA => macros.parameter(data),
            DMA_READ_FIFOED if macros.is_busy() => macros.want(data),
            _ => return None,
        })
    }

    /// Goes on with a call of a macro until it ends or waits for parameters.
    fn expand(&mut self, context: &mut Context<'_>, method: &'static Method) -> Result<(), Fault> {
        let class = self.class;
        if method.address == DMA_READ_FIFOED {
            // A part of the call that sent it.
            return Ok(());
        }
        loop {
            let registers = &self.registers;
            let step = self.macros.step(|address| registers.word(address));
            match step.map_err(|what| Fault::NotSimulated { class, method: method.name, what })? {
                Step::Rest => return Ok(()),
                Step::Send { address, .. } if (CALL_MACRO..=LAST_METHOD).contains(&address) => {
                    let what = "a macro that calls a macro".to_owned();
                    return Err(Fault::NotSimulated { class, method: method.name, what });
                }
                Step::Send { address, data } => self.perform(context, address, data)?,
                Step::Read(words) => {
                    let from = self.registers.address(&SET_MME_MEM_ADDRESS_A, &SET_MME_MEM_ADDRESS_B);
                    let mut bytes = vec![0; words as usize * 4];
                    context.read("macro expander", from, &mut bytes)?;
                    self.macros.give(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)));
                }
            }
        }
    }
}

/// The objects of a channel and which subchannel each is on.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    objects: Vec<Object>,
    subchannels: [Option<usize>; 8],
}

impl Objects {
    /// SET_OBJECT. State belongs to the object: it is kept over another SET_OBJECT.
    pub(crate) fn bind(&mut self, context: &Context<'_>, subchannel: u8, data: u32) -> Result<(), Fault> {
        let class = field(data, &SET_OBJECT::NVCLASS) as u32;
        let software = field(data, &SET_OBJECT::ENGINE) == SET_OBJECT::ENGINE::SW;
        let Some(slot) = self.subchannels.get_mut(usize::from(subchannel)) else {
            return Err(Fault::NoObject { subchannel: subchannel.into(), address: 0 });
        };
        if software || !context.slot.has_class(class) {
            return Err(Fault::ClassMismatch { subchannel: subchannel.into(), class });
        }
        let index = self.objects.iter().position(|object| object.class == class).unwrap_or_else(|| {
            self.objects.push(Object::new(class, &context.slot.graphics));
            self.objects.len() - 1
        });
        *slot = Some(index);
        Ok(())
    }

    /// The class of a subchannel's object; 0 where it has none.
    pub(crate) fn class(&self, subchannel: u8) -> u32 {
        let index = self.subchannels.get(usize::from(subchannel)).copied().flatten();
        index.and_then(|index| self.objects.get(index)).map_or(0, |object| object.class)
    }

    /// Any other method of a subchannel's object.
    pub(crate) fn method(
        &mut self,
        context: &mut Context<'_>,
        subchannel: u8,
        address: u32,
        data: u32,
    ) -> Result<(), Fault> {
        let index = self.subchannels.get(usize::from(subchannel)).copied().flatten();
        let Some(object) = index.and_then(|index| self.objects.get_mut(index)) else {
            return Err(Fault::NoObject { subchannel: subchannel.into(), address });
        };
        object.method(context, address, data)
    }
}
