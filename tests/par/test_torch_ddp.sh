#!/bin/bash
# ddp and zero against PyTorch's DistributedDataParallel and ZeroRedundancyOptimizer on gloo: the trainings of tests/par/ddp, goldens by
# tests/golden/make_ddp.py. Every loss within 1e-4 as compare.py asks. DDP_LIVE=1: PyTorch itself is run here and compared, with
# $TORCH_PYTHON (python3); that takes it about a minute, so it is not part of `make check`.
# tests/run: beside others
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if [ ! -d /usr/share/datasets/fashion-mnist ] && [ ! -d "${GTRAIN_DATA:-}/fashion-mnist" ]; then
	echo "skip torch_ddp: no FashionMNIST in /usr/share/datasets/fashion-mnist (Debian's dataset-fashion-mnist)"
	exit 0
fi
golden=$GTRAIN_SRC/tests/golden/ddp
if [ -n "${DDP_LIVE:-}" ]; then
	golden=$tmp/golden
	if ! "${TORCH_PYTHON:-python3}" "$GTRAIN_SRC/tests/golden/make_ddp.py" "$golden" >"$tmp/log.live" 2>&1; then
		echo "not ok torch_ddp live: $(tail -n 1 "$tmp/log.live")"
		exit 1
	fi
	sed -n 's/^# /# live: /p' "$golden/ddp_mlp.txt"
fi
for cfg in "$GTRAIN_SRC"/tests/par/ddp/*.cfg; do
	name=$(basename "$cfg" .cfg)
	if [ ! -e "$golden/$name.txt" ]; then
		echo "skip torch_ddp_$name: $(grep "^$name: " "$tmp/log.live")"
		continue
	fi
	if "$GTRAIN" run "$cfg" -o "$tmp/$name" --device cpu --no-progress -q >"$tmp/log" 2>&1; then
		python3 "$GTRAIN_SRC/tests/parity/compare.py" "$name" "$golden/$name.txt" "$tmp/$name/metrics.jsonl" \
			"$tmp/$name/latest/model.safetensors"
	else
		echo "not ok torch_ddp $name: $(tail -n 1 "$tmp/log")"
	fi
done
