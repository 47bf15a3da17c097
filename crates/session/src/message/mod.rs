//! What the two ends say to each other on the control channel.
//!
//! The states that TPG sends within its control packets (Yun et al. 2015, section
//! III.A) are the messages here, under TPG's names. Each direction has a type
//! of its own, so that a peer cannot even say what only the other end may say.
//!
//! ```text
//! client                                server
//!        ◄── CTRL_CHAN_EST ───────────  versions it speaks, name of the session
//! HANDSHAKE ─────────────────────────►  version chosen, ticket, task
//!        ◄─────────────── HANDSHAKE ──  the task as granted, notes
//! CREATE_STREAMS ────────────────────►  of a copy: together with HANDSHAKE
//!        ◄────────── CREATE_STREAMS ──  where it listens
//!        ═════════ data streams ══════
//! PROFILING_START ───────────────────►  the client's streams of a copy begin with it
//!        ◄───────── PROFILING_START ──
//!        ═════════ data flow ═════════
//! ADJUST ────────────────────────────►  of a copy: more or fewer streams, another rate; one at a time
//!        ◄──────────────── ADJUSTED ──  numbers of the streams that may come, or why not
//!        ◄────────────────── STAGES ──  of a copy: how far the server's end is, once an interval
//! PROFILING_END ─────────────────────►  each end says once that it sends no more
//!        ◄─────────── PROFILING_END ──
//! EXCHANGE_PROFILE ──────────────────►  totals
//!        ◄──────── EXCHANGE_PROFILE ──  samples, records, host: several frames; of a copy unasked
//! TPG_DONE ──────────────────────────►
//!        ◄──────────────── TPG_DONE ──
//!        ◄─────────── CTRL_CHAN_EST ──  of the next session, where HANDSHAKE said so (version 6)
//!
//! HANDSHAKE ─────────────────────────►  of a session about names (version 5): no run, but
//!        ◄─────────────────── NAMES ──  what the ticket allows
//! NAME ──────────────────────────────►  one request
//!        ◄──────────────────── NAME ──  its answer; then the next, or TPG_DONE from both
//!
//! ERROR ◄────────────────────────────►  at any time, before the sender gives up
//! ```
//!
//! What it does: names the messages, cuts them into frames and back ([`frame`]),
//! puts a profile that came in parts together again ([`profile`]).
//! What it must not do: I/O, and judging whether a message fits the moment; that
//! is `machine`'s. Unknown fields are refused everywhere but in CTRL_CHAN_EST,
//! which is read before a version is agreed on.

mod adjust;
pub mod frame;
pub mod profile;

use std::fmt;
use std::net::IpAddr;

use farline_spec::{Failure, FailureKind, NameAnswer, NameRequest, NameRights, RunSpec, plain_line};
use serde::{Deserialize, Serialize};

pub use adjust::{Adjust, Adjusted, FarStages};
pub use profile::{ProfilePart, ServerProfile};

/// Versions of the control protocol that this build speaks.
pub const VERSIONS: VersionRange = VersionRange { min: 1, max: 7 };
/// First version in which the receiving end of a copy tells names whose attributes alone it updates.
pub const COUNTS_UPDATES: u32 = 2;
/// First version in which the receiving end of a copy asks again for sealed frames that do not open.
pub const HEALS_FRAMES: u32 = 3;
/// First version in which it asks for further names by themselves where their file could not be copied.
pub const TAKES_NAMES_APART: u32 = 3;
/// First version whose ends know of other sums than BLAKE3 (`hash` of a copy): before it a copy is proved with that, or not at all.
/// The release of 0.2.0 speaks version 4 and knows none.
pub const KNOWS_SUMS: u32 = 5;

/// First version in which a copy can change while it runs, and its server says how far its stages are.
pub const ADJUSTS: u32 = 4;

/// First version whose server answers about names below the folder of a ticket.
pub const KNOWS_NAMES: u32 = 5;

/// First version in which one control connection can carry several sessions, each after the one before it.
pub const KEEPS: u32 = 6;

/// First version in which the receiving end of a copy hears of extended attributes of the folder whose content is the source.
pub const TAKES_TOP_XATTRS: u32 = 7;

/// Longest line taken over from a peer, in bytes.
const MAX_LINE_BYTES: usize = 1024;

/// Versions from `min` to `max`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRange {
    /// Oldest.
    pub min: u32,
    /// Newest.
    pub max: u32,
}

impl VersionRange {
    /// Newest version that both ranges hold.
    ///
    /// # Errors
    /// [`FailureKind::Version`] that names both ranges.
    pub fn common(self, other: Self) -> Result<u32, Failure> {
        let newest = self.max.min(other.max);
        if newest >= self.min.max(other.min) {
            return Ok(newest);
        }
        let line = format!(
            "no common protocol version: this end supports {self}, the other end {other}; install the same version of farline on both hosts"
        );
        Err(Failure::new(FailureKind::Version, line))
    }

    /// Whether `version` is one of them.
    pub fn holds(self, version: u32) -> bool {
        (self.min..=self.max).contains(&version)
    }
}

impl Default for VersionRange {
    /// What this build speaks.
    fn default() -> Self {
        VERSIONS
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} to {}", self.min, self.max)
    }
}

/// Name of a session: 16 random bytes drawn by the server; public.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(pub [u8; 16]);

impl fmt::Display for SessionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for SessionId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let number = u128::from_str_radix(&text, 16).ok();
        let plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        number
            .filter(|_| plain)
            .map(|number| Self(number.to_be_bytes()))
            .ok_or_else(|| "a session id has 32 hexadecimal digits".to_owned())
    }
}

/// What only a client may say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ClientMessage {
    /// Chooses the version, shows the ticket, asks for the task.
    #[serde(rename = "HANDSHAKE")]
    Handshake(Box<Handshake>),
    /// Asks the server to listen for the data streams.
    #[serde(rename = "CREATE_STREAMS")]
    CreateStreams,
    /// All streams are open; the run may begin.
    #[serde(rename = "PROFILING_START")]
    ProfilingStart,
    /// Changes the copy that runs; the next only after the answer.
    #[serde(rename = "ADJUST")]
    Adjust(Adjust),
    /// Wants one thing of names; the next only after the answer.
    #[serde(rename = "NAME")]
    Name(NameRequest),
    /// This end sends no more.
    #[serde(rename = "PROFILING_END")]
    ProfilingEnd(ProfilingEnd),
    /// What the run came to at this end; asks for the server's.
    #[serde(rename = "EXCHANGE_PROFILE")]
    ExchangeProfile(ClientProfile),
    /// Nothing more will come.
    #[serde(rename = "TPG_DONE")]
    TpgDone,
    /// Why this end gives up.
    #[serde(rename = "ERROR")]
    Error(Failure),
}

/// What only a server may say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ServerMessage {
    /// The control channel stands.
    #[serde(rename = "CTRL_CHAN_EST")]
    CtrlChanEst(Established),
    /// The task as it was granted.
    #[serde(rename = "HANDSHAKE")]
    Handshake(Box<Grant>),
    /// What may be done with names.
    #[serde(rename = "NAMES")]
    Names(NameRights),
    /// What came of one request about names.
    #[serde(rename = "NAME")]
    Name(NameAnswer),
    /// Where the server listens.
    #[serde(rename = "CREATE_STREAMS")]
    CreateStreams(Listeners),
    /// The server's end of the run has begun.
    #[serde(rename = "PROFILING_START")]
    ProfilingStart,
    /// What became of a change.
    #[serde(rename = "ADJUSTED")]
    Adjusted(Adjusted),
    /// How far the server's end of a copy is.
    #[serde(rename = "STAGES")]
    Stages(FarStages),
    /// This end sends no more.
    #[serde(rename = "PROFILING_END")]
    ProfilingEnd(ProfilingEnd),
    /// One part of what the run came to at this end.
    #[serde(rename = "EXCHANGE_PROFILE")]
    ExchangeProfile(ProfilePart),
    /// The session is over.
    #[serde(rename = "TPG_DONE")]
    TpgDone,
    /// Why this end gives up.
    #[serde(rename = "ERROR")]
    Error(Failure),
}

/// Content of the server's first message. Fields that a later version adds are passed over:
/// this is read before the version is agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Established {
    /// Oldest version the server speaks.
    pub min_version: u32,
    /// Newest version the server speaks.
    pub max_version: u32,
    /// Name of the session.
    pub session: SessionId,
}

/// Content of the client's first message.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handshake {
    /// Version chosen from the server's offer.
    pub version: u32,
    /// Ticket, `v1.CLAIMS.MAC`; absent for an anonymous client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// What the session is for.
    pub task: Task,
    /// The connection is not over with this session: another may follow on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps: bool,
}

impl fmt::Debug for Handshake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticket = self.ticket.as_ref().map(|_| "(secret)");
        out.debug_struct("Handshake")
            .field("version", &self.version)
            .field("ticket", &ticket)
            .field("task", &self.task)
            .field("keeps", &self.keeps)
            .finish()
    }
}

/// What a session is for.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each session, in a box with its handshake"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// One run, memory to memory or, with `copy` in its spec, of files.
    Profile(RunSpec),
    /// No run: requests about names below the folder of the ticket.
    Names,
}

/// A task as the server grants it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The spec asked for; only its rate, and the total rate of a copy, may have been lowered.
    pub spec: RunSpec,
    /// What was changed and why, one line each.
    pub notes: Vec<String>,
}

/// Where the server listens for data streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listeners {
    /// One entry per destination address of the spec.
    pub listeners: Vec<ListenerAddress>,
    /// Port of the message streams of a copy, at its first destination; absent of any other run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages_port: Option<u16>,
    /// Whether nothing is at the destination that the server has for a copy: its files come without another word.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_vacant: bool,
}

/// One listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenerAddress {
    /// Destination as the spec names it; absent for the address that the control channel goes to,
    /// which the client knows better than a server behind address translation.
    pub destination: Option<IpAddr>,
    /// Port.
    pub port: u16,
}

/// An end sends no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfilingEnd {
    /// Whether it was stopped before its end: the other end stops sending too.
    pub stopped: bool,
}

/// What the run came to at the client.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientProfile {
    /// Payload bytes sent.
    pub bytes_sent: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// What went wrong at the client's end of the run.
    pub failure: Option<Failure>,
}

/// A line from a peer made fit for a terminal and a log; what is over 1024 bytes is cut.
pub fn tame_line(text: &str) -> String {
    plain_line(text, MAX_LINE_BYTES)
}

/// A failure as a peer reports it, made fit to be shown and acted on here: what is wrong with the peer's machine, or is not
/// there, stays that and says whose it is; a defect of its farline is the peer's fault, not this end's.
pub fn tame_failure(failure: Failure) -> Failure {
    let line = tame_line(&failure.message);
    let (kind, message) = match failure.kind {
        kind @ (FailureKind::System | FailureKind::Usage) => (kind, format!("the other end: {line}")),
        FailureKind::Internal => (FailureKind::Protocol, format!("the other end failed: {line}")),
        kind => (kind, line),
    };
    let retry_after_s = failure.retry_after_s.map(|seconds| seconds.clamp(0.0, 86_400.0));
    Failure {
        kind,
        message,
        retry_after_s,
        permanent: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::from_json;

    #[test]
    fn the_newest_common_version_is_chosen() {
        let range = |min, max| VersionRange { min, max };
        assert_eq!(range(1, 4).common(range(2, 9)).unwrap(), 4);
        assert_eq!(range(3, 3).common(range(1, 7)).unwrap(), 3);
        let refusal = range(1, 2).common(range(3, 5)).unwrap_err();
        assert_eq!(refusal.kind, FailureKind::Version);
        assert!(refusal.message.contains("1 to 2") && refusal.message.contains("3 to 5"));
    }

    #[test]
    fn a_turned_range_holds_nothing() {
        let turned = VersionRange { min: 9, max: 1 };
        assert!(VersionRange { min: 1, max: 9 }.common(turned).is_err());
    }

    #[test]
    fn session_names_are_32_digits() {
        let id = SessionId([0xab; 16]);
        let text = serde_json::to_string(&id).unwrap();
        assert_eq!(text, format!("\"{}\"", "ab".repeat(16)));
        assert_eq!(from_json::<SessionId>(&text).unwrap(), id);
        for wrong in ["\"\"", "\"+0000000000000000000000000000000\"", "\"zz\"", "7"] {
            assert!(from_json::<SessionId>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn states_go_by_the_names_of_the_paper() {
        let text = serde_json::to_string(&ClientMessage::TpgDone).unwrap();
        assert_eq!(text, "\"TPG_DONE\"");
        let message = ServerMessage::ProfilingEnd(ProfilingEnd { stopped: true });
        assert_eq!(
            serde_json::to_string(&message).unwrap(),
            r#"{"PROFILING_END":{"stopped":true}}"#
        );
    }

    #[test]
    fn what_the_other_end_may_say_is_not_understood() {
        assert!(from_json::<ClientMessage>(r#"{"CTRL_CHAN_EST":{}}"#).is_err());
        assert!(from_json::<ServerMessage>("\"CREATE_STREAMS\"").is_err());
    }

    #[test]
    fn only_the_greeting_passes_over_unknown_fields() {
        let greeting = r#"{"CTRL_CHAN_EST":{"min_version":1,"max_version":2,"session":"00000000000000000000000000000000","motd":1}}"#;
        assert!(from_json::<ServerMessage>(greeting).is_ok());
        let refusal = from_json::<ClientMessage>(r#"{"PROFILING_END":{"stopped":true,"x":1}}"#).unwrap_err();
        assert!(refusal.message.contains("unknown field `x`"), "{refusal}");
    }

    #[test]
    fn a_ticket_does_not_reach_a_debug_line() {
        let handshake = Handshake {
            version: 1,
            ticket: Some("v1.secret".into()),
            task: Task::Profile(RunSpec::default()),
            keeps: false,
        };
        assert!(!format!("{handshake:?}").contains("v1.secret"));
    }

    #[test]
    fn lines_of_a_peer_are_tamed() {
        assert_eq!(tame_line("a\x1b[2Jb\n"), "a [2Jb ");
        let long = tame_line(&"ü".repeat(4000));
        assert_eq!(long.len(), 1024);
        let mut failure = Failure::new(FailureKind::Busy, "later");
        failure.retry_after_s = Some(1e300);
        assert_eq!(tame_failure(failure).retry_after_s, Some(86_400.0));
        let theirs = tame_failure(Failure::new(FailureKind::System, "disk full"));
        assert_eq!(
            (theirs.kind, theirs.message.as_str()),
            (FailureKind::System, "the other end: disk full")
        );
        let absent = tame_failure(Failure::new(FailureKind::Usage, "no such source"));
        assert_eq!(absent.message, "the other end: no such source");
        let defect = tame_failure(Failure::new(FailureKind::Internal, "a panic"));
        assert_eq!(defect.kind, FailureKind::Protocol);
    }
}
