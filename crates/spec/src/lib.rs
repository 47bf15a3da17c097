//! Plain data that crosses a door: options go down, records come up.
//!
//! Every option and every record of farline is defined here, once. From these
//! types `cargo xtask gen` writes the JSON Schemas (`schemas/`), the Python
//! types and option table (`python/farline/spec/`) and the reference pages
//! (`docs/reference/`); `--check` holds them together.
//!
//! What it does: names things, gives them units and ranges, refuses what is
//! out of range or unknown with one line that says what is allowed.
//! What it must not do: I/O, clocks, threads, defaults that depend on a host.
//!
//! In: JSON text from a command line, a plan file or a peer. Out: values that
//! are valid by construction. A value that exists is in range.
//!
//! Start with [`RunSpec`] (what to run), then [`RunRecord`] (what happened), [`Topology`] (an emulated path),
//! [`Failure`] (what went wrong and whose fault it is) and [`unit`] for how a
//! number gets its unit and range. One word means one thing everywhere: a
//! field's name here is its name in Rust, Python, JSON, plan files and columns.

mod adjust;
mod columns;
mod copy;
mod copy_report;
mod driven;
mod estimate;
mod failure;
mod host;
mod names;
mod options;
mod parse;
mod plain;
mod record;
mod server;
mod share;
mod storage;
mod sum;
mod topology;
mod transport;
mod tuning;
pub mod unit;

pub use adjust::{AdjustKnob, AdjustRequest, Adjustment, CopyStages};
pub use columns::{
    LINK_SAMPLE_COLUMNS, LinkSamples, MOVER_SAMPLE_COLUMNS, MoverSamples, SAMPLE_COLUMNS, SampleColumn,
    Samples,
};
pub use copy::{
    Cipher, CopySpec, FileEngine, MOST_CHOSEN_CHUNK_BYTES, Overwrite, PathText, SymbolicLinks, SyncLevel,
    Verify,
};
pub use copy_report::{
    Attribute, CopyEnd, CopyProgress, CopyReport, FileKind, FileStatus, FileTally, NotKept,
    PARTIAL_EXIT_CODE, ReceiptLine, VANISHED_EXIT_CODE,
};
pub use driven::{DrivenFlow, DrivenRun, Proof, Tool, ToolServer};
pub use estimate::{EstimateBasis, EstimateInterval, NetworkReservation, TransferEstimate};
pub use failure::{Failure, FailureKind, Fault, kernel_words};
pub use host::{CpuFacts, HostFacts, InterfaceFacts};
pub use names::{
    MOST_READ_BYTES, NameAnswer, NameFacts, NameKind, NameRefusal, NameRequest, NameRights, NameSum,
};
pub use options::{AddressPair, Direction, IpVersion, RunSpec};
pub use parse::from_json;
pub use plain::{is_plain, plain_line};
pub use record::{
    Blast, CpuUse, EndReport, Granted, LimitedBy, PathCheck, RunRecord, RunStatus, StreamRecord, Summary,
    Throughput, Verdict, VersionInfo,
};
pub use server::{Iperf3Config, Limits, Scope, ServerConfig, TicketClaims, TicketRecord};
pub use share::CopyShare;
pub use storage::{
    StorageAction, StorageCounters, StorageLane, StorageLoad, StorageLoadReport, StorageSpec, StorageSync,
};
pub use sum::{Hash, SumKind};
pub use topology::{
    BurstLoss, EmulatedPath, EmulatorMode, HostSpec, JitterShape, LinkChange, LinkDirection, LinkSpec,
    LossSpec, PipeChange, PipeSpec, QueueDiscipline, QueueSpec, ScheduledChange, Topology, ValidityStamp,
};

pub use transport::Transport;
pub use tuning::{
    QuicControl, QuicOptions, RbudpOptions, RbudpReceiver, ReceiveMode, SendMode, SharedPath, TcpOptions,
    UdpOptions, UdpReceiveMode, UdtControl, UdtOptions,
};

/// Version of the documents defined in this crate. It grows by one whenever a
/// field changes meaning or goes away; new optional fields leave it alone.
pub const SCHEMA_VERSION: u32 = 1;
