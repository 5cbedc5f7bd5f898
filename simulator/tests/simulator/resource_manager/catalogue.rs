//! Every class and every control that is declared: made, answered, or refused as the module refuses it and listed.

use super::{branches::VERSIONS, channel::Bench, *};

/// Calls with parameters of zeroes, large enough for any control or class.
fn zeroes() -> Vec<u8> {
    vec![0; 128 << 10]
}

impl Bench {
    /// Objects of every class that has controls or children here, with a channel of work.
    fn objects(&mut self) -> Vec<u32> {
        let (group, share) = self.group();
        let channel = self.channel(group, share);
        let raw = &self.raw;
        let memory = raw.memory(self.device, class::NV01_MEMORY_LOCAL_USER, PAGE).unwrap();
        let mut objects = vec![raw.client, self.device, self.subdevice, group, channel.handle, memory];
        for number in [
            class::NV50_THIRD_PARTY_P2P,
            class::GF100_SUBDEVICE_MASTER,
            class::NV2081_BINAPI,
            class::NV20_SUBDEVICE_DIAG,
            class::GF100_ZBC_CLEAR,
            class::GF100_PROFILER,
        ] {
            let mut params = zeroes();
            objects.push(self.raw.alloc_bytes(self.subdevice, number, &mut params).unwrap());
        }
        objects.push(raw.alloc_bytes(raw.client, class::NV_CONFIDENTIAL_COMPUTE, &mut zeroes()).unwrap());
        let compute = raw.alloc(raw.client, channel.handle, 0, raw.engine_classes().1, None).unwrap();
        let params = raw.record(
            &rm::NV83DE_ALLOC_PARAMETERS::STRUCT,
            &[(&rm::NV83DE_ALLOC_PARAMETERS::hClass3dObject, compute.into())],
        );
        objects.push(raw.alloc(raw.client, self.device, 0, class::GT200_DEBUGGER, Some(params)).unwrap());
        objects
    }

    fn is_listed(&self, name: &str) -> bool {
        self.raw.machine.unsupported().iter().any(|lack| lack.what.contains(name))
    }
}

/// The internal classes whose controls the objects of [`Bench::objects`] answer.
const EXPORTERS: [&str; 14] = [
    "RmClientResource",
    "Device",
    "Subdevice",
    "KernelChannelGroupApi",
    "KernelChannel",
    "Memory",
    "ThirdPartyP2P",
    "GenericEngineApi",
    "BinaryApi",
    "DiagApi",
    "ZbcApi",
    "Profiler",
    "ConfidentialComputeApi",
    "KernelSMDebuggerSession",
];

/// Controls that the module itself refuses where the machine is as the simulated one: a GPU that is whole (MIG), without
/// an encoder for AV1, without SEC2 channels.
const REFUSED_BY_THE_CARD: [u32; 2] =
    [c::NV2080_CTRL_CMD_GPU_GET_ACTIVE_PARTITION_IDS, c::NV2080_CTRL_CMD_FLCN_GET_CTX_BUFFER_SIZE];

/// Classes that the module itself refuses there: parts of a GPU, and memory of an NVSwitch fabric.
const CLASSES_REFUSED_BY_THE_CARD: [u32; 2] = [class::AMPERE_SMC_PARTITION_REF, class::NV_MEMORY_FABRIC];

#[test]
fn every_control_checks_its_size_and_is_answered_or_refused_and_listed() {
    for (branch, version) in VERSIONS {
        let mut bench = Bench::new(Machine::builder().gpu(Profile::h200()).driver(version), branch);
        let objects = bench.objects();
        for row in c::CONTROLS {
            // Zeroes for each call: the answers of one would be pointers for the next.
            let call = |object, size| {
                let mut params = zeroes();
                let pointer = if size == 0 { 0 } else { params.as_mut_ptr().expose_provenance() as u64 };
                bench.raw.control_raw(bench.raw.client, object, row.command, pointer, size)
            };
            let size = row.size(branch).expect("every row has a size") as u64;
            if row.exists(branch) && !row.is_converted(branch) {
                // Whatever the object: the size is looked at first.
                for wrong in [size + 1, size.saturating_sub(1)].into_iter().filter(|wrong| *wrong != size) {
                    let status = call(bench.raw.client, wrong);
                    assert_eq!(status, Status::INVALID_ARGUMENT, "{} of {wrong} bytes, {version}", row.name);
                }
            }
            let statuses: Vec<Status> = objects.iter().map(|object| call(*object, size)).collect();
            let refused = statuses.iter().all(|status| *status == Status::NOT_SUPPORTED);
            let answered = Machine::answers(row.command) && row.exists(branch);
            if !answered || REFUSED_BY_THE_CARD.contains(&row.command) {
                // Of the objects that a channel handle of 0 was looked for through, at most that is missing.
                let refused = refused
                    || statuses.iter().all(|s| [Status::NOT_SUPPORTED, Status::OBJECT_NOT_FOUND].contains(s));
                assert!(refused, "{}: {statuses:?} under {version}", row.name);
            }
            let reached = EXPORTERS.contains(&row.exporter);
            if !answered && row.exists(branch) && reached {
                assert!(bench.is_listed(row.name), "{} is refused and not listed, {version}", row.name);
            }
            // What no object of the right class was called on is what nothing could answer.
            assert!(answered || reached || refused, "{}: {statuses:?} under {version}", row.name);
        }
    }
}

#[test]
fn controls_for_root_are_refused_to_others() {
    use nv_abi::rm::class::Privilege;
    for (branch, version) in VERSIONS {
        for user in [Privilege::User, Privilege::Root] {
            let builder = Machine::builder().gpu(Profile::h200()).driver(version).user(user);
            let mut bench = Bench::new(builder, branch);
            let (group, share) = bench.group();
            let channel = bench.channel(group, share).handle;
            for row in c::CONTROLS.iter().filter(|row| row.exporter == "KernelChannel") {
                let mut params = zeroes();
                let pointer = params.as_mut_ptr().expose_provenance() as u64;
                let size = row.size(branch).expect("every row has a size") as u64;
                let status = bench.raw.control_raw(bench.raw.client, channel, row.command, pointer, size);
                let denied = row.privilege(branch) > user;
                assert_eq!(status == Status::INSUFFICIENT_PERMISSIONS, denied, "{}: {status}", row.name);
            }
        }
        let root: Vec<&str> = c::CONTROLS
            .iter()
            .filter(|row| row.privilege(branch) > Privilege::User)
            .map(|row| row.name)
            .collect();
        // By the flags and access rights of the export tables.
        let expected: &[&str] = match branch {
            Branch::R535 => &["NV00F8_CTRL_CMD_DESCRIBE", "NVA06F_CTRL_CMD_RESTART_RUNLIST"],
            _ => &["NVA06F_CTRL_CMD_RESTART_RUNLIST"],
        };
        assert_eq!(root, expected, "{version}");
    }
}

#[test]
fn every_class_is_made_or_refused_and_listed() {
    for (branch, version) in VERSIONS {
        let mut bench = Bench::new(Machine::builder().gpu(Profile::h200()).driver(version), branch);
        let objects = bench.objects();
        for row in class::CLASSES {
            let statuses: Vec<Result<u32, Status>> = objects
                .iter()
                .map(|parent| bench.raw.alloc_bytes(*parent, row.number, &mut zeroes()))
                .collect();
            if !class::exists(row.number, branch) {
                let unknown = statuses.iter().all(|status| *status == Err(Status::INVALID_CLASS));
                assert!(unknown, "{}: {statuses:?} under {version}", row.name);
            } else if statuses.contains(&Err(Status::NOT_SUPPORTED))
                && !CLASSES_REFUSED_BY_THE_CARD.contains(&row.number)
            {
                let listed = bench.is_listed(row.name);
                assert!(listed, "{} is refused and not listed, {version}: {statuses:?}", row.name);
            }
        }
        assert_eq!(bench.raw.free(bench.raw.client, bench.raw.client), Status::NV_OK);
    }
}
