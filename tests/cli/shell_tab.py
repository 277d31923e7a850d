"""Types a line with TABs into a real interactive shell on a pseudo-terminal, presses return, and prints the arguments that `gtrain`
was called with, as [a][b]. usage: shell_tab.py SHELL COMPLETION-FILE GTRAIN LINE   (\\t in LINE is the TAB key)"""

import os
import pty
import re
import select
import signal
import stat
import sys
import tempfile
import time

shell, script, gtrain, line = sys.argv[1], os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3]), sys.argv[4]
line = line.replace("\\t", "\t")


def read_until(fd, pattern, seconds):
    """What the shell printed, up to the pattern or the deadline."""
    text, end = b"", time.monotonic() + seconds
    while time.monotonic() < end and not re.search(pattern, text):
        if select.select([fd], [], [], 0.1)[0]:
            try:
                text += os.read(fd, 65536)
            except OSError:
                break
    return text


def drain(fd):
    """Waits until the shell has printed what a completion prints: nothing new for a moment."""
    end = time.monotonic() + 3
    while time.monotonic() < end and select.select([fd], [], [], 0.15)[0]:
        os.read(fd, 65536)


with tempfile.TemporaryDirectory() as tmp:
    # A gtrain that shows its arguments, and is the real one only where the completion asks it something.
    fake = os.path.join(tmp, "gtrain")
    with open(fake, "w") as f:
        f.write('#!/bin/sh\n[ "$1" = completion ] && exec "%s" "$@"\nprintf "ARGS:"; printf "[%%s]" "$@"; echo\n' % gtrain)
    os.chmod(fake, stat.S_IRWXU)
    work = os.path.join(tmp, "work")
    os.makedirs(os.path.join(work, "runs", "one"))
    for name in ("model.cfg", "image.png"):
        open(os.path.join(work, name), "w").close()
    env = {"PATH": tmp + ":" + os.environ["PATH"], "HOME": tmp, "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    start = {
        "bash": (["bash", "--noprofile", "--norc", "-i"], "bind 'set enable-bracketed-paste off'; source '%s'" % script),
        "zsh": (["zsh", "-f", "-i"], "unsetopt zle_bracketed_paste prompt_sp; fpath=('%s' $fpath); "
                "autoload -Uz compinit; compinit -u -D" % os.path.dirname(script)),
        "fish": (["fish", "--no-config", "-i"], "source '%s'" % script),
    }[shell]
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(work)
        os.execvpe(start[0][0], start[0], env)
    # The shell sets its terminal up after it starts: a question it has answered proves that it reads.
    os.write(fd, (start[1] + "; echo REA''DY\r").encode())
    read_until(fd, rb"READY", 20)
    time.sleep(0.2)
    for key in line:
        os.write(fd, key.encode())
        if key == "\t":
            drain(fd)
    os.write(fd, b"\r")
    text = read_until(fd, rb"ARGS:[^\r\n]*\r?\n", 20)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    found = re.search(rb"ARGS:([^\r\n]*)", text)
    print(found.group(1).decode() if found else "nothing: " + repr(text[-300:]))
