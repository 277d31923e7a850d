#!/bin/bash
# train.class_weights: "auto" counts the training split only, all ranks count the same, and the checkpoint keeps the weights; refusals.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
if ! command -v python3 >/dev/null; then
	skip class_weights 'python3 is not installed'
	exit 0
fi
cd "$tmp" || exit 1
# data.py DIR COUNTS TEST_COUNTS: IDX files with so many samples of each class, in a mixed order
cat >data.py <<'PY'
import os, random, struct, sys
def write(path, counts):
    r = random.Random(1)
    labels = [k for k, n in enumerate(counts) for _ in range(n)]
    r.shuffle(labels)
    pixels = bytes(min(255, max(0, int(r.gauss(60 + 50 * k, 40)))) for k in labels for _ in range(16))
    open(path + "-images", "wb").write(struct.pack(">4B3I", 0, 0, 8, 3, len(labels), 4, 4) + pixels)
    open(path + "-labels", "wb").write(struct.pack(">4BI", 0, 0, 8, 1, len(labels)) + bytes(labels))
os.makedirs(sys.argv[1], exist_ok=True)
write(sys.argv[1] + "/train", eval(sys.argv[2]))
write(sys.argv[1] + "/test", eval(sys.argv[3]))
PY
python3 data.py data '[40, 80, 120]' '[50, 5, 5]'
python3 data.py hole '[40, 0, 120]' '[50, 5, 5]'
cat >net.cfg <<'CFG'
schema = 1; name = "net"; seed = 5; device = "cpu"; threads = 1;
data = { name = "mine"; root = "data"; train = ["train-images", "train-labels"]; test = ["test-images", "test-labels"]; batch = 30;
	valid = 0.25; };
model = { input = [1, 4, 4]; layers = ( { type = "flatten"; }, { type = "linear"; out = 8; }, { type = "relu"; },
	{ type = "linear"; out = 3; } ); };
train = { epochs = 2; class_weights = "auto"; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; };
checkpoint = { dir = ""; };
log = { every_steps = 1; };
CFG
# train DIR OPTIONS...
train() {
	local dir=$1
	shift
	run run net.cfg -q -o "$dir" "$@"
	[ "$rc" = 0 ] || fail "${dir}_run" "$(tail -n 1 "$tmp/err")"
}
weights() { sed -n 's/.*"class_weights":\(\[[^]]*\]\).*/\1/p' "$1/latest/data.json" 2>/dev/null; }
numbers() { weights "$1" | sed 's/\([[,]\)\([0-9]*\)\([],]\)/\1\2.0\3/g'; } # an array of the config has numbers of one type
digest() { sha256sum <"$1/latest/model.safetensors"; }
losses() { sed -nE 's/.*"event":"(train|eval)","step":([0-9]+).*"loss":([^,}]+).*/\1 \2 \3/p' "$1/metrics.jsonl"; }

# 240 samples, 180 of them for training: the counts follow from the weights. A seeded split does not have the shares of the whole.
train auto
if why=$(python3 -c '
import sys
w = eval(sys.argv[1])
counts = [180 / (3 * x) for x in w]
assert len(w) == 3 and all(abs(c - round(c)) < 1e-9 for c in counts), (w, counts)
assert round(sum(counts)) == 180 and counts != [30, 60, 90], counts
' "$(weights auto)" 2>&1); then pass of_training_split; else fail of_training_split "$(tail -n 1 <<<"$why")"; fi
train stratified -s data.stratify=true
# the shares of all 240 samples, which are whole numbers of the 180
if [ "$(weights stratified)" = '[2,1,0.66666666666666663]' ]; then pass balanced; else fail balanced "$(weights stratified)"; fi
train numbers -s "train.class_weights=$(numbers auto)"
train none -s 'train.class_weights=[]'
if [ "$(digest auto)" = "$(digest numbers)" ] && [ "$(losses auto)" = "$(losses numbers)" ]; then
	pass as_numbers
else
	fail as_numbers 'the same weights as numbers train another model'
fi
if [ "$(digest auto)" = "$(digest none)" ]; then fail weighs 'the weights change nothing'; else pass weighs; fi
for mode in 'ddp' 'dp' 'zero' 'pipe'; do
	train "$mode" -s "parallel.mode=$mode" --nproc 2
	# Sums of gradients of two ranks: other last bits, 2^-24 of the loss in each of 12 steps.
	if [ "$(weights "$mode")" != "$(weights auto)" ]; then
		fail "weights_$mode" "$(weights "$mode")"
	elif paste -d ' ' <(losses auto) <(losses "$mode") | awk '{ d = $3 - $6; if (d < 0) d = -d; if ($2 != $5 || d > 1e-5 * $3) exit 1 }
		END { if (NR != 16) exit 1 }'; then
		pass "losses_$mode"
	else
		fail "losses_$mode" "$(diff <(losses auto) <(losses "$mode") | head -n 2 | tr '\n' ' ')"
	fi
done
train ignored -s train.ignore_index=1
if [[ $(weights ignored) == *,0,* ]]; then pass ignored_class; else fail ignored_class "$(weights ignored)"; fi

# A checkpoint keeps its weights, whatever the data is then.
score() { sed -n 's/.*"loss":\([0-9.e-]*\).*/\1/p' "$tmp/out"; }
run eval auto --json
first=$(score)
run eval none --json -s "train.class_weights=$(numbers auto)"
[ "$rc" = 0 ] || fail eval_numbers "$(tail -n 1 "$tmp/err")"
run eval auto --json -s 'train.class_weights=[]'
if [ -n "$first" ] && [ "$first" != "$(score)" ]; then pass eval_weighs; else fail eval_weighs "$first and $(score)"; fi
run eval auto --json -s "train.class_weights=$(numbers auto)"
if [ "$first" = "$(score)" ]; then pass eval_as_numbers; else fail eval_as_numbers "$first and $(score)"; fi
run resume auto -q -s train.epochs=3
train whole -s train.epochs=3
if [ "$(digest auto)" = "$(digest whole)" ]; then pass resume_exact; else fail resume_exact 'other bits than a run without a stop'; fi
kept=$(weights auto)
python3 data.py data '[120, 80, 40]' '[50, 5, 5]'
run resume auto -q -s train.epochs=4
if [ "$rc" = 0 ] && [ "$(weights auto)" = "$kept" ]; then pass resume_keeps; else fail resume_keeps "$rc: $(weights auto), not $kept"; fi
run resume none -q -s train.epochs=3 -s 'train.class_weights="auto"'
if [ "$rc" = 0 ] && [ -n "$(weights none)" ] && [ "$(weights none)" != "$kept" ]; then
	pass resume_begins
else
	fail resume_begins "$rc: $(weights none)"
fi
run resume auto -q -s train.epochs=5 -s 'train.class_weights=[]'
if [ "$rc" = 0 ] && [ -z "$(weights auto)" ]; then pass resume_ends; else fail resume_ends "$rc: $(weights auto)"; fi

# Refusals.
gives no_samples 78 err \
	"net.cfg:6: train.class_weights: \"auto\" needs training samples for each of the model's 3 outputs, got no sample of class 1" \
	run net.cfg -o hole_run -s data.root=hole
gives no_samples_dry 78 err 'got no sample of class 1' run net.cfg -n -o hole_run -s data.root=hole
gives no_samples_ranks 78 err 'got no sample of class 1' run net.cfg -o hole_run -s data.root=hole -s parallel.mode=ddp --nproc 2
gives more_outputs 78 err "each of the model's 4 outputs" run net.cfg -o four -s 'model.layers=({type="flatten";},{type="linear";out=4;})'
gives no_weights_to_eval 78 err '"auto" needs the labels of the training split, or a checkpoint that was trained with it' \
	eval numbers -s 'train.class_weights="auto"'
gives shorter 78 err '--set train.class_weights=[1.0,2.0]: train.class_weights: expected 3 values, one for each output of the model' \
	run net.cfg -o short -s 'train.class_weights=[1.0,2.0]'
gives longer 78 err 'train.class_weights: expected 3 values, one for each output of the model, got 4' \
	run net.cfg -o long -s 'train.class_weights=[1.0,2.0,1.0,1.0]'
gives output_shape 78 err "net.cfg:6: train.loss: expected the model's output to be [batch, classes], got" \
	run net.cfg -o shape -s 'train.class_weights=[]' -s 'model.layers=({type="conv2d";out=3;kernel=1;})'
gives check_without_data 0 out 'linear' check net.cfg -s data.root=nowhere
