/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Packet drop notification (PDN) from the kernel's drop tracepoint: a TCP packet that a device's qdisc refuses is notified towards the
 * device by which it came, at the end of the next frame that leaves there, or in a frame of its own, which the loading program sends. */
#include "kernel.h"
#include "notify.h"

#define TC_ACT_UNSPEC (-1)
#define TC_ACT_OK 0
#define IPPROTO_TCP 6
#define SHORTEST 60 /* smallest frame, without check sequence */
#define FCS 4

char gpl[] SEC("license") = "GPL";

void *bpf_cast_to_kern_ctx(void *) __ksym;

const volatile struct notify_settings settings = {};

enum skb_drop_reason {
  SKB_DROP_REASON_QDISC_DROP = 64,
  SKB_DROP_REASON_CPU_BACKLOG = 71, /* the first after those of qdiscs */
};

struct port {
  struct bpf_spin_lock lock;
  u32 pad;
  struct pdn_port queue;
  struct pdn_notice notices[PDN_MOST];
};

/* Notification queues, by the device that they leave from. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, NOTIFY_PORTS);
  __type(key, u32);
  __type(value, struct port);
} ports SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, u32);
  __type(value, struct notify_counters);
} counters SEC(".maps");

/* Devices with a notification that may have to leave alone. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 16);
} hurry SEC(".maps");

struct notify_bench bench = {};

static __always_inline struct notify_counters *counts(void) {
  u32 zero = 0;
  return bpf_map_lookup_elem(&counters, &zero);
}

/* Puts a notification into the queue of a port. */
static __always_inline u32 put(struct port *p, const struct pdn *set, const struct pdn_notice *notice) {
  u32 place = 0;
  bpf_spin_lock(&p->lock);
  u32 fate = pdn_take(&p->queue, set, &place);
  if (fate == PDN_QUEUED) p->notices[place & (PDN_MOST - 1)] = *notice;
  bpf_spin_unlock(&p->lock);
  return fate;
}

/* Takes the first one out, if it goes: at the end of a frame, or alone. Its size is its own where the settings have none. */
static __always_inline bool get(struct port *p, const struct pdn *set, u32 event, u32 frame, u32 data, struct pdn_notice *notice) {
  struct pdn own = *set;
  bpf_spin_lock(&p->lock);
  if (!own.each) own.each = p->notices[p->queue.head & (PDN_MOST - 1)].type == 1 ? PDN_V4 : PDN_V6;
  bool goes = event == PDN_ATTACH ? pdn_attaches(&p->queue, &own, frame) : pdn_goes_alone(&p->queue, data);
  if (goes) *notice = p->notices[pdn_leaves(&p->queue) & (PDN_MOST - 1)];
  bpf_spin_unlock(&p->lock);
  return goes;
}

/* What a dropped TCP packet's sender has to repeat; false: it is no TCP, or has nothing. */
static __always_inline bool read_packet(struct sk_buff *skb, struct pdn_notice *n, u32 *part) {
  const unsigned char *network = skb->head + skb->network_header;
  u8 b[20];
  u32 payload, header;
  if (skb->protocol == bpf_htons(ETH_P_IP)) {
    struct iphdr *ip = AS(iphdr, network);
    if (ip->protocol != IPPROTO_TCP) return false;
    __be32 from = ip->saddr, to = ip->daddr;
    header = BPF_CORE_READ_BITFIELD(ip, ihl) * 4;
    payload = bpf_ntohs(ip->tot_len) - header;
    __builtin_memcpy(n->addresses, &from, 4);
    __builtin_memcpy(n->addresses + 4, &to, 4);
    n->type = 1;
  } else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
    u8 ip[40];
    if (bpf_probe_read_kernel(ip, sizeof ip, network) || ip[6] != IPPROTO_TCP) return false;
    header = 40;
    payload = (u32)ip[4] << 8 | ip[5];
    __builtin_memcpy(n->addresses, ip + 8, 32);
    n->type = 2;
  } else {
    return false;
  }
  if (bpf_probe_read_kernel(b, sizeof b, network + header)) return false;
  u32 own = (b[12] >> 4) * 4, flags = b[13];
  if (flags & 4 || payload < own) return false; /* RST */
  n->length = payload - own;
  __builtin_memcpy(n->ports, b, 4);
  *part = n->length || flags & 3 ? PDN_DATA : PDN_ACKNOWLEDGMENT;
  __builtin_memcpy(&n->number, b + (*part == PDN_DATA ? 4 : 8), 4);
  n->number = bpf_ntohl(n->number);
  return true;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(on_drop, struct sk_buff *skb, void *location, enum skb_drop_reason reason) {
  if (reason < bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_QDISC_DROP) ||
      reason >= bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_CPU_BACKLOG))
    return 0;
  struct net_device *dev = skb->dev;
  struct notify_counters *count = counts();
  if (!dev || !count || (u32)dev->ifindex != settings.ifindex || dev->nd_net.net->ns.inum != settings.netns) return 0;
  count->drops++;
  struct pdn set = settings.pdn;
  struct pdn_notice notice = {.ttl = set.first_ttl};
  u32 part = PDN_NOTHING;
  if (!read_packet(skb, &notice, &part)) return 0;
  notice.operation = pdn_operation(&set, 1, part);
  if (!notice.operation) return 0;
  count->raised++;
  set.each = notice.type == 1 ? PDN_V4 : PDN_V6;
  u32 back = skb->skb_iif;
  struct port *p = bpf_map_lookup_elem(&ports, &back);
  if (!p) {
    count->no_way_back++;
    return 0;
  }
  u32 fate = put(p, &set, &notice);
  count->queued += fate == PDN_QUEUED;
  count->no_room += fate == PDN_NO_ROOM;
  if (fate == PDN_QUEUED) bpf_ringbuf_output(&hurry, &back, sizeof back, 0);
  return 0;
}

static __always_inline u32 bytes_of(const struct pdn_notice *n, u8 *b) {
  pdn_bytes(n, b);
  return n->type == 1 ? PDN_V4 : PDN_V6;
}

/* Attachment: at the egress of a device by which packets came. */
SEC("tc")
int attach(struct __sk_buff *skb) {
  u32 from = skb->ifindex, length = skb->len < SHORTEST ? SHORTEST : skb->len;
  struct port *p = bpf_map_lookup_elem(&ports, &from);
  bool v4 = skb->protocol == bpf_htons(ETH_P_IP);
  struct notify_counters *count = counts();
  struct pdn set = settings.pdn;
  struct pdn_notice notice = {};
  u8 b[PDN_V6] = {};
  if (!p || !count || !p->queue.waiting || skb->gso_size || (!v4 && skb->protocol != bpf_htons(ETH_P_IPV6))) return TC_ACT_UNSPEC;
  if (!get(p, &set, PDN_ATTACH, length + FCS, 0, &notice)) return TC_ACT_UNSPEC;
  u32 size = bytes_of(&notice, b);
  if (bpf_skb_change_tail(skb, length + size, 0)) return TC_ACT_UNSPEC;
  if (size == PDN_V4)
    bpf_skb_store_bytes(skb, length, b, PDN_V4, 0);
  else
    bpf_skb_store_bytes(skb, length, b, PDN_V6, 0);
  __be16 carrier = v4 ? bpf_htons(0xA800) : bpf_htons(0xA6DD);
  bpf_skb_store_bytes(skb, 12, &carrier, sizeof carrier, 0);
  count->attached++;
  return TC_ACT_UNSPEC;
}

/* Priority and hurry: run by the loading program for a device, whose frame it sends then. */
SEC("tc")
int alone(struct __sk_buff *skb) {
  struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
  u32 from = skb->ifindex;
  struct port *p = bpf_map_lookup_elem(&ports, &from);
  struct notify_counters *count = counts();
  struct pdn set = settings.pdn;
  struct pdn_notice notice = {};
  u8 b[PDN_V6] = {};
  if (!p || !count || !get(p, &set, PDN_ALONE, 0, kernel->dev->qdisc->q.qlen > 0, &notice)) return 0;
  u32 size = bytes_of(&notice, b);
  __be16 carrier = size == PDN_V4 ? bpf_htons(0xA800) : bpf_htons(0xA6DD);
  bpf_skb_store_bytes(skb, 12, &carrier, sizeof carrier, 0);
  if (size == PDN_V4)
    bpf_skb_store_bytes(skb, SHORTEST - PDN_V4, b, PDN_V4, 0);
  else
    bpf_skb_store_bytes(skb, SHORTEST - PDN_V6, b, PDN_V6, 0);
  count->alone++;
  return 1;
}

/* The same queue about a row of test vectors; it is that of device 0. */
SEC("tc")
int vectors(struct __sk_buff *skb) {
  u32 zero = 0;
  struct port *p = bpf_map_lookup_elem(&ports, &zero);
  if (!p) return 0;
  struct pdn set = bench.pdn;
  struct pdn_notice notice = {.number = bench.number, .length = bench.length, .type = set.type, .ttl = set.first_ttl}, sent = {};
  u32 fate = 0, sends = 0, size = 0;
  if (bench.event == PDN_DROP) {
    notice.operation = pdn_operation(&set, bench.congestion, bench.part);
    if (notice.operation) fate = put(p, &set, &notice);
  } else if (bench.event == PDN_ARRIVES) {
    notice.operation = bench.given;
    notice.ttl = bench.ttl - 1;
    fate = bench.ttl <= 1 ? PDN_EXPIRED : put(p, &set, &notice);
  } else if (bench.event == PDN_ATTACH) {
    sends = get(p, &set, PDN_ATTACH, bench.frame, 0, &sent);
    size = bench.frame + (sends ? set.each : 0);
  } else {
    sends = get(p, &set, PDN_ALONE, 0, bench.data, &sent) ? 2 : 0;
    size = sends ? set.empty : 0;
  }
  bench.fate = fate, bench.sends = sends, bench.size = size;
  bench.waiting = p->queue.waiting, bench.peak = p->queue.peak;
  bench.sent = sent;
  /* The eight bytes behind addresses and ports as they go on the wire, for the caller to compare. */
  u8 b[PDN_V6] = {};
  if (sends) {
    bytes_of(&sent, b);
    if (sent.type == 1)
      bpf_skb_store_bytes(skb, 14, b + PDN_V4 - 8, 8, 0);
    else
      bpf_skb_store_bytes(skb, 14, b + PDN_V6 - 8, 8, 0);
  }
  return 0;
}
