/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The block's side of Fanin's co-simulation socket, in C: docs/dev/cosimulation-protocol.md. Include it, listen, accept, answer.
 * Functions return -1 with errno where a call of the system fails, and EPROTO where the other end speaks something else. */
#ifndef FANIN_COSIM_H
#define FANIN_COSIM_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are little-endian, and read as they are");

#define FANIN_COSIM_VERSION 2
enum { FANIN_PASS, FANIN_MARK, FANIN_DROP, FANIN_DETOUR };
enum { FANIN_ARRIVAL, FANIN_DEPARTURE, FANIN_REFUSAL, FANIN_WAY };
enum { FANIN_ROOM = 1, FANIN_TO_HOST = 2, FANIN_BACK = 4 };

struct fanin_hello {
  char magic[8];
  uint32_t version, ports;
  uint64_t seed;
  uint8_t departures, refusals, detours, zero[5];
  char settings[480]; /* words KEY=VALUE, zeros behind */
};

struct fanin_port {
  uint32_t number;
  uint16_t overhead; /* wire bytes of each frame besides its own */
  uint8_t classes, unit; /* of `buffer`: 0 none of its own, 1 bytes, 2 packets, 3 cells */
  uint64_t rate_bps, buffer;
  uint8_t asked; /* 0: packets may go there by the block's decision, which is not asked about those */
  uint8_t zero[7];
  char name[64];
};

struct fanin_welcome {
  char magic[8];
  uint32_t version, zero;
  char name[48], block_version[32];
};

struct fanin_request {
  uint64_t number, time_ps, free_at_ps, queue_bytes;
  uint32_t queue_packets, port, flow, hash, src, dst;
  uint16_t frame, payload;
  uint8_t bits; /* moment in the lowest two; 4: the queue is that of the class; 8: a control frame */
  uint8_t ecn, cls, ttl;
};

struct fanin_reply {
  uint64_t number;
  uint8_t decision, zero[3];
  uint32_t port; /* of a detour */
};

/* Another port of the switch, behind a request of FANIN_WAY. */
struct fanin_way {
  uint32_t port;
  uint8_t bits, zero[3]; /* FANIN_ROOM, FANIN_TO_HOST, FANIN_BACK */
  uint64_t queue_bytes;
};

_Static_assert(sizeof(struct fanin_hello) == 512 && sizeof(struct fanin_port) == 96 && sizeof(struct fanin_welcome) == 96, "sizes");
_Static_assert(sizeof(struct fanin_request) == 64 && sizeof(struct fanin_reply) == 16 && sizeof(struct fanin_way) == 16, "sizes");

/* Bytes of a frame: 1 all of them, 0 the connection ended before it, -1 an error. */
static inline int fanin_read(int fd, void *frame, size_t size) {
  for (size_t got = 0; got < size;) {
    ssize_t n = read(fd, (char *)frame + got, size - got);
    if (n == 0 && got == 0) return 0;
    if (n == 0) errno = EPROTO;
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    got += (size_t)n;
  }
  return 1;
}

static inline int fanin_write(int fd, const void *frame, size_t size) {
  for (size_t put = 0; put < size;) {
    ssize_t n = write(fd, (const char *)frame + put, size - put);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    put += (size_t)n;
  }
  return 0;
}

/* A socket at `path`, in the place of one that is there. */
static inline int fanin_listen(const char *path) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof at.sun_path) return errno = ENAMETOOLONG, -1;
  strcpy(at.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  unlink(path);
  if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 4)) return -1;
  return fd;
}

/* Greets a run, a connection that was accepted, and reads its first frame and its ports, `most` at most: 0, or -1. It waits for the other end. */
static inline int fanin_greet(int fd, const char *name, const char *version, struct fanin_hello *hello, struct fanin_port *ports,
                              unsigned most) {
  struct fanin_welcome welcome = {.version = FANIN_COSIM_VERSION};
  memcpy(welcome.magic, "fanin-co", 8);
  memcpy(welcome.name, name, strnlen(name, sizeof welcome.name));
  memcpy(welcome.block_version, version, strnlen(version, sizeof welcome.block_version));
  errno = EPROTO;
  if (fanin_read(fd, hello, sizeof *hello) == 1 && !memcmp(hello->magic, "fanin-co", 8) && !fanin_write(fd, &welcome, sizeof welcome)) {
    errno = EPROTO;
    if (hello->version == FANIN_COSIM_VERSION && hello->ports <= most && fanin_read(fd, ports, hello->ports * sizeof *ports) == 1) return 0;
  }
  return -1;
}

/* The next request: 1, or 0 at the end of the run. */
static inline int fanin_next(int fd, struct fanin_request *request) { return fanin_read(fd, request, sizeof *request); }

/* The ways behind a request of FANIN_WAY, `most` at most: their number, or -1. */
static inline int fanin_ways(int fd, struct fanin_way *ways, unsigned most) {
  uint32_t head[2];
  if (fanin_read(fd, head, sizeof head) != 1) return -1;
  if (head[0] > most) return errno = EPROTO, -1;
  return head[0] == 0 || fanin_read(fd, ways, head[0] * sizeof *ways) == 1 ? (int)head[0] : -1;
}

static inline int fanin_detour(int fd, const struct fanin_request *request, uint32_t port) {
  struct fanin_reply reply = {.number = request->number, .decision = FANIN_DETOUR, .port = port};
  return fanin_write(fd, &reply, sizeof reply);
}

static inline int fanin_answer(int fd, const struct fanin_request *request, unsigned decision) {
  struct fanin_reply reply = {.number = request->number, .decision = (uint8_t)decision};
  return fanin_write(fd, &reply, sizeof reply);
}

/* A whole number among the settings. */
static inline uint64_t fanin_setting(const struct fanin_hello *hello, const char *key, uint64_t absent) {
  char text[sizeof hello->settings + 1] = {0}, *rest = text;
  memcpy(text, hello->settings, sizeof hello->settings);
  for (char *word; (word = strtok_r(rest, " ", &rest));)
    if (!strncmp(word, key, strlen(key)) && word[strlen(key)] == '=') absent = strtoull(word + strlen(key) + 1, NULL, 10);
  return absent;
}

/* Checks that the settings are words KEY=NUMBER with these keys, between spaces: 0, or -1 with the first other word in `word`. */
static inline int fanin_only(const struct fanin_hello *hello, const char *keys, char word[sizeof hello->settings + 1]) {
  char text[sizeof hello->settings + 1] = {0}, *rest = text;
  memcpy(text, hello->settings, sizeof hello->settings);
  for (char *found; (found = strtok_r(rest, " ", &rest));) {
    size_t key = strcspn(found, "=");
    int known = 0;
    for (const char *at = keys; *at; at += strspn(at, " ")) {
      size_t length = strcspn(at, " ");
      known |= length == key && !strncmp(at, found, key);
      at += length;
    }
    const char *value = found + key + (found[key] == '=');
    if (known && found[key] && *value && value[strspn(value, "0123456789")] == 0) continue;
    strcpy(word, found);
    return -1;
  }
  return 0;
}

/* R of S-ECN [2^-20 B per clock] of a port, in clocks of so many ps. */
static inline uint64_t fanin_rate(const struct fanin_port *port, uint64_t clock_ps) {
  return (uint64_t)(((unsigned __int128)port->rate_bps * clock_ps << 20) / 8000000000000u);
}

#endif
