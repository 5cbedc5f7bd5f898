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
        let mut objects = vec![raw.client, self.device, self.subdevice, group, channel.handle];
        for number in [class::NV50_THIRD_PARTY_P2P, class::GF100_SUBDEVICE_MASTER, class::NV2081_BINAPI] {
            let mut params = zeroes();
            objects.push(self.alloc_bytes(self.subdevice, number, &mut params).unwrap());
        }
        objects.push(self.alloc_bytes(raw.client, class::NV_CONFIDENTIAL_COMPUTE, &mut zeroes()).unwrap());
        let compute = raw.alloc(raw.client, channel.handle, 0, raw.engine_classes().1, None).unwrap();
        let params = raw.record(
            &rm::NV83DE_ALLOC_PARAMETERS::STRUCT,
            &[(&rm::NV83DE_ALLOC_PARAMETERS::hClass3dObject, compute.into())],
        );
        objects.push(raw.alloc(raw.client, self.device, 0, class::GT200_DEBUGGER, Some(params)).unwrap());
        objects
    }

    fn alloc_bytes(&self, parent: u32, number: u32, params: &mut [u8]) -> Result<u32, Status> {
        use rm::NVOS21_PARAMETERS as P;
        let fields = [
            (&P::hRoot, self.raw.client.into()),
            (&P::hObjectParent, parent.into()),
            (&P::hClass, number.into()),
            (&P::pAllocParms, params.as_mut_ptr().expose_provenance() as u64),
        ];
        let record = self.raw.escape(self.raw.ctl, number::NV_ESC_RM_ALLOC, &P::STRUCT, &fields).unwrap();
        match Status(record.get(&P::status).unwrap() as u32) {
            Status::NV_OK => Ok(record.get(&P::hObjectNew).unwrap() as u32),
            status => Err(status),
        }
    }

    fn is_listed(&self, name: &str) -> bool {
        self.raw.machine.unsupported().iter().any(|lack| lack.what.contains(name))
    }
}

#[test]
fn every_control_checks_its_size_and_is_answered_or_refused_and_listed() {
    for (branch, version) in VERSIONS {
        let mut bench = Bench::new(Machine::builder().gpu(Profile::h200()).driver(version), branch);
        let objects = bench.objects();
        let mut params = zeroes();
        let pointer = params.as_mut_ptr().expose_provenance() as u64;
        for row in c::CONTROLS {
            let call =
                |object, size| bench.raw.control_raw(bench.raw.client, object, row.command, pointer, size);
            if let Some(size) = row.size(branch) {
                let wrong = call(bench.raw.client, size as u64 + 1);
                assert_eq!(wrong, Status::INVALID_ARGUMENT, "{} of {size} + 1 bytes, {version}", row.name);
            }
            let size = row.size(branch).unwrap_or(8) as u64;
            let statuses: Vec<Status> = objects.iter().map(|object| call(*object, size)).collect();
            let refused = statuses.iter().all(|status| *status == Status::NOT_SUPPORTED);
            let answered = Machine::answers(row.command);
            if !answered && row.size(branch).is_some() {
                assert!(refused, "{}: {statuses:?} under {version}", row.name);
                assert!(bench.is_listed(row.name), "{} is refused and not listed, {version}", row.name);
            }
        }
    }
}

#[test]
fn every_class_is_made_or_refused_and_listed() {
    for (branch, version) in VERSIONS {
        let mut bench = Bench::new(Machine::builder().gpu(Profile::h200()).driver(version), branch);
        let objects = bench.objects();
        for row in class::CLASSES {
            let statuses: Vec<Result<u32, Status>> =
                objects.iter().map(|parent| bench.alloc_bytes(*parent, row.number, &mut zeroes())).collect();
            if !class::exists(row.number, branch) {
                let unknown = statuses.iter().all(|status| *status == Err(Status::INVALID_CLASS));
                assert!(unknown, "{}: {statuses:?} under {version}", row.name);
            } else if statuses.contains(&Err(Status::NOT_SUPPORTED)) {
                let listed = bench.is_listed(row.name);
                assert!(listed, "{} is refused and not listed, {version}: {statuses:?}", row.name);
            }
        }
        assert_eq!(bench.raw.free(bench.raw.client, bench.raw.client), Status::NV_OK);
    }
}
