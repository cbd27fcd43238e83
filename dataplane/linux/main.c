/* fanin-bpf: loads the BPF programs of this folder, feeds them test vectors, and reads what they record. docs/linux-dataplane.md. */
#define _GNU_SOURCE
#include "fanin_bpf.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile bool stopped;
static int argc_;
static char **argv_;

static const char USAGE[] =
    "usage: fanin-bpf conform s-ecn|pdn      test vectors on standard input, decisions on standard output; no network\n"
    "       fanin-bpf cosim SOCKET           decides about the packets of a simulated port: runs=0 (without end)\n"
    "       fanin-bpf mark DEVICE KEY=VALUE  set CE at its egress: rate=100mbit k=32KB credit=1538 clock=8 (ns) after_mark=subtract|reset\n"
    "                                        overhead=0 (B) limit=0 (B) policy=s-ecn|threshold parent=0 classid=0 (HTB filter)\n"
    "       fanin-bpf record DEVICE FILE     its enqueues, dequeues and drops as a queue table (CSV; - is standard output)\n"
    "       fanin-bpf dctcp                  congestion control bpf_dctcp, as long as this runs: g=4 (2^-4)\n"
    "       fanin-bpf notify DEVICE BACK,…   PDN's notifications of its drops, out of the devices that packets came by: queue=2000 (B)\n"
    "                                        ttl=64 operation=retransmit_and_halve|retransmit acks=1 max_frame=1518 alone=1\n"
    "       fanin-bpf flood DEVICE           frames into it as fast as one CPU can: packets=1000000 size=1514 (B)\n"
    "The others run until SIGINT, SIGTERM or the end of standard input, say \"ready\", and end with a line of JSON.\n"
    "stats=1: with CPU time of each program.\n";

void fail(int error, const char *format, ...) {
  va_list args;
  fputs("fanin-bpf: ", stderr);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  if (error) fprintf(stderr, ": %s", strerror(abs(error)));
  fputc('\n', stderr);
  exit(1);
}

struct bpf_object *open_object(const char *name, const void *settings, size_t bytes) {
  char self[PATH_MAX], path[PATH_MAX + 64];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n < 0) fail(errno, "/proc/self/exe");
  self[n] = 0;
  snprintf(path, sizeof path, "%s/%s.bpf.o", dirname(self), name);
  struct bpf_object *object = bpf_object__open_file(path, NULL);
  if (!object) fail(errno, "%s", path);
  struct bpf_map *map;
  bpf_object__for_each_map(map, object) {
    size_t size;
    if (!bytes || !strstr(bpf_map__name(map), ".rodata")) continue;
    if (!bpf_map__initial_value(map, &size) || size != bytes) fail(0, "%s: its settings have %zu bytes, not %zu", path, size, bytes);
    int error = bpf_map__set_initial_value(map, settings, bytes);
    if (error) fail(error, "settings of %s", path);
    return object;
  }
  if (bytes) fail(0, "%s has no settings", path);
  return object;
}

void load_object(struct bpf_object *object) {
  int error = bpf_object__load(object);
  if (error) fail(error, "the kernel does not take %s", bpf_object__name(object));
}

struct bpf_program *program(struct bpf_object *object, const char *name) {
  struct bpf_program *p = bpf_object__find_program_by_name(object, name);
  if (!p) fail(0, "%s has no program %s", bpf_object__name(object), name);
  return p;
}

int map_fd(struct bpf_object *object, const char *name) {
  int fd = bpf_object__find_map_fd_by_name(object, name);
  if (fd < 0) fail(fd, "%s has no map %s", bpf_object__name(object), name);
  return fd;
}

void sum_cpus(int fd, uint32_t key, uint64_t *sum, unsigned words) {
  int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) fail(cpus, "number of CPUs");
  uint64_t *values = calloc((size_t)cpus * words, sizeof *values);
  if (!values || bpf_map_lookup_elem(fd, &key, values)) fail(errno, "counters");
  memset(sum, 0, words * sizeof *sum);
  for (int c = 0; c < cpus; c++)
    for (unsigned w = 0; w < words; w++) sum[w] += values[(unsigned)c * words + w];
  free(values);
}

/* ---- arguments ---------------------------------------------------------------------------------------------------------- */

static const char *KEYS[] = {"rate", "k", "credit", "clock", "after_mark", "overhead", "limit", "policy", "parent", "classid",
                             "stats", "g", "queue", "ttl", "operation", "acks", "max_frame", "alone", "packets", "size", "runs"};

const char *text(const char *key, const char *absent) {
  size_t n = strlen(key);
  for (int i = 2; i < argc_; i++)
    if (!strncmp(argv_[i], key, n) && argv_[i][n] == '=') return argv_[i] + n + 1;
  return absent;
}

uint64_t number(const char *key, uint64_t absent, uint64_t least, uint64_t most) {
  static const struct {
    const char *name;
    uint64_t factor;
  } units[] = {{"", 1}, {"B", 1}, {"KB", 1000}, {"MB", 1000000}, {"kbit", 1000}, {"mbit", 1000000}, {"gbit", 1000000000}};
  const char *value = text(key, NULL);
  if (!value) return absent;
  char *end;
  errno = 0;
  uint64_t n = strtoull(value, &end, 0);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (end == value || *value == '-' || errno || strcmp(end, units[i].name)) continue;
    if (n > UINT64_MAX / units[i].factor || n * units[i].factor < least || n * units[i].factor > most) break;
    return n * units[i].factor;
  }
  fail(0, "%s=%s: accepted: %" PRIu64 " to %" PRIu64 ", as whole numbers, with KB, MB, kbit, mbit or gbit", key, value, least, most);
}

uint32_t device(const char *name) {
  uint32_t index = if_nametoindex(name);
  if (!index) fail(errno, "device %s", name);
  return index;
}

static void check_keys(void) {
  for (int i = 2; i < argc_; i++) {
    const char *end = strchr(argv_[i], '=');
    bool known = !end;
    for (size_t k = 0; end && k < sizeof KEYS / sizeof *KEYS; k++)
      known |= strlen(KEYS[k]) == (size_t)(end - argv_[i]) && !strncmp(KEYS[k], argv_[i], strlen(KEYS[k]));
    if (!known) fail(0, "%s: no such setting; see fanin-bpf --help", argv_[i]);
  }
}

/* ---- waiting, CPU time -------------------------------------------------------------------------------------------------- */

static void on_signal(int s) {
  (void)s;
  stopped = true;
}

void hold(int fd, int ms, void (*tick)(void)) {
  puts("ready");
  fflush(stdout);
  struct pollfd in[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
  while (!stopped) {
    if (poll(in, 2, ms) > 0 && in[0].revents) {
      char b[256];
      if (read(STDIN_FILENO, b, sizeof b) <= 0) stopped = true;
    }
    if (tick) tick();
  }
}

static bool stats;

void start_stats(void) {
  stats = number("stats", 0, 0, 1);
  if (stats && bpf_enable_stats(BPF_STATS_RUN_TIME) < 0) fail(errno, "CPU time of BPF programs");
}

void print_stats(struct bpf_object *object, FILE *out) {
  struct bpf_program *p;
  if (!stats) return;
  fputs(", \"programs\": {", out);
  const char *comma = "";
  bpf_object__for_each_program(p, object) {
    struct bpf_prog_info info = {0};
    uint32_t n = sizeof info;
    if (bpf_program__fd(p) < 0 || bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &n)) continue;
    fprintf(out, "%s\"%s\": {\"runs\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"misses\": %" PRIu64 "}", comma, bpf_program__name(p),
            (uint64_t)info.run_cnt, (uint64_t)info.run_time_ns, (uint64_t)info.recursion_misses);
    comma = ", ";
  }
  fputs("}", out);
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args) {
  return level == LIBBPF_WARN && !getenv("FANIN_BPF_QUIET") ? vfprintf(stderr, format, args) : 0;
}

const char *argument(int i) {
  if (i + 2 >= argc_ || strchr(argv_[i + 2], '=')) fail(0, "%s: an argument is missing; see fanin-bpf --help", argv_[1]);
  return argv_[i + 2];
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*run)(void);
  } commands[] = {{"conform", conform_command}, {"cosim", cosim_command}, {"mark", mark_command}, {"record", record_command}, {"dctcp", dctcp_command}, {"notify", notify_command}, {"flood", flood_command}};
  argc_ = argc, argv_ = argv;
  if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
    fputs(USAGE, stdout);
    return 0;
  }
  libbpf_set_print(quiet);
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++) {
    if (strcmp(argv[1], commands[i].name)) continue;
    check_keys();
    return commands[i].run();
  }
  fputs(USAGE, stderr);
  return 2;
}
