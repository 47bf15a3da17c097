//! Types for Python: a TypedDict for each structure, a Literal for each enumeration.

use farline_spec::{LINK_SAMPLE_COLUMNS, MOVER_SAMPLE_COLUMNS, SAMPLE_COLUMNS};
use serde_json::Value;

use super::document::{self, Definitions, description};
use super::text::{first_paragraph, python_string, wrap};

const WIDTH: usize = 100;

const HEAD: &str = r#""""Documents that cross a door, as Python sees them.

Made by `cargo xtask gen` from crates/spec; do not edit.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict
"#;

/// Text of `_types.py`.
pub fn page(definitions: &Definitions) -> String {
    let mut words = String::new();
    let mut classes = String::new();
    let mut unions = String::new();
    for (name, schema) in definitions.iter() {
        if !document::words(schema).is_empty() {
            words.push_str(&literal(name, schema));
        } else if schema.get("oneOf").is_some() {
            let (variants, union) = tagged(name, schema);
            classes.push_str(&variants);
            unions.push_str(&union);
        } else {
            classes.push_str(&class(name, schema));
        }
    }
    format!("{HEAD}{words}{classes}\n{unions}\n{}", sample_columns())
}

fn comment(text: &str, indent: &str) -> String {
    let lines = wrap(&first_paragraph(text), &format!("{indent}# "), WIDTH);
    lines.into_iter().map(|line| line + "\n").collect()
}

fn literal(name: &str, schema: &Value) -> String {
    let words: Vec<String> = document::words(schema)
        .iter()
        .map(|(word, _)| python_string(word))
        .collect();
    let line = format!("{name}: TypeAlias = Literal[{}]\n", words.join(", "));
    let line = if line.len() <= WIDTH {
        line
    } else {
        format!(
            "{name}: TypeAlias = Literal[\n    {},\n]\n",
            words.join(",\n    ")
        )
    };
    format!("\n{}{line}", comment(description(schema), ""))
}

fn class(name: &str, schema: &Value) -> String {
    let fields: Vec<_> = document::fields(schema).collect();
    let required = fields
        .iter()
        .filter(|(field, _)| document::is_required(schema, field))
        .count();
    let total = if required == 0 { ", total=False" } else { "" };
    let mut text = format!("\n\nclass {name}(TypedDict{total}):\n{}", docstring(schema));
    for (field, field_schema) in fields {
        let kind = python_type(field_schema);
        let kind = if required > 0 && !document::is_required(schema, field) {
            format!("NotRequired[{kind}]")
        } else {
            kind
        };
        text.push_str(&comment(description(field_schema), "    "));
        text.push_str(&format!("    {field}: {kind}\n"));
    }
    text
}

fn docstring(schema: &Value) -> String {
    let text = first_paragraph(description(schema));
    let one_line = format!("    \"\"\"{text}\"\"\"\n\n");
    if one_line.trim_end().len() <= WIDTH {
        return one_line;
    }
    let lines = wrap(&text, "    ", WIDTH - 4).join("\n");
    format!("    \"\"\"{}\n    \"\"\"\n\n", lines.trim_start())
}

/// Structures told apart by the word of one field: a class each, and their union.
fn tagged(name: &str, schema: &Value) -> (String, String) {
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    let mut names = Vec::new();
    let mut classes = String::new();
    for variant in variants {
        let word = document::fields(variant)
            .find_map(|(_, field)| field.get("const")?.as_str())
            .expect("a variant is named by a constant");
        let (first, rest) = word.split_at(1);
        let variant_name = format!("{name}{}{rest}", first.to_uppercase());
        classes.push_str(&class(&variant_name, variant));
        names.push(variant_name);
    }
    let union = format!(
        "\n{}{name}: TypeAlias = {}\n",
        comment(description(schema), ""),
        names.join(" | ")
    );
    (classes, union)
}

fn python_type(schema: &Value) -> String {
    let plain = plain_type(schema);
    if document::is_nullable(schema) {
        format!("{plain} | None")
    } else {
        plain
    }
}

fn plain_type(schema: &Value) -> String {
    if let Some(name) = document::reference(schema) {
        return name.to_owned();
    }
    if let Some(word) = schema.get("const") {
        return format!("Literal[{word}]");
    }
    match document::json_type(schema) {
        Some("integer") => "int".to_owned(),
        Some("number") => "float".to_owned(),
        Some("string") => "str".to_owned(),
        Some("boolean") => "bool".to_owned(),
        Some("array") => format!("list[{}]", python_type(&schema["items"])),
        Some("object") => format!("dict[str, {}]", python_type(&schema["additionalProperties"])),
        other => panic!("no Python type for {other:?}: {schema}"),
    }
}

fn sample_columns() -> String {
    let tables = [
        ("samples", "SAMPLE_COLUMNS", SAMPLE_COLUMNS),
        ("samples of links", "LINK_SAMPLE_COLUMNS", LINK_SAMPLE_COLUMNS),
        ("samples of files", "MOVER_SAMPLE_COLUMNS", MOVER_SAMPLE_COLUMNS),
    ];
    let texts = tables.map(|(what, name, columns)| {
        let lines = columns.iter().map(|column| {
            let meaning = python_string(&first_paragraph(column.meaning));
            format!("    \"{}\": {meaning},\n", column.name)
        });
        format!(
            "# Columns of {what}, in their order, with what each holds.\n{name}: dict[str, str] = {{\n{}}}\n",
            lines.collect::<String>()
        )
    });
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_may_leave_fields_out_and_records_may_not() {
        let page = page(&Definitions::new());
        assert!(page.contains("class TcpOptions(TypedDict, total=False):"));
        assert!(page.contains("class RunRecord(TypedDict):"));
        assert!(page.contains("    error: NotRequired[Failure | None]\n"));
        assert!(page.contains("    retry_after_s: NotRequired[float | None]\n"));
    }

    #[test]
    fn tagged_structures_become_a_union() {
        let page = page(&Definitions::new());
        assert!(page.contains("Scope: TypeAlias = ScopeProfile | ScopeRead | ScopeWrite\n"));
        assert!(page.contains("    may: Literal[\"read\"]\n"));
    }

    #[test]
    fn maps_lists_and_words_have_types() {
        let page = page(&Definitions::new());
        assert!(page.contains("    sysctls: dict[str, str]\n"));
        assert!(page.contains("    pairs: list[AddressPair]\n"));
        assert!(
            page.contains("Direction: TypeAlias = Literal[\"forward\", \"reverse\", \"bidirectional\"]\n")
        );
    }
}
