#!/bin/bash
# Limits of the process (ulimit) under which ranks run: open files, the size of files. Either the run works, or it says what is too low.
# shellcheck source=tests/par/start.sh
. "$(dirname "$0")/start.sh"
cd "$tmp" || exit 1
cat >ddp.cfg <<'E2'
schema = 1;
name = "ddp";
threads = 1;
data = { name = "synthetic"; batch = 30; classes = 10; samples = 320; samples_test = 64; };
model = { input = [1, 12, 12]; layers = ( { type = "flatten"; }, { type = "linear"; out = 10; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };
parallel = { mode = "ddp"; timeout = 20.0; };
checkpoint = { dir = "unused"; };
E2
(umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >token)

# limited NAME OPTION VALUE ARGS...: a run on two ranks under `ulimit OPTION VALUE`; its status in $rc
limited() {
	( # the output goes through a pipe: a file of this shell would be under the limit too
		ulimit "$2" "$3" || exit 99
		GTRAIN_TEST_MARK=$mark exec timeout 60 "$gtrain" run ddp.cfg -o "$1" "${@:4}" 2>&1
	) | cat >"$1.out"
	rc=${PIPESTATUS[0]}
}
# says NAME STATUS REGEXP
says() {
	local rest
	rest=$(left)
	if [ "$rc" != "$2" ] || ! grep -q "$3" "$1.out"; then
		fail "$1" "status $rc, not $2 with '$3': $(cat "$1.out")"
	elif [ -n "$rest" ]; then
		fail "$1" "left behind: $rest"
	else
		pass "$1"
	fi
}

# ---- open files ----
for n in 24 64; do
	limited "files_$n" -n $n --nproc 2
	says "files_$n" 0 'test accuracy'
done
limited files_soft -Sn 20 --nproc 4 # raised to what is needed
says files_soft 0 'test accuracy'
limited files_8 -n 8 --nproc 2
says files_8 1 '^gtrain: 2 ranks on this host: expected a hard limit of at least [0-9]* open files, got 8: '\
'raise it (ulimit -Hn), or start fewer ranks$'
limited files_20 -n 20 --nproc 2
says files_20 1 '^gtrain: rank [01]: rank [01] of 2: expected a hard limit of at least [0-9]* open files, got 20: raise it'

# ---- the size of files ----
limited size_0 -f 0 --nproc 2 # the launcher's
says size_0 74 '^gtrain: cannot get shared memory of [0-9]* bytes: File too large: the limit on file sizes (ulimit -f)'
limited size_4 -f 4 --nproc 2 # a rank's
says size_4 74 '^gtrain: rank [01]: cannot get shared memory of [0-9]* bytes: File too large: the limit on file sizes (ulimit -f)'
# The memory of the parameters, which all ranks share: the batch is not the cause.
limited size_shared -f 2000 -s 'model.input=[1,512,512]' --nproc 2
says size_shared 74 '^gtrain: rank [01]: parameters ([0-9.]* MiB): cannot get shared memory of [0-9]* bytes: File too large: the limit on '\
'file sizes (ulimit -f)'
limited size_file -f 4 -s parallel.mode=single
says size_file 74 '^gtrain: size_file/.*: cannot write: File too large'

# ---- another token ----
# Each host has another one: both say so at once, and go on waiting, as the right ones may yet come.
(umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >token1)
cp -p token token0
pid=()
for n in 0 1; do
	GTRAIN_TEST_MARK=$mark timeout 60 "$gtrain" run ddp.cfg -o tokens --nproc 1 --nnodes 2 --master-addr 127.0.0.1 --master-port "$port" \
		--token-file token$n --node-rank $n >tokens.$n 2>&1 &
	pid+=($!)
done
both_say() { [ "$(cat tokens.? | grep -c 'different token')" -ge 2 ]; }
wait_for both_say
kill -INT "${pid[@]}"
wait "${pid[0]}"
rc=$?
wait "${pid[1]}"
rc="$rc $?"
rejected='a process at 127.0.0.1 that claims to be rank 1 has a different token and was rejected; waiting up to 300 s for .*'
unreached='rank 1 has not reached rank 0 at 127.0.0.1 port [0-9]*: rank 0 on this port has a different token; trying for 300 s more'
if [ "$rc" = '130 130' ] && grep -q "^gtrain: warning: $rejected$" tokens.0 && grep -q "^gtrain: warning: $unreached$" tokens.1; then
	pass tokens
else
	fail tokens "statuses $rc: $(tail -n 3 tokens.?)"
fi
