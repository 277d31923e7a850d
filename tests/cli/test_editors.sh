#!/bin/bash
# The files for editors: Vim's syntax in Vim itself, the expressions of the grammar for VS Code, and the JSON schema, which all configs
# that come with gtrain follow and wrong ones do not. SCHEMA_PYTHON: a Python with libconf and jsonschema of PyPI, for the schema.
# tests/run: beside others
# shellcheck disable=SC2015
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
SCHEMA_PYTHON=${SCHEMA_PYTHON:-python3}
mkdir -p vim/syntax vim/ftdetect
run completion vim && cp out vim/syntax/gtrain.vim
cp "$src/cli/editors/ftdetect.vim" vim/ftdetect/gtrain.vim
run completion vscode && cp out grammar.json
run completion json-schema && cp out schema.json
gives unknown 64 err 'expected bash, zsh, fish, vim, vscode or json-schema' completion emacs

cat >net.cfg <<'CFG'
# a comment
schema = 1;
train = { optimizer = { type = "adamw"; lr = 1.0e-3; }; epochs = 3; shuffle = true; };
model = { blocks = { stem = { params = ["n"]; layers = ( { type = "linear"; out = "$n"; } ); }; }; layers = ( { type = "conv2d"; } ); };
CFG
# The group of the syntax at LINE of the COLUMN where TEXT begins.
cat >groups.vim <<'VIM'
set nocompatible runtimepath^=vim
filetype plugin on
syntax on
edit net.cfg
let out = [&filetype]
for [line, text] in [[1, 'comment'], [3, 'train'], [3, 'optimizer'], [3, 'adamw'], [3, '1.0e'], [3, 'true'], [3, 'epochs'],
  \ [4, 'stem'], [4, '$n'], [4, 'conv2d']]
  call add(out, text . ' ' . synIDattr(synID(line, stridx(getline(line), text) + 1, 1), 'name'))
endfor
call writefile(out, 'groups')
qall!
VIM
if command -v vim >/dev/null && vim --version | grep -q '+syntax'; then
	timeout 20 vim -u NONE -N -es -S groups.vim </dev/null >/dev/null 2>&1
	want='gtrain|comment gtrainComment|train gtrainKey|optimizer gtrainKey|adamw gtrainWord|1.0e gtrainNumber|true gtrainBoolean'
	want+='|epochs gtrainKey|stem gtrainName|$n gtrainParam|conv2d gtrainWord'
	got=$(paste -sd '|' groups 2>/dev/null)
	[ "$got" = "$want" ] && pass vim || fail vim "got $got"
else
	skip vim 'vim is not installed'
fi

export EDITORS=$src/cli/editors
if command -v python3 >/dev/null; then
	why=$(python3 - <<'PY' 2>&1
import json, re
patterns = json.load(open("grammar.json"))["patterns"]
line = 'train = { optimizer = { type = "adamw"; lr = 1.0e-3; }; shuffle = true; }; # end'
found = {p["name"].split(".")[0]: re.findall(p["match"], line) for p in patterns if "match" in p}
assert {"train", "optimizer", "type", "lr", "shuffle"} <= set(re.findall(patterns[4]["match"], line)), found
assert found["comment"] == ["# end"] and "1.0e-3" in re.findall(patterns[-1]["match"], line), found
words = patterns[3]["patterns"][-1]["match"]
assert re.findall(words, line) == ["adamw"], re.findall(words, line)
for name in "package.json", "language-configuration.json":
    json.load(open(f'{__import__("os").environ["EDITORS"]}/{name}'))
PY
	) && pass vscode || fail vscode "$why"
else
	skip vscode 'python3 is not installed'
fi

if "$SCHEMA_PYTHON" -c 'import libconf, jsonschema' 2>/dev/null; then
	"$SCHEMA_PYTHON" - "$src/configs" <<'PY'
import glob, json, sys, libconf, jsonschema
schema = jsonschema.Draft202012Validator(json.load(open("schema.json")))
schema.check_schema(schema.schema)
def plain(x):
    return {k: plain(v) for k, v in x.items()} if isinstance(x, dict) else [plain(v) for v in x] if isinstance(x, (list, tuple)) else x
def errors(text, folder="."):
    return [e.message for e in schema.iter_errors(plain(libconf.loads(text)))]
files = sorted(glob.glob(sys.argv[1] + "/*.cfg"))
wrong = [f"{f}: {e[0]}" for f in files if (e := errors(open(f).read()))]
print(f"not ok schema_configs: {wrong[0]}" if wrong or len(files) < 30 else "ok schema_configs")
good = '''schema = 1; data = { name = "x"; batch = 8; };
model = { input = [1, 8, 8]; layers = ( { type = "conv2d"; out = 4; kernel = [3, 3]; }, { block = "u"; n = 3; } ); };
train = { epochs = 1; optimizer = { type = "adamw"; lr = 1; }; };'''
cases = {"unknown_key": ("batch = 8", "batsch = 8"), "type": ("batch = 8", 'batch = "8"'), "range": ("batch = 8", "batch = -1"),
         "word": ('"adamw"', '"adamx"'), "layer_type": ('"conv2d"', '"conv3d"'), "layer_key": ("kernel =", "kernal ="),
         "layer_required": ("out = 4;", ""), "required": ('type = "adamw";', ""), "list": ("( {", "[ 1 ]; other = ( {"),
         "array_length": ("[3, 3]", "[3, 3, 3]"), "schema": ("schema = 1", "schema = 2")}
print(f"not ok schema_good: {errors(good)}" if errors(good) else "ok schema_good")
for name, (old, new) in cases.items():
    assert old in good
    print(f"ok schema_{name}" if errors(good.replace(old, new, 1)) else f"not ok schema_{name}: {new} is accepted")
PY
else
	skip schema 'python3 has no libconf and jsonschema (set SCHEMA_PYTHON)'
fi
