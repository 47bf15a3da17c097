//! A capture's file, as the control thread holds it.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crossbeam_channel::{Receiver, Sender, bounded};
use farline_spec::{Failure, FailureKind, kernel_words};

use crate::packet::pcap;

/// Bytes of records that are handed over at once.
pub const CHUNK_BYTES: usize = 256 * 1024;
/// Chunks of one capture between the engine and the disk.
const CHUNKS: usize = 64;

/// Records from the engine, ready to be written.
pub struct Chunk {
    /// Number of the link.
    pub link: usize,
    /// Records in the file's format.
    pub bytes: Vec<u8>,
    /// How many packets these are.
    pub packets: u64,
}

/// What became of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptureEnd {
    /// Packets in the file.
    pub written_packets: u64,
    /// Packets for which there was no room in memory or on the disk.
    pub missed_packets: u64,
    /// Why the disk took no more, if it did.
    pub error: Option<String>,
}

/// An open capture file.
pub struct Capture {
    file: File,
    path: PathBuf,
    end: CaptureEnd,
    spare: Sender<Vec<u8>>,
}

impl Capture {
    /// A new file with its header, and the empty buffers that the engine is to fill.
    ///
    /// # Errors
    /// "system" when the file cannot be made.
    pub fn create(path: &Path, snap_bytes: u32) -> Result<(Self, Receiver<Vec<u8>>), Failure> {
        let refused = |error| Failure::system(&format!("capture file {}", path.display()), &error);
        let mut file = File::create(path).map_err(refused)?;
        file.write_all(&pcap::file_header(snap_bytes)).map_err(refused)?;
        let (spare, empty) = bounded(CHUNKS);
        for _ in 0..CHUNKS {
            spare.send(Vec::with_capacity(CHUNK_BYTES)).map_err(|_| {
                Failure::new(
                    FailureKind::Internal,
                    "capture: not enough memory for its buffers",
                )
            })?;
        }
        let capture = Self {
            file,
            path: path.to_owned(),
            end: CaptureEnd::default(),
            spare,
        };
        Ok((capture, empty))
    }

    /// Appends records, and gives the buffer back to the engine. After an error nothing more is written: what
    /// is in the file stays readable.
    pub fn write(&mut self, mut chunk: Chunk) {
        if self.end.error.is_none() {
            if let Err(error) = self.file.write_all(&chunk.bytes) {
                self.end.error = Some(format!("{}: {}", self.path.display(), kernel_words(&error)));
            }
        }
        match self.end.error {
            None => self.end.written_packets += chunk.packets,
            Some(_) => self.end.missed_packets += chunk.packets,
        }
        chunk.bytes.clear();
        // The engine may have ended the capture, and with it dropped the other end.
        let _ = self.spare.send(chunk.bytes);
    }

    /// Closes the file.
    pub fn finish(self) -> CaptureEnd {
        self.end
    }
}
