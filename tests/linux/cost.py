"""What the BPF programs of dataplane/linux cost: CPU time of each run, as the kernel counts it, at a port that is flooded.

python tests/linux/cost.py      root, seconds; the table of docs/dev/linux-dataplane-measured.md
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import bpf
from bed import command, unshare, within

__all__ = ["Port", "measure", "port", "table"]


@dataclass
class Port:
    """A device `port` with HTB and a bfifo, in a namespace of its own; its other end `far` in another."""

    ns: int
    peer: int
    burst: int

    def shape(self, rate: int) -> None:
        """Give it a rate [b/s]."""
        burst = str(self.burst)
        htb = ("rate", f"{rate}bit", "ceil", f"{rate}bit", "burst", burst, "cburst", burst, "quantum", "1514")
        command(self.ns, "tc", "class", "replace", "dev", "port", "parent", "1:", "classid", "1:1", "htb", *htb)

    def backlog(self) -> dict[str, int]:
        """The counters of the bfifo."""
        found: list[dict[str, int | str]] = json.loads(command(self.ns, "tc", "-s", "-j", "qdisc", "show", "dev", "port"))
        entry = next(entry for entry in found if entry["kind"] == "bfifo")
        return {key: value for key, value in entry.items() if isinstance(value, int)}


@contextmanager
def port(rate: int, limit: int, burst: int = 3_028) -> Iterator[Port]:
    """Lay a port out; it goes with its namespaces."""
    ns, peer = unshare(), unshare()
    try:
        for space in (ns, peer):
            with within(space):
                Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1", encoding="ascii")
        command(ns, "ip", "link", "add", "port", "type", "veth", "peer", "name", "far", "netns", f"/proc/{os.getpid()}/fd/{peer}")
        command(ns, "ip", "link", "set", "port", "up")
        command(peer, "ip", "link", "set", "far", "up")
        command(ns, "tc", "qdisc", "add", "dev", "port", "root", "handle", "1:", "htb", "default", "1")
        laid = Port(ns, peer, burst)
        laid.shape(rate)
        command(ns, "tc", "qdisc", "add", "dev", "port", "parent", "1:1", "handle", "2:", "bfifo", "limit", str(limit))
        yield laid
    finally:
        os.close(ns)
        os.close(peer)


def measure(binary: Path, rounds: int = 9, packets: int = 500_000) -> dict[str, list[float]]:
    """CPU time of each program [ns a run], and of a packet's whole way into the port [ns], in turn bare, marked, recorded."""
    found: dict[str, list[float]] = {}

    def flood(at: Port, name: str) -> None:
        sent = json.loads(command(at.ns, str(binary), "flood", "port", f"packets={packets}", "size=1514"))
        found.setdefault(name, []).append(sent["cpu_ns"] / (sent["sent"] + sent["refused"]))

    with port(20_000_000_000, 10_000_000, burst=100_000) as at:
        for _ in range(rounds):
            flood(at, "packet")
            for arguments in (("mark", "port", "rate=20gbit", "k=32KB"), ("record", "port", "/dev/null")):
                with bpf.Program(binary, *arguments, ns=at.ns) as program:
                    flood(at, f"packet, {arguments[0]}")
                    program.end()
                with bpf.Program(binary, *arguments, "stats=1", ns=at.ns) as program:
                    command(at.ns, str(binary), "flood", "port", f"packets={packets}", "size=1514")
                    said = program.end()
                for name, counted in said["programs"].items():
                    found.setdefault(name, []).append(counted["ns"] / counted["runs"])
                if "rows" in said:
                    found.setdefault("reader", []).append(1e9 * said["reader_s"] / said["rows"])
    return found


def table(found: dict[str, list[float]]) -> str:
    """Least, median and most of each."""
    out = ["| ns of CPU | least | median | most |", "|---|---:|---:|---:|"]
    out += [f"| {k} | {min(v):.0f} | {statistics.median(v):.0f} | {max(v):.0f} |" for k, v in found.items()]
    return "\n".join(out)


def main() -> int:
    """The command line."""
    reason = bpf.lacking()
    print(f"SKIPPED: what BPF programs cost: this machine lacks {reason}" if reason else table(measure(bpf.build())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
