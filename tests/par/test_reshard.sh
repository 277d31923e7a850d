#!/bin/bash
# A checkpoint does not know which mode wrote it: every (mode, ranks) is resumed as every other, and the run goes on as the one that nobody
# interrupted. RESHARD=full: all of them; else a ring, in which every (mode, ranks) is once a source and once a target.
#
# A run of 14 steps over 10 steps an epoch, the last batch of which has 3 samples (some of 4 or 8 ranks get none), with AdamW: two moments
# and a step count. Its checkpoint after step 7 is resumed. Losses within 1e-5 and weights within 1e-4 of one uninterrupted rank's, for the
# reasons that test_modes.sh has. The files' headers (names, types, shapes, offsets) are the same bytes whoever writes.
# tests/run: beside others
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
cfg=$tmp/mlp.adamw.cfg
sed 's/ momentum = 0.9;//; s/type = "sgd"; lr = 0.05/type = "adamw"; lr = 0.002/; s/steps = 50/steps = 14/; s/samples = 480/samples = 219/
	s/every_epochs = 0; };/every_epochs = 0; every_steps = 7; };/' "$nets/mlp.cfg" >"$cfg"
sources='single:1 ddp:1 ddp:2 ddp:3 ddp:4 ddp:8 zero1:2 zero1:3 zero1:4 zero1:8 zero2:2 zero2:3 zero2:4 zero2:8
	zero3:2 zero3:3 zero3:4 zero3:8 dp:2 dp:3 dp:4 dp:8 gpipe:2 1f1b:3 1f1b:4 interleaved:2 zero-bubble:4 1f1b*2:4
	1f1b*2+zero1:4 zero-bubble*4+zero1:8 zero-bubble:8'
chunks_of_pipe=2

# headers DIR: of both files of a checkpoint
headers() {
	local f n
	for f in model optimizer; do
		n=$(od -An -tu8 -N8 "$1/$f.safetensors")
		head -c $((8 + n)) "$1/$f.safetensors" | sha256sum
	done
}

expect=''
if ! train single:1 "$cfg"; then
	echo "not ok reshard: $why"
	exit 1
fi
cp -r "$tmp/single:1" "$tmp/want"
want=$(headers "$tmp/want/step-00000007")
made='' bad=0 wrote=0
for s in $sources; do
	expect=$(refusal "${s%:*}" mlp)
	mode_args "${s%:*}" "${s#*:}"
	train "$s" "$cfg" ${mode[0]+"${mode[@]}"}
	case $? in
	1)
		refused reshard "${s%:*}"
		continue
		;;
	2)
		echo "not ok reshard write $s: $why"
		bad=1
		continue
		;;
	esac
	wrote=$((wrote + 1))
	if [ "$(headers "$tmp/$s/step-00000007")" != "$want" ]; then
		echo "not ok reshard write $s: the headers of its files are others"
		bad=1
	fi
	made+=" $s"
done
tell_refused
[ $bad != 0 ] || echo "ok reshard write"
pairs=0
: >"$tmp/figures"
# resume FROM TO
resume() {
	local got='' d=$tmp/again
	rm -rf "$d"
	cp -r "$tmp/$1" "$d"
	mode_args "${2%:*}" "${2#*:}"
	[ "$2" != single:1 ] || mode=(-s parallel.mode=single)
	pairs=$((pairs + 1))
	if ! "$gtrain" resume -q --no-progress --from 7 "${mode[@]}" "$d" >/dev/null 2>"$tmp/err" </dev/null; then
		echo "not ok reshard $1 to $2: $(tail -n 1 "$tmp/err")"
		return
	elif got=$("$same" -l 1e-5 -w 1e-4 -m 1e-3 "$tmp/want" "$d"); then
		echo "ok reshard $1 to $2"
	else
		echo "not ok reshard $1 to $2: $got"
	fi
	echo "$got" >>"$tmp/figures"
}
read -ra all <<<"$made"
n=${#all[@]} far=7 # the ring goes in strides, so that neighbours are of different modes
while [ $((n % far)) = 0 ]; do far=$((far + 2)); done
for ((i = 0; i < n; i++)); do
	if [ "${RESHARD:-}" = full ]; then
		for t in "${all[@]}"; do resume "${all[i]}" "$t"; done
	else
		resume "${all[i]}" "${all[(i + far) % n]}"
	fi
done
awk -v n="$wrote" -v p="$pairs" '{ split($1, k, /[=@]/); split($3, w, /[=:]/); if (k[2] + 0 > l + 0) l = k[2];
	if (w[2] + 0 > m + 0) m = w[2] }
	END { printf "# reshard: %d (mode, ranks), %d resumed as another, worst relative difference of a loss %s, of weights %s\n",
		n, p, l, m }' "$tmp/figures"

# Where a run promises its bits, it says that another number of ranks has others; and nothing where the number is the same.
exact=(-s reproducible=run -s parallel.mode=ddp)
train exact "$cfg" "${exact[@]}" --nproc 2
for ranks in 1 2; do
	rm -rf "$tmp/again"
	cp -r "$tmp/exact" "$tmp/again"
	"$gtrain" resume --no-progress --from 7 --nproc $ranks "$tmp/again" >"$tmp/out" 2>"$tmp/err" </dev/null
	rc=$? told=$(grep -c 'because this run has 1 rank, but 2 wrote the checkpoint' "$tmp/err")
	if [ "$rc $told" = "0 $((2 - ranks))" ]; then
		echo "ok reshard_tells_of_other_ranks_$ranks"
	else
		echo "not ok reshard_tells_of_other_ranks_$ranks: status $rc, $(tail -n 2 "$tmp/err")"
	fi
done
