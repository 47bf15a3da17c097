//! Tables for Python: options of runs and of links, and failures.

use farline_spec::{FailureKind, PARTIAL_EXIT_CODE, VANISHED_EXIT_CODE};
use serde_json::Value;

use super::document::{self, Definitions, description};
use super::text::{first_paragraph, later_paragraphs, python_string, python_strings, python_value};

/// One option of a run: what command lines and plans need to know about it.
pub struct OptionRow {
    /// Place in a RunSpec, such as `tcp.mss_bytes`.
    pub path: String,
    /// `run`, or the transport that the option belongs to.
    pub section: String,
    /// Spellings on the command line.
    pub flags: Vec<String>,
    /// How a text becomes a value: `size`, `rate`, `seconds`, `ms`, `flag`, `word`, `array`, `string`, `integer`,
    /// `number`.
    pub kind: &'static str,
    /// What the entries of an array are: `integer`, or the name of a type.
    pub item: Option<String>,
    /// Unit of the number.
    pub unit: Option<String>,
    /// Valid words with what each means.
    pub words: Vec<(String, String)>,
    /// Range of the number, of an array's entries, or of a text's length.
    pub range: (Value, Value),
    /// Value if nobody gives one; `null` if that is decided later.
    pub default: Value,
    /// Whether commands choose a value where none is stated, whatever the default of a document is.
    pub chosen: bool,
    /// The first paragraph.
    pub help: String,
    /// What else is to be said, on one line: for pages, not for command lines.
    pub details: String,
    /// Whether a campaign may vary it.
    pub sweep: bool,
}

/// Every option of a run, in the order of the types.
pub fn rows(definitions: &Definitions) -> Vec<OptionRow> {
    let mut rows = Vec::new();
    collect(definitions, definitions.get("RunSpec"), "run", &mut rows);
    rows
}

fn collect(definitions: &Definitions, structure: &Value, section: &str, rows: &mut Vec<OptionRow>) {
    for (name, schema) in document::fields(structure) {
        if schema.get("x-flags").is_some() {
            rows.push(row(definitions, section, name, schema));
        } else if section == "run" && document::reference(schema).is_some() {
            collect(definitions, definitions.resolve(schema), name, rows);
        } else {
            assert_eq!(
                schema["x-sweep"], false,
                "{section}.{name} can be varied but has no flag"
            );
        }
    }
}

/// The row of one field; `section` is `run` for a field of the document itself.
pub(super) fn row(definitions: &Definitions, section: &str, name: &str, schema: &Value) -> OptionRow {
    let target = definitions.resolve(schema);
    let is_array = document::json_type(target) == Some("array");
    let number = if is_array { &target["items"] } else { target };
    let bound = |keys: [&str; 2]| keys.iter().find_map(|key| number.get(key)).cloned();
    OptionRow {
        path: if section == "run" {
            name.to_owned()
        } else {
            format!("{section}.{name}")
        },
        section: section.to_owned(),
        flags: strings(&schema["x-flags"]),
        kind: kind(target),
        item: is_array.then(|| item_name(number)),
        unit: number["x-unit"].as_str().map(str::to_owned),
        words: document::words(target)
            .iter()
            .map(|(word, meaning)| ((*word).to_owned(), (*meaning).to_owned()))
            .collect(),
        range: (
            bound(["minimum", "minLength"]).unwrap_or(Value::Null),
            bound(["maximum", "maxLength"]).unwrap_or(Value::Null),
        ),
        default: default(schema, is_array),
        help: first_paragraph(description(schema)),
        details: later_paragraphs(description(schema)),
        sweep: schema["x-sweep"] != false,
        chosen: schema["x-chosen"] == true,
    }
}

fn strings(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A list that is left out is empty; anything else that is left out is decided later.
fn default(schema: &Value, is_array: bool) -> Value {
    let absent = if is_array {
        Value::Array(Vec::new())
    } else {
        Value::Null
    };
    schema.get("default").cloned().unwrap_or(absent)
}

fn item_name(schema: &Value) -> String {
    let name = document::reference(schema).or_else(|| document::json_type(schema));
    name.expect("an entry has a type").to_owned()
}

fn kind(schema: &Value) -> &'static str {
    if !document::words(schema).is_empty() {
        return "word";
    }
    let unit = schema["x-unit"].as_str();
    match (document::json_type(schema), unit) {
        (Some("boolean"), _) => "flag",
        (Some("array"), _) => "array",
        (Some("string"), _) => "string",
        (Some("integer"), Some("bytes")) => "size",
        (Some("integer"), Some("bit/s")) => "rate",
        (Some("integer"), Some("ms")) => "ms",
        (Some("integer"), _) => "integer",
        (Some("number"), Some("s")) => "seconds",
        (Some("number"), _) => "number",
        (shape, unit) => panic!("no kind of option for {shape:?} with unit {unit:?}"),
    }
}

const OPTIONS_HEAD: &str = r#""""Options of a run: the table behind every command line and every plan.

Made by `cargo xtask gen` from crates/spec; do not edit.

minimum and maximum bound the number, the entries of an array, or the length of a string.
"""

from typing import TypedDict


class OptionRow(TypedDict):
    """One option: its place in a RunSpec, its spellings, and how a text becomes its value."""

    path: str
    section: str
    flags: tuple[str, ...]
    kind: str
    item: str | None
    unit: str | None
    choices: tuple[str, ...]
    minimum: int | float | None
    maximum: int | float | None
    default: bool | int | float | str | tuple[()] | None
    help: str
    sweep: bool


OPTIONS: tuple[OptionRow, ...] = (
"#;

/// Text of `_options.py`.
pub fn options(definitions: &Definitions) -> String {
    let mut page = OPTIONS_HEAD.to_owned();
    rows(definitions)
        .iter()
        .for_each(|row| page.push_str(&entry(&row_lines(row))));
    page.push_str(")\n");
    page
}

/// Keys of a row with their values as Python writes them.
pub(super) fn row_lines(row: &OptionRow) -> Vec<(&'static str, String)> {
    let optional = |text: &Option<String>| text.as_deref().map_or("None".to_owned(), python_string);
    vec![
        ("path", python_string(&row.path)),
        ("section", python_string(&row.section)),
        ("flags", python_strings(row.flags.iter().map(String::as_str))),
        ("kind", python_string(row.kind)),
        ("item", optional(&row.item)),
        ("unit", optional(&row.unit)),
        (
            "choices",
            python_strings(row.words.iter().map(|(word, _)| word.as_str())),
        ),
        ("minimum", python_value(&row.range.0)),
        ("maximum", python_value(&row.range.1)),
        ("default", python_value(&row.default)),
        ("help", python_string(&row.help)),
        ("sweep", python_value(&Value::from(row.sweep))),
    ]
}

/// One dictionary of a table.
pub(super) fn entry(lines: &[(&str, String)]) -> String {
    let lines = lines
        .iter()
        .map(|(key, value)| format!("        \"{key}\": {value},\n"));
    format!("    {{\n{}    }},\n", lines.collect::<String>())
}

const FAILURES_HEAD: &str = r#""""Kinds of failure: whose fault, exit code, whether to try again.

Made by `cargo xtask gen` from crates/spec; do not edit.
"""

# Kind -> (fault, exit code, whether the same request may succeed later by itself).
FAILURES: dict[str, tuple[str, int, bool]] = {
"#;

/// Text of `_failures.py`.
pub fn failures(definitions: &Definitions) -> String {
    let mut page = FAILURES_HEAD.to_owned();
    for kind in FailureKind::ALL {
        let fault = serde_json::to_value(kind.fault()).expect("a word");
        let retry = python_value(&Value::from(kind.may_retry()));
        let code = kind.exit_code();
        page.push_str(&format!("    \"{}\": ({fault}, {code}, {retry}),\n", kind.word()));
    }
    page.push_str("}\n\n# Kind -> what it means.\nFAILURE_MEANINGS: dict[str, str] = {\n");
    for (word, meaning) in document::words(definitions.get("FailureKind")) {
        page.push_str(&format!(
            "    \"{word}\": {},\n",
            python_string(&first_paragraph(meaning))
        ));
    }
    page.push_str(&format!(
        "}}\n\n# Some names of a copy are not as they should be at the destination.\nPARTIAL_EXIT_CODE = {PARTIAL_EXIT_CODE}\n\n\
         # Nothing failed in a copy but sources that vanished meanwhile.\nVANISHED_EXIT_CODE = {VANISHED_EXIT_CODE}\n"
    ));
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find<'a>(rows: &'a [OptionRow], path: &str) -> &'a OptionRow {
        rows.iter()
            .find(|row| row.path == path)
            .unwrap_or_else(|| panic!("no {path}"))
    }

    #[test]
    fn kinds_follow_from_type_and_unit() {
        let rows = rows(&Definitions::new());
        let expected = [
            ("transport", "word"),
            ("streams", "integer"),
            ("block_bytes", "size"),
            ("duration_s", "seconds"),
            ("rate_bps", "rate"),
            ("connect_timeout_ms", "ms"),
            ("pairs", "array"),
            ("title", "string"),
            ("tcp.no_delay", "flag"),
            ("udp.gso", "flag"),
        ];
        for (path, kind) in expected {
            assert_eq!(find(&rows, path).kind, kind, "{path}");
        }
    }

    #[test]
    fn a_row_carries_what_its_type_says() {
        let rows = rows(&Definitions::new());
        let mss = find(&rows, "tcp.mss_bytes");
        assert_eq!((mss.section.as_str(), mss.sweep), ("tcp", true));
        assert_eq!(mss.range, (Value::from(88), Value::from(32_767)));
        assert_eq!(mss.flags, ["-M", "--mss"]);
        let cpus = find(&rows, "client_cpus");
        assert_eq!(cpus.item.as_deref(), Some("integer"));
        assert_eq!(cpus.default, Value::Array(Vec::new()));
        assert!(!find(&rows, "seed").sweep);
        assert!(rows.iter().all(|row| !row.help.is_empty()));
    }

    #[test]
    fn a_flag_means_one_thing_per_section() {
        let rows = rows(&Definitions::new());
        // `farline copy` takes no iperf3 options of a measurement: -n is rsync's there, and iperf3's elsewhere.
        let rows: Vec<_> = rows
            .into_iter()
            .filter(|row| row.path != "copy.dry_run")
            .collect();
        for row in &rows {
            for flag in &row.flags {
                let rivals = rows.iter().filter(|other| {
                    other.flags.contains(flag)
                        && (other.section == row.section || other.section == "run" || row.section == "run")
                });
                assert_eq!(rivals.count(), 1, "{flag} of {}", row.path);
            }
        }
    }
}
