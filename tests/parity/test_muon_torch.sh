#!/bin/bash
# 60 steps of Muon against torch.optim.Muon's (make_muon_torch.py): losses, and the momentum_buffer that a checkpoint holds. The golden has
# PyTorch's own training, whose Newton-Schulz iteration runs in bf16, and the same one with it in f32, which is what gtrain does.
# tests/run: beside others
set -u
golden=$GTRAIN_SRC/tests/golden/muon_torch.txt
export OMP_WAIT_POLICY=passive
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if [ ! -d /usr/share/datasets/fashion-mnist ] && [ ! -d "${GTRAIN_DATA:-}/fashion-mnist" ]; then
	echo 'skip muon_torch: no FashionMNIST in /usr/share/datasets/fashion-mnist'
	exit 0
fi
if ! "$GTRAIN" run "$GTRAIN_SRC/tests/parity/muon_torch.conf" -o "$tmp/run" -q --no-progress --device "${PARITY_DEVICE:-cpu}" \
	>"$tmp/log" 2>&1; then
	echo "not ok muon_torch: $(tail -n 1 "$tmp/log")"
	exit 1
fi
python3 - "$golden" "$tmp/run" <<'END'
import json, math, os, struct, sys
golden, run = sys.argv[1:]
loss, buffers = {"loss": {}, "f32": {}}, {"buffer": {}, "buffer_f32": {}}
for line in open(golden):
    w = line.split()
    if w[0] in loss:
        loss[w[0]][int(w[1])] = float(w[2])
    elif w[0] in buffers:
        buffers[w[0]][w[1]] = [float(v) for v in w[2:]]
got = {e["step"]: e["loss"] for e in map(json.loads, open(os.path.join(run, "metrics.jsonl"))) if e["event"] == "train"}
assert len(loss["loss"]) == len(loss["f32"]) == 60 and set(got) >= set(loss["loss"]), "steps"
def worst(kind):
    return max(abs(got[t] - v) / v for t, v in loss[kind].items())
def check(name, value, limit, what):
    print(f"# muon_torch: {what} {value:.2e}")
    print(f"ok {name}" if value <= limit else f"not ok {name}: {value:.3e} > {limit:.3e}")
# The bound of the first is what bf16 does to PyTorch's own training, twice; of the second and of the buffers, rounding in f32, which
# 60 steps of a tanh net amplify to 1e-6 or so.
own = max(abs(loss["f32"][t] - v) / v for t, v in loss["loss"].items())
check("muon_torch_losses", worst("loss"), 2 * own, "worst relative difference of the loss to torch.optim.Muon, 60 steps:")
print(f"# muon_torch: torch.optim.Muon in bf16 and in f32 part by {own:.2e}")
check("muon_torch_losses_f32", worst("f32"), 1e-5, "to torch.optim.Muon with its iteration in f32:")
file = os.path.join(run, "latest", "optimizer.safetensors")
raw = open(file, "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
header = json.loads(raw[8:8 + n])
for name, want in buffers["buffer_f32"].items():
    t = header["momentum_buffer." + name]
    b = struct.unpack(f"<{math.prod(t['shape'])}f", raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]])
    norm, samples = math.sqrt(sum(v * v for v in b)), [b[i] for i in sorted({k * (len(b) - 1) // 15 for k in range(16)})]
    # gradients of a tanh net by weights that are 2e-4 apart at most
    d = max([abs(norm / want[0] - 1)] + [abs(a - w) / (want[0] / math.sqrt(len(b))) for a, w in zip(samples, want[1:])])
    check(f"muon_torch_buffer_{name}", d, 1e-4, f"momentum_buffer of {name}:")
END
