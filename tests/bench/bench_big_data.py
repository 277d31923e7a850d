#!/usr/bin/env python3
"""Measures gtrain with much data: standard library only.

Usage: bench_big_data.py GTRAIN WORKDIR DATA...

DATA is a file or folder of tests/bench/make_big_data.py, WORKDIR an empty folder. For each DATA, runs init, check, check again (with the
index that the first one has written), show, run and resume in WORKDIR, and prints a row for each command: seconds of processor time and of
wall time, and the peak of resident memory in MB. run and resume are measured until their first step is done; then they get SIGTERM, and
the rest (the checkpoint, the end) is not measured. The row of a command that fails has the message.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")


def read_usage(pid):
    """Returns (processor seconds, peak MB) of a process that is running."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rpartition(")")[2].split()
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        peak = [int(line.split()[1]) for line in f if line.startswith("VmHWM:")]
    return (int(fields[11]) + int(fields[12])) / TICKS, (peak[0] if peak else 0) / 1024


def measure_command(argv, cwd, until_step):
    start = time.monotonic()
    notes = tempfile.TemporaryFile("w+")
    p = subprocess.Popen(argv, cwd=cwd, stdout=subprocess.PIPE, stderr=notes, text=True)
    at_step = None
    if until_step:
        for line in p.stdout:
            if at_step is None and line.startswith("{") and json.loads(line).get("event") == "train":
                at_step = (*read_usage(p.pid), time.monotonic() - start)
                p.send_signal(signal.SIGTERM)
    else:
        p.stdout.read()
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    notes.seek(0)
    message = notes.read().strip().replace("\n", "; ")
    if at_step:
        return at_step, ""
    whole = (usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, time.monotonic() - start)
    return whole, message if p.returncode or until_step else ""


def measure_data(gtrain, work, data):
    name = os.path.basename(data)
    config = os.path.join(work, name + ".cfg")
    target = [] if os.path.isdir(data) else ["--target", "target"]
    steps = ["log.every_steps=1", "checkpoint.dir=runs/" + name]
    options = [word for key in steps for word in ("-s", key)]
    commands = [("init", ["init", data, *target, "-o", config], False), ("check", ["check", config], False),
                ("again", ["check", config], False), ("show", ["show", config], False), ("run", ["run", "--json", config, *options], True),
                ("resume", ["resume", "--json", "runs/" + name], True)]
    for word, argv, until_step in commands:
        (cpu, peak, wall), message = measure_command([gtrain, *argv], work, until_step)
        print(f"{name:24} {word:7} {cpu:8.2f} s cpu {wall:8.2f} s wall {peak:8.0f} MB  {message[-160:]}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    os.environ["XDG_CACHE_HOME"] = os.path.abspath(sys.argv[2])  # of the indices
    for path in sys.argv[3:]:
        measure_data(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), os.path.abspath(path))
