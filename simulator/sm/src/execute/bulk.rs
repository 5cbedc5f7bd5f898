//! Copies that the block does not wait for, and their barriers: UBLKCP, UBLKRED, STAS. They are made when they are issued:
//! nobody may look at what they write before the barrier or the group of copies says so.

use sass::lane::mbarrier::{self, Arrival};

use super::super::atomic;
use super::super::cluster::RANK;
use super::super::core::Core;
use super::super::fault::FaultKind;
use super::super::lanes::each;
use super::super::memory::{load, store};
use super::super::micro::{Flow, Micro};
use super::handlers;
use super::memory::Place;
use nv_memory::AccessKind;

/// Bits of [`Micro::extra`]: the copy goes to shared memory of the cluster.
pub(crate) const TO_SHARED: u8 = 1;
/// The copy comes from shared memory.
pub(crate) const FROM_SHARED: u8 = 2;
/// It goes to several blocks of the cluster, by a mask in the upper half of the size.
pub(crate) const MULTICAST: u8 = 4;

/// Bytes that a copy is a multiple of, and that its addresses are aligned to.
const UNIT: u64 = 16;

impl Core<'_> {
    /// Memory at an address of one of the two spaces.
    fn bulk(
        &mut self,
        shared: bool,
        address: u64,
        bytes: u64,
        kind: AccessKind,
    ) -> Result<*mut u8, FaultKind> {
        if shared {
            self.shared_lane(address as u32, bytes as u32)
        } else {
            self.caches.windows.lane(&self.launch.map, kind, address, bytes)
        }
    }

    /// Tells a barrier of the cluster that bytes have come.
    fn bytes_came(&mut self, barrier: u32, bytes: u64) -> Result<(), FaultKind> {
        let at = self.shared_lane(barrier, 8)?;
        let arrival = Arrival { count: 0, transactions: -(bytes as i32), leaves: false };
        // SAFETY: range and alignment were checked.
        unsafe { atomic::long(at, |barrier| mbarrier::arrive(barrier, arrival)) };
        Ok(())
    }

    fn bulk_copy(&mut self, op: &Micro) -> Result<(), FaultKind> {
        let (to, from, size) = (self.pair_lane(op.a, 0), self.pair_lane(op.b, 0), self.row(op.c)[0]);
        let bytes = u64::from(size & 0xffff) * UNIT;
        let (to_shared, from_shared) = (op.extra & TO_SHARED != 0, op.extra & FROM_SHARED != 0);
        let (address, barrier) = if to_shared { (to & 0xffff_ffff, (to >> 32) as u32) } else { (to, 0) };
        let from = if from_shared { from & 0xffff_ffff } else { from };
        let ranks = if op.extra & MULTICAST != 0 { size >> 16 } else { 1 };
        for rank in each(ranks) {
            // Each receives at the same place of its own memory.
            let place = |at: u32| {
                if op.extra & MULTICAST == 0 { at } else { at & ((1 << RANK) - 1) | (rank as u32) << RANK }
            };
            let address = if to_shared { place(address as u32).into() } else { address };
            for offset in (0..bytes).step_by(UNIT as usize) {
                let source = self.bulk(from_shared, from.wrapping_add(offset), UNIT, AccessKind::Read)?;
                let target = self.bulk(to_shared, address.wrapping_add(offset), UNIT, AccessKind::Write)?;
                // SAFETY: the look-ups made sure of range, alignment and rights.
                unsafe { store::<16>(target, load::<16>(source)) };
            }
            if to_shared {
                self.bytes_came(place(barrier), bytes)?;
            }
        }
        Ok(())
    }

    fn bulk_reduce(&mut self, op: &Micro) -> Result<(), FaultKind> {
        let (to, from, size) = (self.pair_lane(op.a, 0), self.pair_lane(op.b, 0), self.row(op.c)[0]);
        let bytes = u64::from(size & 0xffff) * UNIT;
        let to_shared = op.extra & TO_SHARED != 0;
        let (address, barrier) = if to_shared { (to & 0xffff_ffff, (to >> 32) as u32) } else { (to, 0) };
        let (operation, kind) = atomic::of_code(op.payload as u8);
        for address in [address, from & 0xffff_ffff] {
            if !address.is_multiple_of(UNIT) {
                return Err(FaultKind::Misaligned { address });
            }
        }
        for offset in (0..bytes).step_by(kind.bytes()) {
            let width = kind.bytes() as u64;
            let source =
                self.bulk(true, (from & 0xffff_ffff).wrapping_add(offset), width, AccessKind::Read)?;
            let target = self.bulk(to_shared, address.wrapping_add(offset), width, AccessKind::Atomic)?;
            // SAFETY: the look-ups made sure of range, alignment and rights.
            unsafe {
                let value = if width == 8 { load::<8>(source) } else { load::<4>(source) };
                let value = u64::from(value[0]) | u64::from(value[1]) << 32;
                atomic::update(target, operation, kind, value, 0);
            }
        }
        if to_shared { self.bytes_came(barrier, bytes) } else { Ok(()) }
    }

    fn store_and_tell<const BYTES: usize>(&mut self, op: &Micro, lane: usize) -> Result<(), FaultKind> {
        let to = self.row(op.a)[lane].wrapping_add(op.payload as u32);
        let barrier = self.row(op.a.plus(1))[lane];
        let data = self.data::<BYTES>(op, lane);
        self.store_lane::<BYTES>(lane, Place::Cluster(to), data)?;
        self.bytes_came(barrier, BYTES as u64)
    }
}

handlers! {
    /// UBLKCP.
    BulkCopy = |core, op, _mask| match core.bulk_copy(op) {
        Ok(()) => Flow::Next,
        Err(kind) => core.fail(kind),
    };
    /// UBLKRED. The payload has operation and type.
    BulkReduce = |core, op, _mask| match core.bulk_reduce(op) {
        Ok(()) => Flow::Next,
        Err(kind) => core.fail(kind),
    };
    /// STAS: where to, and its barrier, are a register pair.
    StoreAndTell<const BYTES: usize> = |core, op, mask| {
        for lane in each(mask) {
            if let Err(kind) = core.store_and_tell::<BYTES>(op, lane) {
                return core.fail(kind);
            }
        }
        Flow::Next
    };
}
