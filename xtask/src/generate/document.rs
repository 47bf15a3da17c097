//! Types to schemas.

use farline_spec::{
    AdjustRequest, CopyProgress, CopyStages, Failure, FailureKind, HostFacts, Iperf3Config, LinkChange,
    LinkSamples, MoverSamples, ReceiptLine, RunRecord, RunSpec, Samples, ServerConfig, StorageCounters,
    StorageLoad, StorageLoadReport, StorageSpec, TicketClaims, TicketRecord, Topology, TransferEstimate,
    VersionInfo,
};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// A schema file of its own.
pub struct Document {
    /// Name of the file, without its ending.
    pub name: &'static str,
    schema: Schema,
}

impl Document {
    fn of<T: JsonSchema>(name: &'static str, settings: SchemaSettings) -> Self {
        let schema = settings.into_generator().into_root_schema_for::<T>();
        Self { name, schema }
    }

    /// The file's text.
    pub fn json_text(&self) -> String {
        let mut document = self.schema.as_value().clone();
        document["$comment"] = Value::from("Made by `cargo xtask gen` from crates/spec; do not edit.");
        let mut text = serde_json::to_string_pretty(&document).expect("a schema is JSON");
        text.push('\n');
        text
    }
}

/// What someone may write: fields with a default may be left out.
fn as_read() -> SchemaSettings {
    SchemaSettings::draft2020_12()
}

/// What farline writes: only fields that it may leave out are optional.
fn as_written() -> SchemaSettings {
    SchemaSettings::draft2020_12().for_serialize()
}

/// Every document that has a schema file.
pub fn documents() -> Vec<Document> {
    vec![
        Document::of::<RunSpec>("run-spec", as_read()),
        Document::of::<ServerConfig>("server-config", as_read()),
        Document::of::<Iperf3Config>("iperf3-config", as_read()),
        Document::of::<TicketClaims>("ticket-claims", as_read()),
        Document::of::<Topology>("topology", as_read()),
        Document::of::<LinkChange>("link-change", as_read()),
        Document::of::<AdjustRequest>("adjust-request", as_read()),
        Document::of::<StorageLoad>("storage-load", as_read()),
        Document::of::<StorageSpec>("storage-spec", as_read()),
        Document::of::<RunRecord>("run-record", as_written()),
        Document::of::<Samples>("samples", as_written()),
        Document::of::<TicketRecord>("ticket-record", as_written()),
        Document::of::<LinkSamples>("link-samples", as_written()),
        Document::of::<MoverSamples>("mover-samples", as_written()),
        Document::of::<ReceiptLine>("receipt-line", as_written()),
        Document::of::<CopyProgress>("copy-progress", as_written()),
        Document::of::<TransferEstimate>("transfer-estimate", as_written()),
        Document::of::<CopyStages>("copy-stages", as_written()),
        Document::of::<StorageLoadReport>("storage-load-report", as_written()),
        Document::of::<StorageCounters>("storage-counters", as_written()),
        Document::of::<HostFacts>("host-facts", as_written()),
        Document::of::<Failure>("failure", as_written()),
        Document::of::<VersionInfo>("version-info", as_written()),
    ]
}

/// Schemas of all types by name: inputs as they may be written, the rest as farline writes them.
pub struct Definitions {
    by_name: Map<String, Value>,
}

impl Definitions {
    /// Collects them from the types of `farline_spec`.
    pub fn new() -> Self {
        let mut inputs = as_read().into_generator();
        register::<RunSpec>(&mut inputs);
        register::<ServerConfig>(&mut inputs);
        register::<Iperf3Config>(&mut inputs);
        register::<TicketClaims>(&mut inputs);
        register::<Topology>(&mut inputs);
        register::<LinkChange>(&mut inputs);
        register::<AdjustRequest>(&mut inputs);
        register::<StorageLoad>(&mut inputs);
        register::<StorageSpec>(&mut inputs);
        let mut records = as_written().into_generator();
        register::<RunRecord>(&mut records);
        register::<Samples>(&mut records);
        register::<TicketRecord>(&mut records);
        register::<LinkSamples>(&mut records);
        register::<MoverSamples>(&mut records);
        register::<ReceiptLine>(&mut records);
        register::<CopyProgress>(&mut records);
        register::<TransferEstimate>(&mut records);
        register::<CopyStages>(&mut records);
        register::<StorageLoadReport>(&mut records);
        register::<StorageCounters>(&mut records);
        register::<FailureKind>(&mut records);
        let mut by_name = inputs.take_definitions(true);
        for (name, schema) in records.take_definitions(true) {
            by_name.entry(name).or_insert(schema);
        }
        Self { by_name }
    }

    /// The schema of a type.
    ///
    /// # Panics
    /// When `farline_spec` has no such type: the generator is wrong.
    pub fn get(&self, name: &str) -> &Value {
        self.by_name.get(name).unwrap_or_else(|| panic!("no type {name}"))
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.by_name.iter()
    }

    /// `schema` itself, or the type that it refers to, an optional reference included.
    pub fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match reference(schema) {
            Some(name) => self.get(name),
            None => schema,
        }
    }
}

fn register<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

/// Name of the type that `schema` refers to, as itself or as something that may be null.
pub fn reference(schema: &Value) -> Option<&str> {
    let direct = schema.get("$ref").and_then(Value::as_str);
    let optional = || schema.get("anyOf")?.get(0)?.get("$ref")?.as_str();
    direct.or_else(optional)?.strip_prefix("#/$defs/")
}

/// Words of an enumeration with what each means; empty if `schema` is none.
pub fn words(schema: &Value) -> Vec<(&str, &str)> {
    let variants = schema.get("oneOf").and_then(Value::as_array);
    variants
        .into_iter()
        .flatten()
        .filter_map(|variant| Some((variant.get("const")?.as_str()?, description(variant))))
        .collect()
}

/// Fields of a structure, in their order; empty if `schema` is none.
pub fn fields(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten()
}

/// Whether a document must have the field.
pub fn is_required(schema: &Value, field: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.into_iter().flatten().any(|name| name == field)
}

/// Whether `null` is allowed.
pub fn is_nullable(schema: &Value) -> bool {
    let in_list = |key: &str, test: &dyn Fn(&Value) -> bool| {
        schema
            .get(key)
            .and_then(Value::as_array)
            .is_some_and(|list| list.iter().any(test))
    };
    in_list("type", &|name| name == "null") || in_list("anyOf", &|branch| branch["type"] == "null")
}

/// JSON type of a plain value, `null` aside.
pub fn json_type(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null"),
        _ => None,
    }
}

/// Documentation of a type or field.
pub fn description(schema: &Value) -> &str {
    schema.get("description").and_then(Value::as_str).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_inside_a_record_is_the_one_people_write() {
        let definitions = Definitions::new();
        assert!(!is_required(definitions.get("RunSpec"), "transport"));
        assert!(is_required(definitions.get("RunRecord"), "spec"));
        assert!(is_required(definitions.get("Summary"), "forward"));
    }

    #[test]
    fn optional_references_are_seen_through() {
        let definitions = Definitions::new();
        let tcp = &definitions.get("RunSpec")["properties"]["tcp"];
        assert!(is_nullable(tcp));
        assert!(
            definitions
                .resolve(tcp)
                .pointer("/properties/mss_bytes")
                .is_some()
        );
    }

    #[test]
    fn enumerations_give_words_with_meanings() {
        let definitions = Definitions::new();
        let words = words(definitions.get("Transport"));
        assert_eq!(words[0].0, "tcp");
        assert!(words.iter().all(|(_, meaning)| !meaning.is_empty()));
    }
}
