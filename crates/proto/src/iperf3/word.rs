//! The words of one byte, and the numbers of errors.

use std::fmt;

/// A word of the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum Word {
    /// The server has all streams; both ends begin their clocks.
    TestStart = 1,
    /// Data flow.
    TestRunning = 2,
    /// The client has had enough.
    TestEnd = 4,
    /// The server asks for the parameters.
    ParamExchange = 9,
    /// The server waits for the streams.
    CreateStreams = 10,
    /// The server ends the test before its time.
    ServerTerminate = 11,
    /// The client ends the test before its time.
    ClientTerminate = 12,
    /// Results go both ways, the client's first.
    ExchangeResults = 13,
    /// All has been said; the client may print.
    DisplayResults = 14,
    /// The client says goodbye.
    Done = 16,
    /// The server has no room, or does not know who asks.
    AccessDenied = -1,
    /// An error of the server; two numbers of four bytes follow.
    ServerError = -2,
}

impl Word {
    const ALL: [Self; 12] = [
        Self::TestStart,
        Self::TestRunning,
        Self::TestEnd,
        Self::ParamExchange,
        Self::CreateStreams,
        Self::ServerTerminate,
        Self::ClientTerminate,
        Self::ExchangeResults,
        Self::DisplayResults,
        Self::Done,
        Self::AccessDenied,
        Self::ServerError,
    ];

    /// As it is sent.
    pub const fn byte(self) -> u8 {
        self as i8 as u8
    }

    /// The word that a byte stands for.
    pub fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|word| word.byte() == byte)
    }
}

/// A number that iperf3 has for an error. Clients print their own text for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode(pub i32);

impl ErrorCode {
    /// The test would be too long.
    pub const DURATION: Self = Self(5);
    /// Too many streams.
    pub const STREAMS: Self = Self(6);
    /// Blocks are too large.
    pub const BLOCK: Self = Self(7);
    /// Socket buffers are too large.
    pub const BUFFER: Self = Self(8);
    /// The MSS is too large.
    pub const MSS: Self = Self(10);
    /// The time to omit is not allowed.
    pub const OMIT: Self = Self(12);
    /// The burst is too large.
    pub const BURST: Self = Self(15);
    /// SCTP is not served.
    pub const SCTP: Self = Self(18);
    /// Datagrams are too short or too long.
    pub const DATAGRAM: Self = Self(20);
    /// The type of service is not allowed.
    pub const TOS: Self = Self(21);
    /// One test cannot go in reverse and both ways.
    pub const DIRECTION: Self = Self(25);
    /// The rate is above the server's limit.
    pub const RATE: Self = Self(27);
    /// The test would be longer than this server allows; clients know it from 3.20 on.
    pub const DURATION_LIMIT: Self = Self(37);
    /// The control connection closed.
    pub const CLOSED: Self = Self(109);
    /// A word that has no place here.
    pub const WORD: Self = Self(110);
    /// No parameters, or none that can be read.
    pub const PARAMETERS: Self = Self(114);
    /// No results, or none that can be read.
    pub const RESULTS: Self = Self(117);
    /// The CPU cannot be used.
    pub const AFFINITY: Self = Self(132);
    /// The congestion control is not available.
    pub const CONGESTION: Self = Self(134);
    /// The kernel granted smaller socket buffers.
    pub const BUFFER_GRANTED: Self = Self(141);
    /// Wrong name, password or time.
    pub const AUTHORISATION: Self = Self(142);
    /// Nothing came for too long.
    pub const SILENT: Self = Self(144);
    /// The test took longer than it said; clients know it from 3.21 on.
    pub const EXPIRED: Self = Self(160);
    /// No stream could be made.
    pub const STREAM: Self = Self(200);
    /// A stream could not be accepted.
    pub const ACCEPT: Self = Self(204);

    /// What it means, in words of our own.
    pub fn text(self) -> &'static str {
        match self.0 {
            5 => "the test would be too long",
            6 => "too many streams",
            7 => "the blocks are too long",
            8 => "the socket buffers are too large",
            10 => "the MSS is too large",
            12 => "the time to omit is not allowed",
            15 => "the burst is too large",
            18 => "SCTP is not supported",
            20 => "the datagrams are too short or too long",
            21 => "the type of service is not allowed",
            25 => "reverse and bidirectional exclude each other",
            27 => "the rate is above the server's limit",
            37 => "the test would be longer than the server allows",
            109 => "the control connection was closed",
            110 => "an unexpected message",
            114 => "the parameters could not be read",
            117 => "the results could not be read",
            121 => "the server is busy",
            132 => "the CPU could not be chosen",
            134 => "the congestion control is not available",
            140 => "the pacing rate could not be set",
            141 => "the kernel granted smaller socket buffers",
            142 => "wrong user name, password, key or clock",
            144 => "nothing came for too long",
            160 => "the test took longer than allowed",
            200 | 201 => "no stream could be made",
            202..=208 => "a stream failed",
            _ => "an error of its own",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (iperf3's error {})", self.text(), self.0)
    }
}
