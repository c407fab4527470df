#include "mount.h"

#include "common.h"
#include "netns.h"
#include "node_preload.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where the new root is put together: a directory that every host has; only this mount namespace sees it. */
#define STAGE "/tmp"
#define ROOT_OPTIONS "size=4m,nr_inodes=1024,mode=0755"
#define UNASSIGNED_OPTIONS "size=64k,nr_inodes=64,mode=0755"     /* until ns_mount_assign() */
#define EMPTY "." RV_RESERVED_DIR "/empty"
#define NULL_FILE "." RV_RESERVED_DIR "/null"
#define WORK "." RV_RESERVED_DIR "/work"
#define LAYERS RV_RESERVED_DIR "/layers"       /* of all runs; gone before the program starts */
#define VENV_FILE RV_RESERVED_DIR "/pyvenv.cfg"

#define STEP(name, expr)                               \
        do {                                           \
                if ((expr) < 0) {                      \
                        *ret_step = (name);            \
                        return errno ? -errno : -EIO;  \
                }                                      \
        } while (0)

/* A step that names what it was about; static, since the process is single-threaded and ends on failure. */
static const char *about(const char *what, const char *path)
{
        static char text[128];

        snprintf(text, sizeof(text), "%s %s", what, path);
        return text;
}

static int make_file_of(const char *path, const char *data, size_t n, mode_t mode)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);

        if (fd < 0)
                return -1;
        if (n && write(fd, data, n) != (ssize_t)n) {
                close(fd);
                return -1;
        }
        return close(fd);
}

static int make_file(const char *path, const char *text, mode_t mode)
{
        return make_file_of(path, text, strlen(text), mode);
}

/* The parent directories of @path, which is relative to the new root. */
static int make_parents(const char *path)
{
        char part[4096];

        for (const char *slash = strchr(path + 2, '/'); slash; slash = strchr(slash + 1, '/')) {
                snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
                if (mkdir(part, 0755) < 0 && errno != EEXIST)
                        return -1;
        }
        return 0;
}

/* ---- The runtime's view ---- */

#define VIEW_ENTRIES_MAX 256

static int trees[VIEW_ENTRIES_MAX];     /* of the view's binds, by its index; the process has one view */

static int open_tree_at(const char *source)
{
        return (int)syscall(SYS_open_tree, AT_FDCWD, source,
                OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);
}

int ns_mount_open(struct ns_child *c, const char **ret_step)
{
        const struct rv_runtime *rt = c->runtime;

        STEP("make mounts private", mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
        if (rt->n_entries > VIEW_ENTRIES_MAX) {
                errno = E2BIG;
                STEP("show so many paths; runtimes.*.expose lists them", -1);
        }
        for (size_t i = 0; i < rt->n_entries; i++)
                if (rt->entries[i].kind == RV_VIEW_BIND) {
                        trees[i] = open_tree_at(rt->entries[i].source);
                        STEP(about("open", rt->entries[i].source), trees[i]);
                }
        if (c->layers_fd < 0 && c->layers) {
                c->layers_fd = open_tree_at(c->layers);
                STEP("open the layers", c->layers_fd);
        }
        return 0;
}

/* Takes @tree. @attributes: MOUNT_ATTR_… besides read-only and nosuid. */
static int attach_read_only(int tree, const char *path, uint64_t attributes)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | attributes };
        struct stat st, at;
        int r = -1;

        if (fstat(tree, &st) < 0 || make_parents(path) < 0)
                goto out;
        /* The place is there already if it lies in something bound earlier. */
        if (lstat(path, &at) < 0 && (S_ISDIR(st.st_mode) ? mkdir(path, 0755) : make_file(path, "", 0444)) < 0)
                goto out;
        if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
                goto out;
        r = (int)syscall(SYS_move_mount, tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
out:
        close(tree);
        return r;
}

/* A link that is shown may lead to what is not: there is nothing to hide then. */
static int hide(const char *path)
{
        struct stat st;

        if (lstat(path, &st) < 0)
                return errno == ENOENT ? 0 : -1;
        return mount(S_ISDIR(st.st_mode) ? EMPTY : NULL_FILE, path, NULL, MS_BIND, NULL);
}

static int fill(const char *path, unsigned number)
{
        char own[64];

        snprintf(own, sizeof(own), "." RV_RESERVED_DIR "/fill%u", number);
        if (mkdir(own, 0755) < 0)
                return -1;
        return mount(own, path, NULL, MS_BIND, NULL);
}

/* In the root that is the working directory. */
static int show(const struct rv_runtime *rt, enum rv_view_when when, const char **ret_step)
{
        char path[4096];

        for (size_t i = 0; i < rt->n_entries; i++) {
                const struct rv_view_entry *e = &rt->entries[i];

                if (e->when != when)
                        continue;
                snprintf(path, sizeof(path), ".%s", e->path);
                switch (e->kind) {
                case RV_VIEW_BIND:
                        STEP(about("show", e->path), attach_read_only(trees[i], path, MOUNT_ATTR_NODEV));
                        break;
                case RV_VIEW_LINK:
                        STEP(about("link", e->path), make_parents(path));
                        STEP(about("link", e->path), symlink(e->source, path));
                        break;
                case RV_VIEW_HIDE:
                        STEP(about("hide", e->path), hide(path));
                        break;
                case RV_VIEW_FILL:
                        STEP(about("hide", e->path), fill(path, (unsigned)i));
                        break;
                }
        }
        return 0;
}

/* ---- What every run finds besides ---- */

static int make_etc(const char **ret_step)
{
        static const struct {
                const char *path, *text;
        } files[] = {
                { "./etc/passwd", "root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/box:/bin/sh\n"
                                  "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n" },
                { "./etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n" },
                { "./etc/hosts", "127.0.0.1 localhost " NS_HOST_NAME "\n::1 localhost " NS_HOST_NAME "\n" },
                { "./etc/hostname", NS_HOST_NAME "\n" },
                { "./etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n" },
                { "./etc/resolv.conf", RV_NETNS_RESOLV_CONF },
        };

        STEP("make /etc", mkdir("./etc", 0755));
        for (size_t i = 0; i < RV_N_ELEMENTS(files); i++)
                STEP(about("make", files[i].path + 1), make_file(files[i].path, files[i].text, 0444));
        return 0;
}

static int make_dev(const char **ret_step)
{
        static const char *const devices[] = { "null", "zero", "full", "random", "urandom" };
        static const char *const links[][2] = {
                { "/proc/self/fd", "./dev/fd" },
                { "/proc/self/fd/0", "./dev/stdin" },
                { "/proc/self/fd/1", "./dev/stdout" },
                { "/proc/self/fd/2", "./dev/stderr" },
        };
        char host[32], path[32];
        struct stat st;
        int tree;

        STEP("make /dev", mkdir("./dev", 0755));
        for (size_t i = 0; i < RV_N_ELEMENTS(devices); i++) {
                snprintf(host, sizeof(host), "/dev/%s", devices[i]);
                snprintf(path, sizeof(path), "./dev/%s", devices[i]);
                STEP(about("find", host), stat(host, &st));
                if (!S_ISCHR(st.st_mode)) {
                        errno = ENODEV;
                        STEP(about("find the device", host), -1);
                }
                /* Read-only keeps a program from the times of the host's inode; a device is written all the same. */
                tree = open_tree_at(host);
                STEP(about("open", host), tree);
                STEP(about("bind", host), attach_read_only(tree, path, MOUNT_ATTR_NOEXEC));
        }
        for (size_t i = 0; i < RV_N_ELEMENTS(links); i++)
                STEP("link in /dev", symlink(links[i][0], links[i][1]));
        return 0;
}

/* One file system for all that a program may write, so that one cap holds for all of it. */
static int make_writable(const struct ns_child *c, const char **ret_step)
{
        static const struct {
                const char *dir, *path;
                mode_t mode;
        } places[] = {
                { WORK "/box", "./box", 0755 },
                { WORK "/tmp", "./tmp", 01777 },
                { WORK "/shm", "./dev/shm", 01777 },
        };
        uid_t uid = c->has_own_uid ? NS_PROGRAM_UID : getuid();

        STEP("make the writable file system", mkdir(WORK, 0755));
        STEP("mount the writable file system", mount("tmpfs", WORK, "tmpfs", MS_NOSUID | MS_NODEV, UNASSIGNED_OPTIONS));
        for (size_t i = 0; i < RV_N_ELEMENTS(places); i++) {
                STEP(places[i].path + 1, mkdir(places[i].dir, 0755));
                STEP(places[i].path + 1, chown(places[i].dir, uid, uid));
                STEP(places[i].path + 1, chmod(places[i].dir, places[i].mode));
                STEP(places[i].path + 1, mkdir(places[i].path, 0755));
                STEP(places[i].path + 1, mount(places[i].dir, places[i].path, NULL, MS_BIND, NULL));
        }
        STEP("hide the writable file system's root", umount2(WORK, MNT_DETACH));
        STEP("hide the writable file system's root", rmdir(WORK));
        return 0;
}

/* No namespace below this one, even if a filter had a hole. Before /proc/sys becomes read-only. */
static int forbid_namespaces(void)
{
        int fd = open("./proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC), r;

        if (fd < 0)
                return errno == ENOENT ? 0 : -1;
        r = write(fd, "0", 1) == 1 ? 0 : -1;
        close(fd);
        return r;
}

static int make_proc(const char **ret_step)
{
        static const char *const masked[] = { "acpi", "scsi", "asound", "kcore", "keys", "kmsg", "latency_stats",
                                              "sched_debug", "sysrq-trigger", "timer_list", "config.gz", "kallsyms",
                                              /* the host's: its locks (ids of other runs among them), boot line, disks, load */
                                              "locks", "key-users", "pressure", "cmdline", "partitions", "diskstats",
                                              "interrupts", "softirqs" };
        static const char *const read_only[] = { "bus", "fs", "irq", "sys" };
        char path[64];
        struct stat st;
        int tree;

        STEP("make /proc", mkdir("./proc", 0755));
        STEP("mount /proc", mount("proc", "./proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
        STEP("forbid namespaces", forbid_namespaces());
        for (size_t i = 0; i < RV_N_ELEMENTS(masked); i++) {
                snprintf(path, sizeof(path), "./proc/%s", masked[i]);
                if (lstat(path, &st) < 0)
                        continue;
                STEP(about("mask", path + 1), mount(S_ISDIR(st.st_mode) ? EMPTY : NULL_FILE, path, NULL, MS_BIND, NULL));
        }
        for (size_t i = 0; i < RV_N_ELEMENTS(read_only); i++) {
                snprintf(path, sizeof(path), "./proc/%s", read_only[i]);
                if (lstat(path, &st) < 0)
                        continue;
                tree = open_tree_at(path);
                STEP(about("open", path + 1), tree);
                STEP(about("make read-only", path + 1), attach_read_only(tree, path, MOUNT_ATTR_NODEV));
        }
        return 0;
}

static int make_reserved(const char **ret_step)
{
        STEP("make " RV_RESERVED_DIR, mkdir("." RV_RESERVED_DIR, 0755));
        STEP("make " RV_RESERVED_DIR "/empty", mkdir(EMPTY, 0555));
        STEP("make " RV_RESERVED_DIR "/null", make_file(NULL_FILE, "", 0444));
        return 0;
}

int ns_mount_root(const struct ns_child *c, const char **ret_step)
{
        int r;

        STEP("mount the root", mount("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, ROOT_OPTIONS));
        STEP("enter the root", chdir(STAGE));
        r = make_reserved(ret_step);
        if (r == 0)
                r = make_etc(ret_step);
        if (r == 0)
                r = show(c->runtime, RV_VIEW_ALWAYS, ret_step);
        if (r == 0)
                r = make_dev(ret_step);
        if (r == 0)
                r = make_writable(c, ret_step);
        if (r == 0 && c->layers_fd >= 0)
                STEP("show the layers", attach_read_only(c->layers_fd, "." LAYERS, MOUNT_ATTR_NODEV));
        rv_test_point("in-mounts");
        if (r == 0)
                r = make_proc(ret_step);
        if (r < 0)
                return r;
        STEP("pivot_root", syscall(SYS_pivot_root, ".", "."));
        STEP("leave the host's root", umount2(".", MNT_DETACH));
        STEP("enter " RV_BOX, chdir(RV_BOX));
        return 0;
}

static int make_own_directory(const struct ns_child *c, const char *path)
{
        if (mkdir(path, 0755) < 0)
                return -1;
        return c->has_own_uid ? chown(path, NS_PROGRAM_UID, NS_PROGRAM_UID) : 0;
}

/* What pip installs goes there; Python looks for things there only if it is there when it starts. */
static int make_python_site(const struct ns_child *c, const char **ret_step)
{
        char path[96];

        if (!c->runtime->python_site)
                return 0;
        snprintf(path, sizeof(path), ".local/%s/", c->runtime->python_site);
        for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = 0;
                STEP(about("make " RV_BOX, path), make_own_directory(c, path));
                *slash = '/';
        }
        return 0;
}

/* npm installs into the nearest directory above that has a node_modules: that is not to be the layer's. */
static int make_node_site(const struct ns_child *c, const char **ret_step)
{
        if (c->layer[0])
                STEP("make " RV_BOX "/node_modules", make_own_directory(c, "node_modules"));
        return 0;
}

/* Which package manager it is to have. RV_VIEW_ALWAYS: none. */
static enum rv_view_when tools_of(const struct ns_child *c)
{
        if (c->network != RV_PLAN_NETWORK_REGISTRIES)
                return RV_VIEW_ALWAYS;
        return c->init.language == RV_PLAN_PYTHON ? RV_VIEW_PYTHON_TOOLS : RV_VIEW_JAVASCRIPT_TOOLS;
}

static int show_tools(const struct ns_child *c, const struct rv_payload *payload, const char **ret_step)
{
        enum rv_view_when tools = tools_of(c),
                          also = c->is_resolver && tools == RV_VIEW_PYTHON_TOOLS ? RV_VIEW_RESOLVER : tools;
        int r;

        for (size_t i = 0; i < c->runtime->n_entries; i++)
                if (c->runtime->entries[i].kind == RV_VIEW_BIND && c->runtime->entries[i].when != RV_VIEW_ALWAYS &&
                        c->runtime->entries[i].when != tools && c->runtime->entries[i].when != also)
                        close(trees[i]);
        if (tools == RV_VIEW_ALWAYS)
                return 0;
        STEP("go to the root", chdir("/"));
        r = show(c->runtime, tools, ret_step);
        if (r == 0 && also != tools)
                r = show(c->runtime, also, ret_step);
        if (r < 0)
                return r;
        STEP("go back to " RV_BOX, chdir(RV_BOX));
        if (payload->ca_bytes)
                STEP("make " RV_PLAN_CA_FILE, make_file_of(RV_PLAN_CA_FILE, payload->ca, payload->ca_bytes, 0444));
        return tools == RV_VIEW_PYTHON_TOOLS ? make_python_site(c, ret_step) : make_node_site(c, ret_step);
}

/*
 * With its package manager a run may install more beside its layer: then the environment shows what the runtime has
 * besides, which is that package manager, and the user's own place.
 */
static int open_environment(const struct ns_child *c, const char **ret_step)
{
        const char *python = c->runtime->config->python;
        char text[4200];

        snprintf(text, sizeof(text), "home = %.*s\ninclude-system-site-packages = true\n", (int)(strrchr(python, '/') - python), python);
        STEP("make " VENV_FILE, make_file(VENV_FILE, text, 0444));
        STEP("show " VENV_FILE, mount(VENV_FILE, RV_LAYER_PYTHON "/pyvenv.cfg", NULL, MS_BIND, NULL));
        return 0;
}

/* The run's own layer at its place; the others are out of reach from here on. */
static int show_layer(const struct ns_child *c, const char **ret_step)
{
        bool is_python = c->init.language == RV_PLAN_PYTHON;
        const char *place = is_python ? RV_LAYER_PYTHON : RV_LAYER_JAVASCRIPT;
        char tree[128];

        if (c->layer[0]) {
                snprintf(tree, sizeof(tree), LAYERS "/%s/tree", c->layer);
                STEP(about("make", place), mkdir(place, 0755));
                STEP("show the package layer", mount(tree, place, NULL, MS_BIND, NULL));
        }
        if (c->layers_fd >= 0) {
                STEP("hide the other layers", umount2(LAYERS, MNT_DETACH));
                STEP("hide the other layers", rmdir(LAYERS));
        }
        return c->layer[0] && is_python && c->network == RV_PLAN_NETWORK_REGISTRIES ? open_environment(c, ret_step) : 0;
}

int ns_mount_assign(const struct ns_child *c, const struct rv_payload *payload, const char **ret_step)
{
        char options[96];
        int r;

        snprintf(options, sizeof(options), "size=%llu,nr_inodes=%llu", (unsigned long long)c->init.memory_mib << 19,
                 (unsigned long long)c->init.memory_mib * 128);
        STEP("cap the writable file system", mount(NULL, RV_BOX, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, options));
        if (c->init.language == RV_PLAN_JAVASCRIPT)
                STEP("make the preload", make_file(RV_NODE_PRELOAD, rv_node_preload, 0444));
        r = show_layer(c, ret_step);
        return r < 0 ? r : show_tools(c, payload, ret_step);
}

int ns_mount_seal(const char **ret_step)
{
        STEP("make the root read-only", mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, ROOT_OPTIONS));
        return 0;
}
