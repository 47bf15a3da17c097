//! Which crate may know which.

use super::Complaint;
use super::checkout::Checkout;

const RULE: &str = "layers";

/// Crates of ours that each room may depend on: the edges of ARCHITECTURE.md.
const MAY_KNOW: [(&str, &[&str]); 14] = [
    ("features", &[]),
    ("spec", &["features"]),
    ("sys", &[]),
    ("proto", &["spec"]),
    ("transport", &["spec", "sys", "proto"]),
    ("mover", &["spec", "sys", "proto"]),
    ("session", &["spec", "sys", "transport", "mover"]),
    ("iperf3", &["spec", "sys", "proto", "transport", "session"]),
    ("emulator", &["spec", "sys"]),
    ("logs", &["spec"]),
    ("carried", &["spec", "mover", "session", "logs"]),
    ("sim", &["spec", "emulator", "proto"]),
    ("py", &["spec", "sys", "session", "iperf3", "emulator", "logs"]),
    ("xtask", &["spec"]),
];

/// Has no code: it may name any library, for its features.
const WITHOUT_CODE: &str = "features";

/// Libraries that one room alone may use.
const ONLY_IN: [(&str, &str); 3] = [("pyo3", "py"), ("libc", "sys"), ("tracing-subscriber", "logs")];

/// Edges that are not in the picture.
pub fn complaints(checkout: &Checkout) -> Vec<Complaint> {
    let manifests = checkout
        .files
        .iter()
        .filter(|file| file.name() == "Cargo.toml" && file.path != "Cargo.toml");
    manifests
        .filter(|file| !file.path.starts_with("fuzz/"))
        .flat_map(|file| of_manifest(&file.path, &file.text))
        .collect()
}

fn of_manifest(path: &str, text: &str) -> Vec<Complaint> {
    let room = path.rsplit('/').nth(1).unwrap_or("");
    let complain = |message: String| Complaint::new(path, 1, RULE, message);
    let Some((_, may_know)) = MAY_KNOW.iter().find(|(name, _)| *name == room) else {
        return vec![complain(format!(
            "room {room} is not in the picture: add it here and to ARCHITECTURE.md"
        ))];
    };
    let names = match dependencies(text) {
        Ok(names) => names,
        Err(error) => return vec![complain(error)],
    };
    let refusal = |name: &String| {
        if let Some(other) = name.strip_prefix("farline-") {
            let allowed = may_know.join(", ");
            let message = format!("{room} may not know {other}; allowed: {allowed}");
            return (!may_know.contains(&other)).then_some(message);
        }
        let owner = ONLY_IN.iter().find(|(library, _)| library == name)?.1;
        (owner != room && room != WITHOUT_CODE).then(|| format!("{name} belongs to {owner} alone"))
    };
    names.iter().filter_map(refusal).map(complain).collect()
}

/// Names of what the crate is built from, for every target; what only its tests need is free.
fn dependencies(text: &str) -> Result<Vec<String>, String> {
    let manifest: toml::Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let tables = targets
        .into_iter()
        .flat_map(toml::Table::values)
        .filter_map(toml::Value::as_table);
    let names = tables
        .chain([&manifest])
        .flat_map(|table| [table.get("dependencies"), table.get("build-dependencies")])
        .flatten()
        .filter_map(toml::Value::as_table)
        .flat_map(toml::Table::keys)
        .cloned();
    Ok(names.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        complaints(&Checkout::of(&[(path, text)]))
            .into_iter()
            .map(|complaint| complaint.message)
            .collect()
    }

    #[test]
    fn an_edge_upwards_is_named() {
        let text = "[dependencies]\nfarline-session.workspace = true\nfarline-sys.workspace = true\n";
        let found = messages("crates/transport/Cargo.toml", text);
        assert_eq!(
            found,
            ["transport may not know session; allowed: spec, sys, proto"]
        );
    }

    #[test]
    fn an_edge_for_one_target_counts_and_one_for_tests_does_not() {
        let text =
            "[target.'cfg(unix)'.dependencies]\npyo3 = \"1\"\n[dev-dependencies]\nfarline-py = \"1\"\n";
        assert_eq!(
            messages("crates/spec/Cargo.toml", text),
            ["pyo3 belongs to py alone"]
        );
    }

    #[test]
    fn what_has_no_code_may_name_any_library() {
        let text = "[dependencies]\nlibc = \"0.2\"\n";
        assert!(messages("crates/features/Cargo.toml", text).is_empty());
        assert_eq!(messages("crates/mover/Cargo.toml", text).len(), 1);
    }

    #[test]
    fn a_room_outside_the_picture_is_named() {
        assert!(messages("crates/mystery/Cargo.toml", "")[0].contains("not in the picture"));
    }
}
