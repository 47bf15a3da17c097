//! Body of a fuzz target: no bytes on the streams make this end panic, hang or write outside its destination.

use std::sync::Arc;

use farline_spec::{CopySpec, Failure};

use super::ReceiveEnd;
use crate::frame::{FrameKind, Header};
use crate::message::{self, Catalogue, MESSAGE_FRAME_BYTES};
use crate::{Arrived, EndSetup, Frame, Gauges, Inlet, Outlet, Pulse, Root};

/// Frames that are there from the start, then the end.
struct Frames(std::vec::IntoIter<(FrameKind, Vec<u8>, u64)>);

impl Inlet for Frames {
    fn receive(&mut self, frame: &mut Frame) -> Result<Arrived, Failure> {
        let Some((kind, payload, offset)) = self.0.next() else {
            return Ok(Arrived::End);
        };
        let header = Header {
            offset,
            payload_bytes: payload.len() as u32,
            ..Header::of_messages(kind)
        };
        frame.expect(payload.len())?;
        frame.room()[..payload.len()].copy_from_slice(&payload);
        frame.set(&header);
        Ok(Arrived::Frame)
    }
}

/// A stream that takes everything.
struct Taken;

impl Outlet for Taken {
    fn send(&mut self, _frame: &mut Frame) -> Result<(), Failure> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// As [`play`], into a folder of this process's own that is empty again afterwards.
///
/// # Panics
/// When the receiving end does.
pub fn anywhere(data: &[u8]) {
    let folder = std::env::temp_dir().join(format!("farline-fuzz-{}", std::process::id()));
    // Without the folder nothing can be received, and nothing panics.
    let _ = std::fs::create_dir(&folder);
    play(&folder, data);
    let _ = std::fs::remove_dir_all(&folder);
}

/// Plays `data` to a receiving end whose destination is `destination`, nothing hashed so that content passes.
///
/// The bytes: pieces, each a kind (0 catalogue, 1 pack, else chunk), a length of two bytes, and so many bytes.
///
/// # Panics
/// When the receiving end does.
pub fn play(destination: &std::path::Path, data: &[u8]) {
    let (catalogue, chunks) = pieces(data);
    let spec = CopySpec {
        sources: vec!["src/".to_owned()],
        destination: destination.to_string_lossy().into_owned(),
        verify: farline_spec::Verify::None,
        hard_links: true,
        xattrs: true,
        ..CopySpec::default()
    };
    let started = ReceiveEnd::start(EndSetup {
        may_go_straight: false,
        is_vacant: false,
        is_own_request: true,
        spec,
        root: Root::own(),
        origin: String::new(),
        streams: 1,
        receipt: None,
        most_bytes: Some(1 << 20),
        gauges: Arc::new(Gauges::default()),
        pulse: Arc::new(Pulse::default()),
    });
    let Ok(end) = started else {
        return;
    };
    std::thread::scope(|scope| {
        // Whatever they come to: they come to an end.
        scope.spawn(|| end.catalogue(&mut Frames(catalogue.into_iter())).is_ok());
        scope.spawn(|| end.data(0, &mut Frames(chunks.into_iter())).is_ok());
        scope.spawn(|| end.feedback(&mut Taken).is_ok());
    });
    end.finish()
        .map_or_else(|failure| assert!(!failure.message.contains("defect")), drop);
}

type Piece = (FrameKind, Vec<u8>, u64);

fn pieces(mut data: &[u8]) -> (Vec<Piece>, Vec<Piece>) {
    let mut begin = Vec::new();
    let chunk_bytes = 64 * 1024;
    // A number is always written down.
    let _ = message::append(
        &mut begin,
        &Catalogue::Begin {
            chunk_bytes,
            top: None,
            asks_whole: false,
        },
    );
    let mut catalogue = vec![(FrameKind::Catalogue, begin, 0)];
    let mut chunks = Vec::new();
    while let [kind, low, high, rest @ ..] = data {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (piece, after) = rest.split_at(length);
        let piece = piece[..length.min(MESSAGE_FRAME_BYTES)].to_vec();
        match kind {
            0 => catalogue.push((FrameKind::Catalogue, piece, 0)),
            1 => chunks.push((FrameKind::Pack, piece, 0)),
            offset => chunks.push((FrameKind::Chunk, piece, u64::from(*offset - 2) * chunk_bytes)),
        }
        data = after;
    }
    (catalogue, chunks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Entry, EntryKind};
    use proptest::prelude::*;

    fn kinds() -> impl Strategy<Value = EntryKind> {
        prop_oneof![
            (0u64..200_000, any::<bool>()).prop_map(|(bytes, hashed)| EntryKind::File {
                bytes,
                hash: hashed.then_some([1; 32])
            }),
            Just(EntryKind::Folder),
            prop::collection::vec(any::<u8>(), 0..6).prop_map(|target| EntryKind::Link { target }),
            (0u64..9).prop_map(|to| EntryKind::HardLink { to }),
        ]
    }

    fn messages() -> impl Strategy<Value = Catalogue> {
        let names = prop::sample::select(vec!["a", "b", "a/b", "..", "a/../c", "/x", "a/a/a", ""]);
        let entry = (names, kinds(), any::<i64>()).prop_map(|(path, kind, mtime_ns)| {
            Catalogue::Entry(Entry {
                path: path.as_bytes().to_vec(),
                kind,
                mode: 0o7777,
                mtime_ns,
                ctime_ns: 0,
                xattrs: Vec::new(),
            })
        });
        let part = (0u64..6, 0u64..4, 0u64..200_000).prop_map(|(file, chunk, bytes)| Catalogue::Hole {
            file,
            offset: chunk << 16,
            bytes,
        });
        prop_oneof![
            8 => entry,
            2 => part,
            2 => (0u64..6).prop_map(|file| Catalogue::Settled { file, hash: None }),
            1 => (0u64..6, any::<bool>()).prop_map(|(file, again)| {
                Catalogue::Lost { file, reason: "x\n".to_owned(), again }
            }),
            1 => (0u64..6, any::<bool>()).prop_map(|(entries, whole)| Catalogue::End { entries, whole }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn any_catalogue_and_any_data_come_to_an_end_inside_the_destination(
            said in prop::collection::vec(messages(), 0..12),
            data in prop::collection::vec((1u8..6, 0u64..6, 0usize..70_000), 0..8),
            tail in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut bytes = Vec::new();
            let mut piece = |kind: u8, content: &[u8]| {
                bytes.push(kind);
                bytes.extend_from_slice(&(content.len() as u16).to_le_bytes());
                bytes.extend_from_slice(&content[..usize::from(content.len() as u16)]);
            };
            for said in &said {
                let mut payload = Vec::new();
                message::append(&mut payload, said).unwrap();
                piece(0, &payload);
            }
            for (kind, _, length) in data {
                piece(kind, &vec![7; length]);
            }
            piece(0, &tail);
            let place = tempfile::tempdir_in("/dev/shm").unwrap();
            play(&place.path().join("new"), &bytes);
            let names = crate::sink::tests::listing(place.path());
            prop_assert!(names.is_empty() || names == ["new"], "{:?}", names);
        }
    }
}
