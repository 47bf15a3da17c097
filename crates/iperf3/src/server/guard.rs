//! Who a client says it is.
//!
//! A client encrypts its name, its password and the time with the server's public key. Decryption with a private key takes a time
//! that depends on what is decrypted, which others could learn from; answers are therefore given at fixed moments only, one
//! attempt after the other.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farline_proto::iperf3::credential::{Credential, Users};
use farline_spec::{Failure, FailureKind, Iperf3Config};
use rsa::pkcs1::DecodeRsaPrivateKey as _;
use rsa::pkcs8::DecodePrivateKey as _;
use rsa::{Oaep, Pkcs1v15Encrypt, RsaPrivateKey};

use crate::stream::locked;

/// Answers are given at whole multiples of this after the question.
const BEAT: Duration = Duration::from_millis(250);
/// Longest file of a key or of users.
const MOST_BYTES: u64 = 16 << 20;
/// Shortest and longest key, in bits.
const KEY_BITS: std::ops::RangeInclusive<usize> = 1024..=8192;

/// Decides who is who it says.
#[derive(Debug)]
pub struct Guard {
    key: Box<RsaPrivateKey>,
    users: Users,
    skew_s: u32,
    /// Padding of clients before 3.17, and of newer ones on request.
    old_padding: bool,
    /// One attempt at a time.
    turn: Mutex<()>,
}

impl Guard {
    /// What `config` wants; none where clients need not say who they are.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] for a key without users, users without a key, or files that are none of both.
    pub fn open(config: &Iperf3Config) -> Result<Option<Self>, Failure> {
        let (key, users) = match (&config.private_key, &config.users) {
            (None, None) => return Ok(None),
            (Some(key), Some(users)) => (key, users),
            _ => {
                let line = "iperf3: private_key and users go together: give both or none";
                return Err(Failure::new(FailureKind::Spec, line));
            }
        };
        let found = Users::parse(&read(users)?);
        if found.is_empty() {
            return Err(refused(
                users,
                "there is no user in it; write a line NAME,SHA256 for each",
            ));
        }
        let key = private_key(key)?;
        Ok(Some(Self {
            key: Box::new(key),
            users: found,
            skew_s: config.time_skew_s,
            old_padding: config.pkcs1_padding,
            turn: Mutex::new(()),
        }))
    }

    /// The user whose token this is; `None` for a token that does not hold. Takes a fixed time.
    pub fn user_of(&self, token: &str) -> Option<String> {
        let _turn = locked(&self.turn);
        let began = Instant::now();
        let credential = self.decrypt(token);
        let now_s = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| now.as_secs());
        let now_s = i64::try_from(now_s).unwrap_or(i64::MAX);
        let user = credential.filter(|credential| {
            let is_known = self.users.contain(credential);
            is_known & credential.is_recent(now_s, self.skew_s)
        });
        let beats = began.elapsed().as_nanos() / BEAT.as_nanos() + 1;
        let answer = BEAT * u32::try_from(beats).unwrap_or(u32::MAX);
        std::thread::sleep(answer.saturating_sub(began.elapsed()));
        user.map(|credential| credential.user)
    }

    fn decrypt(&self, token: &str) -> Option<Credential> {
        let token: String = token.chars().filter(|letter| !letter.is_whitespace()).collect();
        let sealed = STANDARD.decode(token).ok()?;
        let mut random = rsa::rand_core::OsRng;
        let text = if self.old_padding {
            self.key.decrypt_blinded(&mut random, Pkcs1v15Encrypt, &sealed)
        } else {
            self.key
                .decrypt_blinded(&mut random, Oaep::new::<sha1::Sha1>(), &sealed)
        };
        Credential::parse(&text.ok()?)
    }
}

fn private_key(path: &str) -> Result<RsaPrivateKey, Failure> {
    let text = read(path)?;
    let key = RsaPrivateKey::from_pkcs8_pem(&text).or_else(|_| RsaPrivateKey::from_pkcs1_pem(&text));
    let key = key.map_err(|_| refused(path, "it is no RSA private key in PEM without a password"))?;
    let bits = rsa::traits::PublicKeyParts::size(&key) * 8;
    if KEY_BITS.contains(&bits) {
        return Ok(key);
    }
    Err(refused(
        path,
        &format!(
            "the key has {bits} bits; allowed: {} to {}",
            KEY_BITS.start(),
            KEY_BITS.end()
        ),
    ))
}

fn read(path: &str) -> Result<String, Failure> {
    let failed = |error: &std::io::Error| Failure::system(path, error);
    let length = std::fs::metadata(path).map_err(|error| failed(&error))?.len();
    if length > MOST_BYTES {
        return Err(refused(path, "the file is too long"));
    }
    std::fs::read_to_string(path).map_err(|error| failed(&error))
}

fn refused(path: &str, why: &str) -> Failure {
    Failure::new(FailureKind::Spec, format!("{path}: {why}"))
}
