// The broker's API. A failure is an Error with the broker's own reason.

let token = "1"; // of the session: every action names it

export async function session() {
  const it = await answer(await fetch("/session"));
  token = it.action_token;
  return it;
}

export async function logIn(user, password) { return answer(await post("/session/login", { user, password }), false); }

export async function logOut() { return answer(await post("/session/logout", {})); }

export async function get(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== null));
  return answer(await fetch(`/api/${path}${query.size ? `?${query}` : ""}`));
}

export async function act(action, body) {
  return answer(await post(`/api/actions/${action}`, body));
}

function post(path, body) {
  const headers = { "content-type": "application/json", "x-rota-action": token };
  return fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
}

async function answer(response, reloads = true) {
  let body = null;
  try { body = await response.json(); } catch { /* no JSON: the status says what there is to say */ }
  if (response.status === 401 && reloads) location.reload(); // the session has ended: the page asks for a login
  if (!response.ok) throw new Error(body?.error ?? `the broker answered ${response.status}`);
  return body;
}
