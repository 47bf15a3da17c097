//! A running emulator, as its owner holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, bounded};
use farline_spec::{Failure, FailureKind, LinkChange, LinkDirection, LinkSamples, Topology, ValidityStamp};

use farline_sys::arena::Spare;
use tracing::debug;

use super::account::{Accounting, Totals};
use super::capture::{Capture, CaptureEnd};
use super::command::Command;
use super::control::SampleBox;
use super::hosts::{Hosts, NamespacePaths};
use super::memory;
use super::paths::{self, PathFacts, unknown};
use super::request::{EngineHandle, Report, Request};
use super::stamp::{Account, Limits, stamp};
use super::start::{self, Prepared, RelayOptions};
use super::tap::{Recording, Tap};
use crate::layout::Layout;
use crate::model::framing_bytes;

/// Marks that are remembered; beyond that the oldest is forgotten.
const MAX_MARKS: usize = 4096;
/// Bytes of a packet that a capture may keep.
const SNAP_BYTES: std::ops::RangeInclusive<u32> = 64..=65_535;

/// Hosts joined by emulated links. Dropping it removes them.
pub struct Emulator {
    layout: Arc<Layout>,
    link_names: Vec<String>,
    engine: EngineHandle,
    control: Sender<Command>,
    samples: Arc<SampleBox>,
    hosts: Hosts,
    books: Accounting,
    marks: Mutex<Marks>,
    captured: Mutex<BTreeSet<usize>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Accounts to be compared with later ones.
#[derive(Default)]
struct Marks {
    next: u64,
    accounts: BTreeMap<u64, Marked>,
}

#[derive(Clone)]
struct Marked {
    account: Account,
    /// Shortest round trip of any path at that time.
    rtt_s: f64,
}

impl Emulator {
    /// Makes the hosts and starts to carry packets between them.
    ///
    /// # Errors
    /// "spec" for a topology or a kernel setting that is not allowed, "system" when the machine refuses;
    /// nothing is left behind then.
    pub fn start(topology: Topology, options: RelayOptions) -> Result<Self, Failure> {
        let Prepared {
            layout,
            link_names,
            engine,
            control,
            samples,
            hosts,
            books,
            threads,
        } = start::prepare(topology, &options)?;
        // From here on, dropping it stops the threads.
        let emulator = Self {
            layout,
            link_names,
            engine,
            control,
            samples,
            hosts,
            books,
            marks: Mutex::default(),
            captured: Mutex::default(),
            threads: Mutex::default(),
        };
        threads.start(|thread| emulator.keep_thread(thread))?;
        debug!(
            hosts = emulator.layout.hosts.len(),
            links = emulator.link_names.len(),
            "emulator has begun"
        );
        Ok(emulator)
    }

    /// Hosts, ports and pipes.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Names of the links, in the order of their numbers.
    pub fn link_names(&self) -> &[String] {
        &self.link_names
    }

    /// Where a host's namespaces can be entered, as long as the emulator runs.
    ///
    /// # Errors
    /// "usage" for a host that is not there.
    pub fn namespace_paths(&self, host: &str) -> Result<NamespacePaths, Failure> {
        let known = || self.layout.hosts.iter().map(|host| host.name.as_str());
        let number = known().position(|name| name == host);
        number
            .and_then(|number| self.hosts.namespace_paths(number))
            .ok_or_else(|| unknown("host", host, known()))
    }

    /// Changes a link. A longer or faster link needs more memory, which is made before the change and not by the
    /// engine: touching a gigabyte takes a second.
    ///
    /// # Errors
    /// The model's, for a link that is not there; "system" when the machine has no more memory.
    pub fn change(&self, change: LinkChange) -> Result<(), Failure> {
        let spare = self.spare_for(&change)?;
        self.engine
            .ask(|reply| Request::Change { change, spare, reply })?
    }

    fn spare_for(&self, change: &LinkChange) -> Result<Spare, Failure> {
        let topology = self.topology()?;
        let mapped_bytes = self.engine.report(false)?.arena.mapped_bytes;
        let more_bytes = memory::more_bytes(topology, &self.layout, change, mapped_bytes)?;
        Spare::new(more_bytes).map_err(|error| Failure::system("memory for packets in flight", &error))
    }

    /// The topology as it stands now.
    ///
    /// # Errors
    /// The failure that ended the emulation.
    pub fn topology(&self) -> Result<Topology, Failure> {
        self.engine.ask(|reply| Request::Topology { reply })
    }

    /// Round trip and rate from one host to another, as they stand now. `server` may be an address, or a name as in
    /// `/etc/hosts`: a host's own means the port that the fewest links lead to.
    ///
    /// # Errors
    /// "usage" where there is no path.
    pub fn path(&self, client: &str, server: &str) -> Result<PathFacts, Failure> {
        paths::facts(&self.topology()?, &self.layout, client, server)
    }

    /// Starts an interval for [`Emulator::stamp`].
    ///
    /// # Errors
    /// The failure that ended the emulation.
    pub fn mark(&self) -> Result<u64, Failure> {
        let marked = Marked {
            account: self.books.account(&self.engine)?,
            rtt_s: self.shortest_rtt_s()?,
        };
        let mut marks = self.marks();
        let mark = marks.next;
        marks.next += 1;
        marks.accounts.insert(mark, marked);
        if marks.accounts.len() > MAX_MARKS {
            marks.accounts.pop_first();
        }
        Ok(mark)
    }

    /// How far the emulation since the mark can be trusted. The mark stays.
    ///
    /// # Errors
    /// "usage" for a mark that is not remembered, or the failure that ended the emulation.
    pub fn stamp(&self, mark: u64) -> Result<ValidityStamp, Failure> {
        let before = self.marks().accounts.get(&mark).cloned().ok_or_else(|| {
            let what = format!("mark: {mark} is not one of the last {MAX_MARKS}");
            Failure::new(FailureKind::Usage, what)
        })?;
        let limits = Limits {
            rtt_s: self.shortest_rtt_s()?.min(before.rtt_s),
        };
        Ok(stamp(&before.account, &self.books.account(&self.engine)?, limits))
    }

    fn shortest_rtt_s(&self) -> Result<f64, Failure> {
        Ok(paths::shortest_rtt_s(&self.topology()?, &self.layout))
    }

    /// Link samples that came since the last call, up to the moment at which the emulation ended.
    pub fn poll_samples(&self) -> LinkSamples {
        self.samples.take()
    }

    /// Writes what a link carries into a pcap file, until [`Emulator::stop_capture`].
    ///
    /// # Errors
    /// "usage" for a link that is not there or is captured already, "system" for a file that cannot be made.
    pub fn capture(
        &self,
        link: &str,
        direction: LinkDirection,
        path: &Path,
        snap_bytes: u32,
    ) -> Result<(), Failure> {
        let number = self.link_number(link)?;
        if !SNAP_BYTES.contains(&snap_bytes) {
            let allowed = format!("{} to {}", SNAP_BYTES.start(), SNAP_BYTES.end());
            let what = format!("snap_bytes: {snap_bytes} is out of range; allowed: {allowed}");
            return Err(Failure::new(FailureKind::Usage, what));
        }
        if !self.captured().insert(number) {
            let what = format!("link {link:?} is already being captured");
            return Err(Failure::new(FailureKind::Usage, what));
        }
        let begun = self.begin_capture(number, direction, path, snap_bytes);
        if begun.is_err() {
            self.captured().remove(&number);
        }
        begun
    }

    fn begin_capture(
        &self,
        link: usize,
        direction: LinkDirection,
        path: &Path,
        snap_bytes: u32,
    ) -> Result<(), Failure> {
        let (capture, spare) = Capture::create(path, snap_bytes)?;
        self.tell_control(Command::Open { link, capture })?;
        let pipes = match direction {
            LinkDirection::Forward => vec![2 * link],
            LinkDirection::Reverse => vec![2 * link + 1],
            LinkDirection::Both => vec![2 * link, 2 * link + 1],
        };
        let topology = self.topology()?;
        let framing_bytes = [2 * link, 2 * link + 1].map(|pipe| framing_bytes(paths::spec(&topology, pipe)));
        let form = Recording {
            snap_bytes,
            framing_bytes,
        };
        let tap = Tap::new(link, pipes, form, spare, self.control.clone());
        self.engine.ask(|reply| Request::Watch { tap, reply })
    }

    /// Ends the capture of a link.
    ///
    /// # Errors
    /// "usage" for a link that is not there or not captured, or the failure that ended the emulation.
    pub fn stop_capture(&self, link: &str) -> Result<CaptureEnd, Failure> {
        let number = self.link_number(link)?;
        if !self.captured().remove(&number) {
            let what = format!("link {link:?} is not being captured");
            return Err(Failure::new(FailureKind::Usage, what));
        }
        let missed = self.engine.ask(|reply| Request::Unwatch { link: number, reply });
        let (reply, answer) = bounded(1);
        self.tell_control(Command::Close { link: number, reply })?;
        let mut end = answer.recv().map_err(|_| stopped())?;
        end.missed_packets += missed?;
        Ok(end)
    }

    /// Everything counted since the start.
    ///
    /// # Errors
    /// The failure that ended the emulation.
    pub fn counters(&self) -> Result<(Report, Totals), Failure> {
        let report = self.engine.report(false)?;
        let totals = self.books.totals(self.samples.dropped_rows())?;
        Ok((report, totals))
    }

    /// What the machine did not allow and the emulation goes on without, one line each.
    pub fn notices(&self) -> &[String] {
        self.hosts.notices()
    }

    /// The failure that ended the emulation before it was stopped.
    pub fn failure(&self) -> Option<Failure> {
        self.engine.failure()
    }

    /// Ends the emulation and removes the hosts' devices and namespaces; a second call does nothing.
    pub fn stop(&self) {
        self.engine.stop();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let mut threads = threads.into_iter();
        // A panic in a thread was made a failure inside it. The engine, which comes first, hands on what captures have
        // recorded; only then the thread that writes it is told to stop.
        let _ = threads.next().map(JoinHandle::join);
        // It has ended already when nobody takes the command.
        let _ = self.control.send(Command::Stop);
        for thread in threads {
            let _ = thread.join();
        }
        self.books.close();
        self.hosts.close();
    }

    pub(super) fn keep_thread(&self, thread: JoinHandle<()>) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(thread);
    }

    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn captured(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn link_number(&self, link: &str) -> Result<usize, Failure> {
        let number = self.link_names.iter().position(|name| name == link);
        number.ok_or_else(|| unknown("link", link, self.link_names.iter().map(String::as_str)))
    }

    fn tell_control(&self, command: Command) -> Result<(), Failure> {
        self.control.send(command).map_err(|_| match self.failure() {
            Some(failure) => failure,
            None => stopped(),
        })
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop();
    }
}

fn stopped() -> Failure {
    Failure::new(FailureKind::Usage, "the emulator was stopped")
}
