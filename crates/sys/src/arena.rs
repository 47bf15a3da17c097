//! Memory for packets on their way: large segments, mapped and touched beforehand, filled back to back.
//!
//! The first touch of a page costs microseconds on a virtual machine, more than a whole packet does, and a long path
//! holds hundreds of megabytes. A segment is free again when the last of its frames is gone; the one freed last is
//! filled first, because its memory is the one most likely to be in a cache. One thread owns an arena and its frames.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;

use crate::mapping::Mapping;
use crate::tun::{MAX_READ_BYTES, Tun};

/// Bytes of a segment: some thirty of the largest packets.
pub const SEGMENT_BYTES: usize = 2 << 20;
/// Frames start on cache lines, so that two of them never share one.
const ALIGNMENT: usize = 64;

/// Where frames come from.
#[derive(Debug)]
pub struct Arena {
    pool: Rc<RefCell<Pool>>,
    current: Option<Rc<Segment>>,
    /// Bytes of the current segment that are given out.
    filled: usize,
}

/// How much memory an arena has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaUse {
    /// Mapped and touched.
    pub mapped_bytes: u64,
    /// Of these, in segments without any frame.
    pub free_bytes: u64,
    /// Segments that were mapped while packets were on their way, each a delay of about a millisecond.
    pub grown_segments: u64,
}

#[derive(Debug)]
struct Pool {
    free: Vec<Mapping>,
    mapped: usize,
    most: usize,
    grown: u64,
}

impl Arena {
    /// An arena with `prefault_bytes` mapped and touched now and `max_bytes` at most, both rounded up to whole
    /// segments. Touching takes about a second per gigabyte.
    ///
    /// # Errors
    /// `OutOfMemory` if the machine has not got that much, `InvalidInput` if `max_bytes` is less.
    pub fn new(prefault_bytes: u64, max_bytes: u64) -> io::Result<Self> {
        let (first, most) = (segments(prefault_bytes).max(1), segments(max_bytes));
        if first > most {
            let message = format!("arena: {prefault_bytes} bytes at first, but only {max_bytes} at most");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let free = (0..first)
            .map(|_| map_segment())
            .collect::<io::Result<Vec<_>>>()?;
        let pool = Pool {
            free,
            mapped: first,
            most,
            grown: 0,
        };
        Ok(Self {
            pool: Rc::new(RefCell::new(pool)),
            current: None,
            filled: 0,
        })
    }

    /// One packet of `tun`, header included; `None` if there is none now.
    ///
    /// # Errors
    /// `OutOfMemory` if frames hold all that the arena may have: the packet stays in the device, and
    /// [`Arena::discard`] takes it away. Otherwise the kernel's.
    pub fn read(&mut self, tun: &Tun) -> io::Result<Option<Frame>> {
        self.fill(|room| tun.read(room))
    }

    /// Takes one packet of `tun` without keeping it; gives whether there was one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn discard(&self, tun: &Tun) -> io::Result<bool> {
        // The device counts a packet as read however little of it the reader has room for.
        tun.read(&mut [0; crate::tun::HEADER_BYTES + 60])
            .map(|length| length.is_some())
    }

    /// A frame with a copy of `bytes`.
    ///
    /// # Errors
    /// `OutOfMemory` as [`Arena::read`]; `InvalidInput` for more than [`MAX_READ_BYTES`].
    pub fn copy(&mut self, bytes: &[u8]) -> io::Result<Frame> {
        if bytes.len() > MAX_READ_BYTES {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let frame = self.fill(|room| {
            room[..bytes.len()].copy_from_slice(bytes);
            Ok(Some(bytes.len()))
        })?;
        frame.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
    }

    /// Takes over memory that another thread made, as far as the arena may have it. It is used last.
    pub fn adopt(&mut self, spare: Spare) {
        let mut pool = self.pool.borrow_mut();
        let room = pool.most - pool.mapped;
        let taken = spare.mappings.into_iter().take(room);
        let before = pool.free.len();
        pool.free.splice(0..0, taken);
        pool.mapped += pool.free.len() - before;
    }

    /// How much memory there is.
    pub fn usage(&self) -> ArenaUse {
        let pool = self.pool.borrow();
        let bytes = |segments: usize| (segments * SEGMENT_BYTES) as u64;
        ArenaUse {
            mapped_bytes: bytes(pool.mapped),
            free_bytes: bytes(pool.free.len()),
            grown_segments: pool.grown,
        }
    }

    /// Lets `write` put one packet into fresh room; it gives the number of bytes it wrote, or `None` for no packet.
    fn fill(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<Frame>> {
        let start = self.room()?;
        let Some(segment) = &self.current else {
            return Ok(None);
        };
        // SAFETY: `room` left MAX_READ_BYTES behind `start` in the current segment. No frame covers them (each ends
        // at or before `filled`), and this arena, borrowed exclusively, is the only one to fill the segment.
        let room =
            unsafe { std::slice::from_raw_parts_mut(segment.memory.as_ptr().add(start), MAX_READ_BYTES) };
        let Some(length) = write(room)? else {
            return Ok(None);
        };
        assert!(length <= MAX_READ_BYTES, "more bytes were written than fit");
        self.filled = (start + length).next_multiple_of(ALIGNMENT);
        Ok(Some(Frame {
            segment: Rc::clone(segment),
            start: start as u32,
            length: length as u32,
        }))
    }

    /// Makes sure that the current segment has room for any packet; gives where that begins.
    fn room(&mut self) -> io::Result<usize> {
        if let Some(segment) = &self.current {
            if Rc::strong_count(segment) == 1 {
                self.filled = 0;
            }
            if self.filled + MAX_READ_BYTES <= SEGMENT_BYTES {
                return Ok(self.filled);
            }
        }
        let mapping = self.pool.borrow_mut().take()?;
        self.current = Some(Rc::new(Segment {
            memory: mapping.memory(),
            mapping: Some(mapping),
            pool: Rc::clone(&self.pool),
        }));
        self.filled = 0;
        Ok(0)
    }
}

fn segments(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(SEGMENT_BYTES as u64)).unwrap_or(usize::MAX)
}

impl Pool {
    fn take(&mut self) -> io::Result<Mapping> {
        if let Some(mapping) = self.free.pop() {
            return Ok(mapping);
        }
        if self.mapped == self.most {
            let bytes = self.most * SEGMENT_BYTES;
            let message = format!("arena: packets hold all of its {bytes} bytes");
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, message));
        }
        let mapping = map_segment()?;
        self.mapped += 1;
        self.grown += 1;
        Ok(mapping)
    }
}

/// Memory for an arena, mapped and touched by whichever thread has the time.
#[derive(Debug)]
pub struct Spare {
    mappings: Vec<Mapping>,
}

impl Spare {
    /// `bytes`, rounded up to whole segments, mapped and touched now.
    ///
    /// # Errors
    /// `OutOfMemory` if the machine has not got that much.
    pub fn new(bytes: u64) -> io::Result<Self> {
        let mappings = (0..segments(bytes)).map(|_| map_segment());
        Ok(Self {
            mappings: mappings.collect::<io::Result<_>>()?,
        })
    }
}

/// A mapping in use. Held by its frames, and by the arena while it is being filled.
#[derive(Debug)]
struct Segment {
    memory: NonNull<u8>,
    /// Taken out only when the segment goes.
    mapping: Option<Mapping>,
    pool: Rc<RefCell<Pool>>,
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.pool.borrow_mut().free.extend(self.mapping.take());
    }
}

/// Memory of one segment, all pages present.
fn map_segment() -> io::Result<Mapping> {
    Mapping::new(SEGMENT_BYTES, libc::MAP_POPULATE)
}

/// A packet in an arena. Clones share its bytes.
#[derive(Clone)]
pub struct Frame {
    segment: Rc<Segment>,
    start: u32,
    length: u32,
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let start = self.segment.memory.as_ptr();
        // SAFETY: `start + length` lies within the mapping, which `segment` keeps; its bytes were initialised by the
        // kernel, and nobody writes them as long as a frame that covers them exists: `Arena::fill` writes behind all
        // frames, and from the beginning again only when there are none.
        unsafe { std::slice::from_raw_parts(start.add(self.start as usize), self.length as usize) }
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Frame({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static LARGEST: [u8; MAX_READ_BYTES] = [7; MAX_READ_BYTES];

    fn arena(first: usize, most: usize) -> Arena {
        Arena::new((first * SEGMENT_BYTES) as u64, (most * SEGMENT_BYTES) as u64).unwrap()
    }

    #[test]
    fn frames_keep_their_bytes_whatever_comes_after() {
        let mut arena = arena(1, 4);
        let frames: Vec<_> = (0..=255u8)
            .map(|byte| arena.copy(&vec![byte; 1 + usize::from(byte) * 97]).unwrap())
            .collect();
        for (byte, frame) in (0..=255u8).zip(&frames) {
            assert_eq!(frame.len(), 1 + usize::from(byte) * 97);
            assert!(frame.iter().all(|&at| at == byte), "{byte}");
        }
    }

    #[test]
    fn room_comes_back_with_the_last_clone() {
        let mut arena = arena(1, 1);
        let held = arena.copy(b"held").unwrap();
        let clone = held.clone();
        drop(held);
        while let Ok(frame) = arena.copy(&LARGEST) {
            assert_eq!(frame[..], LARGEST);
        }
        let error = arena.copy(&LARGEST).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(&clone[..], b"held");
        drop(clone);
        arena.copy(&LARGEST).unwrap();
    }

    #[test]
    fn a_segment_without_frames_is_filled_from_its_start_again() {
        let mut arena = arena(1, 1);
        let first = arena.copy(b"x").unwrap().as_ptr();
        for _ in 0..1000 {
            assert_eq!(arena.copy(&LARGEST).unwrap().as_ptr(), first);
        }
        assert_eq!(arena.usage().grown_segments, 0);
    }

    #[test]
    fn growth_is_counted_and_has_its_limit() {
        let mut arena = arena(1, 3);
        let mut frames = Vec::new();
        while let Ok(frame) = arena.copy(&LARGEST) {
            frames.push(frame);
        }
        assert!(frames.len() >= 90, "{} frames in three segments", frames.len());
        let full = ArenaUse {
            mapped_bytes: 3 * SEGMENT_BYTES as u64,
            free_bytes: 0,
            grown_segments: 2,
        };
        assert_eq!(arena.usage(), full);
        frames.clear();
        assert_eq!(arena.usage().free_bytes, 2 * SEGMENT_BYTES as u64);
    }

    #[test]
    fn memory_made_elsewhere_is_used_before_the_arena_grows() {
        let mut arena = arena(1, 3);
        let spare = std::thread::spawn(|| Spare::new(5 * SEGMENT_BYTES as u64).unwrap());
        arena.adopt(spare.join().unwrap());
        assert_eq!(arena.usage().mapped_bytes, 3 * SEGMENT_BYTES as u64);
        let mut frames = Vec::new();
        while let Ok(frame) = arena.copy(&LARGEST) {
            frames.push(frame);
        }
        assert!(frames.len() >= 90, "{} frames in three segments", frames.len());
        assert_eq!(arena.usage().grown_segments, 0);
    }

    #[test]
    fn frames_outlive_their_arena() {
        let frame = arena(1, 1).copy(b"alone").unwrap();
        assert_eq!(&frame[..], b"alone");
    }

    #[test]
    fn nothing_read_takes_no_room() {
        let mut arena = arena(1, 1);
        for _ in 0..100 {
            assert!(arena.fill(|_| Ok(None)).unwrap().is_none());
        }
        assert_eq!(arena.filled, 0);
        assert!(arena.fill(|_| Err(io::Error::other("no"))).is_err());
    }

    #[test]
    fn less_at_most_than_at_first_is_refused() {
        assert_eq!(
            Arena::new(3 << 20, 1 << 20).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
    }
}
