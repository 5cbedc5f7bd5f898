//! Events: what clients asked to be told of, and what waits on their descriptors.
//!
//! Engines post from their own threads while a call may hold the kernel's lock and wait for them, so this state has a
//! lock of its own, which is always taken last.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    os::fd::OwnedFd,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use nv_abi::{
    Fd, Record,
    rm::{
        NV0005_ALLOC_PARAMETERS as P, NV2080_CTRL_EVENT_SET_NOTIFICATION_PARAMS as SetNotification,
        NVOS41_PARAMETERS as GetData, NvUnixEvent, Status, class,
        flags::{
            NV01_EVENT_NOTIFY_INDEX as INDEX, NV2080_ENGINE_TYPE_COPY0, NV2080_ENGINE_TYPE_GRAPHICS,
            NV2080_NOTIFIERS_CE0, NV2080_NOTIFIERS_GPU_UNAVAILABLE, NV2080_NOTIFIERS_GRAPHICS,
            NV2080_NOTIFIERS_MAXCOUNT, NV2080_NOTIFIERS_RC_ERROR, NV2080_NOTIFIERS_TIMER,
        },
        nv_ioctl_alloc_os_event_t as AllocOsEvent,
    },
};

use super::{Kernel, Kind, Refusal, allocate::Allocation, control::Target};
use crate::{
    client_memory,
    host::{self, ChannelId},
};

/// `info16` of an RC_ERROR event; the same number at each fault of the card that was measured.
const RC_INFO16: u16 = 0xe9;
/// Channel notifier of a robust-channel error (`cl506f.h` and its successors).
const CHANNEL_NOTIFIER_RC: u32 = 0;

/// What RM_GET_EVENT_DATA answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Notification {
    object: u32,
    index: u32,
    info32: u32,
    info16: u16,
}

/// What waits on one file.
#[derive(Debug, Default)]
struct Queue {
    notifications: VecDeque<Notification>,
    /// An event without data happened; one poll takes it.
    pending: bool,
    signal: Option<Signal>,
}

/// A descriptor of the host system that is readable while something waits.
#[derive(Debug)]
struct Signal {
    eventfd: OwnedFd,
    raised: bool,
}

impl Queue {
    fn is_ready(&self) -> bool {
        self.pending || !self.notifications.is_empty()
    }

    /// Makes the signal say what is so. Called after every change.
    fn tell(&mut self) {
        let ready = self.is_ready();
        let Some(signal) = self.signal.as_mut().filter(|signal| signal.raised != ready) else { return };
        let mut word = 1_u64.to_ne_bytes();
        let done = if ready {
            nix::unistd::write(&signal.eventfd, &word)
        } else {
            nix::unistd::read(&signal.eventfd, &mut word)
        };
        // Both fail only where the counter already says it.
        signal.raised = if done.is_ok() { ready } else { signal.raised };
    }
}

/// What an event object listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Subdevice {
        gpu: usize,
        handle: u32,
    },
    Channel {
        gpu: usize,
        channel: ChannelId,
    },
    /// An object that posts nothing here.
    Silent,
}

/// An event object.
#[derive(Clone, Copy, Debug)]
struct Listener {
    client: u32,
    handle: u32,
    file: u64,
    source: Source,
    index: u32,
    non_stall: bool,
    without_data: bool,
}

/// What a client wants to hear of one notifier of a subdevice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Single,
    Repeat,
}

/// A descriptor that ALLOC_OS_EVENT named.
#[derive(Clone, Copy, Debug)]
struct OsEvent {
    client: u32,
    fd: u32,
    file: u64,
}

#[derive(Debug, Default)]
struct State {
    queues: BTreeMap<u64, Queue>,
    os_events: Vec<OsEvent>,
    listeners: Vec<Listener>,
    /// By client, subdevice and notifier.
    actions: BTreeMap<(u32, u32, u32), Action>,
    /// GPUs that have fallen off the bus.
    lost: BTreeSet<usize>,
}

impl State {
    fn deliver(&mut self, listener: Listener, info32: u32, info16: u16) {
        let queue = self.queues.entry(listener.file).or_default();
        if listener.without_data {
            queue.pending = true;
        } else {
            let notification =
                Notification { object: listener.handle, index: listener.index, info32, info16 };
            queue.notifications.push_back(notification);
        }
        queue.tell();
    }

    /// Event objects on a notifier that hear of it.
    fn listening(&self, index: u32, hears: impl Fn(&Listener) -> bool) -> Vec<Listener> {
        self.listeners.iter().filter(|l| l.index == index && hears(l)).copied().collect()
    }

    /// Posts a notifier of a subdevice to all who armed it.
    fn post_subdevice(&mut self, gpu: usize, index: u32, info32: u32, info16: u16) {
        let mut fired = Vec::new();
        for listener in self.listening(index, |l| !l.non_stall) {
            let Source::Subdevice { gpu: of, handle } = listener.source else { continue };
            if of != gpu {
                continue;
            }
            let key = (listener.client, handle, index);
            if let Some(action) = self.actions.get(&key) {
                if *action == Action::Single {
                    fired.push(key);
                }
                self.deliver(listener, info32, info16);
            }
        }
        // All who listen to a subdevice hear of it before a single shot is spent.
        for key in fired {
            self.actions.remove(&key);
        }
    }
}

/// Readiness of a descriptor, as `poll(2)` tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// POLLIN and POLLPRI: an event waits.
    pub readable: bool,
    /// POLLHUP and nothing else: the node is of a GPU that has fallen off the bus.
    pub hung_up: bool,
}

/// All events of a machine.
#[derive(Debug, Default)]
pub(crate) struct Events {
    state: Mutex<State>,
    changed: Condvar,
}

impl Events {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole after every statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened on a GPU.
    pub(crate) fn post(&self, gpu: usize, event: &host::Event) {
        let mut state = self.lock();
        match *event {
            host::Event::NonStall { engine, .. } => {
                let index = match engine {
                    NV2080_ENGINE_TYPE_GRAPHICS => NV2080_NOTIFIERS_GRAPHICS,
                    copy => match copy.checked_sub(NV2080_ENGINE_TYPE_COPY0) {
                        Some(copy) if copy < 10 => NV2080_NOTIFIERS_CE0 + copy,
                        _ => return,
                    },
                };
                let of_gpu =
                    |l: &Listener| matches!(l.source, Source::Subdevice { gpu: of, .. } if of == gpu);
                for listener in state.listening(index, |l| l.non_stall && of_gpu(l)) {
                    state.deliver(listener, 0, 0);
                }
            }
            host::Event::RobustChannel { channel, xid } => {
                state.post_subdevice(gpu, NV2080_NOTIFIERS_RC_ERROR, xid, RC_INFO16);
                let of_channel = Source::Channel { gpu, channel };
                for listener in state.listening(CHANNEL_NOTIFIER_RC, |l| l.source == of_channel) {
                    state.deliver(listener, xid, 0);
                }
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// A GPU has fallen off the bus.
    pub(super) fn lose(&self, gpu: usize, xid: u32) {
        let mut state = self.lock();
        state.post_subdevice(gpu, NV2080_NOTIFIERS_GPU_UNAVAILABLE, xid, 0);
        state.lost.insert(gpu);
        drop(state);
        self.changed.notify_all();
    }

    /// Whether something waits on a file, of a GPU's node or not; waits for it up to `limit`. An event without data is
    /// taken by this.
    pub(crate) fn poll(&self, file: u64, gpu: Option<usize>, limit: Duration) -> Readiness {
        let end = Instant::now() + limit;
        let mut state = self.lock();
        loop {
            if gpu.is_some_and(|gpu| state.lost.contains(&gpu)) {
                return Readiness { readable: false, hung_up: true };
            }
            if let Some(queue) = state.queues.get_mut(&file) {
                let ready = queue.is_ready();
                queue.pending = false;
                queue.tell();
                if ready {
                    return Readiness { readable: true, hung_up: false };
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Readiness::default();
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lets an eventfd be readable while something waits on a file.
    pub(crate) fn signal(&self, file: u64, eventfd: OwnedFd) {
        let mut state = self.lock();
        let queue = state.queues.entry(file).or_default();
        queue.signal = Some(Signal { eventfd, raised: false });
        queue.tell();
    }

    /// Takes the oldest notification of a file, and whether there are more.
    fn take(&self, file: u64) -> Option<(Notification, bool)> {
        let mut state = self.lock();
        let queue = state.queues.get_mut(&file)?;
        let first = queue.notifications.pop_front()?;
        queue.tell();
        Some((first, !queue.notifications.is_empty()))
    }

    /// ALLOC_OS_EVENT: a descriptor of a client, once.
    fn add_os_event(&self, event: OsEvent) -> Result<(), Status> {
        let mut state = self.lock();
        if state.os_events.iter().any(|known| known.client == event.client && known.fd == event.fd) {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        state.queues.entry(event.file).or_default();
        state.os_events.push(event);
        Ok(())
    }

    /// FREE_OS_EVENT.
    fn remove_os_event(&self, client: u32, fd: u32) -> Result<(), Status> {
        let mut state = self.lock();
        let at = state.os_events.iter().position(|event| event.client == client && event.fd == fd);
        let event = state.os_events.remove(at.ok_or(Status::INVALID_EVENT)?);
        state.listeners.retain(|l| l.client != client || l.file != event.file);
        Ok(())
    }

    /// Forgets an event object.
    pub(super) fn remove(&self, client: u32, handle: u32) {
        let mut state = self.lock();
        state.listeners.retain(|l| l.client != client || l.handle != handle);
        state.actions.retain(|(of, subdevice, _), _| *of != client || *subdevice != handle);
    }

    /// Forgets all of a client.
    pub(super) fn remove_client(&self, client: u32) {
        let mut state = self.lock();
        state.listeners.retain(|l| l.client != client);
        state.os_events.retain(|event| event.client != client);
        state.actions.retain(|(of, ..), _| *of != client);
    }

    /// Forgets all of a file.
    pub(super) fn close(&self, file: u64) {
        let mut state = self.lock();
        state.queues.remove(&file);
        state.os_events.retain(|event| event.file != file);
        state.listeners.retain(|l| l.file != file);
        drop(state);
        self.changed.notify_all();
    }

    /// Objects that are left: listeners, OS events, armed notifiers.
    pub(crate) fn count(&self) -> usize {
        let state = self.lock();
        state.listeners.len() + state.os_events.len() + state.actions.len()
    }
}

impl Kernel {
    /// ALLOC_OS_EVENT: events of the client may go to the file that this is called on.
    pub(super) fn alloc_os_event(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let client = p.get(&AllocOsEvent::hClient)? as u32;
        let event = OsEvent { client, fd: p.get(&AllocOsEvent::fd)? as u32, file: self.file(fd)?.serial };
        Ok(self.events.add_os_event(event)?)
    }

    /// FREE_OS_EVENT.
    pub(super) fn free_os_event(&mut self, _: Fd, p: &mut Record) -> Result<(), Refusal> {
        let client = p.get(&AllocOsEvent::hClient)? as u32;
        Ok(self.events.remove_os_event(client, p.get(&AllocOsEvent::fd)? as u32)?)
    }

    /// RM_GET_EVENT_DATA: the oldest notification of this file.
    pub(super) fn get_event_data(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let file = self.file(fd)?.serial;
        let (event, more) = self.events.take(file).ok_or(Status::OPERATING_SYSTEM)?;
        let mut record = Record::zeroed(&NvUnixEvent::STRUCT, self.branch);
        record.set(&NvUnixEvent::hObject, event.object.into())?;
        record.set(&NvUnixEvent::NotifyIndex, event.index.into())?;
        record.set(&NvUnixEvent::info32, event.info32.into())?;
        record.set(&NvUnixEvent::info16, event.info16.into())?;
        client_memory::write(p.get(&GetData::pEvent)?, record.bytes())?;
        Ok(p.set(&GetData::MoreEvents, more.into())?)
    }

    /// An event object.
    pub(super) fn new_event(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        // A kernel callback is a function's address, which a client must not hand over.
        if matches!(a.class.number, class::NV01_EVENT_KERNEL_CALLBACK | class::NV01_EVENT_KERNEL_CALLBACK_EX)
        {
            return Err(Status::ILLEGAL_ACTION.into());
        }
        // The plain class stands for either of the others and cannot be made itself.
        if a.class.number != class::NV01_EVENT_OS_EVENT {
            return Err(Status::INVALID_CLASS.into());
        }
        let of = match a.handle(&P::hParentClient)? {
            0 => a.client,
            client => client,
        };
        // Clients leave the source to be the object that they allocate under.
        let source = match a.handle(&P::hSrcResource)? {
            0 => a.parent,
            source => source,
        };
        let object = self.object(of, source).map_err(|status| match status {
            Status::OBJECT_NOT_FOUND => Status::INVALID_OBJECT,
            other => other,
        })?;
        let source_kind = match &object.kind {
            Kind::Subdevice { gpu } => Source::Subdevice { gpu: *gpu, handle: source },
            Kind::Channel(channel) => Source::Channel { gpu: channel.gpu, channel: channel.id },
            _ => Source::Silent,
        };
        let fd = a.get(&P::data)? as u32;
        let word = (a.get(&P::notifyIndex)? as u32).to_le_bytes();
        let bits = nv_abi::Bits::new(&word);
        let mut state = self.events.lock();
        let file = state
            .os_events
            .iter()
            .find(|event| event.fd == fd && event.client == a.client)
            .ok_or(Status::OBJECT_NOT_FOUND)?
            .file;
        state.listeners.push(Listener {
            client: a.client,
            handle: a.new,
            file,
            source: source_kind,
            index: bits.get(&INDEX::INDEX)? as u32,
            non_stall: bits.get(&INDEX::NONSTALL_INTR)? != 0,
            without_data: bits.get(&INDEX::WITHOUT_EVENT_DATA)? != 0,
        });
        drop(state);
        a.set(&P::hSrcResource, source.into())?;
        Ok(Kind::Event)
    }

    /// EVENT_SET_NOTIFICATION: arms a notifier of a subdevice.
    pub(super) fn set_notification(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let index = p.get(&SetNotification::event)? as u32;
        let key = (target.client, target.object, index);
        let mut state = self.events.lock();
        // Without an event object there is nobody to notify.
        let of_subdevice =
            |l: &Listener| matches!(l.source, Source::Subdevice { handle, .. } if handle == target.object);
        if !state.listeners.iter().any(|l| l.client == target.client && of_subdevice(l)) {
            return Err(Status::INVALID_STATE.into());
        }
        // The timer's notifier has a control of its own.
        if index >= NV2080_NOTIFIERS_MAXCOUNT || index == NV2080_NOTIFIERS_TIMER {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let action = match p.get(&SetNotification::action)? {
            0 => {
                state.actions.remove(&key);
                return Ok(());
            }
            1 => Action::Single,
            2 => Action::Repeat,
            _ => return Err(Status::INVALID_ARGUMENT.into()),
        };
        // One that is armed must be disarmed first.
        if state.actions.contains_key(&key) {
            return Err(Status::INVALID_STATE.into());
        }
        state.actions.insert(key, action);
        Ok(())
    }
}
