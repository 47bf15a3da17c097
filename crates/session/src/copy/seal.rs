//! The seal: AES-GCM over every frame, a key for each stream, a number for each frame.
//!
//! ```text
//! prefix   length of header and payload 4 (little-endian), kind of seal 1,            read by all, sealed too
//!          bytes of the mark 1 (0, or without a cipher 1), zero 2
//! header, payload                                                                     enciphered where they stand
//! trailer  with a cipher 16: the tag; else the mark, if there is one: 1 if all of the payload was there, 0 for a void frame
//! ```
//! Secret of a session: TLS exporter (RFC 8446, section 7.5). Key: the first bytes of HMAC-SHA-256(secret, stream, cipher,
//! epoch). A stream goes one way, so its key has one user; a new epoch begins after 64 GiB, well inside what AES-GCM may
//! seal under one key (RFC 8446, section 5.5). Nonce: stream and the number of the frame, which never goes back. A frame that
//! does not open has used its number up too: nothing that comes later is held against it once more.

use farline_mover::frame::{HEADER_BYTES, PREFIX_BYTES, TRAILER_BYTES};
use farline_spec::{Cipher, Failure, FailureKind};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;

/// Bytes sealed under one key.
const EPOCH_BYTES: u64 = 64 << 30;

/// Makes the seals of one session's streams.
#[derive(Clone)]
pub struct SealKeys {
    secret: hmac::Key,
    cipher: Cipher,
}

impl SealKeys {
    /// From a secret that both ends derived from their TLS session.
    pub fn new(secret: &[u8; 32], cipher: Cipher) -> Self {
        Self {
            secret: hmac::Key::new(hmac::HMAC_SHA256, secret),
            cipher,
        }
    }

    /// The same for streams whose transport encrypts by itself: their frames go as they are.
    #[must_use]
    pub fn of_encrypted(&self) -> Self {
        Self {
            secret: self.secret.clone(),
            cipher: Cipher::None,
        }
    }

    /// The seal of one stream, at its first frame.
    ///
    /// # Errors
    /// [`FailureKind::Internal`] when the library refuses a key of the length it asks for.
    pub fn seal(&self, stream: u16) -> Result<Seal, Failure> {
        let mut seal = Seal {
            keys: self.clone(),
            stream,
            key: None,
            frame: 0,
            epoch: 0,
            epoch_bytes: EPOCH_BYTES,
            left_bytes: EPOCH_BYTES,
        };
        seal.key = seal.keys.key(stream, 0)?;
        Ok(seal)
    }

    fn key(&self, stream: u16, epoch: u64) -> Result<Option<LessSafeKey>, Failure> {
        let algorithm = match self.cipher {
            Cipher::Aes128Gcm => &AES_128_GCM,
            Cipher::Aes256Gcm => &AES_256_GCM,
            Cipher::None => return Ok(None),
        };
        let mut context = [0; 11];
        context[..2].copy_from_slice(&stream.to_be_bytes());
        context[2] = kind(self.cipher);
        context[3..].copy_from_slice(&epoch.to_be_bytes());
        let bytes = hmac::sign(&self.secret, &context);
        UnboundKey::new(algorithm, &bytes.as_ref()[..algorithm.key_len()])
            .map(|key| Some(LessSafeKey::new(key)))
            .map_err(|_| Failure::new(FailureKind::Internal, "the cipher rejected its key"))
    }
}

/// Where a prefix says whether a mark follows the payload, and so how long that is: of frames in clear text alone.
const MARK_PLACE: usize = 5;
const MARK_BYTES: u8 = 1;

/// Number of a cipher in a prefix.
const fn kind(cipher: Cipher) -> u8 {
    match cipher {
        Cipher::None => 0,
        Cipher::Aes128Gcm => 1,
        Cipher::Aes256Gcm => 2,
    }
}

/// What became of a frame that was to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// It is as it was sealed.
    Whole,
    /// Its sender could not fill it (without a cipher alone).
    Void,
    /// It is not what was sealed under its number. Nothing is known of it but its place, and nothing of it may be looked at.
    Not,
}

/// The seal of one stream at one end; frames are sealed, or opened, in the order in which they go.
pub struct Seal {
    keys: SealKeys,
    stream: u16,
    key: Option<LessSafeKey>,
    frame: u64,
    epoch: u64,
    epoch_bytes: u64,
    left_bytes: u64,
}

impl Seal {
    /// Whether there is a cipher.
    pub fn is_cipher(&self) -> bool {
        self.key.is_some()
    }

    /// Number of the next frame; counted where there is a cipher.
    pub const fn number(&self) -> u64 {
        self.frame
    }

    /// Bytes behind the payload of the frame that begins with `prefix`.
    pub fn trailer_bytes(&self, prefix: &[u8; PREFIX_BYTES]) -> usize {
        match self.is_cipher() {
            true => TRAILER_BYTES,
            false => prefix[MARK_PLACE].into(),
        }
    }

    /// Begins a frame in clear text whose payload is still to come, and behind it the mark that says whether all of it did:
    /// see [`Self::mark`]. Gives where the mark goes, which is sent too.
    ///
    /// # Errors
    /// [`FailureKind::Internal`] where there is a cipher: what nobody has read cannot be sealed.
    pub fn begin(&self, wire: &mut [u8]) -> Result<usize, Failure> {
        if self.is_cipher() {
            let line = "data that were not read cannot be encrypted";
            return Err(Failure::new(FailureKind::Internal, line));
        }
        let end = wire.len() - TRAILER_BYTES;
        let mut prefix = self.prefix(end - PREFIX_BYTES)?;
        prefix[MARK_PLACE] = MARK_BYTES;
        wire[..PREFIX_BYTES].copy_from_slice(&prefix);
        Ok(end)
    }

    /// Puts the mark where [`Self::begin`] said.
    pub fn mark(wire: &mut [u8], place: usize, is_whole: bool) {
        wire[place] = is_whole.into();
    }

    /// Seals a frame where it stands (`Frame::wire`); gives the part of it that is sent.
    ///
    /// # Errors
    /// [`FailureKind::Internal`] for a frame that no seal can be put on.
    pub fn close<'a>(&mut self, wire: &'a mut [u8]) -> Result<&'a [u8], Failure> {
        let end = wire.len() - TRAILER_BYTES;
        let body_bytes = end - PREFIX_BYTES;
        let prefix = self.prefix(body_bytes)?;
        wire[..PREFIX_BYTES].copy_from_slice(&prefix);
        if self.is_cipher() {
            let nonce = self.turn(body_bytes)?;
            let (body, trailer) = wire[PREFIX_BYTES..].split_at_mut(body_bytes);
            let tag = self
                .key
                .as_ref()
                .map(|key| key.seal_in_place_separate_tag(nonce, Aad::from(&prefix), body));
            match tag {
                Some(Ok(tag)) => trailer.copy_from_slice(tag.as_ref()),
                _ => {
                    return Err(Failure::new(
                        FailureKind::Internal,
                        "a frame could not be encrypted",
                    ));
                }
            }
        }
        Ok(&wire[..end + self.trailer_bytes(&prefix)])
    }

    /// Length of the payload of the frame that begins with `prefix`.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for a prefix that is none, or one of another seal than was agreed on.
    pub fn payload_bytes(&self, prefix: &[u8; PREFIX_BYTES]) -> Result<usize, Failure> {
        let body_bytes = u32::from_le_bytes([prefix[0], prefix[1], prefix[2], prefix[3]]) as usize;
        let may_be_marked = !self.is_cipher() && prefix[MARK_PLACE] == MARK_BYTES;
        let rest_begins = if may_be_marked { MARK_PLACE + 1 } else { MARK_PLACE };
        if prefix[4] != kind(self.keys.cipher) || prefix[rest_begins..].iter().any(|byte| *byte != 0) {
            return Err(protocol(
                "a frame was encrypted with a cipher that was not agreed on",
            ));
        }
        body_bytes
            .checked_sub(HEADER_BYTES)
            .ok_or_else(|| protocol("a frame is too short"))
    }

    /// Opens a frame where it stands, prefix and trailer with it. One that was changed on its way, repeated, or comes in place
    /// of another does not open, and its number is used up.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for a mark that there is not.
    pub fn open(&mut self, wire: &mut [u8]) -> Result<Opened, Failure> {
        let (prefix, sealed) = wire
            .split_first_chunk_mut::<PREFIX_BYTES>()
            .ok_or_else(|| protocol("a frame is too short"))?;
        if !self.is_cipher() {
            return match (prefix[MARK_PLACE], sealed[sealed.len() - TRAILER_BYTES]) {
                (0, _) | (MARK_BYTES, 1) => Ok(Opened::Whole),
                (MARK_BYTES, 0) => Ok(Opened::Void),
                (mark, end) => Err(protocol(&format!("unknown frame marks {mark:#x} and {end:#x}"))),
            };
        }
        let nonce = self.turn(sealed.len() - TRAILER_BYTES)?;
        let opened = self
            .key
            .as_ref()
            .map(|key| key.open_in_place(nonce, Aad::from(*prefix), sealed).is_ok());
        Ok(match opened {
            Some(true) => Opened::Whole,
            _ => Opened::Not,
        })
    }

    fn prefix(&self, body_bytes: usize) -> Result<[u8; PREFIX_BYTES], Failure> {
        let length = u32::try_from(body_bytes);
        let length =
            length.map_err(|_| Failure::new(FailureKind::Internal, "a frame is too long to send"))?;
        let mut prefix = [0; PREFIX_BYTES];
        prefix[..4].copy_from_slice(&length.to_le_bytes());
        prefix[4] = kind(self.keys.cipher);
        Ok(prefix)
    }

    /// The next frame's nonce; no two frames of a stream get the same, whatever the key.
    fn turn(&mut self, body_bytes: usize) -> Result<Nonce, Failure> {
        if self.left_bytes == 0 {
            self.epoch += 1;
            self.key = self.keys.key(self.stream, self.epoch)?;
            self.left_bytes = self.epoch_bytes;
        }
        self.left_bytes = self.left_bytes.saturating_sub(body_bytes as u64);
        let mut nonce = [0; NONCE_LEN];
        nonce[..2].copy_from_slice(&self.stream.to_be_bytes());
        nonce[4..].copy_from_slice(&self.frame.to_be_bytes());
        let next = self.frame.checked_add(1);
        self.frame =
            next.ok_or_else(|| Failure::new(FailureKind::Internal, "the frame counter is exhausted"))?;
        Ok(Nonce::assume_unique_for_key(nonce))
    }
}

fn protocol(line: &str) -> Failure {
    Failure::new(FailureKind::Protocol, line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_mover::Frame;
    use farline_mover::frame::{FrameKind, Header};
    use proptest::prelude::*;

    const CIPHERS: [Cipher; 3] = [Cipher::None, Cipher::Aes128Gcm, Cipher::Aes256Gcm];

    fn seal(cipher: Cipher, stream: u16) -> Seal {
        SealKeys::new(&[7; 32], cipher).seal(stream).unwrap()
    }

    fn frame(content: &[u8]) -> Frame {
        let mut frame = Frame::new(content.len().max(1));
        frame.room()[..content.len()].copy_from_slice(content);
        let mut header = Header::of_messages(FrameKind::Catalogue);
        header.payload_bytes = u32::try_from(content.len()).unwrap();
        frame.set(&header);
        frame
    }

    /// What the other end makes of the bytes that were sent.
    fn received(seal: &mut Seal, sent: &[u8]) -> Result<Vec<u8>, Failure> {
        let prefix = sent.first_chunk().unwrap();
        let payload_bytes = seal.payload_bytes(prefix)?;
        let mut frame = Frame::new(1 << 16);
        let trailer_bytes = seal.trailer_bytes(prefix);
        let wire = frame.expect(payload_bytes)?;
        if wire.len() - TRAILER_BYTES + trailer_bytes != sent.len() {
            return Err(protocol("another length"));
        }
        wire[..sent.len()].copy_from_slice(sent);
        if seal.open(wire)? == Opened::Not {
            return Err(protocol("not opened"));
        }
        frame.header()?;
        Ok(frame.payload().to_vec())
    }

    #[test]
    fn a_frame_is_opened_as_it_was_sealed_and_hidden_on_the_way() {
        let content: Vec<u8> = (0..5000u32).map(|byte| byte as u8).collect();
        for cipher in CIPHERS {
            let (mut near, mut far) = (seal(cipher, 3), seal(cipher, 3));
            for _ in 0..3 {
                let mut frame = frame(&content);
                let sent = near.close(frame.wire()).unwrap().to_vec();
                let visible = sent.windows(64).any(|part| part == &content[..64]);
                assert_eq!(visible, cipher == Cipher::None);
                assert_eq!(received(&mut far, &sent).unwrap(), content);
            }
        }
    }

    #[test]
    fn a_frame_of_another_place_stream_cipher_or_session_does_not_open() {
        let mut near = seal(Cipher::Aes128Gcm, 3);
        let (mut first, mut second) = (frame(b"one"), frame(b"two"));
        let first = near.close(first.wire()).unwrap().to_vec();
        let second = near.close(second.wire()).unwrap().to_vec();
        assert!(
            received(&mut seal(Cipher::Aes128Gcm, 3), &second).is_err(),
            "one left out"
        );
        let mut far = seal(Cipher::Aes128Gcm, 3);
        received(&mut far, &first).unwrap();
        assert!(received(&mut far, &first).is_err(), "one repeated");
        for mut other in [
            seal(Cipher::Aes128Gcm, 4),
            seal(Cipher::Aes256Gcm, 3),
            seal(Cipher::None, 3),
        ] {
            assert_eq!(
                received(&mut other, &first).unwrap_err().kind,
                FailureKind::Protocol
            );
        }
        let mut stranger = SealKeys::new(&[8; 32], Cipher::Aes128Gcm).seal(3).unwrap();
        assert!(received(&mut stranger, &first).is_err());
    }

    #[test]
    fn keys_change_on_the_way_at_both_ends_alike() {
        let (mut near, mut far) = (seal(Cipher::Aes256Gcm, 0), seal(Cipher::Aes256Gcm, 0));
        for end in [&mut near, &mut far] {
            (end.epoch_bytes, end.left_bytes) = (100, 100);
        }
        for round in 0..10u8 {
            let sent = near.close(frame(&[round; 20]).wire()).unwrap().to_vec();
            assert_eq!(received(&mut far, &sent).unwrap(), [round; 20]);
        }
        assert_eq!((near.epoch, far.epoch), (4, 4));
        far.epoch = 0;
        far.left_bytes = 0;
        let sent = near.close(frame(&[0; 20]).wire()).unwrap().to_vec();
        assert!(received(&mut far, &sent).is_err(), "the key of another epoch");
    }

    proptest! {
        #[test]
        fn any_changed_bit_is_found(bytes in 0usize..300, place in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut frame = frame(&vec![5; bytes]);
            let mut sent = seal(Cipher::Aes128Gcm, 1).close(frame.wire()).unwrap().to_vec();
            let place = place.index(sent.len());
            sent[place] ^= 1 << bit;
            let refusal = received(&mut seal(Cipher::Aes128Gcm, 1), &sent).unwrap_err();
            prop_assert_eq!(refusal.kind, FailureKind::Protocol);
        }
    }
}
