#!/bin/bash
# A loss that is no number on one rank only: one image, far brighter than the others, overflows in a chain of squares. Every rank ends with
# 3 before the update, the layer, the step and the sample's rank are named, and what is committed has the bits of the step before.
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
mkdir "$tmp/data"
python3 - "$tmp/data" <<'END'
import os, struct, sys
n, bright = 120, 24 * 3 + 19  # the 20th sample of the 4th batch of 24: the last of 2, 3 and 4 ranks has it
for name, count in (("train", n), ("t10k", 20)):
    pixels = bytearray(2 + (i * 7 + i // 64 * 3) % 2 for i in range(count * 64))
    if name == "train":
        pixels[bright * 64:bright * 64 + 64] = b"\xff" * 64
    with open(os.path.join(sys.argv[1], f"{name}-images-idx3-ubyte"), "wb") as f:
        f.write(struct.pack(">4I", 0x803, count, 8, 8) + pixels)
    with open(os.path.join(sys.argv[1], f"{name}-labels-idx1-ubyte"), "wb") as f:
        f.write(struct.pack(">2I", 0x801, count) + bytes(i % 10 for i in range(count)))
END
cat >"$tmp/nan.cfg" <<END
schema = 1;
name = "nan";
seed = 4;
threads = 1;
reproducible = "run";
data = { format = "idx"; root = "$tmp/data"; train = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"];
	test = ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"];
	batch = 24; shuffle = false; std = [0.01]; classes = 10; };
model = {
	input = [1, 8, 8];
	layers = (
		{ name = "flatten"; type = "flatten"; },
		{ name = "square1"; type = "mul"; in = ["flatten", "flatten"]; },
		{ name = "square2"; type = "mul"; in = ["square1", "square1"]; },
		{ name = "square3"; type = "mul"; in = ["square2", "square2"]; },
		{ name = "square4"; type = "mul"; in = ["square3", "square3"]; },
		{ name = "square5"; type = "mul"; in = ["square4", "square4"]; },
		{ name = "fc1"; type = "linear"; out = 20; },
		{ name = "act1"; type = "tanh"; },
		{ name = "fc2"; type = "linear"; out = 14; },
		{ name = "act2"; type = "tanh"; },
		{ name = "fc3"; type = "linear"; out = 10; }
	);
};
train = { epochs = 1; eval_every_epochs = 0; optimizer = { type = "sgd"; lr = 0.01; momentum = 0.9; }; };
checkpoint = { dir = "unused"; every_steps = 1; keep = 9; };
log = { every_steps = 1; };
END
expect=''
for c in single:1:1 ddp:2:1 ddp:4:1 ddp:3:4 zero1:4:1 zero2:3:1 zero3:4:4 dp:2:1 1f1b:2:1 zero-bubble:3:1; do
	IFS=: read -r word ranks acc <<<"$c"
	mode_args "$word" "$ranks"
	expect=$(refusal "$word" nan)
	train run "$tmp/nan.cfg" -s "train.accumulate=$acc" ${mode[0]+"${mode[@]}"}
	case $? in
	0)
		echo "not ok rank_nan $c: it trained on"
		continue
		;;
	1)
		refused rank_nan "$word"
		continue
		;;
	esac
	if [ $rc != 3 ]; then
		echo "not ok rank_nan $c: $why"
	elif ! grep -q 'step 4: .*square5.*sample 91;' "$tmp/err"; then
		echo "not ok rank_nan $c: layer, step or sample is not named: $why"
	elif [ "$(basename "$(readlink "$tmp/run/latest")")" != step-00000003 ] || [ -e "$tmp/run/step-00000004" ]; then
		echo "not ok rank_nan $c: the last checkpoint is $(readlink "$tmp/run/latest")"
	else
		echo "ok rank_nan $c"
		[ "$c" != ddp:4:1 ] || echo "# rank_nan: $(tail -n 1 "$tmp/err")"
	fi
done
tell_refused
