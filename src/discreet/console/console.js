// The console's script: it proposes names, has a draft looked at while it is written, moves between price and error, and
// sends a form once. Without it every page works, with fewer comforts. It writes no HTML of its own making: what it shows
// was rendered, and escaped, by the server, or is set as text.
"use strict";

const form = document.getElementById("ask");
if (form) editor(form);

for (const one of document.querySelectorAll("form[data-confirm]")) {
  one.addEventListener("submit", (event) => {
    if (!window.confirm(one.dataset.confirm)) event.preventDefault();
  });
}

// a form that is sent once, however often somebody presses; the server sees to that too
for (const one of document.querySelectorAll("form[data-once]")) {
  let sent = false;
  one.addEventListener("submit", (event) => {
    if (sent) event.preventDefault();
    sent = true;
  });
  window.addEventListener("pageshow", () => {
    sent = false;
  });
}

// lines to be written elsewhere: a button that copies them, where the browser lets a page do that
for (const lines of navigator.clipboard ? document.querySelectorAll("[data-copy]") : []) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${lines.dataset.copy}`);
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(lines.textContent);
      said.textContent = " Copied.";
    } catch {
      said.textContent = " The browser does not allow it: mark the text, and copy that.";
    }
  });
  const row = document.createElement(lines.tagName === "PRE" ? "p" : "span");
  row.append(" ", button, said);
  lines.after(row);
}

// a job that runs: how far it is, until it ends; then its page is another
const job = document.querySelector("[data-job]");
if (job) follow(job);

async function follow(place) {
  for (;;) {
    await new Promise((done) => setTimeout(done, 2000));
    try {
      const reply = await fetch(place.dataset.job, { headers: { accept: "application/json" } });
      if (reply.status === 429) continue;
      if (!reply.ok) return location.reload();
      const { job } = await reply.json();
      if (job.state !== "running") return location.reload();
      place.querySelector("progress").value = job.done;
      document.getElementById("done").textContent = job.done;
    } catch {
      // the service cannot be reached now: the next look may find it
    }
  }
}

function editor(form) {
  const question = form.elements.question;
  const changed = checking(form);
  const slide = sliding(form, changed);
  form.addEventListener("checked", (event) => slide(event.detail));
  question.addEventListener("input", changed);
  for (const name of ["epsilon", "column", "error"]) form.elements[name].addEventListener("input", changed);
  for (const name of ["afresh", "part"]) form.elements[name]?.addEventListener("change", changed);
  for (const one of form.elements.by) {
    one.addEventListener("change", () => {
      shown(form);
      changed();
    });
  }
  shown(form);
  proposing(question, changed);
  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(document.getElementById("go"));
  });
  onceOnly(form);
  if (question.value.trim()) changed();
}

function shown(form) {
  for (const one of form.querySelectorAll("[data-by]")) one.hidden = one.dataset.by !== form.elements.by.value;
}

// one question, however often somebody presses
function onceOnly(form) {
  const runs = document.getElementById("runs");
  let sent = false;
  form.addEventListener("submit", (event) => {
    if (sent) return event.preventDefault();
    sent = true;
    const seconds = Number(form.dataset.seconds);
    runs.textContent = seconds ? `It runs: answers come after about ${seconds} s.` : "It runs.";
    document.getElementById("go").setAttribute("aria-disabled", "true");
  });
  window.addEventListener("pageshow", () => {
    sent = false;
    runs.textContent = "";
    document.getElementById("go").removeAttribute("aria-disabled");
  });
}

// the draft is looked at when the writer rests; of several the latest
function checking(form) {
  const place = document.getElementById("check");
  let timer = 0;
  let running = false;
  let again = false;
  async function look() {
    if (running) {
      again = true;
      return;
    }
    if (!form.elements.question.value.trim()) return;
    running = true;
    place.setAttribute("aria-busy", "true");
    try {
      const said = new URLSearchParams(new FormData(form));
      said.delete("request");
      const reply = await fetch("/console/check", {
        method: "POST",
        body: said,
        headers: { accept: "text/html" },
        redirect: "manual",
      });
      if (reply.type === "opaqueredirect") return say("You are not logged in any more. Log in in another tab, and go on here.");
      if (reply.status === 429) {
        again = true;
        await new Promise((done) => setTimeout(done, 1000));
        return;
      }
      if (!reply.ok) return say("This could not be looked at now; writing more tries again.");
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      place.replaceChildren(...page.body.childNodes);
      const facts = place.querySelector("[data-plain]");
      if (facts) form.dispatchEvent(new CustomEvent("checked", { detail: JSON.parse(facts.dataset.plain) }));
    } catch {
      say("The service cannot be reached now.");
    } finally {
      running = false;
      place.setAttribute("aria-busy", "false");
      if (again) {
        again = false;
        look();
      }
    }
  }
  function say(text) {
    const line = document.createElement("p");
    line.className = "note";
    line.textContent = text;
    place.replaceChildren(line);
  }
  return () => {
    clearTimeout(timer);
    timer = setTimeout(look, 500);
  };
}

// the slider: between prices, or between errors, on a scale on which each step is as many times as much
function sliding(form, changed) {
  const box = document.getElementById("sliding");
  const slider = document.getElementById("slider");
  const said = document.getElementById("slid");
  const { epsilon, error, column } = form.elements;
  const part = form.elements.part;
  let known = null;
  const scale = (low, high) => ({
    value: (at) => low * Math.pow(high / low, at / 100),
    place: (value) => Math.round((100 * Math.log(value / low)) / Math.log(high / low)),
  });
  const prices = () => {
    const most = Math.max(0.002, Number((part?.selectedOptions[0] ?? form).dataset.most) || 1);
    return scale(Math.min(0.001, most / 10), most);
  };
  const short = (value) => String(Number(value.toPrecision(2)));
  const byPrice = () => form.elements.by.value === "epsilon";
  const target = () => (known && known.errors[column.value] !== undefined ? column.value : known && Object.keys(known.errors)[0]);
  // of noise that grows as the price falls, the error is about in inverse proportion; the check beside says it exactly
  const about = (price, name) => (known.errors[name] * known.epsilon) / price;

  slider.addEventListener("input", () => {
    const price = prices().value(Number(slider.value));
    const name = target();
    if (byPrice()) {
      epsilon.value = short(price);
    } else {
      column.value = name;
      error.value = short(about(price, name));
    }
    tell(price, name);
    changed();
  });
  function tell(price, name) {
    const words = `ε ${short(price)}` + (name ? `: ${name} within about ±${Number(about(price, name).toPrecision(2)).toLocaleString("en")}` : "");
    slider.setAttribute("aria-valuetext", words);
    said.textContent = words;
  }
  return (plain) => {
    if (!(plain.epsilon > 0) || !Object.keys(plain.errors).length) return;
    known = plain;
    box.hidden = false;
    document.getElementById("columns").replaceChildren(
      ...Object.keys(plain.errors).map((name) => {
        const option = document.createElement("option");
        option.value = name;
        return option;
      }),
    );
    if (document.activeElement !== slider) slider.value = prices().place(plain.epsilon);
    tell(plain.epsilon, target());
  };
}

// names that fit what is being written; the list is a listbox whose options the text field speaks for
function proposing(field, changed) {
  const list = document.getElementById("proposals");
  let names = null;
  let options = [];
  let active = -1;
  const word = () => /[\p{L}_][\p{L}\p{N}_]*$/u.exec(field.value.slice(0, field.selectionStart))?.[0] ?? "";
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", "proposals");
  field.setAttribute("aria-haspopup", "listbox");

  async function known() {
    if (names) return names;
    const reply = await fetch("/console/names", { headers: { accept: "application/json" } });
    if (!reply.ok) return [];
    const plain = await reply.json();
    const found = [];
    for (const [table, columns] of Object.entries(plain.tables)) {
      found.push({ text: table, kind: "table" });
      for (const [column, one] of Object.entries(columns)) {
        found.push({ text: column, kind: `column of ${table}${one.type ? `, ${one.type}` : ""}` });
        for (const value of one.values) found.push({ text: value, kind: `value of ${column}`, value: true });
      }
    }
    for (const text of plain.functions) found.push({ text, kind: "function" });
    for (const text of plain.words) found.push({ text, kind: "" });
    names = found;
    return names;
  }

  function close() {
    list.hidden = true;
    list.replaceChildren();
    options = [];
    active = -1;
    field.removeAttribute("aria-activedescendant");
  }

  async function open(forced) {
    const begun = word();
    if (!forced && begun.length < 2) return close();
    const all = await known();
    if (word() !== begun) return;
    const folded = begun.toLowerCase();
    const inside = (field.value.slice(0, field.selectionStart).split("'").length - 1) % 2 === 1;
    const seen = new Set();
    options = all.filter((one) => {
      const fits = Boolean(one.value) === inside && one.text.toLowerCase().startsWith(folded) && one.text !== begun;
      const first = fits && !seen.has(one.text);
      if (first) seen.add(one.text);
      return first;
    });
    options = options.slice(0, 8);
    if (!options.length) return close();
    active = -1;
    field.removeAttribute("aria-activedescendant");
    list.replaceChildren(
      ...options.map((one, place) => {
        const item = document.createElement("li");
        item.id = `proposal-${place}`;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", "false");
        const kind = document.createElement("span");
        kind.className = "soft small";
        kind.textContent = ` ${one.kind}`;
        item.append(one.text, kind);
        item.addEventListener("mousedown", (event) => {
          event.preventDefault();
          take(place);
        });
        return item;
      }),
    );
    list.hidden = false;
  }

  function choose(place) {
    active = (place + options.length) % options.length;
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === active)));
    field.setAttribute("aria-activedescendant", `proposal-${active}`);
  }

  function take(place) {
    const { text, value, kind } = options[place];
    const plain = value || kind === "function" || kind === "" || /^[A-Za-z_][A-Za-z0-9_]*$/.test(text);
    const written = value ? text.replaceAll("'", "''") : plain ? text : `"${text.replaceAll('"', '""')}"`;
    field.setRangeText(written, field.selectionStart - word().length, field.selectionStart, "end");
    close();
    changed();
  }

  field.addEventListener("input", () => open(false));
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (event.ctrlKey && event.code === "Space") {
      event.preventDefault();
      return open(true);
    }
    if (list.hidden) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(active + (event.key === "ArrowDown" ? 1 : active < 0 ? 0 : -1));
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      take(active);
    } else if (event.key === "Escape") {
      event.preventDefault();
      close();
    }
  });
}
