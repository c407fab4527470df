# Makes the probe out of standard input and becomes it.
import base64
import os
import sys
import zlib

with open("/tmp/probe", "wb") as f:
    f.write(zlib.decompress(base64.b64decode(sys.stdin.buffer.read())))
os.chmod("/tmp/probe", 0o755)
os.execv("/tmp/probe", ["probe"] + os.environ["PROBE_GROUPS"].split())
