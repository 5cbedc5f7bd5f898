//! What a client has made so far, as far as one must know it to follow its submissions: objects, mappings on both
//! sides, channels with their rings.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
};

use nv_abi::{
    Branch, Fd, Node, Record, Struct,
    gpfifo::{USERD_GP_GET, USERD_GP_PUT},
    ioctl::{self, nr},
    record::StructField,
    rm::{
        NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS,
        NVOS00_PARAMETERS, NVOS46_PARAMETERS, NVOS47_PARAMETERS, NVOS54_PARAMETERS, class, control,
        nv_ioctl_nvos02_parameters_with_fd, nv_ioctl_nvos33_parameters_with_fd,
    },
    uvm,
};

use crate::{event::IoctlEvent, words::holds};

/// An object of a client.
pub(crate) type Object = (u32, u32);

/// A range of addresses on one side, and the object behind it.
#[derive(Clone, Copy, Debug)]
struct Range {
    length: u64,
    object: Object,
    /// Byte of the object at the range's first address.
    offset: u64,
}

impl Range {
    /// The range at an address, as far as there are addresses: a client may pass any length.
    fn at(self, address: u64) -> Self {
        Self { length: self.length.min(u64::MAX - address), ..self }
    }
}

/// GPU addresses that the client sees in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// The first of them.
    pub(crate) start: u64,
    /// Where the client sees that.
    pub(crate) client: u64,
    pub(crate) length: u64,
}

/// A channel.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    client: u32,
    pub(crate) handle: u32,
    pub(crate) class: u32,
    /// GPU address of its ring.
    pub(crate) ring: u64,
    pub(crate) entries: u32,
    userd: (Object, u64),
    pub(crate) token: Option<u32>,
    /// The first entry that was not seen yet.
    pub(crate) next: u32,
}

/// Follows a client.
#[derive(Debug)]
pub(crate) struct Tracker {
    branch: Branch,
    pub(crate) nodes: HashMap<Fd, Node>,
    /// What RM_MAP_MEMORY attached to a descriptor, until it is mapped.
    attached: HashMap<Fd, Range>,
    /// Of those the ones that were not mapped yet.
    waiting: Vec<Fd>,
    cpu: BTreeMap<u64, Range>,
    gpu: BTreeMap<u64, Range>,
    /// Host memory that was registered: where it lies in the client.
    host: HashMap<Object, u64>,
    channels: BTreeMap<Object, Channel>,
    classes: HashMap<Object, u32>,
    /// GPU ranges that became known since they were last taken.
    new: Vec<(u64, u64)>,
    /// GPU ranges that went since they were last taken.
    old: Vec<(u64, u64)>,
    /// What was found by [`Tracker::view`] since anything changed.
    views: RefCell<Vec<View>>,
}

fn get(record: &Record, field: &StructField) -> u64 {
    // A field that the branch lacks reads as nothing was said.
    record.get(field).unwrap_or(0)
}

/// The part of an object that a call maps: all three calls that map have these fields.
fn range(argument: &Record) -> Range {
    let value = |name| argument.of().field(name).map_or(0, |field| get(argument, field));
    Range {
        length: value("length"),
        object: (value("hClient") as u32, value("hMemory") as u32),
        offset: value("offset"),
    }
}

impl Tracker {
    pub(crate) fn new(branch: Branch) -> Self {
        Self {
            branch,
            nodes: HashMap::new(),
            attached: HashMap::new(),
            waiting: Vec::new(),
            cpu: BTreeMap::new(),
            gpu: BTreeMap::new(),
            host: HashMap::new(),
            channels: BTreeMap::new(),
            classes: HashMap::new(),
            new: Vec::new(),
            old: Vec::new(),
            views: RefCell::default(),
        }
    }

    fn before(&self, of: &'static Struct, event: &IoctlEvent) -> Record {
        Record::padded(of, self.branch, &event.before)
    }

    /// The argument of a call after it, if its status is success.
    fn answer(&self, of: &'static Struct, event: &IoctlEvent) -> Option<Record> {
        let argument = Record::padded(of, self.branch, &event.after);
        (get(&argument, of.status()?) == 0).then_some(argument)
    }

    /// The channels with a token: one on each GPU may have it.
    pub(crate) fn channels_of_token(&self, token: u32) -> Vec<Channel> {
        self.channels.values().filter(|channel| channel.token == Some(token)).cloned().collect()
    }

    fn map(&mut self, address: u64, range: Range) {
        let range = range.at(address);
        self.gpu.insert(address, range);
        self.new.push((address, range.length));
    }

    /// GPU ranges that became known since they were last taken: first address and bytes.
    pub(crate) fn take_new_gpu_ranges(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.new)
    }

    fn unmap(&mut self, address: u64) {
        self.old.extend(self.gpu.remove(&address).map(|range| (address, range.length)));
    }

    /// GPU ranges that went since they were last taken: first address and bytes.
    pub(crate) fn take_old_gpu_ranges(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.old)
    }

    /// The handle of the object that is mapped at a GPU address.
    pub(crate) fn handle(&self, address: u64) -> Option<u32> {
        let (start, range) = self.gpu.range(..=address).next_back()?;
        (address - start < range.length).then_some(range.object.1)
    }

    /// The range that holds a GPU address.
    pub(crate) fn gpu_range(&self, address: u64) -> Option<(u64, u64)> {
        let (start, range) = self.gpu.range(..=address).next_back()?;
        (address - start < range.length).then_some((*start, range.length))
    }

    /// The channel with that handle.
    pub(crate) fn channel(&self, handle: u32) -> Option<&Channel> {
        self.channels.values().find(|channel| channel.handle == handle)
    }

    /// Where the client sees the get pointer of a channel.
    pub(crate) fn get_pointer(&self, channel: &Channel) -> Option<u64> {
        self.see(channel.userd.0, channel.userd.1 + USERD_GP_GET)
    }

    /// Whether a mapping of the descriptor shows doorbells.
    pub(crate) fn is_doorbell(&self, fd: Fd) -> bool {
        let class = self.attached.get(&fd).and_then(|range| self.classes.get(&range.object));
        class.and_then(|class| class::class(*class)).is_some_and(|class| class.internal == "UserModeApi")
    }

    /// Where the client sees a GPU address, and for how many bytes on.
    pub(crate) fn client_address(&self, address: u64) -> Option<(u64, u64)> {
        let View { start, client, length } = self.view(address)?;
        let inside = address - start;
        Some((client.checked_add(inside)?, length - inside))
    }

    /// What the client sees in one piece around a GPU address.
    pub(crate) fn view(&self, address: u64) -> Option<View> {
        let mut views = self.views.borrow_mut();
        // The same few pieces are asked for over and over.
        if let Some(known) = views.iter().find(|view| holds((view.start, view.length), address)) {
            return Some(*known);
        }
        let found = self.find_view(address)?;
        views.push(found);
        Some(found)
    }

    fn find_view(&self, address: u64) -> Option<View> {
        let (&start, range) = self.gpu.range(..=address).next_back()?;
        if address - start >= range.length {
            return None;
        }
        if let Some(base) = self.host.get(&range.object) {
            return Some(View { start, client: base.checked_add(range.offset)?, length: range.length });
        }
        let byte = range.offset.checked_add(address - start)?;
        let (at, seen) = self.seeing(range.object, byte)?;
        // Both ranges in bytes of the object.
        let first = range.offset.max(seen.offset);
        let ends = [range, seen].map(|range| range.offset.saturating_add(range.length));
        let end = ends[0].min(ends[1]);
        Some(View {
            start: start + (first - range.offset),
            client: at + (first - seen.offset),
            length: end - first,
        })
    }

    /// Descriptors that memory was attached to and that were not mapped yet, with the bytes to map, the oldest first.
    pub(crate) fn unmapped_attachments(&self) -> Vec<(Fd, u64)> {
        self.waiting.iter().filter_map(|fd| Some((*fd, self.attached.get(fd)?.length))).collect()
    }

    /// The client's mappings: first address and bytes.
    pub(crate) fn mappings(&self) -> Vec<(u64, u64)> {
        self.cpu.iter().map(|(address, range)| (*address, range.length)).collect()
    }

    /// Every channel.
    pub(crate) fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.channels.values()
    }

    /// The entries of a channel up to a slot were seen.
    pub(crate) fn seen(&mut self, channel: &Channel, slot: u32) {
        if let Some(known) = self.channels.get_mut(&(channel.client, channel.handle)) {
            known.next = slot;
        }
    }

    /// Where the client sees a byte of an object.
    fn see(&self, object: Object, offset: u64) -> Option<u64> {
        self.seeing(object, offset).map(|(address, range)| address + (offset - range.offset))
    }

    /// The client's mapping of a byte of an object, with its address.
    fn seeing(&self, object: Object, offset: u64) -> Option<(u64, &Range)> {
        let shows = |range: &Range| {
            range.object == object
                && offset.checked_sub(range.offset).is_some_and(|inside| inside < range.length)
        };
        self.cpu.iter().find(|(_, range)| shows(range)).map(|(address, range)| (*address, range))
    }

    /// Where the client sees the put pointer of a channel.
    pub(crate) fn put_pointer(&self, channel: &Channel) -> Option<u64> {
        self.see(channel.userd.0, channel.userd.1 + USERD_GP_PUT)
    }

    /// A descriptor was mapped.
    pub(crate) fn mapped(&mut self, fd: Fd, address: u64, length: u64) {
        self.views.get_mut().clear();
        self.waiting.retain(|waiting| *waiting != fd);
        if let Some(range) = self.attached.get(&fd) {
            self.cpu.insert(address, Range { length, ..*range }.at(address));
        }
    }

    /// A mapping went.
    pub(crate) fn unmapped(&mut self, address: u64) {
        self.views.get_mut().clear();
        self.cpu.remove(&address);
    }

    /// A descriptor was closed.
    pub(crate) fn closed(&mut self, fd: Fd) {
        self.nodes.remove(&fd);
        self.attached.remove(&fd);
        self.waiting.retain(|waiting| *waiting != fd);
    }

    /// Learns from a call that succeeded.
    pub(crate) fn ioctl(&mut self, event: &IoctlEvent) {
        if event.result.is_err() {
            return;
        }
        self.views.get_mut().clear();
        if event.node == Node::Uvm {
            self.uvm(event);
            return;
        }
        match nr(event.request) {
            ioctl::NV_ESC_RM_ALLOC => self.alloc(event),
            ioctl::NV_ESC_RM_FREE => self.free(event),
            ioctl::NV_ESC_RM_CONTROL => self.control(event),
            ioctl::NV_ESC_RM_ALLOC_MEMORY => {
                use nv_ioctl_nvos02_parameters_with_fd as p;
                let Some(argument) = self.answer(&p::STRUCT, event) else { return };
                if get(&argument, &p::hClass) == u64::from(class::NV01_MEMORY_SYSTEM_OS_DESCRIPTOR) {
                    let object = (get(&argument, &p::hRoot) as u32, get(&argument, &p::hObjectNew) as u32);
                    // The pointer goes in; the module may clear it on the way out.
                    let before = self.before(&p::STRUCT, event);
                    self.host.insert(object, get(&before, &p::pMemory));
                }
            }
            ioctl::NV_ESC_RM_MAP_MEMORY => {
                use nv_ioctl_nvos33_parameters_with_fd as p;
                let Some(argument) = self.answer(&p::STRUCT, event) else { return };
                let fd = Fd(get(&argument, &p::fd) as i32);
                self.attached.insert(fd, range(&argument));
                self.waiting.retain(|waiting| *waiting != fd);
                self.waiting.push(fd);
            }
            ioctl::NV_ESC_RM_MAP_MEMORY_DMA => {
                use NVOS46_PARAMETERS as p;
                let Some(argument) = self.answer(&p::STRUCT, event) else { return };
                self.map(get(&argument, &p::dmaOffset), range(&argument));
            }
            ioctl::NV_ESC_RM_UNMAP_MEMORY_DMA => {
                use NVOS47_PARAMETERS as p;
                self.unmap(get(&self.before(&p::STRUCT, event), &p::dmaOffset));
            }
            _ => {}
        }
    }

    fn alloc(&mut self, event: &IoctlEvent) {
        let of = ioctl::argument(ioctl::NV_ESC_RM_ALLOC, event.after.len(), self.branch);
        let Some(argument) = of.and_then(|of| self.answer(of, event)) else { return };
        let value = |name| argument.of().field(name).map_or(0, |field| get(&argument, field) as u32);
        let object = (value("hRoot"), value("hObjectNew"));
        let number = value("hClass");
        self.classes.insert(object, number);
        if class::class(number).is_some_and(|class| class.internal == "KernelChannel") {
            use NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS as p;
            let params = Record::padded(&p::STRUCT, self.branch, &event.nested_before);
            let userd = (object.0, get(&params, &p::hUserdMemory) as u32);
            let channel = Channel {
                client: object.0,
                handle: object.1,
                class: number,
                ring: get(&params, &p::gpFifoOffset),
                entries: get(&params, &p::gpFifoEntries) as u32,
                userd: (userd, get(&params, &p::userdOffset)),
                token: None,
                next: 0,
            };
            self.channels.insert(object, channel);
        }
    }

    fn free(&mut self, event: &IoctlEvent) {
        use NVOS00_PARAMETERS as p;
        let Some(argument) = self.answer(&p::STRUCT, event) else { return };
        let object = (get(&argument, &p::hRoot) as u32, get(&argument, &p::hObjectOld) as u32);
        self.channels.remove(&object);
        self.host.remove(&object);
        let gone: Vec<u64> =
            self.gpu.iter().filter(|(_, range)| range.object == object).map(|(at, _)| *at).collect();
        gone.into_iter().for_each(|address| self.unmap(address));
    }

    fn control(&mut self, event: &IoctlEvent) {
        use NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS as token;
        use NVOS54_PARAMETERS as p;
        let Some(argument) = self.answer(&p::STRUCT, event) else { return };
        if get(&argument, &p::cmd) != u64::from(control::NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN) {
            return;
        }
        let object = (get(&argument, &p::hClient) as u32, get(&argument, &p::hObject) as u32);
        let params = Record::padded(&token::STRUCT, self.branch, &event.nested_after);
        if let Some(channel) = self.channels.get_mut(&object) {
            channel.token = Some(get(&params, &token::workSubmitToken) as u32);
        }
    }

    fn uvm(&mut self, event: &IoctlEvent) {
        match event.request {
            uvm::UVM_MAP_EXTERNAL_ALLOCATION => {
                use uvm::UVM_MAP_EXTERNAL_ALLOCATION_PARAMS as p;
                let Some(argument) = self.answer(&p::STRUCT, event) else { return };
                self.map(get(&argument, &p::base), range(&argument));
            }
            uvm::UVM_UNMAP_EXTERNAL => {
                use uvm::UVM_UNMAP_EXTERNAL_PARAMS as p;
                self.unmap(get(&self.before(&p::STRUCT, event), &p::base));
            }
            uvm::UVM_FREE => {
                use uvm::UVM_FREE_PARAMS as p;
                self.unmap(get(&self.before(&p::STRUCT, event), &p::base));
            }
            _ => {}
        }
    }
}
