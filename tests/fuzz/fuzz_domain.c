/* Domain names: what is accepted is canonical, stays as it is, and is no address in any reading of libc's. */
#include "fuzz.h"

#include "request/domain.h"

#include <arpa/inet.h>
#include <ctype.h>

static void check_labels(const char *name)
{
        size_t n_labels = 0, n = 0;

        FUZZ_CHECK(strlen(name) < RV_DOMAIN_SIZE && strlen(name) >= 3);
        for (const char *c = name;; c++) {
                if (*c == '.' || *c == 0) {
                        FUZZ_CHECK(n >= 1 && n <= 63, "%s", name);
                        FUZZ_CHECK(c[-1] != '-' && c[-(ptrdiff_t)n] != '-', "%s", name);
                        n_labels++;
                        n = 0;
                        if (!*c)
                                break;
                        continue;
                }
                FUZZ_CHECK((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '-' || *c == '_', "%s", name);
                n++;
        }
        FUZZ_CHECK(n_labels >= 2, "%s", name);
}

static void check_no_address(const char *name)
{
        const char *last = strrchr(name, '.') + 1;
        struct in6_addr six;
        struct in_addr four;

        FUZZ_CHECK(inet_aton(name, &four) == 0, "%s", name);
        FUZZ_CHECK(inet_pton(AF_INET, name, &four) == 0 && inet_pton(AF_INET6, name, &six) == 0, "%s", name);
        FUZZ_CHECK(last[strspn(last, "0123456789")] != 0, "%s", name);
        FUZZ_CHECK(!strchr(last, '_'), "%s", name);
}

/* The same name as a person may write it: in capitals, with the root's dot. */
static void check_spellings(const char *name)
{
        char text[RV_DOMAIN_SIZE + 1], again[RV_DOMAIN_SIZE];
        size_t n = strlen(name);

        for (size_t i = 0; i < n; i++)
                text[i] = (char)toupper((unsigned char)name[i]);
        text[n] = '.';
        FUZZ_CHECK(rv_domain_parse(text, n + 1, again, NULL) == 0 && strcmp(again, name) == 0, "%s", name);
        FUZZ_CHECK(rv_domain_parse(name, n, again, NULL) == 0 && strcmp(again, name) == 0, "%s", name);
}

static void check_within(const char *name)
{
        const char *below = strchr(name, '.') + 1;
        char longer[RV_DOMAIN_SIZE + 8];

        FUZZ_CHECK(rv_domain_is_within(name, name));
        FUZZ_CHECK(rv_domain_is_within(name, below) && !rv_domain_is_within(below, name), "%s", name);
        snprintf(longer, sizeof(longer), "x.%s", name);
        FUZZ_CHECK(rv_domain_is_within(longer, name) && !rv_domain_is_within(name, longer), "%s", name);
        snprintf(longer, sizeof(longer), "x%s", name);
        FUZZ_CHECK(!rv_domain_is_within(longer, name), "%s", name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char untouched[RV_DOMAIN_SIZE] = "untouched";
        char name[RV_DOMAIN_SIZE];
        struct rv_fault fault = { .code = _RV_FAULT_MAX };
        int r;

        memcpy(name, untouched, sizeof(name));
        r = rv_domain_parse((const char *)data, size, name, &fault);
        FUZZ_CHECK(r == rv_domain_parse((const char *)data, size, (char[RV_DOMAIN_SIZE]){ 0 }, NULL));
        if (r) {
                FUZZ_CHECK(r == RV_DOMAIN_E_INVALID && memcmp(name, untouched, sizeof(name)) == 0);
                FUZZ_CHECK(fault.code == RV_FAULT_UNSUPPORTED || fault.code == RV_FAULT_LENGTH ||
                           fault.code == RV_FAULT_PATTERN);
                FUZZ_CHECK(fuzz_is_line(fault.message), "%s", fault.message);
                return 0;
        }
        check_labels(name);
        check_no_address(name);
        check_spellings(name);
        check_within(name);
        return 0;
}
