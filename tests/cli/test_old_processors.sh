#!/bin/bash
# The program itself on x86-64 processors from the first ones on, which qemu emulates: each trains with the losses of this machine, and none
# meets an instruction that it does not have. tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
if ! command -v qemu-x86_64 >/dev/null; then
	skip old_processors 'qemu-x86_64 (package qemu-user) is not installed'
	exit
fi
if [ "$(od -An -tx1 -j18 -N1 "$gtrain")" != ' 3e' ]; then # the machine in the ELF header
	skip old_processors 'the program is not built for x86-64'
	exit
fi
if grep -q __asan_init "$gtrain"; then
	skip old_processors 'AddressSanitizer does not run under qemu'
	exit
fi
cat >"$tmp/images.cfg" <<'CFG'
schema = 1; name = "images"; seed = 5;
data = { name = "synthetic"; batch = 32; classes = 4; samples = 128; samples_test = 64; augment = ( { type = "hflip"; } ); };
model = { input = [3, 8, 8]; layers = ( { name = "c1"; type = "conv2d"; out = 16; kernel = 3; padding = 1; bias = false; },
	{ name = "bn"; type = "batchnorm2d"; }, { type = "gelu"; }, { type = "flatten"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { optimizer = { type = "adamw"; lr = 0.002; }; };
CFG
cp "$src/tests/cli/recurrent.cfg" "$src/tests/cli/sequences.cfg" "$tmp"
losses() { sed -nE 's/.*"event":"(train|eval)".*"step":([0-9]+).*"loss":([^,}]+).*/\1 \2 \3/p' "$1/metrics.jsonl"; }
train() { # DIR NET PRECISION COMMAND...
	local dir=$1 net=$2 precision=$3
	shift 3
	"$@" run "$tmp/$net.cfg" -o "$dir" -q --no-progress -s train.epochs=1 -s log.every_steps=1 -s threads=1 \
		-s data.samples=128 -s data.samples_test=32 -s precision="$precision" >"$tmp/out" 2>&1
}
for net in images recurrent sequences; do
	for precision in fp32 bf16; do
		# Another order of sums: 2^-24 in fp32, 2^-8 in bf16, through the steps of an epoch.
		limit=1e-4
		[ $precision = fp32 ] || limit=3e-2
		train "$tmp/here" $net $precision "$gtrain" || fail "${net}_$precision" "$(tail -n 1 "$tmp/out")"
		for cpu in core2duo Westmere SandyBridge Haswell; do
			[ $precision = fp32 ] || [ $cpu = core2duo ] || [ $cpu = Haswell ] || continue
			train "$tmp/there" $net $precision qemu-x86_64 -cpu $cpu "$gtrain"
			rc=$?
			most=$(paste -d' ' <(losses "$tmp/here") <(losses "$tmp/there") | awk '{ d = ($3 - $6) / $3; if (d < 0) d = -d
				if ($2 != $5) d = 9; if (d > m) m = d } END { if (NR < 4) m = 9; print m + 0 }')
			if [ $rc != 0 ]; then fail "${net}_${precision}_$cpu" "status $rc: $(tail -n 1 "$tmp/out")"
			elif awk "BEGIN { exit !($most <= $limit) }"; then pass "${net}_${precision}_$cpu"
			else fail "${net}_${precision}_$cpu" "losses differ by $most"; fi
			rm -rf "$tmp/there"
		done
		rm -rf "$tmp/here"
	done
done
