// The script of the status page. Texts from servers and tools are only ever inserted as text nodes.

const $ = (id) => document.getElementById(id);

// el makes an element; strings among the children become text nodes.
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) if (value !== undefined) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== "" && child !== undefined));
  return made;
}

const number = (n) => n.toLocaleString("en", Math.abs(n) >= 10000 ? { notation: "compact", maximumFractionDigits: 1 } : {});
const sum = (list) => (list ?? []).reduce((a, b) => a + b, 0);
const count = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;

// ask sends a request to this mcpx and returns the JSON of the response. If the request is
// refused, it throws an Error with the status and the error text of the response.
async function ask(path, method = "GET", body = undefined) {
  const options = { method };
  if (body !== undefined) {
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  const response = await fetch("ui/" + path, options);
  const data = await response.json().catch(() => ({}));
  if (response.ok) return data;
  const failure = new Error(data.error ?? `the answer is ${response.status}`);
  failure.status = response.status;
  throw failure;
}

function say(text) { $("say").textContent = text; }

// --- signing in and out ---

function showDoor(refusal) {
  stream?.close();
  stream = undefined;
  for (const id of ["page", "search", "sign-out"]) $(id).hidden = true;
  $("about").textContent = "";
  live("");
  $("refusal").textContent = refusal ?? "";
  if ($("door").hidden) {
    $("door").hidden = false;
    $("token").focus();
  }
}

$("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = $("token").value;
  $("token").value = "";
  try {
    await ask("session", "POST", { token });
    await open("The browser did not keep the session: over http it does so on this machine alone. Open the page over https.");
  } catch (failure) {
    $("refusal").textContent = failure.message;
    $("token").focus();
  }
});

$("sign-out").addEventListener("click", async () => {
  await ask("session", "DELETE").catch(() => {});
  location.reload();
});

// --- the state, and its changes ---

let stream, again;
let state; // the state that was received last

function live(text, lost = false) {
  if ($("live").textContent !== text) $("live").textContent = text;
  $("live").classList.toggle("lost", lost);
}

// open shows the page if the viewer may see it, and keeps it up to date. Otherwise it shows
// the sign-in form.
async function open(refusal) {
  clearTimeout(again);
  let session;
  try {
    const now = await ask("state");
    session = now.session;
    show(now.state);
  } catch (failure) {
    if (failure.status === 401) return showDoor(refusal);
    if (failure.status === 403) return showDoor(failure.message);
    live("No connection to mcpx; trying again", true);
    again = setTimeout(open, 5000);
    return;
  }
  $("door").hidden = true;
  $("sign-out").hidden = !session;
  if ($("page").hidden) {
    $("page").hidden = $("search").hidden = false;
    route();
  }
  follow();
}

function follow() {
  stream?.close();
  stream = new EventSource("ui/events");
  stream.onopen = () => live("Live");
  stream.onmessage = (event) => show(JSON.parse(event.data));
  stream.addEventListener("refused", () => open()); // signed out in another tab, or the token is no longer valid
  stream.onerror = () => {
    if (stream?.readyState !== EventSource.CLOSED) return live("No connection to mcpx; trying again", true);
    live("Not live: looking every few seconds"); // too many streams are open, or this viewer may not have one
    again = setTimeout(open, 5000);
  };
}

// threeFigures says what was saved, in tokens.
const threeFigures = (saved) =>
  `definitions ${number(saved.definitions)}, compression ${number(saved.compression)}, left behind a handle ${number(saved.cut)}`;

function show(next) {
  const before = new Map((state?.status.servers ?? []).map((server) => [server.name, server]));
  state = next;
  const { status, hour } = next;
  const saved = status.savings;
  $("about").textContent = [
    status.version, count(status.tools, "tool", "tools"), `since the start ${count(saved.calls, "result", "results")}`, `tokens saved: ${threeFigures(saved)}`,
  ].join(" \u00b7 ");
  plots(hour);
  servers(status.servers, hour);
  const changed = status.servers.filter((server) => before.has(server.name) && before.get(server.name).state !== server.state);
  if (changed.length) say(changed.slice(0, 3).map((server) => `${server.name} is ${server.state}`).join(", "));
  panelFollows(before);
}

// --- plots ---

const svgNames = "http://www.w3.org/2000/svg";

// bars draws a plot with one bar per minute.
function bars(values, label) {
  const svg = document.createElementNS(svgNames, "svg");
  svg.setAttribute("viewBox", `0 0 ${values.length * 4} 40`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  const most = Math.max(...values, 1);
  values.forEach((value, i) => {
    if (value <= 0) return;
    const height = Math.max(2, (value / most) * 40);
    const bar = document.createElementNS(svgNames, "rect");
    for (const [name, at] of Object.entries({ x: i * 4, y: 40 - height, width: 3, height })) bar.setAttribute(name, at);
    svg.append(bar);
  });
  return svg;
}

function plots(hour) {
  const one = (kind, title, values) => {
    const total = number(sum(values));
    const peak = Math.max(...values);
    const most = peak > 0 ? `at most ${number(peak)} a minute` : "none";
    return el("figure", { class: kind },
      el("figcaption", null, el("b", null, total), el("span", null, title)),
      bars(values, `${title} in the last hour: ${total}, ${most}`),
      el("div", { class: "axis", "aria-hidden": "true" }, el("span", null, "60 min ago"), el("span", null, peak > 0 ? most : ""), el("span", null, "now")));
  };
  $("plots").replaceChildren(
    one("calls", "calls", hour.calls), one("errors", "errors", hour.errors), one("saved", "tokens of definitions saved", hour.definitions),
    one("saved", "tokens saved by compression", hour.compression), one("saved", "tokens left behind a handle", hour.cut));
}

// --- servers ---

const rows = new Map(); // table rows by server name; a row is reused, so that it keeps the focus

function row(name) {
  const cells = { link: el("a", { href: "#/" + encodeURIComponent(name) }, name), how: el("small"), state: el("span"), reason: el("span", { class: "reason" }) };
  cells.row = el("tr", { role: "row" },
    el("td", { role: "cell", class: "name" }, cells.link, cells.how), el("td", { role: "cell", class: "status" }, cells.state, cells.reason));
  for (const kind of ["tools", "calls", "errors", "compressed"]) {
    cells[kind] = el("td", { role: "cell", class: "n", "data-label": kind });
    cells.row.append(cells[kind]);
  }
  return cells;
}

function servers(list, hour) {
  for (const [name, cells] of rows) {
    if (list.some((server) => server.name === name)) continue;
    cells.row.remove();
    rows.delete(name);
  }
  list.forEach((server, i) => {
    const cells = rows.get(server.name) ?? row(server.name);
    rows.set(server.name, cells);
    const last = hour.servers[server.name];
    cells.how.textContent = [server.dialled || server.transport, server.protocol].filter(Boolean).join(" ");
    cells.state.className = "state " + server.state;
    cells.state.textContent = server.state;
    cells.reason.textContent = server.reason ?? "";
    cells.reason.title = server.reason ?? "";
    const fill = (kind, value, ...before) => {
      cells[kind].classList.toggle("zero", value === 0);
      cells[kind].replaceChildren(...before, number(value));
    };
    fill("tools", server.tools);
    fill("calls", sum(last?.calls), ...(last ? [bars(last.calls, `calls of ${server.name}, minute by minute`)] : []));
    fill("errors", sum(last?.errors));
    fill("compressed", sum(last?.compression));
    if ($("servers").children[i] !== cells.row) $("servers").insertBefore(cells.row, $("servers").children[i] ?? null);
  });
  const states = ["ready", "degraded", "unavailable", "connecting", "idle", "disabled"];
  const inState = (state) => list.filter((server) => server.state === state).length;
  $("summary").textContent = states.filter(inState).map((state) => `${inState(state)} ${state}`).join(", ") + "; calls, errors and tokens saved by compression are of the last hour";
  $("summary").hidden = list.length === 0;
  document.querySelector("table").hidden = list.length === 0;
  $("none").hidden = list.length > 0;
}

// --- the panel: it shows a server, a tool, or the results of a search ---

let at = []; // server and tool named in the URL fragment; empty for a search
let drawn = 0; // number of calls of route, so that the answer to an older one is ignored

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // invalid percent-encoding: typed by hand
  }
}

// route shows in the panel what the URL fragment names: #/SERVER, #/SERVER/TOOL or #?QUERY.
async function route(event) {
  const address = location.hash;
  if (address && !address.startsWith("#/") && !address.startsWith("#?")) return;
  at = address.startsWith("#/") ? address.slice(2).split("/").map(decoded) : [];
  for (const [name, cells] of rows) name === at[0] ? cells.row.setAttribute("aria-current", "true") : cells.row.removeAttribute("aria-current");
  const mine = ++drawn;
  let parts;
  try {
    if (address.startsWith("#?")) parts = await searched(decoded(address.slice(2)));
    else if (at.length === 2) parts = await toolParts(...at);
    else if (at.length === 1) parts = await serverParts(at[0]);
    else parts = [el("p", { class: "note" }, "Choose a server to see its tools, or search all of them.")];
  } catch (failure) {
    if (failure.status === 401) return showDoor();
    parts = [el("p", { class: "fault", role: "alert" }, failure.message)];
  }
  if (mine !== drawn) return;
  $("panel").replaceChildren(...parts);
  if (event) $("panel").focus(); // the viewer has navigated, not the script
}
addEventListener("hashchange", route);

// panelFollows updates the panel if it shows a server that has changed.
function panelFollows(before) {
  const server = state.status.servers.find((one) => one.name === at[0]);
  const was = before.get(at[0]);
  if (at.length === 1 && server && was && (server.state !== was.state || server.tools !== was.tools || server.reason !== was.reason) && !$("panel").contains(document.activeElement)) route();
}

const toolAddress = (server, tool) => `#/${encodeURIComponent(server)}/${encodeURIComponent(tool)}`;

const tags = (hints) => (hints ?? []).map((hint) => el("span", { class: "tag " + hint }, hint));

async function serverParts(name) {
  const server = state.status.servers.find((one) => one.name === name);
  const { purpose, tools } = await ask("server?name=" + encodeURIComponent(name));
  const parts = [el("h3", null, name)];
  if (server) parts.push(el("p", null, el("span", { class: "state " + server.state }, server.state), el("span", { class: "reason" }, server.reason ?? "")));
  if (server?.savings) parts.push(el("p", { class: "sub" }, `Tokens saved since the start: ${threeFigures(server.savings)}`));
  if (purpose) parts.push(el("p", { class: "sub" }, purpose));
  if (!tools.length) return [...parts, el("p", { class: "note" }, "No tools are known of this server.")];
  parts.push(el("ul", { class: "list", "aria-label": `Tools of ${name}` }, ...tools.map((tool) =>
    el("li", null, el("a", { href: toolAddress(name, tool.name) }, tool.name), ...tags(tool.hints), el("p", null, tool.description)))));
  return parts;
}

const block = (text, label, kind) => el("pre", { tabindex: "0", role: "region", "aria-label": label, class: kind }, text);

async function searched(query) {
  $("query").value = query;
  const { tools, text, tokens } = await ask("search?query=" + encodeURIComponent(query));
  say(count(tools.length, "tool", "tools") + " found");
  return [
    el("p", { class: "sub" }, `${count(tools.length, "tool", "tools")} found`),
    el("ul", { class: "list", "aria-label": "Tools found" }, ...tools.map((tool) =>
      el("li", null, el("a", { href: toolAddress(tool.server, tool.name) }, `${tool.server}.${tool.name}`), el("p", null, tool.description)))),
    el("details", tools.length ? null : { open: "" }, el("summary", null, `What a model reads, ${count(tokens, "token", "tokens")}`), block(text, "The answer of inspect")),
  ];
}

$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = $("query").value.trim();
  const address = query ? "#?" + encodeURIComponent(query) : "#/";
  if (location.hash === address) route(event);
  else location.hash = address; // the event hashchange then calls route
});

async function toolParts(server, name) {
  const tool = await ask(`tool?server=${encodeURIComponent(server)}&name=${encodeURIComponent(name)}`);
  return [
    el("p", { class: "crumb" }, el("a", { href: "#/" + encodeURIComponent(server) }, server)),
    el("div", { class: "title" }, el("h3", null, name), ...tags(tool.hints)),
    el("h4", null, `What a model reads, ${count(tool.tokens, "token", "tokens")}`),
    block(tool.text, "The interface of the tool"),
    tryIt(server, name, tool.schema),
  ];
}

// --- trying a tool ---

// start returns an example value for a schema. For an object, it has the required members.
function start(schema) {
  if (!schema || typeof schema !== "object") return null;
  if ("default" in schema) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object") return Object.fromEntries((schema.required ?? []).map((key) => [key, start(schema.properties?.[key])]));
  return { string: "", number: 0, integer: 0, boolean: false, array: [] }[type] ?? null;
}

function tryIt(server, tool, schema) {
  const fault = el("p", { class: "fault", role: "alert", id: "arguments-fault" });
  const box = el("textarea", { id: "arguments", spellcheck: "false", autocapitalize: "off", "aria-describedby": "arguments-fault", rows: "5" });
  box.value = JSON.stringify(start({ type: "object", ...schema }) ?? {}, null, 2);
  const button = el("button", { type: "submit" }, "Call");
  const outcome = el("div", { id: "outcome" });
  const form = el("form", { id: "try" }, el("label", { for: "arguments" }, "Arguments, as JSON"), box, fault,
    el("div", { class: "buttons" }, button, el("span", { class: "sub" }, "This calls the tool for real, as you.")), outcome);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.getAttribute("aria-disabled") === "true") return;
    const wrong = notJSON(box.value);
    fault.textContent = wrong;
    box.setAttribute("aria-invalid", String(wrong !== ""));
    if (wrong) return box.focus();
    button.setAttribute("aria-disabled", "true");
    button.textContent = "Calling\u2026";
    outcome.replaceChildren();
    try {
      outcome.replaceChildren(...result(await call(server, tool, box.value)));
    } catch (failure) {
      if (failure.status === 401) showDoor();
      fault.textContent = failure.message;
    }
    button.setAttribute("aria-disabled", "false");
    button.textContent = "Call";
  });
  return form;
}

function notJSON(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" && !Array.isArray(value) ? "" : "The arguments must be an object: {\u2026}";
  } catch (failure) {
    return "This is not JSON: " + failure.message;
  }
}

// call calls a tool. If mcpx requires consent, it asks the viewer first. args is sent as it
// was typed, without parsing, so that numbers keep all their digits.
async function call(server, tool, args) {
  const body = (confirmed) => `{"server":${JSON.stringify(server)},"tool":${JSON.stringify(tool)},"confirmed":${JSON.stringify(confirmed)},"arguments":${args}}`;
  let answer = await send(body(""));
  while (answer.confirm !== undefined) {
    if (!(await confirmed(answer.confirm))) return undefined;
    answer = await send(body(answer.confirm));
  }
  return answer;
}

async function send(text) {
  const response = await fetch("ui/call", { method: "POST", headers: { "Content-Type": "application/json" }, body: text });
  const data = await response.json().catch(() => ({ error: `the answer is ${response.status}` }));
  if (response.ok) return data;
  throw Object.assign(new Error(data.error), { status: response.status });
}

function confirmed(question) {
  $("question").textContent = question;
  const dialog = $("confirm");
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}

function result(answer) {
  if (!answer) {
    say("Not called");
    return [el("p", { class: "sub" }, "Not called.")];
  }
  const title = `${answer.error ? "Error" : "Result"}, ${answer.milliseconds ? number(answer.milliseconds) : "under 1"} ms, ${count(answer.tokens, "token", "tokens")}`;
  say(title);
  return [el("h4", null, title), block(answer.text, "The result as a model sees it", answer.error ? "fault" : "")];
}

open();
