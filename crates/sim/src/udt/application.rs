//! What writes into a connection and what reads from it.

use std::collections::BTreeSet;

use farline_proto::udt::{Connection, State};

use super::content::{fill, is_right};

/// Most bytes written or read at once.
const BLOCK_BYTES: usize = 65_536;
/// Places of the contents of two messages are so far apart.
const MESSAGE_STRIDE: u64 = 1 << 20;
/// Bytes of a message that say its number.
const NUMBER_BYTES: usize = 8;

/// What a sender writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Bytes of a stream, or messages; without end if absent.
    pub total: Option<u64>,
    /// Bytes of the largest message, at least 9; sizes are drawn between that and 9.
    pub message_bytes: usize,
    /// Whether messages must be read in the order of their writing.
    pub is_ordered: bool,
    /// After which a message is given up.
    pub ttl_ns: Option<u64>,
}

impl Work {
    /// A stream or messages without end.
    pub fn endless() -> Self {
        Self {
            total: None,
            message_bytes: 1_000,
            is_ordered: true,
            ttl_ns: None,
        }
    }

    /// What the other end writes: nothing.
    pub(super) fn none(self) -> Self {
        Self {
            total: Some(0),
            ..self
        }
    }

    /// So many bytes or messages; then the connection is finished.
    pub fn of(total: u64) -> Self {
        Self {
            total: Some(total),
            ..Self::endless()
        }
    }
}

/// What has become of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Bytes or messages that the connection took.
    pub written: u64,
    /// Bytes or messages read that were right and in their place.
    pub read: u64,
    /// Reads in which something was wrong.
    pub wrong: u64,
    /// Messages read before an earlier one.
    pub early: u64,
    /// Messages read twice.
    pub repeated: u64,
    /// Messages not read though a later one was.
    pub missing: u64,
}

/// Writer and reader of one end.
#[derive(Debug)]
pub struct Application {
    work: Work,
    seed: u64,
    is_message: bool,
    figures: Figures,
    /// Messages before the latest that have not come.
    missing: BTreeSet<u64>,
    latest: u64,
    block: Vec<u8>,
    is_finished: bool,
}

impl Application {
    pub(super) fn new(work: Work, seed: u64, is_message: bool) -> Self {
        Self {
            work,
            seed,
            is_message,
            figures: Figures::default(),
            missing: BTreeSet::new(),
            latest: 0,
            block: vec![0; BLOCK_BYTES],
            is_finished: work.total == Some(0),
        }
    }

    /// The figures so far.
    pub fn figures(&self) -> Figures {
        Figures {
            missing: self.missing.len() as u64,
            ..self.figures
        }
    }

    /// Writes what there is room for.
    pub(super) fn write(&mut self, now_ns: u64, connection: &mut Connection) {
        if self.is_finished || connection.state() != State::Open {
            return;
        }
        if self.is_message {
            while self.write_message(now_ns, connection) {}
        } else {
            while self.write_block(now_ns, connection) {}
        }
        if self.work.total == Some(self.figures.written) {
            connection.finish();
            self.is_finished = true;
        }
    }

    fn left(&self) -> u64 {
        self.work
            .total
            .map_or(u64::MAX, |total| total - self.figures.written)
    }

    fn write_block(&mut self, now_ns: u64, connection: &mut Connection) -> bool {
        let left = usize::try_from(self.left()).unwrap_or(usize::MAX);
        let length = connection.room_bytes().min(BLOCK_BYTES).min(left);
        let block = &mut self.block[..length];
        fill(self.seed, self.figures.written, block);
        let taken = connection.write(now_ns, block);
        self.figures.written += taken as u64;
        taken > 0
    }

    fn write_message(&mut self, now_ns: u64, connection: &mut Connection) -> bool {
        let number = self.figures.written;
        if self.left() == 0 || connection.room_bytes() < self.work.message_bytes {
            return false;
        }
        let length = self.message_bytes(number);
        let message = &mut self.block[..length];
        message[..NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
        fill(self.seed, number * MESSAGE_STRIDE, &mut message[NUMBER_BYTES..]);
        let is_taken = connection.write_message(now_ns, message, self.work.is_ordered, self.work.ttl_ns);
        self.figures.written += u64::from(is_taken);
        is_taken
    }

    /// Length of a message: it follows from its number.
    fn message_bytes(&self, number: u64) -> usize {
        let mut word = [0; 8];
        fill(self.seed, number * MESSAGE_STRIDE, &mut word);
        let most = self.work.message_bytes.min(BLOCK_BYTES);
        let span = (most - NUMBER_BYTES) as u64;
        NUMBER_BYTES + 1 + (u64::from_le_bytes(word) % span) as usize
    }

    /// Reads what there is.
    pub(super) fn read(&mut self, now_ns: u64, connection: &mut Connection) {
        let mut block = std::mem::take(&mut self.block);
        if self.is_message {
            while let Some(message) = connection.read_message(now_ns, &mut block) {
                self.take_message(&block[..message.bytes]);
            }
        } else {
            loop {
                let bytes = connection.read(now_ns, &mut block);
                if bytes == 0 {
                    break;
                }
                self.take_stream(&block[..bytes]);
            }
        }
        self.block = block;
    }

    /// Bytes of the stream that come next.
    pub(super) fn take_stream(&mut self, bytes: &[u8]) {
        if is_right(self.seed, self.figures.read, bytes) {
            self.figures.read += bytes.len() as u64;
        } else {
            self.figures.wrong += 1;
        }
    }

    fn take_message(&mut self, message: &[u8]) {
        let Some((number, content)) = message.split_first_chunk::<NUMBER_BYTES>() else {
            self.figures.wrong += 1;
            return;
        };
        let number = u64::from_le_bytes(*number);
        let is_known = number < 1 << 40 && message.len() == self.message_bytes(number);
        if !is_known || !is_right(self.seed, number * MESSAGE_STRIDE, content) {
            self.figures.wrong += 1;
            return;
        }
        if number >= self.latest {
            self.figures.early += u64::from(number > self.latest);
            self.missing.extend(self.latest..number);
            self.latest = number + 1;
        } else if !self.missing.remove(&number) {
            self.figures.repeated += 1;
            return;
        }
        self.figures.read += 1;
    }
}
