#!/bin/bash
# A plugin of another build, whose operations have other numbers, is refused before it gets a call.
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
src=$GTRAIN_SRC
mkdir -p "$tmp/bin" "$tmp/lib/gtrain"
cp "$GTRAIN" "$tmp/bin/gtrain"
for name in cpu null; do
	cat >"$tmp/$name.c" <<-END
		#include "backend.h"
		extern const struct gt_backend gt_backend_$name;
		const struct gt_backend gt_backend_$name = {.name = "$name", .abi = GT_BACKEND_ABI - 1};
	END
	cc -std=gnu17 -D_GNU_SOURCE -I"$src/engine" -I"$src/kernels" -fPIC -shared -o "$tmp/lib/gtrain/$name.so" "$tmp/$name.c" 2>"$tmp/log" ||
		{ echo "not ok plugin_$name: $(head -n 1 "$tmp/log")"; exit; }
	"$tmp/bin/gtrain" plan "$src/configs/lenet.cfg" --device $name >"$tmp/out" 2>&1
	rc=$?
	if [ $rc = 69 ] && grep -q \
		"backend $name has interface version [0-9.]*, but this gtrain needs [0-9.]*: install both from the same build" "$tmp/out"; then
		echo "ok plugin_$name"
	else echo "not ok plugin_$name: status $rc: $(tail -n 1 "$tmp/out")"; fi
done
