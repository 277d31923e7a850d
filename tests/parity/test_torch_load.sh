#!/bin/bash
# gtrain's ResNet-18 checkpoint in PyTorch (torch_load.py), a model with tied weights, both ways (torch_tied.py), and files of
# torch.save in gtrain (torch_files.py). $TORCH_PYTHON: a
# Python with torch and safetensors (python3).
# tests/run: beside others
set -u
python=${TORCH_PYTHON:-python3}
if ! "$python" -c 'import torch, safetensors' 2>/dev/null; then
	echo "skip torch_load: $python has no torch and safetensors (set TORCH_PYTHON)"
	exit 0
fi
export OMP_WAIT_POLICY=passive # see test_parity.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$python" "$GTRAIN_SRC/tests/parity/torch_load.py" "$GTRAIN" "$GTRAIN_SRC/configs/resnet18_cifar.cfg" "$tmp" >"$tmp/log" 2>&1 ||
	echo "not ok torch_load: $(tail -n 1 "$tmp/log")"
mkdir "$tmp/tied"
"$python" "$GTRAIN_SRC/tests/parity/torch_tied.py" "$GTRAIN" "$tmp/tied" >>"$tmp/log" 2>&1 ||
	echo "not ok torch_tied: $(tail -n 1 "$tmp/log")"
mkdir "$tmp/files"
"$python" "$GTRAIN_SRC/tests/parity/torch_files.py" "$GTRAIN" "$tmp/files" >>"$tmp/log" 2>&1 ||
	echo "not ok torch_files: $(tail -n 1 "$tmp/log")"
grep -E '^(ok|# )' "$tmp/log"
