"""cutepilot from Python: a fast, verified CUDA kernel for what you describe.

    import cutepilot
    result = cutepilot.optimize("tasks/smoke/softmax.task", budget="60s")
    result                     # what was found and how sure that is; a table in a notebook
    y = result.op(x)           # the kernel as a PyTorch operator
    result.export("torch", "my_softmax")

    result = cutepilot.optimize("model.py")    # the file of an nn.Module; where it needs several tasks:
    model = result.new()                       # an nn.Module that runs their kernels,
    model.load_state_dict(old.state_dict())    # by the names of the one that was imported

Everything here is a call of the program `cutepilot`, which does the work: it is the one that this package
carries, or $CUTEPILOT, or the first in PATH.
"""
import hashlib
import html
import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

__all__ = ["Error", "Module", "Result", "export", "load", "optimize", "program", "run", "verify"]


class Error(RuntimeError):
    """The program said no. `code` is its exit code: 1 the answer is no, 2 bad input, 3 the machine."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def _carried():
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "cutepilot")


def program():
    """The path of the program."""
    for path in os.environ.get("CUTEPILOT"), _carried(), shutil.which("cutepilot"):
        if path and os.access(path, os.X_OK):
            return path
    raise Error("the program cutepilot is not to be found: build it (make) and put it into PATH, or name it "
                "in the environment variable CUTEPILOT", 3)


def _nvrtc_beside():
    """The folder of the compiler NVRTC 13 and its headers among this Python's packages (nvidia-cuda-nvrtc and
    its like, which PyTorch for CUDA 13 brings along); None where there is none."""
    for folder in sys.path:
        root = os.path.join(folder, "nvidia", "cu13")
        if (os.path.exists(os.path.join(root, "lib", "libnvrtc.so.13"))
                and os.path.exists(os.path.join(root, "include", "cuda_fp16.h"))):
            return root
    return None


def environment():
    """What the program is started with: where nothing else says where NVRTC is, the one among the packages."""
    known = "CUTEPILOT_CUDA", "CUDA_HOME", "CUDA_PATH"
    carried = program() == _carried()
    found = None if not carried or any(os.environ.get(name) for name in known) else _nvrtc_beside()
    return dict(os.environ, CUTEPILOT_CUDA=found) if found else dict(os.environ)


def main():
    """The program itself, with this process's arguments: the command that the package installs."""
    try:
        os.execve(program(), ["cutepilot"] + sys.argv[1:], environment())
    except Error as error:
        sys.exit("cutepilot: %s" % error)


def _option_words(options):
    """verify_seed=3, fresh=True, set=["R=8", "C=9"] as words of the command line."""
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif isinstance(value, (list, tuple)):
            words += [word for one in value for word in (flag, str(one))]
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return words


def _refusal(text, code):
    """What the program said at last, with the lines that follow it: hints, a line of a file and its caret."""
    at = text.rfind("\ncutepilot: ") + 1
    said = text[at:].rstrip() if text[at:].startswith("cutepilot: ") else text.rstrip().rpartition("\n")[2]
    return Error(re.sub(r"^cutepilot: ", "", said) or "exit code %d" % code, code)


def run(*words, on_line=None, no=True):
    """The program's stdout. `on_line` gets each line of its progress. With exit code 1, that the answer is no,
    stdout is returned too, unless `no` is False: then that is an Error."""
    child = subprocess.Popen([program()] + [str(w) for w in words], stdin=subprocess.DEVNULL, text=True,
                             env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace")
    with tempfile.TemporaryFile("w+") as kept:
        # stdout is one JSON object at the end: nothing fills its pipe while stderr is read.
        try:
            for line in child.stderr:
                if on_line:
                    on_line(line.rstrip("\n"))
                kept.write(line)
            out = child.stdout.read()
        except BaseException:  # Ctrl-C too: the program writes what it has
            child.terminate()
            child.wait()
            raise
        code = child.wait()
        if code > 1 or (code == 1 and not (no and out)):
            kept.seek(0)
            raise _refusal(kept.read(), code)
    return out


class _Progress:
    """Lines of a run where they are looked at: one line that changes, in a notebook or a terminal."""

    def __init__(self):
        self.handle = None
        try:
            from IPython import get_ipython
            from IPython.display import display
            if get_ipython() is not None:
                self.handle = display({"text/plain": ""}, raw=True, display_id=True)
        except ImportError:
            pass

    def __call__(self, line):
        if self.handle is not None:
            self.handle.update({"text/plain": line}, raw=True)
        elif sys.stderr.isatty():
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write("\r\033[K" + line[:width])
            sys.stderr.flush()

    def close(self):
        if self.handle is None and sys.stderr.isatty():
            sys.stderr.write("\r\033[K")


def _task_file(task, folder):
    """The path of a task that is given as a path or as text."""
    if not isinstance(task, (str, os.PathLike)):
        raise Error("a task is a file (TASK.task, or MODEL.py with the class of an nn.Module and get_inputs()), or "
                    "a task's text; not an object of type %s" % type(task).__name__, 2)
    if "\n" not in str(task):
        return os.fspath(task)
    path = os.path.join(folder, "task.task")
    with open(path, "w") as file:
        file.write(task)
    return path


def _imported(path, folder, python):
    """The task, or the folder of tasks, that a module's file becomes."""
    words = ["--python", python] if python else []
    made = json.loads(run("import", path, "--out", os.path.join(folder, "tasks"), "--json", *words, no=False))
    return made.get("folder") or made["task"]


def optimize(task, budget="64c", device="auto", out=None, progress=None, python=None, **options):
    """Searches for a fast kernel and verifies it; returns a Result, or a Module of several tasks.

    task: a .task file, or its text; a module's file MODEL.py, which is imported by `python` (default:
    this Python, where it has PyTorch); or a folder of tasks that import wrote. budget (of each task): a time ("60s"), a number of candidates ("64c") or both.
    device: "cuda", "sim", "auto". out: the run's folder (default: runs/TASK here); the same call goes
    on where it stopped. progress: a function that gets each line; False: none. Further options as the
    command line has them (docs: cutepilot optimize --help): seed=1, baseline="torch", fresh=True.
    """
    show = progress or (_Progress() if progress is None else None)
    with tempfile.TemporaryDirectory() as folder:
        path = _task_file(task, folder)
        if path.endswith(".py"):
            path = _imported(path, folder, python or _own_python())
        words = ["optimize", path, "--json", "--budget", budget, "--device", device]
        if _is_module(path):
            out = out or os.path.join("runs", os.path.basename(os.path.normpath(path)))
        words += ["--out", out] if out else []
        try:
            found = json.loads(run(*words, *_option_words(options), on_line=show or (lambda line: None)))
        finally:
            if isinstance(show, _Progress):
                show.close()
    return Module(out) if isinstance(found, list) else Result(found["folder"], found)


def _is_module(folder):
    return os.path.exists(os.path.join(folder, "order.json"))


def _own_python():
    return sys.executable if importlib.util.find_spec("torch") else None


def load(folder):
    """The Result of a run that was made before, or the Module of a folder of such."""
    folder = os.fspath(folder)
    return Module(folder) if _is_module(folder) else Result(folder)


def verify(task, kernel, **options):
    """The record of a kernel of your own (a path, or its text), held to a task: record["accepted"]."""
    with tempfile.TemporaryDirectory() as folder:
        if "\n" in str(kernel):
            path = os.path.join(folder, "kernel.cu")
            with open(path, "w") as file:
                file.write(kernel)
            kernel = path
        return json.loads(run("verify", _task_file(task, folder), kernel, "--json", *_option_words(options)))


def export(runs, to="torch", out=None, name=None, backward=None, **options):
    """A package of one or several runs (folders, Results or Modules); returns its folder (docs/EXPORT.md).

    Further options as the command line has them: layout="kernel-builder", sampled=True.
    """
    runs = runs if isinstance(runs, (list, tuple)) else [runs]
    folders = [r.folder if isinstance(r, (Result, Module)) else os.fspath(r) for r in runs]
    backward = backward.folder if isinstance(backward, Result) else backward
    words = _option_words(dict(options, to=to, out=out, name=name, backward=backward))
    return json.loads(run("export", *folders, "--json", *words, no=False))["folder"]


def _loaded(result, name):
    """The Python package of a Result or a Module, made in a folder of its own."""
    package = result.export("torch", os.path.join(tempfile.mkdtemp(prefix="cutepilot-"), name), name)
    sys.path.insert(0, package)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(package)


def _table(rows, source=""):
    return "<table>%s</table>%s" % ("".join(
        "<tr><th style='text-align:left'>%s</th><td style='text-align:left'>%s</td></tr>"
        % (html.escape(name), html.escape(str(text))) for name, text in rows), source)


class Module:
    """An imported module of several tasks, and the run of each. parts: their Results by name; new(): an
    nn.Module that runs them, with the original's parameters; op: the same as a function."""

    def __init__(self, folder):
        self.folder = folder
        try:
            with open(os.path.join(folder, "order.json")) as file:
                self.order = json.load(file)
        except FileNotFoundError:
            raise Error("%s is not the folder of a module's runs" % folder, 2) from None
        names = dict.fromkeys(step["task"] for step in self.order["steps"])
        self.parts = {name: Result(os.path.join(folder, name)) for name in names
                      if os.path.isdir(os.path.join(folder, name))}
        self.missing = [name for name in names if name not in self.parts]  # those without a run
        self._package = None

    @property
    def found(self):
        """Whether every task has an accepted kernel."""
        return not self.missing and all(part.found for part in self.parts.values())

    def runs(self):
        """How often each task is run in a call, at the module's own sizes."""
        sizes = {d["name"]: d["value"] for d in self.order["dims"]}
        counted = dict.fromkeys(self.parts, 0)
        for step in self.order["steps"]:
            over = step["repeat"]["over"] if "repeat" in step else "1"
            times = sizes[over] if over in sizes else int(over)
            counted[step["task"]] = counted.get(step["task"], 0) + times
        return counted

    @property
    def time_s(self):
        """Seconds that all runs of all kernels take, one after the other; None where a task has none."""
        runs = self.runs()
        return sum(runs[n] * p.time_s for n, p in self.parts.items()) if self.found else None

    @property
    def estimated(self):
        return any(part.estimated for part in self.parts.values())

    def export(self, to="torch", out=None, name=None, **options):
        return export(self, to, out, name, **options)

    @property
    def package(self):
        """The Python package of the module; made at first use. Its parts() says what computes each task."""
        if self._package is None:
            kernels = "".join(p.evidence.get("source_sha256", "") for p in self.parts.values())
            own = hashlib.sha256((kernels + os.path.abspath(self.folder)).encode()).hexdigest()[:8]
            self._package = _loaded(self, "%s_%s" % (re.sub(r"\W", "_", self.order["module"]), own))
        return self._package

    def new(self, *arguments, **sizes):
        """An nn.Module in the place of the original; load the original's state_dict() into it."""
        return self.package.Module(*arguments, **sizes)

    @property
    def op(self):
        """forward(inputs…, parameters), where parameters maps names of the state_dict to tensors."""
        return self.package.forward

    def rows(self):
        """What there is to say of it, as (name, text)."""
        kind, runs = "estimated" if self.estimated else "measured", self.runs()
        rows = [("module", self.order.get("title", self.order["module"]))]
        if self.found:
            rows.append(("time", "%.4g us, %s, the tasks one after the other" % (self.time_s * 1e6, kind)))
        for name, part in self.parts.items():
            rows.append((name, "%s%s" % ("%.4g us" % (part.time_s * 1e6) if part.found else "no accepted kernel",
                                         ", %d times" % runs[name] if runs[name] > 1 else "")))
        return rows + [(name, "no run") for name in self.missing] + [("folder", self.folder)]

    def __repr__(self):
        return "\n".join("%-13s %s" % row for row in self.rows())

    def _repr_html_(self):
        return _table(self.rows())


class Result:
    """The winner of a run. kernel: its source; evidence: what verified it; op: a PyTorch operator."""

    def __init__(self, folder, summary=None):
        self.folder, self.summary = folder, summary or {}
        self.kernel, self.evidence = None, {}
        try:
            with open(os.path.join(folder, "kernel.cu")) as file:
                self.kernel = file.read()
            with open(os.path.join(folder, "outcome.json")) as file:
                self.evidence = json.load(file)
        except FileNotFoundError:
            if not os.path.isdir(folder):
                raise Error("%s is not the folder of a run" % folder, 2) from None
        self._op = None

    @property
    def found(self):
        """Whether a kernel was accepted."""
        return bool(self.evidence.get("accepted"))

    @property
    def time_s(self):
        """Seconds a run of the kernel takes: measured on a GPU, or estimated by the simulator's model."""
        return self.evidence.get("time_s")

    @property
    def estimated(self):
        return bool(self.evidence.get("estimated"))

    def export(self, to="torch", out=None, name=None, backward=None, **options):
        return export(self, to, out, name, backward, **options)

    @property
    def op(self):
        """The kernel as a PyTorch operator, for CUDA tensors; made at first use."""
        if self._op is None:
            name = "%s_%s" % (re.sub(r"\W", "_", self.evidence.get("task", "op")),
                              self.evidence.get("source_sha256", "")[:8])
            self._op = getattr(_loaded(self, name), name)
        return self._op

    def rows(self):
        """What there is to say of it, as (name, text)."""
        if not self.found:
            return [("task", self.summary.get("task", "")), ("kernel", "none was accepted"),
                    ("folder", self.folder)]
        e, s = self.evidence, self.summary
        kind = "estimated" if self.estimated else "measured"
        rows = [("task", e.get("task", "")), ("time", "%.4g us, %s (%s)" % (self.time_s * 1e6, kind, e.get("device")))]
        if e.get("time_prepared_s"):
            rows.append(("prepared", "%.4g us of it, %s, without the steps that are done once for the same "
                         "parameters" % (e["time_prepared_s"] * 1e6, kind)))
        if e.get("limit_share"):
            rows.append(("of the limit", "%.0f%%" % (100 * e["limit_share"])))
        if s.get("naive_s"):
            rows.append(("naive kernel", "%.2f times as long" % (s["naive_s"] / self.time_s)))
        if s.get("speedup"):
            rows.append(("PyTorch", "%.2f times as long" % s["speedup"]))
        rows += [("verified on", e.get("scope", "")), ("strategy", s.get("strategy", "")), ("folder", self.folder)]
        return [row for row in rows if row[1]]

    def __repr__(self):
        return "\n".join("%-13s %s" % row for row in self.rows())

    def _repr_html_(self):
        source = "<details><summary>kernel.cu</summary><pre>%s</pre></details>" % html.escape(self.kernel or "")
        return _table(self.rows(), source if self.kernel else "")
