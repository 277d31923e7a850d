#!/bin/bash
# Trainings in bf16 against PyTorch under torch.autocast (golden by make_bf16.py), on this processor and as on one with AVX2 only.
# tests/run: beside others
set -u
here=$GTRAIN_SRC/tests/parity golden=$GTRAIN_SRC/tests/golden/parity/bf16.txt
if [ ! -d /usr/share/datasets/fashion-mnist ] && [ ! -d "${GTRAIN_DATA:-}/fashion-mnist" ]; then
	echo "skip bf16: no FashionMNIST in /usr/share/datasets/fashion-mnist (Debian's dataset-fashion-mnist)"
	exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# compare NAME ISA: both round each activation to 2^-8, and the training amplifies it: gtrain is as near to PyTorch's float32 as PyTorch's
# own bf16 (root of the mean square over the steps; 1.0 to 2.7 times were measured on two instruction sets, 4 are allowed), and no step is
# further from PyTorch's bf16 than 1.5 %.
compare() {
	sed -nE 's/.*"event":"train".*"step":([0-9]+).*"loss":([^,}]+).*/\1 \2/p' "$tmp/$1-$2/metrics.jsonl" | awk -v name="$1" -v isa="$2" '
		NR == FNR { if ($1 == "loss" && $2 == name) { f32[$3] = $4; bf16[$3] = $5; n++ } next }
		{
			k++
			d = ($2 - f32[$1]) / f32[$1]
			own = (bf16[$1] - f32[$1]) / f32[$1]
			s += d * d
			so += own * own
			e = ($2 - bf16[$1]) / bf16[$1]
			if (e < 0) e = -e
			if (e > worst) worst = e
		}
		END {
			if (k == 60 && n == 60 && s <= 16 * so && worst <= 0.015) print "ok bf16 " name " " isa
			else print "not ok bf16 " name " " isa ": " k " steps; from float32 " sqrt(s / 60) ", PyTorch " sqrt(so / 60) "; worst " worst
			printf "# bf16 %s %s: from PyTorch in float32 %.2e (PyTorch in bf16: %.2e); from PyTorch in bf16 at most %.2e in a step\n",
				name, isa, sqrt(s / 60), sqrt(so / 60), worst
		}' "$golden" -
}
for name in lenet_adam cnn_silu mlp_adamw; do
	for isa in here AVX2; do
		most=$isa
		[ $isa != here ] || most=${ONEDNN_MAX_CPU_ISA:-ALL}
		if ONEDNN_MAX_CPU_ISA=$most "$GTRAIN" run "$here/$name.cfg" -o "$tmp/$name-$isa" -s precision=bf16 -s train.steps=60 \
			-s checkpoint.every_epochs=0 --device cpu --no-progress -q >"$tmp/log" 2>&1; then
			compare $name $isa
		else
			echo "not ok bf16 $name $isa: $(tail -n 1 "$tmp/log")"
		fi
	done
done
