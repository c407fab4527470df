#!/usr/bin/python3
"""Runs one command in a fresh guest, with the tree and a build copied to /srv/reeve.

    shell.py [--build DIR] [--user root|tester|plain] [--timeout S] [COMMAND]

COMMAND is text for the shell; without one its lines are read from standard input. No --user: in a system service.
"""
import argparse
import os
import sys

import cache
import machine
import tree


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--build")
    a.add_argument("--user", choices=("root", "tester", "plain"))
    a.add_argument("--timeout", type=float, default=600)
    a.add_argument("command", nargs="?")
    opt = a.parse_args()
    command = opt.command or sys.stdin.read()
    with cache.guest() as m:
        if opt.build:
            tree.push(m, os.path.abspath(opt.build))
        got = m.run(machine.as_user(opt.user, command) if opt.user else command, timeout_s=opt.timeout,
                    echo=lambda part: os.write(1, part))
    sys.stderr.write(got.err)
    return 124 if got.is_late else got.status


if __name__ == "__main__":
    sys.exit(main())
