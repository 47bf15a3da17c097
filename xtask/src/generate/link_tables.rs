//! Options of a link: which there are, and the table of them for Python.

use serde_json::Value;

use super::document::{self, Definitions};
use super::python_tables::{self, OptionRow};
use super::text::python_string;

/// Parts of a link's direction that have options of their own, as fields of `PipeSpec`.
const PARTS: [&str; 2] = ["queue", "loss"];

/// One option of a link.
pub struct LinkRow {
    /// What command lines and plans need to know about it; the path is its place in a `PipeSpec`.
    pub option: OptionRow,
    /// Its name in a `PipeChange`; nothing if it stays as it is while the link is in use.
    pub change: Option<String>,
}

/// Every option of a link, in the order of the types.
pub fn rows(definitions: &Definitions) -> Vec<LinkRow> {
    let pipe = definitions.get("PipeSpec");
    let mut rows = Vec::new();
    for (name, schema) in document::fields(pipe) {
        if schema.get("x-flags").is_some() {
            rows.push(row(definitions, "run", name, schema));
        } else if PARTS.contains(&name.as_str()) {
            let part = definitions.resolve(schema);
            rows.extend(
                document::fields(part)
                    .filter(|(_, field)| field.get("x-flags").is_some())
                    .map(|(inner, field)| row(definitions, name, inner, field)),
            );
        }
    }
    rows
}

fn row(definitions: &Definitions, part: &str, name: &str, schema: &Value) -> LinkRow {
    let changes = document::fields(definitions.get("PipeChange")).map(|(field, _)| field.as_str());
    let change = changes
        .filter(|field| *field == name || *field == part)
        .map(str::to_owned)
        .next();
    let mut option = python_tables::row(definitions, part, name, schema);
    option.section = if part == "run" { "link" } else { part }.to_owned();
    option.sweep = change.is_some();
    LinkRow { option, change }
}

const HEAD: &str = r#""""Options of a link: the table behind `testbed` and the paths of a campaign.

Made by `cargo xtask gen` from crates/spec; do not edit.

`path` is the place in a PipeSpec; `change` the name in a PipeChange, or None where the option
cannot change while the link is in use. minimum and maximum bound the number.
"""

from farline.spec._options import OptionRow


class LinkOptionRow(OptionRow):
    """One option of a link."""

    change: str | None


LINK_OPTIONS: tuple[LinkOptionRow, ...] = (
"#;

/// Text of `_link_options.py`.
pub fn page(definitions: &Definitions) -> String {
    let mut page = HEAD.to_owned();
    for row in rows(definitions) {
        let mut lines = python_tables::row_lines(&row.option);
        let change = row.change.as_deref().map_or("None".to_owned(), python_string);
        lines.push(("change", change));
        page.push_str(&python_tables::entry(&lines));
    }
    page.push_str(")\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_change_in_use_says_under_which_name() {
        let rows = rows(&Definitions::new());
        let find = |path: &str| {
            let row = rows.iter().find(|row| row.option.path == path);
            row.unwrap_or_else(|| panic!("no {path}")).change.as_deref()
        };
        assert_eq!(find("rate_bps"), Some("rate_bps"));
        assert_eq!(find("loss.random"), Some("loss"));
        assert_eq!(find("queue.capacity_bytes"), Some("capacity_bytes"));
        assert_eq!(find("mtu_bytes"), None);
    }

    #[test]
    fn every_change_but_the_cut_has_an_option() {
        let definitions = Definitions::new();
        let rows = rows(&definitions);
        let without: Vec<&String> = document::fields(definitions.get("PipeChange"))
            .map(|(field, _)| field)
            .filter(|field| {
                rows.iter()
                    .all(|row| row.change.as_deref() != Some(field.as_str()))
            })
            .collect();
        assert_eq!(without, ["up"]);
    }

    #[test]
    fn a_flag_means_one_thing() {
        let rows = rows(&Definitions::new());
        let mut flags: Vec<&String> = rows.iter().flat_map(|row| &row.option.flags).collect();
        let all = flags.len();
        flags.sort();
        flags.dedup();
        assert_eq!(flags.len(), all);
        assert!(rows.iter().all(|row| !row.option.help.is_empty()));
    }
}
