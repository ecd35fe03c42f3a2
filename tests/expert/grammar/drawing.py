"""What the rules draw from, and the task that they build up line by line."""

ACCURACIES = {"f32": ("fp32", "tf32"), "f16": ("f16", "f16", "tf32"), "bf16": ("bf16", "bf16")}
SMALL = (1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 24, 31, 32, 33)


class Task:
    """Lines of a task. A dimension is drawn with its size and two sizes to be checked."""

    def __init__(self):
        self.dims, self.checks, self.tensors, self.lines = [], [{}, {}], [], []
        self.accuracy = None

    def dim(self, name, size, first, second):
        self.dims.append("%s = %d" % (name, size))
        self.checks[0][name], self.checks[1][name] = first, second
        return name

    def fixed(self, name, value):
        """One that follows from others, or a number that stays."""
        self.dims.append("%s = %s" % (name, value))
        return name

    def tensor(self, role, name, extents, dtype, data=""):
        self.tensors.append("%s %s%s : %s%s" % (role, name,
                                                "[%s]" % ",".join(extents) if extents else "",
                                                dtype, " ~ " + data if data else ""))

    def take(self, name, extents, dtype="f32", data="normal(0, 1)", role="in"):
        self.tensor(role, name, extents, dtype, data)

    def give(self, name, extents, dtype="f32"):
        self.tensor("out", name, extents, dtype)

    def line(self, text):
        self.lines.append(text)

    def text(self, name, about):
        checks = ["check " + ", ".join("%s = %d" % c for c in check.items())
                  for check in self.checks if check]
        accuracy = ["accuracy " + self.accuracy] if self.accuracy else []
        return "\n".join(['task %s "%s"' % (name, about)] + ["dim " + d for d in self.dims] +
                         self.tensors + self.lines + accuracy + checks) + "\n"


class Draw:
    """Choices from one random source."""

    def __init__(self, random):
        self.random = random

    def of(self, *choices):
        return self.random.choice(choices)

    def whether(self, chance=0.5):
        return self.random.random() < chance

    def between(self, low, high):
        return self.random.randint(low, high)

    def size(self, low, high):
        """Often a multiple of a power of two, often one more or less, often anything."""
        n = int(round(low * (high / low) ** self.random.random()))
        kind = self.random.random()
        if kind < 0.5:
            unit = self.of(4, 8, 16, 32, 64)
            n = max(unit, n // unit * unit) if n >= unit else n
        elif kind < 0.65:
            n += self.of(-1, 1)
        return max(low, n)

    def dim(self, task, name, low, high, least=1, most=33):
        """A dimension of a size from low to high, checked at two from `least` to `most`."""
        small = [s for s in SMALL if least <= s <= most] or [least]
        return task.dim(name, self.size(low, high), self.of(*small[:4]), self.of(*small))

    def precision(self, task, types=("f32", "f32", "f16", "bf16")):
        """The type of the operands; draws the accuracy class too."""
        dtype = self.of(*types)
        task.accuracy = self.of(*ACCURACIES[dtype])
        return dtype

    def order(self, *extents):
        """The same names in some order."""
        shuffled = list(extents)
        if self.whether(0.4):
            self.random.shuffle(shuffled)
        return shuffled


ONE_VALUE = ("relu(%s)", "silu(%s)", "gelu(%s)", "gelu_tanh(%s)", "sigmoid(%s)", "tanh(%s)",
             "hardswish(%s)", "mish(%s)", "leaky_relu(%s, 0.1)", "maximum(%s, 0)", "abs(%s)",
             "clamp(%s, -1, 1.5)", "%s*0.75", "%s + 0.5", "softplus(%s)", "elu(%s, 1)",
             "if(%s > 0, 1, -1)", "%s/3", "quick_gelu(%s)", "softsign(%s)")
# Those that a number near zero, or in front of a step, does not make undecidable.
SMOOTH = tuple(f for f in ONE_VALUE if not f.startswith("if("))


def applied(draw, value, times=1):
    """The value through some functions of one argument."""
    for _ in range(times):
        f = draw.of(*SMOOTH)
        value = f % ("(%s)" % value if "(%s" not in f else value)
    return value
