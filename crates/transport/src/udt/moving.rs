//! Bytes into a connection and out of it, driving it meanwhile.

use farline_proto::udt::{Closed, Reader};
use farline_spec::Failure;
use farline_sys::datagram::RECEIVE_BYTES;
use farline_sys::page_buffer::PageBuffer;
use farline_sys::time;

use super::SLICE_NS;
use super::driver::Driver;
use super::gauges::Gauges;
use crate::nap::Nap;
use crate::payload::{MAX_PAYLOAD_BYTES, payload};

/// Bytes written between two turns: what leaves while it is still in the cache.
const PIECE_BYTES: usize = RECEIVE_BYTES;

/// What is sent: the payload, over and over.
pub(super) struct Feed {
    payload: PageBuffer,
    block: usize,
    /// Where in the payload the next byte lies.
    offset: usize,
}

/// Where bytes are received to.
pub(super) struct Drain {
    pub(super) buffer: PageBuffer,
    /// Bytes of the last call that are still in the buffer.
    pub(super) kept: usize,
    pub(super) nap: Nap,
}

impl Feed {
    pub(super) fn new(seed: u64, stream: u16, block: usize) -> Self {
        let bytes = payload(seed, stream, block.min(MAX_PAYLOAD_BYTES));
        let mut payload = PageBuffer::new(bytes.len());
        payload.copy_from_slice(&bytes);
        Self {
            payload,
            block,
            offset: 0,
        }
    }

    /// Writes up to `most` bytes to the connection; gives how many it took.
    #[inline]
    fn write(&mut self, driver: &mut Driver, most: usize) -> usize {
        let end = self.payload.len().min(self.offset + most.min(PIECE_BYTES));
        let piece = &self.payload[self.offset..end];
        let taken = driver.connection.write(time::now_ns(), piece);
        self.offset = (self.offset + taken) % self.payload.len();
        taken
    }

    /// Sends a block of at most `limit` bytes; gives what the connection took within a slice.
    pub(super) fn send(
        &mut self,
        driver: &mut Driver,
        gauges: &Gauges,
        limit: usize,
    ) -> Result<usize, Failure> {
        // What a time slice cut short is completed first, so that blocks begin where the payload begins.
        let to_end = self.payload.len() - self.offset;
        let whole = if self.offset == 0 { self.block } else { to_end };
        let wanted = whole.min(limit);
        write_all(driver, gauges, wanted, |driver, taken| {
            self.write(driver, wanted - taken)
        })
    }
}

/// Has `write` write to the connection, which it tells how many bytes it took before, until all that is `wanted` is
/// taken or a slice is over; gives what was taken.
#[inline]
fn write_all(
    driver: &mut Driver,
    gauges: &Gauges,
    wanted: usize,
    mut write: impl FnMut(&mut Driver, usize) -> usize,
) -> Result<usize, Failure> {
    let until_ns = time::now_ns() + SLICE_NS;
    let mut taken = 0;
    loop {
        let written = write(driver, taken);
        taken += written;
        let moved = driver.turn(&mut Reader::none())?;
        if let Some(closed) = driver.closed() {
            return Err(driver.failure(closed));
        }
        if taken == wanted || gauges.tally.is_aborted() || time::now_ns() >= until_ns {
            return Ok(taken);
        }
        if moved == 0 && written == 0 {
            driver.wait(until_ns)?;
        }
    }
}

/// Sends what the connection takes of `bytes` within a slice.
pub(super) fn write_bytes(driver: &mut Driver, gauges: &Gauges, bytes: &[u8]) -> Result<usize, Failure> {
    write_all(driver, gauges, bytes.len(), |driver, taken| {
        let end = bytes.len().min(taken + PIECE_BYTES);
        driver.connection.write(time::now_ns(), &bytes[taken..end])
    })
}

pub(super) fn nap(driver: &Driver) -> Nap {
    Nap::new(driver.member.port.socket.recv_buffer_size().unwrap_or(0))
}

impl Drain {
    pub(super) fn new(driver: &Driver, block: usize) -> Self {
        Self {
            buffer: PageBuffer::new(block.min(MAX_PAYLOAD_BYTES)),
            kept: 0,
            nap: nap(driver),
        }
    }
}

/// Receives what comes within a slice into `into`; none at the end.
pub(super) fn read_some(
    driver: &mut Driver,
    gauges: &Gauges,
    nap: &mut Nap,
    into: &mut [u8],
) -> Result<Option<usize>, Failure> {
    let until_ns = time::now_ns() + SLICE_NS;
    loop {
        let filled = driver.fill(into)?;
        if filled > 0 {
            nap.received(time::now_ns(), filled);
            return Ok(Some(filled));
        }
        if driver.connection.readable_bytes() > 0 {
            continue;
        }
        match driver.closed() {
            None => {}
            Some(Closed::ByPeer | Closed::ByUs) => return Ok(None),
            Some(closed) => return Err(driver.failure(closed)),
        }
        if gauges.tally.is_aborted() || time::now_ns() >= until_ns {
            return Ok(Some(0));
        }
        nap.received(time::now_ns(), 0);
        match nap.length_ns() {
            0 => driver.wait(until_ns)?,
            nap_ns => driver.nap(nap_ns),
        }
    }
}
