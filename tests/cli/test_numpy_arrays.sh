#!/bin/bash
# Arrays of NumPy: images in .npy and .npz files give the numbers of the same IDX files, rows those of the same CSV file; files that must be
# refused.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
if ! command -v python3 >/dev/null; then
	skip numpy_arrays 'python3 is not installed'
	exit 0
fi
cd "$tmp" || exit 1
if ! python3 "$src/tests/cli/make_arrays.py" 2>err; then
	fail make_arrays "$(tail -n 1 err)"
	exit 1
fi
weights() { "$gtrain" export "$1" -o "$1.safetensors" -q && sha256sum <"$1.safetensors" | cut -c1-16; }
scores() { sed 's/step.*//'; }

# ---- images --------------------------------------------------------------------------------------------------------------------------
cat >net.cfg <<'CFG'
schema = 1;
name = "net";
seed = 5;
data = { format = "numpy"; train = ["x.npy", "y.npy"]; test = ["x.npy", "y.npy"]; batch = 16; valid = 0.25; mean = [0.4]; std = [0.2];
	augment = ( { type = "pad_crop"; pad = 1; }, { type = "hflip"; } ); };
model = { input = [3, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 3; } ); };
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.01; }; };
checkpoint = { best = { metric = "valid/acc"; }; };
CFG
run run net.cfg -q -o idx -s 'data.format="idx"' -s 'data.train=["images.idx","labels.idx"]' \
	-s 'data.test=["images.idx","labels.idx"]'
[ "$rc" = 0 ] || fail idx "$(head -n 1 err)"
weights idx >weights
"$gtrain" predict idx images.idx 2>err | sed 's/^images.idx//' >predicted
[ -s predicted ] || fail predict_idx "$(head -n 1 err)"
for files in '"x.npy","y.npy"' '"y.npy","x.npy"' '"plain.npz"' '"packed.npz"'; do
	for format in numpy auto; do
		run run net.cfg -q -o run -s "data.train=[$files]" -s "data.format=\"$format\""
		[ "$rc" = 0 ] || fail "run_$files" "$(head -n 1 err)"
		if weights run | cmp -s weights; then pass "weights_${format}_$files"; else fail "weights_$files" "other weights"; fi
		rm -rf run
	done
done
for f in x.npy plain.npz packed.npz; do
	if "$gtrain" predict idx "$f" 2>err | sed "s/^$f//" | cmp -s - predicted; then pass "predict_$f"; else
		fail "predict_$f" "$(head -n 1 err)"; fi
done
gives eval_plain 0 out '(120 samples' eval idx plain.npz
gives eval_other 0 out '(60 samples' eval idx splits.npz # its test split
for f in plain packed splits; do
	gives "init_$f" 0 err 'wrote' init $f.npz -o $f.cfg
	gives "smoke_$f" 0 out 'smoke test passed' run $f.cfg --smoke --device cpu
done
gives splits 0 out '60 train, 60 valid, 60 test' check splits.cfg
run run splits.cfg -q -o splits -s train.epochs=1
if grep -q 'test accuracy' out; then pass splits_run; else fail splits_run "$(cat out err)"; fi
gives resumed 0 out '(2 epochs' resume splits -q -s train.epochs=2
gives no_test 78 err 'expected a different file than data.train, or arrays x_test and y_test' check plain.cfg -s 'data.test=["plain.npz"]'
gives three 78 err 'expected an .npz file, or two .npy files' check net.cfg -s 'data.train=["x.npy","y.npy","x.npy"]'
gives one_npy 78 err 'data.train: expected an .npz file, or two .npy files of images and labels, got only' check net.cfg \
	-s 'data.train=["x.npy"]'

# ---- rows ----------------------------------------------------------------------------------------------------------------------------
# trains NAME FILE TARGET
trains() {
	"$gtrain" init "$2" --target "$3" -o "$1.cfg" -q 2>err || fail "init_$2" "$(head -n 1 err)"
	"$gtrain" run "$1.cfg" -o "$1" -q -s train.epochs=2 >out 2>err || fail "run_$2" "$(head -n 1 err)"
	weights "$1" >"$1.weights"
	"$gtrain" eval "$1" "$2" -q 2>err | scores >"$1.scores"
	"$gtrain" predict "$1" "$2" 2>err | sed 's/^[^,]*,//' >"$1.predicted"
}
# same NAME FILE TARGET: trains with the data in FILE as with CSV
same() {
	trains run "$2" "$3"
	for what in weights scores predicted; do
		if [ -s "$1.$what" ] && cmp -s "$1.$what" "run.$what"; then pass "${what}_$2"; else
			fail "${what}_$2" "$(diff "$1.$what" "run.$what" | head -n 3)"; fi
	done
	rm -rf run run.*
}
trains csv rows.csv y
same csv rows.npz y
same csv rows_packed.npz y
trains bare bare.csv c4
same bare bare.npy c4
if "$gtrain" predict csv rows.npz 2>err | sed 's/^[^,]*,//' | cmp -s - csv.predicted; then pass other_format; else
	fail other_format "$(head -n 1 err)"; fi
if "$gtrain" predict bare - <bare.npy 2>err | sed 's/^[^,]*,//' | cmp -s - bare.predicted; then pass stdin; else
	fail stdin "$(head -n 1 err)"; fi
gives columns 0 out 'rows.npz' predict csv rows.npz --top 1

# ---- files that must be refused ------------------------------------------------------------------------------------------------------
refused() { gives "refused_$1" 65 err "$2" init "bad_$1.npz"; }
refused real 'bad_real.npz: x: expected images of uint8 [n, height, width], with channels first or last, got float32 [120, 1, 8, 8]'
refused hot 'bad_hot.npz: y: expected integer labels [n], got float32 [120, 3]; write np.argmax(y, 1)'
refused count 'bad_count.npz: expected as many labels as images, got 120 images and 119 labels'
refused label 'bad_label.npz: label -1 of sample 0 is outside of 0..'
refused objects 'bad_objects.npz: y: expected an array of numbers or texts, got Python objects'
refused order 'bad_order.npz: x: expected elements in C order, got Fortran order; write np.ascontiguousarray(array)'
refused endian 'bad_endian.npz: y: expected little-endian elements, got ">i4"'
refused short 'bad_short.npz: x: expected 23168 bytes, as its header declares, got less'
refused long 'bad_long.npz: x: expected 23168 bytes, as its header declares, got more'
refused huge 'bad_huge.npz: y: the array expands to'
refused bomb 'bad_bomb.npz: x: the array expands to 134217856 bytes, more than the 67108864 allowed; it may be a decompression bomb'
refused empty 'bad_empty.npz: expected arrays of NumPy in the zip file, got none'
refused cut 'bad_cut.npz: the archive is damaged or truncated: the directory at the end of the archive cannot be read'
refused noise 'bad_noise.npz: expected a zip file'
refused flipped 'bad_flipped.npz: the archive is damaged or truncated in member x.npy'
gives refused_rows 65 err 'expected arrays of the same length for a table, got 240 rows of x and 239 of y' init bad_rows.npz --target y
gives refused_alone 65 err 'a: expected rows of one or two dimensions for a table, got uint8 [120, 3, 8, 8]' init bad_alone.npz --target a
gives infinite 0 err 'bad_inf.npz:1: column "x": expected a finite number, got "inf"; the cell counts as missing' \
	init bad_inf.npz --target y -o inf.cfg
gives refused_target 64 err '--target: expected the column' init rows.npz
gives refused_npy 65 err 'cut.npy: the file has 23167 bytes, but its header declares 23168: truncated' check net.cfg \
	-s 'data.train=["cut.npy","y.npy"]'
gives refused_predict 65 err 'y.npy: the array: expected images of uint8' predict idx y.npy
gives missing 66 err 'none.npz' init none.npz
