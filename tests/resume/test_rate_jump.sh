#!/bin/bash
# Resumes runs with more epochs, with each type of schedule: one warning if the learning rate jumps because the schedule is stretched over
# the new length, with the rates before and after; no warning if it does not jump, or if the settings do not depend on the length.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
cd "$tmp" || exit 1
tiny_config # 2 epochs of 8 steps, lr 0.01

# jumps NAME COUNT TEXT ARGS...: `gtrain ARGS` prints COUNT warnings about a jump, and TEXT in the first
jumps() {
	local name=$1 count=$2 text=$3 n
	shift 3
	run "$@"
	n=$(grep -c 'the learning rate jumps' err)
	if [ "$rc" = 0 ] && [ "$n" = "$count" ] && grep -qF -- "$text" err; then
		pass "$name"
	else
		fail "$name" "status $rc, $n warnings, expected $count with '$text': $(head -n 3 err)"
	fi
}
# train DIR SCHEDULE ARGS...: a run of 2 epochs
train() {
	local dir=$1 schedule=$2
	shift 2
	run run tiny.cfg -q -o "$dir" -s "train.schedule={$schedule}" "$@"
	[ "$rc" = 0 ] || fail "$dir trains" "status $rc: $(head -n 1 err)"
}

# TYPE, rates at step 9 and 17 with 2 and with 4 epochs, as PyTorch computes them ("-": they do not jump), keys that the type requires
tested=0
while read -r type middle end keys; do
	tested=$((tested + 1))
	train "$type" "type=\"$type\"; $keys"
	n=1 text="from $end at step 17, because train.schedule ($type) lasts until the end of the run, which is now 4 epochs and was 2 epochs"
	[ "$end" = - ] && n=0 text=
	jumps "$type: a complete run" $n "${text//>/ to }" resume "$type" -s train.epochs=4
	rm -rf "$type"
	train "$type" "type=\"$type\"; $keys"
	n=1 text="from $middle at step 9,"
	[ "$middle" = - ] && n=0 text=
	jumps "$type: from the middle" $n "${text//>/ to }" resume "$type/step-00000008" -s train.epochs=4
done <<'ROWS'
constant - -
step - - step_size=1;
multistep - - milestones=[1.0];
exponential - - gamma=0.5;
cosine 0.005>0.00854 0>0.005
polynomial 0.005>0.0075 0>0.005
onecycle 0.00691>0.00989 4e-08>0.00754
flat_cosine - 0>0.01
plateau - - metric="test/loss";
cosine_restarts - - t_0=1.0;
cyclic - - base_lr=0.001; step_size_up=1.0;
inverse_sqrt - -
ROWS
all=$("$gtrain" help train.schedule.type | grep -cE '^( *values)? +[a-z_]+: [^ ]')
if [ "$tested" = "$all" ]; then pass 'every type of schedule'; else fail 'every type of schedule' "$tested of $all"; fi

# what the warning recommends has none, nor has a resume that changes nothing, or a run of another length with a schedule of its own
train run 'type="cosine";' -s checkpoint.keep=9
jumps 'the same settings' 0 '' resume run/step-00000008
jumps 'another rate' 0 '' resume run/step-00000008 -s train.optimizer.lr=0.5
jumps 'a constant rate' 0 '' resume run/step-00000008 -s train.epochs=4 -s train.schedule.type=constant -s train.optimizer.lr=0.001
jumps 'a length of the schedule' 0 '' resume run/step-00000008 -s train.epochs=4 -s train.schedule.t_max=2
jumps 'another rate and more epochs' 1 'from 0.005 to 0.0481 at step 9,' resume run/step-00000008 -s train.epochs=8 \
	-s train.optimizer.lr=0.05
train run2 'type="cosine";'
jumps 'steps' 1 'which is now 40 steps and was 2 epochs' resume run2 -s train.steps=40
train run3 'type="constant";'
jumps 'a schedule that begins' 1 'from 0.01 to 0.005 at step 17, because train.schedule (cosine)' resume run3 -s train.epochs=4 \
	-s train.schedule.type=cosine
train warm 'type="cosine"; warmup=1.5;'
jumps 'in the warm-up' 0 '' resume warm/step-00000008 -s train.epochs=4
jumps 'fewer epochs' 1 'which is now 3 epochs and was 4 epochs' resume warm/step-00000016 -s train.epochs=3

# a group with a schedule of its own; a frozen one has none
group='match=["*.bias"];schedule={type="polynomial";};optimizer={type="sgd";lr=0.02;}'
train group 'type="constant";' -s "train.groups=({$group;})"
jumps 'a group' 1 'from 0 to 0.01 at step 17, because train.groups[0].schedule (polynomial)' resume group -s train.epochs=4
jumps 'a group: what to add' 0 '' resume group/step-00000016 -s train.epochs=4 -s 'train.groups[0].schedule.type=constant'
train frozen 'type="constant";' -s "train.groups=({match=[\"*.bias\"];frozen=true;})"
jumps 'a frozen group' 0 '' resume frozen -s train.epochs=4

# each mode has one warning, in the log, too
for mode in ddp zero pipe dp; do
	train $mode 'type="cosine";'
	jumps "mode $mode" 1 'from 0 to 0.005' resume $mode -s train.epochs=4 -s parallel.mode=$mode --nproc 2
done
n=$(grep -c '"event":"warn".*the learning rate jumps from 0 to 0.005' ddp/metrics.jsonl)
if [ "$n" = 1 ]; then pass 'metrics.jsonl'; else fail 'metrics.jsonl' "$n lines"; fi
