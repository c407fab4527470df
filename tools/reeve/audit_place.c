#include "audit.h"

#include "audit/checkpoint.h"
#include "base/config.h"
#include "base/fd.h"

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int find_dir(const char *config, const char *dir, char **ret, char **ret_key_pub, struct rv_error *err)
{
        _cleanup_(rv_config_freep) struct rv_config *c = NULL;
        int r = 0;

        if (!dir)
                r = rv_config_load(config, &c, err);
        if (r < 0)
                return rv_trace(r);
        *ret = strdup(dir ? dir : c->state_dir);
        if (c && c->audit.key && asprintf(ret_key_pub, "%s.pub", c->audit.key) < 0)
                *ret_key_pub = NULL;
        return *ret && (!c || !c->audit.key || *ret_key_pub) ? 0 : rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
}

/* Nothing of a log is parsed as root if the log is another's. */
static int become_owner(const struct audit_place *place, struct rv_error *err)
{
        struct stat st;

        if (geteuid() != 0)
                return 0;
        if (fstat(place->audit_fd, &st) == 0 &&
            (st.st_uid == 0 || (setgroups(0, NULL) == 0 && setresgid(st.st_gid, st.st_gid, st.st_gid) == 0 &&
                                setresuid(st.st_uid, st.st_uid, st.st_uid) == 0)))
                return 0;
        return rv_error_set(err, rv_raise(-errno), "%s: cannot become its owner to read it: %s", place->path, strerror(errno));
}

/* Before the process becomes another user: the key's directory may be open to its owner alone. */
static void read_key(struct audit_place *place)
{
        if (place->key_pub)
                place->key_status = rv_read_file_at(
                        AT_FDCWD, place->key_pub, RV_CHECKPOINT_VERIFIER_SIZE, &place->key_text);
}

int audit_place_open(const char *config, const char *dir, struct audit_place *ret, struct rv_error *err)
{
        _cleanup_(rv_freep) char *path = NULL;
        int r;

        *ret = (struct audit_place){ .audit_fd = -EBADF, .state_fd = -EBADF };
        r = find_dir(config, dir, &path, &ret->key_pub, err);
        if (r < 0)
                return rv_trace(r);
        read_key(ret);
        ret->audit_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (ret->audit_fd < 0)
                rv_error_set(err, r = rv_raise(-errno), "cannot open %s: %s; name a state directory, or one with *.jsonl files", path, strerror(errno));
        ret->path = rv_take(&path);
        if (r < 0)
                return r;
        r = openat(ret->audit_fd, "audit", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (r < 0)
                return rv_trace(become_owner(ret, err));
        ret->state_fd = ret->audit_fd;
        ret->audit_fd = r;
        ret->state_dir = rv_take(&ret->path);
        if (asprintf(&ret->path, "%s/audit", ret->state_dir) < 0) {
                ret->path = NULL;
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
        }
        return rv_trace(become_owner(ret, err));
}

void audit_place_close(struct audit_place *place)
{
        rv_close(place->audit_fd);
        rv_close(place->state_fd);
        rv_buf_fini(&place->key_text);
        free(place->key_pub);
        free(place->path);
        free(place->state_dir);
}
