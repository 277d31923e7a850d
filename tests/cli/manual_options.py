"""Compares the synopsis and the lists of options in gtrain(1) with what `gtrain COMMAND -h` prints from the option tables; with
GTRAIN_UPDATE=1, writes them. They are between .\\" BEGIN and .\\" END lines. The head of an option follows from the table; its text is
written by hand and stays, and that of a new option is its help. usage: manual_options.py GTRAIN PAGE"""

import os
import re
import subprocess
import sys
import textwrap

gtrain, page = sys.argv[1:]


def help_of(*command):
    return subprocess.run([gtrain, *command, "-h"], check=True, capture_output=True, text=True).stdout


def argument(name):
    return " Ar " + name if name else ""


def synopsis(command, text):
    usage = " ".join(text[len("usage: "):text.index("\n\n")].split())
    lines = [".Nm gtrain", ".Cm " + command]
    word = r"(\[)?(?:-(-?[a-z-]+)(?: ([A-Z=]+))?|([A-Z.|]+))(\])?(\.\.\.)?(?: |$)"
    rest = usage[len("gtrain " + command + " "):]
    while rest:
        m = re.match(word, rest)
        if not m:
            sys.exit(f"cannot read the usage of {command}: {rest}")
        optional, option, arg, operand, _, repeated = m.groups()
        item = "Fl " + option + argument(arg) if option else "Ar " + operand
        lines.append(f".Oo {item} Oc Ns ..." if repeated else (".Op " if optional else ".") + item)
        rest = rest[m.end():]
    return lines


def options(text, heading):
    """The options under a heading of the help: (name, head in mdoc, help)."""
    found = []
    section = re.search(rf"^{heading}\n((?:  .*\n)*)", text, re.M)
    for line in section.group(1).splitlines() if section else []:
        m = re.match(r" +(?:-(\w), )?--([a-z-]+)(?: ([A-Z=]+))?(?: +(.*))?$", line)
        if m and len(line) - len(line.lstrip()) < 28:
            letter, name, arg, text = m.groups()
            found.append([name, f".It {f'Fl {letter} , ' if letter else ''}Fl -{name}{argument(arg)}", text or ""])
        else:
            found[-1][2] = (found[-1][2] + " " + line.strip()).strip()
    return found


def list_of(table, old):
    """The list of a table's options, with the texts that the old list has for them."""
    texts, name, depth = {}, None, 0
    for line in old:
        depth += line.startswith(".Bl") - line.startswith(".El")
        if line.startswith(".It ") and depth == 1:
            name = re.search(r"(?:Fl )?-([a-z-]+)(?: Ar|$)", line).group(1)
            texts[name] = []
        elif name and depth:
            texts[name].append(line)
    lines = [".Bl -tag -width Ds"]
    for name, head, text in table:
        lines += [head] + (texts.get(name) or textwrap.wrap(text[:1].upper() + text[1:] + ".", 80))
    return lines + [".El"]


commands = [line.split()[0] for line in re.search(r"^commands\n((?:  .*\n)*)", help_of(), re.M).group(1).splitlines()]
helps = {c: help_of(c) for c in commands}
tables = {c: options(helps[c], "options") for c in commands}
tables["gtrain"] = options(help_of(), "options of every command")
if sum(map(len, tables.values())) < 40:  # an empty table would agree with an empty page
    sys.exit("read only these options: " + str(tables))

before = open(page).read().splitlines()
after, i, listed = [], 0, set()
while i < len(before):
    after.append(before[i])
    m = re.match(r'\.\\" BEGIN (SYNOPSIS|OPTIONS)(?: (\S+))?$', before[i])
    i += 1
    if not m:
        continue
    end = before.index(f'.\\" END {m.group(1)}', i)
    if m.group(1) == "SYNOPSIS":
        after += [line for c in commands for line in synopsis(c, helps[c])]
    else:
        listed.add(m.group(2))
        after += list_of(tables.get(m.group(2), []), before[i:end])
    i = end

for c, table in tables.items():
    if bool(table) != (c in listed):
        sys.exit(f'{page}: {"no" if table else "needless"} lines .\\" BEGIN OPTIONS {c} and .\\" END OPTIONS')
if after != before:
    if os.environ.get("GTRAIN_UPDATE"):
        open(page, "w").write("\n".join(after) + "\n")
    else:
        line = next((k for k, (a, b) in enumerate(zip(after, before)) if a != b), min(len(after), len(before)))
        sys.exit(f"{page}:{line + 1}: differs from the option tables; GTRAIN_UPDATE=1 tests/cli/test_manual.sh writes the page")
