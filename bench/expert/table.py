"""measured.tsv and torch.tsv as Markdown: a row a task, medians by workload, what is missing and why.

Speedups are against the better of eager and compiled in the numerics of the task's class, which is
what the kernel was held to."""
import collections
import os
import statistics

MEASURED = ["task", "workload", "accuracy", "choice", "strategy", "verdict", "time_us", "limit_us",
            "why"]
TORCH = ["task", "eager_us", "compiled_us", "eager_default_us", "compiled_default_us", "torch", "why"]


def torch_field(mode, numerics):
    return mode + ("_us" if numerics == "class" else "_default_us")


def best(rows):
    """The fastest right row of each task."""
    found = {}
    for r in rows:
        if r["verdict"] == "accepted" and r["time_us"]:
            t = found.get(r["task"])
            if not t or float(r["time_us"]) < float(t["time_us"]):
                found[r["task"]] = r
    return found


def name(task):
    return os.path.basename(task)[:-5]


def share(row):
    return float(row["limit_us"]) / float(row["time_us"])


def gain(row, reference, fields=("eager_us", "compiled_us")):
    """How many times faster than PyTorch's best of the fields; None: not known."""
    both = [float(reference[k]) for k in fields if reference.get(k)]
    return min(both) / float(row["time_us"]) if both else None


def times(value):
    return "%.2f" % value if value else ""


def rows_text(found, reference):
    yield "| task | class | ours, us | of the limit | eager, us | compiled, us | speedup |"
    yield "|---|---|---|---|---|---|---|"
    for task, r in found.items():
        t = reference.get(task, {})
        yield "| %s | %s | %s | %.2f | %s | %s | %s |" % (
            name(task), r["accuracy"], r["time_us"], share(r), t.get("eager_us") or "",
            t.get("compiled_us") or "", times(gain(r, t)))


def default_text(found, reference):
    rows = [(task, reference[task]) for task in found if reference.get(task, {}).get(
        "eager_default_us") or reference.get(task, {}).get("compiled_default_us")]
    if not rows:
        return
    yield ""
    yield "PyTorch's default numerics, where they differ from the class's (TF32 in convolutions alone):"
    yield ""
    yield "| task | class | ours, us | eager, us | compiled, us | speedup |"
    yield "|---|---|---|---|---|---|"
    for task, t in rows:
        r = found[task]
        yield "| %s | %s | %s | %s | %s | %s |" % (
            name(task), r["accuracy"], r["time_us"], t.get("eager_default_us") or "",
            t.get("compiled_default_us") or "",
            times(gain(r, t, ("eager_default_us", "compiled_default_us"))))


def workloads_text(found, reference):
    kinds = collections.defaultdict(list)
    for task, r in found.items():
        kinds[r["workload"]].append((share(r), gain(r, reference.get(task, {}))))
    yield ""
    yield "| workload | tasks | median of the limit | beside PyTorch | median speedup |"
    yield "|---|---|---|---|---|"
    for kind, pairs in sorted(kinds.items()):
        gains = [g for _, g in pairs if g]
        yield "| %s | %d | %.3f | %d | %s |" % (
            kind, len(pairs), statistics.median(s for s, _ in pairs), len(gains),
            "%.2f" % statistics.median(gains) if gains else "")


def summary_text(found, reference):
    gains = {t: gain(r, reference.get(t, {})) for t, r in found.items()}
    known = [g for g in gains.values() if g]
    cudnn = [gain(r, reference.get(t, {}), ("eager_us",)) for t, r in found.items()
             if "conv" in name(t)]
    cudnn = [g for g in cudnn if g]
    if known:
        yield ""
        yield "Geomean speedup over the better of eager and compiled: %.2f (%d tasks; faster on %d)." % (
            statistics.geometric_mean(known), len(known), sum(g > 1 for g in known))
    if cudnn:
        yield ""
        yield "Convolutions: eager PyTorch's (cuDNN's) time over ours is %.2f at the median (%d tasks)." % (
            statistics.median(cudnn), len(cudnn))


def reasons(task, rows, reference):
    """Why a task has no row, or no PyTorch beside it."""
    mine = [r for r in rows if r["task"] == task]
    if not mine:
        yield "ours: not measured"
    elif task not in best(mine):
        yield "ours: " + " ".join(filter(None, (mine[-1]["verdict"], mine[-1]["why"])))
    t = reference.get(task)
    if not t:
        yield "PyTorch: not measured"
    elif t.get("why"):
        yield "PyTorch: " + t["why"]
    elif not t.get("eager_us"):
        yield "PyTorch: no time"


def missing_text(wanted, rows, reference):
    lines = [(task, list(reasons(task, rows, reference))) for task in wanted]
    lines = [(task, why) for task, why in lines if why]
    if not lines:
        return
    yield ""
    yield "| missing | why |"
    yield "|---|---|"
    for task, why in lines:
        yield "| %s | %s |" % (name(task), "; ".join(why).replace("|", "\\|"))


def text(wanted, kinds, rows, torch_rows):
    found = best(rows)
    found = {t: dict(found[t], workload=kinds.get(t, "")) for t in wanted if t in found}
    reference = {r["task"]: r for r in torch_rows}
    facts = sorted({r["torch"] for r in torch_rows if r.get("torch")})
    parts = [["%d of %d tasks have a right kernel. %s" % (len(found), len(wanted), "; ".join(facts)),
              ""], rows_text(found, reference), workloads_text(found, reference),
             summary_text(found, reference), default_text(found, reference),
             missing_text(wanted, rows, reference)]
    return "".join(line + "\n" for part in parts for line in part)
