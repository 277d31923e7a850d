#!/bin/bash
# A step on the host's CUDA runtime and one on the CPU, FROM THE SAME weights and moments, k = 0, 1, …: the CPU's checkpoint of step k is
# loaded by both. The curve of a recipe with high rates is no measure: airbench's net on CIFAR-10 with rates of 1 to 10, begun on the CPU
# with weights that differ by 1e-7 of themselves, has left its own curve by 2e-7 to 2e-4 after 14 steps (six draws; in jumps, as maxima
# change their places); the simulator's by 1e-5, with other first weights by 6e-3. From the same weights, gradients are 2e-6 apart at every
# step. RESYNC=full: 16 bits from every step too; RESYNC_ONLY: a word in the names of the nets.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh disable=SC2153
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin resync
step=$GTRAIN_BUILD/tests/cudasim/tool_step
last=12
common=(-q --no-progress -s 'data.name="synthetic"' -s data.samples=640 -s data.samples_test=4 -s data.eval_batch=4 -s data.classes=10 \
	-s autotune=false
	-s train.epochs=0 -s train.eval_every_epochs=0 -s checkpoint.every_epochs=0 -s checkpoint.every_steps=1 -s checkpoint.keep=99 \
		-s log.every_steps=1)
at() { printf '%s/step-%08d' "$1" "$2"; }

# one NET K DEVICE PRECISION: from step K of the net's run on the CPU one step on; what came of it in $tmp/one. Sets why.
one() {
	local net=$1 k=$2 d=$tmp/one
	why=''
	rm -rf "$d"
	if [ "$k" = 0 ]; then
		"$sim/bin/gtrain" run "$cfg" -o "$d" "${common[@]}" "${sets[@]}" -s train.steps=1 -s "precision=$4" --device "$3" "${scale[@]}" \
			>"$tmp/out" 2>&1
	else
		mkdir "$d"
		cp -r "$(at "$tmp/$net" "$k")" "$d"
		"$sim/bin/gtrain" resume "$d" -q --no-progress -s train.steps=$((k + 1)) -s "precision=$4" --device "$3" "${scale[@]}" \
			>"$tmp/out" 2>&1
	fi || why="step $k: $(tail -n 1 "$tmp/out")"
	[ -d "$(at "$d" $((k + 1)))" ] || why=${why:-"step $k: no checkpoint of the step after it"}
}

# far K: prints tool_step's line of what one() left
far() {
	local from=-
	[ "$1" = 0 ] || from=$(at "$tmp/$net" "$1")
	"$step" "$from" "$(at "$tmp/$net" $(($1 + 1)))" "$(at "$tmp/one" $(($1 + 1)))"
}
number() { sed -nE "s/.*$1=([^:]+):.*/\1/p" <<<"$2"; }

larger() { awk "BEGIN { print ($1 > $2) ? $1 : $2 }"; }

# net NAME CFG UPDATE MOMENTS OPTIONS...: UPDATE, MOMENTS: how far fp32 may be
net() {
	local name=$1 bad='' got k p u m wu=0 wm=0
	net=$1 cfg=$2 lu=$3 lm=$4
	shift 4
	sets=("$@")
	case $name in *"${RESYNC_ONLY:-}"*) ;; *) return ;; esac
	if ! "$sim/bin/gtrain" run "$cfg" -o "$tmp/$name" "${common[@]}" "${sets[@]}" -s train.steps=$((last + 1)) -s precision=fp32 \
		--device cpu >"$tmp/out" 2>&1; then
		echo "not ok resync_$name: $(tail -n 1 "$tmp/out")"
		return
	fi
	scale=()
	for k in $(seq 0 $last); do
		one "$name" "$k" cuda fp32
		[ -z "$why" ] || { bad=$why; break; }
		got=$(far "$k") || { bad="step $k: $got"; break; }
		u=$(number update "$got") m=$(number moments "$got")
		awk "BEGIN { exit !($u <= $lu && $m <= $lm) }" || { bad="step $k: $got"; break; }
		wu=$(larger "$u" "$wu") wm=$(larger "$m" "$wm")
	done
	if [ -z "$bad" ]; then echo "ok resync_${name}_fp32"; else echo "not ok resync_${name}_fp32: $bad"; fi
	echo "# resync: $name, fp32: after each of $((last + 1)) steps from the CPU's weights, changes of tensors within $wu, moments $wm"
	scale=(-s "train.label_smoothing=$smoothing") # what must be seen: a loss that is a thousandth another one
	one "$name" 6 cuda fp32
	if [ -z "$why" ] && got=$(far 6) && awk "BEGIN { exit !($(number moments "$got") > $lm) }"; then
		echo "ok resync_${name}_sees"
	else
		echo "not ok resync_${name}_sees: $why $got"
	fi
	sixteen "$name"
}

# 16 bits against the CPU's f32: gradients are as far from it as the CPU's own bf16 is, for both round the same values to 8 bits. Those of
# all tensors as one vector within 1.5 of the CPU's figure; a single tensor's within twice, since roundings go one way or the other. f16 has
# 11 bits: a smooth net comes 8 times as near; maxima and kinks of ReLU that change sides are an 8th as many, which makes the root of it,
# 0.35. Half as far at most for the whole, and 0.75 for a single tensor. Compared is the root of the mean square over the steps: where a
# maximum changes its place, one step is far off by chance (airbench's net in the CPU's own bf16: 0.027 to 0.21 in twelve steps), in one
# precision and not in the other.
sixteen() {
	local ks='1 6 11' p bad got k ref whole most all m a rm ra
	[ "${RESYNC:-}" != full ] || ks=$(seq 1 $last)
	: >"$tmp/ref"
	for p in bf16 fp16; do
		bad=''
		scale=() most=2 all=1.5
		: >"$tmp/far"
		[ $p = bf16 ] || scale=(-s train.loss_scale.init=1024.0) most=0.75 all=0.5
		for k in $ks; do
			if [ $p = bf16 ]; then
				one "$1" "$k" cpu bf16
				[ -z "$why" ] || { bad=$why; break; }
				got=$(far "$k") || { bad="step $k: $got"; break; }
				echo "$k $(number moments "$got") $(number all "$got")" >>"$tmp/ref"
			fi
			read -r ref whole < <(sed -n "s/^$k //p" "$tmp/ref")
			one "$1" "$k" cuda $p
			[ -z "$why" ] || { bad=$why; break; }
			got=$(far "$k") || { bad="step $k: $got"; break; }
			echo "$(number moments "$got") $(number all "$got") $ref $whole" >>"$tmp/far"
		done
		read -r got m a rm ra < <(awk -v most=$most -v all=$all '{ m += $1 ^ 2; a += $2 ^ 2; rm += $3 ^ 2; ra += $4 ^ 2 }
			END { if (NR) print (a > 0 && ra > 0 && m <= most ^ 2 * rm &&
			a <= all ^ 2 * ra), sqrt(m / NR), sqrt(a / NR), sqrt(rm / NR), sqrt(ra / NR) }' "$tmp/far")
		[ -n "$bad" ] || [ "$got" = 1 ] || bad="moments=$m all=$a; the CPU's bf16: moments=$rm all=$ra"
		if [ -z "$bad" ]; then echo "ok resync_$1_$p"; else echo "not ok resync_$1_$p: $bad"; fi
		echo "# resync: $1, $p: moments $a from the CPU's f32, all as one vector; the CPU's bf16: $ra"
	done
}

configs=$GTRAIN_SRC/configs
smoothing=0.001
net lenet "$configs/lenet.cfg" 1e-5 1e-5 -s data.batch=32
smoothing=0.101
net resnet18 "$configs/resnet18_cifar95.cfg" 1e-4 1e-4 -s data.batch=16 -s 'model.input=[3,16,16]' -s 'model.layers[0].out=8' \
	-s 'model.layers[3].ch=8' -s 'model.layers[4].ch=16' \
	-s 'model.layers[5].ch=16' -s 'model.layers[6].ch=32' -s 'eval.tta="none"'
smoothing=0.201
net airbench "$configs/cifar10_airbench94.cfg" 1e-4 1e-4 -s data.batch=24 -s 'model.input=[3,20,20]' -s 'model.layers[5].kernel=2' \
	-s 'model.layers[0].init_samples=100' \
	-s 'model.layers[2].ch=8' -s 'model.layers[3].ch=16' -s 'model.layers[4].ch=16' -s 'model.layers[8].factor=0.0625' \
	-s train.optimizer.lr=10.0 -s 'train.groups[1].optimizer.lr=1.0' -s 'train.groups[2].optimizer.lr=1.0' \
	-s train.schedule.t_max=5.0 -s 'train.groups[1].freeze_after=0.3' -s 'train.groups[1].schedule.t_max=1.0' -s 'eval.tta="none"'
