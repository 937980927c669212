// Reads JSON lines {"toon": text, "json": text} and answers each with one JSON line:
// {"value": JSON text of what the reference decoder reads in strict mode, "same": whether the
// reference encoder writes the same text for json} or {"error": message}.
import { createInterface } from 'node:readline';
import { decode, encode } from '@toon-format/toon';

function check({ toon, json }) {
  const answer = { value: JSON.stringify(decode(toon, { strict: true })) };
  try {
    answer.reference = encode(JSON.parse(json));
  } catch (error) {
    answer.reference = '';
  }
  answer.same = answer.reference === toon;
  if (answer.same) delete answer.reference;
  return answer;
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let answer;
  try {
    answer = check(JSON.parse(line));
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
