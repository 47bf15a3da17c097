//! Where lines go: standard error, or a file that can be opened anew.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use farline_spec::Failure;

/// Longest that a line waits for a reader that is slow and does not let a write wait.
const PATIENCE: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(1);
/// A log names files, hosts and people: others need not read it.
const MODE: u32 = 0o640;

/// Where lines go.
#[derive(Debug)]
pub struct Output {
    place: Place,
    /// Lines that could not be written since the last that could, and why the first could not.
    lost: u64,
    why: String,
}

#[derive(Debug)]
enum Place {
    StandardError,
    File(PathBuf, File),
}

impl Output {
    /// The end of the file `path`, made if it is not there; standard error without one.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when it cannot be opened.
    pub fn open(path: Option<PathBuf>) -> Result<Self, Failure> {
        let place = match path {
            None => Place::StandardError,
            Some(path) => {
                let file = open(&path)?;
                Place::File(path, file)
            }
        };
        Ok(Self {
            place,
            lost: 0,
            why: String::new(),
        })
    }

    /// Opens the file anew by its name.
    ///
    /// # Errors
    /// As [`Self::open`]; the old one stays open then.
    pub fn reopen(&mut self) -> Result<(), Failure> {
        if let Place::File(path, file) = &mut self.place {
            *file = open(path)?;
        }
        Ok(())
    }

    /// Writes a line with one call, after one that says how many are missing if some are, which `lost_line` gives.
    pub fn write(&mut self, line: &[u8], lost_line: &dyn Fn(u64, &str) -> String) {
        if self.lost > 0 && self.put(lost_line(self.lost, &self.why).as_bytes()).is_ok() {
            self.lost = 0;
        }
        if self.lost == 0
            && let Err(error) = self.put(line)
        {
            self.why = error.to_string();
            self.lost = 1;
        } else if self.lost > 0 {
            self.lost += 1;
        }
    }

    fn put(&mut self, line: &[u8]) -> io::Result<()> {
        match &mut self.place {
            Place::StandardError => put(&mut io::stderr().lock(), line),
            Place::File(_, file) => put(file, line),
        }
    }
}

fn open(path: &Path) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    let opened = options.append(true).create(true).mode(MODE).open(path);
    opened.map_err(|error| Failure::system(&format!("log file {}", path.display()), &error))
}

/// Writes all of `line`; a part of it only where the writer takes no more after a while.
fn put(writer: &mut impl Write, mut line: &[u8]) -> io::Result<()> {
    let mut until = None;
    while !line.is_empty() {
        match writer.write(line) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => line = &line[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let now = Instant::now();
                if now >= *until.get_or_insert(now + PATIENCE) {
                    return Err(error);
                }
                std::thread::sleep(PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost_line(count: u64, why: &str) -> String {
        format!("{count} lost: {why}\n")
    }

    #[test]
    fn a_renamed_file_gets_lines_until_it_is_opened_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("log"), folder.path().join("log.1"));
        let mut output = Output::open(Some(path.clone())).unwrap();
        output.write(b"one\n", &lost_line);
        std::fs::rename(&path, &old).unwrap();
        output.write(b"two\n", &lost_line);
        output.reopen().unwrap();
        output.write(b"three\n", &lost_line);
        assert_eq!(std::fs::read_to_string(old).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "three\n");
    }

    #[test]
    fn a_file_that_cannot_be_opened_anew_stays_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, aside) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::create_dir(&inside).unwrap();
        let mut output = Output::open(Some(inside.join("log"))).unwrap();
        std::fs::rename(&inside, &aside).unwrap();
        assert!(output.reopen().unwrap_err().message.contains("log file"));
        output.write(b"one\n", &lost_line);
        assert_eq!(std::fs::read_to_string(aside.join("log")).unwrap(), "one\n");
    }

    #[test]
    fn lines_that_could_not_be_written_are_counted_and_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut output = Output {
            place: Place::File(path.clone(), full),
            lost: 0,
            why: String::new(),
        };
        (0..3).for_each(|_| output.write(b"gone\n", &lost_line));
        output.reopen().unwrap();
        output.write(b"back\n", &lost_line);
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("3 lost: No space left"), "{text}");
        assert_eq!(lines[1..], ["back"]);
    }
}
