#!/usr/bin/env python3
"""squat.py TEXT UID: as user UID, holds the abstract socket that gtrain's ranks derive from TEXT (engine/team/team_token.c)."""
import hashlib
import os
import socket
import sys
import time

os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX)
s.bind("\0gtrain-" + hashlib.sha256(sys.argv[1].encode()).hexdigest()[:32])
s.listen(16)
print("ready", flush=True)
time.sleep(60)
