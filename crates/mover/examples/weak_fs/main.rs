//! Mounts a weak file system until its input ends: `weak_fs MOUNTPOINT WORD,WORD` with the words of its weaknesses.

mod fs;

use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [place, words] = arguments.as_slice() else {
        eprintln!("weak_fs: needs a folder to mount at and words, commas between them");
        return ExitCode::from(2);
    };
    let mounted = match fs::mount(Path::new(place), words) {
        Ok(mounted) => mounted,
        Err(error) => {
            eprintln!("weak_fs: cannot mount at {place}: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("ready");
    // However it ends, the mount ends with it.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    drop(mounted);
    ExitCode::SUCCESS
}
