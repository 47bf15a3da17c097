//! Starting: hosts first, then the engine, which must report that it is ready, then the control thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use farline_spec::{Failure, FailureKind, Topology};
use farline_sys::arena::Arena;
use farline_sys::tun::Tun;
use farline_sys::wake::Waker;
use tracing::error;

use super::account::Accounting;
use super::command::Command;
use super::control::{Control, SampleBox};
use super::engine::Engine;
use super::hosts::{Hosts, Made};
use super::memory::Memory;
use super::outlet::Outlet;
use super::request::{EngineHandle, Request, WakeSignal};
use super::too_big::TooBigAnswers;
use super::wait::{Clock, Waits};
use crate::layout::Layout;
use crate::model::Network;

/// Everything that goes into the engine thread. The engine itself is made inside it, because packets' memory
/// belongs to one thread.
struct Parts {
    topology: Topology,
    layout: Arc<Layout>,
    memory: Memory,
    devices: Vec<Tun>,
    requests: Receiver<Request>,
    bell: Arc<WakeSignal>,
}

/// What the emulator needs to know beside the topology.
#[derive(Debug, Clone)]
pub struct RelayOptions {
    /// Where to write names and addresses: `hosts_file.HOST` is `/etc/hosts` inside that host.
    pub hosts_file: PathBuf,
}

/// What an emulator is made of, before its threads run.
pub struct Prepared {
    /// Hosts, ports and pipes.
    pub layout: Arc<Layout>,
    /// Names of the links, in the order of their numbers.
    pub link_names: Vec<String>,
    /// The way to the engine.
    pub engine: EngineHandle,
    /// The way to the control thread.
    pub control: Sender<Command>,
    /// What that samples.
    pub samples: Arc<SampleBox>,
    /// The hosts.
    pub hosts: Hosts,
    /// What the kernel counts in them.
    pub books: Accounting,
    /// The threads.
    pub threads: Threads,
}

/// Threads that do not run yet.
pub struct Threads {
    parts: Parts,
    control: Control,
}

/// Makes the hosts, and everything that the threads need.
///
/// # Errors
/// "spec" for a topology or a kernel setting that is not allowed, "system" when the machine refuses.
pub fn prepare(topology: Topology, options: &RelayOptions) -> Result<Prepared, Failure> {
    let topology = topology.checked()?;
    let layout = Arc::new(Layout::new(&topology)?);
    // Refuses what the links cannot be, before hosts and memory are made.
    Network::<()>::new(&topology, &layout)?;
    let memory = Memory::of(&topology, &layout)?;
    let Made {
        hosts,
        devices,
        stacks,
    } = Hosts::make(&topology, &layout, &options.hosts_file)?;
    let bell = Arc::new(WakeSignal {
        waker: Waker::new().map_err(|error| Failure::system("waker", &error))?,
        stop: AtomicBool::new(false),
        failure: OnceLock::new(),
    });
    let (send_request, requests) = unbounded();
    let engine = EngineHandle::new(send_request, Arc::clone(&bell));
    let (control, commands) = unbounded();
    let samples = Arc::new(SampleBox::default());
    Ok(Prepared {
        layout: Arc::clone(&layout),
        link_names: topology.links.iter().map(|link| link.name.clone()).collect(),
        engine: engine.clone(),
        control,
        samples: Arc::clone(&samples),
        hosts,
        books: Accounting::new(Arc::clone(&layout), stacks),
        threads: Threads {
            control: Control {
                engine,
                commands,
                samples,
                interval: Duration::from_secs_f64(topology.interval_s.get()),
            },
            parts: Parts {
                topology,
                layout,
                memory,
                devices,
                requests,
                bell,
            },
        },
    })
}

impl Threads {
    /// Starts them, the engine first; each is given to `keep` as soon as it runs.
    ///
    /// # Errors
    /// Why one of them could not begin; those before it run.
    pub fn start(self, keep: impl Fn(JoinHandle<()>)) -> Result<(), Failure> {
        keep(start_engine(self.parts)?);
        keep(spawn("farline-control", || self.control.run())?);
        Ok(())
    }
}

/// Starts the engine thread and waits until it is ready.
fn start_engine(parts: Parts) -> Result<JoinHandle<()>, Failure> {
    let (ready, is_ready) = bounded(1);
    let thread = spawn("farline-relay", move || run_engine(parts, &ready))?;
    match is_ready.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(failure)) => Err(failure),
        Err(_) => Err(Failure::new(
            FailureKind::Internal,
            "the emulator's thread ended while it started",
        )),
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Failure> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| Failure::system("starting a thread", &error))
}

/// The engine thread. When it ends, for whatever reason, the hosts' devices are gone with it: their programs see a
/// network that is down, and do not wait for ever.
fn run_engine(parts: Parts, ready: &Sender<Result<(), Failure>>) {
    let bell = Arc::clone(&parts.bell);
    // Kept to the end, so that whoever has asked hears that the engine is gone only once it is known why.
    let _requests = parts.requests.clone();
    let outcome = catch_unwind(AssertUnwindSafe(|| match build(parts) {
        Ok(engine) => {
            let _ = ready.send(Ok(()));
            engine.run()
        }
        Err(failure) => {
            let _ = ready.send(Err(failure));
            Ok(())
        }
    }));
    let failure = match outcome {
        Ok(Ok(())) => return,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::defect("the emulator", panic.as_ref()),
    };
    error!(reason = failure.message, "emulator failed");
    // Set once: nobody else sets it.
    let _ = bell.failure.set(failure);
}

fn build(parts: Parts) -> Result<Engine, Failure> {
    let Memory {
        prefault_bytes,
        max_bytes,
    } = parts.memory;
    let arena = Arena::new(prefault_bytes, max_bytes)
        .map_err(|error| Failure::system("memory for packets in flight", &error))?;
    let network = Network::new(&parts.topology, &parts.layout)?;
    let clock = Clock::start();
    let waits = Waits::new(parts.topology.mode, clock)
        .map_err(|error| Failure::system("the emulator's scheduling", &error))?;
    let mut outlet = Outlet::new(clock, parts.devices);
    outlet.traffic.priority = waits.priority();
    Ok(Engine {
        layout: parts.layout,
        network,
        arena,
        waits,
        outlet,
        too_big: TooBigAnswers::default(),
        taps: Vec::new(),
        requests: parts.requests,
        bell: parts.bell,
    })
}
