//! Memory over many sessions, by the example `soak`, which `cargo test` builds. The example takes
//! the number of sessions: ten thousand are a matter of minutes.

use std::process::Command;

#[test]
fn memory_stays_flat_over_some_hundred_sessions() {
    let test = std::env::current_exe().unwrap();
    let soak = test.ancestors().nth(2).unwrap().join("examples/soak");
    let output = Command::new(soak).args(["300", "2"]).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 10);
}
