"""Enough of PyTorch for the helper's protocol to be tested without it: tensors that know their
shape and bytes, and a GPU whose clock moves only when something is done on it, so that a test can
say to the digit which work lies between two events."""
import os
import sys
import time as _time
from contextlib import contextmanager

__version__ = "0.0-fake"


class _Namespace:
    def __init__(self, **fields):
        self.__dict__.update(fields)


class _Dtype:
    def __init__(self, size):
        self.size = size


float64, float32, float16, bfloat16 = _Dtype(8), _Dtype(4), _Dtype(2), _Dtype(2)
int8, uint8, int32, int64, bool = _Dtype(1), _Dtype(1), _Dtype(4), _Dtype(8), _Dtype(1)


class _Clock:
    """Milliseconds of device time."""
    now = 0.0


class Tensor:
    def __init__(self, data, dtype, shape):
        self.data, self.dtype, self.shape = data, dtype, tuple(shape)

    def numel(self):
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    def element_size(self):
        return self.dtype.size

    def to(self, device):
        return self

    def repeat(self, n):
        return Tensor(self.data * n, self.dtype, [self.numel() * n])

    def __getitem__(self, part):
        return Tensor(self.data[:part.stop * self.dtype.size], self.dtype, [part.stop])

    def reshape(self, shape):
        made = Tensor(self.data, self.dtype, shape)
        assert made.numel() == self.numel(), (made.shape, self.shape)
        return made

    def contiguous(self):
        assert len(self.data) == self.numel() * self.dtype.size
        return self

    def zero_(self):
        _Clock.now += 1000.0
        return self


def frombuffer(data, dtype):
    return Tensor(bytes(data), dtype, [len(data) // dtype.size])


def empty(n, dtype, device):
    return Tensor(b"", dtype, [n])


_names = set()


def compile(function):
    """Slow at first, twice as fast afterwards. The real one takes functions of one name and text for
    one function, and compiles it for shapes that change when it meets others."""
    called = []
    if function.__name__ in _names:
        raise RuntimeError("a second %s" % function.__name__)
    _names.add(function.__name__)

    def compiled(*args):
        from torch._inductor.runtime.triton_heuristics import CachingAutotuner
        begin = _Clock.now
        value = CachingAutotuner().run(function, args)
        if not called:
            called.append(True)
            _Clock.now += 1e6
        else:
            _Clock.now = begin + (_Clock.now - begin) / 2
        return value
    return compiled


@contextmanager
def no_grad():
    yield


class _Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = _Clock.now

    def elapsed_time(self, end):
        return end.at - self.at


def _sleep(cycles):
    assert cycles > 0
    _Clock.now += 500.0


cuda = _Namespace(is_available=lambda: True, set_device=lambda name: None,
                  get_device_properties=lambda name: _Namespace(name="Fake GPU", L2_cache_size=1 << 20),
                  mem_get_info=lambda name: (1 << 30, 1 << 30), synchronize=lambda name: None,
                  Event=_Event, _sleep=_sleep, empty_cache=lambda: None)
version = _Namespace(cuda="0.0")
backends = _Namespace(cuda=_Namespace(matmul=_Namespace(allow_tf32=False)),
                      cudnn=_Namespace(allow_tf32=True))


# What the torch lines of the tests call.

def work(x, ms):
    """Takes so long on the device; the same shape comes back."""
    _Clock.now += ms
    return x


def noise(x):
    print("a line on stdout\n{}")
    sys.stderr.write("and one on stderr\n" * 10000)
    return x


def leave(x):
    sys.stderr.write("Traceback:\nMemoryError: it is full\n")
    sys.stderr.flush()
    os._exit(1)


def hang(x):
    _time.sleep(1000)


def flood(x):
    """Words on stderr, without an end."""
    import sys
    while True:
        sys.stderr.write("flood\n" * 1000)


def touch(x, path):
    with open(path, "w"):
        pass
    return x


def connect(x):
    import socket
    socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    return x


def child(x):
    """A compiler may be started, and is confined as well."""
    import subprocess
    subprocess.run([sys.executable, "-c", "open('/tmp/cutepilot-torch-escaped', 'w')"], check=True,
                   stderr=subprocess.DEVNULL)
    return x


def secret(x):
    raise RuntimeError("key is %s" % os.environ.get("ANTHROPIC_API_KEY", "unknown"))


def first_bytes(x):
    raise RuntimeError("%d %s" % (len(x.data), x.data[:4].hex()))


from . import nn  # noqa: E402
