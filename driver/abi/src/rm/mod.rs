//! The resource manager: object classes, controls, their structs, and statuses.

pub mod allocation;
pub mod class;
pub mod control;
pub mod flags;
pub mod frontend;
pub mod parameters;
mod status;

pub use allocation::*;
pub use frontend::*;
pub use parameters::*;
pub use status::Status;
