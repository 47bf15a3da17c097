//! What a run is given to work on, what it tells while it goes on, and what it came to.

use farline_spec::unit::CpuIndex;
use farline_spec::{CopyProgress, CopyReport, CpuUse, Failure, MoverSamples, Samples, StreamRecord};
use farline_transport::{Role, Stream};

use crate::machine::RunTurn;
use crate::message::FarStages;

/// One open stream and the job this end does on it.
pub struct OpenStream {
    /// Number of the stream in its session, from 0.
    pub stream: u16,
    /// What this end does.
    pub role: Role,
    /// CPU to pin its thread to; the scheduler's choice if absent.
    pub cpu: Option<CpuIndex>,
    /// The stream itself.
    pub io: Stream,
}

/// What happens in a run, in order.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "a few events a second, each moved once: a box would only be one more allocation"
)]
pub enum RunEvent {
    /// One interval of all streams of this end.
    Samples(Samples),
    /// The same interval of the files of a copy.
    MoverSamples(MoverSamples),
    /// How far a copy is.
    Progress(CopyProgress),
    /// How far this end's stages of it are.
    Stages(OwnStages),
    /// Streams that were to come while a copy runs are there, all but so many, the last of which failed for this reason.
    LateStreams {
        /// Streams that are not open.
        missing: u16,
        /// Why.
        why: Option<String>,
    },
    /// What the machine of this end hears.
    Turn(RunTurn),
}

/// How far one end of a copy is, of the stages that it has: counters since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnStages {
    /// Microseconds since this end started the run.
    pub at_us: u64,
    /// Whether this end has the files.
    pub sends: bool,
    /// What the other end would be told.
    pub figures: FarStages,
}

/// What a run came to at this end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunOutcome {
    /// Every row that went out as an event.
    pub samples: Samples,
    /// Every row about files that went out as an event.
    pub mover_samples: MoverSamples,
    /// One record per stream of this end, in the order of the request.
    pub streams: Vec<StreamRecord>,
    /// CPU time of the process from the start to the end of the last stream.
    pub cpu: CpuUse,
    /// Seconds from the start until the last stream ended.
    pub run_s: f64,
    /// What this end of a copy did.
    pub copy: Option<CopyReport>,
    /// The first thing that went wrong. What was measured before it is in the other fields.
    pub failure: Option<Failure>,
}
