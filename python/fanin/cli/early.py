"""Ctrl-C while the command line is loaded: it ends the process as it ends any other, without a traceback of imports."""

from __future__ import annotations

import signal
import threading

_BEFORE = signal.getsignal(signal.SIGINT)
_MINE = threading.current_thread() is threading.main_thread() and _BEFORE is signal.default_int_handler

if _MINE:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def over() -> None:
    """Let Ctrl-C be an exception again: all is loaded."""
    if _MINE and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
