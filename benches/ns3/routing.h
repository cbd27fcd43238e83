// Per-flow ECMP over shortest paths, with paths that can be pinned.
#pragma once

#include "ns3/internet-module.h"
#include "ns3/network-module.h"

#include <unordered_map>
#include <vector>

using namespace ns3;

inline const uint32_t kFirstAddress = 0x0A000001; // host i is 10.0.0.1 + i

inline Ipv4Address
AddressOf(uint32_t node)
{
    return Ipv4Address(kFirstAddress + node);
}

inline uint64_t
Mix(uint64_t x) // splitmix64 finaliser
{
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

struct FourTuple
{
    uint32_t src, dst, ports;

    bool operator==(const FourTuple& o) const
    {
        return src == o.src && dst == o.dst && ports == o.ports;
    }
};

struct FourTupleHash
{
    size_t operator()(const FourTuple& k) const
    {
        return Mix((uint64_t(k.src) << 32 | k.dst) ^ Mix(k.ports));
    }
};

// Shortest paths, one choice per flow and switch by a seeded hash of addresses, protocol and ports, with a table
// indexed by destination. (Ipv4GlobalRouting of ns-3.37 draws per packet and searches a list per packet.)
class FlowHashRouting : public Ipv4RoutingProtocol
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("fanin::FlowHashRouting").SetParent<Ipv4RoutingProtocol>();
        return tid;
    }

    bool isHost = false;
    bool ecmp = true;
    uint32_t self = 0;
    uint64_t seed = 0;
    std::vector<uint16_t> groupOf;             // by destination node
    std::vector<std::vector<uint32_t>> groups; // equal next hops, as interface numbers
    std::vector<Ptr<Ipv4Route>> routes;        // by interface number
    std::unordered_map<FourTuple, uint32_t, FourTupleHash> pinned;

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header& header, Ptr<NetDevice>, Socket::SocketErrno& err) override
    {
        err = Socket::ERROR_NOTERROR;
        return routes[groups[groupOf[header.GetDestination().Get() - kFirstAddress]].front()];
    }

    bool RouteInput(Ptr<const Packet> p,
                    const Ipv4Header& header,
                    Ptr<const NetDevice>,
                    UnicastForwardCallback forward,
                    MulticastForwardCallback,
                    LocalDeliverCallback deliver,
                    ErrorCallback) override
    {
        uint32_t dst = header.GetDestination().Get() - kFirstAddress;
        if (isHost)
        {
            deliver(p, header, 1);
            return dst == self;
        }
        const std::vector<uint32_t>& group = groups[groupOf[dst]];
        uint32_t out = group.front();
        if ((ecmp && group.size() > 1) || !pinned.empty())
        {
            uint8_t raw[4]; // TCP and UDP both start with the two ports
            p->CopyData(raw, 4);
            FourTuple key{header.GetSource().Get(),
                          header.GetDestination().Get(),
                          uint32_t(raw[0]) << 24 | uint32_t(raw[1]) << 16 | uint32_t(raw[2]) << 8 | raw[3]};
            auto pin = pinned.find(key);
            if (pin != pinned.end())
            {
                out = pin->second;
            }
            else if (ecmp && group.size() > 1)
            {
                uint64_t h = Mix(seed ^ Mix(self + 1) ^ Mix(FourTupleHash()(key) + header.GetProtocol()));
                out = group[h % group.size()];
            }
        }
        forward(routes[out], p, header);
        return true;
    }

    void NotifyInterfaceUp(uint32_t) override
    {
    }

    void NotifyInterfaceDown(uint32_t) override
    {
    }

    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }

    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }

    void SetIpv4(Ptr<Ipv4>) override
    {
    }

    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override
    {
    }
};

class FlowHashRoutingHelper : public Ipv4RoutingHelper
{
  public:
    FlowHashRoutingHelper* Copy() const override
    {
        return new FlowHashRoutingHelper(*this);
    }

    Ptr<Ipv4RoutingProtocol> Create(Ptr<Node>) const override
    {
        return CreateObject<FlowHashRouting>();
    }
};
