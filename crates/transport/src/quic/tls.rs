//! Who may speak to whom: keys that follow from the proof of a stream, and TLS that takes no others.
//!
//! Both ends of a session derive the same proof for each stream from their control channel (exporter, RFC 8446, section
//! 7.5). From it each derives two Ed25519 keys, one for the opener and one for the other end: HMAC-SHA-256(proof, label) is
//! the seed. TLS 1.3 inside QUIC (RFC 9001) shows them as raw public keys (RFC 7250), and each end takes that one key and
//! no other. Nobody without the proof can therefore open a stream, take one, or stand between the two.

use std::sync::Arc;

use farline_spec::{Cipher, Failure, FailureKind};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use ring::hmac;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::ring::{cipher_suite, default_provider, sign::any_eddsa_type};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::quic::Suite;
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};

/// What the opener calls the other end. It says nothing: keys do.
pub(super) const SERVER_NAME: &str = "farline";
/// What goes before the seed of an Ed25519 key in PKCS #8 (RFC 8410, section 7).
const PKCS8_HEAD: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
const OPENER_LABEL: &[u8] = b"farline quic opener";
const LISTENER_LABEL: &[u8] = b"farline quic listener";

/// TLS of the end that opens the stream of `proof`.
///
/// # Errors
/// `Internal` when the library refuses what is made for it.
pub(super) fn of_opener(proof: &[u8; 32], cipher: Cipher) -> Result<QuicClientConfig, Failure> {
    let (own, other) = (key_of(proof, OPENER_LABEL)?, key_of(proof, LISTENER_LABEL)?);
    let provider = provider(cipher);
    let pin = Pin::new(&other, &provider)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(refused)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pin))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own)));
    config.resumption = Resumption::disabled();
    QuicClientConfig::with_initial(Arc::new(config), initial_suite()?).map_err(refused)
}

/// TLS of the end that waits for the stream of `proof`.
///
/// # Errors
/// As [`of_opener`].
pub(super) fn of_listener(proof: &[u8; 32], cipher: Cipher) -> Result<QuicServerConfig, Failure> {
    let (own, other) = (key_of(proof, LISTENER_LABEL)?, key_of(proof, OPENER_LABEL)?);
    let provider = provider(cipher);
    let pin = Pin::new(&other, &provider)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(refused)?
        .with_client_cert_verifier(Arc::new(pin))
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own)));
    config.send_tls13_tickets = 0;
    QuicServerConfig::with_initial(Arc::new(config), initial_suite()?).map_err(refused)
}

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Internal, format!("TLS of a QUIC stream: {error}"))
}

/// The library with the one cipher that was asked for.
fn provider(cipher: Cipher) -> Arc<CryptoProvider> {
    let suite = match cipher {
        Cipher::Aes256Gcm => cipher_suite::TLS13_AES_256_GCM_SHA384,
        Cipher::Aes128Gcm | Cipher::None => cipher_suite::TLS13_AES_128_GCM_SHA256,
    };
    Arc::new(CryptoProvider {
        cipher_suites: vec![suite],
        ..default_provider()
    })
}

/// What the first packets are under, whatever comes later (RFC 9001, section 5.2).
fn initial_suite() -> Result<Suite, Failure> {
    let suite = cipher_suite::TLS13_AES_128_GCM_SHA256.tls13();
    suite
        .and_then(|suite| suite.quic_suite())
        .ok_or_else(|| refused("no AES-128-GCM for QUIC"))
}

fn key_of(proof: &[u8; 32], label: &[u8]) -> Result<Arc<CertifiedKey>, Failure> {
    let seed = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, proof), label);
    let der = [&PKCS8_HEAD[..], seed.as_ref()].concat();
    let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(der)).map_err(refused)?;
    let public = key.public_key().ok_or_else(|| refused("no public key"))?;
    let public = CertificateDer::from(public.as_ref().to_vec());
    Ok(Arc::new(CertifiedKey::new(vec![public], key)))
}

/// Takes one key and no other.
#[derive(Debug)]
struct Pin {
    public: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl Pin {
    fn new(key: &CertifiedKey, provider: &Arc<CryptoProvider>) -> Result<Self, Failure> {
        let public = key.cert.first().ok_or_else(|| refused("no public key"))?;
        Ok(Self {
            public: public.clone(),
            provider: Arc::clone(provider),
        })
    }

    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        if shown.as_ref() == self.public.as_ref() {
            return Ok(());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn check_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let public = SubjectPublicKeyInfoDer::from(shown.as_ref());
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &public, signature, known)
    }
}

fn no_tls12() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("QUIC has TLS 1.3 alone".to_owned()))
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pin {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_have_different_keys_that_follow_from_the_proof_alone() {
        let key = |proof: u8, label| key_of(&[proof; 32], label).unwrap().cert[0].to_vec();
        assert_eq!(key(1, OPENER_LABEL), key(1, OPENER_LABEL));
        assert_ne!(key(1, OPENER_LABEL), key(1, LISTENER_LABEL));
        assert_ne!(key(1, OPENER_LABEL), key(2, OPENER_LABEL));
    }

    #[test]
    fn only_the_pinned_key_is_taken() {
        let (own, other) = (
            key_of(&[1; 32], LISTENER_LABEL).unwrap(),
            key_of(&[2; 32], LISTENER_LABEL).unwrap(),
        );
        let pin = Pin::new(&own, &provider(Cipher::Aes128Gcm)).unwrap();
        assert!(pin.check(&own.cert[0]).is_ok());
        assert!(pin.check(&other.cert[0]).is_err());
    }

    #[test]
    fn both_ciphers_can_be_had() {
        for cipher in [Cipher::Aes128Gcm, Cipher::Aes256Gcm] {
            assert!(of_opener(&[3; 32], cipher).is_ok() && of_listener(&[3; 32], cipher).is_ok());
        }
    }
}
