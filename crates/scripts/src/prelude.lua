-- Prepares a state: hides what scripts must not have, makes the tables of functions, and returns the function that runs a
-- script. `native` has what is written in Rust. A function of `native` answers whether it has succeeded, and then its
-- results, or the text of its error.
local native = ...

local error, pcall_, xpcall, type, tostring, rawget, setmetatable, select =
    error, pcall, xpcall, type, tostring, rawget, setmetatable, select
local begin, freeze, fuel, wrap = syros_begin, syros_freeze, syros_fuel, syros_wrap
syros_begin, syros_freeze, syros_fuel, syros_wrap = nil, nil, nil, nil

-- Units of fuel that the script began with.
local granted = 0
local function start(units, seed)
  granted = units
  begin(units, seed)
end

-- Time is counted in fuel, so that all members find the same: ten nanoseconds a unit.
local os = { clock = function() return (granted - fuel(0)) / 1e8 end }

local function library(functions, fields)
  local made = fields or {}
  for name, f in next, functions do made[name] = wrap(f) end
  return made
end

-- The error of a pcall is the text alone, as in Redis.
local function unwrap(ok, failure, ...)
  if not ok and type(failure) == 'table' then
    local message = rawget(failure, 'err')
    if type(message) == 'string' or type(message) == 'number' then return ok, message end
  end
  return ok, failure, ...
end
function pcall(...) return unwrap(pcall_(...)) end

local host

local redis = {
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
  REDIS_VERSION = native.version, REDIS_VERSION_NUM = native.version_number,
  SERVER_NAME = 'valkey', VALKEY_VERSION = native.version, VALKEY_VERSION_NUM = native.version_number,
  SERVER_VERSION = native.version, SERVER_VERSION_NUM = native.version_number,
}

-- The failure of a function that is wrapped.
local function fail(message) return false, { err = message } end

redis.call = wrap(function(...) return host(...) end)

redis.pcall = wrap(function(...)
  local _, reply = host(...)
  return true, reply
end)

local function one_text(field, ...)
  local message = ...
  if select('#', ...) ~= 1 or type(message) ~= 'string' then
    return nil, { err = 'ERR wrong number or type of arguments' }
  end
  return message
end

function redis.error_reply(...)
  local message, failure = one_text('err', ...)
  if not message then return failure end
  if message:sub(1, 1) == '-' then message = message:sub(2) end
  if not message:find(' ', 1, true) then message = 'ERR ' .. message end
  return { err = message }
end

function redis.status_reply(...)
  local message, failure = one_text('ok', ...)
  if not message then return failure end
  return { ok = message }
end

redis.sha1hex = wrap(function(...)
  if select('#', ...) ~= 1 then return fail('ERR wrong number of arguments') end
  return native.sha1hex((...))
end)

redis.log = wrap(function(...)
  local level = ...
  if select('#', ...) < 2 then return fail('ERR redis.log() requires two arguments or more.') end
  if type(level) ~= 'number' then return fail('ERR First argument must be a number (log level).') end
  if level < 0 or level > 3 then return fail('ERR Invalid debug level.') end
  return true
end)

redis.setresp = wrap(function(...)
  local protocol = ...
  if select('#', ...) ~= 1 then return fail('ERR redis.setresp() requires one argument.') end
  if protocol ~= 2 and protocol ~= 3 then return fail('ERR RESP version must be 2 or 3.') end
  native.setresp(protocol)
  return true
end)

redis.set_repl = wrap(function(...)
  local flags = ...
  if select('#', ...) ~= 1 then return fail('ERR redis.set_repl() requires one argument.') end
  if type(flags) ~= 'number' or flags % 1 ~= 0 or flags < 0 or flags > 3 then
    return fail('ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.')
  end
  return true
end)

function redis.replicate_commands() return true end

redis.acl_check_cmd = wrap(function(...)
  if select('#', ...) == 0 then
    return fail('ERR Please specify at least one argument for this redis.acl_check_cmd() call')
  end
  local ok, reply = host('\0may-call', ...)
  if not ok then return false, reply end
  return true, reply == 1
end)

-- The libraries that the script names.
local libraries = {}
if native.cjson then
  local cjson = library(native.cjson, { _NAME = 'cjson', _VERSION = '2.1.0', null = native.null })
  function cjson.new() return cjson end
  libraries.cjson = cjson
end
if native.cmsgpack then
  libraries.cmsgpack = library(native.cmsgpack, {
    _NAME = 'cmsgpack', _VERSION = 'lua-cmsgpack 0.4.0', _DESCRIPTION = 'MessagePack C implementation for Lua',
    _COPYRIGHT = 'Copyright (C) 2012, Salvatore Sanfilippo',
  })
end
if native.bit then libraries.bit = library(native.bit) end
if native.struct then libraries.struct = library(native.struct) end

local globals = _G
globals.os, globals.redis, globals.server = os, redis, redis
for name, made in next, libraries do globals[name] = freeze(made) or made end

local of_globals = {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
}
setmetatable(globals, of_globals)
for _, each in next, { os, redis, string, table, math, coroutine, of_globals, getmetatable('') } do
  freeze(each)
end

-- What becomes of an error that nobody has caught: a table with its text, and where it was raised.
local function failed(failure)
  local source, line = native.where()
  if type(failure) ~= 'table' then
    failure = { err = 'ERR ' .. tostring(failure) }
  end
  return { err = rawget(failure, 'err'), source = source, line = line }
end

-- Runs a script with this much fuel.
local function run(script, calls, keys, arguments, units, seed)
  host = calls
  globals.KEYS, globals.ARGV = keys, arguments
  freeze(globals)
  start(units, seed)
  return xpcall(script, failed)
end

return {
  run = run, fuel = fuel, begin = begin,
  -- What the prelude of libraries needs.
  kit = {
    begin = start, failed = failed, fail = fail, freeze = freeze, globals = globals, of_globals = of_globals,
    redis = redis, wrap = wrap, xpcall = xpcall,
    set_host = function(calls) host = calls end,
  },
}
