/* fanin-bpf cosim: a block of Fanin's co-simulation, docs/cosimulation.md. Packets of a simulated port go through BPF_PROG_TEST_RUN, the program
 * that marks on a real one decides. */
#define _GNU_SOURCE
#include <asm/types.h>

#include "../cosim/fanin_cosim.h"
#include "fanin_bpf.h"
#include "test_run.h"

#include <inttypes.h>

int cosim_command(void) {
  const char *path = argument(0);
  uint64_t runs = number("runs", 0, 0, UINT32_MAX);
  struct mark_settings unused = {.clock_ns = 8};
  struct bpf_object *object = open_object("mark", &unused, sizeof unused);
  load_object(object);
  volatile struct mark_bench *bench = shared(object, sizeof *bench);
  int fd = bpf_program__fd(program(object, "vectors")), registers = map_fd(object, "port"), listener = fanin_listen(path);
  if (listener < 0) fail(errno, "%s", path);
  puts("ready");
  fflush(stdout);
  for (uint64_t run = 0; !runs || run < runs; run++) {
    struct fanin_hello hello;
    struct fanin_port port;
    struct fanin_request p;
    char word[sizeof hello.settings + 1];
    int from = accept(listener, NULL, NULL);
    if (from < 0 && stopped) break;
    if (from < 0) fail(errno, "%s", path);
    /* A run that cannot be served ends alone: the next may be another's. */
    if (fanin_greet(from, "s-ecn in BPF", "1", &hello, &port, 1)) {
      fprintf(stderr, "a run: %s (this program has the registers of one port: give its marking by switch.except)\n", strerror(errno));
      close(from);
      continue;
    }
    if (fanin_only(&hello, "k credit clock_ps reset", word) || !fanin_setting(&hello, "clock_ps", 8000)) {
      fprintf(stderr, "a run: settings: %.*s: accepted: k, credit, clock_ps (not 0) and reset, each =NUMBER\n",
              (int)sizeof hello.settings, hello.settings);
      close(from);
      continue;
    }
    uint64_t clock_ps = fanin_setting(&hello, "clock_ps", 8000);
    fresh_registers(registers);
    bench->s_ecn = (struct s_ecn){.rate = fanin_rate(&port, clock_ps), .k = fanin_setting(&hello, "k", UINT64_MAX),
                                  .credit = (int64_t)fanin_setting(&hello, "credit", 1538),
                                  .reset = fanin_setting(&hello, "reset", 0) != 0, .at_dequeue = hello.departures};
    while (fanin_next(from, &p) == 1) {
      unsigned decision = FANIN_PASS;
      if ((p.bits & 3) != FANIN_REFUSAL) {
        bench->clocks = p.time_ps / clock_ps, bench->departure = p.bits & 3;
        bench->wire = (uint32_t)p.frame + port.overhead, bench->queue = (uint32_t)p.queue_bytes;
        if (run_s_ecn(fd, bench, p.ecn, p.number).mark) decision = FANIN_MARK;
      }
      if (fanin_answer(from, &p, decision)) break;
    }
    close(from);
  }
  return unlink(path);
}
