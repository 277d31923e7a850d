#!/bin/bash
# Published weights by name: gtrain fetch from a server on the loopback, and model.pretrained.file and --pretrained, which find the file.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
export XDG_CACHE_HOME=$tmp/cache no_proxy='*'
mkdir -p "$tmp/www" "$tmp/work"
cd "$tmp/work" || exit 1
file=resnet18-f37072fd.pth cached=$tmp/cache/gtrain/weights/resnet18-f37072fd.pth
torch=$GTRAIN_SRC/tests/corpus/checkpoint/torch-good-hand # w is [[0, 1, 2], [3, 4, 5]]
cat >net.cfg <<'CFG'
schema = 1; name = "net"; data = { name = "synthetic"; samples = 64; samples_test = 32; classes = 2; batch = 16; };
model = { input = [1, 1, 3]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 2; } );
	pretrained = { file = "resnet18"; map = ( { from = "w"; to = "fc.weight"; } ); }; };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.1; }; };
CFG

# What the server has is not what torchvision has published.
cp "$torch" "$tmp/www/$file"
python3 -u -m http.server -b 127.0.0.1 -d "$tmp/www" 0 >"$tmp/port" 2>/dev/null &
server=$!
trap 'kill $server; rm -rf "$tmp"' EXIT
find_port() {
	port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$tmp/port")
	[ -n "$port" ]
}
wait_for find_port
gives weights_wrong_digest 65 err "the digest differs from the digest of the published $file" fetch resnet18 --url "http://127.0.0.1:$port"
gives weights_not_there 66 err "/$(basename efficientnet_b0_rwightman-7f5810bc.pth): the server answered with status 404" \
	fetch efficientnet_b0 --url "http://127.0.0.1:$port"
if [ -e "$cached" ] || [ -e "$cached.part" ]; then fail weights_no_trace "$(ls "$(dirname "$cached")")"; else pass weights_no_trace; fi

gives weights_missing 66 err \
	"model.pretrained.file: $cached: the weights resnet18 are missing; \`gtrain fetch resnet18\` downloads them" run net.cfg -o none
gives weights_missing_check 66 err "gtrain fetch resnet18" check --strict net.cfg
gives weights_unknown 66 err "model.pretrained.file: $tmp/work/resnet9: " run net.cfg -o none -s model.pretrained.file=resnet9

mkdir -p "$(dirname "$cached")"
cp "$torch" "$cached"
gives weights_loaded 0 err "1 of 2 tensors (6 elements) from $cached" run net.cfg -o found
if grep -qF "file = \"$cached\"" found/config.cfg; then pass weights_resolved; else
	fail weights_resolved "$(grep file found/config.cfg)"; fi
cp "$GTRAIN_SRC/tests/corpus/checkpoint/torch-good-parameter" resnet18
gives weights_file_first 0 err "1 of 2 tensors (6 elements) from $tmp/work/resnet18" run net.cfg -o own
rm resnet18

# gtrain init recognises a network by the names and shapes of its tensors, and takes it with another classifier.
images=(-s data.batch=2 -s data.samples=2 -s data.samples_test=2)
python3 "$GTRAIN_SRC/tests/cli/make_images.py" photos 12 40 rose tulip
run run mobilenet_v2 -q -o mobile "${images[@]}" -s train.epochs=0 -s train.steps=1 -s 'model.input=[3,32,32]'
cp mobile/latest/model.safetensors mobile.safetensors
run init photos --pretrained mobile.safetensors -o mobile.cfg
gives init_network 0 out '312 of 314 tensors (2258036 elements)' check mobile.cfg
gives init_network_trains 0 err 'at their initial values: classifier.1.weight, classifier.1.bias' \
	run mobile.cfg -o tuned -s train.epochs=0 -s train.steps=1
gives init_network_missing 66 err '`gtrain fetch mobilenet_v2` downloads them' init photos --pretrained mobilenet_v2
mv mobile.safetensors "$tmp/cache/gtrain/weights/mobilenet_v2-7ebf99e0.pth"
run init photos --pretrained mobilenet_v2 -o named.cfg
if grep -qF 'pretrained = { file = "mobilenet_v2"; map = ( { from = "classifier.1.*"; to = ""; } ); };' named.cfg; then
	pass init_network_named; else fail init_network_named "$(grep file named.cfg)"; fi
gives init_network_named_check 0 out '312 of 314 tensors (2258036 elements)' check named.cfg
mkdir elsewhere
cp "$tmp/cache/gtrain/weights/mobilenet_v2-7ebf99e0.pth" near.safetensors
run init photos --pretrained near.safetensors -o elsewhere/far.cfg
gives init_network_elsewhere 0 out '312 of 314 tensors (2258036 elements)' check elsewhere/far.cfg
python3 - <<'PY'
import struct
for name, shape in (("train-images-idx3-ubyte", (20, 8, 8)), ("train-labels-idx1-ubyte", (20,))):
    n = 20 * 64 if len(shape) > 1 else 20
    open(name, "wb").write(struct.pack(">4B%dI" % len(shape), 0, 0, 8, len(shape), *shape) + bytes(i % 2 for i in range(n)))
PY
mkdir gray && mv ./*ubyte gray
gives init_network_gray 65 err '--pretrained: expected images with 3 channels, because published networks need them, got arrays with 1' \
	init gray --pretrained near.safetensors
gives init_network_other 65 err 'expected the weights of a torchvision network' init photos --pretrained "$torch"
