// The form's script: it has the draft looked at while it is filled in, and puts what is wrong beside its field. Without it
// the form works, with a button for that. What it shows was rendered, and escaped, by the server, or is set as text.
"use strict";

const form = document.getElementById("draft");
if (form) checking(form);

for (const one of document.querySelectorAll("form[data-confirm]")) {
  one.addEventListener("submit", (event) => {
    if (!window.confirm(one.dataset.confirm)) event.preventDefault();
  });
}

function checking(form) {
  const place = document.getElementById("check");
  const said = document.getElementById("said");
  let timer = 0;
  let running = false;
  let again = false;
  document.getElementById("look").hidden = true;

  async function look() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      const reply = await fetch(form.dataset.check, {
        method: "POST",
        body: new URLSearchParams(new FormData(form)),
        headers: { accept: "text/html" },
      });
      if (!reply.ok) throw new Error();
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      place.replaceChildren(...page.body.childNodes);
      beside(form, place);
      const words = place.querySelector("[data-said]").dataset.said;
      if (said.textContent !== words) said.textContent = words;
    } catch {
      said.textContent = "This cannot be checked now. Has the command ended?";
    } finally {
      running = false;
      if (again) {
        again = false;
        look();
      }
    }
  }
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(look, 400);
  };
  form.addEventListener("input", changed);
  form.addEventListener("change", changed);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("input")) event.preventDefault();
  });
}

// what is wrong stands at its field; what is only not said yet stays there where it already stood
function beside(form, place) {
  const found = new Map();
  for (const one of place.querySelectorAll("[data-field]")) found.set(one.dataset.field, one);
  for (const line of form.querySelectorAll(".fault")) {
    const field = line.id.slice(0, -"-fault".length);
    const lack = found.get(field);
    const wrong = lack && (!lack.dataset.unsaid || !line.hidden) ? lack.dataset.words : "";
    line.hidden = !wrong;
    if (line.textContent !== wrong) line.textContent = wrong;
    const control = document.getElementById(field);
    if (control) control.toggleAttribute("aria-invalid", Boolean(wrong));
    if (control && wrong) control.setAttribute("aria-invalid", "true");
  }
}
