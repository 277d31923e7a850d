#!/bin/bash
# parallel.mode = "dp" as a run: the bytes of its checkpoints, signals, failures, restarts, and what cannot be combined with it.
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
cfg=$nets/cnn.cfg # batches are normalised by each replica's part
fail() { echo "not ok $1: $2"; }

# same A B: checkpoints with the same weights, statistics and moments
same_bytes() {
	for f in model optimizer; do cmp "$tmp/$1/latest/$f.safetensors" "$tmp/$2/latest/$f.safetensors" || return 1; done
}

# Replicas make what ddp's ranks make: the sums are those of one tree, and one update of them or several are the same.
while read -r name n opts; do
	read -ra o <<<"$opts"
	if ! train dp "$cfg" -s parallel.mode=dp --nproc "$n" "${o[@]}"; then fail "dp_ddp_$name" "dp: $why"
	elif ! train ddp "$cfg" -s parallel.mode=ddp --nproc "$n" "${o[@]}"; then fail "dp_ddp_$name" "ddp: $why"
	elif same_bytes dp ddp; then echo "ok dp_ddp_$name"
	else fail "dp_ddp_$name" "other bytes"; fi
done <<-'END'
	two 2
	four_uneven 4 -s data.samples=459 -s train.accumulate=4
	three_bf16 3 -s precision=bf16 -s train.clip_norm=0.5
	torch_sampler 2 -s data.sampler=torch -s data.samples=459
END

# In every mode, from every mode.
if train whole "$cfg" -s parallel.mode=dp --nproc 2 -s train.eval_every_steps=10 &&
	train part "$cfg" -s parallel.mode=dp --nproc 2 -s train.eval_every_steps=10 -s train.steps=21 &&
	"$gtrain" resume -q "$tmp/part" --nproc 2 -s train.steps=50 >"$tmp/out" 2>"$tmp/err" && same_bytes whole part; then
	echo "ok dp_resumed_exactly"
else fail dp_resumed_exactly "$why $(tail -n 1 "$tmp/err")"; fi
rm -rf "$tmp/whole" "$tmp/part"
train walk "$nets/mlp.cfg" -s parallel.mode=dp --nproc 3 -s train.steps=10
train one "$nets/mlp.cfg"
while read -r steps mode ranks; do
	"$gtrain" resume -q "$tmp/walk" -s "train.steps=$steps" -s "parallel.mode=$mode" ${ranks:+--nproc "$ranks"} >"$tmp/out" 2>"$tmp/err" \
		</dev/null ||
		fail "dp_walks_to_$mode" "$(tail -n 1 "$tmp/err")"
done <<-'END'
	15 single
	20 dp 2
	25 ddp 2
	30 dp 4
	35 zero 2
	45 dp 3
	50 single
END
if got=$("$same" -l 1e-5 -w 1e-4 "$tmp/one" "$tmp/walk"); then echo "ok dp_walks_through_modes"; else fail dp_walks_through_modes "$got"; fi

# reproducible = "world": the bits of one rank.
train one "$cfg" -s reproducible=world -s parallel.shards=4
for n in 1 2 4; do
	if train dp "$cfg" -s reproducible=world -s parallel.shards=4 -s parallel.mode=dp --nproc $n &&
		same_bytes one dp; then echo "ok dp_world_$n"
	else fail dp_world_$n "other bytes $why"; fi
done

# endless DIR OPTIONS: a run in the background, past its first step. Leaves $pid.
set -m # or the shell would have its background jobs ignore SIGINT
endless() {
	local d=$tmp/$1
	shift
	rm -rf "$d"
	"$gtrain" run --no-progress "$cfg" -o "$d" -s parallel.mode=dp --nproc 3 -s train.steps=100000000 "$@" >"$tmp/out" 2>"$tmp/err" \
		</dev/null &
	pid=$!
	for _ in $(seq 300); do
		grep -q '"event":"train"' "$d/metrics.jsonl" 2>/dev/null && return
		sleep 0.1
	done
}
for s in INT:130 TERM:143; do
	endless stopped
	kill "-${s%:*}" $pid
	wait $pid
	rc=$?
	if [ $rc != "${s#*:}" ] || ! grep -q "^gtrain: ended by signal" "$tmp/err"; then
		fail "dp_signal_${s%:*}" "status $rc: $(cat "$tmp/err")"
	elif ! "$gtrain" inspect "$tmp/stopped" --verify >"$tmp/out" 2>&1; then fail "dp_signal_${s%:*}" "$(tail -n 1 "$tmp/out")"
	elif compgen -G "$tmp/stopped/*tmp*" >"$tmp/out"; then fail "dp_signal_${s%:*}" "left something behind"
	else echo "ok dp_signal_${s%:*}"; fi
done
if "$gtrain" run -q "$cfg" -o "$tmp/limit" -s parallel.mode=dp --nproc 3 -s train.steps=100000000 --time-limit 1s >"$tmp/out" \
	2>"$tmp/err" &&
	grep -q '"status":"time limit"' "$tmp/limit/metrics.jsonl" && [ -e "$tmp/limit/latest" ]; then echo "ok dp_time_limit"
else fail dp_time_limit "$(tail -n 1 "$tmp/err")"; fi

# Killed, and started again from its newest checkpoint.
endless killed --max-restarts 1 -s checkpoint.every_steps=50
for _ in $(seq 300); do
	[ -e "$tmp/killed/latest" ] && break
	sleep 0.1
done
kill -KILL "$(pgrep -P $pid)"
for _ in $(seq 300); do
	grep -q '"event":"resume"' "$tmp/killed/metrics.jsonl" && break
	sleep 0.1
done
kill -TERM $pid
wait $pid
rc=$?
if [ $rc = 143 ] && grep -q '"event":"resume"' "$tmp/killed/metrics.jsonl"; then
	echo "ok dp_restarts"
else
	fail dp_restarts "status $rc: $(tail -n 2 "$tmp/err")"
fi

# gives NAME STATUS WORD OPTIONS: it ends so, and soon, with one sentence that has the word
gives() {
	local name=$1 status=$2 word=$3
	shift 3
	rm -rf "$tmp/no"
	timeout 60 "$@" </dev/null >"$tmp/out" 2>"$tmp/err"
	local rc=$?
	if [ $rc != "$status" ]; then fail "$name" "status $rc: $(tail -n 1 "$tmp/err")"
	elif [ "$(grep -c "^gtrain: $word" "$tmp/err")" != 1 ]; then fail "$name" "$(cat "$tmp/err")"
	else echo "ok $name"; fi
}
dp=("$gtrain" run -q --no-progress "$cfg" -o "$tmp/no" -s parallel.mode=dp --nproc 3)
gives dp_diverges 3 '.*diverged at step [0-9]*: .*is not finite' "${dp[@]}" -s train.optimizer.lr=1e30
# a small file system of its own
if unshare -rm mount -t tmpfs -o size=128k none /mnt 2>"$tmp/err"; then
	gives dp_disk_full 74 '/mnt/run/step-.*No space left' unshare -rm sh \
		-c 'mount -t tmpfs -o size=128k none /mnt && exec "$@" -o /mnt/run' sh "${dp[@]}" -s checkpoint.every_steps=1
else echo "skip dp_disk_full: mounting a tmpfs is not permitted here: $(tail -n 1 "$tmp/err")"; fi
gives dp_bad_config 78 '.*data.batch: expected at least 1 .train.accumulate. times 3 .ranks., got 2' "${dp[@]}" -s data.batch=2
sed 's/name = "synthetic"; batch = 24; .* samples_test = 50;/name = "fashion-mnist"; root = "nowhere"; batch = 24;/' \
	"$cfg" >"$tmp/no.cfg"
gives dp_no_data 66 '.*nowhere' "$gtrain" run -q --no-progress "$tmp/no.cfg" -o "$tmp/no" -s parallel.mode=dp --nproc 3
gives dp_under_torchrun 78 '.*torchrun started 2 ranks, which cannot be combined with parallel.mode = "dp"' env RANK=0 WORLD_SIZE=2 \
	LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 \
	MASTER_ADDR=127.0.0.1 MASTER_PORT=1 "$gtrain" run -q "$cfg" -o "$tmp/no" -s parallel.mode=dp
gives dp_on_hosts 78 '.*--nnodes 2 and parallel.mode = "dp" cannot be combined' "${dp[@]}" --nnodes 2 --master-addr 127.0.0.1
gives dp_sync_bn 78 '.*sync_bn.*' "${dp[@]}" -s parallel.sync_bn=true
