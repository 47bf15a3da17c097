//! Kernel parameters that bear on transport.

use std::collections::BTreeMap;

use super::line;

/// The parameters that are recorded with every run, by sysctl name.
const NAMES: &[&str] = &[
    "kernel.numa_balancing",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_no_pmtu_disc",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_base_mss",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_dsack",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_min_tso_segs",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_shrink_window",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.udp_wmem_min",
    "net.mptcp.enabled",
];

/// Every parameter of [`NAMES`] that this kernel has.
pub(super) fn facts() -> BTreeMap<String, String> {
    let found = NAMES
        .iter()
        .filter_map(|&name| Some((name.to_owned(), value(name)?)));
    found.collect()
}

/// Words of one parameter; none if it cannot be read.
pub(super) fn words(name: &str) -> Vec<String> {
    let value = value(name).unwrap_or_default();
    value
        .split(' ')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn value(name: &str) -> Option<String> {
    line(format!("/proc/sys/{}", name.replace('.', "/"))).map(|text| squeeze(&text))
}

/// Runs of tabs and spaces become one space, as in a configuration file.
fn squeeze(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_are_separated_by_one_space() {
        assert_eq!(squeeze("4096\t131072\t  33554432"), "4096 131072 33554432");
        assert_eq!(facts()["net.ipv4.tcp_rmem"].split(' ').count(), 3);
    }

    #[test]
    fn what_the_kernel_does_not_have_is_absent() {
        assert_eq!(value("net.ipv4.no_such_parameter"), None);
        assert!(words("net.ipv4.no_such_parameter").is_empty());
    }

    #[test]
    fn names_are_in_order_and_unique() {
        assert!(NAMES.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
