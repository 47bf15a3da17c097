//! The engine's end of a capture: copies packets into buffers made beforehand.

use crossbeam_channel::{Receiver, Sender};

use super::capture::{CHUNK_BYTES, Chunk};
use super::control::Command;
use super::outlet::Packet;
use super::wait::Clock;
use crate::model::Watched;
use crate::packet::{Run, pcap};

/// What comes with each packet in a file.
const RECORD_BYTES: usize = 16;

/// Records of one link on their way to the control thread.
pub struct Tap {
    /// Number of the link.
    pub link: usize,
    /// Pipes that are recorded.
    pub pipes: Vec<usize>,
    snap_bytes: u32,
    spare: Receiver<Vec<u8>>,
    filled: Sender<Command>,
    current: Vec<u8>,
    packets: u64,
    missed_packets: u64,
}

impl Tap {
    /// A tap that fills buffers from `spare`.
    pub fn new(
        link: usize,
        pipes: Vec<usize>,
        snap_bytes: u32,
        spare: Receiver<Vec<u8>>,
        filled: Sender<Command>,
    ) -> Self {
        Self {
            link,
            pipes,
            snap_bytes,
            spare,
            filled,
            current: Vec::new(),
            packets: 0,
            missed_packets: 0,
        }
    }

    /// Records every packet of a train that left a wire of `rate_bps`; without a free buffer they are missed.
    pub fn record(&mut self, watched: &Watched<Packet>, rate_bps: u64, clock: &Clock) {
        let train = &watched.train;
        let most_bytes = usize::from(train.segments) * (RECORD_BYTES + self.snap_bytes as usize);
        if self.current.len() + most_bytes > CHUNK_BYTES {
            self.flush();
        }
        if self.current.capacity() == 0 && !self.take_buffer() {
            self.missed_packets += u64::from(train.segments);
            return;
        }
        let run = Run {
            first: train.first,
            count: train.segments,
            marked: train.marked,
        };
        let last_ns = clock.time_of_day(watched.at_ns).as_nanos() as u64;
        let each_ns = (u64::from(train.segment_bytes) * 8_000_000_000)
            .checked_div(rate_bps)
            .unwrap_or(0);
        let at_ns = |index: u16| last_ns - u64::from(train.segments - 1 - index) * each_ns;
        let Packet { frame, form } = &train.payload;
        pcap::append_records(&mut self.current, frame, form, run, self.snap_bytes, at_ns);
        self.packets += u64::from(train.segments);
    }

    fn take_buffer(&mut self) -> bool {
        let buffer = self.spare.try_recv();
        let is_there = buffer.is_ok();
        self.current = buffer.unwrap_or_default();
        is_there
    }

    /// Hands on what has been recorded so far.
    pub fn flush(&mut self) {
        if self.packets == 0 {
            return;
        }
        let chunk = Chunk {
            link: self.link,
            bytes: std::mem::take(&mut self.current),
            packets: std::mem::take(&mut self.packets),
        };
        // Without a control thread nobody waits for the file any more.
        let _ = self.filled.send(Command::Chunk(chunk));
    }

    /// Hands on the rest; gives how many packets were missed.
    pub fn finish(mut self) -> u64 {
        self.flush();
        self.missed_packets
    }
}
