// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scalable TCP: T. Kelly, "Scalable TCP: improving performance in highspeed wide area
 * networks", ACM SIGCOMM Computer Communication Review 33(2), 2003.
 *
 *   per packet acknowledged   w := w + 0.01
 *   per congestion event      w := w - 0.125 w
 *
 * so that a window recovers in the same number of round trips whatever its size:
 * ln(1 / 0.875) / ln(1.01) = 13.4. Up to the legacy window of 16 packets it is TCP as
 * ever: w := w + 1 / w, and half the window at a congestion event.
 */
#include "window.h"

#define LEGACY_WINDOW 16
#define INCREASE_Q32 (ONE_Q32 / 100)
#define DECREASE_SHIFT 3 /* 1/8 */

struct scalable {
	__u64 carry_q32;
};
_Static_assert(sizeof(struct scalable) <= PRIVATE_BYTES, "must fit the socket's room");

SEC("struct_ops/scalable_init")
void BPF_PROG(scalable_init, struct sock *sk)
{
	struct scalable *ca = private_of(sk);

	ca->carry_q32 = 0;
}

SEC("struct_ops/scalable_cong_avoid")
void BPF_PROG(scalable_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct scalable *ca = private_of(sk);
	__u64 counted = packets_to_count(tp, acked);
	__u32 window = max(tp->snd_cwnd, 1U);

	if (window > LEGACY_WINDOW)
		grow(tp, &ca->carry_q32, counted * INCREASE_Q32);
	else
		grow(tp, &ca->carry_q32, counted * (ONE_Q32 / window));
}

SEC("struct_ops/scalable_ssthresh")
__u32 BPF_PROG(scalable_ssthresh, struct sock *sk)
{
	__u32 window = tcp_of(sk)->snd_cwnd;
	__u32 shift = window > LEGACY_WINDOW ? DECREASE_SHIFT : 1;

	return max(window - (window >> shift), (__u32)LEAST_WINDOW);
}

SEC("struct_ops/scalable_undo_cwnd")
__u32 BPF_PROG(scalable_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops scalable = {
	.init = (void *)scalable_init,
	.cong_avoid = (void *)scalable_cong_avoid,
	.ssthresh = (void *)scalable_ssthresh,
	.undo_cwnd = (void *)scalable_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "scalable",
};

char LICENSE[] SEC("license") = "GPL";
