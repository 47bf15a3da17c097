//! What is proved, remembered so that a copy that was cut goes on where it was: records, notes, and what is believed of them.
//!
//! What it does: takes notes of parts written, files done and partials given up ([`Notes`]); says in which order they are
//! written down: the data of parts to the device, then the records, then the journal itself ([`Flush`]); reads a journal as
//! far as it is sound ([`Reader`]).
//! What it must not do: believe anything behind a record that is damaged; decide what a file is or where it goes.
//!
//! A partial gets a record of its own only when a part of it is written down: a file that is whole before leaves one record,
//! of itself. Start with [`Record`].

mod load;
mod notes;
mod parts;
mod record;
#[cfg(test)]
mod tests;

pub use load::{Memory, Reader, Resumable};
pub use notes::{Flush, Notes};
pub use parts::Part;
pub use record::{Record, SHARED_ID, Source, path_key, placed_key, shared_id, sixteen, take as record_at};

use farline_spec::Failure;

/// What is given out at once when a journal is made anew.
const PIECE_BYTES: usize = 1 << 20;

/// Gives everything that is still true to `put`, as a new journal, in pieces. `boot` names this start of the machine, where
/// what is written is not brought to a device.
///
/// # Errors
/// [`FailureKind::Internal`](farline_spec::FailureKind::Internal) for a record that cannot be written down; those of `put`.
pub fn compact(
    key: [u8; 16],
    boot: Option<String>,
    memory: &Memory,
    mut put: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    let version = record::VERSION;
    record::append(&mut bytes, &Record::Header { version, key, boot })?;
    for partial in memory.partials.values() {
        let (id, source) = (partial.id, partial.source.clone());
        record::append(&mut bytes, &Record::Begun { id, source })?;
        partial
            .parts
            .iter()
            .try_for_each(|part| record::append(&mut bytes, &part_record(id, part)))?;
    }
    for done in memory.all_done().chain(memory.all_placed()) {
        record::append(&mut bytes, &done)?;
        if bytes.len() > PIECE_BYTES {
            put(&bytes)?;
            bytes.clear();
        }
    }
    put(&bytes)
}

const fn part_record(id: u64, &(offset, bytes, hash): &Part) -> Record {
    Record::Part {
        id,
        offset,
        bytes,
        hash,
    }
}
