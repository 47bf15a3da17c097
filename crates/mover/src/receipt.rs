//! What became of each name: counted, and written down a line each where that was asked for.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use farline_spec::{CopyReport, Failure, FileKind, FileStatus, ReceiptLine};
use tracing::debug;

use crate::message;
use crate::path_text::to_text;

/// Failures, and names skipped, that a report names; the receipt has them all.
const MOST_FAILURES: usize = 100;
/// Bytes of lines that are gathered before they are written.
const BUFFER_BYTES: usize = 256 * 1024;

/// A receipt line that says no more.
pub fn line(path: &[u8], kind: FileKind, status: FileStatus, bytes: u64) -> ReceiptLine {
    ReceiptLine {
        path: to_text(path),
        kind,
        status,
        bytes,
        resumed_bytes: 0,
        blake3: None,
        xxh3_tree: None,
        hash: None,
        reason: None,
        node: None,
    }
}

/// The receipt of one end.
#[derive(Debug)]
pub struct Receipt {
    path: Option<PathBuf>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: Option<BufWriter<File>>,
    report: CopyReport,
}

impl Receipt {
    /// A receipt that goes to `path`, or is only counted.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when the file cannot be made.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let file = path.map(File::create).transpose();
        let file = file.map_err(|error| unwritten(path, &error))?;
        Ok(Self {
            path: path.map(Path::to_path_buf),
            inner: Mutex::new(Inner {
                file: file.map(|file| BufWriter::with_capacity(BUFFER_BYTES, file)),
                report: CopyReport::default(),
            }),
        })
    }

    /// Notes what became of one name. From any thread.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when the line cannot be written.
    pub fn settle(&self, line: &ReceiptLine) -> Result<(), Failure> {
        debug!(
            entry = line.path,
            kind = line.kind.word(),
            status = line.status.word(),
            bytes = line.bytes,
            resumed_bytes = line.resumed_bytes,
            reason = line.reason,
            "entry settled"
        );
        let mut inner = self.lock();
        count(&mut inner.report, line);
        self.write(&mut inner, line)
    }

    /// Notes what went wrong besides names, at the destination `path`: however many names failed, it is said.
    ///
    /// # Errors
    /// As [`Self::settle`].
    pub fn problem(&self, path: &str, problem: &str) -> Result<(), Failure> {
        debug!(entry = path, reason = problem, "problem besides a file's content");
        let mut inner = self.lock();
        if inner.report.problems.len() < MOST_FAILURES {
            inner.report.problems.push(problem.to_owned());
        }
        inner.report.failed.files += 1;
        let line = ReceiptLine {
            path: path.to_owned(),
            kind: FileKind::Other,
            status: FileStatus::Failed,
            bytes: 0,
            resumed_bytes: 0,
            blake3: None,
            xxh3_tree: None,
            hash: None,
            reason: Some(problem.to_owned()),
            node: None,
        };
        self.write(&mut inner, &line)
    }

    fn write(&self, inner: &mut Inner, line: &ReceiptLine) -> Result<(), Failure> {
        let Some(file) = &mut inner.file else {
            return Ok(());
        };
        serde_json::to_writer(&mut *file, line)
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(b"\n"))
            .map_err(|error| unwritten(self.path.as_deref(), &error))
    }

    /// All lines are in the file.
    ///
    /// # Errors
    /// As [`Self::settle`].
    pub fn finish(&self) -> Result<(), Failure> {
        let flushed = self.lock().file.as_mut().map_or(Ok(()), Write::flush);
        flushed.map_err(|error| unwritten(self.path.as_deref(), &error))
    }

    /// Counts (`found` is not among them) and a hundred failures. What a dry run would do counts as done.
    pub fn report(&self) -> CopyReport {
        self.lock().report.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(report: &mut CopyReport, line: &ReceiptLine) {
    let tally = match (line.status, line.kind) {
        (FileStatus::Copied | FileStatus::WouldCopy, FileKind::File) => &mut report.copied,
        (FileStatus::Copied | FileStatus::WouldCopy, _) => {
            report.made += 1;
            return;
        }
        (FileStatus::Updated | FileStatus::WouldUpdate, _) => &mut report.updated,
        (FileStatus::Present, FileKind::File) => &mut report.present,
        // A folder that is there is neither made nor a file.
        (FileStatus::Present, _) => return,
        (FileStatus::Skipped, _) => {
            if report.skips.len() < MOST_FAILURES {
                report.skips.push(line.clone());
            }
            &mut report.skipped
        }
        (FileStatus::Deleted | FileStatus::WouldDelete, _) => &mut report.deleted,
        (FileStatus::Failed, _) => {
            report.vanished += u64::from(has_vanished(line));
            note_failure(&mut report.failures, line);
            &mut report.failed
        }
    };
    tally.files += 1;
    tally.bytes = tally.bytes.saturating_add(line.bytes);
    report.resumed_bytes = report.resumed_bytes.saturating_add(line.resumed_bytes);
}

/// Notes a failure, before those of what had only disappeared.
fn note_failure(failures: &mut Vec<ReceiptLine>, line: &ReceiptLine) {
    let vanished = failures.iter().position(has_vanished);
    let place = vanished.filter(|_| !has_vanished(line)).unwrap_or(failures.len());
    if place < MOST_FAILURES {
        failures.insert(place, line.clone());
        failures.truncate(MOST_FAILURES);
    }
}

fn has_vanished(line: &ReceiptLine) -> bool {
    line.reason.as_deref().is_some_and(message::has_vanished)
}

fn unwritten(path: Option<&Path>, error: &io::Error) -> Failure {
    let path = path.unwrap_or(Path::new("")).display();
    Failure::system(&format!("receipt {path} cannot be written"), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(path: &str, kind: FileKind, status: FileStatus) -> ReceiptLine {
        ReceiptLine {
            path: path.into(),
            kind,
            status,
            bytes: 10,
            resumed_bytes: 3,
            blake3: None,
            xxh3_tree: None,
            hash: None,
            reason: (status == FileStatus::Failed).then(|| "no space".into()),
            node: None,
        }
    }

    #[test]
    fn each_name_is_a_line_and_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("receipt.jsonl");
        let receipt = Receipt::open(Some(&path)).unwrap();
        let lines = [
            line("a", FileKind::File, FileStatus::Copied),
            line("b", FileKind::Folder, FileStatus::Copied),
            line("c", FileKind::Link, FileStatus::Skipped),
            line("d\\x0a", FileKind::File, FileStatus::Failed),
            line("e", FileKind::File, FileStatus::Present),
            line("f", FileKind::Folder, FileStatus::Present),
        ];
        for line in &lines {
            receipt.settle(line).unwrap();
        }
        receipt.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let read: Vec<ReceiptLine> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(read, lines);
        let report = receipt.report();
        assert_eq!(
            (report.copied.files, report.copied.bytes, report.made),
            (1, 10, 1)
        );
        assert_eq!((report.skipped.files, report.failed.files), (1, 1));
        assert_eq!((report.present.files, report.present.bytes), (1, 10));
        assert_eq!(report.failures, lines[3..4]);
    }

    #[test]
    fn a_report_names_a_hundred_failures_and_counts_all() {
        let receipt = Receipt::open(None).unwrap();
        for _ in 0..150 {
            receipt
                .settle(&line("f", FileKind::File, FileStatus::Failed))
                .unwrap();
        }
        let report = receipt.report();
        assert_eq!((report.failures.len(), report.failed.files), (100, 150));
    }

    #[test]
    fn what_failed_is_named_before_what_disappeared() {
        let receipt = Receipt::open(None).unwrap();
        let vanished = |number: usize| ReceiptLine {
            reason: Some(message::VANISHED.to_owned()),
            ..line(&number.to_string(), FileKind::File, FileStatus::Failed)
        };
        for number in 0..150 {
            receipt.settle(&vanished(number)).unwrap();
        }
        let failed = line("f", FileKind::File, FileStatus::Failed);
        receipt.settle(&failed).unwrap();
        let report = receipt.report();
        assert_eq!(
            (report.failures.len(), report.failed.files, report.vanished),
            (100, 151, 150)
        );
        assert_eq!(report.failures[..2], [failed, vanished(0)]);
    }

    #[test]
    fn a_receipt_that_cannot_be_made_is_named() {
        let failure = Receipt::open(Some(Path::new("/no/such/folder/receipt"))).unwrap_err();
        assert!(failure.message.contains("/no/such/folder/receipt"), "{failure}");
    }
}
