#!/bin/bash
# What README.md shows works: its config, its commands.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
readme=$src/README.md
awk '/^```$/ { block = !block; if (!block && config) exit; next } block && /^schema = / { config = 1 } block && config' "$readme" >"$tmp/readme.cfg"
gives config 0 out 'fmnist-mlp' check "$tmp/readme.cfg"
commands | grep -vx help >"$tmp/a"
sed -n 's/^| `gtrain \([a-z]*\).*/\1/p' "$readme" >"$tmp/b"
if why=$(diff "$tmp/a" "$tmp/b"); then pass commands; else fail commands "$(tr '\n' ';' <<<"$why")"; fi
# The layer types, losses, optimizers and schedules of the table are in the schema.
missing=
while read -r w; do
	grep -rqw -- "$w" "$src/engine/conf" "$src/engine/ir" "$src/kernels/opcall.h" || missing="$missing $w"
done < <(sed -n '/^## From PyTorch/,/^## Tour/p' "$readme" | grep -o 'type = "[a-z0-9_]*"' | sed 's/.*"\(.*\)"/\1/' | sort -u)
if [ -z "$missing" ]; then pass table; else fail table "unknown to the engine:$missing"; fi
