//! Log lines of every room, in one stream and one form.
//!
//! What it does: takes the events that rooms emit with `tracing`, and those that Python's rooms hand over, keeps those
//! of the levels that were asked for, and writes each as one line of text or JSON to standard error or to a file, which
//! it opens anew when it is asked to.
//! What it must not do: decide what is worth a line (the rooms do), parse what a user wrote (Python does), fail or
//! delay a run because a line could not be written: such lines are counted, and the next line that can be written
//! says how many are missing.
//!
//! ```text
//! mover, session, transport ... ─► tracing ─► layer ─┐
//! Python's logging ─► write ─────────────────────────┴─► line ─► output ─► standard error or a file
//! ```
//!
//! In: [`Settings`], events. Out: lines. Until [`start`] is called an event costs one comparison, and nothing is written.
//!
//! A room's name is the target: `farline_mover::sink` is `mover`. Fields and spans named `session`, `stream` and `entry`
//! are the ids of a line; other fields stand behind them. Rooms never put into an event what they move, a ticket's secret
//! or a key.
//!
//! Start with [`start`], then `layer.rs` and `line.rs`.

mod layer;
mod line;
mod output;

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use farline_spec::{Failure, FailureKind};
use serde_json::{Map, Value};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;

use crate::layer::RoomLayer;
pub use crate::line::Format;
use crate::line::Line;
use crate::output::Output;

/// What is to be written, how and where.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Level of rooms that are not named.
    pub level: LevelFilter,
    /// Levels of rooms by name.
    pub rooms: Vec<(String, LevelFilter)>,
    /// Form of a line.
    pub format: Format,
    /// File that lines are appended to; standard error if absent.
    pub file: Option<PathBuf>,
}

impl Settings {
    /// The level of the room `name`.
    fn level_of(&self, name: &str) -> LevelFilter {
        let named = self.rooms.iter().find(|(room, _)| room == name);
        named.map_or(self.level, |(_, level)| *level)
    }

    /// The finest level of any room.
    fn finest(&self) -> LevelFilter {
        let rooms = self.rooms.iter().map(|(_, level)| *level);
        rooms.fold(self.level, Ord::max)
    }
}

/// The log of this process.
#[derive(Debug)]
struct Log {
    settings: RwLock<Settings>,
    output: Mutex<Output>,
}

static LOG: OnceLock<Log> = OnceLock::new();

/// Begins to write lines; when that has begun, goes on with other settings.
///
/// # Errors
/// [`FailureKind::System`] when the file cannot be opened, [`FailureKind::Internal`] when this process has another
/// subscriber of `tracing`.
pub fn start(settings: Settings) -> Result<(), Failure> {
    let output = Output::open(settings.file.clone())?;
    if let Some(log) = LOG.get() {
        *log.output.lock().unwrap_or_else(PoisonError::into_inner) = output;
        *log.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
        tracing::callsite::rebuild_interest_cache();
        return Ok(());
    }
    let log = Log {
        settings: RwLock::new(settings),
        output: Mutex::new(output),
    };
    let log = LOG.get_or_init(|| log);
    let subscriber = tracing_subscriber::registry().with(RoomLayer::new(log));
    tracing::subscriber::set_global_default(subscriber).map_err(|error| {
        let line = format!("the log could not be started: {error}");
        Failure::new(FailureKind::Internal, line)
    })
}

/// Writes a line of a room that does not use `tracing`; whoever calls has looked at its level.
pub fn write(level: &str, room: &str, message: &str, fields: Map<String, Value>) {
    if let Some(log) = LOG.get() {
        log.write(&Line::new(
            SystemTime::now(),
            level,
            room,
            message.to_owned(),
            fields,
        ));
    }
}

/// Opens the file anew by its name, as it must be once another program has renamed it. Lines that come meanwhile are
/// in one of the two. Standard error stays what it is.
///
/// # Errors
/// [`FailureKind::System`] when it cannot be opened: lines go on to where they went.
pub fn reopen() -> Result<(), Failure> {
    match LOG.get() {
        Some(log) => log.output.lock().unwrap_or_else(PoisonError::into_inner).reopen(),
        None => Ok(()),
    }
}

impl Log {
    fn write(&self, line: &Line) {
        let format = self
            .settings
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .format;
        let text = line.to_text(format);
        let lost = |count: u64, why: &str| line::lost(count, why).to_text(format);
        self.output
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write(text.as_bytes(), &lost);
    }
}
