/* Requests as JSON text: what is taken, and which faults are listed for what is not, in order. */
#include "base/json.h"
#include "request/request.h"
#include "test_request_table.h"

#include <ctype.h>

/*
 * In a text <U*N> stands for N times U. Faults are written "pointer code", joined by ", "; a text that is taken
 * has "ok". H begins a request that has what every one must have.
 */
struct request_row {
        const char *name, *json, *expected;
};

#define H "{\"language\":\"python\",\"source\":\"1\""
#define J "{\"language\":\"javascript\",\"source\":\"1\""
#define NET(members) H ",\"network\":{" members "}}"
#define DOMAINS(list) NET("\"mode\":\"domains\",\"domains\":[" list "]")

static const struct request_row rows[] = {
        /* the document */
        { "nothing", "", " syntax" },
        { "white space only", " \r\n\t ", " syntax" },
        { "an opening brace", "{", " syntax" },
        { "a closing brace", "}", " syntax" },
        { "an empty list", "[]", " type" },
        { "a list of a request", "[" H "}]", " type" },
        { "a string", "\"x\"", " type" },
        { "a number", "3", " type" },
        { "null", "null", " type" },
        { "true", "true", " type" },
        { "a word", "hello", " syntax" },
        { "NaN", H ",\"timeout_s\":NaN}", " syntax" },
        { "Infinity", H ",\"timeout_s\":Infinity}", " syntax" },
        { "hexadecimal", H ",\"timeout_s\":0x1e}", " syntax" },
        { "single quotes", "{'language':'python'}", " syntax" },
        { "a bare name", "{language:\"python\"}", " syntax" },
        { "a trailing comma in an object", H ",}", " syntax" },
        { "a trailing comma in a list", H ",\"packages\":[\"six>=1\",]}", " syntax" },
        { "a leading comma", "{,\"language\":\"python\"}", " syntax" },
        { "a missing comma", "{\"language\":\"python\" \"source\":\"1\"}", " syntax" },
        { "a missing colon", "{\"language\" \"python\"}", " syntax" },
        { "a semicolon for a colon", "{\"language\";\"python\"}", " syntax" },
        { "a missing value", "{\"language\":}", " syntax" },
        { "an unclosed string", "{\"language\":\"pyth", " syntax" },
        { "an unclosed escape", "{\"language\":\"\\", " syntax" },
        { "an unclosed list", H ",\"packages\":[", " syntax" },
        { "a list closed as an object", H ",\"packages\":[}}", " syntax" },
        { "an object closed as a list", H ",\"env\":{]}", " syntax" },
        { "a comment", H "/* x */}", " syntax" },
        { "a trailing word", H "} x", " syntax" },
        { "two documents", H "}" H "}", " syntax" },
        { "a trailing brace", H "}}", " syntax" },
        { "a trailing comma behind", H "},", " syntax" },
        { "white space around", " \n" H "}\r\n\t ", "ok" },
        { "a form feed", "\f" H "}", " syntax" },
        { "a no-break space", "\302\240" H "}", " syntax" },
        { "a byte order mark", "\357\273\277" H "}", " syntax" },
        { "a raw newline in a string", "{\"language\":\"python\",\"source\":\"a\nb\"}", " syntax" },
        { "a raw tab in a string", "{\"language\":\"python\",\"source\":\"a\tb\"}", " syntax" },
        { "a raw DEL in a string", "{\"language\":\"python\",\"source\":\"a\177b\"}", "ok" },
        { "an unknown escape", "{\"language\":\"python\",\"source\":\"\\x41\"}", " syntax" },
        { "an escaped newline", "{\"language\":\"python\",\"source\":\"\\\n\"}", " syntax" },
        { "a short \\u", "{\"language\":\"python\",\"source\":\"\\u12\"}", " syntax" },
        { "a \\u that is not hexadecimal", "{\"language\":\"python\",\"source\":\"\\u12g4\"}", " syntax" },
        { "every escape", "{\"language\":\"python\",\"source\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\"}", "ok" },
        { "names in escapes", "{\"l\\u0061nguage\":\"pyth\\u006fn\",\"source\":\"1\"}", "ok" },
        { "a number with a leading zero", H ",\"timeout_s\":030}", " syntax" },
        { "a number with a plus", H ",\"timeout_s\":+30}", " syntax" },
        { "a lone minus", H ",\"timeout_s\":-}", " syntax" },
        { "a number that ends in a point", H ",\"timeout_s\":30.}", " syntax" },
        { "a number that begins with a point", H ",\"timeout_s\":.5}", " syntax" },
        { "an exponent without digits", H ",\"timeout_s\":3e}", " syntax" },
        { "an exponent with a lone sign", H ",\"timeout_s\":3e+}", " syntax" },
        { "a misspelt literal", H ",\"timeout_s\":nul}", " syntax" },
        { "a capital literal", H ",\"timeout_s\":True}", " syntax" },

        /* encoding */
        { "a byte that is never UTF-8", "{\"language\":\"python\",\"source\":\"\377\"}", " encoding" },
        { "Latin-1", "{\"language\":\"python\",\"source\":\"\351\"}", " encoding" },
        { "an overlong form", "{\"language\":\"python\",\"source\":\"\300\257\"}", " encoding" },
        { "a surrogate as UTF-8", "{\"language\":\"python\",\"source\":\"\355\240\200\"}", " encoding" },
        { "past U+10FFFF", "{\"language\":\"python\",\"source\":\"\364\220\200\200\"}", " encoding" },
        { "a cut character", "{\"language\":\"python\",\"source\":\"\342\202\"}", " encoding" },
        { "ill-formed outside strings", H "}\200", " encoding" },
        { "ill-formed and broken", "{\377", " encoding" },
        { "a lone high surrogate", "{\"language\":\"python\",\"source\":\"\\ud800\"}", " encoding" },
        { "a lone low surrogate", "{\"language\":\"python\",\"source\":\"\\udc00\"}", " encoding" },
        { "two high surrogates", "{\"language\":\"python\",\"source\":\"\\ud800\\ud800\"}", " encoding" },
        { "surrogates the wrong way round", "{\"language\":\"python\",\"source\":\"\\udc00\\ud800\"}", " encoding" },
        { "a high surrogate and a letter", "{\"language\":\"python\",\"source\":\"\\ud800\\u0041\"}", " encoding" },
        { "a high surrogate at the end", "{\"language\":\"python\",\"source\":\"\\ud83d", " encoding" },
        { "a lone surrogate in a name", H ",\"env\":{\"\\udead\":\"1\"}}", " encoding" },
        { "a pair of surrogates", "{\"language\":\"python\",\"source\":\"\\ud83d\\ude00\"}", "ok" },
        { "characters of four bytes", "{\"language\":\"python\",\"source\":\"\360\237\230\200\"}", "ok" },
        { "a noncharacter", "{\"language\":\"python\",\"source\":\"\\uffff\"}", "ok" },

        /* depth, size, number of values */
        { "nested 33 deep", H ",\"x\":<[*32><]*32>}", " length" },
        { "nested 32 deep", H ",\"x\":<[*31><]*31>}", "/x unknown" },
        { "a million brackets", "<[*1000000>", " length" },
        { "a million objects", "<{\"a\":*1000000>", " length" },
        { "a member's value 33 deep", H ",\"packages\":<[*32><]*32>}", " length" },
        { "too many values", H ",\"packages\":[1<,1*70000>]}", " length" },
        { "a document that is too large", H ",\"stdin\":\"<x*16777216>\"}", " length" },

        /* duplicates */
        { "language twice", "{\"language\":\"python\",\"language\":\"javascript\",\"source\":\"1\"}", "/language duplicate" },
        { "the same value twice", "{\"language\":\"python\",\"language\":\"python\",\"source\":\"1\"}", "/language duplicate" },
        { "three times", H ",\"source\":\"2\",\"source\":\"3\"}", "/source duplicate" },
        { "one of them escaped", H ",\"\\u0073ource\":\"2\"}", "/source duplicate" },
        { "in env", H ",\"env\":{\"A\":\"1\",\"A\":\"2\"}}", "/env/A duplicate" },
        { "in the network", NET("\"mode\":\"none\",\"mode\":\"any\""), "/network/mode duplicate" },
        { "below a list", H ",\"packages\":[{\"a\":1,\"a\":2}]}", "/packages/0/a duplicate, /packages/0 type" },
        { "two levels down", H ",\"x\":[0,{\"y\":{\"z\":1,\"z\":2}}]}", "/x unknown, /x/1/y/z duplicate" },
        { "the same name in two objects", H ",\"env\":{\"A\":\"1\"},\"network\":{\"mode\":\"none\"}}", "ok" },
        { "names of one beginning", H ",\"env\":{\"A\":\"1\",\"AA\":\"1\",\"AAA\":\"1\"}}", "ok" },
        { "with other faults, in the fields' order",
          "{\"timeout_s\":0,\"memory_mib\":1,\"memory_mib\":2,\"source\":\"1\",\"source\":\"\",\"language\":\"ruby\"}",
          "/language unsupported, /source duplicate, /source length, /timeout_s range, /memory_mib duplicate, "
          "/memory_mib range" },
        { "empty names", H ",\"\":1,\"\":2}", "/ duplicate, / unknown" },
        { "escaped in the pointer", H ",\"a/b~c\":1,\"a/b~c\":2}", "/a~1b~0c duplicate, /a~1b~0c unknown" },
        { "a name with NUL", H ",\"env\":{\"A\\u0000\":\"1\"}}", "/env pattern" },
        { "a name with NUL at the top", H ",\"a\\u0000b\":\"1\"}", " pattern" },

        /* unknown members */
        { "a misspelling", H ",\"tiemout_s\":5}", "/tiemout_s unknown" },
        { "sorted, behind the known", H ",\"zz\":1,\"aa\":1,\"timeout_s\":0}", "/timeout_s range, /aa unknown, /zz unknown" },
        { "another case", H ",\"Timeout_s\":5}", "/Timeout_s unknown" },
        { "a space behind", H ",\"stdin \":\"\"}", "/stdin  unknown" },
        { "an empty name", H ",\"\":1}", "/ unknown" },
        { "a beginning of a known one", H ",\"time\":1}", "/time unknown" },
        { "a slash", H ",\"a/b\":1}", "/a~1b unknown" },
        { "a tilde", H ",\"~\":1}", "/~0 unknown" },
        { "what looks escaped", H ",\"~1\":1}", "/~01 unknown" },
        { "another script", H ",\"\303\251\":1}", "/\303\251 unknown" },
        { "a very long name", H ",\"<x*5000>\":1}", " unknown" },

        /* language, source */
        { "the least", H "}", "ok" },
        { "the least, in JavaScript", J "}", "ok" },
        { "nothing given", "{}", "/language missing, /source missing" },
        { "no language", "{\"source\":\"1\"}", "/language missing" },
        { "no source", "{\"language\":\"python\"}", "/source missing" },
        { "ruby", "{\"language\":\"ruby\",\"source\":\"1\"}", "/language unsupported" },
        { "Python", "{\"language\":\"Python\",\"source\":\"1\"}", "/language unsupported" },
        { "a version behind", "{\"language\":\"python3\",\"source\":\"1\"}", "/language unsupported" },
        { "an empty language", "{\"language\":\"\",\"source\":\"1\"}", "/language unsupported" },
        { "a language with NUL", "{\"language\":\"python\\u0000\",\"source\":\"1\"}", "/language unsupported" },
        { "a null language", "{\"language\":null,\"source\":\"1\"}", "/language type" },
        { "a number for a language", "{\"language\":3,\"source\":\"1\"}", "/language type" },
        { "a list of languages", "{\"language\":[\"python\"],\"source\":\"1\"}", "/language type" },
        { "an empty source", "{\"language\":\"python\",\"source\":\"\"}", "/source length" },
        { "a source of 100,000", "{\"language\":\"python\",\"source\":\"<x*100000>\"}", "ok" },
        { "a source of 100,001", "{\"language\":\"python\",\"source\":\"<x*100001>\"}", "/source length" },
        { "100,000 characters of four bytes", "{\"language\":\"python\",\"source\":\"<\360\237\230\200*100000>\"}", "ok" },
        { "100,001 characters of two bytes", "{\"language\":\"python\",\"source\":\"<\303\251*100001>\"}", "/source length" },
        { "100,000 pairs of surrogates", "{\"language\":\"python\",\"source\":\"<\\ud83d\\ude00*100000>\"}", "ok" },
        { "NUL in the source", "{\"language\":\"python\",\"source\":\"a\\u0000b\"}", "/source pattern" },
        { "a null source", "{\"language\":\"python\",\"source\":null}", "/source type" },
        { "an object as source", "{\"language\":\"python\",\"source\":{}}", "/source type" },
        { "all faults at once", "{\"language\":\"ruby\",\"source\":\"\",\"timeout_s\":0,\"memory_mib\":1}",
          "/language unsupported, /source length, /timeout_s range, /memory_mib range" },

        /* integers */
        { "timeout 1", H ",\"timeout_s\":1}", "ok" },
        { "timeout 300", H ",\"timeout_s\":300}", "ok" },
        { "timeout 0", H ",\"timeout_s\":0}", "/timeout_s range" },
        { "timeout -0", H ",\"timeout_s\":-0}", "/timeout_s range" },
        { "timeout -1", H ",\"timeout_s\":-1}", "/timeout_s range" },
        { "timeout 301", H ",\"timeout_s\":301}", "/timeout_s range" },
        { "timeout 30.0", H ",\"timeout_s\":30.0}", "/timeout_s type" },
        { "timeout 3e1", H ",\"timeout_s\":3e1}", "/timeout_s type" },
        { "timeout 3E+1", H ",\"timeout_s\":3E+1}", "/timeout_s type" },
        { "timeout 1.5", H ",\"timeout_s\":1.5}", "/timeout_s type" },
        { "timeout 1e400", H ",\"timeout_s\":1e400}", "/timeout_s type" },
        { "timeout 1e-400", H ",\"timeout_s\":1e-400}", "/timeout_s type" },
        { "timeout 2^31", H ",\"timeout_s\":2147483648}", "/timeout_s range" },
        { "timeout 2^32 + 30", H ",\"timeout_s\":4294967326}", "/timeout_s range" },
        { "timeout 2^63 - 1", H ",\"timeout_s\":9223372036854775807}", "/timeout_s range" },
        { "timeout 2^63", H ",\"timeout_s\":9223372036854775808}", "/timeout_s range" },
        { "timeout 2^64 + 30", H ",\"timeout_s\":18446744073709551646}", "/timeout_s range" },
        { "twenty nines", H ",\"timeout_s\":99999999999999999999}", "/timeout_s range" },
        { "minus twenty nines", H ",\"timeout_s\":-99999999999999999999}", "/timeout_s range" },
        { "ten thousand digits", H ",\"timeout_s\":<1*10000>}", "/timeout_s range" },
        { "a string", H ",\"timeout_s\":\"5\"}", "/timeout_s type" },
        { "true as a number", H ",\"timeout_s\":true}", "/timeout_s type" },
        { "null as a number", H ",\"timeout_s\":null}", "/timeout_s type" },
        { "a list as a number", H ",\"timeout_s\":[30]}", "/timeout_s type" },
        { "memory 128", H ",\"memory_mib\":128}", "ok" },
        { "memory 2048", H ",\"memory_mib\":2048}", "ok" },
        { "memory 127", H ",\"memory_mib\":127}", "/memory_mib range" },
        { "memory 2049", H ",\"memory_mib\":2049}", "/memory_mib range" },
        { "memory 512.0", H ",\"memory_mib\":512.0}", "/memory_mib type" },
        { "memory in words", H ",\"memory_mib\":\"1 GiB\"}", "/memory_mib type" },

        /* packages */
        { "no packages", H ",\"packages\":[]}", "ok" },
        { "a package", H ",\"packages\":[\"six==1.16.0\"]}", "ok" },
        { "fifty", H ",\"packages\":[\"a>=0\"<,\"b>=0\"*49>]}", "ok" },
        { "fifty-one", H ",\"packages\":[\"a>=0\"<,\"b>=0\"*50>]}", "/packages length" },
        { "fifty-one, one of them bad", H ",\"packages\":[\"six\"<,\"b>=0\"*50>]}", "/packages length, /packages/0 missing" },
        { "not a list", H ",\"packages\":\"six==1\"}", "/packages type" },
        { "an object", H ",\"packages\":{\"six\":\"1\"}}", "/packages type" },
        { "null packages", H ",\"packages\":null}", "/packages type" },
        { "a number among them", H ",\"packages\":[\"six>=1\",7]}", "/packages/1 type" },
        { "null among them", H ",\"packages\":[null]}", "/packages/0 type" },
        { "a list among them", H ",\"packages\":[[\"six>=1\"]]}", "/packages/0 type" },
        { "a bare name", H ",\"packages\":[\"numpy\"]}", "/packages/0 missing" },
        { "two characters", J ",\"packages\":[\"a@\"]}", "/packages/0 length" },
        { "three characters", J ",\"packages\":[\"a@1\"]}", "ok" },
        { "an empty one", H ",\"packages\":[\"\"]}", "/packages/0 length" },
        { "214 characters", H ",\"packages\":[\"<a*211>>=0\"]}", "ok" },
        { "215 characters", H ",\"packages\":[\"<a*212>>=0\"]}", "/packages/0 length" },
        { "each fault at its place", H ",\"packages\":[\"six>=1\",\"x @ https://x.example\",\"b>=1\",\"click\"]}",
          "/packages/1 unsupported, /packages/3 missing" },
        { "a newline", H ",\"packages\":[\"six==1.16.0\\n--pre\"]}", "/packages/0 pattern" },
        { "NUL in a package", H ",\"packages\":[\"six==1\\u0000\"]}", "/packages/0 pattern" },
        { "npm's form in Python", H ",\"packages\":[\"numpy@1.26.4\"]}", "/packages/0 unsupported" },
        { "Python's form in JavaScript", J ",\"packages\":[\"lodash==4.17.21\"]}", "/packages/0 pattern" },
        { "a tag", J ",\"packages\":[\"left-pad@beta\"]}", "/packages/0 unsupported" },
        { "an alias", J ",\"packages\":[\"x@npm:y@1.0.0\"]}", "/packages/0 unsupported" },
        { "a name twice in Python", H ",\"packages\":[\"six>=1\",\"Six<2\"]}", "ok" },
        { "a name twice in JavaScript", J ",\"packages\":[\"x@1\",\"y@1\",\"x@2\"]}", "/packages/2 duplicate" },
        { "the same twice in JavaScript", J ",\"packages\":[\"x@1\",\" x@1 \"]}", "ok" },
        { "packages of no known language", "{\"language\":\"ruby\",\"source\":\"1\",\"packages\":[\"nonsense here\",7,\"x\"]}",
          "/language unsupported, /packages/1 type, /packages/2 length" },

        /* env */
        { "no variables", H ",\"env\":{}}", "ok" },
        { "variables", H ",\"env\":{\"A\":\"1\",\"_b\":\"\",\"PATH\":\"/x\",\"a9_\":\"\303\251\"}}", "ok" },
        { "a list of pairs", H ",\"env\":[[\"A\",\"1\"]]}", "/env type" },
        { "null env", H ",\"env\":null}", "/env type" },
        { "a hyphen", H ",\"env\":{\"A-B\":\"1\"}}", "/env/A-B pattern" },
        { "a digit first", H ",\"env\":{\"9A\":\"1\"}}", "/env/9A pattern" },
        { "no name", H ",\"env\":{\"\":\"1\"}}", "/env/ pattern" },
        { "an equals sign", H ",\"env\":{\"A=B\":\"1\"}}", "/env/A=B pattern" },
        { "a space", H ",\"env\":{\"A B\":\"1\"}}", "/env/A B pattern" },
        { "a slash in a variable's name", H ",\"env\":{\"A/B~\":\"1\"}}", "/env/A~1B~0 pattern" },
        { "a letter of another script", H ",\"env\":{\"\303\204\":\"1\"}}", "/env/\303\204 pattern" },
        { "REEVE_X", H ",\"env\":{\"REEVE_X\":\"1\"}}", "/env/REEVE_X pattern" },
        { "REEVE_", H ",\"env\":{\"REEVE_\":\"1\"}}", "/env/REEVE_ pattern" },
        { "REEVE", H ",\"env\":{\"REEVE\":\"1\",\"reeve_x\":\"1\",\"XREEVE_\":\"1\"}}", "ok" },
        { "a number as value", H ",\"env\":{\"A\":1}}", "/env/A type" },
        { "null as value", H ",\"env\":{\"A\":null}}", "/env/A type" },
        { "NUL in a value", H ",\"env\":{\"A\":\"a\\u0000b\"}}", "/env/A pattern" },
        { "a newline in a value", H ",\"env\":{\"A\":\"a\\nb\"}}", "ok" },
        { "in the order of names", H ",\"env\":{\"C-\":\"1\",\"A-\":\"1\",\"B\":2}}", "/env/A- pattern, /env/B type, /env/C- pattern" },
        { "name and value both bad", H ",\"env\":{\"A-\":1}}", "/env/A- pattern, /env/A- type" },
        { "all of 128 KiB", H ",\"env\":{\"A\":\"<x*131069>\"}}", "ok" },
        { "a byte more", H ",\"env\":{\"A\":\"<x*131070>\"}}", "/env length" },
        { "counted in bytes", H ",\"env\":{\"A\":\"<\303\251*65535>\"}}", "/env length" },

        /* network */
        { "mode none", NET("\"mode\":\"none\""), "ok" },
        { "mode registries", NET("\"mode\":\"registries\""), "ok" },
        { "mode any", NET("\"mode\":\"any\""), "ok" },
        { "mode lan", NET("\"mode\":\"lan\""), "/network/mode unsupported" },
        { "mode NONE", NET("\"mode\":\"NONE\""), "/network/mode unsupported" },
        { "an empty mode", NET("\"mode\":\"\""), "/network/mode unsupported" },
        { "a number as mode", NET("\"mode\":1"), "/network/mode type" },
        { "no mode", NET(""), "/network/mode missing" },
        { "a word for a network", H ",\"network\":\"none\"}", "/network type" },
        { "null network", H ",\"network\":null}", "/network type" },
        { "a list for a network", H ",\"network\":[]}", "/network type" },
        { "false for a network", H ",\"network\":false}", "/network type" },
        { "unknown in the network", NET("\"mode\":\"any\",\"ports\":[443],\"allow\":1"), "/network/allow unknown, /network/ports unknown" },
        { "domains missing", NET("\"mode\":\"domains\""), "/network/domains missing" },
        { "domains empty", DOMAINS(""), "/network/domains length" },
        { "domains null", NET("\"mode\":\"domains\",\"domains\":null"), "/network/domains type" },
        { "domains a string", NET("\"mode\":\"domains\",\"domains\":\"example.com\""), "/network/domains type" },
        { "domains with any", NET("\"mode\":\"any\",\"domains\":[\"example.com\"]"), "/network/domains conflict" },
        { "domains with none", NET("\"mode\":\"none\",\"domains\":[]"), "/network/domains conflict" },
        { "domains with registries", NET("\"mode\":\"registries\",\"domains\":null"), "/network/domains conflict" },
        { "domains without mode", NET("\"domains\":[\"localhost\"]"), "/network/mode missing, /network/domains/0 unsupported" },
        { "a domain", DOMAINS("\"api.example.com\""), "ok" },
        { "a hundred", DOMAINS("\"a.example\"<,\"b.example\"*99>"), "ok" },
        { "a hundred and one", DOMAINS("\"a.example\"<,\"b.example\"*100>"), "/network/domains length" },
        { "each domain's fault at its place", DOMAINS("\"a.example\",\"10.0.0.1\",7,\"exa mple.com\""),
          "/network/domains/1 unsupported, /network/domains/2 type, /network/domains/3 pattern" },
        { "NUL in a domain", DOMAINS("\"a.example\\u0000\""), "/network/domains/0 pattern" },
        { "a domain of 254", DOMAINS("\"<a.*126>aa\""), "/network/domains/0 length" },
        { "a domain of 253", DOMAINS("\"<a.*126>a\""), "ok" },

        /* idempotency key */
        { "a key", H ",\"idempotency_key\":\"order-17/retry 2~\"}", "ok" },
        { "an empty key", H ",\"idempotency_key\":\"\"}", "/idempotency_key length" },
        { "a key of 255", H ",\"idempotency_key\":\"<k*255>\"}", "ok" },
        { "a key of 256", H ",\"idempotency_key\":\"<k*256>\"}", "/idempotency_key length" },
        { "a tab in a key", H ",\"idempotency_key\":\"a\\tb\"}", "/idempotency_key pattern" },
        { "DEL in a key", H ",\"idempotency_key\":\"a\177\"}", "/idempotency_key pattern" },
        { "a key in another script", H ",\"idempotency_key\":\"\303\251\"}", "/idempotency_key pattern" },
        { "NUL in a key", H ",\"idempotency_key\":\"a\\u0000\"}", "/idempotency_key pattern" },
        { "null as key", H ",\"idempotency_key\":null}", "/idempotency_key type" },
        { "a number as key", H ",\"idempotency_key\":17}", "/idempotency_key type" },

        /* stdin */
        { "empty stdin", H ",\"stdin\":\"\"}", "ok" },
        { "NUL in stdin", H ",\"stdin\":\"a\\u0000b\"}", "ok" },
        { "a million characters", H ",\"stdin\":\"<\303\251*1000000>\"}", "ok" },
        { "a character more", H ",\"stdin\":\"<x*1000001>\"}", "/stdin length" },
        { "a number as stdin", H ",\"stdin\":1}", "/stdin type" },
        { "null as stdin", H ",\"stdin\":null}", "/stdin type" },
};

/* Expand <U*N>; a '<' that begins no such thing stands for itself. */
static void expand(const char *text, struct rv_buf *out)
{
        while (*text) {
                const char *star = *text == '<' ? strchr(text, '*') : NULL;
                char *end = NULL;
                unsigned long n = star && isdigit((unsigned char)star[1]) ? strtoul(star + 1, &end, 10) : 0;

                if (!end || *end != '>') {
                        rv_buf_putc(out, *text++);
                        continue;
                }
                for (unsigned long i = 0; i < n; i++)
                        rv_buf_append(out, text + 1, (size_t)(star - text - 1));
                text = end + 1;
        }
        assert_int_equal(rv_buf_error(out), 0);
}

static void describe(int r, const struct rv_problem *problem, char *ret, size_t size)
{
        size_t at = (size_t)snprintf(ret, size, "%s", r == 0 ? "ok" : "");

        for (size_t i = 0; r && i < problem->n_faults && at < size; i++) {
                const struct rv_problem_fault *f = &problem->faults[i];

                assert_true(strlen(f->message) > 0);
                at += (size_t)snprintf(ret + at, size - at, "%s%s %s", i ? ", " : "", f->pointer, rv_fault_code_name(f->code));
        }
}

static void table(void **state)
{
        size_t n_failed = 0;

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_request_freep) struct rv_request *request = NULL;
                _cleanup_(rv_problem_freep) struct rv_problem *problem = NULL;
                _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
                char got[8192], *json;
                int r;

                expand(rows[i].json, &text);
                json = exact_copy(text.size ? text.data : "", text.size);
                r = rv_request_parse(json, text.size, &request, &problem);
                free(json);
                assert_in_range(r, 0, 1);
                assert_int_equal(r == 0, request != NULL);
                assert_int_equal(r == RV_REQUEST_E_INVALID, problem != NULL);
                describe(r, problem, got, sizeof(got));
                if (strcmp(got, rows[i].expected) != 0) {
                        n_failed++;
                        print_error("%s: \"%s\" wanted, got \"%.2000s\"\n", rows[i].name, rows[i].expected, got);
                }
        }
        assert_int_equal(n_failed, 0);
}

static void table_has_enough_different_rows(void **state)
{
        assert_true(RV_N_ELEMENTS(rows) >= 150);
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++)
                for (size_t k = 0; k < i; k++)
                        if (strcmp(rows[i].json, rows[k].json) == 0)
                                fail_msg("%s and %s are the same text", rows[i].name, rows[k].name);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(table),
                cmocka_unit_test(table_has_enough_different_rows),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
