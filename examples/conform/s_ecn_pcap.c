/* S-ECN in C from capture to capture, as a device on the wire would have it, checked byte for byte:
 *
 *   cc -O2 -Wall -o s_ecn_pcap examples/conform/s_ecn_pcap.c && fanin conform s-ecn --captures vectors ./s_ecn_pcap
 *
 * Reads the capture that its first argument names, an event in front of each frame, and writes the frames that leave to the second.
 * docs/vectors.md has the headers, docs/dev/vectors-registers.md the arithmetic. Replace `arrive` and `decide`; the rest stays. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRACTION 20
#define LONGEST ((UINT64_C(1) << 24) - 1)
enum { EVENT = 32, SETTINGS = 255, DEPARTURE = 1, LARGEST = 1 << 18, CE = 3, FCS = 4, GAP = 20 };

static struct { uint64_t rate, clock_ps, credit, k, reset, at_dequeue; } set;
static struct { uint64_t last; int64_t sum; uint32_t owed; int seen; } port;

static uint64_t big(const uint8_t *at, int bytes)
{
    uint64_t value = 0;

    while (bytes--)
        value = value << 8 | *at++;
    return value;
}

static uint64_t setting(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    if (!at)
        fprintf(stderr, "a sequence without %s is none of s-ecn: %s\n", key + (*key == ' '), text), exit(1);
    return strtoull(at + strlen(key), NULL, 10);
}

/* A new sequence: everything as before the first packet. */
static void begin(const char *text)
{
    memset(&port, 0, sizeof port);
    set.rate = setting(text, " rate="), set.clock_ps = setting(text, "clock_ps="), set.credit = setting(text, "credit=");
    set.k = setting(text, " k="), set.reset = setting(text, "reset="), set.at_dequeue = setting(text, "at_dequeue=");
}

/* An arrival: whether the slope earns a mark. */
static int arrive(uint64_t time_ps, uint64_t frame, int capable)
{
    uint64_t clock = time_ps / set.clock_ps, interval = port.seen ? clock - port.last : LONGEST;
    int64_t sendable = (int64_t)(set.rate * (interval < LONGEST ? interval : LONGEST));
    int64_t growth = (int64_t)((frame + GAP) << FRACTION) - sendable, floor = -(int64_t)(set.credit << FRACTION);
    int64_t added = port.sum + growth > floor ? port.sum + growth : floor, rest = added - sendable;
    int by_slope = growth > 0 && added > sendable;

    port.last = clock, port.seen = 1, port.sum = added;
    if (by_slope)
        port.sum = !capable || (rest > sendable && !set.reset) ? sendable : set.reset ? 0 : rest;
    return by_slope && capable;
}

/* Whether a packet gets CE. */
static int decide(int departure, uint64_t time_ps, uint64_t frame, uint64_t queue, int capable)
{
    int due = !departure && arrive(time_ps, frame, capable);

    if (set.at_dequeue && !departure)
        return port.owed += due, 0;
    if (departure && capable && port.owed)
        port.owed--, due = 1;
    return capable && (due || queue >= set.k);
}

/* The IP header of a frame: behind a tag, if there is one. */
static uint8_t *ip_of(uint8_t *frame)
{
    return frame + (big(frame + 12, 2) == 0x8100 ? 18 : 14);
}

static int ecn(const uint8_t *ip)
{
    return ip[0] >> 4 == 6 ? ip[1] >> 4 & 3 : ip[1] & 3;
}

/* CE in the header, and in IPv4 its checksum by RFC 1624, equation 3. */
static void mark(uint8_t *ip)
{
    uint32_t before = (uint32_t)big(ip, 2), sum;

    if (ip[0] >> 4 == 6) {
        ip[1] |= CE << 4;
        return;
    }
    ip[1] |= CE;
    sum = (uint16_t)~big(ip + 10, 2) + (uint16_t)~before + (uint32_t)big(ip, 2);
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (uint16_t)~((sum & 0xFFFF) + (sum >> 16));
    ip[10] = (uint8_t)(sum >> 8), ip[11] = (uint8_t)sum;
}

int main(int argc, char **argv)
{
    static uint8_t packet[LARGEST];
    uint32_t head[6], record[4];                /* as in the file: little-endian, like this machine */
    FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL, *out = in ? fopen(argv[2], "wb") : NULL;

    if (argc != 3)
        return fprintf(stderr, "usage: s_ecn_pcap IN OUT\n"), 2;
    if (!out)
        return perror(argv[in ? 2 : 1]), 1;
    if (fread(head, sizeof head, 1, in) != 1 || fwrite(head, sizeof head, 1, out) != 1)
        return fprintf(stderr, "%s: no capture\n", argv[1]), 1;
    while (fread(record, sizeof record, 1, in) == 1) {
        uint8_t *ip;

        if (record[2] >= LARGEST || fread(packet, record[2], 1, in) != 1)
            return fprintf(stderr, "%s: ends within a packet\n", argv[1]), 1;
        packet[record[2]] = 0;
        if (packet[4] == SETTINGS) {
            begin((char *)packet + EVENT);
            continue;
        }
        ip = ip_of(packet + EVENT);
        if (decide(packet[4] == DEPARTURE, big(packet + 16, 8), record[2] - EVENT + FCS, big(packet + 24, 4), ecn(ip) != 0))
            mark(ip);
        if ((packet[4] == DEPARTURE) == set.at_dequeue && (!fwrite(record, sizeof record, 1, out) || !fwrite(packet, record[2], 1, out)))
            return perror(argv[2]), 1;
    }
    return fclose(out) ? perror(argv[2]), 1 : 0;
}
