#!/bin/bash
# Classes with too few samples to learn or to measure them: one warning of check and of run, and none without such a class.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
png=iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADklEQVR42mOQgwIGyhgADlcHgX3rLBkAAAAASUVORK5CYII=
# photos CLASS N...: folders of N images in the folder data
photos() {
	rm -rf data
	for ((; $# > 1;)); do
		mkdir -p "data/$1"
		for ((i = 0; i < $2; i++)); do base64 -d <<<$png >"data/$1/$i.png"; done
		shift 2
	done
}
cat >images.cfg <<'CFG'
schema = 1;
name = "rare";
data = { root = "data"; batch = 16; valid = 0.2; stratify = true; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };
checkpoint = { dir = "runs/rare"; };
CFG
# warns NAME TEXT COMMAND...: exactly one warning of too few samples, which contains TEXT
warns() {
	local name=$1 text=$2
	shift 2
	run "$@"
	local n
	n=$(grep -c 'too few samples' err)
	[ "$rc" = 0 ] && [ "$n" = 1 ] && grep -qF -- "$text" err && pass "$name" || fail "$name" "status $rc, $n warnings: $(head -n 3 err)"
}
# quiet NAME COMMAND...: no such warning
quiet() {
	local name=$1
	shift
	run "$@"
	[ "$rc" = 0 ] && ! grep -q 'too few samples' err && pass "$name" || fail "$name" "status $rc: $(head -n 3 err)"
}

photos cat 40 dog 40 emu 40 yak 3
warns check 'images.cfg:3: data.root: a class has too few samples: yak (2 train, 1 valid); ' check images.cfg
warns run 'yak (2 train, 1 valid)' run -q images.cfg --new
warns ranks 'yak (2 train, 1 valid)' run -q images.cfg --new --nproc 2 -s parallel.mode=ddp
photos cat 40 dog 40 emu 40 yak 12
quiet enough check images.cfg
quiet enough_run run -q images.cfg --new
photos cat 12 dog 12 emu 12 yak 9
quiet equal check images.cfg
# A class of which data.valid takes no sample: whatever the size of the class, no score measures it.
photos cat 3 dog 3 emu 3 yak 3
warns unmeasured 'data.stratify = true puts samples of every class into both splits' check images.cfg -s data.stratify=false
quiet limited check images.cfg -s data.stratify=false -s data.limit=8

# The same of a table, whose labels are in memory.
{
	echo x,t
	for ((i = 0; i < 60; i++)); do echo "$i,a"; echo "$i.5,b"; done
	echo 1,c; echo 2,c; echo 3,c
} >table.csv
sed -e 's/root = "data"/format = "csv"; train = ["table.csv"]; target = "t"/' \
	-e 's/input = .*/inputs = ( { name = "values"; } ); layers = ( { name = "fc"; type = "linear"; out = 3; } ); };/' images.cfg >table.cfg
warns table_check 'table.cfg:3: data: a class has too few samples: c (' check table.cfg
warns table_run 'too few samples: c (' run -q table.cfg --new

# Many classes are counted, and only some are named.
photos a 40 b 40 c 40 d 2 e 2 f 2 g 2 h 2
warns many 'classes have too few samples: d (2 train), e (2 train), f (2 train) and 2 more; ' check images.cfg -s data.valid=0 \
	-s data.stratify=false -s 'model.layers[1].out=8'

# Splits of the data: a class with many training samples that the split valid lacks.
photos train/cat 20 train/dog 20 valid/cat 5 valid/dog 5 train/yak 20
warns not_in_valid 'a class has too few samples: yak (20 train, 0 valid)' check images.cfg -s data.valid=0 -s data.stratify=false
