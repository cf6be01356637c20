// The page's own script: every few seconds it asks whether reports have come, and then takes the numbers from the page as
// the server has rendered it. Without it, the page has a link that does the same once.
"use strict";

const SECONDS = 5;
const SHARE = 10; // of the time at most one part in so many is spent on estimating
const live = document.getElementById("live");
const looked = document.getElementById("looked");
const follow = document.getElementById("follow");
document.getElementById("following").hidden = false;
let moment = looked.textContent;

async function look() {
  let wait = SECONDS * 1000;
  if (follow.checked && !document.hidden) {
    const begun = performance.now();
    try {
      const sizes = await fetch("sizes");
      const said = await sizes.json();
      if (!sizes.ok || said.stamp !== live.dataset.stamp) await again();
      moment = sizes.ok ? `Looked at ${said.moment}.` : moment;
      say(moment);
    } catch {
      say(`The command has ended, or does not answer. ${moment}`);
    }
    wait = Math.max(wait, SHARE * (performance.now() - begun));
  }
  setTimeout(look, wait);
}

async function again() {
  const reply = await fetch(location.href, { headers: { accept: "text/html" } });
  const fresh = new DOMParser().parseFromString(await reply.text(), "text/html").getElementById("live");
  const stood = [...live.querySelectorAll("a, [tabindex]")].indexOf(document.activeElement);
  const scrolled = [...live.querySelectorAll(".box")].map(({ scrollLeft, scrollTop }) => [scrollLeft, scrollTop]);
  live.replaceChildren(...fresh.childNodes);
  live.dataset.stamp = fresh.dataset.stamp;
  live.querySelectorAll(".box").forEach((box, place) => box.scrollTo(...(scrolled[place] ?? [0, 0])));
  if (stood >= 0) live.querySelectorAll("a, [tabindex]")[stood]?.focus({ preventScroll: true });
}

function say(text) {
  if (looked.textContent !== text) looked.textContent = text;
}

setTimeout(look, SECONDS * 1000);
