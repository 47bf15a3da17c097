//! One report of what both ends of a copy say.

use farline_mover::Gauges;
use farline_spec::{CopyEnd, CopyReport};

use crate::message::tame_line;

/// Longest word of a peer in a report: an engine, a file system, a cipher.
const MAX_WORD_BYTES: usize = 64;
/// Longest line that says how something was not kept.
const MAX_LINE_BYTES: usize = 200;
/// Most kinds of things that the other end could not keep.
const MAX_NOT_KEPT: usize = 32;

/// The times of one end, as its gauges have them.
pub fn fill_in(end: &mut CopyEnd, gauges: &Gauges) {
    let us = |ns: u64| ns / 1_000;
    end.file_us = us(gauges.file_ns.get());
    end.name_us = us(gauges.name_ns.get());
    end.hash_us = us(gauges.hash_ns.get());
    end.cipher_us = us(gauges.cipher_ns.get());
    end.stream_us = us(gauges.stream_ns.get());
    end.sync_us = us(gauges.sync_ns.get());
    end.starved_us = us(gauges.starved_ns.get());
    // Where the kernel does not tell, the figure stays 0, which is "not known" in a report.
    end.peak_memory_bytes = farline_sys::process::peak_memory_bytes().unwrap_or(0);
}

/// The client's own report with what the server says about its end.
pub fn merged(own: &CopyReport, far: Option<&CopyReport>, client_sends: bool) -> CopyReport {
    let mut report = own.clone();
    let Some(far) = far else { return report };
    if client_sends {
        report.receiver = far.receiver.clone();
        report.not_kept.clone_from(&far.not_kept);
        report.unset_owners = far.unset_owners;
        report.unset_groups = far.unset_groups;
    } else {
        report.sender = far.sender.clone();
    }
    report
}

/// A report as it goes to the other end, or came from there: its names stay where they are, its words are short.
pub fn for_the_wire(mut report: CopyReport) -> CopyReport {
    // Both ends know them, and an older one has no such fields.
    report.hash.clear();
    report.encrypted_by = None;
    report.vanished = 0;
    report.failures.clear();
    report.skips.clear();
    report.problems.clear();
    report.not_kept.truncate(MAX_NOT_KEPT);
    for lost in &mut report.not_kept {
        lost.how = cut(&lost.how, MAX_LINE_BYTES);
    }
    let words = [
        &mut report.cipher,
        &mut report.sender.engine,
        &mut report.sender.file_system,
        &mut report.receiver.engine,
        &mut report.receiver.file_system,
    ];
    for word in words {
        *word = cut(word, MAX_WORD_BYTES);
    }
    report
}

/// A line of the other end without control characters, at most so long.
fn cut(line: &str, most_bytes: usize) -> String {
    let mut tame = tame_line(line);
    let end = (0..=tame.len().min(most_bytes))
        .rev()
        .find(|&at| tame.is_char_boundary(at));
    tame.truncate(end.unwrap_or(0));
    tame
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::{FileKind, FileStatus, ReceiptLine};

    fn report(engine: &str) -> CopyReport {
        let mut report = CopyReport::default();
        report.sender.engine = format!("{engine} reads");
        report.receiver.engine = format!("{engine} writes");
        report.made = engine.len() as u64;
        report
    }

    #[test]
    fn each_end_tells_of_itself_and_the_client_counts() {
        let push = merged(&report("near"), Some(&report("distant")), true);
        assert_eq!(
            (push.sender.engine.as_str(), push.receiver.engine.as_str()),
            ("near reads", "distant writes")
        );
        let pull = merged(&report("near"), Some(&report("distant")), false);
        assert_eq!(
            (pull.sender.engine.as_str(), pull.receiver.engine.as_str()),
            ("distant reads", "near writes")
        );
        assert_eq!((push.made, pull.made), (4, 4));
        assert_eq!(merged(&report("near"), None, true), report("near"));
    }

    #[test]
    fn a_report_on_its_way_is_short_and_tame() {
        let mut long = report("x\x1b");
        long.receiver.file_system = "ü".repeat(5000);
        long.failures.push(ReceiptLine {
            path: "p".repeat(10_000),
            kind: FileKind::File,
            status: FileStatus::Failed,
            bytes: 0,
            resumed_bytes: 0,
            blake3: None,
            xxh3_tree: None,
            hash: None,
            reason: None,
            node: None,
        });
        let tame = for_the_wire(long);
        assert_eq!(tame.sender.engine, "x  reads");
        assert!(tame.failures.is_empty() && tame.receiver.file_system.len() == 64);
    }
}
