// Plots: bars, and nothing else. Each is an image with a text for screen readers; exact numbers are in a table beside it.
import { el } from "./dom.js";
import { exact, number, t } from "./texts.js";

const names = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const made = document.createElementNS(names, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const image = (width, height, label) =>
  svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label });

// bars draws a bar for each value, from the left to the right. titles, if there are any, show at the mouse. Values under zero, which
// are a cost, hang from the line.
export function bars(values, label, titles) {
  const most = Math.max(...values, 0), least = Math.min(...values, 0);
  const scale = 40 / (most - least || 1);
  const drawn = image(values.length * 4, 40, label);
  values.forEach((value, i) => {
    if (value === 0) return;
    const height = Math.max(1.5, Math.abs(value) * scale);
    const y = value > 0 ? most * scale - height : most * scale;
    const bar = svg("rect", { x: i * 4, y: Math.max(0, y), width: 3, height });
    if (value < 0) bar.setAttribute("class", "cost");
    if (titles) bar.append(svg("title", {}, titles[i]));
    drawn.append(bar);
  });
  return drawn;
}

// beside draws one bar to the right, as long as its part of the longest.
export function beside(value, most) {
  const drawn = svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  if (value !== 0) drawn.append(svg("rect", { x: 0, y: 0, height: 10, width: Math.max(1, (Math.abs(value) / (most || 1)) * 100), ...(value < 0 ? { class: "cost" } : {}) }));
  return drawn;
}

// figure is a plot with its name and its sum above, and what its axis means below.
export function figure(kind, title, values, { total, from, to, each, titles }) {
  const peak = Math.max(...values, 0);
  const most = peak > 0 ? t(each, { value: number(peak) }) : "";
  return el("figure", { class: kind },
    el("figcaption", null, el("b", { title: exact(total) }, number(total)), el("span", null, title)),
    bars(values, `${title}: ${number(total)}${most ? ", " + most : ""}`, titles),
    el("div", { class: "axis", "aria-hidden": "true" }, el("span", null, from), el("span", null, most), el("span", null, to)));
}
