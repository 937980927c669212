(function (host, nonce) {
  "use strict";
  const stringify = JSON.stringify, parse = JSON.parse, Text = String, Big = BigInt, Failure = Error, Wrong = TypeError;
  const Later = Promise, then = Promise.prototype.then, apply = Reflect.apply, define = Object.defineProperty;
  const startsWith = Text.prototype.startsWith, slice = Text.prototype.slice;
  const send = host.send, fetch = host.fetch, write = host.write, done = host.done, fail = host.fail;
  const open = Object.create(null);
  let last = 0;

  function encode(value) {
    try {
      return stringify(value);
    } catch (e) {
      return stringify(value, (key, inner) => typeof inner === "bigint" ? nonce + Text(inner) : inner);
    }
  }
  function decode(text, big) {
    if (!big) return parse(text);
    return parse(text, (key, value) =>
      typeof value === "string" && apply(startsWith, value, [nonce]) ? Big(apply(slice, value, [nonce.length])) : value);
  }
  function show(value) {
    if (typeof value === "string" || typeof value === "number") return Text(value);
    try {
      if (value instanceof Failure) return Text(value);
      const text = encode(value);
      if (text !== undefined) return text;
    } catch (e) {}
    try {
      return Text(value);
    } catch (e) {
      return "[" + typeof value + "]";
    }
  }
  function failed(value) {
    let stack = "";
    try {
      if (value instanceof Failure) stack = Text(value.stack);
    } catch (e) {}
    fail(show(value) || '""', stack, value === null);
  }
  function refuse(e, code, message) {
    define(e, "message", {value: message, writable: true, configurable: true});
    define(e, "code", {value: code, writable: true, configurable: true, enumerable: true});
    return e;
  }
  function call(server, tool, args) {
    const e = new Failure();
    return new Later((resolve, reject) => {
      if (typeof server !== "string" || typeof tool !== "string") throw new Wrong("call(server, tool, args): server and tool must be strings");
      const text = args === undefined || args === null ? "{}" : encode(args);
      if (typeof text !== "string") throw new Wrong("call(server, tool, args): args must be an object");
      const id = ++last, refused = send(id, server, tool, text);
      if (refused !== "") throw refuse(e, "EXECUTION_ERROR", refused);
      open[id] = {resolve, reject, e};
    });
  }
  function settle(id, code, text, big) {
    const one = open[id];
    delete open[id];
    if (code !== "") return one.reject(refuse(one.e, code, text));
    try {
      one.resolve(decode(text, big));
    } catch (e) {
      one.reject(e);
    }
  }
  function now(kind, name, what) {
    if (typeof what !== "string") throw new Wrong(name + " must be a string");
    const got = fetch(kind, what);
    if (got[0] !== "") throw refuse(new Failure(), got[0], got[1]);
    return decode(got[1], got[2]);
  }
  function log(...all) {
    let line = "";
    for (let i = 0; i < all.length; i++) line += (i ? " " : "") + show(all[i]);
    write(line);
  }
  function start(program, args, big) {
    apply(then, program(args === "" ? undefined : decode(args, big)), [(value) => {
      let text;
      try {
        text = encode(value);
      } catch (e) {
        return failed(e);
      }
      done(typeof text === "string" ? text : "");
    }, failed]);
  }
  const shown = {call, result: (handle) => now("result", "result(handle): handle", handle),
    file: (path) => now("file", "file(path): path", path),
    console: {log, info: log, debug: log, warn: log, error: log}};
  /* As JSON a promise is {}. A program that forgets an await would return that, or send it to a server, instead of a result. */
  define(Later.prototype, "toJSON", {value: function () {
    throw new Wrong("a promise is not a value; await it, and several with await Promise.all(list)");
  }, writable: true, configurable: true});
  /* Results of calls are values. Models that expect texts parse them, and a program that fails there has made its calls in vain. */
  define(JSON, "parse", {value: function (text, reviver) {
    const value = typeof text === "object" && text !== null && !(text instanceof Text) && reviver === undefined;
    return value ? text : parse(text, reviver);
  }, writable: true, configurable: true});
  for (const name in shown) define(globalThis, name, {value: shown[name], writable: true, configurable: true});
  for (const name in host) delete globalThis["mcpx_" + name];
  return {settle, start, failed};
})
