//! A server as Python holds it, and tickets for it.

use std::path::Path;

use farline_iperf3::Iperf3Server as ProtocolServer;
use farline_session::{Server as SessionServer, ServerEvent};
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
/// waits there, and ends after that session.
#[pyfunction]
#[pyo3(signature = (config_json, connect_to=None))]
pub fn start_server(py: Python<'_>, config_json: &str, connect_to: Option<&str>) -> PyResult<Server> {
    let server = gate(py, || {
        let config: ServerConfig = from_json(config_json)?;
        match connect_to {
            None => SessionServer::start(config),
            Some(client) => SessionServer::connect_back(&config, socket_address("connect_to", client)?),
        }
    })?;
    Ok(Server { server: Some(server) })
}

/// A ticket signed by the server whose state is in `state_dir`.
#[pyfunction]
pub fn mint_ticket(
    py: Python<'_>,
    state_dir: &str,
    address: &str,
    scope_json: &str,
    limits_json: &str,
    lifetime_s: f64,
) -> PyResult<String> {
    let lifetime = seconds("lifetime_s", lifetime_s)?;
    gate(py, || {
        let (scope, limits) = (from_json::<Scope>(scope_json)?, from_json::<Limits>(limits_json)?);
        farline_session::mint_ticket(Path::new(state_dir), address, scope, limits, lifetime)
    })
}

/// Tickets that the server whose state is in `state_dir` remembers, as JSON.
#[pyfunction]
pub fn list_tickets(py: Python<'_>, state_dir: &str) -> PyResult<String> {
    gate(py, || {
        to_json(&farline_session::list_tickets(Path::new(state_dir))?)
    })
}

/// What a ticket says, as JSON; with what the server whose state is in `state_dir` knows of it.
#[pyfunction]
pub fn inspect_ticket(py: Python<'_>, state_dir: &str, ticket: &str) -> PyResult<String> {
    gate(py, || {
        to_json(&farline_session::inspect_ticket(Path::new(state_dir), ticket)?)
    })
}

/// Has the servers whose state is in `state_dir` refuse a ticket from now on.
#[pyfunction]
pub fn revoke_ticket(py: Python<'_>, state_dir: &str, claims_json: &str) -> PyResult<()> {
    gate(py, || {
        let claims = from_json::<TicketClaims>(claims_json)?;
        farline_session::revoke_ticket(Path::new(state_dir), &claims)
    })
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
