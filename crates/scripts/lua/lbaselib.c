/*
** $Id: lbaselib.c,v 1.191.1.6 2008/02/14 16:46:22 roberto Exp $
** Basic library
** See Copyright Notice in lua.h
*/



#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define lbaselib_c
#define LUA_LIB

#include "lua.h"

#include "lauxlib.h"
#include "lualib.h"
#include "lobject.h"
#include "lstate.h"  /* syros */
#include "ldo.h"  /* syros */
#include "lgc.h"  /* syros */
#include "lmem.h"  /* syros */
#include "lstring.h"  /* syros */
#include "lzio.h"  /* syros */
#include <limits.h>  /* syros */




/*
** If your system does not support `stdout', you can just remove this function.
** If you need, you can define your own `print' function, following this
** model but changing `fputs' to put the strings at a proper place
** (a console window or a log file, for instance).
*/
static int luaB_tonumber (lua_State *L) {
  int base = luaL_optint(L, 2, 10);
  if (base == 10) {  /* standard conversion */
    luaL_checkany(L, 1);
    if (lua_isnumber(L, 1)) {
      lua_pushnumber(L, lua_tonumber(L, 1));
      return 1;
    }
  }
  else {
    const char *s1 = luaL_checkstring(L, 1);
    char *s2;
    unsigned long n;
    luaL_argcheck(L, 2 <= base && base <= 36, 2, "base out of range");
    syros_charge(L, lua_objlen(L, 1) / 2);
    n = strtoul(s1, &s2, base);
    if (s1 != s2) {  /* at least one valid digit? */
      while (isspace((unsigned char)(*s2))) s2++;  /* skip trailing spaces */
      if (*s2 == '\0') {  /* no invalid trailing characters? */
        lua_pushnumber(L, (lua_Number)n);
        return 1;
      }
    }
  }
  lua_pushnil(L);  /* else not a number */
  return 1;
}


static int luaB_error (lua_State *L) {
  int level = luaL_optint(L, 2, 1);
  lua_settop(L, 1);
  if (lua_isstring(L, 1) && level > 0) {  /* add extra information? */
    luaL_where(L, level);
    lua_pushvalue(L, 1);
    lua_concat(L, 2);
  }
  return lua_error(L);
}


static int luaB_getmetatable (lua_State *L) {
  luaL_checkany(L, 1);
  if (!lua_getmetatable(L, 1)) {
    lua_pushnil(L);
    return 1;  /* no metatable */
  }
  luaL_getmetafield(L, 1, "__metatable");
  return 1;  /* returns either __metatable field (if present) or metatable */
}


static int luaB_setmetatable (lua_State *L) {
  int t = lua_type(L, 2);
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_argcheck(L, t == LUA_TNIL || t == LUA_TTABLE, 2,
                    "nil or table expected");
  if (luaL_getmetafield(L, 1, "__metatable"))
    luaL_error(L, "cannot change a protected metatable");
  lua_settop(L, 2);
  lua_setmetatable(L, 1);
  return 1;
}


static int luaB_rawequal (lua_State *L) {
  luaL_checkany(L, 1);
  luaL_checkany(L, 2);
  lua_pushboolean(L, lua_rawequal(L, 1, 2));
  return 1;
}


static int luaB_rawget (lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checkany(L, 2);
  lua_settop(L, 2);
  lua_rawget(L, 1);
  return 1;
}

static int luaB_rawset (lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checkany(L, 2);
  luaL_checkany(L, 3);
  lua_settop(L, 3);
  lua_rawset(L, 1);
  return 1;
}


static int luaB_type (lua_State *L) {
  luaL_checkany(L, 1);
  lua_pushstring(L, luaL_typename(L, 1));
  return 1;
}


static int luaB_next (lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 2);  /* create a 2nd argument if there isn't one */
  if (lua_next(L, 1))
    return 2;
  else {
    lua_pushnil(L);
    return 1;
  }
}


static int luaB_pairs (lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_pushvalue(L, lua_upvalueindex(1));  /* return generator, */
  lua_pushvalue(L, 1);  /* state, */
  lua_pushnil(L);  /* and initial value */
  return 3;
}


static int ipairsaux (lua_State *L) {
  int i = luaL_checkint(L, 2);
  luaL_checktype(L, 1, LUA_TTABLE);
  i++;  /* next value */
  lua_pushinteger(L, i);
  lua_rawgeti(L, 1, i);
  return (lua_isnil(L, -1)) ? 0 : 2;
}


static int luaB_ipairs (lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_pushvalue(L, lua_upvalueindex(1));  /* return generator, */
  lua_pushvalue(L, 1);  /* state, */
  lua_pushinteger(L, 0);  /* and initial value */
  return 3;
}


static int luaB_assert (lua_State *L) {
  luaL_checkany(L, 1);
  if (!lua_toboolean(L, 1))
    return luaL_error(L, "%s", luaL_optstring(L, 2, "assertion failed!"));
  return lua_gettop(L);
}


static int luaB_unpack (lua_State *L) {
  int i, e;
  unsigned int n;  /* syros: of Lua 5.3, whose differences cannot overflow */
  luaL_checktype(L, 1, LUA_TTABLE);
  i = luaL_optint(L, 2, 1);
  e = luaL_opt(L, luaL_checkint, 3, luaL_getn(L, 1));
  if (i > e) return 0;  /* empty range */
  n = (unsigned int)e - (unsigned int)i;  /* number of elements minus 1 */
  if (n >= (unsigned int)INT_MAX || !lua_checkstack(L, (int)(++n)))
    return luaL_error(L, "too many results to unpack");
  syros_charge(L, (size_t)n);  /* syros */
  lua_rawgeti(L, 1, i);  /* push arg[i] (avoiding overflow problems) */
  while (i++ < e)  /* push arg[i + 1...e] */
    lua_rawgeti(L, 1, i);
  return (int)n;
}


static int luaB_select (lua_State *L) {
  int n = lua_gettop(L);
  if (lua_type(L, 1) == LUA_TSTRING && *lua_tostring(L, 1) == '#') {
    lua_pushinteger(L, n-1);
    return 1;
  }
  else {
    int i = luaL_checkint(L, 1);
    if (i < 0) i = n + i;
    else if (i > n) i = n;
    luaL_argcheck(L, 1 <= i, 1, "index out of range");
    return n - i;
  }
}


static int luaB_pcall (lua_State *L) {
  int status;
  luaL_checkany(L, 1);
  status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  lua_pushboolean(L, (status == 0));
  lua_insert(L, 1);
  return lua_gettop(L);  /* return status + all results */
}


static int luaB_xpcall (lua_State *L) {
  int status;
  luaL_checkany(L, 2);
  lua_settop(L, 2);
  lua_insert(L, 1);  /* put error function under function to be called */
  status = lua_pcall(L, 0, LUA_MULTRET, 1);
  lua_pushboolean(L, (status == 0));
  lua_replace(L, 1);
  return lua_gettop(L);  /* return status + all results */
}


static int luaB_tostring (lua_State *L) {
  luaL_checkany(L, 1);
  if (luaL_callmeta(L, 1, "__tostring"))  /* is there a metafield? */
    return 1;  /* use its value */
  switch (lua_type(L, 1)) {
    case LUA_TNUMBER:
      lua_pushstring(L, lua_tostring(L, 1));
      break;
    case LUA_TSTRING:
      lua_pushvalue(L, 1);
      break;
    case LUA_TBOOLEAN:
      lua_pushstring(L, (lua_toboolean(L, 1) ? "true" : "false"));
      break;
    case LUA_TNIL:
      lua_pushliteral(L, "nil");
      break;
    default:
      {  /* syros: not an address */
        char number[16];
        sprintf(number, "0x%08x", syros_serial(L, 1));
        lua_pushfstring(L, "%s: %s", luaL_typename(L, 1), number);
      }
      break;
  }
  return 1;
}


/*
** syros: what a script can find out of a state, by the fuel that it takes to allocate and to find strings.
*/
typedef struct Shape {
  long long strings, chains, main_stack, main_calls, buffer, takes_keys;
  long long host;  /* number of the upvalue that calls commands; 0 for a library */
  long long bytes;  /* without userdata and the stacks of other threads; 0 before that is known */
} Shape;

static const char shape_key = 'k';

/*
** syros: the tables of keys and arguments, which are made before the script begins, have the numbers from this one on.
*/
#define FIRST_SERIAL (1 << 19)


static Shape shape_of (lua_State *L) {
  global_State *g = G(L);
  Shape shape;
  memset(&shape, 0, sizeof(shape));
  shape.strings = g->strt.nuse;
  shape.chains = g->strt.size;
  shape.main_stack = g->mainthread->stacksize;
  shape.main_calls = g->mainthread->size_ci;
  shape.buffer = (long long)g->buff.buffsize;
  return shape;
}


/*
** syros: bytes of what scripts leave behind if they leave anything: not of userdata, which stay until they have been
** finalized, nor of the stack on which this side keeps what it refers to.
*/
static long long bytes_of (lua_State *L) {
  global_State *g = G(L);
  long long bytes = (long long)g->totalbytes;
  GCObject *o;
  if (g->young.is_kept) {
    lua_State *uncounted = g->uncounted;
    bytes -= (long long)g->young.userdata_bytes;
    if (uncounted != NULL)
      bytes -= (long long)sizeof(TValue) * uncounted->stacksize + (long long)sizeof(CallInfo) * uncounted->size_ci;
    return bytes;
  }
  for (o = g->rootgc; o != NULL; o = o->gch.next) {
    if (o->gch.tt == LUA_TUSERDATA)
      bytes -= (long long)sizeudata(gco2u(o));
    else if (o->gch.tt == LUA_TTHREAD && gco2th(o) != g->mainthread)
      bytes -= (long long)sizeof(TValue) * gco2th(o)->stacksize + (long long)sizeof(CallInfo) * gco2th(o)->size_ci;
  }
  return bytes;
}


/*
** syros: the script has no keys and no arguments. Its globals have their places, or the order of `pairs' would change.
*/
static void forget_keys (lua_State *L) {
  lua_pushboolean(L, 0);
  lua_setglobal(L, "KEYS");
  lua_pushboolean(L, 0);
  lua_setglobal(L, "ARGV");
}


/*
** syros: what the script called commands with is gone. Below the function with this upvalue nothing else of what was made
** before the script refers to what was made for it.
*/
static void forget_host (lua_State *L, int run, int host) {
  lua_rawgeti(L, run, 4);
  lua_pushnil(L);
  lua_setupvalue(L, -2, host);
  lua_pop(L, 1);
}


/*
** syros: keeps a function, and what the state is like: its shape, its strings, and the order of their chains, each with
** NULL behind it. There is one other thread, on which this side keeps what it refers to: how large that is is no matter of
** scripts any more. The second argument is the function that runs it if it is a script, which has keys.
*/
static int syros_keep (lua_State *L) {
  stringtable *strings = &G(L)->strt;
  Shape *shape;
  GCObject **order;
  GCObject *o;
  const char *name;
  int chain, takes_keys, host = 0, kept = 4;
  G(L)->fuel = (long long)1 << 60;
  for (o = G(L)->rootgc; o != NULL; o = o->gch.next)
    if (o->gch.tt == LUA_TTHREAD && gco2th(o) != G(L)->mainthread) G(L)->uncounted = gco2th(o);
  takes_keys = lua_isfunction(L, 2);
  if (takes_keys) {
    forget_keys(L);
    do {
      name = lua_getupvalue(L, 2, ++host);
      lua_settop(L, 2);
    } while (name != NULL && strcmp(name, "host") != 0);
    if (name == NULL) return luaL_error(L, "no host");
  }
  lua_settop(L, 2);
  lua_createtable(L, (int)strings->nuse + kept, 0);
  lua_insert(L, 1);
  lua_rawseti(L, 1, 4);
  lua_rawseti(L, 1, 1);
  shape = (Shape *)lua_newuserdata(L, sizeof(Shape));
  lua_rawseti(L, 1, 2);
  order = (GCObject **)lua_newuserdata(L, (size_t)(strings->nuse + strings->size) * sizeof(GCObject *));
  lua_rawseti(L, 1, 3);
  *shape = shape_of(L);
  shape->takes_keys = takes_keys;
  shape->host = host;
  for (chain = 0; chain < strings->size; chain++) {
    for (o = strings->hash[chain]; o != NULL; o = o->gch.next) {
      *order++ = o;
      setsvalue2s(L, L->top, rawgco2ts(o));
      L->top++;
      lua_rawseti(L, 1, ++kept);
    }
    *order++ = NULL;
  }
  lua_pushlightuserdata(L, (void *)&shape_key);
  lua_insert(L, 1);
  lua_rawset(L, LUA_REGISTRYINDEX);
  G(L)->serial = FIRST_SERIAL;
  return 0;
}


/*
** syros: the strings of the state, of which there are only those that were kept, in the chains in which they were then.
*/
static void restore_chains (lua_State *L, int chains, GCObject **order) {
  stringtable *strings = &G(L)->strt;
  int chain;
  luaM_reallocvector(L, strings->hash, strings->size, chains, GCObject *);
  strings->size = chains;
  for (chain = 0; chain < chains; chain++) {
    GCObject **place = &strings->hash[chain];
    for (; *order != NULL; order++) {
      *place = *order;
      place = &(*order)->gch.next;
    }
    order++;
    *place = NULL;
  }
}


/*
** syros: the function that has been kept.
*/
static int syros_kept (lua_State *L) {
  lua_pushlightuserdata(L, (void *)&shape_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  lua_rawgeti(L, -1, 1);
  return 1;
}


/*
** syros: most runs of a script after which what they have left is not collected with everything else: userdata is never
** freed in another way.
*/
#define YOUNG_USERDATA_MAX	256


/*
** syros: lets everything go that nothing refers to. True if the state is now what it was when it was kept, as far as a
** script can find out.
*/
static int syros_settle (lua_State *L) {
  global_State *g = G(L);
  Shape *kept, now;
  GCObject **order;
  StkId end;
  CallInfo *ci;
  int is_aged, is_same;
  if (L != g->mainthread) return 0;
  g->fuel = (long long)1 << 60;
  lua_pushlightuserdata(L, (void *)&shape_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  if (!lua_istable(L, -1)) return 0;
  lua_rawgeti(L, -1, 2);
  kept = (Shape *)lua_touserdata(L, -1);
  lua_rawgeti(L, -2, 3);
  order = (GCObject **)lua_touserdata(L, -1);
  hvalue(gt(L))->readonly = 0;
  if (kept->takes_keys) {
    forget_keys(L);
    forget_host(L, lua_gettop(L) - 2, (int)kept->host);
  }
  lua_settop(L, 0);
  is_aged = g->young.userdata < YOUNG_USERDATA_MAX && luaC_freeyoung(L);
  if (!is_aged) {
    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCSTOP, 0);
  }
  if (g->strt.nuse != kept->strings) return 0;
  if (g->strt.size != kept->chains) restore_chains(L, (int)kept->chains, order);
  luaZ_resizebuffer(L, &g->buff, (size_t)kept->buffer);
  end = L->top;
  for (ci = L->base_ci; ci <= L->ci; ci++)
    if (ci->top > end) end = ci->top;
  if (L->size_ci != kept->main_calls && L->ci - L->base_ci + 1 < kept->main_calls)
    luaD_reallocCI(L, (int)kept->main_calls);
  if (L->stacksize != kept->main_stack && end - L->stack < kept->main_stack - EXTRA_STACK)
    luaD_reallocstack(L, (int)kept->main_stack - 1 - EXTRA_STACK);
  now = shape_of(L);
  now.takes_keys = kept->takes_keys;
  now.host = kept->host;
  now.bytes = bytes_of(L);
  if (kept->bytes == 0) kept->bytes = now.bytes;
  g->serial = FIRST_SERIAL;
  is_same = memcmp(&now, kept, sizeof(now)) == 0;
  if (is_same && !is_aged) luaC_age(L);
  lua_pushboolean(L, is_same);
  return 1;
}


/*
** syros: begins a script with so much fuel and this seed. Objects have the same numbers whatever was made before.
** What else it does has no name of its own, which a script could have among its strings: with a function, it keeps that and
** the state; with `false', it returns that function; with `true', it makes the state again what it was.
*/
static int syros_begin (lua_State *L) {
  global_State *g = G(L);
  if (lua_isfunction(L, 1)) return syros_keep(L);
  if (lua_isboolean(L, 1)) return lua_toboolean(L, 1) ? syros_settle(L) : syros_kept(L);
  g->serial = 1 << 20;
  g->random = (unsigned long long)luaL_checknumber(L, 2);
  g->fuel = (long long)luaL_checknumber(L, 1);
  return 0;
}


/*
** syros: takes so much fuel, or none; what is left. If nothing is, no instruction is executed any more.
*/
static int syros_fuel (lua_State *L) {
  global_State *g = G(L);
  g->fuel -= (long long)luaL_optnumber(L, 1, 0);
  lua_pushnumber(L, (lua_Number)g->fuel);
  return 1;
}


/*
** syros: from now on nothing in this table can be changed; with `false', it can be again.
*/
static int syros_freeze (lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  ((Table *)lua_topointer(L, 1))->readonly = (lu_byte)(lua_isnone(L, 2) || lua_toboolean(L, 2));
  return 0;
}


/*
** syros: calls the function that is its upvalue. If that answers false, what comes behind is the error, else the results.
*/
static int syros_call (lua_State *L) {
  syros_charge(L, 20 + 10 * (size_t)lua_gettop(L));
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  if (!lua_toboolean(L, 1)) {
    lua_settop(L, 2);
    return lua_error(L);
  }
  lua_remove(L, 1);
  return lua_gettop(L);
}


/*
** syros: a function in C that does so. A call of one leaves the caller on the stack, even if it is the caller's last deed:
** so errors say where it stands.
*/
static int syros_wrap (lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_pushcclosure(L, syros_call, 1);
  return 1;
}


static const luaL_Reg base_funcs[] = {
  {"syros_begin", syros_begin},
  {"syros_fuel", syros_fuel},
  {"syros_freeze", syros_freeze},
  {"syros_wrap", syros_wrap},
  {"assert", luaB_assert},
  {"error", luaB_error},
  {"getmetatable", luaB_getmetatable},
  {"next", luaB_next},
  {"pcall", luaB_pcall},
  {"rawequal", luaB_rawequal},
  {"rawget", luaB_rawget},
  {"rawset", luaB_rawset},
  {"select", luaB_select},
  {"setmetatable", luaB_setmetatable},
  {"tonumber", luaB_tonumber},
  {"tostring", luaB_tostring},
  {"type", luaB_type},
  {"unpack", luaB_unpack},
  {"xpcall", luaB_xpcall},
  {NULL, NULL}
};


/*
** {======================================================
** Coroutine library
** =======================================================
*/

#define CO_RUN	0	/* running */
#define CO_SUS	1	/* suspended */
#define CO_NOR	2	/* 'normal' (it resumed another coroutine) */
#define CO_DEAD	3

static const char *const statnames[] =
    {"running", "suspended", "normal", "dead"};

static int costatus (lua_State *L, lua_State *co) {
  if (L == co) return CO_RUN;
  switch (lua_status(co)) {
    case LUA_YIELD:
      return CO_SUS;
    case 0: {
      lua_Debug ar;
      if (lua_getstack(co, 0, &ar) > 0)  /* does it have frames? */
        return CO_NOR;  /* it is running */
      else if (lua_gettop(co) == 0)
          return CO_DEAD;
      else
        return CO_SUS;  /* initial state */
    }
    default:  /* some error occured */
      return CO_DEAD;
  }
}


static int luaB_costatus (lua_State *L) {
  lua_State *co = lua_tothread(L, 1);
  luaL_argcheck(L, co, 1, "coroutine expected");
  lua_pushstring(L, statnames[costatus(L, co)]);
  return 1;
}


static int auxresume (lua_State *L, lua_State *co, int narg) {
  int status = costatus(L, co);
  if (!lua_checkstack(co, narg))
    luaL_error(L, "too many arguments to resume");
  if (status != CO_SUS) {
    lua_pushfstring(L, "cannot resume %s coroutine", statnames[status]);
    return -1;  /* error flag */
  }
  lua_xmove(L, co, narg);
  lua_setlevel(L, co);
  status = lua_resume(co, narg);
  if (status == 0 || status == LUA_YIELD) {
    int nres = lua_gettop(co);
    if (!lua_checkstack(L, nres + 1))
      luaL_error(L, "too many results to resume");
    lua_xmove(co, L, nres);  /* move yielded values */
    return nres;
  }
  else {
    lua_xmove(co, L, 1);  /* move error message */
    return -1;  /* error flag */
  }
}


static int luaB_coresume (lua_State *L) {
  lua_State *co = lua_tothread(L, 1);
  int r;
  luaL_argcheck(L, co, 1, "coroutine expected");
  r = auxresume(L, co, lua_gettop(L) - 1);
  if (r < 0) {
    lua_pushboolean(L, 0);
    lua_insert(L, -2);
    return 2;  /* return false + error message */
  }
  else {
    lua_pushboolean(L, 1);
    lua_insert(L, -(r + 1));
    return r + 1;  /* return true + `resume' returns */
  }
}


static int luaB_auxwrap (lua_State *L) {
  lua_State *co = lua_tothread(L, lua_upvalueindex(1));
  int r = auxresume(L, co, lua_gettop(L));
  if (r < 0) {
    if (lua_isstring(L, -1)) {  /* error object is a string? */
      luaL_where(L, 1);  /* add extra info */
      lua_insert(L, -2);
      lua_concat(L, 2);
    }
    lua_error(L);  /* propagate error */
  }
  return r;
}


static int luaB_cocreate (lua_State *L) {
  lua_State *NL = lua_newthread(L);
  luaL_argcheck(L, lua_isfunction(L, 1) && !lua_iscfunction(L, 1), 1,
    "Lua function expected");
  lua_pushvalue(L, 1);  /* move function to top */
  lua_xmove(L, NL, 1);  /* move function from L to NL */
  return 1;
}


static int luaB_cowrap (lua_State *L) {
  luaB_cocreate(L);
  lua_pushcclosure(L, luaB_auxwrap, 1);
  return 1;
}


static int luaB_yield (lua_State *L) {
  return lua_yield(L, lua_gettop(L));
}


static int luaB_corunning (lua_State *L) {
  if (lua_pushthread(L))
    lua_pushnil(L);  /* main thread is not a coroutine */
  return 1;
}


static const luaL_Reg co_funcs[] = {
  {"create", luaB_cocreate},
  {"resume", luaB_coresume},
  {"running", luaB_corunning},
  {"status", luaB_costatus},
  {"wrap", luaB_cowrap},
  {"yield", luaB_yield},
  {NULL, NULL}
};

/* }====================================================== */


static void auxopen (lua_State *L, const char *name,
                     lua_CFunction f, lua_CFunction u) {
  lua_pushcfunction(L, u);
  lua_pushcclosure(L, f, 1);
  lua_setfield(L, -2, name);
}


static void base_open (lua_State *L) {
  /* set global _G */
  lua_pushvalue(L, LUA_GLOBALSINDEX);
  lua_setglobal(L, "_G");
  /* open lib into global table */
  luaL_register(L, "_G", base_funcs);
  lua_pushliteral(L, LUA_VERSION);
  lua_setglobal(L, "_VERSION");  /* set global _VERSION */
  /* `ipairs' and `pairs' need auxiliary functions as upvalues */
  auxopen(L, "ipairs", luaB_ipairs, ipairsaux);
  auxopen(L, "pairs", luaB_pairs, luaB_next);
}


LUALIB_API int luaopen_base (lua_State *L) {
  base_open(L);
  luaL_register(L, LUA_COLIBNAME, co_funcs);
  return 2;
}

