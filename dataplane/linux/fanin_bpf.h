/* Common parts of fanin-bpf's commands. */
#ifndef FANIN_BPF_H
#define FANIN_BPF_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Set by SIGINT, SIGTERM, and when standard input ends: what holds programs lets go of them. */
extern volatile bool stopped;

/* Print and exit with status 1; the reason of `error` (an errno, either sign) unless it is 0. */
void fail(int error, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* NAME.bpf.o beside this program, opened; `settings` become its constants. */
struct bpf_object *open_object(const char *name, const void *settings, size_t bytes);
void load_object(struct bpf_object *object);
struct bpf_program *program(struct bpf_object *object, const char *name);
int map_fd(struct bpf_object *object, const char *name);

/* Sum of the values of a per-CPU array's element, which are `words` numbers of 64 bits. */
void sum_cpus(int fd, uint32_t key, uint64_t *sum, unsigned words);

/* KEY=VALUE among the arguments; a size may end in KB, MB; a rate in kbit, mbit, gbit. */
const char *text(const char *key, const char *absent);
uint64_t number(const char *key, uint64_t absent, uint64_t least, uint64_t most);
const char *argument(int i); /* the i-th after the command, from 0 */
uint32_t device(const char *name);

/* Say that it runs ("ready" on standard output), and wait until `stopped`; `tick` is called every `ms` meanwhile, and when `fd` can be read (-1: none). */
void hold(int fd, int ms, void (*tick)(void));

/* CPU time of programs: `start_stats` has the kernel count it, `print_stats` writes it as members of a JSON object. */
void start_stats(void);
void print_stats(struct bpf_object *object, FILE *out);

int conform_command(void);
int cosim_command(void);
int mark_command(void);
int record_command(void);
int dctcp_command(void);
int notify_command(void);
int flood_command(void);

#endif
