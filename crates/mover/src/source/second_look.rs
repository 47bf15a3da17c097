//! Files that changed while they were read are looked at once more, when the machine says so.

use std::time::Duration;

use farline_proto::copy::sender::Look;
use farline_spec::Failure;

use super::driver::Driver;
use super::found::Found;
use super::inspector::Inspector;
use super::run::Run;
use super::sending::Sending;
use super::steady;
use super::trouble::Trouble;

/// Pieces in which is waited, so that others see that this end has not stopped.
const PIECE: Duration = Duration::from_millis(100);

/// The body of the thread that looks.
pub(super) fn look_on(driver: &Driver, run: &Run, inspector: &Inspector) -> Result<(), Failure> {
    while !run.is_over() {
        let now_ns = driver.now_ns();
        match driver.ask(|machine| machine.poll_look(now_ns)) {
            Some((number, file)) => {
                let look = second_look(inspector, &file);
                let now_ns = driver.now_ns();
                driver.ask(|machine| machine.looked(number, look, now_ns));
            }
            None => {
                if driver.wait_for_look(PIECE) {
                    run.worked();
                }
            }
        }
    }
    Ok(())
}

fn second_look(inspector: &Inspector, file: &Sending) -> Look {
    match inspector.look_again(&file.found) {
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
    }
}
