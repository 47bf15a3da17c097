//! What became of each name, as the other end tells it: held against what was asked for, written into the receipt, and where
//! sources are to be removed, remembered for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use farline_proto::copy::sender::Settled;
use farline_spec::{CopyReport, CopySpec, Failure, FileKind, FileStatus};
use tracing::debug;

use super::found::What;
use super::removal::Removal;
use super::sending::Sending;
use crate::Gauges;
use crate::path_text::one_line;
use crate::receipt::{Receipt, line};
use crate::request::Request;
use crate::sum::note_sum;

/// Problems besides files that are taken at the end.
const MOST_PROBLEMS: usize = 1_000;

/// The account of one copy at its sending end.
#[derive(Debug)]
pub(super) struct Account {
    /// What to copy and how.
    spec: Arc<CopySpec>,
    /// What was asked for.
    request: Request,
    /// Names that the other end says it deleted.
    deleted: AtomicU64,
    receipt: Receipt,
    /// Sources that are to be removed.
    removal: Removal,
    gauges: Arc<Gauges>,
}

impl Account {
    /// Nothing has become of anything yet.
    pub(super) fn new(
        spec: &Arc<CopySpec>,
        request: Request,
        receipt: Receipt,
        removal: Removal,
        gauges: &Arc<Gauges>,
    ) -> Self {
        Self {
            spec: Arc::clone(spec),
            request,
            deleted: AtomicU64::new(0),
            receipt,
            removal,
            gauges: Arc::clone(gauges),
        }
    }

    /// An entry has become what `settled` says.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) for a receipt that cannot be written.
    pub(super) fn settled(&self, settled: &Settled<Arc<Sending>>) -> Result<(), Failure> {
        let (file, status) = (&settled.kept, settled.status);
        self.removal.note(file, status);
        let is_copied = status == FileStatus::Copied;
        let bytes = if settled.has_content {
            file.found.bytes()
        } else {
            0
        };
        let mut line = line(&file.found.path, kind_of(file), status, bytes);
        line.resumed_bytes = if is_copied { settled.resumed_bytes } else { 0 };
        line.reason = settled.reason.as_deref().map(one_line);
        note_sum(&mut line, settled.hash);
        self.receipt.settle(&line)
    }

    /// A name that is not announced has become `status`.
    ///
    /// # Errors
    /// As of [`Self::settled`].
    pub(super) fn unannounced(
        &self,
        path: &[u8],
        kind: FileKind,
        status: FileStatus,
        reason: &str,
    ) -> Result<(), Failure> {
        let mut line = line(path, kind, status, 0);
        line.reason = Some(reason.to_owned());
        self.receipt.settle(&line)
    }

    /// The other end deleted a name, or would.
    ///
    /// # Errors
    /// As of [`Self::settled`]; a breach where it was not asked to.
    pub(super) fn deleted(&self, path: &[u8]) -> Result<(), Failure> {
        let count = self.deleted.fetch_add(1, Ordering::Relaxed) + 1;
        self.request.check_deleted(path, count)?;
        let status = match self.spec.dry_run {
            true => FileStatus::WouldDelete,
            false => FileStatus::Deleted,
        };
        self.receipt.settle(&line(path, FileKind::Other, status, 0))
    }

    /// The other end has finished, with these problems: sources that are to be removed are.
    ///
    /// # Errors
    /// As of [`Self::settled`].
    pub(super) fn finished(&self, problems: Vec<String>) -> Result<(), Failure> {
        debug!(problems = problems.len(), "the other end has finished");
        let own = self.removal.remove_sources();
        for problem in problems.into_iter().take(MOST_PROBLEMS).chain(own) {
            self.gauges.failed_files.add(1);
            self.receipt
                .problem(&self.spec.destination, &one_line(&problem))?;
        }
        Ok(())
    }

    /// What it came to; all lines are in the receipt then.
    ///
    /// # Errors
    /// As of [`Self::settled`].
    pub(super) fn close(&self) -> Result<CopyReport, Failure> {
        self.receipt.finish()?;
        Ok(CopyReport {
            removed: self.removal.count(),
            ..self.receipt.report()
        })
    }
}

/// The word of a receipt for what an entry is.
const fn kind_of(file: &Sending) -> FileKind {
    match &file.found.what {
        What::File(_) if file.link_to.is_some() => FileKind::HardLink,
        What::File(_) => FileKind::File,
        What::Folder => FileKind::Folder,
        What::Link(_) => FileKind::Link,
    }
}
