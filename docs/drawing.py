#!/usr/bin/env python3
"""Whether the live view changes what a run measures: pairs of runs, one that draws and one that does not, in random order.

    docs/drawing.py TARGET [PAIRS] [IOLAB-OPTION...]

Each run has a pseudo-terminal of 80 x 24, so that all but the drawing is the same. Prints the ratio of the medians of each pair (drawn
over not drawn), and the median ratio with its exact interval (from 6 pairs on, of at least 95 %).
"""

import json
import math
import os
import pty
import random
import shutil
import subprocess
import sys
import tempfile

IOLAB = os.environ.get("IOLAB", "iolab")
RUN = ["--bs", "4k", "--set", "trials_min=12", "--set", "trials_max=12", "--time", "100ms", "--budget", "30s"]


def measured(folder, target, draws, more):
    """The median of a run that draws or does not, and the bytes that it wrote to its terminal."""
    file = os.path.join(folder, f"{random.getrandbits(64):x}.iolab")
    command = [IOLAB, "run", "read-random", target, *RUN, *more, "-o", file]
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
    table = subprocess.run([IOLAB, "table", file, "--format", "json"], check=True, capture_output=True)
    cell = json.loads(table.stdout)["cells"][0]
    os.remove(file)
    return cell["throughput_mb_s_median"], sum(shown)


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
    target, pairs, more = sys.argv[1], int((sys.argv[2:] or ["20"])[0]), sys.argv[3:]
    if shutil.which(IOLAB) is None:
        sys.exit(f"there is no {IOLAB}: name it with IOLAB=PATH")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(pairs):
            order = random.sample([True, False], 2)
            found = {draws: measured(folder, target, draws, more) for draws in order}
            ratios.append(found[True][0] / found[False][0])
            print(
                f"{pair + 1:3}  drawn {found[True][0]:10.1f} MB/s ({found[True][1]} bytes shown)"
                f"  not drawn {found[False][0]:10.1f} MB/s ({found[False][1]})  ratio {ratios[-1]:.3f}",
                flush=True,
            )
    ratios.sort()
    middle = len(ratios) // 2
    median = (ratios[middle] + ratios[~middle]) / 2
    ends = interval(ratios)
    print(f"median ratio {median:.3f}" + (f" ({ends[0]:.3f} to {ends[1]:.3f})" if ends else ""))


if __name__ == "__main__":
    main()
