/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What these programs use of the kernel's types, and nothing more.
 *
 * Every struct is marked preserve_access_index: the loader looks each field up by
 * its name in the running kernel and puts the offset it finds there into the
 * program, so neither the order nor the completeness of the fields matters here.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define RELOCATED __attribute__((preserve_access_index))

/* Room that a socket keeps for its congestion control: 13 words of 64 bits. */
#define PRIVATE_BYTES 104

/* Lets users without privileges, and namespaces by default, choose a congestion control. */
#define TCP_CONG_NON_RESTRICTED 1

struct sock {
} RELOCATED;

struct inet_connection_sock {
	__u64 icsk_ca_priv[PRIVATE_BYTES / 8];
} RELOCATED;

struct tcp_sock {
	struct inet_connection_sock inet_conn; /* a struct sock is the start of both */
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 max_packets_out;
	__u32 delivered;
	__u32 srtt_us; /* smoothed round-trip time, times 8 */
	__u64 tcp_mstamp; /* the socket's clock at the latest packet, in us */
	__u8 is_cwnd_limited : 1;
} RELOCATED;

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us; /* -1 if this ACK gave none */
	__u32 in_flight;
} RELOCATED;

/* Matched with the kernel's by the members' names; what is not named here stays empty. */
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	char name[16];
	__u32 flags;
};

/* Functions of the kernel that struct_ops programs may call, since Linux 5.13. */
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
