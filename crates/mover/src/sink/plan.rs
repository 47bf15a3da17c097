//! What is settled of a copy when its receiving end begins.

use farline_proto::copy::naming::Rules;
use farline_spec::{CopyShare, CopySpec, SumKind, Verify};

use crate::engine::{Choice, Device};

/// What is done with what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is kept.
    Real,
    /// It is only said what would be done.
    Dry,
    /// It is checked and dropped: no disk.
    Nothing,
}

/// What stays as it is from the first moment to the last.
#[derive(Debug)]
pub struct Plan {
    /// What to copy and how.
    pub spec: CopySpec,
    /// What is done with what comes.
    pub mode: Mode,
    /// What content is proved with, if it is.
    pub sum: Option<SumKind>,
    /// Whether what is received reaches the device before it gets its name.
    pub durable: bool,
    /// What is under the destination.
    pub device: Device,
    /// How files are written.
    pub choice: Choice,
}

impl Plan {
    /// Whether what is on the device is read once more.
    pub fn reads_back(&self) -> bool {
        self.mode == Mode::Real && self.spec.verify == Verify::ReadBack
    }

    /// Offset and length of what comes of each file, where other sessions carry the rest.
    pub fn range(&self) -> Option<(u64, u64)> {
        self.spec.share.as_ref().and_then(CopyShare::range)
    }

    /// How files get their names here.
    pub fn naming_rules(&self) -> Rules {
        Rules {
            is_durable: self.durable,
            reads_back: self.reads_back(),
            keeps_times: self.spec.times,
        }
    }
}
