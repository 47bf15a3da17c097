//! Data streams that come in on the control port, each brought to the session it names.

use std::collections::HashMap;
use std::net::TcpStream;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};
use farline_spec::{Failure, FailureKind, RunSpec};
use farline_transport::{session_of_preamble, stream_of_preamble};

use crate::message::SessionId;
use crate::streams::{data_total, first_late};

/// Bytes that tell which stream of which session begins.
pub const NAME_BYTES: usize = 58;
/// Streams that may wait for their session to look: all that one may have, both ways, and its messages.
const MAX_WAITING: usize = 514;

/// Sessions that wait for streams.
#[derive(Debug, Default, Clone)]
pub struct Arrivals(Arc<Mutex<HashMap<[u8; 16], Waiting>>>);

#[derive(Debug)]
struct Waiting {
    data: Sender<TcpStream>,
    messages: Sender<TcpStream>,
    messages_at: Range<u16>,
}

/// What comes for one session, until it is dropped.
#[derive(Debug)]
pub struct Handed {
    /// Data streams.
    pub data: Receiver<TcpStream>,
    /// Message streams of a copy.
    pub messages: Receiver<TcpStream>,
    session: SessionId,
    arrivals: Arrivals,
}

impl Arrivals {
    /// Streams that name `session` are kept for it from now on.
    pub fn expect(&self, session: SessionId, spec: &RunSpec) -> Handed {
        let (data_in, data) = bounded(MAX_WAITING);
        let (messages_in, messages) = bounded(MAX_WAITING);
        let waiting = Waiting {
            data: data_in,
            messages: messages_in,
            messages_at: data_total(spec)..first_late(spec),
        };
        self.waiting().insert(session.0, waiting);
        Handed {
            data,
            messages,
            session,
            arrivals: self.clone(),
        }
    }

    /// Brings a data stream that begins with `name`, nothing of it taken from the socket, to its session.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for one that names no session, or more than it can have: it is closed, since whoever opened
    /// it has no business here.
    pub fn deliver(&self, socket: TcpStream, name: &[u8; NAME_BYTES]) -> Result<(), Failure> {
        let missing = || {
            Failure::new(
                FailureKind::Protocol,
                "a data stream that no session is waiting for",
            )
        };
        let session = session_of_preamble(name).ok_or_else(missing)?;
        let stream = stream_of_preamble(name).ok_or_else(missing)?;
        let all = self.waiting();
        let waiting = all.get(&session).ok_or_else(missing)?;
        let way = match waiting.messages_at.contains(&stream) {
            false => &waiting.data,
            true => &waiting.messages,
        };
        way.try_send(socket).map_err(|_| missing())
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<[u8; 16], Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        self.arrivals.waiting().remove(&self.session.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    fn opened(first: &[u8]) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.write_all(first).unwrap();
        (near, listener.accept().unwrap().0)
    }

    fn preamble(session: u8, stream: u16) -> Vec<u8> {
        let mut bytes = b"farline\x01".to_vec();
        bytes.extend([session; 16]);
        bytes.extend([9; 32]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend([0; 6]);
        bytes
    }

    fn name(session: u8, stream: u16) -> [u8; NAME_BYTES] {
        preamble(session, stream)[..NAME_BYTES].try_into().unwrap()
    }

    fn copy() -> RunSpec {
        farline_spec::from_json(r#"{"streams":2,"copy":{"sources":["s"],"destination":"d"}}"#).unwrap()
    }

    #[test]
    fn streams_are_brought_to_the_session_they_name_with_nothing_taken_from_them() {
        let arrivals = Arrivals::default();
        let one = arrivals.expect(SessionId([1; 16]), &copy());
        let two = arrivals.expect(SessionId([2; 16]), &copy());
        for (session, stream) in [(1, 0), (2, 1), (2, 2), (2, 3), (2, 4)] {
            let (_near, far) = opened(&preamble(session, stream));
            arrivals.deliver(far, &name(session, stream)).unwrap();
        }
        let waiting = [&one.data, &one.messages, &two.data, &two.messages].map(Receiver::len);
        assert_eq!(waiting, [1, 0, 2, 2], "one that comes later carries data");
        let mut first = [0; 8];
        two.messages.recv().unwrap().peek(&mut first).unwrap();
        assert_eq!(&first, b"farline\x01");
    }

    #[test]
    fn a_stream_of_no_session_is_refused() {
        let arrivals = Arrivals::default();
        drop(arrivals.expect(SessionId([1; 16]), &copy()));
        let (_near, far) = opened(&preamble(1, 0));
        let refusal = arrivals.deliver(far, &name(1, 0)).unwrap_err();
        assert_eq!(refusal.kind, FailureKind::Protocol);
    }
}
