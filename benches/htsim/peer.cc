// htsim peer: run one job on a csg-htsim of the user's and print one JSON object.
//
// Usage: peer JOB [OUT.json]        ("-" as OUT, or none, is standard output)
//
// The job file is the ns-3 peer's (../ns3/job.h, ../ns3/README.md), with less in it that has an effect: see kHonoured. A
// statement or option that htsim cannot follow is refused.
//
// A link is a Queue (an ECNQueue at switches if the job marks) and a Pipe each way. Packets carry the list of queues and
// pipes to their sink, so each flow needs `path` lines: one for its data and, for TCP, one for its acknowledgments.
//
// htsim's packets have one size and no headers. A data packet is a full frame with all that it occupies of the wire,
// segment_bytes + IP and TCP headers + wire_overhead, so that it takes the same time; its last one is not shorter. An
// acknowledgment takes htsim's 40 bytes. Queue limit and threshold are so many frames, the one being sent counted.

#include "../ns3/job.h"

#include "cbr.h"
#include "dctcp.h"
#include "ecn.h"
#include "ecnqueue.h"
#include "eventlist.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace
{

// Options that have an effect here; all others must have their defaults.
const std::set<std::string> kHonoured = {"transport",          "timestamps",    "segment_bytes", "initial_window", "ecn_k_packets",
                                         "queue_packets",      "wire_overhead", "count",         "host_queue_packets"};

bool g_count = false;
uint64_t g_hops = 0;
uint64_t g_marked = 0; // packets that arrived with CE
uint64_t g_events = 0;
size_t g_unfinished = 0;
simtime_picosec g_lastDelivery = 0;

// A packet-hop is a packet that arrives over a link.
class CountingPipe : public Pipe
{
  public:
    using Pipe::Pipe;

    void doNextEvent() override
    {
        g_hops += _count > 0;
        Pipe::doNextEvent();
    }
};

struct Finish
{
    simtime_picosec at = 0;
    bool reached = false;

    void Reach(bool now)
    {
        if (now && !reached)
        {
            reached = true;
            at = EventList::now();
        }
    }
};

class Sink : public TcpSink
{
  public:
    uint64_t last = 0; // sequence number of the last byte
    Finish delivered;

    void receivePacket(Packet& pkt) override
    {
        if (g_count)
        {
            g_marked += (pkt.flags() & ECN_CE) != 0;
        }
        TcpSink::receivePacket(pkt);
        delivered.Reach(_cumulative_ack >= last);
    }
};

template <class Base>
class Source : public Base
{
  public:
    using Base::Base;
    uint64_t last = 0;
    Finish acknowledged;

    void receivePacket(Packet& pkt) override
    {
        Base::receivePacket(pkt);
        bool before = acknowledged.reached;
        acknowledged.Reach(this->_last_acked >= last);
        g_unfinished -= acknowledged.reached != before;
    }
};

class LimitedCbr : public CbrSrc
{
  public:
    using CbrSrc::CbrSrc;
    uint64_t packets = 0;

    void doNextEvent() override
    {
        if (uint64_t(_crt_id) <= packets)
        {
            CbrSrc::doNextEvent();
        }
    }
};

class LimitedSink : public CbrSink
{
  public:
    uint64_t packets = 0;
    Finish delivered;

    void receivePacket(Packet& pkt) override
    {
        CbrSink::receivePacket(pkt);
        bool before = delivered.reached;
        delivered.Reach(_received >= packets);
        g_unfinished -= delivered.reached != before;
    }
};

struct Flow
{
    FlowSpec spec;
    uint64_t packets = 0;
    std::unique_ptr<Route> out, back;
    std::unique_ptr<TcpSrc> source;
    std::unique_ptr<Sink> sink;
    std::unique_ptr<LimitedCbr> cbr;
    std::unique_ptr<LimitedSink> cbrSink;
};

struct Direction
{
    std::unique_ptr<Queue> queue;
    std::unique_ptr<Pipe> pipe;
};

using Network = std::map<std::pair<uint32_t, uint32_t>, Direction>; // by (from, to)

// What job.h accepts and htsim cannot do.
std::vector<std::string>
Refusals(const Job& job)
{
    std::vector<std::string> errors;
    for (const auto& [key, value] : job.options)
    {
        if (!kHonoured.count(key) && value != kOptions.at(key))
        {
            errors.push_back("option " + key + " has no effect in htsim: leave it out");
        }
    }
    const std::string& transport = job.Str("transport");
    if (transport != "dctcp" && transport != "newreno" && transport != "udp-cbr")
    {
        errors.push_back("option transport is '" + transport + "': htsim has dctcp|newreno|udp-cbr");
    }
    if (transport == "newreno" && job.Int("ecn_k_packets") > 0)
    {
        errors.push_back("option ecn_k_packets: htsim's newreno does not answer marks");
    }
    if (job.Int("queue_packets") == 0)
    {
        errors.push_back("option queue_bytes: htsim's queues are given in packets here: want queue_packets");
    }
    if (!job.defaults.empty())
    {
        errors.push_back("default lines are ns-3's");
    }
    if (!job.watches.empty())
    {
        errors.push_back("watch lines: no port is watched here");
    }
    for (const FlowSpec& f : job.flows)
    {
        if (f.path.empty() || (!f.cbr && f.ackPath.empty()))
        {
            errors.push_back("flow '" + f.id + "' has no path: htsim's packets carry their routes, so it needs a path line" +
                             (f.cbr ? "" : " each way"));
        }
        if (f.cbr && f.ipBytes != job.flows.front().ipBytes)
        {
            errors.push_back("cbr '" + f.id + "' has packets of another size: htsim has one");
        }
    }
    return errors;
}

// Bytes that a full frame occupies of the wire.
int
FrameBytes(const Job& job)
{
    int64_t overhead = job.Int("wire_overhead");
    const FlowSpec& first = job.flows.front();
    int64_t ip = first.cbr ? first.ipBytes : job.Int("segment_bytes") + 40 + (job.On("timestamps") ? 12 : 0);
    return int(ip + overhead);
}

void
Build(const Job& job, int frame, Network& net)
{
    EventList& events = EventList::getTheEventList();
    mem_b limit = job.Int("queue_packets") * frame;
    mem_b hostLimit = job.Int("host_queue_packets") * frame;
    mem_b k = job.Int("ecn_k_packets") * frame;
    for (const LinkSpec& link : job.links)
    {
        for (auto [from, to] : {std::make_pair(link.a, link.b), std::make_pair(link.b, link.a)})
        {
            Direction& d = net[{from, to}];
            if (job.nodes[from].host)
            {
                d.queue = std::make_unique<Queue>(link.rate, hostLimit, events, nullptr);
            }
            else if (k > 0)
            {
                d.queue = std::make_unique<ECNQueue>(link.rate, limit, events, nullptr, k);
            }
            else
            {
                d.queue = std::make_unique<Queue>(link.rate, limit, events, nullptr);
            }
            d.pipe = g_count ? std::make_unique<CountingPipe>(link.delayPs, events)
                             : std::make_unique<Pipe>(link.delayPs, events);
        }
    }
}

std::unique_ptr<Route>
RouteAlong(const Network& net, const std::vector<uint32_t>& path, PacketSink* end)
{
    auto route = std::make_unique<Route>(int(2 * path.size()));
    for (size_t i = 0; i + 1 < path.size(); ++i)
    {
        const Direction& d = net.at({path[i], path[i + 1]});
        route->push_back(d.queue.get());
        route->push_back(d.pipe.get());
    }
    if (end)
    {
        route->push_back(end);
    }
    return route;
}

template <class Base>
std::unique_ptr<TcpSrc>
MakeSource(uint64_t last)
{
    auto source = std::make_unique<Source<Base>>(nullptr, nullptr, EventList::getTheEventList());
    source->last = last;
    return source;
}

void
SetUp(const Job& job, int frame, const Network& net, Flow& f, TcpRtxTimerScanner& timers)
{
    EventList& events = EventList::getTheEventList();
    if (f.spec.cbr)
    {
        f.packets = f.spec.packets;
        f.cbr = std::make_unique<LimitedCbr>(events, f.spec.rate);
        f.cbr->_mss = frame;
        f.cbr->_period = uint64_t(frame) * 8'000'000'000'000ULL / f.spec.rate;
        f.cbr->packets = f.packets;
        f.cbrSink = std::make_unique<LimitedSink>();
        f.cbrSink->packets = f.packets;
        f.out = RouteAlong(net, f.spec.path, f.cbrSink.get());
        f.cbr->connect(*f.out, *f.cbrSink, f.spec.startPs);
        return;
    }
    uint64_t segment = job.Int("segment_bytes");
    f.packets = (f.spec.bytes + segment - 1) / segment;
    uint64_t last = 1 + f.packets * frame; // the SYN is byte 1
    f.source = job.Str("transport") == "dctcp" ? MakeSource<DCTCPSrc>(last) : MakeSource<TcpSrc>(last);
    f.source->_flow_size = (f.packets - 1) * frame; // it sends until it has sent more than this
    f.source->set_cwnd(job.Int("initial_window") * frame);
    f.sink = std::make_unique<Sink>();
    f.sink->last = last;
    f.out = RouteAlong(net, f.spec.path, f.sink.get());
    f.back = RouteAlong(net, f.spec.ackPath, f.source.get());
    f.source->connect(*f.out, *f.back, *f.sink, f.spec.startPs);
    timers.registerTcp(*f.source);
}

double
CpuSeconds()
{
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + 1e-6 * (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

// Most memory that this process has held [MB]; getrusage would count the one that forked it.
double
PeakMb()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
    {
        if (line.rfind("VmHWM:", 0) == 0)
        {
            return std::stod(line.substr(6)) * 1024 / 1e6;
        }
    }
    return 0;
}

} // namespace

// A function of its own, with a name that instruction counters find.
extern "C" __attribute__((noinline)) void
htsim_run_loop()
{
    while (g_unfinished > 0 && EventList::doNextEvent())
    {
        ++g_events;
    }
}

namespace
{

void
FlowJson(const Flow& f, const Job& job, int frame, std::ostream& out)
{
    const Finish& done = f.spec.cbr ? f.cbrSink->delivered : f.sink->delivered;
    uint64_t whole = f.spec.cbr ? f.cbrSink->_received : (std::max<uint64_t>(f.sink->_cumulative_ack, 1) - 1) / frame;
    uint64_t payload = f.spec.cbr ? f.spec.ipBytes - 28 : job.Int("segment_bytes");
    uint64_t bytes = f.spec.cbr ? whole * payload : std::min(f.spec.bytes, whole * payload);
    uint64_t sent = f.spec.cbr ? f.cbr->_crt_id - 1 : f.source->_packets_sent / frame;
    out << "{\"id\": \"" << f.spec.id << "\", \"start_ps\": " << f.spec.startPs << ", \"finish_ps\": ";
    done.reached ? out << done.at : out << "null";
    out << ", \"bytes\": " << bytes << ", \"segments\": " << sent << ", \"retransmits\": " << sent - std::min(sent, f.packets)
        << ", \"timeouts\": null}";
    g_lastDelivery = std::max(g_lastDelivery, done.at);
}

int
Run(const Job& job, std::ostream& out)
{
    g_count = job.On("count");
    double before = CpuSeconds();
    int frame = FrameBytes(job);
    Packet::set_packet_size(frame);
    Network net;
    Build(job, frame, net);
    TcpRtxTimerScanner timers(timeFromMs(10), EventList::getTheEventList());
    std::vector<Flow> flows(job.flows.size());
    for (size_t i = 0; i < flows.size(); ++i)
    {
        flows[i].spec = job.flows[i];
        SetUp(job, frame, net, flows[i], timers);
    }
    g_unfinished = flows.size();
    double setup = CpuSeconds() - before;

    auto wall = std::chrono::steady_clock::now();
    double cpu = CpuSeconds();
    htsim_run_loop();
    cpu = CpuSeconds() - cpu;
    double wallS = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();

    uint64_t drops = 0;
    for (const auto& [ends, d] : net)
    {
        drops += d.queue->num_drops();
    }
    out.precision(12);
    out << "{\"simulator\": \"csg-htsim\",\n \"options\": {";
    const char* comma = "";
    for (const auto& [key, value] : job.options)
    {
        if (kHonoured.count(key))
        {
            out << comma << "\"" << key << "\": \"" << value << "\"";
            comma = ", ";
        }
    }
    out << "},\n \"flows\": [";
    comma = "\n  ";
    for (const Flow& f : flows)
    {
        out << comma;
        FlowJson(f, job, frame, out);
        comma = ",\n  ";
    }
    out << "],\n \"totals\": {\"packet_hops\": ";
    g_count ? out << g_hops : out << "null";
    out << ", \"marks\": ";
    g_count ? out << g_marked : out << "null";
    out << ", \"events\": " << g_events << ", \"drops\": " << drops << ", \"unfinished\": " << g_unfinished
        << ", \"sim_s\": " << 1e-12 * double(g_lastDelivery) << ", \"setup_s\": " << setup << ", \"cpu_s\": " << cpu
        << ", \"wall_s\": " << wallS << ", \"peak_rss_mb\": " << PeakMb() << "}}" << std::endl;
    return 0;
}

} // namespace

int
main(int argc, char** argv)
{
    std::ostream standard(std::cout.rdbuf(nullptr)); // htsim says on cout when a flow ends
    return RunJob(argc, argv, standard, Refusals, Run);
}
