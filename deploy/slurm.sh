#!/bin/bash
#SBATCH --job-name=gtrain
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=4
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@120
# slurm.sh CFG DIR [OPTION...]: a run that survives preemption and time limits: sbatch deploy/slurm.sh fmnist.cfg runs/fmnist. For GPUs, add
# --gpus-per-task=1. Ranks on several nodes need a token file that all nodes can read (gtrain-parallel(7)); add --token-file FILE.
#
# Slurm sends SIGTERM to this script 120 seconds before the time limit, and when a job with higher priority takes the nodes. The script
# forwards the signal, gtrain saves a checkpoint and ends with 128 + 15, and the job returns to the queue. Its next start continues the run.
set -u
start=${GTRAIN_START:-$(dirname "$(scontrol show job "$SLURM_JOB_ID" | sed -n 's/^ *Command=\([^ ]*\).*/\1/p')")/start.sh}
srun "$start" "$@" &
step=$!
stopped=
trap 'stopped=1; kill -TERM $step' TERM
while :; do
	wait $step
	status=$?
	kill -0 $step 2>/dev/null || break # else a signal has interrupted wait, and the step still writes its checkpoint
done
case $status in
75 | 143) stopped=1 ;; # lost ranks, or a signal that Slurm sent to the step itself
esac
if [ -n "$stopped" ] && [ "$status" != 0 ]; then
	echo "slurm.sh: the step ended with status $status; the job returns to the queue"
	scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
