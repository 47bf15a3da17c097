//! Memory that bytes are moved from and to.

use std::ops::{Deref, DerefMut};

/// Size of a page, to which buffers are aligned. What an allocator gives for a large buffer begins 16 bytes
/// into a page, and the kernel's copies then straddle every cache line.
pub const PAGE_BYTES: usize = 4096;

/// A buffer that begins at a page and whose pages exist before the run.
#[derive(Debug, Default)]
pub struct PageBuffer {
    storage: Box<[u8]>,
    start: usize,
    length: usize,
}

impl PageBuffer {
    /// A buffer of `length` bytes that have been written once.
    pub fn new(length: usize) -> Self {
        // Not zeros: those would be untouched pages until the run is under way.
        let storage = vec![0xa5; length + PAGE_BYTES].into_boxed_slice();
        let start = storage.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        Self {
            storage,
            start,
            length,
        }
    }
}

impl Deref for PageBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.length]
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.length]
    }
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
}
