//! The compute engine's methods.

use nv_abi::{
    arch::Generation,
    compute::{
        AMPERE_COMPUTE_A::{
            self as base, SEND_PCAS_A, SEND_SIGNALING_PCAS_B, SEND_SIGNALING_PCAS2_B,
            SET_INLINE_QMD_ADDRESS_A, SET_INLINE_QMD_ADDRESS_B, SET_REPORT_SEMAPHORE_A,
            SET_REPORT_SEMAPHORE_B, SET_REPORT_SEMAPHORE_C, SET_REPORT_SEMAPHORE_D,
        },
        AMPERE_COMPUTE_B::{
            REPORT_SEMAPHORE_EXECUTE, SET_REPORT_SEMAPHORE_ADDRESS_LOWER, SET_REPORT_SEMAPHORE_ADDRESS_UPPER,
            SET_REPORT_SEMAPHORE_PAYLOAD_LOWER, SET_REPORT_SEMAPHORE_PAYLOAD_UPPER,
        },
        HOPPER_COMPUTE_A::SET_TEXTURE_HEADER_VERSION,
    },
    method::Method,
};

use super::{
    Context, Registers, field, graphics_reduction,
    inline_to_memory::InlineToMemory,
    launch::{self, Arrival},
};
use crate::{
    fault::Fault,
    host::semaphore::{Release, Width},
};

const LAUNCH_DMA: u32 = base::LAUNCH_DMA.address;
const LOAD_INLINE_DATA: u32 = base::LOAD_INLINE_DATA.address;
const LOAD_INLINE_QMD_DATA: u32 = base::LOAD_INLINE_QMD_DATA.address;
const SIGNALING_PCAS_B: u32 = SEND_SIGNALING_PCAS_B.address;
const SIGNALING_PCAS2_B: u32 = SEND_SIGNALING_PCAS2_B.address;
const REPORT_SEMAPHORE_D: u32 = SET_REPORT_SEMAPHORE_D.address;
const REPORT_EXECUTE: u32 = REPORT_SEMAPHORE_EXECUTE.address;
const SHARED_WINDOW_B: u32 = base::SET_SHADER_SHARED_MEMORY_WINDOW_B.address;
const RENDER_ENABLE_C: u32 = base::SET_RENDER_ENABLE_C.address;
const GLOBAL_RENDER_ENABLE_C: u32 = base::SET_GLOBAL_RENDER_ENABLE_C.address;
const RENDER_ENABLE_OVERRIDE: u32 = base::SET_RENDER_ENABLE_OVERRIDE.address;
const TEXTURE_HEADER_VERSION: u32 = SET_TEXTURE_HEADER_VERSION.address;
const QMD_VIRTUALIZATION_CONTROL: u32 = base::SET_QMD_VIRTUALIZATION_CONTROL.address;

/// Methods that start something which is done at once here, or that has no effect on results: there are no caches,
/// and every method is finished before the next one.
const WITHOUT_EFFECT: &[u32] = &[
    base::NO_OPERATION.address,
    base::PIPE_NOP.address,
    base::WAIT_FOR_IDLE.address,
    base::SEND_GO_IDLE.address,
    base::PM_TRIGGER.address,
    base::PM_TRIGGER_WFI.address,
    base::FE_ATOMIC_SEQUENCE_BEGIN.address,
    base::FE_ATOMIC_SEQUENCE_END.address,
    base::INVALIDATE_SHADER_CACHES.address,
    base::INVALIDATE_SHADER_CACHES_NO_WFI.address,
    base::INVALIDATE_SKED_CACHES.address,
    base::INVALIDATE_TEXTURE_HEADER_CACHE.address,
    base::INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI.address,
    base::INVALIDATE_TEXTURE_DATA_CACHE.address,
    base::INVALIDATE_TEXTURE_DATA_CACHE_NO_WFI.address,
    base::INVALIDATE_SAMPLER_CACHE.address,
    base::INVALIDATE_SAMPLER_CACHE_NO_WFI.address,
    base::ACTIVATE_PERF_SETTINGS_FOR_COMPUTE_CONTEXT.address,
    base::SCG_HYSTERESIS_CONTROL.address,
];

/// State that methods, launches and instructions read here.
const STATE: &[&str] = &[
    "SET_SHADER_SHARED_MEMORY_WINDOW_A",
    "SET_SHADER_SHARED_MEMORY_WINDOW_B",
    "SET_SHADER_LOCAL_MEMORY_A",
    "SET_SHADER_LOCAL_MEMORY_B",
    "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A",
    "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B",
    "SET_SHADER_LOCAL_MEMORY_WINDOW_A",
    "SET_SHADER_LOCAL_MEMORY_WINDOW_B",
    "SET_TEX_SAMPLER_POOL_A",
    "SET_TEX_SAMPLER_POOL_B",
    "SET_TEX_SAMPLER_POOL_C",
    "SET_TEX_HEADER_POOL_A",
    "SET_TEX_HEADER_POOL_B",
    "SET_TEX_HEADER_POOL_C",
    "SET_TEXTURE_HEADER_VERSION",
    "SET_INLINE_QMD_ADDRESS_A",
    "SET_INLINE_QMD_ADDRESS_B",
    "SET_I2M_SEMAPHORE_A",
    "SET_I2M_SEMAPHORE_B",
    "SET_I2M_SEMAPHORE_C",
    "SET_REPORT_SEMAPHORE_A",
    "SET_REPORT_SEMAPHORE_B",
    "SET_REPORT_SEMAPHORE_C",
    "SET_REPORT_SEMAPHORE_PAYLOAD_LOWER",
    "SET_REPORT_SEMAPHORE_PAYLOAD_UPPER",
    "SET_REPORT_SEMAPHORE_ADDRESS_LOWER",
    "SET_REPORT_SEMAPHORE_ADDRESS_UPPER",
    // Refused above where they ask for what is not simulated.
    "SET_QMD_VIRTUALIZATION_CONTROL",
    "SET_RENDER_ENABLE_C",
    "SET_GLOBAL_RENDER_ENABLE_C",
    "SET_RENDER_ENABLE_OVERRIDE",
    // Read by macros.
    "SET_MME_SHADOW_SCRATCH",
    "SET_MME_MEM_ADDRESS_A",
    "SET_MME_MEM_ADDRESS_B",
];

/// State that changes no result by itself: how fast work goes, what software keeps for itself, what only methods,
/// modes or engines read that are refused here, as some of macros, conditional execution, notifications and block-linear
/// uploads. A name that ends in `*` stands for all that begin so.
const IDLE_STATE: &[&str] = &[
    "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C",
    "SET_SHADER_LOCAL_MEMORY_THROTTLED_*",
    "SET_SM_SCG_CONTROL",
    "SET_SCG_*",
    "SET_COMPUTE_CLASS_VERSION",
    "SET_QMD_VERSION",
    "SET_CWD_SLOT_COUNT",
    // Counters that the refused PCAS_ACTIONs count.
    "SET_CWD_REF_COUNTER",
    "SET_SKED_CACHE_CONTROL",
    "SET_SPA_VERSION",
    "SET_WFI_FILTER_STATE",
    "SET_SHADER_CACHE_CONTROL",
    "SET_SM_TIMEOUT_INTERVAL",
    // Which bank the handles of bound textures lie in: instructions name the bank themselves.
    "SET_BINDLESS_TEXTURE",
    "SET_VALID_SPAN_OVERFLOW_AREA_*",
    "SET_RENDER_ENABLE_A",
    "SET_RENDER_ENABLE_B",
    "SET_GLOBAL_RENDER_ENABLE_A",
    "SET_GLOBAL_RENDER_ENABLE_B",
    "SET_NOTIFY_A",
    "SET_NOTIFY_B",
    "SET_QMD_VIRTUALIZATION_BASE_*",
    "SET_DST_*",
    "SET_MME_*",
    "SET_MONITORED_FENCE_SIGNAL_ADDRESS_BASE_*",
    "SET_INSTRUMENTATION_METHOD_*",
    "SET_RESERVED_SW_METHOD*",
    "SET_SPARE*",
    "SET_I2M_SPARE_NOOP*",
];

/// State with an effect that is not simulated. NVIDIA's library sets some of it, so it is accepted, and listed.
const UNUSED_STATE: &[&str] =
    &["SET_SHADER_EXCEPTIONS", "SET_TRAP_HANDLER_*", "SET_FALCON*", "SET_SHADER_PERFORMANCE_*"];

/// Whether a method is the one of that name, or of those if the name ends in `*`.
fn is_of(method: &Method, name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(start) => method.name.starts_with(start),
        None => method.name == name,
    }
}

/// Whether a method of a compute class only changes state.
pub fn is_state(method: &Method) -> bool {
    let lists = IDLE_STATE.iter().chain(UNUSED_STATE);
    STATE.contains(&method.name) || lists.into_iter().any(|name| is_of(method, name))
}

/// Methods that hold a value for those that start work.
const HELD: &[u32] = &[
    base::LINE_LENGTH_IN.address,
    base::LINE_COUNT.address,
    base::OFFSET_OUT_UPPER.address,
    base::OFFSET_OUT.address,
    base::PITCH_OUT.address,
    SEND_PCAS_A.address,
    base::SEND_PCAS_B.address,
];

/// One object of a compute class.
#[derive(Debug)]
pub(super) struct Compute {
    class: u32,
    generation: Generation,
    inline: InlineToMemory,
    /// Words of an inline QMD so far.
    qmd_words: u32,
    waiting: launch::Waiting,
}

impl Compute {
    pub(super) fn new(class: u32, generation: Generation) -> Self {
        Self {
            class,
            generation,
            inline: InlineToMemory::default(),
            qmd_words: 0,
            waiting: launch::Waiting::new(),
        }
    }

    fn not_simulated(&self, method: &Method, what: impl Into<String>) -> Fault {
        Fault::NotSimulated { class: self.class, method: method.name, what: what.into() }
    }

    fn bad_value(&self, method: &Method, data: u32, reason: impl Into<String>) -> Fault {
        Fault::BadValue { class: self.class, method: method.name, data, reason: reason.into() }
    }

    pub(super) fn method(
        &mut self,
        context: &mut Context<'_>,
        registers: &Registers,
        method: &'static Method,
        element: u32,
        data: u32,
    ) -> Result<(), Fault> {
        let class = self.class;
        match method.address {
            LAUNCH_DMA => self.inline.launch(context, registers, class, data),
            LOAD_INLINE_DATA => self.inline.load(context, registers, class, data),
            LOAD_INLINE_QMD_DATA => self.inline_qmd(context, registers, method, element, data),
            SIGNALING_PCAS_B => {
                if field(data, &SEND_SIGNALING_PCAS_B::SCHEDULE) != 0 {
                    self.schedule(context, registers, method, data, Arrival::Scheduled)
                } else {
                    Ok(())
                }
            }
            SIGNALING_PCAS2_B => self.pcas2(context, registers, method, data),
            REPORT_SEMAPHORE_D => self.report_semaphore(context, registers, method, data),
            REPORT_EXECUTE => self.report_execute(context, registers, method, data),
            // Measured on H200: a shared window with a low word is a class error. NVIDIA's library sets a local one with such.
            SHARED_WINDOW_B if self.generation >= Generation::Hopper && data != 0 => {
                Err(self.bad_value(method, data, "windows of this class are aligned to 4 GiB"))
            }
            RENDER_ENABLE_C
                if field(data, &base::SET_RENDER_ENABLE_C::MODE) != base::SET_RENDER_ENABLE_C::MODE::TRUE =>
            {
                Err(self.not_simulated(method, "conditional execution"))
            }
            GLOBAL_RENDER_ENABLE_C
                if field(data, &base::SET_GLOBAL_RENDER_ENABLE_C::MODE)
                    != base::SET_GLOBAL_RENDER_ENABLE_C::MODE::TRUE =>
            {
                Err(self.not_simulated(method, "conditional execution"))
            }
            RENDER_ENABLE_OVERRIDE
                if field(data, &base::SET_RENDER_ENABLE_OVERRIDE::MODE)
                    == base::SET_RENDER_ENABLE_OVERRIDE::MODE::NEVER_RENDER =>
            {
                Err(self.not_simulated(method, "NEVER_RENDER"))
            }
            TEXTURE_HEADER_VERSION if data > 1 => {
                Err(self.not_simulated(method, format!("texture headers of version {data}")))
            }
            QMD_VIRTUALIZATION_CONTROL if data != 0 => Err(self.not_simulated(method, "QMD virtualization")),
            address if WITHOUT_EFFECT.contains(&address) || HELD.contains(&address) => Ok(()),
            _ if is_state(method) => {
                // What the value 0 asks for is what is simulated; exceptions are on unless switched off.
                let simulated = u32::from(method.name == "SET_SHADER_EXCEPTIONS");
                if data != simulated && UNUSED_STATE.iter().any(|name| is_of(method, name)) {
                    context.slot.note_gap(format!("{} = {data:#x}, accepted and not done", method.name));
                }
                Ok(())
            }
            _ => Err(self.not_simulated(method, format!("data {data:#010x}"))),
        }
    }

    fn pcas2(
        &mut self,
        context: &mut Context<'_>,
        registers: &Registers,
        method: &Method,
        data: u32,
    ) -> Result<(), Fault> {
        use SEND_SIGNALING_PCAS2_B::PCAS_ACTION as A;
        match field(data, &A) {
            // What is cached of a QMD makes no difference: it is read from memory when it is scheduled.
            A::NOP | A::INVALIDATE | A::PREFETCH => Ok(()),
            A::INVALIDATE_COPY_SCHEDULE | A::INVALIDATE_PREFETCH_COPY_SCHEDULE => {
                self.schedule(context, registers, method, data, Arrival::HandedOver)
            }
            A::SCHEDULE | A::PREFETCH_SCHEDULE | A::INVALIDATE_PREFETCH_COPY_FORCE_REQUIRE_SCHEDULING => {
                self.schedule(context, registers, method, data, Arrival::Scheduled)
            }
            action => {
                let name = A.enumerant(action).unwrap_or("reserved");
                Err(self.not_simulated(method, format!("PCAS_ACTION {name}")))
            }
        }
    }

    fn schedule(
        &mut self,
        context: &mut Context<'_>,
        registers: &Registers,
        method: &Method,
        data: u32,
        arrival: Arrival,
    ) -> Result<(), Fault> {
        if self.inline.is_busy() {
            return Err(self.bad_value(method, data, "an inline transfer still awaits data"));
        }
        let address = u64::from(registers.get(&SEND_PCAS_A)) << 8;
        let qmd = (address, arrival);
        launch::schedule(context, registers, self.class, self.generation, &mut self.waiting, qmd)
    }

    /// LOAD_INLINE_QMD_DATA(i): the word goes into the QMD's memory; the last word hands it over.
    fn inline_qmd(
        &mut self,
        context: &mut Context<'_>,
        registers: &Registers,
        method: &Method,
        element: u32,
        data: u32,
    ) -> Result<(), Fault> {
        let address =
            (registers.address(&SET_INLINE_QMD_ADDRESS_A, &SET_INLINE_QMD_ADDRESS_B)).wrapping_shl(8);
        let place = address.wrapping_add(4 * u64::from(element));
        context.write("compute, inline QMD", place, &data.to_le_bytes())?;
        if element == 0 {
            self.qmd_words = 0;
        }
        if element != self.qmd_words {
            return Err(self.bad_value(method, data, format!("word {element} after {}", self.qmd_words)));
        }
        self.qmd_words += 1;
        let words = self.generation.qmd_version().bytes() as u32 / 4;
        if self.qmd_words == words.min(method.count) {
            self.qmd_words = 0;
            let qmd = (address, Arrival::HandedOver);
            launch::schedule(context, registers, self.class, self.generation, &mut self.waiting, qmd)?;
        }
        Ok(())
    }

    fn report_semaphore(
        &self,
        context: &Context<'_>,
        registers: &Registers,
        method: &Method,
        data: u32,
    ) -> Result<(), Fault> {
        use SET_REPORT_SEMAPHORE_D as D;
        if field(data, &D::OPERATION) != D::OPERATION::RELEASE {
            return Err(self.not_simulated(method, "TRAP"));
        }
        if field(data, &D::CONDITIONAL_TRAP) != 0 {
            return Err(self.not_simulated(method, "CONDITIONAL_TRAP"));
        }
        let reduction =
            graphics_reduction(data, &D::REDUCTION_ENABLE, &D::REDUCTION_OP, &D::REDUCTION_FORMAT)
                .map_err(|reason| self.bad_value(method, data, reason))?;
        let semaphore = Release {
            address: registers.address(&SET_REPORT_SEMAPHORE_A, &SET_REPORT_SEMAPHORE_B),
            payload: registers.get(&SET_REPORT_SEMAPHORE_C).into(),
            width: Width::Word,
            timestamp: field(data, &D::STRUCTURE_SIZE) == D::STRUCTURE_SIZE::FOUR_WORDS,
            reduction,
        };
        self.report(context, method, data, &semaphore, field(data, &D::AWAKEN_ENABLE) != 0)
    }

    fn report_execute(
        &self,
        context: &Context<'_>,
        registers: &Registers,
        method: &Method,
        data: u32,
    ) -> Result<(), Fault> {
        use REPORT_SEMAPHORE_EXECUTE as X;
        if field(data, &X::OPERATION) != X::OPERATION::RELEASE {
            let name = X::OPERATION.enumerant(field(data, &X::OPERATION)).unwrap_or("reserved");
            return Err(self.not_simulated(method, format!("OPERATION {name}")));
        }
        if field(data, &X::TRAP_TYPE) != X::TRAP_TYPE::TRAP_NONE {
            return Err(self.not_simulated(method, "TRAP_TYPE"));
        }
        let size = field(data, &X::STRUCTURE_SIZE);
        let long = field(data, &X::PAYLOAD_SIZE64) != 0 || size == X::STRUCTURE_SIZE::SEMAPHORE_TWO_WORDS;
        let lower = u64::from(registers.get(&SET_REPORT_SEMAPHORE_PAYLOAD_LOWER));
        let upper = u64::from(registers.get(&SET_REPORT_SEMAPHORE_PAYLOAD_UPPER));
        let reduction =
            graphics_reduction(data, &X::REDUCTION_ENABLE, &X::REDUCTION_OP, &X::REDUCTION_FORMAT)
                .map_err(|reason| self.bad_value(method, data, reason))?;
        let semaphore = Release {
            address: registers
                .address(&SET_REPORT_SEMAPHORE_ADDRESS_UPPER, &SET_REPORT_SEMAPHORE_ADDRESS_LOWER),
            payload: upper << 32 | lower,
            width: if long { Width::Long } else { Width::Word },
            timestamp: size == X::STRUCTURE_SIZE::SEMAPHORE_FOUR_WORDS,
            reduction,
        };
        self.report(context, method, data, &semaphore, field(data, &X::AWAKEN_ENABLE) != 0)
    }

    /// Releases a report semaphore, and tells of it where the method asks for that.
    fn report(
        &self,
        context: &Context<'_>,
        method: &Method,
        data: u32,
        semaphore: &Release,
        awaken: bool,
    ) -> Result<(), Fault> {
        let refuse = |reason| self.bad_value(method, data, reason);
        context.release("compute, semaphore release", semaphore, refuse)?;
        if awaken {
            context.interrupt();
        }
        Ok(())
    }
}
