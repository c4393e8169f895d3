"""Results of iolab in Python.

    import iolab

    runs = iolab.read("iolab-results")            # run files, or folders of them
    runs.samples                                  # one row per trial
    runs.cells()                                  # one row per cell: medians, intervals, flags
    runs.claims()                                 # what the runs show
    runs.latency(sample=3).quantile(0.999)        # ns

Rows are a pandas DataFrame where pandas is installed, a list of dicts otherwise. The numbers come from the program iolab, so they
are those of ``iolab table`` and ``iolab export``. Every column has its unit and its meaning in ``frame.attrs["columns"]``; see also
:meth:`Runs.meaning`.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sysconfig
from pathlib import Path

from iolab.histogram import Histogram

__all__ = ["Error", "Histogram", "Runs", "program", "read"]

QUANTITIES = ("service", "response", "lateness")


class Error(Exception):
    """The program iolab refused or failed. ``code`` is its exit code (see ``iolab --help``), ``None`` where it did not start."""

    def __init__(self, message: str, code: int | None = None):
        super().__init__(message)
        self.code = code


def program() -> str:
    """The program iolab: ``$IOLAB``, the one installed with this package, or the first in ``$PATH``."""
    if named := os.environ.get("IOLAB"):
        return named
    installed = Path(sysconfig.get_path("scripts")) / "iolab"
    if installed.exists():
        return str(installed)
    if found := shutil.which("iolab"):
        return found
    raise Error("the program iolab is not installed: install the wheel, which holds it, or name it in $IOLAB")


def read(*paths: str | os.PathLike) -> Runs:
    """Reads run files. A folder stands for all files ``*.iolab`` in it.

    Raises :class:`Error` where a file is missing or no run file.
    """
    files: list[str] = []
    for path in map(Path, paths):
        found = sorted(path.glob("*.iolab")) if path.is_dir() else [path]
        files += [str(file) for file in found]
    if not files:
        raise Error("no run file was given, or found in the folders that were")
    return Runs(files)


class Runs:
    """Some run files."""

    def __init__(self, files: list[str]):
        self.files = files

    @functools.cached_property
    def samples(self):
        """One row per trial, warm-up and failed trials included (columns ``warmup`` and ``ok``); of a trial with several groups of
        workers one row more per group. Columns: ``iolab schema export``."""
        rows = _json("export", "--format", "json", "--", *self.files)
        return _frame(rows, _schema("export")["items"])

    def cells(self):
        """One row per cell: what ``iolab table --format json`` has. Columns: ``iolab schema table``."""
        return _frame(self._table["cells"], _schema("table")["properties"]["cells"]["items"])

    def claims(self) -> list[dict]:
        """What the runs show, and what limits their numbers, in the order in which ``iolab table`` prints it;
        ``iolab schema table`` describes the entries."""
        return self._table["claims"]

    def latency(
        self,
        sample: int,
        operation: str | None = None,
        quantity: str = "service",
        run: str | None = None,
    ) -> Histogram:
        """Latencies of one trial, in ns.

        ``operation`` is read, write, sync, trim or metadata, needed where the trial has several besides syncs; ``quantity`` is service,
        response or lateness. ``run`` is the id of the run (column ``run``), needed where there are several. Histograms can be added up.

        Raises :class:`KeyError` where the trial has none, :class:`ValueError` where something that is needed is missing.
        """
        if quantity not in QUANTITIES:
            raise ValueError(f"quantity is one of {', '.join(QUANTITIES)}, not {quantity}")
        file = self._file_of(run)
        query = """SELECT operation, histogram FROM latency
            WHERE sample_id = ? AND quantity = ? AND group_id = 0 AND rank_id = 0 AND target_id = 0"""
        with _database(file) as database:
            found = dict(database.execute(query, (int(sample), quantity)))
        if operation is None:
            operation = _only_operation(found, f"sample {sample} of {file}")
        if operation not in found:
            raise KeyError(f"sample {sample} of {file} has no {quantity} times of {operation}s")
        return Histogram.decode(found[operation])

    def meaning(self, column: str) -> str:
        """What a column of ``samples`` or ``cells()`` means, with its unit."""
        for rows in (_schema("export")["items"], _schema("table")["properties"]["cells"]["items"]):
            if found := _meaning(rows, column):
                return found
        raise KeyError(column)

    @functools.cached_property
    def _table(self) -> dict:
        return _json("table", "--format", "json", "--", *self.files)

    @functools.cached_property
    def _files(self) -> dict[str, str]:
        """The file of each run, by its id. That iolab has read them all makes sure that they are plain run files."""
        rows = self._table["cells"]
        return {row["run"]: row["file"] for row in rows}

    def _file_of(self, run: str | None) -> str:
        files = self._files
        if run is None and len(files) == 1:
            return next(iter(files.values()))
        if run is None:
            raise ValueError(f"there are {len(files)} runs: name one of {', '.join(files)}")
        return files[run]


class _database:
    """A run file that is read and closed."""

    def __init__(self, file: str):
        uri = Path(file).resolve().as_uri() + "?mode=ro"
        self._connection = sqlite3.connect(uri, uri=True)

    def __enter__(self) -> sqlite3.Connection:
        return self._connection

    def __exit__(self, *_) -> None:
        self._connection.close()


def _run(*words: str) -> str:
    command = [program(), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise Error(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise Error(done.stderr.strip(), done.returncode)
    return done.stdout


def _json(*words: str):
    return json.loads(_run(*words))


@functools.cache
def _schema(name: str) -> dict:
    return _json("schema", name)


def _meaning(rows: dict, column: str) -> str | None:
    named = rows["properties"].get(column)
    for pattern, part in rows.get("patternProperties", {}).items():
        if named is None and re.search(pattern, column):
            named = part
    return named and named["description"]


def _only_operation(found: dict[str, bytes], what: str) -> str:
    """The operation that a trial consists of; a sync belongs to the others."""
    operations = [name for name in found if name != "sync"] or list(found)
    if not operations:
        raise KeyError(f"{what} has no such times")
    if len(operations) > 1:
        raise ValueError(f"{what} has several operations: name one of {', '.join(operations)}")
    return operations[0]


def _frame(rows: list[dict], schema: dict):
    """Rows as a DataFrame with the types of their schema, or as they are without pandas."""
    try:
        import pandas
    except ImportError:
        return rows
    frame = pandas.DataFrame(rows)
    types = {"integer": "Int64", "boolean": "boolean", "number": "float64"}
    for name in frame.columns:
        kinds = schema["properties"].get(name, {}).get("type", "string")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        kind = next(kind for kind in kinds if kind != "null")
        if name.endswith("_utc"):
            frame[name] = pandas.to_datetime(frame[name], utc=True, format="ISO8601")
        elif kind in types:
            frame[name] = frame[name].astype(types[kind])
        elif name.startswith("level_"):
            order = _levels(frame, name)
            frame[name] = pandas.Categorical(frame[name], categories=order, ordered=True)
    frame.attrs["columns"] = {name: _meaning(schema, name) for name in frame.columns}
    return frame


def _levels(frame, name: str) -> list[str]:
    """The levels of a factor in their order: of sizes, times, rates and numbers theirs, of others that of the experiment."""
    named = frame.loc[frame[name].notna(), ["cell", name]]
    levels = list(named.sort_values("cell", kind="stable")[name].unique())
    amounts = [_amount(level) for level in levels]
    # Nothing is nothing in every unit; others of different kinds have no order.
    kinds = {amount and amount[0] for amount in amounts if amount is None or amount[1]}
    if None in kinds or len(kinds) > 1:
        return levels
    return [level for _, level in sorted(zip((amount[1] for amount in amounts), levels))]


_TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_BINARY = {f"{prefix}iB": 1 << 10 * power for power, prefix in enumerate("KMGTP", 1)}
_DECIMAL = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}
# Kind and factor of each unit of levels; a size without one is in bytes.
_UNITS = {
    "": ("number", 1),
    **{unit: ("number", factor) for unit, factor in _BINARY.items()},
    **{f"{unit}/s": ("rate", factor) for unit, factor in (_BINARY | _DECIMAL).items()},
    **{unit: ("time", factor) for unit, factor in _TIMES.items()},
}


def _amount(level: str) -> tuple[str, float] | None:
    """A kind of amount and how much; None of words."""
    found = re.fullmatch(r"([0-9.]+)([A-Za-z/]*)", level)
    if found is None or found[2] not in _UNITS:
        return None
    kind, factor = _UNITS[found[2]]
    return kind, float(found[1]) * factor
