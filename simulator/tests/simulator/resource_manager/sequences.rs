//! Random sequences of calls, valid and not: no panic, nothing left behind, and what the module would accept is
//! accepted.

use fixtures::{
    properties,
    property::{Draw, within},
};

use super::*;

/// One step. Numbers pick among the objects that the sequence has made so far, or none of them.
#[derive(Clone, Debug)]
enum Step {
    Client,
    Device(u8),
    Subdevice(u8),
    Space(u8),
    Memory { device: u8, system: bool, pages: u16 },
    Virtual(u8),
    Group(u8),
    Share { group: u8, space: u8 },
    Usermode(u8),
    Event(u8),
    Dup { parent: u8, source: u8 },
    MapDma { memory: u8, range: u8 },
    Free(u8),
    FreeClient(u8),
    Range(u8),
    MapExternal { memory: u8, range: u8, pages: u8 },
    Unmap(u8),
    FreeRange(u8),
    OpenClose,
}

fn step(draw: &mut Draw) -> Step {
    let kind = draw.below(19);
    let mut n = |bound: u8| within(0..bound)(draw);
    match kind {
        0 => Step::Client,
        1 => Step::Device(n(12)),
        2 => Step::Subdevice(n(12)),
        3 => Step::Space(n(12)),
        4 => Step::Memory { device: n(12), system: n(2) == 0, pages: within(0..600)(draw) },
        5 => Step::Virtual(n(12)),
        6 => Step::Group(n(12)),
        7 => Step::Share { group: n(12), space: n(12) },
        8 => Step::Usermode(n(12)),
        9 => Step::Event(n(12)),
        10 => Step::Dup { parent: n(12), source: n(12) },
        11 => Step::MapDma { memory: n(12), range: n(12) },
        12 => Step::Free(n(12)),
        13 => Step::FreeClient(n(40)),
        14 => Step::Range(n(12)),
        15 => Step::MapExternal { memory: n(12), range: n(12), pages: n(20) },
        16 => Step::Unmap(n(12)),
        17 => Step::FreeRange(n(12)),
        _ => Step::OpenClose,
    }
}

/// What a sequence has made: handles with their clients. Freed ones stay in the list, as a careless client's would.
struct Made {
    raw: Raw,
    clients: Vec<u32>,
    objects: Vec<(u32, u32)>,
    uuid: [u8; 16],
}

const RANGES: u64 = 0x40_0000_0000;
const RANGE_BYTES: u64 = 4 << 20;

impl Made {
    fn object(&self, n: u8) -> (u32, u32) {
        self.objects.get(n as usize).copied().unwrap_or((self.raw.client, 0x5a5a))
    }

    fn alloc(&mut self, client: u32, parent: u32, class: u32, params: Option<Record>) -> Option<u32> {
        let handle = self.raw.alloc(client, parent, 0, class, params).ok()?;
        self.objects.push((client, handle));
        Some(handle)
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Client => {
                let client = self.raw.alloc(0, 0, 0, class::NV01_ROOT_CLIENT, None).expect("always");
                self.clients.push(client);
            }
            Step::Device(n) => {
                let client = self.clients[n as usize % self.clients.len()];
                let params = self.raw.device_params(u64::from(n % 2));
                self.alloc(client, client, class::NV01_DEVICE_0, params);
            }
            Step::Subdevice(n) => {
                let (client, device) = self.object(n);
                self.alloc(client, device, class::NV20_SUBDEVICE_0, None);
            }
            Step::Space(n) => {
                use rm::NV_VASPACE_ALLOCATION_PARAMETERS as P;
                let (client, device) = self.object(n);
                let params = self.raw.record(&P::STRUCT, &[(&P::vaBase, 0x1000), (&P::flags, 0x48)]);
                if let Some(space) = self.alloc(client, device, class::FERMI_VASPACE_A, Some(params)) {
                    let uuid = self.uuid;
                    let own = client == self.raw.client;
                    let status = self.raw.register_space(&uuid, space);
                    assert!(own || status != Status::NV_OK, "another client's space");
                }
            }
            Step::Memory { device, system, pages } => {
                use rm::NV_MEMORY_ALLOCATION_PARAMS as P;
                let (client, device) = self.object(device);
                let (number, attr) = match system {
                    true => (class::NV01_MEMORY_SYSTEM, 1 << 25),
                    false => (class::NV01_MEMORY_LOCAL_USER, 0),
                };
                let fields = [(&P::size, u64::from(pages) * PAGE), (&P::attr, attr)];
                let params = self.raw.record(&P::STRUCT, &fields);
                self.alloc(client, device, number, Some(params));
            }
            Step::Virtual(n) => {
                use rm::NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS as P;
                let (client, device) = self.object(n);
                let params = self.raw.record(&P::STRUCT, &[]);
                self.alloc(client, device, class::NV01_MEMORY_VIRTUAL, Some(params));
            }
            Step::Group(n) => {
                use rm::NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS as P;
                let (client, device) = self.object(n);
                let params = self.raw.record(&P::STRUCT, &[(&P::engineType, u64::from(n % 3))]);
                self.alloc(client, device, class::KEPLER_CHANNEL_GROUP_A, Some(params));
            }
            Step::Share { group, space } => {
                use rm::NV_CTXSHARE_ALLOCATION_PARAMETERS as P;
                let ((client, group), (_, space)) = (self.object(group), self.object(space));
                let fields = [(&P::hVASpace, u64::from(space)), (&P::flags, u64::from(group % 4))];
                let params = self.raw.record(&P::STRUCT, &fields);
                self.alloc(client, group, class::FERMI_CONTEXT_SHARE_A, Some(params));
            }
            Step::Usermode(n) => {
                let (client, parent) = self.object(n);
                self.alloc(client, parent, class::AMPERE_USERMODE_A, None);
            }
            Step::Event(n) => {
                use rm::NV0005_ALLOC_PARAMETERS as P;
                let (client, parent) = self.object(n);
                let os = [
                    (&rm::nv_ioctl_alloc_os_event_t::hClient, u64::from(client)),
                    (&rm::nv_ioctl_alloc_os_event_t::fd, self.raw.gpu.0 as u64),
                ];
                let layout = &rm::nv_ioctl_alloc_os_event_t::STRUCT;
                self.raw.escape(self.raw.gpu, number::NV_ESC_ALLOC_OS_EVENT, layout, &os).expect("a struct");
                let fields = [(&P::notifyIndex, 37), (&P::data, self.raw.gpu.0 as u64)];
                let params = self.raw.record(&P::STRUCT, &fields);
                self.alloc(client, parent, class::NV01_EVENT_OS_EVENT, Some(params));
            }
            Step::Dup { parent, source } => {
                use rm::NVOS55_PARAMETERS as P;
                let ((client, parent), (from, source)) = (self.object(parent), self.object(source));
                let fields = [
                    (&P::hClient, u64::from(client)),
                    (&P::hParent, parent.into()),
                    (&P::hClientSrc, from.into()),
                    (&P::hObjectSrc, source.into()),
                ];
                let nr = number::NV_ESC_RM_DUP_OBJECT;
                let record = self.raw.escape(self.raw.ctl, nr, &P::STRUCT, &fields).expect("a struct");
                if record.get(&P::status) == Ok(0) {
                    self.objects.push((client, record.get(&P::hObject).expect("a row") as u32));
                }
            }
            Step::MapDma { memory, range } => {
                use rm::NVOS46_PARAMETERS as P;
                let ((client, memory), (_, range)) = (self.object(memory), self.object(range));
                let device =
                    self.objects.iter().find(|(of, _)| *of == client).map_or(0, |(_, device)| *device);
                let fields = [
                    (&P::hClient, u64::from(client)),
                    (&P::hDevice, device.into()),
                    (&P::hDma, range.into()),
                    (&P::hMemory, memory.into()),
                    (&P::length, PAGE),
                ];
                let nr = number::NV_ESC_RM_MAP_MEMORY_DMA;
                self.raw.escape(self.raw.ctl, nr, &P::STRUCT, &fields).expect("a struct");
            }
            Step::Free(n) => {
                let (client, handle) = self.object(n);
                let known = self.clients.contains(&client);
                let status = self.raw.free(client, handle);
                assert_eq!(
                    status == Status::NV_OK,
                    known,
                    "a handle of a known client is freed or is nothing"
                );
            }
            Step::FreeClient(n) => {
                // Seldom, and never the first one.
                if let Some(client) = self.clients.get(n as usize).copied().filter(|c| *c != self.raw.client)
                {
                    assert_eq!(self.raw.free(client, client), Status::NV_OK);
                    self.clients.retain(|known| *known != client);
                }
            }
            Step::Range(n) => {
                let base = RANGES + u64::from(n) * RANGE_BYTES;
                self.raw.range(u::UVM_CREATE_EXTERNAL_RANGE, base, RANGE_BYTES);
            }
            Step::MapExternal { memory, range, pages } => {
                let (_, memory) = self.object(memory);
                let base = RANGES + u64::from(range) * RANGE_BYTES + u64::from(pages / 4) * PAGE;
                self.raw.map_external(&self.uuid, memory, base, u64::from(pages) * PAGE, 0);
            }
            Step::Unmap(n) => {
                use u::UVM_UNMAP_EXTERNAL_PARAMS as P;
                let base = RANGES + u64::from(n) * RANGE_BYTES;
                let fields = [(&P::base, base), (&P::length, RANGE_BYTES)];
                self.raw.uvm_gpu(u::UVM_UNMAP_EXTERNAL, "gpuUuid_uuid", &self.uuid, &fields);
            }
            Step::FreeRange(n) => {
                let base = RANGES + u64::from(n) * RANGE_BYTES;
                self.raw.range(u::UVM_FREE, base, RANGE_BYTES);
            }
            Step::OpenClose => {
                let fd = self.raw.machine.open(Node::Gpu(1)).expect("there is one");
                self.raw.machine.close(fd).expect("open");
            }
        }
    }
}

properties! { 200 cases;
    fn nothing_is_left_when_a_sequence_is_over(steps in |draw: &mut Draw| draw.list(1..60, step)) {
        let raw = Raw::new();
        raw.initialize_uvm();
        let device = raw.device();
        let subdevice = raw.subdevice(device);
        let uuid = raw.uuid(subdevice);
        raw.uvm_gpu(u::UVM_REGISTER_GPU, "gpu_uuid_uuid", &uuid, &[]);
        let client = raw.client;
        let objects = vec![(client, device), (client, subdevice)];
        let mut made = Made { raw, clients: vec![client], objects, uuid };
        for step in &steps {
            made.run(step);
        }
        let Made { raw, .. } = made;
        // The order of closing does not matter: UVM keeps what it has mapped, RM what it has given out.
        if steps.len() % 2 == 0 {
            raw.machine.close(raw.uvm).expect("open");
            raw.machine.close(raw.ctl).expect("open");
        } else {
            raw.machine.close(raw.ctl).expect("open");
            raw.machine.close(raw.uvm).expect("open");
        }
        raw.machine.close(raw.gpu).expect("open");
        assert_eq!(raw.machine.object_count(), 0);
        assert_eq!(raw.machine.video_memory_in_use(0), Some(0));
        assert_eq!(raw.machine.video_memory_in_use(1), Some(0));
    }
}
