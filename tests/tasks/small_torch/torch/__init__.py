"""Enough of PyTorch for a task's torch line to be evaluated without it: tensors that are lists of numbers."""
import contextlib
import struct

__version__ = "0.0-small"


class _Dtype:
    def __init__(self, code):
        self.code, self.size = code, struct.calcsize("=" + code)


float64, float32, int8, uint8, int32, int64, bool = map(_Dtype, "dfbBiq?")
float16, bfloat16 = _Dtype("e"), _Dtype("H")


class Tensor:
    def __init__(self, values, dtype, shape, buffer=None):
        self.values, self.dtype, self.shape, self.buffer = list(values), dtype, tuple(shape), buffer

    def _each(self, other, function, dtype=None):
        others = other.values if isinstance(other, Tensor) else [other] * len(self.values)
        return Tensor(map(function, self.values, others), dtype or self.dtype, self.shape)

    def __add__(self, other):
        return self._each(other, lambda a, b: a + b)

    def __mul__(self, other):
        return self._each(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __eq__(self, other):
        return self._each(other, lambda a, b: a == b, bool)

    def __ne__(self, other):
        return self._each(other, lambda a, b: a != b, bool)

    def __or__(self, other):
        return self._each(other, lambda a, b: a or b)

    def __and__(self, other):
        return self._each(other, lambda a, b: a and b)

    def all(self):
        return all(self.values)

    def numel(self):
        return len(self.values)

    def is_floating_point(self):
        return self.dtype.code in "dfe"

    def is_complex(self):
        return False

    def to(self, dtype):
        return Tensor(self.values, dtype, self.shape)

    def clone(self):
        return Tensor(self.values, self.dtype, self.shape)

    def reshape(self, *shape):
        return Tensor(self.values, self.dtype, [len(self.values)] if shape == (-1,) else shape[0])

    def copy_(self, other):
        self.values = other.values
        struct.pack_into("=%dd" % len(self.values), self.buffer, 0, *self.values)

    def mul_(self, factor):
        self.values = [v * factor for v in self.values]
        return self


def frombuffer(buffer, dtype):
    n = len(buffer) // dtype.size
    return Tensor(struct.unpack("=%d%s" % (n, dtype.code), buffer), dtype, [n], buffer)


def relu(x):
    return Tensor([v if v > 0 or v != v else 0.0 for v in x.values], x.dtype, x.shape)


@contextlib.contextmanager
def no_grad():
    yield


from . import nn  # noqa: E402
