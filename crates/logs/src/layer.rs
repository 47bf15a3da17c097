//! Events of `tracing` as lines.

use std::fmt;
use std::sync::PoisonError;
use std::time::SystemTime;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, Scope};

use crate::Log;
use crate::line::Line;

/// What the crates of the rooms begin with.
const PREFIX: &str = "farline_";
const MESSAGE: &str = "message";

/// Writes what the rooms say, by the levels of the settings.
#[derive(Debug)]
pub struct RoomLayer {
    log: &'static Log,
}

impl RoomLayer {
    /// Writes to `log`.
    pub const fn new(log: &'static Log) -> Self {
        Self { log }
    }

    /// Spans are always wanted: what happens within them may be, whatever their own room's level.
    fn is_wanted(&self, metadata: &Metadata<'_>) -> bool {
        let settings = self.log.settings.read().unwrap_or_else(PoisonError::into_inner);
        let room = room_of(metadata.target());
        room.is_some_and(|room| metadata.is_span() || *metadata.level() <= settings.level_of(room))
    }
}

/// The room of a target; nothing for what is not farline's own, which may say what farline would not.
fn room_of(target: &str) -> Option<&str> {
    target.strip_prefix(PREFIX)?.split(':').next()
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for RoomLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.is_wanted(metadata) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.is_wanted(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let settings = self.log.settings.read().unwrap_or_else(PoisonError::into_inner);
        Some(settings.finest())
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = around(context.event_scope(event));
        event.record(&mut fields);
        let metadata = event.metadata();
        let message = match fields.0.shift_remove(MESSAGE) {
            Some(Value::String(message)) => message,
            _ => String::new(),
        };
        let room = room_of(metadata.target()).unwrap_or_default();
        let level = metadata.level().as_str();
        self.log
            .write(&Line::new(SystemTime::now(), level, room, message, fields.0));
    }
}

/// Fields of the spans around an event, from the outermost in: an inner one says it more closely.
fn around<S: Subscriber + for<'a> LookupSpan<'a>>(scope: Option<Scope<'_, S>>) -> Fields {
    let mut all = Fields::default();
    for span in scope.into_iter().flat_map(Scope::from_root) {
        if let Some(fields) = span.extensions().get::<Fields>() {
            all.0.extend(fields.0.clone());
        }
    }
    all
}

/// Fields of an event or a span.
#[derive(Debug, Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}
