//! The control session: two ends agree on a run, do it, and put its record together.
//!
//! What it does: TPG's thirteen steps (Yun et al. 2015, section III.A) over TLS 1.3 with a pinned key and
//! tickets; the run itself, one thread per data stream; the records of both ends as one.
//! What it must not do: know a transport's inside, judge figures, print, remember servers.
//!
//! ```text
//! start_run ─► client ─┬─► machine (pure) ◄─── message ───► machine ◄─┬─ server ◄─ Server::start
//!                      ├─► run ═══════ data streams ═══════════ run ◄─┤
//!                      └─► channel ═════ TLS 1.3 ═══════════ channel ◄┘─ admission ◄─ ticket
//! ```
//!
//! In: a [`Target`] and a `RunSpec`, or a `ServerConfig`. Out: [`Event`]s that end with a
//! `RunRecord`, or [`ServerEvent`]s.
//!
//! Start with [`start_run`] and [`Server`]; then [`machine`], which says what happens when, and
//! [`run`], which moves the bytes. `channel.rs`, `tls.rs` and `ticket.rs` are who is at the other end.

mod channel;
pub mod client;
mod copy;
mod facts;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
#[cfg(test)]
mod liar;
pub mod machine;
pub mod message;
pub mod run;
mod run_controller;
pub mod server;
mod state_dir;
mod streams;
mod target;
mod ticket;
mod ticket_records;
mod tls;

pub use channel::Interrupt;
pub use client::{
    ConnectionKeeper, Contact, Event, Local, NamesClient, RunControl, RunHandle, start_run, start_run_with,
};
pub use copy::{FileSum, looks_into, run_storage_load};
pub use facts::{host_facts, version_info};
pub use server::{AuditEvent, RefusalSummary, Server, ServerEvent, SessionEnd, SessionStart};
pub use state_dir::ServerFolders;
pub use target::{DEFAULT_PORT, Protocol, Target};
pub use ticket::mint_ticket;
pub use ticket_records::{inspect_ticket, list_tickets, revoke_ticket};
pub use tls::Fingerprint;
