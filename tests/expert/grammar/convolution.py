"""Convolutions over one to three axes, and what follows them."""
from .drawing import Task, applied

AXES = (("L", "l", "r", "P", "p"), ("H", "h", "s", "Q", "q"), ("W", "w", "t", "U", "u"))


class Shape:
    """The axes of a convolution: filter, stride, padding, dilation of each."""

    def __init__(self, draw, task, transposed):
        self.n = draw.of(1, 2, 2, 2, 3)
        self.axes = AXES[:self.n]
        largest = {1: 400, 2: 40, 3: 12}[self.n]
        self.taps, self.index, self.extents = [], [], []
        for size, _, tap, out, at in self.axes:
            taps = draw.of(1, 2, 3, 3, 3, 4, 5, 7 if self.n < 3 else 2)
            stride = draw.of(1, 1, 1, 2, 3)
            dilation = draw.of(1, 1, 1, 2, 3 if self.n < 3 else 1)
            reach = (taps - 1)*dilation
            before = draw.between(0, min(reach, 3))
            self.taps.append("%s < %d" % (tap, taps) if draw.whether(0.2) else tap)
            self.extents.append(taps)
            if transposed:
                draw.dim(task, size, 5, largest // 2 + 3, least=1, most=9)
                task.fixed(out, "(%s - 1)*%d - %d + %d + 1" % (size, stride, before, reach))
                self.index.append((at, tap, before, dilation, stride, size))
            else:
                draw.dim(task, size, max(reach + 1, 5), largest + reach, least=reach + 1,
                         most=reach + 14)
                task.fixed(out, "(%s + %d - %d - 1)//%d + 1" % (size, 2*before, reach, stride))
                self.index.append((at, tap, before, dilation, stride, size))

    def ins(self):
        return [a[0] for a in self.axes]

    def outs(self):
        return [a[3] for a in self.axes]

    def at(self):
        return ",".join(a[4] for a in self.axes)

    def sums(self, first):
        return ",".join([first] + self.taps)

    def taps_read(self):
        return ",".join(a[2] for a in self.axes)

    def places(self):
        """Index of the input along each axis."""
        found = []
        for at, tap, before, dilation, stride, _ in self.index:
            text = at if stride == 1 else "%d*%s" % (stride, at)
            text += "+" + (tap if dilation == 1 else "%d*%s" % (dilation, tap))
            found.append(text + ("-%d" % before if before else ""))
        return found

    def back(self):
        """Guards and index of a transposed convolution along each axis."""
        guards, places = [], []
        for at, tap, before, dilation, stride, _ in self.index:
            text = "%s+%d-%s" % (at, before, tap if dilation == 1 else "%d*%s" % (dilation, tap))
            if stride > 1:
                guards.append("(%s) %% %d == 0" % (text, stride))
                text = "(%s)//%d" % (text, stride)
            places.append(text)
        return guards, places


def written(draw, x, places, sizes, weight):
    """Input times weight with zeros beyond the edges: as pad() or by guards."""
    plain = "%s[%s]" % (x[0], ",".join(x[1] + places))
    if draw.whether(0.75):
        return "", "pad(%s, 0)*%s" % (plain, weight)
    inside = " && ".join("%s >= 0 && %s < %s" % (p, p, s) for p, s in zip(places, sizes))
    if draw.whether():
        return inside, "%s*%s" % (plain, weight)
    return "", "if(%s, %s, 0)*%s" % (inside, plain, weight)


def core(draw, task, dtype):
    """A convolution without its epilogue: (text of the sum, its axes)."""
    transposed = draw.whether(0.25)
    grouped = draw.whether(0.25)
    draw.dim(task, "N", 1, 3, most=2)
    shape = Shape(draw, task, transposed)
    many = 40 if shape.n < 3 else 16
    if grouped:
        draw.dim(task, "G", 2, 4, most=3)
        draw.dim(task, "I", 1, many // 2, most=5)
        draw.dim(task, "J", 1, many // 2, most=5)
        task.fixed("C", "G*I")
        task.fixed("O", "G*J")
        channel, count, weight_channel = "(o//J)*I+c", "I", "o % J"
    else:
        draw.dim(task, "C", 1, many, most=9)
        draw.dim(task, "O", 1, 2*many, most=9)
        channel, count, weight_channel = "c", "C", "o"
    role = draw.of("in", "param", "param")
    task.take("x", ["N", "C"] + shape.ins(), dtype)
    taps = [str(n) for n in shape.extents]
    if transposed:
        task.take("w", ["C", "J" if grouped else "O"] + taps, dtype, "normal(0, 0.2)",
                  role)
        guards, places = shape.back()
        weight = "w[%s,%s,%s]" % (channel, weight_channel, shape.taps_read())
    else:
        task.take("w", ["O", count] + taps, dtype, "normal(0, 0.2)", role)
        guards, places = [], shape.places()
        weight = "w[o,c,%s]" % shape.taps_read()
    inside, term = written(draw, ("x", ["n", channel]), places, shape.ins(), weight)
    ranges = shape.sums("c < I" if grouped else "c")
    conditions = " && ".join(guards + ([inside] if inside else []))
    value = "(sum(%s%s) %s)" % (ranges, " | " + conditions if conditions else "", term)
    if grouped:  # no index of what is summed says how far o goes
        ranged = ",".join("%s < %s" % (axis[4], axis[3]) for axis in shape.axes)
        task.line("let sums[n,o < O,%s] = %s" % (ranged, value))
        value = "sums[n,o,%s]" % shape.at()
    return value, shape


def epilogue(draw, task, value, dtype, shape):
    for _ in range(draw.between(0, 3)):
        kind = draw.of("bias", "norm", "function", "residual")
        if kind == "bias" and "bias" not in value:
            task.take("bias", ["O"], dtype, "normal(0, 1)", "param")
            value = "(%s + bias[o])" % value
        if kind == "norm" and "rv" not in value:
            task.take("rm", ["O"], "f32", "normal(0, 0.5)", "param")
            task.take("rv", ["O"], "f32", "uniform(0.5, 1.5)", "param")
            task.line("assume rv[o] > 0.25")
            value = "((%s - rm[o])*rsqrt(rv[o] + 1e-5))" % value
        if kind == "residual" and "res" not in value:
            task.take("res", ["N", "O"] + shape.outs(), dtype)
            value = "(%s + res[n,o,%s])" % (value, shape.at())
        if kind == "function":
            value = applied(draw, value)
    return value


def plain(draw):
    """A convolution with maps after it."""
    task = Task()
    dtype = draw.precision(task)
    value, shape = core(draw, task, dtype)
    task.give("y", ["N", "O"] + shape.outs(), draw.of("f32", dtype))
    if draw.whether(0.3):
        task.line("let con[n,o,%s] = %s" % (shape.at(), value))
        value = "con[n,o,%s]" % shape.at()
    task.line("y[n,o,%s] = %s" % (shape.at(), epilogue(draw, task, value, dtype, shape)))
    return task


def followed(draw):
    """A convolution, maps, and a reduction over channels or places."""
    task = Task()
    dtype = draw.precision(task)
    value, shape = core(draw, task, dtype)
    at, outs = shape.at(), shape.outs()
    typed = draw.of("", "", " : " + dtype)
    ranged = ",".join("%s < %s" % (axis[4], axis[3]) for axis in shape.axes)
    task.line("let con[n,o,%s]%s = %s" % (ranged, typed, epilogue(draw, task, value, dtype, shape)))
    kind = draw.of("average", "largest", "channels", "softmax", "instance", "group", "lse",
                   "least")
    if kind in ("average", "largest"):
        task.give("y", ["N", "O"], draw.of("f32", dtype))
        if kind == "average" and draw.whether():
            task.line("y[n,o] = (sum(%s) con[n,o,%s])/(%s)" % (at, at, "*".join(outs)))
        else:
            task.line("y[n,o] = %s(%s) con[n,o,%s]" % ("mean" if kind == "average" else "max", at,
                                                     at))
    elif kind in ("channels", "least"):
        task.give("y", ["N"] + outs, draw.of("f32", dtype))
        task.line("y[n,%s] = %s(o) con[n,o,%s]" % (at, draw.of("max", "mean", "sum")
                                                 if kind == "channels" else "min", at))
    elif kind == "softmax":
        task.give("y", ["N", "O"] + outs, dtype)
        task.line("let m[n,%s] = max(o) con[n,o,%s]" % (at, at))
        task.line("let z[n,%s] = sum(o) exp(con[n,o,%s] - m[n,%s])" % (at, at, at))
        task.line("y[n,o,%s] = exp(con[n,o,%s] - m[n,%s])/z[n,%s]" % (at, at, at, at))
    elif kind == "lse":
        task.give("y", ["N"] + outs)
        task.line("let m[n,%s] = max(o) con[n,o,%s]" % (at, at))
        task.line("y[n,%s] = m[n,%s] + log(sum(o) exp(con[n,o,%s] - m[n,%s]))" % (at, at, at, at))
    else:
        task.give("y", ["N", "O"] + outs, dtype)
        over = at if kind == "instance" else "o," + at
        per = "n,o" if kind == "instance" else "n"
        task.line("let mu[%s] = mean(%s) con[n,o,%s]" % (per, over, at))
        task.line("let var[%s] = mean(%s) (con[n,o,%s] - mu[%s])*(con[n,o,%s] - mu[%s])"
                  % (per, over, at, per, at, per))
        task.line("y[n,o,%s] = (con[n,o,%s] - mu[%s])*rsqrt(var[%s] + 1e-5)" % (at, at, per, per))
    return task


def pooled(draw):
    """A convolution over two axes and a pooling of its results."""
    task = Task()
    dtype = draw.precision(task)
    draw.dim(task, "N", 1, 3, most=2)
    draw.dim(task, "C", 1, 24, most=9)
    draw.dim(task, "O", 1, 64, most=9)
    for name in "HW":
        draw.dim(task, name, 8, 40, least=6, most=17)
    before = draw.of(0, 1)
    pool = draw.of(2, 3)
    task.fixed("P", "H + %d" % (2*before - 2))
    task.fixed("Q", "W + %d" % (2*before - 2))
    task.fixed("R", "P//%d" % pool)
    task.fixed("S", "Q//%d" % pool)
    task.take("x", ["N", "C", "H", "W"], dtype)
    task.take("k", ["O", "C", "3", "3"], dtype, "normal(0, 0.2)", "param")
    task.take("bias", ["O"], dtype, "normal(0, 1)", "param")
    task.give("y", ["N", "O", "R", "S"], dtype)
    place = "x[n,c,p+r%s,q+s%s]" % (("-1",)*2 if before else ("", ""))
    task.line("let h[n,o,p < P,q < Q] = bias[o] + sum(c,r,s) %s*k[o,c,r,s]"
              % ("pad(%s, 0)" % place if before else place))
    task.line("y[n,o,a,b] = %s(d < %d, e < %d) %s"
              % (draw.of("max", "mean"), pool, pool,
                 draw.of("%s", "relu(%s)", "silu(%s)") % ("h[n,o,%d*a+d,%d*b+e]" % (pool, pool))))
    return task


RULES = (plain, plain, plain, followed, followed, pooled)
