#!/bin/bash
# gtrain sweep: grid, random, successive halving; kills and signals at any time lose no trial and run none twice; wrong settings.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
command -v python3 >/dev/null || { skip sweep 'python3 is not installed'; exit 0; }
cd "$tmp" || exit 1
set -m # each background job has a process group, and does not ignore SIGINT
tiny_config
sed -i 's/samples_test = 64/samples_test = 64; valid = 0.25/; s/^schema = 1;/schema = 1; device = "cpu";/' tiny.cfg

# facts NAME CODE: Python about rows, the objects that --json has printed
facts() {
	if why=$(python3 -c "
import json, math, os, sys
rows = [json.loads(l) for l in open('out')]
trial = {r['trial']: r for r in rows}
def events(path): return [json.loads(l) for l in open(path + '/metrics.jsonl')]
def last(path): return [e for e in events(path) if e['event'] == 'eval' and e['split'] == 'valid'][-1]
$2" 2>&1); then pass "$1"; else fail "$1" "status $rc: $(tail -n 2 <<<"$why" | tr '\n' ' ') $(head -n 2 err)"; fi
}

# ---- grid --------------------------------------------------------------------------------------------------------------------------
grid=(-s 'train.optimizer.lr=0.01,0.1,0.5' -s 'data.batch=16,32')
run sweep tiny.cfg "${grid[@]}" --json
facts grid "
assert $rc == 0 and [r['values'] for n, r in sorted(trial.items())] == [{'train.optimizer.lr': l, 'data.batch': b}
    for l in ('0.01', '0.1', '0.5') for b in ('16', '32')], rows
assert all(r['state'] == 'complete' and r['metric'] == 'valid/loss' and r['path'] == f'runs/tiny-sweep/{n}' for n, r in trial.items()), rows
assert [r['score'] for r in rows] == sorted(last(r['path'])['loss'] for r in rows), rows"
# a trial is what gtrain run makes of the config and its values, to the bit
"$gtrain" run tiny.cfg -s train.optimizer.lr=0.1 -s data.batch=32 -o alone -q --no-progress 2>err || fail run "$(cat err)"
if cmp -s alone/latest/model.safetensors runs/tiny-sweep/4/latest/model.safetensors; then pass ordinary_run
else fail ordinary_run 'the weights of trial 4 differ from those of gtrain run'; fi
gives listed_by_runs 0 out 'runs/tiny-sweep/6' runs runs/tiny-sweep
gives compared 0 out 'train.optimizer.lr  0.01' compare runs/tiny-sweep/1 runs/tiny-sweep/6
before=$(find runs -type f -printf '%p %T@\n' | grep -v lock | sort | sha256sum)
run sweep tiny.cfg "${grid[@]}"
cp "$tmp/out" first
run sweep runs/tiny-sweep
if [ "$rc" = 0 ] && cmp -s out first && [ "$before" = "$(find runs -type f -printf '%p %T@\n' | grep -v lock | sort | sha256sum)" ]; then
	pass twice_changes_nothing
else
	fail twice_changes_nothing "status $rc: $(diff out first) $(head -n 1 err)"
fi
best=$(sed -n 's/^best: trial \([0-9]*\);.*/\1/p' err)
if head -n 1 first | grep -q '^trial  lr *batch  valid/loss  state *time$' && sed -n 3p first | grep -q "^ *$best  "; then
	pass table
else
	fail table "$(cat first err)"
fi
# the sweep in place of its trials: compare and plot take all that have been started, report names the best
run compare runs/tiny-sweep --json
if [ "$rc" = 0 ] && [ "$(grep -o '"path":"[^"]*"' out | tr -dc '0-9\n' | tr '\n' ' ')" = '1 2 3 4 5 6 ' ]; then pass compare_a_sweep
else fail compare_a_sweep "status $rc: $(cat out err)"; fi
rm -rf waits
cp -r runs/tiny-sweep waits
rm -r waits/2
run plot waits/ alone --json
if [ "$rc" = 0 ] && [ "$(grep -o '"path":"[^"]*"' out | tr '\n' ' ')" = "$(printf '"path":"%s" ' waits/{1,3,4,5,6} alone)" ]; then
	pass plot_a_sweep
else
	fail plot_a_sweep "status $rc: $(cut -c1-80 out) $(cat err)"
fi
rm -r waits/[1-6]
gives nothing_started 66 err 'waits: no trial of this sweep has been started' compare waits
named="its best trial is the run runs/tiny-sweep/$best"
gives report_of_a_sweep 66 err "runs/tiny-sweep: expected the directory of a run, got that of a sweep; $named" report runs/tiny-sweep
rm waits/results.json
gives report_without_results 66 err 'got that of a sweep; name one of its trials' report waits
gives best_metric 0 out '"metric":"test/acc","score":0.' sweep tiny.cfg -s seed=1,2 -s checkpoint.best.metric=test/acc -o best --json
facts best_first "
assert rows[0]['score'] >= rows[1]['score'], rows
assert all(r['score'] == events(r['path'])[-1]['best']['value'] for r in rows), rows"
run sweep tiny.cfg -s 'data.mean=[0.1],[0.2]' -s 'name="a,b"' -s train.epochs=1 -o lists --json
facts commas_in_brackets "assert $rc == 0 and sorted(r['values']['data.mean'] for r in rows) == ['[0.1]', '[0.2]'], rows"

# ---- random ------------------------------------------------------------------------------------------------------------------------
draw=(-s train.optimizer.lr=1e-4..1 -s data.batch=8..64 -s train.optimizer.momentum=0.5..0.9 -s 'seed=1,2' -s train.epochs=1 --trials 40)
run sweep tiny.cfg "${draw[@]}" -o rnd --json
facts random "
v = [trial[n]['values'] for n in sorted(trial)]
lr = [float(x['train.optimizer.lr']) for x in v]
assert $rc == 0 and len(v) == 40 and all(1e-4 <= x <= 1 for x in lr) and all(0.5 <= float(x['train.optimizer.momentum']) <= 0.9 for x in v)
assert all(8 <= int(x['data.batch']) <= 64 for x in v) and {x['seed'] for x in v} == {'1', '2'}, v
# log-uniform: half of the values are below the geometric mean; 40 draws of probability 1/2 leave 9 ... 31 with probability 0.9997
for values, middle in (lr, 1e-2), ([int(x['data.batch']) for x in v], 20), ([float(x['train.optimizer.momentum']) for x in v], 0.7):
    assert 9 <= sum(x < middle for x in values) <= 31, values
json.dump(v, open('drawn', 'w'))"
run sweep tiny.cfg "${draw[@]}" -o rnd2 --json
facts same_seed_same_values "assert [trial[n]['values'] for n in sorted(trial)] == json.load(open('drawn'))"
run sweep tiny.cfg "${draw[@]}" -o rnd3 --seed 5 --json
facts other_seed "assert [trial[n]['values'] for n in sorted(trial)] != json.load(open('drawn'))"
run sweep tiny.cfg -s data.batch=8..10 --trials 3 -s train.epochs=1 -o few --json
facts values_differ "assert sorted(r['values']['data.batch'] for r in rows) == ['10', '8', '9'], rows"

# ---- successive halving ------------------------------------------------------------------------------------------------------------
halving=(-s train.optimizer.lr=1e-3..1 -s train.epochs=9 --halving --trials 9)
run sweep tiny.cfg "${halving[@]}" -o half --json
facts halving "
assert $rc == 0 and sorted(r['epochs'] for r in rows)[-1] == 9 and all(r['epochs'] in (1, 3, 9) for r in rows), rows
loss = {n: [e['loss'] for e in events(r['path']) if e['event'] == 'eval' and e['split'] == 'valid'] for n, r in trial.items()}
assert all(len(loss[n]) == r['epochs'] and loss[n][-1] == r['score'] for n, r in trial.items()), rows
first = sorted(trial, key=lambda n: loss[n][0])
promoted = [n for n in trial if trial[n]['epochs'] > 1]
assert set(first[:3]) <= set(promoted), (first, promoted)  # the best third of all has been promoted; at first, others could be in it
assert [r['state'] for r in rows if r['epochs'] == 9] == ['complete'] and rows[-1]['state'] == 'stopped', rows"
best=$(sed -n 's/.*"path":"\([^"]*\)".*"epochs":9,.*/\1/p' out)
lr=$(sed -n 's/.*"train.optimizer.lr":"\([^"]*\)".*"epochs":9,.*/\1/p' out)
"$gtrain" run tiny.cfg -s "train.optimizer.lr=$lr" -s train.epochs=9 -o whole -q --no-progress 2>err || fail run "$(cat err)"
if cmp -s whole/latest/model.safetensors "$best/latest/model.safetensors"; then pass promoted_as_one_run
else fail promoted_as_one_run "the weights of $best differ from those of a run of 9 epochs"; fi
# the schedule of gtrain init, which lasts until the end of the run (t_max = 0), has the length of the whole trial in every rung
run sweep tiny.cfg "${halving[@]}" -s 'train.schedule={type="onecycle";pct_start=0.25;}' -o cycle --json
lr=$(sed -n 's/.*"train.optimizer.lr":"\([^"]*\)".*"epochs":9,.*/\1/p' out)
"$gtrain" run tiny.cfg -s "train.optimizer.lr=$lr" -s train.epochs=9 -s 'train.schedule={type="onecycle";pct_start=0.25;}' -o onecycle -q \
	--no-progress 2>err || fail halving_schedule "$(cat err)"
facts halving_schedule "
rate = lambda path: {e['step']: e['lr'] for e in events(path) if e['event'] == 'train'}
whole, best = rate('onecycle'), [r for r in rows if r['epochs'] == 9][0]
assert $rc == 0 and rate(best['path']) == whole, rows
assert all(math.isclose(x / float(r['values']['train.optimizer.lr']), whole[s] / float('$lr'), rel_tol=1e-6)  # logged with 9 digits
    for r in rows for s, x in rate(r['path']).items()), rows"
gives halving_types 0 out '"epochs":9' sweep tiny.cfg "${halving[@]}" -s train.schedule.type=cosine,constant -s train.schedule.warmup=2.5 \
	-o types --json
if [ "$(cat types/configs/*.cfg | grep -c 't_max = 6.5')" = "$(cat types/configs/*.cfg | grep -c '"cosine"')" ]; then pass halving_warmup
else fail halving_warmup "$(grep -h -B 9 -A 9 cosine types/configs/*.cfg | head -n 30)"; fi
gives halving_t_max 0 out '"epochs":9' sweep tiny.cfg "${halving[@]}" -s 'train.schedule={type="cosine";t_max=9.0;}' -o half2 --json
gives halving_unit 78 err 'train.schedule: expected unit = "epoch", or t_max > 0, with --halving' \
	sweep tiny.cfg "${halving[@]}" -s 'train.schedule={type="cosine";unit="step";}' -o no
gives halving_steps 78 err 'expected 0 with --halving' sweep tiny.cfg "${halving[@]}" -s train.steps=5 -o no
gives halving_epochs 64 err 'expected one value with --halving' sweep tiny.cfg -s train.epochs=3,9 --halving -o no
gives halving_short 64 err 'expected at least 3 trials and train.epochs >= 3' sweep tiny.cfg -s seed=1,2,3 --halving -o no

# ---- killed three times --------------------------------------------------------------------------------------------------------------
long=(-s 'train.optimizer.lr=0.001,0.01,0.05,0.1,0.2,0.5' -s 'data.batch=16,32' -s train.epochs=24 --jobs 2)
ended() { cat "$1"/*/metrics.jsonl 2>/dev/null | grep -c '"event":"end"'; }
# find_trial DIR N: when N trials of DIR have ended, $trial is the directory of one that trains and has a checkpoint
find_trial() {
	[ "$(ended "$1")" -lt "$2" ] || for trial in "$1"/[0-9]*; do
		if [ -e "$trial/latest" ] && ! grep -q '"event":"end"' "$trial/metrics.jsonl"; then return; fi
	done
	trial=
	! kill -0 "$pid" 2>/dev/null # the sweep has ended
}
# kill_at DIR N SIGNAL ARGS...: starts a sweep in a process group, and sends it a signal when N trials have ended and one has a checkpoint.
# If this trial ends before the signal reaches it, it does so again: with what is left of the sweep or, when that has ended, from the
# beginning.
kill_at() {
	local dir=$1 n=$2 signal=$3 _
	shift 3
	for _ in $(seq 20); do
		"$gtrain" sweep "$@" -q >out 2>err &
		pid=$!
		wait_for find_trial "$dir" "$n"
		kill "-$signal" -- "-$pid"
		wait $pid 2>/dev/null
		rc=$?
		if [ -n "$trial" ] && ! tail -n 1 "$trial/metrics.jsonl" | grep -q '"status":"complete"'; then break; fi
		[ "$(ended "$dir")" -lt 12 ] || rm -rf "$dir"
	done
} 2>/dev/null
# no_trial_lost NAME DIR OTHER: every trial of DIR has ended once, with the weights and scores of the undisturbed sweep OTHER
no_trial_lost() {
	local why=
	for i in $(seq 12); do
		[ "$(grep -c '^saved as' "$2/logs/$i.log")" -le 1 ] || why="$why trial $i has ended twice;"
		cmp -s "$2/$i/latest/model.safetensors" "$3/$i/latest/model.safetensors" || why="$why other weights in trial $i;"
	done
	cmp -s "$2/results.json" "$3/results.json" || why="$why other results"
	[ "$(cat "$2"/*/metrics.jsonl | grep -c '"event":"resume"')" -ge 1 ] || why="$why no trial was interrupted"
	if [ -z "$why" ]; then pass "$1"; else fail "$1" "$why"; fi
}
run sweep tiny.cfg "${long[@]}" -o calm
for n in 1 3 6; do kill_at killed $n KILL tiny.cfg "${long[@]}" -o killed; done
[ "$(ended killed)" -lt 12 ] || fail killed 'all trials had ended before the last kill'
run sweep tiny.cfg "${long[@]}" -o killed --json
facts killed "assert $rc == 0 and len(rows) == 12 and all(r['state'] == 'complete' for r in rows), rows"
no_trial_lost no_trial_lost killed calm
if [ -z "$(find killed -name '*.tmp-*')" ]; then pass nothing_left; else fail nothing_left "$(find killed -name '*.tmp-*')"; fi

# halving with one job: the same promotions, too
long_halving=(-s train.optimizer.lr=1e-3..1 -s train.epochs=45 --halving --trials 12)
run sweep tiny.cfg "${long_halving[@]}" -o calm_half
for n in 1 3 6; do kill_at killed_half $n KILL tiny.cfg "${long_halving[@]}" -o killed_half; done
run sweep killed_half
[ "$rc" = 0 ] || fail killed_halving "status $rc: $(head -n 1 err)"
why=
for i in $(seq 12); do
	cmp -s "killed_half/$i/latest/model.safetensors" "calm_half/$i/latest/model.safetensors" || why="$why other weights in trial $i;"
done
if [ -z "$why" ] && cmp -s killed_half/results.json calm_half/results.json; then pass killed_halving
else fail killed_halving "$why $(diff killed_half/results.json calm_half/results.json)"; fi

# ---- signals -------------------------------------------------------------------------------------------------------------------------
for s in INT:130 TERM:143; do
	sig=${s%:*}
	kill_at "asked-$sig" 2 "$sig" tiny.cfg "${long[@]}" -o "asked-$sig"
	if [ "$rc" = "${s#*:}" ] && grep -q '^gtrain: ended by signal' err && none_of_ours "asked-$sig/" &&
		cat "asked-$sig"/*/metrics.jsonl | grep -q '"status":"signal'; then
		pass "ended_by_$sig"
	else
		fail "ended_by_$sig" "status $rc: $(cat err)"
	fi
	run sweep "asked-$sig"
	no_trial_lost "continued_after_$sig" "asked-$sig" calm
done

# ---- failures ------------------------------------------------------------------------------------------------------------------------
run sweep tiny.cfg -s train.optimizer.lr=0.1,3e38,0.2 -s train.epochs=8 -o bad --json
facts diverged "
assert $rc == 0 and [r['state'] for r in rows][2] == 'failed' and rows[2]['trial'] == 2 and rows[2]['code'] == 3, rows
assert 'diverged' in rows[2]['error'] and rows[2]['score'] is None, rows"
size=$(stat -c %s bad/logs/2.log)
gives failure_is_shown 0 err 'trial 2 has failed with status 3: diverged' sweep bad
if [ "$size" = "$(stat -c %s bad/logs/2.log)" ]; then pass failure_is_kept; else fail failure_is_kept 'the trial ran again'; fi
run sweep tiny.cfg -s 'model.pretrained.file=nix.safetensors,""' -o unfit --json
facts wrong_at_start "assert $rc == 0 and rows[1]['trial'] == 1 and rows[1]['code'] == 66 and 'nix.safetensors' in rows[1]['error'], rows"
cp alone/latest/model.safetensors nix.safetensors
gives error_at_start_is_repeated 0 out '  1  nix.safetensors' sweep unfit
[ "$(grep -c complete "$tmp/out")" = 2 ] || fail error_at_start_is_repeated "$(cat "$tmp/out" "$tmp/err")"
sed -e 's|name = "synthetic".*samples_test = 64;|root = "absent"; format = "folder"; batch = 16;|' tiny.cfg >absent.cfg
gives no_data 66 err 'absent.cfg:3: data.root: expected the directory of the data, but' sweep absent.cfg -s data.batch=16,32 -o no
if [ "$(wc -l <err)" = 1 ] && [ ! -e no ]; then pass no_data_is_said_once; else fail no_data_is_said_once "$(cat err)"; fi
mkdir -p there/a there/b
dark=iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADklEQVR42mOQgwIGyhgADlcHgX3rLBkAAAAASUVORK5CYII=
for i in $(seq 40); do { base64 -d <<<$dark; echo "$i"; } >"there/$([ "$i" -gt 20 ] && echo a || echo b)/$i.png"; done
gives one_has_data 0 out 'complete' sweep absent.cfg -s data.root=absent,there -s train.epochs=1 -o one
[ "$(grep -c complete out)" = 1 ] || fail one_has_data "$(cat out)"
mv there gone
gives no_data_continued 66 err 'data.root: expected the directory' sweep one
if [ "$(wc -l <err)" = 1 ]; then pass no_data_continued_once; else fail no_data_continued_once "$(cat err)"; fi
mv gone there
# a sweep over seed: the samples of valid differ, unless data.valid_seed is set
held() { for i in 1 2 3; do grep -o '"valid":{"id":"[^"]*"' "$1/$i/latest/data.json"; done | sort -u | wc -l; }
split=(sweep absent.cfg -s data.root=there -s seed=1,2,3 -s train.epochs=1)
gives seeds_are_warned 0 err 'add -s data.valid_seed=1 for the same samples' "${split[@]}" -o seeds
run "${split[@]}" -s data.valid_seed=1 -o seed
if [ "$rc" = 0 ] && ! grep -q warning err && [ "$(held seeds)" = 3 ] && [ "$(held seed)" = 1 ]; then pass valid_seed
else fail valid_seed "splits: $(held seeds), $(held seed): $(cat err)"; fi
gives all_failed 3 err 'no trial has succeeded; ' sweep tiny.cfg -s train.optimizer.lr=2e38,3e38 -s train.epochs=8 -o worse
endless=(-s train.epochs=100000 -s train.eval_every_epochs=0 -s checkpoint.every_epochs=100000)
"$gtrain" sweep tiny.cfg -s seed=1,2 "${endless[@]}" -o lost -q >out 2>err &
wait_for [ -s lost/1/metrics.jsonl ]
kill -KILL "$(ours 'out=lost/1')"
wait_for [ -s lost/2/metrics.jsonl ]
kill -TERM %%
wait %% 2>/dev/null
if grep -q 'trial 1 has failed with status 137: was killed by signal 9' err && grep -q 'interrupted' out; then pass killed_trial
else fail killed_trial "$(cat out err)"; fi

# ---- wrong settings: one sentence, before anything is written ------------------------------------------------------------------------
gives no_values 64 err 'expected a setting with several values' sweep tiny.cfg -s train.epochs=3 -o no
gives wrong_value 78 err '--set data.batch=x: data.batch: expected' sweep tiny.cfg -s data.batch=16,32,x -o no
gives wrong_key 78 err 'train.optimizr: unknown key; did you mean train.optimizer?' sweep tiny.cfg -s train.optimizr.lr=0.1,0.2 -o no
gives wrong_range 64 err 'expected a range LOW..HIGH with LOW < HIGH' sweep tiny.cfg -s train.optimizer.lr=1..0.1 -o no
gives half_range 64 err 'expected a number after the two dots' sweep tiny.cfg -s train.optimizer.lr=0.1..x -o no
gives three_dots 64 err 'expected a number after the two dots' sweep tiny.cfg -s train.optimizer.lr=0.1...1 -o no
gives huge_range 64 err 'with bounds that a 64-bit float can represent' sweep tiny.cfg -s train.optimizer.lr=1..1e999 -o no
gives range_in_list 64 err 'values or one range, got a range in a list' sweep tiny.cfg -s train.optimizer.lr=0.1,0.2..0.3 -o no
gives empty_value 64 err 'a value before and after each comma' sweep tiny.cfg -s data.batch=16,,32 -o no
gives value_twice 64 err 'has the value 16 twice' sweep tiny.cfg -s data.batch=16,32,16 -o no
gives key_twice 64 err 'the key is set twice' sweep tiny.cfg -s data.batch=16,32 -s data.batch=8 -o no
gives control_characters 78 err 'expected a value of UTF-8 text' sweep tiny.cfg -s $'data.root=a\x01,b' -o no
gives no_metric 78 err 'expected data.valid > 0, which the metric "valid/loss" needs' sweep tiny.cfg -s seed=1,2 -s data.valid=0.0 -o no
gives own_key 64 err 'all trials of a sweep share this key' sweep tiny.cfg -s checkpoint.dir=a,b -o no
gives too_many 64 err 'more than 1000 combinations' sweep tiny.cfg -s "seed=$(seq -s , 40)" -s "data.batch=$(seq -s , 40)" -o no
gives trials_of_lists 64 err 'each of the 2 combinations is a trial' sweep tiny.cfg -s seed=1,2 --trials 5 -o no
gives too_few_values 64 err '3 trials are possible' sweep tiny.cfg -s data.batch=8..10 --trials 4 -o no
gives standard_input 64 err 'expected a regular file' sweep - -s seed=1,2 -o no
gives no_file 66 err 'did you mean tiny.cfg?' sweep tin.cfg -s seed=1,2 -o no
if [ -e no ]; then fail nothing_written 'a wrong setting left the directory no'; else pass nothing_written; fi

# ---- other uses of a directory -------------------------------------------------------------------------------------------------------
gives other_values 73 err 'a sweep with data.batch = 16,32, got 16,64' sweep tiny.cfg -s train.optimizer.lr=0.01,0.1,0.5 -s data.batch=16,64
gives other_method 73 err 'a sweep with method = grid, got random' sweep tiny.cfg -s seed=1..9 --trials 2
sed 's/samples = 256/samples = 288/' tiny.cfg >other.cfg
gives other_config 73 err 'a sweep of another config: other.cfg differs' sweep other.cfg "${grid[@]}"
gives fixed_plan 64 err 'expected no option except --jobs' sweep runs/tiny-sweep -s seed=1,2
gives no_sweep 66 err 'the directory of a sweep, with sweep.json' sweep alone
mkdir -p used/2
gives used_names 73 err 'used/2: a trial needs this name' sweep tiny.cfg -s seed=1,2 -o used
cp -r best torn && truncate -s 50 torn/sweep.json
gives torn_plan 65 err 'torn/sweep.json' sweep torn
cp -r best torn2 && echo '{"trials":[{}]}' >torn2/results.json
gives torn_results 65 err 'torn2/results.json: expected the results of 2 trials' sweep torn2
(flock 9; "$gtrain" sweep best >out 2>err; echo $? >rc) 9>best/.lock
if [ "$(cat rc)" = 73 ] && grep -q 'another sweep, process' err; then pass locked; else fail locked "$(cat rc err)"; fi

# ---- jobs, and a terminal ------------------------------------------------------------------------------------------------------------
# shellcheck disable=SC2016
CUDA_VISIBLE_DEVICES=3,5 "$gtrain" sweep tiny.cfg -s seed=1,2,3,4 -o jobs --jobs 2 -q \
	-s 'log.command="echo $CUDA_VISIBLE_DEVICES $(nproc) >>seen; cat >/dev/null"' >out 2>err || fail jobs "$(cat err)"
cores=$(($(nproc) / 2))
if [ "$(sort -u seen | tr '\n' ' ')" = "3 $((cores > 0 ? cores : 1)) 5 $((cores > 0 ? cores : 1)) " ]; then pass jobs
else fail jobs "GPUs and processors of the trials: $(sort -u seen | tr '\n' ' ')"; fi
rm seen
# shellcheck disable=SC2016
CUDA_VISIBLE_DEVICES=0,1,2,3,4 "$gtrain" sweep tiny.cfg -s seed=1,2,3 -o share --jobs 2 -q \
	-s 'log.command="echo $CUDA_VISIBLE_DEVICES >>seen; cat >/dev/null"' >out 2>err || fail share "$(cat err)"
if [ "$(sort -u seen | tr '\n' ' ')" = "0,1 2,3 " ]; then pass share_of_gpus; else fail share_of_gpus "$(sort -u seen | tr '\n' ' ')"; fi
RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 gives other_launcher 64 err \
	'expected one process, got 2 ranks' sweep tiny.cfg -s seed=1,2 -o ranks
for size in 80 30; do
	python3 "$src/tests/cli/on_terminal.py" $size "$gtrain" sweep tiny.cfg -s seed=1,2,3 -s train.epochs=30 -o "screen-$size" >r.json
	if why=$(python3 -c "
import json
r = json.load(open('r.json'))
texts = [p[0] for p in r['paints']]
assert r['status'] == 0 and r['rows'] == 1 and all(len(t) < $size and t.startswith('sweep') for t in texts), texts
assert any('2/3' in t for t in texts) and ($size < 80 or any('best valid/loss 1.' in t for t in texts)), texts
assert not any(l.startswith('sweep') for l in r['shown']) and any('complete' in l for l in r['shown']), r['shown']" 2>&1); then
		pass "terminal_$size"
	else
		fail "terminal_$size" "$(tail -n 1 <<<"$why")"
	fi
done
(cd / && "$gtrain" sweep "$tmp/tiny.cfg" -s seed=1,2 -s train.epochs=1 -o "$tmp/else where" --json) >out 2>err
rc=$?
facts other_directory "assert $rc == 0 and rows[0]['state'] == 'complete' and os.path.isdir(rows[0]['path'] + '/latest'), rows"
