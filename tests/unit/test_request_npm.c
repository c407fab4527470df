/* JavaScript packages: npm's names, the grammar and examples of node-semver, and what people write. */
#include "request/npmrange.h"
#include "test_request_table.h"

/* Canonical form in this table: name|constraint, with "|pinned" behind it where it is. */
static const struct row rows[] = {
        /* what people write */
        { "lodash@4.17.21", "lodash|4.17.21|pinned" },
        { "@scope/x@^2", "@scope/x|^2" },
        { "a@1 || 2", "a|1 || 2" },
        { "left-pad@*", "left-pad|*" },
        { "left-pad@latest", "left-pad|latest" },
        { "left-pad@ latest ", "left-pad|latest" },
        { "semver@5 || 7", "semver|5 || 7" },
        { "@scope/x@>=1 <3", "@scope/x|>=1 <3" },
        { "express@^4.18.2", "express|^4.18.2" },
        { "react@~18.2.0", "react|~18.2.0" },
        { "typescript@5.x", "typescript|5.x" },
        { "@types/node@20.10.0", "@types/node|20.10.0|pinned" },
        { "@babel/core@^7.0.0-beta.4", "@babel/core|^7.0.0-beta.4" },
        { "vue@3.4.0-alpha.1", "vue|3.4.0-alpha.1|pinned" },
        { "x@=1.2.3", "x|=1.2.3|pinned" },
        { "x@= 1.2.3", "x|= 1.2.3|pinned" },
        { "x@v1.2.3", "x|v1.2.3|pinned" },
        { "x@=v1.2.3", "x|=v1.2.3|pinned" },
        { "x@1.2.3+build.5", "x|1.2.3+build.5|pinned" },
        { "x@1.2.3-rc.1+build.5", "x|1.2.3-rc.1+build.5|pinned" },
        { " x@1.2.3", "x|1.2.3|pinned" },
        { "x@1.2.3 ", "x|1.2.3|pinned" },
        { "x@ 1.2.3", "x|1.2.3|pinned" },
        { "\tx@\t1.2.3\t", "x|1.2.3|pinned" },

        /* names */
        { "3d@1", "3d|1" },
        { "x.y@1", "x.y|1" },
        { "x_y@1", "x_y|1" },
        { "x-y@1", "x-y|1" },
        { "x-@1", "x-|1" },
        { "events@3", "events|3" },
        { "lodash.debounce@4", "lodash.debounce|4" },
        { "@a/b@1", "@a/b|1" },
        { "@a-b/c.d_e@1", "@a-b/c.d_e|1" },
        { "@-x/y@1", "@-x/y|1" },
        { "@_x/y@1", "@_x/y|1" },
        { "@x/_y@1", "@x/_y|1" },
        { "@x/-y@1", "@x/-y|1" },
        { "@1/2@3", "@1/2|3" },

        /* the ranges of node-semver's own documentation and tests */
        { "a@1.0.0 - 2.0.0", "a|1.0.0 - 2.0.0" },
        { "a@1.2 - 2.3.4", "a|1.2 - 2.3.4" },
        { "a@1.2.3 - 2.3", "a|1.2.3 - 2.3" },
        { "a@1.2.3  -  2", "a|1.2.3 - 2" },
        { "a@1.2.3-pre+asdf - 2.4.3-pre+asdf", "a|1.2.3-pre+asdf - 2.4.3-pre+asdf" },
        { "a@v1 - v2", "a|v1 - v2" },
        { "a@* - 2", "a|* - 2" },
        { "a@1.0.0 - 2.0.0 || 3", "a|1.0.0 - 2.0.0 || 3" },
        { "a@>=1.0.0", "a|>=1.0.0" },
        { "a@>1.0.0", "a|>1.0.0" },
        { "a@<2.0.0", "a|<2.0.0" },
        { "a@<=2.0.0", "a|<=2.0.0" },
        { "a@>= 1.0.0", "a|>= 1.0.0" },
        { "a@>=  1.0.0", "a|>= 1.0.0" },
        { "a@<\t2.0.0", "a|< 2.0.0" },
        { "a@<    2.0.0", "a|< 2.0.0" },
        { "a@>1.2", "a|>1.2" },
        { "a@<1", "a|<1" },
        { "a@< 1.2", "a|< 1.2" },
        { "a@=0.7.x", "a|=0.7.x" },
        { "a@>=0.7.x", "a|>=0.7.x" },
        { "a@<=7.x", "a|<=7.x" },
        { "a@>1.2.3 <=2.0.0-beta", "a|>1.2.3 <=2.0.0-beta" },
        { "a@>=0.2.3 || <0.0.1", "a|>=0.2.3 || <0.0.1" },
        { "a@0.1.20 || 1.2.4", "a|0.1.20 || 1.2.4" },
        { "a@1.2.7 || >=1.2.9 <2.0.0", "a|1.2.7 || >=1.2.9 <2.0.0" },
        { "a@1||2||3", "a|1||2||3" },
        { "a@1 ||2|| 3", "a|1 ||2|| 3" },
        { "a@||", "a|||" },
        { "a@|| 1", "a||| 1" },
        { "a@1 ||", "a|1 ||" },
        { "a@x", "a|x" },
        { "a@X", "a|X" },
        { "a@2.*.*", "a|2.*.*" },
        { "a@1.2.*", "a|1.2.*" },
        { "a@1.2.X || 2.x", "a|1.2.X || 2.x" },
        { "a@x.x.x", "a|x.x.x" },
        { "a@*.*", "a|*.*" },
        { "a@2", "a|2" },
        { "a@2.3", "a|2.3" },
        { "a@v2", "a|v2" },
        { "a@vx", "a|vx" },
        { "a@>*", "a|>*" },
        { "a@^*", "a|^*" },
        { "a@~x", "a|~x" },
        { "a@~2.4", "a|~2.4" },
        { "a@~>3.2.1", "a|~>3.2.1" },
        { "a@~>1", "a|~>1" },
        { "a@~> 1", "a|~> 1" },
        { "a@~1.0", "a|~1.0" },
        { "a@~ 1.0", "a|~ 1.0" },
        { "a@~ 1.0.3", "a|~ 1.0.3" },
        { "a@~v0.5.4-pre", "a|~v0.5.4-pre" },
        { "a@~1.2.3-beta.2", "a|~1.2.3-beta.2" },
        { "a@~0", "a|~0" },
        { "a@^0", "a|^0" },
        { "a@^ 1", "a|^ 1" },
        { "a@^0.1", "a|^0.1" },
        { "a@^ 1.2", "a|^ 1.2" },
        { "a@^1.2 ^1", "a|^1.2 ^1" },
        { "a@^0.0.1-alpha", "a|^0.0.1-alpha" },
        { "a@^1.x", "a|^1.x" },
        { "a@^1.2.x", "a|^1.2.x" },
        { "a@1.2.x-beta", "a|1.2.x-beta" },
        { "a@1.0.0-0.3.7", "a|1.0.0-0.3.7|pinned" },
        { "a@1.0.0-x.7.z.92", "a|1.0.0-x.7.z.92|pinned" },
        { "a@1.0.0-x-y-z.--", "a|1.0.0-x-y-z.--|pinned" },
        { "a@1.0.0--", "a|1.0.0--|pinned" },
        { "a@1.0.0-0", "a|1.0.0-0|pinned" },
        { "a@1.0.0-alpha+001", "a|1.0.0-alpha+001|pinned" },
        { "a@1.0.0+21AF26D3---117B344092BD", "a|1.0.0+21AF26D3---117B344092BD|pinned" },
        { "a@1.0.0-1a", "a|1.0.0-1a|pinned" },
        { "a@1.0.0-01a", "a|1.0.0-01a|pinned" },
        { "a@0.0.0", "a|0.0.0|pinned" },
        { "a@9007199254740991.0.0", "a|9007199254740991.0.0|pinned" },
        { "a@>=09.0.0", "!pattern" },
        { "a@1.2.3 1.2.3", "a|1.2.3 1.2.3" },
        { "a@1.2.3 || 1.2.3", "a|1.2.3 || 1.2.3" },
        { "a@1.2.3 - 1.2.3", "a|1.2.3 - 1.2.3" },
        { "a@>=1.2.3 <=1.2.3", "a|>=1.2.3 <=1.2.3" },
        { "a@<1.2.3", "a|<1.2.3" },
        { "a@>= 1    <\t3", "a|>= 1 < 3" },

        /* no range: it is what is missing */
        { "lodash", "!missing" },
        { "lodash ", "!missing" },
        { "@scope/x", "!missing" },
        { "abc@", "!missing" },
        { "abc@ ", "!missing" },
        { "@scope/x@", "!missing" },
        { "a@", "!missing" },

        /* what is refused on purpose */
        { "x@beta", "!unsupported" },
        { "x@next", "!unsupported" },
        { "x@LATEST", "!unsupported" },
        { "x@Latest", "!unsupported" },
        { "x@latest-1", "!unsupported" },
        { "x@canary.5", "!unsupported" },
        { "x@stable_1", "!unsupported" },
        { "x@xx", "!unsupported" },
        { "x@v", "!unsupported" },
        { "x@git+https://host.example/x.git", "!unsupported" },
        { "x@git://host.example/x.git", "!unsupported" },
        { "x@git+ssh://git@host.example:u/x.git#v1", "!unsupported" },
        { "x@git@host.example:u/x.git", "!unsupported" },
        { "x@https://host.example/x.tgz", "!unsupported" },
        { "x@HTTP://host.example/x.tgz", "!unsupported" },
        { "x@file:../x", "!unsupported" },
        { "x@FILE:x", "!unsupported" },
        { "x@link:../x", "!unsupported" },
        { "x@portal:../x", "!unsupported" },
        { "x@npm:y@1.0.0", "!unsupported" },
        { "x@NPM:y", "!unsupported" },
        { "x@npm:@s/y@^1", "!unsupported" },
        { "x@workspace:*", "!unsupported" },
        { "x@workspace:^1.0.0", "!unsupported" },
        { "x@catalog:", "!unsupported" },
        { "x@jsr:@s/y", "!unsupported" },
        { "x@patch:x@1#p.patch", "!unsupported" },
        { "x@github:user/repo", "!unsupported" },
        { "x@gitlab:user/repo", "!unsupported" },
        { "x@bitbucket:user/repo", "!unsupported" },
        { "x@gist:0123456789abcdef", "!unsupported" },
        { "x@user/repo", "!unsupported" },
        { "x@user/repo#semver:^1", "!unsupported" },
        { "x@./x", "!unsupported" },
        { "x@../x", "!unsupported" },
        { "x@/etc/passwd", "!unsupported" },
        { "x@~/x", "!unsupported" },
        { "x@~1.0/x", "!unsupported" },
        { "x@C:\\x", "!unsupported" },
        { "x@.\\x", "!unsupported" },
        { "x@x.tgz", "!unsupported" },
        { "x@1.2.3.tar.gz", "!unsupported" },
        { "x@1.2.3-a.tgz", "!unsupported" },
        { "x@^1.2.3-a.tar", "!unsupported" },
        { "x@1.2.3+b.tar.gz ", "!unsupported" },
        { "x@dir/x.tar", "!unsupported" },
        { "user/repo", "!unsupported" },
        { "user/repo@1", "!unsupported" },
        { "user/repo#main", "!unsupported" },
        { "github:user/repo", "!unsupported" },
        { "https://host.example/x.tgz", "!unsupported" },
        { "https://user@host.example/x.tgz", "!unsupported" },
        { "git+ssh://git@host.example/x", "!unsupported" },
        { "git@host.example:u/x.git", "!unsupported" },
        { "file:x", "!unsupported" },
        { "npm:x@1", "!unsupported" },
        { "./x", "!unsupported" },
        { "../x", "!unsupported" },
        { "../x@1", "!unsupported" },
        { "/x", "!unsupported" },
        { "~/x@1", "!unsupported" },
        { "x.tgz", "!unsupported" },
        { ".", "!unsupported" },
        { "--save", "!unsupported" },
        { "-g", "!unsupported" },
        { " --registry=https://host.example", "!unsupported" },
        { "-x@1", "!unsupported" },

        /* names that are none */
        { "", "!pattern" },
        { "  ", "!pattern" },
        { "@", "!pattern" },
        { "@@", "!pattern" },
        { "@1.0.0", "!pattern" },
        { "@scope", "!pattern" },
        { "@scope@1", "!pattern" },
        { "@/x@1", "!pattern" },
        { "@scope/@1", "!pattern" },
        { "@scope/", "!pattern" },
        { "@a/b/c@1", "!pattern" },
        { "@A/b@1", "!pattern" },
        { "@a/B@1", "!pattern" },
        { "@./x@1", "!pattern" },
        { "@../x@1", "!pattern" },
        { "@a/..@1", "!pattern" },
        { "@a/.b@1", "!pattern" },
        { "@a/node_modules@1", "!pattern" },
        { "JSONStream@1.3.5", "!pattern" },
        { "Lodash@4.17.21", "!pattern" },
        { "Lodash", "!pattern" },
        { "_x@1", "!pattern" },
        { "node_modules@1", "!pattern" },
        { "favicon.ico@1", "!pattern" },
        { "x y@1", "!pattern" },
        { "x @1", "!pattern" },
        { "x~@1", "!pattern" },
        { "x!@1", "!pattern" },
        { "x'@1", "!pattern" },
        { "x(y)@1", "!pattern" },
        { "x*@1", "!pattern" },
        { "x%2f@1", "!pattern" },
        { "x?@1", "!pattern" },
        { "x#@1", "!pattern" },
        { "x&y@1", "!pattern" },
        { "\"x\"@1", "!pattern" },
        { "x\t@1", "!pattern" },
        { "lodash==4.17.21", "!pattern" },
        { "lodash>=4", "!pattern" },
        { "lodash 4", "!pattern" },
        { "lodash^4", "!pattern" },
        { "\303\274@1", "!pattern" },
        { "x@1.0.0\302\240", "!pattern" },
        { "x@1.2.3\n--save", "!pattern" },
        { "x@1.2.3\n", "!pattern" },
        { "\rx@1.2.3", "!pattern" },
        { "x\001@1", "!pattern" },
        { "x@1\177", "!pattern" },

        /* ranges that are none */
        { "a@1.2.3.4", "!pattern" },
        { "a@1.", "!pattern" },
        { "a@.1", "!unsupported" },
        { "a@1..2", "!pattern" },
        { "a@01.2.3", "!pattern" },
        { "a@1.02.3", "!pattern" },
        { "a@1.2.03", "!pattern" },
        { "a@1.2.3-", "!pattern" },
        { "a@1.2.3-01", "!pattern" },
        { "a@1.2.3-a..b", "!pattern" },
        { "a@1.2.3-a.", "!pattern" },
        { "a@1.2.3-a_b", "!pattern" },
        { "a@1.2.3+", "!pattern" },
        { "a@1.2.3+a..b", "!pattern" },
        { "a@1.2.3+a+b", "!pattern" },
        { "a@1.2-beta", "!pattern" },
        { "a@1-beta", "!pattern" },
        { "a@1.2.3beta", "!pattern" },
        { "a@9007199254740992", "!pattern" },
        { "a@1.9007199254740992.0", "!pattern" },
        { "a@99999999999999999999999999.0.0", "!pattern" },
        { "a@1.x.3", "!pattern" },
        { "a@x.1", "!unsupported" },
        { "a@*.2.3", "!pattern" },
        { "a@xx.1", "!unsupported" },
        { "a@1.2.3*", "!pattern" },
        { "a@*1", "!pattern" },
        { "a@**", "!pattern" },
        { "a@1 | 2", "!pattern" },
        { "a@1 ||| 2", "!pattern" },
        { "a@|", "!pattern" },
        { "a@1 && 2", "!pattern" },
        { "a@>=1, <2", "!pattern" },
        { "a@>=1,<2", "!pattern" },
        { "a@>=1<2", "!pattern" },
        { "a@1.2.3>=1", "!pattern" },
        { "a@^^1", "!pattern" },
        { "a@^~1", "!pattern" },
        { "a@~~1", "!pattern" },
        { "a@~=1", "!pattern" },
        { "a@~^1", "!pattern" },
        { "a@==1.2.3", "!pattern" },
        { "a@===1.2.3", "!pattern" },
        { "a@=>1", "!pattern" },
        { "a@=<1", "!pattern" },
        { "a@><1", "!pattern" },
        { "a@<>1", "!pattern" },
        { "a@!=1", "!pattern" },
        { "a@!1", "!pattern" },
        { "a@> =1", "!pattern" },
        { "a@~ >1", "!pattern" },
        { "a@>", "!pattern" },
        { "a@^", "!pattern" },
        { "a@~", "!pattern" },
        { "a@=", "!pattern" },
        { "a@1 -", "!pattern" },
        { "a@- 1", "!pattern" },
        { "a@1 - ", "!pattern" },
        { "a@1 -2", "!pattern" },
        { "a@1- 2", "!pattern" },
        { "a@1 - 2 - 3", "!pattern" },
        { "a@1 - 2 3", "!pattern" },
        { "a@3 1 - 2", "!pattern" },
        { "a@>1 - 2", "!pattern" },
        { "a@1 - >2", "!pattern" },
        { "a@vv1", "!unsupported" },
        { "a@v 1", "!pattern" },
        { "a@V1", "!unsupported" },
        { "a@1@2", "!pattern" },
        { "a@@1", "!pattern" },
        { "a@1;", "!pattern" },
        { "a@'1'", "!pattern" },
        { "a@\"1\"", "!pattern" },
        { "a@1 # x", "!pattern" },
        { "a@latest || 1", "!pattern" },
        { "a@1 || latest", "!pattern" },
        { "a@$(id)", "!pattern" },
        { "a@${X}", "!unsupported" },
        { "a@-1", "!pattern" },
        { "a@+1", "!pattern" },
        { "a@1,0", "!pattern" },
};

static void parse_package(const char *text, size_t n, char *ret, size_t size, const char **ret_message)
{
        static struct rv_fault fault;
        struct rv_package p = { .name = (char *)"untouched" };
        int r;

        fault = (struct rv_fault){ 0 };
        r = rv_npmreq_parse(text, n, &p, &fault);
        if (r) {
                assert_int_equal(r, RV_NPMREQ_E_INVALID);
                assert_string_equal(p.name, "untouched");
                assert_true(strlen(fault.message) > 0);
                assert_int_equal(rv_npmreq_parse(text, n, &p, NULL), RV_NPMREQ_E_INVALID);
                snprintf(ret, size, "!%s", rv_fault_code_name(fault.code));
                *ret_message = fault.message;
                return;
        }
        assert_int_equal(p.n_extras, 0);
        snprintf(ret, size, "%s|%s%s", p.name, p.constraint, p.is_pinned ? "|pinned" : "");
        rv_package_fini(&p);
}

static void table(void **state)
{
        check_rows(rows, RV_N_ELEMENTS(rows), parse_package);
}

static void table_has_enough_different_rows(void **state)
{
        check_rows_differ(rows, RV_N_ELEMENTS(rows), 150);
}

static void requested_is_the_text_without_surrounding_space(void **state)
{
        struct rv_package p;

        assert_int_equal(rv_npmreq_parse(" x@>=1   <3\t", 12, &p, NULL), 0);
        assert_string_equal(p.requested, "x@>=1   <3");
        assert_string_equal(p.constraint, ">=1 <3");
        rv_package_fini(&p);
}

static void a_name_has_at_most_214_characters(void **state)
{
        struct rv_package p;
        struct rv_fault fault;
        char text[300];

        memset(text, 'a', sizeof(text));
        memcpy(text + 214, "@1", 2);
        assert_int_equal(rv_npmreq_parse(text, 216, &p, &fault), 0);
        rv_package_fini(&p);
        memcpy(text + 214, "a@1", 3);
        assert_int_equal(rv_npmreq_parse(text, 217, &p, &fault), RV_NPMREQ_E_INVALID);
        assert_int_equal(fault.code, RV_FAULT_LENGTH);
}

static void messages_say_what_to_do(void **state)
{
        static const struct row cases[] = {
                { "lodash", "lodash@*" },          { "lodash", "lodash@1.2.3" },
                { "abc@", "abc@*" },               { "x@beta", "only \"latest\"" },
                { "lodash==4", "name@range" },     { "x@>=1, <2", "by spaces" },
                { "x@npm:y@1", "aliases" },        { "x@git+https://x.example", "version control" },
                { "Lodash@1", "lower case" },      { "x@1.x.3", "1.x" },
                { "x@1.2.3 4 &", "\"&\"" },        { "x@9007199254740992", "9007199254740991" },
        };
        struct rv_package p;
        struct rv_fault fault;

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                assert_int_equal(rv_npmreq_parse(cases[i].text, strlen(cases[i].text), &p, &fault),
                                 RV_NPMREQ_E_INVALID);
                if (!strstr(fault.message, cases[i].expected))
                        fail_msg("\"%s\": \"%s\" is not in: %s", cases[i].text, cases[i].expected, fault.message);
        }
}

static void a_broken_range_says_where(void **state)
{
        struct rv_fault fault;
        bool is_pinned = true;
        size_t at = 99;

        assert_int_equal(rv_npmrange_check(">=1 & <2", 8, &is_pinned, &at, &fault), RV_NPMREQ_E_INVALID);
        assert_int_equal(at, 4);
        assert_true(is_pinned);   /* untouched */
        assert_int_equal(rv_npmrange_check("", 0, &is_pinned, &at, &fault), 0);
        assert_false(is_pinned);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(table),
                cmocka_unit_test(table_has_enough_different_rows),
                cmocka_unit_test(requested_is_the_text_without_surrounding_space),
                cmocka_unit_test(a_name_has_at_most_214_characters),
                cmocka_unit_test(messages_say_what_to_do),
                cmocka_unit_test(a_broken_range_says_where),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
