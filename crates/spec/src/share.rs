//! What one session carries of a copy that several sessions carry together, over several nodes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Failure, FailureKind};

/// Longest name of a copy.
const MAX_ID_BYTES: usize = 64;
/// What one session carries of a copy that several carry together. Sessions with a `part` write files and prove them, and leave what
/// they know beside the files; the one without a `part` comes last, goes on from what all of them proved, and ends the copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyShare {
    /// The copy that it is a share of.
    #[schemars(length(min = 1, max = 64), extend("x-sweep" = false))]
    pub id: String,
    /// Number of the part; without it, the session that ends the copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-sweep" = false))]
    pub part: Option<u32>,
    /// Only so much of each listed file: a multiple of 65536 from its beginning on. Needs `part`, `bytes` and a source list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-sweep" = false))]
    pub offset: Option<u64>,
    /// Length of that, a multiple of 65536; what is behind the end of a file does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-sweep" = false))]
    pub bytes: Option<u64>,
}

/// Where a share of a file may begin and end.
const SHARE_GRAIN_BYTES: u64 = 65_536;

impl CopyShare {
    /// Offset and length of what is carried of each file, where that is not all of it.
    pub fn range(&self) -> Option<(u64, u64)> {
        self.offset.zip(self.bytes)
    }

    /// Whether it makes sense; `is_listed`: the sources are those of a list.
    ///
    /// # Errors
    /// [`FailureKind::Spec`], which says what does not.
    pub(crate) fn check(&self, is_listed: bool) -> Result<(), Failure> {
        let refused = |line: &str| Err(Failure::new(FailureKind::Spec, format!("copy.share.{line}")));
        let is_word = |text: &str| {
            (1..=MAX_ID_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        if !is_word(&self.id) {
            return refused("id: 1 to 64 letters and digits are allowed");
        }
        if self.offset.is_some() != self.bytes.is_some() {
            return refused("offset: works only with bytes, and bytes only with offset");
        }
        let Some((offset, bytes)) = self.range() else {
            return Ok(());
        };
        let is_even = offset % SHARE_GRAIN_BYTES == 0 && bytes % SHARE_GRAIN_BYTES == 0;
        if !is_even || bytes == 0 || offset.checked_add(bytes).is_none() {
            return refused("offset, bytes: must be multiples of 65536, and bytes more than 0");
        }
        match self.part.is_some() && is_listed {
            true => Ok(()),
            false => refused("offset: works only with part and a source list"),
        }
    }
}
