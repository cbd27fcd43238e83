/* fanin-bpf conform: a target of `fanin conform`. Rows of test vectors go through BPF_PROG_TEST_RUN, each as a packet with its codepoint,
 * IPv4 and IPv6 in turn; CE in the packet that comes back, and its checksum, are checked here, registers and decisions by Fanin. */
#define _GNU_SOURCE
#include <asm/types.h>

#include "fanin_bpf.h"
#include "mark.h"
#include "notify.h"
#include "test_run.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/pkt_cls.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { COLUMNS_MAX = 32 };

/* The next line of numbers; the first one must be `header`. */
static bool row(const char *header, unsigned columns, uint64_t *in) {
  static char line[4096];
  static bool begun;
  if (!begun) {
    if (!fgets(line, sizeof line, stdin) || strncmp(line, header, strlen(header)) || line[strlen(header)] > ' ')
      fail(0, "conform: the input has other columns than those of this program:\n%s", header);
    begun = true;
  }
  if (!fgets(line, sizeof line, stdin)) return false;
  char *at = line;
  for (unsigned i = 0; i < columns; i++, at += *at == ',') {
    char *end;
    in[i] = strtoull(at, &end, 10);
    if (end == at) fail(0, "conform: a line has fewer than %u numbers: %s", columns, line);
    at = end;
  }
  return true;
}

/* The programs' global variables, as memory that is shared with them. */
void *shared(struct bpf_object *object, size_t bytes) {
  struct bpf_map *map;
  bpf_object__for_each_map(map, object) {
    if (!strstr(bpf_map__name(map), ".bss") || bpf_map__value_size(map) < bytes) continue;
    void *values = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    if (values == MAP_FAILED) fail(errno, "mmap of %s", bpf_map__name(map));
    return values;
  }
  fail(0, "%s has no place for rows", bpf_object__name(object));
}

static uint16_t checksum(const uint8_t *b) {
  uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) sum += (uint32_t)b[i] << 8 | b[i + 1];
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return (uint16_t)~sum;
}

static void build(uint8_t *b, bool v6, unsigned ecn, uint64_t n) {
  memset(b, 0, PACKET);
  b[12] = v6 ? 0x86 : 0x08, b[13] = v6 ? 0xDD : 0;
  uint8_t *ip = b + 14;
  if (v6) {
    ip[0] = 0x60, ip[1] = (uint8_t)(ecn << 4), ip[5] = PACKET - 54, ip[6] = 59, ip[7] = 64;
    memcpy(ip + 8, &n, sizeof n);
  } else {
    ip[0] = 0x45, ip[1] = (uint8_t)ecn, ip[3] = PACKET - 14, ip[8] = 64, ip[9] = 6;
    memcpy(ip + 12, &n, sizeof n); /* other addresses each time: all sorts of checksums */
    uint16_t sum = checksum(ip);
    ip[10] = (uint8_t)(sum >> 8), ip[11] = (uint8_t)sum;
  }
}

static unsigned codepoint(const uint8_t *b) { return b[12] == 0x86 ? b[15] >> 4 & 3 : b[15] & 3; }

void fresh_registers(int port) {
  struct {
    uint64_t lock;
    struct s_ecn_port registers;
  } fresh = {0};
  uint32_t zero = 0;
  if (bpf_map_update_elem(port, &zero, &fresh, 0)) fail(errno, "registers");
}

struct s_ecn_step run_s_ecn(int fd, volatile struct mark_bench *bench, unsigned ecn, uint64_t n) {
  uint8_t before[PACKET], after[PACKET];
  build(before, n & 1, ecn, n * 0x9E3779B97F4A7C15u);
  LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = before, .data_size_in = PACKET, .data_out = after, .data_size_out = PACKET);
  int error = bpf_prog_test_run_opts(fd, &run);
  if (error) fail(error, "BPF_PROG_TEST_RUN");
  const struct s_ecn_step step = bench->step;
  if (codepoint(after) != (step.mark ? 3 : ecn)) fail(0, "packet %" PRIu64 ": codepoint %u became %u, mark is %u", n, ecn, codepoint(after), step.mark);
  if (!(n & 1) && checksum(after + 14)) fail(0, "packet %" PRIu64 ": the header checksum is wrong", n);
  return step;
}

static int s_ecn(void) {
  enum { SEQUENCE, RATE_BPS, CLOCK_PS, RATE, CREDIT, K, RESET, AT_DEQUEUE, NUMBER, DEPARTURE, TIME_PS, CLOCKS, FRAME, WIRE, ECN, QUEUE, COLUMNS };
  static const char HEADER[] =
      "sequence,rate_bps,clock_ps,rate,credit,k,reset,at_dequeue,packet,departure,time_ps,clocks,frame,wire,ecn,queue";
  struct mark_settings unused = {.clock_ns = 8};
  struct bpf_object *object = open_object("mark", &unused, sizeof unused);
  load_object(object);
  struct mark_bench volatile *bench = shared(object, sizeof *bench);
  int fd = bpf_program__fd(program(object, "vectors")), port = map_fd(object, "port");
  uint64_t in[COLUMNS_MAX], sequence = UINT64_MAX;
  puts("by_slope,by_k,mark,interval,sendable,growth,added,sum,owed");
  for (uint64_t n = 0; row(HEADER, COLUMNS, in); n++) {
    if (in[SEQUENCE] != sequence) fresh_registers(port);
    sequence = in[SEQUENCE];
    bench->s_ecn = (struct s_ecn){.rate = in[RATE], .k = in[K], .credit = (int64_t)in[CREDIT], .reset = (uint32_t)in[RESET],
                                  .at_dequeue = (uint32_t)in[AT_DEQUEUE]};
    bench->clocks = in[CLOCKS], bench->departure = (uint32_t)in[DEPARTURE];
    bench->wire = (uint32_t)in[WIRE], bench->queue = (uint32_t)in[QUEUE];
    const struct s_ecn_step step = run_s_ecn(fd, bench, (unsigned)in[ECN], n), *s = &step;
    printf("%u,%u,%u,%llu,%llu,%lld,%lld,%lld,%u\n", s->by_slope, s->by_k, s->mark, s->interval, s->sendable, s->growth, s->added, s->sum,
           s->owed);
  }
  return 0;
}

static int pdn(void) {
  enum { SEQUENCE, ROOM, EACH, TYPE, MAX_FRAME, EMPTY, ACKS, HALVE, FIRST_TTL, AWARE, STEP, EVENT, CONGESTION, PART, NUMBER, LENGTH, GIVEN, TTL, FRAME, DATA, COLUMNS };
  static const char HEADER[] = "sequence,room,each,type,max_frame,empty,acks,halve,first_ttl,aware,"
                               "step,event,congestion,part,number,length,given,ttl,frame,data";
  struct notify_settings unused = {0};
  struct bpf_object *object = open_object("notify", &unused, sizeof unused);
  bpf_program__set_autoload(program(object, "on_drop"), false);
  load_object(object);
  volatile struct notify_bench *bench = shared(object, sizeof *bench);
  int fd = bpf_program__fd(program(object, "vectors")), ports = map_fd(object, "ports");
  uint64_t in[COLUMNS_MAX], sequence = UINT64_MAX;
  uint8_t before[PACKET], after[PACKET];
  puts("fate,waiting,peak,sends,size,sent_number,sent_length,sent_type,sent_operation,sent_ttl");
  for (uint64_t n = 0; row(HEADER, COLUMNS, in); n++) {
    if (in[SEQUENCE] != sequence) {
      static uint64_t fresh[(16 + sizeof(struct pdn_port) + PDN_MOST * sizeof(struct pdn_notice)) / 8];
      uint32_t zero = 0;
      if (bpf_map_update_elem(ports, &zero, fresh, BPF_ANY)) fail(errno, "registers");
      if (in[EACH] * (PDN_MOST + 1) <= in[ROOM]) fail(0, "conform pdn: a queue of %" PRIu64 " B: this program holds %d notifications", in[ROOM], PDN_MOST);
      sequence = in[SEQUENCE];
    }
    bench->pdn = (struct pdn){.room = (uint32_t)in[ROOM], .max_frame = (uint16_t)in[MAX_FRAME], .empty = (uint16_t)in[EMPTY], .each = (uint8_t)in[EACH],
                              .type = (uint8_t)in[TYPE], .acks = (uint8_t)in[ACKS], .halve = (uint8_t)in[HALVE], .first_ttl = (uint8_t)in[FIRST_TTL],
                              .aware = (uint8_t)in[AWARE]};
    bench->event = (uint32_t)in[EVENT], bench->congestion = (uint32_t)in[CONGESTION], bench->part = (uint32_t)in[PART];
    bench->number = (uint32_t)in[NUMBER], bench->length = (uint32_t)in[LENGTH], bench->given = (uint32_t)in[GIVEN];
    bench->ttl = (uint32_t)in[TTL], bench->frame = (uint32_t)in[FRAME], bench->data = (uint32_t)in[DATA];
    build(before, false, 0, n);
    LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = before, .data_size_in = PACKET, .data_out = after, .data_size_out = PACKET);
    int error = bpf_prog_test_run_opts(fd, &run);
    if (error) fail(error, "BPF_PROG_TEST_RUN");
    const struct pdn_notice s = bench->sent;
    uint8_t bytes[8] = {(uint8_t)(s.number >> 24), (uint8_t)(s.number >> 16), (uint8_t)(s.number >> 8), (uint8_t)s.number,
                        (uint8_t)(s.length >> 8), (uint8_t)s.length, s.type, s.operation};
    if (bench->sends && memcmp(after + 14, bytes, sizeof bytes)) fail(0, "row %" PRIu64 ": the notification's bytes are others", n);
    printf("%u,%u,%u,%u,%u,%u,%u,%u,%u,%u\n", bench->fate, bench->waiting, bench->peak, bench->sends, bench->size, s.number, s.length, s.type, s.operation,
           s.ttl);
  }
  return 0;
}

int conform_command(void) {
  const char *mechanism = argument(0);
  if (!strcmp(mechanism, "s-ecn")) return s_ecn();
  if (!strcmp(mechanism, "pdn")) return pdn();
  fail(0, "conform %s: accepted: s-ecn, pdn", mechanism);
}
