//! Duplication, share policies, export; context DMAs and the old heap control.

use super::*;

impl Raw {
    /// RM_DUP_OBJECT.
    pub(super) fn dup(&self, to: u32, parent: u32, from: u32, source: u32) -> Result<u32, Status> {
        use rm::NVOS55_PARAMETERS as P;
        let fields = [
            (&P::hClient, to.into()),
            (&P::hParent, parent.into()),
            (&P::hClientSrc, from.into()),
            (&P::hObjectSrc, source.into()),
        ];
        let record = self.escape(self.ctl, number::NV_ESC_RM_DUP_OBJECT, &P::STRUCT, &fields).unwrap();
        match Status(record.get(&P::status).unwrap() as u32) {
            Status::NV_OK => Ok(record.get(&P::hObject).unwrap() as u32),
            status => Err(status),
        }
    }

    /// RM_SHARE of the right to duplicate.
    fn share_right(&self, client: u32, object: u32, kind: u64, target: u32, action: u64) -> Status {
        use rm::NVOS57_PARAMETERS as P;
        let fields = [
            (&P::hClient, client.into()),
            (&P::hObject, object.into()),
            (&P::sharePolicy_target, target.into()),
            (&P::sharePolicy_accessMask_limbs, 1),
            (&P::sharePolicy_type, kind),
            (&P::sharePolicy_action, action),
        ];
        let record = self.escape(self.ctl, number::NV_ESC_RM_SHARE, &P::STRUCT, &fields).unwrap();
        Status(record.get(&P::status).unwrap() as u32)
    }

    fn second_client(&self) -> (u32, u32) {
        let client = self.alloc(0, 0, 0, class::NV01_ROOT_CLIENT, None).unwrap();
        let device = self.alloc(client, client, 0, class::NV01_DEVICE_0, self.device_params(0)).unwrap();
        (client, device)
    }
}

#[test]
fn duplication_checks_come_in_the_modules_order() {
    let raw = Raw::new();
    let device = raw.device();
    let memory = raw.memory(device, class::NV01_MEMORY_SYSTEM, PAGE).unwrap();
    assert_eq!(raw.dup(0xc1d0_7777, device, raw.client, memory), Err(Status::INVALID_OBJECT_HANDLE));
    assert_eq!(raw.dup(raw.client, device, 0xc1d0_7777, memory), Err(Status::INVALID_OBJECT_HANDLE));
    assert_eq!(raw.dup(raw.client, device, raw.client, 0x77), Err(Status::OBJECT_NOT_FOUND), "source");
    assert_eq!(raw.dup(raw.client, 0x77, raw.client, memory), Err(Status::OBJECT_NOT_FOUND), "parent");
    let subdevice = raw.subdevice(device);
    assert_eq!(raw.dup(raw.client, device, raw.client, subdevice), Err(Status::INVALID_ARGUMENT));
    let twin = raw.dup(raw.client, device, raw.client, memory).unwrap();
    assert_eq!(raw.free(raw.client, memory), Status::NV_OK);
    let fd = raw.machine.open(Node::Ctl).unwrap();
    assert_eq!(raw.map_memory(device, twin, PAGE, fd), Status::NV_OK, "the twin lives on");
}

#[test]
fn another_clients_object_needs_the_right_which_share_policies_give_and_take() {
    const COMPOSE: u64 = 4;
    const REVOKE: u64 = 1;
    const ALL: u64 = 1;
    const CLIENT: u64 = 3;
    let raw = Raw::new();
    let device = raw.device();
    let memory = raw.memory(device, class::NV01_MEMORY_SYSTEM, PAGE).unwrap();
    let (other, other_device) = raw.second_client();
    let dup = || raw.dup(other, other_device, raw.client, memory);
    assert_eq!(dup(), Err(Status::INSUFFICIENT_PERMISSIONS));
    assert_eq!(raw.share_right(raw.client, memory, 8, 0, 0), Status::INVALID_ARGUMENT, "type");
    assert_eq!(raw.share_right(raw.client, 0x77, ALL, 0, 0), Status::OBJECT_NOT_FOUND);
    assert_eq!(raw.share_right(raw.client, memory, CLIENT, 0xc1d0_7777, 0), Status::INVALID_CLIENT);
    assert_eq!(raw.share_right(raw.client, memory, CLIENT, raw.client, 0), Status::NV_OK);
    assert_eq!(dup(), Err(Status::INSUFFICIENT_PERMISSIONS), "another's right");
    assert_eq!(raw.share_right(raw.client, memory, CLIENT, other, COMPOSE), Status::NV_OK);
    assert!(dup().is_ok());
    assert_eq!(raw.share_right(raw.client, memory, CLIENT, other, COMPOSE | REVOKE), Status::NV_OK);
    assert_eq!(dup(), Err(Status::INSUFFICIENT_PERMISSIONS), "revoked");
    assert_eq!(raw.share_right(raw.client, memory, ALL, 0, 0), Status::NV_OK);
    assert!(dup().is_ok());
}

#[test]
fn objects_without_policies_follow_their_clients_inherited_one() {
    use rm::NV0000_CTRL_CLIENT_SET_INHERITED_SHARE_POLICY_PARAMS as P;
    let raw = Raw::new();
    let device = raw.device();
    let memory = raw.memory(device, class::NV01_MEMORY_SYSTEM, PAGE).unwrap();
    let (other, other_device) = raw.second_client();
    let mut params = raw.record(
        &P::STRUCT,
        &[(&P::sharePolicy_accessMask, 1), (&P::sharePolicy_type, 1), (&P::sharePolicy_action, 4)],
    );
    let command = c::NV0000_CTRL_CMD_CLIENT_SET_INHERITED_SHARE_POLICY;
    assert_eq!(raw.control(raw.client, command, &mut params), Status::NV_OK);
    assert!(raw.dup(other, other_device, raw.client, memory).is_ok());
}

#[test]
fn a_descriptor_carries_an_object_to_another_client() {
    use rm::{
        NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_TO_FD_PARAMS as Export,
        NV0000_CTRL_OS_UNIX_IMPORT_OBJECT_FROM_FD_PARAMS as Import,
    };
    let raw = Raw::new();
    let device = raw.device();
    let memory = raw.memory(device, class::NV01_MEMORY_LOCAL_USER, PAGE).unwrap();
    let carrier = raw.machine.open(Node::Ctl).unwrap();
    let export = |kind: u64, fd: Fd| {
        let mut params = raw.record(
            &Export::STRUCT,
            &[
                (&Export::object_type, kind),
                (&Export::object_hDevice, device.into()),
                (&Export::object_hObject, memory.into()),
                (&Export::fd, fd.0 as u64),
            ],
        );
        raw.control(raw.client, c::NV0000_CTRL_CMD_OS_UNIX_EXPORT_OBJECT_TO_FD, &mut params)
    };
    assert_eq!(export(2, carrier), Status::INVALID_PARAMETER, "type");
    assert_eq!(export(1, raw.gpu), Status::INVALID_PARAMETER, "a control descriptor");
    assert_eq!(export(1, carrier), Status::NV_OK);
    assert_eq!(export(1, carrier), Status::STATE_IN_USE);
    let (other, other_device) = raw.second_client();
    let import = |fd: Fd| {
        let mut params = raw.record(
            &Import::STRUCT,
            &[
                (&Import::fd, fd.0 as u64),
                (&Import::object_type, 1),
                (&Import::object_hParent, other_device.into()),
            ],
        );
        let size = params.bytes().len() as u64;
        let pointer = params.bytes_mut().as_mut_ptr() as u64;
        let command = c::NV0000_CTRL_CMD_OS_UNIX_IMPORT_OBJECT_FROM_FD;
        match raw.control_raw(other, other, command, pointer, size) {
            Status::NV_OK => Ok(params.get(&Import::object_hObject).unwrap() as u32),
            status => Err(status),
        }
    };
    assert_eq!(import(raw.ctl), Err(Status::INVALID_PARAMETER), "it carries nothing");
    assert_eq!(raw.free(raw.client, memory), Status::NV_OK);
    assert!(import(carrier).is_ok(), "the carrier keeps the object");
}

#[test]
fn a_context_dma_is_a_window_inside_its_memory() {
    use rm::NVOS39_PARAMETERS as P;
    let raw = Raw::new();
    let device = raw.device();
    let memory = raw.memory(device, class::NV01_MEMORY_SYSTEM, PAGE).unwrap();
    let window = 0x200;
    let alloc = |class: u32, offset: u64, limit: u64| {
        let fields = [
            (&P::hObjectParent, raw.client.into()),
            (&P::hObjectNew, window.into()),
            (&P::hClass, class.into()),
            (&P::hMemory, memory.into()),
            (&P::offset, offset),
            (&P::limit, limit),
        ];
        let nr = number::NV_ESC_RM_ALLOC_CONTEXT_DMA2;
        let record = raw.escape(raw.ctl, nr, &P::STRUCT, &fields).unwrap();
        Status(record.get(&P::status).unwrap() as u32)
    };
    assert_eq!(alloc(class::NV01_DEVICE_0, 0, 15), Status::INVALID_CLASS);
    assert_eq!(alloc(class::NV01_CONTEXT_DMA, 0, PAGE), Status::INVALID_LIMIT);
    assert_eq!(alloc(class::NV01_CONTEXT_DMA, PAGE - 16, 15), Status::NV_OK);
    let before = raw.machine.object_count();
    assert_eq!(raw.free(raw.client, memory), Status::NV_OK);
    assert_eq!(raw.machine.object_count(), before - 1);
    assert!(!raw.is_there(window), "it is lost with its memory");
}

#[test]
fn the_heap_control_allocates_tells_and_frees() {
    use rm::NVOS32_PARAMETERS as P;
    let raw = Raw::on(Machine::builder().gpu(Profile::ad102()).vram(64 << 20), Branch::R570);
    let device = raw.device();
    let heap = |fields: Fields<'_>| {
        let mut all = vec![(&P::hRoot, u64::from(raw.client)), (&P::hObjectParent, device.into())];
        all.extend_from_slice(fields);
        raw.escape(raw.ctl, number::NV_ESC_RM_VID_HEAP_CONTROL, &P::STRUCT, &all).unwrap()
    };
    let status = |record: &Record| Status(record.get(&P::status).unwrap() as u32);
    let info = heap(&[(&P::function, 5)]);
    assert_eq!((info.get(&P::total), info.get(&P::free)), (Ok(64 << 20), Ok(64 << 20)));
    let made = heap(&[(&P::function, 2), (&P::AllocSize_size, 3 << 20)]);
    assert_eq!(status(&made), Status::NV_OK);
    assert_eq!(made.get(&P::AllocSize_size), Ok(4 << 20), "whole 2 MiB pages");
    assert_eq!(made.get(&P::free), Ok(60 << 20));
    let memory = made.get(&P::AllocSize_hMemory).unwrap();
    assert_eq!(status(&heap(&[(&P::function, 2), (&P::AllocSize_size, 64 << 20)])), Status::NO_MEMORY);
    assert_eq!(status(&heap(&[(&P::function, 99)])), Status::NOT_SUPPORTED);
    let freed = heap(&[(&P::function, 3), (&P::Free_hMemory, memory)]);
    assert_eq!((status(&freed), freed.get(&P::free)), (Status::NV_OK, Ok(64 << 20)));
    let again = heap(&[(&P::function, 3), (&P::Free_hMemory, memory)]);
    assert_eq!(status(&again), Status::OBJECT_NOT_FOUND);
}

#[test]
fn classes_of_root_and_of_the_kernel_are_refused_to_others() {
    use nv_simulator::machine::Privilege;
    let subdevice_of = |raw: &Raw| raw.subdevice(raw.device());
    let root = Raw::new();
    let parent = subdevice_of(&root);
    let alloc = |raw: &Raw, parent, number| raw.alloc(raw.client, parent, 0, number, None);
    assert!(alloc(&root, parent, class::NV2082_BINAPI_PRIVILEGED).is_ok());
    let denied = Err(Status::INSUFFICIENT_PERMISSIONS);
    assert_eq!(alloc(&root, parent, class::MMU_FAULT_BUFFER), denied);
    let user = Raw::on(Machine::builder().gpu(Profile::ad102()).user(Privilege::User), Branch::R570);
    let parent = subdevice_of(&user);
    assert_eq!(alloc(&user, parent, class::NV2082_BINAPI_PRIVILEGED), denied);
    assert!(alloc(&user, parent, class::NV2081_BINAPI).is_ok());
}
