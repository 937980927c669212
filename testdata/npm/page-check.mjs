// Walks through the status page in a real browser, and says what is wrong with it as a JSON list of texts.
//
//   node page-check.mjs FULL EMPTY GUARDED   the URLs of three mcpx, and with PICTURES=DIR pictures of each scene
//
// FULL has the servers alpha (a fake), evil, down and switched, and lets servers be changed; EMPTY has none;
// GUARDED asks for a token: root-token sees the page, user-token does not. Exit 77: there is no browser.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [full, empty, guarded] = process.argv.slice(2);
const wrong = [];
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// browser is the one that MCPX_CHROMIUM names, that of the system, or the one from npm, with its libraries and fonts.
async function browser() {
  const asked = process.env.MCPX_CHROMIUM;
  let executablePath = asked && asked !== "npm" ? asked : undefined;
  for (const name of asked ? [] : ["chromium", "chromium-browser", "google-chrome"]) {
    try {
      executablePath ??= execFileSync("sh", ["-c", 'command -v "$0"', name], { encoding: "utf8" }).trim();
    } catch {} // not there
  }
  try {
    if (!executablePath) {
      process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs22.x"; // for which it brings libraries
      executablePath = await (await import("@sparticuz/chromium")).default.executablePath();
      // Its own configuration looks for its fonts in /tmp/fonts alone, and without any font it crashes.
      process.env.FONTCONFIG_FILE = join(tmpdir(), "page-fonts.conf");
      writeFileSync(process.env.FONTCONFIG_FILE, `<fontconfig><dir>${tmpdir()}/fonts</dir><cachedir>${tmpdir()}/fonts-cache</cachedir></fontconfig>`);
    }
    return await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  } catch (failure) {
    console.error(`no browser starts here (apt install chromium, or MCPX_CHROMIUM=FILE): ${failure.message}`);
    process.exit(77);
  }
}

const started = await browser();

// open is a page of its own, with what its console says.
async function open(width, scheme, address) {
  const context = await started.newContext({ viewport: { width, height: width < 800 ? 844 : 900 }, colorScheme: scheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  const at = `${width} ${scheme}`;
  page.on("console", (message) => {
    // The browser reports each refusal; those here are wanted.
    if (["error", "warning"].includes(message.type()) && !/status of 40[134]/.test(message.text())) wrong.push(`${at}: console: ${message.text()}`);
  });
  page.on("pageerror", (failure) => wrong.push(`${at}: ${failure.message}`));
  page.on("dialog", (dialog) => {
    wrong.push(`${at}: a script of a server ran: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.setDefaultTimeout(120_000); // passes only where the check fails anyway
  await page.goto(address);
  return Object.assign(page, { at });
}

const check = (page, ok, text) => ok || wrong.push(`${page.at}: ${text}`);

let pictures = 0;

// judged are the windows in which axe looks: colours depend on the scheme, and the layout on the width.
const judged = ["390 dark", "1440 light"];

// look is what holds in every scene: nothing runs over the side, and axe finds nothing.
async function look(page, scene) {
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/${page.at.replace(" ", "-")}-${String(++pictures).padStart(2, "0")}-${scene}.png`, fullPage: true });
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(page, over <= 0, `${scene}: ${over} px wider than the window`);
  if (!judged.includes(page.at)) return;
  const found = await page.evaluate(`${axe}; axe.run(document, {resultTypes: ["violations"]})`);
  for (const one of found.violations) wrong.push(`${page.at}: ${scene}: axe: ${one.id}: ${one.nodes.map((node) => node.target.join(" ")).join(", ")}: ${one.help}`);
}

const panel = (page) => page.locator("#panel");
const call = (page) => page.getByRole("button", { name: "Call", exact: true });

async function scenes(width, scheme) {
  const page = await open(width, scheme, full);
  await page.locator("#servers tr").first().waitFor();
  await page.getByText("a reason that goes on").first().waitFor();
  check(page, await page.getByRole("row").count() >= 15, "rows are missing");
  const about = await page.locator("#about").textContent();
  check(page, /tokens saved: definitions -?[1-9][\d,]*, compression -?[\d,]+, left behind a handle 0/.test(about), `the figures are ${about}`);
  await look(page, "overview");

  await page.getByRole("link", { name: "evil", exact: true }).click();
  await panel(page).getByText("<img src=x onerror=alert(4)>").first().waitFor();
  check(page, await panel(page).evaluate((node) => node === document.activeElement), "the panel of a server has no focus");
  await look(page, "server");

  await panel(page).getByRole("link", { name: "<img src=x onerror=alert(4)>" }).click();
  await page.getByLabel("Arguments, as JSON").waitFor();
  await look(page, "tool");
  await page.getByLabel("Arguments, as JSON").fill("{no");
  await call(page).click();
  await page.getByText("This is not JSON").waitFor();
  await look(page, "no JSON");
  await page.getByLabel("Arguments, as JSON").fill('{"<i>": "<img src=x onerror=alert(9)>", "n": 12345678901234567890}');
  await call(page).click();
  await page.getByRole("dialog").getByText("evil.<img src=x onerror=alert(4)>").waitFor();
  await look(page, "question");
  await page.keyboard.press("Escape");
  await page.getByText("Not called.").waitFor();
  await call(page).click();
  await page.getByRole("button", { name: "Call it" }).click();
  const result = page.getByRole("region", { name: "The result as a model sees it" });
  await result.waitFor();
  const text = await result.textContent();
  check(page, text.includes("<img src=x onerror=alert(9)>") && text.includes("12345678901234567890"), `the result is ${text}`);
  await look(page, "result");

  await page.goto(full + "#/alpha/fail");
  await page.getByRole("heading", { name: "fail", exact: true }).waitFor(); // until then the form is that of the other tool
  await page.getByLabel("Arguments, as JSON").fill('{"message": "no <b>luck</b>"}');
  await call(page).click();
  await page.getByRole("button", { name: "Call it" }).click();
  await page.getByRole("heading", { name: "Error," }).waitFor();
  await look(page, "error");

  await page.getByRole("searchbox").fill("echo the text");
  await page.getByRole("searchbox").press("Enter");
  await panel(page).getByRole("link", { name: "alpha.echo", exact: true }).waitFor();
  check(page, await panel(page).evaluate((node) => node === document.activeElement), "what was found has no focus");
  await page.getByText("What a model reads").click();
  await look(page, "search");
  await page.goBack();
  await page.getByLabel("Arguments, as JSON").waitFor();
  await page.goto(full + "#/down");
  await panel(page).getByText("No tools are known").waitFor();
  await page.goto(full + "#/%");
  await page.getByText("there is no such server").waitFor();
  await page.goto(full + "#/nobody/here");
  await page.getByText("there is no such tool").waitFor();
  await page.context().close();
}

// live: what happens shows without a reload, and is said.
async function live() {
  const page = await open(1440, "light", full);
  const state = page.getByRole("row").filter({ hasText: "switched" }).locator(".state");
  await state.getByText("ready").waitFor();
  const answer = await fetch(full + "api/servers/switched/disable", { method: "POST" });
  check(page, answer.ok, `disabling: ${answer.status}`);
  await state.getByText("disabled").waitFor();
  await page.locator("#say").getByText("switched is disabled").waitFor({ state: "attached" });
  await fetch(full + "api/servers/switched", { method: "DELETE" });
  await state.waitFor({ state: "detached" });
  await page.context().close();
}

// keys walks through the page by Tab alone: everything that can be used is reached, has a name and shows its focus.
async function keys(width) {
  const page = await open(width, "dark", full + "#/alpha/echo");
  await call(page).waitFor();
  const names = [];
  for (let i = 0; i < 60; i++) {
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
  for (const name of ["Skip to the tools", "Search tools as inspect does", "Search", "alpha", "evil", "The interface of the tool", "Arguments, as JSON", "Call"])
    check(page, names.includes(name), `Tab does not reach ${name}, but ${names.join(" | ")}`);
  await page.getByRole("link", { name: "alpha", exact: true }).first().focus();
  await page.keyboard.press("Enter");
  await panel(page).getByRole("link", { name: "echo", exact: true }).waitFor();
  await page.keyboard.press("Tab"); // from the panel on
  await page.keyboard.press("Enter");
  await page.getByLabel("Arguments, as JSON").waitFor();
  await page.getByLabel("Arguments, as JSON").focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  for (let i = 0; i < 6; i++) {
    await page.keyboard.press("Tab");
    check(page, await page.evaluate(() => document.activeElement === document.body || document.querySelector("dialog").contains(document.activeElement)), "the focus leaves the question");
  }
  await page.keyboard.press("Escape");
  check(page, await call(page).evaluate((node) => node === document.activeElement), "the focus is not back at the button after the question");
  await page.context().close();
}

async function nothing(width, scheme) {
  const page = await open(width, scheme, empty);
  await page.getByText("There are no servers yet").waitFor();
  await look(page, "empty");
  await page.context().close();
}

async function door(width, scheme) {
  const page = await open(width, scheme, guarded);
  await page.getByLabel("Token", { exact: true }).waitFor();
  await look(page, "door");
  for (const [token, refusal] of [["wrong", "is not valid"], ["user-token", '"admin": true']]) {
    await page.getByLabel("Token", { exact: true }).fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText(refusal).waitFor();
  }
  await look(page, "refused");
  await page.getByLabel("Token", { exact: true }).fill("root-token");
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
  await other.getByRole("button", { name: "Sign out" }).click();
  await other.getByLabel("Token", { exact: true }).waitFor();
  await page.getByLabel("Token", { exact: true }).waitFor();
  await other.close();
  await page.getByLabel("Token", { exact: true }).fill("root-token");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token", { exact: true }).waitFor();
  check(page, (await page.context().cookies()).length === 0, "the cookie is still there");
  await page.reload();
  await page.getByLabel("Token", { exact: true }).waitFor();
  await page.context().close();
}

async function all() {
  await scenes(320, "light"); // 1280 px at 400 %
  for (const width of [390, 1440]) {
    for (const scheme of ["dark", "light"]) {
      if (!process.env.MCPX_FULL && !judged.includes(`${width} ${scheme}`)) continue;
      await scenes(width, scheme);
      await nothing(width, scheme);
      await door(width, scheme);
    }
    await keys(width);
  }
  await live();
}

await all().catch((failure) => wrong.push(failure.stack));
await started.close();
console.log(JSON.stringify(wrong));
