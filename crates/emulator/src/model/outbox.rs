//! What pipes have to tell besides arrivals.

use super::network::{TooBig, Watched};
use super::transit::Transit;

/// Reports of too small an MTU that are kept for the next call; more are counted, not reported.
const REPORTS: usize = 4096;

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
