#!/bin/bash
# `gtrain export`: the format by ending and --format, what is rejected before anything is written, files that appear whole.
# tests/parity/test_export.sh compares the outputs of exported models.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
tiny_config
"$gtrain" run tiny.cfg -q --no-progress -o run || fail trained 'no run'

# ---- formats -----------------------------------------------------------------------------------------------------------------
gives ending_unknown 64 err 'expected a name that ends with .safetensors or .onnx' export run -o x.h5
gives ending_of_directory 64 err 'got .pth' export run -o d.onnx/x.pth
gives ending_contradicts 64 err 'expected a name that ends with .onnx, because of --format onnx, got .safetensors' \
	export run -o x.safetensors --format onnx
gives format_unknown 64 err 'expected safetensors' export run -o x --format tflite
gives format_stdout 64 err 'only the format safetensors can be written to standard output' export run -o - --format onnx
gives preprocess_of_weights 64 err '--preprocess: expected --format onnx' export run -o x.safetensors --preprocess
gives no_checkpoint 66 err 'absent' export absent -o x.onnx
if [ -z "$(find . -name 'x*')" ]; then pass nothing_written; else fail nothing_written "$(ls)"; fi
gives by_ending 0 err 'wrote x.onnx' export run -o x.onnx
gives by_format 0 err 'wrote model' export run -o model --format onnx
cmp -s x.onnx model && pass same_bytes || fail same_bytes 'the two files differ'
gives json 0 out '{"checkpoint":"run","path":"x.onnx","format":"onnx"}' export run -o x.onnx --json
run export run -o x.onnx -q
[ "$rc" = 0 ] && [ ! -s "$tmp/err" ] && [ ! -s "$tmp/out" ] && pass quiet || fail quiet "$(cat "$tmp/out" "$tmp/err")"

# ---- files -------------------------------------------------------------------------------------------------------------------
mkdir -p taken.onnx
gives out_is_a_directory 73 err 'expected a regular file' export run -o taken.onnx
gives out_in_no_directory 73 err 'cannot create: No such file' export run -o absent/x.onnx
ln -s x.onnx link.onnx
chmod 640 x.onnx
(umask 027 && "$gtrain" export run -o new.onnx -q) && [ "$(stat -c %a new.onnx)" = 640 ] && pass umask || fail umask "$(ls -l new.onnx)"
before=$(sha256sum <x.onnx)
(ulimit -f 1; trap "" XFSZ; true && "$gtrain" export run -o x.onnx -q) 2>"$tmp/err" >/dev/null
rc=$?
if [ $rc = 74 ] || [ $rc = 153 ]; then pass no_room; else fail no_room "status $rc: $(cat "$tmp/err")"; fi
[ "$(sha256sum <x.onnx)" = "$before" ] && pass old_file_stays || fail old_file_stays 'the file has changed'
rm -f x.onnx.tmp-*

# ---- damaged checkpoints -----------------------------------------------------------------------------------------------------
cp -r run damaged
for f in damaged/step-*/model.safetensors; do printf 'xxxx' | dd of="$f" bs=1 seek=600 conv=notrunc status=none; done
gives damaged 65 err 'model.safetensors' export damaged/latest -o y.onnx
[ ! -e y.onnx ] && pass damaged_writes_nothing || fail damaged_writes_nothing 'a file appeared'
