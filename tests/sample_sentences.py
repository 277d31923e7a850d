#!/usr/bin/env python3
"""sample_sentences.py [SEED]: prints 40 random sentences of the tree: 15 of comments, 10 of manuals, 5 of README.md, 10 of errors.

Give them, and nothing else, to a reader who has not seen the code. What he does not understand at first reading is to be rewritten."""
import random
import re
import subprocess
import sys

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
pick = random.Random(seed)
files = subprocess.check_output(["git", "ls-files", "engine", "kernels", "cli", "datasets"], text=True).split()
sources = [f for f in files if re.search(r"\.(c|h|cu|cuh|cc|hh|inc)$", f)]


def comments():
    """With the line of code beside or below it, as a reader sees it."""
    for f in sources:
        code = open(f, encoding="utf-8").read()
        for m in re.finditer(r"/\*(.*?)\*/", code, re.S):
            text = re.sub(r"\s*\n\s*\*? ?", " ", m.group(1)).strip()
            if len(text.split()) < 5 or text.startswith("-"):
                continue
            before = code[code.rfind("\n", 0, m.start()) + 1 : m.start()].strip()
            after = code[m.end() :].lstrip().split("\n", 1)[0].strip()
            yield f"{f}: `{before or after}`: {text[:700]}"


def manuals():
    for f in subprocess.check_output(["git", "ls-files", "man/*.[157]"], text=True).split():
        text = subprocess.check_output(["mandoc", "-T", "ascii", "-O", "width=900", f], text=True)
        text = re.sub(r".\x08", "", text)
        text = re.sub(r"(\n *)(.{800,})\n *(?=\S)", r"\1\2 ", text)  # mandoc breaks longer paragraphs
        for line in text.split("\n"):
            for s in re.split(r"(?<=[.:]) +(?=[A-Z])", line.strip()):
                if len(s.split()) >= 6 and s.endswith("."):
                    yield f"{f}: {s}"


def readme():
    text = re.sub(r"```.*?```", "", open("README.md", encoding="utf-8").read(), flags=re.S)
    for p in re.split(r"\n\s*\n", text):
        for s in re.split(r"(?<=[.:]) +(?=[A-Z`])", " ".join(p.split())):
            if len(s.split()) >= 6 and s.endswith("."):
                yield f"README.md: {s}"


def errors():
    for f in sources:
        for m in re.finditer(r"\b(gt_fail|gt_conf_refuse|gt_[a-z_]*fail|gt_warn)\([^;]*?((?:\"(?:[^\"\\]|\\.)*\"[\s\w]*)+)",
                             open(f, encoding="utf-8").read()):
            text = "".join(re.findall(r"\"((?:[^\"\\]|\\.)*)\"", m.group(2)))
            if len(text.split()) >= 4:
                yield f"{f}: {text}"


for title, kind, n in ("comments", comments, 15), ("manual pages", manuals, 10), ("README", readme, 5), ("errors", errors, 10):
    print(f"## {title}\n")
    for i, s in enumerate(pick.sample(sorted(set(kind())), n)):
        print(f"{i + 1}. {s}")
    print()
