//! Blocks over TCP.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use farline_sys::byte_stream::{MemoryFile, block_pipe_signal, discard, receive_repeated, send_repeated};
use farline_sys::page_buffer::PageBuffer;
use farline_transport::{MAX_PAYLOAD_BYTES, Share};

use super::pace::Pace;
use super::{Job, is_slice, payload};

/// Sends blocks until the test is over, or all that was wanted has been sent; the last block is whole, for clients count blocks.
pub(super) fn send(job: &Job) -> io::Result<()> {
    let block = job.wanted.block_bytes as usize;
    let feed = Feed::new(job, block)?;
    let (mut pace, mut begun) = (Pace::new(job), 0);
    while job.course.may_send() {
        let is_enough = job.quota.as_ref().is_some_and(|quota| quota.is_used_up());
        if is_enough && begun == 0 {
            return Ok(());
        }
        let most = pace.wait(&job.course, if is_enough { block - begun } else { block });
        if most == 0 {
            continue;
        }
        match feed.send(job.socket.as_fd(), most) {
            Ok(sent) => {
                job.tally.moved(sent);
                job.quota.iter().for_each(|quota| quota.sent(sent));
                begun = (begun + sent) % block;
                pace.sent(sent);
            }
            Err(error) if is_slice(&error) => pace.sent(0),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Takes what comes until the test is over and the kernel has nothing left, or the other end closes.
pub(super) fn receive(job: &Job) -> io::Result<()> {
    let block = job.wanted.block_bytes as usize;
    let mut buffer = PageBuffer::new(block.min(MAX_PAYLOAD_BYTES));
    let mut share = job.rate.clone().map(Share::of);
    while !job.course.is_over() {
        let most = match &mut share {
            Some(share) if !job.course.is_draining() => share.wait(block),
            _ => block,
        };
        if most == 0 {
            continue;
        }
        let received = if job.wanted.skip_receive_copy {
            discard(job.socket.as_fd(), most)
        } else {
            receive_repeated(job.socket.as_fd(), &mut buffer, most)
        };
        if let Some(share) = &mut share {
            share.sent(*received.as_ref().unwrap_or(&0));
        }
        match received {
            Ok(0) => return Ok(()),
            Ok(bytes) => job.tally.moved(bytes),
            Err(error) if is_slice(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Where blocks come from.
enum Feed {
    Copy(PageBuffer),
    /// As iperf3 does for `-Z`.
    Sendfile(MemoryFile),
}

impl Feed {
    fn new(job: &Job, block: usize) -> io::Result<Self> {
        let payload = payload(&job.wanted, job.index, block.min(MAX_PAYLOAD_BYTES));
        if job.wanted.zerocopy {
            block_pipe_signal();
            return MemoryFile::new(&payload).map(Self::Sendfile);
        }
        let mut buffer = PageBuffer::new(payload.len());
        buffer.copy_from_slice(&payload);
        Ok(Self::Copy(buffer))
    }

    fn send(&self, socket: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
        match self {
            Self::Copy(payload) => send_repeated(socket, payload, 0, most),
            Self::Sendfile(file) => file.send(socket, 0, most.min(file.len())),
        }
    }
}
