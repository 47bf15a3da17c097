//! What a spec asks of an iperf3 server, or why it cannot be asked.

use farline_proto::iperf3::parameters::{MAX_TCP_BLOCK, MAX_UDP_BLOCK, Parameters, Protocol};
use farline_spec::{Direction, Failure, ReceiveMode, RunSpec, SendMode, Transport, UdpReceiveMode};

/// Most streams each way that iperf3 knows.
const MAX_STREAMS: u16 = 128;
/// Shortest datagram: its header.
const MIN_UDP_BLOCK: u32 = 16;

/// Parameters for `spec`, which is resolved. Datagrams are as long as `segment_bytes`, what fits one packet of the path, where
/// the spec leaves that open.
///
/// # Errors
/// [`FailureKind::Spec`](farline_spec::FailureKind::Spec) that names the option an iperf3 server does not have.
pub fn parameters(spec: &RunSpec, segment_bytes: u32) -> Result<Parameters, Failure> {
    check(spec)?;
    let is_udp = spec.transport == Transport::Udp;
    let own = if is_udp {
        udp(spec, segment_bytes)?
    } else {
        tcp(spec)?
    };
    let seconds =
        spec.duration_s.map_or(0.0, |duration| duration.get()) + spec.omit_s.map_or(0.0, |omit| omit.get());
    Ok(Parameters {
        // This end has the clock; what the server is told only bounds it.
        time_s: if spec.duration_s.is_some() {
            seconds.ceil() as u32
        } else {
            0
        },
        bytes: spec.total_bytes.map_or(0, |total| total.get()),
        streams: spec.streams.get(),
        reverse: spec.direction == Direction::Reverse,
        bidirectional: spec.direction == Direction::Bidirectional,
        rate_bps: spec.rate_bps.map_or(0, |rate| rate.get()),
        tos: spec.tos.map_or(0, |tos| tos.get()),
        title: spec.title.clone(),
        server_cpu: spec.server_cpus.first().map(|cpu| cpu.get()),
        client_version: format!("farline {}", env!("CARGO_PKG_VERSION")),
        ..own
    })
}

fn check(spec: &RunSpec) -> Result<(), Failure> {
    let is_served = matches!(spec.transport, Transport::Tcp | Transport::Udp);
    let has_destination = spec.pairs.iter().any(|pair| pair.destination.is_some());
    let rules = [
        (!is_served, "transport", "iperf3's servers have tcp and udp"),
        (spec.copy.is_some(), "copy", "iperf3's servers do not copy files"),
        (
            spec.streams.get() > MAX_STREAMS,
            "streams",
            "iperf3's servers take at most 128 streams each way",
        ),
        (
            has_destination,
            "pairs.destination",
            "iperf3's servers have the address of their control connection alone",
        ),
        (
            spec.server_cpus.len() > 1,
            "server_cpus",
            "iperf3's servers take one CPU",
        ),
    ];
    rules
        .into_iter()
        .find(|(broken, ..)| *broken)
        .map_or(Ok(()), |(_, name, why)| Err(Failure::option(name, why)))
}

fn tcp(spec: &RunSpec) -> Result<Parameters, Failure> {
    let tcp = spec.tcp.clone().unwrap_or_default();
    let block_bytes = spec.block_bytes.map_or(0, |block| block.get());
    let block_bytes = u32::try_from(block_bytes).unwrap_or(u32::MAX);
    if block_bytes > MAX_TCP_BLOCK {
        return Err(Failure::option(
            "block_bytes",
            "iperf3's servers take blocks of at most 1 MiB",
        ));
    }
    let server_receives = spec.direction != Direction::Reverse;
    let server_sends = spec.direction != Direction::Forward;
    if server_receives && tcp.receive_mode == ReceiveMode::Copy {
        return Err(Failure::option(
            "tcp.receive_mode",
            "iperf3's servers read or discard",
        ));
    }
    if server_sends && tcp.user_timeout_ms.is_some() {
        return Err(Failure::option(
            "tcp.user_timeout_ms",
            "iperf3's servers send with the kernel's own",
        ));
    }
    Ok(Parameters {
        protocol: Protocol::Tcp,
        block_bytes,
        mss_bytes: tcp.mss_bytes.map_or(0, |mss| mss.get().into()),
        no_delay: tcp.no_delay,
        mptcp: tcp.mptcp,
        window_bytes: window(
            spec,
            "tcp",
            tcp.send_buffer_bytes.map(|bytes| bytes.get()),
            tcp.receive_buffer_bytes.map(|bytes| bytes.get()),
        )?,
        congestion: tcp.congestion_control,
        pacing_rate_bps: tcp.pacing_rate_bps.map_or(0, |rate| rate.get()),
        zerocopy: server_sends && tcp.send_mode != SendMode::Copy,
        skip_receive_copy: server_receives && tcp.receive_mode == ReceiveMode::Discard,
        ..Parameters::default()
    })
}

fn udp(spec: &RunSpec, segment_bytes: u32) -> Result<Parameters, Failure> {
    let udp = spec.udp.clone().unwrap_or_default();
    if udp.receive_mode != UdpReceiveMode::Read {
        return Err(Failure::option(
            "udp.receive_mode",
            "iperf3's servers read datagrams and nothing more",
        ));
    }
    let wanted = udp.packet_bytes.map(|bytes| u32::from(bytes.get()));
    Ok(Parameters {
        protocol: Protocol::Udp,
        block_bytes: wanted
            .unwrap_or(segment_bytes)
            .clamp(MIN_UDP_BLOCK, MAX_UDP_BLOCK),
        window_bytes: window(
            spec,
            "udp",
            udp.send_buffer_bytes.map(|bytes| bytes.get()),
            udp.receive_buffer_bytes.map(|bytes| bytes.get()),
        )?,
        dont_fragment: udp.dont_fragment,
        counters_64bit: true,
        ..Parameters::default()
    })
}

/// The one size that iperf3 has for both socket buffers of its server: of the buffer that the server needs.
fn window(spec: &RunSpec, section: &str, send: Option<u64>, receive: Option<u64>) -> Result<u32, Failure> {
    let wanted = match spec.direction {
        Direction::Forward => receive,
        Direction::Reverse => send,
        Direction::Bidirectional if send.is_some() && receive.is_some() && send != receive => {
            let why = "iperf3's servers have one size for both buffers; give both alike";
            return Err(Failure::option(&format!("{section}.send_buffer_bytes"), why));
        }
        Direction::Bidirectional => send.or(receive),
    };
    Ok(u32::try_from(wanted.unwrap_or(0)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::{FailureKind, from_json};

    fn of(text: &str) -> Result<Parameters, Failure> {
        parameters(&from_json::<RunSpec>(text).unwrap().resolved().unwrap(), 1448)
    }

    #[test]
    fn a_spec_becomes_what_iperf3_calls_it() {
        let wanted = of(
            r#"{"duration_s":2.5,"omit_s":1,"streams":3,"direction":"reverse","rate_bps":5000000,"tos":32,"server_cpus":[1],
                "tcp":{"congestion_control":"reno","send_buffer_bytes":100000,"send_mode":"sendfile","mss_bytes":1000}}"#,
        )
        .unwrap();
        assert_eq!(
            (wanted.time_s, wanted.streams, wanted.reverse, wanted.server_cpu),
            (4, 3, true, Some(1))
        );
        assert_eq!(
            (wanted.window_bytes, wanted.mss_bytes, wanted.zerocopy),
            (100_000, 1000, true)
        );
        assert_eq!(
            (wanted.congestion.as_deref(), wanted.block_bytes),
            (Some("reno"), 131_072)
        );
        let wanted = of(r#"{"transport":"udp","total_bytes":1000}"#).unwrap();
        assert_eq!(
            (wanted.block_bytes, wanted.rate_bps, wanted.bytes),
            (1448, 1_000_000, 1000)
        );
        assert!(wanted.counters_64bit && wanted.is_counted());
    }

    #[test]
    fn what_an_iperf3_server_does_not_have_is_refused_by_name() {
        for (text, name) in [
            (r#"{"transport":"udt"}"#, "transport"),
            (r#"{"streams":129}"#, "streams"),
            (r#"{"block_bytes":2097152}"#, "block_bytes"),
            (r#"{"pairs":[{"destination":"10.0.0.1"}]}"#, "pairs.destination"),
            (r#"{"server_cpus":[0,1]}"#, "server_cpus"),
            (r#"{"tcp":{"receive_mode":"copy"}}"#, "tcp.receive_mode"),
            (
                r#"{"direction":"reverse","tcp":{"user_timeout_ms":5000}}"#,
                "tcp.user_timeout_ms",
            ),
            (
                r#"{"direction":"bidirectional","tcp":{"send_buffer_bytes":100000,"receive_buffer_bytes":200000}}"#,
                "tcp.send_buffer_bytes",
            ),
        ] {
            let refusal = of(text).unwrap_err();
            assert_eq!(refusal.kind, FailureKind::Spec);
            assert!(refusal.message.starts_with(name), "{text}: {refusal}");
        }
    }
}
