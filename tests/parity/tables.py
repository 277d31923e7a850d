"""Compares the facts and inputs of tables with pandas and numpy: tables.py TOOL TMP [FOLDER OF TABLES].

Types, medians, words and classes are the same; codes and labels of every row are the same. Means, standard deviations and inputs are those
of float64 up to the order of the sum: numpy adds pairwise, gtrain in order, and n additions of float64 differ by at most n * 2^-53 of the
sum of the magnitudes; inputs are rounded to float32 once."""
import csv, json, os, subprocess, sys
import numpy as np
import pandas as pd

tool, tmp = sys.argv[1:3]
NA = ["", "?", "NA", "nan", "NaN", "null"]
FEW = 20


def made_table(path):
    rng = np.random.default_rng(7)
    n = 3001
    jobs = np.array(["clerk", "cook, first", 'say "hi"', "Ärztin", "x"])
    with open(path, "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["age", "income", "job", "rooms", "zip", "code", "price"])
        for i in range(n):
            age = "" if rng.random() < 0.05 else str(rng.integers(18, 80))
            income = "NA" if rng.random() < 0.1 else repr(float(rng.lognormal(10, 2)))
            job = "?" if rng.random() < 0.03 else jobs[min(int(rng.exponential(1.2)), 4)]
            w.writerow([age, income, job, rng.integers(1, 9), "%05d" % rng.integers(0, 300), f"{rng.normal() * 1e-7:.9e}",
                        repr(float(rng.normal(3, 2)))])


def whole(v):
    return bool(np.all(np.mod(v, 1) == 0))


def kind(train):
    """The rule of gt_table_fit, for a column of strings with None where the value is missing."""
    s = train.dropna()
    if len(s) == 0 or (s.nunique() == 1 and train.notna().all()):
        return "ignore", None
    v = pd.to_numeric(s, errors="coerce")
    leading_zero = s.str.match(r"^[+-]?0\d+$").any()
    if v.notna().all() and not leading_zero:
        return ("categorical" if whole(v) and v.nunique() <= FEW else "continuous"), v
    return ("ignore" if s.nunique() == len(s) > FEW else "categorical"), None


def words(train, by_count):
    """Words in the order of codes or of classes, and whether they are compared as whole numbers."""
    s = train.dropna()
    v = pd.to_numeric(s, errors="coerce")
    numbers = v.notna().all() and not s.str.match(r"^[+-]?0\d+$").any() and whole(v)
    keys = v.astype("int64") if numbers else s
    counts = keys.value_counts()
    byname = (lambda k: k) if numbers else (lambda k: k.encode())
    order = sorted(counts.index, key=(lambda k: (-counts[k], byname(k))) if by_count else byname)
    return order, numbers


def indices(column, order, numbers, missing, unknown, first):
    keys = pd.to_numeric(column, errors="coerce") if numbers else column
    at = {k: i + first for i, k in enumerate(order)}
    return np.array([missing if pd.isna(c) else at.get(k, unknown) for c, k in zip(column, keys)], np.int32)


def close(a, b, scale, n, what):
    assert abs(a - b) <= scale * n * 2.0**-53, (what, a, b)


def compare(path, targets, task, header):
    out = os.path.join(tmp, "out")
    text = subprocess.run([tool, "learn", path, ",".join(targets), task, out], capture_output=True, text=True)
    assert text.returncode == 0, text.stderr
    table = json.loads(text.stdout)["table"]
    df = pd.read_csv(path, header=0 if header else None, dtype=str, keep_default_na=False, skipinitialspace=True)
    if not header:
        df.columns = [f"c{i + 1}" for i in range(df.shape[1])]
    df = df.map(str.strip)
    df = df.mask(df.isin(NA), None)
    keep = np.arange(len(df)) % 5 != 4
    train = df[keep]
    assert table["header"] == header and [c["name"] for c in table["columns"]] == list(df.columns)
    values, nas, codes, labels, numbers = [], [], [], None, []
    for c in table["columns"]:
        name, col, tr = c["name"], df[c["name"]], train[c["name"]]
        type_, v = ("target", None) if name in targets else kind(tr)
        assert c["type"] == type_, (name, c["type"], type_)
        if type_ == "categorical" or (type_ == "target" and task == "classes"):
            order, isnum = words(tr, type_ == "categorical")
            assert c["words"] == [str(k) for k in order] and c.get("whole", False) == isnum, name
            if type_ == "categorical":
                codes.append(indices(col, order, isnum, 0, 1, 2))
            else:
                labels = indices(col, order, isnum, -1, -1, 0)
                assert [str(k) for k in np.unique(pd.to_numeric(tr) if isnum else tr)] == c["words"]
        elif type_ in ("continuous", "target"):
            x = pd.to_numeric(tr).to_numpy(np.float64)
            median = np.nanmedian(x)
            filled = np.where(np.isnan(x), median, x)
            assert c["median"] == median and median == pd.Series(x).median(), name
            close(c["mean"], filled.mean(), np.abs(filled).mean(), len(x), name)
            std = filled.std()
            # the squares of the deviations are added up the same way; the square root halves the relative error
            close(c["std"], std, std, len(x), name)
            assert c.get("missing", False) == (bool(np.isnan(x).any()) and type_ == "continuous")
            full = pd.to_numeric(col).to_numpy(np.float64)
            if type_ == "target":
                numbers.append(full.astype(np.float32))
                continue
            values.append(((np.where(np.isnan(full), median, full) - c["mean"]) / (c["std"] or 1)).astype(np.float32))
            if c.get("missing"):
                nas.append(np.isnan(full).astype(np.float32))
    n = len(df)
    read = lambda kind, dtype, k: np.fromfile(f"{out}.{kind}", dtype).reshape(n, k)
    values += nas
    assert np.array_equal(read("values", np.float32, len(values)), np.stack(values, 1) if values else np.zeros((n, 0), np.float32))
    assert np.array_equal(read("codes", np.int32, len(codes)), np.stack(codes, 1) if codes else np.zeros((n, 0), np.int32))
    if task == "classes":
        assert np.array_equal(read("labels", np.int32, 1)[:, 0], labels)
    else:
        assert np.array_equal(read("targets", np.float32, len(targets)), np.stack(numbers, 1))
    print(f"# {os.path.basename(path)}: {n} rows, {len(values)} values, {len(codes)} codes, "
          f"{len(set(labels)) if labels is not None else len(targets)} {'classes' if labels is not None else 'targets'}: equal")


made = os.path.join(tmp, "made.csv")
made_table(made)
compare(made, ["rooms"], "classes", True)
compare(made, ["price"], "numbers", True)
compare(made, ["price", "code"], "numbers", True)
known = [("abalone.csv", ["c9"], "numbers", False), ("diabetes.csv", ["Outcome"], "classes", True), ("mushroom.csv", ["c1"], "classes",
                                                                                                     False),
         ("student-mat.csv", ["G3"], "numbers", True), ("student-mat.csv", ["G1", "G2", "G3"], "numbers", True)]
for name, targets, task, header in known:
    path = os.path.join(sys.argv[3], name) if len(sys.argv) > 3 else ""
    if os.path.exists(path):
        compare(path, targets, task, header)
print("ok tables")
