// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * HighSpeed TCP: S. Floyd, "HighSpeed TCP for Large Congestion Windows", RFC 3649.
 *
 *   per packet acknowledged   w := w + a(w) / w
 *   per congestion event      w := w - b(w) w
 *
 * with a(w) and b(w) of its section 5; up to 38 packets a = 1 and b = 0.5, as standard
 * TCP. Beyond the end of the RFC's table, 94717 packets, both stay as they are there.
 */
#include "window.h"
#include "highspeed_table.h"

#define SEARCH_STEPS 7 /* 2^7 = HIGHSPEED_LENGTH */
#define INDEX_MASK (HIGHSPEED_LENGTH - 1)

struct response {
	__u32 increase_q16, decrease_q16;
};

struct highspeed {
	__u64 carry_q32;
};
_Static_assert(sizeof(struct highspeed) <= PRIVATE_BYTES, "must fit the socket's room");
_Static_assert(HIGHSPEED_ROWS <= HIGHSPEED_LENGTH && HIGHSPEED_LENGTH == 1 << SEARCH_STEPS,
	       "the search must reach every row");

/* Last row that is not above this window, by halving; the first one for any window below it. */
static __always_inline __u32 row_of(__u32 window)
{
	__u32 low = 0, high = HIGHSPEED_ROWS;

	for (int step = 0; step < SEARCH_STEPS; step++) {
		__u32 middle = (low + high) / 2;

		if (middle == low)
			break;
		if (highspeed_table[middle & INDEX_MASK].window <= window)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* a(w) and b(w): on the line between the rows on both sides, or the outermost row's. */
static __always_inline struct response response_at(__u32 window)
{
	__u32 low = row_of(window);
	const struct row *left = &highspeed_table[low & INDEX_MASK];
	const struct row *right = &highspeed_table[(low + 1) & INDEX_MASK];
	struct response at = { left->increase_q16, left->decrease_q16 };
	__u64 from_left, from_right, width;

	if (window <= left->window || low + 1 >= HIGHSPEED_ROWS)
		return at;
	from_left = window - left->window;
	from_right = right->window - window;
	width = right->window - left->window;
	at.increase_q16 = (left->increase_q16 * from_right + right->increase_q16 * from_left) / width;
	at.decrease_q16 = (left->decrease_q16 * from_right + right->decrease_q16 * from_left) / width;
	return at;
}

SEC("struct_ops/highspeed_init")
void BPF_PROG(highspeed_init, struct sock *sk)
{
	struct highspeed *ca = private_of(sk);

	ca->carry_q32 = 0;
}

SEC("struct_ops/highspeed_cong_avoid")
void BPF_PROG(highspeed_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct highspeed *ca = private_of(sk);
	__u64 counted = packets_to_count(tp, acked);
	__u32 window = max(tp->snd_cwnd, 1U);
	__u64 per_packet_q32 = ((__u64)response_at(window).increase_q16 << 16) / window;

	grow(tp, &ca->carry_q32, counted * per_packet_q32);
}

SEC("struct_ops/highspeed_ssthresh")
__u32 BPF_PROG(highspeed_ssthresh, struct sock *sk)
{
	__u32 window = tcp_of(sk)->snd_cwnd;
	__u64 given_up = ((__u64)window * response_at(window).decrease_q16) >> 16;

	return max(window - (__u32)given_up, (__u32)LEAST_WINDOW);
}

SEC("struct_ops/highspeed_undo_cwnd")
__u32 BPF_PROG(highspeed_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops highspeed = {
	.init = (void *)highspeed_init,
	.cong_avoid = (void *)highspeed_cong_avoid,
	.ssthresh = (void *)highspeed_ssthresh,
	.undo_cwnd = (void *)highspeed_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "highspeed",
};

char LICENSE[] SEC("license") = "GPL";
