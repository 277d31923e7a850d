"""Attacks the ports of a run on several hosts (test_host_attacks.sh): attack_hosts.py PORT SECONDS

Holds 1,000 connections that say nothing to PORT, and connections to the two following ports. For SECONDS, it sends garbage on further
connections: random bytes, the beginning of a proof, HTTP, one byte at a time, and connections that are reset at once. Prints the number of
connections of each kind when the silent ones are open, and again at the end."""
import os
import random
import resource
import socket
import struct
import sys
import time

port, seconds = int(sys.argv[1]), float(sys.argv[2])
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
random.seed(5)


def connect(k):
    s = socket.socket()
    s.settimeout(2)
    try:
        s.connect(("127.0.0.1", port + k))
    except OSError:
        s.close()
        return None
    return s


silent = [s for s in (connect(0) for _ in range(1000)) if s]
silent += [s for s in (connect(k) for k in (1, 2) for _ in range(100)) if s]
print(f"silent {len(silent)}", flush=True)
kinds = [
    lambda: os.urandom(random.randrange(1, 4096)),
    lambda: os.urandom(72),  # as long as a proof
    lambda: struct.pack("<II", 1, 3) + os.urandom(random.randrange(1, 64)),  # right claims, and an incomplete or wrong proof
    lambda: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    lambda: b"\xff" * 65536,
    lambda: b"",
]
sent = 0
until = time.monotonic() + seconds
while time.monotonic() < until:
    s = connect(random.randrange(3))
    if not s:
        continue
    sent += 1
    try:
        for part in (kinds[random.randrange(len(kinds))](),) * random.randrange(1, 3):
            s.sendall(part)
        if random.random() < 0.5:  # a reset instead of an orderly end
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif random.random() < 0.5:
            s.shutdown(socket.SHUT_WR)
            s.recv(4096)
    except OSError:
        pass
    s.close()
    time.sleep(0.002)
print(f"garbage {sent}", flush=True)
