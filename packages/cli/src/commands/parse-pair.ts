import { Failure } from '../failure.ts';

/** Returns the key and the value in the value of an option `--metadata`. @throws Failure if there is no key */
export function parsePair(pair: string): [string, string] {
  const at = pair.indexOf('=');
  if (at < 1) throw new Failure(`--metadata takes key=value, not ${JSON.stringify(pair)}`, 2);
  return [pair.slice(0, at), pair.slice(at + 1)];
}
