#!/bin/bash
# Values that are not finite: none is taken from a file, none is measured as the best, none is committed. The layers are followed by relu,
# which was where a NaN got lost. Other float types than f32 are converted, with a warning.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
# st FILE DTYPE POISON...: weights of the config below in DTYPE (F16, BF16, F32, F64); POISON: "tensor index value".
cat >"$tmp/st.py" <<'END'
import json, math, struct, sys
path, dtype, poison = sys.argv[1], sys.argv[2], [p.split() for p in sys.argv[3:]]
def bf16(x):
    u = struct.unpack("<I", struct.pack("<f", x))[0]
    return struct.pack("<H", 0x7fc0 if math.isnan(x) else u >> 16)
put = {"F16": lambda x: struct.pack("<e", x), "BF16": bf16,
       "F32": lambda x: struct.pack("<f", x), "F64": lambda x: struct.pack("<d", x)}[dtype]
size = {"F16": 2, "BF16": 2, "F32": 4, "F64": 8}[dtype]
shapes = {"fc1.weight": [16, 64], "fc1.bias": [16], "fc2.weight": [4, 16], "fc2.bias": [4]}
header, data = {}, b""
for name, shape in shapes.items():
    n = math.prod(shape)
    x = [((i * 7 + len(name)) % 32 - 16) / 64 for i in range(n)]  # exact in every type
    for tensor, index, value in poison:
        if tensor == name:
            x[int(index)] = float(value)
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + n * size]}
    data += b"".join(map(put, x))
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
END
st() { python3 "$tmp/st.py" "$tmp/$1.st" "${@:2}"; }
cat >"$tmp/net.cfg" <<'CFG'
schema = 1;
name = "net";
seed = 3;
data = { name = "synthetic"; batch = 32; classes = 4; samples = 256; samples_test = 64; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc1"; type = "linear"; out = 16; }, { type = "relu"; },
	{ name = "fc2"; type = "linear"; out = 4; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.01; }; };
checkpoint = { dir = "unused"; every_steps = 1; best = { metric = "test/acc"; }; };
log = { every_steps = 1; };
CFG

st nan F32 "fc1.weight 70 nan"
gives init_nan 65 err 'fc1.weight: expected finite values, got NaN or infinity at element 70' run "$tmp/net.cfg" -o "$tmp/nan" --init \
	"$tmp/nan.st"
st inf BF16 "fc1.bias 3 inf"
gives init_inf_bf16 65 err 'fc1.bias: expected finite values' run "$tmp/net.cfg" -o "$tmp/inf" --init "$tmp/inf.st"
st large F64 "fc2.weight 5 1e39"
gives init_beyond_f32 65 err 'at element 5 (as f32)' run "$tmp/net.cfg" -o "$tmp/large" --init "$tmp/large.st"

# The same values of any float type give the same run.
st f32 F32
run run "$tmp/net.cfg" -o "$tmp/f32" --init "$tmp/f32.st"
for t in F16 BF16 F64; do
	word=${t,,}
	st "$word" "$t"
	gives "init_$word" 0 err "$word.st: the $word values were " run "$tmp/net.cfg" -o "$tmp/$word" --init "$tmp/$word.st"
	if cmp -s "$tmp/f32/latest/model.safetensors" "$tmp/$word/latest/model.safetensors"; then
		pass "init_${word}_same"
	else
		fail "init_${word}_same" "other weights than from f32"
	fi
done

# An update that overflows leaves a loss that was finite and weights that are not: nothing of it is kept, on one rank or two, whatever is
# due.
st big F32 "fc2.bias 0 30000"
for due in 'checkpoint.every_steps=1' 'train.eval_every_steps=1' 'train.steps=1'; do
	for mode in single ddp zero dp; do
		name=overflow_${due%%=*}_$mode
		ranks=(--nproc 2)
		[ $mode != single ] || ranks=()
		run run "$tmp/net.cfg" -o "$tmp/$name" --init "$tmp/big.st" -s "$due" -s "parallel.mode=$mode" -s train.optimizer.lr=1e39 \
			"${ranks[@]}"
		if [ "$rc" != 3 ]; then
			fail "$name" "ended with $rc, not 3: $(head -n 2 "$tmp/err")"
		elif ! grep -q 'fc[12]\.[a-z]* is not finite' "$tmp/err"; then
			fail "$name" "no parameter is named: $(head -n 2 "$tmp/err")"
		elif compgen -G "$tmp/$name/step-*" >/dev/null; then
			fail "$name" "a checkpoint was committed"
		elif [ -s "$tmp/$name/metrics.jsonl" ] && grep -q '"event":"eval"' "$tmp/$name/metrics.jsonl"; then
			fail "$name" "an evaluation was made"
		else
			pass "$name"
		fi
	done
done

# A checkpoint of an older version that holds a NaN, its digests right: no run goes on from it.
cat >"$tmp/poison" <<'END'
fc1.weight 70 nan
END
run run "$tmp/net.cfg" -o "$tmp/poisoned" -s train.steps=2
edit() { python3 "$src/tests/resume/edit_checkpoint.py" "$tmp/poisoned/latest" model "$1" 2>"$tmp/why"; }
if ! edit "$tmp/poison"; then skip resume_nan "$(cat "$tmp/why")"; else
	gives resume_nan 65 err 'fc1.weight is not finite' resume "$tmp/poisoned" -s train.steps=4
	echo 'fc1.weight 70 0.5' >"$tmp/mend" # it was the NaN
	edit "$tmp/mend"
	gives resume_mended 0 out '(4 steps' resume "$tmp/poisoned" -s train.steps=4
fi
