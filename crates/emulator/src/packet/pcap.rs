//! Capture files in the classic format with nanoseconds (draft-ietf-opsawg-pcap, sections 4 and 5), one record for each
//! packet on the wire.

use super::form::Form;
use super::run::Run;
use super::segment::append_segment;
use super::vnet::VNET_BYTES;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const VERSION: [u16; 2] = [2, 4];
/// LINKTYPE_RAW: records begin with the IP header.
const RAW_IP: u32 = 101;
const RECORD_HEADER_BYTES: usize = 16;
const NANOSECONDS: u64 = 1_000_000_000;

/// What a capture file begins with. Records keep `snap_bytes` of each packet at most.
pub fn file_header(snap_bytes: u32) -> [u8; 24] {
    let mut header = [0; 24];
    header[..4].copy_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
    header[4..6].copy_from_slice(&VERSION[0].to_le_bytes());
    header[6..8].copy_from_slice(&VERSION[1].to_le_bytes());
    header[16..20].copy_from_slice(&snap_bytes.to_le_bytes());
    header[20..].copy_from_slice(&RAW_IP.to_le_bytes());
    header
}

/// Appends a record for every segment of `run` to `out`, with all checksums done. `at_ns` gives the time of segment
/// `first + i` for `i`, in nanoseconds since 1970.
///
/// # Panics
/// As [`append_segment`].
pub fn append_records(
    out: &mut Vec<u8>,
    packet: &[u8],
    form: &Form,
    run: Run,
    snap_bytes: u32,
    at_ns: impl Fn(u16) -> u64,
) {
    for index in 0..run.count {
        let start = out.len();
        // The record's header is written over the virtio-net header and the room before it.
        out.extend([0; RECORD_HEADER_BYTES - VNET_BYTES]);
        append_segment(out, packet, form, run.first + index, run.marked);
        let bytes = out.len() - start - RECORD_HEADER_BYTES;
        let kept = bytes.min(snap_bytes as usize);
        out.truncate(start + RECORD_HEADER_BYTES + kept);
        let at = at_ns(index);
        let words = [at / NANOSECONDS, at % NANOSECONDS, kept as u64, bytes as u64];
        for (field, word) in out[start..].chunks_exact_mut(4).zip(words) {
            field.copy_from_slice(&(word as u32).to_le_bytes());
        }
    }
}
