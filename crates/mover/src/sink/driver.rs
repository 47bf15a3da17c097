//! The machine of this end behind its lock, and those who wait for something of it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use farline_proto::copy::CopyReceiver;
use farline_proto::copy::receiver::{Action, Config};
use farline_spec::Failure;

use super::entry::{Entry, TICK};
use crate::message::Feedback;

/// The machine as this end drives it.
pub type Receiver = CopyReceiver<Arc<Entry>>;

/// The machine, for all threads.
#[derive(Debug)]
pub struct Machine {
    inner: Mutex<Inner>,
    began: Instant,
    /// More of the catalogue was heard: data that overtook it need not wait.
    heard: Condvar,
    /// There is something to say.
    said: Condvar,
    /// Something was taken to be said.
    less_said: Condvar,
    /// Something is to be done.
    work: Condvar,
    /// Something was taken to be done.
    less_work: Condvar,
}

#[derive(Debug)]
struct Inner {
    receiver: Receiver,
    is_stopped: bool,
}

impl Machine {
    /// Of a copy that has not begun.
    pub fn new(config: Config) -> Self {
        Self {
            inner: Mutex::new(Inner {
                receiver: CopyReceiver::new(config),
                is_stopped: false,
            }),
            began: Instant::now(),
            heard: Condvar::new(),
            said: Condvar::new(),
            less_said: Condvar::new(),
            work: Condvar::new(),
            less_work: Condvar::new(),
        }
    }

    /// Time of this copy.
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Asks the machine something and wakes those for whom it has something.
    pub fn with<R>(&self, ask: impl FnOnce(&mut Receiver) -> R) -> R {
        let mut inner = self.lock();
        let (had_messages, had_work) = (inner.receiver.has_messages(), inner.receiver.work_waiting());
        let answer = ask(&mut inner.receiver);
        let says = !had_messages && inner.receiver.has_messages();
        let work = inner.receiver.work_waiting().saturating_sub(had_work);
        drop(inner);
        if says {
            self.said.notify_all();
        }
        match work {
            0 => {}
            1 => self.work.notify_one(),
            _ => self.work.notify_all(),
        }
        answer
    }

    /// Asks the machine something, and what it has then is told by [`Self::tell`].
    pub fn quietly<R>(&self, ask: impl FnOnce(&mut Receiver) -> R) -> R {
        ask(&mut self.lock().receiver)
    }

    /// A piece of the catalogue was heard: wakes everybody for whom there may be something.
    pub fn tell(&self) {
        self.heard.notify_all();
        let inner = self.lock();
        let (says, works) = (inner.receiver.has_messages(), inner.receiver.work_waiting() > 0);
        drop(inner);
        if says {
            self.said.notify_all();
        }
        if works {
            self.work.notify_all();
        }
    }

    /// Asks until there is an answer, which comes with the catalogue at the latest.
    ///
    /// # Errors
    /// Those of `ask`, and of `stop`, which is asked often.
    pub fn wait_for<R>(
        &self,
        mut ask: impl FnMut(&Receiver) -> Result<Option<R>, Failure>,
        stop: impl Fn() -> Result<(), Failure>,
    ) -> Result<R, Failure> {
        let mut inner = self.lock();
        loop {
            if let Some(answer) = ask(&inner.receiver)? {
                return Ok(answer);
            }
            inner = self.heard.wait_timeout(inner, TICK).expect(POISONED).0;
            stop()?;
        }
    }

    /// Waits while too much is to be done already. Not for a thread that does it.
    pub fn wait_while(&self, is_full: impl Fn(&Receiver) -> bool) {
        let waits = |inner: &mut Inner| is_full(&inner.receiver) && !inner.is_stopped;
        drop(self.less_work.wait_while(self.lock(), waits).expect(POISONED));
    }

    /// Waits until at most `most` answers and messages wait: a sending end that does not listen is not to fill this memory.
    ///
    /// # Errors
    /// What `stop` says; it is asked often.
    pub fn wait_for_room(&self, most: usize, stop: impl Fn() -> Result<(), Failure>) -> Result<(), Failure> {
        let mut inner = self.lock();
        while inner.receiver.messages_waiting() > most {
            stop()?;
            inner = self.less_said.wait_timeout(inner, TICK).expect(POISONED).0;
        }
        Ok(())
    }

    /// The next thing to do; waits for it. `None` when it is over.
    pub fn next_action(&self) -> Option<Action<Arc<Entry>>> {
        let mut inner = self.lock();
        loop {
            if inner.is_stopped {
                return None;
            }
            if let Some(action) = inner.receiver.poll_action(self.now_ns()) {
                drop(inner);
                self.less_work.notify_all();
                return Some(action);
            }
            inner = self.work.wait_timeout(inner, TICK).expect(POISONED).0;
        }
    }

    /// Waits for a message for at most `time`; whether there is one.
    pub fn wait_for_message(&self, time: std::time::Duration) -> bool {
        let empty = |inner: &mut Inner| !inner.receiver.has_messages();
        let waited = self.said.wait_timeout_while(self.lock(), time, empty);
        waited.expect(POISONED).0.receiver.has_messages()
    }

    /// The next message, if there is one.
    pub fn next_message(&self) -> Option<Feedback> {
        self.lock().receiver.poll_message()
    }

    /// Messages were taken: wakes those who wait to say more.
    pub fn messages_taken(&self) {
        self.less_said.notify_all();
    }

    /// Nothing more is done, and nobody waits.
    pub fn stop(&self) {
        self.lock().is_stopped = true;
        self.heard.notify_all();
        self.work.notify_all();
        self.less_work.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect(POISONED)
    }
}

const POISONED: &str = "a thread of the copy panicked while it held the machine";
