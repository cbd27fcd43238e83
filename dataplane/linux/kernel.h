/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The parts of the kernel's types that these programs read. Offsets come from the BTF of the kernel that loads them (CO-RE), so
 * one build runs on all kernels whose fields have these names. */
#ifndef FANIN_KERNEL_H
#define FANIN_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

typedef __u64 u64;
typedef __u32 u32;
typedef __u16 u16;
typedef __u8 u8;
typedef __s64 s64;
typedef __s32 s32;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
  unsigned int inum;
};

struct net {
  struct ns_common ns;
};

typedef struct {
  struct net *net;
} possible_net_t;

struct gnet_stats_queue {
  u32 qlen, backlog, drops;
};

struct qdisc_skb_head {
  u32 qlen;
};

struct Qdisc {
  u32 handle;
  struct qdisc_skb_head q;
  struct gnet_stats_queue qstats;
};

struct net_device {
  int ifindex;
  possible_net_t nd_net;
  struct Qdisc *qdisc;
};

struct netdev_queue {
  struct net_device *dev;
};

struct sk_buff {
  struct sk_buff *next;
  struct net_device *dev;
  unsigned int len;
  __be16 protocol;
  u16 network_header;
  unsigned char *head;
};

#pragma clang attribute pop

#endif
