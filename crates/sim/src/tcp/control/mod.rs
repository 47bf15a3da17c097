//! Congestion controls: how a window grows in congestion avoidance and what is left of it after congestion.
//!
//! Slow start (RFC 5681), recovery and time-outs are the sender's and the same for all. Windows are in segments, with
//! a fraction. Roots and logarithms come from `libm`, so that a table is the same on every machine.

mod cubic;
mod highspeed;
mod htcp;
mod reno;
mod scalable;

use std::fmt::Debug;

pub use cubic::Cubic;
pub(crate) use cubic::{ALPHA as CUBIC_ALPHA, BETA as CUBIC_BETA, STEEPNESS as CUBIC_STEEPNESS};
pub use highspeed::HighSpeed;
pub use htcp::Htcp;
pub(crate) use htcp::{increase as htcp_increase, rtt_scale as htcp_rtt_scale};
pub use reno::Reno;
pub use scalable::Scalable;
pub(crate) use scalable::{DECREASE as SCALABLE_DECREASE, INCREASE as SCALABLE_INCREASE};

use super::rtt::RttEstimator;

/// Segments newly acknowledged.
#[derive(Debug, Clone, Copy)]
pub struct AckEvent<'a> {
    /// When.
    pub now_ns: u64,
    /// How many.
    pub segments: f64,
    /// Round-trip times, the sample of this event included.
    pub rtt: &'a RttEstimator,
}

/// A congestion control.
pub trait CongestionControl: Debug {
    /// Sees every acknowledgement, in slow start and recovery too.
    fn observe(&mut self, _event: &AckEvent<'_>) {}

    /// The window after an acknowledgement in congestion avoidance.
    fn grow(&mut self, window: f64, event: &AckEvent<'_>) -> f64;

    /// The window after congestion; called at most once per round trip.
    fn reduce(&mut self, now_ns: u64, window: f64) -> f64;

    /// A time-out follows the reduction: slow start begins anew.
    fn restart(&mut self) {}
}

/// The congestion controls by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// [`Reno`].
    Reno,
    /// [`Cubic`].
    Cubic,
    /// [`Htcp`].
    Htcp,
    /// [`HighSpeed`].
    HighSpeed,
    /// [`Scalable`].
    Scalable,
}

impl Control {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Reno,
        Self::Cubic,
        Self::Htcp,
        Self::HighSpeed,
        Self::Scalable,
    ];

    /// The kernel's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Htcp => "htcp",
            Self::HighSpeed => "highspeed",
            Self::Scalable => "scalable",
        }
    }

    /// One that has seen nothing.
    pub fn build(self) -> Box<dyn CongestionControl> {
        match self {
            Self::Reno => Box::new(Reno),
            Self::Cubic => Box::<Cubic>::default(),
            Self::Htcp => Box::<Htcp>::default(),
            Self::HighSpeed => Box::new(HighSpeed),
            Self::Scalable => Box::new(Scalable),
        }
    }
}
