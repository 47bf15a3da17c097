//! With what a copy is proved: the sums there are, and which one follows from a spec.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::copy::{Cipher, CopySpec, SyncLevel, Verify};
use crate::{Failure, FailureKind};

/// The sum that content is proved with from where it is read to where it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hash {
    /// XXH3 under a cipher; BLAKE3 in clear text, and where files are compared by checksum.
    Auto,
    /// XXH3-128 over pieces of 64 KiB, and of their sums: finds what chance does to data, not what an adversary does.
    Xxh3,
    /// BLAKE3, as `b3sum` prints it: nobody can make other content of the same sum.
    Blake3,
    /// No sum: as `verify` none.
    None,
}

impl Hash {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(crate) const fn is_auto(&self) -> bool {
        matches!(self, Self::Auto)
    }
}

/// A sum in use, once [`Hash::Auto`] is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SumKind {
    /// [`Hash::Blake3`].
    Blake3,
    /// [`Hash::Xxh3`].
    Xxh3,
}

impl SumKind {
    /// The word used in JSON and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Xxh3 => "xxh3",
        }
    }
}

impl CopySpec {
    /// What content is proved with between ends that both know of sums to choose from; `None` where nothing is hashed.
    ///
    /// A cipher keeps adversaries away from what is on its way: what is left to be found is what chance does from the first
    /// read to the last write. In clear text only a sum that nobody can meet on purpose makes receipts that mean something.
    pub const fn sum(&self) -> Option<SumKind> {
        match (self.verify, self.hash) {
            (Verify::None, _) | (_, Hash::None) => None,
            (_, Hash::Xxh3) => Some(SumKind::Xxh3),
            (_, Hash::Blake3) => Some(SumKind::Blake3),
            (_, Hash::Auto) => Some(match (self.cipher, self.sync_level) {
                (Cipher::None, _) | (_, SyncLevel::Checksum) => SumKind::Blake3,
                _ => SumKind::Xxh3,
            }),
        }
    }

    /// The same where an end knows of no other sum than BLAKE3.
    pub fn sum_of_old(&self) -> Option<SumKind> {
        self.sum().map(|_| SumKind::Blake3)
    }

    /// Makes a resolved spec one that an end understands which knows of no other sum than BLAKE3, and not of the word.
    ///
    /// # Errors
    /// [`FailureKind::Version`] for a sum that it does not know.
    pub fn fit_to_blake3_alone(&mut self) -> Result<(), Failure> {
        if self.hash == Hash::Xxh3 {
            let line = "copy.hash: farline on the other host knows no xxh3; use hash auto or blake3, or install the same version on both \
                        hosts";
            return Err(Failure::new(FailureKind::Version, line));
        }
        // None was said by `verify` too.
        self.hash = Hash::Auto;
        Ok(())
    }

    /// Hash none and verify none are one thing: afterwards `verify` alone says whether anything is hashed.
    pub(crate) const fn resolve_hash(&mut self) {
        if matches!(self.hash, Hash::None) {
            self.verify = Verify::None;
        }
    }

    /// Refuses a hash and a verify that contradict each other.
    pub(crate) fn check_hash(&self) -> Result<(), Failure> {
        let line = match (self.verify, self.hash) {
            (Verify::ReadBack, Hash::None) => {
                "copy.verify: read-back compares with a sum, but hash is none; use another hash"
            }
            (Verify::None, Hash::Xxh3 | Hash::Blake3) => {
                "copy.hash: nothing is hashed with verify none; leave one of the two out"
            }
            _ => return Ok(()),
        };
        Err(Failure::new(FailureKind::Spec, line))
    }
}

#[cfg(test)]
mod tests {
    use super::SumKind;
    use crate::{RunSpec, from_json};

    #[test]
    fn the_sum_follows_from_hash_verify_cipher_and_sync_level() {
        let sum = |more: &str| {
            let text = format!(r#"{{"copy":{{"sources":["s"],"destination":"d"{more}}}}}"#);
            let resolved = from_json::<RunSpec>(&text).unwrap().resolved();
            resolved.map(|spec| spec.copy.unwrap().sum())
        };
        let blake3 = [
            r#","cipher":"none""#,
            r#","hash":"blake3""#,
            r#","sync_level":"checksum""#,
            r#","verify":"read-back","cipher":"none""#,
        ];
        for more in blake3 {
            assert_eq!(sum(more).unwrap(), Some(SumKind::Blake3), "{more}");
        }
        let xxh3 = [
            "",
            r#","verify":"read-back""#,
            r#","hash":"xxh3","cipher":"none""#,
            r#","hash":"xxh3","sync_level":"checksum""#,
        ];
        for more in xxh3 {
            assert_eq!(sum(more).unwrap(), Some(SumKind::Xxh3), "{more}");
        }
        for more in [
            r#","hash":"none""#,
            r#","verify":"none""#,
            r#","verify":"none","hash":"none""#,
        ] {
            assert_eq!(sum(more).unwrap(), None, "{more}");
        }
        assert!(
            sum(r#","hash":"none","verify":"read-back""#)
                .unwrap_err()
                .message
                .starts_with("copy.verify")
        );
        assert!(
            sum(r#","hash":"blake3","verify":"none""#)
                .unwrap_err()
                .message
                .starts_with("copy.hash")
        );
    }

    #[test]
    fn a_spec_without_a_hash_of_its_own_is_written_as_older_versions_read_it() {
        let copy = r#"{"copy":{"sources":["s"],"destination":"d"}}"#;
        let text = serde_json::to_string(&from_json::<RunSpec>(copy).unwrap()).unwrap();
        assert!(!text.contains("\"hash\""), "{text}");
    }
}
