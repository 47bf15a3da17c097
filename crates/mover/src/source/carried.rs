//! Frames as the machine knows them: by what they carry.

use farline_proto::copy::sender::Cargo;
use farline_spec::{Failure, FailureKind};

use super::producer::Filled;
use super::shared::Shared;
use crate::Frame;
use crate::frame::FrameKind;
use crate::pack;

/// What is in `frame`, which is about to be sent.
fn cargo_of(frame: &Frame) -> Result<Cargo, Failure> {
    let header = frame.header()?;
    match header.kind {
        FrameKind::Chunk => Ok(Cargo::Chunk {
            file: header.file,
            offset: header.offset,
            bytes: header.payload_bytes,
        }),
        FrameKind::Pack => {
            let numbers = pack::items(frame.payload()).map(|item| item.map(|item| item.file));
            numbers.collect::<Result<_, _>>().map(Cargo::Pack)
        }
        FrameKind::Catalogue | FrameKind::Feedback => {
            let line = "messages among the data that are to be sent";
            Err(Failure::new(FailureKind::Internal, line))
        }
    }
}

impl Shared {
    /// Notes that `frame` goes over `stream` next; false where that stream was given up: then what is in it goes over another.
    ///
    /// # Errors
    /// [`FailureKind::Internal`] for a frame that this end did not fill.
    pub(super) fn may_carry(&self, stream: u16, frame: &Frame) -> Result<bool, Failure> {
        if !self.remembers_frames {
            return Ok(true);
        }
        let cargo = cargo_of(frame)?;
        self.ask(|machine| machine.carry(stream, cargo))
    }

    /// What is in `filled` goes over another stream.
    ///
    /// # Errors
    /// As of [`Self::may_carry`].
    pub(super) fn hand_back(&self, filled: &Filled) -> Result<(), Failure> {
        let cargo = cargo_of(&filled.frame)?;
        self.ask(|machine| machine.carry_again(&cargo))
    }
}
