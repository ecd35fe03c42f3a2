#!/usr/bin/env python3
"""The long calibration of the error estimate, as tables.

calibration.py BUILD [JOBS]     runs test-spec-contraction and test-spec-honesty of a build folder
                                with CUTEPILOT_TEST_LONG=1, the latter in pieces, JOBS (1) at a
                                time, and prints the markdown of docs/results; a failed case exits 1

A cell says yes (accepted wherever it was tried), no (refused everywhere) or the share that was
accepted, and the share of the limit that was reached, the larger of rms and worst: of a yes the
largest, of a no the smallest, else both.
"""
import collections
import concurrent.futures
import os
import subprocess
import sys
import time

PIECES = 16
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KINDS = ["stated", "signed", "wide", "zeros", "subnormal", "large", "onehot", "sorted", "constant",
         "tile", "spikes", "offset", "literals", "far", "mixed", "infinite", "nonfinite"]
Row = collections.namedtuple("Row", "subject method accuracy kind accepted share")


def run(build, name, **env):
    """Rows of a test program, its other lines on stderr, and whether it failed."""
    done = subprocess.run([os.path.join(build, "tests", "test-spec-" + name)], text=True,
                          stdout=subprocess.PIPE,
                          env=dict(os.environ, SOURCE_ROOT=ROOT, CUTEPILOT_TEST_LONG="1", **env))
    rows = []
    for line in done.stdout.splitlines():
        if line.startswith("#:\t"):
            _, subject, method, accuracy, kind, accepted, rms, worst = line.split("\t")
            rows.append(Row(subject, method, accuracy, kind, accepted == "1",
                            max(float(rms), float(worst))))
        else:
            print(line, file=sys.stderr, flush=True)
    return rows, done.returncode != 0


def number(x):
    return "%.2g" % x if x < 100 else "%.0f" % x


def cell(rows):
    if not rows:
        return ""
    accepted = sum(r.accepted for r in rows)
    least, most = min(r.share for r in rows), max(r.share for r in rows)
    if accepted == len(rows):
        return "yes %s" % number(most)
    if accepted == 0:
        return "no %s" % ("not finite" if least <= 1 else number(least))
    return "%d/%d %s–%s" % (accepted, len(rows), number(least), number(most))


def table(title, rows, columns):
    """Methods down, columns (name, predicate) across."""
    print("\n%s\n\n| | %s |" % (title, " | ".join(name for name, _ in columns)))
    print("|---|" + "---|" * len(columns))
    for method in dict.fromkeys(r.method for r in rows):
        ours = [r for r in rows if r.method == method]
        print("| %s | %s |" % (method, " | ".join(cell([r for r in ours if is_in(r)])
                                                  for _, is_in in columns)))


def by_kind(kind):
    return lambda r: r.kind == kind


def by_dist(dist):
    return lambda r: r.kind == "stated" and dist in r.subject


def products(rows):
    columns = [("uniform(0,1)", by_dist("uniform")), ("normal(0,1)", by_dist("normal"))] + \
        [(kind, by_kind(kind)) for kind in KINDS[1:]]
    print("\n## Matrix products, K = 64, 512, 4,096, 16,384 and 65,536")
    for accuracy in ("fp32", "tf32", "bf16"):
        table("Judged as %s:" % accuracy, [r for r in rows if r.accuracy == accuracy], columns)


def tasks(rows):
    columns = [(kind, by_kind(kind)) for kind in KINDS]
    honest = [r for r in rows if r.subject != "contraction"]
    print("\n## Every task, honest fp32 kernels, in the task's own class")
    table("%d tasks:" % len({r.subject for r in honest}), honest, columns)
    print("\nNearest to the limits: %s." % "; ".join(
        "%s, %s on %s, %s" % (r.subject[:-len(".task")], r.method, r.kind, number(r.share))
        for r in sorted(honest, key=lambda r: -r.share)[:5]))
    print("\n## Every task that is a contraction of 64 terms and more, in other classes")
    parts = [r._replace(method="%s judged as %s" % (r.method, r.accuracy)) for r in rows
             if r.subject == "contraction"]
    table("Cells count tasks:", parts, columns)


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    build, jobs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    pieces = [("contraction", {})] + [
        ("honesty", {"CUTEPILOT_TEST_PART": "%d/%d" % (i, PIECES)}) for i in range(PIECES)]
    begun, results = time.monotonic(), []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for i, done in enumerate(pool.map(lambda p: run(build, p[0], **p[1]), pieces)):
            results.append(done)
            print("piece %d of %d after %.0f s" % (i + 1, len(pieces), time.monotonic() - begun),
                  file=sys.stderr, flush=True)
    products(results[0][0])
    tasks([row for rows, _ in results[1:] for row in rows])
    failed = any(bad for _, bad in results)
    print("\n%d results; %s." % (sum(len(rows) for rows, _ in results),
                                 "a case FAILED" if failed else "no case failed"))
    return failed


if __name__ == "__main__":
    sys.exit(main())
