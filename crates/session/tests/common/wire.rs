//! The control protocol written a second time, from its description alone: what it takes to
//! speak it wrongly.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, ServerConfig, ServerConnection, SignatureScheme,
    StreamOwned,
};
use serde_json::Value;

/// One end of a control channel that says what the test wants.
pub struct Wire {
    stream: Box<dyn Duplex>,
}

trait Duplex: Read + Write {}

impl<T: Read + Write> Duplex for T {}

impl Wire {
    /// As a client, through TLS, to `server`.
    pub fn connect(server: SocketAddr) -> Self {
        let name = ServerName::try_from("x").unwrap();
        let tls = ClientConnection::new(Arc::new(client_config()), name).unwrap();
        let socket = patient(TcpStream::connect(server).unwrap());
        Self {
            stream: Box::new(StreamOwned::new(tls, socket)),
        }
    }

    /// As a server, on an accepted connection.
    pub fn accept(socket: TcpStream) -> Self {
        let tls = ServerConnection::new(Arc::new(server_config())).unwrap();
        Self {
            stream: Box::new(StreamOwned::new(tls, patient(socket))),
        }
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        // A peer that has already closed is what some tests are about.
        let _ = self.stream.write_all(bytes).and_then(|()| self.stream.flush());
    }

    pub fn say(&mut self, message: &Value) {
        let text = message.to_string();
        let mut frame = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
        frame.extend_from_slice(text.as_bytes());
        self.raw(&frame);
    }

    /// The next message, or nothing once the other end has closed.
    pub fn hear(&mut self) -> Option<Value> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).ok()?;
        let mut content = vec![0; u32::from_be_bytes(header) as usize];
        self.stream.read_exact(&mut content).ok()?;
        Some(serde_json::from_slice(&content).unwrap())
    }

    /// The failure that the other end ends with.
    pub fn hear_error(&mut self) -> Value {
        loop {
            let message = self.hear().expect("an ERROR before the end");
            if let Some(error) = message.get("ERROR") {
                return error.clone();
            }
        }
    }
}

fn patient(socket: TcpStream) -> TcpStream {
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

fn client_config() -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"farline".to_vec()];
    config
}

fn server_config() -> ServerConfig {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec![])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"farline".to_vec()];
    config
}

#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
