//! Tickets: claims that the server signed; whoever holds one may use it.
//!
//! ```text
//! farline://HOST:PORT/v1.CLAIMS.MAC?key=sha256-FINGERPRINT
//!           CLAIMS = base64url(JSON of TicketClaims)
//!           MAC    = base64url(HMAC-SHA256(server's secret, "v1." CLAIMS))
//! ```
//!
//! The secret never leaves the folder of the server's keys, so a ticket can be made without the daemon
//! and checked without a list of tickets. The state folder has, in files named `ID.EXPIRY`:
//!
//! ```text
//! ticket-uses/       a byte for each session, where their number is limited
//! tickets/           what each ticket made here says, without its signature: for `farline ticket list`
//! tickets-revoked/   an empty file for each ticket that no longer holds: looked at whenever one is used
//! ```

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use farline_spec::{Direction, Failure, FailureKind, Limits, Scope, TicketClaims, from_json, kernel_words};
use ring::hmac;

use crate::message::Task;
use crate::state_dir::{ServerFolders, StateDir, random};
use crate::target::{MAX_TICKET_BYTES, Target};
use crate::tls::ServerIdentity;

pub(crate) const SECRET_FILE: &str = "ticket.key";
const SECRET_BYTES: usize = 32;
pub(crate) const USES_FOLDER: &str = "ticket-uses";
pub(crate) const KEPT_FOLDER: &str = "tickets";
const REVOKED_FOLDER: &str = "tickets-revoked";
const VERSION: &str = "v1";
const MAX_ID_BYTES: usize = 64;

/// Makes and checks tickets.
#[derive(Debug, Clone)]
pub struct TicketOffice {
    secret: hmac::Key,
    pub(crate) state: StateDir,
}

impl TicketOffice {
    /// Reads the secret from `state`, or makes it.
    ///
    /// # Errors
    /// As [`has_secret`]; [`FailureKind::System`] when the file cannot be read or made, or has the wrong length.
    pub fn open(state: &StateDir) -> Result<Self, Failure> {
        has_secret(state.folders())?;
        let secret = state.read_or_make(SECRET_FILE, || Ok(random::<SECRET_BYTES>()?.to_vec()))?;
        if secret.len() != SECRET_BYTES {
            let line = format!(
                "{}: {} bytes; allowed: {SECRET_BYTES}",
                state.secret(SECRET_FILE).display(),
                secret.len()
            );
            return Err(Failure::new(FailureKind::System, line));
        }
        Ok(Self {
            secret: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            state: state.clone(),
        })
    }

    /// The ticket for `claims`, `v1.CLAIMS.MAC`.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] when the claims make it longer than a ticket may be.
    pub fn sign(&self, claims: &TicketClaims) -> Result<String, Failure> {
        let json = serde_json::to_vec(claims).map_err(|error| unwritten(&error))?;
        let signed = format!("{VERSION}.{}", URL_SAFE_NO_PAD.encode(json));
        let mac = URL_SAFE_NO_PAD.encode(hmac::sign(&self.secret, signed.as_bytes()));
        let ticket = format!("{signed}.{mac}");
        if ticket.len() > MAX_TICKET_BYTES {
            let line = format!(
                "scope: makes a ticket of {} bytes; allowed: {MAX_TICKET_BYTES}",
                ticket.len()
            );
            return Err(Failure::new(FailureKind::Spec, line));
        }
        Ok(ticket)
    }

    /// What `ticket` allows at the time `now_s` (seconds since 1970).
    ///
    /// # Errors
    /// [`FailureKind::Auth`], in the same words whatever is wrong with a ticket that this server did not sign.
    pub fn check(&self, ticket: &str, now_s: u64) -> Result<TicketClaims, Failure> {
        let claims = self
            .open_claims(ticket)
            .ok_or_else(|| auth("the ticket was not issued by this server"))?;
        if now_s >= claims.expires_at_s {
            return Err(auth("the ticket has expired"));
        }
        if self.is_revoked(&claims)? {
            return Err(auth("the ticket was revoked; ask for a new one"));
        }
        Ok(claims)
    }

    pub(crate) fn is_revoked(&self, claims: &TicketClaims) -> Result<bool, Failure> {
        let mark = self.state.length(REVOKED_FOLDER, &file_name(claims))?;
        Ok(mark.is_some())
    }

    /// Refuses the ticket with these claims from now on, on every server of this folder.
    ///
    /// # Errors
    /// [`FailureKind::System`] when that cannot be written down.
    pub fn revoke(&self, claims: &TicketClaims) -> Result<(), Failure> {
        self.state.mark(REVOKED_FOLDER, &file_name(claims))
    }

    /// Reads the claims only after the signature was found right.
    pub(crate) fn open_claims(&self, ticket: &str) -> Option<TicketClaims> {
        if ticket.len() > MAX_TICKET_BYTES {
            return None;
        }
        let (signed, mac) = ticket.rsplit_once('.')?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        hmac::verify(&self.secret, signed.as_bytes(), &mac).ok()?;
        claims_of(signed)
    }

    /// Counts one use of a ticket whose uses are limited.
    ///
    /// # Errors
    /// [`FailureKind::Auth`] when they are used up, [`FailureKind::System`] when the count cannot be kept.
    pub fn count_use(&self, claims: &TicketClaims) -> Result<(), Failure> {
        let Some(allowed) = claims.limits.sessions else {
            return Ok(());
        };
        let uses = self.state.count(USES_FOLDER, &file_name(claims))?;
        if uses > u64::from(allowed.get()) {
            return Err(auth(&format!(
                "the ticket is used up; sessions allowed: {}",
                allowed.get()
            )));
        }
        Ok(())
    }

    /// Forgets tickets that have expired at `now_s`, their uses and whether they were revoked.
    ///
    /// # Errors
    /// [`FailureKind::System`] when the folder cannot be read or changed.
    pub fn forget_expired(&self, now_s: u64) -> Result<(), Failure> {
        for folder in [USES_FOLDER, KEPT_FOLDER, REVOKED_FOLDER] {
            self.state.prune(folder, |name| is_valid(name, now_s))?;
        }
        Ok(())
    }
}

/// Whether the ticket that a file is about has not expired.
pub(crate) fn is_valid(file_name: &str, now_s: u64) -> bool {
    let expiry = file_name
        .rsplit_once('.')
        .and_then(|(_, expiry)| expiry.parse::<u64>().ok());
    expiry.is_some_and(|expires_at_s| now_s < expires_at_s)
}

/// Refuses a task that `scope` does not cover; gives the folder that a copy may not leave.
///
/// # Errors
/// [`FailureKind::Auth`] that names what the ticket is for.
pub fn check_scope<'a>(scope: &'a Scope, task: &Task) -> Result<Option<&'a str>, Failure> {
    let Task::Profile(spec) = task else {
        return match scope {
            Scope::Profile => Err(auth("the ticket is for profiling, not for files")),
            Scope::Read { root } | Scope::Write { root } => Ok(Some(root)),
        };
    };
    let wanted = match (&spec.copy, spec.direction) {
        (None, _) => "profiling",
        (Some(_), Direction::Reverse) => "reading files",
        (Some(_), _) => "writing files",
    };
    let (allowed, root) = match scope {
        Scope::Profile => ("profiling", None),
        Scope::Read { root } => ("reading files", Some(root.as_str())),
        Scope::Write { root } => ("writing files", Some(root.as_str())),
    };
    if allowed == wanted {
        return Ok(root);
    }
    Err(auth(&format!("the ticket is for {allowed}, not for {wanted}")))
}

/// Makes a ticket for the server with these `folders`, which clients reach at
/// `address` (`host[:port]`); gives its URL. The daemon need not run.
///
/// # Errors
/// [`FailureKind::Usage`] for an address that is none, [`FailureKind::Spec`] for a lifetime or scope out of
/// range, [`FailureKind::System`] when the state folder cannot be used.
pub fn mint_ticket<'a>(
    folders: impl Into<ServerFolders<'a>>,
    address: &str,
    scope: Scope,
    limits: Limits,
    lifetime: Duration,
) -> Result<String, Failure> {
    let mut target = Target::parse(address)?;
    if lifetime < Duration::from_secs(1) {
        return Err(Failure::new(FailureKind::Spec, "lifetime: must be 1 s or more"));
    }
    let state = StateDir::of(folders.into())?;
    let claims = TicketClaims {
        id: ulid::Ulid::new().to_string(),
        scope,
        limits,
        expires_at_s: now_s().saturating_add(lifetime.as_secs()),
    };
    let office = TicketOffice::open(&state)?;
    target.ticket = Some(office.sign(&claims)?);
    office.forget_expired(now_s())?;
    office.remember(&claims, target.address())?;
    target.pin = Some(ServerIdentity::load(&state)?.fingerprint);
    Ok(target.url())
}

/// What `v1.CLAIMS` says, whoever signed it.
pub(crate) fn claims_of(signed: &str) -> Option<TicketClaims> {
    let claims = signed.strip_prefix(VERSION)?.strip_prefix('.')?;
    let json = String::from_utf8(URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    let claims = from_json::<TicketClaims>(&json).ok()?;
    is_name(&claims.id).then_some(claims)
}

pub(crate) fn file_name(claims: &TicketClaims) -> String {
    format!("{}.{}", claims.id, claims.expires_at_s)
}

pub(crate) fn unwritten(error: &serde_json::Error) -> Failure {
    Failure::new(FailureKind::Internal, format!("writing a ticket: {error}"))
}

/// Whether there is a secret behind the tickets of a server.
///
/// # Errors
/// [`FailureKind::Usage`] where there are tickets without it: whoever asks has named the wrong folder of keys.
/// [`FailureKind::System`] when the folder cannot be looked into.
pub(crate) fn has_secret(folders: ServerFolders<'_>) -> Result<bool, Failure> {
    let secret = folders.keys.join(SECRET_FILE);
    let is_there = secret.try_exists().map_err(|error| {
        let line = format!("{}: {}", secret.display(), kernel_words(&error));
        Failure::new(FailureKind::System, line)
    })?;
    let kept = std::fs::read_dir(folders.state.join(KEPT_FOLDER));
    let has_tickets = kept.is_ok_and(|kept| {
        kept.flatten()
            .any(|file| is_valid(&file.file_name().to_string_lossy(), now_s()))
    });
    if !is_there && has_tickets {
        let line = format!(
            "{} has no {SECRET_FILE}, but {state} has tickets; name the folder of the keys with --keys, or delete \
             {state}/{KEPT_FOLDER} if they are to be void",
            folders.keys.display(),
            state = folders.state.display()
        );
        return Err(Failure::new(FailureKind::Usage, line));
    }
    Ok(is_there)
}

/// Seconds since 1970 by this machine's clock.
pub fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Whether `id` can stand in a file's name.
pub(crate) fn is_name(id: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn auth(line: &str) -> Failure {
    Failure::new(FailureKind::Auth, line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::unit::SessionCount;
    use proptest::prelude::*;

    fn office() -> (tempfile::TempDir, TicketOffice) {
        let folder = tempfile::tempdir().unwrap();
        let office = TicketOffice::open(&StateDir::open(folder.path()).unwrap()).unwrap();
        (folder, office)
    }

    fn claims() -> TicketClaims {
        TicketClaims {
            id: "t1".into(),
            scope: Scope::Profile,
            limits: Limits::default(),
            expires_at_s: 100,
        }
    }

    #[test]
    fn a_ticket_holds_until_it_expires() {
        let (_keep, office) = office();
        let ticket = office.sign(&claims()).unwrap();
        assert_eq!(office.check(&ticket, 99).unwrap(), claims());
        let refusal = office.check(&ticket, 100).unwrap_err();
        assert_eq!(
            (refusal.kind, refusal.message.as_str()),
            (FailureKind::Auth, "the ticket has expired")
        );
    }

    #[test]
    fn any_changed_letter_and_any_other_server_gets_the_same_answer() {
        let ((_keep, office), (_also, stranger)) = (office(), office());
        let ticket = office.sign(&claims()).unwrap();
        let expected = stranger.check(&ticket, 0).unwrap_err();
        assert_eq!(expected.message, "the ticket was not issued by this server");
        for place in 0..ticket.len() {
            let mut forged = ticket.clone().into_bytes();
            forged[place] = if forged[place] == b'A' { b'B' } else { b'A' };
            assert_eq!(
                office.check(&String::from_utf8(forged).unwrap(), 0),
                Err(expected.clone()),
                "at {place}"
            );
        }
        for other in [
            "",
            ".",
            "v1..",
            "v2.e30.AAAA",
            &ticket[..ticket.len() - 1],
            &"a.".repeat(5000),
        ] {
            assert_eq!(office.check(other, 0), Err(expected.clone()), "{other}");
        }
    }

    #[test]
    fn an_id_that_could_leave_the_folder_is_no_ticket_even_if_signed() {
        let (_keep, office) = office();
        for id in ["../../x", "", "a/b", ".", &"a".repeat(65)] {
            let ticket = office
                .sign(&TicketClaims {
                    id: id.into(),
                    ..claims()
                })
                .unwrap();
            assert!(office.check(&ticket, 0).is_err(), "{id}");
        }
    }

    #[test]
    fn uses_are_counted_across_restarts() {
        let (folder, office) = office();
        let sessions = Some(SessionCount::new(2).unwrap());
        let limited = TicketClaims {
            limits: Limits {
                sessions,
                ..Limits::default()
            },
            ..claims()
        };
        office.count_use(&limited).unwrap();
        let restarted = TicketOffice::open(&StateDir::open(folder.path()).unwrap()).unwrap();
        restarted.forget_expired(99).unwrap();
        restarted.count_use(&limited).unwrap();
        let refusal = restarted.count_use(&limited).unwrap_err();
        assert_eq!(refusal.message, "the ticket is used up; sessions allowed: 2");
        restarted.forget_expired(100).unwrap();
        restarted.count_use(&limited).unwrap();
    }

    #[test]
    fn a_revoked_ticket_is_refused_by_servers_that_run_and_by_later_ones() {
        let (folder, office) = office();
        let (one, two) = (
            claims(),
            TicketClaims {
                id: "t2".into(),
                ..claims()
            },
        );
        let (first, second) = (office.sign(&one).unwrap(), office.sign(&two).unwrap());
        office.check(&first, 0).unwrap();
        crate::revoke_ticket(folder.path(), &one).unwrap();
        let restarted = TicketOffice::open(&StateDir::open(folder.path()).unwrap()).unwrap();
        for server in [&office, &restarted] {
            let refusal = server.check(&first, 0).unwrap_err();
            assert_eq!(
                (refusal.kind, refusal.message.as_str()),
                (FailureKind::Auth, "the ticket was revoked; ask for a new one")
            );
            server.check(&second, 0).unwrap();
            server.forget_expired(99).unwrap();
        }
        office.forget_expired(100).unwrap();
        assert!(!office.is_revoked(&one).unwrap());
    }

    #[test]
    fn a_ticket_for_files_is_not_for_profiling() {
        let task = Task::Profile(farline_spec::RunSpec::default());
        assert!(check_scope(&Scope::Profile, &task).is_ok());
        let refusal = check_scope(&Scope::Read { root: "/".into() }, &task).unwrap_err();
        assert_eq!(refusal.kind, FailureKind::Auth);
        assert!(check_scope(&Scope::Write { root: "/".into() }, &task).is_err());
    }

    #[test]
    fn a_copy_needs_a_ticket_for_its_own_direction() {
        let (read, write) = (
            Scope::Read { root: "/r".into() },
            Scope::Write { root: "/w".into() },
        );
        let copy = |direction: &str| {
            let text =
                format!(r#"{{"direction":"{direction}","copy":{{"sources":["s"],"destination":"d"}}}}"#);
            Task::Profile(from_json(&text).unwrap())
        };
        assert_eq!(check_scope(&write, &copy("forward")).unwrap(), Some("/w"));
        assert_eq!(check_scope(&read, &copy("reverse")).unwrap(), Some("/r"));
        for (scope, direction) in [
            (&read, "forward"),
            (&write, "reverse"),
            (&Scope::Profile, "forward"),
        ] {
            assert_eq!(
                check_scope(scope, &copy(direction)).unwrap_err().kind,
                FailureKind::Auth
            );
        }
    }

    #[test]
    fn a_minted_ticket_is_the_servers_own() {
        let folder = tempfile::tempdir().unwrap();
        let mint = |address: &str, lifetime_s| {
            mint_ticket(
                folder.path(),
                address,
                Scope::Profile,
                Limits::default(),
                Duration::from_secs(lifetime_s),
            )
        };
        let target = Target::parse(&mint("[::1]:7", 60).unwrap()).unwrap();
        let state = StateDir::open(folder.path()).unwrap();
        assert_eq!(target.address(), "[::1]:7");
        assert_eq!(
            target.pin,
            Some(ServerIdentity::load(&state).unwrap().fingerprint)
        );
        let claims = TicketOffice::open(&state)
            .unwrap()
            .check(&target.ticket.unwrap(), now_s())
            .unwrap();
        assert!(claims.expires_at_s <= now_s() + 60);
        assert_eq!(mint("h", 0).unwrap_err().kind, FailureKind::Spec);
        assert_eq!(mint("a b", 60).unwrap_err().kind, FailureKind::Usage);
    }

    proptest! {
        #[test]
        fn no_text_opens_a_server(text in ".{0,200}") {
            let (_keep, office) = office();
            prop_assert!(office.check(&text, 0).is_err());
            let versioned = format!("v1.{text}");
            prop_assert!(office.check(&versioned, 0).is_err());
        }
    }
}
