// Which page is shown, and when it is loaded again: on the broker's events, and every few seconds while it is visible.

import { logIn, logOut, session } from "./api.js";
import { ask } from "./dialogs.js";
import { h, replace } from "./dom.js";
import { client, clients } from "./pages/clients.js";
import { cluster } from "./pages/cluster.js";
import { topic } from "./pages/topic.js";
import { topics } from "./pages/topics.js";
import { groups } from "./pages/groups.js";
import { group } from "./pages/group.js";

const POLL_MS = 5000, SETTLE_MS = 150;
const PAGES = { "": cluster, topics, topic, groups, group, clients, client };
const SECTION = { "": "cluster", topics: "topics", topic: "topics", groups: "groups", group: "groups", clients: "clients", client: "clients" };

const main = document.getElementById("main");
let started = false, page = null, waiting = null, loading = false, again = false;

function open() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  const [name, ...rest] = location.hash.slice(2).split("/");
  const make = PAGES[name] ?? cluster;
  page?.close?.();
  replace(main);
  page = make(main, decodeURIComponent(rest.join("/")), reload);
  document.title = `${page.title} – Rota`;
  for (const each of document.querySelectorAll("nav a")) {
    if (each.dataset.page === SECTION[name]) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  load();
}

async function load() {
  if (!started) return;
  if (loading) { again = true; return; }
  loading = true;
  const shown = page;
  try {
    await shown.load();
    if (shown === page) main.querySelector(":scope > .failure")?.remove();
  } catch (error) {
    if (shown === page) fail(error);
  }
  loading = false;
  if (again) { again = false; load(); }
}

function fail(error) {
  main.querySelector(":scope > .failure")?.remove();
  main.prepend(h("p", { class: "failure bad", role: "alert" }, error.message));
}

function reload() {
  clearTimeout(waiting);
  waiting = setTimeout(load, SETTLE_MS);
}

function listen() {
  const status = document.getElementById("connection");
  const source = new EventSource("/api/events");
  source.onopen = () => { status.textContent = "live"; reload(); };
  source.onerror = () => { status.textContent = "not connected; trying again"; };
  source.addEventListener("changed", (event) => {
    const names = JSON.parse(event.data);
    if (names.some((name) => page.shows(name))) reload();
  });
}

const stored = localStorage.getItem("theme");
if (stored) document.documentElement.dataset.theme = stored;
document.getElementById("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", document.documentElement.dataset.theme);
});

addEventListener("hashchange", () => { if (!started) return; open(); if (location.hash.startsWith("#/")) main.focus(); });
setInterval(() => { if (!document.hidden) load(); }, POLL_MS);
document.addEventListener("visibilitychange", () => { if (!document.hidden) load(); });
async function start() {
  const me = await session();
  if (me.needs_login) return logInFirst();
  if (me.user) {
    document.getElementById("user").textContent = `${me.user} (${me.role})`;
    const button = document.getElementById("logout");
    button.hidden = false;
    button.addEventListener("click", async () => { await logOut(); location.reload(); });
  }
  started = true;
  open();
  listen();
}

function logInFirst() {
  replace(main, h("p", {}, h("button", { type: "button", class: "main", onclick: logInFirst }, "Log in")));
  ask("Log in", [
    h("label", {}, "User", h("input", { name: "user", autocomplete: "username", required: "" })),
    h("label", {}, "Password", h("input", { name: "password", type: "password", autocomplete: "current-password", required: "" })),
  ], "Log in", async (form) => { await logIn(form.get("user"), form.get("password")); location.reload(); });
}

start().catch(fail);
