//! A session about names: one request, one answer, as often as one likes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind, IpVersion, NameAnswer, NameRequest};

use super::connect;
use super::greeting::greet;
use crate::channel::{Channel, Interrupt};
use crate::message::{
    ClientMessage, Handshake, KNOWS_NAMES, ServerMessage, Task, VERSIONS, VersionRange, tame_failure,
};
use crate::target::Target;

/// Longest that the server may take over judging a ticket.
const WORD: Duration = Duration::from_secs(30);

/// A session about names with a server, at this end.
#[derive(Debug)]
pub struct NamesClient {
    channel: Channel<ServerMessage>,
    arrived: VecDeque<ServerMessage>,
}

impl NamesClient {
    /// Connects, shows the ticket, all within `timeout`, or until `interrupt` is raised.
    ///
    /// # Errors
    /// [`FailureKind::Usage`] for a target without ticket or key; [`FailureKind::Version`] for a server that knows no names; what
    /// connecting and the server say.
    pub fn open(
        target: &Target,
        version: IpVersion,
        timeout: Duration,
        interrupt: Interrupt,
    ) -> Result<Self, Failure> {
        let usage = |line: &str| Failure::new(FailureKind::Usage, line);
        if target.ticket.is_none() {
            return Err(usage(
                "names need a ticket: pass the farline://... line for the folder",
            ));
        }
        if target.pin.is_none() {
            return Err(usage(
                "a ticket is sent only to a server whose key is known: give its URL with ?key=sha256-...",
            ));
        }
        let deadline = Instant::now() + timeout;
        let unwanted = || interrupt.is_raised();
        let mut greet = || {
            let contact = connect::control(target, version, deadline, &unwanted)?;
            greet(contact.socket, target, &interrupt, deadline, &|_| ())
        };
        let (_, _, channel) = connect::again_while_busy(&mut greet, deadline, &unwanted)?;
        let mut client = Self {
            channel,
            arrived: VecDeque::new(),
        };
        client.shake_hands(target, deadline)?;
        Ok(client)
    }

    fn shake_hands(&mut self, target: &Target, deadline: Instant) -> Result<(), Failure> {
        let ServerMessage::CtrlChanEst(offer) = self.next(deadline)? else {
            return Err(out_of_place());
        };
        let theirs = VersionRange {
            min: offer.min_version,
            max: offer.max_version,
        };
        let common = VERSIONS.common(theirs)?;
        if common < KNOWS_NAMES {
            let line = "the server's farline is too old for requests about names: install the same version on both hosts";
            return Err(Failure::new(FailureKind::Version, line));
        }
        self.channel.send(&ClientMessage::Handshake(Box::new(Handshake {
            version: common,
            ticket: target.ticket.clone(),
            task: Task::Names,
            keeps: false,
        })))?;
        match self.next(deadline.max(Instant::now() + WORD))? {
            // A request that the ticket does not allow is refused by itself.
            ServerMessage::Names(_) => Ok(()),
            _ => Err(out_of_place()),
        }
    }

    /// Asks for one thing; then [`Self::poll`] until there is an answer.
    ///
    /// # Errors
    /// Those of a session that is over.
    pub fn ask(&mut self, request: NameRequest) -> Result<(), Failure> {
        self.channel.send(&ClientMessage::Name(request))
    }

    /// The answer, if it comes within `timeout`. The server may take as long as it needs: a sum reads all of a file.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] and others for a session that is over; a request that is refused is an answer.
    pub fn poll(&mut self, timeout: Duration) -> Result<Option<NameAnswer>, Failure> {
        match self.next_within(timeout)? {
            None => Ok(None),
            Some(ServerMessage::Name(answer)) => Ok(Some(answer)),
            Some(_) => Err(out_of_place()),
        }
    }

    /// Ends the session in order.
    pub fn close(mut self) {
        // Whoever has gone already need not be told.
        let _ = self.channel.send(&ClientMessage::TpgDone);
        let _ = self.next(Instant::now() + Duration::from_secs(1));
        self.channel.farewell::<ClientMessage>(None, || ());
    }

    /// The next message; an error where none comes by `deadline`.
    fn next(&mut self, deadline: Instant) -> Result<ServerMessage, Failure> {
        let late = || Failure::new(FailureKind::Timeout, "no answer from the server in time");
        self.next_within(deadline.saturating_duration_since(Instant::now()))?
            .ok_or_else(late)
    }

    fn next_within(&mut self, timeout: Duration) -> Result<Option<ServerMessage>, Failure> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.arrived.pop_front() {
                Some(ServerMessage::Error(failure)) => return Err(tame_failure(failure)),
                Some(message) => return Ok(Some(message)),
                None => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let arrival = self.channel.wait(Some(left))?;
            if self.channel.is_interrupted() {
                return Err(Failure::new(FailureKind::Interrupted, "stopped"));
            }
            self.arrived.extend(arrival.messages);
            if !self.arrived.is_empty() {
                continue;
            }
            if let Some(failure) = arrival.failure {
                return Err(failure);
            }
            if arrival.closed {
                let line = "the server closed the session about names";
                return Err(Failure::new(FailureKind::Protocol, line));
            }
            if left.is_zero() {
                return Ok(None);
            }
        }
    }
}

fn out_of_place() -> Failure {
    let line = "protocol error: an unexpected message in a session about names";
    Failure::new(FailureKind::Protocol, line)
}
