// What is measured: queues of watched ports, packet-hops, and both ends of every flow.
#pragma once

#include "job.h"
#include "routing.h"

#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"

#include <fstream>
#include <map>
#include <vector>

using namespace ns3;

inline int64_t g_shiftPs = 0; // simulator time minus time of the job

inline int64_t
NowPs()
{
    return Simulator::Now().GetPicoSeconds() - g_shiftPs;
}

// One egress port. "Port" figures count the packet being sent, "waiting" figures do not. Sizes are IP bytes.
class PortWatch
{
  public:
    struct Level
    {
        int64_t packets = 0, bytes = 0, peakPackets = 0, peakBytes = 0;
        __int128 sumPackets = 0, sumBytes = 0; // over time

        void Add(int64_t n, int64_t b)
        {
            packets += n;
            bytes += b;
        }

        void Peak()
        {
            peakPackets = std::max(peakPackets, packets);
            peakBytes = std::max(peakBytes, bytes);
        }
    };

    WatchSpec spec;
    Ptr<QueueDisc> disc;
    int64_t fromPs = 0, toPs = 0; // toPs 0: the last delivery

    void Connect(Ptr<NetDevice> device)
    {
        disc->TraceConnectWithoutContext("Enqueue", MakeCallback(&PortWatch::Enqueue, this));
        disc->TraceConnectWithoutContext("Drop", MakeCallback(&PortWatch::Drop, this));
        disc->TraceConnectWithoutContext("Mark", MakeCallback(&PortWatch::Mark, this));
        device->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&PortWatch::Begin, this));
        device->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&PortWatch::End, this));
        if (!spec.trace.empty())
        {
            m_trace.open(spec.trace);
            NS_ABORT_MSG_IF(!m_trace, "cannot write " << spec.trace);
            m_trace << "time_ps,event,ip_bytes,port_packets,port_bytes\n";
        }
    }

    void Delivered() // everything so far belongs to the mean
    {
        Advance();
        m_atDelivery[0] = m_port;
        m_atDelivery[1] = m_waiting;
        m_deliveryPs = NowPs();
    }

    void Json(std::ostream& out, const Job& job)
    {
        Advance();
        const QueueDisc::Stats& s = disc->GetStats();
        const Level& port = toPs > 0 ? m_port : m_atDelivery[0];
        const Level& waiting = toPs > 0 ? m_waiting : m_atDelivery[1];
        double span = double((toPs > 0 ? std::min(toPs, NowPs()) : m_deliveryPs) - fromPs);
        out << "{\"port\": [\"" << job.nodes[spec.a].name << "\", \"" << job.nodes[spec.b].name << "\"]";
        Figures(out, "", port, m_port, span);
        Figures(out, "waiting_", waiting, m_waiting, span);
        out << ", \"tx_packets\": " << m_txPackets << ", \"tx_bytes\": " << m_txBytes
            << ", \"drops\": " << s.nTotalDroppedPackets << ", \"marks\": " << s.nTotalMarkedPackets << "}";
    }

  private:
    static void Figures(std::ostream& out, const char* prefix, const Level& mean, const Level& peak, double span)
    {
        out << ", \"" << prefix << "peak_packets\": " << peak.peakPackets << ", \"" << prefix
            << "peak_bytes\": " << peak.peakBytes << ", \"" << prefix
            << "mean_packets\": " << (span > 0 ? double(mean.sumPackets) / span : 0) << ", \"" << prefix
            << "mean_bytes\": " << (span > 0 ? double(mean.sumBytes) / span : 0);
    }

    void Advance()
    {
        int64_t now = NowPs();
        if (now == m_lastPs)
        {
            return;
        }
        m_waiting.Peak(); // a packet that is sent at once never waits: only levels that last count
        int64_t from = std::max(m_lastPs, fromPs);
        int64_t to = toPs > 0 ? std::min(now, toPs) : now;
        if (to > from)
        {
            for (Level* l : {&m_port, &m_waiting})
            {
                l->sumPackets += __int128(l->packets) * (to - from);
                l->sumBytes += __int128(l->bytes) * (to - from);
            }
        }
        m_lastPs = now;
    }

    void Row(const char* event, int64_t bytes)
    {
        if (m_trace.is_open())
        {
            m_trace << NowPs() << ',' << event << ',' << bytes << ',' << m_port.packets << ',' << m_port.bytes << '\n';
        }
    }

    void Enqueue(Ptr<const QueueDiscItem> item)
    {
        Advance();
        m_port.Add(1, item->GetSize());
        m_waiting.Add(1, item->GetSize());
        m_port.Peak();
        Row("enqueue", item->GetSize());
    }

    void Drop(Ptr<const QueueDiscItem> item)
    {
        Row("drop", item->GetSize());
    }

    void Mark(Ptr<const QueueDiscItem> item, const char*)
    {
        Row("mark", item->GetSize());
    }

    void Begin(Ptr<const Packet> p)
    {
        Advance();
        m_waiting.Add(-1, -int64_t(p->GetSize() - 2));
    }

    void End(Ptr<const Packet> p)
    {
        Advance();
        m_port.Add(-1, -int64_t(p->GetSize() - 2));
        ++m_txPackets;
        m_txBytes += p->GetSize() - 2;
        Row("sent", p->GetSize() - 2);
    }

    Level m_port, m_waiting, m_atDelivery[2];
    int64_t m_lastPs = 0, m_deliveryPs = 0;
    uint64_t m_txPackets = 0, m_txBytes = 0;
    std::ofstream m_trace;
};

inline std::vector<PortWatch> g_watches;
inline uint64_t g_hops = 0;
inline int64_t g_lastDeliveryPs = 0;

inline void
CountHop(Ptr<const Packet>)
{
    ++g_hops;
}

// Both ends of one flow.
class FlowRun
{
  public:
    FlowSpec spec;
    Ptr<Node> src, dst;
    uint16_t srcPort = 0, dstPort = 0;
    bool count = false;
    uint32_t overhead = 0;
    int64_t aheadPs = 0;

    void Setup()
    {
        if (spec.cbr)
        {
            m_sink = Socket::CreateSocket(dst, UdpSocketFactory::GetTypeId());
            m_sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), dstPort));
            m_sink->SetRecvCallback(MakeCallback(&FlowRun::Receive, this));
            m_socket = Socket::CreateSocket(src, UdpSocketFactory::GetTypeId());
            m_socket->Bind(InetSocketAddress(AddressOf(spec.src), srcPort));
            m_socket->Connect(InetSocketAddress(AddressOf(spec.dst), dstPort));
            At(spec.startPs, &FlowRun::SendCbr);
        }
        else
        {
            At(spec.startPs - aheadPs, &FlowRun::Open);
            At(spec.startPs, &FlowRun::Start);
        }
    }

    void Accepted(Ptr<Socket> s)
    {
        m_sink = s;
        s->SetRecvCallback(MakeCallback(&FlowRun::Receive, this));
    }

    bool Done() const
    {
        return m_finishPs >= 0;
    }

    void Json(std::ostream& out) const
    {
        out << "{\"id\": \"" << spec.id << "\", \"start_ps\": " << spec.startPs << ", \"established_ps\": ";
        Maybe(out, m_establishedPs != INT64_MIN, m_establishedPs);
        out << ", \"finish_ps\": ";
        Maybe(out, Done(), m_finishPs);
        out << ", \"bytes\": " << m_received << ", \"packets\": ";
        Maybe(out, spec.cbr, m_packets);
        out << ", \"segments\": ";
        Maybe(out, count && !spec.cbr, m_segments);
        out << ", \"retransmits\": ";
        Maybe(out, count && !spec.cbr, m_retransmits);
        out << ", \"syn_retransmits\": ";
        Maybe(out, count && !spec.cbr, std::max<int64_t>(0, int64_t(m_syns) - 1));
        out << ", \"timeouts\": ";
        Maybe(out, count && !spec.cbr, m_timeouts);
        out << ", \"failed\": " << (m_failed ? "true" : "false") << "}";
    }

  private:
    static void Maybe(std::ostream& out, bool known, int64_t value)
    {
        known ? out << value : out << "null";
    }

    void At(int64_t ps, void (FlowRun::*what)()) // a time of the job, not a delay
    {
        Simulator::ScheduleWithContext(src->GetId(), PicoSeconds(ps - NowPs()), what, this);
    }

    void Open()
    {
        m_socket = Socket::CreateSocket(src, TcpSocketFactory::GetTypeId());
        m_socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), srcPort));
        m_socket->SetConnectCallback(MakeCallback(&FlowRun::Established, this), MakeCallback(&FlowRun::Failed, this));
        m_socket->SetCloseCallbacks(MakeNullCallback<void, Ptr<Socket>>(), MakeCallback(&FlowRun::Failed, this));
        m_socket->SetSendCallback(MakeCallback(&FlowRun::Room, this));
        if (count)
        {
            m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&FlowRun::Sent, this));
            m_socket->TraceConnectWithoutContext("Rx", MakeCallback(&FlowRun::Heard, this));
            m_socket->TraceConnectWithoutContext("RTO", MakeCallback(&FlowRun::Rto, this));
        }
        m_socket->Connect(InetSocketAddress(AddressOf(spec.dst), dstPort));
    }

    void Start()
    {
        m_started = true;
        Fill();
    }

    void Established(Ptr<Socket>)
    {
        m_establishedPs = NowPs();
        Fill();
    }

    void Failed(Ptr<Socket>)
    {
        m_failed = true;
    }

    void Room(Ptr<Socket>, uint32_t)
    {
        Fill();
    }

    void Fill() // the socket takes data only after Connect, and sends it once established
    {
        while (m_started && m_establishedPs != INT64_MIN && m_given < spec.bytes)
        {
            uint32_t n = std::min<uint64_t>(m_socket->GetTxAvailable(), spec.bytes - m_given);
            m_given += n; // before Send, which may call back
            if (n == 0)
            {
                return;
            }
            NS_ABORT_MSG_IF(m_socket->Send(Create<Packet>(n)) != int(n), "a socket with room refused data");
        }
    }

    void SendCbr()
    {
        m_socket->Send(Create<Packet>(spec.ipBytes - 28));
        if (++m_segments < spec.packets)
        {
            __int128 ps = __int128(m_segments) * (spec.ipBytes + overhead) * 8 * 1'000'000'000'000 / spec.rate;
            At(spec.startPs + int64_t(ps), &FlowRun::SendCbr);
        }
    }

    void Receive(Ptr<Socket> s)
    {
        while (Ptr<Packet> p = s->Recv())
        {
            m_received += p->GetSize();
            ++m_packets;
        }
        if (spec.cbr ? m_packets == spec.packets : m_received == spec.bytes)
        {
            m_finishPs = NowPs();
        }
        g_lastDeliveryPs = NowPs();
        if (spec.cbr || Done())
        {
            for (auto& w : g_watches)
            {
                w.Delivered();
            }
        }
    }

    void Sent(Ptr<const Packet> p, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        if (p->GetSize() == 0)
        {
            m_syns += (header.GetFlags() & TcpHeader::SYN) != 0;
            return;
        }
        ++m_segments;
        if (header.GetSequenceNumber() < m_high)
        {
            ++m_retransmits;
        }
        m_high = std::max(m_high, header.GetSequenceNumber() + SequenceNumber32(p->GetSize()));
    }

    void Heard(Ptr<const Packet>, const TcpHeader&, Ptr<const TcpSocketBase>)
    {
        m_heardPs = NowPs();
    }

    // ns-3 does not report timeouts, but it doubles the RTO at that moment; all other changes of the RTO, once data
    // flow, coincide with a packet that arrives.
    void Rto(Time before, Time after)
    {
        if (m_segments > 0 && after == before + before && m_heardPs != NowPs())
        {
            ++m_timeouts;
        }
    }

    Ptr<Socket> m_socket, m_sink;
    SequenceNumber32 m_high{0};
    bool m_started = false, m_failed = false;
    uint64_t m_given = 0, m_received = 0, m_packets = 0, m_segments = 0, m_retransmits = 0, m_timeouts = 0, m_syns = 0;
    int64_t m_establishedPs = INT64_MIN, m_finishPs = -1, m_heardPs = INT64_MIN;
};

// The listening end of one host: hands accepted sockets to their flows.
class Listener
{
  public:
    std::map<std::pair<uint32_t, uint16_t>, FlowRun*> flows; // by source address and port

    void Listen(Ptr<Node> node, uint16_t port)
    {
        m_socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        m_socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        m_socket->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                    MakeCallback(&Listener::Accept, this));
        m_socket->Listen();
    }

  private:
    void Accept(Ptr<Socket> s, const Address& from)
    {
        InetSocketAddress a = InetSocketAddress::ConvertFrom(from);
        flows.at({a.GetIpv4().Get(), a.GetPort()})->Accepted(s);
    }

    Ptr<Socket> m_socket;
};
