#!/bin/bash
# Real runs on several ranks: by gtrain's own launcher, torchrun, mpirun of Open MPI and of MPICH, a step of Slurm (its variables), two
# launchers as on two hosts. All of them give the same weights, and nothing is left behind; a lost rank costs a restart, and no bit.
# $TORCHRUN: torchrun, where it is not in $PATH. Old ones know its options with underscores only, new ones in both ways.
# shellcheck source=tests/par/start.sh
. "$(dirname "$0")/start.sh"
cd "$tmp" || exit 1
# threads: the starters give ranks different numbers of them, and sums follow it
cat >ddp.cfg <<'E2'
schema = 1;
name = "ddp";
threads = 1;
data = { name = "synthetic"; batch = 30; classes = 10; samples = 320; samples_test = 64; };
model = { input = [1, 12, 12]; layers = ( { type = "flatten"; }, { name = "a"; type = "linear"; out = 40; }, { type = "relu"; },
	{ name = "b"; type = "linear"; out = 10; } ); };
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.001; }; };
parallel = { mode = "ddp"; };
checkpoint = { dir = "unused"; };
E2
weights() { sha256sum <"$1/latest/model.safetensors" 2>/dev/null | cut -d ' ' -f 1; }

# same NAME DIR RANKS STATUS: the run in DIR ended well, and has the weights of the launcher's own run
same() {
	local rest
	rest=$(left)
	if [ "$4" != 0 ]; then
		fail "$1" "status $4: $(cat "$1.out")"
	elif [ "$(weights "$2")" != "$(weights "own$3")" ] || [ -z "$(weights "$2")" ]; then
		fail "$1" "weights $(weights "$2"), not $(weights "own$3")"
	elif [ "$(grep -c 'test accuracy' "$1.out")" != 1 ]; then
		fail "$1" "not one result: $(cat "$1.out")"
	elif [ "$(grep -c '"event":"end"' "$2/metrics.jsonl")" != 1 ]; then
		fail "$1" "metrics.jsonl: $(grep -c '"event":"end"' "$2/metrics.jsonl") ends"
	elif [ -n "$rest" ]; then
		fail "$1" "left behind: $rest"
	else
		pass "$1"
	fi
}

for n in 2 3; do
	start "$gtrain" run ddp.cfg --nproc $n -o own$n >own_$n.out 2>&1
	same own_$n own$n $n $?
done
torchrun=${TORCHRUN:-$(command -v torchrun)} no_torchrun='no torchrun (TORCHRUN=… names one)'
if [ -n "$torchrun" ] && ! "$torchrun" --standalone --no_python --nproc_per_node 1 true >/dev/null 2>&1; then
	torchrun='' no_torchrun='this torchrun starts nothing (that of PyTorch 1.13 does not work with Python 3.11)'
fi
openmpi=$(command -v mpirun.openmpi) mpich=$(command -v mpirun.mpich)
root=
[ "$(id -u)" = 0 ] && root=--allow-run-as-root
for n in 2 3; do
	if [ -n "$torchrun" ]; then
		start "$torchrun" --standalone --no_python --nproc_per_node $n "$gtrain" run ddp.cfg -o torchrun$n >torchrun_$n.out 2>&1
		same torchrun_$n torchrun$n $n $?
	else
		skip torchrun_$n "$no_torchrun"
	fi
	if [ -n "$openmpi" ]; then
		# shellcheck disable=SC2086
		start "$openmpi" $root --oversubscribe -n $n "$gtrain" run ddp.cfg -o openmpi$n >openmpi_$n.out 2>&1
		same openmpi_$n openmpi$n $n $?
	else
		skip openmpi_$n "no mpirun of Open MPI (openmpi-bin)"
	fi
	if [ -n "$mpich" ]; then
		start "$mpich" -n $n "$gtrain" run ddp.cfg -o mpich$n >mpich_$n.out 2>&1
		same mpich_$n mpich$n $n $?
	else
		skip mpich_$n "no mpirun of MPICH (mpich)"
	fi
	PROGRAM=$gtrain join slurm $n run ddp.cfg -o slurm$n
	cat rank.* >slurm_$n.out
	rc=0
	[[ $codes == *[!0\ ]* ]] && rc="$codes"
	same slurm_$n slurm$n $n "$rc"
done

# As on two hosts of one and of two ranks… each host has as many: 2 x 1.
(umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >token)
hosts="--nproc 1 --nnodes 2 --master-addr 127.0.0.1 --master-port $port --token-file token"
# shellcheck disable=SC2086
start "$gtrain" run ddp.cfg -o hosts2 $hosts --node-rank 1 >hosts_1.out 2>&1 &
# shellcheck disable=SC2086
start "$gtrain" run ddp.cfg -o hosts2 $hosts --node-rank 0 >hosts_0.out 2>&1
rc=$?
wait $! || rc=$?
cat hosts_[01].out >hosts.out
same hosts hosts2 2 $rc

# ---- a rank is lost, and the run goes on ----
# strike RANK DIR [OUTPUT...]: SIGKILL after the first checkpoint in DIR, when the launchers with these outputs have met; its process is in
# victim, "": it was not found. The process is found before the checkpoint, so that the signal follows the checkpoint at once.
strike() {
	victim=
	wait_for find_victim "$1"
	wait_for saved_or_over "${@:2}"
	[ -z "$victim" ] || kill -KILL "$victim" 2>/dev/null
}
find_victim() {
	# shellcheck disable=SC2046
	victim=$(grep -lzs "^GTRAIN_RANK=$1$" $(marked) /dev/null | sed 's,/proc/\([0-9]*\)/.*,\1,')
	[ -n "$victim" ] || over
}
saved_or_over() { { [ -e "$1/latest" ] && met "${@:2}"; } || over; }
over() { ! kill -0 "$pid" 2>/dev/null; }
# settings EPOCHS: of a run that is long enough for the kill, in the array long. How long that is depends on the machine: lost() begins with
# few epochs, and takes four times as many whenever the run has ended before the kill.
settings() {
	long=(-s "train.epochs=$1" -s "train.eval_every_epochs=$1" -s checkpoint.every_epochs=0 -s checkpoint.every_steps=200
		-s checkpoint.keep=2)
}
# judge NAME DIR REST ARGS...: the run that lost a rank was started again once, and has the weights of the undisturbed run of ARGS
judge() {
	local name=$1 dir=$2 rest=$3 whole
	shift 3
	if [ -z "$victim" ]; then
		fail "$name" "no rank to kill: $(cat "$name.out")"
	elif [ "$rc" != 0 ] || [ "$restarts" != 1 ] || ! grep -q "^resuming from $dir/step-" "$name.out"; then
		fail "$name" "status $rc, $restarts restarts: $(cat "$name.out")"
	elif [ -n "$rest" ]; then
		fail "$name" "left behind: $rest"
	else
		pass "$name"
	fi
	rm -rf whole
	start "$gtrain" run ddp.cfg -o whole "$@" "${long[@]}" >whole.out 2>&1
	whole=$(weights whole)
	if [ -n "$whole" ] && [ "$(weights "$dir")" = "$whole" ]; then
		pass "${name}_same_weights"
	else
		fail "${name}_same_weights" "$(weights "$dir"), not $whole"
	fi
}
# lost NAME DIR RANK ARGS...: SIGKILL to a rank after the first checkpoint, and a restart
lost() {
	local name=$1 dir=$2 rank=$3 epochs pid victim rc restarts
	shift 3
	for ((epochs = 200; epochs < 10000000; epochs *= 4)); do
		rm -rf "$dir"
		settings $epochs
		GTRAIN_TEST_MARK=$mark timeout 120 "$gtrain" run ddp.cfg -o "$dir" --max-restarts 2 "$@" "${long[@]}" >"$name.out" 2>&1 &
		pid=$!
		strike "$rank" "$dir"
		wait $pid
		rc=$?
		restarts=$(grep -c "^rank $rank was killed by signal 9 (Killed) at step [0-9]*.*; restart 1 of 2 in 1 s" "$name.out")
		[ "$rc $restarts" != "0 0" ] && break
	done
	judge "$name" "$dir" "$(left)" "$@"
}
lost rank_lost lost2 1 --nproc 2
lost rank_0_lost lost0 0 --nproc 2
# On two hosts: both start again, by the word of the one that lost its rank.
hosts_lost() {
	local epochs pid other victim rc restarts n
	for ((epochs = 200; epochs < 10000000; epochs *= 4)); do
		rm -rf lost_h
		settings $epochs
		for n in 0 1; do
			# shellcheck disable=SC2086
			GTRAIN_TEST_MARK=$mark timeout 120 "$gtrain" run ddp.cfg -o lost_h $hosts --node-rank $n --max-restarts 2 "${long[@]}" \
				>lost_h$n.out 2>&1 &
			[ $n = 1 ] || pid=$!
		done
		other=$!
		strike 1 lost_h lost_h1.out
		wait $pid
		rc=$?
		wait $other || rc="$rc $?"
		cat lost_h[01].out >hosts_lost.out
		restarts=$(grep -c "rank 1 was killed by signal 9 (Killed) at step [0-9]*.*; restart 1 of 2 in 1 s" hosts_lost.out)
		[ "$rc $restarts" != "0 0" ] && break
	done
	if grep -q "^node 1 (.*): rank 1 was killed by signal 9 (Killed) at step [0-9]*.*; restart 1 of 2 in 1 s" lost_h0.out &&
		grep -q "^rank 1 was killed by signal 9 (Killed) at step [0-9]*.*; restart 1 of 2 in 1 s" lost_h1.out && [ "$restarts" = 2 ]; then
		restarts=1
	fi
	judge hosts_lost lost_h "$(left)" --nproc 2
}
hosts_lost
# The other host says once where the output of the run is, and at last that the run has ended. (In a short run, the hosts may not meet.)
# shellcheck disable=SC2086
timeout 120 "$gtrain" run ddp.cfg -o meet $hosts --node-rank 1 -s train.epochs=1000000 --time-limit 4s >meet_1.out 2>&1 &
# shellcheck disable=SC2086
timeout 120 "$gtrain" run ddp.cfg -o meet $hosts --node-rank 0 -s train.epochs=1000000 --time-limit 4s >meet_0.out 2>&1
wait $!
printf '%s\n' 'joined host 0 as node 1; the output of the run is on host 0' 'the run has ended; its result is on host 0' >joined.want
if cmp -s joined.want meet_1.out; then pass joined; else fail joined "$(cat meet_1.out)"; fi
sed -i 's/mode = "ddp"/mode = "single"/' ddp.cfg
lost single_lost lost1 0
sed -i 's/mode = "single"/mode = "ddp"/' ddp.cfg

# ---- errors are said once, by the exit status of the rank at fault ----
start "$gtrain" run ddp.cfg --nproc 3 -o /dev/null/x >cannot.out 2>&1
rc=$?
if [ $rc = 73 ] && [ "$(grep -c . cannot.out)" = 1 ] && grep -q "^gtrain: rank 0: /dev/null: cannot create directory" cannot.out; then
	pass said_once
else
	fail said_once "status $rc: $(cat cannot.out)"
fi
gives no_token 64 err "expected also --token-file" run ddp.cfg --nproc 2 --nnodes 2 --master-addr 192.0.2.1 -o x
gives no_address 64 err "expected also --master-addr" run ddp.cfg --nproc 2 --nnodes 2 -o x
gives one_host 64 err "--node-rank: expected also --nnodes" run ddp.cfg --nproc 2 --node-rank 1 -o x
gives no_such_node 64 err "--node-rank 2: expected a number below --nnodes 2" run ddp.cfg --nnodes 2 --node-rank 2 \
	--master-addr 192.0.2.1 -o x
elastic=(run ddp.cfg --nproc 1 --master-addr 127.0.0.1 --token-file token -o x)
gives elastic_range 64 err "--nnodes: expected a minimum that is not above the maximum, got '3:2'" "${elastic[@]}" --nnodes 3:2
gives elastic_word 64 err "or two of them as MIN:MAX, got 'x'" "${elastic[@]}" --nnodes 1:x
gives elastic_one 64 err "--nnodes 1:1: expected a maximum of at least 2 hosts" "${elastic[@]}" --nnodes 1:1
gives elastic_port 64 err "--master-port 65534: expected at most 65533, because --nnodes 1:2 uses three ports" "${elastic[@]}" \
	--nnodes 1:2 --master-port 65534
gives elastic_sampler 78 err '--nnodes 1:2 and data.sampler = "torch" cannot be combined' "${elastic[@]}" --nnodes 1:2 -s data.sampler=torch
gives elastic_batch 78 err "--nnodes 1:2 and data.batch_per_rank cannot be combined" "${elastic[@]}" --nnodes 1:2 -s data.batch=0 \
	-s data.batch_per_rank=15
gives elastic_count 78 err "--nnodes 1:4 with 3 hosts: " "${elastic[@]}" --nnodes 1:4 -s reproducible=world -s data.batch=32
gives elastic_dir 78 err "--nnodes 1:2 needs a directory of the run, which all hosts share" run ddp.cfg -s checkpoint.dir= --nproc 1 \
	--master-addr 127.0.0.1 --token-file token --nnodes 1:2
gives single_nproc 78 err "--nproc 2 and parallel.mode = \"single\" cannot be combined" run ddp.cfg -s parallel.mode=single --nproc 2 -o x
RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 gives single_joins 78 err \
	"torchrun started 2 ranks, which cannot be combined with parallel.mode = \"single\"" run ddp.cfg -s parallel.mode=single -o x
RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 gives joined_nproc 64 err \
	"torchrun started 2 ranks, 2 of them on this host, but --nproc gives a different number" run ddp.cfg --nproc 3 -o x
RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 gives joined_restarts 64 err \
	"but torchrun started the ranks and must restart them" run ddp.cfg --max-restarts 3 -o x

# Without gloo, a run on several hosts fails before it waits for the other hosts, whoever starts the ranks; a loopback address is one host.
mkdir -p none/bin none/lib/gtrain
cp "$gtrain" none/bin/gtrain
cp "$(dirname "$gtrain")"/../lib/gtrain/*.so none/lib/gtrain
rm -f none/lib/gtrain/gloo.so
no_gloo='the ranks run on several hosts, and communication between hosts needs the gloo plugin: gloo is not installed'
gtrain=$tmp/none/bin/gtrain gives no_gloo 69 err "gtrain: $no_gloo" run ddp.cfg --nproc 1 --nnodes 2 --node-rank 1 --token-file token \
	--master-addr 192.0.2.1 -o x
grep -q "install Debian's package libgloo-dev" err && pass no_gloo_package || fail no_gloo_package "$(cat err)"
gtrain=$tmp/none/bin/gtrain gives no_gloo_elastic 69 err "gtrain: $no_gloo" "${elastic[@]}" --nnodes 1:2 --master-addr 192.0.2.1
RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=192.0.2.1 GTRAIN_TOKEN_FILE=token gtrain=$tmp/none/bin/gtrain \
	gives no_gloo_torchrun 69 err "gtrain: rank 1: $no_gloo" run ddp.cfg -o x
gtrain=$tmp/none/bin/gtrain gives no_gloo_one_host 0 out '' run ddp.cfg -n --nproc 1 --nnodes 2 --token-file token \
	--master-addr 127.0.0.1 -o x

# A host whose --nnodes is of the other form than that of host 0 is told so.
# mixed NAME NNODES0 NNODES1 TEXT: host 1 prints TEXT
mixed() {
	local pid=() n nodes=("$2" "$3")
	for n in 0 1; do
		GTRAIN_TEST_MARK=$mark timeout 60 "$gtrain" run ddp.cfg -o "$1" --nproc 1 --nnodes "${nodes[$n]}" --node-rank $n \
			--master-addr 127.0.0.1 --master-port "$port" --token-file token >"$1.$n" 2>&1 &
		pid[n]=$!
	done
	wait_for grep -q -- "$4" "$1.1"
	if grep -q -- "$4" "$1.1"; then pass "$1"; else fail "$1" "$(cat "$1".?)"; fi
	kill -TERM "${pid[@]}"
	wait "${pid[@]}"
}
mixed fixed_joins_elastic 2:2 2 "port $port: host 0 was started with --nnodes MIN:MAX; start all hosts with the same --nnodes; trying for"
mixed elastic_joins_fixed 2 2:2 "port $port; it was started with --nnodes N instead of MIN:MAX: start all hosts with the same --nnodes"

# A directory that another run uses: rank 1 names the reason of rank 0, complete
"$gtrain" run ddp.cfg --nproc 2 -q -o used -s train.epochs=1000000 >used.out 2>&1 &
user=$!
wait_for [ -s used/metrics.jsonl ]
PROGRAM=$gtrain join torchrun 2 run ddp.cfg -o used
kill -TERM $user
wait $user
if [ "$codes" = '73 75 ' ] && grep -q '^gtrain: rank 0: another run (pid [0-9]*) uses used$' rank.0 &&
	grep -q '^gtrain: rank 1: rank 0 gave up: another run (pid [0-9]*) uses used$' rank.1; then
	pass used_directory
else
	fail used_directory "statuses $codes: $(cat rank.0 rank.1)"
fi

# ---- SIGTERM to the launcher: one checkpoint, 143, and the sentence of one rank ----
settings 1000000
GTRAIN_TEST_MARK=$mark "$gtrain" run ddp.cfg --nproc 3 -o term "${long[@]}" >term.out 2>&1 &
pid=$!
wait_for [ -e term/latest ]
kill -TERM $pid
wait $pid
rc=$?
rest=$(left)
if [ $rc = 143 ] && [ "$(grep -c "^gtrain: ended by signal 15 (Terminated) after step [0-9]*$" term.out)" = 1 ] && [ -z "$rest" ] &&
	"$gtrain" inspect term --verify >/dev/null 2>&1 && [ "$(grep -c '^gtrain:' term.out)" = 1 ]; then
	pass sigterm
else
	fail sigterm "status $rc, left: $rest: $(cat term.out)"
fi
