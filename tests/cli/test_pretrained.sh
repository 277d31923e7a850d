#!/bin/bash
# model.pretrained: which tensors of a file a run starts with, the report, and the errors; in every mode; a resume does not read the file.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cat >"$tmp/net.cfg" <<'CFG'
schema = 1; name = "net"; seed = 3; reproducible = "world";
data = { name = "synthetic"; samples = 64; samples_test = 32; classes = 4; batch = 16; };
model = { input = [1, 6, 6]; layers = (
	{ name = "conv"; type = "conv2d"; out = 8; kernel = 3; },
	{ name = "bn"; type = "batchnorm2d"; },
	{ type = "relu"; },
	{ type = "flatten"; },
	{ name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.1; momentum = 0.9; }; };
checkpoint = { dir = ""; };
CFG
# st.py OUT PREFIX DTYPE CLASSES [ones]: a file as PyTorch would write it from such a net, with another number of classes and one tensor
# more; with `ones`, some shapes have dimensions of 1 that those of the net do not have.
cat >"$tmp/st.py" <<'PY'
import json, math, struct, sys
out, prefix, dtype, classes = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
shapes = {"conv.weight": [8, 1, 3, 3], "conv.bias": [8], "bn.weight": [8], "bn.bias": [8], "bn.running_mean": [8], "bn.running_var": [8],
          "bn.num_batches_tracked": [], "fc.weight": [classes, 128], "fc.bias": [classes], "proj.weight": [3]}
if sys.argv[5:] == ["ones"]:
    shapes |= {"conv.bias": [1, 8, 1], "fc.weight": [classes, 128, 1, 1]}
head, data = {}, b""
for name, shape in sorted(shapes.items(), key=lambda t: t[0] != "bn.num_batches_tracked"):
    n = math.prod(shape)
    if not shape:
        t, b = "I64", struct.pack("<q", 77)
    else:
        v = [(i % 13 + 1) / 16 for i in range(n)]  # exact in every format
        t = {"f32": "F32", "f16": "F16", "bf16": "BF16", "f64": "F64"}[dtype]
        code = {"f32": "f", "f16": "e", "f64": "d"}.get(dtype)
        b = struct.pack("<%d%s" % (n, code), *v) if code else b"".join(struct.pack("<f", x)[2:] for x in v)
    head[prefix + name] = {"dtype": t, "shape": shape, "data_offsets": [len(data), len(data) + len(b)]}
    data += b
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
open(out, "wb").write(struct.pack("<Q", len(text)) + text + data)
PY
# read.py FILE NAME...: first values of tensors
cat >"$tmp/read.py" <<'PY'
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
h = json.loads(raw[8:8 + n])
print(*("%.6f" % struct.unpack_from("<f", raw, 8 + n + h[k]["data_offsets"][0] + 4)[0] for k in sys.argv[2:]))
PY
for t in f32 f16 bf16 f64; do python3 "$tmp/st.py" "$tmp/$t.safetensors" "" $t 10; done
python3 "$tmp/st.py" "$tmp/module.safetensors" module. f32 10
python3 "$tmp/st.py" "$tmp/backbone.safetensors" backbone. f32 4
drop=(-s 'model.pretrained.map=({from="fc.*";to="";})')
still=(-s train.optimizer.lr=0.0 -s train.optimizer.momentum=0.0) # what was loaded is what is saved; only running statistics move
load() { # NAME FILE ARGS...: runs into $tmp/NAME
	local name=$1 file=$2
	shift 2
	run run "$tmp/net.cfg" -o "$tmp/$name" -s model.pretrained.file="$tmp/$file" "$@"
}
values() { python3 "$tmp/read.py" "$tmp/$1/latest/model.safetensors" conv.weight bn.bias fc.weight; }
expect() { # NAME WHAT GOT WANT
	if [ "$3" = "$4" ]; then pass "$1"; else fail "$1" "$2: expected $4, got $3"; fi
}

run run "$tmp/net.cfg" -o "$tmp/init" "${still[@]}"
head=$(values init | cut -d' ' -f3) # the head's second value at the start
for f in f32 f16 bf16 f64 module; do
	load $f $f.safetensors "${drop[@]}" "${still[@]}"
	expect pretrained_$f "conv.weight, bn.bias, fc.weight" "$rc: $(values $f)" "0: 0.125000 0.125000 $head"
done
load backbone backbone.safetensors -s 'model.pretrained.map=({from="backbone.*";to="*";})' "${still[@]}"
expect pretrained_renamed "conv.weight, bn.bias, fc.weight" "$rc: $(values backbone)" "0: 0.125000 0.125000 0.125000"

want='7 of 9 tensors (113 elements) from FILE; at their initial values: fc.weight, fc.bias; left out '
want+='(model.pretrained.map): fc.bias, fc.weight; in the file, but not in the model: proj.weight'
load report f16.safetensors "${drop[@]}"
got=$(sed -n "s|.*pretrained: ||p" "$tmp/err" | sed "s|$tmp/f16.safetensors|FILE|")
expect pretrained_report "the line of the run" "$got" "${want/FILE;/FILE, converted from f16;}"
line=$(grep '"event":"pretrained"' "$tmp/report/metrics.jsonl")
case $line in
*'"loaded":7,"tensors":9,"elements":113,"converted":"f16","stripped":false,"initial":["fc.weight","fc.bias"]'*'"unused":["proj.weight"]'*)
	pass pretrained_log ;;
*) fail pretrained_log "$line" ;;
esac
from_module=(-s model.pretrained.file="$tmp/module.safetensors" "${drop[@]}")
gives pretrained_check 0 out '7 of 9 tensors (113 elements)' check "$tmp/net.cfg" "${from_module[@]}"
run check "$tmp/net.cfg" --json "${from_module[@]}"
if python3 -c '
import json, sys
p = json.load(open(sys.argv[1]))["pretrained"]
assert p["loaded"] == 7 and p["stripped"] and p["converted"] is None and p["dropped"] == ["module.fc.bias", "module.fc.weight"], p
' "$tmp/out" 2>"$tmp/why"; then pass pretrained_check_json; else fail pretrained_check_json "$(tail -n 1 "$tmp/why")"; fi
gives pretrained_dry_run 0 out '7 of 9 tensors' run "$tmp/net.cfg" -n -s model.pretrained.file="$tmp/f32.safetensors" "${drop[@]}"

# A file beside the config is found from any folder, and the resolved config names it by its whole path.
own='pretrained = { file = "f32.safetensors"; map = ( { from = "fc.*"; to = ""; } ); };'
sed "s|layers = (|$own layers = (|" "$tmp/net.cfg" >"$tmp/own.cfg"
(cd / && "$gtrain" run "$tmp/own.cfg" -o "$tmp/own" -q >/dev/null 2>"$tmp/err")
expect pretrained_path "$(cat "$tmp/err")" "$(grep -cF "file = \"$tmp/f32.safetensors\"" "$tmp/own/config.cfg")" 1

# Every mode starts from the same values: with reproducible = "world", the run ends with the same bits.
digest() { sha256sum <"$tmp/$1/latest/model.safetensors"; }
load single f32.safetensors "${drop[@]}"
for mode in 'ddp 2' 'dp 2' 'zero 2 -s parallel.stage=3' 'pipe 2'; do
	# shellcheck disable=SC2086
	set -- $mode
	name=pretrained_$1 ranks=$2
	load "$name" f32.safetensors "${drop[@]}" -s parallel.mode="$1" "${@:3}" --nproc "$ranks"
	expect "$name" "digest of the model ($(tail -n 1 "$tmp/err"))" "$(digest "$name")" "$(digest single)"
done

# A resumed run does not need the file any more, and ends with the same bits.
cp "$tmp/f32.safetensors" "$tmp/gone.safetensors"
load whole gone.safetensors "${drop[@]}" -s train.epochs=2
load half gone.safetensors "${drop[@]}" -s train.epochs=2 -s train.steps=3
rm "$tmp/gone.safetensors"
run resume "$tmp/half" -s train.steps=0
expect pretrained_resume "$(tail -n 1 "$tmp/err")" "$rc $(digest half)" "0 $(digest whole)"
if grep -q '"event":"pretrained"' "$tmp/half/metrics.jsonl" && ! grep -q pretrained: "$tmp/err"; then pass pretrained_once; else
	fail pretrained_once "$(cat "$tmp/err")"; fi

python3 "$tmp/st.py" "$tmp/plain.safetensors" "" f32 4
python3 "$tmp/st.py" "$tmp/ones.safetensors" "" f32 4 ones
load plain plain.safetensors "${still[@]}"
want=$(values plain)
load ones ones.safetensors "${still[@]}"
expect pretrained_ones "shapes that differ in dimensions of 1" "$rc: $(values ones)" "0: $want"

# A file of torch.save: w is [[0, 1, 2], [3, 4, 5]].
torch=$GTRAIN_SRC/tests/corpus/checkpoint/torch-good-hand
run run "$tmp/net.cfg" -o "$tmp/torch" "${still[@]}" -s 'model.input=[1,1,3]' -s data.classes=2 -s model.pretrained.file="$torch" \
	-s 'model.layers=({type="flatten";},{name="fc";type="linear";out=2;})' -s 'model.pretrained.map=({from="w";to="fc.weight";})'
got=$(python3 "$tmp/read.py" "$tmp/torch/latest/model.safetensors" fc.weight)
expect pretrained_torch "fc.weight ($(tail -n 1 "$tmp/err"))" "$rc: $got" "0: 1.000000"

cp "$GTRAIN_SRC/tests/corpus/checkpoint/torch-bad-call" "$tmp/evil.pth"
refuses() { # NAME STATUS TEXT FILE ARGS...
	local name=$1 status=$2 text=$3 file=$4
	shift 4
	gives "$name" "$status" err "$text" run "$tmp/net.cfg" -o "$tmp/refused" -s model.pretrained.file="$tmp/$file" "$@"
	if [ -e "$tmp/refused/metrics.jsonl" ]; then fail "$name" "the run left files"; fi
	rm -rf "$tmp/refused"
}
refuses pretrained_shapes 65 'fc.weight: expected f32 [4, 128], got f32 [10, 128]; fc.bias: expected f32 [4], got f32 [10]' f32.safetensors
refuses pretrained_shapes_remedy 65 'add { from = "fc.*"; to = ""; } to model.pretrained.map' f32.safetensors
refuses pretrained_hostile 65 'got the Python object posix.system; save only the weights: torch.save(model.state_dict(), ' \
	evil.pth
refuses pretrained_nothing 65 'expected tensors of the model, such as conv.weight, got only others' backbone.safetensors
refuses pretrained_useless_entry 78 'model.pretrained.map[1].from: expected a pattern that matches' f32.safetensors \
	-s 'model.pretrained.map=({from="fc.*";to="";},{from="fc.bias";to="";})'
refuses pretrained_two_of_one 65 'expected one tensor for conv.bias, got bn.bias and conv.bias' f32.safetensors \
	-s 'model.pretrained.map=({from="bn.bias";to="conv.bias";})'
refuses pretrained_missing_file 66 'model.pretrained.file' nowhere.safetensors
refuses pretrained_missing_file_ranks 66 'model.pretrained.file' nowhere.safetensors -s parallel.mode=ddp --nproc 2
refuses pretrained_and_init 78 'expected no file, because --init' f32.safetensors --init "$tmp/f32.safetensors"
gives pretrained_check_missing 0 err 'model.pretrained.file' check "$tmp/net.cfg" -s model.pretrained.file="$tmp/nowhere"
gives pretrained_check_strict 66 err 'model.pretrained.file' check --strict "$tmp/net.cfg" -s model.pretrained.file="$tmp/nowhere"
gives pretrained_check_shapes 65 err 'with a different shape' check "$tmp/net.cfg" -s model.pretrained.file="$tmp/f32.safetensors"
