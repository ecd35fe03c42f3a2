"""Maps: elementwise, layout changes, gathers, pieces, steps of optimizers."""
from .drawing import Task, applied


def elementwise(draw):
    task = Task()
    rank = draw.between(1, 4)
    names = "NCHW"[:rank]
    for name in names:
        draw.dim(task, name, 2, {1: 9000, 2: 120, 3: 24, 4: 10}[rank], most=33 if rank < 3 else 9)
    dtype = draw.precision(task)
    at = ",".join(n.lower() for n in names)
    task.take("x", list(names), dtype)
    value = "x[%s]" % at
    for number in range(draw.between(0, 3)):
        kept = [n for n in names if draw.whether(0.6)] or [names[-1]]
        name = "a%d" % number
        task.take(name, kept, draw.of("f32", dtype))
        other = "%s[%s]" % (name, ",".join(n.lower() for n in kept))
        value = draw.of("(%s + %s)", "(%s*%s)", "(%s - %s)", "maximum(%s, %s)") % (value, other)
    value = applied(draw, value, draw.between(1, 3))
    task.give("y", list(names), draw.of("f32", dtype))
    task.line("y[%s] = %s" % (at, value))
    if draw.whether(0.2):
        task.give("also", list(names), dtype)
        task.line("also[%s] = %s" % (at, applied(draw, "x[%s]" % at)))
    return task


def moved(draw):
    """Permuted, flipped, rolled, strided, shifted, interleaved."""
    task = Task()
    rank = draw.between(2, 4)
    names = list("NCHW"[:rank])
    for name in names:
        draw.dim(task, name, 2, {2: 120, 3: 30, 4: 12}[rank], least=2, most=17)
    dtype = draw.precision(task)
    task.take("x", names, dtype)
    out = draw.order(*names)
    if draw.whether():
        draw.random.shuffle(out)
    task.give("y", out, draw.of(dtype, "f32"))
    index = {n: n.lower() for n in names}
    moved_axis = draw.of(*names)
    i = moved_axis.lower()
    kind = draw.of("none", "none", "flip", "roll", "shift", "halves", "edge")
    index[moved_axis] = {"flip": "%s - 1 - %s" % (moved_axis, i),
                         "roll": "(%s + 1) %% %s" % (i, moved_axis),
                         "halves": "%s//2" % i,
                         "edge": "clamp(%s + 2, 0, %s - 1)" % (i, moved_axis),
                         "shift": "%s - 1" % i}.get(kind, i)
    value = "x[%s]" % ",".join(index[n] for n in names)
    if kind == "shift":
        value = draw.of("if(%s > 0, %s, 0)" % (i, value), "pad(%s, 0)" % value)
    if draw.whether(0.4):
        value = applied(draw, value)
    task.line("y[%s] = %s" % (",".join(n.lower() for n in out), value))
    return task


def rotated(draw):
    """Rotary embedding: halves or neighbours."""
    task = Task()
    draw.dim(task, "B", 1, 3, most=2)
    draw.dim(task, "L", 4, 60, most=17)
    draw.dim(task, "H", 1, 6, most=3)
    draw.dim(task, "R", 2, 32, most=9)
    task.fixed("D", "2*R")
    dtype = draw.precision(task)
    task.take("x", ["B", "L", "H", "D"], dtype)
    task.take("co", ["L", "R"], "f32", "uniform(-1, 1)")
    task.take("si", ["L", "R"], "f32", "uniform(-1, 1)")
    task.give("y", ["B", "L", "H", "D"], dtype)
    if draw.whether():
        task.line("y[b,l,h,d] = x[b,l,h,d]*co[l,d % R] + if(d < R, -x[b,l,h,(d + R) % D], "
                  "x[b,l,h,(d + R) % D])*si[l,d % R]")
    else:
        task.line("y[b,l,h,d] = x[b,l,h,d]*co[l,d//2] + if(d % 2 == 0, -x[b,l,h,2*(d//2) + 1], "
                  "x[b,l,h,2*(d//2)])*si[l,d//2]")
    return task


def gathered(draw):
    task = Task()
    draw.dim(task, "V", 4, 300)
    draw.dim(task, "N", 2, 200)
    draw.dim(task, "E", 1, 100)
    dtype = draw.precision(task)
    task.take("ids", ["N"], draw.of("i64", "i32"), "randint(0, V)")
    task.take("table", ["V", "E"], dtype, "normal(0, 1)", "param")
    task.give("y", ["N", "E"], dtype)
    kind = draw.of("rows", "masked", "position", "bag")
    if kind == "rows":
        task.line("y[n,e] = " + applied(draw, "table[ids[n],e]"))
    elif kind == "masked":
        task.take("keep", ["N"], "bool", "bernoulli(0.8)")
        task.line("y[n,e] = if(keep[n], table[ids[n],e], 0)")
    elif kind == "position":
        task.take("place", ["N", "E"], dtype)
        task.line("y[n,e] = table[ids[n],e]*sqrt(E) + place[n,e]")
    else:
        task.take("bag", ["N", "4"], "i32", "randint(0, V)")
        task.line("y[n,e] = table[ids[n],e] + %s(r) table[bag[n,r],e]" % draw.of("sum", "mean"))
    return task


def joined(draw):
    """Two tensors side by side, by a condition or in pieces."""
    task = Task()
    draw.dim(task, "N", 2, 90)
    draw.dim(task, "A", 1, 60)
    draw.dim(task, "B", 1, 60)
    task.fixed("C", "A + B")
    dtype = draw.precision(task)
    task.take("x", ["N", "A"], dtype)
    task.take("z", ["N", "B"], dtype)
    task.give("y", ["N", "C"], dtype)
    task.line("y[n,c] = if(c < A, %s, %s)" % (applied(draw, "x[n,c]"), "z[n,c - A]"))
    return task


def stepped(draw):
    """A step of an optimizer, in place."""
    task = Task()
    draw.dim(task, "N", 30, 9000)
    kind = draw.of("momentum", "adam", "sign", "average", "rms")
    task.tensor("inout", "p", ["N"], draw.of("f32", "f32", "bf16"), "normal(0, 1)")
    dtype = task.tensors[-1].split(": ")[1].split()[0]
    task.accuracy = "bf16" if dtype == "bf16" else "fp32"
    task.take("g", ["N"], dtype)
    task.take("rate", [], "f32", "uniform(0.001, 0.1)")
    if kind == "average":
        task.line("p[i] = p[i] + rate*(g[i] - p[i])")
        return task
    task.tensor("inout", "m", ["N"], "f32", "normal(0, 0.1)" if kind != "rms" else
                "uniform(0, 0.1)")
    if kind == "momentum":
        task.line("let w[i] = 0.9*m[i] + g[i]")
        task.line("m[i] = w[i]")
        task.line("p[i] = p[i] - rate*(g[i] + 0.9*w[i])")
    elif kind == "sign":
        task.line("p[i] = p[i]*(1 - rate) - rate*sign(0.9*m[i] + 0.1*g[i])")
        task.line("m[i] = 0.99*m[i] + 0.01*g[i]")
    elif kind == "rms":
        task.line("assume m[i] >= 0")
        task.line("let w[i] = 0.99*m[i] + 0.01*g[i]*g[i]")
        task.line("m[i] = w[i]")
        task.line("p[i] = p[i] - rate*g[i]/(sqrt(w[i]) + 0.0001)")
    else:
        task.tensor("inout", "v", ["N"], "f32", "uniform(0, 0.01)")
        task.line("assume v[i] >= 0")
        task.line("let w[i] = lerp(m[i], g[i], 0.1)")
        task.line("let u[i] = 0.99*v[i] + 0.01*g[i]*g[i]")
        task.line("m[i] = w[i]")
        task.line("v[i] = u[i]")
        task.line("p[i] = p[i] - rate*w[i]*rsqrt(u[i] + 0.000001)")
    return task


RULES = (elementwise, elementwise, moved, moved, rotated, gathered, joined, stepped)
