//! Freeing: children and dependants first, channels before everything else. What is below the object that is freed goes
//! with it; what only depends on any of that is lost: its handle stays until it is freed, and every use of it is refused.

use nv_abi::{
    Fd, Record,
    rm::{NVOS00_PARAMETERS as P, Status},
};

use super::{DmaMapping, Kernel, Kind, Refusal};

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
        self.tear_down_from(handle, handle, handle);
        self.clients.remove(&handle);
        self.cache.remove_client(handle);
        self.events.remove_client(handle);
        self.cpu_mappings.retain(|_, mapping| mapping.client != handle);
    }

    /// Frees an object with all that hangs on it.
    pub(super) fn free_object(&mut self, client: u32, handle: u32) {
        self.tear_down(client, handle, handle);
    }

    /// Takes an object apart, which is `root` or hangs on it.
    fn tear_down(&mut self, client: u32, handle: u32, root: u32) {
        self.tear_down_from(client, handle, root);
        let below = self.is_below(client, handle, root);
        let Some(objects) = self.clients.get_mut(&client).map(|client| &mut client.objects) else { return };
        let Some(object) = objects.get_mut(&handle) else { return };
        let parent = object.parent;
        let kind = std::mem::replace(&mut object.kind, Kind::Lost);
        object.depends.clear();
        if below {
            objects.remove(&handle);
        }
        self.cpu_mappings.retain(|_, mapping| mapping.client != client || mapping.memory != handle);
        self.events.remove(client, handle);
        let of_object =
            |it: &mut DmaMapping| it.client == client && (it.memory == handle || it.virtual_memory == handle);
        for mapping in self.dma_mappings.extract_if(.., of_object) {
            // Where something else took it away, nothing is left to do.
            let _ = mapping.space.space.unmap(mapping.va, mapping.bytes);
        }
        match kind {
            Kind::Channel(channel) => {
                let gpu = &mut self.gpus[channel.gpu];
                gpu.host.remove_channel(channel.id);
                gpu.channels.remove(&channel.number);
            }
            Kind::ContextShare { subcontext, .. } => {
                let group = self.object_mut(client, parent).map(|group| &mut group.kind);
                if let Ok(Kind::ChannelGroup { subcontexts, .. }) = group {
                    subcontexts.remove(&subcontext);
                }
            }
            _ => {}
        }
    }

    /// Takes the children and the dependants of an object apart.
    fn tear_down_from(&mut self, client: u32, handle: u32, root: u32) {
        loop {
            let Some(objects) = self.clients.get(&client).map(|client| &client.objects) else { return };
            // Engines must not run on memory that is going away: channels and their groups have priority.
            let next = objects
                .iter()
                .filter(|(_, object)| object.parent == handle || object.depends.contains(&handle))
                .filter(|(next, object)| {
                    !matches!(object.kind, Kind::Lost) || self.is_below(client, **next, root)
                })
                .max_by_key(|(_, object)| matches!(object.kind, Kind::ChannelGroup { .. } | Kind::Channel(_)))
                .map(|(next, _)| *next);
            match next {
                Some(next) => self.tear_down(client, next, root),
                None => return,
            }
        }
    }

    /// Whether an object is `root` or has it as a parent, directly or not.
    pub(super) fn is_below(&self, client: u32, mut handle: u32, root: u32) -> bool {
        let Some(client) = self.clients.get(&client) else { return false };
        while handle != root {
            match client.objects.get(&handle) {
                Some(object) => handle = object.parent,
                None => return false,
            }
        }
        true
    }
}
