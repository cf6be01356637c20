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
const others = await Promise.all(values.slice(1).map((value) => client.report(value)));
const wrong = await Promise.all(["none", "", null, undefined, 2 ** 63, "\ud800", {}, [values[0]]].map(refused));
const changed = [
  [/"odds":\[(\d+)/, '"odds":[9$1'],
  [/"odds":\[\d+/, '"odds":[1.5'],
  [/"prime":\d+/, '"prime":4'],
  [/"prime":\d+/, '"prime":1022117'], // 1009 · 1013
  [/"dimension":\d+/, '"dimension":3'],
  [/"inputs":\d+/, '"inputs":5000'],
  [/"inputs":\d+/, '"inputs":-1'],
  [/"inputs":\d+/, '"inputs":3'],
  [/"inputs":(\d+)/, '"inputs":"$1"'],
  [/"odds":\[\d+,\d+/, '"odds":[1,"0.5"'],
  [/"size":1/, '"size":2'],
  [/local 1/, "local 2"],
  [/"each":null/, '"each":{"epsilon":"1","odds":[9999999,1048576]}'],
];
const forged = [];
for (const [from, to] of changed) await open(text.replace(from, to)).then(() => forged.push("taken"), (error) => forged.push(error.name));
console.log(JSON.stringify({ first, again, others, wrong, forged }));
