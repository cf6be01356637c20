// What the JavaScript client makes of documents: for each null where it is refused, else its hash and the reports of some answers,
// null for those that are refused. Reads a file of JSON, writes JSON.
import { readFileSync } from "node:fs";
const [, , module, file] = process.argv;
const { open, randomised, Words } = await import(module);
const { secret, window, tape, cases } = JSON.parse(readFileSync(file, "utf-8"));
const bytes = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
const found = [];
for (const { document, answers } of cases) {
  const collection = await open(document).catch((error) => {
    if (!(error instanceof TypeError)) throw error;
  });
  if (!collection) {
    found.push(null);
    continue;
  }
  const reports = [];
  for (const answer of answers) {
    const made = randomised(collection, bytes(secret), window, answer, new Words(bytes(tape)));
    reports.push(await made.then(JSON.stringify, (error) => {
      if (!(error instanceof TypeError)) throw error;
      return null;
    }));
  }
  found.push([collection.hash, ...reports]);
}
console.log(JSON.stringify(found));
