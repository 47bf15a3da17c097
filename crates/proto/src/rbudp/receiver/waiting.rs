//! Statements of the sender that wait to be answered.

use crate::rbudp::wire::Done;

/// How a DONE came: behind the packets that it is about, or beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Road {
    Datagram,
    Tcp,
}

/// A statement that waits to be answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) done: Done,
    pub(super) due_ns: u64,
    pub(super) road: Road,
}

impl Waiting {
    /// When it is to be answered. Over TCP it may have overtaken packets in a queue: not before `quiet_ns`, when nothing
    /// has come for the settling time.
    pub(super) fn due_ns(&self, quiet_ns: u64) -> u64 {
        match self.road {
            Road::Datagram => self.due_ns,
            Road::Tcp => self.due_ns.max(quiet_ns),
        }
    }
}
