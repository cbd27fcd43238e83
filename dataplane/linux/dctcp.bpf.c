/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * DCTCP (RFC 8257) as a congestion control of its own, for kernels without tcp_dctcp. The window is all ours (`cong_control`): growth,
 * and reduction in proportion to what arrives (RFC 6937), as the kernel does it for others. What it asks of `ssthresh` is not
 * relied on. */
#include "kernel.h"

char gpl[] SEC("license") = "GPL";

/* log2 of 1/g. */
struct dctcp_settings {
  u32 shift;
};
const volatile struct dctcp_settings settings = {.shift = 4};

#define ONE 1024u /* alpha = 1 */
#define CWND_MIN 2u
#define INFINITE 0x7FFFFFFFu
#define TCP_CONG_NON_RESTRICTED 1u
#define TCP_CONG_NEEDS_ECN 2u
#define TCP_ECN_OK 1u
#define TCP_ECN_DEMAND_CWR 4u
#define FLAG_DATA_ACKED 0x04
#define FLAG_ECE 0x40
#define ICSK_ACK_TIMER 2u

enum { OPEN = 0, DISORDER = 1, CWR = 2, RECOVERY = 3, LOSS = 4 };

enum tcp_ca_event { CA_EVENT_ECN_NO_CE = 4, CA_EVENT_ECN_IS_CE = 5 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
  unsigned char skc_state;
};

struct sock {
  struct sock_common __sk_common;
};

struct inet_sock {
  struct sock sk;
};

struct inet_connection_sock {
  struct inet_sock icsk_inet;
  u8 icsk_ca_state : 5;
  struct {
    u8 pending;
  } icsk_ack;
  u64 icsk_ca_priv[13];
};

struct tcp_sock {
  struct inet_connection_sock inet_conn;
  u32 snd_cwnd, snd_ssthresh, snd_nxt, snd_una, rcv_nxt, packets_out, sacked_out, lost_out, retrans_out, prr_out, prior_cwnd, prior_ssthresh, high_seq, delivered,
      delivered_ce;
  u8 ecn_flags;
};

struct rate_sample {
  int losses;
  u32 acked_sacked;
};

struct tcp_congestion_ops {
  u32 (*ssthresh)(struct sock *);
  void (*cwnd_event)(struct sock *, enum tcp_ca_event);
  void (*cong_control)(struct sock *, u32, int, const struct rate_sample *);
  u32 (*undo_cwnd)(struct sock *);
  char name[16];
  u32 flags;
  void (*init)(struct sock *);
};

#pragma clang attribute pop

void tcp_reno_cong_avoid(struct sock *, u32, u32) __ksym;

/* In the connection: 13 * 8 bytes. */
struct dctcp {
  u32 delivered, delivered_ce, next_seq, alpha; /* the window over which marks are counted */
  u32 prior_rcv_nxt, ce;                        /* receiver: what was acknowledged, the state of CE */
  u32 seen;                                     /* delivered, at the call before */
  u32 state, ssthresh, prr_delivered, prior, high_seq; /* the reduction that is under way, or was the last */
};

static __always_inline struct dctcp *own(struct sock *sk) { return (struct dctcp *)((struct inet_connection_sock *)sk)->icsk_ca_priv; }
static __always_inline u32 most(u32 a, u32 b) { return a > b ? a : b; }
static __always_inline u32 least(u32 a, u32 b) { return a < b ? a : b; }

SEC("struct_ops/init")
void BPF_PROG(dctcp_init, struct sock *sk) {
  struct tcp_sock *tp = (struct tcp_sock *)sk;
  struct dctcp *d = own(sk);
  *d = (struct dctcp){.alpha = ONE, .prior_rcv_nxt = tp->rcv_nxt, .delivered = tp->delivered, .delivered_ce = tp->delivered_ce,
                      .next_seq = tp->snd_nxt, .seen = tp->delivered};
}

static __always_inline u32 reduced(u32 cwnd, u32 alpha) { return most(cwnd - (cwnd * alpha >> 11), CWND_MIN); }

SEC("struct_ops/ssthresh")
u32 BPF_PROG(dctcp_ssthresh, struct sock *sk) { return reduced(((struct tcp_sock *)sk)->snd_cwnd, own(sk)->alpha); }

SEC("struct_ops/undo_cwnd")
u32 BPF_PROG(dctcp_undo, struct sock *sk) {
  struct tcp_sock *tp = (struct tcp_sock *)sk;
  struct dctcp *d = own(sk);
  d->ssthresh = most(d->ssthresh, tp->prior_ssthresh);
  return most(tp->snd_cwnd, d->prior);
}

/* Once in each window of data: alpha <- alpha (1 - g) + g F. As tcp_dctcp of the kernel, rounding included. */
static __always_inline void update_alpha(struct tcp_sock *tp, struct dctcp *d) {
  if ((s32)(d->next_seq - tp->snd_una) > 0) return;
  u32 marked = tp->delivered_ce - d->delivered_ce, alpha = d->alpha, g = settings.shift & 31;
  u32 taken = alpha >> g;
  alpha -= taken ? taken : alpha;
  if (marked) {
    u32 all = most(tp->delivered - d->delivered, 1);
    alpha = least(alpha + (marked << ((10 - g) & 31)) / all, ONE);
  }
  d->alpha = alpha;
  d->delivered = tp->delivered;
  d->delivered_ce = tp->delivered_ce;
  d->next_seq = tp->snd_nxt;
}

/* The window while it is reduced: in proportion to what is delivered (tcp_cwnd_reduction of the kernel). */
static __always_inline void reduce(struct tcp_sock *tp, struct dctcp *d, u32 acked, bool lost) {
  u32 flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
  s32 room = (s32)(d->ssthresh - flight), send;
  tp->snd_ssthresh = d->ssthresh;
  if (!acked) return;
  d->prr_delivered += acked;
  if (room < 0) {
    send = (s32)((u32)(((u64)d->ssthresh * d->prr_delivered + d->prior - 1) / most(d->prior, 1)) - tp->prr_out);
  } else {
    s32 owed = (s32)(d->prr_delivered - tp->prr_out);
    send = (owed > (s32)acked ? owed : (s32)acked) + !lost;
    if (send > room) send = room;
  }
  if (send < 1) send = tp->prr_out ? 0 : 1;
  tp->snd_cwnd = most(flight + (u32)send, 1);
}

SEC("struct_ops/cong_control")
void BPF_PROG(dctcp_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs) {
  struct tcp_sock *tp = (struct tcp_sock *)sk;
  struct dctcp *d = own(sk);
  u32 state = tp->inet_conn.icsk_ca_state, was = d->state;
  bool reducing = was == CWR || was == RECOVERY;
  /* Rather than rs->acked_sacked: a kernel may leave out a call. */
  u32 acked = tp->delivered - d->seen;

  d->seen = tp->delivered;
  d->state = state;
  update_alpha(tp, d);
  /* One acknowledgment may end a reduction and begin the next: then the state is the same, and where it ends has moved. */
  if (reducing && state != RECOVERY && state != LOSS && (state != CWR || d->high_seq != tp->high_seq)) {
    tp->snd_cwnd = d->ssthresh;
    reducing = false;
  }
  if (state == CWR && !reducing) {
    d->prior = tp->snd_cwnd;
    d->ssthresh = reduced(d->prior, d->alpha);
    d->prr_delivered = 0;
  } else if (state == RECOVERY && was != RECOVERY) {
    /* A loss halves the window (RFC 8257, 3.5), once: not what marks have reduced already. */
    if (!reducing) d->prior = tp->snd_cwnd, d->prr_delivered = 0;
    d->ssthresh = most(d->prior >> 1, CWND_MIN);
  } else if (state == LOSS && was != LOSS) {
    d->prior = tp->prior_cwnd;
    d->ssthresh = most(d->prior >> 1, CWND_MIN);
  }
  d->high_seq = tp->high_seq;
  if (state == CWR || state == RECOVERY) {
    reduce(tp, d, acked, rs->losses > 0);
    return;
  }
  if (d->ssthresh) tp->snd_ssthresh = d->ssthresh;
  if (flag & FLAG_DATA_ACKED) tcp_reno_cong_avoid(sk, ack, acked);
}

/* Receiver: CE goes back exactly; where it changes, what came before is acknowledged first. RFC 8257, 3.2. */
SEC("struct_ops/cwnd_event")
void BPF_PROG(dctcp_event, struct sock *sk, enum tcp_ca_event event) {
  struct tcp_sock *tp = (struct tcp_sock *)sk;
  struct dctcp *d = own(sk);
  if (event != CA_EVENT_ECN_IS_CE && event != CA_EVENT_ECN_NO_CE) return;
  u32 ce = event == CA_EVENT_ECN_IS_CE;
  if (d->ce != ce) {
    if (tp->inet_conn.icsk_ack.pending & ICSK_ACK_TIMER) {
      tp->ecn_flags = d->ce ? tp->ecn_flags | TCP_ECN_DEMAND_CWR : tp->ecn_flags & ~TCP_ECN_DEMAND_CWR;
      bpf_tcp_send_ack(tp, d->prior_rcv_nxt);
    }
    tp->inet_conn.icsk_ack.pending |= 4; /* ICSK_ACK_NOW */
  }
  d->prior_rcv_nxt = tp->rcv_nxt;
  d->ce = ce;
  tp->ecn_flags = ce ? tp->ecn_flags | TCP_ECN_DEMAND_CWR : tp->ecn_flags & ~TCP_ECN_DEMAND_CWR;
}

SEC(".struct_ops")
struct tcp_congestion_ops dctcp = {
    .init = (void *)dctcp_init,
    .ssthresh = (void *)dctcp_ssthresh,
    .undo_cwnd = (void *)dctcp_undo,
    .cwnd_event = (void *)dctcp_event,
    .cong_control = (void *)dctcp_control,
    .flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
    .name = "bpf_dctcp",
};
