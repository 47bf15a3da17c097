//! Sending without a copy into the kernel (MSG_ZEROCOPY), and counting what the kernel copied after all.
//!
//! The kernel sends straight from our pages and says on the socket's error queue when it is done with them
//! (Documentation/networking/msg_zerocopy.rst in the kernel's source). Until then the pages must neither
//! change nor serve another purpose, or other data would go out. [`ZerocopySender`] therefore owns the
//! bytes, never changes them, and gives the memory back only when nothing is outstanding.

use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;

use crate::byte_stream::send_repeated_with;
use crate::control::{Control, ControlBuffer, receive, u32_at};

/// Sends repetitions of one pattern with MSG_ZEROCOPY and keeps account of the completions.
#[derive(Debug)]
pub struct ZerocopySender {
    pattern: ManuallyDrop<Box<[u8]>>,
    /// Bytes of each send not yet completed, from number `first` on; 0 once it is completed.
    pending: VecDeque<usize>,
    first: u32,
    outstanding: usize,
    copied_bytes: u64,
    true_bytes: u64,
}

impl ZerocopySender {
    /// A sender of `pattern` for one socket, which must allow zero-copy
    /// ([`crate::option::allow_zerocopy`]) and have sent nothing with it.
    pub fn new(pattern: Box<[u8]>) -> Self {
        Self {
            pattern: ManuallyDrop::new(pattern),
            pending: VecDeque::new(),
            first: 0,
            outstanding: 0,
            copied_bytes: 0,
            true_bytes: 0,
        }
    }

    /// Sends `length` bytes of the endless repetition of the pattern from `offset` in it; gives the bytes
    /// taken.
    ///
    /// # Errors
    /// The kernel's; ENOBUFS when too many completions are outstanding: [`Self::reap`] and try again.
    pub fn send(&mut self, fd: BorrowedFd<'_>, offset: usize, length: usize) -> io::Result<usize> {
        let flags = libc::MSG_ZEROCOPY | libc::MSG_NOSIGNAL;
        let sent = send_repeated_with(fd, &self.pattern, offset, length, flags)?;
        if sent > 0 {
            self.pending.push_back(sent);
            self.outstanding += 1;
        }
        Ok(sent)
    }

    /// Takes all completions that are there, without waiting; gives how many it took.
    ///
    /// # Errors
    /// The kernel's.
    pub fn reap(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        let mut taken = 0;
        loop {
            match receive_completion(fd) {
                Ok(Some(completion)) => taken += self.complete(completion),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(taken),
                Err(error) => return Err(error),
            }
        }
    }

    fn complete(&mut self, completion: Completion) -> usize {
        let count = completion.last.wrapping_sub(completion.first).wrapping_add(1);
        let from = completion.first.wrapping_sub(self.first) as usize;
        let mut taken = 0;
        for bytes in self
            .pending
            .iter_mut()
            .skip(from)
            .take(count as usize)
            .filter(|bytes| **bytes > 0)
        {
            let total = if completion.copied {
                &mut self.copied_bytes
            } else {
                &mut self.true_bytes
            };
            *total += *bytes as u64;
            *bytes = 0;
            taken += 1;
        }
        self.outstanding -= taken;
        while self.pending.front() == Some(&0) {
            self.pending.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        taken
    }

    /// Sends whose memory the kernel may still read.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Bytes the kernel copied after all, as on loopback always.
    pub fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }

    /// Bytes that were really sent from our pages.
    pub fn true_bytes(&self) -> u64 {
        self.true_bytes
    }
}

impl Drop for ZerocopySender {
    /// Leaks the pattern while the kernel may still send from it: memory reused for something else would
    /// go out to the peer.
    fn drop(&mut self) {
        if self.outstanding == 0 {
            // SAFETY: `pattern` is dropped here alone and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.pattern) };
        }
    }
}

/// Sends `first` to `last` (numbered from 0 per socket, wrapping) are done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Completion {
    first: u32,
    last: u32,
    copied: bool,
}

/// Next message of the error queue; `None` if it was about something else.
fn receive_completion(fd: BorrowedFd<'_>) -> io::Result<Option<Completion>> {
    let mut controls = ControlBuffer::default();
    let message = receive(
        fd,
        &mut [],
        &mut controls,
        libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
    )?;
    Ok(message.find_control(parse_completion))
}

/// Reads `struct sock_extended_err` of linux/errqueue.h: u32 errno, u8 origin, type, code, pad, u32 info, data.
fn parse_completion(control: Control<'_>) -> Option<Completion> {
    const ORIGIN_ZEROCOPY: u8 = 5;
    const CODE_COPIED: u8 = 1;
    let is_error = (control.level == libc::SOL_IP && control.kind == libc::IP_RECVERR)
        || (control.level == libc::SOL_IPV6 && control.kind == libc::IPV6_RECVERR);
    let (origin, code) = (*control.data.get(4)?, *control.data.get(6)?);
    if !is_error || origin != ORIGIN_ZEROCOPY || u32_at(control.data, 0)? != 0 {
        return None;
    }
    Some(Completion {
        first: u32_at(control.data, 8)?,
        last: u32_at(control.data, 12)?,
        copied: code & CODE_COPIED != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    fn sender_with(sizes: &[usize]) -> ZerocopySender {
        let mut sender = ZerocopySender::new(vec![0; 16].into());
        sender.pending.extend(sizes);
        sender.outstanding = sizes.len();
        sender
    }

    #[test]
    fn completions_may_come_out_of_order_and_twice() {
        let mut sender = sender_with(&[10, 20, 30]);
        let late = Completion {
            first: 1,
            last: 2,
            copied: false,
        };
        assert_eq!(sender.complete(late), 2);
        assert_eq!(sender.complete(late), 0);
        assert_eq!((sender.outstanding(), sender.true_bytes()), (1, 50));
        assert_eq!(
            sender.complete(Completion {
                first: 0,
                last: 0,
                copied: true
            }),
            1
        );
        assert_eq!(
            (sender.outstanding(), sender.copied_bytes(), sender.first),
            (0, 10, 3)
        );
    }

    #[test]
    fn numbers_wrap() {
        let mut sender = sender_with(&[1, 2, 4]);
        sender.first = u32::MAX - 1;
        assert_eq!(
            sender.complete(Completion {
                first: u32::MAX - 1,
                last: 0,
                copied: false
            }),
            3
        );
        assert_eq!((sender.true_bytes(), sender.first), (7, 1));
    }

    #[test]
    fn a_completion_of_nothing_sent_counts_nothing() {
        let mut sender = sender_with(&[]);
        assert_eq!(
            sender.complete(Completion {
                first: 5,
                last: 4_000_000_000,
                copied: true
            }),
            0
        );
    }

    #[test]
    fn every_byte_sent_is_completed_copied_or_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        crate::option::allow_zerocopy(near.as_fd()).unwrap();
        let mut sender = ZerocopySender::new((0..=255).cycle().take(70_000).collect());
        let sent = sender.send(near.as_fd(), 69_999, 70_000).unwrap();
        let mut bytes = vec![0; sent];
        far.read_exact(&mut bytes).unwrap();
        assert_eq!((bytes[0], bytes[1], bytes[2]), (111, 0, 1));
        let start = Instant::now();
        while sender.outstanding() > 0 && start.elapsed() < Duration::from_secs(5) {
            sender.reap(near.as_fd()).unwrap();
        }
        assert_eq!(sender.copied_bytes() + sender.true_bytes(), sent as u64);
    }
}
