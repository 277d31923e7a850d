#!/bin/bash
# bench.sh [BUILD]: gtrain and PyTorch on the same work, interleaved (A B A B …), medians; prints one table and appends it to RESULTS.md.
# Environment: TORCH_PYTHON (python3): a Python with torch and numpy; without one only gtrain is measured. THREADS (2), ROUNDS (3).
# BENCH_OUT: where the table is appended (tests/bench/RESULTS.md; "-": nowhere).
# Run it on a machine that does nothing else: the table has the load at the start.
set -u
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
gtrain=$(cd "${1:-build}" && pwd)/bin/gtrain
python=${TORCH_PYTHON:-python3} threads=${THREADS:-2} rounds=${ROUNDS:-3} out=${BENCH_OUT:-$here/RESULTS.md}
export OMP_NUM_THREADS=$threads MKL_NUM_THREADS=$threads
unset OPENBLAS_CORETYPE # it halves a peer's speed where it names another processor
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
load=$(cut -d' ' -f1 /proc/loadavg)
torch=$("$python" -c 'import torch; print(torch.__version__)' 2>/dev/null) || torch=

median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'; }
column() { awk -v c="$1" '{ print $c }' "$2" | median; }
# try FILE COMMAND…: one measurement more in FILE (first span count rss wall), or its error on stderr
try() {
	local file=$1
	shift
	python3 "$here/measure.py" "$@" >>"$file" 2>"$tmp/err" || tail -n 3 "$tmp/err" >&2
}
ours() { # ours FILE CONFIG --set VALUES…
	local file=$1 cfg=$2
	shift 2
	try "$file" "$gtrain" run "$root/configs/$cfg.cfg" --json --no-progress --device cpu -o "$tmp/run" -s train.eval_every_epochs=0 \
		-s checkpoint.every_epochs=0 -s checkpoint.best.metric= -s threads="$threads" "$@"
	rm -rf "$tmp/run"
}
ranks() { # ranks FILE MODE: the MLP on $threads ranks of one thread
	try "$1" "$gtrain" run "$root/configs/tutorial_mlp_sgd.cfg" --json --no-progress --device cpu -o "$tmp/run" \
		-s train.eval_every_epochs=0 \
		-s checkpoint.every_epochs=0 -s checkpoint.best.metric= -s train.epochs=3 -s log.every_steps=1875 -s threads=1 \
		-s parallel.mode="$2" --nproc "$threads"
	rm -rf "$tmp/run"
}
starts() { # starts N: one step of the MLP on N ranks of one thread
	try "$tmp/start$1" "$gtrain" run "$root/configs/tutorial_mlp_sgd.cfg" --json --no-progress --device cpu -o "$tmp/run" \
		-s train.eval_every_epochs=0 \
		-s checkpoint.every_epochs=0 -s checkpoint.best.metric= -s train.steps=1 -s log.every_steps=1 -s threads=1 -s parallel.mode=ddp \
		--nproc "$1"
	rm -rf "$tmp/run"
}
row() { # row NAME SPAN_UNIT IMAGES_A_SPAN FILE_A [FILE_B]
	local a b='' ra rb=''
	[ -s "$4" ] || return 0
	a=$(column 2 "$4") ra=$(column 4 "$4")
	if [ -s "${5:-/dev/null}" ]; then b=$(column 2 "$5") rb=$(column 4 "$5"); fi
	awk -v n="$1" -v u="$2" -v i="$3" -v a="$a" -v b="$b" -v ra="$ra" -v rb="$rb" 'BEGIN {
		printf "| %s | %s | %.4g | %.0f | %s | %s | %s | %.0f | %s |\n", n, u, a, i / a, b == "" ? "" : sprintf("%.4g", b),
			b == "" ? "" : sprintf("%.0f", i / b), b == "" ? "" : sprintf("%.2f", b / a), ra, rb }'
}

cc -O2 -march=native -ffp-contract=fast -pthread "$here/peak_flops.c" -o "$tmp/peak" && peak=$("$tmp/peak" "$threads")
again=(-s train.recompute=cheap)
for i in 3 4 5 6; do again+=(-s "model.layers[$i].recompute=true"); done # the four groups of blocks
resnet=(-s 'data.name=synthetic' -s data.classes=10 -s data.samples=1280 -s data.samples_test=128 -s train.steps=6 -s log.every_steps=1)
for _ in $(seq "$rounds"); do
	ours "$tmp/mlp" tutorial_mlp_sgd -s train.epochs=3 -s log.every_steps=1875
	[ -n "$torch" ] && try "$tmp/mlp.t" "$python" "$here/torch_mlp.py" tuned --epochs 3 --threads "$threads"
	threads=1 ours "$tmp/one" tutorial_mlp_sgd -s train.epochs=3 -s log.every_steps=1875
	for mode in ddp zero dp; do ranks "$tmp/$mode" $mode; done
	[ -n "$torch" ] && OMP_NUM_THREADS=1 try "$tmp/ddp.t" "$python" "$here/torch_ddp.py" tuned --ranks "$threads" --epochs 3
	ours "$tmp/first" tutorial_mlp_sgd -s train.steps=1 -s log.every_steps=1
	[ -n "$torch" ] && try "$tmp/first.t" "$python" "$here/torch_mlp.py" tuned --steps 1 --threads "$threads"
	for n in 1 2 4; do starts $n; done
	ours "$tmp/cnn" fmnist_cnn -s train.steps=60 -s log.every_steps=1
	[ -n "$torch" ] && try "$tmp/cnn.t" "$python" "$here/torch_conv.py" cnn --steps 60 --threads "$threads"
	ours "$tmp/rn" resnet18_cifar "${resnet[@]}"
	[ -n "$torch" ] && try "$tmp/rn.t" "$python" "$here/torch_conv.py" resnet18 --threads "$threads"
	ours "$tmp/rnb" resnet18_cifar "${resnet[@]}" -s precision=bf16
	ours "$tmp/rnr" resnet18_cifar "${resnet[@]}" "${again[@]}"
	ours "$tmp/rnbr" resnet18_cifar "${resnet[@]}" -s precision=bf16 "${again[@]}"
	[ -n "$torch" ] && try "$tmp/rnb.t" "$python" "$here/torch_conv.py" resnet18 --precision bf16 --threads "$threads"
done
[ -n "$torch" ] && try "$tmp/tut.t" "$python" "$here/torch_mlp.py" tutorial --epochs 3 --threads "$threads"
[ -n "$torch" ] && OMP_NUM_THREADS=1 try "$tmp/ddptut.t" "$python" "$here/torch_ddp.py" tutorial --ranks "$threads" --epochs 3
check=$(for _ in $(seq 11); do
	s=$(date +%s%N)
	"$gtrain" check "$root/configs/tutorial_mlp_sgd.cfg" --device cpu >/dev/null && echo $((($(date +%s%N) - s) / 1000))
done | median)
{
	echo
	echo "## $(date -u +%Y-%m-%d) $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $threads threads"
	echo
	echo "gtrain $(git -C "$root" rev-parse --short HEAD 2>/dev/null), PyTorch ${torch:-none}, load at the start $load, $rounds" \
		"interleaved rounds, medians;"
	echo "measured f32 peak ${peak:-?} GFLOP/s. A span is an epoch (MLP) or a step; memory is the peak of the whole process."
	echo
	echo "| work | span | gtrain, s | images/s | PyTorch, s | images/s | times | gtrain MiB | PyTorch MiB |"
	echo "|---|---|---|---|---|---|---|---|---|"
	row "MLP 784-512-512-10, batch 32, f32; PyTorch with tensors in memory" epoch 60000 "$tmp/mlp" "$tmp/mlp.t"
	row "the same; PyTorch as its tutorial writes it (DataLoader)" epoch 60000 "$tmp/mlp" "$tmp/tut.t"
	row "the same on one thread" epoch 60000 "$tmp/one"
	row "the same on $threads ranks of one thread, ddp; PyTorch DDP on gloo, tensors in memory" epoch 60000 "$tmp/ddp" "$tmp/ddp.t"
	row "the same; PyTorch DDP as its tutorial writes it (DataLoader, DistributedSampler)" epoch 60000 "$tmp/ddp" "$tmp/ddptut.t"
	row "the same, zero stage 1" epoch 60000 "$tmp/zero"
	row "the same, dp" epoch 60000 "$tmp/dp"
	row "small CNN with BN (configs/fmnist_cnn.cfg), batch 128, f32" step 128 "$tmp/cnn" "$tmp/cnn.t"
	row "ResNet-18, batch 128, f32; PyTorch channels_last" step 128 "$tmp/rn" "$tmp/rn.t"
	row "ResNet-18, batch 128, bf16; PyTorch autocast" step 128 "$tmp/rnb" "$tmp/rnb.t"
	row "ResNet-18, f32, recompute in every block; PyTorch without" step 128 "$tmp/rnr" "$tmp/rn.t"
	row "ResNet-18, bf16, recompute in every block; PyTorch without" step 128 "$tmp/rnbr" "$tmp/rnb.t"
	echo
	# 669,706 parameters: 2 x 668,672 multiply-adds forward and to the weights, 2 x 267,264 to the inputs of the last two layers.
	if [ -s "$tmp/mlp" ]; then
		awk -v a="$(column 2 "$tmp/mlp")" -v p="${peak:-0}" -v f="$(column 1 "$tmp/first")" -v t="$([ -s "$tmp/first.t" ] &&
			column 1 "$tmp/first.t")" \
			-v c="$check" -v s1="$(column 1 "$tmp/start1")" -v s2="$(column 1 "$tmp/start2")" -v s4="$(column 1 "$tmp/start4")" 'BEGIN {
			rate = 60000 * (4 * 668672 + 2 * 267264) / a * 1e-9
			printf "MLP: %.0f GFLOP/s", rate
			if (p > 0) printf ", %.0f %% of the peak", 100 * rate / p
			printf ". exec to the first trained step: gtrain %.3f s", f
			if (t != "") printf ", PyTorch %.3f s", t
			printf "; on 1, 2 and 4 ranks of ddp %.3f, %.3f and %.3f s", s1, s2, s4
			printf ". gtrain check: %.1f ms.\n", c / 1000 }'
	fi
} | tee "$tmp/table"
[ "$out" = - ] || cat "$tmp/table" >>"$out"
