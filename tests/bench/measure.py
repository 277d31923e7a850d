#!/usr/bin/env python3
"""Runs a command that prints JSON lines with "event": "train" and measures it from outside: standard library only.

Usage: measure.py COMMAND…       prints  FIRST SPAN COUNT RSS WALL
FIRST  seconds from before exec to the first train line         SPAN   median seconds between train lines, the first gap left out if there
COUNT  train lines                                                     are more (warm-up)
RSS    peak resident memory, MiB                                WALL   seconds to the end"""
import json
import os
import statistics
import subprocess
import sys
import time

start = time.monotonic()
p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
times = []
for line in p.stdout:
    if line.startswith("{") and json.loads(line).get("event") == "train":
        times.append(time.monotonic() - start)
_, status, usage = os.wait4(p.pid, 0)
wall = time.monotonic() - start
p.returncode = os.waitstatus_to_exitcode(status)
if p.returncode != 0 or not times:
    sys.exit(f"measure.py: status {p.returncode}, {len(times)} train lines: {' '.join(sys.argv[1:])}")
gaps = [b - a for a, b in zip(times, times[1:])]
if len(gaps) > 1:
    gaps = gaps[1:]
print(f"{times[0]:.3f} {statistics.median(gaps) if gaps else 0:.4f} {len(times)} {usage.ru_maxrss / 1024:.0f} {wall:.3f}")
