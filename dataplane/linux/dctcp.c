/* fanin-bpf dctcp: registers the congestion control bpf_dctcp as long as it runs. */
#define _GNU_SOURCE
#include "fanin_bpf.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Since Linux 6.4; headers of older systems lack them. */
enum { MAP_HAS_LINK = 1 << 13, ATTACH_STRUCT_OPS = 44 };

static struct bpf_object *loaded(uint32_t shift, uint32_t flags) {
  struct bpf_object *object = open_object("dctcp", &shift, sizeof shift);
  struct bpf_map *map = bpf_object__find_map_by_name(object, "dctcp");
  if (!map) fail(0, "dctcp.bpf.o has no congestion control");
  bpf_map__set_map_flags(map, bpf_map__map_flags(map) | flags);
  if (!flags) {
    load_object(object);
    return object;
  }
  libbpf_print_fn_t print = libbpf_set_print(NULL);
  int error = bpf_object__load(object);
  libbpf_set_print(print);
  if (!error) return object;
  bpf_object__close(object);
  return NULL;
}

int dctcp_command(void) {
  uint32_t shift = (uint32_t)number("g", 4, 1, 10);
  /* With a link the kernel takes it back whatever ends this program. */
  struct bpf_object *object = loaded(shift, MAP_HAS_LINK);
  bool linked = object;
  if (!linked) object = loaded(shift, 0);
  start_stats();
  struct bpf_map *map = bpf_object__find_map_by_name(object, "dctcp");
  struct bpf_link *link = bpf_map__attach_struct_ops(map);
  if (link && linked) {
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.link_create.prog_fd = (uint32_t)bpf_map__fd(map);
    attr.link_create.attach_type = ATTACH_STRUCT_OPS;
    if (syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof attr) < 0) link = NULL;
  }
  if (!link) fail(errno, "the congestion control bpf_dctcp (is another one running?)");
  hold(-1, 1000, NULL);
  fputs("{\"name\": \"bpf_dctcp\"", stdout);
  print_stats(object, stdout);
  puts("}");
  fflush(stdout);
  if (!linked) bpf_link__destroy(link);
  return 0;
}
