//! Memory in the place of files: what copying costs without a disk.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use farline_sys::page_buffer::PageBuffer;

/// Memory that all files share; more than any cache holds.
const PART_BYTES: usize = 1 << 20;
const PARTS: usize = 64;

/// 64 MiB that stand for every place of every file, over and over.
#[derive(Debug)]
pub(super) struct Memory {
    /// Each behind its own lock, so that threads that write seldom meet.
    parts: Vec<Mutex<PageBuffer>>,
}

impl Memory {
    /// The one of this process, made when it is first wanted and gone with its last user.
    pub(super) fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Memory>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let made = Arc::new(Self::new());
            *shared = Arc::downgrade(&made);
            made
        })
    }

    fn new() -> Self {
        let part = |number: usize| {
            let mut part = PageBuffer::new(PART_BYTES);
            // No two parts alike and none all zeros, which other programs could take for holes.
            for (word, place) in part.chunks_exact_mut(8).zip(0_u64..) {
                let value = (place + ((number as u64) << 32) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                word.copy_from_slice(&value.to_le_bytes());
            }
            Mutex::new(part)
        };
        Self {
            parts: (0..PARTS).map(part).collect(),
        }
    }

    /// Copies what stands for the file's bytes at `offset`.
    pub(super) fn read(&self, into: &mut [u8], offset: u64) {
        let mut done = 0;
        while done < into.len() {
            let (part, start) = self.place(offset + done as u64);
            let part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = (PART_BYTES - start).min(into.len() - done);
            into[done..done + bytes].copy_from_slice(&part[start..start + bytes]);
            done += bytes;
        }
    }

    /// Copies `from` to what stands for the file's bytes at `offset`.
    pub(super) fn write(&self, from: &[u8], offset: u64) {
        let mut done = 0;
        while done < from.len() {
            let (part, start) = self.place(offset + done as u64);
            let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = (PART_BYTES - start).min(from.len() - done);
            part[start..start + bytes].copy_from_slice(&from[done..done + bytes]);
            done += bytes;
        }
    }

    fn place(&self, offset: u64) -> (&Mutex<PageBuffer>, usize) {
        let all = (PARTS * PART_BYTES) as u64;
        let within = (offset % all) as usize;
        (&self.parts[within / PART_BYTES], within % PART_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_across_parts_and_around_the_end() {
        let memory = Memory::new();
        let written: Vec<u8> = (0..3 * PART_BYTES).map(|at| (at % 253) as u8).collect();
        let offset = ((PARTS - 1) * PART_BYTES + 17) as u64;
        memory.write(&written, offset);
        let mut read = vec![0; written.len()];
        memory.read(&mut read, offset);
        assert!(read == written);
    }

    #[test]
    fn all_have_the_same_memory_while_somebody_has_it() {
        let one = Memory::shared();
        assert!(Arc::ptr_eq(&one, &Memory::shared()));
    }
}
