/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * S-ECN, or a threshold, at a port of Linux: the program reads the backlog of the port's root qdisc and sets CE. It runs at clsact
 * egress, before the qdisc takes its lock, or as a filter of HTB, in its enqueue and under its lock; both see the queue without
 * the packet. The kernel lets programs read its own structures under a licence compatible with the GPL only, hence "GPL". */
#include "kernel.h"
#include "mark.h"

#define TC_ACT_UNSPEC (-1)
#define TC_ACT_OK 0

char gpl[] SEC("license") = "GPL";

void *bpf_cast_to_kern_ctx(void *) __ksym;

const volatile struct mark_settings settings = {};

struct port {
  struct bpf_spin_lock lock;
  struct s_ecn_port registers;
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, u32);
  __type(value, struct port);
} port SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, u32);
  __type(value, struct mark_counters);
} counters SEC(".maps");

struct mark_bench bench = {};

/* ECN codepoint of the IP header; 0 where there is none. */
static __always_inline u32 codepoint(struct __sk_buff *skb) {
  struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
  const unsigned char *ip = kernel->head + kernel->network_header;
  if (skb->protocol == bpf_htons(ETH_P_IP)) return AS(iphdr, ip)->tos & 3;
  if (skb->protocol == bpf_htons(ETH_P_IPV6)) return AS(ipv6hdr, ip)->flow_lbl[0] >> 4 & 3;
  return 0;
}

/* The packet of an arrival, or of a departure: registers under the lock, then CE. */
static __always_inline bool decide(struct __sk_buff *skb, const struct s_ecn *set, u32 departure, u64 clocks, u32 wire, u64 queue,
                                   bool waits, struct s_ecn_step *step) {
  u32 zero = 0;
  struct port *p = bpf_map_lookup_elem(&port, &zero);
  if (!p) return false;
  u32 ecn = codepoint(skb);
  bpf_spin_lock(&p->lock);
  /* Two CPUs may come in the other order than they read the clock. */
  if (waits && p->registers.seen && clocks < p->registers.last) clocks = p->registers.last;
  s_ecn_packet(&p->registers, set, departure, clocks, wire, ecn, queue, step);
  bpf_spin_unlock(&p->lock);
  /* The header of a packet that a capture still holds is shared, and not written to: it gets one of its own. */
  if (step->mark && !bpf_skb_ecn_set_ce(skb)) step->mark = !bpf_skb_pull_data(skb, 0) && bpf_skb_ecn_set_ce(skb);
  return ecn != 0;
}

SEC("tc")
int mark(struct __sk_buff *skb) {
  struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
  u64 queue = kernel->dev->qdisc->qstats.backlog;
  u32 zero = 0;
  struct mark_counters *count = bpf_map_lookup_elem(&counters, &zero);
  struct s_ecn set = {.rate = settings.s_ecn.rate, .k = settings.s_ecn.k, .credit = settings.s_ecn.credit, .reset = settings.s_ecn.reset};
  struct s_ecn_step step = {};
  if (!count) return TC_ACT_UNSPEC;
  if (settings.limit && queue + skb->len > settings.limit) {
    count->refused++;
  } else {
    /* A constant of the loaded program; the usual one without a division. */
    u64 clocks = settings.clock_ns == 8 ? bpf_ktime_get_ns() >> 3 : bpf_ktime_get_ns() / settings.clock_ns;
    bool capable = decide(skb, &set, 0, clocks, skb->len + settings.overhead, queue, true, &step);
    count->packets++;
    count->capable += capable;
    count->by_slope += step.by_slope;
    count->by_k += step.by_k;
    count->marked += step.mark;
  }
  if (!settings.classid) return TC_ACT_UNSPEC;
  skb->tc_classid = settings.classid;
  return TC_ACT_OK;
}

/* The same decision about a row of test vectors. */
SEC("tc")
int vectors(struct __sk_buff *skb) {
  struct s_ecn set = bench.s_ecn;
  struct s_ecn_step step = {};
  decide(skb, &set, bench.departure, bench.clocks, bench.wire, bench.queue, false, &step);
  bench.step = step;
  return TC_ACT_OK;
}
