"""How far `mpirun -n 1` agrees with an ordinary run, and two ranks with IOR (docs/CLUSTER.md, "Agreement").

    python3 docs/ranks.py FOLDER PAIRS IOLAB [IOR]     # IOLAB built with the feature mpi; 2 to 64 pairs

Each pair runs both in random order on the same file in FOLDER. Printed is the mean over the pairs of the logarithm of the ratio, with
Student's t interval.
"""

import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys

from scipy.stats import t

ONE_READER = {"bs": "4k", "backend": "psync", "depth": "1", "region": "512M", "trials_min": "4", "trials_max": "4"}
# What IOR does with -b 256m: each of two ranks reads its half of the file once, in order, into ordinary pages.
TWO_HALVES = {
    "backend": "psync", "depth": "1", "region": "512M", "bytes": "512M", "time": "none", "layout": "shared",
    "cache": "direct", "buffer_memory": "kernel", "latency": "false", "trials_min": "3", "trials_max": "3",
}  # fmt: skip


def by_iolab(command, folder, settings):
    """Medians over the measured trials: MB/s, and CPU ns per request."""
    result = folder / "ranks.iolab"
    result.unlink(missing_ok=True)
    sets = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    run = [*command, "run", "read-size", folder / "ranks.dat", "-o", result, "--budget", "20", *sets]
    subprocess.run(run, capture_output=True, check=True)
    exported = subprocess.run([command[-1], "export", result, "--format", "json"], capture_output=True, check=True)
    trials = [trial for trial in json.loads(exported.stdout) if not trial["warmup"]]
    cpu = [(trial["user_ns"] + trial["system_ns"]) / trial["read_requests"] for trial in trials]
    return statistics.median(trial["throughput_mb_s"] for trial in trials), statistics.median(cpu)


def by_ior(ior, folder, size):
    """MB/s of its passes but the first."""
    job = ["-a", "POSIX", "--posix.odirect", "-r", "-k", "-E", "-i", "4", "-b", "256m", "-t", size]
    ran = subprocess.run(
        ["mpirun", "-n", "2", ior, *job, "-o", folder / "ranks.dat"], capture_output=True, text=True, check=True
    )
    passes = [float(found) * 1.048576 for found in re.findall(r"^read\s+([\d.]+)", ran.stdout, re.MULTILINE)]
    return statistics.median(passes[1:])


def compare(name, pairs, one, other, of=lambda measured: measured):
    """Prints the ratio of what two functions measure."""
    logs = []
    for _ in range(pairs):
        measured = {}
        for which in random.sample([0, 1], 2):
            measured[which] = of((one, other)[which]())
        logs.append(math.log(measured[0] / measured[1]))
    mean = statistics.fmean(logs)
    half = t.ppf(0.975, pairs - 1) * statistics.stdev(logs) / math.sqrt(pairs)
    print(f"{name}: {math.exp(mean):.3f} ({math.exp(mean - half):.3f} to {math.exp(mean + half):.3f})", flush=True)


def main(folder, pairs, iolab, ior=None):
    """Prints a line for each comparison."""
    folder, pairs = pathlib.Path(folder).resolve(), int(pairs)
    with open(folder / "ranks.dat", "wb") as file:
        for _ in range(512):
            file.write(random.randbytes(1 << 20))
    cached = {**ONE_READER, "pattern": "rand", "cache": "hot", "time": "100ms"}
    for name, of in [("MB/s", lambda measured: measured[0]), ("CPU per request", lambda measured: measured[1])]:
        compare(
            f"mpirun -n 1 / ordinary run, 4 KiB from the page cache, {name}",
            pairs,
            lambda: by_iolab(["mpirun", "-n", "1", iolab], folder, cached),
            lambda: by_iolab([iolab], folder, cached),
            of,
        )
    for size in ["64k", "1m"] if ior else []:
        halves = {**TWO_HALVES, "bs": size}
        compare(
            f"two ranks, iolab / IOR, {size}",
            pairs,
            lambda: by_iolab(["mpirun", "-n", "2", iolab], folder, halves)[0],
            lambda: by_ior(ior, folder, size),
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
