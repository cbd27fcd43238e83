/* fanin-bpf dctcp: registers the congestion control bpf_dctcp as long as it runs. */
#define _GNU_SOURCE
#include "fanin_bpf.h"

#include <errno.h>

int dctcp_command(void) {
  uint32_t shift = (uint32_t)number("g", 4, 1, 10);
  struct bpf_object *object = open_object("dctcp", &shift, sizeof shift);
  load_object(object);
  start_stats();
  struct bpf_map *map = bpf_object__find_map_by_name(object, "dctcp");
  struct bpf_link *link = map ? bpf_map__attach_struct_ops(map) : NULL;
  if (!link) fail(errno, "the congestion control bpf_dctcp (is another one running?)");
  hold(-1, 1000, NULL);
  bpf_link__destroy(link);
  fputs("{\"name\": \"bpf_dctcp\"", stdout);
  print_stats(object, stdout);
  puts("}");
  return 0;
}
