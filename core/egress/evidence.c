#include "egress/evidence.h"

#include "base/arena.h"
#include "base/json.h"

#include <string.h>

struct entry {
        struct rv_evidence_key key;
        union {
                struct rv_contact contact;
                struct {
                        enum rv_denial denial;
                        uint64_t count;
                };
        };
};

struct list {
        struct entry *entries[RV_EVIDENCE_MAX];    /* the first n, in the arena: who counts keeps hold of one */
        size_t n;
        uint64_t n_more;
};

struct rv_evidence {
        struct list contacts, denials;
        struct rv_arena arena;
};

int rv_evidence_new(struct rv_evidence **ret)
{
        struct rv_evidence *evidence = calloc(1, sizeof(*evidence));

        if (!evidence)
                return rv_raise(-ENOMEM);
        *ret = evidence;
        return 0;
}

void rv_evidence_free(struct rv_evidence *evidence)
{
        if (!evidence)
                return;
        rv_arena_fini(&evidence->arena);
        free(evidence);
}

static bool is_same(const struct rv_evidence_key *a, const struct rv_evidence_key *b)
{
        return a->port == b->port && strcmp(a->protocol, b->protocol) == 0 && strcmp(a->name, b->name) == 0 &&
                strcmp(a->address, b->address) == 0;
}

/* An entry of the list, or a new one at its end. NULL: counted. @denial is 0 in the list of contacts. */
static struct entry *find(
        struct rv_evidence *evidence, struct list *list, const struct rv_evidence_key *key, enum rv_denial denial)
{
        struct entry *entry;

        for (size_t i = 0; i < list->n; i++)
                if (is_same(&list->entries[i]->key, key) && (!denial || list->entries[i]->denial == denial))
                        return list->entries[i];
        entry = list->n < RV_EVIDENCE_MAX ? rv_arena_alloc(&evidence->arena, sizeof(*entry)) : NULL;
        if (!entry) {
                list->n_more++;
                return NULL;
        }
        entry->key = *key;
        entry->key.name = rv_arena_strdup(&evidence->arena, key->name);
        entry->key.address = rv_arena_strdup(&evidence->arena, key->address);
        if (!entry->key.name || !entry->key.address) {
                list->n_more++;
                return NULL;
        }
        if (denial)
                entry->denial = denial;
        list->entries[list->n++] = entry;
        return entry;
}

struct rv_contact *rv_evidence_contact(struct rv_evidence *evidence, const struct rv_evidence_key *key)
{
        struct entry *entry = find(evidence, &evidence->contacts, key, RV_DENIAL_NONE);

        return entry ? &entry->contact : NULL;
}

void rv_evidence_deny(struct rv_evidence *evidence, const struct rv_evidence_key *key, enum rv_denial denial)
{
        struct entry *entry = find(evidence, &evidence->denials, key, denial);

        if (entry)
                entry->count++;
}

static json_t *pack_key(const struct rv_evidence_key *key)
{
        return json_pack("{s:s, s:s, s:i, s:s}", "name", key->name, "address", key->address, "port", (int)key->port, "protocol", key->protocol);
}

static int set(json_t *object, const char *member, uint64_t value)
{
        return json_object_set_new(object, member, json_integer((json_int_t)value));
}

static int add_contact(json_t *list, const struct entry *entry)
{
        json_t *object = pack_key(&entry->key);

        if (set(object, "connections", entry->contact.connections) < 0 || set(object, "bytes_out", entry->contact.bytes_out) < 0 ||
            set(object, "bytes_in", entry->contact.bytes_in) < 0) {
                json_decref(object);
                return -1;
        }
        return json_array_append_new(list, object);
}

static int add_denial(json_t *list, const struct entry *entry)
{
        json_t *object = pack_key(&entry->key);

        if (json_object_set_new(object, "rule", json_string(rv_denial_word(entry->denial))) < 0 || set(object, "count", entry->count) < 0) {
                json_decref(object);
                return -1;
        }
        return json_array_append_new(list, object);
}

int rv_evidence_write(const struct rv_evidence *evidence, struct rv_buf *out)
{
        _cleanup_(rv_json_unrefp) json_t *root = json_object(), *contacts = json_array(), *denials = json_array();
        char *text;

        for (size_t i = 0; i < evidence->contacts.n; i++)
                if (add_contact(contacts, evidence->contacts.entries[i]) < 0)
                        return rv_raise(-ENOMEM);
        for (size_t i = 0; i < evidence->denials.n; i++)
                if (add_denial(denials, evidence->denials.entries[i]) < 0)
                        return rv_raise(-ENOMEM);
        if (json_object_set(root, "contacts", contacts) < 0 || json_object_set(root, "denials", denials) < 0 ||
            set(root, "more_contacts", evidence->contacts.n_more) < 0 || set(root, "more_denials", evidence->denials.n_more) < 0)
                return rv_raise(-ENOMEM);
        text = json_dumps(root, JSON_COMPACT);
        if (!text)
                return rv_raise(-ENOMEM);
        rv_buf_puts(out, text);
        free(text);
        return rv_trace(rv_buf_error(out));
}
