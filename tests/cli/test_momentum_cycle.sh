#!/bin/bash
# The momentum of the schedule onecycle in whole runs: every optimizer and mode has it, groups have their own, a resumed run continues it.
# A cycle whose lowest and highest momentum are equal is the same run as one with this momentum in the optimizer, bit for bit.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cat >"$tmp/net.cfg" <<'CFG'
schema = 1;
name = "net";
seed = 3;
device = "cpu";
threads = 1;
data = { name = "synthetic"; batch = 32; classes = 4; samples = 256; samples_test = 64; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc1"; type = "linear"; out = 24; }, { type = "relu"; },
	{ name = "fc2"; type = "linear"; out = 4; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; schedule = { type = "onecycle"; }; };
checkpoint = { dir = "unused"; every_steps = 4; keep = 9; };
log = { every_steps = 1; };
CFG
cycle=train.schedule.cycle_momentum

# losses NAME ARGS...: writes the losses of the steps of a run to $tmp/NAME.
losses() {
	local name=$1
	shift
	run run "$tmp/net.cfg" -o "$tmp/run-$name" "$@"
	[ "$rc" = 0 ] && grep '"event":"train"' "$tmp/run-$name/metrics.jsonl" | grep -o '"loss":[^,]*' >"$tmp/$name"
}

# same NAME PARAMETERS FIXED -- ARGS...: a run with FIXED momentum 0.8 in the optimizer and one that cycles from 0.8 to 0.8 are equal; one
# that cycles as by default is another.
same() {
	local name=$1 other=$2 fixed=$3
	shift 4
	if ! losses "$name-a" "$@" -s "$fixed" -s $cycle=false; then
		fail "$name" "$(tail -n 1 "$tmp/err")"
	elif ! losses "$name-b" "$@" -s "$other" -s train.schedule.base_momentum=0.8 -s train.schedule.max_momentum=0.8; then
		fail "$name" "$(tail -n 1 "$tmp/err")"
	elif ! losses "$name-c" "$@" -s "$other"; then
		fail "$name" "$(tail -n 1 "$tmp/err")"
	elif ! cmp -s "$tmp/$name-a" "$tmp/$name-b" || [ "$(wc -l <"$tmp/$name-a")" != 16 ]; then
		fail "$name" "$(diff "$tmp/$name-a" "$tmp/$name-b" | head -n 3 | tr '\n' ' ')"
	elif cmp -s "$tmp/$name-a" "$tmp/$name-c"; then
		fail "$name" 'the cycle changes nothing'
	else
		pass "$name"
	fi
}
momentum='train.optimizer.momentum=0.5 train.optimizer.momentum=0.8'
# shellcheck disable=SC2086 # two words
{
same sgd $momentum --
same sgd_nesterov $momentum -- -s train.optimizer.nesterov=true
same sgd_clipped $momentum -- -s train.clip_norm=0.5
same rmsprop $momentum -- -s train.optimizer.type=rmsprop
same muon $momentum -- -s 'train.optimizer={type="muon";lr=0.02;}' \
	-s 'train.groups=({match="*.bias";optimizer={type="sgd";lr=0.05;momentum=0.8;};schedule={type="constant";};})'
same ddp $momentum -- --nproc 2 -s parallel.mode=ddp
same zero $momentum -- --nproc 2 -s parallel.mode=zero
same pipe $momentum -- --nproc 2 -s parallel.mode=pipe
same dp $momentum -- --nproc 2 -s parallel.mode=dp
same accumulate $momentum -- -s train.accumulate=2
same three_phase $momentum -- -s train.schedule.three_phase=true -s train.schedule.anneal_strategy=linear
}
for type in adam adamw lion radam lamb; do
	same $type 'train.optimizer.betas=[0.9,0.99]' 'train.optimizer.betas=[0.8,0.99]' -- -s "train.optimizer={type=\"$type\";lr=0.001;}"
done

# Groups: an optimizer of its own cycles, too; a schedule of its own does not.
gives group_that_cycles 0 out '; momentum 0.95 at 0%' check "$tmp/net.cfg" -s 'train.schedule={type="constant";}' \
	-s 'train.groups=({match="fc1.*";schedule={type="onecycle";};})'
gives check_shows_the_momentum 0 out 'momentum  ' check "$tmp/net.cfg"
gives check_json 0 out '"momentum":[0.95,' check "$tmp/net.cfg" --json
run check "$tmp/net.cfg" -s train.optimizer.momentum=0
if [ "$rc" = 0 ] && ! grep -q momentum "$tmp/out"; then
	pass no_momentum_no_cycle
else
	fail no_momentum_no_cycle "$(grep momentum "$tmp/out" "$tmp/err")"
fi
gives refused_of_nadam 78 err 'cycle_momentum = true and the optimizer "nadam" cannot be combined' \
	check "$tmp/net.cfg" -s 'train.optimizer={type="nadam";lr=0.001;}'
gives cyclic_momentum 0 out 'momentum  ' check "$tmp/net.cfg" \
	-s 'train.schedule={type="cyclic";base_lr=0.001;step_size_up=1.0;}'
gives refused_without_momentum 78 err 'expected an optimizer with betas or with momentum > 0' \
	check "$tmp/net.cfg" -s train.optimizer.momentum=0 -s $cycle=true

# A run that is continued from its middle.
losses whole
rm -r "$tmp"/run-whole/step-*1[26] "$tmp"/run-whole/step-*8
run resume "$tmp/run-whole"
if [ "$rc" = 0 ] && grep '"event":"train"' "$tmp/run-whole/metrics.jsonl" | grep -o '"loss":[^,]*' | tail -n 12 |
	cmp -s - <(tail -n 12 "$tmp/whole"); then
	pass resumed
else
	fail resumed "rc $rc: $(tail -n 1 "$tmp/err")"
fi
