#!/bin/bash
# `gtrain run --smoke`: what it runs and says, what it refuses, and that it fails where a resume fails or ends with other bits
# (smoke_fault.c, preloaded). Of configs/, the small ones; SMOKE=full: all of them.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
export TMPDIR=$tmp/t
mkdir "$TMPDIR"
left() { find "$TMPDIR" -mindepth 1 -maxdepth 1 | head -n 1; }

# ---- every config ------------------------------------------------------------------------------------------------------------
short=' lenet mnist_ddp fmnist_dp tutorial_mlp_sgd adult_tabular imdb_lstm '
ran=0 all=0
for cfg in "$src"/configs/*.cfg; do
	name=$(basename "$cfg" .cfg)
	all=$((all + 1))
	[ "${SMOKE:-}" = full ] || [[ $short = *" $name "* ]] || continue
	ran=$((ran + 1))
	start=$(date +%s.%N)
	run run "$cfg" --smoke
	took=$(awk "BEGIN { print $(date +%s.%N) - $start }")
	if [ "$rc" = 69 ] && grep -q bf16 "$tmp/err"; then
		skip "config_$name" "$(head -n 1 "$tmp/err")"
	elif [ "$rc" != 0 ] || ! grep -q '^compare .* equal: model [0-9a-f]' "$tmp/out" ||
		! tail -n 1 "$tmp/out" | grep -q '^smoke test passed: '; then
		fail "config_$name" "ended with $rc: $(tail -n 1 "$tmp/out") $(head -n 2 "$tmp/err")"
	elif [ -n "$(left)" ]; then
		fail "config_$name" "left $(left)"
		rm -rf "${TMPDIR:?}"/*
	else
		echo "# smoke of $name: $took s"
		pass "config_$name"
	fi
done
echo "# smoke: $ran of $all configs"

# ---- what is missing ---------------------------------------------------------------------------------------------------------
# A table, with a target column that data.columns does not list, a categorical, a numeric, a text and an ignored column.
cat >"$tmp/table.cfg" <<'CFG'
schema = 1;
name = "table";
data = { format = "csv"; train = ["nowhere.csv"]; test = ["nowhere2.csv"]; target = "y"; batch = 8; delimiter = ";"; max_tokens = 8;
	columns = ( { name = "a \"b\""; type = "continuous"; }, { name = "c"; type = "categorical"; }, { name = "d"; type = "ignore"; },
		{ name = "e"; type = "text"; } ); };
model = { inputs = ( { name = "values"; }, { name = "codes"; }, { name = "tokens"; }, { name = "lengths"; } ); layers = (
	{ name = "embed"; type = "embeddings"; in = "codes"; }, { name = "words"; type = "embedding"; in = "tokens"; embedding_dim = 4; },
	{ name = "mean"; type = "pool_tokens"; in = ["words", "lengths"]; },
	{ name = "all"; type = "concat"; in = ["values", "embed", "mean"]; }, { name = "out"; type = "linear"; out = 3; } ); };
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.01; }; };
checkpoint = { dir = "unused"; };
CFG
gives made_up_rows 0 out 'generated rows of the 4 columns: ' run "$tmp/table.cfg" --smoke
gives made_up_numbers 0 out 'smoke test passed' run "$tmp/table.cfg" --smoke -s train.loss=mse -s 'model.layers[4].out=1'
gives made_up_rows_json 0 out '"synthetic":true' run "$tmp/table.cfg" --smoke --json
gives rows_of_no_columns 66 err 'a smoke test generates rows if data.columns lists the columns' run "$tmp/table.cfg" --smoke \
	-s 'data.columns=()' -s 'model.inputs=({name="values";})' -s 'model.layers=({type="linear";out=2;})'
mkdir -p "$tmp/taken/made-up"
: >"$tmp/taken/made-up/mine"
gives made_up_folder_is_there 73 err 'contains an earlier smoke test' run "$tmp/table.cfg" --smoke -o "$tmp/taken"
[ -e "$tmp/taken/made-up/mine" ] || fail made_up_folder_stays 'a file of the user was removed'
cat >"$tmp/text.cfg" <<'CFG'
schema = 1;
name = "text";
data = { format = "text"; root = "nowhere"; tokenizer = "wordpiece"; vocab = "novocab.txt"; max_tokens = 16; batch = 8; };
model = { inputs = ( { name = "tokens"; }, { name = "lengths"; } ); pretrained = { file = "nothing.safetensors"; };
	layers = ( { name = "words"; type = "embedding"; in = "tokens"; embedding_dim = 4; },
	{ name = "mean"; type = "pool_tokens"; in = ["words", "lengths"]; },
	{ name = "out"; type = "linear"; out = 2; } ); };
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.01; }; };
checkpoint = { dir = "unused"; };
CFG
gives made_up_texts 0 out 'generated texts of 2 classes: ' run "$tmp/text.cfg" --smoke
gives initial_weights 0 out 'initial values, because ' run "$tmp/text.cfg" --smoke
gives weights_json 0 out 'nothing.safetensors does not exist"' run "$tmp/text.cfg" --smoke --json
gives run_needs_the_data 66 err 'nowhere' run "$tmp/text.cfg" -o "$tmp/r"
if [ -n "$(left)" ]; then fail made_up_left "$(left)"; else pass made_up_left; fi

# ---- what it says ------------------------------------------------------------------------------------------------------------
cat >"$tmp/net.cfg" <<'CFG'
schema = 1;
name = "net";
data = { name = "cifar10"; root = "nowhere"; batch = 48; valid = 0.1; };
model = { input = [3, 8, 8]; layers = ( { type = "conv2d"; out = 4; kernel = 3; }, { type = "batchnorm2d"; }, { type = "relu"; },
	{ type = "flatten"; },
	{ type = "dropout"; }, { type = "linear"; out = 10; } ); };
train = { epochs = 20; optimizer = { type = "sgd"; lr = 0.01; momentum = 0.9; }; schedule = { type = "cosine"; warmup = 5; }; };
checkpoint = { dir = "unused"; best = { metric = "valid/acc"; }; };
CFG
gives stand_in 0 out 'synthetic data of the shape [3, 8, 8] with 10 classes: ' run "$tmp/net.cfg" --smoke
lines=$(cut -d' ' -f1 "$tmp/out" | tr '\n' ' ')
if [ "$lines" = 'plan data train evaluate checkpoint resume compare smoke ' ]; then pass lines; else fail lines "$lines"; fi
run run "$tmp/net.cfg" --smoke --json
if why=$(python3 - "$tmp/out" <<'PY'
import json, sys
v = [json.loads(l) for l in open(sys.argv[1])]
assert [x["phase"] for x in v] == ["plan", "train", "evaluate", "checkpoint", "resume", "compare", "end"], v
assert all(x["event"] == "smoke" and x["seconds"] >= 0 for x in v), v
assert v[0]["synthetic"] is True and "nowhere" in v[0]["why"] and v[0]["batch"] == 48 and v[0]["ranks"] == 1, v[0]
assert v[1]["first_loss"] > 0 and v[1]["last_loss"] != v[1]["first_loss"] and v[2]["split"] == "test" and 0 <= v[2]["acc"] <= 1, v
assert len(v[5]["model"]) == 32 and v[6]["status"] == "ok" and v[6]["code"] == 0, v
PY
) 2>&1 && [ "$rc" = 0 ]; then pass json; else fail json "status $rc: $(tail -n 1 <<<"$why")"; fi
run run "$tmp/net.cfg" --smoke --quiet
if [ "$rc" = 0 ] && [ "$(grep -c . "$tmp/out")" = 1 ] && [ ! -s "$tmp/err" ]; then
	pass quiet
else
	fail quiet "status $rc: $(cat "$tmp/out" "$tmp/err")"
fi

# ---- it works together with the other options and modes -----------------------------------------------------------------------
gives out 0 out 'smoke test passed: net' run "$tmp/net.cfg" --smoke --out "$tmp/kept"
if "$gtrain" inspect --verify "$tmp/kept/run" >/dev/null && "$gtrain" inspect --verify "$tmp/kept/uninterrupted" >/dev/null; then
	pass out_kept
else
	fail out_kept "$(ls -R "$tmp/kept")"
fi
gives out_again 73 err 'contains an earlier smoke test' run "$tmp/net.cfg" --smoke --out "$tmp/kept"
"$gtrain" export "$tmp/kept/run" -o "$tmp/first.safetensors"
gives init 0 out 'equal' run "$tmp/net.cfg" --smoke --init "$tmp/first.safetensors"
gives set 0 out 'batches of 24;' run "$tmp/net.cfg" --smoke -s data.batch=24 -s train.optimizer.lr=0.1 --device cpu
for mode in ddp zero dp pipe; do
	gives "mode_$mode" 0 out "$mode on 2 ranks" run "$tmp/net.cfg" --smoke -s parallel.mode=$mode --nproc 2
done
gives ranks_fit 0 out 'ddp on ' run "$tmp/net.cfg" --smoke -s parallel.mode=ddp -s parallel.nproc=64 -s data.batch=128
if grep -q 'ranks (in the config: 64)' "$tmp/out"; then pass ranks_told; else fail ranks_told "$(head -n 1 "$tmp/out")"; fi
gives world_bits 0 out equal run "$tmp/net.cfg" --smoke -s parallel.mode=ddp --nproc 2 -s reproducible=world -s data.batch=64
gives per_rank 0 out equal run "$tmp/net.cfg" --smoke -s parallel.mode=ddp --nproc 2 -s data.batch_per_rank=12 -s train.accumulate=2
gives synthetic 0 out 'synthetic: made from the seed' run "$tmp/net.cfg" --smoke -s data.name=synthetic -s data.samples=500 \
	-s data.samples_test=50 -s data.classes=10

# ---- what it refuses ----------------------------------------------------------------------------------------------------------
gives no_hosts 64 err '--smoke and --nnodes 2 cannot be combined' run "$tmp/net.cfg" --smoke --nnodes 2
gives no_restarts 64 err '--smoke and --max-restarts cannot be combined' run "$tmp/net.cfg" --smoke --max-restarts 1
gives no_limit 64 err '--smoke and --time-limit cannot be combined' run "$tmp/net.cfg" --smoke --time-limit 1m
gives no_dry_run 64 err '--smoke and --dry-run cannot be combined' run "$tmp/net.cfg" --smoke --dry-run
RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 gives no_ranks 64 err \
	'a smoke test starts its ranks itself' \
	run "$tmp/net.cfg" --smoke
fp16=(-s data.name=synthetic -s data.samples=500 -s data.samples_test=50 -s data.classes=10 -s precision=fp16 --device cpu)
run run "$tmp/net.cfg" "${fp16[@]}" -o "$tmp/fp16"
[ "$rc" != 0 ] || fail fp16_refused 'fp16 trains on this CPU'
gives fp16 "$rc" err "$(head -n 1 "$tmp/err")" run "$tmp/net.cfg" --smoke "${fp16[@]}"
if ! "$gtrain" devices | grep -q '^cuda:0'; then
	gives no_gpu 69 err cuda run "$tmp/net.cfg" --smoke -s device=cuda --out "$tmp/unused/dir"
	if [ -e "$tmp/unused" ]; then fail no_gpu_no_folder "$(find "$tmp/unused")"; else pass no_gpu_no_folder; fi
	gives no_gpu_but_cpu 0 out equal run "$tmp/net.cfg" --smoke -s device=cuda --device cpu
fi
TMPDIR=$tmp/none gives no_directory 73 err 'cannot create a temporary directory' run "$tmp/net.cfg" --smoke
mkdir "$tmp/data"
printf 'not a record' | tee "$tmp"/data/data_batch_{1,2,3,4,5}.bin >"$tmp/data/test_batch.bin"
gives damaged_data 65 err 'data_batch_' run "$tmp/net.cfg" --smoke -s "data.root=$tmp/data" -s 'model.input=[3,32,32]'
gives diverges 3 err 'step' run "$tmp/net.cfg" --smoke -s train.optimizer.lr=1e30 -s train.schedule.type=constant

# ---- what it must find --------------------------------------------------------------------------------------------------------
if ${CC:-gcc} -O1 -shared -fPIC -o "$tmp/fault.so" "$src/tests/cli/smoke_fault.c" -ldl 2>"$tmp/cc"; then
	asan=$(ldd "$gtrain" 2>/dev/null | awk '/libasan/ { print $3 }')
	preload="${asan:+$asan }$tmp/fault.so"
	fault() { # NAME STATUS TEXT FAULT ARGS...
		SMOKE_FAULT=$4 LD_PRELOAD=$preload gives "$1" "$2" err "$3" run "$tmp/net.cfg" --smoke "${@:5}"
		[ -z "$(left)" ] || fail "$1" "left $(left)"
	}
	fault other_bits 1 'the uninterrupted run end with different bits: ' bits
	if grep -qE '[1-9][0-9]* of [0-9]+ tensors of model.safetensors differ, the first of them is ' "$tmp/err"; then
		pass other_bits_named
	else
		fail other_bits_named "$(cat "$tmp/err")"
	fi
	fault other_bits_ranks 1 'the uninterrupted run end with different bits: ' bits -s parallel.mode=ddp --nproc 2
	fault damaged 65 'step-00000004' damage
	fault killed 137 'was killed by signal 9' die
	SMOKE_FAULT=none LD_PRELOAD=$preload gives no_fault 0 out equal run "$tmp/net.cfg" --smoke
	SMOKE_FAULT=bits LD_PRELOAD=$preload run run "$tmp/net.cfg" --smoke --json
	if tail -n 1 "$tmp/out" | grep -q '"phase":"end".*"status":"failed","code":1,"error":"the resumed'; then
		pass json_failed
	else
		fail json_failed "$(tail -n 1 "$tmp/out")"
	fi
else
	skip faults "no preloaded library: $(head -n 1 "$tmp/cc")"
fi

# A signal ends it in order, with nothing left. The net is one that takes seconds.
"$gtrain" run "$src/configs/resnet18_cifar.cfg" --smoke >"$tmp/out" 2>"$tmp/err" &
pid=$!
begun() { grep -q '^data' "$tmp/out" && [ -n "$(left)" ]; }
wait_for begun
kill -TERM $pid
wait $pid
rc=$?
if [ "$rc" = 143 ] && [ -z "$(left)" ] && ! pgrep -P $pid >/dev/null; then
	pass terminated
else
	fail terminated "status $rc, left: $(left) $(cat "$tmp/err")"
fi

# A signal that arrives when the ranks of a phase have made their last step ends the test too. When the phase "resume" was over soon after
# the signal, the signal may have come too late: then once more.
bad='' late=0
for ((n = 1; n <= 6 + late; n++)); do
	"$gtrain" run "$src/configs/lenet.cfg" --smoke --out "$tmp/late$n" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	for _ in $(seq 20000); do
		grep -q '"event":"end"' "$tmp/late$n/run/metrics.jsonl" 2>/dev/null && break
		sleep 0.002
	done
	kill -TERM $pid
	over=$(grep -c '^resume' "$tmp/out")
	wait $pid
	rc=$?
	if [ "$rc $over" = '0 1' ] && [ $late -lt 10 ]; then late=$((late + 1))
	elif [ "$rc" != 143 ]; then bad="$bad $n: status $rc, $(tail -n 1 "$tmp/out")"; fi
done
[ -z "$bad" ] && pass terminated_after_the_last_step || fail terminated_after_the_last_step "$bad"
