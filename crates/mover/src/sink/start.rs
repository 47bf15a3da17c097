//! How a receiving end begins: what is at the destination looked at, the engine chosen, its parts made.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use farline_proto::copy::receiver::Config;
use farline_spec::{CopyShare, CopySpec, Failure, FileEngine, SumKind};
use farline_sys::process;

use super::Inner;
use super::answer::Answers;
use super::catalogue::{self, Gate};
use super::chunk_writer::{Proofs, Writing};
use super::close::Closer;
use super::decide::Decider;
use super::delete::Deletion;
use super::driver::Machine;
use super::finalizer::Finalizer;
use super::hands::Hands;
use super::intake::Intake;
use super::lanes::Lanes;
use super::owner::Owners;
use super::partials::Partials;
use super::place::{self, DestinationLookup, Reach};
use super::plan::{Mode, Plan};
use super::remembered::Remembered;
use super::run::Run;
use super::settle::Ledger;
use super::site::Destination;
use super::way::Way;
use super::words::Problems;
use crate::engine::{self, Choice, Device};
use crate::receipt::Receipt;
use crate::request::Request;
use crate::{EndSetup, Gauges, Root, path_text};

/// Parts that do not touch of all files under way; each takes about a hundred bytes with its hash.
const MOST_PARTS: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// Makes the parts of an end; its journal is open and locked then, where it is known where things go.
///
/// # Errors
/// As of [`super::ReceiveEnd::start`].
pub fn build(setup: EndSetup) -> Result<Inner, Failure> {
    let EndSetup {
        spec,
        root,
        sum,
        gauges,
        ..
    } = setup;
    let mode = mode_of(&spec);
    let open_files =
        process::raise_open_files().map_err(|error| Failure::system("the limit of open files", &error))?;
    let (device, outlook) = look(&root, &spec, mode)?;
    let choice = choose(&spec, mode, &device, setup.streams)?;
    let durable = mode == Mode::Real && is_synced(&spec) && !device.is_memory;
    let takes_apart = setup.takes_names_apart;
    let config = config_of(&spec, sum, durable, takes_apart, setup.most_bytes, open_files);
    let request = Request::new(&spec, setup.is_own_request)?;
    let owners = Owners::new(&spec);
    let reach = reach(&spec, root)?;
    let receipt = Receipt::open(setup.receipt.as_deref())?;
    let plan = Arc::new(Plan {
        spec,
        mode,
        sum,
        durable,
        device,
        choice,
    });
    let machine = Arc::new(Machine::new(config));
    let run = Arc::new(Run::new(&machine, setup.pulse));
    let destination = Arc::new(Destination::new(&plan, setup.origin, reach, outlook));
    let names = Arc::new(Remembered::new(plan.spec.delete.is_some()));
    let common = (&machine, &run, &gauges);
    let makings = Makings {
        ledger: Arc::new(Ledger::new(&destination, &names, receipt, common)),
        problems: Arc::default(),
        plan,
        destination,
        names,
        machine,
        run,
        gauges,
    };
    let gate = makings.gate(request, owners);
    let most_bytes = setup.most_bytes.unwrap_or(u64::MAX);
    let streams = (setup.streams, setup.most_streams);
    makings.end(gate, streams, most_bytes, setup.counts_updates)
}

/// What the parts of one end are made of.
struct Makings {
    plan: Arc<Plan>,
    destination: Arc<Destination>,
    names: Arc<Remembered>,
    problems: Arc<Problems>,
    ledger: Arc<Ledger>,
    machine: Arc<Machine>,
    run: Arc<Run>,
    gauges: Arc<Gauges>,
}

impl Makings {
    fn end(
        self,
        gate: Gate,
        streams: (u16, u16),
        most_bytes: u64,
        counts_updates: bool,
    ) -> Result<Inner, Failure> {
        let way = Way::new(&self.destination, &self.names, &self.problems, &self.run);
        let way = Arc::new(way);
        let writing = self.writing(streams.0);
        let finalizer = Arc::new(self.finalizer(&way, &writing));
        let closer = self.closer(&way, &finalizer);
        let answers = self.answers(way, finalizer, counts_updates);
        let common = (&self.machine, &self.run, &self.gauges);
        let intake = Intake::new(&self.plan, &self.ledger, most_bytes, common);
        let fresh = self.destination.is_fresh()?;
        self.machine.with(|machine| machine.start(fresh));
        Ok(Inner {
            hands: Hands::new(&self.plan, streams, &self.gauges)?,
            intake: Arc::new(intake),
            plan: self.plan,
            destination: self.destination,
            gate,
            answers,
            writing: Arc::new(writing),
            closer: Arc::new(closer),
            lanes: Lanes::new(streams.0),
            machine: self.machine,
            run: self.run,
            gauges: self.gauges,
            threads: Mutex::default(),
            keeps: AtomicBool::new(false),
        })
    }

    fn gate(&self, request: Request, owners: Owners) -> Gate {
        Gate {
            request: Mutex::new(request),
            owners,
            destination: Arc::clone(&self.destination),
            names: Arc::clone(&self.names),
            problems: Arc::clone(&self.problems),
            ledger: Arc::clone(&self.ledger),
            machine: Arc::clone(&self.machine),
            run: Arc::clone(&self.run),
            gauges: Arc::clone(&self.gauges),
        }
    }

    fn writing(&self, streams: u16) -> Writing {
        Writing {
            plan: Arc::clone(&self.plan),
            streams,
            partials: Arc::new(Partials::new(&self.destination, &self.gauges)),
            proofs: Arc::new(Proofs::new(&self.machine, &self.destination, &self.gauges)),
            ledger: Arc::clone(&self.ledger),
            machine: Arc::clone(&self.machine),
            run: Arc::clone(&self.run),
            gauges: Arc::clone(&self.gauges),
        }
    }

    fn finalizer(&self, way: &Arc<Way>, writing: &Writing) -> Finalizer {
        Finalizer {
            plan: Arc::clone(&self.plan),
            destination: Arc::clone(&self.destination),
            way: Arc::clone(way),
            partials: Arc::clone(&writing.partials),
            proofs: Arc::clone(&writing.proofs),
            ledger: Arc::clone(&self.ledger),
            machine: Arc::clone(&self.machine),
            run: Arc::clone(&self.run),
            gauges: Arc::clone(&self.gauges),
            hole_bytes: AtomicU64::new(0),
        }
    }

    fn closer(&self, way: &Arc<Way>, finalizer: &Arc<Finalizer>) -> Closer {
        let common = (&self.destination, &self.machine, &self.run);
        Closer {
            plan: Arc::clone(&self.plan),
            destination: Arc::clone(&self.destination),
            names: Arc::clone(&self.names),
            problems: Arc::clone(&self.problems),
            deletion: Deletion::new(&self.names, way, &self.ledger, common),
            finalizer: Arc::clone(finalizer),
            ledger: Arc::clone(&self.ledger),
            machine: Arc::clone(&self.machine),
            run: Arc::clone(&self.run),
            gauges: Arc::clone(&self.gauges),
        }
    }

    fn answers(&self, way: Arc<Way>, finalizer: Arc<Finalizer>, counts_updates: bool) -> Answers {
        let (gauges, run) = (&self.gauges, &self.run);
        Answers {
            plan: Arc::clone(&self.plan),
            destination: Arc::clone(&self.destination),
            names: Arc::clone(&self.names),
            decider: Decider::new(&self.destination, &way, &self.problems, gauges, run),
            way,
            partials: Arc::clone(&finalizer.partials),
            finalizer,
            ledger: Arc::clone(&self.ledger),
            problems: Arc::clone(&self.problems),
            machine: Arc::clone(&self.machine),
            counts_updates,
        }
    }
}

/// Whether what comes goes to the device. What one node wrote must be on the file system before another believes it.
const fn is_synced(spec: &CopySpec) -> bool {
    spec.fsync || spec.share.is_some()
}

fn config_of(
    spec: &CopySpec,
    sum: Option<SumKind>,
    durable: bool,
    takes_names_apart: bool,
    most_bytes: Option<u64>,
    open_files: u64,
) -> Config {
    Config {
        sum,
        is_durable: durable,
        has_further_names: spec.hard_links,
        takes_names_apart,
        range: spec.share.as_ref().and_then(CopyShare::range),
        chunk_bytes: spec.chunk_bytes.map(|chunk| chunk.get()),
        most_entries: catalogue::most_under_way(spec),
        most_bytes: most_bytes.unwrap_or(u64::MAX),
        most_open_files: usize::try_from(open_files / 8).unwrap_or(usize::MAX),
        most_parts: MOST_PARTS,
    }
}

fn mode_of(spec: &CopySpec) -> Mode {
    match spec.write_engine {
        FileEngine::Null | FileEngine::Memory => Mode::Nothing,
        _ if spec.dry_run => Mode::Dry,
        _ => Mode::Real,
    }
}

fn look(root: &Root, spec: &CopySpec, mode: Mode) -> Result<(Device, Option<DestinationLookup>), Failure> {
    if mode == Mode::Nothing {
        return Ok((no_device(), None));
    }
    let outlook = place::look(root, spec)?;
    let device = device_of(&outlook).map_err(|error| Failure::system("destination", &error))?;
    Ok((device, Some(outlook)))
}

fn reach(spec: &CopySpec, root: Root) -> Result<Option<Arc<Reach>>, Failure> {
    if !spec.keep_dirlinks {
        return Ok(None);
    }
    let base = path_text::to_bytes(&spec.destination)?;
    let root = Arc::new(root);
    Ok(Some(Arc::new(Reach { root, base })))
}

fn choose(spec: &CopySpec, mode: Mode, device: &Device, streams: u16) -> Result<Choice, Failure> {
    let threads = spec.writers.map(|writers| writers.get());
    match mode {
        Mode::Nothing => Ok(Choice {
            engine: spec.write_engine,
            threads: threads.unwrap_or(0),
            is_auto: false,
        }),
        Mode::Real | Mode::Dry => engine::choose(spec.write_engine, threads, device, streams),
    }
}

fn device_of(outlook: &DestinationLookup) -> std::io::Result<Device> {
    match outlook {
        DestinationLookup::Folder(folder) => engine::device_of(folder.as_fd()),
        DestinationLookup::Name(vacancy) => engine::device_of(vacancy.parent.as_fd()),
    }
}

fn no_device() -> Device {
    Device {
        file_system: String::new(),
        number: 0,
        is_memory: true,
        takes_direct: None,
    }
}
