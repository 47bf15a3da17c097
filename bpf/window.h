/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the congestion controls here have in common: when a window may grow, and
 * growth by fractions of a packet.
 *
 * Fractions are fixed-point numbers with 32 bits after the point (names end in
 * _q32). A window of a million packets that grows by one packet per round trip
 * gets 2^32 / 10^6, about 4295 units, per acknowledged packet: exact to 1 in 4295.
 */
#pragma once

#include "kernel.h"

#define ONE_Q32 (1ULL << 32)
#define LEAST_WINDOW 2

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))

static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline void *private_of(struct sock *sk)
{
	return (void *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline bool in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/*
 * Whether the window is what holds the sender back (RFC 7661 says why only such a
 * window may grow). The kernel's own test is inline code that no program can call;
 * this is the same rule over the same fields: limited in the last window of data,
 * or, in slow start, using more than half of it.
 */
static __always_inline bool window_is_used(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/*
 * Of the packets that an ACK covers, those that count for congestion avoidance: none
 * if the window is not used, and in slow start what is left once the kernel has taken
 * the window to its threshold. One ACK can cover a whole super-packet, so every rule
 * here is per packet acknowledged, not per ACK.
 */
static __always_inline __u32 packets_to_count(struct tcp_sock *tp, __u32 acked)
{
	if (!window_is_used(tp))
		return 0;
	return in_slow_start(tp) ? tcp_slow_start(tp, acked) : acked;
}

/*
 * Lets the window grow by `packets_q32`; what is less than a packet waits in `carry_q32`.
 * The kernel's own tcp_cong_avoid_ai() keeps its remainder as a count of ACKs, which is
 * worth something else as soon as the increase changes; a fraction of a packet is not.
 */
static __always_inline void grow(struct tcp_sock *tp, __u64 *carry_q32, __u64 packets_q32)
{
	__u64 sum_q32 = *carry_q32 + packets_q32;
	__u64 window = tp->snd_cwnd + (sum_q32 >> 32);

	*carry_q32 = sum_q32 & (ONE_Q32 - 1);
	tp->snd_cwnd = min(window, (__u64)tp->snd_cwnd_clamp);
}
