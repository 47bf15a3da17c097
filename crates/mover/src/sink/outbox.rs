//! What the sending end is to be told, gathered into frames.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use farline_spec::Failure;

use super::entry::TICK;
use crate::frame::{FrameKind, Header};
use crate::message::{self, Feedback, MESSAGE_FRAME_BYTES, Wants};
use crate::{Frame, Outlet};

/// A frame is sent when it has so much.
const FULL_BYTES: usize = 64 * 1024;
/// A frame is sent when nothing came for so long.
const QUIET: Duration = Duration::from_millis(2);
/// A frame is sent when its first message is this old.
const OLD: Duration = Duration::from_millis(20);
/// Answers that go into one message, unless they are long.
const MOST_ANSWERS: usize = 512;
/// Parts in the answers of one message.
const MOST_PARTS: usize = 2_000;

/// Messages that wait.
#[derive(Debug, Default)]
pub struct Outbox {
    inner: Mutex<Inner>,
    wake: Condvar,
    /// Something was taken to be sent.
    less: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    first: Option<Feedback>,
    answers: VecDeque<(u64, Wants)>,
    messages: VecDeque<Feedback>,
    last: Option<Feedback>,
}

impl Inner {
    fn is_empty(&self) -> bool {
        let has_ends = self.first.is_some() || self.last.is_some();
        !has_ends && self.answers.is_empty() && self.messages.is_empty()
    }
}

impl Outbox {
    /// The first message.
    pub fn ready(&self, fresh: bool) {
        self.lock().first = Some(Feedback::Ready { fresh });
        self.wake.notify_all();
    }

    /// Answers for entries.
    pub fn answer(&self, answers: impl IntoIterator<Item = (u64, Wants)>) {
        self.lock().answers.extend(answers);
        self.wake.notify_all();
    }

    /// Any other messages.
    pub fn say(&self, messages: impl IntoIterator<Item = Feedback>) {
        self.lock().messages.extend(messages);
        self.wake.notify_all();
    }

    /// Waits until at most `most` answers and messages wait: a sending end that does not listen is not to fill this memory.
    ///
    /// # Errors
    /// What `stop` says; it is asked often.
    pub fn wait_for_room(&self, most: usize, stop: impl Fn() -> Result<(), Failure>) -> Result<(), Failure> {
        let mut inner = self.lock();
        while inner.answers.len() + inner.messages.len() > most {
            stop()?;
            inner = self.less.wait_timeout(inner, TICK).expect(POISONED).0;
        }
        Ok(())
    }

    /// The last message.
    pub fn finish(&self, problems: Vec<String>) {
        self.lock().last = Some(Feedback::Finished { problems });
        self.wake.notify_all();
    }

    /// Sends what there is until the last message is sent, and something at least each `beat` while this end works. `stop` fails when the copy is over otherwise; `works` says whether
    /// this end is at work that the other end cannot see, and is called often.
    ///
    /// # Errors
    /// The stream's, and `stop`'s.
    pub fn send(
        &self,
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
            let is_last = self.gather(&mut payload, is_alone)?;
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
    fn gather(&self, payload: &mut Vec<u8>, alone: bool) -> Result<bool, Failure> {
        let inner = self.lock();
        let empty = |inner: &mut Inner| inner.is_empty();
        let mut inner = self
            .wake
            .wait_timeout_while(inner, TICK, empty)
            .expect(POISONED)
            .0;
        let began = Instant::now();
        loop {
            let is_last = fill(&mut inner, payload)?;
            self.less.notify_all();
            if payload.is_empty() || is_last || alone || payload.len() >= FULL_BYTES || began.elapsed() >= OLD
            {
                return Ok(is_last);
            }
            inner = self
                .wake
                .wait_timeout_while(inner, QUIET, empty)
                .expect(POISONED)
                .0;
            if inner.is_empty() {
                return Ok(false);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect(POISONED)
    }
}

const POISONED: &str = "a thread of the copy panicked while it held the send queue";

/// Answers before other messages: data depend on them.
fn fill(inner: &mut Inner, payload: &mut Vec<u8>) -> Result<bool, Failure> {
    if let Some(first) = inner.first.take() {
        message::append(payload, &first)?;
    }
    while payload.len() < FULL_BYTES {
        if let Some(answers) = next_answers(&mut inner.answers) {
            message::append(payload, &answers)?;
        } else if let Some(next) = inner.messages.pop_front() {
            message::append(payload, &next)?;
        } else if let Some(last) = inner.last.take() {
            message::append(payload, &last)?;
            return Ok(true);
        } else {
            break;
        }
    }
    Ok(false)
}

/// The answers at the front that are for entries in a row.
fn next_answers(waiting: &mut VecDeque<(u64, Wants)>) -> Option<Feedback> {
    let (first, answer) = waiting.pop_front()?;
    let mut parts = length_of(&answer);
    let mut wants = vec![answer];
    while let Some((number, next)) = waiting.front() {
        parts += length_of(next);
        let is_next = *number == first + wants.len() as u64;
        if !is_next || wants.len() >= MOST_ANSWERS || parts > MOST_PARTS {
            break;
        }
        wants.extend(waiting.pop_front().map(|(_, wants)| wants));
    }
    Some(Feedback::Answers { first, wants })
}

/// Length of an answer, in parts of about fifty bytes.
fn length_of(answer: &Wants) -> usize {
    match answer {
        Wants::Rest(parts) => parts.len(),
        Wants::Refused(reason) | Wants::LeftOut(reason) => reason.len() / 50 + 1,
        Wants::All | Wants::Present(_) | Wants::Updated(_) | Wants::Made => 0,
    }
}

fn send(outlet: &mut dyn Outlet, frame: &mut Frame, payload: &[u8]) -> Result<(), Failure> {
    let mut header = Header::of_messages(FrameKind::Feedback);
    header.payload_bytes = payload.len() as u32;
    frame.room()[..payload.len()].copy_from_slice(payload);
    frame.set(&header);
    outlet.send(frame)?;
    outlet.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_more_than_is_heard_waits_until_it_is_or_the_copy_is_over() {
        let outbox = Outbox::default();
        outbox.answer((0..10).map(|number| (number, Wants::All)));
        let over = || Err(Failure::new(farline_spec::FailureKind::Interrupted, "over"));
        assert!(outbox.wait_for_room(10, over).is_ok());
        assert!(outbox.wait_for_room(9, over).is_err());
        outbox.gather(&mut Vec::new(), true).unwrap();
        assert!(outbox.wait_for_room(0, over).is_ok());
    }

    #[test]
    fn the_first_message_is_first_and_the_last_is_last_whatever_waited() {
        let outbox = Outbox::default();
        outbox.finish(Vec::new());
        outbox.say([Feedback::Done { file: 3, hash: None }]);
        outbox.answer([(0, Wants::All), (1, Wants::Made), (5, Wants::All)]);
        outbox.ready(true);
        let mut payload = Vec::new();
        assert!(outbox.gather(&mut payload, false).unwrap());
        let said: Vec<Feedback> = message::messages(&payload).unwrap();
        assert_eq!(said[0], Feedback::Ready { fresh: true });
        let wants = vec![Wants::All, Wants::Made];
        assert_eq!(said[1], Feedback::Answers { first: 0, wants });
        assert_eq!(said.len(), 5);
        assert!(matches!(said[4], Feedback::Finished { .. }));
    }
}
