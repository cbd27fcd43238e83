/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * PDN's notification queue of one port in C without a library: docs/switch/drop-notification.md, docs/dev/vectors-registers.md. */
#ifndef FANIN_PDN_H
#define FANIN_PDN_H

enum { PDN_DROP = 0, PDN_ARRIVES = 1, PDN_ATTACH = 2, PDN_ALONE = 3 };
enum { PDN_NOTHING = 0, PDN_DATA = 1, PDN_ACKNOWLEDGMENT = 2 };
enum { PDN_QUEUED = 1, PDN_NO_ROOM = 2, PDN_EXPIRED = 3, PDN_UNAWARE = 4 };
enum { PDN_RETRANSMIT_AND_HALVE = 1, PDN_RETRANSMIT = 2, PDN_ACKNOWLEDGE = 3 };
enum { PDN_MOST = 128 }; /* notifications of a queue, whatever its room; a power of two */
enum { PDN_V4 = 20, PDN_V6 = 44 };

struct pdn {
  __u32 room;      /* memory of the queue [B] */
  __u16 max_frame; /* largest frame, its notification included [B] */
  __u16 empty;     /* frame that carries nothing but a notification [B] */
  __u8 each;       /* a notification [B]: 20, or 44 with IPv6 */
  __u8 type;       /* 1, or 2 with IPv6 */
  __u8 acks;       /* 1: drops of acknowledgments without data are notified */
  __u8 halve;      /* 1: the operation for data is 1; 0: it is 2 */
  __u8 first_ttl;  /* hops of a notification that is raised here */
  __u8 aware;      /* 0: the next hop of the port runs no PDN */
};

/* A notification; addresses and ports, in network order, pass through. */
struct pdn_notice {
  __u8 addresses[32]; /* from, to: 4 B each with IPv4 */
  __be16 ports[2];
  __u32 number;
  __u16 length;
  __u8 type, operation, ttl, pad[3];
};

/* What a queue knows, its notifications apart; all zero at the start. */
struct pdn_port {
  __u32 head, waiting, peak, pad;
};

/* Operation that a drop asks for; 0: nobody is notified. */
static inline __attribute__((always_inline)) __u32 pdn_operation(const struct pdn *set, __u32 congestion, __u32 part) {
  if (!congestion || part == PDN_NOTHING) return 0;
  if (part == PDN_ACKNOWLEDGMENT) return set->acks ? PDN_ACKNOWLEDGE : 0;
  return set->halve ? PDN_RETRANSMIT_AND_HALVE : PDN_RETRANSMIT;
}

/* Takes in what is due: its fate, and with PDN_QUEUED the place that it gets. */
static inline __attribute__((always_inline)) __u32 pdn_take(struct pdn_port *port, const struct pdn *set, __u32 *place) {
  if (!set->aware) return PDN_UNAWARE;
  if (((__u64)port->waiting + 1) * set->each > set->room || port->waiting >= PDN_MOST) return PDN_NO_ROOM;
  *place = (port->head + port->waiting) & (PDN_MOST - 1);
  port->waiting++;
  if (port->waiting > port->peak) port->peak = port->waiting;
  return PDN_QUEUED;
}

/* Lets the first one go: its place. */
static inline __attribute__((always_inline)) __u32 pdn_leaves(struct pdn_port *port) {
  __u32 place = port->head & (PDN_MOST - 1);
  port->head = place + 1;
  port->waiting--;
  return place;
}

/* 1: the first one goes at the end of a frame of `frame` bytes. */
static inline __attribute__((always_inline)) __u32 pdn_attaches(const struct pdn_port *port, const struct pdn *set, __u32 frame) {
  return port->waiting > 0 && frame + set->each <= set->max_frame;
}

/* 1: the wire is free and the first one goes in an empty frame. `data`: a packet may be sent, which takes it along. */
static inline __attribute__((always_inline)) __u32 pdn_goes_alone(const struct pdn_port *port, __u32 data) {
  return port->waiting > 0 && !data;
}

/* The notification as bytes, in network order: `each` of them. */
static inline __attribute__((always_inline)) void pdn_bytes(const struct pdn_notice *n, __u8 *b) {
  __u32 addresses = n->type == 1 ? 8 : 32;
  if (addresses == 8)
    __builtin_memcpy(b, n->addresses, 8);
  else
    __builtin_memcpy(b, n->addresses, 32);
  b += addresses;
  __builtin_memcpy(b, n->ports, 4);
  b[4] = (__u8)(n->number >> 24), b[5] = (__u8)(n->number >> 16), b[6] = (__u8)(n->number >> 8), b[7] = (__u8)n->number;
  b[8] = (__u8)(n->length >> 8), b[9] = (__u8)n->length, b[10] = n->type, b[11] = n->operation;
}

#endif
