//! The memory of an application that wants its bytes for itself: what app_perf adds to iperf (He et al. 2002,
//! section 3), one more copy behind the kernel's.

use farline_spec::{RunSpec, UdpReceiveMode};
use farline_sys::datagram::RECEIVE_BYTES;

use farline_sys::page_buffer::PageBuffer;

/// Most memory that an application has here. Bounds what a client can make a server allocate.
const MOST_BYTES: usize = 4 << 20;

/// A block of memory that payloads are copied into, one behind the other, over and over.
pub(super) struct Application {
    memory: PageBuffer,
    /// Where the last batch begins.
    first: usize,
    /// Where the next payload goes.
    next: usize,
}

impl Application {
    /// Memory for one block, if `spec` asks for the copy; never less than one batch.
    pub(super) fn of(spec: &RunSpec) -> Option<Self> {
        let options = spec.udp.as_ref()?;
        if options.receive_mode != UdpReceiveMode::Copy {
            return None;
        }
        let block = spec.block_bytes.map_or(0, |block| block.get());
        let block = usize::try_from(block).unwrap_or(MOST_BYTES);
        Some(Self {
            memory: PageBuffer::new(block.clamp(RECEIVE_BYTES, MOST_BYTES)),
            first: 0,
            next: 0,
        })
    }

    /// A batch of at most [`RECEIVE_BYTES`] follows; it goes to the beginning if the rest is too short for it.
    pub(super) fn begin_batch(&mut self) {
        if self.memory.len() - self.next < RECEIVE_BYTES {
            self.next = 0;
        }
        self.first = self.next;
    }

    /// Copies one payload of the batch.
    #[inline]
    pub(super) fn put(&mut self, payload: &[u8]) {
        let end = self.next + payload.len();
        self.memory[self.next..end].copy_from_slice(payload);
        self.next = end;
    }

    /// The batch is whole. The copy is what is measured: it must happen although nobody may read it.
    pub(super) fn end_batch(&mut self) {
        std::hint::black_box(&mut self.memory);
    }

    /// Payloads of the last batch, one behind the other.
    pub(super) fn last(&self) -> &[u8] {
        &self.memory[self.first..self.next]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application(fields: &str) -> Option<Application> {
        let spec = farline_spec::from_json::<RunSpec>(&format!(r#"{{"transport":"udp",{fields}}}"#));
        Application::of(&spec.unwrap().resolved().unwrap())
    }

    #[test]
    fn memory_is_there_only_for_the_copy_and_holds_a_block_within_limits() {
        assert!(application(r#""block_bytes":100000"#).is_none());
        let bytes = |block: u64| {
            let fields = format!(r#""block_bytes":{block},"udp":{{"receive_mode":"copy"}}"#);
            application(&fields).unwrap().memory.len()
        };
        assert_eq!(
            [1_000, 1_000_000, 9_000_001].map(bytes),
            [RECEIVE_BYTES, 1_000_000, MOST_BYTES]
        );
    }

    #[test]
    fn batches_follow_each_other_and_none_runs_over_the_end() {
        let mut memory = application(r#""block_bytes":150000,"udp":{"receive_mode":"copy"}"#).unwrap();
        for round in 0..40u8 {
            memory.begin_batch();
            for piece in 0..44u8 {
                memory.put(&[round ^ piece; 1_440]);
            }
            memory.end_batch();
            let last = memory.last();
            assert_eq!(last.len(), 44 * 1_440);
            let is_whole =
                |(piece, bytes): (usize, &[u8])| bytes.iter().all(|&byte| byte == round ^ piece as u8);
            assert!(last.chunks(1_440).enumerate().all(is_whole), "round {round}");
        }
    }
}
