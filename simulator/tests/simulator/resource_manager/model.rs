//! Random sequences against the module's rules, which are written down here a second time: the status of every call is
//! known before it is made. Sources: `resserv/src/rs_server.c` and `rs_client.c`, `rmapi/resource_list.h`,
//! `nvidia-uvm/uvm_va_range.c` and `uvm_map_external.c`.

use std::collections::BTreeMap;

use fixtures::{
    properties,
    property::{Draw, any},
};

use super::*;

const BIG: u64 = 64 << 10;
const RANGES: u64 = 0x40_0000_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Device,
    Subdevice,
    SystemMemory,
    VideoMemory,
    Space,
    Group,
    Share,
    Usermode,
}

const ALL: [Kind; 8] = [
    Kind::Device,
    Kind::Subdevice,
    Kind::SystemMemory,
    Kind::VideoMemory,
    Kind::Space,
    Kind::Group,
    Kind::Share,
    Kind::Usermode,
];
const MEMORY: [Kind; 2] = [Kind::SystemMemory, Kind::VideoMemory];

impl Kind {
    /// `Parents` of its row in resource_list.h; `None` is the client.
    fn parents(self) -> &'static [Option<Kind>] {
        match self {
            Kind::Device => &[None],
            Kind::Subdevice | Kind::SystemMemory | Kind::Group => &[Some(Kind::Device)],
            Kind::VideoMemory | Kind::Space => &[Some(Kind::Device), Some(Kind::Subdevice)],
            Kind::Share => &[Some(Kind::Group)],
            Kind::Usermode => &[Some(Kind::Subdevice)],
        }
    }

    fn class(self) -> u32 {
        match self {
            Kind::Device => class::NV01_DEVICE_0,
            Kind::Subdevice => class::NV20_SUBDEVICE_0,
            Kind::SystemMemory => class::NV01_MEMORY_SYSTEM,
            Kind::VideoMemory => class::NV01_MEMORY_LOCAL_USER,
            Kind::Space => class::FERMI_VASPACE_A,
            Kind::Group => class::KEPLER_CHANNEL_GROUP_A,
            Kind::Share => class::FERMI_CONTEXT_SHARE_A,
            Kind::Usermode => class::AMPERE_USERMODE_A,
        }
    }
}

#[derive(Clone, Debug)]
struct Known {
    parent: u32,
    kind: Kind,
    /// What it cannot live without, besides its parent.
    depends: Vec<u32>,
    lost: bool,
    /// Of memory: bytes. Of an address space: which one it is.
    number: u64,
}

/// One call, by numbers that the model makes arguments of.
#[derive(Clone, Copy, Debug)]
struct Step {
    what: u8,
    a: u8,
    b: u8,
    c: u8,
}

struct Model {
    raw: Raw,
    uuid: [u8; 16],
    objects: BTreeMap<u32, Known>,
    freed: Vec<u32>,
    /// Address spaces that work may run in: UVM owns them and has them, or does not own them.
    usable: Vec<u64>,
    next: u64,
    /// External ranges: base and length.
    ranges: BTreeMap<u64, u64>,
    /// Mapped pages of 4 KiB: which mapping, and its page size.
    mapped: BTreeMap<u64, (u64, u64)>,
    /// How many calls the module accepted and refused.
    counts: [u32; 2],
}

/// What a call must return.
type Told = Result<(), Status>;

impl Model {
    /// A device whose address space UVM has.
    fn new() -> Self {
        let raw = Raw::new();
        let (device, subdevice, uuid, space) = raw.with_space();
        assert_eq!(raw.register_space(&uuid, space), Status::NV_OK);
        let known = |parent, kind, number| Known { parent, kind, depends: Vec::new(), lost: false, number };
        let objects = BTreeMap::from([
            (device, known(raw.client, Kind::Device, 0)),
            (subdevice, known(device, Kind::Subdevice, 0)),
            (space, known(device, Kind::Space, 1)),
        ]);
        Self {
            raw,
            uuid,
            objects,
            freed: Vec::new(),
            usable: vec![1],
            next: 1,
            ranges: BTreeMap::new(),
            mapped: BTreeMap::new(),
            counts: [0; 2],
        }
    }

    /// Looks at every object, frees the client, and finds nothing left.
    fn end(self) {
        self.check();
        let raw = self.raw;
        assert_eq!(raw.free(raw.client, raw.client), Status::NV_OK);
        assert_eq!(raw.machine.object_count(), 0);
        raw.machine.close(raw.uvm).expect("open");
        assert_eq!(raw.machine.video_memory_in_use(0), Some(0));
    }

    /// A handle, mostly of an object of some kinds, now and then of any other, or of none.
    fn pick(&self, kinds: &[Kind], n: u8) -> u32 {
        let fitting: Vec<u32> =
            self.objects.iter().filter(|(_, known)| kinds.contains(&known.kind)).map(|(h, _)| *h).collect();
        if n < 216 && !fitting.is_empty() {
            return fitting[usize::from(n) % fitting.len()];
        }
        let mut any: Vec<u32> = self.objects.keys().chain(&self.freed).copied().collect();
        any.extend([self.raw.client, 0x5a5a]);
        any[usize::from(n) % any.len()]
    }

    fn find(&self, handle: u32) -> Result<&Known, Status> {
        let known = self.objects.get(&handle).ok_or(Status::OBJECT_NOT_FOUND)?;
        if known.lost { Err(Status::RESOURCE_LOST) } else { Ok(known) }
    }

    /// Whether a kind may be there.
    fn fits(&self, kind: Kind, parent: u32) -> Told {
        let above = if parent == self.raw.client {
            None
        } else {
            let above = self.objects.get(&parent).ok_or(Status::OBJECT_NOT_FOUND)?;
            if above.lost {
                return Err(Status::INVALID_OBJECT_PARENT);
            }
            Some(above.kind)
        };
        if kind.parents().contains(&above) { Ok(()) } else { Err(Status::INVALID_OBJECT_PARENT) }
    }

    fn children(&self, parent: u32, kind: Kind) -> usize {
        self.objects.values().filter(|known| known.parent == parent && known.kind == kind).count()
    }

    fn is_below(&self, mut handle: u32, root: u32) -> bool {
        while handle != root {
            match self.objects.get(&handle) {
                Some(known) => handle = known.parent,
                None => return false,
            }
        }
        true
    }

    /// Says what a call did: as it had to.
    fn told<T: std::fmt::Debug>(&mut self, got: Result<T, Status>, must: Told, what: &str) -> Option<T> {
        assert_eq!(got.as_ref().map(|_| ()).map_err(|status| *status), must, "{what}");
        self.counts[usize::from(must.is_err())] += 1;
        got.ok()
    }

    fn alloc(&mut self, kind: Kind, step: Step) -> Option<()> {
        let client = self.raw.client;
        let Step { a, b, c, .. } = step;
        let parents: Vec<Kind> = kind.parents().iter().flatten().copied().collect();
        let parent = if kind == Kind::Device && a < 216 { client } else { self.pick(&parents, a) };
        let space = self.pick(&[Kind::Space], b);
        // Mostly the module chooses the handle.
        let wanted = match c % 8 {
            0 => self.pick(&ALL, b),
            1 => 0x100 + u32::from(b),
            _ => 0,
        };
        let named = match kind {
            Kind::Share => Some(space),
            Kind::Group if b % 2 == 0 => Some(space),
            _ => None,
        };
        // What a constructor makes of an address space that is lost is not known.
        if named.is_some_and(|space| self.objects.get(&space).is_some_and(|known| known.lost)) {
            return None;
        }
        let pages = u64::from(b) % 40 + 1;
        let params = match kind {
            Kind::Device => self.raw.device_params(0),
            Kind::SystemMemory | Kind::VideoMemory => {
                use rm::NV_MEMORY_ALLOCATION_PARAMS as P;
                let attr = if kind == Kind::SystemMemory { 1 << 25 } else { 0 };
                Some(self.raw.record(&P::STRUCT, &[(&P::size, pages * PAGE), (&P::attr, attr)]))
            }
            Kind::Space => {
                use rm::NV_VASPACE_ALLOCATION_PARAMETERS as P;
                let flags = if b % 2 == 0 { 1 << 3 | 1 << 6 } else { 0 };
                Some(self.raw.record(&P::STRUCT, &[(&P::vaBase, 0x1000), (&P::flags, flags)]))
            }
            Kind::Group => {
                use rm::NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS as P;
                let fields = [(&P::engineType, 1), (&P::hVASpace, named.unwrap_or(0).into())];
                Some(self.raw.record(&P::STRUCT, &fields))
            }
            Kind::Share => {
                use rm::NV_CTXSHARE_ALLOCATION_PARAMETERS as P;
                Some(self.raw.record(&P::STRUCT, &[(&P::hVASpace, space.into()), (&P::flags, 1)]))
            }
            Kind::Subdevice | Kind::Usermode => None,
        };
        let must = self.may_alloc(kind, parent, wanted, named);
        let got = self.raw.alloc(client, parent, wanted, kind.class(), params);
        let handle = self.told(got, must, &format!("{kind:?} {wanted:#x} under {parent:#x}"))?;
        assert!(wanted == 0 || handle == wanted, "{handle:#x} for {wanted:#x}");
        assert!(!self.objects.contains_key(&handle), "{handle:#x} is in use");
        self.next += 1;
        let number = match kind {
            Kind::SystemMemory => pages * PAGE,
            Kind::VideoMemory => (pages * PAGE).next_multiple_of(BIG),
            Kind::Space if b % 2 == 1 => {
                self.usable.push(self.next);
                self.next
            }
            Kind::Group | Kind::Share => named.map_or(0, |space| self.objects[&space].number),
            _ => self.next,
        };
        let depends = named.into_iter().collect();
        self.objects.insert(handle, Known { parent, kind, depends, lost: false, number });
        Some(())
    }

    fn may_alloc(&self, kind: Kind, parent: u32, wanted: u32, named: Option<u32>) -> Told {
        self.fits(kind, parent)?;
        if wanted == self.raw.client {
            return Err(Status::INVALID_OBJECT_PARENT);
        }
        if self.objects.contains_key(&wanted) {
            return Err(Status::INSERT_DUPLICATE_NAME);
        }
        if kind == Kind::Subdevice && self.children(parent, kind) > 0 {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        if let Some(space) = named {
            let space = self.find(space)?;
            if space.kind != Kind::Space {
                return Err(Status::INVALID_OBJECT_HANDLE);
            }
            if kind == Kind::Share && !self.usable.contains(&space.number) {
                return Err(Status::INVALID_STATE);
            }
        }
        Ok(())
    }

    fn free(&mut self, handle: u32) {
        assert_eq!(self.raw.free(self.raw.client, handle), Status::NV_OK, "{handle:#x}");
        if !self.objects.contains_key(&handle) {
            return;
        }
        // What depends on something that goes, and is not below it, is lost with all below; it may take more along.
        let mut gone: Vec<u32> =
            self.objects.keys().copied().filter(|object| self.is_below(*object, handle)).collect();
        let removed = gone.len();
        loop {
            let more: Vec<u32> = self
                .objects
                .iter()
                .filter(|(object, known)| {
                    let hit =
                        gone.contains(&known.parent) || known.depends.iter().any(|on| gone.contains(on));
                    hit && !gone.contains(object)
                })
                .map(|(object, _)| *object)
                .collect();
            if more.is_empty() {
                break;
            }
            gone.extend(more);
        }
        for (i, object) in gone.into_iter().enumerate() {
            if i < removed {
                self.objects.remove(&object);
                self.freed.push(object);
            } else if let Some(known) = self.objects.get_mut(&object) {
                known.lost = true;
                known.depends.clear();
            }
        }
    }

    fn dup(&mut self, step: Step) -> Option<()> {
        let client = self.raw.client;
        let source = self.pick(&ALL, step.a);
        let kinds: Vec<Kind> = self
            .objects
            .get(&source)
            .iter()
            .flat_map(|known| known.kind.parents())
            .flatten()
            .copied()
            .collect();
        let parent = self.pick(&kinds, step.b);
        let must = self.find(source).and_then(|known| {
            if parent != client && !self.objects.contains_key(&parent) {
                return Err(Status::OBJECT_NOT_FOUND);
            }
            if matches!(known.kind, Kind::Device | Kind::Subdevice) {
                return Err(Status::INVALID_ARGUMENT);
            }
            self.fits(known.kind, parent)
        });
        let got = self.raw.dup(client, parent, client, source);
        let handle = self.told(got, must, &format!("{source:#x} again under {parent:#x}"))?;
        let Known { kind, number, .. } = self.objects[&source].clone();
        // A group or share comes to depend on the first object of the new device that is its address space.
        let device = match kind {
            Kind::Group => Some(parent),
            Kind::Share => Some(self.objects[&parent].parent),
            _ => None,
        };
        let space = device.and_then(|device| {
            let same = |(handle, known): &(&u32, &Known)| {
                known.kind == Kind::Space
                    && number != 0
                    && known.number == number
                    && self.is_below(**handle, device)
            };
            self.objects.iter().find(same).map(|(handle, _)| *handle)
        });
        let depends = space.into_iter().collect();
        self.objects.insert(handle, Known { parent, kind, depends, lost: false, number });
        Some(())
    }

    /// TIMER_GET_TIME, on a subdevice or not, of its size or not.
    fn control(&mut self, step: Step) -> Option<()> {
        use rm::NV2080_CTRL_TIMER_GET_TIME_PARAMS as P;
        let object = self.pick(&[Kind::Subdevice, Kind::Group, Kind::Share], step.a);
        let mut params = self.raw.record(&P::STRUCT, &[]);
        let wrong = step.b.is_multiple_of(8);
        let size = params.bytes().len() as u64 - u64::from(wrong);
        let pointer = params.bytes_mut().as_mut_ptr().expose_provenance() as u64;
        let must = match self.find(object) {
            _ if wrong => Err(Status::INVALID_ARGUMENT),
            _ if object == self.raw.client => Err(Status::NOT_SUPPORTED),
            Err(status) => Err(status),
            Ok(Known { kind: Kind::Subdevice, .. }) => Ok(()),
            Ok(_) => Err(Status::NOT_SUPPORTED),
        };
        let command = c::NV2080_CTRL_CMD_TIMER_GET_TIME;
        let got = match self.raw.control_raw(self.raw.client, object, command, pointer, size) {
            Status::NV_OK => Ok(()),
            status => Err(status),
        };
        self.told(got, must, &format!("a control of {object:#x}"))
    }

    /// RM_MAP_MEMORY through a new descriptor.
    fn map_memory(&mut self, step: Step) -> Option<()> {
        let device = self.pick(&[Kind::Device, Kind::Subdevice], step.a);
        let memory = self.pick(&MEMORY, step.b);
        let length = u64::from(step.c % 40 + 1) * PAGE;
        let kind = self.objects.get(&memory).map(|known| known.kind);
        if kind == Some(Kind::Usermode) {
            return None;
        }
        let own = if kind == Some(Kind::VideoMemory) { Node::Gpu(0) } else { Node::Ctl };
        let node = if step.c >= 224 { Node::Gpu(1) } else { own };
        let must = self.may_map(device, memory, length).and_then(|()| match node == own {
            true => Ok(()),
            false => Err(Status::INVALID_ARGUMENT),
        });
        let fd = self.raw.machine.open(node).unwrap();
        let got = match self.raw.map_memory(device, memory, length, fd) {
            Status::NV_OK => Ok(()),
            status => Err(status),
        };
        self.raw.machine.close(fd).unwrap();
        self.told(got, must, &format!("{length:#x} of {memory:#x} mapped of {device:#x}"))
    }

    fn may_map(&self, device: u32, memory: u32, length: u64) -> Told {
        if !matches!(self.find(device)?.kind, Kind::Device | Kind::Subdevice) {
            return Err(Status::INVALID_ARGUMENT);
        }
        let memory = self.find(memory)?;
        if !MEMORY.contains(&memory.kind) {
            return Err(Status::INVALID_OBJECT_HANDLE);
        }
        if length > memory.number { Err(Status::INVALID_LIMIT) } else { Ok(()) }
    }

    /// CREATE_EXTERNAL_RANGE, or FREE.
    fn range(&mut self, step: Step) -> Option<()> {
        let base = RANGES + u64::from(step.a % 16) * BIG;
        let length = u64::from(step.b % 4) * BIG;
        let known = self.ranges.get(&base).copied();
        if step.c.is_multiple_of(2) {
            let must =
                match self.ranges.iter().any(|(start, bytes)| base < start + bytes && *start < base + length)
                {
                    _ if length == 0 => Err(Status::INVALID_ADDRESS),
                    true => Err(Status::UVM_ADDRESS_IN_USE),
                    false => Ok(()),
                };
            self.call(u::UVM_CREATE_EXTERNAL_RANGE, base, length, must)?;
            self.ranges.insert(base, length);
        } else {
            // Mostly the range as it is.
            let length = known.filter(|_| step.b < 192).unwrap_or(length);
            let must = if known == Some(length) { Ok(()) } else { Err(Status::INVALID_ADDRESS) };
            self.call(u::UVM_FREE, base, length, must)?;
            self.ranges.remove(&base);
            self.mapped.retain(|page, _| !(base..base + length).contains(page));
        }
        Some(())
    }

    fn call(&mut self, call: u32, base: u64, length: u64, must: Told) -> Option<()> {
        let got = match self.raw.range(call, base, length) {
            Status::NV_OK => Ok(()),
            status => Err(status),
        };
        self.told(got, must, &format!("{call} of {length:#x} bytes at {base:#x}"))
    }

    /// MAP_EXTERNAL_ALLOCATION.
    fn map_external(&mut self, step: Step) -> Option<()> {
        let memory = self.pick(&MEMORY, step.a);
        let range = *self.ranges.keys().nth(usize::from(step.b) % 8)?;
        let unit = if step.c.is_multiple_of(4) { PAGE } else { BIG };
        let base = range + u64::from(step.b / 8 % 4) * unit;
        let length = u64::from(step.c / 4 % 8) * unit;
        let offset = u64::from(step.c / 32 % 3) * unit;
        let must = self.may_map_external(memory, base, length, offset);
        let got = match self.raw.map_external(&self.uuid, memory, base, length, offset) {
            Status::NV_OK => Ok(()),
            status => Err(status),
        };
        self.told(got, must, &format!("{length:#x} bytes of {memory:#x} at {base:#x}"))
    }

    fn may_map_external(&mut self, memory: u32, base: u64, length: u64, offset: u64) -> Told {
        let end = base + length;
        let mut ranges = self.ranges.iter().map(|(start, bytes)| *start..start + bytes);
        if length == 0 || !ranges.any(|range| range.start <= base && end <= range.end) {
            return Err(Status::INVALID_ADDRESS);
        }
        // A mapping can only be cut at its page size.
        for at in [base, end] {
            if let (Some(before), Some(after)) = (self.mapped.get(&(at - PAGE)), self.mapped.get(&at))
                && before.0 == after.0
                && !at.is_multiple_of(before.1)
            {
                return Err(Status::INVALID_ADDRESS);
            }
        }
        // What was there goes, whatever becomes of the rest.
        self.mapped.retain(|page, _| !(base..end).contains(page));
        let known = self.find(memory)?;
        if !MEMORY.contains(&known.kind) {
            return Err(Status::INVALID_OBJECT_HANDLE);
        }
        let aligned = [base, end, offset].into_iter().all(|at| at.is_multiple_of(BIG));
        let page = if known.kind == Kind::VideoMemory && aligned { BIG } else { PAGE };
        if offset + length > known.number {
            return Err(Status::INVALID_OFFSET);
        }
        self.next += 1;
        for at in (base..end).step_by(PAGE as usize) {
            self.mapped.insert(at, (self.next, page));
        }
        Ok(())
    }

    fn step(&mut self, step: Step) {
        // A step that the model knows no answer to is none.
        let _ = match step.what % 20 {
            kind @ 0..8 => self.alloc(ALL[usize::from(kind)], step),
            8 | 9 => self.alloc(ALL[usize::from(step.c) % ALL.len()], step),
            10 | 11 => self.dup(step),
            12 => self.control(step),
            13 => self.map_memory(step),
            14 | 15 => self.range(step),
            16..=18 => self.map_external(step),
            _ => {
                let handle = self.pick(&ALL, step.a);
                // The client goes at the end.
                if handle != self.raw.client {
                    self.free(handle);
                }
                Some(())
            }
        };
    }

    /// Every object is what the model says, and there is no other.
    fn check(&self) {
        for (handle, known) in &self.objects {
            let got = self.raw.control_raw(self.raw.client, *handle, 0x2080_3fff, 0, 0);
            let must = if known.lost { Status::RESOURCE_LOST } else { Status::NOT_SUPPORTED };
            assert_eq!(got, must, "{handle:#x} {known:?}");
        }
        for handle in self.freed.iter().filter(|handle| !self.objects.contains_key(handle)) {
            let got = self.raw.control_raw(self.raw.client, *handle, 0x2080_3fff, 0, 0);
            assert_eq!(got, Status::OBJECT_NOT_FOUND, "{handle:#x}");
        }
    }
}

fn step(draw: &mut Draw) -> Step {
    let [what, a, b, c] = any(draw);
    Step { what, a, b, c }
}

properties! { 200 cases;
    fn every_call_is_accepted_or_refused_as_the_rules_say(steps in |draw: &mut Draw| draw.list(1..160, step)) {
        let mut model = Model::new();
        for step in &steps {
            model.step(*step);
        }
        model.end();
    }
}

#[test]
fn a_sequence_has_calls_of_both_sorts() {
    let mut model = Model::new();
    for i in 0..2000_u32 {
        let [what, a, b, c] = i.wrapping_mul(0x9e37_79b9).to_le_bytes();
        model.step(Step { what, a, b, c });
    }
    assert!(model.counts.iter().all(|count| *count > 300), "accepted, refused: {:?}", model.counts);
    model.end();
}
