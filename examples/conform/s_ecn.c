/* S-ECN in C, as a firmware would have it, checked bit for bit:
 *
 *   cc -O2 -Wall -o s_ecn examples/conform/s_ecn.c && fanin conform s-ecn ./s_ecn
 *
 * Standard input is CSV, a header and a line for each event; the answer is CSV too, a header with the columns that this
 * program answers and a line for each event. docs/dev/vectors-registers.md has the columns and the arithmetic. Replace `arrive` and
 * `decide` by your own; the rest stays. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRACTION 20                             /* fraction bits of bytes */
#define LONGEST ((UINT64_C(1) << 24) - 1)       /* the largest interval that the register holds, in clocks */

/* Columns of the input, in the order of docs/dev/vectors-registers.md. */
enum { SEQUENCE, RATE_BPS, CLOCK_PS, RATE, CREDIT, K, RESET, AT_DEQUEUE, /* settings */
       PACKET, DEPARTURE, TIME_PS, CLOCKS, FRAME, WIRE, ECN, QUEUE, COLUMNS };

static const char HEADER[] = "sequence,rate_bps,clock_ps,rate,credit,k,reset,at_dequeue,"
                             "packet,departure,time_ps,clocks,frame,wire,ecn,queue";

/* One port. */
struct port {
    uint64_t last;      /* clock of the arrival before */
    int seen;           /* an arrival was there */
    int64_t sum;        /* 37 bits, signed */
    uint32_t owed;      /* marks earned that no departure has taken; at dequeue only */
};

/* What the arithmetic gives for one arrival. */
struct step {
    uint64_t interval;
    int64_t sendable, growth, added;
    int by_slope;
};

/* Two adders, a multiplier and comparators. */
static struct step arrive(struct port *port, const uint64_t *in)
{
    struct step s;
    const int64_t floor = -((int64_t)in[CREDIT] << FRACTION);

    s.interval = port->seen ? in[CLOCKS] - port->last : LONGEST;
    if (s.interval > LONGEST)
        s.interval = LONGEST;
    port->last = in[CLOCKS];
    port->seen = 1;
    s.sendable = (int64_t)(in[RATE] * s.interval);
    s.growth = ((int64_t)in[WIRE] << FRACTION) - s.sendable;
    s.added = port->sum + s.growth;
    if (s.added < floor)
        s.added = floor;
    s.by_slope = s.growth > 0 && s.added > s.sendable;
    if (!s.by_slope)
        port->sum = s.added;
    else if (in[ECN] == 0)              /* not ECN-capable: the mark waits */
        port->sum = s.sendable;
    else if (in[RESET])
        port->sum = 0;
    else
        port->sum = s.added - s.sendable < s.sendable ? s.added - s.sendable : s.sendable;
    return s;
}

/* Whether the packet gets CE. */
static int decide(struct port *port, const uint64_t *in, int by_slope, int by_k)
{
    if (!in[AT_DEQUEUE])
        return in[ECN] != 0 && (by_slope || by_k);
    if (!in[DEPARTURE]) {
        port->owed += by_slope && in[ECN] != 0;
        return 0;
    }
    if (in[ECN] == 0 || (port->owed == 0 && !by_k))
        return 0;
    if (port->owed > 0)
        port->owed--;
    return 1;
}

int main(void)
{
    char line[1024];
    struct port port = {0};
    uint64_t in[COLUMNS], sequence = UINT64_MAX;

    if (!fgets(line, sizeof line, stdin) || strncmp(line, HEADER, sizeof HEADER - 1) != 0) {
        fprintf(stderr, "s_ecn: other columns than those of this program\n");
        return 1;
    }
    puts("by_slope,by_k,mark,interval,sendable,growth,added,sum,owed");
    while (fgets(line, sizeof line, stdin)) {
        struct step s = {0};
        char *at = line;
        int by_k, mark;

        for (int i = 0; i < COLUMNS; i++, at += *at == ',')
            in[i] = strtoull(at, &at, 10);
        if (in[SEQUENCE] != sequence) {         /* a new sequence: everything as before the first packet */
            memset(&port, 0, sizeof port);
            sequence = in[SEQUENCE];
        }
        if (!in[DEPARTURE])
            s = arrive(&port, in);
        by_k = in[DEPARTURE] == in[AT_DEQUEUE] && in[QUEUE] >= in[K];
        mark = decide(&port, in, s.by_slope, by_k);
        printf("%d,%d,%d,%" PRIu64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRIu32 "\n", s.by_slope, by_k, mark, s.interval,
               s.sendable, s.growth, s.added, in[DEPARTURE] ? 0 : port.sum, port.owed);
    }
    return 0;
}
