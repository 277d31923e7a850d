#!/bin/bash
# tests/run: beside others
# log.histograms: the histograms in the event file against the weights of the checkpoint, on one rank and in modes that divide weights.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
tiny_config
gives without_tensorboard 78 err 'log.histograms: expected 0, because histograms need log.tensorboard = true, got 1' \
	check tiny.cfg -s log.histograms=1
command -v python3 >/dev/null || { skip histograms 'python3 is not installed'; exit 0; }
cat >compare.py <<'PY'
import glob, json, math, struct, sys
run, epochs = sys.argv[1], [int(e) for e in sys.argv[2].split(",")]
def fields(b):
    """The fields of a protobuf message, as (number, value)."""
    def varint(at):
        v = shift = 0
        while True:
            v |= (b[at] & 127) << shift
            shift += 7
            at += 1
            if b[at - 1] < 128:
                return v, at
    at = 0
    while at < len(b):
        tag, at = varint(at)
        if tag & 7 == 0:
            v, at = varint(at)
        else:
            n, at = {1: (8, at), 5: (4, at)}.get(tag & 7) or varint(at)
            v, at = b[at:at + n], at + n
        yield tag >> 3, v
raw, found = open(glob.glob(run + "/events*")[0], "rb").read(), {}
while raw:
    n, = struct.unpack("<Q", raw[:8])
    event, raw = dict(fields(raw[12:12 + n])), raw[16 + n:]
    for _, value in fields(event.get(5, b"")):
        value = dict(fields(value))
        if 5 in value:
            found.setdefault(value[1].decode(), {})[event[2]] = dict(fields(value[5]))
file = open(run + "/latest/model.safetensors", "rb").read()
n, = struct.unpack("<Q", file[:8])
tensors = json.loads(file[8:8 + n])
tensors.pop("__metadata__", None)
assert {"weights/" + k for k in tensors} == set(found), (set(tensors), set(found))
for name, t in tensors.items():
    begin, end = t["data_offsets"]
    w = struct.unpack(f"<{(end - begin) // 4}f", file[8 + n + begin:8 + n + end])
    assert list(found["weights/" + name]) == [8 * e for e in epochs], found
    h = found["weights/" + name][8 * epochs[-1]]
    least, most, num, total, squares = (struct.unpack("<d", h[k])[0] for k in range(1, 6))
    assert (least, most, num) == (min(w), max(w), len(w)), (name, least, most, num)
    # sums of the same doubles in the same order
    assert math.isclose(total, sum(w), abs_tol=1e-12) and math.isclose(squares, sum(x * x for x in w)), name
    limits, counts = (struct.unpack("<30d", h[k]) for k in (6, 7))
    assert sum(counts) == len(w) and limits[-1] == most and list(limits) == sorted(limits), name
    for k in range(30):
        low, high = limits[k - 1] if k else least, limits[k]
        inside = sum(low <= x < high or (k == 29 and x == high) for x in w)
        near = sum(abs(x - edge) < 1e-6 for x in w for edge in (low, high)) # a value at an edge may be on either side of it
        assert abs(inside - counts[k]) <= near, (name, k, inside, counts[k])
PY
hidden='model.layers=({type="flatten";},{name="a";type="linear";out=8;},{type="relu";},{name="b";type="linear";out=4;})'
histograms() { # NAME EPOCHS ARGS...
	local name=$1 epochs=$2 why
	shift 2
	run run tiny.cfg --device cpu -q --no-progress -o "$name" -s log.tensorboard=true -s "$hidden" "$@"
	if [ "$rc" = 0 ] && why=$(python3 compare.py "$name" "$epochs" 2>&1); then pass "$name"
	else fail "$name" "status $rc: $(tail -n 1 err)$(tail -n 1 <<<"${why-}")"; fi
}
histograms one_rank 1,2 -s log.histograms=1
histograms every_second 2,4 -s log.histograms=2 -s train.epochs=4 -s train.eval_every_epochs=0 -s checkpoint.every_epochs=0
histograms threads 1,2 -s log.histograms=1 --nproc 2 -s 'parallel.mode="dp"'
histograms zero 1,2 -s log.histograms=1 --nproc 2 -s 'parallel={mode="zero";stage=3;}' -s 'train.optimizer.type="adam"'
histograms pipe 1,2 -s log.histograms=1 --nproc 2 -s 'parallel={mode="pipe";chunks=2;}'
