#include "request/domain.h"

#include <string.h>
#include <strings.h>

#define FAIL(fault, code, ...) rv_fault_set(fault, RV_FAULT_##code, __VA_ARGS__)
#define LABEL_MAX 63

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
        return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* WHATWG URL, "ends in a number": all digits, or 0x and hexadecimal digits (none are enough). */
static bool is_number(const char *label, size_t n)
{
        bool is_hexadecimal = n >= 2 && label[0] == '0' && (label[1] | 0x20) == 'x';

        for (size_t i = is_hexadecimal ? 2 : 0; i < n; i++)
                if (!(is_hexadecimal ? is_hex(label[i]) : is_digit(label[i])))
                        return false;
        return n > 0;
}

static bool has_any(const char *text, size_t n, const char *characters)
{
        for (size_t i = 0; i < n; i++)
                if (text[i] && strchr(characters, text[i]))
                        return true;
        return false;
}

static size_t count(const char *text, size_t n, char c)
{
        size_t times = 0;

        for (size_t i = 0; i < n; i++)
                times += text[i] == c;
        return times;
}

/* Kinds of text that are no domain names but that people write where one is wanted. */
static int check_kind(const char *text, size_t n, struct rv_fault *fault)
{
        size_t n_colons = count(text, n, ':');
        char quote[RV_FAULT_QUOTE_SIZE];

        if (n_colons && memmem(text, n, "://", 3))
                return FAIL(fault, UNSUPPORTED, "a URL is not taken: write its host name alone, without scheme and path");
        if (has_any(text, n, "@"))
                return FAIL(fault, UNSUPPORTED, "\"user@\" is not taken: write the host name alone");
        if (n_colons > 1 || text[0] == '[')
                return FAIL(fault, UNSUPPORTED, "IP addresses are not taken: name a domain");
        if (has_any(text, n, "/?#\\"))
                return FAIL(fault, UNSUPPORTED, "a path is not taken: write the host name alone");
        if (n_colons)
                return FAIL(fault, UNSUPPORTED, "a port is not taken: write the host name alone");
        if (has_any(text, n, "*"))
                return FAIL(fault, UNSUPPORTED, "wildcards are not taken: a name includes its subdomains, so write example.com for *.example.com");
        for (size_t i = 0; i < n; i++) {
                uint8_t c = (uint8_t)text[i];

                if (c >= 0x80)
                        return FAIL(fault, UNSUPPORTED, "a name in another script is written in its ASCII form, with labels that begin with xn--");
                if (c <= 0x20 || c == 0x7f)
                        return FAIL(fault, PATTERN, "byte %zu of %s is a space or a control character, which no name holds", i,
                                    rv_fault_quote(text, n, quote));
        }
        return 0;
}

static int check_label(const char *label, size_t n, bool is_last, struct rv_fault *fault)
{
        char quote[RV_FAULT_QUOTE_SIZE];

        if (n == 0)
                return FAIL(fault, PATTERN, "a label is empty: labels are joined by single dots");
        if (n > LABEL_MAX)
                return FAIL(fault, LENGTH, "the label %s has %zu characters; at most %d are allowed",
                            rv_fault_quote(label, n, quote), n, LABEL_MAX);
        for (size_t i = 0; i < n; i++)
                if (!is_digit(label[i]) && !((label[i] | 0x20) >= 'a' && (label[i] | 0x20) <= 'z') && label[i] != '-' &&
                    (label[i] != '_' || is_last))
                        return FAIL(fault, PATTERN, "the label %s may hold letters, digits and hyphens only",
                                    rv_fault_quote(label, n, quote));
        if (label[0] == '-' || label[n - 1] == '-')
                return FAIL(fault, PATTERN, "the label %s begins or ends with a hyphen", rv_fault_quote(label, n, quote));
        if (n == 4 && strncasecmp(label, "xn--", 4) == 0)
                return FAIL(fault, PATTERN, "the label \"xn--\" stands for no name");
        return 0;
}

static int check_labels(const char *text, size_t n, size_t n_labels_min, struct rv_fault *fault)
{
        size_t start = 0, n_labels = 0, end;

        for (;; start = end + 1) {
                const char *dot = memchr(text + start, '.', n - start);

                end = dot ? (size_t)(dot - text) : n;
                if (!dot && is_number(text + start, end - start))
                        return FAIL(fault, UNSUPPORTED, "IP addresses are not taken, in any spelling, nor names that end in a number: name a domain");
                if (check_label(text + start, end - start, !dot, fault))
                        return RV_DOMAIN_E_INVALID;
                n_labels++;
                if (!dot)
                        break;
        }
        if (n_labels < n_labels_min)
                return FAIL(fault, UNSUPPORTED, "a single label is not taken: write the whole name, such as api.example.com");
        return 0;
}

static int parse(const char *text, size_t n, size_t n_labels_min, char ret[RV_DOMAIN_SIZE], struct rv_fault *fault)
{
        if (n > 0 && check_kind(text, n, fault))
                return RV_DOMAIN_E_INVALID;
        if (n > 0 && text[n - 1] == '.')
                n--;
        if (n == 0)
                return FAIL(fault, PATTERN, "a domain name is wanted, such as api.example.com");
        if (n >= RV_DOMAIN_SIZE)
                return FAIL(fault, LENGTH, "the name has %zu characters; at most %d are allowed", n, RV_DOMAIN_SIZE - 1);
        if (check_labels(text, n, n_labels_min, fault))
                return RV_DOMAIN_E_INVALID;
        for (size_t i = 0; i < n; i++)
                ret[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i];
        ret[n] = 0;
        return 0;
}

int rv_domain_parse(const char *text, size_t n, char ret[RV_DOMAIN_SIZE], struct rv_fault *fault)
{
        return parse(text, n, 2, ret, fault);
}

int rv_domain_parse_host(const char *text, size_t n, char ret[RV_DOMAIN_SIZE], struct rv_fault *fault)
{
        return parse(text, n, 1, ret, fault);
}

bool rv_domain_ends_in_number(const char *text, size_t n)
{
        const char *dot;

        if (n > 0 && text[n - 1] == '.')
                n--;
        dot = n ? memrchr(text, '.', n) : NULL;
        return dot ? is_number(dot + 1, (size_t)(text + n - dot - 1)) : is_number(text, n);
}

bool rv_domain_is_within(const char *name, const char *suffix)
{
        size_t n_name = strlen(name), n_suffix = strlen(suffix);

        if (n_suffix == 0 || n_suffix > n_name || strcmp(name + n_name - n_suffix, suffix) != 0)
                return false;
        return n_suffix == n_name || name[n_name - n_suffix - 1] == '.';
}
