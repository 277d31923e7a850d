#!/bin/bash
# Two network namespaces as two hosts (tool_wire): ranks meet, lose packets, and lose each other; a training on two hosts is the one on one.
# What passes between hosts is gloo's; the wire is a program's, so a wire that loses 30% needs nothing of the kernel but TUN devices.
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
here=$GTRAIN_BUILD/tests/par
umask 077
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$dir/token"

check() { # name, exit status of the condition, what went on
	if [ "$2" = 0 ]; then echo "ok netns_$1"; else echo "not ok netns_$1: $3"; fi
}
skip() {
	echo "skip netns: $1"
	exit 0
}
[ -e "$GTRAIN_BUILD/lib/gtrain/gloo.so" ] || skip "built without gloo (libgloo-dev)"
"$here/tool_wire" true true >"$dir/out" 2>"$dir/err"
grep -q "status=0,0" "$dir/out" || skip "$(tail -n 1 "$dir/err")"

# The ranks of a host as torchrun starts them: host, ranks a host, arguments of tool_team.
team() {
	local host=$1 per=$2 i
	shift 2
	for ((i = 0; i < per; i++)); do
		echo -n "RANK=$((host * per + i)) LOCAL_RANK=$i WORLD_SIZE=$((2 * per)) LOCAL_WORLD_SIZE=$per GROUP_RANK=$host GROUP_WORLD_SIZE=2" \
			"MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 $here/tool_team -f $dir/token $* >>$dir/host$host 2>&1 & p$i=\$!; "
	done
	for ((i = 0; i < per; i++)); do echo -n "wait \$p$i || s=\$?; "; done
	echo "exit \${s:-0}"
}
two() { # ranks a host, options of tool_wire --, arguments of tool_team
	local per=$1 opts=()
	shift
	while [ "$1" != -- ]; do opts+=("$1") && shift; done
	shift
	rm -f "$dir"/host?
	timeout 150 "$here/tool_wire" "${opts[@]}" "$(team 0 "$per" "$@")" "$(team 1 "$per" "$@")" >"$dir/out" 2>"$dir/err"
	cat "$dir"/host? "$dir/err" >>"$dir/out"
}
appears() { # waits until a file is there, two minutes at most
	local i
	for ((i = 0; i < 12000; i++)); do
		[ ! -e "$1" ] || return
		sleep 0.01
	done
}
seconds() { # the larger of the two, in milliseconds
	sed -n 's/.*seconds=\([0-9.]*\),\([0-9.]*\).*/\1 \2/p' "$dir/out" | awk '{ printf "%d", 1000 * ($1 > $2 ? $1 : $2) }'
}

# Four ranks, two a host: 1 + 2 + 3 + 4 a step.
two 2 -- -s 200
grep -q "how=torchrun world=4 sum=2000 comm=gloo exchanges=3 " "$dir/out" && grep -q "status=0,0" "$dir/out"
check meet $? "$(cat "$dir/out")"

# 10% of the packets are lost: slower, and the same. (Of 30%, half of all segments have to be sent again, and TCP doubles its patience
# each time: right as well, but in 7 s or in 140.)
two 1 -l 10 -- -s 20 -t 60
grep -q "world=2 sum=60 comm=gloo exchanges=3 " "$dir/out" && grep -q "status=0,0" "$dir/out"
check loss $? "$(cat "$dir/out")"
echo "# netns: 20 steps over a wire that loses 10%: $(grep -o 'packets.*dropped=[0-9]*' "$dir/out"), $(seconds) ms"

# The cable is pulled when the ranks have met: each host names the other, within its timeout of 2 s. 3 s more, for a busy machine: TCP alone
# would take minutes.
(appears "$dir/met"; touch "$dir/cut") &
two 2 -c "$dir/cut" -- -s 1000000000 -t 2 -m "$dir/met"
wait
took=$(seconds)
grep -q "status=75,75" "$dir/out" && [ "$took" -le 5000 ]
check cut $? "$(cat "$dir/out")"
grep -Eq "^why rank [23] has not reached all_reduce #[0-9]+ of ranks \(world\) after 2 s" "$dir/host0"
check cut_host0 $? "$(cat "$dir/host0")"
grep -Eq "^why rank [01] has not reached all_reduce #[0-9]+ of ranks \(world\) after 2 s" "$dir/host1"
check cut_host1 $? "$(cat "$dir/host1")"
[ "$(sort -u "$dir/host0" | wc -l) $(sort -u "$dir/host1" | wc -l)" = "1 1" ]
check cut_agree $? "$(cat "$dir"/host?)"
echo "# netns: the cable pulled, timeout 2000 ms: both hosts have ended after $took ms"

# ---- a training ----------------------------------------------------------------------------------------------------------------
cat >"$dir/net.cfg" <<'CFG'
schema = 1;
name = "netns";
seed = 3;
data = { name = "synthetic"; samples = 2048; samples_test = 64; batch = 32; classes = 10; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 256; }, { type = "relu"; },
	{ type = "linear"; out = 32; }, { type = "tanh"; },
	{ type = "linear"; out = 24; }, { type = "relu"; }, { type = "linear"; out = 10; } ); };
train = { epochs = 4; loss = "cross_entropy"; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; };
parallel = { mode = "ddp"; timeout = 2.0; };
checkpoint = { dir = "unused"; every_steps = 20; keep = 2; };
threads = 1;
log = { every_steps = 1; };
CFG
export OMP_NUM_THREADS=1
digests() { # of the last checkpoint's tensors
	"$GTRAIN" inspect --verify "$1" >/dev/null 2>>"$dir/err" && sha256sum <"$1/latest/model.safetensors"
}
host() { # its number, where it writes, what follows
	echo "exec $GTRAIN run ${two:---nproc 1} --nnodes 2 --node-rank $1 --master-addr 10.77.0.1 --token-file $dir/token -o $2" \
		"--no-progress" \
		"${*:3} $dir/net.cfg >>$dir/host$1 2>&1"
}
train() { # options of tool_wire --, what follows run
	local opts=()
	while [ "$1" != -- ]; do opts+=("$1") && shift; done
	shift
	rm -rf "$dir"/host? "$dir/a" "$dir/b"
	timeout 150 "$here/tool_wire" "${opts[@]}" "$(host 0 "$dir/a" "$@")" "$(host 1 "$dir/b" "$@")" >"$dir/out" 2>"$dir/err"
	cat "$dir"/host? "$dir/err" >>"$dir/out"
}
first_checkpoint() { appears "$dir/a/latest"; } # of host 0
if ! "$GTRAIN" run --nproc 2 -o "$dir/one" --no-progress "$dir/net.cfg" >"$dir/log" 2>&1; then
	echo "not ok netns_one_host: $(cat "$dir/log")"
	exit 1
fi
whole=$(digests "$dir/one")
# Buckets so small that there are several: communication overlaps with the backward pass, and changes no bit.
for mode in ddp zero ddp_compressed; do
	opts=(-v -s "parallel.mode=${mode%_*}" -s parallel.bucket_mb=0.01) want=$whole
	if [ $mode = ddp_compressed ]; then
		opts+=(-s parallel.compress=bf16)
		"$GTRAIN" run --nproc 2 -o "$dir/packed" --no-progress -s parallel.compress=bf16 "$dir/net.cfg" >"$dir/log" 2>&1
		want=$(digests "$dir/packed")
	fi
	train -- "${opts[@]}"
	grep -q 'communication takes [0-9]* % of a step' "$dir/host0"
	check "train_${mode}_tells_overlap" $? "$(cat "$dir/out")"
	grep -q "status=0,0" "$dir/out" && [ -n "$want" ] && [ "$(digests "$dir/a")" = "$want" ]
	check "train_$mode" $? "$(cat "$dir/out")"
	[ ! -e "$dir/b" ]
	check "train_${mode}_one_writes" $? "$(ls "$dir/b" 2>&1)"
done

# Every mode with two ranks on each of two hosts; copies of a pipeline and its stages lie across both. One host's curve, and its weights:
# sums are of the same tree, but a stage's part of a batch is another, and CPU ranks of one host may take another way (plan/fused_update.c).
"$GTRAIN" run --nproc 2 -o "$dir/short" --no-progress -s train.steps=50 "$dir/net.cfg" >"$dir/log" 2>&1
two='--nproc 2'
for mode in "zero parallel.stage=2" "zero parallel.stage=3" "pipe parallel.schedule=gpipe" \
	"pipe parallel.schedule=1f1b parallel.replicas=2" \
	"pipe parallel.schedule=interleaved" "pipe parallel.schedule=zero-bubble parallel.replicas=2"; do
	read -ra words <<<"$mode"
	opts=(-s "parallel.mode=${words[0]}")
	for w in "${words[@]:1}"; do opts+=(-s "$w"); done
	name=train_four_$(tr -c 'a-z0-9\n' _ <<<"${mode//parallel./}")
	got=''
	train -- -s train.steps=50 "${opts[@]}"
	grep -q "status=0,0" "$dir/out" && grep -q ': 25,906 parameters, ' "$dir/out" &&
		got=$("$here/tool_same" -l 1e-5 -w 1e-4 -m 1e-3 "$dir/short" "$dir/a")
	check "$name" $? "$got $(cat "$dir/out")"
	echo "# netns: $name: $got"
done
two=''

# A rank is killed on the other host: both say so, and at once.
rm -rf "$dir/a"
(
	first_checkpoint
	# shellcheck disable=SC2046
	kill -KILL $(grep -lzs "^GTRAIN_TEST_MARK=$$$" $(grep -lzs "^GTRAIN_RANK=1$" /proc/[0-9]*/environ) /dev/null |
		sed 's,/proc/\([0-9]*\)/.*,\1,')
) &
GTRAIN_TEST_MARK=$$ train -- -s train.epochs=4000
wait
grep -q "status=75,137" "$dir/out"
check kill $? "$(cat "$dir/out")"
grep -Eq "^gtrain: node 1 \(.*\): rank 1 was killed by signal 9 \(Killed\) at step [0-9]+" "$dir/host0" &&
	grep -q "^gtrain: rank 1 was killed by signal 9" "$dir/host1"
check kill_names $? "$(tail -n 2 "$dir"/host?)"

# The cable is pulled while it trains. Who still commits? Rank 0's host alone, whole checkpoints only; and what it has goes on to the same
# end, on one host. First while it trains, then where it is saving most of the time: ranks wait longer for the one that writes.
for steps in 180 5; do
	name=train_cut_$steps
	rm -rf "$dir/a" "$dir/cut2"
	(first_checkpoint; sleep 0.01; touch "$dir/cut2") &
	train -c "$dir/cut2" -- -s train.epochs=400 -s "checkpoint.every_steps=$steps" -s checkpoint.every_epochs=0
	wait
	took=$(seconds)
	grep -q "status=75,75" "$dir/out" && [ "$took" -le 6000 ]
	check "$name" $? "$(cat "$dir/out")"
	grep -q "rank 1 has not" "$dir/host0" && grep -q "rank 0 has not" "$dir/host1"
	check "${name}_names" $? "$(cat "$dir"/host?)"
	[ ! -e "$dir/b" ] && "$GTRAIN" inspect --verify "$dir/a" >/dev/null 2>&1
	check "${name}_no_split" $? "$(ls "$dir/a" "$dir/b" 2>&1)"
	[ -z "$(find "$dir/a" -name "*.tmp*")" ]
	check "${name}_nothing_half" $? "$(ls -R "$dir/a" 2>&1)"
	"$GTRAIN" resume --nproc 2 -s train.epochs=4 --no-progress "$dir/a" >"$dir/log" 2>&1
	[ "$(digests "$dir/a")" = "$whole" ]
	check "${name}_resumed" $? "$(tail -n 3 "$dir/log")"
	echo "# netns: the cable pulled in a training that saves every $steps steps, timeout 2000 ms: both hosts have ended after $took ms"
done
