"""What this machine has."""

from __future__ import annotations

import os


def cores() -> int:
    """Return how many cores this process may use; macOS does not restrict a process to some, so that it is all there are."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
