#!/bin/bash
# gtrain eval and gtrain predict fold batch normalisations into other layers. With reproducible = "world" they do not, so that both can be
# compared: the outputs differ by rounding only. Models: configs with each kind of convolution and activation, on a few synthetic images.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1

# The largest difference of two prediction files in the columns of probabilities and losses, relative to 1 + the value. Measured: 2e-7 to
# 1.5e-6, from the other order of sums and the rounding of the folded weights; a wrong fold differs in the first digits.
near() {
	awk -F, 'FNR == 1 { next } NR == FNR { for (i = 4; i <= NF; i++) a[FNR, i] = $i; rows++; next }
		{ seen++; for (i = 4; i <= NF; i++) { d = a[FNR, i] - $i; d = d < 0 ? -d : d; m = $i < 0 ? -$i : $i; d /= 1 + m
			if (!(d <= worst)) worst = d } }
		END { print worst + 0; exit !(rows > 0 && rows == seen && worst < 2e-5) }' "$1" "$2"
}
small=(-s data.samples=8 -s data.samples_test=5 -s data.batch=4 -s data.eval_batch=4 -s train.steps=1
	-s train.schedule.warmup=0 -s threads=2)
for name in resnet20_cifar mobilenet_v2 mobilenet_v3 efficientnet_b0 regnet_y_400mf densenet121 googlenet; do
	data=(-s data.name=synthetic -s data.root= -s data.classes=10)
	case $name in *cifar) ;; *) data=() ;; esac
	if ! "$gtrain" run "$GTRAIN_SRC/configs/$name.cfg" -o "$name" "${data[@]}" "${small[@]}" -q --no-progress >out 2>err; then
		fail "$name" "$(head -n 1 err)"
		continue
	fi
	"$gtrain" eval "$name" -q --predictions folded.csv >out 2>err || { fail "$name" "$(head -n 1 err)"; continue; }
	world=(-s reproducible=world -s parallel.shards=4)
	"$gtrain" eval "$name" -q --predictions plain.csv "${world[@]}" >out 2>err || { fail "$name" "$(head -n 1 err)"; continue; }
	if worst=$(near plain.csv folded.csv); then pass "$name"; else fail "$name" "the outputs differ by $worst"; fi
	echo "# $name: $worst"
	rm -rf "$name"
done
