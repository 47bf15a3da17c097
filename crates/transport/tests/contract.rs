//! The contract that every transport keeps, run against every transport and every way of moving bytes.
//!
//! One [`Subject`](harness::Subject) per transport and way; one check per promise of the traits in `lib.rs`.
//! A check asks [`Capabilities`](farline_transport::Capabilities) whether the promise is made at all; where it
//! is not, the test passes only if the transport states why, and prints the reason.
//!
//! A new transport adds one line to the list at the end of this file.

#[path = "contract/checks.rs"]
mod checks;
#[path = "contract/files.rs"]
mod files;
#[path = "contract/harness.rs"]
mod harness;
#[path = "contract/strangers.rs"]
mod strangers;

macro_rules! contract {
    ($($(#[doc = $about:literal])+ $name:ident: $spec:literal;)+) => {$(
        $(#[doc = $about])+
        mod $name {
            use crate::{checks, harness::Subject, strangers};

            const SUBJECT: Subject = Subject { spec: $spec };

            contract!(@tests SUBJECT,
                checks: every_byte_arrives_once_then_the_end_on_ipv4_forward,
                checks: every_byte_arrives_once_then_the_end_on_ipv4_reverse,
                checks: every_byte_arrives_once_then_the_end_on_ipv6_forward,
                checks: every_byte_arrives_once_then_the_end_on_ipv6_reverse,
                checks: a_total_smaller_than_any_header_arrives,
                checks: what_arrives_is_what_was_sent_in_order,
                checks: streams_are_told_apart_whatever_the_order,
                checks: a_source_address_is_bound_to,
                checks: a_foreign_source_address_is_refused,
                checks: a_port_in_use_is_busy,
                checks: waiting_ends_in_time_and_can_go_on,
                checks: nobody_there_is_said_soon,
                checks: a_rate_is_kept,
                checks: a_very_low_rate_still_lets_the_caller_look_around,
                checks: counters_never_run_back_and_agree,
                checks: what_was_granted_is_stated,
                checks: aborting_ends_a_blocked_receive,
                checks: aborting_ends_a_blocked_send,
                checks: aborting_ends_a_wait_for_the_rate,
                checks: aborting_ends_a_finish_that_nobody_answers,
                checks: finishing_gives_up_in_time,
                strangers: a_wrong_proof_neither_opens_nor_ends_the_wait,
                strangers: the_proof_of_another_stream_opens_nothing,
                strangers: the_silent_and_the_noisy_do_not_hold_up_the_rest,
                strangers: a_crowd_of_the_silent_is_bounded,
            );
        }
    )+};
    (@tests $subject:ident, $($group:ident: $check:ident,)+) => {$(
        #[test]
        fn $check() {
            $group::$check(&$subject);
        }
    )+};
}

contract! {
    /// The kernel's TCP as it comes.
    tcp: r#"{"transport":"tcp"}"#;
    /// Sent from our pages.
    tcp_zerocopy: r#"{"transport":"tcp","tcp":{"send_mode":"zerocopy"}}"#;
    /// Sent from a memory file.
    tcp_sendfile: r#"{"transport":"tcp","tcp":{"send_mode":"sendfile"}}"#;
    /// Sent from a memory file through a pipe.
    tcp_splice: r#"{"transport":"tcp","tcp":{"send_mode":"splice"}}"#;
    /// Received into application memory.
    tcp_copy: r#"{"transport":"tcp","tcp":{"receive_mode":"copy"}}"#;
    /// Received by letting the kernel drop it.
    tcp_discard: r#"{"transport":"tcp","tcp":{"receive_mode":"discard"}}"#;
    /// Blocks that are larger than the payload kept in memory.
    tcp_large_blocks: r#"{"transport":"tcp","block_bytes":9000001,"tcp":{"receive_mode":"copy"}}"#;
    /// Multipath TCP.
    mptcp: r#"{"transport":"tcp","tcp":{"mptcp":true}}"#;
    /// Datagrams in batches.
    udp: r#"{"transport":"udp","udp":{"packet_bytes":1472}}"#;
    /// Datagrams one by one.
    udp_single: r#"{"transport":"udp","udp":{"packet_bytes":1472,"gso":false,"gro":false}}"#;
    /// Datagrams received into application memory.
    udp_copy: r#"{"transport":"udp","udp":{"packet_bytes":1472,"receive_mode":"copy"}}"#;
    /// UDT as it comes, with packets for Ethernet.
    udt: r#"{"transport":"udt","udt":{"packet_bytes":1472}}"#;
    /// UDT with what fits the path and buffers of a fixed size.
    udt_buffers: r#"{"transport":"udt","udt":{"send_buffer_bytes":1000000,"receive_buffer_bytes":1000000,"packet_bytes":8972}}"#;
    /// UDT datagram by datagram, with its own congestion control.
    udt_single: r#"{"transport":"udt","udt":{"packet_bytes":1472,"gso":false,"gro":false,"congestion_control":"native"}}"#;
    /// UDT in blocks that are larger than the payload kept in memory.
    udt_large_blocks: r#"{"transport":"udt","block_bytes":9000001}"#;
    /// RBUDP as it comes, with packets for Ethernet.
    rbudp: r#"{"transport":"rbudp","rate_bps":0,"rbudp":{"packet_bytes":1472}}"#;
    /// RBUDP in the paper's way: one blast at a time, one report after each pass, each packet looked at and moved.
    rbudp_paper: r#"{"transport":"rbudp","rate_bps":0,"rbudp":{"in_flight":1,"early":false,"receiver":"naive","shared_path":"allow"}}"#;
    /// RBUDP in many small blasts, datagram by datagram.
    rbudp_single: r#"{"transport":"rbudp","rate_bps":0,"rbudp":{"packet_bytes":1472,"payload_bytes":100000,"in_flight":3,"gso":false,"gro":false,"checksum":false,"shared_path":"allow"}}"#;
    /// QUIC as it comes, with packets for Ethernet.
    quic: r#"{"transport":"quic","quic":{"packet_bytes":1472}}"#;
    /// QUIC with what fits the path, datagram by datagram, in a small window and blocks that are larger than the payload kept.
    quic_single: r#"{"transport":"quic","block_bytes":9000001,"quic":{"gso":false,"congestion_control":"bbr","window_bytes":1000000}}"#;
    /// No network.
    null: r#"{"transport":"null"}"#;
}

/// The part of the contract that concerns files, for the transports that carry them.
macro_rules! files {
    ($($(#[doc = $about:literal])+ $name:ident: $spec:literal;)+) => {$(
        $(#[doc = $about])+
        mod $name {
            use crate::{files, harness::Subject};

            const SUBJECT: Subject = Subject { spec: $spec };

            contract!(@tests SUBJECT,
                files: files_arrive_as_they_were_given_forward,
                files: files_arrive_as_they_were_given_reverse,
                files: a_quarter_of_a_gigabyte_arrives,
                files: what_is_flushed_arrives_although_nothing_follows,
                files: a_sender_waits_for_a_receiver_that_has_no_room,
                files: nothing_to_send_is_an_end,
                files: who_has_all_need_not_hear_the_end,
                files: a_stream_is_used_for_what_it_was_opened_for,
                files: aborting_ends_a_blocked_send_of_files,
                files: aborting_ends_a_blocked_receive_of_files,
                files: a_receiver_that_is_gone_fails_the_send,
                files: a_sender_that_is_gone_ends_the_receive,
                files: a_rate_is_kept_by_files,
            );
        }
    )+};
}

files! {
    /// Over TCP as it comes.
    tcp_files: r#"{"transport":"tcp"}"#;
    /// Over Multipath TCP.
    mptcp_files: r#"{"transport":"tcp","tcp":{"mptcp":true}}"#;
    /// Over UDT, with packets for Ethernet.
    udt_files: r#"{"transport":"udt","udt":{"packet_bytes":1472}}"#;
    /// Over QUIC, with packets for Ethernet.
    quic_files: r#"{"transport":"quic","quic":{"packet_bytes":8972,"window_bytes":4000000}}"#;
    /// Over RBUDP, with packets for Ethernet.
    rbudp_files: r#"{"transport":"rbudp","rate_bps":0,"rbudp":{"packet_bytes":1472,"shared_path":"allow"}}"#;
    /// Over RBUDP in the paper's way, each packet looked at and moved.
    rbudp_paper_files: r#"{"transport":"rbudp","rate_bps":0,"rbudp":{"payload_bytes":3000000,"in_flight":1,"early":false,"receiver":"naive","shared_path":"allow"}}"#;
}

#[test]
fn the_path_without_a_network_and_datagrams_carry_no_files() {
    files::the_path_without_a_network_and_datagrams_carry_no_files();
}

#[test]
fn options_that_say_what_blocks_are_made_of_are_refused() {
    files::options_that_say_what_blocks_are_made_of_are_refused();
}
