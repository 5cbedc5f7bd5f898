//! One object in several name spaces: duplication, share policies, and export through a descriptor.

use std::sync::Arc;

use nv_abi::{
    Fd, Node, Record, StructField,
    rm::{
        NV0000_CTRL_CLIENT_SET_INHERITED_SHARE_POLICY_PARAMS as Inherited,
        NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_TO_FD_PARAMS as Export,
        NV0000_CTRL_OS_UNIX_IMPORT_OBJECT_FROM_FD_PARAMS as Import, NVOS55_PARAMETERS as Dup,
        NVOS57_PARAMETERS as Share, Status, class::Class,
    },
};

use super::{Kernel, Kind, Object, Refusal, control::Target, object::SharePolicy};

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
        if parent != client {
            self.object(client, parent)?;
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
        self.insert(client, handle, Object::new(parent, class, kind))?;
        Ok(p.set(&Dup::hObject, handle.into())?)
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
        let object = state.objects.get_mut(&handle).ok_or(Status::OBJECT_NOT_FOUND)?;
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

    /// OS_UNIX_EXPORT_OBJECT_TO_FD: a descriptor of the control node that carries an object.
    pub(super) fn export_object(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        /// NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_TYPE_RM.
        const TYPE_RM: u64 = 1;
        if p.get(&Export::object_type)? != TYPE_RM {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let (device, handle) =
            (p.get(&Export::object_hDevice)? as u32, p.get(&Export::object_hObject)? as u32);
        let gpu = self.gpu_of(target.client, device).ok();
        let object = self.object(target.client, handle)?;
        let kind = copy(&object.kind).ok_or(Status::INVALID_ARGUMENT)?;
        let exported = Exported { kind, class: object.class, gpu };
        let fd = Fd(p.get(&Export::fd)? as u32 as i32);
        let file = self.file_mut(fd).map_err(|_| Status::INVALID_PARAMETER)?;
        if file.node != Node::Ctl {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if file.exported.is_some() {
            return Err(Status::STATE_IN_USE.into());
        }
        file.exported = Some(Arc::new(exported));
        Ok(())
    }

    /// OS_UNIX_IMPORT_OBJECT_FROM_FD: the object that a descriptor carries, under a parent of this client.
    pub(super) fn import_object(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let fd = Fd(p.get(&Import::fd)? as u32 as i32);
        let file = self.file(fd).map_err(|_| Status::INVALID_PARAMETER)?;
        let exported = file.exported.clone().ok_or(Status::INVALID_PARAMETER)?;
        let parent = p.get(&Import::object_hParent)? as u32;
        if exported.gpu.is_some() && self.gpu_of(target.client, parent).ok() != exported.gpu {
            return Err(Status::INVALID_OBJECT_PARENT.into());
        }
        let handle =
            self.place(target.client, parent, p.get(&Import::object_hObject)? as u32, exported.class)?;
        let kind = copy(&exported.kind).ok_or(Status::INVALID_ARGUMENT)?;
        self.insert(target.client, handle, Object::new(parent, exported.class, kind))?;
        Ok(p.set(&Import::object_hObject, handle.into())?)
    }
}
