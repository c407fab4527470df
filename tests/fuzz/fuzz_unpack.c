/*
 * What an artifact's file may hold, as reeve-unpack reads it: a whole wheel, a whole tarball, the stream of byte code, and
 * the texts within. The first byte says which.
 */
#include "fuzz.h"

#include "frames.h"
#include "identity.h"
#include "manifest.h"
#include "metadata.h"
#include "name.h"
#include "npm.h"
#include "record.h"
#include "scripts.h"
#include "wheel.h"
#include "zipdir.h"

#include <locale.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME "demo"

static void check_result(int r, const struct fault *f)
{
        FUZZ_CHECK(r == 0 || r == UNPACK_E_FAULT || r == -ENOMEM, "%d", r);
        if (r != UNPACK_E_FAULT)
                return;
        FUZZ_CHECK(f->cause && fuzz_is_line(f->text), "%s", f->text);
        for (const char *c = f->text; *c; c++)
                FUZZ_CHECK((unsigned char)*c < 0x7f);
}

static int file_of(const uint8_t *data, size_t size)
{
        int fd = memfd_create("artifact", MFD_CLOEXEC);

        FUZZ_CHECK(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size));
        return fd;
}

/* ---- Members, as whoever writes them to a disk sees them ---- */

struct seen {
        struct name_table names;
        uint64_t left;
        bool is_open;
};

static int see_begin(void *ctx, const struct member *m, struct fault *f)
{
        struct seen *s = ctx;
        struct name_entry *clash;
        struct fault unused;

        FUZZ_CHECK(!s->is_open && strlen(m->path) == m->n && name_check(m->path, m->n, &unused) == 0, "%s", m->path);
        FUZZ_CHECK(*m->path != '/' && !strstr(m->path, "../"), "%s", m->path);
        FUZZ_CHECK(name_add(&s->names, m->path, m->n, m->is_directory ? NAME_DIRECTORY : NAME_FILE, 0, &clash) == 0, "%s", m->path);
        s->left = m->is_directory ? 0 : m->bytes;
        s->is_open = true;
        return 0;
}

static int see_data(void *ctx, const void *data, size_t n, struct fault *f)
{
        struct seen *s = ctx;

        FUZZ_CHECK(s->is_open && n > 0 && n <= s->left, "more than was said");
        s->left -= n;
        return 0;
}

static int see_end(void *ctx, struct fault *f)
{
        struct seen *s = ctx;

        FUZZ_CHECK(s->is_open && s->left == 0, "less than was said");
        s->is_open = false;
        return 0;
}

static void wheel(const uint8_t *data, size_t size)
{
        const struct wheel_want want = { NAME, "1.0", NULL };
        struct seen s = { 0 };
        const struct visitor v = { see_begin, see_data, see_end, &s };
        struct wheel w = { 0 };
        struct fault f = { 0 };
        int fd = file_of(data, size), r;

        r = members_walk(fd, MEMBER_WHEEL, &v, NULL, &f);
        check_result(r, &f);
        name_table_fini(&s.names);
        s = (struct seen){ 0 };
        r = wheel_look(fd, &want, &w, &f);
        check_result(r, &f);
        if (r == 0)
                check_result(wheel_walk(fd, &w, &v, NULL, &f), &f);
        name_table_fini(&s.names);
        wheel_fini(&w);
        close(fd);
}

static void tarball(const uint8_t *data, size_t size)
{
        const struct npm_want want = { NAME, "1.0.0" };
        struct seen s = { 0 };
        const struct visitor v = { see_begin, see_data, see_end, &s };
        struct npm p = { 0 };
        struct fault f = { 0 };
        int fd = file_of(data, size), r;

        r = members_walk(fd, MEMBER_TARBALL, &v, NULL, &f);
        check_result(r, &f);
        name_table_fini(&s.names);
        s = (struct seen){ 0 };
        r = npm_look(fd, &want, &p, &f);
        check_result(r, &f);
        if (r == 0)
                FUZZ_CHECK(npm_walk(fd, &p, &v, &f) == 0, "%s", f.text);
        name_table_fini(&s.names);
        npm_fini(&p);
        close(fd);
}

/* ---- Byte code ---- */

static int frame_begin(void *ctx, const struct member *m, struct fault *f)
{
        struct seen *s = ctx;
        char source[NAME_BYTES_MAX + 4];
        struct fault unused;

        FUZZ_CHECK(!s->is_open && strlen(m->path) == m->n);
        if (frames_source(m->path, m->n, source)) {
                FUZZ_CHECK(name_check(source, strlen(source), &unused) == 0 && strncmp(source, "lib/python3.", 12) == 0, "%s", source);
                FUZZ_CHECK(strcmp(source + strlen(source) - 3, ".py") == 0 && strlen(source) < m->n, "%s", source);
        }
        s->left = m->bytes;
        s->is_open = true;
        return 0;
}

static void frames(const uint8_t *data, size_t size)
{
        struct seen s = { 0 };
        const struct visitor v = { frame_begin, see_data, see_end, &s };
        struct fault f = { 0 };
        FILE *in = fmemopen((void *)data, size, "r");

        FUZZ_CHECK(in);
        check_result(frames_read(in, &v, &f), &f);
        fclose(in);
}

/* ---- Texts ---- */

static void record(const char *text, size_t n)
{
        struct record r = { 0 };
        struct fault f = { 0 };
        int e = record_read(text, n, &r, &f);

        check_result(e, &f);
        for (size_t i = 0; i < r.names.n && e == 0; i++) {
                const struct name_entry *one = &r.names.entries[i];
                const struct record_row *row = record_find(&r, one->name, one->size);

                FUZZ_CHECK(name_check(one->name, one->size, &f) == 0, "%s", one->name);
                FUZZ_CHECK(one->kind == NAME_DIRECTORY ? !row : row && row->bytes >= -1 && row->hash <= RECORD_SHA512);
        }
        record_fini(&r);
}

static void metadata(const char *text, size_t n)
{
        struct metadata m = { 0 };
        struct fault f = { 0 };
        json_t *one;
        size_t i;
        int r = metadata_read(text, n, &m, &f);

        check_result(r, &f);
        check_result(metadata_read_wheel(text, n, &f), &f);
        FUZZ_CHECK(!*m.license || fuzz_is_line(m.license), "%s", m.license);
        FUZZ_CHECK(!*m.requires_python || fuzz_is_line(m.requires_python));
        FUZZ_CHECK(r || (fuzz_is_line(m.name) && fuzz_is_line(m.version)));
        json_array_foreach(m.requires, i, one) {
                const char *name = json_string_value(json_object_get(one, "name"));

                FUZZ_CHECK(identity_python_name(name, strlen(name), name, strlen(name)), "%s", name);
        }
        metadata_fini(&m);
}

static void entry_points(const char *text, size_t n)
{
        struct scripts s = { 0 };
        struct fault f = { 0 };
        int r = scripts_read(text, n, &s, &f);

        check_result(r, &f);
        for (size_t i = 0; i < s.n && r == 0; i++) {
                struct rv_buf out = { 0 };
                size_t lines = 0;

                FUZZ_CHECK(scripts_judge_name(s.all[i].name, strlen(s.all[i].name), &f) == 0 &&
                        !strchr(s.all[i].name, '/'));
                FUZZ_CHECK(scripts_write(&s.all[i], "/x", &out) == 0);
                for (size_t k = 0; k < out.size; k++)
                        lines += out.data[k] == '\n';
                FUZZ_CHECK(lines == 8 && !strpbrk(s.all[i].module, " ();'\"") && !strpbrk(s.all[i].attribute, " ();'\""), "%s", out.data);
                rv_buf_fini(&out);
        }
        scripts_fini(&s);
}

static void package_json(const char *text, size_t n)
{
        static const char *const files[] = { "package.json", "cli.js", "bin/a", "bin/b" };
        const struct npm_want want = { NAME, "1.0.0" };
        struct npm p = { 0 };
        struct fault f = { 0 };
        struct name_entry *clash;
        const char *name;
        json_t *target;
        int r;

        for (size_t i = 0; i < RV_N_ELEMENTS(files); i++)
                FUZZ_CHECK(name_add(&p.names, files[i], strlen(files[i]), NAME_FILE, 0, &clash) == 0);
        r = manifest_read(text, n, &want, &p, &f);
        check_result(r, &f);
        FUZZ_CHECK(!*p.license || fuzz_is_line(p.license), "%s", p.license);
        json_object_foreach(p.bin, name, target) {
                const char *path = json_string_value(target);

                FUZZ_CHECK(name_check(name, strlen(name), &f) == 0 && !strchr(name, '/'), "%s", name);
                FUZZ_CHECK(name_find(&p.names, path, strlen(path)), "%s", path);
        }
        npm_fini(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fuzz_cursor in = { data, size };
        char *text;

        setlocale(LC_CTYPE, "C.UTF-8");
        switch (fuzz_byte(&in)) {
        case 'w': wheel(in.data, in.size); return 0;
        case 't': tarball(in.data, in.size); return 0;
        case 'f': frames(in.data, in.size); return 0;
        default: break;
        }
        /* The readers of texts may look at the NUL that a buffer has behind its bytes. */
        text = strndup((const char *)in.data, in.size);
        if (!text || size == 0) {
                free(text);
                return 0;
        }
        switch (*data) {
        case 'r': record(text, strlen(text)); break;
        case 'm': metadata(text, strlen(text)); break;
        case 'e': entry_points(text, strlen(text)); break;
        case 'j': package_json(text, strlen(text)); break;
        default: break;
        }
        free(text);
        return 0;
}
