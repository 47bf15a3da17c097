//! Memory that bytes are moved from and to.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::mapping::Mapping;

/// Size of a page, to which buffers are aligned. What an allocator gives for a large buffer begins 16 bytes
/// into a page, and the kernel's copies then straddle every cache line.
pub const PAGE_BYTES: usize = 4096;
/// Size of a large page: memory that lies together in the machine, not only in the process.
const LARGE_PAGE_BYTES: usize = 2 << 20;
/// What a new buffer holds. Not zeros: those would be untouched pages until the run is under way.
const FILLING: u8 = 0xa5;

/// A buffer that begins at a page and whose pages exist before the run.
#[derive(Debug, Default)]
pub struct PageBuffer {
    storage: Storage,
    start: usize,
    length: usize,
}

#[derive(Debug)]
enum Storage {
    Own(Box<[u8]>),
    /// What [`PageBuffers`] gave to nobody else: `start` and `length` lie within.
    Part(Arc<Mapping>),
}

impl Default for Storage {
    fn default() -> Self {
        Self::Own(Box::default())
    }
}

impl PageBuffer {
    /// A buffer of `length` bytes that have been written once.
    pub fn new(length: usize) -> Self {
        let storage = vec![FILLING; length + PAGE_BYTES].into_boxed_slice();
        let start = storage.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        Self {
            storage: Storage::Own(storage),
            start,
            length,
        }
    }
}

impl Deref for PageBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.storage {
            Storage::Own(own) => &own[self.start..self.start + self.length],
            // SAFETY: the part lies within the mapping, which lives as long as this, and was written when it was given
            // out, to this buffer alone; whoever writes it borrows the buffer exclusively.
            Storage::Part(mapping) => unsafe {
                std::slice::from_raw_parts(mapping.memory().as_ptr().add(self.start), self.length)
            },
        }
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.storage {
            Storage::Own(own) => &mut own[self.start..self.start + self.length],
            // SAFETY: as above, and this borrow is exclusive.
            Storage::Part(mapping) => unsafe {
                std::slice::from_raw_parts_mut(mapping.memory().as_ptr().add(self.start), self.length)
            },
        }
    }
}

/// Buffers of one size side by side, in large pages where the kernel has them: a device takes a mebibyte of such memory as
/// one request, of scattered pages as two and more.
#[derive(Debug)]
pub struct PageBuffers {
    /// The memory of all, and where the first begins; none where so much address space is not to be had: then each buffer lies
    /// alone.
    mapping: Option<(Arc<Mapping>, usize)>,
    most: usize,
    /// How many may be taken now.
    allowed: AtomicUsize,
    length: usize,
    given: AtomicUsize,
}

impl PageBuffers {
    /// At most `most` buffers of `length` bytes. Memory is taken when they are.
    pub fn new(most: usize, length: usize) -> Self {
        let each = length.next_multiple_of(PAGE_BYTES);
        Self {
            mapping: each.checked_mul(most).and_then(map_large_pages),
            most,
            allowed: AtomicUsize::new(most),
            length,
            given: AtomicUsize::new(0),
        }
    }

    /// As [`Self::new`], of which at first only `allowed` may be taken.
    pub fn with_room(most: usize, allowed: usize, length: usize) -> Self {
        let buffers = Self::new(most.max(allowed), length);
        buffers.allowed.store(allowed, Ordering::Relaxed);
        buffers
    }

    /// How many may be taken now, those that were taken with them.
    pub fn allowed(&self) -> usize {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Lets `more` be taken besides, as far as there is room for them.
    pub fn allow(&self, more: usize) {
        let grown = |allowed: usize| Some(allowed.saturating_add(more).min(self.most));
        // The closure always gives a value.
        let _ = self
            .allowed
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown);
    }

    /// The next buffer, its bytes written once; `None` after the last. None is ever given twice.
    pub fn take(&self) -> Option<PageBuffer> {
        let allowed = self.allowed();
        let next = |given: usize| (given < allowed).then_some(given + 1);
        let given = self
            .given
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let number = given.ok()?;
        let Some((mapping, first)) = &self.mapping else {
            return Some(PageBuffer::new(self.length));
        };
        let start = first + number * self.length.next_multiple_of(PAGE_BYTES);
        // SAFETY: the mapping has room for `most` buffers, and no other take was given this number.
        unsafe {
            mapping
                .memory()
                .as_ptr()
                .add(start)
                .write_bytes(FILLING, self.length)
        };
        Some(PageBuffer {
            storage: Storage::Part(Arc::clone(mapping)),
            start,
            length: self.length,
        })
    }

    /// Whether there is another one.
    pub fn has_more(&self) -> bool {
        self.given.load(Ordering::Relaxed) < self.allowed()
    }
}

/// Memory with room for `bytes` bytes from a large page on, and where that is in it.
fn map_large_pages(bytes: usize) -> Option<(Arc<Mapping>, usize)> {
    let mapping = Mapping::new(bytes.checked_add(LARGE_PAGE_BYTES)?, libc::MAP_NORESERVE).ok()?;
    let first = mapping
        .memory()
        .align_offset(LARGE_PAGE_BYTES)
        .min(LARGE_PAGE_BYTES);
    if bytes >= LARGE_PAGE_BYTES {
        // SAFETY: a large page more was mapped than is used, so all of it lies within; only advice, about memory of our own.
        unsafe {
            let memory = mapping.memory().as_ptr().add(first);
            libc::madvise(memory.cast(), bytes, libc::MADV_HUGEPAGE)
        };
    }
    Some((Arc::new(mapping), first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_begins_at_a_page_and_has_its_length() {
        for length in [0, 1, 4096, 131_072] {
            let mut buffer = PageBuffer::new(length);
            assert_eq!(buffer.len(), length);
            assert_eq!(buffer.as_ptr() as usize % PAGE_BYTES, 0);
            buffer.fill(1);
        }
    }

    #[test]
    fn buffers_side_by_side_are_apart_and_outlive_what_gave_them() {
        for length in [1, 4097, 1 << 20] {
            let buffers = PageBuffers::new(5, length);
            let taken: Vec<PageBuffer> = std::iter::from_fn(|| buffers.take()).collect();
            assert_eq!((taken.len(), buffers.has_more()), (5, false));
            drop(buffers);
            let filled = taken.into_iter().zip(0u8..).map(|(mut buffer, number)| {
                assert!(buffer.iter().all(|&byte| byte == FILLING));
                assert_eq!(buffer.as_ptr() as usize % PAGE_BYTES, 0);
                buffer.fill(number);
                buffer
            });
            for (buffer, number) in filled.collect::<Vec<_>>().iter().zip(0u8..) {
                assert_eq!(buffer.len(), length);
                assert!(buffer.iter().all(|&byte| byte == number));
            }
        }
    }

    #[test]
    fn buffers_for_which_there_is_no_room_side_by_side_lie_alone() {
        let buffers = PageBuffers::new(usize::MAX / PAGE_BYTES, PAGE_BYTES);
        assert!(buffers.mapping.is_none());
        assert_eq!(buffers.take().map(|buffer| buffer.len()), Some(PAGE_BYTES));
    }
}
