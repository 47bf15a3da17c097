//! What iperf3's server would have printed, for `--get-server-output`.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use super::lanes::Standing;

/// Most rows that are kept: an hour of one stream, a minute of sixty.
const MOST_ROWS: usize = 4000;
const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// The text of one test.
#[derive(Debug, Default)]
pub struct Output {
    text: String,
    rows: usize,
    since: Duration,
    before: Vec<Standing>,
    is_udp: bool,
}

impl Output {
    /// Begins with who is connected to whom.
    pub fn new(
        is_udp: bool,
        peer: SocketAddr,
        streams: impl Iterator<Item = (i64, Option<(SocketAddr, SocketAddr)>)>,
    ) -> Self {
        let mut text = format!("Accepted connection from {}, port {}\n", peer.ip(), peer.port());
        for (id, ends) in streams {
            if let Some((local, remote)) = ends {
                let (to, from) = (remote.ip().to_canonical(), local.ip().to_canonical());
                // Writing to a string cannot fail, here and below.
                let _ = writeln!(
                    text,
                    "[{id:>3}] local {from} port {} connected to {to} port {}",
                    local.port(),
                    remote.port()
                );
            }
        }
        let mut output = Self {
            text,
            is_udp,
            ..Self::default()
        };
        output.head();
        output
    }

    fn head(&mut self) {
        let rest = if self.is_udp {
            "         Jitter    Lost/Total Datagrams"
        } else {
            "         Retr"
        };
        let _ = writeln!(self.text, "[ ID] Interval           Transfer     Bitrate{rest}");
    }

    /// Begins to count anew: what was written so far was the omitted time's.
    pub fn omitted(&mut self) {
        (self.since, self.before) = (Duration::ZERO, Vec::new());
    }

    /// One interval of all streams, up to `now`.
    pub fn interval(&mut self, now: Duration, standings: Vec<Standing>) {
        if self.rows + standings.len() <= MOST_ROWS {
            self.rows += standings.len();
            for (index, standing) in standings.iter().enumerate() {
                let before = self.before.get(index).copied();
                self.row(self.since, now, &difference(standing, before), "");
            }
        }
        (self.since, self.before) = (now, standings);
    }

    /// The whole test, and all that was written.
    pub fn finish(mut self, elapsed: Duration, standings: &[Standing]) -> String {
        self.text.push_str(RULE);
        self.head();
        for standing in standings {
            let role = if standing.is_sender { "sender" } else { "receiver" };
            self.row(Duration::ZERO, elapsed, standing, role);
        }
        self.text
    }

    fn row(&mut self, from: Duration, to: Duration, standing: &Standing, role: &str) {
        let (from_s, to_s) = (from.as_secs_f64(), to.as_secs_f64());
        let count = &standing.count;
        let rate_bps = count.bytes as f64 * 8.0 / (to_s - from_s).max(1e-9);
        let (bytes, rate) = (
            scaled(count.bytes as f64, 1024.0, "Bytes"),
            scaled(rate_bps, 1000.0, "bits/sec"),
        );
        let _ = write!(
            self.text,
            "[{:>3}] {from_s:>6.2}-{to_s:<6.2} sec  {bytes}  {rate}",
            standing.id
        );
        if self.is_udp {
            let lost = count.errors as f64 * 100.0 / (count.packets.max(1) as f64);
            let _ = write!(
                self.text,
                "  {:.3} ms  {}/{} ({lost:.2}%)",
                count.jitter_us / 1e3,
                count.errors,
                count.packets
            );
        } else if let Some(retransmits) = standing.retransmits {
            let _ = write!(self.text, "  {retransmits:>4}");
        }
        let gap = if role.is_empty() { "" } else { "             " };
        let _ = writeln!(self.text, "{gap}{role}");
    }
}

fn difference(now: &Standing, before: Option<Standing>) -> Standing {
    let Some(before) = before else { return *now };
    let mut count = now.count;
    count.bytes -= before.count.bytes;
    count.packets = count.packets.saturating_sub(before.count.packets);
    count.errors = count.errors.saturating_sub(before.count.errors);
    let retransmits = now
        .retransmits
        .map(|count| count.saturating_sub(before.retransmits.unwrap_or(0)));
    Standing {
        count,
        retransmits,
        ..*now
    }
}

/// Three digits and a unit, as iperf3 writes them.
fn scaled(value: f64, base: f64, unit: &str) -> String {
    let mut value = value;
    let mut prefix = "";
    for next in ["K", "M", "G", "T"] {
        if value < base {
            break;
        }
        (value, prefix) = (value / base, next);
    }
    let digits = usize::from(value < 9.995) + usize::from(value < 99.95);
    format!("{value:>4.digits$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Count;

    fn standing(bytes: u64) -> Standing {
        let count = Count {
            bytes,
            packets: 100,
            errors: 5,
            jitter_us: 12.0,
            ..Count::default()
        };
        Standing {
            id: 5,
            is_sender: false,
            count,
            retransmits: None,
        }
    }

    #[test]
    fn rows_are_of_intervals_and_the_last_of_all() {
        let ends = (
            "[::ffff:10.0.0.1]:5201".parse().unwrap(),
            "10.0.0.2:9".parse().unwrap(),
        );
        let mut output = Output::new(true, "10.0.0.2:8".parse().unwrap(), [(5, Some(ends))].into_iter());
        output.interval(Duration::from_secs(1), vec![standing(1 << 20)]);
        output.interval(Duration::from_secs(2), vec![standing(3 << 20)]);
        let text = output.finish(Duration::from_secs(2), &[standing(3 << 20)]);
        let rows: Vec<_> = text.lines().filter(|line| line.contains("sec  ")).collect();
        assert!(text.contains("[  5] local 10.0.0.1 port 5201 connected to 10.0.0.2 port 9\n"));
        assert!(
            rows[0].starts_with("[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec"),
            "{}",
            rows[0]
        );
        assert!(
            rows[1].contains("1.00-2.00   sec  2.00 MBytes  16.8 Mbits/sec"),
            "{}",
            rows[1]
        );
        assert!(
            rows[2].contains("0.012 ms  5/100 (5.00%)") && rows[2].ends_with("receiver"),
            "{}",
            rows[2]
        );
    }

    #[test]
    fn figures_have_three_digits() {
        let all = [0.0, 999.0, 1_000.0, 12_345.0, 1.5e14].map(|rate| scaled(rate, 1000.0, "bits/sec"));
        assert_eq!(
            all,
            [
                "0.00 bits/sec",
                " 999 bits/sec",
                "1.00 Kbits/sec",
                "12.3 Kbits/sec",
                " 150 Tbits/sec"
            ]
        );
    }
}
