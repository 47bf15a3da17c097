//! iperf3's protocol on sockets.
//!
//! What it does: serves iperf3's clients, many at a time ([`Iperf3Server`]); measures against its servers ([`start_run`]); carries out what the machines of
//! `farline_proto::iperf3` decide, and moves the bytes, memory to memory, one thread per stream.
//! What it must not do: read or write files of a client's choice, let a client cost more than a place and a bounded time before
//! it is admitted, print.
//!
//! ```text
//! Iperf3Server::start ─► reception ─┬─► visitors: cookies of 37 bytes, 8 s, fair shares
//!                                   ├─► register: which session a stream belongs to, places, rates by address
//!                                   └─► session, a thread each ─► machine (pure)
//!                                                └─► stream ─► a thread per stream: tcp, udp
//! ```
//!
//! In: `Iperf3Config`; a target and a `RunSpec`. Out: the same [`ServerEvent`](farline_session::ServerEvent)s that farline's own
//! server tells, and the same [`Event`](farline_session::Event)s, with a record at the end.
//!
//! Start with [`Iperf3Server`], then `server/session.rs`; [`stream`] moves bytes.

pub mod client;
pub mod server;
pub mod stream;

pub use client::start_run;
pub use server::Iperf3Server;
