#!/bin/sh
# start.sh CFG DIR [OPTION...]: trains CFG in DIR, or continues the run if DIR has a checkpoint. The options are those that `gtrain run` and
# `gtrain resume` have in common, such as --nproc, --device and -s. Repeat the command until it ends with status 0.
set -eu
cfg=${1:?usage: start.sh CFG DIR [OPTION...]} dir=${2:?usage: start.sh CFG DIR [OPTION...]}
shift 2
if [ -e "$dir/latest" ]; then exec gtrain resume "$dir" "$@"; fi
exec gtrain run "$cfg" --out "$dir" "$@"
