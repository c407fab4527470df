# What a program has of the state that reeve's caller was in: the harness starts reeve in an unusual one.
import resource

umask = os.umask(0)
say("5/inherited/umask", f"{umask:04o}")
for name in ("AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "MSGQUEUE", "NICE", "NOFILE", "NPROC", "RTPRIO", "RTTIME", "SIGPENDING", "STACK"):
    limits = resource.getrlimit(getattr(resource, "RLIMIT_" + name, 15))       # RTTIME has no name here
    caller = json.loads(os.environ["CALLER_LIMITS"])[name]
    say(f"5/inherited/rlimit-{name.lower()}", "the caller's" if list(limits) == caller else " ".join("unlimited" if n == resource.RLIM_INFINITY else str(n) for n in limits))
say("5/inherited/oom-score", "the caller's" if int(open("/proc/self/oom_score_adj").read()) < 0 else "not protected")
say("5/inherited/oom-score-of-init", "the caller's" if int(open("/proc/1/oom_score_adj").read()) < 0 else "not protected")
say("5/inherited/personality", f"{syscall(135, 0xffffffff):x}")
say("5/inherited/nice", str(os.getpriority(os.PRIO_PROCESS, 0)))
say("5/inherited/scheduler", str(os.sched_getscheduler(0)))
status = open("/proc/self/status").read()
say("5/inherited/blocked-signals", re.search(r"SigBlk:\s*(\S+)", status)[1])
groups = set(re.search(r"Groups:[ \t]*(.*)", status)[1].split())
say("5/inherited/groups", "none" if not groups else "without a name here" if groups <= {"1000", "65534"} else groups)
say("5/inherited/cwd", os.getcwd())
tried("5/inherited/scheduler-fifo", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
tried("5/inherited/nice-down", os.setpriority, os.PRIO_PROCESS, 0, -10)
