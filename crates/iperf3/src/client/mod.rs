//! A client for other people's servers: one run, from a target and a spec to a record.
//!
//! What it does: drives [`ClientMachine`](farline_proto::iperf3::client::ClientMachine), opens streams as iperf3 does, and has
//! farline's own run engine move and sample them, so that the record has this end's samples as any other.
//! What it must not do: pass over an option in silence. What iperf3's server cannot do is refused by name ([`wishes`]); what it
//! does not tell is left unknown ([`report`]).
//!
//! Start with [`start_run`], then `driver.rs`.

mod datagrams;
mod driver;
mod open;
mod report;
mod wishes;

use farline_session::{RunHandle, Target};
use farline_spec::RunSpec;

/// Starts a run of `spec` against the iperf3 server at `target` and returns at once. Every failure comes as
/// [`Event::Done`](farline_session::Event::Done).
pub fn start_run(target: Target, spec: RunSpec) -> RunHandle {
    let address = target.address();
    RunHandle::drive(address, spec.clone(), move |events, control, run_id| {
        driver::run(&target, spec, events, control, run_id);
    })
}
