#!/bin/bash
# resume-exact: a run killed after every step k and resumed ends with the same bits as the run that nobody disturbed.
# tests/run: beside others
set -u
here=$(dirname "$0")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cc=${CC:-gcc}
$cc -O1 -shared -fPIC -D_GNU_SOURCE "$here/kill_at.c" -o "$tmp/kill_at.so" -ldl || exit 1
preload=$tmp/kill_at.so
asan=$(ldd "$GTRAIN" 2>/dev/null | awk '/libasan/ { print $3 }')
[ -z "$asan" ] || preload="$asan $preload"

digest() { # of all that training made: weights, moments, best, step; not of times
	cat "$1/latest/model.safetensors" "$1/latest/optimizer.safetensors" | sha256sum | cut -d' ' -f1
}
losses() {
	grep '"event":"train"' "$1/metrics.jsonl" | sed 's/,"samples_per_s".*//'
}
scores() { # of whole epochs, whichever session finished them
	grep '"event":"epoch"' "$1/metrics.jsonl" | sed 's/,"seconds".*//'
}
matrix() { # name, steps, options for run
	local name=$1 steps=$2 ok=0 bad='' k
	shift 2
	"$GTRAIN" run "$here/resume.cfg" -o "$tmp/$name" "$@" >/dev/null 2>"$tmp/log" ||
		{ echo "not ok $name: the undisturbed run failed: $(tail -n1 "$tmp/log")"; return; }
	local want_digest want_losses want_scores
	want_digest=$(digest "$tmp/$name")
	want_losses=$(losses "$tmp/$name")
	want_scores=$(scores "$tmp/$name")
	[ -n "$want_scores" ] || { echo "not ok $name: no epoch lines"; return; }
	[ "$(echo "$want_losses" | wc -l)" = "$steps" ] ||
		{ echo "not ok $name: expected $steps steps, got $(echo "$want_losses" | wc -l)"; return; }
	for ((k = 1; k <= steps; k++)); do
		local d=$tmp/$name-$k
		{ KILL_AT=$k LD_PRELOAD=$preload "$GTRAIN" run "$here/resume.cfg" -o "$d" "$@"; } >/dev/null 2>&1
		if [ $? != 137 ]; then bad="$bad $k(not killed)"; continue; fi
		if [ -e "$d/latest" ]; then
			"$GTRAIN" resume "$d" >/dev/null 2>"$tmp/log"
		else # killed before the first checkpoint: start again
			"$GTRAIN" run "$here/resume.cfg" -o "$d" "$@" >/dev/null 2>"$tmp/log"
		fi || { bad="$bad $k($(tail -n1 "$tmp/log"))"; continue; }
		if [ "$(digest "$d")" = "$want_digest" ] && [ "$(losses "$d")" = "$want_losses" ] && [ "$(scores "$d")" = "$want_scores" ]; then
			ok=$((ok + 1))
		else
			bad="$bad $k(other bits)"
		fi
		rm -rf "$d"
	done
	echo "# sweep kill after each step, $name: $steps points, $((steps - ok)) failures"
	if [ -z "$bad" ]; then echo "ok $name"; else echo "not ok $name: steps$bad"; fi
}
matrix adam_fp32 9
matrix adam_bf16 9 -s precision=bf16
matrix frozen_until 9 -s 'train.groups=({match=["conv1.weight","bn1.*"];frozen_until=1.5;})'
matrix freeze_after 9 -s 'train.groups=({match=["conv1.weight","bn1.*"];freeze_after=1.5;})'
matrix sgd_prefetch 9 -s train.optimizer.type=sgd -s train.optimizer.momentum=0.9 -s data.prefetch=3
matrix rmsprop_torch_sampler 9 -s train.optimizer.type=rmsprop -s train.optimizer.centered=true -s data.sampler=torch -s data.prefetch=0
matrix amsgrad 9 -s train.optimizer.amsgrad=true
for o in $("$GTRAIN" completion words -- run -s train.optimizer.type= | sed -n 's/.*=//p'); do
	case $o in sgd | adam | adamw | rmsprop | muon) ;; # above; adamw has the states of adam, and muon needs train.groups
	*) matrix "$o" 9 -s train.optimizer.type="$o" ;; esac
done

# a resume of a finished run has nothing to do and changes nothing
before=$(digest "$tmp/adam_fp32")
if "$GTRAIN" resume "$tmp/adam_fp32" >/dev/null 2>&1 && [ "$(digest "$tmp/adam_fp32")" = "$before" ]; then
	echo "ok finished_run"
else
	echo "not ok finished_run: status $?"
fi

# --set may lengthen a run
if "$GTRAIN" resume "$tmp/adam_fp32" -s train.epochs=4 >/dev/null 2>&1 &&
	[ "$(losses "$tmp/adam_fp32" | wc -l)" = 12 ]; then echo "ok lengthened"; else
	echo "not ok lengthened: $(losses "$tmp/adam_fp32" | wc -l) steps"; fi

# a second `run` must not mix with a finished one
"$GTRAIN" run "$here/resume.cfg" -o "$tmp/adam_fp32" >/dev/null 2>"$tmp/log"
rc=$?
if [ $rc = 73 ] && grep -q 'resume' "$tmp/log"; then
	echo "ok used_directory"
else
	echo "not ok used_directory: status $rc, $(cat "$tmp/log")"
fi

# SIGTERM: a checkpoint, then 143; the resumed run ends with the same bits
"$GTRAIN" run "$here/resume.cfg" -o "$tmp/long" -s train.epochs=1000000 -s checkpoint.every_steps=0 -s checkpoint.every_epochs=0 \
	-s checkpoint.best.metric= -s train.eval_every_epochs=0 >/dev/null 2>&1 &
pid=$!
for _ in $(seq 1200); do [ "$(losses "$tmp/long" 2>/dev/null | wc -l)" -gt 20 ] && break; sleep 0.1; done
kill -TERM $pid
wait $pid
rc=$?
if [ $rc = 143 ] && "$GTRAIN" inspect --verify "$tmp/long" >/dev/null; then echo "ok sigterm"; else echo "not ok sigterm: status $rc"; fi
