# Shared by the tests of ranks; sourced. Every process they start carries a mark in its environment, so that what is left
# behind can be counted.
# shellcheck shell=bash
# shellcheck source=tests/cli/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/cli.sh"
tool=${GTRAIN_BUILD:-$src/build}/tests/par/tool_team
mark=$$.$RANDOM
# start ARGS...: a program that carries the mark
start() { GTRAIN_TEST_MARK=$mark timeout 60 "$@"; }
for v in RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT OMP_NUM_THREADS GTRAIN_TOKEN_FILE; do unset "$v"; done
for v in $(compgen -e | grep -E '^(OMPI_|PMI_|PMIX_|MPI_|SLURM_)'); do unset "$v"; done

# A free port, and the two after it, which are this test's alone while it runs: two of them may run on one machine. The tool ends with this
# shell.
coproc HOLD { exec "${GTRAIN_BUILD:-$src/build}/tests/par/tool_port"; }
read -r port <&"${HOLD[0]}" || exit 1
disown "$HOLD_PID" # a bare `wait` does not wait for it
listening() { awk '$4 == "0A" { print $2 }' /proc/net/tcp; }

marked() { grep -lzs "^GTRAIN_TEST_MARK=$mark$" /proc/[0-9]*/environ; }

# left: what is left of all that was started; nothing: an empty word. A process that was killed takes a moment to go. Ports
# and names in the abstract namespace are gone with the processes.
left() {
	local what _
	for _ in $(seq 50); do
		what=$(marked | tr '\n' ' ')
		[ -z "$what" ] && break
		sleep 0.1
	done
	[ -z "$what" ] || echo "processes $what"
	find /dev/shm -maxdepth 1 -type f -name '*gtrain*' -printf 'shared memory %p\n'
}

# met FILE...: in each of these outputs, a launcher says that it is connected to that of host 0. The ranks may meet before the launchers do,
# and a launcher that has met no other one cannot say what happened on its host.
met() { [ "$(grep -ls '^joined host 0 as node' "$@" /dev/null | wc -l)" = $# ]; }

# join HOW N ARGS...: tool_team on N ranks, started by hand in the way of HOW, rank $ABSENT left out. Their output in $tmp/rank.R, their
# statuses in $codes.
join() {
	local how=$1 n=$2 r pids=() p
	shift 2
	for ((r = 0; r < n; r++)); do
		[ "${ABSENT:-}" = "$r" ] && continue
		(
			case $how in
			torchrun) export RANK=$r WORLD_SIZE=$n LOCAL_RANK=$r LOCAL_WORLD_SIZE=$n MASTER_ADDR=127.0.0.1 MASTER_PORT=$port ;;
			openmpi) export OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=$n OMPI_COMM_WORLD_LOCAL_RANK=$r OMPI_COMM_WORLD_LOCAL_SIZE=$n ;;
			mpich) export PMI_RANK=$r PMI_SIZE=$n MPI_LOCALRANKID=$r MPI_LOCALNRANKS=$n ;;
			slurm) export SLURM_PROCID=$r SLURM_NTASKS=$n SLURM_LOCALID=$r SLURM_NODEID=0 SLURM_NNODES=1 SLURM_JOB_ID=104711 \
				SLURM_STEP_NODELIST=node7 SLURM_STEP_TASKS_PER_NODE=$n SLURM_JOB_NAME=train ;;
			esac
			GTRAIN_TEST_MARK=$mark exec timeout 60 "${PROGRAM:-$tool}" "$@" >"$tmp/rank.$r" 2>&1
		) &
		pids+=($!)
	done
	codes=
	for p in "${pids[@]}"; do
		wait "$p"
		codes="$codes$? "
	done
}

# endless_net BATCH TIMEOUT STEPS TOKEN...: writes net.cfg, a run in mode ddp that only a signal ends and that saves a checkpoint every
# STEPS steps, and files with different tokens
endless_net() {
	local t
	for t in "${@:4}"; do (umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >"$t"); done
	cat >net.cfg <<-CFG
		schema = 1;
		name = "net";
		threads = 1;
		data = { name = "synthetic"; samples = 512; samples_test = 64; batch = $1; classes = 10; };
		model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 10; } ); };
		train = { epochs = 1000000; eval_every_epochs = 1000000; optimizer = { type = "sgd"; lr = 0.001; }; };
		parallel = { mode = "ddp"; timeout = $2; };
		checkpoint = { dir = "unused"; every_epochs = 0; every_steps = $3; keep = 2; };
	CFG
}
