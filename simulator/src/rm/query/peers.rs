//! Controls about which GPUs reach each other.

use nv_abi::{
    Record,
    rm::{
        NV0000_CTRL_SYSTEM_GET_P2P_CAPS_MATRIX_PARAMS as Matrix,
        NV0000_CTRL_SYSTEM_GET_P2P_CAPS_PARAMS as Caps, NV0000_CTRL_SYSTEM_GET_P2P_CAPS_V2_PARAMS as CapsV2,
        Status,
    },
};

use super::super::{Kernel, Kind, Refusal, control::Target};
use crate::client_memory;

/// NV0000_CTRL_SYSTEM_GET_P2P_CAPS: writes, reads, the module's own way over PCI.
const OVER_PCI: u64 = 0x47;
/// Writes, reads, NVLink, atomics.
const OVER_NVLINK: u64 = 0x1b;
/// Places in `p2pCapsStatus` (NV0000_CTRL_P2P_CAPS_INDEX).
const READ: u32 = 0;
const WRITE: u32 = 1;
const NVLINK: u32 = 2;
const ATOMICS: u32 = 3;
const PROP: u32 = 4;
const PCI: u32 = 6;
/// NV0000_P2P_CAPS_STATUS.
const OK: u64 = 0;
const NOT_SUPPORTED: u64 = 5;
/// NV0000_CTRL_SYSTEM_GET_P2P_CAPS_INVALID_PEER.
const INVALID_PEER: u64 = 0xffff_ffff;

impl Kernel {
    /// How GPUs that are not the same reach each other; 0 for one alone, which is no peer of itself.
    fn p2p_caps(&self, gpus: &[usize]) -> u64 {
        let one = gpus.iter().all(|gpu| Some(gpu) == gpus.first());
        let linked = gpus.iter().all(|gpu| self.gpus[*gpu].profile.nvlink);
        match (one, linked) {
            (true, _) => 0,
            (false, true) => OVER_NVLINK,
            (false, false) => OVER_PCI,
        }
    }

    /// The number that one GPU has for another: there is one where an NV50_P2P object connects them.
    fn peer_id(&self, from: usize, to: usize) -> u64 {
        let mut objects = self.clients.values().flat_map(|client| client.objects.values());
        let connects = |(a, b): (usize, usize)| (a, b) == (from, to) || (b, a) == (from, to);
        if objects.any(|object| matches!(object.kind, Kind::Peer { gpu, peer } if connects((gpu, peer)))) {
            0
        } else {
            INVALID_PEER
        }
    }

    /// The GPUs of a list of ids.
    fn p2p_group(&self, ids: impl IntoIterator<Item = u64>) -> Result<Vec<usize>, Status> {
        let gpus: Vec<usize> =
            ids.into_iter().map(|id| Ok(self.gpu_by_id(id)?.0)).collect::<Result<_, Status>>()?;
        if gpus.is_empty() { Err(Status::INVALID_ARGUMENT) } else { Ok(gpus) }
    }

    /// SYSTEM_GET_P2P_CAPS: the table of peer numbers goes to the client's memory.
    pub(in super::super) fn p2p_caps_v1(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let count = p.get(&Caps::gpuCount)?;
        if count > u64::from(Caps::gpuIds.count) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let ids: Vec<u64> =
            (0..count as u32).map(|i| p.get_at(&Caps::gpuIds, i)).collect::<Result<_, _>>()?;
        let gpus = self.p2p_group(ids)?;
        let table = p.get(&Caps::busPeerIds)?;
        if table != 0 {
            let peers = gpus.iter().flat_map(|from| gpus.iter().map(|to| self.peer_id(*from, *to) as u32));
            let bytes: Vec<u8> = peers.flat_map(u32::to_le_bytes).collect();
            client_memory::write(table, &bytes)?;
        }
        let caps = self.p2p_caps(&gpus);
        set_caps(p, [&Caps::p2pCaps, &Caps::p2pCapsStatus], caps)
    }

    /// SYSTEM_GET_P2P_CAPS_V2.
    pub(in super::super) fn p2p_caps_v2(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        let count = p.get(&CapsV2::gpuCount)?;
        if count > u64::from(CapsV2::gpuIds.count) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let ids: Vec<u64> =
            (0..count as u32).map(|i| p.get_at(&CapsV2::gpuIds, i)).collect::<Result<_, _>>()?;
        let mut gpus = self.p2p_group(ids)?;
        // One GPU twice is a question about the one.
        if let [a, b] = gpus[..]
            && a == b
        {
            gpus.truncate(1);
        }
        let peers = gpus.iter().flat_map(|from| gpus.iter().map(|to| self.peer_id(*from, *to)));
        for (i, peer) in (0..).zip(peers) {
            p.set_at(&CapsV2::busPeerIds, i, peer)?;
        }
        let caps = self.p2p_caps(&gpus);
        set_caps(p, [&CapsV2::p2pCaps, &CapsV2::p2pCapsStatus], caps)
    }

    /// P2P caps of pairs of GPUs.
    pub(in super::super) fn peer_matrix(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        /// Columns of the tables.
        const WIDTH: u32 = 8;
        let (rows, columns) = (p.get(&Matrix::grpACount)? as u32, p.get(&Matrix::grpBCount)? as u32);
        if rows == 0 || rows > WIDTH || columns > WIDTH {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        // Without a second group the first is compared with itself.
        let (others, columns) =
            if columns == 0 { (&Matrix::gpuIdGrpA, rows) } else { (&Matrix::gpuIdGrpB, columns) };
        for row in 0..rows {
            let a = self.gpu_by_id(p.get_at(&Matrix::gpuIdGrpA, row)?)?.0;
            for column in 0..columns {
                let b = self.gpu_by_id(p.get_at(others, column)?)?.0;
                p.set_at(&Matrix::p2pCaps, row * WIDTH + column, self.p2p_caps(&[a, b]))?;
            }
        }
        Ok(())
    }
}

/// Fills in what is supported and, where the branch tells, why not. Which copy engines do it best is left open.
fn set_caps(p: &mut Record, [caps, statuses]: [&nv_abi::StructField; 2], value: u64) -> Result<(), Refusal> {
    p.set(caps, value)?;
    let supported: &[u32] = match value {
        OVER_NVLINK => &[READ, WRITE, NVLINK, ATOMICS],
        OVER_PCI => &[READ, WRITE, PROP, PCI],
        _ => &[],
    };
    for i in 0..statuses.count(p.branch()) {
        p.set_at(statuses, i, if supported.contains(&i) { OK } else { NOT_SUPPORTED })?;
    }
    Ok(())
}
