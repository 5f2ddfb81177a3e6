-- Prepares a state in which a library is loaded, beside what the other prelude has prepared.
local native, kit = ...

local begin, fail, failed, freeze, wrap = kit.begin, kit.fail, kit.failed, kit.freeze, kit.wrap
local globals, redis, of_globals, xpcall = kit.globals, kit.redis, kit.of_globals, kit.xpcall

-- The functions that the library has registered which is being loaded: names, and tables about them.
local order, registered = {}, {}

-- False while a function of the library is called, which may have kept what it found while it was being loaded.
local is_loading = true

-- What is wrong with the named arguments of register_function, if anything is.
local function problem_of(named)
  local of = 'server.register_function'
  for key, value in next, named do
    if type(key) ~= 'string' then return 'ERR named argument key given to ' .. of .. ' is not a string' end
    if key == 'function_name' or key == 'description' then
      if type(value) ~= 'string' then return 'ERR ' .. key .. ' argument given to ' .. of .. ' must be a string' end
    elseif key == 'callback' then
      if type(value) ~= 'function' then return 'ERR callback argument given to ' .. of .. ' must be a function' end
    elseif key == 'flags' then
      if type(value) ~= 'table' then
        return 'ERR flags argument to ' .. of .. ' must be a table representing function flags'
      end
    else
      return 'ERR unknown argument given to ' .. of
    end
  end
  if not named.function_name then return 'ERR ' .. of .. ' must get a function name argument' end
  if not named.callback then return 'ERR ' .. of .. ' must get a callback argument' end
end

local register = wrap(function(...)
  local of = 'server.register_function'
  if not is_loading then return fail('ERR ' .. of .. ' can only be called on FUNCTION LOAD command') end
  local count, named, callback = select('#', ...), ...
  if count == 0 or count > 2 then return fail('ERR wrong number of arguments to ' .. of) end
  if count == 2 then
    if type(named) ~= 'string' then return fail('ERR first argument to ' .. of .. ' must be a string') end
    if type(callback) ~= 'function' then return fail('ERR second argument to ' .. of .. ' must be a function') end
    named = { function_name = named, callback = callback }
  elseif type(named) ~= 'table' then
    return fail('ERR calling ' .. of .. ' with a single argument is only applicable to Lua table (representing named arguments).')
  end
  local problem = problem_of(named)
  if problem then return fail(problem) end
  local flags = {}
  for at, flag in ipairs(named.flags or {}) do
    if type(flag) ~= 'string' or not native.is_flag(flag) then return fail('ERR unknown flag given') end
    flags[at] = flag
  end
  local name = named.function_name
  if not native.is_name(name) then
    return fail('ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long')
  end
  if registered[name] then return fail('ERR Function already exists in the library') end
  registered[name] = { name, named.description, flags, named.callback }
  order[#order + 1] = name
  return true
end)

-- What a library finds while it is being loaded: it can call no command, and there is no reply that it could shape.
local hidden = { call = true, pcall = true, setresp = true, set_repl = true, acl_check_cmd = true }
local loading = { register_function = register }
for name, value in next, redis do
  if not hidden[name] then loading[name] = value end
end
setmetatable(loading, of_globals)
freeze(loading)

-- Loads a library; what it has registered. Without one: lets the library go that has been loaded.
local function load(script, units, seed)
  if not script then
    order, registered, is_loading = nil, nil, true
    return kit.set_host(nil)
  end
  order, registered = {}, {}
  globals.redis, globals.server = loading, loading
  freeze(globals)
  begin(units, seed)
  local ok, failure = xpcall(script, failed)
  if not ok then return false, failure end
  is_loading = false
  freeze(globals, false)
  globals.redis, globals.server = redis, redis
  freeze(globals)
  local list = {}
  for at = 1, #order do list[at] = registered[order[at]] end
  return true, list
end

-- Calls a function of the library that has been loaded.
local function call(name, calls, keys, arguments)
  kit.set_host(calls)
  local callback = registered[name][4]
  return xpcall(function() return callback(keys, arguments) end, failed)
end

return { load = load, call = call }
