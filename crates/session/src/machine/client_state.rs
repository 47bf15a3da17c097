//! The client's states, and what leads from one to the next.

use super::table::state_table;

state_table! {
    /// Where the client stands.
    ClientState,
    /// What may happen to the client.
    ClientInput;

    inputs {
        Established = "CTRL_CHAN_EST",
        Granted = "HANDSHAKE",
        PeerNames = "NAMES",
        PeerName = "NAME",
        Listening = "CREATE_STREAMS",
        StreamsOpen = "streams open",
        Started = "PROFILING_START",
        SendersDone = "senders done",
        AllDone = "all done",
        AdjustAsked = "adjust",
        LateStreams = "late streams",
        PeerAdjusted = "ADJUSTED",
        PeerStages = "STAGES",
        PeerEnded = "PROFILING_END",
        Stop = "stop",
        RunFailed = "run failed",
        Collected = "collected",
        ProfilePart = "EXCHANGE_PROFILE",
        ProfileEnd = "EXCHANGE_PROFILE (last)",
        PeerDone = "TPG_DONE",
        PeerError = "ERROR",
        Elapsed = "time over",
        Broken = "failure",
    }
    states {
        Greeting [Message] "waits for the server's first word" { Established => Handshaking }
        Handshaking [Message] "has asked for its task" { Granted => CreatingStreams }
        CreatingStreams [Message] "has asked for listeners" { Listening => OpeningStreams }
        OpeningStreams [Connect] "opens the data streams" { StreamsOpen => Starting }
        Starting [Message] "has asked for the start; the streams of a copy begin" {
            Started => Running, SendersDone => Starting, AllDone => Starting, RunFailed => Failing,
            AdjustAsked => Starting, PeerStages => Starting,
        }
        Running [Watchdog] "data flow" {
            SendersDone => Ending, AllDone => Ending, Stop => Ending, PeerEnded => Draining, RunFailed => Failing,
            AdjustAsked => Running, LateStreams => Running, PeerAdjusted => Running, PeerStages => Running,
        }
        Ending [PeerEnd] "sends no more and has said so" {
            SendersDone => Ending, AllDone => Ending, Stop => Ending, PeerEnded => Collecting, RunFailed => Failing,
            AdjustAsked => Ending, LateStreams => Ending, PeerAdjusted => Ending, PeerStages => Ending,
        }
        Draining [Drain] "the other end sends no more; reads what is under way" {
            SendersDone => Draining, AllDone => Collecting, Stop => Draining, Elapsed => Collecting,
            RunFailed => Failing, ProfilePart => Draining, ProfileEnd => Draining,
            AdjustAsked => Draining, LateStreams => Draining, PeerAdjusted => Draining, PeerStages => Draining,
        }
        Collecting [Own] "joins its streams" {
            Collected => Exchanging, Stop => Collecting, ProfilePart => Collecting, ProfileEnd => Collecting,
            PeerAdjusted => Collecting, PeerStages => Collecting,
        }
        Exchanging [Message] "takes the server's profile" {
            ProfilePart => Exchanging, ProfileEnd => Finishing, Stop => Exchanging,
            PeerAdjusted => Exchanging, PeerStages => Exchanging,
        }
        Finishing [Message] "has all and has said so" {
            PeerDone => Done, Stop => Finishing, PeerAdjusted => Finishing, PeerStages => Finishing,
        }
        Failing [Grace] "its run failed; listens whether the other end knows why" {
            SendersDone => Failing, AllDone => Failing, Stop => Failing, PeerEnded => Failing, RunFailed => Failing,
            Started => Failing, ProfilePart => Failing, ProfileEnd => Failing,
            LateStreams => Failing, PeerAdjusted => Failing, PeerStages => Failing,
        }
        Done [Nothing] "the session is over" {}
        Failed [Nothing] "the session is over and failed" {}
    }
    from_any { PeerError => Failed, Stop => Failed, Elapsed => Failed, Broken => Failed }
}

impl ClientState {
    /// Whether the run of a copy has begun at this end, or more.
    pub(super) const fn has_started(self) -> bool {
        !matches!(
            self,
            Self::Greeting | Self::Handshaking | Self::CreatingStreams | Self::OpeningStreams
        )
    }

    /// When something happens in it, for people.
    pub const fn moment(self) -> &'static str {
        match self {
            Self::Greeting => "before it said a word",
            Self::Handshaking => "before it answered what was asked for",
            Self::CreatingStreams | Self::OpeningStreams => "while data streams were being opened",
            Self::Starting | Self::Running => "while data were under way",
            Self::Ending | Self::Draining | Self::Collecting => "while the run was ending",
            Self::Exchanging | Self::Finishing | Self::Done => "before it gave its results",
            Self::Failing | Self::Failed => "after the run had failed",
        }
    }

    /// The state of Yun et al. 2015 that it belongs to.
    pub const fn stage(self) -> &'static str {
        match self {
            Self::Greeting => "CTRL_CHAN_EST",
            Self::Handshaking => "HANDSHAKE",
            Self::CreatingStreams | Self::OpeningStreams => "CREATE_STREAMS",
            Self::Starting | Self::Running => "PROFILING_START",
            Self::Ending | Self::Draining => "PROFILING_END",
            Self::Collecting | Self::Exchanging => "EXCHANGE_PROFILE",
            Self::Finishing | Self::Done => "TPG_DONE",
            Self::Failing | Self::Failed => "ERROR",
        }
    }
}
