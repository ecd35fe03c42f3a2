"""Reductions over any axes: norms, softmax, losses, statistics, several outputs."""
from .drawing import Task, applied

NAMES = (("A", "a"), ("B", "b"), ("C", "c"), ("D", "d"))


class Space:
    """A tensor of two to four axes and a choice of those that are reduced."""

    def __init__(self, draw, task, most_elements=40000):
        rank = draw.of(2, 2, 3, 3, 4)
        self.axes = NAMES[:rank]
        each = most_elements ** (1 / rank)
        long = draw.between(0, rank - 1) if draw.whether(0.4) else None
        for at, (name, _) in enumerate(self.axes):
            low, high = (2, 2*each) if long is None else ((each, 6*each) if at == long else
                                                         (1, each/2))
            draw.dim(task, name, max(1, int(low)), max(2, int(high)), most=33 if rank < 4 else 7)
        count = draw.between(1, max(1, rank - 1)) if draw.whether(0.9) else rank
        chosen = sorted(draw.random.sample(range(rank), count)) if draw.whether(0.5) else \
            list(range(rank - count, rank))
        self.reduced = [self.axes[i] for i in chosen]
        self.kept = [a for i, a in enumerate(self.axes) if i not in chosen]
        self.extents = [a[0] for a in self.axes]
        self.at = ",".join(a[1] for a in self.axes)
        self.over = ",".join(a[1] for a in self.reduced)
        self.row = "[%s]" % ",".join(a[1] for a in self.kept) if self.kept else ""
        self.row_extents = [a[0] for a in self.kept]
        self.count = "*".join(a[0] for a in self.reduced)


def norm(draw):
    task = Task()
    space = Space(draw, task)
    dtype = draw.precision(task)
    task.take("x", space.extents, dtype)
    x = "x[%s]" % space.at
    if draw.whether(0.4):
        task.take("r", space.extents, dtype)
        typed = draw.of("", " : " + dtype)
        task.line("let h[%s]%s = %s + r[%s]" % (space.at, typed, x, space.at))
        x = "h[%s]" % space.at
        if draw.whether():
            task.give("stream", space.extents, dtype)
            task.line("stream[%s] = %s" % (space.at, x))
    elif draw.whether(0.3):
        task.line("let h[%s] = %s" % (space.at, applied(draw, x)))
        x = "h[%s]" % space.at
    row, over = space.row, space.over
    kind = draw.of("layer", "moments", "rms", "length", "sums", "standard")
    if kind == "rms":
        task.line("let q%s = mean(%s) %s*%s" % (row, over, x, x))
        value = "%s*rsqrt(q%s + 1e-5)" % (x, row)
    elif kind == "length":
        task.line("let q%s = sum(%s) %s*%s" % (row, over, x, x))
        value = "%s/maximum(sqrt(q%s), 1e-6)" % (x, row)
    else:
        task.line("let mu%s = %s" % (row, "(sum(%s) %s)/(%s)" % (over, x, space.count)
                                     if kind == "sums" else "mean(%s) %s" % (over, x)))
        if kind == "moments":
            task.line("let var%s = maximum((mean(%s) %s*%s) - mu%s*mu%s, 0)" % (row, over, x, x,
                                                                                row, row))
        else:
            task.line("let var%s = mean(%s) (%s - mu%s)*(%s - mu%s)" % (row, over, x, row, x,
                                                                        row))
        value = "(%s - mu%s)" % (x, row)
        value += "/sqrt(var%s + 1e-3)" % row if kind == "standard" else \
            "*rsqrt(var%s + 1e-3)" % row
    if draw.whether():
        last = space.axes[-1] if draw.whether(0.7) else space.axes[0]
        task.take("g", [last[0]], draw.of("f32", dtype), "ones", "param")
        value = "%s*g[%s]" % (value, last[1])
    if draw.whether(0.3):
        value = applied(draw, value)
    task.give("y", space.extents, draw.of("f32", dtype))
    task.line("y[%s] = %s" % (space.at, value))
    return task


def softmax(draw):
    task = Task()
    space = Space(draw, task)
    dtype = draw.precision(task)
    task.take("x", space.extents, dtype)
    x = "x[%s]" % space.at
    if draw.whether(0.4):
        task.take("keep", space.extents, "bool", "bernoulli(0.8)")
        x = "if(keep[%s], %s, -inf)" % (space.at, x) if draw.whether() else \
            "(%s + if(keep[%s], 0, -100))" % (x, space.at)
    if draw.whether(0.3):
        x = "(%s)/0.7" % x
    row, over = space.row, space.over
    if draw.whether():
        task.line("let s[%s] = %s" % (space.at, x))
        x = "s[%s]" % space.at
    task.line("let m%s = max(%s) %s" % (row, over, x))
    kind = draw.of("plain", "plain", "log", "lse", "entropy", "weights")
    if kind == "plain":
        task.give("y", space.extents, dtype)
        task.line("let z%s = sum(%s) exp(%s - m%s)" % (row, over, x, row))
        task.line("y[%s] = exp(%s - m%s)/z%s" % (space.at, x, row, row))
    elif kind == "weights":
        task.give("y", space.row_extents, "f32")
        task.take("v", space.extents, dtype)
        task.line("let z%s = sum(%s) exp(%s - m%s)" % (row, over, x, row))
        task.line("y%s = (sum(%s) exp(%s - m%s)*v[%s])/z%s" % (row, over, x, row, space.at, row))
    elif kind == "log":
        task.give("y", space.extents, dtype)
        task.line("let z%s = log(sum(%s) exp(%s - m%s))" % (row, over, x, row))
        task.line("y[%s] = %s - m%s - z%s" % (space.at, x, row, row))
    elif kind == "lse":
        task.give("y", space.row_extents)
        task.line("y%s = m%s + log(sum(%s) exp(%s - m%s))" % (row, row, over, x, row))
    else:
        task.give("y", space.row_extents)
        task.line("let z%s = sum(%s) exp(%s - m%s)" % (row, over, x, row))
        task.line("let t%s = sum(%s) exp(%s - m%s)*(%s - m%s)" % (row, over, x, row, x, row))
        task.line("y%s = log(z%s) - t%s/z%s" % (row, row, row, row))
    return task


def statistics(draw):
    """One or several reductions, by several outputs."""
    task = Task()
    space = Space(draw, task)
    dtype = draw.precision(task)
    task.take("x", space.extents, dtype)
    x = "x[%s]" % space.at
    guard = ""
    if draw.whether(0.35):
        task.take("keep", space.extents, "bool", "bernoulli(0.7)")
        guard = " | keep[%s]" % space.at
    row = space.row
    for number in range(draw.between(1, 3)):
        name = "y%d" % number
        kind = draw.of("sum", "mean", "max", "min", "squares", "norm", "arg", "count", "absolute")
        if kind == "arg" and (len(space.reduced) > 1 or guard):
            kind = "max"
        if kind == "arg":
            task.give(name, space.row_extents, draw.of("i32", "i64"))
            task.line("%s%s = %s(%s) %s" % (name, row, draw.of("argmax", "argmin"), space.over, x))
            continue
        if kind == "count":
            task.give(name, space.row_extents, "i32")
            task.line("%s%s = sum(%s%s) if(%s > 0.5, 1, 0)" % (name, row, space.over, guard, x))
            continue
        task.give(name, space.row_extents)
        body = {"squares": "sum(%s) %s*%s", "norm": "sqrt(sum(%s) %s*%s)",
                "absolute": "mean(%s) abs(%s)"}.get(kind, kind + "(%s) %s")
        filled = (space.over + guard, x, x)[:body.count("%s")]
        task.line("%s%s = %s" % (name, row, body % filled))
    return task


def loss(draw):
    task = Task()
    draw.dim(task, "N", 4, 300)
    draw.dim(task, "C", 3, 200, least=2)
    dtype = draw.precision(task)
    kind = draw.of("cross", "mse", "huber", "divergence", "bce", "hinge", "smooth", "triplet")
    task.take("x", ["N", "C"], dtype)
    end = draw.of("mean", "sum", "rows")
    task.give("y", ["N"] if end == "rows" else [])

    def finish(text):
        task.line("let each[n] = " + text)
        task.line("y[n] = each[n]" if end == "rows" else "y = %s(n) each[n]" % end)

    if kind in ("cross", "smooth"):
        task.take("t", ["N"], "i64", "randint(0, C)")
        task.line("let m[n] = max(c) x[n,c]")
        task.line("let l[n] = m[n] + log(sum(c) exp(x[n,c] - m[n]))")
        if kind == "smooth":
            finish("l[n] - 0.9*x[n,t[n]] - 0.1*(mean(c) x[n,c])")
        elif draw.whether():
            finish("l[n] - x[n,t[n]]")
        else:
            finish("sum(c) if(c == t[n], l[n] - x[n,c], 0)")
        return task
    task.take("t", ["N", "C"], "f32" if kind in ("divergence", "bce") else dtype,
              "uniform(0.01, 0.99)" if kind in ("divergence", "bce") else "normal(0, 1)")
    d = "(x[n,c] - t[n,c])"
    if kind == "mse":
        finish("mean(c) %s*%s" % (d, d))
    elif kind == "huber":
        finish("mean(c) if(abs(%s) < 1, 0.5*%s*%s, abs(%s) - 0.5)" % (d, d, d, d))
    elif kind == "bce":
        finish("mean(c) (maximum(x[n,c], 0) - x[n,c]*t[n,c] + log1p(exp(-abs(x[n,c]))))")
    elif kind == "hinge":
        finish("mean(c) maximum(0, 1 - x[n,c]*t[n,c])")
    elif kind == "triplet":
        task.take("u", ["N", "C"], dtype)
        task.line("let p[n] = sqrt((sum(c) square(x[n,c] - t[n,c])) + 1e-6)")
        task.line("let q[n] = sqrt((sum(c) square(x[n,c] - u[n,c])) + 1e-6)")
        finish("maximum(p[n] - q[n] + 1, 0)")
    else:
        task.line("assume t[n,c] > 0")
        task.line("let m[n] = max(c) x[n,c]")
        task.line("let l[n] = m[n] + log(sum(c) exp(x[n,c] - m[n]))")
        finish("sum(c) t[n,c]*(log(t[n,c]) - x[n,c] + l[n])")
    return task


def backward(draw):
    """Gradients of a norm or of a softmax."""
    task = Task()
    space = Space(draw, task)
    dtype = draw.precision(task)
    task.take("g", space.extents, dtype)
    task.take("x", space.extents, dtype)
    task.give("y", space.extents, dtype)
    at, row, over = space.at, space.row, space.over
    if draw.whether():
        task.line("let m%s = max(%s) x[%s]" % (row, over, at))
        task.line("let z%s = sum(%s) exp(x[%s] - m%s)" % (row, over, at, row))
        task.line("let p[%s] = exp(x[%s] - m%s)/z%s" % (at, at, row, row))
        task.line("let dot%s = sum(%s) p[%s]*g[%s]" % (row, over, at, at))
        task.line("y[%s] = p[%s]*(g[%s] - dot%s)" % (at, at, at, row))
    else:
        task.line("let q%s = rsqrt((mean(%s) x[%s]*x[%s]) + 1e-5)" % (row, over, at, at))
        task.line("let dot%s = mean(%s) g[%s]*x[%s]" % (row, over, at, at))
        task.line("y[%s] = q%s*(g[%s] - x[%s]*q%s*q%s*dot%s)" % (at, row, at, at, row, row, row))
    return task


def quantized(draw):
    task = Task()
    space = Space(draw, task)
    dtype = draw.precision(task)
    task.take("x", space.extents, dtype)
    task.give("q", space.extents, "i8")
    task.give("scale", space.row_extents)
    at, row = space.at, space.row
    task.line("let m%s = maximum(max(%s) abs(x[%s]), 0.00001)" % (row, space.over, at))
    task.line("scale%s = m%s/127" % (row, row))
    task.line("q[%s] = clamp(round(x[%s]*(127/m%s)), -127, 127)" % (at, at, row))
    return task


RULES = (norm, norm, norm, softmax, softmax, statistics, statistics, loss, backward, quantized)
