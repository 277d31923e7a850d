#!/bin/bash
# `gtrain export`: the format by ending and --format, what is rejected before anything is written, files that appear whole.
# tests/parity/test_export.sh compares the outputs of exported models.
# shellcheck disable=SC2015
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
tiny_config
"$gtrain" run tiny.cfg -q --no-progress -o run || fail trained 'no run'

# ---- formats -----------------------------------------------------------------------------------------------------------------
gives out_directory 64 err 'expected the name of a file, got a directory; --format pytorch' export run -o x/
gives ending_unknown 64 err 'expected a name that ends with .safetensors or .onnx' export run -o x.h5
gives ending_unknown_names_pytorch 64 err '--format pytorch' export run -o x.pt
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
cp x.onnx first.onnx
echo old >x.onnx
gives replaces_file 0 err 'wrote x.onnx' export run -o x.onnx
cmp -s x.onnx first.onnx && pass replaced_whole || fail replaced_whole 'not the whole file'
rm first.onnx
gives file_of_checkpoint 73 err 'this directory is a checkpoint, whose files cannot be replaced' \
	export run -o run/latest/model.safetensors
gives json 0 out '{"checkpoint":"run","path":"x.onnx","format":"onnx"}' export run -o x.onnx --json
run export run -o x.onnx -q
[ "$rc" = 0 ] && [ ! -s "$tmp/err" ] && [ ! -s "$tmp/out" ] && pass quiet || fail quiet "$(cat "$tmp/out" "$tmp/err")"

# ---- a directory -------------------------------------------------------------------------------------------------------------
gives directory 0 err 'wrote m' export run -o m --format pytorch
[ "$(cd m && echo *)" = 'README.md images.py model.py model.safetensors' ] && pass directory_files || fail directory_files "$(ls m)"
cmp -s m/model.safetensors run/latest/model.safetensors && pass directory_weights || fail directory_weights 'other weights'
python3 -m py_compile m/model.py m/images.py 2>"$tmp/err" && pass directory_compiles || fail directory_compiles "$(tail -n 1 "$tmp/err")"
rm -rf m/__pycache__
for text in '# tiny' 'weights after 16 optimizer steps' '| split | samples | loss | accuracy |' '| test | 64 |' 'on 1 rank, with the seed' \
	'    name = "tiny";' 'layers'; do
	name=card_${text//[^a-z]/}
	grep -qF -- "$text" m/README.md && pass "$name" || fail "$name" "no '$text': $(head -n 40 m/README.md)"
done
"$gtrain" run tiny.cfg -q -o cropped -s 'eval.transforms=({type="center_crop";size=4;},{type="resize";size=[8,8];})' >/dev/null 2>&1
run export cropped -o cropped-card --format pytorch
if grep -qF 'passes through center_crop to 4, then resize to 8 x 8.' cropped-card/README.md; then pass card_transforms
else fail card_transforms "$(cat "$tmp/err") $(head -n 25 cropped-card/README.md)"; fi
grep -qF 'STEPS = [("center_crop", [4], ""), ("resize", [8, 8], "bilinear")]' cropped-card/images.py && pass steps_of_images ||
	fail steps_of_images "$(grep STEPS cropped-card/images.py)"
gives metadata_of_images 0 err 'wrote cropped.onnx' export cropped -o cropped.onnx
grep -aqF '{"channels":"L","size":[8,8],"transforms":[{"type":"center_crop","size":[4]},{"type":"resize","size":[8,8],' cropped.onnx &&
	pass metadata_of_steps || fail metadata_of_steps "$(grep -ao '"transforms".*' cropped.onnx | head -n 1)"
"$gtrain" run tiny.cfg -q -o random -s 'eval.transforms=({type="vflip";})' >/dev/null 2>&1
gives random_transforms 0 err 'no images.py, because eval.transforms has other transforms than resize and center_crop' \
	export random -o random-card --format pytorch
[ ! -e random-card/images.py ] && pass random_without_module || fail random_without_module "$(ls random-card)"
gives directory_again 73 err 'expected the name of a new or empty directory' export run -o m --format pytorch
gives directory_of_ending 64 err 'expected a name without an ending, because of --format pytorch, got .onnx' \
	export run -o m.onnx --format pytorch
gives directory_stdout 64 err 'only the format safetensors' export run -o - --format pytorch
gives directory_preprocess 64 err '--preprocess: expected --format onnx' export run -o n --format pytorch --preprocess
mkdir empty
gives directory_empty 0 err 'wrote empty/' export run -o empty/ --format pytorch
gives directory_nowhere 73 err 'absent/n: cannot create: No such file' export run -o absent/n --format pytorch
cp -r run/latest/ alone
gives card_without_run 0 err 'wrote lone' export alone -o lone --format pytorch
grep -q 'has measured no scores at step' lone/README.md && pass card_without_scores || fail card_without_scores "$(cat lone/README.md)"
(
	ulimit -f 2
	trap "" XFSZ
	"$gtrain" export run -o full --format pytorch -q 2>"$tmp/err"
)
rc=$?
if [ $rc = 74 ] && [ -z "$(find . -maxdepth 1 -name 'full*')" ]; then
	pass directory_no_room
else
	fail directory_no_room "status $rc: $(cat "$tmp/err"; ls)"
fi

# ---- files -------------------------------------------------------------------------------------------------------------------
mkdir -p taken.onnx
gives out_is_a_directory 73 err 'expected a regular file' export run -o taken.onnx
gives out_in_no_directory 73 err 'cannot create: No such file' export run -o absent/x.onnx
ln -s x.onnx link.onnx
chmod 640 x.onnx
(umask 027 && "$gtrain" export run -o new.onnx -q) && [ "$(stat -c %a new.onnx)" = 640 ] && pass umask || fail umask "$(ls -l new.onnx)"
before=$(sha256sum <x.onnx)
(
	ulimit -f 1
	trap "" XFSZ
	"$gtrain" export run -o x.onnx -q 2>"$tmp/err"
)
rc=$?
if [ $rc = 74 ] && [ -z "$(find . -maxdepth 1 -name 'x.onnx.tmp*')" ]; then
	pass no_room
else
	fail no_room "status $rc: $(cat "$tmp/err"; ls)"
fi
[ "$(sha256sum <x.onnx)" = "$before" ] && pass old_file_stays || fail old_file_stays 'the file has changed'

# ---- damaged checkpoints -----------------------------------------------------------------------------------------------------
cp -r run damaged
for f in damaged/step-*/model.safetensors; do printf 'xxxx' | dd of="$f" bs=1 seek=600 conv=notrunc status=none; done
gives damaged 65 err 'model.safetensors' export damaged/latest -o y.onnx
[ ! -e y.onnx ] && pass damaged_writes_nothing || fail damaged_writes_nothing 'a file appeared'
