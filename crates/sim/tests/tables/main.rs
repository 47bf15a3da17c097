//! Questions to the link model and the machines, answered as tables.
//!
//! Each table is kept as a snapshot, so that a change of behaviour shows in review, and is asserted against a formula or
//! a property with a stated tolerance, since a snapshot alone cannot say what is right. `docs/design/simulator.md` says
//! what is compared with what.

mod active_queue;
mod cut;
mod datagrams;
mod depth;
mod determinism;
mod fairness;
mod growth;
mod loss;
mod rbudp_adapt;
mod rbudp_idle;
mod rbudp_passes;
mod rbudp_time;
mod response;
mod round_trips;
mod run;
mod sawtooth;
mod udt_changes;
mod udt_fairness;
mod udt_grid;
mod udt_soak;
