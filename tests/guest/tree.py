"""What a guest gets of the project: the files that its tests read, and a finished build, both below /srv/reeve."""
import os

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOME = "/srv/reeve"
BUILD = HOME + "/build"
REEVE = BUILD + "/tools/reeve/reeve"
SOURCES = ("README.md", "tools/dev", "tests/conformance", "tests/lib", "tests/guest")
BUILT = ("tools/reeve/reeve", "tools/gate/reeve-gate", "tests/bench/cold", "tests/bench/floor")


def push(m, build):
    m.push(TOP, SOURCES, HOME)
    m.push(build, BUILT, BUILD)
