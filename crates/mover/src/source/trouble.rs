//! What keeps a file from being sent as it was announced, and the words for it.

use std::io;

use farline_proto::copy::sender::{CHANGED, Loss};

use super::origin::{is_another, why};
use crate::message::VANISHED;
use crate::path_text::one_line;

/// What keeps a file from being read.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It is not what was announced any more.
    Changed,
    /// It is given up for this reason.
    Beyond(String),
    /// The kernel says so.
    Kernel(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        if is_another(&error) {
            Self::Changed
        } else {
            Self::Kernel(error)
        }
    }
}

impl Trouble {
    /// What it means that a stream could not take what is there.
    pub(super) fn of_taking(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Changed,
            _ => Self::Kernel(error),
        }
    }

    /// The kernel's number, where it was the kernel.
    pub(super) fn errno(&self) -> Option<i32> {
        match self {
            Self::Kernel(error) => error.raw_os_error(),
            Self::Changed | Self::Beyond(_) => None,
        }
    }

    /// One line for a person.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Changed => CHANGED.to_owned(),
            Self::Beyond(reason) => one_line(reason),
            Self::Kernel(error) if is_gone(error) => VANISHED.to_owned(),
            Self::Kernel(error) => why(error),
        }
    }

    pub(super) fn loss(&self) -> Loss {
        match self {
            Self::Changed => Loss::Changed,
            Self::Beyond(_) | Self::Kernel(_) => Loss::For(self.reason()),
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}
