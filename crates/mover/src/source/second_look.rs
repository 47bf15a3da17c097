//! Files that changed while they were read: each is looked at once more when it has been left alone for a moment, and then
//! announced as it is. Who empties a file to write it anew would otherwise find it copied empty.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, select, unbounded};
use farline_spec::Failure;

use super::found::Found;
use super::sending::Sending;
use super::settle::Trouble;
use super::shared::Shared;
use super::steady;

/// How long a file has to be left alone.
const QUIET: Duration = Duration::from_millis(500);
/// How long that is waited for, about: a file that is never left alone is read once more all the same.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pieces in which is waited, so that others see that this end has not stopped.
const PIECE: Duration = Duration::from_millis(100);

/// Files that wait for their second look: as many as entries under way at most.
#[derive(Debug)]
pub(super) struct SecondLooks {
    into: Sender<Waiting>,
    out_of: Receiver<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    file: Arc<Sending>,
    since: Instant,
    due: Instant,
}

impl SecondLooks {
    /// None yet.
    pub(super) fn new() -> Self {
        let (into, out_of) = unbounded();
        Self { into, out_of }
    }

    /// `file` changed. It still counts as unread, and nothing of it is read any more.
    pub(super) fn add(&self, file: &Arc<Sending>) {
        let since = Instant::now();
        self.put(Waiting {
            file: Arc::clone(file),
            since,
            due: since + QUIET,
        });
    }

    fn put(&self, waiting: Waiting) {
        // The other end of the channel is here, too.
        let _ = self.into.send(waiting);
    }
}

/// The body of the thread that looks.
pub(super) fn run(shared: &Shared) -> Result<(), Failure> {
    while !shared.halt.is_over() {
        let waiting = select! {
            recv(shared.second_looks.out_of) -> waiting => waiting.ok(),
            recv(shared.halt.closed()) -> _ => None,
        };
        let Some(waiting) = waiting else { break };
        shared.wait_until(waiting.due);
        if !shared.halt.is_over() {
            shared.second_look(waiting);
        }
    }
    Ok(())
}

impl Shared {
    fn wait_until(&self, due: Instant) {
        let left = || due.saturating_duration_since(Instant::now());
        while !self.halt.is_over() && !left().is_zero() {
            self.worked();
            select! {
                recv(self.halt.closed()) -> _ => {}
                default(left().min(PIECE)) => {}
            }
        }
    }

    fn second_look(&self, waiting: Waiting) {
        let Waiting { file, since, .. } = waiting;
        let looked = self.look_again(&file.found);
        let rested = match &looked {
            Ok(found) => steady::age(&found.facts),
            Err(Trouble::Changed) => Duration::ZERO,
            Err(_) => QUIET,
        };
        let is_late = since.elapsed() >= PATIENCE;
        match looked {
            _ if rested < QUIET && !is_late => self.second_looks.put(Waiting {
                file,
                since,
                due: Instant::now() + (QUIET - rested),
            }),
            Ok(found) => self.announce_again(
                &file,
                Found {
                    apart_from: file.link_to,
                    ..found
                },
            ),
            Err(trouble) => self.give_up(&file, &trouble.reason()),
        }
    }
}
