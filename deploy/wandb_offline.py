"""Logs a run of gtrain to Weights & Biases: log.command = "python3 wandb_offline.py". `wandb sync RUN/wandb/offline-*` uploads it later."""
import json, os, sys
import wandb

directory = os.environ["GTRAIN_RUN_DIR"]
config = {"config.cfg": open(os.path.join(directory, "config.cfg")).read()}
run = wandb.init(project="gtrain", id=os.path.basename(directory), resume="allow", mode="offline", dir=directory, config=config)
for line in sys.stdin:
    event = json.loads(line)
    group = {"train": "train", "epoch": "train_epoch"}.get(event["event"], event.get("split"))
    if group:
        scores = {k: v for k, v in event.items() if isinstance(v, (int, float)) and k not in ("step", "epoch", "samples", "time")}
        run.log({f"{group}/{k}": v for k, v in scores.items()}, step=event["step"])
run.finish()
