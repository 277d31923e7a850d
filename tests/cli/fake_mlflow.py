"""fake_mlflow.py DIR [PORT]: an HTTP server with the calls of MLflow's REST API that gtrain makes, for tests. It keeps its runs in
DIR/runs.json, so that it can be killed and started again, and writes its port to DIR/port and each request to DIR/requests. DIR/mode
is read before each request: words that make it misbehave.

  sleep=S      answers after S seconds          hang         never answers
  status=N     answers with the status N        text=NAME    answers with status 200 and a wrong body (see BODIES)
  lose=PATH    does what a request to PATH asks, but closes the connection instead of answering, once
  auth=HEADER  wants this Authorization         artifacts=URI  says that artifacts are there
"""
import json, os, sys, threading, time, urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

home = sys.argv[1]
lock = threading.Lock()
BODIES = {"garbage": b"<html>\x1b[31m</html>", "list": b"[1]", "deep": b"[" * 100000, "nul": b'{"experiment":{"experiment_id":"\\u0000"}}',
          "types": b'{"experiment":{"experiment_id":7,"lifecycle_stage":[]},"run":{"info":{"run_id":{}}},"experiment_id":true}',
          "path": b'{"experiment":{"experiment_id":"../../x"},"run":{"info":{"run_id":"../x"}},"experiment_id":"a/b"}',
          "long": b'{"a":"' + b"x" * (6 << 20) + b'"}', "empty": b""}


def load():
    path = os.path.join(home, "runs.json")
    return json.load(open(path)) if os.path.exists(path) else {"experiments": {}, "runs": {}}


def save(db):
    path = os.path.join(home, "runs.json")
    with open(path + ".tmp", "w") as f:
        json.dump(db, f)
    os.replace(path + ".tmp", path)


class Refused(Exception):
    pass


def answer(db, call, body, query, mode):
    """Does what a request asks, and returns the reply."""
    if call == "experiments/get-by-name":
        if query["experiment_name"] not in db["experiments"]:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", "Could not find the experiment")
        return {"experiment": db["experiments"][query["experiment_name"]]}
    if call == "experiments/create":
        if body["name"] in db["experiments"]:
            raise Refused(400, "RESOURCE_ALREADY_EXISTS", "exists")
        e = {"experiment_id": str(len(db["experiments"]) + 1), "name": body["name"], "lifecycle_stage": "active"}
        db["experiments"][body["name"]] = e
        return {"experiment_id": e["experiment_id"]}
    if call == "runs/create":
        run_id = f"{len(db['runs']):032x}"
        uri = mode.get("artifacts", "mlflow-artifacts:") + f"/{body['experiment_id']}/{run_id}/artifacts"
        db["runs"][run_id] = {"info": {"run_id": run_id, "experiment_id": body["experiment_id"], "run_name": body["run_name"],
                                       "status": "RUNNING", "start_time": body["start_time"], "artifact_uri": uri,
                                       "lifecycle_stage": "active"},
                              "params": {}, "tags": {t["key"]: t["value"] for t in body["tags"]}, "metrics": [], "files": {}}
        return {"run": {"info": db["runs"][run_id]["info"]}}
    if call == "runs/search":
        key = body["filter"].split("'")[1]
        return {"runs": [{"info": r["info"]} for r in db["runs"].values() if r["tags"].get("gtrain.key") == key]}
    run_id = body.get("run_id") or query.get("run_id")
    if run_id not in db["runs"]:
        raise Refused(404, "RESOURCE_DOES_NOT_EXIST", "Run not found")
    r = db["runs"][run_id]
    if call == "runs/get":
        return {"run": {"info": r["info"], "data": {"params": [{"key": k, "value": v} for k, v in r["params"].items()]}}}
    if call == "runs/update":
        r["info"].update(status=body["status"], end_time=body.get("end_time"))
        return {"run_info": r["info"]}
    if call == "runs/log-batch":
        parts = {k: body.get(k, []) for k in ("metrics", "params", "tags")}
        if len(parts["params"]) > 100 or len(parts["tags"]) > 100 or sum(map(len, parts.values())) > 1000:
            raise Refused(400, "INVALID_PARAMETER_VALUE", "too many")
        for p in parts["params"]:
            if r["params"].setdefault(p["key"], p["value"]) != p["value"]:
                raise Refused(400, "INVALID_PARAMETER_VALUE", "Changing param values is not allowed")
        r["tags"].update({t["key"]: t["value"] for t in parts["tags"]})
        have = {tuple(m) for m in r["metrics"]}
        for m in parts["metrics"]:
            entry = [m["key"], m["step"], m["timestamp"], m["value"]]
            if tuple(entry) not in have: # as the SQL store of MLflow: its primary key
                r["metrics"].append(entry)
        return {}
    raise Refused(404, "ENDPOINT_NOT_FOUND", call)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, data):
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def serve(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urllib.parse.urlparse(self.path)
        words = open(os.path.join(home, "mode")).read().split() if os.path.exists(os.path.join(home, "mode")) else []
        mode = dict(w.split("=", 1) if "=" in w else (w, "") for w in words)
        with lock, open(os.path.join(home, "requests"), "a") as f:
            print(self.command, self.path, file=f)
        if "hang" in mode:
            time.sleep(1000)
        time.sleep(float(mode.get("sleep", 0)))
        if "auth" in mode and self.headers.get("Authorization", "").replace(" ", "_") != mode["auth"]:
            return self.reply(401, b"who are you?")
        if "status" in mode:
            return self.reply(int(mode["status"]), b'{"error_code":"INTERNAL_ERROR","message":"\xc2\x9b31m\xe2\x80\xaehostile"}')
        if "text" in mode:
            return self.reply(200, BODIES[mode["text"]])
        with lock:
            db = load()
            try:
                out = self.upload(db, url, raw) or answer(db, url.path.split("/mlflow/")[-1], json.loads(raw or b"{}"),
                                                          dict(urllib.parse.parse_qsl(url.query)), mode)
                save(db)
                status = 200
            except Refused as e:
                status, out = e.args[0], {"error_code": e.args[1], "message": e.args[2]}
            if "lose" in mode and url.path.endswith(mode["lose"]):
                os.remove(os.path.join(home, "mode"))
                self.close_connection = True
                return
        self.reply(status, json.dumps(out).encode())

    def upload(self, db, url, raw):
        if "/mlflow-artifacts/" not in url.path:
            return None
        _, run_id, _, name = urllib.parse.unquote(url.path).split("/artifacts/", 1)[1].split("/", 3)
        db["runs"][run_id]["files"][name] = len(raw)
        return {"ok": 1}

    do_GET = do_POST = do_PUT = serve


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
with open(os.path.join(home, "port.tmp"), "w") as f:
    print(server.server_port, file=f)
os.replace(os.path.join(home, "port.tmp"), os.path.join(home, "port"))
server.serve_forever()
