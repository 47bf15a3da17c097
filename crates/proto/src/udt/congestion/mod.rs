//! How fast to send: the congestion controls of a UDT connection behind one trait.
//!
//! What it does: turns what acknowledgements, loss reports and time-outs say into two limits, a window (packets under
//! way) and a rate (packets per second, repeats included). Four kinds: `bbr` from a model of the path,
//! `native` as the reference library has it (CUDTCC), `reno` as TCP's NewReno has it, `fixed` at the stated rate.
//! What it must not do: know of packets' content, buffers or timers; decide what is lost; pace by itself (the
//! connection does, after [`Control::rate_pps`]).
//!
//! In: [`AckEvent`] for every acknowledgement that brings news, [`LossEvent`] for every batch of packets newly marked
//! lost, a time-out when the peer has been silent for too long. Out: [`Control::window_packets`] and
//! [`Control::rate_pps`], asked for after each of these.
//!
//! Unit of everything is the packet; bursts (runs of packets that the kernel gets in one call) matter for the least
//! windows only, since a window that is not a few bursts cannot keep a pipe full. What each control does on which
//! path, in figures: `docs/design/udt-controls.md`.
//!
//! Start with [`control_for`], then `bbr/mod.rs`.

mod bbr;
mod fixed;
mod native;
mod reno;

use std::fmt::Debug;

use farline_spec::UdtControl;

use bbr::Bbr;
use fixed::Fixed;
use native::Native;
use reno::Reno;

pub use super::delivery::RateSample;

/// The interval between two rate decisions of the reference library, and between its acknowledgements (SYN).
const SYN_NS: u64 = 10_000_000;
const NS_PER_S: f64 = 1e9;

/// What an acknowledgement brought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AckEvent {
    /// Now.
    pub now_ns: u64,
    /// Packets newly known to have arrived in order.
    pub acked_packets: u64,
    /// First index not acknowledged.
    pub next: u64,
    /// Largest index sent so far.
    pub largest_sent: u64,
    /// Packets under way now: sent, neither known to have arrived nor marked lost.
    pub in_flight: u64,
    /// Packets known to have arrived since the start, those out of order included where the peer counts them.
    pub delivered: u64,
    /// Rate of delivery, where this acknowledgement gives one.
    pub sample: Option<RateSample>,
    /// Smoothed round-trip time.
    pub smoothed_rtt_ns: u64,
    /// Least round-trip time seen.
    pub min_rtt_ns: u64,
    /// Packets the peer is ready to take.
    pub flow_window_packets: u64,
    /// Rate of arrival as the peer measures it.
    pub arrival_pps: Option<f64>,
    /// Capacity of the path as the peer measures it.
    pub capacity_pps: Option<f64>,
}

/// Packets newly marked lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossEvent {
    /// Now.
    pub now_ns: u64,
    /// Smallest index among them.
    pub first: u64,
    /// Largest index reported with them.
    pub last: u64,
    /// How many.
    pub packets: u64,
    /// Largest index sent so far.
    pub largest_sent: u64,
    /// Packets under way, without these.
    pub in_flight: u64,
}

/// A congestion control.
pub trait Control: Debug + Send {
    /// The word it is asked for by.
    fn name(&self) -> &'static str;

    /// An acknowledgement that brought news.
    fn on_ack(&mut self, ack: &AckEvent);

    /// Packets were newly marked lost.
    fn on_loss(&mut self, loss: &LossEvent);

    /// Nothing has come from the peer for so long that everything under way (`in_flight` packets) counts as lost.
    fn on_timeout(&mut self, now_ns: u64, in_flight: u64);

    /// The peer says that delays grow (control packet type 4).
    fn on_delay_warning(&mut self, _now_ns: u64) {}

    /// Most packets under way; infinite where there is no such limit.
    fn window_packets(&self) -> f64;

    /// Most packets per second, repeats included; no such limit if absent.
    fn rate_pps(&self) -> Option<f64>;
}

/// What a control is made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ControlConfig {
    /// Which.
    pub kind: UdtControl,
    /// Most packets per second, whatever the control finds.
    pub max_rate_pps: Option<f64>,
    /// UDP payload of a full packet.
    pub packet_bytes: usize,
    /// Packets the kernel gets in one call.
    pub burst_packets: usize,
    /// Now.
    pub now_ns: u64,
    /// Seed of what a control does at random.
    pub seed: u64,
}

/// The control asked for. [`UdtControl::Fixed`] without a rate is limited by the peer's flow window alone.
pub fn control_for(config: &ControlConfig) -> Box<dyn Control> {
    match config.kind {
        UdtControl::Fixed => Box::new(Fixed::new(config.max_rate_pps)),
        UdtControl::Bbr => capped(Bbr::new(config), config.max_rate_pps),
        UdtControl::Native => capped(Native::new(config), config.max_rate_pps),
        UdtControl::Reno => capped(Reno::new(config), config.max_rate_pps),
    }
}

fn capped(control: impl Control + 'static, max_rate_pps: Option<f64>) -> Box<dyn Control> {
    match max_rate_pps {
        Some(max_rate_pps) => Box::new(Capped {
            control,
            max_rate_pps,
        }),
        None => Box::new(control),
    }
}

/// A control that never asks for more than a stated rate (UDT_MAXBW).
#[derive(Debug)]
struct Capped<C> {
    control: C,
    max_rate_pps: f64,
}

impl<C: Control> Control for Capped<C> {
    fn name(&self) -> &'static str {
        self.control.name()
    }

    fn on_ack(&mut self, ack: &AckEvent) {
        self.control.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &LossEvent) {
        self.control.on_loss(loss);
    }

    fn on_timeout(&mut self, now_ns: u64, in_flight: u64) {
        self.control.on_timeout(now_ns, in_flight);
    }

    fn on_delay_warning(&mut self, now_ns: u64) {
        self.control.on_delay_warning(now_ns);
    }

    fn window_packets(&self) -> f64 {
        self.control.window_packets()
    }

    fn rate_pps(&self) -> Option<f64> {
        let rate_pps = self.control.rate_pps().unwrap_or(f64::INFINITY);
        Some(rate_pps.min(self.max_rate_pps))
    }
}

/// Least window with which every control begins: a burst, or what the reference library begins with.
fn first_window(burst_packets: usize) -> f64 {
    (burst_packets as f64).max(16.0)
}

/// Nanoseconds as seconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / NS_PER_S
}

/// Numbers that follow from a seed (SplitMix64; Steele, Lea and Flood 2014).
#[derive(Debug, Clone, Copy)]
struct Random(u64);

impl Random {
    /// At least 0, below 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^= word >> 31;
        (word >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod path;
#[cfg(test)]
mod tests;
