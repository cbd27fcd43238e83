/* fanin-bpf record: reads the ring buffer of record.bpf.c and writes a queue table while it runs: a row for each packet that came to the
 * device, in that order, when it is known how long it waited. */
#define _GNU_SOURCE
#include <asm/types.h>

#include "fanin_bpf.h"
#include "record.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

enum { PENDING = 1 << 20, CE = 3 };
enum { WAITS = 0, LEFT = 1, DROPPED = 2, DROPPED_AT_HEAD = 3, UNKNOWN = 4 };

/* A packet that came; rows are kept in a ring, and found by the address of the packet while it waits. */
struct pending {
  struct record_event event;
  uint64_t left;
  uint8_t state;
};

static struct pending *rows;
static uint64_t head, tail; /* rows head to tail - 1 are kept, at their number modulo PENDING */
static uint64_t *places;    /* hash of addresses: number of the row + 1, 0 free, UINT64_MAX given up */
static struct ring_buffer *ring;
static int lost_fd;
static FILE *out;
static const char *name;
static int64_t to_real;
static uint64_t counts[RECORD_HOOKS], said_lost, unmatched, unknown_waits, written;

static size_t slot_of(uint64_t packet) { return (size_t)(packet * 0x9E3779B97F4A7C15u >> 43); /* 2 * PENDING slots */ }

/* The slot that has the packet, or the free one where it would be. */
static size_t find(uint64_t packet) {
  size_t s = slot_of(packet);
  while (places[s] && rows[(places[s] - 1) % PENDING].event.packet != packet) s = (s + 1) % (2 * PENDING);
  return s;
}

/* Take a slot out, and close the gap of its chain. */
static void forget(size_t s) {
  for (size_t next = (s + 1) % (2 * PENDING);; next = (next + 1) % (2 * PENDING)) {
    if (!places[next]) break;
    size_t home = slot_of(rows[(places[next] - 1) % PENDING].event.packet);
    bool stays = s < next ? home > s && home <= next : home > s || home <= next;
    if (stays) continue;
    places[s] = places[next];
    s = next;
  }
  places[s] = 0;
}

/* What a row says of its packet. */
struct what {
  char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
  unsigned ecn, protocol, payload, from_port, to_port;
  bool v6, ports, syn;
};

static bool describe(const struct record_event *e, struct what *w) {
  unsigned own;
  if (e->protocol == htons(0x0800)) {
    unsigned header = e->what.v4.words * 4u, total = ntohs(e->what.v4.total);
    w->ecn = e->what.v4.tos & 3, w->protocol = e->what.v4.protocol;
    w->payload = total > header ? total - header : 0;
    w->from_port = ntohs(e->what.v4.from_port), w->to_port = ntohs(e->what.v4.to_port);
    own = e->what.v4.own_words * 4u, w->syn = e->what.v4.syn;
    inet_ntop(AF_INET, &e->what.v4.from, w->from, sizeof w->from);
    inet_ntop(AF_INET, &e->what.v4.to, w->to, sizeof w->to);
  } else if (e->protocol == htons(0x86DD)) {
    const uint8_t *ip = e->what.header, *tcp = ip + 40;
    w->v6 = true, w->ecn = ip[1] >> 4 & 3, w->protocol = ip[6], w->payload = (unsigned)(ip[4] << 8 | ip[5]);
    w->from_port = (unsigned)(tcp[0] << 8 | tcp[1]), w->to_port = (unsigned)(tcp[2] << 8 | tcp[3]);
    own = (tcp[12] >> 4) * 4u, w->syn = tcp[13] & 2;
    inet_ntop(AF_INET6, ip + 8, w->from, sizeof w->from);
    inet_ntop(AF_INET6, ip + 24, w->to, sizeof w->to);
  } else {
    return false;
  }
  w->ports = w->protocol == IPPROTO_TCP || w->protocol == IPPROTO_UDP;
  if (w->protocol == IPPROTO_UDP) own = 8;
  if (w->ports) w->payload = w->payload > own ? w->payload - own : 0;
  w->syn = w->syn && w->protocol == IPPROTO_TCP;
  return true;
}

static void write_row(const struct pending *row) {
  const struct record_event *e = &row->event;
  struct what w = {0};
  fprintf(out, "%" PRIu64 ",%s,%u,%u,", (uint64_t)((int64_t)e->ns + to_real), name, e->backlog, e->packets);
  if (!describe(e, &w)) fprintf(out, "type %04x", ntohs(e->protocol));
  else if (!w.ports) fprintf(out, "%s > %s %u", w.from, w.to, w.protocol);
  else fprintf(out, w.v6 ? "[%s]:%u > [%s]:%u %s" : "%s:%u > %s:%u %s", w.from, w.from_port, w.to, w.to_port, w.protocol == IPPROTO_TCP ? "tcp" : "udp");
  fprintf(out, ",%u,%u,%d,%d,%d,%d,", e->length, w.payload, w.syn, w.ecn == CE, row->state == DROPPED || row->state == DROPPED_AT_HEAD,
          row->state == DROPPED_AT_HEAD);
  if (row->state == LEFT) fprintf(out, "%llu", row->left - e->ns);
  fputc('\n', out);
  written++;
}

/* Write rows from the oldest on, as far as it is known what became of them; with `all` the others too. */
static void flush_rows(bool all) {
  for (; head < tail; head++) {
    struct pending *row = &rows[head % PENDING];
    if (row->state == WAITS) {
      if (!all && tail - head < PENDING - 1) return;
      size_t s = find(row->event.packet);
      if (places[s] == head + 1) forget(s);
      row->state = UNKNOWN;
      unknown_waits++;
    }
    write_row(row);
  }
}

static int on_event(void *context, void *data, size_t size) {
  (void)context;
  const struct record_event *e = data;
  if (size < RECORD_SHORT || e->kind < RECORD_ENQUEUE || e->kind > RECORD_DROP) fail(0, "a record of %zu bytes, kind %u", size, e->kind);
  counts[e->kind - 1]++;
  size_t s = find(e->packet);
  struct pending *known = places[s] ? &rows[(places[s] - 1) % PENDING] : NULL;
  if (known && e->kind != RECORD_ENQUEUE) {
    known->left = e->ns;
    known->state = e->kind == RECORD_DEQUEUE ? LEFT : DROPPED_AT_HEAD;
    forget(s);
  } else if (e->kind == RECORD_DEQUEUE) {
    unmatched++; /* it was there before this began, or its enqueue was lost */
  } else {
    if (known) { /* the address came again: its departure was lost */
      known->state = UNKNOWN;
      unknown_waits++;
      forget(s);
      s = find(e->packet);
    }
    struct pending *row = &rows[tail % PENDING];
    memcpy(&row->event, e, size < sizeof *e ? size : sizeof *e);
    row->state = e->kind == RECORD_DROP ? DROPPED : WAITS;
    if (row->state == WAITS) places[s] = tail + 1;
    tail++;
    if (tail - head >= PENDING - 1) flush_rows(false);
  }
  return 0;
}

static uint64_t all_lost(uint64_t *by) {
  uint64_t sum = 0;
  for (uint32_t hook = 0; hook < RECORD_HOOKS; hook++) {
    sum_cpus(lost_fd, hook, &by[hook], 1);
    sum += by[hook];
  }
  return sum;
}

static void read_ring(void) {
  uint64_t by[RECORD_HOOKS];
  int error = ring_buffer__consume(ring);
  if (error < 0 && error != -EINTR) fail(error, "the ring buffer");
  flush_rows(false);
  uint64_t sum = all_lost(by);
  if (sum > said_lost) fprintf(stderr, "fanin-bpf: the ring buffer was full: %" PRIu64 " more records lost, %" PRIu64 " in all\n", sum - said_lost, sum);
  said_lost = sum;
}

int record_command(void) {
  name = argument(0);
  const char *path = argument(1);
  struct stat netns;
  if (stat("/proc/thread-self/ns/net", &netns)) fail(errno, "the network namespace");
  struct record_settings set = {.ifindex = device(name), .netns = (uint32_t)netns.st_ino};
  out = strcmp(path, "-") ? fopen(path, "w") : stdout;
  if (!out) fail(errno, "%s", path);
  rows = calloc(PENDING, sizeof *rows), places = calloc(2 * PENDING, sizeof *places);
  if (!rows || !places) fail(ENOMEM, "rows");
  struct bpf_object *object = open_object("record", &set, sizeof set);
  load_object(object);
  start_stats();
  lost_fd = map_fd(object, "lost");
  ring = ring_buffer__new(map_fd(object, "events"), on_event, NULL, NULL);
  if (!ring) fail(errno, "the ring buffer");
  struct timespec real, mono;
  clock_gettime(CLOCK_MONOTONIC, &mono);
  clock_gettime(CLOCK_REALTIME, &real);
  to_real = (real.tv_sec - mono.tv_sec) * 1000000000ll + real.tv_nsec - mono.tv_nsec;
  fprintf(out, "time_ns,port,queue_bytes,queue_packets,flow,frame_bytes,payload,syn,marked,dropped,at_head,wait_ns\n");
  struct bpf_program *p;
  struct bpf_link *links[8];
  int n = 0;
  bpf_object__for_each_program(p, object) {
    links[n] = bpf_program__attach(p);
    if (!links[n]) fail(errno, "%s", bpf_program__name(p));
    n++;
  }
  hold(-1, 2, read_ring);
  while (n > 0) bpf_link__destroy(links[--n]);
  read_ring();
  flush_rows(true);
  if (fflush(out) || ferror(out)) fail(errno, "%s", path);

  uint64_t by[RECORD_HOOKS], sum = all_lost(by);
  if (unknown_waits || unmatched)
    fprintf(stderr,
            "fanin-bpf: %" PRIu64 " packets were seen to come and not to leave, %" PRIu64 " to leave and not to come: they waited as this began or "
            "ended, their records were lost, or the kernel did not run the programs\n", unknown_waits, unmatched);
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  FILE *to = out == stdout ? stderr : stdout;
  fprintf(to, "{\"enqueued\": %" PRIu64 ", \"dequeued\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"rows\": %" PRIu64, counts[0], counts[1], counts[2], written);
  fprintf(to, ", \"lost\": %" PRIu64 ", \"lost_enqueues\": %" PRIu64 ", \"lost_dequeues\": %" PRIu64 ", \"lost_drops\": %" PRIu64, sum, by[0], by[1], by[2]);
  fprintf(to, ", \"unmatched\": %" PRIu64 ", \"unknown_waits\": %" PRIu64 ", \"reader_s\": %.4f", unmatched, unknown_waits, cpu);
  print_stats(object, to);
  fputs("}\n", to);
  return sum ? 3 : 0;
}
