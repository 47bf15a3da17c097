//! Both ends of a copy, driven as a session drives them.

use std::sync::Arc;

use farline_mover::{EndSetup, ReceiveEnd};
use farline_spec::{CopyReport, CopySpec, Failure};

use super::{Into, OutOf, Sent, Weather, drive_sender, link, setup};
use farline_mover::SendEnd;

/// What a copy came to.
pub struct Ended {
    /// The sending end.
    pub sent: Sent,
    /// The first failure of the receiving end.
    pub outcome: Result<(), Failure>,
    /// The receiving end's report.
    pub received: CopyReport,
}

impl Ended {
    /// Nothing failed, at neither end.
    pub fn assert_well(&self) {
        self.sent.outcome.as_ref().expect("a sending end that goes well");
        self.outcome.as_ref().expect("a receiving end that goes well");
        assert_eq!(self.sent.report.failures, []);
        assert_eq!(self.received.failures, []);
    }
}

/// Runs one copy until both ends have returned.
pub fn copy(spec: &CopySpec, streams: u16, weather: &Arc<Weather>) -> Ended {
    copy_from(setup(spec, streams, None), weather)
}

/// The same, by a sending end that is set up so.
pub fn copy_from(sends: EndSetup, weather: &Arc<Weather>) -> Ended {
    let (spec, streams) = (&sends.spec.clone(), sends.streams);
    let sender = SendEnd::start(sends).expect("a sending end");
    let receiver = ReceiveEnd::start(setup(spec, streams, None)).expect("a receiving end");
    let (data_into, data_out_of): (Vec<Into>, Vec<OutOf>) = (0..streams).map(|_| link(weather)).unzip();
    let (catalogue_into, mut catalogue_out_of) = link(weather);
    let (mut feedback_into, feedback_out_of) = link(weather);
    let receiver = &receiver;
    let (sent, outcome) = std::thread::scope(|scope| {
        let mut jobs = Vec::new();
        for (stream, mut inlet) in (0_u16..).zip(data_out_of) {
            inlet.stream = Some(stream);
            jobs.push(scope.spawn(move || stop_all(receiver, receiver.data(stream, &mut inlet))));
        }
        jobs.push(scope.spawn(move || stop_all(receiver, receiver.catalogue(&mut catalogue_out_of))));
        jobs.push(scope.spawn(move || stop_all(receiver, receiver.feedback(&mut feedback_into))));
        let sent = drive_sender(&sender, data_into, catalogue_into, feedback_out_of);
        let outcomes = jobs
            .into_iter()
            .map(|job| job.join().expect("a job that panicked"));
        (sent, outcomes.fold(Ok(()), Result::and))
    });
    Ended {
        sent,
        outcome,
        received: receiver.finish().expect("a receipt"),
    }
}

fn stop_all(end: &ReceiveEnd, outcome: Result<(), Failure>) -> Result<(), Failure> {
    if let Err(failure) = &outcome {
        end.abort(failure);
    }
    outcome
}
