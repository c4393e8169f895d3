"""The requests of fio against those of iolab, for options of job files that choose offsets, directions and sizes.

python3 docs/iolog.py FOLDER

fio writes a log of its requests (write_iolog); iolab's are its system calls, seen by strace, in one trial. In FOLDER a folder with a file of
64 MiB is made, and removed at the end; $IOLAB is the binary.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile

BLOCK = 4096
MIB = 1 << 20
REGION = 64 * MIB
CALL = re.compile(r"^(\d+) +(pread64|pwrite64)\(\d+<(.*?)>.*, (\d+), (\d+)\) += (\d+)$")


def of_fio(job, folder):
    log = os.path.join(folder, "fio.log")
    if os.path.exists(log):
        os.remove(log)
    subprocess.run(["fio", job, "--write_iolog=" + log], check=True, stdout=subprocess.DEVNULL)
    for line in open(log):
        words = line.split()
        if len(words) == 5 and words[2] in ("read", "write"):
            yield words[2], int(words[3]), int(words[4])


def of_iolab(job, folder, file):
    log, run = os.path.join(folder, "strace.log"), os.path.join(folder, "run.iolab")
    if os.path.exists(run):
        os.remove(run)
    strace = ["strace", "-f", "-y", "-qq", "-e", "trace=pread64,pwrite64", "-e", "signal=none", "-o", log]
    iolab = [os.environ.get("IOLAB", "iolab"), "run", job, "--budget", "1s", "--quiet", "-o", run]
    subprocess.run(strace + iolab, check=True, stdout=subprocess.DEVNULL)
    threads = collections.defaultdict(list)
    for line in open(log):
        call = CALL.match(line.strip())
        if call and call[3].startswith(target) and call[4] == call[6]:
            threads[call[1]].append((call[2][1:-2], int(call[5]), int(call[4])))
    # A trial has one thread, and all do as many requests: the first.
    return max(threads.values(), key=len)


def popular(requests):
    counts = collections.Counter(offset // BLOCK for _, offset, _ in requests)
    most = sorted(counts.values(), reverse=True)
    shares = (sum(most[: REGION // BLOCK * part // 100]) / len(requests) for part in (1, 10, 20))
    return ", ".join(f"{100 * share:.1f} %" for share in shares)


def mean(requests):
    return f"{sum(length for _, _, length in requests) / len(requests) / 1024:.1f} KiB"


ROWS = [
    ("rw=randread norandommap random_distribution=pareto:0.2 bs=4k io_size=120000k", popular),
    ("rw=randread norandommap random_distribution=normal:20 bs=4k io_size=120000k", popular),
    ("rw=randread norandommap bsrange=4k-64k io_size=340m", mean),
]


def main(folder):
    file = os.path.join(folder, "file")
    with open(file, "wb") as data:
        for _ in range(64):
            data.write(os.urandom(MIB))
    for options, seen in ROWS:
        job = os.path.join(folder, "job.fio")
        lines = ["[job]", f"filename={file}", "size=64m", "ioengine=psync", *options.split()]
        with open(job, "w") as text:
            text.write("\n".join(lines) + "\n")
        fio = list(of_fio(job, folder))
        iolab = of_iolab(job, folder, file)
        print(f"{options}\n  fio    {len(fio)} requests: {seen(fio)}")
        print(f"  iolab  {len(iolab)} requests: {seen(iolab)}", flush=True)


with tempfile.TemporaryDirectory(prefix="iolog-", dir=sys.argv[1]) as own:
    main(os.path.realpath(own))
