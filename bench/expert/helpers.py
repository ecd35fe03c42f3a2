"""PyTorch on many tasks: a few helper processes, each with many tasks.

A helper is `cutepilot torch PYTHON DIR`: confined as for `cutepilot bench --baseline torch`, the same
helper.py, the same protocol (assets/torch/helper.py); it can write to DIR alone. What a task needs
comes from `cutepilot bench TASK --baseline torch --keep DIR`.

First, prepare: all helpers at once take tasks from one queue, run them eagerly, compile them, without
running what is compiled, and let go of the inputs. Tasks wait until what they may need of the GPU's
memory is free. Nothing may be timed meanwhile. Then, time: one task at a time, by the helper that
compiled it, while the others wait for a request. A helper that is late or dies is killed with what it
started, and its tasks are compiled again by another one when their turn comes.
"""
import json
import os
import queue
import select
import shutil
import signal
import statistics
import subprocess
import threading
import time

KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "PYTHONPATH",
        "PYTHONHOME", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "VIRTUAL_ENV", "PYENV_ROOT",
        "PYENV_VERSION", "CONDA_PREFIX", "PYTHONUSERBASE", "CC", "CXX")
INTO_FOLDER = ("TMPDIR", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_HOME",
               "TRITON_CACHE_DIR", "CUDA_CACHE_PATH")
FIXED = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
         "PYTHONUNBUFFERED": "1"}
BLOCKS, SAMPLES = 2, 10   # of each way; blocks of the ways alternate
START_S, WARM_S, TIME_S = 60, 90, 60
GRACE_S = 15              # for what is being compiled when preparing should end


BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i8": 1, "u8": 1, "i32": 4, "i64": 8, "bool": 1}
TIMES = 4                 # what an eager line may hold, of the bytes of its tensors


class Lost(Exception):
    """The helper is gone; with a text."""


class Failed(Exception):
    """It answered with an error; with its text."""


def environment(folder):
    env = {k: os.environ[k] for k in KEPT if k in os.environ}
    env.update({k: os.path.join(folder, "work", "cache") for k in INTO_FOLDER})
    env.update(FIXED)
    return env


class Helper:
    """One process. `tasks` are those it was given."""

    def __init__(self, program, python, folder, source):
        os.makedirs(os.path.join(folder, "work", "cache"))  # where alone it may write
        shutil.copy(source, folder + "/helper.py")
        self.folder, self.tasks, self.rest = folder, set(), b""
        with open(folder + "/noise", "wb") as noise:
            self.process = subprocess.Popen([program, "torch", python, folder], bufsize=0,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=noise, env=environment(folder),
                                            start_new_session=True)
        self.read_line(time.monotonic() + START_S)  # what it is confined by

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def alive(self):
        return self.process.poll() is None

    def last_words(self):
        with open(self.folder + "/noise", "rb") as noise:
            lines = noise.read()[-4096:].decode("utf-8", "replace").split("\n")
        return ([line.strip() for line in lines if line.strip()] or ["no word"])[-1][:200]

    def read_line(self, end):
        out = self.process.stdout
        while b"\n" not in self.rest:
            ready, _, _ = select.select([out], [], [], max(0, end - time.monotonic()))
            piece = os.read(out.fileno(), 1 << 16) if ready else b""
            if not piece:
                words = self.last_words() if ready else "no answer in time"
                self.kill()
                raise Lost("the PyTorch helper is gone: " + words)
            self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def ask(self, request, limit_s):
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
        except OSError:
            self.kill()
            raise Lost("the PyTorch helper is gone: " + self.last_words())
        answer = json.loads(self.read_line(time.monotonic() + limit_s))
        if "error" in answer:
            raise Failed(" ".join(answer["error"].split())[:200])
        return answer

    def open(self, task, request, limit_s):
        if task not in self.tasks:
            facts = self.ask(request, limit_s)
            self.tasks.add(task)
            self.facts = "PyTorch %s, %s" % (facts["torch"], facts["gpu"])


def bytes_of(request):
    """Of the memory that a task may need; outputs have no type here, so the widest is taken."""
    def product(shape):
        n = 1
        for extent in shape:
            n *= extent
        return n

    return TIMES * (sum(product(t["shape"]) * BYTES[t["dtype"]] for t in request["inputs"]) +
                    sum(product(t["shape"]) * 4 for t in request["outputs"]))


class Room:
    """So many bytes for those who work at once; what needs more than all has all of it."""

    def __init__(self, size):
        self.size = self.free = size
        self.changed = threading.Condition()

    def take(self, wanted):
        wanted = min(wanted, self.size)
        with self.changed:
            self.changed.wait_for(lambda: wanted <= self.free)
            self.free -= wanted
        return wanted

    def give(self, taken):
        with self.changed:
            self.free += taken
            self.changed.notify_all()


class Pool:
    """`requests(task)` gives a task's first request, with the place of helper.py; `ways(task)` its
    [(mode, numerics)]; `memory` is what helpers may use of the GPU's, in bytes."""

    def __init__(self, program, python, folder, requests, ways, memory):
        self.program, self.python, self.folder = program, python, folder
        self.room = Room(memory)
        self.requests, self.ways = requests, ways
        self.helpers, self.count = [], 0
        self.lock = threading.Lock()

    def start(self, task):
        source = self.requests(task)["helper"]
        with self.lock:
            self.count += 1
            folder = "%s/helper-%d" % (self.folder, self.count)
        helper = Helper(self.program, self.python, folder, source)
        with self.lock:
            self.helpers.append(helper)
        return helper

    def close(self):
        for helper in self.helpers:
            helper.kill()

    # ---- compiling, all at once ----

    def warm(self, helper, task, way, limit_s, **more):
        helper.ask(dict({"task": task, "warm": way[0], "numerics": way[1]}, **more), limit_s)

    def prepare_task(self, helper, task, end, said):
        def left():
            return min(WARM_S, max(1, end + GRACE_S - time.monotonic()))

        began = time.monotonic()
        helper.open(task, dict(self.requests(task), sets=0), left())
        wrong = []
        for way in self.ways(task):
            try:
                self.warm(helper, task, way, left(), sets=1, hold=way[0] == "compiled")
            except Failed as why:  # once more when it is timed, with the GPU to itself
                wrong.append("%s: %s" % (way[0], str(why)[:120]))
        helper.ask({"task": task, "drop": True}, left())
        said("# prepared %s in %.1f s %s" % (task, time.monotonic() - began, "; ".join(wrong)))

    def prepare_some(self, todo, end, said):
        helper = None
        while time.monotonic() < end:
            try:
                task = todo.get_nowait()
            except queue.Empty:
                return
            taken = 0
            try:
                helper = helper if helper and helper.alive() else self.start(task)
                taken = self.room.take(bytes_of(self.requests(task)))
                self.prepare_task(helper, task, end, said)
            except (Lost, Failed, OSError, ValueError) as why:
                said("# not prepared: %s: %s" % (task, why))
            self.room.give(taken)

    def prepare(self, tasks, jobs, end, said):
        todo = queue.Queue()
        for task in tasks:
            todo.put(task)
        threads = [threading.Thread(target=self.prepare_some, args=(todo, end, said))
                   for _ in range(min(jobs, len(tasks)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    # ---- timing, one at a time ----

    def helper_of(self, task):
        alive = [h for h in self.helpers if h.alive()]
        for helper in alive:
            if task in helper.tasks:
                return helper
        return alive[0] if alive else self.start(task)

    def take_samples(self, helper, task, found, wrong):
        ways = []
        for way in self.ways(task):
            try:
                self.warm(helper, task, way, WARM_S)
                ways.append(way)
            except Failed as why:
                wrong.append("%s: %s" % (way[0], why))
        for way in ways * BLOCKS:
            answer = helper.ask({"task": task, "time": way[0], "numerics": way[1],
                                 "samples": SAMPLES}, TIME_S)
            found.setdefault(way, []).extend(answer["samples_s"])

    def time(self, task):
        """({(mode, numerics): median seconds}, facts, what went wrong)"""
        wrong, found, facts = [], {}, ""
        try:
            helper = self.helper_of(task)
            helper.open(task, dict(self.requests(task), sets=0), START_S)
            facts = helper.facts
            self.take_samples(helper, task, found, wrong)
            helper.ask({"task": task, "drop": True}, TIME_S)
        except (Lost, Failed, OSError, ValueError) as why:
            wrong.append(str(why))
        return {w: statistics.median(s) for w, s in found.items()}, facts, "; ".join(wrong)
