//! Datagrams in batches: one call, one wake-up and one pass through the stack for up to 64 KiB.
//!
//! Sending: the kernel (or the NIC) cuts one buffer into datagrams (UDP_SEGMENT, "GSO").
//! Receiving: the kernel gives datagrams of one flow and size as one buffer (UDP_GRO). Both in udp(7).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::call::check_length;
use crate::control::{ControlBuffer, receive, u32_at};
use crate::option::set;

/// Most payload bytes of one send call, segmented or not (IPv4: 65,535 less 28 bytes of headers).
pub const MAX_BATCH_BYTES: usize = 65_507;
/// Most datagrams of one send call; kernels before 6.9 allow 64.
pub const MAX_BATCH_SEGMENTS: usize = 128;
/// A receive buffer of this size holds whatever one call can bring.
pub const RECEIVE_BYTES: usize = 65_536;

/// Cuts what is sent from now on into datagrams of `segment_bytes`, the last of a call being what is left;
/// 0 sends each call as one datagram again.
///
/// # Errors
/// The kernel's: `NoProtocolOption` before Linux 4.18.
pub fn set_segment_size(fd: BorrowedFd<'_>, segment_bytes: u16) -> io::Result<()> {
    set(
        fd,
        libc::SOL_UDP,
        libc::UDP_SEGMENT,
        libc::c_int::from(segment_bytes),
    )
}

/// Lets the kernel deliver several datagrams at once; from then on read with [`receive_batch`] only.
///
/// # Errors
/// The kernel's: `NoProtocolOption` before Linux 5.0.
pub fn allow_batches(fd: BorrowedFd<'_>) -> io::Result<()> {
    set::<libc::c_int>(fd, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Sends `bytes` on a connected socket.
///
/// # Errors
/// The kernel's: EMSGSIZE or EINVAL for datagrams over the MTU or too many of them, EIO where the device
/// cannot checksum segments, `ConnectionRefused` when the other end's port is closed.
pub fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: pointer and length are those of `bytes`; the kernel only reads.
    check_length(unsafe {
        libc::send(
            fd.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
        )
    })
}

/// Datagrams that one call brought: `bytes` long in all, cut every `segment_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Bytes in the buffer.
    pub bytes: usize,
    /// Bytes of each datagram; the last may be shorter. Never 0.
    pub segment_bytes: usize,
}

/// Receives one datagram, or several of one size, into `buffer` ([`RECEIVE_BYTES`] hold any of them).
///
/// # Errors
/// The kernel's; `WouldBlock` after the socket's receive time-out.
pub fn receive_batch(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Batch> {
    let mut controls = ControlBuffer::default();
    let message = receive(fd, buffer, &mut controls, 0)?;
    let segment_bytes = message
        .find_control(|control| {
            let is_size = control.level == libc::SOL_UDP && control.kind == libc::UDP_GRO;
            is_size.then(|| u32_at(control.data, 0)).flatten()
        })
        .map_or(message.bytes, |size| size as usize);
    Ok(Batch {
        bytes: message.bytes,
        segment_bytes: segment_bytes.max(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    fn pair() -> (UdpSocket, UdpSocket) {
        let (near, far) = (
            UdpSocket::bind("127.0.0.1:0").unwrap(),
            UdpSocket::bind("127.0.0.1:0").unwrap(),
        );
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        far.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        (near, far)
    }

    #[test]
    fn one_buffer_becomes_datagrams_of_the_segment_size() {
        let (near, far) = pair();
        set_segment_size(near.as_fd(), 1000).unwrap();
        assert_eq!(send(near.as_fd(), &[5; 2500]).unwrap(), 2500);
        let mut buffer = [0; RECEIVE_BYTES];
        let sizes: Vec<_> = (0..3)
            .map(|_| receive_batch(far.as_fd(), &mut buffer).unwrap().bytes)
            .collect();
        assert_eq!(sizes, [1000, 1000, 500]);
    }

    #[test]
    fn datagrams_of_one_size_arrive_as_one_buffer_that_names_the_size() {
        let (near, far) = pair();
        set_segment_size(near.as_fd(), 1000).unwrap();
        allow_batches(far.as_fd()).unwrap();
        send(near.as_fd(), &[5; 2500]).unwrap();
        let mut buffer = [0; RECEIVE_BYTES];
        let batch = receive_batch(far.as_fd(), &mut buffer).unwrap();
        assert_eq!(
            batch,
            Batch {
                bytes: 2500,
                segment_bytes: 1000
            }
        );
        set_segment_size(near.as_fd(), 0).unwrap();
        send(near.as_fd(), &[5; 7]).unwrap();
        let batch = receive_batch(far.as_fd(), &mut buffer).unwrap();
        assert_eq!(
            batch,
            Batch {
                bytes: 7,
                segment_bytes: 7
            }
        );
    }

    #[test]
    fn a_batch_over_the_kernels_limit_is_refused_whole() {
        let (near, _far) = pair();
        set_segment_size(near.as_fd(), 1000).unwrap();
        assert!(send(near.as_fd(), &vec![0; MAX_BATCH_BYTES + 1]).is_err());
        assert!(send(near.as_fd(), &vec![0; MAX_BATCH_BYTES]).is_ok());
    }
}
