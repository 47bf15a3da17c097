//! How a sending end begins: the sources looked at, the engine chosen, its threads made.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::{Sender, bounded};
use farline_proto::copy::sender::Config;
use farline_spec::{CopyShare, CopySpec, Failure, FailureKind, FileEngine, FileKind, FileStatus};
use farline_sys::file::{self, FileFacts, OpenFlags};
use farline_sys::process::raise_open_files;
use tracing::{Span, debug};

use super::account::Account;
use super::catalogue::Opening;
use super::chunk_reader::ChunkReader;
use super::driver::Driver;
use super::filter::Filters;
use super::found::Found;
use super::inspector::Inspector;
use super::lanes::Lanes;
use super::origin::{Missing, Origin, Sources, why};
use super::queue::Queue;
use super::reading::Reading;
use super::removal::Removal;
use super::run::Run;
use super::second_look;
use super::sizes::Sizes;
use super::straight::Straight;
use super::stream::Streams;
use super::walk::{BATCHES_AHEAD, Ground, List, THREADS, Walk};
use super::{Inner, SendEnd};
use crate::engine::{self, Device};
use crate::message::Xattr;
use crate::receipt::Receipt;
use crate::request::Request;
use crate::xattrs::{TOO_MANY, xattrs_of};
use crate::{EndSetup, Root, path_text};

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
    let (top_xattrs, unread) = match top_xattrs(&setup, &origins) {
        Ok(xattrs) => (xattrs, None),
        Err(why) => (None, Some(why)),
    };
    let (end, parts) = build(setup, origins, open_files, (may_repeat, top_xattrs))?;
    let inner = &*end.inner;
    let reading = &inner.streams.reading;
    debug!(
        sources = parts.ground.sources.count(),
        missing = missing.len(),
        file_system = inner.file_system,
        engine = reading.choice.engine.word(),
        threads = reading.choice.threads,
        chunk_bytes = reading.chunk_bytes,
        "sources opened"
    );
    for missing in &missing {
        inner.opening.is_whole.store(false, Ordering::Relaxed);
        // What is no path at all stands in the receipt as it is in the spec.
        let path = path_text::to_bytes(&missing.text).unwrap_or_else(|_| missing.text.clone().into_bytes());
        let driver = &inner.driver;
        driver.settle_unannounced(&path, FileKind::Other, FileStatus::Failed, &missing.reason);
    }
    if let Some(why) = unread {
        inner
            .driver
            .settle_unannounced(b".", FileKind::Folder, FileStatus::Failed, &why);
    }
    let queue = inner.streams.queue.as_ref();
    let queue = queue.filter(|_| reading.choice.threads > 0);
    let room = queue.map_or(0, |queue| queue.pool.room());
    inner.gauges.room_frames.set(room as u64);
    if let Err(failure) = begin_threads(inner, parts, list) {
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

/// What the machine is to know of the copy.
fn config(setup: &EndSetup, sizes: &Sizes) -> Config {
    let spec = &setup.spec;
    Config {
        sum: setup.sum,
        chunk_bytes: sizes.chunk_bytes,
        pack_bytes: sizes.pack_bytes,
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
        most_under_way: sizes.under_way,
    }
}

/// What the walk begins with.
struct Beginning {
    ground: Ground,
    into: Sender<Vec<Found>>,
}

/// Makes the parts of an end that begins with these sources, and what its walk goes over.
fn build(
    mut setup: EndSetup,
    origins: Vec<Origin>,
    open_files: u64,
    (may_repeat, top_xattrs): (bool, Option<Vec<Xattr>>),
) -> Result<(SendEnd, Beginning), Failure> {
    let device = device_of(&setup.root, &origins[0])?;
    let sizes = Sizes::choose(&setup, &device)?;
    let request = Request::new(&setup.spec, setup.is_own_request)?;
    let filters = Filters::new(&setup.spec.filters)?;
    let receipt = Receipt::open(setup.receipt.as_deref())?;
    let (config, top) = (config(&setup, &sizes), top(&setup.spec, &origins));
    let spec = Arc::new(std::mem::take(&mut setup.spec));
    let sources = Arc::new(Sources::new(
        std::mem::replace(&mut setup.root, Root::own()),
        origins,
    ));
    let gauges = Arc::clone(&setup.gauges);
    let pool = sizes.frames.as_ref().map(|(pool, _)| Arc::clone(pool));
    let run = Arc::new(Run::new(pool, Arc::clone(&setup.pulse)));
    let removal = Removal::new(&spec, &sources, &run);
    let account = Arc::new(Account::new(&spec, request, receipt, removal, &gauges));
    let lanes = Arc::new(Lanes::new(setup.streams));
    let driver = Driver::new(config, setup.streams, &gauges, &run, &account, &lanes);
    let driver = Arc::new(driver);
    let reading = reading(&setup, &sizes, &device, open_files, &sources);
    let (into, found) = bounded(BATCHES_AHEAD);
    let opening = Opening {
        spec: Arc::clone(&spec),
        chunk_bytes: reading.chunk_bytes,
        top,
        top_xattrs,
        asks_whole: reading.straight.is_some(),
        reads_files: reading.choice.reads_files(),
        has_several: sources.count() > 1,
        may_repeat,
        is_whole: Arc::new(AtomicBool::new(true)),
    };
    let inner = Inner {
        feedback_bytes: crate::most_frame_bytes(&spec),
        streams: streams(&setup, &spec, (reading, sizes, lanes), (&driver, &run)),
        driver,
        account,
        run,
        gauges,
        opening,
        found,
        file_system: device.file_system,
        threads: Mutex::default(),
    };
    let ground = ground(&inner, sources, filters);
    let end = SendEnd {
        inner: Arc::new(inner),
    };
    Ok((end, Beginning { ground, into }))
}

fn streams(
    setup: &EndSetup,
    spec: &CopySpec,
    (reading, sizes, lanes): (Reading, Sizes, Arc<Lanes>),
    (driver, run): (&Arc<Driver>, &Arc<Run>),
) -> Streams {
    let gauges = &setup.gauges;
    let queue = |(pool, room)| Arc::new(Queue::new(pool, room, gauges, run));
    Streams {
        reading: Arc::new(reading),
        queue: sizes.frames.map(queue),
        helpers: sizes.helpers,
        at_first: setup.streams,
        lanes,
        is_concurrency_said: AtomicBool::new(spec.concurrency.is_some()),
        remembers_frames: setup.heals_frames,
        most_bytes: setup.most_bytes,
        driver: Arc::clone(driver),
        run: Arc::clone(run),
        gauges: Arc::clone(gauges),
    }
}

fn ground(inner: &Inner, sources: Arc<Sources>, filters: Filters) -> Ground {
    let (opening, run, gauges) = (&inner.opening, &inner.run, &inner.gauges);
    let inspector = Inspector::new(&opening.spec, &sources, opening.reads_files, gauges, run);
    Ground {
        inspector: Arc::new(inspector),
        reads_files: opening.reads_files,
        spec: Arc::clone(&opening.spec),
        sources,
        filters,
        is_whole: Arc::clone(&opening.is_whole),
        driver: Arc::clone(&inner.driver),
        run: Arc::clone(run),
        gauges: Arc::clone(gauges),
    }
}

fn reading(
    setup: &EndSetup,
    sizes: &Sizes,
    device: &Device,
    open_files: u64,
    sources: &Arc<Sources>,
) -> Reading {
    let choice = sizes.choice;
    let own_device = choice.is_auto.then_some(device.number);
    Reading {
        sources: Arc::clone(sources),
        choice,
        depth: sizes.depth,
        chunk_bytes: sizes.chunk_bytes,
        pack_bytes: sizes.pack_bytes,
        sum: setup.sum,
        waits_for_device: !device.is_memory && choice.reads_files(),
        straight: (choice.engine == FileEngine::Sendfile).then(|| Straight::new(open_files, own_device)),
        hole_bytes: AtomicU64::new(0),
        gauges: Arc::clone(&setup.gauges),
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

/// Extended attributes of the folder that is the source, where the other end takes them; why they cannot be read. A folder that
/// cannot be opened is named when it is walked.
fn top_xattrs(setup: &EndSetup, origins: &[Origin]) -> Result<Option<Vec<Xattr>>, String> {
    if !setup.spec.xattrs || !setup.takes_top_xattrs || top(&setup.spec, origins).is_none() {
        return Ok(None);
    }
    let flags = OpenFlags::READ | OpenFlags::FOLDER;
    let Ok(opened) = origins[0].open_at(&setup.root, b"", flags, false) else {
        return Ok(None);
    };
    xattrs_of(opened.as_fd())
        .map(Some)
        .map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => TOO_MANY.to_owned(),
            _ => format!("extended attributes: {}", why(&error)),
        })
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
        .map_err(|error| Failure::system(&format!("source {}", origin.shown()), &error))
}

fn begin_threads(inner: &Inner, beginning: Beginning, list: Option<List>) -> Result<(), Failure> {
    let Beginning { ground, into } = beginning;
    let (driver, run) = (&inner.driver, &inner.run);
    let inspector = Arc::clone(&ground.inspector);
    let walk = Arc::new(Walk::new(ground, list));
    for _ in 0..THREADS {
        let (walk, into) = (Arc::clone(&walk), into.clone());
        let body = move || {
            walk.run(into);
            Ok(())
        };
        begin_thread(inner, "fl-walk", body)?;
    }
    let (own, is_on) = (Arc::clone(driver), Arc::clone(run));
    let look_on = move || second_look::look_on(&own, &is_on, &inspector);
    begin_thread(inner, "fl-again", look_on)?;
    let Some(queue) = &inner.streams.queue else {
        return Ok(());
    };
    for _ in 0..inner.streams.reading.choice.threads {
        begin_reader(inner, queue, "fl-read", ChunkReader::fill)?;
    }
    for _ in 0..inner.streams.helpers {
        begin_reader(inner, queue, "fl-pack", ChunkReader::help)?;
    }
    Ok(())
}

/// A thread that reads what goes through `queue`.
fn begin_reader(
    inner: &Inner,
    queue: &Arc<Queue>,
    name: &str,
    body: fn(ChunkReader, &Queue) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (driver, run) = (Arc::clone(&inner.driver), Arc::clone(&inner.run));
    let (reading, queue) = (Arc::clone(&inner.streams.reading), Arc::clone(queue));
    begin_thread(inner, name, move || {
        let reader = ChunkReader::new(&reading, &driver, &run, &queue.pool)?;
        body(reader, &queue)
    })
}

/// A thread of this end; what ends it badly ends the copy, a defect too.
fn begin_thread(
    inner: &Inner,
    name: &str,
    body: impl FnOnce() -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    let (driver, part) = (Arc::clone(&inner.driver), name.to_owned());
    let session = Span::current();
    let guarded = move || {
        let _within = session.enter();
        let outcome =
            catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(Failure::defect(&part, &*panic)));
        if let Err(failure) = outcome {
            driver.stop(&failure);
        }
    };
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(guarded)
        .map_err(|error| Failure::system("a thread of the sending end", &error))?;
    let mut threads = inner.threads.lock().unwrap_or_else(PoisonError::into_inner);
    threads.push(thread);
    Ok(())
}
