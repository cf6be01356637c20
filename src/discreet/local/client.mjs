// The respondent's side in JavaScript, for browsers and Node: the same reports as discreet.local.Client, byte for byte.
//
//     const client = new Client(await open(text), localStorage); // text: the collection's document
//     const report = await client.report("yes"); // all that may leave the device
//
// All numbers are integers below 2^53, which doubles hold exactly. Nothing here decides by floating point.
const encoder = new TextEncoder();
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const hmac = async (key, text) => new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(text)));
const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

/** Uniform integers from bytes; `more` gives others when they are used up, or throws. */
export class Words {
  constructor(bytes, more) {
    Object.assign(this, { bytes, more, next: 0 });
  }
  /** The operating system's generator. */
  static fresh() {
    const fill = () => crypto.getRandomValues(new Uint8Array(4096));
    return new Words(fill(), fill);
  }
  /** A number below 2^bits: a little-endian integer of whole bytes, without its lowest bits beyond `bits`. */
  big(bits) {
    const length = Math.ceil(bits / 8);
    if (this.next + length > this.bytes.length) {
      this.bytes = this.more();
      this.next = 0;
    }
    let value = 0;
    for (let place = length - 1; place > 0; place--) value = value * 256 + this.bytes[this.next + place];
    const spare = 8 * length - bits;
    if (length) value = value * 2 ** (8 - spare) + (this.bytes[this.next] >> spare);
    this.bytes.fill(0, this.next, (this.next += length));
    return value;
  }
  /** A uniform number below `count`, by rejection. */
  below(count) {
    if (!(Number.isSafeInteger(count) && count > 0)) throw new RangeError("no such lot can be drawn");
    const top = count - 1, bits = top < 2 ** 32 ? 32 - Math.clz32(top) : 64 - Math.clz32(Math.floor(top / 2 ** 32));
    for (let drawn; ; ) if ((drawn = this.big(bits)) < count) return drawn;
  }
}
/** What `use` makes of the stream HMAC-SHA256(secret, message ∥ "\n" ∥ 0, 1, …), tried with more where it ends. */
async function remembered(key, message, use) {
  for (let blocks = 1; ; blocks *= 2) {
    const bytes = new Uint8Array(32 * blocks), dry = new Error("dry");
    for (let i = 0; i < blocks; i++) bytes.set(await hmac(key, `${message}\n${i}`), 32 * i);
    try {
      return use(new Words(bytes, () => { throw dry; }));
    } catch (error) {
      if (error !== dry) throw error;
    }
  }
}

const points = (q, t) => (q ** t - 1) / (q - 1);
function vector(q, t, place) {
  let found = new Array(t).fill(0), free = 0;
  for (let block = 1; place >= block; block *= q, free++) place -= block;
  for (let i = 0; i < free; i++, place = Math.floor(place / q)) found[i] = place % q;
  found[free] = 1;
  return found;
}
function number(q, y) {
  let last = y.length - 1, scale = 1, place = 0;
  while (!y[last]) last--;
  while ((scale * y[last]) % q !== 1) scale++;
  for (let i = 0, power = 1; i < last; i++, power *= q) place += (((y[i] * scale) % q) + 1) * power;
  return place;
}
const scramble = (h, by, times) => Math.imul(h ^ (h >>> by), times);
const mix = (h) => ((h = scramble(scramble(h, 16, 0x85ebca6b), 13, 0xc2b2ae35)) ^ (h >>> 16)) >>> 0;
function response(inputs, [likely, unlikely], at, words) {
  const place = words.below(likely + (inputs - 1) * unlikely) - likely, instead = Math.floor(place / unlikely);
  return place < 0 ? at : instead + (instead >= at);
}
const channels = {
  "randomised response": (channel, odds, at, words) => response(channel.inputs, odds, at, words),
  "projective geometry response": ({ prime: q, dimension: t }, [likely, unlikely], at, words) => {
    const x = vector(q, t, at).reverse(), first = x.indexOf(1), size = points(q, t - 1);
    const place = words.below(size * likely + (points(q, t) - size) * unlikely), outside = place - size * likely;
    let y = outside < 0 ? vector(q, t - 1, Math.floor(place / likely)) : [];
    for (let rest = Math.floor(outside / unlikely); y.length < t - 1; rest = Math.floor(rest / q)) y.push(rest % q);
    y.splice(first, 0, 0);
    y[first] = ((outside >= 0) + q - (y.reduce((total, one, i) => total + one * x[i], 0) % q)) % q;
    return number(q, y);
  },
  "hybrid mechanism": (channel, [likely, unlikely], at, words) => {
    const { stride, width } = channel, steps = channel.inputs - 1, all = steps * stride + width;
    const pair = () => all + (words.below(steps * (likely + unlikely)) < at * likely + (steps - at) * unlikely);
    if (words.below(2 ** 20) >= channel.mix) return pair();
    const start = at * stride, place = words.below(width * likely + (all - width) * unlikely);
    if (place < width * likely) return start + Math.floor(place / likely);
    const instead = Math.floor((place - width * likely) / unlikely);
    return instead + (instead >= start ? width : 0);
  },
  "local hashing": ({ buckets }, odds, [high, low], words) => {
    const seed = words.below(2 ** 32), bucket = mix(mix((seed ^ high) >>> 0) ^ low) % buckets;
    return seed * buckets + response(buckets, odds, bucket, words);
  },
};
/** A report of answer number `at`. */
export function draw(channel, odds, at, words) {
  if (at >= channel.inputs) throw new RangeError("the channel has no such answer");
  return channels[channel.mechanism](channel, odds, at, words);
}
const whole = (one) => typeof one === "string" || (Number.isSafeInteger(one) && one >= 0);
const divisor = (q) => q > 1000 || Array.from({ length: q }, (_, d) => d).some((d) => d > 1 && q % d === 0);
/** Whether a channel of a document is one: of whole numbers, and a geometry over a field, with points enough. */
const sound = ({ prime: q = 2, dimension: t = 60, ...part }) =>
  [q, t, ...Object.values(part)].every(whole) && q > 1 && t > 2 && !divisor(q) && !(part.inputs > points(q, t));
/** A decimal as [numerator, denominator]. */
function decimal(value) {
  const match = /^(?=[+-]?\.?\d)([+-]?\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?$/.exec(String(value));
  if (!match || !["number", "string", "bigint"].includes(typeof value)) throw new TypeError("answer a finite number");
  const power = Number(match[3] ?? 0) - (match[2] ?? "").length, digits = BigInt(match[1] + (match[2] ?? ""));
  return power < 0 ? [digits, 10n ** BigInt(-power)] : [digits * 10n ** BigInt(power), 1n];
}
function code(one, value) {
  const known = value?.normalize ? value.normalize("NFC") : value;
  if (typeof known === "string" && /\p{Surrogate}/u.test(known)) throw new TypeError("answer whole characters");
  if (one.kind === "values") {
    if (!one.values.includes(known)) throw new TypeError("answer one of the values of the collection");
    return one.values.indexOf(known);
  }
  if (one.kind === "text") {
    if (typeof known !== "string" || !known || known.includes("\0")) throw new TypeError("answer a text");
    const bytes = encoder.encode(known), found = new Uint8Array(one.length);
    let end = Math.min(one.length, bytes.length);
    while (end < bytes.length && (bytes[end] & 0xc0) === 0x80) end--;
    found.set(bytes.subarray(0, end));
    return found;
  }
  const [[a, b], [c, d], [e, f], [g, h]] = [known, one.low, one.high, one.step].map(decimal);
  if (a * d <= c * b) return 0;
  const [up, down] = a * f >= e * b ? [e * d - c * f, f * d] : [a * d - c * b, b * d];
  return Number((2n * up * h + down * g) / (2n * down * g)); // rounded to the nearest step, the upper one of two
}
/** The collection of a document, with its hash and with all that a report may be about. */
export async function open(text) {
  const found = JSON.parse(text), { attributes, cap, each, reports, version } = found, ln = /^ln /;
  const at = ({ epsilon }) => (ln.test(epsilon) ? Number(epsilon.replace(ln, "")) : Math.exp(epsilon));
  const fits = (one) => one.odds.every(whole) && one.odds[0] <= one.odds[1] * at(one) * (1 + 1e-12);
  const parts = attributes.flatMap((one) => one.parts), twice = ({ mechanism }) => /response$/.test(mechanism);
  const again = !each || (fits(each) && parts.every(twice) && reports * Math.log(at(each)) <= cap * (1 + 1e-12));
  const known = version === "discreet local 1" && fits(found) && parts.every(sound) && again;
  if (!known) throw new TypeError("this is no document of a collection");
  return { ...found, hash: hex(await sha256(encoder.encode(text))) };
}
/** token, part and report of a respondent with this secret of 32 bytes; what is re-randomised is drawn from `words`. */
export async function randomised(collection, secret, window, value, words, turn = 0) {
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const message = (name, ...fields) => [name, collection.hash, window, ...fields].join("\n");
  const all = collection.attributes, single = all.length === 1 && !all[0].name;
  const codes = all.map((one) => code(one, single ? value : value?.[one.name]));
  const [place, level] = await remembered(key, message("part"), (stream) => {
    const chosen = stream.below(all.length);
    return [chosen, stream.below(all[chosen].parts.length)];
  });
  const part = all[place].parts[level], index = all.slice(0, place).reduce((sum, one) => sum + one.parts.length, level);
  let at = codes[place], known;
  if (at instanceof Uint8Array) {
    const prefix = at.slice(0, part.size), print = new DataView((await sha256(prefix)).buffer);
    [at, known] = [[print.getUint32(0), print.getUint32(4)], hex(prefix)];
  } else known = String((at = Math.floor(at / part.size)));
  const first = (stream) => draw(part, collection.odds, at, stream);
  let report = await remembered(key, message("answer", index, known), first);
  const outputs = part.prime ? points(part.prime, part.dimension) : part.inputs;
  if (collection.each) report = response(outputs, collection.each.odds, report, words);
  const token = await hmac(key, message("token", turn));
  return { token: hex(token.slice(0, 16)), part: index, report };
}
let last = Promise.resolve();
/** One respondent. `storage` has getItem and setItem, as localStorage: it holds the secret and what was reported. */
export class Client {
  constructor(collection, storage) {
    Object.assign(this, { collection, storage });
  }
  /** The report of this answer for today's window (of UTC). `publics` is sent as it is. RangeError beyond its cap. */
  async report(value, publics = {}) {
    const locks = globalThis.navigator?.locks, one = () => this.#report(value, publics);
    return locks ? locks.request("discreet", one) : (last = last.then(one, one)); // one at a time
  }
  async #report(value, publics) {
    const { collection, storage } = this, length = { day: 10, month: 7, year: 4 }[collection.window];
    const window = length ? new Date().toISOString().slice(0, length) : "ever";
    if (!storage.getItem("discreet")) storage.setItem("discreet", hex(crypto.getRandomValues(new Uint8Array(32))));
    const place = `discreet ${collection.hash} ${window}`, before = JSON.parse(storage.getItem(place) ?? "[]");
    const again = collection.each, turn = again ? before.length : 0;
    const secret = Uint8Array.from(storage.getItem("discreet").match(/../g), (pair) => parseInt(pair, 16));
    const made = await randomised(collection, secret, window, value, Words.fresh(), turn);
    if (again && turn >= collection.reports) throw new RangeError("the window's cap is reached");
    if (before.length && !again) [made.part, made.report] = before[0]; // whatever the answer is by now
    else storage.setItem(place, JSON.stringify([...before, [made.part, again ? 0 : made.report]]));
    return { collection: collection.hash, window, ...made, ...(Object.keys(publics).length && { public: publics }) };
  }
}
