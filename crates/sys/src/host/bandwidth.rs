//! How fast memory is copied: the bound that every copy of payload comes up against.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::system::memory_bytes;

/// Most threads that [`memory_copy_bps`] takes.
pub const MAX_THREADS: usize = 256;
/// Longest measurement that [`memory_copy_bps`] makes.
pub const MAX_SECONDS: f64 = 60.0;

/// Each of the two buffers of a thread: several times the last-level cache of a core complex.
const BUFFER_BYTES: usize = 128 << 20;
/// All buffers together take at most this part of the memory.
const MEMORY_SHARE: u64 = 8;
/// What is copied between two looks at the clock: long enough that the look costs nothing.
const STRIDE_BYTES: usize = 4 << 20;

/// Bits copied per second, from large buffers to large buffers, by `threads` threads for `seconds`.
///
/// All pages are touched before the clock starts. Reading and writing count once: a copied
/// byte is one byte here, as it is for whoever moves payload.
///
/// # Errors
/// `InvalidInput` unless 1 ≤ `threads` ≤ [`MAX_THREADS`] and 0 < `seconds` ≤ [`MAX_SECONDS`];
/// `OutOfMemory` when the buffers cannot be had; the kernel's when a thread cannot be made.
pub fn memory_copy_bps(threads: usize, seconds: f64) -> io::Result<u64> {
    let seconds_fit = seconds > 0.0 && seconds <= MAX_SECONDS;
    if !seconds_fit || !(1..=MAX_THREADS).contains(&threads) {
        let message = format!("allowed: 1 to {MAX_THREADS} threads and up to {MAX_SECONDS} s");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let length = buffer_bytes(threads)?;
    let pairs: Vec<_> = (0..threads)
        .map(|_| Pair::new(length))
        .collect::<io::Result<_>>()?;
    let start = StartLine {
        may_go: RwLock::new(false),
        ready: AtomicUsize::new(0),
    };
    let duration = Duration::from_secs_f64(seconds);
    std::thread::scope(|scope| {
        let mut may_go = start.may_go.write().unwrap_or_else(PoisonError::into_inner);
        let copier = |pair: Pair| {
            let start = &start;
            std::thread::Builder::new().spawn_scoped(scope, move || pair.copy_for(duration, start))
        };
        let copiers: Vec<_> = pairs.into_iter().map(copier).collect::<io::Result<_>>()?;
        while start.ready.load(Ordering::Acquire) < threads {
            std::thread::sleep(Duration::from_millis(1));
        }
        *may_go = true;
        drop(may_go);
        Ok(copiers
            .into_iter()
            .map(|copier| copier.join().unwrap_or(0.0))
            .sum::<f64>() as u64)
    })
}

/// Where the threads wait for each other, and go home if one of them cannot be made.
struct StartLine {
    may_go: RwLock<bool>,
    ready: AtomicUsize,
}

impl StartLine {
    fn wait(&self) -> bool {
        self.ready.fetch_add(1, Ordering::Release);
        *self.may_go.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn buffer_bytes(threads: usize) -> io::Result<usize> {
    let share = memory_bytes() / MEMORY_SHARE / (2 * threads as u64);
    let length = usize::try_from(share).unwrap_or(usize::MAX).min(BUFFER_BYTES);
    if length < STRIDE_BYTES {
        return Err(io::Error::from(io::ErrorKind::OutOfMemory));
    }
    Ok(length / STRIDE_BYTES * STRIDE_BYTES)
}

/// What one thread copies from and to.
struct Pair {
    length: usize,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Pair {
    /// Addresses only: the pages come with the first touch, on the node of the thread that touches them.
    fn new(length: usize) -> io::Result<Self> {
        let reserve = || {
            let mut bytes = Vec::new();
            bytes
                .try_reserve_exact(length)
                .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            Ok::<_, io::Error>(bytes)
        };
        Ok(Self {
            length,
            from: reserve()?,
            to: reserve()?,
        })
    }

    /// Bits per second of one thread.
    fn copy_for(mut self, duration: Duration, start: &StartLine) -> f64 {
        // Any value but zero: pages of zeros could be one and the same page.
        self.from.resize(self.length, 0x5a);
        self.to.resize(self.length, 0xa5);
        if !start.wait() {
            return 0.0;
        }
        let began = Instant::now();
        let mut copied = 0u64;
        for at in (0..self.length).step_by(STRIDE_BYTES).cycle() {
            let stride = at..at + STRIDE_BYTES;
            self.to[stride.clone()].copy_from_slice(&self.from[stride]);
            black_box(&mut self.to);
            copied += STRIDE_BYTES as u64;
            if began.elapsed() >= duration {
                break;
            }
        }
        copied as f64 * 8.0 / began.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_faster_than_a_gigabit_and_slower_than_light() {
        let rate_bps = memory_copy_bps(1, 0.05).unwrap();
        assert!(
            (1_000_000_000..10_000_000_000_000).contains(&rate_bps),
            "{rate_bps}"
        );
    }

    #[test]
    fn nonsense_is_refused_with_what_is_allowed() {
        for (threads, seconds) in [(0, 1.0), (257, 1.0), (1, 0.0), (1, 61.0), (1, f64::NAN)] {
            let error = memory_copy_bps(threads, seconds).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(error.to_string().contains("1 to 256 threads"));
        }
    }
}
