#!/bin/bash
# The memory of activations that `gtrain check` reports, against the lower bound: the bytes that are live at the same time. No config in
# configs/ needs more than 1.03 times the bound, on one rank or on several, and the text and the JSON agree.
# tests/run: beside others
# shellcheck disable=SC2015
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
command -v python3 >/dev/null || { skip live_memory 'python3 is not installed'; exit 0; }
cd "$tmp" || exit 1

# Data for the configs whose shapes depend on it: texts of two classes, a vocabulary, a table.
mkdir -p texts/good texts/bad
for i in $(seq 1 20); do
	echo "a good text of number $i, which some people like" >"texts/good/$i.txt"
	echo "the bad text with number $i, which most people do not like" >"texts/bad/$i.txt"
done
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' a good bad text of the number like people >vocab.txt
for i in $(seq 1 90); do
	echo "$((20 + i % 50)), $([ $((i % 3)) = 0 ] && echo Private || echo State-gov), $((70000 + i)), Bachelors, $((i % 16)), Divorced," \
		"Sales, Husband, White, Male, $((i % 7)), 0, 40, Cuba, $([ $((i % 2)) = 0 ] && echo '<=50K' || echo '>50K')"
done >adult.data

# ratios: "ARENA BYTES LIVE" of every rank of the JSON report on standard input whose memory is more than 1.03 times the bound. Each block
# may lose 255 bytes to alignment; in an arena below 64 KiB this can be more than 3 %.
cat >ratios.py <<'PY'
import json, sys
report = json.loads(sys.stdin.readline())
for rank in report["ranks"]:
    for arena, live in rank["live"].items():
        size = rank["memory"][arena]
        assert size >= live > 0, (arena, size, live)
        if size > 1.03 * live and size > 65536:
            print(f"rank {rank['rank']}: {arena}: {size} bytes, {live} live, {size / live:.3f};", end=" ")
assert report["live"].get("activations"), "no activations"
PY
near_bound() { # NAME ARGS…
	local name=$1 wrong
	shift
	"$gtrain" check "$@" --device cpu --json >report.json 2>err || { fail "$name" "status $?: $(tail -n 1 err)"; return; }
	wrong=$(python3 ratios.py <report.json 2>&1) && [ -z "$wrong" ] && pass "$name" || fail "$name" "$wrong"
}
for cfg in "$src"/configs/*.cfg; do
	name=$(basename "$cfg" .cfg) more=()
	case $name in
	adult_tabular) more=(-s "data.train=[\"$tmp/adult.data\"]") ;;
	imdb_*) more=(-s data.name=texts -s "data.root=$tmp/texts" -s data.min_freq=1) ;;
	finetune_bert) more=(-s "data.root=$tmp/texts" -s "data.vocab=$tmp/vocab.txt") ;;
	esac
	near_bound "$name" "$cfg" "${more[@]}"
done
near_bound ddp "$src/configs/resnet20_cifar.cfg" --mode ddp --world 4
near_bound dp "$src/configs/resnet20_cifar.cfg" --mode dp --world 3
near_bound zero "$src/configs/resnet20_cifar.cfg" --mode zero --world 4 -s parallel.stage=3
near_bound factored "$src/configs/tutorial_mlp_sgd.cfg" --mode ddp --world 4
near_bound pipe "$src/configs/resnet20_cifar.cfg" --mode pipe --world 4 -s train.accumulate=8
near_bound pipe_zero_bubble "$src/configs/resnet20_cifar.cfg" --mode pipe --world 4 -s train.accumulate=8 -s parallel.schedule=zero-bubble
near_bound bf16 "$src/configs/resnet18_cifar.cfg" -s precision=bf16
near_bound recompute "$src/configs/resnet18_cifar.cfg" -s train.recompute=cheap

# ResNet-18 with 128 images keeps 420 MiB of activations: the outputs of its convolutions and of its residual blocks. The outputs of the
# normalisations inside the blocks and after the first convolution, 152 MiB, are computed again by the backward pass.
now=$("$gtrain" check "$src/configs/resnet18_cifar.cfg" --device null --json 2>err | grep -o '"activations":[0-9]*' | head -n 1)
[ "${now#*:}" -le $((430 << 20)) ] && pass resnet18 || fail resnet18 "$now bytes, expected at most 430 MiB"

run check "$src/configs/resnet20_cifar.cfg" --device cpu
"$gtrain" check "$src/configs/resnet20_cifar.cfg" --device cpu --json 2>err | python3 -c '
import json, sys
r = json.loads(sys.stdin.readline())
memory, live = r["memory"]["activations"], r["live"]["activations"]
print("activations: %.3f times the lower bound of %d MiB" % (memory / live, round(live / 2**20)))' >expected
grep -qFx "$(cat expected)" out && pass text || fail text "expected $(cat expected): $(grep bound out)"
