# %% [markdown]
# # What a switch gives an operator
# One simulated port of 10 Gb/s, and what nine kinds of telemetry would have said about it: entries of LANZ, sFlow datagrams in a
# capture, counters in a table and as OTLP, reports of INT, flow records, micro-burst records of NX-OS, BroadView's buffers, a
# host's Millisampler. The truth is known, so that one can see what each of them can tell and cannot.
# `python examples/switch_feeds.py examples/traces` wrote the files of the how-to pages; each run writes the same bytes.

# %%
import json
import shutil
import struct
import sys
from pathlib import Path

import polars as pl

import fanin

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("traces")
folder.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# Four bursts: 24 hosts answer one at once, each time with twice as much.

# %%
scenario = {
    "name": "switch7",
    "seed": 7,
    "duration": "40ms",
    "topology": {"kind": "single_switch", "hosts": 25, "link": {"rate": "10Gbps", "delay": "5us"}},
    "switch": {"buffer": {"kind": "static", "per_port": "400KB"}},
    "transport": {"kind": "tcp", "congestion_control": "newreno", "handshake": False, "ack_every": 1},
    "traffic": [
        {
            "kind": "incast",
            "receiver": "h24",
            "senders": ["h0..h23"],
            "size": f"{6 << n}KB",
            "start": f"{2 + 10 * n}ms",
            "jitter": "20us",
        }
        for n in range(4)
    ],
    "telemetry": {"queues": ["*->h24"]},
}
result = fanin.run(scenario, folder / "run", progress=False, overwrite=True)
packets = result.queues.sort("time_ps")
shutil.rmtree(folder / "run")

# %% [markdown]
# LANZ: segments of 480 B. An entry where the queue rises above 256 segments, each 100 us while it stays, and where it is below 64.

# %%
SEGMENT, HIGH, LOW, UPDATE_PS = 480, 256, 64, 100_000_000
DAY = "2026-11-21 08:00:00"
BYTE_PS, FRAME_EXTRA = 800, 20
rows: list[str] = []
since, last, most, most_at, drops = None, 0, 0, 0, 0
before, behind = 0, 0


def entry(kind: str, time: int, segments: int, lost: int, ended: tuple[int, int] | None = None) -> None:
    spent, most_after = ("N/A", "N/A") if ended is None else ended
    when = f"{DAY}.{time // 10_000_000:05d}"
    rows.append(f" {kind},{when},Et25(1),{spent},{segments},{most_after},{segments * SEGMENT * 8e-4:.3f},{lost}")


for time, queue, frame, dropped in packets.select("time_ps", "queue_bytes", "frame_bytes", "dropped").iter_rows():
    # The queue falls between two arrivals, at the port's speed.
    low_at = before + max(0, behind - LOW * SEGMENT) * BYTE_PS * (1518 + FRAME_EXTRA) // 1518
    if since is not None and low_at < time:
        entry("E", low_at, most, drops, ((low_at - since) // 1_000_000, (most_at - since) // 1_000_000))
        since, drops = None, 0
    length = -(-queue // SEGMENT)
    before, behind = time, queue + (0 if dropped else frame)
    if since is None and length > HIGH:
        since, last, most, most_at = time, time, length, time
        entry("S", time, length, int(dropped))
    elif since is not None:
        drops += dropped
        if length > most:
            most, most_at = length, time
        if time - last >= UPDATE_PS:
            entry("U", time, length, drops)
            last, drops = time, 0
names = "Type,Time,Interface,Duration(usecs),Queue-Length,Time-Of-Max-Queue(usecs),Latency(usecs),,Tx-Drops"
(folder / "lanz.csv").write_text("\n".join([f"Report generated at {DAY}", names, *rows, ""]))

# %% [markdown]
# Counters in a table, each millisecond: bytes that left, as a running count, drops, and the largest queue since the row before.

# %%
kept = packets.filter(~pl.col("dropped"))
leaves = 0
gone: list[tuple[int, int]] = []
for time, frame in kept.select("time_ps", "frame_bytes").iter_rows():
    leaves = max(leaves, time) + (frame + FRAME_EXTRA) * BYTE_PS
    gone.append((leaves, frame))
MS = 1_000_000_000
steps = 40
sent, largest, lost = [0] * (steps + 1), [0] * (steps + 1), [0] * (steps + 1)
for time, frame in gone:
    sent[min(time // MS + 1, steps)] += frame
for time, queue, dropped in packets.select("time_ps", "queue_bytes", "dropped").iter_rows():
    place = min(time // MS + 1, steps)
    largest[place] = max(largest[place], queue)
    lost[place] += dropped
lines, total, dropped_total = ["time_ms,ifName,tx_bytes,tx_dropped,watermark_bytes"], 7_000_000_000, 12
for step in range(steps + 1):
    total += sent[step]
    dropped_total += lost[step]
    lines.append(f"{step},Ethernet1/25,{total},{dropped_total},{largest[step]}")
(folder / "counters.csv").write_text("\n".join([*lines, ""]))

# %% [markdown]
# Counters each minute, as a collector of SNMP keeps them, while such bursts come more and more often. The switch starts anew
# at noon, and five polls are lost.

# %%
per_burst = [sum(sent[1 + 10 * n : 11 + 10 * n]) for n in range(4)]
octets, lines = 9_100_000_000, ["time,ifName,ifHCOutOctets,ifOutDiscards,ifHighSpeed"]
discards = 40
for minute in range(120):
    if minute == 60:
        octets, discards = 0, 0
    busy = [3, 3, 60, 600][minute // 30]
    octets += 60 * busy * per_burst[minute % 4]
    discards += busy if minute % 4 == 3 else 0
    if minute in (80, 81, 82, 83, 84):
        continue
    lines.append(f"2026-11-21T{11 + minute // 60:02d}:{minute % 60:02d}:00Z,Ethernet1/25,{octets},{discards},10000")
(folder / "minutes.csv").write_text("\n".join([*lines, ""]))

# %% [markdown]
# sFlow in a capture: counters of the interface each 4 ms, one packet of 50 sampled, and each drop told with its flow.


# %%
def sample(kind: int, body: bytes) -> bytes:
    return struct.pack(">II", kind, len(body)) + body


def header(flow: int, frame: int) -> bytes:
    host = flow % 24 + 1
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, frame - 18, 0, 0, 64, 6, 0, bytes([10, 7, 0, host]), bytes([10, 7, 0, 25]))
    tcp = struct.pack(">HHIIBBHHH", 40_000 + flow, 80, 0, 0, 0x50, 0x10, 0, 0, 0)
    bits = bytes(12) + b"\x08\x00" + ip + tcp
    return sample(1, struct.pack(">IIII", 1, frame, 4, len(bits)) + bits + bytes(-len(bits) % 4))


def counters(octets: int) -> bytes:
    before = struct.pack(">IIQIIQ6I", 25, 6, 10_000_000_000, 1, 3, 0, *[0] * 6)
    return sample(2, struct.pack(">III", 1, 25, 1) + sample(1, before + struct.pack(">Q6I", octets, *[0] * 6)))


events: list[tuple[int, bytes]] = []
octets = 0
for step in range(steps + 1):
    octets += sent[step]
    if step % 4 == 0:
        events.append((step * MS, counters(octets)))
for number, (time, frame, flow, dropped) in enumerate(packets.select("time_ps", "frame_bytes", "flow", "dropped").iter_rows()):
    if dropped:
        events.append((time, sample(5, struct.pack(">8I", number, 0, 25, 0, 3, 25, 259, 1) + header(flow, frame))))
    elif number % 50 == 0:
        events.append((time, sample(1, struct.pack(">8I", number, 25, 50, number, 0, 3, 25, 1) + header(flow, frame))))
events.sort(key=lambda event: event[0])
FIRST_S = 1_795_219_200
with (folder / "sflow.pcap").open("wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1))
    for number, (time, body) in enumerate(events):
        datagram = struct.pack(">IIIIIII", 5, 1, 0x0A070001, 0, number + 1, time // MS, 1) + body
        udp = struct.pack(">HHHH", 50_000, 6343, 8 + len(datagram), 0) + datagram
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes([10, 7, 0, 1]), bytes([10, 7, 0, 99]))
        frame = bytes(12) + b"\x08\x00" + ip + udp
        seconds, nanoseconds = divmod(time // 1_000, 1_000_000_000)
        file.write(struct.pack("<IIII", FIRST_S + seconds, nanoseconds, len(frame), len(frame)) + frame)

# %% [markdown]
# INT: reports of one packet in 50, of each fourth one that finds more than 120 KB (`Q`), and of each drop (`D`); occupancy in cells
# of 208 B. And NetFlow 9: a record for each flow.


# %%
def captured(name: str, datagrams: list[tuple[int, int, bytes]]) -> None:
    """Write UDP datagrams to 10.7.0.99 in a capture: their times, their ports and what they carry."""
    with (folder / name).open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1))
        for time, port, content in datagrams:
            udp = struct.pack(">HHHH", 50_000, port, 8 + len(content), 0) + content
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes([10, 7, 0, 1]), bytes([10, 7, 0, 99]))
            frame = bytes(12) + b"\x08\x00" + ip + udp
            seconds, nanoseconds = divmod(time // 1_000, 1_000_000_000)
            file.write(struct.pack("<IIII", FIRST_S + seconds, nanoseconds, len(frame), len(frame)) + frame)


CELL, ABOVE = 208, 120_000
reports: list[tuple[int, int, bytes]] = []
high = 0
for number, (time, queue, frame, flow, dropped) in enumerate(
    packets.select("time_ps", "queue_bytes", "frame_bytes", "flow", "dropped").iter_rows()
):
    high += queue > ABOVE
    if not (dropped or number % 50 == 0 or (queue > ABOVE and high % 4 == 0)):
        continue
    packet = header(flow, frame)[8 + 16 + 14 :][:40]
    if dropped:
        flags, bits, metadata = 0xA0, 0x4001, struct.pack(">HHBBH", 3, 25, 1, 71, 0)
    else:
        flags, bits = 0x60 if queue > ABOVE else 0x20, 0x5000
        metadata = struct.pack(">HHI", 3, 25, 1 << 24 | -(-queue // CELL))
    report = struct.pack(">BBBBHHI", 0x14, 2 + 2 + 10, 2, flags, bits, 0, 0) + metadata + packet
    reports.append((time, 32_766, struct.pack(">II", 2 << 28 | len(reports) & 0x3FFFFF, 7) + report))
captured("int.pcap", reports)

UPTIME_MS = 1_000_000
records = b""
for flow, octets, first, final in (
    kept.group_by("flow")
    .agg(octets=pl.col("frame_bytes").sum(), first=pl.col("time_ps").min(), final=pl.col("time_ps").max())
    .sort("flow")
    .iter_rows()
):
    ends = [UPTIME_MS + moment // MS for moment in (first, final)]
    records += struct.pack(">4B4BHHBHIII", 10, 7, 0, flow % 24 + 1, 10, 7, 0, 25, 40_000 + flow, 80, 6, 25, octets, *ends)
template = struct.pack(">HHHH18H", 0, 44, 256, 9, 8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 14, 2, 1, 4, 22, 4, 21, 4)
half = len(records) // 2 // 27 * 27
netflow: list[tuple[int, int, bytes]] = []
for number, part in enumerate((records[:half], records[half:])):
    body = struct.pack(">HH", 256, 4 + len(part)) + part
    exported = struct.pack(">HHIIII", 9, 2, UPTIME_MS + 1_000, FIRST_S + 1, number + 1, 0) + template + body
    netflow.append((1_000 * MS, 2_055, exported))
captured("flows.pcap", netflow)

# %% [markdown]
# NX-OS: a record for each burst above 120 KB, until it is below 30 KB, with its largest queue. BroadView: the largest number of
# cells since the report before. OTLP: the counters of each millisecond as SONiC exports them.

# %%
FALL = 30_000
bursts: list[dict[str, str]] = []
burst: dict[str, int] = {}
before, behind = 0, 0


def moment(time: int) -> str:
    """Return a time as NX-OS writes it."""
    return f"{DAY.replace('-', '/')}:{time // 1_000_000:06d}"


for time, queue, frame, dropped in packets.select("time_ps", "queue_bytes", "frame_bytes", "dropped").iter_rows():
    low_at = before + max(0, behind - FALL) * BYTE_PS * (1518 + FRAME_EXTRA) // 1518
    if burst and low_at < time:
        row = {"if-str": "Eth1/25", "queue": "U0", "threshold": str(burst["from"]), "start-time": moment(burst["start"])}
        row |= {"peak": str(burst["peak"]), "peak-time": moment(burst["at"]), "end-depth": str(FALL), "end-time": moment(low_at)}
        bursts.append(row | {"duration": f"{(low_at - burst['start']) / 1e6:.2f} us"})
        burst = {}
    before, behind = time, queue + (0 if dropped else frame)
    if not burst and queue > ABOVE:
        burst = {"start": time, "from": queue, "peak": queue, "at": time}
    elif burst and queue > burst["peak"]:
        burst |= {"peak": queue, "at": time}
answer = {"TABLE_module": {"ROW_module": {"TABLE_instance": {"ROW_instance": bursts}}}}
(folder / "bursts.json").write_text(json.dumps(answer, indent=1) + "\n")

stamps = ((0, 0), (1, -(-max(largest) // CELL)))
texts = [
    json.dumps(
        {
            "jsonrpc": "2.0",
            "method": "get-bst-report",
            "asic-id": "1",
            "version": "1",
            "time-stamp": f"2026-11-21 - 08:00:{second:02d}",
            "report": [{"realm": "egress-uc-queue", "data": [[0, "25", cells]]}],
        }
    )
    for second, cells in stamps
]
(folder / "bst.json").write_text("\n".join([*texts, ""]))


def point(time: int, kind: int, statistic: int, value: int) -> dict[str, object]:
    """Return a gauge of SONiC's exporter."""
    labels = {"object_name": "Ethernet25", "sai_type_id": str(kind), "sai_stat_id": str(statistic)}
    attributes = [{"key": key, "value": {"stringValue": label}} for key, label in labels.items()]
    points = [{"timeUnixNano": str(FIRST_S * 1_000_000_000 + time // 1_000), "asInt": str(value), "attributes": attributes}]
    return {"name": f"sai_counter_type_{kind}_stat_{statistic}", "gauge": {"dataPoints": points}}


requests, octets, discards = [], 7_000_000_000, 12
for step in range(steps + 1):
    octets += sent[step]
    discards += lost[step]
    values = ((9, octets), (12, discards), (96, largest[step]))
    metrics = [point(step * MS, 1, statistic, value) for statistic, value in values]
    requests.append(json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}, separators=(",", ":")))
(folder / "otlp.json").write_text("\n".join([*requests, ""]))

# %% [markdown]
# Millisampler: what the receiving host counted in each millisecond.

# %%
run = {"rack_id": 7, "server_hostname": 25, "sampling_freq": 1, "ingressBytes": sent[1:]}
run["burst_result"] = {"ingress": {str(FIRST_S * 1_000_000): []}}
(folder / "millisampler.json").write_text(json.dumps(run) + "\n")

for name in (
    "counters.csv",
    "minutes.csv",
    "lanz.csv",
    "sflow.pcap",
    "int.pcap",
    "flows.pcap",
    "bursts.json",
    "bst.json",
    "otlp.json",
    "millisampler.json",
):
    print(f"{folder / name}: {(folder / name).stat().st_size} bytes")
