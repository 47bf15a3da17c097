//! Whether a connection goes on after its session.

use farline_spec::FailureKind;

use super::*;
use crate::message::KEEPS;

#[test]
fn a_connection_goes_on_where_both_ends_know_how_and_the_session_ended_well() {
    let older = VersionRange {
        max: KEEPS - 1,
        ..VERSIONS
    };
    let over_files = r#"{"copy":{"sources":["s"],"destination":"d"}}"#;
    for (of, versions, goes_on) in [
        ("{}", VERSIONS, true),
        ("{}", older, false),
        (over_files, VERSIONS, false),
    ] {
        let mut pair = Pair::new(of, 50);
        pair.client = client_of(spec(of), versions);
        assert!(!pair.client.goes_on() && !pair.server.goes_on(), "{of}");
        pair.run();
        assert_eq!(
            (pair.client.goes_on(), pair.server.goes_on()),
            (goes_on, goes_on),
            "{of} {versions}"
        );
    }
    let mut pair = Pair::new(r#"{"duration_s":5}"#, 50);
    pair.client.handle_event(
        Duration::ZERO,
        ClientEvent::Failed(Failure::new(FailureKind::System, "full")),
    );
    pair.run();
    assert!(
        !pair.client.goes_on() && !pair.server.goes_on(),
        "a session that failed"
    );
}
