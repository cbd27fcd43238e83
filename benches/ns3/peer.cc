// ns-3 peer: run one scenario on Debian's ns-3.37 and print one JSON object.
//
// Usage: peer JOB [OUT.json]        ("-" as OUT, or none, is standard output)
//
// Job file: one statement per line, words separated by blanks, "#" starts a comment. All times are integers in
// picoseconds, all rates integers in bit/s, all sizes integers in bytes. Unknown words are refused, and all errors
// are reported at once, each with its line number. Statements:
//
//   fanin-ns3-job 1                          first statement: format and version
//   option KEY VALUE                         see kOptions in job.h, or README.md
//   default NS3_ATTRIBUTE VALUE              any other ns-3 default, e.g. ns3::TcpCubic::HyStart false
//   node NAME host|switch
//   link A B RATE DELAY                      full duplex; at most one between two nodes
//   flow ID SRC DST BYTES START              one TCP transfer, transport as in "option transport"
//   cbr ID SRC DST RATE IP_BYTES PACKETS START   UDP; RATE counts wire bytes (IP_BYTES + wire_overhead)
//   path ID NODE NODE ...                    pin the path of a flow; from DST to SRC it pins the path of its ACKs
//   watch A B [TRACE.csv]                    the egress port of A towards B
//
// Wire model: a point-to-point device adds 2 bytes of PPP; the remaining wire_overhead - 2 bytes are an inter-frame
// gap of the sender plus the same time added to the delay of the link. Hence a packet of N IP bytes occupies the link
// for exactly (N + wire_overhead) * 8 / rate and arrives DELAY after that time has passed, as if all were payload.
//
// Port model: a queue disc, a device queue of one packet and the packet being sent. Queue limit and ECN threshold of
// a job count every packet at the port, the one being sent included, so the disc gets two packets less than the job says.

#include "job.h"
#include "probe.h"
#include "routing.h"

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

template <typename T>
void
Default(const std::string& name, const T& value)
{
    Config::SetDefault(name, value);
}

void
SetDefaults(const Job& job)
{
    Time::SetResolution(Time::PS);
    static const std::map<std::string, TypeId> transports = {{"newreno", TcpNewReno::GetTypeId()},
                                                             {"linux-reno", TcpLinuxReno::GetTypeId()},
                                                             {"cubic", TcpCubic::GetTypeId()},
                                                             {"dctcp", TcpDctcp::GetTypeId()},
                                                             {"udp-cbr", TcpNewReno::GetTypeId()}};
    Default("ns3::TcpL4Protocol::SocketType", TypeIdValue(transports.at(job.Str("transport"))));
    Default("ns3::TcpL4Protocol::RecoveryType",
            TypeIdValue(job.Str("recovery") == "prr" ? TcpPrrRecovery::GetTypeId()
                                                     : TcpClassicRecovery::GetTypeId()));
    Default("ns3::TcpSocketBase::Sack", BooleanValue(job.On("sack")));
    Default("ns3::TcpSocketBase::Timestamp", BooleanValue(job.On("timestamps")));
    Default("ns3::TcpSocket::SegmentSize", UintegerValue(job.Int("segment_bytes")));
    Default("ns3::TcpSocket::InitialCwnd", UintegerValue(job.Int("initial_window")));
    Default("ns3::TcpSocket::DelAckCount", UintegerValue(job.Int("delack_count")));
    Default("ns3::TcpSocket::DelAckTimeout", TimeValue(PicoSeconds(job.Int("delack_timeout_ps"))));
    Default("ns3::TcpSocket::SndBufSize", UintegerValue(job.Int("snd_buffer_bytes")));
    Default("ns3::TcpSocket::RcvBufSize", UintegerValue(job.Int("rcv_buffer_bytes")));
    Default("ns3::TcpSocket::ConnTimeout", TimeValue(PicoSeconds(job.Int("rto_initial_ps"))));
    Default("ns3::TcpSocket::DataRetries", UintegerValue(1000)); // ns-3 gives up after 6 timeouts
    Default("ns3::TcpSocket::ConnCount", UintegerValue(20));
    Default("ns3::RttEstimator::InitialEstimation", TimeValue(PicoSeconds(job.Int("rto_initial_ps"))));
    Default("ns3::TcpSocketBase::MinRto", TimeValue(PicoSeconds(job.Int("rto_min_ps"))));
    Default("ns3::TcpSocketBase::ClockGranularity", TimeValue(PicoSeconds(job.Int("clock_granularity_ps"))));
    Default("ns3::TcpDctcp::DctcpShiftG", DoubleValue(std::stod(job.Str("dctcp_g"))));
    Default("ns3::TcpDctcp::DctcpAlphaOnInit", DoubleValue(std::stod(job.Str("dctcp_alpha"))));
    bool ecn = job.Int("ecn_k_packets") > 0 || job.Int("ecn_k_bytes") > 0;
    Default("ns3::TcpSocketBase::UseEcn", EnumValue(ecn ? TcpSocketState::On : TcpSocketState::Off));
    for (const auto& [name, value] : job.defaults)
    {
        if (!Config::SetDefaultFailSafe(name, StringValue(value)))
        {
            std::cerr << "job: ns-3 refuses default " << name << " = " << value << "\n";
            std::exit(2);
        }
    }
    static const std::map<std::string, std::string> schedulers = {{"map", "ns3::MapScheduler"},
                                                                  {"heap", "ns3::HeapScheduler"},
                                                                  {"calendar", "ns3::CalendarScheduler"},
                                                                  {"priority-queue", "ns3::PriorityQueueScheduler"}};
    Simulator::SetScheduler(ObjectFactory(schedulers.at(job.Str("scheduler"))));
}

// The queue disc of one port.
TrafficControlHelper
DiscFor(const Job& job, bool host, const LinkSpec& link)
{
    TrafficControlHelper tc;
    bool packets = job.Int("queue_packets") > 0;
    int64_t full = job.Int("segment_bytes") + 40 + (job.On("timestamps") ? 12 : 0);
    int64_t inDevice = packets ? 2 : 2 * full; // the device queue and the packet being sent
    int64_t size = (packets ? job.Int("queue_packets") : job.Int("queue_bytes")) - inDevice;
    int64_t k = (packets ? job.Int("ecn_k_packets") : job.Int("ecn_k_bytes")) - inDevice;
    if (host)
    {
        tc.SetRootQueueDisc("ns3::FifoQueueDisc",
                            "MaxSize",
                            QueueSizeValue(QueueSize(PACKETS, job.Int("host_queue_packets"))));
        return tc;
    }
    QueueSizeValue limit(QueueSize(packets ? PACKETS : BYTES, size));
    if (k <= 0)
    {
        tc.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", limit);
        return tc;
    }
    tc.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", limit); // as in ns-3's dctcp-example, with one threshold
    Default("ns3::RedQueueDisc::UseEcn", BooleanValue(true));
    Default("ns3::RedQueueDisc::UseHardDrop", BooleanValue(false));
    Default("ns3::RedQueueDisc::Gentle", BooleanValue(false));
    Default("ns3::RedQueueDisc::QW", DoubleValue(1.0));
    Default("ns3::RedQueueDisc::MinTh", DoubleValue(k));
    Default("ns3::RedQueueDisc::MaxTh", DoubleValue(k));
    Default("ns3::RedQueueDisc::MeanPktSize", UintegerValue(full));
    Default("ns3::RedQueueDisc::LinkBandwidth", DataRateValue(DataRate(link.rate)));
    return tc;
}

struct Network
{
    NodeContainer nodes;
    std::vector<Ptr<FlowHashRouting>> routing;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> interfaces; // (a, b): interface number at a
    std::map<std::pair<uint32_t, uint32_t>, Ptr<NetDevice>> devices;
    std::vector<Ptr<QueueDisc>> discs;
};

// The rate to give to a device so that its transmission times, which ns-3 rounds down, come out exact.
uint64_t
NudgedRate(uint64_t rate)
{
    uint64_t nudged = rate - rate / 1'000'000'000;
    for (uint32_t bytes = 42; bytes <= 1502; ++bytes)
    {
        int64_t exact = int64_t(uint64_t(bytes) * 8'000'000'000'000ULL / rate);
        int64_t off = DataRate(nudged).CalculateBytesTxTime(bytes).GetPicoSeconds() - exact;
        NS_ABORT_MSG_IF(off > 0 || off < (rate >= 1'000'000'000 ? 0 : -1),
                        "ns-3 gives a transmission time off by " << off << " ps at " << rate << " bit/s");
    }
    return nudged;
}

void
Build(const Job& job, Network& net)
{
    net.nodes.Create(job.nodes.size());
    InternetStackHelper stack;
    stack.SetRoutingHelper(FlowHashRoutingHelper());
    stack.SetIpv6StackInstall(false);
    stack.Install(net.nodes);
    for (uint32_t i = 0; i < job.nodes.size(); ++i)
    {
        auto r = DynamicCast<FlowHashRouting>(net.nodes.Get(i)->GetObject<Ipv4>()->GetRoutingProtocol());
        r->isHost = job.nodes[i].host;
        r->ecmp = job.On("ecmp");
        r->seed = job.Int("ecmp_seed");
        r->self = i;
        r->routes.resize(1); // interface 0 is the loopback
        net.routing.push_back(r);
    }
    std::map<uint64_t, uint64_t> nudged;
    uint32_t gapBytes = job.Int("wire_overhead") - 2;
    for (const LinkSpec& l : job.links)
    {
        if (!nudged.count(l.rate))
        {
            nudged[l.rate] = NudgedRate(l.rate);
        }
        Time gap = PicoSeconds(gapBytes * (8'000'000'000'000ULL / l.rate));
        PointToPointHelper p2p;
        p2p.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1p"));
        p2p.SetDeviceAttribute("DataRate", DataRateValue(DataRate(nudged[l.rate])));
        p2p.SetDeviceAttribute("InterframeGap", TimeValue(gap));
        p2p.SetDeviceAttribute("Mtu", UintegerValue(9000));
        p2p.SetChannelAttribute("Delay", TimeValue(PicoSeconds(l.delayPs) + gap));
        NetDeviceContainer two = p2p.Install(net.nodes.Get(l.a), net.nodes.Get(l.b));
        for (uint32_t end = 0; end < 2; ++end)
        {
            uint32_t at = end == 0 ? l.a : l.b;
            uint32_t to = end == 0 ? l.b : l.a;
            Ptr<NetDevice> device = two.Get(end);
            net.discs.push_back(DiscFor(job, job.nodes[at].host, l).Install(device).Get(0));
            Ptr<Ipv4> ipv4 = net.nodes.Get(at)->GetObject<Ipv4>();
            uint32_t i = ipv4->AddInterface(device);
            if (job.nodes[at].host)
            {
                ipv4->AddAddress(i, Ipv4InterfaceAddress(AddressOf(at), Ipv4Mask::GetOnes()));
            }
            ipv4->SetMetric(i, 1);
            ipv4->SetUp(i);
            Ptr<Ipv4Route> route = Create<Ipv4Route>();
            route->SetSource(AddressOf(at));
            route->SetGateway(AddressOf(to));
            route->SetOutputDevice(device);
            auto& routes = net.routing[at]->routes;
            NS_ABORT_MSG_IF(routes.size() != i, "interface numbers are not consecutive");
            routes.push_back(route);
            net.interfaces[{at, to}] = i;
            net.devices[{at, to}] = device;
            for (PortWatch& w : g_watches)
            {
                if (w.spec.a == at && w.spec.b == to)
                {
                    w.disc = net.discs.back();
                    w.Connect(device);
                }
            }
            if (job.On("count"))
            {
                device->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&CountHop));
            }
        }
    }
}

// Next hops on all shortest paths, by a search from each host that does not pass through other hosts.
void
Route(const Job& job, Network& net)
{
    std::vector<std::vector<uint32_t>> neighbours(job.nodes.size());
    for (const LinkSpec& l : job.links)
    {
        neighbours[l.a].push_back(l.b);
        neighbours[l.b].push_back(l.a);
    }
    std::vector<std::map<std::vector<uint32_t>, uint16_t>> known(job.nodes.size());
    for (auto& r : net.routing)
    {
        r->groupOf.assign(job.nodes.size(), UINT16_MAX);
    }
    for (uint32_t dst = 0; dst < job.nodes.size(); ++dst)
    {
        if (!job.nodes[dst].host)
        {
            continue;
        }
        std::vector<uint32_t> distance(job.nodes.size(), UINT32_MAX);
        std::vector<uint32_t> order{dst};
        distance[dst] = 0;
        for (size_t i = 0; i < order.size(); ++i)
        {
            uint32_t at = order[i];
            if (job.nodes[at].host && at != dst)
            {
                continue;
            }
            for (uint32_t n : neighbours[at])
            {
                if (distance[n] == UINT32_MAX)
                {
                    distance[n] = distance[at] + 1;
                    order.push_back(n);
                }
            }
        }
        for (size_t i = 1; i < order.size(); ++i)
        {
            uint32_t at = order[i];
            std::vector<uint32_t> group;
            for (uint32_t n : neighbours[at])
            {
                if (distance[n] + 1 == distance[at])
                {
                    group.push_back(net.interfaces[{at, n}]);
                }
            }
            FlowHashRouting& r = *net.routing[at];
            auto [it, fresh] = known[at].emplace(group, r.groups.size());
            if (fresh)
            {
                r.groups.push_back(group);
            }
            r.groupOf[dst] = it->second;
        }
    }
    for (const FlowSpec& f : job.flows)
    {
        if (net.routing[f.src]->groupOf[f.dst] == UINT16_MAX)
        {
            std::cerr << "job: no path for flow '" << f.id << "'\n";
            std::exit(2);
        }
    }
}

void
Pin(Network& net, const std::vector<uint32_t>& path, uint16_t fromPort, uint16_t toPort)
{
    for (size_t i = 1; i + 1 < path.size(); ++i)
    {
        FourTuple key{AddressOf(path.front()).Get(), AddressOf(path.back()).Get(), uint32_t(fromPort) << 16 | toPort};
        net.routing[path[i]]->pinned[key] = net.interfaces[{path[i], path[i + 1]}];
    }
}

double
CpuSeconds()
{
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + 1e-6 * (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int
Run(const Job& job, std::ostream& out)
{
    SetDefaults(job);
    int64_t ahead = job.Int("handshake_ahead_ps");
    g_shiftPs = ahead;
    g_watches.resize(job.watches.size());
    for (size_t i = 0; i < job.watches.size(); ++i)
    {
        g_watches[i].spec = job.watches[i];
        g_watches[i].fromPs = job.Int("mean_from_ps");
        g_watches[i].toPs = job.Int("mean_to_ps");
    }
    Network net;
    Build(job, net);
    Route(job, net);

    const uint16_t listenPort = 5000;
    std::vector<FlowRun> flows(job.flows.size());
    std::map<uint32_t, Listener> listeners;
    std::vector<uint32_t> asSource(job.nodes.size()), asSink(job.nodes.size());
    for (size_t i = 0; i < flows.size(); ++i)
    {
        FlowRun& f = flows[i];
        f.spec = job.flows[i];
        f.src = net.nodes.Get(f.spec.src);
        f.dst = net.nodes.Get(f.spec.dst);
        NS_ABORT_MSG_IF(asSource[f.spec.src] >= 50000 || asSink[f.spec.dst] >= 40000, "too many flows at one host");
        f.srcPort = 10000 + asSource[f.spec.src]++;
        f.dstPort = f.spec.cbr ? 20000 + asSink[f.spec.dst]++ : listenPort;
        f.count = job.On("count");
        f.overhead = job.Int("wire_overhead");
        f.aheadPs = std::max<int64_t>(0, ahead - int64_t(i) * job.Int("handshake_spacing_ps"));
        Pin(net, f.spec.path, f.srcPort, f.dstPort);
        Pin(net, f.spec.ackPath, f.dstPort, f.srcPort);
        if (!f.spec.cbr)
        {
            Listener& l = listeners[f.spec.dst];
            if (l.flows.empty())
            {
                l.Listen(f.dst, listenPort);
            }
            l.flows[{AddressOf(f.spec.src).Get(), f.srcPort}] = &f;
        }
        f.Setup();
    }
    if (job.Int("stop_ps") > 0)
    {
        Simulator::Stop(PicoSeconds(job.Int("stop_ps") + g_shiftPs));
    }

    auto wall = std::chrono::steady_clock::now();
    double cpu = CpuSeconds();
    Simulator::Run();
    cpu = CpuSeconds() - cpu;
    double wallS = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();

    rusage u;
    getrusage(RUSAGE_SELF, &u);
    uint64_t drops = 0, marks = 0;
    for (auto& d : net.discs)
    {
        drops += d->GetStats().nTotalDroppedPackets;
        marks += d->GetStats().nTotalMarkedPackets;
    }
    out.precision(12);
    out << "{\"simulator\": \"ns-3.37\",\n \"options\": {";
    const char* comma = "";
    for (const auto& [key, value] : job.options)
    {
        out << comma << "\"" << key << "\": \"" << value << "\"";
        comma = ", ";
    }
    out << "},\n \"flows\": [";
    comma = "\n  ";
    size_t unfinished = 0;
    for (const FlowRun& f : flows)
    {
        out << comma;
        f.Json(out);
        comma = ",\n  ";
        unfinished += !f.Done();
    }
    out << "],\n \"ports\": [";
    comma = "\n  ";
    for (PortWatch& w : g_watches)
    {
        out << comma;
        w.Json(out, job);
        comma = ",\n  ";
    }
    out << "],\n \"totals\": {\"packet_hops\": ";
    job.On("count") ? out << g_hops : out << "null";
    out << ", \"events\": " << Simulator::GetEventCount() << ", \"drops\": " << drops << ", \"marks\": " << marks
        << ", \"unfinished\": " << unfinished << ", \"sim_s\": " << 1e-12 * double(g_lastDeliveryPs)
        << ", \"cpu_s\": " << cpu << ", \"wall_s\": " << wallS << ", \"peak_rss_mb\": " << u.ru_maxrss / 1024.0
        << "}}\n";
    return 0;
}

} // namespace

int
main(int argc, char** argv)
{
    auto refusals = [](const Job&) { return std::vector<std::string>(); };
    return RunJob(argc, argv, std::cout, refusals, Run);
}
