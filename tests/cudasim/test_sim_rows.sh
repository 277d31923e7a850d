#!/bin/bash
# Tables of which a step updates only the rows that its batch names (embedding.dw+update), on the host's CUDA runtime: the losses of the
# CPU, the bits of the update of whole tables, steps that are skipped because a gradient is not finite, windows, and interruptions.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin sim_rows
cd "$tmp" || exit 1
export CUDASIM_UNORDERED=1
cat >net.cfg <<'CFG'
schema = 1;
name = "rows";
seed = 3;
autotune = false;
reproducible = "run";
data = { name = "synthetic"; samples = 403; samples_test = 40; classes = 4; batch = 24; };
model = {
	inputs = ( { name = "tokens"; shape = [90]; vocabulary = 700; }, { name = "lengths"; },
		{ name = "codes"; shape = [2]; vocabulary = 50; } );
	layers = (
		{ name = "word"; type = "embedding"; in = "tokens"; embedding_dim = 8; padding_idx = 0; },
		{ name = "mean"; type = "pool_tokens"; in = ["word", "lengths"]; },
		{ name = "bag"; type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 5; mode = "max"; },
		{ name = "cols"; type = "embeddings"; in = "codes"; },
		{ name = "all"; type = "concat"; in = ["mean", "bag", "cols"]; },
		{ name = "fc"; type = "linear"; out = 4; }
	);
};
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.2; }; schedule = { type = "cosine"; unit = "step"; }; };
checkpoint = { every_steps = 10; keep = 9; };
log = { every_steps = 1; };
CFG
# a model that has no parameters but a table, so that nothing else finds a gradient that is not finite
cat >table.cfg <<'CFG'
schema = 1;
name = "table";
seed = 3;
reproducible = "run";
data = { name = "synthetic"; samples = 403; samples_test = 40; classes = 4; batch = 24; };
model = {
	inputs = ( { name = "tokens"; shape = [90]; vocabulary = 700; }, { name = "lengths"; } );
	layers = ( { name = "bag"; type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 4; } );
};
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.2; }; loss_scale = { init = 1.0e9; interval = 4; }; };
checkpoint = { every_epochs = 0; };
log = { every_steps = 1; };
CFG
whole=(-s train.clip_norm=1.0e30) # clipping needs stored gradients; this limit clips nothing
train() { # DIR CONFIG ARGS...
	local dir=$1 cfg=$2
	shift 2
	rm -rf "$dir"
	"$sim/bin/gtrain" run "$cfg" -q --no-progress -o "$dir" "$@" >"$dir.out" 2>&1 ||
		echo "status $?: $(tail -n 1 "$dir.out")" >"$dir.failed"
}
curve() { grep -E '"event":"(train|skip|eval)"' "$1/metrics.jsonl" | sed -E 's/,"(samples_per_s|time|grad_norm)":[^,}]*//g'; }
# same NAME A B: curve and weights
same() {
	local why
	why=$(cat "$2.failed" "$3.failed" 2>/dev/null | head -n 1)
	[ -n "$why" ] || [ "$(curve "$2" | wc -l)" -gt 20 ] || why='no losses'
	[ -n "$why" ] || cmp -s <(curve "$2") <(curve "$3") || why="the curves differ: $(diff <(curve "$2") <(curve "$3") | sed -n 2p)"
	[ -n "$why" ] || cmp -s "$2/latest/model.safetensors" "$3/latest/model.safetensors" || why='the weights differ'
	ok "$1" "$why"
}
# close NAME A B TOLERANCE: losses within TOLERANCE of each other
close() {
	local why
	why=$(cat "$2.failed" "$3.failed" 2>/dev/null | head -n 1)
	[ -n "$why" ] || why=$(paste <(losses "$2") <(losses "$3") | awk -v tol="$4" '
		{ n++; d = $3 - $6; d = d < 0 ? -d : d; if ($1 != $4 || $2 != $5 || !(d <= tol * (1 + $3))) { print; exit } }
		END { if (n < 30) print "only " n " losses" }' | head -n 1)
	ok "$1" "$why"
}
updates() { "$sim/bin/gtrain" plan "$@" --device cuda 2>&1 | sed '/^# last step/,$d' | grep -c ' embedding\(_bag\)\?\.dw+update '; }
got="$(updates net.cfg) $(updates net.cfg -s precision=bf16) $(updates net.cfg -s precision=fp16) $(updates net.cfg "${whole[@]}")"
got+=" $(updates net.cfg -s train.optimizer.momentum=0.9) $(updates table.cfg -s precision=fp16)"
ok sim_rows_planned "$([ "$got" = '4 4 4 0 0 1' ] || echo "expected 4 4 4 0 0 1 updates of rows, got $got")"

train cpu net.cfg --device cpu
for precision in fp32 bf16 fp16; do
	train "$precision" net.cfg --device cuda -s precision=$precision
	train "$precision-whole" net.cfg --device cuda -s precision=$precision "${whole[@]}"
	train "$precision-step" net.cfg --device cuda -s precision=$precision -s window=1 -s cuda_graphs=false
	cp -r "$precision" "$precision-back"
	"$sim/bin/gtrain" resume "$precision-back" --from 10 -q --no-progress --device cuda >out 2>&1 || tail -n 1 out >"$precision-back.failed"
	same "sim_rows_${precision}_as_whole_tables" "$precision-whole" "$precision"
	same "sim_rows_${precision}_step_by_step" "$precision-step" "$precision"
	same "sim_rows_${precision}_from_a_checkpoint" "$precision" "$precision-back"
done
# sums in another order, 2^-24 each; bf16 and fp16 round activations to 2^-8 and 2^-11
close sim_rows_fp32_as_on_the_cpu cpu fp32 1e-5
close sim_rows_bf16_near_the_cpu cpu bf16 2e-2
close sim_rows_fp16_near_the_cpu cpu fp16 5e-3

# tables of one optimizer among layers of another
mixed=(-s 'train.optimizer={type="adam";lr=0.01;}' -s 'train.groups=({match=["word.*","bag.*"];optimizer={type="sgd";lr=0.2;};})')
train mixed net.cfg --device cuda "${mixed[@]}"
train mixed-whole net.cfg --device cuda "${mixed[@]}" "${whole[@]}"
train mixed-step net.cfg --device cuda "${mixed[@]}" -s window=1 -s cuda_graphs=false
got="$(updates net.cfg "${mixed[@]}")"
ok sim_rows_mixed_planned "$([ "$got" = 2 ] || echo "expected 2 updates of rows, got $got")"
same sim_rows_mixed_as_whole_tables mixed-whole mixed
same sim_rows_mixed_step_by_step mixed-step mixed

# Gradients overflow until the loss scale has come down, and the table stays as it is in these steps; only the bound can tell.
for args in '' '-s window=1 -s cuda_graphs=false' '-s train.clip_norm=1.0e30'; do
	# shellcheck disable=SC2086 # several words
	train "scaled${args//[^a-z0-9]/}" table.cfg --device cuda -s precision=fp16 $args
done
skips=$(curve scaled | grep -c '"skip"')
ok sim_rows_skipped "$([ "$skips" -ge 10 ] || echo "only $skips steps were skipped")"
same sim_rows_skipped_step_by_step scaledswindow1scudagraphsfalse scaled
same sim_rows_skipped_as_whole_tables scaledstrainclipnorm10e30 scaled

# several ranks add up the gradient of the whole table
train ranks net.cfg --device cuda -s parallel.mode=ddp -s parallel.nproc=2
close sim_rows_ranks cpu ranks 1e-5
