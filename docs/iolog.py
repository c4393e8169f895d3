"""The requests of fio against those of iolab, for options of job files that choose offsets, directions and sizes.

python3 docs/iolog.py FOLDER [DEVICE]

fio writes a log of its requests (write_iolog); iolab's are its system calls, seen by strace, in one trial. In FOLDER a folder with a file of
64 MiB is made, and removed at the end; $IOLAB is the binary. DEVICE, whose contents are lost, is for trims: a loop device over a file, as root.
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
DISCARD = re.compile(r"^(\d+) +ioctl\(\d+<(.*?)>, BLKDISCARD, \[(\d+), (\d+)\]\) += 0$")


def of_fio(job, folder):
    log = os.path.join(folder, "fio.log")
    if os.path.exists(log):
        os.remove(log)
    subprocess.run(["fio", job, "--write_iolog=" + log], check=True, stdout=subprocess.DEVNULL)
    for line in open(log):
        words = line.split()
        if len(words) == 5 and words[2] in ("read", "write", "trim"):
            yield words[2], int(words[3]), int(words[4])


def of_iolab(job, folder, target, consent):
    log, run = os.path.join(folder, "strace.log"), os.path.join(folder, "run.iolab")
    if os.path.exists(run):
        os.remove(run)
    strace = ["strace", "-f", "-y", "-qq", "-e", "trace=pread64,pwrite64,ioctl", "-e", "signal=none", "-o", log]
    iolab = [os.environ.get("IOLAB", "iolab"), "run", job, "--budget", "1s", "--quiet", "-o", run]
    subprocess.run(strace + iolab + consent, check=True, stdout=subprocess.DEVNULL)
    threads = collections.defaultdict(list)
    for line in open(log):
        call, discard = CALL.match(line.strip()), DISCARD.match(line.strip())
        if call and call[3].startswith(target) and call[4] == call[6]:
            threads[call[1]].append((call[2][1:-2], int(call[5]), int(call[4])))
        if discard and discard[2].startswith(target):
            threads[discard[1]].append(("trim", int(discard[3]), int(discard[4])))
    # A trial has one thread, and all do as many requests: the first.
    return max(threads.values(), key=len)


def popular(requests):
    counts = collections.Counter(offset // BLOCK for _, offset, _ in requests)
    most = sorted(counts.values(), reverse=True)
    shares = (sum(most[: REGION // BLOCK * part // 100]) / len(requests) for part in (1, 10, 20))
    return ", ".join(f"{100 * share:.1f} %" for share in shares)


def follows(requests):
    end, count = {}, 0
    for direction, offset, length in requests:
        count += end.get(direction) == offset
        end[direction] = offset + length
    return f"{100 * count / len(requests):.1f} %"


def mean(requests):
    return f"{sum(length for _, _, length in requests) / len(requests) / 1024:.1f} KiB"


def pairs(requests):
    trims, writes = requests[0::2], requests[1::2]
    alike = [a[:2] == ("trim", b[1]) and b[0] == "write" for a, b in zip(trims, writes)]
    return f"{len(trims)} trims, {sum(alike)} written at the same offset next"


ROWS = [
    ("rw=randread norandommap random_distribution=pareto:0.2 bs=4k io_size=120000k", popular),
    ("rw=randread norandommap random_distribution=normal:20 bs=4k io_size=120000k", popular),
    ("rw=randrw:8 norandommap rwmixread=80 bs=4k io_size=40000k", follows),
    ("rw=randread norandommap bsrange=4k-64k io_size=340m", mean),
]
TRIMS = ("rw=randtrimwrite bs=64k io_size=32m", pairs)


def main(folder, device=None):
    file = os.path.join(folder, "file")
    with open(file, "wb") as data:
        for _ in range(64):
            data.write(os.urandom(MIB))
    rows = [(options, seen, file) for options, seen in ROWS]
    if device:
        rows.append((*TRIMS, device))
    for options, seen, target in rows:
        job = os.path.join(folder, "job.fio")
        lines = ["[job]", f"filename={target}", "size=64m", "ioengine=psync", *options.split()]
        with open(job, "w") as text:
            text.write("\n".join(lines) + "\n")
        consent = [] if "rw=randread" in options else ["--destroy-data"]
        fio = list(of_fio(job, folder))
        iolab = of_iolab(job, folder, target, consent)
        print(f"{options}\n  fio    {len(fio)} requests: {seen(fio)}")
        print(f"  iolab  {len(iolab)} requests: {seen(iolab)}", flush=True)


with tempfile.TemporaryDirectory(prefix="iolog-", dir=sys.argv[1]) as own:
    main(os.path.realpath(own), *sys.argv[2:])
