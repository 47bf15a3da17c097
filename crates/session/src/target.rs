//! Which server, and with what right: `host[:port]` or a ticket's URL.

use std::fmt;
use std::net::Ipv6Addr;

use farline_spec::{Failure, FailureKind};
use serde::{Deserialize, Serialize};

use crate::tls::Fingerprint;

/// Control port of a server that names none.
pub const DEFAULT_PORT: u16 = 5470;

/// Longest ticket, in bytes.
pub const MAX_TICKET_BYTES: usize = 4096;
const SCHEME: &str = "farline://";
const IPERF3_SCHEME: &str = "iperf3://";
/// Port of an iperf3 server that names none.
const IPERF3_PORT: u16 = 5201;
const MAX_HOST_BYTES: usize = 253;

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// farline's own control protocol.
    #[default]
    Farline,
    /// iperf3's: measurements alone.
    Iperf3,
}

impl Protocol {
    fn is_farline(&self) -> bool {
        *self == Self::Farline
    }
}

/// A server as it is addressed, and what a client knows of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name or address; an IPv6 address without brackets.
    pub host: String,
    /// Control port.
    pub port: u16,
    /// Ticket, `v1.CLAIMS.MAC`.
    #[serde(default)]
    pub ticket: Option<String>,
    /// Key that the server must show.
    #[serde(default)]
    pub pin: Option<Fingerprint>,
    /// What it speaks.
    #[serde(default, skip_serializing_if = "Protocol::is_farline")]
    pub protocol: Protocol,
}

impl Target {
    /// Reads `host`, `host:port`, `[ipv6]:port`, `ipv6`, `iperf3://` and one of these, or
    /// `farline://host:port/TICKET?key=FINGERPRINT` (ticket and key may be absent).
    ///
    /// # Errors
    /// [`FailureKind::Usage`] that says which part is wrong. The ticket is not repeated in it.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if let Some(rest) = text.strip_prefix(IPERF3_SCHEME) {
            let address = rest.strip_suffix('/').unwrap_or(rest);
            return Ok(Self {
                protocol: Protocol::Iperf3,
                ..Self::at(parse_address(address, IPERF3_PORT)?)
            });
        }
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return Ok(Self::at(parse_address(text, DEFAULT_PORT)?));
        };
        let (rest, query) = rest
            .split_once('?')
            .map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (address, ticket) = rest.split_once('/').unwrap_or((rest, ""));
        Ok(Self {
            ticket: parse_ticket(ticket)?,
            pin: query.map(parse_query).transpose()?,
            ..Self::at(parse_address(address, DEFAULT_PORT)?)
        })
    }

    /// A farline server of which nothing else is known.
    fn at((host, port): (String, u16)) -> Self {
        Self {
            host,
            port,
            ticket: None,
            pin: None,
            protocol: Protocol::default(),
        }
    }

    /// `host:port`, with brackets around an IPv6 address.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            return format!("[{}]:{}", self.host, self.port);
        }
        format!("{}:{}", self.host, self.port)
    }

    /// The URL that [`Target::parse`] reads as this target.
    pub fn url(&self) -> String {
        let ticket = self
            .ticket
            .as_ref()
            .map(|ticket| format!("/{ticket}"))
            .unwrap_or_default();
        let key = self.pin.map(|pin| format!("?key={pin}")).unwrap_or_default();
        let scheme = match self.protocol {
            Protocol::Farline => SCHEME,
            Protocol::Iperf3 => IPERF3_SCHEME,
        };
        format!("{scheme}{}{ticket}{key}", self.address())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticket = self.ticket.as_ref().map(|_| "(secret)");
        write!(
            out,
            "Target {{ {}, ticket: {ticket:?}, pin: {:?} }}",
            self.address(),
            self.pin
        )
    }
}

fn parse_address(text: &str, usual_port: u16) -> Result<(String, u16), Failure> {
    if text.parse::<Ipv6Addr>().is_ok() {
        return Ok((text.to_owned(), usual_port));
    }
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (
            host,
            Some(
                rest.strip_prefix(':')
                    .ok_or_else(|| usage("port", "a port must follow ']' and ':'"))?,
            ),
        ),
        None => text
            .split_once(':')
            .map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let bracketed = text.starts_with('[');
    let good =
        |byte: u8| byte.is_ascii_alphanumeric() || b".-_%".contains(&byte) || (bracketed && byte == b':');
    if host.is_empty() || host.len() > MAX_HOST_BYTES || host.starts_with('-') || !host.bytes().all(good) {
        return Err(usage(
            "host",
            "a name, an IPv4 address or an IPv6 address in brackets is allowed",
        ));
    }
    let port = port.map(parse_port).transpose()?;
    Ok((host.to_owned(), port.unwrap_or(usual_port)))
}

fn parse_port(text: &str) -> Result<u16, Failure> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|&port| digits && port != 0);
    port.ok_or_else(|| usage("port", "must be a number from 1 to 65535"))
}

fn parse_ticket(text: &str) -> Result<Option<String>, Failure> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if text.len() > MAX_TICKET_BYTES || !text.bytes().all(good) {
        return Err(usage("ticket", "it is incomplete or has invalid characters"));
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn parse_query(text: &str) -> Result<Fingerprint, Failure> {
    let key = text.strip_prefix("key=");
    key.ok_or_else(|| usage("query", "only ?key=sha256-... is allowed"))?
        .parse()
}

fn usage(part: &str, reason: &str) -> Failure {
    Failure::new(FailureKind::Usage, format!("server address: {part}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(text: &str) -> String {
        Target::parse(text).unwrap().address()
    }

    #[test]
    fn plain_addresses() {
        assert_eq!(address("host"), "host:5470");
        assert_eq!(address("host.example:99"), "host.example:99");
        assert_eq!(address("10.0.0.1"), "10.0.0.1:5470");
        assert_eq!(address("::1"), "[::1]:5470");
        assert_eq!(address("[2001:db8::1]:99"), "[2001:db8::1]:99");
        assert_eq!(address("[fe80::1%eth0]"), "[fe80::1%eth0]:5470");
        assert_eq!(address("farline://[::1]:7/"), "[::1]:7");
    }

    #[test]
    fn an_iperf3_server_is_told_from_ours() {
        let target = Target::parse("iperf3://host").unwrap();
        assert_eq!(
            (target.address().as_str(), target.protocol),
            ("host:5201", Protocol::Iperf3)
        );
        assert_eq!(
            Target::parse("iperf3://[::1]:9/").unwrap().url(),
            "iperf3://[::1]:9"
        );
        assert_eq!(Target::parse("host").unwrap().protocol, Protocol::Farline);
        assert!(
            Target::parse("iperf3://host/v1.a.b").is_err(),
            "it has no tickets"
        );
    }

    #[test]
    fn a_ticket_url_names_everything() {
        let key = Fingerprint::of(b"k");
        let target = Target::parse(&format!("farline://h:7/v1.abc.def?key={key}")).unwrap();
        assert_eq!((target.host.as_str(), target.port), ("h", 7));
        assert_eq!(
            (target.ticket.as_deref(), target.pin),
            (Some("v1.abc.def"), Some(key))
        );
        assert!(
            !format!("{target:?}").contains("abc"),
            "a ticket does not reach a log"
        );
    }

    #[test]
    fn what_is_wrong_is_named_without_the_ticket() {
        for (text, part) in [
            ("", "host"),
            ("host:0", "port"),
            ("host:+7", "port"),
            ("host:70000", "port"),
            ("a b", "host"),
            ("-host", "host"),
            ("[::1]7", "port"),
            ("1:2:3", "port"),
            ("user@host", "host"),
            ("farline://h/v1.a?x=1", "query"),
            ("farline://h/v1.secret%00", "ticket"),
            ("farline://h/v1.a?key=md5-a", "server key"),
            ("https://h", "port"),
        ] {
            let refusal = Target::parse(text).unwrap_err();
            assert_eq!(refusal.kind, FailureKind::Usage);
            assert!(
                refusal.message.contains(part) && !refusal.message.contains("secret"),
                "{text}: {refusal}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_url_is_read_as_it_is_written(host in "[a-z][a-z0-9.]{0,20}|[0-9a-f]{1,4}::[0-9a-f]{1,4}", port in 1u16..,
                                          ticket in proptest::option::of("v1\\.[A-Za-z0-9_-]{1,30}\\.[A-Za-z0-9_-]{43}"),
                                          pinned in any::<bool>()) {
            let pin = pinned.then(|| Fingerprint::of(b"p"));
            let target = Target { ticket, pin, ..Target::at((host, port)) };
            prop_assert_eq!(Target::parse(&target.url()).unwrap(), target);
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            let _ = Target::parse(&text);
            let _ = Target::parse(&format!("farline://{text}"));
        }
    }
}
