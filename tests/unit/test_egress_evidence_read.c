/* The gate's report, read strictly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "egress/evidence_read.h"

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#define C "{\"name\":\"a.example.com\",\"address\":\"192.0.2.1\",\"port\":443,\"protocol\":\"tls\",\"connections\":1,\"bytes_out\":2,\"bytes_in\":3}"
#define D "{\"name\":\"\\\\009.example.com\",\"address\":\"\",\"port\":0,\"protocol\":\"dns\",\"rule\":\"name\",\"count\":1}"
#define ALL(contacts, denials, more) "{\"contacts\":[" contacts "],\"denials\":[" denials "],\"more_contacts\":" more ",\"more_denials\":7}"

static const struct {
        const char *name, *text;
        int r;
} rows[] = {
        { "nothing", ALL("", "", "0"), 0 },
        { "one of each", ALL(C, D, "1"), 0 },
        { "two", ALL(C "," C, D "," D, "9007199254740991"), 0 },
        { "no text", "", -EINVAL },
        { "no JSON", "{", -EINVAL },
        { "a list", "[]", -EINVAL },
        { "null", "null", -EINVAL },
        { "more behind it", ALL("", "", "0") " 1", -EINVAL },
        { "a member too many", "{\"contacts\":[],\"denials\":[],\"more_contacts\":0,\"more_denials\":7,\"x\":1}", -EINVAL },
        { "a member too few", "{\"contacts\":[],\"denials\":[],\"more_contacts\":0}", -EINVAL },
        { "twice", "{\"contacts\":[],\"contacts\":[],\"denials\":[],\"more_contacts\":0,\"more_denials\":7}", -EINVAL },
        { "a list that is none", "{\"contacts\":{},\"denials\":[],\"more_contacts\":0,\"more_denials\":7}", -EINVAL },
        { "below 0", ALL("", "", "-1"), -EINVAL },
        { "above 2^53", ALL("", "", "9007199254740992"), -EINVAL },
        { "no integer", ALL("", "", "1.0"), -EINVAL },
        { "a text for a number", ALL("", "", "\"1\""), -EINVAL },
        { "an entry that is none", ALL("1", "", "0"), -EINVAL },
        { "an empty entry", ALL("{}", "", "0"), -EINVAL },
        { "a contact among denials", ALL("", C, "0"), -EINVAL },
        { "a denial among contacts", ALL(D, "", "0"), -EINVAL },
        { "a name with a control character",
          ALL("", "{\"name\":\"a\\n\",\"address\":\"\",\"port\":0,\"protocol\":\"dns\",\"rule\":\"name\",\"count\":1}", "0"), -EINVAL },
        { "a name that is not ASCII",
          ALL("", "{\"name\":\"\xc3\xa4\",\"address\":\"\",\"port\":0,\"protocol\":\"dns\",\"rule\":\"name\",\"count\":1}", "0"), -EINVAL },
        { "a name with NUL",
          ALL("", "{\"name\":\"a\\u0000b\",\"address\":\"\",\"port\":0,\"protocol\":\"dns\",\"rule\":\"name\",\"count\":1}", "0"), -EINVAL },
        { "a port that is none",
          ALL("", "{\"name\":\"a\",\"address\":\"\",\"port\":65536,\"protocol\":\"dns\",\"rule\":\"name\",\"count\":1}", "0"), -EINVAL },
        { "a count that is none",
          ALL("", "{\"name\":\"a\",\"address\":\"\",\"port\":1,\"protocol\":\"dns\",\"rule\":\"name\",\"count\":null}", "0"), -EINVAL },
        { "another member",
          ALL("", "{\"name\":\"a\",\"address\":\"\",\"port\":1,\"protocol\":\"dns\",\"rules\":\"name\",\"count\":1}", "0"), -EINVAL },
        { "too deep", ALL("[[[[]]]]", "", "0"), -EINVAL },
};

static void table(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_network_evidence e = { .n_more_contacts = 99 };
                struct rv_error err = { 0 };
                int r = rv_network_evidence_read(rows[i].text, strlen(rows[i].text), &e, &err);

                if (r != rows[i].r)
                        fail_msg("%s: %d, not %d: %s", rows[i].name, r, rows[i].r, err.message);
                if (r < 0 && (e.contacts || e.n_more_contacts != 99 || !err.message[0]))
                        fail_msg("%s: the result was touched, or there is no message", rows[i].name);
                if (r == 0 && e.n_more_denials != 7)
                        fail_msg("%s: more_denials", rows[i].name);
                rv_network_evidence_fini(&e);
                assert_null(e.contacts);
        }
        (void)state;
}

static void read_many(const char *entry, size_t n, int expected)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct rv_network_evidence e = { 0 };
        int r;

        rv_buf_puts(&text, "{\"contacts\":[");
        for (size_t i = 0; i < n; i++)
                rv_buf_printf(&text, "%s%s", i ? "," : "", entry);
        rv_buf_puts(&text, "],\"denials\":[],\"more_contacts\":0,\"more_denials\":0}");
        r = rv_network_evidence_read(text.data, text.size, &e, NULL);
        if (r != expected)
                fail_msg("%zu entries of %zu bytes: %d, not %d", n, strlen(entry), r, expected);
        rv_network_evidence_fini(&e);
}

static void bounds(void **state)
{
        char entry[2048], name[1100];

        (void)state;
        read_many(C, 256, 0);
        read_many(C, 257, -EINVAL);
        for (int n = 1023; n <= 1024; n++) {
                memset(name, 'a', (size_t)n);
                name[n] = 0;
                snprintf(entry, sizeof(entry), "{\"name\":\"%s\",\"address\":\"\",\"port\":443,\"protocol\":\"tls\",\"connections\":1,\"bytes_out\":2,\"bytes_in\":3}", name);
                read_many(entry, 1, n == 1023 ? 0 : -EINVAL);
        }
        memset(entry, ' ', sizeof(entry) - 1);
        entry[sizeof(entry) - 1] = 0;
        read_many(entry, 520, -EINVAL);         /* above 1 MiB */
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(table), cmocka_unit_test(bounds) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
