#!/bin/bash
# The configs of published networks beside torchvision's modules (torchvision_models.py), and `gtrain init` with their weights
# (torch_init.py). $TORCH_PYTHON: a Python with torch, torchvision,
# safetensors and PIL (python3).
# tests/run: beside others
set -u
python=${TORCH_PYTHON:-python3}
if ! "$python" -c 'import torch, torchvision, safetensors, PIL' 2>/dev/null; then
	echo "skip torchvision_models: $python has no torch, torchvision, safetensors and PIL (set TORCH_PYTHON)"
	exit 0
fi
export OMP_WAIT_POLICY=passive # see test_parity.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$python" "$GTRAIN_SRC/tests/parity/torchvision_models.py" "$GTRAIN" "$GTRAIN_SRC/configs" "$tmp" >"$tmp/log" 2>&1 ||
	echo "not ok torchvision_models: $(tail -n 1 "$tmp/log")"
mkdir "$tmp/init"
"$python" "$GTRAIN_SRC/tests/parity/torch_init.py" "$GTRAIN" "$tmp/init" >>"$tmp/log" 2>&1 ||
	echo "not ok torch_init: $(tail -n 1 "$tmp/log")"
grep -E '^(ok|not ok|# )' "$tmp/log"
