//! Reads and writes of files at stated settings, to measure what a file system can do.
//!
//! One thread for each lane, all begun at one time. A request at a time goes by `pread` and `pwrite`, several by io_uring,
//! as in the engines of copies; what is moved is no payload, and nothing is kept of it but counts.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

use farline_spec::{
    Failure, FailureKind, StorageAction, StorageLane, StorageLoad, StorageLoadReport, StorageSync,
};
use farline_sys::file::{self, OpenFlags};
use farline_sys::page_buffer::{PAGE_BYTES, PageBuffer};
use farline_sys::time::{now_ns, sleep_until};
use farline_sys::uring::{Direction, Ring, Transfer};

use crate::engine::explain_direct;
use crate::path_text;

/// Places for latencies: up to 2^32 microseconds.
const LATENCY_PLACES: usize = 128;

/// Does what is asked and waits until it is over.
///
/// # Errors
/// [`FailureKind::Spec`] for numbers that do not fit together; [`FailureKind::System`] for what the kernel refuses.
pub fn run_storage_load(load: StorageLoad) -> Result<StorageLoadReport, Failure> {
    let load = load.checked()?;
    let lanes = load.lanes.iter().map(|lane| Lane::open(&load, lane));
    let lanes = lanes.collect::<Result<Vec<_>, _>>()?;
    let cached_before_bytes = cached(&lanes);
    if load.drop_cache {
        lanes.iter().for_each(Lane::drop_cache);
    }
    let workers = lanes.iter().map(|lane| Worker::new(&load, lane));
    let workers = workers.collect::<Result<Vec<_>, _>>()?;
    let cached_bytes = cached(&lanes);
    let ended = thread::scope(|scope| {
        let running: Vec<_> = workers
            .into_iter()
            .map(|worker| scope.spawn(|| worker.run()))
            .collect();
        let ended = running.into_iter().map(|one| {
            one.join()
                .unwrap_or_else(|panic| Err(Failure::defect("a storage load", panic.as_ref())))
        });
        ended.collect::<Result<Vec<_>, _>>()
    })?;
    let mut report = StorageLoadReport {
        cached_before_bytes,
        cached_bytes,
        span_bytes: load.lanes.iter().map(|lane| lane.span_bytes).sum(),
        began_ns: u64::MAX,
        latency_counts: vec![0; LATENCY_PLACES],
        ..StorageLoadReport::default()
    };
    ended.iter().for_each(|lane| lane.add_to(&mut report));
    Ok(report)
}

/// Bytes of the lanes in the page cache; `None` where the kernel does not tell of one.
fn cached(lanes: &[Lane<'_>]) -> Option<u64> {
    lanes
        .iter()
        .map(|lane| {
            file::cached_bytes_in(lane.file.as_fd(), lane.part.offset_bytes, lane.part.span_bytes).ok()
        })
        .sum()
}

/// A lane with its file open.
struct Lane<'a> {
    file: OwnedFd,
    part: &'a StorageLane,
}

impl<'a> Lane<'a> {
    fn open(load: &StorageLoad, part: &'a StorageLane) -> Result<Self, Failure> {
        let way = match load.action {
            StorageAction::Read => OpenFlags::READ,
            StorageAction::Write => OpenFlags::READ_WRITE,
        };
        let direct = if load.direct { way | OpenFlags::DIRECT } else { way };
        let refused = |error| Failure::system(&part.file, &error);
        let path = path_text::to_bytes(&part.file)?;
        let file = file::open_at(None, &path, direct | OpenFlags::NO_WAIT, 0)
            .map_err(|error| if load.direct { explain_direct(error) } else { error })
            .map_err(refused)?;
        let facts = file::stat_fd(file.as_fd()).map_err(refused)?;
        if facts.kind != file::FileKind::File {
            let line = format!("{}: not a regular file", part.file);
            return Err(Failure::new(FailureKind::Usage, line));
        }
        let end = part.offset_bytes + part.span_bytes;
        if load.action == StorageAction::Read && facts.bytes < end {
            let line = format!("{}: has {} bytes; {end} were to be read", part.file, facts.bytes);
            return Err(Failure::new(FailureKind::Usage, line));
        }
        Ok(Self { file, part })
    }

    /// What is refused here is seen in what is still cached afterwards.
    fn drop_cache(&self) {
        let _ = file::sync_data(self.file.as_fd());
        let _ = file::forget(self.file.as_fd(), self.part.offset_bytes, self.part.span_bytes);
    }
}

/// Where the requests of a lane go, one after the other.
struct Places {
    start: u64,
    span: u64,
    step: u64,
    request: u64,
    /// From the start of the lane to the first request of this pass.
    first: u64,
    /// From the start of the lane to the next request.
    next: u64,
}

impl Places {
    fn new(part: &StorageLane, request: u64) -> Self {
        Self {
            start: part.offset_bytes,
            span: part.span_bytes,
            step: part.step_bytes,
            request,
            first: 0,
            next: 0,
        }
    }

    fn next(&mut self) -> u64 {
        if self.next + self.request > self.span {
            self.first += self.request;
            if self.first + self.request > self.step.min(self.span) {
                self.first = 0;
            }
            self.next = self.first;
        }
        let place = self.start + self.next;
        self.next += self.step;
        place
    }
}

/// The thread of a lane before it begins.
struct Worker<'a> {
    load: &'a StorageLoad,
    file: BorrowedFd<'a>,
    name: &'a str,
    places: Places,
    memory: Vec<PageBuffer>,
    ring: Option<Ring<UnderWay<'a>>>,
    done: Done,
    /// Bytes of requests that have begun.
    begun_bytes: u64,
    stamp: u64,
}

/// A request that the kernel has.
struct UnderWay<'a> {
    file: BorrowedFd<'a>,
    began_ns: u64,
}

impl AsFd for UnderWay<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file
    }
}

impl<'a> Worker<'a> {
    fn new(load: &'a StorageLoad, lane: &'a Lane<'_>) -> Result<Self, Failure> {
        let depth = load.depth.get();
        let request = load.request_bytes.get();
        let ring = (depth > 1).then(|| Ring::new(depth)).transpose().map_err(|error| {
            let line = "several requests in flight need io_uring, which is not available here; use a depth of 1 and \
                        more threads";
            Failure::system(line, &error)
        })?;
        Ok(Self {
            load,
            file: lane.file.as_fd(),
            name: &lane.part.file,
            places: Places::new(lane.part, request),
            memory: (0..depth).map(|number| noise(request as usize, number)).collect(),
            ring,
            done: Done::new(),
            begun_bytes: 0,
            stamp: 0,
        })
    }

    fn run(mut self) -> Result<Done, Failure> {
        sleep_until(self.load.begin_at_ns, 0);
        self.done.began_ns = now_ns();
        let outcome = match self.ring.take() {
            Some(ring) => self.many(ring),
            None => self.one_by_one(),
        };
        outcome
            .and_then(|()| self.sync_at_end())
            .map_err(|error| Failure::system(self.name, &error))?;
        self.done.ended_ns = now_ns();
        Ok(self.done)
    }

    /// Where the next request goes; `None` when no more may begin. The first one always may.
    fn next_place(&mut self) -> Option<u64> {
        let request = self.load.request_bytes.get();
        let most = self.load.most_lane_bytes;
        let over = self.done.began_ns + (self.load.duration_s.get() * 1e9) as u64;
        let spent = now_ns() >= over || (most > 0 && self.begun_bytes + request > most);
        if spent && self.begun_bytes > 0 {
            return None;
        }
        self.begun_bytes += request;
        Some(self.places.next())
    }

    fn one_by_one(&mut self) -> io::Result<()> {
        let mut memory = self.memory.pop().expect("memory for one request");
        let bytes = memory.len();
        while let Some(offset) = self.next_place() {
            let began_ns = now_ns();
            match self.load.action {
                StorageAction::Read => whole(file::read_at(self.file, &mut memory, offset)?, bytes)?,
                StorageAction::Write => {
                    self.mark(&mut memory);
                    file::write_all_at(self.file, &memory, offset)?;
                }
            }
            self.settle(began_ns, bytes)?;
        }
        Ok(())
    }

    fn many(&mut self, mut ring: Ring<UnderWay<'a>>) -> io::Result<()> {
        loop {
            while !self.memory.is_empty() {
                let Some(offset) = self.next_place() else { break };
                let mut memory = self.memory.pop().expect("looked at above");
                if self.load.action == StorageAction::Write {
                    self.mark(&mut memory);
                }
                ring.begin(self.transfer(memory, offset));
            }
            let Some((transfer, result)) = ring.next() else {
                break;
            };
            let bytes = transfer.bytes;
            whole(result.map_err(explain_direct)?, bytes)?;
            self.memory.push(transfer.memory);
            self.settle(transfer.file.began_ns, bytes)?;
        }
        Ok(())
    }

    fn transfer(&self, memory: PageBuffer, offset: u64) -> Transfer<UnderWay<'a>> {
        Transfer {
            direction: match self.load.action {
                StorageAction::Read => Direction::Read,
                StorageAction::Write => Direction::Write,
            },
            offset,
            start: 0,
            bytes: memory.len(),
            memory,
            file: UnderWay {
                file: self.file,
                began_ns: now_ns(),
            },
        }
    }

    /// Makes no two pages that are written the same: a file system that keeps equal pages once would seem faster than it is.
    fn mark(&mut self, memory: &mut PageBuffer) {
        for page in memory.chunks_mut(PAGE_BYTES) {
            self.stamp = self.stamp.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let bytes = page.len().min(8);
            page[..bytes].copy_from_slice(&self.stamp.to_le_bytes()[..bytes]);
        }
    }

    fn settle(&mut self, began_ns: u64, bytes: usize) -> io::Result<()> {
        if self.load.action == StorageAction::Write && self.load.sync == StorageSync::Each {
            file::sync_data(self.file)?;
        }
        self.done.count(now_ns() - began_ns, bytes);
        Ok(())
    }

    fn sync_at_end(&mut self) -> io::Result<()> {
        if self.load.action == StorageAction::Write && self.load.sync == StorageSync::End {
            let began_ns = now_ns();
            file::sync_data(self.file)?;
            self.done.sync_ns = now_ns() - began_ns;
        }
        Ok(())
    }
}

/// A file that ends early gives less than was measured before.
fn whole(done: usize, wanted: usize) -> io::Result<()> {
    if done == wanted {
        return Ok(());
    }
    let line = format!("{done} bytes of {wanted} came: the file has become shorter");
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, line))
}

/// Memory whose content no file system can make smaller.
fn noise(bytes: usize, seed: u16) -> PageBuffer {
    let mut memory = PageBuffer::new(bytes);
    let mut state = 0x2545_f491_4f6c_dd1d_u64 ^ (u64::from(seed) << 17);
    for word in memory.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let length = word.len();
        word.copy_from_slice(&state.to_le_bytes()[..length]);
    }
    memory
}

/// What a lane did.
struct Done {
    bytes: u64,
    requests: u64,
    began_ns: u64,
    ended_ns: u64,
    sync_ns: u64,
    latency_counts: [u64; LATENCY_PLACES],
    latency_max_ns: u64,
}

impl Done {
    const fn new() -> Self {
        Self {
            bytes: 0,
            requests: 0,
            began_ns: 0,
            ended_ns: 0,
            sync_ns: 0,
            latency_counts: [0; LATENCY_PLACES],
            latency_max_ns: 0,
        }
    }

    fn count(&mut self, latency_ns: u64, bytes: usize) {
        self.bytes += bytes as u64;
        self.requests += 1;
        self.latency_counts[latency_place(latency_ns)] += 1;
        self.latency_max_ns = self.latency_max_ns.max(latency_ns);
    }

    fn add_to(&self, report: &mut StorageLoadReport) {
        report.bytes += self.bytes;
        report.requests += self.requests;
        report.began_ns = report.began_ns.min(self.began_ns);
        report.ended_ns = report.ended_ns.max(self.ended_ns);
        report.sync_ns = report.sync_ns.max(self.sync_ns);
        report.latency_max_ns = report.latency_max_ns.max(self.latency_max_ns);
        for (sum, count) in report.latency_counts.iter_mut().zip(self.latency_counts) {
            *sum += count;
        }
    }
}

/// Place i is for 2^(i/4) to 2^((i+1)/4) microseconds.
fn latency_place(latency_ns: u64) -> usize {
    let place = (latency_ns as f64 / 1e3).max(1.0).log2() * 4.0;
    (place as usize).min(LATENCY_PLACES - 1)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use farline_spec::from_json;

    use super::*;

    fn load(folder: &Path, changes: &str) -> StorageLoad {
        let file = folder.join("file");
        let text = format!(
            r#"{{"action": "write", "request_bytes": 65536, "depth": 1, "direct": false, "sync": "end",
                "drop_cache": false, "begin_at_ns": 0, "duration_s": 5, "most_lane_bytes": 1048576,
                "lanes": [{{"file": {file:?}, "offset_bytes": 0, "span_bytes": 1048576, "step_bytes": 65536}}]}}"#
        );
        let mut document: serde_json::Value = from_json(&text).unwrap();
        let changes: serde_json::Value = from_json(changes).unwrap();
        for (name, value) in changes.as_object().unwrap() {
            document[name] = value.clone();
        }
        from_json(&document.to_string()).unwrap()
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), b"").unwrap();
        folder
    }

    #[test]
    fn what_is_written_is_there_and_counted_whatever_the_depth() {
        let folder = folder();
        for depth in [1, 4] {
            let spec = load(folder.path(), &format!(r#"{{"depth": {depth}}}"#));
            let report = match run_storage_load(spec) {
                Err(failure) if depth > 1 => {
                    assert!(failure.message.contains("io_uring"), "{}", failure.message);
                    continue;
                }
                report => report.unwrap(),
            };
            assert_eq!((report.bytes, report.requests), (1 << 20, 16));
            assert_eq!(report.latency_counts.iter().sum::<u64>(), 16);
            assert!(report.ended_ns > report.began_ns && report.sync_ns < report.ended_ns - report.began_ns);
        }
        let content = std::fs::read(folder.path().join("file")).unwrap();
        assert_eq!(content.len(), 1 << 20);
        let mut pages: Vec<_> = content.chunks(PAGE_BYTES).collect();
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), 256, "no two pages are the same");
    }

    #[test]
    fn what_is_cached_is_told_before_and_after_it_is_dropped() {
        let folder = folder();
        run_storage_load(load(folder.path(), "{}")).unwrap();
        let warm = run_storage_load(load(folder.path(), r#"{"action": "read"}"#)).unwrap();
        let Some(cached) = warm.cached_bytes else { return };
        assert_eq!((cached, warm.span_bytes), (1 << 20, 1 << 20));
        let cold =
            run_storage_load(load(folder.path(), r#"{"action": "read", "drop_cache": true}"#)).unwrap();
        assert_eq!(cold.cached_before_bytes, Some(1 << 20));
        let on_disk =
            file::file_system(std::fs::File::open(folder.path()).unwrap().as_fd()).unwrap() != "tmpfs";
        assert_eq!(cold.cached_bytes, Some(if on_disk { 0 } else { 1 << 20 }));
    }

    #[test]
    fn a_time_ends_it_and_one_request_is_always_done() {
        let folder = folder();
        let short = load(folder.path(), r#"{"duration_s": 0.01, "most_lane_bytes": 0}"#);
        let report = run_storage_load(short).unwrap();
        assert!(report.requests >= 1);
        assert!(std::fs::metadata(folder.path().join("file")).unwrap().len() <= 1 << 20);
    }

    #[test]
    fn a_file_too_short_or_absent_is_named() {
        let folder = folder();
        let failure = run_storage_load(load(folder.path(), r#"{"action": "read"}"#)).unwrap_err();
        assert!(
            failure.message.contains("has 0 bytes; 1048576 were to be read"),
            "{}",
            failure.message
        );
        std::fs::remove_file(folder.path().join("file")).unwrap();
        let failure = run_storage_load(load(folder.path(), "{}")).unwrap_err();
        assert_eq!(failure.kind, FailureKind::System);
    }

    #[test]
    fn passes_with_gaps_come_to_every_request_once() {
        let part = StorageLane {
            file: String::new(),
            offset_bytes: 100,
            span_bytes: 96,
            step_bytes: 32,
        };
        let mut places = Places::new(&part, 8);
        let mut seen: Vec<_> = (0..12).map(|_| places.next()).collect();
        assert_eq!(seen[..4], [100, 132, 164, 108]);
        seen.sort_unstable();
        assert_eq!(seen, (0..12).map(|place| 100 + 8 * place).collect::<Vec<_>>());
        assert_eq!(places.next(), 100);
    }

    #[test]
    fn latencies_fall_into_quarters_of_a_doubling() {
        assert_eq!(
            [0, 999, 1000, 1188, 1190, 2000].map(latency_place),
            [0, 0, 0, 0, 1, 4]
        );
        assert_eq!(latency_place(u64::MAX), LATENCY_PLACES - 1);
    }
}
