//! The program that `farline copy --bootstrap` sends to a host without farline.
//!
//! What it does: the far end of one copy, as `farline serve --copy-session` is: prints one line, serves who has the ticket in
//! it, and ends when its standard input does. It takes the same words, so that whoever started it needs not know which of
//! the two runs there.
//! What it must not do: anything else that farline can; need a library, Python or root of the host; leave anything behind.
//!
//! In: words of the command line, standard input. Out: the ready line (`farline.tools.ssh.Ready`), files, an exit code.
//!
//! Start with [`words`], then [`serve`].

mod folder;
mod serve;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use farline_logs::{Format, Settings};
use farline_spec::Failure;

use crate::words::{Log, Wanted};

/// Exit codes of farline: docs/guide/shell.md.
const USAGE_CODE: u8 = 1;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let wanted = match words::read(&words) {
        Ok(wanted) => wanted,
        Err(complaint) => {
            eprintln!("farline: {complaint}");
            return ExitCode::from(USAGE_CODE);
        }
    };
    match carry_out(&wanted) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("farline: {}", failure.message);
            ExitCode::from(failure.kind.exit_code())
        }
    }
}

fn carry_out(wanted: &Wanted) -> Result<(), Failure> {
    match wanted {
        Wanted::Version => {
            println!("farline {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Wanted::Serve(session, log) => {
            if let Some(log) = log {
                farline_logs::start(settings(log))?;
            }
            serve::serve(session)
        }
    }
}

fn settings(log: &Log) -> Settings {
    Settings {
        level: log.level,
        rooms: log.rooms.clone(),
        format: Format::Json,
        file: None,
    }
}
