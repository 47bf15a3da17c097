//! The machine by itself: what is asked of it in which order, and what it answers.

use proptest::prelude::*;

use super::super::message::{Catalogue, Entry, EntryKind, Feedback, GRAIN_BYTES, VANISHED, Wants};
use super::table::Event;
use super::*;

const G: u64 = GRAIN_BYTES;

fn config() -> Config {
    Config {
        sum: None,
        is_durable: false,
        has_further_names: true,
        takes_names_apart: true,
        range: None,
        chunk_bytes: None,
        most_entries: 8,
        most_bytes: 100 * G,
        most_open_files: 8,
        most_parts: 4,
    }
}

fn begun(config: Config) -> CopyReceiver<u64> {
    let mut machine = CopyReceiver::new(config);
    machine.start(false);
    let begin = Catalogue::Begin {
        chunk_bytes: G,
        top: None,
        asks_whole: true,
    };
    assert!(matches!(machine.handle_message(begin), Ok(Heard::Begin(None))));
    machine
}

fn entry() -> Catalogue {
    Catalogue::Entry(Entry {
        path: b"a".to_vec(),
        kind: EntryKind::Folder,
        mode: 0,
        mtime_ns: 0,
        ctime_ns: 0,
        xattrs: Vec::new(),
    })
}

/// Announces a file of so many bytes; its number.
fn file(machine: &mut CopyReceiver<u64>, bytes: u64) -> u64 {
    let Ok(Heard::Look(number, _)) = machine.handle_message(entry()) else {
        panic!("an entry is to be looked at");
    };
    let wanted = Looked::Wanted {
        kept: number,
        bytes,
        facts_bytes: 1,
        key: Some([number as u8; 16]),
        proved: Vec::new(),
    };
    machine.looked(wanted).unwrap();
    number
}

#[test]
fn attributes_of_the_destination_folder_come_before_all_entries() {
    let mut machine = begun(config());
    let attributes = || Catalogue::TopXattrs(Vec::new());
    assert!(matches!(
        machine.handle_message(attributes()),
        Ok(Heard::TopXattrs(_))
    ));
    file(&mut machine, 1);
    assert_eq!(
        machine.handle_message(attributes()).unwrap_err().kind,
        FailureKind::Protocol
    );
}

fn further_name(machine: &mut CopyReceiver<u64>, of: u64) -> u64 {
    let Ok(Heard::Look(number, _)) = machine.handle_message(entry()) else {
        panic!("an entry is to be looked at");
    };
    let of = [of as u8; 16];
    let looked = Looked::FurtherName {
        kept: number,
        facts_bytes: 1,
        of,
    };
    machine.looked(looked).unwrap();
    number
}

fn chunk(file: u64, offset: u64, bytes: u64) -> Chunk {
    Chunk {
        file,
        offset,
        bytes,
        hash: None,
    }
}

fn end(machine: &mut CopyReceiver<u64>) {
    let entries = machine.entries();
    let end = Catalogue::End { entries, whole: true };
    assert!(matches!(machine.handle_message(end), Ok(Heard::End(_))));
}

fn said(machine: &mut CopyReceiver<u64>) -> Vec<Feedback> {
    std::iter::from_fn(|| machine.poll_message()).collect()
}

/// Names what is ready.
fn name(machine: &mut CopyReceiver<u64>, file: u64) {
    let Some(Action::Finish(ready)) = machine.poll_action(0) else {
        panic!("a file is ready");
    };
    assert_eq!(ready.iter().map(|ready| ready.file).collect::<Vec<_>>(), [file]);
    assert!(machine.conclude(file, Event::Name).is_some());
    machine.leave(file, Parting::Named(None));
    machine.did();
}

#[test]
fn a_file_is_named_when_every_part_is_written_and_its_end_was_said() {
    let mut machine = begun(config());
    let number = file(&mut machine, G + 5);
    for part in [chunk(number, G, 5), chunk(number, 0, G)] {
        assert_eq!(machine.check_chunk(&part), Ok(Known::Open(number)));
        assert_eq!(machine.take_chunk(&part, None), Ok(Admission::Write));
        assert_eq!(machine.take_chunk(&part, None), Ok(Admission::Drop), "twice");
    }
    assert_eq!(machine.written(&chunk(number, G, 5)), Ok(Proof::Part));
    assert!(machine.conclude(number, Event::Name).is_none(), "not whole");
    assert_eq!(machine.written(&chunk(number, 0, G)), Ok(Proof::All));
    assert!(machine.poll_action(0).is_none(), "not settled");
    assert!(said(&mut machine).contains(&Feedback::Whole { file: number }));
    let settled = Catalogue::Settled {
        file: number,
        hash: None,
    };
    machine.handle_message(settled).unwrap();
    end(&mut machine);
    name(&mut machine, number);
    assert!(said(&mut machine).contains(&Feedback::Done {
        file: number,
        hash: None
    }));
    assert!(matches!(
        machine.poll_action(0),
        Some(Action::Close { whole: true })
    ));
}

#[test]
fn what_came_whole_in_a_pack_is_not_written_again_while_it_waits_for_its_name() {
    let mut machine = begun(Config {
        is_durable: true,
        ..config()
    });
    let number = file(&mut machine, 5);
    let item = Item {
        file: number,
        bytes: 5,
        hash: None,
    };
    assert_eq!(machine.check_item(&item), Ok(Known::Open(number)));
    assert_eq!(machine.take_item(&item, None), Ok(Admission::Write));
    assert_eq!(machine.items_written(&[number], 0), Ok(Vec::new()), "its group");
    let part = chunk(number, 0, 5);
    assert_eq!(machine.check_chunk(&part), Ok(Known::Open(number)));
    assert_eq!(machine.take_chunk(&part, None), Ok(Admission::Drop));
    assert_eq!(machine.claim_hole(number, 0, 5), Ok(Vec::new()));
}

#[test]
fn an_entry_is_settled_once_and_nothing_comes_after_all_before_it_is_told() {
    let mut machine = begun(config());
    let number = file(&mut machine, 5);
    end(&mut machine);
    assert!(machine.conclude(number, Event::GiveUp).is_some());
    assert!(machine.conclude(number, Event::GiveUp).is_none());
    assert!(machine.poll_action(0).is_none(), "it was not told");
    machine.leave(number, Parting::Failed("no".to_owned()));
    assert!(matches!(machine.poll_action(0), Some(Action::Close { .. })));
    assert!(machine.has_stragglers());
}

#[test]
fn further_names_wait_for_their_file_and_are_told_apart_where_it_does_not_come() {
    for takes_names_apart in [true, false] {
        let mut machine = begun(Config {
            takes_names_apart,
            ..config()
        });
        let number = file(&mut machine, 5);
        let further = further_name(&mut machine, number);
        assert!(machine.poll_action(0).is_none());
        machine.conclude(number, Event::GiveUp).unwrap();
        machine.leave(number, Parting::Failed("no".to_owned()));
        let late = further_name(&mut machine, number);
        for further in [further, late] {
            let is_apart = said(&mut machine).contains(&Feedback::Apart { file: further });
            let gives_up = matches!(machine.poll_action(0), Some(Action::GiveUp(file, _)) if file == further);
            assert_eq!((is_apart, gives_up), (takes_names_apart, !takes_names_apart));
            if takes_names_apart {
                break;
            }
        }
    }
}

#[test]
fn data_of_what_was_not_announced_wait_until_there_is_an_end() {
    let mut machine = begun(config());
    assert_eq!(machine.known(0), Ok(Known::NotYet));
    end(&mut machine);
    assert_eq!(machine.known(0).unwrap_err().kind, FailureKind::Protocol);
}

#[test]
fn what_a_file_takes_of_the_parts_is_given_back_with_it() {
    let mut machine = begun(config());
    let number = file(&mut machine, 20 * G);
    let most = config().most_parts as u64;
    for place in 0..most {
        let part = chunk(number, 2 * place * G, G);
        assert_eq!(machine.take_chunk(&part, None), Ok(Admission::Write));
    }
    let other = file(&mut machine, 20 * G);
    let refused = machine.take_chunk(&chunk(other, 0, G), None);
    assert_eq!(refused.unwrap_err().kind, FailureKind::Limit);
    machine.conclude(number, Event::GiveUp).unwrap();
    machine.leave(number, Parting::Lost(false));
    let taken = machine.take_chunk(&chunk(other, 4 * G, G), None);
    assert_eq!(taken, Ok(Admission::Write));
}

#[test]
fn a_ticket_limits_what_is_wanted_and_what_is_tried_again_counts_once() {
    let mut machine = begun(config());
    let number = file(&mut machine, 100 * G);
    let lost = Catalogue::Lost {
        file: number,
        reason: String::new(),
        again: true,
    };
    assert!(matches!(machine.handle_message(lost), Ok(Heard::Lost { .. })));
    machine.leave(number, Parting::Lost(true));
    file(&mut machine, 100 * G);
    machine.handle_message(entry()).unwrap();
    let more = Looked::Wanted {
        kept: 9,
        bytes: 1,
        facts_bytes: 1,
        key: None,
        proved: Vec::new(),
    };
    assert_eq!(machine.looked(more).unwrap_err().kind, FailureKind::Limit);
}

#[test]
fn a_file_that_cannot_be_read_forbids_deletions_and_one_that_vanished_does_not() {
    for (reason, whole) in [(VANISHED, true), ("cannot be read: permission denied", false)] {
        let mut machine = begun(config());
        let number = file(&mut machine, 5);
        let lost = Catalogue::Lost {
            file: number,
            reason: reason.to_owned(),
            again: false,
        };
        machine.handle_message(lost).unwrap();
        machine.leave(number, Parting::Lost(false));
        end(&mut machine);
        let Some(Action::Close { whole: is_whole }) = machine.poll_action(0) else {
            panic!("{reason}: nothing is closed");
        };
        assert_eq!(is_whole, whole, "{reason}");
    }
}

#[test]
fn answers_come_in_order_and_the_first_message_first() {
    let mut machine = begun(config());
    file(&mut machine, 5);
    machine.handle_message(entry()).unwrap();
    let made = Looked::Answered {
        wants: Wants::Made,
        file: None,
    };
    machine.looked(made).unwrap();
    let wants = vec![Wants::All, Wants::Made];
    let first = Feedback::Ready { fresh: false };
    assert_eq!(said(&mut machine), [first, Feedback::Answers { first: 0, wants }]);
}

#[test]
fn streams_may_fail_but_for_the_last() {
    let mut machine = begun(config());
    assert!(machine.handle_out_of_step(0, 7, false).is_ok());
    assert!(machine.handle_out_of_step(1, 9, true).is_err());
}

proptest! {
    /// Parts in any order and of any shape: a file is ready when they are all of it, and never before.
    #[test]
    fn a_file_is_ready_exactly_when_its_parts_are_all_of_it(firsts in prop::collection::vec(0u64..6, 0..20)) {
        let mut machine = begun(Config { most_parts: 100, ..config() });
        let number = file(&mut machine, 6 * G);
        machine.handle_message(Catalogue::Settled { file: number, hash: None }).unwrap();
        let mut blocks = [false; 6];
        for first in firsts {
            let part = chunk(number, first * G, G);
            if machine.check_chunk(&part) != Ok(Known::Open(number)) {
                continue;
            }
            let is_new = !std::mem::replace(&mut blocks[first as usize], true);
            let admission = if is_new { Admission::Write } else { Admission::Drop };
            prop_assert_eq!(machine.take_chunk(&part, None), Ok(admission));
            if is_new {
                machine.written(&part).unwrap();
            }
            let is_all = blocks.iter().all(|block| *block);
            prop_assert_eq!(machine.work_waiting() > 0, is_all);
        }
    }
}
