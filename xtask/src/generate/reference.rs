//! Reference pages.

use farline_spec::{
    FailureKind, LINK_SAMPLE_COLUMNS, MOVER_SAMPLE_COLUMNS, PARTIAL_EXIT_CODE, SAMPLE_COLUMNS,
    SCHEMA_VERSION, SampleColumn, VANISHED_EXIT_CODE,
};
use serde_json::Value;

use super::document::{self, Definitions, description};
use super::link_tables;
use super::python_tables::{self, OptionRow};
use super::text::first_paragraph;

const MADE_BY: &str = "<!-- Made by `cargo xtask gen` from crates/spec; do not edit. -->\n";

/// Path and text of every page.
pub fn pages(definitions: &Definitions) -> Vec<(String, String)> {
    [
        ("options", options(definitions)),
        ("links", links(definitions)),
        ("records", records(definitions)),
        ("samples", samples()),
        ("exit-codes", exit_codes(definitions)),
    ]
    .map(|(name, body)| (format!("docs/reference/{name}.md"), format!("{MADE_BY}{body}")))
    .into()
}

/// A row of a table; bars inside a cell are escaped.
fn table_row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head_cells: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rule: Vec<String> = head.iter().map(|_| "---".to_owned()).collect();
    let mut text = table_row(&head_cells) + &table_row(&rule);
    rows.for_each(|cells| text.push_str(&table_row(&cells)));
    text
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn options(definitions: &Definitions) -> String {
    let rows = python_tables::rows(definitions);
    let mut page = "# Options of a run\n\nThe same words name an option in a plan, in JSON and in a record. \
        Sizes take K, M, G (powers of 1024), rates k, M, G (powers of 1000).\n"
        .to_owned();
    for (section, title) in [
        ("run", "All transports"),
        ("tcp", "TCP"),
        ("udp", "UDP"),
        ("udt", "UDT"),
        ("quic", "QUIC"),
        ("rbudp", "RBUDP"),
        ("copy", "Files"),
    ] {
        let of_section: Vec<&OptionRow> = rows.iter().filter(|row| row.section == section).collect();
        page.push_str(&format!("\n## {title}\n\n"));
        page.push_str(&table(
            &["option", "flags", "range", "if not given", "meaning"],
            of_section.iter().map(|row| option_cells(row)),
        ));
        of_section.iter().for_each(|row| page.push_str(&words_of(row)));
    }
    page.push_str(&pair_fields(definitions));
    page
}

fn option_cells(row: &OptionRow) -> Vec<String> {
    let flags: Vec<String> = row.flags.iter().map(|flag| code(flag)).collect();
    let default = match &row.default {
        _ if row.chosen => "see meaning".to_owned(),
        Value::Null => String::new(),
        Value::Array(_) => "empty".to_owned(),
        Value::String(word) => code(word),
        other => other.to_string(),
    };
    let campaign = if row.sweep {
        ""
    } else {
        "Not varied by a campaign."
    };
    let meaning = [row.help.as_str(), row.details.as_str(), campaign];
    let meaning: Vec<&str> = meaning.into_iter().filter(|text| !text.is_empty()).collect();
    vec![
        code(&row.path),
        flags.join(" "),
        range(row),
        default,
        meaning.join(" "),
    ]
}

fn range(row: &OptionRow) -> String {
    let words: Vec<&str> = row.words.iter().map(|(word, _)| word.as_str()).collect();
    match (row.kind, &row.range) {
        ("word", _) => words.join(", "),
        ("flag", _) => "true, false".to_owned(),
        (_, (Value::Null, Value::Null)) => String::new(),
        ("string", (Value::Null, most)) => format!("at most {most} characters"),
        ("string", (least, most)) => format!("{least} to {most} characters"),
        (_, (least, Value::Null)) => format!("{least} or more"),
        (_, (least, most)) => format!("{least} to {most} {}", row.unit.as_deref().unwrap_or("")),
    }
    .trim_end()
    .to_owned()
}

fn words_of(row: &OptionRow) -> String {
    if row.words.is_empty() {
        return String::new();
    }
    let items = row
        .words
        .iter()
        .map(|(word, meaning)| format!("- `{word}`: {}\n", first_paragraph(meaning)));
    format!("\nWords of `{}`:\n\n{}", row.path, items.collect::<String>())
}

fn links(definitions: &Definitions) -> String {
    let rows = link_tables::rows(definitions);
    let mut page = "# Options of a link\n\nEach direction of a link has these; on the command line they are both \
        directions of the main link. `--rtt TIME` sets `delay_s` of both directions to half of it. A text \
        has its unit (`20ms`, `1Gbit`), on the command line and in a file; a number in a file is in the unit that ends \
        the name of its key (`delay_s`, `rate_bps`). Names with a dot are tables in a file: \
        `queue.capacity_bdp` is `capacity_bdp` under `queue`. What can change in use is what `farline testbed change` \
        takes, and what the `[path]` table of a plan may vary between runs. All bytes are bytes on the wire.\n\n"
        .to_owned();
    let head = ["option", "flag", "range", "changes in use", "meaning"];
    page.push_str(&table(&head, rows.iter().map(link_cells)));
    rows.iter().for_each(|row| page.push_str(&words_of(&row.option)));
    page
}

fn link_cells(row: &link_tables::LinkRow) -> Vec<String> {
    let mut cells = option_cells(&row.option);
    let change = row.change.as_deref().map_or("no".to_owned(), code);
    vec![
        cells.remove(0),
        cells.remove(0),
        range(&row.option),
        change,
        row.option.help.clone(),
    ]
}

fn pair_fields(definitions: &Definitions) -> String {
    let pair = definitions.get("AddressPair");
    let rows = document::fields(pair)
        .map(|(name, schema)| vec![code(name), shape(schema), first_paragraph(description(schema))]);
    format!(
        "\n## Entries of `pairs`\n\n{}\n\n{}",
        first_paragraph(description(pair)),
        table(&["field", "type", "meaning"], rows)
    )
}

/// A field's type in words.
fn shape(schema: &Value) -> String {
    let plain = match (document::reference(schema), document::json_type(schema)) {
        (Some(name), _) => code(name),
        (None, Some("array")) => format!("list of {}", shape(&schema["items"])),
        (None, Some("object")) => format!("names to {}", shape(&schema["additionalProperties"])),
        (None, Some(name)) => name.to_owned(),
        (None, None) => schema
            .get("const")
            .map_or_else(String::new, |word| code(&word.to_string())),
    };
    if document::is_nullable(schema) {
        format!("{plain} or null")
    } else {
        plain
    }
}

fn records(definitions: &Definitions) -> String {
    let mut page = format!(
        "# Documents\n\nVersion {SCHEMA_VERSION}. A field is present unless it is marked optional. \
         Their JSON Schemas are in `schemas/`.\n"
    );
    for (name, schema) in definitions.iter() {
        let words = document::words(schema);
        page.push_str(&format!(
            "\n## {name}\n\n{}\n\n",
            description(schema).replace('\n', " ")
        ));
        if !words.is_empty() {
            words
                .iter()
                .for_each(|(word, meaning)| page.push_str(&format!("- `{word}`: {meaning}\n")));
        } else if let Some(variants) = schema.get("oneOf").and_then(Value::as_array) {
            page.push_str(&table(
                &["field", "type", "", "meaning"],
                variants.iter().flat_map(field_rows),
            ));
        } else {
            page.push_str(&table(
                &["field", "type", "", "meaning"],
                field_rows(schema).into_iter(),
            ));
        }
    }
    page
}

fn field_rows(schema: &Value) -> Vec<Vec<String>> {
    let row = |(name, field): (&String, &Value)| {
        let presence = if document::is_required(schema, name) {
            ""
        } else {
            "optional"
        };
        let own = description(field);
        let meaning = if own.is_empty() { description(schema) } else { own };
        vec![
            code(name),
            shape(field),
            presence.to_owned(),
            first_paragraph(meaning),
        ]
    };
    document::fields(schema).map(row).collect()
}

fn samples() -> String {
    let rows = |columns: &'static [SampleColumn]| {
        table(
            &["column", "meaning"],
            columns
                .iter()
                .map(|column| vec![code(column.name), first_paragraph(column.meaning)]),
        )
    };
    format!(
        "# Columns of samples\n\nOne row per stream, end and interval. Every column is a list of 64-bit \
         integers; -1 means \"not known here\". Counters are differences over the interval, gauges are \
         values at its end.\n\n{}\n## Columns of link samples\n\nOne row per link of an emulated path, direction \
         and interval; `farline export --links` writes them.\n\n{}\n## Columns of file samples\n\nOne row per end of a copy \
         and interval; `farline export --files` writes them.\n\n{}",
        rows(SAMPLE_COLUMNS),
        rows(LINK_SAMPLE_COLUMNS),
        rows(MOVER_SAMPLE_COLUMNS),
    )
}

fn exit_codes(definitions: &Definitions) -> String {
    let meanings = document::words(definitions.get("FailureKind"));
    let rows = FailureKind::ALL.iter().map(|kind| {
        let meaning = meanings.iter().find(|(word, _)| *word == kind.word());
        let fault = serde_json::to_value(kind.fault()).expect("a word");
        vec![
            kind.exit_code().to_string(),
            code(kind.word()),
            fault.as_str().unwrap_or_default().to_owned(),
            if kind.may_retry() { "yes" } else { "no" }.to_owned(),
            first_paragraph(meaning.map_or("", |(_, text)| text)),
        ]
    });
    format!(
        "# Exit codes\n\n0 is success. A failure is one line on standard error; with `--json` it is a \
         document too. The kind is also the exception class in Python.\n\n{}\n`farline copy` has two more, rsync's: \
         {PARTIAL_EXIT_CODE} when some names are not as they should be at the destination (the receipt names each with its reason), \
         {VANISHED_EXIT_CODE} when nothing failed but sources that vanished meanwhile. `farline fairness` has one more: 3 when all was \
         measured and an expectation of its plan does not hold.\n",
        table(
            &["code", "kind", "who has to act", "worth trying again", "meaning"],
            rows
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str) -> String {
        let wanted = format!("docs/reference/{name}.md");
        let mut pages = pages(&Definitions::new()).into_iter();
        pages
            .find(|(path, _)| *path == wanted)
            .unwrap_or_else(|| panic!("no {wanted}"))
            .1
    }

    #[test]
    fn options_state_their_range_and_words() {
        let page = page("options");
        assert!(page.contains("| `tcp.mss_bytes` | `-M` `--mss` | 88 to 32767 bytes |"));
        assert!(page.contains("Words of `tcp.send_mode`:"));
    }

    #[test]
    fn every_section_has_its_own_table() {
        let titles = page("options")
            .lines()
            .filter(|line| line.starts_with("## "))
            .count();
        let sections: std::collections::BTreeSet<String> = python_tables::rows(&Definitions::new())
            .into_iter()
            .map(|row| row.section)
            .collect();
        assert_eq!(
            titles,
            sections.len() + 1,
            "{sections:?} and the entries of pairs"
        );
    }

    #[test]
    fn every_failure_is_listed_with_its_code() {
        let page = page("exit-codes");
        for kind in FailureKind::ALL {
            assert!(page.contains(&format!("| {} | `{}` |", kind.exit_code(), kind.word())));
        }
    }

    #[test]
    fn bars_inside_cells_do_not_end_them() {
        assert_eq!(table_row(&["a|b".to_owned()]), "| a\\|b |\n");
    }
}
