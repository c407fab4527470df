#include "name.h"

#include "base/utf8.h"

#include <string.h>

#define FIRST_SLOTS 256u

static bool is_letter(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

size_t name_part(const char *name, size_t n)
{
        const char *slash = memchr(name, '/', n);

        return slash ? (size_t)(slash - name) : n;
}

static int refuse(struct fault *f, const char *name, size_t n, const char *what)
{
        char quote[FAULT_QUOTE_SIZE];

        return fault_set(f, UNPACK_UNSAFE, "the member %s %s", fault_quote(name, n, quote), what);
}

static const char *judge_parts(const char *name, size_t n)
{
        unsigned depth = 0;

        for (size_t at = 0, part; at <= n; at += part + 1) {
                const char *p = name + at;

                part = name_part(p, n - at);
                if (part == 0)
                        return "has an empty part in its name";
                if (part == 2 && p[0] == '.' && p[1] == '.')
                        return "leads out of the place where it is unpacked";
                if (part == 1 && p[0] == '.')
                        return "has the part \".\" in its name";
                if (part > NAME_PART_BYTES_MAX)
                        return "has a part of more than 255 bytes in its name";
                if (++depth > NAME_DEPTH_MAX)
                        return "is nested too deep: the most is 64";
        }
        return NULL;
}

/* C0, DEL and the C1 controls of Unicode (U+0080 to U+009F, in UTF-8 0xc2 and 0x80 to 0x9f). */
static bool has_control(const char *name, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)name[i];

                if (c < 0x20 || c == 0x7f || (c == 0xc2 && i + 1 < n && (unsigned char)name[i + 1] < 0xa0))
                        return true;
        }
        return false;
}

int name_check(const char *name, size_t n, struct fault *f)
{
        const char *what;

        if (n == 0)
                return fault_set(f, UNPACK_UNSAFE, "a member has an empty name");
        if (n > NAME_BYTES_MAX)
                return refuse(f, name, n, "has a name of more than 1024 bytes");
        if (has_control(name, n))
                return refuse(f, name, n, "has a control character in its name");
        if (!rv_utf8_check(name, n, NULL))
                return refuse(f, name, n, "has a name that is not UTF-8");
        if (*name == '/')
                return refuse(f, name, n, "has an absolute name");
        if (memchr(name, '\\', n))
                return refuse(f, name, n, "has a backslash in its name");
        if (n >= 2 && is_letter(name[0]) && name[1] == ':')
                return refuse(f, name, n, "has a drive letter in its name");
        what = judge_parts(name, n);
        return what ? refuse(f, name, n, what) : 0;
}

/* ---- Tables ---- */

void name_table_fini(struct name_table *t)
{
        for (size_t i = 0; i < t->n; i++)
                free(t->entries[i].name);
        free(t->entries);
        free(t->slots);
        t->entries = NULL;
        t->slots = NULL;
        t->n = t->n_room = t->n_slots = 0;
}

static char fold(const struct name_table *t, char c)
{
        return t->is_folding && c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* FNV-1a. Whoever makes names that collide only makes his own archive slow, until its time is up. */
static size_t slot_of(const struct name_table *t, const char *name, size_t n)
{
        uint64_t h = 14695981039346656037u;

        for (size_t i = 0; i < n; i++)
                h = (h ^ (unsigned char)fold(t, name[i])) * 1099511628211u;
        return (size_t)(h ^ h >> 29) & (t->n_slots - 1);
}

static bool is_same(const struct name_table *t, const struct name_entry *e, const char *name, size_t n)
{
        if (e->size != n)
                return false;
        for (size_t i = 0; i < n; i++)
                if (fold(t, e->name[i]) != fold(t, name[i]))
                        return false;
        return true;
}

struct name_entry *name_find(const struct name_table *t, const char *name, size_t n)
{
        if (!t->n_slots)
                return NULL;
        for (size_t i = slot_of(t, name, n); t->slots[i]; i = (i + 1) & (t->n_slots - 1))
                if (is_same(t, &t->entries[t->slots[i] - 1], name, n))
                        return &t->entries[t->slots[i] - 1];
        return NULL;
}

static void put(struct name_table *t, size_t index)
{
        size_t i = slot_of(t, t->entries[index].name, t->entries[index].size);

        while (t->slots[i])
                i = (i + 1) & (t->n_slots - 1);
        t->slots[i] = (uint32_t)index + 1;
}

static int make_room(struct name_table *t)
{
        size_t n_slots = t->n_slots ? t->n_slots * 2 : FIRST_SLOTS;
        struct name_entry *entries;
        uint32_t *slots;

        if (t->n < t->n_room)
                return 0;
        entries = reallocarray(t->entries, n_slots / 2, sizeof(*entries));
        if (!entries)
                return rv_raise(-ENOMEM);
        t->entries = entries;
        slots = calloc(n_slots, sizeof(*slots));
        if (!slots)
                return rv_raise(-ENOMEM);
        free(t->slots);
        t->slots = slots;
        t->n_slots = n_slots;
        t->n_room = n_slots / 2;
        for (size_t i = 0; i < t->n; i++)
                put(t, i);
        return 0;
}

static int insert(struct name_table *t, const char *name, size_t n, enum name_kind kind, uint32_t owner)
{
        int r = make_room(t);
        char *copy;

        if (r < 0)
                return rv_trace(r);
        copy = strndup(name, n);
        if (!copy)
                return rv_raise(-ENOMEM);
        t->entries[t->n] = (struct name_entry){ copy, (uint32_t)n, owner, kind };
        put(t, t->n++);
        return 0;
}

static int add_one(struct name_table *t, const char *name, size_t n, enum name_kind kind, uint32_t owner,
        struct name_entry **ret_clash)
{
        struct name_entry *there = name_find(t, name, n);

        if (!there)
                return rv_trace(insert(t, name, n, kind, owner));
        if (there->kind == NAME_DIRECTORY && kind == NAME_DIRECTORY)
                return 0;
        *ret_clash = there;
        return UNPACK_E_FAULT;
}

int name_add(struct name_table *t, const char *name, size_t n, enum name_kind kind, uint32_t owner,
        struct name_entry **ret_clash)
{
        size_t at = n;
        int r = add_one(t, name, n, kind, owner, ret_clash);

        /* Upwards, until one is there: then those above it are too. */
        while (r == 0 && at > 0) {
                const char *slash = memrchr(name, '/', at);
                const struct name_entry *there;

                if (!slash)
                        break;
                at = (size_t)(slash - name);
                there = name_find(t, name, at);
                r = add_one(t, name, at, NAME_DIRECTORY, owner, ret_clash);
                if (there)
                        break;
        }
        return r < 0 ? rv_trace(r) : r;
}

int name_clash_fault(const struct name_entry *there, const char *name, size_t n, enum name_kind kind, struct fault *f)
{
        char quote[FAULT_QUOTE_SIZE], other[FAULT_QUOTE_SIZE];

        fault_quote(name, n, quote);
        fault_quote(there->name, there->size, other);
        if (there->size != n || there->kind == NAME_DIRECTORY || kind == NAME_DIRECTORY)
                return fault_set(f, UNPACK_UNSAFE, "the member %s clashes with %s: one of them is a file and the other a directory", quote, other);
        if (memcmp(there->name, name, n) == 0)
                return fault_set(f, UNPACK_UNSAFE, "the member %s is there twice", quote);
        return fault_set(f, UNPACK_UNSAFE, "the members %s and %s differ only in case", other, quote);
}
