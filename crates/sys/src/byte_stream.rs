//! Moving bytes of a stream socket without a copy in user space: discarding, repeating one buffer,
//! `sendfile` and `splice` from a memory file.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::call::{check, check_length};

/// Most pieces one call takes (`UIO_MAXIOV`).
const MAX_PIECES: usize = 1024;

/// Lets the kernel throw away up to `limit` received bytes without copying them out (`MSG_TRUNC` on TCP).
/// 0 is the end of the stream.
///
/// # Errors
/// The kernel's; `WouldBlock` after the socket's receive time-out.
pub fn discard(fd: BorrowedFd<'_>, limit: usize) -> io::Result<usize> {
    // SAFETY: on TCP and MPTCP sockets MSG_TRUNC makes the kernel skip the copy, so it writes nothing
    // through the pointer. On any other socket it would write, fail on the null address with EFAULT
    // and touch no memory of ours.
    check_length(unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), limit, libc::MSG_TRUNC) })
}

/// Sends `length` bytes of the endless repetition of `pattern`, starting at `offset` in it, in one call.
/// Gives the bytes taken.
///
/// # Errors
/// The kernel's, without SIGPIPE; `WouldBlock` after the socket's send time-out; `InvalidInput` for an
/// empty pattern.
pub fn send_repeated(fd: BorrowedFd<'_>, pattern: &[u8], offset: usize, length: usize) -> io::Result<usize> {
    send_repeated_with(fd, pattern, offset, length, libc::MSG_NOSIGNAL)
}

/// As [`send_repeated`] of `bytes` alone, which more follows at once: they need not go before it comes (MSG_MORE).
///
/// # Errors
/// The kernel's; `InvalidInput` for no bytes.
pub fn send_ahead(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    send_repeated_with(fd, bytes, 0, bytes.len(), libc::MSG_NOSIGNAL | libc::MSG_MORE)
}

/// Sends up to `length` bytes of `file` from `offset` on to `socket` without a copy in this process (`sendfile`); gives the
/// bytes taken, 0 at the end of the file. What is changed in the file before the other end has it may arrive changed.
/// Ends with SIGPIPE on a closed stream unless the thread called [`block_pipe_signal`].
///
/// # Errors
/// The kernel's; `WouldBlock` after the socket's send time-out.
pub fn send_file(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    offset: u64,
    length: usize,
) -> io::Result<usize> {
    let mut position = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the kernel reads and updates `position`, which lives through the call; no other memory of ours is touched.
    let sent = unsafe { libc::sendfile(socket.as_raw_fd(), file.as_raw_fd(), &mut position, length) };
    check_length(sent)
}

pub(crate) fn send_repeated_with(
    fd: BorrowedFd<'_>,
    pattern: &[u8],
    offset: usize,
    length: usize,
    flags: libc::c_int,
) -> io::Result<usize> {
    let first = pattern
        .get(offset..)
        .filter(|first| !first.is_empty())
        .ok_or(io::ErrorKind::InvalidInput)?;
    if length <= first.len() {
        // SAFETY: pointer and length are those of (a part of) `first`; the kernel only reads.
        return check_length(unsafe { libc::send(fd.as_raw_fd(), first.as_ptr().cast(), length, flags) });
    }
    let pieces = repeat(first, pattern, length);
    // SAFETY: msghdr is integers and pointers for which all zeros is valid (no name, no control data).
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces.as_ptr().cast_mut().cast();
    message.msg_iovlen = pieces.len() as _;
    // SAFETY: IoSlice is guaranteed to be laid out as iovec; each points into `pattern`, which is borrowed
    // through the call; sendmsg only reads them.
    check_length(unsafe { libc::sendmsg(fd.as_raw_fd(), &message, flags) })
}

fn repeat<'a>(first: &'a [u8], pattern: &'a [u8], length: usize) -> Vec<io::IoSlice<'a>> {
    let mut left = length;
    std::iter::once(first)
        .chain(std::iter::repeat(pattern))
        .take(MAX_PIECES)
        .map_while(|piece| {
            let part = &piece[..piece.len().min(left)];
            left -= part.len();
            (!part.is_empty()).then(|| io::IoSlice::new(part))
        })
        .collect()
}

/// Receives up to `length` bytes in one call into `buffer`, starting again at its beginning whenever it is
/// full: later bytes overwrite earlier ones. Gives the bytes received; 0 is the end of the stream.
///
/// # Errors
/// The kernel's; `WouldBlock` after the socket's receive time-out; `InvalidInput` for an empty buffer.
pub fn receive_repeated(fd: BorrowedFd<'_>, buffer: &mut [u8], length: usize) -> io::Result<usize> {
    if buffer.is_empty() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let (start, size) = (buffer.as_mut_ptr(), buffer.len());
    if length <= size {
        // SAFETY: the kernel writes at most `length` bytes, which lie inside `buffer`.
        return check_length(unsafe { libc::recv(fd.as_raw_fd(), start.cast(), length, 0) });
    }
    let count = length.div_ceil(size).min(MAX_PIECES);
    let piece = |index: usize| libc::iovec {
        iov_base: start.cast(),
        iov_len: size.min(length - index * size),
    };
    let mut pieces: Vec<libc::iovec> = (0..count).map(piece).collect();
    // SAFETY: as in `send_repeated_with`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces.as_mut_ptr();
    message.msg_iovlen = pieces.len() as _;
    // SAFETY: every piece lies inside `buffer`, which is borrowed exclusively. That pieces overlap is
    // harmless: the kernel writes plain bytes through them one after the other, and `u8` takes any value.
    check_length(unsafe { libc::recvmsg(fd.as_raw_fd(), &mut message, 0) })
}

/// Receives what has come, up to the length of `buffer`, without waiting. Gives the bytes received; 0 is the end of the
/// stream.
///
/// # Errors
/// The kernel's; `WouldBlock` when nothing has come; `InvalidInput` for an empty buffer.
pub fn receive_now(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    if buffer.is_empty() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let (start, length) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the kernel writes at most `length` bytes, which lie inside `buffer`.
    check_length(unsafe { libc::recv(fd.as_raw_fd(), start, length, libc::MSG_DONTWAIT) })
}

/// A file in memory whose pages can be sent without copying them through user space.
#[derive(Debug)]
pub struct MemoryFile {
    file: OwnedFd,
    length: usize,
}

impl MemoryFile {
    /// A memory file with these contents.
    ///
    /// # Errors
    /// The kernel's: no memory, no descriptor.
    pub fn new(contents: &[u8]) -> io::Result<Self> {
        use std::io::Write;
        // SAFETY: the name is a NUL-terminated literal; the call returns a new descriptor or -1.
        let fd = check(unsafe { libc::memfd_create(c"farline-payload".as_ptr(), libc::MFD_CLOEXEC) })?;
        // SAFETY: `fd` was just made by the kernel and nobody else owns it.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut file = std::fs::File::from(file);
        file.write_all(contents)?;
        Ok(Self {
            file: file.into(),
            length: contents.len(),
        })
    }

    /// Bytes in the file.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// As [`send_file`] of this file.
    ///
    /// # Errors
    /// As of [`send_file`].
    pub fn send(&self, socket: BorrowedFd<'_>, offset: usize, length: usize) -> io::Result<usize> {
        send_file(socket, self.file.as_fd(), offset as u64, length)
    }
}

impl AsFd for MemoryFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A pipe that hands pages from a file to a socket.
#[derive(Debug)]
pub struct PagePipe {
    read: OwnedFd,
    write: OwnedFd,
    capacity: usize,
}

impl PagePipe {
    /// A pipe for `wanted` bytes, or as many as the kernel grants (`fs.pipe-max-size` without privilege).
    ///
    /// # Errors
    /// The kernel's: no descriptor.
    pub fn new(wanted: usize) -> io::Result<Self> {
        let mut fds = [0; 2];
        // SAFETY: the kernel writes two descriptors into `fds`.
        check(unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) })?;
        // SAFETY: both descriptors were just made by the kernel and nobody else owns them.
        let (read, write) = unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) };
        let wanted = libc::c_int::try_from(wanted).unwrap_or(libc::c_int::MAX);
        // SAFETY: F_SETPIPE_SZ takes an integer; if it is refused the pipe keeps its usual size.
        unsafe { libc::fcntl(write.as_raw_fd(), libc::F_SETPIPE_SZ, wanted) };
        // SAFETY: F_GETPIPE_SZ takes nothing and returns the size.
        let capacity = check(unsafe { libc::fcntl(write.as_raw_fd(), libc::F_GETPIPE_SZ) })?;
        Ok(Self {
            read,
            write,
            capacity: usize::try_from(capacity).unwrap_or(0),
        })
    }

    /// Bytes that fit in.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Fills the pipe with up to `length` bytes of `file` from `offset` on, as far as there is room.
    ///
    /// # Errors
    /// The kernel's; `WouldBlock` when the pipe is full.
    pub fn fill(&self, file: &MemoryFile, offset: usize, length: usize) -> io::Result<usize> {
        let mut position = offset as libc::loff_t;
        // SAFETY: the kernel reads and updates `position`; the pipe side takes no offset, hence null.
        let moved = unsafe {
            libc::splice(
                file.as_fd().as_raw_fd(),
                &mut position,
                self.write.as_raw_fd(),
                std::ptr::null_mut(),
                length,
                libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK,
            )
        };
        check_length(moved)
    }

    /// Sends up to `length` bytes out of the pipe to `socket`. Ends with SIGPIPE on a closed stream unless
    /// the thread called [`block_pipe_signal`].
    ///
    /// # Errors
    /// The kernel's; `WouldBlock` after the socket's send time-out.
    pub fn send(&self, socket: BorrowedFd<'_>, length: usize) -> io::Result<usize> {
        let (none, flags) = (std::ptr::null_mut(), libc::SPLICE_F_MOVE);
        // SAFETY: neither side takes an offset, hence two null pointers; no memory of ours is touched.
        let moved = unsafe {
            libc::splice(
                self.read.as_raw_fd(),
                none,
                socket.as_raw_fd(),
                std::ptr::null_mut(),
                length,
                flags,
            )
        };
        check_length(moved)
    }
}

/// Blocks SIGPIPE in the current thread: `sendfile` and `splice` have no flag to leave it out.
pub fn block_pipe_signal() {
    // SAFETY: sigset_t is plain data; sigemptyset initialises it before any other use; the old mask is not
    // wanted, hence null; none of these calls can fail with these arguments.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    fn read_exactly(stream: &mut TcpStream, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn discarding_counts_bytes_and_sees_the_end() {
        let (mut near, far) = pair();
        near.write_all(&[1; 5000]).unwrap();
        drop(near);
        let mut total = 0;
        while let Ok(bytes @ 1..) = discard(far.as_fd(), 1 << 20) {
            total += bytes;
        }
        assert_eq!(total, 5000);
        assert_eq!(discard(far.as_fd(), 1).unwrap(), 0);
    }

    #[test]
    fn discarding_on_anything_but_tcp_is_an_error_not_a_write() {
        let (mut near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        near.write_all(&[1; 10]).unwrap();
        assert_eq!(
            discard(far.as_fd(), 10).unwrap_err().raw_os_error(),
            Some(libc::EFAULT)
        );
    }

    #[test]
    fn a_pattern_repeats_from_where_it_was_left() {
        let (near, mut far) = pair();
        assert_eq!(send_repeated(near.as_fd(), b"abcde", 3, 12).unwrap(), 12);
        assert_eq!(read_exactly(&mut far, 12), b"deabcdeabcde");
        assert_eq!(send_repeated(near.as_fd(), b"abcde", 1, 3).unwrap(), 3);
        assert_eq!(read_exactly(&mut far, 3), b"bcd");
        assert!(send_repeated(near.as_fd(), b"", 0, 1).is_err());
        assert!(send_repeated(near.as_fd(), b"a", 2, 1).is_err());
    }

    #[test]
    fn a_small_buffer_takes_a_large_receive() {
        let (mut near, far) = pair();
        near.write_all(b"0123456789").unwrap();
        let mut buffer = [0; 4];
        assert_eq!(receive_repeated(far.as_fd(), &mut buffer, 9).unwrap(), 9);
        assert_eq!(&buffer, b"8567");
        assert_eq!(receive_repeated(far.as_fd(), &mut buffer, 4).unwrap(), 1);
        assert!(receive_repeated(far.as_fd(), &mut [], 4).is_err());
    }

    #[test]
    fn what_has_come_is_received_without_waiting() {
        let (mut near, far) = pair();
        let mut buffer = [0; 8];
        let nothing = receive_now(far.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        near.write_all(b"0123456789").unwrap();
        crate::wake::poll_readable(&[far.as_fd()], None).unwrap();
        assert_eq!(receive_now(far.as_fd(), &mut buffer).unwrap(), 8);
        assert_eq!(receive_now(far.as_fd(), &mut buffer[..1]).unwrap(), 1);
        assert!(receive_now(far.as_fd(), &mut []).is_err());
        drop(near);
        assert_eq!(receive_now(far.as_fd(), &mut buffer).unwrap(), 1);
        crate::wake::poll_readable(&[far.as_fd()], None).unwrap();
        assert_eq!(receive_now(far.as_fd(), &mut buffer).unwrap(), 0);
    }

    #[test]
    fn a_memory_file_is_sent_by_both_ways() {
        let (near, mut far) = pair();
        let file = MemoryFile::new(b"0123456789").unwrap();
        assert_eq!(file.send(near.as_fd(), 2, 5).unwrap(), 5);
        let pipe = PagePipe::new(4096).unwrap();
        assert!(pipe.capacity() >= 4096);
        assert_eq!(pipe.fill(&file, 7, 100).unwrap(), 3);
        assert_eq!(pipe.send(near.as_fd(), 100).unwrap(), 3);
        assert_eq!(read_exactly(&mut far, 8), b"23456789");
    }

    #[test]
    fn a_closed_stream_is_an_error_not_a_signal() {
        let (near, far) = pair();
        let file = MemoryFile::new(&[0; 4096]).unwrap();
        drop(far);
        near.shutdown(std::net::Shutdown::Both).unwrap();
        block_pipe_signal();
        assert_eq!(
            file.send(near.as_fd(), 0, 4096).unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
        let error = send_repeated(near.as_fd(), b"a", 0, 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
