// The broker's API. A failure is an Error with the broker's own reason.

export async function get(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== null));
  return answer(await fetch(`/api/${path}${query.size ? `?${query}` : ""}`));
}

export async function act(action, body) {
  const headers = { "content-type": "application/json", "x-rota-action": "1" };
  return answer(await fetch(`/api/actions/${action}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function answer(response) {
  let body = null;
  try { body = await response.json(); } catch { /* no JSON: the status says what there is to say */ }
  if (!response.ok) throw new Error(body?.error ?? `the broker answered ${response.status}`);
  return body;
}
