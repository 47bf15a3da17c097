//! What an entry is, what can happen to it, and what it is then: one table, which everything that touches an entry goes
//! through ([`after`]). It stands as a picture in `snapshots/`.

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its name came; the destination is being looked at.
    Announced,
    /// Its content is wanted; nothing of it has come.
    Wanted,
    /// It comes in parts, each proved by itself.
    Proved,
    /// It came whole in a pack, was proved, and is being written.
    Packed,
    /// A further name of a file that is not settled.
    Waiting,
    /// A further name of a file that did not come: the sending end says what becomes of it.
    Apart,
    /// All of it is written and proved, and the sending end said that it did not change; or the file that it is a further name of
    /// is there. Nothing is missing but its name.
    Ready,
    /// It has its name.
    Named,
    /// It was settled by its answer: it was there, was made, is left out or may not be.
    Answered,
    /// It failed here, or its source did.
    GivenUp,
}

/// What can happen to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The destination was looked at: its content is wanted.
    Want,
    /// The destination was looked at: an answer settles it.
    Answer,
    /// It is a further name.
    Await,
    /// A part comes: a chunk or a hole.
    Part,
    /// All of it comes, in a pack.
    Item,
    /// The sending end says that all was read and nothing changed meanwhile.
    Settle,
    /// All of it is written and proved, and settled.
    Complete,
    /// The file that it is a further name of has its name.
    FileThere,
    /// The file that it is a further name of will not come.
    FileGone,
    /// It got its name.
    Name,
    /// It failed here, or the sending end gave it up.
    GiveUp,
}

/// What an event does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The entry is this from now on; it may be what it was.
    To(Stage),
    /// Nothing: it comes too late, or is no longer of interest.
    Late,
    /// No sound end lets this happen; why, as what is said of the entry.
    Broken(&'static str),
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Announced,
        Self::Wanted,
        Self::Proved,
        Self::Packed,
        Self::Waiting,
        Self::Apart,
        Self::Ready,
        Self::Named,
        Self::Answered,
        Self::GivenUp,
    ];
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Want,
        Self::Answer,
        Self::Await,
        Self::Part,
        Self::Item,
        Self::Settle,
        Self::Complete,
        Self::FileThere,
        Self::FileGone,
        Self::Name,
        Self::GiveUp,
    ];
}

const TWICE: Turn = Turn::Broken("was sent twice");
const BOTH_WAYS: Turn = Turn::Broken("was sent both in a pack and in chunks");
const NO_CONTENT: Turn = Turn::Broken("has no content");
const NOT_WHOLE: Turn = Turn::Broken("is not whole");

/// What an entry is after an event.
pub const fn after(stage: Stage, event: Event) -> Turn {
    use Event as E;
    use Stage as S;
    match (stage, event) {
        (S::Named | S::Answered | S::GivenUp, _) => Turn::Late,

        (S::Announced, E::Want) => Turn::To(S::Wanted),
        (S::Announced, E::Answer) => Turn::To(S::Answered),
        (S::Announced, E::Await) => Turn::To(S::Waiting),

        (S::Wanted | S::Proved, E::Part | E::Settle) => Turn::To(S::Proved),
        (S::Wanted, E::Item) => Turn::To(S::Packed),
        (S::Proved, E::Item) => BOTH_WAYS,
        (S::Packed, E::Part) => BOTH_WAYS,
        (S::Packed | S::Ready, E::Item) => TWICE,
        // A pack says it too.
        (S::Packed, E::Settle) => Turn::To(S::Packed),
        (S::Proved | S::Packed, E::Complete) => Turn::To(S::Ready),
        // What was said of it before may be said again.
        (S::Ready, E::Settle) => Turn::To(S::Ready),
        // Not written any more: what has all been proved stays as it is.
        (S::Ready, E::Part) => Turn::Late,

        (S::Waiting | S::Apart, E::Part | E::Item | E::Settle) => NO_CONTENT,
        (S::Waiting, E::FileThere) => Turn::To(S::Ready),
        (S::Waiting, E::FileGone) => Turn::To(S::Apart),

        (S::Ready, E::Name) => Turn::To(S::Named),
        (_, E::Name) => NOT_WHOLE,
        (_, E::GiveUp) => Turn::To(S::GivenUp),
        (_, _) => Turn::Late,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// The table as text: a line for each stage and event that does something.
    fn text() -> String {
        let mut text = String::new();
        for stage in Stage::ALL {
            for event in Event::ALL {
                let end = match after(stage, event) {
                    Turn::To(stage) => format!("{stage:?}"),
                    Turn::Broken(why) => format!("broken: {why}"),
                    Turn::Late => continue,
                };
                writeln!(
                    text,
                    "{:<10} {:<10} {end}",
                    format!("{stage:?}"),
                    format!("{event:?}")
                )
                .unwrap();
            }
        }
        text
    }

    #[test]
    fn the_table_is_the_one_that_was_reviewed() {
        insta::assert_snapshot!(text());
    }

    #[test]
    fn only_what_is_ready_gets_a_name_and_what_is_over_stays_so() {
        let is_over = |stage| matches!(stage, Stage::Named | Stage::Answered | Stage::GivenUp);
        for stage in Stage::ALL {
            let gets_name = after(stage, Event::Name) == Turn::To(Stage::Named);
            assert_eq!(gets_name, stage == Stage::Ready, "{stage:?}");
            for event in Event::ALL {
                assert!(!is_over(stage) || after(stage, event) == Turn::Late);
            }
        }
    }

    #[test]
    fn what_is_ready_was_proved_came_in_a_pack_or_is_a_further_name() {
        for stage in Stage::ALL {
            let gets_ready = Event::ALL
                .iter()
                .any(|event| after(stage, *event) == Turn::To(Stage::Ready));
            let may = matches!(
                stage,
                Stage::Proved | Stage::Packed | Stage::Waiting | Stage::Ready
            );
            assert_eq!(gets_ready, may, "{stage:?}");
        }
    }
}
