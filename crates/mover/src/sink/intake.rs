//! What comes on streams of data: checked, and counted.

use std::sync::Arc;

use farline_proto::copy::receiver::{self, Admission, Known};
use farline_spec::{Failure, FailureKind};

use super::chunk_writer::Chunk;
use super::driver::{Machine, Receiver};
use super::entry::Entry;
use super::plan::Plan;
use super::run::Run;
use super::settle::Ledger;
use crate::Gauges;
use crate::frame::Header;
use crate::sum::chunk_sum;

/// Checks what comes, and counts it.
#[derive(Debug)]
pub struct Intake {
    pub plan: Arc<Plan>,
    pub machine: Arc<Machine>,
    pub run: Arc<Run>,
    pub gauges: Arc<Gauges>,
    ledger: Arc<Ledger>,
    most_bytes: u64,
}

impl Intake {
    /// Nothing has come yet of the `most_bytes` that may.
    pub fn new(
        plan: &Arc<Plan>,
        ledger: &Arc<Ledger>,
        most_bytes: u64,
        (machine, run, gauges): (&Arc<Machine>, &Arc<Run>, &Arc<Gauges>),
    ) -> Self {
        Self {
            plan: Arc::clone(plan),
            machine: Arc::clone(machine),
            run: Arc::clone(run),
            gauges: Arc::clone(gauges),
            ledger: Arc::clone(ledger),
            most_bytes,
        }
    }

    /// Checks a chunk that came; `None` if it is not to be written.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for a chunk that no file has; what ends the copy.
    pub fn admit(&self, header: &Header, content: &[u8]) -> Result<Option<Chunk>, Failure> {
        let (offset, bytes) = (header.offset, content.len() as u64);
        let chunk = receiver::Chunk {
            file: header.file,
            offset,
            bytes,
            hash: header.hash,
        };
        let known = |receiver: &Receiver| match receiver.check_chunk(&chunk)? {
            Known::NotYet => Ok(None),
            Known::Over => Ok(Some(None)),
            Known::Open(entry) => Ok(Some(Some(entry))),
        };
        let Some(entry) = self.machine.wait_for(known, || self.run.check())? else {
            return Ok(None);
        };
        let is_whole_file = bytes == entry.source.bytes;
        let sum = |kind| chunk_sum(kind, offset, content, is_whole_file);
        let found = self.plan.sum.map(|kind| self.gauges.hash_ns.time(|| sum(kind)));
        let admission = self.machine.with(|machine| machine.take_chunk(&chunk, found))?;
        Ok(self.admitted(&entry, admission)?.then_some(Chunk {
            entry,
            offset,
            bytes,
            hash: found,
        }))
    }

    /// Whether data that came for `entry` are to be written.
    ///
    /// # Errors
    /// As of [`Ledger::failed`].
    pub fn admitted(&self, entry: &Arc<Entry>, admission: Admission) -> Result<bool, Failure> {
        match admission {
            Admission::Write => Ok(true),
            Admission::Drop => Ok(false),
            Admission::GiveUp(reason) => self.ledger.failed(entry, &reason).map(|()| false),
        }
    }

    /// Counts what came; a limit of the ticket ends the copy.
    ///
    /// # Errors
    /// [`FailureKind::Limit`].
    pub fn count_moved(&self, bytes: u64) -> Result<(), Failure> {
        self.gauges.moved_bytes.add(bytes);
        if self.gauges.moved_bytes.get() > self.most_bytes {
            let line = format!("exceeds the {} bytes that the ticket allows", self.most_bytes);
            return Err(Failure::new(FailureKind::Limit, line));
        }
        Ok(())
    }
}
