#!/bin/bash
# run -v names a rank that is slower than the others, with its share of the time of a step; without -v it does not. tests/par/tool_fault.c
# slows the rank to a third of its speed. On a loaded machine any rank may be slow for an epoch, so the slowed rank must be named more
# often than the other one, in one of four runs. There, a rank that is stopped for two thirds of the time may still get its share of a core
# when it runs, and be as fast as the other one: each further run slows the rank more.
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
tool=${GTRAIN_BUILD:-$src/build}/tests/par/tool_fault
cat >"$tmp/slow.cfg" <<'E2'
schema = 1;
name = "slow";
threads = 1;
data = { name = "synthetic"; batch = 256; classes = 10; samples = 1280; samples_test = 64; };
model = { input = [1, 16, 16]; layers = ( { type = "flatten"; }, { name = "a"; type = "linear"; out = 1000; }, { type = "relu"; },
	{ name = "b"; type = "linear"; out = 1000; }, { type = "relu"; }, { name = "c"; type = "linear"; out = 10; } ); };
train = { epochs = 16; eval_every_epochs = 0; optimizer = { type = "sgd"; lr = 0.01; }; };
parallel = { mode = "ddp"; timeout = 60; };
checkpoint = { dir = "unused"; every_epochs = 0; };
E2

# slowed RANK MILLISECONDS OPTION: the run's standard error in $tmp/err
slowed() {
	rm -rf "$tmp/run"
	"$tool" -p first -t -r "$1" -m "$2" slow "$gtrain" run "$3" --no-progress "$tmp/slow.cfg" -o "$tmp/run" --nproc 2 \
		>"$tmp/told" 2>"$tmp/err" </dev/null
}
# named RANK: how many lines name it
named() { grep -c "^rank $1 is slower than the others: it works [0-9]* % of a step, they [0-9]* % (median)$" "$tmp/err"; }

for rank in 0 1; do
	for ms in 10 30 100 300; do
		slowed $rank $ms -v
		mine=$(named $rank) other=$(named $((1 - rank)))
		[ "$mine" -le "$other" ] || break
	done
	if ! grep -q ' status=0 ' "$tmp/told"; then
		echo "not ok straggler $rank: $(tail -n 1 "$tmp/told" "$tmp/err")"
	elif [ "$mine" -gt "$other" ]; then
		echo "ok straggler $rank"
	else
		echo "not ok straggler $rank: it is named $mine times, the other rank $other times"
	fi
	echo "# straggler $rank: $(grep 'is slower' "$tmp/err" | tail -n 1)"
done
slowed 1 10 -q
if grep -q 'is slower' "$tmp/err"; then echo "not ok straggler quiet: $(cat "$tmp/err")"; else echo 'ok straggler quiet'; fi
