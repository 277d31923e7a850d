#!/bin/bash
# make demo: what it says to type next works as typed, and the README shows the same.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
build=${GTRAIN_BUILD:-$src/build}
if [ ! -e /usr/share/datasets/fashion-mnist ]; then
	skip demo 'FashionMNIST is not here (dataset-fashion-mnist)'
	exit 0
fi
cd "$src" || exit 1
if ! make --no-print-directory BUILD="$build" RUN="$tmp/my demo" ARGS='-s train.steps=60 --device cpu --no-progress' demo \
	>"$tmp/out" 2>&1; then
	fail demo "$(tail -n 3 "$tmp/out")"
	exit 0
fi
pass demo
sed -n '/^next: /,$s/^\(next: \|      \)//p' "$tmp/out" >"$tmp/next"
if [ "$(wc -l <"$tmp/next")" = 3 ]; then pass three_commands; else fail three_commands "$(cat "$tmp/next")"; fi
while read -r line; do
	command=${line/FILE.../\/usr\/share\/datasets\/fashion-mnist\/t10k-images*} name=${line#* }
	name=next_${name%% *}
	if bash -c "$command" >"$tmp/cmd" 2>&1; then pass "$name"; else fail "$name" "$command: $(tail -n 1 "$tmp/cmd")"; fi
	# The README shows the command with the default folder.
	shown=${line//"'$tmp/my demo'"/runs/demo}
	shown=${shown//"$build"/build}
	shown=${shown/ --device cpu/} # repeated from ARGS above
	if grep -qF -- "$shown" "$src/README.md"; then pass "${name}_in_readme"; else fail "${name}_in_readme" "no '$shown'"; fi
done <"$tmp/next"
