"""Streams of queue records, analysed as they come: ``fanin watch``.

The core (`fanin._core.Live`) does all of the analysis; here bytes are fetched, and what came out is served: page, metrics, alerts.
"""

__all__: list[str] = []
