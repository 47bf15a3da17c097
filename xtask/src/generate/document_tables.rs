//! Fields of documents that people write with units: the table for Python.

use serde_json::Value;

use super::document::{self, Definitions};
use super::python_tables::{self, OptionRow};
use super::text::{first_paragraph, python_string};

/// The type at the top of a topology; the others are those it is made of.
const TOP: &str = "Topology";

/// Fields of every type that a topology is made of, the topology itself first.
pub fn tables(definitions: &Definitions) -> Vec<(String, Vec<OptionRow>)> {
    let mut waiting = vec![TOP.to_owned()];
    let mut tables: Vec<(String, Vec<OptionRow>)> = Vec::new();
    while let Some(name) = waiting.pop() {
        if tables.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let rows: Vec<OptionRow> = document::fields(definitions.get(&name))
            .map(|(field, schema)| row(definitions, &name, field, schema))
            .collect();
        let parts = rows
            .iter()
            .filter_map(|row| row.item.clone())
            .filter(|item| is_structure(definitions, item));
        waiting.extend(parts);
        tables.push((name, rows));
    }
    tables
}

fn is_structure(definitions: &Definitions, name: &str) -> bool {
    let mut known = definitions.iter();
    known.any(|(known, schema)| known == name && schema.get("properties").is_some())
}

fn row(definitions: &Definitions, owner: &str, field: &str, schema: &Value) -> OptionRow {
    if document::json_type(definitions.resolve(schema)) == Some("object") {
        return table_row(owner, field, schema);
    }
    let mut row = python_tables::row(definitions, "run", field, schema);
    row.section = owner.to_owned();
    row
}

/// A field that is a table: of a type, or (kind `map`) of texts under any key.
fn table_row(owner: &str, field: &str, schema: &Value) -> OptionRow {
    let item = document::reference(schema).map(str::to_owned);
    OptionRow {
        path: field.to_owned(),
        section: owner.to_owned(),
        flags: Vec::new(),
        kind: if item.is_some() { "table" } else { "map" },
        item,
        unit: None,
        words: Vec::new(),
        range: (Value::Null, Value::Null),
        default: Value::Null,
        help: first_paragraph(document::description(schema)),
        details: String::new(),
        sweep: false,
        chosen: false,
    }
}

const HEAD: &str = r#""""Fields of a topology's types: how a text becomes the value of each.

Made by `cargo xtask gen` from crates/spec; do not edit.

`path` is the field, `section` its type. Besides the kinds of options there are `table`, whose
type is `item`, and `map`, texts under any key. `item` is what an array holds.
"""

from farline.spec._options import OptionRow

TOPOLOGY_FIELDS: dict[str, tuple[OptionRow, ...]] = {
"#;

/// Text of `_topology.py`.
pub fn page(definitions: &Definitions) -> String {
    let mut page = HEAD.to_owned();
    for (name, rows) in tables(definitions) {
        page.push_str(&format!("    {}: (\n", python_string(&name)));
        for row in rows {
            page.push_str(&python_tables::entry(&python_tables::row_lines(&row)));
        }
        page.push_str("    ),\n");
    }
    page.push_str("}\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_topology_has_its_fields() {
        let tables = tables(&Definitions::new());
        let names: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
        for part in [
            "Topology",
            "HostSpec",
            "LinkSpec",
            "PipeSpec",
            "BurstLoss",
            "PipeChange",
        ] {
            assert!(names.contains(&part), "{part} is missing in {names:?}");
        }
        assert!(tables.iter().all(|(_, rows)| !rows.is_empty()));
    }

    #[test]
    fn kinds_follow_from_the_type_of_a_field() {
        let tables = tables(&Definitions::new());
        let kind = |owner: &str, field: &str| {
            let (_, rows) = tables.iter().find(|(name, _)| name == owner).unwrap();
            let row = rows.iter().find(|row| row.path == field).unwrap();
            (row.kind, row.item.as_deref())
        };
        assert_eq!(kind("Topology", "hosts"), ("array", Some("HostSpec")));
        assert_eq!(kind("LinkSpec", "reverse"), ("table", Some("PipeSpec")));
        assert_eq!(kind("HostSpec", "sysctls"), ("map", None));
        assert_eq!(kind("LossSpec", "random"), ("number", None));
        assert_eq!(kind("QueueSpec", "capacity_bytes"), ("size", None));
    }
}
