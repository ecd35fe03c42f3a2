"""Kernels that `cutepilot write` printed, compiled by NVRTC to machine code, which takes ptxas too."""
import ctypes
import json
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def architectures(program):
    """What NVRTC compiles for, by the name of the GPU."""
    listed = subprocess.run([program, "gpus", "--json"], capture_output=True, text=True, check=True)
    return {g["name"]: g["arch"] for g in json.loads(listed.stdout)}


class Compiler:
    """NVRTC, where `doctor` finds it, for one architecture such as sm_90a."""

    def __init__(self, program, arch):
        self.arch = arch
        found = subprocess.run([program, "doctor"], capture_output=True, text=True).stdout
        path = re.search(r"\S+libnvrtc\S*", found).group()
        self.library = ctypes.CDLL(path)
        self.include = os.path.join(os.path.dirname(os.path.dirname(path)), "include")
        self.cutlass = re.search(r"\S+cutlass/include", found)
        with open(os.path.join(ROOT, "assets/kernel/prelude.cuh")) as f:
            self.prelude = f.read()

    def cubin(self, text):
        """(cubin, log): one of them is empty."""
        nvrtc, program, n = self.library, ctypes.c_void_p(), ctypes.c_size_t()
        source = (self.prelude + text).encode()
        options = ["--std=c++17", "--gpu-architecture=" + self.arch, "--include-path=" + self.include,
                   "--include-path=" + os.path.join(self.include, "cccl"),
                   "--device-as-default-execution-space"]
        if self.cutlass:
            options.append("--include-path=" + self.cutlass.group())
        words = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernel.cu", 0, None, None)
        failed = nvrtc.nvrtcCompileProgram(program, len(options), words)
        size, get = ((nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog) if failed else
                     (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN))
        size(program, ctypes.byref(n))
        out = ctypes.create_string_buffer(n.value)
        get(program, out)
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return (b"", out.raw.decode(errors="replace")) if failed else (out.raw, "")
