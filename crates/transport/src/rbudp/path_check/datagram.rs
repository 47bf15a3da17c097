//! The datagrams of a path check.
//!
//! ```text
//!  0  token                                               4 bytes, big-endian
//!  4  number of the train, or PING, or PONG               4 bytes, big-endian
//!  8  0xFFFFFFFE: no data and no DONE                     4 bytes, big-endian
//! 12  index in the train, or of the ping                  4 bytes, big-endian
//! 16  of a pong: how long the ping was kept, in ns        8 bytes, big-endian; of a train: padding
//! ```

use std::io;
use std::os::fd::AsFd;

use farline_proto::rbudp::wire::Header;
use farline_spec::Failure;
use farline_sys::datagram::{RECEIVE_BYTES, receive_batch_now, send};
use socket2::Socket;

use crate::failure::while_moving;
use crate::socket::errno;
use farline_sys::page_buffer::PageBuffer;

/// Packet number that tells a check's datagrams from the stream's.
const CHECK: u32 = u32::MAX - 1;
const PING: u32 = 1 << 31;
const PONG: u32 = PING + 1;
/// Length of a ping or a pong.
const PING_BYTES: usize = 24;
/// Batches taken before the connection is looked at again, whatever comes.
const BATCHES_AT_ONCE: usize = 256;

/// A datagram of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Datagram {
    /// One of a train.
    Train {
        train: u32,
        index: u32,
    },
    Ping {
        index: u32,
    },
    Pong {
        index: u32,
        kept_ns: u64,
    },
}

impl Datagram {
    /// Reads `bytes`; `None` unless they are of the check of the stream that `token` marks.
    pub(super) fn read(bytes: &[u8], token: u32) -> Option<Self> {
        let header = Header::read(bytes).filter(|header| header.token == token && header.packet == CHECK)?;
        let index = header.check;
        match header.blast {
            PING => Some(Self::Ping { index }),
            PONG => {
                let kept: [u8; 8] = bytes.get(16..PING_BYTES)?.try_into().ok()?;
                let kept_ns = u64::from_be_bytes(kept);
                Some(Self::Pong { index, kept_ns })
            }
            train if train < PING => Some(Self::Train { train, index }),
            _ => None,
        }
    }

    /// Writes the head of the datagram into `slot`, which holds [`PING_BYTES`] or is a packet of a train.
    pub(super) fn write(self, token: u32, slot: &mut [u8]) {
        let (blast, index, kept_ns) = match self {
            Self::Train { train, index } => (train, index, None),
            Self::Ping { index } => (PING, index, Some(0)),
            Self::Pong { index, kept_ns } => (PONG, index, Some(kept_ns)),
        };
        let header = Header {
            token,
            blast,
            packet: CHECK,
            check: index,
        };
        header.write(slot);
        if let Some(kept_ns) = kept_ns {
            slot[16..PING_BYTES].copy_from_slice(&u64::to_be_bytes(kept_ns));
        }
    }

    /// Sends a ping or a pong. One that is lost here is as one lost on the way.
    pub(super) fn send(self, udp: &Socket, token: u32) {
        let mut bytes = [0; PING_BYTES];
        self.write(token, &mut bytes);
        let _ = send(udp.as_fd(), &bytes);
    }
}

/// Takes what has come, without waiting.
pub(super) struct Inbox {
    buffer: PageBuffer,
    token: u32,
}

impl Inbox {
    pub(super) fn new(token: u32) -> Self {
        Self {
            buffer: PageBuffer::new(RECEIVE_BYTES),
            token,
        }
    }

    /// Shows each datagram of the check that has come, and when, which is known of the first of a batch. Others' are left out.
    ///
    /// # Errors
    /// The kernel's; not what became of datagrams sent before.
    pub(super) fn take(
        &mut self,
        udp: &Socket,
        visit: &mut dyn FnMut(Datagram, Option<u64>),
    ) -> Result<(), Failure> {
        for _ in 0..BATCHES_AT_ONCE {
            let batch = match receive_batch_now(udp.as_fd(), &mut self.buffer) {
                Ok(batch) => batch,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_of_the_past(&error) => continue,
                Err(error) => return Err(while_moving("checking the path", &error)),
            };
            let mut arrived_ns = batch.arrived_ns;
            for bytes in self.buffer[..batch.bytes].chunks(batch.segment_bytes) {
                let at_ns = arrived_ns.take();
                if let Some(datagram) = Datagram::read(bytes, self.token) {
                    visit(datagram, at_ns);
                }
            }
        }
        Ok(())
    }
}

/// Whether `error` tells of a datagram that went before: nobody was there for it, or it was too long for some router.
pub(super) fn is_of_the_past(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted
    ) || error.raw_os_error() == Some(errno::EMSGSIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_nothing_else_does() {
        let all = [
            Datagram::Train { train: 2, index: 7 },
            Datagram::Ping { index: 7 },
            Datagram::Pong {
                index: u32::MAX,
                kept_ns: 1 << 40,
            },
        ];
        for datagram in all {
            let mut bytes = [0xa5; PING_BYTES];
            datagram.write(9, &mut bytes);
            assert_eq!(Datagram::read(&bytes, 9), Some(datagram));
            assert_eq!(Datagram::read(&bytes, 8), None);
            assert_eq!(Datagram::read(&bytes[..15], 9), None);
            bytes[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
            assert_eq!(Datagram::read(&bytes, 9), None, "that is a DONE");
        }
    }
}
