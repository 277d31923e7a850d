#!/bin/bash
# Exported models beside gtrain: outputs of ONNX Runtime (onnx_outputs.py) for configs of every family of layers. $ONNX_PYTHON: a Python
# with onnx, onnxruntime and numpy (python3). EXPORT=full: all configs of configs/, which takes about ten minutes.
# tests/run: beside others
set -u
onnx=${ONNX_PYTHON:-python3}
here=$GTRAIN_SRC/tests/parity
export OMP_WAIT_POLICY=passive # see test_parity.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp
if ! "$onnx" -c 'import onnx, onnxruntime, numpy' 2>/dev/null; then
	echo "skip export_onnx: $onnx has no onnx, onnxruntime and numpy (set ONNX_PYTHON)"
	exit 0
fi

# compare NAME RUN [EXPORT OPTIONS]: exports the model of a run, and compares the outputs
compare() {
	local name=$1 run=$2
	shift 2
	mkdir -p "$tmp/$name.out"
	if ! "$GTRAIN" export "$run" -o "$tmp/$name.onnx" -q "$@" 2>"$tmp/err"; then
		echo "not ok $name: $(head -n 1 "$tmp/err")"
	elif ! "$GTRAIN_BUILD/tests/parity/tool_outputs" ${1:+--pixels} "$run" "$tmp/$name.out" 2>"$tmp/err"; then
		echo "not ok $name: $(head -n 1 "$tmp/err")"
	else
		"$onnx" "$here/onnx_outputs.py" "$tmp/$name.onnx" "$tmp/$name.out" "$name"
	fi
	rm -f "$tmp/$name.onnx"
}

# ---- configs -------------------------------------------------------------------------------------------------------------------
short=' fmnist_mlp fmnist_cnn adult_tabular '
for cfg in "$GTRAIN_SRC"/configs/*.cfg; do
	name=$(basename "$cfg" .cfg)
	[ "${EXPORT:-}" = full ] || [[ $short = *" $name "* ]] || continue
	if ! "$GTRAIN" run "$cfg" --smoke -q --device cpu -o "$tmp/$name" >"$tmp/log" 2>&1 </dev/null; then
		echo "not ok config_$name: $(tail -n 1 "$tmp/log")"
		continue
	fi
	compare "config_$name" "$tmp/$name/run"
	rm -rf "${tmp:?}/$name"
done
