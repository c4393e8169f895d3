"""How far iolab and fio agree on widely used recipes (docs/FIO.md, "What differs on purpose").

    python3 docs/recipes.py FOLDER ROUNDS [IOLAB [alike]]     # needs fio; 2 to 16 rounds

Each round runs every job file of docs/recipes by fio and by iolab, one after the other on the same file in FOLDER, in random
order. Per recipe: the mean over the rounds of the logarithm of iolab's IOPS over fio's, with Student's t interval.

With "alike" both do in the same way what a job file leaves open: fio submits, and takes from the kernel, as many requests at a time
as there are (its default is one), and its buffers lie in huge pages, as iolab's do (sysctl vm.nr_hugepages=128).
"""

import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys

# The quantile 0.975 of Student's t with 1 to 15 degrees of freedom.
T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]
RECIPES = sorted((pathlib.Path(__file__).parent / "recipes").glob("*.fio"))


def by_fio(recipe, folder, alike):
    """Requests per second of a run by fio."""
    text = recipe.read_text()
    depth = re.search(r"^iodepth=(\d+)$", text, re.MULTILINE)
    if alike:
        text += "\nmem=mmaphuge\n"
    if alike and depth:
        text += f"iodepth_batch={depth[1]}\niodepth_batch_complete_max={depth[1]}\n"
    job = folder / "recipe.fio"
    job.write_text(text)
    ran = subprocess.run(["fio", "--output-format=json", job], cwd=folder, capture_output=True, text=True, check=True)
    job = json.loads(ran.stdout[ran.stdout.index("{") :])["jobs"][0]
    requests = job["read"]["total_ios"] + job["write"]["total_ios"]
    return requests * 1000 / max(job["read"]["runtime"], job["write"]["runtime"])


def by_iolab(iolab, recipe, folder):
    """Requests per second of one measured trial by iolab, after its warm-up."""
    result = folder / "recipe.iolab"
    result.unlink(missing_ok=True)
    once = ["--set", "trials_min=1", "--set", "trials_max=1", "--destroy-data"]
    subprocess.run(
        [iolab, "run", recipe, folder / "recipe.tmp", "-o", result, *once], cwd=folder, capture_output=True, check=True
    )
    exported = subprocess.run([iolab, "export", result, "--format", "json"], capture_output=True, check=True)
    trial = next(row for row in json.loads(exported.stdout) if not row["warmup"])
    return (trial["read_requests"] + trial["write_requests"]) * 1e9 / trial["elapsed_ns"]


def main(folder, rounds, iolab="iolab", how="as they stand"):
    """Prints a line for each recipe."""
    folder, alike = pathlib.Path(folder).resolve(), how == "alike"
    with open(folder / "recipe.tmp", "wb") as file:
        for _ in range(1024):
            file.write(random.randbytes(1 << 20))
    ratios = {recipe: [] for recipe in RECIPES}
    rates = {recipe: [] for recipe in RECIPES}
    for number in range(int(rounds) + 1):
        for recipe in random.sample(RECIPES, len(RECIPES)):
            job = recipe.resolve()
            tools = [lambda: by_fio(job, folder, alike), lambda: by_iolab(iolab, job, folder)]
            order = random.sample([0, 1], 2)
            rate = {tool: tools[tool]() for tool in order}
            # The first round is a warm-up.
            if number > 0:
                ratios[recipe].append(math.log(rate[1] / rate[0]))
                rates[recipe].append(rate)
    for recipe in RECIPES:
        values = ratios[recipe]
        mean = statistics.fmean(values)
        half = T[len(values) - 2] * statistics.stdev(values) / math.sqrt(len(values))
        middle = [sorted(rate[tool] for rate in rates[recipe])[len(values) // 2] for tool in (0, 1)]
        print(
            f"| {recipe.stem} | {middle[0]:.0f} | {middle[1]:.0f} | {math.exp(mean):.2f} | "
            f"{math.exp(mean - half):.2f} to {math.exp(mean + half):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
