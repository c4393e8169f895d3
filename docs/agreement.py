"""How far iolab and fio agree over several runs of the disk grid with `--peer fio` (docs/FIO.md, "fio as a peer").

    iolab export --format csv run1.iolab -o run1.csv       # for each run
    python3 docs/agreement.py run1.csv run2.csv ...        # needs pandas and SciPy

In each block the logarithm of fio's throughput over iolab's; a value per run is its mean over the blocks.
"""

import sys

import numpy as np
import pandas as pd
from scipy import stats

COLUMNS = ["block", "workload", "bs_bytes", "threads", "tool", "ok", "warmup"]
PARTS = ["read_bytes", "write_bytes", "elapsed_ns", "read_percent"]


def ratios(file):
    """Logarithms of the ratios of one run, a row for each block and cell."""
    samples = pd.read_csv(file, usecols=lambda name: name in COLUMNS + PARTS, low_memory=False)
    samples = samples[samples.ok & ~samples.warmup].copy()
    samples["workload"] = np.where(samples.read_percent == 100, "reads", "writes")
    moved = samples.read_bytes.fillna(0) + samples.write_bytes.fillna(0)
    samples["rate"] = moved / samples.elapsed_ns
    place = ["block", "workload", "bs_bytes", "threads"]
    tools = samples.pivot_table(index=place, columns="tool", values="rate")
    return np.log(tools.fio / tools.iolab).dropna().rename("ratio").reset_index()


def over_runs(runs, by):
    """Prints a line for each group: the mean over the runs, its interval, and the runs."""
    values = {}
    for run in runs:
        for group, rows in run.groupby(by):
            values.setdefault(group, []).append(rows.groupby("block").ratio.mean().mean())
    for group, means in sorted(values.items()):
        mean, n = np.mean(means), len(means)
        half = stats.t.ppf(0.975, n - 1) * np.std(means, ddof=1) / np.sqrt(n) if n > 1 else np.nan
        low, high = np.exp(mean - half), np.exp(mean + half)
        each = " ".join(f"{value:.2f}" for value in np.exp(means))
        print(*group, f"{np.exp(mean):.3f} [{low:.3f} to {high:.3f}] over {n} runs: {each}")


runs = [ratios(file) for file in sys.argv[1:]]
over_runs(runs, ["workload", "bs_bytes"])
over_runs(runs, ["workload", "bs_bytes", "threads"])
