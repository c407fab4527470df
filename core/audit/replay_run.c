#include "audit/replay_pair.h"
#include "audit/replay_private.h"

#include <pthread.h>
#include <string.h>

#define STRETCH_BYTES ((uint64_t)4 << 20)        /* of the log, that one thread takes at a time */

/* The log in stretches. Whatever the threads do, the results of stretches are added up in their order. */
struct shared {
        const struct rv_replay_input *input;
        pthread_mutex_t mutex;
        pthread_cond_t is_merged;
        uint64_t next, end;                      /* where the next stretch begins, and where the last ends */
        uint64_t n_taken, n_merged;
        struct rv_replay_result *result;
        int r;                                   /* the first error ends all */
        struct rv_error err;
};

/* The next stretch, if there is one. */
static bool take(struct shared *s, uint64_t *ret_from, uint64_t *ret_number)
{
        bool is_taken = false;

        pthread_mutex_lock(&s->mutex);
        if (s->r == 0 && s->next < s->end) {
                *ret_from = s->next;
                *ret_number = s->n_taken++;
                s->next += STRETCH_BYTES;
                is_taken = true;
        }
        pthread_mutex_unlock(&s->mutex);
        return is_taken;
}

/* Waits for its turn, so that no more parts wait than there are threads. */
static void give(struct shared *s, uint64_t number, struct rv_replay_result *part, int r, const struct rv_error *err)
{
        pthread_mutex_lock(&s->mutex);
        while (s->n_merged != number)
                pthread_cond_wait(&s->is_merged, &s->mutex);
        if (r == 0 && s->r == 0)
                r = rv_replay_merge(s->result, part);
        if (r < 0 && s->r == 0) {
                s->r = r;
                s->err = *err;
        }
        s->n_merged++;
        pthread_cond_broadcast(&s->is_merged);
        pthread_mutex_unlock(&s->mutex);
}

static int replay_stretch(
        struct rv_replay_worker *w, uint64_t from, struct rv_replay_result *part, struct rv_error *err)
{
        struct rv_lines lines;
        const char *line;
        size_t n;
        int r;

        r = rv_lines_begin_range(&lines, w->input->segments, from, from + STRETCH_BYTES, err);
        while (r == 0 && (r = rv_lines_next(&lines, &line, &n, err)) > 0)
                r = rv_replay_line(w, line, n, &lines, part);
        rv_lines_close(&lines);
        return r;
}

static void *work(void *arg)
{
        struct shared *s = arg;
        struct rv_replay_worker *w = malloc(sizeof(*w));
        int r = w ? rv_replay_worker_init(w, s->input) : rv_raise(-ENOMEM);
        uint64_t from, number;

        while (take(s, &from, &number)) {
                struct rv_replay_result *part = calloc(1, sizeof(*part));
                struct rv_error err = { 0 };

                if (!part)
                        r = rv_raise(-ENOMEM);
                if (r == 0)
                        r = replay_stretch(w, from, part, &err);
                give(s, number, part, r, &err);
                rv_replay_free(part);
        }
        if (w)
                rv_replay_worker_fini(w);
        free(w);
        return NULL;
}

int rv_replay(const struct rv_replay_input *input, struct rv_replay_result **ret, struct rv_error *err)
{
        struct shared s = { .input = input, .mutex = PTHREAD_MUTEX_INITIALIZER, .is_merged = PTHREAD_COND_INITIALIZER };
        _cleanup_(rv_replay_freep) struct rv_replay_result *result = calloc(1, sizeof(*result));
        pthread_t threads[RV_REPLAY_JOBS_MAX];
        unsigned n = 0;

        if (!result)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
        s.result = result;
        s.next = rv_segments_at_seq(input->segments, input->from_seq);
        s.end = rv_segments_past_seq(input->segments, input->to_seq);
        /* This thread is one of them: fewer than asked for do the same, slower. */
        while (n + 1 < RV_MIN(input->jobs, (unsigned)RV_REPLAY_JOBS_MAX) &&
                pthread_create(&threads[n], NULL, work, &s) == 0)
                n++;
        work(&s);
        for (unsigned i = 0; i < n; i++)
                pthread_join(threads[i], NULL);
        if (s.r == 0)
                s.r = rv_replay_stages_end(result);
        if (s.r < 0)
                return rv_error_set(err, rv_trace(s.r), "%s", s.err.message[0] ? s.err.message : strerror(-s.r));
        *ret = rv_take(&result);
        return 0;
}
