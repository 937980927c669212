// The browser of page-check.mjs, and what holds in every scene of the page.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { en } from "../../internal/hosted/page/assets/en.js";
import { zh } from "../../internal/hosted/page/assets/zh.js";

export const wrong = []; // what is wrong with the page
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
      // Its own configuration looks for its fonts in /tmp/fonts alone, and without any font it crashes. Those of the system have
      // Chinese, where it is installed.
      process.env.FONTCONFIG_FILE = join(tmpdir(), "page-fonts.conf");
      writeFileSync(process.env.FONTCONFIG_FILE, `<fontconfig><dir>${tmpdir()}/fonts</dir><dir>/usr/share/fonts</dir><cachedir>${tmpdir()}/fonts-cache</cachedir></fontconfig>`);
    }
    return await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  } catch (failure) {
    console.error(`no browser starts here (apt install chromium, or MCPX_CHROMIUM=FILE): ${failure.message}`);
    process.exit(77);
  }
}

export const started = await browser();

// A window is a width, a scheme and a language.
export const windowOf = (width, scheme, locale) => ({ width, scheme, locale });

let opened;
export const last = () => opened; // the page that was opened last

// open is a page of its own, with what its console says. page.t has the texts of the page.
export async function open({ width, scheme, locale }, address) {
  const context = await started.newContext({ viewport: { width, height: width < 800 ? 844 : 900 }, colorScheme: scheme, locale, reducedMotion: "reduce" });
  const page = await context.newPage();
  opened = page;
  page.at = `${width} ${scheme} ${locale}`;
  page.t = (key, values = {}) => {
    const text = (locale.startsWith("zh") ? zh : en)[key];
    return (text.other ?? text).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
  };
  watch(page);
  page.setDefaultTimeout(Number(process.env.PATIENCE ?? 120_000)); // passes only where the check fails anyway
  await page.goto(address);
  return page;
}

export function watch(page) {
  page.on("console", (message) => {
    // The browser reports each refusal; those here are wanted.
    if (["error", "warning"].includes(message.type()) && !/status of (40[01349]|422|502)/.test(message.text())) wrong.push(`${page.at}: console: ${message.text()}`);
  });
  page.on("pageerror", (failure) => wrong.push(`${page.at}: ${failure.stack}`));
  page.on("dialog", (dialog) => {
    wrong.push(`${page.at}: a script of a server ran: ${dialog.message()}`);
    dialog.dismiss();
  });
}

export const check = (page, ok, text) => ok || wrong.push(`${page.at}: ${text}`);

// unmarked: no text of a server has become markup. The policy of the page would keep its scripts from running, so no dialog shows.
export async function unmarked(page, scene) {
  const foreign = await page.locator("body :is(img, iframe, object, embed, script, style, base, b:not(figcaption > b), i, [onerror], [onload], [href^='javascript:' i])").count();
  check(page, foreign === 0, `${scene}: ${foreign} elements of a server`);
}

let pictures = 0;

// failed says where a walk could not go on, with a picture.
export async function failed(page, name, failure) {
  wrong.push(`${page.at}: ${name}: ${failure.stack}`);
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/failed-${name}-${++pictures}.png`, fullPage: true });
}

// look is what holds in every scene: no text is markup, nothing runs over the side, also at 320 px, which are 1280 px at 400 %, and axe finds nothing.
// Where the tour walks in one window for all, the scene is seen at 1440 px too, and axe looks at every other one there, in the
// light scheme.
export async function look(page, scene) {
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/${page.at.replaceAll(" ", "-")}-${String(++pictures).padStart(2, "0")}-${scene}.png`, fullPage: true });
  await unmarked(page, scene);
  const size = page.viewportSize();
  for (const width of size.width === 390 ? [...(page.bothSeen ? [1440] : []), 320, 390] : [size.width]) {
    if (size.width === 390) await page.setViewportSize({ ...size, width });
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(page, over <= 0, `${scene}: ${over} px wider than ${width} px`);
  }
  page.looks = (page.looks ?? 0) + 1;
  const wide = page.bothSeen && page.looks % 2 === 0;
  if (wide) {
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.emulateMedia({ colorScheme: "light" });
  }
  const found = await page.evaluate(`${axe}; axe.run(document, {resultTypes: ["violations"]})`);
  for (const one of found.violations) wrong.push(`${page.at}${wide ? ", 1440 light" : ""}: ${scene}: axe: ${one.id}: ${one.nodes.map((node) => node.target.join(" ")).join(", ")}: ${one.help}`);
  if (wide) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme: "dark" });
  }
}

// tables: both languages have the same texts, with the same places for values.
export function tables() {
  const places = (text) => JSON.stringify([...new Set(JSON.stringify(text).match(/(?<!\$)\{\w+\}/g) ?? [])].sort());
  for (const key of new Set([...Object.keys(en), ...Object.keys(zh)])) {
    if (key.startsWith("code.")) continue; // mcpx says these in English
    if (!en[key] || !zh[key]) wrong.push(`only one language has ${key}`);
    else if (places(en[key]) !== places(zh[key])) wrong.push(`${key} has other places in Chinese`);
  }
}
