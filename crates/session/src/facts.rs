//! What this end says of itself in a record: the host, and the farline on it.

use farline_spec::{CpuFacts, HostFacts, InterfaceFacts, VersionInfo};
use farline_sys::host;

/// The host this process runs on, read from the kernel now.
pub fn host_facts() -> HostFacts {
    let found = host::facts();
    HostFacts {
        hostname: found.hostname,
        kernel: found.kernel,
        operating_system: found.operating_system,
        architecture: found.architecture,
        cpu: cpu(found.cpu),
        memory_bytes: found.memory_bytes,
        sysctls: found.sysctls,
        congestion_controls: found.congestion_controls,
        allowed_congestion_controls: found.allowed_congestion_controls,
        interfaces: found.interfaces.into_iter().map(interface).collect(),
        clock_source: found.clock_source,
    }
}

/// This host as the record of a run has it. To be read takes the better part of a millisecond, for which nobody has to wait while
/// data flow.
#[derive(Debug, Default)]
pub struct OwnHost(Option<HostFacts>);

impl OwnHost {
    /// Reads it, the first time.
    pub fn read(&mut self) {
        self.0.get_or_insert_with(host_facts);
    }

    /// What was read; now, if nothing was.
    pub fn take(&mut self) -> HostFacts {
        self.0.take().unwrap_or_else(host_facts)
    }
}

fn cpu(found: host::Cpu) -> CpuFacts {
    CpuFacts {
        model: found.model,
        online: found.online,
        governor: found.governor,
        numa_nodes: found.numa_nodes,
        virtualised: found.virtualised,
    }
}

fn interface(found: host::Interface) -> InterfaceFacts {
    InterfaceFacts {
        name: found.name,
        addresses: found.addresses,
        mtu_bytes: found.mtu_bytes,
        up: found.up,
        driver: found.driver,
        speed_bps: found.speed_bps,
        numa_node: found.numa_node,
        qdisc: found.qdisc,
        tx_queue_packets: found.tx_queue_packets,
        offloads: found.offloads,
    }
}

/// The farline this process runs, in a session of control version `protocol` (0: none).
///
/// The commit is that of the environment variable `FARLINE_COMMIT` at build time, empty without it.
pub fn version_info(protocol: u32) -> VersionInfo {
    VersionInfo {
        farline: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("FARLINE_COMMIT").unwrap_or_default().to_owned(),
        profile: if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        }
        .to_owned(),
        protocol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_names_host_and_version() {
        assert!(!host_facts().kernel.is_empty());
        let version = version_info(1);
        assert_eq!(
            (version.protocol, version.farline.as_str()),
            (1, env!("CARGO_PKG_VERSION"))
        );
    }
}
