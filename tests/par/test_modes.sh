#!/bin/bash
# Equivalence: the loss curve and the final weights of every parallel mode are those of one rank. 50 steps of small nets (tests/par/nets),
# {mode} x {ranks} x {SGD with momentum, AdamW} x {accumulate 1, 4} x {even and uneven last batch, of which a rank may get nothing}.
# A part in `make check`; MODES=full runs all; MODES_ONLY: a word in the names of the cases to run.
#
# Against what. A net without batch normalisation, or with sync_bn: mode "single" with the same accumulation. Where batches are normalised
# by parts (dp: a replica's, pipe: a chunk's): mode "single" with as many micro-batches as there are parts, which is the same computation if
# every batch is full; else dp is compared with ddp without sync_bn, whose ranks have the same parts. Running statistics are then left out:
# they follow rank 0, or the whole batch (pipe), and not all of the parts one after the other.
#
# How near. Goal: 1e-5 of the loss, at every step. Weights, relative to the largest element of their tensor: 1e-4, for AdamW divides by the
# root of second moments, which makes more of a last bit than a loss does; 1e-3 for ResNet-20 with it, where single elements have
# gradients near their own rounding and may move by lr a step on its sign. Moments: 1e-3; they are gradients, and normalising the 8 values
# of 2 samples in ResNet's last layers divides by a small deviation. Figures say what was found.
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
loss_limit=1e-5 weight_limit=1e-4 moment_limit=1e-3
cases=0 refused=0 failed=0
: >"$tmp/figures"

# options NET OPT ACC DATA: the array opts
options() {
	opts=(-s "train.accumulate=$3")
	case $2 in adamw) opts+=(-s train.optimizer.type=adamw -s train.optimizer.lr=0.002 -s train.optimizer.weight_decay=0.01) ;; esac
	case $1-$2 in
	resnet20-adamw) opts+=(-s train.optimizer.lr=0.0003 -s train.optimizer.eps=1e-6) ;;
	wide-adamw) opts+=(-s train.optimizer.lr=0.0003) ;; # or it knows its samples by heart, and a loss near 0 has few digits
	esac
	case $4 in uneven) opts+=(-s data.samples=459) ;; esac # 19 batches of 24 and one of 3
}

# reference NET OPT ACC DATA: trains it as one rank, once; the folder's name in ref
reference() {
	ref=single-$1-$2-$3-$4
	[ -e "$tmp/$ref/latest" ] && return 0
	options "$@"
	expect=''
	train "$ref" "$tmp/$1.$2.cfg" "${opts[@]}"
}

# feature NAME NET LIMIT MODES OPTIONS...: what else a config can ask for, in MODES (word:ranks, with a comma between) against one rank,
# both with accumulate 2 and an uneven last batch. LIMIT: of losses.
mode_extra=()
feature() {
	local feature=$1 net=$2 limit=$3 modes=$4 m got name
	shift 4
	case feature_$feature in *"${MODES_ONLY:-}"*) ;; *) return ;; esac
	expect=''
	if ! train one "$tmp/$net.sgd.cfg" -s train.accumulate=2 -s data.samples=459 "$@"; then
		echo "not ok modes feature_$feature: one rank: $why"
		failed=$((failed + 1))
		return
	fi
	for m in ${modes//,/ }; do
		name=feature_${feature}_$m
		mode_args "${m%:*}" "${m#*:}"
		expect=$(refusal "${m%:*}" "$net" "$feature")
		case $net-${m%:*} in
		cnn-dp) [[ $feature == frozen_stats ]] || continue ;;
		cnn-ddp | cnn-zero[123]) mode+=(-s parallel.sync_bn=true) ;;
		esac
		train run "$tmp/$net.sgd.cfg" -s train.accumulate=2 -s data.samples=459 "$@" "${mode[@]}" ${mode_extra[0]+"${mode_extra[@]}"}
		case $? in
		0)
			cases=$((cases + 1))
			if got=$("$same" -l "$limit" -w "$(awk "BEGIN { print 100 * $limit }")" "$tmp/one" "$tmp/run") && same_evals; then
				echo "ok modes $name"
			else
				failed=$((failed + 1))
				echo "not ok modes $name: $got"
			fi
			echo "feature $name $got" >>"$tmp/figures"
			;;
		1)
			refused=$((refused + 1))
			refused modes "${m%:*} with $feature"
			;;
		*)
			failed=$((failed + 1))
			echo "not ok modes $name: $why"
			;;
		esac
	done
}

# The same evaluations and scores of training epochs at the same steps: as many lines, losses to 4 digits (a difference of the weights shows
# in them), the same number of hits, among the largest five too.
same_evals() {
	local d
	for d in one run; do
		sed -nE 's/.*"event":"(eval|epoch)",("step":[0-9]*).*,"loss":([0-9.]*),("acc":[0-9.]*,"top5":[0-9.]*,'\
'"samples":[0-9]*).*/\1 \2 \3 \4/p' \
			"$tmp/$d/metrics.jsonl" | awk '{ printf "%s %s %.4f %s\n", $1, $2, $3, $4 }' >"$tmp/$d.evals"
	done
	grep -q eval "$tmp/one.evals" && grep -q epoch "$tmp/one.evals" && cmp -s "$tmp/one.evals" "$tmp/run.evals"
}

# one WORD RANKS NET OPT ACC DATA
one() {
	local word=$1 ranks=$2 net=$3 opt=$4 acc=$5 data=$6 parts=$5 bn='' skip=() name=$3_$1_$2_$4_a$5_$6 got limit=$weight_limit
	case $name in *"${MODES_ONLY:-}"*) ;; *) return ;; esac
	case $net in cnn | resnet20) bn=1 ;; esac
	case $net-$opt in resnet20-adamw) limit=1e-3 ;; esac
	mode_args "$word" "$ranks"
	# several
	case $word-$opt in
	ddp-adamw | zero?-adamw | *+zero1-adamw) mode+=(-s "parallel.bucket_mb=$([ "$net" = resnet20 ] && echo 0.1 || echo 0.006)") ;;
	esac
	if [ -n "$bn" ]; then
		case $word in
		ddp | zero?) mode+=(-s parallel.sync_bn=true) ;;
		local) # ddp, every rank by its own statistics
			mode=(-s parallel.mode=ddp --nproc "$ranks")
			parts=$((acc * ranks)) skip=(-b) ;;
		dp) parts=$((acc * ranks)) skip=(-b) ;;
		*) parts=$((acc * chunks)) skip=(-b) ;;
		esac
		if [ ${#skip[@]} != 0 ] && { [ $((24 % parts)) != 0 ] || [ "$data" = uneven ]; }; then
			[ "$word" = dp ] || return 0 # no run of one rank has the same parts
			parts=ddp
		fi
	fi
	if [ "$parts" = ddp ]; then
		ref=local-$net-$ranks-$opt-$acc-$data
		options "$net" "$opt" "$acc" "$data"
		expect=''
		[ -e "$tmp/$ref/latest" ] || train "$ref" "$tmp/$net.$opt.cfg" "${opts[@]}" -s parallel.mode=ddp --nproc "$ranks"
	else
		reference "$net" "$opt" "$parts" "$data"
	fi
	if [ ! -e "$tmp/$ref/latest" ]; then
		echo "not ok modes $name: its reference: $why"
		failed=$((failed + 1))
		return
	fi
	options "$net" "$opt" "$acc" "$data"
	expect=$(refusal "$word" "$net")
	train run "$tmp/$net.$opt.cfg" "${opts[@]}" "${mode[@]}"
	case $? in
	1)
		refused=$((refused + 1))
		refused modes "$word"
		;;
	0)
		cases=$((cases + 1))
		if got=$("$same" ${skip[0]+"${skip[@]}"} -l $loss_limit -w "$limit" -m $moment_limit "$tmp/$ref" "$tmp/run"); then
			echo "ok modes $name"
		else
			failed=$((failed + 1))
			echo "not ok modes $name: $got"
		fi
		echo "$word $name $got" >>"$tmp/figures"
		;;
	*)
		failed=$((failed + 1))
		echo "not ok modes $name: $why"
		;;
	esac
}

for f in "$nets"/{mlp,wide,skip,cnn,resnet20}.cfg; do # AdamW has no momentum, and its key may not stand there
	n=$(basename "$f" .cfg)
	cp "$f" "$tmp/$n.sgd.cfg"
	sed 's/ momentum = 0.9;//' "$f" >"$tmp/$n.adamw.cfg"
done
if [ "${MODES:-}" = full ]; then
	for net in mlp wide skip cnn resnet20; do
		for opt in sgd adamw; do
			for acc in 1 4; do
				for data in even uneven; do
					for ranks in 1 2 3 4; do
						words='ddp zero1 zero2 zero3 dp'
						[ $ranks = 1 ] || words+=' gpipe 1f1b interleaved zero-bubble'
						[ $ranks != 4 ] || words+=' 1f1b*2 zero-bubble*2 1f1b*2+zero1 zero-bubble*2+zero1 interleaved*2+zero1'
						case $net in cnn | resnet20) [ $ranks = 1 ] || words+=' local' ;; esac
						for word in $words; do one "$word" $ranks $net $opt $acc $data; done
					done
					rm -rf "$tmp"/single-* "$tmp"/local-*
				done
			done
		done
	done
else
	while read -r word ranks net opt acc data; do
		one "$word" "$ranks" "$net" "$opt" "$acc" "$data"
	done <<-'END'
		ddp 1 mlp sgd 4 uneven
		ddp 2 mlp adamw 1 even
		ddp 3 skip sgd 1 uneven
		ddp 4 mlp sgd 4 uneven
		ddp 2 cnn sgd 1 even
		ddp 3 resnet20 sgd 4 uneven
		ddp 4 cnn adamw 1 uneven
		local 2 cnn sgd 1 even
		local 4 resnet20 sgd 1 even
		zero1 2 skip adamw 1 uneven
		zero1 3 mlp sgd 4 even
		zero1 4 resnet20 adamw 1 even
		zero2 2 mlp adamw 4 uneven
		zero2 3 cnn sgd 4 uneven
		zero2 4 skip sgd 1 even
		zero3 2 resnet20 sgd 1 uneven
		zero3 3 mlp adamw 4 uneven
		zero3 4 skip sgd 1 even
		dp 2 mlp sgd 1 uneven
		dp 3 cnn adamw 1 uneven
		dp 4 cnn sgd 1 even
		ddp 2 wide sgd 1 uneven
		ddp 4 wide adamw 1 uneven
		zero1 3 wide adamw 1 uneven
		zero2 2 wide sgd 1 even
		dp 3 wide sgd 1 uneven
		gpipe 2 mlp sgd 1 uneven
		gpipe 3 skip adamw 4 uneven
		1f1b 2 cnn sgd 1 even
		1f1b 4 resnet20 sgd 1 even
		1f1b 3 skip sgd 1 uneven
		interleaved 2 skip adamw 1 uneven
		zero-bubble 4 mlp sgd 1 uneven
		zero-bubble 3 skip adamw 4 even
		1f1b*2 4 skip sgd 4 uneven
		1f1b*2+zero1 4 skip adamw 4 uneven
		zero-bubble*2+zero1 4 mlp sgd 1 uneven
		interleaved*2+zero1 4 skip adamw 1 uneven
		1f1b*3+zero1 3 mlp adamw 1 uneven
	END
fi
some='ddp:3,zero1:2,zero3:3,dp:2,1f1b:2,1f1b*2+zero1:4'
feature clip mlp 1e-5 "$some,zero-bubble*2+zero1:4" -s train.clip_norm=0.1
mode_extra=(-s parallel.bucket_mb=0.005)
feature clip_buckets cnn 1e-5 ddp:3,zero2:2,zero3:4 -s train.clip_norm=0.5 -s train.optimizer.nesterov=true
feature rates_buckets mlp 1e-5 'ddp:2,zero1:4,zero2:3,zero3:2,interleaved*2:4,interleaved*2+zero1:4,zero-bubble*2+zero1:4' \
	-s 'model.layers[3].lr_mul=0.1' -s 'model.layers[5].weight_decay=0.1' -s 'model.layers[7].frozen=true'
mode_extra=()
# What ranks of "wide" that apply their weight gradients together must do as well, and that they do at all.
if "$gtrain" plan "$tmp/wide.sgd.cfg" --world 3 -s parallel.mode=ddp 2>&1 | grep -q 'linear.dw+update'; then
	echo 'ok modes wide_has_factors'
else
	echo 'not ok modes wide_has_factors'
fi
whole=(-s train.accumulate=1)
feature wide_frozen wide 1e-5 ddp:3,dp:2,zero1:2 "${whole[@]}" -s 'model.layers[3].frozen=true'
feature wide_rates wide 1e-5 ddp:3,dp:2 "${whole[@]}" -s 'model.layers[3].lr_mul=0.1' -s 'model.layers[1].weight_decay=0.1' \
	-s train.optimizer.decay_bias=false
feature wide_ignore wide 1e-5 ddp:4,dp:3 "${whole[@]}" -s train.ignore_index=3 -s train.label_smoothing=0.1
feature wide_prefetch wide 1e-5 ddp:4 "${whole[@]}" -s data.prefetch=3 -s data.valid=0.25 -s train.eval_every_steps=10
feature wide_threads wide 1e-5 ddp:2,zero1:3 "${whole[@]}" -s threads=2 -s train.recompute=cheap
# Normalised over all ranks, rows that only fill up a tail would count: there the gradients are added up after all.
# Without the kink of leaky_relu: if a value of one sample is so near 0 that its sign is rounding, the losses part by 1e-6 from there on.
sed 's/{ name = "act1"/{ name = "bn1"; type = "batchnorm1d"; }, &/; s/"leaky_relu"/"silu"/' "$tmp/wide.sgd.cfg" >"$tmp/wide_bn.sgd.cfg"
mode_extra=(-s parallel.sync_bn=true)
feature wide_bn wide_bn 1e-5 ddp:2,ddp:4,zero1:3 "${whole[@]}"
mode_extra=()
feature valid_split mlp 1e-5 "$some" -s data.valid=0.25 -s data.eval_batch=17 -s train.eval_every_steps=10
feature smoothing mlp 1e-5 ddp:4,zero1:3 -s train.label_smoothing=0.1
feature ignore_index mlp 1e-5 ddp:4,zero3:2,dp:3 -s train.ignore_index=3
feature frozen mlp 1e-5 "$some" -s 'model.layers[3].frozen=true'
feature rates mlp 1e-5 "$some" -s 'model.layers[3].lr_mul=0.1' -s 'model.layers[5].weight_decay=0.1' -s train.optimizer.decay_bias=false
feature schedule mlp 1e-5 ddp:2,zero2:3 -s train.schedule.type=cosine -s train.schedule.unit=step -s train.schedule.warmup=7
feature drop_last mlp 1e-5 'ddp:3,zero3:2,1f1b*2+zero1:4' -s data.drop_last=true
feature prefetch cnn 1e-5 ddp:2,zero3:2 -s data.prefetch=3
feature recompute cnn 1e-5 ddp:3,zero3:2 -s train.recompute=cheap
feature prefetch_ignore mlp 1e-5 ddp:4 -s train.ignore_index=3 -s data.prefetch=3
# Each with every mode. What is random is a function of sample and layer; what looks at data before the first step (whitening) looks at the
# same on every rank.
every=ddp:2,dp:2,zero1:2,zero2:2,zero3:2,1f1b:2,zero-bubble:2,interleaved:2
feature muon mlp 1e-5 $every \
	-s 'train.groups=({match=["fc1.weight","fc3.weight","fc4.weight"];optimizer={type="muon";lr=0.01;};schedule={type="polynomial";};})'
feature groups mlp 1e-5 $every -s 'train.groups=({match="*.bias";optimizer={type="adam";lr=0.001;};},
	{match="fc2.weight";frozen=true;},{match="fc3.weight";freeze_after=1.0;lr_mul=0.5;weight_decay=0.0;})'
feature augment_tta skip 1e-5 $every -s 'data.augment=({type="pad_crop";pad=1;mode="reflect";},{type="hflip";alternate=true;})' \
	-s 'eval.tta="mirror_translate"' -s train.eval_every_steps=20
feature first_values skip 1e-5 $every -s 'model.layers[0].init="whitening"' -s 'model.layers[2].init="dirac"' \
	-s 'model.layers[15].init_std=0.1'
# Running statistics that stay: of all normalisations (with sync_bn, which has nothing to exchange then), of one of two.
still='train.groups=({match="bn?.*";frozen_stats=true;})' one_still='train.groups=({match="bn1.*";frozen=true;frozen_stats=true;})'
feature frozen_stats cnn 1e-5 $every -s "$still"
feature frozen_stats_one cnn 1e-5 ddp:3,zero1:2,zero3:4 -s "$one_still"
feature rmsprop mlp 1e-5 $every -s 'train.optimizer={type="rmsprop";lr=0.0005;momentum=0.5;centered=true;}' -s train.clip_norm=0.5
# Every other type of optimizer. The bits are compared where all modes give the same: an update may not be continuous in its gradient.
for o in $("$gtrain" completion words -- run -s train.optimizer.type= | sed -n 's/.*=//p'); do
	case $o in sgd | adam | adamw | rmsprop | muon) ;;
	*) feature "$o" mlp 0 ddp:2,dp:2,zero1:2,zero2:2,zero3:2,1f1b:2 -s "train.optimizer={type=\"$o\";lr=0.0005;}" \
		-s 'reproducible="world"' ;; esac
done
feature amsgrad mlp 0 ddp:2,dp:2,zero1:2,zero3:2,1f1b:2 -s 'train.optimizer={type="adam";lr=0.0005;amsgrad=true;}' \
	-s 'reproducible="world"'
feature clip_value mlp 0 ddp:2,dp:2,zero1:2,zero3:2,1f1b:2 -s train.clip_value=0.001 -s 'reproducible="world"'
feature lamb_clipped mlp 1e-5 ddp:3,dp:2,1f1b:2 -s 'train.optimizer={type="lamb";lr=0.002;}' -s train.clip_norm=0.5
feature torch_sampler mlp 1e-5 $every -s 'data.sampler="torch"' -s data.samples=480
feature events mlp 1e-5 $every -s train.eval_every_steps=7 -s checkpoint.every_steps=5 -s checkpoint.keep=2 \
	-s 'checkpoint.best.metric="test/loss"' -s log.tensorboard=true -s 'reproducible="run"'

cut -d' ' -f1 "$tmp/figures" | sort -u | while read -r w; do
	awk -v w="$w" '$1 == w { n++; for (i = 3; i <= 6; i++) { split($i, k, "="); split(k[2], v, /[@:]/)
		if (k[1] == "loss" && v[1] + 0 >= l + 0) { l = v[1]; at = $2 } if (k[1] == "weights" && v[1] + 0 >= m + 0) m = v[1];
		if (k[1] == "moments" && v[1] + 0 >= o + 0) o = v[1] } }
		END { printf "# modes %s: %d cases, worst relative difference of a loss %s (%s), of weights %s, of moments %s\n",
			w, n, l, at, m, o }' "$tmp/figures"
done
tell_refused
echo "# modes: $cases cases compared, $failed failed, $refused refused"
