#!/bin/bash
# check.sh [--list] [BUILD] [SECTION...]: the CUDA backend on a GPU (make check-gpu), from a build tree or a folder of `make gpu-folder`.
# Without SECTION it runs all sections, those that say most about a new card first, until CHECK_BUDGET seconds are used up; what did not fit
# is named, to be run by its name in a second call. --list prints the sections with their time limits. README.md has more.
# Prints a line a section, everything that failed, and "N passed, N failed, N skipped" at the end; all `ok`, `not ok` and `skip` lines are
# in the log that it names. Ends with 0 if nothing failed. Without a usable GPU: one skip line and 0, or 69 where CHECK_GPU=required.
# Environment: CHECK_BUDGET (seconds, 540), CHECK_TINY=1 (a few cases a section: for the dry run on the host's CUDA runtime,
# BUILD=build/cudasim), CHECK_LOG (the log), CHECK_DEVICE.
# Not yet run on a GPU: written and dry-run on machines that have none. Time limits are estimates that count 2 s for the start of a process.
set -u
here=$(cd "$(dirname "$0")" && pwd)
src=$(cd "$here/../.." && pwd)
if [ "${1:-}" = --part ]; then # one section of this file, under a time limit of its own
	part=$2
else
	part='' list=''
	if [ "${1:-}" = --list ]; then
		list=1
		shift
	fi
	build=
	if [ -d "${1:-}" ]; then
		build=$1
		shift
	fi
	wanted=("$@")
	[ -n "$build" ] || build=$([ -x "$src/bin/gtrain" ] && echo "$src" || echo "$src/build")
	build=$(cd "$build" && pwd) || exit 66
	start=$SECONDS
	export CHECK_BUILD=$build CHECK_TMP CHECK_SIM=0
	CHECK_TMP=$(mktemp -d)
	group=
	trap '[ -z "$group" ] || kill -KILL -- "-$group" 2>/dev/null; rm -rf "$CHECK_TMP"' EXIT
fi
build=$CHECK_BUILD tmp=$CHECK_TMP
export GTRAIN=$build/bin/gtrain GTRAIN_SRC=$src
export XDG_CACHE_HOME=$tmp/cache # choices of engines are made here, by this library on this card
[ -d "$src/data" ] && export GTRAIN_DATA=${GTRAIN_DATA:-$src/data}
export OMP_WAIT_POLICY=passive
export GTRAIN_NAN_MEMORY=1 # activations and workspaces begin as NaN, which shows kernels that read memory before it is written
tiny=${CHECK_TINY:-}
device=${CHECK_DEVICE:-cuda}
pick() { if [ -n "$tiny" ]; then echo "$1"; else echo "$2"; fi; } # pick TINY FULL

# ---- what the sections share ---------------------------------------------------------------------------------------------------------
ok() { # NAME WHY: ok where WHY is empty
	if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1: $2"; fi
}
losses() { sed -nE 's/.*"event":"(train|eval)","step":([0-9]+).*"loss":([^,}]+).*/\1 \2 \3/p' "$1/metrics.jsonl"; }
digest() { cat "$1/latest/model.safetensors" "$1/latest/optimizer.safetensors" 2>/dev/null | sha256sum | cut -d' ' -f1; }
train() { # DIR CONFIG ARGS...: the run's status in DIR.rc, its words in DIR.out
	local dir=$1 cfg=$2
	shift 2
	rm -rf "$dir"
	"$GTRAIN" run "$cfg" --device "$device" --no-progress -q -o "$dir" "$@" >"$dir.out" 2>&1
	echo $? >"$dir.rc"
}
failed() { # DIR...: the first that failed, in words; nothing where none did
	local d
	for d in "$@"; do
		if [ "$(cat "$d.rc" 2>/dev/null)" != 0 ]; then
			echo "status $(cat "$d.rc" 2>/dev/null): $(tail -n 1 "$d.out")"
			return
		fi
	done
}
same() { # NAME A B: status, losses, weights and moments
	local why
	why=$(failed "$2" "$3")
	[ -n "$why" ] || [ "$(losses "$2" | wc -l)" -gt 2 ] || why='no losses'
	[ -n "$why" ] || cmp -s <(losses "$2") <(losses "$3") || why="the losses differ: $(diff <(losses "$2") <(losses "$3") | sed -n 2p)"
	[ -n "$why" ] || [ "$(digest "$2")" = "$(digest "$3")" ] || why='the weights differ'
	ok "$1" "$why"
}

# ---- sections --------------------------------------------------------------------------------------------------------------------------
# The same command twice; then from checkpoints of the first run: losses, weights and moments, bit for bit.
part_resume() {
	local p k s d n
	local cfg=$src/tests/resume/resume.cfg
	local every
	every=$(pick 4 3)
	for p in $(pick bf16 'fp32 tf32 bf16 fp16'); do
		for d in a b; do train "$tmp/$p-$d" "$cfg" -s precision="$p" -s checkpoint.every_steps=1 -s checkpoint.keep=99; done
		same "repeat_$p" "$tmp/$p-a" "$tmp/$p-b"
		n=0
		for s in "$tmp/$p-a"/step-*; do
			k=$((10#${s##*-}))
			if [ ! -d "$s" ] || [ $((k % every)) != 0 ]; then continue; fi
			d=$tmp/$p-from
			rm -rf "$d"
			cp -r "$tmp/$p-a" "$d"
			rm -f "$d/latest" "$d/best"
			for other in "$d"/step-*; do [ $((10#${other##*-})) -le $k ] || rm -r "$other"; done
			"$GTRAIN" resume "$d" --device "$device" --no-progress -q >"$d.out" 2>&1
			echo $? >"$d.rc"
			same "resume_${p}_from_$k" "$tmp/$p-a" "$d"
			n=$((n + 1))
		done
		[ $n -ge "$(pick 2 1)" ] || ok "resume_$p" "only $n checkpoints"
		every=6 # of the other precisions fewer: each costs a start
	done
}

# SIGKILL and SIGTERM in the middle of windows; what resumes ends with the bits of the run that nobody disturbed.
part_signals() {
	local steps try sig rc want n d=$tmp/signal
	cat >"$tmp/signal.cfg" <<'CFG'
schema = 1; name = "signal"; seed = 4; reproducible = "run";
data = { name = "synthetic"; batch = 32; classes = 4; samples = 4000; samples_test = 64; };
model = { input = [3, 8, 8]; layers = ( { name = "c"; type = "conv2d"; out = 8; kernel = 3; padding = 1; }, { type = "relu"; },
	{ type = "flatten"; },
	{ name = "fc1"; type = "linear"; out = 64; }, { type = "relu"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 1; eval_every_epochs = 0; label_smoothing = 0.1; optimizer = { type = "adam"; lr = 1.0e-3; }; };
log = { every_steps = 1; };
CFG
	local cut=()
	[ -z "$tiny" ] || cut=(-s data.batch=4 -s data.samples=64 -s data.samples_test=4)
	for sig in KILL TERM; do
		for steps in $(pick '48 400' '8000 40000 200000'); do # until the run lasts long enough to be met in its middle
			local args=("${cut[@]}" -s train.epochs=100000 -s train.steps="$steps" -s checkpoint.every_epochs=0 \
				-s checkpoint.every_steps=$((steps / 8)) -s checkpoint.keep=20)
			rm -rf "$d"
			"$GTRAIN" run "$tmp/signal.cfg" --device "$device" --no-progress -q -o "$d" "${args[@]}" >"$d.out" 2>&1 &
			for try in $(seq 3000); do [ -e "$d/latest" ] && break; sleep 0.02; done
			kill -$sig $! 2>/dev/null
			wait $! 2>/dev/null
			rc=$?
			n=$(losses "$d" 2>/dev/null | wc -l)
			[ $rc = 0 ] || break
		done
		want=$([ $sig = KILL ] && echo 137 || echo 143)
		[ $rc = "$want" ] || { ok "signal_$sig" "status $rc after $steps steps: $(tail -n 1 "$d.out")"; continue; }
		"$GTRAIN" resume "$d" --device "$device" --no-progress -q >"$d.out" 2>&1
		echo $? >"$d.rc"
		train "$tmp/whole" "$tmp/signal.cfg" "${args[@]}"
		same "signal_$sig" "$tmp/whole" "$d"
		echo "# signals: SIG$sig after $n of $steps steps, looked at $try times"
	done
}

# A loss that precision changes little: 120 steps of a small CNN beside fp32.
part_precision() {
	local p why worst n
	cat >"$tmp/precision.cfg" <<'CFG'
schema = 1; name = "precision"; seed = 6; reproducible = "run";
data = { name = "synthetic"; batch = 64; classes = 10; samples = 3840; samples_test = 64; };
model = { input = [3, 16, 16]; layers = ( { name = "c1"; type = "conv2d"; out = 16; kernel = 3; padding = 1; bias = false; },
	{ name = "b1"; type = "batchnorm2d"; },
	{ type = "relu"; }, { type = "maxpool2d"; kernel = 2; }, { name = "c2"; type = "conv2d"; out = 32; kernel = 3; padding = 1;
	bias = false; },
	{ name = "b2"; type = "batchnorm2d"; }, { type = "relu"; }, { type = "global_avgpool"; }, { type = "flatten"; },
	{ name = "fc"; type = "linear"; out = 10; } ); };
train = { epochs = 2; eval_every_epochs = 0; label_smoothing = 0.2; optimizer = { type = "sgd"; lr = 0.02; momentum = 0.9; }; };
log = { every_steps = 1; };
CFG
	local cut=()
	[ -z "$tiny" ] || cut=(-s train.steps=4 -s data.batch=4 -s data.samples=16 -s data.samples_test=4)
	n=$(pick 4 120)
	for p in fp32 tf32 bf16 fp16; do train "$tmp/prec-$p" "$tmp/precision.cfg" -s precision=$p "${cut[@]}"; done
	device=cpu train "$tmp/prec-cpu" "$tmp/precision.cfg" "${cut[@]}"
	# Loss of the last quarter. fp32 beside the CPU's: rounding of sums in another order, 2^-24, grows over the steps; tf32 and fp16 round
	# to 2^-11, bf16 to 2^-8: five times that.
	for p in cpu:1e-3 tf32:2.5e-3 fp16:2.5e-3 bf16:2e-2; do
		why=$(failed "$tmp/prec-fp32" "$tmp/prec-${p%:*}")
		worst=$(paste -d ' ' <(losses "$tmp/prec-fp32") <(losses "$tmp/prec-${p%:*}") | awk -v n="$n" '$1 == "train" && $4 == "train" &&
			$2 == $5 && $2 > n * 3 / 4 { a += $3; b += $6; k++ }
			END { d = k && a > 0 ? (b - a) / a : 9; print d < 0 ? -d : d }')
		[ -n "$why" ] || awk "BEGIN { exit !($worst <= ${p#*:}) }" || why="the mean loss is off by $worst"
		ok "precision_${p%:*}_beside_fp32" "$why"
		echo "# precision: ${p%:*} beside fp32: mean loss of the last quarter off by $worst"
	done
}

# Recomputation changes memory, not a bit.
part_recompute() {
	local p one args cfg=$src/tests/cli/recompute.cfg
	cp "$cfg" "$tmp/re-none.cfg"
	sed 's/\(block = "[a-z]*";\)/\1 recompute = true;/' "$cfg" >"$tmp/re-blocks.cfg"
	sed 's/{ type = "\(conv2d\|batchnorm2d\|relu\|global_avgpool\|batchnorm1d\|tanh\)";/& recompute = true;/
		s/\(block = "[a-z]*";\)/\1 recompute = true;/' "$cfg" >"$tmp/re-all.cfg"
	for p in $(pick fp32 'fp32 bf16 fp16'); do
		args=(-s 'reproducible="run"' -s precision="$p")
		[ -z "$tiny" ] || args+=(-s data.samples=12 -s data.samples_test=4 -s data.batch=4 -s train.epochs=1)
		train "$tmp/re" "$tmp/re-none.cfg" "${args[@]}"
		for one in $(pick all:cheap 'blocks:cheap all:none all:cheap'); do
			train "$tmp/re2" "$tmp/re-${one%:*}.cfg" "${args[@]}" -s train.recompute="${one#*:}"
			same "recompute_${one/:/_}_$p" "$tmp/re" "$tmp/re2"
		done
	done
}

# FashionMNIST: one epoch of configs/fmnist_mlp.cfg on both devices.
part_fmnist() {
	local d args=(-s train.epochs=1)
	[ -z "$tiny" ] || args=(-s train.epochs=1 -s data.name=synthetic -s data.classes=10 -s data.samples=48 -s data.samples_test=16 \
		-s data.batch=16)
	if ! "$GTRAIN" check "$src/configs/fmnist_mlp.cfg" --device cpu --json "${args[@]}" 2>/dev/null | grep -Eq '"train":[0-9]'; then
		echo 'skip fmnist_mlp_as_on_the_cpu: no FashionMNIST here'
		return
	fi
	for d in cpu "$device"; do
		device=$d train "$tmp/fm-$d" "$src/configs/fmnist_mlp.cfg" "${args[@]}"
		sed -nE 's/.*"event":"eval".*"loss":([^,}]+).*"acc":([^,}]+).*/\1 \2/p' "$tmp/fm-$d/metrics.jsonl" | tail -n 1 >"$tmp/fm-$d.eval"
		echo "# fmnist_mlp, one epoch on $d: loss and accuracy $(cat "$tmp/fm-$d.eval")"
	done
	# Adam divides small gradients by small numbers, so that rounding in another order grows: after 60 steps 0.15 % of the loss, measured
	# on the host's CUDA runtime. A missing mask or a wrong gradient moved it by 20 %.
	ok fmnist_mlp_as_on_the_cpu "$(failed "$tmp/fm-cpu" "$tmp/fm-$device")$(paste -d ' ' "$tmp/fm-cpu.eval" "$tmp/fm-$device.eval" |
		awk '{ d = ($1 - $3) / $1; ok = NF == 4 && d < 0.03 && d > -0.03 } END { if (!ok) print "loss and accuracy are " $0 }')"
}

# What `gtrain check --device cuda` predicts against what the driver says is gone, as the difference of two sizes of one model: the context
# and the code that libraries load cost the same in both (printed). Bound: 3 %, for the allocator's granularity (2 MiB an allocation), and
# 64 MiB for kernels that only one of the two sizes loads.
part_memory() {
	local b args gone predicted why i=0 g=() p=()
	if ! python3 "$here/device_memory.py" true >"$tmp/err" 2>&1; then
		echo "skip memory_predicted: $(tail -n 1 "$tmp/err")"
		return
	fi
	for b in 16 512; do
		args=(-s data.name=synthetic -s data.classes=10 -s data.samples=2048 -s data.samples_test=512 "-sdata.batch=$b" -s precision=bf16)
		predicted=$("$GTRAIN" check "$src/configs/resnet18_cifar.cfg" --device "$device" --json "${args[@]}" 2>"$tmp/err" |
			python3 -c 'import json, sys; print(sum(json.load(sys.stdin)["memory"].values()))' 2>/dev/null)
		[ -n "$predicted" ] || { ok memory_predicted "check: $(tail -n 1 "$tmp/err")"; return; }
		gone=$(python3 "$here/device_memory.py" "$GTRAIN" run "$src/configs/resnet18_cifar.cfg" --device "$device" --no-progress -q -o \
			"$tmp/mem$b" "${args[@]}" \
			-s train.steps=$((b == 16 ? 60 : 40)) -s train.eval_every_epochs=0 2>"$tmp/err")
		case $? in
		0) ;;
		77) echo "skip memory_predicted: $(tail -n 1 "$tmp/err")"; return ;;
		*) ok memory_predicted "$(tail -n 1 "$tmp/err")"; return ;;
		esac
		g[i]=$gone p[i]=$predicted i=$((i + 1))
	done
	why=$(awk -v g0="${g[0]}" -v g1="${g[1]}" -v p0="${p[0]}" -v p1="${p[1]}" 'BEGIN { m = 1048576; d = (g1 - g0) - (p1 - p0);
		a = d < 0 ? -d : d
		printf "# memory: predicted %.0f and %.0f MiB, gone %.0f and %.0f MiB: %.0f MiB of context, the difference is off by %.0f MiB\n",
			p0 / m, p1 / m, g0 / m, g1 / m, (g0 - p0) / m, d / m > "/dev/stderr"
		if (a > 0.03 * (p1 - p0) + 64 * m) printf "off by %.0f MiB\n", d / m }' 2>"$tmp/figure")
	cat "$tmp/figure"
	ok memory_predicted "$why"
}

# compute-sanitizer over the op table and a training of few steps. Its initcheck would find nothing, because alloc() zeroes memory:
# GTRAIN_NAN_MEMORY replaces it.
part_sanitizer() {
	local tool why what limit n=0 sanitizer d
	sanitizer=$(command -v compute-sanitizer)
	for d in /usr/local/cuda/bin /usr/local/cuda/compute-sanitizer /usr/local/cuda-*/bin; do
		[ -n "$sanitizer" ] || [ ! -x "$d/compute-sanitizer" ] || sanitizer=$d/compute-sanitizer
	done
	if [ -z "$sanitizer" ]; then
		echo 'skip sanitizer: no compute-sanitizer on PATH or in /usr/local/cuda/bin'
		return
	fi
	for tool in memcheck racecheck synccheck; do
		for what in table training; do
			case $what in
			table) limit=45 && set -- "$build/tests/ops/test_ops" -b cuda ;;
			training) limit=20 && set -- "$GTRAIN" run "$src/tests/resume/resume.cfg" --device cuda --no-progress -q -o "$tmp/san-$tool" \
				-s precision=bf16 -s train.steps=3 ;;
			esac
			timeout -k 2 $limit "$sanitizer" --tool $tool --target-processes all --error-exitcode 86 --print-limit 20 "$@" >"$tmp/san" 2>&1
			case $? in
			0) why='' n=1 ;;
			86) why="$(grep -m 1 -A 1 '^========= [A-Z].*\(rror\|nvalid\|ninit\|azard\|ace\)' "$tmp/san" |
				tr -s '=\n ' ' ') ($(grep 'SUMMARY' "$tmp/san" | tail -n 1))" ;;
			124 | 137) echo "skip ${tool}_$what: not through after $limit s, $(grep -c '^ok ' "$tmp/san") cases without a finding"
				if grep -q '^========= Invalid\|^========= Uninit\|hazard' "$tmp/san"; then
					ok "${tool}_$what" "$(grep -m 1 '^========= [IUE]' "$tmp/san")"
				fi
				continue ;;
			*) if grep -qi 'device not supported\|unable to initialize\|not supported' "$tmp/san"; then
					echo "skip ${tool}_$what: $(grep -im 1 'not supported\|unable' "$tmp/san")"
					continue
				fi
				why=$(tail -n 1 "$tmp/san") ;;
			esac
			grep -q 'COMPUTE-SANITIZER' "$tmp/san" || why="no word of compute-sanitizer: ${why:-$(tail -n 1 "$tmp/san")}"
			ok "${tool}_$what" "$why"
		done
	done
	[ $n = 1 ] || echo '# sanitizer: no run of it came to a clean end'
}

# One rank in every mode is one rank without: the same bits.
part_ranks() {
	local mode opts
	train "$tmp/alone" "$src/tests/resume/resume.cfg"
	for mode in ddp zero:1 zero:2 zero:3 pipe; do
		opts=(-s "parallel.mode=${mode%:*}" --nproc 1)
		[ "$mode" = "${mode%:*}" ] || opts+=(-s "parallel.stage=${mode#*:}")
		[ "$mode" != pipe ] || opts+=(-s parallel.chunks=1)
		train "$tmp/ranks" "$src/tests/resume/resume.cfg" "${opts[@]}"
		same "one_rank_${mode/:/}" "$tmp/alone" "$tmp/ranks"
	done
}

if [ -n "$part" ]; then
	"part_$part"
	exit 0
fi

# ---- the list of sections ----------------------------------------------------------------------------------------------------------------
# In the order of what they say about a card that nobody has tried. NAME, seconds at most, processes that it starts, what it shows.
sections='offers       40   1  what cuBLASLt has for linear layers: products, types and epilogues
plans        60   1  what cuDNN has for convolutions (of cards that are described, the same library)
convolutions 60   1  convolutions beside the CPU
table       120   1  every operation in fp32, tf32, bf16 and fp16 beside the backend ref in f64
nan          60  12  weights before a relu that stop being finite end the run, nothing is saved
operations   90   1  every operation beside results of PyTorch
updates      60   1  optimizers beside results of PyTorch
calls        90   1  own kernels around their boundaries
layers       90   1  normalisation and pooling around their boundaries
joins        60   1  joined operations beside the separate ones
tables       60   1  rows of tables: gradients and updates around their boundaries
attention    60   1  heads and sequences around the boundaries of blocks and tiles
fused       150   1  attention by cuDNN (cudnn_attention), with sums in a fixed order, beside the CPU
fused_free  150   1  the same with sums in any order
sequences    60   1  recurrent layers, tables of positions and permutations around blocks and tiles
muon         60   1  the iterations of Muon
device       60   1  memory, streams, events, graphs
nccl         60   1  NCCL with one rank: two ranks cannot share a GPU
precision    60   5  the loss of a small CNN in each precision
fmnist       60   2  an epoch of FashionMNIST beside the CPU
resume       90  18  the same bits twice, and from checkpoints
windows     120  26  windows and graphs beside single steps, bit for bit
transforms  150  50  images that the GPU transforms beside those that threads transform, bit for bit
fp16         60  11  the loss scale
signals      90   6  SIGKILL and SIGTERM in the middle of windows
memory       60   5  predicted memory beside what is gone
parity      120  15  curves of PyTorch
recompute    60  12  recomputation changes no bit
ranks        30   6  one rank in every mode
staged      120  40  ranks that share the GPU
sanitizer   200   6  compute-sanitizer over operations and a training'
limit_of() { awk -v n="$1" '$1 == n { print $2 }' <<<"$sections"; }

if [ -n "$list" ]; then
	awk '{ n = $1; t = $2; p = $3; $1 = $2 = $3 = ""; sub(/^ */, "");
		printf "%-13s at most %3d s, %2d process%s  %s\n", n, t, p, p == 1 ? ", " : "es,", $0 }' <<<"$sections"
	exit 0
fi
for name in "${wanted[@]}"; do
	if [ -z "$(limit_of "$name")" ]; then
		echo "check.sh: no build tree and no section is called $name; check.sh --list has them" >&2
		exit 64
	fi
done

# ---- the machine -------------------------------------------------------------------------------------------------------------------------
log=${CHECK_LOG:-${OUT:-$build}/check-gpu.log}
: >"$log" || exit 73
# shellcheck source=tests/gpu/cuda_libs.sh
. "$here/cuda_libs.sh"
row=$("$GTRAIN" devices --json 2>>"$log" | tr '{' '\n' | grep '"backend":"cuda"' | head -n 1)
if ! grep -q '"usable":true' <<<"$row"; then
	why=$(sed -n 's/.*"detail":"\([^"]*\)".*/\1/p' <<<"$row")
	echo "skip check-gpu: no usable GPU: ${why:-no CUDA backend in $build}"
	echo '0 passed, 0 failed, 1 skipped'
	[ "${CHECK_GPU:-}" = required ] && exit 69
	exit 0
fi
name=$(sed -n 's/.*"name":"\([^"]*\)".*/\1/p' <<<"$row")
[ -e "$build/lib/gtrain/libcudasim.so" ] && CHECK_SIM=1
{
	echo "# $name: $(sed -n 's/.*"detail":"\([^"]*\)".*/\1/p' <<<"$row")"
	if command -v nvidia-smi >/dev/null; then
		echo "# driver $(nvidia-smi --query-gpu=driver_version,memory.total,clocks.sm --format=csv,noheader | head -n 1)"
	fi
	sed '/^$/d; s/^/# /' <<<"$cuda_libs"
	echo "# gtrain $(cat "$src/COMMIT" 2>/dev/null || git -C "$src" describe --always --dirty 2>/dev/null), $(date -u +%Y-%m-%dT%H:%MZ)"
} | tee -a "$log"

pass=0 fail=0 skip=0
# section NAME LEAST COMMAND...: a program that prints `ok`, `not ok` and `skip` lines; fewer than LEAST passed and skipped: a failure
section() {
	local name=$1 limit least=$2 left=$((${CHECK_BUDGET:-540} - SECONDS + start)) began=$SECONDS rc p f s short=''
	shift 2
	limit=$(limit_of "$name")
	if [ $left -lt 5 ]; then
		echo "skip $name: the budget of ${CHECK_BUDGET:-540} s is used up; run \`check.sh $name\`" | tee -a "$log"
		skip=$((skip + 1))
		return
	fi
	if [ ! -x "$1" ] && [ "$1" != bash ]; then
		without "$name" "$1 is not built"
		return
	fi
	[ -z "$tiny" ] || limit=$((limit * 6)) # limits are a GPU's; the host's runtime may share a processor with anything
	[ "$limit" -le $left ] || { limit=$left && short=1; }
	timeout -k 5 "$limit" "$@" >"$tmp/log" 2>&1 &
	group=$! # timeout leads a process group of its own, and kills its child only
	wait $group
	rc=$?
	kill -KILL -- -$group 2>/dev/null
	cat "$tmp/log" >>"$log"
	p=$(grep -c '^ok ' "$tmp/log") f=$(grep -c '^not ok ' "$tmp/log") s=$(grep -c '^skip ' "$tmp/log")
	grep -a '^not ok ' "$tmp/log" | head -n 20
	grep -a '^skip ' "$tmp/log" | sed -E 's/^(skip [^:]*: .*)$/\1/' | head -n 6
	grep -a '^# ' "$tmp/log" | cut -c1-400
	if [ -n "$short" ] && { [ $rc = 124 ] || [ $rc = 137 ]; }; then
		echo "skip $name: the budget of ${CHECK_BUDGET:-540} s was used up after $limit s of it; run \`check.sh $name\`" | tee -a "$log"
		s=$((s + 1))
	elif [ $rc = 124 ] || [ $rc = 137 ]; then
		echo "not ok $name: not through after $limit s" | tee -a "$log"
		f=$((f + 1))
	elif [ $rc != 0 ] && [ "$f" = 0 ]; then
		echo "not ok $name: status $rc: $(grep -v '^ok ' "$tmp/log" | tail -n 1)" | tee -a "$log"
		f=$((f + 1))
	elif [ $((p + s)) -lt "$least" ] && [ "$f" = 0 ]; then
		echo "not ok $name: only $p passed and $s were skipped, of $least" | tee -a "$log"
		f=$((f + 1))
	fi
	printf '%-28s %5d passed %3d failed %3d skipped %5d s\n' "$name" "$p" "$f" "$s" $((SECONDS - began)) | tee -a "$log"
	pass=$((pass + p)) fail=$((fail + f)) skip=$((skip + s))
}
without() { # NAME WHY: a section that cannot be here
	echo "skip $1: $2" | tee -a "$log"
	skip=$((skip + 1))
}
own() { section "$1" "$2" bash "$here/check.sh" --part "$1"; }
on_gpu() { # NAME LEAST COMMAND...: a section that a simulated GPU does not need
	if [ "$CHECK_SIM" = 1 ]; then without "$1" 'on the host it is a test of make check'; else section "$@"; fi
}
full() { # NAME LEAST COMMAND...: a section without a short form
	if [ -n "$tiny" ]; then without "$1" 'it has no short form'; else section "$@"; fi
}

# ---- all of them -------------------------------------------------------------------------------------------------------------------------
read -ra word <<<"$(pick linear_ '')"
[ "$CHECK_SIM" = 1 ] || export PAIR_GPU=1 # exp, tanh and erf of two mathematical libraries
export GTRAIN_SIM=$build GTRAIN_BUILD=$build
run_section() {
	case $1 in
	offers) section offers 4 "$build/tests/gpu/tool_offers" ;;
	plans) on_gpu plans 8 "$build/tests/cuda/dnn_plans" ;;
	convolutions) full convolutions 1 "$build/tests/cudasim/tool_conv" ;;
	table) section table "$(pick 8 600)" "$build/tests/gpu/tool_table" -b cuda "${word[@]}" ;;
	operations) section operations "$(pick 8 380)" "$build/tests/ops/test_ops" -b cuda "${word[@]}" ;;
	updates) section updates "$(pick 4 40)" "$build/tests/ops/test_updates" -b cuda ;;
	calls) full calls 12 "$build/tests/cudasim/tool_calls" ;;
	layers) full layers 11 "$build/tests/cudasim/tool_layers" ;;
	joins) full joins 8 "$build/tests/cudasim/tool_joins" ;;
	tables) full tables 9 "$build/tests/cudasim/tool_tables" ;;
	attention) full attention 3 "$build/tests/cudasim/tool_attention" ;;
	fused) TEST_CUDNN_ATTENTION=ordered full fused 3 "$build/tests/cudasim/tool_attention" ;;
	fused_free) TEST_CUDNN_ATTENTION=unordered full fused_free 3 "$build/tests/cudasim/tool_attention" ;;
	sequences) full sequences 5 "$build/tests/cudasim/tool_sequences" ;;
	muon) full muon 4 "$build/tests/cudasim/tool_muon" ;;
	device) section device 5 "$build/tests/cudasim/tool_device" ;;
	nccl) section nccl 5 "$build/tests/cudasim/tool_nccl" ;;
	windows) on_gpu windows 13 bash "$src/tests/cudasim/test_windows.sh" ;;
	transforms) on_gpu transforms 14 bash "$src/tests/cudasim/test_sim_transforms.sh" ;;
	fp16) on_gpu fp16 10 bash "$src/tests/cudasim/test_fp16.sh" ;;
	staged) STAGED_LIMIT=1e-5 on_gpu staged 11 bash "$src/tests/cudasim/test_staged.sh" ;;
	parity) PARITY_DEVICE=cuda full parity 28 bash "$src/tests/parity/test_parity.sh" ;;
	precision) own precision 4 ;;
	recompute) own recompute "$(pick 1 9)" ;;
	resume) own resume 3 ;;
	nan) section nan 12 bash "$src/tests/cudasim/test_sim_nan.sh" ;;
	signals) own signals 2 ;;
	ranks) own ranks 5 ;;
	*) own "$1" 1 ;;
	esac
}
[ ${#wanted[@]} -gt 0 ] || mapfile -t wanted < <(awk '{ print $1 }' <<<"$sections")
for name in "${wanted[@]}"; do
	echo "== $name" >>"$log"
	run_section "$name"
done
echo "# all lines: $log; $((SECONDS - start)) s"
echo "$pass passed, $fail failed, $skip skipped"
[ "$fail" = 0 ] && [ "$pass" -gt 0 ]
