/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * What notify.bpf.c and the program that loads it share. */
#ifndef FANIN_NOTIFY_H
#define FANIN_NOTIFY_H

#include "pdn.h"

enum { NOTIFY_PORTS = 256 };

struct notify_settings {
  __u32 ifindex, netns; /* the device whose drops are notified: its number, and the inode of its network namespace */
  struct pdn pdn;       /* `each` and `type` go by the dropped packet */
};

struct notify_counters {
  __u64 drops, raised, queued, no_room, no_way_back, attached, alone;
};

/* A row of test vectors: what stands in place of the packet, and the answer. */
struct notify_bench {
  struct pdn pdn;
  __u32 event, congestion, part, number, length, given, ttl, frame, data;
  __u32 fate, waiting, peak, sends, size;
  struct pdn_notice sent;
};

#endif
