//! What goes into the client's machine and what comes out of it.

use std::time::Duration;

use farline_spec::{AdjustRequest, Failure, RunSpec};

use super::RunTurn;
use super::adjust::{KnobChange, LocalChange};
use super::client_state::ClientInput;
use super::timing::Timing;
use crate::message::{
    ClientMessage, ClientProfile, FarStages, KEEPS, KNOWS_SUMS, Listeners, ProfilePart, ServerMessage,
    SessionId, VersionRange,
};

/// What the client wants of the session.
#[derive(Debug, Clone)]
pub struct ClientPlan {
    /// Resolved spec to ask for.
    pub spec: RunSpec,
    /// Ticket to show; only for a server whose key is pinned.
    pub ticket: Option<String>,
    /// Versions this end speaks.
    pub versions: VersionRange,
    /// Another session is to follow on the connection, if the server has words for it.
    pub keeps: bool,
    /// Limits on waiting.
    pub timing: Timing,
}

impl ClientPlan {
    /// Asks for what this version of the control protocol has words for, as it was meant.
    ///
    /// # Errors
    /// [`FailureKind::Version`](farline_spec::FailureKind::Version) for what it does not know.
    pub(super) fn fit_to(&mut self, version: u32) -> Result<(), Failure> {
        match &mut self.spec.copy {
            Some(copy) if version < KNOWS_SUMS => copy.fit_to_blake3_alone(),
            _ => Ok(()),
        }
    }

    /// Whether the session leaves its connection to the next. Of a copy the server's last word is not waited for.
    pub(super) fn keeps_at(&self, version: u32) -> bool {
        self.keeps && version >= KEEPS && self.spec.copy.is_none()
    }
}

/// What happens at the client's own end.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientEvent {
    /// What happened to the streams and their run.
    Run(RunTurn),
    /// The run is joined; this is what it came to.
    Collected(ClientProfile),
    /// The user wants the copy to go on in another way.
    Adjust(AdjustRequest),
    /// The streams of a change are open, all but so many, the last of which failed for this reason.
    LateStreams {
        /// Streams that are not open.
        missing: u16,
        /// Why.
        why: Option<String>,
    },
    /// The user wants it to end, with a record of what there is.
    Stop,
    /// Something else failed at this end.
    Failed(Failure),
}

/// What the driver has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientAction {
    /// Send this.
    Send(ClientMessage),
    /// The session has reached this state of Yun et al. 2015.
    Stage(&'static str),
    /// Tell the user.
    Notice(String),
    /// Open the data streams; then [`RunTurn::StreamsOpen`].
    OpenStreams {
        /// Name of the session, part of every stream's key.
        session: SessionId,
        /// Where the server listens.
        listeners: Listeners,
    },
    /// Start the run with this watchdog.
    StartRun(Duration),
    /// Change this end of the copy; for streams that are opened then [`ClientEvent::LateStreams`].
    Adjust(LocalChange),
    /// Tell what came of a wish.
    Adjusted(KnobChange),
    /// How far the server's end is.
    Stages(FarStages),
    /// Let the run's senders stop.
    StopRun,
    /// Join the run within this time; then [`ClientEvent::Collected`]. No event of the run may follow.
    FinishRun(Duration),
}

/// What a message is to the table.
pub(super) fn input_of(message: &ServerMessage) -> ClientInput {
    match message {
        ServerMessage::CtrlChanEst(_) => ClientInput::Established,
        ServerMessage::Handshake(_) => ClientInput::Granted,
        ServerMessage::CreateStreams(_) => ClientInput::Listening,
        ServerMessage::Names(_) => ClientInput::PeerNames,
        ServerMessage::Name(_) => ClientInput::PeerName,
        ServerMessage::ProfilingStart => ClientInput::Started,
        ServerMessage::ProfilingEnd(_) => ClientInput::PeerEnded,
        ServerMessage::Adjusted(_) => ClientInput::PeerAdjusted,
        ServerMessage::Stages(_) => ClientInput::PeerStages,
        ServerMessage::ExchangeProfile(ProfilePart::End(_)) => ClientInput::ProfileEnd,
        ServerMessage::ExchangeProfile(_) => ClientInput::ProfilePart,
        ServerMessage::TpgDone => ClientInput::PeerDone,
        ServerMessage::Error(_) => ClientInput::PeerError,
    }
}
