//! Times and permission bits at a destination: compared with the source's, and set as far as they are kept there.

use std::io;
use std::os::fd::BorrowedFd;

use farline_proto::copy::journal::Source;
use farline_spec::Attribute;
use farline_sys::file;

use super::able::{Able, Modes};
use super::clock::{Clock, Grain, may_be_kept_as};
use super::lock::set_times;
use super::site::{Destination, ResumeState};
use super::words::in_words;

/// FAT knows no time before this, ext3 none after the other: 1980-01-01, 2038-01-19.
const COMMON_NS: std::ops::Range<i64> = 315_532_800_000_000_000..2_147_483_647_000_000_000;
/// A time that is off by so much is another one.
const FAR_NS: u64 = 5_000_000_000;
/// Permission bits that are looked at.
const BITS: u32 = 0o777;

impl Destination {
    fn able(&self) -> Option<&Able> {
        let kept = self.kept_if_any()?;
        Some(&kept.able)
    }

    /// Whether the destination brings files to the device when that is asked for.
    pub fn syncs(&self) -> bool {
        self.able().is_none_or(|able| able.syncs)
    }

    /// Whether what is set of a link would be set of what it leads to, wherever that is.
    pub fn follows_links(&self) -> bool {
        let tried = |kept: &ResumeState| {
            let set =
                |folder: BorrowedFd<'_>, link: &[u8]| self.set_link_time(folder, link, Clock::probe_ns());
            kept.staging.follows_links(set)
        };
        let kept = self.kept_if_any();
        kept.is_some_and(|kept| *kept.able.follows_links.get_or_init(|| tried(kept)))
    }

    /// Whether a file at the destination with the time `found_ns` may be the unchanged `source`.
    pub fn is_same_time(&self, found_ns: i64, source: &Source) -> bool {
        let Some(kept) = self.site().kept_if_any() else {
            let window = Clock::new(Grain::Fine, &self.plan.spec);
            let unasked = |_| Err(io::ErrorKind::Unsupported.into());
            return window.is_same(found_ns, source, unasked) || may_be_kept_as(found_ns, source.mtime_ns);
        };
        let ask = |wanted_ns| {
            let asked = kept
                .staging
                .with_lock(|lock| lock.kept_as(wanted_ns, kept.able.both_times));
            asked.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
        };
        kept.able.clock.is_same(found_ns, source, ask)
    }

    /// Sets the time of last change; says where it is not kept.
    ///
    /// # Errors
    /// The kernel's, besides that the file system cannot.
    pub fn keep_time(&self, file: BorrowedFd<'_>, mtime_ns: i64) -> io::Result<()> {
        let grain = self.able().map_or(Grain::Fine, |able| able.clock.grain());
        let cannot = !grain.is_settable();
        let both = self.able().is_some_and(|able| able.both_times);
        match set_times(file, mtime_ns, both) {
            Err(error) if is_beyond(&error, cannot) => {
                let how = grain.words().unwrap_or_else(|| in_words(&error));
                self.losses.lose(Attribute::Time, &how, 1);
            }
            Err(error) => return Err(error),
            Ok(()) if grain.cuts(mtime_ns) => {
                self.losses
                    .lose(Attribute::Time, &grain.words().unwrap_or_default(), 1);
            }
            Ok(()) => {}
        }
        let is_odd = !cannot && !COMMON_NS.contains(&mtime_ns);
        if is_odd && file::stat_fd(file)?.mtime_ns.abs_diff(mtime_ns) >= FAR_NS {
            self.losses
                .lose(Attribute::Time, "outside the range of the file system", 1);
        }
        Ok(())
    }

    /// Sets the time of last change of a link.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_link_time(&self, folder: BorrowedFd<'_>, name: &[u8], mtime_ns: i64) -> io::Result<()> {
        match self.able().is_some_and(|able| able.both_times) {
            true => file::set_both_times_at(folder, name, mtime_ns),
            false => file::set_times_at(folder, name, mtime_ns),
        }
    }

    /// Sets permission bits; says where they are not kept.
    ///
    /// # Errors
    /// As [`Self::keep_time`].
    pub fn keep_mode(&self, file: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
        let modes = self.able().map_or(Modes::ResumeState, |able| able.modes);
        match (file::set_mode(file, mode), modes) {
            (Err(error), _) if is_beyond(&error, modes == Modes::Refused) => {
                self.losses.lose(Attribute::Mode, &in_words(&error), 1);
            }
            (Err(error), _) => return Err(error),
            (Ok(()), Modes::Fixed(bits)) if mode & BITS != bits => {
                self.losses
                    .lose(Attribute::Mode, "the file system sets its own", 1);
            }
            (Ok(()), _) => {}
        }
        Ok(())
    }

    /// Whether permission bits are others at the destination, and could be made the same.
    pub fn is_other_mode(&self, found: u32, wanted: u32) -> bool {
        let is_fixed = self
            .able()
            .is_some_and(|able| matches!(able.modes, Modes::Fixed(bits) if bits == found & BITS));
        found & BITS != wanted & BITS && !is_fixed
    }
}

/// Whether an error says that a file system has no such thing. That it is not permitted says so only where it `cannot`: whoever
/// does not own a file is told the same.
fn is_beyond(error: &io::Error, cannot: bool) -> bool {
    file::is_unsupported(error) && (cannot || error.kind() != io::ErrorKind::PermissionDenied)
}
