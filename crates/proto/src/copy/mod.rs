//! What the two ends of a copy say to each other, and what each makes of it: two machines without files.
//!
//! What it does: messages and their limits, packs, sums and the sum of a file from those of its parts; of each entry what is wanted,
//! claimed, proved, ready and named ([`receiver`]), and what is announced, handed out, read and settled ([`sender`]); the order in which what is whole is brought to the device, noted and
//! named ([`naming`]); what a journal says and what of it is believed ([`journal`]).
//! What it must not do: see `lib.rs`; touch a file, wait, or know what a file system is.
//!
//! ```text
//!             handle_message                  poll_message
//! catalogue ───────────────► ┌──────────────┐ ─────────────► feedback
//!   entry ◄─── Heard::Look ─ │ CopyReceiver │
//!   looked ────────────────► │  an entry:   │   poll_action
//!    data ──── take_chunk ─► │  table.rs    │ ─────────────► hash holes, sync, name, close ([`naming`] says in which order)
//!         ◄──── Admission ── └──────────────┘ ◄───────────── conclude, leave
//!  writes ──── written ────────────┘
//! ```
//!
//! [`CopySender`] stands at the other end of these arrows; its own are in [`sender`]. `farline-mover` carries out what they ask
//! for, `farline-sim` does so with modelled files and a disk that loses power.
//!
//! Start with [`message`], then [`receiver`], then [`sender`].

pub mod header;
pub mod journal;
pub mod message;
pub mod naming;
pub mod pack;
mod ranges;
pub mod receiver;
pub mod sender;
pub mod sum;
pub mod tree_hash;

pub use ranges::{Claim, Ranges};
pub use receiver::CopyReceiver;
pub use sender::CopySender;
