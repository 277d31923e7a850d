#!/bin/bash
# train.ema on the host's CUDA runtime: the net of tests/parity/test_ema.sh with fewer steps has the losses and the average of the CPU.
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin sim_ema
args=(-s 'train.groups=()' -s train.ema.decay=0.9 -s train.epochs=0 -s train.steps=6 -s train.eval_every_steps=3 -s data.name=synthetic
	-s data.root= -s data.samples=96 -s data.samples_test=16 -s data.batch=16 -s data.classes=10)
for device in cpu cuda; do
	"$sim/bin/gtrain" run "$GTRAIN_SRC/tests/parity/freeze.conf" -q --no-progress --device $device -o "$tmp/$device" "${args[@]}" \
		>"$tmp/log" 2>&1 || echo "not ok run_$device: $(tail -n 1 "$tmp/log")"
done
python3 - "$tmp/cpu" "$tmp/cuda" <<'END'
import json, math, os, struct, sys
def tensors(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    for name, t in json.loads(raw[8:8 + n]).items():
        if name != "__metadata__" and t["dtype"] == "F32":
            b = raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]
            yield name, struct.unpack(f"<{len(b) // 4}f", b)
def run(d):
    log = [json.loads(line) for line in open(os.path.join(d, "metrics.jsonl"))]
    model = dict(tensors(os.path.join(d, "latest", "model.safetensors")))
    optim = dict(tensors(os.path.join(d, "latest", "optimizer.safetensors")))
    return [e["loss"] for e in log if e["event"] in ("train", "eval")], model, optim
(a, model, optim), (b, model2, optim2) = map(run, sys.argv[1:])
def far(x, y):
    return math.dist(x, y) / (math.hypot(*x) + 1e-12)
def say(name, worst, ok):
    print(f"# {name}: worst relative difference to the CPU: {worst:.1e}")
    # Six steps in f32, whose sums have another order: some 2^-24 each.
    print(f"ok {name}" if ok and worst < 1e-4 else f"not ok {name}: {worst:.1e}")
say("sim_ema_losses", max((abs(x - y) / x for x, y in zip(a, b)), default=9), len(a) == len(b) >= 8)
say("sim_ema_average", max((far(model[k], model2[k]) for k in model), default=9), model.keys() == model2.keys())
trained = [k for k in optim if k.startswith("trained.")]
say("sim_ema_trained", max((far(optim[k], optim2[k]) for k in trained), default=9), len(trained) > 2)
# The average is not the trained weights, so that the comparison above can fail.
print("ok sim_ema_differs" if any(far(model[k[8:]], optim[k]) > 1e-3 for k in trained) else "not ok sim_ema_differs: the average is equal")
END
