//! The instruction table against nvdisasm, and what instructions compute against other arithmetic and a card. One
//! binary, beside the library, which is compiled once.

mod golden;
mod lane;
mod random;
