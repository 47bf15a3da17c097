/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two functions of the kernel that the programs call, as RFC 5681 and RFC 3522 describe them. */
#include "kernel.h"

__u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked)
{
	__u32 room = tp->snd_ssthresh - tp->snd_cwnd;
	__u32 taken = acked < room ? acked : room;

	tp->snd_cwnd += taken;
	return acked - taken;
}

__u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return 2 * ((struct tcp_sock *)sk)->snd_cwnd;
}
