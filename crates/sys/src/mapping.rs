//! Anonymous memory that is mapped and unmapped by itself, beside the allocator's.

use std::io;
use std::ptr::NonNull;

/// Memory that nothing else refers to; unmapped with this.
#[derive(Debug)]
pub(crate) struct Mapping {
    memory: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is memory that nothing else refers to; which thread holds it makes no difference.
unsafe impl Send for Mapping {}
// SAFETY: it gives its address and nothing else; whoever uses that answers for who reads and writes where.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `bytes` bytes to be read and written, all zeros. `flags`: what is asked for besides (`MAP_POPULATE`, `MAP_NORESERVE`).
    ///
    /// # Errors
    /// The kernel's: no such room, or none at all.
    pub(crate) fn new(bytes: usize, flags: libc::c_int) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: asks for fresh memory wherever the kernel likes; touches none of ours.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory =
            NonNull::new(memory.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { memory, bytes })
    }

    /// Where it begins: at a page.
    pub(crate) const fn memory(&self) -> NonNull<u8> {
        self.memory
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: address and length are those of the mapping made in `new`; whoever refers to it holds this, so nobody does any
        // more. It cannot fail for a whole mapping.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}
