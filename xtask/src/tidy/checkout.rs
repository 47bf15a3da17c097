//! The files that belong to the project.

use std::path::Path;
use std::process::Command;

/// A text file of the project.
pub struct SourceFile {
    /// From the top of the checkout, with `/`.
    pub path: String,
    /// All of it.
    pub text: String,
}

impl SourceFile {
    /// What follows the last dot of the name.
    pub fn ending(&self) -> &str {
        self.name().rsplit_once('.').map_or("", |(_, ending)| ending)
    }

    /// Last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or("")
    }

    /// Whether `cargo xtask gen` writes it.
    pub fn is_generated(&self) -> bool {
        self.text
            .lines()
            .take(5)
            .any(|line| line.contains("Made by `cargo xtask gen`"))
    }

    /// Whether it holds tests only.
    pub fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.contains("/tests/") || self.name() == "tests.rs"
    }
}

/// Every text file of the project, tracked or new, without what git ignores.
pub struct Checkout {
    /// In the order of their paths.
    pub files: Vec<SourceFile>,
}

impl Checkout {
    /// Reads the checkout at `root`.
    pub fn read(root: &Path) -> Result<Self, String> {
        let mut files: Vec<SourceFile> = list(root)?
            .lines()
            .filter_map(|path| {
                // A file that was just deleted is not there; a picture is, with no text in it.
                let bytes = std::fs::read(root.join(path)).ok()?;
                Some(SourceFile {
                    path: path.to_owned(),
                    text: String::from_utf8(bytes).unwrap_or_default(),
                })
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// The file at `path`.
    pub fn find(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// A checkout made of `(path, text)`, for tests of rules.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        Self {
            files: files.iter().map(file).collect(),
        }
    }
}

fn list(root: &Path) -> Result<String, String> {
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "-c", "core.quotePath=false", "ls-files"])
        .args(["--cached", "--others", "--exclude-standard", "--deduplicate"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "git ls-files: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("git ls-files: {error}"))
}
