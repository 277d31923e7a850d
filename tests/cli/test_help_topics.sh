#!/bin/bash
# `gtrain help TOPIC`: keys, layer types, values of keys, their names in PyTorch, lists, suggestions, JSON.
# tests/run: beside others
# shellcheck disable=SC2015
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"

# has NAME TOPIC LINE...: the help of the topic has these lines, spaces shortened.
has() {
	local name=$1 topic=$2 line
	shift 2
	run help "$topic"
	[ "$rc" = 0 ] || { fail "$name" "status $rc: $(cat "$tmp/err")"; return; }
	for line; do
		tr -s ' ' <"$tmp/out" | grep -qxF -- "$line" || { fail "$name" "no line '$line' in: $(cat "$tmp/out")"; return; }
	done
	pass "$name"
}

has key train.optimizer.lr ' value float' ' range 0..' ' default none: the key is required' ' also learning_rate, base_lr' \
	' example train = { optimizer = { lr = 0.001; }; };'
has key_of_entry 'data.augment[].pad' ' with data.augment[].type = pad_crop' ' example { pad = 4; }'
has key_without_brackets data.augment.pad 'data.augment[].pad'
has key_of_torchrun gradient_accumulation train.accumulate
has key_of_schedule eta_min train.schedule.min_lr
has key_of_clipping clip_grad_norm_ train.clip_norm
has key_of_average AveragedModel train.ema.decay
has key_group mlflow log.mlflow.uri log.mlflow.experiment
has key_elsewhere batch_size data.batch ' example data = { batch = 128; };'
has key_values eval.tta ' values none' ' mirror: average the logits of an image and its mirror image'
has layer conv2d 'conv2d, a value of model.layers[].type' ' also nn.Conv2d, conv, convolution' \
	' example { type = "conv2d"; out = 64; kernel = 3; }' ' padding zeros added on each side (int|int[2], 0..65536;'
for name in Conv2d nn.Conv2d torch.nn.Conv2d CONV; do
	has "layer_by_$name" "$name" 'conv2d, a value of model.layers[].type'
done
has word step ' example train = { schedule = { type = "step"; step_size = 30; }; };' 'step, a value of train.schedule.unit'
has word_about onecycle ' about OneCycleLR: in the first pct_start of the run, rises from lr /' \
	' t_max length of the schedule after the warm-up, in epochs' ' example train = { schedule = { type = "onecycle"; }; };'
has word_keys_of_all adamw ' keys lr learning rate, which the schedule changes during' \
	' weight_decay factor of the L2 penalty; the penalty is added to' \
	' example train = { optimizer = { type = "adamw"; lr = 0.001; }; };'
has word_default muon ' momentum factor of the previous momentum in the new momentum' ' (float, [0, 1]; default 0.95)'
for name in torch.optim.SGD optim.sgd; do has "word_by_$name" "$name" 'sgd, a value of train.optimizer.type'; done
has word_by_function F.relu 'relu, a value of model.layers[].type'
has word_elsewhere OneCycleLR 'onecycle, a value of train.schedule.type'
has word_and_key dropout 'dropout, a value of model.layers[].type' 'model.layers[].lstm.dropout'
for list in layers:conv2d losses:huber optimizers:lamb schedules:cyclic transforms:mixup metrics:valid/f1 modes:zero formats:idx; do
	run help "${list%:*}"
	[ "$rc" = 0 ] && grep -q "^  ${list#*:}\b" "$tmp/out" && pass "list_${list%:*}" || fail "list_${list%:*}" "$rc $(head -n 3 "$tmp/out")"
done
gives nearest_word 64 err "unknown topic 'conv3'; did you mean 'conv2d'?" help conv3
gives nearest_key 64 err "unknown key 'train.optimiser.lr'; did you mean 'train.optimizer.lr'?" help train.optimiser.lr
gives unknown 64 err "unknown topic 'xyzzyx'" help xyzzyx
gives option_as_topic 64 err "unknown topic 'nnodes'; --nnodes is an option: \`gtrain run -h\` explains it" help nnodes
gives advice_of_key 64 err "unknown topic 'freeze'; write an entry of train.groups" help freeze
gives advice_of_layer_key 64 err "unknown topic 'in_channels'; gtrain infers the size of a layer's input" help in_channels
gives advice 64 err "unknown topic 'serve'; gtrain has no server" help serve

# No line is wider than 80 columns, except lines of one word, and a value that the help prints as an example is accepted.
for topic in train data model parallel checkpoint layers conv2d lamb; do "$gtrain" help $topic; done >"$tmp/all"
wide=$(awk 'length > 80 { print; exit }' "$tmp/all" | grep -v '^ *example\|^ *[a-z]* *[^ ]*$')
[ -z "$wide" ] && pass width || fail width "$wide"

if command -v python3 >/dev/null; then
	"$gtrain" help lstm --json >"$tmp/out" && python3 -c '
import json, sys
h = json.load(open(sys.argv[1]))
assert [w["word"] for w in h["words"]] == ["lstm"] and h["keys"] == [], h' "$tmp/out" && pass json_word ||
		fail json_word "$(cat "$tmp/out")"
	"$gtrain" help train.schedule --json >"$tmp/out" && python3 -c '
import json, sys
keys = {k["path"]: k for k in json.load(open(sys.argv[1]))["keys"]}
assert len(keys) > 20 and keys["train.schedule.gamma"]["default"] == "0.1" and "step" in keys["train.schedule.gamma"]["is"].split("|")' \
		"$tmp/out" && pass json_keys || fail json_keys "$(cat "$tmp/out")"
else
	skip json 'python3 is not installed'
fi
