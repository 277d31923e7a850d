#!/bin/bash
# train.groups with frozen_until: losses and weights of PyTorch (make_freeze.py), the same curve in every parallel mode, the same bits in
# every mode with reproducible = "world", and after a resume before, at and after the end of the frozen epochs.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
# shellcheck source=tests/parity/freeze.sh
. "$src/tests/parity/freeze.sh"
go one --device "${PARITY_DEVICE:-cpu}"
as_torch one freeze.txt
every_mode -s 'train.groups=({match=["conv1.*"];frozen_until=0.7;},{match=["conv2.*"];frozen_until=1.0;})'
every_world
resumes whole '7 10 11 25'
# What is frozen stays to the bit, running statistics and optimizer states included.
go frozen -s train.steps=10
go start -s train.steps=1 -s train.optimizer.lr=0.0
got=$(moved "$tmp/frozen" "$tmp/start" | tr ' ' '\n' | grep -v '^exp_avg' | tr '\n' ' ')
if [ "$got" = 'fc1.bias fc1.weight fc2.bias fc2.weight ' ]; then pass freeze_stays; else fail freeze_stays "$got"; fi
python3 - "$tmp/frozen/latest" <<'END'
import json, struct, sys
raw = open(sys.argv[1] + "/optimizer.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
states = [k for k, t in json.loads(raw[8:8 + n]).items() if (".conv" in k or ".bn" in k)
          and any(raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]])]
print("ok freeze_no_state" if not states else f"not ok freeze_no_state: {states}")
END
gives freeze_check 0 out 'frozen for 1 epoch, then ' check "$cfg"
gives layer_decay_check 0 out 'fc2 1, fc1 0.5, conv2 0.25, conv1 0.125' check "$cfg" -s train.layer_decay=0.5
gives freeze_all 78 err 'in the epochs before 1' check "$cfg" -s 'train.groups=({match="*";frozen_until=1.0;})'
gives freeze_never 78 err 'these parameters would never be trained' check "$cfg" \
	-s 'train.groups=({match="conv?.*";frozen_until=2.0;freeze_after=2.0;})'
