// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * H-TCP: D. Leith, "H-TCP: TCP Congestion Control for High Bandwidth-Delay Product
 * Paths", draft-leith-tcp-htcp-06, 2008; D. Leith and R. Shorten, "H-TCP: TCP for
 * high-speed and long-distance networks", PFLDnet 2004.
 *
 * With D the time in seconds since the last congestion event and D_L = 1 s:
 *
 *   alpha(D) = 1                                            D <= D_L
 *   alpha(D) = 1 + 10 (D - D_L) + ((D - D_L) / 2)^2         D >  D_L
 *
 *   RTT scaling               alpha := alpha RTT_min / 100 ms, the factor within 0.1 and 2,
 *                             and alpha not below 1
 *   per packet acknowledged   w := w + 2 (1 - beta) alpha / w
 *   per congestion event      w := beta w
 *
 *   adaptive backoff          beta = RTT_min / RTT_max within 0.5 and 0.8, or 0.5 if the
 *                             throughput just before this congestion event differs by
 *                             more than a fifth from that just before the last one
 *
 * Built twice: with RTT scaling as "htcp", which is what Linux's own module does unless
 * told otherwise, and without it as "htcp_no_scale".
 */
#include "window.h"

#define MS_PER_S 1000ULL
#define US_PER_MS 1000ULL
#define US_PER_S 1000000ULL

/* Fixed point with 10 bits after the point. */
#define ONE_Q10 1024ULL
#define BETA_LEAST_Q10 (ONE_Q10 / 2)
#define BETA_MOST_Q10 (ONE_Q10 * 4 / 5)
#define SCALE_LEAST_Q10 (ONE_Q10 / 10)
#define SCALE_MOST_Q10 (ONE_Q10 * 2)

#define DELTA_L_MS MS_PER_S
#define DELTA_MOST_MS (3600 * MS_PER_S) /* products below stay within 64 bits */
#define REFERENCE_RTT_US (100 * US_PER_MS)
#define STEADY_SHARE 5 /* a throughput within 1/5 of the former is steady */
#define FADE_PERCENT 5

struct htcp {
	__u64 carry_q32;
	__u64 event_us; /* last congestion event, or the start */
	__u64 round_us; /* start of the round trip that is being measured */
	__u32 round_delivered;
	__u32 round_rtt_us; /* smallest in it so far; 0 if there was none */
	__u32 throughput_pps; /* smoothed over some round trips */
	__u32 rtt_min_us;
	/* What a backoff that proves mistaken gives back stands twice. */
	struct epoch {
		__u32 rtt_max_us;
		__u32 former_pps; /* throughput at the last congestion event; 0 if there was none */
		__u32 beta_q10;
	} now, before;
	__u64 event_before_us;
};
_Static_assert(sizeof(struct htcp) <= PRIVATE_BYTES, "must fit the socket's room");

static __always_inline void start_round(struct htcp *ca, const struct tcp_sock *tp)
{
	ca->round_us = tp->tcp_mstamp;
	ca->round_delivered = tp->delivered;
	ca->round_rtt_us = 0;
}

SEC("struct_ops/htcp_init")
void BPF_PROG(htcp_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct htcp *ca = private_of(sk);

	ca->carry_q32 = 0;
	ca->event_us = tp->tcp_mstamp;
	ca->event_before_us = tp->tcp_mstamp;
	ca->throughput_pps = 0;
	ca->rtt_min_us = 0;
	ca->now.rtt_max_us = 0;
	ca->now.former_pps = 0;
	ca->now.beta_q10 = BETA_LEAST_Q10;
	ca->before = ca->now;
	start_round(ca, tp);
}

/*
 * At the end of a round trip: packets delivered per second, smoothed by an eighth, for one
 * in which ACKs come bunched is no change of the path. The round-trip time of a whole round
 * is the smallest in it: a queue delays every packet, a host that is late only some.
 */
static __always_inline void end_round(struct htcp *ca, const struct tcp_sock *tp)
{
	__u64 elapsed_us = tp->tcp_mstamp - ca->round_us;
	__u32 packets = tp->delivered - ca->round_delivered;
	__u64 pps;

	if (elapsed_us == 0 || elapsed_us < tp->srtt_us >> 3)
		return;
	pps = packets * US_PER_S / elapsed_us;
	if (ca->throughput_pps)
		pps = (7ULL * ca->throughput_pps + pps) / 8;
	ca->throughput_pps = pps;
	ca->now.rtt_max_us = max(ca->now.rtt_max_us, ca->round_rtt_us);
	start_round(ca, tp);
}

/* The smaller of two times, of which 0 is none yet. */
static __always_inline __u32 smaller_us(__u32 known_us, __u32 new_us)
{
	return known_us == 0 ? new_us : min(known_us, new_us);
}

SEC("struct_ops/htcp_pkts_acked")
void BPF_PROG(htcp_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct htcp *ca = private_of(sk);
	__s32 rtt_us = sample->rtt_us;

	if (rtt_us > 0) {
		ca->rtt_min_us = smaller_us(ca->rtt_min_us, rtt_us);
		ca->round_rtt_us = smaller_us(ca->round_rtt_us, rtt_us);
	}
	end_round(ca, tp);
}

/* alpha(D). */
static __always_inline __u64 alpha_q10(__u64 since_event_us)
{
	__u64 since_ms = min(since_event_us / US_PER_MS, DELTA_MOST_MS);
	__u64 beyond_ms;

	if (since_ms <= DELTA_L_MS)
		return ONE_Q10;
	beyond_ms = since_ms - DELTA_L_MS;
	return ONE_Q10 + ONE_Q10 * 10 * beyond_ms / MS_PER_S +
	       ONE_Q10 * beyond_ms * beyond_ms / (4 * MS_PER_S * MS_PER_S);
}

/* The same growth per second at every round-trip time; the limits are those of Linux's module. */
static __always_inline __u64 scaled_q10(const struct htcp *ca, __u64 alpha_q10)
{
#ifdef HTCP_NO_SCALE
	return alpha_q10;
#else
	__u64 scale_q10 = ONE_Q10 * ca->rtt_min_us / REFERENCE_RTT_US;

	if (ca->rtt_min_us == 0)
		return alpha_q10;
	scale_q10 = max(min(scale_q10, SCALE_MOST_Q10), SCALE_LEAST_Q10);
	return max(alpha_q10 * scale_q10 / ONE_Q10, ONE_Q10);
#endif
}

SEC("struct_ops/htcp_cong_avoid")
void BPF_PROG(htcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct htcp *ca = private_of(sk);
	__u64 counted = packets_to_count(tp, acked);
	__u64 increase_q10 = scaled_q10(ca, alpha_q10(tp->tcp_mstamp - ca->event_us));
	__u64 per_packet_q32;

	increase_q10 = increase_q10 * 2 * (ONE_Q10 - ca->now.beta_q10) / ONE_Q10;
	per_packet_q32 = (increase_q10 << 22) / max(tp->snd_cwnd, 1U);
	/* Never faster than slow start: long after an event alpha can exceed the window. */
	grow(tp, &ca->carry_q32, counted * min(per_packet_q32, ONE_Q32));
}

/* Whether `now` is within a fifth of `former`. */
static __always_inline bool is_steady(__u64 now_pps, __u64 former_pps)
{
	return now_pps * STEADY_SHARE >= former_pps * (STEADY_SHARE - 1) &&
	       now_pps * STEADY_SHARE <= former_pps * (STEADY_SHARE + 1);
}

/* The share of the window to keep: so much that the queue just empties, if the path is steady. */
static __always_inline __u32 backoff_q10(const struct htcp *ca)
{
	__u64 beta_q10;

	if (!ca->now.former_pps || !ca->rtt_min_us || !ca->now.rtt_max_us)
		return BETA_LEAST_Q10;
	if (!is_steady(ca->throughput_pps, ca->now.former_pps))
		return BETA_LEAST_Q10;
	beta_q10 = ONE_Q10 * ca->rtt_min_us / ca->now.rtt_max_us;
	return max(min(beta_q10, BETA_MOST_Q10), BETA_LEAST_Q10);
}

/*
 * A congestion event. The largest round trip fades towards the smallest, so that the
 * backoff follows a path that has changed.
 */
SEC("struct_ops/htcp_ssthresh")
__u32 BPF_PROG(htcp_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct htcp *ca = private_of(sk);
	__u32 queueing_us = 0;
	__u64 kept;

	ca->before = ca->now;
	ca->event_before_us = ca->event_us;
	/* The round trip in which the loss is seen has met the queue at its fullest. */
	ca->now.rtt_max_us = max(ca->now.rtt_max_us, ca->round_rtt_us);
	ca->now.beta_q10 = backoff_q10(ca);
	ca->event_us = tp->tcp_mstamp;
	ca->now.former_pps = ca->throughput_pps;
	if (ca->now.rtt_max_us > ca->rtt_min_us)
		queueing_us = ca->now.rtt_max_us - ca->rtt_min_us;
	ca->now.rtt_max_us -= queueing_us * FADE_PERCENT / 100;
	kept = (__u64)tp->snd_cwnd * ca->now.beta_q10 / ONE_Q10;
	return max((__u32)kept, (__u32)LEAST_WINDOW);
}

SEC("struct_ops/htcp_undo_cwnd")
__u32 BPF_PROG(htcp_undo_cwnd, struct sock *sk)
{
	struct htcp *ca = private_of(sk);

	ca->now = ca->before;
	ca->event_us = ca->event_before_us;
	return tcp_reno_undo_cwnd(sk);
}

#ifdef HTCP_NO_SCALE
#define HTCP htcp_no_scale
#define HTCP_NAME "htcp_no_scale"
#else
#define HTCP htcp
#define HTCP_NAME "htcp"
#endif

SEC(".struct_ops")
struct tcp_congestion_ops HTCP = {
	.init = (void *)htcp_init,
	.pkts_acked = (void *)htcp_pkts_acked,
	.cong_avoid = (void *)htcp_cong_avoid,
	.ssthresh = (void *)htcp_ssthresh,
	.undo_cwnd = (void *)htcp_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = HTCP_NAME,
};

char LICENSE[] SEC("license") = "GPL";
