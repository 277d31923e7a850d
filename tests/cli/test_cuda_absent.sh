#!/bin/bash
# A machine without a GPU: `gtrain devices` says why in one line and ends with 0, --device cuda ends with 69 and the same reason.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"

plugin=$(dirname "$GTRAIN")/../lib/gtrain/cuda.so
if [ -e "$plugin" ]; then reason='no CUDA driver|finds no GPU|the CUDA driver supports CUDA'; else reason='cuda is not installed'; fi

"$GTRAIN" devices --json >"$tmp/out" 2>"$tmp/err"
rc=$?
line=$(grep '"backend":"cuda"' "$tmp/out")
if grep -q '"usable":true' <<<"$line"; then
	echo 'skip cuda_absent: this machine has a GPU'
	exit 0
fi
if [ $rc != 0 ]; then fail devices_status "status $rc"
elif [ "$(grep -c '"backend":"cuda"' "$tmp/out")" != 1 ]; then fail devices_one_line "$(cat "$tmp/out")"
elif ! grep -qE "\"detail\":\"[^\"]*($reason)" <<<"$line"; then fail devices_reason "$line"
elif [ -s "$tmp/err" ]; then fail devices_quiet "$(cat "$tmp/err")"
else pass devices_say_why; fi

for d in cuda cuda:3; do
	name=device_${d//:/_}_is_refused
	"$GTRAIN" run "$GTRAIN_SRC/configs/fmnist_mlp.cfg" --device "$d" -o "$tmp/run" >"$tmp/out" 2>"$tmp/err"
	rc=$?
	# shellcheck disable=SC2016 # a backquote of the message
	if [ $rc != 69 ]; then fail "$name" "status $rc, not 69: $(head -n 1 "$tmp/err")"
	elif [ ! -e "$plugin" ] && ! grep -qF '; `make CUDA=DIR` builds it' "$tmp/err"; then fail "$name" "no remedy: $(head -n 1 "$tmp/err")"
	elif ! grep -qE "$reason" "$tmp/err"; then fail "$name" "no reason: $(head -n 1 "$tmp/err")"
	else pass "$name"; fi
done
