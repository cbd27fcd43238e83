/* fanin-bpf mark: CE at a device's egress. */
#define _GNU_SOURCE
#include <asm/types.h>

#include "fanin_bpf.h"
#include "mark.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

int mark_command(void) {
  const char *name = argument(0), *policy = text("policy", "s-ecn"), *after = text("after_mark", "subtract");
  uint32_t clock = (uint32_t)number("clock", 8, 1, 1000000);
  bool slope = !strcmp(policy, "s-ecn");
  if (!slope && strcmp(policy, "threshold")) fail(0, "policy=%s: accepted: s-ecn, threshold", policy);
  if (strcmp(after, "subtract") && strcmp(after, "reset")) fail(0, "after_mark=%s: accepted: subtract, reset", after);
  uint64_t rate = number("rate", 0, 1000000, 1600000000000);
  if (slope && !rate) fail(0, "rate: policy s-ecn needs that of the port, such as rate=100mbit");
  /* R = rate * clock * 2^20 / (8 * 10^9), in 2^-20 B per clock. */
  unsigned __int128 r = ((unsigned __int128)rate * clock << S_ECN_FRACTION) / 8000000000u;
  if (slope && (!r || r > UINT32_MAX)) fail(0, "rate=%s clock=%u: R does not fit 32 bits", text("rate", ""), clock);
  /* S-ECN marks at K or above; DCTCP's threshold above K. */
  struct mark_settings set = {
      .s_ecn = {.rate = slope ? (uint64_t)r : 0, .k = number("k", 32000, 1, UINT32_MAX) + !slope, .credit = (int64_t)number("credit", 1538, 0, 65535),
                .reset = !strcmp(after, "reset")},
      .clock_ns = clock,
      .overhead = (uint32_t)number("overhead", 0, 0, 1000),
      .limit = (uint32_t)number("limit", 0, 0, UINT32_MAX),
      .classid = (uint32_t)number("classid", 0, 0, UINT32_MAX),
  };
  uint32_t parent = (uint32_t)number("parent", 0, 0, UINT32_MAX);
  if (!parent != !set.classid) fail(0, "parent and classid belong together: as of a filter of HTB, parent=0x10000 classid=0x10001");
  struct bpf_object *object = open_object("mark", &set, sizeof set);
  bpf_program__set_autoload(program(object, "vectors"), false);
  load_object(object);
  start_stats();

  LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)device(name), .attach_point = parent ? BPF_TC_CUSTOM : BPF_TC_EGRESS, .parent = parent);
  LIBBPF_OPTS(bpf_tc_opts, filter, .prog_fd = bpf_program__fd(program(object, "mark")));
  int error = parent ? -EEXIST : bpf_tc_hook_create(&hook);
  bool ours = !error;
  if (error && error != -EEXIST) fail(error, "clsact at %s", name);
  error = bpf_tc_attach(&hook, &filter);
  if (error) fail(error, "a filter at %s", name);
  hold(-1, 1000, NULL);

  uint64_t n[sizeof(struct mark_counters) / 8];
  sum_cpus(map_fd(object, "counters"), 0, n, sizeof n / sizeof *n);
  struct mark_counters c;
  memcpy(&c, n, sizeof c);
  printf("{\"packets\": %llu, \"capable\": %llu, \"refused\": %llu, \"by_slope\": %llu, \"by_k\": %llu, \"marked\": %llu", c.packets, c.capable,
         c.refused, c.by_slope, c.by_k, c.marked);
  print_stats(object, stdout);
  puts("}");
  filter.prog_fd = 0, filter.prog_id = 0, filter.flags = 0;
  bpf_tc_detach(&hook, &filter);
  if (ours) {
    hook.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS; /* both: clsact itself goes */
    bpf_tc_hook_destroy(&hook);
  }
  return 0;
}
