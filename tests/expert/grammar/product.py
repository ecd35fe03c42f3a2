"""Sums of products: all layouts, batches, operands that are computed, and what follows them."""
from .drawing import Task, applied


def operand(draw, batch, row, col):
    """The axes of a matrix [batch.., row, col] in some order."""
    return draw.order(*(batch + [row, col])) if draw.whether(0.3) else \
        batch + draw.of([row, col], [col, row])


def read(name, extents, index):
    return "%s[%s]" % (name, ",".join(index[e] for e in extents))


def sizes(draw, task, largest):
    """M, N and K of a product, the larger ones not all together."""
    shape = draw.of("square", "few rows", "few columns", "long", "thin")
    m = n = k = (16, largest)
    if shape == "few rows":
        m = (1, 24)
    if shape == "few columns":
        n = (1, 24)
    if shape == "long":
        m, n, k = (1, 100), (8, 100), (512, 8 * largest)
    if shape == "thin":
        k = (2, 24)
    draw.dim(task, "M", *m)
    draw.dim(task, "N", *n)
    draw.dim(task, "K", *k, most=65)


INDEX = {"M": "i", "N": "j", "K": "k", "B": "b", "H": "h"}


def weights(draw, task, batch, dtype):
    """The second operand and its element: plain, scaled, of bytes, or packed by two."""
    kind = draw.of("plain", "plain", "plain", "bytes", "scaled", "shared")
    extents = operand(draw, [] if kind == "shared" else batch, "K", "N")
    if kind == "bytes":
        task.take("w", extents, "i8", "randint(-127, 128)", "param")
        task.take("scale", ["N"], "f32", "uniform(0.001, 0.01)", "param")
        return read("w", extents, INDEX), "%s*scale[j]"
    task.take("w", extents, dtype, "normal(0, 0.2)", draw.of("in", "param"))
    element = read("w", extents, INDEX)
    if kind == "scaled":
        task.take("g", ["K"], "f32", "uniform(0.5, 1.5)", "param")
        element = "(%s*g[k])" % element
    return element, "%s"


def left(draw, task, batch, dtype):
    """The first operand and its element."""
    extents = operand(draw, batch, "M", "K")
    task.take("x", extents, dtype)
    element = read("x", extents, INDEX)
    kind = draw.of("plain", "plain", "plain", "function", "rows", "sum")
    if kind == "function":
        element = draw.of("relu(%s)", "silu(%s)", "(%s - 0.5)", "square(%s)") % element
    if kind == "rows":
        element = element.replace("[i", "[at[i]").replace(",i", ",at[i]")
        task.take("at", ["M"], "i64", "randint(0, M)")
    if kind == "sum":
        task.take("x2", extents, dtype)
        element = "(%s + %s)" % (element, element.replace("x[", "x2[", 1))
    return element


def epilogue(draw, task, value, dtype, batch):
    """Maps of a result of the product."""
    for _ in range(draw.between(0, 3)):
        kind = draw.of("bias", "residual", "function", "scale", "rows")
        if kind == "bias" and "bias" not in value:
            task.take("bias", ["N"], dtype, "normal(0, 1)", "param")
            value = "(%s + bias[j])" % value
        if kind == "rows" and "shift" not in value:
            task.take("shift", ["M"], "f32")
            value = "(%s - shift[i])" % value
        if kind == "residual" and "res" not in value:
            task.take("res", batch + ["M", "N"], dtype)
            value = "(%s + res[%s])" % (value, ",".join(INDEX[e] for e in batch + ["M", "N"]))
        if kind == "scale":
            value = "%s*%s" % (value, draw.of("0.125", "(1/sqrt(K))", "3"))
        if kind == "function":
            value = applied(draw, value)
    return value


def matmul(draw):
    """A product with an epilogue, stored whole."""
    task = Task()
    batch = draw.of([], [], ["B"], ["B", "H"])
    sizes(draw, task, 200 if batch else 400)
    for name in batch:
        draw.dim(task, name, 1, 6, most=3)
    dtype = draw.precision(task)
    x = left(draw, task, batch, dtype)
    w, after = weights(draw, task, batch, dtype)
    out = operand(draw, batch, "M", "N")
    task.give("y", out, draw.of("f32", dtype))
    limits = draw.of("k", "k", "k", "k", "k <= i", "k | k % 3 != 1") if "at[" not in x else "k"
    if limits == "k <= i":
        limits = "k < K | k <= i"
    value = after % ("(sum(%s) %s)" % (limits, draw.of("%s*%s", "%s * %s") % (x, w)))
    if draw.whether(0.3):
        task.line("let s[%s] = %s" % (",".join(INDEX[e] for e in batch + ["M", "N"]), value))
        value = "s[%s]" % ",".join(INDEX[e] for e in batch + ["M", "N"])
    task.line("%s = %s" % (read("y", out, INDEX), epilogue(draw, task, value, dtype, batch)))
    return task


def gated(draw):
    """Two products of one operand, one a gate of the other."""
    task = Task()
    sizes(draw, task, 300)
    dtype = draw.precision(task)
    x = left(draw, task, [], dtype)
    first, second = draw.of((["N", "K"],) * 2, (["K", "N"],) * 2, (["K", "N"], ["N", "K"]))
    task.take("u", first, dtype, "normal(0, 0.2)", "param")
    task.take("v", second, dtype, "normal(0, 0.2)", "param")
    task.give("y", ["M", "N"], dtype)
    task.line("let a[i,j] = sum(k) %s*%s" % (x, read("u", first, INDEX)))
    task.line("let c[i,j] = sum(k) %s*%s" % (x, read("v", second, INDEX)))
    task.line("y[i,j] = " + draw.of("silu(a[i,j])*c[i,j]", "a[i,j]*sigmoid(c[i,j])",
                                    "gelu(c[i,j])*a[i,j]", "relu(a[i,j]) + c[i,j]"))
    return task


def reduced(draw):
    """Rows of a product reduced or normalised."""
    task = Task()
    sizes(draw, task, 300)
    dtype = draw.precision(task)
    x = left(draw, task, [], dtype)
    w, after = weights(draw, task, [], dtype)
    task.line("let s[i,j] = " + epilogue(draw, task, after % ("(sum(k) %s*%s)" % (x, w)), dtype,
                                         []))
    end = draw.of("softmax", "norm", "largest", "mean", "lse", "columns", "rms", "total")
    if end == "softmax":
        task.give("y", ["M", "N"], dtype)
        task.line("let m[i] = max(j) s[i,j]")
        task.line("let z[i] = sum(j) exp(s[i,j] - m[i])")
        task.line("y[i,j] = exp(s[i,j] - m[i])/z[i]")
    elif end == "norm":
        task.give("y", ["M", "N"], dtype)
        task.line("let mu[i] = mean(j) s[i,j]")
        task.line("let var[i] = mean(j) (s[i,j] - mu[i])*(s[i,j] - mu[i])")
        task.line("y[i,j] = (s[i,j] - mu[i])*rsqrt(var[i] + 1e-5)")
    elif end == "rms":
        task.give("y", ["M", "N"], dtype)
        task.line("let q[i] = mean(j) s[i,j]*s[i,j]")
        task.line("y[i,j] = s[i,j]*rsqrt(q[i] + 1e-5)")
    elif end == "lse":
        task.give("y", ["M"])
        task.line("let m[i] = max(j) s[i,j]")
        task.line("y[i] = m[i] + log(sum(j) exp(s[i,j] - m[i]))")
    elif end == "columns":
        task.give("y", ["N"])
        task.line("y[j] = %s(i) s[i,j]" % draw.of("mean", "max", "sum"))
    elif end == "total":
        task.give("y", [])
        task.line("y = %s(i,j) s[i,j]*s[i,j]" % draw.of("mean", "sum"))
    else:
        task.give("y", ["M"])
        task.line("y[i] = %s(j) s[i,j]" % ("max" if end == "largest" else "mean"))
    return task


def chained(draw):
    """A product of a product's results."""
    task = Task()
    sizes(draw, task, 160)
    draw.dim(task, "P", 8, 160)
    dtype = draw.precision(task)
    x = left(draw, task, [], dtype)
    task.take("w", ["N", "K"], dtype, "normal(0, 0.2)", "param")
    task.take("v", ["P", "N"], dtype, "normal(0, 0.2)", "param")
    task.give("y", ["M", "P"], dtype)
    typed = draw.of("", " : " + dtype)
    task.line("let h[i,j]%s = %s" % (typed, epilogue(draw, task, "(sum(k) %s*w[j,k])" % x, dtype,
                                                     [])))
    task.line("y[i,p] = sum(j) h[i,j]*v[p,j]")
    return task


def integers(draw):
    """Products of integers, exact."""
    task = Task()
    sizes(draw, task, 300)
    low = draw.of("i8", "u8")
    task.take("x", ["M", "K"], low, "randint(0, 128)")
    task.take("w", ["N", "K"], "i8", "randint(-127, 128)", "param")
    if draw.whether():
        task.give("y", ["M", "N"], "i32")
        task.line("y[i,j] = sum(k) x[i,k]*w[j,k]")
    else:
        task.take("a", ["M"], "f32", "uniform(0.01, 0.1)")
        task.take("b", ["N"], "f32", "uniform(0.01, 0.1)", "param")
        task.give("y", ["M", "N"], draw.of("f32", "bf16"))
        task.accuracy = "bf16"
        task.line("y[i,j] = (sum(k) x[i,k]*w[j,k])*a[i]*b[j]")
    return task


def packed(draw):
    """Weights of four bits, with a scale for each group of them."""
    task = Task()
    sizes(draw, task, 200)
    dtype = draw.precision(task, ("f16", "bf16"))
    group = draw.of(8, 32)
    task.take("x", ["M", "K"], dtype)
    task.take("q", ["N", "(K + 1)//2"], "u8", "randint(0, 256)", "param")
    task.take("s", ["N", "(K + %d)//%d" % (group - 1, group)], dtype, "uniform(0.01, 0.1)",
              "param")
    task.give("y", ["M", "N"], dtype)
    task.line("y[i,j] = sum(k) x[i,k]*((bit_and(shr(q[j,k//2], 4*(k %% 2)), 15) - 8)*s[j,k//%d])"
              % group)
    return task


RULES = (matmul, matmul, matmul, gated, reduced, reduced, chained, integers, packed)
