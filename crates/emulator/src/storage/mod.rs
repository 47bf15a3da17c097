//! File systems of the testbed: as slow, as shared and as credit-limited as they are told to be.
//!
//! What it does: decides when each read and write is over ([`model`], pure), keeps files in memory ([`tree`]), and mounts
//! them through FUSE ([`mount`]), so that any program meets the rates of a parallel file system on one machine.
//! What it must not do: know files of the machine, or let the wall clock into the model.
//!
//! In: a [`farline_spec::StorageSpec`] and a folder. Out: a mount that ends with what [`Mount::start`] gives.

pub mod model;
pub mod mount;
pub mod tree;

pub use mount::Mount;
