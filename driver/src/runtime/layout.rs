//! What the device runtime and the driver share: `struct State` of `driver/runtime/runtime.cu`, which asserts the same
//! offsets when it is compiled.

/// Bytes that the GPU has reserved in the ring since the beginning.
pub(super) const HEAD: u64 = 0;
/// Bytes that the CPU has taken.
pub(super) const TAIL: u64 = 8;
/// Bytes of the ring, a power of two.
pub(super) const RING_BYTES: u64 = 16;
/// Prints that did not fit.
pub(super) const DROPPED: u64 = 24;
/// The heap's address.
pub(super) const HEAP: u64 = 32;
/// The address of its bitmap.
pub(super) const BITMAP: u64 = 40;
/// Words of the bitmap; then the first one with room, units that are free, and blocks given back.
pub(super) const BITMAP_WORDS: u64 = 48;
/// Units that are free.
pub(super) const FREE_UNITS: u64 = 56;
/// The first failure of a thread; offsets of its members follow, from the beginning of the state.
pub(super) const FAILURE: u64 = 64;
/// Whether the failure is all there.
pub(super) const WRITTEN: u64 = FAILURE + 4;
/// Threads that have failed.
pub(super) const COUNT: u64 = FAILURE + 8;
/// One of [`ASSERTION`] and [`INVALID_FREE`].
pub(super) const KIND: u64 = FAILURE + 12;
/// The block, three words.
pub(super) const BLOCK: u64 = FAILURE + 16;
/// The thread, three words.
pub(super) const THREAD: u64 = FAILURE + 28;
/// The line in the source.
pub(super) const LINE: u64 = FAILURE + 40;
/// What was given to free.
pub(super) const ADDRESS: u64 = FAILURE + 48;
/// Three texts, each with a NUL at its end.
pub(super) const MESSAGE: u64 = FAILURE + 56;
/// Where the source is.
pub(super) const FILE: u64 = MESSAGE + TEXT as u64;
/// The function.
pub(super) const FUNCTION: u64 = FILE + TEXT as u64;
/// Bytes of each text.
pub(super) const TEXT: usize = 256;
/// The ring's first byte; everything before it is the header.
pub(super) const RING: u64 = FUNCTION + TEXT as u64;

/// An assertion that does not hold.
pub(super) const ASSERTION: u32 = 1;
/// An address that malloc did not give, or not any more.
pub(super) const INVALID_FREE: u32 = 2;

/// The mark of a record that is not all there yet.
pub(super) const RESERVED: u32 = 1 << 31;
/// Bytes in front of a record: its bytes, those of the format, of the arguments and of the strings, a word each.
pub(super) const RECORD: usize = 16;
/// What each of them begins at a multiple of.
pub(super) const ALIGNMENT: usize = 8;

/// The allocator's unit in bytes.
pub(super) const UNIT: u64 = 32;
/// Units of a word of the bitmap.
pub(super) const UNITS_PER_WORD: u64 = 32;
