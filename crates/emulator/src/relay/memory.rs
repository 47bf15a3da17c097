//! How much memory the packets on their way may need.

use farline_spec::{Failure, LinkChange, LinkDirection, PipeChange, PipeSpec, Topology};

use super::paths;
use crate::layout::Layout;

/// What one direction holds whatever its delay.
const FLOOR_BYTES: u64 = 8 << 20;
/// Up to this much, every link gets what it may hold.
const SEVERAL_LINKS_BYTES: u64 = 1 << 30;
/// Rate at which a link without limit is taken to fill its delay.
const UNLIMITED_BPS: u64 = 20_000_000_000;
/// Packets lie back to back in segments, of which the last packet keeps the whole; and headers come on top.
const SPARE_SHARE: f64 = 1.15;

/// Memory of an emulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Touched beforehand.
    pub prefault_bytes: u64,
    /// At most.
    pub max_bytes: u64,
}

impl Memory {
    /// What a topology needs, as far as the machine has it: its largest link full in both directions, queues included.
    /// Links that are full at the same time need more, up to half of what is available, mapped when it is needed.
    ///
    /// # Errors
    /// "system" when the machine does not tell how much memory it has.
    pub fn of(topology: &Topology, layout: &Layout) -> Result<Self, Failure> {
        let table = std::fs::read_to_string("/proc/meminfo")
            .map_err(|error| Failure::system("/proc/meminfo", &error))?;
        let available = available_bytes(&table).unwrap_or(1 << 30);
        let max_bytes = (available / 2).max(2 * FLOOR_BYTES);
        Ok(Self {
            // The hosts' kernels need about as much for the same packets, so the rest is theirs.
            prefault_bytes: wanted_bytes(topology, layout).min(max_bytes / 2),
            max_bytes,
        })
    }
}

/// The largest link full in both directions, or all links together if that is little.
pub fn wanted_bytes(topology: &Topology, layout: &Layout) -> u64 {
    let links = (0..layout.pipes.len() / 2).map(|link| {
        let pipes = [2 * link, 2 * link + 1];
        pipes.map(|pipe| pipe_bytes(topology, pipe)).iter().sum::<u64>()
    });
    let (largest, all) = links.fold((0, 0), |(largest, all), link| (link.max(largest), all + link));
    largest.max(all.min(SEVERAL_LINKS_BYTES))
}

/// What is missing for a topology after a change, when `mapped_bytes` are there.
///
/// # Errors
/// As [`Memory::of`].
pub fn more_bytes(
    mut topology: Topology,
    layout: &Layout,
    change: &LinkChange,
    mapped_bytes: u64,
) -> Result<u64, Failure> {
    if let Some(link) = topology.links.iter_mut().find(|link| link.name == change.link) {
        let mut reverse = link.backward().clone();
        if change.direction != LinkDirection::Reverse {
            apply(&mut link.forward, &change.change);
        }
        if change.direction != LinkDirection::Forward {
            apply(&mut reverse, &change.change);
        }
        link.reverse = Some(reverse);
    }
    let wanted = wanted_bytes(&topology, layout);
    if wanted <= mapped_bytes {
        return Ok(0);
    }
    Ok(wanted
        .min(Memory::of(&topology, layout)?.prefault_bytes)
        .saturating_sub(mapped_bytes))
}

/// What of a change matters for memory.
fn apply(pipe: &mut PipeSpec, change: &PipeChange) {
    pipe.rate_bps = change.rate_bps.or(pipe.rate_bps);
    pipe.delay_s = change.delay_s.unwrap_or(pipe.delay_s);
    pipe.queue.capacity_bytes = change.capacity_bytes.or(pipe.queue.capacity_bytes);
}

/// Bytes on the way in a direction and waiting before it.
fn pipe_bytes(topology: &Topology, pipe: usize) -> u64 {
    let spec = paths::spec(topology, pipe);
    let rate = spec.rate_bps.map_or(0, |rate| rate.get());
    let rate = if rate == 0 { UNLIMITED_BPS } else { rate };
    let back = paths::spec(topology, pipe ^ 1);
    let bdp = |delay_s: f64| delay_s * rate as f64 / 8.0;
    let on_the_way = bdp(spec.delay_s.get());
    let round_trip = bdp(spec.delay_s.get() + back.delay_s.get()).max(bdp(0.01));
    let queue = &spec.queue;
    let stated = [
        queue.capacity_bytes.map(|bytes| bytes.get() as f64),
        queue.capacity_bdp.map(|share| share.get() * round_trip),
    ];
    let waiting = stated.into_iter().flatten().fold(f64::INFINITY, f64::min);
    let waiting = if waiting.is_finite() { waiting } else { round_trip };
    FLOOR_BYTES + ((on_the_way + waiting) * SPARE_SHARE) as u64
}

fn available_bytes(table: &str) -> Option<u64> {
    let line = table
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::from_json;

    #[test]
    fn a_long_path_is_held_in_full_with_its_queue() {
        let topology: Topology = from_json(
            r#"{"name":"t","hosts":[{"name":"a"},{"name":"b"}],"links":[{"name":"l","a":"a","b":"b",
                "forward":{"rate_bps":1000000000,"delay_s":0.05,"queue":{"capacity_bdp":2}}}]}"#,
        )
        .unwrap();
        // 6.25 MB under way and twice 12.5 MB waiting.
        assert!(pipe_bytes(&topology, 0) >= FLOOR_BYTES + 31_250_000);
        let memory = Memory::of(&topology, &Layout::new(&topology).unwrap()).unwrap();
        assert!(memory.prefault_bytes <= 2 * pipe_bytes(&topology, 0));
        assert!(memory.prefault_bytes <= memory.max_bytes / 2);
    }

    #[test]
    fn a_link_made_longer_needs_the_difference() {
        let topology: Topology = from_json(
            r#"{"name":"t","hosts":[{"name":"a"},{"name":"b"}],"links":[{"name":"l","a":"a","b":"b",
                "forward":{"rate_bps":1000000000}}]}"#,
        )
        .unwrap();
        let layout = Layout::new(&topology).unwrap();
        let change = from_json(r#"{"link":"l","change":{"delay_s":0.05}}"#).unwrap();
        let before = wanted_bytes(&topology, &layout);
        let more = more_bytes(topology.clone(), &layout, &change, before).unwrap();
        assert!(more >= 20_000_000, "{more}");
        assert_eq!(more_bytes(topology, &layout, &change, before + more).unwrap(), 0);
    }

    #[test]
    fn free_memory_is_what_the_kernel_calls_available() {
        assert_eq!(
            available_bytes("MemFree: 1 kB\nMemAvailable:   20 kB\n"),
            Some(20 * 1024)
        );
        assert_eq!(available_bytes("MemFree: 1 kB\n"), None);
    }
}
