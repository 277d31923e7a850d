#!/bin/bash
# 16 bits with ranks: the curve of every mode is that of one rank in the same precision. bf16 on the CPU; fp16 on the host's CUDA runtime,
# with a loss scale that overflows at the start and again whenever it has grown: steps are skipped by all ranks or by none, at the same
# steps, and neither the schedule nor Adam's count of steps goes on.
#
# How near. Each sample's values are rounded at the same places by one rank and by several, to 8 or 11 bits; sums over samples are f32 in
# another order. A last bit of such a sum that decides how a value is rounded moves that value by 2^-9 or 2^-12 of itself, one of thousands
# that make a loss. Half such a step is allowed for losses, or, where the net itself amplifies such a step by more, twice as much as one
# rank's losses change when its learning rate changes by 1e-5 of itself: how much that is depends on the CPU (AMX sums in another order).
# Weights and moments are not compared where Adam divides by roots of moments near 0.
# tests/run: beside others
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
# shellcheck source=tests/cudasim/sim.sh
. "$src/tests/cudasim/sim.sh"
# curve DIR: steps applied and skipped, scales and rates; no losses
curve() { grep -E '"event":"(train|skip)"' "$1/metrics.jsonl" | sed -E 's/,"(loss|samples_per_s|acc|time)":[^,}]*//g'; }

# modes NAME CFG LIMIT MODES OPTIONS...: MODES (word:ranks) against one rank; figures of all in one line
modes() {
	local name=$1 cfg=$2 limit=$3 modes=$4 m got worst=0 n=0
	shift 4
	expect=''
	set -- -s train.steps=24 "$@"
	if ! train one "$cfg" "$@"; then
		echo "not ok precision $name: one rank: $why"
		return
	fi
	got=$(printf '%s\n' "$@" | sed -n 's/^train.optimizer.lr=//p')
	got=${got:-$(sed -n 's/.*[ {]lr = \([0-9.e-]*\);.*/\1/p' "$cfg" | head -n 1)}
	if ! train run "$cfg" "$@" -s "train.optimizer.lr=$(awk "BEGIN { printf \"%.12f\", $got * 1.00001 }")"; then
		echo "not ok precision $name: another rate: $why"
		return
	fi
	got=$("$same" -b -l 1 "$tmp/one" "$tmp/run")
	got=${got#loss=} got=${got%%@*}
	limit=$(awk "BEGIN { print ($limit > 2 * $got) ? $limit : 2 * $got }")
	for m in $modes; do
		mode_args "${m%:*}" "${m#*:}"
		if ! train run "$cfg" "$@" "${mode[@]}" ${extra[0]+"${extra[@]}"}; then
			echo "not ok precision ${name}_$m: $why"
			continue
		fi
		if [ "$(curve "$tmp/one" | wc -l)" -lt 24 ] || ! cmp -s <(curve "$tmp/one") <(curve "$tmp/run"); then
			echo "not ok precision ${name}_$m: other steps, scales or rates:" \
				"$(diff <(curve "$tmp/one") <(curve "$tmp/run") | sed -n '2p;$p' | tr '\n' ' ')"
			continue
		fi
		if got=$("$same" -b -l "$limit" "$tmp/one" "$tmp/run"); then
			echo "ok precision ${name}_$m"
		else
			echo "not ok precision ${name}_$m: $got"
		fi
		got=${got#loss=} got=${got%%@*}
		worst=$(awk "BEGIN { print ($got > $worst) ? $got : $worst }") n=$((n + 1))
	done
	echo "# precision: $name: $n modes, losses within $worst of one rank's (limit $limit)"
}
extra=()
all='ddp:2 ddp:3 dp:2 zero1:2 zero2:2 zero3:2 1f1b:2 zero-bubble:2'

# ---- bf16, CPU -------------------------------------------------------------------------------------------------------------------------
modes bf16_sgd "$nets/mlp.cfg" 1e-3 "$all" -s precision=bf16 -s train.accumulate=2 -s data.samples=459
sed 's/ momentum = 0.9;//' "$nets/skip.cfg" >"$tmp/adamw.cfg"
modes bf16_adamw "$tmp/adamw.cfg" 1e-3 "$all" -s precision=bf16 -s train.optimizer.type=adamw -s train.optimizer.lr=0.002 \
	-s train.clip_norm=0.5
extra=(-s parallel.sync_bn=true)
modes bf16_syncbn "$nets/cnn.cfg" 1e-3 'ddp:2 ddp:3 zero1:2 zero2:2 zero3:2' -s precision=bf16
extra=()

# ---- fp16, the host's CUDA runtime -----------------------------------------------------------------------------------------------------
absent=$(sim_absent)
if [ -n "$absent" ]; then
	echo "skip precision_fp16: $absent"
	exit 0
fi
gtrain=$sim/bin/gtrain
cat >"$tmp/half.cfg" <<'C'
schema = 1;
name = "half";
seed = 5;
device = "cuda";
precision = "fp16";
autotune = false;
data = { name = "synthetic"; samples = 195; samples_test = 8; classes = 4; batch = 16; };
model = { input = [2, 6, 6]; layers = (
	{ name = "conv"; type = "conv2d"; out = 8; kernel = 3; padding = 1; }, { type = "silu"; }, { type = "flatten"; },
	{ name = "fc1"; type = "linear"; out = 24; }, { type = "gelu"; }, { name = "fc2"; type = "linear"; out = 16; }, { type = "tanh"; },
	{ name = "fc3"; type = "linear"; out = 4; } ); };
train = { optimizer = { type = "adamw"; lr = 1.0e-3; }; schedule = { type = "cosine"; unit = "step"; t_max = 40.0; }; clip_norm = 1.0;
	loss_scale = { init = 67108864.0; interval = 4; growth = 8.0; }; };
checkpoint = { dir = "unused"; every_epochs = 0; };
log = { every_steps = 1; };
C
# At the start, and again when the scale has grown: or the case says nothing.
modes fp16 "$tmp/half.cfg" 1e-3 "$all"
skips=$(grep -c '"event":"skip"' "$tmp/one/metrics.jsonl") late=$(sed -n 's/.*"event":"skip","step":\([0-9]*\).*/\1/p' \
	"$tmp/one/metrics.jsonl" | tail -n 1)
if [ "${skips:-0}" -ge 4 ] && [ "${late:-0}" -ge 5 ]; then
	echo 'ok precision fp16_overflows'
else
	echo "not ok precision fp16_overflows: $skips skips, the last before step $late"
fi
echo "# precision: fp16: $skips steps skipped, by all ranks of every mode"
