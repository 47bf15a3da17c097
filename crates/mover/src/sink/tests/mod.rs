//! The receiving end against a sending end made up message by message.

mod bounds;
mod deletion;
mod hostile;
mod names;
mod request;
mod resume;
mod whole;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use farline_spec::{CopyReport, CopySpec, Failure, FailureKind, SumKind};

use super::ReceiveEnd;
use crate::frame::{FrameKind, HEADER_BYTES, Header, PREFIX_BYTES};
use crate::message::{self, Catalogue, Entry, EntryKind, Feedback, Wants};
use crate::sum::{Sum, chunk_sum, content_sum};
use crate::tree_hash::TreeHash;
use crate::{ActivityMonitor, Arrived, EndSetup, Frame, Gauges, Inlet, Outlet, Root, pack};

/// Chunks of all tests.
pub const CHUNK: u64 = 64 * 1024;
/// The longest that a chunk may be.
const MOST_CHUNK: u64 = 4 * CHUNK;
/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(20);
pub const MTIME_NS: i64 = 1_600_000_000_123_456_789;

/// Last byte of a frame that is void.
const VOID: u8 = 1;

/// A stream made of copied frames.
struct Frames(Receiver<Vec<u8>>);

impl Inlet for Frames {
    fn receive(&mut self, frame: &mut Frame) -> Result<Arrived, Failure> {
        let wire = match self.0.recv_timeout(Duration::from_millis(20)) {
            Ok(wire) => wire,
            Err(error) if error.is_timeout() => return Ok(Arrived::Nothing),
            Err(_) => return Ok(Arrived::End),
        };
        let payload = wire.len() - PREFIX_BYTES - HEADER_BYTES - crate::frame::TRAILER_BYTES;
        frame.expect(payload)?.copy_from_slice(&wire);
        match wire.last() == Some(&VOID) {
            true => Ok(Arrived::Void),
            false => Ok(Arrived::Frame),
        }
    }
}

/// What this end said, message by message.
struct Said(Sender<Feedback>);

impl Outlet for Said {
    fn send(&mut self, frame: &mut Frame) -> Result<(), Failure> {
        assert_eq!(frame.header()?.kind, FrameKind::Feedback);
        for said in message::messages(frame.payload())? {
            // Whoever wanted to know may be gone.
            let _ = self.0.send(said);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A receiving end with its streams.
pub struct Session {
    pub end: ReceiveEnd,
    pub gauges: Arc<Gauges>,
    /// What content is proved with, where it is hashed.
    pub kind: SumKind,
    pub is_hashed: bool,
    catalogue: Option<Sender<Vec<u8>>>,
    data: Vec<Sender<Vec<u8>>>,
    said: Receiver<Feedback>,
    jobs: Vec<JoinHandle<Result<(), Failure>>>,
    pub fresh: bool,
    /// Answers so far, by number.
    pub answers: HashMap<u64, Wants>,
    pub heard: Vec<Feedback>,
    next: u64,
}

/// Spec of a copy of the folder `src/` to `destination`.
pub fn spec(destination: &Path) -> CopySpec {
    CopySpec {
        sources: vec!["src/".to_owned()],
        destination: destination.to_str().unwrap().to_owned(),
        ..CopySpec::default()
    }
}

/// Folders on a disk and in memory, if there are both.
pub fn places() -> Vec<tempfile::TempDir> {
    let memory = tempfile::tempdir_in("/dev/shm").ok();
    [tempfile::tempdir().ok(), memory].into_iter().flatten().collect()
}

pub fn start(spec: &CopySpec) -> Result<Session, Failure> {
    start_with(spec, 2, None)
}

pub fn start_with(spec: &CopySpec, streams: u16, receipt: Option<PathBuf>) -> Result<Session, Failure> {
    start_limited(spec, streams, receipt, None)
}

pub fn start_limited(
    spec: &CopySpec,
    streams: u16,
    receipt: Option<PathBuf>,
    most_bytes: Option<u64>,
) -> Result<Session, Failure> {
    start_as(EndSetup {
        streams,
        receipt,
        most_bytes,
        ..setup_of(spec)
    })
}

pub fn start_as(setup: EndSetup) -> Result<Session, Failure> {
    let (streams, gauges) = (setup.streams, Arc::clone(&setup.gauges));
    let (kind, is_hashed) = (setup.sum.unwrap_or(SumKind::Blake3), setup.sum.is_some());
    let end = ReceiveEnd::start(setup)?;
    let mut jobs = Vec::new();
    let mut data = Vec::new();
    for stream in 0..streams {
        let (to, from) = unbounded();
        let end = end.clone();
        jobs.push(std::thread::spawn(move || end.data(stream, &mut Frames(from))));
        data.push(to);
    }
    let (catalogue, from) = unbounded();
    let taker = end.clone();
    jobs.push(std::thread::spawn(move || taker.catalogue(&mut Frames(from))));
    let (to, said) = unbounded();
    let teller = end.clone();
    jobs.push(std::thread::spawn(move || teller.feedback(&mut Said(to))));
    let Ok(Feedback::Ready { fresh }) = said.recv_timeout(PATIENCE) else {
        panic!("the first message is Ready");
    };
    let mut session = Session {
        end,
        gauges,
        kind,
        is_hashed,
        catalogue: Some(catalogue),
        data,
        said,
        jobs,
        fresh,
        answers: HashMap::new(),
        heard: Vec::new(),
        next: 0,
    };
    session.say(&Catalogue::Begin {
        chunk_bytes: MOST_CHUNK,
        top: None,
        asks_whole: false,
    });
    Ok(session)
}

/// An end with one stream that asked for this.
pub fn setup_of(spec: &CopySpec) -> EndSetup {
    EndSetup {
        may_go_straight: false,
        is_vacant: false,
        counts_updates: true,
        heals_frames: true,
        takes_names_apart: true,
        takes_top_xattrs: true,
        sum: spec.sum(),
        expands_patterns: false,
        is_own_request: true,
        spec: spec.clone(),
        root: Root::own(),
        origin: String::new(),
        streams: 1,
        most_streams: 1,
        receipt: None,
        most_bytes: None,
        gauges: Arc::default(),
        pulse: Arc::new(ActivityMonitor::default()),
    }
}

impl Session {
    pub fn say(&mut self, said: &Catalogue) {
        let mut payload = Vec::new();
        message::append(&mut payload, said).unwrap();
        let wire = wire(Header::of_messages(FrameKind::Catalogue), &payload);
        // The end may be over.
        let _ = self.catalogue.as_ref().unwrap().send(wire);
    }

    /// Announces an entry; its number.
    pub fn announce(&mut self, path: &[u8], kind: EntryKind) -> u64 {
        let mode = if kind == EntryKind::Folder { 0o750 } else { 0o640 };
        self.announce_entry(Entry {
            path: path.to_vec(),
            kind,
            mode,
            mtime_ns: MTIME_NS,
            ctime_ns: 7,
            xattrs: Vec::new(),
        })
    }

    pub fn announce_entry(&mut self, entry: Entry) -> u64 {
        self.say(&Catalogue::Entry(entry));
        self.next += 1;
        self.next - 1
    }

    pub fn announce_file(&mut self, path: &[u8], content: &[u8]) -> u64 {
        let bytes = content.len() as u64;
        self.announce(path, EntryKind::File { bytes, hash: None })
    }

    pub fn end_of_catalogue(&mut self) {
        let entries = self.next;
        self.say(&Catalogue::End { entries, whole: true });
    }

    pub fn frame(&self, stream: usize, header: Header, payload: &[u8]) {
        // The end may be over.
        let _ = self.data[stream].send(wire(header, payload));
    }

    pub fn pack(&self, stream: usize, files: &[(u64, &[u8])]) {
        let mut payload = Vec::new();
        for (file, content) in files {
            let start = payload.len();
            payload.resize(start + pack::ITEM_HEADER_BYTES, 0);
            let hash = content_sum(self.kind, content);
            pack::write_item_header(&mut payload[start..], *file, content.len() as u32, Some(hash));
            payload.extend_from_slice(content);
        }
        self.frame(stream, Header::of_messages(FrameKind::Pack), &payload);
    }

    /// One chunk of `content`; `spoiled`: its bytes are not what its hash says.
    pub fn chunk(&self, stream: usize, file: u64, content: &[u8], offset: u64, spoiled: bool) {
        let end = (offset + CHUNK).min(content.len() as u64);
        let mut part = content[offset as usize..end as usize].to_vec();
        let hash = chunk_sum(self.kind, offset, &part, part.len() == content.len());
        part[0] ^= u8::from(spoiled);
        let header = Header {
            file,
            offset,
            hash: Some(hash),
            ..Header::of_messages(FrameKind::Chunk)
        };
        self.frame(stream, header, &part);
    }

    /// A chunk of zeros that its sender could not fill.
    pub fn void_chunk(&self, stream: usize, file: u64, offset: u64) {
        let header = Header {
            file,
            offset,
            ..Header::of_messages(FrameKind::Chunk)
        };
        let mut wire = wire(header, &[0; CHUNK as usize]);
        wire[PREFIX_BYTES + HEADER_BYTES + CHUNK as usize..].fill(VOID);
        let _ = self.data[stream].send(wire);
    }

    /// As if a stream had found another one at a file; waits until it is open.
    pub fn share(&self, file: u64) {
        let machine = &self.end.inner.machine;
        let since = std::time::Instant::now();
        loop {
            assert!(since.elapsed() < PATIENCE, "the file is not opened");
            let all = machine.quietly(|machine| machine.all());
            let entry = all.iter().find(|entry| entry.number == file);
            if let Some(open) = entry.and_then(|entry| entry.store().file.clone()) {
                return open.share();
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    pub fn settle(&mut self, file: u64, content: &[u8]) {
        let hash = Some(content_sum(self.kind, content));
        self.say(&Catalogue::Settled { file, hash });
    }

    /// What this end wants of an entry.
    pub fn wants(&mut self, number: u64) -> Wants {
        while !self.answers.contains_key(&number) {
            self.hear();
        }
        self.answers[&number].clone()
    }

    /// The next message.
    pub fn hear(&mut self) -> Feedback {
        let said = self.said.recv_timeout(PATIENCE).expect("this end says something");
        if let Feedback::Answers { first, wants } = &said {
            self.answers.extend((*first..).zip(wants.iter().cloned()));
        }
        self.heard.push(said.clone());
        said
    }

    /// Hears until something fits.
    pub fn until(&mut self, fits: impl Fn(&Feedback) -> bool) -> Feedback {
        if let Some(said) = self.heard.iter().find(|said| fits(said)) {
            return said.clone();
        }
        loop {
            let said = self.hear();
            if fits(&said) {
                return said;
            }
        }
    }

    pub fn until_done(&mut self, file: u64) -> Option<Sum> {
        match self.until(|said| matches!(said, Feedback::Done { file: done, .. } if *done == file)) {
            Feedback::Done { hash, .. } => hash,
            _ => None,
        }
    }

    pub fn until_failed(&mut self, file: u64) -> String {
        match self.until(|said| matches!(said, Feedback::Failed { file: failed, .. } if *failed == file)) {
            Feedback::Failed { reason, .. } => reason,
            _ => String::new(),
        }
    }

    /// Ends the catalogue, hears the last message, ends the streams; problems and report.
    pub fn finish(mut self) -> (Vec<String>, CopyReport) {
        self.end_of_catalogue();
        let last = self.until(|said| matches!(said, Feedback::Finished { .. }));
        let Feedback::Finished { problems } = last else {
            unreachable!("that was looked for");
        };
        self.close();
        for job in self.jobs.drain(..) {
            job.join().unwrap().unwrap();
        }
        (problems, self.end.finish().unwrap())
    }

    /// Ends in the middle, as when the other end is gone; what the jobs said.
    pub fn cut(mut self) -> Vec<Failure> {
        self.end.abort(&Failure::new(FailureKind::Interrupted, "cut"));
        let failures = self.failures();
        self.end.finish().unwrap();
        failures
    }

    /// Waits until the end failed by itself; why.
    pub fn failures(&mut self) -> Vec<Failure> {
        let jobs = std::mem::take(&mut self.jobs);
        jobs.into_iter()
            .filter_map(|job| job.join().unwrap().err())
            .collect()
    }

    pub fn close(&mut self) {
        self.catalogue = None;
        self.data.clear();
    }
}

fn wire(mut header: Header, payload: &[u8]) -> Vec<u8> {
    header.payload_bytes = payload.len() as u32;
    let mut frame = Frame::new(payload.len());
    frame.room()[..payload.len()].copy_from_slice(payload);
    frame.set(&header);
    frame.wire().to_vec()
}

/// Content that is nowhere the same.
pub fn content(bytes: usize, seed: u64) -> Vec<u8> {
    let mut reader = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
    let mut content = vec![0; bytes];
    reader.fill(&mut content);
    content
}

/// Every chunk's offset.
pub fn offsets(content: &[u8]) -> impl Iterator<Item = u64> + use<> {
    (0..content.len() as u64).step_by(CHUNK as usize)
}

/// What is in a folder, without `.farline-partial`.
pub fn listing(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Sends what is wanted of a file, all streams in turn; what was sent.
pub fn send_wanted(session: &mut Session, file: u64, content: &[u8]) -> u64 {
    let wants = session.wants(file);
    let parts = match wants {
        Wants::All => Vec::new(),
        Wants::Rest(parts) => parts,
        other => panic!("{other:?} is no wish"),
    };
    let mut tree = TreeHash::new(session.kind, content.len() as u64);
    // Where nothing is hashed parts have no sums, and there is none of all.
    let is_hashed = session.is_hashed;
    for part in &parts {
        assert_eq!(part.hash.is_some(), is_hashed);
        assert!(
            part.hash
                .is_none_or(|hash| tree.insert(part.offset, part.bytes, hash))
        );
    }
    let mut sent = 0;
    for (place, offset) in offsets(content).enumerate() {
        if parts
            .iter()
            .any(|part| part.offset <= offset && offset < part.offset + part.bytes)
        {
            continue;
        }
        session.chunk(place % session.data.len(), file, content, offset, false);
        let end = (offset + CHUNK).min(content.len() as u64);
        let hash = chunk_sum(
            session.kind,
            offset,
            &content[offset as usize..end as usize],
            end - offset == content.len() as u64,
        );
        assert!(tree.insert(offset, end - offset, hash));
        sent += end - offset;
    }
    assert!(
        !is_hashed || tree.root() == Some(content_sum(session.kind, content)),
        "what is told as proved makes the file"
    );
    session.settle(file, content);
    sent
}
