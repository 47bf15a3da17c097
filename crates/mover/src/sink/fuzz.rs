//! Body of a fuzz target: no bytes on the streams make this end panic, hang or write outside its destination.

use std::path::Path;
use std::sync::Arc;

use farline_spec::{CopySpec, Failure};

use super::ReceiveEnd;
use crate::frame::{FrameKind, Header};
use crate::message::{self, Catalogue, Entry, EntryKind, GRAIN_BYTES, MESSAGE_FRAME_BYTES};
use crate::pack::{ITEM_HEADER_BYTES, write_item_header};
use crate::{ActivityMonitor, Arrived, EndSetup, Frame, Gauges, Inlet, Outlet, Root};

/// Frames that are there from the start, then the end.
struct Frames(std::vec::IntoIter<Piece>);

impl Inlet for Frames {
    fn receive(&mut self, frame: &mut Frame) -> Result<Arrived, Failure> {
        let Some(Piece { header, payload }) = self.0.next() else {
            return Ok(Arrived::End);
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

/// As [`play`], into a folder of this process's own that is empty again afterwards; in memory where there is such a place,
/// since what waits for a disk finds nothing.
///
/// # Panics
/// When the receiving end does.
pub fn anywhere(data: &[u8]) {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    let folder = parent.join(format!("farline-fuzz-{}", std::process::id()));
    // Without the folder nothing can be received, and nothing panics.
    let _ = std::fs::create_dir(&folder);
    play(&folder, data);
    let _ = std::fs::remove_dir_all(&folder);
}

/// Plays `data` to a receiving end whose destination is `destination`, nothing hashed so that content passes.
///
/// The bytes are pieces. Catalogue and pack: kind 0 or 1, a length of two bytes, and so many bytes. Chunk: 2 and the file's
/// number, where it begins in steps of [`GRAIN_BYTES`], its length less one in two bytes, the byte that fills it.
///
/// # Panics
/// When the receiving end does.
pub fn play(destination: &Path, data: &[u8]) {
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
        counts_updates: true,
        heals_frames: true,
        takes_names_apart: true,
        takes_top_xattrs: true,
        sum: None,
        expands_patterns: false,
        spec,
        root: Root::own(),
        origin: String::new(),
        streams: 1,
        most_streams: 1,
        receipt: None,
        most_bytes: Some(1 << 20),
        gauges: Arc::new(Gauges::default()),
        pulse: Arc::new(ActivityMonitor::default()),
    });
    let Ok(end) = started else {
        return;
    };
    std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| end.catalogue(&mut Frames(catalogue.into_iter())).is_ok()),
            scope.spawn(|| end.data(0, &mut Frames(chunks.into_iter())).is_ok()),
            scope.spawn(|| end.feedback(&mut Taken).is_ok()),
        ];
        // Whatever they come to: they come to an end. The scope alone does not wait for what a thread gives back as it exits.
        for thread in threads {
            assert!(thread.join().is_ok(), "no thread panics");
        }
    });
    end.finish()
        .map_or_else(|failure| assert!(!failure.message.contains("defect")), drop);
}

/// A frame as it comes from a stream: what it is of, and its payload.
struct Piece {
    header: Header,
    payload: Vec<u8>,
}

impl Piece {
    fn messages(kind: FrameKind, payload: &[u8]) -> Self {
        let payload = payload[..payload.len().min(MESSAGE_FRAME_BYTES)].to_vec();
        let header = Header {
            payload_bytes: payload.len() as u32,
            ..Header::of_messages(kind)
        };
        Self { header, payload }
    }

    fn chunk(file: u8, grain: u8, length: u16, fill: u8) -> Self {
        let payload = vec![fill; usize::from(length) + 1];
        let header = Header {
            file: file.into(),
            offset: u64::from(grain) * GRAIN_BYTES,
            payload_bytes: payload.len() as u32,
            ..Header::of_messages(FrameKind::Chunk)
        };
        Self { header, payload }
    }
}

fn pieces(mut data: &[u8]) -> (Vec<Piece>, Vec<Piece>) {
    let begin = Catalogue::Begin {
        chunk_bytes: GRAIN_BYTES,
        top: None,
        asks_whole: false,
    };
    let mut payload = Vec::new();
    // A number is always written down.
    let _ = message::append(&mut payload, &begin);
    let mut catalogue = vec![Piece::messages(FrameKind::Catalogue, &payload)];
    let mut chunks = Vec::new();
    loop {
        data = match data {
            [kind @ 0..=1, low, high, rest @ ..] => {
                let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
                let (payload, after) = rest.split_at(length);
                match kind {
                    0 => catalogue.push(Piece::messages(FrameKind::Catalogue, payload)),
                    _ => chunks.push(Piece::messages(FrameKind::Pack, payload)),
                }
                after
            }
            [kind, grain, low, high, fill, after @ ..] => {
                let length = u16::from_le_bytes([*low, *high]);
                // Kinds 0 and 1 that came so far are cut off.
                chunks.push(Piece::chunk(kind.saturating_sub(2), *grain, length, *fill));
                after
            }
            _ => return (catalogue, chunks),
        };
    }
}

/// Copies that go well, as [`play`] takes them, each with a name: where a fuzzer begins.
///
/// # Panics
/// Never: what is written down here can be.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let small = || [entry("a", file(3)), pack(0, b"abc")].concat();
    let chunks = || {
        let two = [chunk(0, 0, 65_536), chunk(0, 1, 34_464)].concat();
        [entry("b", file(100_000)), two, settled(0), end(1)].concat()
    };
    let holes = || {
        let parts = [(0u64, 65_536u64), (65_536, 34_464)];
        let holes = parts.map(|(offset, bytes)| {
            said(&Catalogue::Hole {
                file: 0,
                offset,
                bytes,
            })
        });
        [entry("b", file(100_000)), holes.concat(), settled(0), end(1)].concat()
    };
    let names = || {
        let link = EntryKind::Link {
            target: b"a".to_vec(),
        };
        [
            entry("d", EntryKind::Folder),
            entry("d/a", file(3)),
            entry("d/l", link),
            entry("d/h", EntryKind::HardLink { to: 1 }),
            pack(1, b"abc"),
            end(4),
        ]
        .concat()
    };
    let again = || {
        let lost = Catalogue::Lost {
            file: 0,
            reason: "changed".to_owned(),
            again: true,
        };
        [
            entry("a", file(3)),
            said(&lost),
            entry("a", file(2)),
            pack(1, b"de"),
            end(2),
        ]
        .concat()
    };
    vec![
        ("small", [small(), end(1)].concat()),
        ("empty", [entry("e", file(0)), end(1)].concat()),
        ("chunks", chunks()),
        ("holes", holes()),
        ("names", names()),
        ("again", again()),
    ]
}

fn piece(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a piece is written down in two bytes");
    [&[kind][..], &length.to_le_bytes(), content].concat()
}

fn said(message: &Catalogue) -> Vec<u8> {
    let mut payload = Vec::new();
    message::append(&mut payload, message).expect("a message can be written down");
    piece(0, &payload)
}

fn entry(path: &str, kind: EntryKind) -> Vec<u8> {
    said(&Catalogue::Entry(Entry {
        path: path.as_bytes().to_vec(),
        kind,
        mode: 0o640,
        mtime_ns: 1_600_000_000_000_000_000,
        ctime_ns: 0,
        xattrs: Vec::new(),
    }))
}

const fn file(bytes: u64) -> EntryKind {
    EntryKind::File { bytes, hash: None }
}

fn settled(file: u64) -> Vec<u8> {
    said(&Catalogue::Settled { file, hash: None })
}

fn end(entries: u64) -> Vec<u8> {
    said(&Catalogue::End { entries, whole: true })
}

fn pack(file: u64, content: &[u8]) -> Vec<u8> {
    let mut item = vec![0; ITEM_HEADER_BYTES];
    write_item_header(&mut item, file, content.len() as u32, None);
    item.extend_from_slice(content);
    piece(1, &item)
}

fn chunk(file: u8, grain: u8, bytes: u32) -> Vec<u8> {
    let [low, high] = u16::try_from(bytes - 1)
        .expect("no longer than a grain")
        .to_le_bytes();
    vec![2 + file, grain, low, high, 7]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds() -> impl Strategy<Value = EntryKind> {
        prop_oneof![
            (0u64..200_000, any::<bool>()).prop_map(|(bytes, hashed)| EntryKind::File {
                bytes,
                hash: hashed.then_some(crate::Sum::from_bytes([1; 32]))
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

    #[test]
    fn every_seed_is_a_copy_that_goes_well() {
        let contents: [(&str, &[&str]); 6] = [
            ("small", &["a"]),
            ("empty", &["e"]),
            ("chunks", &["b"]),
            ("holes", &["b"]),
            ("names", &["d/a", "d/h", "d/l"]),
            ("again", &["a"]),
        ];
        for ((seed, bytes), (name, files)) in seeds().iter().zip(contents) {
            assert_eq!(*seed, name);
            let place = tempfile::tempdir_in("/dev/shm").unwrap();
            play(&place.path().join("new"), bytes);
            for file in files {
                assert!(place.path().join("new").join(file).is_file(), "{seed}: {file}");
            }
            assert!(!place.path().join("new/.farline-partial").exists(), "{seed}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn any_catalogue_and_any_data_come_to_an_end_inside_the_destination(
            said in prop::collection::vec(messages(), 0..12),
            data in prop::collection::vec((1u8..6, 0u8..6, 0u32..70_000), 0..8),
            tail in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut bytes: Vec<u8> = said.iter().flat_map(super::said).collect();
            for (kind, grain, length) in data {
                match kind {
                    1 => bytes.extend(piece(1, &vec![7; length.min(65_535) as usize])),
                    _ => bytes.extend(chunk(kind - 2, grain, length.clamp(1, 65_536))),
                }
            }
            bytes.extend(piece(0, &tail));
            let place = tempfile::tempdir_in("/dev/shm").unwrap();
            play(&place.path().join("new"), &bytes);
            let names = crate::sink::tests::listing(place.path());
            prop_assert!(names.is_empty() || names == ["new"], "{:?}", names);
        }
    }
}
