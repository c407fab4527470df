#include "audit_record.h"

#include "audit/log_private.h"

#include <string.h>

static const struct {
        const char *name;
        size_t at;
} members[] = {
#define X(name) { #name, offsetof(struct audit_record, name) },
        AUDIT_MEMBERS(X)
#undef X
};

int audit_record_read(const char *line, size_t n, struct audit_record *ret)
{
        struct rv_canonical_object o;
        struct rv_span name;
        int64_t seq, time;
        size_t i = 0;
        int r;

        *ret = (struct audit_record){ .line = line, .n = n };
        rv_canonical_open(&o, line, n);
        while ((r = rv_canonical_next(&o, &name)) > 0) {
                while (i < RV_N_ELEMENTS(members) &&
                        rv_json_compare_names(members[i].name, strlen(members[i].name), name.text, name.n) < 0)
                        i++;
                if (i < RV_N_ELEMENTS(members) && rv_span_is(name, members[i].name) &&
                    rv_canonical_skip(&o, (struct rv_span *)((char *)ret + members[i].at)) < 0)
                        return -EINVAL;
        }
        seq = rv_span_integer(ret->seq);
        time = rv_span_integer(ret->time_us);
        if (r < 0 || seq < 0 || time < 0 || !ret->kind.text)
                return -EINVAL;
        ret->seq_number = (uint64_t)seq;
        ret->time_number = (uint64_t)time;
        return 0;
}

bool audit_record_is(struct rv_span member, const char *text)
{
        _cleanup_(rv_json_unrefp) json_t *value = NULL;

        if (rv_span_string(member).text)
                return rv_span_is(rv_span_string(member), text);
        value = audit_record_text(member);
        return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

json_t *audit_record_text(struct rv_span member)
{
        _cleanup_(rv_json_unrefp) json_t *value = NULL;
        const json_t *redacted;

        if (!member.text)
                return json_null();
        if (rv_canonical_read(member.text, member.n, RV_LOG_DEPTH_MAX, &value) < 0)
                return json_stringn("?", 1);
        redacted = json_object_get(value, "redacted");
        if (json_is_string(redacted))
                return json_incref((json_t *)redacted);
        return json_is_string(value) || json_is_null(value) ? json_incref(value) : json_stringn(member.text, member.n);
}
