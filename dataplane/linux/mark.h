/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * What mark.bpf.c and the program that loads it share. */
#ifndef FANIN_MARK_H
#define FANIN_MARK_H

#include "s_ecn.h"

struct mark_settings {
  struct s_ecn s_ecn;
  __u32 clock_ns;  /* clock in which intervals are counted */
  __u32 overhead;  /* bytes on the wire that a packet's length does not have */
  __u32 limit;     /* room of the queue [B], or 0: packets that will be refused are neither counted nor marked */
  __u32 classid;   /* class of all packets where the program is a filter of a classful qdisc; 0 at clsact */
};

struct mark_counters {
  __u64 packets, capable, refused, by_slope, by_k, marked;
};

/* A row of test vectors: what stands in place of settings, clock and qdisc, and the answer. */
struct mark_bench {
  struct s_ecn s_ecn;
  __u64 clocks;
  __u32 departure, wire, queue, pad;
  struct s_ecn_step step;
};

#endif
