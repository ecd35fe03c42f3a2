"""Attention: phrasings, layouts, groups of heads, masks, lengths, types."""
from .drawing import Task


def layouts(draw, task, dtype):
    """Queries, keys, values and results; the elements q(i), k(j), v(j) and y(i)."""
    grouped = draw.of(None, None, "divided", "axis")
    heads = ["H"]
    if grouped:
        draw.dim(task, "G", 2, 4, most=3)
    many = {"divided": ["H*G"], "axis": ["H", "G"]}.get(grouped, ["H"])
    index = {"divided": "h", "axis": "h,g"}.get(grouped, "h")
    own = "h//G" if grouped == "divided" else "h"
    last = draw.whether(0.35)
    rows = (lambda m, t: ["B", t] + m) if last else (lambda m, t: ["B"] + m + [t])
    at = (lambda m, t: "b,%s,%s" % (t, m)) if last else (lambda m, t: "b,%s,%s" % (m, t))
    task.take("q", rows(many, "L") + ["D"], dtype)
    flipped = draw.whether(0.15) and not last
    task.take("k", ["B"] + heads + ["D", "S"] if flipped else rows(heads, "S") + ["D"], dtype)
    task.take("v", rows(heads, "S") + ["E"], dtype)
    task.give("y", rows(many, "L") + ["E"], draw.of(dtype, dtype, "f32"))
    key = "k[b,%s,d,j]" % own if flipped else "k[%s,d]" % at(own, "j")
    return index, "q[%s,d]" % at(index, "i"), key, "v[%s,e]" % at(own, "j"), \
        "y[%s,e]" % at(index, "i")


def mask(draw, task):
    """(condition or "", range form of it or "")"""
    kind = draw.of("none", "none", "causal", "causal", "window", "length", "segments", "prefix",
                   "blocks", "bits", "late")
    if kind == "causal":
        return "j <= i", "j <= i"
    if kind == "late":
        return "j <= i + (S - L)", ""
    if kind == "window":
        w = draw.of(1, 7, 32)
        return "j <= i && j > i - %d" % w, "i - %d < j <= i" % w
    if kind == "length":
        task.take("n", ["B"], "i32", "randint(1, S + 1)")
        return "j < n[b]", "j < n[b]"
    if kind == "segments":
        task.take("seg", ["B", "S"], "i32", "randint(0, 3)")
        return "seg[b,minimum(i, S - 1)] == seg[b,j]", ""
    if kind == "prefix":
        return "j <= i || j < 5", ""
    if kind == "blocks":
        return "j//16 <= i//16", ""
    if kind == "bits":
        task.take("keep", ["L", "S"], "bool", "bernoulli(0.7)")
        return "keep[i,j]", ""
    return "", ""


def scores(draw, task, index, q, k):
    """The text of a score, without its mask."""
    product = draw.of("sum(d) %s*%s" % (q, k), "sum(d) %s * %s" % (k, q))
    scale = draw.of("(%s)/sqrt(D)", "(%s)*0.125", "(%s)*rsqrt(D)", "(%s)")
    score = scale % product
    extra = draw.of("", "", "", "cap", "slope", "bias")
    if extra == "cap":
        score = "30*tanh((%s)/30)" % score
    if extra == "slope":
        task.take("slope", ["H"], "f32", "uniform(0.01, 0.5)", "param")
        score = "%s - slope[%s]*abs(i - j)" % (score, "h//G" if "h//G" in k else "h")
    if extra == "bias":
        task.take("bias", ["L", "S"], draw.of("f32", "bf16"))
        score = "%s + bias[i,j]" % score
    return score


def attend(draw):
    task = Task()
    draw.dim(task, "B", 1, 3, most=2)
    draw.dim(task, "H", 1, 4, most=3)
    few = draw.whether(0.3)
    draw.dim(task, "L", 1 if few else 16, 6 if few else 160, most=5 if few else 40)
    if draw.whether(0.4):
        draw.dim(task, "S", 16, 400, most=48)
    else:
        task.fixed("S", "L")
    draw.dim(task, "D", 4, 136, most=40)
    if draw.whether(0.8):
        task.fixed("E", "D")
    else:
        draw.dim(task, "E", 4, 136, most=40)
    dtype = draw.precision(task, ("f16", "bf16", "bf16", "f32"))
    index, q, k, v, y = layouts(draw, task, dtype)
    condition, bounds = mask(draw, task)
    score = scores(draw, task, index, q, k)
    row = "b,%s,i" % index
    limit = "j"
    how = draw.of("if", "if", "guard", "range", "term") if condition else "none"
    if how == "range" and not (bounds and "S" not in task.checks[0] and "j <= i" in bounds):
        how = "guard"
    if how == "if":
        score = "if(%s, %s, -inf)" % (condition, score)
    if how == "term":
        score = "%s + if(%s, 0, -inf)" % (score, condition)
    if how == "guard":
        limit = "j < S | " + condition
    if how == "range":
        limit = bounds
    kept = "s[%s,j]" % row
    task.line("let s[%s,j < S] = %s" % (row, score))
    phrase(draw, task, row, kept, limit, v, y)
    if draw.whether(0.15):
        heads = ["H", "G"] if ",g" in index else ["H*G" if "h//G" in k else "H"]
        task.give("lse", ["B"] + heads + ["L"])
        task.line("let mm[%s] = max(%s) %s" % (row, limit, kept))
        task.line("lse[%s] = mm[%s] + log(sum(%s) exp(%s - mm[%s]))" % (row, row, limit, kept,
                                                                         row))
    return task


def phrase(draw, task, row, s, limit, v, y):
    """The softmax and the mix of the values in one of its phrasings."""
    how = draw.of("outside", "inside", "reciprocal", "logarithm", "weights", "typed")
    task.line("let m[%s] = max(%s) %s" % (row, limit, s))
    if how == "logarithm":
        task.line("let l[%s] = m[%s] + log(sum(%s) exp(%s - m[%s]))" % (row, row, limit, s, row))
        task.line("%s = sum(%s) exp(%s - l[%s])*%s" % (y, limit, s, row, v))
        return
    weight = "exp(%s - m[%s])" % (s, row)
    if how == "weights":
        task.line("let p[%s,j < S] = %s" % (row, weight))
        weight = "p[%s,j]" % row
    if how == "typed":
        task.line("let p[%s,j < S] : f32 = %s" % (row, weight))
        weight = "p[%s,j]" % row
    if how == "reciprocal":
        task.line("let z[%s] = 1/(sum(%s) %s)" % (row, limit, weight))
        task.line("%s = sum(%s) %s*z[%s]*%s" % (y, limit, weight, row, v))
        return
    task.line("let z[%s] = sum(%s) %s" % (row, limit, weight))
    if how == "inside":
        task.line("%s = sum(%s) %s/z[%s]*%s" % (y, limit, weight, row, v))
    else:
        task.line("%s = (sum(%s) %s*%s)/z[%s]" % (y, limit, weight, v, row))


def linear(draw):
    """Linear attention with a feature map, whole or causal."""
    task = Task()
    draw.dim(task, "B", 1, 3, most=2)
    draw.dim(task, "L", 8, 200, most=33)
    draw.dim(task, "D", 4, 64, most=17)
    draw.dim(task, "E", 4, 64, most=17)
    dtype = draw.precision(task)
    task.take("q", ["B", "L", "D"], dtype)
    task.take("k", ["B", "L", "D"], dtype)
    task.take("v", ["B", "L", "E"], dtype)
    task.give("y", ["B", "L", "E"], dtype)
    task.line("def f(t) = elu(t, 1) + 1")
    if draw.whether():
        task.line("let s[b,d,e] = sum(j) f(k[b,j,d])*v[b,j,e]")
        task.line("let z[b,d] = sum(j) f(k[b,j,d])")
        task.line("y[b,i,e] = (sum(d) f(q[b,i,d])*s[b,d,e])/(sum(d) f(q[b,i,d])*z[b,d])")
    else:
        task.line("let a[b,i,j < L] = sum(d) f(q[b,i,d])*f(k[b,j,d])")
        task.line("y[b,i,e] = (sum(j <= i) a[b,i,j]*v[b,j,e])/(sum(j <= i) a[b,i,j])")
    return task


RULES = (attend, attend, attend, attend, attend, attend, attend, linear)
