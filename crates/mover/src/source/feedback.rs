//! The other end's feedback, from its stream to the machine.

use farline_spec::{Failure, FailureKind};
use tracing::debug;

use super::shared::Shared;
use crate::frame::{Frame, FrameKind};
use crate::message::{self, Feedback};
use crate::{Arrived, Inlet};

/// Takes feedback until the other end has finished.
pub(super) fn run(shared: &Shared, inlet: &mut dyn Inlet) -> Result<(), Failure> {
    let mut frame = Frame::new(crate::most_frame_bytes(&shared.spec));
    while !shared.halt.is_over() {
        match inlet.receive(&mut frame)? {
            Arrived::Void | Arrived::Unopened { .. } | Arrived::OutOfStep { .. } => {
                return broken("an empty frame among messages");
            }
            Arrived::Nothing => {}
            Arrived::End => return broken("the other end's feedback ended before the copy"),
            Arrived::Frame => {
                let header = frame.header()?;
                if header.kind != FrameKind::Feedback {
                    return broken("an invalid feedback frame");
                }
                take(shared, frame.payload())?;
            }
        }
    }
    shared.halt.outcome()
}

fn take(shared: &Shared, payload: &[u8]) -> Result<(), Failure> {
    let messages = message::messages::<Feedback>(payload)?;
    let is_last = |message: &Feedback| matches!(message, Feedback::Finished { .. });
    let last = messages.iter().position(is_last);
    if last.is_some_and(|last| last + 1 < messages.len()) {
        return broken("feedback after the last message");
    }
    if let Some(Feedback::Ready { fresh }) = messages.first() {
        debug!(is_empty = *fresh, "destination is ready");
    }
    let now_ns = shared.driver.now_ns();
    shared.ask(|machine| {
        let mut messages = messages.into_iter();
        messages.try_for_each(|message| machine.handle_message(message, now_ns))
    })
}

fn broken<T>(line: &str) -> Result<T, Failure> {
    Err(Failure::new(FailureKind::Protocol, line))
}
