// Questions before actions. <dialog> keeps the focus inside and gives it back.

import { h, notify } from "./dom.js";

/** Ask; `body` are elements, `act` is called with the form's data when the user agrees. A failure is shown inside. */
export function ask(title, body, button, act, kind = "main") {
  const failure = h("p", { class: "bad", role: "alert" });
  const form = h("form", { method: "dialog" }, h("h2", { id: "question" }, title), body, failure,
    h("div", { class: "buttons" },
      h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
      h("button", { type: "submit", class: kind }, button)));
  const dialog = h("dialog", { "aria-labelledby": "question" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    failure.textContent = "";
    try {
      const said = await act(new FormData(form));
      if (said !== false) dialog.close();
      if (said) notify(said);
    } catch (error) { failure.textContent = error.message; }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
