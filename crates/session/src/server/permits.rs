//! Threads for clients that have not been admitted: how many, whose, and who gives way.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind};
use farline_transport::{Crowd, Shares};

use crate::channel::Interrupt;

/// Clients whose handshake goes on at once.
const MOST: usize = 64;
/// A handshake that lasts longer is slow: it gives way to whoever waits, whoever that is.
const SLOW: Duration = Duration::from_secs(1);

/// The handshakes that go on.
#[derive(Debug, Clone)]
pub struct Permits {
    held: Arc<Mutex<Held>>,
    /// Wakes whoever gives permits out.
    bell: Interrupt,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    crowd: Crowd<Holder>,
}

#[derive(Debug)]
struct Holder {
    number: u64,
    since: Instant,
    interrupt: Interrupt,
}

/// The right of one client to a thread before it is admitted; given back when dropped.
#[derive(Debug)]
pub struct HandshakePermit {
    number: u64,
    permits: Permits,
}

impl Permits {
    /// None is taken; `bell` is rung when one is given back.
    pub fn new(bell: Interrupt) -> Self {
        Self {
            held: Arc::default(),
            bell,
        }
    }

    /// How many the host of `peer` holds.
    pub fn of_host(&self, peer: SocketAddr) -> usize {
        self.held().crowd.of_host(peer.ip())
    }

    /// Whether [`Self::take`] would give one to `peer` now.
    pub fn has_one_for(&self, peer: SocketAddr, now: Instant) -> bool {
        let held = self.held();
        held.has_room(peer) || held.who_gives_way(peer, now).is_some()
    }

    /// A permit for the client at `peer`, whom `interrupt` ends. If all are taken, the oldest of the host with the most is
    /// ended for it: if that host has more than one more than this one, or if it is slow.
    pub fn take(&self, peer: SocketAddr, interrupt: &Interrupt, now: Instant) -> Option<HandshakePermit> {
        let mut held = self.held();
        if !held.has_room(peer) {
            let index = held.who_gives_way(peer, now)?;
            held.crowd.remove(index).interrupt.raise();
        }
        let number = held.enter(peer, interrupt, now);
        drop(held);
        Some(self.permit(number))
    }

    /// A permit beyond all shares, for a client that this server connected to.
    pub fn invited(&self, peer: SocketAddr, interrupt: &Interrupt) -> HandshakePermit {
        let number = self.held().enter(peer, interrupt, Instant::now());
        self.permit(number)
    }

    fn permit(&self, number: u64) -> HandshakePermit {
        HandshakePermit {
            number,
            permits: self.clone(),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn enter(&mut self, peer: SocketAddr, interrupt: &Interrupt, now: Instant) -> u64 {
        self.next += 1;
        let holder = Holder {
            number: self.next,
            since: now,
            interrupt: interrupt.clone(),
        };
        self.crowd.join(peer.ip(), holder);
        self.next
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.crowd.iter().position(|holder| holder.number == number)
    }

    fn has_room(&self, peer: SocketAddr) -> bool {
        let shares = Shares::of(MOST);
        self.crowd.len() < shares.total && self.crowd.of_host(peer.ip()) < shares.host
    }

    fn who_gives_way(&self, peer: SocketAddr, now: Instant) -> Option<usize> {
        let own = self.crowd.of_host(peer.ip());
        let is_slow = |index: usize| {
            self.crowd
                .get(index)
                .is_some_and(|holder| now.saturating_duration_since(holder.since) >= SLOW)
        };
        if own >= Shares::of(MOST).host {
            return self.crowd.oldest_of(peer.ip()).filter(|&index| is_slow(index));
        }
        let index = self.crowd.busiest()?;
        let theirs = self
            .crowd
            .address(index)
            .map_or(0, |address| self.crowd.of_host(address));
        (theirs > own + 1 || is_slow(index)).then_some(index)
    }
}

impl HandshakePermit {
    /// Why its holder has to end, if it had to give way.
    pub fn revoked(&self) -> Option<Failure> {
        let line = "the server is busy: too many clients are starting a session, and this one took longest";
        let mut busy = Failure::new(FailureKind::Busy, line);
        busy.retry_after_s = Some(1.0);
        self.permits
            .held()
            .position(self.number)
            .is_none()
            .then_some(busy)
    }

    /// Gives it back: from now on its holder gives way to nobody.
    ///
    /// # Errors
    /// [`FailureKind::Busy`] when it had to give way already.
    pub fn give_back(self) -> Result<(), Failure> {
        let mut held = self.permits.held();
        let own = held.position(self.number).map(|index| held.crowd.remove(index));
        drop(held);
        self.permits.bell.waker().wake();
        match own {
            Some(_) => Ok(()),
            None => self.revoked().map_or(Ok(()), Err),
        }
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        let mut held = self.permits.held();
        // Somebody else's by now, if this one had to give way.
        if let Some(index) = held.position(self.number) {
            held.crowd.remove(index);
            drop(held);
            self.permits.bell.waker().wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(host: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], 7))
    }

    fn permits() -> Permits {
        Permits::new(Interrupt::new().unwrap())
    }

    #[test]
    fn an_address_has_half_of_them_and_the_next_address_the_other() {
        let (permits, now, own) = (permits(), Instant::now(), Interrupt::new().unwrap());
        let mut held: Vec<_> = (0..MOST / 2)
            .map(|_| permits.take(peer(1), &own, now).unwrap())
            .collect();
        assert!(permits.take(peer(1), &own, now).is_none());
        held.extend((0..MOST / 2).map(|_| permits.take(peer(2), &own, now).unwrap()));
        assert!(!own.is_raised());
        held.clear();
        assert!(permits.take(peer(1), &own, now).is_some());
    }

    #[test]
    fn one_who_comes_alone_ends_the_oldest_of_the_many_at_once() {
        let (permits, now) = (permits(), Instant::now());
        let many: Vec<_> = (0..MOST).map(|_| Interrupt::new().unwrap()).collect();
        let host = |number: usize| peer(1 + (number % 2) as u8);
        let held: Vec<_> = many
            .iter()
            .enumerate()
            .map(|(number, interrupt)| permits.take(host(number), interrupt, now).unwrap())
            .collect();
        let own = Interrupt::new().unwrap();
        let permit = permits.take(peer(9), &own, now).unwrap();
        let ended: Vec<_> = many.iter().map(Interrupt::is_raised).collect();
        assert_eq!(ended.iter().filter(|ended| **ended).count(), 1);
        assert!(ended[0], "the oldest");
        assert!(
            held[0]
                .revoked()
                .is_some_and(|busy| busy.kind == FailureKind::Busy)
        );
        assert!(held[1].revoked().is_none());
        let mut held = held.into_iter();
        assert!(held.next().is_some_and(|first| first.give_back().is_err()));
        assert!(held.next().is_some_and(|second| second.give_back().is_ok()));
        drop(held);
        assert_eq!(
            permits.of_host(peer(9)),
            1,
            "who was ended gives back nothing that is another's"
        );
        drop(permit);
        assert_eq!(permits.of_host(peer(9)), 0);
    }

    #[test]
    fn among_equals_only_the_slow_give_way() {
        let (permits, now, slow) = (permits(), Instant::now(), Interrupt::new().unwrap());
        let own = Interrupt::new().unwrap();
        let _held: Vec<_> = (0..MOST as u8)
            .map(|host| permits.take(peer(host), &slow, now).unwrap())
            .collect();
        assert!(permits.take(peer(200), &own, now + SLOW / 2).is_none() && !slow.is_raised());
        assert!(permits.has_one_for(peer(200), now + SLOW));
        assert!(permits.take(peer(200), &own, now + SLOW).is_some());
        assert!(slow.is_raised());
    }
}
