//! Threads: one per channel, and one that looks for work nobody announced.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle, Thread},
    time::{Duration, Instant},
};

use nv_abi::arch::Generation;

use super::{
    ChannelId, ChannelSpec, ChannelState, Counters, Event, EventSink, FaultObserver, FaultReporting,
    USERD_GP_PUT, clock,
    pushbuffer::{Pushbuffer, Step},
};
use crate::{
    engine::{Executor, GraphicsState, GridObserver},
    fault::{Fault, FaultReport, PbdmaInterrupt},
    memory::{Backing, BackingError, MmuFault},
    profile::Profile,
    sm::Observe,
    source::{Program, Programs, Source},
};

/// How often put pointers are looked at: soon after work was found, and when nothing happens for a while or doorbells
/// are heard. A client whose doorbell is a plain store that nobody sees waits this long at most. The card
/// starts within microseconds, and clients count on it without knowing (they patch memory of work that they take for
/// done), hence the short first period; the later ones keep an idle process from using the processor.
const POLL_BUSY: Duration = Duration::from_micros(20);
const POLL_IDLE: Duration = Duration::from_micros(200);
const POLL_QUIET: Duration = Duration::from_millis(8);
/// Polls without work after which the longer periods begin: about 0.1 s, then 2 s.
const BUSY_POLLS: u32 = 3000;
const IDLE_POLLS: u32 = 10_000;

/// How long a channel that ran out of work looks for more before its thread sleeps: to wake a thread takes longer than a
/// small launch, and a client that waits for every launch makes the next one soon.
const WATCH: Duration = Duration::from_micros(50);
/// Looks at the doorbell between two looks at the put pointer and the clock.
const LOOKS: u32 = 32;
/// Whether looking keeps nobody else from running: the client needs a processor of its own.
static CAN_WATCH: LazyLock<bool> =
    LazyLock::new(|| thread::available_parallelism().is_ok_and(|processors| processors.get() > 1));

/// How long a blocked acquire sleeps between two looks at memory: at first, and at most.
const BLOCKED_FIRST: Duration = Duration::from_micros(5);
const BLOCKED_LAST: Duration = Duration::from_micros(500);
/// Looks before the sleeps become longer.
const BLOCKED_TRIES: u32 = 32;

/// Reports kept; older ones are dropped.
const REPORTS: usize = 256;

/// Lets short sleeps of this thread end when they should, and not up to 50 µs later.
fn wake_on_time() {
    // Without it everything works, only later.
    let _ = nix::sys::prctl::set_timerslack(1);
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the mutexes hold is valid after every statement, so a panic elsewhere has not spoilt it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// By channel group and subcontext.
type Contexts = BTreeMap<(u32, Option<u32>), Weak<GraphicsState>>;

/// The counters of [`Counters`], shared by the channels of a host.
#[derive(Debug, Default)]
pub(crate) struct SharedCounters {
    pub(crate) entries: AtomicU64,
    pub(crate) methods: AtomicU64,
    pub(crate) launches: AtomicU64,
    pub(crate) instructions: AtomicU64,
    pub(crate) lane_instructions: AtomicU64,
    pub(crate) bytes_copied: AtomicU64,
    pub(crate) releases: AtomicU64,
}

/// A channel as all threads see it.
pub(crate) struct Slot {
    pub(crate) id: ChannelId,
    pub(crate) spec: ChannelSpec,
    pub(crate) generation: Generation,
    /// Architecture number, as 89 for sm_89.
    pub(crate) sm: u32,
    pub(crate) counters: Arc<SharedCounters>,
    pub(crate) executor: Arc<dyn Executor>,
    /// What the channels of its context share.
    pub(crate) graphics: Arc<GraphicsState>,
    /// Set to end what the channel's thread does, kernels included.
    pub(crate) stop: AtomicBool,
    /// The get pointer, for whoever looks for new work.
    pub(crate) gp_get: AtomicU32,
    classes: Mutex<Vec<u32>>,
    enabled: AtomicBool,
    dead: AtomicBool,
    removed: AtomicBool,
    state: Mutex<ChannelState>,
    /// Something may have changed since the channel's thread last looked.
    look: AtomicBool,
    /// The channel's thread, once it runs.
    thread: OnceLock<Thread>,
    host: Weak<Shared>,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("id", &self.id)
            .field("state", &*lock(&self.state))
            .finish_non_exhaustive()
    }
}

impl Slot {
    /// Whether an object of that class was made on the channel.
    pub(crate) fn has_class(&self, class: u32) -> bool {
        lock(&self.classes).contains(&class)
    }

    /// Whether the thread has to leave the pushbuffer now.
    pub(crate) fn must_pause(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || !self.enabled.load(Ordering::Relaxed)
    }

    /// Tells the kernel module's side.
    pub(crate) fn notify(&self, event: &Event) {
        if let Some(host) = self.host.upgrade()
            && let Some(sink) = &*lock(&host.sink)
        {
            sink(event);
        }
    }

    fn wake(&self) {
        self.look.store(true, Ordering::Release);
        // A thread that does not run yet looks at everything first.
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn set_state(&self, state: ChannelState) {
        *lock(&self.state) = state;
    }

    /// Sleeps until woken, or for `limit`. Returns at once if there was a wake since the last call, and sometimes for no
    /// reason.
    fn sleep(&self, limit: Option<Duration>) {
        if !self.look.load(Ordering::Acquire) {
            match limit {
                None => thread::park(),
                Some(limit) => thread::park_timeout(limit),
            }
        }
        self.look.swap(false, Ordering::AcqRel);
    }

    /// Looks for work for a while without sleeping. Whether there may be some.
    fn watch(&self) -> bool {
        if !*CAN_WATCH {
            return false;
        }
        let end = Instant::now() + WATCH;
        loop {
            for _ in 0..LOOKS {
                if self.look.load(Ordering::Acquire) {
                    return true;
                }
                std::hint::spin_loop();
            }
            if self.has_new_entries() {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
        }
    }

    fn has_new_entries(&self) -> bool {
        let (memory, offset) = &self.spec.userd;
        // A USERD that cannot be read is reported by the thread, when it takes the entry.
        memory.read_u32(offset + USERD_GP_PUT).map_or(true, |put| put != self.gp_get.load(Ordering::Acquire))
    }

    /// Says that there is work, before the get pointer says that an entry was taken: whoever finds the pointers equal
    /// and the channel idle after that knows that everything is done.
    pub(super) fn begin(&self) {
        let mut state = lock(&self.state);
        if !matches!(*state, ChannelState::Blocked { .. }) {
            *state = ChannelState::Running;
        }
    }

    fn is_live(&self) -> bool {
        self.enabled.load(Ordering::Acquire) && !self.dead.load(Ordering::Acquire)
    }

    /// The life of the channel's thread.
    fn run(&self) {
        wake_on_time();
        // Set once: a slot has one thread.
        let _ = self.thread.set(thread::current());
        let mut pushbuffer = Pushbuffer::new(self.generation);
        let mut blocked = BLOCKED_FIRST;
        let mut tries = 0u32;
        let mut since = None;
        loop {
            if self.removed.load(Ordering::Acquire) {
                return;
            }
            if self.dead.load(Ordering::Acquire) {
                // A hung channel stays hung until its group is ended.
                if *lock(&self.state) != ChannelState::Hung || self.stop.load(Ordering::Acquire) {
                    self.set_state(ChannelState::Dead);
                }
                self.sleep(None);
                continue;
            }
            if !self.enabled.load(Ordering::Acquire) {
                self.set_state(ChannelState::Disabled);
                self.sleep(None);
                continue;
            }
            if pushbuffer.is_busy() {
                self.begin();
            }
            let step = pushbuffer.step(self);
            if !matches!(step, Ok(Step::Blocked { .. })) {
                since = None;
            }
            match step {
                Ok(Step::Progress) => {
                    (blocked, tries) = (BLOCKED_FIRST, 0);
                    self.set_state(ChannelState::Running);
                }
                Ok(Step::Idle) => {
                    (blocked, tries) = (BLOCKED_FIRST, 0);
                    self.set_state(ChannelState::Idle);
                    if self.watch() {
                        self.look.swap(false, Ordering::AcqRel);
                    } else {
                        self.sleep(None);
                    }
                }
                Ok(Step::Blocked { address, payload }) => {
                    let since = *since.get_or_insert_with(Instant::now);
                    if let Some(limit) = self.spec.acquire_timeout.filter(|limit| since.elapsed() >= *limit) {
                        let reason = format!("no {payload:#x} at {address:#x} within {limit:?}");
                        let fault = Fault::Pbdma { interrupt: PbdmaInterrupt::Acquire, reason };
                        self.fault(fault, &pushbuffer);
                        continue;
                    }
                    self.set_state(ChannelState::Blocked { address, payload });
                    self.sleep(Some(blocked));
                    tries += 1;
                    if tries > BLOCKED_TRIES {
                        blocked = (blocked * 2).min(BLOCKED_LAST);
                    }
                }
                Err(fault) => self.fault(fault, &pushbuffer),
            }
        }
    }

    fn fault(&self, fault: Fault, pushbuffer: &Pushbuffer) {
        let Some(host) = self.host.upgrade() else { return };
        // A kernel that was told to stop is not a fault.
        if self.removed.load(Ordering::Acquire) || self.dead.load(Ordering::Acquire) {
            return;
        }
        let time = clock::now();
        let xid = fault.xid();
        let report = FaultReport {
            channel: self.id,
            token: self.spec.token,
            group: self.spec.group,
            engine: self.spec.engine,
            time,
            source: self.source(&host, &fault),
            fault,
            location: pushbuffer.location,
            before: pushbuffer.recent(),
        };
        if let Some(observer) = &*lock(&host.observer) {
            observer(&report);
        }
        {
            let mut reports = lock(&host.reports);
            if reports.len() == REPORTS {
                reports.remove(0);
            }
            reports.push(report);
        }
        let reporting = *lock(&host.reporting);
        match xid.filter(|_| reporting != FaultReporting::Never) {
            Some(xid) => {
                host.silence_group(self.spec.group);
                if let FaultReporting::After(delay) = reporting {
                    self.delay(delay);
                }
                let apart = match reporting {
                    FaultReporting::OneByOne(apart) => apart,
                    _ => Duration::ZERO,
                };
                host.tell_group(self.spec.group, xid, clock::now(), || self.delay(apart));
                self.notify(&Event::RobustChannel { channel: self.id, xid });
            }
            None => {
                self.set_state(ChannelState::Hung);
                self.dead.store(true, Ordering::Release);
            }
        }
    }

    /// What is known of the code that a warp faulted in.
    fn source(&self, host: &Shared, fault: &Fault) -> Option<Source> {
        let Fault::Shader { program_address, .. } = fault else { return None };
        let program_counter = fault.exception().map_or(*program_address, |fault| fault.program_counter);
        lock(&host.programs).find(&self.spec.space.snapshot(), *program_address, program_counter)
    }

    /// Remembers state that was accepted and whose effect is not simulated.
    pub(crate) fn note_gap(&self, what: String) {
        if let Some(host) = self.host.upgrade() {
            *lock(&host.gaps).entry(what).or_default() += 1;
        }
    }

    /// Waits as the kernel module does before it tells of a fault, unless the channel goes.
    fn delay(&self, delay: Duration) {
        let end = Instant::now() + delay;
        while !self.removed.load(Ordering::Acquire) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(Duration::from_millis(2)));
        }
    }

    /// Writes error notifier 0 in the order that the kernel module does: code, time, then engine and status in one
    /// store, which is what a client polls.
    fn write_notifier(&self, xid: u32, time: u64) -> Result<(), BackingError> {
        let Some((memory, offset)) = &self.spec.notifier else { return Ok(()) };
        memory.write_u32(offset + 8, xid)?;
        // Measured on H200: the high word comes first.
        memory.write_u64(*offset, time.rotate_left(32))?;
        memory.write_u32(offset + 12, (self.spec.engine & 0xffff) | 0xffff << 16)
    }
}

struct Entry {
    slot: Arc<Slot>,
    thread: Option<JoinHandle<()>>,
}

/// What the threads of a host share.
struct Shared {
    channels: Mutex<BTreeMap<ChannelId, Entry>>,
    reports: Mutex<Vec<FaultReport>>,
    sink: Mutex<Option<EventSink>>,
    observer: Mutex<Option<FaultObserver>>,
    reporting: Mutex<FaultReporting>,
    programs: Mutex<Programs>,
    /// What was accepted and not done, with how often.
    gaps: Mutex<BTreeMap<String, u64>>,
    enabled_groups: Mutex<Vec<u32>>,
    /// What the channels of each context share, as long as one of them is there.
    contexts: Mutex<Contexts>,
    counters: Arc<SharedCounters>,
    closing: AtomicBool,
    /// Doorbells are heard: new work is announced, and looked for only to make sure.
    announced: AtomicBool,
    poller: Mutex<()>,
    poller_wake: Condvar,
}

impl Shared {
    fn slots(&self) -> Vec<Arc<Slot>> {
        lock(&self.channels).values().map(|entry| Arc::clone(&entry.slot)).collect()
    }

    fn graphics(&self, group: u32, subcontext: Option<u32>) -> Arc<GraphicsState> {
        let mut contexts = lock(&self.contexts);
        contexts.retain(|_, state| state.strong_count() > 0);
        if let Some(state) = contexts.get(&(group, subcontext)).and_then(Weak::upgrade) {
            return state;
        }
        let state = Arc::new(GraphicsState::default());
        contexts.insert((group, subcontext), Arc::downgrade(&state));
        state
    }

    /// Ends every channel of a group: none takes work any more.
    fn silence_group(&self, group: u32) {
        for slot in self.slots().iter().filter(|slot| slot.spec.group == group) {
            slot.dead.store(true, Ordering::Release);
            slot.stop.store(true, Ordering::Release);
            slot.set_state(ChannelState::Dead);
            slot.wake();
        }
    }

    /// Writes the notifiers of every channel of a group.
    fn tell_group(&self, group: u32, xid: u32, time: u64, mut between: impl FnMut()) {
        for slot in self.slots().iter().filter(|slot| slot.spec.group == group) {
            // Without memory for it nobody can be told; the report is kept all the same.
            let _ = slot.write_notifier(xid, time);
            between();
        }
    }

    /// The life of the thread that looks at put pointers.
    fn poll(&self) {
        wake_on_time();
        let mut without_work = 0u32;
        while !self.closing.load(Ordering::Acquire) {
            // Taken before the channels are looked at: who adds one and then wakes this thread is not missed.
            let guard = lock(&self.poller);
            let live: Vec<_> = self.slots().into_iter().filter(|slot| slot.is_live()).collect();
            let period = match without_work {
                _ if self.announced.load(Ordering::Relaxed) => POLL_QUIET,
                0..BUSY_POLLS => POLL_BUSY,
                BUSY_POLLS..IDLE_POLLS => POLL_IDLE,
                _ => POLL_QUIET,
            };
            if live.is_empty() && !self.closing.load(Ordering::Acquire) {
                drop(self.poller_wake.wait(guard));
                continue;
            }
            drop(self.poller_wake.wait_timeout(guard, period));
            let mut found = false;
            for slot in &live {
                if slot.has_new_entries() && *lock(&slot.state) == ChannelState::Idle {
                    slot.wake();
                    found = true;
                }
            }
            if found {
                // Nobody said so.
                self.announced.store(false, Ordering::Relaxed);
            }
            without_work = if found { 0 } else { without_work.saturating_add(1) };
        }
    }

    fn wake_poller(&self) {
        drop(lock(&self.poller));
        self.poller_wake.notify_all();
    }
}

/// The host interface of one GPU.
pub struct Host {
    generation: Generation,
    sm: u32,
    executor: Arc<dyn Executor>,
    shared: Arc<Shared>,
    next: AtomicU32,
    poller: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("channels", &self.shared.slots()).finish_non_exhaustive()
    }
}

impl Host {
    /// A host without channels, whose kernels `executor` executes.
    pub fn new(profile: Arc<Profile>, executor: Arc<dyn Executor>) -> Arc<Self> {
        Arc::new(Self {
            generation: profile.generation,
            sm: profile.sm(),
            executor,
            shared: Arc::new(Shared {
                channels: Mutex::default(),
                reports: Mutex::default(),
                sink: Mutex::default(),
                observer: Mutex::default(),
                reporting: Mutex::default(),
                programs: Mutex::default(),
                gaps: Mutex::default(),
                enabled_groups: Mutex::default(),
                contexts: Mutex::default(),
                counters: Arc::default(),
                closing: AtomicBool::new(false),
                announced: AtomicBool::new(false),
                poller: Mutex::default(),
                poller_wake: Condvar::new(),
            }),
            next: AtomicU32::new(0),
            poller: Mutex::default(),
        })
    }

    /// Who is told of interrupts and faults from now on.
    pub fn set_event_sink(&self, sink: EventSink) {
        *lock(&self.shared.sink) = Some(sink);
    }

    /// Who is told of every fault as it happens, from now on.
    pub fn set_fault_observer(&self, observer: FaultObserver) {
        *lock(&self.shared.observer) = Some(observer);
    }

    /// Who is told of every grid, from now on; see [`Executor::observe`].
    pub fn observe_grids(&self, what: Observe, observer: GridObserver) -> bool {
        self.executor.observe(what, observer)
    }

    /// How faults are told from now on.
    pub fn set_fault_reporting(&self, reporting: FaultReporting) {
        *lock(&self.shared.reporting) = reporting;
    }

    /// Adds a channel. It works as soon as its group is enabled.
    pub fn add_channel(&self, spec: ChannelSpec) -> ChannelId {
        let id = ChannelId(self.next.fetch_add(1, Ordering::Relaxed));
        let enabled = lock(&self.shared.enabled_groups).contains(&spec.group);
        let graphics = self.shared.graphics(spec.group, spec.subcontext);
        let slot = Arc::new(Slot {
            id,
            spec,
            graphics,
            generation: self.generation,
            sm: self.sm,
            counters: Arc::clone(&self.shared.counters),
            executor: Arc::clone(&self.executor),
            stop: AtomicBool::new(false),
            gp_get: AtomicU32::new(0),
            classes: Mutex::default(),
            enabled: AtomicBool::new(enabled),
            dead: AtomicBool::new(false),
            removed: AtomicBool::new(false),
            state: Mutex::new(ChannelState::Disabled),
            look: AtomicBool::new(false),
            thread: OnceLock::new(),
            host: Arc::downgrade(&self.shared),
        });
        let worker = Arc::clone(&slot);
        let thread = thread::spawn(move || worker.run());
        lock(&self.shared.channels).insert(id, Entry { slot, thread: Some(thread) });
        let mut poller = lock(&self.poller);
        if poller.is_none() {
            let shared = Arc::clone(&self.shared);
            *poller = Some(thread::spawn(move || shared.poll()));
        }
        drop(poller);
        self.shared.wake_poller();
        id
    }

    /// Stops and removes a channel; unknown ones are ignored. Returns when its thread has ended.
    pub fn remove_channel(&self, id: ChannelId) {
        let entry = lock(&self.shared.channels).remove(&id);
        if let Some(entry) = entry {
            Self::end(entry);
        }
    }

    fn end(mut entry: Entry) {
        entry.slot.removed.store(true, Ordering::Release);
        entry.slot.stop.store(true, Ordering::Release);
        entry.slot.wake();
        if let Some(thread) = entry.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }

    fn slot(&self, id: ChannelId) -> Option<Arc<Slot>> {
        lock(&self.shared.channels).get(&id).map(|entry| Arc::clone(&entry.slot))
    }

    /// Lets SET_OBJECT name `class` on the channel from now on.
    pub fn bind_class(&self, id: ChannelId, class: u32) {
        if let Some(slot) = self.slot(id) {
            let mut classes = lock(&slot.classes);
            if !classes.contains(&class) {
                classes.push(class);
            }
        }
    }

    /// Schedules a channel group or takes it off the run list, also for channels that are added to it later. Work
    /// under way stops before the next pushbuffer word.
    pub fn set_enabled(&self, group: u32, enabled: bool) {
        {
            let mut groups = lock(&self.shared.enabled_groups);
            groups.retain(|known| *known != group);
            if enabled {
                groups.push(group);
            }
        }
        for slot in self.shared.slots().iter().filter(|slot| slot.spec.group == group) {
            slot.enabled.store(enabled, Ordering::Release);
            slot.wake();
        }
        self.shared.wake_poller();
    }

    /// Schedules one channel or takes it off the run list, whatever its group.
    pub fn set_channel_enabled(&self, id: ChannelId, enabled: bool) {
        if let Some(slot) = self.slot(id) {
            slot.enabled.store(enabled, Ordering::Release);
            slot.wake();
        }
        self.shared.wake_poller();
    }

    /// The doorbell: looks at the channel of that token. Unknown tokens are ignored, as the card does.
    pub fn doorbell(&self, token: u32) {
        self.shared.announced.store(true, Ordering::Relaxed);
        for entry in lock(&self.shared.channels).values().filter(|entry| entry.slot.spec.token == token) {
            entry.slot.wake();
        }
    }

    /// Where channels have their put pointers.
    pub(crate) fn put_pointers(&self) -> Vec<(Arc<Backing>, u64)> {
        let place = |slot: &Arc<Slot>| {
            let (memory, offset) = &slot.spec.userd;
            (Arc::clone(memory), offset + USERD_GP_PUT)
        };
        self.shared.slots().iter().map(place).collect()
    }

    /// How many channels have been made so far.
    pub(crate) fn channels_made(&self) -> u32 {
        self.next.load(Ordering::Relaxed)
    }

    /// Some doorbell rang: looks at every channel.
    pub fn announce(&self) {
        self.shared.announced.store(true, Ordering::Relaxed);
        for slot in self.shared.slots() {
            slot.wake();
        }
    }

    /// Waits until every channel is out of work or waits for a semaphore; false if `limit` passes first.
    pub fn settle(&self, limit: Duration) -> bool {
        // A thread that sleeps is woken in time on a busy machine; one that yields is not.
        self.wait(limit, Duration::from_micros(3), true)
    }

    /// Looks every `period` until no channel has anything to do; `blocked` says what an acquire that does not pass
    /// counts as.
    fn wait(&self, limit: Duration, period: Duration, blocked: bool) -> bool {
        let end = Instant::now() + limit;
        loop {
            let done = self.shared.slots().iter().all(|slot| match *lock(&slot.state) {
                ChannelState::Idle => !slot.has_new_entries(),
                ChannelState::Disabled => !slot.enabled.load(Ordering::Acquire),
                ChannelState::Running => false,
                ChannelState::Blocked { .. } => blocked,
                ChannelState::Hung | ChannelState::Dead => true,
            });
            if done || Instant::now() >= end {
                return done;
            }
            thread::sleep(period);
        }
    }

    /// What a channel is doing. `None` for one that does not exist.
    pub fn channel_state(&self, id: ChannelId) -> Option<ChannelState> {
        self.slot(id).map(|slot| *lock(&slot.state))
    }

    /// Ends the group of a channel as RESET_CHANNEL does: the notifiers get `xid`.
    pub fn reset_channel(&self, id: ChannelId, xid: u32) {
        if let Some(slot) = self.slot(id) {
            self.shared.silence_group(slot.spec.group);
            self.shared.tell_group(slot.spec.group, xid, clock::now(), || ());
        }
    }

    /// Ends the group of a channel without a word.
    pub fn halt(&self, id: ChannelId) {
        if let Some(slot) = self.slot(id) {
            self.shared.silence_group(slot.spec.group);
        }
    }

    /// Writes the notifier of a channel, or those of its group, and lets it work on.
    pub fn notify_error(&self, id: ChannelId, xid: u32, whole_group: bool) {
        let Some(slot) = self.slot(id) else { return };
        if whole_group {
            self.shared.tell_group(slot.spec.group, xid, clock::now(), || ());
        } else {
            // As when a group is told: without memory for it nobody is.
            let _ = slot.write_notifier(xid, clock::now());
        }
    }

    /// The faults so far, oldest first (at most the newest 256).
    pub fn faults(&self) -> Vec<FaultReport> {
        lock(&self.shared.reports).clone()
    }

    /// What the MMU refused when the channel died, for GET_MMU_FAULT_INFO.
    pub fn mmu_fault(&self, id: ChannelId) -> Option<MmuFault> {
        let reports = lock(&self.shared.reports);
        reports.iter().rev().find(|report| report.channel == id).and_then(|report| report.fault.mmu_fault())
    }

    /// Instructions that kernels reached, and state that channels set, which are not simulated, with how often.
    pub fn unsupported(&self) -> Vec<(String, u64)> {
        let mut all = self.executor.unsupported();
        all.extend(lock(&self.shared.gaps).iter().map(|(what, count)| (what.clone(), *count)));
        all
    }

    /// Learns the functions of a cubin, for reports of faults.
    pub(crate) fn add_program(&self, program: &Arc<Program>) {
        lock(&self.shared.programs).add(Arc::clone(program));
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let shared = &self.shared.counters;
        Counters {
            entries: read(&shared.entries),
            methods: read(&shared.methods),
            launches: read(&shared.launches),
            instructions: read(&shared.instructions),
            lane_instructions: read(&shared.lane_instructions),
            bytes_copied: read(&shared.bytes_copied),
            releases: read(&shared.releases),
        }
    }

    /// Waits until no channel has anything that it could do: every one is idle, disabled, hung or dead. False if
    /// `limit` passes first.
    pub fn wait_idle(&self, limit: Duration) -> bool {
        self.wait(limit, Duration::from_micros(50), false)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        let channels = std::mem::take(&mut *lock(&self.shared.channels));
        for entry in channels.into_values() {
            Self::end(entry);
        }
        self.shared.wake_poller();
        if let Some(poller) = lock(&self.poller).take()
            && poller.thread().id() != thread::current().id()
        {
            let _ = poller.join();
        }
    }
}
