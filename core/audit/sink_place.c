#include "audit/sink_private.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/fetch.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_FILE_BYTES_MAX ((size_t)16 << 10)
#define COMPLAINT_BYTES_MAX ((size_t)1024)
#define ANSWER_BYTES_MAX ((size_t)64 << 10)

static int add_word(struct rv_sink *sink, char *word)
{
        void *more = reallocarray(sink->words, sink->n_words + 2, sizeof(*sink->words));

        if (!more)
                return rv_raise(-ENOMEM);
        sink->words = more;
        sink->words[sink->n_words++] = word;
        sink->words[sink->n_words] = NULL;
        return 0;
}

/* The pieces of sink->text between separators, but for empty ones. */
static int split(struct rv_sink *sink, const char *separators, struct rv_error *err)
{
        char *rest = sink->text.data, *word;
        int r = 0;

        while (r == 0 && (word = strsep(&rest, separators)))
                if (*word)
                        r = add_word(sink, word);
        return r < 0 ? rv_error_set(err, r, "out of memory") : 0;
}

/* ---- A file ---- */

/* To read is to see whether the last line is whole; where that is not allowed a line begins anew to be sure. */
static int open_file(struct rv_sink *sink, struct rv_error *err)
{
        static const int modes[] = { O_RDWR, O_WRONLY };
        const char *path = sink->config->to + strlen("file:");
        struct stat st;

        for (size_t i = 0; i < RV_N_ELEMENTS(modes) && sink->file_fd < 0; i++) {
                /* Who opens a FIFO to read and write finds itself as the reader. */
                if (modes[i] == O_RDWR && stat(path, &st) == 0 && !S_ISREG(st.st_mode))
                        continue;
                sink->file_fd = open(
                        path, modes[i] | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
                sink->is_readable = modes[i] == O_RDWR;
        }
        if (sink->file_fd >= 0)
                return 0;
        return rv_error_set(err, rv_raise(-errno), "cannot open %s: %s", path, errno == ENXIO ? "it is a pipe that nobody reads" : strerror(errno));
}

static bool begins_line(const struct rv_sink *sink)
{
        struct stat st;
        char last;

        if (fstat(sink->file_fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
                return true;
        return sink->is_readable && pread(sink->file_fd, &last, 1, st.st_size - 1) == 1 && last == '\n';
}

static int write_by(int fd, const char *data, size_t n, uint64_t deadline_us)
{
        while (n) {
                ssize_t k = write(fd, data, n);

                if (k > 0) {
                        data += k;
                        n -= (size_t)k;
                } else if (k < 0 && errno == EAGAIN) {
                        struct pollfd p = { fd, POLLOUT, 0 };
                        uint64_t now = rv_boot_us();

                        if (now >= deadline_us)
                                return rv_raise(-ETIMEDOUT);
                        (void)poll(&p, 1, (int)RV_MIN((deadline_us - now) / 1000 + 1, (uint64_t)1000));
                } else if (k < 0 && errno != EINTR)
                        return rv_raise(-errno);
        }
        return 0;
}

static int deliver_to_file(struct rv_sink *sink, const void *data, size_t n, uint64_t deadline_us, struct rv_error *err)
{
        int r = 0;

        if (!begins_line(sink))
                r = write_by(sink->file_fd, "\n", 1, deadline_us);
        if (r == 0)
                r = write_by(sink->file_fd, data, n, deadline_us);
        /* A pipe has nothing to sync. */
        if (r == 0 && fdatasync(sink->file_fd) < 0 && errno != EINVAL && errno != EROFS)
                r = rv_raise(-errno);
        return r < 0 ? rv_error_set(err, rv_trace(r), "%s: cannot write: %s", sink->name, strerror(-r)) : 0;
}

/* ---- A command ---- */

static int deliver_to_command(
        struct rv_sink *sink, const void *data, size_t n, uint64_t deadline_us, struct rv_error *err)
{
        static const char *const environment[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL };
        struct iovec in = { (void *)data, n };
        _cleanup_(rv_child_fini) struct rv_child child = {
                .exe_fd = -EBADF, .argv = sink->words, .envp = environment, .in = &in, .n_in = 1,
                .err_max = COMPLAINT_BYTES_MAX, .deadline_us = deadline_us,
        };
        char end[512];
        int r;

        r = rv_child_run(&child, err);
        if (r < 0)
                return rv_trace(r);
        if (child.status != 0)
                return rv_error_set(err, rv_raise(-EREMOTEIO), "%s %s", sink->words[0], rv_child_end_text(&child, end, sizeof(end)));
        if (child.n_unread)
                return rv_error_set(err, rv_raise(-EREMOTEIO), "%s ended with status 0, but without having read the last %zu of %zu bytes", sink->words[0],
                                    child.n_unread, n);
        return 0;
}

/* ---- An address ---- */

static int read_headers(struct rv_sink *sink, struct rv_error *err)
{
        const char *path = sink->config->header_file;
        _cleanup_(rv_closep) int fd = -EBADF;
        struct stat st;
        int r;

        if (rv_buf_puts(&sink->text, "Content-Type: application/x-ndjson\n") < 0)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
        if (!path)
                return rv_trace(split(sink, "\r\n", err));
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0)
                return rv_error_set(err, rv_raise(-errno), "audit.sink.header_file %s: %s", path, strerror(errno));
        if (!S_ISREG(st.st_mode) || (st.st_mode & 077))
                return rv_error_set(err, rv_raise(-EPERM), "audit.sink.header_file %s has to be a regular file with mode 0600: what is in it may be a secret", path);
        r = rv_read_fd(fd, HEADER_FILE_BYTES_MAX, &sink->text);
        if (r < 0)
                return rv_error_set(err, rv_trace(r), "audit.sink.header_file %s: %s", path, strerror(-r));
        return rv_trace(split(sink, "\r\n", err));
}

static int deliver_to_address(
        struct rv_sink *sink, const void *data, size_t n, uint64_t deadline_us, struct rv_error *err)
{
        uint64_t now = rv_boot_us();
        struct rv_fetch_request q = {
                .method = "POST",
                .url = sink->config->to,
                .headers = sink->words,
                .n_headers = sink->n_words,
                .body = data,
                .body_bytes = n,
                .max_bytes = ANSWER_BYTES_MAX,
                .timeout_ms = now < deadline_us ? (deadline_us - now) / 1000 : 1,
                .ca = sink->config->ca,
        };
        struct rv_fetch_answer answer = { 0 };
        int r;

        r = rv_fetch(sink->helper_fd, &q, &answer, err);
        if (r < 0)
                return rv_trace(r);
        if (answer.code == RV_FETCH_TIMEOUT)
                r = rv_error_set(err, rv_raise(-ETIMEDOUT), "%s: %s", sink->name, answer.message);
        else if (answer.code != RV_FETCH_OK)
                r = rv_error_set(err, rv_raise(-EREMOTEIO), "%s: %s: %s", sink->name, rv_fetch_code_name(answer.code), answer.message);
        else if (answer.status < 200 || answer.status > 299)
                r = rv_error_set(err, rv_raise(-EREMOTEIO), "%s: answers with status %d, which is no 2xx", sink->name, answer.status);
        rv_fetch_answer_fini(&answer);
        return r;
}

/* ---- Any of them ---- */

int rv__sink_open_place(struct rv_sink *sink, struct rv_error *err)
{
        int r;

        switch (sink->kind) {
        case RV_SINK_FILE:
                return rv_trace(open_file(sink, err));
        case RV_SINK_COMMAND:
                if (rv_buf_puts(&sink->text, sink->config->to + strlen("command:")) < 0)
                        return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
                return rv_trace(split(sink, " ", err));
        case RV_SINK_HTTPS:
        default:
                r = read_headers(sink, err);
                return r < 0 ? rv_trace(r) : rv_trace(rv_fetch_find(&sink->helper_fd, err));
        }
}

int rv__sink_deliver(struct rv_sink *sink, const void *data, size_t n, uint64_t deadline_us, struct rv_error *err)
{
        if (sink->trouble.code)
                return rv_error_set(err, sink->trouble.code, "%s", sink->trouble.message);
        switch (sink->kind) {
        case RV_SINK_FILE:
                return rv_trace(deliver_to_file(sink, data, n, deadline_us, err));
        case RV_SINK_COMMAND:
                return rv_trace(deliver_to_command(sink, data, n, deadline_us, err));
        case RV_SINK_HTTPS:
        default:
                return rv_trace(deliver_to_address(sink, data, n, deadline_us, err));
        }
}
