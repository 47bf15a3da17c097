//! The control session as two machines without I/O.
//!
//! What it does: says for every state what may come and what to do then: the
//! thirteen steps of TPG (Yun et al. 2015, section III.A) with their time-outs, the error
//! message before any abort, the graceful stop.
//! What it must not do: sockets, clocks, threads, files. Time is an argument:
//! the time since the session began. A driver does what the actions say.
//!
//! In: messages of the other end, events of this end, the passing of time.
//! Out: actions, in order. Call order, the same for both machines:
//!
//! ```text
//! loop {
//!     while let Some(action) = machine.poll_action(now) { do it }
//!     if machine.is_over() { break }
//!     wait for bytes, for an event, or until machine.poll_timeout()
//!     machine.handle_message / handle_event / handle_closed / handle_timeout
//! }
//! ```
//!
//! Nothing a peer sends can make a machine panic, leave its table or stay for
//! ever: every state but the last ones has a deadline.
//!
//! Start with [`client`] and the `state_table!` in `client_state.rs`; [`server`] mirrors it;
//! [`adjust`] keeps what changes while a copy runs; [`timing`] has the deadlines; [`table`] turns the rules into code, a text
//! table and a graph (`docs/design/session.md`).

pub mod adjust;
pub mod client;
mod client_parts;
mod client_state;
mod grant;
pub mod server;
pub mod table;
pub mod timing;

#[cfg(test)]
mod tests;

pub use adjust::{Adjusting, KnobChange, LocalChange};
pub use client::{ClientAction, ClientEvent, ClientMachine, ClientPlan, ClientState};
pub use server::{ServerAction, ServerEvent, ServerMachine, ServerPlan};
pub use timing::{Timing, watchdog};

use std::time::Duration;

use farline_spec::{Failure, FailureKind};

/// What either machine hears of its streams and their run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunTurn {
    /// All data streams are open.
    StreamsOpen,
    /// They could not be opened.
    NotOpen(Failure),
    /// Every sender of this end has sent what it had and the transport has delivered what it could. An end without senders never
    /// says so.
    SendersDone,
    /// The run failed; the rest of its streams is being aborted.
    Failed(Failure),
    /// Every stream of the run has ended. Always the last of a run.
    AllDone,
}

/// Failure of a peer that said what does not fit.
pub(crate) fn out_of_place(word: &str, state: &str, allowed: &str) -> Failure {
    let line =
        format!("protocol error: unexpected message {word} in session state {state}; expected: {allowed}");
    Failure::new(FailureKind::Protocol, line)
}

/// Failure of a driver that did what does not fit: a defect of this end.
pub(crate) fn misplaced(word: &str, state: &str) -> Failure {
    Failure::new(
        FailureKind::Internal,
        format!("event '{word}' in state {state} of the control session"),
    )
}

/// Failure of a wait in `place` that took too long.
pub(crate) fn overdue(place: &str, wait: table::Wait, since_start: Duration) -> Failure {
    let what = match wait {
        table::Wait::Connect => "the data streams are not open",
        table::Wait::Watchdog | table::Wait::Drain => "the run is not over",
        table::Wait::Own => "this end has not finished its part",
        table::Wait::Request => "no request for a minute, or longer than the ticket allows",
        _ => "no message from the other end",
    };
    let line = format!(
        "{place}: {what}, {:.1} s after the session started",
        since_start.as_secs_f64()
    );
    Failure::new(FailureKind::Timeout, line)
}
