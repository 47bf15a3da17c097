//! Exceptions, each with its reason.

use serde::Deserialize;

use super::Complaint;
use super::checkout::Checkout;

const FILE: &str = "xtask/tidy.toml";

/// One exception.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowance {
    rule: String,
    /// A file, or a folder if it ends in `/`.
    path: String,
    /// Why the rule does not fit here.
    reason: String,
    /// Largest size allowed, for rules about sizes: the ratchet.
    #[serde(default)]
    at_most: usize,
    #[serde(skip)]
    used: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    allow: Vec<Allowance>,
}

/// All exceptions, and which of them were needed.
pub struct Allowances {
    list: Vec<Allowance>,
}

impl Allowances {
    /// Reads them from the checkout; none if there is no file.
    pub fn read(checkout: &Checkout) -> Result<Self, String> {
        let text = checkout.find(FILE).map_or("", |file| &file.text);
        let document: Document = toml::from_str(text).map_err(|error| format!("{FILE}: {error}"))?;
        let list = document.allow;
        if let Some(bare) = list.iter().find(|allowance| allowance.reason.trim().is_empty()) {
            return Err(format!("{FILE}: the exception for {} has no reason", bare.path));
        }
        Ok(Self { list })
    }

    /// Whether an exception covers the complaint.
    pub fn permits(&mut self, complaint: &Complaint) -> bool {
        let covers = |allowance: &&mut Allowance| {
            let inside = allowance.path.ends_with('/') && complaint.path.starts_with(&allowance.path);
            allowance.rule == complaint.rule
                && (inside || allowance.path == complaint.path)
                && complaint.size <= allowance.at_most
        };
        match self.list.iter_mut().find(covers) {
            Some(allowance) => {
                allowance.used = true;
                true
            }
            None => false,
        }
    }

    /// A complaint for each exception that nothing needed.
    pub fn unused(&self) -> Vec<Complaint> {
        let idle = self.list.iter().filter(|allowance| !allowance.used);
        idle.map(|allowance| {
            let message = format!(
                "nothing in {} needs the exception from {}: remove it",
                allowance.path, allowance.rule
            );
            Complaint::new(FILE, 1, "exceptions", message)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Allowances, String> {
        Allowances::read(&Checkout::of(&[(FILE, text)]))
    }

    fn too_long(path: &str, size: usize) -> Complaint {
        Complaint {
            size,
            ..Complaint::new(path, 1, "file-length", String::new())
        }
    }

    #[test]
    fn an_exception_is_a_cap_not_a_licence() {
        let text =
            "[[allow]]\nrule = \"file-length\"\npath = \"a.rs\"\nreason = \"a table\"\nat_most = 700\n";
        let mut allowances = read(text).unwrap();
        assert!(allowances.permits(&too_long("a.rs", 700)));
        assert!(!allowances.permits(&too_long("a.rs", 701)));
        assert!(!allowances.permits(&too_long("b.rs", 650)));
        assert!(allowances.unused().is_empty());
    }

    #[test]
    fn an_idle_exception_is_a_complaint() {
        let text = "[[allow]]\nrule = \"emoji\"\npath = \"docs/\"\nreason = \"shown as data\"\n";
        let mut allowances = read(text).unwrap();
        assert_eq!(allowances.unused().len(), 1);
        assert!(allowances.permits(&Complaint::new("docs/x.md", 1, "emoji", String::new())));
        assert!(allowances.unused().is_empty());
    }

    #[test]
    fn an_exception_without_a_reason_is_refused() {
        assert!(read("[[allow]]\nrule = \"emoji\"\npath = \"a\"\nreason = \" \"\n").is_err());
        assert!(read("[[allow]]\nrule = \"emoji\"\npath = \"a\"\n").is_err());
    }
}
