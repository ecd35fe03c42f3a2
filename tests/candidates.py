"""What the tests of whole candidates share: the head of a .cu file, and `cutepilot verify` on it.

A head is the `// key: value` lines a file begins with. `key-DEVICE` wins over `key` on that device
(sim or cuda). The program is $CUTEPILOT, the project's folder $SOURCE_ROOT.
"""
import json
import os
import subprocess
import sys
import time

ROOT = os.environ.get("SOURCE_ROOT") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.environ.get("CUTEPILOT") or os.path.join(ROOT, "dist", "cutepilot")
BEGUN = time.monotonic()
ENVIRONMENT = 3  # exit code: not the candidate's fault


class Head(dict):
    """The fields of a candidate's head, as they hold on one device."""

    def __init__(self, path, device):
        super().__init__()
        self.device = device.split(":")[0]
        for line in open(path):
            if not line.startswith("// ") or ": " not in line:
                break
            key, value = line[3:].rstrip("\n").split(": ", 1)
            self[key] = value

    def of(self, key, default=""):
        return self.get("%s-%s" % (key, self.device), self.get(key, default))

    def settings(self):
        return [word for s in self.of("set").split() for word in ("--set", s)]


def judged_source(path):
    """The kernel.cu of a run without the lines for nvcc that it begins with."""
    with open(path) as f:
        text = f.read()
    return text[text.index("#endif\n") + 7:] if text.startswith("#ifndef __CUDACC_RTC__") else text


def offers(option):
    """Whether this program's verify has an option."""
    shown = subprocess.run([PROGRAM, "verify", "--help"], capture_output=True, text=True).stdout
    return "--%s " % option in shown or "--%s\n" % option in shown


def objects(text):
    """The JSON objects that stand one after the other in a text."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found


class Verified:
    """What verify said: its records, one a run, or what went wrong with the program itself."""

    def __init__(self, records, code, fault):
        self.records, self.code, self.fault = records, code, fault


def run_program(words, timeout):
    """(exit code, stdout, stderr); code 124 where it did not end."""
    try:
        done = subprocess.run([PROGRAM] + words, capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return 124, "", "no answer in %d s" % timeout
    return done.returncode, done.stdout, done.stderr


def command(task, paths, device, cache, options):
    """Times do not matter here, and several run at once: two rounds will do. The simulator ends
    what does not end by its instructions: the clock of a busy machine must not be first."""
    patience = ["--run-limit", "300"] if device.startswith("sim") else []
    return ["verify", task] + paths + ["--json", "--device", device, "--workers", "1",
                                       "--compile-jobs", "1", "--time-limit", "1",
                                       "--cache", cache] + patience + options


def verify(task, paths, device, cache, options, timeout=300):
    """The verdicts on one or several kernels of a task."""
    paths = [paths] if isinstance(paths, str) else paths
    code, out, err = run_program(command(task, paths, device, cache, options), timeout)
    try:
        records = objects(out)
    except ValueError:
        records = []
    if code not in (0, 1) or not records or any("verdict" not in r for r in records):
        return Verified([], code, "no verdict: exit %d, %s" % (code, out.strip() + err.strip()))
    return Verified(records, code, None)


class Tap:
    """Test points as they come."""

    def __init__(self):
        self.count = self.failed = 0

    def point(self, name, faults=(), skip=None, note=None):
        self.count += 1
        self.failed += bool(faults)
        for fault in faults:
            print("# " + fault.replace("\n", "\n# "))
        print("%sok %d - %s%s" % ("not " if faults else "", self.count, name,
                                  " # SKIP " + skip if skip else " # " + note if note else ""),
              flush=True)

    def end(self):
        print("1..%d" % self.count, flush=True)
        return self.failed != 0


def select(names, share="EVERY"):
    """The share of a list that $EVERY (or another variable) asks for: every N-th, from the place on
    that $TURN counts to, which tools/check makes another one with every commit. A share is never
    empty, and the test's output says what it is."""
    every = int(os.environ.get(share) or "1")
    if every == 1 or not names:
        return names
    first = int(os.environ.get("TURN") or "0") % min(every, len(names))
    chosen = names[first::every]
    print("# %d of %d: one of every %d, from number %d on (%s=%d TURN=%d); %s=1 takes all of them" %
          (len(chosen), len(names), every, first + 1, share, every, first, share), flush=True)
    return chosen


def jobs(device):
    """Candidates at a time: a simulator uses the cores by itself."""
    cores = len(os.sched_getaffinity(0))
    return int(os.environ.get("JOBS", "1" if device.startswith("sim") else str(min(8, cores))))


def time_is_up():
    """Whether STOP_AFTER seconds have passed: what has not begun by then is skipped, and said."""
    return time.monotonic() - BEGUN > float(os.environ.get("STOP_AFTER", "inf"))


def die(text):
    sys.exit("%s: %s" % (os.path.basename(sys.argv[0]), text))
