//! A receiving end that keeps everything in memory and can be told to answer as no real one would.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use farline_mover::frame::{FrameKind, Header};
use farline_mover::message::{self, Catalogue, Entry, EntryKind, Feedback, Wants};
use farline_mover::sum::content_sum;
use farline_mover::{Arrived, Frame, Inlet, Outlet, SendEnd, Sum, pack};
use farline_spec::{CopySpec, FileStatus};

use super::{Into, OutOf, Sent, Weather, drive_sender, link, setup, tree};

/// What is wanted of an entry, by its number.
pub type Wanting = dyn Fn(u64, &Entry) -> Wants + Send + Sync;

/// How it behaves.
pub struct Manner {
    /// What it says of the destination.
    pub is_fresh: bool,
    /// Says nothing until data come: its destination was said to be vacant before.
    pub is_late: bool,
    /// What it wants of an entry of a file with content.
    pub wants: Box<Wanting>,
    /// Called once for each chunk and item that comes, before it is taken: may ask for it again.
    pub spoils: Box<dyn Fn(u64, u64) -> bool + Send + Sync>,
    /// Called when all of a file is here, before it says so where that was asked for.
    pub arrived: Box<dyn Fn(&Entry) + Send + Sync>,
    /// Keeps content.
    pub keeps: bool,
    /// Takes what it wants for settled: no data will come.
    pub is_dry: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            is_fresh: true,
            is_late: false,
            wants: Box::new(|_, _| Wants::All),
            spoils: Box::new(|_, _| false),
            arrived: Box::new(|_| {}),
            keeps: true,
            is_dry: false,
        }
    }
}

/// One file or other name as it came.
#[derive(Debug, Clone)]
pub struct Taken {
    /// What was said of it.
    pub entry: Entry,
    /// Its content, by offset.
    pub parts: BTreeMap<u64, Vec<u8>>,
    /// Holes: offset and length.
    pub holes: Vec<(u64, u64)>,
    /// Bytes that have come, holes and what it had before included.
    pub bytes: u64,
    /// Its hash, once settled.
    pub hash: Option<Sum>,
}

impl Taken {
    /// The content, holes as zeros.
    pub fn content(&self) -> Vec<u8> {
        let mut content = vec![0; self.bytes as usize];
        for (offset, part) in &self.parts {
            content[*offset as usize..][..part.len()].copy_from_slice(part);
        }
        content
    }
}

#[derive(Default)]
struct State {
    entries: HashMap<u64, Taken>,
    early: HashMap<u64, Vec<(u64, Vec<u8>)>>,
    settled: HashMap<u64, Option<Sum>>,
    /// Numbers done, lost or answered for good.
    over: HashMap<u64, bool>,
    end: Option<(u64, bool)>,
    asks_whole: bool,
    said_whole: HashSet<u64>,
    said_finished: bool,
    lost: Vec<(u64, String, bool)>,
    unannounced: Vec<(Vec<u8>, FileStatus)>,
    all_announced: bool,
}

/// The receiving end.
pub struct Taker {
    manner: Manner,
    state: Mutex<State>,
    is_over: AtomicBool,
    has_data: AtomicBool,
    into: Sender<Feedback>,
    out_of: Receiver<Feedback>,
}

/// What came of a copy.
pub struct Outcome {
    /// The sending end's side of it.
    pub sent: Sent,
    /// What was taken and not lost, by path.
    pub taken: BTreeMap<Vec<u8>, Taken>,
    /// What was lost: path, reason, whether it was to come again.
    pub lost: Vec<(Vec<u8>, String, bool)>,
    /// Names that were left out or failed without being announced.
    pub unannounced: Vec<(Vec<u8>, FileStatus)>,
    /// What the end of the catalogue said: entries, whole.
    pub end: Option<(u64, bool)>,
}

/// Runs a copy of `spec` to a taker of this manner over `streams` streams.
pub fn copy(spec: &CopySpec, streams: u16, manner: Manner) -> Outcome {
    let end = SendEnd::start(setup(spec, streams, None)).expect("a sending end");
    take_from(&end, streams, manner)
}

/// As [`copy`], of an end that has begun.
pub fn take_from(end: &SendEnd, streams: u16, manner: Manner) -> Outcome {
    let weather = Weather::fair();
    let (data_into, data_out_of): (Vec<Into>, Vec<OutOf>) = (0..streams).map(|_| link(&weather)).unzip();
    let (catalogue_into, catalogue_out_of) = link(&weather);
    let (feedback_into, feedback_out_of) = link(&weather);
    let (into, out_of) = unbounded();
    let taker = Taker {
        manner,
        state: Mutex::default(),
        is_over: AtomicBool::new(false),
        has_data: AtomicBool::new(false),
        into,
        out_of,
    };
    let sent = std::thread::scope(|scope| {
        for inlet in data_out_of {
            scope.spawn(|| taker.take_data(inlet));
        }
        scope.spawn(|| {
            taker.take_catalogue(catalogue_out_of);
            taker.is_over.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| taker.say(feedback_into));
        drive_sender(end, data_into, catalogue_into, feedback_out_of)
    });
    taker.outcome(sent)
}

fn wait_for(word: &AtomicBool) {
    let since = Instant::now();
    while !word.load(Ordering::Relaxed) {
        assert!(since.elapsed() < Duration::from_secs(20), "nothing comes");
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Taker {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a taker that did not panic")
    }

    fn take_data(&self, mut inlet: OutOf) {
        let mut frame = Frame::new(16 << 20);
        while let Ok(arrived) = inlet.receive(&mut frame) {
            match arrived {
                Arrived::End => return,
                Arrived::Frame => self.take_frame(&frame),
                _ => {}
            }
        }
    }

    fn take_frame(&self, frame: &Frame) {
        let header = frame.header().expect("a header");
        self.has_data.store(true, Ordering::Relaxed);
        let mut state = self.lock();
        match header.kind {
            FrameKind::Chunk => {
                if !(self.manner.spoils)(header.file, header.offset) {
                    state.take(header.file, header.offset, frame.payload(), self.manner.keeps);
                } else {
                    self.again(header.file, header.offset, u64::from(header.payload_bytes));
                }
                self.settle(&mut state, header.file);
            }
            FrameKind::Pack => {
                for item in pack::items(frame.payload()) {
                    let item = item.expect("an item");
                    if (self.manner.spoils)(item.file, 0) {
                        self.again(item.file, 0, item.content.len() as u64);
                        continue;
                    }
                    if let Some(hash) = item.hash.filter(|_| self.manner.keeps) {
                        assert_eq!(hash, content_sum(hash.kind(), item.content));
                    }
                    state.take(item.file, 0, item.content, self.manner.keeps);
                    state.settled.insert(item.file, item.hash);
                    self.settle(&mut state, item.file);
                }
            }
            _ => panic!("a frame of messages among data"),
        }
    }

    fn again(&self, file: u64, offset: u64, bytes: u64) {
        let again = Feedback::Again { file, offset, bytes };
        self.into.send(again).expect("room");
    }

    /// Says that a file is whole or done, once it is.
    fn settle(&self, state: &mut State, file: u64) {
        let Some(hash) = state.settled.get(&file).copied() else {
            return self.whole(state, file);
        };
        let Some(taken) = state.entries.get_mut(&file) else {
            return;
        };
        let EntryKind::File { bytes, .. } = taken.entry.kind else {
            return;
        };
        if taken.bytes < bytes || state.over.contains_key(&file) {
            return;
        }
        taken.hash = hash;
        state.over.insert(file, true);
        self.into.send(Feedback::Done { file, hash }).expect("room");
        self.finish(state);
    }

    fn whole(&self, state: &mut State, file: u64) {
        let Some(taken) = state.entries.get(&file).filter(|_| state.asks_whole) else {
            return;
        };
        let EntryKind::File { bytes, .. } = taken.entry.kind else {
            return;
        };
        if taken.bytes >= bytes && !state.over.contains_key(&file) && state.said_whole.insert(file) {
            (self.manner.arrived)(&taken.entry);
            self.into.send(Feedback::Whole { file }).expect("room");
        }
    }

    fn finish(&self, state: &mut State) {
        let entries = state.end.map(|(entries, _)| entries as usize);
        if entries == Some(state.over.len()) && !std::mem::replace(&mut state.said_finished, true) {
            let problems = Vec::new();
            self.into.send(Feedback::Finished { problems }).expect("room");
        }
    }

    fn take_catalogue(&self, mut inlet: OutOf) {
        let mut frame = Frame::new(message::MESSAGE_FRAME_BYTES);
        let fresh = self.manner.is_fresh;
        self.into.send(Feedback::Ready { fresh }).expect("room");
        let mut next = 0;
        while let Ok(arrived) = inlet.receive(&mut frame) {
            match arrived {
                Arrived::End => return,
                Arrived::Nothing | Arrived::Void | Arrived::Unopened { .. } | Arrived::OutOfStep { .. } => {}
                Arrived::Frame => {
                    for message in message::messages::<Catalogue>(frame.payload()).expect("messages") {
                        self.hear(&mut self.lock(), &mut next, message);
                    }
                }
            }
        }
    }

    fn hear(&self, state: &mut State, next: &mut u64, message: Catalogue) {
        match message {
            Catalogue::Begin { asks_whole, .. } => state.asks_whole = asks_whole,
            Catalogue::Entry(entry) => {
                let number = *next;
                *next += 1;
                self.enter(state, number, entry);
            }
            Catalogue::Hole { file, offset, bytes } => {
                let taken = state.entries.get_mut(&file).expect("a hole of an entry");
                let EntryKind::File { bytes: length, .. } = taken.entry.kind else {
                    panic!("a hole of what is no file");
                };
                assert!(message::is_part(offset, bytes, length));
                taken.holes.push((offset, bytes));
                taken.bytes += bytes;
                self.settle(state, file);
            }
            Catalogue::Settled { file, hash } => {
                state.settled.insert(file, hash);
                self.settle(state, file);
            }
            Catalogue::Lost { file, reason, again } => {
                state.over.insert(file, false);
                state.lost.push((file, reason, again));
                self.finish(state);
            }
            Catalogue::Unannounced { path, status, .. } => state.unannounced.push((path, status)),
            Catalogue::Owner(_) | Catalogue::TopXattrs(_) => {}
            Catalogue::AllAnnounced => {
                assert!(!std::mem::replace(&mut state.all_announced, true), "said once");
            }
            Catalogue::End { entries, whole } => {
                assert_eq!(entries, *next, "entries after the end");
                state.end = Some((entries, whole));
                self.finish(state);
            }
        }
    }

    fn enter(&self, state: &mut State, number: u64, entry: Entry) {
        let has_content = matches!(entry.kind, EntryKind::File { bytes: 1.., .. });
        let wants = if has_content {
            (self.manner.wants)(number, &entry)
        } else {
            Wants::Made
        };
        let mut taken = Taken {
            entry,
            parts: BTreeMap::new(),
            holes: Vec::new(),
            bytes: 0,
            hash: None,
        };
        match &wants {
            Wants::All if !self.manner.is_dry => {}
            // What is here does not spare what was sent before that was said.
            Wants::Rest(_) if self.manner.is_late => {}
            Wants::Rest(parts) => taken.bytes = parts.iter().map(|part| part.bytes).sum(),
            _ => {
                state.over.insert(number, true);
            }
        }
        state.entries.insert(number, taken);
        let answers = Feedback::Answers {
            first: number,
            wants: vec![wants],
        };
        self.into.send(answers).expect("room");
        for (offset, content) in state.early.remove(&number).unwrap_or_default() {
            state.take(number, offset, &content, self.manner.keeps);
        }
        self.settle(state, number);
        self.finish(state);
    }

    /// Sends feedback until it has said that all is finished.
    fn say(&self, mut outlet: Into) {
        let mut frame = Frame::new(message::MESSAGE_FRAME_BYTES);
        if self.manner.is_late {
            wait_for(&self.has_data);
        }
        while !self.is_over.load(Ordering::Relaxed) {
            let Ok(first) = self.out_of.recv_timeout(Duration::from_millis(50)) else {
                continue;
            };
            let mut payload = Vec::new();
            let mut is_over = false;
            for message in std::iter::once(first).chain(self.out_of.try_iter().take(1_000)) {
                is_over |= matches!(message, Feedback::Finished { .. });
                message::append(&mut payload, &message).expect("a message");
            }
            frame.room()[..payload.len()].copy_from_slice(&payload);
            frame.set(&Header {
                payload_bytes: payload.len() as u32,
                ..Header::of_messages(FrameKind::Feedback)
            });
            if outlet.send(&mut frame).is_err() || is_over {
                return;
            }
        }
    }

    fn outcome(self, sent: Sent) -> Outcome {
        let state = self.state.into_inner().expect("a taker that did not panic");
        let path = |number: &u64| state.entries[number].entry.path.clone();
        let is_taken = |number: &&u64| state.over.get(*number) != Some(&false);
        Outcome {
            taken: state
                .entries
                .keys()
                .filter(is_taken)
                .map(|number| (path(number), state.entries[number].clone()))
                .collect(),
            lost: state
                .lost
                .iter()
                .map(|(number, reason, again)| (path(number), reason.clone(), *again))
                .collect(),
            end: state.end,
            unannounced: state.unannounced,
            sent,
        }
    }
}

impl State {
    fn take(&mut self, number: u64, offset: u64, content: &[u8], keeps: bool) {
        if self.over.contains_key(&number) {
            return;
        }
        match self.entries.get_mut(&number) {
            None => {
                let early = self.early.entry(number).or_default();
                early.push((offset, content.to_vec()));
            }
            Some(taken) => {
                taken.bytes += content.len() as u64;
                if keeps {
                    let before = taken.parts.insert(offset, content.to_vec());
                    assert!(before.is_none(), "a chunk came twice");
                }
            }
        }
    }
}

/// Every file of `top` came byte for byte, with its hash, mode and time.
pub fn assert_all_came(top: &Path, prefix: &[u8], outcome: &Outcome) {
    outcome.sent.outcome.as_ref().expect("a copy that goes well");
    let expected = tree::read(top);
    for (path, thing) in &expected {
        let full = [prefix, path].concat();
        let taken = outcome
            .taken
            .get(&full)
            .unwrap_or_else(|| panic!("{} is missing", full.escape_ascii()));
        if thing.kind == 'f' {
            assert!(
                taken.content() == *thing.content.as_ref().unwrap(),
                "{}",
                full.escape_ascii()
            );
            assert_eq!(taken.entry.mode, thing.mode);
            assert_eq!(taken.entry.mtime_ns, thing.mtime_ns);
            if let Some(hash) = taken.hash {
                assert_eq!(hash, content_sum(hash.kind(), thing.content.as_ref().unwrap()));
            }
        }
    }
}
