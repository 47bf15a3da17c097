//! Tickets as they are remembered: listed, looked at and revoked, without the server.

use farline_spec::{Failure, FailureKind, TicketClaims, TicketRecord};
use serde::{Deserialize, Serialize};

use crate::state_dir::{ServerFolders, StateDir};
use crate::target::Target;
use crate::ticket::{
    KEPT_FOLDER, TicketOffice, USES_FOLDER, claims_of, file_name, has_secret, is_name, now_s, unwritten,
};

/// What the folder keeps of a ticket that was made.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    claims: TicketClaims,
    address: String,
    made_at_s: u64,
}

impl TicketOffice {
    /// Keeps what a new ticket says, for whoever lists tickets.
    pub(crate) fn remember(&self, claims: &TicketClaims, address: String) -> Result<(), Failure> {
        let kept = Kept {
            claims: claims.clone(),
            address,
            made_at_s: now_s(),
        };
        let json = serde_json::to_vec(&kept).map_err(|error| unwritten(&error))?;
        self.state.keep(KEPT_FOLDER, &file_name(claims), &json)
    }

    /// Tickets made here that are remembered, the oldest first.
    fn kept(&self) -> Result<Vec<Kept>, Failure> {
        let read = |(name, content): (String, Vec<u8>)| {
            serde_json::from_slice::<Kept>(&content).map_err(|error| {
                let line = format!("{KEPT_FOLDER}/{name} in the state folder is damaged: {error}; remove it");
                Failure::new(FailureKind::System, line)
            })
        };
        let files = self.state.read_all(KEPT_FOLDER)?;
        files.into_iter().map(read).collect()
    }

    fn record(&self, kept: Kept) -> Result<TicketRecord, Failure> {
        let uses = self.state.length(USES_FOLDER, &file_name(&kept.claims))?;
        Ok(TicketRecord {
            revoked: self.is_revoked(&kept.claims)?,
            claims: kept.claims,
            address: kept.address,
            made_at_s: Some(kept.made_at_s),
            used_sessions: uses.unwrap_or(0),
            signed_here: true,
        })
    }
}

/// Tickets that the server with these `folders` knows of and that were not expired when the
/// last one was made, the oldest first.
///
/// # Errors
/// [`FailureKind::System`] when the state folder cannot be read.
pub fn list_tickets<'a>(folders: impl Into<ServerFolders<'a>>) -> Result<Vec<TicketRecord>, Failure> {
    let Some(office) = existing_office(folders.into())? else {
        return Ok(Vec::new());
    };
    let kept = office.kept()?;
    kept.into_iter().map(|one| office.record(one)).collect()
}

/// What the ticket with this URL says. Whether the claims can be believed is in `signed_here`.
///
/// # Errors
/// [`FailureKind::Usage`] for a text that is no ticket, [`FailureKind::System`] when the state folder cannot be read.
pub fn inspect_ticket<'a>(folders: impl Into<ServerFolders<'a>>, url: &str) -> Result<TicketRecord, Failure> {
    let target = Target::parse(url)?;
    let no_ticket = || {
        let line = "this is no ticket: a ticket is the whole line farline://HOST:PORT/v1....";
        Failure::new(FailureKind::Usage, line)
    };
    let text = target.ticket.as_deref().ok_or_else(no_ticket)?;
    let claims = text.rsplit_once('.').and_then(|(signed, _)| claims_of(signed));
    let claims = claims.ok_or_else(no_ticket)?;
    let record = TicketRecord {
        claims,
        address: target.address(),
        made_at_s: None,
        used_sessions: 0,
        revoked: false,
        signed_here: false,
    };
    let Some(office) = existing_office(folders.into())? else {
        return Ok(record);
    };
    if office.open_claims(text).is_none() {
        return Ok(record);
    }
    let same = |kept: &Kept| kept.claims == record.claims;
    if let Some(kept) = office.kept()?.into_iter().find(same) {
        return office.record(kept);
    }
    let uses = office.state.length(USES_FOLDER, &file_name(&record.claims))?;
    Ok(TicketRecord {
        used_sessions: uses.unwrap_or(0),
        revoked: office.is_revoked(&record.claims)?,
        signed_here: true,
        ..record
    })
}

/// Has every server of the state folder refuse the ticket with these claims from its next use on.
/// Sessions that it began already go on.
///
/// # Errors
/// [`FailureKind::System`] when that cannot be written down.
pub fn revoke_ticket<'a>(
    folders: impl Into<ServerFolders<'a>>,
    claims: &TicketClaims,
) -> Result<(), Failure> {
    if !is_name(&claims.id) {
        return Err(Failure::new(FailureKind::Spec, "id: not the name of a ticket"));
    }
    TicketOffice::open(&StateDir::of(folders.into())?)?.revoke(claims)
}

/// The office of a folder that is there; looking makes none.
fn existing_office(folders: ServerFolders<'_>) -> Result<Option<TicketOffice>, Failure> {
    if !has_secret(folders)? {
        return Ok(None);
    }
    TicketOffice::open(&StateDir::of(folders)?).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticket::SECRET_FILE;
    use crate::ticket::mint_ticket;
    use farline_spec::unit::SessionCount;
    use farline_spec::{Limits, Scope};
    use std::time::Duration;

    #[test]
    fn tickets_without_their_key_are_not_taken_for_no_tickets() {
        let (state, keys) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let both = ServerFolders {
            state: state.path(),
            keys: keys.path(),
        };
        let lifetime = Duration::from_secs(60);
        let url = mint_ticket(both, "h", Scope::Profile, Limits::default(), lifetime).unwrap();
        assert_eq!(list_tickets(both).unwrap().len(), 1);
        for refusal in [
            list_tickets(state.path()).unwrap_err(),
            inspect_ticket(state.path(), &url).unwrap_err(),
            mint_ticket(state.path(), "h", Scope::Profile, Limits::default(), lifetime).unwrap_err(),
            revoke_ticket(state.path(), &list_tickets(both).unwrap()[0].claims).unwrap_err(),
        ] {
            assert_eq!(refusal.kind, FailureKind::Usage);
            assert!(refusal.message.contains("has no ticket.key"), "{refusal}");
        }
        assert!(!state.path().join(SECRET_FILE).exists(), "no second key was made");
        assert!(inspect_ticket(both, &url).unwrap().signed_here);
    }

    #[test]
    fn tickets_that_have_expired_need_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join(KEPT_FOLDER);
        std::fs::create_dir(&kept).unwrap();
        std::fs::write(kept.join("01J00000000000000000000000.1000"), "{}").unwrap();
        assert!(!has_secret(folder.path().into()).unwrap());
        std::fs::write(kept.join("01J00000000000000000000000.99999999999"), "{}").unwrap();
        assert!(has_secret(folder.path().into()).is_err());
    }

    #[test]
    fn a_ticket_that_was_made_is_listed_without_what_would_let_others_use_it() {
        let folder = tempfile::tempdir().unwrap();
        assert!(list_tickets(folder.path()).unwrap().is_empty());
        let limits = Limits {
            sessions: Some(SessionCount::new(3).unwrap()),
            ..Limits::default()
        };
        let scope = Scope::Read { root: "/data".into() };
        let url = mint_ticket(
            folder.path(),
            "h:7",
            scope.clone(),
            limits,
            Duration::from_secs(60),
        )
        .unwrap();
        let listed = list_tickets(folder.path()).unwrap();
        let [ticket] = listed.as_slice() else {
            panic!("{listed:?}")
        };
        assert_eq!((ticket.address.as_str(), &ticket.claims.scope), ("h:7", &scope));
        assert_eq!(
            (ticket.used_sessions, ticket.revoked, ticket.signed_here),
            (0, false, true)
        );
        assert_eq!(&inspect_ticket(folder.path(), &url).unwrap(), ticket);
        let office = existing_office(folder.path().into()).unwrap().unwrap();
        office.count_use(&ticket.claims).unwrap();
        revoke_ticket(folder.path(), &ticket.claims).unwrap();
        let after = inspect_ticket(folder.path(), &url).unwrap();
        assert_eq!((after.used_sessions, after.revoked), (1, true));
        let mac = url.rsplit_once('.').unwrap().1.split_once('?').unwrap().0;
        let kept = office.state.read_all(KEPT_FOLDER).unwrap();
        assert!(!String::from_utf8_lossy(&kept[0].1).contains(mac));
    }

    #[test]
    fn a_strangers_ticket_can_be_read_and_is_not_taken_for_one_of_this_server() {
        let (folder, stranger) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let lifetime = Duration::from_secs(60);
        let url = mint_ticket(stranger.path(), "h", Scope::Profile, Limits::default(), lifetime).unwrap();
        let before = inspect_ticket(folder.path(), &url).unwrap();
        mint_ticket(folder.path(), "h", Scope::Profile, Limits::default(), lifetime).unwrap();
        let after = inspect_ticket(folder.path(), &url).unwrap();
        assert!(!before.signed_here && !after.signed_here && before == after);
        for text in ["h", "farline://h", "farline://h/v1.AAAA.BBBB"] {
            assert_eq!(
                inspect_ticket(folder.path(), text).unwrap_err().kind,
                FailureKind::Usage,
                "{text}"
            );
        }
    }
}
