/** The forms in which a secret may occur in text: unchanged, and in the encodings that programs use. */
import { cutSpellings, jsonSpellings, markupSpellings, shellSpellings, urlSpellings } from './escapes.ts';

/** Minimum length of a form. Shorter forms are not searched for, because their redaction would remove common words from every text. */
export const minSecretLength = 8;
/** A line of a secret is also redacted where it occurs alone, if the line has at least this length. */
const minLineLength = 16;

/**
 * Returns a part of the base64 form of `text`. The caller knows only that `before` bytes precede the text in the encoded data. The
 * returned part depends neither on these bytes nor on the bytes after the text.
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
 * Returns all forms in which the secrets may occur, sorted by length, the longest first. Line breaks are removed from the forms. The
 * forms are the unchanged secret, the secret with escapes for JSON, URLs, markup and shells, in base64 and in hex, and the forms of
 * `cutSpellings`. A long line of a secret also has forms, because a program may print only that line.
 */
export function spellingsOf(secrets: readonly string[]): string[] {
  const parts = secrets.flatMap((secret) => {
    const lines = secret.split(/\r?\n/).map((line) => line.trim());
    return [secret, secret.trim(), ...lines.filter((line) => lines.length > 1 && line.length >= minLineLength)];
  });
  const forms = [...new Set(parts)].flatMap(spellingsOfPart).map(withoutLineBreaks);
  return [...new Set(forms)].filter((form) => form.length >= minSecretLength).sort((a, b) => b.length - a.length);
}
