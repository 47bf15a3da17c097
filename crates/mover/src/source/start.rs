//! How a sending end begins: the sources looked at, the engine chosen, its threads made.

use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, bounded};
use farline_proto::copy::sender::Config;
use farline_spec::{
    CopyShare, CopySpec, Failure, FailureKind, FileEngine, FileKind, FileStatus, MOST_CHOSEN_CHUNK_BYTES,
};
use farline_sys::file::{self, FileFacts, OpenFlags};
use farline_sys::process::raise_open_files;
use tracing::{Span, debug};

use super::driver::Driver;
use super::filter::Filters;
use super::found::Found;
use super::halt::Halt;
use super::lanes::Lanes;
use super::origin::{Missing, Origin};
use super::pool::Pool;
use super::removal::Removal;
use super::second_look;
use super::shared::{Queue, Shared};
use super::straight::Straight;
use super::walk::{BATCHES_AHEAD, List, THREADS, Walk};
use super::{Inner, SendEnd, stream};
use crate::engine::{self, Choice, Device};
use crate::message::Top;
use crate::pack::ITEM_HEADER_BYTES;
use crate::receipt::Receipt;
use crate::request::Request;
use crate::{EndSetup, Root, path_text};

/// Chunk where the spec does not say, through the page cache: it stays in a processor's second cache (1 MiB and more
/// today) from read to hash to cipher to stream. Twice as much costs 6 % more processor time, half as much 10 % more.
const CACHED_CHUNK_BYTES: u64 = 512 * 1024;
/// Chunk of files that nobody reads: a call each, and nothing to keep in a cache.
const STRAIGHT_CHUNK_BYTES: u64 = 1 << 20;
/// Least size of packs of small files.
const LEAST_PACK_BYTES: u64 = 256 * 1024;
/// Memory of all frames of a sending end, at most, unless even one for each reader and stream takes more.
const MOST_FRAMES_BYTES: usize = 1 << 30;
/// Threads that help streams with small files, at most.
const MOST_HELPERS: usize = 2;
/// Longest pack: a longer one would come late.
const MOST_PACK_BYTES: u64 = 1 << 20;

/// Begins a sending end.
pub(super) fn start(setup: EndSetup) -> Result<SendEnd, Failure> {
    // Where no more may be open than there are, a folder that cannot be opened is named.
    let open_files = raise_open_files().unwrap_or_default();
    let (origins, missing) = open_sources(&setup);
    if origins.is_empty() {
        // A spec has one source at least.
        let (line, kind) = missing.first().map_or_else(
            || (String::new(), FailureKind::Internal),
            |missing| {
                (
                    format!("source {}: {}", missing.text, missing.reason),
                    missing.kind,
                )
            },
        );
        return Err(Failure::new(kind, line));
    }
    let list = setup.spec.source_list.as_deref().map(List::open).transpose()?;
    let may_repeat = list.is_some() || may_repeat(&origins);
    let shared = Arc::new(share(setup, origins, open_files)?);
    debug!(
        sources = shared.origins.len(),
        missing = missing.len(),
        file_system = shared.file_system,
        engine = shared.choice.engine.word(),
        threads = shared.choice.threads,
        chunk_bytes = shared.chunk_bytes,
        "sources opened"
    );
    for missing in &missing {
        shared.is_whole.store(false, Ordering::Relaxed);
        // What is no path at all stands in the receipt as it is in the spec.
        let path = path_text::to_bytes(&missing.text).unwrap_or_else(|_| missing.text.clone().into_bytes());
        shared.settle_unannounced(&path, FileKind::Other, FileStatus::Failed, &missing.reason);
    }
    let (into, found) = bounded(BATCHES_AHEAD);
    let mut threads = Vec::new();
    let begun = begin_threads(&shared, list, &into, &mut threads);
    let queue = shared.queue.as_ref().filter(|_| shared.choice.threads > 0);
    let room = queue.map_or(0, |queue| queue.pool.room());
    shared.gauges.room_frames.set(room as u64);
    let end = SendEnd {
        inner: Arc::new(Inner {
            shared,
            found,
            may_repeat,
            threads: Mutex::new(threads),
        }),
    };
    if let Err(failure) = begun {
        end.abort(&failure);
        end.finish()?;
        return Err(failure);
    }
    Ok(end)
}

fn open_sources(setup: &EndSetup) -> (Vec<Origin>, Vec<Missing>) {
    let mut origins: Vec<Origin> = Vec::new();
    let mut missing = Vec::new();
    for text in &setup.spec.sources {
        // Names in a list are those in the source, whether it ends with a slash or not.
        let text = match setup.spec.source_list {
            Some(_) => format!("{text}/"),
            None => text.clone(),
        };
        let opened = match setup.expands_patterns {
            true => Origin::open_pattern(&setup.root, &text, &mut origins),
            false => Origin::open(&setup.root, &text, origins.last()).map(|origin| origins.push(origin)),
        };
        missing.extend(opened.err());
    }
    (origins, missing)
}

/// Whether two sources can give one name: unless all are single names, and different ones.
fn may_repeat(origins: &[Origin]) -> bool {
    let mut tops: Vec<_> = origins.iter().map(Origin::top).collect();
    tops.sort_unstable();
    tops.len() > 1 && (tops[0].is_none() || tops.windows(2).any(|two| two[0] == two[1]))
}

fn pack_bytes(spec: &CopySpec) -> usize {
    let bytes = spec.chunk_bytes.map_or(MOST_PACK_BYTES, |chunk| {
        chunk.get().clamp(LEAST_PACK_BYTES, MOST_PACK_BYTES)
    });
    bytes as usize
}

/// Longest pack of small files; where a part of a file is carried it goes in chunks, however small it is.
fn longest_pack(spec: &CopySpec, pack_bytes: usize) -> usize {
    let range = spec.share.as_ref().and_then(CopyShare::range);
    range.map_or(pack_bytes, |_| ITEM_HEADER_BYTES)
}

/// Threads that fill frames, without the helpers.
fn workers(choice: Choice, streams: u16) -> usize {
    match choice.threads {
        0 => streams.max(1).into(),
        threads => threads.into(),
    }
}

/// What the machine is to know of the copy.
fn config(setup: &EndSetup, chunk_bytes: u64, most_under_way: usize) -> Config {
    let spec = &setup.spec;
    Config {
        sum: setup.sum,
        chunk_bytes,
        pack_bytes: longest_pack(spec, pack_bytes(spec)),
        range: spec.share.as_ref().and_then(CopyShare::range),
        is_dry: spec.dry_run,
        is_fresh: setup.is_vacant,
        // A dry run asks, and so does a copy that makes nothing new.
        wants_unasked: !spec.dry_run && !spec.existing,
        joins_names: spec.hard_links,
        takes_names_apart: setup.takes_names_apart,
        remembers_frames: setup.heals_frames,
        most_unanswered: spec.pipeline.get() as usize,
        most_live: crate::most_entries_under_way(spec),
        most_under_way,
    }
}

fn share(setup: EndSetup, origins: Vec<Origin>, open_files: u64) -> Result<Shared, Failure> {
    let spec = &setup.spec;
    let device = device_of(&setup.root, &origins[0])?;
    let threads = spec.readers.map(|readers| readers.get());
    let choice = engine::choose(spec.read_engine, threads, &device, setup.streams)?;
    let choice = choice.straight(setup.may_go_straight && device.is_memory);
    let chunk_bytes = chunk_bytes(spec, choice.engine);
    let pack_bytes = pack_bytes(spec);
    let frame_bytes = pack_bytes.max(chunk_bytes as usize);
    let helpers = helpers(spec, choice, setup.streams);
    let workers = workers(choice, setup.streams);
    let under_way = spec
        .concurrency
        .map_or(workers + helpers, |files| files.get() as usize);
    let depth = depth(choice, setup.streams, workers, frame_bytes)?;
    let most_streams = setup.most_streams;
    let top_facts = top(spec, &origins);
    Ok(Shared {
        request: Request::new(spec, setup.is_own_request)?,
        deleted: AtomicU64::new(0),
        filters: Filters::new(&spec.filters)?,
        sum: setup.sum,
        receipt: Receipt::open(setup.receipt.as_deref())?,
        driver: Driver::new(
            config(&setup, chunk_bytes, under_way),
            setup.streams,
            Arc::clone(&setup.gauges),
        ),
        pack_bytes: longest_pack(spec, pack_bytes),
        remembers_frames: setup.heals_frames,
        queue: match choice.threads {
            // Helpers fill packs alone.
            0 => queue(helpers, 1, (setup.streams, most_streams), pack_bytes),
            threads => queue(threads.into(), depth, (setup.streams, most_streams), frame_bytes),
        },
        helpers,
        streams: setup.streams,
        lanes: Lanes::new(setup.streams),
        is_concurrency_said: AtomicBool::new(spec.concurrency.is_some()),
        depth,
        waits_for_device: !device.is_memory
            && !matches!(choice.engine, FileEngine::Null | FileEngine::Memory),
        file_system: device.file_system,
        most_bytes: setup.most_bytes,
        gauges: setup.gauges,
        pulse: setup.pulse,
        held: Arc::default(),
        halt: Halt::new(),
        is_whole: AtomicBool::new(true),
        work: AtomicU64::new(0),
        hole_bytes: AtomicU64::new(0),
        straight: (choice.engine == FileEngine::Sendfile)
            .then(|| Straight::new(open_files, choice.is_auto.then_some(device.number))),
        spec: setup.spec,
        root: setup.root,
        origins,
        choice,
        chunk_bytes,
        top: top_facts.map(likeness),
        top_facts,
        removal: Removal::default(),
    })
}

const fn likeness(facts: FileFacts) -> Top {
    Top {
        mode: facts.mode,
        mtime_ns: facts.mtime_ns,
    }
}

/// What the destination folder should be like: as the one source, when that is what is in a folder, all of it.
fn top(spec: &CopySpec, origins: &[Origin]) -> Option<FileFacts> {
    let ([origin], None) = (origins, &spec.source_list) else {
        return None;
    };
    let facts = file::stat_fd(origin.folder()).ok()?;
    origin.top().is_none().then_some(facts)
}

fn chunk_bytes(spec: &CopySpec, engine: FileEngine) -> u64 {
    spec.chunk_bytes.map_or(
        match engine {
            FileEngine::Direct | FileEngine::Uring => MOST_CHOSEN_CHUNK_BYTES,
            FileEngine::Sendfile => STRAIGHT_CHUNK_BYTES,
            _ => CACHED_CHUNK_BYTES,
        },
        |chunk| chunk.get(),
    )
}

/// The device of the first source; of the folder it is in, if it cannot be read itself.
fn device_of(root: &Root, origin: &Origin) -> Result<Device, Failure> {
    let open = |path: &[u8], flags| origin.open_at(root, path, OpenFlags::READ | flags, false);
    let itself =
        |top: &[u8]| -> std::io::Result<OwnedFd> { open(top, OpenFlags::NO_WAIT | OpenFlags::NO_FOLLOW) };
    let opened = match origin.top() {
        Some(top) => itself(top).or_else(|_| open(b"", OpenFlags::FOLDER)),
        None => open(b"", OpenFlags::FOLDER),
    };
    opened
        .and_then(|open| engine::device_of(open.as_fd()))
        .map_err(|error| Failure::system("the first source", &error))
}

/// Threads that read small files for streams which read for themselves: where there are processors without a stream.
fn helpers(spec: &CopySpec, choice: Choice, streams: u16) -> usize {
    if choice.threads > 0 || spec.readers.is_some() {
        return 0;
    }
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    processors.saturating_sub(streams.into()).min(MOST_HELPERS)
}

/// Requests that each of `workers` readers may have under way: what the engine takes, as far as memory goes.
fn depth(choice: Choice, streams: u16, workers: usize, frame_bytes: usize) -> Result<usize, Failure> {
    let most = MOST_FRAMES_BYTES / frame_bytes;
    let for_readers = match choice.threads {
        0 => most,
        _ => most.saturating_sub(2 * usize::from(streams)),
    };
    let fit = (for_readers / workers).saturating_sub(1).max(1);
    Ok(engine::reader(choice)?.depth().min(fit))
}

/// Frames between reader threads and streams: two for each stream, and what the readers have under way; fewer where memory
/// is short, but none of the readers may hold all while it waits for one more. There is room for those of so many streams as
/// there may be later.
fn queue(
    readers: usize,
    depth: usize,
    (streams, most_streams): (u16, u16),
    frame_bytes: usize,
) -> Option<Queue> {
    if readers == 0 {
        return None;
    }
    let frames_of = |streams: u16| {
        let wanted = 2 * usize::from(streams) + readers * stream::frames_of_reader(depth);
        wanted.min((MOST_FRAMES_BYTES / frame_bytes).max(readers * depth))
    };
    let (frames, room) = (frames_of(streams), frames_of(streams.max(most_streams)));
    let (into, out_of) = bounded(room);
    Some(Queue {
        pool: Arc::new(Pool::with_room(room, frames, frame_bytes)),
        into,
        out_of,
    })
}

fn begin_threads(
    shared: &Arc<Shared>,
    list: Option<List>,
    into: &Sender<Vec<Found>>,
    threads: &mut Vec<JoinHandle<()>>,
) -> Result<(), Failure> {
    let walk = Arc::new(Walk::new(Arc::clone(shared), list));
    for _ in 0..THREADS {
        let (walk, into) = (Arc::clone(&walk), into.clone());
        let body = move || {
            walk.run(into);
            Ok(())
        };
        threads.push(begin_thread(shared, "fl-walk", body)?);
    }
    let own = Arc::clone(shared);
    threads.push(begin_thread(shared, "fl-again", move || second_look::run(&own))?);
    for _ in 0..shared.choice.threads {
        let own = Arc::clone(shared);
        let body = move || match &own.queue {
            Some(queue) => stream::fill_queue(&own, queue),
            None => Ok(()),
        };
        threads.push(begin_thread(shared, "fl-read", body)?);
    }
    for _ in 0..shared.helpers {
        let own = Arc::clone(shared);
        let body = move || match &own.queue {
            Some(queue) => stream::help(&own, queue),
            None => Ok(()),
        };
        threads.push(begin_thread(shared, "fl-pack", body)?);
    }
    Ok(())
}

/// A thread of this end; what ends it badly ends the copy, a defect too.
fn begin_thread(
    shared: &Arc<Shared>,
    name: &str,
    body: impl FnOnce() -> Result<(), Failure> + Send + 'static,
) -> Result<JoinHandle<()>, Failure> {
    let (own, part) = (Arc::clone(shared), name.to_owned());
    let session = Span::current();
    let guarded = move || {
        let _within = session.enter();
        let outcome =
            catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(Failure::defect(&part, &*panic)));
        if let Err(failure) = outcome {
            own.stop(&failure);
        }
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(guarded)
        .map_err(|error| Failure::system("a thread of the sending end", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_ahead_fits_into_memory_whatever_the_spec_asks_for() {
        let choice = |engine, threads| Choice {
            engine,
            threads,
            is_auto: false,
        };
        let chunk = 16 << 20;
        assert_eq!(depth(choice(FileEngine::Buffered, 0), 1, 1, chunk).unwrap(), 1);
        for (threads, streams) in [(0, 1), (0, 20), (4, 4), (16, 2), (30, 2), (60, 60)] {
            let workers = usize::from(if threads > 0 { threads } else { streams });
            let Ok(depth) = depth(choice(FileEngine::Uring, threads), streams, workers, chunk) else {
                // No io_uring here.
                return;
            };
            let frames = match queue(threads.into(), depth, (streams, streams), chunk) {
                Some(queue) => queue.into.capacity().expect("a bound"),
                None => workers * stream::frames_of_reader(depth),
            };
            assert!(
                frames * chunk <= MOST_FRAMES_BYTES,
                "{threads} {streams}: {frames}"
            );
            assert!(frames >= workers * depth && (1..=16).contains(&depth));
        }
    }

    #[test]
    fn a_disk_gets_larger_requests_than_a_cache_unless_the_size_was_said() {
        use FileEngine::{Buffered, Direct, Memory, Null, Sendfile, Uring};
        let spec = CopySpec::default();
        for engine in [Buffered, Null, Memory] {
            assert_eq!(chunk_bytes(&spec, engine), 512 << 10);
        }
        assert_eq!(chunk_bytes(&spec, Sendfile), 1 << 20);
        let said = CopySpec {
            chunk_bytes: Some(farline_spec::unit::ChunkBytes::new(1 << 16).expect("a size")),
            ..spec.clone()
        };
        for engine in [Direct, Uring] {
            assert_eq!(chunk_bytes(&spec, engine), 2 << 20);
            assert_eq!(chunk_bytes(&said, engine), 1 << 16);
        }
        // Receivers make room for the longest that may come unsaid.
        assert_eq!(crate::most_frame_bytes(&spec) as u64, chunk_bytes(&spec, Uring));
    }

    #[test]
    fn streams_are_helped_where_there_are_processors_for_it_and_nobody_said_how_many_read() {
        let alone = Choice {
            engine: FileEngine::Buffered,
            threads: 0,
            is_auto: true,
        };
        let spec = CopySpec::default();
        assert!(helpers(&spec, alone, 1) <= MOST_HELPERS);
        assert_eq!(helpers(&spec, alone, u16::MAX), 0);
        assert_eq!(helpers(&spec, Choice { threads: 1, ..alone }, 1), 0);
        let said = CopySpec {
            readers: Some(farline_spec::unit::ThreadCount::new(0).expect("a count")),
            ..spec
        };
        assert_eq!(helpers(&said, alone, 1), 0);
    }
}
