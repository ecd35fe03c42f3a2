"""A real Slurm of several nodes on this machine: one controller, a daemon a node, each on a port of
its own, munge with a key of its own; all of it below one folder, and gone at the end."""
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1
PROGRAMS = ("slurmctld", "slurmd", "srun", "salloc", "sbatch", "scontrol", "munged")


def missing():
    """Why there can be none here; empty: nothing is in the way."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    absent = [p for p in PROGRAMS if not shutil.which(p, path=path)]
    if absent:
        return "no %s: tools/setup check with THOROUGH=1 installs Slurm" % ", ".join(absent)
    if os.geteuid() != 0:
        return "Slurm's daemons need root"
    return ""


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def wait_for(what, seconds=30):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = what()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("waited %d s in vain" % seconds)


class Cluster:
    def __init__(self, folder, nodes, gpus=0):
        self.folder, self.nodes, self.gpus = folder, ["n%d" % (i + 1) for i in range(nodes)], gpus
        self.daemons = {}
        self.env = dict(os.environ, SLURM_CONF=folder + "/slurm.conf",
                        PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        for name in list(self.env):
            if name.startswith("SLURM_") and name != "SLURM_CONF":
                del self.env[name]

    def run(self, *words, check=True):
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=60)
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def start(self, name, *words):
        """A daemon in the foreground, which dies with this process, however that dies."""
        def with_us():
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        with open("%s/%s.out" % (self.folder, name), "a") as out:
            self.daemons[name] = subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL, stdout=out,
                                                  stderr=out, preexec_fn=with_us, start_new_session=True)

    def __enter__(self):
        d = self.folder
        os.chmod(d, 0o755)
        for sub in ["state"] + ["spool." + n for n in self.nodes]:
            os.makedirs("%s/%s" % (d, sub))
        with open(d + "/munge.key", "wb") as f:
            f.write(os.urandom(1024))
        os.chmod(d + "/munge.key", 0o400)
        self.write_config()
        self.start("munged", "munged", "--foreground", "--force", "--key-file", d + "/munge.key",
                   "--socket", d + "/munge.sock", "--pid-file", d + "/munged.pid", "--log-file",
                   d + "/munged.log", "--seed-file", d + "/munge.seed")
        wait_for(lambda: os.path.exists(d + "/munge.sock"))
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        wait_for(lambda: self.run("sinfo", "-h", "-o", "%t %D").split() ==
                 ["idle", str(len(self.nodes))])
        return self

    def write_config(self):
        d, host, ports = self.folder, socket.gethostname(), free_ports(len(self.nodes) + 1)
        lines = ["ClusterName=test", "SlurmctldHost=%s(127.0.0.1)" % host,
                 "SlurmctldPort=%d" % ports[0], "SlurmUser=root", "AuthType=auth/munge",
                 "AuthInfo=socket=%s/munge.sock" % d, "StateSaveLocation=%s/state" % d,
                 "SlurmdSpoolDir=%s/spool.%%n" % d, "SlurmctldPidFile=%s/slurmctld.pid" % d,
                 "SlurmdPidFile=%s/slurmd.%%n.pid" % d, "SlurmctldLogFile=%s/slurmctld.log" % d,
                 "SlurmdLogFile=%s/slurmd.%%n.log" % d, "ProctrackType=proctrack/linuxproc",
                 "TaskPlugin=task/none", "JobAcctGatherType=jobacct_gather/none",
                 "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core", "MpiDefault=none",
                 "SlurmdTimeout=5", "SlurmctldTimeout=30", "InactiveLimit=0", "KillWait=2",
                 "ReturnToService=2", "SchedulerParameters=sched_min_interval=2000,batch_sched_delay=0",
                 "PreemptType=preempt/partition_prio", "PreemptMode=CANCEL"]
        gres = ""
        if self.gpus:
            lines.append("GresTypes=gpu")
            gres = " Gres=gpu:fake:%d" % self.gpus
            with open(d + "/gres.conf", "w") as f:
                for node in self.nodes:
                    for i in range(self.gpus):
                        device = "%s/%s.gpu%d" % (d, node, i)
                        os.mknod(device, 0o666 | 0o020000, os.makedev(1, 3))
                        f.write("NodeName=%s Name=gpu Type=fake File=%s\n" % (node, device))
        for node, port in zip(self.nodes, ports[1:]):
            lines.append("NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=1%s "
                         "State=UNKNOWN" % (node, host, port, gres))
        names = "n[1-%d]" % len(self.nodes)
        lines += ["PartitionName=main Nodes=%s Default=YES MaxTime=INFINITE State=UP" % names,
                  "PartitionName=urgent Nodes=%s MaxTime=INFINITE State=UP PriorityTier=10" % names]
        with open(d + "/slurm.conf", "w") as f:
            f.write("\n".join(lines) + "\n")

    def start_controller(self):
        self.start("slurmctld", "slurmctld", "-D")
        wait_for(lambda: "UP" in self.run("scontrol", "ping", check=False))

    def start_node(self, node):
        self.start("slurmd." + node, "slurmd", "-D", "-N", node)

    def kill(self, name, how=signal.SIGKILL):
        """A daemon."""
        self.daemons[name].send_signal(how)
        self.daemons[name].wait(timeout=30)

    def jobs(self, name=None):
        """Numbers of all jobs, or of those with a name."""
        return self.run("squeue", "-h", *(["-n", name] if name else []), "-o", "%i").split()

    def steps(self, job):
        """Of workers, as (step, node)."""
        lines = self.run("squeue", "-h", "-s", "-j", job, "-o", "%i %N", check=False).split("\n")
        return [tuple(x.split()) for x in lines if x and ".ext" not in x and ".bat" not in x]

    def state(self):
        """What the controller knows, for messages."""
        return "".join(self.run(*words, check=False) for words in
                       (("sinfo", "-N"), ("squeue",), ("squeue", "-s"), ("scontrol", "show", "job", "-o")))

    def __exit__(self, *_):
        self.run("scancel", "-f", "-u", "root", check=False)
        for name in ["slurmd." + n for n in self.nodes] + ["slurmctld", "munged"]:
            if name in self.daemons:
                self.kill(name)
