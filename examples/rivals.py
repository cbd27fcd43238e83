"""RIMM and its rivals at one event: a burst of 5 MB meets a flow that fills the port (the testbed of the RIMM paper).

Each row changes what switches do, or what hosts take for a loss, and nothing else. Prints the table of
docs/switch/rivals.md: two numbers are those of the flow that fills the port and of the burst.
"""

from pathlib import Path
from typing import Any

import fanin

event = fanin.Scenario.from_file(Path(__file__).parents[1] / "scenarios" / "papers" / "rimm" / "event.toml")
document = event.to_dict()
del document["switch"]["mechanisms"]
document["telemetry"] = {"sample": "off"}
base = fanin.Scenario(document)

ALPHA = 20_000 * 80  # cells of 80 B
dibs: dict[str, Any] = {"switch.mechanisms.dibs": {}}
pabo = {"switch.mechanisms.pabo": {"lower": "16000 cells", "upper": "20000 cells"}}
plain = {"switch.mechanisms.rimm.release": "unordered"}
rimm = {"switch.mechanisms.rimm.alpha": "20000 cells"}
ecmp = {"switch.routing": "ecmp", "seed": 2}  # both flows come by different spines
per_flow = {"switch.mechanisms.rimm.neighbour": "per_flow"}
no_fast_retransmit = {"transport.loss_detection": "rfc6675", "transport.dup_thresh": 65_535}
in_order = {"host.reorder.timeout": "360us"}
longer = {"host.reorder.timeout": "2ms"}
vertigo: dict[str, Any] = {"switch.mechanisms.vertigo": {}, "switch.ttl": 250}
drilled = {"switch.routing": {"kind": "drill", "d": 2, "m": 0}}  # forwarding by the power of two choices

rows: dict[str, dict[str, Any]] = {
    "basic forwarding": {},
    "a port of 120,000 cells": {"switch.buffer.per_port": "120000 cells"},
    "DRILL(2, 1)": {"switch.routing": "drill"},
    "DIBS": dibs,
    "DIBS, 255 hops": {**dibs, "switch.ttl": 255},
    "DIBS, 255 hops, no fast retransmit": {**dibs, "switch.ttl": 255, **no_fast_retransmit},
    "DIBS, 255 hops, hosts put in order": {**dibs, "switch.ttl": 255, **in_order},
    "PABO": pabo,
    "PABO, no fast retransmit": {**pabo, **no_fast_retransmit},
    "PABO, hosts put in order": {**pabo, **in_order},
    "PABO, hosts put in order, up to 2 ms": {**pabo, **longer},
    "Vertigo": {**vertigo, **drilled, **in_order},
    "Vertigo, hosts put in order up to 2 ms": {**vertigo, **drilled, **longer},
    "Vertigo, no order at hosts": {**vertigo, **drilled},
    "Vertigo, first come, first served": {**vertigo, **drilled, "switch.mechanisms.vertigo.serve": "arrival", **in_order},
    "Vertigo, no deflection": {**vertigo, **drilled, "switch.mechanisms.vertigo.choices": 0, **in_order},
    "plain detour": plain,
    "plain detour, no fast retransmit": {**plain, **no_fast_retransmit},
    "plain detour, hosts put in order": {**plain, **in_order},
    "plain detour, hosts put in order, up to 2 ms": {**plain, **longer},
    "RIMM": rimm,
    "RIMM, ECMP": {**rimm, **ecmp},
    "RIMM, ECMP, a neighbour per flow": {**rimm, **ecmp, **per_flow},
}

columns = ["", "lost", "retransmitted", "arrived late", "latest", "burst's FCT", "largest queue, % of α", "detours"]
print(f"| {' | '.join(columns)} |".replace("|  |", "| |"))
print(f"|{'---|' * len(columns)}")
for name, changes in rows.items():
    result = fanin.run(base.replace(changes), progress=False)
    of = {row["group"]: row for row in result.completions.iter_rows(named=True)}
    background, burst = of["background"], of["burst"]
    lost = ", ".join(f"{count} {reason}" for reason, count in result.summary["drops_by_reason"].items())
    queue = next(port["max_bytes"] for port in result.summary["ports"] if port["port"] == "leaf2->h6")
    counted = result.summary["mechanisms"].values()
    detours = sum(group.get(count, 0) for group in counted for count in ("detoured", "redetoured", "bounced", "deflected"))
    print(
        f"| {name} | {lost or 0} | {background['retransmits']}, {burst['retransmits']} "
        f"| {background['reordered']}, {burst['reordered']} "
        f"| {result.summary['reordering']['late_max_ps'] / 1e9:.2f} ms | {burst['fct_ps'] / 1e9:.1f} ms "
        f"| {100 * queue / ALPHA:.1f} | {detours or ''} |"
    )
