/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * What record.bpf.c and its reader share. */
#ifndef FANIN_RECORD_H
#define FANIN_RECORD_H

enum { RECORD_ENQUEUE = 1, RECORD_DEQUEUE = 2, RECORD_DROP = 3 };
enum { RECORD_HEADER = 64, RECORD_HOOKS = 3 };

struct record_settings {
  __u32 ifindex, netns; /* the device: its number, and the inode of its network namespace */
};

/* What came, by protocol: IPv4's fields, or else the first bytes from the network header on. */
union record_what {
  struct {
    __be32 from, to;
    __be16 from_port, to_port, total;
    __u8 tos, protocol, words, own_words; /* length of IP's header and of TCP's in words of 4 bytes */
    __u8 syn, pad;
  } v4;
  __u8 header[RECORD_HEADER];
};

/* A departure ends before `what`, an arrival of IPv4 after its v4. */
struct record_event {
  __u64 ns;       /* CLOCK_MONOTONIC */
  __u64 packet;   /* address of the packet, which tells it from others while it waits */
  __u32 backlog;  /* bytes in the root qdisc, without the packet where it comes, after it has left where it leaves */
  __u32 packets;  /* packets in it likewise */
  __u32 length;
  __be16 protocol; /* EtherType */
  __u8 kind, pad;
  union record_what what;
};

#define RECORD_SHORT (__builtin_offsetof(struct record_event, what))
#define RECORD_V4 (RECORD_SHORT + sizeof(((union record_what *)0)->v4))

#endif
