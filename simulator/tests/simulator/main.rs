//! The machine through its public interface: by raw ioctls, hand-made rings and pushbuffers, and recorded calls. One
//! binary, beside the library, which is compiled once.

mod client;
#[path = "../../src/client_memory.rs"]
mod client_memory;
mod engine;
mod gpus;
mod host;
mod machine;
mod profile;
mod recordings;
mod resource_manager;
mod semaphore;
mod source;
