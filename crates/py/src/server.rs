//! A server as Python holds it, and tickets for it.

use std::path::Path;

use farline_iperf3::Iperf3Server as ProtocolServer;
use farline_session::{Server as SessionServer, ServerEvent, ServerFolders};
use farline_spec::{Failure, Iperf3Config, Limits, Scope, ServerConfig, TicketClaims, from_json};
use pyo3::prelude::*;

use crate::gate::{gate, gate_wait, is_forked_child, seconds, socket_address, to_json};

/// A server that serves by itself; dropping it stops it.
#[pyclass(frozen, module = "farline._native")]
pub struct Server {
    server: Option<SessionServer>,
}

impl Server {
    fn server(&self) -> &SessionServer {
        self.server.as_ref().expect("held until it is dropped")
    }
}

/// Starts a server; with `connect_to` (`address:port`) it listens nowhere, connects to a client that
/// waits there, and ends after that session. With `sockets`, it listens on these descriptors, which stay
/// the caller's.
#[pyfunction]
#[pyo3(signature = (config_json, connect_to=None, sockets=Vec::new()))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it made")]
pub fn start_server(
    py: Python<'_>,
    config_json: &str,
    connect_to: Option<&str>,
    sockets: Vec<i32>,
) -> PyResult<Server> {
    let server = gate(py, || {
        let config: ServerConfig = from_json(config_json)?;
        match connect_to {
            None if sockets.is_empty() => SessionServer::start(config),
            None => SessionServer::start_on(&config, &sockets),
            Some(client) => SessionServer::connect_back(&config, socket_address("connect_to", client)?),
        }
    })?;
    Ok(Server { server: Some(server) })
}

/// A ticket signed by the server whose state is in `state_dir`, and its keys in `keys_dir` if not there too.
#[pyfunction]
#[pyo3(signature = (state_dir, address, scope_json, limits_json, lifetime_s, keys_dir=None))]
pub fn mint_ticket(
    py: Python<'_>,
    state_dir: &str,
    address: &str,
    scope_json: &str,
    limits_json: &str,
    lifetime_s: f64,
    keys_dir: Option<&str>,
) -> PyResult<String> {
    let lifetime = seconds("lifetime_s", lifetime_s)?;
    gate(py, || {
        let (scope, limits) = (from_json::<Scope>(scope_json)?, from_json::<Limits>(limits_json)?);
        farline_session::mint_ticket(folders(state_dir, keys_dir), address, scope, limits, lifetime)
    })
}

/// Tickets that the server whose state is in `state_dir` remembers, as JSON.
#[pyfunction]
#[pyo3(signature = (state_dir, keys_dir=None))]
pub fn list_tickets(py: Python<'_>, state_dir: &str, keys_dir: Option<&str>) -> PyResult<String> {
    gate(py, || {
        to_json(&farline_session::list_tickets(folders(state_dir, keys_dir))?)
    })
}

/// What a ticket says, as JSON; with what the server whose state is in `state_dir` knows of it.
#[pyfunction]
#[pyo3(signature = (state_dir, ticket, keys_dir=None))]
pub fn inspect_ticket(
    py: Python<'_>,
    state_dir: &str,
    ticket: &str,
    keys_dir: Option<&str>,
) -> PyResult<String> {
    gate(py, || {
        to_json(&farline_session::inspect_ticket(
            folders(state_dir, keys_dir),
            ticket,
        )?)
    })
}

/// Has the servers whose state is in `state_dir` refuse a ticket from now on.
#[pyfunction]
#[pyo3(signature = (state_dir, claims_json, keys_dir=None))]
pub fn revoke_ticket(
    py: Python<'_>,
    state_dir: &str,
    claims_json: &str,
    keys_dir: Option<&str>,
) -> PyResult<()> {
    gate(py, || {
        let claims = from_json::<TicketClaims>(claims_json)?;
        farline_session::revoke_ticket(folders(state_dir, keys_dir), &claims)
    })
}

/// The folders of a server; its keys are in `keys_dir` if they have one of their own.
fn folders<'a>(state_dir: &'a str, keys_dir: Option<&'a str>) -> ServerFolders<'a> {
    ServerFolders {
        state: Path::new(state_dir),
        keys: Path::new(keys_dir.unwrap_or(state_dir)),
    }
}

#[pymethods]
impl Server {
    /// Addresses it listens on, `host:port`.
    fn addresses(&self) -> Vec<String> {
        self.server()
            .addresses()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Fingerprint of its key, which clients pin.
    fn fingerprint(&self) -> String {
        self.server().fingerprint().to_string()
    }

    /// Next event as (kind, JSON), or None after `timeout_s` or when the server has ended.
    fn poll(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<(String, String)>> {
        gate_wait(py, seconds("timeout_s", timeout_s)?, |slice| {
            self.server()
                .poll_event(slice)
                .map(|event| told(&event))
                .transpose()
        })
    }

    /// Takes no more sessions and ends those that run.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        gate(py, || {
            self.server().stop();
            Ok(())
        })
    }

    /// Waits until the server has ended.
    fn join(&self, py: Python<'_>) -> PyResult<()> {
        gate(py, || {
            self.server().join();
            Ok(())
        })
    }
}

impl Drop for Server {
    /// In a forked child the server's threads are not there to be joined: it is left alone.
    fn drop(&mut self) {
        if is_forked_child() {
            std::mem::forget(self.server.take());
        }
    }
}

/// An event as Python takes it: its kind, and the whole of it as JSON.
fn told(event: &ServerEvent) -> Result<(String, String), Failure> {
    Ok((event.kind().to_owned(), to_json(event)?))
}

/// A server for iperf3's clients; dropping it stops it.
#[pyclass(frozen, module = "farline._native")]
pub struct Iperf3Server {
    server: Option<ProtocolServer>,
}

impl Iperf3Server {
    fn server(&self) -> &ProtocolServer {
        self.server.as_ref().expect("held until it is dropped")
    }
}

/// Starts a server for iperf3's clients.
#[pyfunction]
pub fn start_iperf3_server(py: Python<'_>, config_json: &str) -> PyResult<Iperf3Server> {
    let server = gate(py, || {
        ProtocolServer::start(from_json::<Iperf3Config>(config_json)?)
    })?;
    Ok(Iperf3Server { server: Some(server) })
}

#[pymethods]
impl Iperf3Server {
    /// Addresses it listens on, `host:port`.
    fn addresses(&self) -> Vec<String> {
        self.server()
            .addresses()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Next event as (kind, JSON), or None after `timeout_s` or when the server has ended.
    fn poll(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<(String, String)>> {
        gate_wait(py, seconds("timeout_s", timeout_s)?, |slice| {
            self.server()
                .poll_event(slice)
                .map(|event| told(&event))
                .transpose()
        })
    }

    /// Takes no more clients and ends the tests that run.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        gate(py, || {
            self.server().stop();
            Ok(())
        })
    }

    /// Waits until the server has ended.
    fn join(&self, py: Python<'_>) -> PyResult<()> {
        gate(py, || {
            self.server().join();
            Ok(())
        })
    }
}

impl Drop for Iperf3Server {
    /// As for [`Server`].
    fn drop(&mut self) {
        if is_forked_child() {
            std::mem::forget(self.server.take());
        }
    }
}
