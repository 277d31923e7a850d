#!/bin/bash
# gtrain runs and gtrain compare: states of runs, order, sizes, damaged files, groups of seeds, values against metrics.jsonl.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
tiny_config
sed -i 's/checkpoint = .*/checkpoint = { dir = "unused"; best = { metric = "test\/acc"; }; };/' tiny.cfg
train() { "$gtrain" run tiny.cfg --device cpu -q --no-progress "$@" >train.out 2>&1 || fail train "$(tail -n 1 train.out)"; }

mkdir empty
gives no_run 0 err 'no run in empty' runs empty
gives no_directory 66 err 'none: No such file or directory' runs none
train -o all/a -s seed=1
train -o all/b -s seed=2
train -o all/deep/c -s train.optimizer.lr=0.1 -s train.epochs=3
touch all/note.txt

# newest first, in a directory and below
"$gtrain" runs all --json >runs.json
if [ "$(grep -o '"path":"[^"]*"' runs.json | tr '\n' ' ')" = '"path":"all/deep/c" "path":"all/b" "path":"all/a" ' ]; then pass newest_first
else fail newest_first "$(cat runs.json)"; fi
bytes=$(find all/b -type f -printf '%s\n' | awk '{ s += $1 } END { print s }')
if sed -n 2p runs.json | grep -q "\"state\":\"complete\",\"step\":16,\"steps\":16,\"epoch\":2,\"epochs\":2,.*\"bytes\":$bytes,"; then
	pass facts_of_a_run
else
	fail facts_of_a_run "$(sed -n 2p runs.json)"
fi
(cd all && "$gtrain" runs >../here.txt)
if [ "$(cut -d' ' -f1 here.txt | tr '\n' ' ' | sed 's/─*//g')" = 'run  deep/c b a ' ]; then pass working_directory
else fail working_directory "$(cat here.txt)"; fi

# ended by a signal, running, killed
slow=(-s train.epochs=10000000 -s log.every_steps=1000 -s train.eval_every_epochs=0 -s checkpoint.every_epochs=1000)
start() { # a run that goes on
	"$gtrain" run tiny.cfg --device cpu -q --no-progress "${slow[@]}" -o "$1" >train.out 2>&1 &
	pid=$!
	wait_for lines "$1/metrics.jsonl" 4
} 2>/dev/null
start all/s
gives running 0 out '"state":"running"' runs all/s --json
kill -TERM $pid
wait $pid
gives ended_by_a_signal 0 out '"state":"signal 15"' runs all/s --json
start all/k
kill -KILL $pid
wait $pid 2>/dev/null
gives killed 0 out '"state":"interrupted"' runs all/k --json
# ended by an error: its exit status, in every mode; the event END has the message
ends() { # NAME RUN CODE STATUS TEXT: the run ended with CODE, and its log and the list of runs say so
	local last
	last=$(tail -n 1 "$2/metrics.jsonl")
	if [ "$rc" = "$3" ] && [[ $last = *'"event":"end"'*"\"status\":\"$4\",\"code\":$3,\"error\":\""*"$5"* ]] &&
		"$gtrain" runs "$2" --json | grep -q "\"state\":\"$4\""; then pass "$1"
	else fail "$1" "status $rc: $last"; fi
}
for mode in single ddp dp; do
	ranks=(--nproc 2)
	[ $mode != single ] || ranks=()
	run run tiny.cfg --device cpu -q --no-progress -o end/$mode -s train.optimizer.lr=1e38 -s train.epochs=50 -s "parallel.mode=$mode" \
		"${ranks[@]}"
	ends diverged_$mode end/$mode 3 diverged 'is not finite'
done
run compare end/single
if grep -q '^state  *diverged$' "$tmp/out"; then pass compare_diverged; else fail compare_diverged "$(cat "$tmp/out")"; fi
(ulimit -f 8; "$gtrain" run tiny.cfg --device cpu -q --no-progress -o end/full -s 'model.input=[1,64,64]' 2>err)
rc=$?
ends error_of_a_checkpoint end/full 74 'error 74' 'File too large'
for which in 0 1; do # the launcher adds what the ranks cannot write
	"$gtrain" run tiny.cfg --device cpu -q --no-progress "${slow[@]}" -o end/lost$which --nproc 2 -s parallel.mode=ddp 2>err &
	pid=$!
	wait_for lines end/lost$which/metrics.jsonl 4
	kill -KILL "$(pgrep -P $pid | sed -n $((which + 1))p)"
	wait $pid
	rc=$?
	ends killed_rank_$which end/lost$which 137 'signal 9' "rank $which was killed by signal 9"
done
rm -r end
run runs all/k --json
before=$(find all -type f -printf '%p %s %T@\n' | sort | sha256sum)
run runs all
run compare all/a all/deep/c
if [ "$before" = "$(find all -type f -printf '%p %s %T@\n' | sort | sha256sum)" ]; then pass changes_nothing
else fail changes_nothing 'files differ'; fi

# killed in the second of two epochs: one is done
cp -r all/b cut
rm -rf cut/step-00000016 cut/latest cut/best
sed -i '/"step":13/,$d' cut/metrics.jsonl
gives complete_epochs 0 out 'interrupted  1/2 epochs' runs cut
rm -r cut

# a run that goes on after an end is not complete any more
"$gtrain" resume all/a -s train.epochs=4 -q --no-progress >train.out 2>&1 || fail resume "$(tail -n 1 train.out)"
gives resumed 0 out '"step":32,"steps":32,"epoch":4,"epochs":4' runs all/a --json
rm -rf all/a
train -o all/a -s seed=1

# a killed run that is complete by its new number of epochs, and one that was killed before its last line: resume and runs agree
cp -r all/deep/c all/short
rm -r all/short/step-00000024
ln -sfn step-00000016 all/short/latest
sed -i '/"event":"end"/d' all/short/metrics.jsonl
gives cut_short 0 out 'is complete: 2 epochs, 16 steps' resume all/short -s train.epochs=2
gives cut_short_is_listed 0 out '"state":"complete","step":16,"steps":16,"epoch":2,"epochs":2' runs all/short --json
last=$(sha256sum all/short/metrics.jsonl all/short/config.cfg)
gives cut_short_twice 0 out 'is complete' resume all/short -s train.epochs=2
if grep -q '"step":17' all/short/metrics.jsonl || [ "$last" != "$(sha256sum all/short/metrics.jsonl all/short/config.cfg)" ] ||
	! grep -q 'epochs = 2;' all/short/config.cfg; then
	fail cut_short_log "$(tail -n 3 all/short/metrics.jsonl)"
else
	pass cut_short_log
fi
sed -i '$d' all/short/metrics.jsonl
gives lost_end 0 out 'interrupted' runs all/short
gives lost_end_resumed 0 out 'is complete: 2 epochs' resume all/short -s train.epochs=2
gives lost_end_is_listed 0 out '"state":"complete"' runs all/short --json
gives goes_on 0 out '(3 epochs' resume all/short -s train.epochs=3
rm -r all/short

# compare: what differs, and the seeds as one column
run compare all/a all/deep/c
if [ "$rc" = 0 ] && grep -q 'train.optimizer.lr *0.01 *0.1$' "$tmp/out" && grep -q 'train.epochs *2 *3$' "$tmp/out" &&
	[ "$(grep -c '^[a-z]*\.[a-z.]* ' "$tmp/out")" = 2 ]; then
	pass keys_that_differ
else
	fail keys_that_differ "status $rc: $(cat "$tmp/out" "$tmp/err")"
fi
run compare all/a all/b all/deep/c --json
mv "$tmp/out" compare.json
if command -v python3 >/dev/null; then
	if why=$(python3 - <<'PY' 2>&1
import json, statistics
c = json.loads(open("compare.json").read())
assert [r["group"] for r in c["runs"]] == [0, 0, 1], c["runs"]
def last(run):
    events = [json.loads(l) for l in open(run + "/metrics.jsonl")]
    return [e for e in events if e["event"] == "eval" and e["split"] == "test"][-1]
def best(run):
    return [json.loads(l) for l in open(run + "/metrics.jsonl")][-1]["best"]["value"]
for key in "loss", "acc":
    v = [last("all/a")[key], last("all/b")[key]]
    g = c["groups"][0]["last"]["test/" + key]
    assert g["n"] == 2 and abs(g["mean"] - statistics.mean(v)) < 1e-7 and abs(g["deviation"] - statistics.stdev(v)) < 1e-7, (key, g, v)
    assert c["groups"][1]["last"]["test/" + key]["mean"] == last("all/deep/c")[key], key
g = c["groups"][0]["best"]["test/acc"]
assert abs(g["mean"] - (best("all/a") + best("all/b")) / 2) < 1e-7, g
assert c["runs"][2]["settings"] == {"train.epochs": "3", "train.optimizer.lr": "0.1"}, c["runs"][2]
PY
	); then pass statistics; else fail statistics "$(tail -n 1 <<<"$why")"; fi
else
	skip statistics 'python3 is not installed'
fi
# top-5 accuracy is nowhere, if it is always 1
run compare all/a all/deep/c
if ! grep -q top5 "$tmp/out" && grep -q '"acc":0.*"top5":null' all/a/metrics.jsonl && ! "$gtrain" plot all/a | grep -q top-5; then
	pass top5_of_four_classes
else
	fail top5_of_four_classes "$(cat "$tmp/out")"
fi
gives seeds 0 out '(2 seeds)' compare all/a all/b
cp -r all/b again
gives equal_seeds 0 out '(3 runs)' compare all/a all/b again
rm -r again
gives checkpoint_of_a_run 0 out 'last test/acc' compare all/a/latest all/b/step-00000008
gives no_such_run 66 err 'empty: expected the directory of a run, with metrics.jsonl' compare empty

# two networks: the list of layers is one row; few keys that differ have a row each
layers='{ type = "flatten"; }, { name = "a"; type = "linear"; out = 8; }, { type = "relu"; }'
sed "s/layers = .*/layers = ( $layers, { name = \"b\"; type = \"linear\"; out = 4; } ); };/" tiny.cfg >deep.cfg
"$gtrain" run deep.cfg --device cpu -q -o all/deeper >train.out 2>&1 || fail train "$(cat train.out)"
run compare all/a all/deeper
if grep -q '^model.layers: 3 differ *2: flatten, linear *4: flatten, 2 linear, relu$' "$tmp/out" &&
	[ "$(grep -c '^model' "$tmp/out")" = 1 ] && grep -q '^[0-9]* keys of lists differ; --all shows each$' "$tmp/err"; then
	pass folded_layers
else
	fail folded_layers "$(cat "$tmp/out" "$tmp/err")"
fi
folded=$(sed -n 's/ keys of lists.*//p' "$tmp/err")
run compare all/a all/deeper --all
if [ "$(grep -c '^model.layers\[' "$tmp/out")" = "$folded" ] && [ ! -s "$tmp/err" ]; then pass all_keys
else fail all_keys "$(cat "$tmp/out" "$tmp/err")"; fi
run compare all/a all/deeper --json
if grep -q '"model.layers\[3\].type":"\\"linear\\""' "$tmp/out"; then pass all_keys_in_json
else fail all_keys_in_json "$(cat "$tmp/out")"; fi

# the width of the output: from 60 columns on, and 80 in a pipe
long=all/$(printf 'long%.0s' $(seq 20))
mkdir -p "$long"
for i in $(seq 14); do # more runs than a table has columns
	cp -r all/b "$long/r$i"
	rm -r "$long/r$i"/step-* "$long/r$i/latest" "$long/r$i/best" # so that config.cfg counts
	sed -i "s/lr = 0.01/lr = 0.0$((10 + i))/" "$long/r$i/config.cfg"
done
for columns in 60 70 80 97 200 ''; do
	for words in "runs all" "compare all/a all/deep/c all/deeper" "compare all/a $long/r1 $long/r2 all/b"; do
		# shellcheck disable=SC2086
		widest=$(if [ "$columns" ]; then export COLUMNS=$columns; fi; "$gtrain" $words 2>/dev/null | wc -L)
		if [ "$widest" -gt "${columns:-80}" ] || [ "$widest" -lt 30 ]; then bad="$words at ${columns:-no} columns: $widest"; fi
	done
done
if [ -z "${bad-}" ]; then pass width; else fail width "$bad"; fi
heads=$(for columns in 40 50 60 200; do COLUMNS=$columns "$gtrain" runs "$long" | head -n 1 | tr -s ' '; done | tr '\n' ';')
if [ "$heads" = 'run state done;run state done best;run state done best changed;run state done best size changed;' ]; then
	pass columns_left_out
else
	fail columns_left_out "$heads"
fi
if COLUMNS=60 "$gtrain" runs all | grep -q '^…[a-z/]*/r14 '; then pass end_of_a_path
else fail end_of_a_path "$(COLUMNS=60 "$gtrain" runs all)"; fi
if [ "$(COLUMNS=60 "$gtrain" configs | wc -L)" -le 60 ]; then pass configs_width
else fail configs_width "$(COLUMNS=60 "$gtrain" configs)"; fi
run compare "$long"/r*
if [ "$(grep -o '…[a-z/]*/r[0-9]*' "$tmp/out" | sort -u | wc -l)" = 14 ] && [ "$(grep -c '^state' "$tmp/out")" -gt 3 ]; then
	pass many_runs
else
	fail many_runs "$(cat "$tmp/out" "$tmp/err")"
fi
rm -r "$long" all/deeper

# damaged files: a cut line, a line that is no JSON, a checkpoint without manifest, a config that is none
cp -r all/b bad
printf '{"event":"tra' >>bad/metrics.jsonl
gives cut_line 0 out '"state":"complete"' runs bad --json
sed -i '2s/.*/\x01nonsense/' bad/metrics.jsonl
gives wrong_line 0 out '"damaged_lines":1' runs bad --json
rm -rf bad/step-*
gives no_checkpoint 0 out '"seconds":0' runs bad --json
echo '@@' >bad/config.cfg
gives wrong_config 0 err 'bad/config.cfg:1:' runs .
if grep -q 'all/b' "$tmp/out"; then pass other_runs_are_listed; else fail other_runs_are_listed "$(cat "$tmp/out")"; fi
cp -r all/b $'esc\e[31m'
run runs .
if [ "$rc" = 0 ] && ! grep -q $'\e\[31m' "$tmp/out"; then pass no_control_characters; else fail no_control_characters "status $rc"; fi
