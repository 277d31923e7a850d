#!/bin/bash
# What a run says of all its sessions: the best epoch and the time, in the summary, the `end` line, the manifest and `inspect`; that a
# complete run says so; and that a restart goes on from where the run went back to.
# tests/run: beside others
set -u
here=$(dirname "$0")
# shellcheck source=tests/resume/history.sh
. "$here/history.sh"
export OMP_NUM_THREADS=1 # tiny layers, and a machine that other tests use too
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# 10 steps an epoch. The accuracy goes up and down: the best of the first epochs is the second.
cat >"$tmp/t.cfg" <<'C'
schema = 1; name = "best"; seed = 4; reproducible = "run";
data = { name = "synthetic"; samples = 320; samples_test = 64; batch = 32; classes = 10; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 16; }, { type = "relu"; },
	{ type = "linear"; out = 10; } ); };
train = { epochs = 2; loss = "cross_entropy"; optimizer = { type = "sgd"; lr = 0.5; momentum = 0.9; }; };
checkpoint = { dir = "unused"; keep = 2; best = { metric = "test/acc"; mode = "max"; }; };
log = { every_steps = 1; };
C
ok() { echo "ok $1"; }
gtrain() { timeout 60 "$GTRAIN" "$@" >"$tmp/out" 2>"$tmp/log"; }
last() { tail -n1 "$tmp/log"; }
ends() { sed -n '/"event":"end"/p' "$1/metrics.jsonl"; }
seconds() { sed 's/.*"seconds":\([^,]*\),.*/\1/'; }

# agree DIR: prints what is wrong. The best of the evaluations in metrics.jsonl, which the last session ended with, is what everything
# names.
agree() {
	local dir=$1 step epoch acc from now said line
	read -r step epoch acc < <(sed -n \
		's/{"event":"eval","step":\([0-9]*\),"epoch":\([0-9]*\),"split":"test",.*"acc":\([^,]*\),.*/\1 \2 \3/p' "$dir/metrics.jsonl" |
		awk 'NR == 1 || $3 > m { m = $3; s = $1; e = $2 } END { print s, e, m }')
	best_is=$epoch
	line=$(ends "$dir" | tail -n 1)
	grep -q "\"best\":{\"metric\":\"test/acc\",\"value\":[^,]*,\"step\":$step,\"epoch\":$epoch}" <<<"$line" ||
		echo "the best is step $step, epoch $epoch; the end line says $(grep -o '"best":.*' <<<"$line");"
	line=$("$GTRAIN" inspect "$dir/latest" --json)
	grep -q "\"best\":{\"metric\":\"test/acc\",\"value\":[^,]*,\"step\":$step,\"epoch\":$epoch}" <<<"$line" ||
		echo "inspect says $(grep -o '"best":[^}]*}' <<<"$line");"
	"$GTRAIN" inspect "$dir/latest" | grep -q "best test/acc .* at step $step, epoch $epoch\$" || echo "inspect's text has another best;"
	if [ "$step" != "$(member "$dir/latest" step)" ]; then
		grep -q "best test/acc $(printf %.4f "$acc") in epoch $epoch " "$tmp/out" || echo "the summary says $(cat "$tmp/out");"
	fi
	# The time: no session begins anew, and the checkpoint says what the line says.
	now=$(ends "$dir" | tail -n 1 | seconds)
	from=$(ends "$dir" | tail -n 2 | head -n 1 | seconds)
	awk "BEGIN { exit !($now > 0 && $now >= $from) }" || echo "the time goes from $from s to $now s;"
	said=$(seconds <<<"$line")
	awk "BEGIN { d = $said - $now; exit !(d < 1e-5 * $now && -d < 1e-5 * $now) }" || echo "inspect says $said s, the end line $now s;"
}

# sessions NAME EXPECTED_EPOCH COMMAND...: the directory $tmp/NAME goes on.
sessions() {
	local name=$1 want=$2 wrong
	shift 2
	gtrain resume "$tmp/$name" "$@" || { echo "not ok $name: $(last)"; return; }
	wrong=$(agree "$tmp/$name")
	agree "$tmp/$name" >/dev/null
	[ "$best_is" = "$want" ] || wrong="$wrong the test expects the best in epoch $want, it is $best_is;"
	if [ -z "$wrong" ]; then ok "$name"; else echo "not ok $name: $wrong"; fi
}
gtrain run "$tmp/t.cfg" -o "$tmp/best_in_session_1" || echo "not ok history_best: $(last)"
cp -a "$tmp/best_in_session_1" "$tmp/best_other_batch"
gtrain run "$tmp/t.cfg" -o "$tmp/best_in_session_2" -s train.epochs=1 || echo "not ok history_best: $(last)"
sessions best_in_session_1 2 -s train.epochs=4
sessions best_in_session_2 2 -s train.epochs=4
cp -a "$tmp/best_in_session_2" "$tmp/whole"
cp -a "$tmp/best_in_session_2" "$tmp/best_from_older"
sessions best_from_older 2 --from 30 -s train.epochs=6
sessions best_other_batch 2 -s train.epochs=4 -s data.batch=16

# Without checkpoint.best: the highest accuracy of all sessions.
sed 's/best = {[^}]*};//' "$tmp/t.cfg" >"$tmp/plain.cfg"
gtrain run "$tmp/plain.cfg" -o "$tmp/plain" && gtrain resume "$tmp/plain" -s train.epochs=4
if grep -q "best [0-9.]* in epoch 2 " "$tmp/out"; then
	ok best_without_a_metric
else
	echo "not ok best_without_a_metric: $(cat "$tmp/out")"
fi

# Another metric: values of the two are not compared.
d=$tmp/metric wrong='' said=''
cp -a "$tmp/whole" "$d"
change='checkpoint.best was test/acc (max) and is now test/loss (min), so the best checkpoint before, of step 20,'
change="$change no longer counts as the best checkpoint; the next evaluation starts a new comparison"
gtrain resume "$d" -s train.epochs=5 -s checkpoint.best.metric=test/loss -s checkpoint.best.mode=min || wrong="$wrong $(last);"
[ "$(grep -cF "$change" "$tmp/log")" = 1 ] && [ "$(grep -c warning "$tmp/log")" = 1 ] ||
	wrong="$wrong the change was said as $(cat "$tmp/log");"
[ "$(grep -cF "$change" "$d/metrics.jsonl")" = 1 ] || wrong="$wrong metrics.jsonl does not say it;"
loss=$(numbers loss "$d/metrics.jsonl" eval | awk '$1 == 50 { print $2 }')
[ "$(best_step "$d/latest")" = 50 ] && awk "BEGIN { d = $(best_value "$d/latest") - $loss; exit !(d < 1e-6 && -d < 1e-6) }" ||
	wrong="$wrong the best is $(best_step "$d/latest") with $(best_value "$d/latest"), not 50 with $loss;"
[ "$(readlink "$d/best")" = step-00000050 ] || wrong="$wrong best is $(readlink "$d/best");"
gtrain resume "$d" -s train.epochs=6 || wrong="$wrong $(last);"
grep -q 'checkpoint.best was' "$tmp/log" && wrong="$wrong it is said again: $(last);"
gtrain resume "$d" -s train.epochs=7 -s checkpoint.best.metric= || wrong="$wrong $(last);"
grep -q 'is now not set, so the best checkpoint before, of step [56]0, no longer counts as the best checkpoint$' "$tmp/log" ||
	wrong="$wrong no metric: $(last);"
[ ! -e "$d/best" ] && [ ! -L "$d/best" ] || wrong="$wrong without a metric, best is $(readlink "$d/best");"
sound_line=$(sound "$d" 2>&1)
[ -z "$sound_line" ] || wrong="$wrong $sound_line"
gtrain resume "$tmp/whole" -s train.epochs=4 -s checkpoint.best.metric=test/loss && wrong="$wrong min for an accuracy was taken;"
if [ -z "$wrong" ]; then ok best_of_another_metric; else echo "not ok best_of_another_metric:$wrong"; fi

# A run that is complete. complete NAME KEY WORDS...: the directory is not changed.
wrong=''
complete() {
	local what=$1 key=$2
	shift 2
	rm -rf "$tmp/copy"
	cp -a "$tmp/done" "$tmp/copy"
	gtrain resume "$tmp/done" "$@" || wrong="$wrong $what: status $?;"
	grep -q "$tmp/done is complete: 4 epochs, 40 steps; to train longer, add -s train.$key=N with N above [0-9]*" "$tmp/out" ||
		wrong="$wrong $what: $(cat "$tmp/out" "$tmp/log");"
	[ -s "$tmp/log" ] && wrong="$wrong $what: standard error has $(last);"
	[ "$(wc -l <"$tmp/out")" = 1 ] || wrong="$wrong $what: $(wc -l <"$tmp/out") lines;"
	diff -r -x .lock "$tmp/copy" "$tmp/done" >/dev/null || wrong="$wrong $what: the directory has changed;"
}
cp -a "$tmp/whole" "$tmp/done"
complete epochs epochs
complete ranks epochs -s parallel.mode=ddp --nproc 2
complete restarts epochs -s parallel.mode=ddp --nproc 2 --max-restarts 3
complete json epochs --json
grep -q '^{"event":"complete","step":40,"text":".*","time":[0-9.]*}$' "$tmp/out" || wrong="$wrong json: $(cat "$tmp/out");"
complete steps steps -s train.steps=40
complete fewer_steps steps -s train.steps=25
complete from_the_last epochs --from 40
rm -rf "$tmp/done"
gtrain run "$tmp/t.cfg" -o "$tmp/done" -s train.steps=40 || wrong="$wrong $(last);"
complete by_steps steps
gtrain resume "$tmp/done" -s train.steps=43 || wrong="$wrong prolonged: $(last);"
[ "$(member "$tmp/done/latest" step)" = 43 ] || wrong="$wrong prolonged, it ends at $(member "$tmp/done/latest" step);"
# From its best one, which is not the last: it goes back, as was asked for.
d=$tmp/back
cp -a "$tmp/whole" "$d"
gtrain resume "$d" --from best || wrong="$wrong from best: $(last);"
grep -q 'going back to step 20' "$tmp/log" && [ -d "$d/history-5/step-00000040" ] || wrong="$wrong from best: $(cat "$tmp/log");"
if [ -z "$wrong" ]; then ok complete; else echo "not ok complete:$wrong"; fi

# Ranks that went back to an earlier checkpoint and were killed: before the first commit they begin there again, behind it at the newest
# one. What they left behind is in one history, and the bits are those of ranks that nobody killed.
${CC:-gcc} -O1 -shared -fPIC -D_GNU_SOURCE "$here/kill_at.c" -o "$tmp/kill_at.so" -ldl || exit 1
preload=$tmp/kill_at.so
asan=$(ldd "$GTRAIN" 2>/dev/null | awk '/libasan/ { print $3 }')
[ -z "$asan" ] || preload="$asan $preload"
digest() { cat "$1/latest/model.safetensors" "$1/latest/optimizer.safetensors" | sha256sum; }
old=$(steps_in "$tmp/whole" | head -n 1) # 20, the best; 30 and 40 are newer
cp -a "$tmp/whole" "$tmp/calm"
gtrain resume "$tmp/calm" --from "$old" -s parallel.mode=ddp --nproc 2 || echo "not ok restart: $(last)"
want=$(digest "$tmp/calm")
for at in 24 34; do
	d=$tmp/restart-$at wrong=''
	cp -a "$tmp/whole" "$d"
	KILL_AT=$at KILL_ONCE=$tmp/once-$at LD_PRELOAD=$preload timeout 60 "$GTRAIN" resume "$d" --from "$old" -s parallel.mode=ddp --nproc 2 \
		--max-restarts 1 >"$tmp/out" 2>"$tmp/log" || wrong="$wrong status $?, $(last);"
	[ -e "$tmp/once-$at" ] || wrong="$wrong nobody was killed;"
	from=$(sed -n 's/.*resuming from .*step-0*\([0-9]*\), step.*/\1/p' "$tmp/log" | tail -n 1)
	[ "$from" = $((at - 4)) ] || wrong="$wrong restarted from ${from:-nothing};"
	[ "$(digest "$d")" = "$want" ] || wrong="$wrong other bits;"
	[ "$(find "$d" -maxdepth 1 -name 'history-*' | wc -l)" = 1 ] || wrong="$wrong histories: $(ls "$d");"
	lost=$(comm -23 <(identities "$tmp/whole") <(identities "$d"))
	[ -z "$lost" ] || wrong="$wrong lost: $lost;"
	sound_line=$(sound "$d" 2>&1)
	[ -z "$sound_line" ] || wrong="$wrong $sound_line"
	if [ -z "$wrong" ]; then ok "restart_after_going_back_$at"; else echo "not ok restart_after_going_back_$at:$wrong"; fi
done
exit 0
