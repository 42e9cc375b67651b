/**
 * Encodes a text in the same ways as JSON encoders, URL encoders, HTML templates and shells. Programs of the same kind encode differently,
 * so each function returns several forms of the text. The same form may occur twice.
 */

const hexOf = (character: string): string => character.charCodeAt(0).toString(16).padStart(4, '0');
const lower = (character: string): string => `\\u${hexOf(character)}`;
const upper = (character: string): string => `\\u${hexOf(character).toUpperCase()}`;

/** Returns the text as `JSON.stringify` writes it, without the quotes around it. */
export const jsonEscaped = (text: string): string => JSON.stringify(text).slice(1, -1);

/** Matches UTF-16 units that are not ASCII. */
const notAscii = /[^\u0020-\u007f]/g;

/** Returns the text as the JSON encoders of other languages and libraries write it: PHP and Python, Go, Gson and Ruby, .NET, Jackson. */
export function jsonSpellings(text: string): string[] {
  const json = jsonEscaped(text);
  const slashes = json.replaceAll('/', '\\/');
  const inner = jsonEscaped(text.replaceAll('"', '\u0000')).replaceAll('\\u0000', '\\u0022');
  const once = [
    json,
    slashes,
    json.replaceAll(notAscii, lower),
    slashes.replaceAll(notAscii, lower),
    json.replaceAll(/[<>&\u2028\u2029]/g, lower),
    json.replaceAll(/[<>&='\u2028\u2029]/g, lower),
    json.replaceAll(notAscii, upper),
    inner.replaceAll(/[<>&'+`]|[^\u0020-\u007f]/g, upper),
    json.replaceAll(/[<>&]|[^\u0020-\u007f]/g, lower),
  ];
  return [...once, ...once.map(jsonEscaped)];
}

const percentOf = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;

/** Returns the text as it is encoded for URLs and forms by JavaScript, Python's `quote`, Go, Java, PHP and curl. */
export function urlSpellings(text: string): string[] {
  const well = text.toWellFormed();
  const component = encodeURIComponent(well);
  const strict = component.replaceAll(/[!'()*]/g, percentOf);
  const forms = [
    component,
    strict,
    strict.replaceAll('%2F', '/'),
    component.replaceAll(/[!'()~]/g, percentOf),
    strict.replaceAll('~', '%7E'),
    encodeURI(well),
    // Go's url.PathEscape.
    strict.replaceAll(/%(?:24|26|2B|3A|3D|40)/g, (code) => decodeURIComponent(code)),
  ];
  return forms.flatMap((form) => [
    form,
    form.replaceAll('%20', '+'),
    form.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
  ]);
}

/**
 * Returns the text as encoders of HTML and XML escape it. Some encoders escape only `<`, `>` and `&`. Other encoders also escape
 * quotes, in different spellings, or write characters that are not ASCII as numbers.
 */
export function markupSpellings(text: string): string[] {
  const markup = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const quotes = ['&#39;', '&#039;', '&#x27;', '&apos;'].map((quote) =>
    markup.replaceAll('"', '&quot;').replaceAll("'", quote),
  );
  const ofGo = markup.replaceAll('"', '&#34;').replaceAll("'", '&#39;');
  const ofHandlebars = (quotes[2] ?? '').replaceAll('`', '&#x60;').replaceAll(/(?<!&#x[0-9A-F]{2};?)=/g, '&#x3D;');
  const forms = [
    markup,
    markup.replaceAll('"', '&quot;'),
    ...quotes,
    ofGo,
    ofGo.replaceAll('+', '&#43;'),
    ofHandlebars,
  ];
  const numbered = (spell: (code: number) => string) => (form: string) =>
    form.replaceAll(/\P{ASCII}/gu, (character) => spell(character.codePointAt(0) ?? 0));
  return [
    ...forms,
    ...forms.map(numbered((code) => `&#${code};`)),
    ...forms.map(numbered((code) => `&#x${code.toString(16)};`)),
    ...forms.map(numbered((code) => `&#x${code.toString(16).toUpperCase()};`)),
  ];
}

/** Replaces each byte of the non-ASCII characters in the text by the result of `spell` for this byte. */
const byBytes = (text: string, spell: (byte: number) => string): string =>
  text.replaceAll(/\P{ASCII}+/gu, (found) => [...new TextEncoder().encode(found)].map((byte) => spell(byte)).join(''));

/** Returns the text as shells quote it (`export -p`, `set -x`, `printf %q`), as git quotes names, and as Python and C write bytes. */
export function shellSpellings(text: string): string[] {
  const octal = (byte: number) => `\\${byte.toString(8).padStart(3, '0')}`;
  const hex = (byte: number) => `\\x${byte.toString(16)}`;
  const doubled = text.replaceAll(/[\\"$`]/g, '\\$&');
  const ansi = text.replaceAll(/[\\']/g, '\\$&').replaceAll('\t', '\\t');
  const words = text.replaceAll(/[\s'"\\|&;()<>!{}*[\]?^$`,]/g, '\\$&');
  const quoted = text.replaceAll(/[\\"]/g, '\\$&');
  return [
    text.replaceAll("'", "'\\''"),
    text.replaceAll("'", `'"'"'`),
    doubled,
    words,
    words.replaceAll(/[#~]/g, '\\$&'),
    ...[ansi, quoted, text].flatMap((form) => [form, byBytes(form, octal), byBytes(form, hex)]),
  ];
}

/** `cutSpellings` makes forms for at most this number of non-ASCII characters of a text, so that the number of forms stays limited. */
const maxCuts = 32;

/**
 * Returns the texts that result if the bytes of one character arrive in two pieces and each piece is decoded separately. A decoder
 * then replaces the character by two to four U+FFFD (Unicode, "U+FFFD Substitution of Maximal Subparts").
 */
export function cutSpellings(text: string): string[] {
  const found = [...text.matchAll(/\P{ASCII}/gu)].slice(0, maxCuts);
  return found.flatMap(({ index, 0: character }) => {
    const bytes = new TextEncoder().encode(character).length;
    return Array.from({ length: bytes - 1 }, (_, at) => {
      const left = '\ufffd'.repeat(2 + at);
      return text.slice(0, index) + left + text.slice(index + character.length);
    });
  });
}
