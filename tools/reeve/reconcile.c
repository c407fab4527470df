#include "reconcile.h"

#include "reconcile_table.h"

#include "audit/live_private.h"
#include "audit/lines.h"
#include "audit/record_scan.h"
#include "base/clock.h"
#include "store/outcomes.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define ID_BYTES 16

struct decision {
        uint8_t id[ID_BYTES], instance[ID_BYTES];
        uint64_t seq, outcome_seq;
        bool is_decided, is_concluded, is_started;      /* is_started: the outcome does not say `no` */
        bool has_key, is_alive;         /* is_alive: whoever made it was, before the log was read for the last time */
        uint64_t ended_us;
        uint8_t outcome_sha256[RV_SHA256_SIZE];
};

/* By whom a key was taken last. */
struct key {
        uint8_t hmac[RV_SHA256_SIZE], decision_id[ID_BYTES];
};

/* Stored bytes. */
struct stored {
        uint8_t id[ID_BYTES], sha256[RV_SHA256_SIZE];
        int error;                      /* errno of reading them */
};

struct reconciliation {
        const struct audit_place *place;
        struct reconcile_table decisions, keys, files;
        struct reconcile_counts *counts;
        uint64_t next_seq, last_look_seq;       /* the log's end when it was looked who lives */
        void (*found)(void *ctx, const struct reconcile_finding *finding);
        void *ctx;
        struct rv_error *err;
};

static const struct {
        const char *name, *text;
} kinds[] = {
#define X(name, text) { #name, text },
        RECONCILE_KINDS(X)
#undef X
};

const char *reconcile_kind_name(enum reconcile_kind kind)
{
        return kinds[kind].name;
}

const char *reconcile_kind_text(enum reconcile_kind kind)
{
        return kinds[kind].text;
}

static void tell(struct reconciliation *c, enum reconcile_kind kind, const uint8_t id[ID_BYTES], const uint64_t *seq,
        const char *detail)
{
        struct reconcile_finding finding = { .kind = kind, .has_seq = seq, .seq = seq ? *seq : 0, .detail = detail };

        rv_hex(id, ID_BYTES, finding.decision_id);
        c->counts->findings++;
        c->found(c->ctx, &finding);
}

/* ---- Records ---- */

enum { DECISION_ID, INSTANCE, KEY, KIND, OUTCOME_SHA256, REFUSED, SEQ, STARTED, TIME_US, VERDICT, N_MEMBERS };
static const struct rv_record_member all_members[N_MEMBERS] = {
        [DECISION_ID] = RV_RECORD_MEMBER("decision_id"), [INSTANCE] = RV_RECORD_MEMBER("instance"), [KEY] = RV_RECORD_MEMBER("key"),
        [KIND] = RV_RECORD_MEMBER("kind"),               [OUTCOME_SHA256] = RV_RECORD_MEMBER("outcome_sha256"), [REFUSED] = RV_RECORD_MEMBER("refused"),
        [SEQ] = RV_RECORD_MEMBER("seq"),                 [STARTED] = RV_RECORD_MEMBER("started"), [TIME_US] = RV_RECORD_MEMBER("time_us"),
        [VERDICT] = RV_RECORD_MEMBER("verdict"),
};

struct record {
        struct rv_record_member members[N_MEMBERS];
        uint8_t id[ID_BYTES];
        uint64_t seq, time_us;
};

static bool read_hex(const struct rv_record_member *member, size_t n, uint8_t *ret)
{
        struct rv_record_text text = rv_record_string(member);

        return rv_record_hex(&text, n, ret);
}

static bool is_text(const struct rv_record_member *member, const char *text)
{
        struct rv_record_text own = rv_record_string(member);

        return rv_record_text_is(&own, text);
}

/* Does the run begin with this decision, as far as policy and the core go? */
static bool lets_run(const struct record *r)
{
        struct rv_record_member effect[] = { RV_RECORD_MEMBER("effect") };

        if (r->members[REFUSED].value || !r->members[VERDICT].value)
                return false;
        rv_record_members(r->members[VERDICT].value, r->members[VERDICT].n, effect, 1);
        return is_text(&effect[0], "allow");
}

/* Is whoever took it done with it at this time? */
static bool is_free(struct reconciliation *c, const struct key *key, uint64_t time_us)
{
        const struct decision *d = reconcile_table_get(&c->decisions, key->decision_id, false);

        if (!d || !d->is_concluded)
                return false;
        return !d->is_started || (time_us > d->ended_us && time_us - d->ended_us > RV_OUTCOMES_KEPT_US);
}

static int take_key(struct reconciliation *c, const struct record *r)
{
        struct rv_record_member hmac[] = { RV_RECORD_MEMBER("hmac_sha256") };
        uint8_t bytes[RV_SHA256_SIZE];
        char other[80];
        struct key *key;
        bool is_new;

        rv_record_members(r->members[KEY].value, r->members[KEY].n, hmac, 1);
        if (!read_hex(&hmac[0], sizeof(bytes), bytes))
                return 0;
        is_new = !reconcile_table_get(&c->keys, bytes, false);
        key = reconcile_table_get(&c->keys, bytes, true);
        if (!key)
                return rv_raise(-ENOMEM);
        c->counts->keys += is_new;
        if (!is_new && memcmp(key->decision_id, r->id, ID_BYTES) != 0 && !is_free(c, key, r->time_us)) {
                memcpy(other, "before by ", 10);
                rv_hex(key->decision_id, ID_BYTES, other + 10);
                tell(c, RECONCILE_key_ran_twice, r->id, &r->seq, other);
        }
        memcpy(key->decision_id, r->id, ID_BYTES);
        return 0;
}

static int take_decision(struct reconciliation *c, const struct record *r)
{
        struct decision *d = reconcile_table_get(&c->decisions, r->id, true);
        bool has_key;

        if (!d)
                return rv_raise(-ENOMEM);
        if (d->is_decided) {    /* its second stage, which is no more than the first a thing of after the outcome */
                if (d->is_concluded)
                        tell(c, RECONCILE_outcome_before_decision, r->id, &d->outcome_seq, "");
                return 0;
        }
        if (d->is_concluded)
                tell(c, RECONCILE_outcome_before_decision, r->id, &d->outcome_seq, "");
        d->is_decided = true;
        d->seq = r->seq;
        c->counts->decisions++;
        (void)read_hex(&r->members[INSTANCE], sizeof(d->instance), d->instance);
        has_key = r->members[KEY].value && lets_run(r);
        d->has_key = has_key;
        return has_key ? take_key(c, r) : 0;
}

static int take_outcome(struct reconciliation *c, const struct record *r)
{
        struct decision *d = reconcile_table_get(&c->decisions, r->id, true);

        if (!d)
                return rv_raise(-ENOMEM);
        c->counts->outcomes++;
        if (d->is_concluded) {
                tell(c, RECONCILE_two_outcomes, r->id, &r->seq, "");
                return 0;
        }
        d->is_concluded = true;
        d->outcome_seq = r->seq;
        d->ended_us = r->time_us;
        d->is_started = !is_text(&r->members[STARTED], "no");
        (void)read_hex(&r->members[OUTCOME_SHA256], sizeof(d->outcome_sha256), d->outcome_sha256);
        return 0;
}

static void take_replay(struct reconciliation *c, const struct record *r)
{
        const struct decision *d = reconcile_table_get(&c->decisions, r->id, false);
        uint8_t sha256[RV_SHA256_SIZE] = { 0 };

        c->counts->replays++;
        (void)read_hex(&r->members[OUTCOME_SHA256], sizeof(sha256), sha256);
        if (!d || !d->is_concluded || memcmp(sha256, d->outcome_sha256, sizeof(sha256)) != 0)
                tell(c, RECONCILE_replay_without_outcome, r->id, &r->seq, "");
}

static int take_line(struct reconciliation *c, const struct rv_lines *reader, const char *line, size_t n)
{
        uint64_t expected = c->counts->records ? c->next_seq : rv_log_segment_first(reader->segment);
        struct record r;

        memcpy(r.members, all_members, sizeof(all_members));
        rv_record_members(line, n, r.members, N_MEMBERS);
        if (!r.members[KIND].value || !rv_record_number(&r.members[SEQ], &r.seq) ||
                !rv_record_number(&r.members[TIME_US], &r.time_us) || r.seq != expected)
                return rv_error_set(c->err, rv_raise(-EBADMSG), "%s/%s: at byte %" PRIu64 " there is no record of a log, or not the one that should be there; reeve audit verify tells more",
                                    c->place->path, reader->segment, reader->offset);
        c->next_seq = r.seq + 1;
        c->counts->records++;
        if (!read_hex(&r.members[DECISION_ID], sizeof(r.id), r.id))
                return 0;
        if (is_text(&r.members[KIND], "decision"))
                return take_decision(c, &r);
        if (is_text(&r.members[KIND], "outcome"))
                return take_outcome(c, &r);
        if (is_text(&r.members[KIND], "idempotent_replay"))
                take_replay(c, &r);
        return 0;
}

static int read_log(struct reconciliation *c, struct rv_lines *reader)
{
        const char *line;
        size_t n;
        int r;

        while ((r = rv_lines_next(reader, &line, &n, c->err)) > 0) {
                r = take_line(c, reader, line, n);
                if (r < 0)
                        return rv_error_set(c->err, rv_trace(r), "out of memory after %" PRIu64 " records", c->counts->records);
        }
        return rv_trace(r);
}

/* ---- What is there besides ---- */

/* Whoever holds the lock of its file lives (live.h). */
static bool is_alive(const struct reconciliation *c, const uint8_t instance[ID_BYTES])
{
        _cleanup_(rv_closep) int fd = -EBADF;
        char name[RV_LIVE_NAME_SIZE] = RV_LIVE_DIRECTORY "/";

        rv_hex(instance, ID_BYTES, name + sizeof(RV_LIVE_DIRECTORY));
        fd = openat(c->place->audit_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static int look_at_file(struct reconciliation *c, int dir_fd, const char *name)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct rv_record_text id_text = { name, strlen(name) };
        uint8_t id[ID_BYTES];
        struct stored *file;
        int r;

        if (!rv_record_hex(&id_text, sizeof(id), id))
                return 0;       /* a writer's temporary file, say */
        r = rv_read_file_at(dir_fd, name, RV_OUTCOMES_BYTES_MAX, &text);
        if (r == -ENOENT)
                return 0;       /* pruned meanwhile */
        file = reconcile_table_get(&c->files, id, true);
        if (!file)
                return rv_error_set(c->err, rv_raise(-ENOMEM), "out of memory for stored outcomes");
        file->error = -r;
        rv_sha256(text.data ? text.data : "", text.size, file->sha256);
        c->counts->stored++;
        return 0;
}

static int look_at_files(struct reconciliation *c)
{
        int r = 0,
            fd = c->place->state_fd < 0
                ? -1
                : openat(c->place->state_fd, RV_OUTCOMES_DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const struct dirent *e;
        DIR *d = fd < 0 ? NULL : fdopendir(fd);

        if (c->place->state_fd < 0 || (fd < 0 && errno == ENOENT))
                return 0;
        if (!d) {
                r = rv_error_set(c->err, rv_raise(-errno), "%s/" RV_OUTCOMES_DIRECTORY ": cannot read the directory: %s", c->place->state_dir, strerror(errno));
                rv_close(fd);
                return r;
        }
        while (r == 0 && (e = readdir(d)))
                r = look_at_file(c, fd, e->d_name);
        closedir(d);
        return r;
}

/*
 * Reeves go on meanwhile. What is looked at here came after the records that it belongs to, and whoever is found
 * dead here has written all that it ever will: the log is read on after this, and only then anything is judged.
 */
static int look_round(struct reconciliation *c)
{
        struct decision *d;
        size_t at = 0;

        c->last_look_seq = c->next_seq;
        while ((d = reconcile_table_next(&c->decisions, &at)))
                if (!d->is_concluded)
                        d->is_alive = is_alive(c, d->instance);
        return look_at_files(c);
}

/* ---- What does not go together ---- */

static bool is_in_flight(const struct reconciliation *c, const struct decision *d)
{
        return d->is_decided && !d->is_concluded && (d->is_alive || d->seq >= c->last_look_seq);
}

static bool is_missing(const struct reconciliation *c, const struct decision *d, uint64_t now_us)
{
        char name[sizeof(RV_OUTCOMES_DIRECTORY) + RV_LOG_ID_SIZE] = RV_OUTCOMES_DIRECTORY "/";

        if (c->place->state_fd < 0 || !d->has_key || !d->is_concluded || !d->is_started ||
            (now_us > d->ended_us && now_us - d->ended_us > RV_OUTCOMES_KEPT_US))
                return false;
        rv_hex(d->id, ID_BYTES, name + sizeof(RV_OUTCOMES_DIRECTORY));
        return faccessat(c->place->state_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

static void judge(struct reconciliation *c, const struct decision *d, uint64_t now_us)
{
        if (!d->is_decided)
                tell(c, RECONCILE_outcome_without_decision, d->id, &d->outcome_seq, "");
        else if (is_in_flight(c, d))
                c->counts->in_flight++;
        else if (!d->is_concluded)
                tell(c, RECONCILE_decision_without_outcome, d->id, &d->seq, "");
        if (is_missing(c, d, now_us))
                tell(c, RECONCILE_stored_missing, d->id, &d->outcome_seq, "");
}

static void judge_files(struct reconciliation *c)
{
        const struct stored *file;
        size_t at = 0;

        while ((file = reconcile_table_next(&c->files, &at))) {
                const struct decision *d = reconcile_table_get(&c->decisions, file->id, false);

                if (!d || (!d->is_concluded && !is_in_flight(c, d)))
                        tell(c, RECONCILE_stored_without_record, file->id, NULL, "");
                else if (d->is_concluded && d->outcome_seq < c->last_look_seq &&
                        (file->error || memcmp(file->sha256, d->outcome_sha256, sizeof(file->sha256)) != 0))
                        tell(c, RECONCILE_stored_differs, file->id, &d->outcome_seq, file->error ? strerror(file->error) : "");
        }
}

static int compare_decisions(const void *a, const void *b)
{
        const struct decision *x = *(const struct decision *const *)a, *y = *(const struct decision *const *)b;
        uint64_t x_seq = x->is_decided ? x->seq : x->outcome_seq, y_seq = y->is_decided ? y->seq : y->outcome_seq;

        return x_seq < y_seq ? -1 : x_seq > y_seq;
}

/* In the order of the log, whatever that of the table is. */
static int judge_all(struct reconciliation *c)
{
        _cleanup_(rv_freep)
                const struct decision **all = calloc(c->decisions.n_used ? c->decisions.n_used : 1, sizeof(*all));
        uint64_t now_us = rv_now_us();
        const struct decision *d;
        size_t at = 0, n = 0;

        if (!all)
                return rv_error_set(c->err, rv_raise(-ENOMEM), "out of memory for %zu decisions", c->decisions.n_used);
        while ((d = reconcile_table_next(&c->decisions, &at)))
                all[n++] = d;
        qsort(all, n, sizeof(*all), compare_decisions);
        for (size_t i = 0; i < n; i++)
                judge(c, all[i], now_us);
        judge_files(c);
        return 0;
}

static int read_and_judge(struct reconciliation *c)
{
        struct rv_lines reader;
        int r;

        rv_lines_begin(&reader, c->place->audit_fd, c->place->path);
        r = read_log(c, &reader);
        if (r == 0)
                r = look_round(c);
        if (r == 0)
                r = read_log(c, &reader);
        rv_lines_close(&reader);
        return r < 0 ? rv_trace(r) : judge_all(c);
}

int reconcile(const struct audit_place *place, void (*found)(void *ctx, const struct reconcile_finding *finding),
        void *ctx, struct reconcile_counts *ret, struct rv_error *err)
{
        struct reconciliation c = {
                .place = place,
                .counts = ret,
                .found = found,
                .ctx = ctx,
                .err = err,
                .decisions = { .row_size = sizeof(struct decision), .n_id = ID_BYTES },
                .keys = { .row_size = sizeof(struct key), .n_id = RV_SHA256_SIZE },
                .files = { .row_size = sizeof(struct stored), .n_id = ID_BYTES },
        };
        int r;

        *ret = (struct reconcile_counts){ 0 };
        r = read_and_judge(&c);
        reconcile_table_fini(&c.decisions);
        reconcile_table_fini(&c.keys);
        reconcile_table_fini(&c.files);
        return rv_trace(r);
}
