local t = require("tap")
local v = require("fake.policy").load("."):decide { language = "cobol" }
t.is(v.effect, "deny", "a request that no caller can send")
t.done()
