#!/bin/bash
# Updates that are taken as the gradient is made (plan/fused_update.c) give the bits of stored gradients. train.clip_norm = 1e30 clips
# nothing, but clipping needs all gradients at once, so it turns fused updates off.
# tests/run: beside others
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cfg=$GTRAIN_SRC/tests/cli/fused_update.cfg
"$GTRAIN" plan "$cfg" --device cpu >"$tmp/plan" || exit 1
if grep -q 'linear.dw+update' "$tmp/plan"; then fused=1; else fused=0; fi
# Each type as it is, then settings with other loops. A type that needs a group of its own (muon) has no fused update.
types=$("$GTRAIN" completion words -- run -s train.optimizer.type= | sed -n 's/.*=//p')
plain=()
for o in $types; do "$GTRAIN" check "$cfg" -s train.optimizer.type="$o" >/dev/null 2>&1 && plain+=("$o"); done
[ ${#plain[@]} -ge 4 ] || echo "not ok optimizers: only ${plain[*]} of $types can be checked"
i=0
for o in "${plain[@]}" "sgd -s train.optimizer.momentum=0.9 -s train.optimizer.nesterov=true -s train.optimizer.weight_decay=0.01" \
	"adamw -s train.optimizer.decay_bias=false" "rmsprop -s train.optimizer.centered=true" \
	"rmsprop -s train.optimizer.momentum=0.9 -s train.optimizer.alpha=0.9" "adam -s train.optimizer.amsgrad=true"; do
	i=$((i + 1))
	for clip in 0.0 1e30; do
		# shellcheck disable=SC2086
		"$GTRAIN" run "$cfg" -o "$tmp/$i-$clip" -s train.clip_norm=$clip -s train.optimizer.type=$o >/dev/null 2>"$tmp/log" ||
			cat "$tmp/log"
	done
	name=fused_update_$(echo "$o" | tr -c 'a-z_\n' '_' | sed 's/_s_train_optimizer//g; s/__*/_/g')
	if [ $fused = 0 ]; then
		echo "skip $name: this processor has none of AVX2, AVX-512 and NEON, so no update is fused"
	elif cmp -s "$tmp/$i-0.0/latest/model.safetensors" "$tmp/$i-1e30/latest/model.safetensors" &&
		[ "$(grep -o '"step":[0-9]*,"epoch":[0-9]*,"loss":[^,]*' "$tmp/$i-0.0/metrics.jsonl")" = \
		"$(grep -o '"step":[0-9]*,"epoch":[0-9]*,"loss":[^,]*' "$tmp/$i-1e30/metrics.jsonl")" ]; then
		echo "ok $name"
	else
		echo "not ok $name: other weights or losses"
	fi
done

# divergence: exit 3, nothing updated, the layer named
"$GTRAIN" run "$cfg" -o "$tmp/nan" -s train.optimizer.type=sgd -s train.optimizer.lr=1e30 >/dev/null 2>"$tmp/log"
rc=$?
if [ $rc = 3 ] && grep -q 'diverged at step [0-9]*: .*fc[123].*nothing was updated' "$tmp/log"; then
	echo "ok diverges"
else
	echo "not ok diverges: status $rc: $(tail -n 1 "$tmp/log")"
fi
