"""What becomes of a run by four ranks when one of them is killed, is stopped, or runs out of space at a random moment
(docs/CLUSTER.md, "Errors").

    python3 docs/ranks_failures.py FOLDER MOMENTS IOLAB     # IOLAB built with the feature mpi; as root, for the full file system

Prints a row per failure: its rank, its moment, seconds until all had ended, exit code, finished trials, message. The exit code is 1
where a process stays, a run file cannot be read, a run cannot be resumed, or the next run leaves a scratch file.
"""

import concurrent.futures
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import uuid

RANKS = 4
MARK = "IOLAB_FAILURES"
SETTINGS = ["bs=4k,64k", "layout=private", "fresh=true", "time=50ms", "trials_max=1000", "precision=0.1"]
# Ranks wait up to 10 min for rank 0 between two trials, and then for each other.
LIMIT = 1000


def environment(pid):
    try:
        text = (pathlib.Path("/proc") / pid / "environ").read_bytes()
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in text.decode(errors="replace").split("\0") if "=" in entry)


def processes(mark):
    """Process numbers of a run by rank; what is no rank has none."""
    found = {}
    for pid in (entry.name for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()):
        own = environment(pid)
        if own.get(MARK) == mark:
            rank = own.get("PMI_RANK", own.get("OMPI_COMM_WORLD_RANK"))
            found.setdefault(None if rank is None else int(rank), []).append(int(pid))
    return found


class Run:
    """One run by all ranks, each in a folder of its own."""

    def __init__(self, iolab, folder, *arguments):
        self.mark = uuid.uuid4().hex
        told = {MARK: self.mark, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        told["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
        self.errors = open(folder / "errors.txt", "w+")
        command = ["mpirun", "-n", str(RANKS), iolab, *arguments]
        self.process = subprocess.Popen(
            command, cwd=folder, env=os.environ | told, stdout=self.errors, stderr=self.errors
        )

    def end(self):
        """Exit code (None: it did not end), and what was told."""
        try:
            code = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            code = None
        self.errors.seek(0)
        return code, self.errors.read()


def measuring(iolab, folder, budget, name):
    sets = [word for setting in SETTINGS for word in ("--set", setting)]
    return Run(iolab, folder, "run", "write-size", "{rank}", "--size", "8M", "--budget", budget, *sets, "-o", name)


def fill(folder, run):
    """Takes what is left of a file system, and what becomes free, until a run ends."""
    free = os.statvfs(folder)
    with open(folder / "other", "ab", buffering=0) as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bfree * free.f_frsize * 9 // 10)
        while run.process.poll() is None:
            try:
                file.write(bytes(1 << 16))
            except OSError:
                time.sleep(0.001)


def failed(iolab, folder, how, rank, moment):
    """A row, and what is wrong with it."""
    run = measuring(iolab, folder, "4s", "run.iolab")
    time.sleep(moment)
    began = time.monotonic()
    if how == "full":
        fill(folder / str(rank), run)
    else:
        for pid in processes(run.mark).get(rank, []):
            os.kill(pid, {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[how])
    code, told = run.end()
    took = time.monotonic() - began
    wrong = []
    # mpirun may end a moment before the ranks that it has killed.
    deadline = time.monotonic() + 10
    while (stays := processes(run.mark)) and time.monotonic() < deadline:
        time.sleep(0.01)
    if code is None or stays:
        wrong.append(f"stays: {stays}")
    count = None
    (folder / str(rank) / "other").unlink(missing_ok=True)
    if (folder / "run.iolab").exists():
        count = sqlite3.connect(folder / "run.iolab").execute("SELECT count(*) FROM sample").fetchone()[0]
        code_of_table = subprocess.run([iolab, "table", "run.iolab"], cwd=folder, capture_output=True).returncode
        if count and code_of_table != 0:
            wrong.append("its run file has no table")
        if code != 0 and how != "full":
            again, said = Run(iolab, folder, "resume", "run.iolab").end()
            if again != 0:
                wrong.append(f"is not resumed: {again}: {said}")
    following, said = measuring(iolab, folder, "1s", "next.iolab").end()
    left = [str(path) for own in range(RANKS) for path in (folder / str(own)).iterdir() if path.name != "lost+found"]
    if following != 0 or left:
        wrong.append(f"the next run: {following}, leaves {left}: {said}")
    # mpirun ends all where one was killed, and before MPI has started nobody knows the others.
    if how != "kill" and code != 0 and f"rank {rank} on " not in told and "MPI has not started" not in told:
        wrong.append(f"it is not named: {told}")
    lines = [line for line in told.splitlines() if "error" in line or "rank" in line.lower() or "BAD" in line]
    message = lines[0].strip() if lines else "-"
    return f"{how}  rank {rank}  after {moment:4.2f} s  ended in {took:6.1f} s  exit code {code}  trials {count}  {message}", wrong


def attempt(iolab, base, how, number):
    rank, moment = random.randrange(RANKS), random.uniform(0.05, 5)
    folder = base / f"{how}{number}"
    disk = folder / str(rank)
    for own in range(RANKS):
        (folder / str(own)).mkdir(parents=True)
    try:
        if how == "full":
            subprocess.run(["truncate", "-s", "1G", folder / "disk"], check=True)
            subprocess.run(["mkfs.ext4", "-q", folder / "disk"], check=True)
            subprocess.run(["mount", "-o", "loop", folder / "disk", disk], check=True)
        return failed(iolab, folder, how, rank, moment)
    finally:
        if how == "full":
            subprocess.run(["umount", disk], check=True)
        shutil.rmtree(folder)


def main(folder, moments, iolab):
    base = pathlib.Path(folder).resolve() / "failures"
    base.mkdir()
    faulty = 0
    for how, at_once in [("kill", 1), ("full", 1), ("stop", 5)]:
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            attempts = [pool.submit(attempt, iolab, base, how, number) for number in range(int(moments))]
            for done in concurrent.futures.as_completed(attempts):
                row, wrong = done.result()
                print(row, flush=True)
                for line in wrong:
                    print("    WRONG:", line, flush=True)
                faulty += bool(wrong)
    base.rmdir()
    print(f"{faulty} of {3 * int(moments)} went wrong")
    sys.exit(faulty > 0)


main(*sys.argv[1:])
