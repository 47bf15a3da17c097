//! Handing packets over to the hosts, whole or in the parts that arrived.

use std::io::IoSlice;

use farline_sys::arena::Frame;
use farline_sys::tun::Tun;

use super::lateness::Lateness;
use super::request::{PortTraffic, Traffic};
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
        let kind = match corruption.hidden {
            true => packet::Corruption::Hidden,
            false => packet::Corruption::Visible,
        };
        let Packet { frame, form } = &train.payload;
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        let segment = (train.first, train.marked);
        // A packet without a bit that may be hit arrives as it was sent.
        packet::corrupt(&mut bytes, frame, form, segment, corruption.entropy, kind);
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
    train.segments == train.payload.form.segments() && !train.marked
}
