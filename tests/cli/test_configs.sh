#!/bin/bash
# The configs that come with gtrain: listed, printed, found by name from the source tree and from an installed tree, and completed.
# tests/run: beside others
# shellcheck disable=SC2015
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1

check_tree() { # NAME: the binary $gtrain finds the configs
	run configs --json
	[ "$rc" = 0 ] && [ "$(grep -c '^{"name":"[a-z0-9_]*","dataset":"[a-z0-9-]*","summary":"[^"(]\{20,299\}","path":"/[^"]*"}$' out)" \
		= "$(find "$src/configs" -name '*.cfg' | wc -l)" ] &&
		pass "$1_json" || fail "$1_json" "status $rc: $(head -n 2 out) $(cat err)"
	run configs
	[ "$rc" = 0 ] && grep -q '^fmnist_mlp  *fashion-mnist  *A perceptron on FashionMNIST' out && pass "$1_list" ||
		fail "$1_list" "status $rc: $(cat out err)"
	! grep -q '…' out && grep -q 'are divided among the ranks$' out &&
		[ "$(wc -l <out)" = "$(($(find "$src/configs" -name '*.cfg' | wc -l) + 2))" ] &&
		pass "$1_sentences" || fail "$1_sentences" "$(cat out)"
	COLUMNS=80 "$gtrain" configs >out 2>err
	! grep -q '.\{81\}' out && tr -s ' \n' ' ' <out | grep -q 'gradients and parameters are divided among the ranks googlenet' &&
		pass "$1_width" || fail "$1_width" "$(cat out)"
	run configs mnist_ddp
	[ "$rc" = 0 ] && cmp -s out "$src/configs/mnist_ddp.cfg" && pass "$1_print" || fail "$1_print" "status $rc: $(cat err)"
	run check mnist_ddp
	[ "$rc" = 0 ] && grep -qx "there is no file mnist_ddp; gtrain uses /.*/configs/mnist_ddp.cfg instead" err && pass "$1_name" ||
		fail "$1_name" "status $rc: $(cat err)"
	# A name with .cfg or a slash is a file: another network and other data must not take the place of one that is missing.
	for name in mnist_ddp.cfg ./mnist_ddp.cfg configs/mnist_ddp.cfg; do
		run check "$name"
		[ "$rc" = 66 ] && [ ! -s out ] && grep -qF "$name: there is no such file; a config of this name comes with gtrain: write" err &&
			pass "$1_$name" || fail "$1_$name" "status $rc: $(cat err)"
	done
}

check_tree source_tree
# A file here comes first, and nothing is said of it.
tiny_config
mkdir here && cp tiny.cfg here/mnist_ddp.cfg
(cd here && "$gtrain" check mnist_ddp.cfg >out 2>err) && grep -q '^tiny: ' here/out && ! grep -q uses here/err && pass file_first ||
	fail file_first "$(cat here/err)"
# A path is taken as it is.
(cd here && "$gtrain" check mnist_dpd.cfg >out 2>err)
grep -qF 'mnist_dpd.cfg: there is no such file; did you mean mnist_ddp.cfg?' here/err && pass near_file || fail near_file "$(cat here/err)"
(cd here && "$gtrain" check mnist_ddp >out 2>err) && grep -q 'gtrain uses' here/err && pass name_is_no_file ||
	fail name_is_no_file "$(cat here/err)"
(cd here && mv mnist_ddp.cfg mine.cfg && "$gtrain" check mine >out 2>err)
grep -qF 'mine: there is no such file; did you mean mine.cfg?' here/err && pass name_of_file || fail name_of_file "$(cat here/err)"
(cd here && "$gtrain" check mien >out 2>err)
grep -qF 'mien: there is no such file; did you mean mine.cfg?' here/err && pass near_file_name || fail near_file_name "$(cat here/err)"
run check ../configs/mnist_ddp.cfg
[ "$rc" = 66 ] && pass no_parents || fail no_parents "status $rc"
run run mnist_dpd.cfg
[ "$rc" = 66 ] && grep -qF 'did you mean mnist_ddp, a config that comes with gtrain?' err && pass near_name ||
	fail near_name "status $rc: $(cat err)"
run run photos.cfg # not similar to pets
[ "$rc" = 66 ] && ! grep -qF 'did you mean' err && pass no_far_name || fail no_far_name "status $rc: $(cat err)"
run run quux.cfg
[ "$rc" = 66 ] && grep -qF 'gtrain configs' err && pass unknown_name || fail unknown_name "status $rc: $(cat err)"
# Ranks, which this program starts again by its own command line, find it too.
run run -q fmnist_zero -o zero --nproc 2 -s data.name=synthetic -s data.classes=10 -s data.samples=64 -s data.samples_test=32 \
	-s data.batch=32 -s train.epochs=1
[ "$rc" = 0 ] && [ -e zero/latest ] && pass ranks || fail ranks "status $rc: $(cat err)"
# Fine-tuning: data as the configs describe it, of which check reads the names only.
mkdir -p leaves/oak leaves/elm breeds
for i in $(seq 1 40); do
	echo >"leaves/oak/$i.jpg"
	echo >"leaves/elm/$i.jpg"
	for k in $(seq 1 37); do echo >"breeds/breed_of_${k}_$i.jpg"; done
done
echo >breeds/breed_of_1_1.mat # the dataset has such files too
gives finetune_folder 0 out '64 train, 16 valid' check finetune_folder -s data.root=leaves
gives finetune_folder_frozen 0 out 'frozen for 1 epoch' check finetune_folder -s data.root=leaves
gives pets 0 out '1,184 train, 296 valid' check pets -s data.root=breeds
# Installed.
mkdir -p root/bin root/share/gtrain root/lib
cp "$gtrain" root/bin/ && cp -r "$src/configs" root/share/gtrain/ && ln -s "$(dirname "$gtrain")/../lib/gtrain" root/lib/gtrain
gtrain=$tmp/root/bin/gtrain
check_tree installed
run check fmnist_mlp
grep -q "gtrain uses $tmp/root/share/gtrain/configs/fmnist_mlp.cfg" err && pass installed_path || fail installed_path "$(cat err)"
run completion words -- check ''
[ "$rc" = 0 ] && grep -q "^mnist_ddp	" out && pass completion_words || fail completion_words "status $rc: $(cat err)"
rm -r root/share
run configs
[ "$rc" = 66 ] && grep -q 'the configs of gtrain are not installed' err && pass none_installed ||
	fail none_installed "status $rc: $(cat err)"
