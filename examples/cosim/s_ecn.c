/* S-ECN in C, as a block that decides about each packet of a simulated run:
 *
 *   cc -O2 -Wall -o s_ecn examples/cosim/s_ecn.c && ./s_ecn fanin.sock
 *
 * docs/cosimulation.md has the protocol, docs/vectors.md the arithmetic. Replace `decide` by your own; the rest stays. */
#include "../../dataplane/cosim/fanin_cosim.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

enum { FRACTION = 20, PORTS = 1024 };
#define LONGEST ((UINT64_C(1) << 24) - 1)

/* One port. */
struct port {
    uint64_t rate;      /* R [2^-20 B per clock] */
    uint64_t last;      /* clock of the arrival before */
    int64_t sum;
    uint32_t owed;      /* marks earned that no departure has taken */
    uint16_t overhead;
    int seen;
};

static struct { uint64_t k, clock; int64_t floor; int departures; } set;

static int arrive(struct port *port, const struct fanin_request *p)
{
    uint64_t clock = p->time_ps / set.clock, interval = port->seen ? clock - port->last : LONGEST;
    int64_t sendable = (int64_t)(port->rate * (interval < LONGEST ? interval : LONGEST));
    int64_t growth = ((int64_t)(p->frame + port->overhead) << FRACTION) - sendable;
    int64_t added = port->sum + growth > set.floor ? port->sum + growth : set.floor;
    int slope = growth > 0 && added > sendable;

    port->seen = 1, port->last = clock, port->sum = added;
    if (slope)
        port->sum = p->ecn && added - sendable < sendable ? added - sendable : sendable;
    return slope && p->ecn;
}

static unsigned decide(struct port *port, const struct fanin_request *p)
{
    int departure = (p->bits & 3) == FANIN_DEPARTURE;
    int slope = !departure && arrive(port, p);

    if (set.departures && !departure) {
        port->owed += slope;
        return FANIN_PASS;
    }
    if (departure && p->ecn && port->owed) {
        port->owed--;
        slope = 1;
    }
    return p->ecn && (slope || p->queue_bytes >= set.k) ? FANIN_MARK : FANIN_PASS;
}

int main(int argc, char **argv)
{
    static struct fanin_port told[PORTS];
    struct fanin_hello hello;
    struct fanin_request request;
    int listener = argc > 1 ? fanin_listen(argv[1]) : -1;

    if (listener < 0)
        return perror(argc > 1 ? argv[1] : "usage: s_ecn SOCKET [RUNS]"), 1;
    signal(SIGCHLD, SIG_IGN);
    puts("ready");
    fflush(stdout);
    for (long runs = argc > 2 ? atol(argv[2]) : -1; runs; runs -= runs > 0) {
        struct port ports[PORTS] = {0};
        int at = 0, fd = fanin_accept(listener, "s-ecn in C", "1", &hello, told, PORTS);

        if (fd < 0)
            return perror("a run"), 1;
        if (fork()) {           /* runs may be several at once: each has a process of its own */
            close(fd);
            continue;
        }
        set.k = fanin_setting(&hello, "k", UINT64_MAX), set.clock = fanin_setting(&hello, "clock_ps", 8000);
        set.floor = -(int64_t)(fanin_setting(&hello, "credit", 1538) << FRACTION), set.departures = hello.departures;
        for (uint32_t i = 0; i < hello.ports; i++)
            ports[i].rate = fanin_rate(&told[i], set.clock), ports[i].overhead = told[i].overhead;
        while (fanin_next(fd, &request) == 1) {
            while (told[at].number != request.port)     /* most often the same port again */
                at = (at + 1) % (int)hello.ports;
            if (fanin_answer(fd, &request, decide(&ports[at], &request)))
                break;
        }
        _exit(0);
    }
    while (wait(NULL) > 0)
        ;
    return unlink(argv[1]);
}
