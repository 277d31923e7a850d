#!/bin/bash
# Whole trainings against PyTorch's losses and weights (goldens by make_parity.py). PARITY=full runs all 200 steps of
# everything; else the big nets and those that amplify rounding stop early (the figures say where). PARITY_ONLY: a word
# in the names to run; PARITY_DEVICE: not cpu. Nets that need FashionMNIST are skipped where
# there is none in Debian's folder or $GTRAIN_DATA/fashion-mnist.
# tests/run: beside others
set -u
here=$GTRAIN_SRC/tests/parity golden=$GTRAIN_SRC/tests/golden/parity
export OMP_WAIT_POLICY=passive # waiting threads sleep: on a machine that is busy with something else, spinning ones cost a factor of 25
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if ! python3 "$here/make_data.py" "$tmp/data"; then
	echo "not ok parity data: make_data.py failed"
	exit 1
fi
for cfg in "$here"/*.cfg; do
	name=$(basename "$cfg" .cfg)
	case $name in *"${PARITY_ONLY:-}"*) ;; *) continue ;; esac
	case $name in
	resnet20* | vgg11 | seq_*) ;;
	*) if [ ! -d /usr/share/datasets/fashion-mnist ] && [ ! -d "${GTRAIN_DATA:-}/fashion-mnist" ]; then
		echo "skip parity $name: no FashionMNIST in /usr/share/datasets/fashion-mnist (Debian's dataset-fashion-mnist)"
		continue
	fi ;;
	esac
	set -- -s "checkpoint.every_epochs=0"
	case $name in
	mlp_adam) steps=100 ;; # past which PyTorch's own two runs part by percents
	cnn_bn | resnet20* | vision) steps=40 ;;
	vgg11) steps=12 ;;
	recipe) steps=60 ;;
	seq_*) steps=100 ;;
	*) steps=200 ;;
	esac
	[ "${PARITY:-}" = full ] && [ "$name" != recipe ] && [ "${name%%_*}" != seq ] && steps=200
	case $name in resnet20* | vgg11) set -- "$@" -s "data.root=$tmp/data" ;; esac
	set -- "$@" -s "train.steps=$steps" --device "${PARITY_DEVICE:-cpu}"
	"$GTRAIN" run "$cfg" -o "$tmp/$name" "$@" --no-progress -q >"$tmp/log" 2>&1
	rc=$?
	if [ $rc != 0 ]; then
		how='not ok' # what a device refuses by name (69) is no wrong number
		[ $rc = 69 ] && [ "${PARITY_DEVICE:-cpu}" != cpu ] && how=skip
		echo "$how parity $name: $(tail -n 1 "$tmp/log")"
		continue
	fi
	python3 "$here/compare.py" "$name" "$golden/$name.txt" "$tmp/$name/metrics.jsonl" "$tmp/$name/latest/model.safetensors"
done
