#!/usr/bin/env python3
"""Whether the live view changes what a run measures: pairs of runs, one that draws and one that does not, in random order.

    python3 docs/drawing.py TARGET PAIRS IOLAB [OPTION OF IOLAB RUN...]

Each run has a pseudo-terminal, so that all but the drawing is the same. Prints for each pair the ratios (drawn over not drawn) of the
medians of throughput and of CPU time per request, and at the end the median ratios with exact intervals (from 6 pairs on, of at
least 95 %). Other programs that use the CPUs widen the interval of the throughput, and hardly that of the CPU time.
"""

import json
import math
import os
import pty
import random
import subprocess
import sys
import tempfile

RUN = ["--bs", "4k", "--set", "trials_min=10", "--set", "trials_max=10", "--time", "100ms", "--budget", "30s"]


def measured(iolab, folder, target, draws, more):
    """Throughput and CPU time per request of a run that draws or does not (medians), and the bytes that it wrote to its terminal."""
    file = os.path.join(folder, f"{random.getrandbits(64):x}.iolab")
    command = [iolab, "run", "read-random", target, *RUN, *more, "-o", file]
    if not draws:
        command.append("--no-live")
    shown = []

    def read(terminal):
        part = os.read(terminal, 65536)
        shown.append(len(part))
        return part

    # What the run shows goes nowhere.
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        status = pty.spawn(["env", "TERM=xterm", *command], read)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
    if status != 0:
        sys.exit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    table = subprocess.run([iolab, "table", file, "--format", "json"], check=True, capture_output=True)
    cell = json.loads(table.stdout)["cells"][0]
    os.remove(file)
    return cell["throughput_mb_s_median"], cell["cpu_ns_per_request_median"], sum(shown)


def interval(ratios):
    """Ends of the exact interval of the median, by order statistics; none below six values."""
    count = len(ratios)
    below = 0.0
    for rank in range(count // 2):
        below += math.comb(count, rank) / 2**count
        if 2 * below > 0.05:
            return (ratios[rank - 1], ratios[count - rank]) if rank > 0 else None
    return None


def main():
    target, pairs, iolab, *more = sys.argv[1:]
    rates, times = [], []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(int(pairs)):
            order = random.sample([True, False], 2)
            found = {draws: measured(iolab, folder, target, draws, more) for draws in order}
            (rate, time, shown), (other_rate, other_time, other_shown) = found[True], found[False]
            rates.append(rate / other_rate)
            times.append(time / other_time)
            print(
                f"{pair + 1:3}  {rate:.1f} against {other_rate:.1f} MB/s: {rates[-1]:.3f}"
                f"   {time:.1f} against {other_time:.1f} ns: {times[-1]:.3f}"
                f"   {shown} against {other_shown} bytes shown",
                flush=True,
            )
    for name, ratios in [("throughput", rates), ("CPU time per request", times)]:
        ratios.sort()
        middle = len(ratios) // 2
        median = (ratios[middle] + ratios[~middle]) / 2
        ends = interval(ratios)
        print(f"{name}: {median:.3f}" + (f" ({ends[0]:.3f} to {ends[1]:.3f})" if ends else ""))


if __name__ == "__main__":
    main()
