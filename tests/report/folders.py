"""Folders of runs and suites to make reports of: one real run, and others made from its archive.

Real are `finished` and `stopped`, which `cutepilot optimize` left. The others have their rows, changed
as the name says; the archive's form is its own (assets/sql).
"""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time

HOSTILE = ("<script>window.hacked=1</script><img src=x onerror=window.hacked=2>"
           "</script><!--]]> \"'><svg onload=window.hacked=3> \x1b[31mred\x1b[0m \x07\x00 "
           "\u202eevil\u2066 ${x} &lt;b&gt; é∑ javascript:window.hacked=4")


class Folders:
    def __init__(self, program, source_root, top):
        self.program, self.root, self.top = program, source_root, top
        self.budget = "10c"

    def path(self, name):
        return os.path.join(self.top, name)

    def optimize(self, name, *words):
        task = os.path.join(self.root, "tasks/smoke/softmax.task")
        return [self.program, "optimize", task, "--device", "sim", "--history", "off", "--progress",
                "none", "--out", self.path(name), *words]

    def finished(self):
        subprocess.run(self.optimize("finished", "--budget", self.budget, "--population", "4"),
                       check=True,
                       stdout=subprocess.DEVNULL)
        return self.path("finished")

    def stopped(self):
        """Interrupted once it has an accepted kernel."""
        events = os.path.join(self.path("stopped"), "events.jsonl")
        child = subprocess.Popen(self.optimize("stopped", "--budget", "100000c", "--stop", "budget"),
                                 stdout=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end and not (os.path.exists(events) and
                                              '"accepted"' in open(events).read()):
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        child.wait(60)
        return self.path("stopped")

    def copy(self, name, of="finished"):
        shutil.copytree(self.path(of), self.path(name))
        return self.path(name)

    def open_archive(self, folder):
        return sqlite3.connect(os.path.join(folder, "run.db"), isolation_level=None)

    def drop_results(self, folder):
        for name in ("kernel.cu", "outcome.json"):
            if os.path.exists(os.path.join(folder, name)):
                os.remove(os.path.join(folder, name))

    def killed(self):
        """As a killed command leaves it: no end, no results."""
        folder = self.copy("killed")
        self.drop_results(folder)
        events = os.path.join(folder, "events.jsonl")
        with open(events) as f:
            lines = [line for line in f if '"event":"end"' not in line]
        with open(events, "w") as f:
            f.writelines(lines)
        return folder

    def failed(self):
        folder = self.copy("failed")
        self.drop_results(folder)
        db = self.open_archive(folder)
        for ordinal, text in db.execute("SELECT ordinal, record FROM outcome").fetchall():
            record = json.loads(text)
            record.update(verdict="wrong" if ordinal % 3 else "compile-error", accepted=False,
                          why="y[0,%d] is 3, expected 4\nand more" % (ordinal % 2))
            record.pop("time_s", None)
            db.execute("UPDATE outcome SET record = ? WHERE ordinal = ?", (json.dumps(record), ordinal))
        db.close()
        return folder

    def empty(self):
        folder = self.copy("empty")
        self.drop_results(folder)
        os.remove(os.path.join(folder, "events.jsonl"))
        db = self.open_archive(folder)
        db.executescript("DELETE FROM outcome; DELETE FROM candidate; DELETE FROM call; "
                         "DELETE FROM meta WHERE key NOT IN ('fingerprint', 'task')")
        db.close()
        return folder

    def old(self):
        """Of version 0.1.0: no facts of the GPU, no counters by line; and of before it: no task, no
        origin of candidates."""
        folder = self.copy("old")
        db = self.open_archive(folder)
        db.execute("DELETE FROM meta WHERE key IN ('gpu', 'task', 'baseline') OR key LIKE 'confirmed%'")
        for ordinal, text in db.execute("SELECT ordinal, record FROM outcome").fetchall():
            record = json.loads(text)
            for key in ("schema", "ordinal", "parents", "step", "structure", "phases", "confirmed"):
                record.pop(key, None)
            db.execute("UPDATE outcome SET record = ? WHERE ordinal = ?", (json.dumps(record), ordinal))
        db.close()
        path = os.path.join(folder, "outcome.json")
        with open(path) as f:
            record = json.load(f)
        for key in ("schema", "ordinal", "parents", "step", "phases", "confirmed"):
            record.pop(key, None)
        with open(path, "w") as f:
            json.dump(record, f)
        return folder

    def measured(self):
        """As a GPU would have judged it: times with intervals, no counters, the simulator's opinion and
        PyTorch's time beside it."""
        folder = self.copy("measured")
        db = self.open_archive(folder)
        print_ = json.loads(db.execute("SELECT value FROM meta WHERE key = 'fingerprint'").fetchone()[0])
        print_["device"] = "cuda:0"
        db.execute("UPDATE meta SET value = ? WHERE key = 'fingerprint'", (json.dumps(print_),))
        db.execute("INSERT INTO meta VALUES ('baseline', '{\"baseline_s\":9e-6,\"time_s\":4.5e-6}')")

        def measure(record):
            for key in ("estimate", "counters", "model_calibrated"):
                record.pop(key, None)
            if record["accepted"]:
                t = record["time_s"]
                record.update(estimated=False, device="cuda:0", ci_low_s=t * 0.99, ci_high_s=t * 1.02,
                              samples_s=[t * 0.99, t, t * 1.01], clocks={"sm_mhz": 1980.0, "slowed": []})

        for ordinal, text in db.execute("SELECT ordinal, record FROM outcome").fetchall():
            record = json.loads(text)
            measure(record)
            db.execute("UPDATE outcome SET record = ? WHERE ordinal = ?", (json.dumps(record), ordinal))
        path = os.path.join(folder, "outcome.json")
        with open(path) as f:
            record = json.load(f)
        measure(record)
        watched = dict(record["confirmed"], scope="small shapes")
        db.execute("INSERT INTO meta VALUES (?, ?)", ("watched_%d" % record["ordinal"], json.dumps(watched)))
        del record["confirmed"]["lines"]
        record.update(watched=True, simulated_scope="small shapes")
        with open(path, "w") as f:
            json.dump(record, f)
        db.close()
        return folder

    def many(self, n=5000):
        """So many candidates, of which one in twelve is rejected; every row another time and strategy."""
        folder = self.copy("many")
        db = self.open_archive(folder)
        chance = random.Random(7)
        rows = db.execute("SELECT strategy, reason, source, source_hash, record FROM candidate JOIN "
                          "outcome USING (ordinal) ORDER BY ordinal").fetchall()
        rows = [row for row in rows if '"accepted":true' in row[4]]
        start = db.execute("SELECT count(*) FROM candidate").fetchone()[0]
        db.execute("BEGIN")
        for ordinal in range(start, n):
            strategy, reason, source, digest, text = rows[ordinal % len(rows)]
            record = json.loads(text)
            record["ordinal"], record["parents"] = ordinal, [chance.randrange(ordinal)]
            record["step"] = chance.choice(["crossover", "random", "plan"])
            record["phases"]["decided_at"] += ordinal * 0.25
            words = [w.partition("=")[::2] for w in strategy.split()]
            strategy = " ".join("%s=%s" % (k, chance.choice(["32", "64", "128", "256"]) if k == "block"
                                           else chance.choice("1248") if k == "items" else v)
                                for k, v in words)
            if chance.random() < 1 / 12:
                record.update(verdict=chance.choice(["wrong", "race", "compile-error", "inaccurate"]),
                              accepted=False, why="element y[%d,0] is off" % chance.randrange(9))
                del record["time_s"]
            else:
                record["time_s"] *= 1.02 + chance.expovariate(3)
            db.execute("INSERT INTO candidate VALUES (?, ?, ?, ?, ?, ?, ?)",
                       (ordinal, ordinal // 12, ordinal % 12, strategy, reason, source, digest))
            db.execute("INSERT INTO outcome VALUES (?, ?)", (ordinal, json.dumps(record)))
        db.execute("COMMIT")
        db.close()
        return folder

    def hostile(self):
        """Words of others that would like to be markup, in every place that has some."""
        folder = self.copy("hostile")
        db = self.open_archive(folder)
        text = HOSTILE.replace("\0", "")
        print_ = json.loads(db.execute("SELECT value FROM meta WHERE key = 'fingerprint'").fetchone()[0])
        print_.update(device=text, name=text, agents=text, surprise=text)
        db.execute("UPDATE meta SET value = ? WHERE key = 'fingerprint'", (json.dumps(print_),))
        db.execute("UPDATE meta SET value = ? WHERE key = 'task'", (text,))
        kernel = "// %s\n/* %s */\nchar *s = \"%s\"; %s\n" % (text, text, text, text)
        for ordinal, record in db.execute("SELECT ordinal, record FROM outcome").fetchall():
            record = json.loads(record)
            record.update(step=text, structure=text, scope=text, bound=text, task=text)
            if ordinal % 2:
                record.update(verdict="wrong", accepted=False, why=text)
            db.execute("UPDATE outcome SET record = ? WHERE ordinal = ?", (json.dumps(record), ordinal))
            db.execute("UPDATE candidate SET strategy = ?, reason = ?, source = source || ? WHERE "
                       "ordinal = ?", (text, text, kernel, ordinal))
        db.execute("INSERT INTO call (role, ordinal, candidates, model, prompt_hash, system, user, reply, "
                   "tokens_in, tokens_out, cost, seconds, cut, candidate) VALUES (?, 0, 0, ?, ?, ?, ?, ?, "
                   "10, 20, 0.5, 1, 1, 0)", (text, text, text, text, text, text))
        db.close()
        self.drop_results(folder)
        return folder

    def suite(self, n=126, hostile=True):
        """So many tasks, with runs behind the first few; one could not be read, some have no kernel."""
        folder = self.path("suite")
        chance = random.Random(3)
        families = "pointwise reduction normalisation scan window contraction attention loss".split()
        rows = []
        for i in range(n):
            file = "tasks/some/task_%03d.task" % i
            row = {"file": file, "task": "task_%03d" % i, "workload": families[i % len(families)],
                   "found": i % 21 != 20, "evaluated": 12 + i % 9}
            if row["found"]:
                limit = 10 ** chance.uniform(-6, -3)
                share = min(0.99, chance.betavariate(4, 2 + i % 8))
                row.update(strategy="block=%d items=%d" % (64 << i % 3, 1 + i % 4), estimated=True,
                           time_s=limit / share, limit_s=limit, fraction=share,
                           naive_s=limit / share * chance.uniform(1, 9))
                if i % 2:
                    row["baseline_s"] = limit / share * chance.uniform(0.6, 3)
            else:
                row["error"] = "no kernel was accepted"
            rows.append(row)
        if hostile:
            rows[20].update(task=HOSTILE, file=HOSTILE, workload=HOSTILE, error=HOSTILE)
        os.makedirs(folder)
        for i in range(4):
            self.copy("suite/some/task_%03d" % i)
        with open(os.path.join(folder, "suite.json"), "w") as f:
            json.dump(rows, f)
        return folder
