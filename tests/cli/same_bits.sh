# Trainings of a config that must end with the same weights in every mode and after an interruption; sourced.
# shellcheck shell=bash
# shellcheck source=tests/cli/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli.sh"
cd "$tmp" || exit 1

weights() { "$gtrain" export "$1" -o "$1.safetensors" -q && sha256sum <"$1.safetensors" | cut -c1-16; }

# same NAME DIR: the run in DIR has the weights of the run in all
same() {
	if [ "$(weights "$2")" = "$want" ]; then pass "$1"; else fail "$1" "other weights, or none: $(head -n 1 err)"; fi
}

# trains CFG LEAST OPTION...: trains CFG, as all.cfg, in the directory all, with an accuracy above LEAST. The weights are the same if the
# run is resumed, and with OPTIONs that compute activations again.
trains() {
	local cfg=$1 least=$2
	shift 2
	cp "$cfg" all.cfg
	"$gtrain" run all.cfg -q -o all >out 2>err || fail run "$(head -n 1 err)"
	acc=$(sed -n 's/.*test accuracy \([0-9.]*\).*/\1/p' out)
	if awk -v a="${acc:-0}" -v least="$least" 'BEGIN { exit !(a > least) }'; then pass learns; else
		fail learns "accuracy ${acc:-none}: $(cat out)"
	fi
	want=$(weights all)
	"$gtrain" run all.cfg -q -o part -s train.steps=17 >/dev/null 2>err
	"$gtrain" resume part -q -s train.steps=0 >/dev/null 2>err
	same resumed part
	"$gtrain" run all.cfg -q -o again "$@" >/dev/null 2>err
	same recomputed again
}

# trains_in MODE...: the same weights in each "MODE RANKS" or "zero RANKS STAGE", and in bf16 on one rank and on two; evaluates the run
trains_in() {
	local mode m n stage
	for mode in "$@"; do
		read -r m n stage <<<"$mode"
		"$gtrain" run all.cfg -q -o "$m$n$stage" -s "parallel.mode=$m" -s "parallel.nproc=$n" \
			${stage:+-s "parallel.stage=$stage"} >/dev/null 2>err
		same "$m$n${stage:+_stage$stage}" "$m$n$stage"
	done
	gives bf16 0 out 'test accuracy' run all.cfg -q -o bf16 -s precision=bf16 -s train.epochs=2
	gives bf16_ddp 0 out 'test accuracy' run all.cfg -q -o bf16-ddp -s precision=bf16 -s train.epochs=2 -s parallel.mode=ddp \
		-s parallel.nproc=2
	if cmp -s <(weights bf16) <(weights bf16-ddp); then pass bf16_same; else fail bf16_same 'one rank and two have other weights'; fi
	gives evaluates 0 out "accuracy $acc" eval all
}
