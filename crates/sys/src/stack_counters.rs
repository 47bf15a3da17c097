//! What the network stack of a namespace counts: packets and drops per device, memory pressure, lost datagrams.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::call::explain;

/// The counters of one network namespace. Opened by a thread inside; readable by any thread from then on, and the
/// namespace stays as long as this does.
#[derive(Debug)]
pub struct StackCounters {
    devices: File,
    tcp: File,
    udp: File,
    udp6: File,
}

/// What was counted since the namespace was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StackCounts {
    /// By name of the device.
    pub devices: BTreeMap<String, DeviceCounts>,
    /// Times TCP dropped received data to get below its memory limit (`TcpExt: PruneCalled`).
    pub prunes: u64,
    /// Packets that were dropped before the receive queue for want of memory (`RcvPruned`).
    pub receive_prunes: u64,
    /// Times the out-of-order queue was dropped for want of memory (`OfoPruned`).
    pub out_of_order_prunes: u64,
    /// Times TCP as a whole came into memory pressure (`TCPMemoryPressures`).
    pub memory_pressures: u64,
    /// Retransmission time-outs (`TCPTimeouts`).
    pub timeouts: u64,
    /// Out-of-order packets dropped for want of receive memory (`TCPOFODrop`).
    pub out_of_order_drops: u64,
    /// Datagrams dropped because a socket's receive buffer was full, IPv4 and IPv6 (`RcvbufErrors`).
    pub receive_buffer_errors: u64,
    /// Datagrams dropped because UDP as a whole had no memory left, IPv4 and IPv6 (`MemErrors`, Linux 5.11).
    pub udp_memory_errors: u64,
    /// Segments and datagrams with a wrong checksum, TCP and UDP (`InCsumErrors`).
    pub checksum_errors: u64,
}

/// Packets of one device, as its namespace sees them; a super-packet counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceCounts {
    /// Received.
    pub rx_packets: u64,
    /// Refused on receipt: a header that does not fit its packet.
    pub rx_errors: u64,
    /// Dropped on receipt.
    pub rx_dropped: u64,
    /// Sent; a TUN device counts a packet when its reader takes it.
    pub tx_packets: u64,
    /// Dropped because the transmit ring was full.
    pub tx_dropped: u64,
}

impl StackCounters {
    /// Opens the counters of the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel's, with the file; `NotFound` where it has no IPv6.
    pub fn open() -> io::Result<Self> {
        let open = |name: &str| {
            let path = format!("/proc/thread-self/net/{name}");
            File::open(&path).map_err(|error| explain(&error, path))
        };
        Ok(Self {
            devices: open("dev")?,
            tcp: open("netstat")?,
            udp: open("snmp")?,
            udp6: open("snmp6")?,
        })
    }

    /// The counters now.
    ///
    /// # Errors
    /// The kernel's; `InvalidData` with the name of a counter that this kernel does not have.
    pub fn read(&self) -> io::Result<StackCounts> {
        let (tcp, basic, basic6) = (text(&self.tcp)?, text(&self.udp)?, text(&self.udp6)?);
        let extended = |name| in_table(&tcp, "TcpExt:", name);
        Ok(StackCounts {
            devices: devices(&text(&self.devices)?),
            prunes: extended("PruneCalled")?,
            receive_prunes: extended("RcvPruned")?,
            out_of_order_prunes: extended("OfoPruned")?,
            memory_pressures: extended("TCPMemoryPressures")?,
            timeouts: extended("TCPTimeouts")?,
            out_of_order_drops: extended("TCPOFODrop")?,
            receive_buffer_errors: in_table(&basic, "Udp:", "RcvbufErrors")?
                + in_list(&basic6, "Udp6RcvbufErrors")?,
            udp_memory_errors: in_table(&basic, "Udp:", "MemErrors")? + in_list(&basic6, "Udp6MemErrors")?,
            checksum_errors: in_table(&basic, "Udp:", "InCsumErrors")?
                + in_table(&basic, "Tcp:", "InCsumErrors")?
                + in_list(&basic6, "Udp6InCsumErrors")?,
        })
    }
}

/// The whole file, from its start, whoever else reads it.
fn text(file: &File) -> io::Result<String> {
    let (mut bytes, mut filled) = (vec![0; 16_384], 0);
    loop {
        match file.read_at(&mut bytes[filled..], filled as u64)? {
            0 => break,
            length => filled += length,
        }
        if filled == bytes.len() {
            bytes.resize(2 * filled, 0);
        }
    }
    bytes.truncate(filled);
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// `/proc/net/dev`: after the name, eight figures of receipt (bytes, packets, errs, drop, ...) and eight of sending.
fn devices(table: &str) -> BTreeMap<String, DeviceCounts> {
    let device = |line: &str| {
        let (name, figures) = line.split_once(':')?;
        let figures: Option<Vec<u64>> = figures
            .split_ascii_whitespace()
            .map(|figure| figure.parse().ok())
            .collect();
        let figures = figures.filter(|figures| figures.len() >= 12)?;
        let counts = DeviceCounts {
            rx_packets: figures[1],
            rx_errors: figures[2],
            rx_dropped: figures[3],
            tx_packets: figures[9],
            tx_dropped: figures[11],
        };
        Some((name.trim().to_owned(), counts))
    };
    table.lines().filter_map(device).collect()
}

/// Two lines with the same first word: names, then values in their order.
fn in_table(table: &str, kind: &str, name: &str) -> io::Result<u64> {
    let mut lines = table.lines().filter(|line| line.split(' ').next() == Some(kind));
    let found = lines.next().zip(lines.next()).and_then(|(names, values)| {
        let at = names.split(' ').position(|word| word == name)?;
        values.split(' ').nth(at)?.parse().ok()
    });
    found.ok_or_else(|| missing(kind, name))
}

/// One name and value per line.
fn in_list(list: &str, name: &str) -> io::Result<u64> {
    let mut lines = list.lines().map(str::split_ascii_whitespace);
    let found = lines.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?);
    found.ok_or_else(|| missing("snmp6", name))
}

fn missing(kind: &str, name: &str) -> io::Error {
    let message = format!("counters of the network stack: this kernel has no {kind} {name}");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_namespace_has_all_of_them() {
        let counts = StackCounters::open().unwrap().read().unwrap();
        assert!(counts.devices.contains_key("lo"), "{counts:?}");
    }

    #[test]
    fn counters_move_and_can_be_read_from_another_thread() {
        let counters = StackCounters::open().unwrap();
        let before = counters.read().unwrap().devices["lo"];
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let here = socket.local_addr().unwrap();
        for _ in 0..5 {
            socket.send_to(b"x", here).unwrap();
        }
        let after = std::thread::spawn(move || counters.read().unwrap().devices["lo"])
            .join()
            .unwrap();
        assert!(after.rx_packets >= before.rx_packets + 5);
        assert!(after.tx_packets >= before.tx_packets + 5);
    }

    #[test]
    fn drops_are_told_from_packets() {
        let table =
            "Inter-| Receive\n face |bytes\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n broken: 1 2\n";
        let expected = DeviceCounts {
            rx_packets: 2,
            rx_errors: 3,
            rx_dropped: 4,
            tx_packets: 10,
            tx_dropped: 12,
        };
        assert_eq!(devices(table), BTreeMap::from([("eth0".to_owned(), expected)]));
    }

    #[test]
    fn a_counter_the_kernel_lacks_is_an_error_and_not_a_zero() {
        let table = "Udp: A B\nUdp: 1 2\nUdpLite: A C\nUdpLite: 3 4\n";
        assert_eq!(in_table(table, "Udp:", "B").unwrap(), 2);
        assert!(
            in_table(table, "Udp:", "C")
                .unwrap_err()
                .to_string()
                .contains("Udp: C")
        );
        assert!(in_list("Udp6InDatagrams 4\n", "Udp6RcvbufErrors").is_err());
    }
}
