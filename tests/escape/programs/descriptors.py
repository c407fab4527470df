# reeve was started with more descriptors than three: directories of the host and a namespace.

open_ones = [n for n in range(4096) if os.path.lexists(f"/proc/self/fd/{n}")]
say("5/leaked-fds/caller-had-more", [str(n) for n in open_ones])
entered = []
for n in range(4096):
    try:
        os.fchdir(n)
        entered.append(str(n))
    except OSError:
        pass
say("5/leaked-fds/caller-had-more-fchdir", entered or "none")
