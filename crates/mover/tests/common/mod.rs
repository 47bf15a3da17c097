//! Both ends of a copy in one process: links that carry frames through memory, can be cut and can spoil what they carry.

#![allow(dead_code, reason = "each test takes what it needs")]

pub mod pair;
pub mod taker;
pub mod tree;

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use farline_mover::frame::{FrameKind, HEADER_BYTES, PREFIX_BYTES};
use farline_mover::{ActivityMonitor, Arrived, EndSetup, Frame, Gauges, Inlet, Outlet, Root, SendEnd};
use farline_spec::unit::ChunkBytes;
use farline_spec::{Cipher, CopyReport, CopySpec, Failure, FailureKind, FileEngine, Transport, Verify};

/// Frames that a link holds.
const FRAMES_UNDER_WAY: usize = 8;

/// What happens to the frames of all links of one copy.
pub struct Weather {
    frames_left: AtomicI64,
    chunks_until_spoiled: AtomicI64,
    watch: OnceLock<Box<dyn Fn() + Send + Sync>>,
    fate: OnceLock<Box<dyn Fn(u16, u64) -> Fate + Send + Sync>>,
}

/// What becomes of a frame of data at the receiving end, as of one under a cipher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It opens.
    Opens,
    /// It does not.
    Unopened,
    /// It cannot be found, nor any after it.
    OutOfStep,
}

impl Weather {
    /// Nothing happens.
    pub fn fair() -> Arc<Self> {
        Self::cut_after(i64::MAX)
    }

    /// All links fail once so many frames have gone over them.
    pub fn cut_after(frames: i64) -> Arc<Self> {
        Arc::new(Self {
            frames_left: AtomicI64::new(frames),
            chunks_until_spoiled: AtomicI64::new(i64::MAX),
            watch: OnceLock::new(),
            fate: OnceLock::new(),
        })
    }

    /// One byte of the content of this frame of data (1: the first) comes changed.
    pub fn spoils(frame: i64) -> Arc<Self> {
        let fair = Self::fair();
        fair.chunks_until_spoiled.store(frame, Ordering::Relaxed);
        fair
    }

    /// Before any frame is sent this is done.
    pub fn watched(watch: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let fair = Self::fair();
        assert!(fair.watch.set(Box::new(watch)).is_ok(), "nobody else does");
        fair
    }

    /// What becomes of a frame of data is told by its stream and number.
    pub fn sealed(fate: impl Fn(u16, u64) -> Fate + Send + Sync + 'static) -> Arc<Self> {
        let fair = Self::fair();
        assert!(fair.fate.set(Box::new(fate)).is_ok(), "nobody else does");
        fair
    }

    fn is_cut(&self) -> bool {
        self.frames_left.load(Ordering::Relaxed) <= 0
    }

    fn passes(&self) -> Result<(), Failure> {
        if self.frames_left.fetch_sub(1, Ordering::Relaxed) > 0 {
            return Ok(());
        }
        Err(cut())
    }
}

/// How a cut link fails.
pub fn cut() -> Failure {
    Failure::new(FailureKind::Protocol, "the link was cut")
}

/// One end of a link that sends.
pub struct Into {
    link: Option<Sender<Vec<u8>>>,
    weather: Arc<Weather>,
}

/// One end of a link that receives.
pub struct OutOf {
    link: Receiver<Vec<u8>>,
    weather: Arc<Weather>,
    /// Number of a stream of data.
    pub stream: Option<u16>,
    came: u64,
    is_out_of_step: bool,
}

/// A link.
pub fn link(weather: &Arc<Weather>) -> (Into, OutOf) {
    let (into, out_of) = bounded(FRAMES_UNDER_WAY);
    let into = Into {
        link: Some(into),
        weather: Arc::clone(weather),
    };
    let out_of = OutOf {
        link: out_of,
        weather: Arc::clone(weather),
        stream: None,
        came: 0,
        is_out_of_step: false,
    };
    (into, out_of)
}

impl Into {
    /// Sends bytes as they are, header and payload.
    pub fn send_bytes(&mut self, mut bytes: Vec<u8>, kind: FrameKind) -> Result<(), Failure> {
        if let Some(watch) = self.weather.watch.get() {
            watch();
        }
        self.weather.passes()?;
        let is_data = matches!(kind, FrameKind::Chunk | FrameKind::Pack);
        if is_data && self.weather.chunks_until_spoiled.fetch_sub(1, Ordering::Relaxed) == 1 {
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
        }
        let link = self.link.as_ref().ok_or_else(cut)?;
        link.send(bytes).map_err(|_| cut())
    }
}

impl Outlet for Into {
    fn send(&mut self, frame: &mut Frame) -> Result<(), Failure> {
        let header = frame.header()?;
        let end = PREFIX_BYTES + HEADER_BYTES + header.payload_bytes as usize;
        let bytes = frame.wire()[PREFIX_BYTES..end].to_vec();
        self.send_bytes(bytes, header.kind)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

impl OutOf {
    fn fate(&self, record: u64) -> Fate {
        match (self.stream, self.weather.fate.get()) {
            (Some(stream), Some(fate)) => fate(stream, record),
            _ => Fate::Opens,
        }
    }
}

impl Inlet for OutOf {
    fn receive(&mut self, frame: &mut Frame) -> Result<Arrived, Failure> {
        if self.weather.is_cut() {
            return Err(cut());
        }
        match self.link.recv_timeout(Duration::from_millis(100)) {
            Ok(_) if self.is_out_of_step => Ok(Arrived::Nothing),
            Ok(bytes) => {
                let record = self.came;
                self.came += 1;
                match self.fate(record) {
                    Fate::Opens => {}
                    Fate::Unopened => return Ok(Arrived::Unopened { record }),
                    Fate::OutOfStep => {
                        self.is_out_of_step = true;
                        return Ok(Arrived::OutOfStep { record });
                    }
                }
                let wire = frame.expect(bytes.len() - HEADER_BYTES)?;
                wire[PREFIX_BYTES..PREFIX_BYTES + bytes.len()].copy_from_slice(&bytes);
                Ok(Arrived::Frame)
            }
            Err(RecvTimeoutError::Timeout) => Ok(Arrived::Nothing),
            // The other end of a cut link is gone without a word.
            Err(RecvTimeoutError::Disconnected) if self.weather.is_cut() => Err(cut()),
            Err(RecvTimeoutError::Disconnected) => Ok(Arrived::End),
        }
    }
}

/// A setup over the caller's own files.
pub fn setup(spec: &CopySpec, streams: u16, receipt: Option<&Path>) -> EndSetup {
    EndSetup {
        spec: spec.clone(),
        root: Root::own(),
        origin: String::new(),
        streams,
        most_streams: streams,
        may_go_straight: spec.may_go_straight(Transport::Tcp),
        is_vacant: false,
        is_own_request: true,
        counts_updates: true,
        heals_frames: true,
        takes_names_apart: true,
        takes_top_xattrs: true,
        sum: spec.sum(),
        expands_patterns: false,
        receipt: receipt.map(Path::to_path_buf),
        most_bytes: None,
        gauges: Arc::new(Gauges::default()),
        pulse: Arc::new(ActivityMonitor::default()),
    }
}

/// A spec that copies `source` to `destination`.
pub fn spec(source: impl AsRef<Path>, destination: impl AsRef<Path>) -> CopySpec {
    use std::os::unix::ffi::OsStrExt;
    let text = |path: &Path| farline_mover::path_text::to_text(path.as_os_str().as_bytes());
    CopySpec {
        sources: vec![text(source.as_ref())],
        destination: text(destination.as_ref()),
        ..CopySpec::default()
    }
}

/// The same with chunks of so many bytes.
pub fn with_chunk(spec: CopySpec, bytes: u64) -> CopySpec {
    CopySpec {
        chunk_bytes: Some(ChunkBytes::new(bytes).unwrap()),
        ..spec
    }
}

/// A spec that copies these of `top`.
pub fn sources(top: &Path, names: &[&str]) -> CopySpec {
    let text = |name: &&str| format!("{}/{name}", top.display());
    CopySpec {
        sources: names.iter().map(text).collect(),
        ..spec(top, "/d")
    }
}

/// The same where nobody hashes or seals what is sent: it goes straight.
pub fn straight(spec: CopySpec) -> CopySpec {
    CopySpec {
        verify: Verify::None,
        cipher: Cipher::None,
        readers: None,
        read_engine: FileEngine::Sendfile,
        ..spec
    }
}

/// What the jobs of a sending end came to.
pub struct Sent {
    /// The first failure, if any.
    pub outcome: Result<(), Failure>,
    /// The report.
    pub report: CopyReport,
}

/// Runs the jobs of a sending end, each on a thread, until all have returned; a job that fails stops the others.
pub fn drive_sender(end: &SendEnd, data: Vec<Into>, mut catalogue: Into, mut feedback: OutOf) -> Sent {
    let outcome = std::thread::scope(|scope| {
        let mut jobs = Vec::new();
        for (stream, mut outlet) in (0_u16..).zip(data) {
            jobs.push(scope.spawn(move || stop_all(end, end.data(stream, &mut outlet))));
        }
        jobs.push(scope.spawn(move || stop_all(end, end.catalogue(&mut catalogue))));
        jobs.push(scope.spawn(move || stop_all(end, end.feedback(&mut feedback))));
        let outcomes = jobs
            .into_iter()
            .map(|job| job.join().expect("a job that panicked"));
        outcomes.fold(Ok(()), Result::and)
    });
    Sent {
        outcome,
        report: end.finish().expect("a receipt"),
    }
}

fn stop_all(end: &SendEnd, outcome: Result<(), Failure>) -> Result<(), Failure> {
    if let Err(failure) = &outcome {
        end.abort(failure);
    }
    outcome
}
