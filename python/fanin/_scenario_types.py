"""Typed classes of the scenario document.

Generated from the definitions in the Rust crates by `fanin-scenario`; do not edit (docs/scenario.md says how to regenerate).

Every table is a frozen dataclass (`LeafSpine(leaves=4)`), and a plain dictionary may stand for any of them. Keys that are not
given keep the default that their docstring states; `to_dict()` leaves them out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias


def _plain(value: object) -> Any:
    if isinstance(value, Table):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the document."""

    def to_dict(self) -> dict[str, Any]:
        """The document form, without keys that were not set."""
        result: dict[str, Any] = {}
        kind = getattr(type(self), "kind", None)
        if kind is not None:
            result["kind"] = kind
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                result[field.name.rstrip("_")] = _plain(value)
        return result


BitRate: TypeAlias = str
"""Text with a unit, such as "10Gbps", "400 Gb/s", "100Mbps"."""


Duration: TypeAlias = str
"""Text with a unit, such as "10us", "1.5ms", "200ns"."""


Size: TypeAlias = str
"""Text with a unit, such as "1500B", "512KB" (1000), "64KiB" (1024)."""


AmountOfBuffer: TypeAlias = str
"""Text with a unit, such as "512KB", "65 packets", "20000 cells"."""


Instant: TypeAlias = str
"""Text with a unit, such as "0s", "500ms", "1.25s"."""


DurationOrOff: TypeAlias = str
"""Text with a unit, such as "100us", "1ms", "off"."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinkParams(Table):
    """A link, the same in both directions."""

    rate: BitRate | None = None
    """Rate in each direction.

    Default: "10Gbps". Accepted: from 1Kbps to 4Tbps.
    """

    delay: Duration | None = None
    """Propagation delay.

    Default: "1us". Accepted: from 0ps to 10s.
    """

    wire_overhead: Size | None = None
    """Bytes of wire time that a packet takes on this link beyond its IP packet: at least framing.header, the rest is gap.
    Absent: framing's header and gap, Ethernet's 38.

    Accepted: from 0B to 1KB.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class SingleSwitch(Table):
    """Hosts `h0`, `h1`, … at `switch0`."""

    kind: ClassVar[Literal["single_switch"]] = "single_switch"

    hosts: int | None = None
    """Number of hosts.

    Default: 8. Accepted: from 2 to 65535.
    """

    link: LinkParams | Mapping[str, Any] | None = None
    """Each host's link."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dumbbell(Table):
    """Hosts at both ends of one link: `h0` … at switch `left`, the rest at switch `right`."""

    kind: ClassVar[Literal["dumbbell"]] = "dumbbell"

    left: int | None = None
    """Hosts at the left.

    Default: 8. Accepted: from 1 to 32767.
    """

    right: int | None = None
    """Hosts at the right.

    Default: 8. Accepted: from 1 to 32767.
    """

    host_link: LinkParams | Mapping[str, Any] | None = None
    """Each host's link."""

    bottleneck: LinkParams | Mapping[str, Any] | None = None
    """The link between the switches."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RackLinkParams(Table):
    """A link of the testbed of racks, the same in both directions."""

    rate: BitRate | None = None
    """Rate in each direction. Source: S-ECN §III-A (1 Gb/s).

    Default: "1Gbps". Accepted: from 1Kbps to 4Tbps.
    """

    delay: Duration | None = None
    """Propagation delay. Source: S-ECN §III-A (a round trip between racks, over eight links, takes about 50 us: 5 us
    per link and the serialisation of small frames).

    Default: "5us". Accepted: from 0ps to 10s.
    """

    wire_overhead: Size | None = None
    """Bytes of wire time that a packet takes on this link beyond its IP packet: at least framing.header, the rest is gap.
    Absent: framing's header and gap, Ethernet's 38.

    Accepted: from 0B to 1KB.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Racks(Table):
    """Racks joined by one root switch: hosts `h0` …, switches `tor0` … and `root`. Source: S-ECN §III-A, fig. 3."""

    kind: ClassVar[Literal["racks"]] = "racks"

    racks: int | None = None
    """Number of racks. Source: S-ECN §III-A (4).

    Default: 4. Accepted: from 1 to 4096.
    """

    hosts_per_rack: int | None = None
    """Hosts in each rack. Source: S-ECN §III-A (3).

    Default: 3. Accepted: from 1 to 4096.
    """

    host_link: RackLinkParams | Mapping[str, Any] | None = None
    """Each host's link."""

    root_link: RackLinkParams | Mapping[str, Any] | None = None
    """Each rack's link to the root."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class UplinkParams(Table):
    """A link between switches, the same in both directions."""

    rate: BitRate | None = None
    """Rate in each direction.

    Default: "40Gbps". Accepted: from 1Kbps to 4Tbps.
    """

    delay: Duration | None = None
    """Propagation delay.

    Default: "1us". Accepted: from 0ps to 10s.
    """

    wire_overhead: Size | None = None
    """Bytes of wire time that a packet takes on this link beyond its IP packet: at least framing.header, the rest is gap.
    Absent: framing's header and gap, Ethernet's 38.

    Accepted: from 0B to 1KB.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class LeafSpine(Table):
    """Every leaf joined to every spine: hosts `h0` …, switches `leaf0` …, `spine0` …. Source: pFabric §5 (the defaults: 144
    hosts, 9 leaves, 4 spines, 10 and 40 Gb/s).
    """

    kind: ClassVar[Literal["leaf_spine"]] = "leaf_spine"

    leaves: int | None = None
    """Number of leaves.

    Default: 9. Accepted: from 1 to 4096.
    """

    hosts_per_leaf: int | None = None
    """Hosts at each leaf.

    Default: 16. Accepted: from 1 to 4096.
    """

    spines: int | None = None
    """Number of spines; when absent, as many as `oversubscription` asks for.

    Accepted: from 1 to 4096.
    """

    oversubscription: float | None = None
    """What the hosts of a leaf can send over what its uplinks carry; 1 when neither this nor `spines` is given.

    Accepted: above 0, at most 1000.
    """

    links_per_pair: int | None = None
    """Links between each leaf and each spine.

    Default: 1. Accepted: from 1 to 64.
    """

    host_link: LinkParams | Mapping[str, Any] | None = None
    """Each host's link."""

    uplink: UplinkParams | Mapping[str, Any] | None = None
    """Each link between a leaf and a spine."""

    failed: Sequence[str] | None = None
    """Links that have failed, by the name of either of their ports (`agg0_0->core0`), `*` stands for anything: the network is
    without them, and routes go around.

    Default: [].
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class FatTree(Table):
    """The k-ary fat tree: hosts `h0` … by pod and edge switch, switches `edge0_0` (pod, place), `agg0_0`, `core0`.
    k³/4 hosts and 5k²/4 switches. Source: fat-tree.
    """

    kind: ClassVar[Literal["fat_tree"]] = "fat_tree"

    k: int | None = None
    """Ports of every switch; even.

    Default: 4. Accepted: from 2 to 64.
    """

    link: LinkParams | Mapping[str, Any] | None = None
    """Every link."""

    failed: Sequence[str] | None = None
    """Links that have failed, by the name of either of their ports (`agg0_0->core0`), `*` stands for anything: the network is
    without them, and routes go around.

    Default: [].
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chain(Table):
    """A line of switches `switch0` … with host `h0` at its start and `h1` at its end: n switches, n + 1 links."""

    kind: ClassVar[Literal["chain"]] = "chain"

    switches: int | None = None
    """Number of switches.

    Default: 5. Accepted: from 1 to 1024.
    """

    link: LinkParams | Mapping[str, Any] | None = None
    """Every link."""


FileFormat: TypeAlias = Literal["graphml", "edge_list", "hpcc"]
"""What a network is written in.

- `graphml`: GraphML: undirected edges with the attributes `rate` and `delay`, nodes with the attribute `kind`.
- `edge_list`: JSON: `{"nodes": [{"id": "h0", "kind": "host"}], "links": [{"a": "h0", "b": "s0", "rate": "10Gbps", "delay": "1us"}]}`.
- `hpcc`: `topology.txt` of the HPCC simulator.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FromFile(Table):
    """A network from a file. Nodes keep their ids as names; a node of unsaid kind is a host when it has one link."""

    kind: ClassVar[Literal["file"]] = "file"

    path: str
    """The file; relative to the scenario's folder.

    Must be given.
    """

    format: FileFormat | None = None
    """What it is written in; when absent, by its ending: `.graphml`, `.json`, `.txt`."""

    rate: BitRate | None = None
    """Rate of links of which the file says none; when absent, the file must say it.

    Accepted: from 1Kbps to 4Tbps.
    """

    delay: Duration | None = None
    """Propagation delay of links of which the file says none; when absent, the file must say it.

    Accepted: from 0ps to 10s.
    """


TopologyConfig: TypeAlias = (
    SingleSwitch
    | Dumbbell
    | Racks
    | LeafSpine
    | FatTree
    | Chain
    | FromFile
    | Mapping[str, Any]
    | Literal["single_switch", "dumbbell", "racks", "leaf_spine", "fat_tree", "chain"]
)
"""The network.

- `single_switch`: All hosts at one switch.
- `dumbbell`: Two switches and the link between them.
- `racks`: Racks joined by a root switch.
- `leaf_spine`: Two tiers, fully meshed.
- `fat_tree`: Three tiers of equal switches.
- `chain`: Switches in a line.
- `file`: Imported.
"""


Ip: TypeAlias = Literal["v4", "v6"]
"""Version of the Internet Protocol that all hosts speak. Flows have the same ports and take the same paths over either.

- `v4`: IPv4: a header of 20 B. Source: RFC 791.
- `v6`: IPv6: a header of 40 B, so that a full segment carries 20 B less, and drop notifications of 44 B. Source: RFC 8200.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Framing(Table):
    """How an IP packet sits on the wire. The defaults are Ethernet's: a full-size packet of 1500 B is a frame of 1518 B in
    queues and takes 1538 B of wire time.
    """

    ip: Ip | None = None
    """Version of IP.

    Default: "v4".
    """

    header: Size | None = None
    """Link-layer header and frame check sequence: counted in queues and on the wire. Source: IEEE 802.3 (14 + 4 bytes).

    Default: "18B". Accepted: from 0B to 1KB.
    """

    min_frame: Size | None = None
    """Smallest frame; shorter ones are padded. Source: IEEE 802.3.

    Default: "64B". Accepted: from 0B to 1500B.
    """

    gap: Size | None = None
    """Preamble and inter-packet gap: wire time only. Source: IEEE 802.3 (8 + 12 bytes).

    Default: "20B". Accepted: from 0B to 1KB.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class OutputQueued(Table):
    """Packets wait at their output ports alone, as if the switch could move all of them there at once."""

    kind: ClassVar[Literal["output_queued"]] = "output_queued"


@dataclasses.dataclass(frozen=True, kw_only=True)
class IslipParams(Table):
    """iSLIP. Source: iSLIP."""

    kind: ClassVar[Literal["islip"]] = "islip"

    iterations: int | None = None
    """Rounds of request, grant and accept in one arbitration. Source: iSLIP §V (log2 N rounds are enough on average: 3 or 4 at
    switches of 12 or 16 ports).

    Default: 3. Accepted: from 1 to 64.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class RoundRobinArbitration(Table):
    """Plain round-robin matching (RRM), one round in an arbitration. Source: iSLIP §II.A."""

    kind: ClassVar[Literal["round_robin"]] = "round_robin"


Arbitration: TypeAlias = IslipParams | RoundRobinArbitration | Mapping[str, Any] | Literal["islip", "round_robin"]
"""How a crossbar matches inputs with outputs.

- `islip`: iSLIP: request, grant, accept, in turn, with pointers that come apart by themselves.
- `round_robin`: Each output and each input in turn, by pointers that move with every grant (RRM).
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Combined(Table):
    """Combined input- and output-queued: packets wait in virtual output queues, one for each input, output and class, cross a crossbar as
    a whole, and wait in the queue of their output port. Source: CIOQ.
    """

    kind: ClassVar[Literal["combined"]] = "combined"

    voq: Size | None = None
    """Buffer of each virtual output queue. A packet that does not fit is dropped. Source: RCM §4.1 (100 KB).

    Default: "100KB". Accepted: from 64B to 4GB.
    """

    output: Size | None = None
    """Buffer of each output port and class. Without room for a largest frame it gets none: nothing is dropped there for want of room.
    Source: RCM §4.1 (100 KB).

    Default: "100KB". Accepted: from 64B to 4GB.
    """

    speedup: float | None = None
    """Rate of each input and output of the crossbar, as a multiple of that of the switch's fastest port. Source: CIOQ (2 - 1/N is
    needed to behave as an output-queued switch of N ports, and enough).

    Default: 2.0. Accepted: from 1 to 64.
    """

    scheduler: Arbitration | None = None
    """Who decides which packets cross.

    Default: { kind = "islip", iterations = 3 }.
    """


Architecture: TypeAlias = OutputQueued | Combined | Mapping[str, Any] | Literal["output_queued", "combined"]
"""Where packets wait.

- `output_queued`: At output ports alone.
- `combined`: At input ports in virtual output queues, and at output ports.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StaticBuffer(Table):
    """Every port has a buffer of its own."""

    kind: ClassVar[Literal["static"]] = "static"

    per_port: AmountOfBuffer | None = None
    """Buffer of each port: a packet is dropped when it does not fit beside what already waits there.
    Source: S-ECN §III-A (512 KB, the largest of its testbed).

    Default: "512KB".
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class DynamicBuffer(Table):
    """All ports share one buffer; each queue may grow to α times what is free of it. Source: DT."""

    kind: ClassVar[Literal["dynamic"]] = "dynamic"

    total: AmountOfBuffer | None = None
    """Buffer of the whole switch. Source: DCTCP §4 (4 MB, its shallow-buffered 48-port switches).

    Default: "4MB".
    """

    alpha: float | None = None
    """α: a queue may hold at most α × free. Source: DT (1 lets a single congested queue take
    half of the buffer); chips offer powers of two from 1/128 to 8.

    Default: 1.0. Accepted: from 0.001 to 1024.
    """

    reserved: AmountOfBuffer | None = None
    """Buffer that each port has for itself beside its share, taken out of `total`; none when absent."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnlimitedBuffer(Table):
    """Nothing is ever dropped for want of room."""

    kind: ClassVar[Literal["unlimited"]] = "unlimited"


Buffer: TypeAlias = StaticBuffer | DynamicBuffer | UnlimitedBuffer | Mapping[str, Any] | Literal["static", "dynamic", "unlimited"]
"""How much may wait at a port. A packet that finds its port idle goes onto the wire and needs no room.

- `static`: A fixed amount per port (drop tail).
- `dynamic`: Shared by all ports with a dynamic threshold.
- `unlimited`: No limit.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoneMarking(Table):
    """Packets are never marked."""

    kind: ClassVar[Literal["none"]] = "none"


At: TypeAlias = Literal["enqueue", "dequeue"]
"""When a packet is compared with the threshold.

- `enqueue`: On its way in: the queue that it finds.
- `dequeue`: On its way out: the queue that it leaves behind. The signal is younger by the queueing delay. Source: ECN-tuning.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ThresholdParams(Table):
    """An ECN-capable packet is marked when the queue is above K."""

    kind: ClassVar[Literal["threshold"]] = "threshold"

    k: AmountOfBuffer | None = None
    """K. A packet is marked when strictly more than K waits, itself and the packet being sent not counted. Source: DCTCP
    §3.1 (1) ("greater than K upon its arrival"); DCTCP §3.5, "Practical considerations" (65 packets at 10 Gb/s, 20 at
    1 Gb/s).

    Default: "65 packets".
    """

    at: At | None = None
    """When the queue is measured.

    Default: "enqueue".
    """


Spacing: TypeAlias = Literal["geometric", "uniform", "wait"]
"""How marks are spread over packets at a given marking probability.

- `geometric`: Each packet by itself, so that gaps are geometric. Source: RED §7, method 1.
- `uniform`: Gaps uniform from 1 to 1/p_b − 1: the algorithm counts the arriving packet, where the text has 1 to 1/p_b. Source:
- `wait`: Gaps uniform from 1/p_b to 2/p_b − 1. Source: ns-2 2.35, `queue/red.cc` (`wait_`).
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RedParams(Table):
    """Random early detection."""

    kind: ClassVar[Literal["red"]] = "red"

    min: AmountOfBuffer | None = None
    """Lower threshold of the average queue; in packets, bytes or cells, which is also what the average counts.
    Source: RED-parameters (5 packets).

    Default: "5 packets".
    """

    max: AmountOfBuffer | None = None
    """Upper threshold, in the same unit. Source: RED-parameters (three times `min`).

    Default: "15 packets".
    """

    max_p: float | None = None
    """Marking probability when the average reaches `max`. Source: RED-parameters (0.1).

    Default: 0.1. Accepted: above 0, at most 1.
    """

    weight: float | None = None
    """w_q, the weight of one sample in the average; 1 takes the queue as it is. Source: RED §6 (0.002).

    Default: 0.002. Accepted: above 0, at most 1.
    """

    gentle: bool | None = None
    """Let the probability rise from `max_p` to 1 between `max` and twice `max` instead of jumping to 1.
    Source: gentle-RED.

    Default: true.
    """

    spacing: Spacing | None = None
    """How marks are spread over packets. Source: RED §7 (uniform).

    Default: "uniform".
    """

    ecn: bool | None = None
    """Mark ECN-capable packets; otherwise drop those too. Source: RFC 3168 §5.

    Default: true.
    """

    hard_drop: bool | None = None
    """Above the upper limit drop ECN-capable packets too. Source: RFC 3168 §7 (as it recommends). DCTCP wants them
    marked: `false`.

    Default: true.
    """

    drop_others: bool | None = None
    """Drop packets that are not ECN-capable where others are marked. `false`: they pass, up to the limit of `hard_drop`, as at
    the lossless queues of switches; acknowledgments and CNPs of RoCEv2 are such packets.

    Default: true.
    """

    by_size: bool | None = None
    """In the units of bytes and cells, make the probability proportional to the frame. Source: RED §4.

    Default: false.
    """

    mean_packet: Size | None = None
    """The typical frame: its serialisation is one sample of an idle port, and `by_size` is relative to it.

    Default: "1518B". Accepted: at least 1B.
    """


AfterMark: TypeAlias = Literal["subtract", "reset"]
"""What a mark takes from the sum.

- `subtract`: R·I, what this packet's share of marks stands for: the marked share is s/R, on the average exactly.
- `reset`: All of it, as a counter of unmarked packets that starts again: one packet in ⌊R/s⌋ + 1, so never more than half
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SlopeParams(Table):
    """Adders and a comparator, as in the paper's hardware: each packet adds P − R·I to a sum; a packet is marked when the sum
    is above R·I. Source: S-ECN §IV-C.
    """

    kind: ClassVar[Literal["registers"]] = "registers"

    clock: Duration | None = None
    """Clock in which intervals are counted; at 20 ns R still fits its register at 1.6 Tb/s. Source: S-ECN §II-C, §IV-C
    (125 MHz).

    Default: "8ns". Accepted: from 100ps to 20ns.
    """

    credit: Size | None = None
    """What idle time and draining may pay in for later packets: the sum is never below minus this. Wire bytes; one
    full-size packet is what arrivals that are merely uneven need.

    Default: "1538B". Accepted: from 0B to 65535B.
    """

    after_mark: AfterMark | None = None
    """What a mark takes from the sum.

    Default: "subtract".
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProbabilitySlopeForm(Table):
    """By chance: each packet for itself with probability (P − R·I)/(R·I). Source: S-ECN §IV-B (1), §IV-C (2)."""

    kind: ClassVar[Literal["probability"]] = "probability"


SlopeForm: TypeAlias = SlopeParams | ProbabilitySlopeForm | Mapping[str, Any] | Literal["registers", "probability"]
"""How the slope becomes a mark.

- `registers`: A sum, without chance.
- `probability`: By chance.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SEcnParams(Table):
    """By the slope s of the queue: no packet for s ≤ 0, a share of s/R for 0 < s < R, every packet for s ≥ R; and every
    packet once K waits. Source: S-ECN §IV-B.
    """

    kind: ClassVar[Literal["s_ecn"]] = "s_ecn"

    k: AmountOfBuffer | None = None
    """Every ECN-capable packet that finds K or more is marked. Absent: the slope alone decides. Source: S-ECN §IV-D
    (32 KB at 1 Gb/s).
    """

    form: SlopeForm | None = None
    """Registers or chance.

    Default: { kind = "registers", clock = "8ns", credit = "1538B", after_mark = "subtract" }.
    """

    at: At | None = None
    """Which packet gets the mark: the one that arrives, or the one that leaves.

    Default: "enqueue".
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class CodelParams(Table):
    """Controlled delay (CoDel): drops at the head of a queue whose packets have waited too long for an interval."""

    kind: ClassVar[Literal["codel"]] = "codel"

    target: Duration | None = None
    """How long packets may wait in a standing queue. Source: RFC 8289 §4.3 (5 ms).

    Default: "5ms". Accepted: from 1ns to 10s.
    """

    interval: Duration | None = None
    """For so long all packets have to wait longer than `target` before one is dropped; about the longest round-trip time.
    Source: RFC 8289 §4.2 (100 ms).

    Default: "100ms". Accepted: from 1ns to 100s.
    """

    mtu: Size | None = None
    """Nothing is dropped while no more than this waits behind the packet. Source: Linux codel_should_drop (the device's MTU
    with its header); RFC 8289 §5.5 (the largest packet so far).

    Default: "1518B". Accepted: from 64B to 65535B.
    """

    ecn: bool | None = None
    """Mark ECN-capable packets where others are dropped. Source: Linux sch_codel (off).

    Default: false.
    """

    ce_threshold: Duration | None = None
    """Mark every ECN-capable packet that has waited longer than this, whatever else is decided; absent: none. Source: Linux
    sch_codel (meant for DCTCP).
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrontDropParams(Table):
    """A packet whose turn it is to be sent is dropped when the queue has reached a limit."""

    kind: ClassVar[Literal["front_drop"]] = "front_drop"

    limit: AmountOfBuffer | None = None
    """The limit. A packet is dropped when at least this much waits, itself counted.

    Default: "512KB".
    """


Marking: TypeAlias = (
    NoneMarking
    | ThresholdParams
    | RedParams
    | SEcnParams
    | CodelParams
    | FrontDropParams
    | Mapping[str, Any]
    | Literal["none", "threshold", "red", "s_ecn", "codel", "front_drop"]
)
"""How a port signals congestion. One state per port, which looks at the whole port; `codel` has one for each class, and so
have all where `switch.class_marking` has entries.

- `none`: Never.
- `threshold`: Every ECN-capable packet when the queue is above a threshold.
- `red`: Random early detection: by chance, from the average queue.
- `s_ecn`: By the slope of the queue.
- `codel`: Controlled delay: packets that have waited too long for an interval are dropped at the head of the queue, or marked.
- `front_drop`: Never: packets are dropped at the head of a queue that has reached a limit.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassMarking(Table):
    """How some classes are marked. Where there is such an entry, each queue has a state of its own and sees nothing of the others;
    classes without an entry are marked as `switch.marking` says, by their own queues, too, as switches have a profile
    (WRED, ECN) for each traffic class (from memory).
    """

    classes: Sequence[int]
    """The classes. Those beyond the last queue of a port share it.

    Must be given.
    """

    marking: Marking
    """How they are marked.

    Must be given.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class IntParams(Table):
    """Ports write what they are like into frames whose transport asks for it. Source: HPCC §4.1."""

    hops: int | None = None
    """Records that a frame holds at most: ports of later switches write none.

    Default: 5. Accepted: from 1 to 8.
    """

    unaware: Sequence[str] | None = None
    """Switches without telemetry, by name, `*` stands for anything. Senders see nothing of their ports.

    Default: [].
    """


Operations: TypeAlias = Literal["retransmit_and_halve", "retransmit"]
"""What a notification asks of the sender.

- `retransmit_and_halve`: Retransmit the packet and reduce the window. Source: PDN §IV.
- `retransmit`: Retransmit the packet; the window stays.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PdnParams(Table):
    """Packet drop notification: the sender of a dropped packet is notified at once. Source: PDN §IV."""

    queue: Size | None = None
    """Room of each port's notification queue, 20 bytes each, or 44 with IPv6; what does not fit is lost and counted.
    Source: PDN §V (20 bytes sufficed in its simulations).

    Default: "2KB". Accepted: from 20B to 1MB.
    """

    operation: Operations | None = None
    """What the sender is asked to do.

    Default: "retransmit_and_halve".
    """

    acks: bool | None = None
    """Whether to notify of acknowledgments without data as well: their sender acknowledges again. Without, one that was
    the last of a window costs the other end a timeout.

    Default: true.
    """

    max_frame: Size | None = None
    """The largest frame: a notification waits while the next one, with it, would be larger. Source: IEEE 802.3 §3.2.7
    (1518 bytes).

    Default: "1518B". Accepted: from 84B to 65535B.
    """

    unaware: Sequence[str] | None = None
    """Switches and hosts without PDN, by name, `*` stands for anything: they notify of no drops, and a notification
    whose next hop is one of them is lost and counted.

    Default: [].
    """

    loss: float | None = None
    """Probability that a notification is lost on each link that it crosses, whatever the reason; the frame that carries it
    arrives.

    Default: 0.0. Accepted: from 0 to 1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class LossyPool(Table):
    """A pool of their own for classes that are not lossless, so that neither side takes the memory of the other."""

    memory: Size | None = None
    """Of the memory.

    Default: "2MB". Accepted: from 1B to 4GB.
    """

    alpha: float | None = None
    """α: what one port and class may take of it, as a multiple of what is free. Source: DT.

    Default: 1.0. Accepted: from 0.001 to 64.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class StaticXoff(Table):
    """A fixed amount for each port and priority."""

    kind: ClassVar[Literal["static"]] = "static"

    bytes: Size | None = None
    """What packets of one priority from one neighbour may take, beside the reservation.

    Default: "100KB".
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class DynamicXoff(Table):
    """A share of what is free: each port and priority may take α times what nobody uses of the pool. Source: DT."""

    kind: ClassVar[Literal["dynamic"]] = "dynamic"

    alpha: float | None = None
    """α. Source: HPCC, its simulator (1/8).

    Default: 0.125. Accepted: from 0.001 to 64.
    """


Xoff: TypeAlias = StaticXoff | DynamicXoff | Mapping[str, Any] | Literal["static", "dynamic"]
"""From what on the neighbour has to pause.

- `static`: A fixed amount.
- `dynamic`: A share of what is free.
"""


StormAction: TypeAlias = Literal["drop", "forward"]
"""What a switch does with a class whose pause does not end.

- `drop`: What waits is dropped, and what comes.
- `forward`: Its pauses are ignored.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Watchdog(Table):
    """The storm watchdog of a switch's ports. Source: PFC-watchdog."""

    detection: Duration | None = None
    """A class that is paused without a break while packets wait, for so long, is in a storm. Source: PFC-watchdog (200 ms).

    Default: "200ms". Accepted: from 1us to 100s.
    """

    restoration: Duration | None = None
    """A storm is over when the class has not been paused for so long. Source: PFC-watchdog (200 ms).

    Default: "200ms". Accepted: from 1us to 100s.
    """

    action: StormAction | None = None
    """What is done with the class meanwhile. Source: PFC-watchdog.

    Default: "drop".
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class PfcParams(Table):
    """Priority flow control: lossless classes, by pauses of the neighbours. Source: IEEE 802.1Q §36."""

    classes: Sequence[int] | None = None
    """Classes that lose nothing; the number of a class is its priority in PFC frames. The others are dropped where their share
    of the pool is used up.

    Default: [0, 1, 2, 3, 4, 5, 6, 7]. Accepted: from 0 to 7.
    """

    memory: Size | None = None
    """Memory of a switch: reservations, headroom, and a pool of what is left. Source: DCQCN §4 (12 MB, a shared-buffer chip of 32
    ports).

    Default: "12MB". Accepted: from 1B to 4GB.
    """

    reserved: Size | None = None
    """Of it, for each port and class.

    Default: "0B".
    """

    lossy: LossyPool | Mapping[str, Any] | None = None
    """A pool for the other classes alone. Absent: they share that of the lossless ones, under the same XOFF."""

    headroom: Size | None = None
    """For each port and lossless class, beside the rest: what may arrive after XOFF. Absent: what the link can deliver until the
    neighbour has stopped, by its rate and length. Source: IEEE 802.1Q Annex N.
    """

    xoff: Xoff | None = None
    """From what on a neighbour has to pause.

    Default: { kind = "dynamic", alpha = 0.125 }.
    """

    xon_gap: Size | None = None
    """How far below XOFF it may send again. Source: HPCC, its simulator (3 KB).

    Default: "3KB".
    """

    quanta: int | None = None
    """Time to pause that frames ask for, in quanta of 512 bit times; a pause that has to last is asked for again when half of it
    is over. Source: IEEE 802.3 §31B.2 (65,535 at most).

    Default: 65535. Accepted: from 2 to 65535.
    """

    response: Duration | None = None
    """From a packet's reaching XOFF to its frame's being ready, and what the neighbour takes to obey: both together. Source: IEEE
    802.3 §31B.3.7 (60 quanta at 40 Gb/s: 0.8 us).

    Default: "0ps". Accepted: from 0ps to 1ms.
    """

    max_frame: Size | None = None
    """The largest frame on the links, for the headroom. Source: IEEE 802.3 §3.2.7 (1518 bytes).

    Default: "1518B". Accepted: from 64B to 65535B.
    """

    watchdog: Watchdog | Mapping[str, Any] | None = None
    """The storm watchdog: what becomes of a class whose pause does not end. Absent: it waits."""


AlertBy: TypeAlias = Literal["message", "at_once"]
"""How the ingress of a switch knows that a queue has reached α.

- `message`: By a message that goes to a neighbour and comes back, as it must where the ingress cannot read the egress. Source:
- `at_once`: It reads the queue itself, as no hardware of the paper can: what the message costs is the difference.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DrainedRelease(Table):
    """As soon as all are back: Sa = Sf. Source: RIMM §V, which could not build it: two accesses to one register."""

    kind: ClassVar[Literal["drained"]] = "drained"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlowletGap(Table):
    """By a pause of the flow. Source: RIMM §III-C."""

    kind: ClassVar[Literal["flowlet"]] = "flowlet"

    chi: Duration | None = None
    """χ, the gap between two consecutive new packets. Deviation: the paper has "a few milliseconds", with which each detour
    lasts until `give_up`.

    Default: "500us". Accepted: from 1ns to 4s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnorderedRelease(Table):
    """Plain detour: packets have no numbers, and go on as soon as the alert is off, in whatever order. Source: RIMM §IV-B
    ("detour-based forwarding").
    """

    kind: ClassVar[Literal["unordered"]] = "unordered"


Release: TypeAlias = DrainedRelease | FlowletGap | UnorderedRelease | Mapping[str, Any] | Literal["drained", "flowlet", "unordered"]
"""When the detour of a flow ends after the alert.

- `drained`: As soon as all its packets are back.
- `flowlet`: By a pause of the flow.
- `unordered`: With the alert; packets are not kept in order.
"""


GiveUpWhen: TypeAlias = Literal["stalled", "outstanding"]
"""Which pairs of numbers are given up.

- `stalled`: None of its packets was released for `give_up`.
- `outstanding`: Packets of it were out for `give_up` without pause: the other reading of the paper's "packet detouring lasts longer".
"""


Neighbour: TypeAlias = Literal["per_packet", "per_flow"]
"""How often a neighbour is chosen.

- `per_packet`: For each detour of each packet. Source: RIMM §III-A.2.
- `per_flow`: Once for all packets of a pair that are out together, as long as it has room. Deviation: not in the paper.
"""


Hops: TypeAlias = Literal["spent", "restored"]
"""What a detour takes of a packet's time to live.

- `spent`: Two hops each time, as any other way; a packet with fewer than eight left takes no detour.
- `restored`: Nothing: the switch gives back the two hops when the packet is back. `give_up` alone ends its detour.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RimmParams(Table):
    """Packets for a port whose queue has reached α wait on a detour by a neighbour, and go on in order. Source: RIMM."""

    alpha: AmountOfBuffer | None = None
    """α, the depth of a queue from which on its packets take detours. Source: RIMM §IV (20,000 of 24,000 cells).

    Default: "20000 cells".
    """

    alert: AlertBy | None = None
    """How the ingress knows of it.

    Default: "message".
    """

    message_class: int | None = None
    """Traffic class of messages. Absent: that of the packet whose headers they have, behind whose like they wait. Deviation: the
    paper does not say.

    Accepted: from 0 to 7.
    """

    release: Release | None = None
    """When the detour of a flow ends after the alert.

    Default: { kind = "drained" }.
    """

    give_up: Duration | None = None
    """An alert that lasts for so long is congestion: what is out is released, and the port has no detours until the next alert.
    Source: RIMM §III-B, §V (1 ms). A pair of numbers is given up after as long a wait.

    Default: "1ms". Accepted: from 1us to 4s.
    """

    give_up_when: GiveUpWhen | None = None
    """Which pairs that is.

    Default: "stalled".
    """

    neighbour: Neighbour | None = None
    """How often the neighbour with the least depth is chosen.

    Default: "per_packet".
    """

    room: Size | None = None
    """Neighbours that have stated this depth or more get no detours; a header states 65,535 cells at most. Deviation: the
    paper has no bound, as this default.

    Default: "5242800B". Accepted: at least 1B.
    """

    hash_bits: int | None = None
    """Bits of the hash that a flow's pair of numbers is found by: flows that agree in them share a pair. Source: RIMM
    §III-B (12).

    Default: 12. Accepted: from 0 to 16.
    """

    hops: Hops | None = None
    """What a detour takes of the time to live.

    Default: "spent".
    """

    max_frame: Size | None = None
    """The largest frame between switches: a packet that would be larger with its headers goes without them and takes no
    detour.

    Default: "9216B". Accepted: from 76B to 65535B.
    """

    unaware: Sequence[str] | None = None
    """Switches without RIMM, by name, `*` stands for anything.

    Default: [].
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exponential(Table):
    """(e^(λx) − 1) / (e^λ − 1): small for long, then steep."""

    kind: ClassVar[Literal["exponential"]] = "exponential"

    lambda_: float | None = None
    """λ. Deviation: the paper's value is not known to us.

    Default: 4.0. Accepted: from 0.01 to 50.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Linear(Table):
    """In proportion to x."""

    kind: ClassVar[Literal["linear"]] = "linear"


Growth: TypeAlias = Exponential | Linear | Mapping[str, Any] | Literal["exponential", "linear"]
"""How the probability of a bounce grows with x, the share of the way from `lower` to `upper` that the queue has gone.

- `exponential`: Small for long, then steep.
- `linear`: In proportion.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PaboParams(Table):
    """A packet for a queue of q goes back to the switch upstream with probability g(x)^(n + 1), x = (q − lower) / (upper − lower),
    after n bounces before; with 1 where there is no room. Source: PABO §III.
    """

    lower: AmountOfBuffer | None = None
    """Up to this queue no packet is bounced.

    Default: "50 packets".
    """

    upper: AmountOfBuffer | None = None
    """From this queue on all packets are.

    Default: "100 packets".
    """

    growth: Growth | None = None
    """g: between the two.

    Default: { kind = "exponential", lambda = 4.0 }.
    """

    unaware: Sequence[str] | None = None
    """Switches without PABO, by name, `*` stands for anything. They forward bounced packets as ever.

    Default: [].
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class DibsParams(Table):
    """What finds no room at its port takes another one that leads to a switch, at random. Source: DIBS §3."""

    unaware: Sequence[str] | None = None
    """Switches without DIBS, by name, `*` stands for anything. They forward detoured packets as ever.

    Default: [].
    """


ServeBy: TypeAlias = Literal["least_left", "arrival"]
"""In which order the packets of a class leave a port.

- `least_left`: Those first whose flow has least left, boosted; of equal ones the first that came. A later packet of a flow has less left than
- `arrival`: As they came: the header decides what is deflected alone.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class VertigoParams(Table):
    """Where a port has no room, the packet of queue and arrival whose flow has most left to send takes another port. Source: Vertigo."""

    choices: int | None = None
    """Ports to other switches that are drawn for it; it takes the one with the shortest queue. 0: it is dropped. Source: Vertigo, its
    simulator (2).

    Default: 2. Accepted: from 0 to 64.
    """

    boost: int | None = None
    """Each retransmission of a packet divides what counts as left by this; 1: none does. Source: Vertigo, its simulator (2; 4 and 8
    were tried).

    Default: 2. Accepted: from 1 to 256.
    """

    serve: ServeBy | None = None
    """In which order packets leave.

    Default: "least_left".
    """

    unaware: Sequence[str] | None = None
    """Switches without Vertigo, by name, `*` stands for anything. They forward deflected packets as ever.

    Default: [].
    """


Cut: TypeAlias = Literal["arriving", "either"]
"""Whose payload is cut off when a data packet finds its queue full.

- `arriving`: Its own.
- `either`: Its own or, as often, that of the last packet in the queue, whose place it takes: so that not always the same flow
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrimmingParams(Table):
    """What finds no room loses its payload. Source: NDP §3.1."""

    headers: Size | None = None
    """Room for headers that wait, at each port, beside the buffer for data. Source: NDP §3.1 (as much as for data:
    eight packets, of 9000 bytes).

    Default: "72KB". Accepted: from 128B to 10MB.
    """

    ratio: int | None = None
    """Headers that leave for each data packet while both wait. Source: NDP §3.1 (10).

    Default: 10. Accepted: from 1 to 1000000.
    """

    cut: Cut | None = None
    """Whose payload is cut off.

    Default: "either".
    """

    unaware: Sequence[str] | None = None
    """Switches that do not trim, by name, `*` stands for anything.

    Default: [].
    """


Recognise: TypeAlias = Literal["now", "at_detection"]
"""Which flows are harmful at a port that no neighbour has named any to.

- `now`: Those that are in its CAM now: it goes on being written while the region lasts.
- `at_detection`: Those that were in it when its output queue became congested, until that is over. Source: RCM §3.1 (a root that is reported "starts
"""


Decrease: TypeAlias = Literal["each", "measured"]
"""What a congestion degree reduces.

- `each`: W_c as it is: each further degree takes more. Source: RCM formula 5.
- `measured`: W_c as it was measured: the last degree counts, and at most half is taken. Source: RCM §4.2 (a flow of half of the port falls
"""


WhenIdle: TypeAlias = Literal["send", "wait"]
"""What happens where harmful flows have used up W_c and no others have anything to send.

- `send`: Harmful flows send: no port idles while something waits.
- `wait`: At ports that a neighbour downstream has notified harmful flows wait until W could have been sent; others send. Source: RCM §3.1
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RcmParams(Table):
    """Regional congestion mitigation: switches detect a region of congestion, hold harmful flows at their ports, and move others away. Source:
    RCM.
    """

    rcc: bool | None = None
    """Regional congestion control: harmful flows share a window. Without it, congestion is detected and notified only.

    Default: true.
    """

    sar: bool | None = None
    """Adaptive routing: flows that do no harm take the equal path with the least degree.

    Default: true.
    """

    q_eq: Size | None = None
    """Q_eq, the length of a queue in equilibrium. Source: IEEE 802.1Qau (cpQSp, 26,000 B).

    Default: "26KB". Accepted: from 1B to 1GB.
    """

    w_q: int | None = None
    """w_q, the weight of the queue's growth. Source: IEEE 802.1Qau (cpW, 2).

    Default: 2. Accepted: from 0 to 64.
    """

    sample: Size | None = None
    """Bytes that arrive at a queue between two samples without congestion; the largest degree divides them by eight. Deviation:
    IEEE 802.1Qau has 150 KB, for queues that hosts answer for.

    Default: "30KB". Accepted: from 64B to 1GB.
    """

    w: float | None = None
    """w, the weight of the degree heard from downstream in the one that is passed upstream.

    Default: 0.5. Accepted: from 0 to 1.
    """

    cam: int | None = None
    """Flows that the CAM of a port has room for, and those that a neighbour downstream may name.

    Default: 8. Accepted: from 1 to 256.
    """

    cam_hits: int | None = None
    """Places of the CAM that a flow has to have to be harmful at its port. Source: RCM §3.3 (flows whose IDs are stored, so one).

    Default: 1. Accepted: from 1 to 256.
    """

    recognise: Recognise | None = None
    """Whether the CAM counts as it is, or as it was when congestion was detected.

    Default: "now".
    """

    cam_period: Size | None = None
    """Bytes that pass a port between two writes of its CAM.

    Default: "8KB". Accepted: from 64B to 1GB.
    """

    expiry: Duration | None = None
    """Without news a notification ends after this.

    Default: "20us". Accepted: from 1ns to 100ms.
    """

    window_min: Size | None = None
    """W is measured over so many bytes at least … Absent: 16 KB, or two of the largest frames.

    Accepted: from 64B to 1GB.
    """

    window_max: Size | None = None
    """… and over so many at most.

    Default: "100KB". Accepted: from 64B to 1GB.
    """

    max_frame: Size | None = None
    """W_c never falls below this: a frame fits into each window. Absent: the largest frame of the traffic.

    Accepted: from 64B to 65535B.
    """

    decrease: Decrease | None = None
    """What a degree reduces.

    Default: "each".
    """

    when_idle: WhenIdle | None = None
    """Whether harmful flows take what nobody else sends.

    Default: "send".
    """

    reserved: Size | None = None
    """Bytes that a port holds at reduced windows; above it harmful flows have what was measured of the port. Source: RCM §4.1 (100 KB
    for each input and output, and 12 ports).

    Default: "1MB". Accepted: from 64B to 1GB.
    """

    severe_degree: int | None = None
    """A degree from which on a notification, or a sample of the switch itself, is severe.

    Default: 32. Accepted: from 1 to 63.
    """

    severe_count: int | None = None
    """So many severe ones …

    Default: 3. Accepted: from 1 to 1000.
    """

    severe_within: Duration | None = None
    """… within this time move flows away, for as long.

    Default: "20us". Accepted: from 1ns to 100ms.
    """

    moved_flows: int | None = None
    """Flows that a switch can have moved at a time.

    Default: 1024. Accepted: from 1 to 1048576.
    """

    moved_stay: Duration | None = None
    """A moved flow goes back after a pause of this length: above the difference of path delays nothing is reordered then.

    Default: "100us". Accepted: from 1ns to 1s.
    """

    loss: float | None = None
    """Probability that a notification is lost on its link, whatever the reason.

    Default: 0.0. Accepted: from 0 to 1.
    """

    unaware: Sequence[str] | None = None
    """Switches without RCM, by name, `*` stands for anything: they send no notifications and get none.

    Default: [].
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mechanisms(Table):
    """What switches do beyond forwarding, queueing and marking; each mechanism whose table is present runs."""

    int: IntParams | Mapping[str, Any] | None = None
    """In-band network telemetry: ports write queue, bytes sent, time and rate into frames. Absent: it does not run."""

    pdn: PdnParams | Mapping[str, Any] | None = None
    """Packet drop notification: the sender of a dropped packet is notified at once. Absent: it does not run."""

    pfc: PfcParams | Mapping[str, Any] | None = None
    """Priority flow control: a neighbour whose packets take too much of the memory is asked to pause. Absent: it does not run."""

    rimm: RimmParams | Mapping[str, Any] | None = None
    """RIMM: packets for a queue that is too long wait on a detour by a neighbour. Absent: it does not run."""

    pabo: PaboParams | Mapping[str, Any] | None = None
    """PABO: packets for a queue that grows go back to the switch upstream. Absent: it does not run."""

    dibs: DibsParams | Mapping[str, Any] | None = None
    """DIBS: what finds no room takes another port, at random. Absent: it does not run."""

    vertigo: VertigoParams | Mapping[str, Any] | None = None
    """Vertigo: where there is no room, the packet whose flow has most left to send takes another port. Absent: it does not run."""

    trimming: TrimmingParams | Mapping[str, Any] | None = None
    """Trimming: what finds no room loses its payload instead of being dropped. Absent: it does not run."""

    rcm: RcmParams | Mapping[str, Any] | None = None
    """RCM: flows that cause congestion wait at the ports of its region, and others take other ways. Absent: it does not run."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FifoScheduling(Table):
    """One queue for all classes."""

    kind: ClassVar[Literal["fifo"]] = "fifo"


@dataclasses.dataclass(frozen=True, kw_only=True)
class StrictParams(Table):
    """A class is served only when every more urgent one is empty."""

    kind: ClassVar[Literal["strict"]] = "strict"

    classes: int | None = None
    """Number of classes. Source: IEEE 802.1Q §8.6.8.1 (strict priority), eight at most.

    Default: 8. Accepted: from 1 to 8.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class DrrParams(Table):
    """Each class with packets is visited in turn and may send its quantum per visit; what it does not use it keeps."""

    kind: ClassVar[Literal["drr"]] = "drr"

    quanta: Sequence[Size] | None = None
    """Quantum of each class; the ratio of quanta is the ratio of rates. A quantum of a full frame or more makes every
    visit send something. Source: DRR.

    Default: ["1518B", "1518B"]. Accepted: from 1B to 1GB.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class StrictDrrParams(Table):
    """Classes 0 … `strict` − 1 by strict priority; when they are empty, the others by deficit round robin."""

    kind: ClassVar[Literal["strict_drr"]] = "strict_drr"

    strict: int | None = None
    """Number of strict classes. Source: IEEE 802.1Q §8.6.8 (priority and weighted classes at one port).

    Default: 1. Accepted: from 1 to 7.
    """

    quanta: Sequence[Size] | None = None
    """Quantum of each further class. Source: DRR.

    Default: ["1518B", "1518B"]. Accepted: from 1B to 1GB.
    """


Scheduling: TypeAlias = (
    FifoScheduling | StrictParams | DrrParams | StrictDrrParams | Mapping[str, Any] | Literal["fifo", "strict", "drr", "strict_drr"]
)
"""In which order the packets of a port leave. Class 0 is the most urgent; a packet of a higher class than there
is belongs to the last.

- `fifo`: In order of arrival.
- `strict`: The most urgent class first, always.
- `drr`: Deficit round robin.
- `strict_drr`: Some classes by strict priority, the others by deficit round robin over what is left.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Except(Table):
    """Settings of some ports or switches. A port is selected when it meets every selector that is given: `ports`, `switches`,
    `rate`, `tier`.
    """

    ports: Sequence[str] | None = None
    """Ports by name, as in the results (`tor2->root`); `*` stands for anything (`tor2->*`)."""

    switches: Sequence[str] | None = None
    """The ports of these switches, by name; `*` stands for anything."""

    rate: BitRate | None = None
    """The ports of this rate."""

    tier: int | None = None
    """The ports of switches of this tier: 0 next to hosts (ToR, leaf, edge), 1 above them (spine, aggregation), 2 core."""

    buffer: AmountOfBuffer | None = None
    """The buffer of each selected port, in place of `switch.buffer`, static or unlimited."""

    alpha: float | None = None
    """α of each selected port, in place of that of a dynamic `switch.buffer`.

    Accepted: from 0.001 to 1024.
    """

    marking: Marking | None = None
    """How the selected ports mark packets."""

    scheduling: Scheduling | None = None
    """In which order packets leave the selected ports."""

    mechanisms: Mechanisms | Mapping[str, Any] | None = None
    """All mechanisms of the selected switches, in place of `switch.mechanisms`; `{}`: none. Not with `ports` or `rate`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ecmp(Table):
    """No parameters: the hash is seeded per switch from the run's seed."""

    kind: ClassVar[Literal["ecmp"]] = "ecmp"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spray(Table):
    """No parameters: every packet draws its link."""

    kind: ClassVar[Literal["spray"]] = "spray"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RoundRobinPathChoice(Table):
    """No parameters: the packets to one destination take the links in turn."""

    kind: ClassVar[Literal["round_robin"]] = "round_robin"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlowletParams(Table):
    """A flow that has paused for longer than the gap draws a new path."""

    kind: ClassVar[Literal["flowlet"]] = "flowlet"

    gap: Duration | None = None
    """The pause that ends a flowlet; above the difference in path delays nothing is reordered. Source: CONGA §3.6
    (500 us).

    Default: "500us".
    """

    entries: int | None = None
    """Entries of each switch's flowlet table; flows whose hashes meet share an entry, and so a path. Source: CONGA §3.4
    has 65536. Deviation: 4096, which fits the cache of a simulating machine.

    Default: 4096. Accepted: from 1 to 1048576.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class DrillParams(Table):
    """DRILL(d, m): each packet takes the shortest queue of d links drawn at random and the m that were best before. Source: DRILL
    §3.2.
    """

    kind: ClassVar[Literal["drill"]] = "drill"

    d: int | None = None
    """Links that each packet draws, all different; with as many as there are, all are compared. Source: DRILL §3.2 (2).

    Default: 2. Accepted: from 1 to 64.
    """

    m: int | None = None
    """Links that a switch remembers: the best of the last comparison. Source: DRILL §3.2 (1).

    Default: 1. Accepted: from 0 to 64.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class ByDestinationPathChoice(Table):
    """No parameters: the destination's number modulo the number of links, as tables for single addresses are filled (D-mod-k)."""

    kind: ClassVar[Literal["by_destination"]] = "by_destination"


PathChoice: TypeAlias = (
    Ecmp
    | Spray
    | RoundRobinPathChoice
    | FlowletParams
    | DrillParams
    | ByDestinationPathChoice
    | Mapping[str, Any]
    | Literal["ecmp", "spray", "round_robin", "flowlet", "drill", "by_destination"]
)
"""Which of several shortest paths a packet takes.

- `ecmp`: Per flow, by a hash of the 5-tuple.
- `spray`: Per packet, at random.
- `round_robin`: Per packet, in turn for each destination.
- `flowlet`: Per flowlet: a pause in a flow lets it change its path.
- `drill`: Per packet, the shortest queue of a few drawn at random and a few remembered.
- `by_destination`: Per destination host: all packets to it take the same link of a switch.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Switch(Table):
    """All switches of a network. A packet is routed when its last bit has come in; where it waits then is the architecture's."""

    latency: Duration | None = None
    """From a packet's last bit coming in to its joining a queue.

    Default: "0ps". Accepted: from 0ps to 10ms.
    """

    cell: Size | None = None
    """Size of a buffer cell, where something counts in cells; a packet takes a whole number of them. Source: DT
    (memory in fixed cells); 80 bytes is common, 208 in large chips.

    Default: "80B". Accepted: from 1B to 65536B.
    """

    architecture: Architecture | None = None
    """Where packets wait: at output ports alone, or at input ports too.

    Default: { kind = "output_queued" }.
    """

    buffer: Buffer | None = None
    """How much may wait, at output-queued switches.

    Default: { kind = "static", per_port = "512KB" }.
    """

    marking: Marking | None = None
    """How ports mark packets.

    Default: { kind = "none" }.
    """

    class_marking: Sequence[ClassMarking | Mapping[str, Any]] | None = None
    """Classes that are marked by settings of their own, and by their own queues.

    Default: [].
    """

    mechanisms: Mechanisms | Mapping[str, Any] | None = None
    """What switches do besides."""

    scheduling: Scheduling | None = None
    """In which order packets leave.

    Default: { kind = "fifo" }.
    """

    except_: Sequence[Except | Mapping[str, Any]] | None = None
    """Ports and switches that differ. Source: DCTCP §4 (K = 20 packets at 1 Gb/s, 65 at 10 Gb/s).

    Default: [].
    """

    routing: PathChoice | None = None
    """Which of several shortest paths a packet takes.

    Default: { kind = "ecmp" }.
    """

    ttl: int | None = None
    """Time to live that hosts send with: every switch takes one off and drops the packet when none is left, so that it
    crosses one switch less than this. Source: RFC 1812 §5.3.1, RFC 1700 p. 64 (64).

    Default: 64. Accepted: at least 2.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class FairNic(Table):
    """What is not sent yet stays in the sockets."""

    kind: ClassVar[Literal["fair"]] = "fair"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FifoNic(Table):
    """What windows allow stands in the host's queue."""

    kind: ClassVar[Literal["fifo"]] = "fifo"

    txqueuelen: int | None = None
    """Packets that wait there at most, a burst with `tso` being one; absent: any number. Of a connection of TCP a packet too many
    stays unsent and its window falls as for an ECN echo; ACKs and datagrams are lost. Source: Linux txqueuelen (1000),
    pfifo_fast_enqueue, __tcp_transmit_skb.

    Deviation: no ring of the driver's besides, which holds some hundred packets more where there are no byte queue limits.

    Accepted: from 1 to 10000000.
    """


Nic: TypeAlias = FairNic | FifoNic | Mapping[str, Any] | Literal["fair", "fifo"]
"""In which order a host's connections use its NIC.

- `fair`: Round robin over the connections that have something to send, one packet each. Source: Linux sch_fq without
- `fifo`: A connection sends all that its window allows (and `small_queues`) before the next one, in the order in which they
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AtOnce(Table):
    """Each packet reaches its transport as soon as it has arrived."""

    kind: ClassVar[Literal["at_once"]] = "at_once"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Napi(Table):
    """The NIC coalesces interrupts, and the host takes what waits in polls: segments of a flow that follow one another and differ in
    nothing else are handed to the transport as one, which acknowledges them once. Source: Linux NAPI, GRO (napi_poll,
    tcp_gro_receive, skb_gro_receive).

    Deviation: a poll takes no time, and does not span several flows' buckets (gro_list). Control messages of switches do not wait.
    """

    kind: ClassVar[Literal["napi"]] = "napi"

    interrupt_delay: Duration | None = None
    """From the first packet that finds nothing waiting until the poll, rx-usecs of ethtool: mlx5 has 8 us, ice and i40e 50 us.

    Default: "8us". Accepted: from 1ns to 10ms.
    """

    gro: bool | None = None
    """Whether segments are merged.

    Default: true.
    """

    budget: int | None = None
    """Packets of one poll; the next follows at once, but merges nothing with it. Source: Linux NAPI_POLL_WEIGHT.

    Default: 64. Accepted: from 1 to 65535.
    """

    gro_max: Size | None = None
    """Payload bytes of merged segments at most. Source: Linux GRO_LEGACY_MAX_SIZE (64 KiB with headers).

    Default: "65483B". Accepted: from 1460B to 524280B.
    """


Receive: TypeAlias = AtOnce | Napi | Mapping[str, Any] | Literal["at_once", "napi"]
"""How packets come from the NIC to the transport.

- `at_once`: One by one.
- `napi`: In polls, with segments merged.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoneNoise(Table):
    """None."""

    kind: ClassVar[Literal["none"]] = "none"


@dataclasses.dataclass(frozen=True, kw_only=True)
class UniformNoise(Table):
    """Uniform from zero."""

    kind: ClassVar[Literal["uniform"]] = "uniform"

    max: Duration | None = None
    """At most.

    Default: "10us". Accepted: from 1ns to 10ms.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExponentialNoise(Table):
    """Exponential."""

    kind: ClassVar[Literal["exponential"]] = "exponential"

    mean: Duration | None = None
    """On average.

    Default: "5us". Accepted: from 1ns to 10ms.
    """


Noise: TypeAlias = NoneNoise | UniformNoise | ExponentialNoise | Mapping[str, Any] | Literal["none", "uniform", "exponential"]
"""What a host adds to the delay of each packet that it receives.

- `none`: Nothing.
- `uniform`: Any delay up to a bound is as likely as another.
- `exponential`: Short delays are likely, long ones possible.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReorderBuffer(Table):
    """Packets that come too early wait in front of the transport for those before them, by their places in the flow's bytes; it sees
    them in order. What is there already, and what has no place (acknowledgments, datagrams), does not wait. Source: Vertigo §3.3,
    DRILL §3.3, which have such a buffer between NIC and transport.
    """

    timeout: Duration | None = None
    """A packet goes on after this time, whatever is missing. Source: Vertigo (360 us in the simulations that were published with
    it).

    Default: "360us". Accepted: from 1ns to 1s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class PauseWatchdog(Table):
    """The storm watchdog of NICs: a class that stays paused is sent all the same, until its pauses have been over for a while. Source:
    PFC-watchdog, which switches have; here for hosts.
    """

    detection: Duration | None = None
    """A class that is paused without a break while packets wait, for so long, is in a storm. Source: PFC-watchdog (200 ms).

    Default: "200ms". Accepted: from 1us to 100s.
    """

    restoration: Duration | None = None
    """A storm is over when the class has not been paused for so long. Source: PFC-watchdog (200 ms).

    Default: "200ms". Accepted: from 1us to 100s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Storm(Table):
    """NICs that ask their switch for pauses without a break: a defect, and what PFC storms come from. They go on receiving what comes,
    and sending. Source: RDMA-at-scale §4.3.
    """

    hosts: Sequence[str]
    """Names as in the results (`h3`), `*` stands for anything.

    Must be given.
    """

    classes: Sequence[int]
    """Classes that the switch is to pause: priorities of PFC frames.

    Must be given. Accepted: from 0 to 7.
    """

    start: Instant | None = None
    """When it begins.

    Default: "0ps".
    """

    end: Instant | None = None
    """When it is over. Absent: never."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Host(Table):
    """What hosts do besides their transport."""

    nic: Nic | None = None
    """In which order connections use the NIC.

    Default: { kind = "fair" }.
    """

    processing_delay: Duration | None = None
    """From the arrival of a packet's last bit until the transport sees it.

    Default: "0ps". Accepted: from 0ps to 10ms.
    """

    receive: Receive | None = None
    """How packets come from the NIC to the transport.

    Default: { kind = "at_once" }.
    """

    noise: Noise | None = None
    """A random delay of each packet received, besides `processing_delay`, drawn by host. A host's packets stay in order: one
    waits for those before it.

    Default: { kind = "none" }.
    """

    reorder: ReorderBuffer | Mapping[str, Any] | None = None
    """A buffer that puts packets in order before the transport sees them. Absent: there is none."""

    pause_watchdog: PauseWatchdog | Mapping[str, Any] | None = None
    """The storm watchdog of NICs: what becomes of a class whose pause does not end. Absent: it waits."""

    storms: Sequence[Storm | Mapping[str, Any]] | None = None
    """NICs that ask for pauses without need: PFC storms.

    Default: [].
    """

    stall_prevention: Duration | None = None
    """A NIC that has asked for pauses of a class for so long without a break asks for none any more, until it has had no need
    to. Absent: it goes on. Source: NVIDIA (pfc_prevention_tout: 100 ms where it is set to auto, 8 s by default).

    Accepted: from 1us to 100s.
    """


Profile: TypeAlias = Literal["rfc", "linux"]
"""Which defaults apply to keys that are not given.

- `rfc`: What the RFCs say.
- `linux`: What Linux does.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NewReno(Table):
    """NewReno has no parameters of its own."""

    kind: ClassVar[Literal["newreno"]] = "newreno"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reno(Table):
    """Reno has no parameters of its own."""

    kind: ClassVar[Literal["reno"]] = "reno"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cubic(Table):
    """CUBIC. Source: RFC 9438 §4, §5."""

    kind: ClassVar[Literal["cubic"]] = "cubic"

    c: float | None = None
    """C, how steeply the window function rises [segments/s³]. Source: RFC 9438 §5.1 (0.4).

    Default: 0.4. Accepted: from 0.0001 to 1000.
    """

    beta: float | None = None
    """beta_cubic, what a reduction leaves of the window. Source: RFC 9438 §4.6 (0.7).

    Default: 0.7. Accepted: from 0.1 to 0.95.
    """

    fast_convergence: bool | None = None
    """Release bandwidth sooner when the last maximum was not reached again. Source: RFC 9438 §4.7.

    Default: true.
    """

    reno_friendly: bool | None = None
    """Grow at least as fast as Reno would. Source: RFC 9438 §4.3.

    Default: true.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dctcp(Table):
    """DCTCP. Source: RFC 8257 §3.3, §4."""

    kind: ClassVar[Literal["dctcp"]] = "dctcp"

    g: float | None = None
    """Weight g of the newest window in the moving average of the marked fraction. Source: RFC 8257 §3.3, §4 (1/16).

    Default: 0.0625. Accepted: from 0.0001 to 1.
    """

    initial_alpha: float | None = None
    """The marked fraction alpha assumed before the first window. Source: RFC 8257 §3.3 (1).

    Default: 1.0. Accepted: from 0 to 1.
    """

    min_window: int | None = None
    """Marks do not reduce the window below this many segments. Source: Linux tcp_dctcp.c (2); RFC 3168 §6.1.2
    has 1.

    Default: 2. Accepted: from 1 to 64.
    """


CongestionControl: TypeAlias = NewReno | Reno | Cubic | Dctcp | Mapping[str, Any] | Literal["newreno", "reno", "cubic", "dctcp"]
"""How the sender finds its rate.

- `newreno`: AIMD with NewReno's fast recovery. Source: RFC 5681, RFC 6582.
- `reno`: AIMD with the fast recovery that the first new ACK ends, without SACK by default. Source: RFC 5681 §3.2.
- `cubic`: CUBIC. Source: RFC 9438.
- `dctcp`: Data Center TCP: the window shrinks by the fraction of marked bytes. Source: RFC 8257.
"""


InitialWindow: TypeAlias = Literal["rfc5681", "rfc6928"]
"""How the initial window follows from the segment size.

- `rfc5681`: 4, 3 or 2 segments; 3 on Ethernet. Source: RFC 5681 §3.1, which takes RFC 3390's place.
- `rfc6928`: min (10·MSS, max (2·MSS, 14600)). Source: RFC 6928 §2.
"""


WindowRules: TypeAlias = Literal["rfc", "linux"]
"""By whose arithmetic the window falls and grows.

- `rfc`: ssthresh from FlightSize; CUBIC as RFC 9438 has it; congestion avoidance counts bytes that are acknowledged cumulatively.
- `linux`: ssthresh from cwnd in whole segments, once per recovery with its timeouts; CUBIC as tcp_cubic.c has it, in ticks of
"""


SlowStart: TypeAlias = Literal["standard", "hystart", "hystart++"]
"""What ends slow start before a loss.

- `standard`: Nothing but ssthresh. Source: RFC 5681 §3.1.
- `hystart`: HyStart: a train of ACKs as long as half the least RTT, or an RTT that has risen by an eighth (4 to 16 ms); a part of
- `hystart++`: HyStart++: when the RTT has risen by an eighth (4 to 16 ms), up to five rounds at a quarter of the speed. Source: RFC 9406.
"""


IdleRestart: TypeAlias = Literal["none", "rfc5681", "decay"]
"""What becomes of the window of a connection that has been idle for longer than an RTO.

- `none`: It stays.
- `rfc5681`: It falls to min (initial window, cwnd). Source: RFC 5681 §4.1.
- `decay`: It halves once per RTO of idle time, down to that. Source: RFC 2861 §3.1, Linux tcp_cwnd_restart.
"""


LossDetection: TypeAlias = Literal["rfc6675", "rack"]
"""How losses are found where both ends have SACK.

- `rfc6675`: By the number of segments that were SACKed above. Source: RFC 6675 §4.
- `rack`: By time: a segment is lost when one that left later has arrived and the reordering window has passed; lost
"""


RtoFloor: TypeAlias = Literal["rto", "variance"]
"""What RTO_min bounds.

- `rto`: The whole RTO. Source: RFC 6298 §2.4.
- `variance`: The variance term: RTO = SRTT + max (RTO_min, 4·RTTVAR). Source: Linux tcp_rtt_estimator.
"""


BackoffReset: TypeAlias = Literal["sample", "ack"]
"""When a doubled RTO is reset.

- `sample`: With the next RTT sample, which retransmitted segments do not give. Source: RFC 6298 §3, §5.7.
- `ack`: With any ACK of new data. Source: Linux tcp_clean_rtx_queue.
"""


RttSampling: TypeAlias = Literal["timed_segment", "timestamps", "every_ack"]
"""Where RTT samples come from.

- `timed_segment`: One timed segment per round, Karn's algorithm. Source: RFC 6298 §3.
- `timestamps`: Every ACK's echoed timestamp, with the gains of RFC 7323 appendix G; needs `timestamps`, and is as fine as
- `every_ack`: Every ACK: the first segment that it acknowledges newly, if it was sent once, by the exact clock; the variance follows
"""


SpuriousRto: TypeAlias = Literal["none", "f_rto", "eifel"]
"""How a timeout that was not a loss is found out. The answer is RFC 4015's.

- `none`: It is not.
- `f_rto`: By the first two ACKs after it. Source: RFC 5682 §2.1.
- `eifel`: By the echoed timestamp of the first ACK after it; needs `timestamps`. Source: RFC 3522 §3.2.
"""


DelayedAcks: TypeAlias = Literal["fixed", "adaptive"]
"""How long an ACK may wait.

- `fixed`: For `ack_every` segments, or `delayed_ack_timeout`. Source: RFC 5681 §4.2.
- `adaptive`: For more than `ack_every` − 1 segments of the size seen, or a time that follows the spacing of arrivals, from
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoneSackCompression(Table):
    """Each segment out of order is acknowledged at once. Source: RFC 5681 §4.2."""

    kind: ClassVar[Literal["none"]] = "none"


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompressedSacks(Table):
    """The first three ACKs with the same number leave at once, as fast retransmit needs them; those after it wait and are merged."""

    kind: ClassVar[Literal["timer"]] = "timer"

    delay: Duration | None = None
    """The longest wait; at most 5 % of the RTT. Source: Linux tcp_comp_sack_delay_ns.

    Default: "1ms". Accepted: from 1ns to 100ms.
    """

    slack: Duration | None = None
    """How much later than that the timer runs. Source: Linux tcp_comp_sack_slack_ns, which the kernel takes in full unless
    another timer runs in between.

    Default: "100us". Accepted: from 0ps to 100ms.
    """

    most: int | None = None
    """So many ACKs are merged at most. Source: Linux tcp_comp_sack_nr.

    Default: 44. Accepted: from 1 to 255.
    """


SackCompression: TypeAlias = NoneSackCompression | CompressedSacks | Mapping[str, Any] | Literal["none", "timer"]
"""Whether ACKs of segments out of order are merged.

- `none`: They are not.
- `timer`: By a timer. Source: Linux tcp_comp_sack_delay_ns.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FixedWindow(Table):
    """A receive buffer of one size."""

    kind: ClassVar[Literal["fixed"]] = "fixed"

    size: Size | None = None
    """Its size, rounded down to what the window scale can express.

    Default: "16777216B". Accepted: from 1460B to 1073725440B.
    """


WindowGrowth: TypeAlias = Literal["linux-5.15", "linux-6.18"]
"""How a receiver measures its RTT, and what it gives room for after one in which more was read than in any before.

- `linux-5.15`: The RTT is smoothed over 8 samples, echoes of the present tick of the clock count as a tick; twice what was read and 16
- `linux-6.18`: A lower RTT counts at once, echoes of the present tick and higher RTTs while data is unread do not; no segments more,
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GrowingWindow(Table):
    """A receive buffer that grows with the rate, of which a part is window. At the start the window is `buffer` · `share` less a
    segment (64,088 B). Once per RTT in which more has been read than in any before it, the buffer is given room for twice as
    much, and twice the growth on top (`growth`); the window follows by two segments for each that arrives.

    Source: DRS; Linux tcp_init_buffer_space, tcp_rcv_space_adjust, tcp_grow_window, __tcp_select_window.
    Deviation: Linux 5.15 rounds the memory of a segment up, which makes windows 3 % larger.
    """

    kind: ClassVar[Literal["auto"]] = "auto"

    buffer: Size | None = None
    """Memory at the start. Source: Linux tcp_rmem[1].

    Default: "131072B". Accepted: from 4096B to 1073725440B.
    """

    max_buffer: Size | None = None
    """Memory at most. Source: Linux tcp_rmem[2] (6.18: 32 MiB).

    Default: "6291456B". Accepted: from 4096B to 1073725440B.
    """

    share: float | None = None
    """Which part of the memory is window before the first full segment arrives. Source: Linux 5.15 tcp_adv_win_scale = 1; 6.12
    TCP_DEFAULT_SCALING_RATIO.

    Default: 0.5. Accepted: from 0.05 to 1.
    """

    frame_share: float | None = None
    """Which part it is afterwards: payload of a full segment over the memory that holds it; `linux`: 0.625, 1448 B in a buffer
    of 2 KiB with 256 B of sk_buff. Absent: `share`. Source: Linux 6.12 scaling_ratio; 5.15 has none.

    Accepted: from 0.05 to 1.
    """

    growth: WindowGrowth | None = None
    """How it grows; `linux`: "linux-6.18".

    Default: "linux-5.15".
    """


ReceiveWindow: TypeAlias = FixedWindow | GrowingWindow | Mapping[str, Any] | Literal["fixed", "auto"]
"""The receive window.

- `fixed`: One size.
- `auto`: Growing with the rate.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LastPushBit(Table):
    """The last segment of what the application has written carries PSH. Source: RFC 9293 §3.9.1.2."""

    kind: ClassVar[Literal["last"]] = "last"


@dataclasses.dataclass(frozen=True, kw_only=True)
class HalfWindowPush(Table):
    """So does each that ends more than half a window beyond the last PSH, counted where the application writes; the window is the
    largest that the other end had offered then. A receiver whose `delayed_acks` are "adaptive" takes it for the end of a message,
    and one whose NIC merges segments merges none behind it. Source: Linux tcp_sendmsg_locked, forced_push.
    Deviation: a segment that is sent again carries none.
    """

    kind: ClassVar[Literal["half_window"]] = "half_window"

    writes: Sequence[Size] | None = None
    """How much each call of the application writes, the last value again and again; calls follow each other at once. Each
    begins a new half of the window. Empty: one call.

    Default: [].
    """


PushBit: TypeAlias = LastPushBit | HalfWindowPush | Mapping[str, Any] | Literal["last", "half_window"]
"""Which segments carry PSH.

- `last`: The last one of what the application has written.
- `half_window`: And one after each half window.
"""


EcnEcho: TypeAlias = Literal["classic", "dctcp"]
"""How a receiver echoes congestion marks.

- `classic`: ECE on every ACK until CWR arrives. Source: RFC 3168 §6.1.3.
- `dctcp`: ECE reports exactly which segments were marked, by the DCTCP.CE state. Source: RFC 8257 §3.2.
"""


EctOn: TypeAlias = Literal["new_data", "data", "all"]
"""Which packets are sent ECN-capable.

- `new_data`: Data sent for the first time. Source: RFC 3168 §6.1.4, §6.1.5.
- `data`: All data, retransmissions too.
- `all`: Every packet, ACKs, SYN and FIN too. Source: Linux, for congestion controls that need ECN.
"""


DropResend: TypeAlias = Literal["at_once", "window"]
"""When a segment is retransmitted after a drop notification.

- `at_once`: At once, whatever congestion window and pacing say. Source: PDN §IV.
- `window`: When the window has room for it, before anything new; at once where nothing else is in flight.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NonePacing(Table):
    """As many segments back to back as the window allows."""

    kind: ClassVar[Literal["none"]] = "none"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paced(Table):
    """Paced at gain · cwnd / SRTT, from the first RTT sample on. Source: Linux tcp_update_pacing_rate, sch_fq."""

    kind: ClassVar[Literal["fq"]] = "fq"

    slow_start_gain: float | None = None
    """Gain while cwnd < ssthresh / 2. Source: Linux tcp_pacing_ss_ratio (200 %).

    Default: 2.0. Accepted: from 0.1 to 100.
    """

    gain: float | None = None
    """Gain otherwise. Source: Linux tcp_pacing_ca_ratio (120 %).

    Default: 1.2. Accepted: from 0.1 to 100.
    """


Pacing: TypeAlias = NonePacing | Paced | Mapping[str, Any] | Literal["none", "fq"]
"""Whether segments are spread over the RTT.

- `none`: Not paced.
- `fq`: Paced by the window and the RTT.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tcp(Table):
    """TCP. Defaults are those of the `rfc` profile; where the `linux` profile has another, the text says so."""

    kind: ClassVar[Literal["tcp"]] = "tcp"

    profile: Profile | None = None
    """Which defaults apply to the other keys.

    Default: "rfc".
    """

    congestion_control: CongestionControl | None = None
    """Congestion control; `linux`: cubic. "dctcp" also turns `ecn` on with `ecn_echo = "dctcp"` (and in the `linux`
    profile `ect_on = "all"`), "reno" turns `sack` off, unless these keys are given.

    Default: { kind = "newreno" }.
    """

    handshake: bool | None = None
    """Open with a three-way handshake and close with FIN; without it connections are open from the start and never
    close, as persistent connections between servers. Source: RFC 9293 §3.5, §3.6.

    Default: true.
    """

    mtu: int | None = None
    """Maximum transmission unit: bytes of the largest IP packet; with IPv6 at least 1280 (RFC 8200 §5).

    Default: 1500. Accepted: from 576 to 65000.
    """

    mss: int | None = None
    """Payload bytes of a full segment. Absent: MTU − 40, and 12 less with timestamps (RFC 6691): 1448 or 1460; with IPv6
    20 less, 1428 or 1440.

    Accepted: from 64 to 64000.
    """

    initial_window: int | None = None
    """Window after the handshake, in segments; `linux`: 10. Absent: by `initial_window_rule`.
    Source: Linux TCP_INIT_CWND.

    Accepted: from 1 to 100000.
    """

    initial_window_rule: InitialWindow | None = None
    """The initial window where `initial_window` is absent.

    Default: "rfc5681".
    """

    initial_ssthresh: Size | None = None
    """ssthresh at the start. Absent: arbitrarily high. Source: RFC 5681 §3.1.

    Accepted: at least 1KB.
    """

    window_rules: WindowRules | None = None
    """By whose arithmetic ssthresh and CUBIC are computed; `linux`: "linux".

    Default: "rfc".
    """

    slow_start: SlowStart | None = None
    """What ends slow start before a loss; `linux` with CUBIC: "hystart".

    Default: "standard".
    """

    slow_start_limit: int | None = None
    """In slow start, cwnd grows by what an ACK covers, at most by this many segments (L of RFC 3465); `linux`:
    no limit; with `slow_start = "hystart++"` 8, or no limit with pacing. Source: RFC 5681 §3.1 (1), RFC 9406 §4.3.

    Default: 1. Accepted: from 1 to 65535.
    """

    cwnd_validation: bool | None = None
    """The window grows only while it is used up. Source: RFC 7661 §4.2; Linux tcp_is_cwnd_limited.

    Default: true.
    """

    idle_restart: IdleRestart | None = None
    """What idle time does to the window; `linux`: "decay".

    Default: "rfc5681".
    """

    sack: bool | None = None
    """Selective acknowledgments and loss recovery with them. Source: RFC 2018, RFC 6675.

    Default: true.
    """

    loss_detection: LossDetection | None = None
    """How losses are found, with SACK; `linux`: "rack".

    Default: "rfc6675".
    """

    tail_loss_probe: bool | None = None
    """With "rack": a segment is sent after two RTTs without an ACK, so that the loss of a tail is found before the RTO.
    Source: RFC 8985 §7.

    Default: true.
    """

    undo: bool | None = None
    """With "rack": a reduction is undone when D-SACKs or timestamps show that nothing was lost. Source: Linux
    tcp_try_undo_recovery, tcp_try_undo_loss.

    Default: true.
    """

    timer_slack: Duration | None = None
    """With "rack": what probe and reordering timeouts wait longer, for timers that are late; `linux`: 2 ms. Source: Linux
    TCP_TIMEOUT_MIN_US.

    Default: "0ps". Accepted: from 0ps to 1s.
    """

    dup_thresh: int | None = None
    """Duplicate ACKs (or segments SACKed above) that mean a loss; with "rack", that end the waiting for reordered
    segments. More than windows have segments: none do, as for networks that reorder. Source: RFC 5681 §3.2, RFC 6675 §2 (3),
    RFC 8985 §6.2 step 4.

    Default: 3. Accepted: from 1 to 65535.
    """

    limited_transmit: bool | None = None
    """New data on the first duplicate ACKs. Source: RFC 3042.

    Default: true.
    """

    prr: bool | None = None
    """Proportional rate reduction in SACK recovery and after ECN echoes; `linux`: on. With "rack" the window is bounded by
    what was delivered, and a segment more on cumulative ACKs that report no loss (RFC 9937); else by slow start (RFC 6937).
    Source: RFC 6937, RFC 9937.

    Default: false.
    """

    rto_initial: Duration | None = None
    """RTO before the first RTT sample. Source: RFC 6298 §2.1 (1 s).

    Default: "1s". Accepted: from 1us to 60s.
    """

    rto_min: Duration | None = None
    """RTO_min; `linux`: 200 ms. Source: RFC 6298 §2.4 (1 s); Linux TCP_RTO_MIN.

    Default: "1s". Accepted: from 0ps to 60s.
    """

    rto_floor: RtoFloor | None = None
    """What RTO_min bounds; `linux`: "variance".

    Default: "rto".
    """

    rto_max: Duration | None = None
    """RTO_max, also after back-off; `linux`: 120 s. Source: RFC 6298 §2.5 (at least 60 s); Linux TCP_RTO_MAX.

    Default: "60s". Accepted: from 1us to 3600s.
    """

    clock_granularity: Duration | None = None
    """Clock granularity G: the least variance term, and RTOs are multiples of it. Source: RFC 6298 §2.2, §4 (at most
    100 ms); Linux HZ = 1000.

    Default: "1ms". Accepted: from 0ps to 500ms.
    """

    timer_ticks: bool | None = None
    """The timers of RACK, its RTO with them, and of adaptive delayed ACKs expire at a tick of a clock that all hosts share: the
    first after they are due, ticks being `clock_granularity` apart from the start of the simulation on. Off: exactly.
    Source: Linux timer wheel (calc_index). Deviation: other timers are exact.

    Default: false.
    """

    backoff_reset: BackoffReset | None = None
    """When a doubled RTO is reset; `linux`: "ack".

    Default: "sample".
    """

    rtt_sampling: RttSampling | None = None
    """Where RTT samples come from; `linux`: "every_ack".

    Default: "timed_segment".
    """

    spurious_rto: SpuriousRto | None = None
    """Detection of spurious timeouts; `linux`: "f_rto".

    Default: "none".
    """

    max_retries: int | None = None
    """Timeouts in a row that end a connection with `Aborted`. Source: Linux tcp_retries2 (15); RFC 9293 §3.8.3 (R2:
    at least 100 s).

    Default: 15. Accepted: from 1 to 200.
    """

    syn_retries: int | None = None
    """The same for SYN and SYN/ACK. Source: Linux tcp_syn_retries (6); RFC 9293 §3.8.3 (at least 3 minutes).

    Default: 8. Accepted: from 1 to 200.
    """

    time_wait: Duration | None = None
    """Time in TIME-WAIT; `linux`: 60 s. Source: RFC 9293 §3.6.1 (2 MSL, 4 minutes); Linux TCP_TIMEWAIT_LEN.

    Default: "240s". Accepted: from 0ps to 3600s.
    """

    timestamps: bool | None = None
    """The timestamps option: 12 bytes of every segment. Source: RFC 7323 §3.

    Default: true.
    """

    timestamp_tick: Duration | None = None
    """Tick of the timestamp clock. Source: RFC 7323 §5.4 (1 ms to 1 s).

    Default: "1ms". Accepted: from 1ns to 1s.
    """

    ack_every: int | None = None
    """One ACK for this many segments that arrive in order; 1: no delayed ACKs. Source: RFC 5681 §4.2 (2).

    Default: 2. Accepted: from 1 to 255.
    """

    delayed_acks: DelayedAcks | None = None
    """How long other ACKs wait; `linux`: "adaptive".

    Default: "fixed".
    """

    delayed_ack_timeout: Duration | None = None
    """How long an ACK may wait, where adaptive at the start; `linux`: 40 ms. Source: RFC 9293 §3.8.6.3 (less than 500 ms; BSD
    has 200 ms); Linux TCP_ATO_MIN, TCP_DELACK_MIN.

    Default: "200ms". Accepted: from 1ns to below 500ms.
    """

    delayed_ack_max: Duration | None = None
    """The longest wait of an adaptive ACK. Source: Linux TCP_DELACK_MAX.

    Default: "200ms". Accepted: from 1ns to below 500ms.
    """

    quick_acks: int | None = None
    """ACKs that are not delayed at the start, after idle time and, where fixed, after out-of-order data, where adaptive, after
    duplicates and at most as many as half a window has segments; `linux`: 16. Source: Linux TCP_MAX_QUICKACKS,
    tcp_incr_quickack.

    Default: 0. Accepted: from 0 to 255.
    """

    sack_compression: SackCompression | None = None
    """Whether ACKs of segments out of order are merged; `linux`: "timer". Needs `sack`.

    Default: { kind = "none" }.
    """

    dsack: bool | None = None
    """The first SACK block of the next ACK reports data that arrived twice; `linux`: on. Needs `sack`. Source: RFC 2883 §4.

    Default: false.
    """

    paws: bool | None = None
    """Segments with a timestamp older than the one to be echoed, by more than a tick, are dropped and acknowledged; `linux`: on.
    Needs `timestamps`. Source: RFC 7323 §5; Linux tcp_paws_discard, tcp_disordered_ack. Deviation: none for timestamps that
    were not updated for 24 days.

    Default: false.
    """

    receive_window: ReceiveWindow | None = None
    """The receive window; `linux`: "auto".

    Default: { kind = "fixed", size = "16777216B" }.
    """

    push: PushBit | None = None
    """Which segments carry PSH; `linux`: "half_window".

    Default: { kind = "last" }.
    """

    ecn: bool | None = None
    """Explicit congestion notification, where the other end agrees. Source: RFC 3168 §6.1.1.

    Default: false.
    """

    ecn_echo: EcnEcho | None = None
    """How marks are echoed.

    Default: "classic".
    """

    ect_on: EctOn | None = None
    """Which packets are ECN-capable.

    Default: "new_data".
    """

    drop_notification: bool | None = None
    """Acts on drop notifications of switches: what was dropped is sent again at once, and the window falls, at most once per
    RTT. Segments are 20 bytes smaller, with IPv6 44, so that a full frame has room for a notification; both ends should
    have it. Source: PDN §IV.

    Default: false.
    """

    trim_nack: bool | None = None
    """Answers trimmed packets: a receiver of headers whose payload a switch has cut off notifies the sender at once, by an ACK
    with a NACK, and the sender acts on it as on a drop notification. Both ends have it. Source: NDP §3.1, CP.

    Default: false.
    """

    drop_resend: DropResend | None = None
    """When segments named by drop notifications and NACKs are retransmitted.

    Default: "at_once".
    """

    pacing: Pacing | None = None
    """Pacing.

    Default: { kind = "none" }.
    """

    tso: bool | None = None
    """Segmentation offload: segments leave in back-to-back bursts of what cwnd / SRTT sends in a millisecond, at least two
    segments and at most `tso_max`, and the sender waits for a third of the window before it starts one.
    Source: Linux tcp_tso_autosize (sk_pacing_shift = 10, tcp_min_tso_segs = 2), tcp_tso_should_defer.

    Default: false.
    """

    tso_max: Size | None = None
    """Largest burst with `tso`. Source: Linux GSO_MAX_SIZE (64 KiB).

    Default: "65536B". Accepted: from 1460B to 65536B.
    """

    tso_rtt_log: int | None = None
    """With `tso`, bursts are longer where the RTT is short: by `tso_max` halved once per 2^this µs of the shortest RTT; 0: they
    are not, as before Linux 5.18. Source: Linux tcp_tso_rtt_log.

    Default: 9. Accepted: from 0 to 31.
    """

    small_queues: bool | None = None
    """TCP small queues: of a connection no more stands in a `nic = "fifo"` than cwnd / SRTT sends in a millisecond, twice that
    when retransmitting, two bursts at least; without pacing 1 MiB at most. The rest stays in its socket. `linux`: on.
    Source: Linux tcp_small_queue_check (since 3.6), sk_pacing_shift = 10, tcp_limit_output_bytes.

    Default: false.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoRateControl(Table):
    """No congestion control."""

    kind: ClassVar[Literal["none"]] = "none"

    rate: BitRate | None = None
    """The rate of each queue pair, all bytes on the wire counted. Absent: the NIC's.

    Accepted: from 1Mbps to 10Tbps.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hpcc(Table):
    """HPCC. Source: HPCC §3.2, Algorithm 1; values: HPCC §5.1."""

    kind: ClassVar[Literal["hpcc"]] = "hpcc"

    eta: float | None = None
    """eta: share of a link's capacity that flows aim at.

    Default: 0.95. Accepted: from 0.5 to 1.
    """

    max_stage: int | None = None
    """maxStage: round trips of additive increase before a multiplicative one.

    Default: 5. Accepted: from 0 to 100.
    """

    increase: Size | None = None
    """W_AI: additive increase in a round trip.

    Default: "80B". Accepted: from 0B to 1MB.
    """

    base_rtt: Duration | None = None
    """T: base RTT of all flows. Absent: of each flow its own, on an idle network.

    Accepted: from 100ns to 10ms.
    """

    min_rate: BitRate | None = None
    """No flow sends at less.

    Default: "100Mbps". Accepted: at least 1Mbps.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class PowerTcp(Table):
    """PowerTCP. Source: PowerTCP §3.3, Algorithm 1; values: the simulations published with it."""

    kind: ClassVar[Literal["powertcp"]] = "powertcp"

    gamma: float | None = None
    """gamma: weight of a new window against that of the round trip before.

    Default: 0.9. Accepted: from 0.01 to 1.
    """

    eta: float | None = None
    """Share of a link that flows aim at: power is divided by it. The paper's algorithm has 1.

    Default: 0.95. Accepted: from 0.5 to 1.
    """

    least_current: float | None = None
    """Current counts as so much of the link's rate at least. The paper's algorithm has 0.

    Default: 0.5. Accepted: from 0 to 1.
    """

    flows: int | None = None
    """N: flows of a host that shall share its line; beta = line rate · tau / N is the additive increase in a round trip.

    Default: 167. Accepted: from 1 to 1000000.
    """

    base_rtt: Duration | None = None
    """tau: base RTT of all flows. Absent: of each flow its own, on an idle network.

    Accepted: from 100ns to 10ms.
    """

    min_rate: BitRate | None = None
    """No flow sends at less.

    Default: "100Mbps". Accepted: at least 1Mbps.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class ThetaPowerTcp(Table):
    """PowerTCP without telemetry. Source: PowerTCP §3.3, Algorithm 2; values: the simulations published with it."""

    kind: ClassVar[Literal["theta_powertcp"]] = "theta_powertcp"

    gamma: float | None = None
    """gamma: weight of a new window against that of the round trip before. The paper's algorithm has 0.9.

    Default: 0.7. Accepted: from 0.01 to 1.
    """

    eta: float | None = None
    """Share of tau over RTT that flows aim at: power is divided by it. The paper's algorithm has 1.

    Default: 0.95. Accepted: from 0.5 to 1.
    """

    least_current: float | None = None
    """Current counts as so much of the link's rate at least. The paper's algorithm has 0.

    Default: 0.5. Accepted: from 0 to 1.
    """

    flows: int | None = None
    """N: flows of a host that shall share its line; beta = line rate · tau / N is the additive increase in a round trip.

    Default: 167. Accepted: from 1 to 1000000.
    """

    base_rtt: Duration | None = None
    """tau: base RTT of all flows. Absent: of each flow its own, on an idle network.

    Accepted: from 100ns to 10ms.
    """

    min_rate: BitRate | None = None
    """No flow sends at less.

    Default: "100Mbps". Accepted: at least 1Mbps.
    """


DcqcnProfile: TypeAlias = Literal["paper", "mlx5"]
"""Which defaults apply to keys that are not given.

- `paper`: Those that the paper arrives at. Source: DCQCN §5.2 and table 14.
- `mlx5`: Those of ConnectX adapters. Source: NVIDIA (mlx5: rp and np parameters in sysfs), from memory.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dcqcn(Table):
    """DCQCN. Source: DCQCN §3."""

    kind: ClassVar[Literal["dcqcn"]] = "dcqcn"

    profile: DcqcnProfile | None = None
    """Which defaults apply to the other keys.

    Default: "paper".
    """

    cnp_interval: Duration | None = None
    """A receiver sends one notification (CNP) per flow in this time at most, N; `mlx5`: 4 us (min_time_between_cnps). Source: DCQCN
    §3.1 (50 us).

    Default: "50us". Accepted: from 0ps to 10ms.
    """

    cnp_delay: Duration | None = None
    """What a receiver's NIC takes from a marked packet to the notification. Measurements are matched with up to 55 us.

    Default: "0ps". Accepted: from 0ps to 10ms.
    """

    g: float | None = None
    """g: weight of a notification in the moving average α; `mlx5`: 5/1024 (dce_tcp_g). Source: DCQCN §5.2 (1/256).

    Default: 0.00390625. Accepted: from 0.00001 to 1.
    """

    initial_alpha: float | None = None
    """α before the first notification (initial_alpha_value), which halves the rate with 1. Source: DCQCN §3.1.

    Default: 1.0. Accepted: from 0 to 1.
    """

    alpha_timer: Duration | None = None
    """α falls by g in each such time without a notification, K; `mlx5`: 1 us (dce_tcp_rtt). Source: DCQCN §3.1 (55 us).

    Default: "55us". Accepted: from 100ns to 100ms.
    """

    rate_timer: Duration | None = None
    """The rate rises each time this timer expires, T; `mlx5`: 300 us (rpg_time_reset). Source: DCQCN §5.2 (55 us; QCN's 1.5 ms is
    found too slow).

    Default: "55us". Accepted: from 100ns to 100ms.
    """

    byte_counter: Size | None = None
    """And each time this many bytes have left, B; `mlx5`: 32767 B (rpg_byte_reset). Source: DCQCN §5.2 (10 MB; QCN's 150 KB is
    found unfair).

    Default: "10MB". Accepted: from 1KB to 10GB.
    """

    fast_recovery: int | None = None
    """F: steps of fast recovery; `mlx5`: 1 (rpg_threshold). Source: DCQCN §3.1 (5).

    Default: 5. Accepted: from 0 to 100.
    """

    additive_increase: BitRate | None = None
    """R_AI: what the target rises by in additive increase; `mlx5`: 5 Mb/s (rpg_ai_rate). Source: DCQCN §5.2
    (40 Mb/s).

    Default: "40Mbps". Accepted: from 1Kbps to 1Tbps.
    """

    hyper_increase: BitRate | None = None
    """R_HAI: the same in hyper increase, when timer and byte counter are both beyond F; `mlx5`: 50 Mb/s (rpg_hai_rate).
    Source: QCN, ten times R_AI; the paper has no number.

    Default: "400Mbps". Accepted: from 1Kbps to 1Tbps.
    """

    min_rate: BitRate | None = None
    """Rates do not fall below this; `mlx5`: 1 Mb/s (rpg_min_rate).

    Default: "10Mbps". Accepted: from 1Kbps to 1Tbps.
    """

    clamp_target: bool | None = None
    """Each notification makes the present rate the target; `mlx5`: only the first since the rate rose. Source: DCQCN §3.1;
    NVIDIA (clamp_tgt_rate).

    Default: true.
    """

    decrease_interval: Duration | None = None
    """The rate falls once in this time at most; α counts each notification. `mlx5`: 4 us. Source: NVIDIA
    (rate_reduce_monitor_period).

    Default: "0ps". Accepted: from 0ps to 10ms.
    """

    min_decrease_factor: float | None = None
    """One notification reduces the rate to this share of it at most. Source: NVIDIA (rpg_min_dec_fac, 50 %); DCQCN §3.1 (α/2).

    Default: 0.5. Accepted: from 0 to 1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Timely(Table):
    """TIMELY. Source: TIMELY §4.3."""

    kind: ClassVar[Literal["timely"]] = "timely"

    t_low: Duration | None = None
    """T_low: below this RTT the rate rises, whatever the gradient. Source: TIMELY §6.1 (50 us).

    Default: "50us". Accepted: from 100ns to 100ms.
    """

    t_high: Duration | None = None
    """T_high: above this RTT the rate falls, whatever the gradient. Source: TIMELY §6.1 (500 us).

    Default: "500us". Accepted: from 100ns to 100ms.
    """

    min_rtt: Duration | None = None
    """D_minRTT, by which gradients are divided. Absent: the base RTT of the flow. Source: TIMELY §4.3 (20 us in its testbed).

    Accepted: from 100ns to 100ms.
    """

    delta: BitRate | None = None
    """δ: additive increase per completion. Source: TIMELY §6.1 (10 Mb/s).

    Default: "10Mbps". Accepted: from 1Kbps to 1Tbps.
    """

    beta: float | None = None
    """β: multiplicative decrease. Source: TIMELY §6.1 (0.8).

    Default: 0.8. Accepted: from 0.001 to 1.
    """

    alpha: float | None = None
    """α: weight of the newest difference of RTTs in the moving average. Source: TIMELY §6.1 (0.875).

    Default: 0.875. Accepted: from 0.001 to 1.
    """

    hai_after: int | None = None
    """Completions in a row without rising RTT after which the rate rises by N·δ (hyperactive increase, HAI). Source: TIMELY §4.3.2 (5).

    Default: 5. Accepted: from 1 to 1000.
    """

    hai: int | None = None
    """N: how many times as fast it is then. Source: TIMELY §4.3.2 (5).

    Default: 5. Accepted: from 1 to 100.
    """

    segment: Size | None = None
    """Payload bytes of a segment, whose completion gives an RTT. Source: TIMELY §3.1 (16 to 64 KB).

    Default: "16384B". Accepted: from 256B to 1048576B.
    """

    initial_rate: BitRate | None = None
    """The rate of a new flow. Absent: the line's. Source: TIMELY §4.2 has the line's rate over the flows of the host and one.

    Accepted: from 1Mbps to 10Tbps.
    """

    min_rate: BitRate | None = None
    """Rates do not fall below this.

    Default: "10Mbps". Accepted: from 1Kbps to 1Tbps.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Swift(Table):
    """Swift. Windows are in packets."""

    kind: ClassVar[Literal["swift"]] = "swift"

    base_target: Duration | None = None
    """Target of the fabric's delay on a path without switches, before it is scaled. Source: csg-htsim (20 us); the paper has no
    number.

    Default: "20us". Accepted: from 100ns to 10ms.
    """

    per_hop: Duration | None = None
    """ħ: what each switch on the way adds to it. Source: Swift §3.5 (topology-based scaling); csg-htsim (base / 6.55).

    Default: "3us". Accepted: from 0ps to 1ms.
    """

    flow_scaling: Duration | None = None
    """What few packets per window add to it at most: more flows have smaller windows and need longer queues. Source: Swift §3.5
    (flow-based scaling), csg-htsim (5 times `base_target`).

    Default: "100us". Accepted: from 0ps to 10ms.
    """

    scaling_min: float | None = None
    """fs_min_cwnd: at this window and below that is added in full. Source: Swift §3.5, csg-htsim (0.1).

    Default: 0.1. Accepted: from 0.001 to 1000.
    """

    scaling_max: float | None = None
    """fs_max_cwnd: at this window and above nothing is added. Source: Swift §3.5, csg-htsim (100).

    Default: 100.0. Accepted: from 0.01 to 100000.
    """

    end_target: Duration | None = None
    """Target of what packets wait at the ends: in the receiver, and acknowledgments in the sender. Source: Swift §3.2, which has no
    number.

    Default: "20us". Accepted: from 100ns to 10ms.
    """

    increase: float | None = None
    """α: additive increase [packets per RTT]. Source: Swift §3.1; csg-htsim (1).

    Default: 1.0. Accepted: from 0.001 to 1000.
    """

    beta: float | None = None
    """β: decrease as a share of the excess over the target. Source: Swift §3.1; csg-htsim (0.8).

    Default: 0.8. Accepted: from 0.001 to 1.
    """

    max_decrease: float | None = None
    """max_mdf: largest decrease in an RTT. Source: Swift §3.1; csg-htsim (0.5).

    Default: 0.5. Accepted: from 0.001 to 0.999.
    """

    min_window: float | None = None
    """Smallest window [packets]: below one, a packet leaves in so many RTTs. Source: Swift §3.3 (0.001 is the least that it names).

    Default: 0.001. Accepted: from 0.0001 to 1.
    """

    max_window: float | None = None
    """Largest window [packets]. Absent: 10 times what fills the path.

    Accepted: from 1 to 1000000.
    """

    initial_window: float | None = None
    """The window of a new flow [packets]. Absent: what fills the path.

    Accepted: from 0.01 to 1000000.
    """

    reset_after: int | None = None
    """RETX_RESET_THRESHOLD: timeouts in a row after which the window is the smallest. Source: Swift algorithm 1; csg-htsim (5).

    Default: 5. Accepted: from 1 to 100.
    """


RoceControl: TypeAlias = (
    NoRateControl
    | Hpcc
    | PowerTcp
    | ThetaPowerTcp
    | Dcqcn
    | Timely
    | Swift
    | Mapping[str, Any]
    | Literal["none", "hpcc", "powertcp", "theta_powertcp", "dcqcn", "timely", "swift"]
)
"""How a queue pair finds its rate.

- `none`: None: each queue pair sends at its rate, and pauses hold it back.
- `hpcc`: What is in flight on the busiest link, by telemetry. Source: HPCC §3.
- `powertcp`: Power at the busiest port, by telemetry. Source: PowerTCP §3.3.
- `theta_powertcp`: Power, by delays. Source: PowerTCP §3.3.
- `dcqcn`: DCQCN: by notifications of marks. Source: DCQCN.
- `timely`: TIMELY: by the gradient of the RTT. Source: TIMELY.
- `swift`: Swift: by delays of fabric and hosts. Source: Swift.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoBackN(Table):
    """Packets that come too early are dropped, and the sender starts again with the one that is missing. Source: IBTA §9.7.5.1, §9.9.2."""

    kind: ClassVar[Literal["go_back_n"]] = "go_back_n"

    ack_timeout: int | None = None
    """Local ACK timeout: 4.096 us · 2^n without an acknowledgment. Source: IBTA §9.7.6.1.3; 67 ms is what Linux' perftest
    sets.

    Default: 14. Accepted: from 1 to 31.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelectiveRepeat(Table):
    """Packets that come too early are kept, and the sender sends again what is missing. Every packet carries its RETH. Source: IRN §3.1."""

    kind: ClassVar[Literal["selective_repeat"]] = "selective_repeat"

    rto_low: Duration | None = None
    """The timeout where few packets are outstanding. Source: IRN §4.1 (100 us).

    Default: "100us". Accepted: from 1us to 1s.
    """

    rto_high: Duration | None = None
    """The timeout otherwise. Source: IRN §4.1 (320 us).

    Default: "320us". Accepted: from 1us to 1s.
    """

    few: int | None = None
    """What few are. Source: IRN §4.1 (3).

    Default: 3. Accepted: from 1 to 1000.
    """


RoceRecovery: TypeAlias = GoBackN | SelectiveRepeat | Mapping[str, Any] | Literal["go_back_n", "selective_repeat"]
"""What becomes of packets behind one that is missing.

- `go_back_n`: They are sent again.
- `selective_repeat`: They are kept.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoneRoceWindow(Table):
    """As much as the congestion control says."""

    kind: ClassVar[Literal["none"]] = "none"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BdpWindow(Table):
    """What fills an idle path: line rate times the base RTT of the flow. Source: IRN §3.2 (BDP-FC)."""

    kind: ClassVar[Literal["bdp"]] = "bdp"

    factor: float | None = None
    """So many times that.

    Default: 1.0. Accepted: from 0.01 to 100.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class FixedRoceWindow(Table):
    """A number of bytes."""

    kind: ClassVar[Literal["fixed"]] = "fixed"

    size: Size
    """Payload bytes; one packet may always be outstanding.

    Must be given. Accepted: from 1B to 1073741824B.
    """


RoceWindow: TypeAlias = NoneRoceWindow | BdpWindow | FixedRoceWindow | Mapping[str, Any] | Literal["none", "bdp"]
"""What a queue pair may have outstanding, whatever its congestion control says.

- `none`: Anything.
- `bdp`: The product of bandwidth and delay.
- `fixed`: So many bytes.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Roce(Table):
    """RoCEv2: each flow is a reliable queue pair that writes to the memory of the other end (RDMA WRITE). Queue pairs exist before:
    nothing on the wire opens or closes them.
    """

    kind: ClassVar[Literal["roce"]] = "roce"

    congestion_control: RoceControl | None = None
    """Congestion control.

    Default: { kind = "none" }.
    """

    mtu: int | None = None
    """Path MTU: payload bytes of a full packet: 256, 512, 1024, 2048 or 4096. Source: IBTA §5.2.1; Linux takes the largest that
    fits the interface, 1024 with Ethernet's 1500 B and 4096 with 9000 B (iboe_get_mtu).

    Default: 1024. Accepted: from 256 to 4096.
    """

    message: Size | None = None
    """Bytes of a message, a multiple of `mtu`: what an application writes is cut into as many. Absent: one message, of 2 GiB at
    most.

    Accepted: from 256B to 2147483648B.
    """

    recovery: RoceRecovery | None = None
    """How packets are repaired that were lost.

    Default: { kind = "go_back_n", ack_timeout = 14 }.
    """

    retry_count: int | None = None
    """How often the same packet is sent again before the queue pair fails. Source: IBTA §9.9.2.1.1 (3 bits); 7 is what Linux'
    perftest sets.

    Default: 7. Accepted: from 0 to 7.
    """

    ack_every: int | None = None
    """Every how many packets the sender asks for an acknowledgment, besides at the end of each message. Selective repeat, a window
    and controls by window need one for each.

    Default: 1. Accepted: from 1 to 4096.
    """

    window: RoceWindow | None = None
    """What may be outstanding.

    Default: { kind = "none" }.
    """

    burst: Size | None = None
    """Bytes of payload that leave back to back before the rate limiter makes a pause; absent: a packet. What counts is the rate
    over both.

    Accepted: from 256B to 1048576B.
    """

    ack_class: int | None = None
    """The traffic class of acknowledgments. Absent: that of the flow.

    Accepted: from 0 to 7.
    """

    cnp_class: int | None = None
    """The traffic class of congestion notifications (CNP). Absent: that of the flow.

    Accepted: from 0 to 7.
    """


TransportConfig: TypeAlias = Tcp | Roce | Mapping[str, Any] | Literal["tcp", "roce"]
"""The transport of a flow.

- `tcp`: TCP.
- `roce`: RoCEv2.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListedFlow(Table):
    """One flow."""

    id: str | None = None
    """Name of the flow, for `after` and the results."""

    src: str
    """Who sends.

    Must be given.
    """

    dst: str
    """Who receives.

    Must be given.
    """

    size: Size
    """Bytes.

    Must be given. Accepted: at least 1B.
    """

    request: Size | None = None
    """Bytes that the destination sends first to ask for the flow.

    Default: "0B".
    """

    start: Duration | None = None
    """Start, counted from the beginning of the entry.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    after: Sequence[str] | None = None
    """Flow ids and entry names that must be complete first.

    Default: [].
    """

    delay: Duration | None = None
    """Time from the last of these completions to the start.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlowList(Table):
    """Flows listed one by one."""

    kind: ClassVar[Literal["flows"]] = "flows"

    name: str | None = None
    """Name, for `after` and the results; the kind if absent, numbered from the second of a kind on.
    Also the root of the entry's random streams: a name keeps them when entries are added or moved.
    """

    transport: str | None = None
    """Name of the transport; the scenario's first if absent."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points.

    Default: 0. Accepted: from 0 to 7.
    """

    start: Instant | None = None
    """When the entry begins.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    after: Sequence[str] | None = None
    """Entry names and flow ids that must be complete before the entry begins; an entry is complete when all its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Time from the last of these completions to the beginning.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    flows: Sequence[ListedFlow | Mapping[str, Any]]
    """The flows.

    Must be given.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Incast(Table):
    """Incast: many senders answer one receiver, at once or within `jitter`, once or repeatedly. Each round counts as a query."""

    kind: ClassVar[Literal["incast"]] = "incast"

    name: str | None = None
    """Name, for `after` and the results; the kind if absent, numbered from the second of a kind on.
    Also the root of the entry's random streams: a name keeps them when entries are added or moved.
    """

    transport: str | None = None
    """Name of the transport; the scenario's first if absent."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points.

    Default: 0. Accepted: from 0 to 7.
    """

    start: Instant | None = None
    """When the entry begins.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    after: Sequence[str] | None = None
    """Entry names and flow ids that must be complete before the entry begins; an entry is complete when all its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Time from the last of these completions to the beginning.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    receiver: str
    """Who receives.

    Must be given.
    """

    senders: Sequence[str] | None = None
    """Who sends (the receiver never does): `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these takes away.

    Default: ["all"].
    """

    count: int | None = None
    """Only so many of them, chosen at random once.

    Accepted: at least 1.
    """

    flows_per_sender: int | None = None
    """Flows of each sender in a round.

    Default: 1. Accepted: at least 1.
    """

    size: Size | None = None
    """Bytes of each flow; give this or `total`.

    Accepted: at least 1B.
    """

    total: Size | None = None
    """Bytes of a round, divided among its flows; the first ones are a byte larger where it does not divide.

    Accepted: at least 1B.
    """

    request: Size | None = None
    """Bytes that the receiver sends first to ask for each flow.

    Default: "0B".
    """

    jitter: Duration | None = None
    """Each flow starts uniformly within this after its round.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    repetitions: int | None = None
    """Rounds.

    Default: 1. Accepted: at least 1.
    """

    interval: Duration | None = None
    """Rounds start so far apart, whether or not the one before is complete; give this or `gap` for several rounds.

    Accepted: from 1ps to 864000s.
    """

    gap: Duration | None = None
    """A round starts so long after all flows of the one before are complete.

    Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Aggregate(Table):
    """What an aggregator does when the last response is in."""

    size: Size
    """Bytes of the result that it sends on.

    Must be given. Accepted: at least 1B.
    """

    to: Sequence[str] | None = None
    """To whom: one of these at random, never the aggregator itself.

    Default: ["all"].
    """

    delay: Duration | None = None
    """Time from the last response to the result.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """


LoadOf: TypeAlias = Literal["host_links", "core"]
"""What a load is a fraction of. Load counts application bytes, as the generators of DCTCP, pFabric and HPCC do; headers
come on top (a load of 0.6 in full segments of 1460 B occupies 0.632 of a link).

- `host_links`: The rates of the links of the entry's sources (clients, for queries), in one direction.
- `core`: The rates of all links from ToRs into the fabric, in one direction; only bytes between racks count.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class QueryTraffic(Table):
    """Query and response: clients ask at random instants, responders answer at once (partition–aggregate)."""

    kind: ClassVar[Literal["query"]] = "query"

    name: str | None = None
    """Name, for `after` and the results; the kind if absent, numbered from the second of a kind on.
    Also the root of the entry's random streams: a name keeps them when entries are added or moved.
    """

    transport: str | None = None
    """Name of the transport; the scenario's first if absent."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points.

    Default: 0. Accepted: from 0 to 7.
    """

    start: Instant | None = None
    """When the entry begins.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    after: Sequence[str] | None = None
    """Entry names and flow ids that must be complete before the entry begins; an entry is complete when all its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Time from the last of these completions to the beginning.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    clients: Sequence[str] | None = None
    """Who asks.

    Default: ["all"].
    """

    responders: Sequence[str] | None = None
    """Who answers; the client itself never does.

    Default: ["all"].
    """

    fanout: int | None = None
    """How many of the responders answer a query, drawn anew each time; absent: all.

    Accepted: at least 1.
    """

    size: Size | None = None
    """Bytes of each response; give this or `total`.

    Accepted: at least 1B.
    """

    total: Size | None = None
    """Bytes of all responses to a query, divided among the responders.

    Accepted: at least 1B.
    """

    request: Size | None = None
    """Bytes that the client sends first to each responder.

    Default: "0B".
    """

    jitter: Duration | None = None
    """Each response starts uniformly within this after the query.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    aggregate: Aggregate | Mapping[str, Any] | None = None
    """What the client does when all responses are in; the query is complete when this is."""

    load: float | None = None
    """Offered load as a fraction of what `load_of` names; give this or `per_second`.

    Accepted: from 0 to 100.
    """

    load_of: LoadOf | None = None
    """What `load` is a fraction of.

    Default: "host_links".
    """

    per_second: float | None = None
    """Arrivals per second of all hosts of the entry together, shared evenly.

    Accepted: from 0 to 1000000000000.
    """

    stop: Instant | None = None
    """No arrival at or after this instant; the end of the run if absent.

    Accepted: from 0ps to 864000s.
    """

    count: int | None = None
    """At most this many arrivals.

    Accepted: at least 1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class WebSearchSizes(Table):
    """Has no parameters."""

    kind: ClassVar[Literal["web-search"]] = "web-search"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataMiningSizes(Table):
    """Has no parameters."""

    kind: ClassVar[Literal["data-mining"]] = "data-mining"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnterpriseSizes(Table):
    """Has no parameters."""

    kind: ClassVar[Literal["enterprise"]] = "enterprise"


@dataclasses.dataclass(frozen=True, kw_only=True)
class HadoopSizes(Table):
    """Has no parameters."""

    kind: ClassVar[Literal["hadoop"]] = "hadoop"


@dataclasses.dataclass(frozen=True, kw_only=True)
class StorageSizes(Table):
    """Has no parameters."""

    kind: ClassVar[Literal["storage"]] = "storage"


Probability: TypeAlias = Literal["auto", "fraction", "percent"]
"""How a distribution file writes probabilities.

- `auto`: Decided by the last line: 1 or 100; the choice is reported.
- `fraction`: From 0 to 1.
- `percent`: From 0 to 100.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SizeFile(Table):
    """A distribution from a file: a line per point, `SIZE PROBABILITY` or `SIZE BIN PROBABILITY`, separated by blanks or a comma,
    linear between points; `#` starts a comment and one heading line is allowed. Reads the files of HPCC and Alibaba
    (percent), pFabric (three columns, packets: `unit = "1460B"`) and this project's own.
    """

    kind: ClassVar[Literal["file"]] = "file"

    path: str
    """The file, relative to the scenario.

    Must be given.
    """

    probability: Probability | None = None
    """How probabilities are written.

    Default: "auto".
    """

    unit: Size | None = None
    """What the size column counts.

    Default: "1B". Accepted: from 1B to 1MB.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class FixedSize(Table):
    """Always the same size."""

    kind: ClassVar[Literal["fixed"]] = "fixed"

    size: Size
    """The size.

    Must be given. Accepted: at least 1B.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class UniformSize(Table):
    """Uniform between two sizes, both included."""

    kind: ClassVar[Literal["uniform"]] = "uniform"

    min: Size
    """Smallest size.

    Must be given. Accepted: at least 1B.
    """

    max: Size
    """Largest size.

    Must be given. Accepted: at least 1B.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExponentialSize(Table):
    """Exponential, rounded to bytes, at least 1."""

    kind: ClassVar[Literal["exponential"]] = "exponential"

    mean: Size
    """Mean size.

    Must be given. Accepted: at least 1B.
    """


Sizes: TypeAlias = (
    WebSearchSizes
    | DataMiningSizes
    | EnterpriseSizes
    | HadoopSizes
    | StorageSizes
    | SizeFile
    | FixedSize
    | UniformSize
    | ExponentialSize
    | Mapping[str, Any]
    | Literal["web-search", "data-mining", "enterprise", "hadoop", "storage"]
)
"""How large flows are.

- `web-search`: Web search, DCTCP (SIGCOMM 2010); mean 1.71 MB.
- `data-mining`: Data mining, VL2 (SIGCOMM 2009) as used by CONGA (SIGCOMM 2014).
- `enterprise`: Enterprise, CONGA (SIGCOMM 2014).
- `hadoop`: Hadoop, Facebook (SIGCOMM 2015), as used by HPCC (SIGCOMM 2019).
- `storage`: Distributed storage, Alibaba 2019, published with HPCC (SIGCOMM 2019).
- `file`: A distribution from a file.
- `fixed`: One size.
- `uniform`: Uniform.
- `exponential`: Exponential.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PoissonTraffic(Table):
    """Poisson background traffic: each source starts flows at random instants, to destinations drawn uniformly."""

    kind: ClassVar[Literal["poisson"]] = "poisson"

    name: str | None = None
    """Name, for `after` and the results; the kind if absent, numbered from the second of a kind on.
    Also the root of the entry's random streams: a name keeps them when entries are added or moved.
    """

    transport: str | None = None
    """Name of the transport; the scenario's first if absent."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points.

    Default: 0. Accepted: from 0 to 7.
    """

    start: Instant | None = None
    """When the entry begins.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    after: Sequence[str] | None = None
    """Entry names and flow ids that must be complete before the entry begins; an entry is complete when all its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Time from the last of these completions to the beginning.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    sources: Sequence[str] | None = None
    """Who sends: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these takes away.

    Default: ["all"].
    """

    destinations: Sequence[str] | None = None
    """Who receives.

    Default: ["all"].
    """

    sizes: Sizes
    """How large flows are: a published distribution by name, or a table.

    Must be given.
    """

    intra_rack: float | None = None
    """Probability that source and destination share a rack; absent: drawn without regard to racks.

    Accepted: from 0 to 1.
    """

    request: Size | None = None
    """Bytes that the destination sends first to ask for the flow.

    Default: "0B".
    """

    load: float | None = None
    """Offered load as a fraction of what `load_of` names; give this or `per_second`.

    Accepted: from 0 to 100.
    """

    load_of: LoadOf | None = None
    """What `load` is a fraction of.

    Default: "host_links".
    """

    per_second: float | None = None
    """Arrivals per second of all hosts of the entry together, shared evenly.

    Accepted: from 0 to 1000000000000.
    """

    stop: Instant | None = None
    """No arrival at or after this instant; the end of the run if absent.

    Accepted: from 0ps to 864000s.
    """

    count: int | None = None
    """At most this many arrivals.

    Accepted: at least 1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Permutation(Table):
    """A permutation: each host sends one flow and receives one, never from itself; drawn uniformly among such permutations."""

    kind: ClassVar[Literal["permutation"]] = "permutation"

    name: str | None = None
    """Name, for `after` and the results; the kind if absent, numbered from the second of a kind on.
    Also the root of the entry's random streams: a name keeps them when entries are added or moved.
    """

    transport: str | None = None
    """Name of the transport; the scenario's first if absent."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points.

    Default: 0. Accepted: from 0 to 7.
    """

    start: Instant | None = None
    """When the entry begins.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    after: Sequence[str] | None = None
    """Entry names and flow ids that must be complete before the entry begins; an entry is complete when all its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Time from the last of these completions to the beginning.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    hosts: Sequence[str] | None = None
    """Who takes part: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these takes away.

    Default: ["all"].
    """

    size: Size
    """Bytes of each flow.

    Must be given. Accepted: at least 1B.
    """

    request: Size | None = None
    """Bytes that the destination sends first to ask for the flow.

    Default: "0B".
    """

    jitter: Duration | None = None
    """Each flow starts uniformly within this.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class AllToAll(Table):
    """All-to-all: each host sends a flow to each other one. In round r (from 1) host i sends to host i + r, modulo the number
    of hosts, so that each round is a permutation.
    """

    kind: ClassVar[Literal["all_to_all"]] = "all_to_all"

    name: str | None = None
    """Name, for `after` and the results; the kind if absent, numbered from the second of a kind on.
    Also the root of the entry's random streams: a name keeps them when entries are added or moved.
    """

    transport: str | None = None
    """Name of the transport; the scenario's first if absent."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points.

    Default: 0. Accepted: from 0 to 7.
    """

    start: Instant | None = None
    """When the entry begins.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    after: Sequence[str] | None = None
    """Entry names and flow ids that must be complete before the entry begins; an entry is complete when all its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Time from the last of these completions to the beginning.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    hosts: Sequence[str] | None = None
    """Who takes part.

    Default: ["all"].
    """

    size: Size
    """Bytes of each flow.

    Must be given. Accepted: at least 1B.
    """

    request: Size | None = None
    """Bytes that the destination sends first to ask for the flow.

    Default: "0B".
    """

    stagger: Duration | None = None
    """Rounds start so far apart; zero: all at once.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    jitter: Duration | None = None
    """Each flow starts uniformly within this after its round.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotSpot(Table):
    """A hot spot: Poisson traffic of which a part goes to a few hosts."""

    kind: ClassVar[Literal["hot_spot"]] = "hot_spot"

    name: str | None = None
    """Name, for `after` and the results; the kind if absent, numbered from the second of a kind on.
    Also the root of the entry's random streams: a name keeps them when entries are added or moved.
    """

    transport: str | None = None
    """Name of the transport; the scenario's first if absent."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points.

    Default: 0. Accepted: from 0 to 7.
    """

    start: Instant | None = None
    """When the entry begins.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    after: Sequence[str] | None = None
    """Entry names and flow ids that must be complete before the entry begins; an entry is complete when all its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Time from the last of these completions to the beginning.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    sources: Sequence[str] | None = None
    """Who sends.

    Default: ["all"].
    """

    destinations: Sequence[str] | None = None
    """Who receives what does not go to the hot spot.

    Default: ["all"].
    """

    hot: Sequence[str] | None = None
    """The hot hosts; absent: chosen at random."""

    hot_hosts: float | None = None
    """How many hosts are hot when they are chosen at random, as a fraction of the destinations, at least one.
    Source: RCM §4, fig. 8.

    Default: 0.125. Accepted: from 0 to 1.
    """

    fraction: float | None = None
    """Probability that a flow goes to a hot host; the others are uniform over all destinations, hot ones included.
    Source: RCM §4, fig. 8.

    Default: 0.15. Accepted: from 0 to 1.
    """

    sizes: Sizes
    """How large flows are.

    Must be given.
    """

    request: Size | None = None
    """Bytes that the destination sends first to ask for the flow.

    Default: "0B".
    """

    load: float | None = None
    """Offered load as a fraction of what `load_of` names; give this or `per_second`.

    Accepted: from 0 to 100.
    """

    load_of: LoadOf | None = None
    """What `load` is a fraction of.

    Default: "host_links".
    """

    per_second: float | None = None
    """Arrivals per second of all hosts of the entry together, shared evenly.

    Accepted: from 0 to 1000000000000.
    """

    stop: Instant | None = None
    """No arrival at or after this instant; the end of the run if absent.

    Accepted: from 0ps to 864000s.
    """

    count: int | None = None
    """At most this many arrivals.

    Accepted: at least 1.
    """


RankOrder: TypeAlias = Literal["listed", "by_rack", "shuffled"]
"""Which host is which rank.

- `listed`: As `ranks` lists them; of a pattern, in the order of the topology.
- `by_rack`: By rack, else as listed.
- `shuffled`: At random, by the seed.
"""


AllReduceAlgorithm: TypeAlias = Literal["ring", "tree", "double_tree"]
"""How an all-reduce goes.

- `ring`: Reduce-scatter, then all-gather around a ring: 2(n − 1) steps of 1/n of the bytes. Source: PATARASUK §3.
- `tree`: Up an in-order binary tree to its root, and down again; all bytes cross each edge twice.
- `double_tree`: The same by two trees with half of the bytes each; who has children in one is a leaf in the other. Source: SANDERS-TREES.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AllReduce(Table):
    """All-reduce: every rank gets the sum of all ranks' buffers."""

    kind: ClassVar[Literal["all_reduce"]] = "all_reduce"

    size: Size
    """Bytes of each rank's buffer, as nccl-tests counts them: what is reduced, what all have gathered, what is scattered,
    or what a rank sends to all (its own share, which stays, included). It is divided to the byte: where it does
    not divide, the first parts are a byte larger.

    Must be given. Accepted: at least 1B.
    """

    algorithm: AllReduceAlgorithm | None = None
    """How it goes.

    Default: "ring".
    """

    message: Size | None = None
    """What a rank sends in one step is cut into messages of at most this many bytes, each passed on when it is there. One message if absent.

    Accepted: at least 64B.
    """

    channels: int | None = None
    """Connections side by side from rank to rank, each with its share of the bytes.

    Default: 1. Accepted: from 1 to 64.
    """

    group: int | None = None
    """Ranks of a group: each group does the operation by itself. All ranks if absent.

    Accepted: at least 2.
    """

    stride: int | None = None
    """How far apart the ranks of a group are: 1 makes groups of neighbours.

    Default: 1. Accepted: at least 1.
    """

    compute: Duration | None = None
    """Time that each rank computes before it enters the operation.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    jitter: Duration | None = None
    """Each rank computes longer by a time uniform in [0, `jitter`), drawn in each iteration.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    work: Duration | None = None
    """Time that a rank works on each message that has arrived (reduces or copies it) before it counts and is passed on; those
    of one connection one after the other.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class AllGather(Table):
    """All-gather around a ring: every rank gets the share of each."""

    kind: ClassVar[Literal["all_gather"]] = "all_gather"

    size: Size
    """Bytes of each rank's buffer, as nccl-tests counts them: what is reduced, what all have gathered, what is scattered,
    or what a rank sends to all (its own share, which stays, included). It is divided to the byte: where it does
    not divide, the first parts are a byte larger.

    Must be given. Accepted: at least 1B.
    """

    message: Size | None = None
    """What a rank sends in one step is cut into messages of at most this many bytes, each passed on when it is there. One message if absent.

    Accepted: at least 64B.
    """

    channels: int | None = None
    """Connections side by side from rank to rank, each with its share of the bytes.

    Default: 1. Accepted: from 1 to 64.
    """

    group: int | None = None
    """Ranks of a group: each group does the operation by itself. All ranks if absent.

    Accepted: at least 2.
    """

    stride: int | None = None
    """How far apart the ranks of a group are: 1 makes groups of neighbours.

    Default: 1. Accepted: at least 1.
    """

    compute: Duration | None = None
    """Time that each rank computes before it enters the operation.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    jitter: Duration | None = None
    """Each rank computes longer by a time uniform in [0, `jitter`), drawn in each iteration.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    work: Duration | None = None
    """Time that a rank works on each message that has arrived (reduces or copies it) before it counts and is passed on; those
    of one connection one after the other.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReduceScatter(Table):
    """Reduce-scatter around a ring: every rank gets its share of the sum of all ranks' buffers."""

    kind: ClassVar[Literal["reduce_scatter"]] = "reduce_scatter"

    size: Size
    """Bytes of each rank's buffer, as nccl-tests counts them: what is reduced, what all have gathered, what is scattered,
    or what a rank sends to all (its own share, which stays, included). It is divided to the byte: where it does
    not divide, the first parts are a byte larger.

    Must be given. Accepted: at least 1B.
    """

    message: Size | None = None
    """What a rank sends in one step is cut into messages of at most this many bytes, each passed on when it is there. One message if absent.

    Accepted: at least 64B.
    """

    channels: int | None = None
    """Connections side by side from rank to rank, each with its share of the bytes.

    Default: 1. Accepted: from 1 to 64.
    """

    group: int | None = None
    """Ranks of a group: each group does the operation by itself. All ranks if absent.

    Accepted: at least 2.
    """

    stride: int | None = None
    """How far apart the ranks of a group are: 1 makes groups of neighbours.

    Default: 1. Accepted: at least 1.
    """

    compute: Duration | None = None
    """Time that each rank computes before it enters the operation.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    jitter: Duration | None = None
    """Each rank computes longer by a time uniform in [0, `jitter`), drawn in each iteration.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    work: Duration | None = None
    """Time that a rank works on each message that has arrived (reduces or copies it) before it counts and is passed on; those
    of one connection one after the other.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exchange(Table):
    """All-to-all: every rank sends each other one its share. Step i goes to rank + i, modulo the ranks of the group."""

    kind: ClassVar[Literal["all_to_all"]] = "all_to_all"

    size: Size
    """Bytes of each rank's buffer, as nccl-tests counts them: what is reduced, what all have gathered, what is scattered,
    or what a rank sends to all (its own share, which stays, included). It is divided to the byte: where it does
    not divide, the first parts are a byte larger.

    Must be given. Accepted: at least 1B.
    """

    staggered: bool | None = None
    """A step begins when what the rank sent in the one before is acknowledged, and what that step brings it has arrived.

    Default: false.
    """

    concurrent: int | None = None
    """At most so many peers at once: the next step begins when what was sent in one of those is acknowledged. All at once if absent.

    Accepted: at least 1.
    """

    channels: int | None = None
    """Connections side by side from rank to rank, each with its share of the bytes.

    Default: 1. Accepted: from 1 to 64.
    """

    group: int | None = None
    """Ranks of a group: each group does the operation by itself. All ranks if absent.

    Accepted: at least 2.
    """

    stride: int | None = None
    """How far apart the ranks of a group are: 1 makes groups of neighbours.

    Default: 1. Accepted: at least 1.
    """

    compute: Duration | None = None
    """Time that each rank computes before it enters the operation.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    jitter: Duration | None = None
    """Each rank computes longer by a time uniform in [0, `jitter`), drawn in each iteration.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    work: Duration | None = None
    """Time that a rank works on each message that has arrived (reduces or copies it) before it counts and is passed on; those
    of one connection one after the other.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """


Operation: TypeAlias = AllReduce | AllGather | ReduceScatter | Exchange | Mapping[str, Any]
"""A collective operation.

- `all_reduce`: Every rank gets the sum.
- `all_gather`: Every rank gets all shares.
- `reduce_scatter`: Every rank gets its share of the sum.
- `all_to_all`: Every rank sends to each.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Collective(Table):
    """A training job: ranks go through collective operations, again and again, over connections that stay open. A rank enters the
    next operation when it is done with the one before, whatever the others do.
    """

    kind: ClassVar[Literal["collective"]] = "collective"

    name: str | None = None
    """Name, for `after` and the results; the kind if absent, numbered from the second of a kind on.
    Also the root of the entry's random streams: a name keeps them when entries are added or moved.
    """

    transport: str | None = None
    """Name of the transport; the scenario's first if absent."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points.

    Default: 0. Accepted: from 0 to 7.
    """

    start: Instant | None = None
    """When the entry begins.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    after: Sequence[str] | None = None
    """Entry names and flow ids that must be complete before the entry begins; an entry is complete when all its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Time from the last of these completions to the beginning.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    ranks: Sequence[str] | None = None
    """The ranks: `all`, `rack:N`, a host, `FIRST..LAST`, each host once; `!` before any of these takes away.

    Default: ["all"].
    """

    order: RankOrder | None = None
    """Which of them is which rank.

    Default: "listed".
    """

    operations: Sequence[Operation]
    """What a rank does in each iteration, one after the other.

    Must be given.
    """

    iterations: int | None = None
    """Iterations.

    Default: 1. Accepted: from 1 to 10000000.
    """


RateCounts: TypeAlias = Literal["payload", "wire"]
"""Which bytes a datagram source's rate counts.

- `payload`: Application bytes only. Source: ns-3 `OnOffApplication::DataRate`.
- `wire`: Every byte that occupies the link: headers, preamble and gap too, so that the link's rate fills the link.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cbr(Table):
    """Datagrams at a constant rate, whatever the network does."""

    kind: ClassVar[Literal["cbr"]] = "cbr"

    name: str | None = None
    """Name, for `after` and the results; the kind if absent, numbered from the second of a kind on.
    Also the root of the entry's random streams: a name keeps them when entries are added or moved.
    """

    transport: str | None = None
    """Name of the transport; the scenario's first if absent."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points.

    Default: 0. Accepted: from 0 to 7.
    """

    start: Instant | None = None
    """When the entry begins.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    after: Sequence[str] | None = None
    """Entry names and flow ids that must be complete before the entry begins; an entry is complete when all its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Time from the last of these completions to the beginning.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    src: str
    """Who sends.

    Must be given.
    """

    dst: str
    """Who receives.

    Must be given.
    """

    rate: BitRate
    """Rate.

    Must be given. Accepted: at least 1bps.
    """

    counts: RateCounts | None = None
    """What `rate` counts.

    Default: "payload".
    """

    packet: Size | None = None
    """Application bytes of one datagram. Source: RFC 791 (20 B of header) and RFC 768 (8 B), out of 1500 B; over IPv6 1452B
    fill a frame (RFC 8200, 40 B).

    Default: "1472B". Accepted: from 1B to 65507B.
    """

    size: Size | None = None
    """Application bytes in all; absent: until `stop`.

    Accepted: at least 1B.
    """

    stop: Instant | None = None
    """No datagram leaves at or after this instant; the end of the run if absent.

    Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnOff(Table):
    """Datagrams at a constant rate in on periods, none in off periods; the first period is on."""

    kind: ClassVar[Literal["on_off"]] = "on_off"

    name: str | None = None
    """Name, for `after` and the results; the kind if absent, numbered from the second of a kind on.
    Also the root of the entry's random streams: a name keeps them when entries are added or moved.
    """

    transport: str | None = None
    """Name of the transport; the scenario's first if absent."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points.

    Default: 0. Accepted: from 0 to 7.
    """

    start: Instant | None = None
    """When the entry begins.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    after: Sequence[str] | None = None
    """Entry names and flow ids that must be complete before the entry begins; an entry is complete when all its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Time from the last of these completions to the beginning.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    src: str
    """Who sends.

    Must be given.
    """

    dst: str
    """Who receives.

    Must be given.
    """

    rate: BitRate
    """Rate while on; the mean rate is rate · on / (on + off).

    Must be given. Accepted: at least 1bps.
    """

    counts: RateCounts | None = None
    """What `rate` counts.

    Default: "payload".
    """

    on: Duration
    """Length of an on period, or its mean.

    Must be given. Accepted: from 100ns to 864000s.
    """

    off: Duration
    """Length of an off period, or its mean.

    Must be given. Accepted: from 100ns to 864000s.
    """

    exponential: bool | None = None
    """Whether the lengths of the periods are exponentially distributed.

    Default: false.
    """

    packet: Size | None = None
    """Application bytes of one datagram. Source: RFC 791 (20 B of header) and RFC 768 (8 B), out of 1500 B; over IPv6 1452B
    fill a frame (RFC 8200, 40 B).

    Default: "1472B". Accepted: from 1B to 65507B.
    """

    size: Size | None = None
    """Application bytes in all; absent: until `stop`.

    Accepted: at least 1B.
    """

    stop: Instant | None = None
    """No datagram leaves at or after this instant; the end of the run if absent.

    Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class CsvFlows(Table):
    """Comma-separated values with a heading: `src`, `dst`, `size`, `start`, and optionally `id`, `request`, `class`, `after`,
    `delay`, in any order. Sizes and times carry their unit in each cell (`10KB`, `5us`) or once in the heading
    (`size_bytes`, `start_us`, `start (us)`, `size [KB]`). `after` holds flow ids or entry names, separated by `;`.
    """

    kind: ClassVar[Literal["csv"]] = "csv"

    path: str
    """The file, relative to the scenario.

    Must be given.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class HpccFlows(Table):
    """HPCC's `flow.txt`: the first line is the number of flows N, then N lines `src dst pg dport size start`, the start in
    seconds. What follows them is ignored, as HPCC does. A host is named by its name, or by its position where no host's
    name is a number. `dport` is not used: ports are drawn by the hosts.
    Source: HPCC (the simulator published with it, `simulation/mix/flow.txt`, and `traffic_gen/traffic_gen.py`, which
    starts at 2 s).
    """

    kind: ClassVar[Literal["hpcc_flow"]] = "hpcc_flow"

    path: str
    """The file, relative to the scenario.

    Must be given.
    """

    origin: Instant | None = None
    """The instant of the file that is the beginning of the entry (2 s in files made by `traffic_gen.py`).

    Default: "0ps".
    """

    pg_as_class: bool | None = None
    """Whether the priority group `pg` is the traffic class; else the entry's class is.

    Default: false.
    """


TimeUnit: TypeAlias = Literal["ps", "ns", "us", "ms", "s"]
"""A unit of time.

- `ps`: Picoseconds.
- `ns`: Nanoseconds.
- `us`: Microseconds.
- `ms`: Milliseconds.
- `s`: Seconds.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HtsimMatrix(Table):
    """htsim's connection matrix: `Nodes N`, `Connections M`, `Triggers T`, then lines
    `src->dst [id I] start T|trigger X size S [send_done_trigger X] [recv_done_trigger X] [prio P]` and
    `trigger id X oneshot|multishot|barrier [count C]`. A trigger becomes a dependency: `oneshot` releases its flows on its
    one activation, `barrier` on the last of C, `multishot` one flow per activation, in file order.
    Source: csg-htsim, `sim/datacenter/connection_matrix.cpp` and `sim/trigger.cpp`.
    Deviation: "send done" and "receive done" are both the completion of the flow; `prio` is ignored, and said so;
    size 0 (a flow without end) and `failure` lines are refused.
    """

    kind: ClassVar[Literal["htsim_cm"]] = "htsim_cm"

    path: str
    """The file, relative to the scenario.

    Must be given.
    """

    time_unit: TimeUnit
    """What start times count. There is no default: htsim reads picoseconds, but writes microseconds.

    Must be given.
    """


FlowFile: TypeAlias = CsvFlows | HpccFlows | HtsimMatrix | Mapping[str, Any]
"""A file of flows.

- `csv`: Comma-separated values with a heading.
- `hpcc_flow`: HPCC's `flow.txt`.
- `htsim_cm`: htsim's connection matrix, `.cm`.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportedFlows(Table):
    """Flows from a file."""

    kind: ClassVar[Literal["file"]] = "file"

    name: str | None = None
    """Name, for `after` and the results; the kind if absent, numbered from the second of a kind on.
    Also the root of the entry's random streams: a name keeps them when entries are added or moved.
    """

    transport: str | None = None
    """Name of the transport; the scenario's first if absent."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points.

    Default: 0. Accepted: from 0 to 7.
    """

    start: Instant | None = None
    """When the entry begins.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    after: Sequence[str] | None = None
    """Entry names and flow ids that must be complete before the entry begins; an entry is complete when all its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Time from the last of these completions to the beginning.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    format: FlowFile
    """Format and file.

    Must be given.
    """


Entry: TypeAlias = (
    FlowList
    | Incast
    | QueryTraffic
    | PoissonTraffic
    | Permutation
    | AllToAll
    | HotSpot
    | Collective
    | Cbr
    | OnOff
    | ImportedFlows
    | Mapping[str, Any]
    | Literal["query"]
)
"""One source of traffic: what, when, and by which transport.

- `flows`: Flows listed one by one.
- `incast`: Many senders answer one receiver at once.
- `query`: Query and response at random instants (partition–aggregate).
- `poisson`: Background flows at random instants.
- `permutation`: Each host sends to one and receives from one.
- `all_to_all`: Each host sends to each.
- `hot_spot`: Background flows of which a part goes to a few hosts.
- `collective`: Ranks of a training job: all-reduce, all-gather, reduce-scatter, all-to-all.
- `cbr`: Datagrams at a constant rate.
- `on_off`: Datagrams in bursts.
- `file`: Flows from a file.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AllKeep(Table):
    """Nothing to choose."""

    kind: ClassVar[Literal["all"]] = "all"


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeepLast(Table):
    """A ring buffer for each watched port, written when the run ends."""

    kind: ClassVar[Literal["last"]] = "last"

    records: int | None = None
    """Records that a port's ring holds.

    Default: 65536. Accepted: from 1 to 100000000.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeepAround(Table):
    """A trigger for each watched port: a packet finds more than `above` where the one before it found no more than that."""

    kind: ClassVar[Literal["around"]] = "around"

    above: Size
    """Queue that sets it off.

    Must be given.
    """

    before: Duration | None = None
    """What is kept of the time before.

    Default: "500us". Accepted: from 0ps to 1000s.
    """

    after: Duration | None = None
    """What is kept of the time after.

    Default: "500us". Accepted: from 0ps to 1000s.
    """

    records: int | None = None
    """Records that a port remembers of the time before: the last so many.

    Default: 65536. Accepted: from 1 to 100000000.
    """


Keep: TypeAlias = AllKeep | KeepLast | KeepAround | Mapping[str, Any] | Literal["all", "last"]
"""Which records of watched ports are kept.

- `all`: Each.
- `last`: The last of each port.
- `around`: Those around each upward crossing of a threshold.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Registers(Table):
    """The registers in which watched ports keep time and queue length. Source: S-ECN §II-C."""

    tick: Duration | None = None
    """Step of the time register, which has 32 bits and starts again after 2^32 ticks.

    Default: "800ns". Accepted: from 1ns to 1ms.
    """

    unit: Size | None = None
    """Step of the length register, which has 16 bits: queues of 65535 units and more read the same.

    Default: "8B". Accepted: from 1B to 65536B.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class CaptureFrames(Table):
    """Frames at the NICs of hosts, both ways, and on links behind switches, byte for byte. Source: pcapng."""

    hosts: Sequence[str] | None = None
    """Hosts whose NICs are captured: names as in the results (`h3`), `*` stands for anything.

    Default: [].
    """

    links: Sequence[str] | None = None
    """Ports of switches on whose links frames are captured as they leave: names as in the results (`leaf0->spine1`), `*`
    stands for anything. What switches put into frames for each other can be seen there.

    Default: [].
    """

    snap: Size | None = None
    """Most bytes that are kept of a frame; absent: all. 94 B hold all headers, with IPv6 114 B; stamps are at the end.

    Accepted: from 64B to 65535B.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Telemetry(Table):
    """What the result folder holds besides flows and totals. docs/results.md describes the tables."""

    sample: DurationOrOff | None = None
    """Period of the samples in `ports.parquet`; "off": no such table.

    Default: "100us".
    """

    queues: Sequence[str] | None = None
    """Ports whose packets are recorded one by one in `queues.parquet`: names as in the results (`leaf0->h3`), `*`
    stands for anything. Only ports of switches can be watched.

    Default: [].
    """

    hosts: Sequence[str] | None = None
    """Flows that are followed, so that `fanin explain` can say where their time went: their senders' state in `hosts.parquet`,
    their packets in `segments.parquet` and `hops.parquet`. Names of traffic entries, of hosts (all flows from or to
    them), ids and numbers of flows; `*` stands for anything. See docs/explain.md.

    Default: [].
    """

    keep: Keep | None = None
    """Which of these records are kept.

    Default: { kind = "all" }.
    """

    registers: Registers | Mapping[str, Any] | None = None
    """The same as a switch would report it: watched ports write a stamp into each packet, receivers read it into
    `stamps.parquet`. Absent: no stamps. Present, hosts leave room for 8 B in every frame: full segments carry so much
    less, all others are so much longer. See docs/telemetry.md.
    """

    capture: CaptureFrames | Mapping[str, Any] | None = None
    """Frames as tcpdump would capture them at the NICs of hosts, and as a tap would behind ports of switches, in `packets.pcapng`. Absent: none. See docs/wire.md."""

    drops: bool | None = None
    """Whether `drops.parquet` lists each dropped packet.

    Default: true.
    """


Ties: TypeAlias = Literal["drawn", "by_link"]
"""In which order packets are handled that arrive in the same picosecond. At a full drop-tail port the first one gets the place
that has become free.

- `drawn`: Drawn anew for each instant, from seed, time and link: no host is favoured, and unrelated flows change nothing.
- `by_link`: By number of the link: of hosts that send in step the first in the topology always wins.
"""


PortModel: TypeAlias = Literal["auto", "explicit"]
"""How output ports are simulated. The results are the same, bit by bit.

- `auto`: One event per packet and hop; departures are events only while a port has to choose what is next.
- `explicit`: Departures as events at every port: slower, for comparison.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Engine(Table):
    """How the simulation runs. But for `ties`, nothing here changes what is simulated, only how, and when it gives up."""

    ties: Ties | None = None
    """In which order packets are handled that arrive in the same picosecond.

    Default: "drawn".
    """

    ports: PortModel | None = None
    """How output ports are simulated.

    Default: "auto".
    """

    max_events: int | None = None
    """The run ends, marked partial, after this many events.

    Accepted: at least 1.
    """

    stall_events: int | None = None
    """The run is taken to hang when this many events pass without time moving on.

    Default: 200000000. Accepted: at least 1000.
    """

    max_flows: int | None = None
    """A scenario with more flows than this is refused: each costs the result a row.

    Default: 50000000. Accepted: at least 1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScenarioDoc(Table):
    """A scenario: everything that a run depends on."""

    name: str | None = None
    """Name, shown in results.

    Default: "scenario".
    """

    description: str | None = None
    """What it is for."""

    seed: int | None = None
    """Root of every random choice. The same seed gives the same run.

    Default: 1. Accepted: from 0 to 9223372036854775807.
    """

    duration: Duration | None = None
    """The run stops here; absent: when all flows are complete and their senders know it, with the timers that this takes.

    Accepted: from 1ps to 864000s.
    """

    topology: TopologyConfig
    """Hosts, switches and links.

    Must be given.
    """

    framing: Framing | Mapping[str, Any] | None = None
    """How an IP packet sits on the wire."""

    switch: Switch | Mapping[str, Any] | None = None
    """All switches."""

    host: Host | Mapping[str, Any] | None = None
    """All hosts."""

    transport: TransportConfig | None = None
    """The transport of traffic that names none; called "default" in results.

    Default: { kind = "tcp", profile = "rfc", congestion_control = { kind = "newreno" }, handshake = true, mtu = 1500, initial_window_rule = "rfc5681", window_rules = "rfc", slow_start = "standard", slow_start_limit = 1, cwnd_validation = true, idle_restart = "rfc5681", sack = true, loss_detection = "rfc6675", tail_loss_probe = true, undo = true, timer_slack = "0ps", dup_thresh = 3, limited_transmit = true, prr = false, rto_initial = "1s", rto_min = "1s", rto_floor = "rto", rto_max = "60s", clock_granularity = "1ms", timer_ticks = false, backoff_reset = "sample", rtt_sampling = "timed_segment", spurious_rto = "none", max_retries = 15, syn_retries = 8, time_wait = "240s", timestamps = true, timestamp_tick = "1ms", ack_every = 2, delayed_acks = "fixed", delayed_ack_timeout = "200ms", delayed_ack_max = "200ms", quick_acks = 0, sack_compression = { kind = "none" }, dsack = false, paws = false, receive_window = { kind = "fixed", size = "16777216B" }, push = { kind = "last" }, ecn = false, ecn_echo = "classic", ect_on = "new_data", drop_notification = false, trim_nack = false, drop_resend = "at_once", pacing = { kind = "none" }, tso = false, tso_max = "65536B", tso_rtt_log = 9, small_queues = false }.
    """

    transports: Mapping[str, TransportConfig] | None = None
    """Further transports by name, for `[[traffic]]` tables to name."""

    traffic: Sequence[Entry]
    """What the applications ask of the network.

    Must be given.
    """

    telemetry: Telemetry | Mapping[str, Any] | None = None
    """What is recorded."""

    engine: Engine | Mapping[str, Any] | None = None
    """How the simulation runs."""


__all__ = [
    "Table",
    "LinkParams",
    "SingleSwitch",
    "Dumbbell",
    "RackLinkParams",
    "Racks",
    "UplinkParams",
    "LeafSpine",
    "FatTree",
    "Chain",
    "FileFormat",
    "FromFile",
    "TopologyConfig",
    "Ip",
    "Framing",
    "OutputQueued",
    "IslipParams",
    "RoundRobinArbitration",
    "Arbitration",
    "Combined",
    "Architecture",
    "StaticBuffer",
    "DynamicBuffer",
    "UnlimitedBuffer",
    "Buffer",
    "NoneMarking",
    "At",
    "ThresholdParams",
    "Spacing",
    "RedParams",
    "AfterMark",
    "SlopeParams",
    "ProbabilitySlopeForm",
    "SlopeForm",
    "SEcnParams",
    "CodelParams",
    "FrontDropParams",
    "Marking",
    "ClassMarking",
    "IntParams",
    "Operations",
    "PdnParams",
    "LossyPool",
    "StaticXoff",
    "DynamicXoff",
    "Xoff",
    "StormAction",
    "Watchdog",
    "PfcParams",
    "AlertBy",
    "DrainedRelease",
    "FlowletGap",
    "UnorderedRelease",
    "Release",
    "GiveUpWhen",
    "Neighbour",
    "Hops",
    "RimmParams",
    "Exponential",
    "Linear",
    "Growth",
    "PaboParams",
    "DibsParams",
    "ServeBy",
    "VertigoParams",
    "Cut",
    "TrimmingParams",
    "Recognise",
    "Decrease",
    "WhenIdle",
    "RcmParams",
    "Mechanisms",
    "FifoScheduling",
    "StrictParams",
    "DrrParams",
    "StrictDrrParams",
    "Scheduling",
    "Except",
    "Ecmp",
    "Spray",
    "RoundRobinPathChoice",
    "FlowletParams",
    "DrillParams",
    "ByDestinationPathChoice",
    "PathChoice",
    "Switch",
    "FairNic",
    "FifoNic",
    "Nic",
    "AtOnce",
    "Napi",
    "Receive",
    "NoneNoise",
    "UniformNoise",
    "ExponentialNoise",
    "Noise",
    "ReorderBuffer",
    "PauseWatchdog",
    "Storm",
    "Host",
    "Profile",
    "NewReno",
    "Reno",
    "Cubic",
    "Dctcp",
    "CongestionControl",
    "InitialWindow",
    "WindowRules",
    "SlowStart",
    "IdleRestart",
    "LossDetection",
    "RtoFloor",
    "BackoffReset",
    "RttSampling",
    "SpuriousRto",
    "DelayedAcks",
    "NoneSackCompression",
    "CompressedSacks",
    "SackCompression",
    "FixedWindow",
    "WindowGrowth",
    "GrowingWindow",
    "ReceiveWindow",
    "LastPushBit",
    "HalfWindowPush",
    "PushBit",
    "EcnEcho",
    "EctOn",
    "DropResend",
    "NonePacing",
    "Paced",
    "Pacing",
    "Tcp",
    "NoRateControl",
    "Hpcc",
    "PowerTcp",
    "ThetaPowerTcp",
    "DcqcnProfile",
    "Dcqcn",
    "Timely",
    "Swift",
    "RoceControl",
    "GoBackN",
    "SelectiveRepeat",
    "RoceRecovery",
    "NoneRoceWindow",
    "BdpWindow",
    "FixedRoceWindow",
    "RoceWindow",
    "Roce",
    "TransportConfig",
    "ListedFlow",
    "FlowList",
    "Incast",
    "Aggregate",
    "LoadOf",
    "QueryTraffic",
    "WebSearchSizes",
    "DataMiningSizes",
    "EnterpriseSizes",
    "HadoopSizes",
    "StorageSizes",
    "Probability",
    "SizeFile",
    "FixedSize",
    "UniformSize",
    "ExponentialSize",
    "Sizes",
    "PoissonTraffic",
    "Permutation",
    "AllToAll",
    "HotSpot",
    "RankOrder",
    "AllReduceAlgorithm",
    "AllReduce",
    "AllGather",
    "ReduceScatter",
    "Exchange",
    "Operation",
    "Collective",
    "RateCounts",
    "Cbr",
    "OnOff",
    "CsvFlows",
    "HpccFlows",
    "TimeUnit",
    "HtsimMatrix",
    "FlowFile",
    "ImportedFlows",
    "Entry",
    "AllKeep",
    "KeepLast",
    "KeepAround",
    "Keep",
    "Registers",
    "CaptureFrames",
    "Telemetry",
    "Ties",
    "PortModel",
    "Engine",
    "ScenarioDoc",
]
