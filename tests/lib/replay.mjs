// Replays vectors.json with the JavaScript client: prints how many reports agree, or fails with the first that does not.
import { readFileSync } from "node:fs";
const [, , module, vectors] = process.argv;
const { open, randomised, Words } = await import(module);
const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
let same = 0;
for (const { document, hash, cases } of JSON.parse(readFileSync(vectors, "utf-8"))) {
  const collection = await open(document);
  if (collection.hash !== hash) throw new Error(`hash of ${collection.name}`);
  for (const { secret, window, value, turn, fresh, ...wanted } of cases) {
    const words = new Words(bytes(fresh), () => { throw new Error("used up"); });
    const found = await randomised(collection, bytes(secret), window, value, words, turn);
    if (JSON.stringify(found) !== JSON.stringify(wanted)) {
      throw new Error(`${collection.name} ${JSON.stringify(value)}: ${JSON.stringify(found)} for ${JSON.stringify(wanted)}`);
    }
    same++;
  }
}
console.log(same);
