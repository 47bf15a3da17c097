//! What pipes have to tell besides arrivals.

use super::train::Train;
use super::transit::Transit;

/// Reports of too small an MTU that are kept for the next call; more are counted, not reported.
const REPORTS: usize = 4096;

/// Segments that were larger than a pipe's MTU and were dropped there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooBig<P> {
    /// The port they had been sent from.
    pub from_port: usize,
    /// The MTU they met.
    pub mtu_bytes: u32,
    /// The segments.
    pub train: Train<P>,
}

/// A train that left the wire of a watched pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched<P> {
    /// Number of the pipe.
    pub pipe: usize,
    /// When the last segment left the wire, before the propagation delay.
    pub at_ns: u64,
    /// What left it; packets that were lost are not there.
    pub train: Train<P>,
}

/// Reports and observations that wait to be taken.
#[derive(Debug)]
pub(super) struct Outbox<P> {
    pub(super) too_big: Vec<TooBig<P>>,
    pub(super) watched: Vec<Watched<P>>,
}

impl<P: Clone> Outbox<P> {
    pub(super) fn new() -> Self {
        Self {
            too_big: Vec::new(),
            watched: Vec::new(),
        }
    }

    pub(super) fn report_too_big(&mut self, refused: Transit<P>, mtu_bytes: u32) {
        if self.too_big.len() < REPORTS {
            self.too_big.push(TooBig {
                from_port: refused.from_port as usize,
                mtu_bytes,
                train: refused.train,
            });
        }
    }

    /// Keeps a copy of a train that leaves a wire, if that wire is watched.
    pub(super) fn watch(&mut self, pipe: usize, watched: bool, transit: &Transit<P>) {
        if watched {
            self.watched.push(Watched {
                pipe,
                at_ns: transit.at_ns,
                train: transit.train.clone(),
            });
        }
    }
}
