-- The least that a test of policy needs: `is`, `ok`, `done`, with TAP on standard output.
local tap = {}
local n_run, n_failed = 0, 0

local function report(is_passed, name)
  n_run = n_run + 1
  if not is_passed then
    n_failed = n_failed + 1
  end
  io.write(is_passed and "ok " or "not ok ", n_run, name and " - " .. name or "", "\n")
end

-- The line of the test that called, for what failed.
local function place()
  local info = debug.getinfo(3, "Sl")
  return info.short_src .. ":" .. info.currentline
end

--- got and wanted are the same scalar.
function tap.is(got, wanted, name)
  report(got == wanted, name)
  if got ~= wanted then
    io.write("# ", place(), ": got ", tostring(got), ", wanted ", tostring(wanted), "\n")
  end
end

function tap.ok(value, name)
  report(value and true or false, name)
  if not value then
    io.write("# ", place(), ": got ", tostring(value), "\n")
  end
end

--- The end of a test: without it, or without any `is`, the run is a failure.
function tap.done()
  io.write("1..", n_run, "\n")
  if n_failed > 0 then
    error(n_failed .. " of " .. n_run .. " failed", 0)
  end
  if n_run == 0 then
    error("nothing was tested", 0)
  end
  tap.is_done = true
end

return tap
