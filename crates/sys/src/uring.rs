//! Reads and writes of files with several requests under way on one thread (io_uring).
//!
//! While a request is under way the kernel may touch its memory at any time, so the [`Ring`] owns memory and descriptor
//! of each request until the kernel is done with it, also when it is dropped or the thread panics.
//!
//! Start with [`Ring`].

use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd};

use io_uring::{IoUring, Probe, cqueue, opcode, squeue, types};

use crate::page_buffer::{PAGE_BYTES, PageBuffer};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the file into memory.
    Read,
    /// From memory into the file.
    Write,
}

/// One read or write, whole.
#[derive(Debug)]
pub struct Transfer<F> {
    /// Whose descriptor it goes through, opened past the page cache; held until the kernel is done.
    pub file: F,
    /// Which way.
    pub direction: Direction,
    /// Where in the file.
    pub offset: u64,
    /// The memory.
    pub memory: PageBuffer,
    /// Where in the memory.
    pub start: usize,
    /// How much; at most 1 GiB.
    pub bytes: usize,
}

struct Slot<F> {
    transfer: Transfer<F>,
    done: usize,
}

impl<F: AsFd> Slot<F> {
    /// What is still to be done of it.
    fn entry(&mut self) -> squeue::Entry {
        let transfer = &mut self.transfer;
        let fd = types::Fd(transfer.file.as_fd().as_raw_fd());
        let end = transfer.start + transfer.bytes;
        let left = &mut transfer.memory[transfer.start + self.done..end];
        let (pointer, bytes) = (left.as_mut_ptr(), left.len() as u32);
        let offset = transfer.offset + self.done as u64;
        match transfer.direction {
            Direction::Read => opcode::Read::new(fd, pointer, bytes).offset(offset).build(),
            Direction::Write => opcode::Write::new(fd, pointer, bytes).offset(offset).build(),
        }
    }

    /// Takes what the kernel said; the result of the whole once there is nothing more to do.
    fn advance(&mut self, result: i32) -> Option<io::Result<usize>> {
        let Ok(bytes) = usize::try_from(result) else {
            let error = io::Error::from_raw_os_error(-result);
            let passes = matches!(
                error.kind(),
                io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
            );
            return (!passes).then_some(Err(error));
        };
        self.done += bytes;
        let is_whole = self.done == self.transfer.bytes;
        match self.transfer.direction {
            // Past the page cache a file gives whole pages up to its end.
            Direction::Read if is_whole || bytes == 0 || self.done % PAGE_BYTES != 0 => Some(Ok(self.done)),
            Direction::Write if is_whole => Some(Ok(self.done)),
            Direction::Write if bytes == 0 => Some(Err(io::ErrorKind::WriteZero.into())),
            _ => None,
        }
    }
}

/// Requests of one thread; at most as many as it has room for.
pub struct Ring<F: AsFd> {
    // Both stay where they are when the kernel cannot be waited for.
    ring: ManuallyDrop<IoUring>,
    /// Never moves or grows while anything is under way: the kernel has pointers into the memory.
    slots: ManuallyDrop<Box<[Option<Slot<F>>]>>,
    under_way: usize,
}

impl<F: AsFd> fmt::Debug for Ring<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Ring");
        shown.field("depth", &self.slots.len());
        shown.field("under_way", &self.under_way).finish_non_exhaustive()
    }
}

impl<F: AsFd> Ring<F> {
    /// Room for `depth` requests.
    ///
    /// # Errors
    /// The kernel's, when it does not let this process have such a ring; `Unsupported` when it cannot read and write with it
    /// (before Linux 5.6).
    pub fn new(depth: u16) -> io::Result<Self> {
        let ring = IoUring::new(u32::from(depth.max(1)))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) || !probe.is_supported(opcode::Write::CODE) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let slots = (0..depth.max(1)).map(|_| None).collect();
        Ok(Self {
            ring: ManuallyDrop::new(ring),
            slots: ManuallyDrop::new(slots),
            under_way: 0,
        })
    }

    /// Requests under way.
    pub const fn under_way(&self) -> usize {
        self.under_way
    }

    /// Begins a request.
    ///
    /// # Panics
    /// When there is no room for one more, or its memory is shorter than it says.
    pub fn begin(&mut self, transfer: Transfer<F>) {
        let end = transfer.start.checked_add(transfer.bytes);
        let fits = end.is_some_and(|end| end <= transfer.memory.len()) && transfer.bytes <= 1 << 30;
        assert!(fits, "a request for more than its memory");
        let free = self.slots.iter().position(Option::is_none);
        let place = free.expect("more requests than the ring has room for");
        self.slots[place] = Some(Slot { transfer, done: 0 });
        self.under_way += 1;
        self.push(place);
        // What the kernel does not take now it takes when it is waited for; what stands in its way is said there.
        let _ = self.ring.submit();
    }

    /// Puts what is still to be done for the slot into the queue. There are as many places in it as slots, each in it once at most.
    fn push(&mut self, place: usize) {
        let slot = self.slots[place].as_mut();
        let entry = slot.expect("a slot in use").entry().user_data(place as u64);
        // SAFETY: the memory belongs to the slot's buffer, stays where it is when the buffer is moved, and neither it nor the file is touched, moved or dropped
        // until the kernel has said that the request is over (`next`, `drop`) or never again (`drop`).
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("as many places in the queue as slots");
    }

    /// Waits for the next request that is over and gives it back with the bytes moved: all, or for a read up to the end of the
    /// file. `None` when nothing is under way.
    ///
    /// # Panics
    /// When the kernel does not let itself be waited for, which nothing but a defect can cause.
    #[expect(clippy::should_implement_trait, reason = "it ends only for now")]
    pub fn next(&mut self) -> Option<(Transfer<F>, io::Result<usize>)> {
        while self.under_way > 0 {
            let Some(completed) = self.ring.completion().next() else {
                self.wait().expect("io_uring_enter");
                continue;
            };
            if let Some((place, result)) = self.settle(&completed) {
                let slot = self.slots[place].take().expect("a slot in use");
                self.under_way -= 1;
                return Some((slot.transfer, result));
            }
        }
        None
    }

    /// Takes note of what the kernel said; which slot is over and how, or what is left of it goes on.
    fn settle(&mut self, completed: &cqueue::Entry) -> Option<(usize, io::Result<usize>)> {
        let place = completed.user_data() as usize;
        let slot = self.slots[place].as_mut().expect("a slot in use");
        let result = slot.advance(completed.result());
        if result.is_none() {
            self.push(place);
        }
        result.map(|result| (place, result))
    }

    /// Hands over what is queued and waits until something is over.
    fn wait(&self) -> io::Result<()> {
        match self.ring.submit_and_wait(1) {
            // The last two: what is over has to be taken first, or memory is short for the moment.
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy
                ) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Waits until the kernel is done with all memory, whatever came of it.
    fn settle_all(&mut self) -> io::Result<()> {
        while self.under_way > 0 {
            let completed = self.ring.completion().next();
            let Some(completed) = completed else {
                self.wait()?;
                continue;
            };
            self.slots[completed.user_data() as usize] = None;
            self.under_way -= 1;
        }
        Ok(())
    }
}

impl<F: AsFd> Drop for Ring<F> {
    fn drop(&mut self) {
        // Memory that the kernel may still write to is lost rather than used again.
        if self.settle_all().is_ok() {
            // SAFETY: nothing is under way, and neither is used again: this is their one drop.
            unsafe {
                ManuallyDrop::drop(&mut self.slots);
                ManuallyDrop::drop(&mut self.ring);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    const PART: usize = 64 * 1024;

    fn transfer(file: &File, direction: Direction, offset: u64, bytes: usize) -> Transfer<File> {
        let mut memory = PageBuffer::new(bytes + PAGE_BYTES);
        memory.fill((offset / PART as u64) as u8);
        Transfer {
            file: file.try_clone().unwrap(),
            direction,
            offset,
            memory,
            start: PAGE_BYTES,
            bytes,
        }
    }

    /// A ring, or none where this machine forbids them, which the error has to say.
    fn ring(depth: u16) -> Option<Ring<File>> {
        match Ring::new(depth) {
            Ok(ring) => Some(ring),
            Err(error) => {
                let kinds = [io::ErrorKind::PermissionDenied, io::ErrorKind::Unsupported];
                assert!(kinds.contains(&error.kind()), "{error}");
                None
            }
        }
    }

    #[test]
    fn what_is_written_is_read_with_many_requests_under_way() {
        let file = tempfile::tempfile().unwrap();
        let Some(mut ring) = ring(8) else { return };
        assert!(ring.next().is_none());
        for direction in [Direction::Write, Direction::Read] {
            let (mut begun, mut over) = (0, 0);
            while over < 40 {
                while begun < 40 && ring.under_way() < 8 {
                    ring.begin(transfer(&file, direction, begun * PART as u64, PART));
                    begun += 1;
                }
                let (transfer, result) = ring.next().unwrap();
                assert_eq!(result.unwrap(), PART);
                let expected = (transfer.offset / PART as u64) as u8;
                assert!(transfer.memory[PAGE_BYTES..].iter().all(|byte| *byte == expected));
                over += 1;
            }
            assert_eq!((ring.under_way(), ring.next().is_none()), (0, true));
        }
        assert_eq!(file.metadata().unwrap().len(), 40 * PART as u64);
    }

    #[test]
    fn a_read_ends_with_the_file_and_an_error_is_given_back_with_its_memory() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; PART + 5]).unwrap();
        let Some(mut ring) = ring(2) else { return };
        ring.begin(transfer(&file, Direction::Read, PART as u64, PART));
        ring.begin(transfer(&file, Direction::Read, 4 * PART as u64, PART));
        let mut lengths = [0, 0].map(|_: i32| ring.next().unwrap().1.unwrap());
        lengths.sort_unstable();
        assert_eq!(lengths, [0, 5]);
        let read_only = File::open("/proc/self/exe").unwrap();
        ring.begin(transfer(&read_only, Direction::Write, 0, PART));
        let (back, result) = ring.next().unwrap();
        assert!(result.is_err());
        assert_eq!(back.memory.len(), PART + PAGE_BYTES);
    }

    #[test]
    fn a_ring_dropped_with_requests_under_way_waits_for_them() {
        let file = tempfile::tempfile().unwrap();
        let Some(mut ring) = ring(16) else { return };
        for part in 0..16 {
            ring.begin(transfer(&file, Direction::Write, part * PART as u64, PART));
        }
        drop(ring);
        assert_eq!(file.metadata().unwrap().len(), 16 * PART as u64);
    }

    #[test]
    #[should_panic(expected = "more than its memory")]
    fn a_request_for_more_than_its_memory_is_a_defect() {
        let file = tempfile::tempfile().unwrap();
        let mut ring = Ring::new(1).unwrap_or_else(|error| panic!("more than its memory: {error}"));
        let mut wrong = transfer(&file, Direction::Read, 0, PART);
        wrong.bytes += 1;
        ring.begin(wrong);
    }
}
