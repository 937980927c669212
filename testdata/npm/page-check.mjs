// Walks through the page in a real browser, and says what is wrong with it as a JSON list of texts.
//
//   node page-check.mjs JSON   with the URLs full, empty, guarded, fronted; PICTURES=DIR makes pictures of each scene,
//   PARTS=PATTERN walks only those parts
//
// full has the servers alpha (a fake), evil, odd, down, switched, changing and login, and lets servers be changed; empty has none;
// guarded asks for a token: root-token sees the page, user-token does not; fronted has an issuer, at which anna is an admin; desk is a link of mcpx ui, which shows calls in full. Exit 77: there is no browser.
import { actions } from "./page-actions.mjs";
import { check, failed, last, look, open, started, tables, unmarked, windowOf, wrong } from "./page-browser.mjs";

const given = JSON.parse(process.argv[2]);
const { full, empty, guarded } = given;

const panel = (page) => page.locator("#panel");
const call = (page) => page.getByRole("button", { name: page.t("call"), exact: true });
const at = (page, ...parts) => page.goto(full + "#/" + parts.map(encodeURIComponent).join("/"));

// tour looks at every view, and at what hostile servers put into them.
async function tour(window) {
  const page = await open(window, full);
  page.bothSeen = !whole;
  await page.locator("#servers tr").first().waitFor();
  await page.getByText("a reason that goes on").first().waitFor();
  check(page, (await page.locator("html").getAttribute("lang")) === window.locale, "the language of the page is not its viewer's");
  check(page, await page.getByRole("row").count() >= 15, "rows are missing");
  const about = await page.locator("#about").textContent();
  check(page, /[^\d][1-9][\d,]*[^\d]+[\d,]+[^\d]+0$/.test(about), `the figures are ${about}`);
  await look(page, "overview");

  await page.getByRole("link", { name: "evil", exact: true }).click();
  await panel(page).getByText("<img src=x onerror=alert(4)>").first().waitFor();
  check(page, await panel(page).evaluate((node) => node === document.activeElement), "the panel of a server has no focus");
  await panel(page).getByText("evil.tools.deny").waitFor();
  await look(page, "server");

  await panel(page).getByRole("link", { name: "<img src=x onerror=alert(4)>" }).click();
  const first = page.getByLabel("<i>a</i>");
  await first.waitFor();
  const types = await page.getByRole("region", { name: page.t("interface") }).textContent();
  check(page, types.includes('type Args = {') && types.includes('"<b>b</b>"?: "<img src=x onerror=alert(8)>"'), `the interface is ${types}`);
  await look(page, "tool");
  await first.fill("<img src=x onerror=alert(9)>");
  await page.getByLabel("big").fill("1x");
  await call(page).click();
  await page.getByText(page.t("not-integer")).waitFor();
  check(page, await page.getByLabel("big").evaluate((node) => node === document.activeElement && node.getAttribute("aria-invalid") === "true"), "the wrong field has no focus");
  await look(page, "no integer");
  await page.getByLabel("big").fill("12345678901234567890");
  await page.getByRole("button", { name: page.t("all-as-json") }).click();
  const all = page.getByLabel(page.t("arguments-json"));
  check(page, (await all.inputValue()).includes("12345678901234567890"), "digits are lost on the way to JSON");
  await all.fill("{no");
  await call(page).click();
  await page.getByText(page.t("not-json", { why: "" }).trim()).waitFor();
  await look(page, "no JSON");
  await all.fill('{"<i>a</i>": "<img src=x onerror=alert(9)>", "big": 12345678901234567891}');
  await page.getByRole("button", { name: page.t("as-form") }).click();
  check(page, await page.getByLabel("big").inputValue() === "12345678901234567891", "digits are lost on the way to the form");
  await call(page).click();
  await page.getByRole("dialog").getByText("evil.<img src=x onerror=alert(4)>").waitFor();
  await look(page, "question");
  await page.keyboard.press("Escape");
  await page.locator("#outcome").getByText(page.t("not-called")).waitFor();
  await call(page).click();
  await page.getByRole("button", { name: page.t("call-it"), exact: true }).last().click();
  const result = page.getByRole("region", { name: page.t("result-seen") });
  await result.waitFor();
  const text = await result.textContent();
  check(page, text.includes("<img src=x onerror=alert(9)>") && text.includes("12345678901234567891"), `the result is ${text}`);
  await look(page, "result");

  await at(page, "tool", "alpha", "fail");
  await page.getByRole("heading", { name: "fail", exact: true }).waitFor(); // until then the form is that of the other tool
  await page.getByLabel("message").fill("no <b>luck</b>");
  await call(page).click();
  await page.getByRole("dialog").getByRole("button", { name: page.t("call-it"), exact: true }).click();
  await page.getByRole("heading", { name: page.t("error") }).waitFor();
  await look(page, "error");

  await page.getByRole("searchbox").fill("echo the text");
  await page.getByRole("searchbox").press("Enter");
  await panel(page).getByRole("link", { name: /\.echo$/ }).first().waitFor();
  check(page, await panel(page).evaluate((node) => node === document.activeElement), "what was found has no focus");
  await panel(page).locator("summary").click();
  await look(page, "search");
  await page.goBack();
  await page.getByLabel("message").waitFor();

  for (const [view, wait] of Object.entries({
    "log/down": "onerror=alert(1)", "change/evil": page.t("change-means"), "approve/evil": "alert(5)", add: page.t("key.line"), "add/url": page.t("key.headers"),
    "add/snippet": page.t("config-text"), "add/registry": page.t("words"), "add/registry/io.github.hostile/steals": page.t("no-way"), calls: "<b>luck</b>", savings: page.t("period"),
  })) {
    await page.goto(full + "#/" + view);
    if (view.startsWith("approve")) await panel(page).locator("summary").first().click();
    await panel(page).getByText(wait).first().waitFor();
    const text = view === "calls" ? await panel(page).textContent() : "";
    check(page, view !== "calls" || (text.includes("alpha.<img src=x onerror=alert(34)>") && text.includes("onerror=alert(33)>")), `the call of a client is not among ${text}`);
    await look(page, view.replaceAll("/", "-"));
  }
  for (const [view, text] of [["server/down", page.t("no-tools")], ["server/nobody", page.t("no-such-server")], ["%", undefined], ["tool/nobody/here", page.t("failed")]]) {
    await page.goto(full + "#/" + view);
    if (text) await panel(page).getByText(text).waitFor();
  }
  await page.context().close();
}

// odd: every tool with a strange schema has a form or JSON, and none breaks the page.
async function odd() {
  const page = await open(windowOf(1440, "light", "en"), full + "#/server/odd");
  await panel(page).getByRole("link", { name: "odd_recursive" }).waitFor();
  const few = ["odd_recursive", "odd_any_of", "odd_type_array", "odd_true", "odd_properties_list", "odd_required_text"];
  for (const name of process.env.MCPX_FULL ? await panel(page).locator(".list a").allTextContents() : few) {
    await at(page, "tool", "odd", name);
    await panel(page).getByRole("heading", { name, exact: true, level: 2 }).waitFor();
    check(page, await panel(page).locator("#try :is(input, textarea, select, .field)").count() > 0, `${name} has nothing to fill in`);
    if (name !== "odd_recursive") continue;
    for (const part of ["tree", "children"]) await page.getByRole("button", { name: `${page.t("add-part")} ${part}` }).click();
    await page.getByRole("button", { name: new RegExp(page.t("add-item")) }).click();
    await call(page).click();
    await page.getByRole("dialog").getByText('{ "tree": { "children": [ {} ] } }').waitFor();
    await page.keyboard.press("Escape");
  }
  await page.context().close();
}

// knots: a schema or a progress of a hostile server does not stop the page, and breaks nothing but its own form.
async function knots() {
  const page = await open(windowOf(1440, "light", "en"), full);
  const all = (keys, of) => ({ type: "object", required: keys, properties: Object.fromEntries(keys.map((key) => [key, of])) });
  const schemas = [
    all([..."abcdefghij"], { $ref: "#" }), all(Array.from({ length: 10_000 }, (_, i) => "p" + i), { type: "string" }), all(["a"], { type: "array", items: {}, default: "DEEP" }),
    all(["a"], { anyOf: { filter: 1 } }), all(["a"], { allOf: [null] }), all(["__proto__", "constructor"], { type: "string" }), all(["a"], { type: { flat: 1 } }),
  ];
  const texts = schemas.map((one) => JSON.stringify(one).replace('"DEEP"', "[".repeat(4000) + "]".repeat(4000)));
  await page.route("**/ui/tool?*", (route) => route.fulfill({ contentType: "application/json", body: `{"text":"interface","tokens":1,"schema":${texts[new URL(route.request().url()).searchParams.get("name")]}}` }));
  const progress = [null, "x", [1], { a: 1 }, -1].map((one) => JSON.stringify({ progress: { progress: one, total: one, message: { toString: 1 } } }));
  progress.push(JSON.stringify({ progress: { progress: 1, total: 2, message: evil(35) } }));
  await page.route("**/ui/call", (route) => route.fulfill({ contentType: "application/x-ndjson", body: [...progress, JSON.stringify({ result: { text: "done " + evil(36), tokens: 1, milliseconds: 1 } }), ""].join("\n") }));
  for (const i of texts.keys()) {
    await at(page, "tool", "alpha", String(i));
    await panel(page).getByRole("heading", { name: String(i), exact: true, level: 2 }).waitFor();
    const fields = await page.locator("#try :is(input, textarea, select)").count();
    check(page, fields > 0 && fields < 1000, `schema ${i}: ${fields} fields`);
  }
  await at(page, "tool", "alpha", "5");
  await panel(page).getByRole("heading", { name: "5", exact: true, level: 2 }).waitFor();
  await call(page).click();
  await page.getByRole("region", { name: page.t("result-seen") }).getByText("done " + evil(36)).waitFor();
  await unmarked(page, "result");
  await foreign(page);
  await page.context().close();
}

const evil = (n) => `<img src=x onerror=alert(${n})>`;

// foreign: what a hostile registry and a hostile authorization server say is text.
async function foreign(page) {
  const answer = (path, body) => page.route(path, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify(body) }));
  const one = { name: evil(40), version: evil(41), description: evil(42), deprecated: evil(43), repository: "javascript:alert(44)" };
  await answer("**/ui/registry?*", { registry: evil(45), servers: [{ ...one, kinds: [evil(46)] }] });
  const asked = { name: evil(47), description: evil(48), default: evil(49), choices: [evil(49), evil(50)], required: true };
  await answer("**/ui/registry/server?*", { ...one, short: evil(51), ways: [{ kind: evil(52), runner: evil(53), found: true, asks: [asked] }], unusable: [], keyring: false });
  await page.goto(full + "#/add/registry");
  await panel(page).getByLabel(page.t("words")).fill("x");
  await panel(page).getByRole("button", { name: page.t("search"), exact: true }).click();
  await panel(page).getByText(evil(43)).waitFor();
  await unmarked(page, "hostile registry");
  await panel(page).getByRole("link", { name: evil(40) }).click();
  await panel(page).getByLabel(evil(47)).waitFor();
  await panel(page).getByText("javascript:alert(44)").waitFor();
  await unmarked(page, "hostile server of the registry");

  await page.goto(full + "#/server/guarded");
  const login = panel(page).getByRole("button", { name: page.t("log-in"), exact: true });
  await answer("**/ui/servers/guarded/login", { id: "1", url: "javascript:alert(54)" });
  await login.click();
  await panel(page).getByText("javascript:alert(54)").waitFor();
  await unmarked(page, "hostile login");
  await answer("**/ui/servers/guarded/login", { id: "1", url: "https://evil.example/" + evil(55), command: evil(56) });
  await answer("**/ui/servers/guarded/login?*", { state: "failed", error: evil(57) });
  await login.click();
  await page.getByRole("dialog").getByText(evil(57)).waitFor();
  await unmarked(page, "failed login");
}

// live: what happens elsewhere shows without a reload, and is said.
async function live() {
  const page = await open(windowOf(1440, "light", "en"), full);
  const state = page.getByRole("row").filter({ hasText: "switched" }).locator(".state");
  await state.getByText("ready").waitFor();
  const answer = await fetch(full + "api/servers/switched/disable", { method: "POST" });
  check(page, answer.ok, `disabling: ${answer.status}`);
  await state.getByText("disabled").waitFor();
  await page.locator("#say").getByText("switched is disabled").waitFor({ state: "attached" });
  await fetch(full + "api/servers/switched", { method: "DELETE" });
  await state.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "简体中文" }).click();
  await page.getByRole("heading", { name: "最近一小时" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "最近一小时" }).waitFor();
  check(page, (await page.locator("html").getAttribute("lang")) === "zh-CN", "the language is not kept");
  await page.context().close();
}

// keys walks through the page by Tab alone: everything that can be used is reached, has a name and shows its focus.
async function keys(width) {
  const page = await open(windowOf(width, "dark", "en"), full + "#/tool/alpha/echo");
  await call(page).waitFor();
  const names = [];
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press("Tab");
    const now = await page.evaluate(() => {
      const node = document.activeElement;
      if (!node || node === document.body) return undefined;
      const style = getComputedStyle(node);
      const name = node.getAttribute("aria-label") ?? node.labels?.[0]?.textContent ?? node.textContent;
      return { name: name.trim(), shown: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2, box: node.getBoundingClientRect().top >= 0 };
    });
    if (!now) break;
    check(page, now.name, "something without a name takes the focus");
    check(page, now.shown, `${now.name}: the focus does not show`);
    check(page, now.box, `${now.name}: is out of sight with the focus`);
    names.push(now.name);
  }
  const all = ["Skip to the content", "Servers", "Calls", "Savings", "Search tools as inspect does", "Search", "简体中文", "The interface of the tool", "All as JSON", "text", "Call"];
  for (const name of width > 1000 ? [...all, "Add a server", "alpha", "evil"] : all)
    check(page, names.includes(name), `Tab does not reach ${name}, but ${names.join(" | ")}`);
  await page.getByLabel("text").focus();
  await page.keyboard.type("hello");
  await page.keyboard.press("Control+Enter");
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  for (let i = 0; i < 6; i++) {
    await page.keyboard.press("Tab");
    check(page, await page.evaluate(() => document.activeElement === document.body || document.querySelector("dialog").contains(document.activeElement)), "the focus leaves the question");
  }
  await page.keyboard.press("Escape");
  check(page, await page.getByLabel("text").evaluate((node) => node === document.activeElement), "the focus is not back in the form after the question");
  await page.context().close();
}

async function nothing(window) {
  const page = await open(window, empty);
  await page.getByText(page.t("no-servers")).waitFor();
  await look(page, "empty");
  check(page, await page.locator("#add").isHidden() && (await page.locator("#cannot").textContent()).includes('"api": true'), "who may not change servers is not told so");
  await page.goto(empty + "#/add");
  await panel(page).getByText('"api": true').waitFor();
  check(page, await panel(page).locator("form").count() === 0, "who may not change servers gets a form");
  await page.context().close();
}

// mayNot: whoever has no session, or one without rights, sees nothing and changes nothing.
async function mayNot(page, refused = 401) {
  for (const [method, path] of [["GET", "state"], ["GET", "events"], ["GET", "server?name=alpha"], ["GET", "entry?name=alpha"], ["GET", "log?server=alpha"], ["GET", "calls"], ["GET", "stats?days=7&by=day"],
    ["GET", "changes?server=alpha"], ["GET", "registry?query=x"], ["POST", "preview"], ["POST", "servers"], ["PUT", "servers/alpha"], ["DELETE", "servers/alpha"], ["POST", "servers/alpha/stop"],
    ["POST", "servers/alpha/start"], ["POST", "servers/alpha/restart"], ["POST", "servers/alpha/enable"], ["POST", "servers/alpha/disable"], ["POST", "servers/alpha/approve"],
    ["POST", "servers/alpha/logout"], ["GET", "servers/alpha/login?id="], ["DELETE", "servers/alpha/login"], ["POST", "servers/alpha/login/paste"], ["GET", "tool?server=alpha&name=echo"], ["GET", "search?query=echo"],
    ["GET", "registry/server?name=x"], ["POST", "looked"], ["POST", "servers/alpha/login"], ["POST", "call"]]) {
    const status = await page.evaluate(([method, path]) => fetch("ui/" + path, { method, body: method === "GET" ? undefined : "{}" }).then((answer) => answer.status), [method, path]);
    check(page, status === refused, `${method} ${path} without rights: ${status}`);
  }
}

async function door(window) {
  const page = await open(window, guarded);
  const token = page.getByLabel(page.t("token"), { exact: true });
  const submit = page.getByRole("button", { name: page.t("sign-in"), exact: true });
  await token.waitFor();
  await look(page, "door");
  for (const [value, refusal] of [["wrong", window.locale === "en" ? "is not valid" : "请登录"], ["user-token", '"admin": true']]) {
    await token.fill(value);
    await submit.click();
    await page.getByRole("alert").getByText(refusal).waitFor();
  }
  await look(page, "refused");
  await mayNot(page);
  await token.fill("root-token");
  await page.keyboard.press("Enter");
  await page.locator("#servers tr").first().waitFor();
  check(page, await page.evaluate(() => document.cookie === ""), "scripts can read the cookie");
  const cookies = await page.context().cookies();
  check(page, cookies.length === 1 && cookies[0].httpOnly && cookies[0].secure && cookies[0].sameSite === "Strict", `the cookies are ${JSON.stringify(cookies)}`);
  for (const path of ["mcp", "status", "api/servers"]) {
    const status = await page.evaluate((path) => fetch(path).then((answer) => answer.status), path);
    check(page, status === 401, `the cookie opens /${path}: ${status}`);
  }
  await page.reload();
  await page.locator("#servers tr").first().waitFor();
  await look(page, "signed in");
  const other = await page.context().newPage(); // whose session is the same
  await other.goto(guarded);
  await other.getByRole("button", { name: page.t("sign-out") }).click();
  await other.getByLabel(page.t("token"), { exact: true }).waitFor();
  await token.waitFor();
  await other.close();
  await token.fill("root-token");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: page.t("sign-out") }).click();
  await token.waitFor();
  check(page, (await page.context().cookies()).length === 0, "the cookie is still there");
  await page.reload();
  await token.waitFor();
  await page.context().close();
}

// issuer: people sign in at a real authorization server. bob is no admin, so he sees and changes nothing; anna is one.
async function issuer() {
  const enter = async (name) => {
    const page = await open(windowOf(name === "bob" ? 390 : 1440, "light", "en"), given.fronted);
    await page.route((url) => url.hostname !== "127.0.0.1", (route) => route.fulfill({ body: "" })); // fonts of the pages of the issuer
    await page.getByRole("link", { name: page.t("sign-in"), exact: true }).click();
    await page.locator("[name=login]").fill(name);
    await page.locator("[name=password]").fill("any");
    await page.locator("[type=submit]").click();
    await page.locator("[name=login]").waitFor({ state: "detached" });
    await page.locator("[type=submit]").click(); // the consent
    return page;
  };
  const bob = await enter("bob");
  await bob.getByRole("alert").getByText('"admin": true').waitFor();
  check(bob, !(await bob.locator("body").innerText()).includes("box"), "who is no admin sees a server");
  await look(bob, "no admin");
  await mayNot(bob, 403);
  await bob.context().close();
  const anna = await enter("anna");
  await anna.goto(given.fronted + "#/tool/box/echo");
  await anna.getByLabel("text").fill("from the page");
  await call(anna).click();
  await anna.getByRole("region", { name: anna.t("result-seen") }).getByText("from the page").waitFor();
  await anna.goto(given.fronted + "#/calls");
  await panel(anna).getByText(/anna@example\.com \(anna@/).waitFor();
  await anna.getByRole("button", { name: anna.t("sign-out") }).click();
  await anna.getByRole("link", { name: anna.t("sign-in"), exact: true }).waitFor();
  await mayNot(anna);
  await anna.context().close();
}

// desk: the link of mcpx ui works once, leaves the address, and gives a session to its tab alone.
async function desk() {
  const page = await open(windowOf(1440, "light", "en"), given.desk);
  await page.locator("#servers tr").first().waitFor();
  check(page, !page.url().includes("link="), "the link stays in the address");
  check(page, (await page.context().cookies()).length === 0, "there is a cookie");
  await page.getByRole("link", { name: "alpha", exact: true }).click();
  await panel(page).getByRole("link", { name: "echo", exact: true }).click();
  await page.getByLabel("text").fill("at my desk " + evil(30));
  await call(page).click();
  await page.getByRole("region", { name: page.t("result-seen") }).getByText("at my desk").waitFor();
  await page.reload();
  await page.getByLabel("text").waitFor();
  await page.getByRole("link", { name: page.t("calls-view"), exact: true }).click();
  for (const what of ["arguments", "result"]) {
    await panel(page).locator("summary").filter({ hasText: new RegExp(`^${page.t(what)}$`) }).click();
    await page.getByRole("region", { name: page.t(what), exact: true }).getByText("at my desk " + evil(30)).waitFor();
  }
  await look(page, "calls in full");
  const other = await open(windowOf(390, "dark", "zh-CN"), given.desk);
  await other.getByText(other.t("run-ui")).waitFor();
  await look(other, "link used before");
  const status = await other.evaluate(() => fetch("ui/state").then((answer) => answer.status));
  check(other, status === 401, `without a session the state is ${status}`);
  await other.context().close();
  await page.context().close();
}

// The quick check walks in one window, and sees each scene of the tour also in a wide and light one. The other walks are in English.
const whole = Boolean(process.env.MCPX_FULL);
const windows = [windowOf(390, "dark", "zh-CN")];
const more = [windowOf(1440, "light", "en"), windowOf(390, "light", "en"), windowOf(1440, "dark", "zh-CN"), windowOf(390, "dark", "en"), windowOf(1440, "light", "zh-CN")];

// part is one walk; what goes wrong in it does not keep the others from being made.
async function part(name, walk) {
  if (process.env.PARTS && !new RegExp(process.env.PARTS).test(name)) return;
  const began = Date.now();
  await walk().catch((failure) => failed(last(), name, failure));
  console.error(`${name}: ${Date.now() - began} ms`);
}

tables();
await part("desk", desk); // first: its link is valid for two minutes
for (const window of whole ? [...windows, ...more] : windows) await part(`tour ${Object.values(window).join(" ")}`, () => tour(window));
for (const window of whole ? [...windows, ...more] : []) await part(`nothing ${Object.values(window).join(" ")}`, () => nothing(window));
for (const window of whole ? [...windows, ...more] : windows.slice(0, 1)) await part(`door ${Object.values(window).join(" ")}`, () => door(window));
if (whole) await part("issuer", issuer);
for (const width of whole ? [390, 1440] : [390]) await part(`keys ${width}`, () => keys(width));
if (whole) await part("odd", odd);
await part("actions", () => actions(given));
await part("knots", knots);
await part("live", live);
await started.close();
console.log(JSON.stringify(wrong));
