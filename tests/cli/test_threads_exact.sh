#!/bin/bash
# What reproducible = "run" promises about threads (gtrain.cfg(5)): the bits of as many threads again; without convolutions, of any number.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
config() { # LAYERS
	cat <<-END
		schema = 1;
		name = "threads";
		reproducible = "run";
		data = { name = "synthetic"; batch = 30; classes = 10; samples = 90; samples_test = 30; };
		model = { input = [3, 12, 12]; layers = ( $1 { type = "flatten"; }, { type = "linear"; out = 200; }, { type = "relu"; },
			{ type = "linear"; out = 150; }, { type = "layernorm"; }, { type = "gelu"; }, { type = "linear"; out = 10; } ); };
		train = { epochs = 2; optimizer = { type = "adamw"; lr = 0.001; }; };
		checkpoint = { dir = "unused"; };
	END
}
config '' >linear.cfg
config '{ type = "conv2d"; out = 24; kernel = 3; padding = 1; }, { type = "relu"; }, { type = "conv2d"; out = 16; kernel = 3; },' >conv.cfg
# weights NET THREADS: the digest of the last checkpoint
weights() {
	rm -rf run
	"$gtrain" run "$1.cfg" -s threads="$2" -o run -q --no-progress >out 2>&1 || cat out
	sha256sum <run/latest/model.safetensors | cut -c 1-64
}
one=$(weights linear 1)
for n in 2 3 5; do
	got=$(weights linear $n)
	if [ "$got" = "$one" ]; then pass linear_$n; else fail linear_$n "$got, not the $one of one thread"; fi
done
for n in 1 2; do
	one=$(weights conv $n) got=$(weights conv $n)
	if [ "$got" = "$one" ]; then pass conv_$n; else fail conv_$n "$got, then $one"; fi
done
