//! Timers of protocols that are driven by the calls of their stream's thread, while that thread is elsewhere.
//!
//! A thread of a copy waits for files to send, or for room to put what came. Meanwhile such a protocol has to answer, to
//! repeat what was lost and to say that it is still there: a small thread beside it does that, from the moment the stream
//! is open.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use farline_spec::{Failure, Granted};
use farline_sys::thread;

use crate::{ByteStream, Probe, Received, StreamEnd, StreamReport};

/// How long a stream is left alone, at least; at most twice that.
const PAUSE: Duration = Duration::from_millis(10);

/// A stream whose protocol lives within calls: it needs one about a hundred times a second, or the other end takes it for
/// dead.
pub(crate) trait Tended: ByteStream {
    /// Does what time and the other end demand, without waiting: this end has nothing to send for a while, or no room for
    /// what comes. Gives whether there is more to do at once.
    ///
    /// # Errors
    /// The transport's own.
    fn tend(&mut self) -> Result<bool, Failure>;
}

/// A stream that is tended while nobody calls it.
pub(crate) struct KeptAlive {
    beside: Arc<Beside>,
    /// Nothing is ever sent on it: who tends ends when it goes away.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the stream's own thread and the one that tends it share.
struct Beside {
    /// Calls that wait for the stream or are at it: who tends leaves it to them. A mutex alone is not fair.
    wanted: AtomicUsize,
    /// Calls so far.
    calls: AtomicUsize,
    shared: Mutex<Shared>,
}

struct Shared {
    stream: Box<dyn Tended>,
    /// What tending failed with; the next call says it.
    trouble: Option<Failure>,
    /// It has ended, one way or another, and needs nobody.
    is_over: bool,
}

impl KeptAlive {
    /// `stream`, tended from now on.
    ///
    /// # Errors
    /// `System` when there can be no thread for it.
    pub(crate) fn wrap(stream: Box<dyn Tended>) -> Result<Box<dyn ByteStream>, Failure> {
        let beside = Arc::new(Beside {
            wanted: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            shared: Mutex::new(Shared {
                stream,
                trouble: None,
                is_over: false,
            }),
        });
        let (stop, stopped) = bounded(0);
        let other = Arc::clone(&beside);
        let session = tracing::Span::current();
        let thread = std::thread::Builder::new()
            .name("fl-tend".to_owned())
            .spawn(move || session.in_scope(|| keep_tending(&other, &stopped)))
            .map_err(|error| Failure::system("helper thread of a stream", &error))?;
        Ok(Box::new(Self {
            beside,
            stop: Some(stop),
            thread: Some(thread),
        }))
    }

    /// Does `call` unless tending has failed.
    fn call<T>(&self, call: impl FnOnce(&mut dyn Tended) -> Result<T, Failure>) -> Result<T, Failure> {
        self.beside.wanted.fetch_add(1, Ordering::AcqRel);
        self.beside.calls.fetch_add(1, Ordering::AcqRel);
        let mut shared = lock(&self.beside.shared);
        self.beside.wanted.fetch_sub(1, Ordering::AcqRel);
        if let Some(trouble) = &shared.trouble {
            return Err(trouble.clone());
        }
        let result = call(shared.stream.as_mut());
        shared.is_over |= result.is_err();
        result
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tends what nobody calls until it is over or `stopped`.
fn keep_tending(beside: &Beside, stopped: &Receiver<()>) {
    thread::set_finest_timer_slack();
    let (mut pause, mut calls) = (PAUSE, 0);
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        pause = PAUSE;
        // Its own thread is at it, waits to be, or was here a moment ago: what it takes itself goes to where it is
        // wanted, what is taken here is copied once more.
        let before = std::mem::replace(&mut calls, beside.calls.load(Ordering::Acquire));
        if beside.wanted.load(Ordering::Acquire) > 0 || calls != before {
            continue;
        }
        let Ok(mut shared) = beside.shared.try_lock() else {
            continue;
        };
        if shared.is_over {
            return;
        }
        match shared.stream.tend() {
            Ok(true) => pause = Duration::ZERO,
            Ok(false) => {}
            Err(failure) => {
                shared.trouble = Some(failure);
                return;
            }
        }
    }
}

impl ByteStream for KeptAlive {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        self.call(|stream| stream.send(bytes))
    }

    fn send_ahead(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        self.call(|stream| stream.send_ahead(bytes))
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Failure> {
        let received = self.call(|stream| stream.receive(into))?;
        if received == Received::End {
            lock(&self.beside.shared).is_over = true;
        }
        Ok(received)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.call(|stream| stream.flush())
    }
}

impl StreamEnd for KeptAlive {
    fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure> {
        let finished = self.call(|stream| stream.finish_sending(deadline));
        lock(&self.beside.shared).is_over = true;
        finished
    }

    fn probe(&self) -> Arc<dyn Probe> {
        lock(&self.beside.shared).stream.probe()
    }

    fn granted(&self) -> Granted {
        lock(&self.beside.shared).stream.granted()
    }

    fn report(&self) -> StreamReport {
        lock(&self.beside.shared).stream.report()
    }
}

impl Drop for KeptAlive {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the transport's has poisoned nothing that is used again.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counters;
    use farline_spec::FailureKind;

    /// Counts how often it is tended, and fails at the third time if it is to.
    struct Fake {
        tended: Sender<u32>,
        count: u32,
        fails: bool,
        /// Tending takes a while each time, and there is always more.
        slow: bool,
    }

    struct NoProbe;

    impl Probe for NoProbe {
        fn sample(&self) -> Counters {
            Counters::UNKNOWN
        }

        fn abort(&self) {}
    }

    impl Tended for Fake {
        fn tend(&mut self) -> Result<bool, Failure> {
            self.count += 1;
            let _ = self.tended.send(self.count);
            if self.slow {
                std::thread::sleep(Duration::from_millis(5));
                return Ok(true);
            }
            if self.fails && self.count == 3 {
                return Err(Failure::new(FailureKind::Timeout, "nobody there"));
            }
            Ok(self.count < 3)
        }
    }

    impl ByteStream for Fake {
        fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
            Ok(bytes.len())
        }

        fn receive(&mut self, _into: &mut [u8]) -> Result<Received, Failure> {
            Ok(Received::End)
        }
    }

    impl StreamEnd for Fake {
        fn finish_sending(&mut self, _deadline: Instant) -> Result<(), Failure> {
            Ok(())
        }

        fn probe(&self) -> Arc<dyn Probe> {
            Arc::new(NoProbe)
        }

        fn granted(&self) -> Granted {
            Granted::default()
        }
    }

    fn fake(fails: bool) -> (Box<dyn ByteStream>, Receiver<u32>) {
        let (tended, times) = crossbeam_channel::unbounded();
        let fake = Fake {
            tended,
            count: 0,
            fails,
            slow: false,
        };
        (KeptAlive::wrap(Box::new(fake)).unwrap(), times)
    }

    #[test]
    fn a_stream_is_tended_while_nobody_calls_it() {
        let (mut stream, times) = fake(false);
        for count in 1..=4 {
            assert_eq!(times.recv_timeout(Duration::from_secs(10)), Ok(count));
        }
        assert_eq!(stream.send(b"abc").unwrap(), 3);
        drop(stream);
        assert!(
            times.iter().count() < 1_000,
            "it ends with the stream, and its sender with it"
        );
    }

    #[test]
    fn one_that_was_called_a_moment_ago_is_left_to_its_thread() {
        let (mut stream, times) = fake(false);
        // A loaded machine may keep this thread from calling often; it does not do so every time.
        let is_left_alone = (0..50).any(|_| {
            stream.send(b"abc").unwrap();
            times.try_iter().for_each(drop);
            for _ in 0..50 {
                std::thread::sleep(PAUSE / 20);
                stream.send(b"abc").unwrap();
            }
            times.is_empty()
        });
        assert!(is_left_alone);
    }

    #[test]
    fn one_that_always_has_something_due_leaves_room_for_its_owner() {
        let (tended, times) = crossbeam_channel::unbounded();
        let fake = Fake {
            tended,
            count: 0,
            fails: false,
            slow: true,
        };
        let mut stream = KeptAlive::wrap(Box::new(fake)).unwrap();
        times.recv_timeout(Duration::from_secs(10)).unwrap();
        let began = Instant::now();
        for _ in 0..50 {
            stream.send(b"abc").unwrap();
        }
        // A turn of the other's before each call would be 50 of 5 ms, and a mutex alone lets it have several.
        assert!(
            began.elapsed() < Duration::from_millis(300),
            "{:?}",
            began.elapsed()
        );
    }

    #[test]
    fn what_tending_failed_with_is_said_by_the_next_call() {
        let (mut stream, times) = fake(true);
        // The sender of `times` goes when the stream does; three are all there will be.
        for count in 1..=3 {
            assert_eq!(times.recv_timeout(Duration::from_secs(10)), Ok(count));
        }
        assert_eq!(stream.send(b"abc").unwrap_err().kind, FailureKind::Timeout);
        assert_eq!(stream.flush().unwrap_err().kind, FailureKind::Timeout);
        assert!(times.try_recv().is_err());
    }

    #[test]
    fn one_that_has_ended_is_left_alone() {
        let (mut stream, times) = fake(false);
        stream
            .finish_sending(Instant::now() + Duration::from_secs(1))
            .unwrap();
        // It was not over before, and may have been tended.
        times.try_iter().for_each(drop);
        assert!(times.recv_timeout(5 * PAUSE).is_err());
    }
}
