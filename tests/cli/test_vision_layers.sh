#!/bin/bash
# The layers class_token and layer_scale: what they refuse, and that all parallel modes, a resume and recomputation give the same weights.
# shellcheck disable=SC2015
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
cat >vit.cfg <<'CFG'
schema = 1; name = "vit"; device = "cpu"; threads = 1; reproducible = "world";
data = { name = "synthetic"; samples = 64; samples_test = 16; classes = 4; batch = 16; };
model = { input = [3, 16, 16]; layers = (
	{ name = "proj"; type = "conv2d"; out = 8; kernel = 4; stride = 4; },
	{ type = "reshape"; shape = [8, 16]; }, { type = "permute"; dims = [0, 2, 1]; },
	{ name = "token"; type = "class_token"; }, { name = "pos"; type = "positional"; max_len = 17; },
	{ name = "norm"; type = "layernorm"; }, { type = "attention"; num_heads = 2; },
	{ name = "factors"; type = "layer_scale"; init_value = 0.5; },
	{ name = "sum"; type = "add"; in = ["factors", "pos"]; },
	{ type = "select"; index = 0; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 2; optimizer = { type = "adamw"; lr = 0.01; }; };
CFG
weights() { md5sum <"$1/latest/model.safetensors"; }
train() { # DIR ARGS...
	local dir=$1
	shift
	"$gtrain" run vit.cfg -o "$dir" -q --no-progress "$@" >out 2>err
}

train one && pass one || fail one "$(cat err)"
for mode in dp ddp zero; do
	train $mode -s parallel.mode=$mode --nproc 2 && [ "$(weights $mode)" = "$(weights one)" ] && pass $mode ||
		fail $mode "$(cat err) $(weights $mode)"
done
train pipe -s parallel.mode=pipe --nproc 2 -s parallel.chunks=2 && [ "$(weights pipe)" = "$(weights one)" ] && pass pipe ||
	fail pipe "$(cat err)"
train half -s train.steps=3 && "$gtrain" resume half -q --no-progress -s train.steps=0 >out 2>err &&
	[ "$(weights half)" = "$(weights one)" ] && pass resume || fail resume "$(cat err)"
train less -s train.recompute=cheap && [ "$(weights less)" = "$(weights one)" ] && pass recompute || fail recompute "$(cat err)"
train bf16 -s precision=bf16 -s reproducible=run && pass bf16 || fail bf16 "$(cat err)"

# The token begins at 0 and the factors at init_value; both learn.
if command -v python3 >/dev/null; then
	why=$(python3 - one/latest/model.safetensors <<'PY' 2>&1
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8:8 + n])
def values(name):
    a, b = head[name]["data_offsets"]
    return struct.unpack(f"<{(b - a) // 4}f", raw[8 + n + a:8 + n + b])
assert head["token.weight"]["shape"] == [1, 8] and head["factors.weight"]["shape"] == [8, 1, 1, 1]
# 8 steps of adamw at the rate 0.01 move a value by at most about 0.08
assert all(0 < abs(v) < 0.1 for v in values("token.weight")), values("token.weight")
assert all(0 < abs(v - 0.5) < 0.1 for v in values("factors.weight")), values("factors.weight")
PY
	) && pass first_values || fail first_values "$why"
else
	skip first_values 'python3 is not installed'
fi

refuses() { # NAME TEXT EDIT: a config with this edit of sed
	sed "$3" vit.cfg >"$1.cfg"
	gives "$1" 78 err "$2" check "$1.cfg"
}
refuses token_init_std 'init_std: expected a layer with random initial weights' 's/type = "class_token";/& init_std = 0.1;/'
refuses factors_init_std 'init_std: expected a layer with random initial weights' 's/init_value = 0.5;/& init_std = 0.1;/'
refuses factors_dirac 'init: "dirac" is for convolutions only' 's/init_value = 0.5;/& init = "dirac";/'
refuses token_of_image 'expected an input of [batch, tokens, features]' \
	's/{ type = "reshape"; shape = \[8, 16\]; }, { type = "permute"; dims = \[0, 2, 1\]; },//'
rest='groups = ( { match = ["*.bias", "norm.*", "token.*", "pos.*"]; frozen = true; } )'
refuses factors_muon 'which only updates weights of linear and convolution layers' \
	"s/type = \"adamw\"; lr = 0.01; }/type = \"muon\"; lr = 0.01; }; $(printf %s "$rest" | sed 's/[*]/\\*/g')/"
cat >text.cfg <<'CFG'
schema = 1; name = "text"; device = "cpu";
data = { name = "synthetic"; samples = 64; samples_test = 16; classes = 4; batch = 16; };
model = { inputs = ( { name = "tokens"; shape = [12]; vocabulary = 30; }, { name = "lengths"; } ); layers = (
	{ type = "embedding"; in = "tokens"; embedding_dim = 8; }, { name = "token"; type = "class_token"; },
	{ type = "pool_tokens"; in = ["token", "lengths"]; }, { type = "linear"; out = 4; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.1; }; };
CFG
gives token_and_lengths 78 err 'expected no lengths after a class_token' check text.cfg
sed -i 's/in = \["token", "lengths"\]; }/in = "token"; }/; s/, { name = "lengths"; }//' text.cfg
gives token_without_lengths 0 out 'class_token' check text.cfg
