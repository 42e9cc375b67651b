import { Failure } from '../exits/failure.ts';

/** Returns the function that splits the value of an option into key and value. The function throws a Failure if there is no key. */
export const pairParser =
  (option: string) =>
  (pair: string): [string, string] => {
    const at = pair.indexOf('=');
    if (at < 1) throw new Failure(`${option} takes key=value, not ${JSON.stringify(pair)}`, 2);
    return [pair.slice(0, at), pair.slice(at + 1)];
  };

/** Returns the key and the value in the value of an option `--metadata`. @throws Failure if there is no key */
export const parsePair = pairParser('--metadata');
