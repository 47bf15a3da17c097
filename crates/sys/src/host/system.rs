//! Names of the system, and how much memory it has.

use std::ffi::CStr;
use std::sync::OnceLock;

use super::line;

/// What `uname` says.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    pub(super) hostname: String,
    pub(super) kernel: String,
    pub(super) architecture: String,
}

pub(super) fn names() -> Names {
    // SAFETY: utsname is arrays of characters for which all zeros is valid (empty strings).
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one utsname into `names`.
    if unsafe { libc::uname(&mut names) } != 0 {
        return Names::default();
    }
    Names {
        hostname: text(&names.nodename),
        kernel: text(&names.release),
        architecture: text(&names.machine),
    }
}

/// The text up to the first zero byte of a field that the kernel filled in.
fn text(field: &[libc::c_char]) -> String {
    let bytes: Vec<u8> = field
        .iter()
        .map(|&character| character.to_ne_bytes()[0])
        .collect();
    CStr::from_bytes_until_nul(&bytes)
        .map(|text| text.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Name of the distribution; it does not change while the process lives.
pub(super) fn operating_system() -> String {
    static NAME: OnceLock<String> = OnceLock::new();
    let read = || {
        let files = ["/etc/os-release", "/usr/lib/os-release"];
        files
            .into_iter()
            .find_map(line)
            .and_then(|text| pretty_name(&text))
            .unwrap_or_default()
    };
    NAME.get_or_init(read).clone()
}

/// `PRETTY_NAME` of an os-release file, without its quotes.
fn pretty_name(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches(['"', '\'']).to_owned())
}

/// Physical memory; 0 if the kernel does not say.
pub(super) fn memory_bytes() -> u64 {
    line("/proc/meminfo")
        .and_then(|text| parse_memory(&text))
        .unwrap_or(0)
}

fn parse_memory(text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_release_with_and_without_quotes() {
        assert_eq!(
            pretty_name("ID=x\nPRETTY_NAME=\"Some OS 1\"\n").as_deref(),
            Some("Some OS 1")
        );
        assert_eq!(pretty_name("PRETTY_NAME=Plain").as_deref(), Some("Plain"));
        assert_eq!(pretty_name("ID=x"), None);
    }

    #[test]
    fn memory_is_in_kibibytes() {
        assert_eq!(parse_memory("MemTotal:       16 kB\nMemFree: 1 kB"), Some(16_384));
        assert_eq!(parse_memory("MemFree: 1 kB"), None);
    }

    #[test]
    fn a_field_ends_at_its_first_zero() {
        assert_eq!(
            text(&[104, 105, 0, 120].map(|byte: u8| byte as libc::c_char)),
            "hi"
        );
        assert_eq!(text(&[104].map(|byte: u8| byte as libc::c_char)), "");
    }
}
