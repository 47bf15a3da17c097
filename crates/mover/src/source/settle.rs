//! What is said of a file that is read, or that cannot be sent as it was announced.

use std::sync::Arc;

use farline_proto::copy::sender::{Known, Piece};
use tracing::debug;

use super::driver::Driver;
use super::sending::Sending;
use super::steady;
use super::trouble::Trouble;
use crate::engine::OpenFile;
use crate::path_text::Shown;

impl Driver {
    /// `file` cannot be sent as it was announced: it is looked at once more and announced as it is then, or fails by name.
    pub(super) fn lost(&self, file: &Arc<Sending>, trouble: &Trouble) {
        let now_ns = self.now_ns();
        let was_under_way = self.ask(|machine| {
            let was_under_way = machine.is_under_way(file.number);
            machine.lose(file.number, trouble.loss(), now_ns);
            was_under_way
        });
        file.close();
        if was_under_way {
            debug!(
                entry = %Shown(&file.found.path),
                reason = trouble.reason(),
                errno = trouble.errno(),
                "entry cannot be read as announced"
            );
        }
    }

    /// Notes that a part of `file` has been read; after the last one, looks whether the file is still what it was and says so.
    pub(super) fn has_read(
        &self,
        file: &Arc<Sending>,
        open: &OpenFile,
        piece: &Piece,
    ) -> Result<(), Trouble> {
        match self.ask(|machine| machine.part_read(file.number, piece)) {
            Known::Part | Known::Late => Ok(()),
            Known::Twice => Err(Trouble::Beyond(
                "a chunk of it was read twice: a defect".to_owned(),
            )),
            Known::All => self.settle_if_unchanged(file, open),
        }
    }

    /// The other end has all of `file`, and all of it was sent: looks whether the file is still what it was and says so.
    pub(super) fn settle_arrived(&self, file: &Arc<Sending>) {
        let open = file.opened().as_ref().map(|opened| Arc::clone(&opened.file));
        let Some(open) = open else {
            // It was read, and settled by that.
            return;
        };
        if let Err(trouble) = self.settle_if_unchanged(file, &open) {
            self.lost(file, &trouble);
        }
    }

    /// Says that `file` may take its name, if it is still what was announced.
    fn settle_if_unchanged(&self, file: &Sending, open: &OpenFile) -> Result<(), Trouble> {
        steady::end(&file.found, open.fd())?;
        if self.ask(|machine| machine.all_read(file.number)) {
            file.close();
        }
        Ok(())
    }
}
