// Requests to this mcpx.
import { has, t } from "./texts.js";

// Failure is a refused request: its status, and mcpx's word for the reason where it has one.
export class Failure extends Error {
  constructor(data, status) {
    const faults = Array.isArray(data.faults) ? data.faults.filter((one) => !String(data.error).includes(one)) : [];
    // mcpx says it in English; the table of another language has the codes that it can say.
    const text = has("code." + data.code) ? t("code." + data.code) : undefined;
    super([text ?? data.error ?? t("answer-is", { n: status }), ...faults, ...(text || !data.hint ? [] : [data.hint])].join("\n"));
    this.status = status;
    this.code = data.code;
    this.missing = data.missing;
  }
}

// A page of mcpx ui has its key here, not in a cookie: cookies would go to every port of this machine.
const kept = "mcpx-session";

const key = () => {
  try {
    return sessionStorage.getItem(kept);
  } catch {
    return keyHere;
  }
};
let keyHere = null; // where the browser stores nothing for this page

export function keep(session) {
  keyHere = session;
  try {
    sessionStorage.setItem(kept, session);
  } catch {}
}

async function sent(path, method, text, { signal, accept } = {}) {
  const options = { method, signal, headers: {} };
  if (key()) options.headers["X-Mcpx-Session"] = key();
  if (accept) options.headers.Accept = accept;
  if (text !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = text;
  }
  let response;
  try {
    response = await fetch("ui/" + path, options);
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new Failure({ error: t("no-connection") }, 0);
  }
  if (response.ok) return response;
  throw new Failure(await response.json().catch(() => ({})), response.status);
}

export const path = (...parts) => parts.map(encodeURIComponent).join("/");

// ask sends a request and returns the JSON of the answer.
export async function ask(to, method = "GET", body = undefined) {
  const text = await (await sent(to, method, body === undefined ? undefined : JSON.stringify(body))).text();
  return text ? JSON.parse(text) : {};
}

// sendText is ask with JSON whose numbers keep their digits.
export const sendText = (to, method, text) => sent(to, method, text);

// askExactly is ask for answers whose numbers matter to the last digit.
export const askExactly = async (to) => parse(await (await sent(to, "GET")).text());

// parts yields the parts of an answer as they come, without what separates them.
async function* parts(response, separator) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    const found = (rest + (value ?? "")).split(separator);
    rest = found.pop();
    yield* found;
    if (done) return;
  }
}

// run sends a request whose answer is lines of JSON: progress, and at last the result, which it returns.
export async function run(to, text, progress, signal) {
  const response = await sent(to, "POST", text, { signal, accept: "application/x-ndjson" });
  for await (const line of parts(response, "\n")) {
    const data = JSON.parse(line);
    if (data.result) return data.result;
    if (data.error) throw new Failure(data, 500);
    if (data.progress) progress(data.progress);
  }
  throw new Failure({ error: t("cut-off") }, 0);
}

// events yields the events of a stream as {name, data}, until it ends or breaks. It throws a Failure if there is none.
export async function* events(signal, opened) {
  const response = await sent("events", "GET", undefined, { signal });
  opened();
  for await (const part of parts(response, "\n\n")) {
    const one = { name: "message", data: "" };
    for (const line of part.split("\n")) {
      if (line.startsWith("event: ")) one.name = line.slice(7);
      if (line.startsWith("data: ")) one.data += line.slice(6);
    }
    if (one.data) yield one;
  }
}

// --- JSON whose numbers keep their digits ---

// Digits is a number that JavaScript would write with other digits, such as one beyond 2^53, or 1.10.
export class Digits {
  constructor(source) {
    this.source = source;
  }
}

// No server can know the mark, so that none of its strings is taken for a number.
const mark = [...crypto.getRandomValues(new Uint32Array(4))].map((n) => n.toString(36)).join("-") + ":";

// parse is JSON.parse, but for numbers that would change: they become Digits. It throws what JSON.parse throws.
export function parse(text) {
  let value = JSON.parse(text);
  if (!/\d{16}|\d[.eE]/.test(text)) return value;
  const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g,
    (part) => (part[0] === '"' || String(Number(part)) === part ? part : JSON.stringify(mark + part)));
  return JSON.parse(marked, (_, one) => (typeof one === "string" && one.startsWith(mark) ? new Digits(one.slice(mark.length)) : one));
}

// write is JSON.stringify, with the digits that were read. indent is for people.
export function write(value, indent = "", at = "") {
  if (value instanceof Digits) return value.source;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const line = indent ? "\n" + at + indent : "";
  const inner = Array.isArray(value)
    ? value.map((one) => line + write(one, indent, at + indent))
    : Object.entries(value).map(([key, one]) => `${line}${JSON.stringify(key)}:${indent ? " " : ""}${write(one, indent, at + indent)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return open + inner.join(",") + (inner.length && indent ? "\n" + at : "") + close;
}
