//! Datagrams in batches: one call, one wake-up and one pass through the stack for up to 64 KiB.
//!
//! Sending: the kernel (or the NIC) cuts one buffer into datagrams (UDP_SEGMENT, "GSO").
//! Receiving: the kernel gives datagrams of one flow and size as one buffer (UDP_GRO). Both in udp(7).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::call::check_length;
use crate::control::{ControlBuffer, MAX_PIECES, Message, receive, receive_pieces, u32_at, u64_at};
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

/// Sends `bytes` on a connected socket as datagrams of `segment_bytes` each (at least 1), the last being what is left,
/// whatever [`set_segment_size`] says. For sockets that several senders share.
///
/// # Errors
/// As [`send`].
pub fn send_segments(fd: BorrowedFd<'_>, bytes: &[u8], segment_bytes: u16) -> io::Result<usize> {
    let mut piece = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut control = SegmentControl {
        // SAFETY: cmsghdr is integers (and padding in some C libraries) for which all zeros is valid.
        header: unsafe { std::mem::zeroed() },
        segment_bytes,
    };
    // SAFETY: CMSG_LEN only computes.
    control.header.cmsg_len = unsafe { libc::CMSG_LEN(size_of::<u16>() as libc::c_uint) } as _;
    control.header.cmsg_level = libc::SOL_UDP;
    control.header.cmsg_type = libc::UDP_SEGMENT;
    // SAFETY: msghdr is integers and pointers for which all zeros is valid (no name: the socket is connected).
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut piece;
    message.msg_iovlen = 1;
    message.msg_control = std::ptr::from_mut(&mut control).cast();
    message.msg_controllen = size_of::<SegmentControl>() as _;
    // SAFETY: the kernel only reads: `bytes` through `piece`, and `control`, which begins with a whole control message
    // of the length it states; all three live through the call.
    check_length(unsafe { libc::sendmsg(fd.as_raw_fd(), &message, libc::MSG_NOSIGNAL) })
}

/// A control message that holds a segment size: its data follow the header without a gap.
#[repr(C, align(8))]
struct SegmentControl {
    header: libc::cmsghdr,
    segment_bytes: u16,
}

/// Lets the kernel note when each datagram came, for [`Batch::arrived_ns`]. Where this is the first socket
/// to ask for it, the kernel begins a moment later, and until then notes when a datagram was read.
///
/// # Errors
/// The kernel's.
pub fn note_arrivals(fd: BorrowedFd<'_>) -> io::Result<()> {
    set::<libc::c_int>(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Ends what [`note_arrivals`] began.
///
/// # Errors
/// The kernel's.
pub fn forget_arrivals(fd: BorrowedFd<'_>) -> io::Result<()> {
    set::<libc::c_int>(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0)
}

/// Datagrams that one call brought: `bytes` long in all, cut every `segment_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Bytes in the buffer.
    pub bytes: usize,
    /// Bytes of each datagram; the last may be shorter. Never 0.
    pub segment_bytes: usize,
    /// When the first of them came, by the kernel's clock of the day, if [`note_arrivals`] was called.
    pub arrived_ns: Option<u64>,
}

/// Receives one datagram, or several of one size, into `buffer` ([`RECEIVE_BYTES`] hold any of them).
///
/// # Errors
/// The kernel's; `WouldBlock` after the socket's receive time-out.
pub fn receive_batch(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Batch> {
    receive_with(fd, buffer, 0)
}

/// As [`receive_batch`], without waiting.
///
/// # Errors
/// The kernel's; `WouldBlock` if nothing is there.
pub fn receive_batch_now(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Batch> {
    receive_with(fd, buffer, libc::MSG_DONTWAIT)
}

/// As [`receive_batch_now`], with the bytes going into `pieces` one after the other: headers and payloads of datagrams of
/// a known size can go where each belongs. The pieces together should hold [`RECEIVE_BYTES`]; what they do not hold is lost.
///
/// # Errors
/// `InvalidInput` for more than 1024 pieces; the kernel's; `WouldBlock` if nothing is there.
pub fn receive_scattered_now(fd: BorrowedFd<'_>, pieces: &mut [io::IoSliceMut<'_>]) -> io::Result<Batch> {
    if pieces.len() > MAX_PIECES {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut controls = ControlBuffer::default();
    receive_pieces(fd, pieces, &mut controls, libc::MSG_DONTWAIT).map(|message| batch_of(&message))
}

fn receive_with(fd: BorrowedFd<'_>, buffer: &mut [u8], flags: libc::c_int) -> io::Result<Batch> {
    let mut controls = ControlBuffer::default();
    receive(fd, buffer, &mut controls, flags).map(|message| batch_of(&message))
}

fn batch_of(message: &Message<'_>) -> Batch {
    let (mut segment_bytes, mut arrived_ns) = (None, None);
    message.each_control(|control| match (control.level, control.kind) {
        (libc::SOL_UDP, libc::UDP_GRO) => segment_bytes = u32_at(control.data, 0),
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => arrived_ns = timespec_ns(control.data),
        _ => {}
    });
    let segment_bytes = segment_bytes.map_or(message.bytes, |size| size as usize).max(1);
    Batch {
        bytes: message.bytes,
        segment_bytes,
        arrived_ns,
    }
}

/// Reads `struct timespec`: two 64-bit integers, seconds and nanoseconds.
fn timespec_ns(data: &[u8]) -> Option<u64> {
    u64_at(data, 0)?
        .checked_mul(1_000_000_000)?
        .checked_add(u64_at(data, 8)?)
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
            (batch.bytes, batch.segment_bytes, batch.arrived_ns),
            (2500, 1000, None)
        );
        set_segment_size(near.as_fd(), 0).unwrap();
        send(near.as_fd(), &[5; 7]).unwrap();
        let batch = receive_batch(far.as_fd(), &mut buffer).unwrap();
        assert_eq!((batch.bytes, batch.segment_bytes), (7, 7));
    }

    #[test]
    fn a_batch_is_scattered_over_pieces() {
        let (near, far) = pair();
        allow_batches(far.as_fd()).unwrap();
        let sent: Vec<u8> = (0..250u8).collect();
        send_segments(near.as_fd(), &sent, 100).unwrap();
        let mut pieces = [10, 90, 10, 90, 10, 90].map(|size| vec![0u8; size]);
        let mut slices: Vec<_> = pieces
            .iter_mut()
            .map(|piece| io::IoSliceMut::new(piece))
            .collect();
        let batch = receive_scattered_now(far.as_fd(), &mut slices).unwrap();
        assert_eq!((batch.bytes, batch.segment_bytes), (250, 100));
        assert_eq!(pieces[2][..], sent[100..110]);
        assert_eq!(pieces[5][..40], sent[210..]);
        let mut byte = [0];
        let mut many: Vec<_> = std::iter::repeat_with(|| io::IoSliceMut::new(&mut []))
            .take(1025)
            .collect();
        let refused = receive_scattered_now(far.as_fd(), &mut many).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        let empty = receive_scattered_now(far.as_fd(), &mut [io::IoSliceMut::new(&mut byte)]).unwrap_err();
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn two_senders_on_one_socket_cut_as_each_likes() {
        let (near, far) = pair();
        let mut buffer = [0; RECEIVE_BYTES];
        let mut sizes = |segment_bytes| {
            assert_eq!(
                send_segments(near.as_fd(), &[5; 2500], segment_bytes).unwrap(),
                2500
            );
            let count = 2500usize.div_ceil(usize::from(segment_bytes));
            let size = |_| receive_batch(far.as_fd(), &mut buffer).unwrap().bytes;
            (0..count).map(size).collect::<Vec<_>>()
        };
        assert_eq!(sizes(1000), [1000, 1000, 500]);
        assert_eq!(sizes(2000), [2000, 500]);
    }

    #[test]
    fn arrival_is_when_it_came_not_when_it_was_read() {
        let (near, far) = pair();
        note_arrivals(far.as_fd()).unwrap();
        let mut buffer = [0; RECEIVE_BYTES];
        let error = receive_batch_now(far.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        // The kernel begins to note arrivals a moment after the first socket asks for it.
        std::thread::sleep(Duration::from_millis(50));
        send(near.as_fd(), b"first").unwrap();
        std::thread::sleep(Duration::from_millis(30));
        send(near.as_fd(), b"second").unwrap();
        let mut arrived_ns = || {
            receive_batch_now(far.as_fd(), &mut buffer)
                .unwrap()
                .arrived_ns
                .unwrap()
        };
        let (first_ns, second_ns) = (arrived_ns(), arrived_ns());
        assert!(second_ns - first_ns >= 29_000_000, "{}", second_ns - first_ns);
        forget_arrivals(far.as_fd()).unwrap();
        send(near.as_fd(), b"third").unwrap();
        let third = receive_batch_now(far.as_fd(), &mut buffer).unwrap();
        assert_eq!(third.arrived_ns, None);
    }

    #[test]
    fn a_batch_over_the_kernels_limit_is_refused_whole() {
        let (near, _far) = pair();
        set_segment_size(near.as_fd(), 1000).unwrap();
        assert!(send(near.as_fd(), &vec![0; MAX_BATCH_BYTES + 1]).is_err());
        assert!(send(near.as_fd(), &vec![0; MAX_BATCH_BYTES]).is_ok());
    }
}
