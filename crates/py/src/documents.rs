//! Documents checked: the validator of every door, for Python.

use farline_session::Target;
use farline_spec::{
    AdjustRequest, CopyProgress, CopyStages, Failure, FailureKind, HostFacts, Iperf3Config, Limits,
    LinkChange, MoverSamples, ReceiptLine, RunRecord, RunSpec, Samples, Scope, ServerConfig, TicketClaims,
    TicketRecord, Topology, VersionInfo, from_json,
};
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::gate::{gate, to_json};

/// A run spec, checked and resolved: what farline itself decides is filled in.
#[pyfunction]
pub fn validate_run_spec(py: Python<'_>, json: &str) -> PyResult<String> {
    gate(py, || to_json(&from_json::<RunSpec>(json)?.resolved()?))
}

/// A document of the named kind (`run-spec`, `server-config`, `limits`, ...), checked.
#[pyfunction]
pub fn validate(py: Python<'_>, kind: &str, json: &str) -> PyResult<String> {
    gate(py, || {
        let (_, check) = CHECKS
            .iter()
            .find(|(name, _)| *name == kind)
            .ok_or_else(|| unknown_kind(kind))?;
        check(json)
    })
}

/// A target as JSON from `farline://...` or `host[:port]`.
#[pyfunction]
pub fn parse_target(py: Python<'_>, text: &str) -> PyResult<String> {
    gate(py, || to_json(&Target::parse(text)?))
}

type Check = fn(&str) -> Result<String, Failure>;

const CHECKS: [(&str, Check); 19] = [
    ("adjust-request", checked::<AdjustRequest>),
    ("copy-progress", checked::<CopyProgress>),
    ("copy-stages", checked::<CopyStages>),
    ("failure", checked::<Failure>),
    ("host-facts", checked::<HostFacts>),
    ("iperf3-config", checked::<Iperf3Config>),
    ("limits", checked::<Limits>),
    ("link-change", checked::<LinkChange>),
    ("mover-samples", checked::<MoverSamples>),
    ("receipt-line", checked::<ReceiptLine>),
    ("run-record", checked::<RunRecord>),
    ("run-spec", checked::<RunSpec>),
    ("samples", checked::<Samples>),
    ("scope", checked::<Scope>),
    ("server-config", checked::<ServerConfig>),
    ("ticket-claims", checked::<TicketClaims>),
    ("ticket-record", checked::<TicketRecord>),
    ("topology", topology),
    ("version-info", checked::<VersionInfo>),
];

fn checked<T: DeserializeOwned + Serialize>(json: &str) -> Result<String, Failure> {
    to_json(&from_json::<T>(json)?)
}

fn topology(json: &str) -> Result<String, Failure> {
    to_json(&from_json::<Topology>(json)?.checked()?)
}

fn unknown_kind(kind: &str) -> Failure {
    let names: Vec<_> = CHECKS.iter().map(|(name, _)| *name).collect();
    Failure::new(
        FailureKind::Usage,
        format!("unknown kind {kind:?}; allowed: {}", names.join(", ")),
    )
}
