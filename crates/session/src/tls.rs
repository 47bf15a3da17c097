//! Who is at the other end: TLS 1.3 with a key that the client pins.
//!
//! The server makes a key and a certificate signed by itself at its first start and keeps both. A
//! client knows the server by the SHA-256 of that certificate; names and authorities play no part.
//! Proofs for the data streams come from the same TLS session (exporter, RFC 8446 section 7.5).

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use farline_spec::{Cipher, Failure, FailureKind};
use farline_transport::StreamKey;
use ring::{digest, hmac};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring as provider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, ServerConfig, SignatureScheme,
};
use serde::{Deserialize, Serialize};

use crate::copy::SealKeys;
use crate::message::SessionId;
use crate::state_dir::StateDir;

const KEY_FILE: &str = "server.pem";
const PROTOCOL_NAME: &[u8] = b"farline";
const EXPORTER_LABEL: &[u8] = b"EXPORTER-farline-data-1";
const SEAL_LABEL: &[u8] = b"EXPORTER-farline-seal-1";
const FINGERPRINT_PREFIX: &str = "sha256-";

/// SHA-256 of a server's certificate; written `sha256-` and base64url.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest::digest(&digest::SHA256, certificate).as_ref());
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{FINGERPRINT_PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for Fingerprint {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let digits = text.strip_prefix(FINGERPRINT_PREFIX);
        let bytes = digits.and_then(|digits| URL_SAFE_NO_PAD.decode(digits).ok());
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| {
                let line =
                    format!("server key: write {FINGERPRINT_PREFIX} followed by 43 characters of base64url");
                Failure::new(FailureKind::Usage, line)
            })
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = Failure;

    fn try_from(text: String) -> Result<Self, Failure> {
        text.parse()
    }
}

/// What a server shows to its clients.
#[derive(Debug, Clone)]
pub struct ServerIdentity {
    /// For its side of every TLS session.
    pub config: Arc<ServerConfig>,
    /// By which clients know it.
    pub fingerprint: Fingerprint,
}

impl ServerIdentity {
    /// Reads the key from `state`, or makes it.
    ///
    /// # Errors
    /// [`FailureKind::System`] when the file cannot be read or made, or is no key.
    pub fn load(state: &StateDir) -> Result<Self, Failure> {
        let pem = state.read_or_make(KEY_FILE, make_key)?;
        let bad = |error: &dyn fmt::Display| {
            Failure::new(
                FailureKind::System,
                format!("{}: {error}", state.secret(KEY_FILE).display()),
            )
        };
        let certificate = CertificateDer::from_pem_slice(&pem).map_err(|error| bad(&error))?;
        let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| bad(&error))?;
        let fingerprint = Fingerprint::of(&certificate);
        let mut config = ServerConfig::builder_with_provider(crypto())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(vec![certificate], key)
            })
            .map_err(|error| bad(&error))?;
        config.alpn_protocols = vec![PROTOCOL_NAME.to_vec()];
        config.send_tls13_tickets = 0;
        // The greeting goes with the server's flight; it says what anybody may know.
        config.send_half_rtt_data = true;
        Ok(Self {
            config: Arc::new(config),
            fingerprint,
        })
    }
}

fn make_key() -> Result<Vec<u8>, Failure> {
    let make = || {
        let key = rcgen::KeyPair::generate()?;
        let certificate = rcgen::CertificateParams::new(vec!["farline".to_owned()])?.self_signed(&key)?;
        Ok(certificate.pem() + &key.serialize_pem())
    };
    make().map(String::into_bytes).map_err(|error: rcgen::Error| {
        Failure::new(FailureKind::System, format!("creating the server key: {error}"))
    })
}

fn crypto() -> Arc<CryptoProvider> {
    Arc::new(provider::default_provider())
}

/// The client's side of one TLS session, and what it sees of the server's key.
#[derive(Debug)]
pub struct ClientSide {
    verifier: Arc<PinVerifier>,
    /// To be driven by the channel.
    pub connection: ClientConnection,
}

impl ClientSide {
    /// Accepts only the server with the key `pin`; any server without one.
    ///
    /// # Errors
    /// [`FailureKind::Internal`] when the TLS library refuses its own defaults.
    pub fn new(pin: Option<Fingerprint>) -> Result<Self, Failure> {
        let crypto = crypto();
        let algorithms = crypto.signature_verification_algorithms;
        let verifier = Arc::new(PinVerifier {
            pin,
            seen: OnceLock::new(),
            algorithms,
        });
        let make = || {
            let mut config = ClientConfig::builder_with_provider(crypto)
                .with_protocol_versions(&[&rustls::version::TLS13])?
                .dangerous()
                .with_custom_certificate_verifier(verifier.clone())
                .with_no_client_auth();
            config.alpn_protocols = vec![PROTOCOL_NAME.to_vec()];
            config.enable_sni = false;
            config.resumption = rustls::client::Resumption::disabled();
            let nobody =
                ServerName::try_from("farline").map_err(|error| rustls::Error::General(error.to_string()))?;
            ClientConnection::new(Arc::new(config), nobody)
        };
        let connection = make();
        connection
            .map(|connection| Self { verifier, connection })
            .map_err(|error| Failure::new(FailureKind::Internal, format!("TLS: {error}")))
    }

    /// Splits off what tells about the server's key later.
    pub fn split(self) -> (Connection, SeenKey) {
        (Connection::from(self.connection), SeenKey(self.verifier))
    }
}

/// The key that a server showed.
#[derive(Debug, Clone)]
pub struct SeenKey(Arc<PinVerifier>);

impl SeenKey {
    /// It, once the server showed one.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.0.seen.get().copied()
    }

    /// What to report if the server showed another key than the pinned one.
    pub fn mismatch(&self) -> Option<Failure> {
        let (pin, seen) = (self.0.pin?, self.fingerprint()?);
        let line = format!(
            "the server's key is {seen}, but {pin} was expected: it is another server, or its key was replaced"
        );
        (pin != seen).then(|| Failure::new(FailureKind::Auth, line))
    }
}

/// Knows a server by its certificate's hash; checks that it holds the key of that certificate.
#[derive(Debug)]
struct PinVerifier {
    pin: Option<Fingerprint>,
    seen: OnceLock<Fingerprint>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let seen = *self.seen.get_or_init(|| Fingerprint::of(certificate));
        if self.pin.is_some_and(|pin| pin != seen) {
            return Err(rustls::CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls12NotOfferedOrEnabled.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Whether both ends agreed that they speak farline.
pub fn speaks_farline(connection: &Connection) -> bool {
    connection.alpn_protocol() == Some(PROTOCOL_NAME)
}

/// Makes the proofs with which data streams open.
pub struct StreamKeys {
    session: SessionId,
    secret: hmac::Key,
}

impl StreamKeys {
    /// For the streams of `session`, which both ends agreed on over `connection`.
    ///
    /// # Errors
    /// [`FailureKind::Internal`] before the handshake is through.
    pub fn new(connection: &Connection, session: SessionId) -> Result<Self, Failure> {
        let secret = exported(connection, EXPORTER_LABEL, session)?;
        Ok(Self {
            session,
            secret: hmac::Key::new(hmac::HMAC_SHA256, &secret),
        })
    }

    /// Key of the stream number `stream`.
    pub fn key(&self, stream: u16) -> StreamKey {
        let mut proof = [0; 32];
        proof.copy_from_slice(hmac::sign(&self.secret, &stream.to_be_bytes()).as_ref());
        StreamKey {
            stream,
            session: self.session.0,
            proof,
        }
    }
}

/// Seals for what the streams of `session` carry, which both ends agreed on over `connection`.
///
/// # Errors
/// As [`StreamKeys::new`].
pub fn seal_keys(connection: &Connection, session: SessionId, cipher: Cipher) -> Result<SealKeys, Failure> {
    exported(connection, SEAL_LABEL, session).map(|secret| SealKeys::new(&secret, cipher))
}

fn exported(connection: &Connection, label: &[u8], session: SessionId) -> Result<[u8; 32], Failure> {
    connection
        .export_keying_material([0; 32], label, Some(&session.0))
        .map_err(|error| Failure::new(FailureKind::Internal, format!("TLS exporter: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn identity(folder: &Path) -> ServerIdentity {
        ServerIdentity::load(&StateDir::open(folder).unwrap()).unwrap()
    }

    /// Lets both sides talk in memory until neither has anything to say.
    fn shake(client: &mut Connection, server: &mut Connection) -> Result<(), rustls::Error> {
        for _ in 0..10 {
            for turn in [true, false] {
                let (from, to) = if turn {
                    (&mut *client, &mut *server)
                } else {
                    (&mut *server, &mut *client)
                };
                let mut bytes = Vec::new();
                while from.wants_write() {
                    from.write_tls(&mut bytes).unwrap();
                }
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    to.read_tls(&mut rest).unwrap();
                    to.process_new_packets()?;
                }
            }
        }
        Ok(())
    }

    fn server(identity: &ServerIdentity) -> Connection {
        rustls::ServerConnection::new(identity.config.clone())
            .unwrap()
            .into()
    }

    #[test]
    fn the_key_stays_the_same_from_start_to_start() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            identity(folder.path()).fingerprint,
            identity(folder.path()).fingerprint
        );
    }

    #[test]
    fn a_damaged_key_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::open(folder.path()).unwrap();
        state.read_or_make(KEY_FILE, || Ok(b"no key".to_vec())).unwrap();
        let refusal = ServerIdentity::load(&state).unwrap_err();
        assert!(refusal.message.contains("server.pem"), "{refusal}");
    }

    #[test]
    fn the_pinned_key_is_accepted_and_both_ends_derive_the_same_proofs() {
        let folder = tempfile::tempdir().unwrap();
        let identity = identity(folder.path());
        let (mut client, seen) = ClientSide::new(Some(identity.fingerprint)).unwrap().split();
        let mut server = server(&identity);
        shake(&mut client, &mut server).unwrap();
        assert!(speaks_farline(&client) && speaks_farline(&server));
        assert_eq!(seen.fingerprint(), Some(identity.fingerprint));
        assert_eq!(seen.mismatch(), None);
        let keys = |connection: &Connection, id| StreamKeys::new(connection, SessionId([id; 16])).unwrap();
        let (one, other) = (keys(&client, 1), keys(&server, 1));
        assert_eq!(one.key(3), other.key(3));
        assert_ne!(
            one.key(3).proof,
            one.key(4).proof,
            "proofs differ from stream to stream"
        );
        assert_ne!(
            one.key(3).proof,
            keys(&client, 2).key(3).proof,
            "and from session to session"
        );
    }

    #[test]
    fn another_key_is_refused_and_both_are_named() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (pinned, shown) = (identity(one.path()), identity(two.path()));
        let (mut client, seen) = ClientSide::new(Some(pinned.fingerprint)).unwrap().split();
        let mut server = server(&shown);
        assert!(shake(&mut client, &mut server).is_err());
        let refusal = seen.mismatch().unwrap();
        assert_eq!(refusal.kind, FailureKind::Auth);
        assert!(
            refusal.message.contains(&shown.fingerprint.to_string()),
            "{refusal}"
        );
    }

    #[test]
    fn without_a_pin_any_key_is_accepted_and_reported() {
        let folder = tempfile::tempdir().unwrap();
        let identity = identity(folder.path());
        let (mut client, seen) = ClientSide::new(None).unwrap().split();
        shake(&mut client, &mut server(&identity)).unwrap();
        assert_eq!(
            (seen.fingerprint(), seen.mismatch()),
            (Some(identity.fingerprint), None)
        );
    }

    #[test]
    fn a_server_without_the_private_key_is_refused() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let honest = identity(one.path());
        identity(two.path());
        let pem = |folder: &Path| std::fs::read(folder.join(KEY_FILE)).unwrap();
        let stolen = CertificateDer::from_pem_slice(&pem(one.path())).unwrap();
        let own_key = PrivateKeyDer::from_pem_slice(&pem(two.path())).unwrap();
        let signer = rustls::crypto::ring::sign::any_supported_type(&own_key).unwrap();
        let certified = Arc::new(rustls::sign::CertifiedKey::new(vec![stolen], signer));
        let mut config = ServerConfig::builder_with_provider(crypto())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(certified)));
        config.alpn_protocols = vec![PROTOCOL_NAME.to_vec()];
        let (mut client, _) = ClientSide::new(Some(honest.fingerprint)).unwrap().split();
        let mut thief = rustls::ServerConnection::new(Arc::new(config)).unwrap().into();
        assert!(shake(&mut client, &mut thief).is_err());
    }

    #[test]
    fn a_fingerprint_is_read_as_it_is_written() {
        let fingerprint = Fingerprint::of(b"x");
        assert_eq!(
            fingerprint.to_string().parse::<Fingerprint>().unwrap(),
            fingerprint
        );
        for wrong in [
            "",
            "sha256-",
            "sha256-AAAA",
            "md5-AAAA",
            &format!("{fingerprint}="),
        ] {
            assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
        }
    }
}
