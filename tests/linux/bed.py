"""A testbed of real Linux TCP in network namespaces of its own.

    sender 0 ─┐
    sender 1 ─┤ bridge ── trunk ── bridge ── port (HTB + bfifo) ── receiver
        …    ─┘   ▲                                                   │ ACKs
                  └───────────── delay line (bed.c) ◀─────────────────┘

All namespaces are anonymous: they exist as long as this process holds them, so nothing is left behind whatever ends it, and
nothing is created or set in the namespace of the host. The receiver's ACKs leave by a second interface and reach the senders
through a delay line of our own, since kernels without netem are common.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import json
import os
import platform
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["ACK", "END", "INFO", "PACKET", "Bed", "LackingError", "Run", "Setting", "lacking"]

HERE = Path(__file__).parent
SENDERS = 27
RECEIVER_IP = "10.77.255.1"
CLONE_NEWNET = 0x40000000

PACKET = np.dtype(
    [
        ("ns", "<u8"),
        ("frame", "<u4"),
        ("seq", "<u4"),
        ("ack", "<u4"),
        ("sport", "<u2"),
        ("dport", "<u2"),
        ("id", "<u2"),
        ("payload", "<u2"),
        ("flags", "<u4"),
    ]
)
"""A captured packet."""

ACK = np.dtype(
    [("ns", "<u8"), ("late", "<u4"), ("ack", "<u4"), ("dport", "<u2"), ("window", "<u2"), ("flags", "<u2"), ("options", "<u2")]
)
"""An acknowledgment in the delay line: when it came, by how much it left too late [ns], its number, window and flags.

The window is not scaled; `options` are their bytes.
"""

INFO_FIELDS = """
flow cwnd ssthresh srtt_us rttvar_us rto_us unacked sacked lost retrans total_retrans state backoff snd_wnd timeouts probes
"""
INFO = np.dtype([("ns", "<u8"), *((name, "<u4") for name in INFO_FIELDS.split())])
"""TCP_INFO of a flow."""

END_FIELDS = "flow mss ato_us earned rtt_us space window memory used pad"
END = np.dtype([("ns", "<u8"), *((name, "<u4") for name in END_FIELDS.split())])
"""TCP_INFO and SO_MEMINFO of the receiving end of a flow.

That is rcv_mss, ato, rcv_ssthresh, rcv_rtt, rcv_space, rcv_wnd, rcvbuf and rmem_alloc.
"""

SYSCTL = {
    "ipv4/tcp_no_metrics_save": "1",  # else ssthresh comes from the run before
    "ipv4/tcp_wmem": "4096 16777216 33554432",  # else the application limits the flow
    "ipv4/tcp_rmem": "4096 131072 6291456",  # the default of machines of this size
    "ipv4/tcp_timestamps": "1",
    "ipv4/tcp_sack": "1",
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
}

CPU = "user nice system idle iowait irq softirq steal"
"""Columns of /proc/stat."""

ETHTOOL = {"tx": 0x17, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}
"""Commands that set an offload (linux/ethtool.h)."""
SIOCETHTOOL = 0x8946

libc = ctypes.CDLL(None, use_errno=True)


class LackingError(RuntimeError):
    """This machine lacks something."""


@dataclass(frozen=True)
class Setting:
    """What a run is: bytes, bit/s and seconds.

    `delay` is that of the delay line, nearly all of the RTT; flows start at least `gap` after each other, each with `first`
    bytes, and get the rest when all have started. `receivers`: the receiving ends are sampled too, which locks their sockets for
    a moment.
    """

    flows: int
    size: int
    control: str
    rate: int
    delay: float
    buffer: int
    gap: float = 0
    first: int = 14_480
    receivers: bool = False


@dataclass
class Run:
    """What a run gave, as it was recorded."""

    before: np.ndarray[Any, Any]
    after: np.ndarray[Any, Any]
    acks: np.ndarray[Any, Any]
    info: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]
    flows: list[dict[str, int]]
    start_ns: int
    counters: dict[str, int]
    machine: dict[str, Any] = field(default_factory=dict)


def unshare() -> int:
    """A new network namespace; this thread stays where it is."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.unshare(CLONE_NEWNET):
            raise LackingError(f"network namespaces: {os.strerror(ctypes.get_errno())}")
        fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        libc.setns(home, CLONE_NEWNET)
        os.close(home)
    return fd


@contextlib.contextmanager
def within(ns: int) -> Iterator[None]:
    """This thread is in the namespace."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(ns, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        if libc.setns(home, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        os.close(home)


def command(ns: int, *args: str, text: str | None = None) -> str:
    """Run a command in the namespace."""
    with within(ns):
        done = subprocess.run(args, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LackingError(f"{' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


def offloads(ns: int, device: str, **values: bool) -> None:
    """What `ethtool -K` does: that tool is seldom installed."""
    with within(ns), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for name, on in values.items():
            value = array.array("B", struct.pack("II", ETHTOOL[name], int(on)))
            request = struct.pack("16sP", device.encode(), value.buffer_info()[0])
            fcntl.ioctl(s.fileno(), SIOCETHTOOL, request)


def lacking() -> str | None:
    """What this machine lacks for the testbed, or None."""
    if platform.system() != "Linux":
        return "Linux"
    controls = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()
    wanted = {
        "root": os.geteuid() == 0,
        "a second CPU": (os.cpu_count() or 1) > 1,
        **{f"the congestion control {c} in its kernel": c in controls for c in ("reno", "cubic")},
        **{f"{t} (Debian: apt-get install iproute2 gcc libc6-dev)": bool(shutil.which(t)) for t in ("ip", "tc", "bridge", "gcc")},
    }
    return next((what for what, there in wanted.items() if not there), None) or refused()


def refused() -> str | None:
    """What the kernel does not let us have: namespaces, veth, bridge, HTB, bfifo, real-time priority."""
    try:
        ns = unshare()
    except (LackingError, OSError) as e:
        return f"the right to make network namespaces ({e})"
    try:
        command(ns, "ip", "-batch", "-", text="link add v0 type veth peer name v1\nlink add b0 type bridge\nlink set v0 up\n")
        command(ns, "tc", "qdisc", "add", "dev", "v0", "root", "handle", "1:", "htb", "default", "1")
        command(ns, "tc", "class", "add", "dev", "v0", "parent", "1:", "classid", "1:1", "htb", "rate", "100mbit")
        command(ns, "tc", "qdisc", "add", "dev", "v0", "parent", "1:1", "bfifo", "limit", "100000")
        subprocess.run(["chrt", "-f", "50", "true"], check=True, capture_output=True)
    except LackingError as e:
        return f"a part of the kernel: {e}"
    except (OSError, subprocess.CalledProcessError):
        return "the right to real-time priority (chrt)"
    finally:
        os.close(ns)
    return None


def build(folder: Path) -> Path:
    """Compile bed.c."""
    folder.mkdir(parents=True, exist_ok=True)
    binary = folder / "bed"
    source = HERE / "bed.c"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(binary), str(source), "-lpthread"], check=True)
    return binary


def mac(host: int) -> str:
    """Address of sender `host`, or of the receiver (255)."""
    return f"02:00:00:00:00:{host:02x}"


def counters(ns: int) -> dict[str, int]:
    """TCP's counters of a namespace, by the names that nstat uses without their prefix `Tcp` or `TcpExt`."""
    out: dict[str, int] = {}
    with within(ns):
        for file in ("snmp", "netstat"):
            lines = Path(f"/proc/thread-self/net/{file}").read_text(encoding="ascii").splitlines()
            for names, values in zip(lines[::2], lines[1::2], strict=True):
                if names.startswith(("Tcp:", "TcpExt:")):
                    out |= dict(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
    return out


def cpu() -> dict[str, int]:
    """Ticks by use of all CPUs."""
    first = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    return dict(zip(CPU.split(), map(int, first), strict=True))


class Bed:
    """The laid-out testbed: `run` any number of experiments, then `close`, which a lost process does as well."""

    def __init__(self, work: Path, senders: int = SENDERS) -> None:
        reason = lacking()
        if reason:
            raise LackingError(reason)
        self.work = work
        self.binary = build(work)
        self.port = 5000
        self.child: subprocess.Popen[str] | None = None
        self.switch = unshare()
        self.receiver = unshare()
        self.senders = [unshare() for _ in range(senders)]
        self._lay_out()

    def __enter__(self) -> Bed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the namespaces, with which all of their devices go."""
        if self.child and self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
            self.child.wait()
        for fd in (*self.senders, self.receiver, self.switch):
            with contextlib.suppress(OSError):
                os.close(fd)
        self.senders = []

    def _path(self, ns: int) -> str:
        return f"/proc/{os.getpid()}/fd/{ns}"

    def _lay_out(self) -> None:
        for ns in (self.switch, self.receiver, *self.senders):
            with within(ns):
                for key, value in SYSCTL.items():
                    path = Path("/proc/sys/net") / key
                    if path.exists():
                        path.write_text(value, encoding="ascii")
        lines = [
            *(f"link add {b} type bridge stp_state 0 forward_delay 0 mcast_snooping 0" for b in ("left", "right")),
            "link add trunk0 type veth peer name trunk1",
            f"link add port type veth peer name data netns {self._path(self.receiver)}",
            f"link add line_in type veth peer name ack netns {self._path(self.receiver)}",
            "link add line_out type veth peer name acks",
            *(f"link add s{i} type veth peer name eth netns {self._path(ns)}" for i, ns in enumerate(self.senders)),
            *(f"link set {d} master left" for d in ("trunk0", "acks", *(f"s{i}" for i in range(len(self.senders))))),
            *(f"link set {d} master right" for d in ("trunk1", "port")),
            *(f"link set {d} up" for d in ("left", "right", "trunk0", "trunk1", "port", "line_in", "line_out", "acks")),
            *(f"link set s{i} up" for i in range(len(self.senders))),
        ]
        command(self.switch, "ip", "-batch", "-", text="\n".join(lines) + "\n")
        macs = [f"fdb add {mac(255)} dev trunk0 master static", f"fdb add {mac(255)} dev port master static"]
        macs += [f"fdb add {mac(i)} dev s{i} master static" for i in range(len(self.senders))]
        command(self.switch, "bridge", "-batch", "-", text="\n".join(macs) + "\n")
        lines = [
            "link set lo up",
            f"link set data address {mac(255)} arp off up",
            f"link set ack address {mac(254)} arp off up",
            f"addr add {RECEIVER_IP}/32 dev data",
            "route add 10.77.0.0/24 dev ack",
            *(f"neigh add 10.77.0.{i + 1} lladdr {mac(i)} dev ack nud permanent" for i in range(len(self.senders))),
        ]
        command(self.receiver, "ip", "-batch", "-", text="\n".join(lines) + "\n")
        # An ACK crosses a raw socket, where nobody would fill in a checksum that was left to a device.
        offloads(self.receiver, "ack", tx=False, tso=False, gso=False)
        offloads(self.receiver, "data", gro=False)
        for i, ns in enumerate(self.senders):
            lines = [
                "link set lo up",
                # Without TSO on the device TCP still builds bursts; this is what stops it.
                f"link set eth address {mac(i)} arp off gso_max_segs 1 up",
                f"addr add 10.77.0.{i + 1}/32 dev eth",
                f"route add {RECEIVER_IP}/32 dev eth",
                f"neigh add {RECEIVER_IP} lladdr {mac(255)} dev eth nud permanent",
            ]
            command(ns, "ip", "-batch", "-", text="\n".join(lines) + "\n")
            offloads(ns, "eth", gro=False)
        time.sleep(1.5)  # a bridge port forwards a second after it came up

    def shape(self, rate: int, buffer: int) -> None:
        """Rate and buffer of the port."""
        with contextlib.suppress(LackingError):
            command(self.switch, "tc", "qdisc", "del", "dev", "port", "root")
        # A frame of credit for each 100 Mb/s, which is what 121 us of a late timer take; more would let a burst through.
        burst = str(1514 * max(1, round(rate / 100e6)))
        htb = ("rate", f"{rate}bit", "ceil", f"{rate}bit", "burst", burst, "cburst", burst, "quantum", "1514")
        command(self.switch, "tc", "qdisc", "add", "dev", "port", "root", "handle", "1:", "htb", "default", "1")
        command(self.switch, "tc", "class", "add", "dev", "port", "parent", "1:", "classid", "1:1", "htb", *htb)
        command(self.switch, "tc", "qdisc", "add", "dev", "port", "parent", "1:1", "handle", "2:", "bfifo", "limit", str(buffer))

    def spread(self) -> None:
        """Have the second CPU carry what comes to the port, to the receiver and back to the delay line (RPS).

        Else the delay line's thread does it on the first one, with all that an ACK sets off, which 300 Mb/s are too much for.
        """
        rps = "/sys/class/net/trunk1/queues/rx-0/rps_cpus"
        command(self.switch, "unshare", "-m", "sh", "-c", f"mount -t sysfs sysfs /sys && echo 2 > {rps}")

    def run(self, setting: Setting, limit_s: float = 60, *, keep_port: bool = False) -> Run:
        """One experiment. `keep_port`: the port stays as `shape` left it, with what was attached since."""
        if not keep_port:
            self.shape(setting.rate, setting.buffer)
        out = self.work / "run"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        used = self.senders[: setting.flows]
        self.port = 5000 + (self.port - 4999) % 20000
        slots = 1 << max(13, (6 * setting.flows * setting.size // 1448).bit_length())
        args = {
            "flows": setting.flows,
            "size": setting.size,
            "delay": round(setting.delay * 1e9),
            "gap": round(setting.gap * 1e9),
            "first": setting.first,
            "port": self.port,
            "limit": round(limit_s * 1e9),
            "control": setting.control,
            "receiver_ip": RECEIVER_IP,
            "switch_ns": self.switch,
            "receiver_ns": self.receiver,
            "sender_ns": ",".join(map(str, used)),
            "before": "trunk1",
            "after": "port",
            "receivers": int(setting.receivers),
            "line_in": "line_in",
            "line_out": "line_out",
            "slots": slots,
        }
        before = [counters(ns) for ns in used]
        ticks, at = cpu(), time.monotonic()
        line = [str(self.binary), str(out), *(f"{k}={v}" for k, v in args.items())]
        self.child = subprocess.Popen(
            line, pass_fds=[self.switch, self.receiver, *used], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )
        try:
            _, error = self.child.communicate(timeout=limit_s + 60)
        except BaseException:
            self.child.kill()
            self.child.wait()
            raise
        if self.child.returncode:
            raise RuntimeError(f"the testbed failed: {error.strip() or self.child.returncode}")
        wall = time.monotonic() - at
        ticks = {k: v - ticks[k] for k, v in cpu().items()}
        total: dict[str, int] = {}
        for ns, old in zip(used, before, strict=True):
            for k, v in counters(ns).items():
                total[k] = total.get(k, 0) + v - old.get(k, 0)
        bed = json.loads((out / "bed.json").read_text(encoding="ascii"))
        if bed["finished"] != setting.flows:
            raise RuntimeError(f"{setting.flows - bed['finished']} of {setting.flows} flows did not end in {limit_s} s")
        rows = (out / "flows.csv").read_text(encoding="ascii").split("\n")
        names = rows[0].split(",")
        hz = os.sysconf("SC_CLK_TCK")
        return Run(
            before=np.fromfile(out / "before.bin", PACKET),
            after=np.fromfile(out / "after.bin", PACKET),
            acks=np.fromfile(out / "acks.bin", ACK),
            info=np.fromfile(out / "info.bin", INFO),
            ends=np.fromfile(out / "ends.bin", END),
            flows=[dict(zip(names, map(int, r.split(",")), strict=True)) for r in rows[1:] if r],
            start_ns=bed["start_ns"],
            counters={k: v for k, v in total.items() if v},
            machine={
                "kernel": platform.release(),
                "cpus": os.cpu_count(),
                "written_ms": (bed["written_ns"] - bed["start_ns"]) / 1e6,
                "steal_share": ticks["steal"] / hz / wall / (os.cpu_count() or 1),
                "busy_share": 1 - (ticks["idle"] + ticks["iowait"]) / hz / wall / (os.cpu_count() or 1),
                "load": os.getloadavg()[0],
            },
        )
