/*
 * The phases that have to do with packages, over the fake backend: jobs and what they print, the thread and the builder
 * played by the test, budgets, cancelling, and the records of what was decided twice.
 */
#include "test_pipeline.h"

#include "package/closure.h"
#include "package/lock.h"
#include "run/run_private.h"
#include "spawn_msg.h"
#include "store/packages.h"
#include "test_package_lock.h"

#include <fcntl.h>
#include <sys/stat.h>

#define EXITED(code) ((code) << 8)
#define SEEN .is_teardown_complete = 1, .memory_limit_bytes = 512 << 20
static const struct rv_observation ok = { .started = RV_STARTED_YES, .has_wait_status = 1, SEEN },
                                   exit_1 = { .started = RV_STARTED_YES,
                                           .has_wait_status = 1,
                                           .wait_status = EXITED(1),
                                           SEEN },
                                   lost = { .started = RV_STARTED_UNKNOWN, .fault = RV_BACKEND_FAULT_LOST },
                                   killed = { .started = RV_STARTED_YES, .was_stopped = 1, SEEN };

#define CLOSURE(rest) "{\"schema\":\"reeve.closure/1\",\"tool\":{\"name\":\"uv\",\"version\":\"1.2\"},\"runtime\":{\"tag\":\"cp311-linux_x86_64\"," \
                      "\"version\":\"3.11\",\"interpreter\":\"/usr/bin/python3\"}," rest "}"
#define FOUND CLOSURE("\"ok\":true,\"exit\":0,\"code\":null,\"text\":\"\",\"packages\":[{\"name\":\"requests\",\"version\":\"2.31.0\"," \
                      "\"file\":\"requests-2.31.0-py3-none-any.whl\",\"url\":\"https://registry.example/requests-2.31.0-py3-none-any.whl\"}]")
#define NO_TOOL CLOSURE("\"ok\":false,\"exit\":0,\"code\":\"ENOTOOL\",\"text\":\"no such file\",\"packages\":[]")
#define FOUND_NONE CLOSURE("\"ok\":false,\"exit\":1,\"code\":null,\"text\":\"no such version\",\"packages\":[]")

#define HELD { .kind = RV_FAKE_HELD }
#define STARTED { .kind = RV_FAKE_STARTED }
#define SAYS(text) { .kind = RV_FAKE_OUTPUT, .data = (text), .n_bytes = sizeof(text) - 1 }
#define FLOODS { .kind = RV_FAKE_OUTPUT, .data = flood, .n_bytes = sizeof(flood), .n_times = (RV_CLOSURE_BYTES_MAX >> 20) + 2 }
#define ENDED { .kind = RV_FAKE_ENDED }
#define OBSERVE(o) { .kind = RV_FAKE_OBSERVE, .seen = &(o) }
#define TEST { .kind = RV_FAKE_CALL }
#define STEPS(...) .steps = (const struct rv_fake_step[]){ __VA_ARGS__ }, \
                   .n_steps = sizeof((const struct rv_fake_step[]){ __VA_ARGS__ }) / sizeof(struct rv_fake_step)

static const char flood[1 << 20];
static const struct rv_fake_script compiles = { STEPS(HELD, STARTED, SAYS("RVPE"), ENDED, OBSERVE(ok)) },
                                   compiles_not = { STEPS(HELD, STARTED, ENDED, OBSERVE(exit_1)) },
                                   runs = { STEPS(HELD, STARTED, SAYS("hello"), ENDED, OBSERVE(ok)), .next = &compiles },
                                   runs_only = { STEPS(HELD, STARTED, SAYS("hello"), ENDED, OBSERVE(ok)), .next = &compiles_not };

#define FINDS STEPS(HELD, STARTED, SAYS(FOUND), ENDED, OBSERVE(ok)), .next = &runs
#define REQUESTS PLAIN_WITH("\"packages\":[\"requests==2.31.0\"]")
#define SCOPED "{\"language\":\"javascript\",\"source\":\"1\",\"packages\":[\"@a/x@^1\"]}"

/* What the test does in the place of the thread, and of the spawner. */
enum work { FINDS_LOCK, FAILS, BREAKS, HANGS, CANCELS };
enum layer { BUILDS, BUILDS_NOT, SAYS_WHY, WILL_NOT_BEGIN, BUILDS_ON, CANCELS_BUILD, IS_LOST };

static struct {
        struct bench *b;
        enum work work;
        enum layer layer;
        unsigned n_works, n_new, n_held, n_given, n_explained, n_builds, n_compiled, n_stops;
        struct rv_run *working;
        void (*done)(void *arg);
        void (*built)(void *arg, const struct rv_spawn_event *event);
        void *built_arg;
        struct rv_spawn_event event;
        char layer_path[512];
        struct rv_run *guessing;
        void (*guessed)(void *arg);
        struct rv_host_timer *work_timer, *layer_timer, *guess_timer;
} world;

static void at(uint64_t ms, void (*cb)(void *arg), struct rv_host_timer **timer)
{
        const struct rv_host *host = world.b->core.host;

        host->timer_stop(host->ctx, *timer);
        assert_int_equal(host->timer_start(host->ctx, ms, cb, NULL, timer), 0);
}

/* ---- The thread ---- */

static void end_work(void *arg)
{
        struct rv_packages_work *w = &world.working->packages.work;
        const struct rv_host *host = world.b->core.host;

        (void)arg;
        if (world.work == CANCELS && !world.working->packages.stop)
                rv_run_stop(world.b->run, RV_STOP_CANCELLED);
        if (world.work >= HANGS && !world.working->packages.stop) {
                at(2, end_work, &world.work_timer);
                return;
        }
        host->timer_stop(host->ctx, world.work_timer);
        world.work_timer = NULL;
        w->r = world.work == FINDS_LOCK ? 0 : world.work == FAILS ? RV_ACQUIRE_E_FAILED : -EIO;
        if (w->what == RV_WORK_EXPLAIN)
                w->r = RV_ACQUIRE_E_FAILED;
        if (w->r == 0 && w->what == RV_WORK_NEW_LOCK)
                assert_int_equal(rv_lock_read(lock_python, strlen(lock_python), &w->lock, NULL), 0);
        if (w->r == RV_ACQUIRE_E_FAILED)
                w->failure = (struct rv_package_failure){ .code = "package_unavailable", .cause = "registry_error", .is_retryable = true,
                        .package = "requests", .message = "the registry answers 503" };
        if (w->r == -EIO)
                rv_error_set(&w->err, -EIO, "the helper broke");
        world.done(world.working);
}

/* What is fetched beside the job: nothing is, and it is over at once, or when it is told to be. */
static void end_guess(void *arg)
{
        const struct rv_host *host = world.b->core.host;

        (void)arg;
        host->timer_stop(host->ctx, world.guess_timer);
        world.guess_timer = NULL;
        world.guessed(world.guessing);
}

static int do_work(void *work_arg, void (*fn)(void *arg), void (*done)(void *arg), void *arg)
{
        struct rv_run *run = arg;

        (void)fn;
        assert_ptr_equal(work_arg, &world);
        if (run->packages.step != RV_PACKAGES_WORK) {
                world.guessing = run;
                world.guessed = done;
                at(1, end_guess, &world.guess_timer);
                return 0;
        }
        world.n_works++;
        world.n_new += run->packages.work.what == RV_WORK_NEW_LOCK;
        world.n_held += run->packages.work.what == RV_WORK_HELD_LOCK;
        world.n_given += run->packages.work.what == RV_WORK_GIVEN_LOCK;
        world.n_explained += run->packages.work.what == RV_WORK_EXPLAIN;
        world.working = run;
        world.done = done;
        at(1, end_work, &world.work_timer);
        return 0;
}

/* ---- The builder ---- */

static void make_layer(const char *file)
{
        char path[600];

        (void)mkdir(world.layer_path, 0755);
        snprintf(path, sizeof(path), "%s/%s", world.layer_path, file);
        assert_int_equal(rv_write_file(path, "{}", 2, 0644, false), 0);
}

static void end_build(void *arg)
{
        const struct rv_host *host = world.b->core.host;

        (void)arg;
        if (world.layer == CANCELS_BUILD && !world.n_stops)
                rv_run_stop(world.b->run, RV_STOP_CANCELLED);
        if ((world.layer == BUILDS_ON || world.layer == CANCELS_BUILD) && !world.n_stops) {
                at(2, end_build, &world.layer_timer);
                return;
        }
        host->timer_stop(host->ctx, world.layer_timer);
        world.layer_timer = NULL;
        world.built(world.built_arg, &world.event);
}

static int do_layer(void *layer_arg, const struct rv_layer_task *task,
        void (*cb)(void *arg, const struct rv_spawn_event *event), void *arg, uint64_t *ret_id)
{
        static const char why[] = "{\"fault\":{\"cause\":\"unsafe_archive\",\"text\":\"requests: two files are one\",\"package\":\"requests\"}}";

        assert_ptr_equal(layer_arg, &world);
        if (world.layer == WILL_NOT_BEGIN)
                return -EPIPE;
        world.event = (struct rv_spawn_event){ .struct_size = sizeof(world.event),
                .kind = world.layer == IS_LOST ? RV_SPAWN_LOST : RV_SPAWN_LAYER };
        snprintf(world.layer_path, sizeof(world.layer_path), "%s/state/packages/layers/%s", world.b->dir, task->digest);
        world.n_builds += task->action == RV_LAYER_BUILD;
        world.n_compiled += task->action == RV_LAYER_COMPILED;
        if (world.layer == BUILDS)
                make_layer(task->action == RV_LAYER_BUILD ? "manifest.json" : "manifest-compiled.json");
        else
                world.event.fault_errno = EIO;
        if (world.layer == SAYS_WHY)
                assert_int_equal(write(task->result_fd, why, sizeof(why) - 1), sizeof(why) - 1);
        snprintf(world.event.fault_text, sizeof(world.event.fault_text), "%s", world.layer == BUILDS_NOT ? "the disk is full" : "");
        world.built = cb;
        world.built_arg = arg;
        *ret_id = 7;
        at(1, end_build, &world.layer_timer);
        return 0;
}

static void stop_layer(void *layer_arg, uint64_t id)
{
        assert_ptr_equal(layer_arg, &world);
        assert_int_equal(id, 7);
        world.n_stops++;
}

/* ---- The bench, with a store ---- */

static int make(void **state)
{
        struct rv_registry *registry = calloc(1, sizeof(*registry));
        struct rv_error err = { 0 };
        struct bench *b;
        char path[512];
        int fd;

        assert_int_equal(bench_make(state), 0);
        b = *state;
        memset(&world, 0, sizeof(world));
        world.b = b;
        registry->language = RV_LANGUAGE_PYTHON;
        registry->has_files = true;
        assert_int_equal(rv_registry_add_url(registry, "https://registry.example/simple", &registry->index), 0);
        b->core.registries[RV_LANGUAGE_PYTHON] = registry;
        b->core.fetch_fd = b->core.unpack_fd = -EBADF;
        b->core.work = do_work;
        b->core.layer = do_layer;
        b->core.layer_stop = stop_layer;
        b->core.work_arg = b->core.layer_arg = &world;
        snprintf(path, sizeof(path), "%s/state", b->dir);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(fd >= 0);
        if (rv_store_open(fd, path, geteuid(), &b->core.store, &err) != 0)
                fail_msg("%s", err.message);
        close(fd);
        snprintf(path, sizeof(path), "%s/state/packages/layers", b->dir);
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        return 0;
}

static int drop(void **state)
{
        struct bench *b = *state;
        struct rv_registry *registry = b->core.registries[RV_LANGUAGE_PYTHON];

        rv_store_close(b->core.store);
        bench_remove(state);
        rv_registry_free(registry);
        return 0;
}

#define ON_STORE(f) cmocka_unit_test_setup_teardown(f, make, drop)

/* ---- Each end ---- */

static void cancel(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        struct bench *b = ctx;

        (void)plan;
        if (call == RV_FAKE_STEP)
                rv_run_stop(b->run, RV_STOP_CANCELLED);
}

#define DENIES_IDNA "rule { id = 'no-idna', match = { name = 'idna', stage = 'resolved' }, deny = 'not reviewed' }, "

static const struct {
        struct case_ c;
        enum work work;
        enum layer layer;
        uint64_t resolve_ms, prepare_ms;   /* 0: more than any test takes */
        const char *rules;                 /* of the packages */
        const char *status, *code, *phase, *cause;
        unsigned n_starts, n_builds, n_compiled;
        bool is_retryable;
} rows[] = {
        { { .name = "all is new", .request = REQUESTS, .n_decisions = 2, .n_store_syncs = 1, .script = { FINDS } }, 0, 0, 0, 0, "", "completed", "ok", "", "", 3, 1, 1, false },
        { { .name = "the job cannot be started", .request = REQUESTS, .script = { .start_error = EAGAIN } }, 0, 0, 0, 0, "",
          "failed", "backend_failed", "resolve", "resolver_failed", 1, 0, 0, true },
        { { .name = "the job fails", .request = REQUESTS, .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(exit_1)) } }, 0, 0, 0, 0, "",
          "failed", "backend_failed", "resolve", "resolver_failed", 1, 0, 0, true },
        { { .name = "the job is lost", .request = REQUESTS, .script = { STEPS(HELD, OBSERVE(lost)) } }, 0, 0, 0, 0, "",
          "failed", "backend_failed", "resolve", "resolver_failed", 1, 0, 0, true },
        { { .name = "the job prints nothing", .request = REQUESTS, .script = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)) } }, 0, 0, 0, 0, "",
          "failed", "backend_failed", "resolve", "resolver_failed", 1, 0, 0, true },
        { { .name = "the job prints something else", .request = REQUESTS, .script = { STEPS(HELD, STARTED, SAYS("{\"ok\":true}"), ENDED, OBSERVE(ok)) } }, 0, 0, 0, 0, "",
          "failed", "backend_failed", "resolve", "resolver_failed", 1, 0, 0, true },
        { { .name = "the job floods its output", .request = REQUESTS, .script = { STEPS(HELD, STARTED, FLOODS, TEST), .on_stop = &killed } }, 0, 0, 0, 0, "",
          "failed", "backend_failed", "resolve", "resolver_failed", 1, 0, 0, true },
        { { .name = "the package manager finds none", .request = REQUESTS, .script = { STEPS(HELD, STARTED, SAYS(FOUND_NONE), ENDED, OBSERVE(ok)) } }, 0, 0, 0, 0, "",
          "failed", "package_unavailable", "resolve", "registry_error", 1, 0, 0, true },
        { { .name = "the registry fails", .request = REQUESTS, .script = { FINDS } }, FAILS, 0, 0, 0, "",
          "failed", "package_unavailable", "resolve", "registry_error", 1, 0, 0, true },
        { { .name = "a helper breaks", .request = REQUESTS, .script = { FINDS } }, BREAKS, 0, 0, 0, "",
          "failed", "backend_failed", "resolve", "resolver_failed", 1, 0, 0, true },

        { { .name = "the job takes too long", .request = REQUESTS, .script = { STEPS(HELD, STARTED), .on_stop = &killed } }, 0, 0, 80, 0, "",
          "failed", "timeout", "resolve", "", 1, 0, 0, true },
        { { .name = "the thread takes too long", .request = REQUESTS, .script = { FINDS } }, HANGS, 0, 150, 0, "",
          "failed", "timeout", "resolve", "", 1, 0, 0, true },
        { { .name = "cancelled in the job", .request = REQUESTS, .script = { STEPS(HELD, STARTED, TEST), .on_stop = &killed, .call = cancel } }, 0, 0, 0, 0, "",
          "failed", "cancelled", "resolve", "", 1, 0, 0, false },
        { { .name = "cancelled in the thread", .request = REQUESTS, .script = { FINDS } }, CANCELS, 0, 0, 0, "",
          "failed", "cancelled", "resolve", "", 1, 0, 0, false },

        { { .name = "denied as resolved", .request = REQUESTS, .n_decisions = 2, .n_store_syncs = 1, .script = { FINDS } }, 0, 0, 0, 0, DENIES_IDNA,
          "blocked", "package_denied", "decide", "", 1, 0, 0, false },
        { { .name = "the layer cannot be built", .request = REQUESTS, .n_decisions = 2, .n_store_syncs = 1, .script = { FINDS } }, 0, BUILDS_NOT, 0, 0, "",
          "failed", "package_install_failed", "prepare", "build_failed", 1, 1, 0, true },
        { { .name = "the builder says why", .request = REQUESTS, .n_decisions = 2, .n_store_syncs = 1, .script = { FINDS } }, 0, SAYS_WHY, 0, 0, "",
          "failed", "package_install_failed", "prepare", "unsafe_archive", 1, 1, 0, false },
        { { .name = "the build cannot be begun", .request = REQUESTS, .n_decisions = 2, .n_store_syncs = 1, .script = { FINDS } }, 0, WILL_NOT_BEGIN, 0, 0, "",
          "failed", "package_install_failed", "prepare", "build_failed", 1, 0, 0, true },
        { { .name = "the spawner is lost", .request = REQUESTS, .n_decisions = 2, .n_store_syncs = 1, .script = { FINDS } }, 0, IS_LOST, 0, 0, "",
          "failed", "package_install_failed", "prepare", "build_failed", 1, 1, 0, true },
        { { .name = "the build takes too long", .request = REQUESTS, .n_decisions = 2, .n_store_syncs = 1, .script = { FINDS } }, 0, BUILDS_ON, 0, 80, "",
          "failed", "timeout", "prepare", "", 1, 1, 0, true },
        { { .name = "cancelled while it is built", .request = REQUESTS, .n_decisions = 2, .n_store_syncs = 1, .script = { FINDS } }, 0, CANCELS_BUILD, 0, 0, "",
          "failed", "cancelled", "prepare", "", 1, 1, 0, false },
};

/* Nothing but layers and locks is left, and nothing of it if there was no run. */
static void expect_nothing_left(const struct bench *b)
{
        char command[700];

        snprintf(command, sizeof(command), "test -z \"$(find %s/state/packages/artifacts %s/state/packages/claims -mindepth 2 2>/dev/null)\"", b->dir, b->dir);
        expect_number(b, "files that are left", system(command), 0);
}

static void perform_row(struct bench *b, size_t i)
{
        static struct case_ c;          /* the bench names it in its messages */
        struct rv_bundle *bundle;
        char policy[512];

        c = rows[i].c;
        snprintf(policy, sizeof(policy), "return policy { packages = { %s default = 'allow' }, network = { default = 'allow' }, "
                 "idempotency = { default = 'none' }, backend = { default = 'tenant' } }", rows[i].rules);
        c.bundle = bundle = load_bundle(b, "bundle", policy);
        world.work = rows[i].work;
        world.layer = rows[i].layer;
        b->config->phases.resolve_ms = rows[i].resolve_ms ? rows[i].resolve_ms : 20000;
        b->config->phases.prepare_ms = rows[i].prepare_ms ? rows[i].prepare_ms : 20000;
        perform(b, &c);
        rv_bundle_free(bundle);
}

static void every_end(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                bool has_run = !strcmp(rows[i].status, "completed");
                struct bench *b;

                make(state);
                b = *state;
                perform_row(b, i);
                if (!b->outcome)
                        fail_msg("%s: a problem: %s", rows[i].c.name, rv_json_get_string(b->problem, "detail", ""));
                expect_text(b, "status", rv_json_get_string(b->outcome, "status", ""), rows[i].status);
                expect_text(b, "code", reason_of(b, "code"), rows[i].code);
                if (!has_run)
                        expect_text(b, "phase", reason_of(b, "phase"), rows[i].phase);
                expect_text(b, "cause", rv_json_get_string(detail_of(b), "cause", ""), rows[i].cause);
                expect_text(b, "started", rv_json_get_string(b->outcome, "started", ""), has_run ? "yes" : "no");
                expect_number(b, "retryable", json_is_true(json_object_get(json_object_get(b->outcome, "reason"), "retryable")), rows[i].is_retryable);
                expect_number(b, "repeat_safe", json_is_true(json_object_get(b->outcome, "repeat_safe")), 1);
                expect_number(b, "starts", b->calls.n_starts, rows[i].n_starts);
                expect_number(b, "builds", world.n_builds, rows[i].n_builds);
                expect_number(b, "compiled", world.n_compiled, rows[i].n_compiled);
                expect_number(b, "output", (long long)b->live[0].size, has_run ? 5 : 0);
                expect_text(b, "stage", rv_json_get_string(json_array_get(b->records, 0), "stage", ""), "requested");
                if (rows[i].c.n_decisions == 2)
                        expect_text(b, "the next stage", rv_json_get_string(json_array_get(b->records, 1), "stage", ""), "resolved");
                expect_number(b, "runs that the gate still has", b->gate.n_adds, b->gate.n_removes);
                expect_nothing_left(b);
                drop(state);
        }
}

/* ---- What is held ---- */

static void held(void **state)
{
        const struct case_ first = { .name = "the first", .request = REQUESTS, .n_decisions = 2, .n_store_syncs = 1, .script = { FINDS } };
        const struct case_ second = { .name = "the next", .request = REQUESTS, .n_decisions = 2, .script = runs_only };
        struct bench *b = *state;
        char layer[128];

        perform(b, &first);
        snprintf(layer, sizeof(layer), "%s", rv_json_get_string(json_object_get(b->outcome, "packages"), "layer", "none"));
        perform(b, &second);
        expect_text(b, "code", reason_of(b, "code"), "ok");
        expect_text(b, "layer", rv_json_get_string(json_object_get(b->outcome, "packages"), "layer", ""), layer);
        expect_number(b, "starts: no job, and nothing left to compile", b->calls.n_starts, 1);
        expect_number(b, "works", world.n_works, 1);
        expect_number(b, "builds", world.n_builds, 1);
}

static const struct rv_fake_script then = { STEPS(HELD, STARTED, ENDED, OBSERVE(ok)), .next = &compiles_not };

/* What is compiled after the answer can fail, and the next run has it done again. */
static void compiled_by_the_next(void **state)
{
        const struct case_ first = { .name = "it does not compile",
                .request = REQUESTS,
                .n_decisions = 2,
                .n_store_syncs = 1,
                .script = { STEPS(HELD, STARTED, SAYS(FOUND), ENDED, OBSERVE(ok)), .next = &then } };
        const struct case_ second = { .name = "the next", .request = REQUESTS, .n_decisions = 2, .script = runs };
        struct bench *b = *state;

        perform(b, &first);
        expect_text(b, "code", reason_of(b, "code"), "ok");
        expect_number(b, "starts", b->calls.n_starts, 3);
        expect_number(b, "compiled", world.n_compiled, 0);
        perform(b, &second);
        expect_number(b, "starts", b->calls.n_starts, 2);
        expect_number(b, "compiled", world.n_compiled, 1);
}

/* The layer is gone, the lock is held: what it names is fetched again, and no package manager is asked. */
static void the_layer_is_gone(void **state)
{
        const struct case_ first = { .name = "the first", .request = REQUESTS, .n_decisions = 2, .n_store_syncs = 1, .script = { FINDS } };
        const struct case_ second = { .name = "without its layer", .request = REQUESTS, .n_decisions = 2, .script = runs };
        struct bench *b = *state;
        char command[600];

        perform(b, &first);
        snprintf(command, sizeof(command), "rm -r %s", world.layer_path);
        assert_int_equal(system(command), 0);
        perform(b, &second);
        expect_text(b, "code", reason_of(b, "code"), "ok");
        expect_number(b, "new locks", world.n_new, 1);
        expect_number(b, "fetched by the lock", world.n_held, 1);
        expect_number(b, "builds", world.n_builds, 2);
        expect_number(b, "starts", b->calls.n_starts, 2);
}

static void a_lock_that_is_given(void **state)
{
        struct case_ c = { .name = "a lock", .request = SCOPED, .n_decisions = 2, .script = runs_only };
        struct case_ other = { .name = "a lock of something else", .request = REQUESTS };
        struct rv_registry *registry = calloc(1, sizeof(*registry));
        struct bench *b = *state;
        json_t *lock = NULL;

        registry->language = RV_LANGUAGE_JAVASCRIPT;
        registry->has_files = true;
        assert_int_equal(rv_registry_add_url(registry, "https://registry.example/", &registry->index), 0);
        b->core.registries[RV_LANGUAGE_JAVASCRIPT] = registry;
        assert_int_equal(rv_lock_read(lock_javascript, strlen(lock_javascript), &lock, NULL), 0);
        c.lock = other.lock = lock;
        perform(b, &c);
        expect_text(b, "code", reason_of(b, "code"), "ok");
        expect_number(b, "starts", b->calls.n_starts, 1);
        expect_number(b, "looked at as given", world.n_given, 1);
        expect_number(b, "fetched by the lock", world.n_held, 0);
        expect_number(b, "builds", world.n_builds, 1);
        perform(b, &other);
        expect_text(b, "code", reason_of(b, "code"), "package_unavailable");
        expect_text(b, "phase", reason_of(b, "phase"), "resolve");
        expect_text(b, "cause", rv_json_get_string(detail_of(b), "cause", ""), "conflict");
        expect_number(b, "starts", b->calls.n_starts, 0);
        b->core.registries[RV_LANGUAGE_JAVASCRIPT] = NULL;
        rv_registry_free(registry);
        json_decref(lock);
}

/* ---- Which package manager ---- */

static const struct rv_fake_script found = { FINDS };
static char asked_of[2][16];
static unsigned n_asked;

/* What the job is told, which stands in its standard input. */
static void note_tool(void *ctx, enum rv_fake_call call, const struct rv_plan *plan)
{
        _cleanup_(rv_json_unrefp) json_t *job = NULL;

        (void)ctx;
        if (call != RV_FAKE_START || !plan->is_resolver)
                return;
        job = json_loadb(plan->stdin_data, plan->stdin_bytes, 0, NULL);
        assert_true(n_asked < 2);
        snprintf(asked_of[n_asked++], sizeof(asked_of[0]), "%s", rv_json_get_string(job, "tool", ""));
}

/* What is configured is what is asked; where either will do, and uv does not run on the runtime, it is pip's turn. */
static void the_tool(void **state)
{
        static const struct {
                const char *resolver, *uv, *code, *first, *second;
        } tools[] = {
                { "uv", "/nowhere/uv", "runtime_unavailable", "", "" },
                { "uv", "/bin/true", "runtime_unavailable", "uv", "" },
                { "auto", "/nowhere/uv", "runtime_unavailable", "pip", "" },
                { "auto", "/bin/true", "ok", "uv", "pip" },
                { "pip", "/bin/true", "runtime_unavailable", "pip", "" },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(tools); i++) {
                bool is_ok = !strcmp(tools[i].code, "ok");
                struct case_ c = { .name = tools[i].resolver,
                        .request = REQUESTS,
                        .n_decisions = is_ok ? 2 : 1,
                        .n_store_syncs = is_ok,
                        .script = { STEPS(HELD, STARTED, SAYS(NO_TOOL), ENDED, OBSERVE(ok)), .next = &found,
                                .call = note_tool } };
                struct bench *b;

                make(state);
                b = *state;
                b->config->packages.resolver = tools[i].resolver;
                b->config->packages.uv = tools[i].uv;
                n_asked = 0;
                memset(asked_of, 0, sizeof(asked_of));
                perform(b, &c);
                expect_text(b, "code", reason_of(b, "code"), tools[i].code);
                expect_text(b, "asked first", asked_of[0], tools[i].first);
                expect_text(b, "asked next", asked_of[1], tools[i].second);
                drop(state);
        }
}

/* ---- What cannot be ---- */

static void expect_denied(struct bench *b, const char *name, const char *missing, const char *says)
{
        const struct case_ c = { .name = name, .request = REQUESTS, .script = { FINDS } };

        perform(b, &c);
        expect_text(b, "status", rv_json_get_string(b->outcome, "status", ""), "blocked");
        expect_text(b, "code", reason_of(b, "code"), "backend_denied");
        expect_text(b, "missing", json_string_value(json_array_get(json_object_get(detail_of(b), "missing"), 0)), missing);
        if (!strstr(reason_of(b, "message"), says))
                fail_msg("%s: %s", name, reason_of(b, "message"));
        expect_number(b, "starts", b->calls.n_starts, 0);
}

static void nothing_to_find_them_with(void **state)
{
        struct rv_manifest unusable = { .struct_size = sizeof(unusable), .reason = "no cgroup: say `cgroup:`" },
                           offline = { .struct_size = sizeof(offline), .is_usable = 1 };
        struct case_ c = { .name = "no backend", .request = REQUESTS, .script = { .manifest = &unusable } };
        struct bench *b = *state;
        struct rv_registry *registry = b->core.registries[RV_LANGUAGE_PYTHON];
        struct rv_store *store = b->core.store;

        perform(b, &c);
        expect_text(b, "code", reason_of(b, "code"), "backend_denied");
        expect_text(b, "phase", reason_of(b, "phase"), "plan");
        if (!strstr(reason_of(b, "message"), "say `cgroup:`"))
                fail_msg("%s", reason_of(b, "message"));

        snprintf(offline.capabilities[RV_CAPABILITY_network_registries].reason, RV_REASON_SIZE, "no nft here");
        c = (struct case_){ .name = "no network", .request = REQUESTS, .script = { .manifest = &offline } };
        perform(b, &c);
        expect_text(b, "code", reason_of(b, "code"), "backend_denied");
        expect_text(b, "message", reason_of(b, "message"), "no nft here");
        expect_number(b, "starts", b->calls.n_starts, 0);

        b->core.store = NULL;
        expect_denied(b, "no store", "packages", "no package store");
        b->core.store = store;
        b->core.registries[RV_LANGUAGE_PYTHON] = NULL;
        expect_denied(b, "no registry", "packages", "set registries.python.index");
        b->core.registries[RV_LANGUAGE_PYTHON] = registry;
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(every_end), ON_STORE(held), ON_STORE(compiled_by_the_next),
                ON_STORE(the_layer_is_gone), ON_STORE(a_lock_that_is_given), cmocka_unit_test(the_tool),
                ON_STORE(nothing_to_find_them_with) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
