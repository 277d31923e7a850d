#!/usr/bin/env python3
"""The predicted time of a step (gtrain check --link) beside the measured one, over links of known bandwidth and latency.

    python3 tests/bench/bench_cost.py BUILD [--rounds N] [--steps N] [MBIT,MICROSECONDS ...]

Two ranks of one thread each run in two network namespaces, which tool_wire joins by a link. Each round measures the kernels of one rank
(gtrain bench --world 2; in two processes at once, because the two hosts are one machine, whose memory and clock they share), the latency
and the bandwidth of each link as gtrain's communicator sees them (small and large collectives of tool_team), and then the step of both
ranks (gtrain bench) for each mode. The tables have the medians of the rounds and, for a machine with other work, the least figures.
Processes run with the highest priority that the user has, because ranks that wait for a processor wait for no link."""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import tempfile

LARGE = 4 << 20  # bytes of the all_reduce that measures a bandwidth
CONFIG = """schema = 1;
name = "cost";
seed = 3;
device = "cpu";
data = { name = "synthetic"; samples = 65536; samples_test = 64; batch = 128; classes = 10; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 8192; }, { type = "relu"; },
	{ name = "middle"; type = "linear"; out = 128; }, { type = "relu"; }, { type = "linear"; out = 10; } ); };
train = { epochs = 4; loss = "cross_entropy"; optimizer = { type = "sgd"; lr = 0.005; momentum = 0.9; }; };
parallel = { mode = "ddp"; timeout = 20.0; };
checkpoint = { dir = ""; };
threads = 1;
"""
MODES = {
    "ddp": [],
    "zero 1": ["parallel.mode=zero", "parallel.stage=1"],
    "zero 2": ["parallel.mode=zero", "parallel.stage=2"],
    "zero 3": ["parallel.mode=zero", "parallel.stage=3"],
    "pipe 1f1b": ["parallel.mode=pipe", "parallel.schedule=1f1b", "parallel.chunks=4", 'parallel.cuts=["middle"]'],
    "pipe gpipe": ["parallel.mode=pipe", "parallel.schedule=gpipe", "parallel.chunks=4", 'parallel.cuts=["middle"]'],
}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("build")
    p.add_argument("links", nargs="*", default=["1000,100", "1000,1000", "2500,100", "2500,1000"])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--calls", type=int, default=500, help="collectives that measure a latency")
    p.add_argument("--modes", default=",".join(MODES))
    a = p.parse_args()
    gtrain, wire = os.path.abspath(f"{a.build}/bin/gtrain"), os.path.abspath(f"{a.build}/tests/par/tool_wire")
    team = os.path.abspath(f"{a.build}/tests/par/tool_team")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        os.nice(-20)
    except PermissionError:
        print("note: without the right to raise the priority, the times depend on the load of the machine")
    with tempfile.TemporaryDirectory() as d:
        os.umask(0o077)
        config, token, times = f"{d}/net.cfg", f"{d}/token", f"{d}/times.json"
        with open(config, "w") as f:
            f.write(CONFIG)
        with open(token, "w") as f:
            f.write(os.urandom(32).hex())

        def run(args, ranks=1):
            """The output of gtrain, in as many processes at once as there are ranks; that of the first is returned."""
            running = [subprocess.Popen([gtrain, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(ranks)]
            done = [(*p.communicate(), p.returncode) for p in running]
            for out, err, status in done:
                if status:
                    raise SystemExit(out + err)
            return done[0][0]

        def sets(mode):
            return [w for s in MODES[mode] for w in ("-s", s)]

        def environment(r):
            return (f"RANK={r} WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 GROUP_RANK={r} GROUP_WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 "
                    f"MASTER_PORT=29500 GTRAIN_TOKEN_FILE={token}")

        def collective(link, size, calls):
            """Seconds of an all_reduce of some bytes."""
            mbit, delay = link.split(",")
            took = []
            for steps in (20, 20 + calls):
                hosts = [f"{environment(r)} {team} -f {token} -s {steps} -b {size} -t 60" for r in range(2)]
                out = subprocess.run([wire, "-b", mbit, "-d", delay, *hosts], capture_output=True, text=True).stdout
                took.append(max(float(x) for x in out.split("seconds=")[1].split(",")))
            return (took[1] - took[0]) / calls

        def measure_link(link):
            """Latency in microseconds, which a small all_reduce takes once, and bandwidth in megabits per second of a large one."""
            latency = collective(link, 8, a.calls)
            data_s = (collective(link, LARGE, max(a.calls // 10, 4)) - 3 * latency) / LARGE
            return 1e6 * latency, 8e-6 / data_s * 1538 / 1448  # Ethernet has 1,538 bytes for 1,448 bytes of data

        def measure(mode, link):
            mbit, delay = link.split(",")

            def host(r):
                command = f"{gtrain} bench {config} {shlex.join(sets(mode))} --steps {a.steps} --json"
                return f"{environment(r)} {command} >{d}/out{r} 2>{d}/err{r}"

            done = subprocess.run([wire, "-b", mbit, "-d", delay, host(0), host(1)], capture_output=True, text=True)
            with open(f"{d}/out0") as f:
                out = f.read()
            if not out:
                with open(f"{d}/err0") as f:
                    raise SystemExit(done.stdout + done.stderr + f.read())
            return json.loads(out)["ranks"][0]["step_ms"]

        got = {(m, l): [] for m in a.modes.split(",") for l in a.links}
        links = {l: [] for l in a.links}
        for _ in range(a.rounds):
            for l in a.links:
                links[l].append(measure_link(l))
            for mode in a.modes.split(","):
                with open(times, "w") as f:
                    f.write(run(["bench", config, *sets(mode), "--world", "2", "--steps", str(a.steps), "--json"], 2))
                for link in a.links:
                    latency, mbit = links[link][-1]
                    given = f"{mbit:.1f}Mbit,{latency:.1f}us"
                    report = run(["check", config, *sets(mode), "--world", "2", "--link", given, "--times", times, "--json"])
                    cost = json.loads(report)["cost"]
                    got[mode, link].append((1e3 * cost["step_s"], measure(mode, link), 1e3 * cost["compute_s"]))
        for l in a.links:
            for i, unit in enumerate(("us", "Mbit/s")):
                values = [x[i] for x in links[l]]
                print(f"{l}: {statistics.median(values):.0f} {unit} (from {min(values):.0f} to {max(values):.0f})")
        for what, of in (("median", statistics.median), ("least", min)):
            print_table(what, of, got)


def print_table(what, of, got):
    """Prints one row for each mode and link, with one figure of all rounds."""
    print(f"\n{what} of the rounds\n\n| mode | link | kernels | predicted | measured | error |\n|---|---|---|---|---|---|")
    worst = 0
    for (mode, link), rows in got.items():
        want, have, kernels = (of(r[i] for r in rows) for i in range(3))
        error = want / have - 1
        worst = max(worst, abs(error))
        mbit, delay = link.split(",")
        name = f"{float(mbit) / 1000:g} Gbit/s, {float(delay) / 1000:g} ms"
        print(f"| {mode} | {name} | {kernels:.1f} ms | {want:.1f} ms | {have:.1f} ms | {100 * error:+.1f} % |")
    print(f"\nworst error: {100 * worst:.1f} %")


if __name__ == "__main__":
    main()
