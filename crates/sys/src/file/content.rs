//! Bytes of files: reading and writing, lengths, holes, the page cache, the device, locks.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::fs::{Advice, FallocateFlags, FlockOperation, MemfdFlags, SeekFrom};
use rustix::io::Errno;

use super::again;
use crate::call::check;
use crate::page_buffer::PAGE_BYTES;

/// A file in memory without a name (memfd_create), close-on-exec, to read and write.
///
/// # Errors
/// The kernel's.
pub fn in_memory() -> io::Result<OwnedFd> {
    again(|| rustix::fs::memfd_create("farline", MemfdFlags::CLOEXEC))
}

/// Reads at `offset` into `into`, all of it unless the file ends before; gives how much.
///
/// # Errors
/// The kernel's.
pub fn read_at(file: BorrowedFd<'_>, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match read_once_at(file, &mut into[done..], offset + done as u64)? {
            0 => break,
            bytes => done += bytes,
        }
    }
    Ok(done)
}

/// Reads at `offset` with one call, which may give less than there is.
///
/// # Errors
/// The kernel's.
pub fn read_once_at(file: BorrowedFd<'_>, into: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match rustix::io::pread(file, &mut *into, offset) {
            Err(Errno::INTR) => {}
            result => return result.map_err(io::Error::from),
        }
    }
}

/// Writes all of `from` at `offset`.
///
/// # Errors
/// The kernel's; `WriteZero` for a file system that takes nothing and says nothing.
pub fn write_all_at(file: BorrowedFd<'_>, from: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < from.len() {
        match again(|| rustix::io::pwrite(file, &from[done..], offset + done as u64))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            bytes => done += bytes,
        }
    }
    Ok(())
}

/// Makes the file `bytes` long; what is added reads as zeros.
///
/// # Errors
/// The kernel's.
pub fn set_length(file: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    again(|| rustix::fs::ftruncate(file, bytes))
}

/// Reserves room on the device for `bytes` bytes from `offset` on; the length stays as it is.
///
/// # Errors
/// The kernel's: `StorageFull` where there is not as much room, `Unsupported` where the file system cannot.
pub fn allocate(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    again(|| rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, offset, bytes))
}

/// Makes a hole: the bytes read as zeros and take no room; the length stays as it is.
///
/// # Errors
/// The kernel's: `Unsupported` where the file system cannot.
pub fn punch(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);
    if bytes == 0 {
        return Ok(());
    }
    again(|| rustix::fs::fallocate(file, flags, offset, bytes))
}

/// Where the next data are, from `offset` on; `None` when there is only a hole up to the end. Moves the descriptor's position.
///
/// # Errors
/// The kernel's.
pub fn data_after(file: BorrowedFd<'_>, offset: u64) -> io::Result<Option<u64>> {
    match again(|| rustix::fs::seek(file, SeekFrom::Data(offset))) {
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => Ok(None),
        result => result.map(Some),
    }
}

/// Where the next hole is, from `offset` on; at the latest the end of the file. Moves the descriptor's position.
///
/// # Errors
/// The kernel's; `ENXIO` for an offset behind the end.
pub fn hole_after(file: BorrowedFd<'_>, offset: u64) -> io::Result<u64> {
    again(|| rustix::fs::seek(file, SeekFrom::Hole(offset)))
}

/// Content, and what it takes to find it again, is on the device (fdatasync).
///
/// # Errors
/// The kernel's; after one of them what was written may be lost.
pub fn sync_data(file: BorrowedFd<'_>) -> io::Result<()> {
    again(|| rustix::fs::fdatasync(file))
}

/// All of a file is on the device; of a folder its names (fsync).
///
/// # Errors
/// As [`sync_data`].
pub fn sync_file(file: BorrowedFd<'_>) -> io::Result<()> {
    again(|| rustix::fs::fsync(file))
}

/// Everything written to the file system that `file` is on is on its device (syncfs).
///
/// # Errors
/// As [`sync_data`].
pub fn sync_file_system(file: BorrowedFd<'_>) -> io::Result<()> {
    again(|| rustix::fs::syncfs(file))
}

/// What closing the file would say, where somebody hears it: many file systems of a network or a user take what was written when
/// a file is closed, and tell no sooner that they could not.
///
/// # Errors
/// The kernel's.
pub fn flush(file: BorrowedFd<'_>) -> io::Result<()> {
    let copy = file.try_clone_to_owned()?.into_raw_fd();
    // SAFETY: the copy is nobody else's, and gone whatever the kernel says.
    let closed = check(unsafe { libc::close(copy) });
    match closed {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// Begins to bring what was written there to the device and does not wait until it is (sync_file_range). It promises
/// nothing: what is to be on the device is synced.
///
/// # Errors
/// The kernel's.
pub fn start_writeback(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<()> {
    let signed = |value: u64| i64::try_from(value).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    let (offset, bytes) = (signed(offset)?, signed(bytes)?);
    // SAFETY: takes integers and touches no memory of ours.
    let result =
        unsafe { libc::sync_file_range(file.as_raw_fd(), offset, bytes, libc::SYNC_FILE_RANGE_WRITE) };
    check(result).map(drop)
}

/// Drops what of the file is in the page cache and on the device already; 0 bytes: to the end.
///
/// # Errors
/// The kernel's.
pub fn forget(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<()> {
    advise(file, offset, bytes, Advice::DontNeed)
}

/// Begins to read what will be wanted soon; 0 bytes: to the end.
///
/// # Errors
/// The kernel's.
pub fn will_read(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<()> {
    advise(file, offset, bytes, Advice::WillNeed)
}

/// The file will be read from its begin to its end: the kernel reads further ahead.
///
/// # Errors
/// The kernel's.
pub fn sequential(file: BorrowedFd<'_>) -> io::Result<()> {
    advise(file, 0, 0, Advice::Sequential)
}

/// `struct cachestat_range` and `struct cachestat` of linux/mman.h.
#[repr(C)]
struct CacheRange {
    offset: u64,
    bytes: u64,
}

#[repr(C)]
#[derive(Default)]
struct CachePages {
    cached: u64,
    dirty: u64,
    under_writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Bytes of the file that are in the page cache, whole pages (cachestat, Linux 6.5).
///
/// # Errors
/// The kernel's: `ENOSYS` before 6.5; `EPERM` for files of others.
pub fn cached_bytes(file: BorrowedFd<'_>) -> io::Result<u64> {
    cached_pages(file, 0, 0)
}

/// As [`cached_bytes`] for a part of the file; before 6.5 by mincore(2), for files of this user alone: of those of others
/// that call says that everything is there.
///
/// # Errors
/// The kernel's; `EPERM` for files of others.
pub fn cached_bytes_in(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<u64> {
    if bytes == 0 {
        return Ok(0);
    }
    match cached_pages(file, offset, bytes) {
        Err(error) if error.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) => {
            resident_bytes(file, offset, bytes)
        }
        pages => pages.map(|found| found.min(bytes)),
    }
}

/// What of a part of a file is in memory, as mincore(2) tells of a mapping of it.
fn resident_bytes(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<u64> {
    let owner = super::stat_fd(file)?.user;
    if owner != rustix::process::geteuid().as_raw() {
        return Err(Errno::PERM.into());
    }
    let start = offset - offset % PAGE_BYTES as u64;
    let length = usize::try_from(offset + bytes - start).map_err(|_| io::ErrorKind::InvalidInput)?;
    let start = i64::try_from(start).map_err(|_| io::ErrorKind::InvalidInput)?;
    let none = std::ptr::null_mut();
    // SAFETY: asks for a fresh mapping that nothing reads or writes; the descriptor lives through the call.
    let memory = unsafe {
        libc::mmap(
            none,
            length,
            libc::PROT_NONE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            start,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let mut pages = vec![0_u8; length.div_ceil(PAGE_BYTES)];
    // SAFETY: the mapping is as long as is said, and there is a byte for each of its pages.
    let told = check(unsafe { libc::mincore(memory, length, pages.as_mut_ptr()) });
    // SAFETY: the mapping made above, whole; nothing refers to it.
    unsafe { libc::munmap(memory, length) };
    told?;
    let resident = pages.iter().filter(|page| **page & 1 == 1).count();
    Ok(bytes.min((resident * PAGE_BYTES) as u64))
}

fn cached_pages(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<u64> {
    /// Of asm-generic/unistd.h; one number on all architectures.
    const SYS_CACHESTAT: libc::c_long = 451;
    let range = CacheRange { offset, bytes };
    let mut pages = CachePages::default();
    // SAFETY: the kernel reads one range and writes one set of counts, both laid out as it has them.
    let result = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &range, &mut pages, 0) };
    check(result as libc::c_int)?;
    Ok(pages.cached.saturating_mul(PAGE_BYTES as u64))
}

fn advise(file: BorrowedFd<'_>, offset: u64, bytes: u64, advice: Advice) -> io::Result<()> {
    again(|| rustix::fs::fadvise(file, offset, NonZeroU64::new(bytes), advice))
}

/// Takes the lock of the file (flock); false while another open file has it. It goes with the last descriptor, however
/// the process ends.
///
/// # Errors
/// The kernel's.
pub fn lock_exclusive(file: BorrowedFd<'_>) -> io::Result<bool> {
    match again(|| rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        result => result.map(|()| true),
    }
}

/// Takes the lock of a file together with others who take it so; false while somebody has it alone.
///
/// # Errors
/// The kernel's.
pub fn lock_shared(file: BorrowedFd<'_>) -> io::Result<bool> {
    match again(|| rustix::fs::flock(file, FlockOperation::NonBlockingLockShared)) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        result => result.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn both_ways_to_ask_what_is_cached_say_the_same() {
        let file = tempfile::tempfile().unwrap();
        write_all_at(file.as_fd(), &[1; 300_000], 0).unwrap();
        for (offset, bytes) in [(0, 300_000), (8192, 100_000), (5000, 4000)] {
            let resident = resident_bytes(file.as_fd(), offset, bytes).unwrap();
            assert_eq!(resident, bytes);
            if let Ok(pages) = cached_pages(file.as_fd(), offset, bytes) {
                assert_eq!(pages.min(bytes), resident);
            }
        }
        sync_data(file.as_fd()).unwrap();
        forget(file.as_fd(), 0, 0).unwrap();
        if let Ok(pages) = cached_pages(file.as_fd(), 0, 300_000) {
            assert_eq!(
                pages.min(300_000),
                resident_bytes(file.as_fd(), 0, 300_000).unwrap()
            );
        }
    }

    #[test]
    fn a_file_of_somebody_else_is_not_said_to_be_cached() {
        if rustix::process::geteuid().is_root() {
            return;
        }
        let file = File::open("/etc/passwd").unwrap();
        assert!(resident_bytes(file.as_fd(), 0, 100).is_err());
    }
}
