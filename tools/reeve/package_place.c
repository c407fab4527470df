#include "package.h"

#include "package_remove.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Nothing of a store is parsed as root if the store is another's. */
static int become_owner(int state_fd, const char *path, struct rv_error *err)
{
        struct stat st;

        if (geteuid() != 0)
                return 0;
        if (fstat(state_fd, &st) == 0 &&
                (st.st_uid == 0 ||
                        (setgroups(0, NULL) == 0 && setresgid(st.st_gid, st.st_gid, st.st_gid) == 0 &&
                                setresuid(st.st_uid, st.st_uid, st.st_uid) == 0)))
                return 0;
        return rv_error_set(err, rv_raise(-errno), "%s: cannot become its owner: %s", path, strerror(errno));
}

static int open_remover(struct package_place *place, struct rv_error *err)
{
        struct package_remover *remover = NULL;
        int r = package_remover_new(place->config->state_dir, geteuid() == 0, &remover, err);

        if (r < 0)
                return rv_trace(r);
        place->remove = package_remover_remove;
        place->ctx = remover;
        return 0;
}

int package_place_open(const char *config, bool is_change, struct package_place *ret, struct rv_error *err)
{
        _cleanup_(rv_closep) int state_fd = -EBADF;
        uid_t owner = geteuid();
        const char *path;
        int r;

        *ret = (struct package_place){ 0 };
        r = rv_config_load(config, &ret->config, err);
        if (r < 0)
                return rv_trace(r);
        path = ret->config->state_dir;
        state_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (state_fd < 0 && errno == ENOENT)
                return 0;
        if (state_fd < 0)
                return rv_error_set(err, rv_raise(-errno), "cannot open the state directory %s: %s; only root and the user whose it is can", path, strerror(errno));
        if (faccessat(state_fd, "packages", F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
                return 0;
        r = is_change ? open_remover(ret, err) : 0;
        if (r == 0)
                r = become_owner(state_fd, path, err);
        if (r == 0)
                r = rv_store_open(state_fd, path, owner, &ret->store, err);
        return rv_trace(r);
}

void package_place_close(struct package_place *place)
{
        package_remover_free(place->ctx);
        rv_store_close(place->store);
        rv_config_free(place->config);
        *place = (struct package_place){ 0 };
}

const char *package_digest(const char *word)
{
        if (strncmp(word, "sha256:", 7) == 0)
                word += 7;
        return strlen(word) == RV_SHA256_HEX_SIZE - 1 && strspn(word, "0123456789abcdef") == RV_SHA256_HEX_SIZE - 1 ? word : NULL;
}

const char *package_size_text(uint64_t bytes, char ret[PACKAGE_TEXT_SIZE])
{
        static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
        uint64_t tenths = bytes * 10 / 1024;
        size_t unit = 0;

        for (; tenths >= 10240 && unit + 1 < RV_N_ELEMENTS(units); unit++)
                tenths /= 1024;
        snprintf(ret, PACKAGE_TEXT_SIZE, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, units[unit]);
        return ret;
}

const char *package_age_text(uint64_t time_us, char ret[PACKAGE_TEXT_SIZE])
{
        uint64_t now = rv_now_us(), s = now > time_us ? (now - time_us) / 1000000 : 0;

        if (s < 120)
                snprintf(ret, PACKAGE_TEXT_SIZE, "%" PRIu64 " s", s);
        else if (s < 2 * 3600)
                snprintf(ret, PACKAGE_TEXT_SIZE, "%" PRIu64 " min", s / 60);
        else if (s < 48 * 3600)
                snprintf(ret, PACKAGE_TEXT_SIZE, "%" PRIu64 " h", s / 3600);
        else
                snprintf(ret, PACKAGE_TEXT_SIZE, "%" PRIu64 " days", s / 86400);
        return ret;
}
