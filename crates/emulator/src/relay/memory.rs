//! How much memory the packets on their way may need.

use farline_spec::unit::{QueueBdp, QueueBytes};
use farline_spec::{Failure, LinkChange, LinkDirection, PipeSpec, Topology};

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
            link.forward.take_over(&change.change);
        }
        if change.direction != LinkDirection::Forward {
            reverse.take_over(&change.change);
        }
        link.reverse = Some(reverse);
    }
    let wanted = wanted_bytes(&topology, layout);
    if wanted <= mapped_bytes {
        return Ok(0);
    }
    // What is mapped is no longer available, so that the share of what is left is for the difference alone.
    let quota = Memory::of(&topology, layout)?.prefault_bytes;
    Ok((wanted - mapped_bytes).min(quota))
}

/// Bytes on the way in a direction and waiting before it, at the largest of each that its schedule has.
fn pipe_bytes(topology: &Topology, pipe: usize) -> u64 {
    let spec = paths::spec(topology, pipe);
    let bdp = |delay_s: f64| delay_s * most_bps(spec) as f64 / 8.0;
    let (there_s, back_s) = (most_delay_s(spec), most_delay_s(paths::spec(topology, pipe ^ 1)));
    let round_trip = bdp(there_s + back_s).max(bdp(0.01));
    let scheduled = spec.schedule.iter().map(|step| {
        let change = &step.change;
        waiting_bytes(change.capacity_bytes, change.capacity_bdp, round_trip)
    });
    let queue = &spec.queue;
    let stated = waiting_bytes(queue.capacity_bytes, queue.capacity_bdp, round_trip);
    // A step without a capacity leaves the queue as it is.
    let waiting = scheduled.flatten().fold(stated.unwrap_or(round_trip), f64::max);
    FLOOR_BYTES + ((bdp(there_s) + waiting) * SPARE_SHARE) as u64
}

/// The fastest that a direction is, now or by its schedule.
fn most_bps(spec: &PipeSpec) -> u64 {
    let scheduled = spec.schedule.iter().filter_map(|step| step.change.rate_bps);
    let rates = scheduled.map(|rate| rate.get());
    let rates = rates.chain([spec.rate_bps.map_or(0, |rate| rate.get())]);
    rates
        .map(|rate| if rate == 0 { UNLIMITED_BPS } else { rate })
        .max()
        .unwrap_or(UNLIMITED_BPS)
}

/// The longest that a direction is, now or by its schedule.
fn most_delay_s(spec: &PipeSpec) -> f64 {
    let scheduled = spec.schedule.iter().filter_map(|step| step.change.delay_s);
    scheduled
        .map(|delay| delay.get())
        .fold(spec.delay_s.get(), f64::max)
}

/// What a queue may hold, if that is stated.
fn waiting_bytes(bytes: Option<QueueBytes>, products: Option<QueueBdp>, round_trip: f64) -> Option<f64> {
    let stated = [
        bytes.map(|bytes| bytes.get() as f64),
        products.map(|share| share.get() * round_trip),
    ];
    stated.into_iter().flatten().reduce(f64::min)
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
    fn the_largest_of_what_a_schedule_has_is_held() {
        let bytes = |schedule: &str| {
            let text = format!(
                r#"{{"name":"t","hosts":[{{"name":"a"}},{{"name":"b"}}],"links":[{{"name":"l","a":"a","b":"b",
                    "forward":{{"rate_bps":1000000,"delay_s":0.01,"schedule":[{schedule}]}}}}]}}"#
            );
            pipe_bytes(&from_json(&text).unwrap(), 0)
        };
        let faster = bytes(r#"{"at_s":1,"change":{"rate_bps":1000000000}}"#);
        assert!(faster >= FLOOR_BYTES + 3_750_000, "{faster}");
        let longer =
            bytes(r#"{"at_s":1,"change":{"rate_bps":1000000000}},{"at_s":2,"change":{"delay_s":0.1}}"#);
        assert!(longer >= FLOOR_BYTES + 37_500_000, "{longer}");
        let slower = bytes(r#"{"at_s":1,"change":{"rate_bps":1000}}"#);
        assert!(slower >= FLOOR_BYTES + 3_750, "{slower}");
    }

    #[test]
    fn what_is_mapped_does_not_shrink_what_a_change_may_add() {
        // Far more than any machine has.
        let topology: Topology = from_json(
            r#"{"name":"t","hosts":[{"name":"a"},{"name":"b"}],"links":[{"name":"l","a":"a","b":"b",
                "forward":{"rate_bps":400000000000,"delay_s":10}}]}"#,
        )
        .unwrap();
        let layout = Layout::new(&topology).unwrap();
        let change = from_json(r#"{"link":"l","change":{"rate_bps":800000000000}}"#).unwrap();
        let mapped = Memory::of(&topology, &layout).unwrap().prefault_bytes;
        // As if the memory that is mapped had left no more than this.
        let more = more_bytes(topology, &layout, &change, 2 * mapped).unwrap();
        assert!(more > 0, "{mapped}");
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
