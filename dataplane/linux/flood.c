/* fanin-bpf flood: frames into a device as fast as one CPU can, through its egress hooks and its qdisc; what programs cost there. */
#define _GNU_SOURCE
#include "fanin_bpf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 64, FRAME_MAX = 1514 };

static uint64_t now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int flood_command(void) {
  const char *name = argument(0);
  uint64_t packets = number("packets", 1000000, 1, UINT64_MAX), sent = 0, refused = 0;
  size_t size = (size_t)number("size", 1514, 60, FRAME_MAX);
  int fd = socket(AF_PACKET, SOCK_RAW, 0);
  struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP), .sll_ifindex = (int)device(name)};
  if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof to)) fail(errno, "a raw socket at %s", name);
  static uint8_t frame[FRAME_MAX] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 2, [22] = 64, 17, [26] = 10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40, 0x13, 0x88};
  uint16_t length = htons((uint16_t)(size - 14)), datagram = htons((uint16_t)(size - 34));
  memcpy(frame + 16, &length, 2), memcpy(frame + 38, &datagram, 2);
  struct iovec part = {frame, size};
  struct mmsghdr batch[BATCH] = {0};
  for (int i = 0; i < BATCH; i++) batch[i].msg_hdr.msg_iov = &part, batch[i].msg_hdr.msg_iovlen = 1;
  uint64_t start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
  while (sent + refused < packets && !stopped) {
    uint64_t left = packets - sent - refused;
    int n = sendmmsg(fd, batch, left < BATCH ? (unsigned)left : BATCH, 0);
    if (n > 0) sent += (uint64_t)n;
    else if (errno == ENOBUFS) refused++;
    else if (errno != EINTR) fail(errno, "%s", name);
  }
  cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu, start = now(CLOCK_MONOTONIC) - start;
  printf("{\"sent\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"cpu_ns\": %" PRIu64 "}\n", sent, refused, start, cpu);
  return 0;
}
