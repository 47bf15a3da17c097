//! Blocks of our own making over a stream of bytes: measuring for protocols that offer nothing better.

use std::sync::Arc;
use std::time::Instant;

use farline_spec::{Failure, Granted, RunSpec};
use farline_sys::page_buffer::PageBuffer;

use crate::payload::{MAX_PAYLOAD_BYTES, payload};
use crate::{ByteStream, PayloadSink, PayloadSource, Probe, Received, Role, Stream, StreamEnd, StreamReport};

/// `stream`, whose number is `number`, as what `spec` opens it for.
pub(crate) fn over(stream: Box<dyn ByteStream>, spec: &RunSpec, role: Role, number: u16) -> Stream {
    if spec.copy.is_some() {
        return Stream::Bytes(stream);
    }
    let block = spec.block_bytes.map_or(131_072, |block| {
        usize::try_from(block.get()).unwrap_or(usize::MAX)
    });
    match role {
        Role::Sender => Stream::Source(Box::new(Generated {
            stream,
            payload: payload(spec.seed, number, block.min(MAX_PAYLOAD_BYTES)),
            block,
            offset: 0,
        })),
        Role::Receiver => Stream::Sink(Box::new(Drained {
            stream,
            buffer: PageBuffer::new(block.min(MAX_PAYLOAD_BYTES)),
            kept: 0,
        })),
    }
}

/// Sends the payload over and over.
struct Generated {
    stream: Box<dyn ByteStream>,
    payload: Box<[u8]>,
    block: usize,
    /// Where in the payload the next byte lies.
    offset: usize,
}

impl PayloadSource for Generated {
    fn send_block(&mut self, limit: usize) -> Result<usize, Failure> {
        // What a time slice cut short is completed first, so that blocks begin where the payload begins.
        let to_end = self.payload.len() - self.offset;
        let whole = if self.offset == 0 { self.block } else { to_end };
        let wanted = whole.min(limit);
        let mut taken = 0;
        while taken < wanted {
            let end = self.payload.len().min(self.offset + (wanted - taken));
            let sent = self.stream.send(&self.payload[self.offset..end])?;
            self.offset = (self.offset + sent) % self.payload.len();
            taken += sent;
            if sent == 0 {
                break;
            }
        }
        Ok(taken)
    }
}

/// Receives into the same memory over and over.
struct Drained {
    stream: Box<dyn ByteStream>,
    buffer: PageBuffer,
    /// Bytes of the last call.
    kept: usize,
}

impl PayloadSink for Drained {
    fn receive_block(&mut self) -> Result<Received, Failure> {
        self.kept = 0;
        let received = self.stream.receive(&mut self.buffer)?;
        if let Received::Bytes(bytes) = received {
            self.kept = bytes;
        }
        Ok(received)
    }

    fn visit_received(&self, visit: &mut dyn FnMut(&[u8])) {
        visit(&self.buffer[..self.kept]);
    }
}

macro_rules! as_its_stream {
    ($end:ty) => {
        impl StreamEnd for $end {
            fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure> {
                self.stream.finish_sending(deadline)
            }

            fn probe(&self) -> Arc<dyn Probe> {
                self.stream.probe()
            }

            fn granted(&self) -> Granted {
                self.stream.granted()
            }

            fn report(&self) -> StreamReport {
                self.stream.report()
            }
        }
    };
}

as_its_stream!(Generated);
as_its_stream!(Drained);
