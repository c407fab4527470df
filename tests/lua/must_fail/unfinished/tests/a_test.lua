local t = require("tap")
t.is(1, 1, "a test that never says it is done")
