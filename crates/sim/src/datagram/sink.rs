//! The end that counts datagrams.

use super::Datagram;
use crate::Received;

/// What became of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SinkFigures {
    /// Packets that arrived undamaged, repetitions included.
    pub packets: u64,
    /// Packets that arrived damaged.
    pub damaged: u64,
    /// Packets that arrived with a congestion mark.
    pub marked: u64,
    /// Packets that arrived after one with a higher number; a repetition of the latest is not among them.
    pub late: u64,
    /// Packets with the same number as the one before.
    pub repeated: u64,
    /// One more than the highest number seen.
    pub end: u64,
    /// Longest run of numbers that were skipped when a higher one came.
    pub longest_gap: u64,
    /// Runs of numbers skipped.
    pub gaps: u64,
    /// Mean one-way delay.
    pub mean_delay_ns: f64,
    /// Standard deviation of the one-way delay.
    pub sd_delay_ns: f64,
    /// Smallest one-way delay.
    pub min_delay_ns: u64,
    /// Largest one-way delay.
    pub max_delay_ns: u64,
    /// Interarrival jitter (RFC 3550, 6.4.1).
    pub jitter_ns: f64,
}

impl SinkFigures {
    /// Packets with numbers up to the highest seen that have not arrived, if none came twice.
    pub fn missing(&self) -> u64 {
        self.end.saturating_sub(self.packets - self.repeated)
    }
}

/// Counts; keeps no list, so that hours fit.
#[derive(Debug, Clone, Default)]
pub struct Sink {
    figures: SinkFigures,
    /// Sum of squared distances from the mean (Welford 1962).
    squares: f64,
    trains: u64,
    last_delay_ns: Option<u64>,
}

impl Sink {
    /// The figures so far.
    pub fn figures(&self) -> SinkFigures {
        SinkFigures {
            sd_delay_ns: (self.squares / self.trains.max(1) as f64).sqrt(),
            ..self.figures
        }
    }

    pub(super) fn take(&mut self, now_ns: u64, received: &Received<Datagram>) {
        let packets = u64::from(received.segments);
        if received.is_damaged() {
            self.figures.damaged += packets;
            return;
        }
        self.figures.packets += packets;
        self.figures.marked += if received.marked { packets } else { 0 };
        self.note_order(received.packet.number + u64::from(received.first), packets);
        self.note_delay(now_ns - received.packet.sent_ns);
    }

    fn note_order(&mut self, number: u64, packets: u64) {
        let figures = &mut self.figures;
        if number + packets == figures.end {
            figures.repeated += packets;
        } else if number < figures.end {
            figures.late += packets;
        } else if number > figures.end {
            figures.gaps += 1;
            figures.longest_gap = figures.longest_gap.max(number - figures.end);
        }
        figures.end = figures.end.max(number + packets);
    }

    fn note_delay(&mut self, delay_ns: u64) {
        let figures = &mut self.figures;
        self.trains += 1;
        let from_mean = delay_ns as f64 - figures.mean_delay_ns;
        figures.mean_delay_ns += from_mean / self.trains as f64;
        self.squares += from_mean * (delay_ns as f64 - figures.mean_delay_ns);
        figures.min_delay_ns = if self.trains == 1 {
            delay_ns
        } else {
            figures.min_delay_ns.min(delay_ns)
        };
        figures.max_delay_ns = figures.max_delay_ns.max(delay_ns);
        if let Some(last_ns) = self.last_delay_ns {
            figures.jitter_ns += (delay_ns.abs_diff(last_ns) as f64 - figures.jitter_ns) / 16.0;
        }
        self.last_delay_ns = Some(delay_ns);
    }
}
