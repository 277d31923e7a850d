#!/bin/bash
# The keys and types of --json output, which programs read: each command's objects are compared with tests/cli/json_keys.txt. A key that
# has disappeared, has another type or is new is named. GTRAIN_UPDATE=1 writes the list.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
command -v python3 >/dev/null || { skip json_keys 'python3 is not installed'; exit 0; }
cd "$tmp" || exit 1

# The lists of keys: COMMAND, path of the key ([] is an element of an array), and its types in all lines of all outputs of the command.
cat >keys.py <<'PY'
import glob, json, os, sys
kinds = {type(None): "null", bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
now, expected = {}, {}
def add(command, path, value):
    now.setdefault((command, path or "."), set()).add(kinds[type(value)])
    for key, v in value.items() if isinstance(value, dict) else []:
        add(command, f"{path}.{key}", v)
    for v in value if isinstance(value, list) else []:
        add(command, path + "[]", v)
for name in sorted(glob.glob("*.json")):
    for line in open(name):
        add(name.split(".")[0], "", json.loads(line))
if os.environ.get("GTRAIN_UPDATE"):
    with open(sys.argv[1], "w") as f:
        f.writelines(f"{c}\t{p}\t{'|'.join(sorted(t))}\n" for (c, p), t in sorted(now.items()))
for line in open(sys.argv[1]):
    command, path, types = line.rstrip("\n").split("\t")
    expected[command, path] = set(types.split("|"))
for command in sorted({c for c, _ in now | expected}):
    wrong = []
    for c, path in sorted(now | expected):
        old, new = expected.get((c, path)), now.get((c, path))
        if c == command and old != new:
            wrong.append(f"{path} is new" if not old else f"{path} has disappeared" if not new else
                         f"{path} is {'|'.join(sorted(new))}, expected {'|'.join(sorted(old))}")
    print(f"not ok json_keys_{command}: {'; '.join(wrong)}" if wrong else f"ok json_keys_{command}")
PY
# write COMMAND N ARGS...: the Nth output of a command
write() {
	local file=$1.$2.json command=$1
	shift 2
	"$gtrain" "$command" "$@" --json >"$file" 2>err || fail "json_keys_$command" "gtrain $command $* ended with $?: $(tail -n 1 err)"
}

# ---- images: groups, phases, factors by layer, ranks, weights from a file --------------------------------------------------------------
cat >net.cfg <<'CFG'
schema = 1; name = "net"; device = "cpu"; threads = 1;
data = { name = "synthetic"; samples = 96; samples_test = 30; classes = 6; batch = 16; valid = 0.25; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "a"; type = "linear"; out = 8; }, { type = "relu"; },
	{ name = "bn"; type = "batchnorm1d"; }, { name = "b"; type = "linear"; out = 6; } ); };
train = { epochs = 4; optimizer = { type = "sgd"; lr = 0.01; momentum = 0.9; }; schedule = { type = "onecycle"; };
	groups = ( { match = "a.*"; frozen_until = 1.0; }, { match = "bn.*"; frozen = true; } ); };
checkpoint = { best = { metric = "valid/acc"; }; };
CFG
write devices 1
"$gtrain" run net.cfg --smoke --against cpu --json >smoke.1.json 2>err || fail json_keys_smoke "ended with $?: $(tail -n 1 err)"
write help 1 lstm
write help 2 train.optimizer
write help 3 optimizers
write init 1 --list
write check 1 net.cfg
write check 2 net.cfg --world 4 --mode pipe -s parallel.chunks=2 -s parallel.replicas=2 -s 'train.groups=()'
write check 3 net.cfg --world 2 --mode zero -s train.layer_decay=0.5 -s 'train.groups=()'
write check 4 net.cfg -s data.samples=8 --time --device cpu -s data.batch=2
write check 5 fmnist_mlp -s data.root=missing -s 'parallel={mode="ddp";nproc="auto";}'
write plan 1 net.cfg --world 4 --mode pipe -s parallel.chunks=2 -s parallel.replicas=2 -s 'train.groups=()'
write plan 2 net.cfg --world 2 --mode zero
write show 1 net.cfg -n 2
write show 2 net.cfg -n 2 -s 'data.augment=({type="mixup";p=1.0;})'
write bench 1 net.cfg --steps 2
write bench 2 net.cfg --steps 2 --nproc 2 -s 'parallel.mode="pipe"' -s 'train.groups=()'
write bench world net.cfg --steps 2 --world 2 -s 'parallel.mode="ddp"' -s 'train.groups=()'
write check cost net.cfg --world 2 --mode ddp -s 'train.groups=()' --link 1Gbit,1ms --times bench.world.json
"$gtrain" check net.cfg --suggest --world 2 -s 'train.groups=()' --json >suggest.1.json 2>err || fail json_keys_suggest "$(tail -n 1 err)"
write lr-find 1 net.cfg --steps 50
write lr-find 2 net.cfg --steps 50 -s 'train.groups=({match="a.*";lr_mul=0.5;})'
"$gtrain" run net.cfg -o net -q --no-progress 2>err || fail json_keys_run "$(tail -n 1 err)"
write export 1 net -o net.safetensors
write check 6 net.cfg -s 'model.pretrained.file="net.safetensors"'
write inspect 1 net
write eval 1 net --report
write runs 1 net
write compare 1 net net
write plot 1 net
write sweep 1 net.cfg -s train.optimizer.lr=0.01,1e38 -s train.epochs=2 -s 'train.groups=()' -o sweep
write report 1 net -o net.html
write report 2 net -o net.html -s 'data.name="none"'
python3 "$src/tests/cli/fake_mlflow.py" . &
wait_for [ -s port ]
write track 1 net -s "log.mlflow.uri=http://127.0.0.1:$(cat port)"
kill $!
mv runs.json requests port net

# ---- tables and texts ------------------------------------------------------------------------------------------------------------------
awk 'BEGIN { print "a,b,c,y,level,p,q"
	for (i = 1; i <= 120; i++)
		printf "%s,%d,%s,%.2f,%s,%d,%d\n", \
			i % 40 ? i % 7 / 2 : "?", i % 5, i % 2 ? "red" : "blue", i % 9, i % 3 ? "high" : "low", i % 2, i % 3 == 1
}' >all.csv
cat >values.cfg <<'CFG'
schema = 1; name = "values"; device = "cpu"; threads = 1;
data = { format = "csv"; train = ["all.csv"]; target = "y"; ignore = ["level", "p", "q"]; batch = 32; valid = 0.2; };
model = { inputs = ( { name = "values"; } ); layers = ( { type = "linear"; out = 1; } ); };
train = { epochs = 1; loss = "mse"; optimizer = { type = "adam"; lr = 0.02; }; };
CFG
sed 's/"y"; ignore = \["level",/"level"; ignore = ["y",/; s/mse/cross_entropy/; s/out = 1/out = 2/' values.cfg >classes.cfg
sed 's/"y"; ignore.*"q"\]/["p", "q"]; drop_last = false/; s/mse/bce/; s/out = 1/out = 2/' values.cfg >labels.cfg
for name in values classes labels; do
	"$gtrain" run $name.cfg -o $name -q --no-progress 2>err || fail json_keys_run "$(tail -n 1 err)"
	write check $name $name.cfg
	write eval $name $name --report
	write show $name $name.cfg -n 2
	write predict $name $name all.csv --append
done
write inspect classes classes
"$gtrain" predict classes all.csv missing.csv --top 2 --json >predict.top.json 2>err
write check data values.cfg --data
mkdir -p data/train/neg data/train/pos
for i in 1 2 3 4 5 6 7 8; do
	echo "a dull film number $i" >data/train/neg/$i.txt
	echo "a great film of $i acts" >data/train/pos/$i.txt
done
cat >text.cfg <<'CFG'
schema = 1; name = "text"; device = "cpu"; threads = 1;
data = { root = "data"; format = "text"; batch = 4; valid = 0.25; max_tokens = 8; };
model = { inputs = ( { name = "tokens"; }, { name = "lengths"; } ); layers = (
	{ type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 8; padding_idx = 0; }, { type = "linear"; out = 2; } ); };
train = { epochs = 1; optimizer = { type = "adam"; lr = 0.05; }; };
CFG
write check text text.cfg
"$gtrain" run text.cfg -o text -q --no-progress 2>err || fail json_keys_run "$(tail -n 1 err)"
write predict text text --text 'a great film'

python3 keys.py "$src/tests/cli/json_keys.txt"
