//! Files that changed while they were read are looked at once more, when the machine says so.

use std::sync::Arc;
use std::time::Duration;

use farline_proto::copy::sender::Look;
use farline_spec::Failure;

use super::found::Found;
use super::sending::Sending;
use super::settle::Trouble;
use super::shared::Shared;
use super::steady;

/// Pieces in which is waited, so that others see that this end has not stopped.
const PIECE: Duration = Duration::from_millis(100);

/// The body of the thread that looks.
pub(super) fn run(shared: &Shared) -> Result<(), Failure> {
    while !shared.halt.is_over() {
        let now_ns = shared.driver.now_ns();
        match shared.ask(|machine| machine.poll_look(now_ns)) {
            Some((number, file)) => shared.second_look(number, &file),
            None => {
                if shared.driver.wait_for_look(PIECE) {
                    shared.worked();
                }
            }
        }
    }
    Ok(())
}

impl Shared {
    fn second_look(&self, number: u64, file: &Arc<Sending>) {
        let look = match self.look_again(&file.found) {
            Ok(found) => {
                let rested = steady::age(&found.facts).as_nanos();
                file.is_now(Found {
                    apart_from: file.link_to,
                    ..found
                });
                Look::Rested(u64::try_from(rested).unwrap_or(u64::MAX))
            }
            Err(Trouble::Changed) => Look::Changing,
            Err(trouble) => Look::Gone(trouble.reason()),
        };
        let now_ns = self.driver.now_ns();
        self.ask(|machine| machine.looked(number, look, now_ns));
    }
}
