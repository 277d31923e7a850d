#!/bin/bash
# Recomputation (plan/recompute.c) changes memory, not a bit of the result: weights, running statistics, losses and state are those of a run
# that keeps everything.
# tests/run: beside others
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cfg=$GTRAIN_SRC/tests/cli/recompute.cfg
sed 's/\(block = "[a-z]*";\)/\1 recompute = true;/' "$cfg" >"$tmp/blocks.cfg"
sed 's/{ type = "\(conv2d\|batchnorm2d\|relu\|global_avgpool\|batchnorm1d\|tanh\)";/& recompute = true;/
	s/\(block = "[a-z]*";\)/\1 recompute = true;/' "$cfg" >"$tmp/all.cfg"
cp "$cfg" "$tmp/none.cfg"

losses() { grep -o '"loss":[^,]*' "$1/metrics.jsonl"; }
bytes() { # config, options: activations of the plan on the CPU
	"$GTRAIN" check "$@" --device cpu --json | grep -o '"activations":[0-9]*' | grep -o '[0-9]*'
}
cmd=$GTRAIN device=cpu least=6 variants='none:cheap blocks:none blocks:cheap all:none all:cheap'
run() { "$cmd" run "$tmp/$1.cfg" --device $device -o "$tmp/$2" "${@:3}" >"$tmp/log" 2>&1 ||
	{ echo "not ok recompute_$2: $(tail -n 1 "$tmp/log")"; return 1; }; }

set_of() { # precision and accumulation, options
	local what=$1 one
	shift
	run none "none-$what" "$@" || return
	for one in $variants; do
		local name=${one/:/_}_$what
		run "${one%:*}" "$name" -s train.recompute="${one#*:}" "$@" || continue
		if cmp -s "$tmp/none-$what/latest/model.safetensors" "$tmp/$name/latest/model.safetensors" &&
			[ "$(losses "$tmp/none-$what")" = "$(losses "$tmp/$name")" ] &&
			[ "$(losses "$tmp/$name" | wc -l)" -ge $least ]; then
			echo "ok recompute_$name"
		else
			echo "not ok recompute_$name: other weights or losses"
		fi
	done
}
set_of fp32
set_of bf16 -s precision=bf16
set_of accumulate -s train.accumulate=2 -s train.clip_norm=0.5
set_of adam -s train.optimizer.type=adam -s train.optimizer.lr=1e-3 -s winograd=false

kept=$(bytes "$tmp/none.cfg")
for one in none:cheap blocks:none blocks:cheap; do
	now=$(bytes "$tmp/${one%:*}.cfg" -s train.recompute="${one#*:}")
	if [ -n "$now" ] && [ "$now" -lt $((kept * 9 / 10)) ]; then
		echo "ok recompute_${one/:/_}_bytes"
	else
		echo "not ok recompute_${one/:/_}_bytes: $now of $kept"
	fi
done

# the plan: a dropped convolution is there twice, running statistics are updated once
"$GTRAIN" plan "$tmp/blocks.cfg" --device null | awk '/^#/ { n++ } n == 1' >"$tmp/plan"
if [ "$(grep -c 'launch conv2d  *one.0.conv1 ' "$tmp/plan")" = 2 ] && [ "$(grep -c 'launch batchnorm  *one.0.bn1 ' "$tmp/plan")" = 1 ] &&
	[ "$(grep -c 'launch batchnorm.y  *one.0.bn1 ' "$tmp/plan")" = 1 ]; then echo "ok recompute_plan"; else echo "not ok recompute_plan"; fi

# the resolved config says it layer by layer; the output of a block is kept
resolved=$tmp/blocks_none_fp32/latest/config.cfg
if grep -q 'name = "one.0.conv1".*recompute = true' "$resolved" &&
	! grep -q 'name = "one.0.relu2".*recompute' "$resolved"; then
	echo "ok recompute_config"
else
	echo "not ok recompute_config"
fi

# the same through the CUDA backend, on the host's CUDA runtime
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
why=$(sim_absent)
if [ -n "$why" ]; then
	echo "skip recompute_cuda: $why"
else
	cmd=$sim/bin/gtrain device=cuda least=2 variants='none:cheap all:cheap'
	few='-s data.samples=12 -s data.samples_test=4 -s data.batch=8 -s train.epochs=1'
	# shellcheck disable=SC2086
	set_of cuda $few -s reproducible=run # a convolution's algorithm is chosen by time otherwise
	# shellcheck disable=SC2086
	set_of cuda_fp16 $few -s reproducible=run -s precision=fp16
fi
