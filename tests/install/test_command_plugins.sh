#!/bin/bash
# Commands in plugins: one sentence if the plugin is missing, damaged or of another build. All other commands work without it.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
cd "$tmp" || exit 1
lib=${gtrain%/bin/gtrain}/lib/gtrain
mkdir -p alone/bin alone/lib/gtrain
cp "$gtrain" alone/bin
cp "$lib/cpu.so" "$lib/null.so" alone/lib/gtrain
table=$(sed -nE 's/^PLUGIN_COMMAND\(([a-z]*), [a-z_]*, "([a-z-]*)".*/\1 \2/p' "$src/cli/commands.inc")
plugins=$({ cut -d ' ' -f 1 <<<"$table" && printf "cost\nsmoke\n"; } | sort -u)
all=$gtrain
gtrain=$tmp/alone/bin/gtrain
tiny_config

# ---- missing ---------------------------------------------------------------------------------------------------------------------------
while read -r plugin command; do
	why="$plugin is not installed: there is no $tmp/alone/bin/../lib/gtrain/$plugin.so"
	gives "missing_$command" 69 err "gtrain: the command $command needs a plugin: $why" "$command" -h
done <<<"$table"
[ "$(commands)" = "$("$all" -h | sed -n '/^commands/,/^$/s/^  \([a-z-]*\) .*/\1/p')" ] && [ "$(commands | wc -l)" -gt 20 ] &&
	pass listed_without_plugins || fail listed_without_plugins "$(commands)"
gives help_of_others 0 out 'usage: gtrain run' run -h
gives trains_without_plugins 0 out accuracy run tiny.cfg -o runs/tiny --device cpu --no-progress
gives resumes_without_plugins 0 out accuracy resume runs/tiny -s train.epochs=4 --no-progress
gives checks_without_plugins 0 out parameters check tiny.cfg
gives no_smoke_test 69 err 'gtrain: --smoke needs a plugin: smoke is not installed: there is no ' run tiny.cfg --smoke --device cpu
gives no_suggestion 69 err 'gtrain: the cost model needs a plugin: cost is not installed: there is no ' check tiny.cfg --suggest --world 2
gives no_page 69 err 'log.report: the plugin view.so, which writes the page of a run, is not installed' \
	run tiny.cfg -o runs/r -s log.report=true --device cpu
[ -e runs/r ] && fail no_page_no_run 'trained' || pass no_page_no_run

# ---- damaged, of another build -----------------------------------------------------------------------------------------------------------
echo damaged >alone/lib/gtrain/view.so
gives damaged 69 err 'gtrain: the command plot needs a plugin: view cannot be loaded: ' plot runs/tiny
echo 'const char gt_build_id[] = "0.0.9 of\033[31m others";' >other.c
if cc -shared -fPIC -o alone/lib/gtrain/view.so other.c 2>cc.err; then
	gives other_build 70 err 'view has the version 0.0.9 of?[31m others, but this gtrain has ' plot runs/tiny
	gives other_build_after_a_run 0 err \
		'warning: log.report: the page of the run is not written: the command report needs a plugin: view has' \
		run tiny.cfg -o runs/r -s log.report=true --device cpu --no-progress
else
	skip other_build "$(head -n 1 cc.err)"
fi
for p in $plugins; do cp "$lib/$p.so" alone/lib/gtrain; done
gives complete 0 out 'runs/tiny' runs runs
gives smoke_test 0 out 'smoke test passed' run tiny.cfg --smoke --device cpu

# ---- the program has no code that only these plugins need --------------------------------------------------------------------------------
defined() { nm --defined-only "$1" | sed -nE 's/^[0-9a-f]+ [TDR] (gt_[a-z0-9_]*)$/\1/p' | sort; }
if ! command -v nm >/dev/null || [ -z "$(defined "$all")" ]; then
	skip not_in_the_program 'no nm, or no symbols'
else
	for p in $plugins; do
		twice=$(comm -12 <(defined "$all") <(nm --defined-only "$lib/$p.so" | sed -nE 's/^[0-9a-f]+ [tdrTDR] (gt_[a-z0-9_]*)$/\1/p' | sort))
		[ "$twice" = gt_build_id ] && pass "not_in_the_program_$p" || fail "not_in_the_program_$p" "${twice:0:300}"
	done
	# The other plugins have copies of the files in engine/base/ that they call: draw.so computes no hashes.
	copies=$(nm --defined-only "$lib/draw.so" 2>"$tmp/nm.err" | sed -nE 's/^[0-9a-f]+ [tdr] (gt_(arena_open|sha256_[a-z]*))$/\1/p' | xargs)
	if [ -s "$tmp/nm.err" ]; then
		skip no_idle_copies "$(head -n 1 "$tmp/nm.err")"
	else
		[ "$copies" = gt_arena_open ] && pass no_idle_copies || fail no_idle_copies "$copies"
	fi
fi
