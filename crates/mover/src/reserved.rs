//! Names that no copy takes or makes as its own: what is not yet whole is there.

/// The folder for what is not yet whole, in the destination folder.
pub const STAGING: &[u8] = b".farline-partial";

/// The same of the user of this number, where the other one is somebody else's.
pub fn staging_of(user: u32) -> Vec<u8> {
    [STAGING, b".", user.to_string().as_bytes()].concat()
}

/// Whether a folder of this name is for what is not yet whole, whoever copies.
pub fn is_staging(name: &[u8]) -> bool {
    match name.strip_prefix(STAGING) {
        Some([]) => true,
        Some([b'.', user @ ..]) => !user.is_empty() && user.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_of_all_users_are_reserved_and_nothing_else() {
        assert!(is_staging(STAGING) && is_staging(&staging_of(0)) && is_staging(&staging_of(u32::MAX)));
        for other in [
            &b".farline"[..],
            b".farline-partial.",
            b".farline-partial.1a",
            b".farline-partial-1",
        ] {
            assert!(!is_staging(other));
        }
    }
}
