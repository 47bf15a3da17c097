//! What a driver says of its interface, by SIOCETHTOOL (linux/ethtool.h).

use std::collections::BTreeMap;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::call::check;

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GFLAGS: u32 = 0x25;
/// Bit of large receive offload in the answer to ETHTOOL_GFLAGS (`ETH_FLAG_LRO`).
const LARGE_RECEIVE: u32 = 1 << 15;

/// Long name in `ethtool -k` and the request that asks for it.
const SWITCHES: [(&str, u32); 6] = [
    ("rx-checksumming", 0x14),
    ("tx-checksumming", 0x16),
    ("scatter-gather", 0x18),
    ("tcp-segmentation-offload", 0x1e),
    ("generic-segmentation-offload", 0x23),
    ("generic-receive-offload", 0x2b),
];

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// A socket through which interfaces of this network namespace can be asked.
pub(super) struct Ethtool(UdpSocket);

impl Ethtool {
    pub(super) fn open() -> io::Result<Self> {
        UdpSocket::bind(("127.0.0.1", 0)).map(Self)
    }

    /// Driver of `interface`; `None` where the driver does not say.
    pub(super) fn driver(&self, interface: &str) -> Option<String> {
        let mut info = DriverInfo {
            command: ETHTOOL_GDRVINFO,
            driver: [0; 32],
            rest: [0; 160],
        };
        // SAFETY: `info` has the layout and size of ethtool_drvinfo, which is what this command fills in.
        unsafe { self.ask(interface, &mut info) }.ok()?;
        let end = info
            .driver
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(info.driver.len());
        (end > 0).then(|| String::from_utf8_lossy(&info.driver[..end]).into_owned())
    }

    /// Offloads of `interface` that its driver answers for.
    pub(super) fn offloads(&self, interface: &str) -> BTreeMap<String, bool> {
        let switches = SWITCHES.iter().filter_map(|&(name, command)| {
            self.value(interface, command)
                .map(|data| (name.to_owned(), data != 0))
        });
        let receive = self
            .value(interface, ETHTOOL_GFLAGS)
            .map(|flags| ("large-receive-offload".to_owned(), flags & LARGE_RECEIVE != 0));
        switches.chain(receive).collect()
    }

    fn value(&self, interface: &str, command: u32) -> Option<u32> {
        let mut value = Value { command, data: 0 };
        // SAFETY: `value` has the layout and size of ethtool_value, which is what these commands fill in.
        unsafe { self.ask(interface, &mut value) }.ok()?;
        Some(value.data)
    }

    /// # Safety
    /// `request` must be the structure that the command in its first field reads and writes.
    unsafe fn ask<T>(&self, interface: &str, request: &mut T) -> io::Result<()> {
        // SAFETY: ifreq is plain bytes and a pointer, for which all zeros is valid.
        let mut message: libc::ifreq = unsafe { std::mem::zeroed() };
        // One byte stays zero, so the name ends.
        if interface.len() >= message.ifr_name.len() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        for (to, from) in message.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        message.ifr_ifru.ifru_data = std::ptr::from_mut(request).cast();
        // SAFETY: the descriptor is open, `message` lives through the call, and its pointer leads to a
        // structure of the size that the command expects, as the caller promises.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCETHTOOL as _, &mut message) }).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_answers_for_its_offloads() {
        let offloads = Ethtool::open().unwrap().offloads("lo");
        assert!(offloads.contains_key("generic-receive-offload"), "{offloads:?}");
        assert_eq!(offloads.get("scatter-gather"), Some(&true));
    }

    #[test]
    fn interfaces_that_are_not_there_answer_nothing() {
        let ethtool = Ethtool::open().unwrap();
        assert!(ethtool.offloads("no-such-if").is_empty());
        assert_eq!(ethtool.driver("no-such-if"), None);
        assert_eq!(ethtool.driver("a-name-that-is-far-too-long"), None);
    }

    #[test]
    fn structures_have_the_sizes_of_the_kernel() {
        assert_eq!((size_of::<Value>(), size_of::<DriverInfo>()), (8, 196));
    }
}
