//! A control connection that outlasts its session, for the next run towards the same server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use farline_spec::IpVersion;
use tracing::debug;

use crate::channel::{Channel, Interrupt};
use crate::message::ServerMessage;
use crate::target::Target;
use crate::tls::Fingerprint;

/// How long one is of use: less than a server keeps it.
const FRESH: Duration = Duration::from_secs(20);

/// Keeps the connection of one run for the next; clones keep the same. What is kept ends with the last of them.
#[derive(Debug, Clone, Default)]
pub struct ConnectionKeeper(Arc<Mutex<Option<Kept>>>);

/// A connection to a server that begins another session on it.
#[derive(Debug)]
pub(super) struct Kept {
    /// Whose it is.
    pub target: Target,
    /// How it was reached.
    pub ip_version: IpVersion,
    /// Where it goes.
    pub server: SocketAddr,
    /// The key that the server showed.
    pub key: Option<Fingerprint>,
    /// The channel.
    pub channel: Channel<ServerMessage>,
    /// What has come of the next session.
    pub heard: Vec<ServerMessage>,
    /// When its session was over.
    pub since: Instant,
}

impl ConnectionKeeper {
    /// Keeps this one instead of any other.
    pub(super) fn put(&self, kept: Kept) {
        let other = self.lock().replace(kept);
        drop(other);
    }

    /// The one that is kept, where it leads to `target` and its server begins a session on it before `deadline`.
    pub(super) fn take(
        &self,
        target: &Target,
        ip_version: IpVersion,
        interrupt: &Interrupt,
        deadline: Instant,
    ) -> Option<Kept> {
        let kept = self.lock().take()?;
        let is_it = kept.target == *target && kept.ip_version == ip_version;
        if !is_it || kept.since.elapsed() > FRESH {
            return None;
        }
        let kept = kept.under(interrupt).await_session(deadline);
        debug!(is_used = kept.is_some(), "a connection was kept");
        kept
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn under(mut self, interrupt: &Interrupt) -> Self {
        self.channel.hand_over(interrupt.clone());
        self
    }

    /// Itself once the server has said the first word of a session; none of a server that is gone, or wants no more.
    fn await_session(mut self, deadline: Instant) -> Option<Self> {
        loop {
            let has_begun = match self.heard[..] {
                [] => false,
                [ServerMessage::CtrlChanEst(_)] => true,
                _ => return None,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.channel.is_interrupted() {
                return None;
            }
            // It may have closed since.
            let arrival = self
                .channel
                .wait(Some(if has_begun { Duration::ZERO } else { left }))
                .ok()?;
            if arrival.closed || arrival.failure.is_some() {
                return None;
            }
            if has_begun && arrival.messages.is_empty() {
                return Some(self);
            }
            self.heard.extend(arrival.messages);
        }
    }
}
