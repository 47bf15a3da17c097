//! The operating system behind safe calls.
//!
//! The only crate of farline with `unsafe` in it. Each module wraps one group of
//! system calls, small enough to be read in one sitting; each `unsafe` block says
//! why it is sound.
//!
//! What it does: batched datagrams, TCP_INFO, socket options, zero-copy sends,
//! clocks, sleeping, CPU affinity, waking and waiting, and finding out which of
//! these the kernel has; for emulated hosts, namespaces, TUN devices, their
//! addresses and routes, memory for packets, and what the stacks inside dropped.
//! What it must not do: know farline's types, keep policy, retry, or decide what
//! an error means. It passes on the kernel's errors as `std::io::Error`.
//!
//! In: borrowed descriptors and slices. Out: plain values and owned descriptors.
//! Linux only, 64-bit.
//!
//! Start with [`wake`] (how a thread waits), [`tcp_info`] and [`datagram`] (how facts
//! and bytes are fetched), [`capability`] (what this kernel can do).

pub mod arena;
pub mod byte_stream;
mod call;
pub mod capability;
mod control;
pub mod datagram;
pub mod file;
pub mod flow_label;
pub mod handed_down;
pub mod host;
pub mod interface;
mod mapping;
pub mod mount;
pub mod namespace;
pub mod option;
pub mod owner;
pub mod page_buffer;
pub mod poller;
pub mod process;
pub mod schedule;
pub mod stack_counters;
pub mod tcp_info;
pub mod thread;
pub mod time;
mod transmit_queue;
pub mod tun;
pub mod uring;
pub mod user_namespace;
pub mod wake;
pub mod zerocopy;
