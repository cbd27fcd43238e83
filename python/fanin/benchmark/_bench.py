"""Run one benchmark workload in a process of its own: ``_bench.py EXTENSION WORKLOAD SCALE`` prints what was measured.

Started by `fanin.benchmark` with nothing but the compiled extension in the process, so that peak memory is the simulator's
and valgrind has little else to translate.
"""

import importlib.machinery
import importlib.util
import json
import pathlib
import re
import sys
import tempfile

if __name__ == "__main__":
    extension, workload, scale = sys.argv[1:]
    loader = importlib.machinery.ExtensionFileLoader("fanin._core", extension)
    spec = importlib.util.spec_from_loader("fanin._core", loader)
    assert spec is not None  # noqa: S101 (a loader always gives one)
    core = importlib.util.module_from_spec(spec)
    loader.exec_module(core)
    with tempfile.TemporaryDirectory() as folder:
        try:
            measured = core.bench(workload, float(scale), folder)
        except (ValueError, OSError) as error:
            sys.exit(str(error))
    # getrusage counts the memory of the process that forked this one; the high-water mark of the address space does not.
    status = pathlib.Path("/proc/self/status")
    mark = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE) if status.exists() else None
    if mark is not None:
        measured["peak_rss_mb"] = int(mark[1]) * 1024 / 1e6
    print(json.dumps(measured))  # noqa: T201
