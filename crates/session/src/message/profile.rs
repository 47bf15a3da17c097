//! The server's profile: what it measured, cut into frames and put together again.

use farline_spec::{
    EndReport, Failure, FailureKind, InterfaceFacts, MoverSamples, RunSpec, SAMPLE_COLUMNS, Samples,
    StreamRecord,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::frame::MAX_FRAME_BYTES;
use super::{tame_failure, tame_line};
use crate::copy::for_the_wire;
use crate::streams;

/// Rows of samples that one end may send over. A spec that would make more is refused beforehand.
pub const MAX_ROWS: usize = 2_000_000;

/// Rows in one frame: columns of at most 21 characters each, and their names, stay under the frame's limit.
const ROWS_PER_FRAME: usize = MAX_FRAME_BYTES / (24 * SAMPLE_COLUMNS.len());
const STREAMS_PER_FRAME: usize = 32;
const INTERFACES_PER_FRAME: usize = 16;
const MAX_INTERFACES: usize = 65_536;

/// What the run came to at the server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerProfile {
    /// Host, versions, CPU time.
    pub report: EndReport,
    /// One record per stream.
    pub streams: Vec<StreamRecord>,
    /// Every row of samples.
    pub samples: Samples,
    /// Every row about the files of a copy.
    pub mover_samples: MoverSamples,
    /// What went wrong at the server's end of the run.
    pub failure: Option<Failure>,
}

/// One frame's worth of a [`ServerProfile`]; `End` is the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfilePart {
    /// Rows of samples.
    Samples(Box<Samples>),
    /// Rows about the files of a copy.
    #[serde(rename = "mover_samples")]
    MoverSamples(Box<MoverSamples>),
    /// Records of streams.
    Streams(Vec<StreamRecord>),
    /// Interfaces of the host.
    Interfaces(Vec<InterfaceFacts>),
    /// Everything else; nothing follows.
    End(Box<ProfileEnd>),
}

/// Last part of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileEnd {
    /// Host (without its interfaces, which went before), versions, CPU time.
    pub report: EndReport,
    /// What went wrong at the server's end of the run.
    pub failure: Option<Failure>,
}

impl ServerProfile {
    /// The parts, in the order in which they are sent.
    pub fn into_parts(mut self) -> Vec<ProfilePart> {
        let mut parts: Vec<_> = cut_samples(self.samples)
            .into_iter()
            .map(|some| ProfilePart::Samples(Box::new(some)))
            .collect();
        parts.extend(
            cut_mover_samples(self.mover_samples)
                .into_iter()
                .map(|some| ProfilePart::MoverSamples(Box::new(some))),
        );
        parts.extend(
            self.streams
                .chunks(STREAMS_PER_FRAME)
                .map(|some| ProfilePart::Streams(some.to_vec())),
        );
        let interfaces = std::mem::take(&mut self.report.host.interfaces);
        let some_each = interfaces.chunks(INTERFACES_PER_FRAME);
        parts.extend(some_each.map(|some| ProfilePart::Interfaces(some.to_vec())));
        self.report.copy = self.report.copy.map(for_the_wire);
        let end = ProfileEnd {
            report: self.report,
            failure: self.failure,
        };
        parts.push(ProfilePart::End(Box::new(end)));
        parts
    }
}

/// Cuts from the back, so that no row is moved twice.
fn cut_samples(mut rest: Samples) -> Vec<Samples> {
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let start = (rest.len() - 1) / ROWS_PER_FRAME * ROWS_PER_FRAME;
        pieces.push(rest.split_off(start));
    }
    pieces.reverse();
    pieces
}

/// As [`cut_samples`]; these rows are shorter, so as many of them fit.
fn cut_mover_samples(mut rest: MoverSamples) -> Vec<MoverSamples> {
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let start = (rest.len() - 1) / ROWS_PER_FRAME * ROWS_PER_FRAME;
        pieces.push(rest.split_off(start));
    }
    pieces.reverse();
    pieces
}

/// Puts a profile together from its parts and holds the sender to what the spec allows.
#[derive(Debug)]
pub struct ProfileAssembler {
    profile: ServerProfile,
    interfaces: Vec<InterfaceFacts>,
    stream_total: usize,
    is_copy: bool,
}

impl ProfileAssembler {
    /// For the profile of a run of `spec`.
    pub fn new(spec: &RunSpec) -> Self {
        Self {
            profile: ServerProfile::default(),
            interfaces: Vec::new(),
            stream_total: streams::total(spec),
            is_copy: spec.copy.is_some(),
        }
    }

    /// Streams up to number `total` may have come while the copy ran.
    pub fn expect_streams(&mut self, total: usize) {
        self.stream_total = self.stream_total.max(total);
    }

    /// Takes one part; gives the whole profile with the last one.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for an empty part, too many of a kind, ragged columns, or
    /// rows and records of an end or a stream that the sender does not have.
    pub fn add(&mut self, part: ProfilePart) -> Result<Option<ServerProfile>, Failure> {
        match part {
            ProfilePart::Samples(samples) => self.add_samples(*samples)?,
            ProfilePart::MoverSamples(samples) => self.add_mover_samples(*samples)?,
            ProfilePart::Streams(streams) => self.add_streams(streams)?,
            ProfilePart::Interfaces(some) => {
                within("interfaces", some.len(), self.interfaces.len(), MAX_INTERFACES)?;
                self.interfaces.extend(some);
            }
            ProfilePart::End(end) => {
                let failure = end.failure.clone();
                let end = ProfileEnd {
                    failure,
                    ..tamed(*end)?
                };
                return Ok(Some(self.close(end)));
            }
        }
        Ok(None)
    }

    fn add_samples(&mut self, mut samples: Samples) -> Result<(), Failure> {
        within(
            "rows of samples",
            samples.len(),
            self.profile.samples.len(),
            MAX_ROWS,
        )?;
        let known = |stream: &i64| usize::try_from(*stream).is_ok_and(|stream| stream < self.stream_total);
        let own = samples.end.iter().all(|&end| end == 1) && samples.stream.iter().all(known);
        if !samples.is_rectangular() || !own {
            return Err(broken(
                "samples with columns of different lengths, or of an unknown stream",
            ));
        }
        self.profile.samples.append(&mut samples);
        Ok(())
    }

    fn add_mover_samples(&mut self, mut samples: MoverSamples) -> Result<(), Failure> {
        within(
            "rows about files",
            samples.len(),
            self.profile.mover_samples.len(),
            MAX_ROWS,
        )?;
        let own =
            samples.end.iter().all(|&end| end == 1) && samples.role.iter().all(|role| (0..2).contains(role));
        if !samples.is_rectangular() || !own || !self.is_copy {
            return Err(broken(
                "file rows with columns of different lengths, or without a copy",
            ));
        }
        self.profile.mover_samples.append(&mut samples);
        Ok(())
    }

    fn add_streams(&mut self, streams: Vec<StreamRecord>) -> Result<(), Failure> {
        within(
            "records of streams",
            streams.len(),
            self.profile.streams.len(),
            self.stream_total,
        )?;
        if !streams
            .iter()
            .all(|record| record.end == 1 && (record.stream as usize) < self.stream_total)
        {
            return Err(broken("the record of a stream that does not exist"));
        }
        self.profile.streams.extend(tamed(streams)?);
        Ok(())
    }

    fn close(&mut self, end: ProfileEnd) -> ServerProfile {
        let mut profile = std::mem::take(&mut self.profile);
        profile.report = end.report;
        profile.report.copy = profile.report.copy.filter(|_| self.is_copy).map(for_the_wire);
        profile.report.host.interfaces = std::mem::take(&mut self.interfaces);
        profile.failure = end.failure.map(tame_failure);
        profile
    }
}

/// What the other end says of itself, with every text in it made plain.
fn tamed<T: Serialize + DeserializeOwned>(said: T) -> Result<T, Failure> {
    let bad = |error: serde_json::Error| broken(&tame_line(&format!("an invalid profile: {error}")));
    let mut value = serde_json::to_value(said).map_err(bad)?;
    tame_all(&mut value);
    serde_json::from_value(value).map_err(bad)
}

fn tame_all(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => *text = tame_line(text),
        serde_json::Value::Array(all) => all.iter_mut().for_each(tame_all),
        serde_json::Value::Object(all) => all.values_mut().for_each(tame_all),
        _ => {}
    }
}

fn within(what: &str, more: usize, before: usize, allowed: usize) -> Result<(), Failure> {
    if more == 0 {
        return Err(broken(&format!("a part without {what}")));
    }
    if more > allowed - before {
        return Err(broken(&format!(
            "over {} {what}; allowed: {allowed}",
            before + more - 1
        )));
    }
    Ok(())
}

fn broken(what: &str) -> Failure {
    Failure::new(
        FailureKind::Protocol,
        format!("collecting results: the other end sent {what}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ServerMessage;
    use crate::message::frame::encode;
    use std::collections::HashMap;

    fn rows(count: usize, stream: i64, value: i64) -> Samples {
        let column = |name| match name {
            "end" => vec![1; count],
            "stream" => vec![stream; count],
            _ => vec![value; count],
        };
        let columns: HashMap<_, _> = SAMPLE_COLUMNS.iter().map(|c| (c.name, column(c.name))).collect();
        serde_json::from_value(serde_json::to_value(columns).unwrap()).unwrap()
    }

    fn whole() -> ServerProfile {
        let record = |stream| StreamRecord {
            stream,
            end: 1,
            ..StreamRecord::default()
        };
        let mut profile = ServerProfile {
            samples: rows(4000, 0, i64::MIN),
            ..ServerProfile::default()
        };
        profile.streams = vec![record(0)];
        profile.report.host.interfaces = vec![InterfaceFacts::default(); 40];
        profile.failure = Some(Failure::new(FailureKind::System, "disk"));
        profile
    }

    #[test]
    fn parts_fit_in_frames_and_come_together_again() {
        let mut assembler = ProfileAssembler::new(&RunSpec::default());
        let mut parts = whole().into_parts();
        let last = parts.pop().unwrap();
        for part in parts {
            encode(&ServerMessage::ExchangeProfile(part.clone())).unwrap();
            assert_eq!(assembler.add(part).unwrap(), None);
        }
        let mut expected = whole();
        expected.failure = expected.failure.map(tame_failure);
        assert_eq!(assembler.add(last).unwrap(), Some(expected));
    }

    #[test]
    fn rows_of_another_end_or_stream_are_refused() {
        let refused = |samples| {
            ProfileAssembler::new(&RunSpec::default())
                .add(ProfilePart::Samples(Box::new(samples)))
                .is_err()
        };
        assert!(refused(rows(1, 1, 0)) && refused(rows(1, -1, 0)));
        assert!(refused(Samples {
            end: vec![1],
            ..Samples::default()
        }));
        let mut foreign = rows(1, 0, 0);
        foreign.end[0] = 0;
        assert!(refused(foreign));
    }

    #[test]
    fn nothing_may_be_sent_for_ever() {
        let mut assembler = ProfileAssembler::new(&RunSpec::default());
        let record = StreamRecord {
            end: 1,
            ..StreamRecord::default()
        };
        assert!(assembler.add(ProfilePart::Streams(vec![record.clone()])).is_ok());
        let refusal = assembler.add(ProfilePart::Streams(vec![record])).unwrap_err();
        assert!(refusal.message.contains("allowed: 1"), "{refusal}");
        for empty in [
            ProfilePart::Samples(Box::default()),
            ProfilePart::Interfaces(vec![]),
        ] {
            assert!(assembler.add(empty).is_err());
        }
    }

    #[test]
    fn rows_are_bounded() {
        let mut assembler = ProfileAssembler::new(&RunSpec::default());
        let some = rows(100_000, 0, 1);
        for _ in 0..MAX_ROWS / 100_000 {
            assembler
                .add(ProfilePart::Samples(Box::new(some.clone())))
                .unwrap();
        }
        assert!(
            assembler
                .add(ProfilePart::Samples(Box::new(rows(1, 0, 1))))
                .is_err()
        );
    }
}
