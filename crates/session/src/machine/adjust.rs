//! Changes of a copy while it runs, as its client keeps them: one under way, the rest of the wishes as one.
//!
//! Pure. In: wishes, answers of the server, streams that were opened or not. Out: messages, what is to be done at this end,
//! and what came of each wish. A later wish for the same thing takes the place of an earlier one that has not gone yet.

use std::collections::VecDeque;

use farline_spec::unit::{FileCount, RateBps};
use farline_spec::{AdjustKnob, AdjustRequest, Failure, FailureKind, RunSpec};

use crate::message::{Adjust, Adjusted, ListenerAddress, tame_line};
use crate::streams::{MOST_LATE, first_late};

/// Outcomes that wait to be told, at most: wishes come faster than anybody hears of them only from a defect.
const MOST_TOLD: usize = 4_096;

/// What came of one knob of a wish; when is the driver's to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnobChange {
    /// What.
    pub knob: AdjustKnob,
    /// Before; nothing where farline chose, or without a limit.
    pub before: Option<u64>,
    /// From then on; nothing without a limit.
    pub after: Option<u64>,
    /// Why not.
    pub refused: Option<String>,
}

/// What the client's end has to do for a change that the server takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalChange {
    /// Number of the first data stream to open, and how many.
    pub open: Option<(u16, u16)>,
    /// Where they go.
    pub listeners: Vec<ListenerAddress>,
    /// Data streams that are to end.
    pub dismiss: u16,
    /// Files sent at once.
    pub concurrency: Option<FileCount>,
    /// Payload rate; 0 is without limit.
    pub total_rate_bps: Option<RateBps>,
}

/// The changes of one copy.
#[derive(Debug)]
pub struct Adjusting {
    /// Data streams in force.
    streams: u16,
    concurrency: Option<u64>,
    rate_bps: Option<u64>,
    /// Wishes that have not gone.
    waiting: AdjustRequest,
    under_way: Option<UnderWay>,
    number: u32,
    /// Streams that may come have numbers from here on.
    next_stream: u16,
    most_stream: u16,
    told: VecDeque<KnobChange>,
}

#[derive(Debug, Clone, Copy)]
struct UnderWay {
    request: AdjustRequest,
    message: Adjust,
    /// The server has taken it; streams are being opened.
    is_opening: bool,
}

impl Adjusting {
    /// For a copy of `spec`.
    pub fn new(spec: &RunSpec) -> Self {
        let copy = spec.copy.as_ref();
        let rate = copy.and_then(|copy| copy.total_rate_bps).map(RateBps::get);
        let next_stream = first_late(spec);
        Self {
            streams: spec.streams.get(),
            concurrency: copy
                .and_then(|copy| copy.concurrency)
                .map(|files| files.get().into()),
            rate_bps: rate.filter(|&rate| rate > 0),
            waiting: AdjustRequest::default(),
            under_way: None,
            number: 0,
            next_stream,
            most_stream: next_stream + MOST_LATE,
            told: VecDeque::new(),
        }
    }

    /// Data streams in force, and those of them that are being opened.
    pub fn streams(&self) -> (u16, u16) {
        let opening = self.under_way.filter(|change| change.is_opening);
        let opening = opening.map_or(0, |change| change.message.open);
        (self.streams, opening)
    }

    /// A change is wanted.
    pub fn want(&mut self, request: AdjustRequest) {
        self.waiting = self.waiting.then(request);
    }

    /// Nothing changes any more: everything that waits is refused with `why`.
    pub fn refuse(&mut self, why: &str) {
        // What the server took is in force, whether this end has seen all of its streams or not.
        self.opened(0, None);
        let waiting = std::mem::take(&mut self.waiting);
        let under_way = self.under_way.take();
        let under_way = under_way.map_or_else(AdjustRequest::default, |change| change.request);
        self.tell_refused(&under_way.then(waiting), why);
    }

    /// The next change to ask the server for, if none is under way and something is wanted that is not so already.
    pub fn next_message(&mut self) -> Option<Adjust> {
        if self.under_way.is_some() || self.waiting.is_empty() {
            return None;
        }
        let request = std::mem::take(&mut self.waiting);
        let wanted = request.streams.map_or(self.streams, |streams| streams.get());
        let message = Adjust {
            number: self.number + 1,
            open: wanted.saturating_sub(self.streams),
            dismiss: self.streams.saturating_sub(wanted),
            concurrency: request.concurrency,
            total_rate_bps: request.total_rate_bps,
        };
        if message.open > self.most_stream - self.next_stream {
            let line = format!("more than {MOST_LATE} streams opened while one copy runs");
            self.tell_refused(&request, &line);
            return self.next_message();
        }
        self.number += 1;
        self.under_way = Some(UnderWay {
            request,
            message,
            is_opening: false,
        });
        Some(message)
    }

    /// The server answered; gives what is to be done here. Nothing for a change that it refused.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for an answer to nothing, or one with numbers of streams that it cannot have.
    pub fn answered(&mut self, answer: Adjusted) -> Result<Option<LocalChange>, Failure> {
        let asked = self
            .under_way
            .filter(|change| change.message.number == answer.number && !change.is_opening);
        let Some(change) = asked else {
            return Err(broken("an answer to a change that was not asked for"));
        };
        if let Some(why) = answer.refused {
            self.under_way = None;
            self.tell_refused(&change.request, &tame_line(&why));
            return Ok(None);
        }
        let open = change.message.open;
        let is_next = answer.first_stream == self.next_stream;
        if open > 0 && !is_next {
            return Err(broken("numbers of streams that are not the next"));
        }
        self.next_stream += open;
        let rate = change
            .message
            .total_rate_bps
            .map(|asked| answer.total_rate_bps.unwrap_or(asked));
        self.take_settings(&change.request, rate);
        if open > 0 {
            self.streams += open;
            self.under_way = Some(UnderWay {
                is_opening: true,
                ..change
            });
        } else {
            self.streams -= change.message.dismiss;
            self.under_way = None;
            self.tell_streams(&change.request, self.streams + change.message.dismiss, None);
        }
        Ok(Some(LocalChange {
            open: (open > 0).then_some((answer.first_stream, open)),
            listeners: answer.listeners,
            dismiss: change.message.dismiss,
            concurrency: change.message.concurrency,
            total_rate_bps: rate,
        }))
    }

    /// The streams of the change under way are open, all but `missing`, which failed with `why`.
    pub fn opened(&mut self, missing: u16, why: Option<&str>) {
        let Some(change) = self.under_way.filter(|change| change.is_opening) else {
            return;
        };
        self.under_way = None;
        let before = self.streams - change.message.open;
        self.streams -= missing.min(change.message.open);
        self.tell_streams(&change.request, before, why.filter(|_| missing > 0));
    }

    /// What came of wishes since the last call, one knob at a time.
    pub fn next_told(&mut self) -> Option<KnobChange> {
        self.told.pop_front()
    }

    fn take_settings(&mut self, request: &AdjustRequest, rate: Option<RateBps>) {
        if let Some(files) = request.concurrency {
            let after = Some(u64::from(files.get()));
            let before = std::mem::replace(&mut self.concurrency, after);
            self.tell(AdjustKnob::Concurrency, before, after, None);
        }
        if let Some(rate) = rate {
            let after = Some(rate.get()).filter(|&rate| rate > 0);
            let before = std::mem::replace(&mut self.rate_bps, after);
            self.tell(AdjustKnob::TotalRate, before, after, None);
        }
    }

    fn tell_streams(&mut self, request: &AdjustRequest, before: u16, why: Option<&str>) {
        let after = Some(u64::from(self.streams));
        if request.streams.is_some() {
            let line = why.map(|why| format!("not all streams could be opened: {why}"));
            self.tell(AdjustKnob::Streams, Some(before.into()), after, line);
        }
    }

    fn tell_refused(&mut self, request: &AdjustRequest, why: &str) {
        let refused = Some(why.to_owned());
        if let Some(streams) = request.streams {
            let before = Some(u64::from(self.streams));
            self.tell(
                AdjustKnob::Streams,
                before,
                Some(streams.get().into()),
                refused.clone(),
            );
        }
        if let Some(files) = request.concurrency {
            let after = Some(files.get().into());
            self.tell(AdjustKnob::Concurrency, self.concurrency, after, refused.clone());
        }
        if let Some(rate) = request.total_rate_bps {
            let after = Some(rate.get()).filter(|&rate| rate > 0);
            self.tell(AdjustKnob::TotalRate, self.rate_bps, after, refused);
        }
    }

    fn tell(&mut self, knob: AdjustKnob, before: Option<u64>, after: Option<u64>, refused: Option<String>) {
        if self.told.len() < MOST_TOLD {
            self.told.push_back(KnobChange {
                knob,
                before,
                after,
                refused,
            });
        }
    }
}

fn broken(what: &str) -> Failure {
    let line = format!("changing the copy: the other end sent {what}");
    Failure::new(FailureKind::Protocol, line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::from_json;
    use proptest::prelude::*;

    fn adjusting(streams: u16) -> Adjusting {
        let text = format!(r#"{{"streams":{streams},"copy":{{"sources":["s"],"destination":"d"}}}}"#);
        Adjusting::new(&from_json(&text).unwrap())
    }

    fn wish(text: &str) -> AdjustRequest {
        from_json(text).unwrap()
    }

    fn yes(message: &Adjust, first_stream: u16) -> Adjusted {
        Adjusted {
            number: message.number,
            first_stream,
            ..Adjusted::default()
        }
    }

    fn told(adjusting: &mut Adjusting) -> Vec<KnobChange> {
        std::iter::from_fn(|| adjusting.next_told()).collect()
    }

    #[test]
    fn more_streams_count_once_they_are_open_and_those_that_failed_do_not() {
        let mut copy = adjusting(2);
        copy.want(wish(r#"{"streams":6}"#));
        let message = copy.next_message().unwrap();
        assert_eq!((message.open, message.dismiss), (4, 0));
        assert_eq!(copy.next_message(), None, "one at a time");
        let local = copy.answered(yes(&message, 4)).unwrap().unwrap();
        assert_eq!((local.open, copy.streams()), (Some((4, 4)), (6, 4)));
        assert_eq!(told(&mut copy), []);
        copy.opened(1, Some("no route"));
        let change = &told(&mut copy)[0];
        assert_eq!((change.before, change.after), (Some(2), Some(5)));
        assert!(change.refused.as_ref().unwrap().contains("no route"));
        copy.want(wish(r#"{"streams":6}"#));
        let message = copy.next_message().unwrap();
        assert!(
            copy.answered(yes(&message, 7)).is_err(),
            "a number that was skipped"
        );
        let next = copy.answered(yes(&message, 8)).unwrap().unwrap();
        assert_eq!(next.open, Some((8, 1)), "numbers are not used twice");
    }

    #[test]
    fn wishes_of_the_same_thing_become_one_while_a_change_is_under_way() {
        let mut copy = adjusting(4);
        copy.want(wish(r#"{"streams":1}"#));
        let message = copy.next_message().unwrap();
        for streams in 2..8 {
            copy.want(wish(&format!(r#"{{"streams":{streams}}}"#)));
        }
        copy.want(wish(r#"{"total_rate_bps":7}"#));
        let local = copy.answered(yes(&message, 0)).unwrap().unwrap();
        assert_eq!((local.dismiss, copy.streams().0), (3, 1));
        let message = copy.next_message().unwrap();
        assert_eq!((message.open, message.total_rate_bps.unwrap().get()), (6, 7));
    }

    #[test]
    fn the_server_says_which_rate_is_in_force() {
        let mut copy = adjusting(1);
        copy.want(wish(r#"{"total_rate_bps":0,"concurrency":3}"#));
        let message = copy.next_message().unwrap();
        let answer = Adjusted {
            total_rate_bps: RateBps::new(9).ok(),
            ..yes(&message, 0)
        };
        let local = copy.answered(answer).unwrap().unwrap();
        assert_eq!(local.total_rate_bps.unwrap().get(), 9);
        let changes = told(&mut copy);
        assert_eq!(
            (changes[0].knob, changes[0].after),
            (AdjustKnob::Concurrency, Some(3))
        );
        assert_eq!((changes[1].before, changes[1].after), (None, Some(9)));
    }

    #[test]
    fn a_refusal_is_told_for_each_thing_and_changes_nothing() {
        let mut copy = adjusting(2);
        copy.want(wish(r#"{"streams":9,"concurrency":3}"#));
        let message = copy.next_message().unwrap();
        let refused = Some("no more than 4\n".to_owned());
        let answer = Adjusted {
            refused,
            ..yes(&message, 0)
        };
        assert_eq!(copy.answered(answer).unwrap(), None);
        let changes = told(&mut copy);
        assert_eq!(changes.len(), 2);
        assert!(
            changes
                .iter()
                .all(|change| change.refused.as_ref().unwrap().starts_with("no more than 4"))
        );
        assert_eq!(copy.streams(), (2, 0));
        copy.want(wish(r#"{"streams":3}"#));
        copy.refuse("it is over");
        assert_eq!(told(&mut copy).len(), 1);
        assert_eq!(copy.next_message(), None);
    }

    proptest! {
        #[test]
        fn whatever_is_wanted_the_last_wish_holds_and_numbers_go_up(wishes in prop::collection::vec((1u16..40, any::<bool>()), 1..80)) {
            let mut copy = adjusting(3);
            let (mut next, mut live) = (5u16, 3u16);
            let mut last = 3;
            for (streams, answers) in wishes {
                copy.want(wish(&format!(r#"{{"streams":{streams}}}"#)));
                last = streams;
                if answers {
                    while let Some(message) = copy.next_message() {
                        copy.answered(yes(&message, next)).unwrap();
                        next += message.open;
                        live = live + message.open - message.dismiss;
                        copy.opened(0, None);
                    }
                    prop_assert_eq!((live, copy.streams().0), (last, last));
                }
            }
            if let Some(message) = copy.next_message() {
                copy.answered(yes(&message, next)).unwrap();
            }
            prop_assert_eq!(copy.streams().0, last);
        }
    }
}
