#!/bin/bash
# What README.md and gtrain-pytorch(7) show works: configs, commands, the function that writes IDX files, settings, layers.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
readme=$src/README.md page=$src/man/gtrain-pytorch.7
awk '/^```/ { block = !block; if (!block && config) exit; next } block && /^schema = / { config = 1 }
	block && config' "$readme" >"$tmp/readme.cfg"
gives config 0 out 'fmnist-mlp' check "$tmp/readme.cfg"
commands >"$tmp/a"
sed -n 's/^| `gtrain \([a-z-]*\).*/\1/p' "$readme" >"$tmp/b"
if why=$(diff "$tmp/a" "$tmp/b"); then pass commands; else fail commands "$(tr '\n' ';' <<<"$why")"; fi

# The three commands at the beginning, on a table of the same name: they work as typed, and predict prints the header that is shown.
mkdir "$tmp/first"
awk 'BEGIN { srand(1); print "Glucose,BMI,Outcome"; for (i = 0; i < 80; i++) printf "%.3f,%.3f,%d\n", i / 80, rand(), i / 40 }' \
	>"$tmp/first/diabetes.csv"
printf 'Glucose,BMI\n0.1,0.5\n0.9,0.5\n' >"$tmp/first/new.csv"
awk '/^```/ { if (on) exit; on = 1; next } on' "$readme" >"$tmp/shown"
# shellcheck disable=SC2016
sed -n 's/^\$ gtrain/"$GTRAIN"/p' "$tmp/shown" >"$tmp/typed"
if (cd "$tmp/first" && GTRAIN=$gtrain bash -e "$tmp/typed" >"$tmp/out" 2>&1) && [ "$(wc -l <"$tmp/typed")" = 3 ] &&
	grep -qx "$(grep '^path,index' "$tmp/shown")" "$tmp/out" && grep -q '^wrote diabetes.cfg; next: ' "$tmp/out" &&
	[ "$(awk '/^## Status/ { exit } length > 112' "$readme" | wc -l)" = 0 ]; then
	pass first_commands
else
	fail first_commands "$(tail -n 3 "$tmp/out")"
fi

# The line that writes arrays, with a small stand-in for NumPy, the config of gtrain init, and the line of a config that reads other arrays.
mkdir "$tmp/data"
cat >"$tmp/arrays.py" <<'PY'
import random, struct, zipfile
class np:
    def npy(array):
        text = "{'descr': '|u1', 'fortran_order': False, 'shape': (%s), }\n" % "".join("%d, " % n for n in array.shape)
        return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + array.tobytes()
    def savez(name, **arrays):
        with zipfile.ZipFile(name, "w") as z:
            for key, array in arrays.items():
                z.writestr(key + ".npy", np.npy(array))
def array(n, *shape):
    data = bytes(random.Random(n).randrange(2) for _ in range(n)) if not shape else random.Random(n).randbytes(n * 64)
    return memoryview(data).cast("B", (n, *shape))
images, labels, test_images, test_labels = array(96, 8, 8), array(96), array(32, 8, 8), array(32)
for name, a in ("x", images), ("y", labels), ("x-test", test_images), ("y-test", test_labels):
    open(name + ".npy", "wb").write(np.npy(a))
PY
awk '/^```/ { on = /python/ } !/^```/ && on' "$readme" >>"$tmp/arrays.py"
cat >"$tmp/data/own.cfg" <<CFG
schema = 1;
$(grep '^data = { format = "numpy"' "$readme")
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 2; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.01; }; };
CFG
if why=$(cd "$tmp/data" && python3 "$tmp/arrays.py" 2>&1); then
	gives own_data 0 out 'test accuracy' run "$tmp/data/own.cfg" -q -o "$tmp/own"
	gives own_init 0 err 'wrote' init "$tmp/data/mine.npz" -o "$tmp/mine.cfg"
	gives own_run 0 out '96 train, 32 test' check "$tmp/mine.cfg"
else
	fail own_data "$(tail -n 1 <<<"$why")"
fi

# ---- gtrain-pytorch(7): every setting, every layer and the whole config are such as gtrain check takes
awk '/^schema = /, /^\.Ed/ { if (!/^\.Ed/) print }' "$page" >"$tmp/page.cfg"
gives page_config 0 out 'linear' check "$tmp/page.cfg"

# net FILE LAYERS...: a config with these layers, a classifier behind them, and a template
net() {
	cat >"$1" <<CFG
schema = 1;
data = { name = "synthetic"; batch = 32; classes = 10; samples = 256; samples_test = 64; };
model = {
	input = [3, 36, 36];
	blocks = { basic = { params = ["ch"]; layers = ( { type = "conv2d"; out = "\$ch"; kernel = 1; } ); }; };
	layers = ( $2 { type = "flatten"; }, { name = "fc"; type = "linear"; out = 10; } );
};
train = { epochs = 90; optimizer = { type = "sgd"; lr = 0.01; }; };
CFG
}

# taken NAME LEAST: $n lines, of which $refused lists those that gtrain does not take
taken() {
	if [ -z "$refused" ] && [ "$n" -ge "$2" ]; then pass "$1"; else fail "$1" "of $n, refused:$refused"; fi
}

net "$tmp/net.cfg" '{ name = "stem"; type = "conv2d"; out = 8; kernel = 3; }, { name = "bn1"; type = "batchnorm2d"; },'
n=0 refused=
while IFS= read -r line; do
	sets=()
	# These need a file (test_pretrained.sh has one), or a number for each of the network's ten outputs.
	case $line in model.pretrained* | *class_weights* | *pos_weight*) continue ;; esac
	case $line in parallel.*) sets=(--world 4 -s parallel.mode=ddp) ;; parallel*) sets=(--world 4) ;; esac
	case $line in *'{'*) ;; *) line=${line//; /$'\n'} ;; esac
	while IFS= read -r one; do
		one=${one%;}
		sets+=(-s "${one/ = /=}")
	done <<<"$line"
	n=$((n + 1))
	"$gtrain" check "$tmp/net.cfg" "${sets[@]}" >/dev/null 2>"$tmp/err" || refused="$refused ${sets[*]}: $(head -n 1 "$tmp/err");"
done < <(sed -n 's/^    \({ match = .*}\)$/    train.groups = ( \1 );/; /^\.Sh LAYERS/,$s/^    \([a-z_.]* = .*;\)\( *#.*\)\{0,1\}$/\1/p' \
	"$page")
taken page_settings 35
# before LINE: the layers in front of a layer of sequences, whose input is neither an image nor a vector
before() {
	case $1 in
	*pool_tokens*) echo '{ name = "x"; type = "embedding"; in = "tokens"; embedding_dim = 8; },' ;;
	*reshape*) echo '{ type = "linear"; in = "values"; out = 512; },' ;;
	*permute* | *select* | *class_token*) echo '{ type = "linear"; in = "values"; out = 512; }, { type = "reshape"; shape = [8, 64]; },' ;;
	esac
}
# sequences FILE LINE: a config whose inputs are tokens with their lengths, or numbers, with the layer LINE
sequences() {
	local front inputs='{ name = "tokens"; shape = [12]; vocabulary = 30; }'
	front=$(before "$2")
	case $2 in *pool_tokens*) inputs+=', { name = "lengths"; }' ;; esac
	case $front in *values*) inputs='{ name = "values"; shape = [5]; }' ;; esac
	net "$1" "$front $2,"
	sed -i "s/input = .*/inputs = ( $inputs );/" "$1"
}
n=0 refused=
while IFS= read -r line; do # of images, else of features, else of sequences; those of two inputs behind two layers
	case $line in
	*'["x", "y"]'*) line="{ name = \"x\"; type = \"relu\"; in = \"input\"; }, { name = \"y\"; type = \"tanh\"; in = \"input\"; }, $line" ;;
	esac
	n=$((n + 1))
	net "$tmp/layer.cfg" "$line,"
	"$gtrain" check "$tmp/layer.cfg" >/dev/null 2>"$tmp/err" && continue
	net "$tmp/layer.cfg" "{ type = \"flatten\"; }, $line,"
	sed -i 's/{ type = "flatten"; }, { name = "fc"/{ name = "fc"/' "$tmp/layer.cfg"
	"$gtrain" check "$tmp/layer.cfg" >/dev/null 2>"$tmp/err" && continue
	sequences "$tmp/layer.cfg" "$line"
	"$gtrain" check "$tmp/layer.cfg" >/dev/null 2>"$tmp/err" || refused="$refused $line: $(head -n 1 "$tmp/err");"
done < <(sed -n '/^\.Sh LAYERS/,$s/^    \({ \(type\|block\) = .*}\)\( *#.*\)\{0,1\}$/\1/p' "$page")
taken page_layers 27
