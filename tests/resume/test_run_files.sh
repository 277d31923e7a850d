#!/bin/bash
# The files of a run's directory beside its checkpoints: who may stand under their names, what becomes of damage, and that a log which
# cannot be written costs no training. And that no run begins inside a checkpoint.
set -u
export OMP_NUM_THREADS=1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/t.cfg" <<'C'
schema = 1; name = "files"; seed = 3;
data = { name = "synthetic"; samples = 320; samples_test = 64; batch = 32; classes = 10; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 10; } ); };
train = { epochs = 2; loss = "cross_entropy"; optimizer = { type = "sgd"; lr = 0.05; }; };
checkpoint = { dir = "unused"; };
log = { every_steps = 1; tensorboard = true; };
C
ok() { echo "ok $1"; }
run() { timeout 20 "$GTRAIN" "$@" >"$tmp/out" 2>"$tmp/log"; }
last() { tail -n1 "$tmp/log"; }

run run "$tmp/t.cfg" -o "$tmp/good" || echo "not ok run_files: $(last)"
events=$(find "$tmp/good" -name '*tfevents*')
if cmp -s "$tmp/good/config.cfg" "$tmp/good/latest/config.cfg" &&
	[ "$(stat -c %a "$tmp/good/config.cfg" "$tmp/good/metrics.jsonl" "$events" | sort -u)" = "$(printf %o $((0666 & ~$(umask))))" ]; then
	ok config_is_written
else
	echo "not ok config_is_written: $(ls -l "$tmp/good")"
fi
umask 026
if run resume "$tmp/good" -s train.epochs=3 && [ "$(stat -c %a "$tmp/good/config.cfg" "$tmp/good/metrics.jsonl" | sort -u)" = 640 ] &&
	cmp -s "$tmp/good/config.cfg" "$tmp/good/latest/config.cfg" && grep -q 'epochs = 3' "$tmp/good/config.cfg"; then
	ok config_is_refreshed
else
	echo "not ok config_is_refreshed: $(last); $(ls -l "$tmp/good")"
fi

# The umask decides who may read a run; the lock is never open to strangers, and a token is still refused if others can read it.
umask 022
modes() { find "$1" -printf '%y%m\n' | sed 's/^l.*/l/' | sort -u | tr '\n' ' '; }
if run run "$tmp/t.cfg" -o "$tmp/open/run" && [ "$(modes "$tmp/open")" = 'd755 f640 f644 l ' ] &&
	(umask 077 && run run "$tmp/t.cfg" -o "$tmp/shut") &&
	[ "$(modes "$tmp/shut")" = 'd700 f600 l ' ]; then
	ok modes_follow_umask
else
	echo "not ok modes_follow_umask: $(last); $(modes "$tmp/open"); $(modes "$tmp/shut")"
fi

# unused NAME STATUS ARGS...: a run that fails before it writes anything removes the folders that it has created, and no others.
unused() {
	local name=$1 status=$2 rc
	shift 2
	mkdir "$tmp/u"
	run run "$tmp/t.cfg" -o "$tmp/u/deep//er/" "$@"
	rc=$?
	if [ $rc = "$status" ] && [ -z "$(ls -A "$tmp/u")" ]; then ok "$name"; else echo "not ok $name: status $rc, $(ls -AR "$tmp/u")"; fi
	rm -rf "$tmp/u"
}
unused failed_run_leaves_no_folder 66 --init "$tmp/nowhere"
unused failed_ranks_leave_no_folder 66 --init "$tmp/nowhere" -s parallel.mode=ddp --nproc 2
unused failed_threads_leave_no_folder 66 --init "$tmp/nowhere" -s parallel.mode=dp --nproc 2
# A disk that is full at the lock, at metrics.jsonl or at config.cfg, and ranks that are killed before the first step.
limited() { # NAME BLOCKS ARGS...
	local name=$1 blocks=$2
	shift 2
	mkdir "$tmp/u"
	(ulimit -f "$blocks" && exec "$GTRAIN" run "$tmp/t.cfg" -o "$tmp/u/a/b" "$@") >"$tmp/log" 2>&1 </dev/null
	if [ $? -gt 70 ] && [ -z "$(ls -A "$tmp/u")" ]; then ok "$name"; else echo "not ok $name: $(last), $(ls -AR "$tmp/u")"; fi
	rm -rf "$tmp/u"
}
for blocks in 0 1; do
	limited "no_folder_$blocks" $blocks
	limited "no_folder_${blocks}_ranks" $blocks -s parallel.mode=ddp --nproc 2
	limited "no_folder_${blocks}_threads" $blocks -s parallel.mode=dp --nproc 2
done
mkdir "$tmp/u"
if ! (ulimit -s 64 && exec "$GTRAIN" run "$tmp/t.cfg" -o "$tmp/u/a/b" -s parallel.mode=ddp --nproc 2) >"$tmp/log" 2>&1 </dev/null &&
	[ -z "$(ls -A "$tmp/u")" ]; then
	ok no_folder_killed_ranks
else
	echo "not ok no_folder_killed_ranks: $(last) $(ls -AR "$tmp/u")"
fi
rm -rf "$tmp/u"
# The space of the disk: compared with the bytes of a checkpoint before the first step.
run run "$tmp/t.cfg" -o "$tmp/size"
bytes=$(cat "$tmp"/size/latest/* | wc -c)
"${CC:-gcc}" -O1 -shared -fPIC -D_GNU_SOURCE "$(dirname "$0")/small_disk.c" -o "$tmp/small_disk.so" -ldl || exit 1
disk() { # NAME STATUS TEXT BYTES ARGS...
	local name=$1 status=$2 text=$3 free=$4
	shift 4
	mkdir "$tmp/u"
	LD_PRELOAD=$tmp/small_disk.so SMALL_DISK=$free timeout 20 "$GTRAIN" run "$tmp/t.cfg" -o "$tmp/u/a" "$@" >"$tmp/out" 2>"$tmp/log"
	if [ $? = "$status" ] && if [ "$text" ]; then grep -q "$text" "$tmp/log"; else ! grep -q 'on disk' "$tmp/log"; fi &&
		{ [ "$status" = 0 ] || [ -z "$(ls -A "$tmp/u")" ]; }; then
		ok "$name"
	else
		echo "not ok $name: $(cat "$tmp/log") $(ls -AR "$tmp/u")"
	fi
	rm -rf "$tmp/u"
}
needs="u/a: a checkpoint needs .* ([0-9]* bytes), but only .* ($((bytes - 1024)) bytes) are free on this disk"
disk disk_full 74 "$needs" $((bytes - 1024))
said=$(sed -n 's/.* needs .* (\([0-9]*\) bytes), but.*/\1/p' "$tmp/log")
if [ "$said" -ge $((bytes - 1024)) ] && [ "$said" -le $((bytes + 32768)) ]; then
	ok disk_bytes
else
	echo "not ok disk_bytes: $said, not $bytes"
fi
disk disk_full_dry 74 "$needs" $((bytes - 1024)) --dry-run
disk disk_full_dry_ranks 74 "$needs" $((bytes - 1024)) --dry-run -s parallel.mode=ddp --nproc 2
disk disk_full_ranks 74 "$needs" $((bytes - 1024)) -s parallel.mode=ddp --nproc 2
LD_PRELOAD=$tmp/small_disk.so SMALL_DISK=$((bytes - 1024)) timeout 20 "$GTRAIN" resume "$tmp/size" -s train.epochs=6 \
	>"$tmp/out" 2>"$tmp/log"
if [ $? = 74 ] && grep -q 'free some space, or move the directory to another disk and resume it there' "$tmp/log" &&
	! grep -q -e '--out' "$tmp/log"; then
	ok disk_full_resume
else
	echo "not ok disk_full_resume: $(cat "$tmp/log")"
fi
disk disk_keep 0 'warning: .*u/a: up to 4 checkpoints of .* (checkpoint.keep = 3) and need .*, but only' $((said * 3)) -s train.epochs=6
disk disk_enough 0 '' $((bytes * 8 + 100000)) -s train.epochs=6
mkdir "$tmp/u" "$tmp/u/empty" "$tmp/u/other"
touch "$tmp/u/other/file"
for d in empty other other/new; do run run "$tmp/t.cfg" -o "$tmp/u/$d" --init "$tmp/nowhere"; done
if [ -d "$tmp/u/empty" ] && [ -f "$tmp/u/other/file" ] && [ ! -e "$tmp/u/other/new" ]; then
	ok failed_run_keeps_folders_of_others
else
	echo "not ok failed_run_keeps_folders_of_others: $(find "$tmp/u")"
fi
rm -rf "$tmp/u"

# A run that diverged before its first checkpoint: what to do in place of a resume.
run run "$tmp/t.cfg" -o "$tmp/diverged" -s train.optimizer.lr=1e38
run resume "$tmp/diverged"
if [ $? = 66 ] && grep -q 'there is no checkpoint, because the run ended before .*; start it again with `gtrain run' "$tmp/log" &&
	run run "$tmp/t.cfg" -o "$tmp/diverged"; then
	ok resume_without_checkpoint
else
	echo "not ok resume_without_checkpoint: $(last)"
fi

# what NAME HOW: a file of another kind stands under a name: run and resume say so, at once, and touch nothing behind it.
echo precious >"$tmp/victim"
for kind in symlink fifo directory; do
	wrong=''
	for verb in run resume; do
		d=$tmp/$kind-$verb
		if [ $verb = run ]; then mkdir -m 700 "$d"; else
			cp -a "$tmp/good" "$d"
			rm "$d/metrics.jsonl"
		fi
		case $kind in
		symlink) ln -s "$tmp/victim" "$d/metrics.jsonl" ;;
		fifo) mkfifo "$d/metrics.jsonl" ;;
		directory) mkdir "$d/metrics.jsonl" ;;
		esac
		if [ $verb = run ]; then run run "$tmp/t.cfg" -o "$d"; else run resume "$d" -s train.epochs=4; fi
		rc=$?
		[ $rc = 73 ] && grep -q "metrics.jsonl: expected a regular file, got a .*; remove or rename it" "$tmp/log" ||
			wrong="$wrong $verb: $rc, $(last);"
		[ "$(cat "$tmp/victim")" = precious ] || wrong="$wrong $verb: the file behind the link was written;"
	done
	if [ -z "$wrong" ]; then ok "metrics_${kind}"; else echo "not ok metrics_${kind}:$wrong"; fi
done

# Temporaries have names that nobody can guess, and are created, never opened: the old fixed name is nobody's.
d=$tmp/tmp-link
cp -a "$tmp/good" "$d"
ln -s "$tmp/victim" "$d/metrics.jsonl.tmp"
if run resume "$d" -s train.epochs=4 && [ "$(cat "$tmp/victim")" = precious ]; then
	ok metrics_temporary
else
	echo "not ok metrics_temporary: $(last)"
fi

# A hard link to metrics.jsonl, as `cp -al` makes a snapshot: it stays as it was.
d=$tmp/snapshot
cp -a "$tmp/good" "$d"
ln "$d/metrics.jsonl" "$tmp/snapshot.jsonl"
before=$(sha256sum <"$tmp/snapshot.jsonl")
if run resume "$d" -s train.epochs=4 && [ "$(sha256sum <"$tmp/snapshot.jsonl")" = "$before" ]; then
	ok metrics_snapshot
else
	echo "not ok metrics_snapshot: $(last)"
fi

# Damage: garbage, NUL bytes, a line that is JSON but no event, a line cut short. Whole lines stay, the others are counted.
d=$tmp/damaged
cp -a "$tmp/good" "$d"
kept=$(grep -c . "$d/metrics.jsonl")
{
	printf 'garbage \xff\xfe\n'
	head -c 70000 /dev/zero
	printf '\n{"step":3}\n{"event":"train"}\n[1,2]\n'
	cat "$tmp/good/metrics.jsonl"
	printf '{"event":"train","step":3,"lo'
} >"$d/metrics.jsonl"
run resume "$d" -s train.epochs=4
rc=$?
if [ $rc = 0 ] && grep -q "metrics.jsonl: removed 6 damaged lines" "$tmp/log" &&
	[ "$(head -n "$kept" "$d/metrics.jsonl" | sha256sum)" = "$(sha256sum <"$tmp/good/metrics.jsonl")" ]; then
	ok metrics_damage
else
	echo "not ok metrics_damage: $rc, $(cat "$tmp/log")"
fi

# Writes to the logs fail, once or from then on: training continues to the same checkpoint, and the status is 74. Interrupted and short ones
# are not seen at all.
cat >"$tmp/fail.c" <<'C'
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count, syncs;

static int of_log(int fd)
{
	char link[64], path[4096];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	path[n > 0 ? n : 0] = 0;
	return strstr(path, getenv("FAIL_FILE")) && !strstr(path, "/step-");
}

ssize_t write(int fd, const void *data, size_t n)
{
	static ssize_t (*real)(int, const void *, size_t);
	const char *how = getenv("FAIL_HOW");
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "write");
	if (!how || fd <= 2 || n < 2 || !of_log(fd) || ++count < 8)
		return real(fd, data, n);
	if (!strcmp(how, "short"))
		return real(fd, data, n / 2);
	if (!strcmp(how, "eintr") && count % 2)
		return errno = EINTR, -1;
	if (!strcmp(how, "torn") && count == 9) /* the rest of what call 8 wrote a half of */
		return errno = ENOSPC, -1;
	if (!strcmp(how, "torn") && count == 8)
		return real(fd, data, n / 2);
	if (!strcmp(how, "ever") || (!strcmp(how, "once") && count == 8))
		return errno = ENOSPC, -1;
	return real(fd, data, n);
}

int fsync(int fd)
{
	static int (*real)(int);
	const char *how = getenv("FAIL_HOW");
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fsync");
	if (how && !strcmp(how, "sync") && of_log(fd) && ++syncs > 1) /* the first one is that of the new file */
		return errno = EIO, -1;
	return real(fd);
}
C
${CC:-gcc} -O1 -shared -fPIC -D_GNU_SOURCE "$tmp/fail.c" -o "$tmp/fail.so" -ldl || exit 1
preload=$tmp/fail.so
asan=$(ldd "$GTRAIN" 2>/dev/null | awk '/libasan/ { print $3 }')
[ -z "$asan" ] || preload="$asan $preload"
want=$(sha256sum <"$tmp/good/step-00000020/model.safetensors")
whole=$(grep -c '"event":"train"' "$tmp/good/metrics.jsonl")
for file in metrics.jsonl tfevents; do
	for how in short eintr once torn ever sync; do
		name=log_${file%.jsonl}_$how d=$tmp/${file:0:3}-$how
		FAIL_FILE=$file FAIL_HOW=$how LD_PRELOAD=$preload "$GTRAIN" run "$tmp/t.cfg" -o "$d" >"$tmp/out" 2>"$tmp/log"
		rc=$?
		wrong='' expect=74
		case $how in short | eintr) expect=0 ;; esac
		[ $rc = $expect ] || wrong="$wrong status $rc, $(last);"
		[ "$(sha256sum <"$d/step-00000020/model.safetensors")" = "$want" ] || wrong="$wrong other weights;"
		if [ $expect = 74 ]; then
			[ "$(grep -c "$file.*training continues" "$tmp/log")" = 1 ] || wrong="$wrong no warning;"
			grep -q "gtrain: .*$file.*the checkpoints are complete" "$tmp/log" || wrong="$wrong the end does not say it;"
		fi
		if [ $file = metrics.jsonl ]; then
			n=$(grep -c '^{"event":"train",.*}$' "$d/metrics.jsonl")
			case $how in
			once | torn) lines=19 ;;
			ever) lines=$n ;;
			*) lines=20 ;;
			esac
			[ "$n" = "$lines" ] || wrong="$wrong $n lines of training;"
			[ "$(grep -cv '^{.*}$' "$d/metrics.jsonl")" = 0 ] || wrong="$wrong a torn line;"
		fi
		if [ -z "$wrong" ]; then ok "$name"; else echo "not ok $name:$wrong"; fi
	done
done
[ "$whole" = 30 ] || echo "not ok run_files: the undisturbed run has $whole lines"

# Nothing begins inside a checkpoint, and a resume that may name one leaves it alone.
d=$tmp/inside
cp -a "$tmp/good" "$d"
before=$(find "$d/step-00000020" -printf '%P %s %T@\n' | sort)
wrong=''
for out in "$d/step-00000020" "$d/latest" "$d/step-00000020/runs/new" "$d/step-00000099"; do
	run run "$tmp/t.cfg" -o "$out"
	rc=$?
	[ $rc = 73 ] && grep -q 'checkpoint' "$tmp/log" || wrong="$wrong run -o $out: $rc, $(last);"
done
run resume "$d/step-00000020" --from 30 && wrong="$wrong two steps were asked for at once;"
grep -q 'names a different step' "$tmp/log" || wrong="$wrong $(last);"
cp -a "$d/step-00000020" "$tmp/alone"
run resume "$tmp/alone" -s train.epochs=9
[ $? = 64 ] && grep -q "expected a checkpoint in a run directory" "$tmp/log" || wrong="$wrong a checkpoint alone: $(last);"
(cd "$d/step-00000020" && timeout 20 "$GTRAIN" resume . -s train.epochs=4 >"$tmp/out" 2>"$tmp/log") || wrong="$wrong resume .: $(last);"
[ -d "$d/step-00000040" ] && [ "$(find "$d" -path '*/history-*/step-00000030' | wc -l)" = 1 ] ||
	wrong="$wrong resume . did not go on from step 20: $(ls "$d");"
[ "$(find "$d/step-00000020" -printf '%P %s %T@\n' | sort)" = "$before" ] || wrong="$wrong a committed checkpoint has changed;"
if [ -z "$wrong" ]; then ok no_run_inside_a_checkpoint; else echo "not ok no_run_inside_a_checkpoint:$wrong"; fi
exit 0
