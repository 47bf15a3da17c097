//! Where the payload of a sender comes from: memory, over and over, a file, or somebody who gives it piece by piece.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use farline_proto::rbudp::Burst;
use farline_spec::{Failure, RunSpec};

use super::options::options_of;
use super::outbox::Outbox;
use crate::payload::{MAX_PAYLOAD_BYTES, payload};
use farline_sys::page_buffer::PageBuffer;

/// A payload that can be read at any place, as often as it takes.
#[derive(Debug)]
pub(super) enum Source {
    /// The payload of the seed and the stream, of the length of a block, over and over.
    Memory(PageBuffer),
    /// A file and its length.
    File(File, u64),
    /// What was given and is not known to have arrived.
    Given(Outbox),
}

impl Source {
    /// The source that `spec` asks for at the client; the server's is always memory.
    ///
    /// # Errors
    /// `Spec` when the file cannot be read or is shorter than what is to be sent.
    pub(super) fn new(spec: &RunSpec, stream: u16, is_client: bool) -> Result<Self, Failure> {
        if spec.copy.is_some() {
            let bytes = options_of(spec).payload_bytes.get();
            return Ok(Self::Given(Outbox::new(
                usize::try_from(bytes).unwrap_or(usize::MAX),
            )));
        }
        let file = spec.rbudp.as_ref().and_then(|rbudp| rbudp.file.as_deref());
        if let Some(path) = file.filter(|_| is_client) {
            return open(Path::new(path), spec.total_bytes.map(|total| total.get()));
        }
        let block = spec
            .block_bytes
            .map_or(MAX_PAYLOAD_BYTES as u64, |block| block.get());
        let length = usize::try_from(block)
            .unwrap_or(usize::MAX)
            .min(MAX_PAYLOAD_BYTES);
        let mut pages = PageBuffer::new(length);
        pages.copy_from_slice(&payload(spec.seed, stream, length));
        Ok(Self::Memory(pages))
    }

    /// Bytes there are in all; without limit but for a file.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Memory(_) | Self::Given(_) => u64::MAX,
            Self::File(_, length) => *length,
        }
    }

    /// Fills `place` with the payload of `packet` of the blast that `burst` is of.
    ///
    /// # Errors
    /// The kernel's; `UnexpectedEof` for a file that has become shorter, or a blast that is no longer here.
    pub(super) fn fill(&self, burst: &Burst, packet: u32, place: &mut [u8]) -> io::Result<()> {
        let within = u64::from(packet) * burst.packet_bytes as u64;
        match self {
            Self::Memory(payload) => repeat(payload, burst.offset + within, place),
            Self::File(file, _) => file.read_exact_at(place, burst.offset + within)?,
            Self::Given(outbox) => {
                let within = usize::try_from(within).unwrap_or(usize::MAX);
                if !outbox.fill(burst.blast, within, place) {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        Ok(())
    }

    /// Takes `bytes` that belong to blast `number`.
    pub(super) fn put(&mut self, number: u32, bytes: &[u8]) {
        if let Self::Given(outbox) = self {
            outbox.put(number, bytes);
        }
    }

    /// The oldest blast under way has arrived.
    pub(super) fn release_oldest(&mut self) {
        if let Self::Given(outbox) = self {
            outbox.release_oldest();
        }
    }
}

fn repeat(payload: &[u8], offset: u64, place: &mut [u8]) {
    // A remainder fits where the divisor does.
    let mut at = (offset % payload.len() as u64) as usize;
    let mut filled = 0;
    while filled < place.len() {
        let piece = (payload.len() - at).min(place.len() - filled);
        place[filled..filled + piece].copy_from_slice(&payload[at..at + piece]);
        filled += piece;
        at = 0;
    }
}

fn open(path: &Path, total: Option<u64>) -> Result<Source, Failure> {
    let failed = |error: io::Error| Failure::option("rbudp.file", format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    if !facts.is_file() {
        return Err(Failure::option(
            "rbudp.file",
            format!("{}: is not a regular file", path.display()),
        ));
    }
    let length = facts.len();
    if length == 0 || total.is_some_and(|total| total > length) {
        let wanted = total.unwrap_or(1);
        let reason = format!(
            "{}: has {length} bytes, but {wanted} are to be sent",
            path.display()
        );
        return Err(Failure::option("rbudp.file", reason));
    }
    Ok(Source::File(file, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::from_json;
    use std::io::Write;

    fn at(offset: u64) -> Burst {
        Burst {
            offset,
            ..Burst::default()
        }
    }

    #[test]
    fn memory_repeats_its_payload_at_any_place() {
        let spec = from_json::<RunSpec>(r#"{"block_bytes":1000}"#).unwrap();
        let source = Source::new(&spec, 3, true).unwrap();
        let whole = payload(0, 3, 1000);
        let mut place = [0; 1500];
        source.fill(&at(5_000_000_700), 0, &mut place).unwrap();
        assert_eq!(place[..300], whole[700..]);
        assert_eq!(place[300..1300], whole[..]);
    }

    #[test]
    fn a_file_is_read_by_the_client_alone_and_must_be_long_enough() {
        let path = std::env::temp_dir().join(format!("farline-rbudp-source-{}", std::process::id()));
        File::create(&path).unwrap().write_all(b"0123456789").unwrap();
        let name = path.to_str().unwrap();
        let spec = |total: u64| {
            let text = format!(r#"{{"total_bytes":{total},"rbudp":{{"file":{name:?}}}}}"#);
            from_json::<RunSpec>(&text).unwrap()
        };
        let source = Source::new(&spec(10), 0, true).unwrap();
        let mut place = [0; 4];
        source.fill(&at(6), 0, &mut place).unwrap();
        assert_eq!((&place, source.length()), (b"6789", 10));
        assert_eq!(
            source.fill(&at(7), 0, &mut place).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        let refusal = Source::new(&spec(11), 0, true).unwrap_err();
        assert!(
            refusal.message.contains("has 10 bytes, but 11 are to be sent"),
            "{refusal}"
        );
        assert_eq!(Source::new(&spec(11), 0, false).unwrap().length(), u64::MAX);
        std::fs::remove_file(&path).unwrap();
    }
}
