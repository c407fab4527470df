#include "run_options.h"

#include "reeve.h"

#include "base/fd.h"
#include "package/lock.h"
#include "request/bounds.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MAX_S 3600

enum option_id {
        OPT_LANGUAGE = 256,
        OPT_TIMEOUT,
        OPT_MEMORY,
        OPT_PACKAGE,
        OPT_NETWORK,
        OPT_DOMAIN,
        OPT_ENV,
        OPT_KEY,
        OPT_BACKEND,
        OPT_TENANT,
        OPT_STDIN,
        OPT_OUTCOME,
        OPT_RAW,
        OPT_JSON,
        OPT_REQUEST,
        OPT_CONFIG,
        OPT_WAIT,
        OPT_LOCK
};

static const struct option options[] = {
        { "language", required_argument, NULL, OPT_LANGUAGE }, { "timeout", required_argument, NULL, OPT_TIMEOUT },
        { "memory", required_argument, NULL, OPT_MEMORY },     { "package", required_argument, NULL, OPT_PACKAGE },
        { "network", required_argument, NULL, OPT_NETWORK },   { "domain", required_argument, NULL, OPT_DOMAIN },
        { "env", required_argument, NULL, OPT_ENV },           { "key", required_argument, NULL, OPT_KEY },
        { "backend", required_argument, NULL, OPT_BACKEND },   { "tenant", required_argument, NULL, OPT_TENANT },
        { "stdin", required_argument, NULL, OPT_STDIN },       { "outcome", required_argument, NULL, OPT_OUTCOME },
        { "raw", no_argument, NULL, OPT_RAW },                 { "json", no_argument, NULL, OPT_JSON },
        { "request", required_argument, NULL, OPT_REQUEST },   { "config", required_argument, NULL, OPT_CONFIG },
        { "wait", required_argument, NULL, OPT_WAIT },         { "lock", required_argument, NULL, OPT_LOCK },
        { "help", no_argument, NULL, 'h' },
        { 0 },
};

static const char help_head[] =
        "usage: reeve run [OPTION…] FILE|-\n"
        "       reeve run [--json] [--tenant NAME] [--backend NAME] [--outcome FILE] --request FILE|-\n"
        "\n"
        "Runs a program under policy, isolated, and passes its output on as it comes.\n"
        "\n"
        "  --language NAME    python or javascript; else by the file's suffix, then its #! line\n"
        "  --timeout S        seconds that the program may run\n"
        "  --memory MIB       memory of the whole run\n"
        "  --package SPEC     a package with a version constraint; may be repeated\n"
        "  --lock FILE        run exactly the packages of a lock (reeve package lock)\n"
        "  --network MODE     none, registries, domains or any\n"
        "  --domain NAME      a domain to be reached (network mode domains); may be repeated\n"
        "  --env NAME=VALUE   an environment variable; NAME alone takes the caller's; may be repeated\n"
        "  --key KEY          idempotency key: the same request with the same key runs once in 24 hours,\n"
        "                     and is given the same outcome again. Handed to the program as\n"
        "                     REEVE_IDEMPOTENCY_KEY, for the destination to enforce\n"
        "  --wait S           how long to wait for a run in flight with the same key, 0 to 3600;\n"
        "                     else as long as the program may run\n"
        "  --stdin FILE|-     the program's standard input (otherwise empty)\n"
        "  --request FILE|-   the whole request as JSON instead of FILE and the options above\n"
        "  --tenant NAME      whose policy and limits apply (default: local)\n"
        "  --backend NAME     the backend, where policy leaves it to the tenant\n"
        "  --config FILE      the configuration\n"
        "  --json             print the outcome (or the problem) as one JSON object, nothing else\n"
        "  --outcome FILE     write the outcome there while output streams\n"
        "  --raw              pass control characters on to a terminal\n"
        "\n"
        "Bounds of a request:\n";

static const char help_tail[] =
        "\n"
        "Exit status: the program's own; 128 + n after signal n; 124 timeout; 137 memory_limit;\n"
        "123 output_limit; 130 cancelled; 143 shutdown; 126 blocked; 120 outcome_unknown;\n"
        "2 rejected or usage; 125 could not be started, backend lost, or reeve's own error.\n"
        "When the status is not the program's own, the last line on standard error begins\n"
        "\"reeve: \".\n";

void run_options_help(void)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };

        rv_buf_puts(&b, help_head);
        (void)rv_bounds_help(&b);
        rv_buf_puts(&b, help_tail);
        if (rv_buf_error(&b) == 0)
                fwrite(b.data, 1, b.size, stdout);
}

/* ---- Options ---- */

static json_t *text(const char *s)
{
        return json_stringn_nocheck(s, strlen(s));      /* ill-formed UTF-8 is the request's fault, and told as such */
}

static int set_integer(json_t *request, const char *name, const char *option, const char *value)
{
        char *end;
        long long n;

        errno = 0;
        n = strtoll(value, &end, 10);
        if (errno || *end || end == value)
                return usage_error("run", "%s wants a whole number, not \"%s\"", option, value);
        json_object_set_new(request, name, json_integer(n));
        return 0;
}

static int set_wait(struct run_options *o, const char *value)
{
        unsigned long n;
        char *end;

        errno = 0;
        n = strtoul(value, &end, 10);
        if (errno || *end || end == value || value[0] < '0' || value[0] > '9' || n > WAIT_MAX_S)
                return usage_error("run", "--wait wants a whole number of seconds from 0 to %d, not \"%s\"", WAIT_MAX_S, value);
        o->has_wait = true;
        o->wait_s = (uint32_t)n;
        return 0;
}

static json_t *member(json_t *object, const char *name, json_t *(*make)(void))
{
        json_t *value = json_object_get(object, name);

        if (!value) {
                value = make();
                json_object_set_new(object, name, value);
        }
        return value;
}

static int set_env(json_t *request, const char *word)
{
        const char *equals = strchr(word, '=');
        _cleanup_(rv_freep) char *name = equals ? strndup(word, (size_t)(equals - word)) : strdup(word);
        const char *value = equals ? equals + 1 : getenv(word);

        if (!name)
                return EXIT_REEVE;
        if (!value)
                return usage_error("run", "--env %s: there is no such variable to take over; give NAME=VALUE", word);
        if (json_object_get(member(request, "env", json_object), name))
                return usage_error("run", "--env %s is given twice", name);
        if (json_object_set_new(member(request, "env", json_object), name, text(value)) < 0)
                return usage_error("run", "--env: the name is not UTF-8");
        return 0;
}

static int take(struct run_options *o, int id, const char *value)
{
        json_t *network;

        switch (id) {
        case OPT_LANGUAGE: o->language = value; break;
        case OPT_TIMEOUT: return set_integer(o->value, "timeout_s", "--timeout", value);
        case OPT_MEMORY: return set_integer(o->value, "memory_mib", "--memory", value);
        case OPT_PACKAGE: json_array_append_new(member(o->value, "packages", json_array), text(value)); break;
        case OPT_NETWORK: json_object_set_new(member(o->value, "network", json_object), "mode", text(value)); break;
        case OPT_DOMAIN:
                network = member(o->value, "network", json_object);
                if (!json_object_get(network, "mode"))
                        json_object_set_new(network, "mode", json_string("domains"));
                json_array_append_new(member(network, "domains", json_array), text(value));
                break;
        case OPT_ENV: return set_env(o->value, value);
        case OPT_KEY: json_object_set_new(o->value, "idempotency_key", text(value)); break;
        case OPT_BACKEND: o->backend = value; break;
        case OPT_TENANT: o->tenant = value; break;
        case OPT_STDIN: o->stdin_file = value; break;
        case OPT_OUTCOME: o->outcome = value; break;
        case OPT_LOCK: o->lock_file = value; break;
        case OPT_WAIT: return set_wait(o, value);
        case OPT_RAW: o->is_raw = true; break;
        case OPT_JSON: o->is_json = true; break;
        case OPT_REQUEST: o->request = value; break;
        case OPT_CONFIG: o->config = value; break;
        case 'h': o->wants_help = true; break;
        default: return EXIT_USAGE;
        }
        return 0;
}

static int check(const struct run_options *o)
{
        bool is_dash = (o->request && !strcmp(o->request, "-")) || (o->file && !strcmp(o->file, "-"));

        if (o->request && (o->file || o->language || o->stdin_file || json_object_size(o->value)))
                return usage_error("run", "--request holds the whole request: it goes with neither FILE nor options that make one");
        if (!o->request && !o->file)
                return usage_error("run", "name the program: FILE, or - for standard input");
        if (is_dash && o->stdin_file && !strcmp(o->stdin_file, "-"))
                return usage_error("run", "standard input can be the program or its input, not both");
        return 0;
}

static int refuse_option(int id, char **argv)
{
        const char *word = argv[optind - 1];

        if (id == ':')
                return usage_error("run", "%s wants a value", word);
        if (optopt && optopt < OPT_LANGUAGE && optopt != 'h')
                return usage_error("run", "there is no option -%c", optopt);    /* optind can be behind */
        if (optopt)
                return usage_error("run", "%s: this option takes no value", word);
        return usage_error("run", "%s is no option, or the beginning of several", word);
}

int run_options_parse(int argc, char **argv, struct run_options *ret)
{
        int id, r = 0;

        *ret = (struct run_options){ .value = json_object() };
        opterr = 0;             /* getopt would print the word as it is */
        optind = 0;             /* all of getopt's state, also of words it did not finish */
        while (r == 0 && (id = getopt_long(argc, argv, "+:h", options, NULL)) != -1)
                r = id == '?' || id == ':' ? refuse_option(id, argv) : take(ret, id, optarg);
        if (r == 0 && optind < argc)
                ret->file = argv[optind++];
        if (r == 0 && !ret->wants_help && optind < argc)
                r = usage_error("run", "one program a run; %s is one word too many (options stand before FILE)", argv[optind]);
        if (r == 0 && !ret->wants_help)
                r = check(ret);
        return r;
}

void run_options_fini(struct run_options *o)
{
        json_decref(o->value);
        json_decref(o->lock);
}

/* ---- Files ---- */

static int read_input(const char *path, size_t max, struct rv_buf *out)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        int r;

        if (!strcmp(path, "-"))
                r = rv_read_fd(STDIN_FILENO, max, out);
        else {
                fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
                r = fd < 0 ? -errno : rv_read_fd(fd, max, out);
        }
        /* Too much to be a request: whoever judges it sees one byte more than the bound, and says so. */
        if (r == -EFBIG && rv_buf_reserve(out, max + 1 - out->size) == 0) {
                memset(out->data + out->size, ' ', max + 1 - out->size);
                out->size = max + 1;
                return 0;
        }
        if (r < 0)
                say("run: cannot read %s: %s", path, strerror(-r));
        return r < 0 ? EXIT_USAGE : 0;
}

/* By the suffix, then the #! line. */
static const char *guess_language(const char *path, const struct rv_buf *source)
{
        static const struct {
                const char *suffix, *word, *language;
        } kinds[] = { { ".py", "python", "python" }, { ".js", "node", "javascript" }, { ".cjs", "node", "javascript" }, { ".mjs", "node", "javascript" } };
        const char *suffix = strrchr(path, '.'), *end;
        char line[256];

        for (size_t i = 0; suffix && i < RV_N_ELEMENTS(kinds); i++)
                if (!strcmp(suffix, kinds[i].suffix))
                        return kinds[i].language;
        if (source->size < 3 || memcmp(source->data, "#!", 2))
                return NULL;
        end = memchr(source->data, '\n', source->size);
        snprintf(line, sizeof(line), "%.*s", (int)RV_MIN((size_t)(end ? end - source->data : (ptrdiff_t)source->size), sizeof(line) - 1), source->data);
        for (size_t i = 0; i < RV_N_ELEMENTS(kinds); i++)
                if (strstr(line, kinds[i].word))
                        return kinds[i].language;
        return NULL;
}

/* ---- A lock ---- */

static int read_lock(struct run_options *o)
{
        _cleanup_(rv_buf_fini) struct rv_buf lock_text = { 0 };
        struct rv_error err = { 0 };
        int r = read_input(o->lock_file, RV_LOCK_BYTES_MAX, &lock_text);

        if (r)
                return r;
        if (rv_lock_read(lock_text.data ? lock_text.data : "", lock_text.size, &o->lock, &err) < 0) {
                say("run: %s is no lock: %s", o->lock_file, err.message);
                return EXIT_USAGE;
        }
        return 0;
}

/* A request that names no packages asks for those that the lock was made for, in the versions that it has. */
static void name_locked(const json_t *lock, json_t *request)
{
        const char *between = strcmp(rv_json_get_string(lock, "language", ""), "python") == 0 ? "==" : "@";
        const json_t *package;
        json_t *list;
        size_t i;

        if (json_array_size(json_object_get(request, "packages")))
                return;
        list = json_array();
        json_array_foreach(json_object_get(lock, "packages"), i, package)
                if (json_is_true(json_object_get(package, "direct")))
                        json_array_append_new(list, json_sprintf("%s%s%s", rv_json_get_string(package, "name", ""), between, rv_json_get_string(package, "version", "")));
        json_object_set_new(request, "packages", list);
}

/* What is no request is left as it is: whoever judges it says why. */
static int add_locked(const struct run_options *o, struct rv_buf *request_text)
{
        _cleanup_(rv_json_unrefp) json_t *request = NULL;
        _cleanup_(rv_freep) char *whole = NULL;

        if (rv_json_read(request_text->data ? request_text->data : "", request_text->size, 32, &request, NULL) < 0 || !json_is_object(request))
                return 0;
        name_locked(o->lock, request);
        whole = json_dumps(request, JSON_COMPACT);
        request_text->size = 0;
        return whole && rv_buf_append(request_text, whole, strlen(whole)) == 0 ? 0 : EXIT_REEVE;
}

int run_options_read(struct run_options *o, struct rv_buf *ret_text)
{
        _cleanup_(rv_buf_fini) struct rv_buf source = { 0 }, input = { 0 };
        int r;

        if (o->lock_file && (r = read_lock(o)))
                return r;
        if (o->request) {
                r = read_input(o->request, RV_BOUND_MAX(document), ret_text);
                return r || !o->lock ? r : add_locked(o, ret_text);
        }
        r = read_input(o->file, RV_BOUND_MAX(document), &source);
        if (r == 0 && o->stdin_file)
                r = read_input(o->stdin_file, RV_BOUND_MAX(document), &input);
        if (r)
                return r;
        if (!o->language)
                o->language = guess_language(o->file, &source);
        if (!o->language)
                return usage_error("run", "cannot tell the language of %s by its name or #! line; give --language python or javascript", o->file);
        json_object_set_new(o->value, "language", text(o->language));
        json_object_set_new(o->value, "source", json_stringn_nocheck(source.data ? source.data : "", source.size));
        if (o->lock)
                name_locked(o->lock, o->value);
        if (o->stdin_file)
                json_object_set_new(o->value, "stdin", json_stringn_nocheck(input.data ? input.data : "", input.size));
        return 0;
}
