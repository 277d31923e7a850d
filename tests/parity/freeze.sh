# Shared by the tests of parameters that are frozen in a part of the run; sourced after tests/cli/cli.sh.
# shellcheck shell=bash disable=SC2154 # src, gtrain and tmp of cli.sh
cfg=$src/tests/parity/freeze.conf
export OMP_WAIT_POLICY=passive
if [ ! -d /usr/share/datasets/fashion-mnist ] && [ ! -d "${GTRAIN_DATA:-}/fashion-mnist" ]; then
	skip freeze 'no FashionMNIST in /usr/share/datasets/fashion-mnist'
	exit 0
fi
go() { # NAME ARGS...: a run into $tmp/NAME
	local name=$1
	shift
	"$gtrain" run "$cfg" -o "$tmp/$name" -q --no-progress "$@" >"$tmp/log" 2>&1 || fail "freeze_$name" "$(tail -n 1 "$tmp/log")"
}
digest() { cat "$tmp/$1/latest/"{model,optimizer}.safetensors 2>/dev/null | sha256sum; }
as_torch() { # NAME GOLDEN: the run $tmp/NAME has the losses and the tensors of PyTorch
	python3 - "$src/tests/golden/$2" "$tmp/$1" "freeze_$1" <<'END'
import json, math, os, struct, sys
golden, run, name = sys.argv[1:]
raw = open(os.path.join(run, "latest", "model.safetensors"), "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
got = {}
for key, t in json.loads(raw[8:8 + n]).items():
    if key != "__metadata__":
        b = raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]
        got[key] = struct.unpack(f"<{math.prod(t['shape'])}{'q' if t['dtype'] == 'I64' else 'f'}", b)
words = [line.split() for line in open(golden)]
loss = {int(w[1]): float(w[2]) for w in words if w[0] == "loss"}
want = {w[1]: (int(w[2]), float(w[3]), float(w[4])) for w in words if w[0] == "at"}
lines = {e["step"]: e["loss"] for e in map(json.loads, open(os.path.join(run, "metrics.jsonl"))) if e["event"] == "train"}
# Rounding in f32 over 30 steps of a small, smooth net. If AdamW counted its steps from the beginning of the run for parameters that were
# frozen until later, the loss of step 12 would be several per cent away.
worst = max(abs(lines[t] - v) / v for t, v in loss.items())
print(f"# {name}: worst relative difference of the loss to PyTorch, 30 steps: {worst:.2e}")
print(f"ok {name}_losses" if len(loss) == 30 and worst < 1e-4 else f"not ok {name}_losses: {worst:.3e}")
far = {k: max(abs(math.sqrt(sum(x * x for x in got[k])) - norm), abs(sum(got[k]) - total) / math.sqrt(n)) / norm
       for k, (n, norm, total) in want.items()}
worst = max(far, key=far.get)
print(f"# {name}: worst relative difference of a tensor: {worst} {far[worst]:.2e}")
print(f"ok {name}_tensors" if len(want) == len(got) and far[worst] < 1e-3 else f"not ok {name}_tensors: {worst}: {far[worst]:.3e}")
END
}
# every_mode OPTIONS...: each mode has the curve of one rank in 14 steps. 1e-3: sums over ranks have another order, and AdamW's first steps
# amplify it. Pipelines and several ranks normalise over parts of a batch, so the comparison is without batch normalisation.
every_mode() {
	plain=(-s 'model.layers[1]={name="bn1";type="tanh";}' -s 'model.layers[4]={name="bn2";type="tanh";}' -s train.steps=14 "$@")
	local small=(-s parallel.bucket_mb=0.002)
	go plain "${plain[@]}"
	go unclipped "${plain[@]}" -s train.clip_norm=0.0
	curve accumulate -s train.accumulate=4
	curve ddp -s parallel.mode=ddp --nproc 2 "${small[@]}"
	like=unclipped curve ddp_unclipped -s parallel.mode=ddp --nproc 2 -s train.clip_norm=0.0
	curve dp -s parallel.mode=dp --nproc 2
	curve zero1 -s parallel.mode=zero --nproc 2 "${small[@]}"
	curve zero2 -s parallel.mode=zero -s parallel.stage=2 --nproc 2 "${small[@]}"
	curve zero2_bucket -s parallel.mode=zero -s parallel.stage=2 --nproc 2
	curve zero3 -s parallel.mode=zero -s parallel.stage=3 --nproc 2 "${small[@]}" -s train.accumulate=2
	curve pipe -s parallel.mode=pipe --nproc 2
	curve pipe_zb -s parallel.mode=pipe -s parallel.schedule=zero-bubble --nproc 3
	curve pipe_copies -s parallel.mode=pipe -s parallel.replicas=2 -s parallel.across=zero --nproc 4
}
curve() { # NAME ARGS...: as the run $like, or plain
	local name=$1
	shift
	go "$name" "${plain[@]}" "$@"
	python3 - "$tmp/${like:-plain}" "$tmp/$name" "$name" <<'END'
import json, os, sys
a, b = ([e["loss"] for e in map(json.loads, open(os.path.join(d, "metrics.jsonl"))) if e["event"] == "train"] for d in sys.argv[1:3])
worst = max((abs(x - y) / x for x, y in zip(a, b)), default=9)
name, same = "freeze_" + sys.argv[3], len(a) == len(b) == 14 and worst < 1e-3
print(f"ok {name}" if same else f"not ok {name}: {len(b)} steps, {worst:.3e}")
END
}
# every_world OPTIONS...: with reproducible = "world", every mode has the bits of one rank, with batch normalisation.
every_world() {
	local world=(-s 'reproducible="world"' -s data.sampler=gtrain -s train.steps=14 -s train.clip_norm=0.0 -s parallel.shards=4 "$@") mode
	go world "${world[@]}"
	for mode in 'ddp 2' 'zero 2 -s parallel.stage=3' 'pipe 2'; do
		# shellcheck disable=SC2086
		set -- $mode
		go "world_$1" "${world[@]}" -s parallel.mode="$1" "${@:3}" --nproc "$2"
		if [ "$(digest "world_$1")" = "$(digest world)" ]; then pass "freeze_world_$1"; else
			fail "freeze_world_$1" 'other bits than one rank'; fi
	done
}
# resumes NAME STEPS OPTIONS...: a run that is interrupted after one of the steps ends with the bits of one that is not.
resumes() {
	local name=$1 steps=$2 k
	shift 2
	go "all_$name" -s 'reproducible="run"' "$@"
	for k in $steps; do
		go "part_$name" -s 'reproducible="run"' "$@" -s train.steps="$k"
		"$gtrain" resume "$tmp/part_$name" -q -s train.steps=0 >"$tmp/log" 2>&1
		if [ "$(digest "part_$name")" = "$(digest "all_$name")" ]; then pass "freeze_resume_${name}_$k"; else
			fail "freeze_resume_${name}_$k" "other bits than without interruption: $(tail -n 1 "$tmp/log")"; fi
		rm -rf "$tmp/part_$name"
	done
}
# moved A B: the tensors that differ between the newest checkpoints of two runs, or two checkpoints, states of optimizers as STATE.NAME
moved() {
	python3 - "$@" <<'END'
import json, os, struct, sys
def read(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + n])
    return {k: raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]] for k, t in head.items() if k[0] != "_"}
def both(d):
    d = os.path.join(d, "latest") if os.path.exists(os.path.join(d, "latest")) else d
    return {**read(d + "/model.safetensors"), **read(d + "/optimizer.safetensors")}
a, b = both(sys.argv[1]), both(sys.argv[2])
print(*sorted(k for k in a.keys() | b.keys() if a.get(k) != b.get(k)))
END
}
