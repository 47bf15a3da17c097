//! The order in which a file that is whole gets its name, and in which a copy ends: data before proofs, proofs before names,
//! names before what relies on them.
//!
//! ```text
//!  data to the device ─► read back ─► noted: done ─► journal handed over ─► named ─► noted: placed
//!    where asked for     where asked    where times do not tell afterwards      │      taken back where it failed
//!                                       whose file it is                        └► done, where it was not noted before
//! ```

use farline_spec::unit::DeleteCount;
use farline_spec::unit::counted;

/// What is done to a file that is ready, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Its data go to the device.
    Sync,
    /// It is read from the device and compared with its hash.
    ReadBack,
    /// It gets its attributes, owner, time and permission bits; last, for they may forbid the others.
    Dress,
    /// The journal notes that it is done.
    NoteDone,
    /// The journal is handed to the kernel.
    HandOver,
    /// It gets its name.
    Name,
    /// The journal notes what it is known by where it lies.
    NotePlaced,
    /// The journal takes back that it is done.
    TakeBack,
}

/// How files get their names in a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Whether what is received reaches the device before it gets its name.
    pub is_durable: bool,
    /// Whether what is on the device is read once more.
    pub reads_back: bool,
    /// Whether files get their sources' times: what lies under a name then tells by its time whose it is.
    pub keeps_times: bool,
}

/// One file on its way to its name: [`Self::next`] says what is done, [`Self::did`] whether it succeeded.
#[derive(Debug, Clone)]
pub struct Naming {
    steps: [Option<Step>; 8],
    at: usize,
    /// Noted as done, and not named.
    is_noted: bool,
    is_named: bool,
    has_failed: bool,
}

impl Naming {
    /// Of a file that takes the place of another where it `replaces`; its data are on the device already if it `is_synced`.
    pub fn new(rules: Rules, replaces: bool, is_synced: bool) -> Self {
        // Where times do not tell, only the journal says whose file it is. Where another file has the name until then it would
        // speak of that one.
        let before = !rules.keeps_times && !replaces;
        let only = |is_wanted: bool, step: Step| is_wanted.then_some(step);
        Self {
            steps: [
                only(rules.is_durable && !is_synced, Step::Sync),
                only(rules.reads_back, Step::ReadBack),
                Some(Step::Dress),
                only(before, Step::NoteDone),
                only(before, Step::HandOver),
                Some(Step::Name),
                only(!before, Step::NoteDone),
                only(!before, Step::NotePlaced),
            ],
            at: 0,
            is_noted: false,
            is_named: false,
            has_failed: false,
        }
    }

    /// What is to be done; nothing when the file has its name, or will not get it.
    #[expect(clippy::should_implement_trait, reason = "each is answered before the next")]
    pub fn next(&mut self) -> Option<Step> {
        if self.has_failed {
            return std::mem::take(&mut self.is_noted).then_some(Step::TakeBack);
        }
        while self.steps.get(self.at).is_some_and(Option::is_none) {
            self.at += 1;
        }
        self.steps.get(self.at).copied().flatten()
    }

    /// Whether what was to be done is done: after a failure the file does not get its name.
    pub fn did(&mut self, is_done: bool) {
        let step = self.steps.get(self.at).copied().flatten();
        self.at += 1;
        self.has_failed |= !is_done;
        match step.filter(|_| !self.has_failed) {
            Some(Step::NoteDone) => self.is_noted = !self.is_named,
            Some(Step::Name) => (self.is_named, self.is_noted) = (true, false),
            _ => {}
        }
    }

    /// Whether the file has its name.
    pub const fn is_named(&self) -> bool {
        self.is_named
    }
}

/// What is done when every entry is settled, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// What made way for other things is said.
    SayDisplaced,
    /// What the sources have not is deleted, or would be.
    Delete,
    /// Folders get their permission bits and times, what is in a folder before it.
    Folders,
    /// All of it goes to the device: nothing proves a file any more once the journal is gone.
    Sync,
    /// The journal and what is kept beside the files go.
    EndStaging,
    /// The journal is written down and stays, for the session that ends the copy.
    KeepStaging,
    /// The destination folder itself gets its permission bits and time.
    Top,
}

/// What is done when every entry of a part of a copy is settled: the rest is the business of the session that ends the copy.
pub fn closing_part(is_durable: bool) -> impl Iterator<Item = Last> {
    let all = [(Last::Sync, is_durable), (Last::KeepStaging, true)];
    all.into_iter()
        .filter(|(_, is_wanted)| *is_wanted)
        .map(|(last, _)| last)
}

/// What is done when every entry is settled: for a copy that keeps files (`is_real`), and whose names reach the device.
pub fn closing(is_real: bool, is_durable: bool) -> impl Iterator<Item = Last> {
    let all = [
        (Last::SayDisplaced, true),
        (Last::Delete, true),
        (Last::Folders, is_real),
        (Last::Sync, is_durable),
        (Last::EndStaging, is_real),
        (Last::Top, is_real),
    ];
    all.into_iter()
        .filter(|(_, is_wanted)| *is_wanted)
        .map(|(last, _)| last)
}

/// Why none of `count` names is deleted that the destination has and the sources have not: all of them are, if they are as many
/// as was said, or nothing. A copy that is not `is_real` only says what would be.
///
/// # Errors
/// The reason, one line.
pub fn deletion(
    count: u64,
    confirmed: DeleteCount,
    most: Option<DeleteCount>,
    is_real: bool,
) -> Result<(), String> {
    if let Some(most) = most.map(DeleteCount::get).filter(|most| count > *most) {
        return Err(format!(
            "nothing was deleted: {} to delete, but --max-delete allows {most}",
            counted(count, "name")
        ));
    }
    if is_real && count != confirmed.get() {
        return Err(format!(
            "nothing was deleted: {} to delete, but {} confirmed",
            counted(count, "name"),
            confirmed.get()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is done where the step `fails` does not succeed.
    fn steps(rules: Rules, replaces: bool, is_synced: bool, fails: Option<Step>) -> Vec<Step> {
        let mut naming = Naming::new(rules, replaces, is_synced);
        let mut done = Vec::new();
        while let Some(step) = naming.next() {
            done.push(step);
            naming.did(fails != Some(step));
        }
        let is_named = done.contains(&Step::Name) && fails != Some(Step::Name);
        assert_eq!(naming.is_named(), is_named);
        done
    }

    fn all_rules() -> impl Iterator<Item = (Rules, bool)> {
        (0..16).map(|bits| {
            let rules = Rules {
                is_durable: bits & 1 != 0,
                reads_back: bits & 2 != 0,
                keeps_times: bits & 4 != 0,
            };
            (rules, bits & 8 != 0)
        })
    }

    #[test]
    fn data_are_on_the_device_before_a_name_and_a_note_says_whose_it_is() {
        for (rules, replaces) in all_rules() {
            let steps = steps(rules, replaces, false, None);
            let place = |step| steps.iter().position(|done| *done == step);
            let named = place(Step::Name).unwrap();
            assert_eq!(place(Step::Sync).is_some_and(|at| at < named), rules.is_durable);
            let noted = place(Step::NoteDone).unwrap();
            assert_eq!(noted < named, !rules.keeps_times && !replaces);
            assert_eq!(place(Step::HandOver), (noted < named).then_some(noted + 1));
            assert_eq!(place(Step::NotePlaced).is_some(), noted > named);
        }
    }

    #[test]
    fn what_was_noted_is_taken_back_where_the_name_cannot_be_given_and_nowhere_else() {
        for (rules, replaces) in all_rules() {
            for fails in [
                Step::Sync,
                Step::ReadBack,
                Step::Dress,
                Step::HandOver,
                Step::Name,
            ] {
                let steps = steps(rules, replaces, false, Some(fails));
                if !steps.contains(&fails) {
                    continue;
                }
                let is_noted = steps.contains(&Step::NoteDone);
                assert_eq!(steps.last() == Some(&Step::TakeBack), is_noted, "{steps:?}");
            }
        }
    }

    #[test]
    fn what_is_on_the_device_already_is_not_brought_there_again() {
        for (rules, replaces) in all_rules() {
            assert!(!steps(rules, replaces, true, None).contains(&Step::Sync));
        }
    }

    #[test]
    fn the_journal_goes_when_names_are_on_the_device_and_the_top_folder_is_last() {
        let all: Vec<Last> = closing(true, true).collect();
        assert_eq!(all[2..], [Last::Folders, Last::Sync, Last::EndStaging, Last::Top]);
        assert_eq!(
            closing(false, false).collect::<Vec<_>>(),
            [Last::SayDisplaced, Last::Delete]
        );
    }
}
