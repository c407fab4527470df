#include "package/diagnose_private.h"

#include "request/npmrange.h"
#include "request/pyreq.h"

#include <stdio.h>
#include <string.h>

/*
 * Names are taken only from where a tool speaks of what cannot be had ("no version of NAME", "NAME was not found"), and
 * only if they are requirements by our own parsers; and from the ends of addresses, where it may have given up. What comes of
 * it is a list of pages and files to look at, nothing more.
 */

#define WORDS_MAX 2000u
#define WORD_MAX 400u

struct words {
        const char *p;
        char last[2][WORD_MAX];      /* the word before, and the one before that */
};

/* Quotes, brackets and the like are none of a word; what stands in it may be. */
static bool is_edge(char c)
{
        return strchr("`'\"(){}:;.,|", c) != NULL;
}

static bool next_word(const char **p, char ret[WORD_MAX])
{
        for (;;) {
                const char *start = *p + strspn(*p, " \t\r\n");
                size_t n = strcspn(start, " \t\r\n");

                if (n == 0)
                        return false;
                *p = start + n;
                while (n && is_edge(start[n - 1]))
                        n--;
                while (n && is_edge(*start))
                        start++, n--;
                if (n == 0 || n >= WORD_MAX)
                        continue;
                memcpy(ret, start, n);
                ret[n] = 0;
                return true;
        }
}

static void add(
        enum rv_language language, const char *text, bool is_of_place, struct rv__hint *ret, size_t *n)
{
        char bare[WORD_MAX + 8];
        struct rv_package p;
        bool has_constraint = language == RV_LANGUAGE_PYTHON ? strpbrk(text, "=<>~!") != NULL : strchr(text + 1, '@') != NULL;

        snprintf(bare, sizeof(bare), "%s%s", text, has_constraint ? "" : language == RV_LANGUAGE_PYTHON ? ">=0" : "@*");
        if ((language == RV_LANGUAGE_PYTHON ? rv_pyreq_parse(bare, strlen(bare), &p, NULL)
                                            : rv_npmreq_parse(bare, strlen(bare), &p, NULL)) != 0)
                return;
        if (strlen(p.name) < sizeof(ret->name) && strlen(p.constraint) < sizeof(ret->constraint) &&
                *n < RV__HINTS_MAX) {
                bool is_there = false;
                const char *constraint = has_constraint ? p.constraint : "";

                for (size_t i = 0; i < *n; i++)
                        is_there = is_there ||
                                (strcmp(ret[i].name, p.name) == 0 && strcmp(ret[i].constraint, constraint) == 0);
                if (!is_there) {
                        snprintf(ret[*n].name, sizeof(ret->name), "%s", p.name);
                        snprintf(ret[*n].constraint, sizeof(ret->constraint), "%s", constraint);
                        ret[*n].is_of_place = is_of_place;
                        (*n)++;
                }
        }
        rv_package_fini(&p);
}

/* Does what stands before a word say that what it names was wanted? */
static bool is_wanted(const char *before, const char *before_that)
{
        if (strcmp(before, "of") == 0)
                return strcmp(before_that, "version") == 0;      /* "all versions of" names what tools have ruled out */
        if (strcmp(before, "for") == 0)
                return strcmp(before_that, "found") == 0;
        if (strcmp(before, "on") == 0)
                return strcmp(before_that, "depends") == 0 || strcmp(before_that, "depend") == 0;
        return strcmp(before, "requirement") == 0 || strcmp(before, "requires") == 0;
}

static bool begins(const char *p, const char *text)
{
        return strncmp(p + strspn(p, " \t\r\n`'\""), text, strlen(text)) == 0;
}

/* What the last part of an address is the page or the file of: `…/simple/NAME/`, `…/@scope%2fNAME`, `…/NAME-VERSION-….whl`. */
static void add_of_place(enum rv_language language, char *word, struct rv__hint *ret, size_t *n)
{
        char bare[WORD_MAX], *last, *dash, *end;

        word[strcspn(word, "?#")] = 0;
        for (end = word + strlen(word); end > word && end[-1] == '/';)
                *--end = 0;
        last = strrchr(word, '/');
        if (!last)
                return;
        last++;
        end = strstr(last, ".whl");
        dash = end ? strchr(last, '-') : NULL;
        if (dash)
                snprintf(bare, sizeof(bare), "%.*s==%.*s", (int)(dash - last), last, (int)strcspn(dash + 1, "-"), dash + 1);
        else if (*last == '@' && (end = strchr(last, '%')) && strncasecmp(end, "%2f", 3) == 0)
                snprintf(bare, sizeof(bare), "%.*s/%s", (int)(end - last), last, end + 3);
        else
                snprintf(bare, sizeof(bare), "%s", last);
        if (*bare)
                add(language, bare, true, ret, n);
}

size_t rv__diagnose_words(enum rv_language language, const char *text, struct rv__hint ret[RV__HINTS_MAX])
{
        char word[WORD_MAX], before[WORD_MAX] = "", before_that[WORD_MAX] = "";
        const char *whole = text;
        size_t n = 0;

        for (size_t i = 0; i < WORDS_MAX && next_word(&text, word); i++) {
                if (is_wanted(before, before_that) || begins(text, "was not found") || begins(text, "is not in this registry") || begins(text, "could not be found"))
                        add(language, word, false, ret, &n);
                memcpy(before_that, before, sizeof(before));
                memcpy(before, word, sizeof(word));
        }
        for (size_t i = 0; i < WORDS_MAX && next_word(&whole, word); i++)
                if (strchr(word, '/'))
                        add_of_place(language, word, ret, &n);
        return n;
}

/* A word that names a place: an address, a path, a file of the tool's. */
static bool is_place(const char *word, size_t n)
{
        const char *slash = memchr(word, '/', n);

        return slash && !(word[0] == '@' && memchr(slash + 1, '/', n - (size_t)(slash - word) - 1) == NULL);
}

void rv__diagnose_excerpt(const char *text, char *ret, size_t size)
{
        size_t used = 0;

        *ret = 0;
        for (;;) {
                const char *word = text + strspn(text, " \t\r\n");
                size_t n = strcspn(word, " \t\r\n");
                bool is_plain = true;

                if (n == 0)
                        break;
                text = word + n;
                for (size_t i = 0; i < n; i++)
                        is_plain = is_plain && word[i] > 0x20 && word[i] < 0x7f;
                if (!is_plain || is_place(word, n))
                        continue;
                if (used + n + 2 > size)
                        break;
                used += (size_t)snprintf(ret + used, size - used, "%s%.*s", used ? " " : "", (int)n, word);
        }
}
