"""Scans, pooling, depthwise convolutions, stencils."""
from .drawing import Task, applied


def scanned(draw):
    task = Task()
    rank = draw.of(1, 2, 2, 3)
    names = list("BLC"[:rank]) if rank > 1 else ["L"]
    for name in names:
        draw.dim(task, name, *((8, 700) if name == "L" else (1, 20)))
    dtype = draw.precision(task)
    task.take("x", names, dtype)
    at = ",".join(n.lower() for n in names)
    inside = at.replace("l", "k")
    ranges = draw.of("k <= l", "k <= l", "k < l", "l <= k < L", "k < L | k <= l")
    kind = draw.of("sum", "sum", "max", "min", "squares", "mean", "guarded", "shifted", "log")
    if kind in ("max", "min", "mean", "log"):
        ranges = ranges.replace("k < l", "k <= l")
    body = "x[%s]" % inside
    task.give("y", names)
    out = "y[%s]" % at
    if kind == "guarded":
        task.take("keep", names, "bool", "bernoulli(0.7)")
        task.line("%s = sum(%s) if(keep[%s], %s, 0)" % (out, ranges, inside, body))
    elif kind == "squares":
        task.line("%s = sum(%s) %s*%s" % (out, ranges, body, body))
    elif kind == "shifted":
        task.line("%s = %s + sum(%s) %s" % (out, body.replace("k", "l"), ranges,
                                            "(%s)" % applied(draw, body)))
    elif kind == "log":
        task.line("%s = log(sum(%s) exp(%s))" % (out, ranges, body))
    else:
        task.line("%s = %s(%s) %s" % (out, kind, ranges, body))
    return task


def pooled(draw):
    task = Task()
    n = draw.of(1, 2, 2, 3)
    draw.dim(task, "N", 1, 3, most=2)
    draw.dim(task, "C", 1, 12, most=5)
    dtype = draw.precision(task)
    places, ranges, outs, ats, ins = [], [], [], [], []
    padded = False
    for size, tap, out, at in (("L", "r", "P", "p"), ("H", "s", "Q", "q"),
                               ("W", "t", "U", "u"))[:n]:
        taps, stride = draw.of(2, 3, 3, 5), draw.of(1, 2, 2, 3)
        before = draw.between(0, taps // 2)
        padded = padded or before > 0
        draw.dim(task, size, taps + 1, {1: 500, 2: 50, 3: 14}[n], least=taps, most=taps + 12)
        task.fixed(out, "(%s + %d - %d)//%d + 1" % (size, 2*before, taps, stride))
        places.append("%s%s+%s%s" % ("" if stride == 1 else "%d*" % stride, at, tap,
                                     "-%d" % before if before else ""))
        ranges.append("%s < %d" % (tap, taps))
        outs.append(out)
        ats.append(at)
        ins.append(size)
    task.take("x", ["N", "C"] + ins, dtype)
    task.give("y", ["N", "C"] + outs, dtype)
    kind = draw.of("max", "mean", "depthwise", "norm")
    x = "x[n,c,%s]" % ",".join(places)
    inside = "pad(%s, %s)" % (x, "-inf" if kind == "max" else "0") if padded else x
    out = "y[n,c,%s]" % ",".join(ats)
    if kind == "depthwise":
        extents = [r.split(" < ")[1] for r in ranges]
        task.take("w", ["C"] + extents, dtype, "normal(0, 0.5)", "param")
        task.line("%s = %s" % (out, draw.of("%s", "silu(%s)", "relu(%s)")
                               % ("sum(%s) %s*w[c,%s]"
                                  % (",".join(ranges), inside,
                                     ",".join(r.split()[0] for r in ranges)))))
    elif kind == "norm":
        task.line("%s = sqrt((sum(%s) %s*%s) + 1e-4)" % (out, ",".join(ranges), inside, inside))
    elif kind == "mean" and padded and draw.whether():
        guard = " && ".join("%s >= 0 && %s < %s" % (p, p, s) for p, s in zip(places, ins))
        task.line("%s = mean(%s | %s) %s" % (out, ",".join(ranges), guard, x))
    else:
        task.line("%s = %s(%s) %s" % (out, kind, ",".join(ranges), inside))
    return task


def stencil(draw):
    task = Task()
    draw.dim(task, "H", 4, 120, least=2)
    draw.dim(task, "W", 4, 120, least=2)
    dtype = draw.precision(task)
    task.take("x", ["H", "W"], dtype)
    task.give("y", ["H", "W"], dtype)
    kind = draw.of("laplace", "wrapped", "edges", "gradient")
    if kind == "laplace":
        task.line("y[i,j] = pad(x[i-1,j], 0) + pad(x[i+1,j], 0) + pad(x[i,j-1], 0) + "
                  "pad(x[i,j+1], 0) - 4*x[i,j]")
    elif kind == "wrapped":
        task.line("y[i,j] = x[i,j] + 0.1*(x[(i+1) % H,j] + x[(i+H-1) % H,j] - 2*x[i,j])")
    elif kind == "edges":
        task.line("y[i,j] = mean(a < 3, b < 3) x[clamp(i+a-1, 0, H-1),clamp(j+b-1, 0, W-1)]")
    else:
        task.line("y[i,j] = if(i > 0, x[i,j] - x[i-1,j], 0) + if(j > 0, x[i,j] - x[i,j-1], 0)")
    return task


RULES = (scanned, scanned, pooled, pooled, stencil)
