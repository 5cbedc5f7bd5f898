//! The device runtime: `printf`, `assert`, `malloc` and `free` of kernels.
//!
//! A cubin that calls them leaves `vprintf`, `__assertfail`, `malloc` and `free` undefined. This driver has functions of
//! its own for them, in CUDA C++ (`driver/runtime/runtime.cu`), compiled for each architecture and embedded. They are
//! loaded once per device, with the first module that needs them, and share one piece of memory with the CPU: a ring
//! of prints, the allocator's figures, and the first failure. They run wherever the driver does.

mod format;
mod layout;
mod print;

use layout::{
    ADDRESS, ASSERTION, BITMAP, BITMAP_WORDS, BLOCK, COUNT, FILE, FREE_UNITS, FUNCTION, HEAP, INVALID_FREE,
    KIND, LINE, MESSAGE, RING, RING_BYTES, TEXT, THREAD, UNIT, UNITS_PER_WORD, WRITTEN,
};
use print::Ring;
pub(crate) use print::Sink;

use crate::{
    Device, Error,
    error::{Assertion, ChannelFault, InvalidFree},
    memory::{Allocation, Request},
    program::Cubin,
};

/// The runtime's code by SM number, ascending. Each runs on later minor versions of the same major one too.
const CUBINS: &[(u32, &[u8])] = &[
    (80, include_bytes!("../../runtime/sm_80.cubin")),
    (90, include_bytes!("../../runtime/sm_90.cubin")),
    (120, include_bytes!("../../runtime/sm_120.cubin")),
];

/// What cubins call, and the function that does it.
const CALLS: &[(&str, &str)] = &[
    ("vprintf", "runtime_vprintf"),
    ("__assertfail", "runtime_assertfail"),
    ("malloc", "runtime_malloc"),
    ("free", "runtime_free"),
];
/// The symbol of the shared memory.
const STATE: &str = "runtime_state";
/// The least sizes that the runtime works with.
const LEAST_RING: u64 = 4 << 10;
const LEAST_HEAP: u64 = 64 << 10;

/// Whether a symbol that a cubin leaves undefined is one of the runtime's.
pub(crate) fn provides(symbol: &str) -> bool {
    CALLS.iter().any(|(name, _)| *name == symbol)
}

/// The runtime on one device.
#[derive(Debug)]
pub(crate) struct Runtime {
    calls: Vec<(&'static str, u64)>,
    /// Most registers of its functions; a kernel that calls them must have as many.
    pub(crate) registers: u32,
    /// Most stack of its functions in bytes.
    pub(crate) stack_bytes: u32,
    ring: Ring,
    state: Allocation,
    #[allow(dead_code, reason = "owned: kernels use them")]
    memory: [Allocation; 2],
}

impl Runtime {
    /// Loads it. The device must not have one yet.
    pub(crate) fn load(device: &Device) -> Result<Self, Error> {
        let sm = device.sm();
        let usable = |of: u32| of / 10 == sm / 10 && of <= sm;
        let (_, bytes) = CUBINS.iter().rfind(|(of, _)| usable(*of)).ok_or(Error::NoRuntime { device: sm })?;
        let cubin = Cubin::parse(bytes)?;
        let options = device.options();
        let gpu = device.gpu();

        let ring_bytes = options.printf_buffer_bytes.max(LEAST_RING);
        let ring_bytes =
            ring_bytes.checked_next_power_of_two().ok_or(Error::AddressSpace { bytes: ring_bytes })?;
        // Whole words of the bitmap, which lies in front of the heap.
        let words = options.malloc_heap_bytes.max(LEAST_HEAP).div_ceil(UNIT * UNITS_PER_WORD);
        let bitmap_bytes = (words * 4).next_multiple_of(UNIT);
        let words = u32::try_from(words)
            .ok()
            .filter(|words| u64::from(*words) * UNITS_PER_WORD <= i32::MAX as u64)
            .ok_or(Error::AddressSpace { bytes: options.malloc_heap_bytes })?;
        let heap_bytes = bitmap_bytes + u64::from(words) * UNITS_PER_WORD * UNIT;

        let code = Allocation::new(gpu, Request::video("the device runtime", cubin.image_bytes()))?;
        let heap = Allocation::new(gpu, Request::video("the heap of malloc", heap_bytes))?;
        let state = Allocation::new(gpu, Request::video("the runtime's state", RING + ring_bytes).visible())?;
        let window = state.window()?;
        window.write(0, &vec![0; (RING + ring_bytes) as usize])?;
        window.store64(RING_BYTES, ring_bytes)?;
        window.store64(HEAP, heap.address() + bitmap_bytes)?;
        window.store64(BITMAP, heap.address())?;
        window.store32(BITMAP_WORDS, words)?;
        window.store32(FREE_UNITS, words * UNITS_PER_WORD as u32)?;
        device.upload(heap.address(), &vec![0; bitmap_bytes as usize])?;
        let image = cubin.link_with(code.address(), |symbol| (symbol == STATE).then_some(state.address()))?;
        device.upload(code.address(), &image)?;

        let functions = cubin.functions();
        let mut calls = Vec::new();
        for (call, name) in CALLS {
            let function = functions.iter().find(|function| function.name == *name);
            let function = function.ok_or(Error::NoRuntime { device: sm })?;
            calls.push((*call, code.address() + function.code.start));
        }
        Ok(Self {
            calls,
            registers: functions.iter().map(|function| function.registers).max().unwrap_or(0),
            stack_bytes: functions.iter().map(|function| function.stack_bytes).max().unwrap_or(0),
            ring: Ring { state: window, bytes: ring_bytes },
            state,
            memory: [code, heap],
        })
    }

    /// The address of a function that a cubin calls.
    pub(crate) fn resolve(&self, symbol: &str) -> Option<u64> {
        self.calls.iter().find(|(name, _)| *name == symbol).map(|(_, address)| *address)
    }

    /// Prints what kernels have printed. `dead` if none of them runs any more.
    pub(crate) fn drain(&self, sink: &mut Sink, dead: bool) -> Result<(), Error> {
        self.ring.drain(sink, dead)
    }

    /// Prints that were lost because the buffer was full.
    pub(crate) fn dropped(&self) -> Result<u64, Error> {
        self.ring.dropped()
    }

    /// What a thread says about why it ended the channel, if one does.
    pub(crate) fn failure(&self, fault: &ChannelFault) -> Result<Option<Error>, Error> {
        let state = self.state.window()?;
        if state.load32(WRITTEN)? == 0 {
            return Ok(None);
        }
        let three = |offset: u64| {
            Ok::<_, Error>([state.load32(offset)?, state.load32(offset + 4)?, state.load32(offset + 8)?])
        };
        let text = |offset: u64| {
            let mut bytes = [0; TEXT];
            state.read(offset, &mut bytes)?;
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(TEXT);
            Ok::<_, Error>(String::from_utf8_lossy(&bytes[..end]).into_owned())
        };
        let (block, thread) = (three(BLOCK)?, three(THREAD)?);
        Ok(match state.load32(KIND)? {
            ASSERTION => Some(Error::Assertion(Box::new(Assertion {
                message: text(MESSAGE)?,
                file: text(FILE)?,
                line: state.load32(LINE)?,
                function: text(FUNCTION)?,
                block,
                thread,
                threads: state.load32(COUNT)?,
                fault: fault.clone(),
            }))),
            INVALID_FREE => Some(Error::InvalidFree(Box::new(InvalidFree {
                address: state.load64(ADDRESS)?,
                block,
                thread,
                fault: fault.clone(),
            }))),
            // Overwritten by the kernel.
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_runtime_cubin_has_the_functions_and_needs_only_the_state() {
        for (sm, bytes) in CUBINS {
            let cubin = Cubin::parse(bytes).unwrap();
            assert_eq!(cubin.sm(), *sm);
            assert_eq!(cubin.externals(), [STATE], "sm_{sm}");
            for (_, name) in CALLS {
                assert!(cubin.functions().iter().any(|function| function.name == *name), "sm_{sm}: {name}");
            }
            cubin.link_with(0x10_0000_0000, |_| Some(0x20_0000_0000)).unwrap();
        }
    }

    #[test]
    fn no_runtime_function_reads_a_constant_bank_of_its_own() {
        for (sm, bytes) in CUBINS {
            let elf = goblin::elf::Elf::parse(bytes).unwrap();
            for header in &elf.section_headers {
                let name = elf.shdr_strtab.get_at(header.sh_name).unwrap();
                assert!(!name.starts_with(".nv.constant"), "sm_{sm}: {name}");
            }
        }
    }
}
