//! Freeing: children and dependants first, channels before everything else.

use nv_abi::{
    Fd, Record,
    rm::{NVOS00_PARAMETERS as P, Status},
};

use super::{Kernel, Kind, Refusal};

impl Kernel {
    /// RM_FREE. The parent is ignored, and an unknown handle in a known client is no error.
    pub(super) fn rm_free(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let (root, handle) = (p.get(&P::hRoot)? as u32, p.get(&P::hObjectOld)? as u32);
        self.client(fd, root, Status::INVALID_OBJECT_HANDLE)?;
        if root == handle {
            self.free_client(root);
        } else {
            self.cache.remove_object(root, handle);
            self.free_object(root, handle);
        }
        Ok(())
    }

    /// Frees a client with all its objects.
    pub(super) fn free_client(&mut self, handle: u32) {
        self.free_children(handle, handle);
        self.clients.remove(&handle);
        self.cache.remove_client(handle);
        self.events.remove_client(handle);
        self.cpu_mappings.retain(|_, mapping| mapping.client != handle);
    }

    /// Frees an object with all that hangs on it.
    pub(super) fn free_object(&mut self, client: u32, handle: u32) {
        self.free_children(client, handle);
        let Some(object) = self.clients.get_mut(&client).and_then(|c| c.objects.remove(&handle)) else {
            return;
        };
        self.cpu_mappings.retain(|_, mapping| mapping.client != client || mapping.memory != handle);
        self.events.remove(client, handle);
        match object.kind {
            Kind::Channel(channel) => {
                let gpu = &mut self.gpus[channel.gpu];
                gpu.host.remove_channel(channel.id);
                gpu.channels.remove(&channel.number);
            }
            Kind::ContextShare { subcontext, .. } => {
                let group = self.object_mut(client, object.parent).map(|group| &mut group.kind);
                if let Ok(Kind::ChannelGroup { subcontexts, .. }) = group {
                    subcontexts.remove(&subcontext);
                }
            }
            _ => {}
        }
    }

    fn free_children(&mut self, client: u32, handle: u32) {
        loop {
            let Some(client_state) = self.clients.get(&client) else { return };
            // Engines must not run on memory that is going away: channels and their groups have priority.
            let next = client_state
                .objects
                .iter()
                .filter(|(_, object)| object.parent == handle || object.depends.contains(&handle))
                .max_by_key(|(_, object)| matches!(object.kind, Kind::ChannelGroup { .. } | Kind::Channel(_)))
                .map(|(next, _)| *next);
            match next {
                Some(next) => self.free_object(client, next),
                None => return,
            }
        }
    }
}
