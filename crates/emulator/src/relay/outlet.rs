//! Handing packets over to the hosts, whole or in the parts that arrived.

use std::io::IoSlice;

use farline_sys::arena::Frame;
use farline_sys::tun::Tun;

use super::lateness::Lateness;
use super::traffic::{PortTraffic, Traffic};
use super::wait::Clock;
use crate::model::{Arrival, Corruption, Train};
use crate::packet::{self, Form, Run};

/// A packet as read from a device, virtio header included, and where things are in it.
#[derive(Debug, Clone)]
pub struct Packet {
    /// Its bytes.
    pub frame: Frame,
    /// Where things are.
    pub form: Form,
    /// Whether it came with a mark of congestion.
    pub marked: bool,
}

/// The devices of all ports, and what is counted at them.
pub struct Outlet {
    /// The engine's time.
    pub clock: Clock,
    /// How late each packet was handed over.
    pub lateness: Lateness,
    /// What is counted beside the links.
    pub traffic: Traffic,
    /// What is counted for each port.
    pub ports: Vec<PortTraffic>,
    devices: Vec<Tun>,
    scratch: Vec<u8>,
}

impl Outlet {
    /// An outlet to devices in the order of their ports.
    pub fn new(clock: Clock, devices: Vec<Tun>) -> Self {
        Self {
            clock,
            lateness: Lateness::default(),
            traffic: Traffic::default(),
            ports: vec![PortTraffic::default(); devices.len()],
            devices,
            scratch: Vec::with_capacity(70_000),
        }
    }

    /// The devices, in the order of their ports.
    pub fn devices(&self) -> &[Tun] {
        &self.devices
    }

    /// A port's device.
    pub fn device(&self, port: usize) -> &Tun {
        &self.devices[port]
    }

    /// Gives a host what has arrived for it.
    pub fn hand_over(&mut self, arrival: Arrival<Packet>) {
        let late_ns = self.clock.now_ns().saturating_sub(arrival.at_ns);
        self.lateness.add(late_ns);
        let train = &arrival.train;
        let frame: &[u8] = &train.payload.frame;
        if let Some(corruption) = train.corrupt {
            self.write_corrupt(arrival.port, train, corruption);
        } else if is_whole(train) {
            self.write(arrival.port, &[IoSlice::new(frame)]);
        } else {
            let run = Run {
                first: train.first,
                count: train.segments,
                marked: train.marked,
            };
            let piece = train.payload.form.piece(frame, run);
            let parts = [IoSlice::new(&piece.header), IoSlice::new(&frame[piece.payload])];
            self.write(arrival.port, &parts);
        }
    }

    fn write_corrupt(&mut self, port: usize, train: &Train<Packet>, corruption: Corruption) {
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        // A packet without a bit that may be hit arrives as it was sent.
        let is_hit = append_corrupt(&mut bytes, train, corruption);
        self.traffic.unhit_packets += u64::from(!is_hit);
        self.write(port, &[IoSlice::new(&bytes)]);
        self.scratch = bytes;
    }

    /// Writes one packet; what the host does not take is counted and gone.
    pub fn write(&mut self, port: usize, parts: &[IoSlice<'_>]) {
        match self.devices[port].write(parts) {
            Ok(()) => self.ports[port].written_packets += 1,
            Err(_) => self.traffic.write_drops += 1,
        }
    }
}

/// Whether the packet arrives with the header it was sent with.
fn is_whole(train: &Train<Packet>) -> bool {
    train.segments == train.payload.form.segments() && train.marked == train.payload.marked
}

/// Appends a train of one segment as it arrives, virtio header included; gives whether it had a bit to turn over.
pub fn append_corrupt(out: &mut Vec<u8>, train: &Train<Packet>, corruption: Corruption) -> bool {
    let kind = match corruption.hidden {
        true => packet::Corruption::Hidden,
        false => packet::Corruption::Visible,
    };
    let Packet { frame, form, .. } = &train.payload;
    let segment = (train.first, train.marked);
    packet::corrupt(out, frame, form, segment, corruption.entropy, kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::testing::{datagram, train_of};

    #[test]
    fn a_packet_that_came_with_a_mark_goes_on_as_it_is() {
        let [mut plain, marked] = [datagram(0b10, b"payload"), datagram(0b11, b"payload")].map(train_of);
        assert!(is_whole(&plain) && is_whole(&marked));
        plain.marked = true;
        assert!(!is_whole(&plain), "marked on the way: its header is another");
    }

    #[test]
    fn a_packet_without_a_bit_to_hit_is_told_from_one_that_was_hit() {
        let hidden = Corruption {
            entropy: 5,
            hidden: true,
        };
        let hit = |payload: &[u8]| append_corrupt(&mut Vec::new(), &train_of(datagram(0, payload)), hidden);
        assert!(hit(b"payload") && !hit(b""));
    }
}
