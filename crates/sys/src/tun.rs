//! A TUN device: the end of a link that a program holds instead of a wire.
//!
//! Packets carry a virtio-net header of [`HEADER_BYTES`] (virtio 1.2, section 5.1.6, without `num_buffers`, little
//! endian) in front of the IP packet, so that segmentation and checksums stay undone all the way: one read gives up
//! to 64 KiB of a stream. The device belongs to the network namespace of the thread that opens it; the descriptor
//! works from anywhere.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::call::{check, explain};
use crate::interface;

/// Bytes of the virtio-net header in front of every packet.
pub const HEADER_BYTES: usize = 10;
/// Largest packet a read can give, header included: an IPv6 packet whose payload length is 65,535.
pub const MAX_READ_BYTES: usize = HEADER_BYTES + 40 + 65_535;

const DEVICE: &str = "/dev/net/tun";
const SEGMENTATION: libc::c_uint =
    libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
/// The kernel takes both or neither (Linux 6.2).
const UDP_SEGMENTATION: libc::c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// An open TUN device; it vanishes with this value.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    segments_udp: bool,
}

impl Tun {
    /// Makes the device `name` in the calling thread's network namespace, down and without addresses, with room
    /// for `tx_queue_packets` (super-packets) between the namespace and the reader. Reads and writes do not block.
    ///
    /// # Errors
    /// `NotFound` where the kernel has no TUN driver, `PermissionDenied` without access to `/dev/net/tun` or without
    /// CAP_NET_ADMIN in this namespace, `InvalidInput` for a name that is empty or longer than 15 bytes.
    pub fn open(name: &str, tx_queue_packets: u32) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(DEVICE)
            .map_err(|error| {
                explain(
                    &error,
                    "/dev/net/tun (the emulator needs the TUN driver and the right to open it)",
                )
            })?;
        make_device(&file, name)
            .map_err(|error| explain(&error, format_args!("device {name} (needs CAP_NET_ADMIN here)")))?;
        let offload = "segmentation offload of TUN devices";
        let segments_udp = set_up(&file).map_err(|error| explain(&error, offload))?;
        interface::set_tx_queue(name, tx_queue_packets)?;
        Ok(Self {
            file,
            name: name.to_owned(),
            segments_udp,
        })
    }

    /// Name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the device takes and gives UDP in super-packets; before Linux 6.2 it cannot.
    pub fn segments_udp(&self) -> bool {
        self.segments_udp
    }

    /// One packet with its header; `None` if there is none now. A packet longer than `room` is cut, so give
    /// [`MAX_READ_BYTES`].
    ///
    /// # Errors
    /// The kernel's: `EIO` (`Uncategorized`) while the device is down.
    pub fn read(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(room) {
            Ok(length) => Ok(Some(length)),
            Err(error) if is_nothing_now(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands the namespace one packet, given in parts: header first, then the IP packet. The namespace's stack
    /// works on it before this returns.
    ///
    /// # Errors
    /// `InvalidInput` for a header that does not fit its packet, `EIO` while the device is down.
    pub fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        loop {
            match (&self.file).write_vectored(parts) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// An interrupted read is tried again with the next round.
fn is_nothing_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

fn make_device(file: &File, name: &str) -> io::Result<()> {
    let mut request = interface::request(name)?;
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which lives through the call; its name ends in a zero byte.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) }).map(drop)
}

/// Header size and byte order, then the offloads; gives whether UDP is among them.
fn set_up(file: &File) -> io::Result<bool> {
    set_integer(file, libc::TUNSETVNETHDRSZ, HEADER_BYTES as libc::c_int)?;
    set_integer(file, libc::TUNSETVNETLE, 1)?;
    if set_offload(file, SEGMENTATION | UDP_SEGMENTATION).is_ok() {
        return Ok(true);
    }
    set_offload(file, SEGMENTATION).map(|()| false)
}

fn set_integer(file: &File, request: libc::Ioctl, value: libc::c_int) -> io::Result<()> {
    // SAFETY: both requests used here read one int through the pointer, which lives through the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), request, &value) }).map(drop)
}

fn set_offload(file: &File, offload: libc::c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its flags by value and touches no memory of ours.
    check(unsafe {
        libc::ioctl(
            file.as_raw_fd(),
            libc::TUNSETOFFLOAD,
            libc::c_ulong::from(offload),
        )
    })
    .map(drop)
}
