"""The whole of a watch: sources, what is known of them, page, metrics and alerts, until it is to stop."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fanin import _core
from fanin.text import show
from fanin.watch.fetch import fetcher
from fanin.watch.hub import Burst, Hub
from fanin.watch.metrics import Metrics
from fanin.watch.otlp import Otlp
from fanin.watch.positions import Positions
from fanin.watch.rules import Rules
from fanin.watch.sources import Source
from fanin.watch.webhook import Webhook

TURN: Final = 0.5
"""Seconds between two looks at what has ended, unless much comes."""

_PATIENCE: Final = 5.0
"""Seconds that alerts have to be sent in the end."""


@dataclass(frozen=True)
class Choices:
    """Choices beside the settings of the analysis.

    Attributes
    ----------
    once : bool
        Stop at the end of what is there.
    new : bool
        Of files, read only what comes from now on.
    state : pathlib.Path or None
        File that keeps the places in files.
    rules : Rules or None
        For alerts.
    gap : str or None
        Time between two records of a port from which it is a gap; ten steps between samples if None.
    cell : str
        Width of a stretch of time in the strip.
    stall : str
        Time without bytes after which a source is stalled.
    retire : str
        Time without records after which a port gives its memory back.
    keep : int
        Bursts that are remembered.
    stays : bool
        Go on when all sources have ended, as a page shows what they had.
    otlp : str or None
        Address of an OpenTelemetry collector.
    """

    once: bool = False
    new: bool = False
    state: Path | None = None
    rules: Rules | None = None
    gap: str | None = None
    cell: str = "1s"
    stall: str = "5s"
    retire: str = "3600s"
    keep: int = 1000
    stays: bool = False
    otlp: str | None = None


class Watch:
    """A watch over sources.

    Parameters
    ----------
    given : sequence of str
        The sources, as the user gave them.
    settings : mapping
        Of the analysis.
    choices : Choices
        The rest.

    Raises
    ------
    ValueError
        A source is none, or a choice cannot be used.
    TraceError
        A setting cannot be used.
    """

    def __init__(self, given: Sequence[str], settings: dict[str, Any], choices: Choices) -> None:
        twice = next((name for place, name in enumerate(given) if name in given[:place]), None)
        if twice is not None:
            raise ValueError(f"{twice}: is given twice")
        try:
            patience = _core.quantity("time", choices.stall) / 1e12
        except ValueError as error:
            raise ValueError(f"--stall: '{choices.stall}' {error}; accepted: a time, for example 5s") from None
        self._choices = choices
        self._stopping = threading.Event()
        self._hurry = threading.Event()
        self._positions = Positions(choices.state)
        sources = []
        for name in given:
            fetch = fetcher(name, self._positions, once=choices.once, new=choices.new)
            shown = "stdin" if name == "-" else name
            text = json.dumps({**{key: value for key, value in settings.items() if value is not None}, "paths": [shown]})
            live = _core.Live(shown, text, choices.gap, choices.cell, choices.retire)
            sources.append(Source(shown, live, fetch, once=choices.once, patience=patience))
            sources[-1].go_on(self._positions.of(shown))
            sources[-1].hurry = self._hurry
        self.hub = Hub(sources, cell_s=_core.quantity("time", choices.cell) / 1e12, keep=choices.keep)
        self.webhook = Webhook(choices.rules.webhook) if choices.rules is not None else None
        self.metrics = Metrics(self.hub, self.webhook)
        self.otlp = Otlp(choices.otlp, self.metrics) if choices.otlp is not None else None
        posting = [one.poster for one in (self.webhook, self.otlp) if one is not None]
        self.hub.posters = [poster for poster in posting if poster is not None]

    def run(
        self,
        told: Callable[[list[Burst]], Callable[[], None] | None],
        said: Callable[[str], None] | None = None,
        seconds: float | None = None,
    ) -> None:
        """Watch until all sources have ended and nothing can come any more, or `KeyboardInterrupt`.

        Parameters
        ----------
        told : callable
            Called with the bursts that have ended since the last call. What it returns is called once their places are kept:
            a watch that is killed between the two tells too little, and nothing twice.
        said : callable, optional
            Called with a line about what does not work, once, and when it does again.
        seconds : float, optional
            How long at most.
        """
        end = None if seconds is None else time.monotonic() + seconds
        try:
            for source in self.hub.sources:
                source.start()
            if self.otlp is not None:
                self.otlp.start()
            while not (self._is_over() or self._stopping.is_set() or (end is not None and time.monotonic() >= end)):
                self._hurry.wait(TURN)
                self._hurry.clear()
                self._turn(told, said)
        finally:
            for source in self.hub.sources:
                source.stopping.set()
            for source in self.hub.sources:
                source.stop()
            self._turn(told, said)
            if self.webhook is not None:
                self.webhook.close(_PATIENCE)
            if self.otlp is not None:
                self.otlp.stop()
            self._say(said)

    def stop(self) -> None:
        """Let `run` return soon."""
        self._stopping.set()
        self._hurry.set()

    def _is_over(self) -> bool:
        """Whether there is nothing to wait for."""
        done = all(source.done for source in self.hub.sources)
        stays = self._choices.stays and not self._choices.once
        return done and (not stays or all(source.problem is not None for source in self.hub.sources))

    def _say(self, said: Callable[[str], None] | None) -> None:
        """Say what does not work, or does again."""
        heard = [source.news for source in self.hub.sources] + [poster.news for poster in self.hub.posters]
        for news in heard:
            while news:
                line = news.popleft()
                if said is not None:
                    said(line)

    def _turn(self, told: Callable[[list[Burst]], Callable[[], None] | None], said: Callable[[str], None] | None) -> None:
        rules = self._choices.rules
        for bursts in self.hub.gather():
            tell = told(bursts)
            # First the places, then what was read up to there: what is killed in between tells too little, and nothing twice.
            for source in self.hub.sources:
                self._positions.put(source.name, source.safe)
            kept = self._positions.write()
            if kept is not None and said is not None:
                said(kept)
            if tell is not None:
                tell()
            if rules is not None:
                self._alert(rules.of_ended(bursts))
        if rules is not None:
            self._alert(rules.of_open(self.hub))
        self._say(said)

    def _alert(self, alerts: Iterable[dict[str, Any]]) -> None:
        if self.webhook is None:
            return
        for alert in alerts:
            self.webhook.post(alert)
            with self.hub.lock:
                self.hub.alerts.append(alert)

    @property
    def problems(self) -> list[str]:
        """Problems of sources that could not be read."""
        return [source.failure for source in self.hub.sources if source.failure is not None]

    def missing(self) -> list[str]:
        """Return what one may take for granted, and is not so in the end: records of each source, alerts that arrived."""
        said = [self._positions.unkept] if self._positions.unkept else []
        for source in self.hub.sources:
            report = self.hub.reports.get(source.name, {})
            if source.failure is None and not any(port["records"] for port in report.get("ports", ())):
                said.append(f"{source.name}: no record has come, in {show.size(source.counts.bytes)}")
        if self.webhook is not None and (lost := self.webhook.undelivered):
            said.append(f"{self.webhook.poster}: {show.many(lost, 'alert')} not delivered")
        return said
