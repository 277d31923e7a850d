#!/bin/bash
# `gtrain check --card`: the prediction of a step for a GPU that is not here, what it refuses, and its arithmetic.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
data=(-s data.name=synthetic -s data.root= -s data.classes=10 -s data.samples=60000 -s data.samples_test=10000)
mlp=$src/configs/tutorial_mlp_sgd.cfg
resnet=$src/configs/resnet18_cifar.cfg

number() { python3 -c "import json; d = json.load(open('$2'))['prediction']; print($1)"; }
equal() { # name, expected, got
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "expected $2, got $3"; fi
}

# ---- every card, every config ------------------------------------------------------------------------------------------
for card in h200 h100 a100 l40s rtx4090 rtx3090; do
	"$gtrain" check "$resnet" --device cuda --card $card --json "${data[@]}" -s precision=bf16 >$card.json 2>log ||
		fail "card_$card" "$(tail -n 1 log)"
done
equal cards_in_order True "$(python3 -c '
import json
ms = [json.load(open(f"{c}.json"))["prediction"]["step_ms"] for c in ("h200", "h100", "a100", "rtx3090")]
print(ms == sorted(ms) and ms[0] > 0)')"
"$gtrain" check "$mlp" --card h200 --json "${data[@]}" >mlp.json 2>log || fail mlp "$(tail -n 1 log)"
# The nodes that the CUDA backend records for these two (tests/cudasim/test_joins.sh counts the same). Dividing momentum, checks and the
# update into kernels of their own would change them.
equal nodes_of_mlp 10 "$(number "d['kernels']" mlp.json)"
"$gtrain" check "$src/configs/lenet.cfg" --card h200 --json "${data[@]}" -s data.batch=8 >lenet.json
equal nodes_of_lenet 33 "$(number "d['kernels']" lenet.json)"

# ---- arithmetic ------------------------------------------------------------------------------------------
# The second layer of the MLP, 32 x 512 x 512 in f32: 8 pieces of 64 outputs, each in 2 pieces of 256 terms, of 132 multiprocessors. Its
# FLOPs at that part of 0.7 x 67 TFLOP/s take 2.95 us, and 1.3 us are between two kernels.
equal time_of_a_product 4.251 \
	"$(number "round(1e3 * next(c['ms'] for c in d['calls'] if c['layer'] == 'linear_relu_stack.2'), 3)" mlp.json)"
# The first batch normalisation, of [128, 64, 32, 32] in bf16, reads x twice and writes y:
# 3 x 16 MiB and tables are more than half of the L2 cache, at 0.9 x 4.8 TB/s, and two kernels have a gap each.
equal time_of_a_pass True \
	"$(number "abs(next(c['ms'] for c in d['calls'] if c['op'] == 'batchnorm') * 1e3 - 2 * 1.3 - 3 * 2**24 / 4.32e6) < 0.01" h200.json)"
equal sums True \
	"$(number "all(abs(d[k] - sum(r[n] for r in d[l])) <= 1e-5 * d[k] for l in ('calls', 'operations')
	for k, n in (('step_ms', 'ms'), ('bytes', 'bytes'), ('flops', 'flops'), ('kernels', 'kernels')))" h200.json)"
equal epoch True \
	"$(number "abs(d['epoch_s'] - 1875 * d['step_ms'] / 1e3) < 1e-4 and \
	abs(d['samples_per_s'] / (32e3 / d['step_ms']) - 1) < 1e-4" mlp.json)"
equal not_measured False "$(number "d['measured']" mlp.json)"
# tf32 uses tensor cores, fp32 does not
"$gtrain" check "$resnet" --card h200 --json "${data[@]}" -s precision=fp32 >fp32.json
"$gtrain" check "$resnet" --card h200 --json "${data[@]}" -s precision=tf32 >tf32.json
ceilings="sorted({c['ceiling'] for c in d['calls'] if c['op'] == 'conv2d'})"
equal fp32_ceiling "['f32 units', 'memory']" "$(number "$ceilings" fp32.json)"
equal tf32_ceiling "['L2', 'memory', 'tensor cores']" "$(number "$ceilings" tf32.json)"

# Images of 3 channels, 128 of 32 x 32: bytes, a label read and written and a position; in 16 bits they are written with 8 channels, which
# the first convolution reads, in two kernels, one of which pads its weights. In f32 they have 3.
pixels=$((128 * 32 * 32)) both=$((128 * 16))
gather="next(c['bytes'] for c in d['calls'] if c['op'] == 'gather')"
equal gather_writes_8_channels $((pixels * (3 + 8 * 2) + both)) "$(number "$gather" h200.json)"
equal gather_writes_3_channels $((pixels * (3 + 3 * 4) + both)) "$(number "$gather" fp32.json)"
conv1="next((c['kernels'], c['bytes']) for c in d['calls'] if c['op'] == 'conv2d')"
weights=$((64 * 27))
equal conv_of_8_channels "(2, $((pixels * (8 + 64) * 2 + weights * 2)))" "$(number "$conv1" h200.json)"
# If another layer reads the images, they are not padded, and the engine of the convolution copies x and weights first.
python3 -c 'import sys; s = sys.stdin.read(); i = s.rindex("\n\tlayers = (") + 12
print(s[:i] + " { name = \"once\"; type = \"scale\"; factor = 1.0; }," + s[i:])' <"$resnet" >scaled.cfg
"$gtrain" check scaled.cfg --device cuda --card h200 --json "${data[@]}" -s precision=bf16 >scaled.json
equal conv_of_3_channels "(3, $((pixels * (3 + 2 * 8 + 64) * 2 + weights * 2)))" "$(number "$conv1" scaled.json)"

# ---- phases ------------------------------------------------------------------------------------------
# After 5 of 10 epochs the first layer has no dw of 784 x 512, and the second one no dx of 512 x 512: 2 FLOPs each for a sample.
"$gtrain" check "$mlp" --device cuda --card h200 --json "${data[@]}" -s 'train.groups=({match="linear_relu_stack.0.*";freeze_after=5.0;})' \
	>phases.json 2>log || fail phases "$(tail -n 1 log)"
phase() { python3 -c "import json; r = json.load(open('phases.json')); p, d = r['phases'][0], r['prediction']; print($1)"; }
equal phase_flops $((2 * (784 * 512 + 512 * 512))) "$(phase "round(r['flops_train'] - p['flops_train'])")"
equal phase_forward True "$(phase "r['flops_forward'] == p['flops_forward'] and len(r['phases']) == 1")"
equal phase_step True "$(phase "p['predicted_step_ms'] < d['step_ms'] and p['steps'] == 9375 and p['when'] == 'in the epochs after 5'")"
equal phase_run True "$(phase "abs(d['run_s'] - 9.375 * (d['step_ms'] + p['predicted_step_ms'])) < 1e-4")"
"$gtrain" check "$mlp" "${data[@]}" -s 'train.groups=({match="linear_relu_stack.0.*";freeze_after=20.0;})' --json >phases.json 2>log
equal phase_not_reached '[]' "$(python3 -c "import json; print(json.load(open('phases.json'))['phases'])")"

# ---- text ------------------------------------------------------------------------------------------
"$gtrain" check "$mlp" --card h200 "${data[@]}" >text 2>log
for words in 'Prediction for a step on NVIDIA H200 SXM; not a measurement' '^step  *[0-9.]* us, ' '^epoch  *[0-9.]* s for 1,875 steps' \
	'kernels reach 0.9 of the memory'; do
	if grep -q "$words" text; then pass "text_$(tr -dc a-zA-Z <<<"$words" | head -c 20)"; else fail text "no line has '$words'"; fi
done
"$gtrain" check "$resnet" --card rtx3090 "${data[@]}" -s data.batch=16384 >big 2>&1
if grep -q 'the run needs .* but the card has 22.4 GiB' big; then pass too_big; else fail too_big "$(tail -n 3 big)"; fi

# ---- refusals ------------------------------------------------------------------------------------------
refuses() { # name, status, words, options
	local name=$1 status=$2 words=$3
	shift 3
	"$gtrain" check "$mlp" "${data[@]}" "$@" >out 2>log
	local got=$?
	if [ $got = "$status" ] && grep -q -- "$words" log; then pass "refuses_$name"
	else fail "refuses_$name" "status $got: $(head -n 2 log)"; fi
}
refuses cpu 64 '--card h200 and --device cpu do not go together' --card h200 --device cpu
refuses ranks 64 '--card and 4 ranks do not go together' --card h200 --mode ddp --world 4
refuses unknown 64 'h200.*rtx4090' --card voodoo2
refuses config_cpu 78 '--card h200 and device = "cpu" do not go together' --card h200 -s device=cpu
