//! The other end's feedback, from its stream to the machine.

use farline_spec::{Failure, FailureKind};
use tracing::debug;

use super::driver::Driver;
use super::run::Run;
use crate::frame::{Frame, FrameKind};
use crate::message::{self, Feedback};
use crate::{Arrived, Inlet};

/// Takes feedback in frames of at most so many bytes until the other end has finished.
pub(super) fn take_all(
    driver: &Driver,
    run: &Run,
    frame_bytes: usize,
    inlet: &mut dyn Inlet,
) -> Result<(), Failure> {
    let mut frame = Frame::new(frame_bytes);
    while !run.is_over() {
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
                take(driver, frame.payload())?;
            }
        }
    }
    run.outcome()
}

fn take(driver: &Driver, payload: &[u8]) -> Result<(), Failure> {
    let messages = message::messages::<Feedback>(payload)?;
    let is_last = |message: &Feedback| matches!(message, Feedback::Finished { .. });
    let last = messages.iter().position(is_last);
    if last.is_some_and(|last| last + 1 < messages.len()) {
        return broken("feedback after the last message");
    }
    if let Some(Feedback::Ready { fresh }) = messages.first() {
        debug!(is_empty = *fresh, "destination is ready");
    }
    let now_ns = driver.now_ns();
    driver.ask(|machine| {
        let mut messages = messages.into_iter();
        messages.try_for_each(|message| machine.handle_message(message, now_ns))
    })
}

fn broken<T>(line: &str) -> Result<T, Failure> {
    Err(Failure::new(FailureKind::Protocol, line))
}
