//! Length of a device's transmit queue, by RTM_SETLINK (rtnetlink(7)).
//!
//! The ioctl for it wants CAP_NET_ADMIN in the machine's first user namespace; this one is content with the one that
//! the network namespace belongs to, which is all that a user who is not root has.

use std::io::{self, Read};

use crate::host::netlink::ask;

const HEADER_BYTES: usize = 16;
const LINK_BYTES: usize = 16;
const ATTRIBUTE_BYTES: usize = 8;
const MESSAGE_BYTES: usize = HEADER_BYTES + LINK_BYTES + ATTRIBUTE_BYTES;
/// Gives the device with this index room for `packets`.
///
/// # Errors
/// The kernel's.
pub(crate) fn set_length(index: i32, packets: u32) -> io::Result<()> {
    let socket = ask(&request(index, packets))?;
    let mut answer = [0; 4096];
    let length = (&socket).read(&mut answer)?;
    outcome(&answer[..length])
}

/// `nlmsghdr`, `ifinfomsg` and one attribute.
fn request(index: i32, packets: u32) -> [u8; MESSAGE_BYTES] {
    let mut message = [0; MESSAGE_BYTES];
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    message[..4].copy_from_slice(&(MESSAGE_BYTES as u32).to_ne_bytes());
    message[4..6].copy_from_slice(&libc::RTM_SETLINK.to_ne_bytes());
    message[6..8].copy_from_slice(&flags.to_ne_bytes());
    message[20..24].copy_from_slice(&index.to_ne_bytes());
    let attribute = &mut message[HEADER_BYTES + LINK_BYTES..];
    attribute[..2].copy_from_slice(&(ATTRIBUTE_BYTES as u16).to_ne_bytes());
    attribute[2..4].copy_from_slice(&libc::IFLA_TXQLEN.to_ne_bytes());
    attribute[4..].copy_from_slice(&packets.to_ne_bytes());
    message
}

/// What an `nlmsgerr` says: its code is 0 for done.
fn outcome(answer: &[u8]) -> io::Result<()> {
    let code = answer.get(HEADER_BYTES..HEADER_BYTES + 4);
    let code = code.and_then(|code| code.try_into().ok()).map(i32::from_ne_bytes);
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        None => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_an_error_of_the_kernel() {
        let error = set_length(i32::MAX, 1000).unwrap_err();
        assert!(
            matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EPERM)),
            "{error}"
        );
    }

    #[test]
    fn an_answer_that_is_cut_off_is_no_success() {
        assert_eq!(
            outcome(&[0; 18]).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        assert!(outcome(&[0; 20]).is_ok());
    }
}
