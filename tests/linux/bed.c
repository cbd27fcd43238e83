/* One experiment of real TCP in network namespaces that bed.py has laid out: senders, receiver, the delay line of the
 * acknowledgments, a capture on both sides of the port, and TCP_INFO of every flow each millisecond.
 *
 * C because of AF_PACKET rings, setns per thread and tcp_info: in Rust each of them is an unsafe call of libc, a crate that
 * no other part of the workspace needs. All threads run at real-time priority; nothing is written to a file before the last
 * flow is complete. Captures lie in rings of the kernel that hold the whole run, so that nobody has to be woken for them.
 *
 * Usage: bed OUT KEY=VALUE ..., as bed.py gives them. Records in OUT are little-endian structs; bed.py names their fields.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FLOWS = 64, SLOT = 256, BLOCK = 1 << 20, FIRST_PORT = 10000, CHUNK = 1 << 16, SAMPLES = 1 << 21, ACKS = 1 << 19 };

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;

static void fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  if (errno) fprintf(stderr, ": %s", strerror(errno));
  fputc('\n', stderr);
  exit(1);
}

static u64 now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

static void sleep_until(u64 at) {
  struct timespec t = {.tv_sec = (time_t)(at / 1000000000ull), .tv_nsec = (long)(at % 1000000000ull)};
  while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

static void real_time(int priority, int cpu) {
  struct sched_param p = {.sched_priority = priority};
  if (sched_setscheduler(0, SCHED_FIFO, &p)) fail("no real-time priority");
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set)) fail("no CPU %d", cpu);
}

static void enter(int ns) {
  if (setns(ns, CLONE_NEWNET)) fail("setns");
}

/* ---- arguments ---------------------------------------------------------------------------------------------------------- */

static int argc_;
static char **argv_;

static const char *text(const char *key) {
  size_t n = strlen(key);
  for (int i = 2; i < argc_; i++)
    if (!strncmp(argv_[i], key, n) && argv_[i][n] == '=') return argv_[i] + n + 1;
  errno = 0;
  fail("%s is missing", key);
  return NULL;
}

static long long number(const char *key) { return strtoll(text(key), NULL, 10); }

static int flows;
static int sender_ns[FLOWS];
static u64 size, delay, gap, limit, first;
static int port;
static const char *control;
static struct in_addr receiver_ip;

/* ---- rings -------------------------------------------------------------------------------------------------------------- */

struct ring {
  int fd;
  unsigned char *base;
  u32 slots, at;
};

static struct tpacket2_hdr *slot(const struct ring *r, u32 i) { return (struct tpacket2_hdr *)(r->base + (size_t)i * SLOT); }

static struct ring ring_open(const char *device, u32 slots, bool outgoing) {
  struct ring r = {.slots = slots};
  r.fd = socket(AF_PACKET, SOCK_RAW, 0);
  if (r.fd < 0) fail("AF_PACKET");
  int version = TPACKET_V2, one = 1;
  if (setsockopt(r.fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version)) fail("TPACKET_V2");
  if (!outgoing && setsockopt(r.fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one)) fail("PACKET_IGNORE_OUTGOING");
  struct tpacket_req req = {.tp_block_size = BLOCK, .tp_block_nr = slots / (BLOCK / SLOT), .tp_frame_size = SLOT, .tp_frame_nr = slots};
  if (setsockopt(r.fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof req)) fail("PACKET_RX_RING");
  r.base = mmap(NULL, (size_t)slots * SLOT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r.fd, 0);
  if (r.base == MAP_FAILED) fail("mmap of a ring");
  struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(device)};
  if (!a.sll_ifindex || bind(r.fd, (struct sockaddr *)&a, sizeof a)) fail("bind to %s", device);
  return r;
}

static u64 stamp(const struct tpacket2_hdr *h) { return (u64)h->tp_sec * 1000000000ull + h->tp_nsec; }

struct packet { /* captured: 32 bytes */
  u64 ns;
  u32 frame, seq, ack;
  u16 sport, dport, id, payload;
  u32 flags;
};

static bool parse(const struct tpacket2_hdr *h, struct packet *p) {
  const unsigned char *b = (const unsigned char *)h + h->tp_mac;
  if (h->tp_snaplen < 54 || b[12] != 8 || b[13] != 0 || b[23] != IPPROTO_TCP) return false;
  const unsigned char *ip = b + 14, *tcp = ip + (ip[0] & 15) * 4;
  u32 total = (u32)ip[2] << 8 | ip[3];
  *p = (struct packet){
      .ns = stamp(h), .frame = h->tp_len,
      .seq = (u32)tcp[4] << 24 | (u32)tcp[5] << 16 | (u32)tcp[6] << 8 | tcp[7],
      .ack = (u32)tcp[8] << 24 | (u32)tcp[9] << 16 | (u32)tcp[10] << 8 | tcp[11],
      .sport = (u16)(tcp[0] << 8 | tcp[1]), .dport = (u16)(tcp[2] << 8 | tcp[3]), .id = (u16)(ip[4] << 8 | ip[5]),
      .payload = (u16)(total - (u32)(ip[0] & 15) * 4 - (u32)(tcp[12] >> 4) * 4), .flags = tcp[13]};
  return true;
}

static FILE *create(const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", argv_[1], name);
  FILE *f = fopen(path, "wb");
  if (!f) fail("%s", path);
  return f;
}

static void ring_write(struct ring *r, const char *name, bool outgoing) {
  struct tpacket_stats stats;
  socklen_t n = sizeof stats;
  errno = 0;
  if (getsockopt(r->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &n)) fail("PACKET_STATISTICS");
  if (stats.tp_drops) fail("the capture %s lost %u packets", name, stats.tp_drops);
  FILE *f = create(name);
  for (u32 i = 0; i < r->slots; i++) {
    struct tpacket2_hdr *h = slot(r, i);
    if (!(h->tp_status & TP_STATUS_USER)) break;
    const struct sockaddr_ll *from = (const struct sockaddr_ll *)((unsigned char *)h + TPACKET_ALIGN(sizeof *h));
    struct packet p;
    if ((from->sll_pkttype == PACKET_OUTGOING) == outgoing && parse(h, &p)) fwrite(&p, sizeof p, 1, f);
  }
  fclose(f);
}

/* ---- delay line --------------------------------------------------------------------------------------------------------- */

struct ack { /* 24 bytes: when it came, how much later than it was due it left; its number, window and options */
  u64 ns;
  u32 late, ack;
  u16 dport, window, flags, options;
};

static struct ring line;
static struct ack *acks;
static u32 acks_n;
static volatile bool line_stop;
static int line_out;

static void *delay_line(void *unused) {
  (void)unused;
  real_time(50, 0);
  while (!line_stop) {
    struct tpacket2_hdr *h = slot(&line, line.at);
    if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) {
      struct pollfd p = {.fd = line.fd, .events = POLLIN};
      poll(&p, 1, 100);
      continue;
    }
    u64 came = stamp(h), due = came + delay;
    u64 t = now();
    if (t + 3000 < due) {
      sleep_until(due);
      t = now();
    }
    const unsigned char *b = (const unsigned char *)h + h->tp_mac;
    if (h->tp_snaplen != h->tp_len) fail("an acknowledgment of %u bytes does not fit the ring", h->tp_len);
    if (send(line_out, b, h->tp_snaplen, 0) < 0) fail("the delay line cannot send");
    if (acks_n < ACKS)
      acks[acks_n++] = (struct ack){.ns = came, .late = (u32)(t > due ? t - due : 0),
                                    .ack = (u32)b[42] << 24 | (u32)b[43] << 16 | (u32)b[44] << 8 | b[45],
                                    .dport = (u16)(b[36] << 8 | b[37]), .window = (u16)(b[48] << 8 | b[49]), .flags = b[47],
                                    .options = (u16)((b[46] >> 4) * 4 - 20)};
    __atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    line.at = (line.at + 1) % line.slots;
  }
  return NULL;
}

/* ---- receiver ----------------------------------------------------------------------------------------------------------- */

static int listener;
static u64 finished[FLOWS];
static volatile int accepted[FLOWS]; /* descriptor of the receiving end; 0: none */
static volatile int finished_n;

static void *receiver(void *unused) {
  (void)unused;
  real_time(45, 0);
  int poll_fd = epoll_create1(0);
  static int of[4096];
  static u64 got[FLOWS];
  struct epoll_event e = {.events = EPOLLIN, .data.fd = listener};
  epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &e);
  for (;;) {
    struct epoll_event ready[64];
    int n = epoll_wait(poll_fd, ready, 64, -1);
    for (int i = 0; i < n; i++) {
      int fd = ready[i].data.fd;
      if (fd == listener) {
        struct sockaddr_in from;
        socklen_t len = sizeof from;
        int c = accept4(listener, (struct sockaddr *)&from, &len, SOCK_NONBLOCK);
        if (c < 0) continue;
        if (c >= 4096) fail("too many descriptors");
        of[c] = ntohs(from.sin_port) - FIRST_PORT;
        accepted[of[c]] = c;
        e = (struct epoll_event){.events = EPOLLIN, .data.fd = c};
        epoll_ctl(poll_fd, EPOLL_CTL_ADD, c, &e);
        continue;
      }
      /* MSG_TRUNC: TCP throws the bytes away, nothing is copied. */
      ssize_t k = recv(fd, NULL, 1 << 24, MSG_TRUNC | MSG_DONTWAIT);
      int flow = of[fd];
      if (k > 0) {
        got[flow] += (u64)k;
        if (got[flow] >= size && !finished[flow]) {
          finished[flow] = now();
          __atomic_add_fetch(&finished_n, 1, __ATOMIC_SEQ_CST);
        }
      } else if (k == 0 || errno != EAGAIN) {
        accepted[flow] = 0;
        close(fd);
      }
    }
  }
  return NULL;
}

/* ---- samples of TCP_INFO ------------------------------------------------------------------------------------------------ */

struct sample { /* 72 bytes */
  u64 ns;
  u32 flow, cwnd, ssthresh, srtt_us, rttvar_us, rto_us, unacked, sacked, lost, retrans, total_retrans, state, backoff, snd_wnd, timeouts, probes;
};

static int sockets[FLOWS];
static struct sample *samples;
static u32 samples_n;
static volatile bool sampler_stop;

static struct sample sample(int flow) {
  union {
    struct tcp_info info;
    unsigned char bytes[512];
  } u;
  memset(&u, 0, sizeof u);
  socklen_t n = sizeof u;
  if (getsockopt(sockets[flow], IPPROTO_TCP, TCP_INFO, &u, &n)) fail("TCP_INFO");
  /* tcpi_rcv_wnd, tcpi_rehash, then tcpi_total_rto: since Linux 6.7, which headers of older systems lack. */
  size_t rto = offsetof(struct tcp_info, tcpi_snd_wnd) + 12;
  u32 timeouts = UINT32_MAX;
  if (n >= rto + 2) timeouts = (u32)(u.bytes[rto] | u.bytes[rto + 1] << 8);
  const struct tcp_info *i = &u.info;
  return (struct sample){.ns = now(), .flow = (u32)flow, .cwnd = i->tcpi_snd_cwnd, .ssthresh = i->tcpi_snd_ssthresh,
                         .srtt_us = i->tcpi_rtt, .rttvar_us = i->tcpi_rttvar, .rto_us = i->tcpi_rto, .unacked = i->tcpi_unacked,
                         .sacked = i->tcpi_sacked, .lost = i->tcpi_lost, .retrans = i->tcpi_retrans,
                         .total_retrans = i->tcpi_total_retrans, .state = i->tcpi_ca_state, .backoff = i->tcpi_backoff,
                         .snd_wnd = i->tcpi_snd_wnd, .timeouts = timeouts, .probes = i->tcpi_probes};
}

struct received { /* 48 bytes: what the receiving end knows; bytes and microseconds */
  u64 ns;
  u32 flow, mss, ato_us, earned, rtt_us, space, window, memory, used, pad;
};

static struct received *ends;
static u32 ends_n;

static bool receiving(int flow, struct received *r) {
  union {
    struct tcp_info info;
    unsigned char bytes[512];
  } u;
  memset(&u, 0, sizeof u);
  u32 memory[16] = {0}, window;
  socklen_t n = sizeof u, m = sizeof memory;
  int fd = accepted[flow];
  if (!fd || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &u, &n) || getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &m)) return false;
  /* tcpi_rcv_wnd, behind tcpi_snd_wnd: since Linux 6.2, which headers of older systems lack. */
  memcpy(&window, u.bytes + offsetof(struct tcp_info, tcpi_snd_wnd) + 4, sizeof window);
  const struct tcp_info *i = &u.info;
  *r = (struct received){.ns = now(), .flow = (u32)flow, .mss = i->tcpi_rcv_mss, .ato_us = i->tcpi_ato,
                         .earned = i->tcpi_rcv_ssthresh, .rtt_us = i->tcpi_rcv_rtt, .space = i->tcpi_rcv_space, .window = window,
                         .memory = memory[SK_MEMINFO_RCVBUF], .used = memory[SK_MEMINFO_RMEM_ALLOC]};
  return true;
}

static void *sampler(void *unused) {
  (void)unused;
  real_time(30, 0);
  u64 next = now();
  while (!sampler_stop && samples_n + FLOWS < SAMPLES) {
    for (int f = 0; f < flows; f++)
      if (!finished[f]) samples[samples_n++] = sample(f);
    for (int f = 0; ends && f < flows; f++)
      if (!finished[f] && ends_n < SAMPLES && receiving(f, &ends[ends_n])) ends_n++;
    next += 1000000;
    u64 t = now();
    if (next < t) next = t;
    sleep_until(next);
  }
  return NULL;
}

/* ---- senders ------------------------------------------------------------------------------------------------------------ */

static u64 started[FLOWS], sent[FLOWS], syn_rtt[FLOWS];

static int open_flow(int flow) {
  enter(sender_ns[flow]);
  int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  if (fd < 0) fail("socket");
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, (socklen_t)strlen(control))) fail("congestion control %s", control);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((u16)(FIRST_PORT + flow))};
  if (bind(fd, (struct sockaddr *)&a, sizeof a)) fail("bind");
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((u16)port), .sin_addr = receiver_ip};
  u64 t = now();
  if (connect(fd, (struct sockaddr *)&to, sizeof to)) fail("flow %d cannot connect", flow);
  syn_rtt[flow] = now() - t;
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

/* Bytes of the next call: all of them are zeros. */
static bool push(int flow, u64 upto) {
  static const unsigned char zeros[CHUNK];
  if (upto > size) upto = size;
  while (sent[flow] < upto) {
    u64 n = upto - sent[flow];
    ssize_t k = send(sockets[flow], zeros, n < CHUNK ? n : CHUNK, MSG_NOSIGNAL);
    if (k < 0 && errno == EAGAIN) return false;
    if (k < 0) fail("flow %d cannot send", flow);
    sent[flow] += (u64)k;
  }
  if (sent[flow] == size && upto == size) shutdown(sockets[flow], SHUT_WR);
  return true;
}

static void on_term(int s) {
  (void)s;
  _exit(3);
}

int main(int argc, char **argv) {
  argc_ = argc, argv_ = argv;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGTERM, on_term);
  mlockall(MCL_CURRENT);
  flows = (int)number("flows"), size = (u64)number("size"), delay = (u64)number("delay"), port = (int)number("port");
  gap = (u64)number("gap"), first = (u64)number("first"), limit = (u64)number("limit"), control = text("control");
  inet_pton(AF_INET, text("receiver_ip"), &receiver_ip);
  int switch_ns = (int)number("switch_ns"), receiver_ns = (int)number("receiver_ns");
  const char *list = text("sender_ns");
  for (int i = 0; i < flows; i++) sender_ns[i] = (int)strtol(list, (char **)&list, 10), list += *list == ',';
  samples = calloc(SAMPLES, sizeof *samples), acks = calloc(ACKS, sizeof *acks);
  memset(acks, 1, ACKS * sizeof *acks);
  memset(samples, 1, (size_t)flows * 20000 * sizeof *samples);
  if (number("receivers")) {
    ends = calloc(SAMPLES, sizeof *ends);
    memset(ends, 1, (size_t)flows * 20000 * sizeof *ends);
  }

  enter(switch_ns);
  u32 slots = (u32)number("slots");
  struct ring before = ring_open(text("before"), slots, false), after = ring_open(text("after"), slots, true);
  line = ring_open(text("line_in"), 1 << 15, false);
  line_out = socket(AF_PACKET, SOCK_RAW, 0);
  struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(text("line_out"))};
  int bypass = 1;
  setsockopt(line_out, SOL_PACKET, PACKET_QDISC_BYPASS, &bypass, sizeof bypass);
  if (bind(line_out, (struct sockaddr *)&a, sizeof a)) fail("bind to the delay line's far end");

  enter(receiver_ns);
  listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in l = {.sin_family = AF_INET, .sin_port = htons((u16)port)};
  /* DCTCP needs both ends: its receiver says exactly which packets had CE. */
  if (setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, control, (socklen_t)strlen(control))) fail("congestion control %s", control);
  if (bind(listener, (struct sockaddr *)&l, sizeof l) || listen(listener, FLOWS)) fail("listen");

  pthread_t line_thread, receiver_thread, sampler_thread;
  pthread_create(&line_thread, NULL, delay_line, NULL);
  pthread_create(&receiver_thread, NULL, receiver, NULL);
  real_time(40, 1);
  for (int f = 0; f < flows; f++) sockets[f] = open_flow(f);
  sleep_until(now() + 20000000);

  /* The barrier: the first bytes of every flow, then the rest in turns, so that copying delays nobody's start. */
  pthread_create(&sampler_thread, NULL, sampler, NULL);
  u64 start = now() + 5000000;
  sleep_until(start);
  for (int f = 0; f < flows; f++) {
    while (now() < start + (u64)f * gap) {}
    started[f] = now();
    push(f, first);
  }
  bool more = true;
  for (u64 upto = CHUNK; more; upto += CHUNK) {
    more = false;
    bool blocked = false;
    for (int f = 0; f < flows; f++) {
      if (sent[f] == size) continue;
      blocked |= !push(f, upto);
      more |= sent[f] < size;
    }
    if (blocked) {
      upto -= CHUNK;
      sleep_until(now() + 500000);
    }
    if (now() - start > limit) break;
  }
  u64 all_written = now();
  while (finished_n < flows && now() - start < limit) sleep_until(now() + 2000000);
  sleep_until(now() + 2 * delay + 30000000);
  sampler_stop = true;
  pthread_join(sampler_thread, NULL);
  line_stop = true;
  pthread_join(line_thread, NULL);

  ring_write(&before, "before.bin", false);
  ring_write(&after, "after.bin", true);
  FILE *f = create("acks.bin");
  fwrite(acks, sizeof *acks, acks_n, f);
  fclose(f);
  f = create("info.bin");
  fwrite(samples, sizeof *samples, samples_n, f);
  fclose(f);
  f = create("ends.bin");
  fwrite(ends, sizeof *ends, ends_n, f);
  fclose(f);
  f = create("flows.csv");
  fprintf(f, "flow,started_ns,finished_ns,syn_rtt_ns,total_retrans,timeouts,snd_wnd\n");
  for (int i = 0; i < flows; i++) {
    struct sample s = sample(i);
    fprintf(f, "%d,%llu,%llu,%llu,%u,%u,%u\n", i, (unsigned long long)started[i], (unsigned long long)finished[i],
            (unsigned long long)syn_rtt[i], s.total_retrans, s.timeouts, s.snd_wnd);
  }
  fclose(f);
  f = create("bed.json");
  fprintf(f, "{\"start_ns\": %llu, \"written_ns\": %llu, \"finished\": %d, \"acks\": %u}\n", (unsigned long long)start,
          (unsigned long long)all_written, finished_n, acks_n);
  fclose(f);
  return 0;
}
