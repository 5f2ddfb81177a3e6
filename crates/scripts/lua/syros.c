/*
** What Syros adds to Lua: fuel, and functions whose results are the same on all machines.
** The other files say `syros' in a comment wherever they differ from Lua 5.1.5.
*/

#include <limits.h>
#include <math.h>
#include <stdio.h>

#define LUA_CORE

#include "lua.h"
#include "lauxlib.h"
#include "lobject.h"
#include "lstate.h"


/*
** Takes so much fuel, and fails if there is not so much. For C functions; instructions count by themselves.
*/
LUA_API void syros_charge (lua_State *L, size_t units) {
  global_State *g = G(L);
  if (units >= (size_t)1 << 40) units = (size_t)1 << 40;
  g->fuel -= (long long)units;
  if (g->fuel < 0) luaL_error(L, "out of fuel");
}


/*
** The number of an object, which stands for its address.
*/
LUA_API unsigned int syros_serial (lua_State *L, int index) {
  const void *object = lua_topointer(L, index);
  switch (lua_type(L, index)) {
    case LUA_TTABLE: return ((const Table *)object)->serial;
    case LUA_TFUNCTION: return ((const Closure *)object)->c.serial;
    case LUA_TTHREAD: return ((const lua_State *)object)->serial;
    case LUA_TUSERDATA: return ((const Udata *)object - 1)->uv.serial;
    default: return 0;  /* the only light userdata is NULL */
  }
}


/*
** What writing a number costs: the digits of a very large or a very small one take long.
*/
LUA_API long long syros_number_units (lua_Number n) {
  int exponent = 0;
  if (n - n == 0) frexp(n, &exponent);
  return 16 + (exponent < 0 ? -exponent : exponent) / 4;
}


/*
** Processors disagree about the sign of 0/0; this is the one of x86.
*/
LUA_API void syros_number2str (char *to, lua_Number n) {
  if (n != n)
    sprintf(to, "-nan");
  else
    sprintf(to, LUA_NUMBER_FMT, n);
}


/*
** Conversions of numbers that are out of range give what x86 gives.
*/
LUA_API int syros_number2int (lua_Number n) {
  return (n > -2147483649.0 && n < 2147483648.0) ? (int)n : INT_MIN;
}


LUA_API lua_Integer syros_number2integer (lua_Number n) {
  return (n >= -9223372036854775808.0 && n < 9223372036854775808.0)
         ? (lua_Integer)n : (lua_Integer)LLONG_MIN;
}


/*
** These parts of Lua reach the system, and are not here.
*/
LUALIB_API int luaopen_io (lua_State *L) { return luaL_error(L, "not available"); }
LUALIB_API int luaopen_os (lua_State *L) { return luaL_error(L, "not available"); }
LUALIB_API int luaopen_debug (lua_State *L) { return luaL_error(L, "not available"); }
LUALIB_API int luaopen_package (lua_State *L) { return luaL_error(L, "not available"); }
LUALIB_API void luaL_openlibs (lua_State *L) { luaL_error(L, "not available"); }
