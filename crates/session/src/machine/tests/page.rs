//! The tables as snapshots, and the page of the design made from them.

use std::fmt::Write;
use std::path::Path;

use crate::machine::client::ClientState;
use crate::machine::server::ServerState;
use crate::machine::table::{Row, Wait};

type Rules = &'static [(&'static str, &'static str)];

const CLIENT: (&str, &[Row], Rules) = ("ClientState", ClientState::ROWS, ClientState::FROM_ANY);
const SERVER: (&str, &[Row], Rules) = ("ServerState", ServerState::ROWS, ServerState::FROM_ANY);

#[test]
fn transition_tables_and_graphs() {
    insta::assert_snapshot!("client_table", table(CLIENT));
    insta::assert_snapshot!("client_graph", dot(CLIENT));
    insta::assert_snapshot!("server_table", table(SERVER));
    insta::assert_snapshot!("server_graph", dot(SERVER));
}

/// What the tables do not say of changes while a copy runs.
const CHANGES: &str = "\
## Changes while a copy runs

From version 4 on a client may say ADJUST while data flow: so many data streams more, so many fewer, how many files are sent at
once, which rate all data streams share. One change is under way at a time; what is wanted meanwhile becomes one change
(`machine/adjust.rs`). ADJUSTED says that it is in force at the server, or why not; nothing of a change that is refused is done.

| what | who does it | how |
|---|---|---|
| more streams | the client opens them, whichever way data flow | their numbers follow the last ones: no number comes twice in a session, since the key of a stream's cipher follows from it. Both ends expect a stream before it may come; each joins the run as it is open, and the others go on meanwhile |
| fewer streams | the end that has the files | whichever stream comes first between two frames sends what it has begun to read and then its end, which is in band: nothing is lost, sent again or asked for. One always stays |
| files at once, rate | the end that has the files | at once |

A change takes one round trip, and streams that are to be opened one or two more; no stream that is there waits for any of it.
Streams that cannot be opened are told of and do not count. A stream that breaks ends the session, as at any time.

The server listens for the streams of a change alone, on ports of the same range or on its single port, and says where in ADJUSTED;
who comes there must name a stream that is expected just then and prove it by the session's secret, as at the start. When all are
there, or connecting has taken too long, the ports are free again. A server
refuses more than the ticket's streams and rate, 256 streams at once, 4,096 opened while one copy runs, and a change while streams
of another are being opened. ADJUST after the server has all files is refused and no error: the client could not know.

STAGES is how far the server's end is (bytes at its files and on its streams, frames that wait between them), once an interval and
no more than ten times a second. With its own figures the client makes one `CopyStages` of it, from which a controller takes
differences. Nobody says ADJUST to an end of version 3 or less, and such a client is an error.

## Several sessions on one connection

From version 6 on a HANDSHAKE may say `keeps`: where its session ends with TPG_DONE, the server says CTRL_CHAN_EST again, with the
name of another session, as on a new connection: what follows is judged, limited and logged as if it were one. The runs of a
campaign spare TCP's and TLS's round trips so. Between two sessions a client has 30 s; it holds no place meanwhile, and 16 such
connections are kept at once: of more, and of a server that stops, the connection is closed, and the client connects again. A copy,
which does not wait for TPG_DONE, a session about names, and one to which the server connected are the last on their connection.

## Attributes of the destination folder

From version 7 on a copy of what is in a folder, with `--xattrs`, says the folder's own extended attributes and access control
lists before any entry (`Catalogue::TopXattrs`). A receiving end that makes the destination folder sets them.

## Names

From version 5 on the task of a HANDSHAKE may be `names`: no run, but requests about names below the folder of the ticket. The
server answers NAMES (whether the ticket is to read or to write), then each NAME with a NAME: a request has a `verb` (`list`, `stat`,
`make_folder`, `rename`, `remove`, `read`), an answer says what came of it, or is `refused` with a reason as a word and as a line.
One request is under way at a time. TPG_DONE from both ends the session; so does a minute without a request, and the length that
the ticket allows (`crates/spec/src/names.rs`, `crates/session/src/server/names.rs`).
";

/// Set `FARLINE_WRITE_DOCS` to write the page instead of comparing it.
#[test]
fn the_page_of_the_design_is_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/design/session.md");
    let page = page();
    if std::env::var_os("FARLINE_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written == page,
        "{} is stale: run the tests of farline-session with FARLINE_WRITE_DOCS=1",
        path.display()
    );
}

fn page() -> String {
    let (client_table, client_graph) = (table(CLIENT), dot(CLIENT));
    let (server_table, server_graph) = (table(SERVER), dot(SERVER));
    format!(
        "# The control session\n\n\
         This page is made from `crates/session/src/machine/client_state.rs` and `server.rs`; a test compares it with them. \
         Messages go by the names of TPG (Yun et al. 2015), section III.A.\n\n\
         How long a state lasts at most: *setup* 5 s from the whole first message of TLS, which has 2 s from the TCP \
         connection; *message* 30 s since the last message; \
         *connect* the spec's connect time-out and 10 s, at the server no more than 40 s; *own* 60 s; \
         *watchdog* duration + omit + max(30 s, duration / 4) + 10 s, for a copy the time of its ticket or ten years: \
         one that stands still is ended by the run itself; *peerend* the watchdog while the other end \
         has streams to send on, 30 s otherwise; *drain* 10 s, or the watchdog while this end still sends; \
         *grace* 1 s. Any input that is not named is an error: from the other end it is a `protocol` failure, \
         from this end an `internal` one; both are sent as ERROR before the channel is closed.\n\n\
         ## Client\n\n{client_table}\n```dot\n{client_graph}```\n\n\
         ## Server\n\n{server_table}\n```dot\n{server_graph}```\n\n{CHANGES}"
    )
}

/// The rows as a table in Markdown.
fn table((_, rows, from_any): (&str, &[Row], Rules)) -> String {
    let mut text = String::from(
        "| State | lasts at most | what happens | inputs and where they lead |\n|---|---|---|---|\n",
    );
    for row in rows {
        let exits: Vec<_> = row
            .exits
            .iter()
            .map(|(word, to)| format!("{word} → {to}"))
            .collect();
        let wait = format!("{:?}", row.wait).to_lowercase();
        let _ = writeln!(
            text,
            "| {} | {wait} | {} | {} |",
            row.state,
            row.meaning,
            exits.join("; ")
        );
    }
    let exits: Vec<_> = from_any
        .iter()
        .map(|(word, to)| format!("{word} → {to}"))
        .collect();
    let _ = writeln!(text, "| any other that goes on | | | {} |", exits.join("; "));
    text
}

/// The rows as a graph; rules that hold everywhere are one dashed edge each.
fn dot((name, rows, from_any): (&str, &[Row], Rules)) -> String {
    let mut text = format!("digraph {name} {{\n  rankdir=TB;\n  node [shape=box];\n");
    for row in rows.iter().filter(|row| row.wait == Wait::Nothing) {
        let _ = writeln!(text, "  {} [shape=doublecircle];", row.state);
    }
    for row in rows {
        for (word, to) in row.exits {
            let _ = writeln!(text, "  {} -> {to} [label=\"{word}\"];", row.state);
        }
    }
    for (word, to) in from_any {
        let _ = writeln!(text, "  any -> {to} [label=\"{word}\", style=dashed];");
    }
    text.push_str("}\n");
    text
}
