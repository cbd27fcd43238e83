"""Make jobs for the htsim peer from Fanin's own workloads, run them, and measure them.

    python3 jobs.py make W2-128 --scale 0.1 > w2.job
    python3 jobs.py measure W1 --scale 0.1 [--repeat 3]

A job has the hosts, links, pairs, sizes, threshold and buffers of `fanin bench`, and the paths that each flow's data and
acknowledgments take there: a flow sends one byte, and the records of the ports that it passes say where it went. Needs the
`fanin` package.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
PEER = HERE / "build" / "peer"
WORKLOADS = ("W1", "W2-128", "W2-432", "W2-1024", "W2-3456", "W2-8192", "W3")

BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
HEADERS = {"ip_tcp": 40, "timestamps": 12, "ip_udp": 28}


def _ns3_jobs() -> ModuleType:
    """The jobs of the ns-3 peer: one format, one way to run and measure them."""
    spec = importlib.util.spec_from_file_location("ns3_jobs", HERE.parent / "ns3" / "jobs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


ns3 = _ns3_jobs()
PeerError = ns3.PeerError


def size_bytes(text: str) -> int:
    """Bytes of a size as resolved scenarios write it."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?B)", text)
    if found is None:
        raise ValueError(f"size is {text!r}: want a number of {', '.join(BYTES)}")
    return round(float(found[1]) * BYTES[found[2]])


def split_paths(src: str, dst: str, ports: Iterable[str]) -> tuple[list[str], list[str]]:
    """The nodes from ``src`` to ``dst`` and those back, by the switch ports that a byte and its acknowledgment passed, in order."""
    out, back = [src], [dst]
    current = out
    for port in ports:
        at, _, to = port.partition("->")
        if len(current) > 1 and current[-1] != at:
            raise ValueError(f"{src} to {dst}: a packet that was sent to {current[-1]} is next at {at}")
        current += [at, to] if len(current) == 1 else [to]
        current = back if to == dst else current
    if out[-1] != dst or back[-1] not in (src, dst):
        raise ValueError(f"{src} to {dst}: the path ends at {out[-1]}, the one back at {back[-1]}")
    return out, back if len(back) > 1 else []


def paths(scenario: dict[str, Any]) -> list[tuple[str, str, list[str], list[str]]]:
    """Source, destination and both paths of each flow of a workload, in order of their numbers."""
    import fanin

    (traffic,) = scenario["traffic"]
    first = traffic["packet"] if traffic["kind"] == "cbr" else "1B"
    tiny = {**scenario, "traffic": [{**traffic, "size": first}], "telemetry": {"sample": "off", "drops": False, "queues": ["*"]}}
    result = fanin.run(tiny, progress=False)
    passed: dict[int, list[str]] = {}
    for flow, port in result.queues.sort("time_ps", maintain_order=True).select("flow", "port").iter_rows():
        passed.setdefault(flow, []).append(port)
    flows = result.flows.sort("flow").select("flow", "src", "dst").iter_rows()
    return [(src, dst, *split_paths(src, dst, passed[flow])) for flow, src, dst in flows]


def workload(name: str, scale: float) -> str:
    """The job of a workload of `fanin bench`."""
    from fanin import _core

    if name not in WORKLOADS:
        raise ValueError(f"workload is {name!r}: want {', '.join(WORKLOADS)}")
    scenario = _core.bench_scenario(name, scale)
    facts = _core.facts(json.dumps(scenario), "json", ".")
    names = [node["name"] for node in facts["nodes"]]
    nodes = [ns3.Node(node["name"], node["layer"] is None) for node in facts["nodes"]]
    links = [
        ns3.Link(names[link["from"]], names[link["to"]], link["rate_bps"], link["delay_ps"])
        for link in facts["links"]
        if link["from"] < link["to"]
    ]

    (asked,) = facts["traffic"]
    (traffic,) = scenario["traffic"]
    framing, transport, switch = scenario["framing"], scenario["transport"], scenario["switch"]
    header = size_bytes(framing["header"])
    options = {
        "transport": "udp-cbr" if traffic["kind"] == "cbr" else transport["congestion_control"]["kind"],
        "wire_overhead": header + size_bytes(framing["gap"]),
        "queue_packets": size_bytes(switch["buffer"]["per_port"]) // (transport["mtu"] + header),
    }
    flows: list[Any] = []
    if traffic["kind"] == "cbr":
        ((src, dst, path, _),) = paths(scenario)
        ip_bytes = size_bytes(traffic["packet"]) + HEADERS["ip_udp"]
        if (traffic["counts"], traffic["rate"]) != ("wire", scenario["topology"]["link"]["rate"]):
            raise ValueError(f"{name}: want packets at the rate of the link")
        flows.append(ns3.Cbr(0, src, dst, links[0].rate, ip_bytes, round(asked["packets"])))
        pins = [f"path 0 {' '.join(path)}"]
    else:
        options["timestamps"] = transport["timestamps"]
        options["segment_bytes"] = transport["mtu"] - HEADERS["ip_tcp"] - transport["timestamps"] * HEADERS["timestamps"]
        options["ecn_k_packets"] = int(switch["marking"]["k"].removesuffix(" packets"))
        each = round(asked["bytes"] / asked["flows"])
        flows += [ns3.Flow(i, src, dst, each, 0, out, back) for i, (src, dst, out, back) in enumerate(paths(scenario))]
        pins = []
    return str(ns3.job(nodes, links, flows, options)) + "".join(f"{pin}\n" for pin in pins)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["make", "measure"])
    parser.add_argument("workload", help=", ".join(WORKLOADS))
    parser.add_argument("--scale", type=float, default=1.0, help="of bytes per flow, or of packets [1.0]")
    parser.add_argument("--repeat", type=int, default=1, help="timed runs [1]")
    parser.add_argument("--peer", default=os.environ.get("HTSIM_PEER", str(PEER)), help="the binary")
    args = parser.parse_args(argv)
    try:
        text = workload(args.workload, args.scale)
        if args.action == "make":
            sys.stdout.write(text)
        else:
            if not Path(args.peer).exists():
                raise PeerError(f"{args.peer} is not built: make -C {HERE} HTSIM=/path/to/csg-htsim")
            print(json.dumps(ns3.measure(text, args.repeat, args.peer), indent=1))
    except (PeerError, ValueError) as error:
        print(f"jobs.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
