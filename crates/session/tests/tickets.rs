//! Tickets that were made once hold as long as they say: those in `tests/tickets`, with the folder of the server that made
//! them, are admitted by every later version. A new form is a new line; no line changes. `FARLINE_WRITE_DOCS=1` writes the folder
//! where there is none.

mod common;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{complete, spec};
use farline_session::{Interrupt, NamesClient, Server, Target, inspect_ticket, mint_ticket, start_run};
use farline_spec::{FailureKind, IpVersion, Limits, Scope, from_json};

const FILES: [&str; 2] = ["ticket.key", "server.pem"];
/// A hundred years: what is kept here is never too old.
const LIFETIME: Duration = Duration::from_secs(100 * 365 * 86_400);
const RUN: &str = r#"{"total_bytes":1000}"#;

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tickets")
}

/// Scope and limits of each line, in order.
fn made() -> Vec<(Scope, Limits)> {
    let root = || "/srv/data".to_owned();
    let limits: Limits = from_json(
        r#"{"rate_bps":1000000000,"duration_s":60.0,"total_bytes":100000000,"streams":8,"sessions":1000}"#,
    )
    .unwrap();
    vec![
        (Scope::Profile, Limits::default()),
        (Scope::Read { root: root() }, Limits::default()),
        (Scope::Write { root: root() }, Limits::default()),
        (Scope::Profile, limits),
    ]
}

fn write(folder: &Path) {
    let state = tempfile::tempdir().unwrap();
    let tickets = made().into_iter().map(|(scope, limits)| {
        let url = mint_ticket(state.path(), "127.0.0.1:1", scope, limits, LIFETIME).unwrap();
        format!("{url}\n")
    });
    let tickets: String = tickets.collect();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("tickets.txt"), tickets).unwrap();
    for name in FILES {
        std::fs::copy(state.path().join(name), folder.join(name)).unwrap();
    }
}

/// The folder of the server that made them, for its owner alone.
fn server_folder(kept: &Path) -> tempfile::TempDir {
    let state = tempfile::tempdir().unwrap();
    for name in FILES {
        let place = state.path().join(name);
        std::fs::copy(kept.join(name), &place).unwrap();
        std::fs::set_permissions(&place, Permissions::from_mode(0o600)).unwrap();
    }
    state
}

#[test]
fn tickets_that_were_made_by_any_version_are_admitted_with_the_scope_and_limits_that_they_had() {
    let folder = kept();
    if !folder.exists() && std::env::var_os("FARLINE_WRITE_DOCS").is_some() {
        write(&folder);
    }
    let state = server_folder(&folder);
    let options = format!(
        r#"{{"listen":["127.0.0.1"],"port":0,"state_dir":{:?}}}"#,
        state.path().display().to_string()
    );
    let server = Server::start(from_json(&options).unwrap()).unwrap();
    let address = server.addresses()[0].to_string();
    let text = std::fs::read_to_string(folder.join("tickets.txt")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), made().len());
    for (line, (scope, limits)) in lines.iter().zip(made()) {
        let url = line.replace("127.0.0.1:1/", &format!("{address}/"));
        let facts = inspect_ticket(state.path(), &url).unwrap();
        assert_eq!(
            (&facts.claims.scope, &facts.claims.limits),
            (&scope, &limits),
            "{line}"
        );
        let target = Target::parse(&url).unwrap();
        match scope {
            Scope::Profile => assert_eq!(complete(target, RUN).record.error, None, "{line}"),
            Scope::Read { .. } | Scope::Write { .. } => {
                let refused = complete(target.clone(), RUN).record.error.unwrap();
                assert!(
                    refused.message.starts_with("the ticket is for"),
                    "{line}: {refused}"
                );
                let interrupt = Interrupt::new().unwrap();
                let opened = NamesClient::open(&target, IpVersion::Any, common::PATIENCE, interrupt);
                // The folder that it is for is not on this host; the ticket is good all the same.
                let failure = opened.unwrap_err();
                assert!(failure.message.contains("/srv/data"), "{line}: {failure}");
            }
        }
    }
}

#[test]
fn a_kept_ticket_that_was_changed_is_refused() {
    let folder = kept();
    let state = server_folder(&folder);
    let options = format!(
        r#"{{"listen":["127.0.0.1"],"port":0,"state_dir":{:?}}}"#,
        state.path().display().to_string()
    );
    let server = Server::start(from_json(&options).unwrap()).unwrap();
    let text = std::fs::read_to_string(folder.join("tickets.txt")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let claims = |line: &str| line.split('.').nth(4).unwrap().to_owned();
    // The claims of one with the seal of another.
    let mixed = lines[3].replace(&claims(lines[3]), &claims(lines[0]));
    let url = mixed.replace("127.0.0.1:1/", &format!("{}/", server.addresses()[0]));
    let run = start_run(Target::parse(&url).unwrap(), spec(RUN));
    let error = common::follow(&run).record.error.unwrap();
    assert_eq!(error.kind, FailureKind::Auth, "{error}");
}
