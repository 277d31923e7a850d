"""Runs a command with stderr and stdout on a pseudo-terminal. usage: on_terminal.py COLUMNS[,SECONDS:COLUMNS...] COMMAND...
SECONDS:COLUMNS: the terminal is resized so long after the first painted line. It is one that rewraps its lines, as most do. Prints, as
JSON: status   of the command raw      all that it wrote
  shown    the lines that are left in the end, empty ones not
  paints   [text, columns] of every painted line (between DECAWM off and on), with the terminal's columns then
  rows     the most rows that a painted line ever took: above 1 it was wrapped by a resize"""

import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time


class Terminal:
    """Logical lines; a resize changes how many rows each of them takes, and leaves the cursor at its character."""

    def __init__(self, columns):
        self.lines, self.y, self.x, self.columns, self.wrap = [""], 0, 0, columns, True
        self.paints, self.painting, self.rows, self.edge = [], None, 1, 0

    def put(self, c):
        if not self.wrap and self.x == self.edge:
            self.x -= 1  # what does not fit overwrites the last column
        line = self.lines[self.y].ljust(self.x)
        self.lines[self.y] = line[: self.x] + c + line[self.x + 1 :]
        self.x += 1

    def feed(self, text):
        for m in re.finditer(r"\x1b\[([?0-9;]*)([A-Za-z])|\r|\n|.", text, re.S):
            c = m.group(0)
            if c == "\r":
                self.x -= self.x % self.columns  # the first column of the row, which need not be the line's first row
            elif c == "\n":
                self.y, self.x = self.y + 1, 0
                if self.y == len(self.lines):
                    self.lines.append("")
            elif m.group(2) == "J":
                del self.lines[self.y + 1 :]
                self.lines[self.y] = self.lines[self.y][: self.x]
            elif m.group(2) == "K":
                end = self.x - self.x % self.columns + self.columns
                line = self.lines[self.y]
                self.lines[self.y] = line[: self.x] + (" " * (end - self.x) + line[end:] if len(line) > end else "")
            elif m.group(1) == "?7":
                self.wrap = m.group(2) == "h"
                if self.wrap:
                    self.paints.append([self.painting, self.columns])
                    self.painting = None
                else:
                    self.painting, self.edge = "", self.x - self.x % self.columns + self.columns
            elif not m.group(2):
                if self.painting is not None:
                    self.painting += c
                self.put(c)

    def resize(self, columns):
        self.columns = columns
        if self.paints:
            self.rows = max(self.rows, -(-len(self.lines[self.y]) // columns))


sizes, command = sys.argv[1].split(","), sys.argv[2:]
terminal = Terminal(int(sizes[0]))
resizes = [(float(at), int(columns)) for at, columns in (s.split(":") for s in sizes[1:])]
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, terminal.columns, 0, 0))
    os.execvp(command[0], command)
raw, held, start = "", b"", None
while True:
    if not start and terminal.paints:
        start = time.monotonic()
    wait = max(0, resizes[0][0] - (time.monotonic() - start)) if resizes and start else None
    if not select.select([fd], [], [], wait)[0]:
        columns = resizes.pop(0)[1]
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        terminal.resize(columns)
        continue
    try:
        part = os.read(fd, 65536)
    except OSError:
        break
    if not part:
        break
    held += part
    whole = max(held.rfind(b"\r"), held.rfind(b"\n")) + 1  # no escape sequence is torn there
    text, held = held[:whole].decode(errors="replace"), held[whole:]
    raw += text
    terminal.feed(text)
terminal.feed(held.decode(errors="replace"))
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps({"status": status, "raw": (raw + held.decode(errors="replace")).replace("\r\n", "\n"),
                  "shown": [s.rstrip() for s in terminal.lines if s.strip()], "paints": terminal.paints, "rows": terminal.rows}))
