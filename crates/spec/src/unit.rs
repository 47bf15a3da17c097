//! Numbers with a unit and a range.
//!
//! [`crate::count!`] and [`crate::quantity!`] declare newtypes whose constructor is the only
//! way in, so a value that exists is in range. The range, the unit and the documentation are
//! written in one place and reach serde, JSON Schema, help texts and error
//! messages from there.

/// `1 name`, `2 names`: a number with its noun, whose plural ends in `s`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Bytes in the largest binary unit that says them exactly: `512 KiB`, `1000 bytes`.
pub fn size_text(bytes: u64) -> String {
    let units = [
        (1 << 60, "EiB"),
        (1 << 50, "PiB"),
        (1 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    let found = units
        .into_iter()
        .find(|(unit, _)| bytes >= *unit && bytes % unit == 0);
    match found {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None if bytes == 1 => "1 byte".to_owned(),
        None => format!("{bytes} bytes"),
    }
}

/// Bits per second in the largest unit that says them exactly with at most three digits after the point: `1.5 Gbit/s`.
pub fn rate_text(bps: u64) -> String {
    let units = [
        (1_000_000_000_000, "Tbit/s"),
        (1_000_000_000, "Gbit/s"),
        (1_000_000, "Mbit/s"),
        (1_000, "kbit/s"),
    ];
    let found = units
        .into_iter()
        .find(|(unit, _)| bps >= *unit && bps % (unit / 1000) == 0);
    match found {
        Some((unit, name)) => format!("{} {name}", bps as f64 / unit as f64),
        None => format!("{bps} bit/s"),
    }
}

/// A number was outside what its type allows.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{value} is out of range; allowed: {}", range_text(min, max, unit))]
pub struct OutOfRange {
    /// What was given.
    pub value: String,
    /// Smallest value allowed.
    pub min: String,
    /// Largest value allowed.
    pub max: String,
    /// Unit of all three.
    pub unit: &'static str,
}

/// `64 KiB to 16 MiB`, `88 to 32767 bytes`, `0 to 255`: a range in words. Units that are no plural are left out.
fn range_text(min: &str, max: &str, unit: &str) -> String {
    let text = |number: &str| match (number.parse(), unit) {
        (Ok(bytes), "bytes") => size_text(bytes),
        (Ok(bps), "bit/s") => rate_text(bps),
        _ if matches!(
            unit,
            "CPU number" | "label" | "octet" | "port" | "probability" | "share"
        ) =>
        {
            number.to_owned()
        }
        _ => format!("{number} {unit}"),
    };
    let (min, max) = (text(min), text(max));
    match (min.split_once(' '), max.split_once(' ')) {
        (Some((number, one)), Some((_, other))) if one == other => format!("{number} to {max}"),
        _ => format!("{min} to {max}"),
    }
}

/// Declares a real number with a unit and an inclusive range.
#[macro_export]
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident in $min:literal ..= $max:literal, $unit:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            /// Smallest value allowed.
            pub const MIN: Self = Self($min);
            /// Largest value allowed.
            pub const MAX: Self = Self($max);
            /// Unit of the number.
            pub const UNIT: &'static str = $unit;

            /// Wraps `value`, or says what is allowed.
            pub fn new(value: f64) -> Result<Self, $crate::unit::OutOfRange> {
                if ($min..=$max).contains(&value) {
                    return Ok(Self(value));
                }
                Err($crate::unit::OutOfRange {
                    value: value.to_string(),
                    min: Self::MIN.0.to_string(),
                    max: Self::MAX.0.to_string(),
                    unit: Self::UNIT,
                })
            }

            /// The bare number, in [`Self::UNIT`].
            pub const fn get(self) -> f64 { self.0 }
        }

        impl TryFrom<f64> for $name {
            type Error = $crate::unit::OutOfRange;
            fn try_from(value: f64) -> Result<Self, Self::Error> { Self::new(value) }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> f64 { value.0 }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool { true }
            fn schema_name() -> std::borrow::Cow<'static, str> { stringify!($name).into() }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "number",
                    "minimum": Self::MIN.0,
                    "maximum": Self::MAX.0,
                    "x-unit": Self::UNIT,
                })
            }
        }
    };
}

/// Declares an integer with a unit and an inclusive range.
#[macro_export]
macro_rules! count {
    ($(#[$doc:meta])* $name:ident: $repr:ident in $min:literal ..= $max:literal, $unit:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "i128", into = "u64")]
        pub struct $name($repr);

        impl $name {
            /// Smallest value allowed.
            pub const MIN: Self = Self($min);
            /// Largest value allowed.
            pub const MAX: Self = Self($max);
            /// Unit of the number.
            pub const UNIT: &'static str = $unit;

            /// Wraps `value`, or says what is allowed.
            pub fn new(value: $repr) -> Result<Self, $crate::unit::OutOfRange> {
                Self::try_from(i128::from(value))
            }

            /// The bare number, in [`Self::UNIT`].
            pub const fn get(self) -> $repr { self.0 }
        }

        impl TryFrom<i128> for $name {
            type Error = $crate::unit::OutOfRange;
            fn try_from(value: i128) -> Result<Self, Self::Error> {
                let range = i128::from(Self::MIN.0)..=i128::from(Self::MAX.0);
                match <$repr>::try_from(value) {
                    Ok(inner) if range.contains(&value) => Ok(Self(inner)),
                    _ => Err($crate::unit::OutOfRange {
                        value: value.to_string(),
                        min: Self::MIN.0.to_string(),
                        max: Self::MAX.0.to_string(),
                        unit: Self::UNIT,
                    }),
                }
            }
        }

        impl From<$name> for u64 {
            fn from(value: $name) -> u64 { u64::from(value.0) }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool { true }
            fn schema_name() -> std::borrow::Cow<'static, str> { stringify!($name).into() }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "integer",
                    "minimum": u64::from(Self::MIN),
                    "maximum": u64::from(Self::MAX),
                    "x-unit": Self::UNIT,
                })
            }
        }
    };
}

count! {
    /// Bytes handed to one send or receive call: TPG's block size (Yun et al. 2015, footnote 1).
    BlockBytes: u64 in 1 ..= 1_073_741_824, "bytes"
}
count! {
    /// Number of data streams in one direction.
    StreamCount: u16 in 1 ..= 256, "streams"
}
count! {
    /// Data movers that share one file.
    StripeCount: u8 in 1 ..= 64, "stripes"
}
count! {
    /// A total of payload bytes.
    TotalBytes: u64 in 1 ..= 1_152_921_504_606_846_976, "bytes"
}
count! {
    /// Size of a socket buffer as asked for; the kernel may grant another.
    BufferBytes: u64 in 1 ..= 2_147_483_647, "bytes"
}
count! {
    /// Payload bytes per second times eight; 0 is without limit.
    RateBps: u64 in 0 ..= 10_000_000_000_000, "bit/s"
}
count! {
    /// TCP maximum segment size, as TCP_MAXSEG takes it.
    MssBytes: u16 in 88 ..= 32_767, "bytes"
}
count! {
    /// Bytes of a file that a stream takes at a time; a power of two.
    ChunkBytes: u64 in 65_536 ..= 16_777_216, "bytes"
}
count! {
    /// Threads that read or write; 0: none of their own.
    ThreadCount: u16 in 0 ..= 256, "threads"
}
count! {
    /// Bytes that one read or write of a file asks for.
    RequestBytes: u64 in 512 ..= 1_073_741_824, "bytes"
}
count! {
    /// Reads or writes of files that one thread has under way.
    QueueDepth: u16 in 1 ..= 1_024, "requests"
}
count! {
    /// Bytes of a message to a file server.
    MessageBytes: u64 in 4_096 ..= 16_777_216, "bytes"
}
count! {
    /// Messages to a file server that may be on their way at once.
    CreditCount: u16 in 1 ..= 4_096, "messages"
}
count! {
    /// Files at once.
    FileCount: u32 in 1 ..= 1_000_000, "files"
}
count! {
    /// Files to delete.
    DeleteCount: u64 in 0 ..= 1_000_000_000, "files"
}
count! {
    /// UDP payload of one datagram, farline's own 32-byte header included.
    PacketBytes: u16 in 32 ..= 65_507, "bytes"
}
count! {
    /// UDP payload of one UDT datagram, UDT's 16-byte header included; the smallest holds a handshake.
    UdtPacketBytes: u16 in 64 ..= 65_507, "bytes"
}
count! {
    /// UDP payload of one RBUDP datagram, RBUDP's 16-byte header included; the smallest opens a stream.
    RbudpPacketBytes: u16 in 64 ..= 65_507, "bytes"
}
count! {
    /// UDP payload of one QUIC packet (RFC 9000, section 14: 1200 at least).
    QuicPacketBytes: u16 in 1_200 ..= 65_507, "bytes"
}
count! {
    /// Bytes under way before the other end has acknowledged any.
    InitialWindowBytes: u64 in 2_400 ..= 1_073_741_824, "bytes"
}
count! {
    /// Bytes that may be under way, or wait to be read.
    WindowBytes: u64 in 65_536 ..= 8_589_934_592, "bytes"
}
count! {
    /// Payload of one blast.
    BlastBytes: u64 in 1 ..= 8_589_934_592, "bytes"
}
count! {
    /// Blasts under way at once.
    BlastCount: u8 in 1 ..= 64, "blasts"
}
count! {
    /// Packets that may be under way at once; UDT allows no fewer than 32.
    FlowWindowPackets: u32 in 32 ..= 16_777_216, "packets"
}
count! {
    /// Datagrams handed to the kernel back to back in one call.
    BatchPackets: u16 in 1 ..= 128, "packets"
}
count! {
    /// Number of a CPU, as the kernel counts them.
    CpuIndex: u16 in 0 ..= 4_095, "CPU number"
}
count! {
    /// IPv4 type of service or IPv6 traffic class, the whole octet.
    TypeOfService: u8 in 0 ..= 255, "octet"
}
count! {
    /// IPv6 flow label (RFC 6437).
    FlowLabel: u32 in 1 ..= 1_048_575, "label"
}
count! {
    /// Time to set a connection up in.
    TimeoutMs: u32 in 10 ..= 3_600_000, "ms"
}
count! {
    /// Time that sent data may stay unacknowledged. No less than half the retransmission timeout's usual floor of 200 ms.
    UserTimeoutMs: u32 in 100 ..= 86_400_000, "ms"
}
count! {
    /// A port to listen on; 0 lets the kernel choose.
    Port: u16 in 0 ..= 65_535, "port"
}
count! {
    /// How many sessions, at once or in all.
    SessionCount: u32 in 1 ..= 1_000_000, "sessions"
}
count! {
    /// Rate on the wire, framing included; 0 is without limit.
    WireRateBps: u64 in 0 ..= 1_000_000_000_000, "bit/s"
}
count! {
    /// Capacity of a queue.
    QueueBytes: u64 in 1 ..= 68_719_476_736, "bytes"
}
count! {
    /// A number of packets.
    QueuePackets: u64 in 1 ..= 1_000_000_000, "packets"
}
count! {
    /// Largest IP packet of a link.
    MtuBytes: u16 in 576 ..= 65_535, "bytes"
}
count! {
    /// Bytes on the wire around each IP packet.
    FramingBytes: u16 in 0 ..= 1_024, "bytes"
}
count! {
    /// Bytes per second to or from a disk.
    DiskRate: u64 in 4_096 ..= 1_000_000_000_000, "bytes"
}
quantity! {
    /// A delay in a network.
    DelayS in 0.0 ..= 3_600.0, "s"
}
quantity! {
    /// A probability.
    Probability in 0.0 ..= 1.0, "probability"
}
quantity! {
    /// Share of packets that may be lost before the rate is lowered.
    LossShare in 0.0 ..= 0.5, "share"
}
quantity! {
    /// Capacity of a queue in bandwidth-delay products.
    QueueBdp in 0.001 ..= 1_000.0, "BDP"
}
quantity! {
    /// CPU time per wall time.
    CpuShare in 0.01 ..= 4_096.0, "CPUs"
}

impl Default for DelayS {
    fn default() -> Self {
        Self::MIN
    }
}

impl Probability {
    /// Never, for serde's defaults.
    pub const fn min() -> Self {
        Self::MIN
    }

    /// Always, for serde's defaults.
    pub const fn max() -> Self {
        Self::MAX
    }
}
quantity! {
    /// Length of a run.
    DurationS in 0.01 ..= 604_800.0, "s"
}
quantity! {
    /// Time to wait at the end for what is under way.
    LingerS in 0.0 ..= 3_600.0, "s"
}
quantity! {
    /// Silence after which an end says that it is there; the other takes it for gone after 30 s.
    KeepAliveS in 0.1 ..= 10.0, "s"
}
quantity! {
    /// Start of a run that is left out of the steady-state figures.
    OmitS in 0.0 ..= 3_600.0, "s"
}

quantity! {
    /// How far apart two times may be that count as one.
    ModifyWindowS in 0.0 ..= 86_400.0, "s"
}
quantity! {
    /// Time between two samples.
    IntervalS in 0.005 ..= 60.0, "s"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_is_named_in_the_refusal() {
        let refusal = StreamCount::new(0).unwrap_err().to_string();
        assert_eq!(refusal, "0 is out of range; allowed: 1 to 256 streams");
        let refusals = [
            ChunkBytes::new(1).unwrap_err(),
            MssBytes::new(1).unwrap_err(),
            RateBps::new(u64::MAX).unwrap_err(),
        ];
        let allowed = refusals.map(|refusal| refusal.to_string().split_once(": ").unwrap().1.to_owned());
        assert_eq!(
            allowed,
            ["64 KiB to 16 MiB", "88 to 32767 bytes", "0 bit/s to 10 Tbit/s"]
        );
        let octet = serde_json::from_str::<TypeOfService>("256")
            .unwrap_err()
            .to_string();
        assert!(
            octet.starts_with("256 is out of range; allowed: 0 to 255"),
            "{octet}"
        );
        assert_eq!(StreamCount::new(256).unwrap(), StreamCount::MAX);
    }

    #[test]
    fn json_outside_the_integer_type_is_out_of_range_too() {
        let refusal = serde_json::from_str::<StreamCount>("70000")
            .unwrap_err()
            .to_string();
        assert!(refusal.contains("allowed: 1 to 256 streams"), "{refusal}");
        let refusal = serde_json::from_str::<StreamCount>("-1").unwrap_err().to_string();
        assert!(refusal.contains("allowed: 1 to 256 streams"), "{refusal}");
    }

    #[test]
    fn one_of_a_thing_has_no_plural() {
        assert_eq!(
            [0, 1, 2].map(|count| counted(count, "name")),
            ["0 names", "1 name", "2 names"]
        );
    }

    #[test]
    fn sizes_and_rates_are_exact_in_the_largest_unit() {
        let sizes = [0, 1, 1000, 1024, 1536, 512 << 10, 3 << 30, u64::MAX].map(size_text);
        let expected = [
            "0 bytes",
            "1 byte",
            "1000 bytes",
            "1 KiB",
            "1536 bytes",
            "512 KiB",
            "3 GiB",
        ];
        assert_eq!(sizes[..7], expected);
        assert_eq!(sizes[7], "18446744073709551615 bytes");
        let rates = [0, 33, 1_000, 1_500_000_000, 1_234_567, 10_000_000_000_000].map(rate_text);
        let expected = [
            "0 bit/s",
            "33 bit/s",
            "1 kbit/s",
            "1.5 Gbit/s",
            "1234.567 kbit/s",
            "10 Tbit/s",
        ];
        assert_eq!(rates, expected);
    }

    #[test]
    fn not_a_number_is_no_duration() {
        assert!(DurationS::new(f64::NAN).is_err());
        assert!(DurationS::new(f64::INFINITY).is_err());
        assert!(serde_json::from_str::<DurationS>("0").is_err());
        assert_eq!(serde_json::from_str::<DurationS>("2").unwrap().get(), 2.0);
    }
}
