"""Explains the completion time of a transfer in two captures, by parts that add up to it exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fanin.explain import KINDS, Explanation
from fanin.text import show

CAPTURED: Final[Mapping[str, str]] = {
    **{kind: KINDS[kind] for kind in ("handshake", "serialisation", "recovery", "loss", "rto", "tlp", "unknown")},
    "application": "with nothing to send: the application, or who it waited for",
    "path": "the last packets crossing the network",
    "congestion_window": "round trips with the congestion window, or the send buffer, used up",
    "receive_window": "round trips with the receive window used up",
    "queue": "in queues from {place}, behind other flows",
    "sender_side": "at the sender or before it, for a reason that no packet shows (pacing, its host, a queue there)",
    "receiver_side": "at the receiver or behind it: its host, a delayed acknowledgment, or a queue there",
}
"""Kinds of parts that captures show, in words. docs/explain.md defines each."""


class CapturedExplanation(Explanation):
    """The completion time of a transfer in two captures, by parts and steps.

    Attributes
    ----------
    document : dict
        All of it: ``flow`` (name), ``places`` (both captures, that nearer to the sender first), ``transfer`` (its row, as
        `Analysis.transfers` has it), ``packets``, ``arrived``, ``lost`` and ``answers``, ``start_ps``, ``end_ps``, ``parts``,
        ``steps``, ``waited``, ``notes``. Parts and steps add up to ``end_ps - start_ps`` exactly; what the captures do not show is
        in the part ``unknown``.
    """

    words = CAPTURED

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__({**{key: value for key, value in document.items() if key != "explanation"}, **document["explanation"]})

    @property
    def name(self) -> str:
        """The flow."""
        return str(self.document["flow"])

    @property
    def text(self) -> str:
        """A short paragraph: what took longest, and why."""
        row, total = self.document["transfer"], self.total_ps
        near, far = self.document["places"]
        whole = "" if row["complete"] else ", until its last packet (not all was acknowledged in the capture)"
        lead = f"{self.name}, {show.size(row['bytes'])}, took {show.duration(total)} at {near}{whole}."
        packets, lost = self.document["packets"], self.document["lost"]
        fate = f"{show.many(packets, 'data packet')} passed {near}, {lost or 'none'} of them did not come to {far}."
        return " ".join([lead, *self._shares(), fate])

    def __repr__(self) -> str:
        return f"<fanin.CapturedExplanation of {self.name}: {show.duration(self.total_ps)}>"
