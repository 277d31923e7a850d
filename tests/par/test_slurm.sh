#!/bin/bash
# Steps of a real Slurm: a cluster of two nodes, both of them this machine, with its daemons in a scratch folder. Skipped where slurm-wlm
# and munge are not installed, which no package of gtrain asks for; test_launchers.sh has a step's variables by hand.
# shellcheck source=tests/par/start.sh
. "$(dirname "$0")/start.sh"
for p in slurmctld slurmd munged srun sbatch scancel sinfo; do
	if ! command -v $p >/dev/null; then
		skip slurm "no $p (slurm-wlm, munge)"
		exit 0
	fi
done
if [ "$(id -u)" != 0 ]; then
	skip slurm "a slurmd of one's own wants to be root"
	exit 0
fi
cd "$tmp" || exit 1
any_port() { "${GTRAIN_BUILD:-$src/build}/tests/par/tool_port" </dev/null; }
mkdir state spool-n1 spool-n2
(umask 077 && head -c 1024 /dev/urandom >key)
cat >slurm.conf <<E2
ClusterName=gtrain
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$(any_port)
AuthType=auth/munge
AuthInfo=socket=$tmp/munge
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$tmp/state
SlurmdSpoolDir=$tmp/spool-%n
SlurmctldPidFile=$tmp/slurmctld.pid
SlurmdPidFile=$tmp/slurmd-%n.pid
SlurmctldLogFile=$tmp/slurmctld.log
SlurmdLogFile=$tmp/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
NodeName=n1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$(any_port) CPUs=2 State=UNKNOWN
NodeName=n2 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$(any_port) CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
E2
export SLURM_CONF=$tmp/slurm.conf
daemons=()
background() {
	"$@" >>daemons.log 2>&1 &
	daemons+=($!)
	disown $!
}
# shellcheck disable=SC2154 # cli.sh's
trap 'scancel -u root 2>/dev/null; kill "${daemons[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
background munged -F --force --socket="$tmp/munge" --key-file="$tmp/key" --pid-file="$tmp/munged.pid" --log-file="$tmp/munged.log" \
	--seed-file="$tmp/seed"
for _ in $(seq 50); do [ -S munge ] || sleep 0.1; done
background slurmctld -i -D
background slurmd -D -N n1
background slurmd -D -N n2
up() { [ "$(sinfo -h -o '%D %T' 2>/dev/null)" = "2 idle" ]; }
for _ in $(seq 100); do up || sleep 0.2; done
if ! up; then
	skip slurm "its daemons do not come up here: $(tail -n 3 daemons.log slurmctld.log 2>&1 | tr '\n' '|')"
	exit 0
fi

cat >ddp.cfg <<'E2'
schema = 1;
name = "slurm";
threads = 1;
data = { name = "synthetic"; batch = 30; classes = 10; samples = 320; samples_test = 64; };
model = { input = [1, 12, 12]; layers = ( { type = "flatten"; }, { type = "linear"; out = 40; }, { type = "relu"; },
	{ type = "linear"; out = 10; } ); };
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.001; }; };
parallel = { mode = "ddp"; };
checkpoint = { dir = "unused"; };
E2
weights() { sha256sum <"$1/latest/model.safetensors" 2>/dev/null | cut -d ' ' -f 1; }
# ends NAME STATUS DIR [RANKS]: ended so, with the weights of the launcher's own run on as many ranks, told by one rank, and nothing is left
ends() {
	local rest
	rest=$(left)
	if [ "$2" != 0 ] || [ -n "$rest" ]; then
		fail "$1" "status $2, left: $rest: $(cat "$1.out")"
	elif [ "$(weights "$3")" != "$(weights own2)" ] || [ -z "$(weights "$3")" ]; then
		fail "$1" "weights $(weights "$3"), not $(weights own2)"
	elif [ "$(grep -c 'test accuracy' "$1.out")" != 1 ]; then
		fail "$1" "not one result: $(cat "$1.out")"
	else
		pass "$1"
	fi
}
start "$gtrain" run ddp.cfg --nproc 2 -o own2 >own2.out 2>&1
ends own2 $? own2
start srun -N1 -n2 "$gtrain" run ddp.cfg -o step >step.out 2>&1
ends step $? step
start srun -N1 -n2 --mpi=pmi2 "$gtrain" run ddp.cfg -o pmi2 >pmi2.out 2>&1
ends pmi2 $? pmi2
(umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >token)
# the nodes' names are not known to this machine: rank 0's address is told
MASTER_ADDR=127.0.0.1 MASTER_PORT=$port GTRAIN_TOKEN_FILE=token start srun -N2 -n2 "$gtrain" run ddp.cfg -o nodes >nodes.out 2>&1
ends nodes $? nodes
MASTER_ADDR=127.0.0.1 MASTER_PORT=$port start srun -N2 -n2 "$gtrain" run ddp.cfg -o none >no_token.out 2>&1
rc=$?
if [ $rc = 64 ] && grep -q "Slurm started 2 ranks, 1 of them on this host, and ranks on several hosts need the same token" no_token.out; \
	then
	pass no_token
else
	fail no_token "status $rc: $(cat no_token.out)"
fi

# A batch script is no step, though it has a step's SLURM_PROCID: its run starts ranks of its own.
cat >batch.sh <<E2
#!/bin/sh
exec "$gtrain" run ddp.cfg --nproc 2 -o batch
E2
start sbatch -n2 -W -o "$tmp/batch.out" batch.sh >/dev/null 2>&1
ends batch $? batch

# running NAME ARGS...: a step that goes on and on, once it has saved; its srun in $pid, its job in $job
running() {
	GTRAIN_TEST_MARK=$mark timeout 60 srun -J "$1" "${@:2}" "$gtrain" run ddp.cfg -o "$1" -s train.epochs=1000000 \
		-s train.eval_every_epochs=1000000 \
		-s checkpoint.every_epochs=0 -s checkpoint.every_steps=200 -s checkpoint.keep=2 >"$1.out" 2>&1 &
	pid=$!
	for _ in $(seq 600); do [ -e "$1/latest" ] || sleep 0.05; done
	job=$(squeue -h -n "$1" -o %i)
}
running term -N1 -n2
scancel -s TERM "$job".0
wait $pid
rc=$?
rest=$(left)
if [ $rc = 143 ] && [ -z "$rest" ] && grep -q "ended by signal 15 (Terminated) after step [0-9]*$" term.out &&
	"$gtrain" inspect term --verify >/dev/null 2>&1; then
	pass scancel_term
else
	fail scancel_term "status $rc, left: $rest: $(cat term.out)"
fi
running killed -N1 -n2
for p in $(marked | sed 's,/proc/\([0-9]*\)/.*,\1,'); do # Slurm's own processes have the variables too
	if grep -qzs "^SLURM_PROCID=1$" "/proc/$p/environ" && [ "/proc/$p/exe" -ef "$gtrain" ]; then
		kill -KILL "$p"
	fi
done
wait $pid
rc=$?
rest=$(left)
if [ $rc = 137 ] && [ -z "$rest" ] && grep -q "rank 0: rank 1 has died" killed.out; then
	pass rank_killed
else
	fail rank_killed "status $rc, left: $rest: $(cat killed.out)"
fi
