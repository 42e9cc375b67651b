/** The forms in which a secret may occur in text: unchanged, and in the encodings that programs use. */
import { cutSpellings, jsonSpellings, markupSpellings, shellSpellings, urlSpellings } from './escapes.ts';

/** Least length of a form. A shorter form would remove common words from every text. */
export const minSecretLength = 8;
/** Least length of a line of a secret that is also redacted alone. */
const minLineLength = 16;

/**
 * Returns a part of the base64 of `text` if `before` bytes precede the text: the part that depends neither on these bytes nor on the bytes
 * after the text.
 */
function base64Within(text: string, before: number): string {
  const bytes = Buffer.from(text);
  const encoded = Buffer.concat([Buffer.alloc(before), bytes])
    .toString('base64')
    .replace(/=+$/, '');
  const ownCharacters = Math.floor(((before + bytes.length) * 8) / 6);
  return encoded.slice(Math.ceil((before * 8) / 6), ownCharacters);
}

const asUrl = (text: string): string => text.replaceAll('+', '-').replaceAll('/', '_');

function spellingsOfPart(text: string): string[] {
  const base64 = [0, 1, 2].map((before) => base64Within(text, before));
  const hex = Buffer.from(text).toString('hex');
  return [
    text,
    ...jsonSpellings(text),
    ...urlSpellings(text),
    ...markupSpellings(text),
    ...shellSpellings(text),
    ...cutSpellings(text),
    ...base64,
    ...base64.map(asUrl),
    hex,
    hex.toUpperCase(),
  ];
}

/** Matches the line breaks that programs put into long text, including their escaped form in JSON. */
export const lineBreaks = /\r|\n|\\r|\\n/g;
export const withoutLineBreaks = (text: string): string => text.replaceAll(lineBreaks, '');

/**
 * Returns all forms of the secrets without line breaks, the longest first: unchanged, escaped for JSON, URLs, markup and shells, in base64
 * and hex, and with a split character. A long line of a secret also has forms, because a program may print only that line.
 */
export function spellingsOf(secrets: readonly string[]): string[] {
  const parts = secrets.flatMap((secret) => {
    const lines = secret.split(/\r?\n/).map((line) => line.trim());
    return [secret, secret.trim(), ...lines.filter((line) => lines.length > 1 && line.length >= minLineLength)];
  });
  const forms = [...new Set(parts)].flatMap(spellingsOfPart).map(withoutLineBreaks);
  return [...new Set(forms)].filter((form) => form.length >= minSecretLength).sort((a, b) => b.length - a.length);
}
