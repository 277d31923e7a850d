"""Runs a command with stderr and stdout on a pseudo-terminal. usage: on_terminal.py SIZE[,SIZE...] COMMAND...
SIZE is COLUMNS, or COLUMNSxN: after N lines with a percentage were painted, the terminal gets the next size; after the last one, the
command gets SIGINT. The terminal is one that rewraps its lines, as most do. Prints, as JSON:
  status   of the command
  seconds  that it ran
  raw      all that it wrote
  shown    the lines that are left in the end, empty ones not
  paints   [text, columns, overtaken] of every painted line (between DECAWM off and on), with the terminal's columns then; overtaken: a
           resize was made while the line was on its way
  rows     the most rows that a painted line ever took: above 1 it was wrapped by a resize"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time


class Terminal:
    """Logical lines; a resize changes how many rows each of them takes, and leaves the cursor at its character."""

    def __init__(self, columns):
        self.lines, self.y, self.x, self.columns, self.wrap = [""], 0, 0, columns, True
        self.paints, self.painting, self.rows, self.edge = [], None, 1, 0
        self.at_size, self.overtaken, self.draining = 0, False, False  # at_size: lines with a percentage that were painted for this size

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
                    self.paints.append([self.painting, self.columns, self.overtaken])
                    self.at_size += not self.overtaken and "%" in self.painting
                    self.overtaken &= self.draining
                    self.painting = None
                else:
                    self.painting, self.edge = "", self.x - self.x % self.columns + self.columns
            elif not m.group(2):
                if self.painting is not None:
                    self.painting += c
                self.put(c)

    def resize(self, columns):
        self.columns, self.at_size = columns, 0
        if self.paints:
            self.rows = max(self.rows, -(-len(self.lines[self.y]) // columns))


def set_size(fd, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


sizes = [[int(n) for n in s.split("x")] for s in sys.argv[1].split(",")]
terminal = Terminal(sizes[0][0])
start = time.monotonic()
pid, fd = pty.fork()
if pid == 0:
    set_size(1, terminal.columns)
    os.execvp(sys.argv[2], sys.argv[2:])
raw, held = "", b""


def feed():
    """Feeds what the command has written. Returns false at its end."""
    global raw, held
    try:
        part = os.read(fd, 65536)
    except OSError:
        return False
    held += part
    whole = max(held.rfind(b"\r"), held.rfind(b"\n")) + 1  # no escape sequence is torn there
    text, held = held[:whole].decode(errors="replace"), held[whole:]
    raw += text
    terminal.feed(text)
    return bool(part)


while feed():
    if len(sizes[0]) == 1 or terminal.at_size < sizes[0][1]:
        continue
    sizes.pop(0)
    if not sizes:
        os.kill(pid, signal.SIGINT)
        sizes = [[0]]
        continue
    set_size(fd, sizes[0][0])
    terminal.resize(sizes[0][0])
    # What can be read now was painted before the resize, and so, perhaps, was the next line.
    terminal.overtaken = terminal.draining = True
    while select.select([fd], [], [], 0)[0] and feed():
        pass
    terminal.draining = False
terminal.feed(held.decode(errors="replace"))
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps({"status": status, "seconds": time.monotonic() - start,
                  "raw": (raw + held.decode(errors="replace")).replace("\r\n", "\n"),
                  "shown": [s.rstrip() for s in terminal.lines if s.strip()], "paints": terminal.paints, "rows": terminal.rows}))
