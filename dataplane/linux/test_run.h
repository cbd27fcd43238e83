/* BPF_PROG_TEST_RUN of S-ECN: test vectors (conform.c) and packets of a simulated run (cosim.c). */
#ifndef FANIN_TEST_RUN_H
#define FANIN_TEST_RUN_H

#include "mark.h"

enum { PACKET = 64 };

/* The programs' global variables, as memory that is shared with them. */
void *shared(struct bpf_object *object, size_t bytes);

/* Registers in the map `port` as before the first packet. */
void fresh_registers(int port);

/* Packet `n` with a codepoint through the program, IPv4 and IPv6 in turn; `bench` has its inputs. CE in the packet that comes back, and its
 * checksum, are checked. */
struct s_ecn_step run_s_ecn(int fd, volatile struct mark_bench *bench, unsigned ecn, uint64_t n);

#endif
