//! One object in several name spaces: duplication, share policies, and export through a descriptor.

use std::sync::Arc;

use nv_abi::{
    Fd, FieldError, Node, Record, StructField,
    rm::{
        NV0000_CTRL_CLIENT_SET_INHERITED_SHARE_POLICY_PARAMS as Inherited,
        NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_TO_FD_PARAMS as Export,
        NV0000_CTRL_OS_UNIX_EXPORT_OBJECTS_TO_FD_PARAMS as ExportMany,
        NV0000_CTRL_OS_UNIX_GET_EXPORT_OBJECT_INFO_PARAMS as Info,
        NV0000_CTRL_OS_UNIX_IMPORT_OBJECT_FROM_FD_PARAMS as Import,
        NV0000_CTRL_OS_UNIX_IMPORT_OBJECTS_FROM_FD_PARAMS as ImportMany, NVOS55_PARAMETERS as Dup,
        NVOS57_PARAMETERS as Share, Status, class::Class,
    },
};

use super::{File, Kernel, Kind, MemoryHome, Object, Refusal, control::Target, object::SharePolicy};

/// RS_ACCESS_DUP_OBJECT, as a bit of an access mask.
const DUP_OBJECT: u32 = 1;
/// RS_SHARE_TYPE: everyone, one process, one client, and one past the last.
const TYPE_ALL: u16 = 1;
const TYPE_OS_SECURITY_TOKEN: u16 = 2;
const TYPE_CLIENT: u16 = 3;
const TYPE_PID: u16 = 4;
const TYPE_MAX: u16 = 8;
/// RS_SHARE_ACTION_FLAG.
const REVOKE: u8 = 1;
const REQUIRE: u8 = 2;
const COMPOSE: u8 = 4;

/// NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_TYPE_RM: the only type of what descriptors carry.
const TYPE_RM: u64 = 1;

/// Changes a list as a policy's action says.
fn apply(list: &mut Vec<SharePolicy>, policy: SharePolicy) {
    if policy.action & COMPOSE == 0 {
        list.clear();
    }
    let same = |known: &SharePolicy| known.target == policy.target && known.kind == policy.kind;
    if policy.action & REVOKE != 0 {
        for known in list.iter_mut().filter(|known| same(known)) {
            known.access &= !policy.access;
        }
        list.retain(|known| known.access != 0);
    } else if let Some(known) = list.iter_mut().find(|known| same(known)) {
        known.access |= policy.access;
    } else {
        list.push(policy);
    }
}

/// Whether policies let `client` have a right.
fn allow(policies: &[SharePolicy], client: u32, right: u32) -> bool {
    let matches = |policy: &SharePolicy| match policy.kind {
        // All simulated clients are of one process and one user.
        TYPE_ALL | TYPE_OS_SECURITY_TOKEN | TYPE_PID => true,
        TYPE_CLIENT => policy.target == client,
        _ => false,
    };
    let required = policies.iter().filter(|policy| policy.action & REQUIRE != 0);
    if required.into_iter().any(|policy| policy.access & right != 0 && !matches(policy)) {
        return false;
    }
    policies
        .iter()
        .any(|policy| policy.action & REQUIRE == 0 && policy.access & right != 0 && matches(policy))
}

/// The same object once more; `None` for objects that cannot be duplicated.
fn copy(kind: &Kind) -> Option<Kind> {
    Some(match kind {
        Kind::Memory(memory) => Kind::Memory(Arc::clone(memory)),
        Kind::VaSpace(space) => Kind::VaSpace(Arc::clone(space)),
        Kind::ContextShare { space, subcontext } => {
            Kind::ContextShare { space: Arc::clone(space), subcontext: *subcontext }
        }
        Kind::ChannelGroup { gpu, id, engine, space, timeslice, subcontexts } => Kind::ChannelGroup {
            gpu: *gpu,
            id: *id,
            engine: *engine,
            space: space.clone(),
            timeslice: *timeslice,
            subcontexts: subcontexts.clone(),
        },
        Kind::Usermode { gpu, in_bar1 } => Kind::Usermode { gpu: *gpu, in_bar1: *in_bar1 },
        _ => return None,
    })
}

/// An object that a descriptor carries to whoever has it.
#[derive(Debug)]
pub(crate) struct Exported {
    kind: Kind,
    class: &'static Class,
    gpu: Option<usize>,
}

/// What a descriptor carries.
#[derive(Debug)]
pub(crate) struct Exports {
    /// The device that all of it is of.
    device: Option<usize>,
    /// What the client that made it says about it.
    metadata: Vec<u8>,
    /// Places for objects.
    objects: Vec<Option<Arc<Exported>>>,
}

/// The policy that a call's fields say: target, rights, RS_SHARE_TYPE, action.
fn policy(p: &Record, fields: [&StructField; 4]) -> Result<SharePolicy, Refusal> {
    let [target, access, kind, action] = fields;
    let policy = SharePolicy {
        target: p.get(target)? as u32,
        access: p.get(access)? as u32,
        kind: p.get(kind)? as u16,
        action: p.get(action)? as u8,
    };
    if policy.kind >= TYPE_MAX { Err(Status::INVALID_ARGUMENT.into()) } else { Ok(policy) }
}

impl Kernel {
    /// RM_DUP_OBJECT, with the checks in the module's order.
    pub(super) fn rm_dup_object(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let (client, parent) = (p.get(&Dup::hClient)? as u32, p.get(&Dup::hParent)? as u32);
        let (from, source) = (p.get(&Dup::hClientSrc)? as u32, p.get(&Dup::hObjectSrc)? as u32);
        if !self.clients.contains_key(&from) {
            return Err(Status::INVALID_OBJECT_HANDLE.into());
        }
        self.client(fd, client, Status::INVALID_OBJECT_HANDLE)?;
        let object = self.object(from, source)?;
        // Whether the new one may be below it is looked at later.
        if parent != client && self.object(client, parent).is_err_and(|e| e == Status::OBJECT_NOT_FOUND) {
            return Err(Status::OBJECT_NOT_FOUND.into());
        }
        let class = object.class;
        let kind = copy(&object.kind).ok_or(Status::INVALID_ARGUMENT)?;
        let handle = self.free_handle(client, p.get(&Dup::hObject)? as u32)?;
        let owner = self.clients.get(&from).ok_or(Status::INVALID_OBJECT_HANDLE)?;
        let policies = self.object(from, source)?.shares.as_ref().unwrap_or(&owner.inherited_shares);
        if from != client && !allow(policies, client, DUP_OBJECT) {
            return Err(Status::INSUFFICIENT_PERMISSIONS.into());
        }
        self.check_parent(client, parent, class)?;
        let mut copied = Object::new(parent, class, kind);
        copied.depends.extend(self.space_of_copy(client, &copied));
        self.insert(client, handle, copied)?;
        Ok(p.set(&Dup::hObject, handle.into())?)
    }

    /// What a copied group or share depends on: the first object of its device that is its address space.
    fn space_of_copy(&self, client: u32, copied: &Object) -> Option<u32> {
        let (space, device) = match &copied.kind {
            Kind::ChannelGroup { space, .. } => (space.as_ref()?, copied.parent),
            Kind::ContextShare { space, .. } => (space, self.object(client, copied.parent).ok()?.parent),
            _ => return None,
        };
        let is_it = |(handle, object): &(&u32, &Object)| {
            matches!(&object.kind, Kind::VaSpace(known) if Arc::ptr_eq(known, space))
                && self.is_below(client, **handle, device)
        };
        self.clients.get(&client)?.objects.iter().find(is_it).map(|(handle, _)| *handle)
    }

    /// RM_SHARE: who else may use an object.
    pub(super) fn rm_share(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let (client, handle) = (p.get(&Share::hClient)? as u32, p.get(&Share::hObject)? as u32);
        let policy = policy(
            p,
            [
                &Share::sharePolicy_target,
                &Share::sharePolicy_accessMask_limbs,
                &Share::sharePolicy_type,
                &Share::sharePolicy_action,
            ],
        )?;
        self.client(fd, client, Status::INVALID_CLIENT)?;
        if policy.kind == TYPE_CLIENT && !self.clients.contains_key(&policy.target) {
            return Err(Status::INVALID_CLIENT.into());
        }
        let state = self.clients.get_mut(&client).ok_or(Status::INVALID_CLIENT)?;
        if handle == client {
            apply(&mut state.inherited_shares, policy);
            return Ok(());
        }
        let inherited = state.inherited_shares.clone();
        let object = self.object_mut(client, handle)?;
        // The first policy of an object starts from what the client lets all its objects have.
        apply(object.shares.get_or_insert(inherited), policy);
        Ok(())
    }

    /// CLIENT_SET_INHERITED_SHARE_POLICY: for all objects without policies of their own.
    pub(super) fn set_inherited_share_policy(
        &mut self,
        target: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        let policy = policy(
            p,
            [
                &Inherited::sharePolicy_target,
                &Inherited::sharePolicy_accessMask,
                &Inherited::sharePolicy_type,
                &Inherited::sharePolicy_action,
            ],
        )?;
        let client = self.clients.get_mut(&target.client).ok_or(Status::INVALID_CLIENT)?;
        apply(&mut client.inherited_shares, policy);
        Ok(())
    }

    /// The GPU of the device above an object; `None` where there is no device.
    pub(super) fn device_above(&self, client: u32, mut handle: u32) -> Result<Option<usize>, Status> {
        while handle != client {
            let object = self.object(client, handle)?;
            if let Kind::Device { gpu, .. } = object.kind {
                return Ok(Some(gpu));
            }
            handle = object.parent;
        }
        Ok(None)
    }

    /// An object as a descriptor carries it.
    fn export(&self, client: u32, handle: u32) -> Result<Arc<Exported>, Status> {
        let object = self.object(client, handle)?;
        let kind = copy(&object.kind).ok_or(Status::INVALID_ARGUMENT)?;
        let gpu = self.device_above(client, handle)?;
        Ok(Arc::new(Exported { kind, class: object.class, gpu }))
    }

    /// The control file that objects go through.
    fn export_file(&mut self, fd: u64) -> Result<&mut File, Status> {
        let file = self.file_mut(Fd(fd as u32 as i32)).map_err(|_| Status::INVALID_PARAMETER)?;
        if file.node == Node::Ctl { Ok(file) } else { Err(Status::INVALID_PARAMETER) }
    }

    /// The device that a handle of an export stands for; `None` for 0.
    fn export_device(&self, client: u32, handle: u32) -> Result<Option<usize>, Status> {
        if handle == 0 {
            return Ok(None);
        }
        match self.object(client, handle)?.kind {
            Kind::Device { gpu, .. } => Ok(Some(gpu)),
            _ => Err(Status::INVALID_PARAMETER),
        }
    }

    /// OS_UNIX_EXPORT_OBJECT_TO_FD: a descriptor of the control node that carries an object.
    pub(super) fn export_object(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        if p.get(&Export::object_type)? != TYPE_RM {
            return Err(Status::INVALID_PARAMETER.into());
        }
        let (device, handle) =
            (p.get(&Export::object_hDevice)? as u32, p.get(&Export::object_hObject)? as u32);
        let exported = self.export(target.client, handle)?;
        let fd = p.get(&Export::fd)?;
        if self.export_file(fd)?.exported.is_some() {
            return Err(Status::STATE_IN_USE.into());
        }
        let device = self.export_device(target.client, device)?;
        let exports = Exports { device, metadata: Vec::new(), objects: vec![Some(exported)] };
        self.export_file(fd)?.exported = Some(exports);
        Ok(())
    }

    /// OS_UNIX_EXPORT_OBJECTS_TO_FD: the same for many, by and by, in places that the first call makes.
    pub(super) fn export_objects(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        use ExportMany as P;
        let fd = p.get(&P::fd)?;
        let (count, index) = (p.get(&P::numObjects)?, p.get(&P::index)?);
        let (device, places) = match &self.export_file(fd)?.exported {
            Some(known) => (known.device, known.objects.len() as u64),
            None => {
                let places = p.get(&P::maxObjects)?;
                if places == 0 {
                    return Err(Status::INVALID_PARAMETER.into());
                }
                (self.export_device(target.client, p.get(&P::hDevice)? as u32)?, places)
            }
        };
        if count > u64::from(P::objects.count) {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if index + count > places {
            return Err(Status::OUT_OF_RANGE.into());
        }
        let mut exported = Vec::new();
        for i in 0..count as u32 {
            exported.push(match p.get_at(&P::objects, i)? as u32 {
                0 => None,
                handle => Some(self.export(target.client, handle)?),
            });
        }
        if exported.iter().flatten().any(|object| object.gpu != device) {
            return Err(Status::INVALID_PARAMETER.into());
        }
        let metadata = (0..P::metadata.count).map(|i| Ok(p.get_at(&P::metadata, i)? as u8));
        let metadata = metadata.collect::<Result<Vec<u8>, FieldError>>()?;
        let empty = Exports { device, metadata, objects: vec![None; places as usize] };
        let exports = self.export_file(fd)?.exported.get_or_insert(empty);
        for (place, object) in exports.objects.iter_mut().skip(index as usize).zip(exported) {
            *place = object;
        }
        Ok(())
    }

    /// OS_UNIX_GET_EXPORT_OBJECT_INFO: what a descriptor carries.
    pub(super) fn export_object_info(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        /// NV_MAX_DEVICES: the number of no device.
        const NO_DEVICE: u64 = 32;
        let file = self.export_file(p.get(&Info::fd)?)?;
        let exports = file.exported.as_ref().ok_or(Status::INVALID_PARAMETER)?;
        p.set(&Info::maxObjects, exports.objects.len() as u64)?;
        p.set(&Info::deviceInstance, exports.device.map_or(NO_DEVICE, |gpu| gpu as u64))?;
        if Info::gpuInstanceId.offset(p.branch()).is_some() {
            p.set(&Info::gpuInstanceId, 0xffff_ffff)?;
        }
        for (i, byte) in (0..).zip(&exports.metadata) {
            p.set_at(&Info::metadata, i, (*byte).into())?;
        }
        Ok(())
    }

    /// Puts what a descriptor carried under a parent of a client; gives the handle.
    fn import(&mut self, client: u32, parent: u32, wanted: u32, exported: &Exported) -> Result<u32, Refusal> {
        if exported.gpu.is_some() && self.gpu_of(client, parent).ok() != exported.gpu {
            return Err(Status::INVALID_OBJECT_PARENT.into());
        }
        let handle = self.place(client, parent, wanted, exported.class)?;
        let kind = copy(&exported.kind).ok_or(Status::INVALID_ARGUMENT)?;
        self.insert(client, handle, Object::new(parent, exported.class, kind))?;
        Ok(handle)
    }

    /// OS_UNIX_IMPORT_OBJECT_FROM_FD: the object that a descriptor carries, under a parent of this client.
    pub(super) fn import_object(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        if p.get(&Import::object_type)? != TYPE_RM {
            return Err(Status::INVALID_PARAMETER.into());
        }
        let exports = self.export_file(p.get(&Import::fd)?)?.exported.as_ref();
        let exported = exports.and_then(|exports| exports.objects.first().cloned().flatten());
        let exported = exported.ok_or(Status::INVALID_PARAMETER)?;
        let parent = p.get(&Import::object_hParent)? as u32;
        let wanted = p.get(&Import::object_hObject)? as u32;
        let handle = self.import(target.client, parent, wanted, &exported)?;
        Ok(p.set(&Import::object_hObject, handle.into())?)
    }

    /// OS_UNIX_IMPORT_OBJECTS_FROM_FD: many of them, or none.
    pub(super) fn import_objects(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        use ImportMany as P;
        let (count, index) = (p.get(&P::numObjects)?, p.get(&P::index)?);
        let exports = self.export_file(p.get(&P::fd)?)?.exported.as_ref().ok_or(Status::INVALID_PARAMETER)?;
        if count > u64::from(P::objects.count) {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if index + count > exports.objects.len() as u64 {
            return Err(Status::OUT_OF_RANGE.into());
        }
        let objects: Vec<_> =
            exports.objects.iter().skip(index as usize).take(count as usize).cloned().collect();
        let parent = p.get(&P::hParent)? as u32;
        let mut made = Vec::new();
        for (i, object) in (0..).zip(objects) {
            let result = self.import_one(target.client, parent, i, object.as_deref(), p);
            match result {
                Ok(handle) => made.extend(handle),
                Err(refusal) => {
                    for handle in made {
                        self.free_object(target.client, handle);
                    }
                    return Err(refusal);
                }
            }
        }
        Ok(())
    }

    /// One place of [`Self::import_objects`].
    fn import_one(
        &mut self,
        client: u32,
        parent: u32,
        i: u32,
        object: Option<&Exported>,
        p: &mut Record,
    ) -> Result<Option<u32>, Refusal> {
        use ImportMany as P;
        /// NV0000_CTRL_CMD_OS_UNIX_IMPORT_OBJECT_TYPE.
        const NONE: u64 = 0;
        const VIDEO: u64 = 1;
        const SYSTEM: u64 = 2;
        let Some(object) = object else {
            p.set_at(&P::objectTypes, i, NONE)?;
            return Ok(None);
        };
        // The module knows types of memory only.
        let kind = match &object.kind {
            Kind::Memory(memory) if matches!(memory.home, MemoryHome::Video { .. }) => VIDEO,
            Kind::Memory(_) => SYSTEM,
            _ => return Err(Status::INVALID_ARGUMENT.into()),
        };
        let wanted = p.get_at(&P::objects, i)? as u32;
        let handle = self.import(client, parent, wanted, object)?;
        p.set_at(&P::objects, i, handle.into())?;
        p.set_at(&P::objectTypes, i, kind)?;
        Ok(Some(handle))
    }
}
