-- luacheck 1.1 (Debian 12's). Policies see the sandbox's names only; policies/types declares them for editors.
std = "lua54"
max_line_length = 140

local sandbox = {
  read_globals = {
    "assert", "data", "error", "ipairs", "pairs", "policy", "rule", "select", "sort", "tonumber", "tostring", "type", "use", "within",
    version = { fields = { "compare" } },
    math = {
      fields = {
        "abs", "ceil", "floor", "fmod", "huge", "max", "maxinteger", "min", "mininteger", "modf", "pi", "sqrt", "tointeger", "type",
        "ult",
      },
    },
    string = {
      fields = {
        "byte", "char", "find", "format", "glob", "gmatch", "gsub", "len", "lower", "match", "rep", "reverse", "sub", "upper",
      },
    },
    table = { fields = { "concat", "insert", "move", "pack", "remove", "sort", "unpack" } },
  },
}
stds.sandbox = sandbox

files["policies/*/policy.lua"] = { std = "sandbox" }
files["policies/*/lib/**/*.lua"] = { std = "sandbox" }
files["policies/examples/**/policy.lua"] = { std = "sandbox" }
files["tests/lua/must_fail/*/policy.lua"] = { std = "sandbox" }
files["policies/**/tests/*_test.lua"] = { std = "lua54" }
-- Declarations: nothing here is used, and everything is a global.
files["policies/types/*.lua"] = { std = "none", allow_defined = true, ignore = { "1", "2" } }
