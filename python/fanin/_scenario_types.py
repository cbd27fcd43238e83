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
    """A link with equal rate and delay in both directions."""

    rate: BitRate | None = None
    """Rate in each direction. Default: "10Gbps". Accepted: from 1Kbps to 4Tbps."""

    delay: Duration | None = None
    """Propagation delay. Default: "1us". Accepted: from 0ps to 10s."""

    wire_overhead: Size | None = None
    """Bytes that a packet takes on this link beyond its IP packet: `framing.header` at least, the rest as gap. If
    absent, framing's header and gap (Ethernet: 38 B).

    Accepted: from 0B to 1KB.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class SingleSwitch(Table):
    """One switch `switch0` with all hosts `h0`, `h1`, …."""

    kind: ClassVar[Literal["single_switch"]] = "single_switch"

    hosts: int | None = None
    """Number of hosts. Default: 8. Accepted: from 2 to 65535."""

    link: LinkParams | Mapping[str, Any] | None = None
    """Link of each host."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dumbbell(Table):
    """Two switches and a link between them: hosts `h0` … at `left`, the rest at `right`."""

    kind: ClassVar[Literal["dumbbell"]] = "dumbbell"

    left: int | None = None
    """Number of hosts at the left switch. Default: 8. Accepted: from 1 to 32767."""

    right: int | None = None
    """Number of hosts at the right switch. Default: 8. Accepted: from 1 to 32767."""

    host_link: LinkParams | Mapping[str, Any] | None = None
    """Link of each host."""

    bottleneck: LinkParams | Mapping[str, Any] | None = None
    """Link between the two switches."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RackLinkParams(Table):
    """A link of the testbed of racks, with equal rate and delay in both directions."""

    rate: BitRate | None = None
    """Rate in each direction. Source: S-ECN §III-A (1 Gb/s). Default: "1Gbps". Accepted: from 1Kbps to 4Tbps."""

    delay: Duration | None = None
    """Propagation delay. Source: S-ECN §III-A (about 50 us for a round trip between racks: eight links of 5 us, and
    serialisation of small frames).

    Default: "5us". Accepted: from 0ps to 10s.
    """

    wire_overhead: Size | None = None
    """Bytes that a packet takes on this link beyond its IP packet: `framing.header` at least, the rest as gap. If
    absent, framing's header and gap (Ethernet: 38 B).

    Accepted: from 0B to 1KB.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Racks(Table):
    """Racks joined by one root switch: hosts `h0` …, switches `tor0` … and `root`. Source: S-ECN §III-A, fig. 3."""

    kind: ClassVar[Literal["racks"]] = "racks"

    racks: int | None = None
    """Number of racks. Source: S-ECN §III-A (4). Default: 4. Accepted: from 1 to 4096."""

    hosts_per_rack: int | None = None
    """Hosts in each rack. Source: S-ECN §III-A (3). Default: 3. Accepted: from 1 to 4096."""

    host_link: RackLinkParams | Mapping[str, Any] | None = None
    """Link of each host."""

    root_link: RackLinkParams | Mapping[str, Any] | None = None
    """Link of each rack to the root switch."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class UplinkParams(Table):
    """A link between switches with equal rate and delay in both directions."""

    rate: BitRate | None = None
    """Rate in each direction. Default: "40Gbps". Accepted: from 1Kbps to 4Tbps."""

    delay: Duration | None = None
    """Propagation delay. Default: "1us". Accepted: from 0ps to 10s."""

    wire_overhead: Size | None = None
    """Bytes that a packet takes on this link beyond its IP packet: `framing.header` at least, the rest as gap. If
    absent, framing's header and gap (Ethernet: 38 B).

    Accepted: from 0B to 1KB.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class LeafSpine(Table):
    """Leaf–spine, every leaf joined to every spine: hosts `h0` …, switches `leaf0` …, `spine0` …. Source: pFabric §5 (the
    defaults: 144 hosts, 9 leaves, 4 spines, 10 and 40 Gb/s).
    """

    kind: ClassVar[Literal["leaf_spine"]] = "leaf_spine"

    leaves: int | None = None
    """Number of leaves. Default: 9. Accepted: from 1 to 4096."""

    hosts_per_leaf: int | None = None
    """Hosts at each leaf. Default: 16. Accepted: from 1 to 4096."""

    spines: int | None = None
    """Number of spines; if absent, derived from `oversubscription`. Accepted: from 1 to 4096."""

    oversubscription: float | None = None
    """Oversubscription of a leaf: rate of its host links over that of its uplinks; 1 if neither this nor `spines` is
    given.

    Accepted: above 0, at most 1000.
    """

    links_per_pair: int | None = None
    """Number of parallel links between each leaf and each spine. Default: 1. Accepted: from 1 to 64."""

    host_link: LinkParams | Mapping[str, Any] | None = None
    """Link of each host."""

    uplink: UplinkParams | Mapping[str, Any] | None = None
    """Link between a leaf and a spine."""

    failed: Sequence[str] | None = None
    """Links that are missing: routes go around them. Each is named by either of its ports (`agg0_0->core0`); `*` stands
    for anything.

    Default: [].
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class FatTree(Table):
    """Fat tree of switches with k ports: k³/4 hosts `h0` … by pod and edge switch, 5k²/4 switches `edge0_0` (pod, place),
    `agg0_0`, `core0`. Source: fat-tree.
    """

    kind: ClassVar[Literal["fat_tree"]] = "fat_tree"

    k: int | None = None
    """Number of ports of every switch; even. Default: 4. Accepted: from 2 to 64."""

    link: LinkParams | Mapping[str, Any] | None = None
    """Link between each pair of neighbouring switches, and of each host."""

    failed: Sequence[str] | None = None
    """Links that are missing: routes go around them. Each is named by either of its ports (`agg0_0->core0`); `*` stands
    for anything.

    Default: [].
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chain(Table):
    """Line of n switches `switch0` … and n + 1 links, with host `h0` at its start and `h1` at its end."""

    kind: ClassVar[Literal["chain"]] = "chain"

    switches: int | None = None
    """Number of switches. Default: 5. Accepted: from 1 to 1024."""

    link: LinkParams | Mapping[str, Any] | None = None
    """Link between each pair of neighbouring switches, and of each host."""


FileFormat: TypeAlias = Literal["graphml", "edge_list", "hpcc"]
"""Format of a network file.

- `graphml`: GraphML: undirected edges with the attributes `rate` and `delay`, nodes with the attribute `kind`.
- `edge_list`: JSON: `{"nodes": [{"id": "h0", "kind": "host"}], "links": [{"a": "h0", "b": "s0", "rate": "10Gbps", "delay": "1us"}]}`.
- `hpcc`: `topology.txt` of the HPCC simulator.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FromFile(Table):
    """Network read from a file. Nodes keep their ids as names; a node without a kind is a host if it has one link."""

    kind: ClassVar[Literal["file"]] = "file"

    path: str
    """Path of the file, relative to the scenario's folder. Must be given."""

    format: FileFormat | None = None
    """Format of the file; if absent, by its ending: `.graphml`, `.json`, `.txt`."""

    rate: BitRate | None = None
    """Rate of links without one in the file; if absent, the file must give it. Accepted: from 1Kbps to 4Tbps."""

    delay: Duration | None = None
    """Propagation delay of links without one in the file; if absent, the file must give it. Accepted: from 0ps to 10s."""


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
"""The network's topology.

- `single_switch`: One switch `switch0` with all hosts `h0`, `h1`, ….
- `dumbbell`: Two switches and a link between them: hosts `h0` … at `left`, the rest at `right`.
- `racks`: Racks joined by one root switch: hosts `h0` …, switches `tor0` … and `root`. Source: S-ECN §III-A, fig. 3.
- `leaf_spine`: Leaf–spine, every leaf joined to every spine: hosts `h0` …, switches `leaf0` …, `spine0` …. Source: pFabric §5
  (the defaults: 144 hosts, 9 leaves, 4 spines, 10 and 40 Gb/s).
- `fat_tree`: Fat tree of switches with k ports: k³/4 hosts `h0` … by pod and edge switch, 5k²/4 switches `edge0_0` (pod,
  place), `agg0_0`, `core0`. Source: fat-tree.
- `chain`: Line of n switches `switch0` … and n + 1 links, with host `h0` at its start and `h1` at its end.
- `file`: Network read from a file. Nodes keep their ids as names; a node without a kind is a host if it has one link.
"""


Ip: TypeAlias = Literal["v4", "v6"]
"""IP version of all hosts. Ports and paths of flows are the same with either.

- `v4`: IPv4, with a header of 20 B. Source: RFC 791.
- `v6`: IPv6, with a header of 40 B: full segments carry 20 B less, drop notifications have 44 B. Source: RFC 8200.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Framing(Table):
    """Framing: the bytes that link layer and IP add to each packet. The defaults are Ethernet's: a full-size packet of 1500
    B is a frame of 1518 B in queues and takes 1538 B of wire time.
    """

    ip: Ip | None = None
    """Version of IP. Default: "v4"."""

    header: Size | None = None
    """Link-layer header and frame check sequence, counted in queues and on the wire. Source: IEEE 802.3 (14 + 4 bytes).

    Default: "18B". Accepted: from 0B to 1KB.
    """

    min_frame: Size | None = None
    """Smallest frame; shorter ones are padded to it. Source: IEEE 802.3. Default: "64B". Accepted: from 0B to 1500B."""

    gap: Size | None = None
    """Preamble and inter-packet gap, counted in wire time only. Source: IEEE 802.3 (8 + 12 bytes).

    Default: "20B". Accepted: from 0B to 1KB.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class OutputQueued(Table):
    """Output-queued: packets wait at their output ports only, as if the switch could move all of them there at once."""

    kind: ClassVar[Literal["output_queued"]] = "output_queued"


@dataclasses.dataclass(frozen=True, kw_only=True)
class IslipParams(Table):
    """iSLIP: request, grant, accept, with round-robin pointers that desynchronise by themselves. Source: iSLIP."""

    kind: ClassVar[Literal["islip"]] = "islip"

    iterations: int | None = None
    """Iterations of request, grant and accept in one arbitration. Source: iSLIP §V (log2 N suffice on average: 3 or 4
    at 12 or 16 ports).

    Default: 3. Accepted: from 1 to 64.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class RoundRobinArbitration(Table):
    """Plain round-robin matching (RRM), with one iteration per arbitration. Source: iSLIP §II.A."""

    kind: ClassVar[Literal["round_robin"]] = "round_robin"


Arbitration: TypeAlias = IslipParams | RoundRobinArbitration | Mapping[str, Any] | Literal["islip", "round_robin"]
"""Scheduler of a crossbar, which matches inputs with outputs.

- `islip`: iSLIP: request, grant, accept, with round-robin pointers that desynchronise by themselves. Source: iSLIP.
- `round_robin`: Round-robin matching (RRM): pointers of outputs and inputs move with every grant.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Combined(Table):
    """Combined input- and output-queued: packets wait at the input, in a virtual output queue for each input, output and
    class, cross a crossbar whole, and wait at their output port. Source: CIOQ.
    """

    kind: ClassVar[Literal["combined"]] = "combined"

    voq: Size | None = None
    """Buffer of each virtual output queue; what does not fit is dropped. Source: RCM §4.1 (100 KB).

    Default: "100KB". Accepted: from 64B to 4GB.
    """

    output: Size | None = None
    """Buffer of each output port and class. Nothing is dropped there: an output without room for a largest frame gets
    no packet. Source: RCM §4.1 (100 KB).

    Default: "100KB". Accepted: from 64B to 4GB.
    """

    speedup: float | None = None
    """Speedup: rate of each crossbar input and output, over that of the fastest port. Source: CIOQ (2 - 1/N is needed,
    and enough, to behave as an output-queued switch of N ports).

    Default: 2.0. Accepted: from 1 to 64.
    """

    scheduler: Arbitration | None = None
    """Scheduler that matches inputs with outputs of the crossbar. Default: { kind = "islip", iterations = 3 }."""


Architecture: TypeAlias = OutputQueued | Combined | Mapping[str, Any] | Literal["output_queued", "combined"]
"""Architecture of a switch: the places where packets wait.

- `output_queued`: Output-queued: packets wait at output ports only.
- `combined`: Combined input- and output-queued: packets wait at the input, in a virtual output queue for each input, output
  and class, cross a crossbar whole, and wait at their output port. Source: CIOQ.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StaticBuffer(Table):
    """Separate buffer of fixed size for each port (drop tail)."""

    kind: ClassVar[Literal["static"]] = "static"

    per_port: AmountOfBuffer | None = None
    """Buffer of each port: a packet that does not fit beside those that wait is dropped. Source: S-ECN §III-A (512 KB,
    the largest of its testbed).

    Default: "512KB".
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class DynamicBuffer(Table):
    """One buffer shared by all ports, with a dynamic threshold: each queue may grow to α times the free buffer. Source: DT."""

    kind: ClassVar[Literal["dynamic"]] = "dynamic"

    total: AmountOfBuffer | None = None
    """Buffer of the whole switch. Source: DCTCP §4 (4 MB: shallow-buffered switches of 48 ports). Default: "4MB"."""

    alpha: float | None = None
    """α: limit of a queue, as a multiple of the free buffer. Source: DT (with 1 a single congested queue takes half of
    the buffer); chips offer powers of two from 1/128 to 8.

    Default: 1.0. Accepted: from 0.001 to 1024.
    """

    reserved: AmountOfBuffer | None = None
    """Reserved buffer of each port, besides its share and out of `total`; if absent, none."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnlimitedBuffer(Table):
    """An unlimited buffer: no packet is dropped for lack of room."""

    kind: ClassVar[Literal["unlimited"]] = "unlimited"


Buffer: TypeAlias = StaticBuffer | DynamicBuffer | UnlimitedBuffer | Mapping[str, Any] | Literal["static", "dynamic", "unlimited"]
"""Buffer of waiting packets. A packet that finds its port idle goes onto the wire and needs none.

- `static`: Separate buffer of fixed size for each port (drop tail).
- `dynamic`: One buffer shared by all ports, with a dynamic threshold: each queue may grow to α times the free buffer. Source:
  DT.
- `unlimited`: Unlimited buffer.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoneMarking(Table):
    """No marking."""

    kind: ClassVar[Literal["none"]] = "none"


At: TypeAlias = Literal["enqueue", "dequeue"]
"""Time at which a packet is compared with the threshold.

- `enqueue`: On arrival: the queue that the packet finds counts.
- `dequeue`: On departure: the queue that the packet leaves behind counts; the signal is fresher by the queueing delay.
  Source: ECN-tuning.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ThresholdParams(Table):
    """Threshold: an ECN-capable packet is marked when the queue is above K."""

    kind: ClassVar[Literal["threshold"]] = "threshold"

    k: AmountOfBuffer | None = None
    """K: a packet is marked when more than K waits, without itself and the packet being sent. Source: DCTCP §3.1 (1)
    ("greater than K upon its arrival"); DCTCP §3.5, "Practical considerations" (65 packets at 10 Gb/s, 20 at 1
    Gb/s).

    Default: "65 packets".
    """

    at: At | None = None
    """Moment at which the queue is measured. Default: "enqueue"."""


Spacing: TypeAlias = Literal["geometric", "uniform", "wait"]
"""Spacing of marks at a given marking probability.

- `geometric`: Geometric gaps: each packet is marked independently. Source: RED §7, method 1.
- `uniform`: Uniform gaps from 1 to 1/p_b − 1: the paper's algorithm counts the arriving packet, its text (1 to 1/p_b) does
  not. Source: RED §7, method 2, as in its fig. 2.
- `wait`: Uniform gaps from 1/p_b to 2/p_b − 1. Source: ns-2 2.35, `queue/red.cc` (`wait_`).
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RedParams(Table):
    """Random early detection (RED): marks or drops with a probability that grows with the average queue."""

    kind: ClassVar[Literal["red"]] = "red"

    min: AmountOfBuffer | None = None
    """Lower threshold of the average queue, in packets, bytes or cells: the unit of the average, too. Source:
    RED-parameters (5 packets).

    Default: "5 packets".
    """

    max: AmountOfBuffer | None = None
    """Upper threshold, in the same unit. Source: RED-parameters (three times `min`). Default: "15 packets"."""

    max_p: float | None = None
    """Marking probability when the average reaches `max`. Source: RED-parameters (0.1).

    Default: 0.1. Accepted: above 0, at most 1.
    """

    weight: float | None = None
    """w_q: weight of one sample in the average; 1 uses the instantaneous queue. Source: RED §6 (0.002).

    Default: 0.002. Accepted: above 0, at most 1.
    """

    gentle: bool | None = None
    """Gentle RED: between `max` and twice `max` the probability rises from `max_p` to 1; if false, it jumps to 1.
    Source: gentle-RED.

    Default: true.
    """

    spacing: Spacing | None = None
    """Spacing of marks. Source: RED §7 (uniform). Default: "uniform"."""

    ecn: bool | None = None
    """ECN: ECN-capable packets are marked; if false, they are dropped as others are. Source: RFC 3168 §5. Default: true."""

    hard_drop: bool | None = None
    """Hard drop: above the upper limit ECN-capable packets are dropped, too. Source: RFC 3168 §7 (recommended). DCTCP
    wants them marked: `false`.

    Default: true.
    """

    drop_others: bool | None = None
    """Drop of packets that are not ECN-capable, where others are marked. If false, they pass up to the limit of
    `hard_drop`, as at lossless queues; RoCEv2's acknowledgments and CNPs are such packets.

    Default: true.
    """

    by_size: bool | None = None
    """Byte mode: the probability is proportional to the frame's size, if the unit is bytes or cells. Source: RED §4.

    Default: false.
    """

    mean_packet: Size | None = None
    """Typical frame size: an idle port counts one sample per serialisation time of it, and `by_size` is relative to it.

    Default: "1518B". Accepted: at least 1B.
    """


AfterMark: TypeAlias = Literal["subtract", "reset"]
"""Amount that a mark subtracts from the sum.

- `subtract`: Subtracts R·I: on average exactly s/R of the packets are marked.
- `reset`: Resets the sum to zero: one packet in ⌊R/s⌋ + 1 is marked, at most half of them while s < R.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SlopeParams(Table):
    """Registers, without randomness: a packet of P wire bytes that arrives I after the one before adds P − R·I to a sum,
    and is marked when the sum is above R·I. Adders and a comparator, as in the paper's hardware. Source: S-ECN §IV-C.
    """

    kind: ClassVar[Literal["registers"]] = "registers"

    clock: Duration | None = None
    """Clock by which intervals are measured; at 20 ns, R of 1.6 Tb/s still fits its register. Source: S-ECN §II-C,
    §IV-C (125 MHz).

    Default: "8ns". Accepted: from 100ps to 20ns.
    """

    credit: Size | None = None
    """Credit earned while idle or draining, for later packets: the sum never falls below minus this, in wire bytes. One
    full-size packet absorbs uneven arrivals.

    Default: "1538B". Accepted: from 0B to 65535B.
    """

    after_mark: AfterMark | None = None
    """Amount that a mark subtracts from the sum. Default: "subtract"."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProbabilitySlopeForm(Table):
    """Probabilistic form: each packet is marked independently with probability (P − R·I)/(R·I). Source: S-ECN §IV-B (1),
    §IV-C (2).
    """

    kind: ClassVar[Literal["probability"]] = "probability"


SlopeForm: TypeAlias = SlopeParams | ProbabilitySlopeForm | Mapping[str, Any] | Literal["registers", "probability"]
"""Form in which the slope becomes a mark.

- `registers`: Registers, without randomness: a packet of P wire bytes that arrives I after the one before adds P − R·I to a
  sum, and is marked when the sum is above R·I. Adders and a comparator, as in the paper's hardware. Source: S-ECN
  §IV-C.
- `probability`: Probability per packet.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SEcnParams(Table):
    """S-ECN: marks by the slope s of the queue at a port of rate R: no packet for s ≤ 0, a share of s/R for 0 < s < R,
    every packet for s ≥ R; and every packet once K waits. Source: S-ECN §IV-B.
    """

    kind: ClassVar[Literal["s_ecn"]] = "s_ecn"

    k: AmountOfBuffer | None = None
    """K: queue from which on every ECN-capable packet is marked; if absent, the slope alone decides. Source: S-ECN
    §IV-D (32 KB at 1 Gb/s).
    """

    form: SlopeForm | None = None
    """Form of the slope rule: registers or probability.

    Default: { kind = "registers", clock = "8ns", credit = "1538B", after_mark = "subtract" }.
    """

    at: At | None = None
    """Packet that is marked: the arriving or the leaving one. Default: "enqueue"."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CodelParams(Table):
    """Controlled delay (CoDel): drops or marks at the head of a queue whose packets have all waited too long for an
    interval.
    """

    kind: ClassVar[Literal["codel"]] = "codel"

    target: Duration | None = None
    """Target: acceptable wait in a standing queue. Source: RFC 8289 §4.3 (5 ms). Default: "5ms". Accepted: from 1ns to 10s."""

    interval: Duration | None = None
    """Interval in which all packets must have waited longer than `target` before one is dropped; about the longest RTT.
    Source: RFC 8289 §4.2 (100 ms).

    Default: "100ms". Accepted: from 1ns to 100s.
    """

    mtu: Size | None = None
    """Smallest backlog: nothing is dropped while no more than this waits behind the packet. Source: Linux
    codel_should_drop (the device's MTU with its header); RFC 8289 §5.5 (the largest packet so far).

    Default: "1518B". Accepted: from 64B to 65535B.
    """

    ecn: bool | None = None
    """ECN: ECN-capable packets are marked instead of dropped. Source: Linux sch_codel (off). Default: false."""

    ce_threshold: Duration | None = None
    """Step marking: every ECN-capable packet that has waited longer than this is marked, by its wait alone; if absent,
    none. Source: Linux sch_codel (meant for DCTCP).
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrontDropParams(Table):
    """Front drop: no marks; the packet at the head of a queue that has reached a limit is dropped instead of sent."""

    kind: ClassVar[Literal["front_drop"]] = "front_drop"

    limit: AmountOfBuffer | None = None
    """Limit: a packet is dropped when at least this much waits, itself included. Default: "512KB"."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class OutsideParams(Table):
    """External: a block outside of the simulator decides about every packet, over a Unix socket. See docs/cosimulation.md."""

    kind: ClassVar[Literal["external"]] = "external"

    socket: str | None = None
    """Path of the Unix socket at which the block listens, relative to the working directory. Default: "fanin.sock"."""

    settings: str | None = None
    """Settings of the block, passed on as they are written: at most 480 bytes. Default: ""."""

    block: str | None = None
    """Name and version that the block must have; another is refused. If absent, any block may decide."""

    departures: bool | None = None
    """Departures: the block is also asked about packets that leave the queue, and may mark them. Default: false."""

    refusals: bool | None = None
    """Refusals: the block is also told of packets that admission has refused. Default: false."""

    detours: bool | None = None
    """Detours: the block may send packets that find no room at their port, and any others, to another port of the
    switch.

    Default: false.
    """

    timeout: Duration | None = None
    """Longest wait for a byte from the block, in real time. Default: "10s". Accepted: from 1ms to 3600s."""


Marking: TypeAlias = (
    NoneMarking
    | ThresholdParams
    | RedParams
    | SEcnParams
    | CodelParams
    | FrontDropParams
    | OutsideParams
    | Mapping[str, Any]
    | Literal["none", "threshold", "red", "s_ecn", "codel", "front_drop", "external"]
)
"""Marking policy: the congestion signal of a port. The whole port has one state; with `codel`, and with any
`switch.class_marking`, each class has its own.

- `none`: No marking.
- `threshold`: Threshold: an ECN-capable packet is marked when the queue is above K.
- `red`: Random early detection (RED): marks or drops with a probability that grows with the average queue.
- `s_ecn`: S-ECN: marks by the slope s of the queue at a port of rate R: no packet for s ≤ 0, a share of s/R for 0 < s < R,
  every packet for s ≥ R; and every packet once K waits. Source: S-ECN §IV-B.
- `codel`: Controlled delay (CoDel): drops or marks at the head of a queue whose packets have all waited too long for an
  interval.
- `front_drop`: Front drop: no marks; the packet at the head of a queue that has reached a limit is dropped instead of sent.
- `external`: External: a block outside of the simulator decides about every packet, over a Unix socket. See docs/cosimulation.md.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassMarking(Table):
    """Marking policy of some classes. With any entry each queue of a port is marked by itself, as by a switch's WRED or ECN
    profile; classes without an entry follow `switch.marking`, by their own queues too. Source: SAI
    (SAI_QUEUE_ATTR_WRED_PROFILE_ID).
    """

    classes: Sequence[int]
    """Classes that the policy marks; those beyond the last queue of a port share that queue. Must be given."""

    marking: Marking
    """Marking policy of these classes. Must be given."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class IntParams(Table):
    """In-band network telemetry: ports write their state into frames whose transport asks for it. Source: HPCC §4.1."""

    hops: int | None = None
    """Largest number of records in a frame; ports further on write none. Default: 5. Accepted: from 1 to 8."""

    unaware: Sequence[str] | None = None
    """Switches without telemetry, by name, `*` stands for anything: senders see nothing of their ports. Default: []."""


Operations: TypeAlias = Literal["retransmit_and_halve", "retransmit"]
"""Action that a notification asks of the sender.

- `retransmit_and_halve`: Retransmit, and reduce the window. Source: PDN §IV.
- `retransmit`: Retransmit only.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PdnParams(Table):
    """Packet drop notification: the sender of a dropped packet is notified at once. Source: PDN §IV."""

    queue: Size | None = None
    """Queue of notifications at each port, 20 bytes each, with IPv6 44; what does not fit is lost and counted. Source:
    PDN §V (20 bytes sufficed in its simulations).

    Default: "2KB". Accepted: from 20B to 1MB.
    """

    operation: Operations | None = None
    """Action asked of the sender. Default: "retransmit_and_halve"."""

    acks: bool | None = None
    """Notifications of dropped pure acknowledgments, too, which their sender repeats. If false, losing the last one of
    a window costs a timeout.

    Default: true.
    """

    max_frame: Size | None = None
    """Largest frame: a notification waits while it would make the next frame longer than this. Source: IEEE 802.3
    §3.2.7 (1518 bytes).

    Default: "1518B". Accepted: from 84B to 65535B.
    """

    unaware: Sequence[str] | None = None
    """Switches and hosts without PDN, by name, `*` stands for anything: they notify nobody, and notifications to them
    are lost and counted.

    Default: [].
    """

    loss: float | None = None
    """Probability of losing a notification on each link that it crosses, for any reason; the frame that carries it
    arrives.

    Default: 0.0. Accepted: from 0 to 1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class LossyPool(Table):
    """Separate pool of the lossy classes: neither kind takes the other's memory."""

    memory: Size | None = None
    """Size of the pool, taken from `memory`. Default: "2MB". Accepted: from 1B to 4GB."""

    alpha: float | None = None
    """α: limit of one port and class, as a multiple of the pool's free part. Source: DT.

    Default: 1.0. Accepted: from 0.001 to 64.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class StaticXoff(Table):
    """Fixed XOFF threshold for each port and priority."""

    kind: ClassVar[Literal["static"]] = "static"

    bytes: Size | None = None
    """Memory that packets of one priority from one neighbour may take, besides the reservation. Default: "100KB"."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DynamicXoff(Table):
    """Dynamic XOFF threshold: each port and priority may take α times the free part of the pool. Source: DT."""

    kind: ClassVar[Literal["dynamic"]] = "dynamic"

    alpha: float | None = None
    """α: threshold as a multiple of the free part of the pool. Source: HPCC, its simulator (1/8).

    Default: 0.125. Accepted: from 0.001 to 64.
    """


Xoff: TypeAlias = StaticXoff | DynamicXoff | Mapping[str, Any] | Literal["static", "dynamic"]
"""XOFF threshold, from which the neighbour is paused.

- `static`: Fixed XOFF threshold for each port and priority.
- `dynamic`: Dynamic XOFF threshold: each port and priority may take α times the free part of the pool. Source: DT.
"""


StormAction: TypeAlias = Literal["drop", "forward"]
"""Action on a class whose pause does not end.

- `drop`: Drops waiting and arriving packets of the class.
- `forward`: Ignores pauses of the class.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Watchdog(Table):
    """Storm watchdog of a switch's ports. Source: PFC-watchdog."""

    detection: Duration | None = None
    """Time paused without a break, with packets waiting, after which a class is in a storm. Source: PFC-watchdog (200
    ms).

    Default: "200ms". Accepted: from 1us to 100s.
    """

    restoration: Duration | None = None
    """Time without a pause after which the storm is over. Source: PFC-watchdog (200 ms).

    Default: "200ms". Accepted: from 1us to 100s.
    """

    action: StormAction | None = None
    """Action on the class during a storm. Source: PFC-watchdog. Default: "drop"."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PfcParams(Table):
    """Priority flow control (PFC): lossless classes, by pausing the neighbours. Source: IEEE 802.1Q §36."""

    classes: Sequence[int] | None = None
    """Lossless classes, by their priority in PFC frames. Other classes drop when their share of the pool is used up.

    Default: [0, 1, 2, 3, 4, 5, 6, 7]. Accepted: from 0 to 7.
    """

    memory: Size | None = None
    """Memory of a switch: reservations, headroom, the rest a pool. Source: DCQCN §4 (12 MB, a shared-buffer chip of 32
    ports).

    Default: "12MB". Accepted: from 1B to 4GB.
    """

    reserved: Size | None = None
    """Reserved memory of each port and class, taken from `memory`. Default: "0B"."""

    lossy: LossyPool | Mapping[str, Any] | None = None
    """Separate pool for the other classes; if absent, they share the lossless one under the same XOFF threshold."""

    headroom: Size | None = None
    """Headroom of each port and lossless class: memory for packets that arrive after XOFF. If absent, what the link can
    deliver until the neighbour has stopped. Source: IEEE 802.1Q Annex N.
    """

    xoff: Xoff | None = None
    """XOFF threshold, from which a neighbour is paused. Default: { kind = "dynamic", alpha = 0.125 }."""

    xon_gap: Size | None = None
    """Hysteresis: distance below XOFF at which the pause ends. Source: HPCC, its simulator (3 KB). Default: "3KB"."""

    quanta: int | None = None
    """Pause time in a PFC frame, in quanta of 512 bit times; asked for again after half of it. Source: IEEE 802.3
    §31B.2 (65,535 at most).

    Default: 65535. Accepted: from 2 to 65535.
    """

    response: Duration | None = None
    """Reaction time: from XOFF until the PFC frame is ready, plus the neighbour's time to obey it. Source: IEEE 802.3
    §31B.3.7 (60 quanta at 40 Gb/s: 0.8 us).

    Default: "0ps". Accepted: from 0ps to 1ms.
    """

    max_frame: Size | None = None
    """Largest frame on the links, by which headroom is computed. Source: IEEE 802.3 §3.2.7 (1518 bytes).

    Default: "1518B". Accepted: from 64B to 65535B.
    """

    watchdog: Watchdog | Mapping[str, Any] | None = None
    """Watchdog that ends overlong pauses of a class; if absent, the class waits."""


AlertBy: TypeAlias = Literal["message", "at_once"]
"""Way in which the ingress learns that a queue has reached α.

- `message`: A message by way of a neighbour, as needed where the ingress cannot read the egress. Source: RIMM §III-A.1.
- `at_once`: Direct reading of the queue, which the paper's hardware cannot do: the difference to `message` is the message's
  cost.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DrainedRelease(Table):
    """Drained: a flow's detour ends as soon as all its packets are back (Sa = Sf). Source: RIMM §V, which could not build
    it: two accesses to one register.
    """

    kind: ClassVar[Literal["drained"]] = "drained"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlowletGap(Table):
    """Flowlet: a flow's detour ends with a pause of the flow. Source: RIMM §III-C."""

    kind: ClassVar[Literal["flowlet"]] = "flowlet"

    chi: Duration | None = None
    """χ: gap between two new packets that ends the detour. Deviation: the paper has "a few milliseconds"; flows of a
    full queue have no such gap.

    Default: "500us". Accepted: from 1ns to 4s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnorderedRelease(Table):
    """Unordered: packets have no numbers, and go on as soon as the alert is off, in any order. Source: RIMM §IV-B
    ("detour-based forwarding").
    """

    kind: ClassVar[Literal["unordered"]] = "unordered"


Release: TypeAlias = DrainedRelease | FlowletGap | UnorderedRelease | Mapping[str, Any] | Literal["drained", "flowlet", "unordered"]
"""Condition that ends a flow's detour after the alert.

- `drained`: Return of all packets of the flow.
- `flowlet`: Flowlet: a flow's detour ends with a pause of the flow. Source: RIMM §III-C.
- `unordered`: End of the alert; packets are not kept in order.
"""


GiveUpWhen: TypeAlias = Literal["stalled", "outstanding"]
"""Start of `give_up` for a pair of sequence numbers.

- `stalled`: Last progress of the detour: the last release of one of the pair's packets and, with `release` = drained, the last packet that
  met a port which has not run empty since its alert.
- `outstanding`: Start of the detour, the paper to the letter ("packet detouring lasts longer than a user-defined period of
  time"): with bursts longer than `give_up` each detour ends early, out of order.
"""


Detours: TypeAlias = Literal["returning", "all"]
"""Ports whose packets take detours.

- `returning`: Ports that have neighbours from which everything returns, by those alone: all shortest paths of such a neighbour
  to the hosts behind the port lead over this switch. In a leaf–spine network: ports of leaves to hosts. Source:
  RIMM §III-A.1 ("guaranteed to return").
- `all`: All ports, by any neighbour. Where the neighbour knows another way, packets take it and are out of order.
"""


Neighbour: TypeAlias = Literal["per_packet", "per_flow"]
"""Interval at which a neighbour is chosen.

- `per_packet`: A choice for each detour of each packet. Source: RIMM §III-A.2.
- `per_flow`: One choice for all packets of a pair that are on detours at the time, as long as the neighbour has room.
  Deviation: not in the paper.
"""


Hops: TypeAlias = Literal["spent", "restored"]
"""Cost of a detour in a packet's time to live.

- `spent`: Two hops per detour, like any path; a packet with fewer than eight left takes no detour.
- `restored`: None: the switch restores the two hops when the packet is back. Only `give_up` ends its detour.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RimmParams(Table):
    """RIMM: packets for a port whose queue has reached α take a detour by a neighbouring switch, and go on in order.
    Source: RIMM.
    """

    alpha: AmountOfBuffer | None = None
    """α: depth of a queue from which on its packets take detours. Source: RIMM §IV (20,000 of 24,000 cells).

    Default: "20000 cells".
    """

    alert: AlertBy | None = None
    """Way in which the ingress learns that a queue has reached α. Default: "message"."""

    message_class: int | None = None
    """Traffic class of messages; if absent, that of the packet whose headers the message copies, among whose class it
    then waits. Deviation: the paper does not say.

    Accepted: from 0 to 7.
    """

    repeat: Duration | None = None
    """Interval at which the message is repeated while the queue stays above α, as messages may be lost. Deviation: the
    paper repeats none.

    Default: "100us". Accepted: from 1us to 4s.
    """

    release: Release | None = None
    """Condition that ends a flow's detour after the alert. Default: { kind = "drained" }."""

    give_up: Duration | None = None
    """Time after which an alert counts as congestion: packets on detours are released, and the port has no detours
    until the next alert. A pair of sequence numbers is given up after the same time, counted by `give_up_when`: its
    new packets take no detour, the others go on once they are back and the alert is off. Source: RIMM §III-B, §V (1
    ms).

    Default: "1ms". Accepted: from 1us to 4s.
    """

    give_up_when: GiveUpWhen | None = None
    """Start of `give_up` for a pair of sequence numbers. Default: "stalled"."""

    longest: Duration | None = None
    """Longest detour of a pair, from its first packet (Sa leaves Sf). Then the pair is given up even during an alert,
    and has no detours until the alert is off. Deviation: the paper's 1 ms is shorter than its own bursts of 5 MB.

    Default: "10ms". Accepted: from 1us to 4s.
    """

    detours: Detours | None = None
    """Ports whose packets take detours. Default: "returning"."""

    neighbour: Neighbour | None = None
    """Occasion on which the neighbour with the least depth is chosen anew. Default: "per_packet"."""

    room: Size | None = None
    """Depth from which on a neighbour gets no detours. Deviation: the paper has no bound; the default is the largest
    depth that a header can state, 65,535 cells.

    Default: "5242800B". Accepted: at least 1B.
    """

    hash_bits: int | None = None
    """Number of hash bits that select a flow's pair of sequence numbers; flows that agree in them share a pair. Source:
    RIMM §III-B (12).

    Default: 12. Accepted: from 0 to 16.
    """

    hops: Hops | None = None
    """Cost of a detour in TTL. Default: "spent"."""

    max_frame: Size | None = None
    """Largest frame between switches: a packet that RIMM's headers would make longer goes without them, and takes no
    detour.

    Default: "9216B". Accepted: from 76B to 65535B.
    """

    unaware: Sequence[str] | None = None
    """Switches without RIMM, by name, `*` stands for anything. Default: []."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Saturating(Table):
    """Saturating growth, as in the authors' simulation: (1 − e^(−λx/(n+1))) / (1 − e^(−λ/(n+1))) after n bounces; steep at
    first, less so with each bounce. Source: PABO-code.
    """

    kind: ClassVar[Literal["saturating"]] = "saturating"

    lambda_: float | None = None
    """λ, the steepness of the growth. Source: PABO-code (A · (1 − Threshold) = 50 · 0.2).

    Default: 10.0. Accepted: from 0.01 to 50.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exponential(Table):
    """Exponential growth: (e^(λx) − 1) / (e^λ − 1), small for most x, then steep."""

    kind: ClassVar[Literal["exponential"]] = "exponential"

    lambda_: float | None = None
    """λ, the steepness of the growth. Deviation: the paper's value is not known. Default: 4.0. Accepted: from 0.01 to 50."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Linear(Table):
    """Linear growth: probability proportional to x."""

    kind: ClassVar[Literal["linear"]] = "linear"


Growth: TypeAlias = Saturating | Exponential | Linear | Mapping[str, Any] | Literal["saturating", "exponential", "linear"]
"""Growth of the bounce probability with x, the queue's position between `lower` (0) and `upper` (1).

- `saturating`: Saturating growth, as in the authors' simulation: (1 − e^(−λx/(n+1))) / (1 − e^(−λ/(n+1))) after n bounces; steep
  at first, less so with each bounce. Source: PABO-code.
- `exponential`: Exponential growth: (e^(λx) − 1) / (e^λ − 1), small for most x, then steep.
- `linear`: Linear growth.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PaboParams(Table):
    """PABO: after n bounces a packet for a queue of q is bounced to the switch upstream with probability g(x)^(n + 1), x =
    (q − lower) / (upper − lower), unless `growth` has its own formula; with probability 1 if there is no room. Source:
    PABO §III.
    """

    lower: AmountOfBuffer | None = None
    """Queue up to which no packet is bounced. Default: "50 packets"."""

    upper: AmountOfBuffer | None = None
    """Queue from which every packet is bounced. Default: "100 packets"."""

    growth: Growth | None = None
    """g: growth of the probability between the two. Default: { kind = "exponential", lambda = 4.0 }."""

    unaware: Sequence[str] | None = None
    """Switches without PABO, by name, `*` stands for anything: they forward bounced packets as usual. Default: []."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DibsParams(Table):
    """DIBS: a packet that finds no room is detoured to a random other port that leads to a switch. Source: DIBS §3."""

    unaware: Sequence[str] | None = None
    """Switches without DIBS, by name, `*` stands for anything: they forward detoured packets as usual. Default: []."""


ServeBy: TypeAlias = Literal["least_left", "arrival"]
"""Order in which the packets of a class leave a port.

- `least_left`: Least left first: by the flow's remaining bytes, boosted; ties by arrival. Later packets of a flow have less left
  than earlier ones.
- `arrival`: Order of arrival: remaining bytes decide only which packet is deflected.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class VertigoParams(Table):
    """Vertigo: at a port without room, the packet whose flow has most left to send, queued or arriving, is deflected to
    another port. Source: Vertigo.
    """

    choices: int | None = None
    """Number of random ports to other switches, of which the shortest queue takes the deflected packet; 0: it is
    dropped. Source: Vertigo, its simulator (2).

    Default: 2. Accepted: from 0 to 64.
    """

    boost: int | None = None
    """Boost: each retransmission of a packet divides its remaining bytes by this; 1: none. Source: Vertigo, its
    simulator (2; 4 and 8 were tried).

    Default: 2. Accepted: from 1 to 256.
    """

    serve: ServeBy | None = None
    """Order in which the packets of a class leave. Default: "least_left"."""

    unaware: Sequence[str] | None = None
    """Switches without Vertigo, by name, `*` stands for anything: they forward deflected packets as usual. Default: []."""


Cut: TypeAlias = Literal["arriving", "either"]
"""Packet that is trimmed when a data packet finds its queue full.

- `arriving`: The arriving packet.
- `either`: The arriving packet or, with equal probability, the last one in the queue, whose place the arriving one takes: so
  that it is not always the same flow that is late. Source: NDP §3.1.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrimmingParams(Table):
    """Trimming: packets that find no room lose their payload. Source: NDP §3.1."""

    headers: Size | None = None
    """Buffer of each port for trimmed packets, in addition to that for data. Source: NDP §3.1 (as much as for data:
    eight packets, of 9000 bytes).

    Default: "72KB". Accepted: from 128B to 10MB.
    """

    ratio: int | None = None
    """Number of trimmed packets sent per data packet while both wait. Source: NDP §3.1 (10).

    Default: 10. Accepted: from 1 to 1000000.
    """

    cut: Cut | None = None
    """Packet that is trimmed. Default: "either"."""

    unaware: Sequence[str] | None = None
    """Switches without trimming, by name, `*` stands for anything. Default: []."""


Recognise: TypeAlias = Literal["now", "at_detection"]
"""State of the CAM by which flows are harmful, at a port for which no neighbour has named any.

- `now`: Present: flows in the CAM now are harmful; the CAM is updated while the region lasts.
- `at_detection`: At detection: flows that were in the CAM when the output queue became congested are harmful until congestion is
  over. Source: RCM §3.1 (a root that is reported "starts congestion control to the flows recognized by CFR").
"""


LocalFlag: TypeAlias = Literal["output", "either"]
"""Queues that set an output port's local flag, which makes it a root.

- `output`: The output queue alone.
- `either`: Input queues, too: a congested sample sets the flag, with its degree, of the output by which the sampled packet
  leaves. Source: RCM §3.2 ("firstly detected in an input queue, the port will set its local congestion flag").
"""


Decrease: TypeAlias = Literal["each", "measured"]
"""Value of W_c to which a congestion degree applies.

- `each`: Present W_c: each further degree reduces it again. Source: RCM formula 5.
- `measured`: Measured W_c: only the last degree counts, and takes at most half. Source: RCM §4.2 (a flow of half of the port
  falls to a quarter, and stays there).
"""


WhenIdle: TypeAlias = Literal["send", "wait"]
"""Use of transmission time when harmful flows have used up W_c and no other flow has anything to send.

- `send`: Harmful flows send: no port idles while a packet waits.
- `wait`: Harmful flows wait until W could have been sent, at ports notified from downstream; elsewhere they send. Source:
  RCM §3.1 ("performs pacing to harmful flows").
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RcmParams(Table):
    """Regional congestion mitigation (RCM): switches detect a region of congestion, hold harmful flows at their ports, and
    reroute the others. Source: RCM.
    """

    rcc: bool | None = None
    """Regional congestion control: harmful flows share a window W_c. If false, congestion is only detected and
    notified.

    Default: true.
    """

    sar: bool | None = None
    """Adaptive routing: harmless flows take the equal-cost path with the least degree of congestion. Default: true."""

    q_eq: Size | None = None
    """Q_eq: queue length in equilibrium. Source: IEEE 802.1Qau (cpQSp, 26,000 B). Default: "26KB". Accepted: from 1B to 1GB."""

    w_q: int | None = None
    """w_q: weight of the queue's growth. Source: IEEE 802.1Qau (cpW, 2). Default: 2. Accepted: from 0 to 64."""

    sample: Size | None = None
    """Bytes that arrive at a queue from one sample to the next, without congestion; an eighth at the largest degree.
    Deviation: IEEE 802.1Qau has 150 KB, for queues that hosts answer for.

    Default: "30KB". Accepted: from 64B to 1GB.
    """

    w: float | None = None
    """w: weight of the degree from downstream in the one passed upstream. Default: 0.5. Accepted: from 0 to 1."""

    cam: int | None = None
    """Capacity in flows of a port's CAM, and of a notification from downstream. Default: 8. Accepted: from 1 to 256."""

    cam_hits: int | None = None
    """Number of CAM entries that a flow must have to be harmful at its port. Source: RCM §3.3 (flows whose IDs are
    stored, so one).

    Default: 1. Accepted: from 1 to 256.
    """

    recognise: Recognise | None = None
    """State of the CAM that counts: the present one, or the one at the detection of congestion. Default: "now"."""

    local_flag: LocalFlag | None = None
    """Queues whose congestion makes a port the root of a region. Default: "output"."""

    cam_period: Size | None = None
    """Bytes that pass a port from one update of its CAM to the next. Default: "8KB". Accepted: from 64B to 1GB."""

    expiry: Duration | None = None
    """Lifetime of a notification that is not renewed. Default: "20us". Accepted: from 1ns to 100ms."""

    window_min: Size | None = None
    """Smallest number of bytes over which W is measured; if absent, 16 KB or two of the largest frames.

    Accepted: from 64B to 1GB.
    """

    window_max: Size | None = None
    """Largest number of bytes over which W is measured. Default: "100KB". Accepted: from 64B to 1GB."""

    max_frame: Size | None = None
    """Lower bound of W_c, as each window must fit a frame; if absent, the largest frame of the traffic.

    Accepted: from 64B to 65535B.
    """

    decrease: Decrease | None = None
    """Value of W_c that a degree reduces. Default: "each"."""

    when_idle: WhenIdle | None = None
    """Use of transmission time that no other flow needs. Default: "send"."""

    reserved: Size | None = None
    """Bytes that a port holds at reduced windows; above that, harmful flows get their measured share of the port.
    Source: RCM §4.1 (100 KB for each input and output, and 12 ports).

    Default: "1MB". Accepted: from 64B to 1GB.
    """

    severe_degree: int | None = None
    """Degree from which on a notification, or the switch's own sample, is severe. Default: 32. Accepted: from 1 to 63."""

    severe_count: int | None = None
    """Number of severe degrees within `severe_within` after which flows are moved. Default: 3. Accepted: from 1 to 1000."""

    severe_within: Duration | None = None
    """Time over which severe degrees are counted, and for which flows are then moved.

    Default: "20us". Accepted: from 1ns to 100ms.
    """

    moved_flows: int | None = None
    """Capacity of a switch's table of moved flows. Default: 1024. Accepted: from 1 to 1048576."""

    moved_stay: Duration | None = None
    """Pause of a moved flow after which it returns to its own path; nothing is reordered if this exceeds the difference
    of path delays.

    Default: "100us". Accepted: from 1ns to 1s.
    """

    loss: float | None = None
    """Probability of losing a notification on its link, for any reason. Default: 0.0. Accepted: from 0 to 1."""

    unaware: Sequence[str] | None = None
    """Switches without RCM, by name, `*` stands for anything: they neither send nor receive notifications. Default: []."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mechanisms(Table):
    """Mechanisms of switches beyond forwarding, queueing and marking: each is on if its table is present."""

    int: IntParams | Mapping[str, Any] | None = None
    """In-band network telemetry: ports write queue, bytes sent, time and rate into frames. Off if absent."""

    pdn: PdnParams | Mapping[str, Any] | None = None
    """Packet drop notification: the sender of a dropped packet is notified at once. Off if absent."""

    pfc: PfcParams | Mapping[str, Any] | None = None
    """Priority flow control: a neighbour whose packets occupy too much memory is paused. Off if absent."""

    rimm: RimmParams | Mapping[str, Any] | None = None
    """RIMM: packets for a queue that is too long take a detour by a neighbour. Off if absent."""

    pabo: PaboParams | Mapping[str, Any] | None = None
    """PABO: packets for a growing queue return to the switch upstream. Off if absent."""

    dibs: DibsParams | Mapping[str, Any] | None = None
    """DIBS: packets that find no room take another port, at random. Off if absent."""

    vertigo: VertigoParams | Mapping[str, Any] | None = None
    """Vertigo: without room, the packet whose flow has most left to send takes another port. Off if absent."""

    trimming: TrimmingParams | Mapping[str, Any] | None = None
    """Trimming: packets that find no room lose their payload instead of being dropped. Off if absent."""

    rcm: RcmParams | Mapping[str, Any] | None = None
    """RCM: flows that cause congestion are held at the ports of its region, and others change their path. Off if absent."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FifoScheduling(Table):
    """First in, first out: one queue for all classes."""

    kind: ClassVar[Literal["fifo"]] = "fifo"


@dataclasses.dataclass(frozen=True, kw_only=True)
class StrictParams(Table):
    """Strict priority: a class is served only when every more urgent one is empty."""

    kind: ClassVar[Literal["strict"]] = "strict"

    classes: int | None = None
    """Number of classes. Source: IEEE 802.1Q §8.6.8.1 (strict priority), eight at most. Default: 8. Accepted: from 1 to 8."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DrrParams(Table):
    """Deficit round robin: classes with packets are visited in turn, and may send their quantum per visit; unused credit is
    kept.
    """

    kind: ClassVar[Literal["drr"]] = "drr"

    quanta: Sequence[Size] | None = None
    """Quantum of each class; rates are in the ratio of quanta. With at least a full frame, every visit sends something.
    Source: DRR.

    Default: ["1518B", "1518B"]. Accepted: from 1B to 1GB.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class StrictDrrParams(Table):
    """Strict priority for classes 0 … `strict` − 1; when they are empty, deficit round robin for the others."""

    kind: ClassVar[Literal["strict_drr"]] = "strict_drr"

    strict: int | None = None
    """Number of strict classes. Source: IEEE 802.1Q §8.6.8 (priority and weighted classes at one port).

    Default: 1. Accepted: from 1 to 7.
    """

    quanta: Sequence[Size] | None = None
    """Quantum of each further class. Source: DRR. Default: ["1518B", "1518B"]. Accepted: from 1B to 1GB."""


Scheduling: TypeAlias = (
    FifoScheduling | StrictParams | DrrParams | StrictDrrParams | Mapping[str, Any] | Literal["fifo", "strict", "drr", "strict_drr"]
)
"""Scheduler: order in which packets of a port leave. Class 0 is the most urgent; classes beyond the last share
the last.

- `fifo`: First in, first out.
- `strict`: Strict priority: a class is served only when every more urgent one is empty.
- `drr`: Deficit round robin: classes with packets are visited in turn, and may send their quantum per visit; unused credit is
  kept.
- `strict_drr`: Strict priority for classes 0 … `strict` − 1; when they are empty, deficit round robin for the others.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Except(Table):
    """Settings of selected ports or switches: those that meet every given selector of `ports`, `switches`, `rate`, `tier`."""

    ports: Sequence[str] | None = None
    """Selector of ports, by name, `*` stands for anything (`tor2->*`)."""

    switches: Sequence[str] | None = None
    """Selector of the ports of switches, by name, `*` stands for anything."""

    rate: BitRate | None = None
    """Selector of ports of this rate."""

    tier: int | None = None
    """Selector of ports of switches of this tier: 0 next to hosts (ToR, leaf, edge), 1 above (spine, aggregation), 2
    core.
    """

    buffer: AmountOfBuffer | None = None
    """Buffer of each selected port; `switch.buffer` must be static or unlimited."""

    alpha: float | None = None
    """α of each selected port; `switch.buffer` must be dynamic. Accepted: from 0.001 to 1024."""

    marking: Marking | None = None
    """Marking policy of the selected ports."""

    scheduling: Scheduling | None = None
    """Scheduler of the selected ports."""

    mechanisms: Mechanisms | Mapping[str, Any] | None = None
    """Mechanisms of the selected switches, in place of all `switch.mechanisms`; `{}`: none. Not with `ports` or `rate`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ecmp(Table):
    """ECMP, without parameters: its hash is seeded per switch from the run's seed."""

    kind: ClassVar[Literal["ecmp"]] = "ecmp"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spray(Table):
    """Spraying, without parameters: every packet draws a random link."""

    kind: ClassVar[Literal["spray"]] = "spray"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RoundRobinPathChoice(Table):
    """Round robin, without parameters: the packets to one destination take the links in turn."""

    kind: ClassVar[Literal["round_robin"]] = "round_robin"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlowletParams(Table):
    """Flowlets: a flow that has paused for longer than the gap draws a new path."""

    kind: ClassVar[Literal["flowlet"]] = "flowlet"

    gap: Duration | None = None
    """Gap that ends a flowlet; nothing is reordered if it exceeds the difference of path delays. Source: CONGA §3.6
    (500 us).

    Default: "500us".
    """

    entries: int | None = None
    """Entries of each switch's flowlet table; flows whose hashes collide share an entry, and so a path. Source: CONGA
    §3.4 has 65536. Deviation: 4096, which fit the cache of a simulating machine.

    Default: 4096. Accepted: from 1 to 1048576.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class DrillParams(Table):
    """DRILL(d, m): each packet takes the shortest queue among d links drawn at random and the m best of the last comparison.
    Source: DRILL §3.2.
    """

    kind: ClassVar[Literal["drill"]] = "drill"

    d: int | None = None
    """d: number of different links that each packet draws; with as many as there are, all are compared. Source: DRILL
    §3.2 (2).

    Default: 2. Accepted: from 1 to 64.
    """

    m: int | None = None
    """m: number of links remembered, the best of the last comparison. Source: DRILL §3.2 (1).

    Default: 1. Accepted: from 0 to 64.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class ByDestinationPathChoice(Table):
    """Path choice by destination, without parameters: the destination's number modulo the number of links, as tables for
    single addresses are filled (D-mod-k).
    """

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
"""Choice among several shortest paths.

- `ecmp`: ECMP: per flow, by a hash of the 5-tuple.
- `spray`: Spraying: per packet, at random.
- `round_robin`: Round robin: per packet, in turn for each destination.
- `flowlet`: Flowlets: a flow that has paused for longer than the gap draws a new path.
- `drill`: DRILL(d, m): each packet takes the shortest queue among d links drawn at random and the m best of the last
  comparison. Source: DRILL §3.2.
- `by_destination`: Per destination: all packets to a host take the same link of a switch.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Switch(Table):
    """Settings of all switches. A packet is routed when its last bit has arrived, then waits where `architecture` says."""

    latency: Duration | None = None
    """Latency from the arrival of a packet's last bit until it joins a queue. Default: "0ps". Accepted: from 0ps to 10ms."""

    cell: Size | None = None
    """Size of a buffer cell, for settings in cells; a packet takes whole cells. Source: DT (memory in fixed cells); 80
    bytes are common, 208 in large chips.

    Default: "80B". Accepted: from 1B to 65536B.
    """

    architecture: Architecture | None = None
    """Architecture: packets wait at output ports only, or at input ports too. Default: { kind = "output_queued" }."""

    buffer: Buffer | None = None
    """Buffer of output-queued switches. Default: { kind = "static", per_port = "512KB" }."""

    marking: Marking | None = None
    """Marking policy of ports. Default: { kind = "none" }."""

    class_marking: Sequence[ClassMarking | Mapping[str, Any]] | None = None
    """Marking policies of single classes, each by its own queue. Default: []."""

    mechanisms: Mechanisms | Mapping[str, Any] | None = None
    """Mechanisms beyond forwarding, queueing and marking."""

    scheduling: Scheduling | None = None
    """Scheduler that chooses the next packet of a port. Default: { kind = "fifo" }."""

    except_: Sequence[Except | Mapping[str, Any]] | None = None
    """Exceptions: settings of single ports and switches. Source: DCTCP §4 (K = 20 packets at 1 Gb/s, 65 at 10 Gb/s).

    Default: [].
    """

    routing: PathChoice | None = None
    """Choice among several shortest paths. Default: { kind = "ecmp" }."""

    ttl: int | None = None
    """Initial TTL. Each switch decrements it and drops the packet at zero: a packet crosses at most `ttl` − 1 switches.
    Source: RFC 1812 §5.3.1, RFC 1700 p. 64 (64).

    Default: 64. Accepted: at least 2.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class FairNic(Table):
    """Fair NIC: unsent packets stay in the sockets."""

    kind: ClassVar[Literal["fair"]] = "fair"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FifoNic(Table):
    """First in, first out: each connection, in the order in which they became ready, puts all that its window (and
    `small_queues`) allows into the host's transmit queue. Source: Linux pfifo_fast.
    """

    kind: ClassVar[Literal["fifo"]] = "fifo"

    txqueuelen: int | None = None
    """Length of the transmit queue in packets, a TSO burst counting as one; if absent, unlimited. If it is full, a TCP
    segment stays unsent and the window falls as for an ECN echo; ACKs and datagrams are lost. Source: Linux
    txqueuelen (1000), pfifo_fast_enqueue, __tcp_transmit_skb.

    Deviation: no driver's ring behind it (some hundred packets without byte queue limits).

    Accepted: from 1 to 10000000.
    """


Nic: TypeAlias = FairNic | FifoNic | Mapping[str, Any] | Literal["fair", "fifo"]
"""Queueing discipline of a host's NIC.

- `fair`: Round robin over connections with something to send, one packet each. Source: Linux sch_fq without pacing.
- `fifo`: First in, first out: each connection, in the order in which they became ready, puts all that its window (and
  `small_queues`) allows into the host's transmit queue. Source: Linux pfifo_fast.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AtOnce(Table):
    """Immediate delivery: each packet reaches its transport as soon as it has arrived."""

    kind: ClassVar[Literal["at_once"]] = "at_once"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Napi(Table):
    """Interrupt coalescing and GRO: the host takes waiting packets in polls; consecutive segments of a flow that differ in
    nothing else are merged, and acknowledged as one. Source: Linux NAPI, GRO (napi_poll, tcp_gro_receive,
    skb_gro_receive).

    Deviation: a poll takes no time, and does not span several flows' buckets (gro_list). Control messages of switches do
    not wait.
    """

    kind: ClassVar[Literal["napi"]] = "napi"

    interrupt_delay: Duration | None = None
    """Interrupt delay, from the first packet at an idle NIC to the poll: rx-usecs of ethtool (mlx5 8 us, ice and i40e
    50 us).

    Default: "8us". Accepted: from 1ns to 10ms.
    """

    gro: bool | None = None
    """Generic receive offload (GRO): merges consecutive segments of a flow. Default: true."""

    budget: int | None = None
    """Largest number of packets in a poll; the next poll follows at once, but merges nothing with this one. Source:
    Linux NAPI_POLL_WEIGHT.

    Default: 64. Accepted: from 1 to 65535.
    """

    gro_max: Size | None = None
    """Largest payload of merged segments. Source: Linux GRO_LEGACY_MAX_SIZE (64 KiB with headers).

    Default: "65483B". Accepted: from 1460B to 524280B.
    """


Receive: TypeAlias = AtOnce | Napi | Mapping[str, Any] | Literal["at_once", "napi"]
"""Delivery of packets from the NIC to the transport.

- `at_once`: Packet by packet, without delay.
- `napi`: Interrupts with polls, and segments merged by GRO.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoneNoise(Table):
    """No random delay."""

    kind: ClassVar[Literal["none"]] = "none"


@dataclasses.dataclass(frozen=True, kw_only=True)
class UniformNoise(Table):
    """Uniform random delay, from zero up to a maximum."""

    kind: ClassVar[Literal["uniform"]] = "uniform"

    max: Duration | None = None
    """Largest delay. Default: "10us". Accepted: from 1ns to 10ms."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExponentialNoise(Table):
    """Exponentially distributed random delay."""

    kind: ClassVar[Literal["exponential"]] = "exponential"

    mean: Duration | None = None
    """Mean delay. Default: "5us". Accepted: from 1ns to 10ms."""


Noise: TypeAlias = NoneNoise | UniformNoise | ExponentialNoise | Mapping[str, Any] | Literal["none", "uniform", "exponential"]
"""Random delay that a host adds to each packet it receives.

- `none`: No random delay.
- `uniform`: Uniformly distributed delays up to a bound.
- `exponential`: Exponentially distributed delays: mostly short, some long.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReorderBuffer(Table):
    """Reordering buffer between NIC and transport: packets wait for those before them in the flow's byte stream.
    Duplicates, and packets without a place in the stream (acknowledgments, datagrams), do not wait. Source: Vertigo
    §3.3, DRILL §3.3.
    """

    timeout: Duration | None = None
    """Longest wait for missing packets. Source: Vertigo (360 us in the simulations published with it).

    Default: "360us". Accepted: from 1ns to 1s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class PauseWatchdog(Table):
    """Storm watchdog of NICs: a class that is paused for too long transmits nevertheless, until its pauses have been over
    for a while. Source: PFC-watchdog, of switches; here applied to hosts.
    """

    detection: Duration | None = None
    """Time paused without a break, with packets waiting, after which a class is in a storm. Source: PFC-watchdog (200
    ms).

    Default: "200ms". Accepted: from 1us to 100s.
    """

    restoration: Duration | None = None
    """Time without a pause after which the storm is over. Source: PFC-watchdog (200 ms).

    Default: "200ms". Accepted: from 1us to 100s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Storm(Table):
    """Pause storm: defective NICs that keep their switch paused without a break; they go on receiving and sending. Source:
    RDMA-at-scale §4.3.
    """

    hosts: Sequence[str]
    """Hosts with the defect, by name, `*` stands for anything. Must be given."""

    classes: Sequence[int]
    """Traffic classes that are paused: priorities of PFC frames. Must be given. Accepted: from 0 to 7."""

    start: Instant | None = None
    """Start of the storm. Default: "0ps"."""

    end: Instant | None = None
    """End of the storm; if absent, it never ends."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Host(Table):
    """Host: NIC, receive path and pauses, everything besides the transport."""

    nic: Nic | None = None
    """Queueing discipline of the NIC. Default: { kind = "fair" }."""

    processing_delay: Duration | None = None
    """Processing delay, from a packet's last bit until the transport sees it. Default: "0ps". Accepted: from 0ps to 10ms."""

    receive: Receive | None = None
    """Delivery of packets from the NIC to the transport. Default: { kind = "at_once" }."""

    noise: Noise | None = None
    """Random delay of each received packet, besides `processing_delay`, drawn per host. Packets stay in order: each
    waits for those before it.

    Default: { kind = "none" }.
    """

    reorder: ReorderBuffer | Mapping[str, Any] | None = None
    """Reordering buffer before the transport; if absent, packets are delivered in order of arrival."""

    pause_watchdog: PauseWatchdog | Mapping[str, Any] | None = None
    """Watchdog of the NIC that ends overlong pauses of a class; if absent, the class waits."""

    storms: Sequence[Storm | Mapping[str, Any]] | None = None
    """Pause storms: NICs that request pauses without need. Default: []."""

    stall_prevention: Duration | None = None
    """Stall prevention: after requesting pauses of a class for this long without a break, a NIC requests none until the
    need has ended. If absent, it never stops. Source: NVIDIA (pfc_prevention_tout: 100 ms where it is set to auto, 8
    s by default).

    Accepted: from 1us to 100s.
    """


Profile: TypeAlias = Literal["rfc", "linux"]
"""Profile: the set of defaults for keys that are not given.

- `rfc`: Defaults of the RFCs.
- `linux`: Defaults of Linux.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NewReno(Table):
    """NewReno congestion control, which has no parameters of its own."""

    kind: ClassVar[Literal["newreno"]] = "newreno"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reno(Table):
    """Reno congestion control, which has no parameters of its own."""

    kind: ClassVar[Literal["reno"]] = "reno"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cubic(Table):
    """CUBIC. Source: RFC 9438 §4, §5."""

    kind: ClassVar[Literal["cubic"]] = "cubic"

    c: float | None = None
    """C: steepness of the cubic window function [segments/s³]. Source: RFC 9438 §5.1 (0.4).

    Default: 0.4. Accepted: from 0.0001 to 1000.
    """

    beta: float | None = None
    """beta_cubic: share of the window that a reduction leaves. Source: RFC 9438 §4.6 (0.7).

    Default: 0.7. Accepted: from 0.1 to 0.95.
    """

    fast_convergence: bool | None = None
    """Fast convergence: releases bandwidth sooner where the window stayed below the last maximum. Source: RFC 9438
    §4.7.

    Default: true.
    """

    reno_friendly: bool | None = None
    """Reno-friendly region: grows at least as fast as Reno would. Source: RFC 9438 §4.3. Default: true."""


DctcpArithmetic: TypeAlias = Literal["exact", "linux"]
"""Arithmetic of DCTCP's alpha and reductions.

- `exact`: Alpha as a real number, windows in bytes. Source: RFC 8257 §3.3.
- `linux`: Alpha in units of 1/1024, windows in whole segments, products rounded down; after a reduction the count towards
  the next increase begins anew. Source: Linux dctcp_update_alpha, dctcp_ssthresh, tcp_init_cwnd_reduction.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dctcp(Table):
    """Data Center TCP: the window shrinks by the fraction of marked bytes. Source: RFC 8257 §3.3, §4."""

    kind: ClassVar[Literal["dctcp"]] = "dctcp"

    g: float | None = None
    """g: weight of the newest window in the average of the marked fraction. Source: RFC 8257 §3.3, §4 (1/16).

    Default: 0.0625. Accepted: from 0.0001 to 1.
    """

    initial_alpha: float | None = None
    """Initial alpha, the estimated fraction of marked bytes. Source: RFC 8257 §3.3 (1). Default: 1.0. Accepted: from 0 to 1."""

    min_window: int | None = None
    """Smallest window to which marks reduce, in segments. Source: Linux tcp_dctcp.c (2); RFC 3168 §6.1.2 has 1.

    Default: 2. Accepted: from 1 to 64.
    """

    arithmetic: DctcpArithmetic | None = None
    """Arithmetic of alpha and reductions. Below ten segments they differ: Linux keeps a window of four until alpha is a
    half. See docs/linux-dataplane.md.

    Default: "exact".
    """


CongestionControl: TypeAlias = NewReno | Reno | Cubic | Dctcp | Mapping[str, Any] | Literal["newreno", "reno", "cubic", "dctcp"]
"""Congestion control of TCP.

- `newreno`: AIMD with NewReno's fast recovery. Source: RFC 5681, RFC 6582.
- `reno`: AIMD with the fast recovery that the first new ACK ends, without SACK by default. Source: RFC 5681 §3.2.
- `cubic`: CUBIC. Source: RFC 9438 §4, §5.
- `dctcp`: Data Center TCP: the window shrinks by the fraction of marked bytes. Source: RFC 8257 §3.3, §4.
"""


InitialWindow: TypeAlias = Literal["rfc5681", "rfc6928"]
"""Rule that derives the initial window from the segment size.

- `rfc5681`: Initial window of 4, 3 or 2 segments; 3 on Ethernet. Source: RFC 5681 §3.1, which takes RFC 3390's place.
- `rfc6928`: Initial window of min (10·MSS, max (2·MSS, 14600)). Source: RFC 6928 §2.
"""


WindowRules: TypeAlias = Literal["rfc", "linux"]
"""Arithmetic of window growth and reductions.

- `rfc`: Arithmetic of the RFCs: ssthresh from FlightSize; CUBIC of RFC 9438; congestion avoidance counts cumulatively
  acknowledged bytes.
  Source: RFC 5681 §3.1, RFC 9438.
- `linux`: Arithmetic of Linux: ssthresh from cwnd in whole segments, once per recovery, timeouts included; CUBIC of
  tcp_cubic.c, in ticks of `clock_granularity`; congestion avoidance counts delivered bytes. Source: Linux
  tcp_reno_ssthresh, tcp_enter_loss, bictcp_update, tcp_cong_avoid.
"""


SlowStart: TypeAlias = Literal["standard", "hystart", "hystart++"]
"""Mechanism that ends slow start before a loss.

- `standard`: Slow start ends at ssthresh only. Source: RFC 5681 §3.1.
- `hystart`: HyStart, a part of CUBIC: slow start ends at a train of ACKs as long as half the minimum RTT, or when the RTT has
  risen by an eighth (4 to 16 ms). Source: Linux tcp_cubic.c hystart_update.
- `hystart++`: HyStart++: once the RTT has risen by an eighth (4 to 16 ms), slow start goes on at a quarter of its speed for up
  to five rounds. Source: RFC 9406.
"""


IdleRestart: TypeAlias = Literal["none", "rfc5681", "decay"]
"""Congestion window after an idle period longer than an RTO.

- `none`: The window is kept.
- `rfc5681`: The window falls to min (initial window, cwnd). Source: RFC 5681 §4.1.
- `decay`: The window halves once per RTO of idle time, down to min (initial window, cwnd). Source: RFC 2861 §3.1, Linux
  tcp_cwnd_restart.
"""


LossDetection: TypeAlias = Literal["rfc6675", "rack"]
"""Loss detection on connections with SACK.

- `rfc6675`: By count: segments SACKed above a hole. Source: RFC 6675 §4.
- `rack`: By time (RACK): a segment is lost when one sent later has arrived and the reordering window has passed; lost
  retransmissions are detected, too. Source: RFC 8985; Linux tcp_rack_mark_lost.
"""


RtoFloor: TypeAlias = Literal["rto", "variance"]
"""Part of the RTO that RTO_min bounds.

- `rto`: RTO_min bounds the whole RTO. Source: RFC 6298 §2.4.
- `variance`: RTO_min bounds the variance term: RTO = SRTT + max (RTO_min, 4·RTTVAR). Source: Linux tcp_rtt_estimator.
"""


BackoffReset: TypeAlias = Literal["sample", "ack"]
"""Event that resets a backed-off RTO.

- `sample`: The next RTT sample, which retransmitted segments do not give. Source: RFC 6298 §3, §5.7.
- `ack`: Any ACK of new data. Source: Linux tcp_clean_rtx_queue.
"""


RttSampling: TypeAlias = Literal["timed_segment", "timestamps", "every_ack"]
"""Source of RTT samples.

- `timed_segment`: One timed segment per round, with Karn's algorithm. Source: RFC 6298 §3.
- `timestamps`: The timestamp echoed by every ACK, in steps of `timestamp_tick`, with the gains of RFC 7323 appendix G; needs
  `timestamps`. Source: RFC 7323 §4.
- `every_ack`: Every ACK: the first segment that it newly acknowledges, if that was sent only once, by the exact clock; the
  variance follows the largest deviation of each round. Source: Linux tcp_ack_update_rtt, tcp_rtt_estimator.
"""


SpuriousRto: TypeAlias = Literal["none", "f_rto", "eifel"]
"""Detection of spurious timeouts. The response is that of RFC 4015.

- `none`: No detection.
- `f_rto`: F-RTO: detection by the first two ACKs after the timeout. Source: RFC 5682 §2.1.
- `eifel`: Eifel: detection by the timestamp echoed in the first ACK after the timeout; needs `timestamps`. Source: RFC 3522
  §3.2.
"""


DelayedAcks: TypeAlias = Literal["fixed", "adaptive"]
"""Delay of acknowledgments.

- `fixed`: Fixed delay: an ACK waits for `ack_every` segments or `delayed_ack_timeout`. Source: RFC 5681 §4.2.
- `adaptive`: Adaptive delay: an ACK waits for more than `ack_every` − 1 segments of the size seen, or for a time that follows
  the spacing of arrivals, from `delayed_ack_timeout` to `delayed_ack_max`. The end of a message (PSH or a short
  segment) is acknowledged at once, unless this end answers each message with one of its own. Source: Linux
  __tcp_ack_snd_check, tcp_measure_rcv_mss, tcp_send_delayed_ack, tcp_cleanup_rbuf.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoneSackCompression(Table):
    """No compression: each out-of-order segment is acknowledged at once. Source: RFC 5681 §4.2."""

    kind: ClassVar[Literal["none"]] = "none"


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompressedSacks(Table):
    """Compression by a timer: the first three ACKs with equal number leave at once, as fast retransmit needs them; later
    ones wait and are merged. Source: Linux tcp_comp_sack_delay_ns.
    """

    kind: ClassVar[Literal["timer"]] = "timer"

    delay: Duration | None = None
    """Longest wait of a merged ACK; at most 5 % of the RTT. Default: "1ms". Accepted: from 1ns to 100ms."""

    slack: Duration | None = None
    """Time by which the timer fires late. Source: Linux tcp_comp_sack_slack_ns, which the kernel takes in full unless
    another timer runs in between.

    Default: "100us". Accepted: from 0ps to 100ms.
    """

    most: int | None = None
    """Largest number of ACKs merged into one. Source: Linux tcp_comp_sack_nr. Default: 44. Accepted: from 1 to 255."""


SackCompression: TypeAlias = NoneSackCompression | CompressedSacks | Mapping[str, Any] | Literal["none", "timer"]
"""Compression of the ACKs of out-of-order segments.

- `none`: ACKs are not merged.
- `timer`: Compression by a timer: the first three ACKs with equal number leave at once, as fast retransmit needs them;
  later ones wait and are merged. Source: Linux tcp_comp_sack_delay_ns.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FixedWindow(Table):
    """Receive buffer of constant size."""

    kind: ClassVar[Literal["fixed"]] = "fixed"

    size: Size | None = None
    """Size, rounded down to what the window scale can express. Default: "16777216B". Accepted: from 1460B to 1073725440B."""


WindowGrowth: TypeAlias = Literal["linux-5.15", "linux-6.18"]
"""Measurement of the receiver's RTT, and growth of the buffer after an RTT with more read than in any before.

- `linux-5.15`: Linux 5.15 to 6.12. RTT: smoothed over 8 samples; echoes within the present clock tick count as one tick. Buffer:
  twice the bytes read plus 16 segments, and twice the growth on top. Source: Linux 5.15 and 6.12
  tcp_rcv_rtt_update, tcp_rcv_space_adjust.
- `linux-6.18`: Linux 6.18. RTT: a lower one counts at once; echoes within the present tick, and higher ones while data is
  unread, are ignored. Buffer: no extra segments; unread data counts against the bytes read, data beyond a gap
  reserves room for the missing bytes. Source: Linux 6.18 tcp_rcv_rtt_update, tcp_rcv_rtt_measure_ts,
  tcp_rcv_space_adjust, tcp_rcvbuf_grow.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GrowingWindow(Table):
    """Autotuning: a receive buffer that grows with the rate, of which a share is window. The initial window is `buffer` ·
    `share` less a segment (64,088 B). After each RTT in which more was read than in any before, the buffer grows to
    twice that amount, plus twice the growth (`growth`); the window follows by two segments for each that arrives.

    Source: DRS; Linux tcp_init_buffer_space, tcp_rcv_space_adjust, tcp_grow_window, __tcp_select_window. Deviation:
    Linux 5.15 rounds the memory of a segment up, which makes windows 3 % larger.
    """

    kind: ClassVar[Literal["auto"]] = "auto"

    buffer: Size | None = None
    """Initial size of the buffer's memory. Source: Linux tcp_rmem[1].

    Default: "131072B". Accepted: from 4096B to 1073725440B.
    """

    max_buffer: Size | None = None
    """Largest size of the buffer's memory. Source: Linux tcp_rmem[2] (6.18: 32 MiB).

    Default: "6291456B". Accepted: from 4096B to 1073725440B.
    """

    share: float | None = None
    """Share of the memory that is window before the first full segment arrives. Source: Linux 5.15 tcp_adv_win_scale =
    1; 6.12 TCP_DEFAULT_SCALING_RATIO.

    Default: 0.5. Accepted: from 0.05 to 1.
    """

    frame_share: float | None = None
    """Share of the memory that is window once a full segment has arrived: its payload over the memory that holds it;
    `linux`: 0.625 (1448 B in 2 KiB and 256 B of sk_buff). If absent, `share`. Source: Linux 6.12 scaling_ratio; 5.15
    has none.

    Accepted: from 0.05 to 1.
    """

    growth: WindowGrowth | None = None
    """Growth rule of the buffer; `linux`: "linux-6.18". Default: "linux-5.15"."""


ReceiveWindow: TypeAlias = FixedWindow | GrowingWindow | Mapping[str, Any] | Literal["fixed", "auto"]
"""Receive buffer and window.

- `fixed`: Receive buffer of constant size.
- `auto`: Receive window that grows with the rate (autotuning).
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LastPushBit(Table):
    """PSH on the last segment of the application's written data. Source: RFC 9293 §3.9.1.2."""

    kind: ClassVar[Literal["last"]] = "last"


@dataclasses.dataclass(frozen=True, kw_only=True)
class HalfWindowPush(Table):
    """PSH also on each segment that ends more than half a window beyond the last PSH, counted in the application's writes;
    the window is the largest offered by the peer so far. A receiver with "adaptive" `delayed_acks` takes PSH for the end
    of a message; a NIC that merges segments merges nothing behind it. Source: Linux tcp_sendmsg_locked, forced_push.
    Deviation: retransmitted segments carry no PSH.
    """

    kind: ClassVar[Literal["half_window"]] = "half_window"

    writes: Sequence[Size] | None = None
    """Sizes of the application's write calls, the last one repeated; calls follow each other at once, and each begins a
    new half window. Empty: a single call.

    Default: [].
    """


PushBit: TypeAlias = LastPushBit | HalfWindowPush | Mapping[str, Any] | Literal["last", "half_window"]
"""Segments that carry PSH.

- `last`: The last segment of the application's written data.
- `half_window`: The last segment, and each that ends more than half a window beyond the last PSH.
"""


EcnEcho: TypeAlias = Literal["classic", "dctcp"]
"""Rule by which a receiver echoes congestion marks.

- `classic`: Classic echo: ECE on every ACK until CWR arrives. Source: RFC 3168 §6.1.3.
- `dctcp`: DCTCP echo: ECE says exactly which segments were marked, by the DCTCP.CE state. Source: RFC 8257 §3.2.
"""


EctOn: TypeAlias = Literal["new_data", "data", "all"]
"""Packets that are sent as ECN-capable.

- `new_data`: Data segments when sent for the first time. Source: RFC 3168 §6.1.4, §6.1.5.
- `data`: All data segments, retransmissions included.
- `all`: All packets, ACKs, SYN and FIN included. Source: Linux, for congestion controls that need ECN.
"""


DropResend: TypeAlias = Literal["at_once", "window"]
"""Time at which a segment named by a drop notification is retransmitted.

- `at_once`: At once, regardless of congestion window and pacing. Source: PDN §IV.
- `window`: Once the window has room, before new data; at once if nothing else is in flight.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NonePacing(Table):
    """No pacing: segments leave back to back, as many as the window allows."""

    kind: ClassVar[Literal["none"]] = "none"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paced(Table):
    """Pacing at gain · cwnd / SRTT, from the first RTT sample on. Source: Linux tcp_update_pacing_rate, sch_fq."""

    kind: ClassVar[Literal["fq"]] = "fq"

    slow_start_gain: float | None = None
    """Gain while cwnd < ssthresh / 2. Source: Linux tcp_pacing_ss_ratio (200 %). Default: 2.0. Accepted: from 0.1 to 100."""

    gain: float | None = None
    """Gain otherwise. Source: Linux tcp_pacing_ca_ratio (120 %). Default: 1.2. Accepted: from 0.1 to 100."""


Pacing: TypeAlias = NonePacing | Paced | Mapping[str, Any] | Literal["none", "fq"]
"""Pacing of segments over the RTT.

- `none`: No pacing.
- `fq`: Pacing at gain · cwnd / SRTT, from the first RTT sample on. Source: Linux tcp_update_pacing_rate, sch_fq.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tcp(Table):
    """TCP. Defaults are those of the `rfc` profile; if the `linux` profile has another, the description gives it."""

    kind: ClassVar[Literal["tcp"]] = "tcp"

    profile: Profile | None = None
    """Profile that gives the defaults of all other keys. Default: "rfc"."""

    congestion_control: CongestionControl | None = None
    """Congestion control; `linux`: cubic. Default: { kind = "newreno" }."""

    handshake: bool | None = None
    """Three-way handshake at the start and FIN at the end; if false, connections are open from the start and never
    close, as persistent ones between servers. Source: RFC 9293 §3.5, §3.6.

    Default: true.
    """

    mtu: int | None = None
    """MTU: bytes of the largest IP packet; with IPv6 at least 1280 (RFC 8200 §5). Default: 1500. Accepted: from 576 to 65000."""

    mss: int | None = None
    """MSS: payload bytes of a full segment. If absent, MTU − 40, and 12 less with timestamps (RFC 6691): 1460 or 1448;
    with IPv6 20 less, 1440 or 1428.

    Accepted: from 64 to 64000.
    """

    initial_window: int | None = None
    """Initial window in segments, after the handshake; `linux`: 10. If absent, by `initial_window_rule`. Source: Linux
    TCP_INIT_CWND.

    Accepted: from 1 to 100000.
    """

    initial_window_rule: InitialWindow | None = None
    """Rule of the initial window if `initial_window` is absent. Default: "rfc5681"."""

    initial_ssthresh: Size | None = None
    """Initial ssthresh; if absent, arbitrarily high. Source: RFC 5681 §3.1. Accepted: at least 1KB."""

    window_rules: WindowRules | None = None
    """Arithmetic of ssthresh and CUBIC; `linux`: "linux". Default: "rfc"."""

    slow_start: SlowStart | None = None
    """Mechanism that ends slow start before a loss; `linux` with CUBIC: "hystart". Default: "standard"."""

    slow_start_limit: int | None = None
    """Limit of slow-start growth per ACK, in segments (L of RFC 3465); `linux`: none; with `slow_start = "hystart++"`
    8, or none if paced. Source: RFC 5681 §3.1 (1), RFC 9406 §4.3.

    Default: 1. Accepted: from 1 to 65535.
    """

    cwnd_validation: bool | None = None
    """Congestion window validation: the window grows only while it is fully used. Source: RFC 7661 §4.2; Linux
    tcp_is_cwnd_limited.

    Default: true.
    """

    idle_restart: IdleRestart | None = None
    """Window after idle time longer than an RTO; `linux`: "decay". Default: "rfc5681"."""

    sack: bool | None = None
    """Selective acknowledgments, and loss recovery by them. Source: RFC 2018, RFC 6675. Default: true."""

    loss_detection: LossDetection | None = None
    """Loss detection with SACK; `linux`: "rack". Default: "rfc6675"."""

    tail_loss_probe: bool | None = None
    """Tail loss probe with "rack": after two RTTs without an ACK a segment is sent, so that a tail loss shows before
    the RTO. Source: RFC 8985 §7.

    Default: true.
    """

    undo: bool | None = None
    """Undo with "rack": a reduction is reverted when D-SACKs or timestamps show that nothing was lost. Source: Linux
    tcp_try_undo_recovery, tcp_try_undo_loss.

    Default: true.
    """

    timer_slack: Duration | None = None
    """Slack of probe and reordering timeouts with "rack", for late timers; `linux`: 2 ms. Source: Linux
    TCP_TIMEOUT_MIN_US.

    Default: "0ps". Accepted: from 0ps to 1s.
    """

    dup_thresh: int | None = None
    """Duplicate ACK threshold: number of duplicate ACKs (or segments SACKed above) that indicate a loss; with "rack",
    that end the wait for reordered segments. A number beyond any window turns it off, for networks that reorder.
    Source: RFC 5681 §3.2, RFC 6675 §2 (3), RFC 8985 §6.2 step 4.

    Default: 3. Accepted: from 1 to 65535.
    """

    limited_transmit: bool | None = None
    """Limited transmit: the first duplicate ACKs send new data. Source: RFC 3042. Default: true."""

    prr: bool | None = None
    """Proportional rate reduction (PRR) in SACK recovery and after ECN echoes; `linux`: on. The window is bounded by
    slow start (RFC 6937); with "rack" by delivered bytes, plus a segment on cumulative ACKs that report no loss (RFC
    9937). Source: RFC 6937, RFC 9937.

    Default: false.
    """

    rto_initial: Duration | None = None
    """Initial RTO, before the first RTT sample. Source: RFC 6298 §2.1 (1 s). Default: "1s". Accepted: from 1us to 60s."""

    rto_min: Duration | None = None
    """Minimum RTO; `linux`: 200 ms. Source: RFC 6298 §2.4 (1 s); Linux TCP_RTO_MIN. Default: "1s". Accepted: from 0ps to 60s."""

    rto_floor: RtoFloor | None = None
    """Part of the RTO that `rto_min` bounds; `linux`: "variance". Default: "rto"."""

    rto_max: Duration | None = None
    """Maximum RTO, also after back-off; `linux`: 120 s. Source: RFC 6298 §2.5 (at least 60 s); Linux TCP_RTO_MAX.

    Default: "60s". Accepted: from 1us to 3600s.
    """

    clock_granularity: Duration | None = None
    """Clock granularity G: smallest variance term of the RTO, and its unit. Source: RFC 6298 §2.2, §4 (at most 100 ms);
    Linux HZ = 1000.

    Default: "1ms". Accepted: from 0ps to 500ms.
    """

    timer_ticks: bool | None = None
    """Coarse timers: RACK's timers (its RTO, too) and adaptive delayed ACKs expire at the next tick of a clock that all
    hosts share: one tick per `clock_granularity`, from the start of the run. If false, exactly when due. Source:
    Linux timer wheel (calc_index). Deviation: other timers are exact.

    Default: false.
    """

    backoff_reset: BackoffReset | None = None
    """Event that resets a backed-off RTO; `linux`: "ack". Default: "sample"."""

    rtt_sampling: RttSampling | None = None
    """Source of RTT samples; `linux`: "every_ack". Default: "timed_segment"."""

    spurious_rto: SpuriousRto | None = None
    """Detection of spurious timeouts; `linux`: "f_rto". Default: "none"."""

    max_retries: int | None = None
    """Number of timeouts in a row that end a connection with `Aborted`. Source: Linux tcp_retries2 (15); RFC 9293
    §3.8.3 (R2: at least 100 s).

    Default: 15. Accepted: from 1 to 200.
    """

    syn_retries: int | None = None
    """Number of timeouts of SYN or SYN/ACK in a row that end a connection. Source: Linux tcp_syn_retries (6); RFC 9293
    §3.8.3 (at least 3 minutes).

    Default: 8. Accepted: from 1 to 200.
    """

    time_wait: Duration | None = None
    """Time in TIME-WAIT; `linux`: 60 s. Source: RFC 9293 §3.6.1 (2 MSL, 4 minutes); Linux TCP_TIMEWAIT_LEN.

    Default: "240s". Accepted: from 0ps to 3600s.
    """

    timestamps: bool | None = None
    """Timestamps option: 12 bytes of every segment. Source: RFC 7323 §3. Default: true."""

    timestamp_tick: Duration | None = None
    """Tick of the clock in the timestamps option. Source: RFC 7323 §5.4 (1 ms to 1 s).

    Default: "1ms". Accepted: from 1ns to 1s.
    """

    ack_every: int | None = None
    """Number of in-order segments per ACK; 1: no delayed ACKs. Source: RFC 5681 §4.2 (2). Default: 2. Accepted: from 1 to 255."""

    delayed_acks: DelayedAcks | None = None
    """Delay rule of ACKs; `linux`: "adaptive". Default: "fixed"."""

    delayed_ack_timeout: Duration | None = None
    """Timeout of a delayed ACK, the initial one if adaptive; `linux`: 40 ms. Source: RFC 9293 §3.8.6.3 (less than 500
    ms; BSD has 200 ms); Linux TCP_ATO_MIN, TCP_DELACK_MIN.

    Default: "200ms". Accepted: from 1ns to below 500ms.
    """

    delayed_ack_max: Duration | None = None
    """Longest delay of an adaptive ACK. Source: Linux TCP_DELACK_MAX. Default: "200ms". Accepted: from 1ns to below 500ms."""

    quick_acks: int | None = None
    """Quick ACKs: number of ACKs without delay at the start, after idle time, and after out-of-order data (fixed delay)
    or duplicates (adaptive delay; at most as many as half a window has segments); `linux`: 16. Source: Linux
    TCP_MAX_QUICKACKS, tcp_incr_quickack.

    Default: 0. Accepted: from 0 to 255.
    """

    sack_compression: SackCompression | None = None
    """Compression of the ACKs of out-of-order segments; `linux`: "timer". Needs `sack`. Default: { kind = "none" }."""

    dsack: bool | None = None
    """D-SACK: the first SACK block of the next ACK reports data that arrived twice; `linux`: on. Needs `sack`. Source:
    RFC 2883 §4.

    Default: false.
    """

    paws: bool | None = None
    """PAWS: a segment whose timestamp is more than a tick older than the one to be echoed is dropped and acknowledged;
    `linux`: on. Needs `timestamps`. Source: RFC 7323 §5; Linux tcp_paws_discard, tcp_disordered_ack. Deviation: none
    for timestamps that were not updated for 24 days.

    Default: false.
    """

    receive_window: ReceiveWindow | None = None
    """Receive buffer and window; `linux`: "auto". Default: { kind = "fixed", size = "16777216B" }."""

    push: PushBit | None = None
    """Segments that carry PSH; `linux`: "half_window". Default: { kind = "last" }."""

    ecn: bool | None = None
    """Explicit congestion notification, if the peer agrees. Source: RFC 3168 §6.1.1. Default: false."""

    ecn_echo: EcnEcho | None = None
    """Rule by which the receiver echoes marks. Default: "classic"."""

    ect_on: EctOn | None = None
    """Packets that are sent as ECN-capable. Default: "new_data"."""

    drop_notification: bool | None = None
    """Drop notifications of switches: the dropped packet is retransmitted at once, the window reduced at most once per
    RTT. Segments are 20 bytes smaller (IPv6: 44) to leave room for a notification. Both ends should have it. Source:
    PDN §IV.

    Default: false.
    """

    trim_nack: bool | None = None
    """NACKs for trimmed packets: the receiver answers at once by an ACK with a NACK, on which the sender acts as on a
    drop notification. Both ends should have it. Source: NDP §3.1, CP.

    Default: false.
    """

    drop_resend: DropResend | None = None
    """Moment at which segments named by drop notifications and NACKs are retransmitted. Default: "at_once"."""

    pacing: Pacing | None = None
    """Pacing of segments over the RTT. Default: { kind = "none" }."""

    tso: bool | None = None
    """Segmentation offload: segments leave in back-to-back bursts of what cwnd / SRTT sends in 1 ms, from two segments
    to `tso_max`; a burst starts once a third of the window is free. Source: Linux tcp_tso_autosize (sk_pacing_shift
    = 10, tcp_min_tso_segs = 2), tcp_tso_should_defer.

    Default: false.
    """

    tso_max: Size | None = None
    """Largest burst with `tso`. Source: Linux GSO_MAX_SIZE (64 KiB). Default: "65536B". Accepted: from 1460B to 65536B."""

    tso_rtt_log: int | None = None
    """Longer bursts at short RTTs, with `tso`: plus `tso_max`, halved once per 2^this µs of the minimum RTT; 0: off, as
    before Linux 5.18. Source: Linux tcp_tso_rtt_log.

    Default: 9. Accepted: from 0 to 31.
    """

    small_queues: bool | None = None
    """TCP small queues: a connection keeps in the transmit queue of a `nic = "fifo"` at most what cwnd / SRTT sends in
    1 ms (twice that when retransmitting), but two bursts at least; without pacing 1 MiB at most. The rest waits in
    its socket. `linux`: on. Source: Linux tcp_small_queue_check (since 3.6), sk_pacing_shift = 10,
    tcp_limit_output_bytes.

    Default: false.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoRateControl(Table):
    """No congestion control: each queue pair sends at its rate, limited by pauses alone."""

    kind: ClassVar[Literal["none"]] = "none"

    rate: BitRate | None = None
    """Rate of each queue pair, counting all bytes on the wire; if absent, the NIC's. Accepted: from 1Mbps to 10Tbps."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hpcc(Table):
    """HPCC: bytes in flight on the busiest link, by telemetry. Source: HPCC §3.2, Algorithm 1; values: HPCC §5.1."""

    kind: ClassVar[Literal["hpcc"]] = "hpcc"

    eta: float | None = None
    """eta: target utilisation of links. Default: 0.95. Accepted: from 0.5 to 1."""

    max_stage: int | None = None
    """maxStage: RTTs of additive increase before a multiplicative one. Default: 5. Accepted: from 0 to 100."""

    increase: Size | None = None
    """W_AI: additive increase per RTT. Default: "80B". Accepted: from 0B to 1MB."""

    base_rtt: Duration | None = None
    """T: base RTT of all flows; if absent, each flow's own on an idle network. Accepted: from 100ns to 10ms."""

    min_rate: BitRate | None = None
    """Lower bound of a flow's rate. Default: "100Mbps". Accepted: at least 1Mbps."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PowerTcp(Table):
    """PowerTCP: power at the busiest port, by telemetry. Source: PowerTCP §3.3, Algorithm 1; values: the simulations
    published with it.
    """

    kind: ClassVar[Literal["powertcp"]] = "powertcp"

    gamma: float | None = None
    """gamma: weight of a new window against that of the previous RTT. Default: 0.9. Accepted: from 0.01 to 1."""

    eta: float | None = None
    """eta: target utilisation of links, by which power is divided. The paper has 1. Default: 0.95. Accepted: from 0.5 to 1."""

    least_current: float | None = None
    """Lower bound of the current, as a share of the link's rate. The paper has 0. Default: 0.5. Accepted: from 0 to 1."""

    flows: int | None = None
    """N: number of flows that shall share a host's line; beta = line rate · tau / N is the additive increase per RTT.

    Default: 167. Accepted: from 1 to 1000000.
    """

    base_rtt: Duration | None = None
    """tau: base RTT of all flows; if absent, each flow's own on an idle network. Accepted: from 100ns to 10ms."""

    min_rate: BitRate | None = None
    """Lower bound of a flow's rate. Default: "100Mbps". Accepted: at least 1Mbps."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ThetaPowerTcp(Table):
    """theta-PowerTCP: power by delays, without telemetry. Source: PowerTCP §3.3, Algorithm 2; values: the simulations
    published with it.
    """

    kind: ClassVar[Literal["theta_powertcp"]] = "theta_powertcp"

    gamma: float | None = None
    """gamma: weight of a new window against that of the previous RTT. The paper has 0.9.

    Default: 0.7. Accepted: from 0.01 to 1.
    """

    eta: float | None = None
    """eta: target of tau over RTT, by which power is divided. The paper has 1. Default: 0.95. Accepted: from 0.5 to 1."""

    least_current: float | None = None
    """Lower bound of the current, as a share of the link's rate. The paper has 0. Default: 0.5. Accepted: from 0 to 1."""

    flows: int | None = None
    """N: number of flows that shall share a host's line; beta = line rate · tau / N is the additive increase per RTT.

    Default: 167. Accepted: from 1 to 1000000.
    """

    base_rtt: Duration | None = None
    """tau: base RTT of all flows; if absent, each flow's own on an idle network. Accepted: from 100ns to 10ms."""

    min_rate: BitRate | None = None
    """Lower bound of a flow's rate. Default: "100Mbps". Accepted: at least 1Mbps."""


DcqcnProfile: TypeAlias = Literal["paper", "mlx5"]
"""Profile: the set of defaults for keys that are not given.

- `paper`: Defaults of the paper. Source: DCQCN §5.2 and table 14.
- `mlx5`: Defaults of ConnectX adapters. Source: NVIDIA (DCQCN CC Parameters).
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dcqcn(Table):
    """DCQCN: rate reductions by notifications of marks. Source: DCQCN §3."""

    kind: ClassVar[Literal["dcqcn"]] = "dcqcn"

    profile: DcqcnProfile | None = None
    """Profile that gives the defaults of all other keys. Default: "paper"."""

    cnp_interval: Duration | None = None
    """N: smallest interval between a receiver's CNPs for a flow; `mlx5`: 4 us (min_time_between_cnps). Source: DCQCN
    §3.1 (50 us).

    Default: "50us". Accepted: from 0ps to 10ms.
    """

    cnp_delay: Duration | None = None
    """Delay of the receiver's NIC from a marked packet to the CNP. Measurements are matched with up to 55 us.

    Default: "0ps". Accepted: from 0ps to 10ms.
    """

    g: float | None = None
    """g: weight of a CNP in the average α; `mlx5`: 5/1024 (dce_tcp_g). Source: DCQCN §5.2 (1/256).

    Default: 0.00390625. Accepted: from 0.00001 to 1.
    """

    initial_alpha: float | None = None
    """Initial α, before the first CNP (initial_alpha_value); 1 halves the rate. Source: DCQCN §3.1.

    Default: 1.0. Accepted: from 0 to 1.
    """

    alpha_timer: Duration | None = None
    """K: period without a CNP after which α falls by the factor 1 − g; `mlx5`: 1 us (dce_tcp_rtt). Source: DCQCN §3.1
    (55 us).

    Default: "55us". Accepted: from 100ns to 100ms.
    """

    rate_timer: Duration | None = None
    """T: period of the timer at which the rate rises; `mlx5`: 300 us (rpg_time_reset). Source: DCQCN §5.2 (55 us; QCN's
    1.5 ms is found too slow).

    Default: "55us". Accepted: from 100ns to 100ms.
    """

    byte_counter: Size | None = None
    """B: number of sent bytes after which the rate rises, too; `mlx5`: 32767 B (rpg_byte_reset). Source: DCQCN §5.2 (10
    MB; QCN's 150 KB is found unfair).

    Default: "10MB". Accepted: from 1KB to 10GB.
    """

    fast_recovery: int | None = None
    """F: number of steps of fast recovery; `mlx5`: 1 (rpg_threshold). Source: DCQCN §3.1 (5).

    Default: 5. Accepted: from 0 to 100.
    """

    additive_increase: BitRate | None = None
    """R_AI: step of the target rate in additive increase; `mlx5`: 5 Mb/s (rpg_ai_rate). Source: DCQCN §5.2 (40 Mb/s).

    Default: "40Mbps". Accepted: from 1Kbps to 1Tbps.
    """

    hyper_increase: BitRate | None = None
    """R_HAI: step of the target rate in hyper increase, when timer and byte counter are both beyond F; `mlx5`: 50 Mb/s
    (rpg_hai_rate).
    Source: QCN, ten times R_AI; the paper has no number.

    Default: "400Mbps". Accepted: from 1Kbps to 1Tbps.
    """

    min_rate: BitRate | None = None
    """Lower bound of rates; `mlx5`: 1 Mb/s (rpg_min_rate). Default: "10Mbps". Accepted: from 1Kbps to 1Tbps."""

    clamp_target: bool | None = None
    """Target clamping: each CNP makes the present rate the target; `mlx5`: only the first one since the rate rose.
    Source: DCQCN §3.1; NVIDIA (clamp_tgt_rate).

    Default: true.
    """

    decrease_interval: Duration | None = None
    """Smallest interval between rate reductions; α counts every CNP. `mlx5`: 4 us. Source: NVIDIA
    (rate_reduce_monitor_period).

    Default: "0ps". Accepted: from 0ps to 10ms.
    """

    min_decrease_factor: float | None = None
    """Lower bound of the factor by which one CNP reduces the rate. Source: NVIDIA (rpg_min_dec_fac, 50 %); DCQCN §3.1
    (α/2).

    Default: 0.5. Accepted: from 0 to 1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Timely(Table):
    """TIMELY: rate by the gradient of the RTT. Source: TIMELY §4.3."""

    kind: ClassVar[Literal["timely"]] = "timely"

    t_low: Duration | None = None
    """T_low: RTT below which the rate rises, regardless of the gradient. Source: TIMELY §6.1 (50 us).

    Default: "50us". Accepted: from 100ns to 100ms.
    """

    t_high: Duration | None = None
    """T_high: RTT above which the rate falls, regardless of the gradient. Source: TIMELY §6.1 (500 us).

    Default: "500us". Accepted: from 100ns to 100ms.
    """

    min_rtt: Duration | None = None
    """D_minRTT: divisor of gradients; if absent, the flow's base RTT. Source: TIMELY §4.3 (20 us in its testbed).

    Accepted: from 100ns to 100ms.
    """

    delta: BitRate | None = None
    """δ: additive increase per completed segment. Source: TIMELY §6.1 (10 Mb/s).

    Default: "10Mbps". Accepted: from 1Kbps to 1Tbps.
    """

    beta: float | None = None
    """β: multiplicative decrease factor. Source: TIMELY §6.1 (0.8). Default: 0.8. Accepted: from 0.001 to 1."""

    alpha: float | None = None
    """α: weight of the newest difference of RTTs in the average. Source: TIMELY §6.1 (0.875).

    Default: 0.875. Accepted: from 0.001 to 1.
    """

    hai_after: int | None = None
    """Number of completed segments in a row without rising RTT after which the rate rises by N·δ (hyperactive increase,
    HAI). Source: TIMELY §4.3.2 (5).

    Default: 5. Accepted: from 1 to 1000.
    """

    hai: int | None = None
    """N: factor of δ in hyperactive increase. Source: TIMELY §4.3.2 (5). Default: 5. Accepted: from 1 to 100."""

    segment: Size | None = None
    """Payload bytes of a segment, whose completion gives an RTT. Source: TIMELY §3.1 (16 to 64 KB).

    Default: "16384B". Accepted: from 256B to 1048576B.
    """

    initial_rate: BitRate | None = None
    """Initial rate of a flow; if absent, the line's. Source: TIMELY §4.2 has the line's rate over the number of the
    host's flows plus one.

    Accepted: from 1Mbps to 10Tbps.
    """

    min_rate: BitRate | None = None
    """Lower bound of rates. Default: "10Mbps". Accepted: from 1Kbps to 1Tbps."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Swift(Table):
    """Swift: windows, in packets, by delays of fabric and hosts. Source: Swift §3."""

    kind: ClassVar[Literal["swift"]] = "swift"

    base_target: Duration | None = None
    """Target of the fabric's delay on a path without switches, before scaling. Source: csg-htsim (20 us); the paper has
    no number.

    Default: "20us". Accepted: from 100ns to 10ms.
    """

    per_hop: Duration | None = None
    """ħ: addition to the target per switch on the path. Source: Swift §3.5 (topology-based scaling); csg-htsim (base /
    6.55).

    Default: "3us". Accepted: from 0ps to 1ms.
    """

    flow_scaling: Duration | None = None
    """Largest addition to the target for small windows: many flows have small windows and need longer queues. Source:
    Swift §3.5 (flow-based scaling), csg-htsim (5 times `base_target`).

    Default: "100us". Accepted: from 0ps to 10ms.
    """

    scaling_min: float | None = None
    """fs_min_cwnd: window up to which `flow_scaling` is added in full. Source: Swift §3.5, csg-htsim (0.1).

    Default: 0.1. Accepted: from 0.001 to 1000.
    """

    scaling_max: float | None = None
    """fs_max_cwnd: window from which on `flow_scaling` adds nothing. Source: Swift §3.5, csg-htsim (100).

    Default: 100.0. Accepted: from 0.01 to 100000.
    """

    end_target: Duration | None = None
    """Target of the endpoints' delay: waits of packets in the receiver, and of acknowledgments in the sender. Source:
    Swift §3.2, which has no number.

    Default: "20us". Accepted: from 100ns to 10ms.
    """

    increase: float | None = None
    """α: additive increase [packets per RTT]. Source: Swift §3.1; csg-htsim (1). Default: 1.0. Accepted: from 0.001 to 1000."""

    beta: float | None = None
    """β: decrease per excess over the target. Source: Swift §3.1; csg-htsim (0.8). Default: 0.8. Accepted: from 0.001 to 1."""

    max_decrease: float | None = None
    """max_mdf: largest decrease per RTT. Source: Swift §3.1; csg-htsim (0.5). Default: 0.5. Accepted: from 0.001 to 0.999."""

    min_window: float | None = None
    """Smallest window [packets]; a window below one sends a packet every 1/window RTTs. Source: Swift §3.3 (0.001 is
    the least that it names).

    Default: 0.001. Accepted: from 0.0001 to 1.
    """

    max_window: float | None = None
    """Largest window [packets]; if absent, 10 times the path's bandwidth-delay product. Accepted: from 1 to 1000000."""

    initial_window: float | None = None
    """Initial window of a flow [packets]; if absent, the path's bandwidth-delay product. Accepted: from 0.01 to 1000000."""

    reset_after: int | None = None
    """RETX_RESET_THRESHOLD: number of timeouts in a row after which the window is set to the smallest. Source: Swift
    algorithm 1; csg-htsim (5).

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
"""Congestion control of RoCEv2.

- `none`: No congestion control: each queue pair sends at its rate, limited by pauses alone.
- `hpcc`: HPCC: bytes in flight on the busiest link, by telemetry. Source: HPCC §3.2, Algorithm 1; values: HPCC §5.1.
- `powertcp`: PowerTCP: power at the busiest port, by telemetry. Source: PowerTCP §3.3, Algorithm 1; values: the simulations
  published with it.
- `theta_powertcp`: theta-PowerTCP: power by delays, without telemetry. Source: PowerTCP §3.3, Algorithm 2; values: the simulations
  published with it.
- `dcqcn`: DCQCN: rate reductions by notifications of marks. Source: DCQCN §3.
- `timely`: TIMELY: rate by the gradient of the RTT. Source: TIMELY §4.3.
- `swift`: Swift: windows, in packets, by delays of fabric and hosts. Source: Swift §3.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoBackN(Table):
    """Go-back-N: out-of-order packets are dropped, and the sender starts again from the missing one. Source: IBTA §9.7.5.1,
    §9.9.2.
    """

    kind: ClassVar[Literal["go_back_n"]] = "go_back_n"

    ack_timeout: int | None = None
    """Local ACK timeout n: 4.096 us · 2^n without an acknowledgment. Source: IBTA §9.7.6.1.3; 67 ms is what Linux'
    perftest sets.

    Default: 14. Accepted: from 1 to 31.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelectiveRepeat(Table):
    """Selective repeat: out-of-order packets are kept, and only the missing ones retransmitted. Every packet carries an
    RETH. Source: IRN §3.1.
    """

    kind: ClassVar[Literal["selective_repeat"]] = "selective_repeat"

    rto_low: Duration | None = None
    """Timeout while few packets are outstanding. Source: IRN §4.1 (100 us). Default: "100us". Accepted: from 1us to 1s."""

    rto_high: Duration | None = None
    """Timeout while many packets are outstanding. Source: IRN §4.1 (320 us). Default: "320us". Accepted: from 1us to 1s."""

    few: int | None = None
    """Largest number of outstanding packets with which `rto_low` applies. Source: IRN §4.1 (3).

    Default: 3. Accepted: from 1 to 1000.
    """


RoceRecovery: TypeAlias = GoBackN | SelectiveRepeat | Mapping[str, Any] | Literal["go_back_n", "selective_repeat"]
"""Recovery from packet loss.

- `go_back_n`: Go-back-N: out-of-order packets are dropped, and the sender starts again from the missing one. Source: IBTA
  §9.7.5.1, §9.9.2.
- `selective_repeat`: Selective repeat: out-of-order packets are kept, and only the missing ones retransmitted. Every packet carries an
  RETH. Source: IRN §3.1.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoneRoceWindow(Table):
    """No limit besides the congestion control's."""

    kind: ClassVar[Literal["none"]] = "none"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BdpWindow(Table):
    """Bandwidth-delay product: line rate times the flow's base RTT. Source: IRN §3.2 (BDP-FC)."""

    kind: ClassVar[Literal["bdp"]] = "bdp"

    factor: float | None = None
    """Multiple of the bandwidth-delay product. Default: 1.0. Accepted: from 0.01 to 100."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FixedRoceWindow(Table):
    """Fixed number of bytes."""

    kind: ClassVar[Literal["fixed"]] = "fixed"

    size: Size
    """Payload bytes that may be outstanding; one packet always may. Must be given. Accepted: from 1B to 1073741824B."""


RoceWindow: TypeAlias = NoneRoceWindow | BdpWindow | FixedRoceWindow | Mapping[str, Any] | Literal["none", "bdp"]
"""Limit of a queue pair's outstanding bytes, in addition to congestion control.

- `none`: No limit.
- `bdp`: Bandwidth-delay product: line rate times the flow's base RTT. Source: IRN §3.2 (BDP-FC).
- `fixed`: Fixed number of bytes.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Roce(Table):
    """RoCEv2: each flow is a reliable queue pair that writes to the peer's memory (RDMA WRITE). Queue pairs exist
    beforehand: nothing on the wire opens or closes them.
    """

    kind: ClassVar[Literal["roce"]] = "roce"

    congestion_control: RoceControl | None = None
    """Congestion control of queue pairs. Default: { kind = "none" }."""

    mtu: int | None = None
    """Path MTU, payload bytes of a full packet: 256, 512, 1024, 2048 or 4096. Source: IBTA §5.2.1; Linux takes the
    largest that fits the interface: 1024 with 1500 B, 4096 with 9000 B (iboe_get_mtu).

    Default: 1024. Accepted: from 256 to 4096.
    """

    message: Size | None = None
    """Size of the messages into which each write of an application is cut, a multiple of `mtu`. If absent, one message
    of at most 2 GiB.

    Accepted: from 256B to 2147483648B.
    """

    recovery: RoceRecovery | None = None
    """Recovery from packet loss. Default: { kind = "go_back_n", ack_timeout = 14 }."""

    retry_count: int | None = None
    """Number of retransmissions of a packet after which the queue pair fails. Source: IBTA §9.9.2.1.1 (3 bits); 7 is
    what Linux' perftest sets.

    Default: 7. Accepted: from 0 to 7.
    """

    ack_every: int | None = None
    """Number of packets per acknowledgment that the sender requests, besides one at the end of each message. Selective
    repeat, `window` and congestion controls by window need 1.

    Default: 1. Accepted: from 1 to 4096.
    """

    window: RoceWindow | None = None
    """Limit of outstanding bytes, besides congestion control. Default: { kind = "none" }."""

    burst: Size | None = None
    """Burst of the rate limiter: payload bytes sent back to back before a pause; if absent, one packet. The rate holds
    over burst and pause together.

    Accepted: from 256B to 1048576B.
    """

    ack_class: int | None = None
    """Traffic class of acknowledgments; if absent, that of the flow. Accepted: from 0 to 7."""

    cnp_class: int | None = None
    """Traffic class of congestion notifications (CNP); if absent, that of the flow. Accepted: from 0 to 7."""


TransportConfig: TypeAlias = Tcp | Roce | Mapping[str, Any] | Literal["tcp", "roce"]
"""Transport of a flow.

- `tcp`: TCP.
- `roce`: RoCEv2.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListedFlow(Table):
    """A flow of the list."""

    id: str | None = None
    """Name of the flow in `after` and in the results."""

    src: str
    """Sending host. Must be given."""

    dst: str
    """Receiving host. Must be given."""

    size: Size
    """Size of the flow. Must be given. Accepted: at least 1B."""

    request: Size | None = None
    """Size of the request that the destination sends first. Default: "0B"."""

    start: Duration | None = None
    """Start, from the start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    after: Sequence[str] | None = None
    """Ids of flows, and names of entries, that must be complete before the flow starts. Default: []."""

    delay: Duration | None = None
    """Delay from the last of these completions to the start of the flow. Default: "0ps". Accepted: from 0ps to 864000s."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlowList(Table):
    """Flows listed one by one."""

    kind: ClassVar[Literal["flows"]] = "flows"

    name: str | None = None
    """Name in `after` and in results; if absent, the kind, numbered from the second entry of a kind on. The name seeds
    the entry's random streams: a named entry keeps them when others are added or moved.
    """

    transport: str | None = None
    """Name of the transport; if absent, the scenario's `transport`."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points. Default: 0. Accepted: from 0 to 7."""

    start: Instant | None = None
    """Start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    after: Sequence[str] | None = None
    """Names of entries, and ids of flows, that must be complete before the entry begins. An entry is complete when all
    its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Delay from the last of these completions to the start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    flows: Sequence[ListedFlow | Mapping[str, Any]]
    """Flows of the list. Must be given."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Incast(Table):
    """Incast: many senders answer one receiver, simultaneously or within `jitter`, once or repeatedly. Each round counts as
    a query.
    """

    kind: ClassVar[Literal["incast"]] = "incast"

    name: str | None = None
    """Name in `after` and in results; if absent, the kind, numbered from the second entry of a kind on. The name seeds
    the entry's random streams: a named entry keeps them when others are added or moved.
    """

    transport: str | None = None
    """Name of the transport; if absent, the scenario's `transport`."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points. Default: 0. Accepted: from 0 to 7."""

    start: Instant | None = None
    """Start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    after: Sequence[str] | None = None
    """Names of entries, and ids of flows, that must be complete before the entry begins. An entry is complete when all
    its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Delay from the last of these completions to the start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    receiver: str
    """Receiving host. Must be given."""

    senders: Sequence[str] | None = None
    """Sending hosts, without the receiver: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes.

    Default: ["all"].
    """

    count: int | None = None
    """Number of senders, drawn from these once; if absent, all of them. Accepted: at least 1."""

    flows_per_sender: int | None = None
    """Number of flows of each sender in a round. Default: 1. Accepted: at least 1."""

    size: Size | None = None
    """Bytes of each flow; give this or `total`. Accepted: at least 1B."""

    total: Size | None = None
    """Total bytes of a round, divided among its flows; of a remainder the first flows get a byte each. Accepted: at least 1B."""

    request: Size | None = None
    """Size of the request that the receiver sends first for each flow. Default: "0B"."""

    jitter: Duration | None = None
    """Upper bound of each flow's random delay after the start of its round (uniform).

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    repetitions: int | None = None
    """Number of rounds. Default: 1. Accepted: at least 1."""

    interval: Duration | None = None
    """Time from the start of a round to that of the next, complete or not; several rounds need this or `gap`.

    Accepted: from 1ps to 864000s.
    """

    gap: Duration | None = None
    """Time from the completion of a round's last flow to the start of the next round. Accepted: from 0ps to 864000s."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Aggregate(Table):
    """Result that an aggregator sends on after the last response."""

    size: Size
    """Size of the result. Must be given. Accepted: at least 1B."""

    to: Sequence[str] | None = None
    """Possible receivers of the result, one drawn at random, never the aggregator itself. Default: ["all"]."""

    delay: Duration | None = None
    """Delay from the last response to the result. Default: "0ps". Accepted: from 0ps to 864000s."""


LoadOf: TypeAlias = Literal["host_links", "core"]
"""Capacity of which `load` is a fraction. Load counts application bytes, as in DCTCP, pFabric and HPCC; headers come on
top (0.6 in full segments of 1460 B takes 0.632 of a link).

- `host_links`: Rates of the links of the entry's sources (of queries: clients), in one direction.
- `core`: Rates of all links from ToRs into the fabric, in one direction; only bytes between racks count.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class QueryTraffic(Table):
    """Queries and responses (partition–aggregate): clients ask at random instants, responders answer at once."""

    kind: ClassVar[Literal["query"]] = "query"

    name: str | None = None
    """Name in `after` and in results; if absent, the kind, numbered from the second entry of a kind on. The name seeds
    the entry's random streams: a named entry keeps them when others are added or moved.
    """

    transport: str | None = None
    """Name of the transport; if absent, the scenario's `transport`."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points. Default: 0. Accepted: from 0 to 7."""

    start: Instant | None = None
    """Start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    after: Sequence[str] | None = None
    """Names of entries, and ids of flows, that must be complete before the entry begins. An entry is complete when all
    its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Delay from the last of these completions to the start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    clients: Sequence[str] | None = None
    """Hosts that send queries: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes. Default: ["all"]."""

    responders: Sequence[str] | None = None
    """Hosts that answer, never the client itself: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these
    excludes.

    Default: ["all"].
    """

    fanout: int | None = None
    """Number of responders to a query, drawn anew for each; if absent, all of them. Accepted: at least 1."""

    size: Size | None = None
    """Size of each response; give this or `total`. Accepted: at least 1B."""

    total: Size | None = None
    """Total bytes of all responses to a query, divided among the responders. Accepted: at least 1B."""

    request: Size | None = None
    """Size of the request that the client sends first to each responder. Default: "0B"."""

    jitter: Duration | None = None
    """Upper bound of each response's random delay after the query (uniform). Default: "0ps". Accepted: from 0ps to 864000s."""

    aggregate: Aggregate | Mapping[str, Any] | None = None
    """Result that the client sends on after the last response; the query is complete when the result is."""

    load: float | None = None
    """Offered load as a fraction of the capacity `load_of`; give this or `per_second`. Accepted: from 0 to 100."""

    load_of: LoadOf | None = None
    """Capacity of which `load` is a fraction. Default: "host_links"."""

    per_second: float | None = None
    """Arrivals per second of the whole entry, divided equally among its hosts. Accepted: from 0 to 1000000000000."""

    stop: Instant | None = None
    """End of arrivals: none at or after this instant; if absent, the end of the run. Accepted: from 0ps to 864000s."""

    count: int | None = None
    """Largest number of arrivals; if absent, no limit. Accepted: at least 1."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class WebSearchSizes(Table):
    """A published distribution, which has no parameters."""

    kind: ClassVar[Literal["web-search"]] = "web-search"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataMiningSizes(Table):
    """A published distribution, which has no parameters."""

    kind: ClassVar[Literal["data-mining"]] = "data-mining"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnterpriseSizes(Table):
    """A published distribution, which has no parameters."""

    kind: ClassVar[Literal["enterprise"]] = "enterprise"


@dataclasses.dataclass(frozen=True, kw_only=True)
class HadoopSizes(Table):
    """A published distribution, which has no parameters."""

    kind: ClassVar[Literal["hadoop"]] = "hadoop"


@dataclasses.dataclass(frozen=True, kw_only=True)
class StorageSizes(Table):
    """A published distribution, which has no parameters."""

    kind: ClassVar[Literal["storage"]] = "storage"


Probability: TypeAlias = Literal["auto", "fraction", "percent"]
"""Notation of probabilities in a distribution file.

- `auto`: By the last line, which is 1 or 100; the choice is reported.
- `fraction`: Probabilities from 0 to 1.
- `percent`: Probabilities from 0 to 100.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SizeFile(Table):
    """Distribution from a file: one point a line, `SIZE PROBABILITY` or `SIZE BIN PROBABILITY`, separated by blanks or a
    comma; linear between points. `#` starts a comment, one heading line is allowed. Reads files of HPCC and Alibaba
    (percent), pFabric (three columns, packets: `unit = "1460B"`) and our own.
    """

    kind: ClassVar[Literal["file"]] = "file"

    path: str
    """Path of the file, relative to the scenario's folder. Must be given."""

    probability: Probability | None = None
    """Notation of probabilities in the file. Default: "auto"."""

    unit: Size | None = None
    """Unit of the size column. Default: "1B". Accepted: from 1B to 1MB."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FixedSize(Table):
    """Constant size."""

    kind: ClassVar[Literal["fixed"]] = "fixed"

    size: Size
    """Size of every flow. Must be given. Accepted: at least 1B."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class UniformSize(Table):
    """Uniform distribution between two sizes, both included."""

    kind: ClassVar[Literal["uniform"]] = "uniform"

    min: Size
    """Smallest size. Must be given. Accepted: at least 1B."""

    max: Size
    """Largest size. Must be given. Accepted: at least 1B."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExponentialSize(Table):
    """Exponential distribution, rounded to bytes, at least 1."""

    kind: ClassVar[Literal["exponential"]] = "exponential"

    mean: Size
    """Mean of the distribution. Must be given. Accepted: at least 1B."""


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
"""Distribution of flow sizes.

- `web-search`: Web search, DCTCP (SIGCOMM 2010); mean 1.71 MB.
- `data-mining`: Data mining, VL2 (SIGCOMM 2009) as used by CONGA (SIGCOMM 2014).
- `enterprise`: Enterprise, CONGA (SIGCOMM 2014).
- `hadoop`: Hadoop, Facebook (SIGCOMM 2015), as used by HPCC (SIGCOMM 2019).
- `storage`: Distributed storage, Alibaba 2019, published with HPCC (SIGCOMM 2019).
- `file`: Distribution from a file.
- `fixed`: All flows of equal size.
- `uniform`: Uniform distribution between two sizes.
- `exponential`: Exponential distribution.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PoissonTraffic(Table):
    """Poisson background traffic: each source starts flows at random instants, to destinations drawn uniformly."""

    kind: ClassVar[Literal["poisson"]] = "poisson"

    name: str | None = None
    """Name in `after` and in results; if absent, the kind, numbered from the second entry of a kind on. The name seeds
    the entry's random streams: a named entry keeps them when others are added or moved.
    """

    transport: str | None = None
    """Name of the transport; if absent, the scenario's `transport`."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points. Default: 0. Accepted: from 0 to 7."""

    start: Instant | None = None
    """Start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    after: Sequence[str] | None = None
    """Names of entries, and ids of flows, that must be complete before the entry begins. An entry is complete when all
    its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Delay from the last of these completions to the start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    sources: Sequence[str] | None = None
    """Sending hosts: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes. Default: ["all"]."""

    destinations: Sequence[str] | None = None
    """Receiving hosts: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes. Default: ["all"]."""

    sizes: Sizes
    """Distribution of flow sizes: a published one by name, a file, or a parametric one. Must be given."""

    intra_rack: float | None = None
    """Probability that the destination is in the source's rack; if absent, racks do not matter. Accepted: from 0 to 1."""

    request: Size | None = None
    """Size of the request that the destination sends first. Default: "0B"."""

    load: float | None = None
    """Offered load as a fraction of the capacity `load_of`; give this or `per_second`. Accepted: from 0 to 100."""

    load_of: LoadOf | None = None
    """Capacity of which `load` is a fraction. Default: "host_links"."""

    per_second: float | None = None
    """Arrivals per second of the whole entry, divided equally among its hosts. Accepted: from 0 to 1000000000000."""

    stop: Instant | None = None
    """End of arrivals: none at or after this instant; if absent, the end of the run. Accepted: from 0ps to 864000s."""

    count: int | None = None
    """Largest number of arrivals; if absent, no limit. Accepted: at least 1."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Permutation(Table):
    """Permutation: each host sends one flow and receives one, never its own; drawn uniformly among all such permutations."""

    kind: ClassVar[Literal["permutation"]] = "permutation"

    name: str | None = None
    """Name in `after` and in results; if absent, the kind, numbered from the second entry of a kind on. The name seeds
    the entry's random streams: a named entry keeps them when others are added or moved.
    """

    transport: str | None = None
    """Name of the transport; if absent, the scenario's `transport`."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points. Default: 0. Accepted: from 0 to 7."""

    start: Instant | None = None
    """Start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    after: Sequence[str] | None = None
    """Names of entries, and ids of flows, that must be complete before the entry begins. An entry is complete when all
    its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Delay from the last of these completions to the start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    hosts: Sequence[str] | None = None
    """Participating hosts: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes. Default: ["all"]."""

    size: Size
    """Size of each flow. Must be given. Accepted: at least 1B."""

    request: Size | None = None
    """Size of the request that the destination sends first. Default: "0B"."""

    jitter: Duration | None = None
    """Upper bound of each flow's random start delay (uniform). Default: "0ps". Accepted: from 0ps to 864000s."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AllToAll(Table):
    """All-to-all: each host sends a flow to each other host. In round r (from 1) host i sends to host i + r, modulo the
    number of hosts: each round is a permutation.
    """

    kind: ClassVar[Literal["all_to_all"]] = "all_to_all"

    name: str | None = None
    """Name in `after` and in results; if absent, the kind, numbered from the second entry of a kind on. The name seeds
    the entry's random streams: a named entry keeps them when others are added or moved.
    """

    transport: str | None = None
    """Name of the transport; if absent, the scenario's `transport`."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points. Default: 0. Accepted: from 0 to 7."""

    start: Instant | None = None
    """Start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    after: Sequence[str] | None = None
    """Names of entries, and ids of flows, that must be complete before the entry begins. An entry is complete when all
    its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Delay from the last of these completions to the start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    hosts: Sequence[str] | None = None
    """Participating hosts: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes. Default: ["all"]."""

    size: Size
    """Size of each flow. Must be given. Accepted: at least 1B."""

    request: Size | None = None
    """Size of the request that the destination sends first. Default: "0B"."""

    stagger: Duration | None = None
    """Time from the start of a round to that of the next; zero: all flows start together.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    jitter: Duration | None = None
    """Upper bound of each flow's random delay after the start of its round (uniform).

    Default: "0ps". Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotSpot(Table):
    """Hot spot: Poisson traffic of which a fraction goes to a few hot hosts."""

    kind: ClassVar[Literal["hot_spot"]] = "hot_spot"

    name: str | None = None
    """Name in `after` and in results; if absent, the kind, numbered from the second entry of a kind on. The name seeds
    the entry's random streams: a named entry keeps them when others are added or moved.
    """

    transport: str | None = None
    """Name of the transport; if absent, the scenario's `transport`."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points. Default: 0. Accepted: from 0 to 7."""

    start: Instant | None = None
    """Start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    after: Sequence[str] | None = None
    """Names of entries, and ids of flows, that must be complete before the entry begins. An entry is complete when all
    its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Delay from the last of these completions to the start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    sources: Sequence[str] | None = None
    """Sending hosts: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes. Default: ["all"]."""

    destinations: Sequence[str] | None = None
    """Receiving hosts of all other flows: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes.

    Default: ["all"].
    """

    hot: Sequence[str] | None = None
    """Hot hosts, in the form of `sources`; if absent, chosen at random."""

    hot_hosts: float | None = None
    """Number of hot hosts as a fraction of the destinations (one at least), if they are chosen at random. Source: RCM
    §4, fig. 8.

    Default: 0.125. Accepted: from 0 to 1.
    """

    fraction: float | None = None
    """Probability that a flow goes to a hot host; the others go uniformly to all destinations, hot ones included.
    Source: RCM §4, fig. 8.

    Default: 0.15. Accepted: from 0 to 1.
    """

    sizes: Sizes
    """Distribution of flow sizes: a published one by name, a file, or a parametric one. Must be given."""

    request: Size | None = None
    """Size of the request that the destination sends first. Default: "0B"."""

    load: float | None = None
    """Offered load as a fraction of the capacity `load_of`; give this or `per_second`. Accepted: from 0 to 100."""

    load_of: LoadOf | None = None
    """Capacity of which `load` is a fraction. Default: "host_links"."""

    per_second: float | None = None
    """Arrivals per second of the whole entry, divided equally among its hosts. Accepted: from 0 to 1000000000000."""

    stop: Instant | None = None
    """End of arrivals: none at or after this instant; if absent, the end of the run. Accepted: from 0ps to 864000s."""

    count: int | None = None
    """Largest number of arrivals; if absent, no limit. Accepted: at least 1."""


RankOrder: TypeAlias = Literal["listed", "by_rack", "shuffled"]
"""Assignment of hosts to ranks.

- `listed`: Order of `ranks`; within a pattern, of the topology.
- `by_rack`: Order of racks, within a rack as listed.
- `shuffled`: Random order, drawn by the seed.
"""


AllReduceAlgorithm: TypeAlias = Literal["ring", "tree", "double_tree"]
"""Algorithm of an all-reduce.

- `ring`: Ring: reduce-scatter, then all-gather, in 2(n − 1) steps of 1/n of the bytes. Source: PATARASUK §3.
- `tree`: Tree: up an in-order binary tree to its root, and down again; all bytes cross each edge twice.
- `double_tree`: Two trees with half of the bytes each; a rank with children in one is a leaf in the other. Source: SANDERS-TREES.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AllReduce(Table):
    """All-reduce: every rank gets the sum of all ranks' buffers."""

    kind: ClassVar[Literal["all_reduce"]] = "all_reduce"

    size: Size
    """Bytes of each rank's buffer, as nccl-tests counts them: all that is reduced, gathered, scattered or sent,
    the rank's own share included. Of a remainder the first parts get a byte each.

    Must be given. Accepted: at least 1B.
    """

    algorithm: AllReduceAlgorithm | None = None
    """Algorithm of the all-reduce. Default: "ring"."""

    message: Size | None = None
    """Largest message: a step's data is cut into messages of at most this size, each forwarded once it has arrived. If
    absent, one per step.

    Accepted: at least 64B.
    """

    channels: int | None = None
    """Parallel connections from rank to rank, with equal shares of the bytes. Default: 1. Accepted: from 1 to 64."""

    group: int | None = None
    """Number of ranks in a group, which performs the operation by itself. If absent, all ranks. Accepted: at least 2."""

    stride: int | None = None
    """Distance of consecutive ranks of a group; 1: groups of neighbours. Default: 1. Accepted: at least 1."""

    compute: Duration | None = None
    """Computation time of each rank before it enters the operation. Default: "0ps". Accepted: from 0ps to 864000s."""

    jitter: Duration | None = None
    """Upper bound of an extra computation time, uniform in [0, `jitter`), drawn for each rank and iteration.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    work: Duration | None = None
    """Processing time of each received message (reduction or copy) before it counts and is forwarded; one after
    the other on a connection.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class AllGather(Table):
    """All-gather around a ring: every rank gets the shares of all ranks."""

    kind: ClassVar[Literal["all_gather"]] = "all_gather"

    size: Size
    """Bytes of each rank's buffer, as nccl-tests counts them: all that is reduced, gathered, scattered or sent,
    the rank's own share included. Of a remainder the first parts get a byte each.

    Must be given. Accepted: at least 1B.
    """

    message: Size | None = None
    """Largest message: a step's data is cut into messages of at most this size, each forwarded once it has arrived. If
    absent, one per step.

    Accepted: at least 64B.
    """

    channels: int | None = None
    """Parallel connections from rank to rank, with equal shares of the bytes. Default: 1. Accepted: from 1 to 64."""

    group: int | None = None
    """Number of ranks in a group, which performs the operation by itself. If absent, all ranks. Accepted: at least 2."""

    stride: int | None = None
    """Distance of consecutive ranks of a group; 1: groups of neighbours. Default: 1. Accepted: at least 1."""

    compute: Duration | None = None
    """Computation time of each rank before it enters the operation. Default: "0ps". Accepted: from 0ps to 864000s."""

    jitter: Duration | None = None
    """Upper bound of an extra computation time, uniform in [0, `jitter`), drawn for each rank and iteration.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    work: Duration | None = None
    """Processing time of each received message (reduction or copy) before it counts and is forwarded; one after
    the other on a connection.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReduceScatter(Table):
    """Reduce-scatter around a ring: every rank gets its share of the sum of all ranks' buffers."""

    kind: ClassVar[Literal["reduce_scatter"]] = "reduce_scatter"

    size: Size
    """Bytes of each rank's buffer, as nccl-tests counts them: all that is reduced, gathered, scattered or sent,
    the rank's own share included. Of a remainder the first parts get a byte each.

    Must be given. Accepted: at least 1B.
    """

    message: Size | None = None
    """Largest message: a step's data is cut into messages of at most this size, each forwarded once it has arrived. If
    absent, one per step.

    Accepted: at least 64B.
    """

    channels: int | None = None
    """Parallel connections from rank to rank, with equal shares of the bytes. Default: 1. Accepted: from 1 to 64."""

    group: int | None = None
    """Number of ranks in a group, which performs the operation by itself. If absent, all ranks. Accepted: at least 2."""

    stride: int | None = None
    """Distance of consecutive ranks of a group; 1: groups of neighbours. Default: 1. Accepted: at least 1."""

    compute: Duration | None = None
    """Computation time of each rank before it enters the operation. Default: "0ps". Accepted: from 0ps to 864000s."""

    jitter: Duration | None = None
    """Upper bound of an extra computation time, uniform in [0, `jitter`), drawn for each rank and iteration.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    work: Duration | None = None
    """Processing time of each received message (reduction or copy) before it counts and is forwarded; one after
    the other on a connection.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exchange(Table):
    """All-to-all: every rank sends each other rank its share; in step i to rank + i, modulo the ranks of the group."""

    kind: ClassVar[Literal["all_to_all"]] = "all_to_all"

    size: Size
    """Bytes of each rank's buffer, as nccl-tests counts them: all that is reduced, gathered, scattered or sent,
    the rank's own share included. Of a remainder the first parts get a byte each.

    Must be given. Accepted: at least 1B.
    """

    staggered: bool | None = None
    """Staggered steps: a step begins when the data sent in the previous step is acknowledged and the data received in it
    has arrived.

    Default: false.
    """

    concurrent: int | None = None
    """Largest number of peers at once: a further step begins when the data sent in a current one is acknowledged. If
    absent, all at once.

    Accepted: at least 1.
    """

    channels: int | None = None
    """Parallel connections from rank to rank, with equal shares of the bytes. Default: 1. Accepted: from 1 to 64."""

    group: int | None = None
    """Number of ranks in a group, which performs the operation by itself. If absent, all ranks. Accepted: at least 2."""

    stride: int | None = None
    """Distance of consecutive ranks of a group; 1: groups of neighbours. Default: 1. Accepted: at least 1."""

    compute: Duration | None = None
    """Computation time of each rank before it enters the operation. Default: "0ps". Accepted: from 0ps to 864000s."""

    jitter: Duration | None = None
    """Upper bound of an extra computation time, uniform in [0, `jitter`), drawn for each rank and iteration.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """

    work: Duration | None = None
    """Processing time of each received message (reduction or copy) before it counts and is forwarded; one after
    the other on a connection.

    Default: "0ps". Accepted: from 0ps to 864000s.
    """


Operation: TypeAlias = AllReduce | AllGather | ReduceScatter | Exchange | Mapping[str, Any]
"""A collective operation.

- `all_reduce`: All-reduce: every rank gets the sum of all ranks' buffers.
- `all_gather`: All-gather around a ring: every rank gets the shares of all ranks.
- `reduce_scatter`: Reduce-scatter around a ring: every rank gets its share of the sum of all ranks' buffers.
- `all_to_all`: All-to-all: every rank sends each other rank its share; in step i to rank + i, modulo the ranks of the group.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Collective(Table):
    """Training job: ranks perform collective operations in a loop, over connections that stay open. A rank enters the next
    operation when it has itself finished the previous one.
    """

    kind: ClassVar[Literal["collective"]] = "collective"

    name: str | None = None
    """Name in `after` and in results; if absent, the kind, numbered from the second entry of a kind on. The name seeds
    the entry's random streams: a named entry keeps them when others are added or moved.
    """

    transport: str | None = None
    """Name of the transport; if absent, the scenario's `transport`."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points. Default: 0. Accepted: from 0 to 7."""

    start: Instant | None = None
    """Start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    after: Sequence[str] | None = None
    """Names of entries, and ids of flows, that must be complete before the entry begins. An entry is complete when all
    its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Delay from the last of these completions to the start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    ranks: Sequence[str] | None = None
    """Hosts of the job, each once, one rank each: `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes.

    Default: ["all"].
    """

    order: RankOrder | None = None
    """Assignment of the hosts to ranks. Default: "listed"."""

    operations: Sequence[Operation]
    """Operations of each iteration, in sequence. Must be given."""

    iterations: int | None = None
    """Number of iterations. Default: 1. Accepted: from 1 to 10000000."""


RateCounts: TypeAlias = Literal["payload", "wire"]
"""Bytes that a datagram source's rate counts.

- `payload`: Application bytes only. Source: ns-3 `OnOffApplication::DataRate`.
- `wire`: Every byte on the wire: headers, preamble and gap, too, so that the link's rate fills the link.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cbr(Table):
    """Datagrams at a constant rate, without any congestion control."""

    kind: ClassVar[Literal["cbr"]] = "cbr"

    name: str | None = None
    """Name in `after` and in results; if absent, the kind, numbered from the second entry of a kind on. The name seeds
    the entry's random streams: a named entry keeps them when others are added or moved.
    """

    transport: str | None = None
    """Name of the transport; if absent, the scenario's `transport`."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points. Default: 0. Accepted: from 0 to 7."""

    start: Instant | None = None
    """Start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    after: Sequence[str] | None = None
    """Names of entries, and ids of flows, that must be complete before the entry begins. An entry is complete when all
    its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Delay from the last of these completions to the start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    src: str
    """Sending host. Must be given."""

    dst: str
    """Receiving host. Must be given."""

    rate: BitRate
    """Sending rate. Must be given. Accepted: at least 1bps."""

    counts: RateCounts | None = None
    """Bytes that `rate` counts. Default: "payload"."""

    packet: Size | None = None
    """Application bytes of a datagram. Source: RFC 791 (20 B of header) and RFC 768 (8 B), out of 1500 B; over IPv6
    1452B fill a frame (RFC 8200, 40 B).

    Default: "1472B". Accepted: from 1B to 65507B.
    """

    size: Size | None = None
    """Application bytes in total; if absent, the source sends until `stop`. Accepted: at least 1B."""

    stop: Instant | None = None
    """End of the source: no datagram leaves at or after this instant; if absent, the end of the run.

    Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnOff(Table):
    """Datagrams at a constant rate during on periods, none during off periods; the first period is on."""

    kind: ClassVar[Literal["on_off"]] = "on_off"

    name: str | None = None
    """Name in `after` and in results; if absent, the kind, numbered from the second entry of a kind on. The name seeds
    the entry's random streams: a named entry keeps them when others are added or moved.
    """

    transport: str | None = None
    """Name of the transport; if absent, the scenario's `transport`."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points. Default: 0. Accepted: from 0 to 7."""

    start: Instant | None = None
    """Start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    after: Sequence[str] | None = None
    """Names of entries, and ids of flows, that must be complete before the entry begins. An entry is complete when all
    its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Delay from the last of these completions to the start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    src: str
    """Sending host. Must be given."""

    dst: str
    """Receiving host. Must be given."""

    rate: BitRate
    """Rate during on periods; the mean rate is rate · on / (on + off). Must be given. Accepted: at least 1bps."""

    counts: RateCounts | None = None
    """Bytes that `rate` counts. Default: "payload"."""

    on: Duration
    """Length of on periods, or their mean. Must be given. Accepted: from 100ns to 864000s."""

    off: Duration
    """Length of off periods, or their mean. Must be given. Accepted: from 100ns to 864000s."""

    exponential: bool | None = None
    """Exponentially distributed periods; if false, constant ones. Default: false."""

    packet: Size | None = None
    """Application bytes of a datagram. Source: RFC 791 (20 B of header) and RFC 768 (8 B), out of 1500 B; over IPv6
    1452B fill a frame (RFC 8200, 40 B).

    Default: "1472B". Accepted: from 1B to 65507B.
    """

    size: Size | None = None
    """Application bytes in total; if absent, the source sends until `stop`. Accepted: at least 1B."""

    stop: Instant | None = None
    """End of the source: no datagram leaves at or after this instant; if absent, the end of the run.

    Accepted: from 0ps to 864000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class CsvFlows(Table):
    """Flows from comma-separated values with a heading: `src`, `dst`, `size`, `start`, and optionally `id`, `request`,
    `class`, `after`, `delay`, in any order. Sizes and times carry their unit in each cell (`10KB`, `5us`) or once in the
    heading (`size_bytes`, `start_us`, `start (us)`, `size [KB]`). `after` holds flow ids or entry names, separated by
    `;`.
    """

    kind: ClassVar[Literal["csv"]] = "csv"

    path: str
    """Path of the file, relative to the scenario's folder. Must be given."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HpccFlows(Table):
    """Flows from HPCC's `flow.txt`: the number of flows N, then N lines `src dst pg dport size start`, the start in
    seconds. The rest is ignored, as by HPCC. Hosts are given by name, or by position where no name is a number. `dport`
    is ignored: hosts draw their ports. Source: HPCC (the simulator published with it, `simulation/mix/flow.txt`, and
    `traffic_gen/traffic_gen.py`, which starts at 2 s).
    """

    kind: ClassVar[Literal["hpcc_flow"]] = "hpcc_flow"

    path: str
    """Path of the file, relative to the scenario's folder. Must be given."""

    origin: Instant | None = None
    """Time in the file at which the entry starts (2 s in files made by `traffic_gen.py`). Default: "0ps"."""

    pg_as_class: bool | None = None
    """Traffic class: true takes the file's priority group `pg`, false the entry's class. Default: false."""


TimeUnit: TypeAlias = Literal["ps", "ns", "us", "ms", "s"]
"""Unit of start times in a connection matrix.

- `ps`: Picoseconds.
- `ns`: Nanoseconds.
- `us`: Microseconds.
- `ms`: Milliseconds.
- `s`: Seconds.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HtsimMatrix(Table):
    """Flows from htsim's connection matrix: `Nodes N`, `Connections M`, `Triggers T`, then lines `src->dst [id I] start
    T|trigger X size S [send_done_trigger X] [recv_done_trigger X] [prio P]` and `trigger id X oneshot|multishot|barrier
    [count C]`. Triggers become dependencies: `oneshot` releases its flows on its one activation, `barrier` on the last
    of C, `multishot` one flow per activation, in file order. Source: csg-htsim, `sim/datacenter/connection_matrix.cpp`
    and `sim/trigger.cpp`. Deviation: "send done" and "receive done" are both the completion of the flow; `prio` is
    ignored, and said so; size 0 (a flow without end) and `failure` lines are refused.
    """

    kind: ClassVar[Literal["htsim_cm"]] = "htsim_cm"

    path: str
    """Path of the file, relative to the scenario's folder. Must be given."""

    time_unit: TimeUnit
    """Unit of start times in the file. No default: htsim reads picoseconds, but writes microseconds. Must be given."""


FlowFile: TypeAlias = CsvFlows | HpccFlows | HtsimMatrix | Mapping[str, Any]
"""Format and path of a file of flows.

- `csv`: Comma-separated values with a heading.
- `hpcc_flow`: Flow list of HPCC, `flow.txt`.
- `htsim_cm`: Connection matrix of htsim, `.cm`.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportedFlows(Table):
    """Flows read from a file."""

    kind: ClassVar[Literal["file"]] = "file"

    name: str | None = None
    """Name in `after` and in results; if absent, the kind, numbered from the second entry of a kind on. The name seeds
    the entry's random streams: a named entry keeps them when others are added or moved.
    """

    transport: str | None = None
    """Name of the transport; if absent, the scenario's `transport`."""

    class_: int | None = None
    """Traffic class. Source: IEEE 802.1Q, eight priority code points. Default: 0. Accepted: from 0 to 7."""

    start: Instant | None = None
    """Start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    after: Sequence[str] | None = None
    """Names of entries, and ids of flows, that must be complete before the entry begins. An entry is complete when all
    its flows are.

    Default: [].
    """

    delay: Duration | None = None
    """Delay from the last of these completions to the start of the entry. Default: "0ps". Accepted: from 0ps to 864000s."""

    format: FlowFile
    """Format and path of the file. Must be given."""


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
"""One source of traffic: its flows, their time, and their transport.

- `flows`: Flows listed one by one.
- `incast`: Incast: many senders answer one receiver, simultaneously or within `jitter`, once or repeatedly. Each round
  counts as a query.
- `query`: Queries and responses (partition–aggregate): clients ask at random instants, responders answer at once.
- `poisson`: Poisson background traffic: each source starts flows at random instants, to destinations drawn uniformly.
- `permutation`: Permutation: each host sends one flow and receives one, never its own; drawn uniformly among all such
  permutations.
- `all_to_all`: All-to-all: each host sends a flow to each other host. In round r (from 1) host i sends to host i + r, modulo the
  number of hosts: each round is a permutation.
- `hot_spot`: Hot spot: Poisson traffic of which a fraction goes to a few hot hosts.
- `collective`: Collective operations of a training job: all-reduce, all-gather, reduce-scatter, all-to-all.
- `cbr`: Datagrams at a constant rate, without any congestion control.
- `on_off`: Datagrams at a constant rate during on periods, none during off periods; the first period is on.
- `file`: Flows from a file.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Down(Table):
    """Links that are down from `start` to `end`."""

    kind: ClassVar[Literal["down"]] = "down"

    links: Sequence[str]
    """Links, by name of a port (`leaf0->spine1`, `h3->leaf0`), `*` stands for anything. Must be given."""

    start: Instant | None = None
    """Start of the event. Default: "0ps". Accepted: from 0ps to 864000s."""

    end: Instant | None = None
    """End of the event, after which the links work as before; if absent, the end of the run. Accepted: from 0ps to 864000s."""

    every: Duration | None = None
    """Period of a flap: after each, the links fail again for as long as the first time. If absent, they fail once.

    Accepted: from 1ns to 1000s.
    """

    times: int | None = None
    """Number of failures of a flap. Accepted: from 2 to 1000000."""

    detect: Duration | None = None
    """Detection time of these links; if absent, `failover.detect`. Accepted: from 0ps to 1000s."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class BitErrors(Table):
    """Links with bit errors from `start` to `end`: a frame arrives intact with probability (1 − rate)^bits; otherwise it is
    discarded, as its check sequence is wrong. Source: IEEE 802.3 §3.4 (the receiver discards it).
    """

    kind: ClassVar[Literal["bit_errors"]] = "bit_errors"

    links: Sequence[str]
    """Links, by name of a port (`leaf0->spine1`, `h3->leaf0`), `*` stands for anything. Must be given."""

    start: Instant | None = None
    """Start of the event. Default: "0ps". Accepted: from 0ps to 864000s."""

    end: Instant | None = None
    """End of the event, after which the links work as before; if absent, the end of the run. Accepted: from 0ps to 864000s."""

    rate: float
    """Bit error rate: probability that a bit is wrong, each by itself. Source: IEEE 802.3 allows 10⁻¹² at most on links
    of 10 Gb/s (§52.1).

    Must be given. Accepted: above 0, at most 0.01.
    """


LinkEvent: TypeAlias = Down | BitErrors | Mapping[str, Any]
"""Event of links: failure, flap, or bit errors. See docs/failures.md.

- `down`: Links are down in both directions, whichever is named: a cut cable.
- `bit_errors`: Frames over the links have bit errors, in the direction that is named: a dirty connector.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Failover(Table):
    """Reaction to links that fail and come back. See docs/failures.md."""

    detect: Duration | None = None
    """Detection time: from a link's failure or recovery until its ends know, each by itself; a shorter change is not
    noticed. The default is ours: hardware takes microseconds, interrupts and polls milliseconds.

    Default: "100us". Accepted: from 0ps to 1000s.
    """

    converge: Duration | None = None
    """Convergence time: from detection until all switches forward by shortest paths over the remaining links. Source:
    Quagga (200 ms, the initial delay in the example of `timers throttle spf`).

    Default: "200ms". Accepted: from 0ps to 1000s.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class AllKeep(Table):
    """All records, without any setting."""

    kind: ClassVar[Literal["all"]] = "all"


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeepLast(Table):
    """Latest records of each watched port, in a ring that is written when the run ends."""

    kind: ClassVar[Literal["last"]] = "last"

    records: int | None = None
    """Number of records in a port's ring. Default: 65536. Accepted: from 1 to 100000000."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeepAround(Table):
    """Records around a trigger of each watched port: a packet finds more than `above` in the queue, where the previous one
    did not.
    """

    kind: ClassVar[Literal["around"]] = "around"

    above: Size
    """Queue length that fires the trigger. Must be given."""

    before: Duration | None = None
    """Time before the trigger of which records are kept. Default: "500us". Accepted: from 0ps to 1000s."""

    after: Duration | None = None
    """Time after the trigger of which records are kept. Default: "500us". Accepted: from 0ps to 1000s."""

    records: int | None = None
    """Largest number of records that a port remembers before the trigger. Default: 65536. Accepted: from 1 to 100000000."""


Keep: TypeAlias = AllKeep | KeepLast | KeepAround | Mapping[str, Any] | Literal["all", "last"]
"""Rule that selects the records of watched ports to be kept.

- `all`: All records.
- `last`: Latest records of each watched port, in a ring that is written when the run ends.
- `around`: Records around a trigger of each watched port: a packet finds more than `above` in the queue, where the previous
  one did not.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Registers(Table):
    """Registers in which watched ports keep time and queue length. Source: S-ECN §II-C."""

    tick: Duration | None = None
    """Step of the time register, which wraps around after 2^32 ticks (32 bits). Default: "800ns". Accepted: from 1ns to 1ms."""

    unit: Size | None = None
    """Step of the queue register: queues of 65535 units and more read alike (16 bits).

    Default: "8B". Accepted: from 1B to 65536B.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class CaptureFrames(Table):
    """Capture of frames at NICs, in both directions, and on links behind switches, byte for byte. Source: pcapng."""

    hosts: Sequence[str] | None = None
    """Hosts whose NICs are captured, by name, `*` stands for anything. Default: []."""

    links: Sequence[str] | None = None
    """Switch ports whose links are captured, as frames leave, by name, `*` stands for anything. Headers that switches
    insert for each other are visible there.

    Default: [].
    """

    snap: Size | None = None
    """Largest number of bytes kept of a frame; if absent, all. 94 B hold all headers, with IPv6 114 B; stamps are at
    the end of the frame.

    Accepted: from 64B to 65535B.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Telemetry(Table):
    """Telemetry: tables in the result folder besides flows and totals. See docs/results.md."""

    sample: DurationOrOff | None = None
    """Period of samples in `ports.parquet`; "off": no such table. Default: "100us"."""

    queues: Sequence[str] | None = None
    """Switch ports whose packets are recorded one by one in `queues.parquet`, by name, `*` stands for anything. Default: []."""

    hosts: Sequence[str] | None = None
    """Followed flows, for `fanin explain`: their senders' state in `hosts.parquet`, their packets in `segments.parquet`
    and `hops.parquet`. Given by traffic entry, host (all flows from or to it), or a flow's id or number; `*` stands
    for anything. See docs/explain.md.

    Default: [].
    """

    messages: Sequence[str] | None = None
    """Flows of which only messages are recorded, in `messages.parquet`: when each was written, sent, delivered and
    acknowledged. Given as in `hosts`, whose flows' messages are recorded in any case.

    Default: [].
    """

    keep: Keep | None = None
    """Records of `queues` that are kept. Default: { kind = "all" }."""

    registers: Registers | Mapping[str, Any] | None = None
    """Stamps, as a real switch would report queues: watched ports write one into each packet, receivers read it into
    `stamps.parquet`. If present, full segments carry 8 B less, other frames are 8 B longer. See docs/telemetry.md.
    """

    capture: CaptureFrames | Mapping[str, Any] | None = None
    """Capture in `packets.pcapng`: frames as tcpdump would record them at NICs, and a tap behind switch ports. If
    absent, none. See docs/wire.md.
    """

    drops: bool | None = None
    """Table of dropped packets, `drops.parquet`. Default: true."""


Ties: TypeAlias = Literal["drawn", "by_link"]
"""Order of packets that arrive in the same picosecond: at a full drop-tail port the first gets the free space.

- `drawn`: Random order, drawn for each instant from seed, time and link: no host is favoured, and unrelated flows change
  nothing.
- `by_link`: Order of link ids: of hosts in step, the first in the topology always wins.
"""


PortModel: TypeAlias = Literal["auto", "explicit"]
"""Event model of output ports. Results are the same, bit by bit.

- `auto`: One event per packet and hop; departures are events only while a port has to choose between packets.
- `explicit`: Departures as events at every port: slower, for comparison.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Engine(Table):
    """Execution of the simulation. Only `ties` affects results; the rest is speed, and limits at which a run gives up."""

    ties: Ties | None = None
    """Order of packets that arrive in the same picosecond. Default: "drawn"."""

    ports: PortModel | None = None
    """Event model of output ports. Default: "auto"."""

    threads: int | None = None
    """Threads of the run, among which the network is divided; 0: as many as pay on this machine. A run whose results
    could depend on it stays on one, and the manifest says why. Not part of the scenario's hash. See
    docs/parallel.md.

    Default: 1. Accepted: from 0 to 64.
    """

    max_events: int | None = None
    """Event limit: the run ends after this many events, marked partial. Accepted: at least 1."""

    stall_events: int | None = None
    """Stall limit: the run counts as hung when this many events pass while simulated time stands still.

    Default: 200000000. Accepted: at least 1000.
    """

    max_flows: int | None = None
    """Flow limit: a scenario with more flows is refused, as each is a row in the results.

    Default: 50000000. Accepted: at least 1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScenarioDoc(Table):
    """A scenario: every setting that a run depends on."""

    name: str | None = None
    """Name of the scenario, shown in results. Default: "scenario"."""

    description: str | None = None
    """Purpose of the scenario, in free text."""

    seed: int | None = None
    """Seed of all random numbers; equal seeds give equal runs. Default: 1. Accepted: from 0 to 9223372036854775807."""

    duration: Duration | None = None
    """Time at which the run stops. If absent, it stops when all flows are complete and their senders know it, including
    the timers that this takes.

    Accepted: from 1ps to 864000s.
    """

    topology: TopologyConfig
    """Topology: hosts, switches and links. Must be given."""

    framing: Framing | Mapping[str, Any] | None = None
    """Framing: the bytes that link layer and IP add to each packet."""

    switch: Switch | Mapping[str, Any] | None = None
    """Settings of all switches."""

    host: Host | Mapping[str, Any] | None = None
    """Settings of all hosts."""

    transport: TransportConfig | None = None
    """Default transport, for traffic that names none; called "default" in results.

    Default: { kind = "tcp", profile = "rfc", congestion_control = { kind = "newreno" }, handshake = true, mtu = 1500, initial_window_rule = "rfc5681", window_rules = "rfc", slow_start = "standard", slow_start_limit = 1, cwnd_validation = true, idle_restart = "rfc5681", sack = true, loss_detection = "rfc6675", tail_loss_probe = true, undo = true, timer_slack = "0ps", dup_thresh = 3, limited_transmit = true, prr = false, rto_initial = "1s", rto_min = "1s", rto_floor = "rto", rto_max = "60s", clock_granularity = "1ms", timer_ticks = false, backoff_reset = "sample", rtt_sampling = "timed_segment", spurious_rto = "none", max_retries = 15, syn_retries = 8, time_wait = "240s", timestamps = true, timestamp_tick = "1ms", ack_every = 2, delayed_acks = "fixed", delayed_ack_timeout = "200ms", delayed_ack_max = "200ms", quick_acks = 0, sack_compression = { kind = "none" }, dsack = false, paws = false, receive_window = { kind = "fixed", size = "16777216B" }, push = { kind = "last" }, ecn = false, ecn_echo = "classic", ect_on = "new_data", drop_notification = false, trim_nack = false, drop_resend = "at_once", pacing = { kind = "none" }, tso = false, tso_max = "65536B", tso_rtt_log = 9, small_queues = false }.
    """

    transports: Mapping[str, TransportConfig] | None = None
    """Further transports by name, for `[[traffic]]` tables to refer to."""

    traffic: Sequence[Entry]
    """Traffic: the flows, datagram streams and queries of the applications. Must be given."""

    events: Sequence[LinkEvent] | None = None
    """Events of links during the run: failures, flaps, bit errors. Default: []."""

    failover: Failover | Mapping[str, Any] | None = None
    """Failover: how ends of links and switches react to failures."""

    telemetry: Telemetry | Mapping[str, Any] | None = None
    """Telemetry: the data that is recorded."""

    engine: Engine | Mapping[str, Any] | None = None
    """Engine: execution of the simulation."""


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
    "OutsideParams",
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
    "Detours",
    "Neighbour",
    "Hops",
    "RimmParams",
    "Saturating",
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
    "LocalFlag",
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
    "DctcpArithmetic",
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
    "Down",
    "BitErrors",
    "LinkEvent",
    "Failover",
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
