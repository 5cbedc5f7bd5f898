//! What a pushbuffer does, above its methods: semaphores, uploads, launches, copies.
//!
//! A [`Stream`] keeps what a channel remembers from one segment to the next: the classes of its subchannels, the method
//! state that a later method uses, and what was uploaded inline (which is how NVIDIA's own driver writes its launch
//! descriptors).

use std::collections::HashSet;

use nv_abi::{
    Field,
    arch::Generation,
    compute::HOPPER_COMPUTE_A as compute,
    copy::HOPPER_DMA_COPY_A as copy,
    dump::{Packet, Subchannels, packets},
    host::{self, HOPPER_CHANNEL_GPFIFO_A as channel},
    method::{ClassTable, Method, Write, class_table, walk},
    qmd::{self, Links, Version},
};

use crate::contents::Contents;

/// Something that a segment makes the GPU do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A class is put on a subchannel.
    Bind {
        /// The subchannel.
        subchannel: u8,
        /// The class.
        class: u32,
    },
    /// The host waits for a value in memory.
    Acquire {
        /// GPU address.
        address: u64,
        /// What is compared with.
        payload: u64,
        /// 64 bits, else 32.
        wide: bool,
        /// The comparison, by the vendor's name.
        operation: &'static str,
    },
    /// The host writes a value to memory.
    Release {
        /// GPU address.
        address: u64,
        /// The value.
        payload: u64,
        /// 64 bits, else 32.
        wide: bool,
        /// The vendor's name: RELEASE, or REDUCTION.
        operation: &'static str,
        /// Only after the engine has finished everything before.
        wait_for_idle: bool,
        /// With the time beside it.
        timestamp: bool,
    },
    /// The compute engine writes a value once the launches before it have finished as much as it asks for.
    Report {
        /// GPU address.
        address: u64,
        /// The value.
        payload: u64,
        /// The data word of the method that does it.
        execute: u32,
    },
    /// Bytes from the pushbuffer go to memory.
    Upload {
        /// GPU address of the first byte.
        address: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A launch descriptor is handed to the scheduler.
    Launch {
        /// GPU address of the descriptor.
        qmd: u64,
        /// What the scheduler is told to do with it, by the vendor's name.
        action: String,
        /// The descriptor's bytes, where the pushbuffer itself wrote them.
        inline: Option<Vec<u8>>,
    },
    /// The copy engine moves bytes.
    Copy {
        /// GPU address of the source.
        source: u64,
        /// GPU address of the destination.
        destination: u64,
        /// Bytes of a line.
        line: u32,
        /// Lines.
        lines: u32,
        /// Bytes from line to line of the source and of the destination; 0 where there is one line only.
        pitches: [u32; 2],
        /// A semaphore that the same launch releases: its address and payload.
        release: Option<(u64, u64)>,
        /// The data word of LAUNCH_DMA.
        launch: u32,
    },
    /// The copy engine writes a value once its copies are done.
    CopyRelease {
        /// GPU address.
        address: u64,
        /// The value.
        payload: u64,
        /// The data word of LAUNCH_DMA.
        launch: u32,
    },
    /// Shader caches are dropped.
    Invalidate {
        /// The data word of the method.
        data: u32,
        /// Whether launches before it finish first.
        wait_for_idle: bool,
    },
    /// The engine finishes everything before it goes on.
    WaitForIdle,
    /// Memory for the threads' own data is given to the compute engine.
    LocalMemory {
        /// GPU address.
        address: u64,
    },
    /// Any other method that does something, or sets something that no other action shows.
    Method {
        /// The owner of the method: a class's name, or the host.
        owner: String,
        /// The method's name.
        name: String,
        /// The data word.
        data: u32,
        /// The data word in terms of its fields.
        text: String,
    },
    /// A header that is none, or a segment that ends too early.
    Broken(String),
}

/// An action with where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Byte offset in the segment of the word that triggers it.
    pub offset: usize,
    /// What it does.
    pub action: Action,
}

/// What a channel remembers.
#[derive(Clone, Debug)]
pub struct Stream {
    subchannels: Subchannels,
    generation: Generation,
    /// Last data words by subchannel, then by method address in words. The host's own are those of subchannel 0.
    state: [Vec<u32>; 8],
    /// What the methods of each subchannel's class do, and those of the host.
    roles: [Roles; 8],
    host: Roles,
    upload: Option<Pending>,
    /// What was uploaded.
    written: Contents,
}

/// An upload whose bytes are still arriving.
#[derive(Clone, Debug)]
struct Pending {
    address: u64,
    length: usize,
    bytes: Vec<u8>,
}

/// Inline uploads longer than this are not kept for later reading: descriptors and banks are shorter.
const LONGEST_KEPT: usize = 64 << 10;

fn field(data: u32, field: &Field) -> u32 {
    field.decode(data.into()) as u32
}

impl Stream {
    /// A channel of this class that has done nothing yet. Classes that no generation here has are read as Ampere's; the
    /// compute class tells those apart that share a channel class.
    pub fn new(channel_class: u32) -> Self {
        Self::of(Generation::of_channel_class(channel_class).unwrap_or(Generation::Ampere))
    }

    /// A channel of this generation that has done nothing yet.
    pub fn of(generation: Generation) -> Self {
        Self {
            subchannels: Subchannels::new(generation),
            generation,
            state: Default::default(),
            roles: Default::default(),
            host: Roles::of(generation.host_methods(), HOST),
            upload: None,
            written: Contents::default(),
        }
    }

    /// As if SET_OBJECT with this class had been sent.
    pub fn bind(&mut self, subchannel: u8, class: u32) {
        self.subchannels.bind(subchannel, class);
        self.bound(subchannel, class);
    }

    /// A class was put on a subchannel.
    fn bound(&mut self, subchannel: u8, class: u32) {
        if let Some(roles) = self.roles.get_mut(usize::from(subchannel)) {
            *roles = Roles::of_class(class);
        }
        if let Some(generation) = Generation::of_compute_class(class) {
            self.generation = generation;
        }
    }

    /// The classes as they are now.
    pub fn subchannels(&self) -> &Subchannels {
        &self.subchannels
    }

    /// The generation, as far as the classes bound so far tell.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The version of launch descriptors.
    pub fn qmd_version(&self) -> Version {
        self.generation.qmd_version()
    }

    /// Bytes that inline uploads wrote, if all of them are known.
    pub fn written(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        self.written.read(address, bytes)
    }

    /// The same up to the last byte that was written, with zeroes in between: clients declare longer banks than they
    /// fill. `None` if the first byte was not written.
    pub fn written_part(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        self.written.read_part(address, bytes)
    }

    /// The packets and the actions of a segment.
    pub fn segment(&mut self, words: &[u32]) -> (Vec<Packet>, Vec<Step>) {
        let found = packets(words, &mut self.subchannels);
        let mut steps = Vec::new();
        for packet in &found {
            let broken = |text: String| Step { offset: packet.offset, action: Action::Broken(text) };
            let header = match &packet.header {
                Ok(header) => header,
                Err(error) => {
                    steps.push(broken(error.to_string()));
                    continue;
                }
            };
            for call in &packet.calls {
                let other = || {
                    Some(Action::Method {
                        owner: packet.owner.clone().into_owned(),
                        name: call.name(),
                        data: call.word,
                        text: call.text(),
                    })
                };
                let action = self.call(header.subchannel, call.address, call.word, &other);
                steps.extend(action.map(|action| Step { offset: call.offset, action }));
            }
            if packet.missing > 0 {
                steps.push(broken(format!("the segment ends {} words too early", packet.missing)));
            }
        }
        (found, steps)
    }

    /// The actions of a segment up to where it is broken, without [`Action::Method`]: a small part of the work.
    pub(crate) fn follow(&mut self, words: &[u32]) -> Vec<Action> {
        let mut actions = Vec::new();
        for Write { subchannel, address, data, .. } in walk(words).map_while(Result::ok) {
            if address == 0 {
                self.subchannels.bind(subchannel, data & 0xffff);
            }
            actions.extend(self.call(subchannel, address, data, &|| None));
        }
        actions
    }

    fn get(&self, subchannel: u8, method: &Method) -> u32 {
        let words = self.state.get(usize::from(subchannel));
        words.and_then(|words| words.get(method.address as usize / 4)).copied().unwrap_or(0)
    }

    fn set(&mut self, subchannel: u8, address: u32, word: u32) {
        let Some(words) = self.state.get_mut(usize::from(subchannel)) else { return };
        let at = address as usize / 4;
        if words.len() <= at {
            words.resize((at + 1).next_multiple_of(1 << 8), 0);
        }
        words[at] = word;
    }

    fn address(&self, subchannel: u8, upper: &Method, lower: &Method) -> u64 {
        u64::from(self.get(subchannel, upper)) << 32 | u64::from(self.get(subchannel, lower))
    }

    /// What a data word does; `other` says it of a word that is no part of any action here.
    fn call(
        &mut self,
        subchannel: u8,
        address: u32,
        word: u32,
        other: &dyn Fn() -> Option<Action>,
    ) -> Option<Action> {
        // Host methods are the channel's own, whatever the subchannel.
        let is_host = address < host::METHODS_END;
        self.set(if is_host { 0 } else { subchannel }, address, word);
        if address == 0 {
            let class = word & 0xffff;
            self.bound(subchannel, class);
            return Some(Action::Bind { subchannel, class });
        }
        let roles = if is_host { Some(&self.host) } else { self.roles.get(usize::from(subchannel)) };
        match roles.map_or(Role::Other, |roles| roles.role(address)) {
            Role::Other => other(),
            Role::Part => None,
            Role::SemaphoreExecute => Some(self.semaphore_execute(word)),
            Role::SemaphoreD => Some(self.semaphore_d(word)),
            Role::WaitForIdle => Some(Action::WaitForIdle),
            Role::Upload => self.begin_upload(subchannel),
            Role::InlineData => self.inline_data(word),
            Role::Launch(method) => Some(self.launch(subchannel, method, word)),
            Role::Report => Some(Action::Report {
                address: self.address(
                    subchannel,
                    &compute::SET_REPORT_SEMAPHORE_A,
                    &compute::SET_REPORT_SEMAPHORE_B,
                ),
                payload: self.get(subchannel, &compute::SET_REPORT_SEMAPHORE_C).into(),
                execute: word,
            }),
            Role::ReportExecute => Some(Action::Report {
                address: self.address(
                    subchannel,
                    &compute::SET_REPORT_SEMAPHORE_ADDRESS_UPPER,
                    &compute::SET_REPORT_SEMAPHORE_ADDRESS_LOWER,
                ),
                payload: self.address(
                    subchannel,
                    &compute::SET_REPORT_SEMAPHORE_PAYLOAD_UPPER,
                    &compute::SET_REPORT_SEMAPHORE_PAYLOAD_LOWER,
                ),
                execute: word,
            }),
            Role::Invalidate { wait_for_idle } => Some(Action::Invalidate { data: word, wait_for_idle }),
            Role::LocalMemory => Some(Action::LocalMemory {
                address: self.address(
                    subchannel,
                    &compute::SET_SHADER_LOCAL_MEMORY_A,
                    &compute::SET_SHADER_LOCAL_MEMORY_B,
                ),
            }),
            Role::Copy => Some(self.copy(subchannel, word)),
        }
    }

    fn semaphore_execute(&self, data: u32) -> Action {
        use channel::SEM_EXECUTE as e;
        let address = self.address(0, &channel::SEM_ADDR_HI, &channel::SEM_ADDR_LO);
        let wide = field(data, &e::PAYLOAD_SIZE) != 0;
        let payload = match wide {
            true => self.address(0, &channel::SEM_PAYLOAD_HI, &channel::SEM_PAYLOAD_LO),
            false => self.get(0, &channel::SEM_PAYLOAD_LO).into(),
        };
        let number = u64::from(field(data, &e::OPERATION));
        let operation = e::OPERATION.enumerant(number).unwrap_or("(no such operation)");
        match number {
            e::OPERATION::RELEASE | e::OPERATION::REDUCTION => Action::Release {
                address,
                payload,
                wide,
                operation,
                wait_for_idle: field(data, &e::RELEASE_WFI) != 0,
                timestamp: field(data, &e::RELEASE_TIMESTAMP) != 0,
            },
            _ => Action::Acquire { address, payload, wide, operation },
        }
    }

    fn semaphore_d(&self, data: u32) -> Action {
        use channel::SEMAPHORED as d;
        let address = self.address(0, &channel::SEMAPHOREA, &channel::SEMAPHOREB);
        let payload = self.get(0, &channel::SEMAPHOREC).into();
        let number = u64::from(field(data, &d::OPERATION));
        let operation = d::OPERATION.enumerant(number).unwrap_or("(no such operation)");
        match number {
            d::OPERATION::RELEASE | d::OPERATION::REDUCTION => Action::Release {
                address,
                payload,
                wide: false,
                operation,
                wait_for_idle: field(data, &d::RELEASE_WFI) == 0,
                timestamp: field(data, &d::RELEASE_SIZE) == 0,
            },
            _ => Action::Acquire { address, payload, wide: false, operation },
        }
    }

    fn begin_upload(&mut self, subchannel: u8) -> Option<Action> {
        let lines = self.get(subchannel, &compute::LINE_COUNT).max(1) as usize;
        let length = self.get(subchannel, &compute::LINE_LENGTH_IN) as usize;
        self.upload = Some(Pending {
            address: self.address(subchannel, &compute::OFFSET_OUT_UPPER, &compute::OFFSET_OUT),
            length: length.saturating_mul(lines),
            bytes: Vec::new(),
        });
        None
    }

    fn inline_data(&mut self, data: u32) -> Option<Action> {
        let pending = self.upload.as_mut()?;
        pending.bytes.extend(data.to_le_bytes());
        if pending.bytes.len() < pending.length {
            return None;
        }
        let Pending { address, length, mut bytes } = self.upload.take()?;
        bytes.truncate(length);
        if bytes.len() <= LONGEST_KEPT {
            self.written.write(address, &bytes);
        }
        Some(Action::Upload { address, bytes })
    }

    fn launch(&self, subchannel: u8, method: &str, data: u32) -> Action {
        use compute::SEND_SIGNALING_PCAS2_B::PCAS_ACTION;
        let qmd = u64::from(self.get(subchannel, &compute::SEND_PCAS_A)) << 8;
        let action = if method == compute::SEND_SIGNALING_PCAS2_B.name {
            let number = field(data, &PCAS_ACTION);
            PCAS_ACTION.enumerant(number.into()).map_or_else(|| format!("action {number}"), str::to_owned)
        } else {
            format!("{method} {data:#x}")
        };
        let inline = self.written(qmd, self.qmd_version().bytes());
        Action::Launch { qmd, action, inline }
    }

    fn copy(&self, subchannel: u8, data: u32) -> Action {
        use copy::LAUNCH_DMA as l;
        let number = u64::from(field(data, &l::DATA_TRANSFER_TYPE));
        let wide = field(data, &l::SEMAPHORE_PAYLOAD_SIZE) != 0;
        let upper = if wide { self.get(subchannel, &copy::SET_SEMAPHORE_PAYLOAD_UPPER) } else { 0 };
        let semaphore = (
            self.address(subchannel, &copy::SET_SEMAPHORE_A, &copy::SET_SEMAPHORE_B),
            u64::from(upper) << 32 | u64::from(self.get(subchannel, &copy::SET_SEMAPHORE_PAYLOAD)),
        );
        if number == l::DATA_TRANSFER_TYPE::NONE {
            let (address, payload) = semaphore;
            return Action::CopyRelease { address, payload, launch: data };
        }
        let several = field(data, &l::MULTI_LINE_ENABLE) != 0;
        let pitch = |method| if several { self.get(subchannel, method) } else { 0 };
        Action::Copy {
            source: self.address(subchannel, &copy::OFFSET_IN_UPPER, &copy::OFFSET_IN_LOWER),
            destination: self.address(subchannel, &copy::OFFSET_OUT_UPPER, &copy::OFFSET_OUT_LOWER),
            line: self.get(subchannel, &copy::LINE_LENGTH_IN),
            lines: if several { self.get(subchannel, &copy::LINE_COUNT) } else { 1 },
            pitches: [pitch(&copy::PITCH_IN), pitch(&copy::PITCH_OUT)],
            release: (field(data, &l::SEMAPHORE_TYPE) != 0).then_some(semaphore),
            launch: data,
        }
    }
}

/// What a method has to do with actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Nothing: its data word is an action of its own.
    Other,
    /// Its data word is a part of what another one triggers.
    Part,
    SemaphoreExecute,
    SemaphoreD,
    WaitForIdle,
    Upload,
    InlineData,
    /// By the method's name.
    Launch(&'static str),
    Report,
    ReportExecute,
    Invalidate {
        wait_for_idle: bool,
    },
    LocalMemory,
    Copy,
}

/// The methods of a class that have a part in actions, by name.
type RoleRows = &'static [(Role, &'static [&'static str])];

const HOST: RoleRows = &[
    (
        Role::Part,
        &[
            "SEM_ADDR_LO",
            "SEM_ADDR_HI",
            "SEM_PAYLOAD_LO",
            "SEM_PAYLOAD_HI",
            "SEMAPHOREA",
            "SEMAPHOREB",
            "SEMAPHOREC",
        ],
    ),
    (Role::SemaphoreExecute, &["SEM_EXECUTE"]),
    (Role::SemaphoreD, &["SEMAPHORED"]),
    (Role::WaitForIdle, &["WFI"]),
];

const COMPUTE: RoleRows = &[
    (
        Role::Part,
        &[
            "OFFSET_OUT_UPPER",
            "OFFSET_OUT",
            "LINE_LENGTH_IN",
            "LINE_COUNT",
            "SEND_PCAS_A",
            "SET_REPORT_SEMAPHORE_A",
            "SET_REPORT_SEMAPHORE_B",
            "SET_REPORT_SEMAPHORE_C",
            "SET_REPORT_SEMAPHORE_PAYLOAD_LOWER",
            "SET_REPORT_SEMAPHORE_PAYLOAD_UPPER",
            "SET_REPORT_SEMAPHORE_ADDRESS_LOWER",
            "SET_REPORT_SEMAPHORE_ADDRESS_UPPER",
            "SET_SHADER_LOCAL_MEMORY_A",
        ],
    ),
    (Role::Upload, &["LAUNCH_DMA"]),
    (Role::InlineData, &["LOAD_INLINE_DATA"]),
    (Role::Launch("SEND_SIGNALING_PCAS_B"), &["SEND_SIGNALING_PCAS_B"]),
    (Role::Launch("SEND_SIGNALING_PCAS2_B"), &["SEND_SIGNALING_PCAS2_B"]),
    (Role::Launch("SEND_PCAS_B"), &["SEND_PCAS_B"]),
    (Role::Report, &["SET_REPORT_SEMAPHORE_D"]),
    (Role::ReportExecute, &["REPORT_SEMAPHORE_EXECUTE"]),
    (Role::Invalidate { wait_for_idle: false }, &["INVALIDATE_SHADER_CACHES_NO_WFI"]),
    (Role::Invalidate { wait_for_idle: true }, &["INVALIDATE_SHADER_CACHES"]),
    (Role::WaitForIdle, &["WAIT_FOR_IDLE"]),
    (Role::LocalMemory, &["SET_SHADER_LOCAL_MEMORY_B"]),
];

const COPY: RoleRows = &[
    (
        Role::Part,
        &[
            "OFFSET_IN_UPPER",
            "OFFSET_IN_LOWER",
            "OFFSET_OUT_UPPER",
            "OFFSET_OUT_LOWER",
            "PITCH_IN",
            "PITCH_OUT",
            "LINE_LENGTH_IN",
            "LINE_COUNT",
            "SET_SEMAPHORE_A",
            "SET_SEMAPHORE_B",
            "SET_SEMAPHORE_PAYLOAD",
            "SET_SEMAPHORE_PAYLOAD_UPPER",
        ],
    ),
    (Role::Copy, &["LAUNCH_DMA"]),
];

/// The roles of a class's methods, by address in words.
#[derive(Clone, Debug, Default)]
struct Roles(Vec<Role>);

impl Roles {
    fn of_class(number: u32) -> Self {
        let is_copy = nv_abi::copy::CLASSES.iter().any(|table| table.number == number);
        let rows = if is_copy { COPY } else { COMPUTE };
        class_table(number).map(|table| Self::of(table, rows)).unwrap_or_default()
    }

    fn of(table: &ClassTable, rows: RoleRows) -> Self {
        let mut roles = Vec::new();
        let named = rows.iter().flat_map(|(role, names)| names.iter().map(move |name| (role, name)));
        for (role, name) in named {
            // Not every class has all of them.
            let Some(method) = table.named(name) else { continue };
            let at = method.address as usize / 4;
            if roles.len() <= at {
                roles.resize(at + 1, Role::Other);
            }
            roles[at] = *role;
        }
        Self(roles)
    }

    fn role(&self, address: u32) -> Role {
        self.0.get(address as usize / 4).copied().unwrap_or(Role::Other)
    }
}

/// The dependents of a launch, as far as their descriptors can be read: pairs of address and bytes, the launch's own
/// descriptor first.
pub fn chain(
    version: Version,
    first: u64,
    read: impl Fn(u64, usize) -> Option<Vec<u8>>,
) -> Vec<(u64, Vec<u8>)> {
    linked(version, first, read).into_iter().map(|(address, bytes, _)| (address, bytes)).collect()
}

/// The same with where each descriptor points to, if it can be read.
pub(crate) fn linked(
    version: Version,
    first: u64,
    mut read: impl FnMut(u64, usize) -> Option<Vec<u8>>,
) -> Vec<(u64, Vec<u8>, Option<Links>)> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut next = vec![first];
    // A chain can be a ring; no descriptor is read twice.
    while let Some(address) = next.pop() {
        if !seen.insert(address) {
            continue;
        }
        let Some(bytes) = read(address, version.bytes()) else { continue };
        let links = qmd::links(version, &bytes).ok();
        next.extend(links.iter().flat_map(|links| links.dependents.iter().rev()));
        found.push((address, bytes, links));
    }
    found
}
