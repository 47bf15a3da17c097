//! Datagrams with iperf3's header.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use farline_proto::iperf3::arrivals::Arrivals;
use farline_proto::iperf3::datagram::Header;
use farline_sys::datagram::{self, MAX_BATCH_BYTES, RECEIVE_BYTES};
use farline_sys::page_buffer::PageBuffer;
use farline_sys::time;

use super::pace::Pace;
use super::{Job, is_slice, payload};

/// Most datagrams that kernels before 6.9 cut out of one call.
const MAX_SEGMENTS: usize = 64;
/// Pause after the device's queue was full.
const QUEUE_FULL: Duration = Duration::from_millis(1);
/// ENOBUFS.
const NO_BUFFERS: i32 = 105;

/// Sends datagrams until the test is over.
pub(super) fn send(job: &Job) -> io::Result<()> {
    let length = job.wanted.block_bytes as usize;
    let batch = batch_of(job, length);
    let mut slots = PageBuffer::new(length * batch);
    let payload = payload(&job.wanted, job.index, length);
    slots
        .chunks_exact_mut(length)
        .for_each(|slot| slot.copy_from_slice(&payload));
    let (mut pace, mut packets) = (Pace::new(job), 0u64);
    while job.course.may_send() {
        if !pace.wait_whole(&job.course, length * batch) {
            continue;
        }
        stamp(&mut slots, length, packets, job.wanted.counters_64bit);
        match datagram::send(job.socket.as_fd(), &slots) {
            Ok(sent) => {
                packets += (sent / length) as u64;
                job.tally.sent(packets);
                job.tally.moved(sent);
                pace.sent(sent);
            }
            Err(error) if is_slice(&error) => pace.sent(0),
            Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => {
                pace.sent(0);
                std::thread::sleep(QUEUE_FULL);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Datagrams of one call: several if the client asks for that and the kernel can.
fn batch_of(job: &Job, length: usize) -> usize {
    let batch = (MAX_BATCH_BYTES / length).min(MAX_SEGMENTS);
    let is_wanted = job.wanted.gso && batch > 1;
    let segment = u16::try_from(length).ok().filter(|_| is_wanted);
    match segment.map(|segment| datagram::set_segment_size(job.socket.as_fd(), segment)) {
        Some(Ok(())) => batch,
        Some(Err(_)) | None => 1,
    }
}

fn stamp(slots: &mut [u8], length: usize, sent: u64, is_wide: bool) {
    let sent_us = time::now_ns() / 1000;
    for (number, slot) in (sent + 1..).zip(slots.chunks_exact_mut(length)) {
        Header { sent_us, number }.write(slot, is_wide);
    }
}

/// Counts datagrams until the test is over and the kernel has none left.
pub(super) fn receive(job: &Job) -> io::Result<()> {
    // Only if the client asks for it: several at once have one time of arrival, which changes the jitter.
    let is_batched = job.wanted.gro && datagram::allow_batches(job.socket.as_fd()).is_ok();
    let room = if is_batched {
        RECEIVE_BYTES
    } else {
        job.wanted.block_bytes as usize
    };
    let (mut buffer, mut arrivals) = (PageBuffer::new(room), Arrivals::default());
    while !job.course.is_over() {
        let batch = if job.course.is_draining() {
            datagram::receive_batch_now(job.socket.as_fd(), &mut buffer)
        } else {
            datagram::receive_batch(job.socket.as_fd(), &mut buffer)
        };
        match batch {
            Ok(batch) => count(job, &mut arrivals, &buffer[..batch.bytes], batch.segment_bytes),
            Err(error) if is_slice(&error) && job.course.is_draining() => return Ok(()),
            Err(error) if is_slice(&error) => {}
            // An answer of a port that is closed: of this end's datagrams nothing is wanted any more.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn count(job: &Job, arrivals: &mut Arrivals, bytes: &[u8], segment: usize) {
    if job.tally.must_forget_jitter() {
        arrivals.forget_jitter();
    }
    let arrived_us = time::now_ns() / 1000;
    for datagram in bytes.chunks(segment) {
        if let Some(header) = Header::read(datagram, job.wanted.counters_64bit) {
            arrivals.observe(header, arrived_us);
        }
    }
    job.tally.moved(bytes.len());
    job.tally.arrived(arrivals);
}
