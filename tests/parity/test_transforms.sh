#!/bin/bash
# The transforms of images against torchvision's (transforms.py). $TORCH_PYTHON: a Python with torchvision and Pillow (python3).
# $GTRAIN_IMAGENETTE: a tar of JPEGs to compare on; without it, images are made.
# tests/run: beside others
set -u
python=${TORCH_PYTHON:-python3}
if ! "$python" -c 'import torchvision, PIL, numpy' 2>/dev/null; then
	echo "skip transforms: $python has no torchvision and Pillow (set TORCH_PYTHON)"
	exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tar=${GTRAIN_IMAGENETTE-$GTRAIN_SRC/../shared/data/imagenette160-train.tar}
[ -e "$tar" ] || tar=
# shellcheck disable=SC2086
nice "$python" "$GTRAIN_SRC/tests/parity/transforms.py" "$GTRAIN_BUILD/tests/parity/tool_transform" "$tmp" $tar >"$tmp/log" 2>&1 ||
	echo "not ok transforms: $(tail -n 1 "$tmp/log")"
grep -E '^(ok|not ok|# )' "$tmp/log"
