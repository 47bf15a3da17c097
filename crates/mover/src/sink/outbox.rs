//! Sends what the sending end is to be told, gathered into frames.

use std::time::{Duration, Instant};

use farline_spec::Failure;

use super::driver::Machine;
use super::entry::TICK;
use crate::frame::{FrameKind, Header};
use crate::message::{self, Feedback, MESSAGE_FRAME_BYTES};
use crate::{Frame, Outlet};

/// A frame is sent when it has so much.
const FULL_BYTES: usize = 64 * 1024;
/// A frame is sent when nothing came for so long.
const QUIET: Duration = Duration::from_millis(2);
/// A frame is sent when its first message is this old.
const OLD: Duration = Duration::from_millis(20);

/// Sends what there is until the last message is sent, and something at least each `beat` while this end works. `stop` fails
/// when the copy is over otherwise; `works` says whether this end is at work that the other end cannot see, and is called often.
///
/// # Errors
/// The stream's, and `stop`'s.
pub fn send_all(
    machine: &Machine,
    outlet: &mut dyn Outlet,
    beat: Duration,
    stop: impl Fn() -> Result<(), Failure>,
    works: impl Fn() -> bool,
) -> Result<(), Failure> {
    let mut frame = Frame::new(MESSAGE_FRAME_BYTES);
    let mut payload = Vec::with_capacity(MESSAGE_FRAME_BYTES);
    let mut sent = Instant::now();
    loop {
        // Who was silent for a while does not wait for more to say.
        let is_alone = sent.elapsed() >= OLD;
        let is_last = gather(machine, &mut payload, is_alone)?;
        stop()?;
        if !payload.is_empty() || (works() && sent.elapsed() >= beat) {
            send(outlet, &mut frame, &payload)?;
            payload.clear();
            sent = Instant::now();
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Fills `payload` with what there is and, unless it is `alone`, what comes soon; whether the last message is in it.
fn gather(machine: &Machine, payload: &mut Vec<u8>, alone: bool) -> Result<bool, Failure> {
    machine.wait_for_message(TICK);
    let began = Instant::now();
    loop {
        let is_last = fill(machine, payload)?;
        machine.messages_taken();
        if payload.is_empty() || is_last || alone || payload.len() >= FULL_BYTES || began.elapsed() >= OLD {
            return Ok(is_last);
        }
        if !machine.wait_for_message(QUIET) {
            return Ok(false);
        }
    }
}

/// Takes messages until `payload` is full or there are none; whether the last one of the copy is among them.
fn fill(machine: &Machine, payload: &mut Vec<u8>) -> Result<bool, Failure> {
    while payload.len() < FULL_BYTES {
        let Some(next) = machine.next_message() else {
            break;
        };
        message::append(payload, &next)?;
        if matches!(next, Feedback::Finished { .. }) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn send(outlet: &mut dyn Outlet, frame: &mut Frame, payload: &[u8]) -> Result<(), Failure> {
    let mut header = Header::of_messages(FrameKind::Feedback);
    header.payload_bytes = payload.len() as u32;
    frame.room()[..payload.len()].copy_from_slice(payload);
    frame.set(&header);
    outlet.send(frame)?;
    outlet.flush()
}
