/* S-ECN in C, as a block that decides about each packet of a simulated run:
 *
 *   cc -O2 -Wall -o s_ecn examples/cosim/s_ecn.c && ./s_ecn fanin.sock
 *
 * docs/dev/cosimulation-protocol.md has the protocol, docs/dev/vectors-registers.md the arithmetic. Replace `decide` by your own; the rest stays.
 * Settings: k and credit [B], clock_ps, reset (1: a mark takes the whole sum). */
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

static struct { uint64_t k, clock; int64_t floor; int departures, reset; } set;

static int arrive(struct port *port, const struct fanin_request *p)
{
    uint64_t clock = p->time_ps / set.clock, interval = port->seen ? clock - port->last : LONGEST;
    int64_t sendable = (int64_t)(port->rate * (interval < LONGEST ? interval : LONGEST));
    int64_t growth = ((int64_t)(p->frame + port->overhead) << FRACTION) - sendable;
    int64_t added = port->sum + growth > set.floor ? port->sum + growth : set.floor;
    int slope = growth > 0 && added > sendable;

    port->seen = 1, port->last = clock, port->sum = added;
    if (slope)
        port->sum = !p->ecn || (added - sendable > sendable && !set.reset) ? sendable : set.reset ? 0 : added - sendable;
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

/* One run, to its end. */
static int run(int fd)
{
    static struct fanin_port told[PORTS];
    static struct port ports[PORTS];
    struct fanin_hello hello;
    struct fanin_request request;
    char word[sizeof hello.settings + 1];
    uint32_t at = 0;

    if (fanin_greet(fd, "s-ecn in C", "1", &hello, told, PORTS))
        return perror("a run"), 1;
    if (fanin_only(&hello, "k credit clock_ps reset", word))
        return fprintf(stderr, "a run: settings: %s: accepted: k, credit, clock_ps and reset, each =NUMBER\n", word), 1;
    set.k = fanin_setting(&hello, "k", UINT64_MAX), set.clock = fanin_setting(&hello, "clock_ps", 8000);
    set.floor = -(int64_t)(fanin_setting(&hello, "credit", 1538) << FRACTION), set.departures = hello.departures;
    set.reset = fanin_setting(&hello, "reset", 0) != 0;
    if (!set.clock || !hello.ports)
        return fprintf(stderr, "a run: clock_ps is 0 or no number, or it has no ports\n"), 1;
    for (uint32_t i = 0; i < hello.ports; i++)
        ports[i].rate = fanin_rate(&told[i], set.clock), ports[i].overhead = told[i].overhead;
    while (fanin_next(fd, &request) == 1) {
        while (told[at].number != request.port)     /* most often the same port again */
            at = (at + 1) % hello.ports;
        if (fanin_answer(fd, &request, decide(&ports[at], &request)))
            break;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int listener;

    if (argc < 2)
        return fprintf(stderr, "usage: s_ecn SOCKET [RUNS]\n"), 2;
    if ((listener = fanin_listen(argv[1])) < 0)
        return perror(argv[1]), 1;
    signal(SIGCHLD, SIG_IGN);
    puts("ready");
    fflush(stdout);
    for (long runs = argc > 2 ? atol(argv[2]) : -1; runs; runs -= runs > 0) {
        int fd = accept(listener, NULL, NULL);
        pid_t child;

        if (fd < 0)
            return perror(argv[1]), 1;
        if (!(child = fork()))          /* runs may be several at once, and silent: each has a process of its own */
            _exit(run(fd));
        if (child < 0)
            perror("a run: fork");      /* it sees its connection closed; the next may have more luck */
        close(fd);
    }
    while (wait(NULL) > 0)
        ;
    return unlink(argv[1]);
}
