#!/bin/bash
# The kernels as nvcc compiled them, in PTX, on the host's CUDA runtime (README.md): the table of operations against PyTorch in four
# precisions, optimizers, a training in one kernel. What is changed in the PTX must be noticed.
# tests/run: beside others
set -u
# shellcheck source=tests/ptx/ptx.sh
. "$GTRAIN_SRC/tests/ptx/ptx.sh"
part operations 90 380 "$sim/tests/ops/test_ops" -b cuda
part operations_first_first 80 380 env CUDASIM_FIRST=1 "$sim/tests/ops/test_ops" -b cuda
part table 90 380 "$sim/tests/gpu/tool_table"
part updates 80 40 "$sim/tests/ops/test_updates" -b cuda

# ---- trainings in one kernel, whose blocks wait for each other ----------------------------------------------------------------------
cat >"$tmp/net.cfg" <<'CFG'
schema = 1; name = "net"; seed = 3; reproducible = "run"; log = { every_steps = 1; };
data = { name = "synthetic"; batch = 32; classes = 4; samples = 500; samples_test = 64; };
model = { input = [3, 4, 4]; layers = ( { type = "flatten"; }, { type = "linear"; out = 22; }, { type = "relu"; },
	{ type = "linear"; out = 13; }, { type = "relu"; }, { type = "linear"; out = 4; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; };
CFG
losses() { sed -nE 's/.*"event":"(train|eval)","step":([0-9]+).*"loss":([^,}]+).*/\1 \2 \3/p' "$1/metrics.jsonl"; }
# window NAME LEAST OPTIONS...: a run on the host's kernel, and two on PTX with 1 and with 3 multiprocessors; LEAST losses are compared
window() {
	local name=$1 least=$2 run
	shift 2
	for run in host 1 3; do
		local with=(CUDASIM_SMS="$run" CUDASIM_PTX="$GTRAIN_BUILD/ptx/90")
		[ $run != host ] || with=()
		env "${with[@]}" "$sim/bin/gtrain" run "$tmp/net.cfg" --device cuda -q --no-progress -o "$tmp/$name$run" "$@" >"$tmp/out" 2>&1 ||
			echo "not ok $name: $run: status $?: $(tail -n 1 "$tmp/out")"
	done
	if ! grep -q '(mlp.steps)' <(CUDASIM_SMS=3 "$sim/bin/gtrain" plan "$tmp/net.cfg" --device cuda "$@"); then
		echo "not ok $name: the plan has no kernel for windows"
	elif [ "$(losses "$tmp/${name}1")" != "$(losses "$tmp/${name}3")" ]; then
		echo "not ok $name: another number of multiprocessors gives other losses"
	elif paste -d' ' <(losses "$tmp/${name}host") <(losses "$tmp/${name}3") | awk -v least="$least" '
		{ d = ($3 - $6) / $3; if (d < 0) d = -d; if ($1 != $4 || $2 != $5 || !(d < 1e-6)) bad = 1 }
		END { exit bad || NR < least }'; then
		echo "ok $name"
	else
		echo "not ok $name: the losses differ from those of the host's kernel"
	fi
}
window window 17
adam='train.optimizer={type="adam";lr=0.003;}'
window window_adam 17 -s "$adam"
window window_64_rows 11 -s data.batch=50
# the larger kernel (gt_mlp_division.more)
more=(-s train.clip_norm=0.3 -s train.ema.decay=0.9 -s train.ema.warmup=true -s 'model.layers[2]={type="gelu";}')
window window_more 17 "${more[@]}" -s 'train.class_weights=[0.5,2.0,1.0,3.0]'
window window_more_64_rows 11 "${more[@]}" -s "$adam" -s data.batch=50 -s train.loss=bce
window window_more_128_rows 7 "${more[@]}" -s data.batch=70 -s train.optimizer.momentum=0

# ---- changes that must be noticed ----------------------------------------------------------------------------------------------------
# change NAME FILE SED MESSAGE TEST: with FILE changed by SED, the test of tool_calls must end with MESSAGE.
change() {
	rm -rf "$tmp/changed"
	mkdir "$tmp/changed"
	ln -s "$GTRAIN_BUILD"/ptx/90/*.ptx "$tmp/changed"
	rm "$tmp/changed/$2"
	sed -E "$3" "$GTRAIN_BUILD/ptx/90/$2" >"$tmp/changed/$2"
	if cmp -s "$tmp/changed/$2" "$GTRAIN_BUILD/ptx/90/$2"; then
		echo "not ok change_$1: $2 is as before"
	elif CUDASIM_PTX=$tmp/changed "$sim/tests/cudasim/tool_calls" "$5" >"$tmp/log" 2>&1; then
		echo "not ok change_$1: the tests pass"
	elif grep -q "$4" "$tmp/log"; then
		echo "ok change_$1"
	else
		echo "not ok change_$1: $(tail -n 1 "$tmp/log")"
	fi
}
change barrier softmax.ptx '/bar.sync/d' 'race: ' softmax
change alignment update.ptx 's/(st\.global\.v4\.f32[^[]*\[%rd[0-9]+)\]/\1+4]/' 'is not aligned to 16 bytes' updates
change arithmetic softmax.ptx 's/sub\.rn\.f32/add.rn.f32/' '^not ok softmax: .* the CPU has' softmax
change arguments loss.ptx 's/(param_0)\[[0-9]+\]/\1[8]/' 'bytes for the host, 8 in the kernel' losses
change instruction softmax.ptx 's/ex2\.approx\.ftz\.f32/tanh.approx.f32/' 'an instruction that is not simulated' softmax
change instruction_of_memory softmax.ptx 's/shfl\.sync\.bfly/shfl.sync.idx/' 'an instruction that is not simulated' softmax
