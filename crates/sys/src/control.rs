//! Control messages of `recvmsg`, taken apart in one place.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::call::check_length;

/// Room for the control messages of one receive, aligned as their headers need it.
#[derive(Debug, Default)]
#[repr(C, align(8))]
pub(crate) struct ControlBuffer([u64; 32]);

/// Most pieces that one call takes (UIO_MAXIOV).
pub(crate) const MAX_PIECES: usize = 1024;

/// One control message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Control<'a> {
    pub(crate) level: libc::c_int,
    pub(crate) kind: libc::c_int,
    pub(crate) data: &'a [u8],
}

/// What one receive brought.
pub(crate) struct Message<'a> {
    /// Bytes in the data buffer.
    pub(crate) bytes: usize,
    header: libc::msghdr,
    controls: std::marker::PhantomData<&'a ControlBuffer>,
}

/// Receives one message: data into `data`, control messages into `controls`.
pub(crate) fn receive<'a>(
    fd: BorrowedFd<'_>,
    data: &mut [u8],
    controls: &'a mut ControlBuffer,
    flags: libc::c_int,
) -> io::Result<Message<'a>> {
    receive_pieces(fd, &mut [io::IoSliceMut::new(data)], controls, flags)
}

/// As [`receive`], with the data going into `pieces` one after the other; at most [`MAX_PIECES`] of them.
pub(crate) fn receive_pieces<'a>(
    fd: BorrowedFd<'_>,
    pieces: &mut [io::IoSliceMut<'_>],
    controls: &'a mut ControlBuffer,
    flags: libc::c_int,
) -> io::Result<Message<'a>> {
    // SAFETY: msghdr is integers and pointers for which all zeros is valid (no name wanted).
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    // IoSliceMut has the layout of iovec (its documentation promises so).
    header.msg_iov = pieces.as_mut_ptr().cast();
    header.msg_iovlen = pieces.len() as _;
    header.msg_control = controls.0.as_mut_ptr().cast();
    header.msg_controllen = size_of::<ControlBuffer>() as _;
    // SAFETY: the kernel writes at most what is in `pieces` and at most the size of `controls` through msg_control;
    // both are borrowed exclusively.
    let bytes = check_length(unsafe { libc::recvmsg(fd.as_raw_fd(), &mut header, flags) })?;
    header.msg_iov = std::ptr::null_mut();
    Ok(Message {
        bytes,
        header,
        controls: std::marker::PhantomData,
    })
}

impl<'a> Message<'a> {
    /// First control message for which `pick` gives something.
    pub(crate) fn find_control<T>(&self, pick: impl Fn(Control<'_>) -> Option<T>) -> Option<T> {
        let mut found = None;
        self.each_control(|control| found = found.take().or_else(|| pick(control)));
        found
    }

    /// Shows every control message, in order.
    pub(crate) fn each_control(&self, mut visit: impl FnMut(Control<'_>)) {
        // SAFETY: `header` is as the kernel left it, and its control buffer is borrowed for 'a.
        let mut next = unsafe { libc::CMSG_FIRSTHDR(&self.header) };
        while !next.is_null() {
            // SAFETY: FIRSTHDR and NXTHDR give only headers that lie whole inside the control buffer, which
            // is 8-aligned as they are; it was zeroed or written by the kernel, so it is initialised.
            let (head, data) = unsafe { (&*next, libc::CMSG_DATA(next)) };
            // SAFETY: CMSG_LEN only computes.
            let overhead = unsafe { libc::CMSG_LEN(0) } as usize;
            #[allow(clippy::unnecessary_cast, reason = "musl has 32 bits for it")]
            let length = (head.cmsg_len as usize).saturating_sub(overhead);
            // SAFETY: the kernel never states a cmsg_len that reaches past what it wrote into the buffer
            // (it sets MSG_CTRUNC and shortens cmsg_len instead), so `length` bytes lie behind the header.
            let data = unsafe { std::slice::from_raw_parts(data, length) };
            visit(Control {
                level: head.cmsg_level,
                kind: head.cmsg_type,
                data,
            });
            // SAFETY: as for FIRSTHDR; `next` is one of this header's control messages.
            next = unsafe { libc::CMSG_NXTHDR(&self.header, next) };
        }
    }
}

/// The 64-bit integer of native byte order at `offset`, if `data` is long enough.
pub(crate) fn u64_at(data: &[u8], offset: usize) -> Option<u64> {
    let bytes = data.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// The integer of native byte order at `offset`, if `data` is long enough.
pub(crate) fn u32_at(data: &[u8], offset: usize) -> Option<u32> {
    let bytes = data.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_is_read_only_where_it_is_whole() {
        let data = 7u32.to_ne_bytes();
        assert_eq!(u32_at(&data, 0), Some(7));
        assert_eq!(u32_at(&data, 1), None);
        assert_eq!(u32_at(&data, usize::MAX), None);
        assert_eq!(u64_at(&data, 0), None);
        assert_eq!(u64_at(&8u64.to_ne_bytes(), 0), Some(8));
    }
}
