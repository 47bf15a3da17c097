//! Which kind of failure an error of the kernel is, and whose fault.

use std::io;
use std::net::SocketAddr;

use farline_spec::{Failure, FailureKind, RunSpec};

/// An option that cannot be honoured here, by its path in a spec, and what would be allowed.
pub(crate) fn refused(path: &str, reason: impl std::fmt::Display) -> Failure {
    Failure::option(path, reason)
}

/// Refuses a run of files over a transport that moves blocks of its own making only.
///
/// # Errors
/// `Spec`.
pub(crate) fn check_no_files(spec: &RunSpec) -> Result<(), Failure> {
    match spec.copy {
        None => Ok(()),
        Some(_) => {
            let word = spec.transport.word();
            Err(refused(
                "transport",
                format!("{word} cannot copy files; use tcp, udt, rbudp or quic"),
            ))
        }
    }
}

/// A failure while a stream to `remote` was being opened.
pub(crate) fn while_connecting(remote: SocketAddr, error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => FailureKind::Timeout,
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown => FailureKind::Unreachable,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => FailureKind::Protocol,
        _ => FailureKind::System,
    };
    // The control channel to the same host is there already.
    let advice = match kind {
        FailureKind::Unreachable => "; check that its data ports are open in the firewall",
        _ => "",
    };
    Failure::new(kind, format!("data stream to {remote}: {error}{advice}"))
}

/// A failure of an open stream while it did `what`.
pub(crate) fn while_moving(what: &str, error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::BrokenPipe => FailureKind::Protocol,
        io::ErrorKind::TimedOut => FailureKind::Timeout,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => {
            FailureKind::Unreachable
        }
        _ => FailureKind::System,
    };
    Failure::new(kind, format!("data stream, {what}: {error}"))
}

/// A call on a stream that was aborted.
pub(crate) fn aborted() -> Failure {
    Failure::new(FailureKind::Interrupted, "data stream: aborted")
}

/// Nothing came before the deadline.
pub(crate) fn timed_out(what: impl std::fmt::Display) -> Failure {
    Failure::new(
        FailureKind::Timeout,
        format!("{what}: no data arrived within the time limit"),
    )
}

/// Whether a call only ran into its time slice or a signal, and may be repeated.
pub(crate) fn is_slice(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_says_whose_fault_it_is() {
        let remote = "127.0.0.1:9".parse().unwrap();
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(
            while_connecting(remote, &refused).message,
            "data stream to 127.0.0.1:9: Connection refused; check that its data ports are open in the firewall"
        );
        let connecting = |kind: io::ErrorKind| while_connecting(remote, &kind.into()).kind;
        assert_eq!(
            connecting(io::ErrorKind::ConnectionRefused),
            FailureKind::Unreachable
        );
        assert_eq!(connecting(io::ErrorKind::TimedOut), FailureKind::Timeout);
        assert_eq!(connecting(io::ErrorKind::OutOfMemory), FailureKind::System);
        let moving = |kind: io::ErrorKind| while_moving("sending", &kind.into()).kind;
        assert_eq!(moving(io::ErrorKind::ConnectionReset), FailureKind::Protocol);
        assert_eq!(moving(io::ErrorKind::HostUnreachable), FailureKind::Unreachable);
        assert_eq!(moving(io::ErrorKind::PermissionDenied), FailureKind::System);
    }
}
