//! Managed memory: ranges that `mmap` of the descriptor makes, which every GPU and the CPU reach at one address.
//!
//! GPUs here read and write the computer's own pages. Where memory should lie, who should map it and when it moves are
//! kept as the module keeps them, because later calls depend on them, and change no byte.

use std::sync::Arc;

use nv_abi::{
    Errno, Record, StructField,
    rm::Status,
    uvm::{
        UVM_CREATE_RANGE_GROUP_PARAMS as CreateGroup, UVM_DESTROY_RANGE_GROUP_PARAMS as DestroyGroup,
        UVM_DISCARD_PARAMS as Discard, UVM_ENABLE_READ_DUPLICATION_PARAMS as Duplication,
        UVM_MIGRATE_PARAMS as Migrate, UVM_MIGRATE_RANGE_GROUP_PARAMS as MigrateGroup,
        UVM_PREVENT_MIGRATION_RANGE_GROUPS_PARAMS as Migration, UVM_SET_ACCESSED_BY_PARAMS as AccessedBy,
        UVM_SET_PREFERRED_LOCATION_PARAMS as Preferred, UVM_SET_RANGE_GROUP_PARAMS as SetGroup,
        UVM_UNSET_PREFERRED_LOCATION_PARAMS as Unprefer,
    },
};

use super::{CPU, ClientView, RangeKind, Space, Uuid, range_end, uuid};
use crate::{
    memory::{Access, Backing},
    rm::{Kernel, Refusal, VaSpace},
};

/// Address already in use (`EADDRINUSE`): what `mmap` answers where a range is.
const EADDRINUSE: Errno = Errno(98);
/// The group of memory that is in none.
const NO_GROUP: u64 = 0;

/// A managed range.
#[derive(Clone, Debug)]
pub(super) struct Range {
    backing: Arc<Backing>,
    /// Where the range begins in `backing`.
    offset: u64,
    preferred: Option<Uuid>,
    group: u64,
}

impl Range {
    /// The memory of an offset in the range, and where in it that lies.
    pub(super) fn memory_at(&self, offset: u64) -> (&Backing, u64) {
        (&self.backing, self.offset + offset)
    }
}

/// `mmap`: what is at exactly that range already, or new managed memory.
pub(super) fn map(space: &mut Space, base: u64, end: u64) -> Result<ClientView, Errno> {
    if space.overlaps(base, end) {
        return match space.ranges.get(&base) {
            Some(range) if range.end == end => match &range.kind {
                RangeKind::SemaphorePool { backing, .. } => {
                    Ok(ClientView { backing: Arc::clone(backing), offset: 0 })
                }
                _ => Err(EADDRINUSE),
            },
            _ => Err(EADDRINUSE),
        };
    }
    let backing = Arc::new(Backing::new("managed memory", end - base).map_err(|_| Errno::ENOMEM)?);
    let range = Range { backing: Arc::clone(&backing), offset: 0, preferred: None, group: NO_GROUP };
    space.ranges.insert(base, super::Range::new(end, RangeKind::Managed(range)));
    for (uuid, va_space) in space.gpus_with_space() {
        // A GPU that cannot reach so far faults there, and the others do not care.
        let _ = space.map_whole(base, uuid, &va_space, &backing, 0, Access::ReadWriteAtomic);
    }
    Ok(ClientView { backing, offset: 0 })
}

/// `munmap`: managed ranges inside go away; others stay.
pub(super) fn unmap(space: &mut Space, base: u64, end: u64) {
    let inside = space.ranges.range(base..end);
    let managed = inside.filter(|(_, range)| matches!(range.kind, RangeKind::Managed(_)));
    for base in managed.map(|(base, _)| *base).collect::<Vec<_>>() {
        space.remove_range(base);
    }
}

/// The page range that a call names, which managed ranges must cover without a gap.
fn covered(
    space: &Space,
    p: &Record,
    base: &StructField,
    length: &StructField,
) -> Result<(u64, u64), Refusal> {
    let base = p.get(base)?;
    let end = range_end(base, p.get(length)?)?;
    space.check_managed(base, end)?;
    Ok((base, end))
}

impl Space {
    fn check_managed(&self, base: u64, end: u64) -> Result<(), Status> {
        let mut at = base;
        while at < end {
            match self.ranges.range(..=at).next_back() {
                Some((_, range)) if range.end > at && matches!(range.kind, RangeKind::Managed(_)) => {
                    at = range.end;
                }
                _ => return Err(Status::INVALID_ADDRESS),
            }
        }
        Ok(())
    }

    /// Cuts a managed range in two at an address, as policies of a part make necessary.
    fn split(&mut self, at: u64) {
        let Some((start, range)) = self.ranges.range_mut(..at).next_back() else { return };
        let RangeKind::Managed(managed) = &range.kind else { return };
        if range.end <= at {
            return;
        }
        let upper = Range { offset: managed.offset + (at - start), ..managed.clone() };
        let mut upper = super::Range::new(range.end, RangeKind::Managed(upper));
        range.end = at;
        let start = *start;
        for (uuid, mappings) in &mut range.mappings {
            if let Some(mapping) = mappings.get_mut(&start) {
                let mut rest = mapping.clone();
                mapping.end = at;
                rest.end = upper.end;
                upper.mappings.entry(*uuid).or_default().insert(at, rest);
            }
        }
        self.ranges.insert(at, upper);
    }

    /// Changes the policy of the managed ranges in `base..end`, which are cut at its ends.
    fn change(&mut self, base: u64, end: u64, change: impl Fn(&mut Range)) {
        self.split(base);
        self.split(end);
        for range in self.ranges.range_mut(base..end).map(|(_, range)| range) {
            if let RangeKind::Managed(managed) = &mut range.kind {
                change(managed);
            }
        }
    }

    /// A place that is the CPU, or a GPU that reaches `end`.
    fn check_place(&self, place: &Uuid, end: u64, needs_space: bool) -> Result<(), Status> {
        if *place == CPU {
            return Ok(());
        }
        let registered = self.gpus.get(place).ok_or(Status::INVALID_DEVICE)?;
        match &registered.space {
            Some(space) if end > space.space.limit() => Err(Status::OUT_OF_RANGE),
            None if needs_space => Err(Status::INVALID_DEVICE),
            _ => Ok(()),
        }
    }

    /// Maps for a GPU what every GPU reaches: semaphore pools and managed memory.
    pub(super) fn map_shared_ranges(&mut self, uuid: Uuid, space: &VaSpace) -> Result<(), Status> {
        let bases: Vec<u64> = self.ranges.keys().copied().collect();
        for base in bases {
            let Some(range) = self.ranges.get(&base) else { continue };
            let (backing, offset, access, optional) = match &range.kind {
                RangeKind::SemaphorePool { backing, attributes } => {
                    let access = attributes.get(&uuid).copied().unwrap_or(Access::ReadWriteAtomic);
                    (Arc::clone(backing), 0, access, false)
                }
                RangeKind::Managed(managed) => {
                    (Arc::clone(&managed.backing), managed.offset, Access::ReadWriteAtomic, true)
                }
                _ => continue,
            };
            match self.map_whole(base, uuid, space, &backing, offset, access) {
                Err(status) if !optional => return Err(status),
                _ => {}
            }
        }
        Ok(())
    }
}

pub(super) fn create_group(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    space.last_group += 1;
    space.groups.insert(space.last_group, true);
    Ok(p.set(&CreateGroup::rangeGroupId, space.last_group)?)
}

pub(super) fn destroy_group(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let id = p.get(&DestroyGroup::rangeGroupId)?;
    space.groups.remove(&id).ok_or(Status::OBJECT_NOT_FOUND)?;
    for range in space.ranges.values_mut() {
        if let RangeKind::Managed(managed) = &mut range.kind
            && managed.group == id
        {
            managed.group = NO_GROUP;
        }
    }
    Ok(())
}

pub(super) fn set_group(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let base = p.get(&SetGroup::requestedBase)?;
    let end = range_end(base, p.get(&SetGroup::length)?)?;
    let id = p.get(&SetGroup::rangeGroupId)?;
    let migratable = match (space.groups.get(&id), id) {
        (Some(migratable), _) => *migratable,
        (None, NO_GROUP) => true,
        (None, _) => return Err(Status::OBJECT_NOT_FOUND.into()),
    };
    space.check_managed(base, end)?;
    // Memory that must not move needs a place to stay at.
    let homeless = |range: &super::Range| matches!(&range.kind, RangeKind::Managed(managed) if managed.preferred.is_none());
    let touched = space.ranges.range(..end).filter(|(_, range)| range.end > base);
    if !migratable && touched.into_iter().any(|(_, range)| homeless(range)) {
        return Err(Status::INVALID_ADDRESS.into());
    }
    space.change(base, end, |managed| managed.group = id);
    Ok(())
}

/// The groups that a call lists.
fn set_migration(space: &mut Space, p: &Record, allowed: bool) -> Result<(), Refusal> {
    let count = p.get(&Migration::numGroupIds)?;
    if count == 0 || count > Migration::rangeGroupIds.count.into() {
        return Err(Status::INVALID_ARGUMENT.into());
    }
    let mut ids = Vec::new();
    for i in 0..count as u32 {
        let id = p.get_at(&Migration::rangeGroupIds, i)?;
        if !space.groups.contains_key(&id) {
            return Err(Status::OBJECT_NOT_FOUND.into());
        }
        ids.push(id);
    }
    for id in ids {
        space.groups.insert(id, allowed);
    }
    Ok(())
}

pub(super) fn prevent_migration(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    set_migration(space, p, false)
}

pub(super) fn allow_migration(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    set_migration(space, p, true)
}

pub(super) fn set_preferred_location(
    _: &mut Kernel,
    space: &mut Space,
    p: &mut Record,
) -> Result<(), Refusal> {
    let (base, end) = covered(space, p, &Preferred::requestedBase, &Preferred::length)?;
    let place = uuid(p, &Preferred::preferredLocation_uuid)?;
    space.check_place(&place, end, false)?;
    space.change(base, end, |managed| managed.preferred = Some(place));
    Ok(())
}

pub(super) fn unset_preferred_location(
    _: &mut Kernel,
    space: &mut Space,
    p: &mut Record,
) -> Result<(), Refusal> {
    let (base, end) = covered(space, p, &Unprefer::requestedBase, &Unprefer::length)?;
    space.change(base, end, |managed| managed.preferred = None);
    Ok(())
}

/// Read duplication changes how copies are kept, of which there is one here.
pub(super) fn read_duplication(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    covered(space, p, &Duplication::requestedBase, &Duplication::length)?;
    Ok(())
}

/// SET_ACCESSED_BY and its opposite: managed memory is mapped everywhere already.
pub(super) fn accessed_by(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let (_, end) = covered(space, p, &AccessedBy::requestedBase, &AccessedBy::length)?;
    let place = uuid(p, &AccessedBy::accessedByUuid_uuid)?;
    Ok(space.check_place(&place, end, false)?)
}

/// MIGRATE: no byte moves; the semaphore is released as after the copy.
pub(super) fn migrate(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    const ASYNC: u64 = 1;
    const TEST: u64 = 6;
    let (base, length) = (p.get(&Migrate::base)?, p.get(&Migrate::length)?);
    let flags = p.get(&Migrate::flags)?;
    let (semaphore, payload) =
        (p.get(&Migrate::semaphoreAddress)?, p.get(&Migrate::semaphorePayload)? as u32);
    let synchronous = flags & ASYNC == 0;
    // An asynchronous call with a semaphore may have nothing to move.
    let end = if length > 0 || synchronous || semaphore == 0 { range_end(base, length)? } else { base };
    if flags & !(ASYNC | TEST) != 0 || flags & TEST != 0 {
        return Err(Status::INVALID_ARGUMENT.into());
    }
    let mut release = None;
    if semaphore == 0 {
        if payload != 0 && !synchronous {
            return Err(Status::INVALID_ARGUMENT.into());
        }
    } else if synchronous {
        return Err(Status::INVALID_ARGUMENT.into());
    } else {
        let pool =
            space.ranges.range(..=semaphore).next_back().and_then(|(start, range)| match &range.kind {
                RangeKind::SemaphorePool { backing, .. } if semaphore < range.end => {
                    Some((Arc::clone(backing), semaphore - start))
                }
                _ => None,
            });
        release = Some(pool.filter(|_| semaphore.is_multiple_of(4)).ok_or(Status::INVALID_ADDRESS)?);
    }
    let destination = uuid(p, &Migrate::destinationUuid_uuid)?;
    space.check_place(&destination, end, true)?;
    if length > 0 {
        space.check_managed(base, end)?;
    }
    if let Some((backing, offset)) = release {
        backing.write_u32(offset, payload).map_err(|_| Status::INVALID_ADDRESS)?;
    }
    Ok(())
}

pub(super) fn migrate_group(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    space.check_place(&uuid(p, &MigrateGroup::destinationUuid_uuid)?, 0, true)?;
    if !space.groups.contains_key(&p.get(&MigrateGroup::rangeGroupId)?) {
        return Err(Status::OBJECT_NOT_FOUND.into());
    }
    Ok(())
}

/// DISCARD: the content may be lost, and is not.
pub(super) fn discard(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let base = p.get(&Discard::base)?;
    let end = range_end(base, p.get(&Discard::length)?)?;
    if p.get(&Discard::flags)? > 1 {
        return Err(Status::INVALID_ARGUMENT.into());
    }
    Ok(space.check_managed(base, end)?)
}
