#include "policy_grammar.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define DEPTH_MAX 5

struct grammar {
        uint64_t random;
        char *out;
        size_t size, max;
        unsigned depth, n_names, n_rules;
        int section;
};

enum { PACKAGES, NETWORK, IDEMPOTENCY, BACKEND, N_SECTIONS };

static void expression(struct grammar *g);
static void block(struct grammar *g, unsigned n_max);

/* xorshift64*: the same everywhere. */
static unsigned pick(struct grammar *g, unsigned n)
{
        g->random ^= g->random >> 12;
        g->random ^= g->random << 25;
        g->random ^= g->random >> 27;
        return (unsigned)((g->random * UINT64_C(2685821657736338717)) >> 40) % n;
}

static bool chance(struct grammar *g, unsigned percent)
{
        return pick(g, 100) < percent;
}

static __attribute__((format(printf, 2, 3))) void put(struct grammar *g, const char *fmt, ...)
{
        char text[256];
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (n > 0 && g->size + (size_t)n <= g->max) {
                memcpy(g->out + g->size, text, (size_t)n);
                g->size += (size_t)n;
        }
}

#define PUT_ONE_OF(g, table) put(g, "%s", (table)[pick(g, N(table))])

/* ---- Values ---- */

static const char *const package_facts[] = { "language", "name", "requested", "extras", "pinned", "direct", "stage", "version", "hash",
        "published_at", "age_days", "license", "kind", "yanked", "install_script", "size_bytes" };
static const char *const network_facts[] = { "mode", "domain" };
static const char *const idempotency_facts[] = { "mode", "key_given" };
static const char *const backend_facts[] = { "mode", "package_count", "all_pinned" };
static const char *const request_facts[] = { "language", "source_sha256", "source_characters", "timeout_s", "memory_mib", "env_names",
        "package_count", "network_mode", "key_given", "tenant", "tenant.name", "tenant.labels", "tenant.labels.team", "principal", "now" };

static const char *fact(struct grammar *g)
{
        switch (g->section) {
        case PACKAGES: return package_facts[pick(g, N(package_facts))];
        case NETWORK: return network_facts[pick(g, N(network_facts))];
        case IDEMPOTENCY: return idempotency_facts[pick(g, N(idempotency_facts))];
        default: return backend_facts[pick(g, N(backend_facts))];
        }
}

static void string(struct grammar *g)
{
        static const char *const texts[] = { "''", "'a'", "'six'", "'evil-*'", "'*'", "'**a*b**'", "'python'", "'any'", "'domains'", "'1.2.3'",
                "'>=1,<2'", "'example.com'", "'%d+'", "'%5.2f|%q|%s|%x'", "'\\0x'", "'\\u{e9}'", "'\\xff\\xfe'", "\"a\\nb\"", "[[long\nstring]]",
                "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", "'10'", "'0x10'", "' 5 '", "'1e5'" };

        if (g->section == PACKAGES && chance(g, 20))
                put(g, "p.name");
        else
                PUT_ONE_OF(g, texts);
}

static void number(struct grammar *g)
{
        static const char *const texts[] = { "0", "1", "2", "-1", "3.5", "1e308", "-0.0", "1 << 62", "1 << 63", "math.huge", "math.maxinteger",
                "math.mininteger", "0/0", "9007199254740993", "255", "100000", "0x7fffffff", "7 // 2", "7 % 3", "2^53", "~0", "1e15" };

        PUT_ONE_OF(g, texts);
}

static void name(struct grammar *g)
{
        if (g->n_names == 0 || chance(g, 3))
                put(g, "p");
        else
                put(g, "v%u", pick(g, g->n_names));
}

static void table(struct grammar *g)
{
        unsigned n = pick(g, 5);

        put(g, "{ ");
        for (unsigned i = 0; i < n; i++) {
                if (chance(g, 25))
                        put(g, "%s = ", request_facts[pick(g, N(request_facts) - 6)]);
                else if (chance(g, 15)) {
                        put(g, "[");
                        expression(g);
                        put(g, "] = ");
                }
                expression(g);
                put(g, ", ");
        }
        put(g, "}");
}

/* % stands for an expression, $ for a text, ? for a number, @ for a table, ` for a name, ! for a function; %% for one %. */
static void form(struct grammar *g, const char *text);

static const char *const calls[] = { "string.rep($, ?)", "string.rep($, 1000)", "($):rep(?, $)", "string.format($, %, %)", "string.format('%%5d', ?)",
        "string.format('%%-10s|%%q', $, %)", "string.format('%%.14g', ?)", "string.find($, $, ?, true)", "string.find($, $)", "string.gsub($, $, $)",
        "string.match($, $)", "string.gmatch($, $)", "string.glob($, $)", "string.byte($, ?, ?)", "string.char(?, ?)", "string.sub($, ?, ?)",
        "string.len($)", "string.lower($)", "($):upper():reverse()", "#$", "table.concat(@, $)", "table.concat(@, $, ?, ?)", "table.unpack(@)",
        "table.unpack(@, ?, ?)", "table.pack(%, %, %)", "table.remove(@, ?)", "table.move(@, ?, ?, ?)", "table.move(@, 1, 2, 3, @)", "tostring(%)",
        "tonumber(%)", "tonumber($, ?)", "type(%)", "select(?, %, %)", "select('#', %)", "math.floor(?)", "math.max(?, ?)", "math.fmod(?, ?)",
        "math.tointeger(?)", "math.ult(?, ?)", "math.abs(?)", "math.type(%)", "math.sqrt(?)", "version.compare($, $)", "version.compare($, $, 'javascript')",
        "version($)", "within { $, $ }", "within { 'example.com' }(%)", "data 'x'", "data('x').names[?]", "use 'lib/x'", "use('lib/x').is_young(p)",
        "(!)(%)", "error($)", "assert(%, $)", "ipairs(@)", "pairs(@)", "rule @", "policy @", "`[%]", "`.a", "`:a(%)", "`(%)", "(@)[?]", "(%).a.b" };

static void function(struct grammar *g)
{
        unsigned names = g->n_names;

        put(g, "function(a%s) ", chance(g, 20) ? ", ..." : "");
        block(g, 2);
        put(g, "return ");
        expression(g);
        put(g, " end");
        g->n_names = names;
}

static void form(struct grammar *g, const char *text)
{
        for (const char *c = text; *c; c++) {
                bool is_literal = c[0] == c[1] && *c == '%';

                switch (is_literal ? 0 : *c) {
                case '%': expression(g); break;
                case '$': chance(g, 85) ? string(g) : expression(g); break;
                case '?': chance(g, 80) ? number(g) : expression(g); break;
                case '@': chance(g, 70) ? table(g) : name(g); break;
                case '`': name(g); break;
                case '!': function(g); break;
                default: put(g, "%c", *c); break;
                }
                c += is_literal;
        }
}

static void expression(struct grammar *g)
{
        static const char *const operations[] = { "(% + %)", "(% - %)", "(% * %)", "(% / %)", "(% // %)", "(% %% %)", "(% ^ %)", "(% .. %)", "(% == %)", "(% ~= %)",
                "(% < %)", "(% <= %)", "(% and %)", "(% or %)", "(not %)", "(-%)", "(#%)", "(% & %)", "(% | %)", "(% << %)", "(~%)" };
        unsigned kind = g->depth >= DEPTH_MAX ? pick(g, 6) : pick(g, 14);

        g->depth++;
        switch (kind) {
        case 0: number(g); break;
        case 1: string(g); break;
        case 2: name(g); break;
        case 3: put(g, "p.%s", fact(g)); break;
        case 4: put(g, "r.%s", request_facts[pick(g, N(request_facts))]); break;
        case 5: put(g, "%s", chance(g, 50) ? "true" : chance(g, 50) ? "false" : "nil"); break;
        case 6: table(g); break;
        case 7: function(g); break;
        case 8:
        case 9: form(g, operations[pick(g, N(operations))]); break;
        default: form(g, calls[pick(g, N(calls))]); break;
        }
        g->depth--;
}

/* ---- Statements ---- */

static void local(struct grammar *g)
{
        static const char *const starts[] = { "{}", "''", "0", "{ 1, 2, 3 }", "{ 'b', 'a', 'c' }", "{ a = 1, b = { c = 2 } }", "'x'", "1", "p", "r" };

        put(g, "local v%u%s = ", g->n_names, chance(g, 2) ? " <const>" : chance(g, 1) ? " <close>" : "");
        if (chance(g, 60))
                PUT_ONE_OF(g, starts);
        else
                expression(g);
        put(g, " ");
        if (g->n_names < 8)
                g->n_names++;
}

static void loop(struct grammar *g)
{
        static const char *const heads[] = { "for i = 1, 5 do ", "for i = 1, 1000 do ", "for i = ?, ?, ? do ", "for k, v in pairs(@) do ", "for k, v in pairs(p) do ",
                "for i, v in ipairs(@) do ", "for _, v in ipairs(p.extras or {}) do ", "while % do ", "for i = 1, 300 do for j = 1, 300 do ",
                "for w in string.gmatch($, $) do ", "while true do " };
        static const char *const bodies[] = { "` = ` .. $ ", "`[?] = % ", "local i = ? `[i] = i ", "table.insert(`, %) ", "table.insert(`, ?, %) ", "` = { `, % } ",
                "table.sort(`, !) ", "if % then break end ", "` = (` or 0) + 1 ", "` = string.rep(`, 2) ", "`[`] = ` ", "` = ! " };
        unsigned head = pick(g, N(heads));

        form(g, heads[head]);
        for (unsigned i = 0; i <= pick(g, 2); i++)
                form(g, bodies[pick(g, N(bodies))]);
        if (chance(g, 30))
                block(g, 2);
        put(g, head == 8 ? "end end " : "end ");
}

static void statement(struct grammar *g)
{
        static const char *const forms[] = { "if % then return % end ", "if % then ` = % else ` = % end ", "` = % ", "`.x = % ", "`[%] = % ", "table.sort(@, !) ",
                "table.sort(@) ", "repeat local q = % until % ", "do local q <const> = % end ", "do if % then goto out end ` = % ::out:: end ", "local function f(n) if n < 1 then return 0 end return f(n - 1) end f(?) ",
                "local function f(n) return f(n + 1) end f(0) ", "local function f(...) return select('#', ...) end f(%, %) ", "assert(%, $) ", "error($) ",
                "string.x = 1 ", "x = 1 ", "for i = 1, 3 do local a = % end ", "table.insert(@, %) ", "local a, b, c = % ", "do return % end " };

        g->depth++;
        if (chance(g, 35))
                local(g);
        else if (chance(g, 30) && g->depth < DEPTH_MAX)
                loop(g);
        else
                form(g, forms[pick(g, chance(g, 85) ? 9 : N(forms))]);
        put(g, "\n");
        g->depth--;
}

static void block(struct grammar *g, unsigned n_max)
{
        for (unsigned n = pick(g, n_max + 1); n > 0; n--)
                statement(g);
}

/* ---- A policy ---- */

/* A value of the fact's type nine times out of ten, since one that is not ends the load. */
static void match_value(struct grammar *g, const char *of)
{
        static const char *const texts[] = { "'six'", "'*'", "'evil-*'", "'*x*1*'", "{ 'six', 'a*' }", "'alice'", "data('x').names", "'MIT'", "{ '*', '' }" };
        static const char *const modes[] = { "'none'", "'any'", "{ 'any', 'domains' }", "'registries'" };
        static const char *const languages[] = { "'python'", "'javascript'" };
        static const char *const domains[] = { "within { 'example.com', 'other.example' }", "{ within { 'a.b' }, 'x.y' }", "'*.example'", "''" };
        static const char *const versions[] = { "version '<2'", "version '>=1,<2 || ==3.*'", "'1.*'", "{ version '^1', version '~=2.0' }" };
        static const char *const booleans[] = { "true", "false" };
        static const char *const integers[] = { "0", "1", "30", "{ 1, 2, 3 }", "-1", "1750000000" };

        if (chance(g, 10))
                expression(g);
        else if (strstr(of, "mode"))
                PUT_ONE_OF(g, modes);
        else if (strcmp(of, "language") == 0)
                PUT_ONE_OF(g, languages);
        else if (strcmp(of, "stage") == 0)
                put(g, "'requested'");
        else if (strcmp(of, "domain") == 0)
                PUT_ONE_OF(g, domains);
        else if (strcmp(of, "version") == 0)
                PUT_ONE_OF(g, versions);
        else if (strstr(of, "pinned") || strstr(of, "direct") || strstr(of, "yanked") || strstr(of, "script") || strstr(of, "given"))
                PUT_ONE_OF(g, booleans);
        else if (strstr(of, "_s") == of + strlen(of) - 2 || strstr(of, "_mib") || strstr(of, "count") || strstr(of, "_at") ||
                 strstr(of, "days") || strstr(of, "bytes") || strstr(of, "characters") || strcmp(of, "now") == 0)
                PUT_ONE_OF(g, integers);
        else
                PUT_ONE_OF(g, texts);
}

static void match(struct grammar *g)
{
        put(g, "match = { ");
        for (unsigned i = pick(g, 4); i > 0; i--) {
                const char *of = chance(g, 75) ? fact(g) : request_facts[pick(g, N(request_facts))];

                if (strchr(of, '.'))
                        continue;
                put(g, "%s = ", of);
                match_value(g, of);
                put(g, ", ");
        }
        put(g, "}, ");
}

static void when(struct grammar *g)
{
        unsigned names = g->n_names;

        put(g, "when = function(p, r) ");
        block(g, 4);
        put(g, "return ");
        if (chance(g, 70)) {
                put(g, "(");
                expression(g);
                put(g, ") == ");
                expression(g);
        } else {
                expression(g);
        }
        put(g, " end, ");
        g->n_names = names;
}

static void verdict(struct grammar *g)
{
        static const char *const verdicts[N_SECTIONS][3] = {
                { "allow = true", "deny = 'no'", "deny = 'caf\\u{e9}'" },
                { "allow = true", "deny = 'no'", "deny = 'not there'" },
                { "require_key = true", "require_key = false", "require_key = true" },
                { "use = 'microvm'", "use = 'tenant'", "deny = 'none here'" },
        };

        put(g, "%s", verdicts[chance(g, 95) ? (unsigned)g->section : pick(g, N_SECTIONS)][pick(g, 3)]);
}

static void obligation(struct grammar *g)
{
        static const char *const obligations[] = {
                "pin = '1.16.0'", "pin = '2.0'", "newest_published = 'P7D'", "newest_published = 'PT12H'", "require_hash = true", "allow_source_build = true",
                "pin = '>=1'", "newest_published = 'P1M'", "require_hash = false",
        };

        put(g, ", %s", obligations[pick(g, chance(g, 97) ? 6 : 9)]);
}

static void rule(struct grammar *g)
{
        bool has_match = chance(g, 60);

        put(g, "rule { id = 'r%u', ", chance(g, 97) ? g->n_rules++ : 0);
        if (has_match)
                match(g);
        if (!has_match || chance(g, 50))
                when(g);
        verdict(g);
        if (chance(g, g->section == 0 ? 25 : 1))
                obligation(g);
        put(g, "%s },\n", chance(g, 2) ? ", extra = 1" : "");
}

static void section(struct grammar *g)
{
        static const char *const names[N_SECTIONS] = { "packages", "network", "idempotency", "backend" };
        static const char *const defaults[N_SECTIONS][2] = { { "allow", "deny" }, { "allow", "deny" }, { "none", "require_key" }, { "namespace", "tenant" } };

        put(g, "%s = { ", names[g->section]);
        for (unsigned i = pick(g, 4); i > 0; i--)
                rule(g);
        if (chance(g, 98))
                put(g, "default = '%s' ", defaults[g->section][pick(g, 2)]);
        put(g, "},\n");
}

static void limits(struct grammar *g)
{
        static const char *const texts[] = { "timeout_s = { max = 10 }", "timeout_s = { max = 120, deny_above = 200 }", "memory_mib = { max = 128 }",
                "memory_mib = { deny_above = 1024 }", "timeout_s = { max = 0 }", "memory_mib = { max = 1 << 40 }", "timeout_s = { max = 1.5 }", "timeout_s = {}" };

        put(g, "limits = { ");
        PUT_ONE_OF(g, texts);
        put(g, " },\n");
}

static void policy(struct grammar *g)
{
        put(g, "local p = { name = 'six', extras = { 'a', 'b' }, age_days = 3, pinned = true }\nlocal r = { now = 1, env_names = {} }\n");
        for (unsigned i = pick(g, 3); i > 0; i--)
                statement(g);
        put(g, "return policy {\n");
        for (g->section = 0; g->section < N_SECTIONS; g->section++)
                if (chance(g, 98))
                        section(g);
        if (chance(g, 30))
                limits(g);
        put(g, "}\n");
}

size_t grammar_make(enum grammar_part part, uint64_t seed, char *out, size_t max)
{
        struct grammar g = { .random = seed * 2 + 1, .out = out, .max = max };

        for (int i = 0; i < 8; i++)
                pick(&g, 2);
        g.section = (int)pick(&g, N_SECTIONS);
        g.n_names = part == GRAMMAR_POLICY ? 0 : 3;
        g.n_rules = part == GRAMMAR_POLICY ? 0 : 10 + pick(&g, 1000);
        switch (part) {
        case GRAMMAR_POLICY: policy(&g); break;
        case GRAMMAR_SECTION: section(&g); break;
        case GRAMMAR_RULE: rule(&g); break;
        case GRAMMAR_MATCH: match(&g); break;
        case GRAMMAR_STATEMENT: statement(&g); break;
        case GRAMMAR_EXPRESSION:
        case _GRAMMAR_PART_MAX: expression(&g); break;
        }
        return g.size;
}
