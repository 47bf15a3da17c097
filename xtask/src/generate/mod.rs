//! Files that follow from `crates/spec`.
//!
//! What it does: turns the schemas of the types into text, file by file.
//! What it must not do: know an option or a record by name. What a page says
//! about a field is the field's own documentation.
//!
//! In: the types of `farline_spec`. Out: [`outputs`], pairs of path and text.
//! [`write`] puts them where they belong, [`check`] says which differ.
//!
//! Start with `document.rs` (types to schemas), then `python_types.rs`,
//! `python_tables.rs`, `link_tables.rs`, `document_tables.rs` and `reference.rs`,
//! which turn schemas into text.

mod document;
mod document_tables;
mod link_tables;
mod python_tables;
mod python_types;
mod reference;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold generated files only, and the ending of those files.
const OWNED: [(&str, &str); 2] = [("schemas", "json"), ("docs/reference", "md")];

/// Pages in an owned folder that people write.
const BY_HAND: [&str; 1] = ["docs/reference/benches.md"];

/// Every generated file: path from the top of the checkout, and text.
pub fn outputs() -> Vec<(PathBuf, String)> {
    let documents = document::documents();
    let mut files: Vec<(String, String)> = documents
        .iter()
        .map(|document| {
            (
                format!("schemas/{}.schema.json", document.name),
                document.json_text(),
            )
        })
        .collect();
    let definitions = document::Definitions::new();
    let spec = "python/farline/spec";
    files.push((format!("{spec}/_types.py"), python_types::page(&definitions)));
    files.push((
        format!("{spec}/_options.py"),
        python_tables::options(&definitions),
    ));
    files.push((
        format!("{spec}/_link_options.py"),
        link_tables::page(&definitions),
    ));
    files.push((
        format!("{spec}/_topology.py"),
        document_tables::page(&definitions),
    ));
    files.push((
        format!("{spec}/_failures.py"),
        python_tables::failures(&definitions),
    ));
    files.extend(reference::pages(&definitions));
    files
        .into_iter()
        .map(|(path, text)| (PathBuf::from(path), text))
        .collect()
}

/// Writes what differs; gives no complaints.
pub fn write(root: &Path) -> Result<Vec<String>, String> {
    for (path, text) in outputs() {
        let target = root.join(&path);
        if fs::read_to_string(&target).is_ok_and(|present| present == text) {
            continue;
        }
        let folder = target.parent().unwrap_or(root);
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        fs::write(&target, text).map_err(|error| format!("{}: {error}", target.display()))?;
        println!("wrote {}", path.display());
    }
    for path in strays(root)? {
        fs::remove_file(root.join(&path)).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("removed {}", path.display());
    }
    Ok(Vec::new())
}

/// Complains about every generated file that is not what `gen` would write.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let stale = outputs()
        .into_iter()
        .filter(|(path, text)| !fs::read_to_string(root.join(path)).is_ok_and(|present| present == *text))
        .map(|(path, _)| format!("{}: not what `cargo xtask gen` writes: run it", path.display()));
    let stray = strays(root)?.into_iter().map(|path| {
        format!(
            "{}: nothing generates this file: run `cargo xtask gen`",
            path.display()
        )
    });
    Ok(stale.chain(stray).collect())
}

/// Files in owned folders that are no longer generated.
fn strays(root: &Path) -> Result<Vec<PathBuf>, String> {
    let known: Vec<PathBuf> = outputs().into_iter().map(|(path, _)| path).collect();
    let mut found = Vec::new();
    for (folder, ending) in OWNED {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            continue;
        };
        for entry in entries {
            let name = entry.map_err(|error| format!("{folder}: {error}"))?.file_name();
            let path = Path::new(folder).join(name);
            let by_hand = BY_HAND.iter().any(|page| path == Path::new(page));
            if path.extension().is_some_and(|own| own == ending) && !by_hand && !known.contains(&path) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("farline-xtask-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn what_was_written_passes_the_check() {
        let root = scratch("fresh");
        assert!(!check(&root).unwrap().is_empty(), "nothing is there yet");
        write(&root).unwrap();
        assert_eq!(check(&root).unwrap(), Vec::<String>::new());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn an_edited_and_a_stray_file_are_named() {
        let root = scratch("edited");
        write(&root).unwrap();
        fs::write(root.join("schemas/run-spec.schema.json"), "{}").unwrap();
        fs::write(root.join("schemas/old.schema.json"), "{}").unwrap();
        fs::write(root.join("docs/reference/benches.md"), "by hand").unwrap();
        let complaints = check(&root).unwrap().join("\n");
        assert_eq!(complaints.lines().count(), 2, "{complaints}");
        assert!(complaints.contains("run-spec.schema.json: not what"));
        assert!(complaints.contains("old.schema.json: nothing generates"));
        write(&root).unwrap();
        assert_eq!(check(&root).unwrap(), Vec::<String>::new());
        fs::remove_dir_all(root).unwrap();
    }
}
