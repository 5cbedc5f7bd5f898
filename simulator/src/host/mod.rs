//! The host interface: channels, their rings, pushbuffers and semaphores.
//!
//! Every channel has a thread of its own, as every channel of the card makes progress of its own: a long kernel or a
//! blocked acquire on one holds up no other. One more thread per GPU looks at the put pointers, because an unmodified
//! client rings the doorbell by a plain store that nobody traps. Threads of idle channels sleep.

mod channel;
mod clock;
mod pushbuffer;
mod scheduler;
pub mod semaphore;

use std::{fmt, sync::Arc, time::Duration};

pub use clock::now;
pub use scheduler::Host;
pub(crate) use scheduler::{Slot, lock};

use crate::{
    fault::FaultReport,
    memory::{AddressSpace, Backing},
};

/// Bytes into USERD of the put pointer, which the client writes (AmpereAControlGPFifo).
pub const USERD_GP_PUT: u64 = 0x8c;
/// Bytes into USERD of the get pointer, which the host writes back.
pub const USERD_GP_GET: u64 = 0x88;
/// Bytes into USERD of what SET_REFERENCE stored.
pub const USERD_REFERENCE: u64 = 0x48;

/// A channel of one [`Host`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelId(pub u32);

/// What the resource manager knows of a channel that it makes.
#[derive(Clone, Debug)]
pub struct ChannelSpec {
    /// GPU virtual address of the ring.
    pub ring_address: u64,
    /// Entries in the ring, a power of two.
    pub entries: u32,
    /// Memory that holds USERD and where in it.
    pub userd: (Arc<Backing>, u64),
    /// Memory that holds the error notifiers and where in it index 0 lies.
    pub notifier: Option<(Arc<Backing>, u64)>,
    /// The address space that every access goes through.
    pub space: Arc<AddressSpace>,
    /// The channel group (TSG). A fault ends all channels of a group.
    pub group: u32,
    /// The subcontext of the channel's context share; all channels of one, and all without one, launch with the same
    /// state of their group.
    pub subcontext: Option<u32>,
    /// NV2080 engine type, which error notifiers carry: 1 for graphics and compute.
    pub engine: u32,
    /// The doorbell token.
    pub token: u32,
    /// How long an acquire may wait; without it, for ever.
    pub acquire_timeout: Option<Duration>,
}

/// What a channel is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelState {
    /// Its group is not scheduled.
    Disabled,
    /// Nothing to do: get and put pointer are equal and the last entry is done.
    Idle,
    /// At work.
    Running,
    /// Waiting for a semaphore.
    Blocked {
        /// GPU virtual address of the semaphore.
        address: u64,
        /// What it is compared with.
        payload: u64,
    },
    /// Accepted work that never completes (a QMD that the hardware hangs on).
    Hung,
    /// Ended by a fault; ignores all work.
    Dead,
}

/// When a client is told of a fault. The channels of the group are silent from the fault on in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultReporting {
    /// As soon as it happens.
    #[default]
    AtOnce,
    /// After a while: the card took 42 to 133 ms.
    After(Duration),
    /// At once, but each channel of the group that long after the one before: a client that looks in between sees some
    /// that are told and some that are not.
    OneByOne(Duration),
    /// Never: the work just does not come to an end, as some faults of a card do.
    Never,
}

/// Something that the kernel module tells its clients of.
#[derive(Clone, Debug)]
pub enum Event {
    /// NON_STALL_INTERRUPT, or an engine's completion interrupt.
    NonStall {
        /// The channel.
        channel: ChannelId,
        /// NV2080 engine type of the channel.
        engine: u32,
    },
    /// A fault ended a channel group; the notifiers are written.
    RobustChannel {
        /// The channel that faulted.
        channel: ChannelId,
        /// The Xid number.
        xid: u32,
    },
}

/// Receives events, on the thread of the channel. It must not call the host back nor wait for one who does.
pub type EventSink = Box<dyn Fn(&Event) + Send + Sync>;

/// Receives the report of every fault, on the thread of the channel. It must not call the host back.
pub type FaultObserver = Box<dyn Fn(&FaultReport) + Send + Sync>;

/// What a host has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Ring entries fetched.
    pub entries: u64,
    /// Methods executed.
    pub methods: u64,
    /// Grids launched.
    pub launches: u64,
    /// Warp instructions executed.
    pub instructions: u64,
    /// Instructions counted once per active lane.
    pub lane_instructions: u64,
    /// Bytes written by copy engines.
    pub bytes_copied: u64,
    /// Semaphores released, by host and engines.
    pub releases: u64,
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
