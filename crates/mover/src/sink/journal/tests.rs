//! Many files done: found again, each by its own key, and cheap to hold.

use std::io::{Seek, SeekFrom, Write};

use farline_spec::SumKind;

use super::*;
use crate::sum::content_sum;

const FILES: u64 = 100_000;

fn source(number: u64) -> Source {
    Source {
        path: format!("d/{number}").into_bytes(),
        bytes: number,
        mtime_ns: 1,
        ctime_ns: 2,
    }
}

/// Sums of both kinds, and none.
fn sum_of(number: u64) -> Option<Sum> {
    let kind = match number % 2 {
        0 => SumKind::Blake3,
        _ => SumKind::Xxh3,
    };
    (number > 0).then(|| content_sum(kind, &number.to_le_bytes()))
}

#[test]
fn every_file_done_is_found_again_after_a_new_start_and_a_compaction() {
    let mut file = tempfile::tempfile().unwrap();
    compact([7; 16], None, &Memory::default(), &mut file).unwrap();
    let journal = Journal::new(file.try_clone().unwrap(), false).unwrap();
    for number in 0..FILES {
        journal.done(source(number).key(), sum_of(number), None).unwrap();
    }
    journal.flush().unwrap();
    for _ in 0..2 {
        file.seek(SeekFrom::Start(0)).unwrap();
        let memory = load(&file, &[7; 16], "boot", |_, _| true).unwrap();
        for number in (0..FILES).step_by(997) {
            assert_eq!(memory.done(&source(number).key()), Some(sum_of(number)));
        }
        assert_eq!(memory.done(&source(FILES).key()), None);
        file.set_len(0).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        compact([7; 16], None, &memory, &mut file).unwrap();
        file.flush().unwrap();
    }
    file.seek(SeekFrom::Start(0)).unwrap();
    assert!(
        load(&file, &[8; 16], "boot", |_, _| true).unwrap().is_empty(),
        "another copy's journal"
    );
}

#[test]
fn what_was_not_brought_to_a_device_is_not_believed_after_the_machine_started_anew() {
    let mut file = tempfile::tempfile().unwrap();
    compact([7; 16], Some("one".to_owned()), &Memory::default(), &mut file).unwrap();
    let journal = Journal::new(file.try_clone().unwrap(), false).unwrap();
    journal.done(source(1).key(), None, None).unwrap();
    journal.flush().unwrap();
    for (boot, is_known) in [("one", true), ("two", false)] {
        file.seek(SeekFrom::Start(0)).unwrap();
        let memory = load(&file, &[7; 16], boot, |_, _| true).unwrap();
        assert_eq!(memory.done(&source(1).key()).is_some(), is_known);
    }
}
