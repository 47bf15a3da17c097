//! Who may do what: tickets, limits, room.

use std::path::Path;
use std::time::Duration;

use farline_mover::{Names, Root};
use farline_spec::unit::{DurationS, RateBps, StreamCount, TotalBytes, counted, rate_text, size_text};
use farline_spec::{
    Cipher, CopySpec, Direction, Failure, FailureKind, Limits, NameRights, RunSpec, Scope, ServerConfig,
};

use super::names::NamesAdmission;
use super::slots::{Slot, Slots};
use crate::machine::watchdog;
use crate::message::{Grant, Handshake, Task};
use crate::run_controller::{Bounds, check_rows};
use crate::streams::MOST_STREAMS;
use crate::ticket::{TicketOffice, check_scope, now_s};

/// Slack on a limit of bytes: the last blocks of all streams.
const BYTES_SLACK: f64 = 1.01;
/// What the names, answers and headers of a copy may have besides the bytes of its files: a share of their limit, and the least.
const MESSAGES_SLACK: (u64, u64) = (10, 64 << 20);
/// When to ask again for the place of a copy, whose end nobody knows.
const COPY_WAIT: Duration = Duration::from_secs(30);
/// The same for a session about names.
const NAMES_WAIT: Duration = Duration::from_secs(10);

/// What an admitted client got.
#[derive(Debug)]
pub struct Admission {
    /// Version of the control protocol that the client chose.
    pub version: u32,
    /// The spec as granted, with notes.
    pub grant: Grant,
    /// Longest a run of bytes may take.
    pub duration_limit: Option<DurationS>,
    /// What the run is held to.
    pub bounds: Bounds,
    /// Name of the ticket; none for an anonymous client.
    pub ticket: Option<String>,
    /// What the files of a copy may not leave, with its name.
    pub root: Option<(String, Root)>,
    /// Most payload bytes that a copy may move.
    pub most_bytes: Option<u64>,
    /// Data streams that it may have at once.
    pub most_streams: u16,
    /// Its place among the sessions; free again when dropped.
    pub slot: Slot,
}

impl Admission {
    /// The rate over all data streams that a running copy may have where `asked` is wanted of it, if anything is; `streams` are
    /// those that it is to have.
    ///
    /// # Errors
    /// Why it may not be.
    pub fn judge_rate(&self, asked: Option<RateBps>, streams: u32) -> Result<Option<RateBps>, String> {
        let Some(limit_bps) = self.bounds.rate_bps else {
            return Ok(asked);
        };
        let each_bps = self.grant.spec.rate_bps.map_or(0, RateBps::get);
        let most = format!("the server allows up to {} in total", rate_text(limit_bps));
        if each_bps.saturating_mul(streams.into()) > limit_bps {
            return Err(format!(
                "{} on each of {} requested, but {most}",
                rate_text(each_bps),
                counted(streams, "stream")
            ));
        }
        match asked.map(RateBps::get) {
            Some(asked_bps) if asked_bps > limit_bps => {
                Err(format!("{} requested, but {most}", rate_text(asked_bps)))
            }
            Some(0) => Ok(RateBps::new(limit_bps).ok()),
            _ => Ok(asked),
        }
    }
}

/// Decides who gets in.
#[derive(Debug)]
pub struct AdmissionControl {
    office: TicketOffice,
    anonymous: Option<Limits>,
    require_cipher: bool,
    keep_owners: bool,
    slots: Slots,
}

impl AdmissionControl {
    /// A gate as `config` wants it.
    pub fn new(config: &ServerConfig, office: TicketOffice) -> Self {
        let most = config
            .stop_after_sessions
            .map(|sessions| u64::from(sessions.get()));
        Self {
            office,
            anonymous: config.anonymous.then(|| config.anonymous_limits.clone()),
            require_cipher: config.require_cipher,
            keep_owners: config.keep_owners,
            slots: Slots::new(config.max_sessions.get() as usize, most),
        }
    }

    /// The places of the sessions.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Judges the client's wish.
    ///
    /// # Errors
    /// [`FailureKind::Auth`] for no ticket or one that does not hold, [`FailureKind::Spec`] for a spec that is
    /// none, [`FailureKind::Limit`] for too much, [`FailureKind::Busy`] without room.
    pub fn admit(&self, handshake: Handshake) -> Result<Admission, Failure> {
        let version = handshake.version;
        let claims = handshake
            .ticket
            .map(|ticket| self.office.check(&ticket, now_s()))
            .transpose()?;
        let Task::Profile(asked) = &handshake.task else {
            return Err(Failure::new(
                FailureKind::Internal,
                "names are admitted by themselves",
            ));
        };
        let folder = match &claims {
            Some(claims) => check_scope(&claims.scope, &handshake.task)?,
            None if asked.copy.is_some() => return Err(no_files()),
            None => None,
        };
        let limits = match (&claims, &self.anonymous) {
            (Some(claims), _) => &claims.limits,
            (None, Some(limits)) => limits,
            (None, None) => {
                return Err(Failure::new(
                    FailureKind::Auth,
                    "this server requires a ticket: pass the farline://... line that it printed, or store it with `farline trust`",
                ));
            }
        };
        let spec = asked.clone();
        spec.check_native()?;
        let spec = spec.resolved()?;
        check_rows(&spec)?;
        self.check_cipher(&spec)?;
        self.check_rights(&spec)?;
        let grant = apply(limits, spec)?;
        let root =
            folder.map(|folder| Root::beneath(Path::new(folder)).map(|root| (folder.to_owned(), root)));
        let root = root.transpose()?;
        let mut slot = self.slots.take(expected(&grant.spec, limits))?;
        if let Some(claims) = &claims {
            self.office.count_use(claims)?;
        }
        slot.confirm();
        let is_copy = grant.spec.copy.is_some();
        Ok(Admission {
            version,
            grant,
            duration_limit: limits.duration_s,
            bounds: Bounds {
                rate_bps: limits.rate_bps.map(RateBps::get).filter(|&rate| rate > 0),
                bytes: limits.total_bytes.map(|total| most_moved(total.get(), is_copy)),
            },
            root,
            most_bytes: limits.total_bytes.map(TotalBytes::get),
            most_streams: limits.streams.map_or(MOST_STREAMS, StreamCount::get),
            ticket: claims.map(|claims| claims.id),
            slot,
        })
    }

    /// Judges a wish to ask about names, with the rights that the ticket gives.
    ///
    /// # Errors
    /// As [`Self::admit`].
    pub fn admit_names(&self, handshake: &Handshake) -> Result<NamesAdmission, Failure> {
        let ticket = handshake.ticket.as_ref().ok_or_else(no_files)?;
        let claims = self.office.check(ticket, now_s())?;
        let root = check_scope(&claims.scope, &handshake.task)?.ok_or_else(no_files)?;
        let rights = NameRights {
            read: matches!(claims.scope, Scope::Read { .. }),
            write: matches!(claims.scope, Scope::Write { .. }),
        };
        let limits = &claims.limits;
        let beneath = Root::beneath(Path::new(root))?;
        let mut slot = self.slots.take(NAMES_WAIT)?;
        self.office.count_use(&claims)?;
        slot.confirm();
        Ok(NamesAdmission {
            rights,
            names: Names::new(beneath, rights, limits.total_bytes.map(TotalBytes::get)),
            root: root.to_owned(),
            duration_limit: limits.duration_s,
            rate_bps: limits.rate_bps,
            ticket: claims.id.clone(),
            slot,
        })
    }

    /// What a ticket does not give by itself.
    fn check_rights(&self, spec: &RunSpec) -> Result<(), Failure> {
        let refused = |line: &str| Err(Failure::new(FailureKind::Auth, line));
        match &spec.copy {
            Some(copy) if (copy.owner || copy.group) && !self.keep_owners => refused(
                "copy.owner: this server does not report or set owners and groups; leave out --owner and --group, or start it with farline serve --keep-owners",
            ),
            Some(copy) if copy.remove_source_files && spec.direction == Direction::Reverse => refused(
                "copy.remove_source_files: a ticket to read files does not allow removing them; run the copy on the host that has them",
            ),
            _ => Ok(()),
        }
    }

    /// Clear text is the client's choice only where the server leaves it.
    fn check_cipher(&self, spec: &RunSpec) -> Result<(), Failure> {
        match &spec.copy {
            Some(copy) if self.require_cipher && copy.cipher == Cipher::None => Err(Failure::new(
                FailureKind::Auth,
                "copy.cipher: this server requires encryption; allowed: aes128-gcm, aes256-gcm",
            )),
            _ => Ok(()),
        }
    }
}

/// Bytes that streams may move for `total` bytes of payload. A copy counts its payload itself.
fn most_moved(total: u64, is_copy: bool) -> u64 {
    if is_copy {
        total.saturating_add((total / MESSAGES_SLACK.0).max(MESSAGES_SLACK.1))
    } else {
        (total as f64 * BYTES_SLACK) as u64
    }
}

fn no_files() -> Failure {
    Failure::new(
        FailureKind::Auth,
        "copying files needs a ticket for their folder: pass the farline://... line for it",
    )
}

/// How long a session that asks for the last place should be told to wait.
fn expected(spec: &RunSpec, limits: &Limits) -> Duration {
    let most = watchdog(spec, limits.duration_s);
    if spec.copy.is_some() {
        most.min(COPY_WAIT)
    } else {
        most
    }
}

/// Holds `spec` to `limits`: what is stated and too much is refused, a rate left open is set.
fn apply(limits: &Limits, mut spec: RunSpec) -> Result<Grant, Failure> {
    if let Some(limit) = limits.streams {
        check_streams(limit, &spec)?;
    }
    let rate = limits.rate_bps.filter(|limit| limit.get() > 0);
    let rate_note = rate.map_or(Ok(None), |limit| apply_rate(limit, &mut spec))?;
    let duration_note = limits
        .duration_s
        .map_or(Ok(None), |limit| check_duration(limit, &spec))?;
    // What a copy comes to is counted while it goes on.
    if let Some(limit) = limits.total_bytes.filter(|_| spec.copy.is_none()) {
        check_bytes(limit, &spec)?;
    }
    let notes = rate_note.into_iter().chain(duration_note).collect();
    Ok(Grant { spec, notes })
}

fn check_streams(limit: StreamCount, spec: &RunSpec) -> Result<(), Failure> {
    let (asked, limit) = (spec.stream_total(), limit.get());
    if asked <= usize::from(limit) {
        return Ok(());
    }
    Err(over("streams", &asked.to_string(), &limit.to_string()))
}

fn check_duration(limit: DurationS, spec: &RunSpec) -> Result<Option<String>, Failure> {
    let allowed = format!("{} s", limit.get());
    match spec.sending_s() {
        Some(asked) if asked > limit.get() => {
            Err(over("omit_s + duration_s", &format!("{asked} s"), &allowed))
        }
        Some(_) => Ok(None),
        None => Ok(Some(format!(
            "the server stops a run that takes much longer than {allowed}"
        ))),
    }
}

fn check_bytes(limit: TotalBytes, spec: &RunSpec) -> Result<(), Failure> {
    let ways = if is_both_ways(spec) { 2 } else { 1 };
    let asked = spec.total_bytes.map(|asked| asked.get() * ways);
    let allowed = format!("{} in total", size_text(limit.get()));
    match asked {
        Some(asked) if asked > limit.get() => Err(over("total_bytes", &size_text(asked), &allowed)),
        Some(_) => Ok(()),
        None => Err(over("total_bytes", "a run of a duration", &allowed)),
    }
}

fn is_both_ways(spec: &RunSpec) -> bool {
    spec.stream_total() > usize::from(spec.streams.get())
}

fn apply_rate(limit: RateBps, spec: &mut RunSpec) -> Result<Option<String>, Failure> {
    let streams = spec.stream_total() as u64;
    let asked = spec.rate_bps.map_or(0, RateBps::get);
    if asked > 0 && asked * streams > limit.get() {
        let asked = format!("{} on each of {}", rate_text(asked), counted(streams, "stream"));
        return Err(over(
            "rate_bps",
            &asked,
            &format!("{} in total", rate_text(limit.get())),
        ));
    }
    if let Some(copy) = &mut spec.copy {
        return apply_total_rate(limit, copy);
    }
    if asked > 0 {
        return Ok(None);
    }
    let each = (limit.get() / streams).max(1);
    spec.rate_bps = RateBps::new(each).ok();
    Ok(Some(format!(
        "rate limited to {} per stream: the server allows {} in total",
        rate_text(each),
        rate_text(limit.get())
    )))
}

fn apply_total_rate(limit: RateBps, copy: &mut CopySpec) -> Result<Option<String>, Failure> {
    let asked = copy.total_rate_bps.map_or(0, RateBps::get);
    let allowed = format!("{} in total", rate_text(limit.get()));
    if asked > limit.get() {
        return Err(over("copy.total_rate_bps", &rate_text(asked), &allowed));
    }
    if asked > 0 {
        return Ok(None);
    }
    copy.total_rate_bps = Some(limit);
    Ok(Some(format!(
        "total rate limited to {}: the server allows no more",
        rate_text(limit.get())
    )))
}

fn over(option: &str, asked: &str, allowed: &str) -> Failure {
    Failure::new(
        FailureKind::Limit,
        format!("{option}: {asked} requested, but the server allows up to {allowed}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::{Scope, TicketClaims, from_json};

    use crate::state_dir::StateDir;

    fn gate(config: &str) -> (tempfile::TempDir, TicketOffice, AdmissionControl) {
        let folder = tempfile::tempdir().unwrap();
        let office = TicketOffice::open(&StateDir::open(folder.path()).unwrap()).unwrap();
        let config = from_json(config).unwrap();
        (folder, office.clone(), AdmissionControl::new(&config, office))
    }

    fn wish(ticket: Option<String>, spec: &str) -> Handshake {
        Handshake {
            version: 1,
            ticket,
            task: Task::Profile(from_json(spec).unwrap()),
            keeps: false,
        }
    }

    fn ticket(office: &TicketOffice, scope: Scope, limits: &str) -> Option<String> {
        let limits = from_json(limits).unwrap();
        let claims = TicketClaims {
            id: "t".into(),
            scope,
            limits,
            expires_at_s: now_s() + 60,
        };
        Some(office.sign(&claims).unwrap())
    }

    #[test]
    fn without_a_ticket_there_is_no_way_in_unless_the_server_says_so() {
        let (_keep, _, closed) = gate("{}");
        assert_eq!(
            closed.admit(wish(None, "{}")).unwrap_err().message,
            "this server requires a ticket: pass the farline://... line that it printed, or store it with `farline trust`"
        );
        let (_keep, _, open) = gate(r#"{"anonymous":true}"#);
        let admission = open.admit(wish(None, "{}")).unwrap();
        assert_eq!(admission.ticket, None);
        assert_eq!(admission.grant.spec.rate_bps.unwrap().get(), 10_000_000_000);
        assert_eq!(
            open.admit(wish(None, r#"{"duration_s":61}"#)).unwrap_err().kind,
            FailureKind::Limit
        );
    }

    #[test]
    fn a_bad_ticket_is_worse_than_none() {
        let (_keep, office, open) = gate(r#"{"anonymous":true}"#);
        let forged = open.admit(wish(Some("v1.x.y".into()), "{}")).unwrap_err();
        assert_eq!(forged.kind, FailureKind::Auth);
        let files = ticket(&office, Scope::Read { root: "/".into() }, "{}");
        assert_eq!(open.admit(wish(files, "{}")).unwrap_err().kind, FailureKind::Auth);
        assert_eq!(open.slots().admitted(), 0);
    }

    #[test]
    fn what_is_stated_and_too_much_is_refused_with_what_is_allowed() {
        let (_keep, office, gate) = gate("{}");
        let refused = |limits, spec| {
            let failure = gate
                .admit(wish(ticket(&office, Scope::Profile, limits), spec))
                .unwrap_err();
            assert_eq!(failure.kind, FailureKind::Limit);
            failure.message
        };
        assert_eq!(
            refused(r#"{"duration_s":5}"#, r#"{"duration_s":6}"#),
            "omit_s + duration_s: 6 s requested, but the server allows up to 5 s"
        );
        let rate = refused(
            r#"{"rate_bps":100}"#,
            r#"{"rate_bps":30,"streams":2,"direction":"bidirectional"}"#,
        );
        assert_eq!(
            rate,
            "rate_bps: 30 bit/s on each of 4 streams requested, but the server allows up to 100 bit/s in total"
        );
        assert!(refused(r#"{"total_bytes":10}"#, r#"{"total_bytes":11}"#).contains("up to 10 bytes"));
        assert!(
            refused(
                r#"{"total_bytes":10}"#,
                r#"{"total_bytes":6,"direction":"bidirectional"}"#
            )
            .contains("12 bytes")
        );
        assert!(refused(r#"{"total_bytes":10}"#, r#"{"duration_s":1}"#).contains("a run of a duration"));
    }

    #[test]
    fn a_rate_left_open_is_set_and_said() {
        let (_keep, office, gate) = gate("{}");
        let admit = |spec| {
            gate.admit(wish(ticket(&office, Scope::Profile, r#"{"rate_bps":100}"#), spec))
                .unwrap()
        };
        let admission = admit(r#"{"streams":3}"#);
        assert_eq!(admission.grant.spec.rate_bps.unwrap().get(), 33);
        assert!(admission.grant.notes[0].contains("33 bit/s per stream"));
        assert_eq!(admission.bounds.rate_bps, Some(100));
        let stated = admit(r#"{"streams":3,"rate_bps":33}"#);
        assert!(stated.grant.notes.is_empty());
    }

    #[test]
    fn one_more_than_allowed_is_busy_until_a_place_is_free() {
        let (_keep, _, gate) = gate(r#"{"anonymous":true,"max_sessions":1}"#);
        let first = gate.admit(wish(None, r#"{"duration_s":8}"#)).unwrap();
        let refusal = gate.admit(wish(None, "{}")).unwrap_err();
        assert_eq!(refusal.kind, FailureKind::Busy);
        assert_eq!(
            refusal.message,
            "the server is busy: running sessions: 1 of at most 1"
        );
        assert_eq!(refusal.retry_after_s, Some(38.0));
        assert!(gate.slots().check().is_err());
        drop(first);
        assert!(gate.admit(wish(None, "{}")).is_ok());
    }

    #[test]
    fn a_server_for_some_sessions_is_used_up_when_they_are_over() {
        let (_keep, _, gate) = gate(r#"{"anonymous":true,"stop_after_sessions":1}"#);
        let only = gate.admit(wish(None, "{}")).unwrap();
        assert!(!gate.slots().is_used_up());
        assert_eq!(gate.admit(wish(None, "{}")).unwrap_err().kind, FailureKind::Busy);
        drop(only);
        assert!(gate.slots().is_used_up());
    }

    #[test]
    fn a_refused_use_gives_its_place_back() {
        let (_keep, office, gate) = gate(r#"{"max_sessions":1}"#);
        let once = ticket(&office, Scope::Profile, r#"{"sessions":1}"#);
        drop(gate.admit(wish(once.clone(), "{}")).unwrap());
        assert_eq!(gate.admit(wish(once, "{}")).unwrap_err().kind, FailureKind::Auth);
        assert!(gate.slots().check().is_ok());
        assert_eq!(gate.slots().admitted(), 1);
    }
}
