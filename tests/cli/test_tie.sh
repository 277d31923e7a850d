#!/bin/bash
# The key `tie` of a layer: what is refused, what `gtrain check` counts, and the names in state dicts: a file has a tied weight by the name
# of any of its layers, or by several names with equal values.
# tests/run: beside others
set -u
cfg=$GTRAIN_SRC/tests/par/nets/tie.cfg
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# refuses NAME SED TEXT: the net, changed by SED, is refused with TEXT
refuses() {
	sed "$2" "$cfg" >"$tmp/bad.cfg"
	"$GTRAIN" check "$tmp/bad.cfg" >"$tmp/out" 2>"$tmp/err"
	local rc=$?
	if [ $rc = 78 ] && grep -qF -- "$3" "$tmp/err"; then
		echo "ok tie_refuses_$1"
	else
		echo "not ok tie_refuses_$1: status $rc: $(cat "$tmp/err")"
	fi
}
refuses shape 's/out = 23; tie/out = 24; tie/'  \
	'(out): tie: expected a layer with a weight of shape [24, 17], as this layer needs, got "word" with [23, 17]'
refuses unknown 's/tie = "fc1"/tie = "fc9"/' '.tie: expected the name of an earlier layer, got "fc9"; did you mean "fc1"?'
refuses later 's/tie = "fc1"/tie = "out"/' '.tie: expected the name of an earlier layer, got "out"'
refuses no_weight 's/tie = "fc1"/tie = "act1"/' 'tie: expected the name of an earlier layer with a weight of two dimensions'
refuses input 's/tie = "fc1"/tie = "input"/' 'tie: expected the name of an earlier layer'
refuses number 's/tie = "fc1"/tie = 3/' '.tie: expected the name of a layer, got 3'
refuses init 's/tie = "fc1"/tie = "fc1"; init = "zeros"/' 'init: expected this key in the layer "fc1", whose weight this layer shares (tie)'
refuses init_std 's/tie = "fc1"/tie = "fc1"; init_std = 0.1/' 'init_std: expected this key in the layer "fc1"'
refuses type 's/"silu"; }/"silu"; tie = "fc1"; }/' \
	'tie: only layers of type "linear" and "embedding" can share a layer'\''s weight, got "silu"'
groups() { echo "s/^  optimizer = /  groups = ( { match = $1; frozen = true; } ); optimizer = /"; }
refuses group_alias "$(groups '["out.bias", "out.weight"]')" \
	'groups[0].match: expected the name of a parameter, got "out.weight": out.weight is an alias of word.weight (tie); write "word.weight"'
refuses group_pattern "$(groups '"agai*"')" 'got "agai*": again.weight is an alias of word.weight (tie)'
for match in '["word.weight", "out.weight"]' '"*.weight"' '"out.*"'; do
	sed "$(groups "$match")" "$cfg" >"$tmp/good.cfg"
	if "$GTRAIN" check "$tmp/good.cfg" >/dev/null 2>"$tmp/err"; then
		echo "ok tie_group $match"
	else
		echo "not ok tie_group $match: $(cat "$tmp/err")"
	fi
done

# the table counts a weight once, at the layer that owns it: 23 * 17, 17 * 17 + 17 + 17, 23, 4 * 23 + 4
"$GTRAIN" check --json "$cfg" >"$tmp/check" 2>&1
got=$(grep -o '"name":"[a-z0-9]*","type"[^}]*"params":[0-9]*' "$tmp/check" | 
	sed 's/"name":"\([^"]*\)".*:/\1=/' | grep -v '=0$' | tr '\n' ' ')
if [ "$got" = "word=391 fc1=306 fc2=17 out=23 fc=96 " ]; then
	echo "ok tie_check"
else
	echo "not ok tie_check: $got $(head -c 300 "$tmp/check")"
fi

# in a pipeline that sends the weights, the outputs are the layers' own, and each layer is in one stage
"$GTRAIN" check "$cfg" --world 2 --mode pipe -s 'parallel.cuts=["sum"]' >"$tmp/check" 2>&1
got=$(sed -n -e 's/^\(word\|again\|fc1\|fc2\) .*\(\[.*\]\).*/\1 \2/p' \
	-e 's/^ *[01]  [01] *\([0-9]*: [a-z0-9]* … [a-z0-9]*\) .*/\1/p' "$tmp/check" |
	paste -sd,)
if [ "$got" = 'word [6, 9, 17],again [6, 9, 17],fc1 [6, 9, 17],fc2 [6, 9, 17],4: word … act1,7: sum … fc' ]; then
	echo "ok tie_check_pipe"
else
	echo "not ok tie_check_pipe: $got"
fi

# dict OUT WHAT: the state dict of run `a`, as PyTorch's modules name it: WHAT is both, alias or other
dict() {
	python3 - "$tmp/a/latest/model.safetensors" "$1" "$2" <<'P'
import json, struct, sys
raw, what = open(sys.argv[1], "rb").read(), sys.argv[3]
(n,) = struct.unpack_from("<Q", raw)
head = json.loads(raw[8:8 + n])
head.pop("__metadata__", None)
data = {k: raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in head.items()}
out = {k: (head[k], v) for k, v in data.items()}
for alias, name in (("again.weight", "word.weight"), ("out.weight", "word.weight"), ("fc2.weight", "fc1.weight")):
    values = out[name][1]
    if what == "other" and alias == "out.weight":
        values = bytes(4) + values[4:]
    out[alias] = (head[name], values)
if what == "alias":
    for name in ("word.weight", "again.weight", "fc1.weight"):
        del out[name]
where, header, body = 0, {}, b""
for k, (h, v) in out.items():
    header[k] = {"dtype": h["dtype"], "shape": h["shape"], "data_offsets": [where, where + len(v)]}
    where += len(v)
    body += v
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + body)
P
}
run() { "$GTRAIN" run -q --no-progress "$cfg" -o "$tmp/$1" "${@:2}" >/dev/null 2>"$tmp/err"; }
sum() { sha256sum <"$tmp/$1/latest/model.safetensors"; }
run a && run want --init "$tmp/a/latest/model.safetensors" || echo "not ok tie_run: $(cat "$tmp/err")"
names=$(python3 -c 'import json,struct,sys; r=open(sys.argv[1],"rb").read(); print(*sorted(k for k in json.loads(
r[8:8 + struct.unpack_from("<Q", r)[0]]) if k != "__metadata__"))' "$tmp/a/latest/model.safetensors")
if [ "$names" = "fc.bias fc.weight fc1.bias fc1.weight fc2.bias out.bias word.weight" ]; then
	echo "ok tie_names"
else
	echo "not ok tie_names: $names"
fi
for what in both alias; do
	dict "$tmp/$what.safetensors" $what
	for how in "--init" "-s model.pretrained.file="; do
		rm -rf "$tmp/b"
		case $how in
		--init) run b --init "$tmp/$what.safetensors" ;;
		*) run b -s "model.pretrained.file=$tmp/$what.safetensors" ;;
		esac
		rc=$?
		name=${how//[^a-z]/}
		if [ $rc = 0 ] && [ "$(sum b)" = "$(sum want)" ]; then
			echo "ok tie_${what}_$name"
		else
			echo "not ok tie_${what}_$name: status $rc: $(cat "$tmp/err")"
		fi
	done
done
dict "$tmp/other.safetensors" other
for how in init pretrained; do
	rm -rf "$tmp/b"
	case $how in
	init) run b --init "$tmp/other.safetensors" ;;
	*) run b -s "model.pretrained.file=$tmp/other.safetensors" ;;
	esac
	rc=$?
	if [ $rc = 65 ] && grep 'expected equal tensors .*, which are one weight of this model (tie)' "$tmp/err" | grep -q 'out.weight'; then
		echo "ok tie_unequal_$how"
	else
		echo "not ok tie_unequal_$how: status $rc: $(cat "$tmp/err")"
	fi
done
