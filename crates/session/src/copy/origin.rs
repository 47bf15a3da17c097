//! Who copies, as far as it tells two copies of the same names apart: host, user, and the folders that names depend on.
//!
//! It goes to the other end, which has no business with any of this: so it is a hash, of which nobody makes a host's name again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use farline_spec::{CopySpec, Direction};
use ring::digest::{Context, SHA256};

/// Bytes of the hash that are kept.
const ORIGIN_BYTES: usize = 16;

/// What the client says of itself: with the folder that relative names begin in and, if it takes files, the server.
pub fn origin(copy: &CopySpec, direction: Direction, server: &str) -> String {
    let own_names: Vec<&str> = match direction {
        Direction::Reverse => vec![&copy.destination],
        _ => copy.sources.iter().map(String::as_str).collect(),
    };
    let is_relative = own_names.iter().any(|name| Path::new(name).is_relative());
    // A folder that is gone has no name, and then nothing relative to it is found either.
    let folder = std::env::current_dir().unwrap_or_default();
    let folder = if is_relative {
        folder.as_os_str().as_encoded_bytes()
    } else {
        b""
    };
    let server = if direction == Direction::Reverse {
        server
    } else {
        ""
    };
    hashed(&[machine().as_bytes(), user().as_bytes(), folder, server.as_bytes()])
}

/// Name of this machine that stays over restarts; its host name where it has none.
fn machine() -> String {
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    match id.trim() {
        "" => farline_sys::host::facts().hostname,
        id => id.to_owned(),
    }
}

/// Who this process belongs to; nobody where the kernel does not tell.
fn user() -> String {
    let owner = fs::metadata("/proc/self").map(|facts| facts.uid());
    owner.map_or_else(|_| String::new(), |user| user.to_string())
}

fn hashed(parts: &[&[u8]]) -> String {
    let mut context = Context::new(&SHA256);
    context.update(b"farline origin of a copy");
    for part in parts {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part);
    }
    let hash = context.finish();
    hash.as_ref()[..ORIGIN_BYTES]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sources: &[&str], direction: Direction, server: &str) -> String {
        let copy = CopySpec {
            sources: sources.iter().map(|&source| source.to_owned()).collect(),
            destination: "/there".to_owned(),
            ..CopySpec::default()
        };
        origin(&copy, direction, server)
    }

    #[test]
    fn it_stays_and_depends_on_the_folder_only_where_names_do() {
        let push = Direction::Forward;
        assert_eq!(of(&["/a"], push, "one:1"), of(&["/b"], push, "two:2"));
        assert_eq!(of(&["/a"], push, "x"), of(&["/a"], push, "x"));
        assert_ne!(of(&["/a"], push, "x"), of(&["/a", "b"], push, "x"));
    }

    #[test]
    fn files_of_two_servers_are_two_copies() {
        let pull = Direction::Reverse;
        assert_ne!(of(&["a"], pull, "one:1"), of(&["a"], pull, "two:2"));
        assert_eq!(of(&["a"], pull, "one:1"), of(&["/b"], pull, "one:1"));
    }

    #[test]
    fn nothing_is_read_out_of_it() {
        let text = of(&["a"], Direction::Forward, "x");
        assert_eq!(text.len(), 2 * ORIGIN_BYTES);
        assert!(text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(hashed(&[b"ab", b"c"]), hashed(&[b"a", b"bc"]));
    }
}
