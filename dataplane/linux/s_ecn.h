/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * S-ECN and a threshold in C without a library, for BPF and for what feeds it: docs/switch/s-ecn.md, docs/dev/vectors-registers.md. */
#ifndef FANIN_S_ECN_H
#define FANIN_S_ECN_H

#define S_ECN_FRACTION 20                    /* fraction bits of bytes */
#define S_ECN_LONGEST ((1ull << 24) - 1)     /* the largest interval that the register holds [clocks] */

/* Settings of a port. */
struct s_ecn {
  __u64 rate;      /* R [2^-20 B per clock]; 0: the threshold alone */
  __u64 k;         /* threshold K [B] */
  __s64 credit;    /* the sum is never below minus this [B] */
  __u32 reset;     /* 1: a mark takes the whole sum; 0: it takes R*I */
  __u32 at_dequeue;
};

/* Registers of a port; all zero at the start. */
struct s_ecn_port {
  __u64 last;      /* clock of the arrival before */
  __s64 sum;
  __u32 seen;      /* 1: an arrival was there */
  __u32 owed;      /* marks earned that no departure has taken; at_dequeue only */
};

/* What the arithmetic gives for one packet. */
struct s_ecn_step {
  __u64 interval, sendable;
  __s64 growth, added, sum;
  __u32 by_slope, by_k, mark, owed;
};

/* An arrival's slope: two adders, a multiplier, comparators. */
static inline __attribute__((always_inline)) void s_ecn_arrival(struct s_ecn_port *port, const struct s_ecn *set, __u64 clocks,
                                                                __u32 wire, __u32 ecn, struct s_ecn_step *s) {
  __u64 interval = port->seen ? clocks - port->last : S_ECN_LONGEST;
  __s64 least = -(set->credit << S_ECN_FRACTION);
  if (interval > S_ECN_LONGEST) interval = S_ECN_LONGEST;
  port->last = clocks;
  port->seen = 1;
  s->interval = interval;
  s->sendable = set->rate * interval;
  s->growth = (__s64)((__u64)wire << S_ECN_FRACTION) - (__s64)s->sendable;
  s->added = port->sum + s->growth;
  if (s->added < least) s->added = least;
  s->by_slope = s->growth > 0 && s->added > (__s64)s->sendable;
  if (!s->by_slope)
    port->sum = s->added;
  else if (ecn == 0) /* not ECN-capable: the mark waits */
    port->sum = (__s64)s->sendable;
  else if (set->reset)
    port->sum = 0;
  else
    port->sum = s->added - (__s64)s->sendable < (__s64)s->sendable ? s->added - (__s64)s->sendable : (__s64)s->sendable;
  s->sum = port->sum;
}

/* One packet: it arrives, or it leaves (with at_dequeue). `queue`: bytes that wait, without it. */
static inline __attribute__((always_inline)) void s_ecn_packet(struct s_ecn_port *port, const struct s_ecn *set, __u32 departure,
                                                               __u64 clocks, __u32 wire, __u32 ecn, __u64 queue, struct s_ecn_step *s) {
  if (!departure && set->rate) s_ecn_arrival(port, set, clocks, wire, ecn, s);
  s->by_k = departure == set->at_dequeue && queue >= set->k;
  if (!set->at_dequeue) {
    s->mark = ecn != 0 && (s->by_slope || s->by_k);
  } else if (!departure) {
    port->owed += s->by_slope && ecn != 0;
  } else if (ecn != 0 && (port->owed > 0 || s->by_k)) {
    s->mark = 1;
    if (port->owed > 0) port->owed--;
  }
  s->owed = port->owed;
}

#endif
