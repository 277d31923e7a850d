#!/bin/bash
# parallel.compress = "bf16": the sums of gradients and what error feedback keeps of them, resumed runs, other worlds, refusals.
# tests/run: beside others
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
sums=$src/tests/par/compress_sums.py
cat >"$tmp/net.cfg" <<'CFG'
schema = 1;
name = "compress";
seed = 3;
data = { name = "synthetic"; samples = 203; samples_test = 32; batch = 50; classes = 10; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 64; }, { type = "relu"; },
	{ type = "linear"; out = 32; }, { type = "tanh"; },
	{ type = "linear"; out = 24; }, { type = "relu"; }, { type = "linear"; out = 10; } ); };
train = { steps = 60; loss = "cross_entropy"; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; };
checkpoint = { dir = "unused"; every_steps = 25; every_epochs = 0; keep = 9; };
threads = 1;
log = { every_steps = 1; };
CFG
refused_with() { # name, sentence, options
	local name=$1 sentence=$2
	shift 2
	"$gtrain" check "$tmp/net.cfg" -s parallel.nproc=2 -s parallel.compress=bf16 "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
	if [ $rc = 78 ] && grep -qF "$sentence" "$tmp/err"; then
		echo "ok compress_refuses_$name"
	else
		echo "not ok compress_refuses_$name: status $rc: $(head -n 1 "$tmp/err")"
	fi
}
holds() { # name, arguments of compress_sums.py
	local name=$1 got
	shift
	if got=$(python3 "$sums" "$@" 2>&1); then
		echo "ok compress_$name"
		echo "# compress: $name: $got"
	else
		echo "not ok compress_$name: $got"
	fi
}
fail_run() { echo "not ok compress_$1: $why"; }

# ---- sums of gradients -------------------------------------------------------------------------------------------------------------
# The learning rate is so small that the weights, and so the gradients, are the same in every step. Momentum 1 adds up all gradients.
still=(-s data.shuffle=false -s checkpoint.every_steps=0 -s train.optimizer.lr=1e-30 -s train.optimizer.momentum=1.0
	-s parallel.bucket_mb=0.01)
same_samples=(-s data.samples=1 -s data.batch=0 -s data.batch_per_rank=1 -s data.sampler=torch) # every rank repeats the only sample
for m in ddp zero1 1f1b\*2; do
	mode_args "$m" 2
	[ "$m" = 1f1b\*2 ] && mode+=(-s parallel.chunks=1)
	name=${m%\**}
	if train exact "$tmp/net.cfg" "${mode[@]}" "${still[@]}" -s data.batch=2 -s data.samples=2 -s train.steps=1 &&
		train run "$tmp/net.cfg" "${mode[@]}" "${still[@]}" -s data.batch=2 -s data.samples=2 -s train.steps=1 \
			-s parallel.compress=bf16; then
		holds "formula_$name" formula "$tmp/run" 1 "$tmp/exact"
	else
		fail_run "formula_$name"
	fi
done
for m in ddp zero1; do
	for n in 2 4; do
		mode_args "$m" "$n"
		if train exact "$tmp/net.cfg" "${mode[@]}" "${still[@]}" "${same_samples[@]}" -s train.steps=1 &&
			train $m.$n "$tmp/net.cfg" "${mode[@]}" "${still[@]}" "${same_samples[@]}" -s train.steps=16 -s parallel.compress=bf16; then
			holds "feedback_$m.$n" feedback "$tmp/$m.$n" 16 "$tmp/exact"
		else
			fail_run "feedback_$m.$n"
		fi
	done
	# Other numbers of ranks go on with all rounding errors. The mean over the ranks of equal samples is the same gradient.
	for n in 2 1; do
		rm -rf "${tmp:?}/run"
		cp -r "$tmp/$m.4" "$tmp/run"
		if "$gtrain" resume -q --no-progress "$tmp/run" --nproc $n -s train.steps=32 >"$tmp/out" 2>"$tmp/err"; then
			[ $n = 1 ] || holds "other_world_$m.$n" feedback "$tmp/run" 32 "$tmp/exact"
		else
			why=$(tail -n 1 "$tmp/err") fail_run "other_world_$m.$n"
		fi
	done
done

# ---- features ------------------------------------------------------------------------------------------------------------------------
# A run that is resumed from step 25 ends with the bits of the run that was not interrupted. 203 samples: the last batch of an epoch has 3,
# of which some ranks have none. The curve stays near that of the same ranks without compression.
resumes() { # name, mode word, ranks, options
	local name=$1 word=$2 n=$3 got
	shift 3
	mode_args "$word" "$n"
	train one "$tmp/net.cfg" "${mode[@]}" "$@" || { fail_run "$name"; return; }
	train whole "$tmp/net.cfg" "${mode[@]}" "$@" -s parallel.compress=bf16 || { fail_run "$name"; return; }
	cp -r "$tmp/whole" "$tmp/part"
	if ! "$gtrain" resume -q --no-progress "$tmp/part" --from 25 --nproc "$n" >"$tmp/out" 2>"$tmp/err"; then
		echo "not ok compress_resume_$name: $(tail -n 1 "$tmp/err")"
	elif cmp "$tmp/whole/latest/model.safetensors" "$tmp/part/latest/model.safetensors" >"$tmp/out" 2>&1 &&
		cmp "$tmp/whole/latest/optimizer.safetensors" "$tmp/part/latest/optimizer.safetensors" >"$tmp/out" 2>&1 &&
		[ -n "$(ls -d "$tmp"/part/history-*)" ]; then
		echo "ok compress_resume_$name"
	else
		echo "not ok compress_resume_$name: $(cat "$tmp/out")$(ls "$tmp/part")"
	fi
	holds "curve_$name" curve "$tmp/whole" 60 "$tmp/one"
	rm -rf "${tmp:?}/part"
}
resumes ddp ddp 2 -s parallel.bucket_mb=0.01
resumes ddp_accumulate ddp 4 -s train.accumulate=2 -s train.clip_norm=0.5
resumes ddp_bf16 ddp 2 -s precision=bf16 -s train.ema.decay=0.9
resumes zero zero1 3 -s train.optimizer.type=adamw -s train.optimizer.lr=0.001 -s parallel.bucket_mb=0.01
resumes pipe 1f1b\*2 4 -s parallel.bucket_mb=0.01
resumes pipe_zero zero-bubble\*2+zero1 4 -s train.groups='({ match = ["1.*"]; freeze_after = 4; })'

# Sharding the optimizer's state changes no bit.
mode_args ddp 2
train one "$tmp/net.cfg" "${mode[@]}" -s parallel.compress=bf16
mode_args zero1 2
if train run "$tmp/net.cfg" "${mode[@]}" -s parallel.compress=bf16 &&
	cmp "$tmp/one/latest/model.safetensors" "$tmp/run/latest/model.safetensors" >"$tmp/out" 2>&1; then
	echo "ok compress_zero_is_ddp"
else
	echo "not ok compress_zero_is_ddp: $why$(cat "$tmp/out")"
fi

# ---- check -----------------------------------------------------------------------------------------------------------------------------
refused_with fp16 'expected "none" with precision = "fp16"' -s parallel.mode=ddp -s precision=fp16 --device null:cuda
refused_with world 'expected "none" with reproducible = "world"' -s parallel.mode=ddp -s reproducible=world
refused_with stage 'expected "none" with parallel.stage = 2' -s parallel.mode=zero -s parallel.stage=2
refused_with dp 'parallel.compress' -s parallel.mode=dp
"$gtrain" check "$tmp/net.cfg" -s parallel.nproc=2 -s parallel.mode=ddp -s parallel.compress=bf16 >"$tmp/out" 2>"$tmp/err"
bytes() { sed -n "s/^$1  *//p" "$tmp/out" | head -n 1; }
if [ -n "$(bytes gradients)" ] && [ "$(bytes gradients)" = "$(bytes 'rounding errors')" ] && grep -q '^sent gradients' "$tmp/out"; then
	echo "ok compress_memory"
else
	echo "not ok compress_memory: $(grep -E '^(gradients|rounding|sent)' "$tmp/out" | tr '\n' ' ')$(head -n 1 "$tmp/err")"
fi
