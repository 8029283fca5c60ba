// Builds elements. Text is always a text node: ids and records of users are never HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element. `attributes`: `class`, `on…` listeners, `data-key`; other names are attributes; false and null are left out. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same of SVG. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Replace what is in `parent`. The focus, and which <details> are open, stay where they were, by `data-key`. */
export function replace(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const open = new Set([...parent.querySelectorAll("details[open][data-key]")].map((each) => each.dataset.key));
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  for (const each of parent.querySelectorAll("[data-key]")) {
    if (each.tagName === "DETAILS" && open.has(each.dataset.key)) each.open = true;
    if (focused && each.dataset.key === focused) each.focus({ preventScroll: true });
  }
}

/** A table. `columns`: {name, number?}; `rows`: lists of cells. */
export function table(caption, columns, rows, empty) {
  if (!rows.length) return h("p", { class: "quiet" }, empty);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption, "data-key": `table:${columns[0].name}:${columns.at(-1).name}` },
    h("table", {}, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.number && "number" }, column.name)))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell, at) => h("td", { class: columns[at].number && "number" }, cell)))))));
}

export function card(value, name, kind) {
  return h("div", { class: "card" }, h("b", { class: kind }, value), h("span", {}, name));
}

export function bytes(size) {
  if (size < 0) return "unknown";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (size >= 1024 && at < units.length - 1) { size /= 1024; at += 1; }
  return `${at ? size.toFixed(1) : size} ${units[at]}`;
}

export function count(number) {
  return number === -1 ? "unknown" : number.toLocaleString("en");
}

export function duration(ms) {
  if (ms < 0) return "unknown";
  if (ms < 1000) return `${ms} ms`;
  return ms < 120000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60000)} min`;
}

export function clock(ms) {
  return new Date(ms).toLocaleTimeString("en-GB");
}

export function time(ms) {
  return ms < 0 ? "unknown" : new Date(ms).toISOString().replace("T", " ").replace("Z", " UTC");
}

export function link(page, name, text = name) {
  return h("a", { href: `#/${page}/${encodeURIComponent(name)}`, "data-key": `${page}:${name}` }, text);
}

/** Say something in the corner; screen readers hear it. */
export function notify(text) {
  const notice = document.getElementById("notice");
  notice.replaceChildren(h("p", {}, text));
  clearTimeout(notify.timer);
  notify.timer = setTimeout(() => notice.replaceChildren(), 6000);
}
