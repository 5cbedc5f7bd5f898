//! Semaphore pools, and the windows that device-side launches go through.

use std::{collections::BTreeMap, sync::Arc};

use nv_abi::{
    Record,
    rm::Status,
    uvm::{UVM_ALLOC_SEMAPHORE_POOL_PARAMS as Pool, UVM_MAP_DYNAMIC_PARALLELISM_REGION_PARAMS as Sked},
};

use super::{Range, RangeKind, Space, external::AttributeFields, range_end, uuid};
use crate::{
    memory::{Access, Backing, PAGE},
    rm::{Kernel, Refusal},
};

const POOL_ATTRIBUTES: AttributeFields = AttributeFields {
    count: Pool::gpuAttributesCount,
    uuid: [Pool::perGpuAttributes_gpuUuidLow, Pool::perGpuAttributes_gpuUuidHigh],
    mapping: Pool::perGpuAttributes_gpuMappingType,
    caching: Pool::perGpuAttributes_gpuCachingType,
    format: Pool::perGpuAttributes_gpuFormatType,
};

/// ALLOC_SEMAPHORE_POOL: zeroed memory of the computer's, mapped for every GPU that is or will be registered.
pub(super) fn allocate(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let (base, length) = (p.get(&Pool::base)?, p.get(&Pool::length)?);
    let end = range_end(base, length)?;
    let count = POOL_ATTRIBUTES.count(p)?;
    if space.overlaps(base, end) {
        return Err(Status::UVM_ADDRESS_IN_USE.into());
    }
    let (mut attributes, mut cached) = (BTreeMap::new(), 0);
    for i in 0..count {
        let attribute = POOL_ATTRIBUTES.get(p, i)?;
        if !space.gpus.contains_key(&attribute.uuid) {
            return Err(Status::INVALID_DEVICE.into());
        }
        // At most one GPU may cache it, which then owns it.
        cached += u32::from(attribute.cached);
        if cached > 1 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        attributes.insert(attribute.uuid, attribute.access);
    }
    let backing = Backing::new("semaphore pool", length).map_err(|_| Status::NO_MEMORY)?;
    let backing = Arc::new(backing);
    let kind = RangeKind::SemaphorePool { backing: Arc::clone(&backing), attributes: attributes.clone() };
    space.ranges.insert(base, Range::new(end, kind));
    for (uuid, va_space) in space.gpus_with_space() {
        let access = attributes.get(&uuid).copied().unwrap_or(Access::ReadWriteAtomic);
        if let Err(status) = space.map_whole(base, uuid, &va_space, &backing, 0, access) {
            space.remove_range(base);
            return Err(status.into());
        }
    }
    Ok(())
}

/// MAP_DYNAMIC_PARALLELISM_REGION: exactly one page of a size that the MMU has.
pub(super) fn map_sked_reflected(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let (base, length) = (p.get(&Sked::base)?, p.get(&Sked::length)?);
    let end = range_end(base, length)?;
    let uuid = uuid(p, &Sked::gpuUuid_uuid)?;
    let va_space = space.gpu_space(&uuid)?;
    if end > va_space.space.limit() {
        return Err(Status::OUT_OF_RANGE.into());
    }
    if ![PAGE, 64 << 10, 2 << 20, 512 << 20].contains(&length) || !base.is_multiple_of(length) {
        return Err(Status::INVALID_ADDRESS.into());
    }
    if space.overlaps(base, end) {
        return Err(Status::UVM_ADDRESS_IN_USE.into());
    }
    space.ranges.insert(base, Range::new(end, RangeKind::SkedReflected { gpu: uuid }));
    Ok(())
}
