#!/bin/bash
# Sequences of different lengths on the host's CUDA runtime: they are gathered and padded on the device, and each length has its own
# program. The losses and the evaluations are the CPU's, with windows of any length, micro-batches, ranks, and after an interruption.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin sim_text
cd "$tmp" || exit 1
cat >net.cfg <<'CFG'
schema = 1;
name = "text";
seed = 3;
autotune = false;
reproducible = "run";
data = { name = "synthetic"; samples = 250; samples_test = 90; classes = 4; batch = 16; valid = 0.2; };
model = {
	inputs = ( { name = "tokens"; shape = [40]; vocabulary = 9; }, { name = "lengths"; } );
	layers = (
		{ type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 8; padding_idx = 0; },
		{ name = "fc"; type = "linear"; out = 4; }
	);
};
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.02; }; };
checkpoint = { every_epochs = 0; };
log = { every_steps = 1; };
CFG

agrees sim_text_windows --
agrees sim_text_step_by_step -- -s window=1 -s cuda_graphs=false
agrees sim_text_lengths -s 'data.lengths=[8, 24, 40]' -s data.buckets=4 --
agrees sim_text_in_order -s data.shuffle=false -s data.lengths=40 --
agrees sim_text_micro -s train.accumulate=2 --
agrees sim_text_ranks -s parallel.mode=ddp -s parallel.nproc=2 --
agrees sim_text_pipe -s parallel.mode=pipe -s parallel.nproc=2 -s parallel.chunks=2 --
"$sim/bin/gtrain" run net.cfg -q -o halves --device cuda -s train.steps=7 >/dev/null 2>err || echo "not ok sim_text_half: $(head -n 1 err)"
"$sim/bin/gtrain" resume halves -q --device cuda -s train.steps=0 >/dev/null 2>err || echo "not ok sim_text_resume: $(head -n 1 err)"
for run in sim_text_windows halves; do
	"$sim/bin/gtrain" export "$run" -o "$run.safetensors" -q 2>/dev/null
done
if cmp -s sim_text_windows.safetensors halves.safetensors; then
	echo 'ok sim_text_resumed'
else
	echo 'not ok sim_text_resumed: other weights than in one go'
fi
