//! Who a client says it is: the text inside its token, and the list of users.

use ring::digest::{SHA256, digest};

/// Longest name and longest password.
const MAX_PART: usize = 512;

/// What a token holds once it is decrypted.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// Name of the user.
    pub user: String,
    /// Password.
    pub password: String,
    /// Seconds since 1970 when the token was made, by the client's clock.
    pub made_at_s: i64,
}

impl std::fmt::Debug for Credential {
    /// Without the password.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Credential")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Credential {
    /// Reads the three lines of a token.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut lines = text.split('\n').map(|line| line.trim_end_matches(['\r', '\0']));
        let mut part = |name: &str| {
            lines
                .next()?
                .strip_prefix(name)
                .map(|value| value.trim().to_owned())
        };
        let (user, password, time) = (part("user:")?, part("pwd:")?, part("ts:")?);
        let is_whole = !user.is_empty() && user.len() <= MAX_PART && password.len() <= MAX_PART;
        let made_at_s = time.parse().ok().filter(|_| is_whole)?;
        Some(Self {
            user,
            password,
            made_at_s,
        })
    }

    /// The three lines.
    pub fn text(&self) -> String {
        format!(
            "user: {}\npwd:  {}\nts:   {}",
            self.user, self.password, self.made_at_s
        )
    }

    /// Whether it was made within `skew_s` of `now_s`.
    pub fn is_recent(&self, now_s: i64, skew_s: u32) -> bool {
        now_s.abs_diff(self.made_at_s) <= skew_s.into()
    }
}

/// Users and the hashes of their passwords, as iperf3's file has them: `name,sha256` a line.
#[derive(Debug, Clone, Default)]
pub struct Users(Vec<(String, String)>);

impl Users {
    /// Reads the file's text; comments and lines without a comma do not count.
    pub fn parse(text: &str) -> Self {
        let users = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| {
                let (name, hash) = line.trim_end().split_once(',')?;
                Some((name.to_owned(), hash.trim().to_ascii_lowercase()))
            });
        Self(users.collect())
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether name and password are those of one of them. All are compared whole, whoever asks.
    pub fn contain(&self, credential: &Credential) -> bool {
        let salted = format!("{{{}}}{}", credential.user, credential.password);
        let hash = digest(&SHA256, salted.as_bytes());
        let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let matches = |(name, known): &(String, String)| {
            let is_same = known.len() == hash.len()
                && known
                    .bytes()
                    .zip(hash.bytes())
                    .fold(0, |differs, (one, other)| differs | (one ^ other))
                    == 0;
            is_same & (*name == credential.user)
        };
        self.0.iter().filter(|user| matches(user)).count() > 0
    }
}
