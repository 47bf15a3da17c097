//! The three receivers of He et al. 2002, section 3: how packets that came get to where they belong.
//!
//! - **naive**: a burst goes into one buffer that stays in the cache; each packet is looked at, then moved to its place.
//! - **gather**: the kernel puts headers into one array and payloads straight into the places of the packets that are
//!   expected next; from the first wrong guess on, the rest of the burst is moved as in naive.
//! - **fake**: as naive, but nothing is ever moved.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use farline_proto::rbudp::wire::{Done, HEADER_BYTES, Header, MARK, decode_mark, packet_hash};
use farline_proto::rbudp::{Arrival, Receiver};
use farline_spec::{Failure, RbudpReceiver};
use farline_sys::datagram::{Batch, RECEIVE_BYTES, receive_batch_now, receive_scattered_now};

use super::memory::Slots;
use crate::preamble::is_preamble;
use farline_sys::page_buffer::PageBuffer;

/// No call brings more datagrams than this, however short they are.
const MOST_SEGMENTS: usize = 512;

/// Where packets belong.
pub(super) enum Store {
    /// Memory, a slot for each blast under way.
    Memory(Slots),
    /// A file, blast after blast.
    File(FileStore),
    /// Nowhere.
    Nothing,
}

/// Takes bursts from the kernel and puts their packets where they belong.
pub(super) struct Intake {
    token: u32,
    /// Payload of a packet.
    packet_bytes: usize,
    checksum: bool,
    is_gather: bool,
    store: Store,
    buffer: PageBuffer,
    /// Headers and places of what is received by prediction, and the packets it is expected to be.
    headers: Vec<u8>,
    spare: Vec<u8>,
    expected: Vec<u32>,
    dones: Vec<Done>,
    figures: Figures,
}

/// What is known of all that came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// Datagrams of this stream.
    pub(super) packets: u64,
    /// Datagrams of nobody's.
    pub(super) strays: u64,
    /// Packets whose payload was not what was sent.
    pub(super) corrupt: u64,
    /// Bursts in which a guess was wrong.
    pub(super) misguessed: u64,
}

impl Intake {
    pub(super) fn new(
        token: u32,
        packet_bytes: usize,
        checksum: bool,
        way: RbudpReceiver,
        store: Store,
    ) -> Self {
        let datagram_bytes = packet_bytes + HEADER_BYTES;
        // Whatever one call can bring has a place, be it a spare one.
        let segments = RECEIVE_BYTES.div_ceil(datagram_bytes).min(MOST_SEGMENTS);
        let is_gather = way == RbudpReceiver::Gather && matches!(store, Store::Memory(_));
        let spares = if is_gather { segments } else { 0 };
        Self {
            token,
            packet_bytes,
            checksum,
            is_gather,
            store,
            buffer: PageBuffer::new(RECEIVE_BYTES + datagram_bytes),
            headers: vec![0; spares * HEADER_BYTES],
            spare: vec![0; spares * packet_bytes],
            expected: Vec::with_capacity(spares),
            dones: Vec::new(),
            figures: Figures::default(),
        }
    }

    /// Takes one burst; gives the payload bytes in it that are new.
    ///
    /// # Errors
    /// The kernel's, `WouldBlock` if nothing is there; those of writing to the file.
    pub(super) fn take(
        &mut self,
        fd: BorrowedFd<'_>,
        machine: &mut Receiver,
        now_ns: u64,
    ) -> io::Result<usize> {
        if self.is_gather {
            return self.gather(fd, machine, now_ns);
        }
        let batch = receive_batch_now(fd, &mut self.buffer[..RECEIVE_BYTES])?;
        self.sort_buffer(batch.bytes, batch.segment_bytes, machine, now_ns)
    }

    /// Statements of the sender that came among the packets.
    pub(super) fn dones(&mut self) -> std::vec::Drain<'_, Done> {
        self.dones.drain(..)
    }

    pub(super) fn figures(&self) -> Figures {
        self.figures
    }

    pub(super) fn store(&mut self) -> &mut Store {
        &mut self.store
    }

    /// The blast that was delivered needs its place no longer.
    pub(super) fn release(&mut self, blast: u32) {
        if let Store::Memory(slots) = &mut self.store {
            slots.release(blast);
        }
    }

    /// Shows the payload of a blast that is whole; nothing where it is not in memory.
    pub(super) fn visit(&self, blast: u32, bytes: u64, visit: &mut dyn FnMut(&[u8])) {
        if matches!(self.store, Store::Memory(_)) {
            visit(self.peek(blast, bytes));
        }
    }

    /// The payload of a blast that is whole; empty where it is not in memory.
    pub(super) fn peek(&self, blast: u32, bytes: u64) -> &[u8] {
        match &self.store {
            Store::Memory(slots) => slots.peek(blast, usize::try_from(bytes).unwrap_or(usize::MAX)),
            Store::File(_) | Store::Nothing => &[],
        }
    }

    /// Looks at each datagram in the buffer and moves its payload.
    fn sort_buffer(
        &mut self,
        bytes: usize,
        segment_bytes: usize,
        machine: &mut Receiver,
        now_ns: u64,
    ) -> io::Result<usize> {
        let buffer = std::mem::take(&mut self.buffer);
        let datagrams = buffer[..bytes.min(buffer.len())].chunks(segment_bytes.max(1));
        let result = datagrams
            .map(|datagram| self.sort(datagram, machine, now_ns))
            .sum::<io::Result<usize>>();
        self.buffer = buffer;
        self.flush()?;
        result
    }

    fn sort(&mut self, datagram: &[u8], machine: &mut Receiver, now_ns: u64) -> io::Result<usize> {
        let header = Header::read(datagram).filter(|header| header.token == self.token);
        let Some(header) = header else {
            // The opener's hello, once more, is nobody's fault.
            self.figures.strays += u64::from(!is_preamble(datagram));
            return Ok(0);
        };
        if header.packet == MARK {
            self.dones.extend(decode_mark(datagram));
            return Ok(0);
        }
        let payload = &datagram[HEADER_BYTES..];
        self.figures.packets += 1;
        if machine.look(header.blast, header.packet, payload.len()) != Arrival::Fresh {
            machine.note(now_ns, header.blast, header.packet, payload.len(), 0);
            return Ok(0);
        }
        let hash = self.put(header, payload)?;
        Ok(self.settle(header, payload.len(), hash, machine, now_ns))
    }

    /// Moves a packet to its place; gives the hash of what is there now.
    fn put(&mut self, header: Header, payload: &[u8]) -> io::Result<u64> {
        let (blast, packet) = (header.blast, header.packet);
        let at = packet as usize * self.packet_bytes;
        let placed: &[u8] = match &mut self.store {
            Store::Memory(slots) => {
                // The machine has looked: the packet lies within the slot.
                let place = &mut slots.of(blast)[at..at + payload.len()];
                place.copy_from_slice(payload);
                place
            }
            Store::File(file) => {
                file.put(blast, at as u64, payload)
                    .map_err(|error| file.named(&error))?;
                payload
            }
            Store::Nothing => payload,
        };
        Ok(if self.checksum {
            packet_hash(blast, packet, placed)
        } else {
            0
        })
    }

    /// Notes a packet that is in place, unless it is not what was sent.
    fn settle(
        &mut self,
        header: Header,
        bytes: usize,
        hash: u64,
        machine: &mut Receiver,
        now_ns: u64,
    ) -> usize {
        // The low half of the hash is in the header.
        if self.checksum && hash as u32 != header.check {
            self.figures.corrupt += 1;
            return 0;
        }
        match machine.note(now_ns, header.blast, header.packet, bytes, hash) {
            Arrival::Fresh => bytes,
            Arrival::Duplicate | Arrival::Foreign => 0,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.store {
            Store::File(file) => file.flush().map_err(|error| file.named(&error)),
            Store::Memory(_) | Store::Nothing => Ok(()),
        }
    }

    /// Receives a burst straight into the places of the packets that are expected.
    fn gather(&mut self, fd: BorrowedFd<'_>, machine: &mut Receiver, now_ns: u64) -> io::Result<usize> {
        let most = self.headers.len() / HEADER_BYTES;
        let blast = machine.expected(most, &mut self.expected);
        if self.expected.is_empty() {
            // Nothing of a full size is to come: no place is taken for a guess.
            let batch = receive_batch_now(fd, &mut self.buffer[..RECEIVE_BYTES])?;
            return self.sort_buffer(batch.bytes, batch.segment_bytes, machine, now_ns);
        }
        let batch = self.receive_into_places(fd, blast)?;
        let full = self.packet_bytes + HEADER_BYTES;
        if batch.segment_bytes != full && batch.bytes > batch.segment_bytes.min(full) {
            // Datagrams of another size: none of them is where it was expected.
            self.line_up(blast, 0, batch.bytes);
            return self.sort_buffer(batch.bytes, batch.segment_bytes, machine, now_ns);
        }
        let mut fresh = 0;
        for index in 0..batch.bytes.div_ceil(full) {
            let bytes = full.min(batch.bytes - index * full);
            match self.as_guessed(index, blast, bytes, machine, now_ns) {
                Some(taken) => fresh += taken,
                None => {
                    let rest = batch.bytes - index * full;
                    self.line_up(blast, index, rest);
                    self.figures.misguessed += 1;
                    return Ok(fresh + self.sort_buffer(rest, full, machine, now_ns)?);
                }
            }
        }
        Ok(fresh)
    }

    /// Accounts for datagram `index` of a burst if it is the one that was expected there.
    fn as_guessed(
        &mut self,
        index: usize,
        blast: u32,
        bytes: usize,
        machine: &mut Receiver,
        now_ns: u64,
    ) -> Option<usize> {
        let payload_bytes = bytes.checked_sub(HEADER_BYTES)?;
        let header = Header::read(&self.headers[index * HEADER_BYTES..])?;
        let expected = *self.expected.get(index)?;
        if header.token != self.token || header.blast != blast || header.packet != expected {
            return None;
        }
        if machine.look(blast, expected, payload_bytes) != Arrival::Fresh {
            return None;
        }
        self.figures.packets += 1;
        let at = expected as usize * self.packet_bytes;
        let hash = match &mut self.store {
            Store::Memory(slots) if self.checksum => {
                packet_hash(blast, expected, &slots.of(blast)[at..at + payload_bytes])
            }
            _ => 0,
        };
        Some(self.settle(header, payload_bytes, hash, machine, now_ns))
    }

    fn receive_into_places(&mut self, fd: BorrowedFd<'_>, blast: u32) -> io::Result<Batch> {
        let mut pieces = Vec::with_capacity(self.headers.len() / HEADER_BYTES * 2);
        let Store::Memory(slots) = &mut self.store else {
            return Err(io::Error::other("receiving by prediction works only into memory"));
        };
        let mut headers = self.headers.chunks_exact_mut(HEADER_BYTES);
        let (mut rest, mut rest_at) = (slots.of(blast), 0);
        for &packet in &self.expected {
            let at = packet as usize * self.packet_bytes;
            let (_, behind) = rest.split_at_mut(at - rest_at);
            let (place, behind) = behind.split_at_mut(self.packet_bytes);
            (rest, rest_at) = (behind, at + self.packet_bytes);
            pieces.extend(headers.next().map(IoSliceMut::new));
            pieces.push(IoSliceMut::new(place));
        }
        for (header, place) in headers.zip(self.spare.chunks_exact_mut(self.packet_bytes)) {
            pieces.push(IoSliceMut::new(header));
            pieces.push(IoSliceMut::new(place));
        }
        receive_scattered_now(fd, &mut pieces)
    }

    /// Copies `bytes` of a burst, from its datagram `first` on, out of the places they were received into and into the buffer.
    /// All of them before any is moved: one's right place may be where another one lies.
    fn line_up(&mut self, blast: u32, first: usize, bytes: usize) {
        let full = self.packet_bytes + HEADER_BYTES;
        let Store::Memory(slots) = &mut self.store else {
            return;
        };
        let slot = slots.of(blast);
        let mut spares = self.spare.chunks_exact(self.packet_bytes);
        let headers = self.headers.chunks_exact(HEADER_BYTES).enumerate();
        let landed = headers.map(|(index, header)| {
            let place = match self.expected.get(index) {
                Some(&packet) => {
                    let at = packet as usize * self.packet_bytes;
                    &slot[at..at + self.packet_bytes]
                }
                None => spares.next().unwrap_or_default(),
            };
            (header, place)
        });
        let room = self.buffer[..bytes.div_ceil(full) * full].chunks_exact_mut(full);
        for (datagram, (header, place)) in room.zip(landed.skip(first)) {
            datagram[..HEADER_BYTES].copy_from_slice(header);
            datagram[HEADER_BYTES..].copy_from_slice(place);
        }
    }
}

/// A file that is written under another name until it is whole.
#[derive(Debug)]
pub(super) struct FileStore {
    file: File,
    name: PathBuf,
    partial: PathBuf,
    payload_bytes: u64,
    /// Packets that follow each other and go to the kernel in one call.
    run: Vec<u8>,
    run_at: u64,
    is_finished: bool,
}

impl FileStore {
    /// Makes the partial file beside `name`, for blasts of `payload_bytes`.
    ///
    /// # Errors
    /// `Spec` when it cannot be made.
    pub(super) fn create(name: &str, payload_bytes: u64) -> Result<Self, Failure> {
        let name = PathBuf::from(name);
        let mut partial = name.clone().into_os_string();
        partial.push(".farline-partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial)
            .map_err(|error| Failure::option("rbudp.file", format!("{}: {error}", partial.display())))?;
        Ok(Self {
            file,
            name,
            partial,
            payload_bytes,
            run: Vec::with_capacity(RECEIVE_BYTES),
            run_at: 0,
            is_finished: false,
        })
    }

    fn put(&mut self, blast: u32, at: u64, payload: &[u8]) -> io::Result<()> {
        let at = u64::from(blast) * self.payload_bytes + at;
        if at != self.run_at + self.run.len() as u64 {
            self.flush()?;
            self.run_at = at;
        }
        self.run.extend_from_slice(payload);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.run, self.run_at)?;
        self.run_at += self.run.len() as u64;
        self.run.clear();
        Ok(())
    }

    /// Everything is there: syncs the file and gives it its name.
    ///
    /// # Errors
    /// `System`, with the name of the file.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        let named = |error: io::Error| Failure::system(&format!("writing {}", self.name.display()), &error);
        self.file.sync_all().map_err(named)?;
        std::fs::rename(&self.partial, &self.name).map_err(named)?;
        let folder = self.name.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| std::path::Path::new("."));
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(named)?;
        self.is_finished = true;
        Ok(())
    }

    /// An error with the name of the file.
    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("writing {}: {error}", self.name.display()))
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        if !self.is_finished {
            // What is not whole is of no use to anybody, and nothing more can be done about an error here.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}
