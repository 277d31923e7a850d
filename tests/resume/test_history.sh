#!/bin/bash
# Going over a run's history as a user does: every state in which a run can be × every way to resume it, once and twice. After each, nothing
# that was committed is lost, and latest, best, metrics.jsonl, config.cfg and the summary agree with each other.
# MODES=full: the whole table; else a part of it that takes a few seconds.
# tests/run: beside others
set -u
here=$(dirname "$0")
# shellcheck source=tests/resume/history.sh
. "$here/history.sh"
export OMP_NUM_THREADS=1 # tiny layers, and a machine that other tests use too
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
${CC:-gcc} -O1 -shared -fPIC -D_GNU_SOURCE "$here/kill_at.c" -o "$tmp/kill_at.so" -ldl || exit 1
preload=$tmp/kill_at.so
asan=$(ldd "$GTRAIN" 2>/dev/null | awk '/libasan/ { print $3 }')
[ -z "$asan" ] || preload="$asan $preload"

# 10 steps an epoch. At this learning rate the accuracy goes up and down: the best is that of the second epoch.
cat >"$tmp/t.cfg" <<'C'
schema = 1; name = "history"; seed = 4; reproducible = "run";
data = { name = "synthetic"; samples = 320; samples_test = 64; batch = 32; classes = 10; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 16; }, { type = "relu"; },
	{ type = "linear"; out = 10; } ); };
train = { epochs = 4; loss = "cross_entropy"; optimizer = { type = "sgd"; lr = 0.5; momentum = 0.9; }; };
checkpoint = { dir = "unused"; keep = 2; best = { metric = "test/acc"; mode = "max"; }; };
log = { every_steps = 1; };
C

make_state() { # NAME: a run directory $tmp/NAME in that state
	local d=$tmp/$1 want=0
	case $1 in
	run) { KILL_AT=23 KILL_SIGNAL=15 LD_PRELOAD=$preload "$GTRAIN" run "$tmp/t.cfg" -o "$d"; } >"$tmp/log" 2>&1; rc=$? want=143 ;;
	killed) { KILL_AT=33 LD_PRELOAD=$preload "$GTRAIN" run "$tmp/t.cfg" -o "$d"; } >"$tmp/log" 2>&1; rc=$? want=137 ;;
	finished) "$GTRAIN" run "$tmp/t.cfg" -o "$d" >"$tmp/log" 2>&1; rc=$? ;;
	limit) { KILL_AT=33 KILL_SIGNAL=0 LD_PRELOAD=$preload "$GTRAIN" run "$tmp/t.cfg" -o "$d" --time-limit 1h; } >"$tmp/log" 2>&1; rc=$? ;;
	diverged)
		cp -a "$tmp/killed" "$d"
		"$GTRAIN" resume "$d" -s train.optimizer.lr=1e38 >"$tmp/log" 2>&1
		rc=$? want=3
		;;
	esac
	[ "$rc" = $want ] || echo "not ok history: the state '$1': status $rc, expected $want: $(tail -n1 "$tmp/log")"
}

# Words of a way: what `resume` gets, with DIR, OLD (the last but one checkpoint). The second column: where it begins.
ways='resume|latest|DIR
older|old|DIR --from OLD
best|best|DIR --from best
step_dir|old|DIR/step-OLD
best_link|best|DIR/best/
longer|latest|DIR -s train.epochs=6
older_longer|old|DIR --from OLD -s train.epochs=6
lr|latest|DIR -s train.optimizer.lr=0.01 -s train.epochs=6
older_lr|old|DIR --from OLD -s train.optimizer.lr=1
batch|latest|DIR -s data.batch=16 -s train.epochs=6
mode|latest|DIR -s parallel.mode=ddp --nproc 2 -s train.epochs=6
older_mode|old|DIR --from OLD -s parallel.mode=ddp --nproc 2
ranks|latest|DIR -s parallel.mode=zero --nproc 3 -s train.epochs=6'

points=0 failures=0 refused=0 complete=0
bad() {
	failures=$((failures + 1))
	echo "not ok history: $*"
}

# apply STATE WAY COUNT: once on $tmp/dir
apply() {
	local what="$1, $2, time $3" line from words old begin rc before lost
	line=$(grep "^$2|" <<<"$ways")
	from=$(cut -d'|' -f2 <<<"$line")
	words=$(cut -d'|' -f3 <<<"$line")
	old=$(steps_in "$tmp/dir" | tail -n 2 | head -n 1)
	case $from in
	latest) begin=$(member "$tmp/dir/latest" step) ;;
	old) begin=$old ;;
	best) begin=$(member "$tmp/dir/best" step) ;;
	esac
	words=${words/step-OLD/$(name_of "$old")}
	words=${words/OLD/$old}
	words=${words/DIR/$tmp/dir}
	rm -rf "$tmp/before"
	cp -a "$tmp/dir" "$tmp/before"
	before=$(member "$tmp/dir/latest" step)
	# shellcheck disable=SC2086
	"$GTRAIN" resume $words >"$tmp/out" 2>"$tmp/log"
	rc=$?
	points=$((points + 1))
	case $rc in
	0) ;;
	78) # a batch that does not divide what is done of the epoch
		refused=$((refused + 1))
		if [ "$2" != batch ] || [ "$(($(member "$tmp/before/latest" cursor) % 16))" = 0 ]; then
			bad "$what: refused: $(tail -n1 "$tmp/log")"
		fi
		;;
	*) bad "$what: status $rc: $(tail -n1 "$tmp/log")" ;;
	esac
	line=$(sound "$tmp/dir" 2>&1)
	[ -z "$line" ] || bad "$what: $line"
	grep -qi nan "$tmp/out" && bad "$what: the result is $(cat "$tmp/out")"
	if grep -q 'is complete' "$tmp/out"; then
		complete=$((complete + 1))
		diff -r -x .lock "$tmp/before" "$tmp/dir" >/dev/null || bad "$what: complete, and the directory has changed"
		grep -q 'to train longer, add -s train.epochs=N with N above [0-9]' "$tmp/out" || bad "$what: complete, without a way on"
		return
	fi
	[ $rc = 0 ] || return
	cmp -s "$tmp/dir/config.cfg" "$tmp/dir/latest/config.cfg" || bad "$what: config.cfg is not that of the latest checkpoint"
	# What the run left behind is in a history, to the last bit, and so is the best of before.
	lost=$(comm -23 <(identities "$tmp/before" | awk -v b="$begin" '$1 > b') <(identities "$tmp/dir"))
	[ -z "$lost" ] || bad "$what: lost: $(tr '\n' ';' <<<"$lost")"
	grep -q "$(identity "$tmp/before/best")" <(identities "$tmp/dir") || [ "$(member "$tmp/dir/best" step)" -gt "$before" ] ||
		awk "BEGIN { exit !($(best_value "$tmp/dir/latest") > $(best_value "$tmp/before/latest")) }" ||
		bad "$what: the best of before is gone"
	if [ "$begin" -lt "$before" ]; then
		line=$(find "$tmp/dir" -maxdepth 1 -name 'history-*' | sort -V | tail -n 1)
		cmp -s "$line/metrics.jsonl" "$tmp/before/metrics.jsonl" || bad "$what: $line/metrics.jsonl is not the one of before"
		cmp -s "$line/config.cfg" "$tmp/before/config.cfg" || bad "$what: $line/config.cfg is not the one of before"
		[ "$(grep -c "going back to step $begin:.*move to $line$" "$tmp/log")" = 1 ] ||
			bad "$what: no line says where the later checkpoints went: $(cat "$tmp/log")"
	fi
	case $2 in # nothing was changed: the bits of the run that nobody disturbed
	resume | older | best | step_dir | best_link)
		[ "$(digest "$tmp/dir")" = "$want" ] || bad "$what: other bits than the undisturbed run"
		;;
	esac
}

digest() { cat "$1/latest/model.safetensors" "$1/latest/optimizer.safetensors" | sha256sum; }

states='killed finished' some='resume older best step_dir longer older_lr mode'
[ "${MODES:-}" = full ] && states='run killed finished limit diverged' some=$(cut -d'|' -f1 <<<"$ways")
make_state finished
want=$(digest "$tmp/finished")
for state in $states; do
	[ -d "$tmp/$state" ] || make_state "$state"
	for way in $some; do
		rm -rf "$tmp/dir"
		cp -a "$tmp/$state" "$tmp/dir"
		for count in 1 2; do
			apply "$state" "$way" $count
		done
	done
done
echo "# history: $points resumes of runs in $(wc -w <<<"$states") states in $(wc -w <<<"$some") ways, once and twice; $complete were" \
	"complete, $refused refused; failures: $failures"
[ $failures = 0 ] && [ $points -gt 20 ] && echo "ok history"
exit 0
