//! Python's door: JSON in, JSON and columns out.
//!
//! What it does: turns Python's arguments into the types of `farline_session`,
//! `farline_iperf3`, `farline_emulator`, `farline_logs` and `farline_spec` and back, and lets every call that may take time through
//! one gate ([`gate`]): without the GIL, with signals looked at, failures as
//! `NativeError`, panics as failures of kind "internal", and nothing at all in
//! a forked child, whose threads and sockets are the parent's.
//! What it must not do: decide. No defaults, no retries, no files, no policy;
//! what can be tested without Python belongs in a room below.
//!
//! In: text and numbers. Out: text, [`columns::Columns`] of 64-bit integers,
//! handles to a [`run::Run`], a [`server::Server`] and an [`emulator::Emulator`]. One Python object per
//! batch of samples, never one per sample.
//!
//! The signatures that Python sees are in `python/farline/_native.pyi`, checked
//! against this crate by stubtest. Start with [`gate`], then [`run`].

mod columns;
mod documents;
mod emulator;
mod gate;
mod host;
mod logs;
mod names;
mod run;
mod server;
mod storage;
mod sums;

use pyo3::prelude::*;

/// The extension module `farline._native`.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::columns::Columns;
    #[pymodule_export]
    use crate::documents::{parse_target, validate, validate_run_spec};
    #[pymodule_export]
    use crate::emulator::{Emulator, enter_namespaces, make_user_namespace, start_emulator};
    #[pymodule_export]
    use crate::gate::NativeError;
    #[pymodule_export]
    use crate::host::{host_facts, memory_copy_bps, version_info};
    #[pymodule_export]
    use crate::logs::{reopen_log, start_log, write_log};
    #[pymodule_export]
    use crate::names::NameSession;
    #[pymodule_export]
    use crate::run::{ConnectionKeeper, Contact, Run, make_contact, start_run};
    #[pymodule_export]
    use crate::server::{
        Iperf3Server, Server, inspect_ticket, list_tickets, mint_ticket, revoke_ticket, start_iperf3_server,
        start_server,
    };
    #[pymodule_export]
    use crate::storage::{StorageMount, run_storage_load, start_storage};
    #[pymodule_export]
    use crate::sums::{FileSum, looks_into};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::gate::remember_process();
        crate::set_public_names(module)
    }
}

/// `__all__`, in the order of the stub.
fn set_public_names(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let mut names: Vec<String> = module.index()?.extract()?;
    names.sort_unstable();
    module.setattr("__all__", names)
}
