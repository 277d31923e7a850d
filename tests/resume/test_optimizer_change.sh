#!/bin/bash
# A run that resumes keeps the optimizer of each parameter: no state is dropped or missing without a sentence that names both optimizers.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
tiny_config
declare -A with=([sgd]="" [momentum]="-s train.optimizer.type=sgd -s train.optimizer.momentum=0.9" [adam]="-s train.optimizer.type=adam"
	[adamw]="-s train.optimizer.type=adamw" [rmsprop]="-s train.optimizer.type=rmsprop" [lion]="-s train.optimizer.type=lion"
	[centered]="-s train.optimizer.type=rmsprop -s train.optimizer.centered=true"
	[amsgrad]='-s train.optimizer={type="adam";lr=0.01;amsgrad=true;}')
declare -A state=([sgd]='"sgd" (no state)' [momentum]='"sgd" (momentum_buffer)' [adam]='"adam" (exp_avg, exp_avg_sq)'
	[adamw]='"adamw" (exp_avg, exp_avg_sq)' [rmsprop]='"rmsprop" (square_avg)' [lion]='"lion" (exp_avg)'
	[centered]='"rmsprop" (square_avg, grad_avg)' [amsgrad]='"adam" (exp_avg, exp_avg_sq, max_exp_avg_sq)')
bad=0 allowed=0 refused=0
for a in "${!with[@]}"; do
	# shellcheck disable=SC2086
	"$gtrain" run "$tmp/tiny.cfg" -q -o "$tmp/$a" -s train.epochs=1 ${with[$a]} >/dev/null 2>"$tmp/err" || fail "run_$a" "$(cat "$tmp/err")"
done
for a in "${!with[@]}"; do
	for b in "${!with[@]}"; do
		set=${with[$b]}
		[ "$b" != sgd ] || set='-s train.optimizer.type=sgd -s train.optimizer.momentum=0.0'
		[[ $b != rmsprop && $b != centered ]] || set+=' -s train.optimizer.momentum=0.0' # the text of the checkpoint has its own
		[ "$b" != rmsprop ] || set+=' -s train.optimizer.centered=false'
		[[ ! $b =~ ^adamw?$ ]] || set+=' -s train.optimizer.amsgrad=false'
		cp -r "$tmp/$a" "$tmp/copy"
		# shellcheck disable=SC2086
		run resume "$tmp/copy" -q -s train.epochs=2 $set
		rm -rf "$tmp/copy"
		if [ "$a" = "$b" ] || [[ "$a $b" =~ ^adamw?\ adamw?$ ]]; then
			allowed=$((allowed + 1))
			[ "$rc" = 0 ] && continue
		else
			refused=$((refused + 1))
			[ "$rc" = 78 ] && grep -F "was ${state[$a]} in " "$tmp/err" | grep -F "is now ${state[$b]}," |
				grep -qF "/copy/step-00000008/model.safetensors\`" && continue
		fi
		bad=$((bad + 1))
		fail "optimizer_change" "$a to $b: $rc $(cat "$tmp/err")"
	done
done
[ $bad = 0 ] && [ $allowed = 10 ] && [ $refused = 54 ] && pass optimizer_change

# The optimizer of a group; a group that is frozen from now on, and one that is trained from now on.
change() { # NAME STATUS TEXT BEFORE AFTER
	rm -rf "$tmp/g"
	"$gtrain" run "$tmp/tiny.cfg" -q -o "$tmp/g" -s train.epochs=1 -s "train.groups=$4" >/dev/null 2>"$tmp/err" ||
		fail "$1" "$(cat "$tmp/err")"
	run resume "$tmp/g" -q -s train.epochs=2 -s "train.groups=$5"
	if [ "$rc" = "$2" ] && { [ "$2" = 0 ] || grep -qF -- "$3" "$tmp/err"; }; then pass "$1"; else fail "$1" "$rc $(cat "$tmp/err")"; fi
}
group() { echo "({ match = \"*.bias\"; optimizer = { type = \"$1\"; lr = 0.01; }; })"; }
change group_type 78 \
	'train.groups[0].optimizer.type: the optimizer of fc.bias was "adam" (exp_avg, exp_avg_sq) in' "$(group adam)" "$(group sgd)"
change group_same 0 '' "$(group adam)" "$(group adam)"
change group_gone 78 \
	'train.optimizer.type: the optimizer of fc.bias was "adam" (exp_avg, exp_avg_sq) in' "$(group adam)" '()'
change group_unfrozen 78 \
	'train.groups: the optimizer of fc.bias was frozen (no state) in' '({ match = "*.bias"; frozen = true; })' "$(group adam)"
change group_frozen 0 '' "$(group adam)" '({ match = "*.bias"; frozen = true; })'
change group_unfrozen_without_state 0 '' '({ match = "*.bias"; frozen = true; })' '()'
