#!/bin/bash
# The plans that the installed cuDNN makes for a card that is only described (dnn_plans.c).
set -u
if [ ! -x "$GTRAIN_BUILD/tests/cuda/dnn_plans" ]; then
	echo 'skip dnn_plans: built without a CUDA toolkit or without cuDNN headers'
	exit 0
fi
exec "$GTRAIN_BUILD/tests/cuda/dnn_plans"
