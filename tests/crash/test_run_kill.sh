#!/bin/bash
# kill -9 of `gtrain run` inside its saves and at moments by chance, then `gtrain resume`: a checkpoint verifies, the run goes on, and the
# final weights and moments have the digests of a run that nobody disturbed. And a disk that is full: exit 74, the file named.
set -u
gtrain=${GTRAIN:-build/bin/gtrain}
export OMP_NUM_THREADS=1 # tiny layers, and a machine that other tests use too
base=/dev/shm
[ -w $base ] || base=${TMPDIR:-/tmp}
tmp=$(mktemp -d "$base/gtrain-run-kill-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/t.cfg" <<'CFG'
schema = 1;
name = "killed";
seed = 3;
data = { name = "synthetic"; samples = 1024; samples_test = 64; batch = 32; classes = 10; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 32; }, { type = "relu"; },
	{ type = "linear"; out = 10; } ); };
train = { epochs = 2; loss = "cross_entropy"; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; };
checkpoint = { dir = "unused"; every_steps = 7; keep = 2; best = { metric = "test/acc"; mode = "max"; }; };
CFG

digests() { # of the final checkpoint's tensors, as its manifest says and gtrain has verified
	grep -o '"name":"[a-z]*.safetensors","bytes":[0-9]*,"xxh3":"[0-9a-f]*"' "$1/step-00000064/manifest.json" 2>&1
}

begun=$EPOCHREALTIME
"$gtrain" run -o "$tmp/whole" "$tmp/t.cfg" >"$tmp/out" 2>&1
rc=$?
took=$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
if [ $rc != 0 ]; then
	echo "not ok run_kill: the undisturbed run ended with $rc: $(tail -n 1 "$tmp/out")"
	exit 1
fi
want=$(digests "$tmp/whole")

# after NAME: what a kill left in $tmp/run is verified, resumed and compared.
points=0 fresh=0 failures=0
after() {
	points=$((points + 1))
	if ! ls -d "$tmp"/run/step-???????? >/dev/null 2>&1; then # killed before the first commit: nothing to resume
		fresh=$((fresh + 1))
		"$gtrain" resume "$tmp/run" >"$tmp/out" 2>&1
		[ $? = 66 ] || { echo "not ok run_kill: $1: resume of nothing: $(tail -n 1 "$tmp/out")"; failures=$((failures + 1)); }
		"$gtrain" run -o "$tmp/run" "$tmp/t.cfg" >"$tmp/out" 2>&1
	else
		last=$(find "$tmp/run" -maxdepth 1 -name 'step-????????' | sort | tail -n 1)
		"$gtrain" inspect --verify "$last" >"$tmp/out" 2>&1 ||
			{ echo "not ok run_kill: $1: $(tail -n 1 "$tmp/out")"; failures=$((failures + 1)); }
		"$gtrain" resume "$tmp/run" >"$tmp/out" 2>&1
	fi
	rc=$?
	if [ $rc != 0 ] || [ "$(digests "$tmp/run")" != "$want" ]; then
		echo "not ok run_kill: $1: ended with $rc, $(tail -n 1 "$tmp/out" | cut -c1-200), digests $(digests "$tmp/run" | tr '\n' ' ')"
		failures=$((failures + 1))
	fi
	rm -rf "$tmp/run"
}

if command -v strace >/dev/null && strace -qq -e trace=none true 2>/dev/null; then
	for at in fsync:1 fsync:5 fsync:8 fsync:13 fsync:20 fsync:30 fsync:44 fsync:60 rename:1 rename:2 rename:3 rename:9 rename:14 rename:22 \
		symlink:2 symlink:3 symlink:7 unlinkat:1 unlinkat:3 unlinkat:6 unlinkat:12 mkdir:3 mkdir:5 mkdir:8 write:20 write:55; do
		{
			strace -f -qq -o /dev/null -e trace="${at%:*}" -e inject="${at%:*}:signal=SIGKILL:when=${at#*:}" \
				"$gtrain" run -o "$tmp/run" "$tmp/t.cfg" >"$tmp/out" 2>&1
		} 2>/dev/null
		rc=$?
		if [ $rc != 137 ]; then
			echo "not ok run_kill: at $at: the run ended with $rc, not by the kill: $(tail -n 1 "$tmp/out")"
			failures=$((failures + 1))
			rm -rf "$tmp/run"
			continue
		fi
		after "at $at"
	done
else
	echo "# no strace: kills at moments by chance only"
fi
for part in 1 2 3 4 5 6 7 8 9 10; do # of twelve parts of the time that the undisturbed run took
	{
		"$gtrain" run -o "$tmp/run" "$tmp/t.cfg" >"$tmp/out" 2>&1 &
		pid=$!
		sleep "$(awk -v s="$took" -v p=$part 'BEGIN { print s * p / 12 }')"
		kill -KILL $pid
		wait $pid
	} 2>/dev/null
	if [ -e "$tmp/run/step-00000064" ] || [ ! -d "$tmp/run" ]; then # over already, or not begun
		rm -rf "$tmp/run"
		continue
	fi
	after "after $part/12 of $took s"
done
echo "# sweep kill of a run, some calls and moments: $points points, $failures failures, $fresh before the first commit"
if [ $failures = 0 ] && [ "$points" -gt 2 ]; then
	echo "ok run_kill"
elif [ $failures = 0 ]; then
	echo "not ok run_kill: only $points kills came in time"
fi

(
	ulimit -f 4 # KiB: less than the weights
	"$gtrain" run -o "$tmp/full" "$tmp/t.cfg" >"$tmp/out" 2>&1
)
rc=$?
if [ $rc = 74 ] && grep -q "$tmp/full/step-00000007.tmp-[0-9a-f]*/model.safetensors: cannot write: File too large" "$tmp/out"; then
	echo "ok run_disk_full"
else
	echo "not ok run_disk_full: ended with $rc: $(tail -n 1 "$tmp/out")"
fi

# A disk that is full after the first checkpoints: the error names the command that continues the run, and the command does so.
if unshare -rm mount -t tmpfs -o size=96k none "$tmp/full" 2>/dev/null; then
	rm -rf "$tmp/full" && mkdir "$tmp/full"
	unshare -rm bash -c "mount -t tmpfs -o size=96k none '$tmp/full' && { '$gtrain' run -o '$tmp/full/run' '$tmp/t.cfg'; rc=\$?; } &&
		mount -o remount,size=8m '$tmp/full' && '$gtrain' resume '$tmp/full/run' >'$tmp/resumed' 2>&1 &&
		cp -r '$tmp/full/run' '$tmp/run'; exit \$rc" >"$tmp/out" 2>&1
	rc=$?
	hint="No space left on device; once there is space, \`gtrain resume $tmp/full/run\` continues the run from its last checkpoint"
	if [ $rc = 74 ] && tr '\n' ' ' <"$tmp/out" | grep -q "$hint" && [ "$(digests "$tmp/run")" = "$want" ]; then echo "ok run_full_resumed"
	else echo "not ok run_full_resumed: ended with $rc: $(tail -n 2 "$tmp/out") $(tail -n 1 "$tmp/resumed")"; fi
	rm -rf "$tmp/run"
else
	echo "skip run_full_resumed: mounting a tmpfs is not permitted here"
fi
# Without a checkpoint, there is nothing to resume.
if command -v strace >/dev/null && strace -qq -e trace=none true 2>/dev/null; then
	strace -f -qq -o /dev/null -e trace=fsync -e inject=fsync:error=ENOSPC:when=6+ "$gtrain" run -o "$tmp/run" "$tmp/t.cfg" >"$tmp/out" 2>&1
	rc=$?
	if [ $rc = 74 ] && grep -q 'step-00000007.tmp-.*No space left on device$' "$tmp/out"; then echo "ok run_full_fresh"
	else echo "not ok run_full_fresh: ended with $rc: $(tail -n 1 "$tmp/out")"; fi
else
	echo "skip run_full_fresh: no strace"
fi
