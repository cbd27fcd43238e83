/* fanin-bpf notify: PDN's notifications of a device's drops. The kernel queues and attaches them; frames of their own are sent from here. */
#define _GNU_SOURCE
#include <asm/types.h>

#include "fanin_bpf.h"
#include "notify.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { SHORTEST = 60 };

static struct back {
  uint32_t index;
  int raw;
  bool ours; /* clsact is */
  uint8_t mac[6];
  struct bpf_tc_opts filter;
} backs[NOTIFY_PORTS];
static unsigned backs_n;
static int alone_fd;
static bool alone_too;
static struct ring_buffer *hurry;

/* Notifications that wait at a device while nothing else does leave in frames of their own. */
static void send_alone(struct back *b) {
  for (;;) {
    /* To the neighbour alone: no bridge passes this address on. */
    uint8_t in[SHORTEST] = {0x01, 0x80, 0xC2, 0, 0, 0x0E}, out[SHORTEST];
    struct __sk_buff skb = {.ifindex = b->index};
    memcpy(in + 6, b->mac, sizeof b->mac);
    LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = in, .data_size_in = sizeof in, .data_out = out, .data_size_out = sizeof out, .ctx_in = &skb,
                .ctx_size_in = sizeof skb);
    int error = bpf_prog_test_run_opts(alone_fd, &run);
    if (error) fail(error, "a notification's frame");
    if (run.retval != 1) return;
    if (send(b->raw, out, sizeof out, 0) < 0 && errno != ENOBUFS) fail(errno, "a notification's frame");
  }
}

static int on_hurry(void *context, void *data, size_t size) {
  (void)context, (void)data, (void)size;
  return 0;
}

static void tick(void) {
  ring_buffer__consume(hurry);
  for (unsigned i = 0; alone_too && i < backs_n; i++) send_alone(&backs[i]);
}

static void add_back(const char *name, int ports, struct bpf_program *attach) {
  if (backs_n == NOTIFY_PORTS) fail(0, "%s: more than %d devices", name, NOTIFY_PORTS);
  struct back *b = &backs[backs_n++];
  b->index = device(name);
  struct port_value {
    uint64_t lock;
    struct pdn_port queue;
    struct pdn_notice notices[PDN_MOST];
  } *fresh = calloc(1, sizeof *fresh);
  if (!fresh || bpf_map_update_elem(ports, &b->index, fresh, BPF_ANY)) fail(errno, "the queue of %s", name);
  free(fresh);
  b->raw = socket(AF_PACKET, SOCK_RAW, 0);
  struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)b->index};
  struct ifreq request = {0};
  snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  if (b->raw < 0 || bind(b->raw, (struct sockaddr *)&to, sizeof to) || ioctl(b->raw, SIOCGIFHWADDR, &request)) fail(errno, "a raw socket at %s", name);
  memcpy(b->mac, request.ifr_hwaddr.sa_data, sizeof b->mac);
  LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)b->index, .attach_point = BPF_TC_EGRESS);
  int error = bpf_tc_hook_create(&hook);
  b->ours = !error;
  if (error && error != -EEXIST) fail(error, "clsact at %s", name);
  b->filter = (struct bpf_tc_opts){.sz = sizeof b->filter, .prog_fd = bpf_program__fd(attach)};
  error = bpf_tc_attach(&hook, &b->filter);
  if (error) fail(error, "a filter at %s", name);
}

static void remove_back(struct back *b) {
  LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)b->index, .attach_point = BPF_TC_EGRESS);
  b->filter.prog_fd = 0, b->filter.prog_id = 0, b->filter.flags = 0;
  bpf_tc_detach(&hook, &b->filter);
  if (!b->ours) return;
  hook.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS;
  bpf_tc_hook_destroy(&hook);
}

int notify_command(void) {
  const char *name = argument(0), *list = argument(1), *operation = text("operation", "retransmit_and_halve");
  bool halve = !strcmp(operation, "retransmit_and_halve");
  if (!halve && strcmp(operation, "retransmit")) fail(0, "operation=%s: accepted: retransmit_and_halve, retransmit", operation);
  struct stat netns;
  if (stat("/proc/thread-self/ns/net", &netns)) fail(errno, "the network namespace");
  struct notify_settings set = {
      .ifindex = device(name),
      .netns = (uint32_t)netns.st_ino,
      .pdn = {.room = (uint32_t)number("queue", 2000, PDN_V6, PDN_MOST * PDN_V4), .max_frame = (uint16_t)number("max_frame", 1518, 128, 65535),
              .empty = 64, .acks = (uint8_t)number("acks", 1, 0, 1), .halve = halve, .first_ttl = (uint8_t)number("ttl", 64, 2, 255), .aware = 1},
  };
  alone_too = number("alone", 1, 0, 1);
  struct bpf_object *object = open_object("notify", &set, sizeof set);
  bpf_program__set_autoload(program(object, "vectors"), false);
  load_object(object);
  start_stats();
  alone_fd = bpf_program__fd(program(object, "alone"));
  hurry = ring_buffer__new(map_fd(object, "hurry"), on_hurry, NULL, NULL);
  if (!hurry) fail(errno, "the ring buffer");
  char *names = strdup(list), *rest = names;
  for (char *back = strsep(&rest, ","); back; back = strsep(&rest, ",")) add_back(back, map_fd(object, "ports"), program(object, "attach"));
  struct bpf_link *link = bpf_program__attach(program(object, "on_drop"));
  if (!link) fail(errno, "on_drop");
  hold(ring_buffer__epoll_fd(hurry), 1, tick);
  bpf_link__destroy(link);
  for (unsigned i = 0; i < backs_n; i++) remove_back(&backs[i]);

  uint64_t n[sizeof(struct notify_counters) / 8];
  struct notify_counters c;
  sum_cpus(map_fd(object, "counters"), 0, n, sizeof n / sizeof *n);
  memcpy(&c, n, sizeof c);
  printf("{\"drops\": %llu, \"raised\": %llu, \"queued\": %llu, \"no_room\": %llu, \"no_way_back\": %llu, \"attached\": %llu, \"alone\": %llu", c.drops,
         c.raised, c.queued, c.no_room, c.no_way_back, c.attached, c.alone);
  print_stats(object, stdout);
  puts("}");
  return 0;
}
