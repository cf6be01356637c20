// What the JavaScript client does with its storage: one line of JSON.
const [, , module, text] = process.argv;
const { Client, open } = await import(module);
const kept = new Map();
const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value) };
const collection = await open(text);
const client = new Client(collection, storage);
const refused = async (value) => client.report(value).then(() => "taken", (error) => error.name);
const values = collection.attributes[0].values;
const first = await client.report(values[0]);
const again = await new Client(collection, storage).report(values[0]);
const others = await Promise.all(values.slice(1).map(refused));
const wrong = await Promise.all(["none", "", null, undefined, 2 ** 63, "\ud800", {}, [values[0]]].map(refused));
let forged = "taken";
await open(text.replace(/"odds":\[(\d+)/, '"odds":[9$1')).catch((error) => (forged = error.name));
console.log(JSON.stringify({ first, again, others, wrong, forged }));
