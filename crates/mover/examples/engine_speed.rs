//! How fast each engine reads and writes files in a folder, and what that costs the processor: the table from which the
//! default engine was chosen. Give it the folder, mebibytes per file (2048 unless stated), and if one alone is to be tried
//! the engine and the kibibytes of its chunks:
//!
//! ```text
//! cargo run --release -p farline-mover --example engine_speed -- /data 2048
//! cargo run --release -p farline-mover --example engine_speed -- /data 2048 uring 1024
//! ```
//!
//! Writes count until the data are on the device. What is read has been dropped from the page cache before (`cold`), or
//! lies in it (`warm`). Each line is one run; the file is removed at the end.

use std::error::Error;
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_mover::engine::{self, OpenFile, Request};
use farline_mover::frame::{Frame, FrameKind, FrameMaker, Header};
use farline_spec::FileEngine;
use farline_sys::{file, process};

type Outcome<T> = Result<T, Box<dyn Error>>;

const ENGINES: [FileEngine; 3] = [FileEngine::Buffered, FileEngine::Direct, FileEngine::Uring];
const CHUNKS: [usize; 3] = [256 << 10, 1 << 20, 4 << 20];

/// This engine and no other.
fn only(engine: FileEngine) -> engine::Choice {
    engine::Choice {
        engine,
        threads: 0,
        is_auto: false,
    }
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .ok_or("which folder? (then mebibytes per file)")?;
    let mebibytes: u64 = arguments.next().map_or(Ok(2048), |text| text.parse())?;
    let only = (arguments.next(), arguments.next());
    let tried = Tried::of(only.0.as_deref(), only.1.as_deref())?;
    let path = Path::new(&folder).join("engine-speed.bin");
    let device = engine::device_of(File::open(&folder)?.as_fd())?;
    println!("{device:?}");
    println!("what        engine    chunk KiB    GB/s    CPU s/GB");
    let ran = tried.measure(&path, mebibytes << 20);
    fs::remove_file(&path)?;
    ran
}

/// What is compared.
struct Tried {
    engines: Vec<FileEngine>,
    chunks: Vec<usize>,
}

impl Tried {
    fn of(engine: Option<&str>, kibibytes: Option<&str>) -> Outcome<Self> {
        let wanted = |each: &FileEngine| engine.is_none_or(|word| word == each.word());
        let engines: Vec<_> = ENGINES.into_iter().filter(wanted).collect();
        if engines.is_empty() {
            return Err("engine: buffered, direct and uring are allowed".into());
        }
        let chunks = match kibibytes {
            None => CHUNKS.to_vec(),
            Some(text) => vec![text.parse::<usize>()? << 10],
        };
        Ok(Self { engines, chunks })
    }

    fn measure(&self, path: &Path, bytes: u64) -> Outcome<()> {
        for (chunk, engine) in self.pairs() {
            for (what, reserve) in [("write", true), ("write grow", false)] {
                // Removing a large file keeps the device busy; that is nobody's writing.
                let _ = fs::remove_file(path);
                file::sync_file_system(File::create(path)?.as_fd())?;
                report(what, engine, chunk, bytes, || {
                    write(path, engine, chunk, bytes, reserve)
                })?;
            }
        }
        for (chunk, engine) in self.pairs() {
            file::forget(File::open(path)?.as_fd(), 0, 0)?;
            report("read cold", engine, chunk, bytes, || {
                read(path, engine, chunk, bytes)
            })?;
        }
        for (chunk, engine) in self.pairs() {
            read(path, FileEngine::Buffered, chunk, bytes)?;
            report("read warm", engine, chunk, bytes, || {
                read(path, engine, chunk, bytes)
            })?;
        }
        Ok(())
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, FileEngine)> {
        let with = |chunk: &usize| {
            self.engines
                .iter()
                .map(|engine| (*chunk, *engine))
                .collect::<Vec<_>>()
        };
        self.chunks.iter().flat_map(with)
    }
}

fn report(
    what: &str,
    engine: FileEngine,
    chunk: usize,
    bytes: u64,
    work: impl FnOnce() -> Outcome<()>,
) -> Outcome<()> {
    let (began, used) = (Instant::now(), cpu()?);
    work()?;
    let (seconds, used) = (began.elapsed().as_secs_f64(), cpu()? - used);
    let gigabytes = bytes as f64 / 1e9;
    let (rate, cost) = (gigabytes / seconds, used.as_secs_f64() / gigabytes);
    let (engine, chunk) = (engine.word(), chunk >> 10);
    println!("{what:11} {engine:9} {chunk:9} {rate:7.2} {cost:11.3}");
    Ok(())
}

fn cpu() -> Outcome<Duration> {
    let time = process::cpu_time()?;
    Ok(time.user + time.system)
}

fn write(path: &Path, engine: FileEngine, chunk: usize, bytes: u64, reserve: bool) -> Outcome<()> {
    let file = OwnedFd::from(File::create(path)?);
    if reserve {
        file::set_length(file.as_fd(), bytes)?;
        file::allocate(file.as_fd(), 0, bytes)?;
    }
    let mut writer = engine::writer(only(engine))?;
    let file = writer.adopt(file)?;
    let mut free = frames(writer.depth(), chunk);
    for offset in (0..bytes).step_by(chunk) {
        if free.is_empty() {
            let over = writer.complete().ok_or("nothing under way")?;
            over.result?;
            free.push(over.request.frame);
        }
        let mut frame = free.pop().ok_or("no frame")?;
        frame.set(&Header {
            payload_bytes: chunk as u32,
            ..Header::of_messages(FrameKind::Chunk)
        });
        writer.submit(request(&file, offset, chunk, frame));
    }
    while let Some(over) = writer.complete() {
        over.result?;
    }
    file::sync_data(file.fd())?;
    Ok(())
}

fn read(path: &Path, engine: FileEngine, chunk: usize, bytes: u64) -> Outcome<()> {
    let mut reader = engine::reader(only(engine))?;
    let file = reader.adopt(File::open(path)?.into())?;
    let mut free = frames(reader.depth(), chunk);
    for offset in (0..bytes).step_by(chunk) {
        if free.is_empty() {
            let over = reader.complete().ok_or("nothing under way")?;
            over.result?;
            free.push(over.request.frame);
        }
        let frame = free.pop().ok_or("no frame")?;
        reader.submit(request(&file, offset, chunk, frame));
    }
    while let Some(over) = reader.complete() {
        over.result?;
    }
    Ok(())
}

fn frames(depth: usize, chunk: usize) -> Vec<Frame> {
    let maker = FrameMaker::new(depth, chunk);
    std::iter::from_fn(|| maker.make()).collect()
}

fn request(file: &Arc<OpenFile>, offset: u64, bytes: usize, frame: Frame) -> Request {
    Request {
        file: Arc::clone(file),
        offset,
        bytes,
        frame,
        tag: offset,
    }
}
