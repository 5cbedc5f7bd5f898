//! What a pushbuffer does, above its methods: semaphores, uploads, launches, copies.
//!
//! A [`Stream`] keeps what a channel remembers from one segment to the next: the classes of its subchannels, the method
//! state that a later method uses, and what was uploaded inline (which is how NVIDIA's own driver writes its launch
//! descriptors).

use std::collections::{BTreeMap, HashMap};

use nv_abi::{
    Field,
    arch::Generation,
    compute::HOPPER_COMPUTE_A as compute,
    copy::HOPPER_DMA_COPY_A as copy,
    dump::{Call, Packet, Subchannels, packets},
    host::{self, HOPPER_CHANNEL_GPFIFO_A as channel},
    method::Method,
    qmd::{self, Version},
};

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
    /// Last data word by subchannel and method address.
    state: HashMap<(u8, u32), u32>,
    upload: Option<Pending>,
    /// What was uploaded, by address.
    written: BTreeMap<u64, Vec<u8>>,
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
            state: HashMap::new(),
            upload: None,
            written: BTreeMap::new(),
        }
    }

    /// As if SET_OBJECT with this class had been sent.
    pub fn bind(&mut self, subchannel: u8, class: u32) {
        self.subchannels.bind(subchannel, class);
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

    /// Notes an upload. What it covers of earlier ones is forgotten.
    fn write(&mut self, address: u64, bytes: &[u8]) {
        let end = address + bytes.len() as u64;
        let below = self.written.range(..end).rev();
        let old: Vec<u64> = below
            .take_while(|(start, old)| *start + old.len() as u64 > address)
            .map(|(start, _)| *start)
            .collect();
        for start in old {
            let Some(mut head) = self.written.remove(&start) else { continue };
            if let Some(skip) = end.checked_sub(start).filter(|skip| *skip < head.len() as u64) {
                self.written.insert(end, head[skip as usize..].to_vec());
            }
            if start < address {
                head.truncate((address - start) as usize);
                self.written.insert(start, head);
            }
        }
        self.written.insert(address, bytes.to_vec());
    }

    /// Bytes that inline uploads wrote, if all of them are known.
    pub fn written(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let found = self.written_part(address, bytes)?;
        (found.len() == bytes).then_some(found)
    }

    /// The same up to the last byte that was written, with zeroes in between: clients declare longer banks than they
    /// fill. `None` if the first byte was not written.
    pub fn written_part(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let end = address.checked_add(bytes as u64)?;
        let (first, _) = self.written.range(..=address).next_back()?;
        let mut found = Vec::new();
        for (start, data) in self.written.range(*first..end) {
            let skip = address.saturating_sub(*start) as usize;
            let Some(data) = data.get(skip..).filter(|data| !data.is_empty()) else { continue };
            let at = (start + skip as u64 - address) as usize;
            let data = &data[..data.len().min(bytes - at)];
            found.resize(at + data.len(), 0);
            found[at..].copy_from_slice(data);
        }
        let begins = self
            .written
            .range(..=address)
            .next_back()
            .is_some_and(|(start, data)| address - start < data.len() as u64);
        (begins && !found.is_empty()).then_some(found)
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
                if let Some(action) = self.call(header.subchannel, &packet.owner, call) {
                    steps.push(Step { offset: call.offset, action });
                }
            }
            if packet.missing > 0 {
                steps.push(broken(format!("the segment ends {} words too early", packet.missing)));
            }
        }
        (found, steps)
    }

    fn get(&self, subchannel: u8, method: &Method) -> u32 {
        self.state.get(&(subchannel, method.address)).copied().unwrap_or(0)
    }

    fn address(&self, subchannel: u8, upper: &Method, lower: &Method) -> u64 {
        u64::from(self.get(subchannel, upper)) << 32 | u64::from(self.get(subchannel, lower))
    }

    fn call(&mut self, subchannel: u8, owner: &str, call: &Call) -> Option<Action> {
        // Host methods are the channel's own, whatever the subchannel.
        let slot = if call.address < host::METHODS_END { 0 } else { subchannel };
        self.state.insert((slot, call.address), call.word);
        if call.address == 0 {
            let class = call.word & 0xffff;
            if let Some(generation) = Generation::of_compute_class(class) {
                self.generation = generation;
            }
            return Some(Action::Bind { subchannel, class });
        }
        let other = || {
            Some(Action::Method {
                owner: owner.to_owned(),
                name: call.name(),
                data: call.word,
                text: call.text(),
            })
        };
        let Some((method, _)) = call.method else { return other() };
        if call.address < host::METHODS_END {
            return self.host(method, call.word, other);
        }
        let class = self.subchannels.class(subchannel).unwrap_or(0);
        if nv_abi::copy::CLASSES.iter().any(|table| table.number == class) {
            self.copy(subchannel, method, call.word, other)
        } else {
            self.compute(subchannel, method, call.word, other)
        }
    }

    fn host(&self, method: &Method, data: u32, other: impl Fn() -> Option<Action>) -> Option<Action> {
        use channel::SEM_EXECUTE as e;
        match method.name {
            "SEM_ADDR_LO" | "SEM_ADDR_HI" | "SEM_PAYLOAD_LO" | "SEM_PAYLOAD_HI" | "SEMAPHOREA"
            | "SEMAPHOREB" | "SEMAPHOREC" => None,
            "SEM_EXECUTE" => {
                let address = self.address(0, &channel::SEM_ADDR_HI, &channel::SEM_ADDR_LO);
                let wide = field(data, &e::PAYLOAD_SIZE) != 0;
                let payload = match wide {
                    true => self.address(0, &channel::SEM_PAYLOAD_HI, &channel::SEM_PAYLOAD_LO),
                    false => self.get(0, &channel::SEM_PAYLOAD_LO).into(),
                };
                let number = u64::from(field(data, &e::OPERATION));
                let operation = e::OPERATION.enumerant(number).unwrap_or("(no such operation)");
                Some(match number {
                    e::OPERATION::RELEASE | e::OPERATION::REDUCTION => Action::Release {
                        address,
                        payload,
                        wide,
                        operation,
                        wait_for_idle: field(data, &e::RELEASE_WFI) != 0,
                        timestamp: field(data, &e::RELEASE_TIMESTAMP) != 0,
                    },
                    _ => Action::Acquire { address, payload, wide, operation },
                })
            }
            "SEMAPHORED" => {
                use channel::SEMAPHORED as d;
                let address = self.address(0, &channel::SEMAPHOREA, &channel::SEMAPHOREB);
                let payload = self.get(0, &channel::SEMAPHOREC).into();
                let number = u64::from(field(data, &d::OPERATION));
                let operation = d::OPERATION.enumerant(number).unwrap_or("(no such operation)");
                Some(match number {
                    d::OPERATION::RELEASE | d::OPERATION::REDUCTION => Action::Release {
                        address,
                        payload,
                        wide: false,
                        operation,
                        wait_for_idle: field(data, &d::RELEASE_WFI) == 0,
                        timestamp: field(data, &d::RELEASE_SIZE) == 0,
                    },
                    _ => Action::Acquire { address, payload, wide: false, operation },
                })
            }
            "WFI" => Some(Action::WaitForIdle),
            _ => other(),
        }
    }

    fn compute(
        &mut self,
        subchannel: u8,
        method: &Method,
        data: u32,
        other: impl Fn() -> Option<Action>,
    ) -> Option<Action> {
        match method.name {
            "OFFSET_OUT_UPPER"
            | "OFFSET_OUT"
            | "LINE_LENGTH_IN"
            | "LINE_COUNT"
            | "SEND_PCAS_A"
            | "SET_REPORT_SEMAPHORE_A"
            | "SET_REPORT_SEMAPHORE_B"
            | "SET_REPORT_SEMAPHORE_C"
            | "SET_REPORT_SEMAPHORE_PAYLOAD_LOWER"
            | "SET_REPORT_SEMAPHORE_PAYLOAD_UPPER"
            | "SET_REPORT_SEMAPHORE_ADDRESS_LOWER"
            | "SET_REPORT_SEMAPHORE_ADDRESS_UPPER"
            | "SET_SHADER_LOCAL_MEMORY_A" => None,
            "LAUNCH_DMA" => {
                let lines = self.get(subchannel, &compute::LINE_COUNT).max(1) as usize;
                let length = self.get(subchannel, &compute::LINE_LENGTH_IN) as usize;
                self.upload = Some(Pending {
                    address: self.address(subchannel, &compute::OFFSET_OUT_UPPER, &compute::OFFSET_OUT),
                    length: length.saturating_mul(lines),
                    bytes: Vec::new(),
                });
                None
            }
            "LOAD_INLINE_DATA" => {
                let pending = self.upload.as_mut()?;
                pending.bytes.extend(data.to_le_bytes());
                if pending.bytes.len() < pending.length {
                    return None;
                }
                let Pending { address, length, mut bytes } = self.upload.take()?;
                bytes.truncate(length);
                if bytes.len() <= LONGEST_KEPT {
                    self.write(address, &bytes);
                }
                Some(Action::Upload { address, bytes })
            }
            "SEND_SIGNALING_PCAS_B" | "SEND_SIGNALING_PCAS2_B" | "SEND_PCAS_B" => {
                let qmd = u64::from(self.get(subchannel, &compute::SEND_PCAS_A)) << 8;
                let action = match method.name {
                    "SEND_SIGNALING_PCAS2_B" => {
                        let number = field(data, &compute::SEND_SIGNALING_PCAS2_B::PCAS_ACTION);
                        let name = compute::SEND_SIGNALING_PCAS2_B::PCAS_ACTION.enumerant(number.into());
                        name.map_or_else(|| format!("action {number}"), str::to_owned)
                    }
                    name => format!("{name} {data:#x}"),
                };
                let inline = self.written(qmd, self.qmd_version().bytes());
                Some(Action::Launch { qmd, action, inline })
            }
            "SET_REPORT_SEMAPHORE_D" => Some(Action::Report {
                address: self.address(
                    subchannel,
                    &compute::SET_REPORT_SEMAPHORE_A,
                    &compute::SET_REPORT_SEMAPHORE_B,
                ),
                payload: self.get(subchannel, &compute::SET_REPORT_SEMAPHORE_C).into(),
                execute: data,
            }),
            "REPORT_SEMAPHORE_EXECUTE" => Some(Action::Report {
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
                execute: data,
            }),
            "INVALIDATE_SHADER_CACHES_NO_WFI" => Some(Action::Invalidate { data, wait_for_idle: false }),
            "INVALIDATE_SHADER_CACHES" => Some(Action::Invalidate { data, wait_for_idle: true }),
            "WAIT_FOR_IDLE" => Some(Action::WaitForIdle),
            "SET_SHADER_LOCAL_MEMORY_B" => Some(Action::LocalMemory {
                address: self.address(
                    subchannel,
                    &compute::SET_SHADER_LOCAL_MEMORY_A,
                    &compute::SET_SHADER_LOCAL_MEMORY_B,
                ),
            }),
            _ => other(),
        }
    }

    fn copy(
        &self,
        subchannel: u8,
        method: &Method,
        data: u32,
        other: impl Fn() -> Option<Action>,
    ) -> Option<Action> {
        use copy::LAUNCH_DMA as l;
        match method.name {
            "OFFSET_IN_UPPER"
            | "OFFSET_IN_LOWER"
            | "OFFSET_OUT_UPPER"
            | "OFFSET_OUT_LOWER"
            | "PITCH_IN"
            | "PITCH_OUT"
            | "LINE_LENGTH_IN"
            | "LINE_COUNT"
            | "SET_SEMAPHORE_A"
            | "SET_SEMAPHORE_B"
            | "SET_SEMAPHORE_PAYLOAD"
            | "SET_SEMAPHORE_PAYLOAD_UPPER" => None,
            "LAUNCH_DMA" => {
                let number = u64::from(field(data, &l::DATA_TRANSFER_TYPE));
                let wide = field(data, &l::SEMAPHORE_PAYLOAD_SIZE) != 0;
                let upper = if wide { self.get(subchannel, &copy::SET_SEMAPHORE_PAYLOAD_UPPER) } else { 0 };
                let semaphore = (
                    self.address(subchannel, &copy::SET_SEMAPHORE_A, &copy::SET_SEMAPHORE_B),
                    u64::from(upper) << 32 | u64::from(self.get(subchannel, &copy::SET_SEMAPHORE_PAYLOAD)),
                );
                if number == l::DATA_TRANSFER_TYPE::NONE {
                    let (address, payload) = semaphore;
                    return Some(Action::CopyRelease { address, payload, launch: data });
                }
                let several = field(data, &l::MULTI_LINE_ENABLE) != 0;
                let pitch = |method| if several { self.get(subchannel, method) } else { 0 };
                Some(Action::Copy {
                    source: self.address(subchannel, &copy::OFFSET_IN_UPPER, &copy::OFFSET_IN_LOWER),
                    destination: self.address(subchannel, &copy::OFFSET_OUT_UPPER, &copy::OFFSET_OUT_LOWER),
                    line: self.get(subchannel, &copy::LINE_LENGTH_IN),
                    lines: if several { self.get(subchannel, &copy::LINE_COUNT) } else { 1 },
                    pitches: [pitch(&copy::PITCH_IN), pitch(&copy::PITCH_OUT)],
                    release: (field(data, &l::SEMAPHORE_TYPE) != 0).then_some(semaphore),
                    launch: data,
                })
            }
            _ => other(),
        }
    }
}

/// The dependents of a launch, as far as their descriptors can be read: pairs of address and bytes, the launch's own
/// descriptor first.
pub fn chain(
    version: Version,
    first: u64,
    read: impl Fn(u64, usize) -> Option<Vec<u8>>,
) -> Vec<(u64, Vec<u8>)> {
    let mut found: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut next = vec![first];
    // A chain can be a ring; no descriptor is read twice.
    while let Some(address) = next.pop() {
        if found.iter().any(|(known, _)| *known == address) {
            continue;
        }
        let Some(bytes) = read(address, version.bytes()) else { continue };
        if let Ok(launch) = qmd::read(version, &bytes) {
            next.extend(launch.dependents.iter().rev().map(|dependent| dependent.address));
        }
        found.push((address, bytes));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_uploads_cover_earlier_ones_and_gaps_read_as_zeroes() {
        let mut stream = Stream::of(Generation::Hopper);
        stream.write(0x1000, &[1; 16]);
        stream.write(0x1004, &[2; 4]);
        stream.write(0x1014, &[3; 4]);
        assert_eq!(stream.written(0x1002, 8), Some(vec![1, 1, 2, 2, 2, 2, 1, 1]));
        assert_eq!(
            stream.written(0x1000, 0x18).map(|bytes| bytes[15..21].to_vec()),
            Some(vec![1, 0, 0, 0, 0, 3])
        );
        assert_eq!(stream.written_part(0x1010, 8), None);
        assert_eq!(stream.written_part(0x1014, 100), Some(vec![3; 4]));
        stream.write(0xff0, &[4; 0x40]);
        assert_eq!(stream.written(0x1000, 16), Some(vec![4; 16]));
        assert_eq!(stream.written(0x1030, 1), None);
    }
}
