//! A cluster: blocks that are resident together, meet at a barrier of their own, and reach each other's shared memory.
//!
//! One worker runs all blocks of a cluster, in turns: nothing here is ever used by two threads at once. The atomics are
//! for the sake of blocks that move between threads with their worker.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

use super::lanes::Lanes;

/// Bit of a shared address from which on the number of the block in its cluster stands.
pub(super) const RANK: u32 = 24;

/// What the blocks of a cluster share.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// Shared memory of each block, by its number; null where the block has ended.
    shared: Box<[AtomicPtr<Lanes>]>,
    /// Threads that did not exit.
    alive: AtomicU32,
    /// Those of them that have come to the barrier in this phase.
    arrived: AtomicU32,
    /// Phases of the barrier that are over.
    phase: AtomicU32,
    /// Blocks that did not end.
    blocks: AtomicU32,
}

impl Cluster {
    /// Blocks of so many threads each, with their shared memory.
    pub fn new(threads: u32, shared: impl Iterator<Item = *mut Lanes>) -> Self {
        let shared: Box<[_]> = shared.map(AtomicPtr::new).collect();
        let blocks = shared.len() as u32;
        Self {
            shared,
            alive: AtomicU32::new(threads * blocks),
            arrived: AtomicU32::new(0),
            phase: AtomicU32::new(0),
            blocks: AtomicU32::new(blocks),
        }
    }

    /// Makes this the cluster of one block that starts, if it was one of one block.
    #[inline(always)]
    pub fn restart(&mut self, threads: u32, shared: *mut Lanes) -> bool {
        let [only] = &mut *self.shared else { return false };
        *only.get_mut() = shared;
        (*self.alive.get_mut(), *self.arrived.get_mut(), *self.phase.get_mut()) = (threads, 0, 0);
        *self.blocks.get_mut() = 1;
        true
    }

    /// Blocks, ended ones too.
    pub fn size(&self) -> u32 {
        self.shared.len() as u32
    }

    /// The shared memory of a block that is there.
    pub fn shared(&self, rank: u32) -> Option<*mut Lanes> {
        let pointer = self.shared.get(rank as usize)?.load(Relaxed);
        (!pointer.is_null()).then_some(pointer)
    }

    /// Phases of the barrier that are over.
    #[inline(always)]
    pub fn phase(&self) -> u32 {
        self.phase.load(Relaxed)
    }

    fn change(counter: &AtomicU32, f: impl FnOnce(u32) -> u32) {
        counter.store(f(counter.load(Relaxed)), Relaxed);
    }

    /// Threads come to the barrier.
    pub fn arrive(&self, threads: u32) {
        Self::change(&self.arrived, |n| n + threads);
        self.settle();
    }

    /// Threads exit, of which some had come to the barrier.
    #[inline(always)]
    pub fn leave(&self, threads: u32, arrived: u32) {
        Self::change(&self.alive, |n| n - threads);
        Self::change(&self.arrived, |n| n - arrived);
        self.settle();
    }

    #[inline(always)]
    fn settle(&self) {
        let arrived = self.arrived.load(Relaxed);
        if arrived != 0 && arrived >= self.alive.load(Relaxed) {
            self.arrived.store(0, Relaxed);
            Self::change(&self.phase, |n| n.wrapping_add(1));
        }
    }

    /// A block ends. Whether all have.
    pub fn end(&self, rank: u32) -> bool {
        if let Some(shared) = self.shared.get(rank as usize) {
            shared.store(std::ptr::null_mut(), Relaxed);
        }
        Self::change(&self.blocks, |n| n - 1);
        self.blocks.load(Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_barrier_waits_for_all_threads_that_did_not_exit() {
        let mut memory = [Lanes::splat(0); 2];
        let cluster = Cluster::new(64, memory.iter_mut().map(std::ptr::from_mut));
        cluster.arrive(64);
        cluster.leave(32, 0);
        assert_eq!(cluster.phase(), 0);
        cluster.leave(32, 0);
        assert_eq!(cluster.phase(), 1);
        cluster.arrive(63);
        cluster.leave(1, 0);
        assert_eq!(cluster.phase(), 2);
    }

    #[test]
    fn a_block_that_ended_has_no_shared_memory() {
        let mut memory = [Lanes::splat(0); 2];
        let cluster = Cluster::new(32, memory.iter_mut().map(std::ptr::from_mut));
        assert!(cluster.shared(1).is_some() && cluster.shared(2).is_none());
        assert!(!cluster.end(1));
        assert!(cluster.shared(1).is_none());
        assert!(cluster.end(0));
    }
}
