//! What an entry is at the sending end, what can happen to it, and what it is then: one table, which everything that touches an
//! entry goes through ([`after`]). It stands as a picture in `snapshots/`.

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It was announced; nothing of it is read yet.
    Announced,
    /// Its content is wanted and being read.
    Wanted,
    /// All of it was read, and it had not changed.
    Read,
    /// It was not what was announced: it is looked at once more when it has been left alone for a moment.
    Resting,
    /// It cannot be sent as it was announced, and the other end is to be told.
    Leaving,
    /// It is settled.
    Over,
}

/// What can happen to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Its content is wanted.
    Want,
    /// All of it was read, and it is what was announced.
    AllRead,
    /// A part of it that was sent is wanted once more.
    Repeat,
    /// The other end has its content under its name.
    Done,
    /// The other end says what became of it: an answer that needs no content, or that it failed there.
    Settle,
    /// It is not what was announced, and may be announced anew.
    Change,
    /// It cannot be sent, or it is announced anew.
    Lose,
    /// The other end is told so.
    Tell,
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
    pub const ALL: [Self; 6] = [
        Self::Announced,
        Self::Wanted,
        Self::Read,
        Self::Resting,
        Self::Leaving,
        Self::Over,
    ];

    /// Whether the other end may still say what becomes of it.
    pub const fn is_under_way(self) -> bool {
        matches!(self, Self::Announced | Self::Wanted | Self::Read)
    }
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Want,
        Self::AllRead,
        Self::Repeat,
        Self::Done,
        Self::Settle,
        Self::Change,
        Self::Lose,
        Self::Tell,
    ];
}

/// What an entry is after an event.
pub const fn after(stage: Stage, event: Event) -> Turn {
    use Event as E;
    use Stage as S;
    match (stage, event) {
        (S::Announced, E::Want) => Turn::To(S::Wanted),
        (S::Wanted, E::AllRead) => Turn::To(S::Read),

        (S::Wanted | S::Read, E::Repeat) => Turn::To(S::Wanted),
        (S::Announced, E::Repeat) => Turn::Broken("was requested again before it was sent"),

        (S::Read, E::Done) => Turn::To(S::Over),
        (S::Announced | S::Wanted, E::Done) => Turn::Broken("was reported done before it was sent"),

        (S::Announced | S::Wanted | S::Read, E::Settle) => Turn::To(S::Over),
        (S::Announced | S::Wanted | S::Read, E::Change) => Turn::To(S::Resting),
        (S::Announced | S::Wanted | S::Read | S::Resting, E::Lose) => Turn::To(S::Leaving),
        (S::Leaving, E::Tell) => Turn::To(S::Over),
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
                    "{:<10} {:<8} {end}",
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
    fn content_is_done_only_once_all_of_it_was_read_and_what_is_over_stays_so() {
        for stage in Stage::ALL {
            let is_done = after(stage, Event::Done) == Turn::To(Stage::Over);
            assert_eq!(is_done, stage == Stage::Read, "{stage:?}");
            for event in Event::ALL {
                assert!(stage != Stage::Over || after(stage, event) == Turn::Late);
            }
        }
    }

    #[test]
    fn what_is_lost_is_told_before_it_is_over_and_nothing_that_the_other_end_says_changes_it() {
        for event in Event::ALL {
            assert_eq!(
                after(Stage::Leaving, event) != Turn::Late,
                event == Event::Tell,
                "{event:?}"
            );
            let rests_on = after(Stage::Resting, event) == Turn::Late;
            assert_eq!(rests_on, event != Event::Lose, "{event:?}");
        }
    }
}
