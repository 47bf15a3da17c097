//! What the two ends of a copy say to each other, and what a journal of it says: rules without files.
//!
//! What it does: messages and their limits, packs, the hash of a file from those of its parts; which parts of a file are
//! claimed or proved; what a journal says, in which order it is written down, and what of it is believed ([`journal`]).
//! What it must not do: see `lib.rs`; touch a file, or know what a file system is.
//!
//! Start with [`message`].

pub mod journal;
pub mod message;
pub mod pack;
mod ranges;
pub mod tree_hash;

pub use ranges::{Claim, Ranges};
