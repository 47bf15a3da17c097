//! What iperf3's server would have printed, for `--get-server-output`.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use farline_proto::iperf3::parameters::Parameters;

use super::lanes::Standing;
use crate::stream::Count;

/// Most rows that are kept: an hour of one stream, a minute of sixty.
const MOST_ROWS: usize = 4000;
const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";
/// A rest of an interval that is shorter has no row.
const SHORTEST: Duration = Duration::from_millis(100);

/// The text of one test.
#[derive(Debug, Default)]
pub struct Output {
    text: String,
    rows: usize,
    since: Duration,
    before: Vec<Standing>,
    is_udp: bool,
    is_omitting: bool,
    is_headed: bool,
}

impl Output {
    /// Begins with who is connected to whom.
    pub fn new(
        wanted: &Parameters,
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
        Self {
            text,
            is_udp: wanted.is_udp(),
            is_omitting: wanted.omit_s > 0,
            ..Self::default()
        }
    }

    /// Begins to count anew: what was written so far was the omitted time's, which ended after `elapsed`.
    pub fn omitted(&mut self, elapsed: Duration, standings: Vec<Standing>) {
        if elapsed.saturating_sub(self.since) >= SHORTEST {
            self.interval(elapsed, standings);
        }
        (self.since, self.before, self.is_omitting) = (Duration::ZERO, Vec::new(), false);
    }

    /// One interval of all streams, up to `now`.
    pub fn interval(&mut self, now: Duration, standings: Vec<Standing>) {
        let rows: Vec<_> = standings
            .iter()
            .enumerate()
            .map(|(index, standing)| difference(standing, self.before.get(index).copied()))
            .collect();
        if self.rows + rows.len() <= MOST_ROWS {
            self.rows += rows.len();
            if self.is_headed && rows.len() > 1 {
                self.text.push_str(RULE);
            } else if !self.is_headed {
                self.is_headed = true;
                self.head(&standings, false);
            }
            self.table(&Span(self.since, now), &rows, false);
        }
        (self.since, self.before) = (now, standings);
    }

    /// The rest of the last interval, the whole test, and all that was written.
    pub fn finish(mut self, elapsed: Duration, standings: &[Standing]) -> String {
        if elapsed.saturating_sub(self.since) >= SHORTEST {
            self.interval(elapsed, standings.to_vec());
        }
        self.text.push_str(RULE);
        self.head(standings, true);
        self.table(&Span(Duration::ZERO, elapsed), standings, true);
        self.text
    }

    /// The line above rows of these streams: what all of them have.
    fn head(&mut self, streams: &[Standing], is_final: bool) {
        let (sends, receives) = ways(streams);
        let rest = match (self.is_udp, is_final) {
            (true, false) if !receives => "         Total Datagrams",
            (true, _) => "         Jitter    Lost/Total Datagrams",
            (false, false) if sends => "         Retr  Cwnd",
            (false, true) if sends => "         Retr",
            (false, _) => "",
        };
        let role = if sends && receives { "[Role]" } else { "" };
        let _ = writeln!(
            self.text,
            "[ ID]{role} Interval           Transfer     Bitrate{rest}"
        );
    }

    /// Rows of the streams of each direction, and of their sum where there are several.
    fn table(&mut self, span: &Span, rows: &[Standing], is_final: bool) {
        let (sends, receives) = ways(rows);
        for is_sender in [false, true] {
            let of_way: Vec<_> = rows.iter().filter(|row| row.is_sender == is_sender).collect();
            for row in &of_way {
                self.row(
                    span,
                    &format!("[{:>3}]", row.id),
                    row,
                    is_final,
                    sends && receives,
                );
            }
            if let [first, _, ..] = of_way[..] {
                let mut sum = of_way[1..].iter().fold(*first, |sum, row| with(&sum, row));
                sum.count.jitter_us /= of_way.len() as f64;
                self.row(span, "[SUM]", &sum, is_final, sends && receives);
            }
        }
    }

    fn row(&mut self, span: &Span, name: &str, row: &Standing, is_final: bool, has_role: bool) {
        let role = match (has_role, row.is_sender) {
            (false, _) => "",
            (true, true) => "[TX-S]",
            (true, false) => "[RX-S]",
        };
        let note = match (is_final, self.is_omitting, row.is_sender) {
            (true, _, true) => "sender",
            (true, _, false) => "receiver",
            (false, true, _) => "(omitted)",
            (false, false, _) => "",
        };
        let (from_s, to_s) = (span.0.as_secs_f64(), span.1.as_secs_f64());
        let rate_bps = row.count.bytes as f64 * 8.0 / (to_s - from_s).max(1e-9);
        let (bytes, rate) = (
            scaled(row.count.bytes as f64, 1024.0, "Bytes"),
            scaled(rate_bps, 1000.0, "bits/sec"),
        );
        let rest = if self.is_udp {
            datagrams(row, is_final, has_role)
        } else {
            segments(row, is_final)
        };
        let _ = writeln!(
            self.text,
            "{name}{role} {from_s:>6.2}-{to_s:<6.2} sec  {bytes}  {rate}{rest}{note}"
        );
    }
}

/// From when to when a row is.
struct Span(Duration, Duration);

/// Whether this end sends on some of the streams, and whether it receives on some.
fn ways(streams: &[Standing]) -> (bool, bool) {
    let is_there = |is_sender: bool| streams.iter().any(|stream| stream.is_sender == is_sender);
    (is_there(true), is_there(false))
}

/// What a row of datagrams has behind the rate.
fn datagrams(row: &Standing, is_final: bool, has_role: bool) -> String {
    let count = &row.count;
    if row.is_sender && !is_final {
        let gap = if has_role { "           " } else { "" };
        return format!(" {gap} {}  ", count.packets);
    }
    // What was lost is known at the receiver.
    let (lost, jitter_us) = if row.is_sender {
        (0, 0.0)
    } else {
        (count.errors, count.jitter_us)
    };
    let percent = lost as f64 * 100.0 / (count.packets.max(1) as f64);
    format!(
        "  {:.3} ms  {lost}/{} ({}%)  ",
        jitter_us / 1e3,
        count.packets,
        two_digits(percent)
    )
}

/// What a row of a TCP stream has behind the rate.
fn segments(row: &Standing, is_final: bool) -> String {
    let Some(retransmits) = row.retransmits.filter(|_| row.is_sender) else {
        return " ".repeat(18);
    };
    match row.cwnd_bytes.filter(|_| !is_final) {
        Some(cwnd) => format!(
            "  {retransmits:>3}   {}       ",
            scaled(cwnd as f64, 1024.0, "Bytes")
        ),
        None => format!("  {retransmits:>3}            "),
    }
}

/// Two streams as one; their jitter is added, for a mean.
fn with(sum: &Standing, row: &Standing) -> Standing {
    Standing {
        count: Count {
            bytes: sum.count.bytes + row.count.bytes,
            packets: sum.count.packets + row.count.packets,
            errors: sum.count.errors + row.count.errors,
            out_of_order: sum.count.out_of_order + row.count.out_of_order,
            jitter_us: sum.count.jitter_us + row.count.jitter_us,
        },
        retransmits: sum.retransmits.zip(row.retransmits).map(|(sum, more)| sum + more),
        cwnd_bytes: None,
        ..*sum
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

/// A share with two digits that count, and no zeros behind them.
fn two_digits(percent: f64) -> String {
    if percent <= 0.0 {
        return "0".into();
    }
    let places = (1.0 - percent.log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{percent:.places$}");
    match text.split_once('.') {
        Some((whole, rest)) if rest.trim_end_matches('0').is_empty() => whole.into(),
        Some(_) => text.trim_end_matches('0').into(),
        None => text,
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
    use farline_proto::iperf3::parameters::Protocol;

    fn standing(id: i64, is_sender: bool, bytes: u64) -> Standing {
        let count = Count {
            bytes,
            packets: 100,
            errors: 5,
            jitter_us: 12.0,
            ..Count::default()
        };
        Standing {
            id,
            is_sender,
            count,
            retransmits: is_sender.then_some(7),
            cwnd_bytes: is_sender.then_some(2 << 20),
        }
    }

    fn output(protocol: Protocol, omit_s: u32) -> Output {
        let wanted = Parameters {
            protocol,
            omit_s,
            ..Parameters::default()
        };
        let ends = (
            "[::ffff:10.0.0.1]:5201".parse().unwrap(),
            "10.0.0.2:9".parse().unwrap(),
        );
        Output::new(
            &wanted,
            "10.0.0.2:8".parse().unwrap(),
            [(5, Some(ends))].into_iter(),
        )
    }

    const SECOND: Duration = Duration::from_secs(1);

    /// What iperf3 3.21 printed for the same streams, with other figures.
    fn rows(text: &str) -> Vec<&str> {
        text.lines()
            .skip(2)
            .filter(|line| !line.starts_with('-'))
            .collect()
    }

    #[test]
    fn rows_are_of_intervals_and_the_last_of_all() {
        let mut output = output(Protocol::Udp, 0);
        output.interval(SECOND, vec![standing(5, false, 1 << 20)]);
        output.interval(2 * SECOND, vec![standing(5, false, 3 << 20)]);
        let text = output.finish(2 * SECOND, &[standing(5, false, 3 << 20)]);
        assert!(text.contains("[  5] local 10.0.0.1 port 5201 connected to 10.0.0.2 port 9\n"));
        let head = "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams";
        assert_eq!(
            rows(&text),
            [
                head,
                "[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec  0.012 ms  5/100 (5%)  ",
                "[  5]   1.00-2.00   sec  2.00 MBytes  16.8 Mbits/sec  0.012 ms  0/0 (0%)  ",
                head,
                "[  5]   0.00-2.00   sec  3.00 MBytes  12.6 Mbits/sec  0.012 ms  5/100 (5%)  receiver",
            ]
        );
    }

    #[test]
    fn no_column_is_named_that_no_row_has() {
        let text = output(Protocol::Tcp, 0).finish(SECOND, &[standing(5, false, 1 << 20)]);
        let head = "[ ID] Interval           Transfer     Bitrate";
        assert_eq!(
            rows(&text),
            [
                head,
                "[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec                  ",
                head,
                "[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec                  receiver",
            ]
        );
        let text = output(Protocol::Udp, 0).finish(SECOND, &[standing(5, true, 1 << 20)]);
        assert_eq!(
            rows(&text)[..2],
            [
                "[ ID] Interval           Transfer     Bitrate         Total Datagrams",
                "[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec  100  ",
            ]
        );
    }

    #[test]
    fn streams_of_a_direction_have_a_sum_and_those_of_two_a_role() {
        let streams = [
            standing(5, false, 1 << 20),
            standing(8, false, 1 << 20),
            standing(11, true, 3 << 20),
            standing(13, true, 1 << 20),
        ];
        let text = output(Protocol::Tcp, 0).finish(SECOND, &streams);
        assert_eq!(
            rows(&text)[..7],
            [
                "[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd",
                "[  5][RX-S]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec                  ",
                "[  8][RX-S]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec                  ",
                "[SUM][RX-S]   0.00-1.00   sec  2.00 MBytes  16.8 Mbits/sec                  ",
                "[ 11][TX-S]   0.00-1.00   sec  3.00 MBytes  25.2 Mbits/sec    7   2.00 MBytes       ",
                "[ 13][TX-S]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec    7   2.00 MBytes       ",
                "[SUM][TX-S]   0.00-1.00   sec  4.00 MBytes  33.6 Mbits/sec   14            ",
            ]
        );
    }

    #[test]
    fn rows_of_the_omitted_time_say_so() {
        let mut output = output(Protocol::Tcp, 1);
        output.omitted(SECOND, vec![standing(5, false, 1 << 20)]);
        let text = output.finish(SECOND, &[standing(5, false, 1 << 20)]);
        let marks: Vec<_> = rows(&text).iter().map(|row| row.ends_with("(omitted)")).collect();
        assert_eq!(marks, [false, true, false, false, false]);
    }

    #[test]
    fn figures_have_three_digits_and_shares_two() {
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
        let shares = [0.0, 0.0123, 0.5, 5.0, 12.34, 100.0].map(two_digits);
        assert_eq!(shares, ["0", "0.012", "0.5", "5", "12", "100"]);
    }
}
