"""Launches kernels by their plans, through the CUDA driver, on PyTorch's stream and memory.

The same file in every package that cutepilot exports. It needs PyTorch and the driver (libcuda) alone,
allocates through PyTorch, never waits for the GPU, and may be captured into CUDA graphs. What is worked
out for a shape is kept for each thread and device, so that a call sets addresses and launches.
"""
import ctypes
import glob
import os
import threading
import warnings

import torch

# ---- the driver ----

OK, NO_BINARY, NOT_FOUND = 0, 209, 500
SHARED_OPTIN, SHARED_STATIC, MAX_DYNAMIC_SHARED = 97, 1, 8
STATIC_SHARED_MOST = 49152
COOPERATIVE, CLUSTER = 2, 4


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)),
                ("nattributes", ctypes.c_uint)]


class CudaError(RuntimeError):
    """The driver refused something; the message has its words."""


class Driver:
    """The entries of libcuda that are used, loaded at the first call."""

    def __init__(self):
        self.library = ctypes.CDLL(os.environ.get("CUTEPILOT_LIBCUDA", "libcuda.so.1"))
        u64, size, pointer = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p
        for name, kinds in {
                "cuMemsetD8Async": [u64, ctypes.c_ubyte, size, pointer],
                "cuMemsetD16Async": [u64, ctypes.c_ushort, size, pointer],
                "cuMemsetD32Async": [u64, ctypes.c_uint, size, pointer],
                "cuMemsetD2D32Async": [u64, size, ctypes.c_uint, size, size, pointer],
                "cuLaunchKernelEx": [pointer, pointer, pointer, pointer],
                "cuModuleLoadData": [pointer, ctypes.c_char_p],
                "cuModuleGetFunction": [pointer, pointer, ctypes.c_char_p],
                "cuFuncGetAttribute": [pointer, ctypes.c_int, pointer],
                "cuFuncSetAttribute": [pointer, ctypes.c_int, ctypes.c_int],
                "cuDeviceGetAttribute": [pointer, ctypes.c_int, ctypes.c_int],
                "cuTensorMapEncodeTiled": [pointer, ctypes.c_int, ctypes.c_uint32, pointer, pointer,
                                           pointer, pointer, pointer, ctypes.c_int, ctypes.c_int,
                                           ctypes.c_int, ctypes.c_int]}.items():
            entry = getattr(self.library, name)
            entry.argtypes, entry.restype = kinds, ctypes.c_int
            setattr(self, name, entry)

    def check(self, code, what):
        if code == OK:
            return
        text = ctypes.c_char_p()
        self.library.cuGetErrorString(code, ctypes.byref(text))
        raise CudaError("%s: %s (CUresult %d)" % (what, (text.value or b"unknown").decode(), code))


_driver = None


def driver():
    global _driver
    if _driver is None:
        _driver = Driver()
    return _driver


# ---- machine code ----

class Nvrtc:
    """Compiles a kernel where the package has no machine code for the GPU."""

    def __init__(self):
        roots = [os.path.join(os.path.dirname(torch.__file__), "lib")]
        packages = os.path.dirname(os.path.dirname(torch.__file__))
        roots += glob.glob(os.path.join(packages, "nvidia", "*", "lib"))
        home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
        roots += [os.path.join(home, "lib64")]
        found = [path for root in roots for path in glob.glob(os.path.join(root, "libnvrtc.so*"))]
        self.library = ctypes.CDLL(sorted(found)[-1] if found else "libnvrtc.so")
        self.includes = [p for p in glob.glob(os.path.join(packages, "nvidia", "*", "include"))
                         + [os.path.join(home, "include")] if os.path.isdir(p)]

    def cubin(self, text, arch):
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        options = ["--std=c++17", "--gpu-architecture=" + arch, "--fmad=true"]
        options += ["--include-path=" + p for p in self.includes]
        words = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        self.library.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None)
        failed = self.library.nvrtcCompileProgram(program, len(options), words)
        get_size, get = ((self.library.nvrtcGetProgramLogSize, self.library.nvrtcGetProgramLog) if failed
                         else (self.library.nvrtcGetCUBINSize, self.library.nvrtcGetCUBIN))
        get_size(program, ctypes.byref(size))
        out = ctypes.create_string_buffer(size.value)
        get(program, out)
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        if failed:
            raise CudaError("the kernel does not compile for %s: %s"
                            % (arch, out.value.decode(errors="replace")[:2000]))
        return out.raw


def capability(arch):
    """("sm_90a") -> (9, 0, True): compute capability, and whether it is of this one alone."""
    digits = arch[3:].rstrip("af")
    return int(digits[:-1]), int(digits[-1]), not arch[3:].isdigit()


def runs_on(arch, device):
    major, minor, exact = capability(arch)
    have = torch.cuda.get_device_capability(device)
    return have[0] == major and (have[1] == minor if exact else have[1] >= minor)


class Module:
    """A kernel's machine code in one device's context, and its functions by name."""

    def __init__(self, folder, kernel, device):
        self.device, self.functions = device, {}
        self.module = ctypes.c_void_p()
        if runs_on(kernel.arch, device):
            with open(os.path.join(folder, kernel.cubin), "rb") as file:
                image = file.read()
        else:
            arch = "sm_%d%d" % torch.cuda.get_device_capability(device)
            with open(os.path.join(folder, kernel.source), "rb") as file:
                image = Nvrtc().cubin(file.read(), arch)
            warnings.warn("%s was verified on %s and is compiled here for %s, on which nobody has "
                          "verified it" % (kernel.title, kernel.arch, arch), stacklevel=5)
        driver().check(driver().cuModuleLoadData(ctypes.byref(self.module), image), "load the kernel")

    def function(self, name, shared):
        """The function, allowed so much dynamic shared memory."""
        found, allowed = self.functions.get(name, (None, 0))
        d = driver()
        if found is None:
            found = ctypes.c_void_p()
            d.check(d.cuModuleGetFunction(ctypes.byref(found), self.module, name.encode()), name)
        if shared > STATIC_SHARED_MOST and shared > allowed:
            d.check(d.cuFuncSetAttribute(found, MAX_DYNAMIC_SHARED, shared),
                    "%d bytes of shared memory for %s" % (shared, name))
        self.functions[name] = found, max(allowed, shared)
        return found


# ---- a plan for one shape ----

class Map:
    """A tensor map: encoded once for each address that its tensor comes at."""

    MOST = 64

    def __init__(self, of, dtype, extents, strides, box, steps, swizzle, fill):
        self.of, self.known = of, {}
        rank = len(extents)
        self.fixed = (dtype, rank), ((ctypes.c_uint64 * rank)(*extents),
                                     (ctypes.c_uint64 * max(1, rank - 1))(*strides),
                                     (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*steps),
                                     0, swizzle, 2, fill)

    def at(self, address):
        found = self.known.get(address)
        if found is None:
            if len(self.known) >= self.MOST:
                self.known.clear()
            room = ctypes.create_string_buffer(128 + 128)
            found = (ctypes.addressof(room) + 127) // 128 * 128
            driver().check(driver().cuTensorMapEncodeTiled(found, *self.fixed[0], address, *self.fixed[1]),
                           "tensor map")
            self.known[address] = found = (found, room)
        return found[0]


class Ready:
    """A plan whose arithmetic is done: calls fill in addresses. One a thread."""

    def __init__(self, plan, module):
        self.workspaces, self.bytes, self.kept_bytes = [], 0, 0  # (offset, whether it is kept)
        for size, align, kept in plan["workspaces"]:
            at = -(-(self.kept_bytes if kept else self.bytes) // align) * align
            self.workspaces.append((at, kept))
            if kept:
                self.kept_bytes = at + size
            else:
                self.bytes = at + size
        self.ntensors, self.parameters = plan["ntensors"], plan["parameters"]
        self.address = (ctypes.c_uint64 * (self.ntensors + len(self.workspaces) + 1))()
        self.maps = [Map(self.slot(m[0]), *m[1:]) for m in plan["maps"]]
        self.keep = []  # what the driver is given pointers to
        once = plan["steps"][:plan["once"]]
        self.once = self.queue(once, module)
        self.steps = self.queue(plan["steps"][plan["once"]:], module)
        # What is prepared depends on this and on the parameters, not on other sizes.
        maps = sorted({value for s in once if s[0] == "launch" for kind, value in s[7] if kind == "map"})
        self.once_key = repr((once, [plan["maps"][i] for i in maps],
                              [w for w in plan["workspaces"] if w[2]]))

    def slot(self, of):
        kind, i = of
        return i if kind == "tensor" else self.ntensors + i

    def queue(self, steps, module):
        """(steps, maps): maps are (map, params, index)."""
        maps = []
        return [self.step(s, module, maps) for s in steps], maps

    def step(self, s, module, maps):
        if s[0] == "memset":
            _, of, pattern, size, count = s
            return None, (self.slot(of), pattern, size, count)
        _, name, grid, block, cluster, cooperative, shared, args = s
        attributes = (Attribute * 2)()
        config = Config((ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block), shared, None, attributes, 0)
        for wanted, number, values in ((cluster != (1, 1, 1), CLUSTER, cluster),
                                       (cooperative, COOPERATIVE, (1,))):
            if wanted:
                attributes[config.nattributes].id = number
                for i, v in enumerate(values):
                    attributes[config.nattributes].value[i] = v
                config.nattributes += 1
        params = (ctypes.c_void_p * max(1, len(args)))()
        base = ctypes.addressof(self.address)
        for i, (kind, value) in enumerate(args):
            if kind == "integer":
                number = ctypes.c_int64(value)
                self.keep.append(number)
                params[i] = ctypes.addressof(number)
            elif kind == "map":
                maps.append((self.maps[value], params, i))
            else:
                params[i] = base + 8 * self.slot((kind, value))
        self.keep.append((attributes, config, params))
        return module.function(name, shared), (config, ctypes.byref(config), params, name)

    def prepare(self, addresses, kept, stream):
        """The steps that are done once; what they make lies at `kept`."""
        self.launch(self.once, addresses, 0, kept, stream)

    def run(self, addresses, workspace, kept, stream):
        """The others."""
        self.launch(self.steps, addresses, workspace, kept, stream)

    def launch(self, queue, addresses, workspace, kept, stream):
        d, at = driver(), self.address
        for i, a in enumerate(addresses):
            at[i] = a
        for i, (offset, is_kept) in enumerate(self.workspaces):
            at[self.ntensors + i] = (kept if is_kept else workspace) + offset
        for m, params, i in queue[1]:
            params[i] = m.at(at[m.of])
        for function, what in queue[0]:
            if function is None:
                code = memset(d, at[what[0]], *what[1:], stream)
                if code:
                    d.check(code, "memset")
                continue
            what[0].stream = stream
            code = d.cuLaunchKernelEx(what[1], function, what[2], None)
            if code:
                d.check(code, "launch " + what[3])


def memset(d, to, pattern, size, count, stream):
    """`count` elements of `size` bytes, each the lower bytes of the pattern."""
    low, high = pattern & 0xffffffff, pattern >> 32
    if size == 1:
        return d.cuMemsetD8Async(to, low, count, stream)
    if size == 2:
        return d.cuMemsetD16Async(to, low, count, stream)
    if size == 4 or low == high:
        return d.cuMemsetD32Async(to, low, count * (size // 4), stream)
    return (d.cuMemsetD2D32Async(to, 8, low, 1, count, stream)
            or d.cuMemsetD2D32Async(to + 4, 8, high, 1, count, stream))


# ---- an operation ----

_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def current_stream(device):
    return _raw_stream(device) if _raw_stream else torch.cuda.current_stream(device).cuda_stream


def is_on_cpu(tensor):
    return tensor.device.type == "cpu"


def aligned(address):
    return -(-address // 256) * 256


def versions(tensors):
    """Changes whenever PyTorch writes to one of them. None: it does not say (inference tensors)."""
    try:
        return tuple([t._version for t in tensors])
    except RuntimeError:
        return None


class Prepared:
    """What the steps that are done once have made of some parameters.

    It holds no parameter alive, but knows its storage: a new one at the same address is another.
    """

    def __init__(self, parameters, bytes, stream):
        weak = torch.multiprocessing.reductions.StorageWeakRef
        self.storages = [weak(t.untyped_storage()) for t in parameters]
        self.buffer = torch.empty(bytes + 256, dtype=torch.uint8, device=parameters[0].device)
        self.address = aligned(self.buffer.data_ptr())
        self.versions, self.stream, self.owner = None, stream, stream
        self.event = torch.cuda.Event()
        self.captured = False  # a CUDA graph reads it: it stays where it is

    def is_dead(self):
        return any(s.expired() for s in self.storages)

    def made(self, versions, stream, device):
        self.versions, self.stream = versions, stream
        self.event.record(torch.cuda.current_stream(device))

    def order(self, stream, device):
        """Work that is queued on this stream comes after its making, and keeps its memory."""
        if stream != self.stream:
            torch.cuda.current_stream(device).wait_event(self.event)
        if stream != self.owner:
            self.buffer.record_stream(torch.cuda.current_stream(device))


class Operation:
    """Kernels of one task: which of them runs, and how often none could.

    launches: calls that a kernel served. fallbacks: calls that PyTorch's own expression served, by
    reason ("sizes": no kernel admits them, "gpu": none for this GPU, "cpu": tensors on the CPU,
    "alignment": an address that the kernel cannot take). preparations: how often steps were done that are done once for the same
    parameters.
    """

    MOST_KEPT = 256  # sets of parameters

    def __init__(self, folder, kernels):
        self.folder, self.kernels = folder, kernels
        self.launches, self.fallbacks, self.preparations = 0, {}, 0
        self.kept, self.warned = {}, False
        self.modules, self.lock = {}, threading.Lock()
        self.local = threading.local()

    def module(self, kernel, device):
        with self.lock:
            key = kernel, device
            if key not in self.modules:
                try:
                    self.modules[key] = Module(self.folder, kernel, device)
                except (CudaError, OSError) as why:
                    if runs_on(kernel.arch, device):
                        raise
                    warnings.warn("no kernel for this GPU: %s" % why, stacklevel=4)
                    self.modules[key] = None
            return self.modules[key]

    def choose(self, dims, device, types):
        """(kernel, ready plan), or (None, reason)."""
        if not self.kernels:
            return None, "no kernel"
        admitted = [k for k in self.kernels if k.types == types and k.admits(*dims)]
        if not admitted:
            return None, "sizes"
        admitted.sort(key=lambda k: (not runs_on(k.arch, device), k.own != dims))
        for kernel in admitted:
            module = self.module(kernel, device)
            if module is not None:
                return kernel, Ready(kernel.plan(*dims), module)
        return None, "gpu"

    def prepared(self, dims, device, types):
        known = self.local.__dict__.setdefault("known", {})
        key = dims, device, types
        found = known.get(key)
        if found is None:
            if len(known) >= 1024:
                known.clear()
            found = known[key] = self.choose(*key)
        return found

    def count_fallback(self, reason):
        self.fallbacks[reason] = self.fallbacks.get(reason, 0) + 1

    def forget(self):
        """Parameters are prepared again at the next call: after writes that PyTorch does not count,
        such as those to `.data` or by other libraries. No CUDA graph with calls may be launched
        after this."""
        with self.lock:
            self.kept.clear()

    def make_room(self):
        for key in [k for k, p in self.kept.items() if p.is_dead() and not p.captured]:
            del self.kept[key]
        free = [k for k, p in self.kept.items() if not p.captured]
        for key in free[:max(0, len(self.kept) + 1 - self.MOST_KEPT)]:
            del self.kept[key]

    def prepared_at(self, ready, tensors, addresses, device, stream):
        """Where the prepared parameters lie. None: this call is to prepare them for itself."""
        parameters = [tensors[i] for i in ready.parameters]
        now = versions(parameters)
        if now is None:
            return None
        capturing = torch.cuda.is_current_stream_capturing()
        key = ready.once_key, device, tuple([(t.untyped_storage()._cdata, t.data_ptr()) for t in parameters])
        with self.lock:
            found = self.kept.get(key)
            if capturing and (found is None or found.versions != now):
                if not self.warned:
                    self.warned = True
                    warnings.warn("parameters were not prepared before a CUDA graph was captured: each "
                                  "launch of the graph prepares them again; call the operator once "
                                  "before the capture", stacklevel=4)
                return None
            if found is None:
                self.make_room()
                found = self.kept[key] = Prepared(parameters, ready.kept_bytes, stream)
            if found.versions != now:
                if found.versions is not None:
                    found.order(stream, device)
                ready.prepare(addresses, found.address, stream)
                found.made(now, stream, device)
                self.preparations += 1
            elif not capturing:  # whoever begins a capture has waited for everything
                found.order(stream, device)
            found.captured = found.captured or capturing
            return found.address

    def run(self, dims, tensors):
        """True: queued. False: nothing was done, and PyTorch's expression is to be used."""
        if is_on_cpu(tensors[0]):
            self.count_fallback("cpu")
            return False
        device = tensors[0].device.index
        kernel, ready = self.prepared(dims, device, tuple([t.dtype for t in tensors]))
        if kernel is None:
            self.count_fallback(ready)
            return False
        addresses = [t.data_ptr() for t in tensors]
        for a, align in zip(addresses, kernel.align):
            if a % align:
                self.count_fallback("alignment")
                return False
        workspace, at, kept, stream = None, 0, 0, current_stream(device)
        if ready.kept_bytes:
            kept = self.prepared_at(ready, tensors, addresses, device, stream)
        own = ready.kept_bytes + 256 if kept is None else 0
        if ready.bytes or own:
            workspace = torch.empty(ready.bytes + 256 + own, dtype=torch.uint8, device=tensors[0].device)
            at = aligned(workspace.data_ptr())
        if kept is None:
            kept = aligned(at + ready.bytes)
            ready.prepare(addresses, kept, stream)
            self.preparations += 1
        ready.run(addresses, at, kept, stream)
        self.launches += 1
        return True


def take(values, targets):
    """Puts what the fallback computed where the operator's results are."""
    values = values if isinstance(values, (tuple, list)) else (values,)
    for value, target in zip(values, targets):
        target.copy_(value)


# ---- slices, for tasks that are run over a sequence ----

def is_aligned(tensor, axis, index):
    return index * tensor.stride(axis) * tensor.element_size() % 256 == 0


def one_slice(tensor, axis, index):
    """One slice, contiguous and aligned as a tensor of its own is."""
    made = tensor.select(axis, index)
    if made.is_contiguous() and is_aligned(tensor, axis, index):
        return made
    return made.clone(memory_format=torch.contiguous_format)


def slices(tensor, axis):
    """All slices along an axis, each contiguous and aligned; one copy at most beside them."""
    laid = tensor.movedim(axis, 0).contiguous()
    return [one_slice(laid, 0, i) for i in range(laid.shape[0])]


# ---- what is asked of arguments ----

def check_types(names, tensors, known):
    """`known` has the types of all arguments that there are kernels for."""
    types = tuple(t.dtype for t in tensors)
    if types in known:
        return
    for i, name in enumerate(names):
        wanted = {k[i] for k in known if k[:i] == types[:i]}
        if types[i] not in wanted:
            raise TypeError("%s is %s, it must be %s" % (name, types[i], " or ".join(sorted(map(str, wanted)))))


def check_rank(name, tensor, rank):
    if tensor.dim() != rank:
        raise ValueError("%s has %d dimensions, it must have %d" % (name, tensor.dim(), rank))


def check_shape(name, tensor, shape):
    if tuple(tensor.shape) != tuple(shape):
        raise ValueError("%s has the shape %s, with the other arguments it must be %s"
                         % (name, tuple(tensor.shape), tuple(shape)))


def check_place(names, tensors):
    for name, tensor in zip(names, tensors):
        if tensor.device.type not in ("cuda", "cpu"):
            raise ValueError("%s is on %s: the kernels run on CUDA tensors, PyTorch's expression on the "
                             "CPU too" % (name, tensor.device))
        if tensor.device != tensors[0].device:
            raise ValueError("%s is on %s, %s is on %s" % (name, tensor.device, names[0], tensors[0].device))
        if not tensor.is_contiguous():
            raise ValueError("%s has strides %s: it must be contiguous (call .contiguous())"
                             % (name, tuple(tensor.stride())))
