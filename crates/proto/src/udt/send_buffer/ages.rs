//! Which packets were sent long enough ago to be believed lost, found without a look at each of them.
//!
//! A report of loss that comes again before a repetition can have arrived must not cause another one. The time of
//! the last sending is kept with each packet; for every 64 of them the oldest and the newest of these times are kept
//! here, and in nearly all cases the two answer for all 64. This bounds what a report over the whole window costs.

use std::collections::VecDeque;

use super::super::loss_list::WORD_PACKETS;

/// The times of sending of 64 packets.
#[derive(Debug, Clone, Copy)]
struct Age {
    oldest_us: u32,
    newest_us: u32,
}

/// What the summary says of 64 packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ripe {
    /// All were sent long enough ago.
    All,
    /// None was.
    None,
    /// Look at each.
    Some,
}

/// Oldest and newest time of sending of every 64 packets in the window.
#[derive(Debug, Default)]
pub(super) struct Ages {
    ages: VecDeque<Age>,
    /// Number of the first word: its index divided by 64.
    base: u64,
}

impl Ages {
    /// Packets `first ..= last` were sent at `sent_us`, the newest time so far. New ones come in the order of their
    /// indices.
    pub(super) fn note(&mut self, first: u64, last: u64, sent_us: u32) {
        for word in (first / WORD_PACKETS).max(self.base)..=last / WORD_PACKETS {
            let position = (word - self.base) as usize;
            match self.ages.get_mut(position) {
                // The oldest one may be among those sent again: then what is kept is too old, and is put right when
                // somebody looks at each packet.
                Some(age) => age.newest_us = sent_us,
                None => self.ages.push_back(Age {
                    oldest_us: sent_us,
                    newest_us: sent_us,
                }),
            }
        }
    }

    /// Whether the packets of `word` were sent at least `min_age_us` before `now_us`.
    pub(super) fn ripe(&self, word: u64, now_us: u32, min_age_us: u32) -> Ripe {
        let Some(age) = word
            .checked_sub(self.base)
            .and_then(|at| self.ages.get(at as usize))
        else {
            return Ripe::None;
        };
        if now_us.wrapping_sub(age.newest_us) >= min_age_us {
            Ripe::All
        } else if now_us.wrapping_sub(age.oldest_us) < min_age_us {
            Ripe::None
        } else {
            Ripe::Some
        }
    }

    /// Somebody looked at each packet of `word`: of those that still may be marked the oldest was sent at `oldest_us`.
    pub(super) fn set_oldest(&mut self, word: u64, oldest_us: u32) {
        if let Some(age) = word
            .checked_sub(self.base)
            .and_then(|at| self.ages.get_mut(at as usize))
        {
            age.oldest_us = oldest_us;
        }
    }

    /// Forgets words all of whose packets are below `index`.
    pub(super) fn remove_below(&mut self, index: u64) {
        let word = index / WORD_PACKETS;
        let passed = (word.saturating_sub(self.base)).min(self.ages.len() as u64);
        self.ages.drain(..passed as usize);
        self.base = self.base.max(word);
    }
}
