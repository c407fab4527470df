"""What a guest gets of the project: the files that its tests read, and a finished build, both below /srv/reeve."""
import os

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOME = "/srv/reeve"
BUILD = HOME + "/build"
REEVE = BUILD + "/tools/reeve/reeve"
SOURCES = ("README.md", "tools/dev", "tests/conformance", "tests/lib", "tests/guest")
BUILT = ("tools/reeve/reeve", "tools/gate/reeve-gate", "tools/fetch/reeve-fetch", "tools/unpack/reeve-unpack", "tests/bench/cold", "tests/bench/floor")
UV_PLACE = "/usr/local/bin"     # where reeve looks for it by itself


def push(m, build):
    m.push(TOP, SOURCES, HOME)
    m.push(build, BUILT, BUILD)


def push_uv(m):
    """If there is one: it resolves in a tenth of the time that pip takes in a guest."""
    uv = os.environ.get("REEVE_UV", "")
    if os.path.basename(uv) == "uv":
        m.push(os.path.dirname(uv), ("uv",), UV_PLACE)
