//! Copies over a modelled disk and network: sessions that break off anywhere, until one goes through.
//!
//! The receiving machine of `farline-proto` is driven as `farline-mover` drives it, one step at a time, in an order that follows
//! from a seed: messages and frames overtake each other, writes complete in any order, sources change, frames are damaged or do
//! not open, the disk fills up, refuses writes and syncs. At any step the receiving process may end, the power may go, or the
//! sending end may be gone; another session goes on with what the [`disk`] has. Three oracles watch: nothing gets a name before
//! all of its content is there, proved, and on the device where that is asked for; what a journal proves is there; every
//! session ends or says why, and the last one has every file in its place.
//!
//! What it leaves out: folders, links, attributes, deletion, and what looking at a destination finds besides files of earlier
//! sessions. Content is one number a grain and hashes are joined as BLAKE3 is, over leaves that are not ([`source`]). A device
//! that says it has what it has not is none of this: nothing that a program does helps there.

mod disk;
mod receiving;
mod sending;
mod source;

use std::collections::HashMap;

use farline_proto::copy::message::{Catalogue, Entry, EntryKind, GRAIN_BYTES};
use farline_proto::copy::receiver::{Chunk, Item};
use farline_proto::copy::sum::Sum;
use farline_spec::SumKind;

use crate::Random;
use disk::Disk;
use receiving::{Ended, ReceivingEnd};
use sending::{CHUNK_BYTES, Frame, SendingEnd};
use source::{SourceFile, chunk_hash};

/// Sessions of one trial; the last is not disturbed.
const SESSIONS: u64 = 5;
/// States that a file of the source has, one after the other.
const STATES: u64 = 4;
/// Steps in which a session must have ended.
const MOST_STEPS: u64 = 20_000;
/// Grains for which there is always room.
const ROOM: u64 = 1 << 20;

/// What a copy is like in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether what is received reaches the device before it gets its name.
    pub is_durable: bool,
    /// Whether anything is hashed; where not, nothing is damaged on the way.
    pub is_hashed: bool,
    /// Whether files get their sources' times.
    pub keeps_times: bool,
    /// Whether the sending end wants to hear of files that are whole.
    pub asks_whole: bool,
    /// Whether further names may come by themselves.
    pub takes_names_apart: bool,
    /// Whether the disk may refuse writes and syncs.
    pub may_err: bool,
    /// Whether the sending end says whatever it likes.
    pub is_hostile: bool,
    /// What the driver does wrong, to see that an oracle finds it.
    pub careless: Careless,
    /// Data streams.
    pub streams: u16,
}

/// What a driver may do wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Careless {
    /// Nothing.
    Nowhere,
    /// Files get their names without their data being on the device.
    Names,
    /// The journal speaks of data that are not on the device.
    Journal,
    /// A part counts as written before it is.
    Writes,
    /// Nobody looks whether a file is still what was announced once all of it was read.
    Looks,
}

impl Options {
    /// With what content is proved: what [`source`] makes passes for BLAKE3.
    fn sum(self) -> Option<SumKind> {
        self.is_hashed.then_some(SumKind::Blake3)
    }

    fn draw(random: &mut Random) -> Self {
        let mut coin = || random.bits() % 2 == 0;
        Self {
            is_durable: coin(),
            is_hashed: coin() || coin(),
            keeps_times: coin(),
            asks_whole: coin(),
            takes_names_apart: coin(),
            may_err: false,
            is_hostile: false,
            careless: Careless::Nowhere,
            streams: 1 + u16::from(coin()) + u16::from(coin()),
        }
    }
}

/// What happened in a trial, or in many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Sessions.
    pub sessions: u64,
    /// Of them, those that went through.
    pub finished: u64,
    /// Those in which the process of the receiving end ended.
    pub killed: u64,
    /// Those in which the power went.
    pub power_cuts: u64,
    /// Those in which the sending end was gone.
    pub left: u64,
    /// Those that ended for a reason of the disk's.
    pub failed: u64,
    /// Steps.
    pub steps: u64,
}

impl Figures {
    /// Adds those of another trial.
    pub fn add(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.finished += other.finished;
        self.killed += other.killed;
        self.power_cuts += other.power_cuts;
        self.left += other.left;
        self.failed += other.failed;
        self.steps += other.steps;
    }
}

/// How a session is disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Kill,
    PowerCut,
    SenderGone,
}

/// The files of a trial: every state that each will have, and which it has.
#[derive(Debug)]
struct Files {
    history: HashMap<Vec<u8>, Vec<SourceFile>>,
    now: Vec<SourceFile>,
}

impl Files {
    fn draw(random: &mut Random) -> Self {
        let count = 1 + random.bits() as usize % 6;
        let mut now = Vec::new();
        let mut history = HashMap::new();
        for place in 0..count {
            let mut first = SourceFile::draw(random, place);
            if place > 0 && random.bits() % 5 == 0 {
                let to = random.bits() as usize % place;
                let target: &SourceFile = &now[to];
                first = SourceFile {
                    path: first.path,
                    link_to: Some(to).filter(|_| target.link_to.is_none()),
                    ..target.clone()
                };
            }
            let states = (1..=STATES).map(|version| SourceFile {
                version,
                bytes: first.bytes + (version - 1) * u64::from(random.bits() % 2 == 0),
                ..first.clone()
            });
            let states: Vec<SourceFile> = states.collect();
            now.push(states[0].clone());
            history.insert(first.path, states);
        }
        Self { history, now }
    }

    /// A file takes its next state; those with further names stay what they are.
    fn change(&mut self, random: &mut Random) {
        let place = random.bits() as usize % self.now.len();
        let has_names = |file: &SourceFile| file.link_to == Some(place);
        if self.now[place].link_to.is_some() || self.now.iter().any(has_names) {
            return;
        }
        let states = &self.history[&self.now[place].path];
        if let Some(next) = states.get(self.now[place].version as usize) {
            self.now[place] = next.clone();
        }
    }
}

/// Runs the trial that follows from `seed`.
///
/// # Errors
/// What an oracle found wrong.
pub fn run(seed: u64) -> Result<Figures, String> {
    run_careless(seed, Careless::Nowhere)
}

/// As [`run`], with a driver that does something wrong.
///
/// # Errors
/// What an oracle found wrong.
pub fn run_careless(seed: u64, careless: Careless) -> Result<Figures, String> {
    let mut random = Random::new(seed);
    let mut options = Options {
        careless,
        ..Options::draw(&mut random)
    };
    let mut files = Files::draw(&mut random);
    let mut disk = Disk::default();
    let mut figures = Figures::default();
    for session in 1..=SESSIONS {
        let is_last = session == SESSIONS;
        options.may_err = !is_last && random.bits() % 3 == 0;
        disk.room = match random.bits() % 6 {
            0 if !is_last => random.bits() % 20,
            _ => ROOM,
        };
        let fault = match random.bits() % 4 {
            _ if is_last => Fault::None,
            0 => Fault::Kill,
            1 => Fault::PowerCut,
            2 => Fault::SenderGone,
            _ => Fault::None,
        };
        let is_over = one_session(
            &mut disk,
            options,
            &mut files,
            fault,
            is_last,
            &mut random,
            &mut figures,
        )
        .map_err(|why| format!("session {session} with {options:?}: {why}"))?;
        if is_over {
            break;
        }
    }
    Ok(figures)
}

/// One session; whether nothing more can be said of the trial.
fn one_session(
    disk: &mut Disk,
    options: Options,
    files: &mut Files,
    fault: Fault,
    is_last: bool,
    random: &mut Random,
    figures: &mut Figures,
) -> Result<bool, String> {
    figures.sessions += 1;
    let Files { history, .. } = files;
    let history = history.clone();
    let mut sender = SendingEnd::new(options, files.now.len());
    let mut receiver = ReceivingEnd::start(disk, options, &history, &files.now)?;
    let fault_at = match fault {
        Fault::None => u64::MAX,
        _ => random.bits() % 600,
    };
    let mut step = 0;
    while receiver.ended.is_none() && step < fault_at {
        one_step(&mut sender, &mut receiver, files, is_last, random);
        if let Some(wrong) = receiver.wrong.take().or(sender.wrong.take()) {
            return Err(format!("step {step}: {wrong}"));
        }
        step += 1;
        if step > MOST_STEPS {
            return Err(format!("does not end: {sender:?} {receiver:?}"));
        }
    }
    figures.steps += step;
    match receiver.ended.take() {
        Some(Ended::Finished) => {
            figures.finished += 1;
            drop(receiver);
            if is_last {
                check_all(disk, files, &sender)?;
            }
            Ok(false)
        }
        Some(Ended::Failed(why)) => {
            figures.failed += 1;
            let is_allowed = ["full", "flushing"].iter().any(|word| why.contains(word));
            if !is_allowed {
                return Err(format!("ended with: {why}"));
            }
            receiver.break_off(random);
            Ok(false)
        }
        None if fault == Fault::SenderGone => {
            figures.left += 1;
            receiver.break_off(random);
            Ok(false)
        }
        None => {
            receiver.die(random);
            if fault == Fault::Kill {
                figures.killed += 1;
                return Ok(false);
            }
            figures.power_cuts += 1;
            disk.cut_power(random);
            after_power_cut(disk, options, &history)
        }
    }
}

/// What is there after the power went; whether nothing more can be said of the trial.
fn after_power_cut(
    disk: &mut Disk,
    options: Options,
    history: &HashMap<Vec<u8>, Vec<SourceFile>>,
) -> Result<bool, String> {
    if options.is_durable {
        return check_names(disk, history).map(|()| false);
    }
    // Nothing was promised of what is on the device, and nothing may be believed of it.
    let receiver = ReceivingEnd::start(disk, options, history, &[])?;
    match receiver.remembers() {
        true => Err("a journal is believed whose data never reached the device".to_owned()),
        false => Ok(true),
    }
}

/// Whatever comes next: any of what could.
fn one_step(
    sender: &mut SendingEnd,
    receiver: &mut ReceivingEnd<'_>,
    files: &mut Files,
    is_last: bool,
    random: &mut Random,
) {
    match random.bits() % 8 {
        0 | 1 => sender.step(random, &files.now),
        2 => {
            if let Some(said) = sender.said.pop_front() {
                receiver.hear(said);
            }
        }
        3 | 4 => deliver(sender, receiver, random),
        5 => {
            if let Some(said) = receiver.say() {
                sender.hear(said, &files.now);
            }
        }
        6 if !is_last && random.bits() % 64 == 0 => files.change(random),
        _ => receiver.step(random),
    }
}

/// A frame of one of the streams comes, unless it waits for its entry; or comes and does not open.
fn deliver(sender: &mut SendingEnd, receiver: &mut ReceivingEnd<'_>, random: &mut Random) {
    let stream = random.bits() as usize % sender.data.len();
    let Some((record, frame)) = sender.data[stream].front().cloned() else {
        return;
    };
    if receiver.has_lost_step(stream as u16) {
        sender.data[stream].pop_front();
        return;
    }
    if receiver.may_take(&frame) {
        sender.data[stream].pop_front();
        match random.bits() % 256 {
            0..4 => receiver.machine.handle_unopened(stream as u16, record),
            // Of one stream all that came from here on is lost; another goes on.
            4 if stream > 0 => receiver.lose_step(stream as u16, record),
            _ => receiver.take(frame),
        }
    }
}

/// After the last session every file is in its place.
fn check_all(disk: &Disk, files: &Files, sender: &SendingEnd) -> Result<(), String> {
    for (place, file) in files.now.iter().enumerate() {
        if sender.has_failed(place) {
            continue;
        }
        let path = String::from_utf8_lossy(&file.path);
        let Some((found, ..)) = disk.look(&file.path) else {
            return Err(format!("{path} has no name at the end"));
        };
        if disk.content(found).0 != file.tags() {
            return Err(format!("{path} is not what its source is at the end"));
        }
    }
    match disk.names(b"p/").is_empty() {
        true => Ok(()),
        false => Err("partials are left at the end".to_owned()),
    }
}

/// After the power went every name has the whole content of a state of its source.
fn check_names(disk: &Disk, history: &HashMap<Vec<u8>, Vec<SourceFile>>) -> Result<(), String> {
    for name in disk.names(b"d") {
        let content = disk.look(&name).map(|(file, ..)| disk.content(file).0);
        let is_whole = |state: &SourceFile| content == Some(&state.tags()[..]);
        if !history
            .get(&name)
            .is_some_and(|states| states.iter().any(is_whole))
        {
            let path = String::from_utf8_lossy(&name);
            return Err(format!(
                "{path} has a name and not its content after the power went"
            ));
        }
    }
    Ok(())
}

/// A sending end that says whatever it likes: nothing gets a name without all of its content, and it comes to an end.
///
/// # Errors
/// What an oracle found wrong.
pub fn run_hostile(seed: u64) -> Result<Figures, String> {
    let mut random = Random::new(seed);
    let options = Options {
        is_hostile: true,
        ..Options::draw(&mut random)
    };
    let mut disk = Disk::default();
    disk.room = ROOM;
    let history = HashMap::new();
    let mut receiver = ReceivingEnd::start(&mut disk, options, &history, &[])?;
    receiver.hear(Catalogue::Begin {
        chunk_bytes: CHUNK_BYTES,
        top: None,
        asks_whole: options.asks_whole,
    });
    let mut liar = Liar {
        random,
        lengths: Vec::new(),
    };
    let mut steps = 0;
    let most = 20 + liar.random.bits() % 200;
    while receiver.ended.is_none() && (steps < most || receiver.is_busy()) {
        match liar.random.bits() % 4 {
            _ if steps == most - 1 => receiver.hear(liar.end()),
            0 if steps < most => receiver.hear(liar.message()),
            1 if steps < most => {
                let frame = liar.frame();
                if receiver.may_take(&frame) {
                    receiver.take(frame);
                }
            }
            2 => drop(receiver.say()),
            _ => receiver.step(&mut liar.random),
        }
        steps += 1;
        if let Some(wrong) = receiver.wrong.take() {
            return Err(format!("step {steps} with {options:?}: {wrong}"));
        }
        if steps > MOST_STEPS {
            return Err(format!("does not end: {receiver:?}"));
        }
    }
    while receiver.ended.is_none() && receiver.say().is_some() {}
    let has_finished = receiver.ended == Some(Ended::Finished);
    Ok(Figures {
        sessions: 1,
        finished: u64::from(has_finished),
        failed: u64::from(!has_finished),
        steps,
        ..Figures::default()
    })
}

/// Says what could be, and now and then what cannot.
struct Liar {
    random: Random,
    /// Of what was announced; nothing for what is no file.
    lengths: Vec<Option<u64>>,
}

impl Liar {
    fn one_in(&mut self, of: u64) -> bool {
        self.random.bits() % of == 0
    }

    /// A number that was announced, mostly.
    fn file(&mut self) -> u64 {
        let count = self.lengths.len() as u64 + u64::from(self.one_in(32));
        self.random.bits() % count.max(1)
    }

    fn end(&mut self) -> Catalogue {
        let entries = self.lengths.len() as u64 + u64::from(self.one_in(8));
        Catalogue::End { entries, whole: true }
    }

    fn message(&mut self) -> Catalogue {
        let file = self.file();
        match self.random.bits() % 32 {
            _ if self.lengths.is_empty() => self.entry(),
            0..=7 if self.lengths.len() < 8 => self.entry(),
            0..=26 => Catalogue::Settled {
                file,
                hash: self.one_in(16).then_some(Sum::from_bytes([3; 32])),
            },
            27..=30 => Catalogue::Lost {
                file,
                reason: String::new(),
                again: self.one_in(2),
            },
            _ if self.one_in(8) => self.end(),
            _ => self.entry(),
        }
    }

    fn entry(&mut self) -> Catalogue {
        let bytes = 1 + self.random.bits() % (2 * GRAIN_BYTES);
        let kind = match self.random.bits() % 4 {
            0 => EntryKind::HardLink { to: self.file() },
            _ => EntryKind::File { bytes, hash: None },
        };
        let is_file = matches!(kind, EntryKind::File { .. });
        self.lengths.push(is_file.then_some(bytes));
        Catalogue::Entry(Entry {
            path: format!("d/{}", self.random.bits() % 4).into_bytes(),
            kind,
            mode: 0,
            mtime_ns: (self.random.bits() % 3) as i64,
            ctime_ns: 0,
            xattrs: Vec::new(),
        })
    }

    /// A frame of a file, mostly of its length and with its hash.
    fn frame(&mut self) -> Frame {
        let file = self.file();
        let known = self.lengths.get(file as usize).copied().flatten();
        let length = known.filter(|_| !self.one_in(64)).unwrap_or(GRAIN_BYTES + 1);
        let is_pack = self.one_in(3);
        let offset = match self.random.bits() % 2 {
            1 if length > GRAIN_BYTES && !is_pack => GRAIN_BYTES,
            _ => 0,
        };
        let bytes = match is_pack {
            true => length,
            false => GRAIN_BYTES.min(length - offset),
        };
        let tags = vec![7; bytes.div_ceil(GRAIN_BYTES) as usize];
        let wrong = self.one_in(16).then_some(Sum::from_bytes([1; 32]));
        let hash = wrong.or_else(|| chunk_hash(length, offset, bytes, &tags));
        if is_pack {
            return Frame::Pack(vec![(Item { file, bytes, hash }, tags)]);
        }
        let chunk = Chunk {
            file,
            offset,
            bytes,
            hash,
        };
        Frame::Chunk(chunk, tags)
    }
}
