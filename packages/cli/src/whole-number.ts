import { InvalidArgumentError } from 'commander';

/** Reads the number of an option. */
export function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1 on.');
  return Number(text);
}
