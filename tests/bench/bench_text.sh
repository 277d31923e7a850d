#!/bin/bash
# bench_text.sh DIR [BUILD]: gtrain and PyTorch on the reviews of DIR (folders pos/ and neg/), with the models of configs/imdb_*.cfg and
# of encoder.cfg, interleaved (A B A B …); prints medians. STEPS steps each; the bag: whole processes of 5 epochs.
# Environment: TORCH_PYTHON (python3): a Python with torch. THREADS (2), ROUNDS (3), STEPS (60), ROWS ("lstm transformer encoder bag").
set -u
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
texts=$(cd "${1:?usage: bench_text.sh DIR [BUILD]}" && pwd) gtrain=$(cd "${2:-build}" && pwd)/bin/gtrain
python=${TORCH_PYTHON:-python3} threads=${THREADS:-2} rounds=${ROUNDS:-3} n=${STEPS:-60}
export OMP_NUM_THREADS=$threads MKL_NUM_THREADS=$threads
unset OPENBLAS_CORETYPE # it halves a peer's speed where it names another processor
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

column() { awk -v c="$1" '{ print $c }' "$2" | sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'; }
try() { # try FILE COMMAND…: one measurement more in FILE (first span count rss wall), or its error on stderr
	local file=$1
	shift
	python3 "$here/measure.py" "$@" >>"$file" 2>"$tmp/err" || tail -n 3 "$tmp/err" >&2
}
ours() { # ours FILE CONFIG --set VALUES…
	local file=$1 cfg=$2
	shift 2
	try "$file" "$gtrain" run "$cfg" --json --no-progress --device cpu -o "$tmp/run" -s data.root="$texts" \
		-s threads="$threads" "$@"
	rm -rf "$tmp/run"
}
theirs() { # theirs FILE MODEL OPTIONS…
	local file=$1
	shift
	try "$file" "$python" "$here/torch_text.py" "$1" "$texts" --threads "$threads" "${@:2}"
}
row() { # row NAME FILE_A FILE_B COLUMN UNIT
	if [ -s "$2" ] && [ -s "$3" ]; then
		awk -v n="$1" -v a="$(column "$4" "$2")" -v b="$(column "$4" "$3")" -v u="$5" \
			'BEGIN { printf "| %s | %.4g %s | %.4g %s | %.2f |\n", n, a, u, b, u, b / a }'
	fi
}

steps=(-s train.steps="$n" -s log.every_steps=1 -s train.eval_every_epochs=0 -s checkpoint.every_epochs=0 -s checkpoint.best.metric=)
for _ in $(seq "$rounds"); do
	for model in ${ROWS:-lstm transformer encoder bag}; do
		if [ "$model" = bag ]; then
			ours "$tmp/bag" "$root/configs/imdb_bag.cfg" -s train.epochs=5
			theirs "$tmp/bag.t" bag
			continue
		fi
		cfg=$root/configs/imdb_$model.cfg
		[ "$model" = encoder ] && cfg=$here/encoder.cfg
		for precision in fp32 bf16; do
			ours "$tmp/$model.$precision" "$cfg" "${steps[@]}" -s precision="$precision"
			theirs "$tmp/$model.$precision.t" "$model" --precision "$precision" --steps "$n"
		done
		if [ "$model" = lstm ]; then
			theirs "$tmp/lstm.packed.t" lstm --packed --steps "$n"
		fi
	done
done
echo "| work | gtrain | PyTorch | times |"
echo "|---|---|---|---|"
for precision in fp32 bf16; do
	row "imdb_lstm, a step, $precision; PyTorch padded" "$tmp/lstm.$precision" "$tmp/lstm.$precision.t" 2 s
	row "imdb_transformer, a step, $precision" "$tmp/transformer.$precision" "$tmp/transformer.$precision.t" 2 s
	row "two blocks of 128 features, 4 heads, 512 hidden, a step, $precision" "$tmp/encoder.$precision" "$tmp/encoder.$precision.t" 2 s
done
row "imdb_lstm, a step, fp32; PyTorch with pack_padded_sequence" "$tmp/lstm.fp32" "$tmp/lstm.packed.t" 2 s
row "imdb_bag, 5 epochs, the whole process" "$tmp/bag" "$tmp/bag.t" 5 s
