//! Changes of a copy while it runs, as the client's driver does them.

use std::time::{Duration, Instant};

use farline_spec::{Adjustment, CopyStages, Failure, FailureKind};
use tracing::debug;

use super::super::emit;
use super::Driver;
use crate::client::Event;
use crate::client::connect::{StreamPlan, Way};
use crate::machine::{KnobChange, LocalChange};
use crate::message::Listeners;
use crate::run::OwnStages;
use crate::tls::StreamKeys;

/// Changes of one copy that its record keeps, at most.
const MOST_ADJUSTMENTS: usize = 10_000;

impl Driver<'_> {
    /// Does at this end what the server has taken: opens streams, and what else a sending end does.
    pub(super) fn change(&mut self, change: &LocalChange) -> Result<(), Failure> {
        self.seat.change(change);
        let Some((first, count)) = change.open else {
            return Ok(());
        };
        let missing = || Failure::new(FailureKind::Internal, "a copy without listeners");
        let session = self.session.ok_or_else(missing)?;
        let spec = self.machine.spec().clone();
        let keys = StreamKeys::new(self.channel.tls(), session)?;
        let allowed = Duration::from_millis(spec.connect_timeout_ms.get().into());
        let plan = StreamPlan {
            keys: (first..first + count).map(|stream| keys.key(stream)).collect(),
            spec,
            way: Way::ToServer {
                server: self.server,
                listeners: Listeners {
                    listeners: change.listeners.clone(),
                    messages_port: None,
                    is_vacant: false,
                },
            },
            deadline: Instant::now() + allowed,
        };
        debug!(
            first_stream = first,
            count, "streams are opened while the copy runs"
        );
        self.seat
            .open_late(count, move |sink, cancelled| plan.open_late(cancelled, sink))
    }

    /// Says what came of a wish, and keeps it for the record.
    pub(super) fn tell_adjusted(&mut self, change: KnobChange) {
        let KnobChange {
            knob,
            before,
            after,
            refused,
        } = change;
        let since = self.run_zero.map_or(Duration::ZERO, |zero| zero.elapsed());
        let adjustment = Adjustment {
            at_us: u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
            knob,
            before,
            after,
            refused,
        };
        debug!(?adjustment, "copy adjusted");
        emit(self.events, Event::Adjusted(adjustment.clone()));
        if self.adjustments.len() < MOST_ADJUSTMENTS {
            self.adjustments.push(adjustment);
        }
    }

    /// How far both ends are, as far as the other has said.
    pub(super) fn tell_stages(&self, own: &OwnStages) {
        let (streams, opening) = self.machine.streams();
        let (own_figures, far) = (Some(own.figures), self.far_stages);
        let (sender, receiver) = match own.sends {
            true => (own_figures, far),
            false => (far, own_figures),
        };
        let stages = CopyStages {
            at_us: own.at_us,
            streams: streams.into(),
            opening_streams: opening.into(),
            read_bytes: sender.map(|end| end.file_bytes),
            sent_bytes: sender.map(|end| end.moved_bytes),
            received_bytes: receiver.map(|end| end.moved_bytes),
            written_bytes: receiver.map(|end| end.file_bytes),
            send_queue_frames: sender.map(|end| end.queued_frames),
            send_room_frames: sender.map(|end| end.room_frames),
            receive_queue_frames: receiver.map(|end| end.queued_frames),
            receive_room_frames: receiver.map(|end| end.room_frames),
            retransmits: sender.map(|end| end.retransmits),
        };
        emit(self.events, Event::Stages(stages));
    }
}
