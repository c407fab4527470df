#include "policy/obligation.h"

#include "policy/policy.h"
#include "policy/version.h"

#include <stdio.h>
#include <string.h>

#define DAY_S 86400
#define HOUR_S 3600
#define DIGITS_MAX 9

static const char *const names[] = { "allow_source_build", "newest_published", "pin", "require_hash" };

#define FAULT(...) (rule->is_broken = true, rv_engine_report(L, &rule->place, __VA_ARGS__))

/* ---- Durations ---- */

static bool take_number(const char **p, const char *end, int64_t *ret)
{
        const char *start = *p;
        int64_t n = 0;

        while (*p < end && **p >= '0' && **p <= '9' && *p - start < DIGITS_MAX)
                n = n * 10 + *(*p)++ - '0';
        *ret = n;
        return *p > start;
}

int rv_obligation_duration(const char *text, size_t n, int64_t *ret_s)
{
        const char *p = text, *end = text + n;
        int64_t number, seconds = 0;
        unsigned last = 0;   /* parts come in the order W, D, T, H, each once */

        if (p == end || *p++ != 'P')
                return rv_raise(-EINVAL);
        while (p < end) {
                if (*p == 'T' && last < 3 && p + 1 < end) {
                        last = 3;
                        p++;
                        continue;
                }
                if (!take_number(&p, end, &number) || p == end)
                        return rv_raise(-EINVAL);
                /* ISO 8601 has weeks alone. */
                if (*p == 'W' && last == 0 && p + 1 == end)
                        last = 5;
                else if (*p == 'D' && last == 0)
                        last = 2;
                else if (*p == 'H' && last == 3)
                        last = 4;
                else
                        return rv_raise(-EINVAL);
                seconds += number * (*p == 'W' ? 7 * DAY_S : *p == 'D' ? DAY_S : HOUR_S);
                p++;
        }
        if (last == 3 || seconds <= 0 || seconds > RV_NEWEST_PUBLISHED_S_MAX)
                return rv_raise(-EINVAL);
        *ret_s = seconds;
        return 0;
}

const char *rv_obligation_age(int64_t seconds, char *ret, size_t n)
{
        long long days = seconds / DAY_S, hours = seconds % DAY_S / HOUR_S, minutes = seconds % HOUR_S / 60;

        if (days && hours)
                snprintf(ret, n, "%lld day%s and %lld hour%s", days, days == 1 ? "" : "s", hours, hours == 1 ? "" : "s");
        else if (days)
                snprintf(ret, n, "%lld day%s", days, days == 1 ? "" : "s");
        else if (hours)
                snprintf(ret, n, "%lld hour%s", hours, hours == 1 ? "" : "s");
        else
                snprintf(ret, n, "%lld minute%s", minutes, minutes == 1 ? "" : "s");
        return ret;
}

/* ---- Pins ---- */

static bool is_exact(enum rv_version_order order, const char *text)
{
        struct rv_version v;

        /* npm's version has three numbers: fewer are a range. */
        return rv_version_parse(order, text, strlen(text), &v) == 0 &&
                (order != RV_VERSION_SEMVER || v.n_segments == 3);
}

bool rv_obligation_is_pin(const char *language, const char *text)
{
        /* What a comparison lets pass, blanks around it and a `v` before it, is no canonical version. */
        if (*text < '0' || *text > '9' || strchr(text, ' ') || strchr(text, '\t'))
                return false;
        if (language)
                return is_exact(rv_version_order_for(language), text);
        return is_exact(RV_VERSION_PEP440, text) || is_exact(RV_VERSION_SEMVER, text);
}

/* The one language that the rule's `match` leaves, or NULL. */
static const char *language_of(const struct rv_rule *rule)
{
        for (size_t i = 0; i < rule->n_conditions; i++) {
                const struct rv_condition *c = &rule->conditions[i];

                if (strcmp(c->name, "language") == 0 && c->n_alternatives == 1 && c->alternatives[0].kind == RV_ALT_STRING)
                        return c->alternatives[0].text;
        }
        return NULL;
}

/* ---- Fields ---- */

bool rv_obligation_is_field(const char *name)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return false;
}

static const char *text_on_top(lua_State *L)
{
        const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;

        return text && strlen(text) == lua_rawlen(L, -1) && strlen(text) <= RV_VERSION_SIZE_MAX ? text : NULL;
}

static bool take_true(lua_State *L, struct rv_rule *rule, const char *name)
{
        bool is_true = lua_isboolean(L, -1) && lua_toboolean(L, -1);

        if (!is_true)
                FAULT("rule '%s': `%s` is true; a rule without it does not oblige", rule->id, name);
        return is_true;
}

void rv_obligation_take(lua_State *L, struct rv_rule *rule, const char *name, int anchor)
{
        const char *text = text_on_top(L);

        if (strcmp(name, "require_hash") == 0) {
                rule->obliges.require_hash = take_true(L, rule, name);
        } else if (strcmp(name, "allow_source_build") == 0) {
                rule->obliges.allow_source_build = take_true(L, rule, name);
        } else if (strcmp(name, "newest_published") == 0) {
                if (!text || rv_obligation_duration(text, strlen(text), &rule->obliges.newest_published_s) < 0)
                        FAULT("rule '%s': `newest_published` is a duration of weeks, or of days and hours, of at most 36500 "
                              "days, such as \"P7D\", \"PT12H\", \"P1DT6H\" or \"P2W\"", rule->id);
        } else if (!text || !rv_obligation_is_pin(NULL, text)) {
                FAULT("rule '%s': `pin` is one exact version, such as \"1.2.3\"", rule->id);
        } else {
                lua_pushvalue(L, -1);
                lua_rawseti(L, anchor, (lua_Integer)lua_rawlen(L, anchor) + 1);
                rule->obliges.pin = text;
        }
}

void rv_obligation_place(lua_State *L, struct rv_rule *rule, bool can_oblige)
{
        const struct rv_obligations *o = &rule->obliges;
        const char *language = language_of(rule);
        const char *name = o->pin ? "pin"
                : o->require_hash ? "require_hash"
                : o->newest_published_s ? "newest_published"
                : o->allow_source_build ? "allow_source_build"
                : NULL;

        if (name && !can_oblige)
                FAULT("rule '%s': `%s` belongs to a rule of section packages that allows", rule->id, name);
        else if (o->pin && language && !rv_obligation_is_pin(language, o->pin))
                FAULT("rule '%s': `pin` is one exact version, and '%.80s' is none of %s", rule->id, o->pin, language);
}
