// The job file: its format is described at the top of peer.cc. No ns-3 in here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <istream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

inline const std::map<std::string, std::string> kOptions = {
    {"transport", "newreno"},       // newreno (RFC 5681 growth) | linux-reno | cubic | dctcp | udp-cbr (no flow lines)
    {"recovery", "prr"},            // prr | classic (ns-3 TcpClassicRecovery: cwnd = ssthresh at once)
    {"sack", "on"},                 //
    {"timestamps", "on"},           // 12 bytes of header in every segment; RTT samples then have 1 ms granularity
    {"segment_bytes", "1448"},      // TCP payload of a full segment
    {"initial_window", "10"},       // segments
    {"delack_count", "2"},          // segments per ACK
    {"delack_timeout_ps", "200000000000"},
    {"rto_min_ps", "1000000000000"},
    {"rto_initial_ps", "1000000000000"}, // SYN timeout and first estimate of the RTT
    {"clock_granularity_ps", "1000000000"}, // G of RFC 6298
    {"dctcp_g", "0.0625"},          //
    {"dctcp_alpha", "1.0"},         // initial alpha
    {"ecn_k_packets", "0"},         // step marking when the port holds at least this much on arrival; 0 is off
    {"ecn_k_bytes", "0"},           //
    {"queue_packets", "0"},         // capacity of a switch port; exactly one of the two
    {"queue_bytes", "0"},           //
    {"host_queue_packets", "1000000"},
    {"snd_buffer_bytes", "4194304"},
    {"rcv_buffer_bytes", "4194304"},
    {"ecmp", "on"},                 // per flow; off takes the first of the equal next hops
    {"ecmp_seed", "1"},             //
    {"handshake_ahead_ps", "0"},    // open connections this long before the start of each flow
    {"handshake_spacing_ps", "0"},  // the i-th flow opens this much times i later: SYNs of an incast do not collide
    {"stop_ps", "0"},               // 0: until nothing is left to do
    {"mean_from_ps", "0"},          // window of time-weighted means
    {"mean_to_ps", "0"},            // 0: the last delivery
    {"wire_overhead", "38"},        // bytes on the wire over the IP packet
    {"count", "on"},                // packet-hops, retransmissions, timeouts; off for timing
    {"scheduler", "map"},           // map (ns-3's default) | heap | calendar | priority-queue
};

struct NodeSpec
{
    std::string name;
    bool host;
};

struct LinkSpec
{
    uint32_t a, b;
    uint64_t rate;
    int64_t delayPs;
};

struct FlowSpec
{
    std::string id;
    uint32_t src, dst;
    bool cbr;
    uint64_t bytes;   // TCP: application bytes
    uint64_t rate;    // CBR
    uint32_t ipBytes; // CBR
    uint64_t packets; // CBR
    int64_t startPs;
    std::vector<uint32_t> path;    // data direction, empty: hashed
    std::vector<uint32_t> ackPath; // ACK direction
};

struct WatchSpec
{
    uint32_t a, b;
    std::string trace;
};

struct Job
{
    std::map<std::string, std::string> options = kOptions;
    std::vector<std::pair<std::string, std::string>> defaults;
    std::vector<NodeSpec> nodes;
    std::vector<LinkSpec> links;
    std::vector<FlowSpec> flows;
    std::vector<WatchSpec> watches;

    const std::string& Str(const char* key) const
    {
        return options.at(key);
    }

    int64_t Int(const char* key) const
    {
        return std::stoll(options.at(key));
    }

    bool On(const char* key) const
    {
        return options.at(key) == "on";
    }
};

class Parser
{
  public:
    explicit Parser(std::istream& in)
    {
        std::string line;
        while (std::getline(in, line))
        {
            ++m_line;
            line = line.substr(0, line.find('#'));
            std::istringstream words(line);
            std::vector<std::string> w;
            for (std::string x; words >> x;)
            {
                w.push_back(x);
            }
            if (!w.empty())
            {
                Statement(w);
            }
        }
        m_line = 0;
        Whole();
    }

    Job job;
    std::vector<std::string> errors;

  private:
    void Error(const std::string& text)
    {
        errors.push_back((m_line ? "line " + std::to_string(m_line) + ": " : std::string("job: ")) + text);
    }

    uint64_t Number(const std::string& word, const char* what, uint64_t least, uint64_t most)
    {
        bool digits = !word.empty() && word.size() <= 19 && word.find_first_not_of("0123456789") == std::string::npos;
        uint64_t value = digits ? std::stoull(word) : 0;
        if (!digits || value < least || value > most)
        {
            Error(std::string(what) + " is '" + word + "': want an integer from " + std::to_string(least) + " to " +
                  std::to_string(most));
            return least;
        }
        return value;
    }

    uint32_t NodeIndex(const std::string& name, const char* what, bool mustBeHost)
    {
        auto it = m_index.find(name);
        if (it == m_index.end())
        {
            Error(std::string(what) + " '" + name + "' is no node defined above");
            return 0;
        }
        if (mustBeHost && !job.nodes[it->second].host)
        {
            Error(std::string(what) + " '" + name + "' is no host");
        }
        return it->second;
    }

    bool Words(const std::vector<std::string>& w, size_t least, size_t most, const char* form)
    {
        if (w.size() < least || w.size() > most)
        {
            Error(std::string("want: ") + form);
            return false;
        }
        return true;
    }

    bool NewFlow(const std::string& id)
    {
        if (id.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.:-") !=
            std::string::npos)
        {
            Error("flow id '" + id + "': want letters, digits and _.:-");
            return false;
        }
        if (!m_flows.emplace(id, job.flows.size()).second)
        {
            Error("flow '" + id + "' is defined twice");
            return false;
        }
        return true;
    }

    void Option(const std::string& key, const std::string& value)
    {
        static const std::map<std::string, std::set<std::string>> words = {
            {"transport", {"newreno", "linux-reno", "cubic", "dctcp", "udp-cbr"}},
            {"recovery", {"prr", "classic"}},
            {"sack", {"on", "off"}},
            {"timestamps", {"on", "off"}},
            {"ecmp", {"on", "off"}},
            {"count", {"on", "off"}},
            {"scheduler", {"map", "heap", "calendar", "priority-queue"}},
        };
        auto it = job.options.find(key);
        if (it == job.options.end())
        {
            Error("unknown option '" + key + "'");
            return;
        }
        auto choice = words.find(key);
        if (choice != words.end())
        {
            if (!choice->second.count(value))
            {
                std::string all;
                for (const auto& x : choice->second)
                {
                    all += (all.empty() ? "" : "|") + x;
                }
                Error("option " + key + " is '" + value + "': want " + all);
                return;
            }
        }
        else if (key == "dctcp_g" || key == "dctcp_alpha")
        {
            char* end = nullptr;
            double x = std::strtod(value.c_str(), &end);
            if (*end != 0 || !(x >= 0 && x <= 1))
            {
                Error("option " + key + " is '" + value + "': want a number from 0 to 1");
                return;
            }
        }
        else
        {
            const uint64_t ps = 4'000'000'000'000'000'000ULL;
            bool small = key == "segment_bytes" || key == "wire_overhead" || key == "delack_count" ||
                         key == "initial_window";
            bool time = key.size() > 3 && key.substr(key.size() - 3) == "_ps";
            uint64_t least = key == "segment_bytes" || key == "initial_window" || key == "delack_count" ? 1
                             : key == "wire_overhead"                                                   ? 2
                                                                                                        : 0;
            size_t before = errors.size();
            Number(value, ("option " + key).c_str(), least, small ? 9000 : time || key == "ecmp_seed" ? ps : 2000000000);
            if (errors.size() > before)
            {
                return;
            }
        }
        it->second = value;
    }

    void Statement(const std::vector<std::string>& w)
    {
        const uint64_t most = 4'000'000'000'000'000'000ULL;
        const uint64_t rateMost = 10'000'000'000'000ULL;
        const std::string& kind = w[0];
        if (!m_header)
        {
            m_header = true;
            if (w != std::vector<std::string>{"fanin-ns3-job", "1"})
            {
                Error("the first statement must be: fanin-ns3-job 1");
            }
            return;
        }
        if (kind == "option")
        {
            if (Words(w, 3, 3, "option KEY VALUE"))
            {
                Option(w[1], w[2]);
            }
        }
        else if (kind == "default")
        {
            if (Words(w, 3, 3, "default NS3_ATTRIBUTE VALUE"))
            {
                job.defaults.emplace_back(w[1], w[2]);
            }
        }
        else if (kind == "node")
        {
            if (!Words(w, 3, 3, "node NAME host|switch"))
            {
                return;
            }
            if (w[2] != "host" && w[2] != "switch")
            {
                Error("node kind is '" + w[2] + "': want host|switch");
            }
            if (w[1].find_first_of("\"\\") != std::string::npos)
            {
                Error("node name '" + w[1] + "' may not contain quotes or backslashes");
            }
            if (!m_index.emplace(w[1], job.nodes.size()).second)
            {
                Error("node '" + w[1] + "' is defined twice");
                return;
            }
            job.nodes.push_back({w[1], w[2] == "host"});
        }
        else if (kind == "link")
        {
            if (!Words(w, 5, 5, "link A B RATE DELAY"))
            {
                return;
            }
            LinkSpec l{NodeIndex(w[1], "link end", false), NodeIndex(w[2], "link end", false), 0, 0};
            l.rate = Number(w[3], "rate [bit/s]", 1000, rateMost);
            l.delayPs = Number(w[4], "delay [ps]", 0, most);
            if (l.a == l.b || !m_pairs.emplace(std::min(l.a, l.b), std::max(l.a, l.b)).second)
            {
                Error("second link between '" + w[1] + "' and '" + w[2] + "', or a link to itself");
                return;
            }
            job.links.push_back(l);
        }
        else if (kind == "flow")
        {
            if (!Words(w, 6, 6, "flow ID SRC DST BYTES START") || !NewFlow(w[1]))
            {
                return;
            }
            FlowSpec f{w[1], NodeIndex(w[2], "source", true), NodeIndex(w[3], "destination", true), false};
            f.bytes = Number(w[4], "bytes", 1, 4'000'000'000ULL); // 32-bit sequence numbers are not wrapped
            f.startPs = Number(w[5], "start [ps]", 0, most);
            job.flows.push_back(f);
        }
        else if (kind == "cbr")
        {
            if (!Words(w, 8, 8, "cbr ID SRC DST RATE IP_BYTES PACKETS START") || !NewFlow(w[1]))
            {
                return;
            }
            FlowSpec f{w[1], NodeIndex(w[2], "source", true), NodeIndex(w[3], "destination", true), true};
            f.rate = Number(w[4], "rate [bit/s]", 1000, rateMost);
            f.ipBytes = Number(w[5], "ip bytes", 28, 9000);
            f.packets = Number(w[6], "packets", 1, 1'000'000'000'000ULL);
            f.startPs = Number(w[7], "start [ps]", 0, most);
            job.flows.push_back(f);
        }
        else if (kind == "path")
        {
            if (!Words(w, 4, 1000, "path ID NODE NODE ..."))
            {
                return;
            }
            auto it = m_flows.find(w[1]);
            if (it == m_flows.end())
            {
                Error("path of '" + w[1] + "', which is no flow defined above");
                return;
            }
            FlowSpec& f = job.flows[it->second];
            std::vector<uint32_t> p;
            for (size_t i = 2; i < w.size(); ++i)
            {
                p.push_back(NodeIndex(w[i], "path node", false));
                if (i > 2 && !m_pairs.count({std::min(p[i - 3], p[i - 2]), std::max(p[i - 3], p[i - 2])}))
                {
                    Error("no link between '" + w[i - 1] + "' and '" + w[i] + "'");
                }
            }
            if (!((p.front() == f.src && p.back() == f.dst) || (p.front() == f.dst && p.back() == f.src)))
            {
                Error("path of flow '" + w[1] + "' does not join its ends");
            }
            if (p.front() == f.dst) // the ACK direction
            {
                f.ackPath = p;
            }
            else
            {
                f.path = p;
            }
        }
        else if (kind == "watch")
        {
            if (!Words(w, 3, 4, "watch A B [TRACE.csv]"))
            {
                return;
            }
            WatchSpec x{NodeIndex(w[1], "port owner", false), NodeIndex(w[2], "port peer", false), ""};
            x.trace = w.size() == 4 ? w[3] : "";
            if (!m_pairs.count({std::min(x.a, x.b), std::max(x.a, x.b)}))
            {
                Error("no link between '" + w[1] + "' and '" + w[2] + "'");
                return;
            }
            job.watches.push_back(x);
        }
        else
        {
            Error("unknown statement '" + kind + "'");
        }
    }

    // Rules that need the whole file.
    void Whole()
    {
        if (job.links.empty() || job.flows.empty())
        {
            Error("a job needs links and flows");
        }
        bool packets = job.Int("queue_packets") > 0;
        bool bytes = job.Int("queue_bytes") > 0;
        if (packets == bytes)
        {
            Error("give exactly one of option queue_packets and option queue_bytes");
        }
        if ((packets && job.Int("ecn_k_bytes") > 0) || (bytes && job.Int("ecn_k_packets") > 0))
        {
            Error("ns-3's RED counts threshold and limit in one unit: give both in packets or both in bytes");
        }
        if (packets && job.Int("queue_packets") < 3)
        {
            Error("option queue_packets is below 3: one packet in the disc, one in the device queue, one being sent");
        }
        if (job.Int("ecn_k_packets") > 0 && job.Int("ecn_k_packets") < 4)
        {
            Error("option ecn_k_packets is below 4: RED never marks with fewer than two packets in its disc");
        }
        int64_t full = FullPacket();
        if (bytes && job.Int("queue_bytes") < 3 * full)
        {
            Error("option queue_bytes is below three full packets (" + std::to_string(3 * full) + ")");
        }
        if (job.Int("ecn_k_bytes") > 0 && job.Int("ecn_k_bytes") < 4 * full)
        {
            Error("option ecn_k_bytes is below four full packets (" + std::to_string(4 * full) + ")");
        }
        if (job.Str("transport") == "dctcp" && job.Int("ecn_k_bytes") == 0 && job.Int("ecn_k_packets") == 0)
        {
            Error("transport dctcp needs option ecn_k_packets or ecn_k_bytes");
        }
        std::vector<uint32_t> degree(job.nodes.size());
        for (const auto& l : job.links)
        {
            ++degree[l.a];
            ++degree[l.b];
            if (8'000'000'000'000ULL % l.rate != 0)
            {
                Error("rate " + std::to_string(l.rate) + " bit/s: a byte does not take a whole number of picoseconds");
            }
        }
        for (size_t i = 0; i < job.nodes.size(); ++i)
        {
            if (job.nodes[i].host && degree[i] != 1)
            {
                Error("host '" + job.nodes[i].name + "' has " + std::to_string(degree[i]) + " links: want one");
            }
        }
        for (const auto& f : job.flows)
        {
            if (!f.cbr && job.Str("transport") == "udp-cbr")
            {
                Error("flow '" + f.id + "' needs a TCP transport, but option transport is udp-cbr");
            }
            if (f.src == f.dst)
            {
                Error("flow '" + f.id + "' has the same source and destination");
            }
        }
    }

    int64_t FullPacket() const
    {
        int64_t full = job.Int("segment_bytes") + 40 + (job.On("timestamps") ? 12 : 0);
        for (const auto& f : job.flows)
        {
            full = f.cbr && job.Str("transport") == "udp-cbr" ? f.ipBytes : full;
        }
        return full;
    }

    size_t m_line = 0;
    bool m_header = false;
    std::unordered_map<std::string, uint32_t> m_index;
    std::unordered_map<std::string, uint32_t> m_flows;
    std::set<std::pair<uint32_t, uint32_t>> m_pairs;
};

/** The command line of a peer, `peer JOB [OUT.json]`: reads the job, reports what is wrong with it or what `refusals(job)` says besides, and gives
 *  what `run(job, out)` returns; what it writes goes to OUT.json, or to `standard`. */
template <class Refusals, class Run>
int
RunJob(int argc, char** argv, std::ostream& standard, Refusals refusals, Run run)
{
    if (argc != 2 && argc != 3)
    {
        std::cerr << "usage: peer JOB [OUT.json]\n";
        return 2;
    }
    std::ifstream in(argv[1]);
    if (!in)
    {
        std::cerr << argv[1] << ": cannot read\n";
        return 2;
    }
    Parser parser(in);
    const std::vector<std::string> wrong = parser.errors.empty() ? refusals(parser.job) : parser.errors;
    for (const std::string& e : wrong)
    {
        std::cerr << argv[1] << ": " << e << "\n";
    }
    if (!wrong.empty())
    {
        return 2;
    }
    if (argc == 3 && std::string(argv[2]) != "-")
    {
        std::ofstream out(argv[2]);
        if (!out)
        {
            std::cerr << argv[2] << ": cannot write\n";
            return 2;
        }
        return run(parser.job, out);
    }
    return run(parser.job, standard);
}
