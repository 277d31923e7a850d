#!/bin/bash
# Processors with fewer instructions: oneDNN limited to AVX2, AVX and SSE4.1 trains in bf16, says that it computes in fp32, and gives the
# numbers of a processor that has bf16. tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cat >"$tmp/net.cfg" <<'CFG'
schema = 1; name = "net"; seed = 5; precision = "bf16";
data = { name = "synthetic"; batch = 32; classes = 4; samples = 320; samples_test = 64; augment = ( { type = "hflip"; } ); };
model = { input = [3, 8, 8]; layers = ( { name = "c1"; type = "conv2d"; out = 16; kernel = 3; padding = 1; bias = false; },
	{ name = "bn"; type = "batchnorm2d"; }, { type = "gelu"; }, { name = "c2"; type = "conv2d"; out = 32; kernel = 3; groups = 2; },
	{ type = "gelu"; }, { type = "global_avgpool"; }, { type = "flatten"; }, { name = "fc1"; type = "linear"; out = 40; },
	{ type = "relu"; }, { name = "fc2"; type = "linear"; out = 4; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.02; momentum = 0.9; }; };
checkpoint = { dir = "unused"; };
log = { every_steps = 1; };
CFG
losses() { sed -nE 's/.*"event":"(train|eval)".*"step":([0-9]+).*"loss":([^,}]+).*/\1 \2 \3/p' "$tmp/$1/metrics.jsonl"; }
# near NAME A B LIMIT: the losses of two runs differ relatively by at most LIMIT
near() {
	local most
	most=$(paste -d' ' <(losses "$2") <(losses "$3") | awk '{ d = ($3 - $6) / $3; if (d < 0) d = -d; if ($2 != $5) d = 9; if (d > m) m = d }
		END { if (NR < 20) m = 9; print m + 0 }')
	if awk "BEGIN { exit !($most <= $4) }"; then pass "$1"; else fail "$1" "losses differ by $most"; fi
	echo "# isa: $1: losses within $most"
}
in_fp32='bf16, which this processor computes in fp32 (slower than fp32, less memory), on '
# trains NAME ARGS...: trains bf16; the first line of the run, gtrain devices and gtrain check agree on what computes bf16
trains() {
	local name=$1 native in said
	shift
	run run "$tmp/net.cfg" -o "$tmp/$name" --device cpu --no-progress "$@"
	if [ "$rc" != 0 ]; then
		fail "$name" "status $rc: $(tail -n 1 "$tmp/err")"
		return
	fi
	cp "$tmp/err" "$tmp/said"
	"$gtrain" check "$tmp/net.cfg" --device cpu >"$tmp/checked" 2>&1
	native=$("$gtrain" devices --json | sed -n 's/.*"id":"cpu".*"native":"\([^"]*\)".*/\1/p')
	case $native in
	'fp32, bf16') in='; this machine has arithmetic for fp32, bf16' ;;
	*) in=', computed in fp32 (slower than fp32, less memory); this machine has arithmetic for fp32' ;;
	esac
	said=$(grep -cF "$in_fp32" "$tmp/said")
	if ! grep -q "^precision  *bf16$in\$" "$tmp/checked"; then fail "says_$name" "$native: $(grep '^precision' "$tmp/checked")"
	elif [ "$native" = fp32 ] && [ "$said" != 1 ]; then fail "says_$name" "$native: $(head -n 1 "$tmp/said")"
	elif [ "$native" != fp32 ] && [ "$said" != 0 ]; then fail "says_$name" "$native: $(head -n 1 "$tmp/said")"
	else pass "says_$name"; fi
}
trains here
fp32=$("$gtrain" run "$tmp/net.cfg" -o "$tmp/fp32" --device cpu -q --no-progress -s precision=fp32 2>&1) || fail fp32 "$fp32"
for isa in AVX2 AVX SSE41; do
	export ONEDNN_MAX_CPU_ISA=$isa
	trains $isa
	# bf16 rounds activations to 2^-8; another order of the sums moves some of them to the neighbour.
	near "${isa}_as_here" here "$isa" 1e-2
	# The same bits a second time, and after a resume.
	trains ${isa}_again -s train.epochs=1
	run resume "$tmp/${isa}_again" -s train.epochs=2 --device cpu --no-progress
	if cmp -s "$tmp/$isa/latest/model.safetensors" "$tmp/${isa}_again/latest/model.safetensors"; then pass "${isa}_resumed"; else
		fail "${isa}_resumed" "other weights: $(tail -n 1 "$tmp/err")"; fi
	unset ONEDNN_MAX_CPU_ISA
done
near bf16_as_fp32 here fp32 5e-2
# Every bf16 product against loops in double, with the batches that are divided.
if why=$(ONEDNN_MAX_CPU_ISA=AVX2 "$GTRAIN_BUILD/tests/ops/test_cpu_dnn" bf16); then pass products; else
	fail products "$(grep '^not ok' <<<"$why" | head -n 1)"; fi
