"""How far iolab agrees with pg_test_fsync, and with fio on the recipe for etcd (docs/VALIDATION.md, "Other tools").

    python3 docs/durable.py FOLDER ROUNDS [IOLAB [PG_TEST_FSYNC]]     # needs fio and pg_test_fsync; 3 to 16 rounds

Each round runs every tool in FOLDER, in random order. Per sync method: the mean over the rounds of the logarithm of iolab's
syncs per second over the other tool's, with Student's t interval.
"""

import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys

from recipes import T

# What pg_test_fsync calls what iolab calls so.
METHODS = {"fdatasync": "sync=fdatasync", "fsync": "sync=each", "open_datasync": "sync=odsync"}
ETCD = ["--rw=write", "--ioengine=sync", "--fdatasync=1", "--size=22m", "--bs=2300"]


def by_pg_test_fsync(program, folder):
    """Syncs per second by method: its first table, one write of 8 KiB for each sync. The other tables are not waited for."""
    rates = {}
    with subprocess.Popen(
        ["stdbuf", "-oL", program, "-s", "1", "-f", folder / "pg.tmp"], stdout=subprocess.PIPE, text=True
    ) as running:
        for line in running.stdout:
            found = re.match(r"\s+(\w+)\s+([\d.]+) ops/sec", line)
            if found and found[1] in METHODS:
                rates[found[1]] = float(found[2])
            if len(rates) == len(METHODS):
                running.terminate()
                break
    return rates


def by_fio(folder):
    """Syncs per second of fio's run of the recipe, in a new file."""
    command = ["fio", "--name=etcd", *ETCD, "--filename=fio.tmp", "--unlink=1", "--output-format=json"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    job = json.loads(ran.stdout[ran.stdout.index("{") :])["jobs"][0]["write"]
    return {"etcd": job["total_ios"] * 1000 / job["runtime"]}


def by_iolab(iolab, folder, *options):
    """Writes per second by sync policy: the mean over the measured trials."""
    result = folder / "durable.iolab"
    result.unlink(missing_ok=True)
    few = ["--set", "trials_min=2", "--set", "trials_max=2", "--budget", "20"]
    subprocess.run(
        [iolab, "run", "durable-log", folder, "-o", result, *few, *options], capture_output=True, check=True
    )
    exported = subprocess.run([iolab, "export", result, "--format", "json"], capture_output=True, check=True)
    rates = {}
    for trial in json.loads(exported.stdout):
        if not trial["warmup"]:
            rates.setdefault(trial["sync"], []).append(trial["write_requests"] * 1e9 / trial["elapsed_ns"])
    return {f"sync={sync}": statistics.mean(values) for sync, values in rates.items()}


def main(folder, rounds, iolab="iolab", pg_test_fsync="pg_test_fsync"):
    """Prints a line for each method."""
    folder = pathlib.Path(folder).resolve()
    page = ["--set", "bs=8k", "--set", "allocate=recycled", "--set", "backend=psync", "--size", "8KiB", "--time", "1"]
    entry = ["--set", "bs=2300", "--set", "allocate=preallocated", "--set", "backend=sync", "--size", "22MiB"]
    entry += ["--set", "sync=fdatasync"]
    tools = [
        lambda: by_pg_test_fsync(pg_test_fsync, folder),
        lambda: by_fio(folder),
        lambda: by_iolab(iolab, folder, *page, "--set", "sync=fdatasync,each"),
        lambda: by_iolab(iolab, folder, *page, "--set", "sync=odsync", "--direct"),
        lambda: {"entry": by_iolab(iolab, folder, *entry, "--time", "none")["sync=fdatasync"]},
    ]
    pairs = {**METHODS, "etcd": "entry"}
    ratios = {theirs: [] for theirs in pairs}
    rates = {theirs: [] for theirs in pairs}
    for _ in range(int(rounds)):
        seen = {}
        for tool in random.sample(tools, len(tools)):
            seen.update(tool())
        for theirs, ours in pairs.items():
            ratios[theirs].append(math.log(seen[ours] / seen[theirs]))
            rates[theirs].append((seen[ours], seen[theirs]))
    for name in ["pg.tmp", "durable.iolab"]:
        (folder / name).unlink(missing_ok=True)
    print(f"{'':<14} {'iolab':>10} {'other tool':>10}  ratio (95 % interval)")
    for theirs, logs in ratios.items():
        mean = statistics.mean(logs)
        half = T[len(logs) - 2] * statistics.stdev(logs) / math.sqrt(len(logs))
        ours, other = (statistics.median(side) for side in zip(*rates[theirs]))
        low, high = math.exp(mean - half), math.exp(mean + half)
        print(f"{theirs:<14} {ours:>8,.0f}/s {other:>8,.0f}/s  {math.exp(mean):.3f} ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main(*sys.argv[1:])
