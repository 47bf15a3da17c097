//! The engine's end of a capture: copies packets into buffers made beforehand.

use crossbeam_channel::{Receiver, Sender};

use super::capture::{CHUNK_BYTES, Chunk};
use super::command::Command;
use super::outlet::{self, Packet};
use super::wait::Clock;
use crate::model::{Train, Watched};
use crate::packet::{Run, VNET_BYTES, pcap};

/// What comes with each packet in a file.
const RECORD_BYTES: usize = 16;

/// What a record keeps, and what was around its packet.
#[derive(Debug, Clone, Copy)]
pub struct Recording {
    /// Bytes of each packet that are kept at most.
    pub snap_bytes: u32,
    /// Bytes on the wire around each packet, by direction.
    pub framing_bytes: [u32; 2],
}

/// Records of one link on their way to the control thread.
pub struct Tap {
    /// Number of the link.
    pub link: usize,
    /// Pipes that are recorded.
    pub pipes: Vec<usize>,
    form: Recording,
    spare: Receiver<Vec<u8>>,
    filled: Sender<Command>,
    current: Vec<u8>,
    scratch: Vec<u8>,
    packets: u64,
    missed_packets: u64,
}

impl Tap {
    /// A tap that fills buffers from `spare`.
    pub fn new(
        link: usize,
        pipes: Vec<usize>,
        form: Recording,
        spare: Receiver<Vec<u8>>,
        filled: Sender<Command>,
    ) -> Self {
        Self {
            link,
            pipes,
            form,
            spare,
            filled,
            current: Vec::new(),
            scratch: Vec::new(),
            packets: 0,
            missed_packets: 0,
        }
    }

    /// Records every packet of a train that left a wire of `rate_bps`; without a free buffer they are missed.
    pub fn record(&mut self, watched: &Watched<Packet>, rate_bps: u64, clock: &Clock) {
        let train = &watched.train;
        if self.current.len() + most_bytes(train, self.form.snap_bytes) > CHUNK_BYTES {
            self.flush();
        }
        if self.current.capacity() == 0 && !self.take_buffer() {
            self.missed_packets += u64::from(train.segments);
            return;
        }
        let last_ns = clock.time_of_day(watched.at_ns).as_nanos() as u64;
        let framing_bytes = self.form.framing_bytes[watched.pipe % 2];
        let at_ns = |index: u16| last_ns - before_last_ns(train, index, framing_bytes, rate_bps);
        self.append(train, at_ns);
        self.packets += u64::from(train.segments);
    }

    fn append(&mut self, train: &Train<Packet>, at_ns: impl Fn(u16) -> u64) {
        let run = Run {
            first: train.first,
            count: train.segments,
            marked: train.marked,
        };
        let Packet { frame, form, .. } = &train.payload;
        let start = self.current.len() + RECORD_BYTES;
        pcap::append_records(&mut self.current, frame, form, run, self.form.snap_bytes, at_ns);
        if let Some(corruption) = train.corrupt {
            // One segment, and as long as it was: only its bytes are others.
            self.scratch.clear();
            outlet::append_corrupt(&mut self.scratch, train, corruption);
            let kept = &mut self.current[start..];
            kept.copy_from_slice(&self.scratch[VNET_BYTES..][..kept.len()]);
        }
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

/// Room that the records of a train take, the last packet's whole length included: it is cut once it is there.
fn most_bytes(train: &Train<Packet>, snap_bytes: u32) -> usize {
    let largest = train.segment_bytes.max(train.last_bytes);
    let each = RECORD_BYTES + snap_bytes.min(largest) as usize;
    usize::from(train.segments) * each + largest as usize
}

/// How long before a train's last segment another was out, on a wire of `rate_bps`.
fn before_last_ns(train: &Train<Packet>, index: u16, framing_bytes: u32, rate_bps: u64) -> u64 {
    let behind = u64::from(train.segments - 1 - index);
    if behind == 0 {
        return 0;
    }
    let full = u64::from(train.segment_bytes + framing_bytes);
    let wire_bytes = (behind - 1) * full + u64::from(train.last_bytes + framing_bytes);
    // A super-packet is 64 KiB, so that this fits by far.
    (wire_bytes * 8_000_000_000).checked_div(rate_bps).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::unbounded;

    use super::*;
    use crate::model::Corruption;
    use crate::relay::testing::{datagram, train_of};

    fn tap(snap_bytes: u32) -> (Tap, Receiver<Command>) {
        let (give, spare) = unbounded();
        (0..8).for_each(|_| give.send(Vec::with_capacity(CHUNK_BYTES)).unwrap());
        let (filled, commands) = unbounded();
        let form = Recording {
            snap_bytes,
            framing_bytes: [38; 2],
        };
        (Tap::new(0, vec![0], form, spare, filled), commands)
    }

    fn record(tap: &mut Tap, train: Train<Packet>) {
        let watched = Watched {
            pipe: 0,
            at_ns: 5,
            train,
        };
        tap.record(&watched, 0, &Clock::start());
    }

    #[test]
    fn small_packets_fill_a_chunk_however_much_may_be_kept() {
        let (mut tap, commands) = tap(65_535);
        (0..1000).for_each(|_| record(&mut tap, train_of(datagram(0, &[7; 100]))));
        assert!(commands.is_empty(), "144 000 bytes are less than a chunk");
        assert_eq!(tap.finish(), 0);
        assert_eq!(commands.len(), 1);
    }

    #[test]
    fn a_corrupted_packet_is_in_the_file_as_it_arrives() {
        let (mut tap, _commands) = tap(96);
        let mut train = train_of(datagram(0, &[0; 200]));
        train.corrupt = Some(Corruption {
            entropy: 13,
            hidden: false,
        });
        record(&mut tap, train.clone());
        let mut arrives = Vec::new();
        outlet::append_corrupt(&mut arrives, &train, train.corrupt.unwrap());
        assert_eq!(tap.current[RECORD_BYTES..], arrives[VNET_BYTES..][..96]);
        let recorded = std::mem::take(&mut tap.current);
        train.corrupt = None;
        record(&mut tap, train);
        let differing = recorded[RECORD_BYTES..]
            .iter()
            .zip(&tap.current[RECORD_BYTES..])
            .map(|(one, other)| (one ^ other).count_ones());
        assert_eq!(differing.sum::<u32>(), 1);
    }

    #[test]
    fn segments_are_apart_by_their_length_on_the_wire() {
        let train = Train {
            segments: 3,
            segment_bytes: 1500,
            last_bytes: 62,
            ..train_of(datagram(0, b""))
        };
        let before = |index| before_last_ns(&train, index, 38, 8_000_000_000);
        assert_eq!([before(2), before(1), before(0)], [0, 100, 1638]);
        assert_eq!(before_last_ns(&train, 0, 38, 0), 0);
    }
}
