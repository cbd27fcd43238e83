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
  int skb_iif;
  u16 network_header;
  unsigned char *head;
};

struct iphdr {
  u8 ihl : 4, version : 4;
  u8 tos;
  __be16 tot_len;
  u8 protocol;
  __be32 saddr, daddr;
};

struct tcphdr {
  __be16 source, dest;
  u16 doff : 4, syn : 1;
};

struct ipv6hdr {
  u8 priority : 4, version : 4;
  u8 flow_lbl[3];
};

#pragma clang attribute pop

/* Reads of kernel memory that is no structure's member: the verifier takes the type's word for it, and a bad address reads zero. */
void *bpf_rdonly_cast(const void *, u32) __ksym;
#define AS(type, address) ((struct type *)bpf_rdonly_cast((const void *)(address), bpf_core_type_id_kernel(struct type)))

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86DD

#endif
