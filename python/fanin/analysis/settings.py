"""Settings of an analysis, each declared once: `fanin.analyze`, the options of ``fanin analyze`` and their checks follow."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypedDict, get_type_hints

from fanin.tables.recorded import Recorded

Source = str | os.PathLike[str] | Recorded | Sequence[str | os.PathLike[str]]
"""A result, or the path of a result folder, of a file, or of several files that are one trace."""


@dataclass(frozen=True)
class Setting:
    """A default, and the option of the command line.

    Attributes
    ----------
    help, metavar : str
        Of the option.
    default : object
        If it is not given.
    option : object
        Default of the option, where that is another one.
    kind : type
        Type of the option, where the shell gives less than Python.
    flag : str
        Name of the option, where it is not that of the setting.
    least, most : int
        Range of the option.
    """

    help: str
    metavar: str | None = None
    default: Any = None
    option: Any = None
    kind: Any = None
    flag: str | None = None
    least: int | None = None
    most: int | None = None


class Settings(TypedDict, total=False):
    """Settings of an analysis.

    Attributes
    ----------
    port : str or sequence of str, optional
        Only these ports; all of them if not given.
    rate : str, optional
        Speed of the ports, for example ``"10Gbps"``. A result says it itself; otherwise it is estimated where that is possible.
    by : {"queue", "rate"}, optional
        What makes a burst: the queue, or the arrival rate in a window. The queue if not given, unless there is none.
    above, until : str, optional
        A burst begins when an arrival finds more than `above` and ends when one finds no more than `until`, for example
        ``"50KB"``. If not given: what the port drains in 100 µs, at least 8 full frames (12144 B; 24288 B where its speed is
        unknown), and a quarter of `above`.
    window : str, optional
        Length of the window for detection by rate. If not given: 25 µs, at least 20 full frames of the port's speed and a
        quarter of `rtt`.
    share : float, optional
        Share of the port's speed above which a window belongs to a burst; 0.5 if not given.
    merge : str, optional
        Bursts closer than this are one; ``"0ps"`` if not given.
    rtt : str, optional
        Round trip on the idle network: it separates rounds, and flows that were there before a burst from new ones. A result
        knows it for each flow.
    idle_before : bool
        The port was idle before the trace begins, so that no flow was there before: laws of bursts at its beginning need that.
    overhead : str, optional
        Wire bytes of a frame beyond its length; ``"20B"`` if not given (preamble and gap), in a result what its links have.
    start, stop : str, optional
        Bursts are sought from `start` on; records after `stop` are not read. Times of the trace, for example ``"1.5ms"``, or dates
        of its clock, ``"2026-11-21T08:00:00.0015Z"``; without a zone, one in `zone`.
    to : str or sequence of str, optional
        Of captures, only frames to these: an address, a network (``"10.0.0.0/24"``), an address with a port. If not given: those
        to the busier side; `Analysis.taken` says which.
    direction : {"in", "out"}, optional
        Of captures, only frames that came in or went out where they were captured.
    interface : str or sequence of str, optional
        Of captures, only frames at these interfaces, each a port of its own. If not given: the busiest.
    columns : str or mapping, optional
        Which column of a table means what, and in which unit: ``"time=ts:ns,queue=qlen:cells(208B),flow=five_tuple"``, or
        ``{"time": "ts:ns", "queue": "qlen:KB"}``. Guessed by common names if not given; `Analysis.notes` says how.
    format : str, optional
        Read the files as this format, whatever they begin with: the name of its page in docs/formats, for example ``"sflow"`` of a
        capture that begins with other packets. Recognised by the first bytes if not given.
    behind : path-like or sequence of path-like, optional
        Captures behind the port, where `source` are captures before it: packets are found again, so that queue, wait and fate of
        each are measured.
    before_interface, behind_interface : str, optional
        Interfaces before and behind the port, in captures of several (``tcpdump -i any``, ``mergecap``): by name (``"eth0"``), by
        number on the host (``"4"``) or by place in the file (``"#0"``); `behind` is `source` if not given.
    buffer : str, optional
        Room of the port, for example ``"512KB"``, ``"1000 packets"`` or ``"unlimited"``: where the trace knows no queue, it is
        estimated from what arrived, `rate` and this; where it does, the estimate is compared with it.
    rate_tolerance : float, optional
        What `rate` may be off by, as a share: the estimate of `buffer` is a range over it; 0.01 if not given.
    fcs : bool
        The port's queue counts frames with their check sequence and padding, as switches do; False: without, as Linux does.
    sort : bool
        Sort the whole trace in memory, for files with more disorder than receivers bring about.
    transfers : bool
        Also list what each TCP sender of a capture sent until all was acknowledged, a request or a response: how long it took,
        what was sent again, timeouts; `Analysis.transfers` has them.
    zone : str, optional
        In which time zone dates are shown: ``"UTC"`` (if not given), ``"local"``, ``"+01:00"``, ``"Europe/Berlin"``.
    confidence : float
        Of the intervals around slopes.
    top : int
        Culprits listed for each burst.
    max_bursts : int
        Bursts of a port that are listed: the highest ones. The others are counted.
    detailed : int
        Of these, how many get phases, rounds and a law: the highest ones.
    """

    port: Annotated[str | Sequence[str] | None, Setting("Only this port; may be repeated.", "PORT", kind=list[str] | None)]
    rate: Annotated[str | None, Setting("Speed of the ports, for example 10Gbps; a result says it itself.", "RATE")]
    by: Annotated[
        Literal["queue", "rate"] | None,
        Setting("Find bursts by the queue or by the arrival rate; the queue, unless the trace has none.", "queue|rate"),
    ]
    above: Annotated[
        str | None, Setting("A burst begins above this queue; what drains in 100 us, or 8 frames, if not given.", "SIZE")
    ]
    until: Annotated[str | None, Setting("A burst ends at this queue; a quarter of --above if not given.", "SIZE")]
    window: Annotated[str | None, Setting("Window of the arrival rate; 25us, or 20 frames, if not given.", "TIME")]
    share: Annotated[
        float | None, Setting("Share of the speed above which a window is part of a burst; 0.5 if not given.", "SHARE")
    ]
    merge: Annotated[str | None, Setting("Bursts closer than this are one.", "TIME")]
    rtt: Annotated[str | None, Setting("Idle round trip, to separate rounds; a result knows it.", "TIME")]
    idle_before: Annotated[bool, Setting("The port was idle before the trace begins.", default=False)]
    overhead: Annotated[str | None, Setting("Wire bytes of a frame beyond its length; 20B if not given.", "SIZE")]
    start: Annotated[str | None, Setting("Ignore bursts before this time: 1.5ms, or a date.", "TIME")]
    stop: Annotated[str | None, Setting("Ignore records after this time: 3ms, or a date.", "TIME")]
    to: Annotated[
        str | Sequence[str] | None,
        Setting("Only captured frames to this address, network or address:port; may be repeated.", "HOST", kind=list[str] | None),
    ]
    direction: Annotated[Literal["in", "out"] | None, Setting("Only captured frames that came in or went out.", "in|out")]
    interface: Annotated[
        str | Sequence[str] | None,
        Setting("Only captured frames at this interface; may be repeated.", "NAME", kind=list[str] | None),
    ]
    columns: Annotated[
        str | Mapping[str, str] | None,
        Setting("Meaning of columns: time=ts:ns,queue=qlen:cells(208B),port=ifname", "ROLE=COLUMN[:UNIT],...", kind=str | None),
    ]
    format: Annotated[str | None, Setting("Read as this format: sflow, netflow, int-report, …; recognised if not given.", "NAME")]
    behind: Annotated[
        Source | None,
        Setting("Captures behind the port that TRACE are before; may be repeated.", "CAPTURE", kind=list[Path] | None),
    ]
    before_interface: Annotated[str | None, Setting("Interface before the port, in a capture of several: eth0, 4, #0.", "IF")]
    behind_interface: Annotated[str | None, Setting("Interface behind the port, in a capture of several: eth0, 4, #0.", "IF")]
    buffer: Annotated[str | None, Setting("Room of the port, 512KB or unlimited: estimates a queue that is not recorded.", "SIZE")]
    rate_tolerance: Annotated[
        float | None,
        Setting("What the speed may be off by: a share over which --buffer's estimate is a range; 0.01 if not given.", "SHARE"),
    ]
    fcs: Annotated[
        bool,
        Setting("The queue counts check sequences, as switches do and Linux does not.", default=True, flag="--fcs/--no-fcs"),
    ]
    sort: Annotated[bool, Setting("Sort the whole trace first.", default=False)]
    transfers: Annotated[
        bool,
        Setting(
            "Also list requests and responses over TCP in captures, the slowest first: retransmissions, timeouts.", default=False
        ),
    ]
    zone: Annotated[str | None, Setting("Zone of the dates shown: local, +01:00, Europe/Berlin; UTC if not given.", "ZONE")]
    confidence: Annotated[float, Setting("Confidence of the intervals around slopes.", "SHARE", default=0.95)]
    top: Annotated[int, Setting("Bursts shown by port, and culprits by burst.", "N", default=10, option=5, least=1, most=1000)]
    max_bursts: Annotated[int, Setting("Bursts of a port that are listed, the highest.", "N", default=10_000, least=1)]
    detailed: Annotated[int, Setting("Listed bursts that get phases and a law, the highest.", "N", default=200, least=0)]


def _declared() -> dict[str, tuple[Any, Setting]]:
    hints = get_type_hints(Settings, include_extras=True)
    return {name: (hint.__origin__, hint.__metadata__[0]) for name, hint in hints.items()}


DECLARED: Final = _declared()
"""Setting → type in Python, declaration; in the order of the options."""


def chosen(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings, defaults included.

    Raises
    ------
    TypeError
        There is no such setting.
    ValueError
        Numbers that are infinite, or none.
    """
    unknown = next((name for name in given if name not in DECLARED), None)
    if unknown is not None:
        raise TypeError(f"analyze() got an unexpected keyword argument '{unknown}'")
    settings = {name: given.get(name, setting.default) for name, (_, setting) in DECLARED.items()}
    endless = [name for name, value in settings.items() if isinstance(value, float) and not math.isfinite(value)]
    if endless:
        raise ValueError("; ".join(f"{name}: {settings[name]} is no number to calculate with" for name in endless))
    return settings


def described(function: Callable[..., Any]) -> None:
    """Let a function that takes ``**settings`` show them one by one in its signature and its documentation."""
    own = list(inspect.signature(function).parameters.values())
    kind = inspect.Parameter.KEYWORD_ONLY
    each = [inspect.Parameter(name, kind, default=s.default, annotation=hint) for name, (hint, s) in DECLARED.items()]
    setattr(function, "__signature__", inspect.Signature([own[0], *each, *own[1:-1]]))  # noqa: B010 (functions have it, their type does not)
    told = inspect.cleandoc(Settings.__doc__ or "").partition("----------\n")[2]
    text = inspect.cleandoc(function.__doc__ or "")
    function.__doc__ = text.replace("**settings\n    As in `fanin.analysis.settings.Settings`.", told)
