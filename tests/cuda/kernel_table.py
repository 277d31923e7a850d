#!/usr/bin/env python3
"""What the assembler made of every CUDA kernel, from the objects of a build: registers, shared memory, local memory, the width of global
loads and stores, the block size, and the occupancy that follows. Standard library and c++filt only: no disassembler is needed.

Usage: kernel_table.py TABLE OBJECT...     prints a line for each kernel that is worse than its row of TABLE, then a line `# ...`
       kernel_table.py - OBJECT...         prints the table

    eltwise.cu: eltwise  256 threads  0 B shared  0 local  ld 16  st 16  sm_80 33-40 regs 75 %  sm_90 33-40 regs 75 %
        <bf16,op_gelu> <f16,op_gelu>

A row has all instances of a template whose figures are equal; registers are the least and the most of them. local: the number of
instructions that access local memory, to which registers are spilled. ld, st: the widest access to global memory, in bytes; 0: none.
Kernels also have narrow accesses, for the ends of tensors and for pointers that are not aligned.

Sources. An object holds a fatbin (magic 0xba55ed50) with one ELF file for each architecture, which is not compressed. Attributes of a
kernel are in .nv.info (the register count) and .nv.info.NAME (the maximum block size, which is __launch_bounds__; every launch here uses
it). An instruction has 16 bytes; bits 0-11 are the opcode, bits 73-75 of a memory access are its width: 0 ... 3: 1 or 2 bytes, 4: 4, 5: 8,
6: 16 (Mesa, src/nouveau/compiler/nak/sm70_encode.rs). The occupancy is that of NVIDIA's occupancy calculator (CUDA Programming Guide,
"Compute Capabilities", and cuda_occupancy.h): registers are allocated to warps in units of 256, shared memory to blocks in units of 128
bytes with 1 KiB for the system, and warps in multiples of 4."""
import collections
import re
import struct
import subprocess
import sys

# bytes of shared memory of a multiprocessor; machine code for other architectures is not in the table
LIMITS = {80: {"shared": 164 << 10}, 90: {"shared": 228 << 10}}
WARPS, BLOCKS, REGISTERS = 64, 32, 65536  # of a multiprocessor: sm_80 and sm_90
LOAD, STORE, LOCAL = (0x381, 0x981), (0x386, 0x986), (0x983, 0x387, 0x987)
WIDTH = (1, 1, 2, 2, 4, 8, 16, 16)
HEAD = """# Every CUDA kernel as CUDA {} assembles it. tests/cuda/kernel_table.py describes the columns and compares them with a build.
# GTRAIN_UPDATE=1 tests/run build tests/cuda/test_ptxas.sh writes this file."""


def fatbins(data):
    """Yields the architecture and the ELF file of each part of an object that is machine code."""
    at = data.find(b"\x50\xed\x55\xba")
    while at >= 0:
        head, size = struct.unpack_from("<HQ", data, at + 6)
        p, end = at + head, at + head + size
        while p < end:
            kind, _, part, length = struct.unpack_from("<HHIQ", data, p)
            arch, = struct.unpack_from("<I", data, p + 28)
            if kind == 2:
                if data[p + part:p + part + 4] != b"\x7fELF":
                    sys.exit("not ok kernel_table: machine code in a fatbin is compressed: expected nvcc's default")
                yield arch, data[p + part:p + part + length]
            p += part + length
        at = data.find(b"\x50\xed\x55\xba", end)


def sections(elf):
    """Returns the sections of an ELF file as {name: bytes}, and the names of its symbols."""
    offset, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    rows = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + i * size) for i in range(count)]
    text = lambda table, i: elf[rows[table][4] + i:elf.index(b"\0", rows[table][4] + i)].decode()
    out, symbols = {}, []
    for r in rows:
        out[text(names, r[0])] = b"\0" * r[5] if r[1] == 8 else elf[r[4]:r[4] + r[5]]
        if r[1] == 2:
            symbols = [text(r[6], struct.unpack_from("<I", elf, r[4] + k)[0]) for k in range(0, r[5], 24)]
    return out, symbols


def attributes(data):
    """Yields the attributes of a section .nv.info as (code, value)."""
    p = 0
    while p + 4 <= len(data):
        form, code, value = struct.unpack_from("<BBH", data, p)
        p += 4
        if form == 4:
            yield code, data[p:p + value]
            p += value
        else:
            yield code, struct.pack("<H", value)


def occupancy(arch, threads, registers, shared):
    """The percentage of a multiprocessor's warps that can be resident."""
    warps = (threads + 31) // 32
    by_registers = REGISTERS // ((registers * 32 + 255) // 256 * 256) // 4 * 4 // warps if registers else BLOCKS
    by_shared = LIMITS[arch]["shared"] // ((shared + 1024 + 127) // 128 * 128)
    return 100 * warps * min(BLOCKS, WARPS // warps, by_registers, by_shared) // WARPS


def kernels(data):
    """Yields (mangled name, architecture, figures) of every kernel in an object."""
    for arch, elf in fatbins(data):
        if arch not in LIMITS:
            continue
        part, symbols = sections(elf)
        registers = {}
        for code, v in attributes(part[".nv.info"]):
            if code == 0x2f:
                sym, n = struct.unpack("<II", v)
                registers[symbols[sym]] = n
        for name in [s[9:] for s in part if s.startswith(".nv.info.")]:
            code = part[".text." + name]
            width = {"ld": 0, "st": 0}
            local = 0
            for low, high in struct.iter_unpack("<QQ", code):
                op = low & 0xfff
                kind = "ld" if op in LOAD else "st" if op in STORE else None
                if kind:
                    width[kind] = max(width[kind], WIDTH[high >> 9 & 7])
                local += op in LOCAL
            threads = 0
            for c, v in attributes(part[".nv.info." + name]):
                if c == 5:
                    x, y, z = struct.unpack("<III", v)
                    threads = x * y * z
            shared = len(part.get(".nv.shared." + name, b""))
            if shared and ".nv.shared.reserved.0" in part:  # from sm_90 on, the section has the system's 1 KiB too
                shared -= 1024
            yield name, arch, dict(width, local=local, threads=threads, shared=shared, registers=registers[name])


def read(objects):
    """Returns {(file, kernel, instance): {architecture: figures}}."""
    found = []
    for path in objects:
        with open(path, "rb") as f:
            found += [(re.sub(r".*/|\.o$", "", path) + ".cu", *k) for k in kernels(f.read())]
    plain = subprocess.run(["c++filt"], input="\n".join(k[1] for k in found), capture_output=True, text=True, check=True).stdout
    out = collections.defaultdict(dict)
    for (file, _, arch, figures), text in zip(found, plain.split("\n")):
        text = re.sub(r"\(anonymous namespace\)::", "", text)
        text = re.sub(r"^void ", "", re.sub(r"\((?!anonymous)(?:[^()]|\([^()]*\))*\)$", "", text))
        text = re.sub(r"\((?:int|bool)\)", "", text)
        name, _, args = text.partition("<")
        out[file, name, "<" + args if args else "-"][arch] = figures
    return out


def row(key, by_arch):
    """The figures by which a kernel is grouped and compared."""
    any_arch = next(iter(by_arch.values()))
    shared = any_arch["shared"]
    return {"threads": any_arch["threads"], "shared": shared, "local": sum(a["local"] for a in by_arch.values()),
            "ld": min(a["ld"] for a in by_arch.values()), "st": min(a["st"] for a in by_arch.values()),
            **{f"sm_{n}": occupancy(n, a["threads"], a["registers"], shared) for n, a in sorted(by_arch.items()) if a["threads"]}}


def toolkit(objects):
    """The version of the assembler that made the objects."""
    for path in objects:
        with open(path, "rb") as f:
            for _, elf in fatbins(f.read()):
                said = re.search(rb"Cuda compilation tools, release (\d+\.\d+)", sections(elf)[0].get(".note.nv.tkinfo", b""))
                return said.group(1).decode() if said else "unknown"
    return "none"


def text_of(table):
    """The table as lines."""
    groups = collections.defaultdict(list)
    for key, by_arch in table.items():
        groups[key[:2], tuple(row(key, by_arch).items())].append((key[2], by_arch))
    out = []
    for (at, figures), members in sorted(groups.items(), key=lambda g: (g[0][0], sorted(m[0] for m in g[1]))):
        f = dict(figures)
        line = f"{at[0]}: {at[1]}  {f['threads']} threads  {f['shared']} B shared  {f['local']} local  ld {f['ld']}  st {f['st']}"
        for arch in sorted(members[0][1]):
            regs = [m[1][arch]["registers"] for m in members]
            line += f"  sm_{arch} {min(regs)}{'-' + str(max(regs)) if max(regs) > min(regs) else ''} regs {f.get(f'sm_{arch}', 0)} %"
        out.append(line)
        line = "   "
        for instance in sorted(m[0] for m in members):
            if len(line) + len(instance) > 136:
                out.append(line)
                line = "   "
            line += " " + instance.replace(", ", ",")
        out.append(line)
    return out


def parse(lines):
    """The rows of a table as {(file, kernel, instance): figures}."""
    out, figures, at = {}, None, None
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith(" "):
            file, rest = line.split(": ", 1)
            words = rest.split()
            at = file, words[0]
            figures = {"threads": int(words[1]), "shared": int(words[3]), "local": int(words[6]), "ld": int(words[9]), "st": int(words[11])}
            for i in range(12, len(words), 5):
                figures[words[i]] = int(words[i + 3])
            continue
        for instance in re.findall(r"<.*?>(?= <|$)|-", line.strip()):
            out[(*at, instance)] = figures
    return out


def compare(table, old, same_toolkit):
    """Yields a sentence for each kernel that is worse than its row."""
    new = {(k[0], k[1], k[2].replace(", ", ",")): row(k, v) for k, v in table.items()}
    for key in sorted(new.keys() | old.keys()):
        name = f"{key[0]}: {key[1]}{key[2] if key[2] != '-' else ''}"
        if key not in old:
            yield f"{name} has no row"
            continue
        if key not in new:
            yield f"{name} has a row but is not in the build"
            continue
        a, b = old[key], new[key]
        if b["local"]:
            yield f"{name} has {b['local']} accesses to local memory"
        if a["threads"] != b["threads"]:
            yield f"{name}: expected blocks of {a['threads']} threads, got {b['threads']}"
        for kind, word in (("ld", "loads"), ("st", "stores")):
            if b[kind] < a[kind]:
                yield f"{name}: expected {word} of {a[kind]} bytes, got at most {b[kind]}"
        for arch in a.keys() & b.keys() if same_toolkit else ():
            if arch.startswith("sm_") and b[arch] < a[arch]:
                yield f"{name}: expected an occupancy of {a[arch]} % on {arch}, got {b[arch]} %"


def main():
    path, objects = sys.argv[1], sys.argv[2:]
    table, made_by = read(objects), toolkit(objects)
    if path == "-":
        print(HEAD.format(made_by), *text_of(table), sep="\n")
        return
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    same = lines[0] == HEAD.format(made_by).split("\n", maxsplit=1)[0]
    print(*compare(table, parse(lines), same), sep="\n")
    print(f"# kernel_table: {len(table)} kernels, CUDA {made_by}{'' if same else ', not that of the table: occupancies are not compared'}")


if __name__ == "__main__":
    main()
