//! Processors: model, number, governor, NUMA nodes, hypervisor.

use std::io::Read;
use std::sync::OnceLock;

use super::{Cpu, line};

/// The first processor's entry in `/proc/cpuinfo` fits in this; the entries of all
/// the others would cost the kernel milliseconds on a large machine.
const FIRST_ENTRY_BYTES: u64 = 8192;

pub(super) fn facts() -> Cpu {
    static FIXED: OnceLock<(String, bool)> = OnceLock::new();
    let (model, virtualised) = FIXED.get_or_init(|| {
        let entry = first_entry();
        let hypervisor = has_hypervisor_flag(&entry) || line("/sys/hypervisor/type").is_some();
        (model_name(&entry).unwrap_or_default(), hypervisor)
    });
    Cpu {
        model: model.clone(),
        online: count("/sys/devices/system/cpu/online"),
        governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        // A kernel built without NUMA has no such file: all memory is one node.
        numa_nodes: count("/sys/devices/system/node/online").max(1),
        virtualised: *virtualised,
    }
}

fn first_entry() -> String {
    let mut text = Vec::new();
    let read = std::fs::File::open("/proc/cpuinfo")
        .and_then(|file| file.take(FIRST_ENTRY_BYTES).read_to_end(&mut text));
    // Half a file is still the first entry.
    drop(read);
    String::from_utf8_lossy(&text).into_owned()
}

fn value<'a>(entry: &'a str, key: &str) -> Option<&'a str> {
    entry.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

fn model_name(entry: &str) -> Option<String> {
    let name = value(entry, "model name").or_else(|| value(entry, "cpu"))?;
    Some(name.to_owned())
}

fn has_hypervisor_flag(entry: &str) -> bool {
    value(entry, "flags").is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

fn count(path: &str) -> u32 {
    line(path).and_then(|list| count_list(&list)).unwrap_or(0)
}

/// Number of entries in a kernel list such as `0-3,5`.
fn count_list(list: &str) -> Option<u32> {
    list.split(',').try_fold(0u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str =
        "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\n";

    #[test]
    fn the_first_entry_names_model_and_hypervisor() {
        assert_eq!(model_name(ENTRY).as_deref(), Some("Some CPU @ 2 GHz"));
        assert!(has_hypervisor_flag(ENTRY));
        assert!(!has_hypervisor_flag("flags : fpu hypervisors"));
        assert_eq!(model_name("processor : 0"), None);
    }

    #[test]
    fn kernel_lists_are_counted() {
        assert_eq!(count_list("0"), Some(1));
        assert_eq!(count_list("0-3,5,8-9"), Some(7));
        assert_eq!(count_list("3-1"), None);
        assert_eq!(count_list("nonsense"), None);
        assert_eq!(count_list("0-4294967295"), None);
    }
}
