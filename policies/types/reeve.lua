---@meta reeve
-- What a policy finds in its environment, for editors (LuaLS annotations). A unit test compares it with the
-- sandbox: each name here is there, and no other. In your bundle's .luarc.json, which is no part of the bundle:
--
--     { "runtime.version": "Lua 5.4",
--       "runtime.builtin": { "basic": "disable", "builtin": "disable", "coroutine": "disable", "debug": "disable",
--                            "io": "disable", "math": "disable", "os": "disable", "package": "disable",
--                            "string": "disable", "table": "disable", "utf8": "disable" },
--       "workspace.library": ["/path/to/policies/types"] }

---Facts of one package. Those after `stage` are known only once it is resolved: a rule that reads one of them
---before ends this package's evaluation as undecided. Once it is resolved, one that no registry told cannot be
---read: the run does not start, and says which it was.
---@class reeve.Package
---@field language "python"|"javascript"
---@field name string canonical
---@field requested string the text asked for; empty for a transitive package
---@field extras string[] sorted
---@field pinned boolean is the constraint one exact version?
---@field direct boolean was it asked for, and not brought in by another?
---@field stage "requested"|"resolved"
---@field version string
---@field hash string
---@field published_at integer Unix seconds
---@field age_days integer
---@field license string "" where the package states none
---@field kind string "wheel" or "npm"; "built" of one that was built from its source
---@field yanked boolean
---@field install_script boolean
---@field size_bytes integer

---In mode `domains` the network section is evaluated once for each domain.
---@class reeve.Network
---@field mode "none"|"registries"|"domains"|"any"
---@field domain string "" outside mode `domains`

---@class reeve.Idempotency
---@field mode "none"|"registries"|"domains"|"any"
---@field key_given boolean

---@class reeve.Backend
---@field mode "none"|"registries"|"domains"|"any"
---@field package_count integer
---@field all_pinned boolean

---@class reeve.Request
---@field language "python"|"javascript"
---@field source_sha256 string hexadecimal
---@field source_characters integer
---@field timeout_s integer
---@field memory_mib integer
---@field env_names string[] sorted
---@field package_count integer
---@field network_mode "none"|"registries"|"domains"|"any"
---@field key_given boolean
---@field tenant reeve.Tenant
---@field principal string
---@field now integer Unix seconds; there is no other clock

---@class reeve.Tenant
---@field name string
---@field labels table<string, string> nil for a label that is not set

---@class reeve.Rule
---@class reeve.Policy
---@class reeve.Matcher
---@operator call(string): boolean

---A scalar, a list (any of), a text with `*` (a glob), `within { … }` for `domain`, `version "…"` for `version`.
---@alias reeve.Match table<string, string|integer|boolean|reeve.Matcher|(string|integer|boolean|reeve.Matcher)[]>

---Exactly one of `allow`, `deny`, `require_key` and `use`; `match`, `when` or both.
---@class reeve.RuleFields
---@field id string unique in its section
---@field match? reeve.Match
---@field when? fun(item: any, request: reeve.Request): boolean
---@field allow? true packages, network
---@field deny? string packages, network, backend: the reason
---@field require_key? boolean idempotency
---@field use? string backend: its name, or "tenant"
---@field pin? string packages, with `allow`: the one version that may be chosen
---@field require_hash? true packages, with `allow`: the registry itself must tell the file's hash
---@field newest_published? string packages, with `allow`: "P7D", "PT12H", "P2W": nothing younger may be chosen, in the whole closure
---@field allow_source_build? true packages, with `allow`: it may be built from its source, in a sandbox without network
---@field ports? integer[] network, with `allow`: the only ports that may be reached

---@class reeve.Limit
---@field max? integer lowers the request's value
---@field deny_above? integer refuses what is above

---@class reeve.PolicyFields
---@field packages table rules, and default = "allow" or "deny"
---@field network table rules, and default = "allow" or "deny"
---@field idempotency table rules, and default = "none" or "require_key"
---@field backend table rules, and default = a backend's name or "tenant"
---@field limits? table<"timeout_s"|"memory_mib", reeve.Limit>

---@param fields reeve.RuleFields
---@return reeve.Rule
function rule(fields) end

---What `policy.lua` returns.
---@param fields reeve.PolicyFields
---@return reeve.Policy
function policy(fields) end

---Domains and their subdomains, by whole labels. A matcher; called with a name it answers true or false.
---@param domains string[]
---@return reeve.Matcher
function within(domains) end

---`version ">=1.2, <2 || ^3"`: a set of versions. Operators: < <= > >= == != ~= ~ ^, none means ==; commas or
---blanks mean all, || means any. Ordered by PEP 440 for Python, by SemVer for JavaScript; order alone decides.
version = {}

---@param a string
---@param b string
---@param language? "python"|"javascript" the request's, if not given
---@return -1|0|1
function version.compare(a, b, language) end

---Another file of the bundle: `use "lib/x"` runs lib/x.lua once and answers what it returned.
---@param name string
---@return any
function use(name) end

---A read-only dataset of the bundle: `data "bad"` is data/bad.json.
---@param name string
---@return any
function data(name) end

---@param message string
function error(message) end

---@generic T
---@param value T
---@param message? string
---@return T
function assert(value, message) end

---@param list table
function ipairs(list) end

---In a fixed order: whole numbers ascending, then texts bytewise. Other keys raise.
---@param t table
function pairs(t) end

---Stable, in place; the same as table.sort.
---@param list table
---@param before? fun(a: any, b: any): boolean
function sort(list, before) end

---@param n integer|"#"
---@return any
function select(n, ...) end

---@param value any
---@param base? integer
---@return number?
function tonumber(value, base) end

---Of texts, numbers, booleans and nil only.
---@param value any
---@return string
function tostring(value) end

---@param value any
---@return string
function type(value) end

math = {}
math.huge = 1 / 0
math.maxinteger = 9223372036854775807
math.mininteger = -9223372036854775808
math.pi = 3.141592653589793
---@param x number
---@return number
function math.abs(x) end
---@param x number
---@return integer
function math.ceil(x) end
---@param x number
---@return integer
function math.floor(x) end
---@param x number
---@param y number
---@return number
function math.fmod(x, y) end
---@param x number
---@return number
function math.max(x, ...) end
---@param x number
---@return number
function math.min(x, ...) end
---@param x number
---@return number whole
---@return number fraction
function math.modf(x) end
---@param x number
---@return number
function math.sqrt(x) end
---@param x any
---@return integer?
function math.tointeger(x) end
---@param x any
---@return "integer"|"float"|nil
function math.type(x) end
---@param a integer
---@param b integer
---@return boolean
function math.ult(a, b) end

string = {}
---@param s string
---@param i? integer
---@param j? integer
---@return integer ...
function string.byte(s, i, j) end
---@param ... integer
---@return string
function string.char(...) end
---Plain text; a pattern raises unless `plain` is true.
---@param s string
---@param text string
---@param init? integer
---@param plain? boolean
---@return integer? first
---@return integer? last
function string.find(s, text, init, plain) end
---%d %i %u %c %x %X %o %f %e %g %s %%
---@param format string
---@return string
function string.format(format, ...) end
---Does all of s fit? `*` is any run of bytes.
---@param s string
---@param pattern string
---@return boolean
function string.glob(s, pattern) end
---@param s string
---@param text string plain
function string.gmatch(s, text) end
---@param s string
---@param text string plain
---@param replacement string|table|function
---@param n? integer
---@return string
---@return integer count
function string.gsub(s, text, replacement, n) end
---@param s string
---@return integer
function string.len(s) end
---@param s string
---@return string
function string.lower(s) end
---@param s string
---@param text string plain
---@param init? integer
---@return string?
function string.match(s, text, init) end
---@param s string
---@param n integer
---@param separator? string
---@return string
function string.rep(s, n, separator) end
---@param s string
---@return string
function string.reverse(s) end
---@param s string
---@param i integer
---@param j? integer
---@return string
function string.sub(s, i, j) end
---@param s string
---@return string
function string.upper(s) end

table = {}
---@param list table
---@param separator? string
---@param i? integer
---@param j? integer
---@return string
function table.concat(list, separator, i, j) end
---@param list table
---@param position integer
---@param value any
---@overload fun(list: table, value: any)
function table.insert(list, position, value) end
---@param from table
---@param first integer
---@param last integer
---@param to integer
---@param other? table
---@return table
function table.move(from, first, last, to, other) end
---@return table
function table.pack(...) end
---@param list table
---@param position? integer
---@return any
function table.remove(list, position) end
---Stable. Without a function: numbers, or texts bytewise.
---@param list table
---@param before? fun(a: any, b: any): boolean
function table.sort(list, before) end
---At most 250 values.
---@param list table
---@param i? integer
---@param j? integer
---@return any ...
function table.unpack(list, i, j) end
