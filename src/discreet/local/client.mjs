// The respondent's side in JavaScript, for browsers and Node: the same reports as discreet.local.Client, byte for byte.
//
//     const client = new Client(await open(text), localStorage); // text: the collection's document
//     const report = await client.report("yes"); // all that may leave the device
//
// A document says what to do; nothing of it is believed. Odds and channels are worked out here, from epsilon and the answers
// alone, and all of the document must then be the same, to the last byte. Reports are drawn with integers up to 2^53, which
// doubles hold exactly, everything else is worked out with BigInt: nothing here decides by floating point.
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
    if (length) value = value * (256 >> spare) + (this.bytes[this.next] >> spare);
    this.bytes.fill(0, this.next, (this.next += length));
    return value;
  }
  /** A uniform number below `count`, by rejection. */
  below(count) {
    if (!(Number.isSafeInteger(count - 1) && count > 0)) throw new RangeError("no such lot can be drawn");
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

const points = (q, t) => (t ? points(q, t - 1) * q + 1 : 0);
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

// Fractions are [numerator, denominator] of BigInts, the denominator above 0.
const over = ([a, b], [c, d]) => (c < 0n ? [-a * d, -b * c] : [a * d, b * c]);
const times = ([a, b], [c, d]) => [a * c, b * d];
const plus = ([a, b], [c, d]) => [a * d + c * b, b * d];
const minus = (one, [c, d]) => plus(one, [-c, d]);
const less = ([a, b], [c, d]) => a * d < c * b;
const whole = (value) => [BigInt(value), 1n];
const ONE = whole(1), UNIT = 2n ** 20n, MOST = 2n ** 53n, LARGEST = 2 ** 25;
const gcd = (a, b) => (b ? gcd(b, a % b) : a);
/** The first of the things that are worth least. */
function least(things, worth) {
  let found, price;
  for (const one of things) {
    const asked = worth(one);
    if (!found || less(asked, price)) [found, price] = [one, asked];
  }
  return found;
}
const wrong = () => new TypeError("this is not a valid collection document");
/** `known`, or an error. */
function must(known) {
  if (!known) throw wrong();
  return known;
}
/** digits·10^power, with its text as a document writes it: without zeros at the end. */
function decimal(digits, power) {
  for (; digits && digits % 10n === 0n; power++) digits /= 10n;
  if (!digits) return { value: whole(0), text: "0" };
  const sign = digits < 0n ? "-" : "", all = String(digits).replace("-", ""), size = all.length, adjusted = size - 1 + power;
  must(size <= 25 && Math.abs(adjusted) <= 5000);
  const value = power < 0 ? [digits, 10n ** BigInt(-power)] : [digits * 10n ** BigInt(power), 1n];
  if (adjusted < -4 || adjusted >= 28) {
    const rest = size > 1 ? `.${all.slice(1)}` : "";
    return { value, text: `${sign}${all[0]}${rest}e${adjusted < 0 ? "-" : "+"}${Math.abs(adjusted)}` };
  }
  if (power >= 0) return { value, text: sign + all + "0".repeat(power) };
  const padded = all.padStart(1 - power, "0");
  return { value, text: `${sign}${padded.slice(0, power)}.${padded.slice(power)}` };
}
/** The decimal that a document holds. */
function amount(text) {
  const match = /^(-?\d+)(?:\.(\d+))?(?:e([+-]\d{1,4}))?$/.exec(typeof text === "string" && text.length <= 60 ? text : "");
  const after = must(match)[2] ?? "", known = decimal(BigInt(match[1] + after), Number(match[3] ?? 0) - after.length);
  must(known.text === text);
  return known;
}
/** ⌊2^20·e^x⌋ and 2^20, for 0 < x ≤ 10: every term of the sum is rounded down. */
function oddsOf([n, d]) {
  let sum = 0n;
  for (let k = 1n, term = 2n ** 256n; term; term = (term * n) / (d * k++)) sum += term;
  return [Number(sum >> 236n), Number(UNIT)];
}
/** ln(n/d) for n/d above 1, as a decimal of 20 digits that is not below it. */
function logarithm([n, d]) {
  const unit = 2n ** 256n;
  const series = (a, b) => {
    let z = ((a - b) * unit) / (a + b), sum = 0n; // ln(a/b) = 2·artanh((a − b)/(a + b))
    for (let k = 1n, square = (z * z) / unit; z; k += 2n, z = (z * square) / unit) sum += z / k;
    return 2n * sum;
  };
  let twos = 0n;
  for (; n >= 2n * d; d *= 2n) twos++;
  const value = twos * series(2n, 1n) + series(n, d), high = value + (value + 4n * unit) / 10n ** 40n;
  let power = 0n;
  while (high * 10n ** power < 10n ** 19n * unit) power++;
  return decimal((high * 10n ** power + unit - 1n) / unit, -Number(power));
}
/** An epsilon, its odds A to B with A/B ≤ e^ε, and how it is written. For "ln x" the odds are x itself. */
function price(text) {
  const match = /^ln (\d{1,3})(?:\.(\d{1,3}))?$/.exec(text);
  let known, odds;
  if (match) {
    const after = match[2] ?? "", written = decimal(BigInt(match[1] + after), -after.length), [n, d] = written.value;
    must(n > d && text === `ln ${written.text}`);
    known = logarithm([n, d]);
    odds = [n / gcd(n, d), d / gcd(n, d)].map(Number);
  } else known = amount(text);
  must(!less(known.value, [1n, 1000n]) && !less(whole(10), known.value));
  return { ...known, written: text, odds: odds ?? oddsOf(known.value) };
}
/** Which channels serve answers best at these odds, by exact variance, where reports are randomised again or not. */
function chooser(odds, again) {
  const [A, B] = odds.map(BigInt), known = new Map();
  const chances = (outputs, [a, b]) => { const all = a + (outputs - 1n) * b; return [[a, all], [b, all]]; };
  const spread = (p, q) => over(times(q, minus(ONE, q)), times(minus(p, q), minus(p, q)));
  function composed({ outputs, supported, truth: p, other: q }) {
    if (!again) return spread(p, q);
    const [a, b] = chances(outputs, again.map(BigInt));
    const kept = plus(a, times([supported - 1n, 1n], b)), gained = times([supported, 1n], b);
    return spread(...[p, q].map((one) => plus(times(one, kept), times(minus(ONE, one), gained))));
  }
  function* candidates(inputs) {
    const k = BigInt(inputs), [truth, other] = chances(k, [A, B]);
    if (truth[1] <= MOST) yield { part: { mechanism: "randomised response", inputs }, outputs: k, supported: 1n, truth, other };
    for (let prime = 2; prime * prime * prime <= LARGEST; prime++) {
      let dimension = 3, divisor = 2;
      while (prime % divisor) divisor++;
      if (divisor < prime) continue;
      while (points(prime, dimension) < inputs) dimension++;
      if (points(prime, dimension) * (prime - 1) + 1 > LARGEST) continue;
      const [all, c, i] = [0, 1, 2].map((fewer) => BigInt(points(prime, dimension - fewer))), Z = c * A + (all - c) * B;
      const part = { mechanism: "projective geometry response", inputs, prime, dimension };
      if (Z <= MOST) yield { part, outputs: all, supported: c, truth: [c * A, Z], other: [i * A + (c - i) * B, Z] };
    }
  }
  function best(inputs) {
    if (!known.has(inputs)) {
      const found = least(candidates(inputs), composed);
      known.set(inputs, found && { part: found.part, spread: composed(found) });
    }
    return known.get(inputs);
  }
  function levels(bins, parts) {
    const sizes = [bins];
    while (sizes[0] > parts) sizes.unshift(Math.ceil(sizes[0] / parts));
    return sizes;
  }
  function rounded([n, d]) {
    const scaled = n << 96n, rest = ((scaled % d) + d) % d, down = (scaled - rest) / d;
    return [down + (2n * rest > d || (2n * rest === d && down & 1n) ? 1n : 0n), 2n ** 96n];
  }
  /** The mean variance of a range: `_mean_variance` of choose.py says how. */
  function variance(sizes, parts, spreads) {
    const precisions = spreads.map((one) => over(ONE, times(whole(sizes.length), one)));
    let ones = over(ONE, precisions.at(-1)), [across, square, inside] = [[0n, 1n], [0n, 1n], [0n, 1n]];
    for (let place = sizes.length - 1; place >= 0; place--) {
      const nodes = BigInt(place ? parts : sizes[0]), first = times([nodes - 1n, 2n], ones), above = precisions[place - 1];
      const second = times([(nodes - 1n) * (2n * nodes - 1n), 6n], times(ones, ones));
      square = plus(square, plus(times(times(whole(2), across), first), second));
      [across, inside] = [plus(across, first), plus(inside, first)];
      const total = times([nodes, 1n], ones);
      const factor = place ? over(above, plus(ONE, times(above, total))) : over(ONE, total);
      const left = minus(ONE, times(factor, total));
      inside = minus(inside, times(factor, square));
      ones = times(total, left);
      [across, square] = [times(across, left), times(square, times(left, left))];
      [ones, across, square, inside] = [ones, across, square, inside].map(rounded);
    }
    return inside;
  }
  /** Parts of a tree over bins. */
  function ordered(bins) {
    const found = [];
    for (const parts of [2, 3, 4, 5, 6, 8, 16, bins]) {
      const sizes = levels(bins, parts), made = sizes.map(best);
      if (parts > bins || !made.every(Boolean)) continue;
      found.push({ sizes, made, parts, variance: variance(sizes, parts, made.map((one) => one.spread)) });
    }
    const { made, parts } = must(least(found, (one) => one.variance));
    return made.map(({ part }, place) => ({ ...part, size: made.slice(place + 1).reduce((size) => size * parts, 1) }));
  }
  /** Local hashing with the best number of buckets. */
  function hashed() {
    const centre = A / B + 1n, buckets = [-1n, 0n, 1n, 2n].map((more) => centre + more).filter((one) => one >= 2n);
    const best = least(buckets, (one) => spread(chances(one, [A, B])[0], [1n, one]));
    return { mechanism: "local hashing", buckets: Number(best) };
  }
  /** The hybrid mechanism for so many steps: `hybrid` of hybrid.py says how it is chosen. */
  function hybrid(steps) {
    const N = BigInt(steps), s = (127n + N) / N, pair = N * (A + B), gap = A - B, common = gcd(A, B), [found, order] = [[], []];
    const squares = (count) => ((count - 1n) * count * (2n * count - 1n)) / 6n, size = (one) => one.toString(2).length;
    const shift = 128 - size(B / common) + size(A / common), even = BigInt(Math.max(0, shift + (shift & 1)));
    const scaled = (((B / common) << even) + A / common - 1n) / (A / common);
    let root = 1n << BigInt(size(scaled)); // the square root, rounded up
    for (let next; (next = (root + scaled / root) / 2n) < root; ) root = next;
    if (root * root < scaled) root++;
    const centre = (root * N * s) >> (even / 2n);
    for (const width of [centre - 1n, centre, centre + 1n]) {
      if (!order.includes(width > 1n ? width : 1n)) order.push(width > 1n ? width : 1n);
    }
    for (const w of order.sort((one, other) => Number((one % 8n) - (other % 8n)))) {
      const j = N * s + w, all = w * A + (j - w) * B;
      if (all > MOST || pair > MOST) continue;
      const [[end, endPair], [middle, middlePair]] = [0n, N / 2n].map((answer) => {
        const start = answer * s, total = (B * j * (j - 1n)) / 2n + gap * (w * start + (w * (w - 1n)) / 2n);
        const moments = [B * squares(j) + gap * (squares(start + w) - squares(start)), all], mean = [total, all];
        const scale = [all, gap * w * s], likely = [answer * A + (N - answer) * B, pair], reach = [N * (A + B), gap];
        const across = times(minus(moments, times(mean, mean)), times(scale, scale));
        return [across, times(times(likely, minus(ONE, likely)), times(reach, reach))];
      });
      const slope = minus(minus(end, endPair), minus(middle, middlePair));
      const [n, d] = slope[0] ? over(minus(middlePair, endPair), slope) : [0n, 1n], equal = (n * UNIT) / d;
      for (const mix of new Set([0n, equal < 0n || equal > UNIT ? 0n : equal, UNIT])) {
        const mixed = (one, other) => times(plus(times([mix, 1n], one), times([UNIT - mix, 1n], other)), [1n, UNIT]);
        const [first, second] = [mixed(end, endPair), mixed(middle, middlePair)];
        const part = { inputs: steps + 1, stride: Number(s), width: Number(w), mix: Number(mix) };
        found.push({ part: { mechanism: "hybrid mechanism", ...part }, worst: less(first, second) ? second : first });
      }
    }
    return must(least(found, (one) => one.worst)).part;
  }
  return { best: (inputs) => must(best(inputs)).part, ordered, hashed, hybrid };
}
const control = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u, longer = (text, most) => text.length > most && [...text].length > most;
/** A text of one line, normalised (NFC). */
const plain = (text, most = 200) => {
  must(typeof text === "string" && text && !longer(text, most) && !control.test(text));
  return text.normalize("NFC");
};
/** What an attribute of a document must be, and what its answers are looked up in. */
function asked(one, name, choose, again) {
  const { kind } = must(one);
  if (kind === "values") {
    const { values } = one, most = 2 ** 22;
    must(Array.isArray(values) && values.length >= 2 && values.length <= most);
    const known = values.map((value) => (Number.isSafeInteger(value) ? value : plain(value)));
    must(new Set(known.map(String)).size === known.length);
    const places = new Map(known.map((value, place) => [value, place]));
    return [{ name, kind, values: known, parts: [{ ...choose.best(known.length), size: 1 }] }, { places }];
  }
  if (kind === "text") {
    const { length } = one;
    must(!again && Number.isInteger(length) && length >= 1 && length <= 32);
    return [{ name, kind, length, parts: Array.from({ length }, (_, at) => ({ ...choose.hashed(), size: at + 1 })) }, {}];
  }
  must(kind === "number" ? !again : kind === "ordered");
  const [low, high, step] = [one.low, one.high, one.step].map(amount), texts = { low: low.text, high: high.text, step: step.text };
  must(less(whole(0), step.value) && less(low.value, high.value));
  const [n, d] = over(minus(high.value, low.value), step.value), steps = Number(n / d);
  must(n % d === 0n && n / d <= 65536n);
  const parts = kind === "number" ? [{ ...choose.hybrid(steps), size: 1 }] : choose.ordered(steps + 1);
  return [{ name, kind, ...texts, parts }, { ends: [low.value, high.value, step.value] }];
}
const sorted = (one) => {
  if (Array.isArray(one)) return one.map(sorted);
  if (one === null || typeof one !== "object") return one;
  return Object.fromEntries(Object.keys(one).sort().map((key) => [key, sorted(one[key])]));
};
const taken = ["collection", "window", "window_", "token", "part", "report", "attribute", "value", "weight"];
/** The document that asks the same, as it must be, and what each attribute's answers are looked up in. */
function worked({ attributes, cap, each, epsilon, name, public: names, question, window }) {
  const first = price(epsilon), again = each === null ? null : price(each.epsilon), most = again ? amount(cap) : first;
  const [n, d] = again ? over(most.value, again.value) : ONE, choose = chooser(first.odds, again?.odds);
  must(n >= d && n <= 1000n * d && ["day", "month", "year", "ever"].includes(window));
  must(Array.isArray(names) && names.every((one) => typeof one === "string" && /^[a-z_]{1,40}$/.test(one) && !taken.includes(one)));
  must(Array.isArray(attributes) && attributes.length >= 1 && attributes.length <= 64);
  const single = attributes.length === 1 && attributes[0].name === "", named = attributes.map((one) => (single ? "" : plain(one.name)));
  must(new Set(names).size === names.length && new Set(named).size === named.length);
  const known = attributes.map((one, place) => asked(one, named[place], choose, again));
  const document = {
    attributes: known.map(([one], place) => {
      const { question: own } = attributes[place];
      return own === undefined ? one : { ...one, question: must(!single) && plain(own, 2000) };
    }),
    cap: most.text,
    each: again && { epsilon: again.written, odds: again.odds },
    epsilon: first.written,
    name: plain(name),
    odds: first.odds,
    public: names,
    question: plain(question, 2000),
    reports: Number(n / d),
    version: "discreet local 1",
    window,
  };
  return [document, known.map(([, sought]) => sought)];
}
/** The collection of a document, with its hash. TypeError on any other text than the one that the collection writes. */
export async function open(text) {
  let document, sought, bytes;
  try {
    bytes = encoder.encode(must(typeof text === "string" && text));
    must(bytes.length <= 32_000_000);
    [document, sought] = worked(JSON.parse(text));
    must(JSON.stringify(sorted(document)) === text);
  } catch {
    throw wrong();
  }
  const attributes = document.attributes.map((one, place) => ({ ...one, ...sought[place] }));
  return { ...document, attributes, hash: hex(await sha256(bytes)) };
}
/** A number as [numerator, denominator]. */
function finite(value) {
  const match = /^(?=[+-]?\.?\d)([+-]?\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?$/.exec(String(value));
  const long = typeof value === "string" && value.length > 60;
  if (!match || long || !["number", "string", "bigint"].includes(typeof value)) throw new TypeError("answer a finite number");
  const power = Number(match[3] ?? 0) - (match[2] ?? "").length, digits = BigInt(match[1] + (match[2] ?? ""));
  return power < 0 ? [digits, 10n ** BigInt(-power)] : [digits * 10n ** BigInt(power), 1n];
}
function code(one, value) {
  const known = typeof value === "string" && one.kind !== "number" && one.kind !== "ordered" ? value.normalize("NFC") : value;
  if (one.kind === "values") {
    const place = one.places.get(known); // as long for the last as for the first
    if (place === undefined) throw new TypeError("answer one of the values of the collection");
    return place;
  }
  if (one.kind === "text") {
    const fine = typeof value === "string" && value && !longer(value, 10_000) && !/\0|\p{Surrogate}/u.test(value);
    if (!fine) throw new TypeError("answer a text");
    const bytes = encoder.encode(known), found = new Uint8Array(one.length);
    let end = Math.min(one.length, bytes.length);
    while (end < bytes.length && (bytes[end] & 0xc0) === 0x80) end--;
    found.set(bytes.subarray(0, end));
    return found;
  }
  const [low, high, step] = one.ends, given = finite(known);
  const within = less(given, low) ? low : less(high, given) ? high : given;
  const [n, d] = over(minus(within, low), step);
  return Number((2n * n + d) / (2n * d)); // rounded to the nearest step, the upper one of two
}
/** The answer to each attribute: of a record all of them, and nothing else. */
function answers({ attributes }, value) {
  if (attributes.length === 1 && !attributes[0].name) return [code(attributes[0], value)];
  const record = typeof value === "object" && value && !Array.isArray(value), given = new Set(record ? Object.keys(value) : []);
  const named = given.size === attributes.length && attributes.every(({ name }) => given.has(name));
  if (!named) throw new TypeError("answer with exactly the attributes of the collection");
  return attributes.map((one) => code(one, value[one.name]));
}
/** token, part and report of a respondent with this secret of 32 bytes; what is re-randomised is drawn from `words`. */
export async function randomised(collection, secret, window, value, words, turn = 0) {
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const message = (name, ...fields) => [name, collection.hash, window, ...fields].join("\n");
  const all = collection.attributes, codes = answers(collection, value);
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
/** What is sent along as it is: all that the collection names, in one order. */
function sentAlong(collection, publics) {
  const given = Object.keys(publics).sort(), named = [...collection.public].sort();
  const fine = (one) => typeof one === "string" && !longer(one, 100) && !/\p{Surrogate}/u.test(one);
  if (given.join() !== named.join() || !given.every((one) => fine(publics[one]))) throw new TypeError("send what is public as named");
  return given.length ? { public: Object.fromEntries(given.map((one) => [one, publics[one]])) } : {};
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
    const along = sentAlong(collection, publics);
    const window = length ? new Date().toISOString().slice(0, length) : "ever";
    if (!storage.getItem("discreet")) storage.setItem("discreet", hex(crypto.getRandomValues(new Uint8Array(32))));
    const place = `discreet ${collection.hash} ${window}`, before = JSON.parse(storage.getItem(place) ?? "[]");
    const again = collection.each, turn = again ? before.length : 0;
    if (!/^[0-9a-f]{64}$/.test(storage.getItem("discreet"))) throw new TypeError("the secret is damaged");
    const secret = Uint8Array.from(storage.getItem("discreet").match(/../g), (pair) => parseInt(pair, 16));
    const made = await randomised(collection, secret, window, value, Words.fresh(), turn);
    if (again && turn >= collection.reports) throw new RangeError("the window's cap is reached");
    if (before.length && !again) [made.part, made.report] = before[0]; // whatever the answer is by now
    else storage.setItem(place, JSON.stringify([...before, [made.part, again ? 0 : made.report]]));
    return { collection: collection.hash, window, ...made, ...along };
  }
}
