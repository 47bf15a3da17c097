//! What a datagram stands for.

/// Headers of IP and UDP.
const IP_UDP_BYTES: u32 = 28;

/// Real size of a full packet and the size that the link is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    packet_bytes: u32,
    declared_bytes: u32,
}

impl Scale {
    /// No scale: full packets of `ip_bytes`, headers of IP and UDP included, and the link is told so.
    pub fn none(ip_bytes: u32) -> Self {
        Self {
            packet_bytes: ip_bytes - IP_UDP_BYTES,
            declared_bytes: ip_bytes,
        }
    }

    /// Full packets have 72 bytes of UDP payload, 56 of them data, and stand for IP packets of `declared_bytes`.
    pub fn small(declared_bytes: u32) -> Self {
        Self {
            packet_bytes: 72,
            declared_bytes,
        }
    }

    /// UDT_MSS of the real packets.
    pub fn mss_bytes(self) -> u32 {
        self.packet_bytes + IP_UDP_BYTES
    }

    /// Real payload of a full packet.
    pub fn payload_bytes(self) -> u32 {
        self.packet_bytes - 16
    }

    /// Size that the link is told of a full packet, its IP header included.
    pub fn declared_bytes(self) -> u32 {
        self.declared_bytes
    }

    /// Size that the link is told of a data packet of `real_bytes`.
    pub(super) fn declare(self, real_bytes: u32) -> u32 {
        let stands_for =
            u64::from(self.declared_bytes) * u64::from(real_bytes) / u64::from(self.packet_bytes);
        u32::try_from(stands_for).map_or(self.declared_bytes, |bytes| {
            bytes.max(real_bytes.min(self.packet_bytes))
        })
    }

    /// Size that the link is told of a control packet.
    pub(super) fn control(real_bytes: u32) -> u32 {
        real_bytes + IP_UDP_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn full_packets_stand_for_what_was_declared_and_short_ones_for_their_share() {
        let scale = Scale::small(1500);
        assert_eq!((scale.mss_bytes(), scale.payload_bytes()), (100, 56));
        assert_eq!((scale.declare(72), scale.declare(36)), (1500, 750));
        assert_eq!(Scale::none(1500).declare(1472), 1500);
    }
}
