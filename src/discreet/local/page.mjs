// The page's own script: takes the answers from the form, randomises them here, and sends the report to its own origin.
import { Client, open } from "./client.mjs";

const at = (id) => document.getElementById(id);
const text = await (await fetch("collection.json")).text();
const collection = await open(text);

function answer() {
  const given = collection.attributes.map(({ values }, place) => {
    const { value } = at(`answer${place}`);
    return values ? values[Number(value)] : value;
  });
  if (collection.attributes.length === 1 && !collection.attributes[0].name) return given[0];
  return Object.fromEntries(collection.attributes.map(({ name }, place) => [name, given[place]]));
}

async function send() {
  const publics = [...document.querySelectorAll(".public")].map(({ name, value }) => [name, value]);
  const report = await new Client(collection, localStorage).report(answer(), Object.fromEntries(publics));
  const body = JSON.stringify(report);
  const reply = await fetch("reports", { method: "POST", headers: { "content-type": "application/json" }, body });
  if (!reply.ok) throw new Error((await reply.json()).message);
  at("sent").textContent = body;
  at("shown").hidden = false;
  return "Your report was sent. What you chose stays on this device.";
}

function say(text, kind) {
  at("said").textContent = text;
  at("said").className = `note ${kind}`;
}

at("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  at("send").disabled = true; // twice would send the same report again
  try {
    say(await send(), "good");
  } catch (error) {
    say(error.message, "bad");
  }
  at("send").disabled = false;
});
document.body.dataset.ready = "yes";
