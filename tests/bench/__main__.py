"""``python -m tests.bench [NAME ...]``: run the named benchmarks, or all of them, and print what they measured.

A benchmark is a module of this package with ``def run() -> list[str]``. It is found by being there. Targets stand in the lines;
a missed one is printed as MISSED and makes the exit code 1.
"""

import importlib
import pkgutil
import sys
import time

import tests.bench


def names() -> list[str]:
    """The benchmarks, in alphabetical order: every module here that has a ``run``."""
    found = sorted(module.name for module in pkgutil.iter_modules(tests.bench.__path__) if not module.name.startswith("_"))
    return [name for name in found if hasattr(importlib.import_module(f"tests.bench.{name}"), "run")]


def main(wanted: list[str]) -> int:
    available = names()
    unknown = sorted(set(wanted) - set(available))
    if unknown:
        print(f"no benchmark called {', '.join(unknown)}; there are {', '.join(available)}")
        return 2
    missed = False
    for name in wanted or available:
        start = time.monotonic()
        print(f"== {name}", flush=True)
        for line in importlib.import_module(f"tests.bench.{name}").run():
            print(line, flush=True)
            missed = missed or "MISSED" in line
        print(f"   ({time.monotonic() - start:.0f} s)", flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
