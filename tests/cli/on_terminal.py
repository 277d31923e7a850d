"""Runs a command with stderr and stdout on a pseudo-terminal. usage: on_terminal.py COLUMNS COMMAND...
Prints, as JSON: the exit status, the raw output, what a person sees at the end (lines after carriage returns and erasures), and the
longest line that was ever drawn."""

import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios

columns, command = int(sys.argv[1]), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(command[0], command)
raw = b""
while True:
    try:
        part = os.read(fd, 65536)
    except OSError:
        break
    if not part:
        break
    raw += part
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
text = raw.decode(errors="replace").replace("\r\n", "\n")
shown, longest = [], 0
for line in text.split("\n"):
    drawn = line.split("\r\x1b[K")  # each one erases what was there
    shown.append(drawn[-1])
    longest = max([longest] + [len(re.sub(r"\x1b\[[0-9;]*m", "", d)) for d in drawn[1:]])
print(json.dumps({"status": status, "raw": text, "shown": [s for s in shown if s], "longest": longest}))
