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

/* A departure has the first part only. */
struct record_event {
  __u64 ns;       /* CLOCK_MONOTONIC */
  __u64 packet;   /* address of the packet, which tells it from others while it waits */
  __u32 backlog;  /* bytes in the root qdisc, without the packet where it comes, after it has left where it leaves */
  __u32 packets;  /* packets in it likewise */
  __u32 length;
  __u16 protocol; /* EtherType, network order */
  __u8 kind, pad;
  __u8 header[RECORD_HEADER]; /* from the IP header on */
};

#define RECORD_SHORT (__builtin_offsetof(struct record_event, header))

#endif
