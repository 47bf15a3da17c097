//! The sending machine of a copy against whatever the other end may say: nothing is settled twice, nothing is copied before all of
//! it was read, no part is handed out twice unless it was asked for again, and it comes to an end.

use std::collections::BTreeMap;

use farline_spec::FileStatus;

use crate::copy::message::{Catalogue, Feedback, GRAIN_BYTES, Proved, Wants};
use crate::copy::pack::ITEM_HEADER_BYTES;
use crate::copy::sender::{
    Announcement, Cargo, Config, CopySender, Inode, Kind, Known, Look, Loss, Outcome, Piece, Reach, Span,
    Word, Work,
};
use crate::copy::{Claim, Ranges};

const G: u64 = GRAIN_BYTES;
/// Grains of the longest file.
const MOST_GRAINS: u64 = 4;
/// Entries of one play, at most.
const MOST_ENTRIES: usize = 32;

/// What was done with an entry.
#[derive(Debug, Default)]
struct Facts {
    bytes: u64,
    is_file: bool,
    is_link: bool,
    tries: u8,
    /// What was handed out.
    taken: Ranges,
    is_read: bool,
    is_settled: bool,
    is_over: bool,
}

struct Play {
    machine: CopySender<u64>,
    facts: BTreeMap<u64, Facts>,
    /// Spans that were taken and not read.
    reading: Vec<(u64, Span)>,
    records: [u64; 2],
    now_ns: u64,
    has_ended: bool,
    is_finished: bool,
}

/// Plays `data`, four bytes a step: what happens, to which entry, and two for where and how much.
///
/// # Panics
/// When the machine does, or breaks what it promises.
pub fn copy_sender(data: &[u8]) {
    let [flags, steps @ ..] = data else {
        return;
    };
    let mut machine = CopySender::new(config(*flags));
    (0..2).for_each(|stream| machine.add_stream(stream));
    let mut play = Play {
        machine,
        facts: BTreeMap::new(),
        reading: Vec::new(),
        records: [0; 2],
        now_ns: 0,
        has_ended: false,
        is_finished: false,
    };
    for step in steps.chunks_exact(4) {
        play.now_ns += 100_000_000;
        let file = u64::from(step[1] % 8);
        play.step(step[0], file, step[2], step[3]);
        play.take_outcomes();
        if play.is_finished {
            return;
        }
    }
    play.end();
}

fn config(flags: u8) -> Config {
    Config {
        sum: None,
        chunk_bytes: G,
        pack_bytes: ITEM_HEADER_BYTES + G as usize,
        range: None,
        is_dry: flags & 1 != 0,
        is_fresh: flags & 2 != 0,
        wants_unasked: flags & 1 == 0,
        joins_names: flags & 4 != 0,
        takes_names_apart: flags & 8 != 0,
        remembers_frames: flags & 16 != 0,
        most_unanswered: 8,
        most_live: 8,
        most_under_way: 1 + usize::from(flags >> 6),
    }
}

impl Play {
    fn step(&mut self, kind: u8, file: u64, first: u8, second: u8) {
        match kind % 12 {
            0 | 1 => self.announce_next(first, second),
            2 => self.say_word(),
            3 | 4 => self.take(second),
            5 => self.read_on(first),
            6 => self.hear(answer(file, first, second)),
            7 => self.hear(outcome(file, first)),
            8 => self.hear(frame_word(file, first, second)),
            9 => self.machine.lose(file, loss(first), self.now_ns),
            10 => self.look(first),
            _ => self.say_end(),
        }
    }

    /// A copy ends with what breaks the protocol; here it goes on: what was promised holds all the same.
    fn hear(&mut self, feedback: Feedback) {
        let _ = self.machine.handle_message(feedback, self.now_ns);
    }

    fn announce_next(&mut self, kind: u8, size: u8) {
        if !self.has_ended && self.facts.len() < MOST_ENTRIES && self.machine.has_room() {
            let bytes = u64::from(size) * (MOST_GRAINS * G / 255);
            let inode = (kind % 4 == 0).then(|| u64::from(size % 4));
            self.announce(kind % 8 != 1, bytes, inode, 1, None);
        }
    }

    fn announce(
        &mut self,
        is_file: bool,
        bytes: u64,
        inode: Option<u64>,
        tries: u8,
        apart_from: Option<u64>,
    ) {
        let bytes = if is_file { bytes } else { 0 };
        let names = inode.filter(|_| is_file).map(|number| {
            let device = 1;
            (Inode { device, number }, 3)
        });
        let about = Announcement {
            kind: if is_file { Kind::File } else { Kind::Other },
            bytes,
            facts_bytes: 1,
            names,
            tries,
            apart_from,
            may_have_holes: bytes % 2 == 1,
        };
        let mut link = None;
        let number = self.machine.announce(about, |number, link_to| {
            link = link_to;
            number
        });
        let facts = Facts {
            bytes,
            is_file,
            is_link: link.is_some(),
            tries,
            ..Facts::default()
        };
        assert!(
            self.facts.insert(number, facts).is_none(),
            "a number of two entries"
        );
        self.machine.said();
    }

    fn say_word(&mut self) {
        match self.machine.poll_word() {
            Some(Word::Lost { file, again, .. }) => {
                let facts = self.facts.get_mut(&file).expect("it was announced");
                assert!(!std::mem::replace(&mut facts.is_over, true), "lost twice");
                assert!(facts.is_settled != again, "{file}: {facts:?}");
                let (bytes, tries, is_link) = (facts.bytes, facts.tries, facts.is_link);
                if again {
                    assert!(!self.has_ended, "announced after the end");
                    self.announce(true, bytes, None, tries + 1, is_link.then_some(file));
                }
            }
            Some(Word::Message(Catalogue::Settled { file, .. })) => {
                assert!(self.facts[&file].is_read, "{file} is said to be read");
            }
            Some(Word::Message(_)) | None => {}
        }
    }

    fn take(&mut self, second: u8) {
        let own = self.reading.first().map(|(file, _)| *file);
        match self.machine.take(own.filter(|_| second % 2 == 0)) {
            Some(Work::Pack(batch)) => self.pack(&batch.files, second),
            Some(Work::File(file, _)) => self.cut(file, second),
            None => {}
        }
    }

    fn pack(&mut self, files: &[(u64, u64)], second: u8) {
        let mut numbers = Vec::new();
        for (file, _) in files {
            if self.machine.item_read(*file, None) {
                self.facts.get_mut(file).expect("it was announced").is_read = true;
                numbers.push(*file);
            }
        }
        self.machine.pack_done();
        self.carry(second, Cargo::Pack(numbers.into()));
    }

    fn carry(&mut self, second: u8, cargo: Cargo) {
        let stream = usize::from(second % 2);
        let carried = self.machine.carry(stream as u16, cargo);
        if carried.expect("it was handed out") {
            self.records[stream] += 1;
        }
    }

    fn cut(&mut self, file: u64, second: u8) {
        let part = self.machine.next_part(file);
        let reach = part.map(|(offset, stop)| Reach {
            end: (offset + G).min(stop),
            is_hole: second % 3 == 0,
        });
        let Some(span) = self.machine.cut(file, reach) else {
            return;
        };
        let facts = self.facts.get_mut(&file).expect("it was announced");
        assert!(
            span.offset < span.end && span.end <= facts.bytes,
            "{span:?} {facts:?}"
        );
        if !span.is_repeat {
            let claim = facts.taken.claim(span.offset, span.end - span.offset);
            assert!(matches!(claim, Claim::Taken), "{span:?} was handed out before");
        }
        match span.is_hole {
            true => self.known(file, span.offset, span.end, false),
            false => self.reading.push((file, span)),
        }
    }

    fn read_on(&mut self, place: u8) {
        if self.reading.is_empty() {
            return;
        }
        let place = usize::from(place) % self.reading.len();
        let (file, span) = &mut self.reading[place];
        let (file, offset, is_repeat) = (*file, span.offset, span.is_repeat);
        let end = (offset + G).min(span.end);
        span.offset = end;
        if end == span.end {
            self.reading.swap_remove(place);
        }
        self.known(file, offset, end, is_repeat);
        if self.machine.is_under_way(file) {
            let bytes = (end - offset) as u32;
            self.carry(place as u8, Cargo::Chunk { file, offset, bytes });
            self.machine.credit(file, end - offset);
        }
    }

    fn known(&mut self, file: u64, offset: u64, end: u64, is_repeat: bool) {
        let piece = Piece {
            offset,
            bytes: end - offset,
            hash: None,
            is_repeat,
        };
        match self.machine.part_read(file, &piece) {
            Known::All => {
                if self.machine.all_read(file) {
                    self.facts.get_mut(&file).expect("it was announced").is_read = true;
                }
            }
            Known::Twice => panic!("nothing is hashed"),
            Known::Part | Known::Late => {}
        }
    }

    fn look(&mut self, kind: u8) {
        if let Some((file, _)) = self.machine.poll_look(self.now_ns) {
            let look = match kind % 4 {
                0 => Look::Changing,
                1 => Look::Gone(String::new()),
                2 => Look::Rested(1),
                _ => Look::Rested(u64::MAX),
            };
            self.machine.looked(file, look, self.now_ns);
        }
    }

    fn say_end(&mut self) {
        if let Some(entries) = self.machine.say_end() {
            assert_eq!(entries, self.facts.len() as u64);
            self.has_ended = true;
        }
    }

    fn take_outcomes(&mut self) {
        while let Some(outcome) = self.machine.poll_outcome() {
            match outcome {
                Outcome::Settled(settled) => {
                    let file = settled.file;
                    let facts = self.facts.get_mut(&file).expect("it was announced");
                    let was_over = std::mem::replace(&mut facts.is_settled, true) || facts.is_over;
                    assert!(!was_over, "{file} was settled twice");
                    let needs_reading = facts.is_file && !facts.is_link && facts.bytes > 0;
                    let is_copied = settled.status == FileStatus::Copied;
                    assert!(
                        !is_copied || !needs_reading || facts.is_read || self.is_all_there(file),
                        "{file}"
                    );
                }
                Outcome::Finished(_) => {
                    let is_open = |(_, facts): (&u64, &Facts)| !facts.is_settled && !facts.is_over;
                    assert!(!self.facts.iter().any(is_open), "finished before all was settled");
                    self.is_finished = true;
                }
                Outcome::Wanted { .. }
                | Outcome::Repeated { .. }
                | Outcome::Arrived { .. }
                | Outcome::Deleted(_)
                | Outcome::StreamLost { .. } => {}
            }
        }
        self.machine.take_progress();
    }

    /// Whether the other end said that it had all parts of an entry, none of which is read then.
    fn is_all_there(&self, file: u64) -> bool {
        let facts = &self.facts[&file];
        facts.taken.count() == 0
    }

    /// The other end fails whatever is left: nothing remains, and the end can be said.
    fn end(mut self) {
        // It may have said so before.
        self.hear(Feedback::Ready { fresh: false });
        self.take_outcomes();
        for _ in 0..20 {
            self.now_ns += 10_000_000_000;
            while let Some((file, _)) = self.machine.poll_look(self.now_ns) {
                self.machine.looked(file, Look::Gone(String::new()), self.now_ns);
            }
            self.take_outcomes();
            while self.machine.words_waiting() > 0 {
                self.say_word();
            }
            let live: Vec<u64> = self.facts.keys().copied().collect();
            for file in live {
                let reason = String::new();
                self.hear(Feedback::Failed { file, reason });
            }
            self.take_outcomes();
        }
        assert_eq!(self.machine.live(), 0, "something is still under way");
        if !self.has_ended {
            self.say_end();
            assert!(self.has_ended, "the end cannot be said");
        }
    }
}

fn answer(file: u64, first: u8, second: u8) -> Feedback {
    let part = Proved {
        offset: u64::from(first % MOST_GRAINS as u8) * G,
        bytes: G,
        hash: None,
    };
    let wants = match second % 9 {
        0 | 1 => Wants::All,
        2 => Wants::Rest(vec![part]),
        3 => Wants::Present(None),
        4 => Wants::Made,
        5 => Wants::Refused(String::new()),
        6 => Wants::Updated(None),
        7 => Wants::LeftOut(String::new()),
        _ => {
            return Feedback::Ready {
                fresh: first % 2 == 0,
            };
        }
    };
    Feedback::Answers {
        first: file,
        wants: vec![wants],
    }
}

fn outcome(file: u64, first: u8) -> Feedback {
    match first % 6 {
        0 | 1 => Feedback::Done { file, hash: None },
        2 => Feedback::Failed {
            file,
            reason: String::new(),
        },
        3 => Feedback::Whole { file },
        4 => Feedback::Apart { file },
        _ => Feedback::Finished { problems: Vec::new() },
    }
}

fn frame_word(file: u64, first: u8, second: u8) -> Feedback {
    let (stream, record) = (u16::from(first % 3), u64::from(second % 8));
    match first % 4 {
        0 => Feedback::Unopened { stream, record },
        1 => Feedback::OutOfStep { stream, record },
        _ => Feedback::Again {
            file,
            offset: u64::from(second % MOST_GRAINS as u8) * G,
            bytes: G,
        },
    }
}

fn loss(kind: u8) -> Loss {
    match kind % 2 {
        0 => Loss::Changed,
        _ => Loss::For(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn whatever_is_said_nothing_is_settled_twice_or_copied_before_it_was_read(
            flags in any::<u8>(),
            steps in prop::collection::vec((0u8..12, 0u8..4, any::<u8>(), any::<u8>()), 0..60),
        ) {
            // Without that word everything else breaks the protocol.
            let ready = [6, 0, flags, 8];
            let steps = steps.into_iter().flat_map(|(kind, file, first, second)| [kind, file, first, second]);
            copy_sender(&std::iter::once(flags).chain(ready).chain(steps).collect::<Vec<_>>());
        }
    }
}
