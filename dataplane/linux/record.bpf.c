/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Records every enqueue, dequeue and drop of one device's root qdisc into a ring buffer, from the kernel's tracepoints. Records that
 * find no room are counted, by hook. */
#include "kernel.h"
#include "record.h"

char gpl[] SEC("license") = "GPL";

const volatile struct record_settings settings = {};

enum skb_drop_reason {
  SKB_DROP_REASON_QDISC_DROP = 64,
  SKB_DROP_REASON_CPU_BACKLOG = 71, /* the first after those of qdiscs */
};

enum { BULK = 64 };

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 24);
} events SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, RECORD_HOOKS);
  __type(key, u32);
  __type(value, u64);
} lost SEC(".maps");

static __always_inline bool wanted(const struct net_device *dev) {
  return dev && (u32)dev->ifindex == settings.ifindex && dev->nd_net.net->ns.inum == settings.netns;
}

static __always_inline void count_lost(u32 kind) {
  u32 hook = kind - 1;
  u64 *n = bpf_map_lookup_elem(&lost, &hook);
  if (n) ++*n;
}

static __always_inline void describe(struct record_event *e, struct sk_buff *skb, u32 kind, u32 backlog, u32 packets) {
  e->ns = bpf_ktime_get_ns();
  e->packet = (u64)skb;
  e->backlog = backlog;
  e->packets = packets;
  e->length = skb->len;
  e->protocol = skb->protocol;
  e->kind = kind;
}

static __always_inline bool came_v4(struct sk_buff *skb, u32 kind, u32 backlog, u32 packets) {
  struct record_event *e = bpf_ringbuf_reserve(&events, RECORD_V4, 0);
  if (!e) return false;
  describe(e, skb, kind, backlog, packets);
  const unsigned char *network = skb->head + skb->network_header;
  struct iphdr *ip = AS(iphdr, network);
  u32 words = BPF_CORE_READ_BITFIELD(ip, ihl);
  struct tcphdr *tcp = AS(tcphdr, network + words * 4);
  e->what.v4.from = ip->saddr;
  e->what.v4.to = ip->daddr;
  e->what.v4.total = ip->tot_len;
  e->what.v4.tos = ip->tos;
  e->what.v4.protocol = ip->protocol;
  e->what.v4.words = words;
  e->what.v4.from_port = tcp->source;
  e->what.v4.to_port = tcp->dest;
  e->what.v4.own_words = BPF_CORE_READ_BITFIELD(tcp, doff);
  e->what.v4.syn = BPF_CORE_READ_BITFIELD(tcp, syn);
  bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
  return true;
}

static __always_inline bool came_other(struct sk_buff *skb, u32 kind, u32 backlog, u32 packets) {
  struct record_event *e = bpf_ringbuf_reserve(&events, sizeof *e, 0);
  if (!e) return false;
  describe(e, skb, kind, backlog, packets);
  bpf_probe_read_kernel(e->what.header, RECORD_HEADER, skb->head + skb->network_header);
  bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
  return true;
}

/* A packet that came: `backlog` and `packets` are what it found. */
static __always_inline void came(struct sk_buff *skb, u32 kind, u32 backlog, u32 packets) {
  bool v4 = skb->protocol == bpf_htons(ETH_P_IP);
  if (!(v4 ? came_v4(skb, kind, backlog, packets) : came_other(skb, kind, backlog, packets))) count_lost(kind);
}

SEC("tp_btf/qdisc_enqueue")
int BPF_PROG(on_enqueue, struct Qdisc *q, const struct netdev_queue *txq, struct sk_buff *skb) {
  if (!wanted(txq->dev)) return 0;
  /* The kernel says so after the packet has been put in. */
  came(skb, RECORD_ENQUEUE, q->qstats.backlog - skb->len, q->q.qlen - 1);
  return 0;
}

SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(on_dequeue, struct Qdisc *q, const struct netdev_queue *txq, int packets, struct sk_buff *skb) {
  if (!skb || !wanted(txq->dev)) return 0;
  for (int i = 0; i < BULK && skb && i < packets; i++) {
    struct record_event *e = bpf_ringbuf_reserve(&events, RECORD_SHORT, 0);
    if (e) {
      e->ns = bpf_ktime_get_ns();
      e->packet = (u64)skb;
      e->backlog = q->qstats.backlog;
      e->packets = q->q.qlen;
      e->length = skb->len;
      e->kind = RECORD_DEQUEUE;
      bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
    } else {
      count_lost(RECORD_DEQUEUE);
    }
    skb = skb->next;
  }
  return 0;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(on_drop, struct sk_buff *skb, void *location, enum skb_drop_reason reason) {
  if (reason < bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_QDISC_DROP) ||
      reason >= bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_CPU_BACKLOG) || !wanted(skb->dev))
    return 0;
  struct Qdisc *q = skb->dev->qdisc;
  came(skb, RECORD_DROP, q->qstats.backlog, q->q.qlen);
  return 0;
}
