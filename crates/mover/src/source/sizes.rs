//! How large chunks and packs are, who reads them, and how much is read ahead.

use std::sync::Arc;

use farline_spec::{CopyShare, CopySpec, Failure, FileEngine, MOST_CHOSEN_CHUNK_BYTES};

use super::pool::Pool;
use super::stream;
use crate::EndSetup;
use crate::engine::{self, Choice, Device};
use crate::pack::ITEM_HEADER_BYTES;

/// Chunk where the spec does not say, through the page cache: it stays in a processor's second cache (1 MiB and more
/// today) from read to hash to cipher to stream. Twice as much costs 6 % more processor time, half as much 10 % more.
const CACHED_CHUNK_BYTES: u64 = 512 * 1024;
/// Chunk of files that nobody reads: a call each, and nothing to keep in a cache.
const STRAIGHT_CHUNK_BYTES: u64 = 1 << 20;
/// Time that a chunk takes at most where the rate is limited: what is proved is kept when the copy is cut off, and seen.
const LONGEST_CHUNK_S: u64 = 1;
/// Least chunk that is chosen.
const LEAST_CHUNK_BYTES: u64 = 64 * 1024;
/// Least size of packs of small files.
const LEAST_PACK_BYTES: u64 = 256 * 1024;
/// Memory of all frames of a sending end, at most, unless even one for each reader and stream takes more.
const MOST_FRAMES_BYTES: usize = 1 << 30;
/// Threads that help streams with small files, at most.
const MOST_HELPERS: usize = 2;
/// Longest pack: a longer one would come late.
const MOST_PACK_BYTES: u64 = 1 << 20;

/// What one copy reads with.
#[derive(Debug)]
pub(super) struct Sizes {
    /// How files are read.
    pub(super) choice: Choice,
    /// Chunk in use.
    pub(super) chunk_bytes: u64,
    /// Longest pack of all.
    pub(super) pack_bytes: usize,
    /// Threads that fill packs for streams which read for themselves.
    pub(super) helpers: usize,
    /// Files that are sent at once.
    pub(super) under_way: usize,
    /// Requests that each reader may have under way.
    pub(super) depth: usize,
    /// Frames between reader threads and streams, and how many there may ever be.
    pub(super) frames: Option<(Arc<Pool>, usize)>,
}

impl Sizes {
    /// Those for sources on `device`.
    ///
    /// # Errors
    /// [`FailureKind::Spec`](farline_spec::FailureKind::Spec) for an engine that is not to be had.
    pub(super) fn choose(setup: &EndSetup, device: &Device) -> Result<Self, Failure> {
        let spec = &setup.spec;
        let threads = spec.readers.map(|readers| readers.get());
        let choice = engine::choose(spec.read_engine, threads, device, setup.streams)?;
        let choice = choice.straight(setup.may_go_straight && device.is_memory);
        let chunk_bytes = chunk_bytes(spec, choice.engine, setup.streams);
        let pack_bytes = pack_bytes(spec, setup.streams);
        let frame_bytes = pack_bytes.max(chunk_bytes as usize);
        let helpers = helpers(spec, choice, setup.streams);
        let workers = workers(choice, setup.streams);
        let under_way = spec
            .concurrency
            .map_or(workers + helpers, |files| files.get() as usize);
        let depth = depth(choice, setup.streams, workers, frame_bytes)?;
        let streams = (setup.streams, setup.most_streams);
        Ok(Self {
            choice,
            chunk_bytes,
            pack_bytes: longest_pack(spec, pack_bytes),
            helpers,
            under_way,
            depth,
            frames: match choice.threads {
                // Helpers fill packs alone.
                0 => frames(helpers, 1, streams, pack_bytes),
                threads => frames(threads.into(), depth, streams, frame_bytes),
            },
        })
    }
}

fn pack_bytes(spec: &CopySpec, streams: u16) -> usize {
    let bytes = match spec.chunk_bytes {
        Some(chunk) => chunk.get().clamp(LEAST_PACK_BYTES, MOST_PACK_BYTES),
        None => bytes_in_time(spec, streams).min(MOST_PACK_BYTES),
    };
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

fn chunk_bytes(spec: &CopySpec, engine: FileEngine, streams: u16) -> u64 {
    if let Some(said) = spec.chunk_bytes {
        return said.get();
    }
    let most = match engine {
        FileEngine::Direct | FileEngine::Uring => MOST_CHOSEN_CHUNK_BYTES,
        FileEngine::Sendfile => STRAIGHT_CHUNK_BYTES,
        _ => CACHED_CHUNK_BYTES,
    };
    most.min(bytes_in_time(spec, streams))
}

/// What a stream of a copy that is held to a rate sends in the time of a chunk, as a power of two; no limit without a rate.
fn bytes_in_time(spec: &CopySpec, streams: u16) -> u64 {
    match spec.total_rate_bps.map_or(0, |rate| rate.get()) {
        0 => u64::MAX,
        rate_bps => {
            let bytes = rate_bps / 8 / u64::from(streams.max(1)) * LONGEST_CHUNK_S;
            (1 << bytes.max(1).ilog2()).max(LEAST_CHUNK_BYTES)
        }
    }
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
/// there may be later; with the most that there will be.
fn frames(
    readers: usize,
    depth: usize,
    (streams, most_streams): (u16, u16),
    frame_bytes: usize,
) -> Option<(Arc<Pool>, usize)> {
    if readers == 0 {
        return None;
    }
    let frames_of = |streams: u16| {
        let wanted = 2 * usize::from(streams) + readers * stream::frames_of_reader(depth);
        wanted.min((MOST_FRAMES_BYTES / frame_bytes).max(readers * depth))
    };
    let (frames, room) = (frames_of(streams), frames_of(streams.max(most_streams)));
    Some((Arc::new(Pool::with_room(room, frames, frame_bytes)), room))
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
            let frames = match frames(threads.into(), depth, (streams, streams), chunk) {
                Some((_, room)) => room,
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
            assert_eq!(chunk_bytes(&spec, engine, 4), 512 << 10);
        }
        assert_eq!(chunk_bytes(&spec, Sendfile, 4), 1 << 20);
        let said = CopySpec {
            chunk_bytes: Some(farline_spec::unit::ChunkBytes::new(1 << 16).expect("a size")),
            ..spec.clone()
        };
        for engine in [Direct, Uring] {
            assert_eq!(chunk_bytes(&spec, engine, 4), 2 << 20);
            assert_eq!(chunk_bytes(&said, engine, 4), 1 << 16);
        }
        // Receivers make room for the longest that may come unsaid.
        assert_eq!(
            crate::most_frame_bytes(&spec) as u64,
            chunk_bytes(&spec, Uring, 4)
        );
    }

    #[test]
    fn where_the_rate_is_limited_a_chunk_takes_a_second_at_most_unless_its_size_was_said() {
        let limited = |mbit: u64| CopySpec {
            total_rate_bps: Some(farline_spec::unit::RateBps::new(mbit * 1_000_000).expect("a rate")),
            ..CopySpec::default()
        };
        let chosen = |mbit, streams| chunk_bytes(&limited(mbit), FileEngine::Uring, streams);
        assert_eq!(chosen(0, 4), 2 << 20);
        assert_eq!(chosen(1, 2), 64 << 10);
        assert_eq!(chosen(8, 2), 256 << 10);
        assert_eq!(chosen(8, 0), 512 << 10);
        assert_eq!(chosen(100, 4), 2 << 20);
        assert_eq!(chosen(1_000_000, 1), 2 << 20);
        let said = CopySpec {
            chunk_bytes: Some(farline_spec::unit::ChunkBytes::new(1 << 20).expect("a size")),
            ..limited(1)
        };
        assert_eq!(chunk_bytes(&said, FileEngine::Buffered, 8), 1 << 20);
        assert_eq!(pack_bytes(&limited(1), 2), 64 << 10);
        assert_eq!(pack_bytes(&limited(0), 2), 1 << 20);
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
