/* Python requirements: the grammars and examples of PEP 508, PEP 440, PEP 503, PEP 685, and what people write. */
#include "request/pyreq.h"
#include "test_request_table.h"

/* Canonical form in this table: name[extras]|constraint, with "|pinned" behind it where it is. */
static const struct row rows[] = {
        /* what people write */
        { "numpy==1.26.4", "numpy|==1.26.4|pinned" },
        { "requests>=2,<3", "requests|>=2,<3" },
        { "attrs>=0", "attrs|>=0" },
        { "pandas~=2.1", "pandas|~=2.1" },
        { "six!=1.15", "six|!=1.15" },
        { "six<=1.16.0", "six|<=1.16.0" },
        { "six<2", "six|<2" },
        { "six>1", "six|>1" },
        { "scipy===1.11.0", "scipy|===1.11.0|pinned" },
        { "Django>=4.2,<5.0,!=4.2.1", "django|>=4.2,<5.0,!=4.2.1" },
        { "beautifulsoup4>=4.12", "beautifulsoup4|>=4.12" },
        { "PyYAML==6.0.1", "pyyaml|==6.0.1|pinned" },
        { "Pillow>=10.0.0", "pillow|>=10.0.0" },
        { "scikit-learn==1.3.*", "scikit-learn|==1.3.*" },
        { "scikit_learn==1.3.2", "scikit-learn|==1.3.2|pinned" },
        { "zope.interface>=5", "zope-interface|>=5" },
        { "ruamel.yaml==0.17.32", "ruamel-yaml|==0.17.32|pinned" },
        { "torch==2.1.0+cpu", "torch|==2.1.0+cpu|pinned" },
        { "torch!=2.1.0+cu118", "torch|!=2.1.0+cu118" },
        { "uvicorn[standard]>=0.20", "uvicorn[standard]|>=0.20" },
        { "requests[security,socks]==2.31.0", "requests[security,socks]|==2.31.0|pinned" },
        { "backports.zoneinfo>=0.2.1", "backports-zoneinfo|>=0.2.1" },
        { "A==1", "a|==1|pinned" },
        { "a>0", "a|>0" },
        { "3to2>=1", "3to2|>=1" },
        { "0>=0", "0|>=0" },

        /* white space, where PEP 508 allows it */
        { " six==1.16.0", "six|==1.16.0|pinned" },
        { "six==1.16.0 ", "six|==1.16.0|pinned" },
        { "\tsix==1.16.0\t ", "six|==1.16.0|pinned" },
        { "six == 1.16.0", "six|==1.16.0|pinned" },
        { "six ==1.16.0", "six|==1.16.0|pinned" },
        { "six== 1.16.0", "six|==1.16.0|pinned" },
        { "six\t==\t1.16.0", "six|==1.16.0|pinned" },
        { "six >= 1 , < 2", "six|>=1,<2" },
        { "six>=1 ,<2", "six|>=1,<2" },
        { "six>=1, <2", "six|>=1,<2" },
        { "six [ a , b ] >= 1", "six[a,b]|>=1" },
        { "six[a]>=1", "six[a]|>=1" },
        { "six [a]>=1", "six[a]|>=1" },
        { "six === 1.0", "six|===1.0|pinned" },

        /* parentheses, and the comma that may end the clauses */
        { "six (>=1)", "six|>=1" },
        { "six(>=1)", "six|>=1" },
        { "six (==1.16.0)", "six|==1.16.0|pinned" },
        { "six ( >=1 , <2 )", "six|>=1,<2" },
        { "six[a](>=1,<2)", "six[a]|>=1,<2" },
        { "six>=1,", "six|>=1" },
        { "six==1 , ", "six|==1|pinned" },
        { "six (>=1,)", "six|>=1" },

        /* extras */
        { "six[]==1", "six|==1|pinned" },
        { "six[ ]==1", "six|==1|pinned" },
        { "six[B,a]==1", "six[a,b]|==1|pinned" },
        { "six[a,A,a]==1", "six[a]|==1|pinned" },
        { "six[Foo.Bar,foo_bar]==1", "six[foo-bar]|==1|pinned" },
        { "six[a.b_c-d]>=1", "six[a-b-c-d]|>=1" },
        { "six[9]>=1", "six[9]|>=1" },

        /* names (PEP 503) */
        { "Foo--Bar__baz..qux>=1", "foo-bar-baz-qux|>=1" },
        { "foo-_.bar==1", "foo-bar|==1|pinned" },
        { "FOO==1", "foo|==1|pinned" },
        { "a.b==1", "a-b|==1|pinned" },
        { "x-1>=1", "x-1|>=1" },

        /* versions (PEP 440) */
        { "x==1!2.0", "x|==1!2.0|pinned" },
        { "x>=2012!1", "x|>=2012!1" },
        { "x==v1.0", "x|==v1.0|pinned" },
        { "x==V1.0", "x|==V1.0|pinned" },
        { "x==1.0a1", "x|==1.0a1|pinned" },
        { "x==1.0.alpha.1", "x|==1.0.alpha.1|pinned" },
        { "x==1.0-beta_2", "x|==1.0-beta_2|pinned" },
        { "x==1.0rc1", "x|==1.0rc1|pinned" },
        { "x==1.0c1", "x|==1.0c1|pinned" },
        { "x==1.0pre1", "x|==1.0pre1|pinned" },
        { "x==1.0preview", "x|==1.0preview|pinned" },
        { "x==1.0RC1", "x|==1.0RC1|pinned" },
        { "x==1.0b", "x|==1.0b|pinned" },
        { "x==1.0.post1", "x|==1.0.post1|pinned" },
        { "x==1.0-1", "x|==1.0-1|pinned" },
        { "x==1.0.rev3", "x|==1.0.rev3|pinned" },
        { "x==1.0-r4", "x|==1.0-r4|pinned" },
        { "x==1.0post", "x|==1.0post|pinned" },
        { "x==1.0.dev3", "x|==1.0.dev3|pinned" },
        { "x==1.0dev", "x|==1.0dev|pinned" },
        { "x==1.0a2.post3.dev4", "x|==1.0a2.post3.dev4|pinned" },
        { "x==1.0a2-3.dev4+u.5", "x|==1.0a2-3.dev4+u.5|pinned" },
        { "x==1.0+ubuntu-1", "x|==1.0+ubuntu-1|pinned" },
        { "x==1.0+abc_1.DEF", "x|==1.0+abc_1.DEF|pinned" },
        { "x==00001.02", "x|==00001.02|pinned" },
        { "x==2013b1", "x|==2013b1|pinned" },
        { "x~=1.4.5a4", "x|~=1.4.5a4" },
        { "x~=2.2.post3", "x|~=2.2.post3" },
        { "x~=1!2.2", "x|~=1!2.2" },
        { "x!=1.1.*", "x|!=1.1.*" },
        { "x==1.*", "x|==1.*" },
        { "x==1!1.*", "x|==1!1.*" },
        { "x>=1.0.dev0", "x|>=1.0.dev0" },
        { "x<1.0a1.post1", "x|<1.0a1.post1" },
        { "x===foobar", "x|===foobar|pinned" },
        { "x===1.0+x!y", "x|===1.0+x!y|pinned" },
        { "x===1.0-final", "x|===1.0-final|pinned" },
        { "x==1,==1", "x|==1,==1" },
        { "x==1,>=0", "x|==1,>=0" },
        { "x===1,===1", "x|===1,===1" },
        { "x!=1", "x|!=1" },
        { "x<=1,>=1", "x|<=1,>=1" },

        /* no version: the constraint is what is missing */
        { "numpy", "!missing" },
        { "numpy ", "!missing" },
        { "numpy[extra]", "!missing" },
        { "numpy ()", "!missing" },
        { "numpy[]", "!missing" },
        { "scikit-learn", "!missing" },
        { "foo.bar", "!missing" },

        /* what is refused on purpose */
        { "x @ https://registry.example/x.whl", "!unsupported" },
        { "x@https://registry.example/x.whl", "!unsupported" },
        { "x @ file:///srv/x", "!unsupported" },
        { "x @ ./x", "!unsupported" },
        { "x@1.0", "!unsupported" },
        { "numpy@1.26.4", "!unsupported" },
        { "x[a] @ git+ssh://git@host.example/x", "!unsupported" },
        { "https://registry.example/x-1.0.tar.gz", "!unsupported" },
        { "http://registry.example", "!unsupported" },
        { "git+https://host.example/x.git", "!unsupported" },
        { "git+https://host.example/x.git@v1#egg=x", "!unsupported" },
        { "hg+http://host.example/x", "!unsupported" },
        { "svn+ssh://host.example/x", "!unsupported" },
        { "bzr+lp:x", "!unsupported" },
        { "git@host.example:u/x.git", "!unsupported" },
        { "file:x", "!unsupported" },
        { "./x", "!unsupported" },
        { "../x", "!unsupported" },
        { ".", "!unsupported" },
        { ".[dev]", "!unsupported" },
        { "/etc/passwd", "!unsupported" },
        { "~/x", "!unsupported" },
        { "C:\\x", "!unsupported" },
        { "dir\\x>=1", "!unsupported" },
        { "dir/x", "!unsupported" },
        { "x-1.0-py3-none-any.whl", "!unsupported" },
        { "x-1.0.tar.gz", "!unsupported" },
        { "X-1.0.ZIP", "!unsupported" },
        { "x===1.0.zip", "!unsupported" },
        { "x===1.0.whl,", "!unsupported" },
        { "x (==1.0+a.tar.gz)", "!unsupported" },
        { "six; python_version < '3'", "!unsupported" },
        { "six==1.0; python_version<\"3\"", "!unsupported" },
        { "six==1.0 ; os_name == 'nt'", "!unsupported" },
        { "six==1.0;", "!unsupported" },
        { "-r requirements.txt", "!unsupported" },
        { "-e .", "!unsupported" },
        { "--index-url=https://registry.example", "!unsupported" },
        { "--pre", "!unsupported" },
        { " --pre", "!unsupported" },
        { "-", "!unsupported" },
        { "six==1.16.0 --hash=sha256:00", "!unsupported" },
        { "six --pre", "!unsupported" },
        { "${HOME}/x", "!unsupported" },
        { "x==${VERSION}", "!unsupported" },

        /* control characters and other scripts */
        { "six==1.16.0\n--pre", "!pattern" },
        { "six==1.16.0\n", "!pattern" },
        { "\nsix==1.16.0", "!pattern" },
        { "six==1.16.0\r", "!pattern" },
        { "six\001==1", "!pattern" },
        { "six\177==1", "!pattern" },
        { "six\v==1", "!pattern" },
        { "six\f==1", "!pattern" },
        { "s\303\257x==1", "!pattern" },
        { "six\302\240==1", "!pattern" },
        { "six==\357\274\221", "!pattern" },
        { "six==\331\241", "!pattern" },

        /* no requirement */
        { "", "!pattern" },
        { "   ", "!pattern" },
        { "\t", "!pattern" },
        { "==1.0", "!pattern" },
        { ">=1", "!pattern" },
        { "_x>=1", "!pattern" },
        { "x_>=1", "!pattern" },
        { "x->=1", "!pattern" },
        { "x.>=1", "!pattern" },
        { "x-", "!pattern" },
        { "@x>=1", "!pattern" },
        { "@scope/x@1.0", "!pattern" },
        { "x y>=1", "!pattern" },
        { "numpy 1.26.4", "!pattern" },
        { "numpy=1.26.4", "!pattern" },
        { "numpy = 1.26.4", "!pattern" },
        { "numpy=>1.26", "!pattern" },
        { "numpy=<1.26", "!pattern" },
        { "numpy^1.26", "!pattern" },
        { "numpy~1.26", "!pattern" },
        { "numpy!1.26", "!pattern" },
        { "numpy<>1.26", "!pattern" },
        { "numpy>>1.26", "!pattern" },
        { "numpy====1.26", "!pattern" },
        { "numpy==", "!pattern" },
        { "numpy>=", "!pattern" },
        { "numpy===", "!pattern" },
        { "numpy== ", "!pattern" },
        { "numpy==latest", "!pattern" },
        { "numpy==*", "!pattern" },
        { "numpy==1.26.x", "!pattern" },
        { "numpy==1.26.4.*.*", "!pattern" },
        { "numpy>=1.*", "!pattern" },
        { "numpy<1.*", "!pattern" },
        { "numpy~=1.4.*", "!pattern" },
        { "numpy===1.*", "!pattern" },
        { "numpy~=1", "!pattern" },
        { "numpy~=1!2", "!pattern" },
        { "numpy~=1a1", "!pattern" },
        { "numpy>=1.0+local", "!pattern" },
        { "numpy<=1.0+local", "!pattern" },
        { "numpy~=1.0+local", "!pattern" },
        { "numpy==1.0+", "!pattern" },
        { "numpy==1.0+a..b", "!pattern" },
        { "numpy==1.0+a.", "!pattern" },
        { "numpy==1.0+a+b", "!pattern" },
        { "numpy==1.0+*", "!pattern" },
        { "numpy==1.0a1.*", "!pattern" },
        { "numpy==1.0.dev1.*", "!pattern" },
        { "numpy==1..0", "!pattern" },
        { "numpy==1.", "!pattern" },
        { "numpy==.1", "!pattern" },
        { "numpy==-1", "!pattern" },
        { "numpy==1.0a.", "!pattern" },
        { "numpy==1.0--1", "!unsupported" },
        { "numpy==1.0gamma", "!pattern" },
        { "numpy==1!", "!pattern" },
        { "numpy==!1", "!pattern" },
        { "numpy==1!2!3", "!pattern" },
        { "numpy==vv1", "!pattern" },
        { "numpy==1.0 .0", "!pattern" },
        { "numpy==1 2", "!pattern" },
        { "numpy>=1<2", "!pattern" },
        { "numpy>=1 <2", "!pattern" },
        { "numpy>=1,,<2", "!pattern" },
        { "numpy,>=1", "!pattern" },
        { "numpy>=1,2", "!pattern" },
        { "numpy>=1;", "!unsupported" },
        { "numpy>=1 || <0.5", "!pattern" },
        { "numpy (>=1", "!pattern" },
        { "numpy >=1)", "!pattern" },
        { "numpy ((>=1))", "!pattern" },
        { "numpy (>=1) (<2)", "!pattern" },
        { "numpy (>=1),<2", "!pattern" },
        { "numpy[a>=1", "!pattern" },
        { "numpy a]>=1", "!pattern" },
        { "numpy[a b]>=1", "!pattern" },
        { "numpy[a,]>=1", "!pattern" },
        { "numpy[,a]>=1", "!pattern" },
        { "numpy[a;b]>=1", "!pattern" },
        { "numpy[_a]>=1", "!pattern" },
        { "numpy[a-]>=1", "!pattern" },
        { "numpy[[a]]>=1", "!pattern" },
        { "numpy[a][b]>=1", "!pattern" },
        { "numpy>=1[a]", "!pattern" },
        { "numpy{a}>=1", "!pattern" },
        { "\"numpy\">=1", "!pattern" },
        { "'numpy'>=1", "!pattern" },
        { "numpy>='1'", "!pattern" },
        { "numpy # comment", "!pattern" },
        { "numpy==1.0 # comment", "!pattern" },
        { "#numpy", "!pattern" },
        { "numpy,pandas", "!pattern" },
        { "numpy pandas", "!pattern" },
        { "*", "!pattern" },
        { "numpy==1.0\\", "!unsupported" },
        { "$(id)", "!pattern" },
        { "`id`", "!pattern" },
        { "numpy==1.0|id", "!pattern" },
        { "numpy==1.0&id", "!pattern" },
};

static void parse_requirement(const char *text, size_t n, char *ret, size_t size, const char **ret_message)
{
        static struct rv_fault fault;
        struct rv_package p = { .name = (char *)"untouched" };
        int at, r;

        fault = (struct rv_fault){ 0 };
        r = rv_pyreq_parse(text, n, &p, &fault);
        if (r) {
                assert_int_equal(r, RV_PYREQ_E_INVALID);
                assert_string_equal(p.name, "untouched");
                assert_true(strlen(fault.message) > 0);
                assert_int_equal(rv_pyreq_parse(text, n, &p, NULL), RV_PYREQ_E_INVALID);
                snprintf(ret, size, "!%s", rv_fault_code_name(fault.code));
                *ret_message = fault.message;
                return;
        }
        at = snprintf(ret, size, "%s", p.name);
        for (size_t i = 0; i < p.n_extras; i++)
                at += snprintf(ret + at, size - (size_t)at, "%c%s%s", i ? ',' : '[', p.extras[i],
                               i + 1 == p.n_extras ? "]" : "");
        snprintf(ret + at, size - (size_t)at, "|%s%s", p.constraint, p.is_pinned ? "|pinned" : "");
        rv_package_fini(&p);
}

static void table(void **state)
{
        check_rows(rows, RV_N_ELEMENTS(rows), parse_requirement);
}

static void table_has_enough_different_rows(void **state)
{
        check_rows_differ(rows, RV_N_ELEMENTS(rows), 150);
}

static void requested_is_the_text_without_surrounding_space(void **state)
{
        struct rv_package p;

        assert_int_equal(rv_pyreq_parse(" \tSix [B]  ==  1.16.0 \t", 22, &p, NULL), 0);
        assert_string_equal(p.requested, "Six [B]  ==  1.16.0");
        assert_string_equal(p.name, "six");
        rv_package_fini(&p);
}

/* name, extras and constraint put together again parse to the same. */
static void canonical_is_stable(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                const char *message = "";
                char text[1024], got[1024], *bar;

                if (rows[i].expected[0] == '!')
                        continue;
                snprintf(text, sizeof(text), "%s", rows[i].expected);
                bar = strstr(text, "|pinned");
                if (bar)
                        *bar = 0;
                bar = strchr(text, '|');
                assert_non_null(bar);
                memmove(bar, bar + 1, strlen(bar));
                parse_requirement(text, strlen(text), got, sizeof(got), &message);
                assert_string_equal(got, rows[i].expected);
        }
}

static void messages_say_what_to_do(void **state)
{
        static const struct row cases[] = {
                { "numpy", "numpy>=0" },          { "numpy", "numpy==1.2.3" },     { "numpy@1.26.4", "name==version" },
                { "numpy=1.26.4", "==" },         { "numpy^1.2", "~=" },           { "six; x", "markers" },
                { "numpy>=1<2", ">=2,<3" },       { "git+https://x.example", "version control" },
                { "--pre", "options" },           { "numpy~=1", "two release numbers" },
                { "numpy>=1.*", "== and != only" },
        };
        struct rv_package p;
        struct rv_fault fault;

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                assert_int_equal(rv_pyreq_parse(cases[i].text, strlen(cases[i].text), &p, &fault), RV_PYREQ_E_INVALID);
                if (!strstr(fault.message, cases[i].expected))
                        fail_msg("\"%s\": \"%s\" is not in: %s", cases[i].text, cases[i].expected, fault.message);
        }
}

static void nul_is_refused(void **state)
{
        struct rv_package p;
        struct rv_fault fault;

        assert_int_equal(rv_pyreq_parse("six==1\0.0", 9, &p, &fault), RV_PYREQ_E_INVALID);
        assert_int_equal(fault.code, RV_FAULT_PATTERN);
        assert_int_equal(rv_pyreq_parse("\0", 1, &p, &fault), RV_PYREQ_E_INVALID);
        assert_int_equal(fault.code, RV_FAULT_PATTERN);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(table),
                cmocka_unit_test(table_has_enough_different_rows),
                cmocka_unit_test(requested_is_the_text_without_surrounding_space),
                cmocka_unit_test(canonical_is_stable),
                cmocka_unit_test(messages_say_what_to_do),
                cmocka_unit_test(nul_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
