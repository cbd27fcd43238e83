"""Run one benchmark workload in a process of its own: ``_bench.py EXTENSION WORKLOAD SCALE`` prints what was measured.

Started by `fanin.benchmark` with nothing but the compiled extension in the process, so that peak memory is the simulator's
and valgrind has little else to translate.
"""

import importlib.machinery
import importlib.util
import json
import sys

if __name__ == "__main__":
    extension, workload, scale = sys.argv[1:]
    loader = importlib.machinery.ExtensionFileLoader("fanin._core", extension)
    spec = importlib.util.spec_from_loader("fanin._core", loader)
    assert spec is not None  # noqa: S101 (a loader always gives one)
    core = importlib.util.module_from_spec(spec)
    loader.exec_module(core)
    try:
        print(json.dumps(core.bench(workload, float(scale))))  # noqa: T201
    except ValueError as error:
        sys.exit(str(error))
