//! What sessions of one server must know of each other: who does which copy.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use farline_spec::{CopySpec, Failure, FailureKind};

use crate::channel::Interrupt;

/// Time for an older session of the same copy to end.
const HANDOVER: Duration = Duration::from_secs(5);

/// One copy into one folder of this server, from one place: whoever comes with the same again comes instead.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CopyName {
    /// As the client says; by its address where it does not.
    origin: Result<String, IpAddr>,
    root: String,
    sources: Vec<String>,
    source_list: Option<String>,
    filters: Vec<String>,
    destination: String,
}

impl CopyName {
    /// Of what `client` copies to below `root`.
    pub fn new(client: IpAddr, root: &str, copy: &CopySpec) -> Self {
        Self {
            origin: copy.origin.clone().ok_or(client),
            root: root.to_owned(),
            sources: copy.sources.clone(),
            source_list: copy.source_list.clone(),
            filters: copy.filters.clone(),
            destination: copy.destination.clone(),
        }
    }
}

/// Copies into this server that go on.
#[derive(Debug, Default, Clone)]
pub struct Register(Arc<Book>);

#[derive(Debug, Default)]
struct Book {
    copies: Mutex<HashMap<CopyName, Holder>>,
    ended: Condvar,
}

#[derive(Debug, Clone)]
struct Holder {
    interrupt: Interrupt,
    replaced: Arc<AtomicBool>,
}

/// A copy that one session does; free again when dropped.
#[derive(Debug)]
pub struct Claim {
    name: CopyName,
    register: Register,
    replaced: Arc<AtomicBool>,
}

impl Register {
    /// Takes `name` for the session that `interrupt` ends. An older session of the same copy is ended first: its client
    /// has lost it, or would not ask again.
    ///
    /// # Errors
    /// [`FailureKind::Busy`] when the older one has not ended within five seconds.
    pub fn claim(&self, name: CopyName, interrupt: &Interrupt) -> Result<Claim, Failure> {
        let mut copies = self.0.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(older) = copies.get(&name) {
            older.replaced.store(true, Ordering::Release);
            older.interrupt.raise();
        }
        let is_held = |copies: &mut HashMap<_, _>| copies.contains_key(&name);
        let waited = self.0.ended.wait_timeout_while(copies, HANDOVER, is_held);
        copies = waited.unwrap_or_else(PoisonError::into_inner).0;
        if copies.contains_key(&name) {
            let mut busy = Failure::new(
                FailureKind::Busy,
                "the server is busy: an older session of this copy has not ended yet",
            );
            busy.retry_after_s = Some(1.0);
            return Err(busy);
        }
        let replaced = Arc::<AtomicBool>::default();
        let holder = Holder {
            interrupt: interrupt.clone(),
            replaced: Arc::clone(&replaced),
        };
        copies.insert(name.clone(), holder);
        Ok(Claim {
            name,
            register: self.clone(),
            replaced,
        })
    }
}

impl Claim {
    /// Why the session was ended, if a newer one took its place.
    pub fn replaced(&self) -> Option<Failure> {
        let line = "a newer session of the same copy replaced this one";
        let is_replaced = self.replaced.load(Ordering::Acquire);
        is_replaced.then(|| Failure::new(FailureKind::Limit, line))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let book = &self.register.0;
        book.copies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.name);
        book.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(destination: &str) -> CopyName {
        name_of("127.0.0.1", |copy| copy.destination = destination.to_owned())
    }

    fn name_of(client: &str, change: impl FnOnce(&mut CopySpec)) -> CopyName {
        let mut copy = CopySpec::default();
        change(&mut copy);
        CopyName::new(client.parse().unwrap(), "/", &copy)
    }

    #[test]
    fn the_same_copy_is_one_from_the_same_place_of_the_same_names() {
        let from = |origin: &str| {
            let origin = origin.to_owned();
            move |copy: &mut CopySpec| copy.origin = Some(origin)
        };
        let first = name_of("127.0.0.1", from("a"));
        assert_eq!(
            first,
            name_of("10.0.0.1", from("a")),
            "its address may have changed"
        );
        let others = [
            name_of("127.0.0.1", from("b")),
            name_of("127.0.0.1", |_| ()),
            name_of("127.0.0.1", |copy| {
                from("a")(copy);
                copy.filters = vec!["- *.o".to_owned()];
            }),
            name_of("127.0.0.1", |copy| {
                from("a")(copy);
                copy.source_list = Some("list".to_owned());
            }),
        ];
        assert!(others.iter().all(|other| *other != first));
        assert_ne!(name_of("127.0.0.1", |_| ()), name_of("127.0.0.2", |_| ()));
    }

    #[test]
    fn a_newer_session_of_the_same_copy_ends_the_older_and_waits_for_it() {
        let register = Register::default();
        let (older, newer) = (Interrupt::new().unwrap(), Interrupt::new().unwrap());
        let first = register.claim(name("a"), &older).unwrap();
        assert_eq!(first.replaced(), None);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| register.claim(name("a"), &newer));
            while !older.is_raised() {
                std::thread::yield_now();
            }
            assert_eq!(first.replaced().unwrap().kind, FailureKind::Limit);
            drop(first);
            assert!(second.join().unwrap().is_ok());
        });
        assert!(!newer.is_raised());
    }

    #[test]
    fn copies_to_other_places_do_not_disturb_each_other() {
        let register = Register::default();
        let interrupt = Interrupt::new().unwrap();
        let first = register.claim(name("a"), &interrupt).unwrap();
        let _second = register.claim(name("b"), &interrupt).unwrap();
        assert!(first.replaced().is_none() && !interrupt.is_raised());
        drop(first);
        assert!(register.claim(name("a"), &interrupt).is_ok());
    }
}
