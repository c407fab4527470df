#include "base/config_value.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

#define PATH_BYTES_MAX 4095
#define DOMAIN_BYTES_MAX 253
#define LABEL_BYTES_MAX 63
#define PIDS_MIN 4u
#define PIDS_MAX 4194304u              /* the kernel's PID_MAX_LIMIT */
#define CPUS_MAX 4096u
#define DURATION_MS_MAX (UINT64_C(366) * 86400 * 1000)
#define SIZE_BYTES_MAX (UINT64_C(1) << 60)
#define SEGMENT_BYTES_MIN (UINT64_C(1) << 20)
#define UID_FIRST_MIN 1000u
#define UID_NOBODY 65534u              /* and 65535, which is "no user" in 16 bits */

const char rv_config_no_memory[] = "more memory";

static bool has_control(const char *s)
{
        for (; *s; s++)
                if ((unsigned char)*s < 0x20 || *s == 0x7f)
                        return true;
        return false;
}

/* Digits only, at most @max; *ret_end is what follows them. */
static bool read_number(const char *s, uint64_t max, uint64_t *ret, const char **ret_end)
{
        uint64_t v = 0;
        size_t n = strspn(s, DIGITS);

        if (!n)
                return false;
        for (size_t i = 0; i < n; i++) {
                uint64_t d = (uint64_t)(s[i] - '0');

                if (v > (max - d) / 10)
                        return false;
                v = v * 10 + d;
        }
        *ret = v;
        *ret_end = s + n;
        return true;
}

const char *rv_config_check_name(const char *s)
{
        size_t n = strspn(s, LOWER UPPER DIGITS "._-");

        if (!n || s[n] || n > 64 || strchr("._-", s[0]))
                return "a name of 1 to 64 letters, digits and `._-` that begins with a letter or digit";
        return NULL;
}

const char *rv_config_check_path(const char *s)
{
        static const char why[] = "an absolute path of at most 4095 bytes without `.` and `..` parts";

        if (s[0] != '/' || strlen(s) > PATH_BYTES_MAX || has_control(s))
                return why;
        while (*s) {
                size_t n;

                s += strspn(s, "/");
                n = strcspn(s, "/");
                if ((n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
                        return why;
                s += n;
        }
        return NULL;
}

const char *rv_config_check_expose(const char *s)
{
        static const char *const own[] = { "/proc", "/sys", "/dev", "/tmp", "/box" };
        const char *why = rv_config_check_path(s);

        if (why)
                return why;
        s += strspn(s, "/") - 1;   /* `//x` is `/x` */
        if (!s[1])
                return "a path below `/`, which would show the whole host";
        for (size_t i = 0; i < RV_N_ELEMENTS(own); i++) {
                size_t n = strlen(own[i]);

                if (strncmp(s, own[i], n) == 0 && (!s[n] || s[n] == '/'))
                        return "a path outside `/proc /sys /dev /tmp /box`, which a run has of its own";
        }
        return NULL;
}

const char *rv_config_check_text(const char *s)
{
        return has_control(s) ? "a text without control characters" : NULL;
}

static const char *one_of(const char *s, const char *const *allowed, size_t n, const char *why)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(s, allowed[i]) == 0)
                        return NULL;
        return why;
}

const char *rv_config_check_network(const char *s)
{
        static const char *const modes[] = { "none", "registries", "domains", "any" };

        return one_of(s, modes, RV_N_ELEMENTS(modes), "one of `none registries domains any`");
}

const char *rv_config_check_digest(const char *s)
{
        static const char prefix[] = RV_CONFIG_DIGEST_PREFIX;
        size_t n = sizeof(prefix) - 1;

        if (strncmp(s, prefix, n) != 0 || strlen(s + n) != 64 || strspn(s + n, "0123456789abcdef") != 64)
                return "`sha256:` and 64 hex digits in lower case";
        return NULL;
}

const char *rv_config_check_language(const char *s)
{
        static const char *const languages[] = { "python", "javascript" };

        return one_of(s, languages, RV_N_ELEMENTS(languages), "`python` or `javascript`");
}

/* One name of @n bytes; `_` is not a host name's but is met in private zones. */
static bool is_domain(const char *s, size_t n)
{
        size_t n_labels = 0, label;
        bool is_numeric = true;

        if (n && s[n - 1] == '.')
                n--;
        if (!n || n > DOMAIN_BYTES_MAX)
                return false;
        for (size_t i = 0; i < n; i += label + 1) {
                for (label = 0; i + label < n && s[i + label] != '.'; label++)
                        if (!strchr(LOWER UPPER DIGITS "-_", s[i + label]))
                                return false;
                if (!label || label > LABEL_BYTES_MAX || s[i] == '-' || s[i + label - 1] == '-')
                        return false;
                is_numeric = strspn(s + i, DIGITS) >= label;
                n_labels++;
        }
        return n_labels >= 2 && !is_numeric && s[n - 1] != '.';
}

const char *rv_config_check_domain(const char *s)
{
        return is_domain(s, strlen(s)) ? NULL : "a domain name of two labels or more, in ASCII (`xn--…`)";
}

static int address_bits(const char *s)
{
        unsigned char address[16];

        if (inet_pton(AF_INET, s, address) == 1)
                return 32;
        return inet_pton(AF_INET6, s, address) == 1 ? 128 : 0;
}

const char *rv_config_check_address(const char *s)
{
        return address_bits(s) ? NULL : "an IPv4 or IPv6 address";
}

const char *rv_config_check_denied(const char *s)
{
        static const char why[] = "a domain name, an address, or a network as ADDRESS/BITS";
        const char *slash = strchr(s, '/'), *end;
        char address[INET6_ADDRSTRLEN];
        uint64_t bits;

        if (!slash)
                return address_bits(s) || is_domain(s, strlen(s)) ? NULL : why;
        if ((size_t)(slash - s) >= sizeof(address))
                return why;
        memcpy(address, s, (size_t)(slash - s));
        address[slash - s] = 0;
        if (!address_bits(address) || !read_number(slash + 1, (uint64_t)address_bits(address), &bits, &end) || *end)
                return why;
        return NULL;
}

/* `host`, `host:port`, `[v6]:port`: all of @n bytes. */
static bool is_authority(const char *s, size_t n)
{
        char host[DOMAIN_BYTES_MAX + 3];
        const char *colon, *end;
        size_t n_host = n;
        uint64_t port;

        colon = n && s[0] == '[' ? memchr(s, ']', n) : s;
        colon = colon ? memchr(colon, ':', n - (size_t)(colon - s)) : NULL;
        if (s[0] == '[' && colon && colon[-1] != ']')
                return false;
        if (colon) {
                n_host = (size_t)(colon - s);
                if (!read_number(colon + 1, 65535, &port, &end) || end != s + n || port == 0)
                        return false;
        }
        if (!n_host || n_host >= sizeof(host))
                return false;
        memcpy(host, s, n_host);
        host[n_host] = 0;
        if (host[0] == '[') {
                if (host[n_host - 1] != ']')
                        return false;
                host[n_host - 1] = 0;
                return address_bits(host + 1) == 128;
        }
        return address_bits(host) == 32 || is_domain(host, n_host) || strcmp(host, "localhost") == 0;
}

const char *rv_config_check_url(const char *s)
{
        static const char why[] = "an address that begins with http:// or https:// and a host";
        const char *at;
        size_t n;

        if (strncasecmp(s, "http://", 7) == 0)
                s += 7;
        else if (strncasecmp(s, "https://", 8) == 0)
                s += 8;
        else
                return why;
        for (const char *p = s; *p; p++)
                if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f || strchr("\"<>\\^`{|}", *p))
                        return why;
        n = strcspn(s, "/?#");
        at = memrchr(s, '@', n);
        if (at) {
                n -= (size_t)(at + 1 - s);
                s = at + 1;
        }
        return is_authority(s, n) ? NULL : why;
}

const char *rv_config_check_sink(const char *s)
{
        static const char why[] = "`file:` or `command:` and an absolute path, or an address that begins with https:// and a host";
        char path[PATH_BYTES_MAX + 1];
        size_t n;

        if (strncmp(s, "https://", 8) == 0)
                return rv_config_check_url(s) ? why : NULL;
        if (strncmp(s, "file:", 5) == 0)
                return rv_config_check_path(s + 5) || s[strlen(s) - 1] == '/' ? why : NULL;
        if (strncmp(s, "command:", 8) != 0 || has_control(s))
                return why;
        n = strcspn(s + 8, " ");
        if (n > PATH_BYTES_MAX)
                return why;
        memcpy(path, s + 8, n);
        path[n] = 0;
        return rv_config_check_path(path) ? why : NULL;
}

const char *rv_config_check_behind(const char *s)
{
        static const char *const words[] = { "wait", "deny" };

        return one_of(s, words, RV_N_ELEMENTS(words), "`wait` or `deny`");
}

const char *rv_config_check_resolver(const char *s)
{
        static const char *const words[] = { "auto", "uv", "pip" };

        return one_of(s, words, RV_N_ELEMENTS(words), "`auto`, `uv` or `pip`");
}

const char *rv_config_check_host(const char *s)
{
        if (strstr(s, "://"))
                return rv_config_check_url(s);
        return is_authority(s, strlen(s)) ? NULL : "a host as NAME, NAME:PORT or a whole address";
}

struct unit {
        const char *name;
        uint64_t factor;
};

static bool read_with_unit(const char *s, const struct unit *units, size_t n_units, uint64_t max, uint64_t *ret)
{
        const char *end;
        uint64_t v;

        if (!read_number(s, max, &v, &end))
                return false;
        for (size_t i = 0; i < n_units; i++) {
                if (strcmp(end, units[i].name) != 0)
                        continue;
                if (v == 0 || v > max / units[i].factor)
                        return false;
                *ret = v * units[i].factor;
                return true;
        }
        return false;
}

const char *rv_config_read_duration(const char *s, uint64_t *ret_ms)
{
        static const struct unit units[] = {
                { "ms", 1 }, { "s", 1000 }, { "m", 60 * 1000 }, { "h", 3600 * 1000 }, { "d", 86400 * 1000 },
        };

        if (!read_with_unit(s, units, RV_N_ELEMENTS(units), DURATION_MS_MAX, ret_ms))
                return "a duration such as `250ms`, `10s`, `2m`, `24h` or `7d`, from 1ms to 366d";
        return NULL;
}

const char *rv_config_read_size(const char *s, uint64_t *ret_bytes)
{
        static const struct unit units[] = {
                { "KiB", UINT64_C(1) << 10 }, { "MiB", UINT64_C(1) << 20 },
                { "GiB", UINT64_C(1) << 30 }, { "TiB", UINT64_C(1) << 40 },
        };

        if (!read_with_unit(s, units, RV_N_ELEMENTS(units), SIZE_BYTES_MAX, ret_bytes))
                return "a size such as `512MiB`, `10GiB` or `1TiB`";
        return NULL;
}

const char *rv_config_read_segment(const char *text, uint64_t *ret_bytes)
{
        uint64_t bytes;
        const char *why = rv_config_read_size(text, &bytes);

        if (why || bytes < SEGMENT_BYTES_MIN)
                return "a size of at least `1MiB`, such as `64MiB`";
        *ret_bytes = bytes;
        return NULL;
}

const char *rv_config_read_cpus(const char *s, uint32_t *ret_milli)
{
        static const char why[] = "a number of CPUs from 0 to 4096 with at most three decimals, such as `2` or `0.5`";
        uint64_t whole, thousandths = 0;
        const char *end;

        if (!read_number(s, CPUS_MAX, &whole, &end))
                return why;
        if (*end == '.') {
                size_t n = strspn(++end, DIGITS);

                if (!n || n > 3)
                        return why;
                for (size_t i = 0; i < 3; i++)
                        thousandths = thousandths * 10 + (i < n ? (uint64_t)(end[i] - '0') : 0);
                end += n;
        }
        if (*end || whole * 1000 + thousandths > CPUS_MAX * 1000)
                return why;
        /* The kernel's shortest quota is 1 ms in a period of 100 ms. */
        if (whole == 0 && thousandths > 0 && thousandths < 10)
                return "0 for no quota, or at least 0.01";
        *ret_milli = (uint32_t)(whole * 1000 + thousandths);
        return NULL;
}

const char *rv_config_read_pids(const char *s, uint32_t *ret_pids)
{
        const char *end;
        uint64_t v;

        if (!read_number(s, PIDS_MAX, &v, &end) || *end || v < PIDS_MIN)
                return "a whole number from 4 to 4194304";
        *ret_pids = (uint32_t)v;
        return NULL;
}

static const char *read_count(const char *s, uint64_t most, const char *why, uint64_t *ret)
{
        const char *end;
        uint64_t v;

        if (!read_number(s, most, &v, &end) || *end || v < 1)
                return why;
        *ret = v;
        return NULL;
}

const char *rv_config_read_connections(const char *s, uint64_t *ret)
{
        return read_count(s, 16384, "a whole number from 1 to 16384", ret);
}

const char *rv_config_read_rate(const char *s, uint64_t *ret)
{
        return read_count(s, 1000000, "a whole number from 1 to 1000000", ret);
}

const char *rv_config_read_names(const char *s, uint64_t *ret)
{
        return read_count(s, 4096, "a whole number from 1 to 4096", ret);
}

const char *rv_config_read_idle(const char *s, uint64_t *ret_ms)
{
        const char *why;
        uint64_t ms;

        why = rv_config_read_duration(s, &ms);
        if (why || ms < 100 || ms > 86400000)
                return "a duration from `100ms` to `24h`";
        *ret_ms = ms;
        return NULL;
}

const char *rv_config_read_uid_range(const char *s, uint32_t *ret_first, uint32_t *ret_last)
{
        uint64_t first, last;
        const char *end;

        if (!read_number(s, UINT32_MAX - 1, &first, &end) || *end != '-' ||
            !read_number(end + 1, UINT32_MAX - 1, &last, &end) || *end || first > last)
                return "two user ids as `FIRST-LAST`";
        if (first < UID_FIRST_MIN)
                return "user ids of 1000 or more: those below belong to the system";
        if (first <= UID_NOBODY + 1 && last >= UID_NOBODY)
                return "a range without 65534 and 65535, which stand for nobody";
        *ret_first = (uint32_t)first;
        *ret_last = (uint32_t)last;
        return NULL;
}
