#include "package_remove.h"

#include "base/fd.h"
#include "base/text.h"
#include "layers.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct package_remover {
        struct rv_layers layers;         /* of this process, if there is no child */
        int fd;                          /* the child's other end, or -EBADF */
        pid_t pid;
};

struct answer {
        int status;
        char message[RV_ERROR_MESSAGE_MAX];
};

/* Until the other end closes. Anything that is no digest is refused by rv_layers_remove(). */
_Noreturn static void serve(const struct rv_layers *layers, int fd)
{
        char digest[RV_LAYERS_NAME_SIZE];
        ssize_t n;

        while ((n = recv(fd, digest, sizeof(digest) - 1, 0)) > 0) {
                struct answer answer = { 0 };
                struct rv_error err = { 0 };

                digest[n] = 0;
                answer.status = rv_layers_remove(layers, digest, &err);
                rv_text_copy(answer.message, sizeof(answer.message), err.message);
                if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) != (ssize_t)sizeof(answer))
                        break;
        }
        _exit(0);
}

static int start(struct package_remover *r, struct rv_error *err)
{
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return rv_error_set(err, rv_raise(-errno), "cannot make a channel: %s", strerror(errno));
        r->pid = fork();
        if (r->pid == 0) {
                close(fds[0]);
                serve(&r->layers, fds[1]);
        }
        rv_close(fds[1]);
        r->fd = fds[0];
        return r->pid < 0 ? rv_error_set(err, rv_raise(-errno), "cannot start a process that removes layers: %s", strerror(errno)) : 0;
}

int package_remover_new(const char *state_dir, bool is_apart, struct package_remover **ret, struct rv_error *err)
{
        struct package_remover *remover = calloc(1, sizeof(*remover));
        int r;

        if (!remover)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
        *remover = (struct package_remover){ .layers = { .layers_fd = -EBADF, .staging_fd = -EBADF }, .fd = -EBADF, .pid = -1 };
        r = rv_layers_open(state_dir, &remover->layers, err);
        if (r == 0) {
                (void)rv_layers_sweep(&remover->layers);
                r = is_apart ? start(remover, err) : 0;
        }
        if (is_apart)
                rv_layers_close(&remover->layers);
        if (r < 0) {
                package_remover_free(remover);
                return rv_trace(r);
        }
        *ret = remover;
        return 0;
}

void package_remover_free(struct package_remover *r)
{
        if (!r)
                return;
        rv_close(r->fd);
        if (r->pid > 0)
                while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        rv_layers_close(&r->layers);
        free(r);
}

int package_remover_remove(void *ctx, const char *digest, struct rv_error *err)
{
        struct package_remover *r = ctx;
        struct answer answer;

        if (r->fd < 0)
                return rv_trace(rv_layers_remove(&r->layers, digest, err));
        if (send(r->fd, digest, strlen(digest), MSG_NOSIGNAL) < 0 ||
                recv(r->fd, &answer, sizeof(answer), 0) != (ssize_t)sizeof(answer))
                return rv_error_set(err, rv_raise(-EPIPE), "the process that removes layers is gone");
        return answer.status < 0 ? rv_error_set(err, rv_raise(answer.status), "%s", answer.message) : 0;
}
