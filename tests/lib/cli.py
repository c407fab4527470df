#!/usr/bin/python3
"""What `reeve` does with its own streams: readers that stand still or are gone, full files, words that hold control characters.

    cli.py REEVE

The checks that run a program are left out, and said to be, where `reeve doctor` finds something missing.
Prints one line per failure. Exit status 1 if any failed.
"""
import json, os, signal, subprocess, sys, tempfile, time

MUCH = 'import sys\nwhile True: sys.stdout.write("x" * 65536)\n'
WORD = "\x1b[31mX\nY"
failures = []

def check(name, ok, got):
    if not ok:
        failures.append(name)
        print(f"FAILED {name}: {got!r}")

class Cli:
    def __init__(self, reeve, place):
        self.reeve, self.place = reeve, place
        for name, text in (("hello.py", "print('hi')\n"), ("much.py", MUCH), ("reeve.yaml", f"state_dir: {place}/state\n")):
            with open(os.path.join(place, name), "w", encoding="ascii") as f:
                f.write(text)

    def start(self, *words, stdout=subprocess.PIPE):
        return subprocess.Popen([self.reeve, *words], cwd=self.place, stdout=stdout, stderr=subprocess.PIPE)

    def run(self, *words, stdout=subprocess.PIPE):
        p = self.start(*words, stdout=stdout)
        out, err = p.communicate(timeout=60)
        return p.returncode, out, err.decode()

def words_are_shown(cli):
    os.mkdir(os.path.join(cli.place, "bundle"))
    with open(os.path.join(cli.place, "bundle/policy.lua"), "w", encoding="ascii") as f:
        f.write('error("\\27[31mX\\nY")\n')
    for words in (["run", "--" + WORD, "hello.py"], ["run", "--raw=" + WORD, "hello.py"], ["policy", "check", WORD],
                  ["policy", "check", "bundle"], ["doctor", "--config", WORD]):
        _, out, err = cli.run(*words)
        text = out.decode() + err
        check(f"{words[:2]} shows the word", "^[[31mX^JY" in text and "\x1b" not in text, text)

def lost_is_said(cli):
    bad = ["run", "--config", "reeve.yaml", "--timeout", "400"]
    with open("/dev/full", "wb") as full:
        for words in (bad + ["--json", "hello.py"], ["run", "--json", "--config", "nowhere", "hello.py"], ["version", "--json"]):
            status, _, err = cli.run(*words, stdout=full)
            check(f"{words} to a full file", status == 125 and "No space left" in err, (status, err))
    status, _, err = cli.run(*bad, "--outcome", "/dev/full", "hello.py")
    check("a problem to a full file", status == 125 and "No space left" in err, (status, err))

def gone(cli):
    for words, wanted in ((["hello.py"], 0), (["--json", "hello.py"], 0), (["--json", "--timeout", "400", "hello.py"], 2)):
        r, w = os.pipe()
        os.close(r)
        status, _, err = cli.run("run", "--config", "reeve.yaml", *words, stdout=w)
        os.close(w)
        check(f"{words} to nobody", status == wanted and "annot write" not in err, (status, err))

def stalled(cli):
    outcome = os.path.join(cli.place, "o.json")
    p = cli.start("run", "--config", "reeve.yaml", "--timeout", "30", "--outcome", "o.json", "much.py")
    time.sleep(1.5)
    p.send_signal(signal.SIGTERM)
    time.sleep(1.2)
    with open(outcome, "rb") as f:
        text = f.read()
    check("the outcome comes before the reader", b'"shutdown"' in text and p.poll() is None, text[:200])
    try:
        status = p.wait(10)
    except subprocess.TimeoutExpired:
        p.kill()
        status = None
    check("a reader that stands still is given up", status == 125, status)
    p.communicate()

def one_signal(cli):
    p = cli.start("run", "--config", "reeve.yaml", "--json", "--timeout", "1", "much.py")
    time.sleep(2.5)
    p.send_signal(signal.SIGINT)
    time.sleep(0.5)
    out, _ = p.communicate(timeout=30)
    try:
        status = json.loads(out)["status"]
    except ValueError:
        status = out[-100:]
    check("one signal leaves the outcome whole", status == "failed" and p.returncode in (123, 124), (status, p.returncode))

def main():
    reeve = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as place:
        cli = Cli(reeve, place)
        words_are_shown(cli)
        lost_is_said(cli)
        if cli.run("doctor", "--config", "reeve.yaml")[0] == 0:
            for f in (gone, stalled, one_signal):
                f(cli)
        else:
            print("left out: what runs a program")
    return 1 if failures else 0

if __name__ == "__main__":
    sys.exit(main())
