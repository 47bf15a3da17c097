//! What opening a stream leaves behind.

use farline_spec::PathCheck;
use socket2::Socket;

use super::feedback::Feedback;
use super::options::Setup;

/// The pieces that a stream is made of.
pub(super) struct Parts {
    pub(super) udp: Socket,
    pub(super) feedback: Feedback,
    pub(super) setup: Setup,
    pub(super) token: u32,
    pub(super) rtt_ns: u64,
    pub(super) check: Option<PathCheck>,
    pub(super) is_client: bool,
}
