local t = require("tap")
t.is(require("fake.policy").load("."):decide({ language = "python" }).effect, "deny", "a wrong expectation")
t.done()
