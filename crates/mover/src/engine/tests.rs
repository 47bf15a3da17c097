//! What every engine has to keep to, and what sets them apart.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use farline_spec::FileEngine;
use proptest::prelude::*;

use super::*;
use crate::frame::{FrameKind, Header};

const CHUNK: usize = 64 * 1024;

/// This engine and no other.
fn only(engine: FileEngine) -> Choice {
    Choice {
        engine,
        threads: 0,
        is_auto: false,
    }
}

/// The engines that this machine has for files in `folder`.
fn engines(folder: &Path) -> Vec<FileEngine> {
    let device = device_of(File::open(folder).unwrap().as_fd()).unwrap();
    let real = [FileEngine::Buffered, FileEngine::Direct, FileEngine::Uring];
    let has = |engine: &FileEngine| choose(*engine, None, &device, 1).is_ok();
    real.into_iter().filter(has).collect()
}

fn request(file: &Arc<OpenFile>, offset: u64, bytes: usize, frame: Frame) -> Request {
    Request {
        file: Arc::clone(file),
        offset,
        bytes,
        frame,
        tag: offset,
    }
}

fn frame_of(content: &[u8]) -> Frame {
    let mut frame = Frame::new(content.len());
    frame.room()[..content.len()].copy_from_slice(content);
    frame.set(&Header {
        payload_bytes: content.len() as u32,
        ..Header::of_messages(FrameKind::Chunk)
    });
    frame
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 % 251) as u8).collect()
}

/// Writes `content` in chunks, as many under way as the engine takes, in an order that `order` names.
fn write(writer: &mut dyn Writer, file: OwnedFd, content: &[u8], order: u64) -> io::Result<()> {
    let file = writer.adopt(file)?;
    let mut offsets: Vec<usize> = (0..content.len()).step_by(CHUNK).collect();
    offsets.sort_by_key(|offset| (*offset as u64 / CHUNK as u64 + 1).wrapping_mul(order | 1));
    let mut under_way = 0;
    let settle = |over: Option<Completed>| {
        let over = over.expect("something under way");
        assert_eq!(over.result?, over.request.bytes);
        assert_eq!(over.request.frame.payload().len(), over.request.bytes);
        io::Result::Ok(())
    };
    for offset in offsets {
        if under_way == writer.depth() {
            settle(writer.complete())?;
            under_way -= 1;
        }
        let part = &content[offset..content.len().min(offset + CHUNK)];
        writer.submit(request(&file, offset as u64, part.len(), frame_of(part)));
        under_way += 1;
    }
    for _ in 0..under_way {
        settle(writer.complete())?;
    }
    assert!(writer.complete().is_none());
    Ok(())
}

/// Reads a file as `write` wrote it; every chunk asks for a whole one, so that the last goes over the end.
fn read(reader: &mut dyn Reader, file: OwnedFd, bytes: usize) -> io::Result<Vec<u8>> {
    let file = reader.adopt(file)?;
    let mut content = vec![0xee; bytes];
    let (mut offset, mut under_way) = (0, 0);
    while offset < bytes || under_way > 0 {
        while offset < bytes && under_way < reader.depth() {
            reader.submit(request(&file, offset as u64, CHUNK, Frame::new(CHUNK)));
            (offset, under_way) = (offset + CHUNK, under_way + 1);
        }
        let mut over = reader.complete().expect("something under way");
        let (start, done) = (over.request.tag as usize, over.result?);
        assert_eq!(done, CHUNK.min(bytes - start));
        content[start..start + done].copy_from_slice(&over.request.frame.room()[..done]);
        under_way -= 1;
    }
    assert!(reader.complete().is_none());
    Ok(content)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_one_engine_wrote_every_engine_reads_and_no_file_is_longer_than_it_should_be(
        bytes in prop_oneof![0..5000_usize, CHUNK - 1..CHUNK + 2, 0..30 * CHUNK],
        order in any::<u64>(),
        has_length in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let content = pattern(bytes);
        for engine in engines(folder.path()) {
            let path = folder.path().join(engine.word());
            let file = File::create(&path).unwrap();
            if has_length {
                file.set_len(bytes as u64).unwrap();
            }
            write(&mut *writer(only(engine)).unwrap(), file.into(), &content, order).unwrap();
            prop_assert_eq!(fs::metadata(&path).unwrap().len(), bytes as u64);
            for other in engines(folder.path()) {
                let file = File::open(&path).unwrap();
                let found = read(&mut *reader(only(other)).unwrap(), file.into(), bytes).unwrap();
                prop_assert!(found == content, "{:?} {:?}", engine, other);
            }
        }
    }
}

#[test]
fn an_engine_chosen_by_itself_reads_what_lies_in_the_page_cache_from_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, pattern(4 * CHUNK)).unwrap();
    for engine in engines(folder.path()) {
        let choice = |is_auto| Choice {
            engine,
            threads: 1,
            is_auto,
        };
        for is_auto in [true, false] {
            let file: OwnedFd = File::open(&path).unwrap().into();
            let is_cached = farline_sys::file::cached_bytes(file.as_fd()).unwrap_or(0) > 0;
            let mut reader = reader(choice(is_auto)).unwrap();
            let opened = reader.adopt(file.try_clone().unwrap()).unwrap();
            let past = engine != FileEngine::Buffered && !(is_auto && is_cached);
            assert_eq!(opened.direct_fd().is_some(), past, "{engine:?} {is_auto}");
            assert_eq!(read(&mut *reader, file, 4 * CHUNK).unwrap(), pattern(4 * CHUNK));
        }
    }
}

#[test]
fn where_the_page_cache_cannot_be_passed_only_who_asked_for_it_is_refused() {
    let flags = farline_sys::file::OpenFlags::READ;
    let proc = || farline_sys::file::open_at(None, b"/proc/self/status", flags, 0).unwrap();
    for engine in [FileEngine::Direct, FileEngine::Uring] {
        let choice = |is_auto| Choice {
            engine,
            threads: 1,
            is_auto,
        };
        let Ok(strict) = reader(choice(false)) else {
            assert_eq!(engine, FileEngine::Uring, "io_uring may be forbidden");
            continue;
        };
        let error = strict.adopt(proc()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert!(error.to_string().contains("buffered"));
        let mut mild = reader(choice(true)).unwrap();
        let file = mild.adopt(proc()).unwrap();
        mild.submit(request(&file, 0, CHUNK, Frame::new(CHUNK)));
        assert!(mild.complete().unwrap().result.unwrap() > 100);
    }
}

#[test]
fn a_pipe_in_the_place_of_a_file_does_not_hold_anybody_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let root = Root::beneath(folder.path()).unwrap();
    for engine in engines(folder.path()) {
        match reader(only(engine)).unwrap().open(&root, b"pipe", false) {
            Ok(file) => assert_eq!(file.facts().unwrap().kind, farline_sys::file::FileKind::Other),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::InvalidInput),
        }
    }
}

#[test]
fn a_link_is_followed_only_where_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "content").unwrap();
    std::os::unix::fs::symlink("file", folder.path().join("link")).unwrap();
    let root = Root::beneath(folder.path()).unwrap();
    let reader = reader(only(FileEngine::Buffered)).unwrap();
    assert!(reader.open(&root, b"link", true).is_ok());
    assert!(reader.open(&root, b"link", false).is_err());
    assert!(reader.open(&root, b"file", false).is_ok());
}

#[test]
fn without_a_disk_files_have_their_length_and_content_that_does_not_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let bytes = 3 * CHUNK + 5;
    fs::write(&path, vec![1; bytes]).unwrap();
    for engine in [FileEngine::Null, FileEngine::Memory] {
        let mut reader = reader(only(engine)).unwrap();
        let contents = [0, 0].map(|_: i32| {
            let file = File::open(&path).unwrap().into();
            read(&mut *reader, file, bytes).unwrap()
        });
        assert!(contents[0] == contents[1]);
        assert_eq!(
            contents[0].iter().all(|byte| *byte == 0),
            engine == FileEngine::Null
        );
        let small = reader.adopt_small(File::open(&path).unwrap().into()).unwrap();
        let mut room = vec![9; bytes + 1];
        assert_eq!(small.read_at(&mut room, 0).unwrap(), bytes);
        assert!(room[..bytes] == contents[0]);
        let nowhere = File::options().write(true).open("/dev/null").unwrap();
        write(
            &mut *writer(only(engine)).unwrap(),
            nowhere.into(),
            &contents[0],
            3,
        )
        .unwrap();
    }
    assert!(fs::read(&path).unwrap() == vec![1; bytes]);
}

#[test]
fn a_full_device_is_said_of_the_write_that_met_it() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let error = write(
        &mut *writer(only(FileEngine::Buffered)).unwrap(),
        full().into(),
        &[1; 10],
        0,
    )
    .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}
