//! What needs a path of a small MTU runs again in a network namespace of its own, if this user may make one.

use std::process::Command;

const SET_UP: &str =
    "ip link set lo mtu 1500 up && exec \"$0\" --exact in_a_small_mtu --ignored --test-threads 1";

/// Runs the ignored test `in_a_small_mtu` of this program where loopback has an MTU of 1500.
///
/// Where no namespace can be made that is said, and is no failure outside continuous integration.
pub fn run_in_a_small_mtu() {
    let may_unshare = Command::new("unshare").args(["-rn", "ip", "link"]).output();
    if !may_unshare.is_ok_and(|it| it.status.success()) {
        let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(
            !in_ci,
            "no network namespaces for this user, or no unshare and ip"
        );
        println!("not run: no network namespaces for this user, or no unshare and ip");
        return;
    }
    let this = std::env::current_exe().unwrap();
    let outcome = Command::new("unshare")
        .args(["-rn", "sh", "-c", SET_UP])
        .arg(this)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&outcome.stdout);
    assert!(outcome.status.success() && text.contains("1 passed"), "{text}");
}
